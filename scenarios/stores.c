/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of stores, and the texts of their folders, which the assembler puts into the
 * program. Names and texts come from the build (stores_built.h).
 */
#include "scenarios/stores.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"
#include "scenarios/live_store.h"
#include "stores_built.h"

#define TEXT(symbol, incbin)                                    \
	__asm__(".section .rodata\n"                            \
		".global " symbol "\n" symbol ":\n" incbin "\n" \
		".byte 0\n"                                     \
		".previous\n")

#define X(name, expected, claims, ablation, causes)                                       \
	TEXT("tm_expected_" #name, expected);                                             \
	TEXT("tm_claims_" #name, claims);                                                 \
	TEXT("tm_ablation_" #name, ablation);                                             \
	TEXT("tm_causes_" #name, causes);                                                 \
	extern const struct tm_store name##_store;                                        \
	extern const char tm_expected_##name[], tm_claims_##name[], tm_ablation_##name[], \
		tm_causes_##name[];
STORES(X)
#undef X

/* The files of a store's folder, by enum store_text. */
static const char *const file_name[STORE_TEXTS] = {"expected", "claims", "ablation", "causes"};

#define X(...) +1
enum { BUILT = 0 STORES(X) };
#undef X

/* Those that the program was built with, then those that it has loaded. */
static struct known {
	const struct tm_store *store;
	struct store_file file[STORE_TEXTS];
	struct store_object *object; /* NULL: the program was built with it */
} known[BUILT + STORES_LOADED] = {
#define X(name, e, c, a, k)                                           \
	{&name##_store,                                               \
	 {{"core/stores/" #name "/expected.txt", tm_expected_##name}, \
	  {"core/stores/" #name "/claims.txt", tm_claims_##name},     \
	  {"core/stores/" #name "/ablation.txt", tm_ablation_##name}, \
	  {"core/stores/" #name "/causes.txt", tm_causes_##name}},    \
	 NULL},
	STORES(X)
#undef X
};
static unsigned knowns = BUILT;

const struct tm_store *stores[BUILT + STORES_LOADED + 1];
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

const char sizes_config[] = "sizes", searched_config[] = "exhaustive";

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
		if (known[i].store->in_default_campaign)
			stores[n++] = known[i].store;
	stores_by_default = n;
	for (unsigned i = 0; i < BUILT; i++)
		if (!known[i].store->in_default_campaign)
			stores[n++] = known[i].store;
}

/* The contracts whose row has the flag. */
static unsigned contracts_that(enum tm_judged flag)
{
#define X(name, judged, what) | ((judged)&flag ? TM_BIT(TM_##name) : 0)
	return 0 TM_CONTRACT_ROWS(X);
#undef X
}

unsigned store_servers(const struct tm_store *store, const struct tm_params *params)
{
	if (store->servers_of)
		return store->servers_of(params);
	return store->servers ? store->servers : 1;
}

unsigned store_judged_by(const struct tm_store *store, bool own)
{
	unsigned judged = TM_BIT(TM_CONTRACTS) - 1;
	if (!store->judge && !(own && store->model))
		judged &= ~TM_BIT(TM_OWN);
	if (own)
		judged &= ~contracts_that(TM_KEYED);
	if (own && !store->model)
		judged &= ~contracts_that(TM_MODELLED);
	if (!store->txn)
		judged &= ~contracts_that(TM_TRANSACTED);
	if (store->servers < 2)
		judged &= ~contracts_that(TM_SEVERAL);
	if (!(store->promises & TM_BIT(TM_DURN))) /* then no server is lost */
		judged &= ~TM_BIT(TM_DURN);
	if (!(store->promises & TM_BIT(TM_FENCE))) /* nor cut off */
		judged &= ~TM_BIT(TM_FENCE);
	if (!store->dump)
		judged &= ~TM_BIT(TM_AGREE);
	return judged;
}

unsigned store_judged(const struct tm_store *store)
{
	return (store->put ? store_judged_by(store, false) : 0) |
	       (store->calls ? store_judged_by(store, true) : 0);
}

const struct tm_store *store_find(const char *name)
{
	for (unsigned i = 0; stores[i]; i++)
		if (!strcmp(stores[i]->name, name))
			return stores[i];
	return NULL;
}

static struct known *known_of(const struct tm_store *store)
{
	for (unsigned i = 0; i < knowns; i++)
		if (known[i].store == store)
			return &known[i];
	return NULL;
}

struct store_file store_file(const struct tm_store *store, enum store_text text)
{
	return known_of(store)->file[text];
}

/* --- stores in shared objects --- */

struct statics *store_statics(const struct tm_store *store)
{
	struct known *b = known_of(store);
	return b && b->object ? &b->object->statics : NULL;
}

const char *store_path(const struct tm_store *store)
{
	const struct known *b = known_of(store);
	return b && b->object ? b->object->path : NULL;
}

uint64_t store_build(const struct tm_store *store)
{
	const struct known *b = known_of(store);
	return b && b->object ? b->object->build : 0;
}

/* A whole file; NULL: there is none, or it cannot be read. */
static char *read_text(const char *path)
{
	FILE *in = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	if (!in)
		return NULL;
	if (getdelim(&text, &room, '\0', in) < 0) {
		free(text);
		text = NULL;
	}
	fclose(in);
	return text;
}

/* The files beside it: "mine.expected.txt" beside "mine.so". False: out of memory. */
static bool read_files(struct known *b)
{
	const char *path = b->object->path;
	for (unsigned i = 0; i < STORE_TEXTS; i++) {
		char *name;
		if (asprintf(&name, "%.*s.%s.txt",
			     (int)(strlen(path) - strlen(STORE_OBJECT_SUFFIX)), path,
			     file_name[i]) < 0)
			return false;
		char *text = read_text(name);
		if (text || !b->file[i].text) {
			b->file[i] = (struct store_file){name, text ? text : ""};
		} else {
			free(name);
		}
	}
	return true;
}

static bool ends_with(const char *word, const char *suffix)
{
	size_t len = strlen(word), end = strlen(suffix);
	return len > end && !strcmp(word + len - end, suffix);
}

bool store_is_path(const char *word)
{
	return ends_with(word, STORE_OBJECT_SUFFIX);
}

const struct tm_store *store_load(const char *path, char why[STORE_OBJECT_WHY])
{
	for (unsigned i = 0; stores[i]; i++)
		if (store_path(stores[i]) && !strcmp(store_path(stores[i]), path))
			return stores[i];
	struct store_object *object = store_object_load(path, false, why);
	if (!object)
		return NULL;
	unsigned at = 0;
	while (stores[at] && strcmp(stores[at]->name, object->store.name) != 0)
		at++;
	if (!stores[at] && knowns == BUILT + STORES_LOADED) {
		snprintf(why, STORE_OBJECT_WHY, "%s: one too many; expected at most %d stores",
			 path, STORES_LOADED);
		return NULL;
	}
	struct known *b = stores[at] ? known_of(stores[at]) : &known[knowns];
	if (b->object) {
		snprintf(why, STORE_OBJECT_WHY, "%s: its store has the same name as that of %s",
			 path, b->object->path);
		return NULL;
	}
	b->object = object;
	b->store = stores[at] = &object->store;
	knowns += b == &known[knowns];
	if (read_files(b))
		return &object->store;
	snprintf(why, STORE_OBJECT_WHY, "%s: out of memory", path);
	return NULL;
}

const struct tm_store *store_load_live(const char *path, char why[STORE_OBJECT_WHY])
{
	char live[PATH_MAX];
	const char *end = ends_with(path, STORE_OBJECT_LIVE) ? STORE_OBJECT_LIVE
							     : STORE_OBJECT_SUFFIX;
	snprintf(live, sizeof(live), "%.*s" STORE_OBJECT_LIVE, (int)(strlen(path) - strlen(end)),
		 path);
	struct store_object *object = store_object_load(live, true, why);
	if (!object)
		return NULL;
	if (live_store_add(&object->store))
		return &object->store;
	snprintf(why, STORE_OBJECT_WHY, "%s: one too many; expected at most %d stores", path,
		 LIVE_STORES_LOADED);
	return NULL;
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
