/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_PM_LOG_H
#define TM_CHECKER_LOGS_PM_LOG_H
/*
 * What happened to a program's persistent memory, in one order: the stores of its CPUs, what RNICs
 * landed, flushes, fences, and what its users could know. Readers of logs and recordings fill it
 * (pmemcheck_read.h), and crash images are made of it (pm_replay.h).
 *
 * PM is a number of files. A place in PM is a file and an offset in it, never an address.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/hardware/hardware.h"

#define PM_LINE	     LINE
#define PM_FILES     16
#define PM_FILE_MAX  (1ull << 40) /* bytes */
#define PM_NO_SOURCE 0		  /* a source that is not known */

enum pm_event_kind {
	PM_STORE, /* a CPU stores [off, off+len), within one line */
	PM_LAND,  /* an RNIC does */
	PM_FLUSH, /* clwb, clflushopt: what the lines of [off, off+len) hold is on its way */
	PM_FENCE, /* sfence: what this thread has flushed is durable */
	PM_SYNC,  /* msync(): what the lines of [off, off+len) hold is durable */
	/* Of an RNIC's connection, which make durable what it has landed (pm_replay.h): */
	PM_RDMA_FLUSH, /* of [off, off+len), and what SENDs left anywhere; len 0: that alone */
	PM_COMMIT,     /* RDMA Commit, of [off, off+len) */
	PM_PUSH,       /* READ, of everything */
	PM_ACK,	       /* somebody outside was told that something is done */
	PM_MARK,       /* the program says where it is */
	PM_EVENT_KINDS
};
extern const char *const pm_event_name[PM_EVENT_KINDS];

struct pm_event {
	uint64_t off;	 /* in the file */
	uint64_t ns;	 /* when, by CLOCK_MONOTONIC; 0: not known */
	uint64_t data;	 /* STORE, LAND: where its bytes begin in pm_log.bytes; MARK: where its name
			  * ends in pm_log.markers */
	uint32_t len;	 /* bytes; of data that is not kept, 0 */
	uint32_t source; /* where in the program: of pm_log.source; a MARK: its name */
	uint32_t thread; /* whose: of a CPU's events a thread, of an RNIC's a connection */
	uint32_t process; /* whose; of a landing, into whose memory; 0: not known */
	uint32_t message; /* a LAND: tells a queue pair's requests apart that may land later than
			   * they are acknowledged; 0: it may not */
	uint32_t line;	  /* of the text that was read, from 1 */
	uint8_t kind;	  /* enum pm_event_kind */
	uint8_t file;
	bool noticed;  /* a STORE that is known by its result: its source is where it was noticed */
	bool together; /* a STORE by a call of libc, which made those of its place at once */
	bool part;     /* the rest of the store or landing before it, which crosses a line */
	bool nt;       /* a STORE by a non-temporal copy, and its FLUSH */
	bool send;     /* a LAND: data of a SEND */
	bool word;     /* a LAND: the payload of an RDMA Commit, a COMMIT of it follows */
};

/* Does it write bytes? */
static inline bool pm_event_writes(const struct pm_event *e)
{
	return e->kind == PM_STORE || e->kind == PM_LAND;
}

/* Is the line one of those of its range, which is not empty? */
static inline bool pm_event_meets(const struct pm_event *e, unsigned file, uint64_t line)
{
	return e->file == file && e->off / PM_LINE <= line &&
	       line <= (e->off + e->len - 1) / PM_LINE;
}

/* What a client announced: that it begins an operation, or has its answer. */
struct pm_call {
	uint64_t client;
	size_t event;	/* events before it may have begun; of an answer: its acknowledgement */
	uint32_t words; /* of pm_log.source: the operation, or the answer */
	uint32_t line;	/* of a file that was read, from 1; or 0 */
	bool returns;
	uint8_t early; /* enum pm_early */
};
/* A call that was heard of with its answer alone belongs behind its client's answer before, or, if
 * it is its first one, before all others. */
enum pm_early { PM_IN_ORDER, PM_AFTER_ANSWER, PM_AT_ONCE };

/* What a program has or does, and what the log does not say. */
enum pm_unseen_kind {
	PM_UNSEEN_FLUSH, /* instructions that flush, or store past the caches */
	PM_UNSEEN_FENCE, /* instructions that wait for flushes */
	PM_UNSEEN_NAME,	 /* a file is renamed, made shorter or the like */
	PM_UNSEEN_OTHER	 /* the same of a file that is not in the log */
};
struct pm_unseen {
	enum pm_unseen_kind kind;
	size_t event;	       /* of names: events before it */
	uint64_t times;	       /* of instructions: how many there are */
	uint32_t name, source; /* of pm_log.source; where, of instructions the first */
};

/* The file of source that a frame names, "put (store.c:12)". Numbers are of pm_log.source. */
struct pm_place {
	uint32_t frame;
	uint32_t path;	  /* as the compiler was told it */
	uint32_t program; /* whose debug information says so */
};

struct pm_file {
	char *name;
	uint64_t len;	 /* bytes: a multiple of PM_LINE */
	uint64_t size;	 /* of the file itself */
	uint64_t unseen; /* bytes that were not as recorded in the end */
	uint8_t *before; /* its content before the first event: pm_file_room() */
	uint64_t room;	 /* bytes that it has */
	/* By page, a bit: something may be there that is no zero, before or after an event. */
	uint8_t *touched;
};

#define PM_PAGE 4096u

/* Memory for as much as a file has, zeros; what is not written takes none. NULL without. */
void *pm_sparse_new(uint64_t bytes);
void pm_sparse_free(void *at, uint64_t bytes);
/* Room for all that it had before, also if it has become longer. 0 or -ENOMEM. */
int pm_file_room(struct pm_file *file);
void pm_file_touch(struct pm_file *file, uint64_t at, uint64_t len);
/* The next bytes from *at on that may be no zeros, *n of them. False: there are none. Begin with 0,
 * and go on behind them. */
bool pm_file_run(const struct pm_file *file, uint64_t *at, uint64_t *n);

struct pm_log {
	struct pm_event *event;
	size_t events, event_room;
	uint8_t *bytes;
	size_t bytes_n, bytes_room;
	char *markers; /* the names of all, with '|' between them */
	size_t markers_n, markers_room;
	char **source; /* [PM_NO_SOURCE]: "" */
	size_t source_room;
	unsigned sources;
	uint32_t *source_slot; /* a hash table of them */
	unsigned source_slots;
	struct pm_place *place; /* by their frames; of those that are known */
	size_t places, place_room;
	struct pm_file file[PM_FILES];
	unsigned files;
	struct pm_call *call; /* in their order; an answer may have its event after later calls */
	size_t calls, call_room;
	struct pm_unseen *unseen;
	size_t unseens, unseen_room;
	bool stopped;	  /* the program came to its end */
	bool full;	  /* a recording that found no more room: what came later is not in it */
	bool threads;	  /* whose an event is, is known */
	bool printed;	  /* operations are known from lines that the program printed */
	bool knows_nt;	  /* which stores of libpmem are non-temporal is known */
	bool timed;	  /* acknowledgements are from a history with times */
	bool has_flush;	  /* the program flushes, fences or syncs */
	bool begins_last; /* the files were read, and hold what the last stores made of them */
	unsigned long acks;
};

int pm_log_open(struct pm_log *log); /* 0 or -ENOMEM */
void pm_log_close(struct pm_log *log);

/* The file of this name, with room for `len` bytes; a new one has no content yet. -ENOSPC: there
 * are PM_FILES already. */
int pm_log_file(struct pm_log *log, const char *name, uint64_t len);
/* Is there as much memory in this machine as all files have? A log may say what it likes. */
bool pm_log_fits(const struct pm_log *log);
/* Read what the files held from the disk: where a file is now, or from `copy`, a copy of the only
 * file, NULL: none; "zero": nothing was in them. Finds begins_last. 0 or -errno with *which, a
 * name. */
int pm_log_read_files(struct pm_log *log, const char *copy, const char **which);
/* The number of a source; a NUL ends it. 0 (PM_NO_SOURCE) without memory. */
uint32_t pm_log_source(struct pm_log *log, const char *text, size_t len);

/* The same of one that is there already; else 0. */
uint32_t pm_log_find_source(const struct pm_log *log, const char *text, size_t len);

/* A frame's file of source, and the program that it is of. 0 or -ENOMEM. */
int pm_log_add_place(struct pm_log *log, const char *frame, const char *path, const char *program);
/* The place of a frame, or NULL. */
const struct pm_place *pm_log_find_place(const struct pm_log *log, const char *frame, size_t len);

/* A client announced an operation, or its answer; `line` as in struct pm_call. 0 or -ENOMEM. */
int pm_log_add_call(struct pm_log *log, uint64_t client, bool returns, const char *words,
		    size_t len, uint32_t line);
/* Users outside were told of something at these times (ns), which are sorted: acknowledgements are
 * put between the events. 0 or -ENOMEM. */
int pm_log_add_acks(struct pm_log *log, const uint64_t *ns, size_t n);
/* Add what is not seen, of instructions once. 0 or -ENOMEM. */
int pm_log_add_unseen(struct pm_log *log, const struct pm_unseen *unseen);
/* The first of this kind, or NULL. */
const struct pm_unseen *pm_log_unseen(const struct pm_log *log, enum pm_unseen_kind kind);
/* Add an event. A store or a landing is cut where a line ends; of one that was noticed, each line
 * is a store of its own. 0 or -ENOMEM. */
int pm_log_add(struct pm_log *log, const struct pm_event *event, const uint8_t *data);

#endif
