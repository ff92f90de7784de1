/* SPDX-License-Identifier: BSD-3-Clause */
/* A link's filter: faults by rule, counters, captured packets, both ways. See link_tap.h. */
#include "core/provider/link/link_tap.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/provider/base/faults.h"
#include "core/provider/link/link_shm.h"
#include "core/provider/base/stats_page.h"
#include "core/provider/link/pcap.h"
#include "core/rnic/count.h"
#include "core/rnic/objects/qp.h"

#define HELD_NS 10000000 /* a reordered packet that no other has passed is delivered then */

struct link_tap {
	struct nic_link nic;
	struct nic_link *inner;
	struct engine *engine;
	struct rnic_net *net;
	struct stats_page *page;
	int page_fd, pcap;
	uint32_t generation; /* of the rules that are in force */
	bool shm;
	char page_path[PATH_MAX];
	struct late *late;	  /* delayed packets, the newest first */
	struct late *held[2];	  /* by direction, those that other packets have to pass */
	struct packet *segmented; /* segmentation offload: a packet that arrived for several;
				     segments_taken of them are delivered */
	uint32_t segments_taken;
	struct faults faults;
};

/* A delayed packet. Its timer frees it. */
struct late {
	struct late *newer, *older;
	struct late *next; /* held back */
	struct link_tap *tap;
	struct packet *pkt; /* NULL: delivered */
	enum fault_direction direction;
	unsigned left; /* packets that have still to pass it; 0: only its timer delivers it */
};

static struct link_tap *to_tap(struct link *link)
{
	return (struct link_tap *)link;
}

static struct link_tap *of_nic(struct nic_link *nic)
{
	return (struct link_tap *)nic;
}

/* The IPv4 address of a GID that has one. */
static uint32_t address_in(const union ibv_gid *gid)
{
	return (uint32_t)gid->raw[12] << 24 | (uint32_t)gid->raw[13] << 16 |
	       (uint32_t)gid->raw[14] << 8 | gid->raw[15];
}

static uint32_t address_of(const struct link_tap *tap, uint32_t number)
{
	struct link *link = &tap->inner->link;
	union ibv_gid gid;

	link->gid(link, number, &gid);
	return address_in(&gid);
}

/* The other end's address; on shm, where all have the same, its slot in the fabric. */
static uint32_t peer_of(const struct link_tap *tap, enum fault_direction direction,
			const struct packet *pkt)
{
	if (tap->shm && direction == FAULT_OUT && pkt->dest_qpn == QPN_MANAGEMENT)
		return pkt->peer;
	if (tap->shm)
		return direction == FAULT_OUT ? pkt->dest_qpn >> SHM_QPN_SHIFT : tap->inner->sender;
	return address_of(tap, direction == FAULT_OUT ? pkt->peer : pkt->from);
}

/* --- the wire's bytes --- */

/* On shm each process is given an address: 127.0.0.SLOT. */
static struct wire_ends ends_of(const struct link_tap *tap, enum fault_direction direction,
				const struct packet *pkt)
{
	uint32_t own = tap->nic.address, peer = peer_of(tap, direction, pkt);

	if (tap->shm) {
		own = (127u << 24) | (tap->nic.qpn_first >> SHM_QPN_SHIFT);
		peer |= 127u << 24;
	}
	return (struct wire_ends){.src = direction == FAULT_OUT ? own : peer,
				  .dst = direction == FAULT_OUT ? peer : own,
				  .sport = ROCE_PORT,
				  .dport = ROCE_PORT,
				  .ttl = 64};
}

static void record(struct link_tap *tap, enum fault_direction direction, const struct packet *pkt)
{
	struct wire_ends ends = ends_of(tap, direction, pkt);
	uint8_t bytes[WIRE_PACKET];
	int len = wire_encode(pkt, &ends, bytes, sizeof(bytes));

	if (len > 0)
		pcap_write(tap->pcap, &ends, bytes, (size_t)len);
}

enum rnic_count link_refusal(int error)
{
	if (error == -EBADMSG)
		return COUNT_bad_icrc;
	if (error == -EPROTO)
		return COUNT_bad_opcode;
	return error == -EKEYREJECTED || error == -EPROTONOSUPPORT ? COUNT_bad_partition
								   : COUNT_bad_length;
}

/* Flip a bit of the packet. The packet that a receiver decodes, NULL: none. Takes the packet. */
static struct packet *receive_corrupted(struct link_tap *tap, enum fault_direction direction,
					struct packet *pkt, uint32_t bit)
{
	struct wire_ends ends = ends_of(tap, direction, pkt);
	struct packet *got = NULL;
	uint8_t bytes[WIRE_PACKET];
	int len = wire_encode(pkt, &ends, bytes, sizeof(bytes)), rc = -EBADMSG;

	if (len > 0) {
		bit %= (uint32_t)len * 8;
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		rc = wire_decode(tap->net, bytes, (size_t)len, &ends, true, &got);
	}
	if (rc) {
		link_count(tap->page->count, link_refusal(rc));
		got = NULL;
	} else {
		got->peer = pkt->peer;
		got->from = pkt->from;
		got->src_qpn = pkt->src_qpn;
	}
	packet_put(tap->net, pkt);
	return got;
}

/* On a wire the receiver finds it. Shared memory has no checksum, so it is checked here. */
static struct packet *corrupt(struct link_tap *tap, enum fault_direction direction,
			      struct packet *pkt, const struct fault_fate *fate)
{
	bool leaves_now = direction == FAULT_OUT && !fate->hold && !fate->delay_ns;

	tap->page->count[COUNT_fault_corrupted]++;
	if (tap->shm || !leaves_now)
		return receive_corrupted(tap, direction, pkt, fate->bit);
	tap->inner->flip = fate->bit % (8 * packet_wire_bytes(pkt)) + 1;
	return pkt;
}

/* --- what passes --- */

static void count_passed(struct link_tap *tap, enum rnic_count packets, enum rnic_count bytes,
			 const struct packet *pkt)
{
	tap->page->count[packets] += pkt->more + 1u;
	tap->page->count[bytes] += pkt->opcode < OP_CODES ? packet_wire_bytes(pkt)
							  : HEADER_BYTES + pkt->len;
}

static void pass(struct link_tap *tap, enum fault_direction direction, struct packet *pkt)
{
	if (direction == FAULT_IN) {
		rnic_take(tap->net, qp_find(tap->net, pkt->dest_qpn), pkt);
		return;
	}
	count_passed(tap, COUNT_packets_sent, COUNT_bytes_sent, pkt);
	if (tap->pcap >= 0)
		record(tap, direction, pkt);
	tap->inner->link.send(&tap->inner->link, 0, pkt);
}

static void fire(void *arg)
{
	struct late *late = arg, **at;

	assert(late == (late->newer ? late->newer->older : late->tap->late));
	assert(!late->older || late->older->newer == late);
	*(late->newer ? &late->newer->older : &late->tap->late) = late->older;
	if (late->older)
		late->older->newer = late->newer;
	for (at = &late->tap->held[late->direction]; *at; at = &(*at)->next)
		if (*at == late) {
			*at = late->next;
			break;
		}
	if (late->pkt)
		pass(late->tap, late->direction, late->pkt);
	free(late);
}

/* Takes the packet, and copies it: its payload may lie where the next packet's will. */
static struct late *defer(struct link_tap *tap, enum fault_direction direction, struct packet *pkt,
			  uint64_t ns)
{
	struct late *late = calloc(1, sizeof(*late));
	struct packet *copy = packet_copy(tap->net, pkt);

	packet_put(tap->net, pkt);
	if (!late) {
		packet_put(tap->net, copy); /* lost */
		return NULL;
	}
	assert(!tap->late || !tap->late->newer); /* it is the newest */
	*late = (struct late){.tap = tap, .pkt = copy, .direction = direction, .older = tap->late};
	if (tap->late)
		tap->late->newer = late;
	tap->late = late;
	engine_later(tap->engine, ns, fire, late);
	return late;
}

static void hold(struct link_tap *tap, enum fault_direction direction, struct packet *pkt,
		 unsigned packets)
{
	struct late *late = defer(tap, direction, pkt, HELD_NS), **at = &tap->held[direction];

	if (!late)
		return;
	assert(packets && late->pkt);
	late->left = packets;
	while (*at)
		at = &(*at)->next;
	*at = late;
}

/* A packet has passed the ones that were held back. */
static void passed(struct link_tap *tap, enum fault_direction direction)
{
	struct late **at = &tap->held[direction], *late;

	while ((late = *at)) {
		/* What is held back was not delivered, and still has to be passed. */
		assert(late->pkt && late->direction == direction);
		assert(late->left);
		if (--late->left) {
			at = &late->next;
			continue;
		}
		*at = late->next;
		if (direction == FAULT_OUT)
			pass(tap, direction, late->pkt);
		else /* after the packet that passes it */
			defer(tap, direction, late->pkt, 0);
		late->pkt = NULL;
	}
}

/* Apply the rules. The packet, if it is to be delivered now, else NULL. Takes the packet. */
static struct packet *judge(struct link_tap *tap, enum fault_direction direction,
			    struct packet *pkt)
{
	uint64_t *count = tap->page->count;
	struct fault_fate fate = faults_judge(&tap->faults, direction, pkt,
					      peer_of(tap, direction, pkt),
					      engine_now(tap->engine));

	if (fate.lost) {
		count[COUNT_fault_lost]++;
		packet_put(tap->net, pkt);
		return NULL;
	}
	if (fate.corrupt)
		pkt = corrupt(tap, direction, pkt, &fate);
	if (pkt && fate.tear)
		pkt->torn = fate.tear_at + 1;
	for (unsigned i = 0; pkt && i < fate.copies; i++) {
		count[COUNT_fault_duplicated]++;
		defer(tap, direction, packet_copy(tap->net, pkt), fate.delay_ns);
	}
	if (!pkt)
		return NULL;
	if (fate.hold) {
		count[COUNT_fault_held]++;
		hold(tap, direction, pkt, fate.hold);
		return NULL;
	}
	if (fate.delay_ns) {
		count[COUNT_fault_delayed]++;
		defer(tap, direction, pkt, fate.delay_ns);
		return NULL;
	}
	return pkt;
}

/* Is each packet inspected? Then there is no segmentation offload. */
static bool looks(const struct link_tap *tap)
{
	return tap->faults.rules || tap->pcap >= 0;
}

static void set_segmentation(struct link_tap *tap)
{
	tap->nic.link.offload_bytes = looks(tap) ? 0 : tap->inner->link.offload_bytes;
}

/* Once set it stays: losses may have to be repaired after the rules are gone. */
static bool may_lose(const struct link_tap *tap)
{
	return tap->inner->link.lossy || tap->faults.rules;
}

/* Read the rules again if they have changed. */
static void refresh(struct link_tap *tap)
{
	char text[CONFIG_FAULTS_BYTES], why[200];
	uint64_t seed;

	if (atomic_load_explicit(&tap->page->generation, memory_order_relaxed) == tap->generation ||
	    !stats_page_rules(tap->page, &tap->generation, text, &seed))
		return;
	/* `tidemark fault` has checked the rules. Rules that are invalid all the same are
	 * ignored. */
	if (faults_parse(&tap->faults, text, seed, why, sizeof(why)))
		tap->faults.rules = 0;
	memset(tap->page->hits, 0, sizeof(tap->page->hits));
	set_segmentation(tap);
	if (may_lose(tap) && !tap->nic.link.lossy)
		rnic_becomes_lossy(tap->net);
}

static void show_hits(struct link_tap *tap)
{
	for (unsigned i = 0; i < tap->faults.rules; i++)
		for (unsigned d = 0; d < 2; d++)
			tap->page->hits[i][d] = tap->faults.rule[i].hits[d];
}

static void send(struct link *link, unsigned from, struct packet *pkt)
{
	struct link_tap *tap = to_tap(link);

	if (!pkt->more) /* with segmentation offload it was built for the current rules */
		refresh(tap);
	if (tap->faults.rules) {
		pkt = judge(tap, FAULT_OUT, pkt);
		show_hits(tap);
	}
	if (!pkt)
		return;
	pass(tap, FAULT_OUT, pkt);
	if (tap->held[FAULT_OUT])
		passed(tap, FAULT_OUT);
}

/* The next segment of the packet that arrived. */
static struct packet *next_segment(struct link_tap *tap, struct rnic_net *net)
{
	struct packet *run = tap->segmented;

	assert(run && run->more);
	assert(tap->segments_taken <= run->more);
	struct packet *pkt = packet_segment(net, run, tap->segments_taken++);
	if (pkt && tap->segments_taken <= run->more)
		return pkt;
	tap->segmented = NULL;
	if (!pkt)
		return run; /* of a wrong length, which the transport reports */
	packet_put(net, run);
	return pkt;
}

static struct packet *take_one(struct link_tap *tap, struct rnic_net *net)
{
	if (tap->segmented)
		return next_segment(tap, net);
	struct packet *pkt = tap->inner->take(tap->inner, net);
	if (!pkt)
		return pkt;
	count_passed(tap, COUNT_packets_received, COUNT_bytes_received, pkt);
	if (!pkt->more || !looks(tap))
		return pkt;
	tap->segmented = pkt;
	tap->segments_taken = 0;
	return next_segment(tap, net);
}

static struct packet *take_packet(struct nic_link *nic, struct rnic_net *net)
{
	struct link_tap *tap = of_nic(nic);
	struct packet *pkt;

	refresh(tap);
	while ((pkt = take_one(tap, net))) {
		if (tap->pcap >= 0)
			record(tap, FAULT_IN, pkt);
		if (tap->faults.rules) {
			pkt = judge(tap, FAULT_IN, pkt);
			show_hits(tap);
		}
		if (pkt && tap->held[FAULT_IN])
			passed(tap, FAULT_IN);
		if (pkt)
			return pkt;
	}
	return NULL;
}

/* --- calls that are forwarded --- */

static int resolve(struct link *link, const union ibv_gid *gid)
{
	struct link *inner = &to_tap(link)->inner->link;

	return inner->resolve(inner, gid);
}

static void gid_of(struct link *link, uint32_t number, union ibv_gid *gid)
{
	struct link *inner = &to_tap(link)->inner->link;

	inner->gid(inner, number, gid);
}

static bool ready(struct link *link, uint32_t peer, uint32_t dest_qpn, uint64_t *taken)
{
	struct link *inner = &to_tap(link)->inner->link;

	refresh(to_tap(link));
	return !inner->ready || inner->ready(inner, peer, dest_qpn, taken);
}

/* A packet that may be delayed must not lie where the next packets are written. */
static uint8_t *reserve(struct link *link, uint32_t dest_qpn, uint32_t len)
{
	struct link_tap *tap = to_tap(link);
	struct link *inner = &tap->inner->link;

	return tap->faults.rules || !inner->reserve ? NULL : inner->reserve(inner, dest_qpn, len);
}

static void sleep_until_mail(struct nic_link *nic, uint64_t ns)
{
	struct nic_link *inner = of_nic(nic)->inner;

	inner->sleep(inner, ns);
}

static void wake(struct nic_link *nic)
{
	struct nic_link *inner = of_nic(nic)->inner;

	inner->wake(inner);
}

static void forked(struct nic_link *nic)
{
	struct nic_link *inner = of_nic(nic)->inner;

	if (inner->forked)
		inner->forked(inner);
}

static void leave(struct nic_link *nic)
{
	struct link_tap *tap = of_nic(nic);
	struct late *late = tap->late;

	/* Delayed packets are sent now. */
	while (late && late->older)
		late = late->older;
	for (; late; late = late->newer)
		if (late->pkt && late->direction == FAULT_OUT)
			pass(tap, FAULT_OUT, late->pkt);
	unlink(tap->page_path);
	close(tap->page_fd);
	tap->inner->leave(tap->inner);
}

/* --- */

static int open_files(struct link_tap *tap, const struct nic_config *config, char *line,
		      size_t size)
{
	if (config->pcap[0])
		tap->pcap = pcap_open(config->pcap);
	if (config->pcap[0] && tap->pcap < 0) {
		snprintf(line, size, "%s=%s: %s", nic_settings[SETTING_PCAP].variable, config->pcap,
			 tap->pcap == -EINVAL
				 ? "expected no file, or one that was written so before"
				 : strerror(-tap->pcap));
		return tap->pcap;
	}
	int rc = stats_page_make(&tap->page, &tap->page_fd, tap->page_path, sizeof(tap->page_path),
				 config);
	if (!rc)
		return 0;
	snprintf(line, size, "no stats page in the fabric %s: %s", config->fabric, strerror(-rc));
	if (tap->pcap >= 0)
		close(tap->pcap);
	return rc;
}

int link_tap_open(struct nic_link **out, struct nic_link *inner, struct engine *engine,
		  const struct nic_config *config, char *line, size_t size)
{
	struct link_tap *tap = calloc(1, sizeof(*tap));

	if (!tap)
		return -ENOMEM;
	tap->nic = (struct nic_link){
		.link = {.send = send,
			 .resolve = resolve,
			 .gid = gid_of,
			 .ready = ready,
			 .reserve = reserve,
			 .silence_ns = inner->link.silence_ns,
			 .burst = inner->link.burst},
		.address = inner->address,
		.mtu = inner->mtu,
		.by_slot = inner->by_slot,
		.qpn_first = inner->qpn_first,
		.qpn_limit = inner->qpn_limit,
		.take = take_packet,
		.sleep = sleep_until_mail,
		.wake = wake,
		.leave = leave,
		.forked = forked,
	};
	tap->inner = inner;
	tap->engine = engine;
	tap->shm = config->link == LINK_SHM;
	tap->pcap = -1;
	int rc = faults_parse(&tap->faults, config->faults, config->seed, line, size);
	if (!rc)
		rc = open_files(tap, config, line, size);
	if (rc) {
		free(tap);
		return rc;
	}
	tap->page->address = inner->address;
	tap->page->qpn_first = inner->qpn_first;
	inner->count = tap->page->count;
	set_segmentation(tap);
	tap->nic.link.lossy = may_lose(tap);
	*out = &tap->nic;
	return 0;
}

/* As if the power had failed: persistent memory of this process keeps its present content. */
static void die_torn(const struct packet *pkt)
{
	char line[120];
	int n = snprintf(line, sizeof(line),
			 "tidemark: a packet was torn: %u bytes of it are in memory; the process "
			 "is killed\n",
			 pkt->torn - 1);

	if (write(STDERR_FILENO, line, (size_t)n) != n || kill(getpid(), SIGKILL))
		abort();
	pause();
}

void link_tap_net(struct nic_link *nic, struct rnic_net *net)
{
	struct link_tap *tap = of_nic(nic);

	tap->net = net;
	net->count = tap->page->count;
	net->torn = die_torn;
}
