/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_COUNT_ADVICE_H
#define TM_CHECKER_MODELS_COUNT_ADVICE_H
/*
 * What the taxonomy of remote persistence knows of a store's hardware: the cheapest methods that
 * make an update durable before it is acknowledged there. A store that takes more round trips for a
 * PUT could save some.
 */
#include "checker/models/taxonomy.h"
#include "checker/models/waste.h"

struct count_method {
	const char *name; /* NULL: none is sound on this hardware */
	char steps[200];
	unsigned round_trips;
};

struct count_advice {
	char hardware[200];	 /* for tidemark taxonomy --advise */
	struct count_method one; /* of one update, which proves itself */
	struct count_method two; /* of two, the first one before the second one */
};

/* Advice for the setup's hardware; the methods are measured, in `jobs` processes. 0 or -errno. */
int count_advise(const struct setup *s, unsigned jobs, struct count_advice *out);
/* What a round trip takes at least under a profile, ns: a request without data, and its answer. */
double count_round_trip_ns(const struct profile *p);
/* What each call takes that is done in vain, ns. */
double count_waste_ns(const struct waste_row *row, const struct profile *p);

#endif
