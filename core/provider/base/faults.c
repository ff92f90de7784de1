/* SPDX-License-Identifier: BSD-3-Clause */
/* See faults.h: the language of rules. faults_judge.c applies them. */
#include "core/provider/base/faults.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"

#define TEXT_BYTES 4096 /* bytes of all rules, with the NUL */

/* --- the parser --- */

struct rule_reader {
	struct text text; /* reports errors */
	char *rest;	  /* of the rule */
	const char *word; /* the last word read; "": the rule has ended */
};

static int refuse(struct rule_reader *r, const char *expected)
{
	return *r->word ? text_wrong(&r->text, "\"%.39s\": expected %s", r->word, expected)
			: text_wrong(&r->text, "expected %s, but the rule ends", expected);
}

static const char *next(struct rule_reader *r)
{
	r->word = text_word(&r->rest);
	return r->word;
}

static bool digits(const char *text)
{
	return text[0] >= '0' && text[0] <= '9';
}

static int read_number(struct rule_reader *r, uint64_t lo, uint64_t hi, const char *expected,
		       uint64_t *out)
{
	const char *word = next(r);
	char *end;

	errno = 0;
	*out = strtoull(word, &end, 0);
	return digits(word) && !*end && !errno && *out >= lo && *out <= hi ? 0
									   : refuse(r, expected);
}

struct unit {
	const char *name;
	double scale;
};

/* A number, perhaps with a fraction, followed by a unit. */
static bool scaled(const char *word, const struct unit *units, double *out)
{
	char *end;

	if (!digits(word))
		return false;
	*out = strtod(word, &end);
	for (const struct unit *u = units; u->name; u++)
		if (!strcasecmp(end, u->name)) {
			*out *= u->scale;
			return *out >= 0 && *out < 1e18;
		}
	return false;
}

static bool is_time(const char *word, uint64_t *ns)
{
	static const struct unit units[] = {{"ns", 1},	{"us", 1e3}, {"ms", 1e6},
					    {"s", 1e9}, {"m", 6e10}, {NULL, 0}};
	double value;

	if (!scaled(word, units, &value))
		return false;
	*ns = (uint64_t)value;
	return true;
}

static int read_time(struct rule_reader *r, uint64_t *ns)
{
	return is_time(next(r), ns) ? 0 : refuse(r, "a time, such as 10us, 1.5ms or 2s");
}

static int read_rate(struct rule_reader *r, uint64_t *rate)
{
	static const struct unit units[] = {
		{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {NULL, 0}};
	double value;

	if (!scaled(next(r), units, &value) || value < 1)
		return refuse(r, "a rate, such as 100mbit or 1.5gbit");
	*rate = (uint64_t)value;
	return 0;
}

static int read_action(struct rule_reader *r, struct fault_rule *rule)
{
	static const struct {
		const char *word;
		enum fault_action action;
	} actions[] = {
		{"lose", FAULT_LOSE},		{"drop", FAULT_LOSE},
		{"duplicate", FAULT_DUPLICATE}, {"reorder", FAULT_REORDER},
		{"corrupt", FAULT_CORRUPT},	{"delay", FAULT_DELAY},
		{"rate", FAULT_RATE},		{"partition", FAULT_PARTITION},
		{"tear", FAULT_TEAR},
	};
	unsigned n = sizeof(actions) / sizeof(actions[0]), i;

	for (i = 0; i < n && strcmp(r->word, actions[i].word); i++)
		;
	if (i == n)
		return refuse(r, "lose, drop, duplicate, reorder, corrupt, delay, rate, partition, "
				 "tear or off");
	rule->action = actions[i].action;
	if (rule->action == FAULT_DELAY)
		return read_time(r, &rule->amount);
	if (rule->action == FAULT_RATE)
		return read_rate(r, &rule->amount);
	if (rule->action == FAULT_REORDER)
		rule->amount = 1;
	if (rule->action == FAULT_TEAR)
		rule->amount = UINT64_MAX; /* anywhere */
	return 0;
}

/* A kind of packet is a class of opcode.h. */
static enum op_class find_what(const char *word)
{
	for (enum op_class what = CLASS_ANY + 1; what < CLASS_COUNT; what++)
		if (class_rows[what].word && !strcmp(word, class_rows[what].word))
			return what;
	return CLASS_ANY;
}

/* "write" was read, and "3" may follow. */
static int read_what(struct rule_reader *r, struct fault_rule *rule, enum op_class what)
{
	uint64_t number;
	const char *at = text_skip_blanks(r->rest);

	if (rule->what)
		return refuse(r, "one kind of packet in a rule");
	rule->what = what;
	if (!digits(at) || memchr(at, '%', strcspn(at, " \t")))
		return 0;
	if (read_number(r, 1, UINT32_MAX, "a message's number, from 1 on", &number))
		return -EINVAL;
	rule->message = (uint32_t)number;
	return 0;
}

static int read_peer(struct rule_reader *r, struct fault_rule *rule)
{
	const char *word = next(r);
	struct in_addr in;
	char *end;

	rule->has_peer = true;
	if (inet_pton(AF_INET, word, &in) == 1) {
		rule->peer = ntohl(in.s_addr);
		return 0;
	}
	rule->peer = (uint32_t)strtoul(word, &end, 10);
	return digits(word) && !*end && strlen(word) < 6
		       ? 0
		       : refuse(r, "an IPv4 address, or a process's number in the fabric");
}

static int read_after(struct rule_reader *r, struct fault_rule *rule)
{
	char *end;

	if (is_time(next(r), &rule->after_ns))
		return 0;
	errno = 0;
	rule->after_packets = strtoull(r->word, &end, 10);
	if (!digits(r->word) || *end || errno)
		return refuse(r, "a time, or a number of packets");
	return strcmp(next(r), "packets") ? refuse(r, "\"packets\"") : 0;
}

static int read_percent(struct rule_reader *r, struct fault_rule *rule)
{
	char *end;
	double percent = strtod(r->word, &end);

	if (strcmp(end, "%") || !(percent >= 0 && percent <= 100))
		return refuse(r, "a share of the packets from 0% to 100%");
	rule->odds = percent >= 100 ? FAULT_ALWAYS : (uint32_t)(percent / 100 * FAULT_ALWAYS);
	return 0;
}

/* Words that only one action has. */
static int read_special(struct rule_reader *r, struct fault_rule *rule)
{
	if (!strcmp(r->word, "by") && rule->action == FAULT_REORDER)
		return read_number(r, 1, 1000, "a number of packets from 1 to 1000", &rule->amount);
	if (!strcmp(r->word, "jitter") && rule->action == FAULT_DELAY)
		return read_time(r, &rule->jitter);
	if (!strcmp(r->word, "at") && rule->action == FAULT_TEAR)
		return read_number(r, 0, UINT32_MAX, "a number of bytes", &rule->amount);
	return refuse(
		r, "a share (5%), a kind of packet (write, ack ...), packet, qp, peer, after, for, "
		   "times or once");
}

static int read_condition(struct rule_reader *r, struct fault_rule *rule)
{
	enum op_class what = find_what(r->word);
	uint64_t number = 0;
	int rc;

	if (what)
		return read_what(r, rule, what);
	if (digits(r->word))
		return read_percent(r, rule);
	if (!strcmp(r->word, "packet")) {
		rc = read_number(r, 1, UINT32_MAX, "a packet's number, from 1 on", &number);
		rule->packet = (uint32_t)number;
		return rc;
	}
	if (!strcmp(r->word, "qp")) {
		rc = read_number(r, 0, 0xffffff, "a queue pair's number", &number);
		rule->has_qp = true;
		rule->qp = (uint32_t)number;
		return rc;
	}
	if (!strcmp(r->word, "peer"))
		return read_peer(r, rule);
	if (!strcmp(r->word, "after"))
		return read_after(r, rule);
	if (!strcmp(r->word, "for"))
		return read_time(r, &rule->for_ns);
	if (!strcmp(r->word, "times"))
		return read_number(r, 1, UINT64_MAX, "a number from 1 on", &rule->times);
	if (!strcmp(r->word, "once")) {
		rule->times = 1;
		return 0;
	}
	return read_special(r, rule);
}

/* The first word has been read. */
static int read_rule(struct rule_reader *r, struct fault_rule *rule)
{
	bool told = true;

	*rule = (struct fault_rule){.odds = FAULT_ALWAYS, .directions = 1 << FAULT_OUT};
	if (!strcmp(r->word, "in"))
		rule->directions = 1 << FAULT_IN;
	else if (!strcmp(r->word, "both"))
		rule->directions = 1 << FAULT_OUT | 1 << FAULT_IN;
	else
		told = !strcmp(r->word, "out");
	if (told)
		next(r);
	if (read_action(r, rule))
		return -EINVAL;
	/* A partition in one direction is a loss, and memory is torn where it is written. */
	if (!told && rule->action == FAULT_PARTITION)
		rule->directions = 1 << FAULT_OUT | 1 << FAULT_IN;
	if (rule->action == FAULT_TEAR) {
		if (told && rule->directions != 1 << FAULT_IN)
			return refuse(
				r,
				"\"in\" before it, or nothing: memory is torn where it is written");
		rule->directions = 1 << FAULT_IN;
	}
	bool any = false;
	for (; *next(r); any = true)
		if (read_condition(r, rule))
			return -EINVAL;
	/* A user who forgets which ones would look for the fault elsewhere. */
	if (!any && (rule->action == FAULT_LOSE || rule->action == FAULT_CORRUPT))
		return text_wrong(
			&r->text,
			"%s: expected which packets, such as 5%%, write 3 or after 1s; 100%% "
			"are all",
			rule->action == FAULT_LOSE ? "lose" : "corrupt");
	if (rule->action == FAULT_TEAR && rule->what && rule->what != CLASS_WRITE &&
	    rule->what != CLASS_SEND)
		return text_wrong(&r->text, "tear: expected write or send, which reach memory");
	return 0;
}

static int read_rules(struct rule_reader *r, struct faults *faults, char *rules, uint64_t seed)
{
	struct fault_rule rule;

	for (bool more = true; more;) {
		r->rest = text_part(&rules, ';', &more);
		if (!*next(r))
			continue;
		if (!strcmp(r->word, "off")) {
			if (*next(r))
				return refuse(r, "nothing after off");
			faults->rules = 0;
			continue;
		}
		if (faults->rules == FAULT_RULES)
			return text_wrong(&r->text, "expected at most %d rules", FAULT_RULES);
		if (read_rule(r, &rule))
			return -EINVAL;
		for (unsigned d = 0; d < 2; d++)
			rule.random[d] = faults_mix(faults_mix(seed) + 2 * faults->rules + d);
		faults->rule[faults->rules++] = rule;
	}
	return 0;
}

int faults_parse(struct faults *faults, const char *text, uint64_t seed, char *why, size_t size)
{
	char rules[TEXT_BYTES];
	struct input_error wrong;
	struct rule_reader r;
	int rc;

	memset(faults, 0, sizeof(*faults));
	snprintf(rules, sizeof(rules), "%s", text);
	text_start(&r.text, rules, strlen(rules), &wrong);
	/* A line end separates rules, too, and a comma is a blank. */
	for (char *p = rules; *p; p++)
		*p = *p == '\n'		       ? ';'
		     : *p == ',' || *p == '\t' ? ' '
		     : *p >= ' ' && *p <= '~'  ? *p
					       : '?';
	rc = strlen(text) < sizeof(rules)
		     ? read_rules(&r, faults, rules, seed)
		     : text_wrong(&r.text, "expected at most %d characters", TEXT_BYTES - 1);
	if (rc)
		snprintf(why, size, "%s", wrong.message);
	for (unsigned i = 0; i < faults->rules; i++)
		faults->numbers |= faults->rule[i].message || faults->rule[i].packet;
	return rc;
}
