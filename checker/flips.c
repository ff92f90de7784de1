/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See flips.h. First each store is explored without any switch, all workloads. Then, switch by
 * switch, the workloads are gone through with it until a verdict is another; that is a candidate, and
 * is confirmed by a longer look at the side that held. Most switches show in one of the first
 * workloads; only those that change nothing cost all of them.
 */
#include "checker/flips.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "checker/pool.h"
#include "scenarios/stores.h"

#define BASES	     2
#define CONFIRM_RUNS 8 /* times the runs of the look that found it */
#define CANDIDATES   4 /* of a switch are confirmed in a look, at most */
#define MAX_LIST     512
#define PLAIN_TIMES  3 /* times the runs that were asked for: without any switch */
#define PLAIN_STATES 4000

static const char *const base_name[BASES] = {"default", "ack_early=off"};

/*
 * A switch is looked at twice: briefly; and where the power never fails, so that many more schedules
 * are had for the same time.
 */
static const struct look {
	unsigned times; /* the runs that were asked for */
	bool no_crash;
	unsigned states; /* of a workload and base, at most */
	unsigned clean;	 /* the same where a log is cleaned, which has many more */
} looks[] = {
	{1, false, 600, 4000},
	{10, true, UINT32_MAX, UINT32_MAX},
};
#define LOOKS (sizeof(looks) / sizeof(looks[0]))

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int set_knob(struct setup *s, const char *knob)
{
	char name[64];
	const char *expected;
	size_t len = strcspn(knob, "=");
	snprintf(name, sizeof(name), "%.*s", (int)len, knob);
	return setup_knob(s, name, knob + len + 1, &expected);
}

/* Each value of a switch but its first. */
static int add_values(struct flips *f, const struct tm_store *store, const char *name, const char *values,
		      bool hardware)
{
	char list[MAX_LIST], *save = NULL;
	snprintf(list, sizeof(list), "%s", values);
	strtok_r(list, " ", &save);
	for (const char *value; (value = strtok_r(NULL, " ", &save)) != NULL;) {
		struct flip *grown = realloc(f->flip, (f->flips + 1) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		f->flip = grown;
		struct flip *flip = &f->flip[f->flips++];
		*flip = (struct flip){.store = store, .hardware = hardware};
		snprintf(flip->knob, sizeof(flip->knob), "%s=%s", name, value);
	}
	return 0;
}

static int list_flips(struct flips *f)
{
	int error = 0;
	for (unsigned s = 0; s < stores_by_default; s++) {
		for (const struct tm_knob *k = stores[s]->knobs; k->name && !error; k++)
			if (strcmp(k->name, "bug")) /* seeded bugs have a test of their own */
				error = add_values(f, stores[s], k->name, k->values, false);
		for (unsigned i = 0; hardware_knob(i)->name && !error; i++)
			error = add_values(f, stores[s], hardware_knob(i)->name, hardware_knob(i)->values,
					   true);
	}
	return error;
}

static int make_config(struct campaign_config *cfg, const struct tm_store *store, unsigned base,
		       const char *knob)
{
	int error = 0;
	cfg->store = store;
	cfg->share = 1;
	setup_init(&cfg->setup, store);
	if (base)
		error = set_knob(&cfg->setup, base_name[base]);
	return error || !knob ? error : set_knob(&cfg->setup, knob);
}

/* The stores without any switch. */
static int make_campaign(struct flips *f)
{
	struct campaign *c = &f->campaign;
	unsigned room = 256;
	int error = 0;
	c->configs = stores_by_default * BASES;
	c->config = calloc(c->configs, sizeof(*c->config));
	c->workload = calloc(room, sizeof(*c->workload));
	if (!c->config || !c->workload)
		return -ENOMEM;
	for (unsigned i = 0; i < c->configs && !error; i++)
		error = make_config(&c->config[i], stores[i / BASES], i % BASES, NULL);
	/* YCSB is a large mix of what the small ones have. */
	for (unsigned i = 0; !error && c->workloads < room; i++) {
		error = workload_builtin(i, &c->workload[c->workloads]);
		if (error == -ENOENT)
			return 0;
		if (!error && !strncmp(c->workload[c->workloads].name, "ycsb", 4))
			workload_free(&c->workload[c->workloads]);
		else if (!error)
			c->workloads++;
	}
	return error;
}

/* The stores' results without a switch; configurations and workloads are shared, and only read. */
static const struct campaign_unit *plain_unit(const struct flips *f, const struct flip *flip, unsigned base,
					      unsigned workload)
{
	unsigned store = 0;
	while (stores[store] != flip->store)
		store++;
	return &f->campaign.unit[(store * BASES + base) * f->campaign.workloads + workload];
}

/* One workload of a switch, or of its store without it, on a base. */
static void explore(const struct flips *f, const struct flip *flip, unsigned base, unsigned workload,
		    bool plain, const struct look *look, unsigned times, unsigned stop_at,
		    struct campaign_unit *unit)
{
	struct campaign_config config = {0};
	struct campaign c = {.config = &config,
			     .configs = 1,
			     .workload = f->campaign.workload,
			     .workloads = f->campaign.workloads,
			     .options = f->campaign.options};
	memset(unit, 0, sizeof(*unit));
	c.options.runs = (uint64_t)f->runs * look->times * times;
	bool cleans = workload_cleans(&f->campaign.workload[workload]);
	c.options.states = (uint64_t)(cleans ? look->clean : look->states) * times;
	c.options.limits.no_crash = look->no_crash;
	unit->error = make_config(&config, flip->store, base, plain ? NULL : flip->knob);
	if (!unit->error)
		campaign_explore(&c, workload, stop_at, unit);
}

/* --- looking for a difference --- */

/* What the next places of a search share. */
struct flip_search {
	const struct flips *f;
	struct flip *flip;
	const struct look *look;
	unsigned left; /* candidates */
};

/* Does the side that held hold with many more runs too? */
static void confirm(struct flip_search *s, unsigned base, unsigned workload, unsigned contract, bool breaks)
{
	struct campaign_unit longer;
	if (s->flip->found || !s->left)
		return;
	s->left--;
	explore(s->f, s->flip, base, workload, breaks, s->look, CONFIRM_RUNS, TM_BIT(contract), &longer);
	s->flip->error = longer.error;
	if (longer.error || longer.contract[contract].found)
		return;
	s->flip->found = true;
	s->flip->breaks = breaks;
	s->flip->contract = contract;
	s->flip->workload = workload;
	s->flip->base = base_name[base];
}

static void look_at(struct flip_search *s, unsigned base, unsigned workload)
{
	const struct campaign_unit *plain = plain_unit(s->f, s->flip, base, workload);
	struct campaign_unit with;
	unsigned holds = 0;
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		holds |= plain->contract[k].found ? 0 : TM_BIT(k);
	explore(s->f, s->flip, base, workload, false, s->look, 1, holds, &with);
	s->flip->error = with.error;
	/* What breaks with the switch says more than what no longer does. */
	for (unsigned k = 0; k < TM_CONTRACTS && !s->flip->error; k++)
		if (with.contract[k].found && (holds & TM_BIT(k)))
			confirm(s, base, workload, k, true);
	/* Where the power never fails, less breaks anyway. */
	for (unsigned k = 0; k < TM_CONTRACTS && !s->flip->error && !s->look->no_crash; k++)
		if (!with.contract[k].found && !(holds & TM_BIT(k)))
			confirm(s, base, workload, k, false);
}

/* Nobody meets anybody: without power failures there is one schedule. */
static bool worth(const struct look *look, const struct workload *w)
{
	return !look->no_crash || w->clients > 1 || workload_cleans(w);
}

/* In one process: the first difference of a switch that is confirmed. */
static void work(void *arg, unsigned unit, void *result)
{
	const struct flips *f = arg;
	struct flip flip = f->flip[unit];
	for (unsigned look = 0; look < LOOKS && !flip.found && !flip.error; look++) {
		struct flip_search s = {f, &flip, &looks[look], CANDIDATES};
		for (unsigned w = 0; w < f->campaign.workloads && !flip.found && !flip.error; w++)
			if (worth(&looks[look], &f->campaign.workload[w]))
				for (unsigned b = 0; b < BASES && !flip.found && !flip.error; b++)
					look_at(&s, b, w);
	}
	memcpy(result, &flip, sizeof(flip));
}

static void take(void *arg, unsigned unit, const void *result)
{
	struct flips *f = arg;
	memcpy(&f->flip[unit], result, sizeof(f->flip[unit]));
	f->done++;
	if (f->progress)
		f->progress(f->done, f->flips, now() - f->started);
}

int flips_run(struct flips *f)
{
	struct pool pool = {
		.jobs = f->jobs, .result_bytes = sizeof(struct flip), .work = work, .take = take, .arg = f};
	f->started = now();
	int error = list_flips(f);
	if (!error)
		error = make_campaign(f);
	if (error)
		return error;
	f->campaign.options = campaign_default;
	f->campaign.options.seed = f->seed;
	f->campaign.options.runs = (uint64_t)f->runs * PLAIN_TIMES;
	f->campaign.options.states = PLAIN_STATES;
	f->campaign.options.jobs = f->jobs;
	error = campaign_run(&f->campaign);
	pool.units = f->flips;
	if (!error)
		error = pool_run(&pool);
	for (unsigned i = 0; i < f->flips && !error; i++)
		error = f->flip[i].error;
	return error;
}

void flips_free(struct flips *f)
{
	for (unsigned i = 0; i < f->campaign.workloads; i++)
		workload_free(&f->campaign.workload[i]);
	campaign_free_results(&f->campaign);
	free(f->campaign.workload);
	free(f->campaign.config);
	free(f->flip);
}
