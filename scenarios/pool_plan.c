/* SPDX-License-Identifier: BSD-3-Clause */
/* See pool_plan.h. */
#include "scenarios/pool_plan.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/live/live_pm.h"
#include "scenarios/knobs.h"

#define MOST_UPDATES 100000000u

const unsigned long long pool_default_bytes = 16ull << 20;
const struct pool_limit pool_limits[POOL_SIZES] = {
	[POOL_CLIENTS] = {"--clients", 1, TM_MAX_CLIENTS, 8},
	[POOL_KEYS] = {"--keys", 1, 1u << 24, 1000},
	[POOL_UPDATES] = {"--updates", 1, MOST_UPDATES, 0},
	[POOL_VALUE] = {"--value", LIVE_MIN_VALUE, TM_MAX_VALUE, 256},
};

__attribute__((format(printf, 2, 3))) static int wrong(char why[POOL_WHY], const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, POOL_WHY, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* --- a pool without a store --- */

/* A knob of a variant, and where the mistake in it goes. */
struct variant_knobs {
	struct live_store *store;
	char *why;
};

static int set_of_variant(void *arg, const char *name, const char *value)
{
	struct variant_knobs *v = arg;
	struct live_store *s = v->store;
	const char *expected;
	int error = knob_set(s->store, &s->params, name, value, &expected);
	/* Else it is a knob of simulated hardware. */
	return error == -ENOENT ? wrong(v->why,
					"variant %s is one of %s=%s: hardware that a live server "
					"cannot choose",
					s->variant, name, value)
				: 0;
}

static int set_variant(struct live_store *s, const char *name, char why[POOL_WHY])
{
	struct variant_knobs v = {s, why};
	snprintf(s->variant, sizeof(s->variant), "%s", name);
	int error = knob_variant(s->store, name, set_of_variant, &v);
	if (error == -ENOENT)
		return wrong(why, "%s has no variant \"%.40s\" (tidemark list variants)",
			     s->store->name, name);
	return error;
}

static int set_knobs(struct live_store *s, const struct pool_wish *w, char why[POOL_WHY])
{
	for (unsigned i = 0; i < w->knobs; i++) {
		const char *text = w->knob[i], *expected = "";
		size_t len = strcspn(text, "=");
		char name[64];
		snprintf(name, sizeof(name), "%.*s", (int)len, text);
		int error = knob_set(s->store, &s->params, name, text[len] ? text + len + 1 : "",
				     &expected);
		if (error == -ENOENT)
			return wrong(why, "--knob: %s has no knob \"%.40s\" (tidemark list knobs)",
				     s->store->name, name);
		if (error)
			return wrong(why, "--knob: \"%.60s\"; expected one of: %s", text, expected);
	}
	return 0;
}

/* As many updates as go into the bytes; 0: none. */
static unsigned room_for(const struct live_store *s, unsigned long long bytes)
{
	struct tm_params params = s->params;
	unsigned low = 0, high = MOST_UPDATES;
	while (low < high) {
		params.updates = low + (high - low + 1) / 2;
		if (POOL_HEADER + live_store_bytes(s->store, &params) <= bytes)
			low = params.updates;
		else
			high = params.updates - 1;
	}
	return low;
}

/* A store whose times are those of simulated networks has a variant with others. */
static const char *variant_for_live(const struct tm_store *store)
{
	for (const struct tm_variant *v = store->variants; v->name; v++)
		if (!strcmp(v->name, "live"))
			return v->name;
	return "default";
}

static int design(struct live_store *s, const struct pool_wish *w, char why[POOL_WHY])
{
	unsigned long long n[POOL_SIZES];
	int error = set_variant(s, w->variant ? w->variant : variant_for_live(s->store), why);
	if (!error)
		error = set_knobs(s, w, why);
	if (error)
		return error;
	for (unsigned i = 0; i < POOL_SIZES; i++)
		n[i] = w->size[i] ? w->size[i] : pool_limits[i].otherwise;
	s->params.clients = (unsigned)n[POOL_CLIENTS];
	s->params.keys = (unsigned)n[POOL_KEYS];
	s->params.max_vlen = (unsigned)n[POOL_VALUE];
	s->params.updates = n[POOL_UPDATES] ? (unsigned)n[POOL_UPDATES]
					    : room_for(s, w->bytes ? w->bytes : pool_default_bytes);
	if (!s->params.updates)
		s->params.updates = 1;
	s->pool_bytes = live_store_bytes(s->store, &s->params);
	if (w->bytes && POOL_HEADER + s->pool_bytes > w->bytes)
		return wrong(why, "--size: %llu bytes; expected at least %zu for this store",
			     w->bytes, POOL_HEADER + s->pool_bytes);
	return 0;
}

/* --- a pool that has a store --- */

/* Are the wishes as it is? */
static int compare(const struct live_store *had, const char *path, const struct pool_wish *w,
		   char why[POOL_WHY])
{
	const struct tm_params *p = &had->params;
	const unsigned is[POOL_SIZES] = {p->clients, p->keys, p->updates, p->max_vlen};
	struct live_store wanted = *had;
	if (w->variant && strcmp(w->variant, had->variant))
		return wrong(why, "--variant: %s has %s", path, had->variant);
	for (unsigned i = 0; i < POOL_SIZES; i++)
		if (w->size[i] && w->size[i] != is[i])
			return wrong(why, "%s: %s has %u", pool_limits[i].option, path, is[i]);
	if (w->bytes && w->bytes < POOL_HEADER + had->pool_bytes)
		return wrong(why, "--size: %s has %zu bytes", path, POOL_HEADER + had->pool_bytes);
	int error = set_knobs(&wanted, w, why);
	if (error)
		return error;
	for (unsigned k = 0; had->store->knobs[k].name; k++) {
		char value[64];
		if (wanted.params.knob[k] == p->knob[k])
			continue;
		knob_value(had->store, p, k, value, sizeof(value));
		return wrong(why, "--knob: %s has %s=%s", path, had->store->knobs[k].name, value);
	}
	return 0;
}

/* Read its header, without changing it. *text: "" if there is none. */
static int read_header(const char *path, char text[POOL_TEXT], char why[POOL_WHY])
{
	struct live_pm_setup setup = {.path = path, .read_only = true};
	struct live_pm *pm;
	struct stat st;
	char reason[256];
	text[0] = '\0';
	if (stat(path, &st) ? errno == ENOENT : S_ISREG(st.st_mode) && !st.st_size)
		return 0;
	if (live_pm_open(&pm, &setup, reason, sizeof(reason)))
		return wrong(why, "%s", reason);
	snprintf(text, POOL_TEXT, "%s", live_pm_header(pm));
	live_pm_close(pm);
	return 0;
}

int pool_plan(struct live_store *s, const char *path, const char *name,
	      const struct pool_wish *wish, bool *fresh, char why[POOL_WHY])
{
	char text[POOL_TEXT];
	struct input_error mistake;
	int error = read_header(path, text, why);
	if (error)
		return error;
	if (*text && live_store_parse(s, text, live_store_find, &mistake))
		return wrong(why, "%s: line %u of its header: %s", path, mistake.line,
			     mistake.message);
	*fresh = !*text || !s->boot;
	if (*fresh) {
		*s = (struct live_store){.store = live_store_find(name)};
		return design(s, wish, why);
	}
	if (strcmp(s->store->name, name))
		return wrong(why, "%s holds %s, not %s", path, s->store->name, name);
	return compare(s, path, wish, why);
}
