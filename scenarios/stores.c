/* SPDX-License-Identifier: BSD-3-Clause */
/* See stores.h. */
#include "scenarios/stores.h"
#include <string.h>

#define X(name) extern const struct tm_store name##_store;
STORES(X)
#undef X

const struct tm_store *const stores[] = {
#define X(name) &name##_store,
	STORES(X)
#undef X
		NULL};
const unsigned stores_by_default = 2;

const struct tm_store *store_find(const char *name)
{
	for (unsigned i = 0; stores[i]; i++)
		if (!strcmp(stores[i]->name, name))
			return stores[i];
	return NULL;
}
