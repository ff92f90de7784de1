/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a simulated host adds to its RNIC, as store code uses it: the list of devices, completion
 * channels, asynchronous events, descriptors, and connections made by rdma_cm. The server and each
 * client are tasks of hosts of their own; a source whose answers the test decides delays tasks, and
 * loses, delays and duplicates packets.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include "core/rnic/host/host.h"
#include "core/cm/calls.h"
#include "core/rnic/rnic.h"
#include "core/rt/process/descriptors.h"
#include "core/rt/rt.h"
#include "core/rt/sim.h"
#include "faultinject/random_source.h"
#include "tests/suite.h"

#define PORT	7471
#define CLIENTS 2
#define MSG	64
#define ROUNDS	8
#define MS	1000000ull

/* What the inline functions of libibverbs' header fall back to; never called. */
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	abort();
}

/* --- the world --- */

static struct sim *sim;
static struct rnic_net *net;
static struct ibv_context *verbs[CLIENTS + 1];
static unsigned done, lives;
static void (*server_main)(void *);

static struct {
	struct source source;
	uint64_t state;
	unsigned permille[CHOICE_KINDS];
	unsigned (*answer)(const struct choice_point *at, unsigned n);
	unsigned asked[CHOICE_KINDS];
} source;

static unsigned answer(struct source *me, const struct choice_point *at, unsigned n)
{
	source.asked[at->kind]++;
	if (source.answer)
		return source.answer(at, n);
	if (random_next(&source.state) % 1000 >= source.permille[at->kind])
		return 0;
	/* No delay for ever: that is a death, or a loss. */
	return 1 + (unsigned)(random_next(&source.state) % (n > 3 ? n - 2 : n - 1));
}

static void setup(void)
{
	memset(&source, 0, sizeof(source));
	source.source.answer = answer;
}

/* The client is done; the last one ends the run. */
static void client_done(void)
{
	if (++done == CLIENTS)
		sim_stop(sim, SIM_DONE);
}

static void restart(struct sim *s, void *arg)
{
	rnic_close(verbs[0]);
	sim_server_again(s, 0);
	verbs[0] = rnic_open_again(verbs[0], NULL);
	lives++;
	ck_assert_int_eq(sim_spawn(s, HOST_SERVER, NULL, server_main, NULL), 0);
}

static void dies(void *arg, unsigned host, unsigned how)
{
	if (how == DEATH_SERVER) {
		sim_at(sim, 20000, restart, NULL);
		return;
	}
	if (how == DEATH_PROCESS || how == DEATH_MACHINE)
		rnic_close(verbs[host]);
	done++;
}

/* Run the server and the clients. Returns how it ended; the hash of the run. */
static enum sim_end run(void (*server)(void *), void (*client)(void *), uint64_t *hash)
{
	const struct hardware hw = {
		.domain = DOMAIN_DMP, .ddio = DDIO_ON, .transport = TRANSPORT_IB, .mtu = 1024};
	enum sim_end end;

	sim = sim ? sim : sim_new();
	sim_reset(sim, &source.source);
	sim_set_step_budget(sim, 200000);
	sim_set_death(sim, dies, NULL);
	net = rnic_net_new(sim, &hw);
	done = lives = 0;
	server_main = server;
	for (unsigned host = 0; host <= CLIENTS; host++) {
		verbs[host] = rnic_open(net, host, NULL);
		ck_assert_int_eq(
			sim_spawn(sim, host, NULL, host ? client : server, (void *)(uintptr_t)host),
			0);
	}
	end = sim_run(sim);
	ck_assert_msg(end != SIM_FAULT, "%s", sim_fault(sim, NULL));
	if (hash)
		*hash = sim_hash(sim);
	return end;
}

static void run_well(void (*server)(void *), void (*client)(void *))
{
	ck_assert_int_eq(run(server, client, NULL), SIM_DONE);
	ck_assert_uint_eq(done, CLIENTS);
}

static void label(unsigned client, enum op_kind kind, unsigned nth)
{
	actor_label(sim_actor(sim), (struct op_label){(uint8_t)client, kind, (uint16_t)nth});
}

/* --- a connection --- */

struct conn {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buf; /* to send; then to receive */
};

static void post_recv(struct conn *c)
{
	struct ibv_sge sge = {(uintptr_t)c->buf + MSG, MSG, c->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	ck_assert_int_eq(ibv_post_recv(c->id->qp, &wr, &bad), 0);
}

static void post_send(struct conn *c, unsigned flags)
{
	struct ibv_sge sge = {(uintptr_t)c->buf, MSG, c->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = flags},
			   *bad;
	ck_assert_int_eq(ibv_post_send(c->id->qp, &wr, &bad), 0);
}

/* A queue pair with one completion queue for both, on `channel` (NULL: one of its own). */
static struct conn *make_qp(struct rdma_cm_id *id, struct ibv_comp_channel *channel)
{
	struct conn *c = sim_alloc(sim, sizeof(*c));
	struct ibv_qp_init_attr init = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	c->id = id;
	c->channel = channel ? channel : rnic_create_comp_channel(id->verbs);
	ck_assert_ptr_nonnull(c->channel);
	c->cq = rnic_create_cq(id->verbs, 32, c, c->channel, 0);
	ck_assert_ptr_nonnull(c->cq);
	init.send_cq = init.recv_cq = c->cq;
	ck_assert_int_eq(cm_create_qp(id, NULL, &init), 0);
	c->buf = sim_alloc(sim, 2 * MSG);
	c->mr = rnic_reg_mr(id->pd, c->buf, 2 * MSG, IBV_ACCESS_LOCAL_WRITE);
	ck_assert_ptr_nonnull(c->mr);
	post_recv(c);
	id->context = c;
	return c;
}

/* The next event of the channel. */
static struct rdma_cm_event *next_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	ck_assert_int_eq(cm_get_cm_event(channel, &event), 0);
	return event;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(channel);
	ck_assert_msg(event->event == type, "%s instead of %s at %llu", cm_event_str(event->event),
		      cm_event_str(type), (unsigned long long)sim_now(sim));
	ck_assert_int_eq(cm_ack_cm_event(event), 0);
}

static struct rdma_cm_id *resolved(struct rdma_event_channel *channel)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(PORT),
				 .sin_addr.s_addr = htonl(0x0a000001)};
	struct rdma_cm_id *id;
	ck_assert_int_eq(cm_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	ck_assert_int_eq(cm_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ck_assert_int_eq(cm_resolve_route(id, 1000), 0);
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static struct rdma_conn_param params(const void *data, uint8_t len)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = len,
					.responder_resources = 3,
					.initiator_depth = 5,
					.retry_count = 6,
					.rnr_retry_count = 4};
}

static struct rdma_cm_id *listening(struct rdma_event_channel *channel)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_cm_id *id;
	ck_assert_int_eq(cm_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	ck_assert_int_eq(cm_bind_addr(id, (struct sockaddr *)&at), 0);
	ck_assert_int_eq(cm_listen(id, 8), 0);
	return id;
}

/* A client's connection: it may come before the server listens, and tries again then. */
static struct conn *connect_to_server(struct rdma_event_channel *channel, unsigned client)
{
	for (unsigned tries = 0; tries < 100; tries++) {
		uint8_t hello[4] = {(uint8_t)client, 1, 2, 3};
		struct rdma_conn_param param = params(hello, sizeof(hello));
		struct conn *c = make_qp(resolved(channel), NULL);
		struct rdma_cm_event *event;
		ck_assert_int_eq(cm_connect(c->id, &param), 0);
		event = next_event(channel);
		if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
			ck_assert_uint_eq(((const uint8_t *)event->param.conn.private_data)[0],
					  client + 100);
			cm_ack_cm_event(event);
			return c;
		}
		ck_assert_int_eq(event->event, RDMA_CM_EVENT_REJECTED);
		cm_ack_cm_event(event);
		cm_destroy_qp(c->id);
		cm_destroy_id(c->id);
		rt_sleep(MS);
	}
	ck_abort_msg("no connection");
}

static struct conn *accept_client(struct rdma_cm_event *event, struct ibv_comp_channel *channel)
{
	uint8_t answer[1] = {(uint8_t)(((const uint8_t *)event->param.conn.private_data)[0] + 100)};
	struct rdma_conn_param param = params(answer, sizeof(answer));
	struct conn *c = make_qp(event->id, channel);
	param.responder_resources = event->param.conn.responder_resources;
	param.initiator_depth = event->param.conn.initiator_depth;
	ck_assert_int_eq(ibv_req_notify_cq(c->cq, 0), 0);
	ck_assert_int_eq(cm_accept(c->id, &param), 0);
	return c;
}

/* --- a server that sleeps in poll() over both channels --- */

static bool looks_again; /* after it has armed the queue */

static void serve_cq(struct conn *c)
{
	struct ibv_wc wc;
	while (ibv_poll_cq(c->cq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV)
			continue;
		memcpy(c->buf, c->buf + MSG, MSG);
		c->buf[1]++;
		post_recv(c);
		post_send(c, IBV_SEND_SIGNALED);
	}
}

static void on_completion(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;
	if (rnic_get_cq_event(channel, &cq, &context)) {
		ck_assert_int_eq(errno, EAGAIN);
		return;
	}
	ck_assert_ptr_eq(cq->cq_context, context);
	rnic_ack_cq_events(cq, 1);
	if (!looks_again) {
		serve_cq(context);
		ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
		return;
	}
	ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
	serve_cq(context);
}

static void on_cm(struct rdma_event_channel *events, struct ibv_comp_channel *channel)
{
	struct rdma_cm_event *event;
	if (cm_get_cm_event(events, &event)) {
		ck_assert_int_eq(errno, EAGAIN);
		return;
	}
	struct rdma_cm_id *id = event->id;
	enum rdma_cm_event_type type = event->event;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		accept_client(event, channel);
	cm_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_REJECTED) {
		struct conn *c = id->context;
		cm_destroy_qp(id);
		ck_assert_int_eq(rnic_host_destroy_cq(c->cq), 0);
		cm_destroy_id(id);
	}
}

static bool by_epoll;

static void polling_server(void *arg)
{
	struct rdma_event_channel *events = cm_create_event_channel();
	struct ibv_comp_channel *channel = rnic_create_comp_channel(verbs[0]);
	struct pollfd fds[2] = {{.fd = events->fd, .events = POLLIN},
				{.fd = channel->fd, .events = POLLIN}};
	int epoll = sim_epoll_create1(0);
	ck_assert_int_eq(sim_fcntl(events->fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(sim_fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 2; i++) {
		struct epoll_event watch = {.events = EPOLLIN | (i ? EPOLLET : 0), .data.u32 = i};
		ck_assert_int_eq(sim_epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i].fd, &watch), 0);
	}
	listening(events);
	for (;;) {
		struct epoll_event ready[2];
		if (by_epoll) {
			int n = sim_epoll_wait(epoll, ready, 2, -1);
			ck_assert_int_gt(n, 0);
			fds[0].revents = fds[1].revents = 0;
			for (int i = 0; i < n; i++)
				fds[ready[i].data.u32].revents = (short)ready[i].events;
		} else {
			ck_assert_int_gt(sim_poll(fds, 2, -1), 0);
		}
		if (fds[0].revents & POLLIN)
			on_cm(events, channel);
		if (fds[1].revents & POLLIN)
			/* Edge-triggered: all of them. */
			for (uint64_t n = 0; n < (by_epoll ? 8 : 1); n++)
				on_completion(channel);
	}
}

static void wait_for_reply(struct conn *c)
{
	struct ibv_wc wc;
	int n;
	do {
		while (!(n = ibv_poll_cq(c->cq, 1, &wc)))
			rt_yield();
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	} while (wc.opcode != IBV_WC_RECV);
}

static bool prompt; /* each answer comes at once, however long the server has slept */

static void asking_client(void *arg)
{
	unsigned client = (unsigned)(uintptr_t)arg;
	struct rdma_event_channel *events = cm_create_event_channel();
	label(client, OP_OPEN, 1);
	struct conn *c = connect_to_server(events, client);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		label(client, OP_PUT, i);
		c->buf[0] = (uint8_t)client;
		c->buf[1] = (uint8_t)i;
		if (prompt)
			rt_sleep(50 * MS);
		uint64_t before = sim_now(sim);
		post_send(c, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
		wait_for_reply(c);
		ck_assert(!prompt || sim_now(sim) < before + 20000);
		ck_assert_uint_eq(c->buf[MSG], client);
		ck_assert_uint_eq(c->buf[MSG + 1], i + 1);
		post_recv(c);
	}
	ck_assert_int_eq(cm_disconnect(c->id), 0);
	expect(events, RDMA_CM_EVENT_DISCONNECTED);
	client_done();
}

static void disturb(uint64_t seed)
{
	setup();
	source.state = seed;
	source.permille[CHOICE_STEP] = 30;
	source.permille[CHOICE_PACKET] = 60;
}

TEST(test_poll_over_both)
{
	looks_again = true;
	for (int i = 0; i < 2; i++) {
		by_epoll = i;
		setup();
		prompt = true;
		run_well(polling_server, asking_client);
		prompt = false;
		for (uint64_t seed = 1; seed <= 200; seed++) {
			disturb(seed);
			run_well(polling_server, asking_client);
		}
	}
}

/* --- several tasks at one channel --- */

static void worker(void *arg)
{
	for (;;) {
		struct ibv_cq *cq;
		void *context;
		ck_assert_int_eq(rnic_get_cq_event(arg, &cq, &context), 0);
		ck_assert_ptr_eq(cq->cq_context, context);
		rnic_ack_cq_events(cq, 1);
		ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
		serve_cq(context);
	}
}

static void acceptor(void *arg)
{
	for (;;) {
		struct rdma_cm_event *event = next_event(arg);
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			accept_client(event, event->listen_id->context);
		cm_ack_cm_event(event);
	}
}

static void threaded_server(void *arg)
{
	struct rdma_event_channel *events = cm_create_event_channel();
	struct ibv_comp_channel *channel = rnic_create_comp_channel(verbs[0]);
	listening(events)->context = channel;
	ck_assert_int_eq(rt_spawn("a", worker, channel), 0);
	ck_assert_int_eq(rt_spawn("b", worker, channel), 0);
	ck_assert_int_eq(rt_spawn("c", acceptor, events), 0);
	acceptor(events);
}

TEST(test_several_tasks)
{
	run_well(threaded_server, asking_client);
	for (uint64_t seed = 1; seed <= 100; seed++) {
		disturb(seed);
		source.permille[CHOICE_STEP] = 200;
		run_well(threaded_server, asking_client);
	}
}

/* A server that arms its queue after it has looked, and does not look again, sleeps through what
 * came in between: some schedule shows it. */
TEST(test_lost_wakeup)
{
	unsigned hung = 0;
	looks_again = by_epoll = false;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		disturb(seed);
		hung += run(polling_server, asking_client, NULL) != SIM_DONE;
	}
	ck_assert_uint_gt(hung, 0);
	ck_assert_uint_lt(hung, 100);
}

TEST(test_same_seed_same_hash)
{
	uint64_t one, again, plain, other = 0;
	looks_again = true;
	by_epoll = false;
	setup();
	run(polling_server, asking_client, &plain);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		disturb(seed);
		run(polling_server, asking_client, &one);
		disturb(seed);
		run(polling_server, asking_client, &again);
		ck_assert_uint_eq(one, again);
		other += one != plain;
	}
	ck_assert_uint_gt(other, 15);
	setup();
	run(polling_server, asking_client, &again);
	ck_assert_uint_eq(again, plain);
}

/* --- accept, reject, parameters --- */

static unsigned rejected, accepted;

static void choosy_server(void *arg)
{
	struct rdma_event_channel *events = cm_create_event_channel();
	struct rdma_cm_id *listener = listening(events);
	for (;;) {
		struct rdma_cm_event *event = next_event(events);
		struct rdma_cm_id *id = event->id;
		const uint8_t *hello = event->param.conn.private_data;
		switch (event->event) {
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			ck_assert_ptr_eq(event->listen_id, listener);
			ck_assert_ptr_eq(id->verbs, verbs[0]);
			ck_assert_uint_eq(event->param.conn.private_data_len, 56);
			ck_assert_uint_eq(event->param.conn.responder_resources, 5);
			ck_assert_uint_eq(event->param.conn.initiator_depth, 3);
			ck_assert_uint_eq(event->param.conn.retry_count, 6);
			ck_assert_uint_eq(ntohs(cm_get_src_port(id)), PORT);
			ck_assert_uint_eq(sim_actor(sim)->op.client, hello[0]);
			if (hello[0] == 2) {
				rejected++;
				ck_assert_int_eq(cm_reject(id, "no", 3), 0);
				cm_ack_cm_event(event);
				ck_assert_int_eq(cm_destroy_id(id), 0);
				continue;
			}
			accept_client(event, NULL);
			break;
		case RDMA_CM_EVENT_ESTABLISHED: {
			struct ibv_qp_attr attr;
			struct ibv_qp_init_attr init;
			ck_assert_int_eq(rnic_query_qp(id->qp, &attr, 0, &init), 0);
			ck_assert_int_eq(attr.qp_state, IBV_QPS_RTS);
			ck_assert_uint_eq(attr.max_dest_rd_atomic, 5);
			ck_assert_uint_eq(attr.max_rd_atomic, 3);
			ck_assert_uint_eq(attr.retry_cnt, 6);
			ck_assert_uint_eq(attr.rnr_retry, 4);
			accepted++;
			break;
		}
		default:
			break;
		}
		cm_ack_cm_event(event);
	}
}

static void polite_client(void *arg)
{
	unsigned client = (unsigned)(uintptr_t)arg;
	uint8_t hello[4] = {(uint8_t)client};
	struct rdma_conn_param param = params(hello, sizeof(hello));
	struct rdma_event_channel *events = cm_create_event_channel();
	struct rdma_cm_event *event;
	uint64_t before;
	rt_sleep(MS); /* the server listens */
	label(client, OP_OPEN, 1);
	struct conn *c = make_qp(resolved(events), NULL);
	before = sim_now(sim);
	ck_assert_int_eq(cm_connect(c->id, &param), 0);
	event = next_event(events);
	ck_assert_uint_gt(sim_now(sim), before + 1200); /* there and back */
	if (client == 2) {
		ck_assert_int_eq(event->event, RDMA_CM_EVENT_REJECTED);
		ck_assert_int_eq(event->status, 28);
		ck_assert_uint_eq(event->param.conn.private_data_len, 148);
		ck_assert_str_eq(event->param.conn.private_data, "no");
	} else {
		struct ibv_qp_attr attr;
		struct ibv_qp_init_attr init;
		ck_assert_int_eq(event->event, RDMA_CM_EVENT_ESTABLISHED);
		ck_assert_uint_eq(event->param.conn.private_data_len, 196);
		ck_assert_uint_eq(*(const uint8_t *)event->param.conn.private_data, 101);
		ck_assert_int_eq(rnic_query_qp(c->id->qp, &attr, 0, &init), 0);
		ck_assert_int_eq(attr.qp_state, IBV_QPS_RTS);
		ck_assert_uint_eq(attr.max_dest_rd_atomic, 3);
		ck_assert_uint_eq(attr.max_rd_atomic, 5);
		rt_sleep(MS); /* the server hears that it is ready */
	}
	cm_ack_cm_event(event);
	cm_destroy_qp(c->id);
	ck_assert_int_eq(cm_destroy_id(c->id), 0);
	client_done();
}

/* --- what becomes of messages --- */

static unsigned hit; /* the packet that something happens to */
static unsigned hit_answer, seen;

static unsigned hit_one(const struct choice_point *at, unsigned n)
{
	if (at->kind != CHOICE_PACKET || !strstr(at->who->name, "/cm"))
		return 0;
	return seen++ == hit ? hit_answer : 0;
}

/* Each message once lost, duplicated, late: nothing changes but the time. */
TEST(test_each_message)
{
	static const unsigned answers[] = {PACKET_LOSE, PACKET_DUPLICATE, PACKET_DELAY + 6,
					   PACKET_DELAY + 7};
	unsigned messages;
	source.answer = hit_one;
	hit = UINT32_MAX;
	seen = 0;
	rejected = accepted = 0;
	run_well(choosy_server, polite_client);
	ck_assert(rejected == 1 && accepted == 1);
	messages = seen;
	ck_assert_uint_gt(messages, 6);
	for (unsigned i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		for (hit = 0; hit < messages; hit++) {
			hit_answer = answers[i];
			seen = rejected = accepted = 0;
			run_well(choosy_server, polite_client);
			ck_assert_uint_eq(rejected, 1);
			ck_assert_uint_le(accepted, 1);
		}
}

static unsigned lose_all(const struct choice_point *at, unsigned n)
{
	return at->kind == CHOICE_PACKET ? PACKET_LOSE : 0;
}

static void unreachable_client(void *arg)
{
	struct rdma_event_channel *events = cm_create_event_channel();
	struct rdma_conn_param param = params(NULL, 0);
	struct conn *c = make_qp(resolved(events), NULL);
	ck_assert_int_eq(cm_connect(c->id, &param), 0);
	expect(events, RDMA_CM_EVENT_UNREACHABLE);
	ck_assert(sim_injected(sim, 1) & SIM_INJECTED_LINK);
	client_done();
}

TEST(test_unreachable)
{
	source.answer = lose_all;
	run_well(choosy_server, unreachable_client);
	ck_assert_uint_lt(sim_now(sim), 10000 * MS);
}

/* --- deaths --- */

static unsigned kill_at;

/* The server dies at the first client's n-th post. */
static unsigned kill_server(const struct choice_point *at, unsigned n)
{
	if (at->kind == CHOICE_STEP && at->a == STEP_POST && !strcmp(at->who->name, "c1") &&
	    at->op.kind == OP_PUT && at->op.nth == kill_at && at->b == 1)
		return choice_delay_answer(CHOICE_STEP, DEATH_SERVER);
	return 0;
}

static unsigned disconnects;

/* Asks until the server goes, and comes back with a new connection. */
static void staying_client(void *arg)
{
	unsigned client = (unsigned)(uintptr_t)arg;
	struct rdma_event_channel *events = cm_create_event_channel();
	label(client, OP_OPEN, 1);
	struct conn *c = connect_to_server(events, client);
	ck_assert_int_eq(sim_fcntl(events->fd, F_SETFL, O_NONBLOCK), 0);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		struct rdma_cm_event *event;
		struct ibv_wc wc;
		label(client, OP_PUT, i);
		post_send(c, IBV_SEND_SIGNALED);
		for (;;) {
			if (!cm_get_cm_event(events, &event)) {
				ck_assert_int_eq(event->event, RDMA_CM_EVENT_DISCONNECTED);
				ck_assert_ptr_eq(event->id, c->id);
				cm_ack_cm_event(event);
				cm_destroy_qp(c->id);
				cm_destroy_id(c->id);
				ck_assert_int_eq(sim_fcntl(events->fd, F_SETFL, 0), 0);
				disconnects++;
				c = connect_to_server(events, client);
				ck_assert_int_eq(sim_fcntl(events->fd, F_SETFL, O_NONBLOCK), 0);
				break;
			}
			if (ibv_poll_cq(c->cq, 1, &wc) > 0 && wc.opcode == IBV_WC_RECV &&
			    wc.status == IBV_WC_SUCCESS) {
				post_recv(c);
				break;
			}
			rt_yield();
		}
	}
	client_done();
}

TEST(test_server_dies)
{
	looks_again = true;
	by_epoll = false;
	for (kill_at = 1; kill_at <= ROUNDS; kill_at++) {
		setup();
		disconnects = 0;
		source.answer = kill_server;
		run_well(polling_server, staying_client);
		ck_assert_uint_eq(lives, 1);
		ck_assert_uint_eq(disconnects, CLIENTS);
	}
}

static unsigned how_client_dies, heard;

static unsigned kill_client(const struct choice_point *at, unsigned n)
{
	if (at->kind == CHOICE_STEP && !strcmp(at->who->name, "c1") && at->op.kind == OP_PUT &&
	    at->op.nth == 2 && at->a == STEP_POST && at->b == 1)
		return choice_delay_answer(CHOICE_STEP, how_client_dies);
	return 0;
}

static void hearing_server(void *arg)
{
	struct rdma_event_channel *events = cm_create_event_channel();
	listening(events);
	for (;;) {
		struct rdma_cm_event *event = next_event(events);
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			accept_client(event, NULL);
		heard += event->event == RDMA_CM_EVENT_DISCONNECTED;
		cm_ack_cm_event(event);
	}
}

static void dying_client(void *arg)
{
	unsigned client = (unsigned)(uintptr_t)arg;
	struct rdma_event_channel *events = cm_create_event_channel();
	label(client, OP_OPEN, 1);
	struct conn *c = connect_to_server(events, client);
	for (unsigned i = 1; i <= 2; i++) {
		label(client, OP_PUT, i);
		if (client == 1)
			post_send(c, IBV_SEND_SIGNALED);
	}
	rt_sleep(10000 * MS);
	sim_stop(sim, SIM_DONE);
}

/* The kernel of a process that dies says so; a machine that dies says nothing. */
TEST(test_client_dies)
{
	for (how_client_dies = DEATH_PROCESS; how_client_dies <= DEATH_MACHINE; how_client_dies++) {
		setup();
		heard = 0;
		source.answer = kill_client;
		ck_assert_int_eq(run(hearing_server, dying_client, NULL), SIM_DONE);
		ck_assert_uint_eq(heard, how_client_dies == DEATH_PROCESS);
	}
}

static void no_server(void *arg)
{
}

/* --- devices, descriptors, events of both kinds --- */

static void device_client(void *arg)
{
	unsigned host = (unsigned)(uintptr_t)arg;
	int n = -1;
	struct ibv_device **list = rnic_get_device_list(&n);
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	__be16 pkey;
	ck_assert_int_eq(n, 1);
	ck_assert_ptr_null(list[1]);
	ck_assert_ptr_eq(rnic_open_device(list[0]), verbs[host]);
	ck_assert_int_ge(verbs[host]->async_fd, 3);
	ck_assert_uint_ne(rnic_get_device_guid(list[0]), 0);
	rnic_free_device_list(list);
	ck_assert_int_eq(rnic_query_gid(verbs[host], 1, 0, &gid), 0);
	ck_assert_int_eq(rnic_query_gid_ex(verbs[host], 1, 0, &entry, 0, sizeof(entry)), 0);
	ck_assert_mem_eq(&gid, &entry.gid, sizeof(gid));
	ck_assert_int_eq(rnic_query_pkey(verbs[host], 1, 0, &pkey), 0);
	ck_assert_uint_eq(ntohs(pkey), 0xffff);
	ck_assert_int_eq(rnic_close_device(verbs[host]), 0);
	client_done();
}

static void descriptor_client(void *arg)
{
	unsigned host = (unsigned)(uintptr_t)arg;
	struct ibv_comp_channel *channel = rnic_create_comp_channel(verbs[host]);
	struct pollfd fds[3] = {{.fd = channel->fd, .events = POLLIN},
				{.fd = channel->fd + 1, .events = POLLIN},
				{.fd = -1, .events = POLLIN}};
	uint64_t before = sim_now(sim);
	ck_assert_int_eq(channel->fd, 3);
	ck_assert_int_eq(sim_poll(fds, 1, 5), 0);
	/* The clock is everyone's: others may have made a step meanwhile. */
	ck_assert_uint_ge(sim_now(sim), before + 5 * MS);
	ck_assert_uint_lt(sim_now(sim), before + 5 * MS + 1000);
	ck_assert_int_eq(sim_poll(fds, 1, 0), 0);
	ck_assert_int_eq(sim_poll(fds, 3, -1), 1);
	ck_assert_int_eq(fds[1].revents, POLLNVAL);
	ck_assert_int_eq(sim_fcntl(99, F_GETFL), -1);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_int_eq(sim_fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert(sim_fcntl(channel->fd, F_GETFL) & O_NONBLOCK);
	struct ibv_cq *cq = rnic_create_cq(verbs[host], 4, NULL, channel, 0), *got;
	void *context;
	ck_assert_int_eq(rnic_get_cq_event(channel, &got, &context), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(rnic_destroy_comp_channel(channel), EBUSY);
	ck_assert_int_eq(rnic_host_destroy_cq(cq), 0);
	ck_assert_int_eq(rnic_destroy_comp_channel(channel), 0);
	ck_assert_int_eq(sim_poll(fds, 1, 0), 1);
	ck_assert_int_eq(fds[0].revents, POLLNVAL);
	client_done();
}

TEST(test_devices_and_descriptors)
{
	run_well(no_server, device_client);
	run_well(no_server, descriptor_client);
}

static unsigned kill_first_server(const struct choice_point *at, unsigned n)
{
	return at->kind == CHOICE_STEP && at->a == STEP_POST && *at->who->name == 's' && !lives
		       ? choice_delay_answer(CHOICE_STEP, DEATH_SERVER)
		       : 0;
}

/* Its process calls nothing of its RNIC's. */
static void epoll_server(void *arg)
{
	ck_assert_int_eq(sim_epoll_create1(0), 3);
	ck_assert_int_eq(sim_epoll_create1(0), 4);
	sim_step(sim, STEP_POST, 5);
	ck_assert_uint_eq(lives, 1);
	for (unsigned host = 1; host <= CLIENTS; host++)
		client_done();
}

static void no_client(void *arg)
{
}

TEST(test_new_process_has_no_descriptors)
{
	source.answer = kill_first_server;
	run_well(epoll_server, no_client);
	ck_assert_uint_eq(lives, 1);
}

/* --- two threads, one event --- */

static bool hold_first;

static unsigned delay_first(const struct choice_point *at, unsigned n)
{
	if (at->kind != CHOICE_STEP || at->a != STEP_POLL || !hold_first)
		return 0;
	hold_first = false;
	return choice_delay_answer(CHOICE_STEP, DELAY_5MS);
}

static void takes_first(void *arg)
{
	struct rdma_cm_event *event;

	rt_sleep(1000);
	ck_assert_int_eq(cm_get_cm_event(arg, &event), 0);
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	cm_ack_cm_event(event);
}

/* A thread that does not want to wait sees an event, and another thread is quicker. */
static void late_client(void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_event_channel *events = cm_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	uint64_t until;

	if ((uintptr_t)arg == 1) {
		ck_assert_int_eq(sim_fcntl(events->fd, F_SETFL, O_NONBLOCK), 0);
		ck_assert_int_eq(cm_create_id(events, &id, NULL, RDMA_PS_TCP), 0);
		ck_assert_int_eq(cm_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
		ck_assert_int_eq(sim_spawn(sim, 1, "second", takes_first, events), 0);
		hold_first = true;
		until = sim_now(sim) + choice_delay_ns(DELAY_5MS);
		ck_assert_int_eq(cm_get_cm_event(events, &event), -1);
		ck_assert_int_eq(errno, EAGAIN);
		ck_assert_uint_ge(sim_now(sim), until);
		ck_assert_uint_lt(sim_now(sim), until + 100); /* it has not slept */
	}
	client_done();
}

TEST(test_event_for_another_thread)
{
	source.answer = delay_first;
	run_well(no_server, late_client);
}

static unsigned acked;

static void acknowledging_task(void *arg)
{
	rt_sleep(MS);
	acked = 1;
	rnic_ack_cq_events(arg, 1);
}

/* A client that destroys a queue waits for the acknowledgement of its events. */
static void owing_client(void *arg)
{
	unsigned client = (unsigned)(uintptr_t)arg;
	struct rdma_event_channel *events = cm_create_event_channel();
	if (client == 1) {
		struct conn *c = connect_to_server(events, client);
		struct ibv_cq *cq;
		void *context;
		ck_assert_int_eq(ibv_req_notify_cq(c->cq, 0), 0);
		post_send(c, IBV_SEND_SIGNALED);
		ck_assert_int_eq(rnic_get_cq_event(c->channel, &cq, &context), 0);
		cm_destroy_qp(c->id);
		ck_assert_int_eq(rt_spawn("acks", acknowledging_task, cq), 0);
		ck_assert_int_eq(rnic_host_destroy_cq(cq), 0);
		ck_assert_uint_eq(acked, 1);
	}
	client_done();
}

TEST(test_unacknowledged)
{
	acked = 0;
	looks_again = true;
	by_epoll = false;
	run_well(polling_server, owing_client);
}

/* A receive queue that is limited tells so, asynchronously. */
static void async_client(void *arg)
{
	unsigned client = (unsigned)(uintptr_t)arg;
	struct rdma_event_channel *events = cm_create_event_channel();
	struct ibv_async_event event;
	if (client == 1) {
		struct conn *c = make_qp(resolved(events), NULL);
		struct pollfd fd = {.events = POLLIN};
		rnic_open_device(verbs[client]->device);
		fd.fd = verbs[client]->async_fd;
		ck_assert_int_eq(sim_poll(&fd, 1, 1), 0);
		to_hca(verbs[client])
			->hooks.event(to_hca(verbs[client]), IBV_EVENT_QP_FATAL, c->id->qp);
		ck_assert_int_eq(sim_poll(&fd, 1, 1), 1);
		ck_assert_int_eq(rnic_get_async_event(verbs[client], &event), 0);
		ck_assert_int_eq(event.event_type, IBV_EVENT_QP_FATAL);
		ck_assert_ptr_eq(event.element.qp, c->id->qp);
		rnic_ack_async_event(&event);
		cm_destroy_qp(c->id);
	}
	client_done();
}

TEST(test_async)
{
	run_well(no_server, async_client);
}

RUN_TESTS(setup, NULL)
