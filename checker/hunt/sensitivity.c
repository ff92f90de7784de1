/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See claims.h. Breaks and cures are two cases of a claim, one that must fail and one that
 * must pass. For inert values each store is explored without any knob first, all workloads; then,
 * line by line, with it. Where a verdict differs, the side that held is explored for longer.
 */
#include "checker/hunt/claims.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/campaign/driver.h"
#include "checker/hunt/plan.h"
#include "checker/trace/wrong.h"
#include "core/text/text.h"
#include "scenarios/stores.h"

#define LONGER	     8 /* the side that holds runs so many times as often as the other one took */
#define SURELY	     32 /* likewise of an inert value: a break of one run in hundreds may come early */
#define BASES	     2
#define INERT_RUNS   40	  /* of each workload, inert value, store and base */
#define PLAIN_TIMES  3	  /* times that: without any knob */
#define PLAIN_STATES 1500 /* of a workload and base, at most */

/* So many differences of an inert value are examined longer, at most, where it breaks a contract,
 * and as many where it cures one. */
#define CANDIDATES 8
#define OFTEN	   4 /* states that break, in LONGER times as many runs: no chance */

static const char *const base_name[BASES] = {"default", "ack_early=off"};

/*
 * An inert value is looked at twice: with power failures; and without any, so that many more
 * schedules are had for the same time.
 */
static const struct look {
	unsigned times; /* INERT_RUNS */
	bool no_crash;
	unsigned states; /* of a workload and base, at most */
	unsigned clean;	 /* the same where a log is cleaned, which has many more */
} looks[] = {
	{1, false, 500, 1500},
	{6, true, UINT32_MAX, UINT32_MAX},
};
#define LOOKS (sizeof(looks) / sizeof(looks[0]))

/* --- which knobs there are --- */

/* Value `*i` of a knob but for its default; if there are fewer, *i is less by their number. */
static bool nth_value(const char *name, const char *values, unsigned *i, char *knob, size_t n)
{
	unsigned others = word_list_count(values) - 1;
	size_t len;
	if (*i >= others) {
		*i -= others;
		return false;
	}
	const char *value = word_list_at(values, *i + 1, &len);
	snprintf(knob, n, "%s=%.*s", name, (int)len, value);
	return true;
}

bool sensitivity_value(unsigned i, const struct tm_store **store, char *knob, size_t n)
{
	for (unsigned s = 0; stores[s]; s++)
		for (const struct tm_knob *k = stores[s]->knobs; k->name; k++) {
			*store = stores[s];
			if (strcmp(k->name, "bug") && nth_value(k->name, k->values, &i, knob, n))
				return true;
		}
	*store = NULL;
	for (unsigned h = 0; hardware_knob(h)->name; h++)
		if (strcmp(hardware_knob(h)->name, "mutant") &&
		    nth_value(hardware_knob(h)->name, hardware_knob(h)->values, &i, knob, n))
			return true;
	return false;
}

/* --- breaks and cures --- */

/* A test's side with the knob, or without it. The workloads stay the line's. */
static struct claim_case side_of(const struct claim_knob *line, bool with)
{
	struct claim_case test = line->test;
	if (!with)
		test.config.setup = line->test.without;
	return test;
}

static void test_line(const struct sensitivity *f, const struct claim_knob *line,
		      struct knob_result *result)
{
	const struct claim_budget budget = {
		.seed = f->seed, .states = UINT64_MAX, .no_lives = true};
	struct claim_case test = side_of(line, line->kind == KNOB_BREAKS);
	struct claim_result broken = {0}, held = {0};
	if (!test.search)
		test.runs = CLAIM_FAIL_RUNS;
	claim_run(&test, 0, &budget, &broken);
	result->error = broken.error;
	snprintf(result->why, sizeof(result->why), "%s", broken.why);
	result->broke = broken.broken;
	if (result->error || !result->broke)
		return;
	result->contract = broken.contract;
	result->run = broken.run;
	snprintf(result->workload, sizeof(result->workload), "%s",
		 test.workload[broken.workload].name);
	test = side_of(line, line->kind != KNOB_BREAKS);
	test.kind = CLAIM_PASS;
	test.contracts = TM_BIT(broken.contract);
	if (!test.search && test.runs < LONGER * (broken.run + 1))
		test.runs = (unsigned)(LONGER * (broken.run + 1));
	claim_run(&test, broken.workload, &budget, &held);
	result->error = held.error;
	snprintf(result->why, sizeof(result->why), "%s", held.why);
	result->held = !held.broken;
	result->held_runs = held.runs;
}

/* --- inert values --- */

static int make_config(struct campaign_config *cfg, const struct tm_store *store, unsigned base,
		       const char *knob)
{
	const char *const set[] = {base ? base_name[base] : NULL, knob};
	cfg->store = store;
	cfg->share.one_in = 1;
	setup_init(&cfg->setup, store);
	for (unsigned i = 0; i < 2; i++) {
		const char *expected;
		int error = set[i] ? setup_switch(&cfg->setup, set[i], &expected) : 0;
		if (error)
			return error;
	}
	return 0;
}

static int add_workload(struct campaign *c, const struct workload *w)
{
	struct workload copy;
	int error = workload_copy(&copy, w);
	return error ? error : plan_add_workload(c, &copy);
}

/* The stores without any knob. */
static int make_campaign(struct sensitivity *f)
{
	struct campaign *c = &f->campaign;
	int error = 0;
	for (c->configs = 0; stores[c->configs / BASES];)
		c->configs += BASES;
	c->config = calloc(c->configs, sizeof(*c->config));
	if (!c->config)
		return -ENOMEM;
	for (unsigned i = 0; i < c->configs && !error; i++)
		error = make_config(&c->config[i], stores[i / BASES], i % BASES, NULL);
	for (unsigned i = 0; i < f->claims->workloads && !error; i++)
		error = add_workload(c, &f->claims->workload[i]);
	for (unsigned i = 0; !error; i++) {
		struct workload w = {0};
		error = workload_builtin(i, &w);
		/* YCSB is a large mix of what the small ones have. */
		if (!error && strncmp(w.name, "ycsb", 4))
			error = add_workload(c, &w);
		workload_free(&w);
	}
	c->options = campaign_default;
	c->options.seed = f->seed;
	c->options.runs = (uint64_t)INERT_RUNS * PLAIN_TIMES;
	c->options.states = PLAIN_STATES;
	c->options.jobs = f->how.jobs;
	/* See claims.h. */
	c->options.limits.life_every = 0;
	return error == -ENOENT ? 0 : error;
}

/* Why a unit could not run. */
static void say_why(char why[SENSITIVITY_WHY], const struct campaign_unit *unit, unsigned store,
		    const struct workload *w)
{
	snprintf(why, SENSITIVITY_WHY, "%s, workload %s: %s", stores[store]->name, w->name,
		 unit->why[0] ? unit->why : strerror(-unit->error));
}

static int plain_runs(struct sensitivity *f)
{
	struct campaign *c = &f->campaign;
	int error = make_campaign(f);
	if (!error)
		error = campaign_run(c);
	const unsigned units = error && c->unit ? c->configs * c->workloads : 0;
	for (unsigned i = 0; i < units && !f->why[0]; i++) {
		if (c->unit[i].error == -ENOTRECOVERABLE)
			wrong_again(c, i, c->unit[i].why);
		if (c->unit[i].error)
			say_why(f->why, &c->unit[i], i / c->workloads / BASES,
				&c->workload[i % c->workloads]);
	}
	return error;
}

/* What the next places of a search share. */
struct inert_value {
	const struct sensitivity *f;
	const struct claim_knob *line;
	struct knob_result *result;
	const struct look *look;
	unsigned store;
	unsigned left[2]; /* candidates: where the value cures, where it breaks */
};

/* One workload with the knob, or without it, on a base. */
static void explore(const struct inert_value *s, unsigned base, unsigned workload, bool plain,
		    unsigned times, unsigned stop_at, struct campaign_unit *unit)
{
	const struct look *look = s->look;
	struct campaign_config config = {0};
	struct campaign c = {.config = &config,
			     .configs = 1,
			     .workload = s->f->campaign.workload,
			     .workloads = s->f->campaign.workloads,
			     .options = s->f->campaign.options};
	bool cleans = workload_cleans(&c.workload[workload]);
	memset(unit, 0, sizeof(*unit));
	c.options.runs = (uint64_t)INERT_RUNS * look->times * times;
	c.options.states = (uint64_t)(cleans ? look->clean : look->states) * times;
	c.options.limits.no_crash = look->no_crash;
	unit->error = make_config(&config, stores[s->store], base, plain ? NULL : s->line->knob);
	if (!unit->error)
		wrong_explore(&c, workload, stop_at, unit, NULL);
	if (unit->error)
		say_why(s->result->why, unit, s->store, &c.workload[workload]);
}

/* Does the side that held hold with many more runs too, in which the other one breaks often? */
static void confirm(struct inert_value *s, unsigned base, unsigned workload, unsigned contract,
		    uint64_t run, bool breaks)
{
	struct campaign_unit longer, broken;
	struct knob_result *result = s->result;
	if (result->broke || !s->left[breaks])
		return;
	s->left[breaks]--;
	explore(s, base, workload, breaks, SURELY, TM_BIT(contract), &longer);
	result->error = longer.error;
	if (longer.error || longer.contract[contract].found)
		return;
	explore(s, base, workload, !breaks, LONGER, 0, &broken);
	result->error = broken.error;
	if (broken.error || broken.contract[contract].broken < OFTEN)
		return;
	result->broke = result->held = true;
	result->breaks = breaks;
	result->contract = contract;
	result->run = run;
	result->held_runs = longer.counts.runs;
	snprintf(result->workload, sizeof(result->workload), "%s",
		 s->f->campaign.workload[workload].name);
	snprintf(result->where, sizeof(result->where), "%s %s", stores[s->store]->name,
		 base_name[base]);
}

static void look_at(struct inert_value *s, unsigned base, unsigned workload)
{
	const struct campaign *c = &s->f->campaign;
	const struct campaign_unit
		*plain = &c->unit[(s->store * BASES + base) * c->workloads + workload];
	struct knob_result *result = s->result;
	struct campaign_unit with;
	unsigned holds = 0;
	assert(workload < c->workloads && s->store * BASES + base < c->configs);
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		holds |= plain->contract[k].found ? 0 : TM_BIT(k);
	/* The first contract to break may do so by chance: the others are wanted as well. */
	explore(s, base, workload, false, 1, 0, &with);
	result->error = with.error;
	for (unsigned k = 0; k < TM_CONTRACTS && !result->error; k++)
		if (with.contract[k].found && (holds & TM_BIT(k)))
			confirm(s, base, workload, k, with.contract[k].run, true);
	/* Where the power never fails, less breaks anyway. */
	for (unsigned k = 0; k < TM_CONTRACTS && !result->error && !s->look->no_crash; k++)
		if (!with.contract[k].found && !(holds & TM_BIT(k)))
			confirm(s, base, workload, k, plain->contract[k].run, false);
}

/* With one client and no log cleaning there is one schedule, as long as the power holds. */
static bool worth(const struct look *look, const struct workload *w)
{
	return !look->no_crash || w->clients > 1 || workload_cleans(w);
}

/* The first difference that an inert value makes. */
static void test_inert(const struct sensitivity *f, const struct claim_knob *line,
		       struct knob_result *result)
{
	const struct campaign *c = &f->campaign;
	for (unsigned store = 0; stores[store]; store++)
		for (unsigned look = 0; look < LOOKS; look++) {
			struct inert_value s = {
				f, line, result, &looks[look], store, {CANDIDATES, CANDIDATES}};
			if (line->store && line->store != stores[store])
				continue;
			for (unsigned i = 0;
			     i < c->workloads * BASES && !result->broke && !result->error; i++)
				if (worth(&looks[look], &c->workload[i / BASES]))
					look_at(&s, i % BASES, i / BASES);
		}
}

/* --- all lines --- */

static void work(void *arg, unsigned unit, void *result)
{
	const struct sensitivity *f = arg;
	const struct claim_knob *line = &f->claims->knob[unit];
	(line->kind == KNOB_INERT ? test_inert : test_line)(f, line, result);
}

/* What changes nothing costs most. */
static uint64_t cost(const void *arg, unsigned unit)
{
	const struct sensitivity *f = arg;
	return f->claims->knob[unit].kind == KNOB_INERT;
}

int sensitivity_run(struct sensitivity *f)
{
	unsigned lines = f->claims->knobs;
	struct driver driver = {.units = lines,
				.how = f->how,
				.result_bytes = sizeof(struct knob_result),
				.work = work,
				.cost = cost,
				.progress_arg = "knob",
				.arg = f};
	_Static_assert(sizeof(struct knob_result) <= DRIVER_RESULT_MAX, "a result is one message");
	bool inert = false;
	f->result = calloc(lines + 1, sizeof(*f->result));
	if (!f->result)
		return -ENOMEM;
	for (unsigned i = 0; i < lines; i++)
		inert |= f->claims->knob[i].kind == KNOB_INERT;
	int error = inert ? plain_runs(f) : 0;
	driver.results = f->result;
	if (!error)
		error = driver_run(&driver);
	for (unsigned i = 0; i < lines && !error; i++) {
		error = f->result[i].error;
		if (error)
			snprintf(f->why, sizeof(f->why), "with %s, %s", f->claims->knob[i].knob,
				 f->result[i].why[0] ? f->result[i].why : driver_error(error));
	}
	return error;
}

bool knob_result_as_said(const struct claim_knob *line, const struct knob_result *result)
{
	return line->kind == KNOB_INERT ? !result->broke : result->broke && result->held;
}

void sensitivity_free(struct sensitivity *f)
{
	campaign_free(&f->campaign);
	free(f->result);
}
