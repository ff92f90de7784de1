/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking a store's places away, one at a time.
 *
 * First a clean campaign: every workload, under the hardware that was asked for and under other
 * hardware. It says which contracts hold, and notes which places each workload reaches. Then each
 * place has a campaign of its own, without it: the workloads that reach it, the same runs as in the
 * clean campaign. It ends with the first failure that counts: one that breaks a contract which the
 * same workload kept in the clean campaign, which makes four times the runs, so that what the store
 * breaks by design is not blamed on the place. A few runs of each workload come first, for most
 * places that matter show soon.
 *
 * An operation that fails breaks no contract, as it may fail for good reasons. In the plain run
 * there are none, so a place without which an operation of the plain run fails is needed, too.
 *
 * Where nothing breaks, the other kinds of hardware get their turn: a flush that is not needed
 * where lines are written back whole may be needed where they are torn.
 *
 * Where the store's list says that a place is rare it names a workload and a configuration, and the
 * place gets the runs of the default campaign there: what is found by one run in a thousand is so
 * found every time, and costs one workload.
 *
 * The load phase is not part of it (checker/world/world.c): the power does not fail there.
 */
#include "checker/hunt/ablate.h"
#include "checker/hunt/plan.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/trace/shrink.h"
#include "checker/trace/wrong.h"
#include "checker/trace/trace.h"
#include "core/text/error_name.h"
#include "scenarios/stores.h"

#define OTHER_SHARE  4 /* other hardware gets one in so many of the runs and states */
#define FIRST_RUNS   3 /* of each workload, before the others */
#define FIRST_STATES 150
#define LONGER	     2 /* the clean campaign's runs and states, as a multiple */

const struct ablate_options ablate_default = {.seed = 1, .runs = 12, .states = 250};

/* Hardware besides the default campaign's. */
static const char *const further[] = {"line_torn=any", "store_buffer=4",  "read_order=right",
				      "rqwrb=pm",      "transport=iwarp", NULL};

/* What one workload showed under one kind of hardware, without anything taken away. */
struct ablate_clean {
	unsigned kept;	 /* TM_BIT()s: contracts that held */
	unsigned failed; /* operations of the plain run that fail */
	uint64_t runs, states;
	int error;
	char why[WORLDS_WHY];
	uint8_t reached[PLACES_MAX];
};

/* --- what is looked at --- */

static int add_lane(struct ablation *a, const char *knob)
{
	struct campaign_config *lane = &a->lane[a->lanes];
	const struct hardware hw = a->base->setup.hw;
	const char *expected;
	assert(a->lanes < ABLATE_LANES);
	*lane = *a->base;
	lane->share.one_in = 1;
	if (knob) {
		lane->share.one_in = OTHER_SHARE;
		if (setup_switch(&lane->setup, knob, &expected))
			return lane->setup.store->infiniband ? 0 : -EINVAL;
		if (!memcmp(&hw, &lane->setup.hw, sizeof(hw)))
			return 0; /* it is so already */
		bool plain = !strcmp(a->base->name, "default");
		snprintf(lane->name, sizeof(lane->name), "%.60s%s%.60s", plain ? "" : a->base->name,
			 plain ? "" : " ", knob);
	}
	a->lanes++;
	return 0;
}

static int add_lanes(struct ablation *a)
{
	int error = add_lane(a, NULL);
	for (unsigned i = 1; default_configs[i] && !error && !a->options.only_base; i++)
		error = add_lane(a, default_configs[i]);
	for (unsigned i = 0; further[i] && !error && !a->options.only_base; i++)
		error = add_lane(a, further[i]);
	return error;
}

/* In the store's folder, or in what stores share. */
static bool is_of_store(const struct place *place, const struct tm_store *store)
{
	size_t folder = strcspn(place->name, "/");
	return !place->name[folder] ||
	       (folder == strlen(store->name) && !memcmp(place->name, store->name, folder));
}

static int add_places(struct ablation *a)
{
	struct place_list all;
	int error = places_find(&all);
	a->place = error ? NULL : calloc(all.n + 1, sizeof(*a->place));
	if (!error && !a->place)
		error = -ENOMEM;
	for (unsigned i = 0; i < all.n && !error; i++)
		if (is_of_store(&all.place[i], a->base->store) &&
		    (!a->options.place || strstr(all.place[i].name, a->options.place)))
			a->place[a->places++].place = all.place[i];
	places_free(&all);
	assert(a->places <= PLACES_MAX); /* what is known of each is in arrays of that length */
	return error;
}

/* --- one campaign of one workload --- */

/* A campaign with one configuration and all workloads. */
static struct campaign campaign_of(const struct ablation *a, struct campaign_config *config)
{
	struct campaign c = {.config = config,
			     .configs = 1,
			     .workload = a->workload,
			     .workloads = a->workloads,
			     .options = campaign_default};
	c.options.seed = a->options.seed;
	c.options.runs = a->options.runs;
	c.options.states = a->options.states;
	return c;
}

static int by_key(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
	return x < y ? -1 : x > y;
}

/* Number of operations of the plain run that fail, the first of them in `text`; or -errno. */
static int plain_failures(const struct campaign *c, unsigned workload, char *text, size_t n)
{
	struct setup s;
	struct worlds ws;
	char why[WORLDS_WHY];
	int failed = 0, error = campaign_setup(c, workload, &s);
	text[0] = '\0';
	if (!error)
		error = worlds_open(&ws, &s);
	if (error == -EIO) {
		worlds_why(&ws, why);
		snprintf(text, n, "%s", why);
		worlds_close(&ws);
		failed = 1;
		error = 0;
	} else if (!error) {
		world_run(&ws, NULL, NULL, NULL);
		const struct history *h = ws.history;
		for (unsigned i = 0; i < h->ops; i++) {
			const struct history_op *op = &h->op[i];
			char name[64];
			if (!op->error || op->error == -ENOTUNIQ)
				continue;
			world_op_name(&s, h, (int)i, name, sizeof(name));
			if (!failed++)
				snprintf(text, n, "nothing goes wrong, and %s fails with %s", name,
					 error_name(op->error).text);
		}
		world_end(&ws, 0);
		worlds_close(&ws);
	}
	setup_free(&s);
	return error ? error : failed;
}

static void note_reached(const struct ablation *a, const struct places_reached *reached,
			 struct ablate_clean *clean)
{
	for (unsigned i = 0; i < a->places; i++) {
		const uintptr_t *at = bsearch(&a->place[i].place.key, reached->key, reached->n,
					      sizeof(*at), by_key);
		assert(at); /* clean_unit() has asked for all of them */
		clean->reached[i] = reached->bit[at - reached->key];
	}
}

static void explore_clean(struct campaign *c, unsigned workload, struct campaign_unit *u,
			  struct ablate_clean *clean)
{
	char text[200];
	c->options.runs *= LONGER;
	c->options.states *= LONGER;
	wrong_explore(c, workload, 0, u, NULL);
	clean->error = u->error;
	snprintf(clean->why, sizeof(clean->why), "%s", u->why);
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		clean->kept |= u->contract[k].found ? 0 : TM_BIT(k);
	int failed = clean->error ? clean->error : plain_failures(c, workload, text, sizeof(text));
	if (failed < 0)
		clean->error = failed;
	else
		clean->failed = (unsigned)failed;
}

static void clean_unit(void *arg, unsigned unit, void *result)
{
	const struct ablation *a = arg;
	struct ablate_clean *clean = result;
	struct campaign_config config = a->lane[unit / a->workloads];
	struct campaign c = campaign_of(a, &config);
	struct campaign_unit *u = calloc(1, sizeof(*u));
	uintptr_t *key = calloc(a->places + 1, sizeof(*key));
	uint8_t bit[PLACES_MAX] = {0};
	struct places_reached reached = {.n = a->places, .key = key, .bit = bit};
	clean->error = u && key ? 0 : -ENOMEM;
	for (unsigned i = 0; i < a->places && !clean->error; i++)
		key[i] = a->place[i].place.key;
	if (!clean->error) {
		qsort(key, a->places, sizeof(*key), by_key);
		config.setup.reached = &reached;
		explore_clean(&c, unit % a->workloads, u, clean);
		note_reached(a, &reached, clean);
	}
	free(key);
	free(u);
}

static const struct ablate_clean *clean_of(const struct ablation *a, unsigned lane,
					   unsigned workload)
{
	assert(lane < a->lanes && workload < a->workloads);
	return &a->clean[lane * a->workloads + workload];
}

static int run_driver(struct ablation *a, unsigned units, size_t bytes,
		      void (*work)(void *, unsigned, void *), void *results, bool *done)
{
	struct driver driver = {.units = units,
				.how = a->options.how,
				.result_bytes = bytes,
				.work = work,
				.results = results,
				.done = done,
				.arg = a,
				.progress_arg = done ? "place" : "workload"};
	return driver_run(&driver);
}

/* The clean campaign. */
static int look_at_all(struct ablation *a)
{
	unsigned units = a->lanes * a->workloads;
	_Static_assert(sizeof(struct ablate_clean) <= DRIVER_RESULT_MAX, "a result is one message");
	a->clean = calloc(units + 1, sizeof(*a->clean));
	if (!a->clean)
		return -ENOMEM;
	int error = run_driver(a, units, sizeof(*a->clean), clean_unit, a->clean, NULL);
	if (error == -EINTR) {
		a->undone = a->places;
		a->places = 0;
	}
	for (unsigned u = 0; u < units && !error; u++) {
		error = a->clean[u].error;
		if (error)
			snprintf(a->why, sizeof(a->why), "workload %s: %.220s",
				 a->workload[u % a->workloads].name, a->clean[u].why);
	}
	return error;
}

/* --- without a place --- */

/* Where the trace goes: the place's name without what a file's name should not have. */
static void name_trace(const struct ablation *a, const struct place *place, char *path, size_t n)
{
	int len = snprintf(path, n, "%s/%s-without-", a->options.out, a->base->store->name);
	const char *from = strchr(place->name, '/');
	for (from = from ? from + 1 : place->name; *from && (size_t)len + 8 < n; from++)
		path[len++] = strchr(":/#", *from) ? '-' : *from;
	snprintf(path + len, n - (size_t)len, ".trace");
}

/* The shrunk failure is the first of its place: keep it. */
static int keep_trace(const struct ablation *a, const struct place *place,
		      const struct broken_run *run, struct ablate_result *r)
{
	snprintf(r->text, sizeof(r->text), "%s", run->text);
	r->operations = workload_ops(&run->setup.w);
	r->deviations = run->path.n;
	if (!a->options.out)
		return 0;
	name_trace(a, place, r->trace, sizeof(r->trace));
	driver_hold(SIG_BLOCK);
	int error = trace_save(r->trace, &run->setup, &run->path, (int)run->contract, run->text);
	driver_hold(SIG_UNBLOCK);
	if (error)
		snprintf(r->why, sizeof(r->why), "%.150s: %s", r->trace, strerror(-error));
	return error;
}

/* Does the same run break the contract although nothing is taken away? 0, or -ENOTRECOVERABLE, as
 * shrink(). */
static int breaks_anyway(struct broken_run *run, bool *breaks)
{
	struct setup base = run->setup, whole;
	int error = 0;
	base.without.n = 0;
	*breaks = false;
	if (!setup_like(&whole, &base, &run->setup.w))
		error = shrink_breaks(&whole, &run->path, run->contract, run->text,
				      sizeof(run->text), breaks);
	if (error) {
		base = run->setup;
		run->setup = whole;
		whole = base;
	}
	setup_free(&whole);
	return error;
}

/* What one process needs for one place. */
struct attempt {
	const struct ablation *a;
	unsigned at, lane, workload;
	struct ablate_result *r;
	struct campaign_config config;
	struct campaign c;
	struct campaign_unit unit;
	struct broken_run run;
};

static bool is_broken(const struct attempt *t)
{
	return t->r->lanes & 1u << t->lane;
}

/* An operation that fails in the plain run, or a contract. False: something broke before. */
static bool note_failure(struct attempt *t, unsigned contract)
{
	struct ablate_result *r = t->r;
	r->lanes |= 1u << t->lane;
	if (r->broken)
		return false;
	r->broken = true;
	r->lane = t->lane;
	r->workload = t->workload;
	r->contract = contract;
	return true;
}

static int try_plain(struct attempt *t)
{
	char text[200];
	int failed = plain_failures(&t->c, t->workload, text, sizeof(text));
	if (failed < 0)
		return failed;
	if ((unsigned)failed > clean_of(t->a, t->lane, t->workload)->failed &&
	    note_failure(t, TM_CONTRACTS))
		snprintf(t->r->text, sizeof(t->r->text), "%s", text);
	return 0;
}

/* One break of the workload, if there is one: t->run, which the caller frees. *blamed: the place is
 * to blame for it. */
static int find_break(struct attempt *t, unsigned contracts, bool *blamed)
{
	struct ablate_result *r = t->r;
	struct campaign_unit *u = &t->unit;
	struct broken_run *run = &t->run;
	bool whole = false, anyway = true;
	memset(u, 0, sizeof(*u));
	wrong_explore(&t->c, t->workload, contracts, u, run);
	int error = u->error;
	snprintf(r->why, sizeof(r->why), "%s", u->why);
	r->runs += u->counts.runs;
	r->states += u->counts.states;
	if (error || run->contract == TM_CONTRACTS)
		return error;
	error = broken_run_shrink(run, run->contract, &whole);
	/* What cannot be found a second time is not blamed on the change. */
	if (!error && !whole)
		error = breaks_anyway(run, &anyway);
	*blamed = !error && !anyway;
	if (error == -ENOTRECOVERABLE)
		wrong_save(&run->setup, &run->path, run->text, r->why, sizeof(r->why));
	return error;
}

/* A break of each contract that the workload keeps otherwise, until the place is to blame for one.
 */
static int try_workload(struct attempt *t)
{
	const struct place *place = &t->a->place[t->at].place;
	unsigned contracts = clean_of(t->a, t->lane, t->workload)->kept, contract;
	bool blamed = false;
	int error;
	do {
		error = find_break(t, contracts, &blamed);
		contract = t->run.contract;
		if (blamed && note_failure(t, contract))
			error = keep_trace(t->a, place, &t->run, t->r);
		broken_run_free(&t->run);
		contracts &= contract < TM_CONTRACTS ? ~TM_BIT(contract) : 0;
	} while (!error && !blamed && contract < TM_CONTRACTS);
	return error;
}

/* All workloads that reach the place, until something breaks. */
static int try_lane(struct attempt *t, bool first)
{
	t->config = t->a->lane[t->lane];
	t->c = campaign_of(t->a, &t->config);
	int error = setup_without(&t->config.setup, &t->a->place[t->at].place);
	if (first) {
		t->c.options.runs = (uint64_t)FIRST_RUNS * t->config.share.one_in;
		t->c.options.states = (uint64_t)FIRST_STATES * t->config.share.one_in;
	}
	for (t->workload = 0; t->workload < t->a->workloads && !error && !is_broken(t);
	     t->workload++) {
		if (!clean_of(t->a, t->lane, t->workload)->reached[t->at])
			continue;
		error = try_workload(t);
		if (!error && !first && !is_broken(t))
			error = try_plain(t);
	}
	return error;
}

/* Is the place reached at all? */
static bool reached(const struct ablation *a, unsigned place)
{
	for (unsigned u = 0; u < a->lanes * a->workloads; u++)
		if (a->clean[u].reached[place])
			return true;
	return false;
}

/* What orders stores does nothing where there are no store buffers. */
static bool matters(const struct attempt *t)
{
	return t->a->place[t->at].place.kind != PLACE_ORDER ||
	       t->a->lane[t->lane].setup.hw.store_buffer;
}

static void work(void *arg, unsigned unit, void *result)
{
	const struct ablation *a = arg;
	struct ablate_result *r = result;
	struct attempt *t = calloc(1, sizeof(*t));
	r->reached = reached(a, unit);
	r->error = t ? 0 : -ENOMEM;
	for (unsigned lane = 0; lane < a->lanes && !r->error && !(r->lanes & 1); lane++) {
		*t = (struct attempt){.a = a, .at = unit, .lane = lane, .r = r};
		for (unsigned full = 0; full < 2 && !r->error && !is_broken(t) && matters(t);
		     full++)
			r->error = try_lane(t, !full);
	}
	free(t);
}

/* Places that stay move up. */
static void keep_places(struct ablation *a, bool (*stays)(const struct ablation *a, unsigned at))
{
	unsigned kept = 0;
	for (unsigned i = 0; i < a->places; i++) {
		if (!stays(a, i))
			continue;
		assert(kept <= i);
		a->place[kept] = a->place[i];
		for (unsigned u = 0; u < a->lanes * a->workloads; u++)
			a->clean[u].reached[kept] = a->clean[u].reached[i];
		kept++;
	}
	a->places = kept;
}

/* What is not reached and is another store's, or does not order anything, is no place of ours. */
static bool is_ours(const struct ablation *a, unsigned at)
{
	const struct place *place = &a->place[at].place;
	return reached(a, at) || (strchr(place->name, '/') && place->kind != PLACE_ORDER);
}

/* Where the whole is not needed, a part of it need not be reported. */
static bool is_reported(const struct ablation *a, unsigned at)
{
	return !a->place[at].place.part || !at || a->place[at - 1].result.broken;
}

/* It may have been stopped early: only what is done is a place. */
static bool is_done(const struct ablation *a, unsigned at)
{
	return a->place[at].done;
}

/* --- the campaigns that the list names --- */

static int explore_rare(struct attempt *t)
{
	const struct ablated *p = &t->a->place[t->at];
	struct workload w;
	const char *expected;
	bool blamed = false;
	t->config = *t->a->base;
	int error = plan_set_parts(&t->config.setup, p->row->config);
	if (!error)
		error = workload_named(p->row->workload, &w, &expected);
	if (error) {
		snprintf(t->r->why, sizeof(t->r->why), "ablation.txt: no %s of this name: %s %s",
			 "configuration or workload", p->row->config, p->row->workload);
		return error;
	}
	t->c = campaign_of(t->a, &t->config);
	t->c.workload = &w;
	t->c.workloads = 1;
	t->c.options.runs = campaign_default.runs;
	t->c.options.states = campaign_default.states;
	t->config.share.one_in = 1;
	error = setup_without(&t->config.setup, &p->place);
	if (!error)
		error = find_break(t, TM_BIT(p->row->contract), &blamed);
	if (blamed && note_failure(t, t->run.contract))
		error = keep_trace(t->a, &p->place, &t->run, t->r);
	broken_run_free(&t->run);
	workload_free(&w);
	return error;
}

static void rare_unit(void *arg, unsigned unit, void *result)
{
	const struct ablation *a = arg;
	const struct ablate_row *row = a->place[unit].row;
	struct ablate_result *r = result;
	struct attempt *t = calloc(1, sizeof(*t));
	if (t)
		*t = (struct attempt){.a = a, .at = unit, .r = r};
	r->error = !t ? -ENOMEM : row && row->verdict == ABLATE_RARE ? explore_rare(t) : 0;
	free(t);
}

/* Work on each place. */
static int run_places(struct ablation *a, void (*work_on)(void *, unsigned, void *), bool rare)
{
	struct ablate_result *result = calloc(a->places + 1, sizeof(*result));
	_Static_assert(sizeof(*result) <= DRIVER_RESULT_MAX, "a result is one message");
	bool done[PLACES_MAX] = {false};
	if (!result)
		return -ENOMEM;
	int error = run_driver(a, a->places, sizeof(*result), work_on, result, done);
	for (unsigned i = 0; i < a->places && (!error || error == -EINTR); i++) {
		struct ablated *p = &a->place[i];
		p->done = done[i];
		*(rare ? &p->rare : &p->result) = result[i];
		if (!result[i].error)
			continue;
		error = result[i].error;
		snprintf(a->why, sizeof(a->why), "without %.80s: %.200s", p->place.name,
			 result[i].why);
	}
	free(result);
	return error;
}

/* --- the store's list --- */

static bool says(const struct ablated *p)
{
	const struct ablate_result *r = &p->result;
	switch (p->row->verdict) {
	case ABLATE_ELSEWHERE:
		return r->broken && r->lane;
	case ABLATE_UNREACHED:
		return !r->reached;
	case ABLATE_RARE:
		return r->reached && !r->broken && p->rare.broken;
	default:
		return r->reached && !r->broken;
	}
}

static void compare(struct ablation *a)
{
	unsigned met = 0;
	for (unsigned i = 0; i < a->places; i++) {
		struct ablated *p = &a->place[i];
		bool breaks = p->result.broken && !p->result.lane;
		met += p->row != NULL;
		p->surprise = p->row ? !says(p) : !breaks;
		a->surprises += p->surprise;
	}
	a->vanished = a->options.place || a->undone ? 0 : a->list.n - met;
	a->surprises += a->vanished;
}

/* --- all --- */

int ablate_run(struct ablation *a)
{
	int error = ablate_list_read(&a->list, a->base->store, a->why, sizeof(a->why));
	if (!error)
		error = add_lanes(a);
	if (!error)
		error = add_places(a);
	if (!error && a->places) /* a name that no place has is told at once */
		error = look_at_all(a);
	if (error || !a->places)
		return error;
	keep_places(a, is_ours);
	error = run_places(a, work, false);
	if (error && error != -EINTR)
		return error;
	keep_places(a, is_reported);
	for (unsigned i = 0; i < a->places; i++) {
		struct ablated *p = &a->place[i];
		p->row = ablate_list_find(&a->list, p->place.name);
		p->done &= !error || !p->row || p->row->verdict != ABLATE_RARE;
	}
	if (!error)
		error = run_places(a, rare_unit, true);
	if (error && error != -EINTR)
		return error;
	unsigned all = a->places;
	keep_places(a, is_done);
	a->undone = all - a->places;
	compare(a);
	return error;
}

bool ablate_reaches(const struct ablation *a, unsigned lane, unsigned workload, unsigned place)
{
	return clean_of(a, lane, workload)->reached[place];
}

const struct ablated *ablate_list_place(const struct ablation *a, const struct ablate_row *row)
{
	for (unsigned i = 0; i < a->places; i++)
		if (a->place[i].row == row)
			return &a->place[i];
	return NULL;
}

void ablate_free(struct ablation *a)
{
	ablate_list_free(&a->list);
	free(a->clean);
	free(a->place);
}
