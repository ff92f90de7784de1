/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workloads of a store's own operations.
 *
 * As with put, get and del (builtin.c), what breaks a store is how few operations follow and meet
 * each other. So all ways in which up to four of them do so are tried, where a pattern says which
 * are the same: "ab-a" is a client that does a and then b, and one that does a. A pattern is filled
 * with each choice of operations for its letters; for a store that has put, get and del these are
 * among them. Names say what happens: "enqueue.dequeue-enqueue". With two keys the second client
 * begins with the other one: so locks are taken in both orders.
 *
 * With many operations there are too many ways to fill the larger patterns: each pattern is filled
 * in at most FILLS ways, drawn evenly from all of them.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "scenarios/workload/workload.h"

#define FILLS	     8
#define VALUE_LENGTH 40
#define LETTERS	     3
#define PLAIN	     3 /* put, get, del */

static const struct {
	const char *text;
	bool symmetric; /* its clients can be exchanged: a-b is b-a */
} patterns[] = {{"a", false},	 {"ab", false},	   {"a-b", true},     {"aab", false},
		{"abb", false},	 {"ab-a", false},  {"ab-b", false},   {"aa-b", false},
		{"aa-bb", true}, {"ab-ab", false}, {"ab-ba", true},   {"a-b-b", false},
		{"aaab", false}, {"abab", false},  {"aa-a-b", false}, {"abc", false},
		{"a-b-c", true}, {"ab-c", false}};
#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

/*
 * Transactions, of stores that have them: a lost update, a write skew, a reader that meets two
 * writes, two writers that meet in both orders; and a transaction that the power ends.
 */
const struct tm_workload workload_transactions[] = {
	{"T", "k1 160, k2 160", {"T{put k1 160, put k2 160}"}, "two keys at once"},
	{"T-T",
	 "k1 160, k2 160",
	 {"T{put k1 160, put k2 160}", "T{get k1, get k2}"},
	 "a reader meets a transaction"},
	{"T-TT",
	 "k1 160, k2 160",
	 {"T{put k1 160, put k2 160}", "T{get k1, get k2}, T{get k1, get k2}"},
	 "a reader meets a transaction twice: it must not go back"},
	{"TT-T",
	 "k1 160, k2 160",
	 {"T{put k1 160, put k2 160}, T{put k1 160, put k2 160}", "T{get k1, get k2}"},
	 "a reader meets two transactions"},
	{"T-T-lost",
	 "k1 160, k2 160",
	 {"T{get k1, put k1 160}", "T{get k1, put k1 160}", "T{get k1, put k2 160}"},
	 "two read and write one key: none of both must be lost"},
	{"T-T-skew",
	 "k1 160, k2 160",
	 {"T{get k1, get k2, put k1 160}", "T{get k1, get k2, put k2 160}"},
	 "each writes what the other one has read"},
	{"T-T-cross",
	 "k1 160, k2 160",
	 {"T{put k1 160, put k2 160}", "T{put k2 160, put k1 160}", "T{get k1, get k2}"},
	 "two write the same two keys, in either order"},
	{"T-w-T",
	 "k1 160, k2 160",
	 {"T{get k1, put k2 160}", "put k1 160", "T{get k2, get k1}"},
	 "an update of what a transaction has read"},
	{"T-xT",
	 "k1 160, k2 160",
	 {"T{put k1 160, put k2 160}, die", "T{get k1, get k2, put k1 160}, get k2"},
	 "a client that dies when it is done; another one needs its keys"},
	{"new-T-T",
	 "k1 -, k2 -",
	 {"T{put k1 160, put k2 160}", "T{get k1, get k2}"},
	 "two keys are created at once"},
	{.name = NULL},
};

static unsigned letters_of(const char *pattern)
{
	unsigned n = 0;

	for (; *pattern; pattern++)
		if (*pattern != '-' && (unsigned)(*pattern - 'a') >= n)
			n = (unsigned)(*pattern - 'a') + 1;
	assert(n <= LETTERS);
	return n;
}

/* What a letter can stand for: the store's own operations, then put, get and del. */
struct choice {
	unsigned own, all;
};

static struct choice choice_of(const struct tm_store *store)
{
	unsigned own = workload_call_types(store->calls);

	return (struct choice){own, own + (store->put ? PLAIN : 0)};
}

/* The number-th way to give each letter an operation, if it is not another pattern's, a built-in
 * workload or one that came before. */
static bool fill(const char *pattern, bool symmetric, struct choice choice, unsigned number,
		 unsigned letter[LETTERS])
{
	unsigned letters = letters_of(pattern);
	bool own = false;

	for (unsigned l = 0; l < letters; l++) {
		letter[l] = number % choice.all;
		own |= letter[l] < choice.own;
		number /= choice.all;
	}
	if (!own)
		return false;
	/* Equal ones are the pattern with fewer letters. */
	for (unsigned l = 1; l < letters; l++)
		for (unsigned k = 0; k < l; k++)
			if (letter[k] == letter[l] && strcmp(pattern, "ab") != 0 &&
			    strcmp(pattern, "a-b") != 0)
				return false;
	for (unsigned l = 1; l < letters && symmetric; l++)
		if (letter[l] < letter[l - 1])
			return false;
	return true;
}

static unsigned ways(unsigned letters, unsigned types)
{
	unsigned n = 1;

	while (letters--)
		n *= types;
	return n;
}

static int make(const struct tm_store *store, const char *pattern, const unsigned *letter,
		struct workload *w)
{
	static const struct {
		const char *name;
		enum op_kind kind;
	} plain[PLAIN] = {{"put", OP_PUT}, {"get", OP_GET}, {"del", OP_DEL}};
	const unsigned own = choice_of(store).own;
	unsigned client = 1;
	size_t len = 0;
	int rc = 0;

	for (const char *p = pattern; *p && rc >= 0; p++) {
		if (*p == '-') {
			client++;
			continue;
		}
		unsigned which = letter[*p - 'a'];
		bool is_own = which < own;
		struct workload_op op = {.kind = OP_CALL};

		if (is_own)
			op.call = (uint8_t)which;
		else
			op.kind = plain[which - own].kind;
		len += (size_t)snprintf(w->name + len, sizeof(w->name) - len, "%s%s",
					p == pattern   ? ""
					: p[-1] == '-' ? "-"
						       : ".",
					is_own ? store->calls[which].name
					       : plain[which - own].name);
		len = len < sizeof(w->name) ? len : sizeof(w->name) - 1;
		for (unsigned k = 0; k < workload_op_keys(w, &op) && rc >= 0; k++) {
			char key[4] = {'k', (char)('1' + k)};
			int found = workload_key_add(w, key, 2, store->put ? 160 : -1);

			rc = found < 0 ? found : 0;
			op.keys[k] = (uint16_t)found;
		}
		if (client % 2 == 0 && workload_op_keys(w, &op) > 1) {
			uint16_t first = op.keys[0];

			op.keys[0] = op.keys[1];
			op.keys[1] = first;
		}
		if (workload_op_valued(w, &op))
			op.vlen = VALUE_LENGTH;
		if (rc >= 0)
			rc = workload_op_append(w, client, &op);
	}
	return rc < 0 ? rc : 0;
}

/* The i-th that is made. */
static int made(const struct tm_store *store, unsigned i, struct workload *w)
{
	const struct choice choice = choice_of(store);

	for (unsigned p = 0; p < PATTERNS; p++) {
		unsigned all = ways(letters_of(patterns[p].text), choice.all), good = 0, at = 0;
		unsigned letter[LETTERS];

		for (unsigned n = 0; n < all; n++)
			good += fill(patterns[p].text, patterns[p].symmetric, choice, n, letter);
		unsigned kept = good < FILLS ? good : FILLS;
		if (i >= kept) {
			i -= kept;
			continue;
		}
		for (unsigned n = 0; n < all; n++)
			if (fill(patterns[p].text, patterns[p].symmetric, choice, n, letter) &&
			    at++ == i * good / kept)
				return make(store, patterns[p].text, letter, w);
	}
	return -ENOENT;
}

static int brought(const struct tm_workload *from, struct workload *w, const char **expected)
{
	int rc = from->keys ? workload_parse_keys(w, from->keys, expected) : 0;

	for (unsigned c = 0; c < 3 && from->client[c] && !rc; c++)
		rc = workload_parse_client(w, c + 1, from->client[c], expected);
	snprintf(w->name, sizeof(w->name), "%s", from->name);
	return rc;
}

int workload_of_store(const struct tm_store *store, unsigned i, struct workload *w,
		      const char **expected)
{
	const struct tm_workload *lists[] = {store->workloads,
					     store->txn ? workload_transactions : NULL};
	const struct tm_workload *own = NULL;
	int rc;

	memset(w, 0, sizeof(*w));
	*expected = "";
	w->calls = store->calls;
	for (unsigned l = 0; l < 2 && !(own && own->name); l++)
		for (own = lists[l]; own && own->name && i; own++)
			i--;
	if (own && own->name)
		rc = brought(own, w, expected);
	else
		rc = store->calls ? made(store, i, w) : -ENOENT;
	if (rc)
		workload_free(w);
	return rc;
}

int workload_for_store(const struct tm_store *store, unsigned i, struct workload *w)
{
	const char *expected;
	unsigned plain = 0;

	while (store->put && workload_what(plain))
		plain++;
	if (i < plain)
		return workload_builtin(i, w);
	int rc = workload_of_store(store, i - plain, w, &expected);
	assert(rc != -EINVAL); /* its list was looked at before */
	return rc;
}
