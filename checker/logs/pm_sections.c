/* SPDX-License-Identifier: BSD-3-Clause */
/* See pm_sections.h. */
#include "checker/logs/pm_sections.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/array.h"

int pm_engine_find(const char *name)
{
	static const char *const names[] = {
		"NoReorderNoCheck",    "NoReorderDoCheck",	     "ReorderFull",
		"ReorderAccumulative", "ReorderReverseAccumulative", "ReorderPartial"};
	for (int i = 0; i < 6; i++)
		if (!strcmp(name, names[i]))
			return i < PM_FULL ? i : PM_FULL;
	return -1;
}

/* pmreorder looks for the part before the first dot. */
static enum pm_engine engine_of(const struct pm_markers *m, const char *marker,
				enum pm_engine around)
{
	size_t len = strcspn(marker, ".");
	for (unsigned i = 0; i < m->n; i++)
		if (!strncmp(m->marker[i].name, marker, len) && !m->marker[i].name[len])
			return m->marker[i].engine;
	return around;
}

/* The open sections, the innermost last. */
struct open_sections {
	struct open_section {
		const char *begin; /* its marker, with ".BEGIN" */
		enum pm_engine around;
	} * section;
	size_t n, room;
};

static int leave(struct open_sections *o, const struct pm_event *e, const char *marker, char *why,
		 size_t n)
{
	const char *begin = o->n ? o->section[o->n - 1].begin : "no section is open.BEGIN";
	int len = (int)(strlen(begin) - strlen(".BEGIN"));
	if (o->n && !strncmp(marker, begin, (size_t)len) && !strcmp(marker + len, ".END")) {
		o->n--;
		return 0;
	}
	snprintf(why, n, "line %u of the log: %.80s: %s%.*s%s", e->line, marker,
		 o->n ? "sections cross; expected " : "", len < 80 ? len : 80, begin,
		 o->n ? ".END" : "");
	return -EINVAL;
}

uint8_t *pm_sections(const struct pm_log *log, const struct pm_markers *m, char *why, size_t n)
{
	struct open_sections o = {0};
	enum pm_engine now = m->usual;
	uint8_t *engine = malloc(log->events + 1);
	int error = engine ? 0 : -ENOMEM;
	*why = 0;
	for (size_t i = 0; i < log->events && !error; i++) {
		const struct pm_event *e = &log->event[i];
		const char *marker = log->source[e->source], *end = strrchr(marker, '.');
		engine[i] = (uint8_t)now;
		if (e->kind != PM_MARK)
			continue;
		if (end && !strcmp(end, ".BEGIN")) {
			if (!ARRAY_RESERVE(o.section, o.n, 1, o.room))
				error = -ENOMEM;
			else
				o.section[o.n++] = (struct open_section){marker, now};
			now = engine_of(m, marker, now);
		} else {
			error = leave(&o, e, marker, why, n);
			now = error ? now : o.section[o.n].around;
		}
	}
	if (!error)
		engine[log->events] = (uint8_t)now;
	free(o.section);
	if (!error)
		return engine;
	free(engine);
	return NULL;
}
