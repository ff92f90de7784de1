/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_TAXONOMY_TAXONOMY_H
#define TM_SCENARIOS_TAXONOMY_TAXONOMY_H
/*
 * The taxonomy of remote persistence as its papers have it: for each method of appending and
 * each kind of hardware, whether it is sound; and which method their tables give.
 * scenarios/taxonomy/taxonomy.txt holds it and opens with its own grammar; it is compiled in.
 */
#include "core/hardware/hardware.h"
#include "scenarios/workload/workload.h"

#define TAXONOMY_COLUMNS    12 /* domain x ddio x rqwrb */
#define TAXONOMY_TRANSPORTS 2

/* What can be wrong with a method; 0: it is sound. */
enum {
	TAXONOMY_LOST = 1,	 /* L: an update that was reported durable can be lost */
	TAXONOMY_DISORDERED = 2, /* O: b can be durable without a */
	TAXONOMY_OTHER = 4,	 /* X: something else that the store promises; no table says so */
	TAXONOMY_AS_ABOVE = 8	 /* private: "." */
};

/* TAXONOMY_COMMIT: WRITE and RDMA Commit, which no card has. */
enum taxonomy_primitive {
	TAXONOMY_WRITE,
	TAXONOMY_WRITEIMM,
	TAXONOMY_SEND,
	TAXONOMY_COMMIT,
	TAXONOMY_PRIMITIVES
};
extern const char *const taxonomy_primitive_name[TAXONOMY_PRIMITIVES];

struct taxonomy_row {
	const char *method, *with; /* with: "name=value"; "": always */
	unsigned transports;	   /* 1 << enum transport */
	uint8_t verdict[TAXONOMY_COLUMNS];
	unsigned line;
};

struct taxonomy_choice {
	const char *with;
	bool compound;
	enum taxonomy_primitive primitive;
	unsigned transports;
	const char *method[TAXONOMY_COLUMNS]; /* ".": as above */
};

struct taxonomy_table {
	struct taxonomy_row *row;
	unsigned rows;
	struct taxonomy_choice *choice;
	unsigned choices;
	const char **silent; /* switches that are not mentioned */
	unsigned silents;
	struct taxonomy_like {
		const char *method, *other;
	} * like;
	unsigned likes;
	char *text; /* private */
};

/* Switches as they were set, each "name=value". */
struct taxonomy_knobs {
	const char *const *knob;
	unsigned knobs;
};

/* Read `text`, a file like scenarios/taxonomy/taxonomy.txt; NULL: the one that is compiled in. 0
 * and *t is then for taxonomy_free(); -EINVAL with *where, or -ENOMEM. */
int taxonomy_read(struct taxonomy_table *t, const char *text, struct input_error *where);
void taxonomy_free(struct taxonomy_table *t);

/* The method whose rows this one has; NULL: its own. */
const char *taxonomy_like(const struct taxonomy_table *t, const char *method);
/* What the table says of a method: TAXONOMY_*; -1: nothing. *line: where; NULL: not wanted. */
int taxonomy_says(const struct taxonomy_table *t, const char *method, unsigned column,
		  unsigned transport, const struct taxonomy_knobs *knobs, unsigned *line);
/* The method that the papers give; NULL: the table does not say. */
const char *taxonomy_gives(const struct taxonomy_table *t, bool compound,
			   enum taxonomy_primitive primitive, unsigned column, unsigned transport,
			   const struct taxonomy_knobs *knobs);

/* "ok", "L", "O", "LO", ... */
const char *taxonomy_word(unsigned verdict);
/* Set the column's hardware, leave all else as it is; and back. */
void taxonomy_hardware(struct hardware *hw, unsigned column, unsigned transport);
unsigned taxonomy_column(const struct hardware *hw);

#endif
