/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_TERMINAL_H
#define TM_REPORT_TERMINAL_H
/* Text for people: colours, the line of progress, wrapped text, commands to copy. */
#include <stdbool.h>
#include <stdio.h>

#define BOLD   "\033[1m"
#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN  "\033[0m"

/* The program's name as it was called, for commands that are printed. */
extern const char *program;

/* One of the colours above for standard output; "" unless that is a terminal and NO_COLOR is not
 * set. */
const char *paint(const char *colour);
/* Print what is still to be printed on standard output. 0, or -errno of the first time that
 * something could not be. */
int output_flush(void);
/* One line on stderr that changes; where that is no terminal, a line each half minute. NULL: take
 * it away. */
void progress_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Take it away from within a signal handler. False: the terminal cannot be written. */
bool progress_erase(void);
/* Text between `indent` and the end of the terminal's line, at most column 100; the cursor is at
 * `indent`. Ends the line. */
void print_wrapped(unsigned indent, const char *text);
/* A word of a command, quoted for the shell if it must be. */
void write_word(FILE *out, const char *word);

#endif
