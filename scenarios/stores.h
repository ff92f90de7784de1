/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_STORES_H
#define TM_SCENARIOS_STORES_H
/*
 * The stores that this program was built with: one for each folder of core/stores
 * (cmake/Stores.cmake), whose `const struct tm_store FOLDER_store` describes it.
 */
#include "core/tidemark.h"

/* The stores of the default campaign first, then the others, both by name; ends with NULL.
 * Filled before main() and constant from then on. */
extern const struct tm_store *stores[];
extern unsigned stores_by_default; /* how many are in the default campaign */
/* The hardware under which that campaign runs each of them: "name=value", or "default"; ends with
 * NULL. */
extern const char *const default_configs[];

const struct tm_store *store_find(const char *name); /* NULL: no such store */

/* The file of this name in the store's folder, which the program carries with it; "": none. */
const char *store_expected(const char *store); /* expected.txt */
const char *store_claims(const char *store);   /* claims.txt */

#endif
