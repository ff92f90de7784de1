/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark serve: a store on this machine's RDMA device and PM. docs/live.md.
 *
 * What a pool holds stands in its header, durable before the pool changes: with boot number 0 while
 * it is being formatted, then with the number of this start and the state "running"
 * before recovery begins, and "stopped" when all of the pool has been written back at the end.
 */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cli.h"
#include "core/live/live_pm.h"
#include "core/live/rendezvous.h"
#include "core/live/live.h"
#include "scenarios/knobs.h"
#include "scenarios/live_store.h"

#define DEFAULT_LISTEN "127.0.0.1:7471"
#define DEFAULT_SIZE \
	(16ull       \
	 << 20) /* bytes of a new pool, its header included, if nobody says how many updates */
#define DEFAULT_CLIENTS 8
#define DEFAULT_KEYS	1000
#define DEFAULT_VALUE	256
#define MOST_UPDATES	100000000u
#define MAX_KNOBS	TM_MAX_KNOBS

enum { CLIENTS, KEYS, UPDATES, VALUE, SIZES };

/* What a user may say of a pool; 0: has not said. */
struct wish {
	const char *variant, *knob[MAX_KNOBS];
	unsigned knobs;
	unsigned long long size[SIZES], bytes;
};

static const struct {
	const char *name;
	unsigned long long most, otherwise;
} sizes[SIZES] = {
	[CLIENTS] = {"--clients", TM_MAX_CLIENTS, DEFAULT_CLIENTS},
	[KEYS] = {"--keys", 1u << 24, DEFAULT_KEYS},
	[UPDATES] = {"--updates", MOST_UPDATES, 0},
	[VALUE] = {"--value", TM_MAX_VALUE, DEFAULT_VALUE},
};

struct server {
	const char *name, *path, *device, *listen;
	struct live_pm_setup pm_setup;
	struct wish wish;
	bool quiet;
	struct live_store store;
	bool fresh; /* the pool has no store yet */
	struct live_pm *pm;
	struct ibv_context *verbs;
	struct live_host *host;
	struct control_server *control;
	struct tm_env env;
	struct tm_fsck fsck;
	unsigned defects;
};

enum {
	OPT_VARIANT = 1000,
	OPT_KNOB,
	OPT_PM,
	OPT_SIZE,
	OPT_DEVICE,
	OPT_LISTEN,
	OPT_SHADOW,
	OPT_SIZES, /* of clients, ... */
	OPT_QUIET = 'q'
};

static const struct option options[] = {
	{"variant", required_argument, NULL, OPT_VARIANT},
	{"knob", required_argument, NULL, OPT_KNOB},
	{"pm", required_argument, NULL, OPT_PM},
	{"size", required_argument, NULL, OPT_SIZE},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"shadow", optional_argument, NULL, OPT_SHADOW},
	{"clients", required_argument, NULL, OPT_SIZES + CLIENTS},
	{"keys", required_argument, NULL, OPT_SIZES + KEYS},
	{"updates", required_argument, NULL, OPT_SIZES + UPDATES},
	{"value", required_argument, NULL, OPT_SIZES + VALUE},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static void help(void)
{
	puts("usage: tidemark serve STORE --pm FILE [OPTION...]\n"
	     "Serves a store to clients on the network, over this machine's RDMA device, from a "
	     "pool of\n"
	     "persistent memory. A pool without a store is formatted, another one is recovered. "
	     "SIGTERM\n"
	     "stops the server in order. docs/live.md has the whole story.\n\n"
	     "  --pm FILE          the pool: a DAX device (/dev/dax0.0), or a file\n"
	     "  --device D         the RDMA device (the first; tide0: the soft RNIC)\n"
	     "  --listen A:P       where clients ask to be connected (127.0.0.1:7471)\n"
	     "  --shadow[=CACHE]   the store works in a copy, and the pool gets what is flushed "
	     "alone; the\n"
	     "                     copy is a file or a DAX device, or ordinary memory\n\n"
	     "of a pool without a store\n"
	     "  --size BYTES       as large as that at most: 100000, 64K, 16M, 1G (16M)\n"
	     "  --clients N        that can be connected at a time (8)\n"
	     "  --keys N           different keys (1000)\n"
	     "  --value BYTES      of the longest value (256)\n"
	     "  --updates N        PUTs and DELETEs for which there is room without log cleaning "
	     "(as many\n"
	     "                     as go into --size)\n"
	     "  --variant NAME     a variant of the store (tidemark list variants)\n"
	     "  --knob NAME=VALUE  a switch of the store (tidemark list knobs); may be repeated\n"
	     "  Of a pool that has one, these must be as they were, if they are given.\n\n"
	     "  -q, --quiet        do not say when it is ready\n"
	     "  --help             this text\n\n"
	     "exit status: 0 stopped in order, 1 recovery failed, or the store's own check found a "
	     "defect\n"
	     "after it, 2 usage or bad input, 70 internal error, 77 no RDMA device");
}

/* --- options --- */

/* "100000", "64K", "16M", "1G". */
static bool bytes_option(const char *name, const char *text, unsigned long long *out)
{
	static const char units[] = "KMG";
	char number[32];
	size_t len = strlen(text);
	const char *unit = len ? strchr(units, text[len - 1]) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	snprintf(number, sizeof(number), "%.*s", (int)(unit ? len - 1 : len), text);
	if (!number_option(name, number, 1, (1ull << 40) >> shift, out))
		return false;
	*out <<= shift;
	return true;
}

static bool take(void *arg, int option, const char *value)
{
	struct server *s = arg;
	struct wish *w = &s->wish;
	switch (option) {
	case OPT_VARIANT:
		w->variant = value;
		return true;
	case OPT_KNOB:
		if (w->knobs == MAX_KNOBS)
			return !fail(EXIT_USAGE, "--knob: more than %d", MAX_KNOBS);
		w->knob[w->knobs++] = value;
		return true;
	case OPT_PM:
		s->path = value;
		return true;
	case OPT_SIZE:
		return bytes_option("--size", value, &w->bytes);
	case OPT_DEVICE:
		s->device = value;
		return true;
	case OPT_LISTEN:
		s->listen = value;
		return true;
	case OPT_SHADOW:
		s->pm_setup.shadow = true;
		s->pm_setup.cache = value;
		return true;
	case OPT_QUIET:
		s->quiet = true;
		return true;
	default:
		option -= OPT_SIZES;
		return number_option(sizes[option].name, value,
				     option == VALUE ? LIVE_MIN_VALUE : 1, sizes[option].most,
				     &w->size[option]);
	}
}

static int find_store(struct server *s, const char *name)
{
	struct nearest n;
	s->name = name;
	s->store.store = live_store_find(name);
	if (s->store.store)
		return 0;
	nearest_init(&n, name);
	for (unsigned i = 0; live_stores[i]; i++)
		nearest_try(&n, live_stores[i]->name);
	return fail(EXIT_USAGE, "serve: no store \"%.40s\"%s (tidemark list)", name, n.hint);
}

/* --- what the pool is to hold --- */

static int set_of_variant(void *arg, const char *name, const char *value)
{
	struct live_store *s = arg;
	const char *expected;
	int error = knob_set(s->store, &s->params, name, value, &expected);
	/* Else it is a switch of simulated hardware. */
	return error == -ENOENT ? fail(EXIT_USAGE,
				       "variant %s is one of %s=%s: hardware that a live server "
				       "cannot choose",
				       s->variant, name, value)
				: 0;
}

static int set_variant(struct live_store *s, const char *name)
{
	snprintf(s->variant, sizeof(s->variant), "%s", name);
	int error = knob_variant(s->store, name, set_of_variant, s);
	if (error == -ENOENT)
		return fail(EXIT_USAGE, "%s has no variant \"%.40s\" (tidemark list variants)",
			    s->store->name, name);
	return error;
}

static int set_knobs(struct live_store *s, const struct wish *w)
{
	for (unsigned i = 0; i < w->knobs; i++) {
		const char *text = w->knob[i], *expected = "";
		size_t len = strcspn(text, "=");
		char name[64];
		snprintf(name, sizeof(name), "%.*s", (int)len, text);
		int error = knob_set(s->store, &s->params, name, text[len] ? text + len + 1 : "",
				     &expected);
		if (error == -ENOENT)
			return fail(EXIT_USAGE,
				    "--knob: %s has no switch \"%.40s\" (tidemark list knobs)",
				    s->store->name, name);
		if (error)
			return fail(EXIT_USAGE, "--knob: \"%.60s\"; expected one of: %s", text,
				    expected);
	}
	return 0;
}

/* As many updates as go into the bytes; 0: none. */
static unsigned room_for(const struct live_store *s, unsigned long long bytes)
{
	struct tm_params params = s->params;
	unsigned low = 0, high = MOST_UPDATES;
	while (low < high) {
		params.updates = low + (high - low + 1) / 2;
		if (POOL_HEADER + s->store->pm_bytes(&params) <= bytes)
			low = params.updates;
		else
			high = params.updates - 1;
	}
	return low;
}

/* A store whose times are those of simulated networks has a variant with others. */
static const char *variant_for_live(const struct tm_store *store)
{
	for (const struct tm_variant *v = store->variants; v->name; v++)
		if (!strcmp(v->name, "live"))
			return v->name;
	return "default";
}

/* A pool without a store: what is asked for, and the defaults. */
static int design(struct server *s)
{
	const struct wish *w = &s->wish;
	struct live_store *store = &s->store;
	unsigned long long n[SIZES];
	int status = set_variant(store, w->variant ? w->variant : variant_for_live(store->store));
	if (!status)
		status = set_knobs(store, w);
	if (status)
		return status;
	for (unsigned i = 0; i < SIZES; i++)
		n[i] = w->size[i] ? w->size[i] : sizes[i].otherwise;
	store->params.clients = (unsigned)n[CLIENTS];
	store->params.keys = (unsigned)n[KEYS];
	store->params.max_vlen = (unsigned)n[VALUE];
	store->params.updates = n[UPDATES] ? (unsigned)n[UPDATES]
					   : room_for(store, w->bytes ? w->bytes : DEFAULT_SIZE);
	if (!store->params.updates)
		store->params.updates = 1;
	store->pool_bytes = store->store->pm_bytes(&store->params);
	if (w->bytes && POOL_HEADER + store->pool_bytes > w->bytes)
		return fail(EXIT_USAGE, "--size: %llu bytes; expected at least %zu for this store",
			    w->bytes, POOL_HEADER + store->pool_bytes);
	return 0;
}

/* A pool that has a store: are the options as it is? */
static int compare(const struct server *s)
{
	const struct wish *w = &s->wish;
	const struct live_store *had = &s->store;
	const struct tm_params *p = &had->params;
	const unsigned is[SIZES] = {p->clients, p->keys, p->updates, p->max_vlen};
	struct live_store wanted = *had;
	if (w->variant && strcmp(w->variant, had->variant))
		return fail(EXIT_USAGE, "--variant: %s has %s", s->path, had->variant);
	for (unsigned i = 0; i < SIZES; i++)
		if (w->size[i] && w->size[i] != is[i])
			return fail(EXIT_USAGE, "%s: %s has %u", sizes[i].name, s->path, is[i]);
	if (w->bytes && w->bytes < POOL_HEADER + had->pool_bytes)
		return fail(EXIT_USAGE, "--size: %s has %zu bytes", s->path,
			    POOL_HEADER + had->pool_bytes);
	int status = set_knobs(&wanted, w);
	if (status)
		return status;
	for (unsigned k = 0; had->store->knobs[k].name; k++) {
		char value[64];
		if (wanted.params.knob[k] == p->knob[k])
			continue;
		knob_value(had->store, p, k, value, sizeof(value));
		return fail(EXIT_USAGE, "--knob: %s has %s=%s", s->path, had->store->knobs[k].name,
			    value);
	}
	return 0;
}

/* Read what there is, without changing it. *text: "" if there is none. */
static int look(const struct server *s, char text[POOL_TEXT])
{
	struct live_pm_setup setup = {.path = s->path, .read_only = true};
	struct live_pm *pm;
	struct stat st;
	char why[256];
	text[0] = '\0';
	if (stat(s->path, &st) ? errno == ENOENT : S_ISREG(st.st_mode) && !st.st_size)
		return 0;
	if (live_pm_open(&pm, &setup, why, sizeof(why)))
		return fail(EXIT_USAGE, "--pm: %s", why);
	snprintf(text, POOL_TEXT, "%s", live_pm_header(pm));
	live_pm_close(pm);
	return 0;
}

static int plan(struct server *s)
{
	char text[POOL_TEXT];
	struct input_error wrong;
	int status = look(s, text);
	if (status)
		return status;
	if (*text && live_store_parse(&s->store, text, live_store_find, &wrong))
		return fail(EXIT_USAGE, "%s: line %u of its header: %s", s->path, wrong.line,
			    wrong.message);
	s->fresh = !*text || !s->store.boot;
	if (s->fresh) {
		s->store = (struct live_store){.store = live_store_find(s->name)};
		return design(s);
	}
	if (strcmp(s->store.store->name, s->name))
		return fail(EXIT_USAGE, "%s holds %s, not %s", s->path, s->store.store->name,
			    s->name);
	return compare(s);
}

/* --- starting --- */

static void pm_lost(int error)
{
	fail(EXIT_INTERNAL, "the pool cannot be written: %s", strerror(-error));
	_exit(EXIT_INTERNAL);
}

static bool zeroed(const uint8_t *bytes, size_t n)
{
	return !n || (!bytes[0] && !memcmp(bytes, bytes + 1, n - 1));
}

static int set_header(struct server *s, uint32_t boot, bool running)
{
	char text[POOL_TEXT];
	s->store.boot = boot;
	s->store.running = running;
	int error = live_store_print(&s->store, text, sizeof(text));
	if (!error)
		error = live_pm_set_header(s->pm, text);
	return error ? fail(EXIT_INTERNAL, "%s: its header cannot be written: %s", s->path,
			    strerror(-error))
		     : 0;
}

/* Formatting that was cut short has left anything; what somebody else may want stays. */
static int make_empty(struct server *s)
{
	uint8_t *pool = live_pm_pool(s->pm);
	size_t n = live_pm_pool_bytes(s->pm);
	if (!*live_pm_header(s->pm) && !zeroed(pool, n))
		return fail(EXIT_USAGE, "%s: holds something that is no pool; expected zeroes",
			    s->path);
	int status = set_header(s, 0, false);
	if (status)
		return status;
	memset(pool, 0, n);
	int error = live_pm_save(s->pm);
	return error ? fail(EXIT_INTERNAL, "%s: %s", s->path, strerror(-error)) : 0;
}

static int open_pool(struct server *s)
{
	char why[256];
	s->pm_setup.path = s->path;
	s->pm_setup.pool_bytes = s->store.pool_bytes;
	s->pm_setup.lost = pm_lost;
	if (live_pm_open(&s->pm, &s->pm_setup, why, sizeof(why)))
		return fail(EXIT_USAGE, "--pm: %s", why);
	if (!live_pm_is_pm(s->pm) && !s->quiet)
		fprintf(stderr,
			"tidemark: %s is not persistent memory: every flush writes a file, "
			"slowly\n",
			s->path);
	return s->fresh ? make_empty(s) : set_header(s, s->store.boot + 1, true);
}

static void defect(struct tm_fsck *fsck, const char *fmt, ...)
{
	struct server *s = (struct server *)((char *)fsck - offsetof(struct server, fsck));
	char line[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	s->defects++;
	fail(0, "%s: %s", s->path, line);
}

/* On a task of the host. */
static int format_or_recover(void *arg)
{
	struct server *s = arg;
	const struct tm_store *store = s->store.store;
	int error = s->fresh ? store->format(&s->env) : store->recover(&s->env);
	if (!error)
		store->fsck(&s->env, &s->fsck);
	return error;
}

static int start_serving(void *arg)
{
	struct server *s = arg;
	return s->store.store->serve(&s->env);
}

static int start_store(struct server *s)
{
	const struct tm_store *store = s->store.store;
	int error = live_host_new(&s->host, s->verbs, NULL);
	if (error)
		return fail(EXIT_INTERNAL, "serve: %s", strerror(-error));
	s->env = (struct tm_env){.params = &s->store.params,
				 .verbs = s->verbs,
				 .pm = live_pm_pool(s->pm),
				 .pm_len = store->pm_bytes(&s->store.params)};
	s->fsck.bad = defect;
	error = live_call(s->host, format_or_recover, s);
	if (error)
		return fail(s->fresh || error == -ENOMEM ? EXIT_INTERNAL : EXIT_BROKEN,
			    "%s: %s fails: %s", s->path, s->fresh ? "formatting" : "recovery",
			    strerror(-error));
	if (s->defects)
		return EXIT_BROKEN;
	int status = s->fresh ? set_header(s, 1, true) : 0;
	if (status)
		return status;
	error = live_call(s->host, start_serving, s);
	return error ? fail(EXIT_INTERNAL, "%s cannot serve: %s", store->name, strerror(-error))
		     : 0;
}

static int accept_client(void *arg, unsigned client, const void *req, size_t req_len, void *rsp,
			 size_t rsp_len)
{
	struct server *s = arg;
	(void)client; /* the store reads it in the request */
	return live_accept(s->host, req, req_len, rsp, rsp_len);
}

static int let_clients_in(struct server *s)
{
	char text[CONTROL_TEXT];
	int error = live_store_print(&s->store, text, sizeof(text));
	struct control_server_setup setup = {.address = s->listen,
					     .text = text,
					     .clients = s->store.params.clients,
					     .accept = accept_client,
					     .arg = s};
	if (!error)
		error = control_listen(&s->control, &setup);
	if (error == -EINVAL)
		return fail(EXIT_USAGE, "--listen: \"%.80s\"; expected ADDRESS:PORT", s->listen);
	if (error)
		return fail(EXIT_USAGE, "--listen: %.80s: %s", s->listen, strerror(-error));
	if (!s->quiet) {
		int len = (int)(strrchr(s->listen, ':') - s->listen);
		printf("serving %s on %.*s:%u, boot %" PRIu32 ", %s\n", s->name, len, s->listen,
		       control_port(s->control), s->store.boot,
		       s->fresh ? "formatted" : "recovered");
		fflush(stdout);
	}
	return 0;
}

/* --- the end --- */

static int stop_fd = -1;

static void on_signal(int sig)
{
	const uint64_t one = 1;
	int error = errno;
	(void)sig;
	if (write(stop_fd, &one, sizeof(one)) < 0)
		_exit(EXIT_INTERNAL);
	errno = error;
}

static void wait_for_signal(void)
{
	uint64_t n;
	while (read(stop_fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

/* Clients can no longer write to the pool; then all of it is written back. */
static int stop(struct server *s)
{
	control_stop(s->control);
	s->control = NULL;
	live_host_free(s->host);
	s->host = NULL;
	int error = live_pm_save(s->pm);
	if (error)
		return fail(EXIT_INTERNAL, "%s: %s", s->path, strerror(-error));
	return set_header(s, s->store.boot, false);
}

static int serve(struct server *s)
{
	int status = plan(s);
	if (!status)
		status = open_device(s->device, &s->verbs);
	if (!status)
		status = open_pool(s);
	if (!status)
		status = start_store(s);
	if (!status)
		status = let_clients_in(s);
	if (!status) {
		wait_for_signal();
		status = stop(s);
	}
	control_stop(s->control);
	live_host_free(s->host);
	live_pm_close(s->pm);
	if (s->verbs)
		ibv_close_device(s->verbs);
	return status;
}

int serve_main(int argc, char **argv)
{
	struct server s = {.listen = DEFAULT_LISTEN};
	int status = read_options("serve", options, argc, argv, help, take, &s);
	if (status >= 0)
		return status;
	if (argc - optind != 1)
		return fail(EXIT_USAGE, "serve: expected one STORE (tidemark list)");
	if (!s.path)
		return fail(EXIT_USAGE, "serve: expected --pm FILE");
	status = find_store(&s, argv[optind]);
	if (status)
		return status;
	status = soft_rnic_if_asked(s.device);
	if (status)
		return status;
	stop_fd = eventfd(0, EFD_CLOEXEC);
	if (stop_fd < 0)
		return fail(EXIT_INTERNAL, "serve: %s", strerror(errno));
	signals_catch(on_signal);
	status = serve(&s);
	signals_catch(NULL);
	close(stop_fd);
	return status;
}
