/* SPDX-License-Identifier: BSD-3-Clause */
/* FLUSH: what was written becomes visible, or durable; and which rights it takes. */
#include "scenarios/verbs/programs.h"

#define THERE	8192u
#define GLOBAL	IBV_ACCESS_FLUSH_GLOBAL
#define DURABLE IBV_ACCESS_FLUSH_PERSISTENT

/* b's buffer is its host's persistent memory, a region with these flush rights; its queue pair has
 * those. */
static void connect_pm(struct lab *lab, unsigned mr_flush, unsigned qp_flush)
{
	const struct lab_world *world = lab->world;
	struct end *a = &lab->a, *b = &lab->b;
	if (world->pm_len < LAB_BUF) {
		lab_say(lab, "no persistent memory");
		lab_give_up(lab);
	}
	lab_make(lab);
	b->buf = world->pm;
	memset(b->buf, 0, LAB_BUF);
	b->mr = ibv_reg_mr(b->pd, b->buf, world->pm_len, (int)(LAB_ALL | mr_flush));
	lab_say(lab, "b: register: %s", b->mr ? "0" : lab_error(errno));
	if (!b->mr)
		lab_give_up(lab);
	lab_to_rts(a, b);
	lab->opt.qp_access = LAB_ALL | qp_flush;
	lab_to_rts(b, a);
	lab_fill(a->buf, LAB_BUF, 1);
}

static void all_kinds(struct lab *lab)
{
	static const uint8_t types[] = {IBV_FLUSH_GLOBAL, IBV_FLUSH_PERSISTENT,
					IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT};
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL | DURABLE);
	for (unsigned i = 0; i < 6; i++) {
		lab_op(&lab->a, IBV_WR_RDMA_WRITE, 2 * i, 0, 3000, &lab->b, THERE + 4096 * i);
		lab_flush(&lab->a, 2 * i + 1, &lab->b, THERE + 4096 * i, 3000, types[i / 2],
			  i % 2 ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
		lab_sent(&lab->a, 2);
	}
	lab_bytes(&lab->b, THERE, 6 * 4096);
	lab_no_more(&lab->b);
}

/* A FLUSH between two WRITEs, unsignaled, and before a READ. */
static void in_order(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL | DURABLE);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 3000, &lab->b, THERE);
	lab_flush(&lab->a, 2, &lab->b, THERE, 3000, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 3, 0, 8, &lab->b, THERE + 4096);
	lab_op(&lab->a, IBV_WR_RDMA_READ, 4, 65536, 3000, &lab->b, THERE);
	lab_sent(&lab->a, 4);
	lab_bytes(&lab->a, 65536, 3000);
	lab_bytes(&lab->b, THERE + 4096, 8);
}

/* WRITE, FLUSH, ATOMIC WRITE: the word is there after the data. */
static void then_word(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL | DURABLE);
	for (unsigned i = 0; i < 3; i++) {
		lab_op(&lab->a, IBV_WR_RDMA_WRITE, 10 * i, 100 * i, 2000, &lab->b,
		       THERE + 2048 * i);
		lab_flush(&lab->a, 10 * i + 1, &lab->b, THERE + 2048 * i, 2000,
			  IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
		lab_op(&lab->a, IBV_WR_ATOMIC_WRITE, 10 * i + 2, 8 * i, 8, &lab->b, 64);
		lab_sent(&lab->a, 3);
		lab_bytes(&lab->b, 64, 8);
	}
	lab_bytes(&lab->b, THERE, 6144);
}

/* Nothing, and the whole region. */
static void ranges(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL | DURABLE);
	lab_flush(&lab->a, 1, &lab->b, THERE, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	lab_sent(&lab->a, 1);
	lab_flush(&lab->a, 2, &lab->b, 0, lab->world->pm_len, IBV_FLUSH_PERSISTENT,
		  IBV_FLUSH_RANGE);
	lab_sent(&lab->a, 1);
	lab_flush(&lab->a, 3, &lab->b, 3, 1, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	lab_sent(&lab->a, 1);
}

/* For DRAM only visibility can be asked for. */
static void dram(struct lab *lab)
{
	lab_connect(lab);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1, 0, 3000, &lab->b, THERE);
	lab_flush(&lab->a, 2, &lab->b, THERE, 3000, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	lab_sent(&lab->a, 2);
	lab_flush(&lab->a, 3, &lab->b, THERE, 3000, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	lab_sent(&lab->a, 1);
	lab_state(&lab->b);
}

static void refused(struct lab *lab, size_t at, size_t len, uint8_t type, uint8_t level)
{
	lab_recv(&lab->b, 100, 0, 64);
	if (lab_flush(&lab->a, 1, &lab->b, at, len, type, level))
		return;
	lab_sent(&lab->a, 1);
	lab_state(&lab->a);
	lab_state(&lab->b);
	lab_no_more(&lab->b);
}

static void no_mr_right(struct lab *lab)
{
	connect_pm(lab, 0, GLOBAL | DURABLE);
	refused(lab, THERE, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

static void no_durable_right(struct lab *lab)
{
	connect_pm(lab, GLOBAL, GLOBAL | DURABLE);
	refused(lab, THERE, 64, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
}

static void no_visible_right(struct lab *lab)
{
	connect_pm(lab, DURABLE, GLOBAL | DURABLE);
	refused(lab, THERE, 64, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
}

static void no_qp_right(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, 0);
	refused(lab, THERE, 64, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
}

static void no_qp_durable(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL);
	refused(lab, THERE, 64, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
}

static void past_end(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL | DURABLE);
	refused(lab, lab->world->pm_len - 63, 64, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
}

/* The whole region: address and length do not count. */
static void past_end_mr(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL | DURABLE);
	refused(lab, lab->world->pm_len + 4096, 64, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
}

static void no_type(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL | DURABLE);
	refused(lab, THERE, 64, 0, IBV_FLUSH_RANGE);
}

static void odd_type(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL | DURABLE);
	refused(lab, THERE, 64, 4, IBV_FLUSH_RANGE);
}

static void odd_level(struct lab *lab)
{
	connect_pm(lab, GLOBAL | DURABLE, GLOBAL | DURABLE);
	refused(lab, THERE, 64, IBV_FLUSH_PERSISTENT, 3);
}

const struct verbs_program verbs_place[] = {
	{"flush/wr", "FLUSH of each placement type and selectivity", all_kinds, BY_WR},
	{"flush-order/wr", "WRITE, FLUSH, WRITE, READ", in_order, BY_WR},
	{"flush-word/wr", "WRITE, FLUSH, ATOMIC WRITE", then_word, BY_WR},
	{"flush-ranges/wr", "FLUSH of nothing, of all, of a byte", ranges, BY_WR},
	{"flush-dram/wr", "FLUSH of memory that is not persistent", dram, BY_WR},
	{"flush-no-right/wr", "FLUSH of a region without the right", no_mr_right, BY_WR},
	{"flush-no-durable/wr", "FLUSH for persistence of a region with the right to the other",
	 no_durable_right, BY_WR},
	{"flush-no-visible/wr", "FLUSH for both of a region with the right to persistence",
	 no_visible_right, BY_WR},
	{"flush-no-qp-right/wr", "FLUSH through a queue pair without the right", no_qp_right,
	 BY_WR},
	{"flush-no-qp-durable/wr",
	 "FLUSH for persistence through a queue pair with the right to the other", no_qp_durable,
	 BY_WR},
	{"flush-past/wr", "FLUSH of a range that ends past the region", past_end, BY_WR},
	{"flush-past-region/wr", "FLUSH of a whole region by an address past it", past_end_mr,
	 BY_WR},
	{"flush-no-type/wr", "FLUSH of no placement type", no_type, BY_WR},
	{"flush-odd-type/wr", "FLUSH of an unknown placement type", odd_type, BY_WR},
	{"flush-odd-level/wr", "FLUSH of an unknown selectivity", odd_level, BY_WR},
	{0},
};
