/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzing: any bytes are an input, and the same bytes the same run; the loop finds
 * seeded bugs within a number of runs, and nothing in stores without one; results do
 * not depend on the number of processes; and one bug has one fingerprint, whichever way it
 * was found.
 */
#include "checker/trace/fingerprint.h"
#include "checker/judge/expect.h"
#include "checker/hunt/features.h"
#include "checker/hunt/fuzz.h"
#include "checker/judge/names.h"
#include "checker/trace/replay.h"
#include "checker/trace/trace.h"
#include "faultinject/life.h"
#include "scenarios/stores.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"
#include "faultinject/random_source.h"

/* --- inputs --- */

/* One run of an input whose bytes decide the power failures, too. */
struct outcome {
	bool unproven; /* the next power failure was to cut recovery, but did not come: life is not
proved */
	struct deviations taken;
	struct replay_outcome replay;
};

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	if (machine)
		bytes_boots(arg, machine, ex->worlds.world[machine].pm);
}

static void run_bytes(struct explorer *ex, const struct fuzz_input *input, struct outcome *out)
{
	struct byte_source b = {0};
	struct replay_part part[WORLDS];
	struct replay_audience audience = {.machine_starts = machine_starts, .arg = &b};

	memset(out, 0, sizeof(*out));
	fuzz_start(&b, input, true);
	for (unsigned m = 0; m < WORLDS; m++)
		part[m] = (struct replay_part){&b.source, m == 1 && bytes_cut(&b, 1), NULL};
	explore_lower_bound(ex);
	replay_sources(ex, part, &audience, &out->replay);
	out->unproven = part[1].cut && out->replay.failures == 1;
	out->taken = b.taken;
}

static void random_input(uint64_t *random, struct fuzz_input *input)
{
	memset(input, 0, sizeof(*input));
	input->n = random_next(random) % 3 ? (uint8_t)(random_next(random) % (FUZZ_SHORT_MAX + 1))
					   : FUZZ_INPUT_MAX;
	for (unsigned i = 0; i < input->n; i++)
		input->bytes[i] = (uint8_t)random_next(random);
	/* Long gaps are never reached. */
	for (unsigned i = WORKLOAD_BYTES; i + 2 < input->n && i < FUZZ_SHORT_MAX; i += RECORD_BYTES)
		if (random_next(random) % 2)
			input->bytes[i + 1] %= 8;
}

static void check_workload(const struct workload *w)
{
	ck_assert(w->clients >= 1 && w->clients <= 3);
	ck_assert(w->keys >= 1 && w->keys <= 3);
	ck_assert(workload_ops(w) >= 1 && workload_ops(w) < 2 * WORKLOAD_BYTES);
}

/* The trace of the run: a reader that believes nothing takes it, and it replays to the same
 * hash. */
static void check_trace(const struct setup *s, struct explorer *ex, const struct outcome *o)
{
	static struct replay_outcome again;
	struct input_error where;
	struct trace t;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	ck_assert_int_eq(trace_write(file, s, &o->taken, -1, NULL), 0);
	ck_assert_int_eq(fclose(file), 0);
	file = fmemopen(text, len, "r");
	ck_assert_msg(!trace_read_file(file, &t, store_find, &where), "line %u: %s\n%s", where.line,
		      where.message, text);
	fclose(file);
	ck_assert_int_eq(replay(ex, &t.deviations, false, NULL, &again), 0);
	ck_assert_msg(!again.unused, "line %u does not apply:\n%s",
		      again.unused ? again.unused->line : 0, text);
	ck_assert_msg(again.hash == o->replay.hash || o->unproven, "replays differently:\n%s",
		      text);
	trace_free(&t);
	free(text);
}

TESTS(any_bytes_are_a_run, 2)
{
	static const char *const names[] = {"efactory", "erda"};
	struct explorer *ex = malloc(sizeof(*ex));
	uint64_t random = 7 + (unsigned)_i;
	unsigned failures = 0, deviations = 0, twice = 0;

	for (unsigned i = 0; i < rounds(120); i++) {
		struct fuzz_input input;
		struct outcome first, second;
		struct setup base, s;
		const char *expected;

		make_setup(&base, store_find(names[_i]), "default", "");
		if (i % 3 == 2)
			ck_assert_int_eq(setup_knob(&base, "line_torn", "prefix", &expected), 0);
		if (i % 4 == 3)
			ck_assert_int_eq(setup_knob(&base, "ddio", "off", &expected), 0);
		random_input(&random, &input);
		ck_assert_int_eq(fuzz_setup(&base, &input, &s), 0);
		check_workload(&s.w);
		ck_assert_int_eq(explore_open(ex, &s, &explore_default), 0);
		run_bytes(ex, &input, &first);
		run_bytes(ex, &input, &second);
		ck_assert(first.replay.hash == second.replay.hash);
		check_trace(&s, ex, &first);
		failures += first.replay.failures;
		twice += first.replay.failures > 1;
		deviations += first.taken.n;
		deviations_free(&first.taken);
		deviations_free(&second.taken);
		explore_close(ex);
		setup_free(&s);
	}
	/* The bytes do decide something. */
	ck_assert_msg(failures > rounds(15) && twice > rounds(1) && deviations > rounds(200),
		      "%u failures, %u twice, %u deviations", failures, twice, deviations);
	free(ex);
}

static void workload_words(const uint8_t *bytes, size_t n, const uint8_t *goings, char *text,
			   size_t room)
{
	struct workload w = {0};
	FILE *file = fmemopen(text, room, "w");

	const struct tm_store *store = store_find(n && bytes[0] & 4 ? "erda" : "pilaf");
	ck_assert_int_eq(workload_from_bytes(&w, store, bytes, n, goings), 0);
	workload_print_keys(&w, file);
	for (unsigned c = 1; c <= w.clients; c++) {
		fputs(" | ", file);
		workload_print_client(&w, c, file);
	}
	fclose(file);
	workload_free(&w);
}

TEST(bytes_of_a_workload)
{
	static const struct {
		uint8_t bytes[WORKLOAD_BYTES];
		size_t n;
		const char *words;
	} table[] = {
		{{0}, 0, "k1 160 | put k1 160"},
		{{0, 0, 0}, 3, "k1 160 | put k1 160"},
		{{8}, 1, "k1 - | put k1 160"},
		{{0, 2}, 2, "k1 160 | get k1"},
		{{1, 1, 8 + 2}, 3, "k1 160 | put k1 160 | get k1"},
		/* The third of two clients is the first. */
		{{1, 1, 16 + 3}, 3, "k1 160 | put k1 160, del k1"},
		{{2, 1, 8 + 1, 16 + 3}, 4, "k1 160 | put k1 160 | put k1 160 | del k1"},
		/* One key: the bit of the second says nothing. A store without cleaning reads. */
		{{0, 32 + 1, 7}, 3, "k1 160 | put k1 160, get k1"},
		{{4, 32 + 1, 7}, 3, "k1 160, k2 160 | put k2 160, clean"},
		{{4 + 128 + 16, 32 + 1}, 2, "k1 160, k2 160, k3 - | put k3 160"},
		{{32, 64 + 1, 128 + 4, 192 + 6}, 4, "k1 8 | put k1 8, put k1 40, put k1 1500"},
		{{1, 0, 0, 0, 8 + 1}, 5, "k1 160 |  | put k1 160"},
	};
	char text[256];

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		workload_words(table[i].bytes, table[i].n, NULL, text, sizeof(text));
		ck_assert_str_eq(text, table[i].words);
	}
	/* Clients come and go. Beside what is no operation a byte says nothing. */
	const uint8_t ops[] = {1, 1, 0, 8 + 2, 8 + 1, 3}, going[GOING_BYTES] = {1, 2, 2, 3, 8, 0};
	workload_words(ops, sizeof(ops), going, text, sizeof(text));
	ck_assert_str_eq(text,
			 "k1 160 | leave, put k1 160, del k1 | die, get k1, pause, put k1 160");
}

/* What the records of `put k1 160` and `get k1` by two clients take, word by word. */
static void taken_words(const uint8_t *records, size_t n, const uint8_t *lives, char *text,
			size_t room)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct fuzz_input input = {.n = (uint8_t)(WORKLOAD_BYTES + n), .bytes = {1, 1, 8 + 2}};
	struct setup base, s;
	struct outcome o;
	size_t len = 0;

	memcpy(input.bytes + WORKLOAD_BYTES, records, n);
	if (lives) {
		input.n = FUZZ_INPUT_MAX;
		memcpy(input.bytes + FUZZ_SHORT_MAX + GOING_BYTES, lives, LIFE_BYTES);
	}
	make_setup(&base, store_find("erda"), "default", "");
	ck_assert_int_eq(fuzz_setup(&base, &input, &s), 0);
	ck_assert_int_eq(explore_open(ex, &s, &explore_default), 0);
	run_bytes(ex, &input, &o);
	text[0] = '\0';
	for (unsigned i = 0; i < o.taken.n; i++) {
		struct deviation_names names = {s.region, s.regions};
		char words[DEVIATION_TEXT];
		deviation_print(&o.taken.d[i], &names, words, sizeof(words));
		len += (size_t)snprintf(text + len, room - len, "%s%s", i ? "; " : "", words);
	}
	deviations_free(&o.taken);
	explore_close(ex);
	setup_free(&s);
	free(ex);
}

TEST(bytes_of_deviations)
{
	enum { POST = RECORD_STEP + STEP_POST, C1 = 16, C2 = 32 };
	static const struct {
		uint8_t records[16];
		size_t n;
		const char *words;
	} table[] = {
		{{0}, 0, ""},
		{{RECORD_POST, 0}, 2, ""}, /* not a whole record */
		{{POST | C2, 0, 255}, 3, "c2 c2.get1 before post 1: delay for ever"},
		{{RECORD_POST | C2, 0, 255}, 3, "c2 c2.get1 before post 1: delay for ever"},
		{{POST | C1, 1, 0}, 3, "c1 c1.put1 before post 2: delay 100ns"},
		{{POST | C1, 0, 144}, 3, "c1 c1.put1 before post 1: delay until quiescence"},
		{{POST | C2, 0, 191}, 3, "c2 c2.get1 before post 1: delay and switch"},
		{{RECORD_PACKET | C1, 0, 0}, 3, "c1/qp1 c1.put1 message 1 packet 1 try 1: lose"},
		{{POST | C1, 255, 1}, 3, ""}, /* so many posts there are not */
		/* One point, two records: the first one answers. Each counts for itself. */
		{{POST | C1, 0, 1, POST | C1, 0, 2, POST | C1, 1, 0},
		 9,
		 "c1 c1.put1 before post 1: delay 500ns; c1 c1.put1 before post 2: delay 100ns"},
		/* The next power failure is that of the machine that recovers; it has none here. */
		{{RECORD_CRASH, 0, 0, RECORD_CRASH | C1, 200, 0},
		 6,
		 "server/server c1.put1 power before fence 1: fails"},
	};
	char text[2048];

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		taken_words(table[i].records, table[i].n, NULL, text, sizeof(text));
		ck_assert_msg(!strncmp(text, table[i].words, strlen(table[i].words)) &&
				      (*table[i].words || !*text),
			      "%u: \"%s\" instead of \"%s\"", i, text, table[i].words);
	}
	/* All lines from the first on are as old as can be. */
	taken_words((const uint8_t[]){RECORD_CRASH, 0, 0, RECORD_LINES, 0, 0}, 6, NULL, text,
		    sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "version 0 of "));
}

/* What only the longer form can say; and that the same records say something else without it. */
TEST(bytes_of_the_longer_form)
{
	enum { POST = RECORD_STEP + STEP_POST, C1 = 16, C2 = 32, DIES = RECORD_DIES };
	static const uint8_t nobody[LIFE_BYTES];
	static const uint8_t lives[LIFE_BYTES] = {LIFE_KEYED + LIFE_PUT, 0, LIFE_CLEAN,
						  LIFE_KEYED + LIFE_DEL, 0, 0,
						  LIFE_KEYED + LIFE_GET};
	static const struct {
		uint8_t records[16];
		size_t n;
		const uint8_t *lives;
		const char *words;
	} table[] = {
		{{POST | C2 | DIES, 0, 1}, 3, nobody, "c2 c2.get1 before post 1: process dies"},
		{{POST | C2 | DIES, 0, 2}, 3, nobody, "c2 c2.get1 before post 1: machine dies"},
		{{POST | C2 | DIES, 0, 3}, 3, nobody, "c2 c2.get1 before post 1: delay for ever"},
		{{POST | C2 | DIES, 0, 4}, 3, nobody, "c2 c2.get1 before post 1: server dies"},
		{{POST | C2 | DIES, 0, 1}, 3, NULL, "c2 c2.get1 before post 1: delay 500ns"},
		/* At a step of a server's task the server dies. */
		{{RECORD_STEP + STEP_STORE, 0, 1, 0, 0, 0},
		 6,
		 nobody,
		 "server/server c1.put1 before store 1: delay 500ns"},
		{{DIES + RECORD_STEP + STEP_STORE, 0, 1},
		 3,
		 nobody,
		 "server/server c1.put1 before store 1: server dies"},
		/* Three zeros are a record of the short form only. */
		{{0, 0, 0}, 3, NULL, "server/server c1.put1 before store 1: delay 100ns"},
		{{0, 0, 0}, 3, nobody, ""},
		{{RECORD_CRASH, 0, 0},
		 3,
		 lives,
		 "server/server c1.put1 power before fence 1: fails; "
		 "c3 - life 1: put key 1; c3 - life 2: clean; c4 - life 2: del key 1"},
	};
	char text[2048];

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		taken_words(table[i].records, table[i].n, table[i].lives, text, sizeof(text));
		ck_assert_msg(!strncmp(text, table[i].words, strlen(table[i].words)) &&
				      (*table[i].words || !*text),
			      "%u: \"%s\" instead of \"%s\"", i, text, table[i].words);
	}
}

/* --- features --- */

struct collected {
	uint64_t feature[64];
	unsigned n;
};

static void collect(void *arg, uint64_t feature)
{
	struct collected *c = arg;

	ck_assert_uint_lt(c->n, 64);
	c->feature[c->n++] = feature;
}

/* Client a puts key k, client b reads it; `late`: before that put returns. */
static struct collected features_of(unsigned a, unsigned b, unsigned k, bool late, bool old)
{
	struct collected c = {.n = 0};
	struct features f = {.found = collect, .arg = &c};
	struct history *h = calloc(1, sizeof(*h));

	history_reset(h, 2);
	int load = history_invoke(h, 0, HISTORY_PUT, k);
	history_return(h, load, 0, load);
	int put = history_invoke(h, a, HISTORY_PUT, k);
	if (!late)
		history_return(h, put, 0, put);
	int get = history_invoke(h, b, HISTORY_GET, k);
	history_return(h, get, 0, old ? load : put);
	features_history(&f, h);
	free(h);
	return c;
}

TEST(features_know_no_names)
{
	struct collected one = features_of(1, 2, 0, false, false),
			 other = features_of(3, 1, 1, false, false);
	const struct collected different[] = {
		features_of(1, 2, 0, true, false),
		features_of(1, 2, 0, false, true),
		features_of(1, 1, 0, false, false),
	};

	ck_assert_uint_ge(one.n, 1);
	ck_assert_mem_eq(&one, &other, sizeof(one));
	for (unsigned i = 0; i < 3; i++)
		ck_assert_mem_ne(one.feature, different[i].feature, sizeof(one.feature));
}

/* --- the loop --- */

static void open_fuzz(struct fuzz *f, const struct setup *base, uint64_t seed, uint64_t runs,
		      unsigned jobs, unsigned wanted)
{
	const struct fuzz_options o = {
		.seed = seed, .runs = runs, .how.jobs = jobs, .wanted = wanted};

	ck_assert_int_eq(fuzz_open(f, base, &o), 0);
}

/* One more round. */
static void fuzz_on(struct fuzz *f)
{
	int error = fuzz_round(f);

	ck_assert_msg(!error, "%s: %d %s", f->base->store->name, error, f->why);
}

static const struct bug {
	const char *store, *variant, *knob;
	unsigned contracts; /* of which one breaks */
	unsigned runs;	    /* by then */
} bugs[] = {
	{"efactory", "get_no_flush", NULL, TM_BIT(TM_MONO) | TM_BIT(TM_FSCK), 512},
	{"efactory", "no_pre", NULL, TM_BIT(TM_MONO) | TM_BIT(TM_KEEP), 512},
	{"efactory", "recover_clears", NULL, TM_BIT(TM_MONO) | TM_BIT(TM_KEEP), 512},
	{"efactory", "key_unflushed", NULL, TM_BIT(TM_MONO) | TM_BIT(TM_FSCK), 1024},
	{"efactory", "get_waits", NULL, TM_BIT(TM_LIVE), 4096},
	{"efactory", "get_head_only", "ack_early", TM_BIT(TM_LIN), 2048},
	{"efactory", "short_timeout", "ack_early", TM_BIT(TM_LIN), 512},
	{"erda", "crc_no_value", NULL, TM_BIT(TM_RDA), 512},
	{"erda", "create_unordered", NULL, TM_BIT(TM_FSCK) | TM_BIT(TM_RDA), 1024},
	{"erda", "old_zero", NULL, TM_BIT(TM_RDA), 1024},
	{"erda", "wrong_half", "ack_early", TM_BIT(TM_LIN), 1024},
};
#define BUGS (sizeof(bugs) / sizeof(bugs[0]))

TESTS(a_seeded_bug_is_found, BUGS)
{
	const struct bug *bug = &bugs[_i];
	struct fuzz f;
	struct setup base;
	const char *expected;

	if (!in_share(_i))
		return;
	make_setup(&base, store_find(bug->store), bug->variant, "");
	if (bug->knob)
		ck_assert_int_eq(setup_knob(&base, bug->knob, "off", &expected), 0);
	open_fuzz(&f, &base, 1, bug->runs, 2, bug->contracts);
	while (fuzz_more(&f) && !f.founds)
		fuzz_on(&f);
	ck_assert_msg(f.founds, "%s %s: nothing found in %lu runs", bug->store, bug->variant,
		      (unsigned long)f.counts.runs);
	ck_assert(bug->contracts & TM_BIT(f.found[0].contract));
	fuzz_close(&f);
}

TESTS(without_a_bug_nothing_is_found, 3)
{
	static const char *const names[][2] = {
		{"efactory", "default"}, {"erda", "default"}, {"efactory", "ack_early=off"}};
	const char *name = names[_i][0], *config = names[_i][1], *expected;
	struct fuzz f;
	struct setup base;

	if (!in_share(_i))
		return;
	make_setup(&base, store_find(name), "default", "");
	if (strcmp(config, "default"))
		ck_assert_int_eq(setup_knob(&base, "ack_early", "off", &expected), 0);
	unsigned wanted = expect_watched(base.store, config);
	ck_assert(wanted & TM_BIT(TM_RDA) && wanted & TM_BIT(TM_LIVE) &&
		  !(wanted & TM_BIT(TM_DUR)));
	open_fuzz(&f, &base, 3, rounds(1200), 2, wanted);
	while (fuzz_more(&f)) {
		fuzz_on(&f);
		ck_assert_msg(!f.founds, "%s breaks %s", name,
			      f.founds ? contract_name(f.found[0].contract) : "");
	}
	ck_assert_uint_eq(f.counts.runs, rounds(1200));
	ck_assert_uint_gt(f.broken[TM_DUR], 0);
	ck_assert_uint_gt(f.inputs, rounds(50));
	fuzz_close(&f);
}

TEST(processes_change_nothing)
{
	struct setup base;
	struct fuzz one, three;

	make_setup(&base, store_find("efactory"), "get_no_flush", "");
	open_fuzz(&one, &base, 5, rounds(800), 1, TM_BIT(TM_MONO));
	open_fuzz(&three, &base, 5, rounds(800), 3, TM_BIT(TM_MONO));
	for (struct fuzz *f = &one; f; f = f == &one ? &three : NULL)
		while (fuzz_more(f))
			fuzz_on(f);
	ck_assert_mem_eq(&one.counts, &three.counts, sizeof(one.counts));
	ck_assert_uint_eq(one.features, three.features);
	ck_assert_uint_eq(one.inputs, three.inputs);
	ck_assert_mem_eq(one.corpus, three.corpus, one.inputs * sizeof(*one.corpus));
	ck_assert_uint_eq(one.founds, three.founds);
	fuzz_close(&three);

	/* What an earlier session found makes the same states known, with fewer runs. */
	open_fuzz(&three, &base, 6, one.inputs, 2, 0);
	for (unsigned i = 0; i < one.inputs; i++)
		ck_assert_int_eq(fuzz_seed(&three, one.corpus[i].bytes, one.corpus[i].n), 0);
	while (fuzz_more(&three))
		fuzz_on(&three);
	ck_assert_uint_gt(three.features, one.features / 2);
	fuzz_close(&three);
	fuzz_close(&one);
}

/* --- fingerprints --- */

TEST(one_bug_has_one_fingerprint)
{
	struct fingerprint known = {.parts = 0};
	struct setup base;

	make_setup(&base, store_find("efactory"), "get_no_flush", "");
	for (unsigned seed = 1; seed <= (TM_ASAN ? 2 : 3); seed++) {
		struct broken_run run;
		struct fuzz f;
		struct fingerprint fingerprint;

		open_fuzz(&f, &base, seed, 1024, 2, TM_BIT(TM_MONO));
		while (fuzz_more(&f) && !f.founds)
			fuzz_on(&f);
		ck_assert(f.founds);
		ck_assert_int_eq(fuzz_shrink(&f, &f.found[0], &run), 0);
		ck_assert_int_eq(fingerprint_find(&run.setup, &run.path, TM_MONO, &fingerprint), 0);
		ck_assert_uint_gt(fingerprint.parts, 0);
		if (seed == 1)
			known = fingerprint;
		ck_assert_msg(fingerprint_contains(&fingerprint, &known), "seed %u: %s, not %s",
			      seed, fingerprint.part[0], known.part[0]);
		broken_run_free(&run);
		fuzz_close(&f);
	}
}

TEST(fingerprints_are_compared)
{
	const struct fingerprint base = {
		"efactory", "default", TM_MONO, false, false, {"a put is late", "lost: log"}, 2};
	struct fingerprint other = base, more = base;

	ck_assert(fingerprint_contains(&base, &base));
	strcpy(more.part[2], "lost: table");
	more.parts = 3;
	ck_assert(fingerprint_contains(&more, &base) && !fingerprint_contains(&base, &more));
	strcpy(other.part[1], "lost: table");
	ck_assert(!fingerprint_contains(&other, &base) && !fingerprint_contains(&base, &other));
	ck_assert(fingerprint_contains(&more, &other));
	other = base;
	other.contract = TM_KEEP;
	ck_assert(!fingerprint_contains(&other, &base));
	other = base;
	other.cleans = true;
	ck_assert(!fingerprint_contains(&other, &base) && !fingerprint_contains(&base, &other));
	other = base;
	strcpy(other.variant, "no_pre");
	ck_assert(!fingerprint_contains(&other, &base));
	other = base;
	strcpy(other.store, "erda");
	ck_assert(!fingerprint_contains(&other, &base));
}

RUN_TESTS(NULL, NULL)
