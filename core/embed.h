/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CORE_EMBED_H
#define TM_CORE_EMBED_H
/* A file that the assembler puts into the program, with a NUL after it. */
#define EMBED(symbol, file)                                                            \
	extern const char symbol[];                                                    \
	__asm__(".section .rodata\n.global " #symbol "\n" #symbol ":\n.incbin \"" file \
		"\"\n.byte 0\n.previous\n")
#endif
