/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_WHY_H
#define TM_RT_WHY_H
/* For functions that say in a sentence why they failed. */
#include <stdarg.h>
#include <stdio.h>

/* The sentence into `why`, of n bytes; returns `error`. */
__attribute__((format(printf, 4, 5))) static inline int why_not(char *why, size_t n, int error,
								const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, n, fmt, ap);
	va_end(ap);
	return error;
}

#endif
