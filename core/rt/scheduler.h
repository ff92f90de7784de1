/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_SCHEDULER_H
#define TM_RT_SCHEDULER_H
/* What a search has to know to reorder independent steps: what touches which memory, and what
 * happens in which order by nature. */
#include <stdbool.h>
#include <stdint.h>

/* What a task or a NIC did to memory. PM: bytes from the pool's start; DRAM: an address. */
enum touch {
	TOUCH_READ,   /* PM is loaded, fetched or flushed: it matters what it holds */
	TOUCH_WRITE,  /* PM is stored to, or data lands there */
	TOUCH_COMMIT, /* PM in flight is durable from now on: images get fewer */
	TOUCH_ARRIVE, /* NIC data of domain=wsp: durable from now on, in place of what was, and not
			 visible yet */
	TOUCH_SHOW,   /* they become visible: images stay as they are */
	TOUCH_DRAM_READ,
	TOUCH_DRAM_WRITE,
	TOUCH_LEAVES /* no memory: a packet of a server, of a store that has several. As
		      * leaving_touch() says */
};
/* When a packet has left which host, of so many at most. */
#define LEAVING_HOSTS 128
static inline uint64_t leaving_touch(uint64_t at_ns, unsigned host)
{
	return at_ns * LEAVING_HOSTS + host;
}
static inline uint64_t leaving_ns(uint64_t where)
{
	return where / LEAVING_HOSTS;
}
static inline unsigned leaving_host(uint64_t where)
{
	return where % LEAVING_HOSTS;
}

/*
 * A scheduler decides what comes next where no clock does (sim_set_scheduler()): anything that
 * could happen may be first. What belongs to one chain (in partial-order reduction: a process)
 * happens in the order in which it was asked for: the steps of a task, the packets that go one way,
 * the lines that a queue pair lands.
 */
enum chain_kind {
	CHAIN_OTHER,
	CHAIN_TASK,
	CHAIN_STORES,	/* a CPU's store buffer */
	CHAIN_SEND,	/* a queue pair gathers and sends */
	CHAIN_REQUESTS, /* packets on their way to the responder */
	CHAIN_RESPONSES,
	CHAIN_LAND,   /* posted data become visible */
	CHAIN_ANSWER, /* what is not posted takes effect; acknowledgements */
	CHAIN_FAILS,  /* a host loses its power; its peers give up */
	CHAIN_KINDS
};
static inline uint64_t chain_name(uint64_t name_hash, enum chain_kind kind)
{
	return name_hash << 4 | kind;
}
static inline enum chain_kind chain_kind(uint64_t chain)
{
	return (enum chain_kind)(chain & 15);
}
struct scheduler {
	/* Is it known which chain goes on, without listing all that could? Then it is *chain. */
	bool (*knows)(struct scheduler *scheduler, uint64_t *chain);
	/* Which of these n, all different, goes on; each could. */
	unsigned (*pick)(struct scheduler *scheduler, const uint64_t *chain, unsigned n);
	/* What goes on now makes it possible that something of `chain` happens. */
	void (*enables)(struct scheduler *scheduler, uint64_t chain);
	void (*touched)(struct scheduler *scheduler, enum touch what, uint64_t where, uint64_t len);
	/* A thing (named by any number) is handed over, and taken: the one comes before the other
	 * by nature. */
	void (*gives)(struct scheduler *scheduler, uint64_t thing);
	void (*takes)(struct scheduler *scheduler, uint64_t thing);
};

#endif
