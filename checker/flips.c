/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See flips.h. The campaign has, for each store and each base, a configuration without any
 * switch and one for each switch; what differs between a switch's configuration and the one without is
 * a candidate, and is confirmed by a longer look at the side that held.
 */
#include "checker/flips.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/pool.h"
#include "scenarios/stores.h"

#define BASES	     2
#define CONFIRM_RUNS 10 /* times the runs of the first look */
#define CANDIDATES   12 /* of a switch are confirmed, at most */
#define MAX_LIST     512

static const char *const base_name[BASES] = {"default", "ack_early=off"};

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

/* The configuration of a base without a switch stands before those of the flips. */
static unsigned plain_config(const struct flips *f, unsigned flip, unsigned base)
{
	unsigned store = 0;
	while (stores[store] != f->flip[flip].store)
		store++;
	return store * BASES + base;
}

static unsigned flip_config(unsigned flip, unsigned base)
{
	return stores_by_default * BASES + flip * BASES + base;
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

static int make_campaign(struct flips *f)
{
	struct campaign *c = &f->campaign;
	unsigned room = 256;
	int error = 0;
	c->configs = (stores_by_default + f->flips) * BASES;
	c->config = calloc(c->configs, sizeof(*c->config));
	c->workload = calloc(room, sizeof(*c->workload));
	if (!c->config || !c->workload)
		return -ENOMEM;
	for (unsigned b = 0; b < BASES && !error; b++) {
		for (unsigned s = 0; s < stores_by_default && !error; s++)
			error = make_config(&c->config[s * BASES + b], stores[s], b, NULL);
		for (unsigned i = 0; i < f->flips && !error; i++)
			error = make_config(&c->config[flip_config(i, b)], f->flip[i].store, b,
					    f->flip[i].knob);
	}
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

/* --- confirming --- */

static bool broke(const struct campaign *c, unsigned config, unsigned workload, unsigned contract)
{
	return c->unit[config * c->workloads + workload].contract[contract].found;
}

/* Does it hold with many more runs too? */
static bool really_holds(const struct flips *f, unsigned config, unsigned workload, unsigned contract)
{
	struct campaign c = f->campaign; /* configurations and workloads are shared, and only read */
	struct campaign_unit unit = {0};
	c.options.runs *= CONFIRM_RUNS;
	c.options.states *= CONFIRM_RUNS;
	campaign_explore(&c, config * c.workloads + workload, TM_BIT(contract), &unit);
	return !unit.error && !unit.contract[contract].found;
}

static bool confirm(const struct flips *f, struct flip *flip, unsigned base, unsigned workload,
		    unsigned contract, unsigned *left)
{
	const struct campaign *c = &f->campaign;
	unsigned at = (unsigned)(flip - f->flip);
	unsigned plain = plain_config(f, at, base), with = flip_config(at, base);
	bool without_breaks = broke(c, plain, workload, contract),
	     breaks = broke(c, with, workload, contract);
	if (without_breaks == breaks || !*left)
		return false;
	--*left;
	if (!really_holds(f, breaks ? plain : with, workload, contract))
		return false;
	flip->found = true;
	flip->breaks = breaks;
	flip->contract = contract;
	flip->workload = workload;
	flip->base = base_name[base];
	return true;
}

/* In one process: the first difference of a switch that is confirmed. */
static void work(void *arg, unsigned unit, void *result)
{
	const struct flips *f = arg;
	struct flip flip_copy = f->flip[unit], *flip = &f->flip[unit];
	unsigned left = CANDIDATES;
	/* What breaks with the switch says more than what no longer does. */
	for (unsigned mends = 0; mends < 2 && !flip->found; mends++)
		for (unsigned b = 0; b < BASES && !flip->found; b++)
			for (unsigned w = 0; w < f->campaign.workloads && !flip->found; w++)
				for (unsigned k = 0; k < TM_CONTRACTS && !flip->found; k++)
					if (broke(&f->campaign, flip_config(unit, b), w, k) != mends)
						confirm(f, flip, b, w, k, &left);
	memcpy(result, flip, sizeof(*flip));
	f->flip[unit] = flip_copy;
}

static void take(void *arg, unsigned unit, const void *result)
{
	struct flips *f = arg;
	memcpy(&f->flip[unit], result, sizeof(f->flip[unit]));
}

int flips_run(struct flips *f)
{
	struct pool pool = {
		.jobs = f->jobs, .result_bytes = sizeof(struct flip), .work = work, .take = take, .arg = f};
	int error = list_flips(f);
	if (!error)
		error = make_campaign(f);
	if (error)
		return error;
	f->campaign.options = campaign_default;
	f->campaign.options.seed = f->seed;
	f->campaign.options.runs = f->runs;
	f->campaign.options.jobs = f->jobs;
	f->campaign.options.progress = f->progress;
	error = campaign_run(&f->campaign);
	pool.units = f->flips;
	return error ? error : pool_run(&pool);
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
