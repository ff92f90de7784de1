/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of stores, and the texts of their folders, which the assembler puts into the
 * program. Names and texts come from the build (stores_built.h).
 */
#include "scenarios/stores.h"
#include <string.h>
#include "stores_built.h"

#define TEXT(symbol, incbin)                                    \
	__asm__(".section .rodata\n"                            \
		".global " symbol "\n" symbol ":\n" incbin "\n" \
		".byte 0\n"                                     \
		".previous\n")

#define X(name, expected, claims)                  \
	TEXT("tm_expected_" #name, expected);      \
	TEXT("tm_claims_" #name, claims);          \
	extern const struct tm_store name##_store; \
	extern const char tm_expected_##name[], tm_claims_##name[];
STORES(X)
#undef X

static const struct {
	const struct tm_store *store;
	const char *expected, *claims;
} built[] = {
#define X(name, e, c) {&name##_store, tm_expected_##name, tm_claims_##name},
	STORES(X)
#undef X
};
#define BUILT (sizeof(built) / sizeof(built[0]))

const struct tm_store *stores[BUILT + 1];
unsigned stores_by_default;
const char *const default_configs[] = {"default",    "ack_early=off", "ddio=off",     "domain=mhp",
				       "domain=wsp", "dma_order=any", "line_torn=on", NULL};

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

const char *store_expected(const char *store)
{
	for (unsigned i = 0; i < BUILT; i++)
		if (!strcmp(built[i].store->name, store))
			return built[i].expected;
	return "";
}

const char *store_claims(const char *store)
{
	for (unsigned i = 0; i < BUILT; i++)
		if (!strcmp(built[i].store->name, store))
			return built[i].claims;
	return "";
}
