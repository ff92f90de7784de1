/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_STDIO_H
#define TM_LIBC_STDIO_H
/*
 * What store code calls instead of functions of <stdio.h>. What it prints is dropped; in a replay
 * it is lines of the event trace.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#define PRINTS(fmt, first) __attribute__((format(printf, fmt, first)))
#define SCANS(fmt, first)  __attribute__((format(scanf, fmt, first)))

/* print.c */
int sim_snprintf(char *to, size_t room, const char *fmt, ...) PRINTS(3, 4);
int sim_vsnprintf(char *to, size_t room, const char *fmt, va_list ap) PRINTS(3, 0);
int sim_sprintf(char *to, const char *fmt, ...) PRINTS(2, 3);
int sim_vsprintf(char *to, const char *fmt, va_list ap) PRINTS(2, 0);
int sim_asprintf(char **to, const char *fmt, ...) PRINTS(2, 3);
int sim_vasprintf(char **to, const char *fmt, va_list ap) PRINTS(2, 0);

/* stream.c: the two that there are. */
extern FILE *const sim_stdout, *const sim_stderr;
int sim_printf(const char *fmt, ...) PRINTS(1, 2);
int sim_vprintf(const char *fmt, va_list ap) PRINTS(1, 0);
int sim_fprintf(FILE *stream, const char *fmt, ...) PRINTS(2, 3);
int sim_vfprintf(FILE *stream, const char *fmt, va_list ap) PRINTS(2, 0);
int sim_puts(const char *s);
int sim_fputs(const char *s, FILE *stream);
int sim_putchar(int c);
int sim_putc(int c, FILE *stream);
int sim_fputc(int c, FILE *stream);
size_t sim_fwrite(const void *from, size_t bytes, size_t n, FILE *stream);
void sim_perror(const char *what);
int sim_fflush(FILE *stream);
int sim_setvbuf(FILE *stream, char *buf, int mode, size_t bytes);
void sim_setbuf(FILE *stream, char *buf);
void sim_setlinebuf(FILE *stream);

/* scan.c; the isoc names are what headers call. */
int sim_sscanf(const char *s, const char *fmt, ...) SCANS(2, 3);
int sim_vsscanf(const char *s, const char *fmt, va_list ap) SCANS(2, 0);
int sim_isoc99_sscanf(const char *s, const char *fmt, ...) SCANS(2, 3);
int sim_isoc99_vsscanf(const char *s, const char *fmt, va_list ap) SCANS(2, 0);
int sim_isoc23_sscanf(const char *s, const char *fmt, ...) SCANS(2, 3);
int sim_isoc23_vsscanf(const char *s, const char *fmt, va_list ap) SCANS(2, 0);

#endif
