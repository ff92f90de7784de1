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
	bool locked;	      /* F0 */
	uint8_t segment, rex; /* prefixes; 0: there is none. Of VEX and EVEX what they say of REX */
	uint8_t vector;	      /* bytes of a vector: 16, or as VEX and EVEX say */
	bool scaled;	      /* EVEX: a displacement of 8 bits counts vectors */
	unsigned map;	      /* 1: 0x0f, 2: 0x0f38, 3: 0x0f3a; 0: an opcode of one byte */
	uint8_t byte;
	size_t end; /* of the opcode: what follows begins there */
};
/* False: `left` bytes are not all of it. */
bool instruction_opcode(const uint8_t *code, size_t left, struct opcode *o);

/* Where a memory operand is: segment + base + (index << shift) + displacement. */
struct operand {
	int base, index; /* registers 0 to 15, RAX to R15; -1: none */
	int shift;
	int64_t displacement; /* of an operand relative to RIP: its address */
	int segment;	      /* 0, or the prefix 0x64 (FS), 0x65 (GS) */
	bool narrow;	      /* an address of 32 bits */
	bool relative;	      /* to RIP; the displacement is at ... */
	size_t at;	      /* ... this byte of the instruction */
	size_t end;	      /* what follows of the instruction begins there */
};
/* The operand of the instruction at `code`, which is at `ip` when it runs. It has one in memory. */
void instruction_operand(const uint8_t *code, uint64_t ip, size_t bytes, const struct opcode *op,
			 struct operand *o);

/* Bytes of the instruction that begins at `code`, of which `left` can be read. 0: there is no such
 * instruction, or it is longer than that. */
size_t instruction_bytes(const uint8_t *code, size_t left);

/* Does it write lines back, store past the caches, or (then *fences) wait for that? Its name, or
 * NULL. A store past the caches has the name of a family, as movntps for movntpd and vmovntps. A
 * locked instruction, which waits as well, is not meant. */
const char *instruction_flushes(const uint8_t *code, size_t bytes, bool *fences);

/* Where a store past the caches goes to, and how many bytes it stores; 0: it is none. */
size_t instruction_streams(const uint8_t *code, uint64_t ip, size_t bytes, struct operand *o);

/* Is it a locked one, or an XCHG, which is? */
bool instruction_locks(const uint8_t *code, size_t bytes);

#endif
