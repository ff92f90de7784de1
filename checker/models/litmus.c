/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running litmus tests.
 *
 * All locations of all hosts lie in one pool of the persistence model, also those in DRAM: no
 * condition asks what of them survives. Each thread is a task and each statement one of its events;
 * queue pairs connect the hosts' RNICs. Everything is the soft RNIC and the persistence model that
 * stores run on; dpor.c finds the runs that differ.
 *
 * What is looked at: at a run's end, when all threads have ended and nothing is under way,
 * registers and memory (a final outcome). And, if a condition asks what is left by a power failure,
 * after each event that changes what can be left, or a register that is asked about together with
 * it: each combination of what the lines can hold then (crash outcomes). That a line may drain or
 * be evicted needs no event: what is in flight may be left anyway, and what is durable only makes
 * outcomes fewer.
 */
#include "checker/models/litmus_search.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"

const struct litmus_limits litmus_default = {.runs = 20000000};

/* --- outcomes --- */

static int compare_values(const uint64_t *a, const uint64_t *b)
{
	for (unsigned i = 0; i < LITMUS_OBSERVED; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static bool decides(const struct litmus_test *test, const struct litmus_condition *condition,
		    const uint64_t *value)
{
	return litmus_holds(test, condition, value) == (condition->quantifier != LITMUS_FORALL);
}

/* Keep this run if it is the shortest that decides what is wanted. */
static void keep_witness(struct litmus_search *p, const uint64_t *value)
{
	unsigned length = 1 + dpor_length(&p->dpor);
	if ((p->shortest && length >= p->shortest) || !decides(p->test, p->wanted, value))
		return;
	p->shortest = length;
	memcpy(p->witness, value, sizeof(p->witness));
	dpor_save(&p->dpor);
}

/* Count an outcome, to which so many ways lead from here. */
static void add_outcome(struct litmus_search *p, struct litmus_outcomes *to, const uint64_t *value,
			uint64_t ways)
{
	unsigned low = 0, high = to->n;
	if (p->wanted && p->wanted->crash == (to == &p->out->crash))
		keep_witness(p, value);
	while (low < high) {
		unsigned mid = (low + high) / 2;
		int c = compare_values(to->outcome[mid].value, value);
		if (!c) {
			to->outcome[mid].count += ways;
			return;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (!ARRAY_RESERVE(to->outcome, to->n, 1, to->room)) {
		p->failed = true;
		return;
	}
	memmove(&to->outcome[low + 1], &to->outcome[low], (to->n - low) * sizeof(to->outcome[0]));
	memcpy(to->outcome[low].value, value, sizeof(to->outcome[low].value));
	to->outcome[low].count = ways;
	to->n++;
}

static uint64_t place_off(const struct litmus_test *test, const struct litmus_place *place)
{
	return test->location[place->location].off + 8ull * place->word;
}

static void registers(const struct litmus_search *p, bool learnt, uint64_t *value)
{
	for (unsigned i = 0; i < p->test->observeds; i++) {
		const struct litmus_place *place = &p->test->observed[i];
		if (place->what == LITMUS_REGISTER &&
		    (!learnt || p->learns[place->thread][place->reg]))
			value[i] = p->running[place->thread].reg[place->reg];
	}
}

static void final_outcome(struct litmus_search *p)
{
	uint64_t value[LITMUS_OBSERVED] = {0};
	registers(p, false, value);
	for (unsigned i = 0; i < p->test->observeds; i++)
		if (p->test->observed[i].what == LITMUS_MEMORY)
			memcpy(&value[i],
			       pmem_base(p->pm) + place_off(p->test, &p->test->observed[i]), 8);
	add_outcome(p, &p->out->final, value, 1);
}

static bool is_left_of(const struct litmus_search *p, unsigned observed, unsigned i)
{
	const struct litmus_place *place = &p->test->observed[observed];
	return place->what == LITMUS_CRASH && place_off(p->test, place) / LINE == p->line[i];
}

static void add_left(struct litmus_search *p, unsigned i, const uint64_t *value)
{
	for (unsigned k = p->lefts; k-- > p->left_from[i];)
		if (!compare_values(p->left[k].value, value)) {
			p->left[k].ways++;
			return;
		}
	if (!ARRAY_RESERVE(p->left, p->lefts, 1, p->left_room)) {
		p->failed = true;
		return;
	}
	memcpy(p->left[p->lefts].value, value, sizeof(p->left[0].value));
	p->left[p->lefts++].ways = 1;
}

/* What this choice for the i-th line leaves. */
static void read_left(const struct litmus_search *p, unsigned i, unsigned answer, uint64_t *value)
{
	uint8_t content[LINE];

	pmem_line_content(p->pm, p->line[i], answer, content);
	for (unsigned o = 0; o < p->test->observeds; o++)
		if (is_left_of(p, o, i))
			memcpy(&value[o],
			       content + place_off(p->test, &p->test->observed[o]) % LINE, 8);
}

/* Most choices for a line leave the same in the few words that are asked about, and the lines'
 * choices multiply: so find each line's different values first. */
static void find_left(struct litmus_search *p)
{
	p->lefts = 0;
	for (unsigned i = 0; i < p->lines; i++) {
		unsigned answers = pmem_line_answers(p->pm, p->line[i]);
		p->left_from[i] = p->lefts;
		for (unsigned k = 0; k < answers; k = pmem_line_next(p->pm, p->line[i], k + 1)) {
			uint64_t value[LITMUS_OBSERVED] = {0};
			read_left(p, i, k, value);
			add_left(p, i, value);
		}
	}
	p->left_from[p->lines] = p->lefts;
}

/* What is left of the lines from the i-th on, in all ways. */
static void left_of(struct litmus_search *p, unsigned i, uint64_t *value, uint64_t ways)
{
	if (i == p->lines) {
		add_outcome(p, &p->out->crash, value, ways);
		return;
	}
	for (unsigned k = p->left_from[i]; k < p->left_from[i + 1]; k++) {
		for (unsigned o = 0; o < p->test->observeds; o++)
			if (is_left_of(p, o, i))
				value[o] = p->left[k].value[o];
		left_of(p, i + 1, value, ways * p->left[k].ways);
	}
}

/* The power fails here. */
static void crash_outcomes(void *arg)
{
	struct litmus_search *p = arg;
	uint64_t value[LITMUS_OBSERVED] = {0};
	if (!p->crashes)
		return;
	registers(p, true, value);
	find_left(p);
	left_of(p, 0, value, 1);
}

/* --- what events have to do with each other --- */

/* Bytes are looked at, or change. */
static void bytes_touched(struct litmus_search *p, enum touch what, uint64_t where, uint64_t len)
{
	bool writes = what == TOUCH_WRITE || what == TOUCH_SHOW;
	if (writes || what == TOUCH_READ)
		dpor_touch(&p->dpor, writes ? DPOR_WRITE : DPOR_READ, where, len);
}

/* What can be left of a line that is asked about changes. */
static void left_touched(struct litmus_search *p, enum touch what)
{
	if (what == TOUCH_WRITE || what == TOUCH_ARRIVE)
		dpor_touch(&p->dpor, DPOR_GROW, 0, 0);
	if (what == TOUCH_COMMIT || what == TOUCH_ARRIVE)
		dpor_touch(&p->dpor, DPOR_SHRINK, 0, 0);
}

static void memory_touched(void *arg, enum touch what, uint64_t where, uint64_t len)
{
	struct litmus_search *p = arg;
	if (!p->crashes) {
		bytes_touched(p, what, where, len);
		return;
	}
	for (uint64_t end = where + len, part; where < end; where += part) {
		uint64_t l = where / LINE;
		part = (l + 1) * LINE < end ? (l + 1) * LINE - where : end - where;
		if (!p->keeps[l]) {
			bytes_touched(p, what, where, part);
			continue;
		}
		/* The order of a line's stores is the order in which they may be left. */
		bytes_touched(p, what, l * LINE, LINE);
		left_touched(p, what);
	}
}

/* --- one run --- */

/*
 * An await looks once. If it would be satisfied now, it was too early: another run is this one with
 * a later look.
 */
static bool looked_too_early(struct litmus_search *p)
{
	for (unsigned t = 0; t < p->test->threads; t++) {
		struct running_thread *me = &p->running[t];
		uint64_t now;
		if (!me->missed || litmus_is_dead(p, t))
			continue;
		memcpy(&now, pmem_base(p->pm) + litmus_range_off(p, &me->missed->from),
		       sizeof(now));
		if (now == litmus_evaluate(me, &me->missed->expr))
			return true;
	}
	return false;
}

static void one_run(void *arg)
{
	struct litmus_search *p = arg;
	unsigned ended = 0;
	for (unsigned t = 0; t < p->test->threads; t++) {
		p->running[t].ended = false;
		p->running[t].missed = NULL;
		memset(p->running[t].reg, 0, sizeof(p->running[t].reg));
	}
	sim_reset(p->sim, NULL);
	pmem_begin(p->pm, p->sim, &p->test->hw);
	pmem_set_regions(p->pm, p->region, p->test->locations);
	p->steps = 0;
	sim_spawn(p->sim, HOST_SERVER, "", litmus_boot, p);
	sim_run(p->sim);
	dpor_end_event(&p->dpor);
	for (unsigned t = 0; t < p->test->threads; t++)
		ended += p->running[t].ended || litmus_is_dead(p, t);
	if (!p->dpor.redundant && ended == p->test->threads)
		final_outcome(p);
	else if (!p->dpor.redundant && !looked_too_early(p))
		p->out->blocked++;
	pmem_end(p->pm);
}

/* --- the test --- */

/* What is asked about. */
static void look_through(struct litmus_search *p)
{
	const struct litmus_test *test = p->test;
	bool belongs[LITMUS_OBSERVED];
	litmus_places(test, true, belongs);
	for (unsigned i = 0; i < test->observeds; i++)
		p->crashes |= test->observed[i].what == LITMUS_CRASH;
	for (unsigned i = 0; i < test->observeds; i++) {
		const struct litmus_place *place = &test->observed[i];
		uint64_t off = place_off(test, place);
		if (place->what == LITMUS_REGISTER && belongs[i] && p->crashes)
			p->learns[place->thread][place->reg] = true;
		if (place->what != LITMUS_CRASH || p->keeps[off / LINE])
			continue;
		p->keeps[off / LINE] = true;
		p->line[p->lines++] = (uint32_t)(off / LINE);
	}
}

static int open_play(struct litmus_search *p, const struct litmus_test *test,
		     const struct litmus_limits *limits, struct litmus_result *out)
{
	memset(out, 0, sizeof(*out));
	p->test = test;
	p->out = out;
	p->sim = sim_new();
	p->stack = pmem_stack_new(1, test->pool_bytes);
	p->image = calloc(1, test->pool_bytes);
	if (!p->sim || !p->stack || !p->image)
		return -ENOMEM;
	for (unsigned l = 0; l < test->locations; l++)
		memcpy(p->image + test->location[l].off, test->location[l].initial,
		       8u * test->location[l].words);
	pmem_load(p->stack, p->image, test->pool_bytes);
	p->pm = pmem_machine(p->stack, 0);
	for (unsigned t = 0; t < test->threads; t++) {
		p->running[t].search = p;
		p->running[t].thread = t;
		snprintf(p->running[t].name, sizeof(p->running[t].name), "P%u", t);
	}
	for (unsigned l = 0; l < test->locations; l++)
		p->region[l] = (struct tm_region){test->location[l].name, test->location[l].off,
						  8u * test->location[l].words};
	look_through(p);
	p->dpor.sim = p->sim;
	p->dpor.whole = limits->whole;
	p->dpor.max_runs = limits->runs;
	p->dpor.touched = memory_touched;
	p->dpor.after = crash_outcomes;
	p->dpor.begins = litmus_trace_event;
	p->dpor.arg = p;
	return dpor_open(&p->dpor);
}

static void close_play(struct litmus_search *p)
{
	dpor_close(&p->dpor);
	sim_free(p->sim);
	pmem_stack_free(p->stack);
	free(p->image);
	free(p->left);
	free(p);
}

static void judge(const struct litmus_test *test, struct litmus_result *out)
{
	for (unsigned c = 0; c < test->conditions; c++) {
		const struct litmus_condition *condition = &test->condition[c];
		const struct litmus_outcomes *over = condition->crash ? &out->crash : &out->final;
		bool satisfied = false, violated = false;
		for (unsigned i = 0; i < over->n; i++) {
			bool holds = litmus_holds(test, condition, over->outcome[i].value);
			satisfied |= holds;
			violated |= !holds;
		}
		out->condition[c].satisfied = satisfied;
		out->condition[c].violated = violated;
		out->condition[c].holds = condition->quantifier == LITMUS_EXISTS  ? satisfied
					  : condition->quantifier == LITMUS_NEVER ? !satisfied
										  : !violated;
	}
}

int litmus_run(const struct litmus_test *test, const struct litmus_limits *limits,
	       struct litmus_result *out)
{
	struct litmus_search *p = calloc(1, sizeof(*p));
	if (!p) {
		memset(out, 0, sizeof(*out));
		return -ENOMEM;
	}
	int rc = open_play(p, test, limits, out);
	if (!rc) {
		dpor_search(&p->dpor, one_run);
		out->runs = p->dpor.runs;
		out->complete = p->dpor.complete;
		if (p->failed || p->dpor.failed)
			rc = -ENOMEM;
		judge(test, out);
	}
	close_play(p);
	return rc;
}

int litmus_witness(const struct litmus_test *test, const struct litmus_limits *limits, unsigned c,
		   void (*line)(void *arg, const char *text), void *arg)
{
	struct litmus_result result;
	struct litmus_search *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	int rc = open_play(p, test, limits, &result);
	if (!rc) {
		p->wanted = &test->condition[c];
		dpor_search(&p->dpor, one_run);
		p->wanted = NULL;
		if (p->failed || p->dpor.failed)
			rc = -ENOMEM;
		else if (!p->shortest)
			rc = -ENOENT;
	}
	if (!rc) {
		p->say = line;
		p->say_arg = arg;
		dpor_rerun(&p->dpor, one_run);
		litmus_trace_end(p, &test->condition[c]);
	}
	litmus_result_free(&result);
	close_play(p);
	return rc;
}

void litmus_result_free(struct litmus_result *result)
{
	free(result->final.outcome);
	free(result->crash.outcome);
}
