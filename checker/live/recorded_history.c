/* SPDX-License-Identifier: BSD-3-Clause */
/* See recorded_history.h. */
#include "checker/live/recorded_history.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READER UINT8_MAX /* the client that reads what recovery shows */

bool recorded_unanswered(const struct recording_op *op)
{
	return !op->returned_ns || op->error == -EIO || op->error == -ECANCELED ||
	       op->error == -ETIMEDOUT;
}

static bool is_update(const struct recording_op *op)
{
	return op->kind != HISTORY_GET;
}

static bool acknowledged(const struct recording_op *op)
{
	return is_update(op) && op->returned_ns && !op->error;
}

/* A GET with a result. */
static bool has_result(const struct recording_op *op)
{
	return op->kind == HISTORY_GET && op->returned_ns && !op->error;
}

static bool judged(const struct recorded_key *key, const struct recording_op *op)
{
	return op->boot >= key->first && op->boot <= key->last;
}

static bool before(const struct recording_op *a, const struct recording_op *b)
{
	return a->boot != b->boot ? a->boot < b->boot : a->returned_ns < b->invoked_ns;
}

/* --- trimming --- */

/* A PUT and the GETs that returned its value; for trimming. */
struct cluster {
	uint64_t id;
	const struct recording_op *first, *last; /* GETs of the boot at hand */
	uint32_t boot;
	unsigned size; /* operations that are kept */
	bool needed, dropped;
};

/* A cluster and a recorded_put begin with their id. */
static int by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static struct cluster *cluster_find(struct cluster *c, unsigned n, uint64_t id)
{
	const struct cluster wanted = {.id = id};

	return n ? bsearch(&wanted, c, n, sizeof(*c), by_id) : NULL;
}

/* One cluster for each PUT of the key and each value that a GET returned; sorted by id. */
static unsigned make_clusters(const struct recorded_key *key, struct cluster *c)
{
	unsigned n = 0, unique = 0;

	for (unsigned i = 0; i < key->ops; i++) {
		const struct recording_op *op = key->op[i];

		if (judged(key, op) &&
		    (op->kind == HISTORY_PUT || (has_result(op) && op->found == 1)))
			c[n++] = (struct cluster){.id = op->value};
	}
	qsort(c, n, sizeof(*c), by_id);
	for (unsigned i = 0; i < n; i++)
		if (!unique || c[unique - 1].id != c[i].id)
			c[unique++] = c[i];
	for (unsigned i = 0; i < key->shown_n; i++) {
		struct cluster *shown = cluster_find(c, unique, key->shown[i]);

		if (shown)
			shown->needed = true;
	}
	return unique;
}

/* The acknowledged DELETE that was invoked last. */
static const struct recording_op *last_del(const struct recorded_key *key)
{
	const struct recording_op *last = NULL;

	for (unsigned i = 0; i < key->ops; i++)
		if (judged(key, key->op[i]) && key->op[i]->kind == HISTORY_DEL &&
		    acknowledged(key->op[i]))
			last = key->op[i];
	return last;
}

/* Mark the GETs of one boot that stay: for each value the two that the header names. */
static void choose_gets(const struct recorded_key *key, struct cluster *c, unsigned n,
			unsigned from, bool *keep)
{
	uint32_t boot = key->op[from]->boot;

	for (unsigned i = from; i < key->ops && key->op[i]->boot == boot; i++) {
		const struct recording_op *op = key->op[i];

		if (!has_result(op) || op->found != 1)
			continue;
		struct cluster *of = cluster_find(c, n, op->value);
		if (of->boot != boot) {
			of->boot = boot;
			of->first = of->last = op;
		}
		if (op->returned_ns < of->first->returned_ns)
			of->first = op;
		if (op->invoked_ns >= of->last->invoked_ns)
			of->last = op;
	}
	for (unsigned i = from; i < key->ops && key->op[i]->boot == boot; i++) {
		const struct recording_op *op = key->op[i];

		if (!has_result(op) || op->found != 1)
			continue;
		struct cluster *of = cluster_find(c, n, op->value);
		keep[i] = op == of->first || op == of->last;
		of->size += keep[i];
	}
}

/* Drop the oldest PUTs until RECORDED_OPS operations are left. `kept`: so many are there now. */
static void drop_oldest(const struct recorded_key *key, struct cluster *c, unsigned n, bool *keep,
			unsigned kept)
{
	for (unsigned i = 0; i < key->ops && kept > RECORDED_OPS; i++) {
		if (!keep[i] || key->op[i]->kind != HISTORY_PUT)
			continue;
		struct cluster *of = cluster_find(c, n, key->op[i]->value);
		if (of->needed)
			continue;
		of->dropped = true;
		kept -= of->size;
	}
	for (unsigned i = 0; i < key->ops; i++) {
		const struct recording_op *op = key->op[i];

		if (keep[i] &&
		    (op->kind == HISTORY_PUT || (op->kind == HISTORY_GET && op->found == 1)))
			keep[i] = !cluster_find(c, n, op->value)->dropped;
	}
}

static void trim(const struct recorded_key *key, struct cluster *c, bool *keep)
{
	const struct recording_op *del = last_del(key);
	unsigned n = make_clusters(key, c), kept = 0, foreign = 0;

	for (unsigned i = 0; i < key->ops; i++) {
		const struct recording_op *op = key->op[i];

		if (!judged(key, op))
			continue;
		if (op->kind == HISTORY_PUT)
			cluster_find(c, n, op->value)->size++;
		else if (op->kind == HISTORY_DEL)
			keep[i] = !del || !acknowledged(op) || !before(op, del);
		else if (op->found != 2 || foreign++)
			keep[i] = false;
	}
	for (unsigned i = 0; i < key->ops; i++)
		if (judged(key, key->op[i]) && (!i || key->op[i - 1]->boot != key->op[i]->boot))
			choose_gets(key, c, n, i, keep);
	for (unsigned i = 0; i < key->ops; i++)
		kept += keep[i];
	drop_oldest(key, c, n, keep, kept);
}

/* Put the operations of the history into p->kept. Returns how many there are, -EFBIG or -ENOMEM. */
static int choose_ops(struct recorded_history *p, const struct recorded_key *key)
{
	bool *keep = calloc(key->ops + 1, sizeof(*keep));
	struct cluster *cluster = calloc(key->ops + 1, sizeof(*cluster));
	unsigned n = 0, kept = 0;

	for (unsigned i = 0; keep && i < key->ops; i++) {
		keep[i] = judged(key, key->op[i]) &&
			  (is_update(key->op[i]) || has_result(key->op[i]));
		n += keep[i];
	}
	if (keep && cluster && n > RECORDED_OPS)
		trim(key, cluster, keep);
	for (unsigned i = 0; keep && i < key->ops; i++)
		kept += keep[i];
	p->left_out = n - kept;
	if (!keep || !cluster || kept > RECORDED_OPS) {
		free(keep);
		free(cluster);
		return kept > RECORDED_OPS ? -EFBIG : -ENOMEM;
	}
	kept = 0;
	for (unsigned i = 0; i < key->ops; i++)
		if (keep[i])
			p->kept[kept++] = key->op[i];
	free(cluster);
	free(keep);
	return (int)kept;
}

/* --- PUTs by id --- */

static struct recorded_put *find_put(struct recorded_history *p, uint64_t id)
{
	const struct recorded_put wanted = {.id = id};

	return bsearch(&wanted, p->put, p->puts, sizeof(wanted), by_id);
}

int32_t recorded_put(const struct recorded_history *p, uint64_t id)
{
	const struct recorded_put *put = find_put((struct recorded_history *)p, id);

	return put && put->op >= 0 ? put->op : VALUE_FOREIGN;
}

/* A GET returned this value, or a reader may see it: find out whether its PUT is of an earlier
 * boot. */
static void note_value(struct recorded_history *p, const struct recorded_key *key, uint64_t id)
{
	for (unsigned i = 0; i < p->olds; i++)
		if (p->old[i] == id)
			return;
	if (find_put(p, id) || (key->start.state == KEY_VALUE && id == key->start.id))
		return;
	if (key->first == 1) {
		p->trouble = RECORDED_UNKNOWN_PUT;
		p->strange = id;
	} else if (p->olds == RECORDED_OLD) {
		p->trouble = RECORDED_LONG;
	} else {
		p->old[p->olds++] = id;
	}
}

static void note_values(struct recorded_history *p, const struct recorded_key *key, unsigned kept)
{
	p->puts = p->olds = 0;
	for (unsigned i = 0; i < kept; i++)
		if (p->kept[i]->kind == HISTORY_PUT)
			p->put[p->puts++] = (struct recorded_put){p->kept[i]->value, -1};
	qsort(p->put, p->puts, sizeof(p->put[0]), by_id);
	for (unsigned i = 0; i < kept; i++)
		if (p->kept[i]->kind == HISTORY_GET && p->kept[i]->found == 1)
			note_value(p, key, p->kept[i]->value);
	for (unsigned i = 0; i < key->shown_n; i++)
		note_value(p, key, key->shown[i]);
	for (unsigned i = 0; i < p->olds; i++)
		p->put[p->puts++] = (struct recorded_put){p->old[i], -1};
	if (key->start.state == KEY_VALUE)
		p->put[p->puts++] = (struct recorded_put){key->start.id, -1};
	qsort(p->put, p->puts, sizeof(p->put[0]), by_id);
}

/* --- what came before --- */

/* Before the boots that are judged: did an acknowledged DELETE begin after this value was read, or
 * after its PUT was acknowledged? */
static bool was_deleted(const struct recorded_key *key, uint64_t id)
{
	const struct recording_op *seen = NULL;

	for (unsigned i = 0; i < key->ops; i++) {
		const struct recording_op *op = key->op[i];
		bool says = op->kind == HISTORY_PUT ? acknowledged(op)
						    : has_result(op) && op->found == 1;

		if (op->boot < key->first && says && op->value == id && (!seen || before(op, seen)))
			seen = op;
	}
	for (unsigned i = 0; seen && i < key->ops; i++)
		if (key->op[i]->boot < key->first && key->op[i]->kind == HISTORY_DEL &&
		    acknowledged(key->op[i]) && before(seen, key->op[i]))
			return true;
	return false;
}

static int add_earlier(struct recorded_history *p, enum history_kind kind, bool returns)
{
	int op = history_invoke(&p->h, 0, kind, 0);

	if (returns)
		history_return(&p->h, op, 0, VALUE_ABSENT);
	return op;
}

static int add_earlier_put(struct recorded_history *p, uint64_t id, bool returns)
{
	return find_put(p, id)->op = add_earlier(p, HISTORY_PUT, returns);
}

/* The key was absent: each earlier value had been deleted, or was lost before it was durable. */
static void begin_absent(struct recorded_history *p, const struct recorded_key *key)
{
	bool deleted = false, lost = false;

	for (unsigned i = 0; i < p->olds; i++) {
		if (!was_deleted(key, p->old[i]))
			continue;
		deleted = true;
		add_earlier_put(p, p->old[i], true);
	}
	if (deleted)
		add_earlier(p, HISTORY_DEL, true);
	for (unsigned i = 0; i < p->olds; i++) {
		if (find_put(p, p->old[i])->op >= 0)
			continue;
		lost = true;
		add_earlier_put(p, p->old[i], false);
	}
	if (!lost)
		return;
	history_crash(&p->h);
	add_earlier(p, HISTORY_GET, true);
}

static void add_start(struct recorded_history *p, const struct recorded_key *key)
{
	p->start = VALUE_ABSENT;
	if (key->start.state == KEY_ABSENT) {
		begin_absent(p, key);
		return;
	}
	for (unsigned i = 0; i < p->olds; i++)
		add_earlier_put(p, p->old[i], key->start.state == KEY_VALUE);
	if (key->start.state == KEY_VALUE)
		p->start = add_earlier_put(p, key->start.id, true);
}

/* --- the boots --- */

static int by_time(const void *a, const void *b)
{
	const struct recorded_event *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	if (x->returns != y->returns)
		return x->returns - y->returns;
	return x->kept < y->kept ? -1 : x->kept > y->kept;
}

static void add_return(struct recorded_history *p, unsigned kept)
{
	const struct recording_op *r = p->kept[kept];
	int32_t value = r->kind == HISTORY_GET && r->found == 2 ? VALUE_FOREIGN : VALUE_ABSENT;

	if (r->kind == HISTORY_GET && r->found == 1) {
		value = find_put(p, r->value)->op;
		if (value < 0) {
			p->trouble = RECORDED_CLOCKS;
			p->strange = r->value;
			return;
		}
	}
	history_return(&p->h, p->op_of[kept], r->error, value);
}

static void add_boot(struct recorded_history *p, unsigned from, unsigned to)
{
	unsigned events = 0;

	for (unsigned i = from; i < to; i++) {
		p->event[events++] = (struct recorded_event){p->kept[i]->invoked_ns, i, false};
		if (!recorded_unanswered(p->kept[i]))
			p->event[events++] = (struct recorded_event){p->kept[i]->returned_ns, i,
								     true};
	}
	qsort(p->event, events, sizeof(p->event[0]), by_time);
	for (unsigned e = 0; e < events && !p->trouble; e++) {
		unsigned i = p->event[e].kept;

		if (p->event[e].returns) {
			add_return(p, i);
			continue;
		}
		p->op_of[i] = history_invoke(&p->h, p->kept[i]->client, p->kept[i]->kind, 0);
		p->source[p->op_of[i]] = p->kept[i];
		if (p->kept[i]->kind == HISTORY_PUT)
			find_put(p, p->kept[i]->value)->op = p->op_of[i];
	}
	history_crash(&p->h);
}

int recorded_make(struct recorded_history *p, const struct recorded_key *key)
{
	int kept = choose_ops(p, key);
	unsigned boots = 0;

	p->trouble = RECORDED_GOOD;
	if (kept == -ENOMEM)
		return kept;
	for (int i = 0; i < kept; i++)
		boots += !i || p->kept[i]->boot != p->kept[i - 1]->boot;
	if (kept < 0 || boots + 2 > HISTORY_CRASHES) {
		p->trouble = RECORDED_LONG;
		return 0;
	}
	history_reset(&p->h, 1);
	judge_reset(&p->judge);
	memset(p->source, 0, sizeof(p->source));
	note_values(p, key, (unsigned)kept);
	if (p->trouble)
		return 0;
	add_start(p, key);
	for (unsigned i = 0, to; i < (unsigned)kept && !p->trouble; i = to) {
		for (to = i; to < (unsigned)kept && p->kept[to]->boot == p->kept[i]->boot;)
			to++;
		add_boot(p, i, to);
	}
	if (!kept)
		history_crash(&p->h);
	p->ended = history_mark(&p->h);
	if (!p->trouble)
		judge_prepare(&p->judge, &p->h);
	return 0;
}

void recorded_judge(struct recorded_history *p, const struct key_state *shown, int32_t lower_bound,
		    unsigned want, struct verdict out[TM_CONTRACTS])
{
	assert(!p->trouble);
	history_rewind(&p->h, &p->ended);
	if (shown->state != KEY_UNKNOWN) {
		int get = history_invoke(&p->h, READER, HISTORY_GET, 0);
		int32_t value = shown->state == KEY_VALUE     ? recorded_put(p, shown->id)
				: shown->state == KEY_FOREIGN ? VALUE_FOREIGN
							      : VALUE_ABSENT;

		p->source[get] = NULL;
		history_return(&p->h, get, 0, value);
	}
	judge_recovered(&p->judge, &p->h, want, &lower_bound, out);
}
