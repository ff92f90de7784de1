/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is this thread the only one of its process? Then its own page faults are all that there are, and
 * to ask for them takes half as long.
 *
 * The kernel is not asked for that each time: it writes an entry into memory of this process when
 * the thread creates another one, in whichever way, or has the kernel create one as io_uring does
 * (perf_event_open(2) with attr.task). The entry is there before the new thread runs. Processes are
 * created with such an entry, too; after the first of them no thread counts as alone any more.
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/record/recorder.h"

#define PAGE 4096

static const struct perf_event_mmap_page *entries; /* NULL: the kernel does not tell */
static uint64_t before;				   /* bytes of entries */

static uint64_t bytes_of_entries(void)
{
	return __atomic_load_n(&entries->data_head, __ATOMIC_ACQUIRE);
}

/* For an event that is open the kernel has work at each change of threads. */
static void drop_entries(void)
{
	syscall(SYS_munmap, entries, 2 * PAGE);
	entries = NULL;
}

/* A folder has a link for itself, one from above, and one for each folder in it. */
static bool has_one_thread(void)
{
	struct stat st;
	return !stat("/proc/self/task", &st) && st.st_nlink == 3;
}

void alone_begin(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .exclude_hv = 1,
				       .task = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return;
	/* As it can only be read, the kernel never waits until an entry was read. */
	long at = syscall(SYS_mmap, NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0L);
	syscall(SYS_close, fd);
	if (at == -1)
		return;
	entries = (const void *)at;
	before = bytes_of_entries();
	if (!has_one_thread())
		drop_entries();
}

bool alone(void)
{
	if (entries && bytes_of_entries() != before)
		drop_entries();
	return entries;
}

/* In a child of fork() the memory is not there. */
void alone_forget(void)
{
	entries = NULL;
}
