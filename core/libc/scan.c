/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sscanf() for store code. Input and format are copied; libc reads one value after the other into
 * memory of ours, and each is then stored where the store wants it.
 */
#include <ctype.h>
#include <stdbool.h>
#include "core/libc/stdio.h"
#include "core/libc/traced.h"
#include "core/rt/process/libc.h"

struct scanning {
	struct text input, fmt;
	const char *at; /* in the input */
	const char *f;	/* in the format */
	uintptr_t pc;
	va_list args;
};

/* Bytes of a value of that kind. */
static size_t value_bytes(char what, char length)
{
	if (strchr("aAeEfFgG", what))
		return length == 'L'   ? sizeof(long double)
		       : length == 'l' ? sizeof(double)
				       : sizeof(float);
	if (what == 'p')
		return sizeof(void *);
	return length == 'H' ? 1 : length == 'h' ? 2 : length ? 8 : 4;
}

static void skip_space(struct scanning *s)
{
	while (isspace((unsigned char)*s->at))
		s->at++;
}

/* The conversion at s->f, after its '%', as text for libc: "%*12[a-z]". */
struct one {
	char *spec;
	size_t width; /* 0: none */
	bool dropped; /* its value */
	char length, what;
};

static struct one one_conversion(struct scanning *s, struct text *spec)
{
	struct one one = {0};
	text_add(spec, '%');
	if ((one.dropped = *s->f == '*'))
		s->f++;
	for (; isdigit((unsigned char)*s->f); s->f++) {
		one.width = one.width * 10 + (size_t)(*s->f - '0');
		text_add(spec, *s->f);
	}
	for (; *s->f && strchr("hljztqL", *s->f); s->f++) {
		one.length = one.length != *s->f ? *s->f : *s->f == 'h' ? 'H' : 'q';
		text_add(spec, *s->f);
	}
	one.what = *s->f;
	if (!one.what || !strchr("diouxXaAeEfFgGpsc[n%", one.what))
		sim_fault_at(s->pc, "sscanf: a conversion that is not simulated");
	text_add(spec, *s->f++);
	if (one.what == '[') {
		if (*s->f == '^')
			text_add(spec, *s->f++);
		if (*s->f == ']') /* at first it belongs to the set */
			text_add(spec, *s->f++);
		while (*s->f && *s->f != ']')
			text_add(spec, *s->f++);
		text_add(spec, ']');
		s->f += *s->f == ']';
	}
	if (one.length && strchr("sc[", one.what))
		sim_fault_at(s->pc, "sscanf: wide characters are not simulated");
	text_add(spec, '%');
	text_add(spec, 'n');
	one.spec = spec->at;
	return one;
}

/* 1: a value; 0: the input is another; EOF: it has ended. */
static int convert(struct scanning *s, const struct one *one)
{
	bool string = strchr("sc[", one->what);
	size_t left = strlen(s->at);
	int used = 0, found;
	char *own = sim_take(left + sizeof(long double));
	memset(own, 0, left + sizeof(long double));
	found = sscanf(s->at, one->spec, own, &used);
	if (found == 1) {
		size_t bytes = one->what == 'c' ? (size_t)used
			       : string		? strlen(own) + 1
						: value_bytes(one->what, one->length);
		if (!one->dropped)
			put(va_arg(s->args, void *), own, bytes, s->pc);
		s->at += used;
	}
	sim_free_memory(own);
	return found;
}

/* Number of values that were stored; EOF: none, as the input has ended. */
static int scan_all(struct scanning *s)
{
	int values = 0;
	while (*s->f) {
		if (isspace((unsigned char)*s->f)) {
			skip_space(s);
			s->f++;
			continue;
		}
		if (*s->f != '%') {
			if (*s->at != *s->f)
				return *s->at || values ? values : EOF;
			s->at++;
			s->f++;
			continue;
		}
		struct text spec;
		s->f++;
		text_open(&spec);
		struct one one = one_conversion(s, &spec);
		int found = 1;
		if (one.what == 'n') {
			long long count = s->at - s->input.at;
			if (!one.dropped)
				put(va_arg(s->args, void *), &count, value_bytes('d', one.length),
				    s->pc);
		} else if (one.what == '%') {
			skip_space(s);
			found = *s->at == '%' ? 1 : *s->at ? 0 : EOF;
			s->at += found == 1;
		} else {
			found = convert(s, &one);
			values += found == 1 && !one.dropped;
		}
		text_close(&spec);
		if (found != 1)
			return found == EOF && !values ? EOF : values;
	}
	return values;
}

static int scan(const char *from, const char *fmt, va_list ap, uintptr_t pc)
{
	struct scanning s = {.pc = pc};
	text_open(&s.input);
	text_open(&s.fmt);
	text_add_string(&s.input, from, SIZE_MAX, pc);
	text_add_string(&s.fmt, fmt, SIZE_MAX, pc);
	s.at = s.input.at;
	s.f = s.fmt.at;
	va_copy(s.args, ap);
	int values = scan_all(&s);
	va_end(s.args);
	text_close(&s.fmt);
	text_close(&s.input);
	return values;
}

#define SCAN(name, vname)                                        \
	int vname(const char *from, const char *fmt, va_list ap) \
	{                                                        \
		return scan(from, fmt, ap, PC);                  \
	}                                                        \
	int name(const char *from, const char *fmt, ...)         \
	{                                                        \
		va_list ap;                                      \
		va_start(ap, fmt);                               \
		int values = scan(from, fmt, ap, PC);            \
		va_end(ap);                                      \
		return values;                                   \
	}
SCAN(sim_sscanf, sim_vsscanf)
SCAN(sim_isoc99_sscanf, sim_isoc99_vsscanf)
SCAN(sim_isoc23_sscanf, sim_isoc23_vsscanf)
