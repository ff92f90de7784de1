/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What VEX does not tell of the machine code (x86-64). To VEX a non-temporal store is a store like
 * any other, each fence the same, the operand of CLFLUSH known to 256 bytes only, and CLWB and
 * CLFLUSHOPT no instructions at all. core/instruction.h knows the opcodes.
 */
#include "tidepm.h"
#include "../core/instruction.h"

#define LONGEST 15 /* bytes */

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
	/* CLFLUSH, CLFLUSHOPT, CLWB */
	instruction_operand(code, ip, instruction_bytes(code, LONGEST), &op, operand);
	return INSN_FLUSH;
}
