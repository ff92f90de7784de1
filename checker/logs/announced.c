/* SPDX-License-Identifier: BSD-3-Clause */
/* See announced.h. */
#include "checker/logs/announced.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "checker/judge/transactions.h"
#include "core/array.h"
#include "core/rt/arena.h"
#include "core/text/text.h"

#define OPS (HISTORY_OPS - HISTORY_KEYS) /* the rest is for what is read after the failure */
/* Contracts ask when an operation was under way, not whose it was. */
#define SOMEBODY 1
#define READER	 2 /* after the power failure */

struct announced {
	struct announcements said;
	unsigned want;
	struct announced_fault *fault; /* of the answers alone */
	unsigned faults;
	/* The history up to the event `at`, and what the judge knows of it. */
	bool prepared;
	size_t at;
	struct history h;
	struct history_mark end;
	struct judge judge;
	struct model_search search[HISTORY_KEYS]; /* of keys whose values are alike */
	bool full[HISTORY_KEYS];
};

static const struct pm_call *call_of(const struct announced *a, uint32_t op)
{
	return &a->said.log->call[a->said.op[op].call];
}

/* --- up to a power failure --- */

/* The PUT whose value this is, of what is known, and was announced before `limit`: VALUE_UNKNOWN:
 * of several; VALUE_FOREIGN: of none. */
static int32_t put_of(const struct announcements *said, uint32_t value, uint32_t limit)
{
	uint32_t op = announcements_writer(said, value ? said->value[value].first : NO_OP, limit);
	if (op == NO_OP)
		return VALUE_FOREIGN;
	bool more = announcements_writer(said, said->op[op].next, limit) != NO_OP;
	return more ? VALUE_UNKNOWN : (int32_t)op;
}

/* Of an operation that is answered there: VALUE_UNKNOWN if it tells nothing. */
static int32_t answered_value(const struct announcements *said, const struct announcement *op)
{
	if (op->left_out || op->error || op->aborted || op->kind == REGISTER_CAS)
		return VALUE_UNKNOWN;
	if (op->kind != REGISTER_GET || !op->value)
		return VALUE_ABSENT;
	return put_of(said, op->value, op->answer);
}

/* What a history knows of it: a CAS writes, unless it has said that it did not. */
static enum history_kind kind_of(const struct announcements *said, const struct announcement *op)
{
	static const uint8_t kinds[] = {HISTORY_PUT, HISTORY_GET, HISTORY_DEL, HISTORY_PUT};
	return op->failed && announcements_known(said, op->answer)
		       ? HISTORY_GET
		       : (enum history_kind)kinds[op->kind];
}

/* Operations are invoked in the order in which they are kept: they have the same numbers here as
 * there. What answers alone contradict is told elsewhere (find_faults()), and not here. */
static void begin_operation(const struct announcements *said, struct history *h, uint32_t op)
{
	int number = history_invoke(h, SOMEBODY, kind_of(said, &said->op[op]), said->op[op].key);
	assert(number == (int)op);
	if (said->op[op].joined)
		history_join(h, number);
}

static void end_operation(const struct announcements *said, struct history *h, uint32_t at)
{
	const struct announcement *op = &said->op[at];
	enum history_kind kind = kind_of(said, op);
	if (op->left_out && kind != HISTORY_GET) /* a CAS: it may have, or not */
		return;
	int32_t value = answered_value(said, op);
	bool tells = kind == HISTORY_GET ? value >= VALUE_ABSENT : op->answered;
	history_return(h, (int)at,
		       tells	      ? 0
		       : op->aborted  ? -ECANCELED
		       : op->answered ? -ENOTUNIQ
				      : -EIO,
		       value);
	if (op->aborted)
		history_aborted(h, (int)at);
}

static void fill_history(const struct announcements *said, struct history *h)
{
	const struct pm_log *log = said->log;
	history_reset(h, (unsigned)said->keys);
	for (uint32_t i = 0; i < log->calls; i++) {
		uint32_t first = said->of[i], n = (uint32_t)announcements_size(said, first);
		for (uint32_t k = 0; k < n && announcements_known(said, i); k++)
			(log->call[i].returns ? end_operation : begin_operation)(said, h,
										 first + k);
	}
}

/* What may be the values of keys by the model. */
static void follow_models(struct announced *a)
{
	for (unsigned k = 0; k < a->said.keys && a->want & TM_BIT(TM_DUR); k++) {
		unsigned n, lost;
		if (!a->said.key[k].alike)
			continue;
		struct register_op *op = announcements_register(&a->said, k, &n);
		a->full[k] = register_follow(&a->search[k], op, n, &lost) != REGISTER_FITS;
		free(op);
	}
}

static void make_history(struct announced *a, size_t at)
{
	a->said.until = at;
	fill_history(&a->said, &a->h);
	follow_models(a);
	history_crash(&a->h);
	judge_reset(&a->judge);
	judge_prepare(&a->judge, &a->h);
	a->end = history_mark(&a->h);
	a->at = at;
	a->prepared = true;
}

/* --- the answers alone --- */

static void add_fault(struct announced *a, struct announced_fault fault)
{
	if (!ARRAY_ROOM_FOR_ONE(a->fault, a->faults))
		arena_exhausted();
	a->fault[a->faults++] = fault;
}

/* One that is told by one operation, or by another one before it; `against` -1: there is none. */
static void add_single(struct announced *a, enum tm_contract contract, uint32_t op, int against)
{
	uint32_t *named = calloc(2, sizeof(*named));
	unsigned n = 0;
	if (!named)
		arena_exhausted();
	if (against >= 0)
		named[n++] = (uint32_t)against;
	named[n++] = op;
	add_fault(a, (struct announced_fault){.contract = (uint8_t)contract,
					      .key = a->said.op[op].key,
					      .lost = op,
					      .op = named,
					      .ops = n});
}

/* RDA, OK: the first operation of each is told. Returns whether the answer tells something. */
static bool judge_answer(struct announced *a, uint32_t op, unsigned *seen)
{
	const struct announcement *o = &a->said.op[op];
	bool foreign = o->kind == REGISTER_GET && o->answered && o->value &&
		       put_of(&a->said, o->value, o->answer) == VALUE_FOREIGN;
	enum tm_contract contract = foreign ? TM_RDA : TM_OK;
	if ((foreign || o->error) && a->want & TM_BIT(contract) && !(*seen & TM_BIT(contract))) {
		add_single(a, contract, op, -1);
		*seen |= TM_BIT(contract);
	}
	return !foreign;
}

/* LIN: what does not fit is told once, and from there on the key's answers do not count. */
static void judge_key(struct announced *a, unsigned key)
{
	const unsigned lin = TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF);
	struct announced_fault fault;
	for (bool told = false; !announcements_explained(&a->said, key, &fault); told = true) {
		uint32_t op = a->said.key[key].first;
		for (unsigned i = 0; i < a->said.key[key].ops && !fault.unsure; i++) {
			struct announcement *o = &a->said.op[op];
			o->left_out |= o->answered && o->kind != REGISTER_PUT &&
				       o->kind != REGISTER_DEL &&
				       o->answer >= a->said.op[fault.lost].answer;
			op = o->sibling;
		}
		if (!told && a->want & lin)
			add_fault(a, fault);
		else
			free(fault.op);
		if (fault.unsure)
			return;
	}
}

/* NORES, of what is not left out. */
static int find_gone(struct announced *a, int *against)
{
	struct verdict v[TM_CONTRACTS] = {{0}};
	a->said.until = SIZE_MAX;
	fill_history(&a->said, &a->h);
	judge_reset(&a->judge);
	judge_prepare(&a->judge, &a->h);
	judge_recovered(&a->judge, &a->h, TM_BIT(TM_NORES), NULL, v);
	*against = v[TM_NORES].against;
	return v[TM_NORES].broken ? v[TM_NORES].op : -1;
}

/* Those of the cycle, a transaction by its first. */
static struct announced_fault cycle_fault(const struct announcements *said,
					  enum tm_contract contract, const struct verdict *v,
					  const struct transaction_cycle *c)
{
	struct announced_fault fault = {.contract = (uint8_t)contract, .unsure = v->unsure};
	assert(v->broken || v->unsure);
	if (v->unsure)
		return fault;
	fault.lost = (uint32_t)v->op;
	fault.key = said->op[v->op].key;
	fault.op = calloc(c->steps + 1, sizeof(*fault.op));
	if (!fault.op)
		arena_exhausted();
	for (unsigned i = 0; i < c->steps; i++)
		if (c->step[i].first >= 0)
			fault.op[fault.ops++] = (uint32_t)c->step[i].first;
	/* Who read what was aborted is not a step. */
	if (c->step[0].edge == EDGE_ABORTED)
		fault.op[fault.ops++] = said->of[said->op[v->op].call];
	return fault;
}

bool announced_serializable(struct announcements *said, struct announced_fault *fault)
{
	struct history *h = calloc(1, sizeof(*h));
	struct transaction_cycle c;
	struct verdict v = {.unsure = true};
	if (!h)
		arena_exhausted();
	if (said->ops <= HISTORY_OPS && said->keys <= HISTORY_KEYS) {
		fill_history(said, h);
		transactions_sser(h, &v, &c);
	}
	free(h);
	if (!v.unsure && !v.broken)
		return true;
	*fault = cycle_fault(said, TM_SSER, &v, &c);
	return false;
}

/* ATOM: what a reader has read in part is told once, and does not count. */
static void judge_transactions(struct announced *a)
{
	struct announced_fault fault;
	struct transaction_cycle c;
	struct verdict v;
	if (!a->said.transactions)
		return;
	a->said.until = SIZE_MAX;
	if (a->want & TM_BIT(TM_SSER) && !announced_serializable(&a->said, &fault))
		add_fault(a, fault);
	for (bool told = false; a->want & TM_BIT(TM_ATOM); told = true) {
		fill_history(&a->said, &a->h);
		transactions_atom(&a->h, &v, &c);
		if (!told && (v.broken || v.unsure))
			add_fault(a, cycle_fault(&a->said, TM_ATOM, &v, &c));
		if (!v.broken)
			return;
		int first = transaction_first(&a->h, v.op);
		for (unsigned i = 0; i < transaction_size(&a->h, first); i++)
			a->said.op[first + (int)i].left_out |= a->h.op[first + (int)i].kind ==
							       HISTORY_GET;
	}
}

static void find_faults(struct announced *a)
{
	unsigned seen = 0;
	int gone, against;
	for (uint32_t op = 0; op < a->said.ops; op++)
		if (!judge_answer(a, op, &seen))
			a->said.op[op].left_out = true;
	judge_transactions(a);
	gone = a->want & TM_BIT(TM_NORES) ? find_gone(a, &against) : -1;
	if (gone >= 0)
		add_single(a, TM_NORES, (uint32_t)gone, against);
	for (unsigned key = 0; key < a->said.keys; key++)
		judge_key(a, key);
	while (gone >= 0 && (gone = find_gone(a, &against)) >= 0)
		a->said.op[gone].left_out = true;
}

int announced_open(struct announced **out, const struct pm_log *log, unsigned want, char *why,
		   size_t n)
{
	struct announced *a = calloc(1, sizeof(*a));
	int error = a ? announcements_read(&a->said, log, OPS, HISTORY_KEYS, why, n) : -ENOMEM;
	if (!a)
		snprintf(why, n, "%s", strerror(ENOMEM));
	if (error) {
		announced_close(a);
		return error;
	}
	a->want = want;
	find_faults(a);
	*out = a;
	return 0;
}

void announced_close(struct announced *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < a->faults; i++)
		free(a->fault[i].op);
	for (unsigned k = 0; k < HISTORY_KEYS; k++)
		model_set_free(&a->search[k].set);
	free(a->fault);
	announcements_free(&a->said);
	free(a);
}

unsigned announced_faults(const struct announced *a, const struct announcements **said,
			  const struct announced_fault **fault)
{
	*said = &a->said;
	*fault = a->fault;
	return a->faults;
}

/* --- after it --- */

#define NOBODY UINT32_MAX /* a value that nobody announced; 0: absent */

static int read_line(struct announced *a, struct words line, uint32_t *shown)
{
	struct words rest = line, name = words_take(&rest);
	if (!name.len || memchr(line.at, 0, line.len))
		return -EINVAL;
	int key = announcements_key(&a->said, name);
	if (key < 0)
		return 0;
	uint32_t value = announcements_value(&a->said, (unsigned)key, rest);
	shown[key] = name.len == line.len ? 0 : value ? value : NOBODY;
	return 0;
}

static int read_text(struct announced *a, struct words text, uint32_t *shown)
{
	int error = 0;
	memset(shown, 0, a->said.keys * sizeof(*shown));
	while (text.len && !error) {
		const char *newline = memchr(text.at, '\n', text.len);
		struct words line = {text.at, newline ? (size_t)(newline - text.at) : text.len};
		size_t used = line.len + (newline != NULL);
		if (line.len)
			error = read_line(a, line, shown);
		text.at += used;
		text.len -= used;
	}
	return error;
}

/* The PUT that had begun when the power failed, as put_of(). */
static int32_t put_shown(const struct announced *a, uint32_t value)
{
	if (!value)
		return VALUE_ABSENT;
	return value == NOBODY ? VALUE_FOREIGN : put_of(&a->said, value, NO_OP);
}

/* One of those whose value is there, for words. */
static int16_t writer_shown(const struct announced *a, uint32_t value)
{
	int32_t put = put_shown(a, value);
	if (put == VALUE_UNKNOWN)
		put = (int32_t)announcements_writer(&a->said, a->said.value[value].first, NO_OP);
	return (int16_t)put;
}

/* DUR by the model: the latest update that was answered, and wrote something else. */
static int latest_update(const struct announced *a, unsigned key, uint32_t shown)
{
	int latest = -1;
	uint32_t op = a->said.key[key].first;
	for (unsigned i = 0; i < a->said.key[key].ops; i++, op = a->said.op[op].sibling) {
		const struct announcement *o = &a->said.op[op];
		if (o->answered && !o->failed && !o->left_out && o->kind != REGISTER_GET &&
		    announcements_known(&a->said, o->answer) && o->value != shown)
			latest = (int)op;
	}
	return latest;
}

static bool model_breaks(struct announced *a, const uint32_t *shown, struct announced_break *broken)
{
	for (unsigned k = 0; k < a->said.keys && a->want & TM_BIT(TM_DUR); k++) {
		int32_t put = put_shown(a, shown[k]);
		if (!a->said.key[k].alike || a->full[k] || put == VALUE_FOREIGN)
			continue;
		int32_t number = shown[k] ? a->said.value[shown[k]].number : REGISTER_ABSENT;
		if (register_may_be(&a->search[k], number))
			continue;
		*broken = (struct announced_break){
			.contract = TM_DUR,
			.key = (uint8_t)k,
			.shown = writer_shown(a, shown[k]),
			.op = -1,
			.against = (int16_t)latest_update(a, k, shown[k])};
		return true;
	}
	return false;
}

int announced_judge(struct announced *a, size_t at, const char *text, size_t len,
		    struct announced_break *broken)
{
	uint32_t shown[HISTORY_KEYS];
	struct verdict v[TM_CONTRACTS] = {{0}};
	if (read_text(a, (struct words){text, len}, shown))
		return -EINVAL;
	if (!a->prepared || a->at != at)
		make_history(a, at);
	assert(a->h.hash == a->end.hash); /* the last image's GETs are gone */
	for (unsigned k = 0; k < a->said.keys; k++) {
		int32_t value = put_shown(a, shown[k]);
		if (value == VALUE_UNKNOWN)
			continue;
		int get = history_invoke(&a->h, READER, HISTORY_GET, k);
		history_return(&a->h, get, 0, value);
	}
	const unsigned want = a->want & ~TM_BIT(TM_SSER); /* which answers alone break */
	judge_recovered(&a->judge, &a->h, want, NULL, v);
	unsigned c = 0;
	while (c < TM_CONTRACTS && !(want & TM_BIT(c) && v[c].broken))
		c++;
	bool by_model = c > TM_DUR && model_breaks(a, shown, broken);
	if (c < TM_CONTRACTS && !by_model) {
		int op = v[c].op;
		bool after = op >= (int)a->end.ops;
		int key = op < 0 ? 0 : a->h.op[op].key;
		*broken = (struct announced_break){.contract = (uint8_t)c,
						   .key = (uint8_t)key,
						   .shown = writer_shown(a, shown[key]),
						   .op = (int16_t)(after ? -1 : op),
						   .against = v[c].against};
	}
	history_rewind(&a->h, &a->end);
	return c < TM_CONTRACTS || by_model;
}

/* --- in words --- */

static const char *text_of(const struct announced *a, size_t call)
{
	return a->said.log->source[a->said.log->call[call].words];
}

bool announced_operation(const struct announced *a, size_t at, const struct announced_break *broken,
			 unsigned n, struct announced_operation *out)
{
	const struct pm_call *call = a->said.log->call;
	if (n >= a->said.ops || !announced_by(call_of(a, n), at))
		return false;
	const struct announcement *op = &a->said.op[n];
	bool answered = op->answer != NO_OP && announced_by(&call[op->answer], at);
	*out = (struct announced_operation){.client = call[op->call].client,
					    .call = text_of(a, op->call),
					    .answer = answered ? text_of(a, op->answer) : NULL,
					    .joined = op->joined};
	const unsigned size = (unsigned)announcements_size(&a->said, n);
	for (int i = (int)n; broken && i < (int)(n + size); i++)
		out->named |= i == broken->op || i == broken->against ||
			      (broken->op < 0 && i == broken->shown);
	return true;
}

void announced_words(const struct announced *a, const struct announced_break *b, char *out,
		     size_t n)
{
	const struct announcement *op = b->op >= 0 ? &a->said.op[b->op] : NULL;
	struct words key = a->said.key[b->key].name;
	FILE *to = fmemopen(out, n, "w");
	if (!to)
		return;
	fprintf(to, "%s: ", contract_name((enum tm_contract)b->contract));
	if (op)
		fprintf(to, "%s of client %llu was answered \"%s\"",
			text_show(text_of(a, op->call)).text,
			(unsigned long long)call_of(a, (uint32_t)b->op)->client,
			op->answer == NO_OP ? "" : text_show(text_of(a, op->answer)).text);
	else if (b->shown == VALUE_ABSENT)
		fprintf(to, "%.*s is absent", (int)key.len, key.at);
	else if (b->shown == VALUE_FOREIGN)
		fprintf(to, "%.*s has a value that nobody had put", (int)key.len, key.at);
	else
		fprintf(to, "%.*s has the value of %s", (int)key.len, key.at,
			text_show(text_of(a, a->said.op[b->shown].call)).text);
	if (b->against >= 0 && b->contract == TM_ATOM) {
		fprintf(to, ", and another key has what %s of client %llu put",
			text_show(text_of(a, a->said.op[b->against].call)).text,
			(unsigned long long)call_of(a, (uint32_t)b->against)->client);
	} else if (b->against >= 0) {
		const struct announcement *other = &a->said.op[b->against];
		fprintf(to, "; %s of client %llu had %s", text_show(text_of(a, other->call)).text,
			(unsigned long long)call_of(a, (uint32_t)b->against)->client,
			other->answer == NO_OP ? "begun" : "been answered");
	}
	fclose(to);
}
