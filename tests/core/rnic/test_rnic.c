/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soft RNIC: objects, operations, errors, loss; FLUSH and PM.
 */
#include "core/rdma_commit.h"
#include "core/rnic/objects/device.h"
#include "tests/core/rnic/rnic_world.h"

static void device_body(void)
{
	struct ibv_port_attr port;
	struct ibv_device_attr dev;
	ck_assert_int_eq(ibv_query_port(a.ctx, 1, &port), 0);
	ck_assert_int_eq(port.state, IBV_PORT_ACTIVE);
	ck_assert_int_eq(port.active_mtu, IBV_MTU_2048);
	ck_assert_int_eq(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	ck_assert_int_eq(ibv_query_port(a.ctx, 2, &port), EINVAL);
	ck_assert_int_eq(rnic_query_device(a.ctx, &dev), 0);
	ck_assert_int_eq(dev.phys_port_cnt, 1);
	ck_assert_int_eq(dev.atomic_cap, opt.hw.atomics_hca ? IBV_ATOMIC_HCA : IBV_ATOMIC_GLOB);
	struct ibv_device_attr_ex ex;
	ck_assert_int_eq(ibv_query_device_ex(a.ctx, NULL, &ex), 0);
	ck_assert_int_eq(ex.orig_attr.atomic_cap, dev.atomic_cap);
	static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};
	ck_assert_mem_eq(a.gid.raw, gid, 16);
	ck_assert_int_eq(rnic_query_gid(a.ctx, 1, 1, &a.gid), -1);
	ck_assert_str_eq(rnic_get_device_name(a.ctx->device), "tidemark1");
	ck_assert_ptr_null(rnic_open(net, 1, NULL));
}

TEST(device)
{
	opt.hw.mtu = 2048;
	run_task(device_body);
	opt.hw.atomics_hca = true;
	run_task(device_body);
}

RNIC_TEST(task, objects)
{
	struct ibv_qp_init_attr init = {.send_cq = a.scq, .recv_cq = a.rcq, .qp_type = IBV_QPT_RC};
	NOT_MADE(rnic_reg_mr(a.pd, a.buf, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	ck_assert_ptr_null(rnic_reg_mr(a.pd, a.buf, 64, IBV_ACCESS_REMOTE_ATOMIC));
	NOT_MADE(rnic_reg_mr(a.pd, NULL, 64, 0), EFAULT);
	const int entries[] = {0, -1, MAX_CQE + 1};
	for (unsigned i = 0; i < ROWS_OF(entries); i++) {
		NOT_MADE(rnic_create_cq(a.ctx, entries[i], NULL, NULL, 0), EINVAL);
	}
	ck_assert_ptr_null(rnic_create_cq(a.ctx, 1, NULL, NULL, a.ctx->num_comp_vectors));
	ck_assert_ptr_null(rnic_create_cq(a.ctx, 1, NULL, NULL, -1));
	ck_assert_int_eq(rnic_dealloc_pd(a.pd), EBUSY);
	ck_assert_int_eq(rnic_destroy_cq(a.scq), EBUSY);
	const struct ibv_qp_cap caps[] = {{MAX_WR + 1, 1, 1, 1, 0},
					  {1, MAX_WR + 1, 1, 1, 0},
					  {1, 1, MAX_SGE + 1, 1, 0},
					  {1, 1, 1, MAX_SGE + 1, 0},
					  {1, 1, 1, 1, MAX_INLINE + 1}};
	for (unsigned i = 0; i < ROWS_OF(caps); i++) {
		init.cap = caps[i];
		NOT_MADE(rnic_create_qp(a.pd, &init), EINVAL);
	}
	init.cap = (struct ibv_qp_cap){MAX_WR, MAX_WR, MAX_SGE, MAX_SGE, MAX_INLINE};
	struct ibv_qp *largest = rnic_create_qp(a.pd, &init);
	ck_assert(largest && init.cap.max_send_wr >= MAX_WR);
	ck_assert_int_eq(rnic_destroy_qp(largest), 0);
	init.send_cq = NULL;
	ck_assert_ptr_null(rnic_create_qp(a.pd, &init));
	init.send_cq = b.scq;
	NOT_MADE(rnic_create_qp(a.pd, &init), EINVAL);
	init.send_cq = a.scq;
	init.qp_type = IBV_QPT_RAW_PACKET;
	NOT_MADE(rnic_create_qp(a.pd, &init), EOPNOTSUPP);
	ck_assert_uint_ne(a.qp->qp_num, b.qp->qp_num);
	ck_assert_int_eq(rnic_destroy_qp(a.qp), 0);
	ck_assert_int_eq(rnic_dealloc_pd(a.pd), EBUSY);
	ck_assert_int_eq(rnic_dereg_mr(a.mr), 0);
	ck_assert_int_eq(rnic_dealloc_pd(a.pd), 0);
	ck_assert_int_eq(rnic_destroy_cq(a.scq), 0);
}

/* --- each operation --- */

RNIC_TEST(connected, send)
{
	fill(a.buf, 3000, 1);
	recv_post(&b, 1000, BUF, 55); /* longer than its region, which the message is not */
	op(&a, IBV_WR_SEND, 0, 3000, &b, 0, 11, IBV_SEND_SIGNALED);
	struct ibv_wc wc = wait_for(a.scq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_SEND);
	ck_assert_uint_eq(wc.wr_id, 11);
	ck_assert_uint_eq(wc.qp_num, a.qp->qp_num);
	wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.wr_id, 55);
	ck_assert_uint_eq(wc.byte_len, 3000);
	ck_assert_uint_eq(wc.qp_num, b.qp->qp_num);
	ck_assert_uint_eq(wc.wc_flags, 0);
	ck_assert_mem_eq(b.buf + 1000, a.buf, 3000);
	/* With immediate data; and nothing but it. */
	for (uint32_t len = 0; len < 20; len += 10) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND_WITH_IMM, &sge, 0, len, &b, 0);
		wr.imm_data = htobe32(0x12345678 + len);
		recv_post(&b, 0, 64, 56);
		post(&a, &wr);
		wc = wait_for(b.rcq);
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
		ck_assert_uint_eq(wc.byte_len, len);
		ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
		ck_assert_uint_eq(be32toh(wc.imm_data), 0x12345678 + len);
		expect(a.scq, 7, IBV_WC_SUCCESS);
	}
}

RNIC_TEST(connected, rdma)
{
	fill(a.buf, 5000, 2);
	op(&a, IBV_WR_RDMA_WRITE, 0, 5000, &b, 333, 1, IBV_SEND_SIGNALED);
	struct ibv_wc wc = wait_for(a.scq);
	ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_WRITE);
	rt_sleep(10 * US);
	ck_assert_mem_eq(b.buf + 333, a.buf, 5000);
	ck_assert(empty(b.rcq));
	op(&a, IBV_WR_RDMA_READ, 20000, 5000, &b, 333, 2, IBV_SEND_SIGNALED);
	wc = wait_for(a.scq);
	ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_READ);
	ck_assert_uint_eq(wc.byte_len, 5000);
	ck_assert_mem_eq(a.buf + 20000, a.buf, 5000);
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 0, 5000, &b, 40000);
	wr.imm_data = htobe32(99);
	recv_post(&b, 0, 0, 57);
	post(&a, &wr);
	wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_uint_eq(wc.byte_len, 5000);
	ck_assert_uint_eq(be32toh(wc.imm_data), 99);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	ck_assert_mem_eq(b.buf + 40000, a.buf, 5000);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	/* Nothing: needs no memory, no key. */
	for (unsigned i = 0; i < 4; i++) {
		wr = wr_make(&a, i / 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 0, 0, &b, 0);
		wr.wr.rdma.rkey = sge.lkey = 1;
		wr.num_sge = i % 2;
		post_done(&a, &wr, IBV_WC_SUCCESS);
	}
}

static void atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap, uint64_t id)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, opcode, &sge, 64, 8, &b, 128);
	wr.wr_id = id;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	post(&a, &wr);
}

RNIC_TEST(connected, atomics)
{
	set_word(&b, 128, 40);
	atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 1);
	struct ibv_wc wc = wait_for(a.scq);
	ck_assert_int_eq(wc.opcode, IBV_WC_FETCH_ADD);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word(&a, 64), 40);
	ck_assert_uint_eq(word(&b, 128), 42);
	atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 41, 7, 2);
	wc = wait_for(a.scq);
	ck_assert_int_eq(wc.opcode, IBV_WC_COMP_SWAP);
	ck_assert_uint_eq(word(&a, 64), 42);
	ck_assert_uint_eq(word(&b, 128), 42);
	atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 42, 7, 3);
	expect(a.scq, 3, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word(&b, 128), 7);
	/* An atomic write: 8 bytes, gathered or inline. */
	set_word(&a, 64, 77);
	op(&a, IBV_WR_ATOMIC_WRITE, 64, 8, &b, 128, 4, IBV_SEND_SIGNALED);
	wc = wait_for(a.scq);
	ck_assert_int_eq(wc.opcode, IBV_WC_ATOMIC_WRITE);
	ck_assert_uint_eq(wc.byte_len, 8);
	ck_assert_uint_eq(word(&b, 128), 77);
	ck_assert_uint_eq(word(&a, 64), 77);
	set_word(&a, 64, 78);
	op(&a, IBV_WR_ATOMIC_WRITE, 64, 8, &b, 128, 5, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	set_word(&a, 64, 0);
	expect(a.scq, 5, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word(&b, 128), 78);
	ck_assert_uint_eq(word(&b, 120), 0);
	ck_assert_uint_eq(word(&b, 136), 0);
}

/* The result has 8 bytes. The list may have room for more, and several pieces. */
RNIC_TEST(connected, result_of_atomic)
{
	static const uint32_t lengths[][2] = {{8, 0}, {9, 0}, {3, 5}, {4, 8}};
	const uint64_t before = 0x1122334455667788;
	for (unsigned i = 0; i < ROWS_OF(lengths); i++) {
		const uint32_t first = lengths[i][0] < 8 ? lengths[i][0] : 8;
		uint8_t expected[64];
		struct ibv_sge sge[2];
		struct ibv_send_wr wr = wr_make(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, sge, 0,
						lengths[i][0], &b, 0);
		sge[1] = (struct ibv_sge){(uintptr_t)a.buf + 32, lengths[i][1], a.mr->lkey};
		wr.num_sge = 2;
		set_word(&b, 0, before);
		memset(a.buf, 0xff, sizeof(expected));
		memset(expected, 0xff, sizeof(expected));
		memcpy(expected, &before, first);
		memcpy(expected + 32, (const char *)&before + first, 8 - first);
		post(&a, &wr);
		struct ibv_wc wc = wait_for(a.scq);
		ck_assert(wc.status == IBV_WC_SUCCESS && wc.byte_len == 8);
		ck_assert_mem_eq(a.buf, expected, sizeof(expected));
	}
}

/* Pieces of these lengths, so far apart, of a side's buffer from `off` on. */
static struct pieces {
	unsigned n;
	uint32_t len[4];
	size_t apart;
} from_4 = {4, {700, 1, 0, 1999}, 3001}, to_3 = {3, {13, 2000, 687}, 5003};

static void list_of(const struct side *s, const struct pieces *p, size_t off, struct ibv_sge *sge)
{
	for (unsigned i = 0; i < p->n; i++, off += p->apart)
		sge[i] = (struct ibv_sge){(uintptr_t)s->buf + off, p->len[i], s->mr->lkey};
}

/* Their bytes, one after the other. */
static void flatten(const struct ibv_sge *sge, unsigned n, uint8_t *to)
{
	for (unsigned i = 0; i < n; to += sge[i++].length)
		memcpy(to, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
}

/* SEND gathers, and is scattered; so is what READ brings. */
RNIC_TEST(connected, sges)
{
	struct ibv_sge out[4], in[3];
	uint8_t flat[2700], got[2700];
	struct ibv_recv_wr rwr = {.sg_list = in, .num_sge = 3}, *rbad;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND, out, 0, 0, &b, 100000);
	fill(a.buf, 10000, 3);
	list_of(&a, &from_4, 0, out);
	list_of(&b, &to_3, 0, in);
	in[2].length = 1000; /* more than comes */
	wr.num_sge = 4;
	ck_assert_int_eq(ibv_post_recv(b.qp, &rwr, &rbad), 0);
	post(&a, &wr);
	ck_assert_uint_eq(wait_for(b.rcq).byte_len, 2700);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	flatten(out, 4, flat);
	in[2].length = 687;
	flatten(in, 3, got);
	ck_assert_mem_eq(got, flat, 2700);
	list_of(&a, &to_3, 50000, in);
	memcpy(b.buf + 100000, flat, 2700);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.sg_list = in;
	wr.num_sge = 3;
	post_done(&a, &wr, IBV_WC_SUCCESS);
	flatten(in, 3, got);
	ck_assert_mem_eq(got, flat, 2700);
}

RNIC_TESTS(connected, mtus, 10, opt.mtu = (enum ibv_mtu)(IBV_MTU_256 + _i % 5),
	   opt.psn = 0xfffff0 /* wraps on the way */, opt.hw.ack_early = _i < 5)
{
	static const uint32_t lens[] = {1,    63,   255,  256,	257,  1023,  1024,
					1025, 4095, 4096, 4097, 8192, 100001};
	for (unsigned i = 0; i < ROWS_OF(lens); i++) {
		uint32_t len = lens[i];
		fill(a.buf, len, len);
		recv_post(&b, 7, len, i);
		op(&a, IBV_WR_SEND, 0, len, &b, 0, i, IBV_SEND_SIGNALED);
		expect(b.rcq, i, IBV_WC_SUCCESS);
		expect(a.scq, i, IBV_WC_SUCCESS);
		ck_assert_mem_eq(b.buf + 7, a.buf, len);
		op(&a, IBV_WR_RDMA_WRITE, 0, len, &b, 130003, i, 0);
		op_done(&a, IBV_WR_RDMA_READ, 130001, len, &b, 130003);
		ck_assert_mem_eq(a.buf + 130001, a.buf, len);
	}
}

/* --- posting --- */

RNIC_TEST(connected, inline_data)
{
	struct ibv_sge sge[2] = {{(uintptr_t)a.buf, 100, 0}, {(uintptr_t)a.buf + 500, 28, 0}};
	struct ibv_send_wr wr = {.wr_id = 3,
				 .sg_list = sge,
				 .num_sge = 2,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
			   *bad;
	uint8_t want[128];
	wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
	wr.wr.rdma.rkey = b.mr->rkey;
	fill(a.buf, 600, 4);
	memcpy(want, a.buf, 100);
	memcpy(want + 100, a.buf + 500, 28);
	post(&a, &wr); /* no key needed, the buffer is free at once */
	memset(a.buf, 0, 600);
	expect(a.scq, 3, IBV_WC_SUCCESS);
	rt_sleep(US);
	ck_assert_mem_eq(b.buf, want, 128);
	sge[1].length = 29;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr);
	sge[1].length = 28;
	wr.opcode = IBV_WR_RDMA_READ;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	/* Not inline: what is in the buffer when the RNIC gathers is what goes out. */
	fill(a.buf, 64, 5);
	op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 0, 4, IBV_SEND_SIGNALED);
	a.buf[0] ^= 0xff;
	expect(a.scq, 4, IBV_WC_SUCCESS);
	rt_sleep(US);
	ck_assert_mem_eq(b.buf, a.buf, 64);
}

RNIC_TEST(connected, unsignaled, opt.send_wr = 8, opt.recv_wr = 4)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 8, &b, 0), *bad;
	struct ibv_recv_wr *rbad;
	for (int round = 0; round < 3; round++) {
		wr.send_flags = 0;
		for (int i = 0; i < 7; i++)
			post(&a, &wr);
		wr.send_flags = IBV_SEND_SIGNALED;
		post(&a, &wr);
		ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), ENOMEM);
		ck_assert_ptr_eq(bad, &wr);
		rt_sleep(100 * US); /* all done; but the program does not know */
		ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), ENOMEM);
		expect(a.scq, 7, IBV_WC_SUCCESS); /* one entry frees eight slots */
		ck_assert(empty(a.scq));
	}
	/* All are done, but taking out one entry frees only what is not after it. */
	for (int i = 0; i < 8; i++)
		post(&a, &wr);
	rt_sleep(100 * US);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	post(&a, &wr);
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), ENOMEM);
	for (int i = 0; i < 8; i++)
		expect(a.scq, 7, IBV_WC_SUCCESS);
	/* A list: the first that is wrong, or does not fit, is bad_wr; those before it are done. */
	struct ibv_send_wr list[10];
	for (int i = 0; i < 10; i++) {
		list[i] = wr;
		list[i].next = i < 9 ? &list[i + 1] : NULL;
	}
	ck_assert_int_eq(ibv_post_send(a.qp, list, &bad), ENOMEM);
	ck_assert_ptr_eq(bad, &list[8]);
	for (int i = 0; i < 8; i++)
		expect(a.scq, 7, IBV_WC_SUCCESS);
	list[2].num_sge = (int)opt.sge + 1;
	ck_assert_int_eq(ibv_post_send(a.qp, list, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &list[2]);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	rt_sleep(100 * US);
	ck_assert(empty(a.scq));
	struct ibv_recv_wr second = {.num_sge = (int)opt.sge + 1}, first = {.next = &second};
	ck_assert_int_eq(ibv_post_recv(b.qp, &first, &rbad), EINVAL);
	ck_assert_ptr_eq(rbad, &second);
	for (int i = 0; i < 4; i++)
		recv_post(&a, 0, 8, 0);
	struct ibv_recv_wr rwr = {.wr_id = 0};
	ck_assert_int_eq(ibv_post_recv(a.qp, &rwr, &rbad), ENOMEM);
	ck_assert_ptr_eq(rbad, &rwr);
}

RNIC_TEST(connected, sig_all, opt.sig_all = 1)
{
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, 1, 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
}

RNIC_TEST(task, bad_posts)
{
	struct ibv_sge sge[8] = {0};
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, sge, 0, 8, &b, 0), *bad;
	struct ibv_recv_wr rwr = {.num_sge = 0}, *rbad;
	for (enum ibv_qp_state state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++) {
		bring_to(&a, &b, state);
		ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
		ck_assert_int_eq(ibv_post_recv(a.qp, &rwr, &rbad),
				 state == IBV_QPS_RESET ? EINVAL : 0);
	}
	bring_to(&a, &b, IBV_QPS_RTS);
	wr.num_sge = 5;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	rwr.num_sge = 5;
	ck_assert_int_eq(ibv_post_recv(a.qp, &rwr, &rbad), EINVAL);
	wr.num_sge = 1;
	wr.opcode = IBV_WR_TSO;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EOPNOTSUPP);
	sge[0].length = 4;
	wr.opcode = IBV_WR_ATOMIC_WRITE;
	ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	static const struct {
		uint8_t type, level;
		int sges;
	} flushes[] = {{0, 0, 0},
		       {4, 0, 0},
		       {IBV_FLUSH_GLOBAL, 2, 0},
		       {IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, 1}};
	for (unsigned i = 0; i < 4; i++) {
		flush_wr(&wr, b.mr->rkey, (uintptr_t)b.buf, 8, flushes[i].type, flushes[i].level);
		wr.num_sge = flushes[i].sges;
		ck_assert_int_eq(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	}
}

/* --- what is held; in which order things become visible, the litmus tests rdma_* say --- */

/* Hold the n-th line of the first message for 8 us. */
ANSWER(hold_land, at->kind == CHOICE_LAND && at->a == 1 && at->c == 2, 4)

/* Hold what is not posted, the n-th message of the connection; also line 2 of the first WRITE. */
static uint32_t held_message;
static unsigned hold_message(const struct choice_point *at, unsigned n)
{
	if (at->kind == CHOICE_LAND)
		return at->a == 1 && at->c == 2 ? 4 : 0;
	return at->kind == CHOICE_FETCH && at->a == held_message ? 6 : 0;
}

/* --- errors --- */

/* After a failure: this request, then the later ones flushed, both queue pairs as told. */
static void expect_failure(enum ibv_wc_status status, bool responder_fails)
{
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, 101, 0); /* unsignaled ones too */
	op(&a, IBV_WR_RDMA_READ, 0, 8, &b, 0, 102, IBV_SEND_SIGNALED);
	expect(a.scq, 7, status);
	expect(a.scq, 101, IBV_WC_WR_FLUSH_ERR);
	expect(a.scq, 102, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(a.qp->state, IBV_QPS_ERR);
	ck_assert_int_eq(b.qp->state, responder_fails ? IBV_QPS_ERR : IBV_QPS_RTS);
	/* In the error state everything is flushed at once. */
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, 103, 0);
	expect(a.scq, 103, IBV_WC_WR_FLUSH_ERR);
	recv_post(&a, 0, 8, 104);
	expect(a.rcq, 104, IBV_WC_WR_FLUSH_ERR);
	/* And after a reset all is well again. */
	opt.qp_access = ALL_ACCESS;
	reconnect();
	ck_assert(empty(b.rcq));
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0);
}

static struct fault {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_status status;
	enum {
		PLAIN,
		OTHER_PD,
		LKEY_AS_RKEY,
		DEAD_MR,
		LOCAL_KEY,
		BOTH_KEYS,
		LOCAL_RANGE,
		TWO_GB,
		NO_RD,
		NO_DEST_RD,
		RECV_KEY
	} how;
	uint32_t len;		 /* 0: 8 */
	size_t at;		 /* in b's region of 4096 bytes */
	int region_lacks;	 /* right */
	unsigned qp_lacks;	 /* right, of b's */
	enum ibv_wc_status recv; /* of b's receive request; SUCCESS: none is posted */
} fault;
#define WRITE	  IBV_WR_RDMA_WRITE
#define WRITE_IMM IBV_WR_RDMA_WRITE_WITH_IMM
#define READ	  IBV_WR_RDMA_READ
#define ADD	  IBV_WR_ATOMIC_FETCH_AND_ADD
#define SWAP	  IBV_WR_ATOMIC_CMP_AND_SWP
#define SEND	  IBV_WR_SEND
#define FLUSH	  IBV_WR_FLUSH
#define ATOMIC_W  IBV_WR_ATOMIC_WRITE
#define REFUSED	  IBV_WC_REM_ACCESS_ERR
#define INVALID	  IBV_WC_REM_INV_REQ_ERR
#define PROTECTED IBV_WC_LOC_PROT_ERR
#define TOO_LONG  IBV_WC_LOC_LEN_ERR
/* clang-format off */
static const struct fault faults[] = {
	{"write past the end", WRITE, REFUSED, .len = 64, .at = 4096 - 63},
	{"long write past the end", WRITE, REFUSED, .len = 4000, .at = 97},
	{"write before the start", WRITE, REFUSED, .len = 64, .at = (size_t)-1},
	{"read past the end", READ, REFUSED, .len = 64, .at = 4096 - 63},
	{"atomic past the end", ADD, REFUSED, .at = 4096},
	{"atomic not aligned", ADD, INVALID, .at = 4},
	{"write, region says no", WRITE, REFUSED, .region_lacks = IBV_ACCESS_REMOTE_WRITE},
	{"read, region says no", READ, REFUSED, .region_lacks = IBV_ACCESS_REMOTE_READ},
	{"atomic, region says no", SWAP, REFUSED, .region_lacks = IBV_ACCESS_REMOTE_ATOMIC},
	{"write, queue pair says no", WRITE, INVALID, .qp_lacks = IBV_ACCESS_REMOTE_WRITE},
	{"read, queue pair says no", READ, INVALID, .qp_lacks = IBV_ACCESS_REMOTE_READ},
	{"atomic, queue pair says no", SWAP, INVALID, .qp_lacks = IBV_ACCESS_REMOTE_ATOMIC},
	{"flush, no outgoing reads", FLUSH, IBV_WC_LOC_QP_OP_ERR, .how = NO_RD},
	{"flush, no incoming reads", FLUSH, INVALID, .how = NO_DEST_RD},
	{"atomic write, wrong local key", ATOMIC_W, PROTECTED, .how = LOCAL_KEY},
	{"region of another domain", WRITE, REFUSED, .how = OTHER_PD},
	{"local key as remote key", WRITE, REFUSED, .how = LKEY_AS_RKEY},
	{"local key as remote key, read", READ, REFUSED, .how = LKEY_AS_RKEY},
	{"local key as remote key, atomic", ADD, REFUSED, .how = LKEY_AS_RKEY},
	{"local key as remote key, immediate data", WRITE_IMM, REFUSED, .how = LKEY_AS_RKEY,
	 .recv = IBV_WC_LOC_ACCESS_ERR},
	{"dead region", WRITE, REFUSED, .how = DEAD_MR},
	{"dead region, read", READ, REFUSED, .how = DEAD_MR},
	{"wrong local key", WRITE, PROTECTED, .how = LOCAL_KEY},
	{"wrong local key, read", READ, PROTECTED, .how = LOCAL_KEY},
	{"wrong local key, atomic", SWAP, PROTECTED, .how = LOCAL_KEY},
	/* Cards look at the place for a result when they have it. */
	{"wrong keys", WRITE, PROTECTED, .how = BOTH_KEYS},
	{"wrong keys, read", READ, REFUSED, .how = BOTH_KEYS},
	{"wrong keys, atomic", SWAP, REFUSED, .how = BOTH_KEYS},
	{"atomic with room for 4 bytes", ADD, TOO_LONG, .len = 4},
	{"longer than a message", WRITE, TOO_LONG, .how = TWO_GB},
	{"local range", SEND, PROTECTED, .how = LOCAL_RANGE},
	{"no outgoing reads", READ, IBV_WC_LOC_QP_OP_ERR, .how = NO_RD},
	{"no incoming reads", READ, INVALID, .how = NO_DEST_RD},
	{"send too long", SEND, INVALID, .len = 65, .recv = TOO_LONG},
	{"send of packets too long", SEND, INVALID, .len = 3000, .recv = TOO_LONG},
	{"receive buffer not ours", SEND, IBV_WC_REM_OP_ERR, .how = RECV_KEY, .recv = PROTECTED},
};
/* clang-format on */

/* What the responder tells its program: nothing, if a receive request's completion does. */
static void expect_events(void)
{
	bool told = !fault.recv && (fault.status == REFUSED || fault.status == INVALID);
	ck_assert_uint_eq(event_count, told);
	if (told)
		ck_assert_uint_eq(noted(fault.status == REFUSED ? IBV_EVENT_QP_ACCESS_ERR
								: IBV_EVENT_QP_REQ_ERR,
					b.qp),
				  1);
}

RNIC_TESTS(connected, fault_case, ROWS_OF(faults), fault = faults[_i],
	   opt.rd_atomic = fault.how == NO_RD ? 0 : 4,
	   opt.dest_rd_atomic = fault.how == NO_DEST_RD ? 0 : 4,
	   opt.qp_access = ALL_ACCESS & ~fault.qp_lacks)
{
	struct ibv_pd *pd = fault.how == OTHER_PD ? rnic_alloc_pd(b.ctx) : b.pd;
	struct ibv_mr *mr = rnic_reg_mr(pd, b.buf + 4096, 4096, ALL_ACCESS & ~fault.region_lacks);
	uint32_t len = fault.len ? fault.len : 8;
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = wr_make(&a, fault.opcode, sge, 0, len, &b, 4096 + fault.at);
	uint32_t rkey = fault.how == LKEY_AS_RKEY || fault.how == BOTH_KEYS ? mr->lkey : mr->rkey;
	if (fault.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP && fault.opcode != ATOMIC_W)
		wr.wr.atomic.rkey = rkey;
	else
		wr.wr.rdma.rkey = rkey;
	if (fault.how == DEAD_MR)
		ck_assert_int_eq(rnic_dereg_mr(mr), 0);
	if (fault.how == LOCAL_KEY || fault.how == BOTH_KEYS)
		sge[0].lkey = a.mr->rkey;
	if (fault.how == LOCAL_RANGE)
		sge[0].addr += BUF - 7;
	if (fault.how == TWO_GB) {
		wr.num_sge = 2;
		sge[0].length = 1u << 30;
		sge[1] = sge[0];
	}
	struct ibv_sge rsge = {(uintptr_t)b.buf, 64,
			       fault.how == RECV_KEY ? b.mr->rkey : b.mr->lkey};
	struct ibv_recv_wr rwr = {.wr_id = 50, .sg_list = &rsge, .num_sge = 1}, *rbad;
	for (; fault.recv && rwr.wr_id < 52; rwr.wr_id++)
		ck_assert_int_eq(ibv_post_recv(b.qp, &rwr, &rbad), 0);
	fill(a.buf, 4096, 10);
	uint8_t before[12288];
	memcpy(before, b.buf, sizeof(before));
	note_events();
	post(&a, &wr);
	if (fault.recv) {
		expect(b.rcq, 50, fault.recv);
		expect(b.rcq, 51, IBV_WC_WR_FLUSH_ERR);
	}
	if (len <= 1024)
		ck_assert_mem_eq(b.buf, before, sizeof(before));
	/* The responder's end fails with what it refuses, and not with a fault of the asker's. */
	rt_sleep(10 * US);
	expect_events();
	expect_failure(fault.status, fault.status == REFUSED || fault.status == INVALID ||
					     fault.status == IBV_WC_REM_OP_ERR);
}

/* Requests before the failing one complete, also when it fails locally. */
RNIC_TEST(connected, errors_in_order)
{
	struct ibv_sge sge;
	op(&a, IBV_WR_RDMA_WRITE, 0, 5000, &b, 0, 1, IBV_SEND_SIGNALED);
	op(&a, IBV_WR_RDMA_READ, 0, 5000, &b, 0, 2, IBV_SEND_SIGNALED);
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 8, &b, 0);
	sge.lkey = 1;
	post(&a, &wr);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	expect_failure(IBV_WC_LOC_PROT_ERR, false);
}

RNIC_TESTS(connected, dereg, 2, source.answer = hold_land, opt.hw.rkey_reuse = _i)
{
	struct ibv_mr *mr = rnic_reg_mr(b.pd, b.buf + 8192, 4096, ALL_ACCESS);
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 256, &b, 8192);
	wr.wr.rdma.rkey = mr->rkey;
	uint32_t old = mr->rkey;
	fill(a.buf, 256, 11);
	post_done(&a, &wr, IBV_WC_SUCCESS);
	/* Its second line is held; deregistration waits for it. */
	ck_assert_mem_ne(b.buf + 8192, a.buf, 256);
	ck_assert_int_eq(rnic_dereg_mr(mr), 0);
	ck_assert_mem_eq(b.buf + 8192, a.buf, 256);
	mr = rnic_reg_mr(b.pd, b.buf + 8192, 4096, ALL_ACCESS);
	ck_assert_int_eq(mr->rkey == old, opt.hw.rkey_reuse);
	a.buf[0]++;
	post_done(&a, &wr, opt.hw.rkey_reuse ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	rt_sleep(20 * US);
	ck_assert_int_eq(b.buf[8192] == a.buf[0], opt.hw.rkey_reuse);
}

/* Waiting for a receiver is no retry, nor is what follows it out of sequence. */
RNIC_TEST(connected, rnr, opt.retry_cnt = 0)
{
	uint64_t start = rt_now();
	op(&a, IBV_WR_SEND, 0, 8, &b, 0, 1, IBV_SEND_SIGNALED);
	op(&a, IBV_WR_SEND, 8, 8, &b, 0, 2, IBV_SEND_SIGNALED);
	rt_sleep(500 * US);
	ck_assert(empty(a.scq));
	recv_post(&b, 0, 8, 21);
	recv_post(&b, 64, 8, 22);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	expect(b.rcq, 21, IBV_WC_SUCCESS);
	expect(b.rcq, 22, IBV_WC_SUCCESS);
	/* WRITE_WITH_IMM needs one too, and must not write before it has it. */
	a.buf[0] = 77;
	op(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1, &b, 999, 3, IBV_SEND_SIGNALED);
	rt_sleep(100 * US);
	ck_assert_uint_eq(b.buf[999], 0);
	recv_post(&b, 0, 0, 23);
	expect(b.rcq, 23, IBV_WC_SUCCESS);
	ck_assert_uint_eq(b.buf[999], 77);
	ck_assert_uint_lt(rt_now() - start, MS);
}

RNIC_TEST(connected, rnr_exhausted, opt.rnr_retry = 3)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND, &sge, 0, 8, &b, 0);
	uint64_t start = rt_now();
	post(&a, &wr);
	expect_failure(IBV_WC_RNR_RETRY_EXC_ERR, false);
	ck_assert_uint_ge(rt_now() - start, 3 * 10 * US);
	ck_assert_uint_lt(rt_now() - start, 4 * 10 * US + 20 * US);
}

RNIC_TEST(connected, retry_exhausted, opt.retry_cnt = 3)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, 0, 8, &b, 0);
	uint64_t start = rt_now(), timeout = 4096ull << opt.timeout;
	ck_assert_int_eq(rnic_destroy_qp(b.qp), 0);
	post_done(&a, &wr, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_ge(rt_now() - start, 4 * timeout);
	ck_assert_uint_lt(rt_now() - start, 5 * timeout);
}

RNIC_TEST(connected, drain)
{
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, 1, IBV_SEND_SIGNALED);
	rt_sleep(US / 2);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_SQD, 0), 0);
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, 2, IBV_SEND_SIGNALED);
	struct ibv_qp_attr attr;
	ck_assert_int_eq(rnic_query_qp(a.qp, &attr, IBV_QP_STATE, NULL), 0);
	ck_assert_uint_eq(attr.sq_draining, 1);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	rt_sleep(100 * US);
	ck_assert_int_eq(rnic_query_qp(a.qp, &attr, IBV_QP_STATE, NULL), 0);
	ck_assert_uint_eq(attr.sq_draining, 0);
	ck_assert(empty(a.scq));
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_RTS, 0), 0);
	expect(a.scq, 2, IBV_WC_SUCCESS);
}

/* --- a bad link --- */

/* Lose the atomic's answer, twice. */
static unsigned lose_answers(const struct choice_point *at, unsigned n)
{
	if (at->kind == CHOICE_PACKET && !strcmp(at->who->name, "server/qp1") && at->c <= 2)
		return PACKET_LOSE;
	return at->kind == CHOICE_PACKET && !strcmp(at->who->name, "c1/qp1") ? PACKET_DUPLICATE : 0;
}

RNIC_TEST(connected, atomic_once, source.answer = lose_answers)
{
	atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 1);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word(&b, 128), 1);
	ck_assert_uint_eq(word(&a, 64), 0);
	for (uint64_t i = 0; i < 20; i++) {
		atomic(IBV_WR_ATOMIC_CMP_AND_SWP, i + 1, i + 2, i);
		expect(a.scq, i, IBV_WC_SUCCESS);
		ck_assert_uint_eq(word(&a, 64), i + 1);
	}
	ck_assert_uint_eq(word(&b, 128), 21);
}

/* The same; requests come once each, so that the repeated one comes late. */
ANSWER(lose_answers_only, !strcmp(at->who->name, "server/qp1"), lose_answers(at, n))

/* While its answer gets lost and its request comes again, an atomic write is not done a second
 * time. */
RNIC_TEST(connected, atomic_write_once, source.answer = lose_answers_only)
{
	set_word(&a, 64, 1);
	op(&a, IBV_WR_ATOMIC_WRITE, 64, 8, &b, 128, 1, IBV_SEND_SIGNALED);
	while (!word(&b, 128))
		rt_sleep(US);
	set_word(&b, 128, 2);
	ck_assert(empty(a.scq));
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word(&b, 128), 2);
	for (uint64_t i = 0; i < 20; i++) {
		op(&a, i % 2 ? IBV_WR_ATOMIC_WRITE : IBV_WR_FLUSH, 64, 8, &b, 128, i,
		   IBV_SEND_SIGNALED);
		expect(a.scq, i, IBV_WC_SUCCESS);
	}
}

#define SOAK_OPS 400
#define SLOT	 6144
#define SLOTS	 16
static uint8_t shadow[SLOTS * SLOT]; /* what b's region must hold */
static uint8_t want_read[SOAK_OPS][32];

struct soak {
	uint64_t state;
	unsigned sent, received, done, posted, adds;
	bool fenced;
};

static void soak_receive(struct soak *soak)
{
	struct ibv_wc wc;
	while (ibv_poll_cq(b.rcq, 1, &wc) == 1) {
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		/* In order, once each; its length and bytes follow from its number. */
		uint64_t n = soak->received++, seed = n;
		uint32_t len = (uint32_t)(random_next(&seed) % SLOT);
		ck_assert_uint_eq(be32toh(wc.imm_data), n);
		ck_assert_uint_eq(wc.byte_len, len);
		uint8_t want[SLOT];
		fill(want, len, n);
		ck_assert_mem_eq(b.buf + (SLOTS + wc.wr_id) * SLOT, want, len);
		recv_post(&b, (SLOTS + wc.wr_id) * SLOT, SLOT, wc.wr_id);
	}
}

static void soak_post(struct soak *soak)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	size_t mine = soak->posted % 16 * SLOT, off;
	uint32_t len;
	uint64_t seed;
	switch (random_next(&soak->state) % 6) {
	case 0:
		seed = soak->sent;
		len = (uint32_t)(random_next(&seed) % SLOT);
		fill(a.buf + mine, len, soak->sent);
		wr = wr_make(&a, IBV_WR_SEND_WITH_IMM, &sge, mine, len, &b, 0);
		wr.imm_data = htobe32(soak->sent++);
		break;
	case 1:
		off = random_next(&soak->state) % (SLOTS * SLOT - SLOT) + 64;
		len = (uint32_t)(random_next(&soak->state) % (SLOT - 64));
		fill(a.buf + mine, len, random_next(&soak->state));
		memcpy(shadow + off, a.buf + mine, len);
		wr = wr_make(&a, IBV_WR_RDMA_WRITE, &sge, mine, len, &b, off);
		if (soak->fenced)
			wr.send_flags |= IBV_SEND_FENCE;
		soak->fenced = false;
		break;
	case 2:
		off = random_next(&soak->state) % (SLOTS * SLOT - SLOT) + 64;
		wr = wr_make(&a, IBV_WR_RDMA_READ, &sge, mine, SLOT - 64, &b, off);
		memset(a.buf + mine, 0xee, SLOT);
		memcpy(want_read[soak->posted], shadow + off, 16);
		memcpy(want_read[soak->posted] + 16, shadow + off + SLOT - 64 - 16, 16);
		soak->fenced = true;
		break;
	case 3:
		wr = wr_make(&a, IBV_WR_FLUSH, &sge, 0,
			     (uint32_t)(random_next(&soak->state) % SLOT), &b, 0);
		break;
	case 4:
		wr = wr_make(&a, IBV_WR_ATOMIC_WRITE, &sge, mine, 8, &b, 8);
		fill(a.buf + mine, 8, random_next(&soak->state));
		memcpy(shadow + 8, a.buf + mine, 8);
		break;
	default:
		wr = wr_make(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, mine, 8, &b, 0);
		wr.wr.atomic.compare_add = 1;
		memcpy(want_read[soak->posted], &(uint64_t){soak->adds++}, 8);
	}
	wr.wr_id = soak->posted++;
	post(&a, &wr);
}

static void soak_body(void)
{
	struct soak soak = {.state = source.state};
	for (unsigned i = 0; i < 8; i++)
		recv_post(&b, (SLOTS + i) * SLOT, SLOT, i);
	memset(shadow, 0, sizeof(shadow));
	while (soak.done < SOAK_OPS || soak.received < soak.sent) {
		struct ibv_wc wc;
		bool busy = false;
		while (soak.posted < SOAK_OPS && soak.posted - soak.done < 12) {
			soak_post(&soak);
			busy = true;
		}
		while (ibv_poll_cq(a.scq, 1, &wc) == 1) {
			const uint8_t *mine = a.buf + wc.wr_id % 16 * SLOT;
			ck_assert_msg(wc.status == IBV_WC_SUCCESS, "%s",
				      rnic_wc_status_str(wc.status));
			ck_assert_uint_eq(wc.wr_id, soak.done++);
			if (wc.opcode == IBV_WC_FETCH_ADD)
				ck_assert_mem_eq(mine, want_read[wc.wr_id], 8);
			if (wc.opcode == IBV_WC_RDMA_READ) {
				ck_assert_mem_eq(mine, want_read[wc.wr_id], 16);
				ck_assert_mem_eq(mine + SLOT - 64 - 16, want_read[wc.wr_id] + 16,
						 16);
			}
			busy = true;
		}
		soak_receive(&soak);
		if (!busy)
			rt_yield();
	}
	sim_source(sim, NULL);
	rt_sleep(100 * MS); /* stragglers */
	soak_receive(&soak);
	ck_assert_uint_eq(soak.received, soak.sent);
	memcpy(shadow, &(uint64_t){soak.adds}, 8);
	ck_assert_mem_eq(b.buf, shadow, sizeof(shadow));
	ck_assert_uint_gt(source.asked[CHOICE_PACKET], SOAK_OPS);
}

TESTS(soak, 30)
{
	source.state = (uint64_t)_i * 1000 + 1;
	source.permille[CHOICE_PACKET] = 20 + (unsigned)_i % 4 * 40;
	source.permille[CHOICE_LAND] = _i % 2 ? 10 : 0;
	source.permille[CHOICE_FETCH] = _i % 2 ? 10 : 0;
	source.permille[CHOICE_ORDER] = 500;
	opt.hw.dma_order = _i % 3 ? DMA_LEFT : DMA_ANY;
	opt.hw.ack_early = _i % 5 != 0;
	opt.hw.transport = _i % 7 == 0 ? TRANSPORT_IWARP : TRANSPORT_IB;
	opt.mtu = (enum ibv_mtu)(IBV_MTU_256 + _i % 5);
	opt.psn = 0xffff00;
	opt.timeout = 6;
	run_connected(soak_body);
}

/* --- persistent memory --- */

RNIC_TEST(pm, persistent_memory)
{
	fill(a.buf, 5000, 12);
	/* Unaligned, several packets: 5000 bytes from 100 on touch lines 1 to 79. */
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 5000, &b, 100);
	op_done(&a, IBV_WR_RDMA_READ, 10000, 5000, &b, 100);
	ck_assert_mem_eq(a.buf + 10000, a.buf, 5000);
	ck_assert_mem_eq(pmem_base(pool) + 100, a.buf, 5000);
	ck_assert_uint_eq(pmem_dirty(pool), 79);
	ck_assert_uint_eq(pmem_line_versions(pool, 1), 1);
	/* An atomic, a receive buffer, and b's own READ and SEND with their data in PM. */
	set_word(&b, 128, 40);
	atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 3);
	expect(a.scq, 3, IBV_WC_SUCCESS);
	ck_assert_uint_eq(word(&b, 128), 42);
	recv_post(&b, 8192, 64, 4);
	op(&a, IBV_WR_SEND, 0, 64, &b, 0, 5, 0);
	expect(b.rcq, 4, IBV_WC_SUCCESS);
	ck_assert_mem_eq(pmem_base(pool) + 8192, a.buf, 64);
	op_done(&b, IBV_WR_RDMA_READ, 16384, 3000, &a, 7);
	ck_assert_mem_eq(pmem_base(pool) + 16384, a.buf + 7, 3000);
	recv_post(&a, 20000, 3000, 7);
	op(&b, IBV_WR_SEND, 16384, 3000, &a, 0, 8, IBV_SEND_SIGNALED);
	expect(a.rcq, 7, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a.buf + 20000, a.buf + 7, 3000);
	/* A region may not be half in the pool. */
	NOT_MADE(rnic_reg_mr(b.pd, pmem_base(pool) + BUF - 64, 128, ALL_ACCESS), EFAULT);
}

/* --- doorbells after stores --- */

ANSWER(hold_first_store, at->kind == CHOICE_BUFFER && at->a == 1, DELAY_5MS)

static void store_word(size_t off, uint64_t value)
{
	pmem_cpu_copy(pool, off, &value, 0, sizeof(value), 0);
}

static uint64_t word_of_a(size_t off)
{
	uint64_t value;
	memcpy(&value, a.buf + off, sizeof(value));
	return value;
}

/* A doorbell waits for the store before it; one that was rung before says nothing of requests
 * after it. */
RNIC_TEST(pm, doorbell, opt.hw.store_buffer = 4, source.answer = hold_first_store)
{
	op(&b, IBV_WR_RDMA_WRITE, 64, 64, &a, 0, 1, IBV_SEND_SIGNALED);
	store_word(0, 11);
	op(&b, IBV_WR_RDMA_WRITE, 0, 8, &a, 256, 2, IBV_SEND_SIGNALED);
	op(&b, IBV_WR_RDMA_WRITE, 0, 8, &a, 264, 3, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	store_word(0, 22);
	expect(b.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_lt(rt_now(), 1 * MS);
	rt_sleep(1 * MS);
	ck_assert(empty(b.scq));
	ck_assert_uint_eq(word_of_a(256), 0);
	rt_sleep(5 * MS);
	expect(b.scq, 2, IBV_WC_SUCCESS);
	expect(b.scq, 3, IBV_WC_SUCCESS);
	/* Inline data are what the CPU saw at the post; others are gathered later. */
	ck_assert_uint_eq(word_of_a(256), 22);
	ck_assert_uint_eq(word_of_a(264), 11);
}

/* The queue pair fails, and is used again, while the doorbell is on its way. */
RNIC_TEST(pm, late_doorbell, opt.hw.store_buffer = 4, source.answer = hold_first_store)
{
	store_word(0, 11);
	op(&b, IBV_WR_RDMA_WRITE, 0, 8, &a, 256, 2, IBV_SEND_SIGNALED);
	ck_assert_int_eq(modify(&b, &a, IBV_QPS_ERR, 0), 0);
	expect(b.scq, 2, IBV_WC_WR_FLUSH_ERR);
	reconnect();
	rt_sleep(6 * MS);
	ck_assert(empty(b.scq));
	ck_assert_uint_eq(word_of_a(256), 0);
	op_done(&b, IBV_WR_RDMA_WRITE, 0, 8, &a, 512);
	ck_assert_uint_eq(word_of_a(512), 11);
	ck_assert_uint_eq(word_of_a(256), 0);
}

/* What a FLUSH, or what is used in its place, makes durable: nothing drains by itself here. */
static struct durability {
	const char *name;
	struct hardware hw;
	enum ibv_wr_opcode opcode;
	uint8_t type, level;
	uint32_t off, len;
	unsigned dirty; /* of lines 4, 5 and 16, a WRITE each, and line 32, a receive buffer */
} durability;
#define DMP	.domain = DOMAIN_DMP, .mtu = 4096, .iio_in_mhp = true
#define MHP	.domain = DOMAIN_MHP, .mtu = 4096
#define WSP	.domain = DOMAIN_WSP, .mtu = 4096
#define OFF	.flush_covers_send = true
#define VISIBLE IBV_FLUSH_GLOBAL
#define DURABLE IBV_FLUSH_PERSISTENT
#define RANGE	IBV_FLUSH_RANGE
#define MR	IBV_FLUSH_MR
#define BOTH	(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)
/* clang-format off */
static const struct durability durabilities[] = {
	{"range", {DMP, OFF}, FLUSH, BOTH, RANGE, 256, 128, 1},
	{"a byte of a line", {DMP, OFF}, FLUSH, BOTH, RANGE, 383, 1, 2},
	{"a byte beside it", {DMP, OFF}, FLUSH, BOTH, RANGE, 384, 1, 3},
	{"nothing", {DMP, OFF}, FLUSH, BOTH, RANGE, 300, 0, 3},
	{"range without sends", {DMP}, FLUSH, BOTH, RANGE, 256, 128, 2},
	{"send in the range", {DMP}, FLUSH, BOTH, RANGE, 256, 2048, 1},
	{"region", {DMP, OFF}, FLUSH, BOTH, MR, 0, 0, 0},
	{"region, whatever the range", {DMP, OFF}, FLUSH, BOTH, MR, BUF, 77, 0},
	{"persistence alone", {DMP, OFF}, FLUSH, DURABLE, MR, 0, 0, 0},
	{"visibility alone", {DMP, OFF}, FLUSH, VISIBLE, MR, 0, 0, 4},
	{"ddio", {DMP, .ddio = DDIO_ON, OFF}, FLUSH, BOTH, MR, 0, 0, 4},
	{"buffers outside of mhp", {MHP, OFF}, FLUSH, BOTH, MR, 0, 0, 0},
	{"buffers outside, no flush", {MHP, OFF}, FLUSH, VISIBLE, MR, 0, 0, 4},
	{"mhp", {MHP, .iio_in_mhp = true}, FLUSH, VISIBLE, MR, 0, 0, 0},
	{"wsp", {WSP}, FLUSH, VISIBLE, MR, 0, 0, 0},
	{"read", {DMP}, READ, 0, 0, 8192, 8, 0},
	{"read of nothing", {DMP}, READ, 0, 0, 8192, 0, 4},
	{"read, ddio", {DMP, .ddio = DDIO_ON}, READ, 0, 0, 8192, 8, 4},
	{"atomic write", {DMP}, ATOMIC_W, 0, 0, 256, 8, 4},
	{"commit", {DMP, .ddio = DDIO_ON, OFF}, TM_WR_COMMIT, 0, 0, 256, 128, 2},
	{"commit, send in the range", {DMP, OFF}, TM_WR_COMMIT, 0, 0, 256, 2048, 1},
};
/* clang-format on */

ANSWER(never_drain, at->kind == CHOICE_DRAIN, n - 1)

static unsigned lose_answers_never_drain(const struct choice_point *at, unsigned n)
{
	return at->kind == CHOICE_DRAIN ? n - 1 : lose_answers_only(at, n);
}

RNIC_TESTS(pm, flush_durability, ROWS_OF(durabilities), durability = durabilities[_i],
	   opt.hw = durability.hw, source.answer = never_drain)
{
	struct ibv_sge sge;
	fill(a.buf, 512, 13);
	recv_post(&b, 2048, 64, 3);
	op(&a, IBV_WR_RDMA_WRITE, 0, 128, &b, 256, 1, 0);
	op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 1024, 2, 0);
	op(&a, IBV_WR_SEND, 0, 64, &b, 0, 4, 0);
	struct ibv_send_wr wr = wr_make(&a, durability.opcode, &sge, 4096, durability.len, &b,
					durability.off);
	if (durability.opcode == IBV_WR_FLUSH)
		flush_wr(&wr, b.mr->rkey, (uintptr_t)b.buf + durability.off, durability.len,
			 durability.type, durability.level);
	if (durability.opcode == TM_WR_COMMIT) {
		wr.num_sge = 0;
		tm_commit_wr(&wr, b.mr->rkey, (uintptr_t)b.buf + durability.off, durability.len);
	}
	post(&a, &wr);
	/* After it: what comes later is not covered. */
	op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 4096, 5, IBV_SEND_FENCE);
	op(&a, IBV_WR_RDMA_WRITE, 0, 0, &b, 4096, 6, IBV_SEND_SIGNALED);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	expect(a.scq, 6, IBV_WC_SUCCESS);
	rt_sleep(10 * US);
	bool visible_is_durable = durability.hw.domain == DOMAIN_WSP || durability.hw.iio_in_mhp;
	if (durability.hw.domain == DOMAIN_DMP)
		visible_is_durable = false;
	ck_assert_msg(pmem_dirty(pool) == durability.dirty + !visible_is_durable, "%s: %u lines",
		      durability.name, pmem_dirty(pool) - !visible_is_durable);
}

/* A FLUSH whose answers get lost is not done again: it does not cover what came after it. */
RNIC_TEST(pm, flush_once, opt.hw.ddio = DDIO_OFF, source.answer = lose_answers_never_drain)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_FLUSH, &sge, 0, 8, &b, 0);
	fill(a.buf, 64, 14);
	op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 0, 1, 0);
	flush_wr(&wr, b.mr->rkey, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	post(&a, &wr);
	op(&a, IBV_WR_RDMA_WRITE, 0, 64, &b, 512, 2, IBV_SEND_SIGNALED);
	rt_sleep(50 * US);
	ck_assert(empty(a.scq));
	ck_assert_mem_eq(b.buf + 512, a.buf, 64);
	ck_assert_uint_eq(pmem_dirty(pool), 1);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	ck_assert_uint_eq(pmem_dirty(pool), 1);
	ck_assert_uint_eq(pmem_dirty_line(pool, 0), 8);
}

/* A region that goes while a FLUSH of it waits. */
RNIC_TEST(connected, flush_dereg, source.answer = hold_message, held_message = 1)
{
	struct ibv_mr *mr = rnic_reg_mr(b.pd, b.buf + 4096, 4096, ALL_ACCESS);
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_FLUSH, &sge, 0, 8, &b, 4096);
	flush_wr(&wr, mr->rkey, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
	post(&a, &wr);
	rt_sleep(10 * US);
	ck_assert(empty(a.scq));
	ck_assert_int_eq(rnic_dereg_mr(mr), 0);
	expect_failure(IBV_WC_REM_ACCESS_ERR, true);
}

/* --- the story --- */

static char story[4096];

static void tracer(void *arg, const struct sim *world, const struct actor *who, uintptr_t pc,
		   const struct traced *about, const char *text)
{
	size_t at = strlen(story);
	if (*text)
		snprintf(story + at, sizeof(story) - at, "%s: %s\n", who->name, text);
}

static unsigned story_answer(const struct choice_point *at, unsigned n)
{
	if (at->kind == CHOICE_PACKET && at->a == 1 && at->b == 1 && at->c == 1)
		return PACKET_LOSE;
	return at->kind == CHOICE_LAND && at->c == 2 ? 3 : 0;
}

RNIC_TEST(connected, the_story, source.answer = story_answer)
{
	sim_set_tracer(sim, tracer, NULL);
	op_done(&a, IBV_WR_RDMA_WRITE, 0, 128, &b, 64);
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, BUF, 2, IBV_SEND_SIGNALED);
	expect(a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	rt_sleep(10 * US); /* what was let in lands, whatever became of the connection */
	ck_assert_str_eq(story, "c1: c1/qp1: post WRITE, 128 bytes, key 0x1000101 + 0x40\n"
				"c1/qp1: WRITE packet, PSN 100, 128 bytes: lost\n"
				"c1/qp1: timeout: retransmits from PSN 100\n"
				"server/qp1: WRITE packet, PSN 100, line 2: delayed\n"
				"c1: c1/qp1: post WRITE, 8 bytes, key 0x1000101 + 0x40000\n"
				"server/qp1: NAK, remote access error, PSN 101\n"
				"c1/qp1: work request completes: remote access error\n"
				"server/qp1: WRITE packet, PSN 100, line 2: goes on\n");
}

/* --- names and sameness --- */

static uint64_t first_hash;

static void label_body(void)
{
	struct op_label put = {.client = 1, .kind = OP_PUT, .nth = 2};
	actor_label(sim_actor(sim), put);
	recv_post(&b, 0, 64, 1);
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 512, 1, 0);
	op_done(&a, IBV_WR_SEND, 0, 8, &b, 0);
	expect(b.rcq, 1, IBV_WC_SUCCESS);
}

static unsigned check_names(const struct choice_point *at, unsigned n)
{
	static int requests;
	if (at->kind == CHOICE_PACKET && !strcmp(at->who->name, "c1/qp1")) {
		ck_assert_uint_eq(at->op.client, 1);
		ck_assert_uint_eq(at->op.kind, OP_PUT);
		ck_assert_uint_eq(at->op.nth, 2);
		ck_assert_uint_eq(at->occurrence, 1);
		ck_assert_uint_eq(at->a, (unsigned)++requests);
		ck_assert_uint_eq(at->b, 1);
		ck_assert_uint_eq(at->c, 1);
	}
	if (at->kind == CHOICE_LAND)
		ck_assert_str_eq(at->who->name, "server/qp1");
	return 0;
}

TEST(names)
{
	source.answer = check_names;
	run_connected(label_body);
	ck_assert_uint_eq(source.asked[CHOICE_PACKET], 4);
	ck_assert_uint_eq(source.asked[CHOICE_LAND], 2);
}

/* A traced store is read late, but before the task posts, and under the label that it had. */
static bool stored;
static struct op_label stored_for;

static void commit_pending(void *arg)
{
	if (!stored)
		return;
	stored = false;
	stored_for = sim_actor(sim)->op;
	strcat(story, "stored\n");
}

static void expect_poll(unsigned nth, unsigned occurrence)
{
	const struct actor *actor = sim_actor(sim);
	struct op_label before = actor->op;
	struct ibv_wc wc[4];
	stored = true;
	ck_assert_int_eq(ibv_poll_cq(b.rcq, 4, wc), 1);
	ck_assert_uint_eq(wc[0].wr_id, nth);
	ck_assert_uint_eq(actor->op.nth, nth);
	ck_assert_uint_eq(actor->occurrence, occurrence);
	ck_assert(!stored && op_label_equal(stored_for, before));
}

/* Two messages are there; each is taken alone, and gives the work that follows its name. */
static void takes_messages(void *arg)
{
	rt_sleep(100 * US);
	expect_poll(1, 1);
	expect_poll(2, 1);
	ck_assert(empty(b.rcq));
	sim_stop(sim, SIM_DONE);
}

RNIC_TEST(connected, a_server_takes_one_message_at_a_time)
{
	struct op_label put = {.client = 1, .kind = OP_PUT};
	sim_set_tracer(sim, tracer, NULL);
	sim_set_commit(sim, commit_pending, NULL);
	ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, "", takes_messages, NULL), 0);
	for (put.nth = 1; put.nth <= 2; put.nth++) {
		recv_post(&b, 0, 64, put.nth);
		actor_label(sim_actor(sim), put);
		stored = true;
		story[0] = '\0';
		op(&a, IBV_WR_SEND, 0, 8, &b, 0, put.nth, 0);
		ck_assert_str_eq(story, "stored\nc1: c1/qp1: post SEND, 8 bytes\n");
	}
	rt_sleep(1000 * US);
}

static void hash_body(void)
{
	soak_body();
	uint64_t hash = sim_hash(sim);
	if (!first_hash)
		first_hash = hash;
	ck_assert_uint_eq(first_hash, hash);
}

TEST(same_run_same_hash)
{
	for (int i = 0; i < 2; i++) {
		source.state = 5;
		source.permille[CHOICE_PACKET] = 50;
		opt.timeout = 6;
		run_connected(hash_body);
	}
}

RUN_TESTS(setup_options, NULL)
