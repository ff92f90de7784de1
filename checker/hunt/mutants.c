/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hunt for seeded bugs.
 *
 * When a failure counts. A store that breaks a contract anyway proves nothing about a
 * bug, so each mutant has controls: the same knobs with "bug=none", or where a knob
 * itself is the bug, the variant among the store's controls that has the other knobs. A
 * failure counts if
 *
 *	- its contract is one of those that the variant names (tm_variant.breaks),
 *	- the control keeps that contract at this hardware (expect_controls): LIN, for
 *	  example, holds only where a WRITE is visible when it completes, so it counts with
 *	  ack_early=off,
 *	  Where neither lane of a bug has such a contract, one that the control breaks anyway counts
 *	  for causes that are not known (checker/judge/known.h),
 *	- and the control, under the same workload and the same runs up to this one, at the
 *	  same hardware, does not break it.
 *
 * A store that says nothing of controls is compared run by run, where a cause is known of what its
 * expected.txt says that it breaks, for other causes. Where a bug only breaks what the control
 * breaks, too, it cannot be told whether it shows: that is no miss.
 *
 * The search: nothing is known of the bug, so all built-in workloads are tried, in all lanes: the
 * two kinds of hardware that differ most in what holds, and, with their share of a campaign's runs
 * and states, the other columns of the default campaign (plan_column()), lengths and shapes. To
 * exhaust one lane after the other would find late what a few runs of a late one show. So the
 * search goes over them in passes, with more in each (passes[], below), and within a pass each
 * workload is tried in all lanes before the next one. The first failure that counts ends the
 * search.
 *
 * What a run breaks while the power holds (RDA, LIN, LIVE, OK) is looked for by passes of runs
 * without power failures, probes, which come before passes as long with them, and cost little. Such
 * a pass begins with the run at which the one before it ended. Where a run breaks something, no
 * power failure is needed, and none is tried: the states of the runs before it would use up what a
 * campaign allows.
 *
 * Random runs stop no task between two accesses to memory that is not PM. For what comes in between
 * one pass, which comes before the longest ones, searches a few small workloads systematically
 * (plan_search()).
 *
 * A bug of the model (core/hardware/mutant.h) is looked for in the same way, with all controls,
 * which are right: whatever they seem to break is the model's fault.
 */
#include "checker/hunt/mutants.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/campaign/campaign.h"
#include "checker/campaign/schedule.h"
#include "checker/explore/verdicts.h"
#include "checker/hunt/nic_rules.h"
#include "checker/hunt/plan.h"
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "checker/trace/shrink.h"
#include "checker/trace/wrong.h"
#include "core/clock.h"
#include "scenarios/stores.h"

const struct mutant_options mutant_default = {.seed = 1, .states = 1000000, .shrink = true};

/* The sorts of lanes. */
enum lane_sort {
	LANE_HARDWARE = 1, /* a kind of hardware */
	LANE_SIZES = 2,	   /* lengths at edges */
	LANE_SHAPE = 4,	   /* one of the store's shapes */
	LANE_SEARCH = 8,   /* a systematic search, whatever the pass has for each workload */
};

/* A place to look: a store's variant at some hardware. */
struct lane {
	enum lane_sort sort;
	const struct tm_store *store;
	const char *variant,
		*control; /* control: the variant to compare with; NULL: this one with bug=none */
	bool ack_early;
	const char *mutant;	    /* NULL: none */
	const char *knob;	    /* of the hardware, besides, "name=value"; NULL: none */
	const char *workload;	    /* the only one that is tried; NULL: all */
	char column[CAMPAIGN_NAME]; /* of the default campaign (plan_column()); "": none */
	bool no_lives;		    /* a store that has recovered is not used */
	unsigned want;		    /* contracts */
	unsigned unknown;	    /* of these, the ones that count for unknown causes only */
	unsigned first; /* of these, the ones that an earlier lane looks for, too: left to it at
			   first */
};

/* A pass of the search: what each workload gets in some lanes. */
struct pass {
	unsigned lanes;	       /* enum lane_sort */
	uint64_t runs, states; /* 0: as many as a campaign allows */
	bool probe;	       /* runs without power failures; if one breaks something: up to it */
};

/*
 * The sizes were found by trying some on all seeded bugs; docs/performance.md says which bugs each
 * pass finds. Shapes come later than lengths, as some stores have dozens of them.
 */
static const struct pass passes[] = {
	{LANE_HARDWARE, 1, 400, false},
	{LANE_HARDWARE, 20, 0, true},
	{LANE_SIZES, 6, 250, false},
	{LANE_HARDWARE, 150, 0, true},
	{LANE_HARDWARE, 64, 500, false},
	{LANE_SHAPE, 1, 100, false},
	{LANE_SIZES | LANE_SHAPE, 64, 0, true},
	{LANE_SIZES | LANE_SHAPE, 64, 500, false},
	{LANE_HARDWARE, 400, 0, true},
	{LANE_SEARCH, 0, 0, false},
	{LANE_HARDWARE, 64, 2000, false},
	{LANE_HARDWARE, 200, 0, false},
	{LANE_SIZES | LANE_SHAPE, 0, 0, false},
	{LANE_HARDWARE, 0, 0, false},
};

#define LANES	       64
#define RULE_RUNS      300 /* of each rule of the hardware */
#define PASSES	       (sizeof(passes) / sizeof(passes[0]))
#define THOROUGH       9 /* from this pass on nothing is put off */
#define CONTROL_PASSES 5 /* so far goes the search of a control */

struct search {
	const struct mutant_options *options;
	struct mutant_result *out;
	double start;
	unsigned pass; /* where it ended */
	int error;
};

/* A lane under one workload: a campaign of one unit. */
struct bench {
	struct campaign campaign;
	struct campaign_config config;
	struct workload w;
	unsigned share; /* it gets one in so many of a campaign's runs and states */
	struct campaign_unit unit;
	struct broken_run run; /* the break that ended it */
};

static bool ack_early(const struct expect_control *c)
{
	return !strcmp(c->hardware, "default");
}

/* The control that a store's bug is compared with at this hardware; NULL: none. */
static const struct expect_control *control_of(const struct tm_store *store,
					       const struct tm_variant *bug, bool early)
{
	const struct expect_control *best = NULL, *c;
	unsigned n;
	c = expect_controls(&n);
	for (; n--; c++) {
		const struct tm_variant *v = variant_find(store, c->variant);
		if (strcmp(c->store, store->name) ||
		    (v && !variant_has_knobs(bug->knobs, v->knobs)))
			continue;
		/* What holds where a completion may come early holds where it may not, too. */
		if (ack_early(c) == early || (ack_early(c) && v))
			best = !best || v ? c : best;
	}
	return best;
}

/* Is it a variant with a bug that a knob of that name switches on? */
static bool find_bug(const struct lane *lane)
{
	const struct tm_variant *v = variant_find(lane->store, lane->variant);
	return v && strstr(v->knobs, "bug=");
}

static const char *lane_hardware(const struct lane *lane)
{
	return lane->ack_early ? "default" : "ack_early=off";
}

/* The causes that are known of what the store of a lane breaks by design. False: none are. */
static bool lane_known(const struct lane *lane, unsigned contracts, struct known *out)
{
	bool any = known_rows(lane->store, variant_base(lane->store, lane->variant),
			      lane_hardware(lane), out);
	out->compared = any ? contracts : 0;
	return any;
}

/* Variant, knobs and hardware of a lane. */
static int set_lane(struct setup *s, const struct lane *lane, bool without_bug,
		    const struct mutant_options *o, struct campaign_share *share)
{
	const char *expected;
	setup_init(s, lane->store);
	int error = setup_variant(s, without_bug && lane->control ? lane->control : lane->variant);
	if (!error)
		error = setup_knob(s, "ack_early", lane->ack_early ? "on" : "off", &expected);
	if (!error && lane->knob)
		error = setup_switch(s, lane->knob, &expected);
	if (!error && without_bug && !lane->control && find_bug(lane))
		error = setup_knob(s, "bug", "none", &expected);
	if (!error && lane->column[0])
		plan_column(s, lane->column, share);
	for (unsigned i = 0; i < o->knobs && !error; i++)
		error = setup_switch(s, o->knob[i], &expected);
	if (!error && !without_bug && lane->mutant)
		error = setup_hardware(s, "mutant", lane->mutant, &expected);
	s->unknown_only = lane->unknown;
	if (lane->unknown)
		lane_known(lane, lane->unknown, &s->known);
	return error;
}

static void close_bench(struct bench *b)
{
	if (b) {
		workload_free(&b->w);
		broken_run_free(&b->run);
	}
	free(b);
}

/* NULL: s->error says why; 0: there is no such workload. */
static struct bench *open_bench(const struct lane *lane, unsigned workload, bool without_bug,
				struct search *s)
{
	struct campaign_share share = {.one_in = 1};
	struct bench *b = calloc(1, sizeof(*b));
	int error = b ? set_lane(&b->config.setup, lane, without_bug, s->options, &share) : -ENOMEM;
	if (!error)
		error = workload_for_store(lane->store, workload, &b->w);
	s->error = error == -ENOENT ? 0 : error;
	if (error) {
		close_bench(b);
		return NULL;
	}
	b->config.store = lane->store;
	b->config.share.one_in = 1;
	b->campaign = (struct campaign){.config = &b->config,
					.configs = 1,
					.workload = &b->w,
					.workloads = 1,
					.options = campaign_default};
	b->campaign.options.hunt = true;
	b->campaign.options.seed = s->options->seed;
	if (lane->sort == LANE_SEARCH)
		plan_search(&b->config);
	b->share = campaign_one_in(&share, b->w.name);
	b->campaign.options.states = campaign_default.states / b->share;
	if (lane->no_lives)
		b->campaign.options.limits.life_every = 0;
	if (share.sized && workload % share.sized == 0)
		workload_resize(&b->w, lane->store, b->config.setup.hw.mtu,
				campaign_sizes_seed(s->options->seed, workload));
	return b;
}

/* Runs `from` to `runs` and their power failures, until one of the contracts in `want` breaks.
 * Returns that contract, or TM_CONTRACTS; also if s->error is set. */
static unsigned explore(struct search *s, struct bench *b, unsigned want, uint64_t from,
			uint64_t runs)
{
	b->campaign.options.first = from;
	b->campaign.options.runs = runs;
	broken_run_free(&b->run);
	memset(&b->unit, 0, sizeof(b->unit));
	wrong_explore(&b->campaign, 0, want, &b->unit, &b->run);
	s->error = b->unit.error;
	if (s->error)
		snprintf(s->out->text, sizeof(s->out->text), "%s", b->unit.why);
	return s->error ? TM_CONTRACTS : b->run.contract;
}

/* How many runs there are up to the first one, from run `from` on, that breaks one of the contracts
 * in `want` while the power holds, for whatever cause; 0: none of `runs` does. */
static uint64_t probe(struct search *s, struct bench *b, unsigned want, uint64_t from,
		      uint64_t runs)
{
	const unsigned unknown = b->config.setup.unknown_only;
	b->campaign.options.limits.no_crash = true;
	b->config.setup.unknown_only = 0;
	unsigned contract = explore(s, b, want, from, runs);
	b->config.setup.unknown_only = unknown;
	s->out->runs += b->unit.counts.runs;
	return contract < TM_CONTRACTS ? b->unit.contract[contract].run + 1 : 0;
}

/* --- a hit --- */

/* Does the control, too, break it by then? */
static bool control_breaks(const struct lane *lane, unsigned workload, unsigned contract,
			   uint64_t runs, bool no_crash, struct search *s)
{
	struct bench *b = open_bench(lane, workload, true, s);
	bool broken = true;
	if (b) {
		b->campaign.options.limits.no_crash = no_crash;
		broken = explore(s, b, TM_BIT(contract), 0, runs) != TM_CONTRACTS;
	}
	close_bench(b);
	return broken;
}

/* The smallest trace of it, replayed: does that break the same contract? */
static int shrink_hit(struct broken_run *run, unsigned contract, const struct mutant_options *o,
		      struct mutant_result *out)
{
	struct replay_outcome *again = malloc(sizeof(*again));
	struct explorer *ex = malloc(sizeof(*ex));
	bool whole = false;
	int error = again && ex ? broken_run_shrink(run, contract, &whole) : -ENOMEM;
	if (error == -ENOTRECOVERABLE)
		wrong_save(&run->setup, &run->path, run->text, out->text, sizeof(out->text));
	if (!error && !whole)
		error = replay_begin(ex, &run->setup, (int)contract, &run->path);
	if (!error && !whole) {
		error = replay(ex, &run->path, contract == TM_KEEP, NULL, again);
		if (error == -ENOTRECOVERABLE)
			wrong_save(&run->setup, &ex->wrong.deviations, ex->wrong.text, out->text,
				   sizeof(out->text));
		out->shrunk = !error && !again->unused && again->verdict[contract].broken;
		out->operations = workload_ops(&run->setup.w);
		out->deviations = run->path.n;
		explore_close(ex);
	}
	if (!error && out->shrunk && o->shrunk)
		o->shrunk(o->arg, &run->setup, &run->path, contract);
	free(again);
	free(ex);
	/* It could not be shrunk: out->shrunk says so. */
	return error == -ENOENT || error == -EIO ? 0 : error;
}

static void note_hit(struct search *s, const struct lane *lane, const struct bench *b,
		     unsigned contract)
{
	struct mutant_result *out = s->out;
	assert(contract < TM_CONTRACTS && b->unit.contract[contract].found);
	out->found = true;
	out->searched = lane->sort == LANE_SEARCH;
	out->contract = contract;
	out->run = b->unit.contract[contract].run;
	snprintf(out->text, sizeof(out->text), "%s", b->run.text);
	snprintf(out->store, sizeof(out->store), "%s", lane->store->name);
	snprintf(out->variant, sizeof(out->variant), "%s", lane->variant);
	snprintf(out->workload, sizeof(out->workload), "%s", b->w.name);
	const char *more = lane->column[0]	       ? lane->column
			   : lane->sort == LANE_SEARCH ? searched_config
			   : lane->knob		       ? lane->knob
						       : "";
	snprintf(out->hardware, sizeof(out->hardware), "%s%s%.48s",
		 lane->ack_early ? "" : "ack_early=off", *more && !lane->ack_early ? " " : "",
		 more);
}

/* --- the search --- */

static bool used_up(const struct search *s)
{
	return s->error || s->out->states >= s->options->states;
}

/* Number of runs of each workload that earlier passes probed: they are not probed again. */
static uint64_t probed(const struct lane *lane, const struct pass *pass)
{
	uint64_t runs = 0;
	for (const struct pass *p = passes; p < pass; p++)
		if (p->probe && p->lanes & lane->sort)
			runs = p->runs;
	return runs;
}

/* Limit its states to what it gets in a pass. Returns how many runs it gets. */
static uint64_t limit_bench(struct bench *b, const struct search *s, const struct lane *lane,
			    const struct pass *pass)
{
	const uint64_t most = campaign_default.runs / b->share,
		       left = s->options->states - s->out->states;
	uint64_t *states = &b->campaign.options.states;
	assert(b->share > 0 && !used_up(s));
	if (campaign_use(&b->campaign, 0) != CAMPAIGN_USED ||
	    (lane->workload && strcmp(lane->workload, b->w.name)))
		return 0; /* nothing that other workloads do not show; or not asked for */
	if (lane->want == TM_BIT(TM_ATOM) && !workload_transacts(&b->w))
		return 0;
	if (pass->states && pass->states < *states)
		*states = pass->states;
	if (lane->store->servers > 1) /* an image is a boot of each, and runs tell more */
		*states = (*states + 3) / 4 /
				  (store_servers(lane->store, &b->config.setup.params) - 1) +
			  1;
	if (*states > left)
		*states = left;
	return pass->runs && pass->runs < most ? pass->runs : most;
}

/* The store does not start. Where it does not without the bug either, nothing is tried. */
static void note_unstarted(struct search *s, const struct lane *lane, const struct bench *b,
			   unsigned workload)
{
	for (unsigned k = 0; k < TM_CONTRACTS && !s->error; k++)
		if (b->unit.contract[k].found && !(s->out->anyway & TM_BIT(k)) &&
		    control_breaks(lane, workload, k, 1, b->campaign.options.limits.no_crash, s))
			s->out->anyway |= s->error ? 0 : TM_BIT(k);
}

/* The lane breaks it; does that count? */
static void judge_hit(struct search *s, const struct lane *lane, struct bench *b, unsigned workload,
		      unsigned contract, bool compare)
{
	struct mutant_result *out = s->out;
	double seconds = clock_seconds() - s->start;
	bool anyway = compare &&
		      control_breaks(lane, workload, contract, b->unit.contract[contract].run + 1,
				     b->campaign.options.limits.no_crash, s);
	out->anyway |= anyway && !s->error ? TM_BIT(contract) : 0;
	if (anyway || s->error)
		return;
	note_hit(s, lane, b, contract);
	out->seconds = seconds;
	if (s->options->shrink)
		s->error = shrink_hit(&b->run, contract, s->options, out);
}

/* One workload of a lane. True: that was the last, or the search is over. */
static bool try_workload(struct search *s, const struct lane *lane, const struct pass *pass,
			 unsigned workload, bool compare)
{
	unsigned contract = TM_CONTRACTS;
	struct bench *b = open_bench(lane, workload, false, s);
	if (!b)
		return true;
	uint64_t runs = limit_bench(b, s, lane, pass);
	if (pass->probe && runs)
		runs = probe(s, b, lane->want, probed(lane, pass), runs);
	if (runs && !s->error) {
		contract = explore(s, b, lane->want, 0, runs);
		s->out->states += b->unit.counts.states;
		s->out->runs += b->unit.counts.runs;
	}
	if (b->unit.unstarted && compare)
		note_unstarted(s, lane, b, workload);
	if (contract < TM_CONTRACTS)
		judge_hit(s, lane, b, workload, contract, compare);
	close_bench(b);
	return s->out->found || used_up(s);
}

/* Is there anything in this pass that the lane's contracts need? */
static bool worth(const struct lane *lane, unsigned p)
{
	/* One of several servers loses its power in a run. */
	const unsigned several = lane->store->servers > 1
					 ? TM_BIT(TM_DURN) | TM_BIT(TM_SSER) | TM_BIT(TM_FENCE) |
						   TM_BIT(TM_AGREE)
					 : 0,
		       powered = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_LIVE) | TM_BIT(TM_OK) |
				 several |
				 (several ? TM_BIT(TM_DUR) | TM_BIT(TM_ATOM) | TM_BIT(TM_SSER) : 0),
		       alone = TM_BIT(TM_LIN) | TM_BIT(TM_LIVE) | several;
	if (passes[p].probe)
		return lane->want & powered;
	/* What needs no power failure is left to the probes at first. */
	return lane->want & ~alone || (lane->want && p >= THOROUGH);
}

/* Each workload in all lanes, then the next one. */
static void search_pass(struct search *s, const struct lane *lane, unsigned lanes, unsigned p,
			bool compare)
{
	bool over[LANES], more = true;
	for (unsigned i = 0; i < lanes; i++)
		over[i] = !(passes[p].lanes & lane[i].sort) || !worth(&lane[i], p);
	for (unsigned w = 0; more; w++) {
		more = false;
		for (unsigned i = 0; i < lanes; i++) {
			if (!over[i])
				over[i] = try_workload(s, &lane[i], &passes[p], w, compare);
			if (s->out->found || used_up(s))
				return;
			more |= !over[i];
		}
	}
}

static void search_lanes(struct search *s, const struct lane *lane, unsigned lanes, unsigned upto,
			 bool compare)
{
	struct lane now[LANES];
	assert(lanes <= LANES);
	for (unsigned p = 0; p < upto && !s->out->found && !used_up(s); p++) {
		s->pass = p;
		memcpy(now, lane, lanes * sizeof(*lane));
		for (unsigned i = 0; i < lanes && p < THOROUGH; i++)
			now[i].want &= ~now[i].first;
		search_pass(s, now, lanes, p, compare);
	}
}

/* Contracts that the lane looks for although the store breaks them by design, as its expected.txt
 * says, for known causes. */
static unsigned broken_by_design(const struct lane *lane)
{
	const char *base = variant_base(lane->store, lane->variant);
	char config[CAMPAIGN_NAME];
	struct known known;
	unsigned set = 0;
	snprintf(config, sizeof(config), "%s%s%s", strcmp(base, "default") ? base : "",
		 strcmp(base, "default") ? "/" : "", lane_hardware(lane));
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		const struct expectation *e = expect_find(lane->store->name, config, (int)k);
		set |= e && (e->broken || e->open) ? TM_BIT(k) & lane->want : 0;
	}
	return set && lane_known(lane, set, &known) ? set : 0;
}

/* `knobs`: the search uses other hardware than that of the controls. */
static unsigned lanes_of_store(const struct mutant *m, bool knobs, struct lane *lane)
{
	unsigned n = 0;
	for (int early = 1; early >= 0; early--) {
		const struct expect_control *c = control_of(m->store, m->variant, early);
		bool by_knob = strstr(m->variant->knobs, "bug=");
		lane[n++] = (struct lane){
			.sort = LANE_HARDWARE,
			.store = m->store,
			.variant = m->variant->name,
			.control = by_knob ? NULL
				   : c	   ? c->variant
					   : "default",
			.ack_early = early,
			.want = m->breaks & (c && !knobs ? expect_keeps(c) : m->store->promises),
		};
		if (!c && !knobs)
			lane[n - 1].unknown = broken_by_design(&lane[n - 1]);
	}
	/* A bug that only adds to what is broken anyway: the causes decide, where some are known;
	 * else what the control keeps in the same runs. */
	for (unsigned i = 0, kept = lane[0].want | lane[n - 1].want; i < n && !kept && !knobs;
	     i++) {
		struct known known;
		if (lane_known(&lane[i], m->breaks, &known))
			lane[i].want = lane[i].unknown = m->breaks;
	}
	if (!lane[0].want && !lane[n - 1].want)
		lane[n - 1].want = m->breaks;
	lane[n - 1].first = lane[0].want;
	return n;
}

static unsigned add_column(struct lane *lane, unsigned n, enum lane_sort sort, const char *column)
{
	assert(n < LANES && strlen(column) < sizeof(lane->column));
	lane[n] = lane[0];
	lane[n].sort = sort;
	snprintf(lane[n].column, sizeof(lane[n].column), "%s", column);
	return n + 1;
}

/* The rows of a whole campaign that are no kinds of hardware: a systematic search where data is
 * visible when it is acknowledged, lengths, and shapes. */
static unsigned lanes_of_columns(struct lane *lane, unsigned n)
{
	if (lane[0].store->servers <= 1) {
		lane[n] = lane[n - 1];
		lane[n++].sort = LANE_SEARCH;
	}
	const struct tm_shape *shape = lane[0].store->shapes;
	n = add_column(lane, n, LANE_SIZES, sizes_config);
	for (; shape && shape->name; shape++)
		n = add_column(lane, n, LANE_SHAPE, shape->name);
	return n;
}

static unsigned lanes_of_controls(struct lane *lane, const char *mutant)
{
	unsigned n;
	const struct expect_control *control = expect_controls(&n);
	assert(n <= LANES);
	for (unsigned i = 0; i < n; i++)
		lane[i] = (struct lane){
			.sort = LANE_HARDWARE,
			.store = store_find(control[i].store),
			.variant = control[i].variant,
			.ack_early = ack_early(&control[i]),
			.mutant = mutant,
			.want = expect_keeps(&control[i]),
		};
	return n;
}

/* The rules of the hardware. They cost next to nothing, so they come first. */
static void search_rules(struct search *s, const char *mutant)
{
	struct mutant_result *out = s->out;
	for (int early = 1; early >= 0 && !out->found && !s->error; early--) {
		struct hardware hw = hardware_default;
		struct nic_rules_result r;
		const char *expected;
		hw.ack_early = early;
		int unknown = hardware_set(&hw, "mutant", mutant, &expected);
		assert(!unknown);
		(void)unknown;
		s->error = nic_rules(&hw, s->options->seed, RULE_RUNS, &r);
		out->runs += r.runs;
		if (!r.broken)
			continue;
		out->found = true;
		out->run = r.run;
		out->deviations = r.deviations.n;
		snprintf(out->workload, sizeof(out->workload), "%s", r.rule);
		snprintf(out->hardware, sizeof(out->hardware), "%s", early ? "" : "ack_early=off");
		snprintf(out->text, sizeof(out->text), "%s", r.text);
		deviations_free(&r.deviations);
	}
	out->seconds = clock_seconds() - s->start;
}

/* The search that finds the canary, once more with the mutant. Found: the canary is missed. */
static void search_checker(struct search *s, const struct mutant *m)
{
	if (!m->canary)
		return;
	const struct mutant canary = {
		.store = store_find(m->canary->store),
		.variant = variant_find(store_find(m->canary->store), m->canary->variant)};
	struct mutant_result seen = {.contract = TM_CONTRACTS}, missed = seen;
	struct mutant_options options = *s->options;
	struct search one = {.options = &options, .out = &seen, .start = s->start},
		      two = {.options = &options, .out = &missed, .start = s->start};
	struct lane lane[EXPECT_CONTROLS];
	assert(canary.variant);
	unsigned lanes = lanes_of_store(&(struct mutant){.store = canary.store,
							 .variant = canary.variant,
							 .breaks = canary.variant->breaks},
					false, lane);
	for (unsigned i = 0; i < lanes; i++) {
		lane[i].knob = m->canary->knob;
		lane[i].workload = m->canary->workload;
		/* They find much of what a mutant misses: then each alone can be taken away. */
		lane[i].no_lives = strcmp(m->name, checker_mutants[CHECKER_LIFE_NEVER].name) != 0;
	}
	options.shrink = !strcmp(m->name, checker_mutants[CHECKER_SHRINK_ANY].name);
	search_lanes(&one, lane, lanes, PASSES, true);
	for (unsigned i = 0; i < lanes; i++)
		lane[i].mutant = m->name;
	search_lanes(&two, lane, lanes, one.pass + 1, true);
	s->error = one.error ? one.error : two.error;
	*s->out = one.error || !two.error ? seen : missed; /* the text is of the error, if any */
	s->out->found = seen.found &&
			(options.shrink ? seen.shrunk && !missed.shrunk : !missed.found);
	s->out->runs = missed.runs;
	s->out->states = missed.states;
	snprintf(s->out->store, sizeof(s->out->store), "%s", m->canary->store);
	snprintf(s->out->variant, sizeof(s->out->variant), "%s", m->canary->variant);
}

int mutant_search(const struct mutant *m, const struct mutant_options *o, struct mutant_result *out)
{
	struct search s = {.options = o, .out = out, .start = clock_seconds()};
	struct lane lane[LANES];
	unsigned lanes;
	memset(out, 0, sizeof(*out));
	out->contract = TM_CONTRACTS;
	switch (m->kind) {
	case MUTANT_STORE:
		lanes = lanes_of_columns(lane, lanes_of_store(m, o->knobs > 0, lane));
		search_lanes(&s, lane, lanes, PASSES, true);
		break;
	case MUTANT_MODEL:
		search_rules(&s, m->name);
		if (!out->found && !s.error)
			search_lanes(&s, lane, lanes_of_controls(lane, m->name), PASSES, true);
		break;
	case MUTANT_CONTROL:
		if (!m->store) {
			search_rules(&s, "none");
			break;
		}
		lane[0] = (struct lane){.sort = LANE_HARDWARE,
					.store = m->store,
					.variant = m->name,
					.ack_early = m->ack_early,
					.want = m->breaks};
		search_lanes(&s, lane, 1, CONTROL_PASSES, false);
		break;
	case MUTANT_CHECKER:
		search_checker(&s, m);
		break;
	}
	if (out->found)
		out->anyway = 0;
	else
		out->seconds = clock_seconds() - s.start;
	return s.error;
}

unsigned mutants_list(struct mutant list[MUTANTS_MAX])
{
	const struct mutant_info *info;
	unsigned n = 0, controls;
	const struct expect_control *control = expect_controls(&controls);
	for (unsigned i = 0; stores[i]; i++)
		for (const struct tm_variant *v = stores[i]->variants; v->name; v++)
			if (v->breaks && n < MUTANTS_MAX)
				list[n++] = (struct mutant){.kind = MUTANT_STORE,
							    .part = stores[i]->name,
							    .name = v->name,
							    .what = v->what,
							    .store = stores[i],
							    .variant = v,
							    .breaks = v->breaks};
	assert(n + HARDWARE_MUTANTS + CHECKER_MUTANT_COUNT + controls < MUTANTS_MAX);
	for (unsigned i = 0; (info = mutant_nth(i)) != NULL; i++) {
		bool checker = info->effect == MUTANT_OF_CHECKER;
		/* Stores may well be right on another machine. */
		if (checker || info->effect == MUTANT_OF_MODEL)
			list[n++] = (struct mutant){.kind = checker ? MUTANT_CHECKER : MUTANT_MODEL,
						    .part = info->part,
						    .name = info->name,
						    .what = info->what,
						    .canary = checker ? expect_canary(info->name)
								      : NULL};
	}
	list[n++] = (struct mutant){.kind = MUTANT_CONTROL,
				    .part = "rules",
				    .name = "hardware",
				    .what = "no bug: every rule of the hardware is kept"};
	for (unsigned i = 0; i < controls; i++)
		list[n++] = (struct mutant){.kind = MUTANT_CONTROL,
					    .part = control[i].store,
					    .name = control[i].variant,
					    .what = "no bug: nothing must be found",
					    .store = store_find(control[i].store),
					    .breaks = expect_keeps(&control[i]),
					    .ack_early = ack_early(&control[i])};
	return n;
}
