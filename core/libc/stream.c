/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard output and standard error, which are the only streams. What is printed goes nowhere,
 * thousands of runs a second, but in a replay each line is an event of the trace. Its arguments are
 * read in any case: a run is the same with and without a trace.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include "core/libc/print.h"
#include "core/libc/stdio.h"
#include "core/rt/process/libc.h"
#include "core/rt/sim.h"

/* Only their addresses count. */
static const char out_stream, error_stream;
FILE *const sim_stdout = (FILE *)&out_stream, *const sim_stderr = (FILE *)&error_stream;

static void look_at(const FILE *stream, uintptr_t pc)
{
	if (stream != sim_stdout && stream != sim_stderr)
		sim_fault_at(pc, "no such stream: there are stdout and stderr");
}

/* The text is printed. Returns its length. */
static int say(struct text *t, uintptr_t pc)
{
	struct sim *sim = sim_current();
	int len = (int)t->len;
	for (size_t i = 0, from = 0; i < t->len && sim_tracing(sim); i++) {
		char *c = &t->at[i];
		bool ends = *c == '\n' || i + 1 == t->len;
		if (!isprint((unsigned char)*c) && *c != '\n')
			*c = '?';
		if (!ends)
			continue;
		size_t line = i - from + (*c != '\n');
		if (line)
			sim_trace(sim, sim_actor(sim), pc, "prints: %.*s", (int)line, t->at + from);
		from = i + 1;
	}
	text_close(t);
	return len;
}

static int print(FILE *stream, const char *fmt, va_list ap, uintptr_t pc)
{
	struct text t;
	look_at(stream, pc);
	text_open(&t);
	print_to(&t, fmt, ap, pc);
	return say(&t, pc);
}

int sim_vfprintf(FILE *stream, const char *fmt, va_list ap)
{
	return print(stream, fmt, ap, PC);
}

int sim_vprintf(const char *fmt, va_list ap)
{
	return print(sim_stdout, fmt, ap, PC);
}

VARIADIC(sim_fprintf, (FILE * stream, const char *fmt, ...), print(stream, fmt, ap, PC))
VARIADIC(sim_printf, (const char *fmt, ...), print(sim_stdout, fmt, ap, PC))
static int say_string(FILE *stream, const char *s, const char *after, uintptr_t pc)
{
	struct text t;
	look_at(stream, pc);
	text_open(&t);
	text_add_string(&t, s, SIZE_MAX, pc);
	for (; *after; after++)
		text_add(&t, *after);
	return say(&t, pc);
}

int sim_puts(const char *s)
{
	return say_string(sim_stdout, s, "\n", PC);
}

int sim_fputs(const char *s, FILE *stream)
{
	return say_string(stream, s, "", PC);
}

static int say_one(FILE *stream, int c, uintptr_t pc)
{
	const char one[2] = {(char)c};
	say_string(stream, one, "", pc);
	return (unsigned char)c;
}

int sim_putchar(int c)
{
	return say_one(sim_stdout, c, PC);
}

int sim_putc(int c, FILE *stream)
{
	return say_one(stream, c, PC);
}

int sim_fputc(int c, FILE *stream) __attribute__((alias("sim_putc")));

size_t sim_fwrite(const void *from, size_t bytes, size_t n, FILE *stream)
{
	struct reader r = {.pc = PC};
	struct text t;
	size_t len;
	look_at(stream, PC);
	if (__builtin_mul_overflow(bytes, n, &len))
		return 0;
	text_open(&t);
	for (size_t i = 0; i < len; i++)
		text_add(&t, (char)get(&r, (const char *)from + i));
	say(&t, PC);
	return n;
}

void sim_perror(const char *what)
{
	int error = errno;
	struct text t;
	text_open(&t);
	if (what) {
		text_add_string(&t, what, SIZE_MAX, PC);
		text_add(&t, ':');
		text_add(&t, ' ');
	}
	for (const char *why = strerror(error); *why; why++)
		text_add(&t, *why);
	say(&t, PC);
	errno = error;
}

int sim_fflush(FILE *stream)
{
	if (stream)
		look_at(stream, PC);
	return 0;
}

int sim_setvbuf(FILE *stream, char *buf, int mode, size_t bytes)
{
	(void)buf, (void)mode, (void)bytes;
	look_at(stream, PC);
	return 0;
}

void sim_setbuf(FILE *stream, char *buf)
{
	(void)buf;
	look_at(stream, PC);
}

void sim_setlinebuf(FILE *stream)
{
	look_at(stream, PC);
}
