/* SPDX-License-Identifier: BSD-3-Clause */
/* The stores as compiled for the live world. Linked with them into one object of which only what is
 * here is visible (cmake/Live.cmake). */
#include "scenarios/live_store.h"
#include <string.h>
#include "stores_built.h"

#define X(name, ...) extern const struct tm_store name##_store;
STORES(X)
#undef X

#define X(name, ...) +1
enum { BUILT = 0 STORES(X) };
#undef X

const struct tm_store *live_stores[BUILT + LIVE_STORES_LOADED + 1] = {
#define X(name, ...) &name##_store,
	STORES(X)
#undef X
};

bool live_store_add(const struct tm_store *store)
{
	unsigned at = 0;
	while (live_stores[at] && strcmp(live_stores[at]->name, store->name) != 0)
		at++;
	if (at == BUILT + LIVE_STORES_LOADED)
		return false;
	live_stores[at] = store;
	return true;
}

const struct tm_store *live_store_find(const char *name)
{
	for (unsigned i = 0; live_stores[i]; i++)
		if (!strcmp(live_stores[i]->name, name))
			return live_stores[i];
	return NULL;
}
