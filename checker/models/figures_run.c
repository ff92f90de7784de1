/* SPDX-License-Identifier: BSD-3-Clause */
/* A paper's experiment in virtual time. Packets have 4096 bytes, as InfiniBand's mostly have. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/models/count.h"
#include "checker/models/figures.h"
#include "checker/models/times.h"

static double metric(const struct times *t, enum figure_metric m)
{
	const struct op_times *put = &t->op[TIME_PUT], *get = &t->op[TIME_GET];
	switch (m) {
	case FIGURE_PUT:
		return put->mean;
	case FIGURE_GET:
		return get->mean;
	case FIGURE_LATENCY:
		return (put->mean * (double)put->n + get->mean * (double)get->n) /
		       (double)(put->n + get->n);
	case FIGURE_THROUGHPUT:
		return t->rate;
	default:
		assert(m == FIGURE_SERVER);
		return t->server;
	}
}

static int make_setup(const struct figure *f, const struct figure_side *side,
		      const struct profile *p, struct setup *s, char why[300])
{
	const char *expected = "";
	setup_init(s, side->store);
	setup_hardware(s, "mtu", "4096", &expected);
	s->profile = *p;
	int error = setup_variant(s, side->variant);
	for (unsigned k = 0; k < side->knobs && !error; k++)
		error = setup_switch(s, side->knob[k], &expected);
	if (error)
		snprintf(why, 300, "line %u: %s: expected %s", side->line, f->id, expected);
	return error ? -EIO : 0;
}

static int measure_bytes(const struct setup *base, const struct figure *f, uint32_t vlen,
			 double *out, char why[300])
{
	struct count *count = calloc(1, sizeof(*count));
	int error = count ? count_run(base, f->klen, vlen, count) : -ENOMEM;
	for (unsigned i = 0; !error && i < count->rows; i++)
		if (count->row[i].kind == COUNT_UPDATE)
			*out = count->row[i].op.paper;
	if (count && error)
		snprintf(why, 300, "%s", count->why);
	free(count);
	return error && error != -ENOMEM ? -EIO : error;
}

int figure_measure(const struct figure *f, const struct figure_side *side, uint32_t vlen,
		   const struct profile *p, double *out, char why[300])
{
	const struct ycsb y = {.read_percent = f->reads,
			       .clients = f->clients,
			       .keys = f->keys,
			       .ops = f->ops * f->clients,
			       .vlen = vlen,
			       .seed = 1};
	struct setup base;
	struct times times;
	int error = make_setup(f, side, p, &base, why);
	if (!error && f->metric == FIGURE_BYTES)
		return measure_bytes(&base, f, vlen, out, why);
	if (!error)
		error = times_run(&base, &y, side->cleans, &times, why);
	if (!error)
		*out = metric(&times, f->metric);
	return error;
}

static void compare(const struct figure *f, struct figure_result *r)
{
	r->agrees = true;
	for (unsigned i = 0; i < f->expects; i++)
		for (unsigned v = 0; v < f->values; v++) {
			const struct figure_expect *e = &f->expect[i];
			struct figure_ratio *ratio = &r->ratio[i][v];
			if (e->value && e->value != f->value[v])
				continue;
			ratio->asked = true;
			ratio->ratio = r->figure[v][e->a] / r->figure[v][e->b];
			ratio->agrees = ratio->ratio >= e->low && ratio->ratio <= e->high;
			r->agrees &= ratio->agrees;
		}
}

int figure_run(const struct figure *f, const struct profile *p, struct figure_result *r)
{
	int error = 0;
	*r = (struct figure_result){0};
	for (unsigned v = 0; v < f->values && !error; v++)
		for (unsigned i = 0; i < f->sides && !error; i++)
			error = figure_measure(f, &f->side[i], f->value[v], p, &r->figure[v][i],
					       r->why);
	if (!error)
		compare(f, r);
	return error;
}
