/* SPDX-License-Identifier: BSD-3-Clause */
/* See times.h. */
#include "checker/models/times.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/models/plain_run.h"
#include "core/text/error_name.h"

#define APART_NS 1000 /* the same moment for all would make them meet more than they do */
#define FEW	 2    /* less than this part of the operations: others began when one was done */

struct watch {
	struct client {
		uint64_t since; /* ns: the latest return, if one is done */
		unsigned done;
	} client[WORKLOAD_MAX_CLIENTS + 1];
	unsigned clients, ops; /* of each */
	unsigned begun;	       /* clients that have returned once */
	uint64_t from, to;     /* ns: all are at work */
	uint64_t busy_from, busy_to;
	uint64_t ns_in_all, busy_in_all; /* of all runs that have ended */
	uint64_t *ns[TIME_KINDS];	 /* of each operation that is counted */
	size_t n[TIME_KINDS];
	bool over;
	bool waits; /* after its first operation each client waits for the others */
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

/* Until all are at work; they go on one after the other, by their numbers. */
static void wait_for_all(struct watch *x, struct sim *sim)
{
	while (x->begun < x->clients) {
		sim_idle_on(sim, x);
		sim_yield(sim);
	}
	sim_sleep(sim, sim_host(sim) * APART_NS);
}

static void between(void *arg, struct world *world, const struct workload_op *op, int error)
{
	struct watch *x = arg;
	struct client *c = &x->client[sim_host(world->sim)];
	const uint64_t now = sim_task_now(world->sim);
	const unsigned kind = op->kind == OP_GET ? TIME_GET : TIME_PUT;
	if (op->kind == OP_CLEAN)
		return;
	error = failed(world, op, error);
	x->error = error ? error : x->error;
	if (!c->done && ++x->begun == x->clients) {
		sim_wake(world->sim, x);
		x->from = now;
		x->busy_from = sim_busy_ns(world->sim, HOST_SERVER);
	} else if (c->done && x->begun == x->clients && !x->over) {
		x->ns[kind][x->n[kind]++] = now - c->since;
		x->to = now;
		x->busy_to = sim_busy_ns(world->sim, HOST_SERVER);
	}
	x->over |= ++c->done == x->ops;
	if (x->waits && c->done == 1)
		wait_for_all(x, world->sim);
	c->since = sim_task_now(world->sim);
}

static int by_length(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static struct op_times times_of(uint64_t *ns, size_t n)
{
	struct op_times t = {.n = n};
	uint64_t sum = 0;
	if (!n)
		return t;
	qsort(ns, n, sizeof(*ns), by_length);
	for (size_t i = 0; i < n; i++)
		sum += ns[i];
	t.mean = (double)sum / (double)n;
	t.median = (double)ns[n / 2];
	t.p99 = (double)ns[n - 1 - n / 100];
	return t;
}

static void add_up(struct watch *x, struct times *out)
{
	const double n = (double)(x->n[TIME_PUT] + x->n[TIME_GET]);
	for (unsigned k = 0; k < TIME_KINDS; k++)
		out->op[k] = times_of(x->ns[k], x->n[k]);
	out->rate = n * 1e9 / (double)x->ns_in_all;
	out->server = n * 1e9 / (double)x->busy_in_all;
}

/* 0; -EAGAIN: one was as good as done before another began, and nothing is counted; -EIO,
 * -ENOMEM. */
static int run_world(struct setup *s, struct watch *x, char why[300])
{
	const struct plain_run how = {.between = between, .arg = x};
	const size_t put = x->n[TIME_PUT], get = x->n[TIME_GET];
	struct world *world;
	int error = plain_run(s, &how, &world, why);
	if (error)
		return error;
	if (x->error) {
		snprintf(why, 300, "an operation fails: %s", error_name(x->error).text);
		return -EIO;
	}
	const size_t n = x->n[TIME_PUT] - put + x->n[TIME_GET] - get;
	if (n > (x->waits ? 0 : x->ops * x->clients / FEW))
		return 0;
	snprintf(why, 300, "too few operations for so many clients");
	x->n[TIME_PUT] = put;
	x->n[TIME_GET] = get;
	return x->waits ? -EIO : -EAGAIN;
}

/* What is of one run. */
static void begin_run(struct watch *x, bool waits)
{
	memset(x->client, 0, sizeof(x->client));
	x->begun = 0;
	x->over = false;
	x->waits = waits;
}

static int run_once(const struct setup *base, const struct ycsb *y, unsigned cleans,
		    struct watch *x, char why[300])
{
	struct setup s = {0};
	struct workload w = {0};
	int error = ycsb_make(y, &w);
	for (unsigned i = 0; i < cleans && !error; i++)
		error = workload_op_add(&w, y->clients + 1, OP_CLEAN, 0, 0);
	if (!error)
		error = setup_like(&s, base, &w);
	if (!error) {
		x->clients = y->clients;
		x->ops = y->ops / y->clients;
		begin_run(x, false);
		error = run_world(&s, x, why);
	}
	if (error == -EAGAIN) {
		begin_run(x, true);
		error = run_world(&s, x, why);
	}
	if (error == -EFBIG) {
		snprintf(why, 300, "the pool would be too large");
		error = -EIO;
	}
	x->ns_in_all += x->to - x->from;
	x->busy_in_all += x->busy_to - x->busy_from;
	workload_free(&w);
	setup_free(&s);
	return error;
}

int times_run(const struct setup *base, const struct ycsb *y, unsigned cleans, struct times *out,
	      char why[300])
{
	struct watch *x = calloc(1, sizeof(*x));
	struct ycsb one = *y;
	const unsigned runs = (y->ops - 1) / WORKLOAD_MAX_OPS + 1;
	int error = x ? 0 : -ENOMEM;
	for (unsigned k = 0; k < TIME_KINDS && !error; k++) {
		x->ns[k] = calloc(y->ops, sizeof(*x->ns[k]));
		error = x->ns[k] ? 0 : -ENOMEM;
	}
	one.ops = y->ops / runs;
	for (unsigned r = 0; r < runs && !error; r++, one.seed++)
		error = run_once(base, &one, cleans, x, why);
	if (!error)
		add_up(x, out);
	for (unsigned k = 0; x && k < TIME_KINDS; k++)
		free(x->ns[k]);
	free(x);
	return error;
}

/* --- parts --- */

const struct time_part_name time_parts[TIME_PARTS] = {
	{"post", "requests posted, completions polled"},
	{"wire", "packets on their way, and NICs' work on them"},
	{"dma", "between NICs and memories, until it lands"},
	{"handle", "a server's work for each message"},
	{"copy", "copies to PM and out of it"},
	{"crc", "checksums"},
	{"flush", "flushes of lines"},
	{"fence", "fences"},
	{"bandwidth", "waiting for PM that is busy"},
	{"wake", "interrupts"},
	{"rest", "loads and stores, locks, sleeping"},
};

/* Of which part a cost is. The others are of what is left. */
static const struct {
	enum time_part part;
	size_t cost; /* of struct profile */
	bool rate;   /* the higher, the less time it takes */
} costs[] = {
#define COST(part, cost)                                    \
	{                                                   \
		part, offsetof(struct profile, cost), false \
	}
#define RATE(part, cost)                                   \
	{                                                  \
		part, offsetof(struct profile, cost), true \
	}
	COST(TIME_POST, post),
	COST(TIME_POST, doorbell),
	COST(TIME_POST, poll),
	COST(TIME_POST, await),
	RATE(TIME_WIRE, wire),
	COST(TIME_WIRE, packet),
	COST(TIME_WIRE, flight),
	COST(TIME_DMA, dma),
	COST(TIME_DMA, land),
	COST(TIME_DMA, drain),
	COST(TIME_HANDLE, handle),
	COST(TIME_COPY, copy),
	COST(TIME_CRC, crc),
	COST(TIME_FLUSH, flush),
	COST(TIME_FLUSH, flush_line),
	COST(TIME_FENCE, fence),
	RATE(TIME_BANDWIDTH, pm_write),
	COST(TIME_WAKE, wake),
};

static void halve(struct profile *p, enum time_part part)
{
	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
		uint32_t *cost = (uint32_t *)((char *)p + costs[i].cost);
		if (costs[i].part == part)
			*cost = costs[i].rate ? 2 * *cost : *cost / 2;
	}
}

int times_parts(const struct setup *base, const struct ycsb *y, struct times *out,
		double part[TIME_KINDS][TIME_PARTS], char why[300])
{
	struct setup *s = malloc(sizeof(*s));
	struct times half;
	int error = s ? times_run(base, y, 0, out, why) : -ENOMEM;
	for (unsigned k = 0; k < TIME_KINDS && !error; k++)
		part[k][TIME_REST] = out->op[k].mean;
	for (unsigned p = 0; p < TIME_REST && !error; p++) {
		*s = *base;
		halve(&s->profile, p);
		error = times_run(s, y, 0, &half, why);
		for (unsigned k = 0; k < TIME_KINDS && !error; k++) {
			part[k][p] = 2 * (out->op[k].mean - half.op[k].mean);
			part[k][TIME_REST] -= part[k][p];
		}
	}
	free(s);
	return error;
}
