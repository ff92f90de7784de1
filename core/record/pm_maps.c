/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where PM is mapped in this process, and what its CPUs have stored there.
 *
 * Each file has a shadow, a file that all processes of the recording map: what the recording knows
 * of it. What differs from the shadow was stored since the last comparison. They are compared
 * before each event that makes something durable, is seen outside, or lands by an RNIC; so it is
 * known between which events something was stored, but not in which order: what has changed in a
 * line of 64 bytes between two events is one store.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/record/record_hooks.h"
#include "core/record/recorder.h"

#define MAPPINGS 256
#define LINE	 64
#define WORD	 8
#define PAGE	 4096

#define READ_ROOM (64u << 10) /* bytes that are read at a time, whole pages */

static struct mapping {
	uint8_t *at;
	size_t len;
	uint64_t offset;
	unsigned file;
	bool constant; /* nothing can be stored there */
	bool memory;   /* no file */
	bool watched;
	struct written written;
} mapping[MAPPINGS];
static _Atomic unsigned mappings;

static struct shadow {
	uint8_t *bytes;
	uint64_t size;
} shadow[RECORD_FILES];

/* --- files --- */

bool pm_maps_path(int fd, char path[PATH_MAX])
{
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* Is it below this folder? */
static bool is_below(const char *path, const char *folder)
{
	char whole[PATH_MAX];
	if (!realpath(folder, whole))
		return false;
	size_t len = strlen(whole);
	return !strncmp(path, whole, len) && path[len] == '/';
}

/* The next of the names that PM has, at *at. False: there is none. */
static bool next_name(const char **at, char name[PATH_MAX])
{
	size_t len = strcspn(*at, ":");
	snprintf(name, PATH_MAX, "%.*s", (int)len, *at);
	*at += len + ((*at)[len] == ':');
	return len > 0;
}

static const char *names_of_pm(void)
{
	const char *names = getenv(RECORD_PM_VARIABLE);
	return names ? names : "";
}

/* Is the file one of those that were named as PM? They may not have been there at the beginning. */
static bool is_named(const char *path, const struct stat *st)
{
	const char *at = names_of_pm();
	char name[PATH_MAX];
	while (next_name(&at, name)) {
		struct stat named;
		if (!strcmp(name, RECORD_PM_REGISTERED) || stat(name, &named))
			continue;
		if (named.st_ino == st->st_ino && named.st_dev == st->st_dev)
			return true;
		if (S_ISDIR(named.st_mode) && is_below(path, name))
			return true;
	}
	return false;
}

static int find_file(const struct stat *st)
{
	for (unsigned i = 0; i < recorder->files; i++)
		if (recorder->file[i].device == st->st_dev && recorder->file[i].inode == st->st_ino)
			return (int)i;
	return -1;
}

int pm_maps_file(int fd)
{
	struct stat st;
	return recorder && !fstat(fd, &st) ? find_file(&st) : -1;
}

/* Is a recorded file in this folder? Their paths are not known here, but their names are. */
static bool may_have_files(const char *folder)
{
	const char *at = names_of_pm();
	char name[PATH_MAX], whole[PATH_MAX];
	while (next_name(&at, name))
		if (realpath(name, whole) &&
		    (!strcmp(whole, folder) || is_below(folder, whole) || is_below(whole, folder)))
			return true;
	return false;
}

enum record_kind pm_maps_change_of(const struct stat *st, const char *path)
{
	bool recorded = S_ISDIR(st->st_mode) ? may_have_files(path) : find_file(st) >= 0;
	return recorded		    ? RECORD_UNSEEN_NAME
	       : is_named(path, st) ? RECORD_UNSEEN_OTHER
				    : RECORD_UNFINISHED;
}

uint64_t pm_maps_keep(const struct stat *st, uint64_t len)
{
	int file = find_file(st);
	if (file < 0)
		return UINT64_MAX;
	uint64_t kept = recorder->file[file].kept;
	recorder->file[file].kept = len;
	return kept;
}

/* Map the shadow as long as the file is now. */
static bool map_shadow(unsigned file)
{
	struct shadow *s = &shadow[file];
	uint64_t size = recorder->file[file].size;
	char path[PATH_MAX];
	if (s->size >= size)
		return true;
	if (s->bytes)
		syscall(SYS_munmap, s->bytes, s->size);
	*s = (struct shadow){0};
	const char *folder = getenv(RECORD_SHADOW_VARIABLE);
	snprintf(path, sizeof(path), "%s/%u", folder ? folder : "", file);
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	long at = -1;
	if (!syscall(SYS_ftruncate, fd, size))
		at = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	syscall(SYS_close, fd);
	if (at == -1)
		return false;
	*s = (struct shadow){(uint8_t *)at, size};
	return true;
}

static bool is_zero(const uint8_t *at, size_t len)
{
	static const uint8_t zeros[PAGE];
	return !memcmp(at, zeros, len);
}

/* What was in a part of a file before anything was recorded; it may be stored to meanwhile. A page
 * of zeros is not touched in the shadow, and takes no memory there. */
static void know_before(unsigned file, uint64_t off, const uint8_t *bytes, size_t len)
{
	uint8_t *known = shadow[file].bytes + off;
	for (size_t at = 0, n; at < len; at += n) {
		n = len - at < PAGE ? len - at : PAGE;
		if (is_zero(bytes + at, n))
			continue;
		memcpy(known + at, bytes + at, n);
		recorder_add(RECORD_BEFORE, file, off + at, known + at, (uint32_t)n, 0);
	}
}

/* The same file, with a place of its own where it is read; or -1. */
static int open_again(int fd)
{
	char name[40];
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
}

/* What is in it from `from` on, but for its holes. */
static void read_before(int fd, unsigned file, uint64_t from)
{
	static uint8_t bytes[READ_ROOM]; /* under the lock */
	int again = open_again(fd);
	for (uint64_t at = from, end = shadow[file].size, n; at < end; at += n) {
		off_t data = again < 0 ? -1 : lseek(again, (off_t)at, SEEK_DATA);
		if (data < 0 && again >= 0 && errno == ENXIO)
			break;
		at = data > (off_t)at ? (uint64_t)data : at;
		if (at >= end)
			break;
		n = end - at < READ_ROOM ? end - at : READ_ROOM;
		ssize_t got = pread(fd, bytes, n, (off_t)at);
		if (got <= 0)
			break;
		n = (uint64_t)got;
		know_before(file, at, bytes, n);
	}
	if (again >= 0)
		syscall(SYS_close, again);
}

/* The number of memory without a file. -1: there is no room. */
static int take_memory(const uint8_t *at, size_t len)
{
	static uint32_t regions;
	char name[64];
	if (recorder->files == RECORD_FILES)
		return -1;
	unsigned file = recorder->files++;
	recorder->file[file] = (struct record_file){.device = UINT64_MAX,
						    .inode = (uint64_t)getpid() << 32 | regions,
						    .size = len,
						    .kept = UINT64_MAX};
	int n = snprintf(name, sizeof(name), "mr.%d.%u", (int)getpid(), regions++);
	recorder_add(RECORD_FILE, file, len, name, (uint32_t)n, 0);
	if (!map_shadow(file))
		return -1;
	know_before(file, 0, at, len);
	return (int)file;
}

/* The file's number, a new one if it is new, with a shadow of `size` bytes; *was: so many of these
 * were known before. -1: there is no room. */
static int take_file(int fd, const char *path, const struct stat *st, uint64_t size, uint64_t *was)
{
	int file = find_file(st);
	if (file < 0 && recorder->files == RECORD_FILES)
		return -1;
	if (file < 0) {
		file = (int)recorder->files++;
		recorder->file[file] = (struct record_file){
			.device = st->st_dev, .inode = st->st_ino, .kept = UINT64_MAX};
	}
	*was = recorder->file[file].size;
	if (size > *was) {
		recorder->file[file].size = size;
		recorder_add(RECORD_FILE, (unsigned)file, size, path, (uint32_t)strlen(path), 0);
	}
	if (!map_shadow((unsigned)file))
		return -1;
	if (size > *was)
		read_before(fd, (unsigned)file, *was);
	return file;
}

/* --- what has changed --- */

struct scan {
	const struct mapping *m;
	uint32_t source;
	enum record_kind kind;
};

static uint64_t word_at(const uint8_t *bytes, unsigned n)
{
	uint64_t word;
	memcpy(&word, bytes + (size_t)n * WORD, WORD);
	return word;
}

/* What has changed of a line: bytes [*first, *end), whole words, as they are stored. False: nothing
 * has. */
static bool line_change(const uint8_t *now, const uint8_t *known, size_t *first, size_t *end)
{
	unsigned from = 0, to = LINE / WORD;
	while (from < to && word_at(now, from) == word_at(known, from))
		from++;
	while (to > from && word_at(now, to - 1) == word_at(known, to - 1))
		to--;
	*first = (size_t)from * WORD;
	*end = (size_t)to * WORD;
	return from < to;
}

/* Bytes [begin, end) of what is `now` at `off` have changed. */
static bool take_change(const struct scan *s, uint64_t off, const uint8_t *now, size_t begin,
			size_t end)
{
	if (begin == end)
		return false;
	recorder_add(s->kind, s->m->file, off + begin, now + begin, (uint32_t)(end - begin),
		     s->source);
	recorder->unordered += s->kind != RECORD_CALL_STORE && end - begin > WORD;
	memcpy(shadow[s->m->file].bytes + off + begin, now + begin, end - begin);
	return true;
}

/* All changes in one line are one store; stores to adjacent bytes share a record. */
static bool take_changes(const struct scan *s, uint64_t off, const uint8_t *now, size_t len)
{
	const uint8_t *known = shadow[s->m->file].bytes + off;
	size_t begin = 0, end = 0, first, line_end;
	bool changed = false;
	for (size_t l = 0; l < len; l += LINE) {
		if (!line_change(now + l, known + l, &first, &line_end))
			continue;
		if (l + first != end) {
			changed |= take_change(s, off, now, begin, end);
			begin = l + first;
		}
		end = l + line_end;
	}
	return take_change(s, off, now, begin, end) || changed;
}

/* Other threads may store meanwhile: each line is read once, before the clock. True: something has
 * changed. */
static bool compare(void *arg, uint8_t *at, size_t len)
{
	static uint8_t now[PAGE]; /* under the lock */
	const struct scan *s = arg;
	uint64_t off = s->m->offset + (uint64_t)(at - s->m->at);
	const uint8_t *known = shadow[s->m->file].bytes + off;
	bool changed = false;
	for (size_t page = 0; page < len; page += PAGE) {
		size_t n = len - page < PAGE ? len - page : PAGE;
		if (!memcmp(at + page, known + page, n))
			continue;
		memcpy(now, at + page, n);
		recorder_noticed();
		changed |= take_changes(s, off + page, now, n);
	}
	return changed;
}

/* Length of a mapping that is in the file: an access beyond that is an error. */
static size_t accessible(const struct mapping *m)
{
	uint64_t size = shadow[m->file].size, kept = recorder->file[m->file].kept;
	size = size < kept ? size : kept;
	return m->offset + m->len <= size ? m->len : size > m->offset ? size - m->offset : 0;
}

static bool all_told;

void pm_maps_told(bool told)
{
	all_told = told;
}

void pm_maps_scan(uint32_t source)
{
	long faults = -1; /* they are counted once for all mappings */
	if (all_told)
		return;
	for (unsigned i = 0; i < mappings; i++) {
		struct mapping *m = &mapping[i];
		struct scan s = {m, source, RECORD_STORE};
		size_t len = m->constant ? 0 : accessible(m);
		if (m->watched && len) {
			faults = faults < 0 ? written_faults() : faults;
			written_look(&m->written, m->at, len, faults, compare, &s);
		} else {
			compare(&s, m->at, len);
		}
	}
	recorder->scans++;
}

/* What a range has of a mapping that is in its file: [*from, *end). False: nothing. */
static bool clip(const struct mapping *m, uint8_t **from, uint8_t **end)
{
	uint8_t *whole = m->at + accessible(m);
	*from = *from > m->at ? *from : m->at;
	*end = *end < whole ? *end : whole;
	return *from < *end;
}

void pm_maps_look(const void *range, size_t len, uint32_t source, enum record_kind kind)
{
	uintptr_t begin = (uintptr_t)range / LINE * LINE,
		  last = ((uintptr_t)range + len + LINE - 1) / LINE * LINE;
	if (all_told)
		return;
	for (unsigned i = 0; i < mappings; i++) {
		struct scan s = {&mapping[i], source, kind};
		uint8_t *from = (uint8_t *)begin, *end = (uint8_t *)last;
		if (!mapping[i].constant && clip(&mapping[i], &from, &end) &&
		    compare(&s, from, (size_t)(end - from)))
			written_changed(&mapping[i].written, from);
	}
}

/* --- mappings --- */

bool pm_maps_any(void)
{
	return mappings > 0;
}

bool pm_maps_all(void)
{
	uint32_t seen = 0;
	_Static_assert(RECORD_FILES < 32, "a bit for each");
	for (unsigned i = 0; i < mappings; i++)
		seen |= 1u << mapping[i].file;
	return seen == (1u << recorder->files) - 1;
}

static const struct mapping *mapping_of(const void *at)
{
	for (unsigned i = 0; i < mappings; i++)
		if ((uintptr_t)at - (uintptr_t)mapping[i].at < mapping[i].len)
			return &mapping[i];
	return NULL;
}

bool pm_maps_has(const void *at)
{
	return mapping_of(at) != NULL;
}

bool pm_maps_is_memory(const void *at)
{
	const struct mapping *m = mapping_of(at);
	return m && m->memory;
}

static void set_window(void)
{
	uintptr_t first = UINTPTR_MAX, end = 0;
	for (unsigned i = 0; i < mappings; i++) {
		uintptr_t at = (uintptr_t)mapping[i].at;
		first = at < first ? at : first;
		end = at + mapping[i].len > end ? at + mapping[i].len : end;
	}
	tidemark_record_window.first = mappings ? first : 0;
	tidemark_record_window.len = mappings ? end - first : 0;
}

static void watch(struct mapping *m)
{
	if (m->constant)
		return;
	/* The kernel looks at whole pages. */
	m->watched = (uintptr_t)m->at % PAGE == 0 && m->len % PAGE == 0 &&
		     written_watch(&m->written, m->at, m->len);
	uint32_t how = m->watched ? RECORD_STORES_WRITTEN : RECORD_STORES_COMPARED;
	if (recorder->stores < how)
		recorder->stores = how;
}

/* There is room. */
static const struct mapping *add_mapping(struct mapping m)
{
	mapping[mappings] = m;
	watch(&mapping[mappings]);
	mappings++;
	set_window();
	return &mapping[mappings - 1];
}

void pm_maps_add(int fd, uint8_t *at, size_t len, uint64_t offset)
{
	struct stat st;
	uint64_t known;
	char path[PATH_MAX];
	if (mappings == MAPPINGS || fstat(fd, &st) || !pm_maps_path(fd, path) ||
	    !is_named(path, &st))
		return;
	uint64_t size = offset + len;
	if (S_ISREG(st.st_mode) && size > (uint64_t)st.st_size)
		size = (uint64_t)st.st_size;
	size = size / LINE * LINE;
	recorder_takes_long();
	int file = size ? take_file(fd, path, &st, size, &known) : -1;
	if (file < 0)
		return;
	const struct mapping *m = add_mapping(
		(struct mapping){.at = at,
				 .len = (len + PAGE - 1) / PAGE * PAGE,
				 .offset = offset,
				 .file = (unsigned)file,
				 .constant = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY});
	/* What was done to the file in a way that is not seen here. */
	struct scan s = {m, call_site_name("write(), or a process that is not recorded"),
			 RECORD_STORE};
	size = accessible(m);
	known = known > offset ? known - offset : 0;
	compare(&s, m->at, known < size ? known : size);
}

static bool takes_memory(void)
{
	const char *at = names_of_pm();
	char name[PATH_MAX];
	while (next_name(&at, name))
		if (!strcmp(name, RECORD_PM_REGISTERED))
			return true;
	return false;
}

void pm_maps_add_memory(uint8_t *at, size_t len)
{
	/* Whole lines of it; other data in them are recorded, too. */
	uint8_t *begin = at - (uintptr_t)at % LINE;
	size_t size = (len + (size_t)(at - begin) + LINE - 1) / LINE * LINE;
	if (mappings == MAPPINGS || !len || pm_maps_has(at) || !takes_memory())
		return;
	recorder_takes_long();
	int file = take_memory(begin, size);
	if (file < 0)
		return;
	add_mapping(
		(struct mapping){.at = begin, .len = size, .file = (unsigned)file, .memory = true});
}

void pm_maps_remove(const uint8_t *at, size_t len)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < mappings; i++) {
		struct mapping m = mapping[i];
		uintptr_t from = (uintptr_t)m.at, end = from + m.len, cut = (uintptr_t)at,
			  cut_end = cut + len;
		if (cut >= end || cut_end <= from) {
			mapping[kept++] = m;
			continue;
		}
		/* What is left of it before, and after. */
		written_reset(&m.written);
		struct mapping rest = m;
		rest.at = m.at + (cut_end - from);
		rest.len = end - cut_end;
		rest.offset = m.offset + (cut_end - from);
		m.len = cut - from;
		if (cut_end < end && cut > from && mappings < MAPPINGS)
			mapping[mappings++] = rest;
		if (cut > from)
			mapping[kept++] = m;
		else if (cut_end < end)
			mapping[kept++] = rest;
	}
	mappings = kept;
	set_window();
}

void pm_maps_move(const uint8_t *at, size_t len, uint8_t *to, size_t new_len)
{
	struct mapping old = {0};
	for (unsigned i = 0; i < mappings; i++)
		if (mapping[i].at == at)
			old = mapping[i];
	pm_maps_remove(at, len);
	if (!old.len || mappings == MAPPINGS)
		return;
	/* What lies beyond the shadow is not known: a program that makes a pool longer maps it
	 * anew. */
	add_mapping((struct mapping){.at = to,
				     .len = (new_len + PAGE - 1) / PAGE * PAGE,
				     .offset = old.offset,
				     .file = old.file,
				     .constant = old.constant});
}

void pm_maps_parts(const void *range, size_t len, pm_part_fn *fn, void *arg)
{
	for (unsigned i = 0; i < mappings; i++) {
		const struct mapping *m = &mapping[i];
		uint8_t *from = (uint8_t *)(uintptr_t)range, *end = from + len;
		if (clip(m, &from, &end))
			fn(arg, m->file, m->offset + (uint64_t)(from - m->at), from,
			   (size_t)(end - from));
	}
}

void pm_maps_set(void *unused, unsigned file, uint64_t off, const uint8_t *bytes, size_t len)
{
	(void)unused;
	memcpy(shadow[file].bytes + off, bytes, len);
}

void pm_maps_known(const void *at, size_t len)
{
	pm_maps_parts(at, len, pm_maps_set, NULL);
}

bool pm_maps_differs(unsigned file, uint64_t off, const uint8_t *at, size_t len)
{
	return memcmp(shadow[file].bytes + off, at, len) != 0;
}

/* What has been stored until now comes before all that the child does. */
static void before_fork(void)
{
	if (!pm_maps_any() || !recorder_lock())
		return;
	pm_maps_scan(call_site_name("fork()"));
	recorder_unlock();
}

/* A child of fork() has its parent's mappings, and they are not watched. */
static void in_child(void)
{
	recorder_forked();
	own_flushes_forked();
	written_forget();
	for (unsigned i = 0; i < mappings; i++)
		watch(&mapping[i]);
}

__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(before_fork, NULL, in_child);
}
