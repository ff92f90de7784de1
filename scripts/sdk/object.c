/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tidemark cc` adds to each object: see core/object.h. STORE is the name of its tm_store. */
#include <tidemark/object.h>

extern const struct tm_store STORE;
/* The section begins and ends there, if the compiler has made it. */
extern void (*const __start_tidemark_begin[])(int, char **, char **) __attribute__((weak));
extern void (*const __stop_tidemark_begin[])(int, char **, char **) __attribute__((weak));

__attribute__((visibility("default"))) const struct tm_object tidemark_object = {
	TM_OBJECT_VERSION,
	sizeof(struct tm_store),
	&STORE,
	__start_tidemark_begin,
	__stop_tidemark_begin,
};
