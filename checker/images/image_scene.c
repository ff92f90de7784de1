/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_scene.h. One replay of the log serves all causes. */
#include "checker/images/image_scene.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A store or a landing that some causes have lost. */
struct lost {
	uint32_t event;
	bool in_flight, touched;
	struct scene_fate fate;
};

struct maker {
	const struct pm_log *log;
	struct pm_replay replay;
	const struct image_cause *cause;
	unsigned causes;
	unsigned *by_cut; /* the causes in the order of their cuts */
	struct image_scene *scene;
	struct lost *lost; /* in the order of events */
	unsigned losts, begun;
};

/* --- what was lost --- */

static int compare_lost(const void *a, const void *b)
{
	const struct lost *x = a, *y = b;
	return (x->event > y->event) - (x->event < y->event);
}

static bool gather_lost(struct maker *m)
{
	size_t n = 0;
	for (unsigned i = 0; i < m->causes; i++)
		n += m->cause[i].parts;
	m->lost = calloc(n + 1, sizeof(*m->lost));
	if (!m->lost)
		return false;
	n = 0;
	for (unsigned i = 0; i < m->causes; i++)
		for (unsigned p = 0; p < m->cause[i].parts; p++)
			m->lost[n++] = (struct lost){.event = m->cause[i].part[p].event,
						     .fate = {SCENE_NEVER, SCENE_NEVER}};
	qsort(m->lost, n, sizeof(*m->lost), compare_lost);
	for (size_t i = 0; i < n; i++)
		if (!m->losts || m->lost[m->losts - 1].event != m->lost[i].event)
			m->lost[m->losts++] = m->lost[i];
	return true;
}

/* Is it still a version in flight? */
static bool flies(const struct pm_replay *r, uint32_t event)
{
	const struct pm_event *e = &r->log->event[event];
	uint32_t slot = r->slot[e->file][e->off / PM_LINE];
	if (!slot)
		return false;
	const struct pm_line *l = &r->dirty[slot - 1];
	/* Its versions are in the order of their events. */
	return pm_replay_event(l, 0) <= event;
}

/* A pm_durable_fn. */
static void touch(void *maker, unsigned file, uint64_t line, const uint8_t content[PM_LINE])
{
	struct maker *m = maker;
	(void)content;
	for (unsigned i = 0; i < m->begun; i++) {
		const struct pm_event *e = &m->log->event[m->lost[i].event];
		m->lost[i].touched |= e->file == file && e->off / PM_LINE == line;
	}
}

/* The first flush after the store that this fence waits for. */
static size_t find_flush(const struct maker *m, const struct lost *lost, size_t fence)
{
	const struct pm_event *e = m->log->event, *store = &e[lost->event];
	for (size_t i = lost->event; i < fence; i++)
		if (e[i].kind == PM_FLUSH &&
		    pm_event_meets(&e[i], store->file, store->off / PM_LINE) &&
		    pm_replay_waits(m->log, &e[fence], e[i].thread))
			return i;
	return SCENE_NEVER;
}

/* Event `at` has happened. */
static void follow_lost(struct maker *m, size_t at)
{
	const struct pm_event *e = &m->log->event[at];
	if (m->begun < m->losts && m->lost[m->begun].event == at)
		m->lost[m->begun++].in_flight = true;
	for (unsigned i = 0; i < m->begun; i++) {
		struct lost *lost = &m->lost[i];
		if (!lost->in_flight)
			continue;
		const struct pm_event *store = &m->log->event[lost->event];
		if (e->kind == PM_FLUSH && lost->fate.flush == SCENE_NEVER &&
		    pm_event_meets(e, store->file, store->off / PM_LINE))
			lost->fate.flush = at;
		if (!lost->touched)
			continue;
		lost->touched = false;
		lost->in_flight = flies(&m->replay, lost->event);
		if (lost->in_flight)
			continue;
		lost->fate.durable = at;
		lost->fate.flush = e->kind == PM_FENCE ? find_flush(m, lost, at) : SCENE_NEVER;
	}
}

static void hand_out_fates(struct maker *m)
{
	for (unsigned i = 0; i < m->causes; i++)
		for (unsigned p = 0; p < m->cause[i].parts; p++) {
			const struct lost key = {.event = m->cause[i].part[p].event};
			const struct lost *lost = bsearch(&key, m->lost, m->losts, sizeof(*m->lost),
							  compare_lost);
			assert(lost); /* gather_lost() has taken all of them */
			m->scene[i].fate[p] = lost->fate;
		}
}

/* --- lines in flight --- */

static int compare_lines(const void *a, const void *b)
{
	const struct scene_line *x = a, *y = b;
	bool whole = x->left == x->versions, other = y->left == y->versions;
	if (whole != other)
		return whole - other;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

/* How many of its versions this image has. */
static uint32_t left_of(const struct image_cause *c, const struct pm_line *l)
{
	for (unsigned i = 0; i < c->lines; i++)
		if (c->line[i].file == l->file && c->line[i].line == l->line)
			return c->line[i].left;
	return l->versions;
}

static bool keep_lines(const struct maker *m, const struct image_cause *c, struct image_scene *s)
{
	const struct pm_replay *r = &m->replay;
	struct scene_line *all = calloc(r->dirties + 1, sizeof(*all));
	if (!all)
		return false;
	for (unsigned i = 0; i < r->dirties; i++) {
		const struct pm_line *l = &r->dirty[i];
		all[i] = (struct scene_line){.line = l->line,
					     .file = l->file,
					     .left = left_of(c, l),
					     .versions = l->versions};
		for (unsigned v = 0; v < l->versions && v < SCENE_VERSIONS; v++)
			all[i].event[v] = pm_replay_event(l, v);
	}
	qsort(all, r->dirties, sizeof(*all), compare_lines);
	s->lines = r->dirties < SCENE_LINES ? r->dirties : SCENE_LINES;
	struct scene_line *kept = realloc(all, (s->lines + 1) * sizeof(*all));
	s->line = kept ? kept : all;
	return true;
}

/* --- all of it --- */

static void sort_causes(struct maker *m)
{
	for (unsigned i = 0; i < m->causes; i++) {
		unsigned k = i;
		for (; k && m->cause[m->by_cut[k - 1]].at > m->cause[i].at; k--)
			m->by_cut[k] = m->by_cut[k - 1];
		m->by_cut[k] = i;
	}
}

static bool replay(struct maker *m)
{
	int more = 1;
	for (unsigned next = 0; more > 0;) {
		const size_t at = m->replay.at;
		for (; next < m->causes && m->cause[m->by_cut[next]].at == at; next++) {
			unsigned i = m->by_cut[next];
			if (!keep_lines(m, &m->cause[i], &m->scene[i]))
				return false;
		}
		more = pm_replay_step(&m->replay, touch, m);
		if (more > 0)
			follow_lost(m, at);
	}
	return !more;
}

struct image_scene *image_scenes_make(const struct pm_log *log, const struct images_options *o,
				      const struct image_cause *cause, unsigned causes)
{
	struct maker m = {.log = log, .cause = cause, .causes = causes};
	m.scene = calloc(causes + 1, sizeof(*m.scene));
	m.by_cut = calloc(causes + 1, sizeof(*m.by_cut));
	bool made = m.scene && m.by_cut && gather_lost(&m) &&
		    !pm_replay_open(&m.replay, log, &o->hw, o->kill);
	if (made) {
		sort_causes(&m);
		made = replay(&m);
		hand_out_fates(&m);
		pm_replay_close(&m.replay);
	}
	if (!made) {
		image_scenes_free(m.scene, causes);
		m.scene = NULL;
	}
	free(m.by_cut);
	free(m.lost);
	return m.scene;
}

void image_scenes_free(struct image_scene *scene, unsigned causes)
{
	for (unsigned i = 0; i < causes && scene; i++)
		free(scene[i].line);
	free(scene);
}
