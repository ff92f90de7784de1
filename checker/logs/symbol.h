/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_SYMBOL_H
#define TM_CHECKER_LOGS_SYMBOL_H
/*
 * Functions of C++ and Rust by the names that their sources have. libiberty knows how compilers
 * made symbols of these; where Tidemark is built without it, each symbol stays as it is.
 */
#include <stddef.h>

/* "Log::append" of _ZN3Log6appendEPKcm; a symbol of C stays as it is. */
void symbol_print(const char *symbol, char *buf, size_t n);
/* The symbol that `name` means in a library whose function takes a path: the symbol itself, or
 * "Log::check", or "Log::check(char const*)". `name`: there is no such function, or the file cannot
 * be read. */
void symbol_find(const char *library, const char *name, char *buf, size_t n);

#endif
