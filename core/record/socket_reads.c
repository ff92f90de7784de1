/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of libc that read from sockets, in the place of libc's: what they have stored (as
 * libc_writes.c has it). The real ones are called, as they can be cancelled. */
#undef _FORTIFY_SOURCE /* they are defined here, and not to be inlined */
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>
#include "core/record/recorder.h"

#define HERE __builtin_return_address(0)

/* Programs that were compiled with _FORTIFY_SOURCE call these; the real one checks `room`. */
ssize_t __read_chk(int fd, void *bytes, size_t n, size_t room);
ssize_t __recv_chk(int fd, void *bytes, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *bytes, size_t n, size_t room, int flags, struct sockaddr *from,
		       socklen_t *len);

/* Define `name` so that it calls the real one with `arguments`, which stores up to `most` bytes at
 * `to`. That is looked for before main() begins, as a signal handler or a child of fork() must not.
 */
#define READS(name, parameters, arguments, to, most)               \
	static ssize_t(*real_##name) parameters;                   \
	__attribute__((constructor)) static void find_##name(void) \
	{                                                          \
		*(void **)&real_##name = dlsym(RTLD_NEXT, #name);  \
	}                                                          \
	RECORD_EXPORT ssize_t name parameters                      \
	{                                                          \
		if (!real_##name)                                  \
			find_##name();                             \
		bool told_ = recorder_call_begins(to, most, HERE); \
		ssize_t n_ = real_##name arguments;                \
		if (told_)                                         \
			recorder_call_ends(to, most, HERE);        \
		return n_;                                         \
	}

READS(read, (int fd, void *bytes, size_t n), (fd, bytes, n), bytes, n)
READS(recv, (int fd, void *bytes, size_t n, int flags), (fd, bytes, n, flags), bytes, n)
READS(recvfrom, (int fd, void *bytes, size_t n, int flags, struct sockaddr *from, socklen_t *len),
      (fd, bytes, n, flags, from, len), bytes, n)
READS(__read_chk, (int fd, void *bytes, size_t n, size_t room), (fd, bytes, n, room), bytes, n)
READS(__recv_chk, (int fd, void *bytes, size_t n, size_t room, int flags),
      (fd, bytes, n, room, flags), bytes, n)
READS(__recvfrom_chk,
      (int fd, void *bytes, size_t n, size_t room, int flags, struct sockaddr *from,
       socklen_t *len),
      (fd, bytes, n, room, flags, from, len), bytes, n)
