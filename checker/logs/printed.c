/* SPDX-License-Identifier: BSD-3-Clause */
/* See printed.h. */
#include "checker/logs/printed.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/record/format.h"

#define GROUPS 10

/* The highest group that this has. */
static unsigned highest(const char *words)
{
	unsigned most = 0;
	for (const char *at = words; at && (at = strchr(at, '\\')) != NULL; at++)
		if (at[1] >= '1' && at[1] <= '9' && (unsigned)(at[1] - '0') > most)
			most = (unsigned)(at[1] - '0');
	return most;
}

static int wrong(struct printed *p, char *why, size_t n, const char *sentence)
{
	snprintf(why, n, "%s", sentence);
	printed_close(p);
	return -EINVAL;
}

int printed_open(struct printed *p, const char *ack, char *why, size_t n)
{
	char *arrow, *colon;
	*p = (struct printed){.text = strdup(ack)};
	if (!p->text)
		return -ENOMEM;
	arrow = strstr(p->text, " => ");
	if (arrow) {
		*arrow = 0;
		p->operation = arrow + 4;
		p->answer = "ok";
		colon = strstr(arrow + 4, " : ");
		if (colon) {
			*colon = 0;
			p->answer = colon + 3;
		}
	}
	int error = regcomp(&p->pattern, p->text, REG_EXTENDED);
	if (error) {
		char words[200];
		regerror(error, &p->pattern, words, sizeof(words));
		return wrong(p, why, n, words);
	}
	p->open = true;
	if (strlen(ack) >= RECORD_PATTERN)
		return wrong(p, why, n, "expected less than 500 bytes");
	if (!*p->text || (arrow && !*p->operation))
		return wrong(p, why, n, "expected PATTERN or PATTERN => OPERATION");
	if (highest(p->operation) > p->pattern.re_nsub || highest(p->answer) > p->pattern.re_nsub)
		return wrong(p, why, n, "the pattern has not so many groups");
	return 0;
}

void printed_close(struct printed *p)
{
	if (p->open)
		regfree(&p->pattern);
	free(p->text);
	*p = (struct printed){.open = false};
}

static void fill(char *out, size_t room, const char *words, const char *line,
		 const regmatch_t *group)
{
	size_t at = 0;
	for (; *words && at + 1 < room; words++) {
		if (*words != '\\' || words[1] < '1' || words[1] > '9') {
			out[at++] = *words;
			continue;
		}
		const regmatch_t *g = &group[*++words - '0'];
		for (regoff_t i = g->rm_so; i >= 0 && i < g->rm_eo && at + 1 < room; i++)
			out[at++] = line[i];
	}
	out[at] = 0;
}

bool printed_find(const struct printed *p, const char *line, size_t len, char *operation,
		  char *answer, size_t room)
{
	regmatch_t group[GROUPS];
	char text[RECORD_WORDS + 1];
	len = strnlen(line, len < RECORD_WORDS ? len : RECORD_WORDS);
	memcpy(text, line, len);
	text[len] = 0;
	*operation = *answer = 0;
	if (!p->open || regexec(&p->pattern, text, GROUPS, group, 0))
		return false;
	if (p->operation) {
		fill(operation, room, p->operation, text, group);
		fill(answer, room, p->answer, text, group);
	}
	return true;
}
