/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load on a live server: its histogram, its keys, the ids of its PUTs, and what it tells.
 * A store in memory stands in for live sessions (scenarios/workload/session.h); it breaks, refuses,
 * hangs and lies when it is told to.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include "checker/live/latency.h"
#include "checker/live/load.h"
#include "checker/live/recording.h"
#include "scenarios/workload/session.h"
#include "scenarios/workload/zipf.h"
#include "tests/suite.h"

/* --- the histogram --- */

TEST(quantiles)
{
	struct latency *l = calloc(1, sizeof(*l));

	ck_assert_uint_eq(latency_quantile(l, 500), 0);
	for (uint64_t ns = 1; ns <= 100000; ns++)
		latency_add(l, ns);
	ck_assert_uint_eq(l->times, 100000);
	ck_assert_uint_eq(l->max_ns, 100000);
	static const unsigned asked[] = {1, 10, 500, 900, 990, 999, 1000};
	for (unsigned i = 0; i < ROWS_OF(asked); i++) {
		uint64_t exact = asked[i] * 100, got = latency_quantile(l, asked[i]);

		ck_assert_uint_ge(got, exact);
		ck_assert_uint_le(got, exact + exact / 64 + 1);
	}
	ck_assert_uint_eq(latency_quantile(l, 1), 100); /* below 128 ns nothing is rounded */
	ck_assert_uint_eq(latency_quantile(l, 1000), 100000);
	free(l);
}

TEST(longest)
{
	struct latency *l = calloc(1, sizeof(*l));

	latency_add(l, UINT64_MAX);
	latency_add(l, 5);
	ck_assert_uint_eq(latency_quantile(l, 500), 5);
	ck_assert_uint_eq(latency_quantile(l, 1000), UINT64_MAX);
	free(l);
}

/* --- which key --- */

/* Each rank's share of a large table against the definition, as libm computes it. */
TESTS(zipf_shares, 6)
{
	static const unsigned sizes[] = {1, 2, 1024, 5000, 100000, ZIPF_MAX_KEYS};
	const unsigned keys = sizes[_i];
	uint64_t state = 3;
	struct zipf z;
	double zeta = 0;

	for (unsigned i = 1; i <= keys; i++)
		zeta += pow(i, -0.99);
	ck_assert_int_eq(zipf_init(&z, keys, &state), 0);
	for (unsigned i = 1; i <= keys; i = i < 8 ? i + 1 : i * 3) {
		double weight = (double)(z.below[i - 1] - (i > 1 ? z.below[i - 2] : 0)),
		       share = weight / (double)z.below[keys - 1], want = pow(i, -0.99) / zeta;

		ck_assert_msg(fabs(share / want - 1) < 0.0001, "%u keys, rank %u: %g, expected %g",
			      keys, i, share, want);
	}
	zipf_free(&z);
}

/* --- a store that stands in --- */

#define KEYS	 64
#define IDS_ROOM 200000
#define SESSIONS 64

static const struct tm_store fake_store = {.name = "fake"};

struct fake {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct live_store what;
	struct {
		bool there;
		size_t len;
		uint8_t bytes[256];
	} key[KEYS];
	bool taken[TM_MAX_CLIENTS + 1]; /* client numbers */
	uint64_t *id;			/* of the first IDS_ROOM PUTs that arrived */
	unsigned ids, ops, opened, closed;
	/* how it misbehaves; a number of an operation, from 1; 0: not */
	unsigned break_every, refuse_every, foreign_at, hang_at, refuse_open;
	bool late; /* a broken PUT takes effect all the same */
	bool deaf; /* what hangs does not end when it is stopped */
	unsigned told;
	char line[512]; /* the last one */
};

struct session {
	unsigned client;
	bool stopped;
};

static struct fake fake;

static void fake_reset(void)
{
	free(fake.id);
	fake = (struct fake){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.what = {.store = &fake_store,
			 .params = {.clients = TM_MAX_CLIENTS, .keys = KEYS, .max_vlen = 256},
			 .boot = 1}};
	fake.id = calloc(IDS_ROOM, sizeof(*fake.id));
}

int session_open(struct session **session, struct ibv_context *verbs, const char *server,
		 unsigned client, char *why, size_t n)
{
	struct session *s = NULL;

	ck_assert_str_eq(server, "server");
	pthread_mutex_lock(&fake.lock);
	if (!client)
		for (client = 1; client <= TM_MAX_CLIENTS && fake.taken[client];)
			client++;
	if (fake.refuse_open) {
		fake.refuse_open--;
		snprintf(why, n, "nobody listens");
	} else if (client <= TM_MAX_CLIENTS && !fake.taken[client]) {
		s = calloc(1, sizeof(*s));
		s->client = client;
		fake.taken[client] = true;
		fake.opened++;
		*session = s;
	}
	pthread_mutex_unlock(&fake.lock);
	return s ? 0 : -ECONNREFUSED;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&fake.lock);
	fake.taken[s->client] = false;
	fake.closed++;
	pthread_mutex_unlock(&fake.lock);
	free(s);
}

const struct live_store *session_store(const struct session *s)
{
	return &fake.what;
}

unsigned session_client(const struct session *s)
{
	return s->client;
}

void session_stop(struct session *s)
{
	pthread_mutex_lock(&fake.lock);
	s->stopped = true;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
}

/* Before each operation, locked. 0, or with what it ends. */
static int misbehave(struct session *s)
{
	unsigned n = ++fake.ops;

	if (s->stopped)
		return -ECANCELED;
	if (n == fake.hang_at) {
		while (fake.deaf || !s->stopped)
			pthread_cond_wait(&fake.changed, &fake.lock);
		return -ECANCELED;
	}
	if (fake.break_every && n % fake.break_every == 0)
		return -EIO;
	return fake.refuse_every && n % fake.refuse_every == 0 ? -ENOSPC : 0;
}

static unsigned fake_key(const void *key, size_t klen)
{
	char text[LIVE_KEY_LEN + 1] = "";

	ck_assert_uint_eq(klen, LIVE_KEY_LEN);
	memcpy(text, key, klen);
	unsigned long k = strtoul(text + 4, NULL, 10);
	ck_assert_uint_lt(k, KEYS);
	return (unsigned)k;
}

int session_put(struct session *s, const void *key, size_t klen, const void *value, size_t vlen)
{
	unsigned k = fake_key(key, klen);

	ck_assert_uint_le(vlen, sizeof(fake.key[k].bytes));
	pthread_mutex_lock(&fake.lock);
	uint64_t id = 0;
	ck_assert(live_value_id(k, value, vlen, &id));
	ck_assert_uint_eq(id >> 56, s->client);
	if (fake.ids < IDS_ROOM)
		fake.id[fake.ids] = id;
	fake.ids++;
	int error = misbehave(s);
	if (!error || (fake.late && error == -EIO)) {
		fake.key[k].there = true;
		fake.key[k].len = vlen;
		memcpy(fake.key[k].bytes, value, vlen);
	}
	pthread_mutex_unlock(&fake.lock);
	return error;
}

int session_get(struct session *s, const void *key, size_t klen, void *value, size_t cap,
		size_t *vlen)
{
	unsigned k = fake_key(key, klen);

	pthread_mutex_lock(&fake.lock);
	int error = misbehave(s);
	if (!error && !fake.key[k].there)
		error = -ENOENT;
	if (!error) {
		*vlen = fake.key[k].len;
		memcpy(value, fake.key[k].bytes, *vlen < cap ? *vlen : cap);
		if (fake.foreign_at && fake.ops >= fake.foreign_at) {
			((uint8_t *)value)[*vlen - 1] ^= 1;
			fake.foreign_at = 0;
		}
	}
	pthread_mutex_unlock(&fake.lock);
	return error;
}

int session_del(struct session *s, const void *key, size_t klen)
{
	unsigned k = fake_key(key, klen);

	pthread_mutex_lock(&fake.lock);
	int error = misbehave(s);
	if (!error && !fake.key[k].there)
		error = -ENOENT;
	if (!error)
		fake.key[k].there = false;
	pthread_mutex_unlock(&fake.lock);
	return error;
}

/* Numbers that tell the fields apart; the server of every other client is gone. */
void session_injected(struct session *s, struct session_injected *out)
{
	*out = (struct session_injected){.own = {.calls = 70001, .links = 2},
					 .server = {3, 70004, 5, 6},
					 .gone = s->client % 2,
					 .bad = {IBV_WC_REM_OP_ERR, IBV_WR_SEND, 0x12345678}};
}

static void take_line(const char *line)
{
	snprintf(fake.line, sizeof(fake.line), "%s", line);
	fake.told++;
}

static struct load_options options(void)
{
	return (struct load_options){.server = "server",
				     .clients = 4,
				     .read_percent = 50,
				     .keys = KEYS,
				     .vlen = 100,
				     .seed = 1,
				     .ops = 1000,
				     .load = true,
				     .patience_s = 20,
				     .stall_s = 20,
				     .report = take_line};
}

static struct load_options o;
static struct load_result result;

static void setup(void)
{
	fake_reset();
	o = options();
}

static void teardown(void)
{
	free(fake.id);
}

static int run(void)
{
	int error = load_run(&o, &result);

	ck_assert_uint_eq(fake.opened, fake.closed);
	return error;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void assert_unique(void)
{
	ck_assert_uint_le(fake.ids, IDS_ROOM);
	qsort(fake.id, fake.ids, sizeof(*fake.id), compare);
	for (unsigned i = 1; i < fake.ids; i++)
		ck_assert_msg(fake.id[i] != fake.id[i - 1], "id %016" PRIx64 " twice", fake.id[i]);
}

static uint64_t succeeded(void)
{
	uint64_t n = 0;

	for (unsigned k = 0; k < LOAD_KINDS; k++)
		n += result.latency[k].times;
	return n;
}

/* --- loads --- */

TEST(plain)
{
	o.delete_percent = 20;
	ck_assert_int_eq(run(), 0);
	ck_assert_uint_eq(result.ops, 1000);
	ck_assert_uint_eq(succeeded(), 1000);
	ck_assert_uint_eq(fake.ops, 1000 + KEYS);
	ck_assert_uint_eq(fake.opened, 4);
	ck_assert_uint_gt(result.latency[HISTORY_GET].times, 420);
	ck_assert_uint_lt(result.latency[HISTORY_GET].times, 580);
	ck_assert_uint_gt(result.latency[HISTORY_DEL].times, 60);
	ck_assert_uint_lt(result.latency[HISTORY_DEL].times, 150);
	ck_assert_uint_gt(result.not_found, 0);
	ck_assert_uint_eq(
		result.foreign + result.reconnects + result.gave_up + result.hung + result.full, 0);
	ck_assert_uint_eq(fake.told, 0);
	assert_unique();
}

/* One client's operations depend on the seed alone. */
TEST(same_seed)
{
	uint64_t puts[3];

	o.clients = 1;
	for (unsigned i = 0; i < 3; i++) {
		fake_reset();
		o.seed = i == 2 ? 2 : 1;
		ck_assert_int_eq(run(), 0);
		puts[i] = fake.ids;
		for (unsigned k = 0; k < KEYS; k++) {
			uint64_t id = 0;
			ck_assert(live_value_id(k, fake.key[k].bytes, fake.key[k].len, &id));
			puts[i] = puts[i] * 31 + (uint32_t)id;
		}
	}
	ck_assert_uint_eq(puts[0], puts[1]);
	ck_assert_uint_ne(puts[0], puts[2]);
}

/* The program starts again and again at once, with the same client numbers, and its sessions
 * break. */
TEST(unique_ids)
{
	o.ops = 150;
	o.reconnect = true;
	for (unsigned i = 0; i < 4; i++) {
		fake.break_every = i % 2 ? 41 : 0;
		ck_assert_int_eq(run(), 0);
		ck_assert_uint_eq(result.reconnects > 0, i % 2);
	}
	ck_assert_uint_gt(fake.ids, 4 * KEYS + 200);
	assert_unique();
}

/* What the store does to 1000 operations of 4 clients, after a PUT of each of the 64 keys. */
static const struct {
	unsigned break_every, refuse_every, foreign_at, hang_at, refuse_open;
	bool reconnect;
	double patience_s, stall_s;
	/* what comes of it */
	unsigned gave_up, foreign, told;
	bool all, hung;
	int error;
	const char *line;
} cases[] = {
	{.break_every = 100,
	 .gave_up = 4,
	 .told = 4,
	 .error = -EIO,
	 .line = "has lost its session"},
	{.break_every = 100, .refuse_open = 3, .reconnect = true, .all = true, .error = -EIO},
	{.refuse_open = 1000000, .gave_up = 4, .told = 4, .line = "has no session: nobody listens"},
	{.refuse_open = 1000000, .reconnect = true, .patience_s = 0.2, .gave_up = 4, .told = 4},
	{.refuse_every = 10, .all = true, .error = -ENOSPC},
	{.foreign_at = 500,
	 .foreign = 1,
	 .told = 1,
	 .all = true,
	 .line = "100 bytes that no PUT of it wrote"},
	{.hang_at = 300,
	 .stall_s = 0.3,
	 .hung = true,
	 .told = 1,
	 .error = -ECANCELED,
	 .line = " hangs: "},
};

TESTS(misbehaves, ROWS_OF(cases))
{
	uint64_t failed = 0;

	fake.break_every = cases[_i].break_every;
	fake.refuse_every = cases[_i].refuse_every;
	fake.foreign_at = cases[_i].foreign_at;
	fake.hang_at = cases[_i].hang_at;
	fake.refuse_open = cases[_i].refuse_open;
	o.reconnect = cases[_i].reconnect;
	o.patience_s = cases[_i].patience_s > 0 ? cases[_i].patience_s : o.patience_s;
	o.stall_s = cases[_i].stall_s > 0 ? cases[_i].stall_s : o.stall_s;
	ck_assert_int_eq(run(), 0);
	ck_assert_uint_eq(result.gave_up, cases[_i].gave_up);
	ck_assert_uint_eq(result.foreign, cases[_i].foreign);
	ck_assert_int_eq(result.hung, cases[_i].hung);
	ck_assert_int_eq(result.ops == 1000, cases[_i].all);
	ck_assert_uint_ge(fake.told, cases[_i].told);
	ck_assert(!cases[_i].line || strstr(fake.line, cases[_i].line));
	ck_assert_int_eq(result.error[0].error, cases[_i].error);
	for (unsigned k = 0; k < LOAD_KINDS; k++)
		failed += result.failed[k];
	ck_assert_uint_eq(result.error[0].times, failed);
	if (cases[_i].refuse_every)
		ck_assert_uint_eq(failed, fake.ops / cases[_i].refuse_every);
	ck_assert_uint_eq(result.reconnects,
			  cases[_i].reconnect && cases[_i].break_every ? failed : 0);
}

/* A client that does not even end when it is stopped does not take the watchdog with it. */
TEST(hangs_for_ever)
{
	fake.hang_at = 1; /* before a client can have been held up for so long */
	fake.deaf = true;
	o.stall_s = 0.1;
	ck_assert_int_eq(load_run(&o, &result), -EDEADLK);
	ck_assert(result.hung);
}

TEST(for_a_time)
{

	o.clients = 1;
	o.read_percent = 100;
	o.ops = 0;
	o.seconds = 0.3;
	/* The client may have no CPU for so long, if not each time. */
	for (unsigned tries = 0; tries < 100 && !result.ops; tries++) {
		fake_reset();
		ck_assert_int_eq(run(), 0);
		ck_assert_double_ge(result.seconds, 0.3);
		ck_assert_uint_eq(fake.ids, KEYS);
	}
	ck_assert_uint_gt(result.ops, 0);
	atomic_bool now = true;
	fake_reset();
	o.seconds = 3600;
	o.interrupted = &now;
	ck_assert_int_eq(run(), 0);
	ck_assert_uint_eq(result.gave_up, 0);
}

TEST(load_alone)
{
	fake.break_every = 7;
	o.ops = 0;
	o.reconnect = true;
	ck_assert_int_eq(run(), 0);
	ck_assert_uint_eq(result.ops, 0);
	for (unsigned k = 0; k < KEYS; k++)
		ck_assert(fake.key[k].there);
}

/* --- what is recorded --- */

static const struct recording_op *record(uint64_t room, struct recording **in, uint64_t *n)
{
	char why[256] = "", path[] = "/tmp/test_load.XXXXXX";
	struct recording *out;

	close(mkstemp(path));
	ck_assert_int_eq(recording_create(&out, path, room), 0);
	o.recording = out;
	ck_assert_int_eq(run(), 0);
	recording_close(out);
	ck_assert_msg(!recording_open(in, path, why, sizeof(why)), "%s", why);
	unlink(path);
	return recording_ops(*in, n);
}

TEST(recorded)
{
	unsigned kinds[LOAD_KINDS] = {0}, unknown = 0, refused = 0, foreign = 0;
	struct recording *in;
	uint64_t n;

	fake.break_every = 150;
	fake.refuse_every = 40;
	fake.foreign_at = 500;
	fake.late = true;
	o.reconnect = true;
	const struct recording_op *op = record(5000, &in, &n);
	ck_assert_uint_eq(n, fake.ops);
	for (uint64_t i = 0; i < n; i++) {
		kinds[op[i].kind]++;
		ck_assert_uint_lt(op[i].key, KEYS);
		ck_assert_uint_eq(op[i].boot, 1);
		if (op[i].kind == HISTORY_PUT) {
			ck_assert_uint_eq(op[i].value >> 56, op[i].client);
			ck_assert_uint_eq(op[i].vlen, 100);
		}
		/* What was injected stands with what failed. */
		ck_assert_uint_eq(op[i].says, SAYS_ALL);
		ck_assert_uint_eq(op[i].gone, op[i].error && op[i].client % 2);
		ck_assert_uint_eq(op[i].calls, op[i].error ? UINT16_MAX : 0);
		ck_assert_uint_eq(op[i].links, op[i].error ? 2 : 0);
		ck_assert_uint_eq(op[i].server_calls, op[i].error ? 3 : 0);
		ck_assert_uint_eq(op[i].server_links, op[i].error ? UINT16_MAX : 0);
		ck_assert_uint_eq(op[i].dropped, op[i].error ? 5 : 0);
		ck_assert_uint_eq(op[i].departed, op[i].error ? 6 : 0);
		ck_assert_uint_eq(op[i].status, op[i].error ? IBV_WC_REM_OP_ERR : 0);
		ck_assert_uint_eq(op[i].posted, op[i].error ? IBV_WR_SEND : 0);
		ck_assert_uint_eq(op[i].vendor, op[i].error ? 0x12345678 : 0);
		if (op[i].error == -EIO) {
			/* A GET has failed. A PUT may have happened. */
			ck_assert_int_eq(op[i].returned_ns == 0, op[i].kind == HISTORY_PUT);
			unknown += op[i].returned_ns == 0;
		} else {
			ck_assert_uint_ge(op[i].returned_ns, op[i].invoked_ns);
			refused += op[i].error == -ENOSPC;
		}
		if (op[i].kind == HISTORY_GET && !op[i].error)
			foreign += op[i].found == 2;
		if (op[i].kind == HISTORY_GET && !op[i].error && op[i].found == 1) {
			bool put = false;

			for (uint64_t j = 0; j < n && !put; j++)
				put = op[j].kind == HISTORY_PUT && op[j].key == op[i].key &&
				      op[j].value == op[i].value;
			ck_assert(put);
		}
	}
	ck_assert_uint_gt(kinds[HISTORY_PUT], 400);
	ck_assert_uint_gt(unknown, 0);
	ck_assert_uint_gt(refused, 20);
	ck_assert_uint_eq(foreign, 1);
	ck_assert_uint_eq(result.foreign, 1);
	recording_close(in);
}

TEST(recording_full)
{
	struct recording *in;
	uint64_t n;

	record(500, &in, &n);
	ck_assert(result.full);
	ck_assert_uint_eq(n, 500);
	ck_assert_uint_eq(fake.ops, 500);
	ck_assert_uint_eq(result.ops, 500 - KEYS);
	recording_close(in);
}

RUN_TESTS(setup, teardown)
