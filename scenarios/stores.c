/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of stores, and the texts of their folders, which the assembler puts into the
 * program. Names and texts come from the build (stores_built.h).
 */
#include "scenarios/stores.h"
#include <stdio.h>
#include <string.h>
#include "core/text/text.h"
#include "stores_built.h"

#define TEXT(symbol, incbin)                                    \
	__asm__(".section .rodata\n"                            \
		".global " symbol "\n" symbol ":\n" incbin "\n" \
		".byte 0\n"                                     \
		".previous\n")

#define X(name, expected, claims, ablation, causes, shares)                               \
	TEXT("tm_expected_" #name, expected);                                             \
	TEXT("tm_claims_" #name, claims);                                                 \
	TEXT("tm_ablation_" #name, ablation);                                             \
	TEXT("tm_causes_" #name, causes);                                                 \
	TEXT("tm_shares_" #name, shares);                                                 \
	extern const struct tm_store name##_store;                                        \
	extern const char tm_expected_##name[], tm_claims_##name[], tm_ablation_##name[], \
		tm_causes_##name[], tm_shares_##name[];
STORES(X)
#undef X

static const struct built {
	const struct tm_store *store;
	struct store_file expected, claims, ablation, causes, shares;
} built[] = {
#define X(name, e, c, a, k, s)                                       \
	{&name##_store,                                              \
	 {"core/stores/" #name "/expected.txt", tm_expected_##name}, \
	 {"core/stores/" #name "/claims.txt", tm_claims_##name},     \
	 {"core/stores/" #name "/ablation.txt", tm_ablation_##name}, \
	 {"core/stores/" #name "/causes.txt", tm_causes_##name},     \
	 {"core/stores/" #name "/shares.txt", tm_shares_##name}},
	STORES(X)
#undef X
};
#define BUILT (sizeof(built) / sizeof(built[0]))

const struct tm_store *stores[BUILT + 1];
unsigned stores_by_default;
const char *const default_configs[] = {
	"default",    "ack_early=off", "ddio=off",	   "domain=mhp",
	"domain=wsp", "dma_order=any", "line_torn=prefix", NULL};

bool is_default_config(const char *config)
{
	for (unsigned i = 0; default_configs[i]; i++)
		if (!strcmp(default_configs[i], config))
			return true;
	return false;
}

const char sizes_config[] = "sizes";

const struct tm_shape *store_shape(const struct tm_store *store, const char *column)
{
	for (const struct tm_shape *shape = store->shapes; shape && shape->name; shape++)
		if (!strcmp(shape->name, column))
			return shape;
	return NULL;
}

bool store_has_column(const struct tm_store *store, const char *column)
{
	return !strcmp(column, sizes_config) || store_shape(store, column);
}

__attribute__((constructor)) static void put_in_order(void)
{
	unsigned n = 0;
	for (unsigned i = 0; i < BUILT; i++)
		if (built[i].store->in_default_campaign)
			stores[n++] = built[i].store;
	stores_by_default = n;
	for (unsigned i = 0; i < BUILT; i++)
		if (!built[i].store->in_default_campaign)
			stores[n++] = built[i].store;
}

const struct tm_store *store_find(const char *name)
{
	for (unsigned i = 0; stores[i]; i++)
		if (!strcmp(stores[i]->name, name))
			return stores[i];
	return NULL;
}

static const struct built *built_of(const struct tm_store *store)
{
	const struct built *b = built;
	while (b->store != store)
		b++;
	return b;
}

struct store_file store_expected(unsigned number)
{
	return built_of(stores[number])->expected;
}

struct store_file store_claims(unsigned number)
{
	return built_of(stores[number])->claims;
}

struct store_file store_ablation(unsigned number)
{
	return built_of(stores[number])->ablation;
}

struct store_file store_causes(unsigned number)
{
	return built_of(stores[number])->causes;
}

struct store_file store_shares(unsigned number)
{
	return built_of(stores[number])->shares;
}

const struct tm_variant *variant_find(const struct tm_store *store, const char *name)
{
	for (const struct tm_variant *v = store->variants; v && v->name; v++)
		if (!strcmp(v->name, name))
			return v;
	return NULL;
}

bool variant_has_knobs(const char *more, const char *less)
{
	char all[256], one[256], *save = NULL;
	snprintf(all, sizeof(all), " %s ", more);
	snprintf(one, sizeof(one), "%s", less);
	for (char *word = strtok_r(one, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char blanks[256];
		snprintf(blanks, sizeof(blanks), " %.200s ", word);
		if (!strstr(all, blanks))
			return false;
	}
	return true;
}

const char *variant_base(const struct tm_store *store, const char *name)
{
	const struct tm_variant *bug = variant_find(store, name);
	const char *base = "default", *knobs = "";
	if (!bug || !bug->breaks)
		return name;
	for (const struct tm_variant *v = store->variants; v->name; v++) {
		if (v->breaks || !variant_has_knobs(bug->knobs, v->knobs) ||
		    strlen(v->knobs) <= strlen(knobs))
			continue;
		base = v->name;
		knobs = v->knobs;
	}
	return base;
}
