/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See load.h.
 *
 * Each worker is a thread: opens its session, puts its share of the keys, waits until all
 * have done so, then does operations until it is stopped. The caller's thread is the
 * watchdog: it sees what each worker is at, and since when, in a few atomics.
 */
#include "checker/live/load.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "checker/live/recording.h"
#include "faultinject/sources.h"
#include "scenarios/workload/zipf.h"

#define SECOND	       1000000000ull /* ns */
#define TICK	       (SECOND / 8)  /* of a session's number */
#define LOOK	       (SECOND / 20) /* between two looks of the watchdog */
#define FIRST_DELAY    (SECOND / 100)
#define LONGEST_DELAY  SECOND
#define GRACE	       (3 * SECOND) /* for workers that were stopped */
#define POPULAR_SEED   1 /* which keys are popular is the same for all programs that load a store */
#define KEY_NONE       UINT32_MAX
#define DOING_A_OPEN   LOAD_KINDS
#define PUTS_A_SESSION UINT32_MAX

static const char *const doing_names[] = {"PUT", "GET", "DEL", "connecting"};

struct worker {
	struct load *load;
	unsigned number; /* from 0 */
	pthread_t thread;
	bool started;
	uint64_t quota; /* operations */
	uint64_t random;

	pthread_mutex_t
		lock;  /* of `session`, which the watchdog may stop while it is being closed */
	void *session; /* NULL: none */
	unsigned client;
	uint32_t boot, session_number, puts;
	bool lost; /* there is no session, and there will be none */
	uint8_t *value, *got;

	/* For the watchdog. */
	atomic_uint_fast64_t since; /* ns; 0: it is at nothing that could hang */
	atomic_uint doing, key;
	atomic_bool ended;
	atomic_uint_fast64_t done;

	struct load_result result; /* its part */
};

struct load {
	struct load_options o;
	struct zipf zipf;
	struct worker *worker;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned ready; /* workers that have loaded their keys, or given up */
	bool go;	/* the measured part has begun */
	atomic_bool ending, full;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};

	nanosleep(&t, NULL);
}

static void __attribute__((format(printf, 2, 3))) report(struct load *l, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&l->lock);
	l->o.report(l->o.report_arg, line);
	pthread_mutex_unlock(&l->lock);
}

static void begin_doing(struct worker *w, unsigned doing, uint32_t key)
{
	atomic_store(&w->doing, doing);
	atomic_store(&w->key, key);
	atomic_store(&w->since, clock_ns(CLOCK_MONOTONIC));
}

static uint64_t end_doing(struct worker *w)
{
	return clock_ns(CLOCK_MONOTONIC) - atomic_exchange(&w->since, 0);
}

/* --- sessions --- */

/* See load.h on the number. False: the load is ending. */
static bool number_session(struct worker *w)
{
	uint64_t tick = clock_ns(CLOCK_REALTIME) / TICK;

	w->session_number = (uint32_t)tick & 0xffffff;
	w->puts = 0;
	while (clock_ns(CLOCK_REALTIME) / TICK <= tick) {
		if (atomic_load(&w->load->ending))
			return false;
		sleep_ns(TICK / 16);
	}
	return true;
}

static void close_session(struct worker *w)
{
	void *session;

	pthread_mutex_lock(&w->lock);
	session = w->session;
	w->session = NULL;
	pthread_mutex_unlock(&w->lock);
	if (session)
		w->load->o.sessions->close(session);
}

/* One try. 0 or -errno. */
static int open_session(struct worker *w, char *why, size_t n)
{
	const struct load_options *o = &w->load->o;
	void *session = NULL;
	int error;

	begin_doing(w, DOING_A_OPEN, KEY_NONE);
	error = o->sessions->open(o->arg, o->first_client ? o->first_client + w->number : 0,
				  &session, why, n);
	end_doing(w);
	if (error)
		return error;
	pthread_mutex_lock(&w->lock);
	w->session = session;
	pthread_mutex_unlock(&w->lock);
	w->client = o->sessions->client(session);
	w->boot = o->sessions->store(session)->boot;
	if (number_session(w))
		return 0;
	close_session(w);
	return -ECANCELED;
}

/* Until there is a session, or no hope of one. */
static void get_session(struct worker *w)
{
	struct load *l = w->load;
	uint64_t start = clock_ns(CLOCK_MONOTONIC), delay = FIRST_DELAY;
	char why[256] = "";

	for (;;) {
		int error = open_session(w, why, sizeof(why));
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (!error)
			return;
		if (!l->o.reconnect || (double)(now - start) > l->o.patience_s * SECOND) {
			if (!atomic_load(&l->ending))
				report(l, "client %u has no session: %s", w->number + 1,
				       why[0] ? why : strerror(-error));
			break;
		}
		for (uint64_t slept = 0; slept < delay && !atomic_load(&l->ending);
		     slept += FIRST_DELAY)
			sleep_ns(FIRST_DELAY);
		if (atomic_load(&l->ending))
			break;
		delay = 2 * delay < LONGEST_DELAY ? 2 * delay : LONGEST_DELAY;
	}
	w->lost = true;
	w->result.gave_up = !atomic_load(&l->ending);
}

/* Does this error end the session? Then it is not known whether an update took effect. */
static bool broken(int error)
{
	return error == -EIO || error == -ECANCELED || error == -ETIMEDOUT ||
	       error == -ECONNRESET || error == -EPIPE || error == -ENOTCONN;
}

static void renew_session(struct worker *w)
{
	struct load *l = w->load;

	close_session(w);
	if (atomic_load(&l->ending)) {
		w->lost = true;
		return;
	}
	if (!l->o.reconnect) {
		report(l, "client %u has lost its session", w->number + 1);
		w->lost = true;
		w->result.gave_up = 1;
		return;
	}
	get_session(w);
	w->result.reconnects += !w->lost;
}

/* --- operations --- */

struct op {
	enum history_kind kind;
	uint32_t key;
	uint64_t put_id;
	struct recording_op *record; /* or NULL */
	/* what it came to */
	int error;
	size_t vlen;	/* GET */
	uint64_t found; /* GET: the id of the PUT, if it is not foreign */
	bool foreign;
	uint64_t ns;
};

static bool found_nothing(const struct op *op)
{
	return op->error == -ENOENT && op->kind != HISTORY_PUT;
}

/* False: the recording is full. */
static bool record_op(struct worker *w, struct op *op)
{
	struct recording_op *r;

	if (!w->load->o.recording)
		return true;
	r = recording_next(w->load->o.recording);
	if (!r)
		return false;
	r->key = op->key;
	r->boot = w->boot;
	r->client = (uint16_t)w->client;
	r->kind = (uint8_t)op->kind;
	r->says = w->load->o.sessions->injected ? SAYS_ALL : 0;
	if (op->kind == HISTORY_PUT) {
		r->value = op->put_id;
		r->vlen = w->load->o.vlen;
	}
	op->record = r;
	recording_invoke(r);
	return true;
}

static uint16_t at_most(uint32_t n)
{
	return n < UINT16_MAX ? (uint16_t)n : UINT16_MAX;
}

/* Ask who may know why it failed. */
static void record_why(struct worker *w, struct op *op)
{
	struct recording_op *r = op->record;
	struct session_injected i;

	if (!r || !r->says || !op->error || found_nothing(op))
		return;
	w->load->o.sessions->injected(w->session, &i);
	r->gone = i.gone;
	r->calls = at_most(i.own.calls);
	r->links = at_most(i.own.links);
	r->server_calls = at_most(i.server.calls);
	r->server_links = at_most(i.server.links);
	r->dropped = at_most(i.server.dropped);
	r->departed = at_most(i.server.departed);
	r->status = i.bad.status;
	r->posted = i.bad.posted;
	r->vendor = i.bad.vendor;
}

static void record_end(struct op *op)
{
	struct recording_op *r = op->record;

	if (!r)
		return;
	if (op->kind != HISTORY_GET && broken(op->error)) {
		r->error = op->error; /* it may still take effect: it has not returned */
		return;
	}
	if (op->kind == HISTORY_GET && !op->error) {
		r->vlen = (uint32_t)op->vlen;
		r->value = op->found;
		r->found = op->foreign ? 2 : 1;
	}
	/* Not found is an answer. */
	recording_return(r, op->kind == HISTORY_GET && op->error == -ENOENT ? 0 : op->error);
}

static void perform(struct worker *w, struct op *op)
{
	const struct load_options *o = &w->load->o;
	char key[LIVE_KEY_LEN + 1];

	live_key(op->key, key);
	if (op->kind == HISTORY_PUT)
		live_value(op->put_id, op->key, w->value, o->vlen);
	begin_doing(w, op->kind, op->key);
	if (op->kind == HISTORY_PUT)
		op->error = o->sessions->put(w->session, key, LIVE_KEY_LEN, w->value, o->vlen);
	else if (op->kind == HISTORY_GET)
		op->error = o->sessions->get(w->session, key, LIVE_KEY_LEN, w->got, TM_MAX_VALUE,
					     &op->vlen);
	else
		op->error = o->sessions->del(w->session, key, LIVE_KEY_LEN);
	op->ns = end_doing(w);
	if (op->kind == HISTORY_GET && !op->error && (o->verify || o->recording))
		op->foreign = op->vlen > TM_MAX_VALUE ||
			      !live_value_id(op->key, w->got, op->vlen, &op->found);
}

static void add_error(struct load_result *r, int error, uint64_t times)
{
	for (unsigned i = 0; i < LOAD_ERRORS; i++) {
		if (r->error[i].times && r->error[i].error != error)
			continue;
		r->error[i].error = error;
		r->error[i].times += times;
		return;
	}
}

static void account(struct worker *w, const struct op *op, bool measured)
{
	bool nothing = found_nothing(op);
	struct load_result *r = &w->result;

	if (op->foreign) {
		r->foreign++;
		report(w->load,
		       "client %u: GET of key %" PRIu32
		       " returned %zu bytes that no PUT of it wrote",
		       w->client, op->key, op->vlen);
	}
	if (op->error && !nothing) {
		r->failed[op->kind]++;
		add_error(r, op->error, 1);
	} else if (measured) {
		latency_add(&r->latency[op->kind], op->ns);
		r->not_found += nothing;
	}
	if (measured)
		atomic_fetch_add_explicit(&w->done, 1, memory_order_relaxed);
}

/* False: it could not be begun, or the worker has no session any more. */
static bool operation(struct worker *w, enum history_kind kind, uint32_t key, bool measured,
		      int *error)
{
	struct op op = {.kind = kind, .key = key};

	if (kind == HISTORY_PUT) {
		if (w->puts == PUTS_A_SESSION) {
			close_session(w);
			get_session(w);
		}
		if (w->lost)
			return false;
		op.put_id = live_put_id(w->client, w->session_number, ++w->puts);
	}
	if (!record_op(w, &op)) {
		atomic_store(&w->load->full, true);
		atomic_store(&w->load->ending, true);
		return false;
	}
	perform(w, &op);
	record_why(w, &op);
	record_end(&op);
	account(w, &op, measured);
	*error = op.error;
	if (broken(op.error))
		renew_session(w);
	return !w->lost;
}

/* Its share of the keys; what a broken session left undone is done again. */
static void load_keys(struct worker *w)
{
	struct load *l = w->load;

	for (uint32_t key = w->number; key < l->o.keys && !w->lost; key += l->o.clients) {
		int error = -EIO;

		while (!atomic_load(&l->ending) && broken(error))
			if (!operation(w, HISTORY_PUT, key, false, &error))
				break;
	}
}

static void run_operations(struct worker *w)
{
	const struct load_options *o = &w->load->o;

	for (uint64_t i = 0; !atomic_load(&w->load->ending) && (!o->ops || i < w->quota); i++) {
		enum history_kind kind = HISTORY_GET;
		int error;

		if (random_below(&w->random, 100) >= o->read_percent)
			kind = random_below(&w->random, 100) < o->delete_percent ? HISTORY_DEL
										 : HISTORY_PUT;
		if (!operation(w, kind, zipf_draw(&w->load->zipf, &w->random), true, &error))
			break;
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct load *l = w->load;

	get_session(w);
	if (l->o.load)
		load_keys(w);
	pthread_mutex_lock(&l->lock);
	l->ready++;
	pthread_cond_broadcast(&l->changed);
	while (!l->go && !atomic_load(&l->ending))
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	if (!w->lost)
		run_operations(w);
	close_session(w);
	atomic_store(&w->ended, true);
	pthread_mutex_lock(&l->lock);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* --- the watchdog --- */

static bool all_ended(const struct load *l)
{
	for (unsigned i = 0; i < l->o.clients; i++)
		if (l->worker[i].started && !atomic_load(&l->worker[i].ended))
			return false;
	return true;
}

static void end_load(struct load *l)
{
	pthread_mutex_lock(&l->lock);
	atomic_store(&l->ending, true);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

/* Wait for a change, or a moment. */
static void look_around(struct load *l)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + LOOK;
	struct timespec t = {.tv_sec = (time_t)(until / SECOND), .tv_nsec = (long)(until % SECOND)};

	pthread_mutex_lock(&l->lock);
	if (!all_ended(l))
		pthread_cond_timedwait(&l->changed, &l->lock, &t);
	pthread_mutex_unlock(&l->lock);
}

/* Does a client take too long? Report it. */
static bool client_hangs(struct load *l)
{
	bool hangs = false;

	for (unsigned i = 0; i < l->o.clients; i++) {
		struct worker *w = &l->worker[i];
		uint64_t since = atomic_load(&w->since), now = clock_ns(CLOCK_MONOTONIC);
		unsigned doing = atomic_load(&w->doing), key = atomic_load(&w->key);

		if (!since || since > now || (double)(now - since) < l->o.stall_s * SECOND)
			continue;
		hangs = true;
		if (doing == DOING_A_OPEN)
			report(l, "client %u hangs: connecting for %.0f s", i + 1,
			       (double)(now - since) / SECOND);
		else
			report(l, "client %u hangs: %s of key %u for %.0f s", i + 1,
			       doing_names[doing], key, (double)(now - since) / SECOND);
	}
	return hangs;
}

static void stop_sessions(struct load *l)
{
	for (unsigned i = 0; i < l->o.clients; i++) {
		struct worker *w = &l->worker[i];

		pthread_mutex_lock(&w->lock);
		if (w->session)
			l->o.sessions->stop(w->session);
		pthread_mutex_unlock(&w->lock);
	}
}

static uint64_t ops_done(const struct load *l)
{
	uint64_t ops = 0;

	for (unsigned i = 0; i < l->o.clients; i++)
		ops += atomic_load_explicit(&l->worker[i].done, memory_order_relaxed);
	return ops;
}

/* Let the measured part begin when all are ready; not if there is none, or a client gave up. */
static void maybe_go(struct load *l)
{
	bool lost = !l->o.ops && l->o.seconds <= 0;

	pthread_mutex_lock(&l->lock);
	if (l->ready == l->o.clients && !l->go) {
		for (unsigned i = 0; i < l->o.clients; i++)
			lost |= l->worker[i].lost;
		l->go = !lost;
		atomic_store(&l->ending, lost || atomic_load(&l->ending));
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Until all workers have ended. 0, or -EDEADLK. */
static int watch(struct load *l, struct load_result *r)
{
	uint64_t start = 0, stopped = 0, end = 0, reported = clock_ns(CLOCK_MONOTONIC);

	while (!all_ended(l)) {
		look_around(l);
		maybe_go(l);

		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (l->go && !start)
			start = now;
		if (start && l->o.seconds > 0 && (double)(now - start) >= l->o.seconds * SECOND)
			end_load(l);
		if (l->o.interrupted && atomic_load(l->o.interrupted))
			end_load(l);
		if (atomic_load(&l->ending)) {
			end = end ? end : now;
			end_load(l); /* a worker wanted it, others may wait for the beginning */
		}
		if (l->o.progress && now - reported > SECOND / 4) {
			reported = now;
			l->o.progress(l->o.report_arg, start ? (double)(now - start) / SECOND : 0,
				      ops_done(l));
		}
		if (!stopped && client_hangs(l)) {
			r->hung = true;
			end_load(l);
			stop_sessions(l);
			stopped = now;
		}
		if (stopped && now - stopped > GRACE)
			return -EDEADLK;
	}
	if (!end)
		end = clock_ns(CLOCK_MONOTONIC);
	r->seconds = start ? (double)(end - start) / SECOND : 0;
	return 0;
}

static void collect(const struct load *l, struct load_result *r)
{
	for (unsigned i = 0; i < l->o.clients; i++) {
		const struct load_result *part = &l->worker[i].result;

		for (unsigned k = 0; k < LOAD_KINDS; k++) {
			latency_merge(&r->latency[k], &part->latency[k]);
			r->failed[k] += part->failed[k];
		}
		for (unsigned e = 0; e < LOAD_ERRORS && part->error[e].times; e++)
			add_error(r, part->error[e].error, part->error[e].times);
		r->not_found += part->not_found;
		r->foreign += part->foreign;
		r->reconnects += part->reconnects;
		r->gave_up += part->gave_up;
	}
	r->full = atomic_load(&l->full);
	r->ops = ops_done(l);
}

int load_run(struct load *l, struct load_result *r)
{
	int error = 0;

	*r = (struct load_result){0};
	for (unsigned i = 0; i < l->o.clients && !error; i++) {
		error = -pthread_create(&l->worker[i].thread, NULL, worker_main, &l->worker[i]);
		l->worker[i].started = !error;
	}
	if (error) {
		end_load(l);
		watch(l, r);
		return error;
	}
	error = watch(l, r);
	if (!error)
		collect(l, r);
	return error;
}

static void init_worker(struct load *l, unsigned i)
{
	const struct load_options *o = &l->o;
	struct worker *w = &l->worker[i];

	w->load = l;
	w->number = i;
	w->quota = o->ops / o->clients + (i < o->ops % o->clients);
	w->random = o->seed * 0xd6e8feb86659fd93u + i;
	w->random = random_next(&w->random);
	w->value = malloc(o->vlen);
	w->got = malloc(TM_MAX_VALUE);
	pthread_mutex_init(&w->lock, NULL);
}

int load_new(struct load **out, const struct load_options *o)
{
	struct load *l = calloc(1, sizeof(*l));
	uint64_t popular = POPULAR_SEED;
	pthread_condattr_t monotonic;
	bool whole = true;

	assert(o->clients >= 1 && o->clients <= TM_MAX_CLIENTS && o->vlen >= LIVE_MIN_VALUE);
	assert(o->vlen <= TM_MAX_VALUE && (o->ops || o->seconds > 0 || o->load));
	if (!l)
		return -ENOMEM;
	l->o = *o;
	l->worker = calloc(o->clients, sizeof(*l->worker));
	if (!l->worker || zipf_init(&l->zipf, o->keys, &popular)) {
		free(l->worker);
		free(l);
		return -ENOMEM;
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	for (unsigned i = 0; i < o->clients; i++) {
		init_worker(l, i);
		whole &= l->worker[i].value && l->worker[i].got;
	}
	*out = l;
	if (whole)
		return 0;
	load_free(l);
	return -ENOMEM;
}

void load_free(struct load *l)
{
	for (unsigned i = 0; l && i < l->o.clients; i++) {
		struct worker *w = &l->worker[i];

		if (w->started)
			pthread_join(w->thread, NULL);
		pthread_mutex_destroy(&w->lock);
		free(w->value);
		free(w->got);
	}
	if (!l)
		return;
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	zipf_free(&l->zipf);
	free(l->worker);
	free(l);
}
