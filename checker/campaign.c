/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running a campaign. Processes take units from a shared counter and send each
 * result, a struct of plain numbers, through a pipe. Which of its runs broke a contract is all that
 * travels; the parent repeats that run when it wants the trace.
 */
#include "checker/campaign.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "checker/search.h"

const struct campaign_options campaign_default = {
	.seed = 1,
	.runs = 2000,
	.states = 20000,
	.deviations = 6,
	.preemptions = 2,
	.jobs = 1,
	.limits = {.images_per_point = 256, .nested_every = 8, .states = UINT64_MAX},
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int campaign_setup(const struct campaign *c, unsigned unit, struct setup *s)
{
	return setup_like(s, &c->config[unit / c->workloads].setup, &c->workload[unit % c->workloads]);
}

unsigned campaign_faults(const struct campaign *c, unsigned unit)
{
	return c->faults ? c->faults[unit % c->workloads] : c->options.faults;
}

const char *campaign_left_out(const struct campaign *c, unsigned config)
{
	if (!c->options.exhaustive)
		return "random schedules";
	for (unsigned w = 0; w < c->workloads; w++) {
		const struct campaign_unit *unit = &c->unit[config * c->workloads + w];
		if (!unit->complete)
			return "the budget of runs or states was used up";
		if (unit->counts.points_bounded)
			return "some points have too many images";
		if (unit->counts.unsure)
			return "some histories are too concurrent to be judged";
	}
	return NULL;
}

/* Run 0 is the plain one: nothing deviates. */
static void one_run(struct explorer *ex, struct random_source *source, uint64_t seed, uint64_t run,
		    unsigned deviations)
{
	if (run == 0) {
		source->taken.n = 0;
		explore_run(ex, NULL, &source->taken);
		return;
	}
	random_start(source, seed * 1000003 + run, deviations);
	explore_run(ex, &source->source, &source->taken);
}

/* The run once more, with nobody at its power failures: is it the same, event by event? */
static bool same_again(struct explorer *ex, struct random_source *source, uint64_t seed, uint64_t run,
		       unsigned deviations)
{
	uint64_t hash[2];
	for (unsigned i = 0; i < 2; i++) {
		if (run)
			random_start(source, seed * 1000003 + run, deviations);
		world_run(&ex->worlds, run ? &source->source : NULL, NULL, NULL);
		hash[i] = sim_hash(ex->worlds.world[0].sim) ^ ex->worlds.history->hash;
		world_end(&ex->worlds, 0);
	}
	return hash[0] == hash[1];
}

static void random_runs(const struct campaign *c, unsigned share, struct explorer *ex,
			struct campaign_unit *result)
{
	struct random_source source = {0};
	for (uint64_t run = 0; run < (c->options.runs + share - 1) / share && explore_more(ex); run++) {
		one_run(ex, &source, c->options.seed, run, c->options.deviations);
		if (c->options.doublecheck &&
		    !same_again(ex, &source, c->options.seed, run, c->options.deviations))
			result->diverged++;
	}
	deviations_free(&source.taken);
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
	limits.runs = c->options.runs;
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

static void run_unit(const struct campaign *c, unsigned unit, struct explorer *ex,
		     struct campaign_unit *result)
{
	struct setup s;
	struct explore_limits limits = c->options.limits;
	unsigned share = c->options.exhaustive ? 1 : c->config[unit / c->workloads].share;
	assert(share);
	if (workload_cleans(&c->workload[unit % c->workloads]) &&
	    !c->config[unit / c->workloads].store->clean) {
		result->complete = true;
		return; /* nothing that other workloads do not show */
	}
	limits.states = c->options.states / share;
	result->error = campaign_setup(c, unit, &s);
	if (!result->error)
		result->error = explore_open(ex, &s, &limits);
	if (result->error) {
		snprintf(result->why, sizeof(result->why), "%s",
			 result->error == -EIO ? ex->why : strerror(-result->error));
		setup_free(&s);
		return;
	}
	if (c->options.exhaustive)
		result->error = all_runs(c, unit, ex, result);
	else
		random_runs(c, share, ex, result);
	result->counts = ex->counts;
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		result->contract[k].found = ex->failure[k].found;
		result->contract[k].run = ex->failure[k].run;
		result->contract[k].broken = ex->broken[k];
	}
	explore_close(ex);
	setup_free(&s);
}

struct message {
	unsigned unit;
	struct campaign_unit result;
};

static _Noreturn void work(const struct campaign *c, atomic_uint *next, int out)
{
	struct explorer *ex = malloc(sizeof(*ex));
	unsigned units = c->configs * c->workloads;
	if (!ex)
		_Exit(70);
	for (unsigned unit; (unit = atomic_fetch_add(next, 1)) < units;) {
		struct message m = {.unit = unit};
		run_unit(c, unit, ex, &m.result);
		m.result.done = true;
		/* Below PIPE_BUF: written whole. */
		_Static_assert(sizeof(m) <= 4096, "a message is written in one piece");
		if (write(out, &m, sizeof(m)) != sizeof(m))
			_Exit(70);
	}
	free(ex);
	_Exit(0);
}

static void merge(struct campaign *c)
{
	for (unsigned u = 0; u < c->configs * c->workloads; u++) {
		struct campaign_unit *unit = &c->unit[u];
		unsigned config = u / c->workloads;
		uint64_t *to = (uint64_t *)&c->total[config], *from = (uint64_t *)&unit->counts;
		for (unsigned i = 0; i < sizeof(struct explore_counts) / sizeof(uint64_t); i++)
			to[i] += from[i];
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			struct campaign_cell *cell = &c->cell[config][k];
			if (unit->contract[k].found && !cell->broken) {
				cell->broken = true;
				cell->unit = u;
				cell->run = unit->contract[k].run;
			}
			cell->broken_states += unit->contract[k].broken;
		}
	}
}

/* Results as they come; progress. -ECHILD when the pipe closes too early. */
static int collect(struct campaign *c, int in, double start)
{
	unsigned units = c->configs * c->workloads;
	uint64_t states = 0;
	struct message m;
	for (unsigned done = 0; done < units; done++) {
		size_t got = 0;
		while (got < sizeof(m)) {
			ssize_t n = read(in, (char *)&m + got, sizeof(m) - got);
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return -ECHILD;
			got += (size_t)n;
		}
		assert(m.unit < units);
		c->unit[m.unit] = m.result;
		c->unit[m.unit].config = m.unit / c->workloads;
		c->unit[m.unit].workload = m.unit % c->workloads;
		states += m.result.counts.states;
		if (c->options.progress)
			c->options.progress(c->options.progress_arg, done + 1, units, states, now() - start);
	}
	return 0;
}

int campaign_run(struct campaign *c)
{
	unsigned units = c->configs * c->workloads, jobs = c->options.jobs ? c->options.jobs : 1;
	double start = now();
	int pipes[2], error = 0;
	atomic_uint *next = mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				 0);
	c->unit = calloc(units + 1, sizeof(*c->unit));
	c->cell = calloc(c->configs + 1, sizeof(*c->cell));
	c->total = calloc(c->configs + 1, sizeof(*c->total));
	pid_t *child = calloc(jobs, sizeof(*child));
	if (next == MAP_FAILED || !c->unit || !c->cell || !c->total || !child)
		return -ENOMEM;
	if (pipe(pipes))
		return -errno;
	fflush(NULL);
	for (unsigned j = 0; j < jobs; j++) {
		child[j] = fork();
		if (child[j] == 0) {
			close(pipes[0]);
			work(c, next, pipes[1]);
		}
		if (child[j] < 0)
			error = -errno;
	}
	close(pipes[1]);
	if (!error)
		error = collect(c, pipes[0], start);
	close(pipes[0]);
	for (unsigned j = 0; j < jobs; j++) {
		int status = 0;
		if (child[j] > 0 && waitpid(child[j], &status, 0) > 0 && status && !error)
			error = -ECHILD;
	}
	free(child);
	munmap(next, sizeof(*next));
	for (unsigned u = 0; u < units && !error; u++)
		if (c->unit[u].error)
			error = c->unit[u].error;
	merge(c);
	c->seconds = now() - start;
	return error;
}

void campaign_free_results(struct campaign *c)
{
	free(c->unit);
	free(c->cell);
	free(c->total);
	c->unit = NULL;
	c->cell = NULL;
	c->total = NULL;
}

/* The unit's first run in which a systematic search saw the contract broken. */
static int searched_run(const struct campaign *c, unsigned unit, unsigned contract, struct explorer *ex)
{
	struct campaign_unit *u = &c->unit[unit];
	struct deviations list = {.d = u->contract[contract].deviation,
				  .n = u->contract[contract].deviations};
	struct trace_source source;
	int error = trace_start(&source, &list);
	if (error)
		return error;
	explore_run(ex, &source.source, &source.taken);
	trace_finish(&source);
	return 0;
}

int campaign_again(const struct campaign *c, unsigned unit, uint64_t run, unsigned contract, struct setup *s,
		   struct deviations *path, char *text, size_t n)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct random_source source = {0};
	struct explore_limits limits = c->options.limits;
	int error = ex ? campaign_setup(c, unit, s) : -ENOMEM;
	if (!error)
		error = explore_open(ex, s, &limits);
	if (!error) {
		ex->stop_at = TM_BIT(contract);
		if (c->options.exhaustive)
			error = searched_run(c, unit, contract, ex);
		else
			one_run(ex, &source, c->options.seed, run, c->options.deviations);
		const struct failure *f = &ex->failure[contract];
		path->n = 0;
		deviations_append(path, &f->deviations);
		snprintf(text, n, "%s", f->text);
		if (!error && !f->found)
			error = -ENOENT;
		explore_close(ex);
	}
	deviations_free(&source.taken);
	free(ex);
	return error;
}
