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
#include <sys/resource.h>
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
	64 /* looks; between these, what is known to be written is compared again, which \
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

static void report_ranges(const struct scanned *found, int n,
			  void (*fn)(void *arg, uint8_t *at, size_t len), void *arg)
{
	for (int i = 0; i < n; i++)
		fn(arg, (uint8_t *)(uintptr_t)found[i].start,
		   (size_t)(found[i].end - found[i].start));
}

/*
 * What the last scan of a range has found. A page that is written for the first time since it was
 * protected costs its thread a page fault, which is counted before the store is made; so as long as
 * the process has had none, the pages that were written are those that are known, and the kernel
 * need not look at each page again.
 */
#define KNOWN 16
static struct known {
	const uint8_t *at;
	size_t len;
	long faults; /* of the process, before the scan */
	int ranges;
	struct scanned range[RANGES];
} known[KNOWN];

static long count_faults(void)
{
	struct rusage usage;
	syscall(SYS_getrusage, RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* That of this range; NULL: it has no place. */
static struct known *known_of(const uint8_t *at, size_t len)
{
	struct known *k = known;
	while (k < known + KNOWN && k->at && (k->at != at || k->len != len))
		k++;
	if (k == known + KNOWN)
		return NULL;
	if (!k->at)
		*k = (struct known){.at = at, .len = len, .faults = -1};
	return k;
}

/* Ask the kernel. How many ranges there were in the last call; RANGES or more: not all are in
 * `found` any more. */
static int scan_range(uint8_t *at, size_t len, bool protect, struct scanned found[RANGES],
		      void (*fn)(void *arg, uint8_t *at, size_t len), void *arg)
{
	struct scan_arguments scan = {.size = sizeof(scan),
				      .flags = SCAN_CHECK_WP_ASYNC |
					       (protect ? SCAN_WP_MATCHING : 0),
				      .start = (uintptr_t)at,
				      .end = (uintptr_t)at + len,
				      .vec = (uintptr_t)found,
				      .vec_len = RANGES,
				      .category_mask = PAGE_IS_WRITTEN,
				      .return_mask = PAGE_IS_WRITTEN};
	int all = 0;
	while (scan.start < scan.end) {
		int n = ioctl(pagemap, SCAN, &scan);
		if (n < 0)
			return RANGES;
		report_ranges(found, n, fn, arg);
		all += all ? RANGES : n;
		if (scan.walk_end <= scan.start)
			return RANGES;
		scan.start = scan.walk_end;
	}
	return all;
}

void written_ranges(uint8_t *at, size_t len, void (*fn)(void *arg, uint8_t *at, size_t len),
		    void *arg)
{
	static unsigned looks; /* under the lock */
	static struct scanned found[RANGES];
	bool protect = ++looks % PROTECT_EVERY == 0;
	struct known *k = known_of(at, len);
	long faults = count_faults();
	if (k && !protect && k->faults == faults) {
		report_ranges(k->range, k->ranges, fn, arg);
		return;
	}
	int n = scan_range(at, len, protect, k ? k->range : found, fn, arg);
	if (!k)
		return;
	k->faults = n < RANGES ? faults : -1;
	k->ranges = protect ? 0 : n; /* protected: they are to be written anew */
}

void written_forget(void)
{
	if (uffd >= 0)
		syscall(SYS_close, uffd);
	if (pagemap >= 0)
		syscall(SYS_close, pagemap);
	uffd = pagemap = -1;
	impossible = false;
	memset(known, 0, sizeof(known));
}
