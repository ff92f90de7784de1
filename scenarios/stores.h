/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_STORES_H
#define TM_SCENARIOS_STORES_H
/* The stores that this program was built with. A store of your own: add it to the list. */
#include "core/tidemark.h"

/* name: of a `const struct tm_store name_store`. */
#define STORES(X) X(efactory) X(erda) X(ca) X(forca) X(remotelog)

extern const struct tm_store *const stores[]; /* ends with NULL */
extern const unsigned
	stores_by_default; /* so many of them, the first, are tested when none is named */
const struct tm_store *store_find(const char *name); /* NULL: no such store */

#endif
