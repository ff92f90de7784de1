/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What VEX does not tell of the machine code (x86-64). To VEX a non-temporal store is a store like
 * any other, each fence the same, the operand of CLFLUSH known to 256 bytes only, and CLWB and
 * CLFLUSHOPT no instructions at all. core/instruction.h knows the opcodes.
 */
#include "tidepm.h"
#include "../core/instruction.h"

#define LONGEST 15 /* bytes */

static Long displacement(const UChar *at, UInt bytes)
{
	if (bytes == 1)
		return *(const Char *)at;
	return bytes ? (Int)(at[0] | at[1] << 8 | at[2] << 16 | (UInt)at[3] << 24) : 0;
}

/* The operand of an instruction that has no immediate one. */
static void read_operand(Addr ip, const struct opcode *op, struct operand *o)
{
	const UChar *at = (const UChar *)ip + op->end;
	UChar modrm = *at++, mod = modrm >> 6, rm = modrm & 7;
	UInt bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	Bool relative = mod == 0 && rm == 5;
	*o = (struct operand){.base = rm | (op->rex & 1) << 3,
			      .index = -1,
			      .segment = op->segment,
			      .narrow = op->address32};
	if (rm == 4) {
		UChar sib = *at++;
		Int index = (sib >> 3 & 7) | (op->rex & 2) << 2;
		o->base = (sib & 7) | (op->rex & 1) << 3;
		o->index = index == 4 ? -1 : index; /* RSP is no index */
		o->shift = sib >> 6;
		if (mod == 0 && (sib & 7) == 5) {
			o->base = -1;
			bytes = 4;
		}
	}
	if (relative) {
		o->base = -1;
		bytes = 4;
	}
	o->displacement = displacement(at, bytes);
	o->len = (UInt)(at + bytes - (const UChar *)ip);
	if (relative)
		o->displacement += ip + o->len;
}

enum insn insn_at(Addr ip, struct operand *operand)
{
	const UChar *code = (const UChar *)ip;
	struct opcode op;
	bool fences;
	if (!instruction_opcode(code, LONGEST, &op))
		return INSN_OTHER;
	if (!op.map)
		return op.repeat && (op.byte == 0xa4 || op.byte == 0xaa) ? INSN_STRING : INSN_OTHER;
	if (op.map == 1 && op.byte == 0xae && code[op.end] >> 3 == 0x1d && !op.size && !op.repeat)
		return INSN_LFENCE;
	const HChar *name = op.repeat ? NULL : instruction_flushes(code, LONGEST, &fences);
	if (!name || fences)
		return INSN_OTHER;
	if (name[0] != 'c')
		return INSN_PAST_CACHE;
	read_operand(ip, &op, operand); /* CLFLUSH, CLFLUSHOPT, CLWB */
	return INSN_FLUSH;
}
