/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_HTM_H
#define TM_RT_HTM_H
/*
 * Hardware transactional memory, as much of it as there is between a server's task and what else
 * reaches its PM: a region, whose lines the task names. If the NIC reads or writes one of them
 * before the region ends, or another of the server's tasks stores there, it is aborted, and none of
 * its stores is made. It is, too, if it names more lines than the CPU keeps (RT_HTM_LINES). A
 * server has one region at a time: a second task that begins one aborts the first's.
 *
 *	rt_htm_begin();
 *	rt_htm_touches(record, bytes);		before the first load of each
 *	... loads ...
 *	if (rt_htm_commits()) {			else it was aborted
 *		... stores: others see all of them, or none ...
 *		rt_htm_end();
 *	}
 *
 * The stores come last here, so nothing is to be taken back. Nothing can be flushed in a region.
 * Outside of the simulation each region is aborted, so its user needs another way.
 */
#include <stdbool.h>
#include <stddef.h>

#define RT_HTM_LINES 128

void rt_htm_begin(void);
void rt_htm_touches(const void *addr, size_t len);
void rt_htm_abort(void);
/* Nothing happens any more until rt_htm_end(): no other task runs, nothing lands, no power fails.
 * False: the region was aborted, and has ended. */
bool rt_htm_commits(void);
void rt_htm_end(void);

#endif
