/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager over the soft RNIC, as a program meets it: librdmacm's calls, their events
 * and their errors. Most tests have both ends in one process; those in which an end dies, is
 * stopped, or has a port of its own, fork() a child first.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "core/provider/base/nic_link.h"
#include "core/cm/mad.h"
#include "core/provider/link/wire.h"
#include "tests/suite.h"

#define LONG_MS 120000 /* more than anything takes that is not late */

static char host[5][INET_ADDRSTRLEN]; /* addresses that no other run of this test has */
static char net[] = "/dev/shm/tidemark-test-XXXXXX";

/* Both ends of a test's connection. */
static struct {
	struct rdma_event_channel *here, *there; /* active, passive */
	struct rdma_cm_id *listener, *active, *passive;
} p;

/* --- what the tests are made of --- */

static struct sockaddr *at(const char *text, uint16_t port)
{
	static struct sockaddr_storage slot[8];
	static unsigned next;
	struct sockaddr_storage *addr = &slot[next++ % 8];

	memset(addr, 0, sizeof(*addr));
	if (strchr(text, ':')) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		ck_assert_int_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
	} else {
		struct sockaddr_in *in = (struct sockaddr_in *)addr;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		ck_assert_int_eq(inet_pton(AF_INET, text, &in->sin_addr), 1);
	}
	return (struct sockaddr *)addr;
}

/* The call fails with this errno. */
#define REFUSED(call, error)                    \
	do {                                    \
		ck_assert_int_eq(call, -1);     \
		ck_assert_int_eq(errno, error); \
	} while (0)

static bool comes(struct rdma_event_channel *channel, int ms)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}

/* The next event; not acknowledged. */
static struct rdma_cm_event *next(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	ck_assert(comes(channel, LONG_MS));
	ck_assert_int_eq(rdma_get_cm_event(channel, &event), 0);
	return event;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = next(channel);

	ck_assert_str_eq(rdma_event_str(event->event), rdma_event_str(type));
	ck_assert_int_eq(event->status, status);
	ck_assert_int_eq(rdma_ack_cm_event(event), 0);
}

/* Nothing comes any more; but of so many connections that are at an end, that they are over, at any
 * time. */
static void expect_no_more(struct rdma_event_channel *channel, unsigned ended)
{
	for (; comes(channel, 100); ended--) {
		ck_assert_uint_gt(ended, 0);
		expect(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	}
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	ck_assert_int_eq(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

static struct rdma_cm_id *listen_at(struct rdma_event_channel *channel, const char *address,
				    uint16_t port)
{
	struct rdma_cm_id *id = new_id(channel);

	ck_assert_int_eq(rdma_bind_addr(id, at(address, port)), 0);
	ck_assert_int_eq(rdma_listen(id, 8), 0);
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	ck_assert_int_eq(rdma_create_qp(id, NULL, &init), 0);
}

/* To where a request may be sent. */
static struct rdma_cm_id *resolve(struct rdma_event_channel *channel, const char *address,
				  uint16_t port)
{
	struct rdma_cm_id *id = new_id(channel);

	ck_assert_int_eq(rdma_resolve_addr(id, NULL, at(address, port), 1000), 0);
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_int_eq(rdma_resolve_route(id, 1000), 0);
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

static void open_pair(void)
{
	p.here = rdma_create_event_channel();
	p.there = rdma_create_event_channel();
	ck_assert(p.here && p.there);
	p.listener = listen_at(p.there, "0.0.0.0", 0);
	p.active = resolve(p.here, "127.0.0.1", ntohs(rdma_get_src_port(p.listener)));
	p.passive = NULL;
	make_qp(p.active);
}

/* A request, and what it says. */
static struct rdma_cm_event *request(struct rdma_conn_param *param)
{
	struct rdma_cm_event *event;

	ck_assert_int_eq(rdma_connect(p.active, param), 0);
	event = next(p.there);
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_ptr_eq(event->listen_id, p.listener);
	p.passive = event->id;
	return event;
}

static void connect_pair(void)
{
	open_pair();
	rdma_ack_cm_event(request(NULL));
	make_qp(p.passive);
	ck_assert_int_eq(rdma_accept(p.passive, NULL), 0);
	expect(p.here, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect(p.there, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void close_pair(void)
{
	struct rdma_cm_id *ids[] = {p.active, p.passive, p.listener};

	for (unsigned i = 0; i < 3; i++) {
		if (ids[i] && ids[i]->qp)
			rdma_destroy_qp(ids[i]);
		if (ids[i])
			ck_assert_int_eq(rdma_destroy_id(ids[i]), 0);
	}
	rdma_destroy_event_channel(p.here);
	rdma_destroy_event_channel(p.there);
	p.here = NULL;
}

static void teardown(void)
{
	if (p.here)
		close_pair();
}

static enum ibv_qp_state state_of(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	ck_assert_int_eq(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* One message each way. */
static void talk(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	char text[2][32] = {"a message"};
	struct ibv_mr *out = rdma_reg_msgs(from, text[0], 32), *in = rdma_reg_msgs(to, text[1], 32);
	struct ibv_wc wc;

	ck_assert_int_eq(rdma_post_recv(to, NULL, text[1], 32, in), 0);
	ck_assert_int_eq(rdma_post_send(from, NULL, text[0], 32, out, IBV_SEND_SIGNALED), 0);
	ck_assert_int_eq(rdma_get_recv_comp(to, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(rdma_get_send_comp(from, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_str_eq(text[0], text[1]);
	rdma_dereg_mr(out);
	rdma_dereg_mr(in);
}

/* A child that does this, says so in the pipe, and stays until it is killed. */
struct child {
	pid_t pid;
	int said;
};

static struct child child_that(void (*does)(uint16_t port, int say), uint16_t port)
{
	struct child child;
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	child.pid = fork();
	ck_assert_int_ge(child.pid, 0);
	if (!child.pid) {
		close(fds[0]);
		does(port, fds[1]);
		pause();
		_exit(0);
	}
	close(fds[1]);
	child.said = fds[0];
	return child;
}

static uint16_t hear(const struct child *child)
{
	uint16_t word;

	ck_assert_int_eq(read(child->said, &word, sizeof(word)), sizeof(word));
	return word;
}

static void say(int fd, uint16_t word)
{
	ck_assert_int_eq(write(fd, &word, sizeof(word)), sizeof(word));
}

static void end_child(struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->said);
}

static void stop(const struct child *child)
{
	kill(child->pid, SIGSTOP);
	ck_assert_int_eq(waitpid(child->pid, NULL, WUNTRACED), child->pid);
}

static void listens(uint16_t port, int fd)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = listen_at(channel, "0.0.0.0", port);

	say(fd, ntohs(rdma_get_src_port(id)));
}

static struct rdma_event_channel *accept_one(uint16_t port, int fd)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = listen_at(channel, "0.0.0.0", port);
	struct rdma_cm_event *event;

	say(fd, ntohs(rdma_get_src_port(id)));
	event = next(channel);
	id = event->id;
	make_qp(id);
	ck_assert_int_eq(rdma_accept(id, NULL), 0);
	rdma_ack_cm_event(event);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	say(fd, 1);
	return channel;
}

static void accepts(uint16_t port, int fd)
{
	accept_one(port, fd);
}

/* --- connections --- */

TEST(connects_and_parts)
{
	connect_pair();
	ck_assert_int_eq(state_of(p.active), IBV_QPS_RTS);
	ck_assert_int_eq(state_of(p.passive), IBV_QPS_RTS);
	ck_assert_int_eq(rdma_get_dst_port(p.active), rdma_get_src_port(p.listener));
	ck_assert_int_eq(rdma_get_dst_port(p.passive), rdma_get_src_port(p.active));
	ck_assert_int_eq(((struct sockaddr_in *)rdma_get_local_addr(p.passive))->sin_addr.s_addr,
			 htonl(INADDR_LOOPBACK));
	talk(p.active, p.passive);
	talk(p.passive, p.active);
	ck_assert_int_eq(rdma_disconnect(p.active), 0);
	ck_assert_int_eq(state_of(p.active), IBV_QPS_ERR);
	expect(p.here, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect(p.there, RDMA_CM_EVENT_DISCONNECTED, 0);
	/* The other end's queue pair is its program's to stop. */
	ck_assert_int_eq(state_of(p.passive), IBV_QPS_RTS);
	ck_assert_int_eq(rdma_disconnect(p.passive), 0);
	ck_assert_int_eq(state_of(p.passive), IBV_QPS_ERR);
	expect(p.here, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	expect(p.there, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

TEST(both_part_at_once)
{
	connect_pair();
	ck_assert_int_eq(rdma_disconnect(p.active), 0);
	ck_assert_int_eq(rdma_disconnect(p.passive), 0);
	expect(p.here, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect(p.there, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* The passive end disconnects before the active one has seen that it is accepted: it is connected
 * first all the same. The DREQ waits for the RTU; or it does not, since the program said that data
 * had come. */
TESTS(parts_before_connected, 2)
{
	open_pair();
	rdma_ack_cm_event(request(NULL));
	make_qp(p.passive);
	ck_assert_int_eq(rdma_accept(p.passive, NULL), 0);
	if (_i) {
		ck_assert_int_eq(rdma_notify(p.passive, IBV_EVENT_COMM_EST), 0);
		expect(p.there, RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	ck_assert_int_eq(rdma_disconnect(p.passive), 0);
	ck_assert_int_eq(state_of(p.passive), IBV_QPS_ERR);
	if (_i)
		expect(p.there, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect(p.here, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect(p.here, RDMA_CM_EVENT_DISCONNECTED, 0);
	if (!_i) {
		expect(p.there, RDMA_CM_EVENT_ESTABLISHED, 0);
		expect(p.there, RDMA_CM_EVENT_DISCONNECTED, 0);
	}
}

TEST(destroyed_is_disconnected)
{
	connect_pair();
	rdma_destroy_qp(p.active);
	rdma_destroy_id(p.active);
	p.active = NULL;
	expect(p.there, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* What each end gives is what the other one may ask for, within what both have. */
TEST(negotiates)
{
	struct rdma_conn_param ask = {.private_data = "may I",
				      .private_data_len = 6,
				      .responder_resources = 5,
				      .initiator_depth = 7,
				      .flow_control = 1,
				      .retry_count = 3,
				      .rnr_retry_count = 2};
	struct rdma_conn_param answer = {.private_data = "you may",
					 .private_data_len = 8,
					 .responder_resources = 6,
					 .initiator_depth = 4,
					 .rnr_retry_count = 1};
	struct rdma_cm_event *event;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	open_pair();
	event = request(&ask);
	ck_assert_int_ge(event->param.conn.private_data_len, 6);
	ck_assert_str_eq(event->param.conn.private_data, "may I");
	for (unsigned i = 6; i < event->param.conn.private_data_len; i++)
		ck_assert_int_eq(((const char *)event->param.conn.private_data)[i], 0);
	ck_assert_int_eq(event->param.conn.responder_resources, 7);
	ck_assert_int_eq(event->param.conn.initiator_depth, 5);
	ck_assert_int_eq(event->param.conn.flow_control, 1);
	ck_assert_int_eq(event->param.conn.retry_count, 3);
	ck_assert_int_eq(event->param.conn.rnr_retry_count, 2);
	ck_assert_int_eq(event->param.conn.qp_num, p.active->qp->qp_num);
	rdma_ack_cm_event(event);
	make_qp(p.passive);
	ck_assert_int_eq(rdma_accept(p.passive, &answer), 0);
	event = next(p.here);
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_str_eq(event->param.conn.private_data, "you may");
	ck_assert_int_eq(event->param.conn.responder_resources, 4);
	ck_assert_int_eq(event->param.conn.initiator_depth, 6);
	ck_assert_int_eq(event->param.conn.qp_num, p.passive->qp->qp_num);
	rdma_ack_cm_event(event);
	ck_assert_int_eq(ibv_query_qp(p.active->qp, &attr, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(attr.max_rd_atomic, 6);
	ck_assert_int_eq(attr.max_dest_rd_atomic, 4);
	ck_assert_int_eq(attr.retry_cnt, 3);
	ck_assert_int_eq(attr.rnr_retry, 1);
	ck_assert_int_eq(attr.dest_qp_num, p.passive->qp->qp_num);
	ck_assert_int_eq(ibv_query_qp(p.passive->qp, &attr, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(attr.max_rd_atomic, 4);
	ck_assert_int_eq(attr.max_dest_rd_atomic, 6);
	ck_assert_int_eq(attr.retry_cnt, 3);
	ck_assert_int_eq(attr.rnr_retry, 2);
}

TEST(rejects)
{
	struct rdma_cm_event *event;

	open_pair();
	rdma_ack_cm_event(request(NULL));
	ck_assert_int_eq(rdma_reject(p.passive, "not you", 8), 0);
	event = next(p.here);
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_REJECTED);
	ck_assert_int_eq(event->status, 28);
	ck_assert_str_eq(event->param.conn.private_data, "not you");
	ck_assert_int_eq(state_of(p.active), IBV_QPS_ERR);
	rdma_ack_cm_event(event);
	/* That was it, for both. */
	REFUSED(rdma_accept(p.passive, NULL), EINVAL);
	REFUSED(rdma_connect(p.active, NULL), EINVAL);
}

TEST(no_listener)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolve(channel, "127.0.0.1", 4242);

	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	expect(channel, RDMA_CM_EVENT_REJECTED, 8);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* Says when it listens, and once more when a request has come. */
static void listens_when_told(uint16_t port, int fd)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	raise(SIGSTOP);
	listen_at(channel, "0.0.0.0", port);
	say(fd, 1);
	comes(channel, -1);
	say(fd, 2);
}

/* Asks first, and lets the server begin to listen then. Returns whether that was in time, which it
 * is not where the machine is too busy. */
static bool late_listener_is_heard(void)
{
	struct child child = child_that(listens_when_told, 4242);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolve(channel, "127.0.0.1", 4242);
	struct pollfd first[] = {{.fd = child.said, .events = POLLIN},
				 {.fd = channel->fd, .events = POLLIN}};
	bool heard;

	ck_assert_int_eq(waitpid(child.pid, NULL, WUNTRACED), child.pid);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	kill(child.pid, SIGCONT);
	hear(&child);
	ck_assert_int_gt(poll(first, 2, LONG_MS), 0);
	heard = !first[1].revents; /* the request has come before a refusal */
	end_child(&child);
	expect(channel, RDMA_CM_EVENT_REJECTED, heard ? 28 : 8);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return heard;
}

/* A server that begins to listen soon after the request is in time. */
TEST(listener_comes_late)
{
	bool heard = false;

	for (unsigned i = 0; i < 10 && !heard; i++)
		heard = late_listener_is_heard();
	ck_assert(heard);
}

/* A request without an answer ends when the listener or the asking identifier is destroyed. */
TEST(either_end_gives_up)
{
	open_pair();
	rdma_ack_cm_event(request(NULL));
	rdma_destroy_qp(p.active);
	rdma_destroy_id(p.active);
	expect(p.there, RDMA_CM_EVENT_REJECTED, 4);
	rdma_destroy_id(p.passive);
	p.passive = NULL;
	p.active = resolve(p.here, "127.0.0.1", ntohs(rdma_get_src_port(p.listener)));
	ck_assert_int_eq(rdma_connect(p.active, NULL), 0);
	ck_assert(comes(p.there, LONG_MS));
	rdma_destroy_id(p.listener); /* the request was not retrieved */
	p.listener = NULL;
	expect(p.here, RDMA_CM_EVENT_REJECTED, 28);
	ck_assert(!comes(p.there, 0));
}

TEST(backlog_is_bounded)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = new_id(channel), *id[3];
	struct rdma_event_channel *here = rdma_create_event_channel();

	ck_assert_int_eq(rdma_bind_addr(listener, at("127.0.0.1", 0)), 0);
	ck_assert_int_eq(rdma_listen(listener, 2), 0);
	for (unsigned i = 0; i < 3; i++) {
		id[i] = resolve(here, "127.0.0.1", ntohs(rdma_get_src_port(listener)));
		ck_assert_int_eq(rdma_connect(id[i], NULL), 0);
	}
	expect(here, RDMA_CM_EVENT_REJECTED, 28);
	ck_assert(!comes(here, 50));
	for (unsigned i = 0; i < 3; i++)
		rdma_destroy_id(id[i]);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(here);
}

/* --- an end that dies, or is stopped --- */

TEST(peer_is_killed)
{
	struct child child = child_that(accepts, 0);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolve(channel, "127.0.0.1", hear(&child));

	make_qp(id);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	hear(&child);
	end_child(&child);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_assert_int_eq(rdma_disconnect(id), 0);
	expect(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

TEST(listener_is_killed)
{
	struct child child = child_that(listens, 0);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	uint16_t port = hear(&child);
	struct rdma_cm_id *id = resolve(channel, "127.0.0.1", port), *other;

	other = new_id(channel);
	REFUSED(rdma_bind_addr(other, at("127.0.0.1", port)), EADDRINUSE);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	ck_assert(!comes(channel, 100)); /* it thinks about it */
	end_child(&child);
	expect(channel, RDMA_CM_EVENT_REJECTED, 28);
	/* What it has left does not hinder other processes. */
	ck_assert_int_eq(rdma_bind_addr(other, at("0.0.0.0", port)), 0);
	ck_assert_int_eq(rdma_listen(other, 1), 0);
	rdma_destroy_id(id);
	id = resolve(channel, "127.0.0.1", port);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
}

TEST(peer_is_stopped)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id, *second;
	struct child child;
	uint16_t port;

	child = child_that(accepts, 0);
	port = hear(&child);
	channel = rdma_create_event_channel();
	id = resolve(channel, "127.0.0.1", port);
	make_qp(id);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	hear(&child);
	stop(&child);
	setenv("TIDEMARK_CM_TIMEOUT", "300",
	       1); /* not before: as long as it runs, it may take its time */
	second = resolve(channel, "127.0.0.1", port);
	ck_assert_int_eq(rdma_connect(second, NULL), 0);
	expect(channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	ck_assert_int_eq(rdma_disconnect(id), 0);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	end_child(&child);
}

/* Accepts all, and says what it is told; not that what has ended is over, which comes at any
 * time. */
static void tells_all(uint16_t port, int fd)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	say(fd, ntohs(rdma_get_src_port(listen_at(channel, "0.0.0.0", port))));
	while (!rdma_get_cm_event(channel, &event)) {
		type = event->event;
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			make_qp(event->id);
			rdma_accept(event->id, NULL);
		}
		rdma_ack_cm_event(event);
		if (type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
			say(fd, (uint16_t)type);
	}
}

/* Says that it has asked, and what it is told then. */
static void asks(uint16_t port, int fd)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolve(channel, "127.0.0.1", port);

	make_qp(id);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	say(fd, 0);
	say(fd, (uint16_t)next(channel)->event);
}

/* A process that takes a dead process's slot before the death is noticed is not mistaken for it. */
TEST(place_is_taken_again)
{
	struct child server, first, second;
	uint16_t port, told[3];

	server = child_that(tells_all, 0);
	port = hear(&server);
	first = child_that(asks, port);
	hear(&first);
	ck_assert_int_eq(hear(&first), RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_int_eq(hear(&server), RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_int_eq(hear(&server), RDMA_CM_EVENT_ESTABLISHED);
	stop(&server);
	end_child(&first);
	second = child_that(asks, port);
	hear(&second);
	kill(server.pid, SIGCONT);
	ck_assert_int_eq(hear(&second), RDMA_CM_EVENT_ESTABLISHED);
	for (unsigned i = 0; i < 3; i++)
		told[i] = hear(&server);
	ck_assert_int_eq(told[0], RDMA_CM_EVENT_DISCONNECTED);
	ck_assert_int_eq(told[1], RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_int_eq(told[2], RDMA_CM_EVENT_ESTABLISHED);
	end_child(&second);
	ck_assert_int_eq(hear(&server), RDMA_CM_EVENT_DISCONNECTED);
	end_child(&server);
}

/* A request is read after the process that sent it has died. */
TEST(asker_is_killed)
{
	struct child server, client;
	uint16_t port;

	server = child_that(tells_all, 0);
	port = hear(&server);
	stop(&server);
	client = child_that(asks, port);
	hear(&client);
	end_child(&client);
	kill(server.pid, SIGCONT);
	ck_assert_int_eq(hear(&server), RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_assert_int_eq(hear(&server), RDMA_CM_EVENT_REJECTED);
	end_child(&server);
}

/* A child that the library was not told of has its parent's identifiers, and leaves them alone. */
TEST(unheard_of_child_exits)
{
	pid_t pid;

	connect_pair();
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		alarm(10);
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert(!comes(p.here, 100));
	ck_assert(!comes(p.there, 0));
	talk(p.active, p.passive);
}

static void exits(int sig)
{
	exit(sig == SIGALRM ? 0 : 1);
}

/* Its signal handler calls exit() in the middle of a call. */
static void exits_at_once(uint16_t port, int fd)
{
	const struct itimerval soon = {.it_value = {.tv_usec = 50000}};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel);

	signal(SIGALRM, exits);
	say(fd, port);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;) /* it is no address of this host's */
		rdma_bind_addr(id, at("192.0.2.1", 1));
}

TEST(handler_exits)
{
	struct child child = child_that(exits_at_once, 0);
	int status = -1;

	hear(&child);
	for (unsigned n = 0; n < 6000 && !waitpid(child.pid, &status, WNOHANG); n++)
		usleep(10000);
	if (status < 0)
		end_child(&child);
	ck_assert_int_eq(status, 0);
}

/* A server counts as dead although its child lives on. */
static void accepts_and_forks(uint16_t port, int fd)
{
	struct pollfd heard = {.fd = fd};

	accepts(port, fd);
	if (fork() == 0) {
		say(fd, 2);
		poll(&heard, 1, -1);
		_exit(0);
	}
}

TEST(peer_leaves_a_child)
{
	struct child child = child_that(accepts_and_forks, 0);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolve(channel, "127.0.0.1", hear(&child));

	make_qp(id);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	hear(&child);
	ck_assert_int_eq(hear(&child), 2);
	kill(child.pid, SIGKILL);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_child(&child);
}

/* --- another host: one with an address and a fabric of its own --- */

static void be_host(const char *address)
{
	char *own = strdup(net);

	own[strlen(own) - 1] ^= 1; /* another directory */
	setenv("TIDEMARK_LINK", "udp", 1);
	setenv("TIDEMARK_ADDRESS", address, 1);
	setenv("TIDEMARK_FABRIC", strcmp(address, host[2]) ? net : own, 1);
	free(own);
}

/* Says no to all, and which port it has. */
static void says_no(uint16_t port, int fd)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	be_host(host[2]);
	channel = rdma_create_event_channel();
	listen_at(channel, "0.0.0.0", port);
	say(fd, port);
	while (!rdma_get_cm_event(channel, &event)) {
		id = event->id;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			rdma_reject(id, &port, sizeof(port));
		rdma_ack_cm_event(event);
		rdma_destroy_id(id);
	}
}

/* Two servers share the host's port; each gets what is its own. */
TEST(another_host)
{
	struct child child[2] = {child_that(says_no, 6001), child_that(says_no, 6002)};
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	be_host(host[3]);
	channel = rdma_create_event_channel();
	hear(&child[0]);
	hear(&child[1]);
	for (unsigned i = 0; i < 16; i++) {
		id = resolve(channel, host[2], (uint16_t)(6001 + i % 2));
		ck_assert_int_eq(rdma_connect(id, NULL), 0);
		event = next(channel);
		ck_assert_int_eq(event->event, RDMA_CM_EVENT_REJECTED);
		ck_assert_int_eq(event->status, 28);
		ck_assert_int_eq(*(const uint16_t *)event->param.conn.private_data, 6001 + i % 2);
		rdma_ack_cm_event(event);
		rdma_destroy_id(id);
	}
	id = resolve(channel, host[2], 6003);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	expect(channel, RDMA_CM_EVENT_REJECTED, 8);
	rdma_destroy_id(id);
	/* Nothing is left of the host that listened. */
	end_child(&child[0]);
	end_child(&child[1]);
	setenv("TIDEMARK_CM_TIMEOUT", "300", 1);
	id = resolve(channel, host[2], 6001);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	expect(channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* --- messages that are lost, and that are not meant well --- */

static void refuse_once(void)
{
	open_pair();
	rdma_ack_cm_event(request(NULL));
	ck_assert_int_eq(rdma_reject(p.passive, NULL, 0), 0);
	rdma_destroy_id(p.passive);
	p.passive = NULL;
	expect(p.here, RDMA_CM_EVENT_REJECTED, 28);
}

static void part_once(bool by_destroying)
{
	connect_pair();
	if (by_destroying) {
		rdma_destroy_qp(p.active);
		rdma_destroy_id(p.active);
		p.active = NULL;
	} else {
		ck_assert_int_eq(rdma_disconnect(p.active), 0);
		expect(p.here, RDMA_CM_EVENT_DISCONNECTED, 0);
	}
	expect(p.there, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* All is as without faults, only later: no event is missing, none comes twice. */
TESTS(lossy_link, 2)
{
	setenv("TIDEMARK_CM_TIMEOUT", "2400", 1); /* 134 ms from try to try */
	setenv("TIDEMARK_FAULTS", "lose 20%; duplicate 20%; reorder 20%", 1);
	setenv("TIDEMARK_SEED", _i ? "7" : "3", 1);
	for (unsigned i = 0; i < 36; i++) {
		if (i % 3 == 0)
			refuse_once();
		else
			part_once(i % 3 == 1);
		expect_no_more(p.there, i % 3 != 0);
		close_pair();
	}
}

/* The first REJ is lost. The refusal is repeated, whether its identifier still exists or not. */
TESTS(refusal_is_lost, 4)
{
	struct rdma_conn_param param = {.private_data = "no", .private_data_len = 3};
	struct rdma_cm_event *event;

	setenv("TIDEMARK_CM_TIMEOUT", "5000",
	       1); /* 268 ms from try to try, and 17 s for the program */
	setenv("TIDEMARK_FAULTS", _i < 2 ? "drop send 3" : "drop send 4",
	       1); /* after REQ, MRA, REP */
	open_pair();
	if (_i >= 2)
		rdma_destroy_qp(p.active);
	rdma_ack_cm_event(request(NULL));
	if (_i < 2) {
		ck_assert_int_eq(rdma_reject(p.passive, "no", 3), 0);
	} else {
		make_qp(p.passive);
		ck_assert_int_eq(rdma_accept(p.passive, &param), 0);
		expect(p.here, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		ck_assert_int_eq(rdma_reject(p.active, "no", 3), 0);
	}
	if (_i % 2) {
		struct rdma_cm_id **one = _i < 2 ? &p.passive : &p.active;

		rdma_destroy_id(*one);
		*one = NULL;
	}
	event = next(_i < 2 ? p.here : p.there);
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_REJECTED);
	ck_assert_int_eq(event->status, 28);
	ck_assert_str_eq(event->param.conn.private_data, "no");
	rdma_ack_cm_event(event);
}

/* The last message of each type that the connection manager has sent or received: from a pcap file,
 * with the frame's 62 bytes in front. */
static struct cm_message seen[CM_TYPES];
static uint8_t seen_bytes[CM_TYPES][MAD_BYTES];

static void read_messages(const char *path)
{
	FILE *file = fopen(path, "r");
	uint8_t head[16], frame[5000];
	struct cm_message message;
	uint32_t len;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fseek(file, 24, SEEK_SET), 0);
	while (fread(head, sizeof(head), 1, file) == 1) {
		memcpy(&len, head + 8, sizeof(len));
		ck_assert_uint_le(len, sizeof(frame));
		ck_assert_uint_eq(fread(frame, len, 1, file), 1);
		if (frame[42] != 0x64 || len < 62 + MAD_BYTES || mad_decode(&message, frame + 62))
			continue;
		seen[message.type] = message;
		memcpy(seen_bytes[message.type], frame + 62, MAD_BYTES);
	}
	fclose(file);
}

/* To the host's queue pair 1, as if by the host with the other address. */
static void forge(const char *from, const char *to, const uint8_t mad[MAD_BYTES])
{
	struct sockaddr_in src = *(struct sockaddr_in *)at(from, ROCE_PORT);
	struct sockaddr_in dst = *(struct sockaddr_in *)at(to, ROCE_PORT);
	struct packet pkt = {.service = SERVICE_UD,
			     .opcode = OP_SEND_ONLY,
			     .src_qpn = QPN_MANAGEMENT,
			     .dest_qpn = QPN_MANAGEMENT,
			     .qkey = MAD_QKEY,
			     .len = MAD_BYTES,
			     .payload = (uint8_t *)mad};
	struct wire_ends ends = {.src = ntohl(src.sin_addr.s_addr),
				 .dst = ntohl(dst.sin_addr.s_addr),
				 .sport = ROCE_PORT,
				 .dport = ROCE_PORT};
	uint8_t bytes[WIRE_PACKET];
	int len = wire_encode(&pkt, &ends, bytes, sizeof(bytes)), one = 1;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), never = IP_PMTUDISC_DO;

	ck_assert_int_gt(len, MAD_BYTES);
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof(never));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&src, sizeof(src)), 0);
	ck_assert_int_eq(sendto(fd, bytes, (size_t)len, 0, (struct sockaddr *)&dst, sizeof(dst)),
			 len);
	close(fd);
}

static void accepts_elsewhere(uint16_t port, int fd)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;

	be_host(host[2]);
	channel = accept_one(port, fd);
	/* Some of the forged messages are requests. */
	while (!rdma_get_cm_event(channel, &event))
		if (event->event == RDMA_CM_EVENT_DISCONNECTED)
			say(fd, 2);
}

/* What would end the connection, if the right one had sent it. */
static void forge_the_end(const char *from, uint32_t wrong_number, uint32_t wrong_qpn)
{
	struct cm_message message = {.type = CM_DREQ,
				     .local_id = seen[CM_REQ].local_id ^ wrong_number,
				     .remote_id = seen[CM_REP].local_id,
				     .remote_qpn = seen[CM_REP].params.qpn ^ wrong_qpn};
	uint8_t mad[MAD_BYTES];

	mad_encode(&message, mad);
	forge(from, host[2], mad);
	message.type = CM_REJ;
	message.reason = CM_REJ_TIMEOUT;
	mad_encode(&message, mad);
	forge(from, host[2], mad);
	if (strcmp(from, host[3]) == 0)
		return;
	message = (struct cm_message){.type = CM_DREQ,
				      .local_id = seen[CM_REP].local_id ^ wrong_number,
				      .remote_id = seen[CM_REQ].local_id,
				      .remote_qpn = seen[CM_REQ].params.qpn ^ wrong_qpn};
	mad_encode(&message, mad);
	forge(from, host[3], mad);
}

/* A connection to another host, whose messages are recorded. */
static struct rdma_cm_id *connect_elsewhere(struct child *child,
					    struct rdma_event_channel **channel)
{
	struct rdma_cm_id *id;
	char pcap[64];

	*child = child_that(accepts_elsewhere, 6004);
	snprintf(pcap, sizeof(pcap), "/tmp/tidemark-test-%d.pcap", getpid());
	setenv("TIDEMARK_PCAP", pcap, 1);
	be_host(host[3]);
	*channel = rdma_create_event_channel();
	id = resolve(*channel, host[2], hear(child));
	make_qp(id);
	ck_assert_int_eq(rdma_connect(id, NULL), 0);
	expect(*channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	hear(child);
	read_messages(pcap);
	unlink(pcap);
	ck_assert_uint_eq(seen[CM_REP].remote_id, seen[CM_REQ].local_id);
	return id;
}

/* The RTU was lost, and the peer has given up. A forged message that says so is ignored. */
TEST(rejected_late)
{
	struct child child;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id = connect_elsewhere(&child, &channel);
	struct cm_message message = {.type = CM_REJ,
				     .remote_id = seen[CM_REQ].local_id,
				     .about = CM_ABOUT_OTHER,
				     .reason = CM_REJ_CONSUMER};
	uint8_t mad[MAD_BYTES];

	mad_encode(&message, mad);
	forge(host[2], host[3], mad);
	ck_assert(!comes(channel, 100));
	message.local_id = seen[CM_REP].local_id;
	mad_encode(&message, mad);
	forge(host[2], host[3], mad);
	expect(channel, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER);
	ck_assert_int_eq(state_of(id), IBV_QPS_ERR);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	end_child(&child);
}

TEST(forged_messages)
{
	static const enum cm_type types[] = {CM_REQ, CM_MRA, CM_REP, CM_RTU};
	struct child child;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id = connect_elsewhere(&child, &channel);
	struct pollfd said = {.fd = child.said, .events = POLLIN};

	forge_the_end(host[4], 0, 0);
	forge_the_end(host[3], 1, 0);
	forge_the_end(host[3], 0, 1);
	srand(1);
	for (unsigned n = 0; n < 4000; n++) {
		uint8_t mad[MAD_BYTES];

		memcpy(mad, seen_bytes[types[n % 4]], MAD_BYTES);
		if (n % 3 == 0)
			mad[17] = (uint8_t)(CM_REQ + rand() % (CM_TYPES - CM_REQ));
		for (int flips = rand() % 20; flips >= 0; flips--)
			mad[(n % 5 ? 24 : 0) + rand() % 232] = (uint8_t)rand();
		forge(host[4], n & 1 ? host[2] : host[3], mad);
	}
	ck_assert(!comes(channel, 100));
	ck_assert_int_eq(poll(&said, 1, 0), 0);
	ck_assert_int_eq(rdma_disconnect(id), 0);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	ck_assert_int_eq(hear(&child), 2);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	end_child(&child);
}

/* --- addresses and ports --- */

static int try_bind(const char *address, uint16_t port, int reuse)
{
	static struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	if (!channel)
		channel = rdma_create_event_channel();
	id = new_id(channel);
	if (reuse)
		rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse,
				sizeof(reuse));
	if (!rdma_bind_addr(id, at(address, port)))
		return 0;
	rdma_destroy_id(id);
	return errno;
}

TEST(ports_are_exclusive)
{
	ck_assert_int_eq(try_bind("127.0.0.1", 5001, 0), 0);
	ck_assert_int_eq(try_bind("127.0.0.1", 5001, 0), EADDRINUSE);
	ck_assert_int_eq(try_bind("0.0.0.0", 5001, 0), EADDRINUSE);
	ck_assert_int_eq(try_bind("::", 5001, 0), EADDRINUSE);
	ck_assert_int_eq(try_bind("127.0.0.2", 5001, 0), 0);
	ck_assert_int_eq(try_bind("::", 5002, 0), 0);
	ck_assert_int_eq(try_bind("127.0.0.1", 5002, 0), EADDRINUSE);
	ck_assert_int_eq(try_bind("127.0.0.1", 5003, 1), 0);
	ck_assert_int_eq(try_bind("127.0.0.1", 5003, 1), 0);
	ck_assert_int_eq(try_bind("127.0.0.1", 5003, 0), EADDRINUSE);
	ck_assert_int_eq(try_bind("192.0.2.1", 5004, 0), EADDRNOTAVAIL);
}

/* Clean up as the last process of a fabric does, but slowly. */
static void cleans_up(uint16_t port, int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[sizeof(net) + 16];
	int file;

	snprintf(path, sizeof(path), "%s/cm-ports", net);
	file = open(path, O_RDWR);
	ck_assert_int_eq(fcntl(file, F_SETLK, &all), 0);
	say(fd, 1);
	usleep(300000);
	close(file);
}

TEST(cleaning_up_takes_no_port)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct child child;

	rdma_destroy_id(listen_at(channel, "127.0.0.1", 5005));
	child = child_that(cleans_up, 0);
	hear(&child);
	rdma_destroy_id(listen_at(channel, "127.0.0.1", 5005));
	end_child(&child);
	rdma_destroy_event_channel(channel);
}

TEST(addresses)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel), *bound;

	/* Not an address of this host: it cannot be reached in this fabric. */
	ck_assert_int_eq(rdma_resolve_addr(id, NULL, at("192.0.2.1", 1), 1000), 0);
	ck_assert(comes(channel, LONG_MS));
	struct rdma_cm_event *event = next(channel);
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_ADDR_ERROR);
	ck_assert_int_lt(event->status, 0);
	rdma_ack_cm_event(event);
	ck_assert_ptr_null(id->verbs);
	REFUSED(rdma_resolve_route(id, 1000), EINVAL);
	bound = new_id(channel);
	ck_assert_int_eq(rdma_get_local_addr(bound)->sa_family, 0);
	ck_assert_int_eq(rdma_bind_addr(bound, at("127.0.0.1", 0)), 0);
	ck_assert_int_ne(rdma_get_src_port(bound), 0);
	ck_assert_ptr_nonnull(bound->verbs);
	ck_assert_ptr_nonnull(bound->pd);
	REFUSED(rdma_bind_addr(bound, at("127.0.0.1", 0)), EINVAL);
	ck_assert_int_eq(rdma_resolve_addr(bound, NULL, at("127.0.0.1", 1), 1000), 0);
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_int_eq(bound->port_num, 1);
	rdma_destroy_id(id);
	rdma_destroy_id(bound);
	rdma_destroy_event_channel(channel);
}

TEST(both_families)
{
	static const char *const ways[][2] = {{"::", "127.0.0.1"},
					      {"::", "::1"},
					      {"::1", "::1"},
					      {"::ffff:127.0.0.1", "127.0.0.1"}};
	struct rdma_event_channel *channel = rdma_create_event_channel();

	for (unsigned i = 0; i < 4; i++) {
		struct rdma_cm_id *listener = new_id(channel), *id, *passive;
		struct rdma_cm_event *event;

		if (rdma_bind_addr(listener, at(ways[i][0], 0))) {
			rdma_destroy_id(listener); /* a host without IPv6 */
			continue;
		}
		ck_assert_int_eq(rdma_listen(listener, 1), 0);
		id = resolve(channel, ways[i][1], ntohs(rdma_get_src_port(listener)));
		ck_assert_int_eq(rdma_connect(id, NULL), 0);
		event = next(channel);
		ck_assert_int_eq(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		passive = event->id;
		rdma_ack_cm_event(event);
		rdma_destroy_id(passive);
		expect(channel, RDMA_CM_EVENT_REJECTED, 28);
		rdma_destroy_id(id);
		rdma_destroy_id(listener);
	}
}

TEST(getaddrinfo_)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *res;

	ck_assert_int_eq(rdma_getaddrinfo(NULL, "4711", &hints, &res), 0);
	ck_assert_int_eq(res->ai_qp_type, IBV_QPT_RC);
	ck_assert_int_ne(res->ai_src_len, 0);
	ck_assert_int_eq(res->ai_dst_len, 0);
	ck_assert_int_eq(((struct sockaddr_in *)res->ai_src_addr)->sin_port, htons(4711));
	rdma_freeaddrinfo(res);
	hints = (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST};
	ck_assert_int_eq(rdma_getaddrinfo("127.0.0.1", "4711", &hints, &res), 0);
	ck_assert_int_eq(res->ai_port_space, RDMA_PS_TCP);
	ck_assert_int_eq(res->ai_dst_len, sizeof(struct sockaddr_in));
	rdma_freeaddrinfo(res);
	ck_assert_int_eq(rdma_getaddrinfo("no.number", "4711", &hints, &res), EAI_NONAME);
	ck_assert_int_eq(rdma_getaddrinfo(NULL, NULL, NULL, &res), EAI_NONAME);
	hints.ai_flags = 1 << 20;
	ck_assert_int_eq(rdma_getaddrinfo("127.0.0.1", "4711", &hints, &res), EAI_BADFLAGS);
}

/* --- events --- */

TEST(channel_does_not_wait)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel);
	struct rdma_cm_event *event;

	ck_assert_int_eq(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
	ck_assert(!comes(channel, 0));
	REFUSED(rdma_get_cm_event(channel, &event), EAGAIN);
	ck_assert_int_eq(rdma_resolve_addr(id, NULL, at("127.0.0.1", 1), 1000), 0);
	ck_assert(comes(channel, 0));
	ck_assert_int_eq(rdma_get_cm_event(channel, &event), 0);
	rdma_ack_cm_event(event);
	ck_assert(!comes(channel, 0));
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

static void *acknowledges(void *event)
{
	usleep(100000);
	((struct rdma_cm_event *)event)->id->context = NULL;
	rdma_ack_cm_event(event);
	return NULL;
}

TEST(destroy_waits_for_acks)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel);
	struct timespec from, to;
	pthread_t thread;

	ck_assert_int_eq(rdma_resolve_addr(id, NULL, at("127.0.0.1", 1), 1000), 0);
	clock_gettime(CLOCK_MONOTONIC, &from);
	ck_assert_int_eq(pthread_create(&thread, NULL, acknowledges, next(channel)), 0);
	ck_assert_int_eq(rdma_destroy_id(id), 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	ck_assert_int_ge((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000,
			 99);
	pthread_join(thread, NULL);
	rdma_destroy_event_channel(channel);
}

TEST(events_move)
{
	struct rdma_event_channel *first = rdma_create_event_channel(), *second;
	struct rdma_cm_id *id = new_id(first);

	second = rdma_create_event_channel();
	ck_assert_int_eq(rdma_resolve_addr(id, NULL, at("127.0.0.1", 1), 1000), 0);
	ck_assert_int_eq(rdma_migrate_id(id, second), 0);
	ck_assert_ptr_eq(id->channel, second);
	ck_assert(!comes(first, 0));
	expect(second, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	/* From now on calls wait themselves. */
	ck_assert_int_eq(rdma_migrate_id(id, NULL), 0);
	ck_assert_int_eq(rdma_resolve_route(id, 1000), 0);
	ck_assert_int_eq(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	REFUSED(rdma_connect(id, NULL), ECONNREFUSED);
	ck_assert_int_eq(rdma_migrate_id(id, first), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(first);
	rdma_destroy_event_channel(second);
}

/* --- queue pairs that are the program's own, endpoints --- */

static struct ibv_qp *own_qp(struct rdma_cm_id *id, struct ibv_cq **cq)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	init.send_cq = init.recv_cq = *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	return ibv_create_qp(id->pd, &init);
}

static void modify(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	ck_assert_int_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	ck_assert_int_eq(ibv_modify_qp(qp, &attr, mask), 0);
}

TEST(own_queue_pairs)
{
	struct ibv_cq *cq[2];
	struct ibv_qp *here, *there;
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr[2] = {{.qp_state = IBV_QPS_RTR}};
	uint8_t timeout = 20;
	int mask;

	open_pair();
	rdma_destroy_qp(p.active);
	here = own_qp(p.active, &cq[0]);
	ck_assert_int_eq(rdma_init_qp_attr(p.active, attr, &mask), -1); /* no peer yet */
	ck_assert_int_eq(
		rdma_set_option(p.active, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
		0);
	modify(p.active, here, IBV_QPS_INIT);
	param.qp_num = here->qp_num;
	rdma_ack_cm_event(request(&param));
	there = own_qp(p.passive, &cq[1]);
	modify(p.passive, there, IBV_QPS_INIT);
	modify(p.passive, there, IBV_QPS_RTR);
	modify(p.passive, there, IBV_QPS_RTS);
	param.qp_num = there->qp_num;
	REFUSED(rdma_establish(p.active), EINVAL);
	ck_assert_int_eq(rdma_accept(p.passive, &param), 0);
	expect(p.here, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	modify(p.active, here, IBV_QPS_RTR);
	modify(p.active, here, IBV_QPS_RTS);
	ck_assert(!comes(p.there, 50));
	ck_assert_int_eq(rdma_establish(p.active), 0);
	expect(p.there, RDMA_CM_EVENT_ESTABLISHED, 0);
	REFUSED(rdma_notify(p.passive, IBV_EVENT_COMM_EST), EISCONN);
	ck_assert_int_eq(ibv_query_qp(here, &attr[0], IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(ibv_query_qp(there, &attr[1], IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(attr[0].timeout, 20);
	ck_assert_int_eq(attr[1].timeout, 20);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(attr[i].dest_qp_num, (i ? here : there)->qp_num);
		ck_assert_int_eq(attr[i].sq_psn, attr[!i].rq_psn);
	}
	ibv_destroy_qp(here);
	ibv_destroy_qp(there);
	ibv_destroy_cq(cq[0]);
	ibv_destroy_cq(cq[1]);
}

/* The first data, or the program, may say so before the RTU does. */
TEST(notified)
{
	open_pair();
	rdma_ack_cm_event(request(NULL));
	ck_assert_int_eq(rdma_notify(p.passive, IBV_EVENT_COMM_EST), -1);
	make_qp(p.passive);
	ck_assert_int_eq(rdma_accept(p.passive, NULL), 0);
	ck_assert_int_eq(rdma_notify(p.passive, IBV_EVENT_COMM_EST), 0);
	expect(p.there, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect(p.here, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert(!comes(p.there, 50));
}

static void serves(uint16_t port, int fd)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *res;
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 16}, .sq_sig_all = 1};
	struct rdma_cm_id *listener, *id;
	char text[32], service[8];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	snprintf(service, sizeof(service), "%u", port);
	ck_assert_int_eq(rdma_getaddrinfo("127.0.0.1", service, &hints, &res), 0);
	ck_assert_int_eq(rdma_create_ep(&listener, res, NULL, &init), 0);
	ck_assert_int_eq(rdma_listen(listener, 0), 0);
	say(fd, ntohs(rdma_get_src_port(listener)));
	ck_assert_int_eq(rdma_get_request(listener, &id), 0);
	ck_assert_str_eq(id->event->param.conn.private_data, "servicehello");
	mr = rdma_reg_msgs(id, text, sizeof(text));
	ck_assert_int_eq(rdma_post_recv(id, NULL, text, sizeof(text), mr), 0);
	ck_assert_int_eq(rdma_accept(id, NULL), 0);
	ck_assert_int_eq(rdma_get_recv_comp(id, &wc), 1);
	ck_assert_str_eq(text, "ping");
	ck_assert_int_eq(rdma_post_send(id, NULL, "pong", 5, NULL, IBV_SEND_INLINE), 0);
	ck_assert_int_eq(rdma_get_send_comp(id, &wc), 1);
	ck_assert_int_eq(rdma_disconnect(id), 0);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	rdma_freeaddrinfo(res);
	say(fd, 1);
}

TEST(endpoints)
{
	struct child child = child_that(serves, 0);
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *res;
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 16}, .sq_sig_all = 1};
	struct rdma_conn_param param = {.private_data = "hello", .private_data_len = 6};
	struct rdma_cm_id *id;
	char text[32], service[8];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	snprintf(service, sizeof(service), "%u", hear(&child));
	ck_assert_int_eq(rdma_getaddrinfo("127.0.0.1", service, &hints, &res), 0);
	/* A service may have data of its own, which go first. */
	res->ai_connect = strdup("service");
	res->ai_connect_len = 7;
	ck_assert_int_eq(rdma_create_ep(&id, res, NULL, &init), 0);
	rdma_freeaddrinfo(res);
	mr = rdma_reg_msgs(id, text, sizeof(text));
	ck_assert_int_eq(rdma_post_recv(id, NULL, text, sizeof(text), mr), 0);
	ck_assert_int_eq(rdma_connect(id, &param), 0);
	ck_assert_int_eq(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_int_eq(rdma_post_send(id, NULL, "ping", 5, NULL, IBV_SEND_INLINE), 0);
	ck_assert_int_eq(rdma_get_send_comp(id, &wc), 1);
	ck_assert_int_eq(rdma_get_recv_comp(id, &wc), 1);
	ck_assert_str_eq(text, "pong");
	ck_assert_int_eq(rdma_disconnect(id), 0);
	ck_assert_int_eq(rdma_disconnect(id), 0); /* again: nothing to wait for */
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	ck_assert_int_eq(hear(&child), 1);
	end_child(&child);
}

TEST(shared_receive_queue)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};

	open_pair();
	rdma_ack_cm_event(request(NULL));
	ck_assert_int_eq(rdma_create_srq(p.passive, NULL, &srq), 0);
	make_qp(p.passive);
	ck_assert_ptr_eq(p.passive->qp->srq, p.passive->srq);
	ck_assert_int_eq(rdma_accept(p.passive, NULL), 0);
	struct rdma_cm_event *event = next(p.here);
	ck_assert_int_eq(event->param.conn.srq, 1);
	rdma_ack_cm_event(event);
	expect(p.there, RDMA_CM_EVENT_ESTABLISHED, 0);
	talk(p.active, p.passive);
	rdma_destroy_qp(p.passive);
	rdma_destroy_srq(p.passive);
}

/* --- what is refused --- */

TEST(refused)
{
	struct rdma_conn_param much = {.private_data = "", .private_data_len = 57};
	struct rdma_conn_param many = {.responder_resources = 200};
	uint8_t byte = 32;
	int n, flag = 1;
	struct rdma_cm_id *id;
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_context **devices = rdma_get_devices(&n);

	ck_assert_int_eq(n, 1);
	ck_assert_ptr_null(devices[1]);
	REFUSED(rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)77), EINVAL);
	open_pair();
	ck_assert_ptr_eq(p.active->verbs, devices[0]);
	REFUSED(rdma_create_qp(p.active, NULL, &init), EINVAL); /* it has one */
	REFUSED(rdma_connect(p.active, &much), EINVAL);
	REFUSED(rdma_connect(p.active, &many), EINVAL);
	REFUSED(rdma_accept(p.active, NULL), EINVAL);
	REFUSED(rdma_disconnect(p.active), EINVAL);
	REFUSED(rdma_listen(p.active, 1), EINVAL);
	REFUSED(rdma_connect(p.listener, NULL), EINVAL);
	id = new_id(p.here);
	REFUSED(rdma_create_qp(id, NULL, &init), EINVAL); /* on no device */
	REFUSED(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), EINVAL);
	REFUSED(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &flag, sizeof(flag)),
		EINVAL);
	REFUSED(rdma_set_option(id, 9, 9, &flag, sizeof(flag)), ENOSYS);
	ck_assert_str_eq(rdma_event_str((enum rdma_cm_event_type)99), "UNKNOWN EVENT");
	rdma_destroy_id(id);
	close_pair();
	rdma_free_devices(devices);
}

/* Many at a time; each of them ends. */
TEST(many)
{
	enum { COUNT = 60 };
	struct rdma_event_channel *here = rdma_create_event_channel(),
				  *there = rdma_create_event_channel();
	struct rdma_cm_id *listener = new_id(there), *id[COUNT], *passive[COUNT];

	ck_assert_int_eq(rdma_bind_addr(listener, at("127.0.0.1", 0)), 0);
	ck_assert_int_eq(rdma_listen(listener, COUNT), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		id[i] = resolve(here, "127.0.0.1", ntohs(rdma_get_src_port(listener)));
		make_qp(id[i]);
	}
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_int_eq(rdma_connect(id[i], NULL), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		struct rdma_cm_event *event = next(there);

		ck_assert_int_eq(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		passive[i] = event->id;
		rdma_ack_cm_event(event);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		make_qp(passive[i]);
		ck_assert_int_eq(rdma_accept(passive[i], NULL), 0);
	}
	for (unsigned i = 0; i < COUNT; i++)
		expect(here, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (unsigned i = 0; i < COUNT; i++)
		expect(there, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (unsigned i = 0; i < COUNT; i++)
		ck_assert_int_eq(rdma_disconnect(id[i]), 0);
	for (unsigned finished = 0; finished < COUNT;) {
		struct rdma_cm_event *event = next(there);

		/* The first ones may be over before the last ones part. */
		if (event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			ck_assert_int_eq(event->event, RDMA_CM_EVENT_DISCONNECTED);
			finished++;
		}
		rdma_ack_cm_event(event);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		rdma_destroy_qp(id[i]);
		rdma_destroy_id(id[i]);
		rdma_destroy_qp(passive[i]);
		rdma_destroy_id(passive[i]);
	}
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(here);
	rdma_destroy_event_channel(there);
}

int main(void)
{
	char command[sizeof(net) + 64];
	int failed, left;

	if (!mkdtemp(net))
		return 70;
	for (unsigned i = 1; i < 5; i++)
		snprintf(host[i], sizeof(host[i]), "127.%u.%u.%u", 160 + getpid() / 250 % 90,
			 1 + getpid() % 250, i);
	setenv("TIDEMARK_FABRIC", net, 1);
	failed = run_suite(listed_suite(NULL, teardown));
	/* The connection manager leaves nothing after the last process has ended regularly. */
	snprintf(command, sizeof(command), "ls %s 2>/dev/null | grep '^cm-' >&2", net);
	left = failed ? 0 : !system(command);
	snprintf(command, sizeof(command), "rm -rf %s %.*s?", net, (int)strlen(net) - 1, net);
	return system(command) || failed || left;
}
