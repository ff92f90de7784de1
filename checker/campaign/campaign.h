/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAMPAIGN_CAMPAIGN_H
#define TM_CHECKER_CAMPAIGN_CAMPAIGN_H
/*
 * A campaign: stores x configurations x workloads, each explored under many random
 * runs, or under all runs within bounds, by several processes; then the matrix store x
 * configuration x contract.
 *
 * A unit is one (store, variant, configuration, workload). Its result depends on
 * nothing but the unit and the seed, so the number of processes changes no figure.
 */
#include "checker/campaign/covered.h"
#include "checker/campaign/driver.h"
#include "checker/explore/explore.h"
#include "checker/judge/baseline.h"
#include "faultinject/stops.h"
#include "faultinject/systematic.h"

#define CAMPAIGN_NAME 128

/* What a configuration gets of the campaign's runs and states. */
struct campaign_share {
	unsigned one_in;   /* one in so many; at least 1 */
	const char *often; /* a workload whose name begins so gets all of them; NULL: none does */
	unsigned sized;	   /* one in so many of its workloads gets lengths at edges; 0: none */
	unsigned part;	   /* one in so many of these: too few for all that is expected to break; 0:
			    * all of them */
};

/* The configuration of one row group of the matrix. */
struct campaign_config {
	const struct tm_store *store;
	char variant[48];
	char name[CAMPAIGN_NAME]; /* "default", or the settings that differ: "ddio=off" */
	struct setup setup;	  /* variant, knobs and hardware set; no workload */
	bool shape;		  /* a column of a store's own (tm_store.shapes), or of lengths */
	struct campaign_share share;
	/* NULL, or the names of its workloads: a systematic search whatever the campaign is. A
	 * break is as expected for each cause that is known, however many of its runs show it; and
	 * no sample has missed one, so that another cause is a surprise where one run shows it. */
	const char *const *searched;
	const char *like; /* the configuration whose expectations it has; NULL: its own name's */
};

struct campaign_options {
	uint64_t seed;
	uint64_t runs;	     /* of each unit */
	uint64_t states;     /* of each unit at most; then the runs go on, and the power no longer
			      * fails */
	unsigned deviations; /* of one run at most */
	unsigned jobs;
	const struct baseline *baseline; /* NULL: none. Not where the search is exhaustive */
	bool blames;			 /* keep what surprising breaks are blamed on */
	bool all_causes;  /* no cause is known: what states are blamed on is collected of all */
	bool shares;	  /* it has the workloads for which shares are recorded, and one of the
			   * budgets (checker/judge/known.h): compare */
	unsigned only;	  /* enum happening: nothing else happens in random runs, but for the
			   * power of all, which is limits.no_crash; 0: anything */
	unsigned events;  /* that befall one of several servers in a random run, at most */
	bool twice;	  /* of several servers: after all runs some more, with two of them */
	bool unfilled;	  /* it is not tried first whether stores have the room that they need */
	bool hunt;	  /* of random runs, for one break: they end with the states, nothing is
			   * tried first, and causes are those of the configuration's setup */
	uint64_t first;	  /* of random runs: those before this one are left out */
	bool doublecheck; /* each run twice, event hashes compared */
	bool exhaustive;  /* a systematic search in all configurations; no shares, runs bound it
			     only */
	unsigned preemptions, faults; /* of one run at most; see struct campaign */
	struct explore_limits limits;
	struct covered *covered; /* NULL: coverage is not wanted. Else limits.no_tree, too */
	const struct driver_bounds
		*bounds;	/* NULL: none; units that are not done are left zeroed */
	driver_shows *progress; /* NULL: not wanted */
	/* NULL, or: this unit has come; cells and totals of its configuration say what its units
	 * say so far. In the order in which they come. */
	void (*taken)(void *taken_arg, unsigned unit);
	void *taken_arg;
};

#define NEAR_PARTS 5 /* nearer to a limit than one in so many is near */

/* One contract of one configuration. */
struct campaign_cell {
	bool broken;
	unsigned unit;		  /* the first unit in which it broke */
	struct failure_mode mode; /* and the first run */
	uint64_t broken_states;
	/* Broken states without a known cause (checker/judge/known.h), and the runs that have
	 * them. */
	uint64_t strange_states, strange_runs;
	bool strange;	       /* enough of them: STRANGE_RUNS of `whole`, or any */
	unsigned strange_unit; /* the first unit in which it so broke, */
	uint64_t strange_run;  /* the first run, */
	struct blame blame;    /* and what that is blamed on */
	bool baselined;	       /* compared with the baseline alone: one strange run is enough */
	bool accepted;	       /* there are states with a cause that the baseline accepts */
	/* Far more runs than recorded show a known cause: the one with the most too many, */
	bool often;
	unsigned often_row;  /* its row, */
	uint64_t often_runs; /* how many show it, */
	uint32_t recorded;   /* how many were recorded, of so many runs, */
	unsigned often_unit; /* the unit in which most do so, */
	uint64_t often_run;  /* and its first run */
	/* Not so many, but so many runs show a known or an unknown cause that few more need
	 * attention; 0: there is no such cause. */
	uint64_t nearly_runs, nearly_limit;
};

enum break_sort {
	BREAK_ANY,
	BREAK_STRANGE, /* for an unknown cause */
	BREAK_OFTEN,   /* for a known one, which is far more frequent than recorded */
};

/* A run of a unit that broke a contract. */
struct campaign_break {
	unsigned unit, contract;
	struct failure_mode mode;
	enum break_sort sort;
	unsigned row; /* BREAK_OFTEN: of the cause (known_words()) */
};

/* Such a run, to be freed: its setup, and the deviations that lead to the break. */
struct broken_run {
	unsigned contract; /* TM_CONTRACTS: nothing broke */
	struct setup setup;
	struct deviations path;
	char text[300]; /* how it breaks */
};

struct campaign_unit {
	unsigned config, workload;
	struct explore_counts counts;
	unsigned told; /* TM_BIT()s: contracts of which something was found; of others all is 0 */
	struct {
		bool found;
		uint64_t run, broken;
		struct failure_modes modes;
		struct strange strange;
		unsigned deviations; /* systematic search: of that run */
		struct deviation deviation[SYSTEMATIC_DEPTH];
	} contract[TM_CONTRACTS];
	/* By known cause, from the store's first one: runs that show it, and the first of them. */
	uint32_t shown[KNOWN_STORE_ROWS], shown_run[KNOWN_STORE_ROWS];
	uint64_t accepted; /* rows of the baseline's for the configuration that were seen */
	bool complete;	   /* all runs within the bounds, or all but reorderings; random: the states
			    * were
			    * enough */
	uint64_t diverged; /* --doublecheck: runs whose hashes differ */
	int error;	   /* -errno: the unit could not run */
	bool unstarted;	   /* nothing could be run: explorer.unstarted */
	char why[WORLDS_WHY];
	bool done;
};

struct campaign {
	struct campaign_config *config;
	unsigned configs;
	struct workload *workload;
	unsigned workloads;
	unsigned *faults; /* by workload; NULL: options.faults for each */
	struct campaign_options options;
	/* results */
	struct campaign_unit *unit;		    /* [config * workloads + workload] */
	struct campaign_cell (*cell)[TM_CONTRACTS]; /* by config */
	struct explore_counts *total;		    /* by config */
	double seconds;
};

extern const struct campaign_options campaign_default;
/* A systematic search of everything within the bounds, whatever it costs. */
void campaign_search_all(struct campaign_options *o);
/* Is a configuration searched systematically? */
bool campaign_searches(const struct campaign *c, unsigned config);
/* The name of the configuration whose expectations it has. */
const char *campaign_like(const struct campaign_config *cfg);

/* 0, or -errno: -ENOMEM, -ECHILD (a process died),
 * -EINTR (ended early by options.bounds: unit.done says what is done). */
int campaign_run(struct campaign *c);
/* Number of units of a configuration that are done. */
unsigned campaign_done(const struct campaign *c, unsigned config);
/* Everything: configurations, workloads, results. */
void campaign_free(struct campaign *c);
/* Explore one unit in this process into a zeroed *result; no further once a contract of `stop_at`
 * (TM_BIT()s) is broken. `first`: NULL, or where that break goes, to be freed in any case.
 * result->error -ENOTRECOVERABLE: the tree of recoveries was wrong about an image, which `first` is
 * then. */
void campaign_explore(const struct campaign *c, unsigned unit, unsigned stop_at,
		      struct campaign_unit *result, struct broken_run *first);
/* What becomes of a workload under a configuration. */
enum campaign_use {
	CAMPAIGN_USED,
	CAMPAIGN_USELESS,   /* the store has not got its operations, or cleans nothing; or it is
			     * not among those that are searched */
	CAMPAIGN_MORE_KEYS, /* it needs more keys than the store takes */
	CAMPAIGN_ANOTHER,   /* cut to the store's limits it equals another one */
	CAMPAIGN_USES
};
enum campaign_use campaign_use(const struct campaign *c, unsigned unit);
/* Faults in one run of a unit at most. */
unsigned campaign_faults(const struct campaign *c, unsigned unit);
/* Was everything within the bounds looked at in a configuration? NULL: yes; else why not. */
const char *campaign_left_out(const struct campaign *c, unsigned config);
/* A workload gets one in so many of the campaign's runs and states. */
unsigned campaign_one_in(const struct campaign_share *share, const char *workload);
/* What the lengths of a unit are drawn from, if it is sized; each has others. */
uint64_t campaign_sizes_seed(uint64_t seed, unsigned unit);
/* The setup of a unit, finished, with a copy of its workload. */
int campaign_setup(const struct campaign *c, unsigned unit, struct setup *s);
/* The first run in which the cell broke for an unknown cause; or for the known one that is far more
 * frequent than recorded. */
struct campaign_break campaign_strange(const struct campaign *c, unsigned config,
				       unsigned contract);
struct campaign_break campaign_often(const struct campaign *c, unsigned config, unsigned contract);
/* Runs of a configuration that show a known cause: the row's number among those of the store.
 * *most: the unit with the most of them. */
uint64_t campaign_shown(const struct campaign *c, unsigned config, unsigned row, unsigned *most);
/* Rows of the baseline's for the configuration that states so far have shown, from its first one
 * on. */
uint64_t campaign_accepted(const struct campaign *c, unsigned config);
/* Repeat that run, until the contract breaks in that way. 0 or -errno; -ENOENT: it does not;
 * -ENOTRECOVERABLE: *out is the run of which the tree of recoveries was wrong. *out is to be freed
 * in any case. */
int campaign_again(const struct campaign *c, const struct campaign_break *which,
		   struct broken_run *out);
/* Take how the explorer broke run->contract, as campaign_again(). `explored`: 0 or -errno of it. */
int broken_run_take(struct broken_run *run, const struct explorer *ex, int explored);
void broken_run_free(struct broken_run *run);

#endif
