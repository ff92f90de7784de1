/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * printf() for store code. The format is taken apart here, so that each string that is printed is
 * read by loads that the persistence model sees; libc formats one value after the other.
 */
#include "core/libc/print.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include "core/libc/stdio.h"
#include "core/rt/process/libc.h"

/* One conversion: "%-8.3lx". */
struct conversion {
	char flags[8];
	int width, precision; /* -1: none */
	char length;	      /* h, H (hh), l, q (ll), j, z, t, L; 0: none */
	char what;
};

struct printing {
	struct text *out;
	struct reader fmt;
	const char *at; /* in the format */
	uintptr_t pc;
	va_list args;
};

static char next(struct printing *p)
{
	return (char)get(&p->fmt, p->at++);
}

/* A number of the format, or an argument in its place. */
static int number(struct printing *p, char *c)
{
	int n = 0;
	if (*c == '*') {
		*c = next(p);
		return va_arg(p->args, int);
	}
	for (; *c >= '0' && *c <= '9'; *c = next(p))
		n = n < INT_MAX / 10 - 1 ? n * 10 + (*c - '0') : n;
	return n;
}

static struct conversion conversion(struct printing *p)
{
	struct conversion v = {.width = -1, .precision = -1};
	char c = next(p);
	for (size_t n = 0; c && strchr("-+ #0'", c); c = next(p))
		if (!strchr(v.flags, c))
			v.flags[n++] = c; /* each once: five at most */
	if (c == '*' || (c >= '0' && c <= '9'))
		v.width = number(p, &c);
	if (v.width < -1) { /* by an argument */
		v.flags[strlen(v.flags)] = '-';
		v.width = -v.width;
	}
	if (c == '.') {
		c = next(p);
		v.precision = number(p, &c);
		v.precision = v.precision < 0 ? -1 : v.precision;
	}
	for (; c && strchr("hljztqL", c); c = next(p))
		v.length = v.length != c ? c : c == 'h' ? 'H' : 'q';
	v.what = c;
	return v;
}

static void spell(char spec[48], const struct conversion *v, const char *length)
{
	int n = snprintf(spec, 48, "%%%s", v->flags);
	if (v->width >= 0)
		n += snprintf(spec + n, 48 - (size_t)n, "%d", v->width);
	if (v->precision >= 0)
		n += snprintf(spec + n, 48 - (size_t)n, ".%d", v->precision);
	snprintf(spec + n, 48 - (size_t)n, "%s%c", length, v->what);
}

/* A value, by libc. */
#define FORMAT(p, v, length, value)                                                    \
	do {                                                                           \
		__auto_type own = value;                                               \
		struct text *out = (p)->out;                                           \
		char spec[48];                                                         \
		spell(spec, v, length);                                                \
		size_t more = (size_t)snprintf(NULL, 0, spec, own);                    \
		text_room(out, more);                                                  \
		out->len += (size_t)snprintf(out->at + out->len, more + 1, spec, own); \
	} while (0)

static void print_signed(struct printing *p, const struct conversion *v)
{
	long long value;
	switch (v->length) {
	case 'H':
		value = (signed char)va_arg(p->args, int);
		break;
	case 'h':
		value = (short)va_arg(p->args, int);
		break;
	case 0:
		value = va_arg(p->args, int);
		break;
	default: /* all others have the size of a long */
		value = va_arg(p->args, long long);
	}
	FORMAT(p, v, "ll", value);
}

static void print_unsigned(struct printing *p, const struct conversion *v)
{
	unsigned long long value;
	switch (v->length) {
	case 'H':
		value = (unsigned char)va_arg(p->args, unsigned);
		break;
	case 'h':
		value = (unsigned short)va_arg(p->args, unsigned);
		break;
	case 0:
		value = va_arg(p->args, unsigned);
		break;
	default:
		value = va_arg(p->args, unsigned long long);
	}
	FORMAT(p, v, "ll", value);
}

/* The store's string is copied first. */
static void print_string(struct printing *p, const struct conversion *v, const char *s)
{
	struct text copy;
	text_open(&copy);
	if (s)
		text_add_string(&copy, s, v->precision < 0 ? SIZE_MAX : (size_t)v->precision,
				p->pc);
	FORMAT(p, v, "", s ? copy.at : (char *)NULL);
	text_close(&copy);
}

/* %n */
static void tell_count(struct printing *p, const struct conversion *v)
{
	long long count = (long long)p->out->len;
	size_t bytes = v->length == 'H' ? 1 : v->length == 'h' ? 2 : v->length ? 8 : 4;
	put(va_arg(p->args, void *), &count, bytes, p->pc); /* the lowest bytes come first */
}

static void convert(struct printing *p)
{
	struct conversion v = conversion(p);
	int error = errno;
	switch (v.what) {
	case '%':
		text_add(p->out, '%');
		break;
	case 'd':
	case 'i':
		print_signed(p, &v);
		break;
	case 'u':
	case 'o':
	case 'x':
	case 'X':
		print_unsigned(p, &v);
		break;
	case 'e':
	case 'E':
	case 'f':
	case 'F':
	case 'g':
	case 'G':
	case 'a':
	case 'A':
		if (v.length == 'L')
			FORMAT(p, &v, "L", va_arg(p->args, long double));
		else
			FORMAT(p, &v, "", va_arg(p->args, double));
		break;
	case 'p':
		FORMAT(p, &v, "", va_arg(p->args, void *));
		break;
	case 'c':
		if (v.length)
			sim_fault_at(p->pc, "printf: wide characters are not simulated");
		FORMAT(p, &v, "", va_arg(p->args, int));
		break;
	case 's':
		if (v.length)
			sim_fault_at(p->pc, "printf: wide characters are not simulated");
		print_string(p, &v, va_arg(p->args, const char *));
		break;
	case 'm':
		v.what = 's';
		FORMAT(p, &v, "", strerror(error));
		break;
	case 'n':
		tell_count(p, &v);
		break;
	default:
		sim_fault_at(p->pc, "printf: a conversion that is not simulated");
	}
}

void print_to(struct text *out, const char *fmt, va_list ap, uintptr_t pc)
{
	struct printing p = {.out = out, .fmt.pc = pc, .at = fmt, .pc = pc};
	va_copy(p.args, ap);
	for (char c; (c = next(&p));)
		if (c == '%')
			convert(&p);
		else
			text_add(out, c);
	va_end(p.args);
}

static int print_into(char *to, size_t room, const char *fmt, va_list ap, uintptr_t pc)
{
	struct text out;
	text_open(&out);
	print_to(&out, fmt, ap, pc);
	int len = (int)out.len;
	if (room) {
		size_t kept = out.len < room ? out.len : room - 1;
		out.at[kept] = '\0';
		put(to, out.at, kept + 1, pc);
	}
	text_close(&out);
	return len;
}

static int print_new(char **to, const char *fmt, va_list ap, uintptr_t pc)
{
	struct text out;
	text_open(&out);
	print_to(&out, fmt, ap, pc);
	char *copy = sim_malloc(out.len + 1);
	int len = copy ? (int)out.len : -1;
	if (copy)
		memcpy(copy, out.at, out.len + 1);
	text_close(&out);
	put(to, &copy, sizeof(copy), pc);
	return len;
}

int sim_vsnprintf(char *to, size_t room, const char *fmt, va_list ap)
{
	return print_into(to, room, fmt, ap, PC);
}

int sim_vsprintf(char *to, const char *fmt, va_list ap)
{
	return print_into(to, SIZE_MAX, fmt, ap, PC);
}

int sim_vasprintf(char **to, const char *fmt, va_list ap)
{
	return print_new(to, fmt, ap, PC);
}

VARIADIC(sim_snprintf, (char *to, size_t room, const char *fmt, ...),
	 print_into(to, room, fmt, ap, PC))
VARIADIC(sim_sprintf, (char *to, const char *fmt, ...), print_into(to, SIZE_MAX, fmt, ap, PC))
VARIADIC(sim_asprintf, (char **to, const char *fmt, ...), print_new(to, fmt, ap, PC))
