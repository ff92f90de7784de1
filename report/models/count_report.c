/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operation of a store costs (checker/models/count.c): a table, a column for each figure,
 * and JSON. docs/count.md says what each figure is.
 */
#include "report/models/count_report.h"
#include <string.h>
#include "report/report.h"
#include "report/text.h"
#include "core/text/text.h"

static const char *const side_names[COUNT_SIDES] = {
	[COUNT_CLIENT] = "client", [COUNT_SERVER] = "server"};

/* --- the table --- */

/* Columns that are one figure of the foreground and one of the background. */
static const struct column {
	const char *head[2];
	size_t offset; /* in struct count_figures */
	const char *json;
} columns[] = {
	{{"by the", "NIC"}, offsetof(struct count_figures, nic_bytes), "nic_bytes"},
	{{"by the", "CPU"}, offsetof(struct count_figures, cpu_bytes), "cpu_bytes"},
	{{"lines", "flushed"}, offsetof(struct count_figures, flushed), "lines_flushed"},
	{{"", "fences"}, offsetof(struct count_figures, fences), "fences"},
	{{"round", "trips"}, offsetof(struct count_figures, round_trips), "round_trips"},
	{{"server", "CPU"}, offsetof(struct count_figures, handled), "handled_by_server"},
	{{"", "packets"}, offsetof(struct count_figures, packets), "packets"},
	{{"bytes on", "the wire"}, offsetof(struct count_figures, wire_bytes), "wire_bytes"},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* The columns that are one figure stand after the bytes by NIC and by CPU. */
enum { BYTES = 2, SINGLE = 4, CHANGED = BYTES + 2, WIDE = COLUMNS + SINGLE };

static uint64_t figure(const struct count_op *op, enum count_part part, const struct column *column)
{
	uint64_t value;
	memcpy(&value, (const char *)&op->part[part] + column->offset, sizeof(value));
	return value;
}

void count_put_figure(char cell[COUNT_CELL], uint64_t fore, uint64_t back)
{
	if (back)
		snprintf(cell, COUNT_CELL, "%lu+%lu", (unsigned long)fore, (unsigned long)back);
	else
		snprintf(cell, COUNT_CELL, "%lu", (unsigned long)fore);
}

static uint64_t bytes_written(const struct count_op *op)
{
	uint64_t n = 0;
	for (unsigned p = 0; p < COUNT_PARTS; p++)
		n += op->part[p].nic_bytes + op->part[p].cpu_bytes;
	return n;
}

/* One line of the table; `row` NULL: the two lines of its head, `line` 0 and 1. */
static void fill(char cell[WIDE][COUNT_CELL], const struct count *count,
		 const struct count_row *row, unsigned line)
{
	static const char *const single[SINGLE][2] = {
		{"", "PM bytes"}, {"paper", "layout"}, {"bytes", "changed"}, {"lines", "written"}};
	for (unsigned i = 0, at = 0; i < COLUMNS; i++, at++) {
		if (i == BYTES)
			at += SINGLE;
		if (row)
			count_put_figure(cell[at], figure(&row->op, COUNT_FOREGROUND, &columns[i]),
					 figure(&row->op, COUNT_BACKGROUND, &columns[i]));
		else
			snprintf(cell[at], COUNT_CELL, "%s", columns[i].head[line]);
	}
	for (unsigned i = 0; i < SINGLE && !row; i++)
		snprintf(cell[BYTES + i], COUNT_CELL, "%s", single[i][line]);
	if (row) {
		count_put_figure(cell[BYTES], bytes_written(&row->op), 0);
		snprintf(cell[BYTES + 1], COUNT_CELL, "%.10g", row->op.paper);
		count_put_figure(cell[BYTES + 2], row->op.changed, 0);
		count_put_figure(cell[BYTES + 3], row->op.lines, 0);
	}
	if (!count->paper)
		cell[BYTES + 1][0] = '\0';
}

static void widen(unsigned width[WIDE], char cell[WIDE][COUNT_CELL])
{
	for (unsigned i = 0; i < WIDE; i++)
		width[i] = strlen(cell[i]) > width[i] ? (unsigned)strlen(cell[i]) : width[i];
}

static void print_cells(const unsigned width[WIDE], char cell[WIDE][COUNT_CELL])
{
	for (unsigned i = 0; i < WIDE; i++)
		if (width[i])
			printf("  %*s", (int)width[i], cell[i]);
}

/* "WRITE_WITH_IMM, server SEND, WRITE", in that order. */
static void print_messages(const struct count_figures *f, const char *before)
{
	unsigned n = 0, alike;
	for (unsigned i = 0; i < COUNT_SIDES * OPERATIONS; i++)
		n += (unsigned)f->message[i / OPERATIONS][i % OPERATIONS];
	for (unsigned i = 0; i < n && i < COUNT_REQUESTS; i += alike) {
		for (alike = 1; i + alike < n && i + alike < COUNT_REQUESTS; alike++)
			if (memcmp(&f->request[i], &f->request[i + alike], sizeof(f->request[i])))
				break;
		printf("%s%s", i ? ", " : before,
		       f->request[i].side == COUNT_SERVER ? "server " : "");
		if (alike > 1)
			printf("%u ", alike);
		fputs(operations[f->request[i].code].name, stdout);
	}
	if (n > COUNT_REQUESTS)
		fputs(", ...", stdout);
}

/* Which columns differ among the operations of a row, and how far. */
static void print_others(const struct count *count, const struct count_row *row)
{
	char cell[WIDE][COUNT_CELL], head[2][WIDE][COUNT_CELL];
	bool first = true;
	printf("  %u %s: %u of %u like this; among all: ", count->vlen, count_kind_names[row->kind],
	       row->times, row->of);
	for (unsigned line = 0; line < 2; line++)
		fill(head[line], count, NULL, line);
	for (unsigned at = 0; at < WIDE; at++) {
		char other[COUNT_REPEATS][COUNT_CELL];
		unsigned others = 0;
		for (unsigned i = 0; i < row->of && at != CHANGED; i++) {
			struct count_row one = {.op = row->all[i]};
			unsigned known = 0;
			fill(cell, count, &one, 0);
			while (known < others && strcmp(other[known], cell[at]))
				known++;
			if (known == others)
				strcpy(other[others++], cell[at]);
		}
		if (others < 2)
			continue;
		printf("%s%s%s%s ", first ? "" : ", ", head[0][at], head[0][at][0] ? " " : "",
		       head[1][at]);
		for (unsigned i = 0; i < others; i++)
			printf("%s%s", i ? " or " : "", other[i]);
		first = false;
	}
	putchar('\n');
}

static void print_rows(const struct count_report *k, const struct counted *one)
{
	unsigned width[WIDE] = {0};
	char cell[WIDE][COUNT_CELL];
	for (unsigned line = 0; line < 2; line++) {
		fill(cell, &one->count[0], NULL, line);
		widen(width, cell);
	}
	for (unsigned v = 0; v < k->values; v++) {
		for (unsigned r = 0; r < one->count[v].rows; r++) {
			fill(cell, &one->count[v], &one->count[v].row[r], 0);
			widen(width, cell);
		}
	}
	for (unsigned line = 0; line < 2; line++) {
		fill(cell, &one->count[0], NULL, line);
		printf("  %5s %-13s", line ? "value" : "", line ? "operation" : "");
		print_cells(width, cell);
		puts(line ? "  messages" : "");
	}
	for (unsigned v = 0; v < k->values; v++) {
		for (unsigned r = 0; r < one->count[v].rows; r++) {
			const struct count_row *row = &one->count[v].row[r];
			fill(cell, &one->count[v], row, 0);
			printf("  %5u %-13s", one->count[v].vlen, count_kind_names[row->kind]);
			print_cells(width, cell);
			print_messages(&row->op.part[COUNT_FOREGROUND], "  ");
			print_messages(&row->op.part[COUNT_BACKGROUND], " + ");
			putchar('\n');
		}
	}
}

/* --- what is done without need --- */

/* All values together: a place is one line. */
static unsigned merge_wastes(const struct count_report *k, const struct counted *one,
			     struct waste_row all[WASTE_ROWS])
{
	unsigned n = 0;
	for (unsigned v = 0; v < k->values; v++) {
		for (unsigned i = 0; i < one->count[v].wastes; i++) {
			const struct waste_row *row = &one->count[v].waste[i];
			unsigned at = 0;
			while (at < n && (all[at].pc != row->pc || all[at].sort != row->sort))
				at++;
			if (at == WASTE_ROWS)
				continue;
			if (at == n)
				all[n++] = (struct waste_row){.pc = row->pc, .sort = row->sort};
			all[at].kinds |= row->kinds;
			all[at].times += row->times;
			all[at].lines += row->lines;
		}
	}
	return n;
}

/* "create, update" */
static void put_kinds(char *out, size_t n, uint32_t kinds)
{
	out[0] = 0;
	for (unsigned k = 0; k < COUNT_KINDS; k++) {
		size_t len = strlen(out);
		if (kinds & TM_BIT(k))
			snprintf(out + len, n - len, "%s%s", len ? ", " : "", count_kind_names[k]);
	}
}

static void put_place(struct where *w, uintptr_t pc, char *out, size_t n)
{
	char line[200];
	const char *function = where_function(w, pc);
	where_print(w, pc, line, sizeof(line));
	snprintf(out, n, "%s%s%s", function, *function && *line ? ", " : "", line);
}

static json_t *method_json(const struct count_method *m)
{
	return json_pack("{s:s, s:i, s:s}", "name", m->name ? m->name : "", "round_trips",
			 m->name ? (int)m->round_trips : 0, "steps", m->name ? m->steps : "");
}

/* --- JSON --- */

static json_t *part_json(const struct count_op *op, enum count_part part)
{
	json_t *all = json_object(), *messages = json_object();
	for (unsigned i = 0; i < COLUMNS; i++)
		json_object_set_new(all, columns[i].json,
				    json_integer((json_int_t)figure(op, part, &columns[i])));
	for (unsigned s = 0; s < COUNT_SIDES; s++) {
		json_t *side = json_object();
		for (unsigned i = 0; i < OPERATIONS; i++)
			if (op->part[part].message[s][i])
				json_object_set_new(
					side, operations[i].name,
					json_integer((json_int_t)op->part[part].message[s][i]));
		json_object_set_new(messages, side_names[s], side);
	}
	json_object_set_new(all, "messages", messages);
	return all;
}

static json_t *row_json(const struct counted *one, const struct count *count,
			const struct count_row *row)
{
	json_t *paper = json_null(), *fields = json_object(), *by_field = json_array();
	if (count->paper)
		paper = json_real(row->op.paper);
	for (unsigned f = 0; f < count->fields; f++) {
		if (!row->op.field_bytes[f])
			continue;
		json_t *field = json_pack("{s:f, s:f}", "bytes", row->op.field_bytes[f], "paper",
					  row->op.field_paper[f]);
		json_object_set(fields, count->field[f], field);
		json_array_append_new(by_field,
				      json_pack("{s:s, s:o, s:b}", "name", count->field[f], "field",
						field, "has_paper", count->paper));
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:o, s:I, s:I, s:o, s:o, "
			 "s:o, s:{s:o}}",
			 "store", one->config->store->name, "variant", one->config->variant,
			 "config", one->config->name, "operation", count_kind_names[row->kind],
			 "key", (int)count->klen, "value", (int)count->vlen, "times",
			 (int)row->times, "of", (int)row->of, "pm_bytes",
			 (json_int_t)bytes_written(&row->op), "paper_bytes", paper, "bytes_changed",
			 (json_int_t)row->op.changed, "lines_written", (json_int_t)row->op.lines,
			 "fields", fields, "foreground", part_json(&row->op, COUNT_FOREGROUND),
			 "background", part_json(&row->op, COUNT_BACKGROUND), "shown", "by_field",
			 by_field);
}

static void add_wastes(json_t *list, const struct count_report *k, const struct counted *one)
{
	struct waste_row all[WASTE_ROWS];
	unsigned n = merge_wastes(k, one, all);
	for (unsigned i = 0; i < n; i++) {
		char kinds[100], place[300];
		put_kinds(kinds, sizeof(kinds), all[i].kinds);
		put_place(k->where, all[i].pc, place, sizeof(place));
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "store",
					one->config->store->name, "variant", one->config->variant,
					"config", one->config->name, "where", place, "kind",
					waste_words[all[i].sort], "operations", kinds, "times",
					(int)all[i].times, "lines", (int)all[i].lines));
	}
}

void count_report_config(const struct count_report *k, const struct counted *one)
{
	json_t *rows = json_array(), *wastes = json_array();
	char name[2 * CAMPAIGN_NAME];
	config_name(one->config, name, sizeof(name));
	for (unsigned v = 0; v < k->values; v++)
		for (unsigned r = 0; r < one->count[v].rows; r++)
			json_array_append_new(rows,
					      row_json(one, &one->count[v], &one->count[v].row[r]));
	add_wastes(wastes, k, one);
	json_t *view = json_pack("{s:s, s:i, s:b, s:b, s:O, s:O}", "name", name, "key", (int)k->key,
				 "fields_asked", k->fields, "paper", one->count[0].paper,
				 "operations", rows, "without_need", wastes);
	text_print(view, "count_head");
	print_rows(k, one);
	for (unsigned v = 0; v < k->values; v++) {
		if (one->count[v].why[0])
			printf("  values of %u byte%s: %s\n", one->count[v].vlen,
			       plural(one->count[v].vlen), one->count[v].why);
		for (unsigned r = 0; r < one->count[v].rows; r++)
			if (one->count[v].row[r].times < one->count[v].row[r].of)
				print_others(&one->count[v], &one->count[v].row[r]);
	}
	text_print(view, "count_rest");
	json_decref(view);
	json_array_extend(json_object_get(k->tree, "operations"), rows);
	json_array_extend(json_object_get(k->tree, "without_need"), wastes);
	json_decref(rows);
	json_decref(wastes);
}

/* --- advice --- */

/* What would be saved of each call without need. */
static json_t *wastes_json(const struct count_report *k, const struct counted *one)
{
	struct waste_row all[WASTE_ROWS];
	const unsigned n = merge_wastes(k, one, all);
	json_t *list = json_array();
	for (unsigned i = 0; i < n; i++) {
		char place[300];
		put_place(k->where, all[i].pc, place, sizeof(place));
		json_array_append_new(list, json_pack("{s:s, s:s, s:f}", "kind",
						      waste_words[all[i].sort], "where", place,
						      "ns", count_waste_ns(&all[i], &k->costs)));
	}
	return list;
}

void count_report_advice(const struct count_report *k, const struct counted *one,
			 const struct count_advice *a)
{
	static const enum count_kind kinds[] = {COUNT_CREATE, COUNT_UPDATE, COUNT_DELETE};
	const struct count *count = &one->count[0]; /* of the smallest values */
	const double trip_ns = count_round_trip_ns(&k->costs);
	json_t *takes = json_array();
	for (unsigned i = 0; i < 3 * count->rows; i++) {
		const struct count_row *row = &count->row[i % count->rows];
		const uint64_t trips = row->op.part[COUNT_FOREGROUND].round_trips;
		if (row->kind != kinds[i / count->rows])
			continue;
		const uint64_t saved = a->two.name && trips > a->two.round_trips
					       ? trips - a->two.round_trips
					       : 0;
		json_array_append_new(takes,
				      json_pack("{s:s, s:I, s:I, s:f}", "operation",
						count_kind_names[row->kind], "round_trips",
						(json_int_t)trips, "saved", (json_int_t)saved, "ns",
						trip_ns * (double)saved));
	}
	json_t *all = json_pack("{s:o, s:o, s:o, s:o, s:s, s:b, s:s}", "one", method_json(&a->one),
				"two", method_json(&a->two), "takes", takes, "vain",
				wastes_json(k, one), "profile", k->profile, "durable",
				!!(one->config->store->promises & TM_BIT(TM_DUR)), "hardware",
				a->hardware);
	text_print(all, "count_advice");
	json_decref(all);
}
