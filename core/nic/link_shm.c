/* SPDX-License-Identifier: BSD-3-Clause */
/* See link_shm.h. */
#include "core/nic/link_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/nic/net_dir.h"
#include "core/rnic/device.h"

#define RING_BYTES (1u << 18) /* a power of two */
#define MAGIC	   0x314d4454u
#define NS_PER_S   1000000000ull

/* A packet in a ring: this, then its payload, rounded up to 64 bytes. len WRAP: the next one is at the start.
 */
struct record {
	uint32_t len;
	uint32_t src_qpn, dest_qpn, psn, msn;
	uint8_t opcode, syndrome, solicited, ack_req;
	uint8_t placement, selectivity, service, unused;
	uint32_t rkey, dma_len, imm, invalidate, qkey, from;
	uint64_t va, swap_add, compare, original;
};
#define WRAP	  UINT32_MAX
#define MAX_BYTES 4096 /* of payload */

struct ring {
	_Alignas(64) _Atomic uint32_t tail; /* bytes ever written: the sender's */
	_Alignas(64) _Atomic uint32_t head; /* bytes ever taken: the owner's */
	_Alignas(64) uint8_t bytes[RING_BYTES];
};

struct inbox {
	uint32_t magic;
	_Atomic uint32_t dead;				       /* the slot has another file now */
	_Atomic uint32_t sleeping;			       /* futex: 1, whoever sends has to wake */
	_Alignas(64) _Atomic uint64_t senders[SHM_SLOTS / 64]; /* who has ever sent */
	struct ring ring[SHM_SLOTS];
};

_Static_assert(offsetof(struct inbox, dead) == NET_DIR_DEAD_AT, "net_dir.h says where");

struct link_shm {
	struct nic_link nic;
	char directory[200];
	unsigned slot, last; /* whose ring was emptied last */
	int fd;		     /* holds the lock */
	struct inbox *own, *to[SHM_SLOTS];
};

static struct inbox *map(int fd)
{
	void *at = mmap(NULL, sizeof(struct inbox), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
			0);

	return at == MAP_FAILED ? NULL : at;
}

static void name_slot(const struct link_shm *shm, unsigned slot, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%u", shm->directory, slot);
}

/* 0: ours; -EAGAIN: somebody lives there. */
static int take_slot(struct link_shm *shm, unsigned slot)
{
	/* Not inherited by children, given up by the kernel with the process. */
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	struct stat is, at;
	char name[256];
	int fd, rc;

	name_slot(shm, slot, name, sizeof(name));
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	rc = -EAGAIN;
	/* Between open() and the lock somebody else may have put another file there. */
	if (fcntl(fd, F_SETLK, &lock) || fstat(fd, &is) || stat(name, &at) || is.st_ino != at.st_ino)
		goto out;
	if (is.st_size) { /* a dead one's: those who still send to it have to look again */
		struct inbox *old = is.st_size == sizeof(struct inbox) ? map(fd) : NULL;

		if (old) {
			old->dead = 1;
			munmap(old, sizeof(*old));
		}
		unlink(name);
		goto out;
	}
	rc = ftruncate(fd, sizeof(struct inbox)) ? -errno : 0;
	shm->own = rc ? NULL : map(fd);
	if (!rc && !shm->own)
		rc = -ENOMEM;
out:
	if (rc) {
		close(fd);
		return rc;
	}
	shm->own->magic = MAGIC;
	shm->fd = fd;
	shm->slot = slot;
	return 0;
}

static struct inbox *inbox_of(struct link_shm *shm, unsigned slot)
{
	struct inbox *to = shm->to[slot];
	char name[256];
	int fd;

	if (to && !to->dead)
		return to;
	if (to)
		munmap(to, sizeof(*to));
	shm->to[slot] = NULL;
	name_slot(shm, slot, name, sizeof(name));
	fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	struct stat is;
	if (!fstat(fd, &is) && is.st_size == sizeof(struct inbox))
		shm->to[slot] = map(fd);
	close(fd);
	return shm->to[slot];
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void put(struct link_shm *shm, struct inbox *to, const struct packet *pkt)
{
	struct ring *ring = &to->ring[shm->slot];
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint32_t need = (uint32_t)((sizeof(struct record) + pkt->len + 63) & ~63u), at = tail % RING_BYTES;
	uint32_t skip = RING_BYTES - at < need ? RING_BYTES - at : 0;

	if (tail - head > RING_BYTES || RING_BYTES - (tail - head) < skip + need)
		return; /* full: lost */
	if (skip)
		((struct record *)(ring->bytes + at))->len = WRAP;
	at = (at + skip) % RING_BYTES;
	struct record *r = (struct record *)(ring->bytes + at);
	*r = (struct record){.len = pkt->len,
			     .src_qpn = pkt->src_qpn,
			     .dest_qpn = pkt->dest_qpn,
			     .psn = pkt->psn,
			     .msn = pkt->msn,
			     .opcode = pkt->opcode,
			     .syndrome = pkt->syndrome,
			     .solicited = pkt->solicited,
			     .ack_req = pkt->ack_req,
			     .placement = pkt->placement,
			     .selectivity = pkt->selectivity,
			     .service = pkt->service,
			     .invalidate = pkt->invalidate,
			     .qkey = pkt->qkey,
			     .from = pkt->from,
			     .rkey = pkt->rkey,
			     .dma_len = pkt->dma_len,
			     .imm = pkt->imm,
			     .va = pkt->va,
			     .swap_add = pkt->swap_add,
			     .compare = pkt->compare,
			     .original = pkt->original};
	memcpy(r + 1, pkt->payload, pkt->len);
	atomic_store_explicit(&ring->tail, tail + skip + need, memory_order_release);
	if (!(atomic_load_explicit(&to->senders[shm->slot / 64], memory_order_relaxed) >> shm->slot % 64 & 1))
		atomic_fetch_or(&to->senders[shm->slot / 64], 1ull << shm->slot % 64);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&to->sleeping, memory_order_relaxed) && atomic_exchange(&to->sleeping, 0))
		futex_wake(&to->sleeping);
}

static void hand_over(struct link *link, unsigned from, struct packet *pkt)
{
	struct link_shm *shm = (struct link_shm *)link;
	unsigned slot = pkt->dest_qpn >> SHM_QPN_SHIFT;
	struct inbox *to = slot && slot < SHM_SLOTS ? inbox_of(shm, slot) : NULL;

	(void)from;
	if (to)
		put(shm, to, pkt);
	packet_put(pkt->net, pkt);
}

/* With a quarter of the ring left to those who send again what is lost. */
static bool has_room(struct link *link, uint32_t peer, uint32_t dest_qpn)
{
	struct link_shm *shm = (struct link_shm *)link;
	unsigned slot = dest_qpn >> SHM_QPN_SHIFT;
	struct inbox *to = slot && slot < SHM_SLOTS ? inbox_of(shm, slot) : NULL;
	const struct ring *ring = to ? &to->ring[shm->slot] : NULL;

	(void)peer;
	if (!ring)
		return true; /* nobody is there */
	return atomic_load_explicit(&ring->tail, memory_order_relaxed) -
		       atomic_load_explicit(&ring->head, memory_order_acquire) <
	       RING_BYTES / 4 * 3;
}

/* All processes of the host have one address: any other is nobody's. */
static int resolve(struct link *link, const union ibv_gid *gid)
{
	union ibv_gid ours;

	rnic_gid(((struct link_shm *)link)->nic.address, &ours);
	return memcmp(&ours, gid, sizeof(ours)) ? -ENETUNREACH : 0;
}

static void gid_of(struct link *link, uint32_t number, union ibv_gid *gid)
{
	(void)number;
	rnic_gid(((struct link_shm *)link)->nic.address, gid);
}

static struct packet *take(struct ring *ring, struct rnic_net *net)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	struct packet *pkt;
	struct record r;

	while (head != tail) {
		uint32_t at = head % RING_BYTES, need;

		/* The rings are as good as their senders: one that is not in order is emptied. */
		if (at % 64 || tail - head > RING_BYTES)
			break;
		memcpy(&r, ring->bytes + at, sizeof(r));
		if (r.len == WRAP) {
			head += RING_BYTES - at;
			continue;
		}
		need = (uint32_t)((sizeof(r) + r.len + 63) & ~63u);
		if (r.len > MAX_BYTES || need > RING_BYTES - at || need > tail - head)
			break;
		pkt = packet_get(net, r.len);
		memcpy(pkt->payload, ring->bytes + at + sizeof(r), r.len);
		atomic_store_explicit(&ring->head, head + need, memory_order_release);
		pkt->src_qpn = r.src_qpn;
		pkt->dest_qpn = r.dest_qpn;
		pkt->psn = r.psn & PSN_MASK;
		pkt->msn = r.msn;
		pkt->opcode = r.opcode;
		pkt->syndrome = r.syndrome;
		pkt->solicited = r.solicited & 1;
		pkt->ack_req = r.ack_req & 1;
		pkt->placement = r.placement;
		pkt->selectivity = r.selectivity;
		pkt->service = r.service;
		pkt->invalidate = r.invalidate;
		pkt->qkey = r.qkey;
		pkt->from = r.from;
		pkt->rkey = r.rkey;
		pkt->dma_len = r.dma_len;
		pkt->imm = r.imm;
		pkt->va = r.va;
		pkt->swap_add = r.swap_add;
		pkt->compare = r.compare;
		pkt->original = r.original;
		return pkt;
	}
	atomic_store_explicit(&ring->head, tail, memory_order_release);
	return NULL;
}

static bool is_empty(struct link_shm *shm, unsigned from)
{
	struct ring *ring = &shm->own->ring[from];

	return atomic_load_explicit(&ring->head, memory_order_relaxed) ==
	       atomic_load_explicit(&ring->tail, memory_order_acquire);
}

/* The first sender from `from` on that has something here; SHM_SLOTS: nobody. */
static unsigned next_sender(struct link_shm *shm, unsigned from)
{
	for (unsigned word = from / 64; word < SHM_SLOTS / 64; word++) {
		uint64_t senders = atomic_load_explicit(&shm->own->senders[word], memory_order_relaxed);

		if (word == from / 64)
			senders &= ~0ull << from % 64;
		for (; senders; senders &= senders - 1) {
			unsigned slot = word * 64 + (unsigned)__builtin_ctzll(senders);

			if (!is_empty(shm, slot))
				return slot;
		}
	}
	return SHM_SLOTS;
}

/* Senders in turn. */
static struct packet *take_next(struct nic_link *nic, struct rnic_net *net)
{
	struct link_shm *shm = (struct link_shm *)nic;
	unsigned from = next_sender(shm, shm->last + 1);
	struct packet *pkt = NULL;

	if (from == SHM_SLOTS)
		from = next_sender(shm, 0);
	for (; from < SHM_SLOTS && !pkt; from = next_sender(shm, from + 1)) {
		pkt = take(&shm->own->ring[from], net);
		shm->last = from;
	}
	return pkt;
}

static void sleep_until_mail(struct nic_link *nic, uint64_t ns)
{
	struct link_shm *shm = (struct link_shm *)nic;
	struct timespec most = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

	atomic_store(&shm->own->sleeping, 1);
	if (next_sender(shm, 0) == SHM_SLOTS)
		syscall(SYS_futex, &shm->own->sleeping, FUTEX_WAIT, 1, ns == UINT64_MAX ? NULL : &most, NULL,
			0);
	atomic_store(&shm->own->sleeping, 0);
}

static void wake(struct nic_link *nic)
{
	struct link_shm *shm = (struct link_shm *)nic;

	if (atomic_exchange(&shm->own->sleeping, 0))
		futex_wake(&shm->own->sleeping);
}

static void leave(struct nic_link *nic)
{
	struct link_shm *shm = (struct link_shm *)nic;
	char name[256];

	name_slot(shm, shm->slot, name, sizeof(name));
	shm->own->dead = 1;
	unlink(name);
	close(shm->fd);
	rmdir(shm->directory); /* the last one */
}

int link_shm_open(struct nic_link **out, const char *directory)
{
	struct link_shm *shm = calloc(1, sizeof(*shm));
	int rc;

	if (!shm)
		return -ENOMEM;
	shm->nic = (struct nic_link){
		.link = {.send = hand_over, .resolve = resolve, .gid = gid_of, .ready = has_room},
		.address = INADDR_LOOPBACK,
		.mtu = MAX_BYTES,
		.take = take_next,
		.sleep = sleep_until_mail,
		.wake = wake,
		.leave = leave,
	};
	rc = strlen(directory) < sizeof(shm->directory) ? 0 : -ENAMETOOLONG;
	if (!rc) {
		strcpy(shm->directory, directory);
		rc = -EAGAIN;
	}
	for (unsigned slot = 1; slot < SHM_SLOTS && rc == -EAGAIN; slot++) {
		/* Twice: the first time a dead one's file is put away. */
		for (unsigned n = 0; n < 2 && rc == -EAGAIN; n++)
			rc = take_slot(shm, slot);
	}
	if (rc) {
		free(shm);
		return rc == -EAGAIN ? -EUSERS : rc;
	}
	shm->nic.qpn_first = (shm->slot << SHM_QPN_SHIFT) + QPN_FIRST;
	shm->nic.qpn_limit = (shm->slot + 1) << SHM_QPN_SHIFT;
	*out = &shm->nic;
	return 0;
}
