/* SPDX-License-Identifier: BSD-3-Clause */
/* See images_engine.h. */
#include "cli/images_engine.h"
#include <jansson.h>
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
