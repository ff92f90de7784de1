/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_HYDRADB_PAIR_H
#define TM_STORES_HYDRADB_PAIR_H
/*
 * HydraDB with a replica (SV 3.1, table 2): two servers of hydradb/hydradb.h. Clients ask the
 * primary. What it has executed it WRITEs as a record into a ring in the secondary's DRAM, which
 * polls it and executes the record, too.
 *
 *	client		primary				secondary
 *	request  --->	executes it
 *			WRITE record  ------------->	ring: executes it
 *						<---	WRITE acknowledgement, if asked
 *		 <---	WRITE reply
 *
 *	default	 strict: the primary replies when the secondary has acknowledged the record. Both
 *		 persist what they execute
 *	literal	 strict, in DRAM: nothing is flushed
 *	nic	 the primary replies when the secondary's NIC has acknowledged the record
 *	relaxed	 the primary replies at once, and asks for an acknowledgement now and then
 *
 *	record	a message of hydradb.h whose marks are its CRC; its body:
 *		0x00 u64 seq	1, 2, ...; its place in the ring is (seq - 1) modulo PAIR_RECORDS
 *		0x08 u64 version	of the item
 *		0x10 u32 asks	for an acknowledgement
 *		0x18 ...	the request. PAIR_CLEAR: whatever there is, is no more
 *
 *	acknowledgement	u64: bits 63..8 records that were executed; bits 7..0 how often one could
 *		not be: then the primary sends it and those after it again
 *
 * The first record after a connection is PAIR_CLEAR, then follows a copy: a PUT for each key that
 * there is. When all of that is acknowledged the secondary is a member.
 *
 * When the primary's lease at the configuration service has ended, the secondary closes the
 * connection by which it writes, executes the rest of its ring, and makes itself the primary, if
 * the configuration is still the one that it has seen. A primary whose secondary does not answer
 * leaves it out of the configuration before it replies.
 *
 * Nothing tells a client of a change that READs by its pointer from a server which is alive and was
 * left out. So no lease of a pointer lasts longer than the primary's own at the service, from
 * before it asked; and a value that it has looked up it returns only while that lasts.
 *
 *	ring.c		 records and their acknowledgements, both ends
 *	roles.c		 the primary, the secondary, and how they change
 *	hydradb_pair.c	 the store: knobs, variants, what it promises
 */
#include "core/stores/hydradb/server.h"
#include "core/stores/members.h"

enum { REPLICATION = KNOBS, POINTERS_END, PAIR_KNOBS };
enum { STRICT, NIC, RELAXED };
enum { END_SERVICE, END_OWN };
/* Seeded bugs, as HYDRADB_BUGS. */
#define PAIR_BUGS(X)                                                                              \
	X(skips_ring, " replication=nic", LIN | DUR | DURN,                                       \
	  "the new primary serves without the rest of its ring")                                  \
	X(not_fenced, " replication=nic", LIN | DUR | DURN | FENCE,                               \
	  "the old primary's WRITEs land still")                                                  \
	X(record_front, "", RDA | LIN | DUR | DURN,                                               \
	  "a record is executed when its first mark is there")                                    \
	X(member_early, "", LIN | DUR | DURN, "the secondary is a member before it has its copy") \
	X(copy_unlocked, "", LIN | DUR | DURN | AGREE | LIVE,                                     \
	  "the primary executes updates while it makes a copy")                                   \
	X(alone_unsaid, "", LIN | DUR | DURN, "a primary goes on alone, and does not say so")     \
	X(lease_unread, "", LIN | DUR | DURN, "a primary answers without a look at its lease")
enum { PAIR_NO_BUG = HYDRADB_NO_BUG - 1, PAIR_BUGS(KV_BUG_VALUE) };

#define PAIR_RING    (HYDRADB_REPLIES + 1) /* an exported region, write only */
#define PAIR_RECORDS 4
#define PAIR_NAP_NS                                                                         \
	16000000       /* the longest of whoever waits for the other server, or for clients \
			*/
#define PAIR_CLEAR 101 /* where a request has enum kv_op */

struct pair_record {
	uint64_t seq, version;
	uint32_t asks, zero;
	struct kv_req req;
};

struct pair {
	struct hydradb_server server; /* first: it is one */
	struct tm_env env;
	struct tm_params record_params; /* of messages that are records */
	size_t record_bytes;
	bool serves; /* it is the primary */
	bool locked; /* a task executes a request, or makes a copy */
	/* The primary's. */
	struct rpc_conn conn;	  /* to the secondary */
	bool connected, mirrored; /* it gets each record */
	uint8_t *sent_record;	  /* DRAM: the last PAIR_RECORDS, as they are in the ring */
	uint64_t sent;		  /* records */
	uint8_t failures;	  /* of which it knows */
	struct rt_config known;	  /* with the lease by which it serves */
	/* The secondary's. */
	uint8_t *ring;		 /* DRAM */
	uint64_t executed, word; /* records; the acknowledgement */
	bool owes_word;
};

/* --- ring.c --- */

int pair_ring_open(struct pair *pair);
/* A primary has connected: what came from one before is no more. */
void pair_ring_begin(struct pair *pair);
/* Send a record, `asks` for an acknowledgement. -EIO: the secondary is not there. */
int pair_ring_send(struct pair *pair, const struct kv_req *req, uint64_t version, bool asks);
/* Wait until all that was sent is acknowledged. */
int pair_ring_wait(struct pair *pair);
/* The secondary: is there a next record? Execute it. */
bool pair_ring_arrived(struct pair *pair);
void pair_ring_execute(struct pair *pair);
/* Send the acknowledgement that it owes to the primary, its connection `index`. */
void pair_ring_acknowledge(struct pair *pair, unsigned index);

/* --- roles.c --- */

int pair_serve(const struct tm_env *env);
int pair_dump(const struct tm_env *env, const void *key, size_t klen, struct tm_dump *out);
int pair_open(const struct tm_env *env, void **client);

#endif
