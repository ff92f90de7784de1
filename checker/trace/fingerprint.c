/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See fingerprint.h. A part of a fingerprint is a sentence: something that has to go differently
 * ("a put is late"), or a write that was lost ("lost: log, by a NIC for a put"). What differs
 * between failures of one bug is left out: what makes an operation late, and how late it is, where
 * exactly the power fails, and how many lines are lost.
 */
#include "checker/trace/fingerprint.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/trace/replay.h"

struct collector {
	const struct deviations *path;
	struct fingerprint *cause;
};

static void add_part(struct fingerprint *c, const char *text)
{
	unsigned at = 0;
	while (at < c->parts && strcmp(c->part[at], text) < 0)
		at++;
	if ((at < c->parts && !strcmp(c->part[at], text)) || c->parts == FINGERPRINT_PARTS)
		return;
	memmove(c->part[at + 1], c->part[at], (c->parts - at) * sizeof(c->part[0]));
	memset(c->part[at], 0, sizeof(c->part[at])); /* they are hashed whole */
	snprintf(c->part[at], sizeof(c->part[at]), "%s", text);
	c->parts++;
}

/* "client", "client's queue pair", "server/verifier". */
static void role(const char *who, char *buf, size_t n)
{
	const char *slash = strchr(who, '/');
	bool pair = slash && !strncmp(slash, "/qp", 3);
	if (who[0] == 'c')
		snprintf(buf, n, "client%s", pair ? "'s queue pair" : "");
	else
		snprintf(buf, n, "%s", pair ? "server's queue pair" : *who ? who : "nobody");
}

static const char *op_word(unsigned kind)
{
	static const char *const words[OP_KINDS] = {
		"nobody",   "a put",   "a get", "a delete", "connecting",
		"cleaning", "leaving", "dying", "a pause",  "an operation"};
	return kind < OP_KINDS ? words[kind] : "?";
}

/* A client that stops, a packet that comes late, or again because it was lost, and a landing that
 * takes its time have the same effect: the operation is not where it should be. */
static void add_deviation(struct fingerprint *c, const struct deviation *d)
{
	char who[40], text[FINGERPRINT_PART];
	role(d->who, who, sizeof(who));
	deviation_effect(d, who, op_word(d->op.kind), text, sizeof(text));
	add_part(c, text);
}

/* What the power failure before this machine lost. */
static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	struct collector *k = arg;
	for (unsigned i = 0; i < k->path->n && machine; i++) {
		const struct deviation *d = &k->path->d[i];
		const struct pmem *pm = ex->worlds.world[machine - 1].pm;
		if (d->kind != CHOICE_LINE || d->b != machine)
			continue;
		unsigned versions = pmem_line_versions(pm, d->a);
		unsigned region = setup_region(ex->setup, (uint64_t)d->a * LINE);
		for (unsigned v = pmem_answer_split(versions, d->answer).version + 1; v <= versions;
		     v++) {
			struct pmem_version version;
			char who[40], text[FINGERPRINT_PART];
			pmem_line_version(pm, d->a, v, &version);
			role(version.who ? version.who->name : "", who, sizeof(who));
			snprintf(text, sizeof(text), "lost: %s, by %s for %s",
				 region < ex->setup->regions ? ex->setup->region[region].name
							     : "pm",
				 version.nic ? "a NIC" : who, op_word(version.op.kind));
			add_part(k->cause, text);
		}
	}
}

int fingerprint_find(struct setup *s, const struct deviations *path, unsigned contract,
		     struct fingerprint *out)
{
	struct collector collector = {path, out};
	const struct replay_audience audience = {.machine_starts = machine_starts,
						 .arg = &collector};
	struct explorer *ex = malloc(sizeof(*ex));
	struct replay_outcome *outcome = malloc(sizeof(*outcome));
	int error = ex && outcome ? replay_begin(ex, s, (int)contract, path) : -ENOMEM;
	unsigned failures = 0;

	memset(out, 0, sizeof(*out));
	snprintf(out->store, sizeof(out->store), "%s", s->store->name);
	snprintf(out->variant, sizeof(out->variant), "%s", s->variant);
	out->contract = contract;
	out->cleans = workload_cleans(&s->w);
	if (!error) {
		error = replay(ex, path, false, &audience, outcome);
		if (!error)
			out->nothing = verdict_nothing(&outcome->verdict[contract],
						       ex->worlds.history);
		explore_close(ex);
	}
	for (unsigned i = 0; i < path->n && !error; i++) {
		failures += path->d[i].kind == CHOICE_CRASH;
		if (path->d[i].kind != CHOICE_CRASH && path->d[i].kind != CHOICE_LINE)
			add_deviation(out, &path->d[i]);
	}
	if (failures > 1)
		add_part(out, "a second power failure");
	free(outcome);
	free(ex);
	return error;
}

bool fingerprint_contains(const struct fingerprint *c, const struct fingerprint *known)
{
	unsigned at = 0;
	if (strcmp(c->store, known->store) != 0 || strcmp(c->variant, known->variant) != 0 ||
	    c->contract != known->contract || c->cleans != known->cleans)
		return false;
	for (unsigned k = 0; k < known->parts; k++) {
		while (at < c->parts && strcmp(c->part[at], known->part[k]) < 0)
			at++;
		if (at == c->parts || strcmp(c->part[at], known->part[k]) != 0)
			return false;
	}
	return true;
}
