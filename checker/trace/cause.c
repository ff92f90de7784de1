/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding the cause of a broken contract in what was told of its replay.
 *
 * First, which deviations matter: each is taken away in turn, and stays away when the
 * contract breaks without it. Of what is left:
 *
 *  - A line that did not survive at its newest version: a writing was lost. Was there
 *    a flush of its line after it, and a fence of the same task after that? And in the
 *    same run without the power failure, where would the first flush have come? What
 *    was written after the lost bytes, survived, and was read in the end, is early.
 *  - A power failure that lost no line: it came between two steps. The last writing
 *    before it that survived; and the next one that the run without the power failure
 *    makes, among the lines that were read in the end. What recovery then wrote and the
 *    reader read; and whether the value that was expected is still in the pool, unread.
 *  - No power failure: what the reader of the verdict read, and what others wrote to
 *    the same bytes while it was at it, before, and too late for it.
 *  - An operation that does not end: what it reads again and again, and whom it waits for:
 *    what a client that died would have written there, in the same run without its death.
 *
 * Whatever is said is a fact of the record or of such a variation; where none of these
 * can be seen, the sentence says only what differs.
 */
#include "checker/trace/cause.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/explore/sentence.h"

#define VARIATIONS 48 /* more deviations than these are all taken to matter */

/* What is being explained. */
struct search {
	struct explorer *ex;
	const struct trace *t;
	const struct setup *s;
	const struct event_log *r;
	struct where *where;
	struct cause *c;
	int contract;
	bool broken;
	bool *matters; /* by deviation */
	bool keep;
	/* of the verdict: the observation, and what it contradicts; client 0 and kind 0: none */
	struct op_label op, against;
	unsigned machine, against_machine;
	char seen[160], seen_against[160];
	struct event_log instead; /* the same run, the last power failure or the death left out */
	/* The value that was expected, NULL: none; and where the pool held it when the power had
	 * failed. */
	const struct setup_value *expected;
	int64_t kept_at; /* -1: not known */
};

/* --- words --- */

/* What does not fit is cut off. Returns what has been used of n bytes. */
static size_t __attribute__((format(printf, 3, 4))) print(char *buf, size_t n, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = vsnprintf(buf, n, fmt, ap);
	va_end(ap);
	return len < 0 ? 0 : (size_t)len < n ? (size_t)len : n - 1;
}

static void say(struct search *q, int event, const char *fmt, ...)
{
	struct cause *c = q->c;
	va_list ap;
	if (event >= 0 && c->events < CAUSE_FACTS)
		c->event[c->events++] = event;
	if (!fmt || c->facts == CAUSE_FACTS)
		return;
	va_start(ap, fmt);
	vsnprintf(c->fact[c->facts], CAUSE_TEXT, fmt, ap);
	va_end(ap);
	for (unsigned i = 0; i < c->facts; i++)
		if (!strcmp(c->fact[i], c->fact[c->facts]))
			return;
	c->facts++;
}

/* "log+0x100..0x13f" */
static void place(const struct search *q, uint64_t off, uint64_t len, char *buf, size_t n)
{
	pmem_name(q->s->region, q->s->regions, off, buf, n);
	size_t used = strlen(buf);
	const char *plus = strrchr(buf, '+');
	if (len > 1 && plus && used < n)
		print(buf + used, n - used, "..0x%llx",
		      (unsigned long long)(strtoull(plus + 1, NULL, 16) + len - 1));
}

/* "client 1's PUT k1", "a reader's GET k1", "recovery"; `machine` on which it works. */
static void op_words(const struct search *q, struct op_label op, unsigned machine, char *buf,
		     size_t n)
{
	static const char *const words[OP_KINDS] = {"",	      "PUT",	    "GET",
						    "DELETE", "connecting", "request to clean"};
	const struct workload *w = &q->s->w;
	const char *key = "";
	unsigned nth = 0;
	if (!op.kind || !op.client) {
		print(buf, n, machine ? "recovery" : "the server itself");
		return;
	}
	if (op.client > w->clients) {
		if (op.kind == OP_GET && op.nth >= 1 && op.nth <= w->keys)
			key = w->key[op.nth - 1].name;
		print(buf, n, "the reader's %s%s%s", words[op.kind], *key ? " " : "", key);
		return;
	}
	for (unsigned i = 0; i < w->client[op.client - 1].ops; i++) {
		const struct workload_op *o = &w->client[op.client - 1].op[i];
		nth += o->kind == op.kind;
		if (o->kind == op.kind && o->nth == op.nth)
			key = w->key[o->key].name;
	}
	static const char *const tails[] = {"th", "st", "nd", "rd"};
	if (nth > 1)
		print(buf, n, "client %u's %u%s %s %s", op.client, op.nth,
		      tails[op.nth % 10 < 4 && op.nth / 10 % 10 != 1 ? op.nth % 10 : 0],
		      words[op.kind], key);
	else
		print(buf, n, "client %u's %s%s%s", op.client, words[op.kind], *key ? " " : "",
		      key);
}

static void at_source(const struct search *q, uintptr_t pc, char *buf, size_t n)
{
	char line[160];
	where_print(q->where, pc, line, sizeof(line));
	print(buf, n, line[0] ? " (%s)" : "%s", line);
}

/* Who does it for whom: "the RDMA WRITE of client 1's PUT k1", "server/verifier (server.c:55
 * set_flag)". */
static void doer(const struct search *q, const struct event_log *r, const struct logged_event *e,
		 char *buf, size_t n)
{
	char op[80], line[170];
	op_words(q, e->op, e->machine, op, sizeof(op));
	at_source(q, e->pc, line, sizeof(line));
	if (e->kind == TRACED_LAND)
		print(buf, n, "the RDMA write of %s", op);
	else if (e->kind == TRACED_FETCH)
		print(buf, n, "the RDMA READ of %s", op);
	else
		print(buf, n, "%s%s%s%s", event_log_actor(r, e), e->op.kind ? " for " : "",
		      e->op.kind ? op : "", line);
}

/* "what client 1's PUT k1 wrote by RDMA" */
static void wrote(const struct search *q, const struct event_log *r, const struct logged_event *e,
		  char *buf, size_t n)
{
	char op[80], line[170];
	op_words(q, e->op, e->machine, op, sizeof(op));
	at_source(q, e->pc, line, sizeof(line));
	if (e->kind == TRACED_LAND)
		print(buf, n, "what %s wrote by RDMA", op);
	else
		print(buf, n, "what %s wrote%s%s%s", event_log_actor(r, e),
		      e->op.kind ? " for " : "", e->op.kind ? op : "", line);
}

static double us(uint64_t ns)
{
	return (double)ns / 1000.0;
}

static const struct logged_event *event_of(const struct event_log *r, int i)
{
	return i < 0 ? NULL : &r->event[i];
}

/* --- looking things up --- */

/* The label of an operation of the history. */
static struct op_label label_of(const struct history *h, int op)
{
	static const uint8_t kinds[] = {
		[HISTORY_PUT] = OP_PUT, [HISTORY_GET] = OP_GET, [HISTORY_DEL] = OP_DEL};
	struct op_label l = {0};
	if (op < 0 || !h->op[op].client)
		return l;
	l.client = h->op[op].client;
	l.kind = kinds[h->op[op].kind];
	for (int i = 0; i <= op; i++)
		l.nth += h->op[i].client == l.client && h->op[i].kind == h->op[op].kind &&
			 h->op[i].epoch == h->op[op].epoch;
	return l;
}

static bool of_op(const struct logged_event *e, struct op_label op, unsigned machine)
{
	return e->machine == machine && op.kind && op_label_equal(e->op, op);
}

/* First event from `from` on of one of the kinds in `kinds` (bits) on these bytes; len 0: on
 * any. */
static int next_event(const struct event_log *r, size_t from, unsigned machine, unsigned kinds,
		      uint64_t off, uint64_t len)
{
	for (size_t i = from; i < r->machine_from[machine + 1]; i++)
		if (kinds >> r->event[i].kind & 1 &&
		    (!len || event_log_overlaps(&r->event[i], off, len)))
			return (int)i;
	return RECORD_NONE;
}

#define BIT(kind) (1u << (kind))
#define WRITES	  (BIT(TRACED_STORE) | BIT(TRACED_LAND))
#define READS	  (BIT(TRACED_LOAD) | BIT(TRACED_FETCH))

static const struct logged_line *line_in_flight(const struct event_log *r, unsigned machine,
						uint32_t line)
{
	for (unsigned i = 0; i < r->lines; i++)
		if (r->line[i].machine == machine && r->line[i].line == line)
			return &r->line[i];
	return NULL;
}

/* Did these bytes, as this write left them, survive the failure of its machine? */
static bool write_survived(const struct event_log *r, int event)
{
	const struct logged_event *e = &r->event[event];
	const struct logged_line *l = line_in_flight(r, e->machine, (uint32_t)(e->off / LINE));
	for (unsigned v = 1; l && v <= l->versions; v++)
		if (r->version[l->first_version + v - 1].event == event)
			return v <= pmem_answer_split(l->versions, l->answer).version &&
			       !pmem_answer_split(l->versions, l->answer).words;
	return true;
}

/* Is the line of these bytes read at machine `m` or later, or by the observer of the verdict? */
static bool looked_at(const struct search *q, const struct logged_event *e)
{
	uint64_t line = e->off / LINE * LINE;
	for (size_t i = 0; i < q->r->events; i++) {
		const struct logged_event *x = &q->r->event[i];
		if (!event_log_reads(x) && x->kind != TRACED_SURVIVED)
			continue;
		if ((x->machine > e->machine || of_op(x, q->against, q->against_machine)) &&
		    event_log_overlaps(x, line, LINE))
			return true;
	}
	return false;
}

/* Does the operation of the verdict read these bytes? */
static bool read_in_the_end(const struct search *q, const struct logged_event *e)
{
	for (size_t i = 0; i < q->r->events; i++)
		if (event_log_reads(&q->r->event[i]) && of_op(&q->r->event[i], q->op, q->machine) &&
		    event_log_overlaps(&q->r->event[i], e->off, e->len))
			return true;
	return false;
}

/* --- which deviations matter --- */

static int still_breaks(struct search *q, const struct deviations *list,
			const struct replay_audience *audience, bool *broken)
{
	struct replay_outcome *out = malloc(sizeof(*out));
	int error = out ? replay(q->ex, list, q->keep, audience, out) : -ENOMEM;
	*broken = !error && out->verdict[q->contract].broken;
	free(out);
	return error;
}

static int gather(const struct search *q, unsigned but, struct deviations *list)
{
	int error = 0;
	list->n = 0;
	for (unsigned i = 0; i < q->t->deviations.n && !error; i++)
		if (q->matters[i] && i != but)
			error = deviations_add(list, &q->t->deviations.d[i]);
	return error;
}

static int find_what_matters(struct search *q)
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
		error = gather(q, i, &list);
		if (!error)
			error = still_breaks(q, &list, NULL, &broken);
		q->matters[i] = !broken;
	}
	deviations_free(&list);
	return error;
}

static int run_instead(struct search *q, const struct deviations *list)
{
	struct replay_audience audience = event_log_audience(&q->instead, list);
	struct replay_outcome *out = malloc(sizeof(*out));
	int error = out ? replay(q->ex, list, false, &audience, out) : -ENOMEM;
	free(out);
	q->instead.list = NULL;
	return error;
}

/* The run up to the last power failure, and then on as if it had not come. */
static int run_with_power(struct search *q)
{
	const struct deviations *all = &q->t->deviations;
	unsigned last = all->n;
	struct deviations list = {0};
	int error = 0;
	for (unsigned i = 0; i < all->n; i++)
		if (all->d[i].kind == CHOICE_CRASH)
			last = i;
	for (unsigned i = 0; i < last && !error; i++)
		error = deviations_add(&list, &all->d[i]);
	if (!error)
		error = run_instead(q, &list);
	deviations_free(&list);
	return error;
}

/* --- what was kept --- */

#define VALUE_MIN 8 /* shorter values may be anywhere by chance */

/* What the operation of the history has put, or has read. */
static const struct setup_value *value_of(const struct search *q, const struct history *h, int op)
{
	int put = op < 0 ? op : h->op[op].kind == HISTORY_GET ? h->op[op].value : op;
	for (unsigned v = 0; v < q->s->values && put >= 0; v++)
		if (q->ex->worlds.op_of_value[v] == put && q->s->value[v].vlen >= VALUE_MIN)
			return &q->s->value[v];
	return NULL;
}

/* Does anybody read these bytes after the last failure, up to the last read of the verdict's
 * operation? */
static bool read_again(const struct search *q, uint64_t off, uint64_t len)
{
	const struct event_log *r = q->r;
	bool again = false, any = false;
	for (size_t i = r->events; i-- > r->machine_from[r->machines - 1] && !again;) {
		if (!event_log_reads(&r->event[i]))
			continue;
		any |= of_op(&r->event[i], q->op, q->machine);
		again = any && event_log_overlaps(&r->event[i], off, len);
	}
	return again;
}

/* Was it in flight when the power failed? Then a line that nobody reads has no content yet. */
static bool in_flight(const struct event_log *r, uint64_t off, uint64_t len)
{
	for (unsigned i = 0; i < r->lines; i++)
		if (r->line[i].line >= off / LINE && r->line[i].line <= (off + len - 1) / LINE)
			return true;
	return false;
}

/* The pool as the last failure left it, but for the lines in flight. */
static void look_for_value(void *arg, struct explorer *ex, unsigned machine)
{
	struct search *q = arg;
	const struct setup_value *v = q->expected;
	if (!machine || machine + 1 != q->r->machines)
		return;
	const uint8_t *base = pmem_base(ex->worlds.world[machine - 1].pm), *at = base,
		      *end = base + q->s->pm_len;
	for (; (at = memmem(at, (size_t)(end - at), v->bytes, v->vlen)); at++) {
		uint64_t off = (uint64_t)(at - base);
		if (in_flight(q->r, off, v->vlen) || read_again(q, off, v->vlen))
			continue;
		q->kept_at = (int64_t)off;
		return;
	}
}

/* The same replay, with a look at the pool. */
static int find_kept(struct search *q)
{
	const struct replay_audience audience = {.machine_starts = look_for_value, .arg = q};
	bool broken;
	return q->expected ? still_breaks(q, &q->t->deviations, &audience, &broken) : 0;
}

/* What recovery wrote last of what the reader of the verdict then read. */
static int find_repair(const struct search *q)
{
	const struct event_log *r = q->r;
	for (size_t i = r->events; i-- > r->machine_from[r->machines - 1];)
		if (event_log_writes(&r->event[i]) && !r->event[i].op.kind &&
		    read_in_the_end(q, &r->event[i]))
			return (int)i;
	return RECORD_NONE;
}

/* "; recovery (...) then wrote x; the value that was expected is still at y, but nobody reads it
 * there" */
static void say_kept(struct search *q, char *buf, size_t n)
{
	char where[80], kept[80], line[170];
	int repair = find_repair(q);
	size_t used = 0;
	buf[0] = '\0';
	if (repair >= 0) {
		const struct logged_event *e = &q->r->event[repair];
		place(q, e->off, e->len, where, sizeof(where));
		at_source(q, e->pc, line, sizeof(line));
		say(q, repair, "recovery%s wrote %s at %.3f us, and that is read in the end", line,
		    where, us(e->at));
		used = print(buf, n, "; recovery%s then wrote %s", line, where);
	}
	if (q->kept_at < 0)
		return;
	place(q, (uint64_t)q->kept_at, q->expected->vlen, kept, sizeof(kept));
	say(q, RECORD_NONE,
	    "still there: the value that was expected, at %s; after the failure nobody reads it",
	    kept);
	print(buf + used, n - used,
	      "; the value that was expected is still at %s, but nobody reads it there", kept);
}

/* What had to go differently, apart from what the power failure did. */
static void say_deviations(struct search *q)
{
	const struct deviation_names names = {q->s->region, q->s->regions};
	char text[DEVIATION_TEXT];
	for (unsigned i = 0; i < q->t->deviations.n; i++) {
		const struct deviation *d = &q->t->deviations.d[i];
		if (d->kind == CHOICE_LINE || d->kind == CHOICE_CRASH)
			continue;
		deviation_print(d, &names, text, sizeof(text));
		if (q->matters[i])
			say(q, RECORD_NONE, "it takes this to happen: %s", text);
		else
			say(q, RECORD_NONE, "it breaks without this, too: %s", text);
	}
}

/* --- lost --- */

struct loss {
	uint64_t off, len;
	int event; /* its write; the last of several */
	unsigned machine;
	char why[CAUSE_TEXT];
};

/* What is known of the flush and the fence that the bytes did not get. */
static void why_lost(struct search *q, struct loss *loss)
{
	const struct event_log *r = q->r;
	const struct logged_event *w = &r->event[loss->event], *flush = NULL;
	size_t end = r->machine_from[loss->machine + 1];
	char by[220], text[240];
	bool first = true;
	for (size_t i = (size_t)loss->event; i < end; i++)
		if (r->event[i].kind == TRACED_FLUSH &&
		    event_log_overlaps(&r->event[i], w->off / LINE * LINE, LINE))
			flush = &r->event[i];
	if (flush) {
		doer(q, r, flush, by, sizeof(by));
		int fence = RECORD_NONE;
		for (size_t i = end; i < q->instead.machine_from[loss->machine + 1] && fence < 0;
		     i++)
			if (q->instead.event[i].kind == TRACED_FENCE &&
			    !strcmp(event_log_actor(&q->instead, &q->instead.event[i]),
				    event_log_actor(r, flush)))
				fence = (int)i;
		text[0] = '\0';
		if (fence >= 0)
			at_source(q, q->instead.event[fence].pc, text, sizeof(text));
		print(loss->why, CAUSE_TEXT,
		      "it was flushed but not fenced: flushed by %s at %.3f us, %s%s", by,
		      us(flush->at),
		      fence < 0 ? "and no fence of that task ever follows"
				: "and the next fence of that task had not come yet",
		      text);
		say(q, (int)(flush - r->event), NULL);
		return;
	}
	for (size_t i = r->machine_from[loss->machine]; i < (size_t)loss->event; i++)
		first &= r->event[i].kind != TRACED_FLUSH ||
			 !event_log_overlaps(&r->event[i], w->off / LINE * LINE, LINE);
	int later = next_event(&q->instead, end, loss->machine, BIT(TRACED_FLUSH),
			       w->off / LINE * LINE, LINE);
	const struct logged_event *e = event_of(&q->instead, later);
	if (e)
		doer(q, &q->instead, e, by, sizeof(by));
	const char *never = first ? "no flush covers it"
				  : "it was written after its line was last flushed";
	if (e)
		print(loss->why, CAUSE_TEXT,
		      "%s before the power fails: the first one would have come %.1f us later, by "
		      "%s",
		      never, us(e->at - r->event[end - 1].at), by);
	else
		print(loss->why, CAUSE_TEXT, "%s, and none would have come had the power held",
		      never);
}

/* Adjacent bytes of one operation's writes, lost for one reason, are one loss. */
static bool same_loss(const struct event_log *r, const struct loss *a, const struct loss *b)
{
	const struct logged_event *x = &r->event[a->event], *y = &r->event[b->event];
	return a->machine == b->machine && x->kind == y->kind && op_label_equal(x->op, y->op) &&
	       x->actor == y->actor && a->off <= b->off + b->len && b->off <= a->off + a->len;
}

#define LOSSES 32

static unsigned find_losses(struct search *q, struct loss *loss)
{
	const struct event_log *r = q->r;
	unsigned n = 0;
	for (unsigned d = 0; d < q->t->deviations.n; d++) {
		const struct deviation *dev = &q->t->deviations.d[d];
		const struct logged_line *l = dev->kind == CHOICE_LINE && q->matters[d]
						      ? line_in_flight(r, dev->b - 1, dev->a)
						      : NULL;
		if (!l)
			continue;
		struct pmem_answer a = pmem_answer_split(l->versions, l->answer);
		for (unsigned v = a.words ? a.over + 1 : a.version + 1; v <= l->versions; v++) {
			int event = r->version[l->first_version + v - 1].event;
			if (event < 0)
				continue;
			const struct logged_event *e = &r->event[event];
			struct loss x = {.off = e->off,
					 .len = e->len,
					 .event = event,
					 .machine = l->machine};
			unsigned i = 0;
			while (i < n && !same_loss(r, &loss[i], &x))
				i++;
			if (i == LOSSES)
				continue;
			if (i == n) {
				loss[n++] = x;
				continue;
			}
			uint64_t off = x.off < loss[i].off ? x.off : loss[i].off;
			uint64_t xe = x.off + x.len, le = loss[i].off + loss[i].len;
			loss[i].len = (xe > le ? xe : le) - off;
			loss[i].off = off;
			if (event > loss[i].event)
				loss[i].event = event;
		}
	}
	for (unsigned i = 0; i < n; i++)
		why_lost(q, &loss[i]);
	return n;
}

/* Who looked at the place first after the failure? */
static void say_first_look(struct search *q, const struct loss *loss)
{
	const struct logged_line *l = line_in_flight(q->r, loss->machine,
						     (uint32_t)(loss->off / LINE));
	char by[220], where[80], left[64];
	if (!l || l->touched < 0)
		return;
	const struct logged_event *e = &q->r->event[l->touched];
	op_words(q, e->op, e->machine, by, sizeof(by));
	place(q, e->off, e->len, where, sizeof(where));
	pmem_answer_print(l->versions, l->answer, left, sizeof(left));
	say(q, l->touched, "after the failure %s is the first to look at %s, and finds %s", by,
	    where, left);
}

/* Had the task that made this store read the lost bytes before, so that it may have stored because
 * of
 * them? */
static bool had_read(const struct event_log *r, const struct logged_event *lost, size_t store)
{
	for (size_t i = (size_t)(lost - r->event); i < store; i++)
		if (r->event[i].kind == TRACED_LOAD && r->event[i].actor == r->event[store].actor &&
		    event_log_overlaps(&r->event[i], lost->off, lost->len))
			return true;
	return false;
}

/*
 * What survived, or was seen, ahead of the lost bytes: a write behind them that is looked at in the
 * end. Best a store of a task that had read them; else one that the observer of the verdict read;
 * else one of the same operation; else the last one.
 */
static int find_early(struct search *q, const struct loss *loss)
{
	const struct event_log *r = q->r;
	const struct logged_event *lost = &r->event[loss->event];
	int found = RECORD_NONE, best = 0;
	for (size_t i = (size_t)loss->event + 1; i < r->machine_from[loss->machine + 1]; i++) {
		const struct logged_event *e = &r->event[i];
		if (!event_log_writes(e) || event_log_overlaps(e, lost->off / LINE * LINE, LINE) ||
		    !looked_at(q, e))
			continue;
		bool seen = false;
		for (size_t k = i; k < r->machine_from[loss->machine + 1]; k++)
			seen |= event_log_reads(&r->event[k]) &&
				of_op(&r->event[k], q->against, q->against_machine) &&
				event_log_overlaps(&r->event[k], e->off, e->len);
		if (!seen && !write_survived(r, (int)i))
			continue;
		int good = e->kind == TRACED_STORE && had_read(r, lost, i) ? 4
			   : seen					   ? 3
			   : op_label_equal(e->op, lost->op)		   ? 2
									   : 1;
		if (good > best || good == 1) {
			found = good >= best ? (int)i : found;
			best = good > best ? good : best;
		}
	}
	return found;
}

/* A write of the same operation that came before the lost one and survived; best one that is read
 * in the
 * end. */
static int find_companion(struct search *q, const struct loss *loss)
{
	const struct event_log *r = q->r;
	int any = RECORD_NONE;
	for (size_t i = (size_t)loss->event; i-- > r->machine_from[loss->machine];) {
		const struct logged_event *e = &r->event[i];
		if (!event_log_writes(e) || !of_op(e, r->event[loss->event].op, loss->machine) ||
		    event_log_overlaps(e, loss->off / LINE * LINE, loss->len + LINE) ||
		    !looked_at(q, e) || !write_survived(r, (int)i))
			continue;
		if (read_in_the_end(q, e))
			return (int)i;
		any = any < 0 ? (int)i : any;
	}
	return any;
}

/* "what A wrote at x and y, and what B wrote at z" */
static void list_losses(struct search *q, const struct loss *loss, unsigned n, char *buf,
			size_t size)
{
	char where[80], by[260], before[260] = "";
	size_t used = 0;
	for (unsigned i = 0; i < n; i++) {
		if (i == 4 && n > 5) {
			print(buf + used, size - used, " and %u more", n - i);
			return;
		}
		place(q, loss[i].off, loss[i].len, where, sizeof(where));
		wrote(q, q->r, &q->r->event[loss[i].event], by, sizeof(by));
		if (strcmp(by, before) != 0)
			used += print(buf + used, size - used, "%s%s at %s", i ? ", and " : "", by,
				      where);
		else
			used += print(buf + used, size - used, " and %s", where);
		strcpy(before, by);
	}
}

static const char *where_it_was(const struct search *q, const struct logged_event *e)
{
	return e->kind == TRACED_LAND && !q->s->hw.ddio ? "still on its way from the NIC to PM"
							: "still in the cache";
}

static void explain_lost(struct search *q, struct loss *loss, unsigned n)
{
	struct cause *c = q->c;
	char where[80], all[420], by[220], early_by[220] = "", early_at[80] = "";
	int early = RECORD_NONE, companion = RECORD_NONE;
	c->kind = CAUSE_LOST;
	for (unsigned i = 0; i < n; i++) {
		const struct logged_event *e = &q->r->event[loss[i].event];
		place(q, loss[i].off, loss[i].len, where, sizeof(where));
		doer(q, q->r, e, by, sizeof(by));
		say(q, loss[i].event, "lost: %s, written by %s at %.3f us; %s", where, by,
		    us(e->at), loss[i].why);
		say_first_look(q, &loss[i]);
		if (early < 0)
			early = find_early(q, &loss[i]);
		if (companion < 0)
			companion = find_companion(q, &loss[i]);
	}
	const struct logged_event *e = event_of(q->r, early >= 0 ? early : companion);
	if (e) {
		place(q, e->off, e->len, early_at, sizeof(early_at));
		doer(q, q->r, e, early_by, sizeof(early_by));
		say(q, (int)(e - q->r->event),
		    early >= 0 ? "early: %s, written after that by %s at %.3f us, %s"
			       : "kept: %s, written before that by %s at %.3f us, %s",
		    early_at, early_by, us(e->at),
		    write_survived(q->r, (int)(e - q->r->event))
			    ? "survived"
			    : "was seen before it was lost, too");
	}
	list_losses(q, loss, n, all, sizeof(all));
	const struct logged_event *first = &q->r->event[loss[0].event];
	char ahead[340] = "";
	if (early >= 0)
		print(ahead, sizeof(ahead), "; %s, written later by %s, %s", early_at, early_by,
		      write_survived(q->r, early) ? "survived" : "was already visible");
	const char *was = n > 1 ? "were" : "was", *it = n > 1 ? "them" : "it";
	bool before = q->seen_against[0] && q->contract != TM_KEEP &&
		      q->against_machine <= loss[0].machine;
	if (before)
		print(c->sentence, sizeof(c->sentence),
		      "%s while %s %s %s: %s%s; so the power failure took %s back, and %s.",
		      q->seen_against, all, was, where_it_was(q, first), loss[0].why, ahead, it,
		      q->seen);
	else
		print(c->sentence, sizeof(c->sentence),
		      "when the power failed, %s %s %s: %s%s; so the failure took %s back: "
		      "%s%s%s%s.",
		      all, was, where_it_was(q, first), loss[0].why, ahead, it, q->seen_against,
		      q->contract == TM_KEEP && q->seen_against[0] ? ", and that was durable" : "",
		      q->seen_against[0] ? ", but " : "", q->seen);
}

/* --- cut --- */

static void explain_cut(struct search *q)
{
	const struct event_log *r = q->r;
	const struct deviation *crash = NULL;
	unsigned machine = 0;
	char text[DEVIATION_TEXT], done[80] = "", todo[80] = "", by[220] = "", next_by[220] = "";
	const struct deviation_names names = {q->s->region, q->s->regions};
	for (unsigned i = 0; i < q->t->deviations.n; i++) {
		if (q->t->deviations.d[i].kind != CHOICE_CRASH)
			continue;
		machine += crash != NULL;
		crash = &q->t->deviations.d[i];
	}
	q->c->kind = CAUSE_CUT;
	deviation_print(crash, &names, text, sizeof(text));
	/* Lines that decide the end: read after the failure. */
	size_t end = r->machine_from[machine + 1];
	int last = RECORD_NONE, next = RECORD_NONE;
	for (size_t i = end; i-- > r->machine_from[machine] && last < 0;)
		if (event_log_writes(&r->event[i]) && looked_at(q, &r->event[i]) &&
		    write_survived(r, (int)i))
			last = (int)i;
	/* What would have come: by the task that the failure cut if it is one, by anybody else. */
	for (int pass = 0; pass < 2 && next < 0; pass++)
		for (size_t i = end; i < q->instead.machine_from[machine + 1] && next < 0; i++) {
			struct logged_event e = q->instead.event[i];
			bool own = crash->who[0] &&
				   !strcmp(event_log_actor(&q->instead, &e), crash->who);
			e.machine = (uint8_t)machine;
			if (event_log_writes(&e) && (own || pass) && looked_at(q, &e))
				next = (int)i;
		}
	const struct logged_event *a = event_of(r, last), *b = event_of(&q->instead, next);
	say(q, (int)end - 1, "the power fails: %s", text);
	if (a) {
		place(q, a->off, a->len, done, sizeof(done));
		doer(q, r, a, by, sizeof(by));
		say(q, last, "before it: %s was written by %s at %.3f us, and survived", done, by,
		    us(a->at));
	}
	if (b) {
		place(q, b->off, b->len, todo, sizeof(todo));
		doer(q, &q->instead, b, next_by, sizeof(next_by));
		say(q, RECORD_NONE, "not any more: %s would have been written %.1f us later by %s",
		    todo, us(b->at - r->event[end - 1].at), next_by);
	}
	size_t room = sizeof(q->c->sentence), used = 0;
	char *sentence = q->c->sentence;
	used = print(sentence, room, "%s%sthe power failed between two steps: ", q->seen_against,
		     q->seen_against[0] ? ", but " : "");
	if (a)
		used += print(sentence + used, room - used, "%s, written by %s, survived", done,
			      by);
	else
		used += print(sentence + used, room - used,
			      "nothing that is read afterwards had been written");
	if (b)
		used += print(sentence + used, room - used,
			      ", and %s, which %s writes next, was not written yet", todo, next_by);
	char kept[300];
	say_kept(q, kept, sizeof(kept));
	print(sentence + used, room - used, "%s; so %s.", kept, q->seen);
}

/* --- races --- */

/* First and last event of an operation; false: there is none. */
static bool span(const struct event_log *r, struct op_label op, unsigned machine, size_t *from,
		 size_t *to)
{
	bool any = false;
	for (size_t i = 0; i < r->events; i++) {
		if (!of_op(&r->event[i], op, machine) || r->event[i].kind == TRACED_LAND)
			continue;
		if (!any)
			*from = i;
		*to = i;
		any = true;
	}
	return any;
}

static bool returned(const struct event_log *r, struct op_label op, unsigned machine, size_t before)
{
	for (size_t i = r->machine_from[machine]; i < before; i++)
		if (r->event[i].kind == TRACED_RETURN && of_op(&r->event[i], op, machine))
			return true;
	return false;
}

/* Who wrote these bytes last, before event `to`; RECORD_NONE: nobody did since the machine
 * booted. */
static int last_write(const struct event_log *r, size_t to, const struct logged_event *read)
{
	for (size_t i = to; i-- > r->machine_from[read->machine];)
		if (event_log_writes(&r->event[i]) &&
		    event_log_overlaps(&r->event[i], read->off, read->len))
			return (int)i;
	return RECORD_NONE;
}

/* The reader met a message that had landed in part: lines of it before and behind a read. */
static bool explain_half(struct search *q)
{
	const struct event_log *r = q->r;
	char first[80], late[80], by[120], reader[120], read_at[80];
	for (size_t i = 0; i < r->events; i++) {
		const struct logged_event *read = &r->event[i];
		if (!event_log_reads(read) || !of_op(read, q->op, q->machine))
			continue;
		for (size_t b = i + 1; b < r->machine_from[q->machine + 1]; b++) {
			const struct logged_event *second = &r->event[b];
			if (second->kind != TRACED_LAND || op_label_equal(second->op, q->op) ||
			    !event_log_overlaps(second, read->off, read->len))
				continue;
			for (size_t a = i; a-- > r->machine_from[q->machine];) {
				const struct logged_event *e = &r->event[a];
				if (e->kind != TRACED_LAND || e->actor != second->actor ||
				    !op_label_equal(e->op, second->op) ||
				    e->occurrence != second->occurrence ||
				    e->off + e->len != second->off)
					continue;
				place(q, e->off, e->len, first, sizeof(first));
				place(q, second->off, second->len, late, sizeof(late));
				place(q, read->off, read->len, read_at, sizeof(read_at));
				op_words(q, second->op, q->machine, by, sizeof(by));
				op_words(q, q->op, q->machine, reader, sizeof(reader));
				say(q, (int)i, "%s reads %s at %.3f us", reader, read_at,
				    us(read->at));
				say(q, (int)a,
				    "the RDMA write of %s is half landed then: %s at %.3f us,", by,
				    first, us(e->at));
				say(q, (int)b, "but %s only at %.3f us", late, us(second->at));
				print(q->c->sentence, sizeof(q->c->sentence),
				      "%s met the RDMA write of %s half landed: %s was there at "
				      "%.3f us, %s "
				      "came "
				      "only at %.3f us, and the read of %s at %.3f us lies "
				      "between; so %s.",
				      reader, by, first, us(e->at), late, us(second->at), read_at,
				      us(read->at), q->seen);
				return true;
			}
		}
	}
	return false;
}

/* The reader followed what an operation had written to a place where that operation wrote only
 * afterwards. */
static bool explain_early_read(struct search *q, size_t from, size_t to)
{
	const struct event_log *r = q->r;
	char first[80], late[80], by[220], late_by[220], reader[120];
	for (size_t i = to + 1; i-- > from;) {
		const struct logged_event *read = &r->event[i];
		if (!event_log_reads(read) || !of_op(read, q->op, q->machine))
			continue;
		int next = next_event(r, i + 1, q->machine, WRITES, read->off, read->len);
		const struct logged_event *w = event_of(r, next), *led = NULL;
		if (!w || !w->op.client || op_label_equal(w->op, q->op))
			continue;
		/* What it read of that operation first. */
		int at = RECORD_NONE;
		for (size_t k = from; k < i && at < 0; k++) {
			const struct logged_event *e = &r->event[k];
			int before = event_log_reads(e) && of_op(e, q->op, q->machine)
					     ? last_write(r, k, e)
					     : RECORD_NONE;
			if (before >= 0 && op_label_equal(r->event[before].op, w->op))
				at = before;
		}
		led = event_of(r, at);
		if (!led)
			continue;
		place(q, led->off, led->len, first, sizeof(first));
		place(q, w->off, w->len, late, sizeof(late));
		doer(q, r, led, by, sizeof(by));
		doer(q, r, w, late_by, sizeof(late_by));
		op_words(q, q->op, q->machine, reader, sizeof(reader));
		say(q, at, "%s has written %s at %.3f us, and %s reads it", by, first, us(led->at),
		    reader);
		say(q, (int)i, "%s reads %s at %.3f us", reader, late, us(read->at));
		say(q, next, "too early: %s comes only at %.3f us", late_by, us(w->at));
		print(q->c->sentence, sizeof(q->c->sentence),
		      "%s met %s, written by %s, and read %s at %.3f us, before %s came there at "
		      "%.3f us; so "
		      "%s.",
		      reader, first, by, late, us(read->at), late_by, us(w->at), q->seen);
		return true;
	}
	return false;
}

/* What the reader should have seen became visible too late for it. */
static bool explain_late(struct search *q, size_t from, size_t to)
{
	const struct event_log *r = q->r;
	char where[80], by[220], reader[120], op[120];
	int late = RECORD_NONE, ack = RECORD_NONE;
	for (size_t i = r->machine_from[q->against_machine]; i < r->events; i++) {
		const struct logged_event *e = &r->event[i];
		if (!of_op(e, q->against, q->against_machine))
			continue;
		if (e->kind == TRACED_RETURN)
			ack = (int)i;
		if (event_log_writes(e) && i > from && late < 0)
			late = (int)i;
	}
	if (ack < 0 || (size_t)ack > to || late < ack)
		return false;
	const struct logged_event *e = &r->event[late];
	place(q, e->off, e->len, where, sizeof(where));
	op_words(q, q->op, q->machine, reader, sizeof(reader));
	op_words(q, q->against, q->against_machine, op, sizeof(op));
	say(q, ack, "%s is acknowledged at %.3f us", op, us(r->event[ack].at));
	doer(q, r, e, by, sizeof(by));
	say(q, late, "%s is written by %s only at %.3f us", where, by, us(e->at));
	wrote(q, r, e, by, sizeof(by));
	say(q, (int)from, "%s runs from %.3f us to %.3f us, in between", reader,
	    us(r->event[from].at), us(r->event[to].at));
	print(q->c->sentence, sizeof(q->c->sentence),
	      "%s at %.3f us, but %s at %s became visible only at %.3f us: acknowledged is not yet "
	      "visible, "
	      "and "
	      "%s came in between; so %s.",
	      q->seen_against, us(r->event[ack].at), by, where, us(e->at), reader, q->seen);
	return true;
}

/* The last writer of the bytes that the reader read is an operation that has not come to its
 * end. */
static bool explain_unfinished(struct search *q, size_t to)
{
	const struct event_log *r = q->r;
	char list[300] = "", where[80], by[220], reader[120];
	struct op_label told[8];
	unsigned n = 0;
	for (size_t i = to; i-- > r->machine_from[q->machine] && n < 8;) {
		const struct logged_event *e = &r->event[i];
		bool read = false, known = false;
		if (!event_log_writes(e) || !e->op.client || op_label_equal(e->op, q->op) ||
		    (e->op.kind != OP_PUT && e->op.kind != OP_DEL) ||
		    returned(r, e->op, q->machine, i + 1))
			continue;
		if (returned(r, e->op, q->machine, to))
			continue;
		for (size_t k = i; k <= to; k++)
			read |= event_log_reads(&r->event[k]) &&
				of_op(&r->event[k], q->op, q->machine) &&
				event_log_overlaps(&r->event[k], e->off, e->len);
		for (unsigned k = 0; k < n; k++)
			known |= op_label_equal(told[k], e->op);
		if (!read || known)
			continue;
		told[n] = e->op;
		place(q, e->off, e->len, where, sizeof(where));
		doer(q, r, e, by, sizeof(by));
		say(q, (int)i,
		    "unfinished: %s wrote %s at %.3f us, and that operation has not returned when "
		    "it is read",
		    by, where, us(e->at));
		size_t used = strlen(list);
		print(list + used, sizeof(list) - used, "%s%s at %s", n ? " and " : "", by, where);
		n++;
	}
	if (!n)
		return false;
	op_words(q, q->op, q->machine, reader, sizeof(reader));
	print(q->c->sentence, sizeof(q->c->sentence),
	      "%s%s%s met what %s had written for operations that were not finished; so %s.",
	      q->seen_against, q->seen_against[0] ? ", but " : "", reader, list, q->seen);
	return true;
}

/* Somebody wrote over what the operation of the verdict had written, before it was read. */
static bool explain_overwritten(struct search *q, size_t to)
{
	const struct event_log *r = q->r;
	char where[80], by[220], over[220];
	for (size_t i = to; i-- > r->machine_from[q->machine];) {
		const struct logged_event *e = &r->event[i];
		if (!event_log_writes(e) || op_label_equal(e->op, q->against))
			continue;
		int before = RECORD_NONE, read = RECORD_NONE;
		for (size_t k = i; k-- > r->machine_from[q->machine] && before < 0;)
			if (event_log_writes(&r->event[k]) &&
			    of_op(&r->event[k], q->against, q->machine) &&
			    event_log_overlaps(&r->event[k], e->off, e->len))
				before = (int)k;
		for (size_t k = i; k <= to && read < 0; k++)
			if (event_log_reads(&r->event[k]) &&
			    of_op(&r->event[k], q->op, q->machine) &&
			    event_log_overlaps(&r->event[k], e->off, e->len))
				read = (int)k;
		if (before < 0 || read < 0)
			continue;
		place(q, e->off, e->len, where, sizeof(where));
		doer(q, r, e, over, sizeof(over));
		doer(q, r, &r->event[before], by, sizeof(by));
		say(q, before, "%s wrote %s at %.3f us", by, where, us(r->event[before].at));
		say(q, (int)i, "overwritten: %s wrote over it at %.3f us", over, us(e->at));
		say(q, read, "it is read at %.3f us", us(r->event[read].at));
		print(q->c->sentence, sizeof(q->c->sentence),
		      "%s, but what %s wrote at %s (%.3f us) was overwritten by %s (%.3f us); so "
		      "%s.",
		      q->seen_against, by, where, us(r->event[before].at), over, us(e->at),
		      q->seen);
		return true;
	}
	return false;
}

/* Nothing of the above: the last foreign write that the reader saw, and the first that it
 * missed. */
static void explain_accesses(struct search *q, size_t from, size_t to)
{
	const struct event_log *r = q->r;
	int saw = RECORD_NONE, missed = RECORD_NONE, read_saw = RECORD_NONE;
	char where[80], by[220], reader[120];
	op_words(q, q->op, q->machine, reader, sizeof(reader));
	for (size_t i = from; i <= to; i++) {
		const struct logged_event *read = &r->event[i];
		if (!event_log_reads(read) || !of_op(read, q->op, q->machine))
			continue;
		for (size_t k = r->machine_from[q->machine]; k < r->machine_from[q->machine + 1];
		     k++) {
			const struct logged_event *e = &r->event[k];
			if (!event_log_writes(e) || op_label_equal(e->op, q->op) ||
			    !event_log_overlaps(e, read->off, read->len))
				continue;
			if (k < i && (saw < 0 || k >= (size_t)saw)) {
				saw = (int)k;
				read_saw = (int)i;
			}
			if (k > i && missed < 0)
				missed = (int)k;
		}
	}
	size_t used = print(q->c->sentence, sizeof(q->c->sentence), "%s%s%s", q->seen_against,
			    q->seen_against[0] ? ", but " : "", reader);
	if (saw >= 0) {
		place(q, r->event[saw].off, r->event[saw].len, where, sizeof(where));
		doer(q, r, &r->event[saw], by, sizeof(by));
		say(q, saw, "%s read, at %.3f us, %s as %s had left it at %.3f us", reader,
		    us(r->event[read_saw].at), where, by, us(r->event[saw].at));
		used += print(q->c->sentence + used, sizeof(q->c->sentence) - used,
			      " read %s as %s left it", where, by);
	}
	if (missed >= 0 && used < sizeof(q->c->sentence)) {
		place(q, r->event[missed].off, r->event[missed].len, where, sizeof(where));
		doer(q, r, &r->event[missed], by, sizeof(by));
		say(q, missed, "missed: %s wrote %s only at %.3f us", by, where,
		    us(r->event[missed].at));
		used += print(q->c->sentence + used, sizeof(q->c->sentence) - used,
			      "%s came too early for %s at %s", saw >= 0 ? ", and" : "", by, where);
	}
	if (used < sizeof(q->c->sentence))
		print(q->c->sentence + used, sizeof(q->c->sentence) - used,
		      saw >= 0 || missed >= 0
			      ? "; so %s."
			      : " read nothing that another operation wrote; what differs is only "
				"that %s.",
		      q->seen);
}

static void explain_race(struct search *q)
{
	size_t from = 0, to = 0;
	q->c->kind = CAUSE_RACE;
	if (!span(q->r, q->op, q->machine, &from, &to)) {
		q->c->kind = CAUSE_NONE;
		print(q->c->sentence, sizeof(q->c->sentence),
		      "No access to PM explains it; what differs is that %s%s%s.", q->seen_against,
		      q->seen_against[0] ? ", and " : "", q->seen);
		return;
	}
	if (q->contract == TM_RDA && (explain_half(q) || explain_early_read(q, from, to)))
		return;
	if (q->against.kind && explain_late(q, from, to))
		return;
	if (explain_unfinished(q, to))
		return;
	if (q->against.kind && explain_overwritten(q, to))
		return;
	if (explain_half(q))
		return;
	explain_accesses(q, from, to);
}

/* --- stuck --- */

#define STUCK_EVENTS 4000 /* so many, the last with reads of the operation, are looked at */

static unsigned times_read(const struct event_log *r, size_t from, size_t to,
			   const struct logged_event *read)
{
	unsigned n = 0;
	for (size_t k = from; k < to; k++)
		n += event_log_reads(&r->event[k]) && r->event[k].off == read->off &&
		     op_label_equal(r->event[k].op, read->op);
	return n;
}

/*
 * The events in which it is seen what is read again and again: [*from, *to). A stuck operation
 * reads on and on, and the record does not keep all of it: the end is where its reads end.
 */
static void find_polling(const struct search *q, unsigned machine, size_t *from, size_t *to)
{
	const struct event_log *r = q->r;
	*from = r->machine_from[machine];
	*to = r->events;
	while (*to > *from && !(event_log_reads(&r->event[*to - 1]) &&
				(!q->op.kind || of_op(&r->event[*to - 1], q->op, machine))))
		--*to;
	if (*to - *from > STUCK_EVENTS)
		*from = *to - STUCK_EVENTS;
}

/* The place that is read most; of those that `missing`, if not NULL, would have written. */
static int find_polled(const struct search *q, unsigned machine, size_t from, size_t to,
		       const struct logged_event *missing)
{
	const struct event_log *r = q->r;
	unsigned most = 1;
	int polled = RECORD_NONE;
	for (size_t i = from; i < to && most <= (to - from) / 4; i++) {
		const struct logged_event *e = &r->event[i];
		if (!event_log_reads(e) || (q->op.kind && !of_op(e, q->op, machine)) ||
		    (missing && !event_log_overlaps(e, missing->off, missing->len)))
			continue;
		unsigned n = times_read(r, from, to, e);
		if (n > most) {
			most = n;
			polled = (int)i;
		}
	}
	return polled;
}

/* What the dead client would have written, had it lived, to a place that is read again and
 * again. */
static int find_missing(struct search *q, unsigned machine, size_t from, size_t to, unsigned death,
			int *polled)
{
	const struct event_log *r = q->r, *alive = &q->instead;
	struct deviations list = {0};
	int error = gather(q, death, &list), missing = RECORD_NONE;
	if (!error)
		error = run_instead(q, &list);
	deviations_free(&list);
	for (size_t i = error ? alive->events : alive->machine_from[machine];
	     i < alive->events && missing < 0; i++) {
		const struct logged_event *e = &alive->event[i];
		bool written = false;
		if (!event_log_writes(e) || !e->op.client ||
		    e->op.client != q->t->deviations.d[death].op.client)
			continue;
		for (size_t k = r->machine_from[machine]; k < r->events && !written; k++)
			written = event_log_writes(&r->event[k]) &&
				  op_label_equal(r->event[k].op, e->op) &&
				  r->event[k].off == e->off;
		if (written)
			continue;
		*polled = find_polled(q, machine, from, to, e);
		missing = *polled >= 0 ? (int)i : RECORD_NONE;
	}
	return missing;
}

static void explain_stuck(struct search *q, const char *why)
{
	const struct event_log *r = q->r;
	const struct deviations *all = &q->t->deviations;
	unsigned machine = r->machines - 1, death = all->n;
	char where[80] = "", by[220] = "", op[120] = "";
	size_t room = sizeof(q->c->sentence), used = print(q->c->sentence, room, "%s", why), from,
	       to;
	int polled = RECORD_NONE, missing = RECORD_NONE, last = RECORD_NONE;
	q->c->kind = CAUSE_STUCK;
	find_polling(q, machine, &from, &to);
	for (unsigned i = 0; i < all->n && death == all->n; i++)
		if (all->d[i].kind == CHOICE_STEP && all->d[i].answer == DELAY_FOREVER &&
		    q->matters[i])
			death = i;
	if (death < all->n)
		missing = find_missing(q, machine, from, to, death, &polled);
	if (missing < 0)
		polled = find_polled(q, machine, from, to, NULL);
	const struct logged_event *e = event_of(r, polled), *m = event_of(&q->instead, missing);
	if (e) {
		place(q, e->off, e->len, where, sizeof(where));
		op_words(q, e->op, machine, op, sizeof(op));
		say(q, polled, "%s reads %s again and again", op, where);
		used += print(q->c->sentence + used, room - used, ": %s reads %s again and again",
			      op, where);
		last = last_write(r, r->events, e);
	}
	if (m) {
		doer(q, &q->instead, m, by, sizeof(by));
		say(q, RECORD_NONE, "not written: %s would have written there at %.3f us", by,
		    us(m->at));
		used += print(q->c->sentence + used, room - used, ", which %s has not written", by);
	} else if (last >= 0) {
		doer(q, r, &r->event[last], by, sizeof(by));
		say(q, last, "last written by %s at %.3f us", by, us(r->event[last].at));
		used += print(q->c->sentence + used, room - used, ", which %s wrote last", by);
	}
	if (death < all->n)
		used += print(q->c->sentence + used, room - used,
			      "; it waits for %s, which is dead", all->d[death].who);
	print(q->c->sentence + used, room - used, ".");
}

/* --- all --- */

static void begin(struct search *q, const struct replay_outcome *out)
{
	const struct history *h = q->ex->worlds.history;
	const struct verdict *v = &out->verdict[q->contract];
	if (q->contract == TM_LIVE || q->contract == TM_FSCK) {
		int op = q->ex->worlds.world[q->r->machines - 1].result.live_op;
		if (q->contract == TM_LIVE)
			q->op = label_of(h, op);
		q->machine = q->r->machines - 1;
		print(q->seen, sizeof(q->seen), "%.150s", out->text[q->contract]);
		return;
	}
	q->op = label_of(h, v->op);
	q->against = label_of(h, v->against);
	if (TM_BIT(q->contract) &
	    (TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_MONO) | TM_BIT(TM_KEEP)))
		q->expected = value_of(q, h, v->against);
	if (v->op >= 0) {
		q->machine = h->op[v->op].epoch;
		sentence_op(q->s, h, v->op, q->seen, sizeof(q->seen));
	}
	if (v->against >= 0) {
		q->against_machine = h->op[v->against].epoch;
		sentence_op(q->s, h, v->against, q->seen_against, sizeof(q->seen_against));
	}
}

static int explain(struct search *q, const char *why)
{
	struct loss *loss = calloc(LOSSES, sizeof(*loss));
	bool crash = false;
	int error = loss ? find_what_matters(q) : -ENOMEM;
	for (unsigned i = 0; i < q->t->deviations.n && !error; i++)
		crash |= q->t->deviations.d[i].kind == CHOICE_CRASH && q->matters[i];
	if (!error && crash)
		error = run_with_power(q);
	if (!error && crash)
		error = find_kept(q);
	unsigned n = error || !crash ? 0 : find_losses(q, loss);
	if (!error) {
		if (n)
			explain_lost(q, loss, n);
		else if (crash)
			explain_cut(q);
		else if (q->contract == TM_LIVE || q->contract == TM_FSCK)
			explain_stuck(q, why);
		else
			explain_race(q);
		say_deviations(q);
		q->c->sentence[0] = (char)toupper((unsigned char)q->c->sentence[0]);
	}
	free(loss);
	return error;
}

int cause_find(struct explorer *ex, const struct trace *t, const struct event_log *r,
	       const struct replay_outcome *out, struct where *where, struct cause *c)
{
	struct search q = {
		.ex = ex, .t = t, .s = &t->setup, .r = r, .where = where, .c = c, .kept_at = -1};
	char why[300];
	memset(c, 0, sizeof(*c));
	q.contract = t->contract;
	for (int k = 0; k < TM_CONTRACTS && q.contract < 0; k++)
		if (out->verdict[k].broken)
			q.contract = k;
	if (q.contract < 0 || !out->verdict[q.contract].broken)
		return 0;
	q.keep = q.contract == TM_KEEP;
	q.matters = calloc(t->deviations.n + 1, sizeof(*q.matters));
	if (!q.matters)
		return -ENOMEM;
	print(why, sizeof(why), "%s", out->text[q.contract]);
	begin(&q, out);
	int error = explain(&q, why);
	event_log_free(&q.instead);
	free(q.matters);
	return error;
}
