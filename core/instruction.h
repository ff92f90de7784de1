/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_INSTRUCTION_H
#define TM_INSTRUCTION_H
/* Length of an x86-64 instruction, and whether it flushes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What comes before an instruction's operands. */
struct opcode {
	bool operand16, address32, wide;
	bool size, repeat;    /* 66; F2 or F3: they may be a part of the opcode */
	uint8_t segment, rex; /* prefixes; 0: there is none */
	unsigned map;	      /* 1: 0x0f, 2: 0x0f38, 3: 0x0f3a; 0: an opcode of one byte */
	uint8_t byte;
	size_t end; /* of the opcode: what follows begins there */
};
/* False: `left` bytes are not all of it. */
bool instruction_opcode(const uint8_t *code, size_t left, struct opcode *o);

/* Bytes of the instruction that begins at `code`, of which `left` can be read. 0: there is no such
 * instruction, or it is longer than that. */
size_t instruction_bytes(const uint8_t *code, size_t left);

/* Does it write lines back, store past the caches, or (then *fences) wait for that? Its name, or
 * NULL. A store past the caches has the name of a family, as movntps for movntpd and vmovntps. A
 * locked instruction, which waits as well, is not meant. */
const char *instruction_flushes(const uint8_t *code, size_t bytes, bool *fences);

#endif
