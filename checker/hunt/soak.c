/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which contracts count. The hardware that is drawn here is seldom one that the store's
 * expectations name, so they are read as rules: what is expected to hold in all
 * configurations of the default campaign holds at any hardware, but for the knobs of which
 * the store says that they break it, which are left out; and what holds with ack_early=off holds
 * wherever a WRITE is visible when it completes, which is there and with transport=ib.
 *
 * Each round has an explorer of its own, which goes through some random runs; so a
 * process opens and closes thousands of them, and a leak shows in its size.
 */
#include "checker/hunt/soak.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "checker/campaign/campaign.h"
#include "checker/judge/expect.h"
#include "checker/judge/surprise.h"
#include "checker/trace/shrink.h"
#include "core/text/text.h"
#include "scenarios/stores.h"
#include "faultinject/random_source.h"

#define RUNS   40 /* of a round */
#define STATES 4000
#define BYTES  (2ull << 30) /* of these states' pools: recovery and fsck look at most of each */
/* A process leaks if it grows by more than this, and by half, after a fifth of its time. */
#define GROWTH_KIB (32 * 1024)

static unsigned draw(uint64_t *state, unsigned n)
{
	return (unsigned)(random_next(state) % n);
}

/* The i-th word of a list, at random. */
static void draw_word(uint64_t *state, const char *words, char *out, size_t n)
{
	size_t len;
	const char *word = word_list_at(words, draw(state, word_list_count(words)), &len);
	snprintf(out, n, "%.*s", (int)len, word);
}

/* Half of the knobs have their defaults. */
static void draw_hardware(uint64_t *state, struct setup *s)
{
	for (unsigned i = 0; hardware_knob(i)->name; i++) {
		const struct hardware_knob *k = hardware_knob(i);
		const char *expected;
		char value[64], knob[128];
		if (!strcmp(k->name, "mutant") ||
		    (!strcmp(k->name, "clocks") && !s->store->servers) || draw(state, 2))
			continue;
		draw_word(state, k->values, value, sizeof(value));
		snprintf(knob, sizeof(knob), "%s=%s", k->name, value);
		if (!expect_switch_breaks(s->store->name, knob))
			setup_knob(s, k->name, value, &expected);
	}
}

static int draw_ycsb(uint64_t *state, struct workload *w)
{
	static const unsigned vlens[] = {8, 40, 64, 100, 300};
	const char *what, *name;
	struct ycsb y;
	name = ycsb_default(draw(state, 4), &y, &what);
	y.clients = 1 + draw(state, 4);
	y.keys = 1 + draw(state, 8);
	y.ops = 4 + draw(state, 37);
	y.vlen = vlens[draw(state, sizeof(vlens) / sizeof(vlens[0]))];
	y.seed = (uint32_t)random_next(state);
	int error = ycsb_make(&y, w);
	snprintf(w->name, sizeof(w->name), "%s:clients=%u,keys=%u,ops=%u,vlen=%u,seed=%u", name,
		 y.clients, y.keys, y.ops, y.vlen, y.seed);
	return error;
}

/* 1 to 3 clients, 1 to 4 operations each, on one or two keys. */
static int draw_small(uint64_t *state, bool cleans, struct workload *w)
{
	static const uint32_t vlens[] = {8, 40, 64, 96, 160, 300, 1500};
	static const enum op_kind kinds[] = {OP_PUT, OP_PUT, OP_PUT, OP_PUT, OP_GET,
					     OP_GET, OP_GET, OP_GET, OP_DEL, OP_CLEAN};
	static const enum op_kind goes[] = {OP_LEAVE, OP_DIE, OP_PAUSE};
	unsigned clients = 1 + draw(state, 3), keys = 1 + draw(state, 2);
	int error = 0;
	for (unsigned k = 0; k < keys && error >= 0; k++) {
		int32_t loaded = draw(state, 4) ? (int32_t)vlens[draw(state, 7)] : -1;
		error = workload_key_add(w, k ? "k2" : "k1", 2, loaded);
	}
	for (unsigned c = 1; c <= clients && error >= 0; c++) {
		for (unsigned n = 1 + draw(state, 4); n && error >= 0; n--) {
			enum op_kind kind = kinds[draw(state, cleans ? 10 : 9)];
			unsigned key = draw(state, keys);
			uint32_t vlen = vlens[draw(state, 7)];
			error = workload_op_add(w, c, kind, key, kind == OP_PUT ? vlen : 0);
			if (error >= 0 && !draw(state, 16))
				error = workload_op_add(w, c, goes[draw(state, 3)], 0, 0);
		}
	}
	snprintf(w->name, sizeof(w->name), "drawn");
	return error < 0 ? error : 0;
}

int soak_setup(const struct soak_options *o, uint64_t round, struct setup *s, unsigned *want)
{
	uint64_t state = o->seed * 0x9e3779b97f4a7c15u ^ round * 0xd6e8feb86659fd93u;
	random_next(&state);
	setup_init(s, stores[draw(&state, stores_by_default)]);
	draw_hardware(&state, s);
	for (unsigned i = 0; i < o->knobs; i++) {
		const char *expected;
		int bad = setup_switch(s, o->knob[i], &expected);
		assert(!bad); /* the command line has tried it */
		(void)bad;
	}
	int error = draw(&state, 4) ? draw_small(&state, s->store->clean, &s->w)
				    : draw_ycsb(&state, &s->w);
	/* Other lengths in every second round. */
	if (!error && draw(&state, 2))
		workload_resize(&s->w, s->store, s->hw.mtu, random_next(&state));
	workload_limit(&s->w, s->store);
	*want = surprise_at_any_hardware(s->store,
					 !s->hw.ack_early && s->hw.transport == TRANSPORT_IB);
	return error ? error : setup_finish(s);
}

/* --- memory --- */

static void measure(struct soak_result *out)
{
	struct rusage use;
	unsigned long pages = 0;
	FILE *in = fopen("/proc/self/statm", "re");
	if (in && fscanf(in, "%*u %lu", &pages) != 1)
		pages = 0;
	if (in)
		fclose(in);
	getrusage(RUSAGE_SELF, &use);
	out->rss_kib = pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	out->peak_kib = (uint64_t)use.ru_maxrss;
}

/* --- a round --- */

/* A campaign of one unit; what ended it, and why. */
static int explore_round(uint64_t seed, unsigned want, const struct setup *s,
			 struct broken_run *run, struct soak_result *out)
{
	struct campaign_config config = {.store = s->store, .setup = *s, .share.one_in = 1};
	struct workload w = s->w;
	struct campaign c = {.config = &config,
			     .configs = 1,
			     .workload = &w,
			     .workloads = 1,
			     .options = campaign_default};
	struct campaign_unit *unit = calloc(1, sizeof(*unit));
	int error = -ENOMEM;
	c.options.hunt = true;
	c.options.seed = seed;
	c.options.runs = RUNS;
	c.options.states = s->pm_len > BYTES / STATES ? BYTES / s->pm_len : STATES;
	if (unit) {
		campaign_explore(&c, 0, want, unit, run);
		error = unit->error;
		out->counts = unit->counts;
		memcpy(out->text, run->text, sizeof(out->text));
	}
	free(unit);
	return error;
}

int soak_round(const struct soak_options *o, uint64_t round, struct setup *s,
	       struct deviations *path, struct soak_result *out)
{
	struct broken_run run = {0};
	unsigned want = 0;
	memset(out, 0, sizeof(*out));
	out->contract = TM_CONTRACTS;
	path->n = 0;
	int error = soak_setup(o, round, s, &want);
	if (!error)
		error = explore_round(o->seed * 1000003 + round, want, s, &run, out);
	if (!error)
		out->contract = run.contract;
	deviations_free(path);
	*path = run.path;
	setup_free(&run.setup);
	snprintf(out->store, sizeof(out->store), "%s", s->store->name);
	snprintf(out->variant, sizeof(out->variant), "%s", s->variant);
	hardware_print(&s->hw, false, out->hardware, sizeof(out->hardware));
	snprintf(out->workload, sizeof(out->workload), "%s", s->w.name);
	if (!error && out->contract < TM_CONTRACTS) {
		error = shrink(s, path, out->contract, out->text, sizeof(out->text), NULL, NULL);
		/* What cannot be shrunk is kept as it was found. */
		error = error == -ENOTRECOVERABLE ? error : 0;
		out->operations = workload_ops(&s->w);
		out->deviations = path->n;
	}
	measure(out);
	return error;
}

/* --- all rounds --- */

void soak_add(struct soak_totals *t, const struct soak_result *r, double part)
{
	t->rounds++;
	t->states += r->counts.states;
	t->runs += r->counts.runs;
	t->points += r->counts.points - r->counts.points_seen;
	t->unsure += r->counts.unsure;
	t->rss_kib = r->rss_kib;
	t->peak_kib = r->peak_kib > t->peak_kib ? r->peak_kib : t->peak_kib;
	if (part < 0.2 && r->rss_kib > t->early_kib)
		t->early_kib = r->rss_kib;
	if (part > 0.8 && r->rss_kib > t->late_kib)
		t->late_kib = r->rss_kib;
	t->broken += r->contract < TM_CONTRACTS;
}

bool soak_grows(const struct soak_totals *t)
{
	return t->rounds >= SOAK_FEW_ROUNDS && t->late_kib > t->early_kib + t->early_kib / 2 &&
	       t->late_kib > t->early_kib + GROWTH_KIB;
}
