/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In a program that judges a crash image: what it does to the image stays its own.
 *
 * A shared mapping of the image becomes a private one, so that recovery may write to it and the
 * file keeps what the power failure has left. What changes the file in another way is noted on the
 * board; then the file is put right before the next image is made in it. A program that writes to
 * a private mapping and then looks at the file by another mapping, by read() or in another process
 * would not see what it wrote: that is noted, too, and the image is judged once more, with mappings
 * that are private only where nobody can tell (maps.h), or else with shared ones.
 *
 * The functions are libc's, and are found in front of it. System calls that are made without them
 * are not seen.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "checker/seat/preload/maps.h"

#ifndef MAP_SYNC
#define MAP_SYNC 0x80000
#endif

#define EXPORT __attribute__((visibility("default")))
/* libc's function of this name, or whoever's comes next. They are in a table of their own: what is
 * looked up before children are forked, none of them has to. */
struct next {
	void *function;
	const char *name;
};
extern struct next __start_tidemark_next[], __stop_tidemark_next[];

static void *find(struct next *n)
{
	if (!n->function)
		n->function = dlsym(RTLD_NEXT, n->name);
	return n->function;
}

#define NEXT(function_name)                                                               \
	static struct next found                                                          \
		__attribute__((section("tidemark_next"), used)) = {NULL, #function_name}; \
	__typeof__(function_name) *next;                                                  \
	*(void **)&next = find(&found)

/* Functions that the headers name for compilers only. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t n, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t n, off_t at, size_t room);

static struct board *board;

/* --- is it an image? --- */

static int image_of(const struct stat *st)
{
	for (unsigned i = 0; S_ISREG(st->st_mode) && i < board->files; i++)
		if (board->file[i].ino == st->st_ino && board->file[i].dev == st->st_dev)
			return (int)i;
	return -1;
}

static int image_of_path(int dir, const char *path)
{
	struct stat st;
	int error = errno;
	/* As it was told; if that is another file by now, somebody has been seen to change it. */
	if (board && path && board->files == 1 && !strcmp(path, board->path))
		return 0;
	int image = board && path && !fstatat(dir, path, &st, 0) ? image_of(&st) : -1;
	errno = error;
	return image;
}

static int image_of_fd(int fd)
{
	struct stat st;
	int error = errno;
	int image = board && fd >= 0 && !fstat(fd, &st) ? image_of(&st) : -1;
	errno = error;
	return image;
}

static void note(_Atomic uint32_t *what, int image)
{
	if (image >= 0 && !(atomic_load(what) & 1u << image))
		atomic_fetch_or(what, 1u << image);
}

static bool is_exact(void)
{
	return board && atomic_load(&board->maps) == BOARD_EXACT;
}

/* Has another process mappings of it that are private? */
static bool is_anothers(int image)
{
	return atomic_load(&board->mapped) & 1u << image && atomic_load(&board->owner) != getpid();
}

/* Somebody looks at the file itself. */
static void looked_at(int image)
{
	if (image < 0 || !(atomic_load(&board->writable) & 1u << image))
		return;
	if (!is_exact() || is_anothers(image) || !maps_look(board, 0, UINT64_MAX))
		note(&board->doubt, image);
}

static void changed(int image)
{
	if (image < 0)
		return;
	note(&board->written, image);
	/* A shared mapping shows the change also where it was written to. */
	if (atomic_load(&board->writable) & 1u << image)
		note(&board->doubt, image);
}

static void read_fd(int fd)
{
	if (board && atomic_load(&board->writable))
		looked_at(image_of_fd(fd));
}

static void write_fd(int fd)
{
	if (board && atomic_load(&board->opened))
		changed(image_of_fd(fd));
}

/* A process has its own copies of private mappings. */
static void before_fork(void)
{
	if (board)
		atomic_fetch_or(&board->doubt, atomic_load(&board->writable));
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv(BOARD_ENV);
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *at = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return;
	pthread_atfork(before_fork, NULL, NULL);
	board = at;
	if (atomic_load(&board->owner) == getpid()) /* it was another program then */
		atomic_store(&board->owner, 0);
	atomic_store(&board->loaded, 1);
}

/* --- opening --- */

static void before_open(int dir, const char *path, int flags)
{
	int image = image_of_path(dir, path);
	if (image < 0)
		return;
	if (preload_may_serve(board)) {
		for (struct next *n = __start_tidemark_next; n < __stop_tidemark_next; n++)
			find(n);
		preload_serve(board);
	}
	note(&board->opened, image);
	if (!is_exact()) /* who maps or reads it then is seen */
		looked_at(image);
	if (flags & O_TRUNC)
		changed(image);
}

/* A function of libc: `look` at its file first. */
#define WITH(look, type, name, parameters, ...) \
	EXPORT type name parameters             \
	{                                       \
		NEXT(name);                     \
		look;                           \
		return next(__VA_ARGS__);       \
	}

/* The mode is given if a file may be made. */
#define OPEN(name, parameters, dir, ...)                                          \
	EXPORT int name parameters                                                \
	{                                                                         \
		NEXT(name);                                                       \
		va_list list;                                                     \
		va_start(list, flags);                                            \
		bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE; \
		mode_t mode = makes ? va_arg(list, mode_t) : 0;                   \
		va_end(list);                                                     \
		before_open(dir, path, flags);                                    \
		return next(__VA_ARGS__, flags, mode);                            \
	}

OPEN(open, (const char *path, int flags, ...), AT_FDCWD, path)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, path)
OPEN(openat, (int dir, const char *path, int flags, ...), dir, dir, path)
OPEN(openat64, (int dir, const char *path, int flags, ...), dir, dir, path)

#define OPENS(dir, flags, name, parameters, ...) \
	WITH(before_open(dir, path, flags), int, name, parameters, __VA_ARGS__)

OPENS(AT_FDCWD, flags, __open_2, (const char *path, int flags), path, flags)
OPENS(AT_FDCWD, flags, __open64_2, (const char *path, int flags), path, flags)
OPENS(dir, flags, __openat_2, (int dir, const char *path, int flags), dir, path, flags)
OPENS(dir, flags, __openat64_2, (int dir, const char *path, int flags), dir, path, flags)
OPENS(AT_FDCWD, O_TRUNC, creat, (const char *path, mode_t mode), path, mode)
OPENS(AT_FDCWD, O_TRUNC, creat64, (const char *path, mode_t mode), path, mode)

/* What stdio reads and writes later is not seen. */
static void streams(int image, const char *mode)
{
	if (image < 0)
		return;
	note(&board->streamed, image);
	if (atomic_load(&board->writable) & 1u << image)
		note(&board->doubt, image);
	if (mode[0] != 'r' || strchr(mode, '+'))
		changed(image);
}

static void before_stream(const char *path, const char *mode)
{
	before_open(AT_FDCWD, path, 0);
	streams(image_of_path(AT_FDCWD, path), mode);
}

#define STREAM(name, parameters, ...) \
	WITH(before_stream(path, mode), FILE *, name, parameters, __VA_ARGS__)

STREAM(fopen, (const char *restrict path, const char *restrict mode), path, mode)
STREAM(fopen64, (const char *restrict path, const char *restrict mode), path, mode)
STREAM(freopen, (const char *restrict path, const char *restrict mode, FILE *restrict from), path,
       mode, from)
STREAM(freopen64, (const char *restrict path, const char *restrict mode, FILE *restrict from), path,
       mode, from)
WITH(streams(image_of_fd(fd), mode), FILE *, fdopen, (int fd, const char *mode), fd, mode)

/* --- mapping --- */

struct mapping {
	int image;  /* -1: none */
	bool known; /* to maps.h */
	enum maps_sort sort;
	uint64_t shared[2];
};

/* What is mapped there goes, by munmap() or since something else takes its place. */
static void drop(const void *at, size_t len)
{
	if (!is_exact() || atomic_load(&board->owner) != getpid())
		return;
	maps_drop(board, at, len);
	if (maps_alone(board))
		return;
	atomic_store(&board->mapped, 0);
	atomic_store(&board->writable, 0);
}

/* It is looked at through a mapping of these bytes. */
static void look_to_map(struct mapping *m, uint64_t off, size_t len)
{
	const int image = m->image;
	if (!is_exact()) {
		looked_at(image);
	} else if (is_anothers(image)) {
		note(&board->doubt, image);
	} else {
		m->known = true;
		atomic_store(&board->owner, getpid());
		if (!maps_before(board, off, off + len, m->shared))
			note(&board->doubt, image);
	}
}

/* What mmap() is to be called with. */
static int map_flags(struct mapping *m, const void *at, size_t len, int prot, int flags, int fd,
		     uint64_t off)
{
	int image = flags & MAP_ANONYMOUS ? -1 : image_of_fd(fd);
	*m = (struct mapping){.image = image, .sort = MAPS_THEIRS};
	if (flags & MAP_FIXED)
		drop(at, len);
	if (image < 0)
		return flags;
	bool may_write = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
	look_to_map(m, off, len);
	if ((flags & MAP_TYPE) == MAP_PRIVATE)
		return flags;
	/* Files in memory do not have it, and a program may insist. */
	flags &= ~(MAP_TYPE | MAP_SYNC);
	if (atomic_load(&board->maps) == BOARD_SHARED) {
		if (may_write) /* perhaps by mprotect() */
			note(&board->written, image);
		return flags | MAP_SHARED;
	}
	if (!may_write) /* with PROT_WRITE it has to fail */
		return flags | MAP_SHARED;
	m->sort = MAPS_OURS;
	note(&board->mapped, image);
	if (prot & PROT_WRITE) {
		note(&board->writable, image);
		atomic_fetch_or(&board->doubt, atomic_load(&board->streamed) & 1u << image);
	}
	return flags | MAP_PRIVATE | MAP_NORESERVE;
}

/* Where it is to be, if the program leaves that open. A place that is taken is none. */
static void *place(const struct mapping *m, void *at, size_t len)
{
	static _Atomic uint64_t taken;
	const uint64_t align = 2 << 20, bytes = (len + 2 * align - 1) / align * align;
	if (at || m->image < 0 || !board->place)
		return at;
	return (void *)(uintptr_t)(board->place + atomic_fetch_add(&taken, bytes));
}

static void *mapped(const struct mapping *m, void *got, size_t len, int prot, uint64_t off)
{
	int error = errno;
	if (m->known && got != MAP_FAILED &&
	    !maps_add(board, got, len, prot, off, m->sort, m->shared))
		note(&board->doubt, m->image);
	errno = error;
	return got;
}

#define MAP(name, type)                                                                           \
	EXPORT void *name(void *at, size_t len, int prot, int flags, int fd, type off)            \
	{                                                                                         \
		struct mapping m;                                                                 \
		NEXT(name);                                                                       \
		flags = map_flags(&m, at, len, prot, flags, fd, (uint64_t)off);                   \
		at = place(&m, at, len);                                                          \
		return mapped(&m, next(at, len, prot, flags, fd, off), len, prot, (uint64_t)off); \
	}

MAP(mmap, off_t)
MAP(mmap64, off64_t)

WITH(drop(at, len), int, munmap, (void *at, size_t len), at, len)

static bool is_mine(void)
{
	return is_exact() && atomic_load(&board->mapped) && atomic_load(&board->owner) == getpid();
}

EXPORT int mprotect(void *at, size_t len, int prot)
{
	NEXT(mprotect);
	uint32_t images = board ? atomic_load(&board->mapped) : 0;
	if (images && prot & PROT_WRITE) {
		atomic_fetch_or(&board->writable, images);
		atomic_fetch_or(&board->doubt, images & atomic_load(&board->streamed));
		if (is_exact() && !is_mine())
			atomic_fetch_or(&board->doubt, images);
	}
	if (is_mine())
		maps_protect(board, at, len, prot);
	return next(at, len, prot);
}

EXPORT void *mremap(void *at, size_t len, size_t new_len, int flags, ...)
{
	NEXT(mremap);
	va_list list;
	va_start(list, flags);
	void *to = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
	va_end(list);
	if (is_mine()) {
		maps_forget(board, at, len);
		if (to)
			drop(to, new_len);
	}
	return next(at, len, new_len, flags, to);
}

/* --- reading and writing the file --- */

#define READ(type, name, parameters, ...)  WITH(read_fd(fd), type, name, parameters, __VA_ARGS__)
#define WRITE(type, name, parameters, ...) WITH(write_fd(fd), type, name, parameters, __VA_ARGS__)

READ(ssize_t, read, (int fd, void *to, size_t n), fd, to, n)
READ(ssize_t, pread, (int fd, void *to, size_t n, off_t at), fd, to, n, at)
READ(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), fd, to, n, at)
READ(ssize_t, __read_chk, (int fd, void *to, size_t n, size_t room), fd, to, n, room)
READ(ssize_t, __pread_chk, (int fd, void *to, size_t n, off_t at, size_t room), fd, to, n, at, room)
READ(ssize_t, __pread64_chk, (int fd, void *to, size_t n, off_t at, size_t room), fd, to, n, at,
     room)
READ(ssize_t, readv, (int fd, const struct iovec *v, int n), fd, v, n)
READ(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), fd, v, n, at)
READ(ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t at), fd, v, n, at)
READ(ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int flags), fd, v, n, at,
     flags)
READ(ssize_t, preadv64v2, (int fd, const struct iovec *v, int n, off64_t at, int flags), fd, v, n,
     at, flags)

WRITE(ssize_t, write, (int fd, const void *from, size_t n), fd, from, n)
WRITE(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), fd, from, n, at)
WRITE(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), fd, from, n, at)
WRITE(ssize_t, writev, (int fd, const struct iovec *v, int n), fd, v, n)
WRITE(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), fd, v, n, at)
WRITE(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t at), fd, v, n, at)
WRITE(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int flags), fd, v, n, at,
      flags)
WRITE(ssize_t, pwritev64v2, (int fd, const struct iovec *v, int n, off64_t at, int flags), fd, v, n,
      at, flags)
WRITE(int, ftruncate, (int fd, off_t len), fd, len)
WRITE(int, ftruncate64, (int fd, off64_t len), fd, len)
WRITE(int, fallocate, (int fd, int mode, off_t at, off_t len), fd, mode, at, len)
WRITE(int, fallocate64, (int fd, int mode, off64_t at, off64_t len), fd, mode, at, len)
WRITE(int, posix_fallocate, (int fd, off_t at, off_t len), fd, at, len)
WRITE(int, posix_fallocate64, (int fd, off64_t at, off64_t len), fd, at, len)

static void copies(int in, int out)
{
	read_fd(in);
	write_fd(out);
}

WITH(copies(in, out), ssize_t, sendfile, (int out, int in, off_t *at, size_t n), out, in, at, n)
WITH(copies(in, out), ssize_t, sendfile64, (int out, int in, off64_t *at, size_t n), out, in, at, n)
WITH(copies(in, out), ssize_t, copy_file_range,
     (int in, off64_t *from, int out, off64_t *to, size_t n, unsigned flags), in, from, out, to, n,
     flags)
WITH(copies(in, out), ssize_t, splice,
     (int in, off64_t *from, int out, off64_t *to, size_t n, unsigned flags), in, from, out, to, n,
     flags)

/* --- by its path --- */

static void change_path(int dir, const char *path)
{
	changed(image_of_path(dir, path));
}

static void rename_paths(int dir, const char *from, int to_dir, const char *to)
{
	change_path(dir, from);
	change_path(to_dir, to);
}

#define PATH(type, name, parameters, ...) \
	WITH(change_path(AT_FDCWD, path), type, name, parameters, __VA_ARGS__)

PATH(int, truncate, (const char *path, off_t len), path, len)
PATH(int, truncate64, (const char *path, off64_t len), path, len)
PATH(int, unlink, (const char *path), path)
PATH(int, remove, (const char *path), path)
WITH(change_path(dir, path), int, unlinkat, (int dir, const char *path, int flags), dir, path,
     flags)
WITH(rename_paths(AT_FDCWD, from, AT_FDCWD, to), int, rename, (const char *from, const char *to),
     from, to)
WITH(rename_paths(dir, from, to_dir, to), int, renameat,
     (int dir, const char *from, int to_dir, const char *to), dir, from, to_dir, to)
WITH(rename_paths(dir, from, to_dir, to), int, renameat2,
     (int dir, const char *from, int to_dir, const char *to, unsigned flags), dir, from, to_dir, to,
     flags)
