/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_OCTOPUS_TX_H
#define TM_STORES_OCTOPUS_TX_H
/*
 * The transactions of Octopus (SV 3.2, ER 1): collect-dispatch, and two-phase commit beside it. Two
 * servers have the items, each the keys whose home it is, and each coordinates the transactions
 * of every second client: it collects what is read and written, which locks it, logs what is new,
 * and dispatches that into the participant's items by RDMA WRITEs. Only it has a log of it.
 *
 *	+---------------------------+----------------------+
 *	| items: item[keys + 1]     | log: entry[updates'] |
 *	+---------------------------+----------------------+
 *
 *	item	0x00 u64 lock	 see octopus/lock.h; the writer is a server's number + 1. The item
 *				 is locked for transactions that read it as well
 *		0x08 u64 version how often it was written; 0: never, and the item may be free
 *		0x10 u32 len	 of the value; all ones: there is none
 *		0x14 u32 klen	 0: the item is free
 *		0x18 u8  key[32]
 *		0x40 ... the value
 *
 *	entry	0x00 u64 id, u8 op (0: unused), u8 n, u8 coordinator + 1
 *		0x40 ... n items as they are to be, with their offsets in place of locks
 *		... in the last line: u64 prepared, u64 commit, u64 ended
 *
 *	client		coordinator				participant
 *	TXN	----->	locks its items
 *			COLLECT			----->		locks, answers with the items
 *			logs; commit
 *			WRITEs new items	----->
 *			PERSIST			----->		flushes them
 *			its own items; ended
 *			WRITEs zeros to locks	----->
 *	answer	<-----
 *
 * With mode=two_phase the participant gets the new items by PREPARE, and logs them itself;
 * COMMIT tells it to bring them into place.
 *
 * A lock that is taken is not waited for: the transaction is aborted.
 *
 * Recovery. A server that comes back frees its locks, and brings its own items to what its
 * committed entries say. It then dispatches again what these have for the other one; and asks
 * it, by RESUME, to give back what the dead process had locked there, and whether it has a
 * transaction of its own under way with items from here. Until it has not, nothing here is
 * locked or read by anyone, and the other one begins no transaction that needs items from here. As
 * an entry has ended, durably, before the first of its locks goes, no entry is dispatched over what
 * came after it.
 *
 *	pool.c		items, entries, the structural check
 *	coordinator.c	a transaction; what becomes of those of a former life
 *	participant.c	the other server's requests
 *	server.c	recovery, and the start
 *	client.c	what clients do
 *	octopus_tx.c	the store: knobs, variants, what it promises
 */
#include "core/stores/kv_small.h"
#include "core/stores/octopus/lock.h"
#include "core/stores/rpc.h"

enum { MODE, COMMIT_BYTE, DISPATCH_FLUSH, LOG_FENCE, BUG, KNOBS };
enum { MODE_COLLECT_DISPATCH, MODE_TWO_PHASE };
enum { COMMIT_FIRST, COMMIT_LAST };
enum { DISPATCH_CPU, DISPATCH_READ, DISPATCH_NONE };
enum { FENCE_EACH, FENCE_LAST, FENCE_NONE };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define OCTX_BUGS(X)                                                                               \
	X(commit_early, "", ATOM | FSCK | DUR, "the commit byte is durable before the entry is")   \
	X(unlock_first, "", RDA | SSER | ATOM, "locks go before the new items are dispatched")     \
	X(unflushed, "", DUR | RDA | NORES,                                                        \
	  "the coordinator flushes neither its log nor its items")                                 \
	X(refusal_keeps, "", LIVE, "a coordinator that is refused keeps what it has locked")       \
	X(locks_kept, "", FSCK | LIVE, "recovery leaves locks as they are")                        \
	X(orphans_kept, "", LIVE, "the other server keeps what a dead coordinator had locked")     \
	X(redo_own, "", ATOM | DUR, "recovery brings only the coordinator's own items to date")    \
	X(open_early, "", RDA | DUR, "a server that comes back asks nobody")                       \
	X(unlock_early, "", DUR | LIN, "the next transaction notes that the one before has ended") \
	X(ended_early, "", ATOM | DUR, "the entry has ended before its items are dispatched")      \
	X(uncommitted_redone, "", NORES | ATOM, "recovery takes each entry for committed")         \
	X(in_doubt_kept, " mode=two_phase", ATOM,                                                  \
	  "a participant does by itself what it has prepared")
enum { NO_BUG, OCTX_BUGS(KV_BUG_VALUE) };

#define OCTX_SERVERS 2
#define OCTX_NONE    UINT32_MAX /* in place of a value's length */
#define OCTX_ITEMS   0		/* the region that the other server WRITEs and READs */

/* An item in the pool, in a message, and in the log. */
struct octx_item {
	union {
		uint64_t lock; /* in the pool */
		uint64_t off;  /* elsewhere: where it is in its server's items */
	};
	uint64_t version;
	uint32_t len, klen;
	uint8_t key[TM_MAX_KEY];
	uint8_t writes; /* in a message to a coordinator: there is a new value, or none from now on
			 */
	uint8_t zero[7];
	uint8_t data[];
};
_Static_assert(sizeof(struct octx_item) == TM_LINE, "values begin on lines");
/* What a WRITE brings: all but the lock. */
#define OCTX_FROM offsetof(struct octx_item, version)

enum octx_op {
	OCTX_TXN = 1, /* of a client; of an entry, that it is used */
	OCTX_COLLECT,
	OCTX_PREPARE,
	OCTX_COMMIT,
	OCTX_PERSIST,
	OCTX_RELEASE,
	OCTX_RESUME,
};

/* A message, and an entry of the log: n items follow. */
struct octx_txn {
	uint64_t id;
	uint8_t op;
	uint8_t n;
	uint8_t coordinator; /* an entry's, + 1 */
	uint8_t zero;
	int32_t status; /* of an answer */
	uint8_t none[48];
};
_Static_assert(sizeof(struct octx_txn) == TM_LINE, "items begin on lines");

/* The end of an entry. */
struct octx_tail {
	uint64_t prepared, commit, ended;
	uint8_t zero[40];
};

struct octx_pool {
	const struct tm_params *params;
	uint8_t *items, *log;
	size_t items_bytes;
	uint64_t entries;
};

struct octx_server {
	struct tm_params params;
	struct tm_env env;
	struct octx_pool pool;
	struct rpc_server rpc, others; /* of clients; of the other server */
	struct rpc_conn other;	       /* to it */
	struct octx_txn *ask;	       /* DRAM: what is said to it, and its answer */
	uint64_t used;		       /* entries */
	bool collected;		       /* a transaction has, or may have, items locked there */
	bool redone;		       /* what the former life has committed has been dispatched */
	bool open;		       /* others may lock */
	bool awaited;	   /* the other one waits until nothing here is of its former life */
	uint64_t *unended; /* a seeded bug: the word to be set, or NULL */
};

/* --- pool.c --- */

size_t octx_pm_bytes(const struct tm_params *params);
unsigned octx_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
struct octx_pool octx_pool_at(const struct tm_params *params, uint8_t *pm);
size_t octx_txn_bytes(const struct tm_params *params, unsigned n);
struct octx_item *octx_item(const struct tm_params *params, struct octx_txn *txn, unsigned i);
/* The server whose items have the key. */
unsigned octx_home(const uint8_t key[TM_MAX_KEY]);
struct octx_item *octx_item_at(const struct octx_pool *pool, uint64_t off);
/* Lock the key's item, or one that is free and has the key from now on. -EAGAIN: it is locked;
 * -ENOSPC: there is neither. */
int octx_lock_item(const struct octx_pool *pool, const struct octx_item *key, unsigned coordinator,
		   struct octx_item **item);
/* What an item of a transaction says, without its lock; *len bytes. */
static inline const void *octx_image(const struct octx_item *item, size_t *len)
{
	*len = sizeof(*item) - OCTX_FROM + (item->len == OCTX_NONE ? 0 : item->len);
	return &item->version;
}
/* Bring the items whose home this is into place, durably. */
void octx_apply(const struct tm_env *env, const struct octx_pool *pool, struct octx_txn *txn,
		bool flush);
struct octx_txn *octx_entry(const struct octx_pool *pool, uint64_t i);
struct octx_tail *octx_tail(const struct octx_pool *pool, struct octx_txn *entry);
/* Has it been committed, here, and not ended? */
bool octx_to_redo(const struct octx_pool *pool, struct octx_txn *entry, unsigned server);
/* Could all of it be meant? */
bool octx_entry_sane(const struct octx_pool *pool, struct octx_txn *entry);
/* Free what the server has locked here; all that is locked: OCTX_SERVERS. */
void octx_free_locks(const struct octx_pool *pool, unsigned server);
/* tm_store.fsck */
void octx_fsck(const struct tm_env *env, struct tm_fsck *fsck);

/* --- coordinator.c --- */

/* Do it. 0; -EAGAIN: it is aborted; -ENOSPC, and nothing is done either. `old` gets what its
 * items were. */
int octx_coordinate(struct octx_server *server, struct octx_txn *txn, struct octx_txn *old);
/* What a server does that has begun: it brings what its log says to the other one, and waits until
 * nothing there is about its former life. */
void octx_resume(struct octx_server *server);
/* Put the items that are new into the log, durably: those that the transaction writes, which were
 * `old` before; `old` NULL: all, as they are. NULL: the log is full. */
struct octx_txn *octx_append(struct octx_server *server, struct octx_txn *txn, struct octx_txn *old,
			     unsigned coordinator);
/* Set a word of an entry's tail, durably. */
void octx_set(const struct octx_server *server, uint64_t *word);
/* Forget what the other server had prepared here, and has not committed. */
void octx_forget_prepared(const struct octx_server *server);

/* --- participant.c --- */

/* An rpc_handler of the other server's requests. */
size_t octx_participate(void *server, const struct rpc_msg *msg, void *reply, size_t cap);
/* Lock the transaction's items whose home this is, for the coordinator; `old` gets what they are.
 * -EAGAIN, -ENOSPC: none is locked. */
int octx_lock(struct octx_server *server, struct octx_txn *txn, struct octx_txn *old,
	      unsigned coordinator);

/* tm_store's functions of these names. */
int octx_recover(const struct tm_env *env);
int octx_serve(const struct tm_env *env);
int octx_open(const struct tm_env *env, void **out);
int octx_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int octx_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int octx_del(void *client, const void *key, size_t klen);
int octx_transact(void *client, struct tm_txn *txn);

#endif
