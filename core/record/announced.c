/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that clients announce, by functions of record.h or by lines of a file. As with stores,
 * nothing tells of a line when it is written; but each event takes first the lines that were there
 * before it. What is noticed then may have been stored before any of these lines or after it: it
 * comes after a call (RECORD_LINES) and before an answer, so that no image denies what a client
 * knew.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/record/announcement.h"
#include "core/record/record.h"
#include "core/record/recorder.h"

static void add(enum record_kind kind, uint64_t client, const char *words, size_t len,
		uint32_t source, bool line)
{
	recorder_add_of(kind, 0, client, words, (uint32_t)(len < RECORD_WORDS ? len : RECORD_WORDS),
			source, 0, kind == RECORD_CALL ? line : !pm_maps_all());
}

/* In a process without PM of its own as well: clients are such. */
static void announce(enum record_kind kind, uint64_t client, const char *words, const void *caller)
{
	struct call_site site;
	call_site_find(&site, caller);
	if (!recorder_lock())
		return;
	uint32_t source = call_site_number(&site);
	if (pm_maps_any())
		pm_maps_scan(source);
	add(kind, client, words, strcspn(words, "\n"), source, false);
	recorder_unlock();
}

RECORD_EXPORT void tidemark_recorder_call(unsigned client, const char *operation)
{
	announce(RECORD_CALL, client, operation, __builtin_return_address(0));
}

RECORD_EXPORT void tidemark_recorder_return(unsigned client, const char *answer)
{
	announce(RECORD_RETURN, client, answer, __builtin_return_address(0));
}

/* --- lines of a file --- */

/* What is no announcement is kept as an operation of client 0, so that readers of the recording
 * hear of it. */
static void take_line(const char *line, size_t len, uint32_t source)
{
	struct announcement_line l;
	if (announcement_parse(line, len, &l))
		add(l.returns ? RECORD_RETURN : RECORD_CALL, l.client, l.words, l.len, source,
		    true);
	else
		add(RECORD_CALL, 0, line, len, source, true);
}

/* The whole lines of these bytes; returns how many bytes they are. */
static size_t take_lines(const char *text, size_t len, uint32_t source)
{
	size_t taken = 0;
	while (taken < len) {
		const char *newline = memchr(text + taken, '\n', len - taken);
		if (!newline)
			break;
		size_t n = (size_t)(newline - (text + taken));
		if (n)
			take_line(text + taken, n, source);
		taken += n + 1;
	}
	return taken;
}

/* The file, open in this process, or -1. A program may close what it does not know. */
static int history_file(struct stat *st)
{
	static int fd = -1;
	static ino_t inode;
	if (fd >= 0 && !fstat(fd, st) && st->st_ino == inode)
		return fd;
	const char *path = getenv(RECORD_HISTORY_VARIABLE);
	int low = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
	/* Out of the way of the numbers that a program counts on, if there may be such. */
	int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 500);
	if (high >= 0)
		syscall(SYS_close, low);
	fd = high >= 0 ? high : low;
	if (fd < 0 || fstat(fd, st))
		return -1;
	inode = st->st_ino;
	return fd;
}

static int lines = -1; /* the file, if it has lines that are to be taken */

void announced_begin(void)
{
	static off_t looked_at;
	struct stat st;
	/* A process that opens the file sets this first: until then the kernel need not be
	 * asked. */
	if (!recorder->announced)
		return;
	int fd = history_file(&st);
	/* Part of a line may have to wait for the rest of it. */
	if (fd < 0 || (uint64_t)st.st_size <= recorder->history || st.st_size == looked_at)
		return;
	looked_at = st.st_size;
	recorder_add(RECORD_LINES, 0, 0, NULL, 0, 0);
	lines = fd;
}

void announced_take(void)
{
	static char text[1 << 16]; /* under the lock */
	if (lines < 0)
		return;
	uint32_t source = call_site_name("a line of " RECORD_HISTORY_VARIABLE);
	if (pm_maps_any())
		pm_maps_scan(source);
	for (size_t taken = 1; taken;) {
		long n = syscall(SYS_pread64, lines, text, sizeof(text), recorder->history);
		taken = n > 0 ? take_lines(text, (size_t)n, source) : 0;
		recorder->history += taken;
	}
	lines = -1;
}
