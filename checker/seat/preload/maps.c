/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See maps.h. Which pages of a private mapping are copies of its own the kernel tells
 * (/proc/self/pagemap). Only system calls are made here, as the program's own functions may be
 * preload.c's.
 */
#include "checker/seat/preload/maps.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE  4096u
#define MAPS  64
#define LOOKS 32 /* by other means, while it is mapped: then it is not worth it */

/* Of an entry of the page map: a page of the file, or of memory that is shared; in memory; not. */
#define ENTRY_FILE    (1ull << 61)
#define ENTRY_SWAPPED (1ull << 62)
#define ENTRY_PRESENT (1ull << 63)

struct map {
	uint8_t *at;
	uint64_t from, to; /* bytes of the file, whole pages */
	int prot;
	bool ours, shared; /* ours: may be written to, private unless it is shared */
};

static struct {
	struct map map[MAPS];
	unsigned n, looks;
	uint64_t image; /* of which they are mappings */
	bool lost;	/* there is one more, or was, which may have been written to */
} here;
static atomic_flag busy = ATOMIC_FLAG_INIT;

/* A function that judges image after image may leave mappings of those before. */
static void enter(const struct board *b)
{
	while (atomic_flag_test_and_set(&busy))
		syscall(SYS_sched_yield);
	uint64_t image = (uint64_t)atomic_load(&b->asked) << 32 | atomic_load(&b->judged);
	if (here.image != image) {
		here.n = here.looks = 0;
		here.lost = false;
	}
	here.image = image;
}

static bool leave(bool done)
{
	here.lost |= !done;
	atomic_flag_clear(&busy);
	return done;
}

static void touch(struct board *b, uint64_t from, uint64_t to)
{
	for (uint64_t page = from / PAGE; page < (to + PAGE - 1) / PAGE; page++) {
		uint32_t n = atomic_fetch_add(&b->touched, 1);
		if (n >= BOARD_PAGES) {
			atomic_store(&b->touched, BOARD_PAGES);
			atomic_fetch_or(&b->written, 1);
			return;
		}
		b->touched_page[n] = page;
	}
}

static int open_image(const struct board *b, struct stat *st)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, b->path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, st) && st->st_dev == b->file[0].dev &&
	    st->st_ino == b->file[0].ino)
		return fd;
	if (fd >= 0)
		syscall(SYS_close, fd);
	return -1;
}

/* A page that is a copy goes into the file, unless it is as it is there. */
static bool write_page(struct board *b, int fd, const struct stat *st, const uint8_t *at,
		       uint64_t from)
{
	uint8_t was[PAGE];
	if (from >= (uint64_t)st->st_size)
		return true;
	size_t n = (uint64_t)st->st_size - from < PAGE ? (size_t)st->st_size - from : PAGE;
	if (syscall(SYS_pread64, fd, was, n, from) != (long)n)
		return false;
	if (!memcmp(was, at, n))
		return true;
	touch(b, from, from + n);
	return syscall(SYS_pwrite64, fd, at, n, from) == (long)n;
}

/* The pages of a private mapping which are copies. It must be possible to read them. */
static bool write_map(struct board *b, const struct map *m)
{
	uint64_t entry[512];
	struct stat st;
	int pages = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	int fd = open_image(b, &st);
	bool done = fd >= 0 && pages >= 0 && m->prot & PROT_READ;
	for (uint64_t at = m->from; done && at < m->to;) {
		const uint8_t *page = m->at + (at - m->from);
		size_t n = (m->to - at) / PAGE < 512 ? (m->to - at) / PAGE : 512;
		done = syscall(SYS_pread64, pages, entry, 8 * n, (uintptr_t)page / PAGE * 8) ==
		       (long)(8 * n);
		for (size_t i = 0; done && i < n; i++)
			if (entry[i] & (ENTRY_PRESENT | ENTRY_SWAPPED) && !(entry[i] & ENTRY_FILE))
				done = write_page(b, fd, &st, page + i * PAGE, at + i * PAGE);
		at += n * PAGE;
	}
	if (pages >= 0)
		syscall(SYS_close, pages);
	if (fd >= 0)
		syscall(SYS_close, fd);
	return done;
}

/* --- the table --- */

/* A mapping becomes two, so that this byte is the first of the second one. */
static bool split(unsigned i, uint64_t first)
{
	struct map *m = &here.map[i];
	if (first <= m->from || first >= m->to)
		return true;
	if (here.n == MAPS)
		return false;
	struct map *end = &here.map[here.n++];
	*end = *m;
	end->at += first - m->from;
	end->from = m->to = first;
	return true;
}

/* No mapping reaches over the ends of this part of the file. */
static bool split_all(uint64_t from, uint64_t to)
{
	bool done = true;
	for (unsigned i = 0; i < here.n && done; i++)
		done = split(i, from) && split(i, to);
	return done;
}

static bool is_in(const struct map *m, uint64_t from, uint64_t to)
{
	return m->from >= from && m->to <= to;
}

static bool is_alone(const struct map *m)
{
	return m->ours && !m->shared;
}

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Pages that are mapped are shared from now on, in place. */
static bool share(struct board *b, const uint8_t *at, uint64_t from, uint64_t to, int prot)
{
	struct stat st;
	int fd = preload_threads() == 1 ? open_image(b, &st) : -1;
	bool done = fd >= 0 && syscall(SYS_mmap, at, to - from, prot, MAP_SHARED | MAP_FIXED, fd,
				       from) == (long)at;
	if (fd >= 0)
		syscall(SYS_close, fd);
	touch(b, from, to);
	return done;
}

bool maps_look(struct board *b, uint64_t from, uint64_t to)
{
	enter(b);
	bool done = !here.lost && ++here.looks <= LOOKS;
	for (unsigned i = 0; i < here.n && done; i++) {
		const struct map *m = &here.map[i];
		if (is_alone(m) && m->from < to && m->to > from)
			done = write_map(b, m);
	}
	return leave(done);
}

bool maps_before(struct board *b, uint64_t from, uint64_t to, uint64_t shared[2])
{
	enter(b);
	to = whole_pages(to);
	bool done = !here.lost && split_all(from, to);
	shared[0] = to;
	shared[1] = from;
	for (unsigned i = 0; i < here.n && done; i++) {
		struct map *m = &here.map[i];
		if (!is_in(m, from, to))
			continue;
		shared[0] = m->from < shared[0] ? m->from : shared[0];
		shared[1] = m->to > shared[1] ? m->to : shared[1];
		if (!is_alone(m))
			continue;
		done = write_map(b, m) && share(b, m->at, m->from, m->to, m->prot);
		m->shared = true;
	}
	return leave(done);
}

bool maps_add(struct board *b, void *at, size_t len, int prot, uint64_t from, enum maps_sort sort,
	      const uint64_t shared[2])
{
	enter(b);
	bool done = here.n < MAPS, ours = sort == MAPS_OURS;
	unsigned first = here.n;
	if (done)
		here.map[here.n++] = (struct map){.at = at,
						  .from = from,
						  .to = whole_pages(from + len),
						  .prot = prot,
						  .ours = ours};
	if (ours && shared[0] < shared[1])
		done = done && split_all(shared[0], shared[1]);
	for (unsigned i = first; i < here.n && done && ours; i++) {
		struct map *m = &here.map[i];
		if (!is_in(m, shared[0], shared[1]))
			continue;
		done = share(b, m->at, m->from, m->to, prot);
		m->shared = true;
	}
	return leave(done);
}

/* Split them by addresses: no mapping reaches over the ends of these. */
static bool split_at(const uint8_t *at, const uint8_t *end)
{
	bool done = true;
	for (unsigned i = 0; i < here.n && done; i++) {
		const struct map *m = &here.map[i];
		const uint8_t *last = m->at + (m->to - m->from);
		if (at > m->at && at < last)
			done = split(i, m->from + (uint64_t)(at - m->at));
		m = &here.map[i];
		last = m->at + (m->to - m->from);
		if (done && end > m->at && end < last)
			done = split(i, m->from + (uint64_t)(end - m->at));
	}
	return done;
}

bool maps_drop(struct board *b, const void *from, size_t len)
{
	enter(b);
	const uint8_t *at = from, *end = at + whole_pages(len);
	bool done = split_at(at, end);
	for (unsigned i = 0; i < here.n && done;) {
		struct map *m = &here.map[i];
		if (m->at < at || m->at >= end) {
			i++;
			continue;
		}
		done = !is_alone(m) || write_map(b, m);
		*m = here.map[--here.n];
	}
	return leave(done);
}

/* Has it a mapping whose pages may not be those of the file? */
bool maps_alone(struct board *b)
{
	enter(b);
	bool alone = here.lost;
	for (unsigned i = 0; i < here.n; i++)
		alone |= is_alone(&here.map[i]);
	return !leave(true) || alone;
}

void maps_protect(struct board *b, const void *from, size_t len, int prot)
{
	enter(b);
	const uint8_t *at = from, *end = at + whole_pages(len);
	bool done = split_at(at, end);
	for (unsigned i = 0; i < here.n && done; i++)
		if (here.map[i].at >= at && here.map[i].at < end)
			here.map[i].prot = prot;
	leave(done);
}

void maps_forget(struct board *b, const void *from, size_t len)
{
	enter(b);
	const uint8_t *at = from, *end = at + whole_pages(len);
	bool done = split_at(at, end);
	for (unsigned i = 0; i < here.n && done; i++)
		done = here.map[i].at < at || here.map[i].at >= end;
	leave(done);
}
