/* SPDX-License-Identifier: BSD-3-Clause */
/* See fuzz_files.h. */
#include "cli/fuzz_files.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "checker/explore/driver.h"
#include "cli/cli.h"

/* A result. */
struct kept_input {
	uint32_t store;
	struct fuzz_input input;
};

uint64_t fuzz_shard_seed(const struct results *r, uint64_t seed)
{
	return r->shard ? XXH3_64bits_withSeed(&r->shard, sizeof(r->shard), seed) : seed;
}

static int told(const struct results *r, int error)
{
	return error ? fail(EXIT_USAGE, "%s", r->why) : 0;
}

int fuzz_shard_begin(struct results *r)
{
	return told(r, results_begin_list(r, sizeof(struct kept_input)));
}

/* By store, then by length. */
static int by_length(const void *a, const void *b)
{
	const struct kept_input *x = a, *y = b;
	if (x->store != y->store)
		return x->store < y->store ? -1 : 1;
	if (x->input.n != y->input.n)
		return x->input.n < y->input.n ? -1 : 1;
	return memcmp(x->input.bytes, y->input.bytes, x->input.n);
}

int fuzz_shard_load(struct results *r, unsigned store, struct fuzz *f)
{
	struct kept_input *all = calloc((size_t)r->known + 1, sizeof(*all));
	unsigned n = 0;
	int status = all ? 0 : fail(EXIT_INTERNAL, "out of memory");
	for (unsigned i = 0; i < r->known && !status; i++) {
		status = told(r, results_at(r, i, &all[n]));
		n += !status && all[n].store == store && all[n].input.n <= FUZZ_INPUT_MAX;
	}
	if (!status)
		qsort(all, n, sizeof(*all), by_length);
	for (unsigned i = 0; i < n && !status; i++)
		if (!i || by_length(&all[i - 1], &all[i]) != 0)
			if (fuzz_seed(f, all[i].input.bytes, all[i].input.n))
				status = fail(EXIT_INTERNAL, "out of memory");
	free(all);
	return status;
}

static int keep(struct results *r, unsigned store, const struct fuzz_input *input)
{
	struct kept_input one;
	memset(&one, 0, sizeof(one)); /* also what is between the members */
	one.store = store;
	one.input.n = input->n;
	memcpy(one.input.bytes, input->bytes, input->n);
	return results_add(r, &one);
}

int fuzz_shard_round(struct results *r, unsigned store, struct fuzz_turn *t, unsigned *kept)
{
	struct fuzz *f = &t->fuzz;
	int error = fuzz_round(f);
	if (error)
		return fail(EXIT_INTERNAL, "%s: %s", t->config->store->name,
			    f->why[0] ? f->why : driver_error(error));
	for (; *kept < f->inputs && !error; ++*kept)
		error = keep(r, store, &f->corpus[*kept]);
	for (unsigned i = 0; i < f->founds && !error; i++)
		error = keep(r, store, &f->found[i].input);
	return told(r, error);
}
