/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_MODEL_H
#define TM_PMEM_MODEL_H
/*
 * What the files of the persistence model share, and no other file sees. pmem.c opens with the
 * model; here are its data and the few functions that run on each access.
 *
 *	pmem.c		the stack of machines, and a machine's life
 *	line.c		a line: its versions, what is durable, what survived
 *	cpu_store.c	the CPU's stores and loads
 *	cpu_flush.c	the CPU's flushes and fences, and what leaves a store buffer
 *	nt_store.c	non-temporal stores with buffers of their own
 *	nic_write.c	data that the NIC writes
 *	htm.c		regions of hardware transactional memory
 *	course.c	what a machine did, done again without its program
 *	images.c	which crash images there are
 *	pmem_snapshot.c	a machine at one moment, to go on from there again
 */
#include <assert.h>
#include <string.h>
#include "core/pmem/course.h"
#include "core/pmem/crash.h"
#include "core/pmem/domain.h"
#include "core/pmem/store_buffer.h"
#include "core/rt/arena.h"
#include "core/rt/htm.h"

#define MACHINES      4
#define ACCESS_BUDGET 50000000u /* accesses to DRAM; if no time has gone by: in an endless loop */

struct version {
	uint32_t next; /* index + 1 of the line's next version, 0: newest */
	uint8_t off, len;
	struct author by;
	uint8_t data[LINE];
};

struct line {
	uint32_t saved;		       /* == run: its content at boot is in the undo list */
	uint32_t first, last;	       /* versions in flight: index + 1 */
	uint32_t in_flight, committed; /* how many; how many were, since boot */
	uint32_t dirty_at;	       /* its place in the list of dirty lines */
	uint64_t content_hash;	       /* of durable content; 0: not known */
	uint64_t flight_hash;
};

struct undo {
	uint32_t line;
	uint8_t content[LINE];
};

/* A flushed line waits for its CPU's fence: its first `upto` versions since boot are covered. */
struct pending_flush {
	uint32_t line, upto;
};

struct pending_flushes {
	struct pending_flush *flush;
	unsigned n, room;
};

/* A store whose hook has been called and whose bytes are not read yet. */
struct pending_store {
	uint64_t off;
	size_t len;
	uintptr_t pc;
	bool waits;	/* in the CPU's store buffer, ... */
	unsigned delay; /* ... this answer of CHOICE_BUFFER long */
};

/* A non-temporal store to one line, in its CPU's write-combining buffer. */
struct nt_store {
	struct buffered late; /* of which `bytes` is not used */
	uint64_t number;
	uint8_t bytes[LINE];
};

struct arrival { /* WSP: NIC data of one line that has arrived and not landed */
	uint64_t off;
	uint8_t len;
	uint8_t data[LINE];
	struct nic_where from;
};

struct late_bytes {
	struct op_label op;
	uint64_t bytes;
};

/* A server's region. */
struct htm {
	bool open, aborted;
	int task;
	uint32_t lines, line[RT_HTM_LINES];
};

struct pmem {
	struct pmem_window window;
	struct pmem_stack *stack;
	unsigned machine;
	struct pmem *before; /* the machine whose failure this one boots from */
	struct sim *sim;
	const struct profile *cost;
	struct hardware hw;
	/* Of several servers: where each one's memory begins, and its own hardware. 0: there is
	 * one. */
	unsigned hosts;
	uint64_t host_at[HARDWARE_SERVERS];
	struct hardware host_hw[HARDWARE_SERVERS];
	uint8_t *work, *durable; /* work is window.base */
	size_t len;
	bool running;
	uint32_t run;
	struct line *line;
	uint64_t *decided; /* bits: what survived the failure before boot is decided, ... */
	uint64_t *again;   /* ... that is so, and the line's next touch is to be noted once more */
	uint64_t *lost; /* bits: in flight when its host lost its power in this run, and not decided
			 */
	uint32_t losts, failures; /* how many; how often hosts have lost it in this run */
	struct version *version;
	uint32_t versions, version_room;
	uint32_t *dirty;
	uint32_t dirties;
	struct undo *undo;
	uint32_t undos, undo_room;
	struct pending_flushes flushes[SIM_TASKS + 1]; /* of each CPU: its task's number + 1 */
	unsigned flushers;			       /* no CPU above this one has any */
	uint64_t durable_hash, flight_hash;
	struct arrival *arrival; /* oldest first */
	uint32_t arrivals, arrival_room;
	struct late_bytes *late; /* by operation: what arrived at the NIC and has not landed */
	uint32_t lates, late_room;
	struct nt_store *nt; /* oldest first */
	uint32_t nts, nt_room;
	uint64_t nt_number;
	struct pending_store pending; /* len 0: none */
	uint8_t *below;		      /* with store buffers: what memory held where it stores */
	uint32_t below_room;
	struct store_buffers *buffers;	    /* NULL: none in this run */
	struct store_buffers *kept_buffers; /* its memory, from run to run */
	uint32_t watched; /* accesses are reported, this many to DRAM are left; 0: they are not */
	pmem_dram_watcher *dram_watcher; /* NULL: none */
	void *dram_arg;
	uint32_t dram_left; /* with one: as window.accesses_left without */
	uint64_t spent_ns;  /* when the latest ACCESS_BUDGET of them was spent */
	const struct tm_region *region;
	unsigned regions;
	struct pmem_course *course; /* where it is noted what is done; NULL: nowhere */
	struct htm htm[SIM_SERVERS];
	unsigned htms;			 /* that are open; the others are zeros */
	bool htm_commits;		 /* the running task is at the stores of its region */
	bool notes_touched, notes_again; /* [1]: from pmem_note_touched_again() on */
	struct touch_list {		 /* lines, in the order of their first touch */
		struct pmem_touch *touch;
		uint32_t n, room, lines;
	} touched[2];
};

struct pmem_stack {
	unsigned machines;
	size_t max_len;
	uint8_t *images; /* the mapping that they are in */
	uint8_t *image[MACHINES + 1];
	uint8_t *changes;  /* how many machines have changed a line: its content is in their undo */
	uint64_t *changed; /* bits: any */
	struct pmem_content *history; /* of the line that pmem_line_next() looks at */
	uint32_t history_room;
	struct pmem pm[MACHINES];
};

/* --- htm.c --- */

/* While a region is open: somebody reads or writes there. */
void htm_touched(struct pmem *pm, uint32_t first, uint32_t last, bool write);
void htm_host_fails(struct pmem *pm, uint64_t off, uint64_t len);

/* --- line.c --- */

/* The next entry; the list's lines are the caller's to count. */
void touch_list_add(struct touch_list *list, struct pmem_touch touch);

/* Keep the line's content at boot. */
void line_save(struct pmem *pm, uint32_t l);
/* Write to durable, and so to where later machines boot. */
void line_write_durable(struct pmem *pm, uint64_t off, const void *data, size_t len);
/* The line's durable content has changed. */
void line_rehash(struct pmem *pm, uint32_t l);
/* The machine that decides what a line holds when `pm` has failed. */
const struct pmem *line_undecided_in(const struct pmem *pm, uint32_t l);
/* What the failed machine left of these lines is decided now, if it was not before. */
void lines_decide(struct pmem *pm, uint32_t first, uint32_t last);
/* Where a host has failed, or a region of hardware transactional memory is open: lines that their
 * host lost hold one of their versions now, and regions that have these lines are aborted. */
__attribute__((cold)) void lines_touched(struct pmem *pm, uint32_t first, uint32_t last,
					 bool write);
/* The line's versions up to its `upto`th since boot are durable for sure. */
void line_make_durable(struct pmem *pm, uint32_t l, uint32_t upto);
/* The same where it makes fewer images possible, and nothing if they are durable already. */
void line_commit(struct pmem *pm, uint32_t l, uint32_t upto);
void line_commit_all(struct pmem *pm, uint32_t l); /* all of its versions */
/* Bytes within one line have become visible. */
void line_add_version(struct pmem *pm, uint64_t off, const void *data, size_t len,
		      const struct author *by);
/* The line as it is with its first `versions` versions in flight. */
void line_as_of(const struct pmem *pm, uint32_t l, unsigned versions, uint8_t out[LINE]);
/* Every dirty line is durable. */
void lines_write_back(struct pmem *pm);

/* --- cpu_store.c, cpu_flush.c --- */

/* pmem_commit_pending(), where an access of the same task comes next: with copy_order a structure
 * is stored word by word, and others may run in between. */
void cpu_settle(struct pmem *pm);
/*
 * The power may fail before something of a CPU becomes durable. `late`: the entry of its store
 * buffer by which it does. True: it fails.
 */
bool cpu_power_fails(struct pmem *pm, enum crash_place place, const struct buffered *late);
/*
 * Bytes that the CPU has stored at [off, off+len), within one line, become a version of it. `late`:
 * as above. False: the power failed.
 */
bool cpu_stored(struct pmem *pm, uint64_t off, size_t len, const struct author *by,
		const struct buffered *late);
/* An entry of a store buffer takes effect. False: the power failed. */
bool cpu_entry_leaves(void *arg, const struct buffered *entry);

/* clwb by this CPU: a fence of it makes the range's lines durable as they are now. */
void cpu_note_flush(struct pmem *pm, unsigned cpu, uint64_t off, size_t len,
		    const struct author *by);

/* --- nic_write.c --- */

/* Data of an operation has arrived; some of it has landed. */
void nic_note_late(struct pmem *pm, struct op_label op, size_t len);
void nic_note_landed(struct pmem *pm, struct op_label op, size_t len);
/* Data of one line is in the NIC's buffers, which survive. `from`: NULL if not known. */
void nic_keep_arrival(struct pmem *pm, uint64_t off, const void *data, size_t len,
		      const struct nic_where *from);
/* The i-th of them has landed. */
void nic_forget_arrival(struct pmem *pm, uint32_t i);

/* --- course.c --- */

enum deed_kind {
	DEED_TOUCH,   /* `n` lines from `line` on, for the first time */
	DEED_VERSION, /* data of `line` have become visible */
	DEED_DURABLE, /* the first `n` versions of `line` since boot */
	DEED_ARRIVE,  /* data of `line` are in the NIC's buffers, which survive */
	DEED_LANDED,  /* the `n`th of them */
	DEED_LATE,    /* `n` bytes of an operation have arrived */
	DEED_IN_TIME, /* `n` of these have landed */
	DEED_FAILURE  /* the power could have failed: line, n, c are the point's a, b, c */
};

/* One thing that a machine did; `len` bytes of data follow. */
struct deed {
	uint16_t kind : 4; /* enum deed_kind */
	uint16_t who : 12; /* number of the actor */
	uint8_t off, len;  /* of data within the line */
	uint32_t line, n, c;
	struct op_label op;
	uint16_t occurrence;
	uint8_t nic, send;
};

/* Where pm->course is not NULL. */
void course_add(struct pmem *pm, const struct deed *deed, const void *data);
void course_add_version(struct pmem *pm, uint32_t line, uint8_t off, const void *data, size_t len,
			const struct author *by);

/* --- nt_store.c --- */

/* What the CPU has in its write-combining buffers leaves: for these lines, or, len 0, for all.
 * False: the power failed. */
bool nt_leave(struct pmem *pm, unsigned cpu, uint64_t off, size_t len);

/* --- on each access --- */

/* The same of the current task, before it looks at these lines or changes them. */
static inline void nt_leave_mine(struct pmem *pm, uint64_t off, size_t len)
{
	if (pm->nts)
		nt_leave(pm, (unsigned)(sim_task(pm->sim) + 1), off, len);
}

/* The bytes of [off, off+len) that are in its first line. */
static inline size_t within_line(uint64_t off, size_t len)
{
	size_t room = LINE - off % LINE;
	return room < len ? room : len;
}

/* Memory is as every CPU sees it. */
static inline void show_all(struct pmem *pm)
{
	if (pm->buffers)
		store_buffers_show(pm->buffers, 0);
}

/* Memory is as the current task sees it. */
static inline void show_mine(struct pmem *pm)
{
	if (pm->buffers)
		store_buffers_show(pm->buffers, store_buffers_cpu(pm->buffers));
}

/* An access to PM, for a source that wants to know. */
static inline void note_touch(struct pmem *pm, enum touch what, uint64_t where, uint64_t len)
{
	if (pm->watched)
		sim_touch(pm->sim, what, where, len);
}

/* memcpy() of what is mostly one word. Other lengths are left to a call: compilers make "rep movs"
 * of a length that is certainly small, which costs more. */
static inline void put(uint8_t *to, const void *from, size_t len)
{
	if (len == 8) {
		memcpy(to, from, 8);
		return;
	}
	__asm__("" : "+r"(len));
	memcpy(to, from, len);
}

static inline bool line_bit(const uint64_t *bits, uint32_t l)
{
	return bits[l / 64] >> l % 64 & 1;
}

/* The hardware of the host whose memory this is. */
static inline const struct hardware *pmem_hw_at(const struct pmem *pm, uint64_t off)
{
	unsigned h = pm->hosts;
	if (!h)
		return &pm->hw;
	while (--h && off < pm->host_at[h])
		;
	return &pm->host_hw[h];
}

/* Has its host lost its power while it was in flight? Nothing but the first touch settles it. */
static inline bool line_lost(const struct pmem *pm, uint32_t l)
{
	return pm->losts && line_bit(pm->lost, l);
}

/* The first access to a line decides what survived, the first write keeps it for pmem_end(). */
static inline void touch(struct pmem *pm, uint64_t off, size_t len, bool write)
{
	uint32_t first = (uint32_t)(off / LINE), last = (uint32_t)((off + len - 1) / LINE);
	if (pm->losts | pm->htms)
		lines_touched(pm, first, last, write);
	if (pm->before && (first != last || !line_bit(pm->decided, first)))
		lines_decide(pm, first, last);
	for (uint32_t l = first; write && l <= last; l++)
		if (pm->line[l].saved != pm->run)
			line_save(pm, l);
}

static inline struct author task_author(struct pmem *pm, uintptr_t pc)
{
	struct actor *actor = sim_actor(pm->sim);
	struct author by = {.who = actor, .pc = pc};
	if (actor) {
		by.op = actor->op;
		by.occurrence = actor->occurrence;
	}
	return by;
}

#endif
