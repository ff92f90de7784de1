/* SPDX-License-Identifier: BSD-3-Clause */
/* See pm_sections.h. */
#include "checker/images/pm_sections.h"
#include "core/array.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"

const char *const pm_engine_name[PM_ENGINES] = {
	"NoReorderNoCheck",    "NoReorderDoCheck",	     "ReorderFull",
	"ReorderAccumulative", "ReorderReverseAccumulative", "ReorderPartial"};

int pm_engine_find(const char *name)
{
	for (int i = 0; i < PM_ENGINES; i++)
		if (!strcmp(name, pm_engine_name[i]))
			return i;
	return -1;
}

/* The open sections, the innermost last. */
struct open_sections {
	struct open_section {
		const char *name; /* with ".BEGIN" */
		size_t len;	  /* without */
		enum pm_engine engine;
	} * section;
	unsigned n, room;
};

static bool begins(const char *marker)
{
	size_t len = strlen(marker);
	return len >= 6 && !strcmp(marker + len - 6, ".BEGIN");
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

static int enter(struct open_sections *o, const char *marker, enum pm_engine engine)
{
	if (!ARRAY_RESERVE(o->section, o->n, 1, o->room))
		return -ENOMEM;
	o->section[o->n++] = (struct open_section){marker, strlen(marker) - 6, engine};
	return 0;
}

static int leave(struct open_sections *o, const struct pm_event *e, const char *marker, char *why,
		 size_t n)
{
	size_t len = strlen(marker) - 4; /* ".END" */
	const struct open_section *s = o->n ? &o->section[o->n - 1] : NULL;
	if (!s) {
		snprintf(why, n, "line %u of the log: %.80s: no section is open", e->line, marker);
		return -EINVAL;
	}
	if (s->len != len || strncmp(s->name, marker, len) != 0) {
		snprintf(why, n, "line %u of the log: %.80s: sections cross; expected %.*s.END",
			 e->line, marker, (int)(s->len < 80 ? s->len : 80), s->name);
		return -EINVAL;
	}
	o->n--;
	return 0;
}

int pm_sections_open(struct pm_sections *s, const struct pm_log *log, const struct pm_markers *m,
		     char *why, size_t n)
{
	struct open_sections o = {0};
	enum pm_engine now = m->usual;
	int error = 0;
	s->engine = malloc(log->events + 1);
	if (!s->engine)
		return -ENOMEM;
	for (size_t i = 0; i < log->events && !error; i++) {
		const struct pm_event *e = &log->event[i];
		const char *marker = log->source[e->source];
		s->engine[i] = (uint8_t)now;
		if (e->kind != PM_MARK)
			continue;
		if (begins(marker)) {
			now = engine_of(m, marker, now);
			error = enter(&o, marker, now);
			continue;
		}
		error = leave(&o, e, marker, why, n);
		now = o.n ? o.section[o.n - 1].engine : m->usual;
	}
	s->engine[log->events] = (uint8_t)now;
	free(o.section);
	if (error)
		pm_sections_close(s);
	return error;
}

void pm_sections_close(struct pm_sections *s)
{
	free(s->engine);
	s->engine = NULL;
}
