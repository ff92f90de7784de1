/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAMPAIGN_DRIVER_H
#define TM_CHECKER_CAMPAIGN_DRIVER_H
/*
 * What drives every campaign: numbered units of work that several processes share. A process that
 * is free takes the next unit; each result, plain bytes without pointers, comes back through a
 * pipe. What a unit is, and what its result means, is the campaign's policy. A unit's result must
 * depend on nothing but the unit, so that the number of processes changes no figure.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRIVER_RESULT_MAX 60000 /* bytes */

/* Progress, as of the last result. */
struct driver_progress {
	unsigned done, units;
	unsigned last;	 /* the unit of this result */
	uint64_t states; /* of all results */
	double seconds;	 /* since it began */
};

typedef void driver_shows(void *arg, const struct driver_progress *at);

struct results;

/* Which units there are to do: when to stop before all are done, and what is known. */
struct driver_bounds {
	const volatile sig_atomic_t *stop; /* not NULL: as soon as it is not 0. A signal's handler
					    * sets it; the processes ignore such signals */
	double until;			   /* not 0: at this time (clock_seconds()) */
	/* Not NULL, and not begun: only units that it wants are done, and are kept; what it knows
	 * is taken, in the order of the units, before anything is done. */
	struct results *results;
};

/* How a campaign is run. */
struct driver_how {
	unsigned jobs;			    /* processes */
	const struct driver_bounds *bounds; /* NULL: none */
	driver_shows *progress;		    /* after take(); NULL: not wanted */
	void (*attention)(void *arg);	    /* NULL, or: a result has come that needs it */
	void *attention_arg;
};

#define DRIVER_FIELD(type, member) (offsetof(type, member) + 1)

struct driver {
	unsigned units;
	struct driver_how how;
	size_t result_bytes;
	/* In one of the processes: fill `result`, which is zeroed. */
	void (*work)(void *arg, unsigned unit, void *result);
	/* The rest can be NULL. Where results go: an array, by unit. */
	void *results;
	/* NULL, or by unit: its result has come. Zeroed by the caller. */
	bool *done;
	/* In the calling process, in the order in which the results come. */
	void (*take)(void *arg, unsigned unit, const void *result);
	/* Units with high costs are begun first, and among equals the first ones. */
	uint64_t (*cost)(const void *arg, unsigned unit);
	/* Units with a low rank are begun first, whatever they cost. Which of several shards does a
	 * unit does not depend on it. */
	uint64_t (*rank)(const void *arg, unsigned unit);
	/* In one of the processes: it ends now, in the midst of its work if the driver stops early.
	 * Then a signal's handler calls this. */
	void (*end)(void);
	/* DRIVER_FIELD()s of a result, or 0. A uint64_t: crash states that went into it. */
	size_t states_at;
	/* An int: with -ENOMEM it is not the unit, but this machine that is to blame for the
	 * result, and that is not kept. */
	size_t error_at;
	/* See results_begin(). */
	bool (*same)(const void *a, const void *b);
	/* The same of any result for which this is true. */
	bool (*failed)(const void *result);
	void *arg, *progress_arg; /* what a unit is, "cell", for what shows progress */
	/* the driver's */
	struct driver_progress at;
	double started;
};

/* 0, or -errno: -ENOMEM, -ECHILD (a process died), -EINTR (stopped early; the results that had come
 * are whole; or those that are merged are not all), what results_begin() and results_keep()
 * returned, or why no process could be started. */
int driver_run(struct driver *d);
/* The calling process ends now, in the midst of driver_run(): its processes end, and are waited
 * for. A signal's handler may do this. */
void driver_end(void);
/* In one of the processes, with SIG_BLOCK and then SIG_UNBLOCK: it is writing a file, and does not
 * end before that is whole. */
void driver_hold(int how);
/* Such an error in words. */
const char *driver_error(int error);

#endif
