/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deviations as words and back. One line has the form
 *
 *	WHO LABEL POINT: ANSWER		c1 c1.put2 before store 3: delay 500ns
 *	line NAME: VERSION		line log+0x240: version 0 of 2
 *
 * and what is read is exactly what would be printed. words.c has the points and answers.
 */
#include "faultinject/deviation.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "faultinject/words.h"

static const char *const op_words[OP_KINDS] = {"none",	"put",	 "get", "del",	 "open",
					       "clean", "leave", "die", "pause", "call"};

void op_label_print(struct op_label op, unsigned occurrence, char *buf, size_t n)
{
	if (!op.kind && occurrence > 1)
		snprintf(buf, n, "-#%u", occurrence);
	else if (!op.kind)
		snprintf(buf, n, "-");
	else if (occurrence > 1)
		snprintf(buf, n, "c%u.%s%u#%u", op.client, op_words[op.kind], op.nth, occurrence);
	else
		snprintf(buf, n, "c%u.%s%u", op.client, op_words[op.kind], op.nth);
}

static int occurrence_parse(const char *text, uint32_t plain, uint16_t *occurrence)
{
	uint32_t n = plain;
	if (*text && (!words_are(text, "#%u", &n) || n > UINT16_MAX || n == plain))
		return -EINVAL;
	*occurrence = (uint16_t)n;
	return 0;
}

/* `plain`: the occurrence that is not printed. */
static int op_label_parse(const char *text, uint32_t plain, struct op_label *op,
			  uint16_t *occurrence)
{
	*op = (struct op_label){0};
	if (*text == '-')
		return occurrence_parse(text + 1, plain, occurrence);
	for (unsigned k = 1; k < OP_KINDS; k++) {
		char pattern[24];
		uint32_t number[2];
		snprintf(pattern, sizeof(pattern), "c%%u.%s%%u", op_words[k]);
		const char *rest = words_match(text, pattern, number);
		if (!rest)
			continue;
		uint32_t client = number[0], nth = number[1];
		if (client < 1 || client >= ACTOR_CLIENTS || nth < 1 || nth > UINT16_MAX)
			return -EINVAL;
		*op = (struct op_label){(uint8_t)client, (uint8_t)k, (uint16_t)nth};
		return occurrence_parse(rest, 1, occurrence) || !*occurrence ? -EINVAL : 0;
	}
	return -EINVAL;
}

uint64_t deviation_key(const struct deviation *d)
{
	struct actor who;
	struct choice_point at = {.kind = d->kind,
				  .op = d->op,
				  .occurrence = d->occurrence,
				  .a = d->a,
				  .b = d->b,
				  .c = d->c};
	if (d->kind == CHOICE_LINE)
		at.c = 0; /* the versions there were are not part of the name */
	if (d->who[0]) {
		actor_init(&who, d->who);
		at.who = &who;
	}
	return choice_key(&at);
}

void deviation_record(struct deviation *d, const struct choice_point *at, unsigned answer,
		      unsigned n)
{
	assert(at->kind < CHOICE_KINDS && (!n || choice_allows(at->kind, n, answer)));
	memset(d, 0, sizeof(*d));
	d->kind = at->kind;
	if (at->who)
		memcpy(d->who, at->who->name, sizeof(d->who));
	d->op = at->op;
	d->occurrence = at->occurrence;
	d->a = at->a;
	d->b = at->b;
	d->c = at->c;
	d->answer = answer;
	d->n = n;
}

/* --- lines --- */

static void print_line(const struct deviation *d, const struct deviation_names *names, char *buf,
		       size_t n)
{
	char name[64], version[PMEM_ANSWER_TEXT];
	/* Without a number of versions the line can not have been cut: n counts them. */
	unsigned versions = d->c ? d->c : d->n - 1;
	pmem_name(names->region, names->regions, (uint64_t)d->a * LINE, name, sizeof(name));
	pmem_answer_print(versions, d->answer, version, sizeof(version));
	if (d->b > PMEM_HOST_FAILED)
		snprintf(buf, n, "line %s at failure %u: %s", name, d->b - PMEM_HOST_FAILED,
			 version);
	else if (d->b == 1)
		snprintf(buf, n, "line %s: %s", name, version);
	else
		snprintf(buf, n, "line %s at crash %u: %s", name, d->b, version);
}

static int parse_line(struct deviation *d, const struct deviation_names *names, char *text,
		      const char **expected)
{
	uint64_t off;
	char *colon = strstr(text, ": ");
	*expected = "\"line REGION+0xOFFSET: version K of N\"";
	if (!colon)
		return -EINVAL;
	*colon = '\0';
	d->b = 1;
	char *at = strstr(text, " at crash ");
	char *failure = strstr(text, " at failure ");
	if (failure) {
		if (!words_are(failure, " at failure %u", &d->b) || !d->b || d->b > UINT16_MAX)
			return -EINVAL;
		d->b += PMEM_HOST_FAILED;
		*failure = '\0';
	} else if (at) {
		if (!words_are(at, " at crash %u", &d->b) || d->b < 2 || d->b > 3)
			return -EINVAL;
		*at = '\0';
	}
	if (pmem_unname(names->region, names->regions, text, &off) || off % LINE ||
	    off / LINE > UINT32_MAX) {
		*expected = "the name of a line of this store's PM (REGION+0xOFFSET, a multiple of "
			    "0x40)";
		return -EINVAL;
	}
	int answer = pmem_answer_parse(colon + 2);
	uint32_t version[2] = {0};
	char again[PMEM_ANSWER_TEXT] = "";
	if (answer >= 1 && words_match(colon + 2, "version %u of %u", version))
		pmem_answer_print(version[1], (unsigned)answer, again, sizeof(again));
	if (answer < 1 || strcmp(colon + 2, again) != 0) {
		*expected = "\"version K of N\" with K below N, or \"... cut after word W\" with W "
			    "from 1 to 7, or \"... only in words W,...\"";
		return -EINVAL;
	}
	d->kind = CHOICE_LINE;
	d->occurrence = 0;
	d->a = (uint32_t)(off / LINE);
	d->c = version[1];
	d->answer = (unsigned)answer;
	return 0;
}

/* --- whole lines --- */

void deviation_print(const struct deviation *d, const struct deviation_names *names, char *buf,
		     size_t n)
{
	char label[32], point[96], answer[64];
	assert(d->kind < CHOICE_KINDS && d->answer); /* answer 0 is no deviation */
	if (d->kind == CHOICE_LINE) {
		print_line(d, names, buf, n);
		return;
	}
	/* A point without an actor has no occurrence; an actor without an operation: the first. */
	if (!d->op.kind && d->occurrence != !!d->who[0])
		snprintf(label, sizeof(label), "-#%u", d->occurrence);
	else
		op_label_print(d->op, d->op.kind ? d->occurrence : 1, label, sizeof(label));
	words_print_point(d, point, sizeof(point));
	words_print_answer(d, answer, sizeof(answer));
	snprintf(buf, n, "%s %s %s: %s", d->who[0] ? d->who : "-", label, point, answer);
}

int deviation_parse(struct deviation *d, const struct deviation_names *names, const char *text,
		    const char **expected)
{
	char copy[DEVIATION_TEXT];
	memset(d, 0, sizeof(*d));
	*expected = "\"WHO OPERATION POINT: ANSWER\" or \"line NAME: version K of N\"";
	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	if (!strncmp(copy, "line ", 5))
		return parse_line(d, names, copy + 5, expected);
	char *colon = strstr(copy, ": "), *label = strchr(copy, ' '),
	     *point = label ? strchr(label + 1, ' ') : NULL;
	if (!colon || !point || point > colon)
		return -EINVAL;
	*colon = *label++ = *point++ = '\0';
	if (!copy[0] || strlen(copy) >= ACTOR_NAME) {
		*expected = "who: such as \"c1\", \"c1/qp1\", \"server\", or \"-\"";
		return -EINVAL;
	}
	if (strcmp(copy, "-"))
		memcpy(d->who, copy, strlen(copy));
	if (op_label_parse(label, !!d->who[0], &d->op, &d->occurrence)) {
		*expected = "an operation such as \"c1.put2\", or \"-\"";
		return -EINVAL;
	}
	if (words_parse_point(d, point)) {
		*expected = "a point such as \"before store 3\", \"message 1 packet 2 try 1\" or "
			    "\"power "
			    "after return 1\"";
		return -EINVAL;
	}
	if (d->kind == CHOICE_CRASH && d->a == CRASH_AT_END &&
	    (d->who[0] || d->op.kind || d->occurrence)) {
		*expected = "\"- - power at end\": it is nobody's";
		return -EINVAL;
	}
	int answer = words_parse_answer(d, colon + 2, expected);
	if (answer < 1)
		return -EINVAL;
	d->answer = (unsigned)answer;
	return 0;
}

int deviations_add(struct deviations *list, const struct deviation *d)
{
	assert(d->kind < CHOICE_KINDS);
	if (!ARRAY_RESERVE(list->d, list->n, 1, list->room))
		return -ENOMEM;
	assert(list->n < list->room);
	list->d[list->n++] = *d;
	return 0;
}

int deviations_append(struct deviations *list, const struct deviations *from)
{
	assert(list != from); /* it would never end */
	for (unsigned i = 0; i < from->n; i++)
		if (deviations_add(list, &from->d[i]))
			return -ENOMEM;
	return 0;
}

void deviations_free(struct deviations *list)
{
	free(list->d);
	*list = (struct deviations){0};
}
