/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_PRELOAD_MAPS_H
#define TM_CHECKER_SEAT_PRELOAD_MAPS_H
/*
 * The mappings that a program has of the image, where it has been seen to look at what it wrote
 * (BOARD_EXACT). A mapping is private as long as it is the only one of its pages. What was written
 * to it goes into the file before anybody looks there: when it is unmapped, when the file is read,
 * when it is mapped a second time. Pages that are mapped twice are shared from then on. So the
 * program sees what it would see without us, and the board has a list of the pages that may have to
 * be put right.
 */
#include "checker/seat/preload/board.h"

/* False, each: what the program sees then may not be what it would see without us. */

/* It is about to look at these bytes of the file, but not by a mapping. */
bool maps_look(struct board *b, uint64_t from, uint64_t to);
/* It is about to map them. The part of them that has to be shared is from shared[0] to shared[1],
 * if that is more. */
bool maps_before(struct board *b, uint64_t from, uint64_t to, uint64_t shared[2]);
enum maps_sort {
	MAPS_OURS,  /* private, and the program does not know; but for that part */
	MAPS_THEIRS /* as the program has it: only to be read, or private */
};
/* It has. The part is made shared. */
bool maps_add(struct board *b, void *at, size_t len, int prot, uint64_t from, enum maps_sort sort,
	      const uint64_t shared[2]);
/* It is about to unmap these, or to put something else there. */
bool maps_drop(struct board *b, const void *at, size_t len);
/* Has it a mapping whose pages may not be those of the file? */
bool maps_alone(struct board *b);
/* Their protection is another one; they are moved. */
void maps_protect(struct board *b, const void *at, size_t len, int prot);
void maps_forget(struct board *b, const void *at, size_t len);

#endif
