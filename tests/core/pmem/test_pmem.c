/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The persistence model, against tables worked out by hand: a small script of
 * stores, flushes, fences and NIC writes, and the exact set of images that a power
 * failure at its end may leave. Then properties of random programs: undo, hashes,
 * and that lines decided at their first touch give the same outcomes as all lines
 * decided beforehand.
 *
 * A script is a list of operations separated by blanks. A slot is a line (a..d) and
 * one of its eight words (0..7); V is a digit. "2" before an operation: task 2 does
 * it, else task 1.
 *
 *	s:a0=V	store			f:a	flush the line
 *	x:a0=V	atomic store		d	fence
 *	+:a0=V	atomic fetch-and-add	p:a0	persist (flush and fence)
 *	c:a0=VW	compare V, swap W	t:a0	load
 *	m:a0=VN	memcpy of N words, each V
 *	n:a0=VN	NIC write of N words arrives and lands, each word V (N absent: 1)
 *	r:a0=VN	it arrives only		l:a0=VN	it lands only
 *	e:a	the cache writes the line back; E: every dirty line
 *	X	the host that has lines a and b, and task 1, loses its power; the other one has c, d
 *	w	1 us passes
 */
#include <libpmem.h>
#include "core/pmem/crash.h"
#include "core/pmem/hooks.h"
#include "faultinject/random_source.h"
#include "tests/core/pmem/hooks_and_hardware.h"

#define LINES	 4
#define POOL	 (LINES * LINE)
#define MACHINES 3
#define SETS_MAX 4096

static struct pmem_stack *stack;
static struct pmem *machine[MACHINES];
static struct sim *sims[MACHINES];

static void setup(void)
{
	stack = pmem_stack_new(MACHINES, 64 * LINE);
	ck_assert_ptr_nonnull(stack);
	for (unsigned i = 0; i < MACHINES; i++) {
		machine[i] = pmem_machine(stack, i);
		sims[i] = sim_new();
	}
	pmem_load(stack, NULL, POOL);
}

static void teardown(void)
{
	for (unsigned i = 0; i < MACHINES; i++)
		sim_free(sims[i]);
	pmem_stack_free(stack);
}

/* --- the source: walks every combination of a machine's CHOICE_LINE answers --- */

#define DEPTH 16
struct walk {
	struct source source;
	unsigned answer[DEPTH], of[DEPTH], depth, at;
	unsigned evict;	    /* the answer of CHOICE_EVICT */
	int line;	    /* >= 0: the only answer of CHOICE_LINE */
	unsigned asked[64]; /* how often, per line */
};

static unsigned walk_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct walk *walk = (struct walk *)source;
	if (at->kind == CHOICE_EVICT) {
		ck_assert_uint_lt(walk->evict, n);
		return walk->evict;
	}
	if (at->kind != CHOICE_LINE)
		return 0;
	walk->asked[at->a]++;
	if (walk->line >= 0)
		return (unsigned)walk->line < n ? (unsigned)walk->line : n - 1;
	ck_assert_uint_lt(walk->at, DEPTH);
	if (walk->at == walk->depth) {
		walk->answer[walk->depth] = 0;
		walk->of[walk->depth++] = n;
	}
	ck_assert_uint_eq(walk->of[walk->at], n);
	return walk->answer[walk->at++];
}

static void walk_start(struct walk *walk)
{
	*walk = (struct walk){.source.answer = walk_answer, .line = -1};
}

static bool walk_next(struct walk *walk)
{
	walk->at = 0;
	memset(walk->asked, 0, sizeof(walk->asked));
	while (walk->depth && walk->answer[walk->depth - 1] + 1 == walk->of[walk->depth - 1])
		walk->depth--;
	if (!walk->depth)
		return false;
	walk->answer[walk->depth - 1]++;
	return true;
}

/* --- scripts --- */

struct script {
	struct pmem *pm;
	struct sim *sim;
	struct walk *walk;
	char copy[300];
	char *word[64];
	unsigned words, at;
};

static uint64_t slot_off(const char *slot)
{
	ck_assert_msg(slot[0] >= 'a' && slot[0] < 'a' + LINES && slot[1] >= '0' && slot[1] <= '7',
		      "%s", slot);
	return (uint64_t)(slot[0] - 'a') * LINE + (uint64_t)(slot[1] - '0') * 8;
}

static void nic(struct pmem *pm, char op, uint64_t off, uint64_t value, unsigned n)
{
	const struct nic_where from = {.message = 1};
	uint64_t words[8];
	for (unsigned i = 0; i < n; i++)
		words[i] = value;
	if (op != 'l')
		pmem_nic_arrive(pm, off, words, n * 8, &from);
	if (op != 'r')
		pmem_nic_land(pm, off, words, n * 8, &from);
}

static void evict(struct script *script, const char *op)
{
	struct pmem *pm = script->pm;
	script->walk->evict = *op == 'E';
	pmem_commit_pending(pm);
	for (unsigned i = 0; *op == 'e' && i < pmem_dirty(pm); i++)
		if (pmem_dirty_line(pm, i) == (unsigned)(op[2] - 'a'))
			script->walk->evict = i + 2;
	ck_assert_uint_gt(script->walk->evict, 0);
	pmem_cache_pressure(pm);
	script->walk->evict = 0;
}

static void execute_slot(struct script *script, const char *op, uint64_t off)
{
	uint64_t *slot = (uint64_t *)(pmem_base(script->pm) + off);
	uint64_t value = op[4] ? (uint64_t)(op[5] - '0') : 0, words[8];
	unsigned n = op[4] && op[6] ? (unsigned)(op[6] - '0') : 1;
	switch (op[0]) {
	case 's':
		__tsan_write8(slot);
		*slot = value;
		break;
	case 'x':
		__tsan_atomic64_store(slot, value, 5);
		break;
	case '+':
		__tsan_atomic64_fetch_add(slot, value, 5);
		break;
	case 'c':
		__tsan_atomic64_compare_exchange_strong(slot, &value, n, 5, 5);
		break;
	case 'm':
		for (unsigned i = 0; i < 8; i++)
			words[i] = value;
		sim_memcpy(slot, words, n * 8);
		break;
	case 'p':
		sim_pmem_persist(slot, 8);
		break;
	case 't':
		__tsan_read8(slot);
		break;
	default:
		ck_assert_msg(strchr("nrl", op[0]) != NULL, "%s", op);
		nic(script->pm, op[0], off, value, n);
	}
}

static void execute(struct script *script, const char *op)
{
	switch (op[0]) {
	case 'd':
		sim_pmem_drain();
		break;
	case 'f':
		sim_pmem_flush(pmem_base(script->pm) + (op[2] - 'a') * LINE, LINE);
		break;
	case 'e':
	case 'E':
		evict(script, op);
		break;
	case 'w':
		rt_sleep(1000);
		break;
	case 'X':
		pmem_host_fails(script->pm, 0, 2 * LINE, HOST_SERVER);
		break;
	default:
		execute_slot(script, op, slot_off(op + 2));
	}
}

static void script_task(void *arg)
{
	struct script *script = arg;
	unsigned me = (unsigned)sim_task(script->sim);
	while (script->at < script->words) {
		const char *op = script->word[script->at];
		if ((*op == '2') != me) {
			rt_yield();
			continue;
		}
		execute(script, op + me);
		script->at++;
	}
	pmem_commit_pending(script->pm);
	sim_abandon(script->sim, SIM_POWER);
}

/* Machine i boots and runs a script to its end; then its power fails. */
static void run_script(unsigned i, const struct hardware *hw, const char *text, struct walk *walk)
{
	struct script script = {.pm = machine[i], .sim = sims[i], .walk = walk};
	char *save = NULL;
	snprintf(script.copy, sizeof(script.copy), "%s", text);
	for (char *word = strtok_r(script.copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save))
		script.word[script.words++] = word;
	sim_reset(sims[i], &walk->source);
	pmem_begin(machine[i], sims[i], hw);
	for (unsigned t = 0; t < 2; t++)
		ck_assert_int_eq(
			sim_spawn(sims[i], HOST_SERVER, t ? "2" : "1", script_task, &script), 0);
	ck_assert_int_eq(sim_run(sims[i]), SIM_POWER);
}

/* --- sets of images --- */

struct set {
	unsigned n, size;
	uint8_t (*image)[POOL];
};

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, POOL);
}

static void set_add(struct set *set, const void *image)
{
	if (set->n == set->size) {
		set->size = set->size ? 2 * set->size : 16;
		set->image = realloc(set->image, set->size * sizeof(*set->image));
		ck_assert_ptr_nonnull(set->image);
	}
	memcpy(set->image[set->n++], image, POOL);
}

static void set_sort(struct set *set)
{
	unsigned kept = 0;
	if (set->n)
		qsort(set->image, set->n, POOL, by_bytes);
	for (unsigned i = 0; i < set->n; i++)
		if (!i || memcmp(set->image[kept - 1], set->image[i], POOL))
			memmove(set->image[kept++], set->image[i], POOL);
	set->n = kept;
}

static bool set_equal(const struct set *a, const struct set *b)
{
	return a->n == b->n && (!a->n || !memcmp(a->image, b->image, (size_t)a->n * POOL));
}

static void set_free(struct set *set)
{
	free(set->image);
	*set = (struct set){0};
}

/* --- all images that machine i can boot from --- */

static void touch_all(void *arg)
{
	struct pmem *pm = arg;
	for (unsigned l = 0; l < LINES; l++)
		__tsan_read8(pmem_base(pm) + l * LINE + 8);
}

static void boot_images(unsigned i, const struct hardware *hw, struct set *set)
{
	struct walk walk;
	walk_start(&walk);
	*set = (struct set){0};
	do {
		sim_reset(sims[i], &walk.source);
		pmem_begin(machine[i], sims[i], hw);
		ck_assert_int_eq(sim_spawn(sims[i], HOST_SERVER, "", touch_all, machine[i]), 0);
		ck_assert_int_eq(sim_run(sims[i]), SIM_IDLE);
		set_add(set, pmem_base(machine[i]));
		ck_assert_uint_eq(pmem_dirty(machine[i]), 0);
		pmem_end(machine[i]);
	} while (walk_next(&walk));
	set_sort(set);
}

/* The chosen slots of each image, "00 10 11", in order. */
static void set_print(const struct set *set, const char *slots, char *buf, size_t size)
{
	char word[SETS_MAX / 64][32], one[32];
	unsigned n = 0;
	for (unsigned i = 0; i < set->n; i++) {
		char *at = one;
		for (const char *slot = slots; *slot; slot += slot[2] ? 3 : 2) {
			uint64_t value;
			memcpy(&value, set->image[i] + slot_off(slot), 8);
			*at++ = value < 10 ? (char)('0' + value) : '?';
		}
		*at = '\0';
		unsigned k = 0;
		while (k < n && strcmp(word[k], one) < 0)
			k++;
		if (k < n && !strcmp(word[k], one))
			continue;
		ck_assert_uint_lt(n, sizeof(word) / sizeof(word[0]));
		memmove(word[k + 1], word[k], (n - k) * sizeof(word[0]));
		strcpy(word[k], one);
		n++;
	}
	buf[0] = '\0';
	for (unsigned k = 0; k < n; k++) {
		size_t at = strlen(buf);
		snprintf(buf + at, size - at, k ? " %s" : "%s", word[k]);
	}
}

/* --- the table --- */

static const struct row {
	const char *name, *config, *script, *slots, *images; /* ascending */
} rows[] = {
	/* CPU stores where only PM survives. */
	{"nothing", "", "", "a0", "0"},
	{"not flushed", "", "s:a0=1", "a0", "0 1"},
	{"not fenced", "", "s:a0=1 f:a", "a0", "0 1"},
	{"flushed and fenced", "", "s:a0=1 f:a d", "a0", "1"},
	{"persist", "", "s:a0=1 p:a0", "a0", "1"},
	{"fence without flush", "", "s:a0=1 d", "a0", "0 1"},
	{"flush after fence", "", "s:a0=1 d f:a", "a0", "0 1"},
	{"flush before store", "", "f:a s:a0=1 d", "a0", "0 1"},
	{"flush of another line", "", "s:a0=1 f:b d", "a0", "0 1"},
	{"fence by another task", "", "s:a0=1 f:a 2d", "a0", "0 1"},
	{"flush by another task", "", "s:a0=1 2f:a d", "a0", "0 1"},
	{"flush and fence by another task", "", "s:a0=1 2f:a 2d", "a0", "1"},
	{"each its own fence", "", "s:a0=1 f:a 2s:b0=1 2f:b 2d", "a0 b0", "01 11"},
	{"another task's fence, then one's own", "", "s:a0=1 f:a 2d d", "a0", "1"},
	{"a second fence covers nothing new", "", "s:a0=1 f:a d s:a0=2 d", "a0", "1 2"},
	{"same word", "", "s:a0=1 s:a0=2", "a0", "0 1 2"},
	{"same line in order", "", "s:a0=1 s:a1=1", "a0 a1", "00 10 11"},
	{"same line in order, right to left", "", "s:a1=1 s:a0=1", "a0 a1", "00 01 11"},
	{"same line by two tasks", "", "s:a0=1 2s:a1=1", "a0 a1", "00 10 11"},
	{"same line, back again", "", "s:a0=1 s:a1=1 s:a0=2", "a0 a1", "00 10 11 21"},
	{"different lines", "", "s:a0=1 s:b0=1", "a0 b0", "00 01 10 11"},
	{"three lines, one durable", "", "s:a0=1 s:b0=2 s:c0=3 f:b d", "a0 b0 c0",
	 "020 023 120 123"},
	{"four lines", "", "s:a0=1 s:b0=1 s:c0=1 s:d0=1 f:a f:d d", "a0 b0 c0 d0",
	 "1001 1011 1101 1111"},
	{"store between flush and fence, same word", "", "s:a0=1 f:a s:a0=2 d", "a0", "1 2"},
	{"store between flush and fence, same line", "", "s:a0=1 f:a s:a1=1 d", "a0 a1", "10 11"},
	{"flushed twice", "", "s:a0=1 f:a s:a0=2 f:a d", "a0", "2"},
	{"store after fence", "", "s:a0=1 f:a d s:a0=2", "a0", "1 2"},
	{"ordered by a fence", "", "s:a0=1 f:a d s:b0=1", "a0 b0", "10 11"},
	{"two lines, both fenced", "", "s:a0=1 s:b0=1 f:a f:b d", "a0 b0", "11"},
	{"a load persists nothing", "", "s:a0=1 t:a0 t:b0", "a0", "0 1"},
	{"time persists nothing", "", "s:a0=1 w", "a0", "0 1"},
	{"same value again", "", "s:a0=1 p:a0 s:a0=1", "a0", "1"},
	{"back to the old value", "", "s:a0=1 s:a0=0", "a0", "0 1"},
	/* Eviction. */
	{"written back", "", "s:a0=1 e:a", "a0", "1"},
	{"one of two written back", "", "s:a0=1 s:b0=1 e:b", "a0 b0", "01 11"},
	{"all written back", "", "s:a0=1 s:b0=1 s:c0=1 E", "a0 b0 c0", "111"},
	{"written back, then stored", "", "s:a0=1 e:a s:a0=2", "a0", "1 2"},
	{"written back between flush and fence", "", "s:a0=1 f:a s:a0=2 e:a s:a0=3 d", "a0", "2 3"},
	/* Copies and atomics. */
	{"memcpy is stores of words", "", "m:a0=73", "a0 a1 a2", "000 700 770 777"},
	{"memcpy, durable", "", "m:a0=73 f:a d", "a0 a1 a2", "777"},
	{"memcpy over a line's end", "", "m:a7=72", "a7 b0", "00 07 70 77"},
	{"atomic store", "", "x:a0=1", "a0", "0 1"},
	{"atomic store, durable", "", "x:a0=1 f:a d", "a0", "1"},
	{"an atomic is no fence for a flush", "", "s:a0=1 f:a x:b0=1", "a0 b0", "00 01 10 11"},
	{"fetch and add", "", "+:a0=1 +:a0=2", "a0", "0 1 3"},
	{"compare and swap", "", "c:a0=01 c:a0=02", "a0", "0 1"},
	{"compare and swap, twice done", "", "c:a0=01 c:a0=12 f:a d", "a0", "2"},
	/* The NIC where only PM survives. */
	{"nic, in the cache", "", "n:a0=1", "a0", "0 1"},
	{"nic, in the cache for long", "", "n:a0=1 w", "a0", "0 1"},
	{"nic, not landed", "", "r:a0=1 w", "a0", "0"},
	{"nic, flushed by the CPU", "", "n:a0=1 f:a d", "a0", "1"},
	{"nic after the CPU's flush", "", "s:a0=1 f:a n:a0=2 d", "a0", "1 2"},
	{"nic chunk is one version", "", "n:a0=72", "a0 a1", "00 77"},
	{"nic, lines alone", "", "n:a0=1 n:b0=1", "a0 b0", "00 01 10 11"},
	{"nic, written back", "", "n:a0=1 e:a", "a0", "1"},
	{"no ddio, pending", "ddio=off", "n:a0=1", "a0", "0 1"},
	{"no ddio, drained", "ddio=off", "n:a0=1 w", "a0", "1"},
	{"no ddio, the next one pending", "ddio=off", "n:a0=1 w n:a0=2", "a0", "1 2"},
	{"no ddio, a later CPU store does not drain", "ddio=off", "n:a0=1 s:a1=1 w", "a0 a1",
	 "10 11"},
	{"no ddio, CPU stores do not drain", "ddio=off", "s:a0=1 w", "a0", "0 1"},
	{"no ddio, two lines", "ddio=off", "n:a0=1 w n:b0=1", "a0 b0", "10 11"},
	{"no ddio, not landed", "ddio=off", "r:a0=1 w", "a0", "0"},
	/* One of two hosts loses its power; what is touched then survives as its newest version. */
	{"host fails, in flight", "", "s:a0=1 2X", "a0", "0 1"},
	{"host fails, touched", "", "s:a0=1 2X 2t:a0", "a0", "1"},
	{"host fails, stored to", "", "s:a0=1 2X 2s:a1=1", "a0 a1", "10 11"},
	{"host fails, durable before", "", "s:a0=1 f:a d 2X", "a0", "1"},
	{"host fails between flush and fence", "", "s:a0=1 f:a 2X d", "a0", "0 1"},
	{"host fails, another life flushes", "", "s:a0=1 2X 2f:a 2d", "a0", "0 1"},
	{"host fails, written back too late", "", "s:a0=1 2X E e:a", "a0", "0 1"},
	{"host fails, drained too late", "ddio=off", "n:a0=1 2X w", "a0", "0 1"},
	{"host fails, in the NIC", "", "r:a0=1 2X w", "a0", "0"},
	{"host fails, in the NIC, wsp", "domain=wsp", "r:a0=1 2X 2t:a0", "a0", "1"},
	{"host fails, in the NIC, never lands", "domain=wsp", "r:a0=1 2X 2s:a0=2", "a0", "2"},
	{"host fails, the drain of another life", "ddio=off", "n:a0=1 2X 2s:a0=2 w", "a0", "1 2"},
	{"host fails, caches survive", "domain=mhp", "s:a0=1 2X 2t:a0", "a0", "1"},
	{"host fails twice", "", "s:a0=1 2X 2t:a0 2s:a0=2 2X", "a0", "1 2"},
	{"host fails, the other's line", "", "s:c0=1 2X t:c0", "c0", "0 1"},
	{"host fails, the other's fence", "", "2s:c0=1 2f:c 2X 2d", "c0", "1"},
	{"host fails, the other's drain", "ddio=off", "n:c0=1 2X w", "c0", "1"},
	/* Where caches survive. */
	{"mhp, store", "domain=mhp", "s:a0=1", "a0", "1"},
	{"mhp, stores", "domain=mhp", "s:a0=1 s:b0=1 s:a0=2", "a0 b0", "21"},
	{"mhp, memcpy", "domain=mhp", "m:a0=72", "a0 a1", "77"},
	{"mhp, nic visible", "domain=mhp", "n:a0=1", "a0", "1"},
	{"mhp, nic not landed", "domain=mhp", "r:a0=1", "a0", "0"},
	{"mhp, landed later", "domain=mhp", "r:a0=1 l:a0=1", "a0", "1"},
	{"mhp no ddio, buffers inside", "domain=mhp ddio=off", "n:a0=1", "a0", "1"},
	{"mhp no ddio, buffers outside", "domain=mhp ddio=off iio_in_mhp=off", "n:a0=1", "a0",
	 "0 1"},
	{"mhp no ddio, buffers outside, drained", "domain=mhp ddio=off iio_in_mhp=off", "n:a0=1 w",
	 "a0", "1"},
	{"mhp no ddio, buffers outside, CPU", "domain=mhp ddio=off iio_in_mhp=off", "s:a0=1", "a0",
	 "1"},
	{"mhp no ddio, buffers outside, not landed", "domain=mhp ddio=off iio_in_mhp=off",
	 "r:a0=1 w", "a0", "0"},
	{"mhp ddio, buffers outside", "domain=mhp iio_in_mhp=off", "n:a0=1", "a0", "1"},
	/* Where NIC buffers survive. */
	{"wsp, store", "domain=wsp", "s:a0=1", "a0", "1"},
	{"wsp, nic not landed", "domain=wsp", "r:a0=1", "a0", "1"},
	{"wsp, nic landed", "domain=wsp", "n:a0=1", "a0", "1"},
	{"wsp no ddio", "domain=wsp ddio=off iio_in_mhp=off", "n:a0=1", "a0", "1"},
	{"wsp, store beside what has not landed", "domain=wsp", "r:a0=1 s:a1=1", "a0 a1", "11"},
	/* Lines cut at words. */
	{"wsp, one landed, its successor not", "domain=wsp", "r:a0=1 r:a0=2 l:a0=1", "a0", "2"},
	{"wsp, store under what has not landed", "domain=wsp", "r:a0=1 s:a0=2", "a0", "1"},
	{"torn, one word", "line_torn=prefix", "s:a0=1", "a0", "0 1"},
	{"torn, left to right", "line_torn=prefix", "s:a0=1 s:a1=1", "a0 a1", "00 10 11"},
	{"torn, right to left", "line_torn=prefix", "s:a1=1 s:a0=1", "a0 a1", "00 01 10 11"},
	{"torn over durable", "line_torn=prefix", "s:a1=1 p:a1 s:a1=2 s:a0=1", "a0 a1",
	 "01 02 11 12"},
	{"torn, last word", "line_torn=prefix", "s:a7=1 s:a0=1", "a0 a7", "00 01 10 11"},
	{"torn, memcpy", "line_torn=prefix", "m:a0=73", "a0 a1 a2", "000 700 770 777"},
	{"torn, nic chunk", "line_torn=prefix", "n:a0=72", "a0 a1", "00 70 77"},
	{"torn, nic line", "line_torn=prefix", "n:a0=78", "a0 a1 a2 a3 a4 a5 a6 a7",
	 "00000000 70000000 77000000 77700000 77770000 77777000 77777700 77777770 77777777"},
	{"torn, over any older", "line_torn=prefix", "s:a5=1 s:a0=1 s:a5=2 s:a0=2", "a0 a5",
	 "00 01 10 11 12 20 21 22"},
	{"torn, durable", "line_torn=prefix", "n:a0=78 f:a d", "a0 a7", "77"},
	{"torn, lines alone", "line_torn=prefix", "n:a0=72 s:b0=1", "a0 a1 b0",
	 "000 001 700 701 770 771"},
	{"any words, one", "line_torn=any", "s:a0=1", "a0", "0 1"},
	{"any words, one after the other", "line_torn=any", "s:a0=1 s:a1=1", "a0 a1",
	 "00 01 10 11"},
	{"any words, memcpy", "line_torn=any", "m:a0=73", "a0 a1 a2",
	 "000 007 070 077 700 707 770 777"},
	{"any words, nic", "line_torn=any", "n:a0=73", "a0 a1 a2",
	 "000 007 070 077 700 707 770 777"},
	{"any words, over any older", "line_torn=any", "s:a5=1 s:a0=1 s:a5=2", "a0 a5",
	 "00 01 02 10 11 12"},
	{"any words, one write-back", "line_torn=any", "s:a0=1 s:a1=1 s:a0=2 s:a2=1 s:a1=2",
	 "a0 a1 a2", "000 001 010 011 020 021 100 101 110 111 120 121 200 201 210 211 220 221"},
	{"any words, over durable", "line_torn=any", "s:a0=1 p:a0 s:a0=2 s:a1=1 s:a2=1", "a0 a1 a2",
	 "100 101 110 111 200 201 210 211"},
	{"any words, durable", "line_torn=any", "n:a0=78 f:a d", "a0 a7", "77"},
	{"any words, lines alone", "line_torn=any", "n:a0=72 s:b0=1", "a0 a1 b0",
	 "000 001 070 071 700 701 770 771"},
	{"any words, mhp", "line_torn=any domain=mhp", "s:a1=1 s:a0=1", "a0 a1", "11"},
	{"torn, mhp", "line_torn=prefix domain=mhp", "s:a1=1 s:a0=1", "a0 a1", "11"},
	{"torn, no ddio, drained", "line_torn=prefix ddio=off", "n:a0=72 w", "a0 a1", "77"},
};

TESTS(allowed_images, ROWS_OF(rows))
{
	const struct row *row = &rows[_i];
	const struct hardware hw = hardware(row->config);
	char images[512];
	struct walk walk;
	struct set set;
	uint64_t off = 0;

	walk_start(&walk);
	run_script(0, &hw, row->script, &walk);
	if (!strstr(row->script, "r:") || strstr(row->script, "l:"))
		ck_assert_msg(pmem_all_seen(machine[0], &off), "%s: %u not seen", row->name,
			      (unsigned)off);
	boot_images(1, &hw, &set);
	set_print(&set, row->slots, images, sizeof(images));
	ck_assert_msg(!strcmp(images, row->images), "%s: \"%s\" leaves {%s}, expected {%s}",
		      row->name, row->script, images, row->images);
	set_free(&set);
	pmem_end(machine[0]);
}

/* --- the power fails again in recovery --- */

static const struct recovery {
	const char *name, *config, *script;
	int answer;	     /* to every CHOICE_LINE of the recovery */
	const char *recover; /* its script */
	const char *slots, *images;
	unsigned undecided; /* lines that the second recovery finds undecided */
} recoveries[] = {
	{"nothing touched", "", "s:a0=1 s:b0=1", 0, "", "a0 b0", "00 01 10 11", 2},
	{"touched, newest", "", "s:a0=1 s:b0=1", 0, "t:a0", "a0 b0", "10 11", 1},
	{"touched, oldest", "", "s:a0=1 s:b0=1", 1, "t:a0", "a0 b0", "00 01", 1},
	{"another word of the line", "", "s:a0=1 s:b0=1", 0, "t:a7", "a0 b0", "10 11", 1},
	{"both touched", "", "s:a0=1 s:b0=1", 0, "t:a0 t:b0", "a0 b0", "11", 0},
	{"stored", "", "s:a0=1 s:b0=1", 0, "s:a0=2", "a0 b0", "10 11 20 21", 2},
	{"stored over the oldest", "", "s:a0=1", 1, "s:a0=2", "a0", "0 2", 1},
	{"stored, durable", "", "s:a0=1 s:b0=1", 0, "s:a0=2 p:a0", "a0 b0", "20 21", 1},
	{"stored in another line", "", "s:a0=1 s:b0=1", 0, "s:c0=1", "a0 b0 c0",
	 "000 001 010 011 100 101 110 111", 3},
	{"a flush decides nothing", "", "s:a0=1", 0, "f:a d", "a0", "0 1", 1},
	{"a middle version", "", "s:a0=1 s:a0=2", 1, "s:a1=1", "a0 a1", "10 11", 1},
	{"nic", "", "s:a0=1", 0, "n:a0=3", "a0", "1 3", 1},
	{"nic beside it", "", "s:a0=1", 1, "n:a1=3", "a0 a1", "00 03", 1},
	{"mhp recovery of what was cut", "domain=mhp ddio=off iio_in_mhp=off", "n:a0=1 n:b0=1", 1,
	 "s:a1=2", "a0 a1 b0", "020 021", 1},
	{"torn, cut decided", "line_torn=prefix", "n:a0=72", 2, "t:a0", "a0 a1", "70", 0},
	{"any words, decided", "line_torn=any", "n:a0=73", 9, "t:a0", "a0 a1 a2", "070", 0},
	{"a line that was durable", "", "s:a0=1 p:a0", 0, "s:a0=2", "a0", "1 2", 1},
};

TESTS(crash_in_recovery, ROWS_OF(recoveries))
{
	const struct recovery *row = &recoveries[_i];
	const struct hardware hw = hardware(row->config);
	uint8_t before[POOL];
	char images[512];
	struct walk walk, decided;
	struct set set;
	unsigned asked = 0;

	walk_start(&walk);
	run_script(0, &hw, row->script, &walk);
	memcpy(before, pmem_base(machine[1]), POOL);
	walk_start(&decided);
	decided.line = row->answer;
	run_script(1, &hw, row->recover, &decided);
	boot_images(2, &hw, &set);
	set_print(&set, row->slots, images, sizeof(images));
	ck_assert_msg(!strcmp(images, row->images), "%s: {%s}, expected {%s}", row->name, images,
		      row->images);
	set_free(&set);

	walk_start(&decided);
	decided.line = 0;
	run_script(2, &hw, "t:a0 t:b0 t:c0 t:d0", &decided);
	for (unsigned l = 0; l < LINES; l++)
		asked += decided.asked[l];
	ck_assert_msg(asked == row->undecided, "%s: %u lines undecided, expected %u", row->name,
		      asked, row->undecided);
	pmem_end(machine[2]);
	pmem_end(machine[1]);
	ck_assert_mem_eq(pmem_base(machine[1]), before, POOL);
	pmem_end(machine[0]);
}

/* --- random programs --- */

static unsigned pick(uint64_t *state, unsigned n)
{
	return (unsigned)(random_next(state) % n);
}

/* A random script of n operations, `lines` lines. */
static void random_script(uint64_t *state, char *buf, size_t size, unsigned n, unsigned lines)
{
	buf[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		size_t at = strlen(buf);
		char line = (char)('a' + pick(state, lines));
		unsigned word = pick(state, 2), value = pick(state, 4);
		const char *who = pick(state, 3) ? "" : "2";
		switch (pick(state, 10)) {
		case 0:
			snprintf(buf + at, size - at, "%sf:%c ", who, line);
			break;
		case 1:
			snprintf(buf + at, size - at, "%sd ", who);
			break;
		case 2:
			snprintf(buf + at, size - at, "%sp:%c%u ", who, line, word);
			break;
		case 3:
			snprintf(buf + at, size - at, "%sn:%c%u=%u%u ", who, line, word, value,
				 1 + pick(state, 2));
			break;
		case 4:
			snprintf(buf + at, size - at, "%sm:%c%u=%u2 ", who, line, word, value);
			break;
		case 5:
			snprintf(buf + at, size - at, "%s+:%c%u=1 ", who, line, word);
			break;
		default:
			snprintf(buf + at, size - at, "%ss:%c%u=%u ", who, line, word, value);
		}
	}
}

static struct hardware random_hardware(uint64_t *state)
{
	static const char *const configs[] = {"",	    "",
					      "ddio=off",   "line_torn=prefix",
					      "domain=mhp", "domain=mhp ddio=off iio_in_mhp=off",
					      "domain=wsp"};
	return hardware(configs[pick(state, ROWS_OF(configs))]);
}

/* All bytes that a machine can ever see: its image, what is durable, what is in flight. */
static unsigned snapshot(const struct pmem *pm, uint8_t *out)
{
	uint8_t *start = out;
	memcpy(out, pmem_base(pm), POOL);
	out += POOL;
	for (uint32_t l = 0; l < LINES; l++)
		for (unsigned k = 0; k <= pmem_line_versions(pm, l); k++, out += LINE)
			pmem_line_content(pm, l, k, out);
	return (unsigned)(out - start);
}

/* Nor does a machine leave anything with those before it, whose lines are in flight. */
TEST(end_undoes_everything)
{
	static uint8_t before[MACHINES][MACHINES][16384], after[16384];
	uint64_t state = 42, hash[MACHINES];
	uint8_t image[POOL];
	for (unsigned round = 0; round < 400; round++) {
		char text[300];
		struct walk walk;
		struct hardware hw = random_hardware(&state);
		for (unsigned i = 0; i < POOL; i++)
			image[i] = (uint8_t)(random_next(&state) % 5);
		pmem_load(stack, image, POOL);
		for (unsigned i = 0; i < MACHINES; i++)
			ck_assert_mem_eq(pmem_base(machine[i]), image, POOL);
		for (unsigned i = 0; i < MACHINES; i++) {
			for (unsigned m = 0; m < MACHINES; m++)
				snapshot(machine[m], before[i][m]);
			walk_start(&walk);
			walk.line = (int)pick(&state, 3);
			random_script(&state, text, sizeof(text), 12, LINES);
			run_script(i, &hw, text, &walk);
			hash[i] = pmem_images_hash(machine[i]);
			uint64_t off;
			ck_assert_msg(pmem_all_seen(machine[i], &off), "%s", text);
		}
		for (unsigned i = MACHINES; i--;) {
			pmem_end(machine[i]);
			for (unsigned m = 0; m < MACHINES; m++) {
				unsigned size = snapshot(machine[m], after);
				ck_assert_mem_eq(after, before[i][m], size);
				ck_assert(m < i || !pmem_dirty(machine[m]));
				ck_assert(m >= i || pmem_images_hash(machine[m]) == hash[m]);
			}
		}
	}
}

/* --- the name of what is possible --- */

static uint64_t hash_after(const char *config, const char *text)
{
	struct hardware hw = hardware(config);
	struct walk walk;
	walk_start(&walk);
	run_script(0, &hw, text, &walk);
	uint64_t hash = pmem_images_hash(machine[0]);
	pmem_end(machine[0]);
	return hash;
}

TEST(equal_images_equal_hash)
{
	static const char *const same[][2] = {
		{"", "s:a0=1 s:a0=0 p:a0"},
		{"", "t:a0 f:b d"},
		{"s:a0=1 s:b0=1", "s:b0=1 s:a0=1"},
		{"s:a0=1", "s:a0=1 f:a"},
		{"s:a0=1 p:a0", "s:a0=1 e:a"},
		{"s:a0=1 p:a0", "s:a0=2 s:a0=1 p:a0"},
		{"s:a0=1 p:a0", "x:a0=1 f:a d"},
		{"s:a0=1 s:a1=2 p:a0", "s:a1=2 p:a1 s:a0=1 p:a0"},
		{"s:a0=1 p:a0 s:a0=2", "s:a0=1 f:a s:a0=2 d"},
		{"s:a0=1 s:b0=1 p:a0", "s:a0=1 p:a0 s:b0=1"},
		{"m:a0=72", "s:a0=7 s:a1=7"},
		{"n:a0=1", "s:a0=1"},
		{"s:a0=1 2s:b0=2 f:a 2f:b d 2d", "s:b0=2 p:b0 s:a0=1 p:a0"},
		{"s:a0=1 s:b0=1 s:c0=1 E", "m:c0=11 s:b0=1 s:a0=1 p:a0 p:b0 p:c0"},
	};
	for (unsigned i = 0; i < ROWS_OF(same); i++)
		ck_assert_msg(hash_after("", same[i][0]) == hash_after("", same[i][1]),
			      "\"%s\" and \"%s\"", same[i][0], same[i][1]);
	ck_assert_uint_eq(hash_after("domain=mhp", "s:a0=1"), hash_after("", "s:a0=1 p:a0"));
	ck_assert_uint_eq(hash_after("ddio=off", "n:a0=1 w"), hash_after("", "s:a0=1 p:a0"));
	ck_assert_uint_eq(hash_after("domain=wsp", "r:a0=1"), hash_after("", "s:a0=1 p:a0"));
}

#define PROGRAMS 700

TEST(different_images_different_hash)
{
	static struct set set[PROGRAMS];
	static uint64_t hash[PROGRAMS];
	uint64_t state = 44;
	unsigned equal_sets = 0;
	for (unsigned p = 0; p < PROGRAMS; p++) {
		char text[300];
		struct walk walk;
		struct hardware hw = hardware(p % 2 ? "ddio=off" : "");
		walk_start(&walk);
		random_script(&state, text, sizeof(text), 1 + pick(&state, 6), 3);
		run_script(0, &hw, text, &walk);
		hash[p] = pmem_images_hash(machine[0]);
		boot_images(1, &hw, &set[p]);
		pmem_end(machine[0]);
		for (unsigned other = 0; other < p; other++) {
			if (hash[p] == hash[other])
				ck_assert_msg(set_equal(&set[p], &set[other]), "%s", text);
			equal_sets += set_equal(&set[p], &set[other]);
		}
	}
	ck_assert_uint_gt(equal_sets, 100); /* the programs are small enough to meet */
	for (unsigned p = 0; p < PROGRAMS; p++)
		set_free(&set[p]);
}

TEST(hash_of_a_recovery)
{
	/* Undecided, decided one way and the other: three states of machine 1. */
	struct hardware hw = hardware("");
	uint64_t hash[4];
	struct walk walk;
	walk_start(&walk);
	run_script(0, &hw, "s:a0=1 s:b0=1", &walk);
	for (int i = 0; i < 4; i++) {
		walk.line = i % 2;
		run_script(1, &hw, i == 2 ? "" : i == 3 ? "t:c0 f:a d" : "t:a0", &walk);
		hash[i] = pmem_images_hash(machine[1]);
		pmem_end(machine[1]);
	}
	ck_assert_uint_ne(hash[0], hash[1]);
	ck_assert_uint_ne(hash[0], hash[2]);
	ck_assert_uint_ne(hash[1], hash[2]);
	ck_assert_uint_eq(hash[2], hash[3]);
	pmem_end(machine[0]);
}

/* --- lazy equals eager --- */

/* A recovery: reads a few words, which ones depends on what it has read. */
#define READS 4
struct reader {
	uint64_t seed;
	struct pmem *pm;      /* NULL: reads `image` */
	const uint8_t *image; /* POOL bytes */
	uint64_t saw[READS];
};

static void reader_task(void *arg)
{
	struct reader *reader = arg;
	uint64_t state = reader->seed;
	for (unsigned i = 0; i < READS; i++) {
		unsigned off = pick(&state, LINES) * LINE + pick(&state, 3) * 8;
		if (reader->pm)
			__tsan_read8(pmem_base(reader->pm) + off);
		memcpy(&reader->saw[i], (reader->pm ? pmem_base(reader->pm) : reader->image) + off,
		       8);
		state += reader->saw[i] * 0x9e3779b9;
	}
}

static void add_outcome(struct set *set, const struct reader *reader)
{
	uint8_t image[POOL] = {0};
	memcpy(image, reader->saw, sizeof(reader->saw));
	set_add(set, image);
}

/* Every line that machine 0 has in flight is decided beforehand, in every way. `distinct`: leave
 * out equal contents. */
static void eager(unsigned from, uint8_t *image, struct reader *reader, bool distinct,
		  struct set *set)
{
	if (from == pmem_dirty(machine[0])) {
		reader->image = image;
		reader_task(reader);
		add_outcome(set, reader);
		return;
	}
	uint32_t l = pmem_dirty_line(machine[0], from);
	unsigned answers = pmem_line_answers(machine[0], l);
	for (unsigned k = 0; k < answers;
	     k = distinct ? pmem_line_next(machine[0], l, k + 1) : k + 1) {
		pmem_line_content(machine[0], l, k, image + l * LINE);
		eager(from + 1, image, reader, distinct, set);
	}
}

static unsigned lazy(const struct hardware *hw, uint64_t seed, struct set *set)
{
	struct walk walk;
	unsigned runs = 0;
	walk_start(&walk);
	do {
		struct reader reader = {.seed = seed, .pm = machine[1]};
		sim_reset(sims[1], &walk.source);
		pmem_begin(machine[1], sims[1], hw);
		ck_assert_int_eq(sim_spawn(sims[1], HOST_SERVER, "", reader_task, &reader), 0);
		ck_assert_int_eq(sim_run(sims[1]), SIM_IDLE);
		pmem_end(machine[1]);
		add_outcome(set, &reader);
		runs++;
	} while (walk_next(&walk));
	return runs;
}

/* One line, each answer compared with all contents before it. */
TEST(next_is_first_of_its_content)
{
	static uint8_t content[8192][LINE];
	static const char *const torn[] = {"line_torn=off", "line_torn=prefix", "line_torn=any"};
	uint64_t state = 46;
	for (unsigned round = 0; round < 90; round++) {
		struct hardware hw = hardware(torn[round % 3]);
		struct walk walk;
		char text[400];
		unsigned n = 1 + pick(&state, 6);
		for (unsigned i = 0, at = 0; i < n; i++)
			at += (unsigned)snprintf(text + at, sizeof(text) - at, "s:a%u=%u ",
						 2 * pick(&state, 4), pick(&state, 3));
		walk_start(&walk);
		run_script(0, &hw, text, &walk);
		unsigned answers = pmem_line_answers(machine[0], 0), next = 0, contents = 0;
		for (unsigned k = 0; k < answers; k++) {
			bool is_new = true;
			ck_assert_uint_lt(contents, 8192);
			pmem_line_content(machine[0], 0, k, content[contents]);
			for (unsigned other = 0; other < contents && is_new; other++)
				is_new = memcmp(content[contents], content[other], LINE);
			if (!is_new)
				continue;
			contents++;
			ck_assert_msg(next == k, "%s: %u, not %u", text, next, k);
			next = pmem_line_next(machine[0], 0, k + 1);
		}
		ck_assert_msg(next == answers, "%s: %u of %u", text, next, answers);
		pmem_end(machine[0]);
	}
}

TEST(lazy_equals_eager)
{
	uint64_t state = 45;
	unsigned lazy_runs = 0, eager_runs = 0;
	for (unsigned round = 0; round < 600; round++) {
		struct set all = {0}, distinct = {0}, lazily = {0};
		uint64_t seed = random_next(&state);
		struct reader reader = {.seed = seed};
		uint8_t image[POOL];
		char text[300];
		struct walk walk;
		struct hardware hw = random_hardware(&state);
		walk_start(&walk);
		random_script(&state, text, sizeof(text), 3 + pick(&state, hw.line_torn ? 3 : 6),
			      LINES);
		run_script(0, &hw, text, &walk);
		memcpy(image, pmem_base(machine[1]), POOL);
		eager(0, image, &reader, false, &all);
		eager(0, image, &reader, true, &distinct);
		eager_runs += all.n;
		lazy_runs += lazy(&hw, seed, &lazily);
		set_sort(&all);
		set_sort(&distinct);
		set_sort(&lazily);
		ck_assert_msg(set_equal(&lazily, &all), "%s: %u outcomes, eagerly %u", text,
			      lazily.n, all.n);
		ck_assert_msg(set_equal(&distinct, &all), "%s", text);
		set_free(&all);
		set_free(&distinct);
		set_free(&lazily);
		pmem_end(machine[0]);
	}
	ck_assert_uint_lt(lazy_runs, eager_runs);
}

/* What a host's failure leaves is what a machine could boot from that fails as a whole. */
TEST(host_loses_what_a_machine_loses)
{
	uint64_t state = 46;
	for (unsigned round = 0; round < 300; round++) {
		struct set whole = {0}, host = {0};
		struct walk walk;
		struct hardware hw = random_hardware(&state);
		char text[300], failing[330];
		hw.store_buffer = 0;
		hw.nt_buffered = false;
		random_script(&state, text, sizeof(text), 3 + pick(&state, 5), 2);
		strcat(text, round % 3 ? "" : " r:b1=6");
		snprintf(failing, sizeof(failing), "%s 2X 2t:a0 2t:b0", text);
		walk_start(&walk);
		run_script(0, &hw, text, &walk);
		boot_images(1, &hw, &whole);
		pmem_end(machine[0]);
		walk_start(&walk);
		do {
			run_script(0, &hw, failing, &walk);
			set_add(&host, pmem_base(machine[0]));
			ck_assert_uint_eq(pmem_dirty(machine[0]), 0);
			ck_assert_int_eq(memcmp(pmem_base(machine[0]), pmem_base(machine[1]), POOL),
					 0);
			pmem_end(machine[0]);
		} while (walk_next(&walk));
		set_sort(&host);
		ck_assert_msg(set_equal(&whole, &host), "%s: %u images, of a whole machine %u",
			      text, host.n, whole.n);
		set_free(&whole);
		set_free(&host);
	}
}

/* --- accesses --- */

static void run_on_machine0(void (*fn)(void *), enum sim_end end)
{
	sim_reset(sims[0], NULL);
	pmem_begin(machine[0], sims[0], &hardware_default);
	ck_assert_int_eq(sim_spawn(sims[0], HOST_SERVER, "", fn, pmem_base(machine[0])), 0);
	ck_assert_int_eq(sim_run(sims[0]), end);
}

static void wide_stores(void *arg)
{
	uint8_t *pm = arg;
	__tsan_unaligned_write8(pm + LINE - 4);
	memset(pm + LINE - 4, 1, 8); /* 4 bytes on each side */
	__tsan_write16(pm + 2 * LINE);
	memset(pm + 2 * LINE, 1, 16);
	__tsan_write_range(pm + 3 * LINE + 4, 20);
	memset(pm + 3 * LINE + 4, 1, 20);
}

TEST(only_words_are_atomic)
{
	struct pmem_version v;
	run_on_machine0(wide_stores, SIM_IDLE);
	ck_assert_uint_eq(pmem_line_versions(machine[0], 0), 1);
	ck_assert_uint_eq(pmem_line_versions(machine[0], 1), 1);
	ck_assert_uint_eq(pmem_line_versions(machine[0], 2), 2);
	ck_assert_uint_eq(pmem_line_versions(machine[0], 3), 3);
	pmem_line_version(machine[0], 1, 1, &v);
	ck_assert(v.off == 0 && v.len == 4 && !v.nic && v.pc);
	pmem_line_version(machine[0], 3, 1, &v);
	ck_assert(v.off == 4 && v.len == 4);
	pmem_line_version(machine[0], 3, 3, &v);
	ck_assert(v.off == 16 && v.len == 8 && v.data[7] == 1);
	ck_assert_str_eq(v.who->name, "server");
	pmem_end(machine[0]);
}

/* --- copies word by word --- */

/* A copy's second word is late; meanwhile another task looks. */
static unsigned second_word_late(struct source *source, const struct choice_point *at, unsigned n)
{
	return at->kind == CHOICE_STEP && at->a == STEP_STORE && at->b == 2
		       ? choice_delay_answer(CHOICE_STEP, 7)
		       : 0;
}

static const struct word_copy {
	const char *config;
	bool structure; /* stored by compiled code, not by memcpy() */
	uint64_t seen[3];
} word_copies[] = {
	{"", false, {1, 2, 3}},
	{"", true, {1, 2, 3}},
	{"copy_order=forward", false, {1, 0, 0}},
	{"copy_order=forward", true, {1, 0, 0}},
	{"copy_order=backward", false, {0, 0, 3}},
	{"copy_order=backward", true, {0, 0, 3}},
	{"copy_order=backward store_buffer=4", true, {0, 0, 3}},
};

static uint64_t seen_words[3];

static void copy_three(void *arg)
{
	const struct word_copy *copy = arg;
	uint64_t *pm = (uint64_t *)(void *)pmem_base(machine[0]), value[3] = {1, 2, 3};
	if (copy->structure) {
		__tsan_write_range(pm, sizeof(value));
		memcpy(pm, value, sizeof(value));
	} else {
		sim_memcpy(pm, value, sizeof(value));
	}
	__tsan_read8(pm + 20);
	ck_assert_mem_eq(pm, value, sizeof(value));
}

static void look_at_three(void *arg)
{
	uint64_t *pm = (uint64_t *)(void *)pmem_base(machine[0]);
	sim_sleep(sims[0], 1000000);
	__tsan_read_range(pm, sizeof(seen_words));
	memcpy(seen_words, pm, sizeof(seen_words));
}

TESTS(copy_word_by_word, ROWS_OF(word_copies))
{
	const struct word_copy *copy = &word_copies[_i];
	const struct hardware hw = hardware(copy->config);
	struct source source = {.answer = second_word_late};
	sim_reset(sims[0], &source);
	pmem_begin(machine[0], sims[0], &hw);
	ck_assert_int_eq(sim_spawn(sims[0], HOST_SERVER, "", copy_three, (void *)copy), 0);
	ck_assert_int_eq(sim_spawn(sims[0], HOST_SERVER, "looks", look_at_three, NULL), 0);
	ck_assert_int_eq(sim_run(sims[0]), SIM_IDLE);
	ck_assert_mem_eq(seen_words, copy->seen, sizeof(seen_words));
	ck_assert_uint_eq(pmem_line_versions(machine[0], 0), 3);
	pmem_end(machine[0]);
}

static void copies(void *arg)
{
	uint8_t *pm = arg, plain[POOL], elsewhere[32];
	uint64_t state = 46;
	memset(plain, 0, POOL);
	for (unsigned i = 0; i < 2000; i++) {
		size_t len = pick(&state, 100), to = pick(&state, POOL - 100),
		       from = pick(&state, POOL - 100);
		if (i % 3) {
			sim_memmove(pm + to, pm + from, len);
			memmove(plain + to, plain + from, len);
		} else {
			sim_memset(pm + to, (int)i, len);
			memset(plain + to, (int)i, len);
		}
		ck_assert_int_eq(sim_memcmp(pm, plain, POOL), 0);
	}
	sim_memcpy(elsewhere, pm, 32);
	ck_assert_mem_eq(elsewhere, plain, 32);
	sim_pmem_memcpy_persist(pm, plain + 100, 50);
	sim_pmem_memset_persist(pm + 64, 3, 50);
	sim_pmem_memcpy_nodrain(pm + 128, plain, 50);
	sim_pmem_drain();
}

TEST(copies_copy)
{
	/* As libc does it, overlapping ranges included. */
	run_on_machine0(copies, SIM_IDLE);
	ck_assert_uint_eq(pmem_line_versions(machine[0], 0), 0);
	ck_assert_uint_eq(pmem_line_versions(machine[0], 1), 0);
	ck_assert_uint_eq(pmem_line_versions(machine[0], 2), 0);
	ck_assert_uint_gt(pmem_line_versions(machine[0], 3), 0);
	pmem_end(machine[0]);
}

/* Each copy is a place: what it flushes, and its fence, can be taken away; the bytes are there. */
static void three_copies(void *arg)
{
	uint8_t *pm = arg, plain[64];
	memset(plain, 5, sizeof(plain));
	sim_pmem_memcpy_persist(pm, plain, 64);
	sim_pmem_memset_persist(pm + 64, 5, 64);
	sim_pmem_memcpy_nodrain(pm + 128, plain, 64);
	sim_pmem_drain();
	sim_pmem_memset(pm + 192, 5, 64, PMEM_F_MEM_NONTEMPORAL);
}

#define COPY_PLACES 8 /* the three that end in a fence are two each */

/* The lines that three_copies() leaves durable without a place (0: with all of them). */
static void check_copies(const char *config, uintptr_t without, const char *durable,
			 struct places_reached *reached)
{
	const struct hardware hw = hardware(config);
	const struct places_without places = {.n = without != 0, .key = {without}};
	struct walk walk;
	char lines[5] = "";

	walk_start(&walk);
	sim_reset(sims[0], &walk.source);
	sim_set_places(sims[0], &places, reached);
	pmem_begin(machine[0], sims[0], &hw);
	ck_assert_int_eq(sim_spawn(sims[0], HOST_SERVER, "", three_copies, pmem_base(machine[0])),
			 0);
	ck_assert_int_eq(sim_run(sims[0]), SIM_IDLE);
	sim_set_places(sims[0], NULL, NULL);
	for (unsigned l = 0; l < 4; l++) {
		strcat(lines, pmem_line_versions(machine[0], l) ? "-" : "d");
		for (unsigned i = 0; i < 64; i++)
			ck_assert_uint_eq(pmem_base(machine[0])[l * 64 + i], 5);
	}
	ck_assert_msg(!strcmp(lines, durable), "%s: %s, expected %s", config, lines, durable);
	pmem_end(machine[0]);
}

TESTS(copies_are_places, 2)
{
	enum { BYTES = 2048 }; /* three_copies() is not longer, with the sanitizers either */
	static const char *const without[COPY_PLACES] = {
		"dddd", "-ddd", /* the first copy's fence (the second's does it), all of it */
		"dddd", "d-dd", /* likewise */
		"dd-d", "dddd", /* no fence in the second; the drain (the last one's fence) */
		"ddd-", "ddd-",
	};
	static uintptr_t key[BYTES];
	static uint8_t bit[BYTES];
	struct places_reached reached = {.n = BYTES, .key = key, .bit = bit};
	unsigned n = 0;

	memset(bit, 0, sizeof(bit));
	for (unsigned i = 0; i < BYTES; i++)
		key[i] = (uintptr_t)three_copies + i;
	check_copies("", 0, "dddd", &reached);
	for (unsigned i = 0; i < BYTES; i++) {
		if (!bit[i])
			continue;
		ck_assert_uint_lt(n, COPY_PLACES);
		check_copies(_i ? "nt_stores=buffered" : "", key[i], without[n++], NULL);
	}
	ck_assert_uint_eq(n, COPY_PLACES);
}

static void unseen_store(void *arg)
{
	volatile uint8_t *pm = arg;
	__tsan_write8(arg);
	pm[0] = 1;
	__tsan_read8(arg);
	pm[77] = 1;
}

TEST(unseen_stores_are_found)
{
	uint64_t off = 0;
	run_on_machine0(unseen_store, SIM_IDLE);
	ck_assert(!pmem_all_seen(machine[0], &off));
	ck_assert_uint_eq(off, 77);
	pmem_base(machine[0])[77] = 0;
	ck_assert(pmem_all_seen(machine[0], &off));
	pmem_end(machine[0]);
}

static void endless_reading(void *arg)
{
	uint64_t dram = 0;
	for (;;)
		__tsan_read8(&dram);
}

TEST(endless_reading_ends)
{
	run_on_machine0(endless_reading, SIM_BUDGET);
	pmem_end(machine[0]);
}

#define MANY_LINES 8000

static void long_wipe(void *arg)
{
	sim_pmem_memset_persist(arg, 0, MANY_LINES * LINE);
}

/* Neither does it change a byte nor read one: it is no livelock all the same, and no time is passed
 * for it (core/rt/sim_repeat.c). */
TESTS(long_wipe_is_no_livelock, 3)
{
	static const char *const kind[] = {"", "nt_stores=buffered", "copy_order=forward"};
	struct pmem_stack *large = pmem_stack_new(1, MANY_LINES * LINE);
	struct pmem *pm = large ? pmem_machine(large, 0) : NULL;
	struct hardware hw = hardware(kind[_i]);

	ck_assert_ptr_nonnull(pm);
	pmem_load(large, NULL, MANY_LINES * LINE);
	sim_reset(sims[0], NULL);
	pmem_begin(pm, sims[0], &hw);
	ck_assert_int_eq(sim_spawn(sims[0], HOST_SERVER, "", long_wipe, pmem_base(pm)), 0);
	ck_assert_int_eq(sim_run(sims[0]), SIM_IDLE);
	ck_assert_uint_lt(sim_now(sims[0]), 1000000);
	pmem_end(pm);
	pmem_stack_free(large);
}

/* --- words --- */

TEST(answers_as_words)
{
	for (unsigned versions = 1; versions < 5; versions++) {
		for (unsigned k = 0; k < pmem_answers(versions, TORN_ANY); k++) {
			char text[PMEM_ANSWER_TEXT];
			pmem_answer_print(versions, k, text, sizeof(text));
			ck_assert_int_eq(pmem_answer_parse(text), (int)k);
			ck_assert_uint_eq(
				pmem_answer_join(versions, pmem_answer_split(versions, k)), k);
			ck_assert_int_eq(strstr(text, "words") != NULL,
					 k >= pmem_answers(versions, TORN_PREFIX));
		}
		char newest[PMEM_ANSWER_TEXT], expected[PMEM_ANSWER_TEXT];
		pmem_answer_print(versions, 0, newest, sizeof(newest));
		snprintf(expected, sizeof(expected), "version %u of %u", versions, versions);
		ck_assert_str_eq(newest, expected);
	}
	static const char *const wrong[] = {"",
					    "version",
					    "version 2 of 1",
					    "version 1 of 2 ",
					    "version 1 of 2 cut",
					    "version 0 of 2 cut after word 1",
					    "version 1 of 2 cut after word 8",
					    "version 1 of 2 cut after word 0",
					    "version 1 of 2 cut after word 1x",
					    "version 1 of 2 only in words",
					    "version 1 of 2 only in words ",
					    "version 1 of 2 only in words 1", /* a cut */
					    "version 1 of 2 only in words 1,2",
					    "version 1 of 2 only in words 1,2,3,4,5,6,7,8",
					    "version 1 of 2 only in words 3,1",
					    "version 1 of 2 only in words 1,1",
					    "version 1 of 2 only in words 1,9",
					    "version 1 of 2 only in words 0,3",
					    "version 1 of 2 only in words 1,3,",
					    "version 0 of 2 only in words 1,3",
					    "version 1 of 2 only in words 1,3 over version 1"};
	for (unsigned i = 0; i < ROWS_OF(wrong); i++)
		ck_assert_msg(pmem_answer_parse(wrong[i]) == -1, "\"%s\"", wrong[i]);
}

TEST(places_as_words)
{
	const struct tm_region regions[] = {{.name = "head", .off = 0, .len = 64},
					    {.name = "log", .off = 128, .len = 64}};
	char text[40];
	for (uint64_t off = 0; off < POOL; off++) {
		uint64_t back = 1;
		pmem_name(regions, 2, off, text, sizeof(text));
		ck_assert_int_eq(pmem_unname(regions, 2, text, &back), 0);
		ck_assert_uint_eq(back, off);
	}
	ck_assert_str_eq(text, "pm+0xff");
	pmem_name(regions, 2, 130, text, sizeof(text));
	ck_assert_str_eq(text, "log+0x2");
	static const char *const wrong[] = {"",		"log",	  "log+2", "log+0x",
					    "log+0x40", "lo+0x1", "+0x1",  "log+0x1 "};
	for (unsigned i = 0; i < ROWS_OF(wrong); i++) {
		uint64_t off;
		ck_assert_msg(pmem_unname(regions, 2, wrong[i], &off) == -EINVAL, "\"%s\"",
			      wrong[i]);
	}
}

TEST(save_and_owns)
{
	uint8_t image[POOL];
	struct walk walk;
	uint64_t off = 99;
	struct hardware hw = hardware("");
	walk_start(&walk);
	run_script(0, &hw, "s:a0=1 n:b0=2", &walk);
	pmem_save(machine[0], image);
	pmem_end(machine[0]);
	pmem_load(stack, image, POOL);
	for (unsigned i = 0; i < MACHINES; i++)
		ck_assert(pmem_base(machine[i])[0] == 1 && pmem_base(machine[i])[LINE] == 2);
	uint8_t *base = pmem_base(machine[0]);
	ck_assert(pmem_owns(machine[0], base + 5, POOL - 5, &off) && off == 5);
	ck_assert(!pmem_owns(machine[0], base + 5, POOL - 4, &off));
	ck_assert(!pmem_owns(machine[0], base - 1, 1, &off));
	ck_assert(!pmem_owns(machine[0], base, SIZE_MAX, &off));
}

RUN_TESTS(setup, teardown)
