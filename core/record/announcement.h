/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RECORD_ANNOUNCEMENT_H
#define TM_RECORD_ANNOUNCEMENT_H
/* A line by which a client announces an operation or its answer: "CLIENT call WORDS" or
 * "CLIENT return WORDS". */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct announcement_line {
	uint64_t client;
	bool returns;
	const char *words;
	size_t len;
};

/* False: it is neither. */
static inline bool announcement_parse(const char *line, size_t len, struct announcement_line *out)
{
	static const char call[] = " call ", answer[] = " return ";
	size_t at = 0;
	out->client = 0;
	while (at < len && at < 18 && isdigit((unsigned char)line[at]))
		out->client = out->client * 10 + (uint64_t)(line[at++] - '0');
	const char *rest = line + at;
	size_t left = len - at;
	out->returns = left >= sizeof(answer) - 1 && !memcmp(rest, answer, sizeof(answer) - 1);
	size_t head = (out->returns ? sizeof(answer) : sizeof(call)) - 1;
	if (!at || left < head || (!out->returns && memcmp(rest, call, head) != 0))
		return false;
	out->words = rest + head;
	out->len = left - head;
	return true;
}

#endif
