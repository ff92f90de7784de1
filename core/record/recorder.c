/* SPDX-License-Identifier: BSD-3-Clause */
/* The recording: see format.h. */
#include "core/clock.h"
#include "core/record/recorder.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
/* This library is loaded into users' programs, and brings no other library along. */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "core/record/record.h"
#include "core/record/record_hooks.h"

#define PAGE 4096u
/* Bytes that are taken from the disk at a time: as many as there are, within these bounds. */
#define CHUNK_LEAST (256u << 10)
#define CHUNK_MOST  (8u << 20)
#define READY	    (128u << 10) /* bytes that are made accessible at a time */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

struct record_head *recorder;
static uint8_t *bytes; /* the same, as bytes */
static bool tried;

/* The calls below are raw: the functions of these names may be the recorder's own. An offset is a
 * long, since nobody widens it. */
static void *map_file(int fd, size_t len)
{
	long at = syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	return at == -1 ? MAP_FAILED : (void *)at;
}

/* The program may use PM before this library's constructor runs. */
static void open_recording(void)
{
	const char *path = getenv(RECORD_VARIABLE);
	struct stat st;
	tried = true;
	if (!path)
		return;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > RECORD_HEAD) {
		void *at = map_file(fd, (size_t)st.st_size);
		const struct record_head *head = at;
		if (at != MAP_FAILED && !memcmp(head->magic, RECORD_MAGIC, sizeof(head->magic)) &&
		    head->room == (uint64_t)st.st_size) {
			recorder = at;
			bytes = at;
		}
	}
	syscall(SYS_close, fd);
}

/* Which thread holds the lock: what it calls is not recorded once more. */
static _Thread_local bool inside;

/* Functions of the program's objects that tell of their stores. */
#define SETTLERS 16
static _Atomic(void (*)(void)) settler[SETTLERS];

RECORD_EXPORT void tidemark_record_settles(void (*settle)(void))
{
	for (unsigned i = 0; i < SETTLERS; i++) {
		void (*was)(void) = NULL;
		if (atomic_compare_exchange_strong(&settler[i], &was, settle) || was == settle)
			return;
	}
}

static void settle_stores(void)
{
	for (unsigned i = 0; i < SETTLERS && settler[i]; i++)
		settler[i]();
}

/*
 * What is only said at the end may be a sample: reading the clock twice takes as long as the rest
 * of a flush. Long work is measured each time. Under the lock.
 */
#define SAMPLE 13	       /* no multiple of what comes in a program's loops */
static uint64_t measured_from; /* 0: it is not measured */
static unsigned measured_for;  /* so many of its kind */

static void measure(unsigned n)
{
	measured_from = clock_ns();
	measured_for = n;
}

void recorder_takes_long(void)
{
	measure(1);
}

static uint64_t event_ns; /* when; 0: the clock was not asked since the lock was taken */

/* What the program tells of was done before, and comes before answers that are announced. */
static bool lock_first(void)
{
	static unsigned locks;
	if (!tried)
		open_recording();
	if (!recorder || inside || recorder->full || recorder->ended)
		return false;
	/* This thread's last store comes before what it does now. */
	settle_stores();
	inside = true;
	/* A process that was killed with the lock has left at most an unfinished record. */
	if (pthread_mutex_lock(&recorder->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&recorder->lock);
	event_ns = 0;
	if (++locks % SAMPLE == 0)
		measure(SAMPLE);
	announced_begin();
	pm_maps_told(told_take());
	return true;
}

bool recorder_lock(void)
{
	bool locked = lock_first();
	if (locked)
		announced_take();
	return locked;
}

void recorder_unlock(void)
{
	if (measured_from)
		recorder->busy_ns += (clock_ns() - measured_from) * measured_for;
	measured_from = 0;
	pthread_mutex_unlock(&recorder->lock);
	inside = false;
}

/* Take room from the disk, up to `end`. */
static bool take_room(int fd, uint64_t end)
{
	end = end < recorder->room ? end : recorder->room;
	if (fallocate(fd, 0, (off_t)recorder->allocated, (off_t)(end - recorder->allocated)))
		return false;
	recorder->allocated = end;
	return true;
}

/* Room on the disk: a write to a page of a file that finds none ends the process. On a disk that is
 * nearly full the last pages are taken one by one. */
static bool allocate(uint64_t end)
{
	if (end <= recorder->allocated)
		return true;
	const char *path = getenv(RECORD_VARIABLE);
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path ? path : "", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	uint64_t chunk = recorder->allocated < CHUNK_LEAST ? CHUNK_LEAST : recorder->allocated;
	chunk = chunk < CHUNK_MOST ? chunk : CHUNK_MOST;
	bool done = take_room(fd, recorder->allocated + chunk) ||
		    take_room(fd, (end + PAGE - 1) / PAGE * PAGE);
	syscall(SYS_close, fd);
	return done && end <= recorder->allocated;
}

/* Pages of the recording are made accessible many at a time: one by one each would be a page fault,
 * after which the kernel is asked for the pages of PM that were written. */
static uint64_t ready; /* up to here they are */

static void make_ready(uint64_t end)
{
	if (end <= ready)
		return;
	ready = (end + READY) / PAGE * PAGE;
	ready = ready < recorder->allocated ? ready : recorder->allocated;
	uint64_t from = end / PAGE * PAGE;
	if (ready > from)
		madvise(bytes + from, ready - from, MADV_POPULATE_WRITE); /* or it is done later */
	ready = ready > end ? ready : end;
}

static uint32_t own_process; /* 0: not asked yet */

static uint32_t process(void)
{
	if (!own_process)
		own_process = (uint32_t)syscall(SYS_getpid);
	return own_process;
}

void recorder_forked(void)
{
	own_process = 0;
	ready = 0;
}

/* What is noticed may have been stored just now, by another thread; a flush and a fence take effect
 * after all this, and need not ask the clock again. */
static bool is_timed(enum record_kind kind)
{
	return kind == RECORD_STORE || kind == RECORD_STORE_NT || kind == RECORD_FLUSH ||
	       kind == RECORD_FLUSH_NT || kind == RECORD_FENCE;
}

void recorder_noticed(void)
{
	event_ns = clock_ns();
}

static void put_record(enum record_kind kind, uint32_t file, uint64_t off, const void *payload,
		       uint32_t len, uint32_t source, uint32_t thread, uint32_t message)
{
	uint64_t need = sizeof(struct record) + (payload ? (len + 7ull) / 8 * 8 : 0);
	uint64_t at = recorder->used;
	if (recorder->full || recorder->ended || at + need > recorder->room ||
	    !allocate(at + need)) {
		recorder->full = 1;
		return;
	}
	make_ready(at + need);
	struct record *r = (struct record *)(void *)(bytes + at);
	r->bytes = (uint32_t)need;
	r->off = off;
	if (!event_ns || !is_timed(kind))
		recorder_noticed();
	r->ns = event_ns;
	r->len = len;
	r->thread = thread;
	r->source = source;
	r->file = file;
	r->process = process();
	r->message = message;
	if (payload)
		memcpy(r->payload, payload, len);
	atomic_store_explicit(&recorder->used, at + need, memory_order_relaxed);
	atomic_store_explicit(&r->kind, kind, memory_order_release);
}

static uint32_t own_thread(void)
{
	static _Thread_local uint32_t thread, of;
	if (!thread || of != process()) {
		thread = (uint32_t)syscall(SYS_gettid);
		of = process();
	}
	return thread;
}

/* What is recorded changes no more, whichever process recorded it: a checksum of the last block. */
void recorder_add_of(enum record_kind kind, uint32_t file, uint64_t off, const void *payload,
		     uint32_t len, uint32_t source, uint32_t thread, uint32_t message)
{
	uint64_t from = recorder->summed, end = recorder->used;
	thread = thread ? thread : own_thread();
	if (end - from >= RECORD_BLOCK) {
		const uint64_t sum = RECORD_CHECKSUM(bytes + from, end - from);
		put_record(RECORD_SUM, 0, from, &sum, sizeof(sum), 0, thread, 0);
		recorder->summed = end;
	}
	put_record(kind, file, off, payload, len, source, thread, message);
}

void recorder_add(enum record_kind kind, unsigned file, uint64_t off, const void *payload,
		  uint32_t len, uint32_t source)
{
	recorder_add_of(kind, file, off, payload, len, source, 0, 0);
}

void recorder_add_unseen(enum record_kind kind, uint64_t off, const char *name, uint32_t source)
{
	recorder->unseen_kind[kind - RECORD_UNSEEN_FLUSH]++;
	recorder_add(kind, 0, off, name, (uint32_t)strlen(name), source);
}

/* The lock, and the number of the place. */
static bool begin_event(const void *caller, uint32_t *source)
{
	struct call_site site;
	call_site_find(&site, caller, true);
	if (!recorder_lock())
		return false;
	*source = call_site_number(&site);
	return true;
}

bool recorder_happens(const void *caller, uint32_t *source)
{
	bool begun = begin_event(caller, source);
	if (begun)
		pm_maps_scan(*source);
	return begun;
}

bool recorder_event(const void *caller, uint32_t *source)
{
	return pm_maps_any() && recorder_happens(caller, source);
}

bool recorder_begins(void)
{
	if (!tried)
		open_recording();
	return recorder && recorder->files;
}

static bool begin_range(const void *at, size_t len, const void *caller, uint32_t *source,
			enum record_kind stores)
{
	bool begun = pm_maps_has(at) && begin_event(caller, source);
	if (begun)
		pm_maps_look(at, len, *source, stores);
	return begun;
}

bool recorder_flushes(const void *at, size_t len, const void *caller, uint32_t *source)
{
	return begin_range(at, len, caller, source, RECORD_STORE);
}

bool recorder_copied(const void *at, size_t len, const void *caller, uint32_t *source)
{
	return begin_range(at, len, caller, source, RECORD_STORE_NT);
}

struct range {
	enum record_kind kind;
	uint32_t source, thread, message;
	bool has_content;
	bool any; /* a part of it is PM */
};

#define RANGE_MAX (1u << 30) /* bytes: a record's length has 32 bits */

static void add_part(void *arg, unsigned file, uint64_t off, const uint8_t *at, size_t len)
{
	struct range *r = arg;
	r->any = true;
	for (size_t done = 0, n; done < len; done += n) {
		n = len - done < RANGE_MAX ? len - done : RANGE_MAX;
		recorder_add_of(r->kind, file, off + done, r->has_content ? at + done : NULL,
				(uint32_t)n, r->source, r->thread, r->message);
	}
}

void recorder_add_range(enum record_kind kind, const void *at, size_t len, uint32_t source)
{
	struct range r = {.kind = kind, .source = source};
	pm_maps_parts(at, len, add_part, &r);
}

/* --- calls of programs that tell of their stores --- */

RECORD_EXPORT struct record_window tidemark_record_window;

/* In words, as the memory may tear wider stores. What is known already is no change. */
static void add_store(void *arg, unsigned file, uint64_t off, const uint8_t *at, size_t len)
{
	const struct call_site *site = arg;
	for (size_t done = 0, n; done < len; done += n) {
		n = 8 - (off + done) % 8;
		n = n < len - done ? n : len - done;
		if (pm_maps_differs(file, off + done, at + done, n))
			recorder_add(RECORD_EXACT, file, off + done, at + done, (uint32_t)n,
				     site->number);
	}
}

RECORD_EXPORT void tidemark_record_stored(const void *at, size_t len, const void *pc)
{
	struct call_site site;
	if (!pm_maps_has(at))
		return;
	call_site_find(&site, pc, false);
	if (!lock_first())
		return;
	recorder->exact++;
	call_site_number(&site);
	pm_maps_parts(at, len, add_store, &site);
	pm_maps_known(at, len);
	announced_take();
	recorder_unlock();
}

RECORD_EXPORT void tidemark_record_stores(const void *at, size_t len, const void *pc)
{
	uint32_t source;
	if (recorder_flushes(at, len, pc, &source))
		recorder_unlock();
}

/* What a call stores may be less than it could; what is looked at beforehand has a bound. */
bool recorder_call_begins(const void *at, size_t len, const void *caller)
{
	uint32_t source;
	len = len < PAGE ? len : PAGE;
	if ((uintptr_t)at - tidemark_record_window.first >= tidemark_record_window.len ||
	    !call_site_tells(caller) || !recorder_flushes(at, len, caller, &source))
		return false;
	recorder_unlock();
	return true;
}

void recorder_call_ends(const void *at, size_t len, const void *caller)
{
	uint32_t source;
	if (!begin_range(at, len, caller, &source, RECORD_CALL_STORE))
		return;
	recorder->exact++;
	recorder_unlock();
}

/* --- record.h --- */

/* A name is one token of a log. */
RECORD_EXPORT void tidemark_recorder_mark(const char *name)
{
	uint32_t source;
	size_t len = strcspn(name, "|;\n");
	if (!len || len > NAME_MAX || !recorder_event(__builtin_return_address(0), &source))
		return;
	recorder_add(RECORD_MARK, 0, 0, name, (uint32_t)len, 0);
	recorder_unlock();
}

RECORD_EXPORT void tidemark_recorder_ack(void)
{
	recorder_acknowledges(__builtin_return_address(0));
}

/* --- what the soft RNIC calls --- */

static void registered(const void *at, size_t len)
{
	if (!recorder_lock())
		return;
	pm_maps_add_memory((uint8_t *)(uintptr_t)at, len);
	recorder_unlock();
	if (pm_maps_any())
		own_flushes_look();
}

static void deregistered(const void *at, size_t len)
{
	if (!pm_maps_is_memory(at) || !recorder_lock())
		return;
	pm_maps_scan(call_site_name("ibv_dereg_mr()"));
	pm_maps_remove(at, len);
	recorder_unlock();
}

/* What CPUs have stored until now comes before the landing. */
static void before_landing(const void *at, size_t len)
{
	if (!pm_maps_has(at) || !recorder_lock())
		return;
	pm_maps_scan(call_site_name("a landing"));
	told_landing(at, len);
	recorder_unlock();
}

/* Under the RNIC's lock, as all that it calls: queue pairs that have landed something since a READ
 * of theirs. Where two share a place, all their READs are recorded. */
#define LANDERS 256
#define SHARED	UINT32_MAX
static uint32_t lander[LANDERS];

static void landed(const void *at, size_t len, enum record_landing how, uint32_t qp,
		   uint32_t message)
{
	static const struct {
		enum record_kind kind;
		const char *what;
	} landing[] = {[LANDED_WRITE] = {RECORD_LAND, "RDMA WRITE or atomic"},
		       [LANDED_SEND] = {RECORD_LAND_SEND, "data of a SEND"},
		       [LANDED_READ] = {RECORD_LAND, "answer to a READ or an atomic"},
		       [LANDED_WORD] = {RECORD_LAND_WORD, "payload of an RDMA Commit"}};
	struct range r = {.kind = landing[how].kind,
			  .thread = RECORD_RNIC | qp,
			  .message = message,
			  .has_content = true};
	if (!pm_maps_has(at) || !recorder_lock())
		return;
	r.source = call_site_name(landing[how].what);
	told_landing(NULL, 0);
	pm_maps_known(at, len);
	pm_maps_parts(at, len, add_part, &r);
	uint32_t *by = &lander[qp % LANDERS];
	*by = !*by || *by == qp ? qp : SHARED;
	recorder_unlock();
}

static void made_durable(enum record_kind kind, const char *what, const void *at, size_t len,
			 uint32_t qp)
{
	struct range r = {.kind = kind, .thread = RECORD_RNIC | qp};
	/* A FLUSH of anything concerns what SENDs have left. */
	bool anything = kind == RECORD_RDMA_FLUSH && lander[qp % LANDERS];
	if ((!pm_maps_has(at) && !anything) || !recorder_lock())
		return;
	r.source = call_site_name(what);
	pm_maps_scan(r.source);
	pm_maps_parts(at, len, add_part, &r);
	if (anything && !r.any)
		recorder_add_of(r.kind, 0, 0, NULL, 0, r.source, r.thread, 0);
	recorder_unlock();
}

static void flushed(const void *at, size_t len, uint32_t qp)
{
	made_durable(RECORD_RDMA_FLUSH, "RDMA FLUSH", at, len, qp);
}

static void committed(const void *at, size_t len, uint32_t qp)
{
	made_durable(RECORD_COMMIT, "RDMA Commit", at, len, qp);
}

/* The first of many READs in a row says it all. */
static void pushed(uint32_t qp)
{
	uint32_t *by = &lander[qp % LANDERS];
	if (!*by || !recorder_lock())
		return;
	if (*by == qp)
		*by = 0;
	recorder_add_of(RECORD_PUSH, 0, 0, NULL, 0, call_site_name("READ"), RECORD_RNIC | qp, 0);
	recorder_unlock();
}

void recorder_acknowledges(const void *caller)
{
	uint32_t source;
	if (!recorder_event(caller, &source))
		return;
	recorder_add(RECORD_ACK, 0, 0, NULL, 0, source);
	recorder_unlock();
}

RECORD_EXPORT const struct record_hooks tidemark_record_hooks = {
	.registered = registered,
	.deregistered = deregistered,
	.before_landing = before_landing,
	.landed = landed,
	.flushed = flushed,
	.committed = committed,
	.pushed = pushed,
	.acknowledges = recorder_acknowledges,
};
