/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_INSTRUCTION_H
#define TM_INSTRUCTION_H
/* How long an x86-64 instruction is, where it goes on if it is a jump, and whether it flushes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the instruction that begins at `code`, of which `left` can be read. 0: there is no such
 * instruction, or it is longer than that. */
size_t instruction_bytes(const uint8_t *code, size_t left);

/* Does it write lines back, store past the caches, or (then *fences) wait for that? Its name, or
 * NULL. A store past the caches has the name of a family, as movntps for movntpd and vmovntps. A
 * locked instruction, which waits as well, is not meant. */
const char *instruction_flushes(const uint8_t *code, size_t bytes, bool *fences);

/* A jump on a condition of the flags. */
struct conditional_jump {
	uintptr_t at, next, target; /* `next`: where it goes on if it does not jump */
	uint8_t condition;	    /* as in the opcode */
};
/* False: the instruction at `at`, of so many bytes, is none. */
bool instruction_is_conditional_jump(uintptr_t at, size_t bytes, struct conditional_jump *out);
/* Where an instruction of so many bytes can go on. */
struct instruction_flow {
	bool ends;	  /* not at the next one: a jump, a return */
	bool anywhere;	  /* a jump to where a register or memory says */
	uintptr_t target; /* of a jump of any kind; 0: none */
};
struct instruction_flow instruction_flow(uintptr_t at, size_t bytes);
/* Does it jump? */
bool conditional_jump_taken(uint8_t condition, uint64_t flags);

#endif
