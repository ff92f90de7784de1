/* SPDX-License-Identifier: BSD-3-Clause */
/* Much at once: random requests, traffic in both directions, many connections. */
#include "scenarios/verbs/programs.h"

/* Parts of a buffer, so that no two requests that may overtake each other meet. */
#define FROM	0u	/* data to send, never written to */
#define WRITTEN 65536u	/* WRITEs go there */
#define RECEIVE 131072u /* receive requests */
#define FETCHED 196608u /* READs and atomics bring data there */
#define COUNTER 262136u /* 8 bytes */
#define PART	65536u
#define LONGEST 6000u

static uint32_t rnd(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(*state >> 8) * below) >> 24);
}

static uint64_t hash(uint64_t h, const void *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const volatile uint8_t *)at)[i]) * 0x100000001b3u;
	return h;
}

/* The next request, number `id`; its completion is waited for before a following one reuses its
 * place. */
static struct ibv_send_wr next(struct end *e, const struct end *peer, uint32_t *seed, unsigned id)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_READ,		  IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD};
	enum ibv_wr_opcode opcode = opcodes[rnd(seed, 6)];
	bool back = opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint32_t len = rnd(seed, 4) ? rnd(seed, LONGEST) : rnd(seed, 64);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		len = 8;
	size_t off = back ? FETCHED + (id % 8) * LONGEST : FROM + rnd(seed, PART - LONGEST);
	size_t remote = opcode == IBV_WR_RDMA_READ ? FROM + rnd(seed, PART - LONGEST)
						   : WRITTEN + rnd(seed, PART - LONGEST);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		remote = COUNTER;
	struct ibv_send_wr wr = lab_wr(e, opcode, id, off, len, peer, remote);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = id + 1;
	if (opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr.imm_data = htobe32(id);
	if (!rnd(seed, 5))
		wr.send_flags |= IBV_SEND_FENCE;
	if (!back && len && len <= e->lab->opt.inline_bytes)
		wr.send_flags |= IBV_SEND_INLINE;
	return wr;
}

static bool receives(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM ||
	       wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* All completions of a queue so far, as one number; false: one is in error, or missing. */
static bool collect(struct end *e, struct ibv_cq *cq, unsigned n, uint64_t *h)
{
	struct ibv_wc wc;
	for (; n; n--) {
		if (!lab_take(e, cq, &wc)) {
			lab_say(e->lab, "%s: %u completions are missing", e->name, n);
			return false;
		}
		if (wc.status != IBV_WC_SUCCESS) {
			lab_say(e->lab, "%s: request %lu failed with %d", e->name,
				(unsigned long)wc.wr_id, (int)wc.status);
			return false;
		}
		*h = hash(*h, &wc.wr_id, sizeof(wc.wr_id));
		*h = hash(*h, &wc.opcode, sizeof(wc.opcode));
		if (wc.opcode & IBV_WC_RECV)
			*h = hash(*h, &wc.byte_len, sizeof(wc.byte_len));
		if (wc.opcode & IBV_WC_RECV && wc.wc_flags & IBV_WC_WITH_IMM)
			*h = hash(*h, &wc.imm_data, sizeof(wc.imm_data));
	}
	return true;
}

/* Rounds of up to eight requests under way, from both ends. */
static void mix(struct lab *lab, uint32_t seed)
{
	struct end *end[2] = {&lab->a, &lab->b};
	uint64_t h = 1;
	lab->opt.mr_access = LAB_ALL;
	lab_connect(lab);
	lab_fill(lab->a.buf, PART, seed);
	lab_fill(lab->b.buf, PART, seed + 1);
	for (unsigned round = 0; round < 25; round++)
		for (unsigned s = 0; s < 2; s++) {
			struct end *e = end[s], *peer = end[1 - s];
			unsigned n = 1 + rnd(&seed, 8), expected = 0;
			for (unsigned i = 0; i < 8; i++)
				if (!round || i < e->spent)
					lab_recv(peer, i, RECEIVE + LONGEST * i, LONGEST);
			for (unsigned i = 0; i < n; i++) {
				struct ibv_send_wr wr = next(e, peer, &seed, 100 * round + i);
				expected += receives(&wr);
				lab_post_quietly(e, &wr);
			}
			e->spent = expected;
			if (!collect(e, e->scq, n, &h) || !collect(peer, peer->rcq, expected, &h))
				return;
		}
	lab_settle(lab);
	lab_say(lab, "completions: %016lx", (unsigned long)h);
	lab_say(lab, "counters: %lu, %lu", (unsigned long)lab_word(&lab->a, COUNTER),
		(unsigned long)lab_word(&lab->b, COUNTER));
	lab_bytes(&lab->a, 0, LAB_BUF);
	lab_bytes(&lab->b, 0, LAB_BUF);
}

static void mix_1(struct lab *lab)
{
	mix(lab, 1);
}
static void mix_2(struct lab *lab)
{
	mix(lab, 22);
}
static void mix_3(struct lab *lab)
{
	mix(lab, 333);
}

/* Both ends send to each other at the same time. */
static void both_ways(struct lab *lab)
{
	struct end *end[2] = {&lab->a, &lab->b};
	uint64_t h[2] = {1, 1};
	bool good = true;
	lab_connect(lab);
	lab_fill(lab->a.buf, PART, 5);
	lab_fill(lab->b.buf, PART, 6);
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < 8; i++)
			for (unsigned s = 0; s < 2; s++)
				lab_recv(end[s], i, RECEIVE + 4096 * i, 4096);
		for (unsigned i = 0; i < 8; i++)
			for (unsigned s = 0; s < 2; s++) {
				struct ibv_send_wr wr = lab_wr(
					end[s], i % 2 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, i,
					100 * i + round, 500 * i + s, end[1 - s],
					WRITTEN + 4096 * i);
				lab_post_quietly(end[s], &wr);
			}
		for (unsigned s = 0; s < 2; s++)
			good = good && collect(end[s], end[s]->scq, 8, &h[s]) &&
			       collect(end[s], end[s]->rcq, 8, &h[s]);
	}
	lab_say(lab, "%s, %016lx, %016lx", good ? "all came" : "missing, or in error",
		(unsigned long)h[0], (unsigned long)h[1]);
	lab_bytes(&lab->a, WRITTEN, 2 * PART);
	lab_bytes(&lab->b, WRITTEN, 2 * PART);
}

#define CONNECTIONS 8

/* Eight connections, each with its own part of the target. */
static void many(struct lab *lab)
{
	static const char *const names[CONNECTIONS] = {"c0", "c1", "c2", "c3",
						       "c4", "c5", "c6", "c7"};
	struct end *client = (struct end *)lab_memory(lab, CONNECTIONS * sizeof(*client));
	struct end *server = (struct end *)lab_memory(lab, CONNECTIONS * sizeof(*server));
	unsigned done = 0;
	struct ibv_wc wc;
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		lab_end(lab, &client[i], names[i], 1);
		lab_end(lab, &server[i], "server", 0);
		lab_to_rts(&client[i], &server[i]);
		lab_to_rts(&server[i], &client[i]);
		lab_fill(client[i].buf, PART, 10 + i);
	}
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < CONNECTIONS; i++) {
			struct ibv_send_wr wr = lab_wr(&client[i], IBV_WR_RDMA_WRITE, i,
						       777 * round, 3000, &server[i], 4096 * round);
			lab_post_quietly(&client[i], &wr);
		}
		for (unsigned i = 0; i < CONNECTIONS; i++)
			done += lab_take(&client[i], client[i].scq, &wc) &&
				wc.status == IBV_WC_SUCCESS;
	}
	lab_say(lab, "%u done", done);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		lab_bytes(&server[i], 0, 4 * 4096);
}

const struct verbs_program verbs_mix[] = {
	BOTH_APIS("mix-1", mix_1, "random requests of both ends, up to eight under way"),
	BOTH_APIS("mix-2", mix_2, "others"),
	BOTH_APIS("mix-3", mix_3, "others"),
	{"both-ways", "both ends send to each other at the same time", both_ways, 0},
	{"many", "eight connections at once", many, 0},
	{0},
};
