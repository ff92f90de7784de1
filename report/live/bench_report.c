/* SPDX-License-Identifier: BSD-3-Clause */
/* What came of a load on a live server. */
#include "report/live/bench_report.h"
#include <string.h>
#include "core/text/error_name.h"
#include "report/report.h"
#include "scenarios/live_store.h"

static double micros(const struct latency *l, unsigned per_mille)
{
	return (double)latency_quantile(l, per_mille) * 1e-3;
}

static double per_second(const struct load_result *r)
{
	return r->seconds > 0 ? (double)r->ops / r->seconds : 0;
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
	json_t *errors = json_object(), *list = json_array();
	for (unsigned i = 0; i < LOAD_ERRORS && r->error[i].times; i++) {
		json_object_set_new(errors, error_name(r->error[i].error).text,
				    json_integer((json_int_t)r->error[i].times));
		json_array_append_new(list, json_pack("{s:I, s:s}", "times",
						      (json_int_t)r->error[i].times, "what",
						      strerror(-r->error[i].error)));
	}
	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:I, s:f, s:I, s:I, s:I, s:i, s:b, "
			 "s:b, s:o, s:o, s:o, s:o, s:o}",
			 "server", o->server, "store", on->store->name, "variant", on->variant,
			 "clients", (int)o->clients, "keys", (int)o->keys, "value", (int)o->vlen,
			 "seconds", r->seconds, "operations", (json_int_t)r->ops, "per_second",
			 per_second(r), "not_found", (json_int_t)r->not_found, "foreign",
			 (json_int_t)r->foreign, "reconnects", (json_int_t)r->reconnects, "gave_up",
			 (int)r->gave_up, "hung", (int)r->hung, "full", (int)r->full, "errors",
			 errors, "error_list", list, "put", kind_json(r, HISTORY_PUT), "get",
			 kind_json(r, HISTORY_GET), "delete", kind_json(r, HISTORY_DEL));
}
