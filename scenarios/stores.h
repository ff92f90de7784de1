/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_STORES_H
#define TM_SCENARIOS_STORES_H
/*
 * The stores that this program was built with: one for each folder of core/stores
 * (cmake/Stores.cmake), whose `const struct tm_store FOLDER_store` describes it. And those that it
 * has loaded.
 */
#include "scenarios/store_object.h"

/* The stores of the default campaign first, then the others, both by name, then those that were
 * loaded; ends with NULL. Filled before main(), but for those that the command line names. */
extern const struct tm_store *stores[];
extern unsigned stores_by_default; /* how many are in the default campaign */
/* The hardware under which that campaign runs each of them: "name=value", or "default"; ends with
 * NULL. */
extern const char *const default_configs[];
bool is_default_config(const char *config);

/* And the one besides in which it draws lengths at edges. */
extern const char sizes_config[];
/* And that of a systematic search of a few small workloads. */
extern const char searched_config[];
/* A shape of a store, by the name of its column; NULL: there is none. */
const struct tm_shape *store_shape(const struct tm_store *store, const char *column);
/* Is it sizes_config, or one of the store's shapes? */
bool store_has_column(const struct tm_store *store, const char *column);

/* How many servers it has with these knobs. */
unsigned store_servers(const struct tm_store *store, const struct tm_params *params);

/* TM_BIT()s of the contracts that can be judged of the store: under a workload of its own
 * operations, or of put, get and del; and under either. */
unsigned store_judged_by(const struct tm_store *store, bool own);
unsigned store_judged(const struct tm_store *store);

const struct tm_store *store_find(const char *name); /* NULL: no such store */

/* NULL: no such variant; "default" is none. */
const struct tm_variant *variant_find(const struct tm_store *store, const char *name);
/* Are all knobs of `less` among those of `more`? */
bool variant_has_knobs(const char *more, const char *less);
/* What a seeded bug is put into: the variant without a bug that has the most of its knobs, or
 * "default". Another variant is its own base. */
const char *variant_base(const struct tm_store *store, const char *name);

/* Is it the path of a shared object, and no store's name? */
bool store_is_path(const char *word);
/* The store in a shared object. It takes the place of one of the same name that the program was
 * built with, whose files stay if there are none beside the object. Before anything else is asked
 * about stores. NULL: `why` is one line. */
#define STORES_LOADED 8 /* at most, with names of their own */
const struct tm_store *store_load(const char *path, char why[STORE_OBJECT_WHY]);
/* The same as it is for real hardware, from "NAME.live.so" beside "NAME.so"; either name will
 * do. */
const struct tm_store *store_load_live(const char *path, char why[STORE_OBJECT_WHY]);
/* The static data of a store that was loaded, and its path as it was given; else NULL. And a hash
 * of its code and data, else 0. */
struct statics *store_statics(const struct tm_store *store);
const char *store_path(const struct tm_store *store);
uint64_t store_build(const struct tm_store *store);

/* A file of a store's folder, which the program carries with it, or beside its shared object. */
struct store_file {
	const char *path; /* in the source tree, or of the file */
	const char *text; /* "": there is no such file */
};

/* expected.txt, claims.txt, ... */
enum store_text { STORE_EXPECTED, STORE_CLAIMS, STORE_ABLATION, STORE_CAUSES };
#define STORE_TEXTS (STORE_CAUSES + 1)
struct store_file store_file(const struct tm_store *store, enum store_text text);

#endif
