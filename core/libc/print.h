/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_PRINT_H
#define TM_LIBC_PRINT_H
/* What printf() makes of its arguments. */
#include <stdarg.h>
#include "core/libc/traced.h"

void print_to(struct text *out, const char *fmt, va_list ap, uintptr_t pc)
	__attribute__((format(printf, 2, 0)));
/* A function with `fmt` and its arguments, `ap`: what `call` gives. */
#define VARIADIC(name, params, call) \
	int name params              \
	{                            \
		va_list ap;          \
		va_start(ap, fmt);   \
		int len = call;      \
		va_end(ap);          \
		return len;          \
	}

#endif
