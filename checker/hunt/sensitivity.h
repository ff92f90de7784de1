/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_SENSITIVITY_H
#define TM_CHECKER_HUNT_SENSITIVITY_H
/*
 * Does a knob matter? A knob that changes no verdict is one that no test would miss. The `knob`
 * lines of the files of claims say of each value but the first of each knob what it changes, and
 * where; this is tested here.
 *
 * A line that says breaks or cures names a store, its other knobs, and workloads. The side on
 * which something must break is explored until it does; the other side must then hold, in the same
 * workload, for several times as many runs: exploring is random, and a rare break may be met on one
 * side by chance.
 *
 * An inert value is set alone, and all small workloads and those of the file are explored with it
 * and without, at the default hardware and, since much breaks there by design, where acknowledged
 * is visible. No verdict may be another, contract by contract and workload by workload.
 *
 * No machine lives on after recovery: what is drawn for such a life may break what the workload
 * itself cannot, by chance on one side only.
 */
#include "checker/explore/driver.h"
#include "checker/hunt/claims.h"

#define SENSITIVITY_WHY (WORLDS_WHY + 160)

/* What came of a line. */
struct knob_result {
	int error;		   /* -errno: could not be tested */
	char why[SENSITIVITY_WHY]; /* or "" */
	bool broke;  /* a contract broke on the side that must, or, if inert, on one side only */
	bool held;   /* and the other side held */
	bool breaks; /* if inert and it is not: with the knob it breaks; or the other way round */
	unsigned contract;
	char workload[64];
	uint64_t run;	    /* the first that broke */
	uint64_t held_runs; /* of the other side */
	char where[32];	    /* if inert and it is not: the store, and what else was set */
};

struct sensitivity {
	const struct claims *claims;
	unsigned jobs;
	uint64_t seed;
	driver_shows *progress;		/* NULL: not wanted */
	struct knob_result *result;	/* by knob line */
	char why[SENSITIVITY_WHY + 80]; /* after an error: why, or "" */
	struct campaign campaign;	/* private: the stores without any knob set */
};

/* Test all knob lines. 0 or -errno, as campaign_run(). */
int sensitivity_run(struct sensitivity *f);
void sensitivity_free(struct sensitivity *f);
/* Is it as the line says? */
bool knob_result_as_said(const struct claim_knob *line, const struct knob_result *result);

/*
 * Each value but the first of each knob of the stores, and of the hardware (*store is then NULL).
 * False at the end. Seeded bugs are no knobs: they have tests of their own.
 */
bool sensitivity_value(unsigned i, const struct tm_store **store, char *knob, size_t n);

#endif
