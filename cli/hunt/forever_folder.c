/* SPDX-License-Identifier: BSD-3-Clause */
/* See forever_folder.h. */
#include "cli/hunt/forever_folder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "checker/trace/regress.h"
#include "cli/cli.h"
#include "cli/hunt/fuzz_files.h"
#include "report/output.h"
#include "scenarios/stores.h"

#define FORMAT 1 /* of campaign.json */

static int path_in(char **path, const char *dir, const char *name)
{
	if (asprintf(path, "%s/%s", dir, name) >= 0)
		return 0;
	*path = NULL;
	return no_memory();
}

static int write_json(FILE *out, const void *json)
{
	return json_dumpf(json, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ? -EIO : 0;
}

/* --- the lock --- */

static int not_locked(const struct forever_folder *f, const char *path, int error)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (error != EAGAIN && error != EACCES)
		return fail(EXIT_USAGE, "%s: it cannot be locked: %s", path, strerror(error));
	fcntl(f->lock, F_GETLK, &whole); /* l_pid 0: it has just ended */
	return fail(
		EXIT_USAGE,
		"%s: process %ld is fuzzing there; expected a folder that no other process uses",
		f->path, (long)whole.l_pid);
}

/* Of the process, so that it goes with it, however it ends; its children do not have it. */
static int lock(struct forever_folder *f)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char *path;
	int status = path_in(&path, f->path, "lock");
	if (status)
		return status;
	f->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (f->lock < 0)
		status = fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
	else if (fcntl(f->lock, F_SETLK, &whole))
		status = not_locked(f, path, errno);
	free(path);
	return status;
}

/* --- what is of no use --- */

int forever_set_aside(struct forever_folder *f, const char *path, const char *why)
{
	const char *inside = path + strlen(f->path) + 1;
	char *to;
	int status = check_folder("--forever", f->aside, true);
	if (!status)
		status = path_in(&to, f->aside, inside);
	if (status)
		return status;
	for (char *p = to + strlen(f->aside) + 1; *p; p++)
		if (*p == '/')
			*p = '-';
	/* A folder cannot replace another one. */
	for (unsigned n = 2; !access(to, F_OK); n++) {
		free(to);
		if (asprintf(&to, "%s/%u-%s", f->aside, n, strrchr(path, '/') + 1) < 0)
			return no_memory();
	}
	if (rename(path, to))
		status = fail(EXIT_USAGE, "%s: cannot be set aside: %s", path, strerror(errno));
	else
		fail(0, "%s: %s; it is now %s", path, why, to);
	free(to);
	return status;
}

static int sweep_file(void *arg, const char *path)
{
	(void)arg;
	unlink(path);
	return 0;
}

/* What a killed process has left is removed: nobody else writes here. */
static int sweep(const char *dir)
{
	return each_file(dir, is_left_over, sweep_file, NULL);
}

/* --- what is tested --- */

static json_t *names_json(const struct option_names *names)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < names->n; i++)
		json_array_append_new(list, json_string(names->name[i]));
	return list;
}

static json_t *objects_json(const struct option_names *names)
{
	json_t *objects = json_object();
	for (unsigned i = 0; i < names->n; i++) {
		const struct tm_store *store = store_find(names->name[i]);
		const char *path = store ? store_path(store) : NULL;
		char *whole = path ? realpath(path, NULL) : NULL;
		if (whole)
			json_object_set_new(objects, names->name[i], json_string(whole));
		free(whole);
	}
	return objects;
}

static int new_settings(struct forever_folder *f, const char *path, const struct arguments *a)
{
	struct campaign c = {0};
	/* Nothing is kept that cannot be run. */
	int status = arguments_configs(a, &c);
	campaign_free(&c);
	if (status)
		return status;
	f->settings = json_pack("{s:i, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "format", FORMAT,
				"tidemark", tidemark_version, "began", (json_int_t)time(NULL),
				"seed", (json_int_t)a->options.seed, "stores",
				names_json(&a->store), "objects", objects_json(&a->store),
				"variants", names_json(&a->variant), "knobs", names_json(&a->knob));
	return f->settings ? saved(path, save_file(path, write_json, f->settings))
			   : fail(EXIT_USAGE, "%s: a name is not UTF-8", path);
}

/* Were words given that differ from the folder's? */
static bool differs(const struct option_names *given, const json_t *names)
{
	if (given->n && given->n != json_array_size(names))
		return true;
	for (unsigned i = 0; i < given->n; i++)
		if (strcmp(given->name[i], json_string_value(json_array_get(names, i))) != 0)
			return true;
	return false;
}

static bool are_names(const json_t *list)
{
	size_t i;
	json_t *name;
	if (!json_is_array(list) || json_array_size(list) > OPTION_NAMES)
		return false;
	json_array_foreach(list, i, name) if (!json_is_string(name)) return false;
	return true;
}

static void take_names(struct option_names *to, const json_t *names)
{
	to->n = 0;
	for (size_t i = 0; i < json_array_size(names); i++)
		to->name[to->n++] = json_string_value(json_array_get(names, i));
}

static const struct tm_store *kept_store(const struct forever_folder *f, const char *name,
					 char why[STORE_OBJECT_WHY])
{
	const json_t *objects = json_object_get(f->settings, "objects");
	const char *object = json_string_value(json_object_get(objects, name));
	const struct tm_store *store = store_find(name);
	snprintf(why, STORE_OBJECT_WHY, "there is no such store in this version");
	return object && !(store && store_path(store)) ? store_load(object, why) : store;
}

/* The stores that there are in this version, on this machine. */
static int take_stores(struct forever_folder *f, struct arguments *a, const json_t *names)
{
	char why[STORE_OBJECT_WHY];
	size_t i, n = json_array_size(names);
	json_t *name;
	a->store.n = 0;
	json_array_foreach(names, i, name) if (kept_store(f, json_string_value(name), why))
		a->store.name[a->store.n++] = json_string_value(name);
	if (n && !a->store.n)
		return fail(EXIT_USAGE, "%s: none of its stores is here: %s", f->path, why);
	json_array_foreach(names, i, name) if (!kept_store(f, json_string_value(name), why)) fail(
		0, "%s/campaign.json: %s is left out: %s", f->path, json_string_value(name), why);
	return 0;
}

static int old_settings(struct forever_folder *f, const char *path, struct arguments *a)
{
	const json_t *s = f->settings, *seed = json_object_get(s, "seed"),
		     *names[] = {json_object_get(s, "stores"), json_object_get(s, "variants"),
				 json_object_get(s, "knobs")};
	if (json_integer_value(json_object_get(s, "format")) != FORMAT)
		return fail(EXIT_USAGE, "%s: expected \"format\": %d", path, FORMAT);
	if (!json_is_integer(seed) || json_integer_value(seed) < 0 ||
	    json_integer_value(seed) > UINT32_MAX || !json_is_integer(json_object_get(s, "began")))
		return fail(EXIT_USAGE, "%s: expected the numbers \"seed\" and \"began\"", path);
	for (unsigned i = 0; i < 3; i++)
		if (!are_names(names[i]))
			return fail(EXIT_USAGE,
				    "%s: expected lists of names: \"stores\", \"variants\" and "
				    "\"knobs\"",
				    path);
	uint64_t seed_was = (uint64_t)json_integer_value(seed);
	if (differs(&a->store, names[0]) || differs(&a->variant, names[1]) ||
	    differs(&a->knob, names[2]) ||
	    (a->options.seed != campaign_default.seed && a->options.seed != seed_was))
		return fail(EXIT_USAGE,
			    "%s: another campaign than the command line's; expected the same "
			    "stores, variants, knobs and seed, or none of them",
			    path);
	a->options.seed = seed_was;
	take_names(&a->variant, names[1]);
	take_names(&a->knob, names[2]);
	return take_stores(f, a, names[0]);
}

int forever_settle(struct forever_folder *f, struct arguments *a)
{
	json_error_t wrong;
	char *path;
	int status = path_in(&path, f->path, "campaign.json");
	if (status)
		return status;
	if (access(path, F_OK)) {
		status = new_settings(f, path, a);
	} else {
		f->settings = json_load_file(path, 0, &wrong);
		status = f->settings ? old_settings(f, path, a)
				     : fail(EXIT_USAGE, "%s:%d: %s", path,
					    wrong.line > 0 ? wrong.line : 1, wrong.text);
	}
	free(path);
	return status;
}

/* --- sums --- */

static bool are_sums(const json_t *sums)
{
	static const char *const names[] = {"session", "seconds",  "runs",
					    "states",  "features", "inputs"};
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		double n = json_number_value(json_object_get(sums, names[i]));
		if (!json_is_number(json_object_get(sums, names[i])) || n < 0 ||
		    n >= FOREVER_SUM_MAX)
			return false;
	}
	return json_number_value(json_object_get(sums, "session")) < FOREVER_SESSIONS_MAX &&
	       json_is_object(json_object_get(sums, "stores"));
}

static int read_sums(struct forever_folder *f)
{
	if (access(f->sums_path, F_OK))
		return 0;
	f->sums = json_load_file(f->sums_path, 0, NULL);
	if (are_sums(f->sums))
		return 0;
	json_decref(f->sums);
	f->sums = NULL;
	return forever_set_aside(f, f->sums_path, "not the sums of a campaign");
}

int forever_keep_sums(struct forever_folder *f, json_t *sums)
{
	if (!sums)
		return no_memory();
	json_decref(f->sums);
	f->sums = sums;
	return saved(f->sums_path, save_file(f->sums_path, write_json, sums));
}

/* --- corpus --- */

static int check_input(void *arg, const char *path)
{
	struct stat st;
	const char *why;
	if (stat(path, &st))
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode))
		why = "not a file";
	else if (!st.st_size)
		why = "empty";
	else if (st.st_size > FUZZ_INPUT_MAX)
		why = "too long for an input";
	else if (access(path, R_OK))
		why = strerror(errno);
	else
		return 0;
	return forever_set_aside(arg, path, why);
}

int forever_tidy_corpus(struct forever_folder *f, const char *store)
{
	char *dir;
	int status = path_in(&dir, f->corpus, store);
	if (!status)
		status = check_folder("--forever", dir, true);
	if (!status)
		status = sweep(dir);
	if (!status)
		status = each_file(dir, is_plain_file, check_input, f);
	free(dir);
	return status;
}

unsigned forever_count_inputs(const char *dir)
{
	unsigned n = 0;
	DIR *all = dir ? opendir(dir) : NULL;
	for (const struct dirent *e; all && (e = readdir(all));)
		n += is_plain_file(e);
	if (all)
		closedir(all);
	return n;
}

/* --- failures --- */

struct kept_trace {
	char *path;
	unsigned size; /* operations and deviations */
};

struct kept_traces {
	struct forever_folder *f;
	struct kept_trace *trace;
	unsigned n;
};

static int list_trace(void *arg, const char *path)
{
	struct input_error where = {0};
	struct kept_traces *all = arg;
	struct trace t;
	char why[300];
	int error = trace_read(path, &t, store_find, &where);
	if (error == -ENOMEM)
		return no_memory();
	if (error) {
		snprintf(why, sizeof(why), "line %u: %s", where.line,
			 where.message[0] ? where.message : strerror(-error));
		return forever_set_aside(all->f, path, why);
	}
	struct kept_trace *more = realloc(all->trace, (all->n + 1) * sizeof(*more));
	char *copy = strdup(path);
	if (more)
		all->trace = more;
	if (more && copy)
		all->trace[all->n++] = (struct kept_trace){copy, workload_ops(&t.setup.w) +
									 t.deviations.n};
	trace_free(&t);
	return more && copy ? 0 : no_memory();
}

static int by_size(const void *a, const void *b)
{
	const struct kept_trace *x = a, *y = b;
	return x->size != y->size ? (x->size < y->size ? -1 : 1) : strcmp(x->path, y->path);
}

static int learn_trace(struct forever_folder *f, struct fuzz_session *s, const char *path)
{
	struct input_error where = {0};
	struct trace t;
	char why[FUZZ_TEXT];
	int error = trace_read(path, &t, store_find, &where);
	if (error)
		return fail(EXIT_USAGE, "%s: %s", path, where.message);
	int differs_now = regress(&t, why, sizeof(why));
	if (!differs_now && t.contract < 0) {
		snprintf(why, sizeof(why), "it breaks nothing");
		differs_now = 1;
	}
	int known = differs_now ? 0 : fuzz_session_learn(s, &t, path, false, true);
	trace_free(&t);
	if (differs_now < 0 || known < 0)
		return fail(EXIT_INTERNAL, "%s: %s", path,
			    driver_error(differs_now < 0 ? differs_now : known));
	if (known)
		snprintf(why, sizeof(why), "another trace has its cause");
	return differs_now || known ? forever_set_aside(f, path, why) : 0;
}

int forever_learn(struct forever_folder *f, struct fuzz_session *s)
{
	struct kept_traces all = {.f = f};
	int status = sweep(f->failures);
	if (!status)
		status = each_file(f->failures, is_plain_file, list_trace, &all);
	if (all.n)
		qsort(all.trace, all.n, sizeof(*all.trace), by_size);
	for (unsigned i = 0; i < all.n; i++) {
		if (!status)
			status = learn_trace(f, s, all.trace[i].path);
		free(all.trace[i].path);
	}
	free(all.trace);
	return status;
}

/* --- all of it --- */

int forever_open(struct forever_folder *f, const char *path)
{
	*f = (struct forever_folder){.path = path, .lock = -1};
	int status = check_folder("--forever", path, true);
	if (!status)
		status = lock(f);
	if (!status)
		status = path_in(&f->corpus, path, "corpus");
	if (!status)
		status = path_in(&f->failures, path, "failures");
	if (!status)
		status = path_in(&f->aside, path, "set-aside");
	if (!status)
		status = path_in(&f->sums_path, path, "sums.json");
	if (!status)
		status = check_folder("--forever", f->corpus, true);
	if (!status)
		status = check_folder("--forever", f->failures, true);
	if (!status)
		status = sweep(path);
	return status ? status : read_sums(f);
}

void forever_close(struct forever_folder *f)
{
	if (f->lock >= 0)
		close(f->lock);
	free(f->corpus);
	free(f->failures);
	free(f->aside);
	free(f->sums_path);
	json_decref(f->settings);
	json_decref(f->sums);
}
