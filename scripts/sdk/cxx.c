/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `tidemark c++` adds for the compiler's own library, whose code is linked into the object: what that calls and a store may
 * not. In its archives these names begin with cxx_ (scripts/sdk/cc), so that a store's own calls are still found.
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* There is more than one thread: whether atomic instructions are used must not depend on the program that loads the object. */
char __libc_single_threaded;

/* The files of a random_device. */
int cxx_open(const char *path, int flags, ...);
int cxx_close(int file);
long cxx_read(int file, void *to, unsigned long bytes);
int cxx_ioctl(int file, unsigned long request, ...);

int cxx_open(const char *path, int flags, ...)
{
	(void)path, (void)flags;
	errno = ENOENT;
	return -1;
}

int cxx_close(int file)
{
	(void)file;
	return 0;
}

long cxx_read(int file, void *to, unsigned long bytes)
{
	(void)file, (void)to, (void)bytes;
	errno = EBADF;
	return -1;
}

int cxx_ioctl(int file, unsigned long request, ...)
{
	(void)file, (void)request;
	errno = EBADF;
	return -1;
}

/* A system may have its library compiled with checks of the stack and of lengths (Ubuntu). */
long cxx_read_chk(int file, void *to, unsigned long bytes, unsigned long room);
long cxx_read_chk(int file, void *to, unsigned long bytes, unsigned long room)
{
	(void)room;
	return cxx_read(file, to, bytes);
}

int cxx_sprintf_chk(char *to, int flag, unsigned long room, const char *format, ...);
int cxx_sprintf_chk(char *to, int flag, unsigned long room, const char *format, ...)
{
	va_list values;
	(void)flag;
	va_start(values, format);
	int n = vsnprintf(to, room, format, values);
	va_end(values);
	return n;
}

void cxx_stack_chk_fail(void);
void cxx_stack_chk_fail(void)
{
	abort();
}

/* Messages are in English. */
char *cxx_gettext(const char *text);
char *cxx_gettext(const char *text)
{
	return (char *)text;
}

char *cxx_strerror_r(int error, char *text, unsigned long bytes);
char *cxx_strerror_r(int error, char *text, unsigned long bytes)
{
	(void)text, (void)bytes;
	return strerror(error);
}

/* A static variable of a function: its first byte says that it is there, the second that a thread is making it. */
int __cxa_guard_acquire(char *guard);
void __cxa_guard_release(char *guard);
void __cxa_guard_abort(char *guard);

int __cxa_guard_acquire(char *guard)
{
	while (!guard[0] && guard[1])
		sched_yield();
	if (guard[0])
		return 0;
	guard[1] = 1;
	return 1;
}

void __cxa_guard_release(char *guard)
{
	guard[0] = 1;
	guard[1] = 0;
}

void __cxa_guard_abort(char *guard)
{
	guard[1] = 0;
}
