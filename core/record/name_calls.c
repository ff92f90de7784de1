/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of libc that change names of files, or make files shorter, in the place of libc's. What
 * a power failure leaves of that depends on the file system, and no image has it: a recording says
 * that it happened to a file that it knows by then, or to another one that was named as PM. Before
 * the first file is mapped nothing is said, as a program may make room for its PM.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/record/recorder.h"

#define HERE __builtin_return_address(0)

#define NAME_ROOM 600 /* of a path that is told: a program's stacks may be small */

/* What is about to change. */
struct change {
	enum record_kind kind; /* RECORD_UNFINISHED: nothing that matters */
	struct stat st;
	uint32_t source;
	uint64_t kept; /* bytes of it that were looked at */
	char path[NAME_ROOM];
};

/* The path of what a call names, with the real path of its folder. */
static bool whole_path(int dir, const char *path, char out[PATH_MAX])
{
	char named[2 * PATH_MAX] = "", folder[PATH_MAX];
	size_t n = 0;
	if (path[0] != '/') {
		if (dir == AT_FDCWD ? !getcwd(named, PATH_MAX) : !pm_maps_path(dir, named))
			return false;
		n = strlen(named);
		named[n++] = '/';
	}
	snprintf(named + n, sizeof(named) - n, "%s", path);
	char *slash = strrchr(named, '/');
	*slash = 0;
	return realpath(*named ? named : "/", folder) &&
	       snprintf(out, PATH_MAX, "%s/%s", strcmp(folder, "/") != 0 ? folder : "", slash + 1) <
		       PATH_MAX;
}

static bool find_change(struct change *c, int dir, const char *path, int flags, off_t len)
{
	char whole[PATH_MAX];
	if (!recorder_begins() || (path ? fstatat(dir, path, &c->st, flags) : fstat(dir, &c->st)) ||
	    len >= c->st.st_size ||
	    !(path ? whole_path(dir, path, whole) : pm_maps_path(dir, whole)) || !recorder_lock())
		return false;
	c->kind = pm_maps_change_of(&c->st, whole);
	recorder_unlock();
	snprintf(c->path, sizeof(c->path), "%.*s", NAME_ROOM - 1, whole);
	return c->kind != RECORD_UNFINISHED;
}

#define ANY_LENGTH (-1)

/* Before a call that makes a file so long, or changes its name: afterwards it may be another
 * file's, and what was stored beyond its end can no longer be looked at. A file that becomes no
 * shorter is not changed. `path` NULL: the file is `dir`. */
static struct change change_of(int dir, const char *path, int flags, off_t len, const void *caller)
{
	struct change c = {.kind = RECORD_UNFINISHED};
	int error = errno;
	if (find_change(&c, dir, path, flags, len) && recorder_happens(caller, &c.source)) {
		if (len != ANY_LENGTH)
			c.kept = pm_maps_keep(&c.st, (uint64_t)len);
		recorder_unlock();
	}
	errno = error;
	return c;
}

/* It has happened, or failed. Returns the call's result. */
__attribute__((format(printf, 3, 4))) static long changed(long result, const struct change *c,
							  const char *how, ...)
{
	char words[2 * NAME_ROOM];
	int error = errno;
	if (c->kind == RECORD_UNFINISHED)
		return result;
	if (!recorder_lock()) {
		errno = error;
		return result;
	}
	if (result == -1 && c->kept) {
		pm_maps_keep(&c->st, c->kept);
	} else if (result != -1) {
		int n = snprintf(words, sizeof(words), "%s ", c->path);
		va_list ap;
		va_start(ap, how);
		vsnprintf(words + n, sizeof(words) - (size_t)n, how, ap);
		va_end(ap);
		recorder_add_unseen(c->kind, 0, words, c->source);
	}
	recorder_unlock();
	errno = error;
	return result;
}

/* --- names --- */

static int rename_at(int dir, const char *from, int other, const char *to, unsigned flags,
		     const void *caller)
{
	struct change moved = change_of(dir, from, AT_SYMLINK_NOFOLLOW, ANY_LENGTH, caller),
		      replaced = change_of(other, to, AT_SYMLINK_NOFOLLOW, ANY_LENGTH, caller);
	long result = syscall(SYS_renameat2, dir, from, other, to, flags);
	changed(result, &moved, "is renamed to %s", to);
	return (int)changed(result, &replaced, "is replaced by %s", from);
}

static int link_at(int dir, const char *from, int other, const char *to, int flags,
		   const void *caller)
{
	struct change c = change_of(dir, from, flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW,
				    ANY_LENGTH, caller);
	return (int)changed(syscall(SYS_linkat, dir, from, other, to, flags), &c, "is linked as %s",
			    to);
}

static int unlink_at(int dir, const char *path, int flags, const void *caller)
{
	struct change c = change_of(dir, path, AT_SYMLINK_NOFOLLOW, ANY_LENGTH, caller);
	return (int)changed(syscall(SYS_unlinkat, dir, path, flags), &c, "is unlinked");
}

#define NAMES(at, name, parameters, ...)      \
	RECORD_EXPORT int name parameters     \
	{                                     \
		return at(__VA_ARGS__, HERE); \
	}

NAMES(rename_at, rename, (const char *from, const char *to), AT_FDCWD, from, AT_FDCWD, to, 0)
NAMES(rename_at, renameat, (int dir, const char *from, int other, const char *to), dir, from, other,
      to, 0)
NAMES(rename_at, renameat2, (int dir, const char *from, int other, const char *to, unsigned flags),
      dir, from, other, to, flags)
NAMES(link_at, link, (const char *from, const char *to), AT_FDCWD, from, AT_FDCWD, to, 0)
NAMES(link_at, linkat, (int dir, const char *from, int other, const char *to, int flags), dir, from,
      other, to, flags)
NAMES(unlink_at, unlink, (const char *path), AT_FDCWD, path, 0)
NAMES(unlink_at, unlinkat, (int dir, const char *path, int flags), dir, path, flags)

RECORD_EXPORT int remove(const char *path)
{
	int error = errno, result = unlink_at(AT_FDCWD, path, 0, HERE);
	if (result && errno == EISDIR) {
		errno = error;
		result = unlink_at(AT_FDCWD, path, AT_REMOVEDIR, HERE);
	}
	return result;
}

/* --- lengths --- */

#define TRUNCATE(name, T)                                                                         \
	RECORD_EXPORT int name(const char *path, T len)                                           \
	{                                                                                         \
		struct change c = change_of(AT_FDCWD, path, 0, len, HERE);                        \
		return (int)changed(syscall(SYS_truncate, path, len), &c, "is cut to %lld bytes", \
				    (long long)len);                                              \
	}
#define FTRUNCATE(name, T)                                                                       \
	RECORD_EXPORT int name(int fd, T len)                                                    \
	{                                                                                        \
		struct change c = change_of(fd, NULL, 0, len, HERE);                             \
		return (int)changed(syscall(SYS_ftruncate, fd, len), &c, "is cut to %lld bytes", \
				    (long long)len);                                             \
	}
#define FALLOCATE(name, T)                                                             \
	RECORD_EXPORT int name(int fd, int mode, T offset, T len)                      \
	{                                                                              \
		struct change c = {.kind = RECORD_UNFINISHED};                         \
		if (mode & ~FALLOC_FL_KEEP_SIZE)                                       \
			c = change_of(fd, NULL, 0, ANY_LENGTH, HERE);                  \
		return (int)changed(syscall(SYS_fallocate, fd, mode, offset, len), &c, \
				    "has a hole or a gap made by fallocate()");        \
	}

TRUNCATE(truncate, off_t)
TRUNCATE(truncate64, off64_t)
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)
FALLOCATE(fallocate, off_t)
FALLOCATE(fallocate64, off64_t)

/* --- opening: the soft RNIC's library has some of these functions as well --- */

#define NEXT(name)                                                          \
	({                                                                  \
		static __typeof__(&name) next_;                             \
		if (!next_)                                                 \
			*(void **)(void *)&next_ = dlsym(RTLD_NEXT, #name); \
		next_;                                                      \
	})

static struct change change_of_open(int dir, const char *path, int flags, const void *caller)
{
	if (flags & O_TRUNC)
		return change_of(dir, path, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, 0,
				 caller);
	return (struct change){.kind = RECORD_UNFINISHED};
}

static int opened(int fd, const struct change *c)
{
	return (int)changed(fd, c, "is cut to 0 bytes");
}

/* A function with these parameters; `mode` is given if a file may be made. */
#define OPEN(name, parameters, dir, ...)                                          \
	RECORD_EXPORT int name parameters                                         \
	{                                                                         \
		va_list ap;                                                       \
		va_start(ap, flags);                                              \
		bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE; \
		mode_t mode = makes ? va_arg(ap, mode_t) : 0;                     \
		va_end(ap);                                                       \
		if (!(flags & O_TRUNC))                                           \
			return NEXT(name)(__VA_ARGS__, flags, mode);              \
		struct change c = change_of_open(dir, path, flags, HERE);         \
		return opened(NEXT(name)(__VA_ARGS__, flags, mode), &c);          \
	}

OPEN(open, (const char *path, int flags, ...), AT_FDCWD, path)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, path)
OPEN(openat, (int folder, const char *path, int flags, ...), folder, folder, path)
OPEN(openat64, (int folder, const char *path, int flags, ...), folder, folder, path)

#define CREAT(name)                                                              \
	RECORD_EXPORT int name(const char *path, mode_t mode)                    \
	{                                                                        \
		struct change c = change_of_open(AT_FDCWD, path, O_TRUNC, HERE); \
		return opened(NEXT(name)(path, mode), &c);                       \
	}

CREAT(creat)
CREAT(creat64)

/* fopen() by the name by which the soft RNIC's calls it. */
FILE *_IO_fopen(const char *path, const char *mode);

#define FOPEN(name)                                                            \
	RECORD_EXPORT FILE *name(const char *path, const char *mode)           \
	{                                                                      \
		int flags = *mode == 'w' ? O_TRUNC : 0;                        \
		struct change c = change_of_open(AT_FDCWD, path, flags, HERE); \
		FILE *file = NEXT(name)(path, mode);                           \
		opened(file ? 0 : -1, &c);                                     \
		return file;                                                   \
	}

FOPEN(fopen)
FOPEN(fopen64)
FOPEN(_IO_fopen)
