/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_EXPECT_H
#define TM_CHECKER_JUDGE_EXPECT_H
/*
 * What a store is expected to do: the file expected.txt of its folder, compiled in.
 *
 *	CONFIG,... CONTRACT,... holds|broken|may-break [SENTENCE]
 *	if HARDWARE,... CONTRACT,... holds|broken|may-break [SENTENCE]
 *	control CONFIG
 *	canary MUTANT VARIANT WORKLOAD|* [NAME=VALUE]
 *
 * CONFIG is the hardware as "name=value" or "default", with "VARIANT/" before it where a variant
 * of the store is meant; or "sizes", one of the store's shapes, or a variant without a seeded bug,
 * whatever the hardware. "*" is every configuration of the default campaign, "shapes" those that
 * are not one of its kinds of hardware (a variant that is no shape is in neither); "!PART" takes
 * the shapes out again whose names have that part ("PART+PART"). Where several rows name a cell,
 * the last one counts: a rule comes first, its exceptions follow. A row without a sentence has that
 * of the row above.
 *
 * if: every configuration whose hardware is one of these, whatever else it has: "name=value", also
 * of a default, with "+" between what belongs together. Knobs that are named together, shapes, and
 * variants of which no row says anything are meant, too.
 *
 * may-break: it does break, but too rarely for the campaign's budget to find it each time.
 * control: seeded bugs are compared with the store under this configuration, where it has none.
 * Its hardware is "default" or "ack_early=off".
 * canary: with the checker's mutant MUTANT, it must miss the store's seeded bug VARIANT
 * (checker/hunt/mutants.c).
 */
#include <stdbool.h>
#include "core/tidemark.h"

struct expectation {
	const char *store, *configs;
	int contract;
	bool broken;
	bool open;	  /* may-break */
	bool conditional; /* "if": configs are hardware */
	const char *why;  /* one sentence */
};

/* NULL: the files do not mention this cell. The files are read at the first call. */
const struct expectation *expect_find(const char *store, const char *config, int contract);
/* TM_BIT()s of the contracts whose breaking is news under a configuration of a store or of one of
 * its variants: what the store breaks by design, or does not promise, its variants may break,
 * too. */
unsigned expect_watched(const struct tm_store *store, const char *config);
/* Is the contract expected to hold in every configuration of the default campaign of which the
 * store's file speaks? */
bool expect_holds(const char *store, int contract);
/* Does a switch of the hardware ("name=value") break what expect_holds() otherwise? */
bool expect_switch_breaks(const char *store, const char *knob);

#define EXPECT_CONTROLS 64 /* at most, of all stores */

/* What a store, or a variant without a seeded bug, keeps. */
struct expect_control {
	const char *store, *variant;
	const char *hardware; /* "default" or "ack_early=off" */
};

/* All controls, in the order of `stores`; *n: how many. */
const struct expect_control *expect_controls(unsigned *n);
/* The contracts that one of them keeps, TM_BIT()s. */
unsigned expect_keeps(const struct expect_control *c);

/* A seeded bug of a store that must be missed with a mutant of the checker. */
struct expect_canary {
	const char *mutant;
	const char *store, *variant;
	const char *workload; /* the only one that is tried; NULL: all */
	const char *knob;     /* of the hardware, "name=value"; NULL: none */
};

const struct expect_canary *expect_canary(const char *mutant); /* NULL: no store has one */

/* Lists "CONFIG,CONFIG,...". Does every word stand for hardware that there is, for a shape of
 * the store's or a part of one, or for a variant? Is the configuration in the list, or meant by its
 * "*" or "shapes", and not taken out again? */
bool expect_configs_are(const char *store, const char *list);
bool expect_names(const char *store, const char *list, const char *config);

/* A mistake in one of the files: "FILE:LINE: what"; NULL: there is none. */
const char *expect_mistake(void);

#endif
