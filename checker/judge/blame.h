/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_BLAME_H
#define TM_CHECKER_JUDGE_BLAME_H
/*
 * What a broken state is blamed on: a coarse description of why a contract broke, which costs a
 * microsecond and so is made of every state. It says what the clients saw, which writes the power
 * failure took, and in which circumstances. It does not say which key, which client, how much was
 * lost, or when. checker/explore/blame_find.c makes it.
 *
 * Its parts are a set. A state that lost more than another one, or had more circumstances, but
 * shows the same, is the same failure with something added.
 *
 * In words, for the files causes.txt:
 *
 *	CONTRACT SAW AGAINST [PART...]
 *
 * SAW: what the operation that breaks the contract returned: "nothing", "value", "foreign" (bytes
 * that no PUT wrote) or "error", also if it never returned; "-": there is no such operation.
 * AGAINST: the operation that it contradicts: "put", "get", "delete" or "load" (put before the
 * workload began); "-": none.
 *
 * A part is a write that was lost, "lost:REGION:WRITER:OPERATION:WHOSE"; data that had arrived at
 * the NIC and not landed when the power failed, "late:OPERATION:WHOSE"; or a circumstance. WRITER
 * is "nic", "client", "server" or "background" (the server's other tasks). OPERATION, for which it
 * was written: "put", "get", "delete", "open", "clean" or "-". WHOSE is "own" if that is the
 * operation that is missing, else "other". Circumstances of a break after a power failure:
 *
 *	open	an update of the key had not ended when the power failed; open2: several
 *	fault	a packet was lost or duplicated, a call failed, or a client died
 *	death	a process or a machine died
 *	others	power failures took writes, but none for the operation that is missing
 *	kept	no power failure took anything
 *	again	the power failed twice, or more often
 *	life	clients used the store between or after power failures
 *	clean	the workload cleans
 *
 * and of one while the power holds: "up", the kinds of what went differently, as a trace names them
 * (step, packet, land, ...), "server" and "background" for a step of the server, "death" and
 * "clean".
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/rt/choose.h"
#include "core/tidemark.h"

#define BLAME_PARTS 20	/* more: `full` */
#define BLAME_TEXT  900 /* bytes that blame_print() needs at most, its NUL included */

enum blame_saw { SAW_NONE, SAW_NOTHING, SAW_VALUE, SAW_FOREIGN, SAW_ERROR };
enum blame_against { AGAINST_NONE, AGAINST_PUT, AGAINST_GET, AGAINST_DELETE, AGAINST_LOAD };
enum blame_writer { WRITER_NIC, WRITER_CLIENT, WRITER_SERVER, WRITER_BACKGROUND };

/* Circumstances. The kinds of choices come first, by their own numbers. */
enum blame_circumstance {
	BLAME_IN_SERVER = CHOICE_KINDS,
	BLAME_IN_BACKGROUND,
	BLAME_OPEN,
	BLAME_OPEN2,
	BLAME_FAULT,
	BLAME_AGAIN,
	BLAME_LIFE,
	BLAME_CLEAN,
	BLAME_UP,
	BLAME_DEATH,
	BLAME_OTHERS,
	BLAME_KEPT,
	BLAME_CIRCUMSTANCES
};

struct blame {
	uint8_t contract, saw, against;
	uint8_t parts;
	bool full;		    /* there were more parts: nothing can be said of it */
	uint32_t part[BLAME_PARTS]; /* ascending, each once */
};

/* A part of a lost write. `region`: its name. */
uint32_t blame_loss(const char *region, enum blame_writer writer, enum op_kind op, bool own);
/* A part for data that had not landed. */
uint32_t blame_late(enum op_kind op, bool own);
void blame_add(struct blame *b, uint32_t part);
/* Has it a part of a write? And of a write for the operation that is missing? */
bool blame_writes(const struct blame *b);
bool blame_own(const struct blame *b);
/* Make a row of it that explains other failures of its sort, too. What the missing operation lost
 * counts; else that only others' writes were lost, or none, or that the power held.
 */
void blame_coarsen(struct blame *b);
/* Is `all` the failure `some`, perhaps with something added? */
bool blame_includes(const struct blame *all, const struct blame *some);
/* Names of regions are needed: those that are not among these are printed as "?". */
void blame_print(const struct blame *b, const struct tm_region *region, unsigned regions, char *buf,
		 size_t n);
/* Reads the words that blame_print() wrote, up to the end of the line. NULL, or what is wrong. */
const char *blame_parse(struct blame *b, char *words);

#endif
