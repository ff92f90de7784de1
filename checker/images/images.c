/* SPDX-License-Identifier: BSD-3-Clause */
/* See images.h. */
#include "checker/images/images.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/images/image_causes.h"
#include "checker/seat/judge_seat.h"
#include "core/clock.h"
#include "core/text/text.h"

#define CHUNK 128 /* images that a process judges before it takes others, at most ... */
#define FEW   1024
#define CHUNK_FEW                                                                    \
	8 /* ... and if there are fewer, so that all processes have some, or if time \
	   * is short: what is half done then is lost */
#define CAUSES_SHARE 0.2 /* of the time, if that is short: causes are looked for */

/* --- in the processes --- */

struct search {
	const struct pm_log *log;
	const struct images_options *o;
	char folder[IMAGE_PATH];
	uint64_t images;
	unsigned chunk; /* CHUNK or CHUNK_FEW */
	/* a process's */
	struct image_walk *walk;
	struct image_judge *judge;
	int unusable; /* why they could not be made */
	bool careful; /* the checker writes where that is not seen */
};

struct chunk {
	int32_t error;
	struct image_way way;
	struct image_verdict verdict[CHUNK];
};

static int start_work(struct search *s)
{
	char name[32], why[8];
	s->walk = calloc(1, sizeof(*s->walk));
	if (!s->walk)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%d%s", (int)getpid(), s->careful ? "-again" : "");
	int error = image_walk_open(s->walk, s->log, s->o, s->folder, name);
	if (!error)
		error = image_judge_open(&s->judge, &s->o->checker, why, sizeof(why));
	if (!error && s->careful)
		image_judge_be_careful(s->judge);
	return error;
}

static void end_work(struct search *s)
{
	image_judge_close(s->judge);
	s->judge = NULL;
	image_walk_close(s->walk);
	free(s->walk);
	s->walk = NULL;
}

static int judge_chunk(struct search *s, uint64_t first, struct chunk *c)
{
	int error = s->unusable;
	if (!error && !s->walk)
		error = s->unusable = start_work(s);
	struct image_verdict *verdict = c->verdict; /* of the first that waits */
	while (!error && s->walk->next < first + s->chunk && image_walk_next(s->walk)) {
		struct image_files *files = &s->walk->files;
		if (s->walk->number < first)
			continue;
		error = image_walk_wait(s->walk, s->walk->choice.left);
		if (error || (image_judge_may_wait(s->judge, files) && !image_files_full(files)))
			continue;
		error = image_judge(s->judge, files, verdict);
		verdict = &c->verdict[s->walk->next - first];
	}
	if (!error)
		error = s->walk->error;
	assert(error || verdict + s->walk->files.waiting <= c->verdict + s->chunk);
	if (!error)
		error = image_judge(s->judge, &s->walk->files, verdict);
	if (!error)
		c->way = image_judge_way(s->judge);
	return error;
}

static void work(void *arg, unsigned unit, void *result)
{
	struct search *s = arg;
	struct chunk *c = result;
	uint64_t first = (uint64_t)unit * s->chunk;
	c->error = judge_chunk(s, first, c);
	/* Did the checker write to the files without being seen? Then some of these images were not
	 * what they should have been. */
	if (!c->error && !s->careful && !image_files_untouched(&s->walk->files)) {
		end_work(s);
		s->careful = true;
		c->error = judge_chunk(s, first, c);
	}
}

/* --- all of it --- */

/* How many images are there? */
static int count_images(struct search *s, struct images_result *result)
{
	struct image_walk w;
	int error = image_walk_open(&w, s->log, s->o, NULL, NULL);
	while (!error && image_walk_next(&w))
		if (images_left_off(s->o))
			error = -EINTR;
	if (!error)
		error = w.error;
	s->images = result->images = w.next;
	result->cuts = w.cuts;
	result->bounded = w.bounded;
	result->skipped = w.skipped;
	image_walk_close(&w);
	return error;
}

/* How a process went about it is its own business. */
static bool same(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;
	return x->error == y->error && !memcmp(x->verdict, y->verdict, sizeof(x->verdict));
}

static bool failed(const void *result)
{
	const struct chunk *c = result;
	return c->error;
}

/* -EINTR: not all was judged. */
static int judge_all(struct search *s, struct image_verdict *verdict, struct images_result *result)
{
	struct image_way *way = &result->way;
	const double left = images_time_left(s->o);
	struct driver_bounds bounds = s->o->bounds ? *s->o->bounds : (struct driver_bounds){0};
	if (left < 0)
		return -EINTR;
	if (left > 0) /* the rest is for causes */
		bounds.until -= left * CAUSES_SHARE;
	/* Results that are kept have the same units in any run. */
	s->chunk = s->images < FEW || (left > 0 && !s->o->bounds->results) ? CHUNK_FEW : CHUNK;
	unsigned units = (unsigned)((s->images + s->chunk - 1) / s->chunk);
	struct chunk *chunk = calloc(units + 1, sizeof(*chunk));
	bool *done = calloc(units + 1, sizeof(*done)), served = false;
	struct driver driver = {
		.units = units,
		.how = {.jobs = s->o->jobs, .bounds = &bounds, .progress = s->o->progress},
		.result_bytes = sizeof(*chunk),
		.work = work,
		.end = seats_end,
		.results = chunk,
		.done = done,
		.same = same,
		.failed = failed,
		.progress_arg = s->o->progress_arg,
		.arg = s};
	_Static_assert(sizeof(struct chunk) <= DRIVER_RESULT_MAX, "a result is one message");
	int error = chunk && done ? driver_run(&driver) : -ENOMEM;
	for (unsigned u = 0; u < units && (!error || error == -EINTR); u++) {
		if (!done[u])
			continue;
		if (chunk[u].error) {
			error = chunk[u].error;
			continue;
		}
		served |= chunk[u].way.kind == IMAGE_WAY_SERVED;
		if (!way->kind) {
			way->kind = chunk[u].way.kind;
			way->number = chunk[u].way.number;
		}
		if (chunk[u].way.repair > way->repair)
			way->repair = chunk[u].way.repair;
		const uint64_t first = (uint64_t)u * s->chunk;
		for (unsigned i = 0; i < s->chunk && first + i < s->images; i++) {
			verdict[first + i] = chunk[u].verdict[i];
			result->judged++;
		}
	}
	/* Those that it did not open were as quick as it is. */
	if (way->kind == IMAGE_WAY_UNOPENED && served)
		way->kind = IMAGE_WAY_SERVED;
	free(done);
	free(chunk);
	return error;
}

/* Is the checker there, as it should be? */
static int try_checker(const struct images_options *o, char *why, size_t n)
{
	struct image_judge *judge = NULL;
	int error = image_checker_exists(&o->checker, why, n);
	if (!error)
		error = image_judge_open(&judge, &o->checker, why, n);
	image_judge_close(judge);
	return error;
}

#define AGAIN 4 /* times that what is bad must be so if the checker is not deterministic */

/* Causes that are bad by chance are in doubt. -EINTR: not all were looked at, and those are, too.
 */
static int judge_causes_again(const struct pm_log *log, const struct images_options *o,
			      struct images_result *result, char *why, size_t n)
{
	int error = 0;
	for (unsigned i = 0; i < AGAIN * result->causes; i++) {
		struct image_cause *c = &result->cause[i / AGAIN], again = {0};
		if (c->unsteady)
			continue;
		char *spec = TEXT_PRINTED(out, image_spec_print(out, c));
		if (!error)
			error = !spec ? -ENOMEM
				: images_left_off(o)
					? -EINTR
					: images_one(log, o, spec, NULL, &again, why, n);
		c->unsteady = error || again.verdict.how != c->verdict.how ||
			      again.verdict.number != c->verdict.number;
		free(again.line);
		free(spec);
	}
	return error;
}

int images_search(const struct pm_log *log, const struct images_options *o,
		  struct images_result *result, char *why, size_t n)
{
	struct search *s = calloc(1, sizeof(*s));
	struct image_verdict *verdict = NULL;
	memset(result, 0, sizeof(*result));
	*why = 0;
	int error = s ? try_checker(o, why, n) : -ENOMEM;
	if (!error) {
		*s = (struct search){.log = log, .o = o};
		error = image_folder_make(s->folder);
	}
	if (!error)
		error = count_images(s, result);
	if (!error) {
		verdict = calloc(s->images + 1, sizeof(*verdict));
		result->cause = calloc(IMAGE_CAUSES + 1, sizeof(*result->cause));
		error = verdict && result->cause ? 0 : -ENOMEM;
	}
	double started = clock_seconds();
	if (!error)
		error = judge_all(s, verdict, result);
	result->seconds = clock_seconds() - started;
	bool partly = error == -EINTR && verdict;
	if ((!error || partly) && !s->o->part)
		error = image_causes_find(log, o, s->folder, s->images, verdict, result, why, n);
	if (!error && (partly || result->rough))
		error = -EINTR;
	if (!error && result->unsteady)
		error = judge_causes_again(log, o, result, why, n);
	images_doubt(log, o, result);
	if (error == -ENOSPC)
		snprintf(why, n,
			 "%s: there is no room for the images (TMPDIR names another folder)",
			 s->folder);
	else if (error && !*why)
		snprintf(why, n, "%s", driver_error(error));
	if (s && s->folder[0])
		image_folder_remove(s->folder);
	free(verdict);
	free(s);
	return error;
}

void images_drop(void)
{
	driver_end();
	seats_end();
	image_folder_drop();
}

void images_result_free(struct images_result *result)
{
	for (unsigned i = 0; i < result->causes; i++)
		free(result->cause[i].line);
	free(result->cause);
	free(result->first_unsteady.line);
	memset(result, 0, sizeof(*result));
}

/* --- one image --- */

void image_spec_print(FILE *out, const struct image_cause *c)
{
	fprintf(out, "%zu:", c->at);
	for (unsigned i = 0; i < c->lines; i++)
		fprintf(out, "%s%u+0x%llx=%u", i ? "," : "", c->line[i].file,
			(unsigned long long)c->line[i].line * PM_LINE, c->line[i].left);
}

/* "FILE+OFFSET=LEFT" at *at, which moves behind it, for one of the dirty lines. */
static bool take_line(const struct image_walk *w, const char **at, unsigned *left)
{
	unsigned long long file, offset, versions;
	int used = 0;
	if (sscanf(*at, "%llu+0x%llx=%llu%n", &file, &offset, &versions, &used) != 3)
		return false;
	const char *end = *at + used;
	if (*end == ',' && end[1])
		end++;
	else if (*end)
		return false;
	for (unsigned i = 0; i < w->replay.dirties; i++) {
		const struct pm_line *l = &w->replay.dirty[i];
		if (l->file != file || l->line * PM_LINE != offset ||
		    versions >= pm_replay_answers(&w->replay, l))
			continue;
		left[i] = (unsigned)versions;
		*at = end;
		return true;
	}
	return false;
}

/* Go to the image. */
static int find_image(struct image_walk *w, const char *spec, char *why, size_t n)
{
	const char *at = spec;
	unsigned long long event;
	int used = 0, more = 1;
	if (sscanf(spec, "%llu:%n", &event, &used) != 1 || !used || event > w->log->events) {
		snprintf(why, n,
			 "the image %.40s: expected the number of an event, at most %zu, "
			 "and a colon",
			 spec, w->log->events);
		return -EINVAL;
	}
	while (w->replay.at < event && more > 0)
		more = pm_replay_step(&w->replay, image_files_durable, &w->files);
	int error = more < 0 ? more : image_choice_begin(&w->choice);
	for (unsigned i = 0; i < w->choice.lines && !error; i++)
		w->choice.left[i] = w->replay.dirty[i].versions;
	for (at += used; *at && !error;) {
		if (take_line(w, &at, w->choice.left))
			continue;
		snprintf(why, n,
			 "the image %.40s: at \"%.40s\", expected FILE+0xOFFSET=LEFT of a "
			 "line that is in flight before event %llu",
			 spec, at, event);
		error = -EINVAL;
	}
	return error;
}

static int judge_one(struct image_walk *w, const struct images_options *o,
		     struct image_judge *judge, const char *spec, bool keep,
		     struct image_cause *out, char *why, size_t n)
{
	int error = find_image(w, spec, why, n);
	if (error)
		return error;
	image_cause_parts(w, w->choice.left, out);
	error = image_cause_keep(w, w->choice.left, out);
	if (!error)
		error = image_walk_judge(w, judge, w->choice.left, &out->verdict);
	if (!error)
		error = image_walk_order(w);
	if (!error && out->verdict.how != IMAGE_GOOD)
		error = image_walk_late(w, judge, w->choice.left, &out->late);
	out->doubt = image_doubt(w->log, o, out);
	/* As the power failure left it, not as the checker did. */
	if (!error && keep)
		error = image_files_restore(&w->files);
	return error;
}

int images_one(const struct pm_log *log, const struct images_options *o, const char *spec,
	       const char *folder, struct image_cause *out, char *why, size_t n)
{
	char made[IMAGE_PATH] = "";
	struct image_walk w = {0};
	struct image_judge *judge = NULL;
	memset(out, 0, sizeof(*out));
	*why = 0;
	/* Before the folder is made: a mistake must not leave one. */
	int error = try_checker(o, why, n);
	if (!error && !folder)
		error = image_folder_make(made);
	if (!error)
		error = image_walk_open(&w, log, o, folder ? folder : made, folder ? "" : "image");
	bool ours = !error;
	if (error && folder && !*why)
		snprintf(why, n, "%s: %s", folder, strerror(-error));
	if (!error)
		error = image_judge_open(&judge, &o->checker, why, n);
	if (!error)
		error = judge_one(&w, o, judge, spec, folder != NULL, out, why, n);
	image_judge_close(judge);
	image_walk_close(&w);
	if (made[0])
		image_folder_remove(made);
	else if (error && ours)
		image_folder_remove(folder);
	if (error && !*why)
		snprintf(why, n, "%s", strerror(-error));
	return error;
}
