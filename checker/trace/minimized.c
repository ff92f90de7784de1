/* SPDX-License-Identifier: BSD-3-Clause */
/* See minimized.h. */
#include "checker/trace/minimized.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/trace/shrink.h"

struct candidate {
	unsigned unit, ops;
	struct failure_mode mode;
	enum break_sort sort;
	unsigned row; /* as in struct campaign_break */
};

static void failure_free(struct minimized_failure *one)
{
	setup_free(&one->setup);
	deviations_free(&one->path);
}

static int minimize(const struct campaign *c, const struct candidate *at, unsigned contract,
		    struct minimized_failure *out)
{
	const struct campaign_break which = {at->unit, contract, at->mode, at->sort, at->row};
	struct broken_run run;
	memset(out, 0, sizeof(*out));
	int error = campaign_again(c, &which, &run);
	if (!error)
		error = broken_run_shrink(&run, contract, &out->whole);
	if (error && error != -ENOTRECOVERABLE) {
		broken_run_free(&run);
		return error;
	}
	out->kinds = at->mode.kinds;
	out->setup = run.setup;
	out->path = run.path;
	memcpy(out->text, run.text, sizeof(out->text));
	return error;
}

/* one->takes: the knobs that are not at their defaults and without which the contract holds. 0, or
 * -ENOTRECOVERABLE, as shrink(). */
static int what_it_takes(struct minimized_failure *one, unsigned contract)
{
	const struct tm_store *store = one->setup.store;
	for (unsigned k = 0; store->knobs[k].name; k++) {
		struct setup base = one->setup, other;
		bool broken = true;
		int error = 0;
		if (!base.params.knob[k])
			continue;
		base.params.knob[k] = 0;
		if (!setup_like(&other, &base, &one->setup.w))
			error = shrink_breaks(&other, &one->path, contract, one->text,
					      sizeof(one->text), &broken);
		if (error) {
			setup_free(&one->setup);
			one->setup = other;
			return error;
		}
		one->takes |= broken ? 0 : 1u << k;
		setup_free(&other);
	}
	return 0;
}

static int minimize_one(const struct campaign *c, const struct candidate *at, unsigned contract,
			struct minimized *out)
{
	memset(out, 0, sizeof(*out));
	int error = minimize(c, at, contract, &out->found[0]);
	if (!error)
		error = what_it_takes(&out->found[0], contract);
	out->n = !error || error == -ENOTRECOVERABLE;
	return error;
}

int minimized_first(const struct campaign *c, unsigned config, unsigned contract,
		    struct minimized *out)
{
	const struct campaign_cell *cell = &c->cell[config][contract];
	const struct candidate first = {.unit = cell->unit, .mode = cell->mode};
	return minimize_one(c, &first, contract, out);
}

int minimized_strange(const struct campaign *c, unsigned config, unsigned contract,
		      struct minimized *out)
{
	const struct campaign_break which = c->cell[config][contract].strange
						    ? campaign_strange(c, config, contract)
						    : campaign_often(c, config, contract);
	const struct candidate one = {
		.unit = which.unit, .mode = which.mode, .sort = which.sort, .row = which.row};
	return minimize_one(c, &one, contract, out);
}

static bool known(const struct minimized *failures, const struct fingerprint *f)
{
	for (unsigned i = 0; i < failures->n; i++)
		if (fingerprint_contains(f, &failures->found[i].fingerprint) &&
		    f->nothing == failures->found[i].fingerprint.nothing)
			return true;
	return false;
}

/* Has `w` at least the operations of `small`? */
static bool has_operations(const struct workload *w, const struct workload *small)
{
	unsigned more[OP_KINDS] = {0};
	if (w->clients < small->clients || workload_cleans(w) != workload_cleans(small))
		return false;
	for (unsigned i = 0; i < w->clients; i++)
		for (unsigned o = 0; o < w->client[i].ops; o++)
			more[w->client[i].op[o].kind]++;
	for (unsigned i = 0; i < small->clients; i++)
		for (unsigned o = 0; o < small->client[i].ops; o++)
			if (!more[small->client[i].op[o].kind]--)
				return false;
	return true;
}

/* Has a failure been found that needs no other kinds of deviations and no other operations? Then
 * shrinking would most likely end there. */
static bool is_likely_same(const struct minimized *failures, const struct workload *w,
			   const struct failure_mode *mode)
{
	for (unsigned i = 0; i < failures->n; i++)
		if (failure_mode_includes(mode->kinds, failures->found[i].kinds) &&
		    has_operations(w, &failures->found[i].setup.w))
			return true;
	return false;
}

static int keep_if_new(struct minimized *out, struct minimized_failure *one, unsigned contract)
{
	int error = fingerprint_find(&one->setup, &one->path, contract, &one->fingerprint);
	if (error || known(out, &one->fingerprint)) {
		failure_free(one);
		return error;
	}
	error = what_it_takes(one, contract);
	if (!error)
		out->found[out->n++] = *one;
	return error;
}

/* What needs little comes first: then is_likely_same() spares most of what needs more. */
static int by_size(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int kinds = __builtin_popcount(x->mode.kinds) - __builtin_popcount(y->mode.kinds);
	if (kinds)
		return kinds;
	if (x->ops != y->ops)
		return x->ops < y->ops ? -1 : 1;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->mode.run < y->mode.run ? -1 : x->mode.run > y->mode.run;
}

/* All failure modes of a cell; the caller frees them. */
static struct candidate *candidates(const struct campaign *c, unsigned config, unsigned contract,
				    unsigned *n)
{
	struct candidate *list = calloc((size_t)c->workloads * FAILURE_MODES, sizeof(*list));
	*n = 0;
	for (unsigned w = 0; w < c->workloads && list; w++) {
		unsigned unit = config * c->workloads + w;
		const struct failure_modes *modes = &c->unit[unit].contract[contract].modes;
		for (unsigned i = 0; i < modes->n; i++)
			list[(*n)++] = (struct candidate){unit, workload_ops(&c->workload[w]),
							  modes->mode[i], BREAK_ANY, 0};
	}
	if (list)
		qsort(list, *n, sizeof(*list), by_size);
	return list;
}

int minimized_find(const struct campaign *c, unsigned config, unsigned contract,
		   struct minimized *out)
{
	unsigned n, at, shrunk = 0, nothing_new = 0;
	struct candidate *list = candidates(c, config, contract, &n);
	struct minimized_failure *one = malloc(sizeof(*one));
	int error = list && one ? 0 : -ENOMEM;
	memset(out, 0, sizeof(*out));
	for (at = 0; at < n && shrunk < MINIMIZED_SHRUNK && nothing_new < MINIMIZED_KNOWN &&
		     out->n < MINIMIZED_MAX && !error;
	     at++) {
		unsigned before = out->n;
		if (is_likely_same(out, &c->workload[list[at].unit % c->workloads], &list[at].mode))
			continue;
		shrunk++;
		error = minimize(c, &list[at], contract, one);
		if (!error)
			error = keep_if_new(out, one, contract);
		nothing_new = out->n > before ? 0 : nothing_new + 1;
	}
	out->left = n - at;
	if (error)
		minimized_free(out);
	if (error == -ENOTRECOVERABLE)
		out->found[out->n++] = *one;
	free(one);
	free(list);
	return error;
}

void minimized_free(struct minimized *failures)
{
	for (unsigned i = 0; i < failures->n; i++)
		failure_free(&failures->found[i]);
	failures->n = 0;
}
