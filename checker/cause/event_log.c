/* SPDX-License-Identifier: BSD-3-Clause */
/* See event_log.h. Actors live in the memory of a simulation, so their names are copied. */
#include "checker/cause/event_log.h"
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"

/* Room for more, or false and r->full. */
#define ROOM_FOR(r, array, n, more, room) \
	(ARRAY_RESERVE(array, n, more, room) || !((r)->full = true))

static int16_t actor_number(struct event_log *r, const struct actor *who)
{
	if (!who)
		return EVENT_LOG_NONE;
	for (unsigned i = 0; i < r->actors; i++)
		if (!strcmp(r->actor[i], who->name))
			return (int16_t)i;
	if (r->actors == INT16_MAX || !ROOM_FOR(r, r->actor, r->actors, 1, r->actor_room))
		return EVENT_LOG_NONE;
	memcpy(r->actor[r->actors], who->name, ACTOR_NAME);
	return (int16_t)r->actors++;
}

/* What tasks do at once; a store is traced at their next step. */
#define OF_TASKS                                                                            \
	(1u << TRACED_STORE | 1u << TRACED_LOAD | 1u << TRACED_FLUSH | 1u << TRACED_FENCE | \
	 1u << TRACED_POST | 1u << TRACED_CHECK | 1u << TRACED_REFUSED)

/* Place 0 is "". */
static size_t add_words(struct event_log *r, const char *text)
{
	size_t len = strlen(text) + 1, at = r->words_used ? r->words_used : 1;
	if (!ROOM_FOR(r, r->words, at, len, r->words_room))
		return 0;
	r->words[0] = '\0';
	if (len == 1)
		return 0;
	memcpy(r->words + at, text, len);
	r->words_used = at + len;
	return at;
}

/* A loop over bytes is one load. */
static bool continues(const struct event_log *r, const struct logged_event *e)
{
	const struct logged_event *last = &r->event[r->events - 1];
	return e->kind == TRACED_LOAD && r->events > r->machine_from[e->machine] &&
	       last->kind == TRACED_LOAD && last->actor == e->actor && last->fsck == e->fsck &&
	       op_label_equal(last->op, e->op) && last->occurrence == e->occurrence &&
	       e->off >= last->off && e->off <= last->off + last->len &&
	       e->off / LINE == last->off / LINE &&
	       (e->off + e->len - 1) / LINE == last->off / LINE;
}

static void log_taking(struct event_log *r, const struct sim *sim, const struct actor *who,
		       const struct traced *about)
{
	if (!about->id || !ROOM_FOR(r, r->taking, r->takings, 1, r->taking_room))
		return;
	r->taking[r->takings++] = (struct logged_taking){.at = sim_now(sim),
							 .machine = (uint8_t)(r->machines - 1),
							 .received = about->code & IBV_WC_RECV,
							 .actor = actor_number(r, who),
							 .message = about->id,
							 .before = r->events};
}

static void log_event(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
		      const struct traced *about, const char *text)
{
	struct event_log *r = arg;
	if (about->kind == TRACED_TAKEN)
		log_taking(r, sim, who, about);
	if (about->kind == TRACED_TAKEN || about->kind == TRACED_PACKET)
		return; /* checker/models/count.c wants these */
	struct logged_event e = {.at = sim_now(sim),
				 .machine = (uint8_t)(r->machines - 1),
				 .kind = about->kind,
				 .holds = about->kind == TRACED_CHECK && about->code,
				 .code = about->code,
				 .failed = about->failed,
				 /* A store is seen late, at the next step; the check makes none. */
				 .fsck = about->kind != TRACED_STORE && sim_repeat_allowed(sim),
				 .actor = actor_number(r, who),
				 .occurrence = about->occurrence,
				 .op = about->op,
				 .off = about->off,
				 .len = about->len,
				 .pc = pc,
				 .message = about->id};
	if (!e.op.kind && who) {
		e.op = who->op;
		e.occurrence = who->occurrence;
	}
	if (event_log_reads(&e) && r->events && continues(r, &e)) {
		struct logged_event *last = &r->event[r->events - 1];
		if (e.off + e.len > last->off + last->len)
			last->len = e.off + e.len - last->off;
		return;
	}
	if (event_log_reads(&e) && r->loads++ >= EVENT_LOG_LOADS)
		return;
	if (!ROOM_FOR(r, r->event, r->events, 1, r->event_room))
		return;
	e.text = add_words(r, text);
	if (who && OF_TASKS >> e.kind & 1)
		e.stack = callers_note(&r->callers);
	if (e.kind == TRACED_SURVIVED)
		for (unsigned i = 0; i < r->lines; i++)
			if (r->line[i].line == e.off / LINE && r->line[i].machine + 1 <= e.machine)
				r->line[i].touched = r->line[i].touched == EVENT_LOG_NONE
							     ? (int)r->events
							     : r->line[i].touched;
	r->event[r->events++] = e;
}

/* The write that made version `v` of the line: counted from the last one, which made the newest. */
static int version_event(const struct event_log *r, unsigned machine, uint32_t line, unsigned back)
{
	for (size_t i = r->events; i-- > r->machine_from[machine];)
		if (event_log_writes(&r->event[i]) &&
		    event_log_overlaps(&r->event[i], (uint64_t)line * LINE, LINE) && !back--)
			return (int)i;
	return EVENT_LOG_NONE;
}

static void log_lines_in_flight(struct event_log *r, const struct pmem *pm, unsigned machine)
{
	for (unsigned i = 0; i < pmem_dirty(pm); i++) {
		struct logged_line l = {.machine = (uint8_t)machine,
					.line = pmem_dirty_line(pm, i),
					.first_version = r->versions,
					.touched = EVENT_LOG_NONE};
		l.versions = pmem_line_versions(pm, l.line);
		for (unsigned d = 0; d < r->list->n; d++) {
			const struct deviation *dev = &r->list->d[d];
			if (dev->kind == CHOICE_LINE && dev->a == l.line && dev->b == machine + 1)
				l.answer = dev->answer;
		}
		if (!ROOM_FOR(r, r->line, r->lines, 1, r->line_room))
			return;
		for (unsigned v = 1; v <= l.versions; v++) {
			struct logged_version version = {
				.event = version_event(r, machine, l.line, l.versions - v)};
			pmem_line_version(pm, l.line, v, &version.how);
			version.actor = actor_number(r, version.how.who);
			version.how.who = NULL;
			if (!ROOM_FOR(r, r->version, r->versions, 1, r->version_room))
				return;
			r->version[r->versions++] = version;
		}
		r->line[r->lines++] = l;
	}
}

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	struct event_log *r = arg;
	if (machine)
		r->failed_at[machine - 1] = sim_now(ex->worlds.world[machine - 1].sim);
	if (machine)
		log_lines_in_flight(r, ex->worlds.world[machine - 1].pm, machine - 1);
	r->machines = machine + 1;
	r->machine_from[machine] = r->events;
}

static void ends(void *arg)
{
	struct event_log *r = arg;
	for (unsigned m = r->machines; m <= WORLDS; m++)
		r->machine_from[m] = r->events;
}

struct replay_audience event_log_audience(struct event_log *r, const struct deviations *list)
{
	r->list = list;
	return (struct replay_audience){
		.tracer = log_event, .machine_starts = machine_starts, .ends = ends, .arg = r};
}

void event_log_free(struct event_log *r)
{
	free(r->event);
	free(r->taking);
	free(r->actor);
	free(r->words);
	free(r->line);
	free(r->version);
	callers_free(&r->callers);
	memset(r, 0, sizeof(*r));
}

const char *event_log_text(const struct event_log *r, const struct logged_event *e)
{
	return r->words ? r->words + e->text : "";
}

const char *event_log_actor(const struct event_log *r, const struct logged_event *e)
{
	return e->actor == EVENT_LOG_NONE ? "" : r->actor[e->actor];
}

int event_log_next(const struct event_log *r, size_t from, unsigned machine, unsigned kinds,
		   uint64_t off, uint64_t len)
{
	assert(machine < r->machines);
	for (size_t i = from; i < r->machine_from[machine + 1]; i++)
		if (kinds >> r->event[i].kind & 1 && event_log_overlaps(&r->event[i], off, len))
			return (int)i;
	return EVENT_LOG_NONE;
}

int event_log_last_write(const struct event_log *r, size_t to, const struct logged_event *read)
{
	assert(to <= r->events);
	for (size_t i = to; i-- > r->machine_from[read->machine];)
		if (event_log_writes(&r->event[i]) &&
		    event_log_overlaps(&r->event[i], read->off, read->len))
			return (int)i;
	return EVENT_LOG_NONE;
}

const struct logged_line *event_log_line(const struct event_log *r, unsigned machine, uint32_t line)
{
	for (unsigned i = 0; i < r->lines; i++)
		if (r->line[i].machine == machine && r->line[i].line == line)
			return &r->line[i];
	return NULL;
}

bool event_log_survived(const struct event_log *r, int event)
{
	assert(event >= 0 && (size_t)event < r->events);
	const struct logged_event *e = &r->event[event];
	assert(event_log_writes(e));
	const struct logged_line *l = event_log_line(r, e->machine, (uint32_t)(e->off / LINE));
	for (unsigned v = 1; l && v <= l->versions; v++)
		if (r->version[l->first_version + v - 1].event == event)
			return v <= pmem_answer_split(l->versions, l->answer).version &&
			       !pmem_answer_split(l->versions, l->answer).words;
	return true;
}
