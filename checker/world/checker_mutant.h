/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_CHECKER_MUTANT_H
#define TM_CHECKER_WORLD_CHECKER_MUTANT_H
/*
 * Mutants of the checker: each makes it lenient, so that it misses bugs that it should find. They
 * are switched by the same knob `mutant` as those of the machine (core/hardware/mutant.h), and are
 * in struct setup. Each is a line or two where its name is in the code: CHECKER_MUTANT(setup,
 * FSCK_NEVER).
 */
#include "core/hardware/mutant.h"

/* enumerator, name, part, what it does */
#define CHECKER_MUTANTS(X)                                                                       \
	X(PLAIN_ONLY, "plain_only", "explorer",                                                  \
	  "Schedules and faults are drawn, and not applied.")                                    \
	X(FSCK_NEVER, "fsck_never", "explorer",                                                  \
	  "The structural check after recovery is left out.")                                    \
	X(LIVE_NEVER, "live_never", "explorer", "Operations that do not end are not noticed.")   \
	X(FOREIGN_IS_ABSENT, "foreign_is_absent", "explorer",                                    \
	  "Bytes that nobody wrote count as not found.")                                         \
	X(CRASH_NO_OLDER, "crash_no_older", "explorer",                                          \
	  "Lines survive as their newest version only.")                                         \
	X(CRASH_NO_FENCE, "crash_no_fence", "explorer", "The power never fails before a fence.") \
	X(CRASH_NO_DRAIN, "crash_no_drain", "explorer",                                          \
	  "The power never fails before a line drains to PM.")                                   \
	X(CRASH_ONCE, "crash_once", "explorer", "The power never fails during recovery.")        \
	X(LIFE_NEVER, "life_never", "explorer",                                                  \
	  "A store that has recovered is read, and not used any further.")                       \
	X(SEEN_NO_HISTORY, "seen_no_history", "explorer",                                        \
	  "Points with equal images are taken for equal, whatever clients have seen.")           \
	X(READ_FIRST_KEY, "read_first_key", "explorer",                                          \
	  "After recovery only the first key is read.")                                          \
	X(FLOOR_KEPT, "floor_kept", "judge",                                                     \
	  "KEEP's lower bound is never raised above the load phase.")                            \
	X(SHRINK_ANY, "shrink_any", "shrinker",                                                  \
	  "Shrinking is content with a break of any contract.")                                  \
	X(TASKS_NEVER_HELD, "tasks_never_held", "sources", "Clients and servers never stall.")

/* The explorer notices these itself, in every command: explore_run() returns -ENOTRECOVERABLE. More
 * of them are in checker/recall/tree.h and checker/world/checkpoint.h, for tests of the explorer.
 */
#define NOTICED_MUTANTS(X)                                                      \
	X(TREE_LINE_LEFT_OUT, "tree_line_left_out", "explorer",                 \
	  "Images that differ in a line of odd number are taken for the same.") \
	X(SEEN_24_BITS, "seen_24_bits", "explorer",                             \
	  "Points are told apart by 24 bits of their hash.")

enum checker_mutant {
	CHECKER_MUTANT_NONE,
#define X(enumerator, name, part, what) CHECKER_##enumerator,
	CHECKER_MUTANTS(X) NOTICED_MUTANTS(X)
#undef X
		CHECKER_MUTANT_COUNT
};

extern const struct mutant_info checker_mutants[CHECKER_MUTANT_COUNT];
/* The names of all mutants, those of the machine included: "none nic_duplicate ...". */
extern const char mutant_names[];

/* The i-th mutant of the machine or the checker, by the order of `tidemark list bugs`: those of
 * the model, of the checker, of the hardware. NULL at the end. */
const struct mutant_info *mutant_nth(unsigned i);

#define CHECKER_MUTANT(setup, enumerator) \
	__builtin_expect((setup)->mutant == CHECKER_##enumerator, false)

#endif
