/* SPDX-License-Identifier: BSD-3-Clause */
/* See plan.h. */
#include "checker/hunt/plan.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/text/text.h"
#include "scenarios/knobs.h"
#include "scenarios/stores.h"

#define OTHER_SHARE 6  /* the other configurations get one in so many of the runs and states */
#define SHAPE_SHARE 20 /* likewise, those for shapes */
#define SIZES_SHARE 8  /* likewise, that for lengths */
#define OTHERS_PART 3  /* a store that is not tested by default gets one in so many of all that */

/* --- what there is --- */

bool plan_has_variant(const struct tm_store *store, const char *name)
{
	struct setup s;
	setup_init(&s, store);
	return strlen(name) < sizeof(s.variant) && !setup_variant(&s, name);
}

bool plan_has_knob(const struct tm_store *store, const char *text)
{
	const char *expected;
	struct setup s;
	char name[64];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "="), text);
	for (unsigned i = 0; stores[i]; i++) {
		setup_init(&s, stores[i]);
		if ((!store || store == stores[i]) &&
		    knob_set(stores[i], &s.params, name, "", &expected) != -ENOENT)
			return true;
	}
	/* A server's own, of a store that has so many. */
	const unsigned server = hardware_knob_server(name);
	return server ? !store || (store->servers > 1 && server <= store->servers)
		      : hardware_find(name) >= 0;
}

/* --- configurations --- */

/* *changed: it was not so already. */
static int set_knob(struct setup *s, const char *text, bool *changed, char why[PLAN_TEXT])
{
	const struct tm_params params = s->params;
	const struct hardware hw = s->hw;
	const uint8_t mutant = s->mutant;
	const char *expected = NULL;
	if (setup_switch(s, text, &expected)) {
		snprintf(why, PLAN_TEXT, "%s: knob \"%.60s\": expected one of: %s", s->store->name,
			 text, expected);
		return -EINVAL;
	}
	*changed = memcmp(&params, &s->params, sizeof(params)) || memcmp(&hw, &s->hw, sizeof(hw)) ||
		   mutant != s->mutant;
	return 0;
}

static int add_config(struct campaign *c, const struct plan *p, const struct tm_store *store,
		      const char *variant, const char *config, char why[PLAN_TEXT])
{
	struct campaign_config *cfg = &c->config[c->configs];
	bool plain = !strcmp(config, "default"), changed;
	if (c->configs == PLAN_CONFIGS) {
		snprintf(why, PLAN_TEXT,
			 "more than %d configurations; name fewer stores and variants",
			 PLAN_CONFIGS);
		return -EINVAL;
	}
	cfg->store = store;
	cfg->share.one_in = plain ? 1 : OTHER_SHARE;
	setup_init(&cfg->setup, store);
	setup_variant(&cfg->setup, variant);
	snprintf(cfg->variant, sizeof(cfg->variant), "%s", variant);
	snprintf(cfg->name, sizeof(cfg->name), "%s", config);
	int error = plain ? 0 : set_knob(&cfg->setup, config, &changed, why);
	for (unsigned i = 0; i < p->knob.n && !error; i++) {
		error = set_knob(&cfg->setup, p->knob.name[i], &changed, why);
		if (error || !changed)
			continue;
		size_t len = plain ? 0 : strlen(cfg->name);
		snprintf(cfg->name + len, sizeof(cfg->name) - len, "%s%s", len ? " " : "",
			 p->knob.name[i]);
		plain = false;
	}
	if (!error && !setup_has_servers(&cfg->setup)) {
		snprintf(why, PLAN_TEXT,
			 "%s has %u servers with these knobs, and a knob is of server %u",
			 store->name, store_servers(store, &cfg->setup.params),
			 hardware_servers(&cfg->setup.hw));
		error = -EINVAL;
	}
	c->configs += !error;
	return error;
}

int plan_set_parts(struct setup *s, const char *config)
{
	char parts[CAMPAIGN_NAME], *save = NULL;
	const char *expected;
	int error = 0;
	snprintf(parts, sizeof(parts), "%s", strcmp(config, "default") ? config : "");
	for (char *part = strtok_r(parts, "+", &save); part && !error;
	     part = strtok_r(NULL, "+", &save))
		error = strchr(part, '=') ? setup_switch(s, part, &expected)
					  : setup_variant(s, part);
	return error;
}

void plan_column(struct setup *s, const char *column, struct campaign_share *share)
{
	const struct tm_shape *shape = store_shape(s->store, column);
	char variant[sizeof(s->variant)]; /* stays */
	memcpy(variant, s->variant, sizeof(variant));
	int error = shape ? plan_set_parts(s, column) : 0;
	assert(!error); /* the store's own list */
	(void)error;
	memcpy(s->variant, variant, sizeof(variant));
	if (shape)
		*share = (struct campaign_share){.one_in = shape->share ? shape->share
									: SHAPE_SHARE,
						 .often = shape->often,
						 .sized = 2};
	else
		*share = (struct campaign_share){.one_in = SIZES_SHARE, .sized = 1};
}

/* A column for a shape, or for lengths. Its name is its configuration's. */
static int add_column(struct campaign *c, const struct tm_store *store, const char *column,
		      char why[PLAN_TEXT])
{
	const struct plan nothing = {0};
	int error = add_config(c, &nothing, store, "default", "default", why);
	if (error)
		return error;
	struct campaign_config *cfg = &c->config[c->configs - 1];
	snprintf(cfg->name, sizeof(cfg->name), "%s", column);
	cfg->shape = true;
	plan_column(&cfg->setup, column, &cfg->share);
	return 0;
}

static int add_columns(struct campaign *c, const struct tm_store *store, char why[PLAN_TEXT])
{
	int error = add_column(c, store, sizes_config, why);
	for (const struct tm_shape *s = store->shapes; s && s->name && !error; s++)
		error = add_column(c, store, s->name, why);
	return error;
}

/*
 * What is searched systematically beside random runs, which do not stop a task between two accesses
 * to memory that is not PM. So it is what has a notice come between two steps of an
 * acknowledgement: a client that asks to be answered otherwise, the beginning and the end of a
 * cleaning. Where data is visible when it is acknowledged: there stores promise the most.
 */
static const char *const searched_workloads[] = {"w-r", "w-c", "cwdr", NULL};
#define SEARCHED_HARDWARE "ack_early=off"

void plan_search(struct campaign_config *cfg)
{
	const char *expected;
	int error = setup_switch(&cfg->setup, SEARCHED_HARDWARE, &expected);
	assert(!error);
	(void)error;
	cfg->shape = true;
	cfg->like = SEARCHED_HARDWARE;
	cfg->searched = searched_workloads;
	cfg->share = (struct campaign_share){.one_in = 1};
	snprintf(cfg->name, sizeof(cfg->name), "%s", searched_config);
}

/* Of several servers each image is a boot of all, and a search takes long. */
static int add_search(struct campaign *c, const struct plan *p, const struct tm_store *store,
		      const char *variant, char why[PLAN_TEXT])
{
	if (store->servers > 1)
		return 0;
	int error = add_config(c, p, store, variant, "default", why);
	if (!error)
		plan_search(&c->config[c->configs - 1]);
	return error;
}

bool plan_takes_knob(const struct tm_store *store, const char *text)
{
	struct setup s;
	const char *expected;
	setup_init(&s, store);
	return !setup_switch(&s, text, &expected);
}

/* Is this a knob of other stores? Also if theirs alone has this value; which no store's has is an
 * error, not a reason to look elsewhere. */
static bool knob_of_others(const struct tm_store *store, const char *text)
{
	if (!plan_has_knob(store, text))
		return true;
	for (unsigned i = 0; !plan_takes_knob(store, text) && stores[i]; i++)
		if (plan_takes_knob(stores[i], text))
			return true;
	return false;
}

/* It was named; or none was, and it has all that is asked for. */
static bool wanted(const struct plan *p, unsigned number, const char *variant)
{
	const struct tm_store *store = stores[number];
	for (unsigned i = 0; i < p->store.n; i++)
		if (!strcmp(p->store.name[i], store->name))
			return true;
	if (p->store.n || !plan_has_variant(store, variant) ||
	    (number >= stores_by_default && !p->variant.n && !p->all_stores))
		return false;
	for (unsigned i = 0; i < p->knob.n; i++)
		if (knob_of_others(store, p->knob.name[i]))
			return false;
	return true;
}

/* Shapes are looked at also of stores that are not tested by default, if they name some. */
static bool wants_shapes(const struct plan *p, unsigned number)
{
	return wanted(p, number, "default") || (!p->store.n && stores[number]->shapes);
}

/* Under how many kinds of hardware: of a variant, the two that differ most in what holds. */
static unsigned hardware_kinds(const struct plan *p)
{
	if (p->one_config || p->knob.n || p->workloads_named || p->exhaustive)
		return 1;
	return p->variant.n ? 2 : PLAN_CONFIGS;
}

/* Where nothing is named, stores that are not tested by default are looked at more briefly. */
static void set_part(struct campaign *c, const struct plan *p, unsigned from, unsigned number)
{
	if (number < stores_by_default || p->store.n || p->variant.n || p->knob.n)
		return;
	for (unsigned i = from; i < c->configs; i++)
		c->config[i].share.part = OTHERS_PART;
}

static unsigned plan_variants(const struct plan *p)
{
	return p->variant.n ? p->variant.n : 1;
}

static const char *plan_variant(const struct plan *p, unsigned number)
{
	return p->variant.n ? p->variant.name[number] : "default";
}

/* After all others: the lengths that a row draws depend on its number. */
static int add_searches(struct campaign *c, const struct plan *p, char why[PLAN_TEXT])
{
	int error = 0;
	for (unsigned i = 0; stores[i]; i++)
		for (unsigned v = 0; v < plan_variants(p) && !error; v++)
			if (wanted(p, i, plan_variant(p, v)))
				error = add_search(c, p, stores[i], plan_variant(p, v), why);
	return error;
}

int plan_configs(struct campaign *c, const struct plan *p, char why[PLAN_TEXT])
{
	unsigned kinds = hardware_kinds(p);
	int error = 0;
	for (unsigned i = 0; stores[i]; i++) {
		unsigned first = c->configs;
		for (unsigned v = 0; v < plan_variants(p); v++) {
			const char *variant = plan_variant(p, v);
			if (!wanted(p, i, variant))
				continue;
			for (unsigned d = 0; default_configs[d] && d < kinds && !error; d++)
				error = add_config(c, p, stores[i], variant, default_configs[d],
						   why);
			if (error)
				return error;
		}
		if (kinds == PLAN_CONFIGS && wants_shapes(p, i))
			error = add_columns(c, stores[i], why);
		if (error)
			return error;
		set_part(c, p, first, i);
	}
	if (p->searches && kinds > 1)
		error = add_searches(c, p, why);
	if (error)
		return error;
	if (c->configs)
		return 0;
	snprintf(why, PLAN_TEXT,
		 "no store has all these variants and knobs together (tidemark list)");
	return -EINVAL;
}

/* --- workloads --- */

/* What a systematic search goes through when no workload is named. */
static const struct smallest {
	const char *name; /* NULL: the end */
	unsigned faults;  /* a writer that dies, a packet that is lost: where two writers meet */
} smallest[] = {{"w", 0},   {"ww", 0},	 {"wr", 0},  {"www", 0},
		{"w-r", 0}, {"w-wr", 0}, {"w-w", 1}, {NULL, 0}};
/* Each of several servers fails alone in all ways at each place, and an image is a boot of all. */
static const struct smallest of_several[] = {{"w", 1}, {"wr", 1}, {"w-r", 1}, {NULL, 0}};
#define SEVERAL_PREEMPTIONS 0
#define SMALLEST_MAX	    8
#define SMALLEST_CALLS	    12 /* of a store's own operations */

_Static_assert(sizeof(smallest) <= (SMALLEST_MAX + 1) * sizeof(smallest[0]) &&
		       sizeof(of_several) <= sizeof(smallest),
	       "there is room for their faults");

int plan_add_workload(struct campaign *c, const struct workload *w)
{
	if (!ARRAY_ROOM_FOR_ONE(c->workload, c->workloads))
		return -ENOMEM;
	c->workload[c->workloads++] = *w;
	return 0;
}

static int add_or_free(struct campaign *c, struct workload *w)
{
	int error = plan_add_workload(c, w);
	if (error)
		workload_free(w);
	return error;
}

static bool fits_any(const struct campaign *c, const struct workload *w)
{
	for (unsigned i = 0; i < c->configs; i++)
		if (workload_fits(w, c->config[i].store))
			return true;
	return false;
}

/* Those of stores' own operations, of the first `most`; each store's once. */
static int add_of_stores(struct campaign *c, unsigned most)
{
	const char *expected;
	int error = 0;
	for (unsigned i = 0; i < c->configs; i++) {
		const struct tm_store *store = c->config[i].store;
		bool first = true;
		for (unsigned k = 0; k < i; k++)
			first &= c->config[k].store != store;
		struct workload w;
		for (unsigned n = 0; first && n < most && !error; n++) {
			error = workload_of_store(store, n, &w, &expected);
			if (!error)
				error = add_or_free(c, &w);
		}
		error = error == -ENOENT ? 0 : error;
	}
	return error;
}

int plan_builtin_workloads(struct campaign *c)
{
	int error = 0;
	for (unsigned i = 0; !error; i++) {
		struct workload w;
		error = workload_builtin(i, &w);
		if (!error && fits_any(c, &w))
			error = add_or_free(c, &w);
		else if (!error)
			workload_free(&w);
	}
	return error == -ENOMEM ? error : add_of_stores(c, UINT_MAX);
}

static bool all_several(const struct campaign *c)
{
	bool all = true;
	for (unsigned i = 0; i < c->configs; i++)
		all &= c->config[i].store->servers > 1;
	return all;
}

int plan_smallest_workloads(struct campaign *c, bool preemptions_given, bool faults_given)
{
	const bool several = all_several(c);
	assert(!c->workloads && !c->faults); /* one number for each, from the first on */
	c->faults = calloc(SMALLEST_MAX + c->configs * SMALLEST_CALLS, sizeof(*c->faults));
	int error = c->faults ? 0 : -ENOMEM;
	if (several && !preemptions_given)
		c->options.preemptions = SEVERAL_PREEMPTIONS;
	for (const struct smallest *s = several ? of_several : smallest; s->name && !error; s++) {
		bool room = c->options.preemptions + s->faults <= SYSTEMATIC_BOUND;
		const char *expected;
		struct workload w;
		error = workload_named(s->name, &w, &expected);
		if (!error && !fits_any(c, &w)) {
			workload_free(&w);
			continue;
		}
		c->faults[c->workloads] = faults_given || !room ? c->options.faults : s->faults;
		if (!error)
			error = add_or_free(c, &w);
	}
	unsigned plain = c->workloads;
	if (!error && !several)
		error = add_of_stores(c, SMALLEST_CALLS);
	for (unsigned i = plain; i < c->workloads && !error; i++)
		c->faults[i] = faults_given ? c->options.faults : 0;
	assert(c->workloads <= SMALLEST_MAX + c->configs * SMALLEST_CALLS);
	return error ? -ENOMEM : 0;
}

static int check_limits(const struct workload *w, const struct tm_store *store, bool limit,
			char expected[WORKLOAD_EXPECTED])
{
	struct workload within;
	int error = workload_copy(&within, w);
	if (!error && limit)
		workload_limit(&within, store);
	if (!error)
		error = workload_check(&within, store, expected);
	workload_free(&within);
	return error;
}

int plan_check_workload(const struct campaign *c, unsigned at, bool limit, char why[PLAN_TEXT])
{
	const struct workload *w = &c->workload[at];
	unsigned ops = workload_ops(w) + w->keys + SETUP_READ_OPS(w);
	unsigned looks = w->keys + workload_looks(w);
	int error = looks > SETUP_LOOKS || ops > HISTORY_OPS ? -EINVAL : 0;
	if (looks > SETUP_LOOKS)
		snprintf(why, PLAN_TEXT, "workload %s: %u keys%s; expected at most %d", w->name,
			 looks, w->calls ? " and operations that look at a store" : "",
			 SETUP_LOOKS);
	else if (error)
		snprintf(why, PLAN_TEXT,
			 "workload %s: %u operations, those of loading and reading back included; "
			 "expected at most %d",
			 w->name, ops, HISTORY_OPS);
	for (unsigned i = 0; i < c->configs && !error; i++) {
		char expected[WORKLOAD_EXPECTED];
		struct setup s;
		error = check_limits(w, c->config[i].store, limit, expected);
		if (error) {
			snprintf(why, PLAN_TEXT, "workload %s: %s", w->name,
				 error == -EINVAL ? expected : strerror(-error));
			break;
		}
		error = campaign_setup(c, i * c->workloads + at, &s);
		if (error == -EFBIG) {
			snprintf(why, PLAN_TEXT,
				 "workload %s: %s would need %zu bytes of PM; expected a smaller "
				 "one",
				 w->name, c->config[i].store->name, s.pm_len);
			error = -EINVAL;
		} else if (error) {
			snprintf(why, PLAN_TEXT, "workload %s: %s", w->name, strerror(-error));
		}
		setup_free(&s);
	}
	return error;
}
