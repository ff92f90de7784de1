/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_STORE_OBJECT_H
#define TM_SCENARIOS_STORE_OBJECT_H
/* A store in a shared object that `tidemark cc` has linked. */
#include "core/rt/process/statics.h"
#include "core/tidemark.h"

struct store_object {
	char *path; /* as it was given */
	struct tm_store store;
	struct statics statics;
	uint64_t build; /* a hash of what is loaded: of code and data, not of debug information */
};

#define STORE_OBJECT_WHY 512

#define STORE_OBJECT_SUFFIX ".so"
#define STORE_OBJECT_LIVE   ".live.so" /* of the half for real hardware, beside the other one */

/* `live`: the half for real hardware is expected, else that for the simulated world. Never
 * unloaded. NULL: `why` says what is wrong, in one line that begins with the path. */
struct store_object *store_object_load(const char *path, bool live, char why[STORE_OBJECT_WHY]);

#endif
