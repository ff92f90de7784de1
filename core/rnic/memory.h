/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_MEMORY_H
#define TM_RNIC_MEMORY_H
/*
 * The interface through which a host's RNIC touches the host's memory. A simulation's host has DRAM
 * and may have a pool of PM, with the persistence model under it (sim_ground.c). The provider's has
 * the program's memory, which may be gone when it is touched (core/provider/base/fault_safe.c).
 *
 * A function that returns bool says false when the memory is gone: the access fails, and nothing
 * else. What a host has not is NULL.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/rnic/ground.h"

struct rnic_mr;
struct packet_name;

/* Where memory that is to be registered lies in the host's PM. */
struct pm_place {
	bool in_pm;   /* all of it does ... */
	uint64_t off; /* ... from this offset of the pool on */
};

struct rnic_memory {
	/* Keys are made of it. NULL: they are small numbers, the same in every run. */
	uint32_t (*random)(void);
	/* 0 or an errno: may [at, at + len) be registered with these rights? */
	int (*check)(void *memory, const void *at, uint64_t len, unsigned access,
		     struct pm_place *place);
	/* Within a region, by addresses of this process. What is written becomes visible by
	 * aligned words, which are never torn, the last one after all others. */
	bool (*read)(void *memory, const struct rnic_mr *mr, void *to, const uint8_t *from,
		     uint32_t len);
	bool (*write)(void *memory, const struct rnic_mr *mr, uint8_t *to, const void *from,
		      uint32_t len, const struct packet_name *name);
	/* In one access, atomic against the program's CPUs too; the RNIC's other atomics are made
	 * of it. NULL: whatever the RNIC does in one event is atomic. */
	bool (*compare_swap)(uint64_t *at, uint64_t compare, uint64_t swap, uint64_t *original,
			     const struct packet_name *name);
	/* What was written to [at, at + len) of a region is durable on return. mr NULL: all that
	 * the queue pair wrote is pushed out of the buffers between RNIC and memory, as a READ does
	 * that. */
	bool (*flush)(void *memory, const struct rnic_mr *mr, const uint8_t *at, uint64_t len,
		      const struct packet_name *name);
	/* What the queue pair wrote to [at, at + len) of a region is durable on return, wherever it
	 * was. NULL: nothing here is ever durable. */
	bool (*commit)(void *memory, const struct rnic_mr *mr, const uint8_t *at, uint64_t len,
		       const struct packet_name *name);
	/* Write an aligned word, which is visible and durable at one moment. NULL: write(). */
	bool (*commit_word)(void *memory, const struct rnic_mr *mr, uint8_t *at, uint64_t word,
			    const struct packet_name *name);
	/* The bytes have reached the RNIC's buffers, and will be written. */
	void (*arrive)(void *memory, const struct rnic_mr *mr, uint8_t *to, const void *from,
		       uint32_t len, const struct packet_name *name);
	/* The CPU that posts reads inline data. NULL: memcpy(). */
	void (*load)(void *memory, void *to, const void *from, size_t len);
	/* Do stores of a CPU wait in a store buffer? Then ring(arg) is called when those before
	 * this one are visible; arg stays. */
	bool (*has_store_buffers)(const void *memory);
	void (*post)(void *memory, rnic_event_fn *ring, void *arg);
	/* A place of the pool in words, "log+0x240". */
	void (*place_name)(const void *memory, uint64_t off, char *buf, size_t len);
};

#endif
