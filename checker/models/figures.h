/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_FIGURES_H
#define TM_CHECKER_MODELS_FIGURES_H
/*
 * The papers' figures: what they measured, and the same in virtual time, plainly, under a profile
 * of their machines. core/stores/figures.txt has all of them, and says at its top what its lines
 * are; figures_run.c does them; docs/figures.md has what came of it.
 */
#include "checker/world/setup.h"

#define FIGURE_SIDES   8 /* systems that a figure compares */
#define FIGURE_KNOBS   4 /* of a side */
#define FIGURE_VALUES  8 /* lengths */
#define FIGURE_EXPECTS 16

/* What is measured of a side. Ratios of papers are of times, of rates, of bytes. */
enum figure_metric {
	FIGURE_PUT,	   /* ns from one return to the next where a PUT lies between, their mean */
	FIGURE_GET,	   /* likewise */
	FIGURE_LATENCY,	   /* of either */
	FIGURE_THROUGHPUT, /* operations in a second, of all clients */
	FIGURE_SERVER,	   /* the same, if nothing but the server's CPU limited it */
	FIGURE_BYTES,	   /* of PM that an update writes, in the paper's layout (count.h) */
	FIGURE_METRICS
};
extern const char *const figure_metrics[];

struct figure_side {
	const char *name;
	const struct tm_store *store;
	const char *variant, *knob[FIGURE_KNOBS];
	unsigned knobs, cleans, line;
};

/* That the figure of side a is from `low` to `high` times that of side b. */
struct figure_expect {
	unsigned a, b;
	double low, high;
	uint32_t value; /* at values of this length; 0: all */
};

struct figure {
	const char *id, *source, *says, *paper;
	const char *why;  /* it is known not to agree; NULL: it agrees */
	const char *open; /* it is not run; NULL: it is */
	unsigned profile; /* figure_profiles[] */
	enum figure_metric metric;
	unsigned reads, clients, keys, ops, klen;
	uint32_t value[FIGURE_VALUES];
	unsigned values;
	struct figure_side side[FIGURE_SIDES];
	unsigned sides;
	struct figure_expect expect[FIGURE_EXPECTS];
	unsigned expects, line;
};

struct figures {
	char *text; /* what strings point into */
	struct figure *figure;
	unsigned figures, room;
};

/* Those of core/stores/figures.txt; or of a text, which is copied. 0, -EINVAL with *error, or
 * -ENOMEM. */
int figures_read(struct figures *all, const char *text, struct input_error *error);
void figures_free(struct figures *all);

/* The profiles that papers' machines have, by name; ends with NULL. */
extern const struct figure_profile {
	const char *name, *text;
} figure_profiles[];
int figure_profile(unsigned i, struct profile *p, struct input_error *error);

struct figure_result {
	double figure[FIGURE_VALUES][FIGURE_SIDES];
	struct figure_ratio {
		double ratio;
		bool agrees, asked;
	} ratio[FIGURE_EXPECTS][FIGURE_VALUES];
	bool agrees;   /* all of them */
	char why[300]; /* it could not be run; or "" */
};

/* Run all of it under this profile. 0; -EIO: r->why; -ENOMEM. */
int figure_run(const struct figure *f, const struct profile *p, struct figure_result *r);
/* One side alone: *out. As figure_run(). */
int figure_measure(const struct figure *f, const struct figure_side *side, uint32_t vlen,
		   const struct profile *p, double *out, char why[300]);

#endif
