/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_H
#define TM_CLI_H
/* The command line: a file per sub-command, and what they share (options.c). */
#include <stdbool.h>
#include <stdio.h>

enum { EXIT_HELD, EXIT_BROKEN, EXIT_USAGE, EXIT_UNSURE, EXIT_FIXED, EXIT_INTERNAL = 70, EXIT_SKIPPED = 77 };

int crashtest_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int shrink_main(int argc, char **argv);
int list_main(int argc, char **argv);
int bench_main(int argc, char **argv);

/* "tidemark: " and the message on stderr; returns the status. */
int fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A whole number from lo to hi, or a message and false. */
bool number_option(const char *name, const char *text, unsigned long long lo, unsigned long long hi,
		   unsigned long long *out);
/* Colours on this stream? A terminal, and NO_COLOR is not set. */
bool colours(FILE *stream);
/* The program's name as it was called, for commands that are printed. */
extern const char *program;

#endif
