/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_NIC_RECORD_H
#define TM_CLI_NIC_RECORD_H
#include <stdbool.h>
#include <sys/types.h>
#include "core/record/format.h"

/* --- record_rest.c --- */
/* A program that is recorded, and what it leaves running: a daemon, whose parent has ended. */

/* Before the program is started: processes without a parent become this one's children. */
void record_rest_begin(void);
/* Wait for the program: its exit status, as a shell has it. */
int record_rest_program(pid_t program);
/* Wait for what it has left running, or for a signal that ends the recording: SIGTERM, SIGHUP and,
 * with `interactive`, SIGINT. These stay blocked. `name`: of the recording, for a line that says
 * so; NULL: without. */
void record_rest_wait(const char *name, bool interactive);

/* --- record_prints.c --- */

/* In the process that becomes the program: what it prints goes where it is looked for, if it is. 0
 * or -errno. */
int record_prints_to(const struct record_head *head);
/* From there to where it should have gone, until the end. */
void record_show_begin(const struct record_head *head);
void record_show_end(void);

/* --- record_unseen.c --- */
/* At the end of a recording: what the files of PM hold that it knows nothing of. */

/* Compare each file of PM with its shadow, set record_head.unseen, and print a line of each file
 * that differs, unless `quiet`. `path`: the recording's. */
void record_unseen(struct record_head *head, const char *path, bool quiet);

#endif
