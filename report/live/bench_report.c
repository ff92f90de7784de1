/* SPDX-License-Identifier: BSD-3-Clause */
/* What came of a load on a live server. */
#include "report/live/bench_report.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/text/error_name.h"
#include "core/text/text.h"
#include "report/report.h"
#include "scenarios/live_store.h"

static const char *const kind_names[LOAD_KINDS] = {"PUT", "GET", "DELETE"};

static double micros(const struct latency *l, unsigned per_mille)
{
	return (double)latency_quantile(l, per_mille) * 1e-3;
}

static double per_second(const struct load_result *r)
{
	return r->seconds > 0 ? (double)r->ops / r->seconds : 0;
}

void bench_print(const struct live_store *on, const struct load_options *o,
		 const struct load_result *r)
{
	printf("%s %s, %u client%s, %u key%s, values of %u byte%s: %" PRIu64
	       " operation%s in %.1f s, %.0f/s\n",
	       on->store->name, on->variant, o->clients, plural(o->clients), o->keys,
	       plural(o->keys), o->vlen, plural(o->vlen), r->ops, plural(r->ops), r->seconds,
	       per_second(r));
	printf("  %-7s %10s %8s %9s %9s %9s\n", "us", "operations", "failed", "p50", "p99", "max");
	for (unsigned k = 0; k < LOAD_KINDS; k++) {
		const struct latency *l = &r->latency[k];
		if (l->times || r->failed[k])
			printf("  %-7s %10" PRIu64 " %8" PRIu64 " %9.1f %9.1f %9.1f\n",
			       kind_names[k], l->times, r->failed[k], micros(l, 500),
			       micros(l, 990), (double)l->max_ns * 1e-3);
	}
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

static json_t *kind_json(const struct load_result *r, unsigned k)
{
	const struct latency *l = &r->latency[k];
	return json_pack("{s:I, s:I, s:f, s:f, s:f}", "operations", (json_int_t)l->times, "failed",
			 (json_int_t)r->failed[k], "p50_us", micros(l, 500), "p99_us",
			 micros(l, 990), "max_us", (double)l->max_ns * 1e-3);
}

json_t *bench_tree(const struct live_store *on, const struct load_options *o,
		   const struct load_result *r)
{
	json_t *errors = json_object();
	for (unsigned i = 0; i < LOAD_ERRORS && r->error[i].times; i++)
		json_object_set_new(errors, error_name(r->error[i].error).text,
				    json_integer((json_int_t)r->error[i].times));
	return json_pack(
		"{s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:I, s:f, s:I, s:I, s:I, s:i, s:b, s:b, "
		"s:o, s:o, s:o, s:o}",
		"server", o->server, "store", on->store->name, "variant", on->variant, "clients",
		(int)o->clients, "keys", (int)o->keys, "value", (int)o->vlen, "seconds", r->seconds,
		"operations", (json_int_t)r->ops, "per_second", per_second(r), "not_found",
		(json_int_t)r->not_found, "foreign", (json_int_t)r->foreign, "reconnects",
		(json_int_t)r->reconnects, "gave_up", (int)r->gave_up, "hung", (int)r->hung, "full",
		(int)r->full, "errors", errors, "put", kind_json(r, HISTORY_PUT), "get",
		kind_json(r, HISTORY_GET), "delete", kind_json(r, HISTORY_DEL));
}
