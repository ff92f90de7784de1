/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cell is a campaign of one store, one configuration and one workload, searched
 * systematically. DUR broken is "L": an update that was reported durable is gone. FSCK broken
 * is "O" for a compound update: the store's check found the tail ahead of a record that is not
 * intact. The process that searches a cell also shrinks what it found, and hands the text of
 * the trace to its parent, which alone writes files.
 */
#include "checker/models/taxonomy.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "checker/campaign/driver.h"
#include "checker/trace/shrink.h"
#include "checker/trace/trace.h"
#include "checker/trace/wrong.h"
#include "scenarios/stores.h"

/* --- methods --- */

unsigned taxonomy_methods(void)
{
	unsigned n = method_store()->methods->methods;
	assert(n <= TAXONOMY_METHODS);
	return n;
}

const char *taxonomy_method(unsigned method)
{
	assert(method < taxonomy_methods());
	return method_store()->methods->method[method].name;
}

int taxonomy_find_method(const char *name)
{
	unsigned n = taxonomy_methods();
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(taxonomy_method(i), name))
			return (int)i;
	return -ENOENT;
}

/* --- cells --- */

static bool has_variant(const char *name)
{
	for (const struct tm_variant *v = method_store()->variants; v->name; v++)
		if (!strcmp(v->name, name))
			return true;
	return false;
}

/* Set the options' switches. *bad: which of them is wrong. */
static int set_knobs(const struct taxonomy_options *o, struct setup *s, unsigned *bad,
		     const char **expected)
{
	for (*bad = 0; *bad < o->knobs.knobs; (*bad)++) {
		if (setup_switch(s, o->knobs.knob[*bad], expected))
			return -EINVAL;
		if (s->hw.ddio == DDIO_ANY) { /* the papers' tables have no such column */
			*expected = "on off";
			return -EINVAL;
		}
	}
	return 0;
}

void taxonomy_setup(const struct taxonomy *t, const struct taxonomy_cell *cell, struct setup *s)
{
	const char *method = taxonomy_method(cell->method), *expected;
	unsigned bad;
	setup_init(s, method_store());
	if (has_variant(method))
		setup_variant(s, method);
	else
		setup_knob(s, "method", method, &expected);
	taxonomy_hardware(&s->hw, cell->column, cell->transport);
	int error = set_knobs(&t->options, s, &bad, &expected);
	assert(!error); /* taxonomy_open() has tried */
	(void)error;
}

static bool is_wanted(const struct taxonomy *t, const struct taxonomy_cell *cell)
{
	struct setup s;
	taxonomy_setup(t, cell, &s);
	return taxonomy_column(&s.hw) == cell->column && s.hw.transport == cell->transport;
}

unsigned taxonomy_name_hardware(const char **knob, unsigned knobs, unsigned room)
{
	static const char *const all[] = {"domain=dmp", "ddio=on", "rqwrb=dram", "transport=ib"};
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]) && knobs < room; i++) {
		size_t name = strcspn(all[i], "=") + 1;
		bool named = false;
		for (unsigned k = 0; k < knobs; k++)
			named |= !strncmp(knob[k], all[i], name);
		if (!named)
			knob[knobs++] = all[i];
	}
	return knobs;
}

int taxonomy_open(struct taxonomy *t, const struct taxonomy_options *options, uint64_t methods,
		  unsigned *bad, const char **expected)
{
	struct setup s;
	unsigned n = taxonomy_methods();
	memset(t, 0, sizeof(*t));
	t->options = *options;
	setup_init(&s, method_store());
	if (set_knobs(options, &s, bad, expected))
		return -EINVAL;
	t->cell = calloc((size_t)n * TAXONOMY_COLUMNS * TAXONOMY_TRANSPORTS, sizeof(*t->cell));
	t->todo = calloc((size_t)n * TAXONOMY_COLUMNS * TAXONOMY_TRANSPORTS, sizeof(*t->todo));
	if (!t->cell || !t->todo)
		return -ENOMEM;
	for (unsigned transport = 0; transport < TAXONOMY_TRANSPORTS; transport++) {
		for (unsigned m = 0; m < n; m++) {
			for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
				struct taxonomy_cell *cell = &t->cell[t->cells];
				cell->method = (uint8_t)m;
				cell->column = (uint8_t)c;
				cell->transport = (uint8_t)transport;
				t->cells += methods >> m & 1 && is_wanted(t, cell);
			}
		}
	}
	return 0;
}

void taxonomy_close(struct taxonomy *t)
{
	free(t->cell);
	free(t->todo);
	memset(t, 0, sizeof(*t));
}

const struct taxonomy_cell *taxonomy_at(const struct taxonomy *t, unsigned method, unsigned column,
					unsigned transport)
{
	for (unsigned i = 0; i < t->cells; i++) {
		const struct taxonomy_cell *cell = &t->cell[i];
		if (cell->method == method && cell->column == column &&
		    cell->transport == transport)
			return cell;
	}
	return NULL;
}

/* --- measuring one --- */

/* What one process needs for one cell. */
struct measuring {
	struct campaign campaign;
	struct campaign_config config;
	struct workload workload;
	struct campaign_unit unit;
	struct campaign_unit known[TM_CONTRACTS]; /* the search in which it broke */
	unsigned broken;			  /* TM_BIT()s */
};

static void begin(const struct taxonomy *t, const struct taxonomy_cell *cell, struct measuring *m)
{
	struct campaign_options *o = &m->campaign.options;
	memset(m, 0, sizeof(*m));
	m->config.store = method_store();
	m->config.share.one_in = 1;
	taxonomy_setup(t, cell, &m->config.setup);
	m->workload = *t->options.workload; /* only read */
	m->campaign.config = &m->config;
	m->campaign.workload = &m->workload;
	m->campaign.configs = m->campaign.workloads = 1;
	m->campaign.unit = &m->unit;
	*o = campaign_default;
	campaign_search_all(o);
	o->states = t->options.states;
	o->preemptions = t->options.preemptions;
}

/*
 * Search until nothing is left that can still go wrong, or to the end: what is lost already need
 * not be lost in all other ways, too. So a cell that is sound, and one that breaks in one way only,
 * are searched to the end.
 */
static void search(const struct taxonomy *t, const struct taxonomy_cell *cell, struct measuring *m,
		   struct taxonomy_result *r)
{
	unsigned left = TM_BIT(TM_DUR) | (taxonomy_append(t, cell)->compound ? TM_BIT(TM_FSCK) : 0);
	for (bool again = true; again && !m->unit.error;) {
		memset(&m->unit, 0, sizeof(m->unit));
		wrong_explore(&m->campaign, 0, left, &m->unit, NULL);
		again = false;
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			if (!m->unit.contract[k].found || m->broken & TM_BIT(k))
				continue;
			m->known[k] = m->unit;
			m->broken |= TM_BIT(k);
			again |= left & TM_BIT(k);
		}
		left &= ~m->broken;
		again &= left != 0;
		r->states += m->unit.counts.states;
		r->runs += m->unit.counts.runs;
		r->spared += m->unit.counts.spared;
	}
	r->exhaustive = m->unit.complete && !m->unit.counts.points_bounded &&
			!m->unit.counts.unsure;
	r->complete = !left || r->exhaustive;
}

/* A way to break the contract, and in words how; to be freed in any case. */
static int find_again(struct measuring *m, const struct taxonomy_break *broken,
		      struct broken_run *run)
{
	const struct campaign_break which = {
		.contract = broken->contract,
		.mode = {m->known[broken->contract].contract[broken->contract].run,
			 FAILURE_MODE_ANYTHING}};
	m->unit = m->known[broken->contract];
	return campaign_again(&m->campaign, &which, run);
}

static void keep_words(struct taxonomy_break *broken, const char *text)
{
	snprintf(broken->text, sizeof(broken->text), "%.*s", (int)sizeof(broken->text) - 1, text);
}

/* Free the run of a break; save it first if the tree of recoveries was wrong about it. */
static int done_with(struct measuring *m, struct broken_run *run, int error)
{
	if (error == -ENOTRECOVERABLE)
		wrong_save(&run->setup, &run->path, run->text, m->unit.why, sizeof(m->unit.why));
	broken_run_free(run);
	return error;
}

/* Describe the break without a trace. */
static int keep_how(struct measuring *m, struct taxonomy_break *broken)
{
	struct broken_run run;
	int error = find_again(m, broken, &run);
	if (!error)
		keep_words(broken, run.text);
	return done_with(m, &run, error);
}

/* Print the trace, and replace what is known of the break by what is in it. */
static int print_trace(struct measuring *m, struct taxonomy_break *broken, FILE *out)
{
	struct broken_run run;
	int error = find_again(m, broken, &run);
	if (!error)
		error = broken_run_shrink(&run, broken->contract, &broken->whole);
	if (!error)
		error = trace_write(out, &run.setup, &run.path, broken->contract, run.text);
	if (!error && fflush(out))
		error = -errno;
	if (!error)
		keep_words(broken, run.text);
	return done_with(m, &run, error);
}

/* Into the result, if it fits. */
static int keep_trace(struct measuring *m, struct taxonomy_break *broken)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int error = out ? print_trace(m, broken, out) : -ENOMEM;
	if (out && fclose(out) && !error)
		error = -ENOMEM;
	if (!error && len < sizeof(broken->trace))
		memcpy(broken->trace, text, len + 1);
	free(text);
	return error;
}

int taxonomy_trace(const struct taxonomy *t, const struct taxonomy_cell *cell,
		   struct taxonomy_break *broken, FILE *out)
{
	struct measuring *m = malloc(sizeof(*m));
	struct taxonomy_result again = {0};
	if (!m)
		return -ENOMEM;
	begin(t, cell, m);
	search(t, cell, m, &again);
	int error = m->unit.error ? m->unit.error : print_trace(m, broken, out);
	free(m);
	return error;
}

static unsigned verdict_of(const struct taxonomy *t, const struct taxonomy_cell *cell,
			   unsigned contract)
{
	if (contract == TM_DUR)
		return TAXONOMY_LOST;
	return contract == TM_FSCK && taxonomy_append(t, cell)->compound ? TAXONOMY_DISORDERED
									 : TAXONOMY_OTHER;
}

/* What broke, worst first. */
static void judge(const struct taxonomy *t, const struct taxonomy_cell *cell, struct measuring *m,
		  struct taxonomy_result *r)
{
	static const uint8_t order[TAXONOMY_BREAKS] = {TM_DUR, TM_FSCK, TM_RDA};
	for (unsigned i = 0; i < TAXONOMY_BREAKS; i++) {
		struct taxonomy_break *broken = &r->broken[r->breaks];
		if (!(method_store()->promises & m->broken & TM_BIT(order[i])))
			continue;
		r->verdict |= (uint8_t)verdict_of(t, cell, order[i]);
		r->breaks++;
		broken->contract = order[i];
		if (!r->error)
			r->error = t->options.traces ? keep_trace(m, broken) : keep_how(m, broken);
	}
}

static void measure(const struct taxonomy *t, const struct taxonomy_cell *cell,
		    struct taxonomy_result *r)
{
	struct measuring *m = malloc(sizeof(*m));
	r->measured = true;
	r->error = -ENOMEM;
	if (m) {
		begin(t, cell, m);
		search(t, cell, m, r);
		r->error = m->unit.error;
		judge(t, cell, m, r);
		snprintf(r->why, sizeof(r->why), "%.*s", (int)sizeof(r->why) - 1, m->unit.why);
	}
	if (r->error && !*r->why)
		snprintf(r->why, sizeof(r->why), "%s", strerror(-r->error));
	free(m);
}

/* --- measuring all --- */

static void work(void *arg, unsigned unit, void *result)
{
	const struct taxonomy *t = arg;
	measure(t, &t->cell[t->todo[unit]], result);
}

static void take_result(void *arg, unsigned unit, const void *result)
{
	struct taxonomy *t = arg;
	struct taxonomy_result *to = &t->cell[t->todo[unit]].result;
	memcpy(to, result, sizeof(*to));
	t->states += to->states;
	t->runs += to->runs;
	t->spared += to->spared;
	if (t->options.taken)
		t->options.taken(t->options.taken_arg, &t->cell[t->todo[unit]]);
}

static int run_todo(struct taxonomy *t)
{
	struct driver driver = {.units = t->todos,
				.how = t->options.how,
				.result_bytes = sizeof(struct taxonomy_result),
				.work = work,
				.take = take_result,
				.states_at = DRIVER_FIELD(struct taxonomy_result, states),
				.error_at = DRIVER_FIELD(struct taxonomy_result, error),
				.progress_arg = "cell",
				.arg = t};
	_Static_assert(sizeof(struct taxonomy_result) <= DRIVER_RESULT_MAX,
		       "a result is one message");
	return t->todos ? driver_run(&driver) : 0;
}

int taxonomy_run(struct taxonomy *t)
{
	for (t->todos = 0; t->todos < t->cells; t->todos++)
		t->todo[t->todos] = t->todos;
	return run_todo(t);
}

/* --- choosing --- */

const struct append_method *taxonomy_append(const struct taxonomy *t,
					    const struct taxonomy_cell *cell)
{
	struct setup s;
	taxonomy_setup(t, cell, &s);
	return method_of(&s.params);
}

void taxonomy_acts(const struct taxonomy *t, const struct taxonomy_cell *cell, struct acts *out)
{
	struct setup s;
	taxonomy_setup(t, cell, &s);
	method_acts(&s.params, &s.hw, workload_max_vlen(t->options.workload), out);
}

struct method_cost taxonomy_cost(const struct taxonomy *t, const struct taxonomy_cell *cell)
{
	struct acts acts;
	taxonomy_acts(t, cell, &acts);
	return method_cost(&acts);
}

/* TAXONOMY_PRIMITIVES: all that cards have. */
static bool is_of(const struct append_method *method, enum taxonomy_primitive primitive)
{
	enum taxonomy_primitive p = method_primitive(method);
	return primitive == TAXONOMY_PRIMITIVES ? p != TAXONOMY_COMMIT : p == primitive;
}

/* The next method of a kind on this hardware, from *m on; NULL: there is none. */
static const struct taxonomy_cell *next_of_kind(const struct taxonomy *t, bool compound,
						enum taxonomy_primitive primitive, unsigned column,
						unsigned transport, unsigned *m)
{
	while (*m < taxonomy_methods()) {
		const struct taxonomy_cell *cell = taxonomy_at(t, (*m)++, column, transport);
		const struct append_method *rl = cell ? taxonomy_append(t, cell) : NULL;
		if (rl && rl->compound == compound && is_of(rl, primitive))
			return cell;
	}
	return NULL;
}

static bool is_sound(const struct taxonomy_cell *cell)
{
	const struct taxonomy_result *r = &cell->result;
	return r->measured && !r->verdict && !r->error && r->complete;
}

/* The cheapest one not measured yet; NULL: there is none, or a sound one was measured. */
static const struct taxonomy_cell *next_to_try(const struct taxonomy *t, bool compound,
					       enum taxonomy_primitive primitive, unsigned column,
					       unsigned transport)
{
	const struct taxonomy_cell *best = NULL, *cell;
	struct method_cost least = {0}, cost;
	for (unsigned m = 0;
	     (cell = next_of_kind(t, compound, primitive, column, transport, &m));) {
		if (is_sound(cell))
			return NULL;
		cost = taxonomy_cost(t, cell);
		if (cell->result.measured || (best && method_cost_compare(&cost, &least) >= 0))
			continue;
		best = cell;
		least = cost;
	}
	return best;
}

int taxonomy_run_cheapest(struct taxonomy *t, unsigned column, unsigned transport)
{
	int error = 0;
	do {
		t->todos = 0;
		for (unsigned k = 0; k < 2 * TAXONOMY_PRIMITIVES; k++) {
			enum taxonomy_primitive p = (enum taxonomy_primitive)(k %
									      TAXONOMY_PRIMITIVES);
			const struct taxonomy_cell *cell = next_to_try(t, k / TAXONOMY_PRIMITIVES,
								       p, column, transport);
			if (cell)
				t->todo[t->todos++] = (unsigned)(cell - t->cell);
		}
		error = run_todo(t);
	} while (!error && t->todos);
	return error;
}

const struct taxonomy_cell *taxonomy_cheapest(const struct taxonomy *t, bool compound,
					      enum taxonomy_primitive primitive, unsigned column,
					      unsigned transport,
					      const struct taxonomy_cell **cheaper)
{
	const struct taxonomy_cell *best = NULL, *next = NULL, *cell;
	struct method_cost least = {0}, most = {0}, cost;
	for (unsigned m = 0;
	     (cell = next_of_kind(t, compound, primitive, column, transport, &m));) {
		cost = taxonomy_cost(t, cell);
		if (!is_sound(cell) || (best && method_cost_compare(&cost, &least) >= 0))
			continue;
		best = cell;
		least = cost;
	}
	for (unsigned m = 0;
	     (cell = next_of_kind(t, compound, primitive, column, transport, &m));) {
		cost = taxonomy_cost(t, cell);
		if (!cell->result.measured || (best && method_cost_compare(&cost, &least) >= 0) ||
		    (next && method_cost_compare(&cost, &most) <= 0))
			continue;
		next = cell;
		most = cost;
	}
	if (cheaper)
		*cheaper = best ? next : NULL;
	return best;
}
