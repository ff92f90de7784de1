/* SPDX-License-Identifier: BSD-3-Clause */
/* What each request does when all is well, of every size that matters. */
#include "scenarios/verbs/programs.h"

static const uint32_t sizes[] = {0, 1, 63, 64, 65, LAB_MTU - 1, LAB_MTU, LAB_MTU + 1, 5 * LAB_MTU + 7, 65536};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

#define THERE 1000u /* in the peer's buffer: no page's or line's start */

static void connect_filled(struct lab *lab)
{
	lab_connect(lab);
	lab_fill(lab->a.buf, LAB_BUF, 1);
	lab_fill(lab->b.buf, LAB_BUF, 2);
}

static void write_sizes(struct lab *lab)
{
	connect_filled(lab);
	for (unsigned i = 0; i < SIZES; i++) {
		lab_op(&lab->a, IBV_WR_RDMA_WRITE, i, 3, sizes[i], &lab->b, THERE);
		lab_sent(&lab->a, 1);
		lab_bytes(&lab->b, THERE - 8, sizes[i] + 16);
	}
	lab_no_more(&lab->b);
}

static void read_sizes(struct lab *lab)
{
	connect_filled(lab);
	for (unsigned i = 0; i < SIZES; i++) {
		lab_op(&lab->a, IBV_WR_RDMA_READ, i, THERE, sizes[i], &lab->b, 3);
		lab_sent(&lab->a, 1);
		lab_bytes(&lab->a, THERE - 8, sizes[i] + 16);
	}
	lab_no_more(&lab->b);
}

static void send_sizes(struct lab *lab)
{
	connect_filled(lab);
	for (unsigned i = 0; i < SIZES; i++) {
		lab_recv(&lab->b, 100 + i, THERE, 65536);
		lab_op(&lab->a, IBV_WR_SEND, i, 3, sizes[i], &lab->b, 0);
		lab_sent(&lab->a, 1);
		lab_received(&lab->b, 1);
		lab_bytes(&lab->b, THERE - 8, sizes[i] + 16);
	}
}

static void imm(struct lab *lab, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, opcode, len, 3, len, &lab->b, THERE);
	wr.imm_data = htobe32(0x12345678 + len);
	lab_recv(&lab->b, 100 + len, 4096, 8192);
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_received(&lab->b, 1);
	lab_bytes(&lab->b, THERE - 8, len + 16);
	lab_bytes(&lab->b, 4096, len + 8);
}

static void send_imm(struct lab *lab)
{
	connect_filled(lab);
	imm(lab, IBV_WR_SEND_WITH_IMM, 0);
	imm(lab, IBV_WR_SEND_WITH_IMM, 10);
	imm(lab, IBV_WR_SEND_WITH_IMM, LAB_MTU);
	imm(lab, IBV_WR_SEND_WITH_IMM, 3 * LAB_MTU - 1);
}

static void write_imm(struct lab *lab)
{
	connect_filled(lab);
	imm(lab, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
	imm(lab, IBV_WR_RDMA_WRITE_WITH_IMM, 10);
	imm(lab, IBV_WR_RDMA_WRITE_WITH_IMM, LAB_MTU);
	imm(lab, IBV_WR_RDMA_WRITE_WITH_IMM, 3 * LAB_MTU - 1);
}

static void swap(struct lab *lab, uint64_t id, uint64_t compare, uint64_t value)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_ATOMIC_CMP_AND_SWP, id, 0, 8, &lab->b, 64);
	wr.wr.atomic.compare_add = compare;
	wr.wr.atomic.swap = value;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_say(lab, "a has %lx, b has %lx", lab_word(&lab->a, 0), lab_word(&lab->b, 64));
}

static void compare_and_swap(struct lab *lab)
{
	lab_connect(lab);
	lab_set_word(&lab->b, 64, 5);
	swap(lab, 1, 5, 0x1122334455667788);
	swap(lab, 2, 5, 9);
	swap(lab, 3, 0x1122334455667788, 0);
}

static void add(struct lab *lab, uint64_t id, uint64_t value)
{
	struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_ATOMIC_FETCH_AND_ADD, id, 0, 8, &lab->b, 64);
	wr.wr.atomic.compare_add = value;
	lab_post(&lab->a, &wr);
	lab_sent(&lab->a, 1);
	lab_say(lab, "a has %lx, b has %lx", lab_word(&lab->a, 0), lab_word(&lab->b, 64));
}

static void fetch_and_add(struct lab *lab)
{
	lab_connect(lab);
	lab_set_word(&lab->b, 64, 40);
	add(lab, 1, 2);
	add(lab, 2, UINT64_MAX);
	add(lab, 3, 0);
	lab_set_word(&lab->b, 64, UINT64_MAX);
	add(lab, 4, 2);
}

static void atomic_write(struct lab *lab)
{
	connect_filled(lab);
	lab_op(&lab->a, IBV_WR_ATOMIC_WRITE, 1, 40, 8, &lab->b, 64);
	lab_sent(&lab->a, 1);
	lab_bytes(&lab->a, 40, 8);
	lab_bytes(&lab->b, 56, 24);
	lab_no_more(&lab->b);
}

const struct verbs_program verbs_basic[] = {
	BOTH_APIS("write", write_sizes, "WRITEs from nothing to 64 packets"),
	BOTH_APIS("read", read_sizes, "READs from nothing to 64 packets"),
	BOTH_APIS("send", send_sizes, "SENDs from nothing to 64 packets"),
	BOTH_APIS("send-imm", send_imm, "SENDs with immediate data"),
	BOTH_APIS("write-imm", write_imm,
		  "WRITEs with immediate data take a receive request, and leave its memory alone"),
	BOTH_APIS("compare-swap", compare_and_swap,
		  "COMPARE AND SWAP that meets what it compares with, and not"),
	BOTH_APIS("fetch-add", fetch_and_add, "FETCH AND ADD, also beyond 2^64"),
	BOTH_APIS("atomic-write", atomic_write, "ATOMIC WRITE of 8 bytes"),
	{0},
};
