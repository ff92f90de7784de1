/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC domains that several processes of a host share (core/provider/link/xrc_relay.c), on each
 * link, with and without faults.
 *
 * The test sends. Each of the others is a child that has a domain of a file, a shared receive queue
 * in it and a target, does what it is told, and tells what came of it. Messages go to the queue of
 * one child by the target of another. Then notes that no honest process would send.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/provider/link/link_shm.h"
#include "core/provider/base/nic.h"
#include "core/provider/link/xrc_relay.h"
#include "core/rnic/objects/qp.h"
#include "tests/core/provider/nic_net.h"
#include "tests/core/provider/nic_side.h"

#define BUF	 (1u << 20)
#define REQUESTS 1000u
#define CHILDREN 3
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define LONG  100000u
#define LINKS 4 /* ways to run a test */

/* --- the children --- */

enum what { OPEN, CONNECT, GIVE, TAKE, NOTHING, STATE, DROP_SRQ, LISTEN, EVENTS, FAILS, SHRINK };

struct order {
	enum what what;
	uint32_t number, count, len;
	union ibv_gid gid;
};

struct reply {
	uint32_t qpn, srqn;
	union ibv_gid gid;
	struct ibv_wc wc;
	uint64_t hash;	  /* of the message */
	uint32_t ordered; /* messages whose first word was one more than that of the one before */
};

static struct child {
	pid_t pid;
	int fd;
	struct reply is;  /* to OPEN */
	struct side side; /* the test's, which sends to the child's target */
} child[CHILDREN];

static int files[2];

static uint64_t hash_of(const uint8_t *bytes, uint32_t len)
{
	uint64_t hash = 14695981039346656037ull;

	while (len--)
		hash = (hash ^ *bytes++) * 1099511628211ull;
	return hash;
}

static struct ibv_xrcd *open_domain(struct side *s, int fd)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
						       IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = fd,
					  .oflags = O_CREAT};
	struct ibv_xrcd *domain = ibv_open_xrcd(s->context, &attr);

	ck_assert_ptr_nonnull(domain);
	return domain;
}

/* All files' domains; which of them, 2: one that has none, the queues are in. */
static void open_child(struct side *s, uint32_t which, struct reply *reply)
{
	struct ibv_xrcd *domain[] = {NULL, NULL, NULL};
	struct ibv_srq_init_attr_ex shared = {
		.attr = {.max_wr = REQUESTS, .max_sge = 2},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC};
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD};

	open_side(s, BUF, ACCESS);
	s->channel = ibv_create_comp_channel(s->context);
	s->rcq = ibv_create_cq(s->context, REQUESTS, NULL, s->channel, 0);
	ck_assert_ptr_nonnull(s->rcq);
	for (unsigned i = 0; i < 3; i++)
		domain[i] = open_domain(s, i < 2 ? files[i] : -1);
	init.xrcd = shared.xrcd = domain[which];
	shared.pd = s->pd;
	shared.cq = s->rcq;
	s->srq = ibv_create_srq_ex(s->context, &shared);
	s->qp = ibv_create_qp_ex(s->context, &init);
	ck_assert(s->srq && s->qp && !ibv_get_srq_num(s->srq, &reply->srqn));
	reply->qpn = s->qp->qp_num;
	reply->gid = s->gid;
}

static void connect_to(struct side *s, const struct order *order)
{
	struct ibv_qp qp = {.qp_num = order->number};
	struct side peer = {.qp = &qp, .gid = order->gid};

	go(s, &peer, IBV_QPS_RTS);
}

/* Two pieces each, the second one elsewhere. */
static void give_requests(struct side *s, const struct order *order)
{
	for (uint32_t i = 0; i < order->count; i++) {
		uint32_t half = order->len / 2;
		struct ibv_sge sge[2] = {
			{(uintptr_t)s->buf, half, s->mr->lkey},
			{(uintptr_t)s->buf + half, order->len - half, s->mr->lkey}};
		struct ibv_recv_wr wr = {.wr_id = order->number + i, .sg_list = sge, .num_sge = 2},
				   *bad;

		ck_assert_int_eq(ibv_post_srq_recv(s->srq, &wr, &bad), 0);
	}
}

/* So many messages. What they begin with counts up by the target that they came by; the data of
 * several lie where the next one's do, so with more than one it is the immediate data that is
 * looked at. */
static void take_messages(struct side *s, const struct order *order, struct reply *reply)
{
	struct {
		uint32_t qpn, next;
	} from[CHILDREN] = {{0}};

	reply->ordered = 0;
	for (uint32_t i = 0; i < order->count; i++) {
		unsigned n = 0;

		reply->wc = wait_for(s->rcq);
		if (reply->wc.status)
			return;
		while (n < CHILDREN - 1 && from[n].qpn && from[n].qpn != reply->wc.qp_num)
			n++;
		from[n].qpn = reply->wc.qp_num;
		reply->ordered += from[n].next++ == ntohl(reply->wc.imm_data);
	}
	reply->hash = hash_of(s->buf, reply->wc.byte_len);
}

static void count_events(struct side *s, struct reply *reply)
{
	struct ibv_cq *cq;
	void *context;

	reply->ordered = 0;
	while (!ibv_get_cq_event(s->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		reply->ordered++;
	}
}

static void obey(struct side *s, const struct order *order, struct reply *reply)
{
	struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)order->number};
	struct ibv_wc wc;

	switch (order->what) {
	case OPEN:
		open_child(s, order->number, reply);
		break;
	case CONNECT:
		connect_to(s, order);
		break;
	case GIVE:
		give_requests(s, order);
		break;
	case TAKE:
		take_messages(s, order, reply);
		break;
	case NOTHING:
		reply->ordered = (uint32_t)ibv_poll_cq(s->rcq, 1, &wc);
		break;
	case STATE:
		ck_assert_int_eq(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), 0);
		break;
	case DROP_SRQ:
		ck_assert_int_eq(ibv_destroy_srq(s->srq), 0);
		break;
	case LISTEN:
		ck_assert_int_eq(fcntl(s->channel->fd, F_SETFL, O_NONBLOCK), 0);
		ck_assert_int_eq(ibv_req_notify_cq(s->rcq, 1), 0);
		break;
	case EVENTS:
		count_events(s, reply);
		break;
	case FAILS: /* the region is gone; its buffer is not */
		ck_assert_int_eq(ibv_dereg_mr(s->mr), 0);
		break;
	case SHRINK:
		ck_assert_int_eq(ibv_resize_cq(s->rcq, (int)order->number), 0);
		break;
	}
}

static void live(int fd)
{
	struct order order;
	struct reply reply = {0};

	while (read(fd, &order, sizeof(order)) == sizeof(order)) {
		obey(&b, &order, &reply);
		ck_assert_int_eq(write(fd, &reply, sizeof(reply)), sizeof(reply));
	}
	_exit(0);
}

static struct reply tell(struct child *to, struct order order)
{
	struct reply reply;

	ck_assert_int_eq(write(to->fd, &order, sizeof(order)), sizeof(order));
	ck_assert_int_eq(read(to->fd, &reply, sizeof(reply)), sizeof(reply));
	return reply;
}

static void make_child(struct child *c)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	c->pid = fork();
	ck_assert_int_ge(c->pid, 0);
	if (!c->pid) {
		for (const struct child *other = child; other < c; other++)
			close(other->fd);
		close(fds[0]);
		live(fds[1]);
	}
	close(fds[1]);
	c->fd = fds[0];
}

/* --- the test's side --- */

/* Which link, by a test's number. */
static void choose(int n)
{
	setenv("TIDEMARK_LINK", n & 1 ? "udp" : "shm", 1);
	setenv("TIDEMARK_FAULTS", n & 2 ? "both lose 2%; both duplicate 2%; both reorder 5%" : "",
	       1);
}

static uint8_t timeout = 14; /* of senders; 31: two hours, so that who waits for it hangs */

static void make_sender(struct child *c, uint8_t rnr_retry)
{
	struct ibv_qp_init_attr init = {
		.send_cq = a.scq,
		.cap = {.max_send_wr = REQUESTS, .max_send_sge = 1},
		.qp_type = IBV_QPT_XRC_SEND,
	};
	struct ibv_qp qp = {.qp_num = c->is.qpn};
	struct side peer = {.qp = &qp, .gid = c->is.gid};

	c->side = a;
	c->side.attr.rnr_retry = rnr_retry;
	c->side.attr.timeout = timeout;
	c->side.qp = ibv_create_qp(a.pd, &init);
	ck_assert_ptr_nonnull(c->side.qp);
	tell(c, (struct order){.what = CONNECT, .number = c->side.qp->qp_num, .gid = a.gid});
	go(&c->side, &peer, IBV_QPS_RTS);
}

static void make_files(void)
{
	for (unsigned i = 0; i < 2; i++) {
		char name[] = "/tmp/tidemark-relay.XXXXXX";

		files[i] = mkstemp(name);
		ck_assert_int_ge(files[i], 0);
		unlink(name);
	}
}

/* Children with queues in the domains of these files, and a queue pair to each one's target. `own`:
 * the test's faults. */
static void setup(unsigned n, const uint32_t *file, const char *own)
{
	make_files();
	for (unsigned i = 0; i < n; i++)
		make_child(&child[i]);
	if (own)
		setenv("TIDEMARK_FAULTS", own, 1);
	open_side(&a, BUF, ACCESS);
	a.scq = ibv_create_cq(a.context, CHILDREN * REQUESTS, NULL, NULL, 0);
	ck_assert_ptr_nonnull(a.scq);
	for (uint32_t i = 0; i < BUF; i++)
		a.buf[i] = (uint8_t)(i * 31 + i / 4096);
	for (unsigned i = 0; i < n; i++) {
		child[i].is = tell(&child[i],
				   (struct order){.what = OPEN, .number = file ? file[i] : 0});
		make_sender(&child[i], 7);
	}
}

static void end_children(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		int status = 0;

		if (!child[i].pid)
			continue;
		close(child[i].fd);
		ck_assert_int_eq(waitpid(child[i].pid, &status, 0), child[i].pid);
		ck_assert_int_eq(status, 0);
	}
}

static void kill_child(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->fd);
	c->pid = 0;
}

/* By the target of one child, for the queue of this number. */
static void send_to(const struct child *by, uint32_t srqn, uint32_t off, uint32_t len, uint32_t imm,
		    unsigned flags)
{
	struct ibv_sge sge = {(uintptr_t)a.buf + off, len, a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = imm,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED | flags,
				 .imm_data = htonl(imm),
				 .qp_type.xrc.remote_srqn = srqn},
			   *bad;

	ck_assert_int_eq(ibv_post_send(by->side.qp, &wr, &bad), 0);
}

static void expect_message(struct child *at, const struct child *by, uint32_t off, uint32_t len)
{
	struct reply reply = tell(at, (struct order){.what = TAKE, .count = 1});

	ck_assert_int_eq(reply.wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(reply.wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(reply.wc.byte_len, len);
	ck_assert_uint_eq(reply.wc.qp_num, by->is.qpn);
	ck_assert_uint_eq(reply.wc.src_qp, by->side.qp->qp_num);
	ck_assert(reply.hash == hash_of(a.buf + off, len));
}

static double seconds(void)
{
	return (double)now_ns() / 1e9;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* --- */

START_TEST(sizes)
{
	static const uint32_t len[] = {1, 0, 64, 1024, 1025, LONG, BUF};
	struct reply reply;

	choose(_i);
	setup(2, NULL, NULL);
	for (unsigned i = 0; i < sizeof(len) / sizeof(*len); i++) {
		uint32_t off = len[i] <= BUF / 2 ? i * 1000 : 0;

		/* To the other one's, to the target's own, to the other one's without immediate
		 * data. */
		tell(&child[1], (struct order){.what = GIVE, .number = 50, .count = 1, .len = BUF});
		send_to(&child[0], child[1].is.srqn, off, len[i], i, 0);
		expect(a.scq, i, IBV_WC_SUCCESS);
		expect_message(&child[1], &child[0], off, len[i]);
		tell(&child[0], (struct order){.what = GIVE, .number = 51, .count = 1, .len = BUF});
		send_to(&child[0], child[0].is.srqn, off, len[i], i, 0);
		expect(a.scq, i, IBV_WC_SUCCESS);
		expect_message(&child[0], &child[0], off, len[i]);
	}
	/* Solicited, or not. */
	tell(&child[1], (struct order){.what = LISTEN});
	tell(&child[1], (struct order){.what = GIVE, .count = 2, .len = 64});
	send_to(&child[0], child[1].is.srqn, 0, 5, 77, 0);
	expect_message(&child[1], &child[0], 0, 5);
	ck_assert_uint_eq(tell(&child[1], (struct order){.what = EVENTS}).ordered, 0);
	send_to(&child[0], child[1].is.srqn, 0, 6, 78, IBV_SEND_SOLICITED);
	reply = tell(&child[1], (struct order){.what = TAKE, .count = 1});
	ck_assert(reply.wc.wc_flags & IBV_WC_WITH_IMM && reply.wc.imm_data == htonl(78) &&
		  reply.wc.wr_id == 1);
	ck_assert_uint_eq(tell(&child[1], (struct order){.what = EVENTS}).ordered, 1);
	end_children(2);
}
END_TEST

/* Each one's queue, by each one's target, much faster than it goes: in order, and nothing waits for
 * a timeout. */
START_TEST(everybody)
{
	const unsigned rounds = _i & 2 ? 50 : 300;
	unsigned n = 0;

	choose(_i);
	timeout = 31;
	setup(CHILDREN, NULL, NULL);
	for (unsigned i = 0; i < CHILDREN; i++)
		tell(&child[i],
		     (struct order){.what = GIVE, .count = CHILDREN * rounds, .len = 2000});
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned by = 0; by < CHILDREN; by++)
			for (unsigned to = 0; to < CHILDREN; to++)
				send_to(&child[by], child[to].is.srqn, 0, round % 8 ? 10 : 2000,
					round, 0);
	for (n = 0; n < rounds * CHILDREN * CHILDREN; n++)
		ck_assert_int_eq(wait_for(a.scq).status, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < CHILDREN; i++) {
		struct reply reply = tell(&child[i],
					  (struct order){.what = TAKE, .count = CHILDREN * rounds});

		ck_assert_int_eq(reply.wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(reply.ordered, CHILDREN * rounds);
		ck_assert_uint_eq(tell(&child[i], (struct order){.what = NOTHING}).ordered, 0);
	}
	end_children(CHILDREN);
}
END_TEST

/* As many as may be under way while an answer is waited for. */
START_TEST(far_ahead)
{
	struct reply reply;
	double start;

	choose(_i);
	timeout = 31;
	setup(2, NULL, NULL);
	tell(&child[1], (struct order){.what = GIVE, .count = REQUESTS, .len = 10});
	kill(child[1].pid, SIGSTOP);
	ck_assert_int_eq(waitpid(child[1].pid, NULL, WUNTRACED), child[1].pid);
	for (uint32_t i = 0; i < REQUESTS; i++)
		send_to(&child[0], child[1].is.srqn, 0, 10, i, 0);
	for (start = seconds(); seconds() - start < 0.1;)
		nothing_in(a.scq);
	kill(child[1].pid, SIGCONT);
	for (uint32_t i = 0; i < REQUESTS; i++)
		expect(a.scq, i, IBV_WC_SUCCESS);
	reply = tell(&child[1], (struct order){.what = TAKE, .count = REQUESTS});
	ck_assert_uint_eq(reply.ordered, REQUESTS);
	end_children(2);
}
END_TEST

/* A queue without receive requests: the message waits until there is one, or fails. */
START_TEST(not_ready)
{
	choose(_i);
	setup(2, NULL, NULL);
	send_to(&child[0], child[1].is.srqn, 0, LONG, 1, 0);
	send_to(&child[0], child[0].is.srqn, 0, 100, 2, 0);
	tell(&child[0], (struct order){.what = GIVE, .count = 1, .len = 100});
	pause_ms(50);
	nothing_in(a.scq);
	ck_assert_uint_eq(tell(&child[0], (struct order){.what = NOTHING}).ordered, 0);
	tell(&child[1], (struct order){.what = GIVE, .count = 1, .len = LONG});
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	expect_message(&child[1], &child[0], 0, LONG);
	expect_message(&child[0], &child[0], 0, 100);
	/* One that is too short: so are both ends told. */
	tell(&child[1], (struct order){.what = GIVE, .count = 1, .len = LONG - 1});
	send_to(&child[0], child[1].is.srqn, 0, LONG, 3, 0);
	expect(a.scq, 3, IBV_WC_REM_INV_REQ_ERR);
	ck_assert_int_eq(tell(&child[1], (struct order){.what = TAKE, .count = 1}).wc.status,
			 IBV_WC_LOC_LEN_ERR);
	ibv_destroy_qp(child[1].side.qp);
	tell(&child[1], (struct order){.what = STATE, .number = IBV_QPS_RESET});
	make_sender(&child[1], 0);
	send_to(&child[1], child[0].is.srqn, 0, 1, 4, 0);
	expect(a.scq, 4, IBV_WC_RNR_RETRY_EXC_ERR);
	end_children(2);
}
END_TEST

/* What the sender asks for again when it has not heard the refusal is before what was refused. */
START_TEST(refusal_lost)
{
	choose(1);
	setenv("TIDEMARK_FAULTS", "lose nak 1", 1);
	setup(2, NULL, "");
	tell(&child[1], (struct order){.what = GIVE, .count = 1, .len = LONG - 1});
	send_to(&child[0], child[1].is.srqn, 0, LONG, 1, 0);
	expect(a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	/* So it is within one process. */
	tell(&child[1], (struct order){.what = GIVE, .count = 1, .len = LONG - 1});
	send_to(&child[1], child[1].is.srqn, 0, LONG, 2, 0);
	expect(a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
	end_children(2);
}
END_TEST

/* Queues that are in no domain of the target's file. */
START_TEST(refused)
{
	static const uint32_t file[CHILDREN] = {0, 1, 2};
	uint32_t number[4];

	choose(_i & 1);
	setup(CHILDREN, file, NULL);
	tell(&child[1], (struct order){.what = GIVE, .count = 10, .len = 100});
	tell(&child[2], (struct order){.what = GIVE, .count = 10, .len = 100});
	number[0] = child[1].is.srqn;
	number[1] = child[2].is.srqn;
	number[2] = 200u << SHM_QPN_SHIFT | 77; /* nobody's */
	number[3] = child[0].is.srqn + 1;
	for (unsigned i = 0; i < sizeof(number) / sizeof(*number); i++) {
		send_to(&child[0], number[i], 0, 1, 7, 0);
		expect(a.scq, 7, IBV_WC_REM_INV_REQ_ERR);
		ibv_destroy_qp(child[0].side.qp);
		tell(&child[0], (struct order){.what = STATE, .number = IBV_QPS_RESET});
		make_sender(&child[0], 7);
	}
	/* A domain that has no file is the same as no other without one. */
	send_to(&child[2], child[0].is.srqn, 0, 1, 7, 0);
	expect(a.scq, 7, IBV_WC_REM_INV_REQ_ERR);
	ck_assert_uint_eq(tell(&child[1], (struct order){.what = NOTHING}).ordered, 0);
	ck_assert_uint_eq(tell(&child[2], (struct order){.what = NOTHING}).ordered, 0);
	end_children(CHILDREN);
}
END_TEST

/* Only a SEND is passed on. */
START_TEST(others_refused)
{
	static const enum ibv_wr_opcode opcode[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode[_i / 2],
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	choose(_i & 1);
	setup(2, NULL, NULL);
	tell(&child[1], (struct order){.what = GIVE, .count = 10, .len = 100});
	sge = (struct ibv_sge){(uintptr_t)a.buf, 8, a.mr->lkey};
	wr.qp_type.xrc.remote_srqn = child[1].is.srqn;
	ck_assert_int_eq(ibv_post_send(child[0].side.qp, &wr, &bad), 0);
	expect(a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	ck_assert_uint_eq(tell(&child[1], (struct order){.what = NOTHING}).ordered, 0);
	end_children(2);
}
END_TEST

/* The queue's process does not answer any more: it is stopped, and perhaps killed then. */
START_TEST(queue_dies)
{
	bool dies = _i & 2;
	double start, took;

	choose(_i & 1);
	setup(2, NULL, NULL);
	tell(&child[1], (struct order){.what = GIVE, .count = 1, .len = LONG});
	send_to(&child[0], child[1].is.srqn, 0, LONG, 1, 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect_message(&child[1], &child[0], 0, LONG);
	tell(&child[1], (struct order){.what = GIVE, .count = 100, .len = LONG});
	kill(child[1].pid, SIGSTOP);
	ck_assert_int_eq(waitpid(child[1].pid, NULL, WUNTRACED), child[1].pid);
	send_to(&child[0], child[1].is.srqn, 0, LONG, 2, 0);
	send_to(&child[0], child[0].is.srqn, 0, 1, 3, 0);
	pause_ms(100);
	nothing_in(a.scq);
	start = seconds();
	if (dies)
		kill_child(&child[1]);
	expect(a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
	/* Who is stopped is waited for, for 2 s. */
	took = seconds() - start;
	ck_assert_msg(dies ? took < 2 : took > 1, "after %f s", took);
	expect(a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	if (!dies) { /* What it finds when it goes on is over. */
		kill(child[1].pid, SIGCONT);
		ck_assert_int_eq(
			tell(&child[1], (struct order){.what = TAKE, .count = 1}).wc.status,
			IBV_WC_WR_FLUSH_ERR);
	}
	/* Both are as before, but for what was under way. */
	ibv_destroy_qp(child[0].side.qp);
	tell(&child[0], (struct order){.what = STATE, .number = IBV_QPS_RESET});
	make_sender(&child[0], 7);
	tell(&child[0], (struct order){.what = GIVE, .count = 1, .len = 100});
	send_to(&child[0], child[0].is.srqn, 0, 100, 4, 0);
	expect(a.scq, 4, IBV_WC_SUCCESS);
	expect_message(&child[0], &child[0], 0, 100);
	send_to(&child[0], child[1].is.srqn, 0, LONG, 5, 0);
	expect(a.scq, 5, dies ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
	end_children(2);
}
END_TEST

/* Killed in a stream of messages. */
START_TEST(queue_dies_in_stream)
{
	unsigned good = 0;
	struct ibv_wc wc;

	choose(_i);
	setup(2, NULL, NULL);
	tell(&child[1], (struct order){.what = GIVE, .count = 300, .len = LONG});
	for (uint32_t i = 0; i < 300; i++)
		send_to(&child[0], child[1].is.srqn, 0, LONG, i, 0);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	kill_child(&child[1]);
	send_to(&child[0], child[1].is.srqn, 0, LONG, 300, 0);
	do {
		wc = wait_for(a.scq);
		good += wc.status == IBV_WC_SUCCESS;
	} while (wc.status == IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.status, IBV_WC_REM_INV_REQ_ERR);
	while (wc.wr_id < 300) {
		wc = wait_for(a.scq);
		ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	ck_assert_uint_lt(good, 300);
	end_children(2);
}
END_TEST

/* Stopped for a while that is longer than all tries of a sender who would think that the target
 * sleeps. */
START_TEST(short_timeout)
{
	choose(_i);
	timeout = 10; /* 4 ms */
	setup(2, NULL, NULL);
	tell(&child[1], (struct order){.what = GIVE, .count = 1, .len = 10});
	kill(child[1].pid, SIGSTOP);
	ck_assert_int_eq(waitpid(child[1].pid, NULL, WUNTRACED), child[1].pid);
	send_to(&child[0], child[1].is.srqn, 0, 10, 1, 0);
	pause_ms(200);
	nothing_in(a.scq);
	kill(child[1].pid, SIGCONT);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect_message(&child[1], &child[0], 0, 10);
	end_children(2);
}
END_TEST

enum mishap { TARGET_DIES, TARGET_FAILS, TARGET_RESET, QUEUE_DESTROYED, REGION_GONE, MISHAPS };

/* In the middle of a message, whose rest never comes: the request that it has taken comes back; a
 * destroyed queue's does not. */
START_TEST(half)
{
	enum mishap mishap = (enum mishap)(_i / 2);
	struct reply reply;

	choose(_i & 1);
	setup(2, NULL, "lose send packet 50 times 1000000");
	tell(&child[1], (struct order){.what = GIVE, .number = 33, .count = 1, .len = LONG});
	send_to(&child[0], child[1].is.srqn, 0, 2000, 1, 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect_message(&child[1], &child[0], 0, 2000);
	tell(&child[1], (struct order){.what = GIVE, .number = 34, .count = 1, .len = LONG});
	send_to(&child[0], child[1].is.srqn, 0, LONG, 2, 0);
	pause_ms(100);
	nothing_in(a.scq);
	ck_assert_uint_eq(tell(&child[1], (struct order){.what = NOTHING}).ordered, 0);
	switch (mishap) {
	case TARGET_DIES:
		kill_child(&child[0]);
		break;
	case TARGET_FAILS:
		tell(&child[0], (struct order){.what = STATE, .number = IBV_QPS_ERR});
		break;
	case TARGET_RESET:
		tell(&child[0], (struct order){.what = STATE, .number = IBV_QPS_RESET});
		break;
	case QUEUE_DESTROYED:
		tell(&child[1], (struct order){.what = DROP_SRQ});
		break;
	default:
		tell(&child[1], (struct order){.what = FAILS});
		tell(&child[0], (struct order){.what = STATE, .number = IBV_QPS_ERR});
		break;
	}
	if (mishap == QUEUE_DESTROYED) {
		tell(&child[0], (struct order){.what = STATE, .number = IBV_QPS_ERR});
		pause_ms(50);
		ck_assert_uint_eq(tell(&child[1], (struct order){.what = NOTHING}).ordered, 0);
	} else {
		reply = tell(&child[1], (struct order){.what = TAKE, .count = 1});
		ck_assert_int_eq(reply.wc.status, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(reply.wc.wr_id, 34);
		ck_assert_uint_eq(reply.wc.qp_num, child[0].is.qpn);
		/* It counts no more against what the queue holds. */
		tell(&child[1], (struct order){.what = GIVE, .count = REQUESTS, .len = 10});
	}
	end_children(2);
}
END_TEST

/* Destroyed, or its memory is gone, in a stream of messages. */
START_TEST(queue_goes)
{
	enum ibv_wc_status status = _i & 2 ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR;
	struct ibv_wc wc;

	choose(_i & 1);
	setup(2, NULL, NULL);
	tell(&child[1], (struct order){.what = GIVE, .count = 300, .len = LONG});
	for (uint32_t i = 0; i < 300; i++)
		send_to(&child[0], child[1].is.srqn, 0, LONG, i, 0);
	expect(a.scq, 0, IBV_WC_SUCCESS);
	tell(&child[1], (struct order){.what = _i & 2 ? FAILS : DROP_SRQ});
	send_to(&child[0], child[1].is.srqn, 0, LONG, 300, 0);
	do
		wc = wait_for(a.scq);
	while (wc.status == IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.status, status);
	tell(&child[1], (struct order){.what = NOTHING});
	end_children(2);
}
END_TEST

/* More completions than their queue holds: the sender hears of it. */
START_TEST(overrun)
{
	choose(0);
	setup(2, NULL, NULL);
	tell(&child[1], (struct order){.what = GIVE, .count = 10, .len = 100});
	tell(&child[1], (struct order){.what = SHRINK, .number = 4});
	for (uint32_t i = 0; i < 6; i++)
		send_to(&child[0], child[1].is.srqn, 0, 100, i, 0);
	for (uint32_t i = 0; i < 4; i++)
		expect(a.scq, i, IBV_WC_SUCCESS);
	expect(a.scq, 4, IBV_WC_REM_OP_ERR);
	expect(a.scq, 5, IBV_WC_WR_FLUSH_ERR);
	end_children(2);
}
END_TEST

/* --- notes that nobody has written --- */

/* Says it to this process, as the one in the slot would. */
static void say(unsigned slot, const struct xrc_note *note, uint32_t note_len, uint8_t opcode,
		uint32_t len)
{
	struct nic *nic = nic_get();
	struct packet *pkt;

	nic_lock(nic);
	pkt = packet_get(nic->net, note_len + len);
	memset(pkt->payload, 0xee, pkt->len);
	memcpy(pkt->payload, note, note_len);
	pkt->service = SERVICE_HOST;
	pkt->opcode = opcode;
	pkt->src_qpn = slot << SHM_QPN_SHIFT;
	pkt->dest_qpn = note->kind == XRC_NOTE_ANSWER ? note->target : note->srqn;
	rnic_take(nic->net, qp_find(nic->net, pkt->dest_qpn), pkt);
	nic_unlock(nic);
}

static struct xrc_note note_to(const struct reply *is)
{
	struct stat file;

	ck_assert_int_eq(fstat(files[0], &file), 0);
	return (struct xrc_note){.device = file.st_dev,
				 .inode = file.st_ino,
				 .kind = XRC_NOTE_REQUEST,
				 .serial = 1,
				 .target = 9u << SHM_QPN_SHIFT | 20,
				 .srqn = is->srqn};
}

static unsigned completions(struct ibv_cq *cq)
{
	struct ibv_wc wc[64];
	int n = ibv_poll_cq(cq, 64, wc);

	ck_assert_int_ge(n, 0);
	return (unsigned)n;
}

static bool is_clean(const uint8_t *at, const uint8_t *end)
{
	while (at < end && !*at)
		at++;
	return at == end;
}

START_TEST(liars)
{
	const struct order five = {.what = GIVE, .count = 5, .len = 100};
	struct reply is = {0};
	struct xrc_note note, lie;
	struct ibv_wc wc;

	choose(_i);
	make_files();
	open_child(&b, 0, &is);
	give_requests(&b, &five);
	note = note_to(&is);
	/* It is taken as it is. */
	say(9, &note, sizeof(note), OP_SEND_ONLY, 100);
	wc = wait_for(b.rcq);
	ck_assert(wc.status == IBV_WC_SUCCESS && wc.qp_num == note.target && wc.byte_len == 100);
	ck_assert(b.buf[0] == 0xee && b.buf[99] == 0xee && is_clean(b.buf + 100, b.buf + BUF));
	/* Too short, in another one's name, not a SEND, of no such kind, of other files, of no such
	 * queue. */
	for (uint32_t len = 0; len < sizeof(note); len++)
		say(9, &note, len, OP_SEND_ONLY, 0);
	say(8, &note, sizeof(note), OP_SEND_ONLY, 10);
	for (unsigned opcode = 0; opcode < 256; opcode++)
		if (opcode >= OP_CODES || !(opcode_is[opcode] & IS_SEND) ||
		    has_invalidate((uint8_t)opcode))
			say(9, &note, sizeof(note), (uint8_t)opcode, 10);
	for (unsigned i = 0; i < 6; i++) {
		lie = note;
		lie.kind = i == 0 ? 0 : i == 1 ? 4 : XRC_NOTE_REQUEST;
		lie.inode += i == 2;
		lie.device += i == 3;
		lie.srqn += i == 4;
		if (i == 5)
			lie.device = lie.inode = 0;
		say(9, &lie, sizeof(lie), OP_SEND_ONLY, 10);
	}
	/* The rest of a message that has not begun. */
	say(9, &note, sizeof(note), OP_SEND_MIDDLE, 10);
	say(9, &note, sizeof(note), OP_SEND_LAST, 10);
	lie = note;
	lie.kind = XRC_NOTE_END;
	say(9, &lie, sizeof(lie), OP_SEND_ONLY, 0);
	ck_assert_uint_eq(completions(b.rcq), 0);
	/* Another one's half is not to be had. */
	say(9, &note, sizeof(note), OP_SEND_FIRST, 60);
	say(8, &note, sizeof(note), OP_SEND_LAST, 40);
	say(8, &lie, sizeof(lie), OP_SEND_ONLY, 0);
	ck_assert_uint_eq(completions(b.rcq), 0);
	/* More than there is room for. */
	say(9, &note, sizeof(note), OP_SEND_MIDDLE, 41);
	ck_assert_int_eq(wait_for(b.rcq).status, IBV_WC_LOC_LEN_ERR);
	say(9, &note, sizeof(note), OP_SEND_LAST, 10);
	say(9, &note, sizeof(note), OP_SEND_FIRST, 10);
	say(9, &note, sizeof(note), OP_SEND_FIRST, 10);
	ck_assert_int_eq(wait_for(b.rcq).status, IBV_WC_WR_FLUSH_ERR);
	say(9, &lie, sizeof(lie), OP_SEND_ONLY, 0);
	ck_assert_int_eq(wait_for(b.rcq).status, IBV_WC_WR_FLUSH_ERR);
	/* Four and one: the queue is as empty as that makes it. */
	say(9, &note, sizeof(note), OP_SEND_ONLY, 16000);
	ck_assert_int_eq(wait_for(b.rcq).status, IBV_WC_LOC_LEN_ERR);
	say(9, &note, sizeof(note), OP_SEND_ONLY, 1);
	ck_assert_uint_eq(completions(b.rcq), 0);
	ck_assert(is_clean(b.buf + 100, b.buf + BUF));
}
END_TEST

/* A sender and a target of this process. */
static void make_own_pair(const struct reply *is)
{
	struct ibv_qp_init_attr init = init_of(&a, IBV_QPT_XRC_SEND);
	struct child *own = &child[1];

	own->is = *is;
	own->side = a;
	own->side.qp = ibv_create_qp(a.pd, &init);
	ck_assert_ptr_nonnull(own->side.qp);
	go(&b, &own->side, IBV_QPS_RTS);
	go(&own->side, &b, IBV_QPS_RTS);
}

/* Anything, while a message waits for an answer, which one of these might be. */
START_TEST(noise)
{
	const struct order some = {.what = GIVE, .count = 3, .len = 100};
	unsigned seed = 1, slot, done = 0;
	struct reply is = {0};
	struct xrc_note note;
	double start;

	choose(_i);
	setup(1, NULL, NULL);
	tell(&child[0], (struct order){.what = GIVE, .count = 1, .len = 10});
	open_child(&b, 0, &is);
	make_own_pair(&is);
	kill(child[0].pid, SIGSTOP);
	ck_assert_int_eq(waitpid(child[0].pid, NULL, WUNTRACED), child[0].pid);
	send_to(&child[1], child[0].is.srqn, 0, 10, 1, 0);
	start = seconds();
	for (unsigned i = 0; i < 20000 && (seconds() - start < 0.2 || done <= 3); i++) {
		nothing_in(a.scq);
		if (i % 100 == 0)
			give_requests(&b, &some);
		note = note_to(&is);
		slot = rand_r(&seed) % 2 ? child[0].is.srqn >> SHM_QPN_SHIFT
					 : (unsigned)rand_r(&seed) % SHM_SLOTS;
		note.kind = (uint32_t)rand_r(&seed) % 5;
		note.serial = (uint32_t)rand_r(&seed);
		note.target = rand_r(&seed) % 2
				      ? is.qpn
				      : slot << SHM_QPN_SHIFT | (uint32_t)rand_r(&seed) % 4;
		note.syndrome = (uint32_t)rand_r(&seed) % 128;
		if (rand_r(&seed) % 4 == 0)
			((uint8_t *)&note)[rand_r(&seed) % sizeof(note)] ^=
				(uint8_t)(1 << rand_r(&seed) % 8);
		say(slot, &note, sizeof(note), (uint8_t)(rand_r(&seed) % 6),
		    (uint32_t)rand_r(&seed) % 200);
		done += completions(b.rcq);
	}
	ck_assert(is_clean(b.buf + 100, b.buf + BUF));
	ck_assert_uint_gt(done, 3);
	kill(child[0].pid, SIGCONT);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	expect_message(&child[0], &child[1], 0, 10);
	end_children(1);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *test, int runs)
{
	TCase *tc = tcase_create(name); /* one each: CK_RUN_CASE */

	tcase_add_loop_test(tc, test, 0, runs);
	suite_add_tcase(suite, tc);
}

int main(void)
{
	Suite *suite = suite_create("xrc_relay");

	add(suite, "sizes", sizes, LINKS);
	add(suite, "everybody", everybody, LINKS);
	add(suite, "far_ahead", far_ahead, LINKS);
	add(suite, "not_ready", not_ready, LINKS);
	add(suite, "refusal_lost", refusal_lost, 1);
	add(suite, "refused", refused, 2);
	add(suite, "others_refused", others_refused, 8);
	add(suite, "queue_dies", queue_dies, 4);
	add(suite, "queue_dies_in_stream", queue_dies_in_stream, LINKS);
	add(suite, "short_timeout", short_timeout, 2);
	add(suite, "half", half, 2 * MISHAPS);
	add(suite, "queue_goes", queue_goes, 4);
	add(suite, "overrun", overrun, 1);
	add(suite, "liars", liars, 2);
	add(suite, "noise", noise, 2);
	return nic_net_run(suite);
}
