/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_WHERE_H
#define TM_CHECKER_WORLD_WHERE_H
/* Code addresses as source lines, from debug information: those of this process, or places in
 * program files. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct where;
/* NULL: there is no debug information; where_print() then prints "". */
struct where *where_new(void);
/* For addresses in files, which where_in_file() gives. NULL: out of memory. */
struct where *where_new_files(void);
void where_free(struct where *w);
/* "server.c:123" or "". For code inlined from a header of the system: where it is called. */
void where_print(struct where *w, uintptr_t pc, char *buf, size_t n);
/* The same as a file's path, as the compiler was told it, good until where_free(), and the number
 * of the line. NULL: not known. */
const char *where_source(struct where *w, uintptr_t pc, int *number);
/* Where the byte at `offset` of a file's memory image is: the address as where_print() takes it; 0:
 * the file cannot be read. */
uintptr_t where_in_file(struct where *w, const char *path, uint64_t offset);
/* The function around it, or ""; good until where_free(). */
const char *where_function(struct where *w, uintptr_t pc);
/* The address at which it begins; 0: not known. */
uintptr_t where_begin(struct where *w, uintptr_t pc);
/* The function that the line of where_print() is of, if it was inlined into that one; NULL: it was
 * not, or that is not known. As where_function() a symbol, if it is one of C++ or Rust. Good until
 * where_free(). */
const char *where_inlined(struct where *w, uintptr_t pc);
/* The whole path of its source file, and the line unless `number` is NULL. NULL: not known. Good
 * until where_free(). */
const char *where_path(struct where *w, uintptr_t pc, int *number);
/* Are both in the program, or in one object? */
bool where_together(struct where *w, uintptr_t a, uintptr_t b);
/* In the program or object that `in` lies in: each row of its line tables at which a statement
 * begins, or a part of one, with the whole path of its file, which is good for the call only; and
 * each function that its symbol table names, good until where_free(). */
typedef void where_row(void *arg, uintptr_t pc, const char *path, unsigned line);
typedef void where_symbol(void *arg, const char *name, uintptr_t begin, uintptr_t end);
void where_rows(struct where *w, uintptr_t in, where_row *row, void *arg);
void where_functions(struct where *w, uintptr_t in, where_symbol *symbol, void *arg);

#endif
