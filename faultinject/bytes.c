/* SPDX-License-Identifier: BSD-3-Clause */
/* See bytes.h. */
#include "faultinject/bytes.h"
#include <assert.h>
#include <string.h>

static_assert(RECORD_STEP + STEP_BEGIN == RECORD_PACKET, "nothing asks for that step here");

/* The kind of choice that a class of records means; CHOICE_KINDS: there is no such class. */
static uint8_t kind_of(unsigned class)
{
	static const uint8_t first[] = {
#define X(name, record, ...) record,
		CHOICES(X)
#undef X
	};
	uint8_t k = 0;
	if (class < RECORD_STEP + STEP_BEGIN || class == RECORD_POST)
		return CHOICE_STEP;
	if (class == RECORD_LINES)
		return CHOICE_LINE;
	while (k < CHOICE_KINDS && first[k] != class)
		k++;
	return k;
}

static bool is_meant(const struct byte_source *b, const struct byte_record *r,
		     const struct choice_point *at)
{
	if (at->kind == CHOICE_CRASH)
		return (r->whose & 1) == b->machine;
	if (at->kind == CHOICE_LINE)
		return true;
	/* A lock has no class of its own, so that inputs that were kept mean what they meant: it
	 * counts as a fence, which it is, too. */
	if (at->kind == CHOICE_STEP &&
	    (at->a == STEP_LOCK ? STEP_FENCE : at->a) !=
		    (r->class == RECORD_POST ? STEP_POST : r->class - RECORD_STEP))
		return false;
	return !r->whose || r->whose == at->op.client;
}

/* 1..n - 1. As in the random source, dead clients and caches written back as a whole have a larger
 * share. */
static unsigned pick(const struct choice_point *at, uint8_t byte, unsigned n)
{
	const struct choice_traits *traits = &choice_traits[at->kind];
	assert(n > 1);
	if (traits->forever && n > DELAY_FOREVER && byte >= 192)
		return choice_delay_answer(at->kind, DELAY_FOREVER);
	/* If the longest answer is a delay, so are those that no clock ends. */
	if (byte >= 144 && byte < 192 && choice_delay(at->kind, n - 1))
		return choice_delay_answer(at->kind, byte < 168 ? DELAY_QUIESCENCE : DELAY_SWITCH);
	if (traits->usual && byte & 1)
		return traits->usual;
	/* Whatever n is, a line's oldest version has a value of its own. */
	if (at->kind == CHOICE_LINE && byte == 0)
		return n - 1;
	return 1 + byte % (n - 1);
}

/* What dies at a step. For a server's task n is smaller: there it is the server. */
static unsigned pick_death(const struct choice_point *at, uint8_t byte, unsigned n)
{
	static const uint8_t who[] = {DEATH_SERVER, DEATH_PROCESS, DEATH_MACHINE, DELAY_FOREVER};
	assert(at->kind == CHOICE_STEP && at->a != STEP_BEGIN);
	return choice_delay_answer(CHOICE_STEP,
				   n > DELAY_FOREVER ? who[byte % sizeof(who)] : DEATH_SERVER);
}

static void add_taken(struct byte_source *b, const struct choice_point *at, unsigned answer,
		      unsigned n)
{
	struct deviation d;
	deviation_record(&d, at, answer, n);
	if (at->kind == CHOICE_LINE)
		d.c = pmem_line_versions(pmem_failed(b->pm, at->a), at->a);
	deviations_add(&b->taken, &d);
}

static unsigned life_byte_answer(struct byte_source *b, const struct choice_point *at, unsigned n)
{
	unsigned answer = 0;
	assert(b->machine && n > 1); /* no machine lives on before the power failed */
	if (b->extended && b->machine <= LIFE_MACHINES && b->asked < LIFE_QUESTIONS)
		answer = b->lives[(b->machine - 1) * LIFE_QUESTIONS + b->asked];
	b->asked++;
	if (answer)
		answer = 1 + (answer - 1) % (n - 1);
	assert(answer < n);
	if (answer)
		add_taken(b, at, answer, n);
	return answer;
}

static unsigned byte_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct byte_source *b = (struct byte_source *)source;
	unsigned answer = 0;
	bool more = false;
	assert(b->records <= MAX_RECORDS);
	if (at->kind == CHOICE_LIFE)
		return life_byte_answer(b, at, n);
	for (unsigned i = 0; i < b->records; i++) {
		struct byte_record *r = &b->record[i];
		if (r->spent || r->kind != at->kind)
			continue;
		if (!is_meant(b, r, at)) {
			more = true;
		} else if (r->left) {
			r->left--;
			more = true;
		} else {
			r->spent = r->class != RECORD_LINES;
			more |= !r->spent;
			if (!answer)
				answer = r->dies && b->extended && at->kind == CHOICE_STEP
						 ? pick_death(at, r->answer, n)
						 : pick(at, r->answer, n);
		}
	}
	if (!more)
		source->skip[at->kind] = UINT32_MAX;
	assert(choice_allows(at->kind, n, answer));
	if (answer)
		add_taken(b, at, answer, n);
	return answer;
}

static uint32_t gap_points(uint8_t byte)
{
	return byte < 192 ? byte : 192 + (byte - 192u) * 16;
}

void bytes_start(struct byte_source *b, const uint8_t *bytes, size_t n, bool power)
{
	struct deviations taken = b->taken;
	memset(b, 0, sizeof(*b));
	b->taken = taken;
	b->taken.n = 0;
	b->source.answer = byte_answer;
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		b->source.skip[k] = UINT32_MAX;
	for (; n >= RECORD_BYTES && b->records < MAX_RECORDS;
	     bytes += RECORD_BYTES, n -= RECORD_BYTES) {
		struct byte_record *r = &b->record[b->records];
		assert(b->records < MAX_RECORDS);
		*r = (struct byte_record){.class = bytes[0] & 15,
					  .whose = bytes[0] >> 4 & 3,
					  .left = gap_points(bytes[1]),
					  .answer = bytes[2],
					  .dies = bytes[0] & RECORD_DIES,
					  .none = !bytes[0] && !bytes[1] && !bytes[2]};
		if (bytes[0] & 0x80 && kind_of(r->class + RECORD_BIT_7) < CHOICE_KINDS)
			r->class += RECORD_BIT_7;
		r->kind = kind_of(r->class);
		assert(r->kind < CHOICE_KINDS); /* each value of four bits is a class */
		if (!power && choice_traits[r->kind].power)
			continue;
		b->records++;
		b->source.skip[r->kind] = 0;
	}
}

void bytes_extend(struct byte_source *b, const uint8_t lives[LIFE_BYTES])
{
	assert(!b->extended && !b->machine && !b->taken.n);
	b->extended = true;
	memcpy(b->lives, lives, LIFE_BYTES);
	for (unsigned i = 0; i < b->records; i++)
		b->record[i].spent |= b->record[i].none;
}

void bytes_boots(struct byte_source *b, unsigned machine, struct pmem *pm)
{
	assert(pm && machine); /* the first one does not boot from what was left */
	b->machine = machine;
	b->asked = 0;
	b->pm = pm;
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		b->source.skip[k] = choice_traits[k].power ? 0 : UINT32_MAX;
}

bool bytes_cut(const struct byte_source *b, unsigned machine)
{
	for (unsigned i = 0; i < b->records; i++)
		if (!b->record[i].spent && b->record[i].class == RECORD_CRASH &&
		    (b->record[i].whose & 1) == machine)
			return true;
	return false;
}
