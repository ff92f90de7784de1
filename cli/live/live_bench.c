/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark bench --server: load on live servers, and what came of it. docs/live-bench.md. */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/options.h"
#include "core/live/live.h"
#include "core/live/rendezvous.h"
#include "report/live/bench_report.h"
#include "scenarios/workload/zipf.h"

#define HISTORY_ROOM (1 << 18) /* operations, of 64 bytes each */

struct request {
	struct live_bench bench;
	const char *device, *json;
	bool quiet;
};

static atomic_bool interrupted;

/* --- options --- */

/* "a,b", each once. */
static bool add_workloads(const struct option_row *row, void *into, const char *text)
{
	struct live_bench *b = &((struct request *)into)->bench;
	(void)row;
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

static bool add_counts(const struct option_row *row, void *into, const char *text)
{
	struct live_bench *b = &((struct request *)into)->bench;
	(void)row;
	b->counts = 0;
	for (const char *p = text;;) {
		char *end;
		unsigned long n = *p >= '0' && *p <= '9' ? strtoul(p, &end, 10) : 0;
		if (n < 1 || n > TM_MAX_CLIENTS || (*end && *end != ',') ||
		    b->counts == BENCH_COUNTS) {
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

static bool add_server(const struct option_row *row, void *into, const char *address)
{
	struct live_bench *b = &((struct request *)into)->bench;
	(void)row;
	if (b->servers == BENCH_SERVERS) {
		fail(EXIT_USAGE, "--server: more than %d; %.60s is too many", BENCH_SERVERS,
		     address);
		return false;
	}
	if (!rendezvous_is_address(address)) {
		fail(EXIT_USAGE, "--server: \"%.80s\"; expected ADDRESS:PORT", address);
		return false;
	}
	b->address[b->servers++] = address;
	return true;
}

static bool take_time(const struct option_row *row, void *into, const char *value)
{
	struct load_options *load = &((struct request *)into)->bench.load;
	load->ops = 0;
	return option_time(row, &load->seconds, value);
}

static bool take_ops(const struct option_row *row, void *into, const char *value)
{
	struct load_options *load = &((struct request *)into)->bench.load;
	load->seconds = 0;
	return option_number(row, &load->ops, value);
}

static void show_workload(const struct option_row *row, const void *into, char *text, size_t size)
{
	(void)row;
	snprintf(text, size, "%c", ((const struct request *)into)->bench.workload[0]);
}

static void show_count(const struct option_row *row, const void *into, char *text, size_t size)
{
	(void)row;
	snprintf(text, size, "%u", ((const struct request *)into)->bench.count[0]);
}

static void show_time(const struct option_row *row, const void *into, char *text, size_t size)
{
	(void)row;
	snprintf(text, size, "%.0fs", ((const struct request *)into)->bench.load.seconds);
}

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"server", "A:P", "may be repeated", OPTION_CALL(add_server)},
	{"device", "NAME", "the RDMA device (the first)", REQUEST(device)},
	{"workload", "X", "a, b, c (YCSB) or u (updates only); \"a,b,c\" for several (=)",
	 OPTION_CALL(add_workloads), .show = show_workload},
	{"clients", "N", "threads with a session each, 1 to 16; \"1,2,4,8\" for several (=)",
	 OPTION_CALL(add_counts), .show = show_count},
	{"first", "N", "client numbers from N on (any that are free)",
	 REQUEST(bench.load.first_client), 1, TM_MAX_CLIENTS},
	{"time", "S", "how long each load is measured: 90s, 30m (=)", OPTION_CALL(take_time),
	 .show = show_time},
	{"ops", "N", "so many operations instead, of all clients together", OPTION_CALL(take_ops),
	 .lo = 0, .hi = UINT32_MAX},
	{"keys", "N", "of the keys that the server has room for (all)", REQUEST(bench.keys), 1,
	 ZIPF_MAX_KEYS},
	{"value", "N", "bytes, 16 at least (the longest that the server has room for)",
	 REQUEST(bench.value), LIVE_MIN_VALUE, TM_MAX_VALUE},
	{"deletes", "P", "percent of the updates that are DELETEs (=)",
	 REQUEST(bench.load.delete_percent), 0, 100},
	{"seed", "N", "of what each client does (=)", REQUEST(bench.load.seed), 0, UINT32_MAX},
	{"load", NULL, "first put every key; with --ops 0, nothing else", REQUEST(bench.load.load)},
	{"verify", NULL, "a GET's bytes that no PUT of the key wrote are reported, and counted",
	 REQUEST(bench.load.verify)},
	{"history", "FILE",
	 "record every operation, for tidemark examine; a file or a devdax device",
	 REQUEST(bench.history)},
	{"room", "N", "operations in a new file for that (=); it ends when it is full",
	 REQUEST(bench.room), 1, UINT32_MAX},
	{"reconnect", NULL, "a session that broke is opened again,", REQUEST(bench.load.reconnect)},
	{"patience", "S", "for so long (=)", REQUEST(bench.load.patience_s)},
	{"stall", "S", "an operation that takes longer hangs: it is reported, and all ends (=)",
	 REQUEST(bench.load.stall_s)},
	{"json", "FILE", "the results for machines", REQUEST(json)},
	OPTION_QUIET(struct request, quiet),
	OPTION_END};

static const struct options options = {
	"bench", "\n--server ADDRESS:PORT [OPTION...]",
	"Without options: measures what the simulator costs on this machine; about a minute.\n"
	"With --server: loads a live store (tidemark serve) and measures it. Several servers, "
	"workloads or numbers of clients make a table.",
	rows,
	"0 done, 1 a GET returned what no PUT wrote, or an operation hangs, 2 usage or bad input, "
	"3 "
	"a client lost its server, 70 internal error, 77 there is no RDMA device"};

/* What does not fit together. 0, or the status after a message. */
static int check_options(const struct request *r)
{
	const struct live_bench *b = &r->bench;
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
	int status = b->history ? check_output("--history", b->history, OUTPUT_IN_PLACE) : 0;
	if (!status && r->json)
		status = check_output("--json", r->json, OUTPUT_JSON);
	return status;
}

/* --- running --- */

static void print_message(void *arg, const char *line)
{
	(void)arg;
	fail(0, "%s", line);
}

static void show_progress(void *arg, double seconds, uint64_t ops)
{
	const struct live_bench *b = arg;
	char of[32] = "";
	if (b->load.seconds > 0)
		snprintf(of, sizeof(of), " of %.0f", b->load.seconds);
	progress_line("%s, workload %c, %u clients: %.0f%s s, %" PRIu64 " operations",
		      b->on->server->what.store->name, b->on->workload, b->on->clients, seconds, of,
		      ops);
}

static void interrupt(int sig)
{
	(void)sig;
	atomic_store(&interrupted, true);
}

static int cell_status(const struct load_result *r)
{
	return r->foreign || r->hung ? EXIT_BROKEN : r->gave_up ? EXIT_UNSURE : EXIT_HELD;
}

static int run_loads(struct live_bench *b)
{
	int status = EXIT_HELD;
	signals_catch(interrupt);
	int error = live_bench_run(b);
	signals_catch(NULL);
	progress_line(NULL);
	if (error && error != -EDEADLK)
		return fail(error == -EINVAL ? EXIT_USAGE : EXIT_INTERNAL, "%s%s",
			    b->why[0] ? "" : "bench: ", b->why[0] ? b->why : strerror(-error));
	for (unsigned i = 0; i < b->cells; i++) {
		int one = cell_status(&b->cell[i].result);
		status = !status || one == EXIT_BROKEN ? one : status;
	}
	return error ? EXIT_BROKEN : status;
}

static int run(struct request *r)
{
	struct live_bench *b = &r->bench;
	if (live_bench_ask(b))
		return fail(EXIT_USAGE, "%s", b->why);
	int status = run_loads(b);
	if (status == EXIT_INTERNAL || status == EXIT_USAGE)
		return status;
	live_bench_predict(b);
	live_bench_print(b);
	int failed = r->json ? saved(r->json, live_bench_json(b, r->json)) : 0;
	return failed ? failed : status;
}

/* A client that hangs may still be at work with all that would be given back. */
static void leave_hung(const struct live_bench *b)
{
	for (unsigned i = 0; i < b->cells && b->cell; i++)
		if (b->cell[i].result.hung) {
			fflush(stdout);
			_exit(EXIT_BROKEN);
		}
}

int live_bench_main(int argc, char **argv)
{
	struct request r = {.bench = {.room = HISTORY_ROOM,
				      .workload = "a",
				      .workloads = 1,
				      .count = {1},
				      .counts = 1,
				      .load = {.seed = 1,
					       .seconds = 5,
					       .patience_s = 30,
					       .stall_s = 30,
					       .interrupted = &interrupted,
					       .report = print_message}}};
	struct live_bench *b = &r.bench;
	int status = options_read(&options, &r, argc, argv);
	if (status < 0)
		status = options_end(&options, argc, argv);
	if (status >= 0)
		return status;
	status = check_options(&r);
	if (!status)
		status = soft_rnic_if_asked(r.device);
	if (status)
		return status;
	b->load.report_arg = b;
	b->load.progress = r.quiet ? NULL : show_progress;
	status = open_device(r.device, &b->verbs);
	if (status)
		return status;
	status = run(&r);
	leave_hung(b);
	free(b->cell);
	ibv_close_device(b->verbs);
	return status;
}
