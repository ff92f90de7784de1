/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_LITMUS_PROGRAM_H
#define TM_TESTS_LITMUS_PROGRAM_H
/*
 * A small litmus program as plain data: what the generator makes, what the slow model runs, and
 * what is printed as text for `tidemark litmus`. It shares nothing with the reader of litmus files,
 * so that the model knows the program from the generator alone.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PROGRAM_HOSTS	   3 /* A, B, C */
#define PROGRAM_THREADS	   3
#define PROGRAM_STATEMENTS 6 /* of a thread */
#define PROGRAM_LOCATIONS  3 /* x, y; and z, where results may go */
#define PROGRAM_CELLS	   4 /* words that are looked at */
#define PROGRAM_QPS	   2 /* q, p */
#define PROGRAM_PLACES	   (PROGRAM_THREADS * PROGRAM_STATEMENTS + 2 * PROGRAM_CELLS)

/* An operand is a cell, or all of a location that has two, or nothing: a value in the request
 * itself, no receive buffer. */
#define WHOLE	0x10 /* and the location's number */
#define NOWHERE 0xff

enum statement_op {
	OP_STORE,
	OP_LOAD,
	OP_SET, /* a register gets 1: how far the thread has come */
	OP_XCHG,
	OP_FAA,
	OP_CAS, /* from 0 */
	OP_MFENCE,
	OP_SFENCE,
	OP_CLWB,
	OP_CLFLUSH,
	OP_PUT,
	OP_PUTIMM,
	OP_SEND,
	OP_GET,
	OP_REMOTE_CAS, /* from 0 */
	OP_REMOTE_FAA,
	OP_AWRITE,
	OP_COMMIT,
	OP_COMMITIMM,
	OP_COMMITPUT, /* to the operand's last cell */
	OP_FLUSH,
	OP_FLUSH_GLOBAL,
	OP_POLL,
	OP_RECV,
	STATEMENT_OPS
};

struct statement {
	uint8_t op;   /* enum statement_op */
	uint8_t to;   /* location that is written, flushed, or that takes a message; or NOWHERE */
	uint8_t from; /* location that is read; NOWHERE: `value` */
	uint8_t qp;
	uint8_t value; /* stored, added, or swapped in */
	uint8_t reg;   /* of those that set one */
	bool fenced, unsignaled;
};

/* Where cells are. */
enum shape {
	SHAPE_WORDS,	 /* each location is a word on its own line: x, y, z */
	SHAPE_SAME_LINE, /* the same, but y is on the line of x */
	SHAPE_LONG,	 /* x and y are two lines long: x[0], x[8], y[0], y[8] */
	SHAPE_WIDE	 /* two words of one line: x[0], x[1], y[0], y[1] */
};
#define LONG_INITIAL 101 /* what y holds at first, where it is long or wide */

enum machine_domain { MACHINE_DMP, MACHINE_MHP, MACHINE_WSP };
enum machine_torn { MACHINE_WHOLE_LINES, MACHINE_TORN_PREFIX, MACHINE_TORN_ANY };

/* The hardware, as far as the slow model has a rule for it. */
struct machine {
	uint8_t domain; /* enum machine_domain */
	bool ddio_off, ddio_any, iio_outside, ack_late, iwarp, sends_uncovered, lines_any, relaxed,
		read_right, read_words, atomics_hca, commit_visible;
	uint8_t torn;	      /* enum machine_torn */
	uint8_t store_buffer; /* entries */
};

struct program {
	struct machine machine;
	uint8_t hosts, threads, locations, qps;
	uint8_t location_host[PROGRAM_LOCATIONS];
	uint8_t shape; /* enum shape */
	uint8_t qp_host[PROGRAM_QPS][2];
	uint8_t thread_host[PROGRAM_THREADS];
	uint8_t length[PROGRAM_THREADS];
	struct statement statement[PROGRAM_THREADS][PROGRAM_STATEMENTS];
};

/* What an outcome has a value of. */
enum place_kind { PLACE_REGISTER, PLACE_MEMORY, PLACE_CRASH };
struct place {
	uint8_t kind;	/* enum place_kind */
	uint8_t thread; /* of a register */
	uint8_t number; /* of the register or cell */
};

bool statement_is_request(const struct statement *s);
/* SEND and WRITE are posted, in the sense of PCIe. */
bool statement_is_posted(const struct statement *s);
/* Does it take a receive of the peer? */
bool statement_is_message(const struct statement *s);
bool statement_sets_register(const struct statement *s);

unsigned program_cells(const struct program *p);
/* The cells of an operand, in order. */
unsigned operand_cells(const struct program *p, uint8_t operand, uint8_t cells[2]);
unsigned cell_line(const struct program *p, unsigned cell);
uint8_t cell_initial(const struct program *p, unsigned cell);

/* All places of the program's outcomes; the litmus text observes them in this order. */
unsigned program_places(const struct program *p, struct place places[PROGRAM_PLACES]);
int place_print(const struct program *p, const struct place *place, char *buf, size_t n);
/* In the grammar of docs/litmus.md. `knobs`: more of them, or ""; `condition`: a line, or "". */
void program_print(FILE *out, const struct program *p, const char *name, const char *knobs,
		   const char *condition);
/* One statement. */
int statement_print(const struct program *p, const struct statement *s, char *buf, size_t n);

#endif
