/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_COUNT_H
#define TM_CHECKER_MODELS_COUNT_H
/*
 * What one operation costs: bytes written to PM, lines flushed, fences, round trips,
 * messages, packets. count.c says how it is found out, docs/count.md what is counted.
 */
#include <infiniband/verbs.h>
#include "checker/models/waste.h"
#include "checker/world/world.h"
#include "core/rnic/opcode.h"

#define COUNT_REPEATS  8  /* of each kind of operation, each with a key of its own */
#define COUNT_FIELDS   32 /* names of fields and regions that a store can have */
#define COUNT_REQUESTS 32 /* of an operation; the order of more is not recorded */

enum count_kind {
	COUNT_CREATE,
	COUNT_UPDATE,
	COUNT_GET,
	COUNT_GET_SOON, /* right after a PUT of the key */
	COUNT_GET_MISS,
	COUNT_DELETE,
	COUNT_CLEAN, /* once, at the end */
	COUNT_KINDS
};
extern const char *const count_kind_names[COUNT_KINDS];

enum count_side { COUNT_CLIENT, COUNT_SERVER, COUNT_SIDES };

struct count_figures {
	uint64_t nic_bytes, cpu_bytes; /* written to PM: data that landed, stores */
	uint64_t flushed; /* lines: one for each write-back of a line that the CPU asks for */
	uint64_t fences;
	uint64_t round_trips;
	uint64_t handled; /* messages that the server's CPU took */
	uint64_t message[COUNT_SIDES]
			[OPERATIONS]; /* requests by the side that posts them and by opcode */
	uint64_t packets, wire_bytes; /* both directions, acknowledgements included */
	/* The first requests in the order in which they are posted: which side, which opcode. */
	struct {
		uint8_t side, code;
	} request[COUNT_REQUESTS];
};

enum count_part { COUNT_FOREGROUND, COUNT_BACKGROUND, COUNT_PARTS };

struct count_op {
	struct count_figures part[COUNT_PARTS];
	uint64_t lines; /* of PM that were written to: each once */
	double paper;	/* bytes written, in the paper's layout; without fields, as they are */
	double field_bytes[COUNT_FIELDS], field_paper[COUNT_FIELDS]; /* by count.field */
	uint64_t changed; /* bytes of PM that differ at quiescence */
};

struct count_row {
	enum count_kind kind;
	struct count_op op; /* what most repeats have in common; .changed is their largest */
	unsigned times, of; /* so many repeats are like that, out of so many */
	struct count_op all[COUNT_REPEATS];
};

struct count {
	uint32_t klen, vlen; /* bytes */
	struct count_row row[COUNT_KINDS];
	unsigned rows;
	bool paper; /* the store names its fields */
	char field[COUNT_FIELDS][24];
	unsigned fields;
	/* What is done without need; the kinds are TM_BIT()s of enum count_kind. */
	struct waste_row waste[WASTE_ROWS];
	unsigned wastes;
	char why[WORLDS_WHY]; /* if an operation did not do what it should; or "" */
};

#define COUNT_KEY      8 /* bytes, where no other length is asked for */
#define COUNT_MIN_VLEN 8 /* bytes: with fewer, values of two operations could be the same */

/*
 * Run the operations on a store with keys of klen and values of vlen bytes (COUNT_MIN_VLEN at
 * least). `base`: store, switches, hardware. 0; -EPROTO (*out is filled all the same, out->why says
 * what went wrong), -EIO (the store does not start or end, likewise), -EFBIG, -ENOMEM.
 */
int count_run(const struct setup *base, uint32_t klen, uint32_t vlen, struct count *out);

#endif
