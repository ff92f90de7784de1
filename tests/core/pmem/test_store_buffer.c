/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Store buffers. With a scheduler: every interleaving of small programs of x86 instructions, and
 * exactly the outcomes that x86-TSO allows, with and without power failures. In time: holds of
 * single stores, and that a plain run does not know about buffers.
 *
 * A program is threads separated by |, a thread instructions separated by blanks, of
 * locations x, y, z, each on its own line, and w, on the line of x:
 *
 *	x=1	store			xc:x=1	exchange (locked)
 *	x	load			mf sf	mfence, sfence
 *	wb:x	clwb			cl:x	clflush
 *	post	a doorbell; the NIC notes x, y, z when it hears of it
 *
 * What compilers make of stores:
 *
 *	dram	to DRAM			stack	to the thread's own stack
 *	add:x	atomic add of 1		add:d	the same in DRAM
 *	sc:x=1	atomic, sequential	re:x=1	atomic, releasing
 *	fence	atomic_thread_fence	big	a structure of four words at y, each 5
 *	move	*x = *y, y being 0; as y is loaded, a NIC writes 7 to x
 *
 * An outcome is what the threads loaded, x y z at the end, and what the NIC noted: "0|0 110". After
 * a power failure: what they had loaded, and what x y z hold then: "0|! 100".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/crash.h"
#include "core/pmem/hooks.h"
#include "tests/core/pmem/hooks_and_hardware.h"
#include "tests/suite.h"

#define POOL	  (4 * LINE)
#define THREADS	  4
#define PICKS	  64
#define OUTCOMES  512
#define TEXT	  48
#define THINGS	  256
#define MAX_NOTES 16

struct outcomes {
	char text[OUTCOMES][TEXT];
	unsigned n;
};

static struct {
	struct sim *sim;
	struct pmem_stack *stack;
	struct pmem *pm;
	char program[THREADS][96];
	unsigned threads;
	char loaded[THREADS][MAX_NOTES], noted[MAX_NOTES];
	struct outcomes final, crash;
	bool cuts; /* power failures are looked at */
	/* the walk through all picks */
	struct scheduler scheduler;
	unsigned pick[PICKS], of[PICKS], depth, at;
	uint64_t given[THINGS];
	unsigned things;
} t;

static void setup(void)
{
	memset(&t, 0, sizeof(t));
	t.sim = sim_new();
	t.stack = pmem_stack_new(1, POOL);
	ck_assert(t.sim && t.stack);
	pmem_load(t.stack, NULL, POOL);
	t.pm = pmem_machine(t.stack, 0);
}

static void teardown(void)
{
	pmem_stack_free(t.stack);
	sim_free(t.sim);
}

/* --- programs --- */

static void note(char *notes, uint64_t value)
{
	size_t n = strlen(notes);
	ck_assert(n + 1 < MAX_NOTES);
	notes[n] = (char)('0' + value);
}

static uint64_t place(char name)
{
	ck_assert(strchr("xyzw", name) != NULL);
	return name == 'w' ? 8 : (uint64_t)(name - 'x') * LINE;
}

static void ring(void *arg)
{
	for (const char *name = "xyz"; *name; name++) {
		uint64_t value, shown = pmem_base(t.pm)[place(*name)];
		pmem_nic_read(t.pm, place(*name), &value, 8);
		ck_assert_uint_eq(shown, value);
		note(t.noted, value);
	}
}

static void store_big(void)
{
	uint64_t *to = (uint64_t *)(pmem_base(t.pm) + place('y'));
	__tsan_write_range(to, 32);
	for (unsigned i = 0; i < 4; i++)
		to[i] = 5;
}

static void land_7(struct sim *sim, void *arg)
{
	const struct nic_where from = {.message = 1};
	uint64_t value = 7;
	pmem_nic_land(t.pm, place('x'), &value, 8, &from);
}

/* Both hooks come before the copy, the store's first. */
static void move(void)
{
	uint64_t *x = (uint64_t *)(pmem_base(t.pm) + place('x')), *y = x + LINE / 8;
	sim_at(t.sim, 3, land_7, NULL);
	__tsan_write8(x);
	__tsan_read8(y);
	*x = *y;
}

/* What a compiler makes of stores and atomics. */
static bool execute_hook(const char *op)
{
	static uint64_t dram;
	uint64_t stack, *to = &dram;
	const char *name = strchr(op, ':');
	if (name && name[1] != 'd')
		to = (uint64_t *)(pmem_base(t.pm) + place(name[1]));
	if (!strcmp(op, "dram"))
		__tsan_write8(&dram);
	else if (!strcmp(op, "stack"))
		__tsan_write8(&stack);
	else if (!strcmp(op, "big"))
		store_big();
	else if (!strcmp(op, "move"))
		move();
	else if (!strcmp(op, "fence"))
		__tsan_atomic_thread_fence(__ATOMIC_SEQ_CST);
	else if (!strncmp(op, "add:", 4))
		__tsan_atomic64_fetch_add(to, 1, __ATOMIC_RELAXED);
	else if (!strncmp(op, "sc:", 3))
		__tsan_atomic64_store(to, (uint64_t)(op[5] - '0'), __ATOMIC_SEQ_CST);
	else if (!strncmp(op, "re:", 3))
		__tsan_atomic64_store(to, (uint64_t)(op[5] - '0'), __ATOMIC_RELEASE);
	else
		return false;
	return true;
}

static void execute(const char *op, char *loaded)
{
	uint64_t value = 0, old;
	if (execute_hook(op))
		return;
	if (!strcmp(op, "mf")) {
		pmem_cpu_mfence(t.pm, 0);
	} else if (!strcmp(op, "sf")) {
		pmem_cpu_fence(t.pm, 0);
	} else if (!strcmp(op, "post")) {
		pmem_cpu_post(t.pm, ring, NULL);
	} else if (!strncmp(op, "wb:", 3)) {
		pmem_cpu_flush(t.pm, place(op[3]), 8, 0);
	} else if (!strncmp(op, "cl:", 3)) {
		pmem_cpu_clflush(t.pm, place(op[3]), 8, 0);
	} else if (!strncmp(op, "xc:", 3)) {
		value = (uint64_t)(op[5] - '0');
		pmem_cpu_mfence(t.pm, 0);
		pmem_cpu_read(t.pm, place(op[3]), &old, 8);
		pmem_cpu_locked_write(t.pm, place(op[3]), &value, 8, 0);
		note(loaded, old);
	} else if (op[1] == '=') {
		value = (uint64_t)(op[2] - '0');
		pmem_cpu_copy(t.pm, place(op[0]), &value, 0, 8, 0);
	} else {
		ck_assert(strlen(op) == 1);
		pmem_cpu_read(t.pm, place(op[0]), &value, 8);
		note(loaded, value);
	}
}

static void thread(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	char copy[sizeof(t.program[0])], *save = NULL;
	strcpy(copy, t.program[me]);
	for (char *op = strtok_r(copy, " ", &save); op;) {
		execute(op, t.loaded[me]);
		op = strtok_r(NULL, " ", &save);
		if (op && sim_picks(t.sim))
			sim_turn(t.sim);
	}
}

/* --- outcomes --- */

static void add(struct outcomes *set, const char *text)
{
	for (unsigned i = 0; i < set->n; i++)
		if (!strcmp(set->text[i], text))
			return;
	ck_assert_uint_lt(set->n, OUTCOMES);
	snprintf(set->text[set->n++], TEXT, "%s", text);
}

static void print_loaded(char *text)
{
	*text = '\0';
	for (unsigned i = 0; i < t.threads; i++)
		sprintf(text + strlen(text), "%s%s", i ? "|" : "", t.loaded[i]);
}

/* What the power could leave now, if it fails: each line on its own. */
static void add_crashes(void)
{
	unsigned answers[3];
	uint64_t off;
	ck_assert(pmem_all_seen(t.pm, &off));
	for (unsigned l = 0; t.cuts && l < 3; l++)
		answers[l] = pmem_line_answers(t.pm, l);
	for (unsigned k = 0; t.cuts && k < answers[0] * answers[1] * answers[2]; k++) {
		unsigned of[3] = {k % answers[0], k / answers[0] % answers[1],
				  k / answers[0] / answers[1]};
		char text[TEXT];
		print_loaded(text);
		strcat(text, "! ");
		for (unsigned l = 0; l < 3; l++) {
			uint8_t line[LINE];
			pmem_line_content(t.pm, l, of[l], line);
			sprintf(text + strlen(text), "%c", '0' + line[0]);
		}
		add(&t.crash, text);
	}
}

static void add_final(void)
{
	char text[TEXT];
	print_loaded(text);
	strcat(text, " ");
	for (const char *name = "xyz"; *name; name++)
		sprintf(text + strlen(text), "%c", '0' + pmem_base(t.pm)[place(*name)]);
	if (*t.noted)
		sprintf(text + strlen(text), " %s", t.noted);
	add(&t.final, text);
}

/* --- all interleavings --- */

static bool knows(struct scheduler *scheduler, uint64_t *chain)
{
	return false;
}

static unsigned pick(struct scheduler *scheduler, const uint64_t *chain, unsigned n)
{
	add_crashes();
	ck_assert(t.at < PICKS);
	if (t.at == t.depth) {
		t.pick[t.depth] = 0;
		t.of[t.depth++] = n;
	}
	ck_assert(t.of[t.at] == n);
	return t.pick[t.at++];
}

static void enables(struct scheduler *scheduler, uint64_t chain)
{
}

static void touched(struct scheduler *scheduler, enum touch what, uint64_t where, uint64_t len)
{
}

static void gives(struct scheduler *scheduler, uint64_t thing)
{
	ck_assert(t.things < THINGS);
	t.given[t.things++] = thing;
}

static void takes(struct scheduler *scheduler, uint64_t thing)
{
	unsigned i = 0;
	while (i < t.things && t.given[i] != thing)
		i++;
	ck_assert(i < t.things); /* what is taken was given before */
}

static bool next_walk(void)
{
	while (t.depth && t.pick[t.depth - 1] + 1 == t.of[t.depth - 1])
		t.depth--;
	if (!t.depth)
		return false;
	t.pick[t.depth - 1]++;
	return true;
}

static void run_once(const struct hardware *hw)
{
	static const char *const names[THREADS] = {"p0", "p1", "p2", "p3"};
	memset(t.loaded, 0, sizeof(t.loaded));
	memset(t.noted, 0, sizeof(t.noted));
	t.at = t.things = 0;
	sim_reset(t.sim, NULL);
	pmem_begin(t.pm, t.sim, hw);
	t.scheduler = (struct scheduler){.knows = knows,
					 .pick = pick,
					 .enables = enables,
					 .touched = touched,
					 .gives = gives,
					 .takes = takes};
	sim_set_scheduler(t.sim, &t.scheduler);
	pmem_watch(t.pm);
	for (unsigned i = 0; i < t.threads; i++)
		sim_spawn(t.sim, HOST_SERVER, names[i], thread, (void *)(uintptr_t)i);
	ck_assert_int_eq(sim_run(t.sim), SIM_IDLE);
	ck_assert_uint_eq(t.at, t.depth);
	add_crashes();
	add_final();
	pmem_end(t.pm);
}

/* A store buffer of four entries, if the text says nothing else. */
static struct hardware with_buffer(const char *config)
{
	char text[200];
	snprintf(text, sizeof(text), "store_buffer=4 %s", config);
	return hardware(text);
}

/* Every interleaving of the program's instructions and of what leaves the buffers. */
static void explore(const char *program, const char *config)
{
	const struct hardware hw = with_buffer(config);
	char copy[200], *save = NULL;
	t.threads = t.final.n = t.crash.n = t.depth = 0;
	snprintf(copy, sizeof(copy), "%s", program);
	for (char *part = strtok_r(copy, "|", &save); part; part = strtok_r(NULL, "|", &save))
		snprintf(t.program[t.threads++], sizeof(t.program[0]), "%s", part);
	do
		run_once(&hw);
	while (next_walk());
}

static bool has(const struct outcomes *set, const char *text)
{
	for (unsigned i = 0; i < set->n; i++)
		if (!strcmp(set->text[i], text))
			return true;
	return false;
}

/* The outcomes are just these, separated by commas. */
static void assert_finals(const char *texts)
{
	char copy[400], *save = NULL;
	unsigned n = 0;
	snprintf(copy, sizeof(copy), "%s", texts);
	for (char *text = strtok_r(copy, ",", &save); text; text = strtok_r(NULL, ",", &save), n++)
		ck_assert_msg(has(&t.final, text), "no run ends with \"%s\"", text);
	for (unsigned i = 0; i < t.final.n && t.final.n != n; i++)
		printf("\"%s\" ", t.final.text[i]);
	ck_assert_uint_eq(t.final.n, n);
}

/* --- x86-TSO --- */

static const struct {
	const char *program, *config, *finals;
} litmus[] = {
	/* Store buffering, its remedies, and what does not help. */
	{"x=1 y|y=1 x", "", "0|0 110,0|1 110,1|0 110,1|1 110"},
	{"x=1 y|y=1 x", "store_buffer=0", "0|1 110,1|0 110,1|1 110"},
	{"x=1 mf y|y=1 mf x", "", "0|1 110,1|0 110,1|1 110"},
	{"x=1 mf y|y=1 x", "", "0|0 110,0|1 110,1|0 110,1|1 110"},
	{"xc:x=1 y|xc:y=1 x", "", "00|01 110,01|00 110,01|01 110"},
	{"x=1 sf y|y=1 x", "", "0|0 110,0|1 110,1|0 110,1|1 110"},
	{"x=1 cl:x y|y=1 x", "", "0|0 110,0|1 110,1|0 110,1|1 110"},
	/* A locked instruction elsewhere empties the buffer, too. */
	{"x=1 xc:z=1 y|y=1 mf x", "", "00|1 111,01|0 111,01|1 111"},
	/* Message passing: stores leave in order, whatever is between them. */
	{"x=1 y=1|y x", "", "|00 110,|01 110,|11 110"},
	{"x=1 wb:x y=1|y x", "", "|00 110,|01 110,|11 110"},
	/* Load buffering: loads do not run after stores. */
	{"x y=1|y x=1", "", "0|0 110,0|1 110,1|0 110"},
	/* Coherence of one location. */
	{"x=1 x=2|x x", "", "|00 200,|01 200,|02 200,|11 200,|12 200,|22 200"},
	/* Forwarding: one's own store is seen at once, the newest first, and before others see
	 * it. */
	{"x=1 x y|y=2 y x", "", "10|20 120,12|20 120,10|21 120,12|21 120"},
	{"x=1 x=2 x", "", "2 200"},
	{"x=1 w=2 x|w x", "", "1|00 100,1|01 100,1|21 100"},
	{"x=1 x y|y=2 x=2", "", "10| 120,10| 220,12| 120,12| 220,22| 220"},
	/* Stores of two CPUs to two locations: the second one of a CPU is last (2+2W). */
	{"x=1 y=2|y=1 x=2", "", "| 120,| 210,| 220"},
	/* All see the stores of others in one order (IRIW), also through a third CPU (WRC). */
	{"x=1|y=1|x y|y x", "",
	 "||00|00 110,||00|01 110,||00|10 110,||00|11 110,||01|00 110,||01|01 110,||01|10 "
	 "110,||01|11 110,"
	 "||10|00 110,||10|01 110,||10|11 110,||11|00 110,||11|01 110,||11|10 110,||11|11 110"},
	{"x=1|x y=1|y x", "",
	 "|0|00 110,|0|01 110,|0|10 110,|0|11 110,|1|00 110,|1|01 110,|1|11 110"},
	/* Locked instructions are atomic. */
	{"xc:x=1|xc:x=2", "", "0|1 200,2|0 100"},
	/* The size: with one entry, the first store has left when the second one is in. */
	{"x=1 y=1 z|z=1 mf x", "store_buffer=2", "0|0 111,0|1 111,1|0 111,1|1 111"},
	{"x=1 y=1 z|z=1 mf x", "store_buffer=1", "0|1 111,1|0 111,1|1 111"},
	/* A doorbell is after the stores before it, and before those after it. */
	{"x=1 post y=1", "", " 110 100"},
	{"post x=1", "", " 100 000"},
	{"x=1 post y|y=1 x", "",
	 "0|0 110 100,0|0 110 110,0|1 110 100,0|1 110 110,1|0 110 100,1|0 110 110,1|1 110 100,1|1 "
	 "110 110"},
};

TESTS(outcomes_are_those_of_tso, sizeof(litmus) / sizeof(litmus[0]))
{
	explore(litmus[_i].program, litmus[_i].config);
	assert_finals(litmus[_i].finals);
}

/* --- power failures --- */

static const struct {
	const char *program, *config;
	const char *some, *none; /* outcomes of which there are, separated by commas; and are not */
} crashes[] = {
	/* What waits in a buffer is lost, in every domain, though its CPU has seen it. */
	{"x=1 x", "", "! 000,! 100,1! 000,1! 100", ""},
	{"x=1 x", "domain=mhp", "1! 000,1! 100", ""},
	{"x=1 x", "domain=wsp", "1! 000,1! 100", ""},
	{"x=1 x", "domain=mhp store_buffer=0", "1! 100", "1! 000"},
	/* Where visible is durable, stores survive in order. */
	{"x=1 y=1", "domain=mhp", "! 000,! 100,! 110", "! 010"},
	{"x=1 y=1", "", "! 000,! 100,! 110,! 010", ""},
	/* A write-back without a fence promises nothing; with one, it holds from when the fence
	   leaves. */
	{"x=1 wb:x y=1", "", "! 010", ""},
	{"x=1 wb:x sf y=1", "", "! 000,! 100,! 110", "! 010"},
	{"x=1 sf wb:x y=1", "", "! 010", ""},
	{"x=1 wb:x x=2 sf y=1", "", "! 100,! 200,! 110,! 210", "! 010"},
	{"x=1 wb:x sf z", "", "0! 000,0! 100", ""},
	/* mfence and locked instructions are fences, and the CPU goes on when it holds. */
	{"x=1 wb:x mf z", "", "! 000,0! 100", "0! 000"},
	{"x=1 wb:x xc:y=1 z", "", "00! 100,00! 110", "00! 000,00! 010"},
	/* clflush needs none. */
	{"x=1 cl:x y=1", "", "! 000,! 100,! 110", "! 010"},
	{"cl:x x=1 y=1", "", "! 010", ""},
	{"x=1 cl:x z", "", "0! 000,0! 100", ""},
	{"w=1 x=2 cl:w y=1", "", "! 000,! 200,! 210", "! 010"},
	/* A fence covers what its own CPU wrote back. */
	{"x=1 wb:x|sf y=1", "", "|! 010", ""},
	/* A flush covers what others have made visible. */
	{"x=1|x cl:x y=1", "", "|1! 110", "|1! 010"},
};

static void each(const char *texts, bool some)
{
	char copy[200], *save = NULL;
	snprintf(copy, sizeof(copy), "%s", texts);
	for (char *text = strtok_r(copy, ",", &save); text; text = strtok_r(NULL, ",", &save))
		ck_assert_msg(has(&t.crash, text) == some, "%s failure leaves \"%s\"",
			      some ? "no" : "a", text);
}

TESTS(power_failures, sizeof(crashes) / sizeof(crashes[0]))
{
	t.cuts = true;
	explore(crashes[_i].program, crashes[_i].config);
	each(crashes[_i].some, true);
	each(crashes[_i].none, false);
}

/* --- in time --- */

/* Holds stores of the first thread, and fails the power at one entry of its buffer. */
struct timed_source {
	struct source source;
	const char *stores; /* their numbers, a digit each */
	unsigned entry;	    /* 0: none */
	unsigned asked;
};

static unsigned timed_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct timed_source *me = (struct timed_source *)source;
	ck_assert_uint_ge(n, 2);
	if (at->kind == CHOICE_CRASH && at->a == CRASH_BEFORE_LEAVE) {
		ck_assert_str_eq(at->who->name, "server/p0");
		return at->b == me->entry;
	}
	me->asked += at->kind == CHOICE_BUFFER;
	return at->kind == CHOICE_BUFFER && strchr(me->stores, (int)('0' + at->a)) ? DELAY_5MS : 0;
}

static void look(struct sim *sim, void *arg)
{
	ring(arg);
}

/* One thread; what the NIC sees after 1 ms and after 10 is noted. */
static enum sim_end run_timed(const char *program, const char *config, struct timed_source *source)
{
	const struct hardware hw = with_buffer(config);
	snprintf(t.program[0], sizeof(t.program[0]), "%s", program);
	t.threads = 1;
	memset(t.loaded, 0, sizeof(t.loaded));
	memset(t.noted, 0, sizeof(t.noted));
	sim_reset(t.sim, source ? &source->source : NULL);
	pmem_begin(t.pm, t.sim, &hw);
	sim_spawn(t.sim, HOST_SERVER, "p0", thread, NULL);
	sim_at(t.sim, 1000000, look, NULL);
	sim_at(t.sim, 10000000, look, NULL);
	return sim_run(t.sim);
}

static const struct {
	const char *program, *config;
	const char *held;  /* which stores */
	const char *noted; /* after 1 ms, after 10 */
	const char *loaded;
} timed[] = {
	{"x=1", "", "1", "000100", ""},
	{"x=1", "", "", "100100", ""},
	{"x=1", "store_buffer=0", "1", "100100", ""},
	{"x=1 x y", "", "1", "000100", "10"},
	{"x=1 y=1", "", "1", "000110", ""},
	{"x=1 y=1", "", "2", "100110", ""},
	{"x=1 x=2 x", "", "1", "000200", "2"},
	{"x=1 post y=1", "", "1", "000100110", ""},
	{"x=1 sf y=1", "", "1", "000110", ""},
	{"x=1 mf y=1", "", "1", "110110", ""},
	{"x=1 xc:z=1", "", "1", "101101", "0"},
	/* No room: the oldest leaves, and those after it that are not held. */
	{"x=1 y=1", "store_buffer=1", "1", "110110", ""},
	{"x=1 y=1", "store_buffer=2", "1", "000110", ""},
	{"x=1 y=1 z=1", "store_buffer=2", "1", "111111", ""},
	{"x=1 sf z=1", "store_buffer=2", "1", "101101", ""},
	{"x=1 y=1 z=1", "store_buffer=2", "13", "110111", ""},
	{"x=1 big y", "store_buffer=8", "1", "000150", "5"},
	{"x=1 big y", "store_buffer=2", "1", "150150", "5"},
	{"x=1 big y", "", "2", "100150", "5"},
	{"move x", "", "", "000000", "0"},
	{"move x", "", "1", "700000", "0"},
	/* What compilers make. A store to DRAM is visible at once, so those before it are. */
	{"x=1 dram", "", "1", "100100", ""},
	{"x=1 stack", "", "1", "000100", ""},
	{"x=1 add:d", "", "1", "100100", ""},
	{"x=1 add:y y", "", "1", "110110", "1"},
	{"x=1 add:x x", "", "1", "200200", "2"},
	{"add:x y", "", "1", "100100", "0"},
	{"x=1 fence", "", "1", "100100", ""},
	{"x=1 sc:y=1", "", "1", "110110", ""},
	{"sc:x=1 x", "", "1", "100100", "1"},
	{"x=1 re:y=1 y", "", "1", "000110", "1"},
	{"re:x=1 x re:x=2 x", "", "1", "000200", "12"},
};

TESTS(held_in_time, sizeof(timed) / sizeof(timed[0]))
{
	struct timed_source source = {.source.answer = timed_answer, .stores = timed[_i].held};
	ck_assert_int_eq(run_timed(timed[_i].program, timed[_i].config, &source), SIM_IDLE);
	ck_assert_str_eq(t.noted, timed[_i].noted);
	ck_assert_str_eq(t.loaded[0], timed[_i].loaded);
	pmem_end(t.pm);
}

/* If nothing is held, a run does not know about buffers. */
TEST(plain_runs_are_the_same)
{
	static const char program[] =
		"x=1 w=2 x wb:x y=1 sf sc:z=3 z add:z mf re:x=4 post dram x xc:y=5";
	struct timed_source source = {.source.answer = timed_answer, .stores = ""};
	uint64_t hash, now;
	ck_assert_int_eq(run_timed(program, "store_buffer=0", &source), SIM_IDLE);
	hash = sim_hash(t.sim);
	now = sim_now(t.sim);
	pmem_end(t.pm);
	for (unsigned i = 0; i < 4; i++) {
		static const char *const configs[] = {"store_buffer=1", "store_buffer=2",
						      "store_buffer=4", "store_buffer=8"};
		ck_assert_int_eq(run_timed(program, configs[i], &source), SIM_IDLE);
		ck_assert_uint_eq(sim_hash(t.sim), hash);
		ck_assert_uint_eq(sim_now(t.sim), now);
		ck_assert_uint_gt(source.asked, 0);
		pmem_end(t.pm);
	}
}

static const struct {
	const char *program, *config;
	unsigned entry;
	const char *left; /* x and y, durable for sure, and how many stores to them are in flight */
} cut[] = {
	{"x=1 y=1", "domain=mhp", 1, "0+1 0+0"},
	{"x=1 y=1", "domain=mhp", 2, "1+0 0+1"},
	{"x=1 y=1", "domain=mhp", 0, "1+0 1+0"},
	{"x=1 wb:x sf y=1 wb:y sf", "store_buffer=8", 3, "0+1 0+0"},
	{"x=1 wb:x sf y=1 wb:y sf", "store_buffer=8", 6, "1+0 0+1"},
	{"x=1 wb:x sf y=1 wb:y sf", "store_buffer=8", 0, "1+0 1+0"},
	{"x=1 cl:x y=1", "", 2, "0+1 0+0"},
	{"x=1 cl:x y=1", "", 0, "1+0 0+1"},
};

/* The power fails before an entry makes something durable: neither it nor what is after it
 * happens. */
TESTS(power_fails_at_an_entry, sizeof(cut) / sizeof(cut[0]))
{
	struct timed_source source = {
		.source.answer = timed_answer, .stores = "1", .entry = cut[_i].entry};
	char left[16] = "";
	ck_assert_int_eq(run_timed(cut[_i].program, cut[_i].config, &source),
			 cut[_i].entry ? SIM_POWER : SIM_IDLE);
	for (unsigned l = 0; l < 2; l++) {
		uint8_t line[LINE];
		unsigned stores = pmem_line_versions(t.pm, l);
		pmem_line_content(t.pm, l, stores, line);
		sprintf(left + strlen(left), "%s%u+%u", l ? " " : "", line[0], stores);
	}
	ck_assert_str_eq(left, cut[_i].left);
	pmem_end(t.pm);
}

int main(void)
{
	return run_suite(listed_suite("store_buffer", setup, teardown));
}
