/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a page shows of each cause besides the results: what the run went on to do about what was
 * lost, the lines in flight, the events around the power failure, the operations that clients had
 * announced, and the lines of source. images.js makes a chart of the events.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker/images/image_scene.h"
#include "core/array.h"
#include "core/pmem/crash.h"
#include "core/record/format.h"
#include "core/text/text.h"
#include "report/images/images_shown.h"

#define OPERATIONS 40 /* of clients, the latest */

/* The threads of CPUs in the order of their first events: the kernel's numbers say nothing. */
struct threads {
	uint32_t *id;
	unsigned n, room;
};

struct section {
	const struct images_report *r;
	const struct image_cause *cause;
	const struct image_scene *scene;
	const struct threads *threads;
	size_t event[SECTION_EVENTS]; /* that are shown, in their order */
	unsigned events;
};

/* --- which events --- */

static void add(struct section *s, size_t event)
{
	if (event < s->r->log->events && s->events < SECTION_EVENTS)
		s->event[s->events++] = event;
}

static void add_around(struct section *s, size_t event, unsigned before, unsigned after)
{
	if (event == SCENE_NEVER)
		return;
	for (size_t i = event > before ? event - before : 0; i <= event + after; i++)
		add(s, i);
}

static int compare_events(const void *a, const void *b)
{
	const size_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void sort_events(struct section *s)
{
	unsigned n = 0;
	qsort(s->event, s->events, sizeof(s->event[0]), compare_events);
	for (unsigned i = 0; i < s->events; i++)
		if (!n || s->event[n - 1] != s->event[i])
			s->event[n++] = s->event[i];
	s->events = n;
}

/* Those that matter for what was lost, and some before and after them. What follows the failure is
 * of the run, in which the power did not fail. */
static void find_events(struct section *s)
{
	/* The next event is the one before which the power fails. */
	add_around(s, s->cause->at, SECTION_BEFORE, SECTION_AFTER - 1);
	for (unsigned beside = 0; beside <= 1; beside++)
		for (unsigned i = 0; i < s->cause->parts; i++) {
			const struct scene_fate *fate = &s->scene->fate[i];
			add_around(s, s->cause->part[i].event, beside, beside);
			add_around(s, fate->flush, beside, beside);
			add_around(s, fate->durable, beside, beside);
			sort_events(s);
		}
}

static bool is_lost(const struct section *s, size_t event)
{
	for (unsigned i = 0; i < s->cause->parts; i++)
		if (s->cause->part[i].event == event)
			return true;
	return false;
}

static bool has_range(const struct pm_event *e)
{
	return e->kind == PM_STORE || e->kind == PM_LAND || e->kind == PM_FLUSH ||
	       e->kind == PM_SYNC || e->kind == PM_COMMIT || (e->kind == PM_RDMA_FLUSH && e->len);
}

/* --- what they are --- */

/* Clients that are in no recording have acknowledgements alone, and no thread. */
static bool is_cpu(const struct pm_log *log, uint32_t thread)
{
	return log->threads && thread && !(thread & RECORD_RNIC);
}

static unsigned find_thread(const struct threads *t, uint32_t thread)
{
	unsigned k = 0;
	while (k < t->n && t->id[k] != thread)
		k++;
	return k;
}

static bool find_threads(struct threads *t, const struct pm_log *log)
{
	uint32_t last = 0;
	for (size_t i = 0; i < log->events; i++) {
		const uint32_t thread = log->event[i].thread;
		if (thread == last || !is_cpu(log, thread))
			continue;
		last = thread;
		if (find_thread(t, thread) < t->n)
			continue;
		if (!ARRAY_RESERVE(t->id, t->n, 1, t->room))
			return false;
		t->id[t->n++] = thread;
	}
	return true;
}

static void whose(const struct section *s, uint32_t thread, char *buf, size_t n)
{
	if (!s->r->log->threads)
		snprintf(buf, n, "the program");
	else if (thread & RECORD_RNIC)
		snprintf(buf, n, "queue pair %u", thread & ~RECORD_RNIC);
	else if (!thread)
		snprintf(buf, n, "clients");
	else
		snprintf(buf, n, "thread %u", find_thread(s->threads, thread) + 1);
}

/* What a client was answered by this acknowledgement; NULL: that was not announced. */
static const struct pm_call *answer_of(const struct pm_log *log, size_t event)
{
	size_t from = 0, to = log->timed ? 0 : log->calls; /* with times, others are merged in */
	while (from < to) {
		size_t middle = (from + to) / 2;
		if (log->call[middle].event < event)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < log->calls && !log->timed && log->call[from].event == event; from++)
		if (log->call[from].returns)
			return &log->call[from];
	return NULL;
}

/* "the store of 8 bytes at pool+0x40" */
static void print_what(FILE *out, const struct pm_log *log, size_t event)
{
	const struct pm_event *e = &log->event[event];
	const struct pm_call *call = e->kind == PM_ACK ? answer_of(log, event) : NULL;
	if (e->kind == PM_MARK)
		fprintf(out, "marker %s", log->source[e->source]);
	else if (call)
		fprintf(out, "client %" PRIu64 " is answered: %s", call->client,
			log->source[call->words]);
	else if (has_range(e))
		images_print_event(out, log, (uint32_t)event);
	else
		fputs(pm_event_name[e->kind], out);
}

static json_t *what_json(const struct section *s, size_t event)
{
	return JSON_PRINTED(out, print_what(out, s->r->log, event));
}

static json_t *event_json(const struct section *s, size_t event)
{
	static const char *const marks[PM_EVENT_KINDS] = {
		[PM_STORE] = "store",  [PM_LAND] = "store", [PM_FLUSH] = "flush",
		[PM_FENCE] = "fence",  [PM_SYNC] = "fence", [PM_RDMA_FLUSH] = "fence",
		[PM_COMMIT] = "fence", [PM_PUSH] = "fetch", [PM_ACK] = "return",
		[PM_MARK] = "survived"};
	const struct pm_log *log = s->r->log;
	const struct pm_event *e = &log->event[event];
	char thread[32];
	whose(s, e->thread, thread, sizeof(thread));
	json_t *all = json_pack("{s:I, s:s, s:s, s:s, s:o, s:b}", "event", (json_int_t)event,
				"whose", thread, "rank", e->thread & RECORD_RNIC ? "nic" : "client",
				"mark", marks[e->kind], "what", what_json(s, event), "lost",
				is_lost(s, event));
	if (e->kind != PM_MARK) {
		json_object_set_new(all, "source", json_text(log->source[e->source]));
		json_object_set_new(all, "noticed", json_boolean(e->noticed));
	}
	if (has_range(e) && e->len) {
		json_object_set_new(all, "file", json_integer(e->file));
		json_object_set_new(all, "first_line",
				    json_integer((json_int_t)(e->off / PM_LINE)));
		json_object_set_new(all, "last_line",
				    json_integer((json_int_t)((e->off + e->len - 1) / PM_LINE)));
	}
	return all;
}

static json_t *events_json(const struct section *s)
{
	json_t *all = json_array();
	for (unsigned i = 0; i < s->events; i++)
		json_array_append_new(all, event_json(s, s->event[i]));
	return all;
}

/* --- what was lost, and the lines in flight --- */

static json_t *lost_json(const struct section *s, unsigned i)
{
	const struct scene_fate *f = &s->scene->fate[i];
	json_t *all = json_pack("{s:b}", "noticed",
				s->r->log->event[s->cause->part[i].event].noticed);
	if (f->flush != SCENE_NEVER)
		json_object_set_new(all, "flush", json_integer((json_int_t)f->flush));
	if (f->durable != SCENE_NEVER) {
		const unsigned kind = s->r->log->event[f->durable].kind;
		json_object_set_new(all, "durable", json_integer((json_int_t)f->durable));
		json_object_set_new(all, "durable_with", json_string(pm_event_name[kind]));
	}
	return all;
}

static json_t *line_json(const struct section *s, const struct scene_line *l)
{
	const char *file = s->r->log->file[l->file].name;
	const unsigned kept = pm_left_whole(l->versions, l->left);
	char words[PMEM_ANSWER_TEXT] = "";
	json_t *changes = json_array();
	for (unsigned v = 0; v < l->versions && v < SCENE_VERSIONS; v++) {
		const struct pm_event *e = &s->r->log->event[l->event[v]];
		json_array_append_new(changes,
				      json_pack("{s:i, s:o, s:i, s:i, s:b}", "event",
						(int)l->event[v], "what", what_json(s, l->event[v]),
						"at", (int)(e->off % PM_LINE), "bytes", (int)e->len,
						"kept", v < kept));
	}
	if (l->left > l->versions)
		pmem_answer_print(l->versions, l->left, words, sizeof(words));
	return json_pack("{s:o, s:i, s:I, s:i, s:i, s:b, s:s, s:o}", "name", json_text(file),
			 "file", (int)l->file, "line", (json_int_t)l->line, "left", (int)kept,
			 "versions", (int)l->versions, "whole", l->left == l->versions, "how",
			 words, "changes", changes);
}

/* Of lines that are not shown. */
static json_t *more_json(const struct section *s)
{
	const unsigned shown = s->scene->lines, dirty = s->cause->dirty, lines = s->cause->lines;
	return dirty > shown && shown
		       ? json_sprintf("and %u more line%s, of which %u %s not whole", dirty - shown,
				      plural(dirty - shown), lines > shown ? lines - shown : 0,
				      lines == shown + 1 ? "is" : "are")
		       : NULL;
}

/* --- what clients had announced --- */

static json_t *operations_json(const struct section *s, unsigned *left_out)
{
	const struct announced *a = s->r->options->checker.announced;
	const struct announced_break *broken = s->cause->verdict.how == IMAGE_CONTRACT
						       ? &s->cause->verdict.broken
						       : NULL;
	struct announced_operation op;
	json_t *all = json_array();
	unsigned n = 0;
	*left_out = 0;
	while (a && announced_operation(a, s->cause->at, broken, n, &op))
		n++;
	for (unsigned i = 0; i < n; i++) {
		announced_operation(a, s->cause->at, broken, i, &op);
		if (op.joined)
			continue;
		if (n - i > OPERATIONS && !op.named)
			++*left_out;
		else
			json_array_append_new(
				all,
				json_pack("{s:I, s:o, s:o, s:b}", "client", (json_int_t)op.client,
					  "call", json_text(op.call), "answer",
					  json_text(op.answer ? op.answer : "none yet"), "named",
					  op.named));
	}
	return all;
}

/* --- all together --- */

static json_t *section_json(struct section *s)
{
	json_t *lost = json_array(), *lines = json_array();
	unsigned left_out;
	find_events(s);
	for (unsigned i = 0; i < s->cause->parts; i++)
		json_array_append_new(lost, lost_json(s, i));
	for (unsigned i = 0; i < s->scene->lines; i++)
		json_array_append_new(lines, line_json(s, &s->scene->line[i]));
	json_t *operations = operations_json(s, &left_out);
	return json_pack("{s:I, s:o, s:o, s:o*, s:o, s:o, s:i, s:o}", "at",
			 (json_int_t)s->cause->at, "lost", lost, "lines", lines, "more",
			 more_json(s), "events", events_json(s), "operations", operations,
			 "operations_before", (int)left_out, "sources",
			 images_sources(s->r, s->cause, s->scene));
}

void images_add_scenes(const struct images_report *r, json_t *tree)
{
	const struct image_cause *cause = r->one ? r->one : r->result->cause;
	const unsigned causes = r->one ? 1 : r->result->causes;
	struct threads threads = {0};
	struct section *s = calloc(1, sizeof(*s));
	struct image_scene *scene = image_scenes_make(r->log, r->options, cause, causes);
	json_t *all = s && scene && find_threads(&threads, r->log) ? json_array() : NULL;
	for (unsigned i = 0; i < causes && all; i++) {
		*s = (struct section){
			.r = r, .cause = &cause[i], .scene = &scene[i], .threads = &threads};
		json_array_append_new(all, section_json(s));
	}
	json_object_set_new(json_object_get(tree, "shown"), "causes", all);
	json_object_del(json_object_get(tree, "shown"), "speed");
	image_scenes_free(scene, causes);
	free(threads.id);
	free(s);
}
