/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_HARDWARE_MUTANT_H
#define TM_HARDWARE_MUTANT_H
/*
 * Mutants of the emulated machine: bugs of its memory and its NIC, seeded to see whether they are
 * noticed (`tidemark mutants`). At most one is on, by the knob `mutant`; none is by default. Each
 * is a line or two where its name is in the code: MUTANT(hw, NIC_ACK_UNACCEPTED).
 *
 * The checker has mutants of its own, by the same knob (checker/world/checker_mutant.h).
 */

/* enumerator, name, part, what it does */

/* A store that is right seems wrong, or a rule of the hardware is broken. */
#define MODEL_MUTANTS(X)                                                                     \
	X(NIC_DUPLICATE_EXECUTED, "nic_duplicate", "rnic",                                   \
	  "A duplicate of a WRITE is executed once more.")                                   \
	X(NIC_READ_OVERTAKES, "nic_read_overtakes", "rnic",                                  \
	  "A READ does not wait for the WRITEs before it.")                                  \
	X(NIC_SEND_OVERTAKES, "nic_send_overtakes", "rnic",                                  \
	  "A SEND lands before a WRITE that was posted before it and is delayed.")           \
	X(NIC_ACK_UNACCEPTED, "nic_ack_unaccepted", "rnic",                                  \
	  "A packet after a lost one is acknowledged, and with it the lost one.")            \
	X(NIC_PSN_WRAP, "nic_psn_wrap", "rnic",                                              \
	  "Sequence numbers are compared as if they did not wrap.")                          \
	X(NIC_KEY_DEAD, "nic_key_dead", "rnic",                                              \
	  "A key is accepted after its region was deregistered.")                            \
	X(NIC_LAND_AFTER_DESTROY, "nic_land_after_destroy", "rnic",                          \
	  "Data of a queue pair go on landing after it was destroyed.")                      \
	X(NIC_LAST_LINE, "nic_last_line", "rnic",                                            \
	  "The last, partial line of a long WRITE is dropped.")                              \
	X(NIC_LINES_SHUFFLED, "nic_lines_shuffled", "rnic",                                  \
	  "With dma_order=left, the last line of a packet still lands first.")               \
	X(NIC_PACKET_MISPLACED, "nic_packet_misplaced", "rnic",                              \
	  "The second packet of a WRITE goes where the first one went.")                     \
	X(NIC_READ_HOLE, "nic_read_hole", "rnic",                                            \
	  "A READ completes although one of its responses was lost.")                        \
	X(NIC_FENCE_IGNORED, "nic_fence_ignored", "rnic",                                    \
	  "A fenced request does not wait for READs.")                                       \
	X(NIC_FLUSHED_SUCCESS, "nic_flushed_success", "rnic",                                \
	  "Requests that are flushed from a failed queue pair complete with success.")       \
	X(NIC_ATOMIC_REPEATED, "nic_atomic_repeated", "rnic",                                \
	  "A duplicate of an atomic is executed again.")                                     \
	X(NIC_BOUNDS, "nic_bounds", "rnic", "A WRITE may run past the end of its region.")   \
	X(PM_FLUSH_SHORT, "pm_flush_short", "pmem",                                          \
	  "A flush forgets the last line of an unaligned range.")                            \
	X(PM_FENCE_ONE, "pm_fence_one", "pmem",                                              \
	  "A fence waits for the first line that was flushed only.")                         \
	X(PM_VERSION_ALONE, "pm_version_alone", "pmem",                                      \
	  "A line in flight may survive with its newest store, but without the one before.") \
	X(PM_WORD_TORN, "pm_word_torn", "pmem", "An 8-byte store may be torn into halves.")  \
	X(PM_FENCE_FORGETS, "pm_fence_forgets", "pmem",                                      \
	  "A fence of one task forgets what the others have flushed.")                       \
	X(PM_UNDO_FORGETS, "pm_undo_forgets", "pmem",                                        \
	  "A crash image is not wholly undone: one line of it is seen by the next.")

/* The machine is too kind: a store's bug does not show. */
#define LENIENT_MUTANTS(X)                                                                  \
	X(PM_FENCE_ALL, "pm_fence_all", "pmem",                                             \
	  "A fence makes all dirty lines durable, flushed or not.")                         \
	X(PM_NIC_DURABLE, "pm_nic_durable", "pmem",                                         \
	  "A NIC write is durable as soon as it is visible.")                               \
	X(PM_NEWEST_ON_NIC_READ, "pm_newest_on_nic_read", "pmem",                           \
	  "A line that a NIC reads first after a power failure has survived as its newest " \
	  "version.")

/* Another machine than the one that docs/model.md describes. Stores may well be right on it: litmus
 * tests and the taxonomy tell the two apart. */
#define MACHINE_MUTANTS(X)                                                                        \
	X(PM_VISIBLE_DURABLE, "pm_visible_durable", "pmem",                                       \
	  "What is visible is durable, in every domain.")                                         \
	X(PM_DDIO_IGNORED, "pm_ddio_ignored", "pmem",                                             \
	  "Data drain past the cache, as with ddio=off.")                                         \
	X(PM_CACHES_LOST, "pm_caches_lost", "pmem", "domain=mhp keeps no more than domain=dmp.")  \
	X(PM_NIC_BUFFERS_LOST, "pm_nic_buffers_lost", "pmem",                                     \
	  "domain=wsp keeps no more than domain=mhp.")                                            \
	X(PM_FLUSH_IGNORED, "pm_flush_ignored", "pmem", "The CPU's flushes of lines do nothing.") \
	X(PM_TORN_LEFT, "pm_torn_left", "pmem",                                                   \
	  "line_torn=any cuts lines from the left only, as line_torn=prefix does.")               \
	X(PM_NT_UNFENCED, "pm_nt_unfenced", "pmem",                                               \
	  "A fence does not wait for non-temporal stores.")                                       \
	X(NIC_ATOMICS_APART, "nic_atomics_apart", "rnic",                                         \
	  "With atomics=hca an atomic is not atomic with other remote ones either.")              \
	X(NIC_FLUSH_IGNORED, "nic_flush_ignored", "rnic",                                         \
	  "An RDMA FLUSH is answered at once, and does nothing.")                                 \
	X(PM_COMMIT_CACHED, "pm_commit_cached", "pmem",                                           \
	  "An RDMA Commit leaves data in the caches, as an RDMA FLUSH does.")                     \
	X(NIC_WRITE_OVERTAKES, "nic_write_overtakes", "rnic",                                     \
	  "A WRITE lands before one that was posted before it.")                                  \
	X(NIC_NEVER_OVERTAKES, "nic_never_overtakes", "rnic",                                     \
	  "Nothing overtakes a request that is not posted, as if all were fenced.")               \
	X(NIC_DONE_IS_VISIBLE, "nic_done_is_visible", "rnic",                                     \
	  "A request completes when its data are visible at the peer, and not before.")           \
	X(NIC_RECEIVE_EARLY, "nic_receive_early", "rnic",                                         \
	  "A receive completes before what was posted before it is visible.")                     \
	X(NIC_IWARP_WAITS, "nic_iwarp_waits", "rnic",                                             \
	  "transport=iwarp completes as late as transport=ib.")                                   \
	X(NIC_ATOMIC_WRITE_POSTED, "nic_atomic_write_posted", "rnic",                             \
	  "An ATOMIC WRITE does not wait for a FLUSH before it.")

enum hardware_mutant {
	MUTANT_NONE,
#define X(enumerator, name, part, what) MUTANT_##enumerator,
	MODEL_MUTANTS(X) LENIENT_MUTANTS(X) MACHINE_MUTANTS(X)
#undef X
		HARDWARE_MUTANTS
};

/* The kind of bug, and so how it is found. */
enum mutant_effect {
	MUTANT_OF_MODEL,   /* by stores that are right, and by the rules of the hardware */
	MUTANT_OF_CHECKER, /* by a store's bug that is missed */
	MUTANT_NOTICED,	   /* by the explorer itself: the program ends with status 70 */
	MUTANT_OF_HARDWARE /* by litmus tests and the taxonomy */
};

struct mutant_info {
	const char *name, *part, *what;
	enum mutant_effect effect;
};

extern const struct mutant_info hardware_mutants[HARDWARE_MUTANTS];

/* The knob's values: "none nic_duplicate ...". */
extern const char hardware_mutant_names[];

#define MUTANT(hw, enumerator) __builtin_expect((hw)->mutant == MUTANT_##enumerator, false)

#endif
