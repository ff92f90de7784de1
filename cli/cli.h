/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_CLI_H
#define TM_CLI_CLI_H
/*
 * The command line: a file per sub-command, and what they share: bad input (input.c), files that
 * are written (output.c), signals (signals.c). docs/cli.md is the manual.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include "report/terminal.h"

enum {
	EXIT_HELD,
	EXIT_BROKEN,
	EXIT_USAGE,
	EXIT_UNSURE,
	EXIT_FIXED,
	EXIT_INTERNAL = 70,
	EXIT_SKIPPED = 77,
	EXIT_SIGNAL = 128 /* and the signal's number */
};

int crashtest_main(int argc, char **argv);
int fuzz_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int shrink_main(int argc, char **argv);
int images_main(int argc, char **argv);
int list_main(int argc, char **argv);
int litmus_main(int argc, char **argv);
int taxonomy_main(int argc, char **argv);
int claims_main(int argc, char **argv);
int ablate_main(int argc, char **argv);
int mutants_main(int argc, char **argv);
int soak_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int live_bench_main(int argc, char **argv);
int count_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int put_main(int argc, char **argv);
int get_main(int argc, char **argv);
int del_main(int argc, char **argv);
int examine_main(int argc, char **argv);
int verbs_main(int argc, char **argv);
int run_main(int argc, char **argv);
int record_main(int argc, char **argv);
int stat_main(int argc, char **argv);
int fault_main(int argc, char **argv);
int cut_main(int argc, char **argv);
int cc_main(int argc, char **argv);
int cxx_main(int argc, char **argv);
int new_store_main(int argc, char **argv);

/* All words of the call, NULL after them. */
extern char **arguments;

/* --- sdk.c --- */

/* The path of NAME beside this program, or where it was installed to. False: it is nowhere. */
bool find_beside(const char *name, char *path, size_t size);

/* --- nic/environment.c --- */

/* VARIABLE=first:what it was. 0, or -1 without memory. */
int environment_prepend(const char *variable, const char *first);

/* --- input.c --- */

struct trace;

/* "tidemark: " and the message, one line on stderr; returns the status. */
int fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A whole number from lo to hi, or a message and false. */
bool number_option(const char *name, const char *text, unsigned long long lo, unsigned long long hi,
		   unsigned long long *out);
/* "90", "90s", "30m", "8h": at least a second; or a message and false. */
bool time_option(const char *name, const char *text, double *seconds);
/* Read a trace; "-" is standard input. 0, or the status after a message. */
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

/* This machine's RDMA device; NULL: the first. 0, or the status after a message. */
int open_device(const char *name, struct ibv_context **verbs);

/* --- run.c --- */

/* Run this program anew, under the soft RNIC. Returns only the status after a message. */
int run_again(void);

/* --- soft_rnic.c --- */

/* Go on under the soft RNIC: run the program anew, unless it has the device. 0, or the status
 * after a message. */
int soft_rnic(void);
/* The same if `device` is the soft RNIC's, or none is named and there is none. */
int soft_rnic_if_asked(const char *device);

/* --- output.c --- */

/* Can this file be written? Asked before the work, not after: 0, or the status after a message. */
int check_output(const char *what, const char *path);
/* The same of a folder for files. *made: it did not exist, and was made. */
int check_folder(const char *what, const char *dir, bool *made);
/* What became of writing a file, 0 or -errno: 0, or the status after a message. */
int saved(const char *path, int error);

/* --- signals.c --- */

/* Full disks and closed pipes are errors of a write; children end with their parent. */
void signals_begin(void);
/* Interruptions go to `handler`, once; after it, and with NULL from now on, they end the program
 * again. */
void signals_catch(void (*handler)(int));
/* From now on the first interruption sets this flag, and the next ends the program. */
const volatile sig_atomic_t *signals_stop(void);
/* Set the flag without a signal, or take that back. */
void signals_set_stop(bool stop);
/* The signal that has set the flag; 0: none has. */
int signals_stopped(void);

#endif
