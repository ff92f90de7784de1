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
#include "cli/options.h"
#include "report/tree.h"
#include "report/terminal.h"

int crashtest_main(int argc, char **argv);
int fuzz_main(int argc, char **argv);
int diff_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int shrink_main(int argc, char **argv);
int images_main(int argc, char **argv);
int judge_main(int argc, char **argv);
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
int figures_main(int argc, char **argv);
int times_main(int argc, char **argv);
int members_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int put_main(int argc, char **argv);
int get_main(int argc, char **argv);
int del_main(int argc, char **argv);
int examine_main(int argc, char **argv);
int verbs_main(int argc, char **argv);
int run_main(int argc, char **argv);
int record_main(int argc, char **argv);
int try_main(int argc, char **argv);
int stat_main(int argc, char **argv);
int fault_main(int argc, char **argv);
int cut_main(int argc, char **argv);
int cc_main(int argc, char **argv);
int cxx_main(int argc, char **argv);
int new_store_main(int argc, char **argv);
int merge_main(int argc, char **argv);

/* --- main.c --- */

/* As main(), from the command's name on. */
int run_command(int argc, char **argv);

/* All words of the call, NULL after them. */
extern char **arguments;

/* --- sdk.c --- */

/* The path of NAME beside this program, or where it was installed to. False: it is nowhere. */
bool find_beside(const char *name, char *path, size_t size);

/* --- nic/environment.c --- */

/* VARIABLE=first:what it was. 0, or -1 without memory. */
int environment_prepend(const char *variable, const char *first);
/* How LD_PRELOAD names a library, whose path it ends at a blank: then by its last part, and its
 * folder is put into LD_LIBRARY_PATH. NULL without memory. */
const char *environment_preload_name(const char *library);
/* LD_PRELOAD=library:what it was. 0, or -1 without memory. */
int environment_preload(const char *library);

/* --- input.c --- */

struct input_error;

/* text_read_path(); "-": standard input. */
char *input_read(const char *path, size_t max, size_t *len, struct input_error *where, int *error);
/* What reading an input came to, 0 or -errno; where->message may be "". 0, or the status after
 * a message. */
int input_status(const char *path, int error, const struct input_error *where);

/* The results of a command, as --json wrote them. NULL, after a message. */
json_t *input_json(const char *path);

struct trace;

/* "tidemark: " and the message, one line on stderr; returns the status. */
int fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int no_memory(void);
#define FAILURE 1024
extern char failure[FAILURE]; /* the first such message, "": there was none */
/* A whole number from lo to hi? */
bool whole_number(const char *text, unsigned long long lo, unsigned long long hi,
		  unsigned long long *out);
/* The same, or a message and false. */
bool number_option(const char *name, const char *text, unsigned long long lo, unsigned long long hi,
		   unsigned long long *out);
/* "90", "90s", "30m", "8h": at least a second; or a message and false. */
bool time_option(const char *name, const char *text, double *seconds);
/* Read a trace; "-" is standard input. `cuts`: also one of a power cut of a live server. 0, or the
 * status after a message. */
int read_trace(const char *path, struct trace *t, bool cuts);

/* Examine a power cut. 0, or the status after a message. */
struct crash_bundle;
struct exam;
int exam_run(const struct crash_bundle *a, struct exam *e);

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

/* Is there such a program, by its path or in PATH, and can the soft RNIC be under it? Its path, or
 * the status after a message; `command` says so. */
int find_runnable(const char *command, const char *name, char *path, size_t size);
/* Run this program anew, under the soft RNIC. Returns only the status after a message. */
int run_again(void);
/* The name of a process that run_main() starts, and that may outlive the program. */
#define RUN_WATCHER "tidemark-watch"

/* --- soft_rnic.c --- */

/* Go on under the soft RNIC: run the program anew, unless it has the device. 0, or the status
 * after a message. */
int soft_rnic(void);
/* The same if `device` is the soft RNIC's, or none is named and there is none. */
int soft_rnic_if_asked(const char *device);

/* --- output.c --- */

/* What an output is. A file that is there may be replaced if it is empty or of the same sort. */
enum output_sort {
	OUTPUT_ANY,	 /* whatever is there */
	OUTPUT_IN_PLACE, /* the same, and it stays the same file: a pool */
	OUTPUT_JSON,
	OUTPUT_JUNIT,
	OUTPUT_PAGE,
	OUTPUT_SARIF,
	OUTPUT_TRACE,
	OUTPUT_PCAP,
	OUTPUT_PM_LOG,
	OUTPUT_RECORDING,
	OUTPUT_BASELINE
};

/* The command will read this file: no output may be the same one. "-" and NULL are none. Said
 * before check_output(). */
void note_input(const char *path);
/* Can the option `what` write this file? Asked once for each output, before the work, not after.
 * "-" is standard output for JSON, JUnit and pages: all else that is printed then goes to standard
 * error. 0, or the status after a message. */
int check_output(const char *what, const char *path, enum output_sort sort);
/* The same of a folder for files, which is made if it does not exist; unless it `stays`, it goes at
 * outputs_end() if nothing has been written there, and `dir` is used until then. */
int check_folder(const char *what, const char *dir, bool stays);
/* What became of writing a file, 0 or -errno: 0, or the status after a message. */
int saved(const char *path, int error);
/* A row of a command's options: its results in this format. ROWS_FILES: all formats but the page,
 * which is a folder where there are many; a new format is one more row here. */
#define ROW_RESULT(format, text)                                                    \
	{                                                                           \
		format, "FILE", text, OPTION_CALL(take_result), .use = OPTION_SHOWS \
	}
#define ROWS_FILES                                      \
	ROW_RESULT("json", "the results for machines"), \
		ROW_RESULT("junit", "the results as JUnit XML, a test case for each verdict")
#define ROWS_RESULTS ROWS_FILES, ROW_RESULT("html", "the results as one page")
option_parser take_result;
/* The file that was asked for; NULL: none was. */
const char *result_asked(enum output_sort sort);
bool results_asked(void); /* any of them */
/* check_output() of each that was asked for. 0, or the status after a message. */
int results_check(void);
/* Write each output that is a format of results; the tree is taken, NULL: there was no memory for
 * it. 0, or the status after messages. */
int outputs_write(json_t *all, const struct conclusion *c);
/* --plot FILE, NULL: none: a text of the tree, for gnuplot. 0, or the status after a message. */
int plot_check(const char *path);
int plot_write(const char *path, const json_t *all, const char *text);
/* The work begins: from now on each output says what came of it. */
void outputs_begin(void);
/* It has ended: an output that is not written yet, as there is no result, is written with the last
 * message. Else what an earlier call has left there would stand for this one's. */
void outputs_end(int status);

/* --- signals.c --- */

/* Full disks and closed pipes are errors of a write; children end with their parent. */
void signals_begin(void);
/* Interruptions go to `handler`, once; after it, and with NULL from now on, they end the program
 * again. */
void signals_catch(void (*handler)(int));
/* From now on the first interruption ends signals_wait(), and the next the program. 0 or -errno. */
int signals_await(void);
void signals_wait(void);
/* From now on the first interruption sets this flag, and the next ends the program. */
const volatile sig_atomic_t *signals_stop(void);
/* What the latter does before, in its handler: nothing but what such a handler may do. */
void signals_drop(void (*what)(void));
/* Set the flag without a signal, or take that back. */
void signals_set_stop(bool stop);
/* The signal that has set the flag; 0: none has. */
int signals_stopped(void);

struct profile;
/* What things cost: by the name of a paper's machines, or in a file. 0, or the status after a
 * message. cli/models/figures.c. */
int profile_option(const char *text, struct profile *p);

#endif
