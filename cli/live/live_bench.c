/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark bench --server: load on a live server, and what came of it. docs/live.md. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "checker/live/recording.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "core/live/rendezvous.h"
#include "report/live/bench_report.h"
#include "report/text.h"
#include "scenarios/workload/session.h"
#include "scenarios/workload/workload.h"
#include "scenarios/workload/zipf.h"

#define HISTORY_ROOM (1 << 18) /* operations, of 64 bytes each */

struct request {
	struct load_options load; /* .keys, .vlen: 0: as the server has room for */
	const char *device, *history;
	unsigned long long room;
	bool quiet;
	struct live_store on; /* as the server described itself */
	struct load_result result;
};

static atomic_bool interrupted;

/* --- options --- */

static bool take_workload(const struct option_row *row, void *into, const char *text)
{
	return option_mix(row, &((struct request *)into)->load.read_percent, text);
}

static bool take_time(const struct option_row *row, void *into, const char *value)
{
	struct load_options *load = &((struct request *)into)->load;
	load->ops = 0;
	return option_time(row, &load->seconds, value);
}

static bool take_ops(const struct option_row *row, void *into, const char *value)
{
	struct load_options *load = &((struct request *)into)->load;
	load->seconds = 0;
	return option_number(row, &load->ops, value);
}

static void show_time(const struct option_row *row, const void *into, char *text, size_t size)
{
	(void)row;
	snprintf(text, size, "%.0fs", ((const struct request *)into)->load.seconds);
}

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"server", "A:P", "where tidemark serve listens", REQUEST(load.server)},
	{"device", "NAME", "the RDMA device (the first)", REQUEST(device)},
	{"workload", "X", "YCSB's a (the default), b, c, or u: updates only",
	 OPTION_CALL(take_workload)},
	{"clients", "N", "threads with a session each (=)", REQUEST(load.clients), 1,
	 TM_MAX_CLIENTS},
	{"first", "N", "client numbers from N on (any that are free)", REQUEST(load.first_client),
	 1, TM_MAX_CLIENTS},
	{"time", "S", "how long the load is measured: 90s, 30m (=)", OPTION_CALL(take_time),
	 .show = show_time},
	{"ops", "N", "so many operations instead, of all clients together", OPTION_CALL(take_ops),
	 .lo = 0, .hi = UINT32_MAX},
	{"keys", "N", "of the keys that the server has room for (all)", REQUEST(load.keys), 1,
	 ZIPF_MAX_KEYS},
	{"value", "N", "bytes, 16 at least (the longest that the server has room for)",
	 REQUEST(load.vlen), LIVE_MIN_VALUE, TM_MAX_VALUE},
	{"deletes", "P", "percent of the updates that are DELETEs (=)",
	 REQUEST(load.delete_percent), 0, 100},
	{"seed", "N", "of what each client does (=)", REQUEST(load.seed), 0, UINT32_MAX},
	{"load", NULL, "first put every key; with --ops 0, nothing else", REQUEST(load.load)},
	{"history", "FILE",
	 "record every operation, for tidemark examine; a file or a devdax device",
	 REQUEST(history)},
	{"room", "N", "operations in a new file for that (=); it ends when it is full",
	 REQUEST(room), 1, UINT32_MAX},
	{"reconnect", NULL, "a session that broke is opened again,", REQUEST(load.reconnect)},
	{"patience", "S", "for so long (=)", REQUEST(load.patience_s)},
	{"stall", "S", "an operation that takes longer hangs: it is reported, and all ends (=)",
	 REQUEST(load.stall_s)},
	ROWS_RESULTS,
	OPTION_QUIET(struct request, quiet),
	OPTION_END};

static const struct options options = {
	"bench", "\n--server ADDRESS:PORT [OPTION...]",
	"Without options: measures what the simulator costs on this machine; about a minute.\n"
	"With --server: loads a live store (tidemark serve) and measures it. A GET's bytes that no "
	"PUT of the key wrote are reported.",
	rows,
	"0 done, 1 a GET returned what no PUT wrote, or an operation hangs, 2 usage or bad input, "
	"3 a client lost its server, 70 internal error, 77 there is no RDMA device"};

/* What does not fit together. 0, or the status after a message. */
static int check_options(const struct request *r)
{
	const struct load_options *o = &r->load;
	if (!o->server)
		return fail(EXIT_USAGE, "bench: these options need --server ADDRESS:PORT");
	if (!rendezvous_is_address(o->server))
		return fail(EXIT_USAGE, "--server: \"%.80s\"; expected ADDRESS:PORT", o->server);
	if (o->first_client && o->first_client + o->clients - 1 > TM_MAX_CLIENTS)
		return fail(EXIT_USAGE, "bench: --first %u with %u clients: numbers end at %d",
			    o->first_client, o->clients, TM_MAX_CLIENTS);
	if (!o->ops && o->seconds <= 0 && !o->load)
		return fail(EXIT_USAGE, "bench: --ops 0 without --load: nothing would be done");
	int status = r->history ? check_output("--history", r->history, OUTPUT_IN_PLACE) : 0;
	return status ? status : results_check();
}

/* --- running --- */

/* Ask the server what it serves. 0, or the status after a message. */
static int ask_server(struct request *r)
{
	double patience = r->load.reconnect ? r->load.patience_s : 0;
	struct session *s = NULL;
	char why[400] = "";
	int error = session_open(&s, r->load.verbs, r->load.server, 0, why, sizeof(why));
	for (double waited = 0; error && waited < patience; waited += 0.1) {
		usleep(100000);
		error = session_open(&s, r->load.verbs, r->load.server, 0, why, sizeof(why));
	}
	if (error)
		return fail(EXIT_USAGE, "%s", why[0] ? why : strerror(-error));
	r->on = *session_store(s);
	session_close(s);
	return 0;
}

/* Does the server have room for what is asked for? 0, or the status after a message. */
static int fit_server(struct request *r)
{
	const struct tm_params *p = &r->on.params;
	struct load_options *o = &r->load;
	if (!o->keys)
		o->keys = p->keys < ZIPF_MAX_KEYS ? p->keys : ZIPF_MAX_KEYS;
	if (!o->vlen)
		o->vlen = p->max_vlen;
	if (p->max_vlen < LIVE_MIN_VALUE || o->vlen > p->max_vlen)
		return fail(
			EXIT_USAGE,
			"--value: %s has room for values of at most %u bytes; expected %d or more",
			o->server, p->max_vlen, LIVE_MIN_VALUE);
	if (o->keys > p->keys)
		return fail(EXIT_USAGE, "--keys: %s has room for %u", o->server, p->keys);
	if (o->clients > p->clients)
		return fail(EXIT_USAGE, "--clients: %s has numbers for %u", o->server, p->clients);
	return 0;
}

static int open_history(struct request *r)
{
	char text[4096];
	int error = recording_create(&r->load.recording, r->history, r->room);
	if (error)
		return fail(EXIT_USAGE, "%s: %s", r->history, strerror(-error));
	error = live_store_print(&r->on, text, sizeof(text));
	if (!error)
		error = recording_set_text(r->load.recording, text);
	return error ? fail(EXIT_INTERNAL, "%s: %s", r->history, strerror(-error)) : 0;
}

static void print_message(const char *line)
{
	fail(0, "%s", line);
}

static void show_progress(double seconds, uint64_t ops)
{
	progress_line("%.0f s, %" PRIu64 " operations", seconds, ops);
}

static void interrupt(int sig)
{
	(void)sig;
	atomic_store(&interrupted, true);
}

/* 0, or the status after a message. */
static int run_bench(struct request *r)
{
	struct load_result *result = &r->result;
	int status = ask_server(r);
	if (!status)
		status = fit_server(r);
	if (!status && r->history)
		status = open_history(r);
	if (status)
		return status;
	signals_catch(interrupt);
	int error = load_run(&r->load, result);
	signals_catch(NULL);
	progress_line(NULL);
	if (error && error != -EDEADLK)
		return fail(EXIT_INTERNAL, "bench: %s", strerror(-error));
	json_t *all = bench_tree(&r->on, &r->load, result);
	text_print(all, "bench");
	status = outputs_write(all, NULL);
	/* A client that hangs may still be at work with all that would be given back. */
	if (result->hung) {
		fflush(stdout);
		_exit(EXIT_BROKEN);
	}
	return status ? status : result->foreign ? EXIT_BROKEN : result->gave_up ? EXIT_UNSURE : 0;
}

int live_bench_main(int argc, char **argv)
{
	struct request r = {.room = HISTORY_ROOM,
			    .load = {.read_percent = 50,
				     .clients = 1,
				     .seed = 1,
				     .seconds = 5,
				     .patience_s = 30,
				     .stall_s = 30,
				     .interrupted = &interrupted,
				     .report = print_message}};
	int status = options_read(&options, &r, argc, argv);
	if (status < 0)
		status = options_end(&options, argc, argv);
	if (status >= 0)
		return status;
	status = check_options(&r);
	if (!status)
		status = soft_rnic_if_asked(r.device);
	if (!status)
		status = open_device(r.device, &r.load.verbs);
	if (status)
		return status;
	r.load.progress = r.quiet ? NULL : show_progress;
	status = run_bench(&r);
	recording_close(r.load.recording);
	ibv_close_device(r.load.verbs);
	return status;
}
