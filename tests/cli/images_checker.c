/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checkers of crash images, for test_images_server.sh: images_checker WAY [ARGUMENT] IMAGE. The
 * pool has a number at FLAG, and in the line that belongs to it data that is never smaller: else
 * the image is bad (status 1). Each then puts the pool right and leaves a mark, as a recovery does;
 * one that sees another one's mark ends with status 9. They differ in how they do it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef WITH_PMEM
#include <libpmem.h>
#endif

#define BYTES 4096
#define FLAG  (0x800 / 8)
#define MARK  (0xf00 / 8)

static long data_of(const long *pool)
{
	return pool[8 * (1 + pool[FLAG] % 5)];
}

static int verdict(const long *pool)
{
	if (pool[MARK])
		return 9;
	return pool[FLAG] > data_of(pool) ? 1 : 0;
}

static void recover(long *pool)
{
	pool[8 * (1 + pool[FLAG] % 5)] = 1000;
	pool[MARK] = 0x7777;
}

static long *map(const char *path, int *fd)
{
	*fd = open(path, O_RDWR);
	long *pool = *fd < 0 ? MAP_FAILED
			     : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (pool == MAP_FAILED)
		exit(20);
	return pool;
}

static int by_map(const char *path)
{
	int fd;
	long *pool = map(path, &fd);
	int bad = verdict(pool);
	recover(pool);
	if (msync(pool, BYTES, MS_SYNC))
		return 21;
	munmap(pool, BYTES);
	close(fd);
	return bad;
}

/* By pwrite(). */
static int by_write(const char *path)
{
	static long pool[BYTES / 8];
	int fd = open(path, O_RDWR);
	if (fd < 0 || pread(fd, pool, BYTES, 0) != BYTES)
		return 20;
	int bad = verdict(pool);
	recover(pool);
	return pwrite(fd, pool, BYTES, 0) == BYTES && !close(fd) ? bad : 22;
}

/* For some images only. */
static bool turn(const char *path)
{
	long flag;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || pread(fd, &flag, sizeof(flag), FLAG * 8) != sizeof(flag) || close(fd))
		exit(20);
	return flag % 3 == 1;
}

static int by_turns(const char *path)
{
	return turn(path) ? by_write(path) : by_map(path);
}

/* By stdio, and it cuts the file. */
static int by_stdio(const char *path)
{
	static long pool[BYTES / 8];
	FILE *file = fopen(path, "r+");
	if (!file || fread(pool, 1, BYTES, file) != BYTES)
		return 20;
	int bad = verdict(pool);
	recover(pool);
	rewind(file);
	fwrite(pool, 1, BYTES, file);
	fclose(file);
	return truncate(path, 100) ? 22 : bad;
}

/* It puts another file in the image's place. */
static int by_rename(const char *path)
{
	static long pool[BYTES / 8];
	char other[5000];
	int fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, pool, BYTES) != BYTES)
		return 20;
	int bad = verdict(pool);
	close(fd);
	recover(pool);
	snprintf(other, sizeof(other), "%s.new", path);
	fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (write(fd, pool, BYTES) != BYTES || close(fd) || rename(other, path))
		return 22;
	return bad;
}

/* It looks at what it has written: by another mapping, by read(), by stdio. */
static int maps_again(const char *path)
{
	int bad = by_map(path), fd;
	long *pool = map(path, &fd);
	return pool[MARK] == 0x7777 ? bad : 30;
}

static int reads_again(const char *path)
{
	static long after[BYTES / 8];
	int fd;
	long *pool = map(path, &fd);
	int bad = verdict(pool);
	recover(pool);
	return pread(fd, after, BYTES, 0) == BYTES && after[MARK] == 0x7777 ? bad : 31;
}

/* By two mappings at once: what it writes to either is seen in the other, and in the file. */
static int maps_twice(const char *path)
{
	static long after[BYTES / 8];
	int fd;
	long *pool = map(path, &fd);
	int bad = verdict(pool);
	pool[MARK - 1] = 5;
	long *other = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (other == MAP_FAILED || other[MARK - 1] != 5)
		return 37;
	other[MARK - 2] = 6;
	recover(pool);
	if (pool[MARK - 2] != 6 || other[MARK] != 0x7777)
		return 38;
	munmap(pool, BYTES);
	other[MARK - 3] = 7;
	return pread(fd, after, BYTES, 0) == BYTES && after[MARK - 3] == 7 && after[MARK] == 0x7777
		       ? bad
		       : 39;
}

/* Again and again, and more than the file has. */
static int maps_parts(const char *path)
{
	int fd = open(path, O_RDWR);
	long *pool = fd < 0 ? MAP_FAILED
			    : mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pool == MAP_FAILED)
		return 20;
	int bad = verdict(pool);
	for (long i = 1; i < 5; i++) {
		int other_fd;
		long *other = map(path, &other_fd);
		if (pool[MARK - 1] != i - 1)
			return 37;
		other[MARK - 1] = i;
		munmap(other, BYTES);
		close(other_fd);
	}
	munmap(pool + BYTES / 8, BYTES);
	recover(pool);
	if (mprotect(pool, BYTES, PROT_READ) || munmap(pool, BYTES))
		return 20;
	close(fd);
	pool = map(path, &fd);
	return pool[MARK - 1] == 4 && pool[MARK] == 0x7777 ? bad : 40;
}

static int moves(const char *path)
{
	static long after[BYTES / 8];
	int fd;
	long *pool = map(path, &fd);
	int bad = verdict(pool);
	if (pread(fd, after, BYTES, 0) != BYTES)
		return 20;
	pool = mremap(pool, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
	recover(pool);
	return pread(fd, after, BYTES, 0) == BYTES && after[MARK] == 0x7777 ? bad : 41;
}

static int rereads_some(const char *path)
{
	return turn(path) ? reads_again(path) : by_map(path);
}

static int streams_again(const char *path)
{
	static long after[BYTES / 8];
	FILE *file = fopen(path, "r");
	int bad = by_map(path);
	return fread(after, 1, BYTES, file) == BYTES && after[MARK] == 0x7777 ? bad : 36;
}

static int streams_first(const char *path)
{
	static long after[BYTES / 8];
	int fd;
	long *pool = map(path, &fd);
	int bad = verdict(pool);
	pool[MARK - 1] = 1;
	FILE *file = fopen(path, "r");
	recover(pool);
	return fread(after, 1, BYTES, file) == BYTES && after[MARK] == 0x7777 ? bad : 42;
}

/* So does its parent. */
static int child_recovers(const char *path)
{
	int status, fd;
	long *pool = map(path, &fd);
	pid_t child = fork();
	if (!child)
		_exit(by_map(path));
	waitpid(child, &status, 0);
	return pool[MARK] == 0x7777 ? WEXITSTATUS(status) : 32;
}

/* Its child uses the mapping that it has. */
static int child_writes(const char *path)
{
	int status, fd;
	long *pool = map(path, &fd);
	int bad = verdict(pool);
	pid_t child = fork();
	if (!child) {
		recover(pool);
		_exit(bad);
	}
	waitpid(child, &status, 0);
	return pool[MARK] == 0x7777 ? WEXITSTATUS(status) : 32;
}

/* By a mapping that no library in front of libc sees. */
static int unseen(const char *path)
{
	int fd = open(path, O_RDWR);
	long *pool = (long *)syscall(SYS_mmap, NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				     0L);
	if (pool == MAP_FAILED)
		return 20;
	int bad = verdict(pool);
	recover(pool);
	return bad;
}

static int hangs(const char *path)
{
	int bad = by_map(path);
	if (bad && !fork()) /* its child, too */
		pause();
	while (bad)
		pause();
	return 0;
}

static int crashes(const char *path)
{
	if (by_map(path))
		abort();
	return 0;
}

static int prints(const char *path)
{
	printf("before;");
	int bad = by_map(path);
	printf("after\n");
	return bad;
}

static void *sleeps(void *arg)
{
	pause();
	return arg;
}

static int threads(const char *path)
{
	pthread_t thread;
	return pthread_create(&thread, NULL, sleeps, NULL) ? 20 : by_map(path);
}

static int children(const char *path)
{
	pid_t child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	return by_map(path);
}

/* It has memory in common with its children, if it has any. */
static int shares(const char *path)
{
	int *count = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			  0);
	int bad = by_map(path);
	return ++*count > 1 ? 33 : bad;
}

/* It writes to a file that it has open. */
static int writes(const char *path)
{
	char line[64];
	FILE *file = tmpfile();
	int bad = by_map(path);
	fprintf(file, "one\n");
	rewind(file);
	if (!fgets(line, sizeof(line), file) || fgets(line, sizeof(line), file))
		return 34;
	return bad;
}

/* It goes on with a file that it has begun to read. */
static int reads(const char *path)
{
	char begin[4], end[4];
	int fd = open("/proc/self/exe", O_RDONLY);
	if (read(fd, begin, 4) != 4)
		return 20;
	int bad = by_map(path);
	return read(fd, end, 4) == 4 && lseek(fd, 0, SEEK_CUR) == 8 ? bad : 35;
}

/* Good until a marker; it asks before it opens the image. */
static int marker(const char *path)
{
	const char *name = getenv("TIDEMARK_MARKER");
	return by_map(path) && !strcmp(name, "LATE.BEGIN") ? 3 : 0;
}

#ifdef WITH_PMEM
static int pmem(const char *path)
{
	size_t len;
	int is_pmem;
	long *pool = pmem_map_file(path, 0, 0, 0, &len, &is_pmem);
	if (!pool || len != BYTES)
		return 20;
	int bad = verdict(pool);
	recover(pool);
	if (is_pmem)
		pmem_persist(pool, len);
	else
		pmem_msync(pool, len);
	pmem_unmap(pool, len);
	return bad;
}
#endif

/* --- as a library --- */

int check_map(const char *path)
{
	return by_map(path);
}

/* It keeps its mapping. */
int check_kept(const char *path)
{
	static long *pool;
	int fd;
	if (!pool)
		pool = map(path, &fd);
	return verdict(pool);
}

/* It keeps a file open each time, and has room for less than there are images. */
int check_leaks(const char *path)
{
	return open(path, O_RDONLY) < 0 ? 20 : by_map(path);
}

int check_turns(const char *path)
{
	return by_turns(path);
}

int check_rereads(const char *path)
{
	return rereads_some(path);
}

int check_hangs(const char *path)
{
	return hangs(path);
}

int check_crashes(const char *path)
{
	return crashes(path);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*check)(const char *path);
	} ways[] = {
		{"map", by_map},
		{"write", by_write},
		{"turns", by_turns},
		{"stdio", by_stdio},
		{"rename", by_rename},
		{"again", maps_again},
		{"reread", reads_again},
		{"rereads", rereads_some},
		{"parts", maps_parts},
		{"moved", moves},
		{"twice", maps_twice},
		{"restream", streams_again},
		{"stream", streams_first},
		{"child", child_recovers},
		{"heir", child_writes},
		{"unseen", unseen},
		{"hangs", hangs},
		{"crashes", crashes},
		{"prints", prints},
		{"threads", threads},
		{"children", children},
		{"shares", shares},
		{"writes", writes},
		{"reads", reads},
		{"marker", marker},
#ifdef WITH_PMEM
		{"pmem", pmem},
#endif
	};
	for (unsigned i = 0; argc > 2 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[1], ways[i].name))
			return ways[i].check(argv[argc - 1]);
	return 40;
}
