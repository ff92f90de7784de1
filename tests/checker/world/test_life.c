/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life after recovery: what clients do then is in the history, the power fails within it, and bugs
 * of recovery are found that no first read shows.
 */
#include "checker/campaign/campaign.h"
#include "checker/trace/replay.h"
#include "checker/trace/shrink.h"
#include "faultinject/life.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"
#include "faultinject/random_source.h"

static struct bench *bench(const char *store, const char *variant, const char *workload,
			   const char *switches)
{
	struct setup setup;

	make_whole_setup(&setup, store_find(store), variant, switches, workload);
	return make_bench(&setup, &campaign_default.limits);
}

/* Up to `runs` runs, until one of the contracts in `stop_at` breaks. */
static void explore_runs(struct bench *b, uint64_t runs, unsigned stop_at)
{
	b->ex.stop_at = stop_at;
	for (uint64_t run = 0; run < runs && explore_more(&b->ex); run++) {
		b->random.taken.n = 0;
		if (run)
			random_start(&b->random, run, campaign_default.deviations);
		ck_assert_int_eq(
			explore_run(&b->ex, run ? &b->random.source : NULL, &b->random.taken), 0);
	}
}

/* Operations of lives. */
static unsigned lived(const struct deviations *path)
{
	unsigned n = 0;
	for (unsigned i = 0; i < path->n; i++)
		n += path->d[i].kind == CHOICE_LIFE;
	return n;
}

/* --- a life as it is asked for --- */

struct seen {
	const struct setup *setup;
	unsigned machine[WORLDS]; /* images of each */
	bool ended, cut;	  /* a life that came to its end; one that did not */
};

/* The epoch's operations, in words: "g1 g2 p2 d1 g1 g2". A capital letter: it has not returned. */
static void epoch_text(const struct history *h, unsigned epoch, char *buf)
{
	for (unsigned i = 0; i < h->ops; i++) {
		const struct history_op *o = &h->op[i];
		if (o->epoch != epoch)
			continue;
		*buf++ = (o->returned < 0 ? "PGD" : "pgd")[o->kind];
		*buf++ = (char)('1' + o->key);
		*buf++ = (char)('0' + o->client);
		*buf++ = ' ';
	}
	*buf = '\0';
}

/* The first life: client 2 puts key 2 while client 3 deletes key 1; then client 2 puts key 1. */
static const char whole_life[] = "g12 g22 p22 d13 p12 g12 g22 ";
static const char other_order[] = "g12 g22 d13 p22 p12 g12 g22 ";

static void image_done(void *arg, const struct explorer *ex, unsigned machine)
{
	struct seen *seen = arg;
	const struct history *h = ex->worlds.history;
	char text[256];

	seen->machine[machine]++;
	ck_assert_int_eq(ex->worlds.world[machine].result.live_broken, false);
	for (unsigned i = 0; i < h->ops; i++)
		ck_assert_int_eq(h->op[i].error, 0);
	if (!explore_more(ex))
		return; /* what is at work ends where it is */
	epoch_text(h, 1, text);
	if (machine == 1) {
		ck_assert_msg(!strcmp(text, whole_life) || !strcmp(text, other_order), "%s", text);
		/* What the life has put is read, and it alone. */
		for (unsigned i = h->ops - 2; i < h->ops; i++)
			ck_assert(h->op[i].value >= 0 && h->op[h->op[i].value].epoch == 1);
		seen->ended = true;
		return;
	}
	/* The power failed within the life, not before it. */
	ck_assert_msg(!strncmp(text, whole_life, 8), "%s", text);
	ck_assert_uint_gt(strlen(text), 8);
	seen->cut |= strlen(text) < strlen(whole_life);
}

TESTS(life_goes_on, 3)
{
	static const char *const store[] = {"efactory", "forca", "remotelog"};
	struct life_plan plan[WORLDS] = {0};
	struct bench *b = bench(store[_i], "default", "w1w2", "");
	struct seen seen = {.setup = &b->setup};

	ck_assert_uint_eq(b->setup.w.clients, 1);
	ck_assert_uint_eq(b->setup.w.keys, 2);
	plan[1].answer[0][0] = life_answer(LIFE_PUT, 1);
	plan[1].answer[0][1] = life_answer(LIFE_DEL, 0);
	plan[1].answer[1][0] = life_answer(LIFE_PUT_LONG, 0);
	plan[1].cut = LIFE_CUT;
	b->ex.plan = plan;
	b->ex.image_done = image_done;
	b->ex.image_done_arg = &seen;
	b->ex.limits.states = 3000;
	explore_runs(b, 1, 0);
	ck_assert(seen.ended && seen.cut);
	ck_assert_uint_gt(seen.machine[2], seen.machine[1]);
	ck_assert_uint_eq(seen.machine[3], 0);
	ck_assert_uint_gt(b->ex.counts.life_states, b->ex.counts.states * 9 / 10);
	bench_free(b);
}

/* Three lives, two power failures between them. */
static void count_machines(void *arg, const struct explorer *ex, unsigned machine)
{
	struct seen *seen = arg;
	seen->machine[machine]++;
	seen->cut |= machine == 3 && lived(&ex->path[1]) && lived(&ex->path[2]);
}

TEST(lives_are_drawn)
{
	struct bench *b[2];
	struct seen seen[2] = {0};

	for (unsigned i = 0; i < 2; i++) {
		b[i] = bench("efactory", "default", "w1w2-r2r1", "");
		b[i]->ex.image_done = count_machines;
		b[i]->ex.image_done_arg = &seen[i];
		b[i]->ex.limits.states = 4000;
		explore_runs(b[i], 40, 0);
		ck_assert(seen[i].cut);
		ck_assert_uint_gt(b[i]->ex.counts.lives, 20);
		ck_assert_uint_gt(b[i]->ex.counts.life_states, b[i]->ex.counts.lives);
	}
	ck_assert_mem_eq(&b[0]->ex.counts, &b[1]->ex.counts, sizeof(b[0]->ex.counts));
	ck_assert_mem_eq(&seen[0], &seen[1], sizeof(seen[0]));
	bench_free(b[0]);
	bench_free(b[1]);
}

/* --- bugs that need one --- */

static const struct {
	const char *store, *variant, *workload;
	unsigned breaks;
	uint64_t runs;
} bugs[] = {
	{"efactory", "recover_unflushed", "w1-w2r2", TM_BIT(TM_FSCK), 60},
	{"efactory", "recover_tail_low", "wdw", TM_BIT(TM_FSCK), 60},
	{"forca", "tail_reused", "w", TM_BIT(TM_FSCK), 20},
	{"remotelog", "recover_head", "wd", TM_BIT(TM_FSCK), 60},
};

static void replays(struct setup *s, const struct deviations *path, unsigned contract,
		    const char *text)
{
	const struct replay_outcome *out = replayed(s, path, contract);

	ck_assert_ptr_null(out->unused);
	ck_assert(out->verdict[contract].broken);
	ck_assert_str_eq(out->text[contract], text);
}

TESTS(bug_is_found, ROWS_OF(bugs))
{
	struct bench *b = bench(bugs[_i].store, bugs[_i].variant, bugs[_i].workload, "");
	unsigned contract = (unsigned)__builtin_ctz(bugs[_i].breaks);
	const struct failure *f = &b->ex.failure[contract];
	struct deviations path = {0};
	struct setup small;
	char text[300];

	explore_runs(b, bugs[_i].runs, bugs[_i].breaks);
	ck_assert(f->found);
	ck_assert_uint_gt(lived(&f->deviations), 0);
	replays(&b->setup, &f->deviations, contract, f->text);
	ck_assert_int_eq(setup_like(&small, &b->setup, &b->setup.w), 0);
	deviations_append(&path, &f->deviations);
	ck_assert_int_eq(shrink(&small, &path, contract, text, sizeof(text), NULL, NULL), 0);
	ck_assert_uint_le(path.n, f->deviations.n);
	ck_assert(lived(&path) == 1 || lived(&path) == 2);
	replays(&small, &path, contract, text);
	deviations_free(&path);
	setup_free(&small);
	bench_free(b);
}

/* Without lives it is not, nor without the bug. */
TESTS(bug_needs_a_life, ROWS_OF(bugs))
{
	for (unsigned i = 0; i < 2; i++) {
		struct bench *b = bench(bugs[_i].store, i ? "default" : bugs[_i].variant,
					bugs[_i].workload, i ? "" : "mutant=life_never");
		explore_runs(b, bugs[_i].runs, 0);
		ck_assert_uint_eq(b->ex.broken[__builtin_ctz(bugs[_i].breaks)], 0);
		ck_assert((b->ex.counts.lives > 0) == (i > 0));
		bench_free(b);
	}
}

/* --- the structural check at the end of a life --- */

/* A store with a count of the PUTs that are under way, which its PUT forgets to take down. Recovery
 * does, so no check after a recovery finds anything. */
struct counting {
	struct tm_store store;
	const struct tm_store *base;
	uint64_t *under_way; /* of the machine that serves */
};
static struct counting counting;

static size_t counting_bytes(const struct tm_params *params)
{
	return counting.base->pm_bytes(params) + TM_LINE;
}

static uint64_t *count_of(const struct tm_env *env)
{
	return (uint64_t *)(env->pm + counting.base->pm_bytes(env->params));
}

static int counting_recover(const struct tm_env *env)
{
	*count_of(env) = 0;
	return counting.base->recover(env);
}

static int counting_serve(const struct tm_env *env)
{
	counting.under_way = count_of(env);
	return counting.base->serve(env);
}

static int counting_put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	++*counting.under_way;
	return counting.base->put(client, key, klen, value, vlen);
}

static void counting_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	if (*count_of(env))
		fsck->bad(fsck, "%d PUTs are under way", (int)*count_of(env));
	counting.base->fsck(env, fsck);
}

/* With one life of two PUTs; the power does not fail in it. */
static bool counting_is_caught(bool at_rest)
{
	struct life_plan plan[WORLDS] = {0};
	struct explore_limits limits = campaign_default.limits;
	struct setup setup;
	struct explorer ex;

	limits.share_tree = false; /* this is another store each time, at the same place */
	counting.base = store_find("forca");
	counting.store = *counting.base;
	counting.store.pm_bytes = counting_bytes;
	counting.store.recover = counting_recover;
	counting.store.serve = counting_serve;
	counting.store.put = counting_put;
	counting.store.fsck = counting_fsck;
	counting.store.fsck_at_rest = at_rest;
	make_whole_setup(&setup, &counting.store, NULL, "", "w");
	ck_assert_int_eq(explore_open(&ex, &setup, &limits), 0);
	plan[1].answer[0][0] = plan[1].answer[0][1] = life_answer(LIFE_PUT, 0);
	ex.plan = plan;
	ex.limits.states = 20;
	ck_assert_int_eq(explore_run(&ex, NULL, &(struct deviations){0}), 0);
	bool caught = ex.failure[TM_FSCK].found;
	ck_assert_uint_gt(ex.counts.lives, 0);
	for (unsigned c = 0; caught && c < TM_CONTRACTS; c++)
		ck_assert(c == TM_FSCK || c == TM_DUR || !ex.failure[c].found);
	if (caught)
		ck_assert_str_eq(ex.failure[TM_FSCK].text,
				 "the structural check after a life says: 2 PUTs are under way");
	explore_close(&ex);
	setup_free(&setup);
	return caught;
}

TEST(checked_at_the_end)
{
	ck_assert(counting_is_caught(true));
	ck_assert(!counting_is_caught(false));
}

RUN_TESTS(NULL, NULL)
