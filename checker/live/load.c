/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See load.h.
 *
 * Each worker is a thread: opens its session, puts its share of the keys, waits until all
 * have done so, then does operations until it is stopped. The caller's thread is the
 * watchdog: it sees what each worker does, and since when.
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
#include "faultinject/random_source.h"
#include "scenarios/workload/session.h"
#include "scenarios/workload/zipf.h"

#define SECOND	       1000000000ull /* ns */
#define TICK	       (SECOND / 8)  /* of a session's number */
#define LOOK	       (SECOND / 20) /* between two looks of the watchdog */
#define FIRST_DELAY    (SECOND / 100)
#define LONGEST_DELAY  SECOND
#define GRACE	       (3 * SECOND) /* for workers that were stopped */
#define POPULAR_SEED   1 /* which keys are popular is the same for all programs that load a store */
#define CONNECTING     LOAD_KINDS
#define PUTS_A_SESSION UINT32_MAX

static const char *const doing_names[] = {"PUT", "GET", "DEL", "connecting"};

struct worker {
	struct load *load;
	unsigned number; /* from 0 */
	pthread_t thread;
	uint64_t quota; /* operations */
	uint64_t random;
	unsigned client;
	uint32_t boot, session_number, puts;
	bool lost; /* there is no session, and there will be none */
	uint8_t value[TM_MAX_VALUE], got[TM_MAX_VALUE];

	/* Changed with the load's lock held, since the watchdog looks at them. */
	struct session *session; /* NULL: none */
	uint64_t since;		 /* ns; 0: it does nothing that could hang */
	unsigned doing;
	uint32_t key;
};

struct load {
	struct load_options o;
	struct zipf zipf;
	struct worker worker[TM_MAX_CLIENTS];
	atomic_bool ending;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	unsigned started, ended;
	unsigned ready; /* workers that have loaded their keys, or given up */
	uint64_t start; /* ns; the measured part has begun; 0: not yet */
	struct load_result *result;
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

/* With the lock held. */
static void __attribute__((format(printf, 2, 3))) report(struct load *l, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	l->o.report(line);
}

static uint64_t begin_doing(struct worker *w, unsigned doing, uint32_t key)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&w->load->lock);
	w->doing = doing;
	w->key = key;
	w->since = now;
	pthread_mutex_unlock(&w->load->lock);
	return now;
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

static void change_session(struct worker *w, struct session *session)
{
	pthread_mutex_lock(&w->load->lock);
	w->session = session;
	w->since = 0;
	pthread_mutex_unlock(&w->load->lock);
}

static void close_session(struct worker *w)
{
	struct session *session = w->session;

	change_session(w, NULL);
	session_close(session);
}

/* One try. 0 or -errno. */
static int open_session(struct worker *w, char *why, size_t n)
{
	const struct load_options *o = &w->load->o;
	struct session *session = NULL;

	begin_doing(w, CONNECTING, 0);
	int error = session_open(&session, o->verbs, o->server,
				 o->first_client ? o->first_client + w->number : 0, why, n);
	change_session(w, error ? NULL : session);
	if (error)
		return error;
	w->client = session_client(session);
	w->boot = session_store(session)->boot;
	if (number_session(w))
		return 0;
	close_session(w);
	return -ECANCELED;
}

static void give_up(struct worker *w, const char *how, const char *why)
{
	struct load *l = w->load;

	w->lost = true;
	if (atomic_load(&l->ending))
		return;
	pthread_mutex_lock(&l->lock);
	report(l, "client %u has %s%s", w->number + 1, how, why);
	l->result->gave_up++;
	pthread_mutex_unlock(&l->lock);
}

/* Until there is a session, or no hope of one. */
static void get_session(struct worker *w)
{
	struct load *l = w->load;
	uint64_t start = clock_ns(CLOCK_MONOTONIC), delay = FIRST_DELAY;
	char why[256] = "";
	int error;

	while ((error = open_session(w, why, sizeof(why))) != 0) {
		if (!l->o.reconnect ||
		    (double)(clock_ns(CLOCK_MONOTONIC) - start) > l->o.patience_s * SECOND)
			break;
		for (uint64_t slept = 0; slept < delay && !atomic_load(&l->ending);
		     slept += FIRST_DELAY)
			sleep_ns(FIRST_DELAY);
		if (atomic_load(&l->ending))
			break;
		delay = 2 * delay < LONGEST_DELAY ? 2 * delay : LONGEST_DELAY;
	}
	if (error)
		give_up(w, "no session: ", why[0] ? why : strerror(-error));
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
	if (atomic_load(&l->ending) || !l->o.reconnect) {
		give_up(w, "lost its session", "");
		return;
	}
	get_session(w);
	pthread_mutex_lock(&l->lock);
	l->result->reconnects += !w->lost;
	pthread_mutex_unlock(&l->lock);
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
	if (!w->load->o.recording)
		return true;
	struct recording_op *r = recording_next(w->load->o.recording);
	if (!r)
		return false;
	r->key = op->key;
	r->boot = w->boot;
	r->client = (uint16_t)w->client;
	r->kind = (uint8_t)op->kind;
	r->says = SAYS_ALL;
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

	if (!r || !op->error || found_nothing(op))
		return;
	session_injected(w->session, &i);
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
	uint64_t start;

	live_key(op->key, key);
	if (op->kind == HISTORY_PUT)
		live_value(op->put_id, op->key, w->value, o->vlen);
	start = begin_doing(w, op->kind, op->key);
	if (op->kind == HISTORY_PUT)
		op->error = session_put(w->session, key, LIVE_KEY_LEN, w->value, o->vlen);
	else if (op->kind == HISTORY_GET)
		op->error = session_get(w->session, key, LIVE_KEY_LEN, w->got, TM_MAX_VALUE,
					&op->vlen);
	else
		op->error = session_del(w->session, key, LIVE_KEY_LEN);
	op->ns = clock_ns(CLOCK_MONOTONIC) - start;
	if (op->kind == HISTORY_GET && !op->error)
		op->foreign = op->vlen > TM_MAX_VALUE ||
			      !live_value_id(op->key, w->got, op->vlen, &op->found);
}

static void add_error(struct load_result *r, int error)
{
	unsigned i = 0;

	while (i < LOAD_ERRORS && r->error[i].times && r->error[i].error != error)
		i++;
	if (i < LOAD_ERRORS) {
		r->error[i].error = error;
		r->error[i].times++;
	}
}

static void account(struct worker *w, const struct op *op, bool measured)
{
	struct load_result *r = w->load->result;

	pthread_mutex_lock(&w->load->lock);
	w->since = 0;
	if (op->foreign) {
		r->foreign++;
		report(w->load,
		       "client %u: GET of key %" PRIu32
		       " returned %zu bytes that no PUT of it wrote",
		       w->client, op->key, op->vlen);
	}
	if (op->error && !found_nothing(op)) {
		r->failed[op->kind]++;
		add_error(r, op->error);
	} else if (measured) {
		latency_add(&r->latency[op->kind], op->ns);
		r->not_found += found_nothing(op);
	}
	r->ops += measured;
	pthread_mutex_unlock(&w->load->lock);
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
		pthread_mutex_lock(&w->load->lock);
		w->load->result->full = true;
		pthread_mutex_unlock(&w->load->lock);
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
	while (!l->start && !atomic_load(&l->ending))
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	if (!w->lost)
		run_operations(w);
	close_session(w);
	pthread_mutex_lock(&l->lock);
	l->ended++;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* --- the watchdog, with the lock held --- */

/* Does a client take too long? Report it, and stop all. */
static bool client_hangs(struct load *l, uint64_t now)
{
	bool hangs = false;

	for (unsigned i = 0; i < l->started; i++) {
		const struct worker *w = &l->worker[i];
		double s = (double)(now - w->since) / SECOND;

		if (!w->since || w->since > now || s < l->o.stall_s)
			continue;
		hangs = true;
		if (w->doing == CONNECTING)
			report(l, "client %u hangs: connecting for %.0f s", i + 1, s);
		else
			report(l, "client %u hangs: %s of key %" PRIu32 " for %.0f s", i + 1,
			       doing_names[w->doing], w->key, s);
	}
	for (unsigned i = 0; hangs && i < l->started; i++)
		if (l->worker[i].session)
			session_stop(l->worker[i].session);
	return hangs;
}

/* Let the measured part begin when all are ready; not if there is none, or a client gave up. */
static void maybe_start(struct load *l, uint64_t now)
{
	if (l->start || l->ready < l->o.clients)
		return;
	if ((!l->o.ops && l->o.seconds <= 0) || l->result->gave_up)
		atomic_store(&l->ending, true);
	else
		l->start = now;
}

static void wait_a_moment(struct load *l)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + LOOK;
	struct timespec t = {.tv_sec = (time_t)(until / SECOND), .tv_nsec = (long)(until % SECOND)};

	pthread_cond_broadcast(&l->changed); /* workers that wait for the beginning, or the end */
	if (l->ended < l->started)
		pthread_cond_timedwait(&l->changed, &l->lock, &t);
}

/* Until all workers have ended. 0, or -EDEADLK. */
static int watch(struct load *l)
{
	uint64_t stopped = 0, end = 0, shown = clock_ns(CLOCK_MONOTONIC), now = shown;

	while (l->ended < l->started) {
		wait_a_moment(l);
		now = clock_ns(CLOCK_MONOTONIC);
		maybe_start(l, now);
		if ((l->start && l->o.seconds > 0 &&
		     (double)(now - l->start) >= l->o.seconds * SECOND) ||
		    (l->o.interrupted && atomic_load(l->o.interrupted)))
			atomic_store(&l->ending, true);
		if (!stopped && client_hangs(l, now)) {
			l->result->hung = true;
			atomic_store(&l->ending, true);
			stopped = now;
		}
		if (!end && atomic_load(&l->ending))
			end = now;
		if (l->o.progress && now - shown > SECOND / 4) {
			shown = now;
			l->o.progress(l->start ? (double)(now - l->start) / SECOND : 0,
				      l->result->ops);
		}
		if (stopped && now - stopped > GRACE)
			return -EDEADLK;
	}
	l->result->seconds = l->start ? (double)((end ? end : now) - l->start) / SECOND : 0;
	return 0;
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
}

static void init_locks(struct load *l)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int load_run(const struct load_options *o, struct load_result *r)
{
	struct load *l = calloc(1, sizeof(*l));
	uint64_t popular = POPULAR_SEED;
	int error = 0;

	assert(o->clients >= 1 && o->clients <= TM_MAX_CLIENTS && o->vlen >= LIVE_MIN_VALUE);
	assert(o->vlen <= TM_MAX_VALUE && (o->ops || o->seconds > 0 || o->load));
	*r = (struct load_result){0};
	if (!l || zipf_init(&l->zipf, o->keys, &popular)) {
		free(l);
		return -ENOMEM;
	}
	l->o = *o;
	l->result = r;
	init_locks(l);
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < o->clients && !error; i++) {
		init_worker(l, i);
		error = -pthread_create(&l->worker[i].thread, NULL, worker_main, &l->worker[i]);
		l->started += !error;
	}
	atomic_store(&l->ending, error != 0);
	int hung = watch(l);
	pthread_mutex_unlock(&l->lock);
	if (hung)
		return hung; /* a client uses *l as before */
	for (unsigned i = 0; i < l->started; i++)
		pthread_join(l->worker[i].thread, NULL);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	zipf_free(&l->zipf);
	free(l);
	return error;
}
