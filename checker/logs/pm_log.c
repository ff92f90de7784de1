/* SPDX-License-Identifier: BSD-3-Clause */
/* See pm_log.h. */
#include "checker/logs/pm_log.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "core/array.h"
#include "core/text/regular.h"

const char *const pm_event_name[PM_EVENT_KINDS] = {
	"store",      "landing",     "flush", "fence",		 "msync",
	"RDMA FLUSH", "RDMA Commit", "READ",  "acknowledgement", "marker"};

/* --- memory --- */

int pm_log_open(struct pm_log *log)
{
	memset(log, 0, sizeof(*log));
	log->source_slots = 1024;
	log->source_slot = calloc(log->source_slots, sizeof(*log->source_slot));
	log->source_room = 64;
	log->source = calloc(log->source_room, sizeof(*log->source));
	if (log->source)
		log->source[log->sources++] = strdup("");
	if (log->source_slot && log->source && log->source[PM_NO_SOURCE])
		return 0;
	pm_log_close(log);
	return -ENOMEM;
}

void pm_log_close(struct pm_log *log)
{
	for (unsigned i = 0; i < log->sources; i++)
		free(log->source[i]);
	for (unsigned i = 0; i < log->files; i++) {
		free(log->file[i].name);
		pm_sparse_free(log->file[i].before, log->file[i].room);
		free(log->file[i].touched);
	}
	free(log->source);
	free(log->source_slot);
	free(log->place);
	free(log->event);
	free(log->call);
	free(log->unseen);
	free(log->bytes);
	free(log->markers);
	memset(log, 0, sizeof(*log));
}

/* --- sources --- */

static uint32_t *slot_of(const struct pm_log *log, const char *text, size_t len)
{
	uint64_t hash = XXH3_64bits(text, len);
	for (unsigned i = 0;; i++) {
		uint32_t *slot = &log->source_slot[(hash + i) & (log->source_slots - 1)];
		if (!*slot || (!strncmp(log->source[*slot], text, len) && !log->source[*slot][len]))
			return slot;
	}
}

static bool grow_sources(struct pm_log *log)
{
	if (!ARRAY_RESERVE(log->source, log->sources, 1, log->source_room))
		return false;
	if (log->sources * 2 < log->source_slots)
		return true;
	uint32_t *slots = calloc(log->source_slots * 2, sizeof(*slots));
	if (!slots)
		return false;
	free(log->source_slot);
	log->source_slot = slots;
	log->source_slots *= 2;
	for (uint32_t i = 1; i < log->sources; i++)
		*slot_of(log, log->source[i], strlen(log->source[i])) = i;
	return true;
}

uint32_t pm_log_find_source(const struct pm_log *log, const char *text, size_t len)
{
	return *slot_of(log, text, len);
}

uint32_t pm_log_source(struct pm_log *log, const char *text, size_t len)
{
	len = strnlen(text, len);
	if (!len || !grow_sources(log))
		return PM_NO_SOURCE;
	uint32_t *slot = slot_of(log, text, len);
	if (*slot)
		return *slot;
	char *copy = strndup(text, len);
	if (!copy)
		return PM_NO_SOURCE;
	*slot = log->sources;
	log->source[log->sources++] = copy;
	return *slot;
}

/* --- files of source --- */

static int compare_places(const void *a, const void *b)
{
	const struct pm_place *x = a, *y = b;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

/* A new source has the largest number, so that places stay sorted. */
int pm_log_add_place(struct pm_log *log, const char *frame, const char *path, const char *program)
{
	unsigned known = log->sources;
	struct pm_place place = {.frame = pm_log_source(log, frame, strlen(frame))};
	if (!place.frame)
		return -ENOMEM;
	if (place.frame < known)
		return 0;
	place.path = pm_log_source(log, path, strlen(path));
	place.program = pm_log_source(log, program, strlen(program));
	if (!place.path || !place.program ||
	    !ARRAY_RESERVE(log->place, log->places, 1, log->place_room))
		return -ENOMEM;
	assert(!log->places || log->place[log->places - 1].frame < place.frame);
	log->place[log->places++] = place;
	return 0;
}

const struct pm_place *pm_log_find_place(const struct pm_log *log, const char *frame, size_t len)
{
	const struct pm_place key = {.frame = *slot_of(log, frame, len)};
	return log->places ? bsearch(&key, log->place, log->places, sizeof(key), compare_places)
			   : NULL;
}

/* --- files --- */

int pm_log_file(struct pm_log *log, const char *name, uint64_t len)
{
	unsigned i = 0;
	uint64_t lines = (len + PM_LINE - 1) / PM_LINE;
	while (i < log->files && strcmp(log->file[i].name, name) != 0)
		i++;
	if (i == PM_FILES)
		return -ENOSPC;
	if (i == log->files) {
		log->file[i] = (struct pm_file){.name = strdup(name)};
		if (!log->file[i].name)
			return -ENOMEM;
		log->files++;
	}
	struct pm_file *file = &log->file[i];
	assert(!file->before);
	if (file->len < lines * PM_LINE)
		file->len = lines * PM_LINE;
	if (file->size < len)
		file->size = len;
	return (int)i;
}

void *pm_sparse_new(uint64_t bytes)
{
	void *at = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

void pm_sparse_free(void *at, uint64_t bytes)
{
	if (at)
		munmap(at, bytes ? bytes : 1);
}

static size_t touched_bytes(uint64_t room)
{
	return (size_t)(room / PM_PAGE / 8 + 1);
}

int pm_file_room(struct pm_file *f)
{
	const uint64_t had = f->before ? f->room : 0, room = f->len > had ? f->len : had;
	const size_t bits = touched_bytes(room), had_bits = f->touched ? touched_bytes(had) : 0;
	if (f->before && room == had)
		return 0;
	void *before = f->before ? mremap(f->before, had ? had : 1, room ? room : 1, MREMAP_MAYMOVE)
				 : pm_sparse_new(room);
	uint8_t *touched = realloc(f->touched, bits);
	if (touched) {
		memset(touched + had_bits, 0, bits - had_bits);
		f->touched = touched;
	}
	if (before && before != MAP_FAILED) {
		f->before = before;
		f->room = room;
	}
	return touched && before && before != MAP_FAILED ? 0 : -ENOMEM;
}

void pm_file_touch(struct pm_file *f, uint64_t at, uint64_t len)
{
	assert(at + len <= f->room);
	for (uint64_t page = at / PM_PAGE; len && page <= (at + len - 1) / PM_PAGE; page++)
		f->touched[page / 8] |= (uint8_t)(1u << page % 8);
}

static bool is_touched(const struct pm_file *f, uint64_t page)
{
	return f->touched[page / 8] & 1u << page % 8;
}

bool pm_file_run(const struct pm_file *f, uint64_t *at, uint64_t *n)
{
	const uint64_t pages = (f->len + PM_PAGE - 1) / PM_PAGE;
	uint64_t from = (*at + PM_PAGE - 1) / PM_PAGE;
	while (f->touched && from < pages && !is_touched(f, from))
		from = f->touched[from / 8] ? from + 1 : (from / 8 + 1) * 8;
	if (!f->touched || from >= pages)
		return false;
	uint64_t to = from;
	while (to < pages && is_touched(f, to))
		to++;
	*at = from * PM_PAGE;
	*n = (to * PM_PAGE < f->len ? to * PM_PAGE : f->len) - *at;
	return true;
}

static uint64_t memory_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* All that is there, and zeros behind it. */
static int read_file(struct pm_file *file, const char *path)
{
	struct stat st;
	int fd = regular_open(path);
	if (fd < 0)
		return fd;
	int error = fstat(fd, &st) ? -errno : 0;
	if (!error && (uint64_t)st.st_size > file->size) {
		file->size = (uint64_t)st.st_size;
		file->len = (file->size + PM_LINE - 1) / PM_LINE * PM_LINE;
	}
	if (!error && (uint64_t)st.st_blocks * 512 > memory_bytes())
		error = -EFBIG;
	error = error ? error : pm_file_room(file);
	for (off_t at = 0; !error;) {
		at = lseek(fd, at, SEEK_DATA);
		if (at < 0 && errno != ENXIO) /* the rest is a hole */
			error = -errno;
		if (at < 0)
			break;
		off_t end = lseek(fd, at, SEEK_HOLE);
		ssize_t n = pread(fd, file->before + at, (size_t)(end - at), at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			error = -errno;
		if (n <= 0)
			break;
		pm_file_touch(file, (uint64_t)at, (uint64_t)n);
		at += n;
	}
	close(fd);
	return error;
}

bool pm_log_fits(const struct pm_log *log)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < log->files; i++)
		for (uint64_t at = 0, n; pm_file_run(&log->file[i], &at, &n); at += n)
			bytes += n;
	return bytes <= memory_bytes();
}

/* Is all that is stored in a file there already? `after`: room for as much as it has. */
static bool is_stored(const struct pm_log *log, unsigned file, uint8_t *after)
{
	const struct pm_file *f = &log->file[file];
	bool any = false;
	for (uint64_t at = 0, n; pm_file_run(f, &at, &n); at += n)
		memcpy(after + at, f->before + at, n);
	for (size_t i = 0; i < log->events; i++) {
		const struct pm_event *e = &log->event[i];
		if (e->file != file || !pm_event_writes(e))
			continue;
		any = true;
		memcpy(after + e->off, log->bytes + e->data, e->len);
	}
	for (uint64_t at = 0, n; any && pm_file_run(f, &at, &n); at += n)
		any = !memcmp(after + at, f->before + at, n);
	return any;
}

static void find_begins_last(struct pm_log *log)
{
	for (unsigned i = 0; i < log->files && !log->begins_last; i++) {
		uint8_t *after = pm_sparse_new(log->file[i].len);
		log->begins_last = after && is_stored(log, i, after);
		pm_sparse_free(after, log->file[i].len);
	}
}

int pm_log_read_files(struct pm_log *log, const char *copy, const char **which)
{
	int error = 0;
	bool read = false;
	for (unsigned i = 0; i < log->files && !error; i++) {
		struct pm_file *file = &log->file[i];
		*which = copy ? copy : file->name;
		if (file->before)
			continue;
		if (copy && !strcmp(copy, "zero")) {
			error = pm_file_room(file);
			continue;
		}
		error = read_file(file, *which);
		read = true;
	}
	for (size_t i = 0; i < log->events && !error; i++) {
		const struct pm_event *e = &log->event[i];
		if (pm_event_writes(e))
			pm_file_touch(&log->file[e->file], e->off, e->len);
	}
	if (read && !error)
		find_begins_last(log);
	return error;
}

/* --- events --- */

static int add(struct pm_log *log, const struct pm_event *event, const uint8_t *data)
{
	if (!ARRAY_RESERVE(log->event, log->events, 1, log->event_room) ||
	    (data && !ARRAY_RESERVE(log->bytes, log->bytes_n, event->len, log->bytes_room)))
		return -ENOMEM;
	struct pm_event *e = &log->event[log->events++];
	*e = *event;
	if (data) {
		if (log->file[e->file].touched)
			pm_file_touch(&log->file[e->file], e->off, e->len);
		e->data = log->bytes_n;
		memcpy(log->bytes + log->bytes_n, data, event->len);
		log->bytes_n += event->len;
	}
	return 0;
}

static int add_mark(struct pm_log *log, const struct pm_event *event)
{
	const char *name = log->source[event->source];
	size_t len = strlen(name), between = log->markers_n > 0;
	struct pm_event mark = *event;
	/* One more, so that there is an array for a marker without a name, too. */
	if (!ARRAY_RESERVE(log->markers, log->markers_n, between + len + 1, log->markers_room))
		return -ENOMEM;
	if (between)
		log->markers[log->markers_n++] = '|';
	memcpy(log->markers + log->markers_n, name, len);
	mark.data = log->markers_n += len;
	return add(log, &mark, NULL);
}

int pm_log_add_unseen(struct pm_log *log, const struct pm_unseen *unseen)
{
	/* Each process that runs the program says so. */
	for (size_t i = 0; i < log->unseens && unseen->kind <= PM_UNSEEN_FENCE; i++)
		if (log->unseen[i].name == unseen->name && log->unseen[i].source == unseen->source)
			return 0;
	if (!ARRAY_RESERVE(log->unseen, log->unseens, 1, log->unseen_room))
		return -ENOMEM;
	log->unseen[log->unseens++] = *unseen;
	return 0;
}

const struct pm_unseen *pm_log_unseen(const struct pm_log *log, enum pm_unseen_kind kind)
{
	for (size_t i = 0; i < log->unseens; i++)
		if (log->unseen[i].kind == kind)
			return &log->unseen[i];
	return NULL;
}

int pm_log_add(struct pm_log *log, const struct pm_event *event, const uint8_t *data)
{
	int error = 0;
	assert(event->kind < PM_EVENT_KINDS && pm_event_writes(event) == (data != NULL));
	log->has_flush |= event->kind == PM_FLUSH || event->kind == PM_SYNC ||
			  event->kind == PM_RDMA_FLUSH || event->kind == PM_COMMIT;
	log->acks += event->kind == PM_ACK;
	if (event->kind == PM_MARK)
		return add_mark(log, event);
	if (!pm_event_writes(event))
		return add(log, event, NULL);
	assert(event->file < log->files && event->off + event->len <= log->file[event->file].len);
	struct pm_event part = *event;
	for (uint32_t at = 0; at < event->len && !error; at += part.len) {
		part.part = at > 0 && !event->noticed;
		part.off = event->off + at;
		part.len = PM_LINE - (uint32_t)(part.off % PM_LINE);
		if (part.len > event->len - at)
			part.len = event->len - at;
		error = add(log, &part, data + at);
	}
	return error;
}

int pm_log_add_call(struct pm_log *log, uint64_t client, bool returns, const char *words,
		    size_t len, uint32_t line)
{
	uint32_t source = pm_log_source(log, words, len);
	if ((len && !source) || !ARRAY_RESERVE(log->call, log->calls, 1, log->call_room))
		return -ENOMEM;
	log->call[log->calls++] = (struct pm_call){.client = client,
						   .event = log->events,
						   .words = source,
						   .line = line,
						   .returns = returns};
	return 0;
}

int pm_log_add_acks(struct pm_log *log, const uint64_t *ns, size_t n)
{
	struct pm_event *merged = malloc((log->events + n + 1) * sizeof(*merged));
	size_t at = 0, acks = 0;
	if (!merged)
		return -ENOMEM;
	for (size_t i = 0; i < log->events; i++) {
		while (acks < n && ns[acks] < log->event[i].ns)
			merged[at++] = (struct pm_event){.kind = PM_ACK, .ns = ns[acks++]};
		merged[at++] = log->event[i];
	}
	while (acks < n)
		merged[at++] = (struct pm_event){.kind = PM_ACK, .ns = ns[acks++]};
	free(log->event);
	log->event = merged;
	log->events = at;
	log->event_room = at + 1;
	log->acks += n;
	log->timed = true;
	return 0;
}
