/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_STORE_BUFFER_H
#define TM_PMEM_STORE_BUFFER_H
/*
 * The store buffers of a machine's CPUs (x86-TSO), one of each task. store_buffer.c opens with how
 * they work. Only pmem.c uses them: it says what happens when an entry leaves.
 */
#include "core/rt/sim.h"

#define STORE_BUFFER_MAX 8

/* The author of a change of memory. */
struct author {
	const struct actor *who;
	uintptr_t pc;
	struct op_label op;
	uint16_t occurrence;
	bool nic, send;
};

enum buffered_kind {
	BUFFERED_STORE,
	BUFFERED_FLUSH,	  /* clwb, clflushopt */
	BUFFERED_CLFLUSH, /* clflush */
	BUFFERED_FENCE,	  /* sfence */
	BUFFERED_POST	  /* the doorbell of an RDMA request */
};

struct buffered {
	uint8_t kind; /* enum buffered_kind */
	bool delayed; /* a choice delays it, and what comes after it */
	bool gone;    /* a BUFFERED_FLUSH that took effect ahead of its turn */
	unsigned cpu; /* the number of its task + 1 */
	uint32_t nth; /* of the entries that its task has made since its label was set */
	struct author by;
	uint64_t off;
	size_t len;	  /* of a store at most 8, within one line */
	uint8_t bytes[8]; /* of a store: the new ones; while memory shows these, those below them */
	void (*ring)(void *arg);
	void *arg;
};

struct cpu_buffer {
	struct store_buffers *of;
	uint64_t chain;	      /* for the scheduler */
	uint32_t first, next; /* numbers of the oldest entry and of the one to come */
	bool under_way;	      /* the scheduler knows that the oldest entry can leave */
	struct buffered entry[STORE_BUFFER_MAX];
};

struct store_buffers {
	struct sim *sim;
	uint8_t *memory;
	unsigned size;	   /* entries of each */
	uint32_t *entries; /* of all together are counted here */
	bool (*leaves)(void *arg, const struct buffered *entry);
	void *arg;
	unsigned shown; /* the CPU whose view memory shows; 0: what all CPUs see */
	unsigned used;	/* CPUs from this one on have not had an entry */
	struct cpu_buffer cpu[SIM_TASKS + 1];
};

/* NULL: out of memory. */
struct store_buffers *store_buffers_new(void);
/* A machine starts: all buffers are empty. leaves(): an entry takes effect; false: the power failed
 * before.
 */
void store_buffers_begin(struct store_buffers *b, struct sim *sim, uint8_t *memory, unsigned size,
			 uint32_t *entries, bool (*leaves)(void *arg, const struct buffered *entry),
			 void *arg);

/* The current task's number + 1; 0: no task, and so no CPU. */
static inline unsigned store_buffers_cpu(const struct store_buffers *b)
{
	return (unsigned)(sim_task(b->sim) + 1);
}
/* Does anything wait in the current task's buffer? */
static inline bool store_buffers_waiting(const struct store_buffers *b)
{
	const struct cpu_buffer *cpu = &b->cpu[store_buffers_cpu(b)];
	return cpu->first != cpu->next;
}
/* Must what the current task does now go through its buffer? */
static inline bool store_buffers_in_use(const struct store_buffers *b)
{
	return store_buffers_cpu(b) && (sim_picks(b->sim) || store_buffers_waiting(b));
}

void store_buffers_change_view(struct store_buffers *b, unsigned cpu);
/* Memory shows what this CPU sees; 0: what all CPUs see. */
static inline void store_buffers_show(struct store_buffers *b, unsigned cpu)
{
	if (b->shown != cpu)
		store_buffers_change_view(b, cpu);
}

/* What waits; brought back where memory is as it was then. */
struct snapshot;
void store_buffers_exchange(struct store_buffers *b, struct snapshot *s);

/*
 * The current task's next entry (cpu and nth are filled in here), delayed by delay k. If there is
 * no room the oldest leaves. What other CPUs see is as before.
 */
void store_buffers_enter(struct store_buffers *b, const struct buffered *entry, unsigned k);
/*
 * Must a write-back of these bytes, of one line, wait for something in the current task's queue?
 * For a store or clflush of that line, or a fence: clwb and clflushopt pass all else (Px86: Raad et
 * al., POPL 2020).
 */
bool store_buffers_keep(const struct store_buffers *b, uint64_t off, size_t len);
/* The current task's newest store that has all of these bytes: a load of them does not look at
 * memory. NULL: it
 * does. */
const struct buffered *store_buffers_forward(const struct store_buffers *b, uint64_t off,
					     size_t len);
/* The current task waits until at most so many of its entries are left. */
void store_buffers_wait(struct store_buffers *b, unsigned left);
/* The entries of all CPUs leave, whatever delays them. */
void store_buffers_empty(struct store_buffers *b);
/* What the CPUs of this host have in their buffers never leaves them. */
void store_buffers_lose(struct store_buffers *b, unsigned host);

#endif
