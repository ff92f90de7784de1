/* SPDX-License-Identifier: BSD-3-Clause */
/* See mutants.h. */
#include "checker/hunt/mutants.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/hunt/plan.h"
#include "checker/judge/expect.h"

/* --- which --- */

struct chosen {
	char *const *name;
	const char *const *variant;
	unsigned names, variants;
};

static bool is_named(const struct mutant *m, const char *name)
{
	return !strcmp(m->name, name) || !strcmp(m->part, name);
}

/* Does what is found of `m` rest on this control? */
static bool rests_on(const struct mutant *m, const struct mutant *control)
{
	switch (m->kind) {
	case MUTANT_STORE:
		return m->store == control->store;
	case MUTANT_MODEL:
		return true;
	case MUTANT_CHECKER:
		return m->canary && !strcmp(m->canary->store, control->part);
	default:
		return false;
	}
}

static bool takes_knobs(const struct mutants_run *r, const struct mutant *m)
{
	for (unsigned i = 0; i < r->options.knobs; i++)
		if (!plan_takes_knob(m->store, r->options.knob[i]))
			return false;
	return true;
}

/* A mutant that is compared with the plain store under the same knobs needs no control. */
static bool is_wanted(const struct mutants_run *r, const struct mutant *m, const struct chosen *of)
{
	const bool stores_alone = r->options.knobs || of->variants;
	bool named = !of->names;
	if (m->kind == MUTANT_CONTROL) {
		named = !of->names && !stores_alone;
		for (unsigned i = 0; i < r->mutants && !named && !r->options.knobs; i++)
			named = rests_on(&r->mutant[i], m);
		return named;
	}
	for (unsigned k = 0; k < of->names && !named; k++)
		named = is_named(m, of->name[k]);
	bool variant = !of->variants;
	for (unsigned k = 0; k < of->variants && !variant; k++)
		variant = !strcmp(m->name, of->variant[k]);
	return named && variant &&
	       (!stores_alone || (m->kind == MUTANT_STORE && takes_knobs(r, m)));
}

static bool is_known(const struct mutant *all, unsigned n, const char *name, bool variant)
{
	for (unsigned i = 0; i < n; i++)
		if (variant ? all[i].kind == MUTANT_STORE && !strcmp(all[i].name, name)
			    : all[i].kind != MUTANT_CONTROL && is_named(&all[i], name))
			return true;
	return false;
}

int mutants_choose(struct mutants_run *r, char *const *name, unsigned names,
		   const char *const *variant, unsigned variants, const char **unknown)
{
	const struct chosen of = {name, variant, names, variants};
	struct mutant *all = calloc(MUTANTS_MAX, sizeof(*all));
	if (!all)
		return -ENOMEM;
	unsigned n = mutants_list(all);
	*unknown = NULL;
	for (unsigned i = 0; i < names + variants && !*unknown; i++) {
		const char *word = i < names ? name[i] : variant[i - names];
		if (!is_known(all, n, word, i >= names))
			*unknown = word;
	}
	for (unsigned i = 0; i < n && !*unknown; i++)
		if (is_wanted(r, &all[i], &of))
			r->mutant[r->mutants++] = all[i];
	free(all);
	return *unknown ? -ENOENT : 0;
}

/* --- searching --- */

static void work(void *arg, unsigned unit, void *result)
{
	struct mutants_run *r = arg;
	struct mutant_answer *a = result;
	a->error = mutant_search(&r->mutant[unit], &r->options, &a->result);
}

/* But for how long it took. */
static bool same(const void *a, const void *b)
{
	struct mutant_answer x, y;
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	memset(&x.result.seconds, 0, sizeof(x.result.seconds));
	memset(&y.result.seconds, 0, sizeof(y.result.seconds));
	return !memcmp(&x, &y, sizeof(x));
}

static void take_result(void *arg, unsigned unit, const void *result)
{
	struct mutants_run *r = arg;
	const struct mutant_answer *a = result;
	bool control = r->mutant[unit].kind == MUTANT_CONTROL;
	if (r->how.attention && !a->error && a->result.found == control && !a->result.anyway)
		r->how.attention(r->how.attention_arg);
}

static void add_up(struct mutants_run *r)
{
	for (unsigned i = 0; i < r->mutants; i++) {
		if (!r->done[i])
			continue;
		r->searched++;
		const struct mutant *m = &r->mutant[i];
		const struct mutant_result *result = &r->answer[i].result;
		if (m->kind == MUTANT_CONTROL) {
			r->dirty += result->found;
			continue;
		}
		r->missed += !result->found && !result->anyway;
		r->untold += result->anyway != 0;
		r->unsure += result->found && m->kind == MUTANT_STORE && !result->shrunk;
	}
}

int mutants_search(struct mutants_run *r, unsigned *failed)
{
	struct driver driver = {.units = r->mutants,
				.how = r->how,
				.result_bytes = sizeof(struct mutant_answer),
				.work = work,
				.take = take_result,
				.results = r->answer,
				.same = same,
				.error_at = DRIVER_FIELD(struct mutant_answer, error),
				.done = r->done,
				.arg = r,
				.progress_arg = "mutant"};
	int error = driver_run(&driver);
	bool good = !error || error == -EINTR;
	for (*failed = 0; good && *failed < r->mutants; ++*failed)
		if (r->answer[*failed].error)
			return -EIO;
	if (good)
		add_up(r);
	return error;
}
