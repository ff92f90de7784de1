/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_TRACER_SUBJECT_H
#define TM_TESTS_TRACER_SUBJECT_H
/*
 * Store code for test_tracer.c: each step has a slot of PM of its own, writes it in one
 * way and reads it in one way. Compiled several times, as stores are, by each compiler
 * at each level; each object's table then gets a name of its own.
 */
#include <stdbool.h>
#include <stdint.h>

#define SLOT_BYTES 512 /* whole lines, so a step has its lines alone */

struct tracer_step {
	const char *name;
	void (*write)(uint8_t *slot);
	/* Reads something in each line that write() wrote. The result keeps the compiler from
	 * dropping the loads. */
	uint64_t (*read)(const uint8_t *slot);
};

/* Writes in its slot; is all of it durable afterwards, or not? */
struct tracer_lasting {
	const char *name;
	void (*write)(uint8_t *slot);
	bool durable;
};

struct tracer_subject {
	const struct tracer_step *step;
	unsigned steps, least; /* least: bytes that they change together, at least */
	const struct tracer_lasting *lasting;
	unsigned lastings;
};

#endif
