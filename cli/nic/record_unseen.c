/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See record.h. A file's shadow (core/record/pm_maps.c) holds what the recording knows of
 * it: what was there before and all that was recorded since. What differs was written in a way that
 * is not seen, and images made of the recording have none of it.
 */
#include "cli/nic/record.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "checker/logs/recording_read.h"
#include "report/images/images_report.h"

#define READ_ROOM (64u << 10) /* bytes that are compared at a time */

/* Where the next bytes of a file are that are no hole, at `at` or later; at most `end`. */
static uint64_t next_data(int fd, uint64_t at, uint64_t end)
{
	off_t next = lseek(fd, (off_t)at, SEEK_DATA);
	if (next < 0)
		return end;
	return (uint64_t)next < end ? (uint64_t)next : end;
}

static uint64_t count_differences(int file, int shadow, uint64_t end)
{
	static uint8_t now[READ_ROOM], known[READ_ROOM];
	uint64_t differ = 0, at = 0;
	while (at < end) {
		uint64_t other = next_data(shadow, at, end);
		at = next_data(file, at, end);
		at = at < other ? at : other;
		size_t n = end - at < READ_ROOM ? end - at : READ_ROOM;
		if (pread(file, now, n, (off_t)at) != (ssize_t)n ||
		    pread(shadow, known, n, (off_t)at) != (ssize_t)n)
			break;
		for (size_t i = memcmp(now, known, n) ? 0 : n; i < n; i++)
			differ += now[i] != known[i];
		at += n;
	}
	return differ;
}

/* 0: nothing differs, or the file is no more what it was. */
static uint64_t unseen_of(const struct record_head *head, unsigned i, const char *name)
{
	const struct record_file *f = &head->file[i];
	char path[sizeof(head->shadow) + 16];
	struct stat st;
	uint64_t differ = 0;
	snprintf(path, sizeof(path), "%s/%u", head->shadow, i);
	int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int shadow = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0 && shadow >= 0 && !fstat(file, &st) && S_ISREG(st.st_mode) &&
	    st.st_dev == f->device && st.st_ino == f->inode)
		differ = count_differences(file, shadow,
					   (uint64_t)st.st_size < f->size ? (uint64_t)st.st_size
									  : f->size);
	if (file >= 0)
		close(file);
	if (shadow >= 0)
		close(shadow);
	return differ;
}

static void compare(struct record_head *head, unsigned i, const struct record *r, bool quiet)
{
	char name[PATH_MAX];
	snprintf(name, sizeof(name), "%.*s", (int)r->len, (const char *)r->payload);
	head->unseen[i] = unseen_of(head, i, name);
	if (!head->unseen[i] || quiet)
		return;
	fprintf(stderr, "tidemark: %s: ", name);
	images_print_unseen(stderr, head->unseen[i]);
	fputc('\n', stderr);
}

void record_unseen(struct record_head *head, const char *path, bool quiet)
{
	uint64_t used = head->used;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *bytes = fd < 0 ? MAP_FAILED : mmap(NULL, used, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (bytes == MAP_FAILED)
		return;
	/* The recording has the files' names; most are at its beginning. */
	unsigned files = 0;
	const struct record *r;
	for (uint64_t at = RECORD_HEAD; files < head->files && (r = recording_at(bytes, used, at));
	     at += r->bytes)
		if (r->kind == RECORD_FILE && r->file == files)
			compare(head, files++, r, quiet);
	munmap((void *)(uintptr_t)bytes, used);
}
