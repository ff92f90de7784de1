/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_SNAPSHOT_H
#define TM_RT_SNAPSHOT_H
/*
 * The state of a simulation at one moment, as bytes: each part of it is put behind the one before,
 * and taken back in the same order. Pointers are kept as they are, because all parts stay where
 * they are in the process; so a snapshot is of use to the simulation that it was made of, and to no
 * other.
 */
#include <stddef.h>
#include <stdint.h>

struct snapshot {
	uint8_t *bytes;
	size_t n, room, taken;
};

/* Begin to put; what it held is forgotten, its memory is kept. */
void snapshot_begin(struct snapshot *s);
/* Out of memory ends the process with 70, as in an arena. */
void snapshot_put(struct snapshot *s, const void *from, size_t bytes);
/* Begin to take. */
void snapshot_rewind(struct snapshot *s);
void snapshot_take(struct snapshot *s, void *to, size_t bytes);
void snapshot_skip(struct snapshot *s, size_t bytes);
void snapshot_free(struct snapshot *s);

#endif
