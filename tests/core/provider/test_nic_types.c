/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable queue pairs, address handles and shared receive queues in real time, as a program
 * meets them: through libibverbs' functions, with asynchronous events, two devices that one process
 * has opened.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

#define BUF    (4u << 20)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static void setup(void)
{
	open_side(&a, BUF, ACCESS);
	open_side(&b, BUF, ACCESS);
	a.attr.path_mtu = b.attr.path_mtu = IBV_MTU_4096;
}

static void send_bytes(struct side *s, uint32_t len, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_of(s, IBV_WR_SEND, &sge, len, 1);

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	post_wr(s, &wr);
}

/* --- */

TEST(datagrams)
{
	struct ibv_ah_attr path = path_to(&b.gid), back;
	struct ibv_wc wc;

	connect_both(IBV_QPT_UD);
	path.grh.traffic_class = 0x48;
	struct ibv_ah *ah = ibv_create_ah(a.pd, &path);
	ck_assert_ptr_nonnull(ah);
	ck_assert_int_eq(ibv_dealloc_pd(a.pd), EBUSY);
	give(&b, 200, 7);
	memcpy(a.buf, "to b", 4);
	send_bytes(&a, 4, ah, b.qp->qp_num);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, GRH + 4);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_GRH);
	ck_assert_mem_eq(b.buf + GRH, "to b", 4);
	ck_assert_int_eq(ibv_init_ah_from_wc(b.context, 1, &wc, (struct ibv_grh *)b.buf, &back), 0);
	ck_assert_mem_eq(&back.grh.dgid, &a.gid, sizeof(a.gid));
	/* An IPv4 header, over UDP, with its type of service; no service level for the way back. */
	ck_assert_uint_eq(wc.sl, 10);
	ck_assert_uint_eq(back.sl, 0);
	ck_assert_uint_eq(b.buf[GRH / 2 + 1], 0x48);
	ck_assert_uint_eq(back.grh.traffic_class, 0x48);
	/* And back, by what came along. */
	struct ibv_ah *reply = ibv_create_ah_from_wc(b.pd, &wc, (struct ibv_grh *)b.buf, 1);
	ck_assert_ptr_nonnull(reply);
	give(&a, 200, 8);
	send_bytes(&b, 10, reply, wc.src_qp);
	expect(b.scq, 1, IBV_WC_SUCCESS);
	wc = wait_for(a.rcq);
	ck_assert_uint_eq(wc.byte_len, GRH + 10);
	ck_assert_uint_eq(wc.src_qp, b.qp->qp_num);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	ck_assert_int_eq(ibv_destroy_ah(reply), 0);
	/* A GID of no process. */
	path.grh.dgid.raw[15] ^= 0x55;
	NOT_MADE(ibv_create_ah(a.pd, &path), ENETUNREACH);
}

/* Much more than the link holds, to a receiver that does nothing but poll: nothing is lost on the
 * way. */
TEST(long_message)
{
	connect_both(IBV_QPT_UC);
	for (size_t i = 0; i < BUF; i += 4)
		memcpy(a.buf + i, &i, 4);
	for (unsigned i = 0; i < 8; i++) {
		memset(b.buf, 0, BUF);
		give(&b, BUF, i);
		send_bytes(&a, BUF, NULL, 0);
		expect(b.rcq, i, IBV_WC_SUCCESS);
		expect(a.scq, 1, IBV_WC_SUCCESS);
		ck_assert_mem_eq(a.buf, b.buf, BUF);
	}
}

/* The memory of a receive request, of a WRITE, is gone when the message comes. */
TESTS(gone, 3)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_UC};
	struct ibv_ah_attr path = path_to(&b.gid);
	struct ibv_ah *ah = NULL;
	struct ibv_mr *mr = b.mr;
	uint8_t *buf = b.buf, *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	connect_both(types[_i]);
	if (types[_i] == IBV_QPT_UD)
		ah = ibv_create_ah(a.pd, &path);
	b.buf = page;
	b.mr = ibv_reg_mr(b.pd, page, 4096, ACCESS);
	ck_assert_ptr_nonnull(b.mr);
	if (_i < 2)
		give(&b, 1000, 1);
	ck_assert_int_eq(munmap(page, 4096), 0);
	if (_i < 2)
		send_bytes(&a, 100, ah, b.qp->qp_num);
	else
		post_op(&a, IBV_WR_RDMA_WRITE, 8, 1);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	if (_i < 2)
		expect(b.rcq, 1, IBV_WC_LOC_PROT_ERR);
	else
		expect_event(&b, IBV_EVENT_QP_ACCESS_ERR, b.qp);
	ck_assert_int_eq(b.qp->state, IBV_QPS_ERR);
	ck_assert_int_eq(a.qp->state, IBV_QPS_RTS);
	b.buf = buf;
	b.mr = mr;
}

/* --- shared receive queues --- */

static void make_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};

	b.srq = ibv_create_srq(b.pd, &init);
	ck_assert_ptr_nonnull(b.srq);
}

TEST(shared_queue)
{
	struct ibv_srq_attr attr = {.max_wr = 16, .srq_limit = 1};
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_async_event event;
	uint32_t number;

	make_srq();
	connect_both(IBV_QPT_RC);
	ck_assert_int_eq(ibv_get_srq_num(b.srq, &number), 0);
	ck_assert_int_eq(ibv_post_recv(b.qp, &wr, &bad), EINVAL);
	give(&b, 64, 1);
	ck_assert_int_eq(ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR), 0);
	send_bytes(&a, 8, NULL, 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(b.rcq, 1, IBV_WC_SUCCESS);
	expect_event(&b, IBV_EVENT_SRQ_LIMIT_REACHED, b.srq);
	ck_assert_int_eq(ibv_query_srq(b.srq, &attr), 0);
	ck_assert(attr.max_wr == 16 && attr.max_sge == 1 && attr.srq_limit == 0);
	/* Late. */
	send_bytes(&a, 8, NULL, 0);
	nothing_in(a.scq);
	give(&b, 64, 2);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(b.rcq, 2, IBV_WC_SUCCESS);
	/* The end. */
	ck_assert_int_eq(ibv_destroy_srq(b.srq), EBUSY);
	to_state(&b, IBV_QPS_ERR, 0);
	event = next_event(&b);
	ck_assert_int_eq(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	ck_assert_ptr_eq(event.element.qp, b.qp);
	ibv_ack_async_event(&event);
	ck_assert_int_eq(ibv_destroy_qp(b.qp), 0);
	ck_assert_int_eq(ibv_destroy_srq(b.srq), 0);
}

static atomic_bool acknowledged;

static void *acknowledge_later(void *arg)
{
	struct timespec pause = {.tv_nsec = 100000000};

	nanosleep(&pause, NULL);
	acknowledged = true;
	ibv_ack_async_event(arg);
	return NULL;
}

START_TEST(destroy_waits)
{
	struct ibv_srq_attr attr = {.srq_limit = 1};
	struct ibv_async_event event;
	pthread_t thread;

	make_srq();
	connect_both(IBV_QPT_RC);
	give(&b, 64, 1);
	ck_assert_int_eq(ibv_modify_srq(b.srq, &attr, IBV_SRQ_LIMIT), 0);
	send_bytes(&a, 8, NULL, 0);
	expect(b.rcq, 1, IBV_WC_SUCCESS);
	while ((event = next_event(&b)).event_type != IBV_EVENT_SRQ_LIMIT_REACHED)
		ibv_ack_async_event(&event);
	ck_assert_int_eq(ibv_destroy_qp(b.qp), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, acknowledge_later, &event), 0);
	ck_assert_int_eq(ibv_destroy_srq(b.srq), 0);
	ck_assert(acknowledged);
	pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = listed_suite(setup, NULL);
	TCase *tc = tcase_create("waits");
	tcase_set_tags(tc, "real_time");
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, destroy_waits);
	suite_add_tcase(suite, tc);
	return nic_fabric_run(suite);
}
