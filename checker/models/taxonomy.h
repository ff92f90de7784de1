/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_TAXONOMY_H
#define TM_CHECKER_MODELS_TAXONOMY_H
/*
 * Measuring the taxonomy of remote persistence: each method of appending on each kind of
 * hardware is a cell, which a systematic search judges (docs/search.md). A cell depends on
 * nothing but itself and the options, so the number of processes changes no figure.
 */
#include "checker/campaign/campaign.h"
#include "scenarios/taxonomy/methods.h"
#include "scenarios/taxonomy/taxonomy.h"

#define TAXONOMY_METHODS 40 /* at most */
#define TAXONOMY_BREAKS	 3  /* of one cell, at most: DUR, FSCK, RDA */
#define TAXONOMY_TRACE	 1000

struct taxonomy_cell;

struct taxonomy_options {
	struct taxonomy_knobs knobs;
	const struct workload *workload;
	unsigned preemptions;
	uint64_t states; /* of each cell at most */
	bool traces;	 /* shrink what breaks, and keep the trace */
	struct driver_how how;
	/* NULL, or: this cell is measured. */
	void (*taken)(void *taken_arg, const struct taxonomy_cell *cell);
	void *taken_arg;
};

/* One way in which a cell's method is not sound. */
struct taxonomy_break {
	uint8_t contract;
	bool whole;		    /* it could not be shrunk */
	char text[130];		    /* what was seen */
	char trace[TAXONOMY_TRACE]; /* the trace file; "": not asked for, or too long:
				       taxonomy_trace() */
};

struct taxonomy_result {
	bool measured;
	uint8_t verdict; /* TAXONOMY_* bits */
	bool complete;	 /* no run or state that was left out could change the verdict */
	bool exhaustive; /* everything within the bounds was looked at */
	int error;	 /* -errno: it could not be run */
	char why[WORLDS_WHY];
	uint64_t states, runs, spared;
	uint8_t breaks;
	struct taxonomy_break broken[TAXONOMY_BREAKS]; /* DUR, then FSCK, then others */
};

struct taxonomy_cell {
	uint8_t method, column, transport;
	struct taxonomy_result result;
};

struct taxonomy {
	struct taxonomy_options options;
	struct taxonomy_cell *cell;
	unsigned cells;
	uint64_t states, runs, spared;
	/* private: of the run that is on */
	unsigned *todo; /* cells */
	unsigned todos;
};

/* Number of methods that the store offers, and their names as the knob has them. */
unsigned taxonomy_methods(void);
const char *taxonomy_method(unsigned method);
int taxonomy_find_method(const char *name); /* -ENOENT */

/*
 * Name the whole hardware, for advice about one: add the knobs that decide what is sound and that
 * `knob` does not name, at their defaults. Returns their new number, at most `room`.
 */
unsigned taxonomy_name_hardware(const char **knob, unsigned knobs, unsigned room);

/*
 * Check the options' switches, and make a cell of each method of `methods` (1 << method) on each
 * hardware that has them. -EINVAL with *bad, the index of a switch, and *expected; -ENOMEM.
 * taxonomy_close() in any case.
 */
int taxonomy_open(struct taxonomy *t, const struct taxonomy_options *options, uint64_t methods,
		  unsigned *bad, const char **expected);
/* Measure all cells. 0 or -errno; -EINTR: stopped early; cell.result.measured says which are; a
 * cell that could not be run says so itself. */
int taxonomy_run(struct taxonomy *t);
/* Measure as many as it takes to know the cheapest sound methods on one kind of hardware: for each
 * kind and primitive, the cheapest first, until one is sound. Likewise. */
int taxonomy_run_cheapest(struct taxonomy *t, unsigned column, unsigned transport);
void taxonomy_close(struct taxonomy *t);

/* A cell's hardware and switches, without a workload. */
void taxonomy_setup(const struct taxonomy *t, const struct taxonomy_cell *cell, struct setup *s);
/* Find and shrink a break again, and print its trace. 0 or -errno. */
int taxonomy_trace(const struct taxonomy *t, const struct taxonomy_cell *cell,
		   struct taxonomy_break *broken, FILE *out);

/* The cell of a method; NULL: it was not asked for. */
const struct taxonomy_cell *taxonomy_at(const struct taxonomy *t, unsigned method, unsigned column,
					unsigned transport);
/* The cell's method and its cost there. */
struct method_cost taxonomy_cost(const struct taxonomy *t, const struct taxonomy_cell *cell);
const struct append_method *taxonomy_append(const struct taxonomy *t,
					    const struct taxonomy_cell *cell);
void taxonomy_acts(const struct taxonomy *t, const struct taxonomy_cell *cell, struct acts *out);

/*
 * The cheapest sound method of a kind, by what was measured. `primitive` TAXONOMY_PRIMITIVES: of
 * all that cards have. *cheaper: the dearest of those that would be cheaper, but are not sound;
 * NULL in it: there is none. The first of those that cost the same. NULL: none is sound.
 */
const struct taxonomy_cell *taxonomy_cheapest(const struct taxonomy *t, bool compound,
					      enum taxonomy_primitive primitive, unsigned column,
					      unsigned transport,
					      const struct taxonomy_cell **cheaper);

#endif
