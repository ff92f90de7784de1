/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FAULTINJECT_DEVIATION_H
#define TM_FAULTINJECT_DEVIATION_H
/*
 * A deviation: one answer of sim_choose() other than the plain one, with the name of
 * its choice point. docs/trace-format.md describes the words.
 */
#include "core/pmem/crash.h"
#include "core/rt/choose.h"

struct deviation {
	uint8_t kind;	      /* enum choice_kind */
	char who[ACTOR_NAME]; /* "": none (a line, the end of the run) */
	struct op_label op;
	uint16_t occurrence;
	uint32_t a, b, c;
	unsigned answer;
	unsigned n;    /* how many answers there were; 0: not known (read from a file) */
	unsigned line; /* of the file it was read from; 0: recorded */
};

/* Lines are named by the store's regions. */
struct deviation_names {
	const struct tm_region *region;
	unsigned regions;
};

#define DEVIATION_TEXT 256 /* bytes that deviation_print() needs at most, its NUL included */

/* The point's choice_key(). */
uint64_t deviation_key(const struct deviation *d);
void deviation_record(struct deviation *d, const struct choice_point *at, unsigned answer,
		      unsigned n);
void deviation_print(const struct deviation *d, const struct deviation_names *names, char *buf,
		     size_t n);
/* Reads what deviation_print() wrote. 0, or -EINVAL with *expected. */
int deviation_parse(struct deviation *d, const struct deviation_names *names, const char *text,
		    const char **expected);
/* What the deviation brings about, without how long and how often: "a put is late". `who` and `op`
 * say whose it is: "client", "a put". */
void deviation_effect(const struct deviation *d, const char *who, const char *op, char *buf,
		      size_t n);
/* "c1.put2", "c1.put2#3", "-", "-#2". */
void op_label_print(struct op_label op, unsigned occurrence, char *buf, size_t n);

/* A growing list. */
struct deviations {
	struct deviation *d;
	unsigned n, room;
};
int deviations_add(struct deviations *list, const struct deviation *d); /* 0 or -ENOMEM */
/* Add all of `from` after what is there. 0 or -ENOMEM. */
int deviations_append(struct deviations *list, const struct deviations *from);
void deviations_free(struct deviations *list);

#endif
