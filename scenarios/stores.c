/* SPDX-License-Identifier: BSD-3-Clause */
/* See stores.h. */
#include "scenarios/stores.h"
#include <string.h>

extern const struct tm_store efactory_store, erda_store, ca_store, forca_store, remotelog_store;

const struct tm_store *const stores[] = {&efactory_store, &erda_store,	    &ca_store,
					 &forca_store,	  &remotelog_store, NULL};
const unsigned stores_by_default = 2;

const struct tm_store *store_find(const char *name)
{
	for (unsigned i = 0; stores[i]; i++)
		if (!strcmp(stores[i]->name, name))
			return stores[i];
	return NULL;
}
