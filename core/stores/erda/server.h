/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_ERDA_SERVER_H
#define TM_STORES_ERDA_SERVER_H
/*
 * The server's state, which its two tasks share: "server" (server.c) answers requests,
 * "cleaner" (clean.c) moves a log to its other region while they go on.
 *
 * Between two accesses to PM either may be held up, and the other runs. So while a
 * log is cleaned both change an entry's atomic region by compare-and-swap; and a
 * phase begins when it is set *and* no request is being handled that began before.
 */
#include "core/stores/erda/layout.h"
#include "core/stores/erda/wire.h"

/* What is done with a log now; of it only MERGE and REPLICATE are durable (enum erda_clean). */
enum erda_phase {
	PHASE_IDLE,
	PHASE_INFORM,	 /* clients get their notices; all is as usual */
	PHASE_PREPARE,	 /* no client has an address: entries lose their previous versions */
	PHASE_MERGE,	 /* latest versions are copied */
	PHASE_REPLICATE, /* updates go to the other region; those of the phase before are copied
			  * too */
	PHASE_END	 /* entries are flipped */
};

/* A head's log. */
struct log {
	enum erda_phase phase;
	unsigned region;	     /* the current one */
	uint64_t tail[ERDA_REGIONS]; /* last-written address: bytes from the region's start */
	uint64_t boot_tail;    /* of the current region, when the server started or the cleaning
				* ended */
	uint64_t cleaned_tail; /* when the last cleaning ended; UINT64_MAX: there was none */
	uint64_t reserved_end; /* of the other region, from PHASE_REPLICATE on: where the updates
				  begin */
	uint64_t limit;	       /* bytes: updates during a cleaning stay below it */
	uint64_t epoch;	       /* how often clients had to get a notice */
	bool wanted;	       /* clean it */
	/*
	 * Where objects start, in units: those that got their address since boot_tail, in
	 * order, and older ones that no entry names any more. The others are in the table.
	 */
	uint32_t *made;
	uint32_t mades, room;
};

struct server {
	struct erda_geo geo;
	struct rpc_server rpc;
	struct erda_index index;
	uint8_t *pm;
	struct log log[ERDA_MAX_HEADS];
	uint64_t moves; /* displacement counter; exported */
	uint64_t timeout_ns;
	struct erda_req *slot; /* request slots, by client number; exported */
	unsigned slots;
	uint32_t *acked; /* by client number: the last BEGIN that it has acknowledged */
	uint32_t begins; /* number of the last BEGIN; wraps, and is never 0 then */
	bool handling;	 /* a request is being handled */
	bool cleaner;	 /* the task has been started */
	uint8_t *object; /* an object that the server writes, before it does */
	bool pending;	 /* knob reply_first: the update below has been answered, not done */
	struct erda_req pending_req;
	uint32_t pending_off;
};

static inline uint8_t *log_at(const struct server *server, unsigned head, unsigned region)
{
	return server->pm + erda_region_off(&server->geo, head, region);
}

static inline struct erda_head *head_of(const struct server *server, unsigned head)
{
	return &erda_heads(server->pm)[head];
}

/* --- log.c --- */

/* Bytes that an object of `len` bytes takes. */
size_t log_aligned(const struct erda_geo *geo, size_t len);
/*
 * Space for `len` bytes at a region's tail, or at the start of the next segment: *at, and
 * the tail after it. -ENOSPC: not below `limit`.
 */
int log_place(const struct server *server, const struct log *log, unsigned region, size_t len,
	      uint64_t limit, uint64_t *at, uint64_t *tail);
/* What is below `tail` may hold objects: durable before anything names one. */
void log_use(struct server *server, unsigned head, unsigned region, uint64_t tail);
/* Remember where an object starts: first there has to be room for it, then it cannot fail. */
int log_room_for(struct log *log, uint32_t more);
void log_made(struct log *log, uint32_t off);
/* Make the region known to clients; clients' accesses end. */
int log_export(struct server *server, unsigned head, unsigned region);
void log_unexport(struct server *server, unsigned head, unsigned region);

/* --- clean.c --- */

/* Have a log cleaned: soon, by the cleaner. -EALREADY: that is so already. */
int clean_want(struct server *server, unsigned head);
/*
 * The entry's region with `off` as its newest version, as the log's phase demands it,
 * and the region in which that is.
 */
uint64_t clean_put_off(const struct server *server, const struct log *log, uint64_t m,
		       uint32_t off);
/* In which region updates are written. */
static inline unsigned clean_put_region(const struct log *log)
{
	return log->phase >= PHASE_REPLICATE ? !log->region : log->region;
}
/* An entry as it is after the cleaning. */
uint64_t clean_flipped(const struct server *server, const struct log *log, uint64_t m);

/* Where an entry's versions are, in the order in which a reader takes them. */
struct version {
	uint8_t region;
	uint32_t off;
};
unsigned clean_versions(const struct server *server, const struct log *log, uint64_t m,
			struct version version[2]);

#endif
