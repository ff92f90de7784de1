/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark times: how long a store's operations take, and where the time goes. docs/figures.md. */
#include "checker/models/times.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/arguments.h"
#include "cli/cli.h"
#include "report/models/guarantees.h"
#include "report/text.h"
#include "scenarios/stores.h"

#define BAR 30 /* columns of all of it */

struct request {
	struct arguments a; /* first: rows of arguments.h name its fields */
	const char *profile, *mix, *matrix, *plot;
	bool contracts;
	struct ycsb y; /* .ops: of each client */
};

#define REQUEST(member) OPTION_FIELD(struct request, member)

static bool take_mix(const struct option_row *row, void *into, const char *text)
{
	struct request *o = into;
	o->mix = text;
	return option_mix(row, &o->y.read_percent, text);
}

static const struct option_row rows[] = {
	{"profile", "FILE",
	 "what things cost: a file, or ef, er or rk, papers' machines (=; docs/figures.md)",
	 REQUEST(profile)},
	{"workload", "X", "YCSB's a (the default), b, c, or u: updates only",
	 OPTION_CALL(take_mix)},
	{"clients", "N", "each does its next operation when one has returned; 96 at most (=)",
	 REQUEST(y.clients), 1, WORKLOAD_MAX_CLIENTS},
	{"value", "N", "bytes (=)", REQUEST(y.vlen), 1, TM_MAX_VALUE},
	{"keys", "N", "some are asked for more often (=)", REQUEST(y.keys), 1, HISTORY_KEYS},
	{"ops", "N", "operations of each client (=)", REQUEST(y.ops), 2, TIMES_MAX_OPS},
	ROW_VARIANT,
	ROW_KNOB,
	{"contracts", NULL,
	 "instead of the parts: a line for each store, with what it costs and which contracts hold "
	 "there (docs/choosing.md)",
	 REQUEST(contracts)},
	{"matrix", "FILE",
	 "with --contracts: what a campaign has found of them, as crashtest --json wrote it, in "
	 "the "
	 "place of what is recorded",
	 REQUEST(matrix)},
	{"plot", "FILE", "with --contracts: the picture, for gnuplot", REQUEST(plot)},
	ROWS_RESULTS,
	OPTION_QUIET(struct arguments, leave_off.quiet),
	OPTION_END};

static const struct options options = {
	"times", "[STORE...] [OPTION...]",
	"Runs a store in virtual time, on a machine that a profile describes, and prints how long "
	"operations take, and of what that time is made: of each cost, twice what half of it would "
	"save. Nothing goes wrong in these runs. Without a STORE: all; or those that have the "
	"variants and knobs that are named.",
	rows, "0, 2 usage or bad input, 70 internal error"};

static json_t *op_tree(unsigned kind, const struct op_times *op, const double *part)
{
	json_t *parts = json_array();
	for (unsigned p = 0; p < TIME_PARTS; p++)
		json_array_append_new(parts,
				      json_pack("{s:s, s:s, s:f, s:f}", "part", time_parts[p].name,
						"what", time_parts[p].what, "us", part[p] / 1000,
						"percent", 100 * part[p] / op->mean));
	return json_pack("{s:s, s:I, s:f, s:f, s:f, s:o}", "operation",
			 kind == TIME_GET ? "GET" : "PUT", "times", (json_int_t)op->n, "median_us",
			 op->median / 1000, "p99_us", op->p99 / 1000, "mean_us", op->mean / 1000,
			 "parts", parts);
}

/* Bars are for who reads, not for machines; and so is to leave out what takes no time. */
static void draw(json_t *all)
{
	size_t t, i, p;
	json_t *times, *op, *part;
	json_array_foreach(json_object_get(all, "times"), t, times)
	{
		json_array_foreach(json_object_get(times, "operations"), i, op)
		{
			json_t *parts = json_object_get(op, "parts"), *shown = json_array();
			json_array_foreach(parts, p, part)
			{
				const double percent = json_real_value(
					json_object_get(part, "percent"));
				char bar[BAR + 1] = "";
				const int n = (int)(percent * BAR / 100 + 0.5);
				memset(bar, '#', (size_t)(n > BAR ? BAR : n < 0 ? 0 : n));
				json_object_set_new(part, "bar", json_string(bar));
				if (percent >= 0.05 || percent <= -0.05)
					json_array_append(shown, part);
			}
			json_object_set_new(op, "parts", shown);
		}
	}
}

/* What is run: operations in all, and values that the store can hold. */
static struct ycsb workload_of(const struct request *o, const struct tm_store *store)
{
	struct ycsb y = o->y;
	y.ops *= y.clients;
	y.vlen = workload_limit_vlen(store, y.vlen);
	if (!o->a.leave_off.quiet)
		progress_line("%s", store->name);
	return y;
}

/* 0, or the status after a message. */
static int measure(const struct request *o, const struct campaign_config *config,
		   const struct profile *p, json_t *all)
{
	static double part[TIME_KINDS][TIME_PARTS];
	struct setup s = config->setup;
	struct times times;
	char why[300] = "";
	const struct ycsb y = workload_of(o, s.store);
	s.profile = *p;
	int error = times_parts(&s, &y, &times, part, why);
	if (error == -ENOMEM)
		return no_memory();
	if (error)
		return fail(EXIT_USAGE, "times: %s: %s", s.store->name, why);
	json_t *one = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:[]}", "store",
				s.store->name, "variant", s.variant, "profile", o->profile,
				"workload", o->mix, "clients", (int)y.clients, "value", (int)y.vlen,
				"keys", (int)y.keys, "per_second", times.rate, "operations");
	for (unsigned k = 0; k < TIME_KINDS; k++)
		if (times.op[k].n)
			json_array_append_new(json_object_get(one, "operations"),
					      op_tree(k, &times.op[k], part[k]));
	json_array_append_new(json_object_get(all, "times"), one);
	return 0;
}

static int measure_all(const struct request *o, const struct campaign *c, const struct profile *p)
{
	json_t *all = json_pack("{s:[]}", "times");
	int status = 0;
	for (unsigned i = 0; i < c->configs && !status; i++)
		status = measure(o, &c->config[i], p, all);
	progress_line(NULL);
	if (!status)
		status = outputs_write(json_deep_copy(all), NULL);
	if (!status) {
		draw(all);
		text_print(all, "times");
	}
	json_decref(all);
	return status;
}

/* --- with contracts --- */

/* A store that cannot be measured is told as such: the others are. 0, or the status after a
 * message. */
static int compare(const struct request *o, const struct campaign_config *config,
		   const struct profile *p, const json_t *matrix, json_t *rows)
{
	struct count *count = malloc(sizeof(*count));
	struct setup s = config->setup;
	struct times times;
	char why[300] = "";
	const struct ycsb y = workload_of(o, s.store);
	json_t *row = guarantees_row(config, matrix);
	json_object_set_new(row, "value", json_integer((json_int_t)y.vlen));
	s.profile = *p;
	int error = count && row ? times_run(&s, &y, 0, &times, why) : -ENOMEM;
	if (!error) {
		error = count_run(&config->setup, COUNT_KEY, y.vlen, count);
		snprintf(why, sizeof(why), "%s", count->why);
	}
	if (!error)
		guarantees_cost(row, &times, count);
	else if (error != -ENOMEM)
		json_object_set_new(row, "error", json_text(why));
	json_array_append_new(rows, row);
	free(count);
	return error == -ENOMEM ? no_memory() : 0;
}

static int compare_all(const struct request *o, const struct campaign *c, const struct profile *p)
{
	json_t *matrix = o->matrix ? input_json(o->matrix) : NULL;
	json_t *all = json_pack("{s:s, s:s, s:i, s:i, s:i, s:[]}", "profile", o->profile,
				"workload", o->mix, "clients", (int)o->y.clients, "value",
				(int)o->y.vlen, "keys", (int)o->y.keys, "rows");
	int status = o->matrix && !matrix ? EXIT_USAGE : 0;
	for (unsigned i = 0; i < c->configs && !status; i++)
		status = compare(o, &c->config[i], p, matrix, json_object_get(all, "rows"));
	progress_line(NULL);
	if (!status) {
		guarantees_end(all);
		status = outputs_write(json_deep_copy(all), NULL);
	}
	if (!status)
		status = plot_write(o->plot, all, "guarantees_plot");
	if (!status)
		text_print(all, "guarantees");
	json_decref(matrix);
	json_decref(all);
	return status;
}

/* A store of one's own is compared with all others, unless some of them are named, too. */
static void with_others(struct option_names *named)
{
	bool own = true;
	for (unsigned i = 0; i < named->n; i++) {
		const struct tm_store *store = store_find(named->name[i]);
		own &= store && store_path(store);
	}
	if (own)
		named->n = 0;
}

static int check(const struct request *o)
{
	if ((uint64_t)o->y.ops * o->y.clients > TIMES_MAX_OPS)
		return fail(EXIT_USAGE,
			    "times: %u operations of %u clients; expected at most %d in all",
			    o->y.ops, o->y.clients, TIMES_MAX_OPS);
	if ((o->matrix || o->plot) && !o->contracts)
		return fail(EXIT_USAGE, "--matrix and --plot: expected --contracts, too");
	note_input(o->matrix);
	const int status = plot_check(o->plot);
	return status ? status : results_check();
}

int times_main(int argc, char **argv)
{
	struct request o = {
		.a = {.one_config = true, .all_stores = true, .options = campaign_default},
		.profile = "ef",
		.mix = "a",
		.y = {.read_percent = 50,
		      .clients = 1,
		      .keys = 16,
		      .ops = 200,
		      .vlen = 256,
		      .seed = 1}};
	struct campaign c = {0};
	int status = arguments_read(&options, &o.a, argc, argv);
	if (status >= 0)
		return status;
	struct profile p;
	if (o.contracts)
		with_others(&o.a.store);
	status = arguments_configs(&o.a, &c);
	if (!status)
		status = check(&o);
	if (!status)
		status = profile_option(o.profile, &p);
	if (!status)
		status = o.contracts ? compare_all(&o, &c, &p) : measure_all(&o, &c, &p);
	campaign_free(&c);
	return status;
}
