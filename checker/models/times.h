/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_TIMES_H
#define TM_CHECKER_MODELS_TIMES_H
/*
 * How long operations take in virtual time, under a profile, and where that time goes.
 *
 * Clients do YCSB's operations, each the next one as soon as one has returned, in a world in which
 * every choice is answered plainly and the power does not fail. An operation's time is from the
 * return before it to its own; each client's first one is not counted, as it has none before it,
 * and neither are those before all clients have done one, or after one of them has ended: what is
 * counted has all clients at work. Where that is next to nothing, since one has ended before
 * another has connected, those that have done one wait for the others. Nothing is drawn, so two
 * runs are equal.
 */
#include "checker/world/setup.h"

#define TIMES_MAX_OPS 1000000

/* What an operation's time is made of; each but the last is some costs of the profile
 * (core/hardware/profile.h). */
enum time_part {
	TIME_POST,
	TIME_WIRE,
	TIME_DMA,
	TIME_HANDLE,
	TIME_COPY,
	TIME_CRC,
	TIME_FLUSH,
	TIME_FENCE,
	TIME_BANDWIDTH,
	TIME_WAKE,
	TIME_REST, /* loads and stores, locks, sleeping; and what is no sum of parts */
	TIME_PARTS
};
extern const struct time_part_name {
	const char *name, *what;
} time_parts[TIME_PARTS];

enum { TIME_PUT, TIME_GET, TIME_KINDS };

struct times {
	struct op_times {
		uint64_t n;		  /* that were counted */
		double mean, median, p99; /* ns */
	} op[TIME_KINDS];
	double rate;   /* operations in a second, of all clients */
	double server; /* the same, if nothing but the server's CPU limited it */
};

/*
 * Run the clients' operations, TIMES_MAX_OPS at most, on the setup's store, under its knobs and its
 * profile; `cleans`: so many cleanings by one more client. More than WORKLOAD_MAX_OPS are several
 * runs, each of a new world and of other operations, so that memory has an end. 0; -EIO: it could
 * not be, `why`; -ENOMEM.
 */
int times_run(const struct setup *base, const struct ycsb *y, unsigned cleans, struct times *out,
	      char why[300]);

/*
 * The same, and part[kind][p], ns: twice what the mean would be less if the costs of p were half of
 * what they are. An operation that takes twice as long when all costs are twice as high is the sum
 * of these. Without costs there would be no end to what polls, and no time.
 */
int times_parts(const struct setup *base, const struct ycsb *y, struct times *out,
		double part[TIME_KINDS][TIME_PARTS], char why[300]);

#endif
