/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark serve: a store on this machine's RDMA device and PM. docs/live.md. */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/options.h"
#include "core/live/live_config.h"
#include "core/live/rendezvous.h"
#include "scenarios/server.h"

#define DEFAULT_LISTEN "127.0.0.1:7471"
#define SIZE_MOST      (1ull << 40)

struct request {
	const char *path, *device, *listen, *members;
	unsigned number;
	struct pool_wish wish;
	struct option_names knob;
	bool shadow, quiet;
	const char *cache; /* of the shadow; NULL: ordinary memory */
};

/* --- options --- */

/* "100000", "64K", "16M", "1G". */
static bool take_bytes(const struct option_row *row, void *into, const char *text)
{
	static const char units[] = "KMG";
	unsigned long long n;
	char number[32];
	size_t len = strlen(text);
	const char *unit = len ? strchr(units, text[len - 1]) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	(void)row;
	snprintf(number, sizeof(number), "%.*s", (int)(unit ? len - 1 : len), text);
	if (!whole_number(number, 1, SIZE_MOST >> shift, &n)) {
		fail(EXIT_USAGE,
		     "--size: \"%.40s\"; expected a whole number of bytes, such as 100000, 64K, "
		     "16M or 1G, at most %lluG",
		     text, SIZE_MOST >> 30);
		return false;
	}
	((struct request *)into)->wish.bytes = n << shift;
	return true;
}

static bool take_shadow(const struct option_row *row, void *into, const char *cache)
{
	struct request *r = into;
	(void)row;
	r->shadow = true;
	r->cache = cache;
	return true;
}

/* A size of the pool, within its limits; `row->lo` says which. */
static bool take_size(const struct option_row *row, void *into, const char *text)
{
	const struct pool_limit *limit = &pool_limits[row->lo];
	return number_option(limit->option, text, limit->least, limit->most,
			     &((struct request *)into)->wish.size[row->lo]);
}

static void show_bytes(const struct option_row *row, const void *into, char *text, size_t size)
{
	(void)row;
	(void)into;
	snprintf(text, size, "%lluM", pool_default_bytes >> 20);
}

static void show_size(const struct option_row *row, const void *into, char *text, size_t size)
{
	(void)into;
	snprintf(text, size, "%llu", pool_limits[row->lo].otherwise);
}

#define REQUEST(member) OPTION_FIELD(struct request, member)
#define SIZE(which)	OPTION_CALL(take_size), .lo = (which), .show = show_size

static const struct option_row rows[] = {
	{"pm", "FILE", "the pool: a DAX device (/dev/dax0.0), or a file", REQUEST(path)},
	{"device", "D", "the RDMA device (the first; tide0: the soft RNIC)", REQUEST(device)},
	{"listen", "A:P", "where clients ask to be connected (=)", REQUEST(listen)},
	{"shadow", "[=CACHE]",
	 "the store works in a copy, and the pool gets what is flushed alone; the copy is a file "
	 "or a DAX device, or ordinary memory",
	 OPTION_CALL(take_shadow)},
	{.help = "of a store of several servers"},
	{"members", "A:P", "where tidemark members answers", REQUEST(members)},
	{"number", "N", "which of its servers this is, from 1", REQUEST(number), 1, LIVE_SERVERS},
	{.help = "of a pool without a store"},
	{"size", "BYTES", "as large as that at most: 100000, 64K, 16M, 1G (=)",
	 OPTION_CALL(take_bytes), .show = show_bytes},
	{"clients", "N", "that can be connected at a time (=)", SIZE(POOL_CLIENTS)},
	{"keys", "N", "different keys (=)", SIZE(POOL_KEYS)},
	{"value", "BYTES", "of the longest value (=)", SIZE(POOL_VALUE)},
	{"updates", "N",
	 "PUTs and DELETEs for which there is room without log cleaning (as many as go into "
	 "--size)",
	 SIZE(POOL_UPDATES)},
	{"variant", "NAME", "a variant of the store (tidemark list variants)",
	 REQUEST(wish.variant)},
	{"knob", "NAME=VALUE", "a knob of the store (tidemark list knobs); may be repeated",
	 REQUEST(knob)},
	{.help = "Of a pool that has one, these must be as they were, if they are given."},
	{"quiet", NULL, "do not say when it is ready", REQUEST(quiet), .letter = 'q'},
	OPTION_END};

static const struct options options = {
	"serve", "STORE --pm FILE [OPTION...]",
	"Serves a store to clients on the network, over this machine's RDMA device, from a pool of "
	"persistent memory. A pool without a store is formatted, another one is recovered. SIGTERM "
	"stops the server in order. docs/live.md explains it.",
	rows,
	"0 stopped in order, 1 recovery failed, or the store's own check found a defect after it, "
	"2 usage or bad input, 70 internal error, 77 no RDMA device"};

/* One of several servers has to know which it is, and who keeps who is a member. */
static int check_number(const struct tm_store *store, const struct request *r)
{
	if (store->servers < 2 && (r->members || r->number))
		return fail(EXIT_USAGE,
			    "serve: %s has one server; --members and --number are for "
			    "stores of several",
			    store->name);
	if (store->servers < 2)
		return 0;
	if (!r->members || !r->number || r->number > store->servers)
		return fail(EXIT_USAGE,
			    "serve: %s has several servers; expected --members ADDRESS:PORT, "
			    "and --number from 1 to %u",
			    store->name, store->servers);
	return rendezvous_is_address(r->members)
		       ? 0
		       : fail(EXIT_USAGE, "--members: \"%.80s\"; expected ADDRESS:PORT",
			      r->members);
}

static int check_store(const char *name, const struct request *r)
{
	struct nearest n;
	const struct tm_store *store = live_store_find(name);
	if (store)
		return check_number(store, r);
	nearest_init(&n, name);
	for (unsigned i = 0; live_stores[i]; i++)
		nearest_try(&n, live_stores[i]->name);
	return fail(EXIT_USAGE, "serve: no store \"%.40s\"%s (tidemark list)", name, n.hint);
}

/* --- serving --- */

static void pm_lost(int error)
{
	fail(EXIT_INTERNAL, "the pool cannot be written: %s", strerror(-error));
	_exit(EXIT_INTERNAL);
}

static void print_defect(const struct server *s, const char *what)
{
	fail(0, "%s: %s", s->pm_setup.path, what);
}

static int check_server(const struct server *s, int error)
{
	int status = error == -EINVAL	 ? EXIT_USAGE
		     : error == -EBADMSG ? EXIT_BROKEN
					 : EXIT_INTERNAL;
	if (!error)
		return 0;
	return s->why[0] ? fail(status, "%s", s->why) : status;
}

static int open_pool(struct server *s, bool quiet)
{
	int status = check_server(s, server_open_pool(s));
	if (!status && !live_pm_is_pm(s->pm) && !quiet)
		fprintf(stderr,
			"tidemark: %s is not persistent memory: every flush writes a file, "
			"slowly\n",
			s->pm_setup.path);
	return status;
}

static void print_ready(const struct server *s)
{
	int len = (int)(strrchr(s->listen, ':') - s->listen);
	printf("serving %s on %.*s:%u, boot %" PRIu32 ", %s\n", s->store.store->name, len,
	       s->listen, rendezvous_port(s->control), s->store.boot,
	       s->fresh ? "formatted" : "recovered");
	fflush(stdout);
}

/* All that can be known before the pool is touched: it is looked at, and not changed. */
static int check(struct server *s, const struct request *r, const char *name)
{
	int status = check_output("--pm", r->path, OUTPUT_IN_PLACE);
	if (!status && r->cache)
		status = check_output("--shadow", r->cache, OUTPUT_IN_PLACE);
	if (!status)
		status = check_server(
			s, pool_plan(&s->store, r->path, name, &r->wish, &s->fresh, s->why));
	if (status)
		return status;
	int error = rendezvous_check(r->listen);
	if (error == -EINVAL)
		return fail(EXIT_USAGE, "--listen: \"%.80s\"; expected ADDRESS:PORT", r->listen);
	return error ? fail(EXIT_USAGE, "--listen: %.80s: %s", r->listen, strerror(-error)) : 0;
}

static int run_server(struct server *s, const struct request *r)
{
	bool there = !access(r->path, F_OK);
	int status = open_device(r->device, &s->verbs);
	if (!status)
		status = open_pool(s, r->quiet);
	if (status && !there && !s->pm)
		unlink(r->path); /* it was made, and then something else was wrong */
	if (!status)
		status = check_server(s, server_start(s));
	if (!status)
		status = check_server(s, server_listen(s));
	if (!status) {
		if (!r->quiet)
			print_ready(s);
		signals_wait();
		status = check_server(s, server_stop(s));
	}
	server_close(s);
	if (s->verbs)
		ibv_close_device(s->verbs);
	return status;
}

int serve_main(int argc, char **argv)
{
	struct request r = {.listen = DEFAULT_LISTEN};
	int status = options_read(&options, &r, argc, argv);
	if (status >= 0)
		return status;
	if (argc - optind != 1)
		return fail(EXIT_USAGE, "serve: expected one STORE (tidemark list)");
	if (!r.path)
		return fail(EXIT_USAGE, "serve: expected --pm FILE");
	status = check_store(argv[optind], &r);
	if (status)
		return status;
	r.wish.knob = r.knob.name;
	r.wish.knobs = r.knob.n;
	struct server s = {
		.pm_setup = {.path = r.path, .shadow = r.shadow, .cache = r.cache, .lost = pm_lost},
		.listen = r.listen,
		.members = r.members,
		.number = r.number,
		.defect = print_defect};
	status = check(&s, &r, argv[optind]);
	if (!status)
		status = soft_rnic_if_asked(r.device);
	if (!status) {
		int error = signals_await();
		if (error)
			return fail(EXIT_INTERNAL, "serve: %s", strerror(-error));
		status = run_server(&s, &r);
		signals_catch(NULL);
	}
	return status;
}
