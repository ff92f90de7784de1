/* SPDX-License-Identifier: BSD-3-Clause */
/* See images_engine.h. */
#include "cli/images_engine.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"

static int choose_engine(const char *option, const char *name, enum pm_engine *engine)
{
	int found = pm_engine_find(name);
	if (found < 0)
		return fail(EXIT_USAGE,
			    "images: %s %.80s: expected NoReorderNoCheck, NoReorderDoCheck, "
			    "ReorderFull, ReorderAccumulative, ReorderReverseAccumulative or "
			    "ReorderPartial",
			    option, name);
	*engine = (enum pm_engine)found;
	return 0;
}

static int add_marker(struct images_engine *e, const char *name, const char *engine)
{
	struct pm_marker *m = &e->markers.marker[e->markers.n];
	if (e->markers.n == PM_MARKERS)
		return fail(EXIT_USAGE, "images: -x: expected at most %d markers", PM_MARKERS);
	if (!*name || strlen(name) >= sizeof(m->name))
		return fail(EXIT_USAGE, "images: -x: the marker \"%.40s\": expected 1 to %zu bytes",
			    name, sizeof(m->name) - 1);
	strcpy(m->name, name);
	e->markers.n++;
	return choose_engine("-x", engine, &m->engine);
}

/* {"MARKER": "ENGINE", ...} */
static int read_config(struct images_engine *e)
{
	json_error_t wrong;
	json_t *all = json_load_file(e->config, JSON_REJECT_DUPLICATES, &wrong), *engine;
	const char *name;
	int status = 0;
	if (!all)
		return fail(EXIT_USAGE, "%s:%d: %s; expected {\"MARKER\": \"ENGINE\", ...}",
			    e->config, wrong.line > 0 ? wrong.line : 1, wrong.text);
	if (!json_is_object(all))
		status = fail(EXIT_USAGE, "%s: expected {\"MARKER\": \"ENGINE\", ...}", e->config);
	json_object_foreach(all, name, engine)
	{
		if (status)
			break;
		status = json_is_string(engine)
				 ? add_marker(e, name, json_string_value(engine))
				 : fail(EXIT_USAGE, "%s: \"%.40s\": expected the name of an engine",
					e->config, name);
	}
	json_decref(all);
	return status;
}

/* MARKER=ENGINE,... */
static int read_pairs(struct images_engine *e)
{
	char pair[256];
	int status = 0;
	for (const char *at = e->config; !status; at++) {
		size_t len = strcspn(at, ",");
		snprintf(pair, sizeof(pair), "%.*s", (int)(len < 255 ? len : 255), at);
		char *equals = strchr(pair, '=');
		if (!equals || strchr(equals + 1, '='))
			return fail(EXIT_USAGE,
				    "images: -x: \"%.80s\": expected MARKER=ENGINE,... or a file",
				    pair);
		*equals = 0;
		status = add_marker(e, pair, equals + 1);
		at += len;
		if (!*at)
			break;
	}
	return status;
}

int images_engine_choose(struct images_engine *e)
{
	static const char *const levels[] = {"debug", "info", "warning", "error", "critical"};
	unsigned i = 0, n = sizeof(levels) / sizeof(levels[0]);
	int status = 0;
	while (e->level && i < n && strcmp(e->level, levels[i]) != 0)
		i++;
	if (i == n)
		return fail(EXIT_USAGE,
			    "images: -e %.40s: expected debug, info, warning, error or critical",
			    e->level);
	e->given = e->usual || e->config;
	e->markers.usual = PM_NO_CHECK; /* as pmreorder has it */
	if (e->usual)
		status = choose_engine("-r", e->usual, &e->markers.usual);
	if (status || !e->config)
		return status;
	return access(e->config, F_OK) ? read_pairs(e) : read_config(e);
}

/* --- in a log --- */

/* Events before the first one of this kind and, if `name` is not NULL, of this name, and that one.
 * 0: there is none. */
static size_t until_first(const struct pm_log *log, enum pm_event_kind kind, const char *name)
{
	for (size_t i = 0; i < log->events; i++)
		if (log->event[i].kind == kind &&
		    (!name || !strcmp(log->source[log->event[i].source], name)))
			return i + 1;
	return 0;
}

/* The first event before which the power fails. Where nobody says so, a program owes nothing before
 * it has acknowledged something, or a client has asked for something: it may still be making its
 * files. */
static int find_from(const struct images_engine *e, const struct pm_log *log, const char *name,
		     size_t *first, const char **words)
{
	const char *usual = log->calls && !log->printed ? "call" : "ack";
	const char *from = e->from ? e->from : e->given ? "start" : usual;
	unsigned long long number;
	*first = 0;
	*words = NULL;
	if (!strcmp(from, "start"))
		return 0;
	*words = from;
	if (!strcmp(from, "call") && log->calls) {
		*words = "the first operation";
		*first = log->call[0].event;
		return 0;
	}
	if (!strcmp(from, "ack")) {
		*words = "the first acknowledgement";
		*first = until_first(log, PM_ACK, NULL);
		if (*first || !e->from)
			return 0;
	}
	if (whole_number(from, 0, log->events, &number))
		*first = (size_t)number;
	else
		*first = until_first(log, PM_MARK, from);
	if (*first || !strcmp(from, "0"))
		return 0;
	return fail(
		EXIT_USAGE,
		"%s: --from %.40s: expected ack, call, start, the number of an event, at most %zu, "
		"or a marker that is in it",
		name, from, log->events);
}

int images_engine_sections(const struct images_engine *e, const struct pm_log *log,
			   const char *name, uint8_t **sections, const char **from)
{
	char why[300] = "";
	size_t first;
	int status = find_from(e, log, name, &first, from);
	*sections = NULL;
	if (status || (!first && !e->given))
		return status;
	*sections = e->given ? pm_sections(log, &e->markers, why, sizeof(why))
			     : malloc(log->events + 1);
	if (*why)
		return fail(EXIT_USAGE,
			    "%s: %s; tidemark images without -x and -r takes this log as it is",
			    name, why);
	if (!*sections)
		return no_memory();
	if (!e->given)
		memset(*sections, PM_FULL, log->events + 1);
	memset(*sections, PM_NO_CHECK, first);
	return 0;
}
