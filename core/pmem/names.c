/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for places in a pool ("log+0x240") and for what survived of a line ("version 1 of 3"). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/crash.h"

void pmem_name(const struct tm_region *regions, unsigned n, uint64_t off, char *buf, size_t len)
{
	for (unsigned i = 0; i < n; i++) {
		if (off >= regions[i].off && off - regions[i].off < regions[i].len) {
			snprintf(buf, len, "%s+0x%llx", regions[i].name,
				 (unsigned long long)(off - regions[i].off));
			return;
		}
	}
	snprintf(buf, len, "pm+0x%llx", (unsigned long long)off);
}

void pmem_name_range(const struct tm_region *regions, unsigned n, uint64_t off, uint64_t bytes,
		     char *buf, size_t len)
{
	pmem_name(regions, n, off, buf, len);
	size_t used = strlen(buf);
	const char *plus = strrchr(buf, '+');
	if (bytes > 1 && plus && used < len)
		snprintf(buf + used, len - used, "..0x%llx",
			 strtoull(plus + 1, NULL, 16) + (unsigned long long)bytes - 1);
}

int pmem_unname(const struct tm_region *regions, unsigned n, const char *text, uint64_t *off)
{
	const char *plus = strchr(text, '+');
	char *end;
	if (!plus || strncmp(plus, "+0x", 3))
		return -EINVAL;
	errno = 0;
	*off = strtoull(plus + 3, &end, 16);
	if (end == plus + 3 || *end || errno)
		return -EINVAL;
	size_t len = (size_t)(plus - text);
	if (len == 2 && !strncmp(text, "pm", 2))
		return 0;
	for (unsigned i = 0; i < n; i++) {
		if (strlen(regions[i].name) == len && !strncmp(regions[i].name, text, len) &&
		    *off < regions[i].len) {
			*off += regions[i].off;
			return 0;
		}
	}
	return -EINVAL;
}

/*
 * Answers: the versions from the newest to durable content. Then, with line_torn=prefix, the cuts:
 * for each version the older ones under it, and for each of those the first 1 to 7 words. With
 * line_torn=any the other choices of words follow, likewise. So an answer means the same under all
 * values of the knob that have it.
 */
#define CUTS	7		 /* places where a line of 8 words can be cut */
#define SUBSETS 254		 /* choices of some words of 8 */
#define OTHERS	(SUBSETS - CUTS) /* that are not the first ones */

/* Pairs of a version and an older content of its line, which may be that before all versions. */
static unsigned pairs(unsigned versions)
{
	return versions * (versions + 1) / 2;
}

/* The first 1 to 7 words? */
static bool is_cut(unsigned words)
{
	return !(words & (words + 1));
}

/* The n-th choice of words that is no cut; and its number. */
static uint8_t nth_other(unsigned n)
{
	unsigned words = 2;
	while (n--)
		do
			words++;
		while (is_cut(words));
	return (uint8_t)words;
}

static unsigned other_number(uint8_t words)
{
	unsigned n = 0;
	for (unsigned w = 2; w < words; w++)
		n += !is_cut(w);
	return n;
}

unsigned pmem_answers(unsigned versions, enum line_torn torn)
{
	unsigned each = torn == TORN_PREFIX ? CUTS : torn == TORN_ANY ? SUBSETS : 0;
	if (versions > PMEM_TORN_VERSIONS)
		each = 0;
	return 1 + versions + each * pairs(versions);
}

struct pmem_answer pmem_answer_split(unsigned versions, unsigned answer)
{
	struct pmem_answer a = {0};
	if (answer <= versions) {
		a.version = versions - answer;
		return a;
	}
	answer -= versions + 1;
	unsigned cuts = CUTS * pairs(versions), pair = answer / CUTS;
	if (answer < cuts) {
		a.words = (uint8_t)((2u << answer % CUTS) - 1);
	} else {
		pair = (answer - cuts) / OTHERS;
		a.words = nth_other((answer - cuts) % OTHERS);
	}
	a.version = 1;
	while (pair >= a.version)
		pair -= a.version++;
	a.over = pair;
	return a;
}

unsigned pmem_answer_join(unsigned versions, struct pmem_answer a)
{
	unsigned pair = pairs(a.version) - a.version + a.over;
	if (!a.words)
		return versions - a.version;
	if (is_cut(a.words))
		return versions + 1 + pair * CUTS + (unsigned)__builtin_popcount(a.words) - 1;
	return versions + 1 + pairs(versions) * CUTS + pair * OTHERS + other_number(a.words);
}

unsigned pmem_answer_pair_end(unsigned versions, unsigned answer)
{
	unsigned from = versions + 1, cuts = from + CUTS * pairs(versions);
	if (answer >= cuts)
		return cuts + ((answer - cuts) / OTHERS + 1) * OTHERS;
	return from + ((answer - from) / CUTS + 1) * CUTS;
}

static void print_words(uint8_t words, char *buf, size_t n)
{
	size_t at = (size_t)snprintf(buf, n, " only in words ");
	for (unsigned w = 0; w < 8; w++)
		if (words >> w & 1)
			at += (size_t)snprintf(buf + at, n - at, "%s%u",
					       words & ((1u << w) - 1) ? "," : "", w + 1);
}

void pmem_answer_print(unsigned versions, unsigned answer, char *buf, size_t n)
{
	struct pmem_answer a = pmem_answer_split(versions, answer);
	char words[40] = "", over[32] = "";
	if (a.words && is_cut(a.words))
		snprintf(words, sizeof(words), " cut after word %d", __builtin_popcount(a.words));
	else if (a.words)
		print_words(a.words, words, sizeof(words));
	if (a.words && a.over)
		snprintf(over, sizeof(over), " over version %u", a.over);
	snprintf(buf, n, "version %u of %u%s%s", a.version, versions, words, over);
}

/* " cut after word 3", " only in words 1,3"; what follows it, or NULL: neither of them. */
static const char *parse_words(const char *text, uint8_t *words)
{
	unsigned word;
	int used = -1;
	*words = 0;
	if (sscanf(text, " cut after word %u%n", &word, &used) == 1 && used > 0) {
		*words = (uint8_t)((1u << (word & 7)) - 1);
		return word >= 1 && word <= CUTS ? text + used : NULL;
	}
	if (strncmp(text, " only in words ", 15))
		return NULL;
	for (text += 14; *text == (*words ? ',' : ' '); text += 2) {
		word = (unsigned)(text[1] - '1');
		if (word > 7 || *words >> word)
			return NULL; /* they come in order */
		*words |= (uint8_t)(1u << word);
	}
	return is_cut(*words) ? NULL : text;
}

int pmem_answer_parse(const char *text)
{
	struct pmem_answer a = {0};
	unsigned versions;
	int used = -1;
	if (sscanf(text, "version %u of %u%n", &a.version, &versions, &used) != 2 || used < 0 ||
	    a.version > versions || versions > 10000)
		return -1;
	text += used;
	if (!*text)
		return (int)(versions - a.version);
	text = parse_words(text, &a.words);
	if (!text || !a.version || versions > PMEM_TORN_VERSIONS)
		return -1;
	used = -1;
	if (*text && (sscanf(text, " over version %u%n", &a.over, &used) != 1 || used < 0 ||
		      text[used] || !a.over || a.over >= a.version))
		return -1;
	return (int)pmem_answer_join(versions, a);
}
