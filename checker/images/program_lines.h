/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_PROGRAM_LINES_H
#define TM_CHECKER_IMAGES_PROGRAM_LINES_H
/* Places in program files, "PATH+0xOFFSET", as functions and lines: "put (store.c:12)". */
#include <stddef.h>

struct program_lines;
/* NULL without memory. */
struct program_lines *program_lines_new(void);
void program_lines_free(struct program_lines *p);
/* One place, or several with ';' between. What is not known stays as it is. */
void program_lines_print(struct program_lines *p, const char *places, char *out, size_t n);

#endif
