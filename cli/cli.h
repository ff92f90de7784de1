/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_CLI_H
#define TM_CLI_CLI_H
/*
 * The command line: a file per sub-command, and what they share: bad input
 * (input.c), files that are written (output.c), the terminal and signals (terminal.c). docs/cli.md
 * is the manual.
 */
#include <stdbool.h>
#include <stdio.h>

enum {
	EXIT_HELD,
	EXIT_BROKEN,
	EXIT_USAGE,
	EXIT_UNSURE,
	EXIT_FIXED,
	EXIT_INTERNAL = 70,
	EXIT_SKIPPED = 77
};

int crashtest_main(int argc, char **argv);
int fuzz_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int shrink_main(int argc, char **argv);
int list_main(int argc, char **argv);
int litmus_main(int argc, char **argv);
int taxonomy_main(int argc, char **argv);
int claims_main(int argc, char **argv);
int mutants_main(int argc, char **argv);
int soak_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int live_bench_main(int argc, char **argv);
void live_bench_help(void);
int bench_nic(void);
int count_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int put_main(int argc, char **argv);
int get_main(int argc, char **argv);
int del_main(int argc, char **argv);
int examine_main(int argc, char **argv);
int verbs_main(int argc, char **argv);
int run_main(int argc, char **argv);
int stat_main(int argc, char **argv);
int fault_main(int argc, char **argv);
int cut_main(int argc, char **argv);

/* tidemark replay of what tidemark examine wrote down (checker/live/crash_bundle.h). */
int replay_artefact(const char *path, bool quiet);

/* The program's name as it was called, for commands that are printed. */
extern const char *program;
/* All words of the call, NULL behind them. */
extern char **arguments;

/* --- input.c --- */

struct trace;

/* "tidemark: " and the message, one line on stderr; returns the status. */
int fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What getopt_long() says to `word`, ':' (its value is missing) or '?' (no such option): a message;
 * EXIT_USAGE. */
int refuse_option(const char *command, int option, const char *word);
/*
 * Read a command's options: `take` gets each, with its value, and says whether it is good (it has
 * printed what is not). --help ('h') prints the help. -1: go on behind them, at optind; else the
 * exit status.
 */
struct option;
int read_options(const char *command, const struct option *options, int argc, char **argv,
		 void (*help)(void), bool (*take)(void *arg, int option, const char *value),
		 void *arg);
/* Print a character of text; what XML and HTML give a meaning is escaped. */
void put_escaped(FILE *out, unsigned char c);
/* A whole number from lo to hi, or a message and false. */
bool number_option(const char *name, const char *text, unsigned long long lo, unsigned long long hi,
		   unsigned long long *out);
/* "90", "90s", "30m", "8h": at least a second; or a message and false. */
bool time_option(const char *name, const char *text, double *seconds);
/* Read a trace; "-" is standard input. 0, or the status behind a message. */
int read_trace(const char *path, struct trace *t);

/* Which of the names that exist was meant? */
struct nearest {
	const char *word;
	unsigned distance;
	char hint[80]; /* "" or ", did you mean "..."" */
};

void nearest_init(struct nearest *n, const char *word);
void nearest_try(struct nearest *n, const char *name);

/* --- device.c --- */

struct ibv_context;

/* This machine's RDMA device; NULL: the first. 0, or the status behind a message. */
int open_device(const char *name, struct ibv_context **verbs);

/* --- run.c --- */

/* Run this program anew, under the soft RNIC. Returns only the status behind a message. */
int run_again(void);

/* --- soft_rnic.c --- */

/* Go on under the soft RNIC: run the program anew, unless it has the device. 0, or the status
 * behind a message. */
int soft_rnic(void);
/* The same if `device` is the soft RNIC's, or none is named and there is none. */
int soft_rnic_if_asked(const char *device);

/* --- output.c --- */

struct campaign_config;

/* Can this file be written? Asked before the work, not after: 0, or the status behind a message. */
int check_output(const char *what, const char *path);
/* The same of a folder for files. *made: it did not exist, and was made. */
int check_folder(const char *what, const char *dir, bool *made);
/* DIR/STORE-VARIANT-CONFIGURATION-CONTRACT and `tail`, to be freed. 0 or -ENOMEM. */
int trace_path(const struct campaign_config *cfg, unsigned contract, const char *dir,
	       const char *tail, char **name);
/* A file as `write` makes it, which returns 0 or -errno. 0 or -errno; nothing partial is left
 * behind, unless `path` is no plain file and is written as it stands. */
int save_file(const char *path, int (*write)(FILE *out, const void *arg), const void *arg);

/* --- terminal.c --- */

/* Colours on this stream? A terminal, and NO_COLOR is not set. */
bool colours(FILE *stream);
/* One line on stderr that changes; nothing unless that is a terminal. NULL: take it away. */
void progress_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Full disks and closed pipes are errors of a write; children end with their parent. */
void signals_begin(void);
/* Interruptions go to `handler`, once; after it, and with NULL from now on, they end the program
 * again. */
void signals_catch(void (*handler)(int));
/* Between the two nobody interrupts, so that no half-written file is left. */
void signals_hold(void);
void signals_release(void);
/* Text between `indent` and column 100; the cursor is at `indent`. Ends the line. */
void print_wrapped(unsigned indent, const char *text);
/* A word of a command, quoted for the shell if it must be. */
void print_word(const char *word);
void write_word(FILE *out, const char *word);

#endif
