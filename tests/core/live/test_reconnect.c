/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that connect again: a server lives for ever with as many connections as it has
 * clients. What a former self has left, on its way, in the completion queue, in the hands of the
 * server, never comes to the new one; and no other client notices. Each test runs scripts of
 * clients against a server in a simulation, rpc.h alone or a store.
 */
#include "core/hardware/mutant.h"
#include "core/stores/erda/wire.h"
#include "scenarios/stores.h"
#define CLIENTS 2
#include "tests/core/stores/scripts.h"

#define MSG 32 /* bytes */

static struct {
	struct rpc_server rpc;
	bool paused; /* the server does not poll */
	unsigned handled;
	char last[MSG]; /* that was handled */
	uint64_t late_ns;
} r;

/* The reply is the message. One that begins with "slow" takes its time. */
static size_t echo(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	ck_assert_uint_le(msg->len, cap);
	r.handled++;
	memcpy(r.last, msg->bytes, msg->len);
	memcpy(reply, msg->bytes, msg->len);
	if (!strncmp(r.last, "slow", 4))
		sim_sleep(w.sim, 100 * US);
	return msg->notices ? 0 : msg->len;
}

static void server_task(void *arg)
{
	for (;;) {
		if (r.paused)
			sim_sleep(w.sim, US);
		else if (!rpc_server_poll(&r.rpc))
			rt_yield();
	}
}

static void boot_rpc(void)
{
	static uint8_t region[64];

	ck_assert_int_eq(rpc_server_init(&r.rpc, &w.env[0], MSG, echo, NULL), 0);
	ck_assert_int_eq(rpc_server_export(&r.rpc, region, sizeof(region),
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
			 0);
	ck_assert_int_eq(rpc_server_listen(&r.rpc), 0);
	ck_assert_int_eq(rt_spawn("server", server_task, NULL), 0);
}

static void run(script *first, script *second)
{
	w.script[1] = first;
	w.script[2] = second;
	w.boot = w.store ? format_and_serve : boot_rpc;
	begin_world(NULL);
	run_task(server_main);
	end_world();
}

/* Of a store, or of rpc.h alone (NULL). */
static void start(const struct tm_store *store)
{
	prepare(store, 4, 400);
	memset(&r, 0, sizeof(r));
}

/* --- rpc.h --- */

static void open_both(unsigned client, struct rpc_conn *conn, struct rpc_conn *notices,
		      bool notices_first)
{
	if (notices_first)
		ck_assert_int_eq(rpc_open_notices(notices, &w.env[client], MSG, NULL), 0);
	ck_assert_int_eq(rpc_open(conn, &w.env[client], MSG, 64, notices_first ? notices : NULL),
			 0);
	if (!notices_first)
		ck_assert_int_eq(rpc_open_notices(notices, &w.env[client], MSG, conn), 0);
}

/* It gets its own answer. */
static void ask(struct rpc_conn *conn, const char *what, unsigned n)
{
	char text[MSG] = "", answer[MSG] = "";
	size_t len;

	snprintf(text, sizeof(text), "%s %u", what, n);
	ck_assert_int_eq(rpc_call(conn, text, strlen(text) + 1, answer, sizeof(answer), &len), 0);
	ck_assert_str_eq(answer, text);
	ck_assert_uint_eq(len, strlen(text) + 1);
}

/* Begins anew a hundred times, each time with something on its way; what, and how far, differs. */
static void restless(unsigned client)
{
	struct rpc_conn conn, notices;

	for (unsigned i = 0; i < 100; i++) {
		open_both(client, &conn, &notices, i % 2);
		ask(&conn, "new", i);
		ck_assert_uint_le(r.rpc.peers, 2 * CLIENTS);
		char text[MSG] = "left behind";
		ck_assert_int_eq(rpc_send(&conn, text, sizeof(text)), 0);
		if (i % 3)
			ck_assert_int_eq(rpc_send(&notices, text, sizeof(text)), 0);
		sim_sleep(w.sim, i * 100); /* 10 us: the reply has come */
		if (i % 5 == 0) {
			rpc_close(&notices);
			rpc_close(&conn);
		}
	}
}

static void steady(unsigned client)
{
	struct rpc_conn conn;

	ck_assert_int_eq(rpc_open(&conn, &w.env[client], MSG, 64, NULL), 0);
	for (unsigned i = 0; w.ended == 0; i++)
		ask(&conn, "steady", i);
}

TEST(a_hundred_times)
{
	start(NULL);
	run(restless, steady);
	ck_assert_uint_le(r.rpc.peers, 2 * CLIENTS);
}

/* A message lies in the completion queue, unseen, while its client begins anew. */
static void unseen(unsigned client)
{
	struct rpc_conn conn, again;

	ck_assert_int_eq(rpc_open(&conn, &w.env[client], MSG, 64, NULL), 0);
	r.paused = true;
	sim_sleep(w.sim, 10 * US);
	ck_assert_int_eq(rpc_send(&conn, "old", 4), 0);
	sim_sleep(w.sim, 10 * US);
	ck_assert_int_eq(rpc_open(&again, &w.env[client], MSG, 64, NULL), 0);
	r.paused = false;
	ask(&again, "new", 1);
	ck_assert_uint_eq(r.handled, 1);
	ask(&again, "new", 2);
}

/* Also with a card that leaves the completions of a destroyed queue pair in their queue. */
TESTS(what_was_in_the_queue, 2)
{
	start(NULL);
	if (_i)
		w.hw.mutant = MUTANT_NIC_LAND_AFTER_DESTROY;
	run(unseen, NULL);
}

/* A message is being handled while its client begins anew: the client has to wait, and gets no
 * reply to
 * it. */
static void in_hand(unsigned client)
{
	struct rpc_conn conn, again;

	ck_assert_int_eq(rpc_open(&conn, &w.env[client], MSG, 64, NULL), 0);
	ck_assert_int_eq(rpc_send(&conn, "slow", 5), 0);
	sim_sleep(w.sim, 20 * US);
	ck_assert_uint_eq(r.handled, 1);
	ck_assert_int_eq(rpc_open(&again, &w.env[client], MSG, 64, NULL), 0);
	ask(&again, "new", 1);
	ck_assert_uint_eq(r.handled, 2);
}

TEST(what_is_being_handled)
{
	start(NULL);
	run(in_hand, NULL);
}

/* A client that begins anew is still one client; all its connections are closed, the other clients'
 * are not. */
static void begins_anew(unsigned client)
{
	struct rpc_conn conn, notices, further, again;
	const void *data;

	open_both(client, &conn, &notices, true);
	ck_assert_int_eq(rpc_open_further(&further, &w.env[client], MSG, 64), 0);
	ck_assert_int_eq(rpc_read(&conn, 0, 0, 8, &data), 0);
	ck_assert_int_eq(rpc_read(&further, 0, 0, 8, &data), 0);
	ck_assert_int_eq(rpc_open(&again, &w.env[client], MSG, 64, NULL), 0);
	ck_assert_int_eq(rpc_read(&conn, 0, 0, 8, &data), -EIO);
	ck_assert_int_eq(rpc_read(&further, 0, 0, 8, &data), -EIO);
	ck_assert_int_eq(rpc_send(&notices, "no", 3), -EIO);
	ck_assert_int_eq(rpc_open_further(&further, &w.env[client], MSG, 64), 0);
	ck_assert_int_eq(rpc_read(&further, 0, 0, 8, &data), 0);
	ask(&again, "new", 1);
	ck_assert_uint_eq(r.rpc.peers, 3);
	/* Room for two connections of each client, whichever clients have them. */
	struct tm_env stranger = w.env[client];
	stranger.client = 77;
	ck_assert_int_eq(rpc_open(&conn, &stranger, MSG, 64, NULL), 0);
	stranger.client = 78;
	ck_assert_int_eq(rpc_open(&conn, &stranger, MSG, 64, NULL), -EUSERS);
}

TEST(all_connections_of_a_client)
{
	start(NULL);
	run(begins_anew, NULL);
}

/* --- stores --- */

static void *open_client(unsigned client)
{
	void *handle;

	ck_assert_int_eq(w.store->open(&w.env[client], &handle), 0);
	return handle;
}

static void put(void *handle, const char *key, uint8_t n)
{
	uint8_t value[MAX_VLEN];

	memset(value, n, sizeof(value));
	ck_assert_int_eq(w.store->put(handle, key, strlen(key), value, sizeof(value)), 0);
}

static uint8_t get(void *handle, const char *key)
{
	uint8_t value[MAX_VLEN];
	size_t len;

	ck_assert_int_eq(w.store->get(handle, key, strlen(key), value, sizeof(value), &len), 0);
	ck_assert_uint_eq(len, sizeof(value));
	for (unsigned i = 1; i < sizeof(value); i++)
		ck_assert_uint_eq(value[i], value[0]);
	return value[0];
}

/* Reads and writes, and begins anew. */
static void forgetful(unsigned client)
{
	for (unsigned i = 1; i <= 20; i++) {
		void *handle = open_client(client);
		if (i > 1)
			ck_assert_uint_eq(get(handle, "mine"), i - 1);
		put(handle, "mine", (uint8_t)i);
		put(handle, "ours", 200);
		sim_sleep(w.sim, i * 50);
	}
}

static void patient(unsigned client)
{
	void *handle = open_client(client);

	put(handle, "ours", 201);
	while (w.ended == 0) {
		ck_assert_uint_ge(get(handle, "ours"), 200);
		sim_sleep(w.sim, US);
	}
}

TESTS(stores_go_on, 2)
{
	start(stores[_i]);
	run(forgetful, patient);
}

/*
 * Told that a log is cleaned, and gone before it acknowledged: the server does not wait for the one
 * that came back, nor drop it.
 */
static void comes_back(unsigned client)
{
	struct rpc_conn conn, notices;

	open_both(client, &conn, &notices, true); /* never acknowledges anything */
	sim_sleep(w.sim, 60 * US);
	void *handle = open_client(client);
	put(handle, "mine", 1);
	sim_sleep(w.sim, 5 * MS);
	ck_assert_uint_eq(get(handle, "mine"), 1);
	put(handle, "mine", 2);
	ck_assert_uint_eq(get(handle, "ours"), 7);
}

static void cleans(unsigned client)
{
	void *handle = open_client(client);
	uint64_t since;

	put(handle, "ours", 7);
	while (rt_now() < 40 * US)
		sim_sleep(w.sim, US);
	ck_assert_int_eq(w.store->clean(handle), 0);
	since = rt_now();
	for (unsigned n = 0; n < 2; n++) /* a second one begins when the first has ended */
		while (w.store->clean(handle) == -EALREADY)
			sim_sleep(w.sim, 10 * US);
	ck_assert_uint_lt(rt_now() - since, 4 * MS);
	ck_assert_uint_eq(get(handle, "ours"), 7);
}

TESTS(a_cleaning_goes_on, 2)
{
	start(stores[_i]);
	run(comes_back, cleans);
}

/*
 * Erda: a client has a log cleaned twice, acknowledges the first BEGIN and is gone when END comes,
 * so the second BEGIN cannot be sent to it. A client that connects while the server waits for that
 * is told late, and has its time, too.
 */
static void want_cleaning(struct rpc_conn *conn)
{
	struct erda_req req;
	struct erda_rsp rsp;

	memset(&req, 0, sizeof(req));
	req.op = ERDA_OP_CLEAN;
	ck_assert_int_eq(rpc_call(conn, &req, ERDA_REQ_BYTES(0), &rsp, sizeof(rsp), NULL), 0);
	ck_assert_int_eq(rsp.status, 0);
}

static void dies_before_the_end(unsigned client)
{
	struct rpc_conn conn, notices;
	struct erda_notice notice;
	struct erda_req ack;
	size_t len;

	ck_assert_int_eq(rpc_open(&conn, &w.env[client], sizeof(ack), 0, NULL), 0);
	ck_assert_int_eq(rpc_open_notices(&notices, &w.env[client], sizeof(ack), &conn), 0);
	want_cleaning(&conn);
	ck_assert_int_eq(rpc_wait(&notices, &notice, sizeof(notice), &len), 0);
	ck_assert_uint_eq(notice.kind, NOTICE_BEGIN);
	want_cleaning(&conn);
	memset(&ack, 0, sizeof(ack));
	ack.op = ERDA_OP_ACK;
	ack.bad = notice.number;
	ck_assert_int_eq(rpc_send(&notices, &ack, ERDA_REQ_BYTES(0)), 0);
	rpc_close(&notices);
	rpc_close(&conn);
}

static void comes_late(unsigned client)
{
	void *handle;

	sim_sleep(w.sim, r.late_ns);
	handle = open_client(client);
	sim_sleep(w.sim, 40 * US);
	put(handle, "mine", 1);
	ck_assert_uint_eq(get(handle, "mine"), 1);
}

TESTS(who_comes_late_has_time, 40)
{
	start(store_find("erda"));
	/* when the server has lost its patience with the dead one */
	r.late_ns = 50000 + (uint64_t)_i * 500;
	run(dies_before_the_end, comes_late);
}

RUN_TESTS(NULL, NULL)
