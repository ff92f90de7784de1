/* SPDX-License-Identifier: BSD-3-Clause */
/* See catalogue.h. */
#include "report/catalogue.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "checker/world/checker_mutant.h"
#include "checker/judge/names.h"
#include "core/hardware/hardware.h"
#include "core/hardware/profile.h"
#include "core/rt/fails.h"
#include "scenarios/stores.h"
#include "scenarios/workload/workload.h"

/* If a shared object was named, only what it has is shown. */
static bool is_shown(const struct tm_store *store)
{
	bool loaded = false;
	for (unsigned i = 0; stores[i]; i++)
		loaded |= store_path(stores[i]) != NULL;
	return !loaded || store_path(store);
}

static void list_stores(void)
{
	char set[CONTRACT_LIST];
	for (unsigned i = 0; stores[i]; i++) {
		if (!is_shown(stores[i]))
			continue;
		contract_list(stores[i]->promises, " ", set, sizeof(set));
		printf("%-10s %s\n%10s promises:%s%s\n", stores[i]->name, stores[i]->what, "",
		       *set ? " " : "", set);
	}
}

static void list_variants(bool bugs)
{
	char set[CONTRACT_LIST];
	for (unsigned i = 0; stores[i]; i++) {
		for (const struct tm_variant *v = stores[i]->variants; v->name; v++) {
			if (!v->breaks == bugs || !is_shown(stores[i]))
				continue;
			printf("%-10s %-20s %s\n", stores[i]->name, v->name, v->what);
			printf("%31s knobs: %s", "", v->knobs);
			if (bugs)
				printf("; breaks at least one of: %s",
				       contract_list(v->breaks, " ", set, sizeof(set)));
			putchar('\n');
		}
	}
}

static void list_mutants(void)
{
	static const char *const effects[] = {
		[MUTANT_OF_MODEL] = "",
		[MUTANT_OF_CHECKER] = "; makes the tester miss bugs",
		[MUTANT_NOTICED] = "; the tester notices that it is wrong, and ends",
		[MUTANT_OF_HARDWARE] =
			"; another machine, for litmus tests and the taxonomy to find",
	};
	const struct mutant_info *m;
	for (unsigned i = 0; (m = mutant_nth(i)) != NULL; i++)
		printf("%-10s %-20s %s\n%31s knobs: mutant=%s%s\n", m->part, m->name, m->what, "",
		       m->name, effects[m->effect]);
}

static void list_knobs(void)
{
	for (unsigned i = 0; stores[i]; i++)
		for (const struct tm_knob *k = stores[i]->knobs; is_shown(stores[i]) && k->name;
		     k++)
			printf("%-10s %-18s %s\n%29s values: %s\n", stores[i]->name, k->name,
			       k->what, "", k->values);
	for (unsigned i = 0; hardware_knob(i)->name; i++) {
		const struct hardware_knob *k = hardware_knob(i);
		printf("%-10s %-18s %s\n%29s values: %s%s\n", "hardware", k->name, k->what, "",
		       k->values, k->not_of_log ? "" : " (images --knob, too)");
	}
}

static void list_own_workloads(const struct tm_store *store)
{
	const struct tm_workload *own = store->workloads;
	struct tm_store alone = *store;
	const char *expected;
	struct workload w;
	alone.txn = NULL; /* those of transactions are not its own */
	for (unsigned i = 0; !workload_of_store(&alone, i, &w, &expected); i++) {
		printf("%-32s ", w.name);
		if (own && own->name) {
			printf("%s\n", own++->what);
		} else {
			for (unsigned c = 1; c <= w.clients; c++) {
				printf("%s", c > 1 ? " | " : "");
				workload_print_client(&w, c, stdout);
			}
			printf("\n");
		}
		workload_free(&w);
	}
}

static void list_workloads(void)
{
	struct workload w;
	bool plain = false, transacts = false; /* has any store put, get and del; transactions? */
	for (unsigned s = 0; stores[s]; s++) {
		plain |= is_shown(stores[s]) && stores[s]->put;
		transacts |= is_shown(stores[s]) && stores[s]->txn;
	}
	for (unsigned i = 0; plain && workload_what(i); i++) {
		if (workload_builtin(i, &w))
			return;
		printf("%-16s %s\n", w.name, workload_what(i));
		workload_free(&w);
	}
	for (const struct tm_workload *t = workload_transactions; transacts && t->name; t++)
		printf("%-32s %s\n", t->name, t->what);
	for (unsigned s = 0; stores[s]; s++)
		if (is_shown(stores[s]))
			list_own_workloads(stores[s]);
}

static void list_contracts(void)
{
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		printf("%-6s %s\n", contract_name(c), contract_what(c));
}

/* What clients can do with stores that are no tables of keys and values. */
static void list_operations(void)
{
	for (unsigned i = 0; stores[i]; i++)
		for (const struct tm_call_type *t = stores[i]->calls; t && t->name; t++) {
			char form[64];
			int len = snprintf(form, sizeof(form), "%s", t->name);
			for (unsigned k = 0; k < t->keys; k++)
				len += snprintf(form + len, sizeof(form) - (size_t)len, " KEY");
			if (t->value)
				snprintf(form + len, sizeof(form) - (size_t)len, " LENGTH");
			printf("%-10s %-24s %s%s\n", stores[i]->name, form, t->what,
			       t->looks ? " (after recovery, too)" : "");
		}
}

static void list_failures(void)
{
	for (unsigned p = 0; p < FAIL_POINT_COUNT; p++)
		printf("%-18s %s\n", fail_points[p].name, fail_points[p].what);
}

static void list_plain_variants(void)
{
	list_variants(false);
}

static void list_bugs(void)
{
	list_variants(true);
	list_mutants();
}

static void list_costs(void)
{
	const struct profile_cost *cost;
	for (unsigned i = 0; (cost = profile_cost(i))->name; i++)
		printf("%-12s %10u %-5s %s\n", cost->name, cost->value, cost->unit, cost->what);
}

const struct catalogue_section catalogue[] = {
	{"stores", list_stores},       {"variants", list_plain_variants},
	{"bugs", list_bugs},	       {"knobs", list_knobs},
	{"workloads", list_workloads}, {"contracts", list_contracts},
	{"failures", list_failures},   {"operations", list_operations},
	{"costs", list_costs},	       {NULL, NULL}};
