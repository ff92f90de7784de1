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
	{"flush-dram/wr", "FLUSH of memory that is not persistent", dram, BY_WR},
	{"flush-no-type/wr", "FLUSH of no placement type", no_type, BY_WR},
	{"flush-odd-type/wr", "FLUSH of an unknown placement type", odd_type, BY_WR},
	{"flush-odd-level/wr", "FLUSH of an unknown selectivity", odd_level, BY_WR},
	{0},
};
