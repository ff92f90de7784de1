/* SPDX-License-Identifier: BSD-3-Clause */
#include "faultinject/trace_source.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A line that has another number of versions is not the line that was meant. */
static bool has_versions(unsigned answers, unsigned versions)
{
	for (unsigned torn = 0; torn < TORN_VALUES; torn++)
		if (answers == pmem_answers(versions, (enum line_torn)torn))
			return true;
	return false;
}

static unsigned find_answer(struct trace_source *t, const struct choice_point *at, unsigned n)
{
	uint64_t key = choice_key(at);
	struct deviation d;
	for (unsigned i = 0; i < t->list->n; i++) {
		const struct deviation *want = &t->list->d[i];
		if (t->key[i] != key || t->used[i] || !choice_allows(at->kind, n, want->answer))
			continue;
		if (at->kind == CHOICE_LINE && want->c && !has_versions(n, want->c))
			continue;
		assert(t->taken.n < t->list->n); /* each is taken once */
		assert(want->kind == at->kind);
		t->used[i] = true;
		deviation_record(&d, at, want->answer, n);
		d.c = want->c;
		d.line = want->line;
		deviations_add(&t->taken, &d);
		return want->answer;
	}
	return 0;
}

static unsigned trace_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct trace_source *t = (struct trace_source *)source;
	unsigned answer = find_answer(t, at, n);
	if (t->asked)
		t->asked(t->asked_arg, at, answer, n);
	return answer;
}

int trace_start(struct trace_source *t, const struct deviations *list)
{
	memset(t, 0, sizeof(*t));
	t->source.answer = trace_answer;
	t->source.begins = true;
	t->list = list;
	t->key = calloc(list->n + 1, sizeof(*t->key));
	t->used = calloc(list->n + 1, sizeof(*t->used));
	if (!t->key || !t->used) {
		trace_finish(t);
		return -ENOMEM;
	}
	bool any[CHOICE_KINDS] = {false};
	for (unsigned i = 0; i < list->n; i++) {
		struct deviation named = list->d[i];
		any[named.kind] = true;
		t->source.atomics |= named.kind == CHOICE_STEP && named.a == STEP_ATOMIC;
		if (named.kind == CHOICE_LINE)
			named.c = 0; /* versions: checked at the answer */
		t->key[i] = deviation_key(&named);
	}
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		t->source.skip[k] = any[k] ? 0 : UINT32_MAX;
	return 0;
}

void trace_finish(struct trace_source *t)
{
	free(t->key);
	free(t->used);
	deviations_free(&t->taken);
	memset(t, 0, sizeof(*t));
}

const struct deviation *trace_unused(const struct trace_source *t)
{
	for (unsigned i = 0; i < t->list->n; i++)
		if (!t->used[i])
			return &t->list->d[i];
	return NULL;
}
