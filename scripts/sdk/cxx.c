/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `tidemark c++` adds for the compiler's own library, whose code is linked into the object: what that calls and a store may
 * not. In its archives these names begin with cxx_ (scripts/sdk/cc), so that a store's own calls are still found.
 */
#include <errno.h>

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

/* Messages are in English. */
char *cxx_gettext(const char *text);
char *cxx_gettext(const char *text)
{
	return (char *)text;
}
