/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_LEAVE_OFF_H
#define TM_CLI_LEAVE_OFF_H
/*
 * Leaving off before all is done, with nothing lost: at a signal (the second one ends the program
 * at once), after --time, at the first result that --fail-fast waits for. What is finished is
 * reported, and the exit status says that it is not all.
 */
#include "checker/campaign/driver.h"
#include "cli/options.h"
#include "cli/shard.h"
#include "report/conclusion.h"
#include "report/tree.h"

/* Zeroed, then the options' and leave_off_begin()'s. */
struct leave_off {
	double seconds; /* --time; 0: not given */
	bool fail_fast;
	bool found; /* what --fail-fast waits for */
	bool early; /* not all was done */
	bool quiet;
	struct shard_request shard;
	struct driver_bounds bounds;
	struct driver_how how; /* with jobs, the option's; attention: leave_off_found() */
};

/* Rows of a command whose struct has a struct leave_off. */
#define ROW_TIME(type, member)                                                                   \
	{                                                                                        \
		"time", "T",                                                                     \
			"leave off after so long: 90s, 5m, 8h; what is finished then is printed" \
			" and written",                                                          \
			OPTION_FIELD(type, member.seconds), .use = OPTION_WORKS                  \
	}
#define ROW_FAIL_FAST(type, member, text)                                                          \
	{                                                                                          \
		"fail-fast", NULL, text, OPTION_FIELD(type, member.fail_fast), .use = OPTION_WORKS \
	}
/* For the end of `status` in a command's struct options. */
#define STATUS_LEFT_OFF "130 interrupted (128 and the signal's number)"

/* Check the files that will be written, and make the folder of traces; `out` NULL: there is none.
 * 0, or the status after a message. */
int leave_off_check(const struct leave_off *l, const char *out);
/* Before the campaign: from now on signals set a flag; l->how is what driver_run() needs. 0, or the
 * status after a message. */
int leave_off_begin(struct leave_off *l);
/* A result that needs attention has come: leave off if --fail-fast was given. */
void leave_off_found(void *leave_off);
/* Progress of a driver: units, what one of them is, states if it counts them, the time that is
 * left. */
driver_shows show_units;
/* After it, with driver_run()'s result; *error is what went wrong besides leaving off. -1: report
 * it; else the status, after a line or a message. */
int leave_off_end(struct leave_off *l, int *error);
/* "at SIGINT", "after --time", ...; NULL: it was not left off. */
const char *leave_off_why(const struct leave_off *l);
/* The command that does all of it, to be freed; NULL without memory. */
char *leave_off_command(void);
/* What the results come to, if without leaving off it were *c; "3 of 5 bugs are done". */
void leave_off_conclude(const struct leave_off *l, struct conclusion *c, unsigned done,
			unsigned all, const char *what);
/* The last lines: the command that does all of it, unless it was not left off; the conclusion. */
void leave_off_print(const struct leave_off *l, const struct conclusion *c);
/* Then, with all printed and concluded: write the results, print those lines. The exit status,
 * which was `status` until now. */
int leave_off_tell(const struct leave_off *l, const struct conclusion *c, json_t *tree,
		   const char *text, int status);
/* The exit status, if without leaving off it were `status`. */
int leave_off_status(const struct leave_off *l, int status);

#endif
