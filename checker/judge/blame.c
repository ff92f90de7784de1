/* SPDX-License-Identifier: BSD-3-Clause */
/* See blame.h. A part is a number: a circumstance's, or that of a lost write with the bit LOST, or
 * of late data with the bit LATE. */
#include "checker/judge/blame.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include "checker/judge/names.h"
#include "core/text/text.h"

#define LOST	     (1u << 31)
#define LATE	     (1u << 30)
#define OWN	     (1u << 5)
#define OP_SHIFT     2
#define REGION_SHIFT 8 /* a hash of its name, so that shapes with other regions agree */

static const char saws[] = "- nothing value foreign error";
static const char againsts[] = "- put get delete load";
static const char writers[] = "nic client server background";
static const char ops[] = "- put get delete open clean";

static const char *const circumstances[BLAME_CIRCUMSTANCES] = {
	[CHOICE_STEP] = "step",
	[CHOICE_PACKET] = "packet",
	[CHOICE_LAND] = "land",
	[CHOICE_ORDER] = "order",
	[CHOICE_FETCH] = "fetch",
	[CHOICE_DRAIN] = "drain",
	[CHOICE_EVICT] = "evict",
	[CHOICE_CRASH] = "crash",
	[CHOICE_LINE] = "line",
	[CHOICE_BUFFER] = "buffer",
	[CHOICE_FAIL] = "fail",
	[CHOICE_LIFE] = "lives",
	[CHOICE_CLOCK] = "clock",
	[BLAME_IN_SERVER] = "server",
	[BLAME_IN_BACKGROUND] = "background",
	[BLAME_OPEN] = "open",
	[BLAME_OPEN2] = "open2",
	[BLAME_FAULT] = "fault",
	[BLAME_AGAIN] = "again",
	[BLAME_LIFE] = "life",
	[BLAME_CLEAN] = "clean",
	[BLAME_UP] = "up",
	[BLAME_DEATH] = "death",
	[BLAME_OTHERS] = "others",
	[BLAME_KEPT] = "kept",
};

static uint32_t region_part(const char *name)
{
	return (uint32_t)(XXH3_64bits(name, strlen(name)) << REGION_SHIFT) & ~(LOST | LATE);
}

uint32_t blame_loss(const char *region, enum blame_writer writer, enum op_kind op, bool own)
{
	assert(op < OP_KINDS && writer <= WRITER_BACKGROUND);
	return LOST | region_part(region) | (own ? OWN : 0) | (uint32_t)op << OP_SHIFT |
	       (uint32_t)writer;
}

uint32_t blame_late(enum op_kind op, bool own)
{
	assert(op < OP_KINDS);
	return LATE | (own ? OWN : 0) | (uint32_t)op << OP_SHIFT;
}

void blame_add(struct blame *b, uint32_t part)
{
	unsigned at = b->parts;
	assert(part & (LOST | LATE) || part < BLAME_CIRCUMSTANCES);
	while (at && b->part[at - 1] >= part)
		at--;
	if (at < b->parts && b->part[at] == part)
		return;
	if (b->parts == BLAME_PARTS) {
		b->full = true;
		return;
	}
	memmove(&b->part[at + 1], &b->part[at], (b->parts - at) * sizeof(b->part[0]));
	b->part[at] = part;
	b->parts++;
}

bool blame_writes(const struct blame *b)
{
	return b->parts && b->part[b->parts - 1] >= BLAME_CIRCUMSTANCES;
}

static bool is_own(uint32_t part)
{
	return part & (LOST | LATE) && part & OWN;
}

bool blame_own(const struct blame *b)
{
	unsigned own = 0;
	for (unsigned i = 0; i < b->parts; i++)
		own += is_own(b->part[i]);
	return own;
}

void blame_coarsen(struct blame *b)
{
	bool any = blame_own(b);
	unsigned left = 0;
	for (unsigned i = 0; i < b->parts; i++) {
		uint32_t part = b->part[i];
		bool how = part == BLAME_OTHERS || part == BLAME_KEPT || part == BLAME_UP;
		if (any ? is_own(part) : how)
			b->part[left++] = part;
	}
	memset(&b->part[left], 0, (b->parts - left) * sizeof(b->part[0]));
	b->parts = (uint8_t)left;
}

bool blame_includes(const struct blame *all, const struct blame *some)
{
	unsigned at = 0;
	if (all->contract != some->contract || all->saw != some->saw ||
	    all->against != some->against)
		return false;
	for (unsigned i = 0; i < some->parts; i++) {
		while (at < all->parts && all->part[at] < some->part[i])
			at++;
		if (at == all->parts || all->part[at] != some->part[i])
			return false;
	}
	return true;
}

/* --- in words --- */

static const char *region_name(uint32_t part, const struct tm_region *region, unsigned regions)
{
	uint32_t bits = part & ~(LOST | LATE) & ~((1u << REGION_SHIFT) - 1);
	for (unsigned i = 0; i < regions; i++)
		if (region_part(region[i].name) == bits)
			return region[i].name;
	return region_part("pm") == bits ? "pm" : "?";
}

/* The n-th word of a list. */
static void put_word(const char *list, unsigned number, char *buf, size_t n)
{
	while (number--)
		list += strcspn(list, " ") + 1;
	size_t used = strlen(buf);
	snprintf(buf + used, n - used, "%.*s", (int)strcspn(list, " "), list);
}

static void put_text(const char *text, char *buf, size_t n)
{
	size_t used = strlen(buf);
	snprintf(buf + used, n - used, "%s", text);
}

void blame_print(const struct blame *b, const struct tm_region *region, unsigned regions, char *buf,
		 size_t n)
{
	snprintf(buf, n, "%s ", contract_name((enum tm_contract)b->contract));
	put_word(saws, b->saw, buf, n);
	put_text(" ", buf, n);
	put_word(againsts, b->against, buf, n);
	for (unsigned i = 0; i < b->parts; i++) {
		uint32_t part = b->part[i];
		put_text(" ", buf, n);
		if (!(part & (LOST | LATE))) {
			put_text(circumstances[part], buf, n);
			continue;
		}
		put_text(part & LOST ? "lost:" : "late:", buf, n);
		if (part & LOST) {
			put_text(region_name(part, region, regions), buf, n);
			put_text(":", buf, n);
			put_word(writers, part & WRITER_BACKGROUND, buf, n);
			put_text(":", buf, n);
		}
		put_word(ops, part >> OP_SHIFT & 7, buf, n);
		put_text(part & OWN ? ":own" : ":other", buf, n);
	}
}

/* "lost:REGION:WRITER:OPERATION:WHOSE" or "late:OPERATION:WHOSE". False: it is neither. */
static bool parse_write(char *word, uint32_t *part)
{
	bool more;
	const char *what = text_part(&word, ':', &more), *region = "";
	bool lost = !strcmp(what, "lost");
	int writer = 0;
	if (lost) {
		region = text_part(&word, ':', &more);
		writer = word_list_find(writers, text_part(&word, ':', &more));
	}
	int op = word_list_find(ops, text_part(&word, ':', &more));
	const char *whose = text_part(&word, ':', &more);
	bool own = !strcmp(whose, "own");
	if ((lost ? !*region : strcmp(what, "late")) || writer < 0 || op < 0 || more ||
	    (!own && strcmp(whose, "other")))
		return false;
	*part = lost ? blame_loss(region, (enum blame_writer)writer, (enum op_kind)op, own)
		     : blame_late((enum op_kind)op, own);
	return true;
}

const char *blame_parse(struct blame *b, char *words)
{
	char *word;
	memset(b, 0, sizeof(*b));
	int contract = contract_parse(text_word(&words));
	int saw = word_list_find(saws, text_word(&words));
	int against = word_list_find(againsts, text_word(&words));
	if (contract < 0)
		return "expected a contract";
	if (saw < 0)
		return "expected what was seen: -, nothing, value, foreign or error";
	if (against < 0)
		return "expected what that contradicts: -, put, get, delete or load";
	b->contract = (uint8_t)contract;
	b->saw = (uint8_t)saw;
	b->against = (uint8_t)against;
	while (*(word = text_word(&words))) {
		uint32_t part = 0;
		while (part < BLAME_CIRCUMSTANCES && strcmp(circumstances[part], word) != 0)
			part++;
		if (part == BLAME_CIRCUMSTANCES && !parse_write(word, &part))
			return "expected parts: a circumstance, lost:REGION:WRITER:OPERATION:WHOSE "
			       "or late:OPERATION:WHOSE (checker/judge/blame.h)";
		blame_add(b, part);
	}
	return b->full ? "too many parts" : NULL;
}
