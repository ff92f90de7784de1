/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RECORD_RECORD_HOOKS_H
#define TM_RECORD_RECORD_HOOKS_H
/* What the soft RNIC tells the recorder, if there is one in the process; and what a program does
 * that tells of each of its stores (exact/stores.c). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* LANDED_WORD: the payload of an RDMA Commit. */
enum record_landing { LANDED_WRITE, LANDED_SEND, LANDED_READ, LANDED_WORD };

struct record_hooks {
	/* Memory was registered, so that others may write to it; and deregistered. */
	void (*registered)(const void *at, size_t len);
	void (*deregistered)(const void *at, size_t len);
	/* An RNIC is about to write to [at, at+len), ... */
	void (*before_landing)(const void *at, size_t len);
	/* ... and has. `message`: which request of its queue pair's peer, if that may be
	 * acknowledged before it lands; else 0. */
	void (*landed)(const void *at, size_t len, enum record_landing how, uint32_t qp,
		       uint32_t message);
	/* An RDMA FLUSH for persistence, and an RDMA Commit, of a range by this queue pair have
	 * taken effect. */
	void (*flushed)(const void *at, size_t len, uint32_t qp);
	void (*committed)(const void *at, size_t len, uint32_t qp);
	/* A READ of this queue pair, or the like, pushes what it has landed out of the buffers
	 * between RNIC and memory. */
	void (*pushed)(uint32_t qp);
	/* A promise is about to leave the program. */
	void (*acknowledges)(const void *caller);
};
/* Weak: NULL without the recorder. */
extern const struct record_hooks tidemark_record_hooks __attribute__((weak));

/* All mappings of PM are in [first, first+len): another store is of no interest. These are weak,
 * too: the recorder is in the process already, and nothing is linked with it. */
struct record_window {
	volatile uintptr_t first;
	volatile size_t len;
};
extern struct record_window tidemark_record_window __attribute__((weak));
/* The instruction before `pc` is about to store: what others have stored to these lines comes
 * before it. */
void tidemark_record_stores(const void *at, size_t len, const void *pc) __attribute__((weak));
/* What is there now was stored by the instruction before `pc`. */
void tidemark_record_stored(const void *at, size_t len, const void *pc) __attribute__((weak));
/* Before each event of a thread, `settle` is to tell of the store that the thread has made last.
 * More than once is as good as once. */
void tidemark_record_settles(void (*settle)(void)) __attribute__((weak));
/* The code before `pc` is about to flush, or to fence; or it stores past the caches, by `copy`. */
void tidemark_record_flushes(const void *at, size_t len, const void *pc) __attribute__((weak));
void tidemark_record_fences(const void *pc) __attribute__((weak));
void tidemark_record_streams(void *to, const void *from, size_t len,
			     void *(*copy)(void *to, const void *from, size_t len), const void *pc)
	__attribute__((weak));
/* An instruction of a program that tells of it so has this before it, "nopl 0x54d50001(%rax)", and
 * is not taken for one that is not seen (own_flushes.c). */
#define RECORD_TOLD_MARK 0x0f, 0x1f, 0x80, 0x01, 0x00, 0xd5, 0x54

#endif
