/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_FARM_H
#define TM_STORES_FARM_H
/*
 * FaRM (SV 2.1, 3.3, 3.4): objects in two regions, each on a primary and one backup, three servers
 * in all. A client READs an object from its primary, without a lock, and coordinates its own
 * transactions. It WRITEs records to its log at each server that takes part:
 *
 *	LOCK		to each primary of a written region, with the versions that were read and
 *			the new values; the primary locks the objects, and answers yes or no
 *	(validate)	READ the heads of what was only read
 *	COMMIT-BACKUP	to each backup of a written region, with the new values. All of them are
 *			acknowledged before the next
 *	COMMIT-PRIMARY	to each primary, which installs the values and unlocks. With the first
 *			acknowledgement the transaction is committed
 *	ABORT		instead: a primary said no, or a version has changed
 *	TRUNCATE	later, when all have acknowledged: records are dropped, and a backup applies
 *			what it drops
 *
 * What an acknowledgement is says the knob `ack`: the NIC's, as in the original, whose memory has
 * a battery; that of an RDMA FLUSH; or the server's CPU, which has persisted the record.
 *
 *	+------------+----------------+------------------+------------------+--------------------+
 *	| head: line | mark[senders]  | region 0: object | region 1: object | log of each sender |
 *	+------------+----------------+------------------+------------------+--------------------+
 *
 *	head	0x00 u64 copying  regions, as bits, of which this is no copy, or none yet
 *
 *	mark	0x00 u64 counter  the sender's transactions up to this one are truncated here
 *		0x08 u64 outcome  of the last one that was recovered: counter << 1 | committed
 *
 *	object	0x00 u64 head	  lock:1 | value:1 | incarnation:8 | version:54
 *		0x08 u8  key[32]  padded with zeros; once written it stays
 *		0x28 u32 vlen
 *		0x2c ... 20 bytes of the value
 *		each further line:
 *		0x00 u16 lv	  the lowest bits of the version
 *		0x02 ... 62 bytes of the value
 *
 *	log	FARM_RING places for records, then two for what recovery has decided
 *
 *	record	0x00 u32 len	  bytes, whole lines
 *		0x04 u32 crc	  of all but this and `seq`, from the header to the last entry
 *		0x08 u64 seq	  1, 2, ...: its place is seq % FARM_RING
 *		0x10 u64 epoch	  the configuration of the transaction
 *		0x18 u64 counter  the sender's transactions, 1, 2, ...
 *		0x20 u32 client
 *		0x24 u8  type; u8 entries; u8 regions: all that the transaction writes, as bits
 *		0x40 { u64 seen; u64 head; u32 slot; u32 vlen; u8 region; u8 zero[7]; u8 key[32];
 *		       the value in whole lines } [entries]
 *		... u64 seq	  the end of the last line
 *
 * The configuration says which servers are members, and who has copies of each region. One member
 * is the manager. When another one's lease has ended, it makes the next configuration without it,
 * and recovers: all members close their clients' connections, and finish what is in their logs;
 * the manager asks them for the records that are left, decides each transaction by votes, and tells
 * all members the decision; then the regions are open again. A region that has one copy only gets
 * another one, by WRITEs of its primary, which grants no locks meanwhile. A client whose
 * connections were closed asks the manager what has become of its transaction. So does a new
 * process of a client; and of a lock that is held for long the holder's connections are closed,
 * and its transactions recovered.
 *
 *	object.c	objects in PM
 *	record.c	records
 *	server.c	a server: its logs, and what others ask of it
 *	recover.c	votes and decisions
 *	manager.c	configurations, copies
 *	client.c	transactions
 *	farm.c		the store: knobs, variants, what it promises
 */
#include <semaphore.h>
#include "core/stores/kv.h"
#include "core/stores/kv_small.h"
#include "core/stores/members.h"
#include "core/stores/rpc.h"

enum {
	ACK,
	LOG_CRC,
	PERSIST_BEFORE_DROP,
	COMMITS,
	SERVES,
	LINE_VERSIONS,
	MEMBERSHIP,
	VOTES,
	BUG,
	KNOBS
};
enum { ACK_CPU, ACK_FLUSH, ACK_NIC };
enum { CRC_ON, CRC_OFF };
enum { PERSIST_ON, PERSIST_OFF };
enum { COMMIT_IN_ORDER, COMMIT_EARLY_PRIMARY, COMMIT_REPORT_AFTER_BACKUP };
enum { SERVE_RECOVERED, SERVE_EARLY };
enum { VERSIONS_ON, VERSIONS_OFF };
enum { MEMBERSHIP_PRECISE, MEMBERSHIP_IGNORED };
enum { VOTES_LOCK, VOTES_NO_LOCK };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define FARM_BUGS(X)                                                                           \
	X(reads_locked, "", RDA | SSER | LIN, "a read does not look at the lock")              \
	X(unvalidated, "", SSER, "what was only read is not validated")                        \
	X(backup_forgets, "", DUR | DURN | SSER | AGREE, "a backup drops records unapplied")   \
	X(mark_early, "", DUR | RDA | ATOM | FSCK,                                             \
	  "a transaction is marked as truncated before its objects are durable")               \
	X(locks_any, "", SSER | LIN | ATOM, "a primary locks what has another version by now") \
	X(loses_locks, "", LIVE, "an ABORT does not unlock")                                   \
	X(not_fenced, "", DUR | DURN | SSER, "recovery leaves clients' connections open")
enum { NO_BUG, FARM_BUGS(KV_BUG_VALUE) };

#define FARM_REGIONS RT_CONFIG_PARTS
#define FARM_SERVERS 3
#define FARM_RING    8
#define FARM_PLACES  (FARM_RING + 2)
#define FARM_DELETED UINT32_MAX /* instead of a length: no value */

/* --- object.c --- */

#define HEAD_LOCK    1ull
#define HEAD_VALUE   2ull
#define HEAD_VERSION 10 /* from this bit on */

struct object {
	uint64_t head;
	uint8_t key[TM_MAX_KEY];
	uint32_t vlen;
	uint8_t first[20];
};
_Static_assert(sizeof(struct object) == TM_LINE, "further lines begin with their version");

struct mark {
	uint64_t counter, outcome;
	uint64_t seen; /* in messages: the last transaction of which there is a record */
	uint64_t zero[5];
};

struct entry {
	uint64_t seen, head;
	uint32_t slot, vlen;
	uint8_t region, zero[7];
	uint8_t key[TM_MAX_KEY];
};
_Static_assert(sizeof(struct entry) == TM_LINE, "values begin on lines");

struct farm_pool {
	struct farm_head {
		uint64_t copying;
	} * head;
	struct mark *mark; /* by client */
	uint8_t *region[FARM_REGIONS], *log;
	size_t object_bytes, region_bytes, record_bytes, log_bytes;
	unsigned senders, slots;
};

struct farm_pool farm_pool_at(const struct tm_params *params, uint8_t *pm);
struct object *farm_object(const struct farm_pool *pool, unsigned region, unsigned slot);
unsigned farm_region(const uint8_t key[TM_MAX_KEY]);
/* The nth slot in which the key may be. */
unsigned farm_slot(const struct farm_pool *pool, const uint8_t key[TM_MAX_KEY], unsigned nth);
static inline uint64_t farm_version(uint64_t head)
{
	return head >> HEAD_VERSION;
}
/* The head after it was `seen`. */
uint64_t farm_next_head(uint64_t seen, bool value);
/* The bytes of an object as they were read: are all lines of its head's version? */
bool farm_is_whole(const struct object *object);
void farm_value(const struct object *object, uint8_t *value);
/* Lines and their versions first, the head last. */
void farm_install(struct object *object, const struct entry *entry);

/* tm_store's functions of these names. */
size_t farm_pm_bytes(const struct tm_params *params);
unsigned farm_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
int farm_format(const struct tm_env *env);
int farm_recover(const struct tm_env *env);
void farm_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int farm_dump(const struct tm_env *env, const void *key, size_t klen, struct tm_dump *out);

/* --- record.c --- */

enum farm_type {
	LOCK = 1,
	COMMIT_BACKUP,
	COMMIT_PRIMARY,
	ABORT,
	TRUNCATE,
	COMMIT_RECOVERY,
	ABORT_RECOVERY
};

struct record {
	uint32_t len, crc;
	uint64_t seq, epoch, counter;
	uint32_t client;
	uint8_t type, entries, regions, zero[25];
};
_Static_assert(sizeof(struct record) == TM_LINE, "entries begin on lines");

/* Begin; add entries; end. */
void farm_record_begin(struct record *record, enum farm_type type, const struct record *like);
void farm_record_add(struct record *record, const struct entry *entry, const void *value);
void farm_record_end(struct record *record, uint64_t seq);
/* The next entry; NULL: first. NULL: there is none. Its value follows it. */
const struct entry *farm_entry(const struct record *record, const struct entry *after);
struct record *farm_place(const struct farm_pool *pool, unsigned client, unsigned place);
/* Is all of a record there, with this number? */
bool farm_is_record(const struct farm_pool *pool, const struct tm_params *params,
		    const struct record *record, uint64_t seq);
/* The same of a place whose number is not known. */
bool farm_has_record(const struct farm_pool *pool, const struct tm_params *params, unsigned client,
		     unsigned place);

/* --- messages --- */

enum farm_op {
	HELLO = 1,  /* a client: may I begin? the manager also says what became of my last */
	DO_LOCK,    /* the LOCK in my log */
	PERSIST,    /* the record in my log */
	PROBE,	    /* servers: are you there? */
	CLOSE_LOGS, /* finish what is in the logs; nothing lands there any more */
	COLLECT,    /* the next record that is left */
	DECIDE,	    /* this transaction is committed, or aborted; with a record */
	FINISH,	    /* all of this client's are decided */
	OPEN,	    /* serve in this configuration */
	SUSPECT,    /* this client has held a lock for long */
	COPY,	    /* a primary: copy the region to that server */
	WIPE,	    /* you are about to get a copy */
	COPIED,	    /* you have it */
};

/* What a configuration says of regions. */
struct farm_map {
	uint32_t members, servers[FARM_REGIONS], primary[FARM_REGIONS], zero;
};

struct ask {
	uint8_t op, region, server;
	uint8_t all;	 /* of all clients; HELLO: you are the manager; CLOSE_LOGS of
			  * one: close its connections; WIPE: the logs, too */
	uint32_t client; /* if not all */
	uint64_t epoch, number, outcome; /* number: of a record, a counter, or a cursor */
	struct farm_map map;
};

struct say {
	int32_t status;
	uint32_t server;
	uint64_t number, seq, outcome;
};

/* --- server.c --- */

struct sender {
	uint64_t next;	  /* record in its log */
	uint64_t last;	  /* transaction of which there was a record */
	uint64_t holds;	  /* the transaction that has locks here; 0: none */
	uint64_t since;	  /* rt_now() then */
	uint64_t durable; /* the transaction whose COMMIT-PRIMARY is; 0: none */
	bool fenced;
	uint32_t live; /* places of its log whose records are not dropped */
	/* the manager's: */
	bool clean; /* nothing of it is in any log */
	bool wanted, dropped;
	uint64_t seen, outcome;
};

struct farm_server {
	struct tm_params params;
	struct tm_env env;
	struct rpc_server rpc;
	struct farm_pool pool;
	sem_t work, locked; /* for the keeper; for who looks how long locks are held */
	bool asked, watching;
	bool busy;   /* a task is at work on what follows */
	bool wanted; /* the keeper waits for it: who looks at logs all the time lets it go first */
	uint64_t epoch, open;
	bool opened; /* once since this process began */
	struct farm_map map;
	struct sender *sender; /* by client */
	uint64_t *done;	       /* likewise: places before this record are free; clients READ it */
	uint32_t quiet;	       /* regions in which no locks are granted */
	struct farm_copy {
		enum { COPY_NONE, COPY_WANTED, COPY_DONE, COPY_FAILED } state;
		unsigned region, to;
		bool wipe;
		uint64_t epoch;
	} copy;
	/* the manager's: */
	uint64_t recovered; /* the last configuration that all members serve in */
	uint64_t began;
	bool cold;
	uint32_t copies; /* regions of which a copy is under way */
	struct rpc_conn peer[FARM_SERVERS];
	bool connected[FARM_SERVERS];
	struct say *reply;
	struct ask *message;
};

size_t farm_message_bytes(const struct tm_params *params);
/* What others ask of a server. The reply's length. */
size_t farm_handle(struct farm_server *server, uint32_t client, const struct ask *ask, size_t len,
		   struct say *say);
int farm_serve(const struct tm_env *env);

/* --- recover.c --- */

/* Ask a server, or this one itself. -errno, or the reply's status; the reply is in server->reply.
 */
int farm_ask(struct farm_server *server, unsigned to, const struct ask *ask,
	     const struct record *record);
/* Decide all transactions that members have records of; of this client, or all (0). `close`: its
 * connections. */
int farm_decide(struct farm_server *server, const struct rt_config *config, uint32_t client,
		bool close);
void farm_map_of(struct ask *ask, const struct rt_config *config);

/* --- manager.c --- */

/* Start what a server does by itself. */
int farm_manage(struct farm_server *server);
/* There is something to do besides. */
void farm_keep(struct farm_server *server);
/* Somebody has a lock. */
void farm_watch_locks(struct farm_server *server);

/* --- client.c: tm_store's functions of these names --- */

int farm_open(const struct tm_env *env, void **out);
int farm_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int farm_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int farm_del(void *client, const void *key, size_t klen);
int farm_txn(void *client, struct tm_txn *txn);

#endif
