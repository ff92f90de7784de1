/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers in texts: what can belong to the number is copied, and libc reads it there. */
#include <ctype.h>
#include <stdlib.h>
#include "core/libc/stdlib.h"
#include "core/libc/traced.h"

static void take_number(struct text *t, const char *s, uintptr_t pc)
{
	struct reader r = {.pc = pc};
	unsigned char c = get(&r, s);
	text_open(t);
	for (; isspace(c); c = get(&r, ++s))
		text_add(t, (char)c);
	for (; c && (isalnum(c) || strchr("+-._()", c)); c = get(&r, ++s))
		text_add(t, (char)c);
}

/* It has been read: `end` is told how far. */
static void tell_end(struct text *t, const char *s, char **end, const char *after, uintptr_t pc)
{
	const char *there = s + (after - t->at);
	if (end)
		put(end, &there, sizeof(there), pc);
	text_close(t);
}

#define INTEGER(T, name, libc)                      \
	T name(const char *s, char **end, int base) \
	{                                           \
		struct text t;                      \
		char *after;                        \
		take_number(&t, s, PC);             \
		T value = libc(t.at, &after, base); \
		tell_end(&t, s, end, after, PC);    \
		return value;                       \
	}
INTEGER(long, sim_strtol, strtol)
INTEGER(unsigned long, sim_strtoul, strtoul)
INTEGER(long long, sim_strtoll, strtoll)
INTEGER(unsigned long long, sim_strtoull, strtoull)
INTEGER(long, sim_isoc23_strtol, strtol)
INTEGER(unsigned long, sim_isoc23_strtoul, strtoul)
INTEGER(long long, sim_isoc23_strtoll, strtoll)
INTEGER(unsigned long long, sim_isoc23_strtoull, strtoull)

#define REAL(T, name, libc)                      \
	T name(const char *s, char **end)        \
	{                                        \
		struct text t;                   \
		char *after;                     \
		take_number(&t, s, PC);          \
		T value = libc(t.at, &after);    \
		tell_end(&t, s, end, after, PC); \
		return value;                    \
	}
REAL(float, sim_strtof, strtof)
REAL(double, sim_strtod, strtod)
REAL(long double, sim_strtold, strtold)

#define SIMPLE(T, name, libc)           \
	T name(const char *s)           \
	{                               \
		struct text t;          \
		take_number(&t, s, PC); \
		T value = libc(t.at);   \
		text_close(&t);         \
		return value;           \
	}
SIMPLE(int, sim_atoi, atoi)
SIMPLE(long, sim_atol, atol)
SIMPLE(long long, sim_atoll, atoll)
SIMPLE(double, sim_atof, atof)
