/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading core/stores/figures.txt and the profiles, which the assembler puts into the program. */
#include "checker/models/figures.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/embed.h"
#include "core/text/text.h"
#include "scenarios/stores.h"

EMBED(tm_figures_text, TM_FIGURES_FILE);
EMBED(tm_profile_ef, TM_PROFILES_FOLDER "/ef.profile");
EMBED(tm_profile_er, TM_PROFILES_FOLDER "/er.profile");
EMBED(tm_profile_rk, TM_PROFILES_FOLDER "/rk.profile");

const struct figure_profile figure_profiles[] = {{"default", ""},
						 {"ef", tm_profile_ef},
						 {"er", tm_profile_er},
						 {"rk", tm_profile_rk},
						 {NULL, NULL}};

const char *const figure_metrics[] = {[FIGURE_PUT] = "put",
				      [FIGURE_GET] = "get",
				      [FIGURE_LATENCY] = "latency",
				      [FIGURE_THROUGHPUT] = "throughput",
				      [FIGURE_SERVER] = "server",
				      [FIGURE_BYTES] = "bytes",
				      NULL};

int figure_profile(unsigned i, struct profile *p, struct input_error *error)
{
	char *bytes = strdup(figure_profiles[i].text);
	if (!bytes)
		return -ENOMEM;
	int rc = profile_parse(p, bytes, strlen(bytes), error);
	free(bytes);
	return rc;
}

struct reader {
	struct figures *all;
	struct figure *f; /* the one that is read; NULL: none yet */
};

static int find(const char *const *names, const char *name)
{
	int i = 0;
	while (names[i] && strcmp(names[i], name) != 0)
		i++;
	return names[i] ? i : -1;
}

static int begin_figure(struct text *t, struct reader *r, const char *id)
{
	if (!ARRAY_RESERVE(r->all->figure, r->all->figures, 1, r->all->room))
		return -ENOMEM;
	r->f = &r->all->figure[r->all->figures++];
	*r->f = (struct figure){.id = id,
				.line = t->line,
				.metric = FIGURE_METRICS,
				.clients = 1,
				.keys = 16,
				.ops = 40,
				.klen = 32};
	return *id ? 0 : text_wrong(t, "expected a figure's name");
}

static int read_profile(struct text *t, struct figure *f, const char *name)
{
	for (f->profile = 0; figure_profiles[f->profile].name; f->profile++)
		if (!strcmp(figure_profiles[f->profile].name, name))
			return 0;
	return text_wrong(t, "%s: expected a profile: default, ef, er, or rk",
			  text_show(name).text);
}

static int read_values(struct text *t, struct figure *f, char *list)
{
	bool more = true;
	while (more) {
		uint64_t n;
		if (f->values == FIGURE_VALUES ||
		    !text_number(text_part(&list, ',', &more), 8, TM_MAX_VALUE, &n))
			return text_wrong(t, "expected at most %d lengths, 8 to %d bytes",
					  FIGURE_VALUES, TM_MAX_VALUE);
		f->value[f->values++] = (uint32_t)n;
	}
	return 0;
}

/* "measure METRIC name=value..." */
static int read_measure(struct text *t, struct figure *f, char *rest)
{
	const struct {
		const char *name;
		unsigned *into, least, most;
	} fields[] = {{"reads", &f->reads, 0, 100},
		      {"clients", &f->clients, 1, WORKLOAD_MAX_CLIENTS},
		      {"keys", &f->keys, 1, HISTORY_KEYS},
		      {"ops", &f->ops, 3, 1000},
		      {"klen", &f->klen, 1, TM_MAX_KEY}};
	int metric = find(figure_metrics, text_word(&rest));
	if (metric < 0)
		return text_wrong(t, "expected what is measured: put, get, latency, throughput, "
				     "server, or bytes");
	f->metric = (enum figure_metric)metric;
	for (char *word; *(word = text_word(&rest));) {
		char *value = text_value(word);
		unsigned i = 0;
		uint64_t n;
		if (value && !strcmp(word, "values")) {
			int rc = read_values(t, f, value);
			if (rc)
				return rc;
			continue;
		}
		while (i < sizeof(fields) / sizeof(fields[0]) && strcmp(fields[i].name, word) != 0)
			i++;
		if (!value || i == sizeof(fields) / sizeof(fields[0]) ||
		    !text_number(value, fields[i].least, fields[i].most, &n))
			return text_wrong(t,
					  "%s: expected values=, reads=, clients=, keys=, ops= or "
					  "klen=, and a number that it may be",
					  text_show(word).text);
		*fields[i].into = (unsigned)n;
	}
	return f->values ? 0 : text_wrong(t, "expected values=N,...");
}

/* "side NAME STORE[/VARIANT] [NAME=VALUE]... [cleans=N]" */
static int read_side(struct text *t, struct figure *f, char *rest)
{
	struct figure_side *s = &f->side[f->sides];
	if (f->sides == FIGURE_SIDES)
		return text_wrong(t, "expected at most %d sides", FIGURE_SIDES);
	*s = (struct figure_side){.name = text_word(&rest), .line = t->line};
	char *store = text_word(&rest), *variant = strchr(store, '/');
	if (variant)
		*variant++ = '\0';
	s->variant = variant ? variant : "default";
	s->store = store_find(store);
	if (!s->store || (variant && !variant_find(s->store, variant)))
		return text_wrong(t, "%s: expected a store, or one with its variant",
				  text_show(s->store ? variant : store).text);
	for (const char *knob; *(knob = text_word(&rest));) {
		uint64_t n;
		if (!strncmp(knob, "cleans=", 7) && text_number(knob + 7, 1, 100, &n))
			s->cleans = (unsigned)n;
		else if (s->knobs == FIGURE_KNOBS)
			return text_wrong(t, "expected at most %d knobs", FIGURE_KNOBS);
		else
			s->knob[s->knobs++] = knob;
	}
	f->sides++;
	return 0;
}

static bool find_side(const struct figure *f, const char *name, unsigned *i)
{
	for (*i = 0; *i < f->sides; ++*i)
		if (!strcmp(f->side[*i].name, name))
			return true;
	return false;
}

/* A ratio; "-": no limit. */
static bool read_ratio(const char *word, double none, double *out)
{
	char *end;
	*out = none;
	if (!strcmp(word, "-"))
		return true;
	*out = strtod(word, &end);
	return end != word && !*end && *out >= 0;
}

/* "expect SIDE SIDE LOW HIGH [at VALUE]" */
static int read_expect(struct text *t, struct figure *f, char *rest)
{
	struct figure_expect *e = &f->expect[f->expects];
	uint64_t n = 0;
	if (f->expects == FIGURE_EXPECTS)
		return text_wrong(t, "expected at most %d of these", FIGURE_EXPECTS);
	const char *a = text_word(&rest), *b = text_word(&rest), *low = text_word(&rest),
		   *high = text_word(&rest), *at = text_word(&rest);
	if (!find_side(f, a, &e->a) || !find_side(f, b, &e->b))
		return text_wrong(t, "expected two sides of the lines above");
	if (!read_ratio(low, 0, &e->low) || !read_ratio(high, 1e9, &e->high) || e->low > e->high)
		return text_wrong(t, "expected the least and the greatest ratio, or '-'");
	if (*at && (strcmp(at, "at") != 0 || !text_number(text_word(&rest), 8, TM_MAX_VALUE, &n)))
		return text_wrong(t, "expected \"at\" and a length, or nothing");
	e->value = (uint32_t)n;
	f->expects++;
	return 0;
}

static int read_row(struct text *t, char *line, void *arg)
{
	struct reader *r = arg;
	char *rest = line;
	const char *word = text_word(&rest);
	rest = text_skip_blanks(rest);
	if (!strcmp(word, "figure"))
		return begin_figure(t, r, text_word(&rest));
	struct figure *f = r->f;
	const struct {
		const char *name;
		const char **into;
	} texts[] = {{"source", f ? &f->source : NULL},
		     {"says", f ? &f->says : NULL},
		     {"paper", f ? &f->paper : NULL},
		     {"why", f ? &f->why : NULL},
		     {"open", f ? &f->open : NULL}};
	for (unsigned i = 0; f && i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(word, texts[i].name)) {
			*texts[i].into = rest;
			return 0;
		}
	if (f && !strcmp(word, "profile"))
		return read_profile(t, f, text_word(&rest));
	if (f && !strcmp(word, "measure"))
		return read_measure(t, f, rest);
	if (f && !strcmp(word, "side"))
		return read_side(t, f, rest);
	if (f && !strcmp(word, "expect"))
		return read_expect(t, f, rest);
	return text_wrong(t,
			  "%s: expected figure, source, says, paper, profile, measure, side, "
			  "expect, why, or open",
			  text_show(word).text);
}

/* Has each all that it needs? */
static int check(const struct figures *all, struct input_error *error)
{
	for (unsigned i = 0; i < all->figures; i++) {
		const struct figure *f = &all->figure[i];
		const bool runs = f->values && f->sides > 1 && f->expects;
		if (f->source && f->says && f->paper && (runs || f->open))
			continue;
		error->line = f->line;
		snprintf(error->message, sizeof(error->message),
			 "%s: expected source, says, paper, measure, sides and expect, or open",
			 f->id);
		return -EINVAL;
	}
	return 0;
}

int figures_read(struct figures *all, const char *text, struct input_error *error)
{
	struct reader reader = {.all = all};
	struct text t;
	*all = (struct figures){.text = strdup(text ? text : tm_figures_text)};
	*error = (struct input_error){0};
	if (!all->text)
		return -ENOMEM;
	text_start(&t, all->text, strlen(all->text), error);
	t.ascii = true;
	int rc = text_rows(&t, read_row, &reader);
	rc = rc ? rc : check(all, error);
	if (rc)
		figures_free(all);
	return rc;
}

void figures_free(struct figures *all)
{
	free(all->figure);
	free(all->text);
	*all = (struct figures){0};
}
