/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RECORD_RECORDER_H
#define TM_RECORD_RECORDER_H
/*
 * What the library's files share (libtidemark-record.so, which `tidemark record` puts before a
 * program). It takes the place of functions of libc and libpmem, calls the real ones, and writes
 * down what happens to the files that are PM.
 *
 *	recorder.c	the recording, and its records
 *	pm_maps.c	where PM is mapped, and what the CPUs have stored there
 *	written.c	which pages were written, as the kernel says
 *	alone.c		whether a thread is the only one
 *	call_site.c	where in the program a call is
 *	own_flushes.c	which flushes are the program's own instructions, and which are not seen
 *	traps.c		those that are, while they run
 *	told.c		what the Valgrind tool tells, if the program runs under it
 *	announced.c	what clients say of their operations
 *	libc_calls.c, libc_writes.c, name_calls.c, libpmem_calls.c, libpmem2_calls.c
 *			the functions that are replaced
 *	record_hooks.h	what the soft RNIC calls
 *
 * None of them asserts anything: the library runs inside programs of others, and must neither end
 * these nor write to their output. What it finds wrong ends the recording, or is left out of it.
 */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include "core/record/format.h"

#define RECORD_EXPORT __attribute__((visibility("default")))

/* --- recorder.c: under the lock --- */

/* NULL: nothing is recorded. */
extern struct record_head *recorder;
bool recorder_lock(void); /* false: nothing is recorded (any more) */
void recorder_unlock(void);
/* What is done now may take long. With the lock. */
void recorder_takes_long(void);
/* In a child of fork(). */
void recorder_forked(void);
/* The program at `caller` is about to do something that is an event: what its CPUs have stored
 * until now is recorded, and *source is its place. True: with the lock. False: nothing is recorded.
 */
bool recorder_event(const void *caller, uint32_t *source);
/* The same of a process that need not have PM mapped. */
bool recorder_happens(const void *caller, uint32_t *source);
/* Is there a recording, and a file in it? A first look, without the lock. */
bool recorder_begins(void);
/* The same of a flush: only what has been stored in its lines counts, for other stores may as well
 * be later ones. */
bool recorder_flushes(const void *at, size_t len, const void *caller, uint32_t *source);
/* The same of a copy that was made by non-temporal stores. */
bool recorder_copied(const void *at, size_t len, const void *caller, uint32_t *source);
/* The program at `caller` is about to call something that stores up to `len` bytes from `at` on. If
 * its code tells of its stores, what was stored there before is recorded. False: it does not tell,
 * or that is no PM, and what the call stores is noticed. Without the lock. */
bool recorder_call_begins(const void *at, size_t len, const void *caller);
/* It has. */
void recorder_call_ends(const void *at, size_t len, const void *caller);
/* The parts of [at, at+len) that are PM, a record without content for each. With the lock. */
void recorder_add_range(enum record_kind kind, const void *at, size_t len, uint32_t source);
/* The stores that are recorded next have just been noticed. */
void recorder_noticed(void);
/* Add a record. `payload` NULL: `len` says how long a range is. */
void recorder_add(enum record_kind kind, unsigned file, uint64_t off, const void *payload,
		  uint32_t len, uint32_t source);
/* The same of a thread that need not be this one; 0: this one. */
void recorder_add_of(enum record_kind kind, uint32_t file, uint64_t off, const void *payload,
		     uint32_t len, uint32_t source, uint32_t thread, uint32_t message);
/* Something that the program has or does, and that is not recorded: RECORD_UNSEEN_FLUSH and so on.
 */
void recorder_add_unseen(enum record_kind kind, uint64_t off, const char *name, uint32_t source);

/* A promise is about to leave the program, by a call at `caller`. Without the lock. */
void recorder_acknowledges(const void *caller);

/* --- told.c: a program under the Valgrind tool --- */

struct told_event {
	const struct told *told;
	uint32_t source;
};
/* Take what it tells. With the lock. False: there is no tool; stores have to be looked for. */
bool told_take(void);
/* Did it, the last time? */
bool told_by_tool(void);
/* An RNIC is about to write there; NULL: it has. */
void told_landing(const void *at, size_t len);

/* --- announced.c --- */

/* Are there lines that clients have written since the last time? What is recorded next may have
 * come after their calls. With the lock. */
void announced_begin(void);
/* --ack: these bytes are about to be written to a socket. Without the lock. */
struct iovec;
void announced_sent(int fd, const struct iovec *part, size_t parts, const void *caller);
/* Take them, as late as their answers may be. */
void announced_take(void);
/* The program ends: what it has printed is to be there. Without the lock. */
void announced_flush(void);

/* --- pm_maps.c --- */

/* Is `fd` PM? Then [at, at+len) is a mapping of it from `offset` on. With the lock. */
void pm_maps_add(int fd, uint8_t *at, size_t len, uint64_t offset);
/* Memory that is PM without being a file. */
void pm_maps_add_memory(uint8_t *at, size_t len);
bool pm_maps_is_memory(const void *at);
void pm_maps_remove(const uint8_t *at, size_t len);
/* mremap(): the mapping is elsewhere now, or longer. */
void pm_maps_move(const uint8_t *at, size_t len, uint8_t *to, size_t new_len);
/* Any PM in this process? Without the lock: a first look. */
bool pm_maps_any(void);
/* All files that are PM? Then a look sees what any process has stored. With the lock. */
bool pm_maps_all(void);
bool pm_maps_has(const void *at);
/* The path of an open file. */
bool pm_maps_path(int fd, char path[PATH_MAX]);
/* If this file's name or length changes: RECORD_UNSEEN_NAME, if it is recorded;
 * RECORD_UNSEEN_OTHER, if it is not, but was named as PM; else RECORD_UNFINISHED. With the lock. */
enum record_kind pm_maps_change_of(const struct stat *st, const char *path);
/* If it is recorded, it is about to be cut to so many bytes, and no more is looked at; what was
 * until now. With the lock. */
uint64_t pm_maps_keep(const struct stat *st, uint64_t len);
/* Is this file PM? Its number, or -1. */
int pm_maps_file(int fd);
/* Write down what the CPUs have stored since the last time; `source`: the event before which it was
 * noticed. */
void pm_maps_scan(uint32_t source);
/* Is the recorder told of all stores, so that none have to be found by comparing? */
void pm_maps_told(bool told);
/* The same of the lines of a range alone. `kind`: of the stores. */
void pm_maps_look(const void *at, size_t len, uint32_t source, enum record_kind kind);
/* The bytes of a range that are PM: calls `fn` for each part. */
typedef void pm_part_fn(void *arg, unsigned file, uint64_t off, const uint8_t *at, size_t len);
void pm_maps_parts(const void *at, size_t len, pm_part_fn *fn, void *arg);
/* The current content is known, and was not stored by a CPU. */
void pm_maps_known(const void *at, size_t len);
/* These bytes are known now. */
pm_part_fn pm_maps_set;
/* Is something else known of these bytes? */
bool pm_maps_differs(unsigned file, uint64_t off, const uint8_t *at, size_t len);

/* --- written.c --- */

/* The pages of a watched range that are known to be written and are not protected. */
#define WRITTEN_PAGES 64
struct written {
	long faults;	/* of the process, before the last look */
	unsigned pages; /* in the order of their addresses */
	struct written_page {
		uint8_t *at;
		unsigned idle; /* looks since it changed */
	} page[WRITTEN_PAGES];
};
/* Is something there that was not known? */
typedef bool written_fn(void *arg, uint8_t *at, size_t len);

/* From now on writes to these pages are noticed. False: the kernel cannot. */
bool written_watch(struct written *w, uint8_t *at, size_t len);
/* Page faults of this process, until now. */
long written_faults(void);
/* Call `fn` for all that may have been written since it was watched, or since the last time.
 * `faults`: written_faults(), asked just before. */
void written_look(struct written *w, uint8_t *at, size_t len, long faults, written_fn *fn,
		  void *arg);
/* A change at `at` was noticed in another way. */
void written_changed(struct written *w, const uint8_t *at);
/* The range is another one now. */
void written_reset(struct written *w);
/* A child of fork() starts afresh. */
void written_forget(void);

/* --- alone.c --- */

/* From now on the kernel tells whether this thread is the only one of the process. */
void alone_begin(void);
/* False: it is not, or that is not known. */
bool alone(void);
/* It is no longer known; in a child of fork() it may be found out anew. */
void alone_forget(void);

/* --- call_site.c --- */

/* A place in the program. */
struct chain;
struct call_site {
	const void *caller;
	struct chain *chain; /* how it was reached */
	uint32_t number;     /* 0: it has none yet */
	char text[512];	     /* then: in words */
};
/* The place that calls, and, if `callers`, what calls that; also if it is in a library of PMDK,
 * which is left out. Without the lock: the dynamic linker has one of its own. */
void call_site_find(struct call_site *site, const void *caller, bool callers);
/* With the lock. */
uint32_t call_site_number(struct call_site *site);
/* The number of a chain of calls, innermost first, up to an address of 0. With the lock. */
uint32_t call_site_of(const uint64_t *ip, unsigned n);
bool call_site_is_pmdk(const void *pc);
bool call_site_is_pmdk_file(const char *path);
/* The file that a place is in, and where its image begins. NULL: none. */
const char *call_site_file(const void *pc, uintptr_t *begins);
/* Is it in code that tells of its stores? */
bool call_site_tells(const void *pc);
/* The number of a name that is no place. */
uint32_t call_site_name(const char *name);

/* --- own_flushes.c: without the lock --- */

/* There is PM: tell of flushes in the program's text that are not seen, if that was not told yet.
 */
void own_flushes_look(void);
void own_flushes_end(void);
/* In a child of fork(). */
void own_flushes_forked(void);

/* --- traps.c: under the dynamic linker's lock --- */

/* An instruction that flushes, fences or the like is to be seen when it runs, from trap_set() on.
 * False: it cannot be. */
bool trap_keep(const uint8_t *code, size_t bytes);
void trap_set(void);
/* This thread has flushed something, or has waited for that. With the recorder's lock. */
void trap_waits(bool flushed, bool fenced);

#endif
