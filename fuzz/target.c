/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See target.h. Opening a workload costs as much as some ten runs, so the last few
 * stay open; fuzzers change the workload less often than what goes differently.
 */
#include "fuzz/target.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/expect.h"
#include "checker/hunt/features.h"
#include "checker/hunt/fuzz.h"
#include "checker/judge/names.h"
#include "checker/trace/replay.h"
#include "checker/trace/trace.h"
#include "core/text/text.h"
#include "scenarios/stores.h"

#define OPEN 16 /* workloads */

struct open_workload {
	bool open;
	struct fuzz_input input; /* one that has this workload */
	uint64_t used;
	struct setup setup;
	struct explorer ex;
};

void (*target_feature)(uint64_t feature);

static struct setup base;
static unsigned wanted; /* TM_BIT()s */
static struct open_workload *workload[OPEN];
static uint64_t inputs;

static _Noreturn void stop(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("tidemark: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	_Exit(2);
}

static const char *environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);
	return value && *value ? value : otherwise;
}

/* What the environment asks for; and what may break then. */
static void prepare(void)
{
	const char *name = environment("TIDEMARK_STORE", stores[0]->name), *expected = NULL;
	char *knobs = strdup(environment("TIDEMARK_KNOBS", "")), *rest = knobs, *knob;
	char config[256] = "default";
	const struct tm_store *store = store_find(name);
	if (!store || !knobs)
		stop("TIDEMARK_STORE: no store \"%.40s\"", name);
	setup_init(&base, store);
	name = environment("TIDEMARK_VARIANT", "default");
	if (strlen(name) >= sizeof(base.variant) || setup_variant(&base, name))
		stop("TIDEMARK_VARIANT: %s has no variant \"%.40s\"", store->name, name);
	if (*knobs)
		snprintf(config, sizeof(config), "%s", knobs);
	while (*(knob = text_word(&rest))) {
		const char *value = text_value(knob);
		if (!value)
			stop("TIDEMARK_KNOBS: \"%.60s\"; expected NAME=VALUE", knob);
		if (setup_knob(&base, knob, value, &expected))
			stop("TIDEMARK_KNOBS: %.40s=%.40s; expected one of: %s", knob, value,
			     expected);
	}
	free(knobs);
	wanted = expect_watched(store, config);
}

static void close_workload(struct open_workload *w)
{
	explore_close(&w->ex);
	setup_free(&w->setup);
	w->open = false;
}

static struct open_workload *open_workload(const struct fuzz_input *input)
{
	struct open_workload *w = NULL;
	for (unsigned i = 0; i < OPEN; i++) {
		if (!workload[i])
			workload[i] = calloc(1, sizeof(*workload[i]));
		if (!workload[i])
			stop("out of memory");
		if (workload[i]->open && fuzz_same_workload(&workload[i]->input, input))
			return workload[i];
		if (!w || workload[i]->used < w->used)
			w = workload[i];
	}
	if (w->open)
		close_workload(w);
	int error = fuzz_setup(&base, input, &w->setup);
	if (!error)
		error = explore_open(&w->ex, &w->setup, &explore_default);
	if (error || w->ex.worlds.unloaded)
		stop("%s cannot run: %s", base.store->name, error ? strerror(-error) : w->ex.why);
	w->input = *input;
	w->open = true;
	return w;
}

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	if (machine)
		bytes_boots(arg, machine, ex->worlds.world[machine].pm);
}

static void found(void *arg, uint64_t feature)
{
	(void)arg;
	if (target_feature)
		target_feature(feature);
}

static void tell_features(struct explorer *ex, const struct deviations *taken, unsigned failures)
{
	struct features features = {.found = found};
	unsigned machine = 0;
	for (unsigned m = 1; m < WORLDS; m++)
		ex->path[m].n = 0;
	for (unsigned i = 0; i < taken->n; i++) {
		machine += taken->d[i].kind == CHOICE_CRASH;
		if (machine)
			deviations_add(&ex->path[machine], &taken->d[i]);
	}
	features_history(&features, ex->worlds.history);
	if (failures)
		features_image(&features, ex, failures);
}

static void report(struct open_workload *w, const struct deviations *taken, unsigned contract,
		   const struct replay_outcome *out)
{
	const char *name = contract_name(contract), *dir = environment("TIDEMARK_OUT", ".");
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s-%s-%016llx.trace", dir, base.store->name, name,
		 (unsigned long long)out->hash);
	int error = trace_save(path, &w->setup, taken, (int)contract, out->text[contract]);
	fprintf(stderr, "tidemark: %s is broken: %s\ntidemark: %s%s%s\n", name, out->text[contract],
		error ? "no trace was written: " : "tidemark replay ",
		error ? strerror(-error) : path,
		error ? "" : " (tidemark shrink makes it smaller)");
	abort();
}

void target_run(const uint8_t *bytes, size_t n)
{
	static struct byte_source source;
	struct fuzz_input input = {.n = n < FUZZ_INPUT_MAX ? (uint8_t)n : FUZZ_INPUT_MAX};
	struct replay_part part[WORLDS];
	static struct replay_outcome out;

	if (!base.store)
		prepare();
	if (n)
		memcpy(input.bytes, bytes, input.n);
	struct open_workload *w = open_workload(&input);
	w->used = ++inputs;
	fuzz_start(&source, &input, true);
	for (unsigned m = 0; m < WORLDS; m++)
		part[m] = (struct replay_part){&source.source, m == 1 && bytes_cut(&source, 1),
					       NULL};
	memset(&out, 0, sizeof(out));
	explore_lower_bound(&w->ex);
	replay_sources(&w->ex, part,
		       &(struct replay_audience){.machine_starts = machine_starts, .arg = &source},
		       &out);
	tell_features(&w->ex, &source.taken, out.failures);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (out.verdict[c].broken && wanted & TM_BIT(c))
			report(w, &source.taken, c, &out);
}
