/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running a campaign: a pool of processes explores the units. A result is a struct of plain
 * numbers. Which of its runs broke a contract is all that travels; the parent repeats that
 * run when it wants the trace.
 */
#include "checker/campaign/campaign.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "checker/campaign/budget.h"
#include "checker/campaign/driver.h"
#include "checker/campaign/schedule.h"
#include "checker/campaign/search.h"
#include "core/clock.h"
#include "faultinject/random_source.h"
#include "faultinject/trace_source.h"

#define FIRST_STATES 4		/* one in so many states is not kept for later runs */
#define TWICE_PART   4		/* options.twice: one in so many runs and states more */
#define ALL_IMAGES   (1u << 20) /* of a point: more are not tried, and the search says so */
/* Of one workload of a row that is searched beside random runs. None of the stores here comes
 * near; others' may be of any size. */
#define BESIDE_RUNS   100000
#define BESIDE_STATES 500000

const struct campaign_options campaign_default = {
	.seed = 1,
	.runs = BUDGET_WHOLE_RUNS,
	.states = BUDGET_WHOLE_STATES,
	.deviations = 6,
	.preemptions = 2,
	.events = 1,
	.jobs = 1,
	.limits = {.images_per_point = 256,
		   .nested_every = 8,
		   .nested_half = true,
		   .life_every = 8,
		   .life_percent = 25, /* costs a fifth more time; what lives find grows with it */
		   .states = UINT64_MAX,
		   .tree_bytes = TREE_BYTES - SHARED_BYTES,
		   .share_tree = true},
};

void campaign_search_all(struct campaign_options *o)
{
	o->exhaustive = true;
	o->runs = o->states = UINT64_MAX;
	o->limits.images_per_point = ALL_IMAGES;
	o->limits.nested_every = o->limits.life_every = 0;
}

bool campaign_searches(const struct campaign *c, unsigned config)
{
	return c->options.exhaustive || c->config[config].searched;
}

const char *campaign_like(const struct campaign_config *cfg)
{
	return cfg->like ? cfg->like : cfg->name;
}

/* The campaign's, or those of a row that is searched beside random runs. */
static struct campaign_options options_of(const struct campaign *c, unsigned unit)
{
	struct campaign_options o = c->options;
	if (c->config[unit / c->workloads].searched) {
		campaign_search_all(&o);
		o.runs = BESIDE_RUNS;
		o.states = BESIDE_STATES;
	}
	return o;
}

unsigned campaign_one_in(const struct campaign_share *share, const char *workload)
{
	bool often = share->often && !strncmp(workload, share->often, strlen(share->often));
	assert(share->one_in);
	return (often ? 1 : share->one_in) * (share->part ? share->part : 1);
}

uint64_t campaign_sizes_seed(uint64_t seed, unsigned unit)
{
	uint64_t state = seed * 1000003 + unit;
	return random_next(&state);
}

/* The causes with which breaks of a configuration are compared. */
static void find_known(const struct campaign *c, const struct campaign_config *cfg,
		       struct known *out)
{
	const struct campaign_options *o = &c->options;
	const char *like = campaign_like(cfg);
	(o->all_causes ? known_nothing : known_find)(cfg->store, cfg->variant, like, out);
	if (o->baseline)
		baseline_accept(o->baseline, cfg->store, cfg->variant, like, out);
	if (o->blames)
		known_collect(out);
}

int campaign_setup(const struct campaign *c, unsigned unit, struct setup *s)
{
	const struct campaign_config *cfg = &c->config[unit / c->workloads];
	unsigned at = unit % c->workloads;
	struct workload w;
	int error = workload_copy(&w, &c->workload[at]);
	setup_init(s, cfg->store);
	if (error)
		return error;
	if (cfg->share.sized && at % cfg->share.sized == 0)
		workload_resize(&w, cfg->store, cfg->setup.hw.mtu,
				campaign_sizes_seed(c->options.seed, unit));
	workload_limit(&w, cfg->store);
	error = setup_like(s, &cfg->setup, &w);
	if (!c->options.exhaustive && !c->options.hunt)
		find_known(c, cfg, &s->known);
	workload_free(&w);
	return error;
}

unsigned campaign_faults(const struct campaign *c, unsigned unit)
{
	return c->faults ? c->faults[unit % c->workloads] : c->options.faults;
}

const char *campaign_left_out(const struct campaign *c, unsigned config)
{
	if (!campaign_searches(c, config))
		return "random schedules";
	for (unsigned w = 0; w < c->workloads; w++) {
		const struct campaign_unit *unit = &c->unit[config * c->workloads + w];
		if (!unit->done)
			return "it was left off before the end";
		if (unit->unstarted)
			return "the store does not start";
		if (!unit->complete)
			return "the budget of runs or states was used up";
		if (unit->counts.points_bounded)
			return "some points have too many images";
		if (unit->counts.unsure)
			return "some histories are too concurrent to be judged";
	}
	return NULL;
}

unsigned campaign_done(const struct campaign *c, unsigned config)
{
	unsigned done = 0;
	for (unsigned w = 0; w < c->workloads; w++)
		done += c->unit[config * c->workloads + w].done;
	return done;
}

/* Is it tried first whether the store has the room that it needs? A seeded bug of Tidemark's own is
 * the contracts' business, not the store's. */
static bool fills(const struct campaign *c, const struct setup *s)
{
	return !c->options.unfilled && !c->options.hunt && !s->mutant && !s->hw.mutant;
}

static int one_run(struct explorer *ex, struct schedule *schedule, uint64_t run)
{
	struct source *source = schedule_run(schedule, run);
	return explore_run(ex, source, &schedule->random.taken);
}

/* The run once more, without its power failures: is it the same, event by event? */
static bool same_again(struct explorer *ex, struct schedule *schedule, uint64_t run)
{
	uint64_t hash[2];
	for (unsigned i = 0; i < 2; i++) {
		world_run(&ex->worlds, schedule_run(schedule, run), NULL, NULL);
		hash[i] = sim_hash(ex->worlds.world[0].sim) ^ ex->worlds.history->hash;
		world_end(&ex->worlds, 0);
	}
	return hash[0] == hash[1];
}

static unsigned one_in(const struct campaign *c, unsigned unit)
{
	const unsigned config = unit / c->workloads;
	return campaign_searches(c, config)
		       ? 1
		       : campaign_one_in(&c->config[config].share,
					 c->workload[unit % c->workloads].name);
}

/* Number of states that may have been tried when the nth run is over. The first runs find most that
 * is new, but the others need a share too: with two keys nothing would be left for them. */
static uint64_t states_until(uint64_t states, uint64_t run, uint64_t runs)
{
	uint64_t first = states / FIRST_STATES;
	assert(run < runs);
	return first + (uint64_t)((double)(states - first) * (double)(run + 1) / (double)runs);
}

/* What the run may have of the states. Schedules are cheap, power failures are not. */
static void share_states(struct explorer *ex, uint64_t run, uint64_t runs)
{
	ex->limits.no_crash |= !explore_more(ex);
	ex->run_states = states_until(ex->limits.states, run, runs);
	ex->few_images = ex->run_states < ex->counts.states + 2ull * ex->limits.images_per_point;
}

/* Runs of a unit, but for those with two events. */
static uint64_t unit_runs(const struct campaign *c, unsigned unit)
{
	const unsigned share = one_in(c, unit);
	return (c->options.runs + share - 1) / share;
}

/* Those with two events come last, so that the others are what they are without them. */
static void set_events(const struct campaign *c, unsigned unit, uint64_t run, struct schedule *s)
{
	const bool two = c->options.twice && run >= unit_runs(c, unit);
	const unsigned events = two ? 2 : c->options.events;
	if (!stops_servers_fail(&s->stops) || s->events == events)
		return;
	s->events = events;
	s->again_of = 0; /* it was recorded otherwise */
}

static int open_schedule(const struct campaign *c, struct explorer *ex, struct schedule *schedule)
{
	int error = schedule_open(schedule, &ex->worlds, c->options.seed, c->options.deviations);
	if (c->options.only)
		schedule->stops.wanted = c->options.only;
	schedule->events = stops_servers_fail(&schedule->stops) ? c->options.events : 0;
	return error;
}

/* Which runs does a unit make after the plain one? Of a small budget not all units the first ones:
 * units are much alike, and runs of one number stop tasks at the same part of their way. */
static uint64_t first_run(const struct campaign *c, unsigned unit, uint64_t runs)
{
	const struct campaign_config *cfg = &c->config[unit / c->workloads];
	const struct campaign_options *o = &c->options;
	char name[3 * CAMPAIGN_NAME];
	const struct budget *budget = o->hunt ? NULL : budget_of(o->runs, o->states);
	if (!budget || budget == budget_whole)
		return o->first;
	int len = snprintf(name, sizeof(name), "%s %s %s %s", cfg->store->name, cfg->variant,
			   cfg->name, c->workload[unit % c->workloads].name);
	assert(len > 0 && !o->first);
	const size_t size = (size_t)len < sizeof(name) ? (size_t)len : sizeof(name) - 1;
	const uint64_t windows = (budget_whole->runs + runs - 1) / runs;
	return XXH3_64bits(name, size) % windows * runs;
}

static int random_runs(const struct campaign *c, unsigned unit, struct explorer *ex,
		       struct campaign_unit *result)
{
	struct schedule schedule;
	struct frequency once = {0};
	const uint64_t runs = unit_runs(c, unit), first = first_run(c, unit, runs);
	int error = open_schedule(c, ex, &schedule);
	const bool twice = c->options.twice && !error && stops_servers_fail(&schedule.stops);
	const uint64_t all = runs + (twice ? runs / TWICE_PART : 0);
	uint64_t run;
	for (run = c->options.first;
	     !error && run < all && !(ex->stop_at && ex->stopped) && !ex->unstarted; run++) {
		if (c->options.hunt && !explore_more(ex))
			break;
		if (run == runs) {
			once = ex->frequency;
			ex->limits.states = ex->counts.states + ex->limits.states / TWICE_PART;
			ex->limits.no_crash = c->options.limits.no_crash;
		}
		if (!c->options.hunt)
			share_states(ex, run < runs ? run : runs - 1, runs);
		set_events(c, unit, run, &schedule);
		ex->first = run || c->options.first ? first : 0;
		const uint64_t number = ex->first + run - c->options.first;
		error = one_run(ex, &schedule, number);
		if (!error && c->options.doublecheck && !ex->unstarted &&
		    !same_again(ex, &schedule, number))
			result->diverged++;
	}
	result->complete = run == all && explore_more(ex);
	if (run > runs) { /* recorded are numbers of the runs before these */
		once.accepted = ex->frequency.accepted;
		ex->frequency = once;
	}
	schedule_close(&schedule);
	return error;
}

static int all_runs(const struct campaign *c, unsigned unit, struct explorer *ex,
		    struct campaign_unit *result)
{
	struct search_limits limits = search_default;
	struct search *search = malloc(sizeof(*search));
	if (!search)
		return -ENOMEM;
	limits.preemptions = c->options.preemptions;
	limits.faults = campaign_faults(c, unit);
	limits.runs = options_of(c, unit).runs;
	int error = search_run(search, ex, &limits);
	result->complete = search->complete;
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		const struct deviations *list = &search->failing[k];
		result->contract[k].deviations = list->n;
		if (list->n)
			memcpy(result->contract[k].deviation, list->d, list->n * sizeof(*list->d));
	}
	search_close(search);
	free(search);
	return error;
}

int broken_run_take(struct broken_run *run, const struct explorer *ex, int explored)
{
	const struct failure *f = explored ? &ex->wrong : &ex->failure[run->contract];
	if (explored && explored != -ENOTRECOVERABLE)
		return explored;
	snprintf(run->text, sizeof(run->text), "%s", f->text);
	int error = f->found ? deviations_append(&run->path, &f->deviations) : -ENOENT;
	return error ? error : explored;
}

/* What ended the exploration. */
static int take_first(const struct explorer *ex, int explored, struct setup *s,
		      struct broken_run *first)
{
	while (first->contract < TM_CONTRACTS && !explored &&
	       !(ex->stop_at & TM_BIT(first->contract) && ex->failure[first->contract].found))
		first->contract++;
	if (first->contract == TM_CONTRACTS)
		return 0;
	int error = setup_like(&first->setup, s, &s->w);
	return error ? error : broken_run_take(first, ex, explored);
}

/* The workload `at` of a configuration's store, within its limits; in `w`, to be freed in any case.
 * Is it then another one than before? */
static bool limited(const struct campaign *c, unsigned config, unsigned at, struct workload *w,
		    bool *within)
{
	const struct workload *from = &c->workload[at];
	if (workload_copy(w, from))
		return *within = false; /* campaign_setup() will say why */
	*within = workload_limit(w, c->config[config].store);
	return !workload_same(w, from);
}

/* Is a workload, within the store's limits, one that the campaign has besides? The first of those
 * that become the same is run. */
static bool is_another(const struct campaign *c, unsigned config, unsigned at,
		       const struct workload *w)
{
	bool another = false;
	for (unsigned i = 0; i < c->workloads && !another; i++) {
		struct workload other;
		bool within, changed;
		if (i == at)
			continue;
		changed = limited(c, config, i, &other, &within);
		another = within && (i < at || !changed) && workload_same(w, &other);
		workload_free(&other);
	}
	return another;
}

enum campaign_use campaign_use(const struct campaign *c, unsigned unit)
{
	const unsigned config = unit / c->workloads, at = unit % c->workloads;
	const struct campaign_config *cfg = &c->config[config];
	const bool sized = cfg->share.sized && at % cfg->share.sized == 0;
	struct workload w;
	bool within = true;
	const char *const *name = cfg->searched;
	while (name && *name && strcmp(*name, c->workload[at].name) != 0)
		name++;
	if ((name && !*name) || (workload_cleans(&c->workload[at]) && !cfg->store->clean) ||
	    !workload_fits(&c->workload[at], cfg->store))
		return CAMPAIGN_USELESS;
	bool changed = limited(c, config, at, &w, &within);
	enum campaign_use use = !within ? CAMPAIGN_MORE_KEYS
				: changed && !sized && is_another(c, config, at, &w)
					? CAMPAIGN_ANOTHER
					: CAMPAIGN_USED;
	workload_free(&w);
	return use;
}

/* All that is to be done of it. */
static int unit_whole(const struct campaign *c, unsigned unit, struct explorer *ex,
		      struct campaign_unit *result)
{
	return (campaign_searches(c, unit / c->workloads) ? all_runs : random_runs)(c, unit, ex,
										    result);
}

static void explore_unit(const struct campaign *c, unsigned unit, unsigned stop_at,
			 struct campaign_unit *result, struct broken_run *first, struct cuts *cuts)
{
	struct setup s;
	const struct campaign_options options = options_of(c, unit);
	struct explore_limits limits = options.limits;
	struct explorer *ex;
	limits.states = options.states / one_in(c, unit);
	ex = malloc(sizeof(*ex));
	result->error = ex ? campaign_setup(c, unit, &s) : -ENOMEM;
	limits.fill = !result->error && fills(c, &s);
	if (!result->error)
		result->error = explore_open(ex, &s, &limits);
	if (result->error) {
		snprintf(result->why, sizeof(result->why), "%s", strerror(-result->error));
		if (ex)
			setup_free(&s);
		free(ex);
		return;
	}
	ex->stop_at = stop_at;
	ex->cuts = cuts;
	if (cuts)
		cuts_watch(cuts, &ex->worlds);
	result->error = unit_whole(c, unit, ex, result);
	if (result->error == -ENOTRECOVERABLE)
		snprintf(result->why, sizeof(result->why), "%s", ex->wrong.text);
	if (first && (!result->error || result->error == -ENOTRECOVERABLE))
		result->error = take_first(ex, result->error, &s, first);
	result->counts = ex->counts;
	result->unstarted = ex->unstarted;
	if (result->unstarted)
		snprintf(result->why, sizeof(result->why), "%s",
			 ex->worlds.unloaded ? ex->why : ex->worlds.world[0].result.why);
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		if (!ex->broken[k] && !ex->strange[k].states)
			continue;
		result->told |= TM_BIT(k);
		result->contract[k].found = ex->failure[k].found;
		result->contract[k].run = ex->failure[k].run;
		result->contract[k].broken = ex->broken[k];
		result->contract[k].modes = ex->modes[k];
		result->contract[k].strange = ex->strange[k];
	}
	memcpy(result->shown, ex->frequency.runs, sizeof(result->shown));
	result->accepted = ex->frequency.accepted;
	memcpy(result->shown_run, ex->frequency.run, sizeof(result->shown_run));
	explore_close(ex);
	setup_free(&s);
	free(ex);
}

/* A unit's result; where coverage is wanted, with what it covered. */
struct covering_unit {
	struct campaign_unit unit;
	struct covered_unit covered;
};

static void explore_one(const struct campaign *c, unsigned unit, unsigned stop_at,
			struct campaign_unit *result, struct broken_run *first,
			struct covered_unit *covered)
{
	const struct tm_store *store = c->config[unit / c->workloads].store;
	struct cuts *cuts = NULL;
	if (first)
		memset(first, 0, sizeof(*first));
	result->done = true;
	if (campaign_use(c, unit) != CAMPAIGN_USED) {
		result->complete = true;
		if (first)
			first->contract = TM_CONTRACTS;
		return;
	}
	int error = covered ? covered_begin(c->options.covered, store, &cuts) : 0;
	if (!error)
		explore_unit(c, unit, stop_at, result, first, cuts);
	if (!error && covered)
		error = covered_end(c->options.covered, store, cuts, covered);
	if (!error)
		return;
	result->error = error;
	snprintf(result->why, sizeof(result->why), "coverage: %s", strerror(-error));
}

void campaign_explore(const struct campaign *c, unsigned unit, unsigned stop_at,
		      struct campaign_unit *result, struct broken_run *first)
{
	explore_one(c, unit, stop_at, result, first, NULL);
}

static void work(void *arg, unsigned unit, void *result)
{
	const struct campaign *c = arg;
	struct covering_unit *both = result;
	struct campaign_unit *u = &both->unit;
	explore_one(c, unit, 0, u, NULL, c->options.covered ? &both->covered : NULL);
	u->config = unit / c->workloads;
	u->workload = unit % c->workloads;
}

/* What is `runs` to a limit? Of what is near, the nearest is kept. */
static void look_near(struct campaign_cell *cell, uint64_t runs, uint64_t limit)
{
	if (runs * NEAR_PARTS >= limit * (NEAR_PARTS - 1) &&
	    runs * cell->nearly_limit >= cell->nearly_runs * limit) {
		cell->nearly_runs = runs;
		cell->nearly_limit = limit;
	}
}

/* The least of the first unit that has one: fewest parts. */
static void merge_strange(struct campaign_cell *cell, unsigned unit, const struct strange *s,
			  unsigned enough)
{
	unsigned least = 0;
	bool first = !cell->strange_states;
	assert(!s->states == !s->runs && s->runs <= s->states);
	cell->strange_states += s->states;
	cell->strange_runs += s->runs;
	cell->strange = cell->strange_runs >= enough;
	if (!cell->strange)
		look_near(cell, cell->strange_runs, enough);
	if (!s->n || !first)
		return;
	for (unsigned i = 1; i < s->n; i++)
		if (s->one[i].blame.parts < s->one[least].blame.parts)
			least = i;
	cell->strange_unit = unit;
	cell->strange_run = s->one[least].run;
	cell->blame = s->one[least].blame;
}

uint64_t campaign_shown(const struct campaign *c, unsigned config, unsigned row, unsigned *most)
{
	uint64_t runs = 0;
	assert(row < KNOWN_STORE_ROWS);
	*most = config * c->workloads;
	for (unsigned u = config * c->workloads; u < (config + 1) * c->workloads; u++) {
		runs += c->unit[u].shown[row];
		if (c->unit[u].shown[row] > c->unit[*most].shown[row])
			*most = u;
	}
	return runs;
}

/* Which known causes do far more runs show than were recorded? Of a smaller budget than that with
 * which they were, as many fewer are expected. */
static void compare_shares(struct campaign *c, unsigned config)
{
	const struct campaign_config *cfg = &c->config[config];
	unsigned first, rows = known_store_rows(cfg->store, &first), most;
	for (unsigned i = 0; i < rows; i++) {
		uint64_t runs = campaign_shown(c, config, i, &most);
		struct campaign_cell *cell = &c->cell[config][known_contract(first + i)];
		uint32_t recorded;
		if (!runs ||
		    !known_share(cfg->store, cfg->variant, cfg->name, first + i, &recorded))
			continue;
		recorded = (uint32_t)budget_expected(recorded, c->options.runs);
		if (runs <= known_limit(recorded)) {
			look_near(cell, runs, known_limit(recorded));
			continue;
		}
		if (cell->often &&
		    runs * known_limit(cell->recorded) <= cell->often_runs * known_limit(recorded))
			continue;
		cell->often = true;
		cell->often_row = first + i;
		cell->often_runs = runs;
		cell->recorded = recorded;
		cell->often_unit = most;
		cell->often_run = c->unit[most].shown_run[i];
	}
}

uint64_t campaign_accepted(const struct campaign *c, unsigned config)
{
	uint64_t rows = 0;
	for (unsigned u = config * c->workloads; u < (config + 1) * c->workloads; u++)
		rows |= c->unit[u].accepted;
	return rows;
}

/* Compare the cells with the baseline. */
static void compare_baseline(struct campaign *c, unsigned config, const struct known *known)
{
	const uint64_t rows = campaign_accepted(c, config);
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		c->cell[config][k].baselined = known->strict & TM_BIT(k);
	for (unsigned i = 0; i < known->accepteds; i++)
		if (rows & 1ull << i)
			c->cell[config][known->accepted[i].contract].accepted = true;
}

static void merge_unit(struct campaign *c, unsigned unit, const struct known *known)
{
	const struct campaign_unit *result = &c->unit[unit];
	const unsigned config = unit / c->workloads;
	const unsigned enough = campaign_searches(c, config)
					? 1
					: (unsigned)budget_expected(STRANGE_RUNS, c->options.runs);
	explore_counts_add(&c->total[config], &result->counts);
	for (unsigned told = result->told; told; told &= told - 1) {
		const unsigned k = (unsigned)__builtin_ctz(told);
		struct campaign_cell *cell = &c->cell[config][k];
		if (result->contract[k].found && !cell->broken) {
			cell->broken = true;
			cell->unit = unit;
			cell->mode = (struct failure_mode){result->contract[k].run,
							   FAILURE_MODE_ANYTHING};
		}
		cell->broken_states += result->contract[k].broken;
		if (!(known->collected & TM_BIT(k)))
			merge_strange(cell, unit, &result->contract[k].strange,
				      known->strict & TM_BIT(k) ? 1 : enough);
	}
}

/* What its units say so far. They come in any order and are merged in one, so it is done again. */
static void merge(struct campaign *c, unsigned config)
{
	struct known known = {0};
	if (c->options.baseline || c->options.blames)
		find_known(c, &c->config[config], &known);
	memset(c->cell[config], 0, sizeof(c->cell[config]));
	c->total[config] = (struct explore_counts){0};
	for (unsigned u = config * c->workloads; u < (config + 1) * c->workloads; u++)
		if (c->unit[u].done)
			merge_unit(c, u, &known);
	compare_baseline(c, config, &known);
	if (c->options.shares)
		compare_shares(c, config);
}

static void take_result(void *arg, unsigned unit, const void *result)
{
	struct campaign *c = arg;
	const struct covering_unit *both = result;
	c->unit[unit] = both->unit;
	if (c->options.covered &&
	    covered_add(c->options.covered, c->config[unit / c->workloads].store, &both->covered))
		c->unit[unit].error = -ENOSPC;
	merge(c, unit / c->workloads);
	if (c->options.taken)
		c->options.taken(c->options.taken_arg, unit);
}

/* The bits of a workload's number turned round. In that order the first few workloads are from all
 * parts of the list, which has those that are alike next to each other, and the shortest is first.
 */
static uint64_t turned(unsigned workload)
{
	uint64_t bits = 0;
	for (unsigned i = 0; i < 32; i++)
		bits |= (uint64_t)(workload >> i & 1) << (31 - i);
	return bits;
}

/* A workload in all configurations, then another one. */
static uint64_t rank(const void *arg, unsigned unit)
{
	const struct campaign *c = arg;
	return turned(unit % c->workloads) * c->configs + unit / c->workloads;
}

int campaign_run(struct campaign *c)
{
	unsigned units = c->configs * c->workloads;
	struct driver driver = {.units = units,
				.how = {.jobs = c->options.jobs,
					.bounds = c->options.bounds,
					.progress = c->options.progress},
				.result_bytes = c->options.covered ? sizeof(struct covering_unit)
								   : sizeof(struct campaign_unit),
				.work = work,
				.take = take_result,
				.rank = rank,
				.states_at = DRIVER_FIELD(struct campaign_unit, counts.states),
				.error_at = DRIVER_FIELD(struct campaign_unit, error),
				.progress_arg = "workload",
				.arg = c};
	_Static_assert(sizeof(struct covering_unit) <= DRIVER_RESULT_MAX,
		       "a result is one message");
	c->unit = calloc(units + 1, sizeof(*c->unit));
	c->cell = calloc(c->configs + 1, sizeof(*c->cell));
	c->total = calloc(c->configs + 1, sizeof(*c->total));
	if (!c->unit || !c->cell || !c->total)
		return -ENOMEM;
	int error = driver_run(&driver);
	for (unsigned u = 0; u < units && !error; u++)
		if (c->unit[u].error)
			error = c->unit[u].error;
	c->seconds = clock_seconds() - driver.started;
	return error;
}

void campaign_free(struct campaign *c)
{
	for (unsigned w = 0; w < c->workloads; w++)
		workload_free(&c->workload[w]);
	free(c->workload);
	free(c->config);
	free(c->faults);
	free(c->unit);
	free(c->cell);
	free(c->total);
}

/* This one of the unit's random runs. */
static int drawn_run(const struct campaign *c, unsigned unit, uint64_t run, struct explorer *ex)
{
	struct schedule schedule;
	int error = open_schedule(c, ex, &schedule);
	if (!error) {
		set_events(c, unit, run, &schedule);
		error = one_run(ex, &schedule, run);
	}
	schedule_close(&schedule);
	return error;
}

/* The unit's first run in which a systematic search saw the contract broken. */
static int searched_run(const struct campaign *c, unsigned unit, unsigned contract,
			struct explorer *ex)
{
	struct campaign_unit *u = &c->unit[unit];
	struct deviations list = {.d = u->contract[contract].deviation,
				  .n = u->contract[contract].deviations};
	struct trace_source source;
	int error = trace_start(&source, &list);
	if (error)
		return error;
	error = explore_run(ex, &source.source, &source.taken);
	trace_finish(&source);
	return error;
}

struct campaign_break campaign_strange(const struct campaign *c, unsigned config, unsigned contract)
{
	const struct campaign_cell *cell = &c->cell[config][contract];
	const struct failure_mode mode = {cell->strange_run, FAILURE_MODE_ANYTHING};
	assert(cell->strange);
	return (struct campaign_break){cell->strange_unit, contract, mode, BREAK_STRANGE, 0};
}

struct campaign_break campaign_often(const struct campaign *c, unsigned config, unsigned contract)
{
	const struct campaign_cell *cell = &c->cell[config][contract];
	const struct failure_mode mode = {cell->often_run, FAILURE_MODE_ANYTHING};
	assert(cell->often);
	return (struct campaign_break){cell->often_unit, contract, mode, BREAK_OFTEN,
				       cell->often_row};
}

/* Ways to find a break again: in its run alone, without power failures, with all images of a point
 * or with few; or as it was found, after all runs before it. */
enum again { AGAIN_RUN, AGAIN_ALL_IMAGES, AGAIN_FEW_IMAGES, AGAIN_WHOLE_UNIT };

static int look_again(const struct campaign *c, const struct campaign_break *which, enum again how,
		      struct explorer *ex)
{
	if (how == AGAIN_WHOLE_UNIT) {
		struct campaign_unit unused = {0};
		return unit_whole(c, which->unit, ex, &unused);
	}
	ex->few_images = how == AGAIN_FEW_IMAGES;
	return campaign_searches(c, which->unit / c->workloads)
		       ? searched_run(c, which->unit, which->contract, ex)
		       : drawn_run(c, which->unit, which->mode.run, ex);
}

static int run_again(const struct campaign *c, const struct campaign_break *which, enum again how,
		     struct broken_run *out)
{
	struct explorer *ex = malloc(sizeof(*ex));
	const struct campaign_options options = options_of(c, which->unit);
	struct explore_limits limits = options.limits;
	if (how == AGAIN_WHOLE_UNIT) {
		limits.states = options.states / one_in(c, which->unit);
	} else {
		/* What was explored before this run is not known here. */
		limits.nested_half = false;
		limits.life_percent = 0;
		limits.no_crash |= how == AGAIN_RUN;
	}
	limits.fill = fills(c, &out->setup);
	int error = ex ? explore_open(ex, &out->setup, &limits) : -ENOMEM;
	if (error) {
		free(ex);
		return error;
	}
	ex->stop_at = TM_BIT(which->contract);
	error = broken_run_take(out, ex, look_again(c, which, how, ex));
	explore_close(ex);
	free(ex);
	return error;
}

int campaign_again(const struct campaign *c, const struct campaign_break *which,
		   struct broken_run *out)
{
	memset(out, 0, sizeof(*out));
	out->contract = which->contract;
	int error = campaign_setup(c, which->unit, &out->setup);
	out->setup.unknown_only = which->sort ? TM_BIT(which->contract) : 0;
	if (!error && which->sort == BREAK_OFTEN)
		known_only(&out->setup.known, which->row);
	const bool crash = which->mode.kinds & FAILURE_MODE_CRASH,
		   unknown = which->mode.kinds == FAILURE_MODE_ANYTHING;
	if (!error)
		error = !crash || unknown ? run_again(c, which, AGAIN_RUN, out) : -ENOENT;
	if (error == -ENOENT && crash)
		error = run_again(c, which, AGAIN_ALL_IMAGES, out);
	/* How many images it had is not known either, and which of them were explored further
	 * depends on that. */
	if (error == -ENOENT)
		error = run_again(c, which, AGAIN_FEW_IMAGES, out);
	/* A point that is met in a life first is explored there, with few images; and the first run
	 * that a search kept may break it for a known cause. */
	if (error == -ENOENT && (!c->options.exhaustive || which->sort))
		error = run_again(c, which, AGAIN_WHOLE_UNIT, out);
	return error;
}

void broken_run_free(struct broken_run *run)
{
	setup_free(&run->setup);
	deviations_free(&run->path);
}
