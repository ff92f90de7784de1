/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_KNOBS_H
#define TM_SCENARIOS_KNOBS_H
/* A store's knobs by their names (struct tm_knob). */
#include "core/tidemark.h"

/* 0; -ENOENT: the store has no such knob; -EINVAL: it has no such value, *expected are the
 * values. */
int knob_set(const struct tm_store *store, struct tm_params *params, const char *name,
	     const char *value, const char **expected);
/* The value of knob number `knob`. */
void knob_value(const struct tm_store *store, const struct tm_params *params, unsigned knob,
		char *buf, size_t n);
/* A variant's knobs, one call of `set` each, until one does not return 0: that. -ENOENT: the
 * store has no such variant. */
int knob_variant(const struct tm_store *store, const char *name,
		 int (*set)(void *arg, const char *name, const char *value), void *arg);

#endif
