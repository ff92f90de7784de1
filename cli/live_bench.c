/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark bench --server: load on live servers (checker/live/load.c), and what came of it. One
 * server under one load is told in detail; several servers, workloads or numbers of clients make a
 * table, with what `tidemark count` says of each store's round trips beside it. docs/live-bench.md.
 */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/models/count.h"
#include "checker/live/load.h"
#include "checker/live/recording.h"
#include "cli/cli.h"
#include "report/report.h"
#include "core/live/live.h"
#include "scenarios/session.h"
#include "scenarios/stores.h"
#include "scenarios/zipf.h"

#define MAX_SERVERS   8
#define MAX_WORKLOADS 4
#define MAX_COUNTS    16	/* numbers of clients */
#define HISTORY_ROOM  (1 << 18) /* operations, of 64 bytes each */

enum {
	OPT_SERVER = 1000,
	OPT_DEVICE,
	OPT_WORKLOAD,
	OPT_CLIENTS,
	OPT_FIRST,
	OPT_TIME,
	OPT_OPS,
	OPT_KEYS,
	OPT_VALUE,
	OPT_DELETES,
	OPT_SEED,
	OPT_LOAD,
	OPT_HISTORY,
	OPT_ROOM,
	OPT_RECONNECT,
	OPT_PATIENCE,
	OPT_STALL,
	OPT_VERIFY,
	OPT_JSON
};

/* A server as it described itself, and what its store is predicted to cost. */
struct served {
	const char *address;
	struct live_store what;
	double trips[LOAD_KINDS]; /* round trips of an operation; < 0: not known */
};

struct cell {
	const struct served *server;
	char workload;
	unsigned clients;
	struct load_result result;
};

struct bench {
	const char *server[MAX_SERVERS];
	unsigned servers;
	char workload[MAX_WORKLOADS];
	unsigned workloads;
	unsigned count[MAX_COUNTS]; /* of clients */
	unsigned counts;
	const char *device, *history, *json;
	unsigned long long keys, value, room; /* 0: as the server says; of the recording */
	bool quiet;
	struct load_options load; /* what is the same for all */
	/* what is made of it */
	struct ibv_context *verbs;
	struct served served[MAX_SERVERS];
	struct cell *cell;
	unsigned cells;
	const struct cell *on; /* for the line of progress */
};

static atomic_bool interrupted;

void live_bench_help(void)
{
	puts("usage: tidemark bench --server ADDRESS:PORT [OPTION...]\n"
	     "Loads a live store (tidemark serve) and measures it. Several servers, workloads or "
	     "numbers\n"
	     "of clients make a table.\n\n"
	     "  --server A:P      may be repeated\n"
	     "  --device NAME     the RDMA device (the first)\n"
	     "  --workload X      a, b, c (YCSB) or u (updates only); \"a,b,c\" for several (a)\n"
	     "  --clients N       threads with a session each, 1 to 16; \"1,2,4,8\" for several "
	     "(1)\n"
	     "  --first N         client numbers from N on (any that are free)\n"
	     "  --time S          how long each load is measured: 90s, 30m (5s)\n"
	     "  --ops N           so many operations instead, of all clients together\n"
	     "  --keys N          of the keys that the server has room for (all)\n"
	     "  --value N         bytes, 16 at least (the longest that the server has room for)\n"
	     "  --deletes P       percent of the updates that are DELETEs (0)\n"
	     "  --seed N          of what each client does (1)\n"
	     "  --load            first put every key; with --ops 0, nothing else\n"
	     "  --verify          a GET's bytes that no PUT of the key wrote are told, and "
	     "counted\n"
	     "  --history FILE    record every operation, for tidemark examine; a file or a devdax "
	     "device\n"
	     "  --room N          operations in a new file for that (262144); it ends when it is "
	     "full\n"
	     "  --reconnect       a session that broke is opened again,\n"
	     "  --patience S      for so long (30s)\n"
	     "  --stall S         an operation that takes longer hangs: it is told, and all ends "
	     "(30s)\n"
	     "  --json FILE       the results for machines\n"
	     "  -q, --quiet       no progress\n"
	     "  --help            this text\n\n"
	     "exit status: 0 done, 1 a GET returned what nobody put, or an operation hangs, 2 "
	     "usage or bad\n"
	     "input, 3 a client lost its server, 70 internal error, 77 there is no RDMA device");
}

/* --- options --- */

/* "a,b", each once. */
static bool add_workloads(struct bench *b, const char *text)
{
	b->workloads = 0;
	for (const char *p = text;; p += 2) {
		if (!*p || !strchr("abcu", *p) || (p[1] && p[1] != ',') ||
		    memchr(b->workload, *p, b->workloads)) {
			fail(EXIT_USAGE,
			     "--workload: \"%.40s\"; expected a, b, c, u, each once, with commas",
			     text);
			return false;
		}
		b->workload[b->workloads++] = *p;
		if (!p[1])
			return true;
	}
}

static bool add_counts(struct bench *b, const char *text)
{
	b->counts = 0;
	for (const char *p = text;;) {
		char *end;
		unsigned long n = *p >= '0' && *p <= '9' ? strtoul(p, &end, 10) : 0;
		if (n < 1 || n > TM_MAX_CLIENTS || (*end && *end != ',') ||
		    b->counts == MAX_COUNTS) {
			fail(EXIT_USAGE,
			     "--clients: \"%.40s\"; expected numbers from 1 to %d, with commas",
			     text, TM_MAX_CLIENTS);
			return false;
		}
		b->count[b->counts++] = (unsigned)n;
		if (!*end)
			return true;
		p = end + 1;
	}
}

static bool add_server(struct bench *b, const char *address)
{
	if (b->servers == MAX_SERVERS) {
		fail(EXIT_USAGE, "--server: more than %d; %.60s is too many", MAX_SERVERS, address);
		return false;
	}
	b->server[b->servers++] = address;
	return true;
}

static bool take_number(struct bench *b, int option, const char *value)
{
	static const struct {
		int option;
		const char *name;
		unsigned long long lo, hi;
	} numbers[] = {
		{OPT_FIRST, "--first", 1, TM_MAX_CLIENTS},
		{OPT_OPS, "--ops", 0, UINT32_MAX},
		{OPT_KEYS, "--keys", 1, ZIPF_MAX_KEYS},
		{OPT_VALUE, "--value", LIVE_MIN_VALUE, TM_MAX_VALUE},
		{OPT_DELETES, "--deletes", 0, 100},
		{OPT_SEED, "--seed", 0, UINT32_MAX},
		{OPT_ROOM, "--room", 1, UINT32_MAX},
	};
	unsigned i = 0;
	unsigned long long n;
	while (numbers[i].option != option)
		i++;
	if (!number_option(numbers[i].name, value, numbers[i].lo, numbers[i].hi, &n))
		return false;
	if (option == OPT_OPS)
		b->load.seconds = 0;
	if (option == OPT_FIRST)
		b->load.first_client = (unsigned)n;
	else if (option == OPT_OPS)
		b->load.ops = n;
	else if (option == OPT_KEYS)
		b->keys = n;
	else if (option == OPT_VALUE)
		b->value = n;
	else if (option == OPT_DELETES)
		b->load.delete_percent = (unsigned)n;
	else if (option == OPT_SEED)
		b->load.seed = n;
	else
		b->room = n;
	return true;
}

static bool take_option(void *arg, int option, const char *value)
{
	struct bench *b = arg;
	switch (option) {
	case OPT_SERVER:
		return add_server(b, value);
	case OPT_DEVICE:
		b->device = value;
		return true;
	case OPT_WORKLOAD:
		return add_workloads(b, value);
	case OPT_CLIENTS:
		return add_counts(b, value);
	case OPT_TIME:
		b->load.ops = 0;
		return time_option("--time", value, &b->load.seconds);
	case OPT_LOAD:
		b->load.load = true;
		return true;
	case OPT_HISTORY:
		b->history = value;
		return true;
	case OPT_RECONNECT:
		b->load.reconnect = true;
		return true;
	case OPT_PATIENCE:
		return time_option("--patience", value, &b->load.patience_s);
	case OPT_STALL:
		return time_option("--stall", value, &b->load.stall_s);
	case OPT_VERIFY:
		b->load.verify = true;
		return true;
	case OPT_JSON:
		b->json = value;
		return true;
	case 'q':
		b->quiet = true;
		return true;
	default:
		return take_number(b, option, value);
	}
}

static const struct option options[] = {
	{"server", required_argument, NULL, OPT_SERVER},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"workload", required_argument, NULL, OPT_WORKLOAD},
	{"clients", required_argument, NULL, OPT_CLIENTS},
	{"first", required_argument, NULL, OPT_FIRST},
	{"time", required_argument, NULL, OPT_TIME},
	{"ops", required_argument, NULL, OPT_OPS},
	{"keys", required_argument, NULL, OPT_KEYS},
	{"value", required_argument, NULL, OPT_VALUE},
	{"deletes", required_argument, NULL, OPT_DELETES},
	{"seed", required_argument, NULL, OPT_SEED},
	{"load", no_argument, NULL, OPT_LOAD},
	{"history", required_argument, NULL, OPT_HISTORY},
	{"room", required_argument, NULL, OPT_ROOM},
	{"reconnect", no_argument, NULL, OPT_RECONNECT},
	{"patience", required_argument, NULL, OPT_PATIENCE},
	{"stall", required_argument, NULL, OPT_STALL},
	{"verify", no_argument, NULL, OPT_VERIFY},
	{"json", required_argument, NULL, OPT_JSON},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* What does not fit together. 0, or the status behind a message. */
static int check_options(const struct bench *b)
{
	unsigned most = 0;
	for (unsigned i = 0; i < b->counts; i++)
		most = b->count[i] > most ? b->count[i] : most;
	if (!b->servers)
		return fail(EXIT_USAGE, "bench: these options need --server ADDRESS:PORT");
	if (b->history && b->servers * b->workloads * b->counts > 1)
		return fail(EXIT_USAGE, "bench: --history wants one server, one workload and one "
					"number of clients");
	if (b->load.first_client && b->load.first_client + most - 1 > TM_MAX_CLIENTS)
		return fail(EXIT_USAGE, "bench: --first %u with %u clients: numbers end at %d",
			    b->load.first_client, most, TM_MAX_CLIENTS);
	if (!b->load.ops && b->load.seconds <= 0 && !b->load.load)
		return fail(EXIT_USAGE, "bench: --ops 0 without --load: nothing would be done");
	return b->json ? check_output("--json", b->json) : 0;
}

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

static const struct load_sessions live_sessions = {open_one, close_one, store_of, client_of,
						   put_one,  get_one,	del_one,  stop_one};

/* --- what is served, and what it should cost --- */

/* By the sim world: see docs/count.md. A figure that cannot be had is left out. */
static void predict(struct served *v, uint32_t vlen)
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

static uint32_t value_bytes(const struct bench *b, const struct served *v)
{
	return b->value ? (uint32_t)b->value : v->what.params.max_vlen;
}

static unsigned key_count(const struct bench *b, const struct served *v)
{
	unsigned all = v->what.params.keys < ZIPF_MAX_KEYS ? v->what.params.keys : ZIPF_MAX_KEYS;
	return b->keys ? (unsigned)b->keys : all;
}

/* 0, or the status behind a message. */
static int ask_server(struct bench *b, struct served *v, unsigned i)
{
	char why[256] = "";
	struct session *s = NULL;
	v->address = b->server[i];
	double patience = b->load.reconnect ? b->load.patience_s : 0;
	int error = session_open(&s, b->verbs, v->address, 0, why, sizeof(why));
	for (double waited = 0; error && waited < patience; waited += 0.1) {
		usleep(100000);
		error = session_open(&s, b->verbs, v->address, 0, why, sizeof(why));
	}
	if (error)
		return fail(EXIT_USAGE, "%s", why[0] ? why : strerror(-error));
	v->what = *session_store(s);
	session_close(s);
	const struct tm_params *p = &v->what.params;
	if (p->max_vlen < LIVE_MIN_VALUE || value_bytes(b, v) > p->max_vlen)
		return fail(
			EXIT_USAGE,
			"--value: %s has room for values of at most %u bytes; expected %d or more",
			v->address, p->max_vlen, LIVE_MIN_VALUE);
	if (key_count(b, v) > p->keys)
		return fail(EXIT_USAGE, "--keys: %s has room for %u", v->address, p->keys);
	for (unsigned c = 0; c < b->counts; c++)
		if (b->count[c] > p->clients)
			return fail(EXIT_USAGE, "--clients: %s has numbers for %u", v->address,
				    p->clients);
	return 0;
}

/* --- one load --- */

static void say(void *arg, const char *line)
{
	(void)arg;
	fail(0, "%s", line);
}

static void show_progress(void *arg, double seconds, uint64_t ops)
{
	const struct bench *b = arg;
	char of[32] = "";
	if (b->load.seconds > 0)
		snprintf(of, sizeof(of), " of %.0f", b->load.seconds);
	progress_line("%s, workload %c, %u clients: %.0f%s s, %" PRIu64 " operations",
		      b->on->server->what.store->name, b->on->workload, b->on->clients, seconds, of,
		      ops);
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

static int open_history(const struct bench *b, const struct served *v, struct recording **out)
{
	char text[4096];
	int error = recording_create(out, b->history, b->room);
	if (error)
		return fail(EXIT_USAGE, "%s: %s", b->history, strerror(-error));
	error = live_store_print(&v->what, text, sizeof(text));
	if (!error)
		error = recording_set_text(*out, text);
	return error ? fail(EXIT_INTERNAL, "%s: %s", b->history, strerror(-error)) : 0;
}

/* 0, or the status behind a message. */
static int run_cell(struct bench *b, struct cell *cell, bool first)
{
	struct load_options o = b->load;
	struct door door = {b->verbs, cell->server->address};
	struct load *load;
	int status = b->history ? open_history(b, cell->server, &o.recording) : 0;
	if (status)
		return status;
	o.arg = &door;
	o.clients = cell->clients;
	o.read_percent = read_percent(cell->workload);
	o.keys = key_count(b, cell->server);
	o.vlen = value_bytes(b, cell->server);
	o.load = b->load.load && first;
	b->on = cell;
	int error = load_new(&load, &o);
	if (!error) {
		error = load_run(load, &cell->result);
		progress_line(NULL);
		if (error != -EDEADLK)
			load_free(load);
	}
	/* Clients that do not end use all that is here: it stays. */
	if (error == -EDEADLK)
		return EXIT_BROKEN;
	recording_close(o.recording);
	return error ? fail(EXIT_INTERNAL, "bench: %s", strerror(-error)) : 0;
}

static int status_of(const struct load_result *r)
{
	return r->foreign || r->hung ? EXIT_BROKEN : r->gave_up ? EXIT_UNSURE : 0;
}

/* --- what came of it --- */

static const char *const kind_names[LOAD_KINDS] = {"PUT", "GET", "DELETE"};

static double micros(const struct latency *l, unsigned per_mille)
{
	return (double)latency_quantile(l, per_mille) * 1e-3;
}

static double per_second(const struct load_result *r)
{
	return r->seconds > 0 ? (double)r->ops / r->seconds : 0;
}

static void print_errors(const struct load_result *r)
{
	for (unsigned i = 0; i < LOAD_ERRORS && r->error[i].times; i++)
		printf("  %" PRIu64 " times: %s\n", r->error[i].times,
		       strerror(-r->error[i].error));
	if (r->not_found)
		printf("  %" PRIu64 " times: not found\n", r->not_found);
	if (r->reconnects)
		printf("  %" PRIu64 " sessions were opened again\n", r->reconnects);
	if (r->foreign)
		printf("  %" PRIu64 " GETs returned bytes that no PUT of the key wrote\n",
		       r->foreign);
	if (r->full)
		puts("  the recording was full: the load ended early");
	if (r->gave_up)
		printf("  %u clients lost their server\n", r->gave_up);
	if (r->hung)
		puts("  an operation hung");
}

static void print_cell(const struct bench *b, const struct cell *cell)
{
	const struct load_result *r = &cell->result;
	printf("%s %s, workload %c, %u client%s, %u keys, values of %u bytes: %" PRIu64
	       " operations in %.1f s, %.0f/s\n",
	       cell->server->what.store->name, cell->server->what.variant, cell->workload,
	       cell->clients, cell->clients == 1 ? "" : "s", key_count(b, cell->server),
	       value_bytes(b, cell->server), r->ops, r->seconds, per_second(r));
	printf("  %-7s %10s %8s %9s %9s %9s %9s %9s %12s\n", "us", "operations", "failed", "p50",
	       "p90", "p99", "p99.9", "max", "round trips");
	for (unsigned k = 0; k < LOAD_KINDS; k++) {
		const struct latency *l = &r->latency[k];
		if (!l->times && !r->failed[k])
			continue;
		printf("  %-7s %10" PRIu64 " %8" PRIu64 " %9.1f %9.1f %9.1f %9.1f %9.1f",
		       kind_names[k], l->times, r->failed[k], micros(l, 500), micros(l, 900),
		       micros(l, 990), micros(l, 999), (double)l->max_ns * 1e-3);
		if (cell->server->trips[k] >= 0)
			printf(" %12.0f", cell->server->trips[k]);
		putchar('\n');
	}
	print_errors(r);
}

static const struct cell *find_cell(const struct bench *b, unsigned w, unsigned c, unsigned s)
{
	return &b->cell[(w * b->counts + c) * b->servers + s];
}

/* What an operation of the mix takes on average; < 0: not known. */
static double mean_trips(const struct served *v, char workload, unsigned delete_percent)
{
	double reads = read_percent(workload) / 100.0, deletes = delete_percent / 100.0;
	if (v->trips[HISTORY_PUT] < 0 || v->trips[HISTORY_GET] < 0)
		return -1;
	return reads * v->trips[HISTORY_GET] +
	       (1 - reads) *
		       ((1 - deletes) * v->trips[HISTORY_PUT] + deletes * v->trips[HISTORY_DEL]);
}

static void print_quantiles(const struct latency *l)
{
	if (l->times)
		printf(" %7.0f %8.0f", micros(l, 500), micros(l, 990));
	else
		printf(" %7s %8s", "-", "-");
}

/* Side by side: a column group for each server. */
static void print_table(const struct bench *b)
{
	printf("%-16s", "");
	for (unsigned s = 0; s < b->servers; s++)
		printf(" | %-47s", b->served[s].what.store->name);
	printf("\n%-16s", "");
	for (unsigned s = 0; s < b->servers; s++)
		printf(" | %8s %16s %16s %5s", "", "GET us   ", "PUT us   ", "round");
	printf("\n%-8s %7s", "workload", "clients");
	for (unsigned s = 0; s < b->servers; s++)
		printf(" | %8s %7s %8s %7s %8s %5s", "ops/s", "p50", "p99", "p50", "p99", "trips");
	putchar('\n');
	for (unsigned w = 0; w < b->workloads; w++) {
		for (unsigned c = 0; c < b->counts; c++) {
			printf("%-8c %7u", b->workload[w], b->count[c]);
			for (unsigned s = 0; s < b->servers; s++) {
				const struct cell *cell = find_cell(b, w, c, s);
				double trips = mean_trips(cell->server, cell->workload,
							  b->load.delete_percent);
				printf(" | %8.0f", per_second(&cell->result));
				print_quantiles(&cell->result.latency[HISTORY_GET]);
				print_quantiles(&cell->result.latency[HISTORY_PUT]);
				if (trips >= 0)
					printf(" %5.2f", trips);
				else
					printf(" %5s", "-");
			}
			putchar('\n');
		}
	}
	for (unsigned i = 0; i < b->cells; i++) {
		const struct load_result *r = &b->cell[i].result;
		if (!r->error[0].times && !r->reconnects && !status_of(r))
			continue;
		printf("%s, workload %c, %u clients:\n", b->cell[i].server->what.store->name,
		       b->cell[i].workload, b->cell[i].clients);
		print_errors(r);
	}
}

static void print_trips(const struct bench *b)
{
	puts("\nround trips of an operation, as tidemark count has them:");
	for (unsigned s = 0; s < b->servers; s++) {
		const double *t = b->served[s].trips;
		if (t[HISTORY_PUT] >= 0 && t[HISTORY_GET] >= 0)
			printf("  %-10s PUT %.0f, GET %.0f\n", b->served[s].what.store->name,
			       t[HISTORY_PUT], t[HISTORY_GET]);
	}
}

/* --- JSON --- */

static json_t *kind_json(const struct cell *cell, unsigned k)
{
	const struct latency *l = &cell->result.latency[k];
	double trips = cell->server->trips[k];
	return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:o}", "operations",
			 (json_int_t)l->times, "failed", (json_int_t)cell->result.failed[k],
			 "p50_us", micros(l, 500), "p90_us", micros(l, 900), "p99_us",
			 micros(l, 990), "p999_us", micros(l, 999), "max_us",
			 (double)l->max_ns * 1e-3, "round_trips",
			 trips < 0 ? json_null() : json_real(trips));
}

static json_t *cell_json(const struct bench *b, const struct cell *cell)
{
	const struct load_result *r = &cell->result;
	const char workload[2] = {cell->workload};
	json_t *errors = json_object();
	for (unsigned i = 0; i < LOAD_ERRORS && r->error[i].times; i++)
		json_object_set_new(errors, strerrorname_np(-r->error[i].error) ?: "unknown",
				    json_integer((json_int_t)r->error[i].times));
	json_t *all = json_pack(
		"{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:I, s:f, s:I, s:I, s:I, s:i, s:b, s:b, "
		"s:o}",
		"server", cell->server->address, "store", cell->server->what.store->name, "variant",
		cell->server->what.variant, "workload", workload, "clients", (int)cell->clients,
		"keys", (int)key_count(b, cell->server), "value", (int)value_bytes(b, cell->server),
		"seconds", r->seconds, "operations", (json_int_t)r->ops, "per_second",
		per_second(r), "not_found", (json_int_t)r->not_found, "foreign",
		(json_int_t)r->foreign, "reconnects", (json_int_t)r->reconnects, "gave_up",
		(int)r->gave_up, "hung", (int)r->hung, "full", (int)r->full, "errors", errors);
	json_object_set_new(all, "put", kind_json(cell, HISTORY_PUT));
	json_object_set_new(all, "get", kind_json(cell, HISTORY_GET));
	json_object_set_new(all, "delete", kind_json(cell, HISTORY_DEL));
	return all;
}

static int write_json(const struct bench *b)
{
	json_t *cells = json_array();
	for (unsigned i = 0; i < b->cells; i++)
		json_array_append_new(cells, cell_json(b, &b->cell[i]));
	json_t *all = json_pack("{s:o}", "loads", cells);
	int error = all ? json_save(all, b->json) : -ENOMEM;
	json_decref(all);
	return error ? fail(EXIT_USAGE, "%s: %s", b->json, strerror(-error)) : 0;
}

/* --- all of it --- */

static void interrupt(int sig)
{
	(void)sig;
	atomic_store(&interrupted, true);
}

static int run_cells(struct bench *b)
{
	bool loaded[MAX_SERVERS] = {false};
	int status = 0;
	for (unsigned i = 0; i < b->cells && !atomic_load(&interrupted); i++) {
		struct cell *cell = &b->cell[i];
		unsigned s = i % b->servers;
		cell->server = &b->served[s];
		cell->clients = b->count[i / b->servers % b->counts];
		cell->workload = b->workload[i / b->servers / b->counts];
		int failed = run_cell(b, cell, !loaded[s]);
		loaded[s] = true;
		if (failed)
			return failed;
		int one = status_of(&cell->result);
		status = !status || one == EXIT_BROKEN ? one : status;
		if (cell->result.hung || (cell->result.gave_up && !cell->result.ops))
			break; /* what comes after it would not do better */
	}
	return status;
}

static int run(struct bench *b)
{
	int status = 0;
	for (unsigned i = 0; i < b->servers && !status; i++)
		status = ask_server(b, &b->served[i], i);
	if (status)
		return status;
	b->cells = b->servers * b->workloads * b->counts;
	b->cell = calloc(b->cells, sizeof(*b->cell));
	for (unsigned i = 0; i < b->cells && b->cell; i++)
		b->cell[i].server = &b->served[i % b->servers];
	if (!b->cell)
		return fail(EXIT_INTERNAL, "out of memory");
	signals_catch(interrupt);
	status = run_cells(b);
	signals_catch(NULL);
	if (status == EXIT_INTERNAL || status == EXIT_USAGE)
		return status;
	for (unsigned i = 0; i < b->servers; i++)
		predict(&b->served[i], value_bytes(b, &b->served[i]));
	if (b->cells == 1) {
		print_cell(b, &b->cell[0]);
	} else {
		print_table(b);
		print_trips(b);
	}
	if (b->json) {
		int failed = write_json(b);
		status = failed ? failed : status;
	}
	return status;
}

int live_bench_main(int argc, char **argv)
{
	struct bench b = {.room = HISTORY_ROOM,
			  .load = {.sessions = &live_sessions,
				   .seed = 1,
				   .seconds = 5,
				   .patience_s = 30,
				   .stall_s = 30,
				   .interrupted = &interrupted,
				   .report = say}};
	int status = read_options("bench", options, argc, argv, live_bench_help, take_option, &b);
	if (status >= 0)
		return status;
	if (optind < argc)
		return fail(EXIT_USAGE, "bench: \"%.40s\" was not expected", argv[optind]);
	if (!b.workloads)
		b.workload[b.workloads++] = 'a';
	if (!b.counts)
		b.count[b.counts++] = 1;
	status = check_options(&b);
	if (status)
		return status;
	status = soft_rnic_if_asked(b.device);
	if (status)
		return status;
	b.load.report_arg = &b;
	b.load.progress = b.quiet ? NULL : show_progress;
	if (live_device_open(b.device, &b.verbs))
		return fail(EXIT_SKIPPED, "bench: there is no RDMA device%s%s", b.device ? " " : "",
			    b.device ? b.device : "");
	status = run(&b);
	for (unsigned i = 0; i < b.cells && b.cell; i++)
		if (b.cell[i].result.hung) {
			/* A thread may still be at work with all that would be given back. */
			fflush(stdout);
			_exit(EXIT_BROKEN);
		}
	free(b.cell);
	ibv_close_device(b.verbs);
	return status;
}
