/* SPDX-License-Identifier: BSD-3-Clause */
/* See live_bench.h. */
#include "checker/live/live_bench.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/live/recording.h"
#include "checker/models/count.h"
#include "scenarios/workload/session.h"
#include "scenarios/stores.h"
#include "scenarios/workload/zipf.h"

/* --- sessions, as the load generator wants them --- */

struct door {
	struct ibv_context *verbs;
	const char *address;
};

static int open_one(void *arg, unsigned client, void **out, char *why, size_t n)
{
	const struct door *door = arg;
	struct session *s = NULL;
	int error = session_open(&s, door->verbs, door->address, client, why, n);
	*out = s;
	return error;
}

static void close_one(void *s)
{
	session_close(s);
}

static const struct live_store *store_of(const void *s)
{
	return session_store(s);
}

static unsigned client_of(const void *s)
{
	return session_client(s);
}

static int put_one(void *s, const void *key, size_t klen, const void *value, size_t vlen)
{
	return session_put(s, key, klen, value, vlen);
}

static int get_one(void *s, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	return session_get(s, key, klen, value, cap, vlen);
}

static int del_one(void *s, const void *key, size_t klen)
{
	return session_del(s, key, klen);
}

static void stop_one(void *s)
{
	session_stop(s);
}

static void injected_one(void *session, struct session_injected *out)
{
	session_injected(session, out);
}

static const struct load_sessions live_sessions = {open_one,  close_one, store_of,
						   client_of, put_one,	 get_one,
						   del_one,   stop_one,	 injected_one};

/* --- what is served, and what it should cost --- */

/* By the sim world: see docs/count.md. A figure that cannot be had is left out. */
static void predict(struct bench_server *v, uint32_t vlen)
{
	static const int kinds[LOAD_KINDS] = {COUNT_UPDATE, COUNT_GET, COUNT_DELETE};
	const struct tm_store *store = store_find(v->what.store->name);
	struct count *count = malloc(sizeof(*count));
	struct setup s;
	for (unsigned k = 0; k < LOAD_KINDS; k++)
		v->trips[k] = -1;
	if (!store || !count) {
		free(count);
		return;
	}
	setup_init(&s, store);
	memcpy(s.params.knob, v->what.params.knob, sizeof(s.params.knob));
	if (!count_run(&s, LIVE_KEY_LEN, vlen, count))
		for (unsigned r = 0; r < count->rows; r++)
			for (unsigned k = 0; k < LOAD_KINDS; k++)
				if ((int)count->row[r].kind == kinds[k])
					v->trips[k] = (double)count->row[r]
							      .op.part[COUNT_FOREGROUND]
							      .round_trips;
	setup_free(&s);
	free(count);
}

void live_bench_predict(struct live_bench *b)
{
	for (unsigned i = 0; i < b->servers; i++)
		predict(&b->server[i], live_bench_value(b, &b->server[i]));
}

unsigned live_bench_value(const struct live_bench *b, const struct bench_server *v)
{
	return b->value ? b->value : v->what.params.max_vlen;
}

unsigned live_bench_keys(const struct live_bench *b, const struct bench_server *v)
{
	unsigned all = v->what.params.keys < ZIPF_MAX_KEYS ? v->what.params.keys : ZIPF_MAX_KEYS;
	return b->keys ? b->keys : all;
}

static unsigned read_percent(char workload)
{
	const char *name, *what;
	struct ycsb y = {0};
	for (unsigned i = 0; (name = ycsb_default(i, &y, &what)) != NULL; i++)
		if (name[strlen(name) - 1] == workload)
			break;
	return y.read_percent;
}

double live_bench_trips(const struct bench_server *v, char workload, unsigned delete_percent)
{
	double reads = read_percent(workload) / 100.0, deletes = delete_percent / 100.0;
	if (v->trips[HISTORY_PUT] < 0 || v->trips[HISTORY_GET] < 0)
		return -1;
	return reads * v->trips[HISTORY_GET] +
	       (1 - reads) *
		       ((1 - deletes) * v->trips[HISTORY_PUT] + deletes * v->trips[HISTORY_DEL]);
}

/* Does the server have room for what is asked for? */
static int check_server(struct live_bench *b, const struct bench_server *v)
{
	const struct tm_params *p = &v->what.params;
	if (p->max_vlen < LIVE_MIN_VALUE || live_bench_value(b, v) > p->max_vlen) {
		snprintf(b->why, sizeof(b->why),
			 "--value: %s has room for values of at most %u bytes; expected %d or more",
			 v->address, p->max_vlen, LIVE_MIN_VALUE);
		return -EINVAL;
	}
	if (live_bench_keys(b, v) > p->keys) {
		snprintf(b->why, sizeof(b->why), "--keys: %s has room for %u", v->address, p->keys);
		return -EINVAL;
	}
	for (unsigned c = 0; c < b->counts; c++)
		if (b->count[c] > p->clients) {
			snprintf(b->why, sizeof(b->why), "--clients: %s has numbers for %u",
				 v->address, p->clients);
			return -EINVAL;
		}
	return 0;
}

static int ask_server(struct live_bench *b, struct bench_server *v)
{
	struct session *s = NULL;
	double patience = b->load.reconnect ? b->load.patience_s : 0;
	int error = session_open(&s, b->verbs, v->address, 0, b->why, sizeof(b->why));
	for (double waited = 0; error && waited < patience; waited += 0.1) {
		usleep(100000);
		error = session_open(&s, b->verbs, v->address, 0, b->why, sizeof(b->why));
	}
	if (error) {
		if (!b->why[0])
			snprintf(b->why, sizeof(b->why), "%s", strerror(-error));
		return -EINVAL;
	}
	v->what = *session_store(s);
	session_close(s);
	return check_server(b, v);
}

int live_bench_ask(struct live_bench *b)
{
	int error = 0;
	for (unsigned i = 0; i < b->servers && !error; i++) {
		b->server[i].address = b->address[i];
		error = ask_server(b, &b->server[i]);
	}
	return error;
}

/* --- the loads --- */

static int open_history(struct live_bench *b, const struct bench_server *v, struct recording **out)
{
	char text[4096];
	int error = recording_create(out, b->history, b->room);
	if (error) {
		snprintf(b->why, sizeof(b->why), "%s: %s", b->history, strerror(-error));
		return -EINVAL;
	}
	error = live_store_print(&v->what, text, sizeof(text));
	if (!error)
		error = recording_set_text(*out, text);
	if (error)
		snprintf(b->why, sizeof(b->why), "%s: %s", b->history, strerror(-error));
	return error ? -EIO : 0;
}

static int run_cell(struct live_bench *b, struct bench_cell *cell, bool first)
{
	struct load_options o = b->load;
	struct door door = {b->verbs, cell->server->address};
	struct load *load;
	int error = b->history ? open_history(b, cell->server, &o.recording) : 0;
	if (error)
		return error;
	o.sessions = &live_sessions;
	o.arg = &door;
	o.clients = cell->clients;
	o.read_percent = read_percent(cell->workload);
	o.keys = live_bench_keys(b, cell->server);
	o.vlen = live_bench_value(b, cell->server);
	o.load = b->load.load && first;
	b->on = cell;
	error = load_new(&load, &o);
	if (!error) {
		error = load_run(load, &cell->result);
		if (error != -EDEADLK)
			load_free(load);
	}
	/* Clients that do not end use all that is here: it stays. */
	if (error != -EDEADLK)
		recording_close(o.recording);
	return error;
}

const struct bench_cell *live_bench_cell(const struct live_bench *b, unsigned workload,
					 unsigned count, unsigned server)
{
	return &b->cell[(workload * b->counts + count) * b->servers + server];
}

int live_bench_run(struct live_bench *b)
{
	bool loaded[BENCH_SERVERS] = {false};
	int error = 0;
	b->cells = b->servers * b->workloads * b->counts;
	b->cell = calloc(b->cells, sizeof(*b->cell));
	if (!b->cell)
		return -ENOMEM;
	for (unsigned i = 0; i < b->cells; i++) {
		b->cell[i].server = &b->server[i % b->servers];
		b->cell[i].clients = b->count[i / b->servers % b->counts];
		b->cell[i].workload = b->workload[i / b->servers / b->counts];
	}
	for (unsigned i = 0; i < b->cells && !atomic_load(b->load.interrupted) && !error; i++) {
		struct bench_cell *cell = &b->cell[i];
		error = run_cell(b, cell, !loaded[i % b->servers]);
		loaded[i % b->servers] = true;
		if (cell->result.hung || (cell->result.gave_up && !cell->result.ops))
			break; /* what comes after it would not do better */
	}
	return error;
}
