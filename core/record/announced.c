/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that clients announce, by functions of record.h or by lines of a file. As with stores,
 * nothing tells of a line when it is written; but each event takes first the lines that were there
 * before it. What is noticed then may have been stored before any of these lines or after it: it
 * comes after a call (RECORD_LINES) and before an answer, so that no image denies what a client
 * knew. Lines that a program prints (--ack) are in files, too, and are taken in the same way. Those
 * that it writes to a socket are told of when that is called.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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
	call_site_find(&site, caller, false);
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

void announced_sent(int fd, const struct iovec *part, size_t parts, const void *caller)
{
	static char text[1 << 16]; /* under the lock */
	size_t len = 0;
	uint32_t source;
	if (parts > IOV_MAX || !recorder_event(caller, &source))
		return;
	for (size_t i = 0; i < parts && len < sizeof(text); i++) {
		size_t n = part[i].iov_len < sizeof(text) - len ? part[i].iov_len
								: sizeof(text) - len;
		memcpy(text + len, part[i].iov_base, n);
		len += n;
	}
	for (size_t at = 0, n; at < len; at += n + 1) {
		const char *newline = memchr(text + at, '\n', len - at);
		n = newline ? (size_t)(newline - (text + at)) : len - at;
		add(RECORD_PRINTED, (uint64_t)fd + 1, text + at,
		    n - (n && text[at + n - 1] == '\r'), source, false);
	}
	recorder_unlock();
}

/* --- lines of a file --- */

struct lines {
	const char *variable, *name; /* the file's path, or of the folder that it is in; its name */
	uint64_t *taken;	     /* bytes */
	bool printed;
	int fd;
	ino_t inode;
	off_t looked_at;
	bool waits; /* it has lines that are to be taken */
};
#define FILES 3
static struct lines file[FILES] = {
	{.variable = RECORD_HISTORY_VARIABLE, .fd = -1},
	{.variable = RECORD_SHADOW_VARIABLE, RECORD_PRINTED_OUT, .printed = true, .fd = -1},
	{.variable = RECORD_SHADOW_VARIABLE, RECORD_PRINTED_ERR, .printed = true, .fd = -1}};

/* What is no announcement is kept as an operation of client 0, so that readers of the recording
 * hear of it. */
static void take_line(const struct lines *from, const char *line, size_t len, uint32_t source)
{
	struct announcement_line l;
	if (from->printed)
		add(RECORD_PRINTED, 0, line, len, source, true);
	else if (announcement_parse(line, len, &l))
		add(l.returns ? RECORD_RETURN : RECORD_CALL, l.client, l.words, l.len, source,
		    true);
	else
		add(RECORD_CALL, 0, line, len, source, true);
}

/* The whole lines of these bytes; returns how many bytes they are. */
static size_t take_lines(const struct lines *from, const char *text, size_t len, uint32_t source)
{
	size_t taken = 0;
	while (taken < len) {
		const char *newline = memchr(text + taken, '\n', len - taken);
		if (!newline)
			break;
		size_t n = (size_t)(newline - (text + taken));
		if (n)
			take_line(from, text + taken, n, source);
		taken += n + 1;
	}
	return taken;
}

/* The file, open in this process, or -1. A program may close what it does not know. */
static int open_lines(struct lines *l, struct stat *st)
{
	char path[256];
	if (l->fd >= 0 && !fstat(l->fd, st) && st->st_ino == l->inode)
		return l->fd;
	const char *where = getenv(l->variable);
	if (!where || (size_t)snprintf(path, sizeof(path), "%s%s%s", where, l->name ? "/" : "",
				       l->name ? l->name : "") >= sizeof(path))
		return -1;
	int low = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	/* Out of the way of the numbers that a program counts on, if there may be such. */
	int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 500);
	if (high >= 0)
		syscall(SYS_close, low);
	l->fd = high >= 0 ? high : low;
	if (l->fd < 0 || fstat(l->fd, st))
		return -1;
	l->inode = st->st_ino;
	return l->fd;
}

/* Are there lines? A process that opens the history sets `announced` first: until then the kernel
 * need not be asked. */
static bool has_lines(struct lines *l)
{
	struct stat st;
	if (l->printed ? !recorder->ack[0] : !recorder->announced)
		return false;
	/* Part of a line may have to wait for the rest of it. */
	if (open_lines(l, &st) < 0 || (uint64_t)st.st_size <= *l->taken ||
	    st.st_size == l->looked_at)
		return false;
	l->looked_at = st.st_size;
	return true;
}

void announced_begin(void)
{
	bool any = false;
	file[0].taken = &recorder->history;
	file[1].taken = &recorder->printed[0];
	file[2].taken = &recorder->printed[1];
	for (unsigned i = 0; i < FILES; i++) {
		file[i].waits |= has_lines(&file[i]);
		any |= file[i].waits;
	}
	if (any)
		recorder_add(RECORD_LINES, 0, 0, NULL, 0, 0);
}

static void take_file(struct lines *l)
{
	static char text[1 << 16]; /* under the lock */
	uint32_t source = call_site_name(l->printed ? "a line that was printed"
						    : "a line of " RECORD_HISTORY_VARIABLE);
	if (pm_maps_any())
		pm_maps_scan(source);
	for (size_t taken = 1; taken;) {
		long n = syscall(SYS_pread64, l->fd, text, sizeof(text), *l->taken);
		taken = n > 0 ? take_lines(l, text, (size_t)n, source) : 0;
		*l->taken += taken;
	}
	l->waits = false;
}

void announced_take(void)
{
	for (unsigned i = 0; i < FILES; i++)
		if (file[i].waits)
			take_file(&file[i]);
}

/* A line that is printed is to be seen at once, as on a terminal. */
__attribute__((constructor)) static void print_lines(void)
{
	if (getenv(RECORD_PRINTED_VARIABLE))
		setvbuf(stdout, NULL, _IOLBF, 0);
}

void announced_flush(void)
{
	if (getenv(RECORD_PRINTED_VARIABLE))
		fflush(stdout);
}
