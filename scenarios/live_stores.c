/* SPDX-License-Identifier: BSD-3-Clause */
/* The stores as compiled for the live world. Linked with them into one object of which only what
 * stands here shows (cmake/Live.cmake). */
#include "scenarios/live_store.h"
#include <string.h>
#include "stores_built.h"

#define X(name, ...) extern const struct tm_store name##_store;
STORES(X)
#undef X

const struct tm_store *const live_stores[] = {
#define X(name, ...) &name##_store,
	STORES(X)
#undef X
		NULL};

const struct tm_store *live_store_find(const char *name)
{
	for (unsigned i = 0; live_stores[i]; i++)
		if (!strcmp(live_stores[i]->name, name))
			return live_stores[i];
	return NULL;
}
