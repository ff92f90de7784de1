/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_KNOWN_H
#define TM_CHECKER_JUDGE_KNOWN_H
/*
 * The known causes of the breaks that are expected of a store: the file causes.txt of its folder,
 * compiled in. Without that file, any break of a contract that is expected to break is as
 * expected. With it, only one with a known cause is; another one is a surprise.
 *
 *	column CONFIG
 *	...
 *	CONFIG,... CONTRACT SAW AGAINST [PART...] [| RUNS ...]
 *
 * CONFIG of a row is as in expected.txt (checker/judge/expect.h); with "VARIANT/" before the list
 * the row is about a variant alone, else about all. The rest is as in checker/judge/blame.h. A row
 * explains a break that shows the same and has at least its parts. Lines that begin with '#' and
 * blank ones are skipped.
 *
 * Causes are compared where the default campaign runs, and under what a row names: other hardware
 * may break what it likes. So may variants that are no bugs and that no row names;
 * "VARIANT/CONFIG,... compared" names one for which the rows about all are enough. A few runs with
 * an unknown cause are no surprise (STRANGE_RUNS, checker/explore/strange.h).
 *
 * A bug whose breaks have a known cause cannot be told from the design, but it makes them more
 * frequent. RUNS has a number for each column: of the runs of a campaign with the budget `whole`
 * (checker/campaign/budget.h) and all workloads, so many broke a contract in a way that the row
 * explains, at most, over several seeds; "." is 0. A column is a configuration of the store,
 * "VARIANT/CONFIG" of a variant that is no seeded bug; one of a seeded bug is compared with that of
 * what it is put into. Columns come first. `scripts/causes` adds rows, `scripts/shares` records the
 * numbers.
 *
 * Runs are counted, not states: one run that leaves many lines in flight has thousands of broken
 * states, so that their number varies with the seed by a factor of ten; the number of runs hardly
 * varies more than if each was drawn for itself. It is counted for each row and each column,
 * because in a sum the few breaks that a bug adds would be lost among those of the design.
 */
#include "checker/judge/blame.h"
#include "core/text/text.h"

#define KNOWN_ROWS	 2048 /* at most, of all stores */
#define KNOWN_STORE_ROWS 256  /* and of one */
#define KNOWN_WORDS	 256  /* bytes of a row, with one blank between words, and its '\0' */
#define KNOWN_COLUMNS	 64   /* of a store, at most */
#define KNOWN_COLUMN	 64   /* bytes of a column's name */

struct known_columns {
	char name[KNOWN_COLUMNS][KNOWN_COLUMN];
	unsigned n;
	bool end; /* there was a row */
};

struct known_row {
	const struct tm_store *store; /* of what is compiled in */
	char *configs;		      /* in the line */
	char words[KNOWN_WORDS];
	bool bare;    /* it names a variant and explains nothing */
	bool counted; /* it has numbers */
	struct blame blame;
	uint32_t runs[KNOWN_COLUMNS];
};

/* Read a line of such a file. 0: a row; 1: a column, which is added; -EINVAL. */
int known_read(struct text *t, char *line, struct known_columns *columns, struct known_row *row);
/* The column of that name, or -1. */
int known_column(const struct known_columns *columns, const char *name);

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
/* The name of a configuration's column. */
void known_column_name(const struct tm_store *store, const char *variant, const char *config,
		       char name[KNOWN_WORDS]);
/* *runs: those that a row of the store is recorded to explain. False: nothing is recorded of it. */
bool known_share(const struct tm_store *store, const char *variant, const char *config,
		 unsigned row, uint32_t *runs);
/* More than this are far more than what is recorded. */
uint64_t known_limit(uint32_t recorded);
/* A mistake in one of the files: "FILE:LINE: what"; NULL: there is none. */
const char *known_mistake(void);

#endif
