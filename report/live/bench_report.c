/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What came of loads on live servers. One server under one load is printed in detail; several
 * servers, workloads or numbers of clients make a table, with the round trips that `tidemark count`
 * says beside it.
 */
#include "report/live/bench_report.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "core/text/error_name.h"
#include "core/text/text.h"
#include "report/report.h"

static const char *const kind_names[LOAD_KINDS] = {"PUT", "GET", "DELETE"};

static double micros(const struct latency *l, unsigned per_mille)
{
	return (double)latency_quantile(l, per_mille) * 1e-3;
}

static double per_second(const struct load_result *r)
{
	return r->seconds > 0 ? (double)r->ops / r->seconds : 0;
}

static bool went_wrong(const struct load_result *r)
{
	return r->foreign || r->hung || r->gave_up;
}

static void print_errors(const struct load_result *r)
{
	for (unsigned i = 0; i < LOAD_ERRORS && r->error[i].times; i++)
		printf("  %" PRIu64 " time%s: %s\n", r->error[i].times, plural(r->error[i].times),
		       strerror(-r->error[i].error));
	if (r->not_found)
		printf("  %" PRIu64 " time%s: not found\n", r->not_found, plural(r->not_found));
	if (r->reconnects)
		printf("  %" PRIu64 " session%s opened again\n", r->reconnects,
		       r->reconnects == 1 ? " was" : "s were");
	if (r->foreign)
		printf("  %" PRIu64 " GETs returned bytes that no PUT of the key wrote\n",
		       r->foreign);
	if (r->full)
		puts("  the recording was full: the load ended early");
	if (r->gave_up)
		printf("  %u client%s lost the server\n", r->gave_up, plural(r->gave_up));
	if (r->hung)
		puts("  an operation hung");
}

static void print_cell(const struct live_bench *b, const struct bench_cell *cell)
{
	const struct load_result *r = &cell->result;
	printf("%s %s, workload %c, %u client%s, %u key%s, values of %u byte%s: %" PRIu64
	       " operation%s in %.1f s, %.0f/s\n",
	       cell->server->what.store->name, cell->server->what.variant, cell->workload,
	       cell->clients, plural(cell->clients), live_bench_keys(b, cell->server),
	       plural(live_bench_keys(b, cell->server)), live_bench_value(b, cell->server),
	       plural(live_bench_value(b, cell->server)), r->ops, plural(r->ops), r->seconds,
	       per_second(r));
	printf("  %-7s %10s %8s %9s %9s %9s %9s %9s %12s\n", "us", "operations", "failed", "p50",
	       "p90", "p99", "p99.9", "max", "round trips");
	for (unsigned k = 0; k < LOAD_KINDS; k++) {
		const struct latency *l = &r->latency[k];
		if (!l->times && !r->failed[k])
			continue;
		printf("  %-7s %10" PRIu64 " %8" PRIu64 " %9.1f %9.1f %9.1f %9.1f %9.1f",
		       kind_names[k], l->times, r->failed[k], micros(l, 500), micros(l, 900),
		       micros(l, 990), micros(l, 999), (double)l->max_ns * 1e-3);
		if (cell->server->trips[k] >= 0)
			printf(" %12.0f", cell->server->trips[k]);
		putchar('\n');
	}
	print_errors(r);
}

static void print_quantiles(const struct latency *l)
{
	if (l->times)
		printf(" %7.0f %8.0f", micros(l, 500), micros(l, 990));
	else
		printf(" %7s %8s", "-", "-");
}

static void print_row(const struct live_bench *b, const struct bench_cell *cell)
{
	double trips = live_bench_trips(cell->server, cell->workload, b->load.delete_percent);
	printf("%-8c %7u  %-10s %8.0f ", cell->workload, cell->clients,
	       cell->server->what.store->name, per_second(&cell->result));
	print_quantiles(&cell->result.latency[HISTORY_GET]);
	print_quantiles(&cell->result.latency[HISTORY_PUT]);
	if (trips >= 0)
		printf(" %6.2f\n", trips);
	else
		printf(" %6s\n", "-");
}

/* What ran at about the same time stands together: all servers under one load. */
static void print_table(const struct live_bench *b)
{
	printf("%-8s %7s  %-10s %8s  %16s %16s %6s\n", "", "", "", "", "GET us   ", "PUT us   ",
	       "round");
	printf("%-8s %7s  %-10s %8s  %7s %8s %7s %8s %6s\n", "workload", "clients", "store",
	       "ops/s", "p50", "p99", "p50", "p99", "trips");
	for (unsigned w = 0; w < b->workloads; w++)
		for (unsigned c = 0; c < b->counts; c++)
			for (unsigned s = 0; s < b->servers; s++)
				print_row(b, live_bench_cell(b, w, c, s));
	for (unsigned i = 0; i < b->cells; i++) {
		const struct load_result *r = &b->cell[i].result;
		if (!r->error[0].times && !r->reconnects && !went_wrong(r))
			continue;
		printf("%s, workload %c, %u client%s:\n", b->cell[i].server->what.store->name,
		       b->cell[i].workload, b->cell[i].clients, plural(b->cell[i].clients));
		print_errors(r);
	}
}

static void print_trips(const struct live_bench *b)
{
	puts("\nround trips of an operation, as tidemark count has them:");
	for (unsigned s = 0; s < b->servers; s++) {
		const double *t = b->server[s].trips;
		if (t[HISTORY_PUT] >= 0 && t[HISTORY_GET] >= 0)
			printf("  %-10s PUT %.0f, GET %.0f\n", b->server[s].what.store->name,
			       t[HISTORY_PUT], t[HISTORY_GET]);
	}
}

void live_bench_print(const struct live_bench *b)
{
	if (b->cells == 1) {
		print_cell(b, &b->cell[0]);
		return;
	}
	print_table(b);
	print_trips(b);
}

/* --- JSON --- */

static json_t *kind_json(const struct bench_cell *cell, unsigned k)
{
	const struct latency *l = &cell->result.latency[k];
	double trips = cell->server->trips[k];
	return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:o}", "operations",
			 (json_int_t)l->times, "failed", (json_int_t)cell->result.failed[k],
			 "p50_us", micros(l, 500), "p90_us", micros(l, 900), "p99_us",
			 micros(l, 990), "p999_us", micros(l, 999), "max_us",
			 (double)l->max_ns * 1e-3, "round_trips",
			 trips < 0 ? json_null() : json_real(trips));
}

static json_t *cell_json(const struct live_bench *b, const struct bench_cell *cell)
{
	const struct load_result *r = &cell->result;
	const char workload[2] = {cell->workload};
	json_t *errors = json_object();
	for (unsigned i = 0; i < LOAD_ERRORS && r->error[i].times; i++)
		json_object_set_new(errors, error_name(r->error[i].error).text,
				    json_integer((json_int_t)r->error[i].times));
	json_t *all = json_pack(
		"{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:I, s:f, s:I, s:I, s:I, s:i, s:b, s:b, "
		"s:o}",
		"server", cell->server->address, "store", cell->server->what.store->name, "variant",
		cell->server->what.variant, "workload", workload, "clients", (int)cell->clients,
		"keys", (int)live_bench_keys(b, cell->server), "value",
		(int)live_bench_value(b, cell->server), "seconds", r->seconds, "operations",
		(json_int_t)r->ops, "per_second", per_second(r), "not_found",
		(json_int_t)r->not_found, "foreign", (json_int_t)r->foreign, "reconnects",
		(json_int_t)r->reconnects, "gave_up", (int)r->gave_up, "hung", (int)r->hung, "full",
		(int)r->full, "errors", errors);
	json_object_set_new(all, "put", kind_json(cell, HISTORY_PUT));
	json_object_set_new(all, "get", kind_json(cell, HISTORY_GET));
	json_object_set_new(all, "delete", kind_json(cell, HISTORY_DEL));
	return all;
}

int live_bench_json(const struct live_bench *b, const char *path)
{
	json_t *cells = json_array();
	for (unsigned i = 0; i < b->cells; i++)
		json_array_append_new(cells, cell_json(b, &b->cell[i]));
	json_t *all = json_pack("{s:o}", "loads", cells);
	int error = all ? json_save(all, NULL, path) : -ENOMEM;
	json_decref(all);
	return error;
}
