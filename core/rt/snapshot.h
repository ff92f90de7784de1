/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_SNAPSHOT_H
#define TM_RT_SNAPSHOT_H
/*
 * The state of a simulation at one moment, as bytes: each part of it is put after the one before,
 * and taken back in the same order. So the owner of a part says once what it is, and the same
 * function keeps it and brings it back. Pointers are kept as they are, because all parts stay where
 * they are in the process; so a snapshot is of use to the simulation that it was made of, and to no
 * other.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot {
	uint8_t *bytes;
	size_t n, room;
	size_t taken;
	bool takes; /* the exchange takes from the snapshot; else it puts there */
};

/* Begin to put; what it held is forgotten, its memory is kept. */
void snapshot_begin(struct snapshot *s);
/* Begin to take, from the first part on. */
void snapshot_rewind(struct snapshot *s);
/* The next part. Out of memory ends the process with 70, as in an arena. */
void snapshot_exchange(struct snapshot *s, void *part, size_t bytes);
/* A part that is one object, by its name. */
#define SNAPSHOT_EXCHANGE(s, object) snapshot_exchange(s, &(object), sizeof(object))
void snapshot_free(struct snapshot *s);

#endif
