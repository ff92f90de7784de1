/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deviations as words and back. One line has the form
 *
 *	WHO LABEL POINT: ANSWER		c1 c1.put2 before store 3: hold 500ns
 *	line NAME: VERSION		line log+0x240: version 0 of 2
 *
 * and each kind of point is one scanf pattern, used in both directions.
 */
#include "faultinject/deviation.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_words[OP_KINDS] = {"none", "put", "get", "del", "open"};
static const char *const step_words[STEP_KINDS] = {"store", "load", "flush", "fence", "post", "completion"};
static const char *const place_words[CRASH_PLACES] = {"after return", "before fence", "before store", "before landing",
						      "before drain", "before write-back", "at end", "anywhere"};

void op_label_print(struct op_label op, unsigned visit, char *buf, size_t n)
{
	if (!op.kind)
		snprintf(buf, n, "-");
	else if (visit > 1)
		snprintf(buf, n, "c%u.%s%u#%u", op.client, op_words[op.kind], op.nth, visit);
	else
		snprintf(buf, n, "c%u.%s%u", op.client, op_words[op.kind], op.nth);
}

static int op_label_parse(const char *text, struct op_label *op, uint16_t *visit)
{
	unsigned client, nth, again = 1;
	char word[8];
	int used = -1;
	*op = (struct op_label){0};
	*visit = 1;
	if (!strcmp(text, "-"))
		return 0;
	if (sscanf(text, "c%u.%7[a-z]%u%n", &client, word, &nth, &used) != 3 || used < 0)
		return -EINVAL;
	if (text[used]) {
		int more = -1;
		if (sscanf(text + used, "#%u%n", &again, &more) != 1 || more < 0 || text[used + more])
			return -EINVAL;
	}
	if (client < 1 || client >= ACTOR_CLIENTS || nth < 1 || nth > UINT16_MAX || again < 1 || again > UINT16_MAX)
		return -EINVAL;
	for (unsigned k = 1; k < OP_KINDS; k++) {
		if (!strcmp(word, op_words[k])) {
			*op = (struct op_label){(uint8_t)client, (uint8_t)k, (uint16_t)nth};
			*visit = (uint16_t)again;
			return 0;
		}
	}
	return -EINVAL;
}

uint64_t deviation_key(const struct deviation *d)
{
	struct actor who;
	struct choice_point at = {.kind = d->kind, .op = d->op, .visit = d->visit, .a = d->a, .b = d->b, .c = d->c};
	if (d->who[0]) {
		actor_init(&who, d->who);
		at.who = &who;
	}
	return choice_key(&at);
}

void deviation_record(struct deviation *d, const struct choice_point *at, unsigned answer, unsigned n)
{
	memset(d, 0, sizeof(*d));
	d->kind = at->kind;
	if (at->who)
		memcpy(d->who, at->who->name, sizeof(d->who));
	d->op = at->op;
	d->visit = at->visit;
	d->a = at->a;
	d->b = at->b;
	d->c = at->c;
	d->answer = answer;
	d->n = n;
}

/* --- points --- */

static const char *const patterns[CHOICE_KINDS] = {
	[CHOICE_PACKET] = "message %u packet %u try %u", [CHOICE_LAND] = "landing message %u packet %u line %u",
	[CHOICE_ORDER] = "order message %u packet %u landed %u", [CHOICE_FETCH] = "reading message %u packet %u line %u",
	[CHOICE_DRAIN] = "draining message %u packet %u line %u",
};

static void print_point(const struct deviation *d, char *buf, size_t n)
{
	switch (d->kind) {
	case CHOICE_STEP:
		snprintf(buf, n, "before %s %u", step_words[d->a], d->b);
		break;
	case CHOICE_EVICT:
		snprintf(buf, n, "cache");
		break;
	case CHOICE_CRASH:
		if (d->a == CRASH_AT_END)
			snprintf(buf, n, "power at end");
		else if (d->a == CRASH_BEFORE_LAND || d->a == CRASH_BEFORE_DRAIN)
			snprintf(buf, n, "power %s message %u packet %u line %u", place_words[d->a], d->b, d->c >> 16,
				 d->c & 0xffff);
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

/* The whole of `text` matches the pattern with `want` numbers? */
static bool scan(const char *text, const char *pattern, unsigned want, uint32_t *a, uint32_t *b, uint32_t *c)
{
	char with_end[96];
	int used = -1;
	snprintf(with_end, sizeof(with_end), "%s%%n", pattern);
	int got;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (want == 0)
		got = sscanf(text, with_end, &used) <= 0 ? 0 : -1;
	else if (want == 1)
		got = sscanf(text, with_end, a, &used);
	else if (want == 2)
		got = sscanf(text, with_end, a, b, &used);
	else
		got = sscanf(text, with_end, a, b, c, &used);
#pragma GCC diagnostic pop
	return got == (int)want && used >= 0 && !text[used];
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
			if (!scan(text + len, " message %u packet %u line %u", 3, &d->b, &packet, &line) || line > 0xffff)
				return -EINVAL;
			d->c = packet << 16 | line;
			return 0;
		}
		return scan(text + len, " %u", 1, &d->b, NULL, NULL) ? 0 : -EINVAL;
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
	for (unsigned s = 0; s < STEP_KINDS; s++) {
		char pattern[32];
		snprintf(pattern, sizeof(pattern), "before %s %%u", step_words[s]);
		if (scan(text, pattern, 1, &d->b, NULL, NULL)) {
			d->kind = CHOICE_STEP;
			d->a = s;
			return 0;
		}
	}
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		if (patterns[k] && scan(text, patterns[k], 3, &d->a, &d->b, &d->c)) {
			d->kind = (uint8_t)k;
			return 0;
		}
	}
	return -EINVAL;
}

/* --- answers --- */

static const struct {
	const char *word;
	unsigned k;
} hold_words[] = {{"100ns", 1}, {"500ns", 2}, {"2us", 3}, {"8us", 4}, {"30us", 5}, {"200us", 6}, {"5ms", 7}, {"100ms", 8}, {"for ever", 9}};

static void print_hold(unsigned k, char *buf, size_t n)
{
	snprintf(buf, n, "hold %s", hold_words[k - 1].word);
}

static int parse_hold(const char *text)
{
	for (unsigned i = 0; i < sizeof(hold_words) / sizeof(hold_words[0]); i++)
		if (!strncmp(text, "hold ", 5) && !strcmp(text + 5, hold_words[i].word))
			return (int)hold_words[i].k;
	return -1;
}

static void print_answer(const struct deviation *d, char *buf, size_t n)
{
	switch (d->kind) {
	case CHOICE_PACKET:
		if (d->answer >= PACKET_HOLD)
			print_hold(d->answer - PACKET_HOLD + 1, buf, n);
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
		snprintf(buf, n, "fails");
		break;
	default:
		print_hold(d->answer, buf, n);
	}
}

static int parse_answer(const struct deviation *d, const char *text, const char **expected)
{
	uint32_t k = 0;
	int hold = parse_hold(text);
	switch (d->kind) {
	case CHOICE_PACKET:
		*expected = "\"lose\", \"duplicate\" or \"hold TIME\"";
		if (hold > 0)
			return hold >= (int)HOLDS + 1 ? -1 : PACKET_HOLD + hold - 1;
		return !strcmp(text, "lose") ? PACKET_LOSE : !strcmp(text, "duplicate") ? PACKET_DUPLICATE : -1;
	case CHOICE_ORDER:
		*expected = "\"N ahead\"";
		return scan(text, "%u ahead", 1, &k, NULL, NULL) && k && k < 65536 ? (int)k : -1;
	case CHOICE_EVICT:
		*expected = "\"write back all\" or \"write back dirty line N\"";
		if (!strcmp(text, "write back all"))
			return 1;
		return scan(text, "write back dirty line %u", 1, &k, NULL, NULL) && k && k < 1u << 30 ? (int)k + 1 : -1;
	case CHOICE_CRASH:
		*expected = "\"fails\"";
		return !strcmp(text, "fails") ? 1 : -1;
	default:
		*expected = "\"hold TIME\", TIME one of 100ns 500ns 2us 8us 30us 200us 5ms 100ms \"for ever\"";
		return hold;
	}
}

/* --- lines --- */

static void print_line(const struct deviation *d, const struct deviation_names *names, char *buf, size_t n)
{
	char name[64], version[64];
	/* n answers: 1 + versions, or 1 + 8 x versions where lines can be cut. */
	unsigned versions = d->c ? d->c : d->n - 1;
	pmem_name(names->region, names->regions, (uint64_t)d->a * LINE, name, sizeof(name));
	pmem_answer_print(versions, d->answer, version, sizeof(version));
	if (d->b == 1)
		snprintf(buf, n, "line %s: %s", name, version);
	else
		snprintf(buf, n, "line %s at crash %u: %s", name, d->b, version);
}

static int parse_line(struct deviation *d, const struct deviation_names *names, char *text, const char **expected)
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
		if (!scan(at, " at crash %u", 1, &d->b, NULL, NULL) || d->b < 2 || d->b > 3)
			return -EINVAL;
		*at = '\0';
	}
	if (pmem_unname(names->region, names->regions, text, &off) || off % LINE) {
		*expected = "the name of a line of this store's PM (REGION+0xOFFSET, a multiple of 0x40)";
		return -EINVAL;
	}
	int answer = pmem_answer_parse(colon + 2);
	unsigned version, versions;
	if (answer < 1 || sscanf(colon + 2, "version %u of %u", &version, &versions) != 2) {
		*expected = "\"version K of N\" with K below N, or \"... cut after word W\" with W from 1 to 7";
		return -EINVAL;
	}
	d->kind = CHOICE_LINE;
	d->visit = 0;
	d->a = (uint32_t)(off / LINE);
	d->c = versions;
	d->answer = (unsigned)answer;
	return 0;
}

/* --- whole lines --- */

void deviation_print(const struct deviation *d, const struct deviation_names *names, char *buf, size_t n)
{
	char label[32], point[96], answer[64];
	if (d->kind == CHOICE_LINE) {
		print_line(d, names, buf, n);
		return;
	}
	op_label_print(d->op, d->visit, label, sizeof(label));
	print_point(d, point, sizeof(point));
	print_answer(d, answer, sizeof(answer));
	snprintf(buf, n, "%s %s %s: %s", d->who[0] ? d->who : "-", label, point, answer);
}

int deviation_parse(struct deviation *d, const struct deviation_names *names, const char *text, const char **expected)
{
	char copy[256], who[ACTOR_NAME], label[32];
	int used = -1;
	memset(d, 0, sizeof(*d));
	*expected = "\"WHO OPERATION POINT: ANSWER\" or \"line NAME: version K of N\"";
	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	if (!strncmp(copy, "line ", 5))
		return parse_line(d, names, copy + 5, expected);
	char *colon = strstr(copy, ": ");
	if (!colon)
		return -EINVAL;
	*colon = '\0';
	if (sscanf(copy, "%23s %31s %n", who, label, &used) != 2 || used < 0)
		return -EINVAL;
	if (strcmp(who, "-"))
		memcpy(d->who, who, sizeof(who));
	if (op_label_parse(label, &d->op, &d->visit)) {
		*expected = "an operation such as \"c1.put2\", or \"-\"";
		return -EINVAL;
	}
	if (parse_point(d, copy + used)) {
		*expected = "a point such as \"before store 3\", \"message 1 packet 2 try 1\" or \"power after return 1\"";
		return -EINVAL;
	}
	if (d->kind == CHOICE_CRASH && d->a == CRASH_AT_END)
		d->visit = 0; /* nobody's */
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

void deviations_free(struct deviations *list)
{
	free(list->d);
	*list = (struct deviations){0};
}
