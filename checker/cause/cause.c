/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding the cause of a broken contract in the event log of its replay.
 *
 * First, which deviations matter: each is taken away in turn, and does not matter if the
 * contract breaks without it. Then there are these cases:
 *
 *  - A line that did not survive at its newest version: a write was lost. Was there
 *    a flush of its line after it, and a fence of the same task after that? And in the
 *    same run without the power failure, where would the first flush have come? What
 *    was written after the lost bytes, survived, and was read in the end, is early.
 *  - A power failure that lost no line: it came between two steps. The one after which it
 *    breaks, and the one after which it does not any more, as machines that boot beside each
 *    step of the same run find (cause_probe.c). What recovery then wrote and the reader
 *    read; and whether the value that was expected is still in the pool, unread. If the
 *    failure interrupted nothing, and what the store did after it matters, that is told.
 *  - No power failure: what the reader of the verdict read, and what others wrote to
 *    the same bytes while it was at it, before, and too late for it.
 *  - Nothing lost, and an operation of the verdict went on after a compare-and-swap or a call of
 *    its had failed: that.
 *  - An operation that does not end: what it reads again and again, and what it waits for:
 *    what a client that died would have written there, in the same run without its death.
 *  - None of these: the step of the run with which it begins to be wrong, as cause_probe.c finds.
 *
 * Of whatever goes differently it is told where, and from which step to which it may happen
 * (cause_moment.c). That gives a run that differs little and does not break: what tasks do, or
 * find, only in the one that breaks is told, too (cause_ways.c).
 *
 * Of all places that are told, the sentence begins with the likeliest ones (cause_first.c).
 *
 * Every statement is a fact of the event log or of such a variation. If none of these cases
 * applies, the sentence says that no cause could be named, and what differs.
 */
#include "checker/cause/explain.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/explore/sentence.h"
#include "checker/judge/names.h"

#define VARIATIONS 48 /* more deviations than these are all taken to matter */

/* --- which deviations matter --- */

int cause_replay_breaks(struct explanation *q, const struct deviations *list,
			const struct replay_audience *audience, bool *broken)
{
	struct replay_outcome *out = malloc(sizeof(*out));
	int error = out ? replay(q->ex, list, q->keep, audience, out) : -ENOMEM;
	*broken = !error && out->verdict[q->contract].broken;
	free(out);
	return error;
}

int cause_gather(const struct explanation *q, unsigned but, struct deviations *list)
{
	int error = 0;
	list->n = 0;
	for (unsigned i = 0; i < q->t->deviations.n && !error; i++)
		if (q->matters[i] && i != but)
			error = deviations_add(list, &q->t->deviations.d[i]);
	return error;
}

static int find_what_matters(struct explanation *q)
{
	const struct deviations *all = &q->t->deviations;
	struct deviations list = {0};
	int error = 0;
	for (unsigned i = 0; i < all->n; i++)
		q->matters[i] = true;
	/* KEEP and LIVE cost much to judge. */
	unsigned most = q->contract == TM_KEEP || q->contract == TM_LIVE ? VARIATIONS / 4
									 : VARIATIONS;
	for (unsigned i = 0; i < all->n && all->n <= most && !error; i++) {
		bool broken = false;
		error = cause_gather(q, i, &list);
		if (!error)
			error = cause_replay_breaks(q, &list, NULL, &broken);
		q->matters[i] = !broken;
	}
	deviations_free(&list);
	return error;
}

int cause_run_instead(struct explanation *q, const struct deviations *list, world_observer *probe,
		      void *arg, unsigned machine)
{
	event_log_free(&q->instead);
	struct replay_audience audience = event_log_audience(&q->instead, list);
	struct replay_outcome *out = malloc(sizeof(*out));
	audience.probe = probe;
	audience.probe_arg = arg;
	audience.probed = machine;
	int error = out ? replay(q->ex, list, false, &audience, out) : -ENOMEM;
	free(out);
	q->instead.list = NULL;
	return error;
}

/* The run up to the last power failure, and then on as if it had not come; with a look at each step
 * of the machine whose power it was. */
static int run_with_power(struct explanation *q)
{
	const struct deviations *all = &q->t->deviations;
	unsigned last = all->n, failures = 0;
	struct deviations list = {0};
	int error = 0;
	for (unsigned i = 0; i < all->n; i++)
		if (all->d[i].kind == CHOICE_CRASH) {
			last = i;
			failures++;
		}
	for (unsigned i = 0; i < last && !error; i++)
		error = deviations_add(&list, &all->d[i]);
	if (!error)
		error = cause_probe(q, &list, failures ? failures - 1 : 0, failures);
	deviations_free(&list);
	return error;
}

/* --- what the verdict is about --- */

#define VALUE_MIN 8 /* shorter values may be anywhere by chance */

/* What the operation of the history has put, or has read. */
static const struct setup_value *value_of(const struct explanation *q, const struct history *h,
					  int op)
{
	int put = op < 0 ? op : h->op[op].kind == HISTORY_GET ? h->op[op].value : op;
	for (unsigned v = 0; v < q->s->values && put >= 0; v++)
		if (q->ex->worlds.op_of_value[v] == put && q->s->value[v].vlen >= VALUE_MIN)
			return &q->s->value[v];
	return NULL;
}

/* What the load phase put at this key, or NULL: for a GET whose bytes are no value. */
static const struct setup_value *loaded(const struct setup *s, unsigned key)
{
	for (unsigned v = 0; v < s->values; v++)
		if (!s->value[v].client && s->value[v].key == key && s->value[v].vlen >= VALUE_MIN)
			return &s->value[v];
	return NULL;
}

int32_t cause_value(const struct explanation *q, int32_t value)
{
	for (unsigned v = 0; v < q->s->values && value >= 0; v++)
		if (q->ex->worlds.op_of_value[v] == value)
			return (int32_t)v;
	return value < 0 ? value : VALUE_UNKNOWN;
}

/* Its label, or that of the first operation of its transaction, which all of that goes by. */
static struct op_label label_within(const struct history *h, int op)
{
	while (op > 0 && h->op[op].joined)
		op--;
	return world_op_label(h, op);
}

static void begin(struct explanation *q, const struct replay_outcome *out)
{
	const struct history *h = q->ex->worlds.history;
	const struct verdict *v = &out->verdict[q->contract];
	if (CONTRACTS_BY_RUNNING & TM_BIT(q->contract)) {
		const struct world_result *w = &q->ex->worlds.world[q->r->machines - 1].result;
		if (q->contract == TM_LIVE) {
			q->op = world_op_label(h, w->live_op);
			q->hangs = w->end == SIM_BUDGET || w->end == SIM_IDLE || w->unended;
			q->unended = w->unended;
		}
		q->machine = q->r->machines - 1;
		cause_print(q->seen, sizeof(q->seen), "%s", out->text[q->contract]);
		return;
	}
	q->op = world_op_label(h, v->op);
	q->against = world_op_label(h, v->against);
	q->within = label_within(h, v->op);
	if (CONTRACTS_NAMING_MISSED & TM_BIT(q->contract))
		q->expected = value_of(q, h, v->against);
	q->foreign = v->op >= 0 && h->op[v->op].kind == HISTORY_GET &&
		     h->op[v->op].value == VALUE_FOREIGN;
	if (q->foreign && h->op[v->op].epoch)
		q->expected = loaded(q->s, h->op[v->op].key);
	q->wrong = VALUE_UNKNOWN - 1;
	q->right = VALUE_UNKNOWN;
	if (v->against >= 0 && h->op[v->against].kind != HISTORY_CALL)
		q->right = cause_value(q, h->op[v->against].value);
	if (v->op >= 0) {
		q->machine = h->op[v->op].epoch;
		q->key = h->op[v->op].key;
	}
	if (v->op >= 0 && h->op[v->op].kind == HISTORY_GET)
		q->wrong = cause_value(q, h->op[v->op].value);
	if (v->op >= 0 && q->contract != TM_OWN)
		sentence_op(q->s, h, v->op, q->seen, sizeof(q->seen));
	else
		cause_print(q->seen, sizeof(q->seen), "%s", out->text[q->contract]);
	if (v->against >= 0) {
		q->against_machine = h->op[v->against].epoch;
		sentence_op(q->s, h, v->against, q->seen_against, sizeof(q->seen_against));
	}
}

/* --- what it breaks without --- */

/* Does it break with every line kept? Then those that were lost do not matter, and no flush is at
 * fault. */
static int try_all_kept(struct explanation *q)
{
	const struct deviations *all = &q->t->deviations;
	struct deviations list = {0};
	bool broken = false, any = false;
	int error = 0;
	for (unsigned i = 0; i < all->n && !error; i++) {
		any |= all->d[i].kind == CHOICE_LINE;
		if (all->d[i].kind != CHOICE_LINE)
			error = deviations_add(&list, &all->d[i]);
	}
	if (any && !error)
		error = cause_replay_breaks(q, &list, NULL, &broken);
	deviations_free(&list);
	for (unsigned i = 0; i < all->n && broken; i++)
		q->matters[i] &= all->d[i].kind != CHOICE_LINE;
	if (any && !error)
		cause_say(q, EVENT_LOG_NONE,
			  broken ? "it breaks with every line kept, too: no flush is at fault"
				 : "it does not break if every line is kept");
	return error;
}

/* Does it break without the second power failure, and what comes after it? */
static int try_first_failure(struct explanation *q)
{
	const struct deviations *all = &q->t->deviations;
	struct deviations list = {0};
	unsigned failures = 0, n = 0;
	bool broken = false;
	int error = 0;
	for (; n < all->n && failures < 2; n++)
		failures += all->d[n].kind == CHOICE_CRASH;
	if (failures < 2)
		return 0;
	for (unsigned i = 0; i + 1 < n && !error; i++)
		error = deviations_add(&list, &all->d[i]);
	if (!error)
		error = cause_replay_breaks(q, &list, NULL, &broken);
	for (unsigned i = n; i < all->n; i++)
		failures += all->d[i].kind == CHOICE_CRASH;
	deviations_free(&list);
	if (!error)
		cause_say(q, EVENT_LOG_NONE,
			  broken	 ? "it breaks without the second power failure, too"
			  : failures > 2 ? "it takes more than the first power failure"
					 : "it takes the second power failure");
	return error;
}

static void explain_crash(struct explanation *q, struct loss *loss, const char *why)
{
	unsigned n = cause_find_losses(q, loss);
	if (n && cause_explain_damage(q, loss, n))
		return;
	if (n)
		cause_explain_lost(q, loss, n);
	else if (q->contract == TM_LIVE)
		cause_explain_stuck(q, why);
	else if (!cause_explain_ignored(q))
		cause_explain_cut(q);
}

/* If it does not break where the power failed: which step of the life after that is it? */
static int probe_life(struct explanation *q)
{
	if (q->window.wrong || q->contract == TM_LIVE || !cause_is_of_life(q))
		return 0;
	return cause_probe(q, &q->t->deviations, q->r->machines - 1, false);
}

static int explain(struct explanation *q, const char *why)
{
	struct loss *loss = calloc(LOSSES, sizeof(*loss));
	bool crash = false;
	int error = loss ? find_what_matters(q) : -ENOMEM;
	for (unsigned i = 0; i < q->t->deviations.n && !error; i++)
		crash |= q->t->deviations.d[i].kind == CHOICE_CRASH && q->matters[i];
	if (!error && (crash || !(CONTRACTS_BY_RUNNING & TM_BIT(q->contract))))
		error = run_with_power(q);
	if (!error && crash)
		error = cause_find_value(q);
	if (!error && crash)
		error = try_all_kept(q);
	if (!error) {
		if (crash)
			explain_crash(q, loss, why);
		else if (CONTRACTS_BY_RUNNING & TM_BIT(q->contract))
			cause_explain_stuck(q, why);
		else if (!cause_explain_ignored(q))
			cause_explain_race(q);
	}
	if (!error && crash)
		error = try_first_failure(q);
	if (!error && crash)
		error = probe_life(q);
	if (!error) {
		/* Where something failed, that is to blame, and not what was in PM. */
		const bool failed = q->c->kind == CAUSE_IGNORED;
		if (!failed)
			cause_say_window(q);
		cause_explain_window(q);
		/* Of what was lost the flush is to blame, not what was made of the rest. */
		if (!failed && (q->c->kind != CAUSE_LOST || q->foreign)) {
			cause_say_answer(q);
			cause_say_recovery(q);
		}
		cause_say_looked_at(q);
		error = cause_say_deviations(q);
	}
	/* Of what was lost the flush is to blame, not what was made of the rest. */
	if (!error && (q->c->kind != CAUSE_LOST || q->foreign))
		error = cause_say_ways(q);
	if (!error) {
		error = cause_add_switches(q);
		q->c->sentence[0] = (char)toupper((unsigned char)q->c->sentence[0]);
	}
	free(loss);
	return error;
}

static int explain_outcome(struct explanation *q, const struct replay_outcome *out)
{
	char why[300];
	q->matters = calloc(q->t->deviations.n + 1, sizeof(*q->matters));
	if (!q->matters)
		return -ENOMEM;
	cause_print(why, sizeof(why), "%s", out->text[q->contract]);
	int error = explain(q, why);
	event_log_free(&q->instead);
	deviations_free(&q->nearest);
	free(q->matters);
	return error;
}

/* Nothing but the start of the store was run: there is no history that could be compared. */
static int explain_start(struct explanation *q)
{
	cause_print(q->c->sentence, sizeof(q->c->sentence),
		    "Nothing went differently: the store does not get through the load phase.");
	return cause_add_switches(q);
}

/* The list up to the first power failure. */
static int before_failure(const struct deviations *all, struct deviations *list, bool *any)
{
	int error = 0;
	*any = false;
	for (unsigned i = 0; i < all->n && !*any && !error; i++) {
		*any = all->d[i].kind == CHOICE_CRASH;
		if (!*any)
			error = deviations_add(list, &all->d[i]);
	}
	return error;
}

/* If it breaks without any power failure, that is what is explained, and *done. */
static int explain_without_failure(struct explanation *q, bool *done)
{
	static const char lead[] = "It breaks without any power failure: ";
	struct event_log r = {0};
	struct deviations list = {0};
	struct replay_audience audience = event_log_audience(&r, &list);
	struct replay_outcome *out = malloc(sizeof(*out));
	struct trace t = *q->t;
	bool failure = false;
	int error = out ? before_failure(&q->t->deviations, &list, &failure) : -ENOMEM;
	*done = false;
	if (!error && failure)
		error = replay(q->ex, &list, false, &audience, out);
	if (!error && failure && out->verdict[q->contract].broken) {
		struct explanation run = {.ex = q->ex,
					  .t = &t,
					  .s = q->s,
					  .r = &r,
					  .where = q->where,
					  .c = q->c,
					  .contract = q->contract,
					  .keep = q->keep,
					  .expected_at = -1};
		char sentence[sizeof(q->c->sentence)];
		t.deviations = list;
		begin(&run, out);
		cause_say(&run, EVENT_LOG_NONE, "it breaks without any power failure");
		error = explain_outcome(&run, out);
		cause_print(sentence, sizeof(sentence), "%s", q->c->sentence);
		cause_print(q->c->sentence, sizeof(q->c->sentence), "%s%c%.*s", lead,
			    tolower((unsigned char)sentence[0]),
			    (int)(sizeof(sentence) - sizeof(lead) - 1), sentence + 1);
		cause_say_first(&run);
		/* Their numbers are those of another log, which is equal up to the failure. */
		unsigned events = q->c->events;
		q->c->events = 0;
		for (unsigned i = 0; i < events; i++)
			if ((size_t)q->c->event[i] < q->r->machine_from[1])
				q->c->event[q->c->events++] = q->c->event[i];
		*done = true;
	}
	event_log_free(&r);
	deviations_free(&list);
	free(out);
	return error;
}

int cause_find(struct explorer *ex, const struct trace *t, const struct event_log *r,
	       const struct replay_outcome *out, struct where *where, struct cause *c)
{
	struct explanation q = {.ex = ex, .t = t, .s = &t->setup, .r = r, .where = where, .c = c};
	bool done;
	memset(c, 0, sizeof(*c));
	q.contract = t->contract;
	for (int k = 0; k < TM_CONTRACTS && q.contract < 0; k++)
		if (out->verdict[k].broken)
			q.contract = k;
	if (q.contract < 0 || !out->verdict[q.contract].broken)
		return 0;
	q.keep = q.contract == TM_KEEP;
	q.expected_at = -1;
	if (out->unstarted)
		return explain_start(&q);
	begin(&q, out); /* the history is still of this replay */
	int error = explain_without_failure(&q, &done);
	if (!error && !done) {
		error = explain_outcome(&q, out);
		cause_say_first(&q);
	}
	return error;
}
