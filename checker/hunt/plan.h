/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_PLAN_H
#define TM_CHECKER_HUNT_PLAN_H
/*
 * What a campaign tests: the default campaign, or the part of it that was asked for.
 *
 * The default campaign runs the stores that are tested by default, each under seven kinds of
 * hardware, with every built-in workload; the plain hardware gets the whole budget, the others a
 * share of it. Smaller shares go to a configuration "sizes", in which all lengths are at edges
 * (workload_resize()), and to each store's shapes (tm_store.shapes), with such lengths in every
 * second workload. Shapes of all other stores are tested, too, with a third of that; so are these
 * stores where all are asked for. With the budget `whole` a row "exhaustive" of each store with one
 * server has a few small workloads that are searched systematically.
 *
 * Whatever is named narrows it: a store, or those that have the
 * named variants and knobs; with knobs or workloads named, the plain hardware only.
 */
#include "checker/campaign/campaign.h"

#define PLAN_CONFIGS 512 /* of a campaign, at most */
#define PLAN_TEXT    400 /* bytes of a message */

struct plan_names {
	const char *const *name;
	unsigned n;
};

/* What was asked for. Stores, variants and names of knobs exist. */
struct plan {
	struct plan_names store, variant, knob;
	bool workloads_named;
	bool one_config; /* the plain hardware only, even if nothing is named */
	bool all_stores; /* where none is named: also those that are not tested by default */
	bool exhaustive;
	bool searches; /* and the rows that are searched beside random runs */
};

/* A store has this variant (which may be "default"). */
bool plan_has_variant(const struct tm_store *store, const char *name);
/* "name=value" names a knob of this store (NULL: of any), or of the hardware. */
bool plan_has_knob(const struct tm_store *store, const char *text);
/* And a value that it has there. */
bool plan_takes_knob(const struct tm_store *store, const char *text);
/*
 * Fill c->config, which has room for PLAN_CONFIGS. 0, or -EINVAL with a message: a value that its
 * knob does not have, too many configurations, or none.
 */
int plan_configs(struct campaign *c, const struct plan *p, char why[PLAN_TEXT]);
/* Set all parts of "PART+PART": knobs, "name=value", and variants; of "default" none. 0, or that of
 * setup_switch() and setup_variant(). */
int plan_set_parts(struct setup *s, const char *config);
/* Make a column of the default campaign of a setup: "sizes", or one of the store's shapes. *share:
 * what it gets. */
void plan_column(struct setup *s, const char *column, struct campaign_share *share);
/* Make the row "exhaustive" of a configuration. */
void plan_search(struct campaign_config *cfg);
/* Add the workloads of a campaign that names none: all that are built in. 0 or -ENOMEM. */
int plan_builtin_workloads(struct campaign *c);
/* The same for a systematic search: the smallest, each with c->options' bounds. Those that are not
 * given are chosen: faults where two writers meet, and fewer preemptions if all stores have several
 * servers. */
int plan_smallest_workloads(struct campaign *c, bool preemptions_given, bool faults_given);
/* Append a workload, which is then the campaign's. 0, or -ENOMEM with *w still the caller's. */
int plan_add_workload(struct campaign *c, const struct workload *w);
/* Can the stores run this workload, as it is or (`limit`) within their limits, and the histories
 * hold it? 0; -EINVAL or -ENOMEM with a message. */
int plan_check_workload(const struct campaign *c, unsigned at, bool limit, char why[PLAN_TEXT]);

#endif
