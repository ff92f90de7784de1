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
bool is_default_config(const char *config);

/* And the one besides in which it draws lengths at edges. */
extern const char sizes_config[];
/* A shape of a store, by the name of its column; NULL: there is none. */
const struct tm_shape *store_shape(const struct tm_store *store, const char *column);
/* Is it sizes_config, or one of the store's shapes? */
bool store_has_column(const struct tm_store *store, const char *column);

const struct tm_store *store_find(const char *name); /* NULL: no such store */

/* NULL: no such variant; "default" is none. */
const struct tm_variant *variant_find(const struct tm_store *store, const char *name);
/* Are all knobs of `less` among those of `more`? */
bool variant_has_knobs(const char *more, const char *less);
/* What a seeded bug is put into: the variant without a bug that has the most of its knobs, or
 * "default". Another variant is its own base. */
const char *variant_base(const struct tm_store *store, const char *name);

/* A file of a store's folder, which the program carries with it. */
struct store_file {
	const char *path; /* in the source tree */
	const char *text; /* "": there is no such file */
};

/* `number`: of `stores`. */
struct store_file store_expected(unsigned number); /* expected.txt */
struct store_file store_claims(unsigned number);   /* claims.txt */
struct store_file store_ablation(unsigned number); /* ablation.txt */
struct store_file store_causes(unsigned number);   /* causes.txt */
struct store_file store_shares(unsigned number);   /* shares.txt */

#endif
