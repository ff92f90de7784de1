/* SPDX-License-Identifier: BSD-3-Clause */
/* In which order things happen: what a READ, an atomic and a receiver see of what was posted
 * before. */
#include "scenarios/verbs/programs.h"

#define THERE 8192u

/* As lab_bytes(), but at once. */
static void seen(struct end *e, const char *when, size_t off, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ *(volatile uint8_t *)&e->buf[off + i]) * 0x100000001b3u;
	lab_say(e->lab, "%s: %s: %zu bytes with hash %016lx", e->name, when, len,
		(unsigned long)hash);
}

static void write_then_read(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, THERE, 1);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 5000, &lab->b, THERE);
	lab_op(&lab->a, IBV_WR_RDMA_READ, 2, THERE, 5000, &lab->b, THERE);
	lab_sent(&lab->a, 2);
	seen(&lab->a, "read", THERE, 5000);
	seen(&lab->a, "written", 0, 5000);
}

static void write_then_send(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, THERE, 1);
	lab_recv(&lab->b, 9, 0, 64);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 5000, &lab->b, THERE);
	lab_op(&lab->a, IBV_WR_SEND, 2, 0, 8, &lab->b, 0);
	lab_received(&lab->b, 1);
	seen(&lab->b, "when the SEND is received", THERE, 5000);
	lab_sent(&lab->a, 2);
}

static void write_imm_then_look(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, THERE, 1);
	lab_recv(&lab->b, 9, 0, 64);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 5000, &lab->b, THERE);
	lab_received(&lab->b, 1);
	seen(&lab->b, "when it is received", THERE, 5000);
	lab_sent(&lab->a, 1);
}

static void write_then_add(struct lab *lab)
{
	lab_connect(lab);
	lab_set_word(&lab->a, 0, 1000);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 8, &lab->b, THERE);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 64, 8, &lab->b,
				       THERE);
	wr.wr.atomic.compare_add = 1;
	lab_post(&lab->a, &wr);
	lab_op(&lab->a, IBV_WR_RDMA_READ, 3, 128, 8, &lab->b, THERE);
	lab_sent(&lab->a, 3);
	lab_say(lab, "fetched %lu, read %lu", lab_word(&lab->a, 64), lab_word(&lab->a, 128));
}

/* After a READ, a fenced WRITE waits until the READ has its data. */
static void fence(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, 65536, 1);
	lab_fill(lab->b.buf, 65536, 2);
	lab_op(&lab->a, IBV_WR_RDMA_READ, 1, 65536, 60000, &lab->b, 0);
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, 2, 0, 60000, &lab->b, 0);
	wr.send_flags |= IBV_SEND_FENCE;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 2);
	seen(&lab->a, "read", 65536, 60000);
	lab_bytes(&lab->b, 0, 60000);
	/* What comes back by a READ is sent on by a fenced SEND. */
	lab_recv(&lab->b, 9, 131072, 4096);
	lab_op(&lab->a, IBV_WR_RDMA_READ, 3, 131072, 3000, &lab->b, 5);
	wr = lab_wr(&lab->a, IBV_WR_SEND, 4, 131072, 3000, &lab->b, 0);
	wr.send_flags |= IBV_SEND_FENCE;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 2);
	lab_received(&lab->b, 1);
	lab_bytes(&lab->b, 131072, 3000);
}

/* Completions come in the order of posting, whatever takes how long. */
static void completions(struct lab *lab)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
						     IBV_WR_SEND, IBV_WR_ATOMIC_CMP_AND_SWP};
	lab_connect(lab);
	for (unsigned i = 0; i < 3; i++)
		lab_recv(&lab->b, 100 + i, THERE, 4096);
	for (unsigned i = 0; i < 12; i++) {
		uint32_t len = i % 4 == 3 ? 8 : i % 4 == 0 ? 20000 : 10;
		struct ibv_send_wr wr = lab_wr(&lab->a, opcodes[i % 4], i, 1024, len, &lab->b, 64);
		if (i % 5 == 1)
			wr.send_flags = 0;
		lab_post(&lab->a, &wr);
	}
	lab_sent(&lab->a, 9);
	lab_received(&lab->b, 3);
	lab_no_more(&lab->a);
}

/* Receive requests are used in the order of posting, by SENDs and by WRITEs with immediate data. */
static void receives(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, 4096, 1);
	for (unsigned i = 0; i < 4; i++)
		lab_recv(&lab->b, 100 + i, THERE + 1000 * i, 1000);
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_send_wr wr = lab_wr(&lab->a,
					       i == 1 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, i,
					       100 * i, 200 + i, &lab->b, 64);
		wr.imm_data = htobe32(i);
		lab_post(&lab->a, &wr);
	}
	lab_received(&lab->b, 4);
	lab_sent(&lab->a, 4);
	lab_bytes(&lab->b, THERE, 4000);
}

/* Two WRITEs to one place: the second one's bytes stay. */
static void overlapping(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, 65536, 1);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 20000, &lab->b, 0);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 2, 30000, 5000, &lab->b, 3000);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 3, 40000, 10, &lab->b, 2995);
	lab_sent(&lab->a, 3);
	lab_bytes(&lab->b, 0, 20000);
}

/* From another end, `c`, to the memory of lab->b. */
static void second_connection(struct lab *lab, struct end *c)
{
	struct end d;

	lab_end(lab, c, "c", 1);
	lab_end(lab, &d, "d", 0);
	d.pd = lab->b.pd;
	ibv_destroy_qp(d.qp);
	d.qp = lab_qp(&d);
	if (!d.qp)
		lab_give_up(lab);
	lab_to_rts(c, &d);
	lab_to_rts(&d, c);
}

/* Atomics of two connections on one word. */
static void counters(struct lab *lab)
{
	struct end c;
	struct ibv_wc wc;
	unsigned done = 0;
	lab_connect(lab);
	second_connection(lab, &c);
	for (unsigned i = 0; i < 12; i++)
		for (unsigned k = 0; k < 2; k++) {
			struct end *e = k ? &c : &lab->a;
			struct ibv_send_wr wr = lab_wr(e, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 8 * i, 8,
						       &lab->b, THERE);
			wr.wr.atomic.compare_add = k ? 1000 : 1;
			lab_post_quietly(e, &wr);
		}
	for (unsigned i = 0; i < 12; i++) {
		done += lab_take(&lab->a, lab->a.scq, &wc) && wc.status == IBV_WC_SUCCESS;
		done += lab_take(&c, c.scq, &wc) && wc.status == IBV_WC_SUCCESS;
	}
	lab_say(lab, "%u atomics done, the word is %lu", done, lab_word(&lab->b, THERE));
}

/* Two connections want to be the one that swaps. */
static void one_winner(struct lab *lab)
{
	struct end c;
	struct ibv_wc wc;
	lab_connect(lab);
	second_connection(lab, &c);
	for (unsigned k = 0; k < 2; k++) {
		struct end *e = k ? &c : &lab->a;
		struct ibv_send_wr wr = lab_wr(e, IBV_WR_ATOMIC_CMP_AND_SWP, k, 0, 8, &lab->b,
					       THERE);
		wr.wr.atomic.swap = 5;
		lab_post(e, &wr);
	}
	lab_take(&lab->a, lab->a.scq, &wc);
	lab_take(&c, c.scq, &wc);
	lab_say(lab, "%u of 2 found 0, the word is %lu", !lab_word(&lab->a, 0) + !lab_word(&c, 0),
		lab_word(&lab->b, THERE));
}

const struct verbs_program verbs_order[] = {
	BOTH_APIS("write-read", write_then_read, "a READ sees the WRITE that was posted before it"),
	BOTH_APIS("write-send", write_then_send, "who receives a SEND sees the WRITE before it"),
	BOTH_APIS("write-imm-look", write_imm_then_look,
		  "who receives immediate data sees the WRITE's"),
	BOTH_APIS("write-add", write_then_add,
		  "an atomic sees the WRITE before it, a READ sees the atomic"),
	BOTH_APIS("fence", fence, "a fenced request waits for the READ before it"),
	BOTH_APIS("completions", completions, "completions in the order of posting"),
	BOTH_APIS("receives", receives, "receive requests in the order of posting"),
	{"overlapping", "of two WRITEs to one place the second stays", overlapping, 0},
	{"counters", "FETCH AND ADDs of two connections: none is lost", counters, 0},
	{"one-winner", "COMPARE AND SWAPs of two connections: one of them swaps", one_winner, 0},
	{0},
};
