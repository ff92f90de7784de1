/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader of litmus tests: what is observed, and conditions; and whether a condition holds for
 * an outcome.
 *
 * A formula is kept in prefix order. It is read in infix order: when an operator comes, its term
 * is put before those of its left operand, which are at the end.
 */
#include <stdio.h>
#include <string.h>
#include "scenarios/litmus_lex.h"

/* Depth of parentheses and negations: a file with more is made to exhaust the stack. */
#define DEPTH 64

/* --- places --- */

/* Take [i], if it is there. */
static uint16_t read_index(struct litmus_reader *r, unsigned location)
{
	uint16_t word = 0;
	if (litmus_take(r, "[")) {
		word = (uint16_t)litmus_number(r, "a word", 0,
					       r->test->location[location].words - 1u);
		litmus_need(r, "]");
	}
	return word;
}

/* P0: or 0: */
static uint8_t read_thread(struct litmus_reader *r)
{
	char name[16];
	for (unsigned t = 0; t < r->test->threads; t++) {
		snprintf(name, sizeof(name), "P%u", t);
		if (litmus_is(&r->token, name) ||
		    (r->token.kind == TOKEN_NUMBER && r->token.number == t)) {
			litmus_next(r);
			litmus_need(r, ":");
			return (uint8_t)t;
		}
	}
	snprintf(name, sizeof(name), "P%u", r->test->threads - 1);
	litmus_wrong(r, &r->token, "%s; expected a thread, P0%s%s", litmus_show(&r->token).text,
		     r->test->threads > 1 ? " to " : "", r->test->threads > 1 ? name : "");
	return 0;
}

static struct litmus_place read_place(struct litmus_reader *r)
{
	struct litmus_place place = {.what = LITMUS_MEMORY};
	if (r->token.kind == TOKEN_NUMBER || litmus_is_thread(&r->token)) {
		place.what = LITMUS_REGISTER;
		place.thread = read_thread(r);
		place.reg = litmus_register(r);
		return place;
	}
	if (litmus_take(r, "crash")) {
		place.what = LITMUS_CRASH;
		litmus_need(r, ":");
	}
	struct token t = r->token;
	if (t.kind != TOKEN_WORD || litmus_is_register(&t)) {
		litmus_expected(r, "a place: P0:r1, x or crash:x");
		return place;
	}
	place.location = litmus_location(r);
	if (place.what == LITMUS_CRASH && r->test->location[place.location].dram)
		litmus_wrong(
			r, &t,
			"%s is in DRAM, which no power failure spares; expected a location in PM",
			litmus_show(&t).text);
	if (place.what == LITMUS_MEMORY && r->test->one_fails &&
	    r->test->location[place.location].host == r->test->fails)
		litmus_wrong(r, &t, "%s is in memory of host %s, which fails; expected crash:%s",
			     litmus_show(&t).text, r->test->host[r->test->fails],
			     r->test->location[place.location].name);
	place.word = read_index(r, place.location);
	return place;
}

static bool same_place(const struct litmus_place *a, const struct litmus_place *b)
{
	return a->what == b->what && a->thread == b->thread && a->reg == b->reg &&
	       a->location == b->location && a->word == b->word;
}

/* Read a place, have it observed, and return its number. */
static uint8_t read_observed(struct litmus_reader *r)
{
	struct litmus_test *test = r->test;
	struct token t = r->token;
	struct litmus_place place = read_place(r);
	unsigned i = 0;
	while (i < test->observeds && !same_place(&test->observed[i], &place))
		i++;
	if (i == LITMUS_OBSERVED)
		litmus_wrong(r, &t, "more than %d places in conditions and `observe`",
			     LITMUS_OBSERVED);
	if (r->status)
		return 0;
	test->observed[i] = place;
	test->observeds += i == test->observeds;
	return (uint8_t)i;
}

/* --- formulas --- */

/* Put a term before those from `at` on. */
static void insert_term(struct litmus_reader *r, unsigned at, struct litmus_term term)
{
	struct litmus_test *test = r->test;
	if (test->terms == LITMUS_TERMS) {
		litmus_wrong(r, &r->token, "more than %d atoms and operators", LITMUS_TERMS);
		return;
	}
	memmove(&test->term[at + 1], &test->term[at], (test->terms++ - at) * sizeof(term));
	test->term[at] = term;
}

static void insert_operator(struct litmus_reader *r, unsigned at, enum litmus_term_kind kind)
{
	insert_term(r, at, (struct litmus_term){.kind = (uint8_t)kind});
}

static void read_implication(struct litmus_reader *r);

static void read_atom(struct litmus_reader *r)
{
	struct litmus_test *test = r->test;
	struct token t = r->token;
	struct litmus_term term = {.kind = LITMUS_ATOM, .observed = read_observed(r)};
	uint8_t what = test->observed[term.observed].what;
	term.equal = litmus_take(r, "=");
	if (!term.equal && !litmus_take(r, "!="))
		litmus_expected(r, "= or !=");
	term.number = litmus_number(r, "a number", 0, UINT64_MAX);
	r->crash |= what == LITMUS_CRASH;
	r->memory |= what == LITMUS_MEMORY;
	if (r->crash && r->memory)
		litmus_wrong(
			r, &t,
			"%s; expected memory before a power failure (x) or after it (crash:x), "
			"not both in one condition",
			litmus_show(&t).text);
	insert_term(r, test->terms, term);
}

/* ~C, (C), true, an atom */
static void read_unary(struct litmus_reader *r)
{
	if (++r->depth > DEPTH) {
		litmus_wrong(r, &r->token, "more than %d ( and ~ within each other", DEPTH);
	} else if (litmus_take(r, "~")) {
		insert_operator(r, r->test->terms, LITMUS_NOT);
		read_unary(r);
	} else if (litmus_take(r, "(")) {
		read_implication(r);
		litmus_need(r, ")");
	} else if (litmus_take(r, "true")) {
		insert_operator(r, r->test->terms, LITMUS_TRUE);
	} else {
		read_atom(r);
	}
	r->depth--;
}

/* C /\ C, from the left */
static void read_conjunction(struct litmus_reader *r)
{
	unsigned first = r->test->terms;
	read_unary(r);
	while (litmus_take(r, "/\\")) {
		insert_operator(r, first, LITMUS_AND);
		read_unary(r);
	}
}

/* C \/ C, from the left */
static void read_disjunction(struct litmus_reader *r)
{
	unsigned first = r->test->terms;
	read_conjunction(r);
	while (litmus_take(r, "\\/")) {
		insert_operator(r, first, LITMUS_OR);
		read_conjunction(r);
	}
}

/* C -> C, from the right */
static void read_implication(struct litmus_reader *r)
{
	unsigned first = r->test->terms;
	read_disjunction(r);
	if (litmus_take(r, "->")) {
		insert_operator(r, first, LITMUS_IMPLIES);
		read_implication(r);
	}
}

/* --- conditions --- */

static const char *const quantifiers[] = {"exists", "never", "forall"};

static int find_quantifier(const struct token *t)
{
	for (unsigned q = 0; q < 3; q++)
		if (litmus_is(t, quantifiers[q]))
			return (int)q;
	return -1;
}

bool litmus_condition_word(const struct token *t)
{
	return litmus_is(t, "observe") || find_quantifier(t) >= 0;
}

static void read_condition(struct litmus_reader *r, unsigned quantifier)
{
	struct litmus_test *test = r->test;
	struct token t = r->token;
	if (test->conditions == LITMUS_CONDITIONS) {
		litmus_wrong(r, &t, "more than %d conditions", LITMUS_CONDITIONS);
		return;
	}
	struct litmus_condition *c = &test->condition[test->conditions++];
	c->quantifier = (uint8_t)quantifier;
	c->line = t.line;
	c->first = (uint16_t)test->terms;
	r->crash = r->memory = false;
	litmus_next(r);
	read_implication(r);
	c->crash = r->crash;
	litmus_copy(r, t.text, c->text, sizeof(c->text));
}

void litmus_read_conditions(struct litmus_reader *r)
{
	int quantifier;
	while (!r->status && r->token.kind != TOKEN_END) {
		quantifier = find_quantifier(&r->token);
		if (quantifier >= 0)
			read_condition(r, (unsigned)quantifier);
		else if (litmus_take(r, "observe"))
			do
				read_observed(r);
			while (litmus_take(r, ","));
		else
			litmus_expected(r, r->test->conditions
						   ? "an operator, exists, never, forall or the end"
						   : "exists, never or forall");
	}
	if (!r->test->conditions)
		litmus_expected(r, "a condition: exists, never or forall");
}

/* --- what they mean --- */

/* The value of the formula at term *at, which moves past it. */
static bool holds(const struct litmus_test *test, unsigned *at, const uint64_t *value)
{
	const struct litmus_term *term = &test->term[(*at)++];
	if (term->kind == LITMUS_TRUE)
		return true;
	if (term->kind == LITMUS_ATOM)
		return (value[term->observed] == term->number) == term->equal;
	bool left = holds(test, at, value);
	if (term->kind == LITMUS_NOT)
		return !left;
	bool right = holds(test, at, value);
	if (term->kind == LITMUS_AND)
		return left && right;
	if (term->kind == LITMUS_OR)
		return left || right;
	return !left || right;
}

bool litmus_holds(const struct litmus_test *test, const struct litmus_condition *condition,
		  const uint64_t *value)
{
	unsigned at = condition->first;
	return holds(test, &at, value);
}

/* The places that conditions over crash outcomes name; false: there is no such condition. */
static bool named_at_crash(const struct litmus_test *test, bool named[LITMUS_OBSERVED])
{
	bool any = false;
	for (unsigned c = 0; c < test->conditions; c++) {
		unsigned end = c + 1 < test->conditions ? test->condition[c + 1].first
							: test->terms;
		any |= test->condition[c].crash;
		for (unsigned t = test->condition[c].first; t < end && test->condition[c].crash;
		     t++)
			if (test->term[t].kind == LITMUS_ATOM)
				named[test->term[t].observed] = true;
	}
	return any;
}

void litmus_places(const struct litmus_test *test, bool crash, bool belongs[LITMUS_OBSERVED])
{
	bool named[LITMUS_OBSERVED] = {false}, any = named_at_crash(test, named);
	for (unsigned i = 0; i < LITMUS_OBSERVED; i++) {
		uint8_t what = test->observed[i].what;
		if (what == LITMUS_REGISTER)
			belongs[i] = !crash || !any || named[i];
		else
			belongs[i] = (what == LITMUS_CRASH) == crash;
		belongs[i] &= i < test->observeds;
	}
}

int litmus_place_print(const struct litmus_test *test, const struct litmus_place *place, char *buf,
		       size_t n)
{
	const struct litmus_location *l = &test->location[place->location];
	const char *when = place->what == LITMUS_CRASH ? "crash:" : "";
	if (place->what == LITMUS_REGISTER)
		return snprintf(buf, n, "P%u:r%u", place->thread, place->reg);
	if (l->words > 1)
		return snprintf(buf, n, "%s%s[%u]", when, l->name, place->word);
	return snprintf(buf, n, "%s%s", when, l->name);
}
