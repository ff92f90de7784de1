/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The built-in workloads: the small matrix, and after it YCSB.
 *
 * The matrix holds the smallest workloads that can show each known way in which a
 * store breaks: small enough to be explored exhaustively, and each different from the others in
 * which operations meet. When the power fails, which client stalls and which packet is late are
 * choices of the explorer, not part of a workload.
 *
 * Names say what happens. One letter an operation (w: PUT, r: GET, d: DELETE, c: clean the log, l:
 * leave, x: die, p: pause), in
 * program order; a number after it is the key, where there are several; '-' is between clients;
 * "new-": the keys do not exist yet, so the first PUT creates them; "move-": two keys exist and a
 * third is created, which in a crowded hash table moves an entry; ".N": values of N bytes. So
 * "w1r2-w2r1" is client 1: PUT k1, GET k2, and client 2: PUT k2, GET k1. No name needs quoting in a
 * shell.
 *
 * A value has 160 bytes unless the name says otherwise: two 64-byte lines and a
 * part of a third, so that it can be torn between lines and shares its last line
 * with what follows it. Among the other lengths, 8 bytes are the failure-atomic unit, 40 fit into a
 * line together with a header, and 1500 take two packets at the default MTU of 1024.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "scenarios/workload/workload.h"

#define MATRIX_CLIENTS 3

struct builtin {
	const char *name;
	const char *keys;		    /* as workload_parse_keys() reads it */
	const char *client[MATRIX_CLIENTS]; /* as workload_parse_client() reads it; NULL: no such
					       client */
	const char *what;		    /* one line */
};

#define W    "put k1 160"
#define R    "get k1"
#define D    "del k1"
#define C    "clean"
#define W2   "put k2 160"
#define R2   "get k2"
#define OLD  "k1 160"
#define NEW  "k1 -"
#define OLD2 "k1 160, k2 160"
#define NEW2 "k1 -, k2 -"
#define MOVE "k1 160, k2 160, k3 -"
#define TEN  "k1 8, k2 8, k3 8, k4 8, k5 8, k6 8, k7 8, k8 8, k9 8, k10 8"

static const struct builtin matrix[] = {
	/* One client, one key. */
	{"w", OLD, {W}, "one update"},
	{"ww", OLD, {W ", " W}, "two updates; the first is the second's previous version"},
	{"wr", OLD, {W ", " R}, "an update, read back: what was read must stay"},
	{"www", OLD, {W ", " W ", " W}, "three updates: the loaded version is two versions back"},
	{"wwr", OLD, {W ", " W ", " R}, "two updates, read back"},
	{"wd", OLD, {W ", " D}, "an update, then deleted"},
	{"dw", OLD, {D ", " W}, "deleted, then put again"},
	{"dr", OLD, {D ", " R}, "deleted and looked for: it must stay away"},
	{"wdw", OLD, {W ", " D ", " W}, "an update, deleted, put again"},
	{"new-w", NEW, {W}, "a key is created"},
	{"new-ww", NEW, {W ", " W}, "a key is created and updated"},
	{"new-wr", NEW, {W ", " R}, "a key is created and read back"},
	{"new-wd", NEW, {W ", " D}, "a key is created and deleted"},
	{"new-wdw", NEW, {W ", " D ", " W}, "a key is created, deleted and created again"},

	/* Two clients, one key. */
	{"w-w", OLD, {W, W}, "two clients update one key; either may stall"},
	{"w-r", OLD, {W, R}, "a reader meets an update"},
	{"w-rr", OLD, {W, R ", " R}, "a reader meets an update twice: it must not go back"},
	{"w-wr", OLD, {W, W ", " R}, "two updates, one of them read back: a reader that repairs"},
	{"ww-w", OLD, {W ", " W, W}, "two updates against one: a late repair hits a later update"},
	{"ww-r", OLD, {W ", " W, R}, "a reader meets two updates"},
	{"ww-rr", OLD, {W ", " W, R ", " R}, "a reader meets two updates twice"},
	{"w-rrrr",
	 OLD,
	 {W, R ", " R ", " R ", " R},
	 "a reader that repairs looks again: an update in flight"},
	{"ww-rrrr", OLD, {W ", " W, R ", " R ", " R ", " R}, "likewise, with a later update"},
	{"d-r", OLD, {D, R}, "a reader meets a delete"},
	{"d-w", OLD, {D, W}, "a delete against an update"},
	{"d-rr", OLD, {D, R ", " R}, "a reader meets a delete twice"},
	{"d-wr", OLD, {D, W ", " R}, "a delete against an update that is read back"},
	{"wd-r", OLD, {W ", " D, R}, "a reader meets an update and its delete"},
	{"dw-r", OLD, {D ", " W, R}, "a reader meets a delete and the next update"},
	{"wd-w", OLD, {W ", " D, W}, "an update and a delete against an update in flight"},
	{"new-w-r", NEW, {W, R}, "a reader meets a creation"},
	{"new-w-rr", NEW, {W, R ", " R}, "a reader meets a creation twice"},
	{"new-w-w", NEW, {W, W}, "two clients create one key"},
	{"new-w-wr", NEW, {W, W ", " R}, "two clients create one key; one reads it back"},
	{"new-w-d", NEW, {W, D}, "a delete meets a creation"},

	/* Three clients, one key. */
	{"w-w-r", OLD, {W, W, R}, "a reader among two updates"},
	{"w-w-rr", OLD, {W, W, R ", " R}, "a reader among two updates, twice"},
	{"w-r-r", OLD, {W, R, R}, "two readers must agree on the order around an update"},
	{"w-d-r", OLD, {W, D, R}, "a reader among an update and a delete"},
	{"w-w-w", OLD, {W, W, W}, "three updates in flight"},
	{"ww-w-w",
	 OLD,
	 {W ", " W, W, W},
	 "four updates of three clients: an intact version stays in reach"},
	{"new-w-w-w", NEW, {W, W, W}, "three clients create one key"},

	/* Two keys. */
	{"w1w2", OLD2, {W ", " W2}, "two keys one after the other"},
	{"w1w2r2",
	 OLD2,
	 {W ", " W2 ", " R2},
	 "the second key's read must not make it durable alone"},
	{"w1-w2", OLD2, {W, W2}, "two clients, a key each: neighbours in a log"},
	{"w1-r1r2", OLD2, {W, R ", " R2}, "a reader of two keys meets an update of the first"},
	{"w1-w2r2",
	 OLD2,
	 {W, W2 ", " R2},
	 "a stalled writer of one key, another key written and read"},
	{"w1w1-w2w2", OLD2, {W ", " W, W2 ", " W2}, "two clients update a key each, twice"},
	{"w1w2-r2r1",
	 OLD2,
	 {W ", " W2, R2 ", " R},
	 "who sees the second key's update must see the first's"},
	{"w1r2-w2r1",
	 OLD2,
	 {W ", " R2, W2 ", " R},
	 "two by two: each writes a key and reads the other's"},
	{"w1-w2-r1r2", OLD2, {W, W2, R ", " R2}, "a reader of two keys that two clients update"},
	{"w1d2r2",
	 OLD2,
	 {W ", del k2, " R2},
	 "an update of one key, the other deleted and looked for"},
	{"w1w2w2w2w2",
	 OLD2,
	 {W ", " W2 ", " W2 ", " W2 ", " W2},
	 "one update deep in the log after many"},
	{"new-w1w2", NEW2, {W ", " W2}, "two keys are created"},
	{"new-w1-w2", NEW2, {W, W2}, "two clients create a key each: they must not share an entry"},
	{"new-w1w2-r2", NEW2, {W ", " W2, R2}, "a reader meets the second key's creation"},
	{"new-w1-w2r2",
	 NEW2,
	 {W, W2 ", " R2},
	 "two clients create a key each; one reads its own back"},

	/* Three keys. */
	{"new-w1w3w2",
	 "k1 -, k2 -, k3 -",
	 {W ", put k3 160, " W2},
	 "three keys are created; a crash may take any one and leave the others"},

	/* Clients come and go. */
	{"lw-w", OLD, {"leave, " W, W}, "a client connects late, beside an update"},
	{"wlwlwlr",
	 OLD,
	 {W ", leave, " W ", leave, " W ", leave, " R},
	 "a client leaves and comes back, three times"},
	{"wxr-w",
	 OLD,
	 {W ", die, " R, W},
	 "a client's process dies and comes back, beside an update"},
	{"w1xw1-w2w2",
	 OLD2,
	 {W ", die, " W, W2 ", " W2},
	 "a client's process dies and comes back, beside updates of another key"},
	{"wxw-cpc",
	 OLD,
	 {W ", die, " W, C ", pause, " C},
	 "a client's process dies and comes back while the log is cleaned twice"},

	{"rrlr-cw",
	 OLD,
	 {R ", " R ", leave, " R, C ", " W},
	 "a reader comes back while the log is cleaned, the key updated"},

	/* Log cleaning. */
	{"c.8", "k1 8", {C}, "the log is cleaned, and nothing else happens"},
	{"wc", OLD, {W ", " C}, "an update, then its log is cleaned"},
	{"wrc", OLD, {W ", " R ", " C}, "an update, read back, cleaned: what was read must stay"},
	{"dc", OLD, {D ", " C}, "deleted, and the tombstone cleaned away"},
	{"w-c", OLD, {W, C}, "an update while the log is cleaned"},
	{"ww-c", OLD, {W ", " W, C}, "two updates while the log is cleaned"},
	{"wr-c", OLD, {W ", " R, C}, "an update is read back while the log is cleaned"},
	{"d-c", OLD, {D, C}, "a delete while the log is cleaned"},
	{"c-rw", OLD, {C, R ", " W}, "an update that goes as a message, for the log is cleaned"},
	{"r-wc", OLD, {R, W ", " C}, "a reader meets the cleaning of an update"},
	{"w-r-c", OLD, {W, R, C}, "a reader meets an update while the log is cleaned"},
	{"w-w-c", OLD, {W, W, C}, "two clients update while the log is cleaned"},
	{"w-cw",
	 OLD,
	 {W, C ", " W},
	 "an update that may be stalled; after the cleaning comes another"},
	{"d-w-c", OLD, {D, W, C}, "a delete and an update while the log is cleaned"},
	{"w-cc", OLD, {W, C ", " C}, "an update while the log is cleaned twice"},
	{"w1w2-c", OLD2, {W ", " W2, C}, "two keys are updated while the log is cleaned"},
	{"w1-w2-c", OLD2, {W, W2, C}, "two clients update a key each while the log is cleaned"},
	{"r1-w2cw2",
	 OLD2,
	 {R, W2 ", " C ", " W2},
	 "a reader of one key; the other is updated around a cleaning"},
	{"w1-w2cw2cw2",
	 OLD2,
	 {W, W2 ", " C ", " W2 ", " C ", " W2},
	 "a stalled update; two cleanings with updates of another key"},
	{"r1r1-w2cw2cw2",
	 OLD2,
	 {R ", " R, W2 ", " C ", " W2 ", " C ", " W2},
	 "a stalled reader; two cleanings with updates of another key"},
	{"w1-r2cr2w2cr2w2r2r2",
	 OLD2,
	 {W, R2 ", " C ", " R2 ", " W2 ", " C ", " R2 ", " W2 ", " R2 ", " R2},
	 "a stalled update; two cleanings give its space to another key"},
	{"new-w-c", NEW, {W, C}, "a key is created while the log is cleaned"},
	{"dcrr", OLD, {D ", " C ", " R ", " R}, "a deleted key stays away when its log is cleaned"},
	{"d1cr1r1",
	 OLD2,
	 {D ", " C ", " R ", " R},
	 "likewise, with another key that the cleaning moves"},
	{"cwrr",
	 OLD,
	 {C ", " W ", " R ", " R},
	 "an update during a cleaning, read back when it has ended"},
	{"cwwrr", OLD, {C ", " W ", " W ", " R ", " R}, "two updates during a cleaning, read back"},
	{"c-wwrr", OLD, {C, W ", " W ", " R ", " R}, "two updates of another client, read back"},
	{"w-crr",
	 OLD,
	 {W, C ", " R ", " R},
	 "an update that may be stalled; a cleaning, and two reads"},
	{"dc-wrr",
	 OLD,
	 {D ", " C, W ", " R ", " R},
	 "an update, read twice, beside a delete and a cleaning"},
	{"w-crrr",
	 OLD,
	 {W, C ", " R ", " R ", " R},
	 "an update that may be stalled, and what is left of it"},

	{"cw1w2r1r2",
	 OLD2,
	 {C ", " W ", " W2 ", " R ", " R2},
	 "two keys are updated during a cleaning, and read back when it has ended"},
	{"cw1-w2w2r1",
	 OLD2,
	 {C ", " W, W2 ", " W2 ", " R},
	 "two clients update a key each during a cleaning"},
	{"cwdr", OLD, {C ", " W ", " D ", " R}, "an update and a delete during a cleaning"},
	{"move-w2cw3r2",
	 MOVE,
	 {W2 ", " C ", put k3 160, " R2},
	 "a key is created during a cleaning, beside one with two versions"},

	{"move-w2cw3r2-w2r2",
	 MOVE,
	 {W2 ", " C ", put k3 160, " R2, W2 ", " R2},
	 "likewise, and another client updates that one and reads it, too"},
	{"c-lrwr",
	 OLD,
	 {C, "leave, " R ", " W ", " R},
	 "a client comes while the log is cleaned, reads and updates"},

	{"ww-cpcw",
	 OLD,
	 {W ", " W, C ", pause, " C ", " W},
	 "two cleanings in a row, with updates in flight across both"},
	{"w1-cw2w2w2w2",
	 OLD2,
	 {W, C ", " W2 ", " W2 ", " W2 ", " W2},
	 "a stalled update; a cleaning and another key's updates want its room"},
	{"wwww-wwww",
	 OLD,
	 {W ", " W ", " W ", " W, W ", " W ", " W ", " W},
	 "eight updates; with little room the clients wait for some"},

	{"wwww-wwww.64",
	 "k1 64",
	 {"put k1 64, put k1 64, put k1 64, put k1 64",
	  "put k1 64, put k1 64, put k1 64, put k1 64"},
	 "likewise, and the last object ends where the log does"},

	/* Other lengths. */
	{"w.8", "k1 8", {"put k1 8"}, "one update of one failure-atomic unit"},
	{"ww.8", "k1 8", {"put k1 8, put k1 8"}, "two updates of one failure-atomic unit"},
	{"w-r.8", "k1 8", {"put k1 8", R}, "a reader meets an update of one failure-atomic unit"},
	{"w.40", "k1 40", {"put k1 40"}, "one update within a line"},
	{"w1-w2.40",
	 "k1 40, k2 40",
	 {"put k1 40", "put k2 40"},
	 "two updates that may share a line"},
	{"w-r.40", "k1 40", {"put k1 40", R}, "a reader meets an update within a line"},
	{"w.1500", "k1 1500", {"put k1 1500"}, "one update of two packets"},
	{"w-w.1500", "k1 1500", {"put k1 1500", "put k1 1500"}, "two clients, two packets each"},
	{"w-r.1500", "k1 1500", {"put k1 1500", R}, "a reader meets an update of two packets"},
	{"w-rr.1500", "k1 1500", {"put k1 1500", "get k1, get k1"}, "likewise, twice"},
	/* Three keys, one of them created: with little room, a hash table must move an entry. */
	{"move-w3", MOVE, {"put k3 160"}, "a third key is created beside two others"},
	{"move-w3-r2r2",
	 MOVE,
	 {"put k3 160", "get k2, get k2"},
	 "a key is looked for while another is created"},
	{"move-w3-r1r2",
	 MOVE,
	 {"put k3 160", "get k1, get k2"},
	 "two keys are looked for while another is created"},
	{"move-w2-w3-r2r2",
	 MOVE,
	 {W2, "put k3 160", "get k2, get k2"},
	 "a key is updated and looked for while another is created"},
	{"wwwwr.mixed",
	 OLD,
	 {W ", " W ", put k1 8, put k1 8, " R},
	 "with little room the log ends in a short object"},
	{"wwwwdr.mixed",
	 OLD,
	 {W ", " W ", put k1 8, put k1 0, " D ", " R},
	 "with little room the log ends in an object without a value"},
	{"ww-r.mixed",
	 OLD,
	 {"put k1 40, put k1 1500", R},
	 "the value shrinks, then grows, under a reader"},
	/* More keys than a client looks through by itself, where they are crowded. */
	{"w10r10.8", TEN, {"put k10 8, get k10"}, "the last of ten keys is updated and read back"},
	{"move-w1r10-r16r1.8",
	 "k10 8, k16 8, k1 -",
	 {"put k1 8, get k10", "get k16, get k1"},
	 "a key is created that others, which are there, begin with"},
};

#define MATRIX (sizeof(matrix) / sizeof(matrix[0]))

static void set_name(struct workload *w, const char *name)
{
	int n = snprintf(w->name, sizeof(w->name), "%s", name);

	assert(n > 0 && (size_t)n < sizeof(w->name));
	(void)n;
}

/* 0 or -ENOMEM: the table itself is right, which the tests see to. */
static int make_matrix(const struct builtin *b, struct workload *w)
{
	const char *expected = NULL;

	memset(w, 0, sizeof(*w));
	int rc = workload_parse_keys(w, b->keys, &expected);
	for (unsigned c = 0; !rc && c < MATRIX_CLIENTS && b->client[c]; c++)
		rc = workload_parse_client(w, c + 1, b->client[c], &expected);
	if (rc) {
		assert(rc == -ENOMEM);
		workload_free(w);
		return rc;
	}
	set_name(w, b->name);
	return 0;
}

static int make_ycsb(const struct ycsb *y, const char *name, struct workload *w)
{
	memset(w, 0, sizeof(*w));
	int rc = ycsb_make(y, w);
	if (!rc)
		set_name(w, name);
	return rc;
}

int workload_builtin(unsigned i, struct workload *w)
{
	const char *what;
	struct ycsb y;

	if (i < MATRIX)
		return make_matrix(&matrix[i], w);
	const char *name = ycsb_default(i - MATRIX, &y, &what);
	return name ? make_ycsb(&y, name, w) : -ENOENT;
}

const char *workload_what(unsigned i)
{
	const char *what;
	struct ycsb y;

	if (i < MATRIX)
		return matrix[i].what;
	return ycsb_default(i - MATRIX, &y, &what) ? what : NULL;
}

/* The name of a YCSB workload with those sizes that are not the default ones. */
static void ycsb_name(const char *base, const struct ycsb *def, const struct ycsb *y, char *out,
		      size_t n)
{
	const struct {
		const char *name;
		unsigned def, value;
	} size[] = {
		{"clients", def->clients, y->clients},
		{"keys", def->keys, y->keys},
		{"ops", def->ops, y->ops},
		{"vlen", def->vlen, y->vlen},
		{"seed", def->seed, y->seed},
	};
	size_t at = (size_t)snprintf(out, n, "%s", base);
	char sep = ':';

	for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		if (size[i].value == size[i].def)
			continue;
		assert(at < n);
		at += (size_t)snprintf(out + at, n - at, "%c%s=%u", sep, size[i].name,
				       size[i].value);
		sep = ',';
	}
	assert(at < n);
}

int workload_named(const char *name, struct workload *w, const char **expected)
{
	size_t len = strcspn(name, ":");
	const char *base, *what;
	struct ycsb def, y;

	*expected = "enough memory";
	for (unsigned i = 0; (base = ycsb_default(i, &def, &what)) != NULL; i++) {
		char full[sizeof(w->name)];
		int rc;

		if (strlen(base) != len || memcmp(base, name, len))
			continue;
		y = def;
		rc = name[len] ? ycsb_parse(&y, name + len + 1, expected) : 0;
		if (rc)
			return rc;
		ycsb_name(base, &def, &y, full, sizeof(full));
		return make_ycsb(&y, full, w);
	}
	for (unsigned i = 0; i < MATRIX; i++) {
		if (strlen(matrix[i].name) != len || memcmp(matrix[i].name, name, len))
			continue;
		if (!name[len])
			return make_matrix(&matrix[i], w);
		*expected = "no parameters: only ycsb-a, ycsb-b, ycsb-c and ycsb-u have some";
		return -EINVAL;
	}
	*expected = "a workload's name, as `tidemark list` shows them";
	return -ENOENT;
}
