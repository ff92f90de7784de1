/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See instruction.h. What is needed of most instructions is their length alone: prefixes, opcode,
 * the byte that names the operands (ModRM) with what belongs to it, and the immediate. Intel's
 * manual, volume 2, appendix A, has the tables.
 */
#include "core/instruction.h"

#define LONGEST 15 /* bytes, by the processor's own rule */

/*
 * What follows an opcode:
 *
 *	.  nothing		m  ModRM
 *	b  8 bits		B  ModRM, 8 bits
 *	w  16 bits		z  16 or 32 bits, by operand size
 *	v  16, 32 or 64 bits	Z  ModRM, and z
 *	a  an address		e  16 and 8 bits
 *	d  32 bits		t  ModRM, and for a TEST 8 bits; T  likewise, z
 *	-  there is none	p  it is a prefix, or something else that is not looked up here
 */
static const char one_byte[] = "mmmmbz--mmmmbz-p"
			       "mmmmbz--mmmmbz--"
			       "mmmmbzp-mmmmbzp-"
			       "mmmmbzp-mmmmbzp-"
			       "pppppppppppppppp"
			       "................"
			       "--pmppppzZbB...."
			       "bbbbbbbbbbbbbbbb"
			       "BZ-Bmmmmmmmmmmmm"
			       "..........-....."
			       "aaaa....bz......"
			       "bbbbbbbbvvvvvvvv"
			       "BBw.ppBZe.w..b-."
			       "mmmm---.mmmmmmmm"
			       "bbbbbbbbdd-b...."
			       "p.pp..tT......mm";
static const char two_bytes[] = "mmmm-.....-.-m.B"
				"mmmmmmmmmmmmmmmm"
				"mmmm----mmmmmmmm"
				"........p-p-----"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"BBBBmmm.mmmmmmmm"
				"dddddddddddddddd"
				"mmmmmmmmmmmmmmmm"
				"...mBm--...mBmmm"
				"mmmmmmmmmmBmmmmm"
				"mmBmBBBm........"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm";
_Static_assert(sizeof(one_byte) == 257 && sizeof(two_bytes) == 257, "an entry for each opcode");

/* ModRM, an index byte, a displacement. */
static size_t operand_bytes(const uint8_t *code, size_t left)
{
	if (!left)
		return LONGEST;
	unsigned mode = code[0] >> 6, base = code[0] & 7;
	size_t bytes = 1;
	if (mode == 3)
		return bytes;
	if (base == 4) {
		if (left < 2)
			return LONGEST;
		bytes++;
		base = code[1] & 7;
	}
	return bytes + (mode == 1 ? 1 : mode == 2 || (mode == 0 && base == 5) ? 4 : 0);
}

/* What follows the opcode; LONGEST: there is no such instruction. */
static size_t rest_bytes(char kind, const uint8_t *code, size_t left, const struct opcode *p)
{
	const size_t z = p->operand16 ? 2 : 4;
	const bool test = left && (code[0] >> 3 & 7) < 2;
	switch (kind) {
	case '.':
		return 0;
	case 'b':
		return 1;
	case 'w':
		return 2;
	case 'e':
		return 3;
	case 'd':
		return 4;
	case 'z':
		return z;
	case 'v':
		return p->wide ? 8 : z;
	case 'a':
		return p->address32 ? 4 : 8;
	case 'm':
		return operand_bytes(code, left);
	case 'B':
		return operand_bytes(code, left) + 1;
	case 'Z':
		return operand_bytes(code, left) + z;
	case 't':
		return operand_bytes(code, left) + test;
	case 'T':
		return operand_bytes(code, left) + (test ? z : 0);
	default:
		return LONGEST;
	}
}

/* In the maps of opcodes of two or three bytes: 1 is 0x0f, 2 0x0f38, 3 0x0f3a. */
static char kind_in_map(unsigned map, uint8_t opcode)
{
	return map == 1 ? two_bytes[opcode] : map == 2 ? 'm' : map == 3 ? 'B' : '-';
}

/* Instructions of vectors, whose prefix at `at` names the map and other prefixes: VEX, EVEX. */
static bool read_vector_opcode(const uint8_t *code, size_t left, size_t at, struct opcode *o)
{
	const size_t prefix = code[at] == 0xc5 ? 2 : code[at] == 0xc4 ? 3 : 4;
	if (left < at + prefix + 1)
		return false;
	unsigned implied = code[prefix == 2 ? at + 1 : at + 2] & 3;
	/* R, X and B are inverted; with two bytes there is but R. */
	o->rex = prefix == 2 ? 0x40 | (~code[at + 1] >> 5 & 4) : 0x40 | (~code[at + 1] >> 5 & 7);
	o->scaled = prefix == 4;
	o->vector = prefix == 4 ? 16 << (code[at + 3] >> 5 & 3)
				: 16 << (code[at + prefix - 1] >> 2 & 1);
	o->map = prefix == 2 ? 1 : code[at + 1] & (prefix == 3 ? 31 : 7);
	o->size = implied == 1;
	o->repeat = implied > 1;
	o->byte = code[at + prefix];
	o->end = at + prefix + 1;
	return true;
}

static bool is_prefix(uint8_t byte, struct opcode *o)
{
	switch (byte) {
	case 0x66:
		return o->operand16 = true;
	case 0x67:
		return o->address32 = true;
	case 0xf2:
	case 0xf3:
		return o->repeat = true;
	case 0x64:
	case 0x65:
		o->segment = byte;
		return true;
	case 0xf0:
		return o->locked = true;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
		return true;
	default:
		return false;
	}
}

bool instruction_opcode(const uint8_t *code, size_t left, struct opcode *o)
{
	size_t at = 0;
	*o = (struct opcode){.vector = 16};
	while (at < left && is_prefix(code[at], o))
		at++;
	o->size = o->operand16;
	if (at < left && code[at] >> 4 == 4) {
		o->rex = code[at];
		o->wide = code[at] & 8;
		o->operand16 &= !o->wide;
		at++;
	}
	if (at >= left)
		return false;
	if (code[at] == 0xc4 || code[at] == 0xc5 || code[at] == 0x62)
		return read_vector_opcode(code, left, at, o);
	o->byte = code[at++];
	if (o->byte == 0x0f) {
		if (at >= left)
			return false;
		o->map = code[at] == 0x38 ? 2 : code[at] == 0x3a ? 3 : 1;
		at += o->map > 1;
		if (at >= left)
			return false;
		o->byte = code[at++];
	}
	o->end = at;
	return true;
}

size_t instruction_bytes(const uint8_t *code, size_t left)
{
	struct opcode o;
	if (!instruction_opcode(code, left, &o))
		return 0;
	char kind = o.map ? kind_in_map(o.map, o.byte) : one_byte[o.byte];
	size_t bytes = o.end + rest_bytes(kind, code + o.end, left - o.end, &o);
	return bytes <= left && bytes <= LONGEST ? bytes : 0;
}

static int64_t displacement_at(const uint8_t *at, size_t bytes)
{
	int32_t value;
	if (bytes == 1)
		return (int8_t)at[0];
	if (!bytes)
		return 0;
	value = (int32_t)(at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24);
	return value;
}

void instruction_operand(const uint8_t *code, uint64_t ip, size_t bytes, const struct opcode *op,
			 struct operand *o)
{
	const uint8_t *at = code + op->end;
	const uint8_t modrm = *at++, mode = modrm >> 6, rm = modrm & 7;
	size_t wide = mode == 1 ? 1 : mode == 2 ? 4 : 0;
	*o = (struct operand){.base = rm | (op->rex & 1) << 3,
			      .index = -1,
			      .segment = op->segment,
			      .narrow = op->address32,
			      .relative = mode == 0 && rm == 5};
	if (rm == 4) {
		const uint8_t sib = *at++;
		const int index = (sib >> 3 & 7) | (op->rex & 2) << 2;
		o->base = (sib & 7) | (op->rex & 1) << 3;
		o->index = index == 4 ? -1 : index; /* RSP is no index */
		o->shift = sib >> 6;
		if (mode == 0 && (sib & 7) == 5) {
			o->base = -1;
			wide = 4;
		}
	}
	if (o->relative) {
		o->base = -1;
		wide = 4;
	}
	o->at = (size_t)(at - code);
	o->end = o->at + wide;
	o->displacement = displacement_at(at, wide);
	if (wide == 1 && op->scaled)
		o->displacement *= op->vector;
	if (o->relative)
		o->displacement += (int64_t)(ip + bytes);
}

/* The opcodes are those of Intel's manual, volume 2. Their prefixes: 66; or none, which means
 * neither 66 nor F2 nor F3. */
enum { NO_PREFIX, SIZE_PREFIX, NO_REPEAT, ANY_PREFIX };
static const struct {
	uint8_t map, byte, prefix;
	int8_t reg; /* of ModRM; -1: any */
	bool memory, fences;
	const char *name;
} orders[] = {
	{1, 0xae, NO_PREFIX, 7, true, false, "clflush"},
	{1, 0xae, SIZE_PREFIX, 7, true, false, "clflushopt"},
	{1, 0xae, SIZE_PREFIX, 6, true, false, "clwb"},
	{1, 0xae, NO_PREFIX, 7, false, true, "sfence"},
	{1, 0xae, NO_PREFIX, 6, false, true, "mfence"},
	{1, 0xc3, NO_PREFIX, -1, true, false, "movnti"},
	{1, 0x2b, ANY_PREFIX, -1, true, false, "movntps"},
	{1, 0xe7, NO_REPEAT, -1, true, false, "movntdq"},
	{1, 0xf7, NO_REPEAT, -1, false, false, "maskmovdqu"},
	{2, 0xf8, SIZE_PREFIX, -1, true, false, "movdir64b"},
	{2, 0xf9, NO_PREFIX, -1, true, false, "movdiri"},
};

static bool has_prefix(const struct opcode *p, unsigned prefix)
{
	switch (prefix) {
	case NO_PREFIX:
		return !p->size && !p->repeat;
	case SIZE_PREFIX:
		return p->size && !p->repeat;
	case NO_REPEAT:
		return !p->repeat;
	default:
		return true;
	}
}

const char *instruction_flushes(const uint8_t *code, size_t bytes, bool *fences)
{
	struct opcode o;
	if (!instruction_opcode(code, bytes, &o) || !o.map || o.end >= bytes)
		return NULL;
	const uint8_t operands = code[o.end];
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		if (orders[i].map != o.map || orders[i].byte != o.byte ||
		    !has_prefix(&o, orders[i].prefix) ||
		    (orders[i].reg >= 0 && orders[i].reg != (operands >> 3 & 7)) ||
		    orders[i].memory != (operands >> 6 != 3))
			continue;
		*fences = orders[i].fences;
		return orders[i].name;
	}
	return NULL;
}

size_t instruction_streams(const uint8_t *code, uint64_t ip, size_t bytes, struct operand *o)
{
	struct opcode op;
	bool fences;
	const char *name = instruction_flushes(code, bytes, &fences);
	if (!name || fences || name[0] != 'm' || !instruction_opcode(code, bytes, &op))
		return 0;
	const uint8_t modrm = code[op.end];
	/* Two have the address in a register: of ModRM, and RDI. */
	if (op.map == 2 && op.byte == 0xf8) {
		*o = (struct operand){.base = (modrm >> 3 & 7) | (op.rex & 4) << 1, .index = -1};
		return 64;
	}
	if (op.byte == 0xf7) {
		*o = (struct operand){.base = 7, .index = -1, .segment = op.segment};
		return op.size ? 16 : 8;
	}
	instruction_operand(code, ip, bytes, &op, o);
	if (op.byte == 0xc3 || op.byte == 0xf9)
		return op.wide ? 8 : 4;
	return op.byte == 0xe7 && !op.size ? 8 : op.vector;
}

bool instruction_locks(const uint8_t *code, size_t bytes)
{
	struct opcode o;
	if (!instruction_opcode(code, bytes, &o))
		return false;
	return o.locked || (!o.map && (o.byte == 0x86 || o.byte == 0x87) && code[o.end] >> 6 != 3);
}
