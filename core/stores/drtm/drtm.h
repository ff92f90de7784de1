/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_DRTM_H
#define TM_STORES_DRTM_H
/*
 * DrTM (SV 3.3): transactions over two servers, by HTM and RDMA. Each server has a part of the
 * records, and carries out transactions for its clients. Records of its own are read and written in
 * a region of HTM (core/rt/htm.h); those of the other server are locked by compare-and-swap of
 * their state, or leased, and read and written by READ and WRITE. RDMA is coherent with the CPU's
 * caches: a remote lock aborts the region that has read the state.
 *
 *	+---------------------------------+-------------------------------+
 *	| log: { head; entry[TXN_OPS] }	  | records: { record; value } [] |
 *	+---------------------------------+-------------------------------+
 *
 *	head	0x00 u64 state	 0: nothing; 1: the entries' records are locked, or about to be;
 *				 2: the transaction is committed
 *		0x08 u64 n	 entries
 *
 *	entry	0x00 u64 off, 0x18 u64 server	of a record
 *		0x08 u64 version, 0x10 u64 vlen: what it becomes; the value in lines after it;
 *			 version 0: it stays as it is
 *		0x20 u64 part	 of the transaction
 *
 *	record	0x00 u64 state	 bit 63: locked, by the server in bits 62..55; else bits 54..0:
 *				 when the last lease ends; 0: free
 *		0x08 u64 version  how often it was written
 *		0x10 u64 vlen	 all ones: it has no value
 *		0x18 u8  key[32]
 *		0x38 u64 used	 after the key, so that it is there when this is
 *		0x40 ... the value
 *
 *	1 start	    the log names what is locked; remote records that are written are locked, those
 *		    that are read are leased; all are READ
 *	2 local	    the region: its own records, unless one is locked, or leased and written; the
 *		    leases are confirmed; the log says what remote records become
 *	3 commit    each remote record: WRITE value, version, state, on one connection. Then the log
 *		    is empty, and the client is told
 *
 * What was aborted is tried again, by its client. The fourth time there is no region: all records
 * are locked, in one order for all servers, its own by its own NIC, as remote atomics may be atomic
 * with each other only. Locks of others are waited for.
 *
 * A server that comes back does 3, or unlocks what its log names; then it frees what is locked in
 * its name otherwise. Until it is there, others wait for its locks. All this is durable if caches
 * are flushed when the power fails, as the paper wants it.
 *
 *	record.c	the pool
 *	txn.c		transactions
 *	server.c	clients' messages, and the start
 *	client.c	what clients do
 *	drtm.c		the store: knobs, variants, what it promises
 */
#include "core/stores/kv.h"
#include "core/stores/kv_small.h"
#include "core/stores/members.h"
#include "core/stores/rpc.h"

#define DRTM_SERVERS 2

enum { LOCKS, CONFIRM, MARGIN, FALLBACK, LOCAL_LOCK, LOG_POINT, BUG, KNOBS };
enum { LOCKS_ON, LOCKS_OFF };
enum { CONFIRM_ON, CONFIRM_OFF };
enum { MARGIN_ON, MARGIN_OFF };
enum { FALLBACK_LATE, FALLBACK_FIRST };
enum { LOCK_RDMA, LOCK_CPU };
enum { LOG_IN_HTM, LOG_AFTER };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define DRTM_BUGS(X)                                                                               \
	X(unwatched, " domain=wsp", SSER, "a remote lock does not abort the region that reads")    \
	X(two_ways, " domain=wsp", RDA | LIN | SSER, "the lock is released on another connection") \
	X(log_late, " domain=wsp", ATOM | DUR, "the log says what is committed when all is done")  \
	X(local_leased, " domain=wsp", SSER, "the region writes what is leased")                   \
	X(lease_forever, " domain=wsp", LIVE, "a lease never ends for others")                     \
	X(read_first, " domain=wsp", SSER | LIN, "a record is READ before it is locked")           \
	X(unlock_first, " domain=wsp", RDA | SSER, "the lock goes before the value comes")         \
	X(redo_blind, " domain=wsp", LIN | SSER | DUR,                                             \
	  "the log stays, and recovery does again what it says without a look at the lock")        \
	X(undone, " domain=wsp", ATOM | DUR, "recovery unlocks what is committed, too")            \
	X(locks_kept, "", LIVE, "locks that the log does not name stay")                           \
	X(any_order, " domain=wsp fallback=first", LIVE,                                           \
	  "without a region records are locked "                                                   \
	  "as the client names them")
enum { NO_BUG, DRTM_BUGS(KV_BUG_VALUE) };

#define DRTM_ABSENT   UINT64_MAX
#define DRTM_LOCKED   (1ull << 63)
#define DRTM_OWNER(n) ((uint64_t)(n) << 55)

struct record {
	uint64_t state, version, vlen;
	uint8_t key[TM_MAX_KEY];
	uint64_t used;
};
_Static_assert(sizeof(struct record) == TM_LINE, "the value begins on a line");

struct log_head {
	uint64_t state, n, zero[6];
};
enum { LOG_EMPTY, LOG_LOCKS, LOG_COMMITTED };
struct entry {
	uint64_t off, version, vlen, server, part, zero[3];
};

struct drtm_pool {
	struct log_head *log;
	uint8_t *records_at;
	uint32_t records;
	size_t value_bytes, record_bytes, entry_bytes;
};

/* --- messages --- */

/* A client asks a server where a key's record is. */
enum { DRTM_FIND = 101, DRTM_TXN };
/* Then it asks one for a transaction; each record is named once. The reply is the same, with what
 * was read. */
struct drtm_part {
	uint32_t server;
	uint8_t writes, zero[3]; /* else it is read */
	uint64_t off, vlen;	 /* DRTM_ABSENT: it has no value, or is to have none */
};
struct drtm_txn {
	uint8_t op, n, tries, zero; /* tries: it was aborted so often */
	int32_t status;		    /* -EAGAIN: aborted */
	uint8_t bytes[];	    /* { drtm_part, value } [n] */
};

struct drtm_server {
	struct tm_params params;
	struct tm_env env;
	struct rpc_server rpc;
	struct drtm_pool pool;
	struct rpc_conn conn[DRTM_SERVERS]; /* to each, itself too: records are region 0 */
	struct rpc_conn second;		    /* two_ways */
	uint64_t lease[TM_TXN_OPS], version[TM_TXN_OPS]; /* of the transaction's parts */
};

/* The state of a record that this server has locked. */
static inline uint64_t drtm_own_lock(const struct drtm_server *server)
{
	return DRTM_LOCKED | DRTM_OWNER(server->env.server);
}

/* --- record.c --- */

size_t drtm_pm_bytes(const struct tm_params *params);
unsigned drtm_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
struct drtm_pool drtm_pool_at(const struct tm_params *params, uint8_t *pm);
struct record *drtm_record(const struct drtm_pool *pool, uint32_t i);
struct entry *drtm_entry(const struct drtm_pool *pool, uint64_t i);
/* Its record, which is made if there is none; NULL: there is no room. */
struct record *drtm_find(const struct drtm_pool *pool, const uint8_t *key);
bool drtm_is_place(const struct drtm_pool *pool, uint64_t server, uint64_t off);
void drtm_fsck(const struct tm_env *env, struct tm_fsck *fsck);

static inline size_t drtm_txn_bytes(const struct tm_params *params, unsigned n)
{
	return sizeof(struct drtm_txn) +
	       n * (sizeof(struct drtm_part) + kv_round_up(params->max_vlen, 8));
}

static inline struct drtm_part *drtm_part(const struct tm_params *params, struct drtm_txn *txn,
					  unsigned i)
{
	return (struct drtm_part *)((uint8_t *)txn + drtm_txn_bytes(params, i));
}

/* --- txn.c --- */

/* -EAGAIN: it was aborted. `out` gets what was read. */
int drtm_execute(struct drtm_server *server, struct drtm_txn *txn, struct drtm_txn *out);
void drtm_connect(struct drtm_server *server, unsigned to);
/* What the log names becomes what it says, if that is committed, and is free, whatever it takes.
 * `again`: it may be so already. Then the log is empty. */
void drtm_finish(struct drtm_server *server, bool committed, bool again);
/* No lease that is given now, by any server's clock, ends later. */
uint64_t drtm_last_lease(void);

/* tm_store's functions of these names. */
int drtm_recover(const struct tm_env *env);
int drtm_serve(const struct tm_env *env);
int drtm_open(const struct tm_env *env, void **out);
int drtm_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int drtm_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int drtm_del(void *client, const void *key, size_t klen);
int drtm_txn(void *client, struct tm_txn *txn);

#endif
