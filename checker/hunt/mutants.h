/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_MUTANTS_H
#define TM_CHECKER_HUNT_MUTANTS_H
/*
 * Seeded bugs, and whether they are found. A tester that has never been seen to find
 * a bug proves nothing by finding none; mutants.c says how each is looked for.
 */
#include "checker/world/checker_mutant.h"
#include "checker/campaign/driver.h"
#include "checker/explore/explore.h"

enum mutant_kind {
	MUTANT_STORE,	/* a store's variant: must break a contract that it names */
	MUTANT_MODEL,	/* a bug of the emulated NIC or memory: a store that is right must seem
			   broken, or a rule of the hardware must be */
	MUTANT_CHECKER, /* a bug that makes the tester miss bugs: a store's seeded bug must be
			 * missed */
	MUTANT_CONTROL, /* no bug: nothing must be found. store NULL: the rules of the hardware */
};

struct mutant {
	enum mutant_kind kind;
	/* part: the store, or the part of Tidemark. MODEL and CHECKER: name is the knob's value */
	const char *part, *name, *what;
	const struct tm_store *store;	    /* STORE and CONTROL */
	const struct tm_variant *variant;   /* STORE */
	const struct expect_canary *canary; /* CHECKER; NULL: no store has one */
	unsigned breaks;		    /* STORE: what it says; CONTROL: what must hold */
	bool ack_early;			    /* CONTROL: at this hardware */
};

struct mutant_options {
	uint64_t seed;
	uint64_t states; /* of one mutant at most */
	bool shrink;
	/* Knobs of stores and hardware, "NAME=VALUE", for bugs and controls alike. */
	const char *const *knob;
	unsigned knobs;
	/* Receives a shrunk failure that breaks the contract again; may be NULL. Both are gone when
	 * it returns. */
	void (*shrunk)(void *arg, struct setup *setup, const struct deviations *list,
		       unsigned contract);
	void *arg;
};
extern const struct mutant_options mutant_default;

struct mutant_result {
	bool found;	   /* a CONTROL's: something broke that must not */
	unsigned contract; /* TM_CONTRACTS: none, see `text` */
	/* Not found, but these broke, and so they do without the bug: TM_BIT()s. 0: nothing did. */
	unsigned anyway;
	bool searched; /* by a systematic search: its runs and states have bounds of their own */
	char store[16], variant[32], hardware[64],
		workload[64];  /* where it was found; workload: or the rule */
	uint64_t run;	       /* number of the run that breaks it, in its workload */
	uint64_t runs, states; /* of the whole search */
	double seconds;	       /* wall clock, shrinking not included */
	bool shrunk;	       /* the trace was shrunk, and its replay breaks the same contract */
	unsigned operations, deviations; /* of the shrunk trace */
	char text[300];			 /* how it shows */
};

#define MUTANTS_MAX 512 /* there are no more */

/* All there are. Returns how many. */
unsigned mutants_list(struct mutant list[MUTANTS_MAX]);
/* 0; -ENOMEM; -EIO: a store cannot run a workload, out->text says why. */
int mutant_search(const struct mutant *m, const struct mutant_options *o,
		  struct mutant_result *out);

/* --- all, or those that are named, with the controls on which they rest --- */

struct mutants_run {
	struct mutant_options options;
	struct driver_how how; /* attention: a bug was not found, or a control breaks */
	/* chosen: bugs before controls */
	struct mutant mutant[MUTANTS_MAX];
	unsigned mutants;
	/* results */
	struct mutant_answer {
		int error;
		struct mutant_result result;
	} answer[MUTANTS_MAX];
	bool done[MUTANTS_MAX];
	unsigned searched; /* mutants that are done */
	unsigned missed;   /* bugs that were not found */
	unsigned untold;   /* bugs that break only what breaks without them, too */
	unsigned dirty;	   /* controls that broke */
	unsigned unsure;   /* bugs of stores whose trace was not shrunk, or did not replay */
};

/* Choose the mutants of these names, which are those of bugs or of parts; none: all. Of these only
 * `variant`s with any of the given names, and with r->options.knob only those of stores that have
 * the knobs. 0, or -ENOENT with *unknown, the first name or variant that no bug has. */
int mutants_choose(struct mutants_run *r, char *const *name, unsigned names,
		   const char *const *variant, unsigned variants, const char **unknown);
/* Look for all of them. 0 or -errno; -EINTR: stopped early, with the results of what is done; -EIO:
 * mutant r->mutant[*failed] could not be run. */
int mutants_search(struct mutants_run *r, unsigned *failed);

#endif
