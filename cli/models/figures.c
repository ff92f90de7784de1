/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark figures: what the papers measured, and the same in virtual time. docs/figures.md. */
#include "checker/models/figures.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "report/text.h"

struct request {
	const char *profile, *plot;
	bool list, quiet;
};

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"list", NULL, "what would be run", REQUEST(list)},
	{"profile", "FILE",
	 "what things cost, for all figures: a file, or ef, er or rk, one paper's machines "
	 "(docs/figures.md)",
	 REQUEST(profile)},
	{"plot", "FILE", "ratios and what papers have, for gnuplot", REQUEST(plot)},
	ROWS_RESULTS,
	OPTION_QUIET(struct request, quiet),
	OPTION_END};

static const struct options options = {
	"figures", "[ID...] [OPTION...]",
	"Runs the papers' experiments in virtual time, on machines like theirs, and prints what "
	"they measured beside what comes of it. Nothing goes wrong in these runs, and all that "
	"counts is ratios. Without an ID: all of them.",
	rows,
	"0 all as recorded, 1 a figure agrees or does not, otherwise than recorded, 2 usage or bad "
	"input, 70 internal error"};

static json_t *side_tree(const struct figure *f, unsigned i, unsigned v,
			 const struct figure_result *r)
{
	const struct figure_side *s = &f->side[i];
	return json_pack("{s:s, s:s, s:s, s:f}", "side", s->name, "store", s->store->name,
			 "variant", s->variant, "figure", r->figure[v][i]);
}

static json_t *ratio_tree(const struct figure *f, unsigned i, unsigned v,
			  const struct figure_result *r)
{
	const struct figure_expect *e = &f->expect[i];
	json_t *one = json_pack("{s:s, s:s, s:i, s:f, s:f, s:b}", "a", f->side[e->a].name, "b",
				f->side[e->b].name, "value", (int)f->value[v], "ratio",
				r->ratio[i][v].ratio, "low", e->low, "agrees",
				(int)r->ratio[i][v].agrees);
	if (e->high < 1e9)
		json_object_set_new(one, "high", json_real(e->high));
	return one;
}

static json_t *figure_tree(const struct figure *f)
{
	json_t *one = json_pack("{s:s, s:s, s:s, s:s, s:s, s:[], s:[]}", "id", f->id, "source",
				f->source, "says", f->says, "paper", f->paper, "profile",
				figure_profiles[f->profile].name, "sides", "ratios");
	if (f->why)
		json_object_set_new(one, "why", json_string(f->why));
	if (f->open)
		json_object_set_new(one, "open", json_string(f->open));
	return one;
}

static void add_results(json_t *one, const struct figure *f, const struct figure_result *r)
{
	json_object_set_new(one, "metric", json_string(figure_metrics[f->metric]));
	for (unsigned v = 0; v < f->values; v++) {
		json_t *at = json_pack("{s:i, s:[]}", "value", (int)f->value[v], "of");
		for (unsigned i = 0; i < f->sides; i++)
			json_array_append_new(json_object_get(at, "of"), side_tree(f, i, v, r));
		json_array_append_new(json_object_get(one, "sides"), at);
	}
	for (unsigned i = 0; i < f->expects; i++)
		for (unsigned v = 0; v < f->values; v++)
			if (r->ratio[i][v].asked)
				json_array_append_new(json_object_get(one, "ratios"),
						      ratio_tree(f, i, v, r));
	json_object_set_new(one, "verdict", json_string(r->agrees ? "agrees" : "differs"));
	json_object_set_new(one, "as_recorded", json_boolean(r->agrees == !f->why));
}

/* 0, or the status after a message. */
static int run_one(const struct figure *f, const struct profile *given, json_t *all)
{
	struct input_error error = {0};
	struct figure_result *r = calloc(1, sizeof(*r));
	struct profile p;
	json_t *one = figure_tree(f);
	int rc = 0;
	if (!r || !one)
		return no_memory();
	json_array_append_new(json_object_get(all, "figures"), one);
	if (f->open) {
		free(r);
		json_object_set_new(one, "verdict", json_string("not run"));
		tree_case(all, CASE_SKIPPED, "figures", f->id, "%s", f->open);
		return 0;
	}
	if (given)
		p = *given;
	else
		rc = figure_profile(f->profile, &p, &error);
	if (!rc)
		rc = figure_run(f, &p, r);
	int status = !rc ? 0
			 : fail(EXIT_INTERNAL, "figures: %s: %s%s", f->id, error.message, r->why);
	if (!status) {
		add_results(one, f, r);
		const bool well = r->agrees == !f->why;
		tree_case(all, well ? CASE_PASSED : CASE_FAILED, "figures", f->id,
			  well ? NULL : "%s",
			  r->agrees ? "it agrees, and is recorded not to" : "it differs");
	}
	free(r);
	return status;
}

static void count_verdicts(json_t *all)
{
	unsigned agree = 0, differ = 0, open = 0, news = 0;
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(all, "figures"), i, one)
	{
		const char *verdict = tree_text(one, "verdict");
		agree += !strcmp(verdict, "agrees");
		differ += !strcmp(verdict, "differs");
		open += !strcmp(verdict, "not run");
		news += json_is_false(json_object_get(one, "as_recorded"));
	}
	json_object_set_new(all, "agree", json_integer(agree));
	json_object_set_new(all, "differ", json_integer(differ));
	json_object_set_new(all, "not_run", json_integer(open));
	json_object_set_new(all, "news", json_integer(news));
	json_object_set_new(all, "shown", json_integer(agree + differ));
}

/* Is the figure one of those that are named? */
static bool is_asked(const struct figure *f, char **names, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], f->id))
			return true;
	return !n;
}

static int check_names(const struct figures *all, char **names, int n)
{
	for (int i = 0; i < n; i++) {
		struct nearest near;
		unsigned k = 0;
		nearest_init(&near, names[i]);
		for (; k < all->figures && strcmp(all->figure[k].id, names[i]) != 0; k++)
			nearest_try(&near, all->figure[k].id);
		if (k == all->figures)
			return fail(EXIT_USAGE, "no figure \"%.40s\"%s (tidemark figures --list)",
				    names[i], near.hint);
	}
	return 0;
}

int profile_option(const char *text, struct profile *p)
{
	struct input_error error = {0};
	for (unsigned i = 0; figure_profiles[i].name; i++)
		if (!strcmp(figure_profiles[i].name, text))
			return figure_profile(i, p, &error)
				       ? fail(EXIT_INTERNAL, "%s: %s", text, error.message)
				       : 0;
	int rc = profile_read(p, text, &error);
	return rc ? input_status(text, rc, &error) : 0;
}

static int run_all(const struct request *o, const struct figures *all, char **names, int n)
{
	struct profile given;
	int status = o->profile ? profile_option(o->profile, &given) : 0;
	status = status ? status : plot_check(o->plot);
	status = status ? status : results_check();
	json_t *tree = json_pack("{s:[]}", "figures");
	for (unsigned i = 0; i < all->figures && !status; i++) {
		const struct figure *f = &all->figure[i];
		if (!is_asked(f, names, n))
			continue;
		if (!o->quiet)
			progress_line("%s", f->id);
		status = run_one(f, o->profile ? &given : NULL, tree);
	}
	progress_line(NULL);
	if (!status) {
		count_verdicts(tree);
		text_print(tree, "figures");
		const bool well = !json_integer_value(json_object_get(tree, "news"));
		status = plot_write(o->plot, tree, "figures_plot");
		status = status ? status : outputs_write(json_incref(tree), NULL);
		if (!status && !well && !o->profile)
			status = EXIT_BROKEN;
	}
	json_decref(tree);
	return status;
}

int figures_main(int argc, char **argv)
{
	struct request o = {0};
	struct input_error error;
	struct figures all;
	int status = options_read(&options, &o, argc, argv);
	if (status >= 0)
		return status;
	int rc = figures_read(&all, NULL, &error);
	if (rc)
		return fail(EXIT_INTERNAL, "figures.txt:%u: %s", error.line, error.message);
	status = check_names(&all, argv + optind, argc - optind);
	for (unsigned i = 0; i < all.figures && !status && o.list; i++)
		if (is_asked(&all.figure[i], argv + optind, argc - optind))
			printf("%-5s %s [%s]\n", all.figure[i].id, all.figure[i].says,
			       all.figure[i].source);
	if (!status && !o.list)
		status = run_all(&o, &all, argv + optind, argc - optind);
	figures_free(&all);
	return status;
}
