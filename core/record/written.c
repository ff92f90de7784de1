/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which pages of PM a process has written, from the kernel: userfaultfd(2) with asynchronous write
 * protection, and ioctl PAGEMAP_SCAN, which says which pages were written since they were protected
 * and protects them again (Linux 6.7). No signal, no thread, no stopped program; reads by the
 * kernel into such pages work. Without it all of PM is compared.
 *
 * The kernel is asked only when it can have something new to say. A page that is written for the
 * first time since it was protected costs its thread a page fault, which is counted before the
 * store is made; so as long as the process has had none, the pages that were written are those that
 * are known. These few stay unprotected and are compared at each look, which takes less time than a
 * page fault for the next store to them, until they are no longer written.
 */
#include <fcntl.h>
#include <linux/types.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/record/recorder.h"

/* <linux/userfaultfd.h> and <linux/fs.h> of older systems do not have these. */
#define WP_UNPOPULATED (1 << 13)
#define WP_ASYNC       (1 << 15)
#define USER_MODE_ONLY 1
#define PAGE	       4096
struct scan_arguments {
	__u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
	__u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct scanned {
	__u64 start, end, categories;
};
#define SCAN		    _IOWR('f', 16, struct scan_arguments)
#define SCAN_WP_MATCHING    (1 << 0)
#define SCAN_CHECK_WP_ASYNC (1 << 1)
#define PAGE_IS_WRITTEN	    (1 << 1)

#define RANGES 64 /* that one call returns */
/*
 * After so many looks at a page that were in vain it is protected again: these have taken about as
 * long then as the next store to it will, which is a page fault, and after that a look by the
 * kernel at each page of the range.
 */
static size_t patience(size_t len)
{
	return 24 + len / PAGE / 64;
}

static int uffd = -1, pagemap = -1;
static bool impossible;

static bool open_both(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = WP_ASYNC | WP_UNPOPULATED};
	if (impossible || uffd >= 0)
		return !impossible;
	if (getenv(RECORD_COMPARE_VARIABLE)) {
		impossible = true;
		return false;
	}
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
	pagemap = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	impossible = uffd < 0 || pagemap < 0 || ioctl(uffd, UFFDIO_API, &api);
	if (!impossible)
		alone_begin();
	return !impossible;
}

static bool protect(uint8_t *at, size_t len)
{
	struct uffdio_writeprotect range = {.range = {.start = (uintptr_t)at, .len = len},
					    .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	return !ioctl(uffd, UFFDIO_WRITEPROTECT, &range);
}

/* Arguments that ask for what was written, and protect that if `flags` has SCAN_WP_MATCHING. */
static struct scan_arguments ask_for(uint8_t *at, size_t len, struct scanned found[RANGES],
				     uint64_t flags)
{
	return (struct scan_arguments){.size = sizeof(struct scan_arguments),
				       .flags = SCAN_CHECK_WP_ASYNC | flags,
				       .start = (uintptr_t)at,
				       .end = (uintptr_t)at + len,
				       .vec = (uintptr_t)found,
				       .vec_len = RANGES,
				       .category_mask = PAGE_IS_WRITTEN,
				       .return_mask = PAGE_IS_WRITTEN};
}

bool written_watch(struct written *w, uint8_t *at, size_t len)
{
	struct uffdio_register range = {.range = {.start = (uintptr_t)at, .len = len},
					.mode = UFFDIO_REGISTER_MODE_WP};
	static struct scanned found[RANGES]; /* under the lock */
	struct scan_arguments scan = ask_for(at, PAGE, found, 0);
	written_reset(w);
	return open_both() && !ioctl(uffd, UFFDIO_REGISTER, &range) && protect(at, len) &&
	       ioctl(pagemap, SCAN, &scan) >= 0;
}

void written_reset(struct written *w)
{
	w->faults = -1;
	w->pages = 0;
}

long written_faults(void)
{
	struct rusage usage;
	syscall(SYS_getrusage, alone() ? RUSAGE_THREAD : RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Bring the pages up to date. The kernel also knows of those that were written and then taken out
 * of memory. False: they are too many. */
static bool find_pages(struct written *w, uint8_t *at, size_t len)
{
	static struct scanned found[RANGES]; /* under the lock, as threads may have small stacks */
	static struct written was;
	struct scan_arguments scan = ask_for(at, len, found, 0);
	unsigned old = 0;
	recorder->kernel_scans++;
	scan.max_pages = WRITTEN_PAGES;
	int n = ioctl(pagemap, SCAN, &scan);
	if (n < 0)
		return true;
	was = *w;
	w->pages = 0;
	for (int i = 0; i < n; i++)
		for (uint64_t page = found[i].start; page < found[i].end; page += PAGE) {
			while (old < was.pages && (uintptr_t)was.page[old].at < page)
				old++;
			bool known = old < was.pages && (uintptr_t)was.page[old].at == page;
			w->page[w->pages++] = (struct written_page){(uint8_t *)(uintptr_t)page,
								    known ? was.page[old].idle : 0};
		}
	return w->pages < WRITTEN_PAGES;
}

/* Protect what was written, then look at it: nothing that is stored meanwhile is missed. */
static void look_at_all(uint8_t *at, size_t len, written_fn *fn, void *arg)
{
	static struct scanned found[RANGES]; /* under the lock */
	struct scan_arguments scan = ask_for(at, len, found, SCAN_WP_MATCHING);
	recorder->kernel_scans++;
	while (scan.start < scan.end) {
		int n = ioctl(pagemap, SCAN, &scan);
		for (int i = 0; i < n; i++) {
			uint8_t *from = (uint8_t *)(uintptr_t)found[i].start;
			uint64_t end = found[i].end < scan.end ? found[i].end : scan.end;
			fn(arg, from, (size_t)(end - found[i].start));
		}
		if (n < 0 || scan.walk_end <= scan.start)
			return;
		scan.start = scan.walk_end;
	}
}

/* True: from now on it is protected. */
static bool look_at_page(struct written_page *page, size_t len, size_t most, written_fn *fn,
			 void *arg)
{
	page->idle = fn(arg, page->at, len) ? 0 : page->idle + 1;
	if (page->idle < most || !protect(page->at, PAGE))
		return false;
	fn(arg, page->at, len); /* it may have been written just before that */
	return true;
}

void written_look(struct written *w, uint8_t *at, size_t len, long faults, written_fn *fn,
		  void *arg)
{
	unsigned kept = 0;
	if (w->faults != faults && !find_pages(w, at, len)) {
		look_at_all(at, len, fn, arg);
		w->pages = 0;
	}
	for (unsigned i = 0; i < w->pages; i++) {
		size_t left = (size_t)(at + len - w->page[i].at);
		if (!look_at_page(&w->page[i], left < PAGE ? left : PAGE, patience(len), fn, arg))
			w->page[kept++] = w->page[i];
	}
	w->pages = kept;
	w->faults = faults;
}

void written_changed(struct written *w, const uint8_t *at)
{
	for (unsigned i = 0; i < w->pages; i++)
		if ((uintptr_t)at - (uintptr_t)w->page[i].at < PAGE)
			w->page[i].idle = 0;
}

void written_forget(void)
{
	if (uffd >= 0)
		syscall(SYS_close, uffd);
	if (pagemap >= 0)
		syscall(SYS_close, pagemap);
	uffd = pagemap = -1;
	impossible = false;
	alone_forget();
}
