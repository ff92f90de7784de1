/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_PRINT_H
#define TM_LIBC_PRINT_H
/* What printf() makes of its arguments. */
#include <stdarg.h>
#include "core/libc/traced.h"

void print_to(struct text *out, const char *fmt, va_list ap, uintptr_t pc)
	__attribute__((format(printf, 2, 0)));

#endif
