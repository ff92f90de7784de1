/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_WHERE_H
#define TM_CHECKER_WORLD_WHERE_H
/* Code addresses of this process as source lines, from its own debug information. */
#include <stddef.h>
#include <stdint.h>

struct where;
/* NULL: there is no debug information; where_print() then prints "". */
struct where *where_new(void);
void where_free(struct where *w);
/* "server.c:123" or "". Of code inlined from a header of the system: where it is called. */
void where_print(struct where *w, uintptr_t pc, char *buf, size_t n);
/* The function around it, or ""; good until where_free(). */
const char *where_function(struct where *w, uintptr_t pc);

#endif
