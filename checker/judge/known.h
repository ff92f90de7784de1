/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_KNOWN_H
#define TM_CHECKER_JUDGE_KNOWN_H
/*
 * The known causes of the breaks that are expected of a store: the file causes.txt of its folder,
 * compiled in. Without that file, any break of a contract that is expected to break is as
 * expected. With it, only one with a known cause is; another one is a surprise.
 *
 *	CONFIG,... CONTRACT SAW AGAINST [PART...]
 *
 * CONFIG is as in expected.txt (checker/judge/expect.h); with "VARIANT/" before the list the row is
 * about a variant alone, else about all. The rest is as in checker/judge/blame.h. A row explains a
 * break that shows the same and has at least its parts. Lines that begin with '#'
 * and blank ones are skipped.
 *
 * Causes are compared where the default campaign runs, and under what a row names: other hardware
 * may break what it likes. So may variants that are no bugs and that no row names;
 * "VARIANT/CONFIG,... compared" names one for which the rows about all are enough. A few runs with
 * an unknown cause are no surprise (STRANGE_RUNS, checker/explore/strange.h). The number of runs
 * with each known cause is compared as well (checker/judge/shares.h).
 */
#include "checker/judge/blame.h"

#define KNOWN_ROWS	 2048 /* at most, of all stores */
#define KNOWN_STORE_ROWS 256  /* and of one */
#define KNOWN_WORDS	 200  /* bytes of a row, with one blank between words, and its '\0' */

/* A set of rows. They are numbered through all stores; those of a store are consecutive. */
struct known_set {
	uint64_t bits[KNOWN_ROWS / 64];
	uint64_t accepted; /* of struct known.accepted */
};

/* The causes that are known of one store under one configuration. */
struct known {
	unsigned compared; /* TM_BIT()s: of these contracts, breaks are compared with them */
	struct known_set row;
	unsigned first; /* of the store's rows */
	/* To see what one row explains (known_only()): all else counts as explained. */
	bool inverted;
	/* Causes that a baseline accepts beside those (checker/judge/baseline.h): the caller's. */
	const struct blame *accepted;
	unsigned accepteds;
	unsigned strict;    /* TM_BIT()s: a break is a surprise, and compared with them alone */
	unsigned collected; /* of these, breaks are not compared, but what they are blamed on is
			     * kept as if no cause were known */
};

/* What is known of the store, or of its variant, under a configuration. */
void known_find(const struct tm_store *store, const char *variant, const char *config,
		struct known *out);
/* The rows alone: nothing is compared. Has the store the file, about this configuration? */
bool known_rows(const struct tm_store *store, const char *variant, const char *config,
		struct known *out);
/* For recording: no row, and compared are all breaks that are no surprise. */
void known_nothing(const struct tm_store *store, const char *variant, const char *config,
		   struct known *out);
#define KNOWN_ACCEPTED 64 /* at most */

/* Accept these causes, too, which are `n` of a baseline's for this store, variant and
 * configuration.
 */
void known_accept(struct known *k, const struct tm_store *store, const char *variant,
		  const char *config, const struct blame *accepted, unsigned n);
/* Collect all that is not compared. */
void known_collect(struct known *k);
/* From now on only what this row explains counts as not explained. */
void known_only(struct known *k, unsigned row);
/* Has the break a known cause? `which`: NULL, or the rows that explain it are added. */
bool known_explains(const struct known *k, const struct blame *b, struct known_set *which);
/* Rows of the store. */
unsigned known_store_rows(const struct tm_store *store, unsigned *first);
/* A row as its file has it, with one blank between words; its contract. */
const char *known_words(unsigned row);
unsigned known_contract(unsigned row);
/* Is it the variant "default", or a seeded bug? Rows about all are about it. */
bool known_as_default(const struct tm_store *store, const char *variant);
/* A mistake in one of the files: "FILE:LINE: what"; NULL: there is none. */
const char *known_mistake(void);

#endif
