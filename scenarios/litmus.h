/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_LITMUS_H
#define TM_SCENARIOS_LITMUS_H
/*
 * A litmus test: a few threads of a few statements each, on CPUs and on queue pairs, and
 * conditions over what can come out. docs/litmus.md has the grammar.
 *
 * The parsed test is plain data: no pointer leads out of it but its documentation.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/hardware/hardware.h"
#include "core/text/text.h"

#define LITMUS_THREADS	    8
#define LITMUS_STATEMENTS   32 /* of a thread */
#define LITMUS_LOCATIONS    32
#define LITMUS_WORDS	    512 /* of a location */
#define LITMUS_QPS	    8
#define LITMUS_HOSTS	    8
#define LITMUS_REGISTERS    16
#define LITMUS_CONDITIONS   8
#define LITMUS_OBSERVED	    48	/* what outcomes show */
#define LITMUS_TERMS	    256 /* of all conditions */
#define LITMUS_NAME	    32	/* bytes, with the NUL */
#define LITMUS_STORE_BUFFER 8	/* entries, unless the test or the user says otherwise */

struct litmus_location {
	char name[LITMUS_NAME];
	uint8_t host;
	bool dram;
	uint16_t words;
	uint32_t off; /* in the pool that holds all locations, bytes; a location of its own starts
			 at a line */
	uint64_t initial[LITMUS_WORDS];
};

struct litmus_qp {
	char name[LITMUS_NAME];
	uint8_t host[2]; /* of its ends */
};

struct litmus_range { /* words of a location */
	uint8_t location;
	uint16_t first, words;
};

/* number, or register + number. */
struct litmus_expr {
	bool has_reg;
	uint8_t reg;
	uint64_t number;
};

enum litmus_op {
	LITMUS_STORE, /* to = expr */
	LITMUS_NT,    /* to = expr */
	LITMUS_COPY,  /* to, from: as many words */
	LITMUS_LOAD,  /* reg = from */
	LITMUS_SET,   /* reg = expr */
	LITMUS_AWAIT, /* from, expr */
	LITMUS_XCHG,  /* reg, from, expr */
	LITMUS_CAS,   /* reg, from, expr (old), expr2 (new) */
	LITMUS_FAA,   /* reg, from, expr */
	LITMUS_MFENCE,
	LITMUS_SFENCE,
	LITMUS_LFENCE,
	LITMUS_CLFLUSH,	   /* from */
	LITMUS_CLFLUSHOPT, /* from */
	LITMUS_CLWB,	   /* from */
	LITMUS_REQUEST,	   /* a work request of kind `wr`: qp and its operands */
	LITMUS_POLL,	   /* qp; reg if has_reg */
	LITMUS_RECV,	   /* qp; to if has_to; reg if has_reg */
	LITMUS_OPS
};

struct litmus_statement {
	uint8_t op;		   /* enum litmus_op */
	uint8_t wr;		   /* LITMUS_REQUEST: enum ibv_wr_opcode */
	bool guarded, guard_equal; /* only if guard_reg == (!=) guard_number */
	uint8_t guard_reg;
	uint64_t guard_number;
	bool has_reg, has_to;
	uint8_t reg, qp;
	struct litmus_range to, from; /* one of a request's is local, the other remote */
	bool inlined;		      /* expr stands for `from` */
	bool all, persistent;	      /* FLUSH */
	bool fenced, unsignaled;
	uint32_t imm;
	struct litmus_expr expr, expr2;
	unsigned line, column; /* in the file, from 1 */
	char text[64];	       /* as in the file, blanks made one; cut if it is longer */
};

struct litmus_thread {
	uint8_t host;
	unsigned statements;
	struct litmus_statement statement[LITMUS_STATEMENTS];
};

/* What a condition or an outcome names. */
enum litmus_what { LITMUS_REGISTER, LITMUS_MEMORY, LITMUS_CRASH };
struct litmus_place {
	uint8_t what; /* enum litmus_what */
	uint8_t thread, reg;
	uint8_t location;
	uint16_t word;
};

/* A condition in prefix order: a term is followed by its operands. */
enum litmus_term_kind {
	LITMUS_TRUE,
	LITMUS_ATOM,
	LITMUS_NOT,
	LITMUS_AND,
	LITMUS_OR,
	LITMUS_IMPLIES
};
struct litmus_term {
	uint8_t kind;	  /* enum litmus_term_kind */
	uint8_t observed; /* ATOM: index into litmus_test.observed */
	bool equal;	  /* ATOM: = or != */
	uint64_t number;
};

enum litmus_quantifier { LITMUS_EXISTS, LITMUS_NEVER, LITMUS_FORALL };
struct litmus_condition {
	uint8_t quantifier; /* enum litmus_quantifier */
	bool crash;	    /* over crash outcomes */
	uint16_t first;	    /* term */
	char text[200];	    /* as in the file, blanks made one; cut if it is longer */
	unsigned line;
};

struct litmus_test {
	char name[64];
	char *doc; /* or NULL */
	struct hardware hw;
	unsigned hosts, locations, qps, threads, conditions, observeds, terms;
	char host[LITMUS_HOSTS][LITMUS_NAME];
	struct litmus_location location[LITMUS_LOCATIONS];
	struct litmus_qp qp[LITMUS_QPS];
	struct litmus_thread thread[LITMUS_THREADS];
	struct litmus_condition condition[LITMUS_CONDITIONS];
	struct litmus_term term[LITMUS_TERMS];
	struct litmus_place observed[LITMUS_OBSERVED]; /* no place twice */
	uint32_t pool_bytes;			       /* a multiple of a line */
	/* A host that loses its power at some moment of each run, while the others go on. */
	bool one_fails;
	uint8_t fails;
};

/* Parse `len` bytes. 0; -EINVAL with *error; -ENOMEM. The test is to be freed with litmus_free(),
 * after errors, too. */
int litmus_parse(struct litmus_test *test, const char *text, size_t len, struct input_error *error);
void litmus_free(struct litmus_test *test);
/* Does the condition hold for these values of what is observed? */
bool litmus_holds(const struct litmus_test *test, const struct litmus_condition *condition,
		  const uint64_t *value);
/*
 * Which of the observed places belong to final outcomes, which to crash outcomes? Registers and
 * memory; and what is left by a power failure, with the registers that a condition names together
 * with it, or all if no condition is about crashes. Asking for others would only tell more moments
 * apart.
 */
void litmus_places(const struct litmus_test *test, bool crash, bool belongs[LITMUS_OBSERVED]);
/* "P0:r1", "x[3]", "crash:x": returns length as snprintf. */
int litmus_place_print(const struct litmus_test *test, const struct litmus_place *place, char *buf,
		       size_t n);

#endif
