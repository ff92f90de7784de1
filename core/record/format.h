/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RECORD_FORMAT_H
#define TM_RECORD_FORMAT_H
/*
 * A recording of what programs did to their persistent memory: a file that all of them map, so that
 * it is complete up to the last instruction of one that is killed.
 *
 * A page with the head; then records, each a multiple of eight bytes, in one order. A process takes
 * room for a record under the lock in the head, fills it, and stores its kind last: a record of
 * kind 0 is of a process that died while it wrote.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define RECORD_NAME  "tidemark-pm-recording " /* and the format's number */
#define RECORD_MAGIC RECORD_NAME "8\n"
#define RECORD_HEAD  4096 /* bytes */
#define RECORD_FILES 16
#define RECORD_RNIC  0x80000000u /* in `thread`, besides the number of a queue pair */

#define RECORD_PM_LIST 2048 /* bytes of RECORD_PM_VARIABLE */

/* The settings, in the environment of the program. */
#define RECORD_VARIABLE	       "TIDEMARK_RECORDING" /* the recording's path */
#define RECORD_PM_VARIABLE     "TIDEMARK_RECORD_PM" /* paths of files or folders, ':' between */
#define RECORD_PM_REGISTERED   "mr" /* one of them: memory that is registered for remote writing */
#define RECORD_SHADOW_VARIABLE "TIDEMARK_RECORD_SHADOW" /* a folder for what is known of PM */

#define RECORD_HISTORY_VARIABLE "TIDEMARK_HISTORY" /* a file to which clients add lines */

/* --ack: what the program prints goes to these files in the folder of RECORD_SHADOW_VARIABLE, and
 * this variable is set. */
#define RECORD_PRINTED_VARIABLE "TIDEMARK_RECORD_PRINTED"
#define RECORD_PRINTED_OUT	"stdout"
#define RECORD_PRINTED_ERR	"stderr"
#define RECORD_PATTERN		500 /* bytes of --ack, a NUL included */

#define RECORD_COMPARE_VARIABLE "TIDEMARK_RECORD_COMPARE" /* set: do not ask the kernel */

/* How the recording learned of stores of CPUs. */
enum record_stores {
	RECORD_STORES_NONE,    /* they did not */
	RECORD_STORES_WRITTEN, /* the kernel says which pages were written; these are compared */
	RECORD_STORES_COMPARED /* all of PM is compared */
};

/* How it is asked to learn of them. */
enum record_asked { RECORD_ASKED_AUTO, RECORD_ASKED_EXACT, RECORD_ASKED_NOTICED, RECORD_ASKED };

/* Shared by the processes of one recording, and of no use in a file that was moved elsewhere. */
struct record_head {
	char magic[sizeof(RECORD_MAGIC)];
	_Atomic uint64_t used; /* bytes, the head's included */
	uint64_t room;	       /* bytes: the file's length while it is written */
	uint64_t allocated;    /* bytes: so many are on the disk for sure */
	_Atomic uint32_t full; /* something found no room, and from there on nothing is recorded */
	uint32_t stores;       /* enum record_stores: the worst of all processes */
	uint32_t sources;      /* numbers that were given */
	uint32_t files;
	struct record_file {
		uint64_t device, inode;
		uint64_t size; /* bytes */
		uint64_t kept; /* bytes: what is beyond was cut off once, and is not looked at */
	} file[RECORD_FILES];
	uint64_t exact;		  /* stores that a program told of, or Valgrind */
	uint64_t told;		  /* Valgrind did */
	uint64_t scans;		  /* looks for stores everywhere */
	uint64_t kernel_scans;	  /* how often the kernel was asked for that */
	uint64_t busy_ns;	  /* with the lock held, from a sample of the events */
	uint64_t history;	  /* bytes of RECORD_HISTORY_VARIABLE that were taken */
	uint64_t printed[2];	  /* the same of RECORD_PRINTED_OUT, RECORD_PRINTED_ERR */
	char ack[RECORD_PATTERN]; /* checker/logs/printed.h; "": nobody looks at what is printed */
	uint32_t ended;		  /* the program came to its end, and left this status */
	int32_t status;
	pthread_mutex_t lock; /* robust, between processes */
	/* The settings, for programs that join later: RECORD_PM_VARIABLE, RECORD_SHADOW_VARIABLE.
	 */
	char pm[RECORD_PM_LIST], shadow[128];
	uint32_t asked; /* enum record_asked: --stores */
	/* RECORD_HISTORY_VARIABLE may have lines: a process has opened it for writing. */
	_Atomic uint32_t announced;
	/* At the end: bytes of each file that are not as recorded. */
	uint64_t unseen[RECORD_FILES];
	uint64_t summed; /* bytes: what comes after them has no checksum yet; 0: none is known */
	uint64_t sum;	 /* at the end: the checksum of that */
	uint64_t unseen_kind[4]; /* records of each kind from UNSEEN_FLUSH on */
	uint64_t unordered; /* STOREs of several words: which of these came first is not known */
};
_Static_assert(sizeof(struct record_head) <= RECORD_HEAD, "the head is a page");

enum record_kind {
	RECORD_UNFINISHED,
	RECORD_FILE,   /* file, off: its size; payload: its path */
	RECORD_BEFORE, /* what was in it when it was mapped first; zeros are left out */
	RECORD_SOURCE, /* source: a number; payload: places in programs, "PATH+0xOFFSET;..." */
	RECORD_STORE,  /* of each line that it touches, one; source: of the event at which they were
			* noticed */
	RECORD_LAND,   /* of an RDMA WRITE, an atomic, or the answer to a READ */
	RECORD_FLUSH,
	RECORD_FENCE,
	RECORD_SYNC,
	RECORD_COMMIT, /* RDMA Commit */
	RECORD_ACK,
	RECORD_MARK,   /* payload: its name */
	RECORD_EXACT,  /* a store; source: of the store itself */
	RECORD_PUSH,   /* a READ or an atomic, after something that its queue pair has landed */
	RECORD_CALL,   /* a client begins an operation. off: the client; payload: the operation;
			* message 1: a line, it may have begun before the process's latest LINES */
	RECORD_RETURN, /* ... and has its answer, which is an acknowledgement. payload: the answer;
			* message 1: by a process that does not see all PM */
	RECORD_LAND_SEND, /* data of a SEND */
	RECORD_LAND_WORD, /* the payload of an RDMA Commit; a COMMIT of the same bytes follows */
	RECORD_STORE_NT,  /* as STORE, by a copy of libpmem with non-temporal stores; its FLUSH is
			   * FLUSH_NT */
	RECORD_FLUSH_NT,
	RECORD_RDMA_FLUSH, /* len 0: of memory that is no PM, which concerns data of SENDs alone */
	RECORD_CALL_STORE, /* as EXACT, of what a call of libc has changed: of each line one. More
			    * of one place that follow are of the same call */
	RECORD_LINES,	/* a process begins to take lines of RECORD_HISTORY_VARIABLE, none of which
			 * was there at any record before */
	RECORD_PRINTED, /* payload: a line that was printed, or (off: the descriptor, and one more)
			 * written to a socket. message 1: by a process that does not see all PM */
	RECORD_SUM,	/* payload: RECORD_CHECKSUM() of all from `off` up to here */
	/* What a program does and the recording leaves out. payload: its name */
	RECORD_UNSEEN_FLUSH, /* the program's text has such instructions. source: of one; off: how
			      * many there are */
	RECORD_UNSEEN_FENCE, /* the same of sfence and mfence */
	RECORD_UNSEEN_NAME, /* a file that is recorded is renamed, or the like, at this place in the
			     * order */
	RECORD_UNSEEN_OTHER, /* the same of other files that were named as PM */
	RECORD_KINDS
};

/* What has become longer than this since the last one gets a checksum. */
#define RECORD_BLOCK		    (64u << 10)
#define RECORD_CHECKSUM(bytes, len) XXH3_64bits(bytes, len)

#define RECORD_WORDS 4096 /* bytes of an operation or an answer at most */

struct record {
	_Atomic uint32_t kind;
	uint32_t bytes; /* of all of it */
	uint64_t off;	/* in the file */
	uint64_t ns;	/* CLOCK_MONOTONIC: after a landing, before anything else takes effect */
	uint32_t len;	/* bytes, of the payload or of the range */
	uint32_t thread;
	uint32_t source;
	uint32_t file;
	uint32_t process; /* whose; of a landing, into whose memory */
	uint32_t message; /* a LAND: of pm_event.message; a CALL, a RETURN: above */
	uint8_t payload[];
};
_Static_assert(sizeof(struct record) == 48, "a fixed layout");

#endif
