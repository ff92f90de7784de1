/* SPDX-License-Identifier: BSD-3-Clause */
/* See guarantees.h. */
#include "report/models/guarantees.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/known.h"
#include "checker/judge/names.h"
#include "checker/judge/surprise.h"
#include "report/models/count_report.h"
#include "report/report.h"
#include "scenarios/stores.h"

#define DOUBLING     16 /* columns from one time to twice as much */
#define WIDTH	     (6 * DOUBLING)
#define PICTURE_ROWS 6 /* fewer are seen in the table */

/* --- contracts --- */

enum known_sort { HOLDS, BROKEN, MAY_BREAK, PROMISED, NOT_KNOWN, SORTS };
static const struct sort {
	const char *verdict;
	char mark, promised; /* of what the store does not promise, and does */
	bool kept;
} sorts[SORTS] = {[HOLDS] = {"holds", '.', '.', true},
		  [BROKEN] = {"broken", 'x', 'X', false},
		  [MAY_BREAK] = {"may break", '?', '?', false},
		  [PROMISED] = {"promised", 'p', 'p', true},
		  [NOT_KNOWN] = {"not known", '-', '-', false}};

/* What the campaign came to there; NULL: it was not tried, or could not be told. */
static const char *measured(const struct surprise_cell *at, const json_t *matrix)
{
	size_t i;
	const json_t *cell;
	json_array_foreach(
		json_object_get(matrix, "cells"), i,
		cell) if (!strcmp(tree_text(cell, "store"), at->store->name) &&
			  !strcmp(tree_text(cell, "variant"), at->variant) &&
			  !strcmp(tree_text(cell, "config"), at->config) &&
			  !strcmp(tree_text(cell, "contract"),
				  contract_name(at->contract))) return tree_text(cell, "verdict");
	return NULL;
}

/* Do recorded campaigns say how often it breaks? */
static bool recorded(const struct surprise_cell *at, bool *broken)
{
	unsigned first;
	const unsigned rows = known_store_rows(at->store, &first);
	bool any = false;
	*broken = false;
	for (unsigned row = first; row < first + rows; row++) {
		uint32_t runs;
		if (!known_share(at->store, at->variant, at->config, row, &runs))
			continue;
		any = true;
		*broken |= runs && known_contract(row) == at->contract;
	}
	return any;
}

/* A campaign that fails if a promise is broken there is one of the usual ones. */
static bool is_usual(const struct surprise_cell *at)
{
	return !store_path(at->store) && !strcmp(at->variant, "default") &&
	       (is_default_config(at->config) || store_has_column(at->store, at->config));
}

static enum known_sort sort_of(const struct surprise_cell *at, const json_t *matrix)
{
	const struct expectation *e = surprise_expected(at);
	const char *verdict = measured(at, matrix);
	bool broken;
	for (unsigned s = 0; verdict && s < SORTS; s++)
		if (!strcmp(verdict, sorts[s].verdict))
			return s;
	if (e)
		return e->open ? MAY_BREAK : e->broken ? BROKEN : HOLDS;
	if (recorded(at, &broken))
		return broken ? BROKEN : HOLDS;
	/* A variant may be there to show what a promise needs. */
	if (strcmp(at->variant, "default") != 0 || !(at->store->promises & TM_BIT(at->contract)))
		return NOT_KNOWN;
	return is_usual(at) ? HOLDS : PROMISED;
}

json_t *guarantees_row(const struct campaign_config *cfg, const json_t *matrix)
{
	char name[REPORT_NAME];
	json_t *list = json_array();
	unsigned kept = 0;
	group_name(cfg, name, sizeof(name));
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		/* A variant that is a shape is a column of the usual campaigns. */
		const bool column = !strcmp(cfg->name, "default") &&
				    store_has_column(cfg->store, cfg->variant);
		const struct surprise_cell at = {.store = cfg->store,
						 .variant = column ? "default" : cfg->variant,
						 .config = column ? cfg->variant : cfg->name,
						 .contract = k};
		const bool promised = cfg->store->promises & TM_BIT(k);
		if (!(store_judged_by(cfg->store, false) & TM_BIT(k)))
			continue;
		const struct sort *sort = &sorts[sort_of(&at, matrix)];
		const char mark[] = {promised ? sort->promised : sort->mark, '\0'};
		kept |= sort->kept ? TM_BIT(k) : 0;
		json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:s}", "contract",
						      contract_name(k), "promised", (int)promised,
						      "verdict", sort->verdict, "mark", mark));
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:o}", "name", name, "store", cfg->store->name,
			 "variant", cfg->variant, "config", cfg->name, "kept_set", (int)kept,
			 "contracts", list);
}

/* --- costs --- */

static const struct count_figures *counted(const struct count *count, enum count_kind kind)
{
	static const struct count_figures none[COUNT_PARTS];
	for (unsigned r = 0; r < count->rows; r++)
		if (count->row[r].kind == kind)
			return count->row[r].op.part;
	return none;
}

static json_t *both(uint64_t foreground, uint64_t background)
{
	char text[COUNT_CELL];
	count_put_figure(text, foreground, background);
	return json_string(text);
}

void guarantees_cost(json_t *row, const struct times *t, const struct count *count)
{
	const struct count_figures *put = counted(count, COUNT_UPDATE),
				   *get = counted(count, COUNT_GET);
	json_t *costs = json_pack(
		"{s:f, s:f, s:f, s:I, s:I, s:o, s:o}", "put_us", t->op[TIME_PUT].median / 1000,
		"get_us", t->op[TIME_GET].median / 1000, "server_us",
		t->server > 0 && t->server < 1e12 ? 1e6 / t->server : 0, "put_trips",
		(json_int_t)put[0].round_trips, "get_trips", (json_int_t)get[0].round_trips,
		"lines_flushed", both(put[0].flushed, put[1].flushed), "fences",
		both(put[0].fences, put[1].fences));
	json_object_update(row, costs);
	json_decref(costs);
}

/* --- the table --- */

static double cost(const json_t *row, const char *name)
{
	return json_number_value(json_object_get(row, name));
}

static unsigned kept_by(const json_t *row)
{
	return (unsigned)json_integer_value(json_object_get(row, "kept_set"));
}

static bool is_measured(const json_t *row)
{
	return json_object_get(row, "put_us");
}

static int by_cost(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	const double left = cost(x, "put_us"), right = cost(y, "put_us");
	if (is_measured(x) != is_measured(y))
		return is_measured(y) - is_measured(x);
	if (left != right)
		return left > right ? 1 : -1;
	return strcmp(tree_text(x, "name"), tree_text(y, "name"));
}

static bool sort_rows(json_t *rows)
{
	const size_t n = json_array_size(rows);
	json_t **row = calloc(n + 1, sizeof(json_t *));
	for (size_t i = 0; row && i < n; i++)
		row[i] = json_incref(json_array_get(rows, i));
	if (row)
		qsort(row, n, sizeof(json_t *), by_cost);
	for (size_t i = 0; row && i < n; i++)
		json_array_set_new(rows, i, row[i]);
	free(row);
	return row;
}

/* Does it keep all that the other one keeps, for no more, with values as long? */
static bool beats(const json_t *a, const json_t *b)
{
	if (!is_measured(a) || cost(a, "value") != cost(b, "value"))
		return false;
	const double put = cost(b, "put_us") - cost(a, "put_us"),
		     get = cost(b, "get_us") - cost(a, "get_us");
	return !(kept_by(b) & ~kept_by(a)) && put >= 0 && get >= 0 &&
	       (put > 0 || get > 0 || kept_by(a) != kept_by(b));
}

/* Of those with values as long as was asked for. */
static void mark_best(json_t *rows, double value)
{
	size_t i, j;
	json_t *a, *b;
	json_array_foreach(rows, i, b)
	{
		bool best = is_measured(b) && cost(b, "value") == value;
		json_array_foreach(rows, j, a) best &= !is_measured(a) || !beats(a, b);
		json_object_set_new(b, "best", json_boolean(best));
	}
}

/* The marks of a row below the contracts' names; and these. *all: by which each row is judged. */
static void add_columns(json_t *all, json_t *rows, unsigned *every)
{
	char head[8 * TM_CONTRACTS] = "", marks[8 * TM_CONTRACTS];
	unsigned any = 0;
	size_t i, k;
	json_t *row, *cell;
	*every = UINT32_MAX;
	json_array_foreach(rows, i, row)
	{
		unsigned judged = 0;
		json_array_foreach(json_object_get(row, "contracts"), k, cell)
			judged |= TM_BIT(contract_parse(tree_text(cell, "contract")));
		any |= judged;
		*every &= judged;
	}
	contract_list(any, " ", head, sizeof(head));
	json_array_foreach(rows, i, row)
	{
		size_t end = 0;
		memset(marks, ' ', sizeof(marks));
		json_array_foreach(json_object_get(row, "contracts"), k, cell)
		{
			const char *name = tree_text(cell, "contract"), *at = head;
			while (strncmp(at, name, strlen(name)) != 0 ||
			       (at[strlen(name)] && at[strlen(name)] != ' '))
				at = strchr(at, ' ') + 1;
			const size_t column = (size_t)(at - head) + (strlen(name) - 1) / 2;
			marks[column] = *tree_text(cell, "mark");
			end = column + 1 > end ? column + 1 : end;
		}
		marks[end] = '\0';
		json_object_set_new(row, "shown", json_pack("{s:s}", "marks", marks));
	}
	json_object_set_new(all, "shown", json_pack("{s:s}", "contracts", head));
}

/* --- the picture --- */

/* The column of a time: doubling by doubling. */
static unsigned place(double us, double least)
{
	unsigned at = 0;
	for (; us >= 2 * least && at < WIDTH - DOUBLING; us /= 2)
		at += DOUBLING;
	at += (unsigned)((us / least - 1) * DOUBLING);
	return at < WIDTH ? at : WIDTH - 1;
}

static void add_ticks(json_t *lines, double least)
{
	char axis[WIDTH + 32];
	size_t n = 0;
	for (unsigned at = 0; at < WIDTH; at += DOUBLING, least *= 2)
		n += (size_t)snprintf(axis + n, sizeof(axis) - n, "%-*g", DOUBLING, least);
	snprintf(axis + n, sizeof(axis) - n, "us");
	json_array_append_new(lines, json_pack("{s:s, s:s}", "kept", "", "line", axis));
}

static json_t *picture(json_t *rows, unsigned every)
{
	unsigned fewest = (unsigned)__builtin_popcount(every), kept = fewest + 1;
	double least = 1;
	json_t *lines = json_array(), *row;
	size_t i;
	while (json_array_size(rows) && cost(json_array_get(rows, 0), "put_us") >= 2 * least)
		least *= 2;
	json_array_foreach(rows, i, row) if (is_measured(row) && cost(row, "kept") < fewest)
		fewest = (unsigned)cost(row, "kept");
	while (kept-- > fewest) {
		char line[WIDTH + 1], left[16];
		memset(line, ' ', WIDTH);
		json_array_foreach(rows, i, row)
		{
			unsigned at = place(cost(row, "put_us"), least);
			const char *letter = tree_text(json_object_get(row, "shown"), "letter");
			if ((unsigned)cost(row, "kept") != kept || !*letter)
				continue;
			while (at < WIDTH - 1 && line[at] != ' ')
				at++;
			line[at] = *letter;
		}
		unsigned end = WIDTH;
		while (end && line[end - 1] == ' ')
			end--;
		line[end] = '\0';
		snprintf(left, sizeof(left), "%u", kept);
		json_array_append_new(lines, json_pack("{s:s, s:s}", "kept", left, "line", line));
	}
	add_ticks(lines, least);
	return lines;
}

void guarantees_end(json_t *all)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	json_t *rows = json_object_get(all, "rows"), *row;
	unsigned every;
	size_t i;
	if (!sort_rows(rows))
		return;
	/* Knobs that are named are all rows', but of stores that have them set already. */
	json_object_set_new(all, "config", json_string("default"));
	json_array_foreach(rows, i, row) if (!strcmp(tree_text(all, "config"), "default"))
		json_object_set(all, "config", json_object_get(row, "config"));
	mark_best(rows, cost(all, "value"));
	add_columns(all, rows, &every);
	json_array_foreach(rows, i, row)
	{
		char name[REPORT_NAME];
		const int value = (int)cost(row, "value");
		snprintf(name, sizeof(name), value == (int)cost(all, "value") ? "%s" : "%s, %d B",
			 tree_text(row, "name"), value);
		json_object_set_new(row, "name", json_string(name));
		const char letter[] = {
			i < sizeof(letters) - 1 && is_measured(row) ? letters[i] : '\0', '\0'};
		const int kept = __builtin_popcount(kept_by(row) & every);
		json_object_set_new(json_object_get(row, "shown"), "letter", json_string(letter));
		json_object_set_new(row, "kept", json_integer(kept));
		json_object_del(row, "kept_set");
	}
	json_object_set_new(all, "kept_of", json_integer(__builtin_popcount(every)));
	if (json_array_size(rows) >= PICTURE_ROWS)
		json_object_set_new(json_object_get(all, "shown"), "picture", picture(rows, every));
}
