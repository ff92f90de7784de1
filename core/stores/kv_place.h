/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_KV_PLACE_H
#define TM_STORES_KV_PLACE_H
/*
 * A server places values in a pool of kv_pool.h and persists them before it answers: the value,
 * then the entry that names it (EF 3). A new entry is used when all else of it is durable; one that
 * is there already changes by one store of 8 bytes. Which room is reserved is known in DRAM only:
 * after a power failure the log goes on after the last value that an entry names. A store may give
 * the room of values away that have been replaced (enum kv_reuse); then there is no order of values
 * in the log, and what no entry names is free after a power failure.
 */
#include "core/stores/kv_pool.h"
#include "core/stores/kv_rooms.h"

/* What a store's knobs and seeded bugs take away. */
enum kv_lacks {
	KV_LACKS_PERSIST = 1,	/* nothing is flushed */
	KV_LACKS_VALUE = 2,	/* values are not */
	KV_LACKS_LINES = 4,	/* of a value the first line is */
	KV_LACKS_ENTRY = 8,	/* entries are not */
	KV_LACKS_DELETE = 16,	/* a DELETE is not */
	KV_LACKS_ORDER = 32,	/* the entry comes before the value */
	KV_LACKS_PATIENCE = 64, /* room is given away before what replaces it is there */
};

/* A value has been replaced or deleted, durably: when is its room another one's? */
enum kv_reuse {
	KV_REUSE_OFF,	  /* never */
	KV_REUSE_AT_ONCE, /* now */
	KV_REUSE_GRACE,	  /* KV_LEASE_NS later */
};
/* A client that has READ a value so long after it began to look for it has perhaps READ another:
 * longer than a GET takes, shorter than a client may stall. */
#define KV_LEASE_NS 1000000ull /* 1 ms */

struct kv_place {
	struct kv_pool pool;
	uint64_t tail; /* lines */
	uint32_t max_vlen;
	unsigned lacks; /* enum kv_lacks, bits */
	enum kv_reuse reuse;
	struct kv_rooms rooms; /* of values, where they are reused: there is no tail */
};

/* A value's place, and whose value it is. */
struct kv_placed {
	uint8_t klen;
	uint32_t vlen;
	uint64_t line;
	uint8_t key[TM_MAX_KEY];
};

/* A server's, over a pool that recovery has been through. */
struct kv_place kv_place_at(const struct tm_env *env, unsigned lacks);
/* From now on room is given away, which is no other one's yet. 0 or -ENOMEM. */
int kv_place_reuse(struct kv_place *place, enum kv_reuse reuse);
/* tm_store.recover: what anything may have been lost of. */
int kv_place_recover(const struct tm_env *env);
/* Room for the value of a PUT. 0, -EMSGSIZE or -ENOSPC. */
int kv_place_reserve(struct kv_place *place, struct kv_placed *value, const struct kv_req *req);
/* The value is there: make it durable, then known. 0 or -ENOSPC. */
int kv_place_commit(struct kv_place *place, const struct kv_placed *value);
/* A PUT whose value came with the request: all of the above. */
int kv_place_put(struct kv_place *place, const struct kv_req *req, const void *bytes);
/* The key's value, *vlen bytes in the pool; NULL: there is none. */
const void *kv_place_get(const struct kv_place *place, const uint8_t key[TM_MAX_KEY],
			 uint32_t *vlen);
/* Durable when it returns. */
void kv_place_del(struct kv_place *place, const uint8_t key[TM_MAX_KEY]);
/* Execute any of the three requests; `bytes`: a PUT's. Its status. What a GET has found is *value,
 * *vlen bytes in the pool. */
int kv_place_execute(struct kv_place *place, const struct kv_req *req, const void *bytes,
		     const void **value, uint32_t *vlen);
/* Bytes of the pool are durable when it returns, unless the store does without. */
void kv_place_persist(const struct kv_place *place, const void *from, size_t len);

#endif
