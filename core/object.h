/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_OBJECT_H
#define TM_OBJECT_H
/*
 * What a shared object with a store shows to the program that loads it: one symbol. `tidemark cc`
 * adds it to each object that it links (scripts/sdk/object.c).
 */
#include "core/tidemark.h"

#define TM_OBJECT_VERSION 2 /* of what a store and the program call of each other */
#define TM_OBJECT_SYMBOL  "tidemark_object"

struct tm_object {
	uint32_t version, store_bytes;
	const struct tm_store *store;
	/* Functions that the compiler wants called when a process begins. */
	void (*const *begin)(int, char **, char **);
	void (*const *begin_end)(int, char **, char **);
	uint32_t live; /* not 0: it is for real hardware (NAME.live.so), where nothing is seen */
};

#endif
