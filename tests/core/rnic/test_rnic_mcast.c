/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast: which queue pair may be attached to which group; who gets a datagram, and in what
 * state it has to be; what a link does to the copies. */
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/link.h"
#include "core/rnic/objects/qp.h"
#include "tests/core/rnic/rnic_world.h"

#define ALL	 0xffffffu
#define SENT	 IBV_SEND_SIGNALED
#define GRH	 40
#define TOGETHER 3 /* b's queue pairs */

static const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
static const union ibv_gid other = {.raw = {[10] = 0xff, 0xff, 224, 0, 0, 9}};
static const union ibv_gid ipv6 = {.raw = {0xff, 0x0e, [15] = 1}};
static struct side
	c[TOGETHER]; /* b, and more queue pairs of b's with completion queues of their own */
static struct ibv_ah *to_group;

static struct ibv_ah *path(const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 1}};
	return rnic_create_ah(a.pd, &attr);
}

static void make_datagrams(void)
{
	remake_qp(&a, IBV_QPT_UD, NULL);
	remake_qp(&b, IBV_QPT_UD, NULL);
	c[0] = b;
	for (unsigned i = 1; i < TOGETHER; i++) {
		c[i] = b;
		c[i].rcq = rnic_create_cq(b.ctx, 64, NULL, NULL, 0);
		struct ibv_qp_init_attr init = {.send_cq = b.scq,
						.recv_cq = c[i].rcq,
						.cap = {16, 16, 1, 1, 0},
						.qp_type = IBV_QPT_UD};
		c[i].qp = rnic_create_qp(b.pd, &init);
		ck_assert_ptr_nonnull(c[i].qp);
	}
	ready_side(&a, &b);
	for (unsigned i = 0; i < TOGETHER; i++)
		ready_side(&c[i], &a);
	to_group = path(&group);
	ck_assert_ptr_nonnull(to_group);
	sim_source(sim, source.answer || source.state ? &source.source : NULL);
}

static void send_to(struct ibv_ah *ah, uint32_t qpn, uint32_t len, uint64_t id)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_make(&a, IBV_WR_SEND, &sge, 0, len, &b, 0);
	wr.wr_id = id;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	post(&a, &wr);
	expect(a.scq, id, IBV_WC_SUCCESS);
}

/* After the flight. */
static bool has_none(struct side *s)
{
	rt_sleep(10 * US);
	return empty(s->rcq);
}

static void rules_body(void)
{
	make_datagrams();
	const union ibv_gid *groups[] = {&group, &other, &ipv6};
	union ibv_gid many = other;
	struct ibv_device_attr device;
	unsigned objects = rnic_objects(b.ctx);
	ck_assert_int_eq(rnic_query_device(b.ctx, &device), 0);
	ck_assert(device.max_mcast_grp == GROUPS && device.max_mcast_qp_attach == GROUP_MEMBERS);
	ck_assert_int_eq(rnic_attach_mcast(b.qp, &b.gid, 0), EINVAL);
	ck_assert_int_eq(rnic_detach_mcast(b.qp, &group, 0), EINVAL);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(rnic_attach_mcast(b.qp, groups[i], 0), 0);
		ck_assert_int_eq(rnic_attach_mcast(b.qp, groups[i], 7), 0); /* again: nothing */
	}
	ck_assert_int_eq(rnic_detach_mcast(c[1].qp, &group, 0), EINVAL);
	ck_assert_int_eq(rnic_attach_mcast(c[1].qp, &group, 0), 0);
	ck_assert_int_eq(rnic_destroy_qp(b.qp), EBUSY);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(rnic_detach_mcast(b.qp, groups[i], 0), 0);
	ck_assert_int_eq(rnic_detach_mcast(b.qp, &group, 0), EINVAL);
	ck_assert_int_eq(rnic_detach_mcast(c[1].qp, &group, 0), 0);
	ck_assert_ptr_null(net->groups);
	/* as many as there may be */
	for (unsigned i = 0; i < GROUPS; i++) {
		many.raw[13] = (uint8_t)(i >> 8);
		many.raw[14] = (uint8_t)i;
		ck_assert_int_eq(rnic_attach_mcast(b.qp, &many, 0), 0);
	}
	ck_assert_int_eq(rnic_attach_mcast(b.qp, &group, 0), ENOMEM);
	mcast_detach_all((struct rnic_qp *)b.qp);
	ck_assert_ptr_null(net->groups);
	ck_assert_int_eq(rnic_destroy_qp(b.qp), 0);
	ck_assert_int_eq(rnic_attach_mcast(b.qp, &group, 0), EINVAL);
	ck_assert_uint_eq(rnic_objects(b.ctx), objects - 1);
}

START_TEST(rules)
{
	run(task, rules_body);
}
END_TEST

/* Other services; a connection's path. */
static void connected_body(void)
{
	struct ibv_qp_attr attr = attr_for(&b);
	ck_assert_int_eq(rnic_attach_mcast(a.qp, &group, 0), EINVAL);
	ck_assert_int_eq(modify(&a, &b, IBV_QPS_INIT, MASK_INIT), 0);
	attr.qp_state = IBV_QPS_RTR;
	attr.ah_attr.grh.dgid = group;
	ck_assert_int_eq(rnic_modify_qp(a.qp, &attr, MASK_RTR | IBV_QP_STATE), EINVAL);
}

START_TEST(connections)
{
	run(task, connected_body);
}
END_TEST

static void copies_body(void)
{
	make_datagrams();
	struct ibv_ah *to_other = path(&other), *to_ipv6 = path(&ipv6);
	fill(a.buf, 600, 5);
	/* nobody */
	recv_post(&b, 0, 700, 1);
	send_to(to_group, ALL, 100, 1);
	ck_assert(has_none(&b));
	/* all of b's but one, and a itself; the same memory for each */
	ck_assert_int_eq(rnic_attach_mcast(a.qp, &group, 0), 0);
	for (unsigned i = 0; i < TOGETHER; i++) {
		if (i != 1)
			ck_assert_int_eq(rnic_attach_mcast(c[i].qp, &group, 0), 0);
		if (i)
			recv_post(&c[i], i * 1024, 700, i + 1);
	}
	recv_post(&a, 8192, 700, 9);
	send_to(to_group, ALL, 600, 2);
	for (unsigned i = 0; i < TOGETHER; i += 2) {
		struct ibv_wc wc = wait_for(c[i].rcq);
		ck_assert(wc.status == IBV_WC_SUCCESS && wc.wr_id == i + 1 &&
			  wc.byte_len == 600 + GRH);
		ck_assert(wc.qp_num == c[i].qp->qp_num && wc.src_qp == a.qp->qp_num &&
			  wc.wc_flags == IBV_WC_GRH);
		ck_assert_mem_eq(b.buf + i * 1024 + GRH, a.buf, 600);
		/* It was sent to the group, which the reader may answer. */
		ck_assert_mem_eq(b.buf + i * 1024 + 36, group.raw + 12, 4);
		struct ibv_ah_attr back;
		ck_assert_int_eq(rnic_init_ah_from_wc(b.ctx, 1, &wc,
						      (struct ibv_grh *)(b.buf + i * 1024), &back),
				 0);
		ck_assert_mem_eq(&back.grh.dgid, &a.gid, sizeof(a.gid));
	}
	struct ibv_wc wc = wait_for(a.rcq);
	ck_assert(wc.wr_id == 9 && wc.src_qp == a.qp->qp_num);
	ck_assert(has_none(&c[1]));
	/* other groups, and the queue pair's number of no group */
	recv_post(&b, 0, 700, 3);
	send_to(to_other, ALL, 8, 3);
	send_to(to_ipv6, ALL, 8, 4);
	send_to(to_group, b.qp->qp_num, 8, 5);
	struct ibv_ah *to_b = path(&b.gid);
	send_to(to_b, ALL, 8, 6);
	ck_assert(has_none(&b));
	ck_assert_int_eq(rnic_attach_mcast(b.qp, &ipv6, 0), 0);
	send_to(to_ipv6, ALL, 8, 7);
	expect(b.rcq, 3, IBV_WC_SUCCESS);
	ck_assert_mem_eq(b.buf + 24, &ipv6, sizeof(ipv6));
}

START_TEST(copies)
{
	run(task, copies_body);
}
END_TEST

/* One lacks a receive request, one has another Q_Key, one is not ready: the others do not mind. */
static void each_body(void)
{
	make_datagrams();
	uint64_t counts[RNIC_COUNT] = {0};
	struct ibv_qp_attr attr = {.qkey = QKEY + 1};
	for (unsigned i = 0; i < TOGETHER; i++)
		ck_assert_int_eq(rnic_attach_mcast(c[i].qp, &group, 0), 0);
	net->count = counts;
	recv_post(&c[1], 0, 700, 1);
	ck_assert_int_eq(rnic_modify_qp(c[1].qp, &attr, IBV_QP_QKEY), 0);
	recv_post(&c[2], 0, 700, 2);
	send_to(to_group, ALL, 8, 1);
	expect(c[2].rcq, 2, IBV_WC_SUCCESS);
	ck_assert(has_none(&c[0]) && has_none(&c[1]));
	ck_assert_uint_eq(counts[COUNT_no_receive], 1);
	ck_assert_uint_eq(counts[COUNT_bad_qkey], 1);
	ck_assert_int_eq(modify(&c[2], &a, IBV_QPS_RESET, 0), 0);
	send_to(to_group, ALL, 8, 2);
	ck_assert(has_none(&c[2]));
	ck_assert_uint_eq(counts[COUNT_qp_state], 1);
	/* It stays attached. */
	ready_side(&c[2], &a);
	recv_post(&c[2], 0, 700, 3);
	send_to(to_group, ALL, 8, 3);
	expect(c[2].rcq, 3, IBV_WC_SUCCESS);
	net->count = NULL;
}

START_TEST(each_for_itself)
{
	run(task, each_body);
}
END_TEST

/* The copy to one host is lost, the other's is not. */
static unsigned lose_first(const struct choice_point *at, unsigned n)
{
	(void)n;
	return at->kind == CHOICE_PACKET && source.asked[CHOICE_PACKET] == 1 ? PACKET_LOSE : 0;
}

static void lost_body(void)
{
	make_datagrams();
	ck_assert_int_eq(rnic_attach_mcast(a.qp, &group, 0), 0);
	ck_assert_int_eq(rnic_attach_mcast(b.qp, &group, 0), 0);
	recv_post(&a, 8192, 700, 1);
	recv_post(&b, 0, 700, 2);
	send_to(to_group, ALL, 8, 1);
	ck_assert_uint_eq(source.asked[CHOICE_PACKET], 2);
	rt_sleep(10 * US);
	ck_assert_uint_eq(empty(a.rcq) + empty(b.rcq), 1);
}

START_TEST(lost_for_one)
{
	source.answer = lose_first;
	run(task, lost_body);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rnic_mcast");
	TCase *tests = tcase_create("rnic_mcast");
	tcase_add_checked_fixture(tests, setup_options, NULL);
	tcase_add_test(tests, rules);
	tcase_add_test(tests, connections);
	tcase_add_test(tests, copies);
	tcase_add_test(tests, each_for_itself);
	tcase_add_test(tests, lost_for_one);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
