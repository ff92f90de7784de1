/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between processes of one host through rings in shared memory. See link_shm.h. */
#include "core/provider/link/link_shm.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/provider/base/config.h"
#include "core/provider/link/gids.h"
#include "core/rnic/count.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/link.h"

/* A power of two. Larger than the private caches of most cores: what the other core has written
 * is fetched faster once it has left them. */
#define RING_BYTES  (1u << 19)
#define RING_FULL   (RING_BYTES / 4 * 3)
#define MAGIC	    0x324d4454u
#define PAGE	    4096
#define NS_PER_S    1000000000ull
#define QPN_SPREAD  32768 /* range of the first number of a process */
#define IN_A_ROW    16	  /* packets taken of one sender before the others' turn */
#define ENTER_TRIES 100

/*
 * A packet in a ring: this line, then its payload, rounded up to lines. len WRAP: the next record
 * is at the start of the ring. `stamp` is written last. It depends on the position and on the
 * ring's secret, so that nothing else that may lie in this place, such as earlier packets or user
 * data, looks like a record. The owner need not look anywhere else.
 */
struct record {
	_Atomic uint64_t stamp;
	uint32_t from; /* of a packet that another process forwards (link_udp.c) */
	uint16_t len;
	uint8_t opcode, syndrome;
	uint32_t dest_qpn, psn;
	uint32_t msn;
	uint8_t placement, selectivity, service, flags;
	uint32_t rkey, dma_len;
	uint64_t where; /* va; datagram: src_qpn, qkey */
	uint64_t value; /* atomic: swap_add or original; else: imm, invalidate */
	uint64_t compare;
};
_Static_assert(sizeof(struct record) == LINE, "a record's head is a line");
enum {
	SOLICITED = 1,
	ACK_REQ = 2,
	MORE_SHIFT = 2
}; /* higher bits: further packets, with segmentation offload */
_Static_assert(SEGMENTS_MOST <= 256 >> MORE_SHIFT, "they fit into the flags");
#define WRAP	     UINT16_MAX
#define MTU	     4096
#define MAX_BYTES    16384 /* of payload */
#define SENDER_WORDS (FABRIC_SLOTS / 64)

enum { ASLEEP = 1, WOKEN };

/* Positions count all bytes ever written, so that they do not repeat. */
struct ring {
	/* Written by the process that is the sender now: it begins at `start`, which it writes
	 * last. */
	_Alignas(PAGE) _Atomic uint64_t start, secret;
	_Alignas(64) _Atomic uint64_t head; /* the owner has processed everything before it */
	_Alignas(PAGE) uint8_t bytes[RING_BYTES];
};

struct inbox {
	uint32_t magic;
	_Atomic uint32_t dead;	   /* the slot has another file now */
	_Atomic uint32_t sleeping; /* futex: 0, ASLEEP or WOKEN */
	_Alignas(64) _Atomic uint64_t
		senders[SENDER_WORDS]; /* a bit for each slot that has ever sent */
	struct ring ring[FABRIC_SLOTS];
};

_Static_assert(offsetof(struct inbox, dead) == FABRIC_DIR_DEAD_AT, "fabric_dir.h says where");

/* The channel to another process: its inbox, and this process's ring in it. */
struct channel {
	struct inbox *inbox;
	uint64_t start, secret, tail, head;
};

/* A ring of this process's inbox. Written under the NIC's lock, read without it. */
struct arrivals {
	_Atomic uint64_t start, secret, head;
};

struct link_shm {
	struct nic_link nic;
	char directory[200];
	unsigned slot, last; /* last: the sender of the last packet */
	unsigned in_a_row;   /* further packets of that sender before the others have their turn */
	int fd;		     /* holds the lock */
	struct inbox *own;
	_Atomic bool woken; /* wake() was called since the thread last woke */
	struct channel channel[FABRIC_SLOTS];
	struct arrivals arrivals[FABRIC_SLOTS];
	/* The last packet taken, while its payload is still in its ring. Its place is released
	 * when it has been processed. */
	struct packet *lent;
	uint8_t *lent_bytes;
	unsigned lent_by;
};

static struct inbox *map(int fd)
{
	void *at = mmap(NULL, sizeof(struct inbox), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_NORESERVE, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* 0: it is this process's now; -EAGAIN: a living process has it. */
static int take_slot(struct link_shm *shm, unsigned slot)
{
	char name[16];
	int fd;

	assert(slot && slot < FABRIC_SLOTS); /* 0 is no one's */
	assert(!shm->own);
	snprintf(name, sizeof(name), "%u", slot);
	fd = fabric_dir_claim(shm->directory, name, sizeof(struct inbox));
	if (fd < 0)
		return fd;
	shm->own = map(fd);
	if (!shm->own) {
		close(fd);
		return -ENOMEM;
	}
	shm->own->magic = MAGIC;
	shm->fd = fd;
	shm->slot = slot;
	return 0;
}

/* The inbox of a slot. Memory for this process's ring is allocated, so that no store to it can
 * fail later. */
static struct inbox *map_inbox(struct link_shm *shm, unsigned slot)
{
	struct inbox *inbox = NULL;
	struct stat is;
	char name[16];
	int fd;

	/* Closing another descriptor of the own file would release the lock on it. */
	if (slot == shm->slot)
		return shm->own;
	snprintf(name, sizeof(name), "%u", slot);
	fd = fabric_dir_open(shm->directory, name, false);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &is) && is.st_size == sizeof(struct inbox) &&
	    !fallocate(fd, 0, offsetof(struct inbox, ring) + shm->slot * sizeof(struct ring),
		       sizeof(struct ring)))
		inbox = map(fd);
	close(fd);
#ifdef MADV_POPULATE_WRITE
	if (inbox) /* avoid page faults later, on kernels that can */
		madvise(&inbox->ring[shm->slot], sizeof(struct ring), MADV_POPULATE_WRITE);
#endif
	return inbox;
}

static uint64_t random_secret(void)
{
	uint64_t secret;

	while (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		;
	return secret;
}

/* The channel to the process in a slot; NULL: the slot is not in use. */
static struct channel *channel_to_slot(struct link_shm *shm, unsigned slot)
{
	struct channel *channel = &shm->channel[slot % FABRIC_SLOTS];

	if (slot >= FABRIC_SLOTS)
		return NULL;
	if (channel->inbox && !channel->inbox->dead)
		return channel;
	if (channel->inbox && channel->inbox != shm->own)
		munmap(channel->inbox, sizeof(*channel->inbox));
	channel->inbox = slot ? map_inbox(shm, slot) : NULL;
	if (!channel->inbox)
		return NULL;
	/* An earlier process in our slot may have died while it wrote a record: begin after it. */
	struct ring *ring = &channel->inbox->ring[shm->slot];
	channel->start = atomic_load(&ring->start);
	if (channel->start < atomic_load(&ring->head))
		channel->start = atomic_load(&ring->head);
	channel->start = (channel->start / RING_BYTES + 2) * RING_BYTES;
	channel->tail = channel->head = channel->start;
	assert(channel->start % RING_BYTES == 0);
	channel->secret = random_secret();
	atomic_store(&ring->secret, channel->secret);
	atomic_store(&ring->start, channel->start);
	atomic_fetch_or(&channel->inbox->senders[shm->slot / 64], 1ull << shm->slot % 64);
	return channel;
}

static struct channel *channel_to(struct link_shm *shm, uint32_t qpn)
{
	return channel_to_slot(shm, qpn >> SHM_QPN_SHIFT);
}

/* A process that is killed between setting WOKEN and the wake-up leaves a sleeper, which the
 * next sender wakes. */
static void wake_up(struct inbox *inbox)
{
	uint32_t sleeping = atomic_load_explicit(&inbox->sleeping, memory_order_relaxed);

	if (!sleeping)
		return;
	if (sleeping == ASLEEP)
		atomic_compare_exchange_strong(&inbox->sleeping, &sleeping, WOKEN);
	syscall(SYS_futex, &inbox->sleeping, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint32_t record_bytes(uint32_t len)
{
	return (uint32_t)((sizeof(struct record) + len + LINE - 1) / LINE * LINE);
}

/* Bytes of the ring that are in use. */
static uint64_t used(struct link_shm *shm, struct channel *channel)
{
	uint64_t head = atomic_load_explicit(&channel->inbox->ring[shm->slot].head,
					     memory_order_acquire);

	/* Otherwise the owner has not noticed its new sender yet, or has written nonsense. */
	if (head >= channel->start && head <= channel->tail)
		channel->head = head;
	return channel->tail - channel->head;
}

/* The place for a record with a payload of len bytes, and how many bytes are skipped for it;
 * NULL: no room. */
static struct record *room_for(struct link_shm *shm, struct channel *channel, uint32_t len,
			       uint32_t *skip)
{
	uint32_t need = record_bytes(len), at = channel->tail % RING_BYTES;

	assert(channel->tail % LINE == 0 && need <= RING_BYTES);
	*skip = RING_BYTES - at < need ? RING_BYTES - at : 0;
	assert((at + *skip) % RING_BYTES + need <= RING_BYTES); /* a record is in one piece */
	/* A record must not reach the stamp that the owner looks for next. */
	if (channel->tail - channel->head + *skip + need >= RING_BYTES &&
	    used(shm, channel) + *skip + need >= RING_BYTES)
		return NULL;
	return (struct record *)(channel->inbox->ring[shm->slot].bytes + (at + *skip) % RING_BYTES);
}

static uint8_t *reserve(struct link *link, uint32_t dest_qpn, uint32_t len)
{
	struct link_shm *shm = (struct link_shm *)link;
	struct channel *channel = channel_to(shm, dest_qpn);
	uint32_t skip;
	struct record *r = channel ? room_for(shm, channel, len, &skip) : NULL;
	return r ? (uint8_t *)(r + 1) : NULL;
}

/* A quarter of the ring is left for acknowledgements and for packets that reliable services send
 * again. */
static bool has_room(struct link *link, uint32_t peer, uint32_t dest_qpn, uint64_t *taken)
{
	struct link_shm *shm = (struct link_shm *)link;
	struct channel *channel = channel_to(shm, dest_qpn);

	(void)peer; /* all peers are on this host */
	if (!channel || channel->tail - channel->head <= RING_FULL ||
	    used(shm, channel) <= RING_FULL)
		return true;
	*taken = channel->head;
	return false;
}

static bool is_atomic(const struct packet *pkt)
{
	return pkt->opcode < OP_CODES && opcode_is[pkt->opcode] & IS_ATOMIC;
}

static void write_record(struct link_shm *shm, struct channel *channel, const struct packet *pkt)
{
	uint32_t skip;
	struct record *r = room_for(shm, channel, pkt->len, &skip);
	struct inbox *to = channel->inbox;

	assert(pkt->len <= MAX_BYTES);
	if (!r) {
		link_count(shm->nic.count, COUNT_link_full);
		wake_up(to);
		return; /* lost */
	}
	if (skip) {
		struct record *wrap = (struct record *)(to->ring[shm->slot].bytes +
							channel->tail % RING_BYTES);

		wrap->len = WRAP;
		atomic_store_explicit(&wrap->stamp, channel->tail ^ channel->secret,
				      memory_order_release);
		channel->tail += skip;
	}
	/* The payload may have been built in the place that reserve() gave. The words that the
	 * owner polls are written last. */
	if (pkt->payload != (uint8_t *)(r + 1))
		memcpy(r + 1, pkt->payload, pkt->len);
	r->from = pkt->from;
	r->len = (uint16_t)pkt->len;
	r->dest_qpn = pkt->dest_qpn;
	r->psn = pkt->psn;
	r->msn = pkt->msn;
	r->opcode = pkt->opcode;
	r->syndrome = pkt->syndrome;
	r->flags = (uint8_t)((pkt->solicited ? SOLICITED : 0) | (pkt->ack_req ? ACK_REQ : 0) |
			     pkt->more << MORE_SHIFT);
	r->placement = pkt->placement;
	r->selectivity = pkt->selectivity;
	r->service = pkt->service;
	r->rkey = pkt->rkey;
	r->dma_len = pkt->dma_len;
	r->where = pkt->service == SERVICE_UD ? (uint64_t)pkt->qkey << 32 | pkt->src_qpn : pkt->va;
	r->value = (uint64_t)pkt->invalidate << 32 | pkt->imm;
	if (is_atomic(pkt))
		r->value = opcode_is[pkt->opcode] & IS_RESPONSE ? pkt->original : pkt->swap_add;
	r->compare = pkt->compare;
	/* Write the stamp first and look for a sleeper second; the sleeper does it in the
	 * opposite order. */
	atomic_store_explicit(&r->stamp, channel->tail ^ channel->secret, memory_order_release);
	channel->tail += record_bytes(pkt->len);
	assert(channel->tail - channel->head < RING_BYTES);
	/* The owner polls the next line, so prefetch the one after it. */
	__builtin_prefetch(to->ring[shm->slot].bytes + (channel->tail + LINE) % RING_BYTES, 1);
	atomic_thread_fence(memory_order_seq_cst);
	wake_up(to);
}

static void hand_over(struct link *link, unsigned from, struct packet *pkt)
{
	struct link_shm *shm = (struct link_shm *)link;
	struct channel *channel = pkt->dest_qpn == QPN_MANAGEMENT ? channel_to_slot(shm, pkt->peer)
								  : channel_to(shm, pkt->dest_qpn);

	if (channel)
		write_record(shm, channel, pkt);
	packet_put(pkt->net, pkt);
}

/* All processes of the host have the same addresses, one for each device, and no others. */
static int resolve(struct link *link, const union ibv_gid *gid)
{
	uint32_t address;

	if (!gid_to_address(gid, &address))
		return -ENETUNREACH;
	address -= ((struct link_shm *)link)->nic.address;
	return address < CONFIG_DEVICES_MOST ? 0 : -ENETUNREACH;
}

static void gid_of(struct link *link, uint32_t number, union ibv_gid *gid)
{
	rnic_gid(((struct link_shm *)link)->nic.address, gid);
}

static uint64_t look(_Atomic uint64_t *at)
{
	return atomic_load_explicit(at, memory_order_relaxed);
}

static void set(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

/* The record that is next in a sender's ring; NULL: none. */
static struct record *next_record(struct link_shm *shm, unsigned from)
{
	struct arrivals *arrivals = &shm->arrivals[from];
	uint64_t head = look(&arrivals->head);
	struct record *r = (struct record *)(shm->own->ring[from].bytes + head % RING_BYTES);

	if (atomic_load_explicit(&r->stamp, memory_order_acquire) !=
	    (head ^ look(&arrivals->secret)))
		return NULL;
	return look(&arrivals->start) ? r : NULL;
}

/* Is there a new process in the sender's slot? */
static bool is_new(struct link_shm *shm, unsigned from)
{
	uint64_t start = atomic_load_explicit(&shm->own->ring[from].start, memory_order_acquire);

	return start != look(&shm->arrivals[from].start) && start % RING_BYTES == 0;
}

/* Read from the new process's start from now on. */
static void begin(struct link_shm *shm, unsigned from)
{
	struct ring *ring = &shm->own->ring[from];
	uint64_t start = atomic_load_explicit(&ring->start, memory_order_acquire);

	start -= start % RING_BYTES; /* the sender may have changed it since is_new() */
	set(&shm->arrivals[from].secret, atomic_load(&ring->secret));
	set(&shm->arrivals[from].head, start);
	set(&shm->arrivals[from].start, start);
	atomic_store_explicit(&ring->head, start, memory_order_release);
}

/* Release the last packet's place in its ring. The packet has been processed, or else its
 * payload is copied now. */
static void give_back(struct link_shm *shm)
{
	struct packet *pkt = shm->lent;

	if (!pkt)
		return;
	assert(shm->lent_by < FABRIC_SLOTS);
	/* The packet may be over, and serve as another one. */
	assert(pkt->payload != shm->lent_bytes || pkt->len <= MAX_BYTES);
	shm->lent = NULL;
	if (pkt->payload == shm->lent_bytes) {
		pkt->payload = buffer_get(pkt->net, pkt->len, &pkt->payload_class);
		memcpy(pkt->payload, shm->lent_bytes, pkt->len);
	}
	atomic_store_explicit(&shm->own->ring[shm->lent_by].head,
			      look(&shm->arrivals[shm->lent_by].head), memory_order_release);
}

/* A record's packet; its payload stays where it is if it is long. */
static struct packet *unpack(struct link_shm *shm, unsigned from, const struct record *r,
			     uint8_t *payload, struct rnic_net *net)
{
	bool is_long = r->len > PACKET_SMALL;
	struct packet *pkt = packet_get(net, 0);

	assert(!shm->lent); /* one at a time */
	assert(r->len <= MAX_BYTES);
	pkt->len = r->len;
	if (is_long) {
		shm->lent = pkt;
		shm->lent_by = from;
		shm->lent_bytes = pkt->payload = payload;
	} else if (r->len) {
		memcpy(pkt->small, payload,
		       PACKET_SMALL); /* a constant size is faster, and the ring has a whole line */
	}
	pkt->from = r->from;
	pkt->dest_qpn = r->dest_qpn;
	pkt->psn = r->psn & PSN_MASK;
	pkt->msn = r->msn;
	pkt->opcode = r->opcode;
	pkt->syndrome = r->syndrome;
	pkt->solicited = r->flags & SOLICITED;
	pkt->ack_req = r->flags & ACK_REQ;
	pkt->more = r->service == SERVICE_RC ? r->flags >> MORE_SHIFT : 0;
	pkt->placement = r->placement;
	pkt->selectivity = r->selectivity;
	pkt->service = r->service;
	pkt->rkey = r->rkey;
	pkt->dma_len = r->dma_len;
	if (r->service == SERVICE_UD) {
		pkt->src_qpn = (uint32_t)r->where;
		pkt->qkey = (uint32_t)(r->where >> 32);
	} else {
		pkt->src_qpn = from << SHM_QPN_SHIFT; /* only the slot is known */
		pkt->va = r->where;
	}
	if (is_atomic(pkt)) {
		pkt->swap_add = pkt->original = r->value;
	} else {
		pkt->imm = (uint32_t)r->value;
		pkt->invalidate = (uint32_t)(r->value >> 32);
	}
	pkt->compare = r->compare;
	return pkt;
}

/* The next packet of a sender. A ring can only be trusted as far as its sender: one with an
 * invalid record is not read any more. */
static struct packet *take_record(struct link_shm *shm, unsigned from, struct rnic_net *net)
{
	_Atomic uint64_t *head = &shm->arrivals[from].head;
	struct ring *ring = &shm->own->ring[from];
	struct record *there, r;
	struct packet *pkt;

	if (is_new(shm, from))
		begin(shm, from);
	while ((there = next_record(shm, from))) {
		uint32_t left = RING_BYTES - look(head) % RING_BYTES;

		/* So a record's head is in the ring, wherever it is. */
		assert(look(head) % LINE == 0 && left >= sizeof(r));
		/* Copy once: what is checked must be what is used. */
		__builtin_prefetch(there + 1);
		memcpy(&r, there, sizeof(r));
		if (r.len == WRAP) {
			set(head, look(head) + left);
			continue;
		}
		if (r.len > MAX_BYTES || record_bytes(r.len) > left) {
			link_count(shm->nic.count, COUNT_bad_length);
			set(&shm->arrivals[from].secret,
			    random_secret()); /* its records are not found any more */
			return NULL;
		}
		pkt = unpack(shm, from, &r, (uint8_t *)(there + 1), net);
		set(head, look(head) + record_bytes(r.len));
		if (!shm->lent)
			atomic_store_explicit(&ring->head, look(head), memory_order_release);
		return pkt;
	}
	return NULL;
}

static bool has_come(struct link_shm *shm, unsigned from)
{
	return next_record(shm, from) || is_new(shm, from);
}

/* The first sender from `from` on, cyclically, that has sent something; FABRIC_SLOTS: none. */
static unsigned next_sender(struct link_shm *shm, unsigned from)
{
	uint64_t before = (1ull << from % 64) - 1;

	for (unsigned i = 0; i <= SENDER_WORDS; i++) {
		unsigned word = (from / 64 + i) % SENDER_WORDS;
		uint64_t senders = look(&shm->own->senders[word]);

		if (i == 0)
			senders &= ~before;
		else if (i == SENDER_WORDS)
			senders &= before;
		for (; senders; senders &= senders - 1) {
			unsigned slot = word * 64 + (unsigned)__builtin_ctzll(senders);

			if (has_come(shm, slot))
				return slot;
		}
	}
	return FABRIC_SLOTS;
}

/* Take packets of the senders in turn. */
static struct packet *take_next(struct nic_link *nic, struct rnic_net *net)
{
	struct link_shm *shm = (struct link_shm *)nic;
	struct packet *pkt = NULL;
	unsigned from;

	give_back(shm);
	assert(!shm->lent && shm->last < FABRIC_SLOTS);
	assert(shm->in_a_row <= IN_A_ROW);
	if (shm->in_a_row && next_record(shm, shm->last)) {
		shm->in_a_row--;
		return take_record(shm, shm->last, net);
	}
	/* A new sender may have sent nothing yet: then go on to the others. */
	for (unsigned n = 0; n < FABRIC_SLOTS && !pkt; n++) {
		from = next_sender(shm, (shm->last + 1) % FABRIC_SLOTS);
		if (from == FABRIC_SLOTS)
			return NULL;
		shm->last = from;
		shm->in_a_row = IN_A_ROW;
		pkt = take_record(shm, from, net);
	}
	shm->nic.sender = shm->last;
	return pkt;
}

static void sleep_until_mail(struct nic_link *nic, uint64_t ns)
{
	struct link_shm *shm = (struct link_shm *)nic;
	struct timespec most = {.tv_sec = (time_t)(ns / NS_PER_S),
				.tv_nsec = (long)(ns % NS_PER_S)};

	atomic_store(&shm->own->sleeping, ASLEEP);
	if (!atomic_load(&shm->woken) && next_sender(shm, 0) == FABRIC_SLOTS)
		syscall(SYS_futex, &shm->own->sleeping, FUTEX_WAIT, ASLEEP,
			ns == UINT64_MAX ? NULL : &most, NULL, 0);
	atomic_store(&shm->own->sleeping, 0);
	atomic_store(&shm->woken, false);
}

/* The thread may be about to sleep, and not have set its flag yet. */
static void wake(struct nic_link *nic)
{
	struct link_shm *shm = (struct link_shm *)nic;

	atomic_store(&shm->woken, true);
	atomic_thread_fence(memory_order_seq_cst);
	wake_up(shm->own);
}

static void leave(struct nic_link *nic)
{
	struct link_shm *shm = (struct link_shm *)nic;
	char name[16];

	snprintf(name, sizeof(name), "%u", shm->slot);
	shm->own->dead = 1;
	fabric_dir_remove(shm->directory, name);
	close(shm->fd);
	fabric_dir_sweep(shm->directory, false);
}

/* Make the directory and take a slot in it. The last process that leaves a fabric removes the
 * directory, so this is tried again. */
static int enter(struct link_shm *shm)
{
	int rc = -ENOENT;

	for (unsigned n = 0; n < ENTER_TRIES && rc == -ENOENT; n++) {
		rc = fabric_dir_make(shm->directory);
		if (!rc)
			rc = -EAGAIN;
		for (unsigned slot = 1; slot < FABRIC_SLOTS && rc == -EAGAIN; slot++)
			rc = take_slot(shm, slot);
	}
	return rc == -EAGAIN ? -EUSERS : rc;
}

/* Not the numbers of the slot's last process: its peers may not know yet that it has ended. */
static void choose_numbers(struct link_shm *shm)
{
	shm->nic.qpn_first = (shm->slot << SHM_QPN_SHIFT) + QPN_FIRST +
			     random_secret() % QPN_SPREAD;
	shm->nic.qpn_limit = (shm->slot + 1) << SHM_QPN_SHIFT;
	if (shm->nic.qpn_limit > QPN_LIMIT)
		shm->nic.qpn_limit = QPN_LIMIT;
	assert(shm->nic.qpn_first < shm->nic.qpn_limit);
	/* By these a sender finds the slot. */
	assert(shm->nic.qpn_first >> SHM_QPN_SHIFT == shm->slot &&
	       (shm->nic.qpn_limit - 1) >> SHM_QPN_SHIFT == shm->slot);
}

int link_shm_open(struct nic_link **out, const char *directory)
{
	struct link_shm *shm;

	if (strlen(directory) >= sizeof(shm->directory))
		return -ENAMETOOLONG;
	shm = calloc(1, sizeof(*shm));
	if (!shm)
		return -ENOMEM;
	shm->nic = (struct nic_link){
		.link = {.send = hand_over,
			 .resolve = resolve,
			 .gid = gid_of,
			 .reserve = reserve,
			 .ready = has_room,
			 .silence_ns = LINK_SILENCE_NS,
			 .offload_bytes = MAX_BYTES},
		.address = INADDR_LOOPBACK,
		.mtu = MTU,
		.by_slot = true,
		.take = take_next,
		.sleep = sleep_until_mail,
		.wake = wake,
		.leave = leave,
	};
	strcpy(shm->directory, directory);
	fabric_dir_sweep(directory, false);
	int rc = enter(shm);
	if (rc) {
		free(shm);
		return rc;
	}
	choose_numbers(shm);
	*out = &shm->nic;
	return 0;
}
