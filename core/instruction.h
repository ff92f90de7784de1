/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_INSTRUCTION_H
#define TM_INSTRUCTION_H
/* Length of an x86-64 instruction, and whether it flushes. */
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

#endif
