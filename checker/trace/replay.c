/* SPDX-License-Identifier: BSD-3-Clause */
/* See replay.h. */
#include "checker/trace/replay.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "checker/explore/blame_find.h"
#include "checker/explore/verdicts.h"
#include "checker/judge/names.h"

/* On which machine a deviation happens; *machine: the one that runs when its turn comes. */
static unsigned machine_of(const struct deviation *d, unsigned *machine)
{
	unsigned of = d->kind == CHOICE_LINE && d->b < PMEM_HOST_FAILED ? d->b : *machine;
	*machine += d->kind == CHOICE_CRASH && *machine + 1 < WORLDS;
	return of;
}

unsigned replay_machine(const struct deviations *list, unsigned i)
{
	unsigned machine = 0, of = 0;
	for (unsigned k = 0; k <= i; k++)
		of = machine_of(&list->d[k], &machine);
	return of;
}

/* Give each deviation to the machine on which it happens. */
static int split(const struct deviations *list, struct deviations part[WORLDS])
{
	unsigned machine = 0;
	for (unsigned i = 0; i < list->n; i++) {
		unsigned to = machine_of(&list->d[i], &machine);
		if (to < WORLDS && deviations_add(&part[to], &list->d[i]))
			return -ENOMEM;
	}
	return 0;
}

static void judge_all(struct explorer *ex, unsigned machine, struct replay_outcome *out)
{
	const struct world_result *r = &ex->worlds.world[machine].result;
	unsigned want = contracts_in_run(ex->setup->servers) |
			(machine ? CONTRACTS_AFTER_CRASH : 0);
	verdicts_prepare(ex, machine);
	verdicts_find(ex, machine, want, ex->lower_bound, out->verdict);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (out->verdict[c].broken)
			verdicts_say(ex, c, &out->verdict[c], out->text[c], sizeof(out->text[c]));
	if (r->ok_broken && !out->verdict[TM_OK].broken) {
		out->verdict[TM_OK].broken = true;
		snprintf(out->text[TM_OK], sizeof(out->text[0]), "%s", r->ok_why);
	}
	out->verdict[TM_LIVE].broken = r->live_broken;
	out->verdict[TM_FSCK].broken = r->fsck_broken;
	out->verdict[TM_AGREE].broken = r->agree_broken;
	snprintf(out->text[TM_LIVE], sizeof(out->text[0]), "%s", r->why);
	snprintf(out->text[TM_FSCK], sizeof(out->text[0]), "%s", r->fsck_why);
	snprintf(out->text[TM_AGREE], sizeof(out->text[0]), "%s", r->agree_why);
}

/* Breaks that do not count, for their cause is known. */
static void leave_out_known(struct explorer *ex, unsigned machine,
			    const struct replay_part part[WORLDS], struct replay_outcome *out)
{
	struct deviations path[WORLDS] = {0};
	unsigned contracts = ex->setup->unknown_only & ex->setup->known.compared;
	for (unsigned m = 0; m <= machine && contracts; m++) {
		if (!part[m].list)
			return;
		path[m] = *part[m].list;
	}
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		struct verdict *v = &out->verdict[c];
		const struct broken_state state = {
			.setup = ex->setup,
			.worlds = &ex->worlds,
			.machine = machine,
			.contract = c,
			.verdict = CONTRACTS_BY_RUNNING & TM_BIT(c) ? NULL : v,
			.run = &path[0],
			.path = path};
		if (!v->broken || !(contracts & TM_BIT(c)))
			continue;
		blame_find(&state, &out->blame[c]);
		v->broken = !known_explains(&ex->setup->known, &out->blame[c], NULL);
	}
}

static void start_audience(struct explorer *ex, const struct replay_audience *audience,
			   unsigned machine)
{
	for (unsigned m = 0; m < WORLDS; m++) {
		ex->worlds.world[m].tracer = audience ? audience->tracer : NULL;
		ex->worlds.world[m].tracer_arg = audience ? audience->arg : NULL;
	}
	if (audience && audience->machine_starts)
		audience->machine_starts(audience->arg, ex, machine);
}

void replay_sources(struct explorer *ex, const struct replay_part part[WORLDS],
		    const struct replay_audience *audience, struct replay_outcome *out)
{
	unsigned m = 0;
	for (;; m++) {
		const bool probed = audience && audience->probe && audience->probed == m;
		world_observer *probe = probed ? audience->probe : NULL;
		void *arg = probed ? audience->probe_arg : NULL;
		start_audience(ex, audience, m);
		const bool anywhere = ex->worlds.world[m].anywhere;
		ex->worlds.world[m].anywhere = anywhere || probed;
		if (m == 0 && ex->worlds.unfilled)
			worlds_fail_again(&ex->worlds);
		else if (m == 0)
			world_run(&ex->worlds, part[0].source, probe, arg);
		else
			world_recover(&ex->worlds, m, part[m].source, probe, arg, !part[m].cut);
		ex->worlds.world[m].anywhere = anywhere;
		out->hash ^= sim_hash(ex->worlds.world[m].sim) * (2 * m + 1);
		if (ex->worlds.world[m].result.end != SIM_POWER || m + 1 == WORLDS)
			break;
		out->failures++;
		history_crash(ex->worlds.history);
		verdicts_prepare(ex, m + 1);
	}
	out->unstarted = ex->worlds.unloaded || ex->worlds.unfilled;
	judge_all(ex, m, out);
	leave_out_known(ex, m, part, out);
	start_audience(ex, NULL, 0);
	if (audience && audience->ends)
		audience->ends(audience->arg);
	for (unsigned started = m + 1; started;)
		world_end(&ex->worlds, --started);
}

bool replay_fills(int contract, const struct deviations *list)
{
	return (contract == TM_OK || contract == TM_LIVE) && !list->n;
}

int replay_begin(struct explorer *ex, struct setup *s, int contract, const struct deviations *list)
{
	struct explore_limits limits = explore_default;
	limits.fill = replay_fills(contract, list);
	int error = explore_open(ex, s, &limits);
	/* Filling it fails and breaks another contract: this one breaks in the run. */
	if (!error && contract == TM_LIVE && !ex->worlds.failed.live_broken)
		ex->worlds.unfilled = false;
	return error;
}

bool replay_cannot_run(int contract, const struct deviations *list,
		       const struct replay_outcome *out)
{
	return out->unstarted && (list->n || contract < 0 || !out->verdict[contract].broken);
}

int replay(struct explorer *ex, const struct deviations *list, bool keep,
	   const struct replay_audience *audience, struct replay_outcome *out)
{
	struct deviations part[WORLDS] = {0};
	struct replay_part run[WORLDS] = {0};
	struct trace_source ts[WORLDS];

	memset(out, 0, sizeof(*out));
	memset(ts, 0, sizeof(ts));
	int error = split(list, part);
	if (keep && !error) {
		error = trace_start(&ts[0], &part[0]);
		if (!error)
			error = explore_run(ex, &ts[0].source, &ts[0].taken);
		trace_finish(&ts[0]);
	} else {
		explore_lower_bound(ex);
	}
	for (unsigned m = 0; m < WORLDS && !error; m++) {
		error = trace_start(&ts[m], &part[m]);
		if (audience && audience->asked) {
			ts[m].asked = audience->asked;
			ts[m].asked_arg = audience->asked_arg;
			ts[m].source.skip[CHOICE_STEP] = 0;
		}
		run[m] = (struct replay_part){&ts[m].source, m + 1 < WORLDS && part[m + 1].n,
					      &part[m]};
	}
	if (!error)
		replay_sources(ex, run, audience, out);
	/* Which of the caller's deviations was not asked for? Parts keep their order. */
	unsigned at[WORLDS] = {0}, machine = 0;
	out->only_lines_unused = true;
	for (unsigned i = 0; i < list->n && !error; i++) {
		unsigned to = machine_of(&list->d[i], &machine);
		if (to < WORLDS && ts[to].used && ts[to].used[at[to]++])
			continue;
		out->unused = out->unused ? out->unused : &list->d[i];
		out->only_lines_unused &= list->d[i].kind == CHOICE_LINE;
	}
	for (unsigned m = 0; m < WORLDS; m++) {
		trace_finish(&ts[m]);
		deviations_free(&part[m]);
	}
	return error;
}
