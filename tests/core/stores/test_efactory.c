/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eFactory's log cleaning where a campaign does not show it: what is moved and what
 * is given back, several cleanings in a row, a log that is always nearly full, clients that
 * do not acknowledge; and the parts of rpc.h that it needs. Each test runs a server and some
 * scripted clients in a simulation, and looks at the pool itself.
 */
#include <stdarg.h>
#include "core/stores/efactory/efactory.h"
#define CLIENTS 4
#include "tests/core/stores/scripts.h"

static struct ef_pool pool;

static void set_knob(const char *name, unsigned value)
{
	for (unsigned k = 0; efactory_store.knobs[k].name; k++) {
		if (strcmp(efactory_store.knobs[k].name, name))
			continue;
		w.params.knob[k] = (uint8_t)value;
		return;
	}
	ck_abort_msg("no knob %s", name);
}

static void fsck_bad(struct tm_fsck *fsck, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ck_abort_msg("%s", text);
}

static void check_pool(void *arg)
{
	struct tm_fsck fsck = {fsck_bad};

	ck_assert_int_eq(efactory_store.recover(&w.env[0]), 0);
	efactory_store.fsck(&w.env[0], &fsck);
	sim_stop(w.sim, SIM_DONE);
}

/* Run the scripts to their end; then the pool, recovered, must be in order. */
static void run(void)
{
	w.boot = format_and_serve;
	begin_world(NULL);
	ef_pool_map(&pool, &w.params, w.env[0].pm);
	run_task(server_main);
	run_task(check_pool);
	end_world();
}

/* --- what scripts do --- */

static void *open_client(unsigned client)
{
	void *handle;

	ck_assert_int_eq(efactory_store.open(&w.env[client], &handle), 0);
	return handle;
}

static void value_of(unsigned n, uint8_t value[MAX_VLEN])
{
	for (unsigned i = 0; i < MAX_VLEN; i++)
		value[i] = (uint8_t)(n * 31 + i * 7 + (i * n) / 5);
}

static int put(void *handle, unsigned key, unsigned n)
{
	char name[8];
	uint8_t value[MAX_VLEN];

	value_of(n, value);
	snprintf(name, sizeof(name), "k%u", key);
	return efactory_store.put(handle, name, strlen(name), value, MAX_VLEN);
}

/* The number of the value that is there; -errno. */
static int get(void *handle, unsigned key, unsigned upto)
{
	char name[8];
	uint8_t value[MAX_VLEN], other[MAX_VLEN];
	size_t len = 0;
	int rc;

	snprintf(name, sizeof(name), "k%u", key);
	rc = efactory_store.get(handle, name, strlen(name), value, sizeof(value), &len);
	if (rc)
		return rc;
	ck_assert_uint_eq(len, MAX_VLEN);
	for (unsigned n = 0; n <= upto; n++) {
		value_of(n, other);
		if (!memcmp(value, other, MAX_VLEN))
			return (int)n;
	}
	ck_abort_msg("k%u has a value that nobody has put", key);
}

static unsigned current_log(void)
{
	return pool.header->state & EF_STATE_LOG;
}

static bool cleaning(void)
{
	return pool.header->state & EF_STATE_CLEAN;
}

static void clean_and_wait(void *handle)
{
	unsigned log = current_log();

	ck_assert_int_eq(efactory_store.clean(handle), 0);
	for (unsigned i = 0; i < 1000 && current_log() == log; i++)
		sim_sleep(w.sim, 10 * US);
	ck_assert_uint_ne(current_log(), log);
	sim_sleep(w.sim, 50 * US); /* the clients' acknowledgements */
}

/* Where the log's next object would go. */
static uint64_t end_of_log(void)
{
	uint64_t end = 0;

	for (uint64_t i = 0; i < pool.slots; i++) {
		uint64_t off = pool.table[i].off[current_log()];

		if (pool.table[i].ctl & EF_USED && off > end)
			end = off;
	}
	return end ? end + ef_span(&pool, MAX_VLEN) : TM_LINE;
}

/* A connection that sends what it likes, beside others of its client. */
static void open_raw(struct rpc_conn *conn, unsigned client)
{
	ck_assert_int_eq(rpc_open_further(conn, &w.env[client], sizeof(struct kv_req),
					  sizeof(struct ef_object) + MAX_VLEN),
			 0);
}

/* The first half of a PUT, whose writer then dies: an address, and no WRITE. */
static uint64_t half_a_put(struct rpc_conn *conn, const char *key)
{
	struct kv_req req = {
		.op = KV_PUT, .klen = (uint8_t)strlen(key), .vlen = MAX_VLEN, .crc = 1};
	struct kv_rsp rsp;
	size_t len;

	kv_key_pad(req.key, key, strlen(key));
	ck_assert_int_eq(rpc_call(conn, &req, sizeof(req), &rsp, sizeof(rsp), &len), 0);
	ck_assert_int_eq(rsp.status, 0);
	return rsp.off;
}

/* Is the connection still good for a READ? */
static int read_table(struct rpc_conn *conn)
{
	const void *data;

	return rpc_read(conn, EF_TABLE, 0, sizeof(struct ef_entry), &data);
}

/* ------------------------------------------------------------------ tests */

static void reclaims(unsigned client)
{
	void *handle = open_client(client);
	uint64_t span = ef_span(&pool, MAX_VLEN);
	struct rpc_conn dead;

	for (unsigned n = 0; n < 4; n++)
		ck_assert_int_eq(put(handle, 1, n), 0);
	ck_assert_int_eq(put(handle, 2, 4), 0);
	ck_assert_int_eq(put(handle, 3, 5), 0);
	ck_assert_int_eq(efactory_store.del(handle, "k3", 2), 0);
	open_raw(&dead, 2);
	half_a_put(&dead, "k2");
	sim_sleep(w.sim, 8 * MS); /* past the timeout: the dead writer's version is invalid, and
				     still there */
	ck_assert_uint_gt(end_of_log(), TM_LINE + 6 * span);
	clean_and_wait(handle);
	/* One version of each key; none of the deleted one. */
	ck_assert_uint_eq(end_of_log(), TM_LINE + 2 * span);
	ck_assert_int_eq(get(handle, 1, 9), 3);
	ck_assert_int_eq(get(handle, 2, 9), 4);
	ck_assert_int_eq(get(handle, 3, 9), -ENOENT);
	ck_assert_int_eq(put(handle, 3, 6), 0);
	ck_assert_int_eq(get(handle, 3, 9), 6);
}

static void in_flight(unsigned client)
{
	void *handle = open_client(client);
	struct rpc_conn slow;
	uint8_t value[MAX_VLEN];
	struct kv_req req = {.op = KV_PUT, .klen = 2, .vlen = MAX_VLEN};
	struct kv_rsp rsp;
	unsigned log = current_log();

	ck_assert_int_eq(put(handle, 1, 1), 0);
	open_raw(&slow, 2);
	value_of(2, value);
	req.crc = kv_crc(value, MAX_VLEN);
	kv_key_pad(req.key, "k1", 2);
	ck_assert_int_eq(rpc_call(&slow, &req, sizeof(req), &rsp, sizeof(rsp), NULL), 0);
	ck_assert_int_eq(efactory_store.clean(handle), 0);
	sim_sleep(w.sim, 20 * MS);
	/* A version that may still arrive: the old log is needed, and all goes on. */
	ck_assert(cleaning());
	ck_assert_int_eq(efactory_store.clean(handle), -EALREADY);
	ck_assert_int_eq(get(handle, 1, 9), 1);
	ck_assert_int_eq(rpc_write(&slow, EF_LOG + ef_log_of(rsp.off),
				   ef_off_of(rsp.off) + sizeof(struct ef_object), value, MAX_VLEN),
			 0);
	sim_sleep(w.sim, 20 * MS);
	ck_assert(!cleaning());
	ck_assert_uint_ne(current_log(), log);
	ck_assert_int_eq(get(handle, 1, 9), 2);
}

static void cleans_often(unsigned client)
{
	void *handle = open_client(client);

	for (unsigned n = 0; n < 6; n++) {
		ck_assert_int_eq(put(handle, 1, 10 + n), 0);
		clean_and_wait(handle);
		ck_assert_uint_eq(current_log(), (n + 1) % 2);
		ck_assert_int_eq(get(handle, 1, 99), (int)(10 + n));
	}
}

static void reads_and_writes(unsigned client)
{
	void *handle = open_client(client);

	for (unsigned n = 0; n < 100; n++) {
		ck_assert_int_eq(put(handle, 2, n), 0);
		ck_assert_int_eq(get(handle, 2, 99), (int)n);
		if (n % 10 == 9)
			sim_sleep(w.sim, 60 * US);
	}
}

static void fills(unsigned client)
{
	void *handle = open_client(client);
	unsigned log = current_log(), cleanings = 0;

	for (unsigned n = 0; n < 60; n++) {
		ck_assert_int_eq(put(handle, 1 + n % 2, n), 0);
		if (n % 5 == 4)
			ck_assert_int_eq(get(handle, 1 + n % 2, 99), (int)n);
		cleanings += current_log() != log;
		log = current_log();
	}
	/* Three versions fit besides the two keys'. */
	ck_assert_uint_ge(cleanings, 60 / 5);
}

/* A client that gets the notice and does not answer. */
static void drops(unsigned client)
{
	void *handle = open_client(client);
	struct rpc_conn deaf, idle, notices;
	uint64_t place;

	ck_assert_int_eq(put(handle, 1, 1), 0);
	ck_assert_int_eq(rpc_open_notices(&notices, &w.env[2], sizeof(struct kv_req), NULL), 0);
	ck_assert_int_eq(rpc_open(&deaf, &w.env[2], sizeof(struct kv_req), MAX_VLEN, &notices), 0);
	open_raw(&idle, 2);
	place = half_a_put(&deaf, "k1");
	ck_assert_int_eq(efactory_store.clean(handle), 0);
	sim_sleep(w.sim, 500 * US);
	ck_assert(!cleaning()); /* not begun: it may be reading by itself */
	ck_assert_int_eq(read_table(&idle), 0);
	sim_sleep(w.sim, 10 * MS);
	ck_assert_uint_eq(current_log(), 1);
	/* All its connections are closed, also to what is still exported. */
	ck_assert_int_eq(read_table(&idle), -EIO);
	/* Its WRITE comes too late to do harm. */
	ck_assert_int_eq(rpc_write(&deaf, EF_LOG + ef_log_of(place), ef_off_of(place), "late", 4),
			 -EIO);
	ck_assert_int_eq(get(handle, 1, 9), 1);
	ck_assert_int_eq(put(handle, 1, 2), 0);
	clean_and_wait(handle);
	ck_assert_int_eq(get(handle, 1, 9), 2);
}

/* A client that cannot get the notice: its connection for notices is in the error state. */
static void cannot_be_told(unsigned client)
{
	static const uint8_t too_long[1024];
	void *handle = open_client(client);
	struct rpc_conn idle, notices;

	ck_assert_int_eq(put(handle, 1, 1), 0);
	ck_assert_int_eq(rpc_open_notices(&notices, &w.env[2], sizeof(too_long), NULL), 0);
	open_raw(&idle, 2);
	ck_assert_int_eq(rpc_send(&notices, too_long, sizeof(too_long)), -EIO);
	ck_assert_int_eq(read_table(&idle), 0);
	/* The timeout of 10 s is not waited for. */
	clean_and_wait(handle);
	ck_assert_int_eq(read_table(&idle), -EIO);
	ck_assert_int_eq(get(handle, 1, 9), 1);
}

/* A client that is slow to answer, by the connection for its operations; and the notices that it
 * gets. */
static void waits(unsigned client)
{
	void *handle = open_client(client);
	struct kv_req ack = {.op = KV_ACK};
	struct rpc_conn slow, notices;
	struct ef_notice notice;
	size_t len;

	ck_assert_int_eq(put(handle, 1, 1), 0);
	ck_assert_int_eq(rpc_open_notices(&notices, &w.env[2], sizeof(struct kv_req), NULL), 0);
	ck_assert_uint_eq(notices.word, 0);
	open_raw(&slow, 2);
	ck_assert_int_eq(efactory_store.clean(handle), 0);
	ck_assert_int_eq(rpc_wait(&notices, &notice, sizeof(notice), &len), 0);
	ck_assert_uint_eq(len, sizeof(notice));
	ck_assert_uint_eq(notice.number, 1);
	ck_assert_uint_eq(notice.region, EF_LOG + 1);
	ck_assert_uint_eq(notice.where.len, pool.log_len);
	sim_sleep(w.sim, 2 * MS);
	ck_assert(!cleaning());
	ck_assert_uint_eq(current_log(), 0);
	ack.off = notice.number;
	ck_assert_int_eq(rpc_send(&slow, &ack, sizeof(ack)), 0);
	ck_assert_int_eq(rpc_wait(&notices, &notice, sizeof(notice), &len), 0);
	ck_assert_uint_eq(notice.number, 2);
	ck_assert_uint_eq(current_log(), 1);
	/* The old log can still be read, until this one has answered, too. */
	sim_sleep(w.sim, 2 * MS);
	const void *data;
	ck_assert_int_eq(rpc_read(&slow, EF_LOG, TM_LINE, 64, &data), 0);
	ack.off = notice.number;
	ck_assert_int_eq(rpc_send(&slow, &ack, sizeof(ack)), 0);
	sim_sleep(w.sim, 20 * MS);
	ck_assert_int_eq(rpc_read(&slow, EF_LOG, TM_LINE, 64, &data), -EIO);
	ck_assert_int_eq(get(handle, 1, 9), 1);
}

static const struct {
	unsigned keys, updates;
	const char *knob;  /* at 1, not 0; or NULL */
	script *script[2]; /* of clients 1 and 2 */
} cleanings[] = {
	/* Versions move, and space is given back. */
	{3, 20, "timeout", {reclaims}},
	/* A version in flight is waited for. */
	{1, 20, NULL, {in_flight}},
	/* Cleanings in a row beside a busy client: notices come while an operation is on and while
	 * none is. */
	{2, 200, NULL, {cleans_often, reads_and_writes}},
	/* A tight log is cleaned when it must be. */
	{2, 100, "room", {fills}},
	/* Acknowledgements are waited for; a client that sends none, or cannot be told, is dropped.
	 */
	{1, 20, NULL, {waits}},
	{1, 20, "timeout", {drops}},
	{1, 20, NULL, {cannot_be_told}},
};

TESTS(cleaning_goes_on, ROWS_OF(cleanings))
{
	prepare(&efactory_store, cleanings[_i].keys, cleanings[_i].updates);
	if (cleanings[_i].knob)
		set_knob(cleanings[_i].knob, 1);
	w.script[1] = cleanings[_i].script[0];
	w.script[2] = cleanings[_i].script[1];
	run();
}

/* --- rpc.h --- */

static struct {
	struct rpc_server rpc;
	uint8_t region[2][64];
	unsigned told;
} r;

static size_t echo(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	if (msg->notices) {
		r.told++;
		return 0;
	}
	ck_assert_uint_le(msg->len, cap);
	memcpy(reply, msg->bytes, msg->len);
	return msg->len;
}

static void rpc_script(unsigned client)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	struct rpc_conn conn, notices, half;
	char text[16] = "";
	const void *data;
	size_t len;

	ck_assert_int_eq(rpc_open_notices(&notices, &w.env[client], 16, NULL), 0);
	ck_assert_int_eq(rpc_open(&conn, &w.env[client], 16, 64, &notices), 0);
	ck_assert_uint_eq(conn.word, 7);
	/* Connection 0 is the one for notices. The second notice has to wait for the first. */
	ck_assert_int_eq(rpc_server_notify(&r.rpc, 0, "one", 4), 0);
	ck_assert_int_eq(rpc_server_notify(&r.rpc, 0, "two", 4), -EBUSY);
	ck_assert_int_eq(rpc_wait(&notices, text, sizeof(text), &len), 0);
	ck_assert_str_eq(text, "one");
	sim_sleep(w.sim, 100 * US);
	ck_assert_int_eq(rpc_server_notify(&r.rpc, 0, "two", 4), 0);
	ck_assert_int_eq(rpc_wait(&notices, text, 2, &len), 0);
	ck_assert_uint_eq(len, 4);
	ck_assert_int_eq(memcmp(text, "twe", 3),
			 0); /* two bytes of it, after them the first notice */
	ck_assert_int_eq(rpc_send(&notices, "heard", 6), 0);
	sim_sleep(w.sim, 100 * US);
	ck_assert_uint_eq(r.told, 1);
	ck_assert_int_eq(rpc_call(&conn, "hello", 6, text, sizeof(text), &len), 0);
	ck_assert_str_eq(text, "hello");
	/* A region that is there, one that is not known yet, one that has gone. */
	ck_assert_int_eq(rpc_read(&conn, 0, 0, 64, &data), 0);
	ck_assert_int_eq(rpc_server_export_at(&r.rpc, 0, r.region[1], 64, access), -EINVAL);
	ck_assert_int_eq(rpc_server_export_at(&r.rpc, 1, r.region[1], 64, access), 0);
	ck_assert_int_eq(rpc_read(&conn, 1, 0, 64, &data), -ERANGE);
	rpc_set_region(&conn, 1, &r.rpc.region[1]);
	ck_assert_int_eq(rpc_read(&conn, 1, 0, 64, &data), 0);
	ck_assert_int_eq(memcmp(data, r.region[1], 64), 0);
	rpc_server_unexport(&r.rpc, 1);
	ck_assert_int_eq(rpc_read(&conn, 1, 0, 64, &data), -EIO);
	rpc_close(&conn);
	ck_assert_int_eq(rpc_open(&conn, &w.env[client], 16, 64, &notices), 0);
	ck_assert_int_eq(rpc_call(&conn, "again", 6, text, sizeof(text), &len), 0);
	rpc_server_drop(&r.rpc, client);
	ck_assert_int_eq(rpc_server_notify(&r.rpc, 0, "no", 3), -EIO);
	ck_assert_int_eq(rpc_read(&conn, 0, 0, 64, &data), -EIO);
	/* Only the second connection reached this server. The client's next first one closes it,
	 * and what is opened after that closes nothing. */
	ck_assert_int_eq(rpc_open_notices(&half, &w.env[client], 16, &conn), 0);
	ck_assert_int_eq(rpc_open(&conn, &w.env[client], 16, 64, NULL), 0);
	ck_assert_int_eq(rpc_send(&half, "gone", 5), -EIO);
	ck_assert_int_eq(rpc_open_notices(&notices, &w.env[client], 16, &conn), 0);
	ck_assert_int_eq(rpc_call(&conn, "anew", 5, text, sizeof(text), &len), 0);
	ck_assert_int_eq(rpc_send(&notices, "heard", 6), 0);
}

static void rpc_boot(void)
{
	memset(r.region[1], 0x5a, sizeof(r.region[1]));
	ck_assert_int_eq(rpc_server_init(&r.rpc, &w.env[0], 16, echo, NULL), 0);
	r.rpc.word = 7;
	ck_assert_int_eq(rpc_server_export(&r.rpc, r.region[0], 64,
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
			 0);
	ck_assert_int_eq(rpc_server_listen(&r.rpc), 0);
	ck_assert_int_eq(rt_spawn("server", rpc_server_task, &r.rpc), 0);
}

TEST(notices_regions_and_dropping)
{
	prepare(NULL, 1, 1);
	memset(&r, 0, sizeof(r));
	w.script[1] = rpc_script;
	w.boot = rpc_boot;
	begin_world(NULL);
	run_task(server_main);
	end_world();
}

RUN_TESTS(NULL, NULL)
