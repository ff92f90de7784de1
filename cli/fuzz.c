/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark fuzz: rerun the traces that are known, then fuzz each store; shrink what
 * breaks unexpectedly, and write a trace of each case whose fingerprint is new.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "checker/explore/clock.h"
#include "checker/trace/fingerprint.h"
#include "checker/judge/expect.h"
#include "checker/hunt/fuzz.h"
#include "checker/judge/names.h"
#include "checker/trace/regress.h"
#include "checker/trace/trace.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "report/junit.h"
#include "report/output.h"
#include "report/report.h"

#define DEFAULT_SECONDS 60
#define DEFAULT_REGRESS "tests/traces"
#define CASES		16 /* shrunk at most, of one contract */

/* A case of a known fingerprint. */
struct known {
	struct fingerprint fingerprint;
	char *trace; /* file */
	char text[300];
	unsigned operations, deviations;
	bool regress; /* among the traces that are rerun: accepted */
	bool is_new;  /* of this session */
	unsigned again;
};

/* A trace that was rerun. */
struct rerun {
	char *trace;
	char why[400]; /* "": as recorded */
	int contract;
};

struct session {
	const struct arguments *a;
	struct known *known;
	unsigned knowns, known_room;
	struct rerun *rerun;
	unsigned reruns, rerun_room, rerun_failures;
	struct junit junit;
	json_t *stores;
	double seconds; /* of each store; 0: runs are counted */
	bool stopped;
};

/* One store's turn. */
struct turn {
	struct session *session;
	const struct campaign_config *config;
	struct fuzz fuzz;
	unsigned first;			/* of session->known that it can find */
	unsigned saved;			/* inputs of the corpus that are on disk */
	char *corpus;			/* folder, or NULL */
	unsigned cases[TM_CONTRACTS];	/* shrunk */
	unsigned skipped[TM_CONTRACTS]; /* cases that nobody looked at: there were enough */
	unsigned fresh;			/* new failures */
	unsigned unaccepted; /* TM_BIT()s: unexpected, and not by a fingerprint that is rerun */
	double start;
};

static struct fuzz *volatile running;

static void interrupted(int sig)
{
	(void)sig;
	if (running)
		fuzz_stop(running);
}

static int no_memory(void)
{
	return fail(EXIT_INTERNAL, "out of memory");
}

/* Room for one more behind n elements. */
static bool grow(void *array, unsigned n, unsigned *room, size_t size)
{
	void **list = array;
	if (n < *room)
		return true;
	unsigned more = *room ? 2 * *room : 16;
	void *grown = realloc(*list, more * size);
	if (!grown)
		return false;
	*list = grown;
	*room = more;
	return true;
}

/* --- folders --- */

static int is_plain(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int is_trace(const struct dirent *e)
{
	size_t n = strlen(e->d_name);
	return e->d_name[0] != '.' && n > 6 && !strcmp(e->d_name + n - 6, ".trace");
}

/* `each` with every file of the folder, in the order of their names. 0, or what `each` said
 * first. */
static int each_file(const char *dir, int (*filter)(const struct dirent *),
		     int (*each)(void *arg, const char *path), void *arg)
{
	struct dirent **list;
	int n = scandir(dir, &list, filter, alphasort), status = 0;
	if (n < 0)
		return fail(EXIT_USAGE, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		char *path;
		if (!status && asprintf(&path, "%s/%s", dir, list[i]->d_name) < 0) {
			status = no_memory();
		} else if (!status) {
			status = each(arg, path);
			free(path);
		}
		free(list[i]);
	}
	free(list);
	return status;
}

/* --- traces that are known --- */

static struct known *add_known(struct session *s, const char *path,
			       const struct fingerprint *fingerprint, const char *text)
{
	if (!grow(&s->known, s->knowns, &s->known_room, sizeof(*s->known)))
		return NULL;
	struct known *k = &s->known[s->knowns];
	*k = (struct known){.fingerprint = *fingerprint, .trace = strdup(path)};
	snprintf(k->text, sizeof(k->text), "%s", text);
	if (!k->trace)
		return NULL;
	s->knowns++;
	return k;
}

static struct known *find_known(struct session *s, const struct fingerprint *fingerprint)
{
	for (unsigned i = 0; i < s->knowns; i++)
		if (fingerprint_contains(fingerprint, &s->known[i].fingerprint))
			return &s->known[i];
	return NULL;
}

static int learn_fingerprint(struct session *s, struct trace *t, const char *path, bool accepted)
{
	struct fingerprint fingerprint;
	if (t->contract < 0)
		return 0;
	int error = fingerprint_find(&t->setup, &t->deviations, (unsigned)t->contract,
				     &fingerprint);
	struct known *k = error == -ENOMEM ? NULL : add_known(s, path, &fingerprint, t->verdict);
	if (!k)
		return no_memory();
	k->regress = accepted;
	return 0;
}

static int rerun_trace(void *arg, const char *path)
{
	struct session *s = arg;
	struct trace t;
	int status = read_trace(path, &t);
	if (status)
		return status;
	if (!grow(&s->rerun, s->reruns, &s->rerun_room, sizeof(*s->rerun))) {
		trace_free(&t);
		return no_memory();
	}
	struct rerun *r = &s->rerun[s->reruns++];
	*r = (struct rerun){.trace = strdup(path), .contract = t.contract};
	int differs = r->trace ? regress(&t, r->why, sizeof(r->why)) : -ENOMEM;
	if (differs < 0)
		status = no_memory();
	else if (differs)
		s->rerun_failures++;
	else
		r->why[0] = '\0';
	if (!status && !differs)
		status = learn_fingerprint(s, &t, path, true);
	trace_free(&t);
	return status;
}

/* A trace of an earlier session. One that cannot be read is not ours, and nobody's fault. */
static int learn_trace(void *arg, const char *path)
{
	struct session *s = arg;
	struct trace t;
	struct stat a, b;
	for (unsigned i = 0; i < s->reruns; i++)
		if (!stat(path, &a) && !stat(s->rerun[i].trace, &b) && a.st_ino == b.st_ino &&
		    a.st_dev == b.st_dev)
			return 0;
	if (read_trace(path, &t))
		return 0;
	int status = learn_fingerprint(s, &t, path, false);
	trace_free(&t);
	return status;
}

static int rerun_all(struct session *s)
{
	const char *dir = s->a->regress ? s->a->regress : DEFAULT_REGRESS;
	struct stat st;
	int status = 0;
	if (s->a->regress || (!stat(dir, &st) && S_ISDIR(st.st_mode)))
		status = each_file(dir, is_trace, rerun_trace, s);
	if (!status && !s->a->no_traces)
		status = each_file(s->a->out, is_trace, learn_trace, s);
	if (status || !s->reruns)
		return status;
	printf("%u trace%s of %s run again: ", s->reruns, s->reruns == 1 ? "" : "s", dir);
	if (s->rerun_failures)
		printf("%u not as recorded\n", s->rerun_failures);
	else
		puts("all as recorded");
	for (unsigned i = 0; i < s->reruns; i++) {
		if (!s->rerun[i].why[0])
			continue;
		printf("  %s: ", s->rerun[i].trace);
		print_wrapped(4, s->rerun[i].why);
		fputs("    ", stdout);
		print_replay(s->rerun[i].trace);
		putchar('\n');
	}
	return 0;
}

/* --- the corpus on disk --- */

static int load_input(void *arg, const char *path)
{
	struct turn *t = arg;
	uint8_t bytes[FUZZ_INPUT_MAX + 1];
	struct stat st;
	const char *why = NULL;
	FILE *in = NULL;
	size_t n = 0;
	if (stat(path, &st))
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode))
		why = "not a file";
	else if (!(in = fopen(path, "re")))
		why = strerror(errno);
	if (in) {
		n = fread(bytes, 1, sizeof(bytes), in);
		if (ferror(in))
			why = strerror(errno);
		else if (!n)
			why = "empty";
		else if (n > FUZZ_INPUT_MAX)
			why = "too long for an input";
		fclose(in);
	}
	if (why)
		fail(0, "%s: %s; left out of the corpus", path, why);
	else if (fuzz_seed(&t->fuzz, bytes, n))
		return no_memory();
	return 0;
}

static int write_input(FILE *out, const void *arg)
{
	const struct fuzz_input *input = arg;
	return fwrite(input->bytes, 1, input->n, out) == input->n ? 0 : -EIO;
}

/* 0, or the status behind a message. */
static int save_corpus(struct turn *t)
{
	for (; t->corpus && t->saved < t->fuzz.inputs; t->saved++) {
		const struct fuzz_input *input = &t->fuzz.corpus[t->saved];
		char *path;
		if (asprintf(&path, "%s/%016" PRIx64, t->corpus,
			     (uint64_t)XXH3_64bits(input->bytes, input->n)) < 0)
			return no_memory();
		int error = access(path, F_OK) ? save_file(path, write_input, input) : 0;
		int status = error ? fail(EXIT_USAGE, "%s: %s", path, strerror(-error)) : 0;
		free(path);
		if (status)
			return status;
	}
	return 0;
}

static int open_corpus(struct turn *t)
{
	const char *dir = t->session->a->corpus;
	bool made;
	if (!dir)
		return 0;
	if (asprintf(&t->corpus, "%s/%s", dir, t->config->store->name) < 0) {
		t->corpus = NULL;
		return no_memory();
	}
	int status = check_folder("--corpus", t->corpus, &made);
	return status ? status : each_file(t->corpus, is_plain, load_input, t);
}

/* --- cases --- */

static struct fingerprint raw_fingerprint(struct turn *t, const struct fuzz_break *b, int *error)
{
	struct deviations path = {0};
	struct fingerprint fingerprint = {0};
	struct setup setup;
	char text[300];
	*error = fuzz_again(&t->fuzz, b, &setup, &path, text, sizeof(text));
	if (!*error)
		*error = fingerprint_find(&setup, &path, b->contract, &fingerprint);
	deviations_free(&path);
	setup_free(&setup);
	return fingerprint;
}

static int save_case(struct turn *t, struct known *k, const struct setup *setup,
		     const struct deviations *path)
{
	const struct session *s = t->session;
	char tail[24];
	uint64_t hash = XXH3_64bits_withSeed(k->fingerprint.part,
					     k->fingerprint.parts * sizeof(k->fingerprint.part[0]),
					     k->fingerprint.cleans);
	k->is_new = true;
	k->operations = workload_ops(&setup->w);
	k->deviations = path->n;
	free(k->trace);
	k->trace = NULL;
	if (s->a->no_traces)
		return 0;
	snprintf(tail, sizeof(tail), "-%08x", (unsigned)(hash >> 32));
	if (trace_path(t->config, k->fingerprint.contract, s->a->out, tail, &k->trace))
		return no_memory();
	int error = save_trace(k->trace, setup, path, (int)k->fingerprint.contract, k->text);
	return error ? fail(EXIT_USAGE, "%s: %s", k->trace, strerror(-error)) : 0;
}

static void met_again(struct turn *t, struct known *k)
{
	k->again++;
	if (!k->regress)
		t->unaccepted |= TM_BIT(k->fingerprint.contract);
}

/* 0, or the status behind a message. */
static int look_at(struct turn *t, const struct fuzz_break *b)
{
	struct session *s = t->session;
	struct deviations path = {0};
	struct setup setup;
	char text[300];
	int error, status = 0;
	struct fingerprint fingerprint = raw_fingerprint(t, b, &error);
	struct known *k = error ? NULL : find_known(s, &fingerprint);
	if (k) {
		met_again(t, k);
		return 0;
	}
	if (t->cases[b->contract] == CASES || (t->cases[b->contract] && !fuzz_more(&t->fuzz))) {
		t->skipped[b->contract]++;
		return 0;
	}
	t->cases[b->contract]++;
	if (!s->a->quiet)
		progress_line("%s: shrinking a case that breaks %s", t->config->store->name,
			      contract_name(b->contract));
	error = fuzz_shrink(&t->fuzz, b, &setup, &path, text, sizeof(text));
	if (!error)
		error = fingerprint_find(&setup, &path, b->contract, &fingerprint);
	k = error ? NULL : find_known(s, &fingerprint);
	if (error == -ENOENT) {
		status = fail(EXIT_INTERNAL,
			      "%s: a run that broke %s does not break it a second time",
			      t->config->store->name, contract_name(b->contract));
	} else if (error) {
		status = fail(EXIT_INTERNAL, "%s", strerror(-error));
	} else if (k) {
		met_again(t, k);
	} else {
		k = add_known(s, "", &fingerprint, text);
		status = k ? save_case(t, k, &setup, &path) : no_memory();
		t->unaccepted |= TM_BIT(b->contract);
		t->fresh++;
	}
	deviations_free(&path);
	setup_free(&setup);
	return status;
}

/* Contract by contract, smaller cases first: those of later ones are then known. */
static int by_size(const void *a, const void *b)
{
	const struct fuzz_break *x = a, *y = b;
	if (x->contract != y->contract)
		return x->contract < y->contract ? -1 : 1;
	if (x->input.n != y->input.n)
		return x->input.n < y->input.n ? -1 : 1;
	return memcmp(x->input.bytes, y->input.bytes, x->input.n);
}

static int look_at_all(struct turn *t)
{
	int status = 0;
	if (t->fuzz.founds)
		qsort(t->fuzz.found, t->fuzz.founds, sizeof(*t->fuzz.found), by_size);
	for (unsigned i = 0; i < t->fuzz.founds && !status; i++)
		status = look_at(t, &t->fuzz.found[i]);
	return status;
}

/* --- one store --- */

static void progress(const struct turn *t)
{
	const struct fuzz *f = &t->fuzz;
	double spent = clock_seconds() - t->start, all = t->session->seconds;
	char left[48] = "";
	if (all > 0)
		snprintf(left, sizeof(left), "%.0f s left", all > spent ? all - spent : 0);
	else
		snprintf(left, sizeof(left), "%" PRIu64 " runs left",
			 f->options.runs - f->counts.runs);
	progress_line("%s: %" PRIu64 " runs, %" PRIu64 " states, %u inputs, %" PRIu64
		      " features, %u new failures, %s",
		      t->config->store->name, f->counts.runs, f->counts.states, f->inputs,
		      f->features, t->fresh, left);
}

static int run_rounds(struct turn *t)
{
	int status = 0;
	while (!status && fuzz_more(&t->fuzz)) {
		if (!t->session->a->quiet)
			progress(t);
		int error = fuzz_round(&t->fuzz);
		if (error == -EIO)
			status = fail(EXIT_USAGE, "%s cannot run: %s", t->config->store->name,
				      t->fuzz.why);
		else if (error)
			status = fail(EXIT_INTERNAL, error == -ECHILD
							     ? "a worker process died before its "
							       "work was done (killed, or no "
							       "memory left?)"
							     : "out of memory");
		if (!status)
			status = look_at_all(t);
		if (!status)
			status = save_corpus(t);
	}
	progress_line(NULL);
	return status;
}

/* --- what is said of it --- */

/* "a; b; c" */
static void join_parts(const struct fingerprint *c, char *buf, size_t n)
{
	snprintf(buf, n, "%s", c->cleans ? "a log is cleaned" : "");
	for (unsigned i = 0; i < c->parts; i++) {
		size_t len = strlen(buf);
		snprintf(buf + len, n - len, "%s%s", len ? "; " : "", c->part[i]);
	}
}

static void print_known(const struct known *k)
{
	char parts[FINGERPRINT_PARTS * FINGERPRINT_PART];
	printf("  %-5s  %s: ", k->is_new ? "new" : "known", contract_name(k->fingerprint.contract));
	print_wrapped(9, k->text);
	join_parts(&k->fingerprint, parts, sizeof(parts));
	if (parts[0]) {
		printf("%9s", "");
		print_wrapped(9, parts);
	}
	if (!k->trace)
		return;
	printf("%9s", "");
	print_replay(k->trace);
	if (k->is_new)
		printf("   (%u operation%s, %u deviation%s)", k->operations,
		       k->operations == 1 ? "" : "s", k->deviations, k->deviations == 1 ? "" : "s");
	putchar('\n');
}

static unsigned count_again(const struct turn *t)
{
	unsigned n = 0;
	for (unsigned i = 0; i < t->session->knowns; i++)
		n += t->session->known[i].again && !t->session->known[i].is_new;
	return n;
}

static void print_turn(const struct turn *t)
{
	const struct session *s = t->session;
	const struct fuzz *f = &t->fuzz;
	double seconds = clock_seconds() - t->start;
	unsigned expected = 0, again = count_again(t);
	char name[2 * CAMPAIGN_NAME];
	config_name(t->config, name, sizeof(name));
	printf("\n%s\n", name);
	for (unsigned i = 0; i < s->knowns; i++)
		if (i >= t->first || s->known[i].again)
			print_known(&s->known[i]);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (t->skipped[c])
			printf("  %u more cases that break %s were not looked at\n", t->skipped[c],
			       contract_name(c));
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (f->broken[c] && !(f->options.wanted & TM_BIT(c)))
			printf("%s%s",
			       expected++ ? ", " : "  broken, not promised or as expected: ",
			       contract_name(c));
	if (expected)
		putchar('\n');
	printf("  %" PRIu64 " runs, %" PRIu64 " states; corpus: %u inputs, %" PRIu64 " features\n",
	       f->counts.runs, f->counts.states, f->inputs, f->features);
	printf("  %u new failure%s, %u known one%s; %.1f s\n", t->fresh, t->fresh == 1 ? "" : "s",
	       again, again == 1 ? "" : "s", seconds);
}

/* A name; JSON has no other bytes than UTF-8. */
static json_t *name_json(const char *name)
{
	json_t *text = json_string(name);
	return text ? text : json_string("(a name that is not UTF-8)");
}

static json_t *known_json(const struct known *k)
{
	char parts[FINGERPRINT_PARTS * FINGERPRINT_PART];
	join_parts(&k->fingerprint, parts, sizeof(parts));
	return json_pack("{s:s, s:b, s:b, s:s, s:s, s:o}", "contract",
			 contract_name(k->fingerprint.contract), "new", k->is_new, "accepted",
			 k->regress, "how", k->text, "fingerprint", parts, "trace",
			 name_json(k->trace ? k->trace : ""));
}

static int turn_json(const struct turn *t)
{
	const struct session *s = t->session;
	const struct fuzz *f = &t->fuzz;
	json_t *failures = json_array();
	bool bad = !failures;
	for (unsigned i = 0; i < s->knowns && !bad; i++)
		if (i >= t->first || s->known[i].again)
			bad = json_array_append_new(failures, known_json(&s->known[i]));
	json_t *all = json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:I, s:f, s:o}", "store",
				t->config->store->name, "variant", t->config->variant, "config",
				t->config->name, "runs", (json_int_t)f->counts.runs, "states",
				(json_int_t)f->counts.states, "corpus", (int)f->inputs, "features",
				(json_int_t)f->features, "seconds", clock_seconds() - t->start,
				"failures", failures);
	return bad || !all || json_array_append_new(s->stores, all) ? -ENOMEM : 0;
}

static void turn_junit(const struct turn *t)
{
	struct session *s = t->session;
	char suite[2 * CAMPAIGN_NAME];
	config_name(t->config, suite, sizeof(suite));
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		const struct known *k = NULL;
		for (unsigned i = 0; i < s->knowns && !k; i++)
			if (s->known[i].fingerprint.contract == c && !s->known[i].regress &&
			    (i >= t->first || s->known[i].again))
				k = &s->known[i];
		if (!(t->unaccepted & TM_BIT(c)) || !k)
			junit_add(&s->junit, suite, contract_name(c), NULL);
		else
			junit_add(&s->junit, suite, contract_name(c), "%s\n%s replay %s", k->text,
				  program, k->trace ? k->trace : "(no trace was asked for)");
	}
}

static int fuzz_store(struct session *s, const struct campaign_config *cfg, bool *unaccepted)
{
	struct turn t = {.session = s, .config = cfg, .first = s->knowns, .start = clock_seconds()};
	struct fuzz_options o = {.seed = s->a->options.seed,
				 .runs = s->a->runs_given ? s->a->options.runs : UINT64_MAX,
				 .jobs = s->a->options.jobs,
				 .wanted = expect_watched(cfg->store, cfg->name)};
	o.deadline = s->seconds > 0 ? t.start + s->seconds : 0;
	for (unsigned i = 0; i < s->knowns; i++)
		s->known[i].again = 0;
	if (fuzz_open(&t.fuzz, &cfg->setup, &o))
		return no_memory();
	int status = open_corpus(&t);
	if (!status) {
		running = &t.fuzz;
		signals_catch(interrupted);
		status = run_rounds(&t);
		s->stopped = fuzz_stopped(&t.fuzz);
		running = NULL;
		signals_catch(NULL);
		print_turn(&t);
		turn_junit(&t);
		if (turn_json(&t) && !status)
			status = no_memory();
	}
	*unaccepted |= t.unaccepted != 0;
	free(t.corpus);
	fuzz_close(&t.fuzz);
	return status;
}

/* --- the whole --- */

static int save_json(struct session *s)
{
	json_t *traces = json_array();
	bool bad = !traces;
	for (unsigned i = 0; i < s->reruns && !bad; i++) {
		const struct rerun *r = &s->rerun[i];
		bad = json_array_append_new(
			traces,
			json_pack("{s:o, s:s, s:b, s:s}", "trace", name_json(r->trace), "contract",
				  r->contract < 0 ? "none" : contract_name((unsigned)r->contract),
				  "as_recorded", !r->why[0], "how", r->why));
	}
	json_t *all = json_pack("{s:O, s:o, s:I, s:b}", "stores", s->stores, "regressions", traces,
				"seed", (json_int_t)s->a->options.seed, "interrupted", s->stopped);
	int error = bad || !all ? -ENOMEM : json_save(all, s->a->json);
	json_decref(all);
	return error ? fail(EXIT_USAGE, "%s: %s", s->a->json, strerror(-error)) : 0;
}

static int save_results(struct session *s)
{
	int status = s->a->json ? save_json(s) : 0;
	for (unsigned i = 0; i < s->reruns; i++) {
		const struct rerun *r = &s->rerun[i];
		junit_add(&s->junit, "regressions", r->trace, r->why[0] ? "%s\n%s replay %s" : NULL,
			  r->why, program, r->trace);
	}
	int error = s->a->junit ? junit_save(&s->junit, s->a->junit) : 0;
	return error ? fail(EXIT_USAGE, "%s: %s", s->a->junit, strerror(-error)) : status;
}

static int run(const struct arguments *a, const struct campaign *c)
{
	struct session s = {.a = a, .stores = json_array()};
	bool unaccepted = false;
	s.seconds = a->seconds > 0 ? a->seconds : a->runs_given ? 0 : DEFAULT_SECONDS;
	int status = s.stores ? rerun_all(&s) : no_memory();
	for (unsigned i = 0; i < c->configs && !status && !s.stopped; i++)
		status = fuzz_store(&s, &c->config[i], &unaccepted);
	if (!status)
		status = save_results(&s);
	for (unsigned i = 0; i < s.knowns; i++)
		free(s.known[i].trace);
	for (unsigned i = 0; i < s.reruns; i++)
		free(s.rerun[i].trace);
	free(s.known);
	free(s.rerun);
	junit_free(&s.junit);
	json_decref(s.stores);
	return status ? status : unaccepted || s.rerun_failures ? EXIT_BROKEN : EXIT_HELD;
}

static void help(void)
{
	puts("usage: tidemark fuzz [STORE...] [OPTION...]\n"
	     "Runs the traces that are known again, then drives stores with inputs that it changes "
	     "for\n"
	     "as long as new states turn up. Without a STORE: all.\n\n"
	     "what is tested\n"
	     "  --variant NAME     a variant or a seeded bug (tidemark list); may be repeated\n"
	     "  --knob NAME=VALUE  a switch of the store or the hardware (tidemark list knobs); "
	     "may\n"
	     "                     be repeated\n"
	     "  --regress DIR      the traces that are run again (tests/traces, if there is "
	     "one)\n\n"
	     "how much\n"
	     "  --time TIME        for each store: 90s, 2m, 1h (60s)\n"
	     "  --runs N           runs for each store; without --time the same seed gives the "
	     "same\n"
	     "                     results, on whatever machine\n"
	     "  --seed N           of the changes (1)\n"
	     "  --jobs N           processes (one for each core); results do not depend on it\n\n"
	     "what is written\n"
	     "  --corpus DIR       inputs are read from DIR/STORE, and new ones written there\n"
	     "  --out DIR          where traces go (traces); it is made if it does not exist\n"
	     "  --no-traces        write none\n"
	     "  --json FILE        the results for machines\n"
	     "  --junit FILE       the results as JUnit XML\n"
	     "  -q, --quiet        no progress\n"
	     "  --help             this text\n\n"
	     "exit status: 0 nothing breaks unexpectedly, 1 something does, or a trace gives "
	     "another\n"
	     "verdict than it records, 2 usage or bad input, 70 internal error");
}

static const struct option options[] = {
	{"variant", required_argument, NULL, OPT_VARIANT},
	{"knob", required_argument, NULL, OPT_KNOB},
	{"regress", required_argument, NULL, OPT_REGRESS},
	{"time", required_argument, NULL, OPT_TIME},
	{"runs", required_argument, NULL, OPT_RUNS},
	{"seed", required_argument, NULL, OPT_SEED},
	{"jobs", required_argument, NULL, OPT_JOBS},
	{"corpus", required_argument, NULL, OPT_CORPUS},
	{"out", required_argument, NULL, OPT_OUT},
	{"no-traces", no_argument, NULL, OPT_NO_TRACES},
	{"json", required_argument, NULL, OPT_JSON},
	{"junit", required_argument, NULL, OPT_JUNIT},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static const struct command command = {"fuzz", options, help};

static int check_outputs(const struct arguments *a, bool *made)
{
	bool made_corpus;
	int status = a->json ? check_output("--json", a->json) : 0;
	if (!status && a->junit)
		status = check_output("--junit", a->junit);
	if (!status && a->corpus)
		status = check_folder("--corpus", a->corpus, &made_corpus);
	if (!status && !a->no_traces)
		status = check_folder("--out", a->out, made);
	return status;
}

int fuzz_main(int argc, char **argv)
{
	struct arguments a = {.out = "traces", .options = campaign_default, .one_config = true};
	struct campaign c = {0};
	const char *mistake;
	bool made = false;
	a.options.jobs = arguments_jobs();
	int status = arguments_parse(&a, &command, argc, argv);
	if (status >= 0)
		return status;
	unsigned line = expect_mistake(&mistake);
	if (line)
		return fail(EXIT_INTERNAL, "scenarios/expected.txt:%u: %s", line, mistake);
	c.config = calloc(MAX_CONFIGS, sizeof(*c.config));
	status = c.config ? arguments_configs(&a, &c) : no_memory();
	if (!status)
		status = check_outputs(&a, &made);
	if (!status)
		status = run(&a, &c);
	if (made)
		rmdir(a.out); /* unless there is a trace in it */
	free(c.config);
	return status;
}
