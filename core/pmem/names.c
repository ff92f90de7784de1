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
			snprintf(buf, len, "%s+0x%llx", regions[i].name, (unsigned long long)(off - regions[i].off));
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
		if (strlen(regions[i].name) == len && !strncmp(regions[i].name, text, len) && *off < regions[i].len) {
			*off += regions[i].off;
			return 0;
		}
	}
	return -EINVAL;
}

void pmem_answer_print(unsigned versions, unsigned answer, char *buf, size_t n)
{
	if (answer <= versions)
		snprintf(buf, n, "version %u of %u", versions - answer, versions);
	else
		snprintf(buf, n, "version %u of %u cut after word %u", 1 + (answer - versions - 1) / 7, versions,
			 1 + (answer - versions - 1) % 7);
}

int pmem_answer_parse(const char *text)
{
	unsigned version, versions, words;
	int used = -1;
	if (sscanf(text, "version %u of %u%n", &version, &versions, &used) == 2 && used > 0 && version <= versions &&
	    versions < 100000) {
		if (!text[used])
			return (int)(versions - version);
		int more = -1;
		if (sscanf(text + used, " cut after word %u%n", &words, &more) == 1 && more > 0 && !text[used + more] &&
		    version && words >= 1 && words <= 7)
			return (int)(versions + 1 + (version - 1) * 7 + words - 1);
	}
	return -1;
}
