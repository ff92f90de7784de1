/* SPDX-License-Identifier: BSD-3-Clause */
/* Are instructions as long as the assembler made them, and is it known which of them flush? */
#include "core/instruction.h"
#include "tests/suite.h"

#if defined(__x86_64__)

/* A stretch of instructions, never run, and where each of them begins. */
#define I(text) "771: " text "\n.pushsection .data.rel.begins,\"aw\"\n.quad 771b\n.popsection\n"
__asm__(".pushsection .data.rel.begins,\"aw\"\n.balign 8\nbegins:\n.popsection\n.text\n"
	/* operands: registers, displacements, an index, a place relative to the instruction */
	I("push %rbp") I("mov %rsp,%rbp") I("push %r12") I("sub $0x38,%rsp") I("sub $0x1234,%rsp")
		I("mov %rdi,-0x28(%rbp)") I("mov %rdi,-0x1028(%rbp)") I("mov (%rax),%eax")
			I("mov (%rsp),%eax") I("mov 8(%rsp),%eax") I("mov (%r12),%eax")
				I("mov (%r13),%eax") I("mov 0x1000(,%rax,8),%rdx")
					I("mov (%rax,%rdx,4),%ecx") I("mov begins(%rip),%rax")
						I("lea 0x12(%r13,%r14,8),%r15")
							I("mov %fs:0x28,%rax") I("mov (%eax),%ecx")
	/* immediates of each size */
	I("movb $1,-1(%rbp)") I("movw $0x1234,-8(%rbp)") I("movl $1,-8(%rbp)") I("movq $1,-8(%rbp)")
		I("mov $1,%eax") I("movabs $0x123456789abcdef,%rax") I("mov $1,%ax") I(
			"mov $1,%al") I("cmp $5,%al") I("cmp $0x1234,%ax") I("cmp $0x12345678,%eax")
			I("cmp $0x12345678,%rax") I("cmpb $0,8(%rax)") I("cmpw $0x1234,8(%rax)")
				I("cmpl $0x12345,8(%rax)") I("cmpl $1,8(%rax)")
					I("imul $100,%rax,%rax") I("imul $0x12345,%rax,%rax")
						I("push $1") I("push $0x12345") I("ret $8")
							I("enter $16,$0")
								I("movabs 0x123456789abcdef0,%al")
	/* TEST, which has an immediate, shares its opcode with others that have none */
	I("testb $1,(%rax)") I("testl $1,(%rax)") I("testw $1,(%rax)") I("notl (%rax)")
		I("negb (%rax)") I("mul %rdx") I("idivl -4(%rbp)") I("test %eax,%eax")
			I("test $1,%al")
	/* shifts, conversions, strings, locked instructions */
	I("shl %eax") I("shl $3,%rax") I("sar %cl,%rax") I("shld $3,%rax,%rdx") I("cltq") I(
		"cqto") I("rep stosq") I("rep movsb") I("lock cmpxchg %rdx,(%rdi)")
		I("lock xadd %eax,(%rdi)") I("xchg %rax,(%rdi)") I("bt $3,%eax") I("bsf %rax,%rax")
			I("bswap %r12") I("movzbl (%rax),%eax") I("movslq %eax,%rdx") I(
				"movsbw (%rax),%ax") I("cmove %eax,%edx") I("sete %al")
				I("popcnt %rax,%rax") I("crc32q %rax,%rdx") I("cpuid") I("rdtsc")
					I("ud2") I("endbr64") I("nop") I("nopw 0x0(%rax,%rax,1)")
						I("pause") I("leave") I("ret") I("int3") I("mfence")
							I("clflush (%rax)") I("clflushopt (%rax)")
								I("clwb (%rax)") I("syscall")
	/* floating point and vectors */
	I("fldt 8(%rsp)") I("fstp %st(1)") I("movss (%rax),%xmm0") I("movsd %xmm0,-8(%rbp)") I(
		"cvtsi2sd %rax,%xmm1") I("pxor %xmm0,%xmm0") I("pshufd $0,%xmm0,%xmm1")
		I("psrldq $8,%xmm0") I("shufps $1,%xmm0,%xmm1") I("pinsrw $1,%eax,%xmm0") I(
			"cmpsd $1,%xmm0,%xmm1") I("movntdq %xmm0,(%rax)") I("pshufb %xmm0,%xmm1")
			I("roundsd $1,%xmm0,%xmm1") I("pcmpistri $1,%xmm0,%xmm1") I(
				"vmovdqu (%rax),%ymm0") I("vmovdqu (%r8),%ymm9")
				I("vpshufd $1,%ymm0,%ymm1") I("vpshufb %ymm0,%ymm1,%ymm2") I(
					"vperm2i128 $1,%ymm0,%ymm1,%ymm2") I("vzeroupper")
					I("vmovdqu64 (%rax),%zmm0") I("vmovdqu64 64(%rax),%zmm0")
						I("vpcmpeqb %zmm0,%zmm1,%k1")
							I("vpternlogd $1,%zmm0,%zmm1,%zmm2")
								I("andn %rax,%rdx,%rcx")
									I("rorx $3,%rax,%rdx")
	/* what flushes, and what only looks like it */
	I("sfence") I("movnti %rax,(%rdi)") I("movntq %mm0,(%rdi)") I("movntpd %xmm0,(%rdi)")
		I("vmovntps %ymm0,(%rdi)") I("vmovntdq %zmm0,64(%rdi)") I("maskmovdqu %xmm0,%xmm1")
			I("movdir64b (%rdi),%rax") I("movdiri %eax,(%rdi)") I("clwb 0x1000(%r12)")
				I("clflushopt (%rax,%r9,2)") I("lfence") I("xsaveopt (%rax)")
					I("xrstor (%rax)") I("rdfsbase %rax") I("stmxcsr (%rax)")
						I("movntdqa (%rax),%xmm0") I("cvtdq2pd %xmm0,%xmm1")
							I("lock orq $0,(%rsp)") I("cldemote (%rax)")
								I("crc32w (%rax),%eax")
	/* the segments; jumps and calls */
	I("mov %gs:0x28,%rax") I("mov %es:(%rax),%ecx") I("mov %cs:(%rax),%ecx") I(
		"mov %ss:(%rax),%ecx") I("call begins") I("call *begins(%rip)") I("call *%rax")
		I("call *8(%rax)") I("jmp 0f") I("jmp begins") I("jmp *%rax") I(
			"notrack jmp *%rax") I("je 0f") I("je begins") I("jg 0f") I("jrcxz 0f")
			I("0: nop") ".pushsection .data.rel.begins,\"aw\"\nends:\n.popsection\n");

extern const uintptr_t begins[], ends[];

TEST(lengths)
{
	const size_t n = (size_t)(ends - begins);
	ck_assert_uint_gt(n, 120);
	for (size_t i = 0; i + 1 < n; i++) {
		const uint8_t *code = (const uint8_t *)begins[i];
		size_t bytes = begins[i + 1] - begins[i];
		ck_assert_msg(instruction_bytes(code, 16) == bytes,
			      "instruction %zu, %02x %02x %02x: %zu bytes, not %zu", i, code[0],
			      code[1], code[2], instruction_bytes(code, 16), bytes);
		/* An instruction that cannot be read whole is not known. */
		for (size_t left = 0; left < bytes; left++)
			ck_assert_uint_eq(instruction_bytes(code, left), 0);
	}
}

TEST(flushes)
{
	char names[400] = "";
	for (size_t i = 0; i + 1 < (size_t)(ends - begins); i++) {
		bool fences = false;
		const char *name = instruction_flushes((const uint8_t *)begins[i],
						       begins[i + 1] - begins[i], &fences);
		if (name)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s ",
				 name, fences ? "!" : "");
	}
	ck_assert_str_eq(names, "mfence! clflush clflushopt clwb movntdq sfence! movnti movntdq "
				"movntps movntps movntdq maskmovdqu movdir64b movdiri clwb "
				"clflushopt ");
}

/* Stores past the caches: to where, and how much. */
TEST(streams)
{
	char seen[600] = "";
	for (size_t i = 0; i + 1 < (size_t)(ends - begins); i++) {
		struct operand o;
		size_t len = instruction_streams((const uint8_t *)begins[i], begins[i],
						 begins[i + 1] - begins[i], &o);
		if (len)
			snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%zu:%d+%d ",
				 len, o.base, (int)o.displacement);
	}
	ck_assert_str_eq(seen, "16:0+0 8:7+0 8:7+0 16:7+0 32:7+0 64:7+64 16:7+0 64:0+0 4:7+0 ");
}

/* A place that is relative to the instruction, and registers that a prefix names. */
TEST(operands)
{
	static const struct {
		uint8_t code[9];
		uint8_t bytes;
		struct operand is;
	} of[] = {
		{{0x48, 0x0f, 0xc3, 0x05, 0xf8, 0xff, 0xff, 0xff},
		 8,
		 {.base = -1, .index = -1, .displacement = 0x1000, .relative = true}},
		{{0x66, 0x43, 0x0f, 0xae, 0x74, 0xe5, 0x10},
		 7, /* clwb 0x10(%r13,%r12,8) */
		 {.base = 13, .index = 12, .shift = 3, .displacement = 0x10}},
		{{0x64, 0x0f, 0xae, 0x3c, 0x25, 8, 0, 0, 0},
		 9, /* clflush %fs:8 */
		 {.base = -1, .index = -1, .displacement = 8, .segment = 0x64}},
	};
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct opcode op;
		struct operand o;
		ck_assert(instruction_opcode(of[i].code, of[i].bytes, &op));
		instruction_operand(of[i].code, 0x1000, of[i].bytes, &op, &o);
		ck_assert_int_eq(o.base, of[i].is.base);
		ck_assert_int_eq(o.index, of[i].is.index);
		ck_assert_int_eq(o.shift, of[i].is.shift);
		ck_assert_int_eq(o.displacement, of[i].is.displacement);
		ck_assert_int_eq(o.segment, of[i].is.segment);
		ck_assert_int_eq(o.relative, of[i].is.relative);
		ck_assert_uint_eq(o.end, of[i].bytes);
	}
}

TEST(locked)
{
	unsigned n = 0;
	for (size_t i = 0; i + 1 < (size_t)(ends - begins); i++)
		n += instruction_locks((const uint8_t *)begins[i], begins[i + 1] - begins[i]);
	ck_assert_uint_eq(n, 4); /* CMPXCHG, XADD, XCHG, OR */
}

TEST(no_instructions)
{
	static const uint8_t none[][2] = {{0x06, 0}, {0x60, 0}, {0x82, 0},
					  {0x9a, 0}, {0xd5, 0}, {0xea, 0}};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_uint_eq(instruction_bytes(none[i], 2), 0);
}

RUN_TESTS(NULL, NULL)

#else

int main(void)
{
	return 77; /* these are the instructions of another machine */
}

#endif
