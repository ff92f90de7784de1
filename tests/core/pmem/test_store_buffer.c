/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Store buffers in time: holds of single stores, what compilers make of stores, and that a plain
 * run does not know about buffers. Which outcomes they allow, with and without power failures, the
 * litmus tests tso_* and px86_* say (test_litmus_suite).
 *
 * A program is instructions separated by blanks, of locations x, y, z, each on its own line, and w,
 * on the line of x:
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
 */
#include "core/pmem/hooks.h"
#include "tests/core/pmem/one_pool.h"

#define POOL	  (4 * LINE)
#define MAX_NOTES 16

static struct {
	char program[96], loaded[MAX_NOTES], noted[MAX_NOTES];
} t;

static void setup(void)
{
	memset(&t, 0, sizeof(t));
	one_pool(POOL);
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
		uint64_t value, shown = pmem_base(pm)[place(*name)];
		pmem_nic_read(pm, place(*name), &value, 8);
		ck_assert_uint_eq(shown, value);
		note(t.noted, value);
	}
}

static void store_big(void)
{
	uint64_t *to = (uint64_t *)(pmem_base(pm) + place('y'));
	__tsan_write_range(to, 32);
	for (unsigned i = 0; i < 4; i++)
		to[i] = 5;
}

static void land_7(struct sim *sim, void *arg)
{
	const struct nic_where from = {.message = 1};
	uint64_t value = 7;
	pmem_nic_land(pm, place('x'), &value, 8, &from);
}

/* Both hooks come before the copy, the store's first. */
static void move(void)
{
	uint64_t *x = (uint64_t *)(pmem_base(pm) + place('x')), *y = x + LINE / 8;
	sim_at(sim, 3, land_7, NULL);
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
		to = (uint64_t *)(pmem_base(pm) + place(name[1]));
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

static void execute(const char *op)
{
	uint64_t value = 0, old;
	if (execute_hook(op))
		return;
	if (!strcmp(op, "mf")) {
		pmem_cpu_mfence(pm, 0);
	} else if (!strcmp(op, "sf")) {
		pmem_cpu_fence(pm, 0);
	} else if (!strcmp(op, "post")) {
		pmem_cpu_post(pm, ring, NULL);
	} else if (!strncmp(op, "wb:", 3)) {
		pmem_cpu_flush(pm, place(op[3]), 8, 0);
	} else if (!strncmp(op, "cl:", 3)) {
		pmem_cpu_clflush(pm, place(op[3]), 8, 0);
	} else if (!strncmp(op, "xc:", 3)) {
		value = (uint64_t)(op[5] - '0');
		pmem_cpu_mfence(pm, 0);
		pmem_cpu_read(pm, place(op[3]), &old, 8);
		pmem_cpu_locked_write(pm, place(op[3]), &value, 8, 0);
		note(t.loaded, old);
	} else if (op[1] == '=') {
		value = (uint64_t)(op[2] - '0');
		pmem_cpu_copy(pm, place(op[0]), &value, 0, 8, 0);
	} else {
		ck_assert(strlen(op) == 1);
		pmem_cpu_read(pm, place(op[0]), &value, 8);
		note(t.loaded, value);
	}
}

static void thread(void *arg)
{
	char copy[sizeof(t.program)], *save = NULL;

	strcpy(copy, t.program);
	for (char *op = strtok_r(copy, " ", &save); op; op = strtok_r(NULL, " ", &save))
		execute(op);
}

/* A store buffer of four entries, if the text says nothing else. */
static struct hardware with_buffer(const char *config)
{
	char text[200];
	snprintf(text, sizeof(text), "store_buffer=4 %s", config);
	return hardware(text);
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
	snprintf(t.program, sizeof(t.program), "%s", program);
	memset(t.loaded, 0, sizeof(t.loaded));
	memset(t.noted, 0, sizeof(t.noted));
	sim_reset(sim, source ? &source->source : NULL);
	pmem_begin(pm, sim, &hw);
	sim_spawn(sim, HOST_SERVER, "p0", thread, NULL);
	sim_at(sim, 1000000, look, NULL);
	sim_at(sim, 10000000, look, NULL);
	return sim_run(sim);
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
	ck_assert_str_eq(t.loaded, timed[_i].loaded);
	pmem_end(pm);
}

/* If nothing is held, a run does not know about buffers. */
TEST(plain_runs_are_the_same)
{
	static const char program[] =
		"x=1 w=2 x wb:x y=1 sf sc:z=3 z add:z mf re:x=4 post dram x xc:y=5";
	struct timed_source source = {.source.answer = timed_answer, .stores = ""};
	uint64_t hash, now;
	ck_assert_int_eq(run_timed(program, "store_buffer=0", &source), SIM_IDLE);
	hash = sim_hash(sim);
	now = sim_now(sim);
	pmem_end(pm);
	for (unsigned i = 0; i < 4; i++) {
		static const char *const configs[] = {"store_buffer=1", "store_buffer=2",
						      "store_buffer=4", "store_buffer=8"};
		ck_assert_int_eq(run_timed(program, configs[i], &source), SIM_IDLE);
		ck_assert_uint_eq(sim_hash(sim), hash);
		ck_assert_uint_eq(sim_now(sim), now);
		ck_assert_uint_gt(source.asked, 0);
		pmem_end(pm);
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
		unsigned stores = pmem_line_versions(pm, l);
		pmem_line_content(pm, l, stores, line);
		sprintf(left + strlen(left), "%s%u+%u", l ? " " : "", line[0], stores);
	}
	ck_assert_str_eq(left, cut[_i].left);
	pmem_end(pm);
}

RUN_TESTS(setup, one_pool_free)
