/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_MR_H
#define TM_RNIC_OBJECTS_MR_H
/* Memory regions, and memory windows on them: keys, rights, bounds. mr.c */
#include "core/rnic/objects/device.h"

enum mr_kind { MR_REGION, MR_NULL, MR_WINDOW_1, MR_WINDOW_2 };

/* A region, or a window on one. */
struct rnic_mr {
	struct ibv_mr ibv; /* a window has the rkey that it is bound with, and no lkey */
	struct ibv_mw mw;  /* what the user of a window holds */
	uint64_t iova;	   /* what addresses in work requests count from */
	uint8_t *host;	   /* where that is in this process */
	uint64_t len;
	int access;
	bool used; /* the program holds it */
	bool live; /* and it has a key that is good: a window is bound */
	uint8_t kind;
	bool in_pm;	 /* all of it lies in the host's pool ... */
	uint64_t pm_off; /* ... from this offset on */
	uint8_t generation;
	uint32_t index;		/* the upper 24 bits of its keys */
	uint32_t next_slot;	/* with the same hash */
	uint32_t windows;	/* bound to this region */
	struct rnic_mr *region; /* that this window is bound to */
	uint32_t qpn; /* of the queue pair that this window serves, 0: any of its domain */
};

/* The live region with this key if it belongs to pd, allows all of `access`, and contains [va, va +
 * len). */
struct rnic_mr *mr_local(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t lkey, int access,
			 uint64_t va, uint64_t len);
/* The same for the peer of a queue pair: a live region, or a window that is bound. */
struct rnic_mr *mr_remote(const struct rnic_qp *qp, uint32_t rkey, int access, uint64_t va,
			  uint64_t len);
/* The same, whatever its bounds are. */
struct rnic_mr *mr_remote_whole(const struct rnic_qp *qp, uint32_t rkey, int access);
/* The region whose other key this is (the lkey where a `remote` access needs the rkey), if it would
 * allow the access by the right one; NULL: there is none. */
struct rnic_mr *mr_mixed_up(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t key, int access,
			    uint64_t va, uint64_t len, bool remote);
/* The region with this lkey, whatever domain it is in; NULL: there is none. */
struct rnic_mr *mr_of_lkey(struct rnic_hca *hca, uint32_t lkey);
/* The bound window with this rkey; NULL: there is none. */
struct rnic_mr *mr_of_window(struct rnic_hca *hca, uint32_t rkey);
/* A slot for a new region or window, named; NULL: all are in use. */
struct rnic_mr *mr_slot(struct rnic_hca *hca);
uint32_t mr_key(const struct rnic_mr *mr, bool remote);
/* Everything that was let in for the region lands. */
void mr_settle(struct rnic_hca *hca, const struct rnic_mr *mr);

static inline const struct rnic_ground *mr_ground(const struct rnic_mr *mr)
{
	return &to_hca(mr->ibv.context)->net->ground;
}
static inline uint8_t *mr_host(const struct rnic_mr *mr, uint64_t va)
{
	return (uint8_t *)((uintptr_t)mr->host + (va - mr->iova)); /* host may be NULL */
}
/* Bytes from `at` to the end of its line. DRAM counts from the region's start, so that lines do not
 * depend on where the heap put it. */
static inline uint32_t mr_line_left(const struct rnic_mr *mr, const uint8_t *at)
{
	uint64_t off = (uint64_t)(at - mr->host) +
		       (mr->in_pm ? mr->pm_off : (uintptr_t)mr->host & 15);
	return LINE - off % LINE;
}
/* For traces: words for an address in a region (dead or alive) of any host of this net. */
void rnic_key_place(const struct rnic_net *net, uint32_t rkey, uint64_t va, char *buf, size_t size);

#endif
