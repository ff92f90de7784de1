/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads as much of the machine code (x86-64) as VEX does not tell. To VEX a non-temporal store is
 * a store like any other, each fence the same, the operand of CLFLUSH known to 256 bytes only, and
 * CLWB and CLFLUSHOPT no instructions at all. The opcodes are those of Intel's Software Developer's
 * Manual, volume 2:
 *
 *	NP 0F AE /7 m8		CLFLUSH			0F C3	MOVNTI
 *	66 0F AE /7 m8		CLFLUSHOPT		0F 2B	MOVNTPS, with 66 MOVNTPD
 *	66 0F AE /6 m8		CLWB			0F E7	MOVNTQ, with 66 MOVNTDQ
 *	0F AE E8		LFENCE			0F F7	MASKMOVQ, with 66 MASKMOVDQU
 *
 *	F3 A4, F3 AA		REP MOVSB, REP STOSB
 *
 * and those of 2B, E7 and F7 with a VEX prefix (C5 or C4) in place of the 0F.
 */
#include "tidepm.h"

struct code {
	const UChar *at;
	Bool size_prefix, narrow, rep;
	Int segment;
	UChar rex;
};

static void prefixes(struct code *c)
{
	for (;; c->at++) {
		switch (*c->at) {
		case 0x66:
			c->size_prefix = True;
			continue;
		case 0x67:
			c->narrow = True;
			continue;
		case 0xf2:
		case 0xf3:
			c->rep = True;
			continue;
		case 0x64:
		case 0x65:
			c->segment = *c->at;
			continue;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
			continue;
		default:
			if ((*c->at & 0xf0) == 0x40)
				c->rex = *c->at++;
			return;
		}
	}
}

static Long read_displacement(struct code *c, UInt bytes)
{
	Long value = 0;
	if (bytes == 1)
		value = *(const Char *)c->at;
	else if (bytes == 4)
		value = (Int)(c->at[0] | c->at[1] << 8 | c->at[2] << 16 | (UInt)c->at[3] << 24);
	c->at += bytes;
	return value;
}

/* c->at is at the ModRM byte of an instruction that has no immediate operand. */
static void read_operand(struct code *c, Addr ip, struct operand *o)
{
	UChar modrm = *c->at++, mod = modrm >> 6, rm = modrm & 7;
	UInt bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	Bool relative = mod == 0 && rm == 5;
	*o = (struct operand){.base = rm | (c->rex & 1) << 3,
			      .index = -1,
			      .segment = c->segment,
			      .narrow = c->narrow};
	if (rm == 4) {
		UChar sib = *c->at++;
		Int index = (sib >> 3 & 7) | (c->rex & 2) << 2;
		o->base = (sib & 7) | (c->rex & 1) << 3;
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
	o->displacement = read_displacement(c, bytes);
	o->len = (UInt)(c->at - (const UChar *)ip);
	if (relative)
		o->displacement += ip + o->len;
}

/* C4 or C5: 0F is in the prefix. */
static enum insn with_vex(const UChar *at)
{
	Bool map_0f = at[0] == 0xc5 || (at[1] & 0x1f) == 1;
	UChar opcode = at[0] == 0xc5 ? at[2] : at[3];
	if (map_0f && (opcode == 0x2b || opcode == 0xe7 || opcode == 0xf7))
		return INSN_PAST_CACHE;
	return INSN_OTHER;
}

enum insn insn_at(Addr ip, struct operand *operand)
{
	struct code c = {.at = (const UChar *)ip};
	prefixes(&c);
	if (*c.at == 0xc4 || *c.at == 0xc5)
		return with_vex(c.at);
	if (c.rep && (*c.at == 0xa4 || *c.at == 0xaa))
		return INSN_STRING;
	if (*c.at++ != 0x0f)
		return INSN_OTHER;
	switch (*c.at++) {
	case 0xc3:
	case 0x2b:
	case 0xe7:
	case 0xf7:
		/* With F2 or F3: conversions and SSE4A, which go through the cache or are not
		 * known. */
		return c.rep ? INSN_OTHER : INSN_PAST_CACHE;
	case 0xae: {
		UChar modrm = *c.at, reg = modrm >> 3 & 7;
		if (c.rep)
			return INSN_OTHER;
		if (modrm >> 6 == 3)
			return reg == 5 && !c.size_prefix ? INSN_LFENCE : INSN_OTHER;
		if (reg == 7 || (reg == 6 && c.size_prefix)) {
			read_operand(&c, ip, operand);
			return INSN_FLUSH;
		}
		return INSN_OTHER;
	}
	default:
		return INSN_OTHER;
	}
}
