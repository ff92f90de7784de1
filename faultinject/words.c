/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Points and answers of each kind of choice, as words and back. A row of `kinds` is all that is
 * said of a kind. Most points are one pattern, used in both directions. What is read is exactly
 * what would be printed: no other blanks, no signs, no leading zeros; so a point has one name,
 * and a number too large is an error, not another number.
 */
#include "faultinject/words.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/rnic/opcode.h"
#include "core/text/text.h"
#include "faultinject/life.h"

struct kind_words {
	/* The words of the point. Each "%u" is the next of a, b and c; or with `word`, "%s" is the
	 * a-th word, and then come b and c. `print` and `parse`: where a pattern does not do. */
	const char *pattern;
	const char *(*word)(uint32_t a); /* NULL: there is none */
	void (*print)(const struct deviation *d, char *buf, size_t n);
	int (*parse)(struct deviation *d, const char *text);
	/* The words of the answers: the first ones by name, those after them by number from 1 to
	 * `most`; and delays, where the kind has them. `effect`, if not "is late", as
	 * deviation_effect() says. */
	struct {
		const char *word, *effect;
	} answer[2];
	const char *count;
	uint32_t most;
	/* Where neither does. The reader returns the answer, or -1. */
	void (*print_answer)(unsigned answer, char *buf, size_t n);
	int (*parse_answer)(const char *text);
	const char *effect;
	const char *expected; /* NULL: a delay */
};

static const struct kind_words kinds[CHOICE_KINDS];

/* --- patterns --- */

static const char *number(const char *text, uint32_t *out)
{
	uint64_t n;
	const char *end = text_digits(text, UINT32_MAX, &n);
	if (!end || (*text == '0' && end - text > 1))
		return NULL;
	*out = (uint32_t)n;
	return end;
}

const char *words_match(const char *text, const char *pattern, uint32_t *out)
{
	for (; *pattern && text; pattern++) {
		if (*pattern == '%') {
			text = number(text, out++);
			pattern++;
		} else if (*text++ != *pattern) {
			return NULL;
		}
	}
	return text;
}

bool words_are(const char *text, const char *pattern, uint32_t *out)
{
	text = words_match(text, pattern, out);
	return text && !*text;
}

/* Print a pattern with the word for its "%s", and the numbers for its "%u"s. */
static void print_pattern(const char *pattern, const char *word, const uint32_t *value, char *buf,
			  size_t n)
{
	for (; *pattern && n > 1; pattern++) {
		int len = 1;
		if (*pattern != '%')
			*buf = *pattern;
		else if (*++pattern == 's')
			len = snprintf(buf, n, "%s", word);
		else
			len = snprintf(buf, n, "%u", *value++);
		assert(len >= 0 && (size_t)len < n);
		buf += len;
		n -= (size_t)len;
	}
	*buf = '\0';
}

static int parse_pattern(const struct kind_words *kind, struct deviation *d, const char *text)
{
	uint32_t value[3] = {0};
	if (!kind->word) {
		if (!words_are(text, kind->pattern, value))
			return -EINVAL;
		d->a = value[0];
		d->b = value[1];
		d->c = value[2];
		return 0;
	}
	size_t before = strcspn(kind->pattern, "%");
	const char *word;
	if (strncmp(text, kind->pattern, before))
		return -EINVAL;
	for (uint32_t a = 0; (word = kind->word(a)) != NULL; a++) {
		if (strncmp(text + before, word, strlen(word)) ||
		    !words_are(text + before + strlen(word), kind->pattern + before + 2, value))
			continue;
		d->a = a;
		d->b = value[0];
		d->c = value[1];
		return 0;
	}
	return -EINVAL;
}

void words_print_point(const struct deviation *d, char *buf, size_t n)
{
	const struct kind_words *kind = &kinds[d->kind];
	const uint32_t value[] = {d->a, d->b, d->c};
	if (kind->print)
		kind->print(d, buf, n);
	else if (kind->word)
		print_pattern(kind->pattern, kind->word(d->a), value + 1, buf, n);
	else
		print_pattern(kind->pattern, NULL, value, buf, n);
}

int words_parse_point(struct deviation *d, const char *text)
{
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		if (!kinds[k].parse && !kinds[k].pattern)
			continue; /* lines are named otherwise */
		if (kinds[k].parse ? kinds[k].parse(d, text) : parse_pattern(&kinds[k], d, text))
			continue;
		d->kind = (uint8_t)k;
		return 0;
	}
	return -EINVAL;
}

/* --- packets and reads --- */

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
		uint32_t value[3], copy = 0;
		snprintf(pattern, sizeof(pattern), "message %%u %s %%u try %%u", packet_words[w]);
		const char *rest = words_match(text, pattern, value);
		if (!rest)
			continue;
		uint32_t index = value[1], again = value[2];
		if ((index >= INDEX_RANGE && (w || index < PACKET_WORDS * INDEX_RANGE)) ||
		    again > 0xffff)
			return -EINVAL;
		if (*rest && (!words_are(rest, " copy %u", &copy) || !copy || copy > 0xffff))
			return -EINVAL;
		d->a = value[0];
		d->b = index + w * INDEX_RANGE;
		d->c = again | copy << 16;
		return 0;
	}
	return -EINVAL;
}

/* c: line + 2^23 x copy + 2^24 x (try - 1). */
static void print_request(const char *pattern, const struct deviation *d, uint32_t c, char *buf,
			  size_t n)
{
	print_pattern(pattern, NULL, (uint32_t[]){d->a, d->b, c & FETCH_LINE}, buf, n);
	size_t len = strlen(buf);
	if (c >> 23)
		snprintf(buf + len, n - len, " try %u%s", (c >> 24) + 1,
			 c >> 23 & 1 ? " copy 1" : "");
}

static int parse_request(const char *pattern, unsigned tries, struct deviation *d, const char *text)
{
	uint32_t value[3], again = 1, copy = 0;
	const char *rest = words_match(text, pattern, value);
	if (!rest || value[2] > FETCH_LINE)
		return -EINVAL;
	if (*rest) {
		rest = words_match(rest, " try %u", &again);
		if (!rest || again < 1 || again > tries)
			return -EINVAL;
		copy = *rest != '\0';
		if (copy ? strcmp(rest, " copy 1") != 0 : again == 1)
			return -EINVAL;
	}
	d->a = value[0];
	d->b = value[1];
	d->c = value[2] | copy << 23 | (again - 1) << 24;
	return 0;
}

static const char fetch_pattern[] = "reading message %u packet %u line %u";

static void print_fetch(const struct deviation *d, char *buf, size_t n)
{
	print_request(fetch_pattern, d, d->c, buf, n);
}

static int parse_fetch(struct deviation *d, const char *text)
{
	return parse_request(fetch_pattern, 256, d, text);
}

/* Lines that land, and READs. */
static const char landed_pattern[] = "order message %u packet %u landed %u";
static const char fetched_pattern[] = "order message %u packet %u fetched %u";

static void print_order(const struct deviation *d, char *buf, size_t n)
{
	if (d->c & ORDER_FETCHED)
		print_request(fetched_pattern, d, d->c & ~ORDER_FETCHED, buf, n);
	else
		print_pattern(landed_pattern, NULL, (uint32_t[]){d->a, d->b, d->c}, buf, n);
}

static int parse_order(struct deviation *d, const char *text)
{
	uint32_t value[3];
	if (!parse_request(fetched_pattern, 128, d, text)) {
		d->c |= ORDER_FETCHED;
		return 0;
	}
	if (!words_are(text, landed_pattern, value) || value[2] & ORDER_FETCHED)
		return -EINVAL;
	d->a = value[0];
	d->b = value[1];
	d->c = value[2];
	return 0;
}

/* --- the power --- */

static const char *const place_words[CRASH_PLACES] = {
	"after return",	     "before fence", "before store", "before landing", "before drain",
	"before write-back", "at end",	     "anywhere",     "before entry"};

static void print_power(const struct deviation *d, char *buf, size_t n)
{
	if (d->a == CRASH_AT_END)
		snprintf(buf, n, "power at end");
	else if (d->a == CRASH_BEFORE_LAND || d->a == CRASH_BEFORE_DRAIN)
		snprintf(buf, n, "power %s message %u packet %u line %u", place_words[d->a], d->b,
			 d->c >> 16, d->c & 0xffff);
	else
		snprintf(buf, n, "power %s %u", place_words[d->a], d->b);
}

static int parse_power(struct deviation *d, const char *text)
{
	static const char power[] = "power ";
	uint32_t value[3] = {0};
	unsigned p = 0;
	if (strncmp(text, power, strlen(power)))
		return -EINVAL;
	text += strlen(power);
	while (p < CRASH_PLACES && strncmp(text, place_words[p], strlen(place_words[p])))
		p++;
	if (p == CRASH_PLACES)
		return -EINVAL;
	text += strlen(place_words[p]);
	if (p == CRASH_BEFORE_LAND || p == CRASH_BEFORE_DRAIN) {
		if (!words_are(text, " message %u packet %u line %u", value) || value[1] > 0xffff ||
		    value[2] > 0xffff)
			return -EINVAL;
	} else if (p == CRASH_AT_END ? *text : !words_are(text, " %u", value)) {
		return -EINVAL;
	}
	d->a = p;
	d->b = value[0];
	d->c = value[1] << 16 | value[2];
	return 0;
}

/* --- delays --- */

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
		   {"and switch", DELAY_SWITCH},
		   {"server dies", DEATH_SERVER},
		   {"process dies", DEATH_PROCESS},
		   {"machine dies", DEATH_MACHINE}};

#define DELAY_EXPECTED \
	"\"delay TIME\", TIME such as 500ns 30us 5ms \"until quiescence\" \"and switch\""

/* Only a client's task can stop for good: it is dead. */
static bool can_stop(const struct deviation *d)
{
	return choice_traits[d->kind].forever && d->who[0] == 'c';
}

/* The server can die at a step of any task. */
static bool can_be(const struct deviation *d, unsigned k)
{
	if (k == DEATH_SERVER || delay_befalls_one(k))
		return choice_traits[d->kind].forever;
	return can_stop(d) || (k != DELAY_FOREVER && !delay_kills(k));
}

/* Units of time, from the largest; a delay is so many of the largest one that divides it. */
static const struct {
	const char *pattern;
	uint32_t ns;
} units[] = {{"%ums", 1000000}, {"%uus", 1000}, {"%uns", 1}};
#define UNITS (sizeof(units) / sizeof(units[0]))

static void print_ns(uint32_t ns, char *buf, size_t n)
{
	unsigned unit = 0;
	while (ns % units[unit].ns)
		unit++;
	print_pattern(units[unit].pattern, NULL, (uint32_t[]){ns / units[unit].ns}, buf, n);
}

/* 0: it is no time, or another one would be printed. */
static unsigned parse_ns(const char *text)
{
	uint32_t n;
	for (unsigned unit = 0; unit < UNITS; unit++) {
		const uint64_t most = DELAY_NS_MOST / units[unit].ns;
		if (words_are(text, units[unit].pattern, &n))
			return n && n <= most && (!unit || n % 1000)
				       ? delay_of_ns((uint64_t)n * units[unit].ns)
				       : 0;
	}
	return 0;
}

/* The k of the delay, 0: it is none. Older versions wrote "hold" for "delay", "rest" for
 * "quiescence". */
static unsigned parse_delay(const char *text)
{
	uint32_t server;
	const char *event = words_match(text, "server %u ", &server);
	for (unsigned e = 0; event && e < SERVER_EVENTS_END; e++)
		if (server && server <= SIM_SERVERS && !strcmp(event, server_events[e].word))
			return death_of(e, server - 1);
	size_t verb = !strncmp(text, "delay ", 6) ? 6 : !strncmp(text, "hold ", 5) ? 5 : 0;
	for (unsigned i = 0; !verb && i < sizeof(delay_words) / sizeof(delay_words[0]); i++)
		if (delay_words[i].k >= DEATH_SERVER && !strcmp(text, delay_words[i].word))
			return delay_words[i].k;
	if (!verb)
		return 0;
	if (!strcmp(text + verb, "until rest"))
		return DELAY_QUIESCENCE;
	for (unsigned i = 0; i < sizeof(delay_words) / sizeof(delay_words[0]); i++)
		if (delay_words[i].k < DEATH_SERVER && !strcmp(text + verb, delay_words[i].word))
			return delay_words[i].k;
	return *text == 'd' ? parse_ns(text + verb) : 0;
}

/* --- lives --- */

/* In the order of enum life_verb. A key is named by its number, from 1. */
static const char *const life_words[LIFE_VERBS] = {"put key %u", "put key %u long", "get key %u",
						   "del key %u"};
static const char *const life_txns[LIFE_TXN_VERBS] = {"put key %u and the next",
						      "get key %u and the next"};
static const char life_call[] = "call %u"; /* likewise */

static void print_life(unsigned answer, char *buf, size_t n)
{
	uint32_t number = answer - LIFE_CALLS;
	const char *pattern = life_call;
	if (life_is_keyed(answer)) {
		pattern = life_words[life_verb(answer)];
		number = life_key(answer);
	} else if (life_is_txn(answer)) {
		pattern = life_txns[(answer - LIFE_TXNS) % LIFE_TXN_VERBS];
		number = (answer - LIFE_TXNS) / LIFE_TXN_VERBS;
	}
	number++;
	print_pattern(pattern, NULL, &number, buf, n);
}

static int parse_life(const char *text)
{
	uint32_t call;
	if (words_are(text, life_call, &call) && call && call <= UINT8_MAX)
		return (int)(LIFE_CALLS + call - 1);
	for (unsigned verb = 0; verb < LIFE_VERBS; verb++) {
		uint32_t key;
		if (words_are(text, life_words[verb], &key) && key && key <= UINT16_MAX)
			return (int)life_answer(verb, key - 1);
	}
	for (unsigned verb = 0; verb < LIFE_TXN_VERBS; verb++) {
		uint32_t key;
		if (words_are(text, life_txns[verb], &key) && key && key <= UINT8_MAX)
			return (int)life_txn(verb, key - 1);
	}
	return -1;
}

/* --- answers --- */

/* Number of the kind's answers that have names. */
static unsigned named(const struct kind_words *kind)
{
	return !!kind->answer[0].word + !!kind->answer[1].word;
}

void words_print_answer(const struct deviation *d, char *buf, size_t n)
{
	const struct kind_words *kind = &kinds[d->kind];
	unsigned k = choice_delay(d->kind, d->answer);
	uint32_t place = d->answer - named(kind);
	if (delay_befalls_one(k)) {
		snprintf(buf, n, "server %u %s", death_server(k) + 1,
			 server_events[death_event(k)].word);
	} else if (k >= DELAY_NS) {
		const size_t len = (size_t)snprintf(buf, n, "delay ");
		print_ns(k - DELAY_NS, buf + len, n - len);
	} else if (k) {
		snprintf(buf, n, "%s%s", k < DEATH_SERVER ? "delay " : "", delay_words[k - 1].word);
	} else if (d->answer <= named(kind)) {
		snprintf(buf, n, "%s", kind->answer[d->answer - 1].word);
	} else if (kind->print_answer) {
		kind->print_answer(d->answer, buf, n);
	} else {
		print_pattern(kind->count, NULL, &place, buf, n);
	}
}

int words_parse_answer(const struct deviation *d, const char *text, const char **expected)
{
	const struct kind_words *kind = &kinds[d->kind];
	unsigned k = choice_traits[d->kind].delay ? parse_delay(text) : 0;
	uint32_t place = 0;
	*expected = kind->expected ? kind->expected
		    : can_stop(d)  ? DELAY_EXPECTED
			    " \"for ever\"; \"server dies\", \"process dies\" or \"machine "
			    "dies\""
		    : choice_traits[d->kind].forever ? DELAY_EXPECTED "; or \"server dies\""
						     : DELAY_EXPECTED;
	if (k && can_be(d, k))
		return (int)choice_delay_answer(d->kind, k);
	for (unsigned i = 0; i < named(kind); i++)
		if (!strcmp(text, kind->answer[i].word))
			return (int)i + 1;
	if (kind->count && words_are(text, kind->count, &place) && place && place <= kind->most)
		return (int)(named(kind) + place);
	return kind->parse_answer ? kind->parse_answer(text) : -1;
}

void deviation_effect(const struct deviation *d, const char *who, const char *op, char *buf,
		      size_t n)
{
	const struct kind_words *kind = &kinds[d->kind];
	const char *effect = d->answer <= named(kind) ? kind->answer[d->answer - 1].effect : NULL;
	const char *word = kind->word ? kind->word(d->a) : "";
	if (!effect)
		effect = kind->effect;
	static const char *const deaths[] = {"the server's process dies", "the process of WHO dies",
					     "the machine of WHO dies"};
	unsigned k = choice_delay(d->kind, d->answer);
	if (delay_befalls_one(k))
		effect = server_events[death_event(k)].effect;
	else if (delay_kills(k))
		effect = deaths[k - DEATH_SERVER];
	/* A step of no operation is its task's alone. */
	if (!effect)
		effect = d->kind == CHOICE_STEP && !d->op.kind ? "WHO is late" : "OP is late";
	const struct {
		const char *name, *text;
	} names[] = {{"WHO", who}, {"OP", op}, {"WORD", word}};
	size_t at = 0;
	while (*effect && at + 1 < n) {
		unsigned i = 0;
		while (i < 3 && strncmp(effect, names[i].name, strlen(names[i].name)))
			i++;
		if (i == 3) {
			buf[at++] = *effect++;
			continue;
		}
		at += (size_t)snprintf(buf + at, n - at, "%s", names[i].text);
		at = at < n ? at : n - 1;
		effect += strlen(names[i].name);
	}
	buf[at] = '\0';
}

/* --- the table --- */

static const char *step_word(uint32_t kind)
{
	static const char *const words[STEP_KINDS] = {
		"store", "load", "flush", "fence", "post", "completion", "begin", "lock", "atomic"};
	return kind < STEP_KINDS ? words[kind] : NULL;
}

static const char *call_word(uint32_t point)
{
	return point < FAIL_POINT_COUNT ? fail_points[point].name : NULL;
}

static const struct kind_words kinds[CHOICE_KINDS] = {
	[CHOICE_STEP] = {.pattern = "before %s %u", .word = step_word},
	[CHOICE_PACKET] = {.print = print_packet,
			   .parse = parse_packet,
			   .answer = {{"lose", NULL},
				      {"duplicate", "a packet of OP is duplicated"}},
			   .expected = "\"lose\", \"duplicate\" or \"delay TIME\""},
	[CHOICE_LAND] = {.pattern = "landing message %u packet %u line %u"},
	[CHOICE_ORDER] = {.print = print_order,
			  .parse = parse_order,
			  .count = "%u ahead",
			  .most = 65535,
			  .effect = "lines of OP land, or are fetched, in another order",
			  .expected = "\"N ahead\""},
	[CHOICE_FETCH] = {.print = print_fetch, .parse = parse_fetch},
	[CHOICE_DRAIN] = {.pattern = "draining message %u packet %u line %u"},
	[CHOICE_EVICT] = {.pattern = "cache",
			  .answer = {{"write back all", NULL}},
			  .count = "write back dirty line %u",
			  .most = (1u << 30) - 1,
			  .effect = "the cache writes back after OP",
			  .expected = "\"write back all\" or \"write back dirty line N\""},
	[CHOICE_CRASH] = {.print = print_power,
			  .parse = parse_power,
			  .answer = {{"fails", NULL}},
			  .expected = "\"fails\""},
	[CHOICE_BUFFER] = {.pattern = "buffer store %u"},
	[CHOICE_FAIL] = {.pattern = "call %s %u",
			 .word = call_word,
			 .answer = {{"fails", NULL}},
			 .effect = "WORD fails, by WHO for OP",
			 .expected = "\"fails\""},
	[CHOICE_LIFE] = {.pattern = "life %u",
			 .answer = {{"clean", "cleaning after recovery"}},
			 .print_answer = print_life,
			 .parse_answer = parse_life,
			 .effect = "an operation after recovery",
			 .expected = "\"clean\", \"put key K\", \"put key K long\", \"get key K\", "
				     "\"del key K\" or \"call N\""},
	[CHOICE_CLOCK] = {.pattern = "clock",
			  .answer = {{"ahead", NULL}},
			  .effect = "WHO has a clock that is ahead",
			  .expected = "\"ahead\""},
};
