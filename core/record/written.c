/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which pages of PM a process has written, from the kernel: userfaultfd(2) with asynchronous write
 * protection, and ioctl PAGEMAP_SCAN, which says which pages were written since they were protected
 * and protects them again (Linux 6.7). No signal, no thread, no stopped program; reads by the
 * kernel into such pages work. Without it all of PM is compared.
 */
#include <fcntl.h>
#include <linux/types.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/record/recorder.h"

/* <linux/userfaultfd.h> and <linux/fs.h> of older systems do not have these. */
#define WP_UNPOPULATED (1 << 13)
#define WP_ASYNC       (1 << 15)
#define USER_MODE_ONLY 1
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
#define PROTECT_EVERY                                                                    \
	16 /* looks; between these, what is known to be written is compared again, which \
	    * takes less time than a page fault for the next store to it */

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
	return !impossible;
}

/* The first time also protects. */
bool written_watch(uint8_t *at, size_t len)
{
	struct uffdio_register range = {.range = {.start = (uintptr_t)at, .len = len},
					.mode = UFFDIO_REGISTER_MODE_WP};
	struct scan_arguments scan = {.size = sizeof(scan),
				      .flags = SCAN_WP_MATCHING | SCAN_CHECK_WP_ASYNC,
				      .start = (uintptr_t)at,
				      .end = (uintptr_t)at + len,
				      .category_mask = PAGE_IS_WRITTEN,
				      .return_mask = PAGE_IS_WRITTEN};
	if (!open_both() || ioctl(uffd, UFFDIO_REGISTER, &range))
		return false;
	struct uffdio_writeprotect protect = {.range = range.range,
					      .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	return !ioctl(uffd, UFFDIO_WRITEPROTECT, &protect) && ioctl(pagemap, SCAN, &scan) >= 0;
}

void written_ranges(uint8_t *at, size_t len, void (*fn)(void *arg, uint8_t *at, size_t len),
		    void *arg)
{
	static unsigned looks; /* under the lock */
	struct scanned found[RANGES];
	bool protect = ++looks % PROTECT_EVERY == 0;
	struct scan_arguments scan = {.size = sizeof(scan),
				      .flags = SCAN_CHECK_WP_ASYNC |
					       (protect ? SCAN_WP_MATCHING : 0),
				      .start = (uintptr_t)at,
				      .end = (uintptr_t)at + len,
				      .vec = (uintptr_t)found,
				      .vec_len = RANGES,
				      .category_mask = PAGE_IS_WRITTEN,
				      .return_mask = PAGE_IS_WRITTEN};
	while (scan.start < scan.end) {
		int n = ioctl(pagemap, SCAN, &scan);
		if (n < 0)
			return;
		for (int i = 0; i < n; i++)
			fn(arg, (uint8_t *)(uintptr_t)found[i].start,
			   (size_t)(found[i].end - found[i].start));
		if (scan.walk_end <= scan.start)
			return;
		scan.start = scan.walk_end;
	}
}

void written_forget(void)
{
	if (uffd >= 0)
		syscall(SYS_close, uffd);
	if (pagemap >= 0)
		syscall(SYS_close, pagemap);
	uffd = pagemap = -1;
	impossible = false;
}
