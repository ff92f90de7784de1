/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of libc that write to memory, in the place of libc's. Where code calls one that tells
 * of each of its stores, the call is told of, too, so that its stores are between the others. Their
 * order within the call is not known: all that it has changed in a line is one store.
 */
#undef _FORTIFY_SOURCE /* they are defined here, and not to be inlined */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>
#include "core/record/recorder.h"

#define HERE __builtin_return_address(0)

/* Define `name` so that it calls the real one with `arguments`, which writes up to `most` bytes
 * from `to` on and returns a T, `did`; then it has written `len` at most. The real one is looked
 * for before main() begins, as a signal handler or a child of fork() must not. */
#define WRITES(T, name, parameters, arguments, to, most, len)      \
	static T(*real_##name) parameters;                         \
	__attribute__((constructor)) static void find_##name(void) \
	{                                                          \
		*(void **)&real_##name = dlsym(RTLD_NEXT, #name);  \
	}                                                          \
	RECORD_EXPORT T name parameters;                           \
	RECORD_EXPORT T name parameters                            \
	{                                                          \
		if (!real_##name)                                  \
			find_##name();                             \
		bool told_ = recorder_call_begins(to, most, HERE); \
		T did = real_##name arguments;                     \
		if (told_)                                         \
			recorder_call_ends(to, len, HERE);         \
		return did;                                        \
	}

/* The same, and of programs that were compiled with _FORTIFY_SOURCE; the real one checks `room`. */
#define COPIES(T, name, From)                                                                    \
	WRITES(T, name, (T to, From from, size_t n), (to, from, n), to, n, n)                    \
	WRITES(T, __##name##_chk, (T to, From from, size_t n, size_t room), (to, from, n, room), \
	       to, n, n)
#define COPIES_STRING(name)                                                                   \
	WRITES(char *, name, (char *to, const char *from), (to, from), to, 1, strlen(to) + 1) \
	WRITES(char *, __##name##_chk, (char *to, const char *from, size_t room),             \
	       (to, from, room), to, 1, strlen(to) + 1)

COPIES(void *, memcpy, const void *)
COPIES(void *, memmove, const void *)
COPIES(void *, mempcpy, const void *)
COPIES(void *, memset, int)
COPIES(char *, strncpy, const char *)
COPIES(char *, stpncpy, const char *)
COPIES_STRING(strcpy)
COPIES_STRING(stpcpy)
COPIES_STRING(strcat)
WRITES(void *, memccpy, (void *to, const void *from, int byte, size_t n), (to, from, byte, n), to,
       n, n)
WRITES(char *, strncat, (char *to, const char *from, size_t n), (to, from, n), to, 1,
       strlen(to) + 1)
WRITES(char *, __strncat_chk, (char *to, const char *from, size_t n, size_t room),
       (to, from, n, room), to, 1, strlen(to) + 1)

RECORD_EXPORT void bzero(void *to, size_t n)
{
	bool told = recorder_call_begins(to, n, HERE);
	real_memset(to, 0, n);
	if (told)
		recorder_call_ends(to, n, HERE);
}

/* --- printf() and its like --- */

/* Number of bytes that are written when so many characters are printed and there is room for so
 * many bytes. */
static size_t printed(int characters, size_t room)
{
	size_t bytes = characters < 0 ? 1 : (size_t)characters + 1;
	return bytes < room ? bytes : room;
}

/* `v` prints what follows in a va_list, `name` in arguments. */
#define PRINTS(v, name, parameters, arguments, to, room)                             \
	WRITES(int, v, parameters(va_list ap), arguments, to, 1, printed(did, room)) \
	RECORD_EXPORT int name parameters(...);                                      \
	RECORD_EXPORT int name parameters(...)                                       \
	{                                                                            \
		va_list ap;                                                          \
		bool told_ = recorder_call_begins(to, 1, HERE);                      \
		va_start(ap, format);                                                \
		int did = real_##v arguments;                                        \
		va_end(ap);                                                          \
		if (told_)                                                           \
			recorder_call_ends(to, printed(did, room), HERE);            \
		return did;                                                          \
	}
#define SPRINTF(rest)	   (char *to, const char *format, rest)
#define SNPRINTF(rest)	   (char *to, size_t n, const char *format, rest)
#define SPRINTF_CHK(rest)  (char *to, int flag, size_t size, const char *format, rest)
#define SNPRINTF_CHK(rest) (char *to, size_t n, int flag, size_t size, const char *format, rest)

PRINTS(vsprintf, sprintf, SPRINTF, (to, format, ap), to, SIZE_MAX)
PRINTS(vsnprintf, snprintf, SNPRINTF, (to, n, format, ap), to, n)
PRINTS(__vsprintf_chk, __sprintf_chk, SPRINTF_CHK, (to, flag, size, format, ap), to, SIZE_MAX)
PRINTS(__vsnprintf_chk, __snprintf_chk, SNPRINTF_CHK, (to, n, flag, size, format, ap), to, n)

/* --- what reads --- */

/* Programs that were compiled with _FORTIFY_SOURCE call these; the real one checks `room`. */
ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t n, size_t room, int flags, struct sockaddr *from,
		       socklen_t *len);

WRITES(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), to, n, n)
WRITES(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags), to, n, n)
WRITES(ssize_t, recvfrom,
       (int fd, void *to, size_t n, int flags, struct sockaddr *from, socklen_t *len),
       (fd, to, n, flags, from, len), to, n, n)
WRITES(ssize_t, __read_chk, (int fd, void *to, size_t n, size_t room), (fd, to, n, room), to, n, n)
WRITES(ssize_t, __recv_chk, (int fd, void *to, size_t n, size_t room, int flags),
       (fd, to, n, room, flags), to, n, n)
WRITES(ssize_t, __recvfrom_chk,
       (int fd, void *to, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *len),
       (fd, to, n, room, flags, from, len), to, n, n)

WRITES(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), to, n, n)
WRITES(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at), to, n, n)
WRITES(size_t, fread, (void *to, size_t size, size_t n, FILE *from), (to, size, n, from), to,
       size *n, size *n)
WRITES(char *, fgets, (char *to, int n, FILE *from), (to, n, from), to, (size_t)n, (size_t)n)
