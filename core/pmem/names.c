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

#define CUTS 7 /* places where a line of 8 words can be cut */

/* Answers: the versions from the newest to durable content; then, torn, for each version the older
 * ones under it, and for each of those the cuts. */
unsigned pmem_answers(unsigned versions, bool torn)
{
	return 1 + versions + (torn ? CUTS * (versions * (versions + 1) / 2) : 0);
}

struct pmem_answer pmem_answer_split(unsigned versions, unsigned answer)
{
	struct pmem_answer a = {0};
	if (answer <= versions) {
		a.version = versions - answer;
		return a;
	}
	unsigned pair = (answer - versions - 1) / CUTS;
	a.words = 1 + (answer - versions - 1) % CUTS;
	a.version = 1;
	while (pair >= a.version)
		pair -= a.version++;
	a.over = pair;
	return a;
}

void pmem_answer_print(unsigned versions, unsigned answer, char *buf, size_t n)
{
	struct pmem_answer a = pmem_answer_split(versions, answer);
	int len = snprintf(buf, n, "version %u of %u", a.version, versions);
	if (a.words && len >= 0 && (size_t)len < n)
		len += snprintf(buf + len, n - (size_t)len, " cut after word %u", a.words);
	if (a.words && a.over && len >= 0 && (size_t)len < n)
		snprintf(buf + len, n - (size_t)len, " over version %u", a.over);
}

int pmem_answer_parse(const char *text)
{
	unsigned version, versions, words, over = 0;
	int used = -1;
	if (sscanf(text, "version %u of %u%n", &version, &versions, &used) != 2 || used < 0 ||
	    version > versions || versions > 10000)
		return -1;
	text += used;
	if (!*text)
		return (int)(versions - version);
	used = -1;
	if (sscanf(text, " cut after word %u%n", &words, &used) != 1 || used < 0 || !version ||
	    words < 1 || words > CUTS)
		return -1;
	text += used;
	used = -1;
	if (*text && (sscanf(text, " over version %u%n", &over, &used) != 1 || used < 0 ||
		      text[used] || !over || over >= version))
		return -1;
	return (int)(versions + 1 + (version * (version - 1) / 2 + over) * CUTS + words - 1);
}
