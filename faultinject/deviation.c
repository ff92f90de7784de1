/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deviations as words and back. One line has the form
 *
 *	WHO LABEL POINT: ANSWER		c1 c1.put2 before store 3: delay 500ns
 *	line NAME: VERSION		line log+0x240: version 0 of 2
 *
 * and most kinds of point are one pattern, used in both directions. What is read is
 * exactly what would be printed: no other blanks, no signs, no leading zeros; so a
 * point has one name, and a number too large is an error, not another number.
 */
#include "faultinject/deviation.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/rnic/opcode.h"

static const char *const op_words[OP_KINDS] = {"none", "put", "get", "del", "open", "clean"};
static const char *const step_words[STEP_KINDS] = {"store", "load",	  "flush", "fence",
						   "post",  "completion", "begin"};
static const char *const place_words[CRASH_PLACES] = {
	"after return",	     "before fence", "before store", "before landing", "before drain",
	"before write-back", "at end",	     "anywhere",     "before entry"};

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

/* A decimal number as printf writes it: what stands behind it, or NULL. */
static const char *number(const char *text, uint32_t *out)
{
	uint64_t n = 0;
	const char *p = text;
	while (*p >= '0' && *p <= '9' && n <= UINT32_MAX)
		n = n * 10 + (uint64_t)(*p++ - '0');
	if (p == text || n > UINT32_MAX || (*text == '0' && p - text > 1))
		return NULL;
	*out = (uint32_t)n;
	return p;
}

/* The text up to where the pattern ends, or NULL. Each "%u" of the pattern is a number, one for
 * each of a, b, c. */
static const char *match(const char *text, const char *pattern, uint32_t *a, uint32_t *b,
			 uint32_t *c)
{
	uint32_t *out[] = {a, b, c};
	unsigned n = 0;
	for (; *pattern && text; pattern++) {
		if (*pattern == '%') {
			text = number(text, out[n++]);
			pattern++;
		} else if (*text++ != *pattern) {
			return NULL;
		}
	}
	return text;
}

static bool scan(const char *text, const char *pattern, uint32_t *a, uint32_t *b, uint32_t *c)
{
	text = match(text, pattern, a, b, c);
	return text && !*text;
}

static int visit_parse(const char *text, uint32_t plain, uint16_t *occurrence)
{
	uint32_t n = plain;
	if (*text && (!scan(text, "#%u", &n, NULL, NULL) || n > UINT16_MAX || n == plain))
		return -EINVAL;
	*occurrence = (uint16_t)n;
	return 0;
}

/* `plain`: the visit that is not printed. */
static int op_label_parse(const char *text, uint32_t plain, struct op_label *op,
			  uint16_t *occurrence)
{
	*op = (struct op_label){0};
	if (*text == '-')
		return visit_parse(text + 1, plain, occurrence);
	for (unsigned k = 1; k < OP_KINDS; k++) {
		char pattern[24];
		uint32_t client, nth;
		snprintf(pattern, sizeof(pattern), "c%%u.%s%%u", op_words[k]);
		const char *rest = match(text, pattern, &client, &nth, NULL);
		if (!rest)
			continue;
		if (client < 1 || client >= ACTOR_CLIENTS || nth < 1 || nth > UINT16_MAX)
			return -EINVAL;
		*op = (struct op_label){(uint8_t)client, (uint8_t)k, (uint16_t)nth};
		return visit_parse(rest, 1, occurrence) || !*occurrence ? -EINVAL : 0;
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

/* --- points --- */

static const char *const patterns[CHOICE_KINDS] = {
	[CHOICE_LAND] = "landing message %u packet %u line %u",
	[CHOICE_ORDER] = "order message %u packet %u landed %u",
	[CHOICE_DRAIN] = "draining message %u packet %u line %u",
};

/* Packets of a message are numbered apart from the answers to it. */
static const char *const packet_words[] = {
#define X(id, word) word,
	PACKET_NUMBERS(X)
#undef X
};
#define PACKET_WORDS (sizeof(packet_words) / sizeof(packet_words[0]))

/* c: try + 65536 x copy. */
static void print_packet(const struct deviation *d, char *buf, size_t n)
{
	unsigned w = d->b / INDEX_RANGE < PACKET_WORDS ? d->b / INDEX_RANGE : 0;
	int len = snprintf(buf, n, "message %u %s %u try %u", d->a, packet_words[w],
			   d->b - w * INDEX_RANGE, d->c & 0xffff);
	if (d->c >> 16)
		snprintf(buf + len, n - (size_t)len, " copy %u", d->c >> 16);
}

static int parse_packet(struct deviation *d, const char *text)
{
	for (unsigned w = 0; w < PACKET_WORDS; w++) {
		char pattern[48];
		uint32_t index, again, copy = 0;
		snprintf(pattern, sizeof(pattern), "message %%u %s %%u try %%u", packet_words[w]);
		const char *rest = match(text, pattern, &d->a, &index, &again);
		if (!rest)
			continue;
		if ((index >= INDEX_RANGE && (w || index < PACKET_WORDS * INDEX_RANGE)) ||
		    again > 0xffff)
			return -EINVAL;
		if (*rest && (!scan(rest, " copy %u", &copy, NULL, NULL) || !copy || copy > 0xffff))
			return -EINVAL;
		d->kind = CHOICE_PACKET;
		d->b = index + w * INDEX_RANGE;
		d->c = again | copy << 16;
		return 0;
	}
	return -EINVAL;
}

/* c: line + 2^23 x copy + 2^24 x (try - 1). */
static void print_fetch(const struct deviation *d, char *buf, size_t n)
{
	int len = snprintf(buf, n, "reading message %u packet %u line %u", d->a, d->b,
			   d->c & 0x7fffff);
	if (d->c >> 23)
		snprintf(buf + len, n - (size_t)len, " try %u%s", (d->c >> 24) + 1,
			 d->c >> 23 & 1 ? " copy 1" : "");
}

static int parse_fetch(struct deviation *d, const char *text)
{
	uint32_t line, again = 1, copy = 0;
	const char *rest = match(text, "reading message %u packet %u line %u", &d->a, &d->b, &line);
	if (!rest || line > 0x7fffff)
		return -EINVAL;
	if (*rest) {
		rest = match(rest, " try %u", &again, NULL, NULL);
		if (!rest || again < 1 || again > 256)
			return -EINVAL;
		copy = *rest != '\0';
		if (copy ? strcmp(rest, " copy 1") != 0 : again == 1)
			return -EINVAL;
	}
	d->kind = CHOICE_FETCH;
	d->c = line | copy << 23 | (again - 1) << 24;
	return 0;
}

static void print_point(const struct deviation *d, char *buf, size_t n)
{
	switch (d->kind) {
	case CHOICE_STEP:
		snprintf(buf, n, "before %s %u", step_words[d->a], d->b);
		break;
	case CHOICE_PACKET:
		print_packet(d, buf, n);
		break;
	case CHOICE_FETCH:
		print_fetch(d, buf, n);
		break;
	case CHOICE_EVICT:
		snprintf(buf, n, "cache");
		break;
	case CHOICE_BUFFER:
		snprintf(buf, n, "buffer store %u", d->a);
		break;
	case CHOICE_FAIL:
		snprintf(buf, n, "call %s %u", fail_points[d->a].name, d->b);
		break;
	case CHOICE_CRASH:
		if (d->a == CRASH_AT_END)
			snprintf(buf, n, "power at end");
		else if (d->a == CRASH_BEFORE_LAND || d->a == CRASH_BEFORE_DRAIN)
			snprintf(buf, n, "power %s message %u packet %u line %u", place_words[d->a],
				 d->b, d->c >> 16, d->c & 0xffff);
		else
			snprintf(buf, n, "power %s %u", place_words[d->a], d->b);
		break;
	default:
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(buf, n, patterns[d->kind], d->a, d->b, d->c);
#pragma GCC diagnostic pop
	}
}

static int parse_power(struct deviation *d, const char *text)
{
	for (unsigned p = 0; p < CRASH_PLACES; p++) {
		size_t len = strlen(place_words[p]);
		uint32_t packet = 0, line = 0;
		if (strncmp(text, place_words[p], len))
			continue;
		d->kind = CHOICE_CRASH;
		d->a = p;
		if (p == CRASH_AT_END)
			return text[len] ? -EINVAL : 0;
		if (p == CRASH_BEFORE_LAND || p == CRASH_BEFORE_DRAIN) {
			if (!scan(text + len, " message %u packet %u line %u", &d->b, &packet,
				  &line) ||
			    packet > 0xffff || line > 0xffff)
				return -EINVAL;
			d->c = packet << 16 | line;
			return 0;
		}
		return scan(text + len, " %u", &d->b, NULL, NULL) ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static int parse_call(struct deviation *d, const char *text)
{
	for (unsigned p = 0; p < FAIL_POINT_COUNT; p++) {
		size_t len = strlen(fail_points[p].name);
		if (strncmp(text, fail_points[p].name, len) ||
		    !scan(text + len, " %u", &d->b, NULL, NULL))
			continue;
		d->kind = CHOICE_FAIL;
		d->a = p;
		return 0;
	}
	return -EINVAL;
}

static int parse_point(struct deviation *d, const char *text)
{
	if (!strcmp(text, "cache")) {
		d->kind = CHOICE_EVICT;
		return 0;
	}
	if (!strncmp(text, "power ", 6))
		return parse_power(d, text + 6);
	if (!strncmp(text, "call ", 5))
		return parse_call(d, text + 5);
	for (unsigned s = 0; s < STEP_KINDS; s++) {
		char pattern[32];
		snprintf(pattern, sizeof(pattern), "before %s %%u", step_words[s]);
		if (scan(text, pattern, &d->b, NULL, NULL)) {
			d->kind = CHOICE_STEP;
			d->a = s;
			return 0;
		}
	}
	if (scan(text, "buffer store %u", &d->a, NULL, NULL)) {
		d->kind = CHOICE_BUFFER;
		return 0;
	}
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		if (patterns[k] && scan(text, patterns[k], &d->a, &d->b, &d->c)) {
			d->kind = (uint8_t)k;
			return 0;
		}
	}
	if (!parse_packet(d, text))
		return 0;
	return parse_fetch(d, text);
}

/* --- answers --- */

static const struct {
	const char *word;
	unsigned k;
} delay_words[] = {{"100ns", 1},
		   {"500ns", 2},
		   {"2us", 3},
		   {"8us", 4},
		   {"30us", 5},
		   {"200us", 6},
		   {"5ms", 7},
		   {"100ms", 8},
		   {"for ever", DELAY_FOREVER},
		   {"until quiescence", DELAY_QUIESCENCE},
		   {"and switch", DELAY_SWITCH}};

static void print_delay(unsigned k, char *buf, size_t n)
{
	snprintf(buf, n, "delay %s", delay_words[k - 1].word);
}

/* Also the words that older versions wrote: "hold" for "delay", "rest" for "quiescence". */
static int parse_delay(const char *text)
{
	size_t verb = !strncmp(text, "delay ", 6) ? 6 : !strncmp(text, "hold ", 5) ? 5 : 0;
	if (!verb)
		return -1;
	if (!strcmp(text + verb, "until rest"))
		return DELAY_QUIESCENCE;
	for (unsigned i = 0; i < sizeof(delay_words) / sizeof(delay_words[0]); i++)
		if (!strcmp(text + verb, delay_words[i].word))
			return (int)delay_words[i].k;
	return -1;
}

#define TIMES "100ns 500ns 2us 8us 30us 200us 5ms 100ms \"until quiescence\" \"and switch\""

static void print_answer(const struct deviation *d, char *buf, size_t n)
{
	switch (d->kind) {
	case CHOICE_PACKET:
		if (d->answer >= PACKET_DELAY)
			print_delay(choice_delay(d->kind, d->answer), buf, n);
		else
			snprintf(buf, n, "%s", d->answer == PACKET_LOSE ? "lose" : "duplicate");
		break;
	case CHOICE_ORDER:
		snprintf(buf, n, "%u ahead", d->answer);
		break;
	case CHOICE_EVICT:
		if (d->answer == 1)
			snprintf(buf, n, "write back all");
		else
			snprintf(buf, n, "write back dirty line %u", d->answer - 1);
		break;
	case CHOICE_CRASH:
	case CHOICE_FAIL:
		snprintf(buf, n, "fails");
		break;
	default:
		print_delay(d->answer, buf, n);
	}
}

static int parse_answer(const struct deviation *d, const char *text, const char **expected)
{
	uint32_t k = 0;
	int delay = parse_delay(text);
	switch (d->kind) {
	case CHOICE_PACKET:
		*expected = "\"lose\", \"duplicate\" or \"delay TIME\"";
		if (delay > 0)
			return delay == DELAY_FOREVER
				       ? -1
				       : (int)choice_delay_answer(d->kind, (unsigned)delay);
		return !strcmp(text, "lose")	    ? PACKET_LOSE
		       : !strcmp(text, "duplicate") ? PACKET_DUPLICATE
						    : -1;
	case CHOICE_ORDER:
		*expected = "\"N ahead\"";
		return scan(text, "%u ahead", &k, NULL, NULL) && k && k < 65536 ? (int)k : -1;
	case CHOICE_EVICT:
		*expected = "\"write back all\" or \"write back dirty line N\"";
		if (!strcmp(text, "write back all"))
			return 1;
		return scan(text, "write back dirty line %u", &k, NULL, NULL) && k && k < 1u << 30
			       ? (int)k + 1
			       : -1;
	case CHOICE_CRASH:
	case CHOICE_FAIL:
		*expected = "\"fails\"";
		return !strcmp(text, "fails") ? 1 : -1;
	default:
		*expected = "\"delay TIME\", TIME one of " TIMES;
		/* Only a client's task can stop for good: it is dead. */
		if (d->kind == CHOICE_STEP && d->who[0] == 'c')
			*expected = "\"delay TIME\", TIME one of " TIMES " \"for ever\"";
		else if (delay == DELAY_FOREVER)
			return -1;
		return delay;
	}
}

/* --- lines --- */

static void print_line(const struct deviation *d, const struct deviation_names *names, char *buf,
		       size_t n)
{
	char name[64], version[64];
	/* Without a number of versions the line can not have been cut: n counts them. */
	unsigned versions = d->c ? d->c : d->n - 1;
	pmem_name(names->region, names->regions, (uint64_t)d->a * LINE, name, sizeof(name));
	pmem_answer_print(versions, d->answer, version, sizeof(version));
	if (d->b == 1)
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
	if (at) {
		if (!scan(at, " at crash %u", &d->b, NULL, NULL) || d->b < 2 || d->b > 3)
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
	uint32_t version, versions = 0;
	char again[64] = "";
	if (answer >= 1 && match(colon + 2, "version %u of %u", &version, &versions, NULL))
		pmem_answer_print(versions, (unsigned)answer, again, sizeof(again));
	if (answer < 1 || strcmp(colon + 2, again) != 0) {
		*expected = "\"version K of N\" with K below N, or \"... cut after word W\" with W "
			    "from 1 to 7";
		return -EINVAL;
	}
	d->kind = CHOICE_LINE;
	d->occurrence = 0;
	d->a = (uint32_t)(off / LINE);
	d->c = versions;
	d->answer = (unsigned)answer;
	return 0;
}

/* --- whole lines --- */

void deviation_print(const struct deviation *d, const struct deviation_names *names, char *buf,
		     size_t n)
{
	char label[32], point[96], answer[64];
	if (d->kind == CHOICE_LINE) {
		print_line(d, names, buf, n);
		return;
	}
	/* Nobody has no visits; somebody without an operation starts with the first. */
	if (!d->op.kind && d->occurrence != !!d->who[0])
		snprintf(label, sizeof(label), "-#%u", d->occurrence);
	else
		op_label_print(d->op, d->op.kind ? d->occurrence : 1, label, sizeof(label));
	print_point(d, point, sizeof(point));
	print_answer(d, answer, sizeof(answer));
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
	if (parse_point(d, point)) {
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
	int answer = parse_answer(d, colon + 2, expected);
	if (answer < 1)
		return -EINVAL;
	d->answer = (unsigned)answer;
	return 0;
}

int deviations_add(struct deviations *list, const struct deviation *d)
{
	if (list->n == list->room) {
		unsigned room = list->room ? 2 * list->room : 16;
		struct deviation *grown = realloc(list->d, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->d = grown;
		list->room = room;
	}
	list->d[list->n++] = *d;
	return 0;
}

int deviations_append(struct deviations *list, const struct deviations *from)
{
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
