/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of libc that map PM, take it away, and make it durable, in the place of libc's. */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "core/record/recorder.h"

#define PAGE 4096

#define HERE __builtin_return_address(0)

#ifndef MAP_SYNC
#define MAP_SYNC 0x80000
#endif

static long raw_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	return syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

static void *map(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	int type = flags & MAP_TYPE;
	bool file = fd >= 0 && !(flags & MAP_ANONYMOUS) &&
		    (type == MAP_SHARED || type == MAP_SHARED_VALIDATE);
	long result = raw_mmap(at, len, prot, flags, fd, offset);
	/* A file that stands for PM need not be on a DAX device. */
	if (result == -1 && file && flags & MAP_SYNC && errno == EOPNOTSUPP)
		result = raw_mmap(at, len, prot, (flags & ~(MAP_SYNC | MAP_TYPE)) | MAP_SHARED, fd,
				  offset);
	if (result == -1)
		return MAP_FAILED;
	int error = errno;
	if ((file || (flags & MAP_FIXED && pm_maps_any())) && recorder_lock()) {
		if (flags & MAP_FIXED)
			pm_maps_remove((uint8_t *)result, len);
		if (file)
			pm_maps_add(fd, (uint8_t *)result, len, (uint64_t)offset);
		recorder_unlock();
		if (file && pm_maps_any())
			own_flushes_look();
	}
	errno = error;
	return (void *)result;
}

#define MAP(name)                                                                                 \
	RECORD_EXPORT void *name(void *at, size_t len, int prot, int flags, int fd, off_t offset) \
	{                                                                                         \
		return map(at, len, prot, flags, fd, offset);                                     \
	}
MAP(mmap)
MAP(mmap64)

RECORD_EXPORT int munmap(void *at, size_t len)
{
	if (pm_maps_any() && recorder_lock()) {
		pm_maps_scan(call_site_name("munmap()"));
		pm_maps_remove(at, len);
		recorder_unlock();
	}
	return (int)syscall(SYS_munmap, at, len);
}

RECORD_EXPORT int msync(void *at, size_t len, int flags)
{
	uint32_t source;
	bool pm = pm_maps_has(at) && recorder_event(HERE, &source);
	if (pm)
		recorder_unlock();
	int result = (int)syscall(SYS_msync, at, len, flags);
	if (pm && !result && flags & MS_SYNC && recorder_lock()) {
		recorder_add_range(RECORD_SYNC, at, (len + PAGE - 1) / PAGE * PAGE, source);
		recorder_unlock();
	}
	return result;
}

static int sync_file(int fd, int result, const void *caller)
{
	uint32_t source;
	int file = result ? -1 : pm_maps_file(fd);
	if (file >= 0 && recorder_event(caller, &source)) {
		for (uint64_t at = 0; at < recorder->file[file].size; at += 1u << 30) {
			uint64_t left = recorder->file[file].size - at;
			recorder_add(RECORD_SYNC, (unsigned)file, at, NULL,
				     (uint32_t)(left < 1u << 30 ? left : 1u << 30), source);
		}
		recorder_unlock();
	}
	return result;
}

RECORD_EXPORT int fsync(int fd)
{
	return sync_file(fd, (int)syscall(SYS_fsync, fd), HERE);
}

RECORD_EXPORT int fdatasync(int fd)
{
	return sync_file(fd, (int)syscall(SYS_fdatasync, fd), HERE);
}

RECORD_EXPORT void *mremap(void *at, size_t len, size_t new_len, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	void *to = flags & MREMAP_FIXED ? va_arg(ap, void *) : NULL;
	va_end(ap);
	bool pm = pm_maps_has(at) && recorder_lock();
	if (pm)
		pm_maps_scan(call_site_name("mremap()"));
	long result = syscall(SYS_mremap, at, len, new_len, flags, to);
	if (pm) {
		if (result != -1)
			pm_maps_move(at, len, (uint8_t *)result, new_len);
		recorder_unlock();
	}
	return result == -1 ? MAP_FAILED : (void *)result;
}

/* A program may switch off all events of perf_event_open(2) that it has, and one of them is the
 * recorder's. */
RECORD_EXPORT int prctl(int option, ...)
{
	unsigned long word[4];
	va_list ap;
	va_start(ap, option);
	for (unsigned i = 0; i < 4; i++)
		word[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (option == PR_TASK_PERF_EVENTS_DISABLE && recorder_lock()) {
		alone_forget();
		recorder_unlock();
	}
	return (int)syscall(SYS_prctl, option, word[0], word[1], word[2], word[3]);
}

/* --- what is told to others --- */

static void tells(int fd, const struct iovec *part, size_t parts, const void *caller)
{
	struct stat st;
	if (!pm_maps_any() || fstat(fd, &st) || !S_ISSOCK(st.st_mode))
		return;
	if (recorder->ack[0])
		announced_sent(fd, part, parts, caller);
	else
		recorder_acknowledges(caller);
}

#define TELLS(name, parameters, part, parts, ...) \
	RECORD_EXPORT ssize_t name parameters     \
	{                                         \
		tells(fd, part, parts, HERE);     \
		return syscall(__VA_ARGS__);      \
	}
#define BYTES                               \
	&(struct iovec)                     \
	{                                   \
		(void *)(uintptr_t)bytes, n \
	}

TELLS(write, (int fd, const void *bytes, size_t n), BYTES, 1, SYS_write, fd, bytes, n)
TELLS(writev, (int fd, const struct iovec *part, int n), part, (size_t)n, SYS_writev, fd, part, n)
TELLS(send, (int fd, const void *bytes, size_t n, int flags), BYTES, 1, SYS_sendto, fd, bytes, n,
      flags, NULL, 0)
TELLS(sendto,
      (int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to, socklen_t len),
      BYTES, 1, SYS_sendto, fd, bytes, n, flags, to, len)
TELLS(sendmsg, (int fd, const struct msghdr *message, int flags), message->msg_iov,
      message->msg_iovlen, SYS_sendmsg, fd, message, flags)

/* What was stored and announced last, by a process that ends in order. */
static void end(void)
{
	own_flushes_end();
	if (!recorder_lock())
		return;
	if (pm_maps_any())
		pm_maps_scan(call_site_name("the end of the process"));
	recorder_unlock();
}

__attribute__((destructor)) static void end_in_order(void)
{
	announced_flush(); /* libc would do that later */
	end();
}

/* As a child of fork() often ends. */
RECORD_EXPORT void _exit(int status)
{
	end();
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

RECORD_EXPORT void _Exit(int status)
{
	_exit(status);
}
