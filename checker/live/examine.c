/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See examine.h. First every image is booted and what its keys read is noted; then
 * key by key a history is made and judged against each of the answers that differ.
 */
#include "checker/live/examination.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "checker/live/torn.h"
#include "checker/world/explained.h"
#include "faultinject/random_source.h"

/* What stores expect of themselves under this configuration counts: what is acknowledged is
 * visible. */
#define LIVE_CONFIG "ack_early=off"

/* --- operations and keys --- */

static int by_key_and_time(const void *a, const void *b)
{
	const struct recording_op *x = *(const struct recording_op *const *)a,
				  *y = *(const struct recording_op *const *)b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->boot != y->boot)
		return x->boot < y->boot ? -1 : 1;
	if (x->invoked_ns != y->invoked_ns)
		return x->invoked_ns < y->invoked_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int by_put_id(const void *a, const void *b)
{
	const struct recording_op *x = *(const struct recording_op *const *)a,
				  *y = *(const struct recording_op *const *)b;

	return x->value < y->value ? -1 : x->value > y->value;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int sort_ops(struct examination *w, char *why, size_t n)
{
	const struct cut *c = w->cut;

	w->op = calloc(c->ops + 1, sizeof(w->op[0]));
	w->put = calloc(c->ops + 1, sizeof(w->put[0]));
	if (!w->op || !w->put)
		return -ENOMEM;
	for (size_t i = 0; i < c->ops; i++) {
		const struct recording_op *op = &c->op[i];

		if (op->boot > c->boot)
			continue; /* the next machine's */
		w->op[w->ops++] = op;
		if (op->kind == HISTORY_PUT)
			w->put[w->puts++] = op;
		w->out->operations += op->boot >= w->first;
	}
	qsort(w->op, w->ops, sizeof(w->op[0]), by_key_and_time);
	qsort(w->put, w->puts, sizeof(w->put[0]), by_put_id);
	for (size_t i = 1; i < w->puts; i++)
		if (w->put[i]->value == w->put[i - 1]->value) {
			snprintf(why, n,
				 "two recorded PUTs have the id 0x%016" PRIx64
				 ": is a recording given twice?",
				 w->put[i]->value);
			return -EINVAL;
		}
	return 0;
}

/* Every key that was used, or whose start is known. */
static int find_keys(struct examination *w)
{
	const struct cut *c = w->cut;
	unsigned n = 0;
	size_t at = 0;

	w->key = calloc(w->ops + c->starts + 1, sizeof(w->key[0]));
	w->from = calloc(w->ops + c->starts + 2, sizeof(w->from[0]));
	if (!w->key || !w->from)
		return -ENOMEM;
	for (size_t i = 0; i < w->ops; i++)
		w->key[n++] = w->op[i]->key;
	for (size_t i = 0; i < c->starts; i++)
		w->key[n++] = c->start[i].key;
	qsort(w->key, n, sizeof(w->key[0]), by_number);
	for (unsigned i = 0; i < n; i++)
		if (!i || w->key[i] != w->key[w->keys - 1])
			w->key[w->keys++] = w->key[i];
	for (unsigned k = 0; k < w->keys; k++) {
		while (at < w->ops && w->op[at]->key < w->key[k])
			at++;
		w->from[k] = (unsigned)at;
	}
	w->from[w->keys] = (unsigned)w->ops;
	w->out->keys = w->keys;
	return 0;
}

/* --- images --- */

static void read_value(void *arg, unsigned i, int error, const uint8_t *bytes, size_t len)
{
	struct examination *w = arg;
	struct key_state *shown = &w->reading->shown[i];

	if (error)
		shown->state = KEY_ABSENT;
	else
		shown->state = live_value_id(w->key[i], bytes, len, &shown->id) ? KEY_VALUE
										: KEY_FOREIGN;
}

static bool survives(const struct exam_subset *s, uint32_t line)
{
	return s->kind == EXAM_SEED ? cut_survives(s->number, line)
				    : (s->kind == EXAM_ALONE) == (line == s->number);
}

/* The pool with this subset of the lines: so many of them. */
static unsigned lay_over(const struct examination *w, const struct exam_subset *subset)
{
	const struct cut *c = w->cut;
	unsigned survived = 0;

	memcpy(w->pool, c->pool, c->len);
	for (size_t i = 0; i < c->lines; i++) {
		if (!survives(subset, c->line[i]))
			continue;
		memcpy(w->pool + (size_t)c->line[i] * TM_LINE, c->held + i * TM_LINE, TM_LINE);
		survived++;
	}
	return survived;
}

static void scan_torn(struct examination *w)
{
	struct exam_torn *out = &w->out->torn;
	struct torn torn;
	char key[LIVE_KEY_LEN + 1];

	torn_scan(w->pool, w->cut->len, w->put, w->puts, &torn);
	out->whole = torn.whole;
	out->torn = torn.torn;
	if (!torn.torn)
		return;
	live_key(torn.first.put->key, key);
	snprintf(out->text, sizeof(out->text),
		 "client %u's PUT of %s (id 0x%016" PRIx64
		 ") in boot %u: the first %u of %u bytes, at pool+0x%" PRIx64 ", and then %s",
		 torn.first.put->client, key, torn.first.put->value, torn.first.put->boot,
		 torn.first.bytes, torn.first.put->vlen, torn.first.off,
		 torn.first.old ? "other bytes" : "nothing");
}

/* The i-th subset to try, other than the one that happened. */
static struct exam_subset other_subset(const struct cut *c, const struct exam_options *o,
				       unsigned i)
{
	struct exam_subset s = {EXAM_SEED, i};

	if (i < 2)
		return s;
	i -= 2;
	if (i % 2) {
		/* The state before number `seed` of one sequence. */
		uint64_t state = o->seed * 0x9e3779b97f4a7c15;
		s.kind = i % 4 == 1 ? EXAM_MISSING : EXAM_ALONE;
		s.number = c->line[(random_next(&state) + i / 4) % c->lines];
	} else {
		s.number = (o->seed > 1 ? o->seed : 1) + 1 + i / 2;
	}
	return s;
}

static void plan_images(struct examination *w, const struct exam_options *o)
{
	w->image[w->images++].subset = (struct exam_subset){EXAM_SEED, o->seed};
	for (unsigned i = 0; i < o->cuts + 2 && w->cut->lines; i++) {
		struct exam_subset s = other_subset(w->cut, o, i);

		if (s.kind != EXAM_SEED || s.number != o->seed)
			w->image[w->images++].subset = s;
	}
}

/* Without media there is no reader after the last failure. */
static int without_media(struct examination *w)
{
	w->image = calloc(1, sizeof(*w->image));
	if (!w->image)
		return -ENOMEM;
	w->images = 1;
	w->image->shown = calloc(w->keys + 1, sizeof(w->image->shown[0]));
	return w->image->shown ? 0 : -ENOMEM;
}

static int boot_images(struct examination *w, const struct exam_options *o)
{
	const struct cut *c = w->cut;
	struct rebooter *r;

	if (!c->pool)
		return without_media(w);
	int error = rebooter_new(&r, c->store.store, &c->store.params);
	w->pool = malloc(c->len);
	w->image = calloc(o->cuts + 3, sizeof(*w->image));
	if (error || !w->pool || !w->image) {
		rebooter_free(error ? NULL : r);
		return -ENOMEM;
	}
	plan_images(w, o);
	for (unsigned i = 0; i < w->images && !error; i++) {
		struct image *image = &w->image[i];
		unsigned survived = lay_over(w, &image->subset);

		image->shown = calloc(w->keys + 1, sizeof(image->shown[0]));
		error = image->shown ? 0 : -ENOMEM;
		if (error)
			break;
		if (!i) {
			w->out->survived = survived;
			scan_torn(w);
		}
		w->reading = image;
		reboot_image(r, w->pool, w->key, w->keys, read_value, w, &image->rebooted);
		w->out->full |= image->rebooted.full;
	}
	w->out->images = w->images;
	rebooter_free(r);
	return error;
}

static const struct image *image_of(const struct examination *w, uint64_t seed)
{
	for (unsigned i = 0; i < w->images; i++)
		if (w->image[i].subset.kind == EXAM_SEED && w->image[i].subset.number == seed)
			return &w->image[i];
	return NULL;
}

/* --- one key --- */

/* KEEP's durable lower bound: an operation, or VALUE_ABSENT. */
static int32_t lower_bound_of(const struct examination *w, unsigned key)
{
	const struct image *none = image_of(w, 0), *all = image_of(w, 1);

	if (none && all && none->shown[key].state == KEY_VALUE &&
	    all->shown[key].state == KEY_VALUE && none->shown[key].id == all->shown[key].id) {
		int32_t op = recorded_put(w->history, none->shown[key].id);

		if (op >= 0)
			return op;
	}
	return w->history->start;
}

static void judge_image(struct examination *w, unsigned key, unsigned i, int32_t lower_bound,
			unsigned *broken)
{
	const unsigned want = CONTRACTS_ON_MACHINE;
	const struct key_state *shown = &w->image[i].shown[key];
	struct verdict v[TM_CONTRACTS] = {0};

	recorded_judge(w->history, shown, lower_bound, want, v);
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		struct exam_cell *cell = &w->out->cell[c];

		if (!(want & TM_BIT(c)))
			continue;
		if (!i)
			cell->unsure += v[c].unsure;
		if (!v[c].broken || *broken & TM_BIT(c) ||
		    (CONTRACTS_IF_LIN & TM_BIT(c) && v[TM_LIN].broken))
			continue;
		*broken |= TM_BIT(c);
		exam_note_break(i ? &cell->possible : &cell->happened, w, key, &v[c], &w->image[i],
				shown);
	}
}

static bool same_state(const struct key_state *a, const struct key_state *b)
{
	return a->state == b->state && (a->state != KEY_VALUE || a->id == b->id);
}

static int judge_key(struct examination *w, unsigned key, uint64_t *shown)
{
	struct recorded_key recorded = {.op = w->op + w->from[key],
					.ops = w->from[key + 1] - w->from[key],
					.first = w->first,
					.last = w->cut->boot,
					.start = cut_key_state(w->cut, w->first, w->key[key]),
					.shown = shown};
	unsigned broken = 0;

	for (unsigned i = 0; i < w->images; i++)
		if (w->image[i].shown[key].state == KEY_VALUE)
			shown[recorded.shown_n++] = w->image[i].shown[key].id;
	int error = recorded_make(w->history, &recorded);
	if (error)
		return error;
	w->out->left_out += w->history->left_out;
	w->out->trimmed += w->history->left_out > 0;
	if (w->history->trouble) {
		exam_note_not_judged(w, key);
		return 0;
	}
	for (unsigned i = 0; i < w->images; i++) {
		bool seen = false;

		for (unsigned e = 0; e < i && !seen; e++)
			seen = same_state(&w->image[i].shown[key], &w->image[e].shown[key]);
		if (!seen)
			judge_image(w, key, i, lower_bound_of(w, key), &broken);
	}
	return 0;
}

static int judge_keys(struct examination *w)
{
	uint64_t *shown = calloc(w->images + 1, sizeof(*shown));
	int error = 0;

	w->history = malloc(sizeof(*w->history));
	if (!w->history || !shown)
		error = -ENOMEM;
	for (unsigned k = 0; k < w->keys && !error; k++)
		error = judge_key(w, k, shown);
	free(shown);
	return error;
}

/* --- errors --- */

/* What there is to explain it, enum tm_reason: whatever befell the client's process, the server or
 * a connection of either. On a real machine anything may be held up. */
static unsigned reasons_of(const struct recording_op *op)
{
	unsigned reasons = TM_ALWAYS | TM_DISTURBED;

	if (op->calls || op->server_calls || (op->says == SAYS_INJECTED && op->vendor))
		reasons |= TM_CALL_FAILED;
	if (op->links || op->server_links)
		reasons |= TM_LINK_LOST;
	if (op->dropped)
		reasons |= TM_DROPPED;
	if (op->gone)
		reasons |= TM_SERVER_DIED;
	if (op->departed || reasons & (TM_CALL_FAILED | TM_LINK_LOST))
		reasons |= TM_PEER_FAILED;
	return reasons;
}

/* Who stopped its own session gets -ECANCELED. Whether a pool is full depends on what all clients
 * have put into it. */
static bool unexplained(const struct examination *w, const struct recording_op *op)
{
	static const uint8_t operation_of[] = {
		[HISTORY_PUT] = TM_PUT, [HISTORY_GET] = TM_GET, [HISTORY_DEL] = TM_DEL};

	return op->error && op->error != -ECANCELED && op->error != -ENOSPC &&
	       !reasons_explain(w->cut->store.store, reasons_of(op), operation_of[op->kind],
				op->error);
}

/* OK, of the boots that are judged, unless a recording does not say what was injected. */
static void judge_errors(struct examination *w)
{
	struct exam_cell *cell = &w->out->cell[TM_OK];
	const struct recording_op *first = NULL;
	uint32_t key = 0;
	unsigned keys = 0;

	for (size_t i = 0; i < w->ops; i++) {
		const struct recording_op *op = w->op[i];

		if (op->boot < w->first)
			continue;
		cell->judged = op->says;
		if (!op->says)
			break;
		if (!unexplained(w, op))
			continue;
		/* They are sorted by key. */
		keys += !keys || op->key != key;
		key = op->key;
		if (!first || op->boot < first->boot ||
		    (op->boot == first->boot && op->invoked_ns < first->invoked_ns))
			first = op;
	}
	if (cell->judged && first) {
		exam_note_error(&cell->happened, w, first);
		cell->happened.keys = keys;
	}
}

/* --- all of it --- */

static void note_boot(struct examination *w, unsigned i, enum tm_contract contract, const char *why)
{
	struct exam_cell *cell = &w->out->cell[contract];
	struct exam_break *b = i ? &cell->possible : &cell->happened;

	if (cell->happened.keys || b->keys)
		return;
	b->keys = 1;
	b->subset = w->image[i].subset;
	snprintf(b->text, sizeof(b->text), "%s", why);
}

static void note_boots(struct examination *w)
{
	for (unsigned i = 0; i < w->images; i++) {
		const struct rebooted *r = &w->image[i].rebooted;

		if (r->live_broken)
			note_boot(w, i, TM_LIVE, r->why);
		if (r->fsck_broken)
			note_boot(w, i, TM_FSCK, r->defect);
	}
}

static int note_shown(struct examination *w)
{
	w->out->shown = calloc(w->keys + 1, sizeof(w->out->shown[0]));
	if (!w->out->shown)
		return -ENOMEM;
	for (unsigned k = 0; k < w->keys; k++)
		w->out->shown[k] = (struct cut_start){w->key[k], w->image[0].shown[k]};
	return 0;
}

static int run_examination(struct examination *w, const struct exam_options *o, char *why, size_t n)
{
	int error = sort_ops(w, why, n);

	if (!error)
		error = find_keys(w);
	if (!error)
		error = boot_images(w, o);
	if (!error)
		error = judge_keys(w);
	if (!error)
		judge_errors(w);
	if (!error)
		error = note_shown(w);
	if (!error)
		note_boots(w);
	return error;
}

int examine(const struct cut *c, const struct exam_options *options, struct exam *out, char *why,
	    size_t n)
{
	struct examination w = {.cut = c, .out = out, .first = cut_first_boot(c)};

	assert(options->cuts <= EXAM_CUTS);
	memset(out, 0, sizeof(*out));
	out->first = w.first;
	out->last = c->boot;
	out->lines = (unsigned)c->lines;
	/* OK depends on the recordings: judge_errors(). AGREE: members are not asked. */
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		out->cell[k].judged = (CONTRACTS_ON_MACHINE |
				       (c->pool ? CONTRACTS_BY_RUNNING : 0)) &
				      TM_BIT(k) & ~TM_BIT(TM_AGREE);
	if (!c->boot || w.first > c->boot) {
		snprintf(why, n,
			 !c->boot ? "the pool was being formatted: there was nothing to lose yet"
				  : "the keys are known after boot %u, and boot %u was cut: "
				    "nothing is between",
			 c->start_boot, c->boot);
		return -EINVAL;
	}
	snprintf(why, n, "out of memory");
	int error = run_examination(&w, options, why, n);
	for (unsigned i = 0; w.image && i < w.images; i++)
		free(w.image[i].shown);
	free(w.image);
	free(w.op);
	free(w.put);
	free(w.key);
	free(w.from);
	free(w.pool);
	free(w.history);
	return error;
}

void exam_free(struct exam *e)
{
	free(e->shown);
	e->shown = NULL;
}

unsigned exam_watched(const struct tm_store *store)
{
	return expect_watched(store, LIVE_CONFIG);
}

int exam_print_start(FILE *out, const struct exam *e)
{
	fprintf(out, "tidemark-recovered 1\nboot %u\nkeys %u\n", e->last, e->keys);
	for (unsigned k = 0; k < e->keys; k++) {
		const struct cut_start *s = &e->shown[k];

		if (s->at.state == KEY_VALUE)
			fprintf(out, "%u 0x%016" PRIx64 "\n", s->key, s->at.id);
		else
			fprintf(out, "%u %s\n", s->key,
				s->at.state == KEY_ABSENT ? "absent" : "unknown");
	}
	return ferror(out) ? -EIO : 0;
}

/* --- what it comes to --- */

int exam_worst(const struct cut *c, const struct exam *e, bool *happened)
{
	const unsigned watched = exam_watched(c->store.store);

	for (unsigned rank = 0; rank < 4; rank++)
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			const struct exam_cell *cell = &e->cell[k];

			*happened = rank % 2 == 0;
			if (rank < 2 && !(watched & TM_BIT(k)))
				continue;
			if (*happened ? cell->happened.keys : cell->possible.keys)
				return (int)k;
		}
	return -1;
}
