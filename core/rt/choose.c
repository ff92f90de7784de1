/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of kinds of choices, names of choice points, and actors. See choose.h. */
#include "core/rt/choose.h"
#include <assert.h>
#include <string.h>

uint64_t choice_delay_ns(unsigned k)
{
	/* From "the next step of another task" to "for ever": one packet takes some
	 * hundred ns, an operation some us, a retransmission some ms. The longest
	 * finite one stays far below the time after which stores call a writer dead. */
	static const uint64_t ns[DELAYS + 1] = {
		0, 100, 500, 2000, 8000, 30000, 200000, 5000000, 100000000, UINT64_MAX / 4,
	};
	assert(delay_is_timed(k));
	return k >= DELAY_NS ? k - DELAY_NS : ns[k];
}

unsigned delay_of_ns(uint64_t ns)
{
	assert(ns && ns <= DELAY_NS_MOST);
	for (unsigned k = 1; k < DELAY_FOREVER; k++)
		if (choice_delay_ns(k) == ns)
			return k;
	return DELAY_NS + (unsigned)ns;
}

const struct server_event_row server_events[SERVER_EVENTS_END] = {
#define X(name, ...) [SERVER_##name] = {__VA_ARGS__},
	SERVER_EVENTS(X)
#undef X
};

const struct choice_traits choice_traits[CHOICE_KINDS] = {
#define X(name, record, ...) [CHOICE_##name] = {__VA_ARGS__},
	CHOICES(X)
#undef X
};

unsigned choice_delay(unsigned kind, unsigned answer)
{
	assert(kind < CHOICE_KINDS);
	unsigned first = choice_traits[kind].delay;
	return first && answer >= first ? answer - first + 1 : 0;
}

unsigned choice_delay_answer(unsigned kind, unsigned k)
{
	assert(kind < CHOICE_KINDS);
	unsigned first = choice_traits[kind].delay;
	assert(first && k && (k < DEATHS_END || k >= DELAY_NS));
	assert(!delay_kills(k) || choice_traits[kind].forever);
	return first + k - 1;
}

bool choice_allows(unsigned kind, unsigned n, unsigned answer)
{
	unsigned k = choice_delay(kind, answer);
	assert(kind < CHOICE_KINDS && n);
	if (delay_kills(k))
		return choice_traits[kind].forever;
	return answer < n || k == DELAY_QUIESCENCE || k == DELAY_SWITCH || k > DELAY_NS;
}

static uint64_t mix64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x;
}

void actor_init(struct actor *actor, const char *name)
{
	memset(actor, 0, sizeof(*actor));
	memcpy(actor->name, name, strnlen(name, sizeof(actor->name) - 1));
	actor->name_hash = 0x9e3779b97f4a7c15u;
	for (const char *c = actor->name; *c; c++)
		actor->name_hash = mix64(actor->name_hash ^ (unsigned char)*c);
	/* No operation's work yet, for the first time: the label "none" again is its second. */
	actor->occurrence = actor->seen[0].occurrence = 1;
}

void actor_label(struct actor *actor, struct op_label op)
{
	const unsigned client = op.client % ACTOR_CLIENTS;
	assert(op.kind < OP_KINDS);
	assert(!op.client || op.kind); /* a client's operation has a name */
	uint16_t occurrence = op_label_equal(actor->seen[client].op, op)
				      ? actor->seen[client].occurrence + 1
				      : 1;
	actor->seen[client].op = op;
	actor->seen[client].occurrence = occurrence;
	actor->op = op;
	actor->occurrence = occurrence;
	memset(actor->count, 0, sizeof(actor->count));
}

uint64_t choice_key(const struct choice_point *at)
{
	uint64_t label = (uint64_t)at->op.client << 56 | (uint64_t)at->op.kind << 48 |
			 (uint64_t)at->op.nth << 32 | (uint64_t)at->occurrence << 16 | at->kind;
	uint64_t h = mix64((at->who ? at->who->name_hash : 0) ^ label);
	h = mix64(h ^ ((uint64_t)at->a << 32 | at->b));
	return mix64(h ^ at->c);
}
