/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shrinking. A candidate is a workload and deviations of its run, without power
 * failures and lines: those are searched anew each time, by exploring all power
 * failures of the one run. So taking away an operation that a power failure or a
 * line was named after loses nothing. Deviations that no longer apply are dropped:
 * the trace source is lenient, and what it really took is the next candidate.
 *
 * What clients did after a recovery is a part of the candidate: each machine lives so in every
 * image of every power failure that is tried.
 *
 * When nothing can be taken away any more, the lines of the failing image are put
 * back one by one to "newest version", each checked by a replay.
 */
#include "checker/trace/shrink.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/world/checker_mutant.h"
#include "faultinject/life.h"
#include "faultinject/trace_source.h"

/* States of one candidate at most; and at most so many times those that the best one took, though
 * not fewer than FEW_STATES: most of the time goes by in candidates that do not break. */
#define SHRINK_STATES 200000
#define TIMES_BEST    20
#define FEW_STATES    20000

struct candidate {
	struct workload w;
	struct deviations run; /* of machine 0, no power failure */
	struct life_plan life[WORLDS];
};

struct shrinker {
	const struct setup *base;
	unsigned contract;
	bool crash;	/* the failure needs a power failure */
	bool nested;	/* and a second one */
	bool lives;	/* or operations after a recovery */
	bool unstarted; /* the store does not start: no operation has a part in it */
	struct candidate best;
	uint64_t states;	/* of the next candidate, at most */
	struct deviations path; /* of the best: everything */
	char text[300];
	/* -ENOTRECOVERABLE: nothing breaks any more. `path` and `text` are those of a run of which
	 * the tree of recoveries was wrong, and this is its setup. */
	int error;
	struct setup wrong;
};

static void candidate_free(struct candidate *c)
{
	workload_free(&c->w);
	deviations_free(&c->run);
}

static void copy_deviations(struct deviations *to, const struct deviations *from)
{
	to->n = 0;
	deviations_append(to, from);
}

/* Number of states that the next candidate may take, after one that broke within `taken`. */
static uint64_t states_after(uint64_t taken)
{
	uint64_t states = taken * TIMES_BEST;
	if (states < FEW_STATES)
		states = FEW_STATES;
	return states < SHRINK_STATES ? states : SHRINK_STATES;
}

static void note_path(struct shrinker *sh, const struct failure *f)
{
	copy_deviations(&sh->path, &f->deviations);
	snprintf(sh->text, sizeof(sh->text), "%s", f->text);
}

static void note_wrong(struct shrinker *sh, const struct explorer *ex)
{
	sh->error = setup_like(&sh->wrong, ex->setup, &ex->setup->w);
	sh->error = sh->error ? sh->error : -ENOTRECOVERABLE;
	note_path(sh, &ex->wrong);
}

/* In place of what was to be shrunk. 0 or the error. */
static int hand_over(struct shrinker *sh, struct setup *smallest, struct setup *setup,
		     struct deviations *list, char *text, size_t n)
{
	setup_free(setup);
	*setup = *smallest;
	copy_deviations(list, &sh->path);
	snprintf(text, n, "%s", sh->text);
	return sh->error;
}

/* Does the candidate break the contract? Then a copy of it becomes the best. */
static bool breaks(struct shrinker *sh, const struct candidate *c)
{
	struct setup s;
	struct explorer *ex = malloc(sizeof(*ex));
	struct explore_limits limits = explore_default;
	struct trace_source ts;
	bool found = false;
	limits.states = sh->states;
	limits.no_crash = !sh->crash;
	limits.nested_every = sh->nested && !sh->lives ? 1 : 0;
	limits.fill = !sh->crash && replay_fills((int)sh->contract, &c->run);
	limits.share_tree = true; /* candidates differ little */
	limits.tree_bytes = TREE_BYTES - SHARED_BYTES;
	if (!ex || sh->error) {
		free(ex);
		return false;
	}
	if (setup_like(&s, sh->base, &c->w) || explore_open(ex, &s, &limits))
		goto out;
	if (!trace_start(&ts, &c->run)) {
		unsigned contract = sh->contract;
		ex->plan = sh->lives ? c->life : NULL;
		ex->stop_at = TM_BIT(contract);
		if (CHECKER_MUTANT(&s, SHRINK_ANY))
			ex->stop_at = TM_BIT(TM_CONTRACTS) - 1;
		if (explore_run(ex, &ts.source, &ts.taken))
			note_wrong(sh, ex);
		for (unsigned k = 0; k < TM_CONTRACTS && CHECKER_MUTANT(&s, SHRINK_ANY); k++)
			contract = ex->failure[k].found ? k : contract;
		found = !sh->error && ex->failure[contract].found;
		if (found) {
			struct candidate better = {0};
			if (!workload_copy(&better.w, &c->w)) {
				copy_deviations(&better.run, &ts.taken);
				memcpy(better.life, c->life, sizeof(better.life));
				candidate_free(&sh->best);
				sh->best = better;
			}
			sh->states = states_after(ex->counts.states);
			sh->unstarted = ex->counts.starts;
			note_path(sh, &ex->failure[contract]);
		}
		trace_finish(&ts);
	}
	explore_close(ex);
out:
	setup_free(&s);
	free(ex);
	return found;
}

static bool copy_best(const struct shrinker *sh, struct candidate *c)
{
	memset(c, 0, sizeof(*c));
	if (workload_copy(&c->w, &sh->best.w))
		return false;
	copy_deviations(&c->run, &sh->best.run);
	memcpy(c->life, sh->best.life, sizeof(c->life));
	return true;
}

static bool attempt(struct shrinker *sh, struct candidate *c)
{
	bool better = breaks(sh, c);
	candidate_free(c);
	return better;
}

/* Rename client `from` to `to`, also in the names of tasks and queue pairs. to 0: remove it. */
static void rename_client(struct deviations *list, unsigned from, unsigned to)
{
	char old[16], old_qp[16], server_qp[24];
	unsigned kept = 0;
	snprintf(old, sizeof(old), "c%u", from);
	snprintf(old_qp, sizeof(old_qp), "c%u/", from);
	snprintf(server_qp, sizeof(server_qp), "server/qp%u", from);
	for (unsigned i = 0; i < list->n; i++) {
		struct deviation d = list->d[i];
		bool task = !strcmp(d.who, old), nic = !strncmp(d.who, old_qp, strlen(old_qp)),
		     server = !strcmp(d.who, server_qp);
		if (!to && (task || nic || server || d.op.client == from))
			continue;
		if (task)
			snprintf(d.who, sizeof(d.who), "c%u", to);
		else if (nic) {
			char rest[ACTOR_NAME];
			memcpy(rest, d.who + strlen(old_qp), sizeof(d.who) - strlen(old_qp));
			snprintf(d.who, sizeof(d.who), "c%u/%.19s", to & 31, rest);
		} else if (server)
			snprintf(d.who, sizeof(d.who), "server/qp%u", to);
		if (d.op.client == from)
			d.op.client = (uint8_t)to;
		list->d[kept++] = d;
	}
	list->n = kept;
}

static bool drop_client(struct shrinker *sh, unsigned client)
{
	struct candidate c;
	if (!copy_best(sh, &c))
		return false;
	free(c.w.client[client - 1].op);
	for (unsigned i = client - 1; i + 1 < c.w.clients; i++)
		c.w.client[i] = c.w.client[i + 1];
	c.w.clients--;
	c.w.client[c.w.clients].op = NULL;
	c.w.client[c.w.clients].ops = 0;
	rename_client(&c.run, client, 0);
	for (unsigned n = client + 1; n <= c.w.clients + 1; n++)
		rename_client(&c.run, n, n - 1);
	return attempt(sh, &c);
}

static bool drop_op(struct shrinker *sh, unsigned client, unsigned index)
{
	struct candidate c;
	if (!copy_best(sh, &c))
		return false;
	struct workload_op gone = c.w.client[client - 1].op[index];
	unsigned kept = 0;
	workload_op_remove(&c.w, client, index);
	for (unsigned i = 0; i < c.run.n; i++) {
		struct deviation d = c.run.d[i];
		if (d.op.client == client && d.op.kind == gone.kind) {
			if (d.op.nth == gone.nth)
				continue;
			d.op.nth -= d.op.nth > gone.nth;
		}
		c.run.d[kept++] = d;
	}
	c.run.n = kept;
	return attempt(sh, &c);
}

/* Take deviations [from, from + n) away. */
static bool drop_deviations(struct shrinker *sh, unsigned from, unsigned n)
{
	struct candidate c;
	if (!copy_best(sh, &c))
		return false;
	memmove(&c.run.d[from], &c.run.d[from + n], (c.run.n - from - n) * sizeof(c.run.d[0]));
	c.run.n -= n;
	return attempt(sh, &c);
}

/* Clocks are plainer than "until quiescence", and that than a switch. */
static bool shorten_delay(struct shrinker *sh, unsigned i)
{
	struct candidate c;
	const struct deviation *d = &sh->best.run.d[i];
	unsigned k = choice_delay(d->kind, d->answer);
	bool counted = choice_traits[d->kind].counted;
	if ((counted ? d->answer : k) <= 1 || delay_kills(k) || !copy_best(sh, &c))
		return false;
	if (k >= DELAY_NS) {
		const unsigned exact = k;
		for (k = DELAY_FOREVER - 1; k && choice_delay_ns(k) > choice_delay_ns(exact); k--)
			;
		if (!k)
			return false;
	} else {
		k = k == DELAY_QUIESCENCE ? DELAY_5MS : k - 1;
	}
	c.run.d[i].answer = counted ? d->answer - 1 : choice_delay_answer(d->kind, k);
	return attempt(sh, &c);
}

static bool resize(struct shrinker *sh, uint32_t vlen)
{
	struct candidate c;
	bool smaller = false;
	if (!copy_best(sh, &c))
		return false;
	for (unsigned k = 0; k < c.w.keys; k++) {
		if (c.w.key[k].loaded > (int32_t)vlen) {
			c.w.key[k].loaded = (int32_t)vlen;
			smaller = true;
		}
	}
	for (unsigned n = 0; n < c.w.clients; n++) {
		for (unsigned i = 0; i < c.w.client[n].ops; i++) {
			if (c.w.client[n].op[i].vlen > vlen) {
				c.w.client[n].op[i].vlen = vlen;
				smaller = true;
			}
		}
	}
	if (!smaller) {
		candidate_free(&c);
		return false;
	}
	return attempt(sh, &c);
}

/* The answers of all lives, one after the other. */
#define LIFE_ANSWERS (WORLDS * LIFE_OPS)

static unsigned *life_at(struct life_plan *life, unsigned i)
{
	return &life[i / LIFE_OPS].answer[i % LIFE_OPS / LIFE_CLIENTS][i % LIFE_CLIENTS];
}

/* Rounds without an operation would end the life. */
static void close_rounds(struct life_plan *life)
{
	unsigned round = 0;
	for (unsigned r = 0; r < LIFE_ROUNDS; r++) {
		unsigned any = 0;
		for (unsigned k = 0; k < LIFE_CLIENTS; k++)
			any |= life->answer[round][k] = life->answer[r][k];
		round += any != 0;
	}
	for (; round < LIFE_ROUNDS; round++)
		memset(life->answer[round], 0, sizeof(life->answer[round]));
}

static bool drop_life_op(struct shrinker *sh, unsigned i)
{
	struct candidate c;
	if (!*life_at(sh->best.life, i) || !copy_best(sh, &c))
		return false;
	*life_at(c.life, i) = 0;
	close_rounds(&c.life[i / LIFE_OPS]);
	return attempt(sh, &c);
}

/* One client after the other is plainer than both at once, and a short value than a long one. */
static bool plainer_life_op(struct shrinker *sh, unsigned i)
{
	struct candidate c;
	unsigned *op = life_at(sh->best.life, i), *first = i % LIFE_CLIENTS ? op - 1 : NULL;
	bool is_long = life_is_keyed(*op) && life_verb(*op) == LIFE_PUT_LONG;
	if (!*op || (!is_long && (!first || *first)) || !copy_best(sh, &c))
		return false;
	unsigned *to = life_at(c.life, i);
	if (is_long) {
		*to = life_answer(LIFE_PUT, life_key(*to));
	} else {
		to[-1] = *to;
		*to = 0;
	}
	return attempt(sh, &c);
}

/* The last of a life's power failures. */
static bool drop_cut(struct shrinker *sh, unsigned machine)
{
	struct candidate c;
	if (sh->best.life[machine].cut == LIFE_WHOLE || !copy_best(sh, &c))
		return false;
	c.life[machine].cut = LIFE_WHOLE;
	return attempt(sh, &c);
}

/* A power failure less: what came after it comes after the one before it. */
static bool drop_machine(struct shrinker *sh, unsigned machine)
{
	struct candidate c;
	if (sh->best.life[machine].cut == LIFE_WHOLE || !copy_best(sh, &c))
		return false;
	memmove(&c.life[machine], &c.life[machine + 1], (WORLDS - machine - 1) * sizeof(c.life[0]));
	memset(&c.life[WORLDS - 1], 0, sizeof(c.life[0]));
	return attempt(sh, &c);
}

static bool shrink_lives(struct shrinker *sh)
{
	bool better = false;
	for (unsigned m = WORLDS; m-- > 1;)
		better |= drop_machine(sh, m);
	for (unsigned m = WORLDS; m-- > 1;)
		better |= drop_cut(sh, m);
	for (unsigned i = LIFE_ANSWERS; i-- > 0;)
		better |= drop_life_op(sh, i);
	for (unsigned i = 0; i < LIFE_ANSWERS; i++)
		better |= plainer_life_op(sh, i);
	return better;
}

/* Does a life name the key? */
static bool lives_by(const struct shrinker *sh, unsigned key)
{
	struct life_plan life[WORLDS];
	memcpy(life, sh->best.life, sizeof(life));
	for (unsigned i = 0; i < LIFE_ANSWERS; i++)
		if (life_is_txn(*life_at(life, i)) || /* which key is the next depends on it */
		    (life_is_keyed(*life_at(life, i)) && life_key(*life_at(life, i)) == key))
			return true;
	return false;
}

/* A key that no operation names. */
static bool drop_key(struct shrinker *sh, unsigned key)
{
	struct candidate c;
	const struct workload *w = &sh->best.w;
	for (unsigned n = 0; n < w->clients; n++)
		for (unsigned i = 0; i < w->client[n].ops; i++)
			for (unsigned k = 0; k < workload_op_keys(w, &w->client[n].op[i]); k++)
				if (w->client[n].op[i].keys[k] == key)
					return false;
	if ((w->keys == 1 && !workload_has_calls(w)) || lives_by(sh, key) || !copy_best(sh, &c))
		return false;
	for (unsigned i = 0; i < LIFE_ANSWERS; i++) {
		unsigned *op = life_at(c.life, i);
		if (life_is_keyed(*op) && life_key(*op) > key)
			*op -= LIFE_VERBS;
	}
	memmove(&c.w.key[key], &c.w.key[key + 1], (c.w.keys - key - 1) * sizeof(c.w.key[0]));
	c.w.keys--;
	for (unsigned n = 0; n < c.w.clients; n++)
		for (unsigned i = 0; i < c.w.client[n].ops; i++)
			for (unsigned k = 0; k < TM_CALL_KEYS; k++)
				c.w.client[n].op[i].keys[k] -= c.w.client[n].op[i].keys[k] > key;
	return attempt(sh, &c);
}

static bool one_round(struct shrinker *sh)
{
	static const uint32_t sizes[] = {8, 40, 64, 72, 128, 160, 512};
	bool better = sh->lives && shrink_lives(sh);
	for (unsigned n = sh->best.w.clients; n > 1 || (n == 1 && sh->best.w.clients > 1); n--)
		better |= drop_client(sh, n);
	for (unsigned n = sh->best.w.clients; n >= 1; n--)
		for (unsigned i = sh->best.w.client[n - 1].ops; i-- > 0;)
			better |= drop_op(sh, n, i);
	for (unsigned k = sh->best.w.keys; k-- > 0;)
		better |= drop_key(sh, k);
	for (unsigned part = sh->best.run.n; part; part /= 2)
		for (unsigned i = 0; i + part <= sh->best.run.n;) {
			bool gone = drop_deviations(sh, i, part);
			better |= gone;
			i += gone ? 0 : part;
		}
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (resize(sh, sizes[i])) {
			better = true;
			break;
		}
	}
	for (unsigned i = 0; i < sh->best.run.n; i++)
		while (i < sh->best.run.n && shorten_delay(sh, i))
			better = true;
	return better;
}

/* All operations at once, of a store that does not start: each try may cost seconds. */
static void drop_all(struct shrinker *sh)
{
	struct candidate c;
	if (!copy_best(sh, &c))
		return;
	for (; c.w.clients > 1; c.w.clients--) {
		free(c.w.client[c.w.clients - 1].op);
		c.w.client[c.w.clients - 1].op = NULL;
		c.w.client[c.w.clients - 1].ops = 0;
	}
	while (c.w.client[0].ops)
		workload_op_remove(&c.w, 1, c.w.client[0].ops - 1);
	c.w.keys = c.w.keys ? 1 : 0;
	attempt(sh, &c);
}

/* Put lines back to their newest version where the failure does not need the older one. */
static void fewer_lines(struct shrinker *sh, struct explorer *ex)
{
	struct replay_outcome *out = malloc(sizeof(*out));
	for (unsigned i = sh->path.n; out && i-- > 0;) {
		struct deviation d = sh->path.d[i];
		if (d.kind != CHOICE_LINE)
			continue;
		memmove(&sh->path.d[i], &sh->path.d[i + 1], (sh->path.n - i - 1) * sizeof(d));
		sh->path.n--;
		int error = replay(ex, &sh->path, sh->contract == TM_KEEP, NULL, out);
		if (!error && !out->unused && out->verdict[sh->contract].broken) {
			snprintf(sh->text, sizeof(sh->text), "%s", out->text[sh->contract]);
			continue;
		}
		if (error == -ENOTRECOVERABLE) {
			sh->error = error;
			note_path(sh, &ex->wrong);
			break;
		}
		memmove(&sh->path.d[i + 1], &sh->path.d[i], (sh->path.n - i) * sizeof(d));
		sh->path.d[i] = d;
		sh->path.n++;
	}
	free(out);
}

/* "c4" of two clients' workload is the second client of a life. */
static void add_life_op(const struct shrinker *sh, struct life_plan *life,
			const struct deviation *d)
{
	unsigned k = strtoul(d->who + 1, NULL, 10) > sh->base->w.clients + 1;
	if (d->a && d->a <= LIFE_ROUNDS)
		life->answer[d->a - 1][k] = d->answer;
}

/* The first candidate: the failure as it is. 0 or -ENOMEM. */
static int start(struct shrinker *sh, const struct deviations *list, struct candidate *first)
{
	unsigned crashes = 0;
	bool lived = false; /* on the machine at hand */
	memset(first, 0, sizeof(*first));
	if (workload_copy(&first->w, &sh->base->w))
		return -ENOMEM;
	for (unsigned i = 0; i < list->n; i++) {
		const struct deviation *d = &list->d[i];
		if (d->kind == CHOICE_CRASH) {
			first->life[crashes++].cut = lived ? LIFE_CUT : LIFE_CUT_ANYWHERE;
			lived = false;
		} else if (d->kind == CHOICE_LIFE) {
			add_life_op(sh, &first->life[crashes], d);
			sh->lives = lived = true;
		} else if (!crashes) {
			deviations_add(&first->run, d);
		}
	}
	sh->crash = crashes > 0;
	sh->nested = crashes > 1;
	return 0;
}

int shrink_breaks(struct setup *setup, struct deviations *list, unsigned contract, char *text,
		  size_t n, bool *broken)
{
	struct shrinker sh = {.base = setup, .contract = contract, .states = SHRINK_STATES};
	struct candidate first;
	*broken = !start(&sh, list, &first) && attempt(&sh, &first);
	if (sh.error == -ENOTRECOVERABLE)
		hand_over(&sh, &sh.wrong, setup, list, text, n);
	candidate_free(&sh.best);
	deviations_free(&sh.path);
	return sh.error;
}

int shrink(struct setup *setup, struct deviations *list, unsigned contract, char *text, size_t n,
	   void (*progress)(void *, unsigned, unsigned), void *arg)
{
	struct shrinker sh = {.base = setup, .contract = contract, .states = SHRINK_STATES};
	struct candidate first;
	struct setup smallest;

	int error = start(&sh, list, &first);
	if (error)
		return error;
	if (!attempt(&sh, &first) && !sh.error)
		return -ENOENT;
	if (sh.unstarted && !sh.error)
		drop_all(&sh);
	for (unsigned round = 0; round < 8 && !sh.unstarted && !sh.error && one_round(&sh); round++)
		if (progress)
			progress(arg, workload_ops(&sh.best.w), sh.path.n);
	if (sh.nested && !sh.lives && !sh.error) {
		/* Perhaps one power failure is enough. */
		sh.nested = false;
		if (copy_best(&sh, &first) && !attempt(&sh, &first))
			sh.nested = true;
	}
	error = sh.error ? sh.error : setup_like(&smallest, setup, &sh.best.w);
	if (!error) {
		struct explorer *ex = sh.path.n ? malloc(sizeof(*ex)) : NULL;
		if (ex && !replay_begin(ex, &smallest, (int)contract, &sh.path)) {
			fewer_lines(&sh, ex);
			explore_close(ex);
		}
		free(ex);
		error = hand_over(&sh, &smallest, setup, list, text, n);
	} else if (error == -ENOTRECOVERABLE) {
		hand_over(&sh, &sh.wrong, setup, list, text, n);
	}
	candidate_free(&sh.best);
	deviations_free(&sh.path);
	return error;
}

int broken_run_shrink(struct broken_run *run, unsigned contract, bool *whole)
{
	int error = shrink(&run->setup, &run->path, contract, run->text, sizeof(run->text), NULL,
			   NULL);
	*whole = error == -ENOENT;
	return *whole ? 0 : error;
}
