/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A paper's experiment in virtual time.
 *
 * Clients do YCSB's operations, each the next one as soon as one has returned, in a world in which
 * every choice is answered plainly and the power does not fail. An operation's time is from the
 * return before it to its own; each client's first one is not counted, as it has none before it,
 * and neither are those before all clients have done one, or after one of them has ended: what is
 * counted has all clients at work. Packets have 4096 bytes, as InfiniBand's mostly have. Nothing is
 * drawn, so two runs are equal.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/models/count.h"
#include "checker/models/figures.h"
#include "checker/models/plain_run.h"

struct watch {
	struct client {
		uint64_t since; /* ns: the latest return; 0: none */
		unsigned done;
	} client[TM_MAX_CLIENTS + 1];
	const struct figure *figure;
	unsigned begun;	   /* clients that have returned once */
	uint64_t from, to; /* ns: all are at work */
	uint64_t busy_from, busy_to;
	uint64_t ns[2], times[2]; /* of PUTs, of GETs */
	bool over;
	int error;
};

/* Has an operation failed, or a GET found what is not there? */
static int failed(const struct world *w, const struct workload_op *op, int error)
{
	const struct history *h = w->history;
	if (op->kind != OP_GET || error)
		return error;
	/* The client's latest operation. */
	for (unsigned i = h->ops; i-- > 0;)
		if (h->op[i].client == sim_host(w->sim))
			return h->op[i].error;
	return 0;
}

static void between(void *arg, struct world *world, const struct workload_op *op, int error)
{
	struct watch *x = arg;
	struct client *c = &x->client[sim_host(world->sim)];
	const uint64_t now = sim_task_now(world->sim);
	if (op->kind == OP_CLEAN)
		return;
	error = failed(world, op, error);
	x->error = error ? error : x->error;
	if (!c->since && ++x->begun == x->figure->clients) {
		x->from = now;
		x->busy_from = sim_busy_ns(world->sim, HOST_SERVER);
	} else if (c->since && x->from && !x->over) {
		x->ns[op->kind == OP_GET] += now - c->since;
		x->times[op->kind == OP_GET]++;
		x->to = now;
		x->busy_to = sim_busy_ns(world->sim, HOST_SERVER);
	}
	c->since = now;
	x->over |= ++c->done == x->figure->ops;
}

static double metric(const struct watch *x, enum figure_metric m)
{
	const double ops = (double)(x->times[0] + x->times[1]);
	switch (m) {
	case FIGURE_PUT:
		return (double)x->ns[0] / (double)x->times[0];
	case FIGURE_GET:
		return (double)x->ns[1] / (double)x->times[1];
	case FIGURE_LATENCY:
		return (double)(x->ns[0] + x->ns[1]) / ops;
	case FIGURE_THROUGHPUT:
		return ops * 1e9 / (double)(x->to - x->from);
	default:
		assert(m == FIGURE_SERVER);
		return ops * 1e9 / (double)(x->busy_to - x->busy_from);
	}
}

static int run_world(struct setup *s, struct watch *x, char why[300])
{
	const struct plain_run how = {.between = between, .arg = x};
	struct world *world;
	int error = plain_run(s, &how, &world, why);
	if (error || !x->error)
		return error;
	snprintf(why, 300, "an operation fails");
	return -EIO;
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
	struct watch *x = calloc(1, sizeof(*x));
	struct setup base, s = {0};
	struct workload w = {0};
	int error = x ? make_setup(f, side, p, &base, why) : -ENOMEM;
	if (!error && f->metric == FIGURE_BYTES) {
		error = measure_bytes(&base, f, vlen, out, why);
		free(x);
		return error;
	}
	if (!error)
		error = ycsb_make(&y, &w);
	for (unsigned i = 0; i < side->cleans && !error; i++)
		error = workload_op_add(&w, f->clients + 1, OP_CLEAN, 0, 0);
	if (!error)
		error = setup_like(&s, &base, &w);
	if (!error) {
		x->figure = f;
		error = run_world(&s, x, why);
	}
	if (error == -EFBIG) {
		snprintf(why, 300, "the pool would be too large");
		error = -EIO;
	}
	if (!error)
		*out = metric(x, f->metric);
	free(x);
	workload_free(&w);
	setup_free(&s);
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
