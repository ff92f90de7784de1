/* SPDX-License-Identifier: BSD-3-Clause */
/* See fuzz_session.h. */
#include "checker/hunt/fuzz_session.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "checker/judge/names.h"
#include "checker/trace/regress.h"
#include "checker/trace/wrong.h"
#include "core/array.h"

#define CASES 16 /* shrunk at most, of one contract */

/* --- traces that are known --- */

static struct fuzz_known *add_known(struct fuzz_session *s, const char *path,
				    const struct fingerprint *fingerprint, const char *text)
{
	if (!ARRAY_RESERVE(s->known, s->knowns, 1, s->known_room))
		return NULL;
	struct fuzz_known *k = &s->known[s->knowns];
	*k = (struct fuzz_known){.fingerprint = *fingerprint, .trace = path ? strdup(path) : NULL};
	snprintf(k->text, sizeof(k->text), "%.*s", (int)sizeof(k->text) - 1, text);
	if (path && !k->trace)
		return NULL;
	s->knowns++;
	return k;
}

static struct fuzz_known *find_known(struct fuzz_session *s, const struct fingerprint *fingerprint)
{
	for (unsigned i = 0; i < s->knowns; i++)
		if (fingerprint_contains(fingerprint, &s->known[i].fingerprint))
			return &s->known[i];
	return NULL;
}

int fuzz_session_learn(struct fuzz_session *s, struct trace *t, const char *path, bool accepted)
{
	struct fingerprint fingerprint;
	if (t->contract < 0)
		return 1;
	int error = fingerprint_find(&t->setup, &t->deviations, (unsigned)t->contract,
				     &fingerprint);
	struct fuzz_known *k = error == -ENOMEM ? NULL
						: add_known(s, path, &fingerprint, t->verdict);
	if (!k)
		return -ENOMEM;
	k->accepted = accepted;
	k->operations = workload_ops(&t->setup.w);
	k->deviations = t->deviations.n;
	return 0;
}

int fuzz_session_rerun(struct fuzz_session *s, struct trace *t, const char *path)
{
	if (!ARRAY_RESERVE(s->rerun, s->reruns, 1, s->rerun_room))
		return -ENOMEM;
	struct fuzz_rerun *r = &s->rerun[s->reruns++];
	*r = (struct fuzz_rerun){.trace = strdup(path), .contract = t->contract};
	int differs = r->trace ? regress(t, r->why, sizeof(r->why)) : -ENOMEM;
	if (differs < 0)
		return differs;
	if (differs) {
		s->rerun_failures++;
		return 0;
	}
	r->why[0] = '\0';
	return fuzz_session_learn(s, t, path, true) < 0 ? -ENOMEM : 0;
}

bool fuzz_session_has(const struct fuzz_session *s, const char *path)
{
	struct stat a, b;
	for (unsigned i = 0; i < s->reruns; i++)
		if (!stat(path, &a) && !stat(s->rerun[i].trace, &b) && a.st_ino == b.st_ino &&
		    a.st_dev == b.st_dev)
			return true;
	return false;
}

void fuzz_session_free(struct fuzz_session *s)
{
	for (unsigned i = 0; i < s->knowns; i++)
		free(s->known[i].trace);
	for (unsigned i = 0; i < s->reruns; i++)
		free(s->rerun[i].trace);
	free(s->known);
	free(s->rerun);
}

/* --- cases --- */

static struct fingerprint raw_fingerprint(struct fuzz_turn *t, const struct fuzz_break *b,
					  int *error)
{
	struct fingerprint fingerprint = {0};
	struct broken_run run;
	*error = fuzz_again(&t->fuzz, b, &run);
	if (*error == -ENOTRECOVERABLE)
		wrong_save(&run.setup, &run.path, run.text, t->why, sizeof(t->why));
	if (!*error)
		*error = fingerprint_find(&run.setup, &run.path, b->contract, &fingerprint);
	broken_run_free(&run);
	return fingerprint;
}

static void met_again(struct fuzz_turn *t, struct fuzz_known *k)
{
	k->again++;
	if (!k->accepted)
		t->unaccepted |= TM_BIT(k->fingerprint.contract);
}

static int add_new(struct fuzz_turn *t, const struct fingerprint *fingerprint,
		   const struct broken_run *run)
{
	struct fuzz_known *k = add_known(t->session, NULL, fingerprint, run->text);
	t->unaccepted |= TM_BIT(fingerprint->contract);
	t->fresh++;
	if (!k)
		return -ENOMEM;
	k->is_new = true;
	k->operations = workload_ops(&run->setup.w);
	k->deviations = run->path.n;
	return t->save(t, k, run);
}

static int shrink_case(struct fuzz_turn *t, const struct fuzz_break *b)
{
	struct fingerprint fingerprint;
	struct broken_run run;
	int error = fuzz_shrink(&t->fuzz, b, &run);
	if (error == -ENOENT) {
		snprintf(t->why, sizeof(t->why),
			 "%s: a run that broke %s does not break it a second time",
			 t->config->store->name, contract_name(b->contract));
		error = -EIO;
	}
	if (error == -ENOTRECOVERABLE)
		wrong_save(&run.setup, &run.path, run.text, t->why, sizeof(t->why));
	if (!error)
		error = fingerprint_find(&run.setup, &run.path, b->contract, &fingerprint);
	struct fuzz_known *k = error ? NULL : find_known(t->session, &fingerprint);
	if (k)
		met_again(t, k);
	else if (!error)
		error = add_new(t, &fingerprint, &run);
	broken_run_free(&run);
	return error;
}

static int look_at(struct fuzz_turn *t, const struct fuzz_break *b)
{
	int error;
	struct fingerprint fingerprint = raw_fingerprint(t, b, &error);
	struct fuzz_known *k = error ? NULL : find_known(t->session, &fingerprint);
	if (error == -ENOTRECOVERABLE)
		return error;
	if (k) {
		met_again(t, k);
		return 0;
	}
	if (t->cases[b->contract] == CASES || (t->cases[b->contract] && !fuzz_more(&t->fuzz))) {
		t->skipped[b->contract]++;
		return 0;
	}
	t->cases[b->contract]++;
	if (t->shrinking)
		t->shrinking(t, b->contract);
	return shrink_case(t, b);
}

/* Contract by contract, smaller cases first: those of later ones are then known. */
static int by_size(const void *a, const void *b)
{
	const struct fuzz_break *x = a, *y = b;
	if (x->contract != y->contract)
		return x->contract < y->contract ? -1 : 1;
	if (x->input.n != y->input.n)
		return x->input.n < y->input.n ? -1 : 1;
	return memcmp(x->input.bytes, y->input.bytes, x->input.n);
}

/* --- a turn --- */

int fuzz_turn_begin(struct fuzz_turn *t, struct fuzz_options *o)
{
	t->first = t->session->knowns;
	for (unsigned i = 0; i < t->session->knowns; i++)
		t->session->known[i].again = 0;
	return fuzz_open(&t->fuzz, &t->config->setup, o);
}

int fuzz_turn_round(struct fuzz_turn *t)
{
	int error = fuzz_round(&t->fuzz);
	if (error == -EIO) {
		snprintf(t->why, sizeof(t->why), "%s cannot run: %s", t->config->store->name,
			 t->fuzz.why);
		return -EINVAL;
	}
	if (error == -ECHILD)
		snprintf(t->why, sizeof(t->why), "%s", driver_error(error));
	if (error == -ENOTRECOVERABLE) {
		snprintf(t->why, sizeof(t->why), "%s", t->fuzz.why);
		return error;
	}
	if (error)
		return error == -ECHILD ? -EIO : -ENOMEM;
	if (t->fuzz.founds)
		qsort(t->fuzz.found, t->fuzz.founds, sizeof(*t->fuzz.found), by_size);
	for (unsigned i = 0; i < t->fuzz.founds && !error; i++)
		error = look_at(t, &t->fuzz.found[i]);
	return error;
}

void fuzz_turn_end(struct fuzz_turn *t)
{
	fuzz_close(&t->fuzz);
}

bool fuzz_turn_met(const struct fuzz_turn *t, unsigned known)
{
	return known >= t->first || t->session->known[known].again;
}
