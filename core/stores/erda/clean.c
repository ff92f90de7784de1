/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cleaning Erda's log (Erda paper 4.4): the live versions of a head's log move to its other
 * region while requests go on.
 *
 *	inform	   Clients are told to SEND what concerns this head, and acknowledge when
 *		   they hold no address of it. One that does not in time is dropped. Then
 *		   clients' access to the region ends: no WRITE is under way any more.
 *	prepare	   The other region is wiped. Each entry keeps its newest intact version,
 *		   which is made durable; the half of the previous one becomes all ones.
 *	merge	   From the last-written address backwards: a key's first intact object is its
 *		   latest. It is copied, and the free half names the copy. Updates overwrite the
 *		   newest half; New Tag is not flipped.
 *	replicate  Updates go to the other region, after an area that is reserved for the
 *		   objects that were written during the merge, and set the other half. The
 *		   objects of the merge are copied into the area, unless the key has a
 *		   later update.
 *	end	   Each entry with a version in the other region is flipped; the others are
 *		   deleted keys, and are freed. The head switches, and clients are told.
 *
 * What is durable when. A copy, before an entry names it. The head's state, before the
 * entries say what only it explains: MERGE, when all previous versions are gone;
 * REPLICATE, with the end of the area, before the first update after it; the other
 * region, when all entries are flipped. An entry says which region its versions are in,
 * so flips need not be atomic with the switch. Recovery (recover_clean.c) takes a merge
 * back, and brings a replication to its end. The paper has none of this; the knob
 * clean_state=literal leaves the states and the entries' marks out.
 *
 * A key deleted long ago must not come back through an older object: a delete object
 * counts as met, and nothing is copied.
 */
#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include "core/rt/rt.h"
#include "core/stores/erda/server.h"

#define ACK_NS	    50000ull /* how long a client may take to acknowledge, some 20 round trips */
#define LONG_ACK_NS 1000000000ull
#define ROUND_TRIP_NS \
	5000 /* knob clean_wait=round_trip: the longest that there is, says the paper */
#define FIRST_ROOM  64
#define POLL_NS	    1000 /* the first pause of a wait */
#define IDLE_NS	    5000
#define MAX_IDLE_NS 1000000

/* A cleaning of one log. */
struct cleaning {
	struct server *server;
	struct log *log;
	unsigned head, from, to; /* regions */
	uint64_t cut;		 /* the tail when the merge began */
	uint64_t area;		 /* where the reserved area begins */
	uint32_t *at;		 /* where objects of before the merge are, in units */
	uint32_t ats, room;
	bool failed; /* no memory for that */
	bool lazily; /* what is stored in entries is not made durable */
	uint8_t *met;
};

/* ----------------------------------------------------------- what entries mean */

uint64_t clean_flipped(const struct server *server, const struct log *log, uint64_t m)
{
	uint32_t off = erda_oldoff(m);

	if (m == ERDA_EMPTY ||
	    (server->geo.marked && erda_region_of(&server->geo, m, 0) != log->region))
		return m;
	if (off == ERDA_NO_OFFSET)
		return ERDA_EMPTY;
	return erda_only(!(m >> 63), off, server->geo.marked ? !log->region : 0);
}

static uint64_t usual_put_off(const struct erda_geo *geo, uint64_t m, uint32_t off, unsigned region)
{
	if (m == ERDA_EMPTY) {
		/* The public code has 0 for "no previous version", which is also the log's first
		 * position. */
		if (geo->knob.old_zero)
			m = 0;
		m |= geo->marked ? region : 0;
	}
	switch (geo->bug) {
	case BUG_WRONG_HALF:
		return erda_set_half(m ^ 1ull << 63, m >> 63, off);
	case BUG_NO_FLIP:
		return erda_set_half(m, m >> 63, off);
	default:
		return erda_put_off(m, off);
	}
}

uint64_t clean_put_off(const struct server *server, const struct log *log, uint64_t m, uint32_t off)
{
	const struct erda_geo *geo = &server->geo;
	unsigned mark = geo->marked ? log->region : 0, swapped = geo->bug == BUG_CLEAN_WRONG_HALF;

	switch (log->phase) {
	case PHASE_PREPARE:
		if (m == ERDA_EMPTY || !geo->knob.old_half)
			return erda_only(m >> 63, off, mark);
		return erda_set_half(m, m >> 63, off);
	case PHASE_MERGE:
		if (m == ERDA_EMPTY)
			return erda_only(0, off, mark);
		return erda_set_half(m, (m >> 63) ^ swapped, off);
	case PHASE_REPLICATE:
		return erda_set_half(m == ERDA_EMPTY ? m | mark : m, !(m >> 63) ^ swapped, off);
	case PHASE_END:
		return usual_put_off(geo, clean_flipped(server, log, m), off, !log->region);
	default:
		return usual_put_off(geo, m, off, log->region);
	}
}

unsigned clean_versions(const struct server *server, const struct log *log, uint64_t m,
			struct version version[2])
{
	const struct erda_geo *geo = &server->geo;
	unsigned in = erda_region_of(geo, m, log->region), n = 0;
	struct version newest = {(uint8_t)in, erda_newoff(m)},
		       other = {(uint8_t)in, erda_oldoff(m)};
	bool moving = log->phase >= PHASE_MERGE && in == log->region, newer = false;

	if (moving) {
		other.region = !in;
		newer = log->phase >= PHASE_REPLICATE && other.off != ERDA_NO_OFFSET &&
			(uint64_t)other.off * geo->unit >=
				log->reserved_end + (geo->bug == BUG_CLEAN_EDGE);
	}
	if (newer)
		version[n++] = other;
	if (newest.off != ERDA_NO_OFFSET)
		version[n++] = newest;
	if (!newer && other.off != ERDA_NO_OFFSET && (moving || other.off != newest.off))
		version[n++] = other;
	return n;
}

/* ------------------------------------------------------------------- phases */

/* A pause of a wait for others, twice as long each time: the first ones find what takes no longer
 * than a round trip, and a long wait costs few looks. */
static void look_later(uint64_t *nap)
{
	rt_sleep(*nap);
	if (*nap < MAX_IDLE_NS)
		*nap *= 2;
}

/* Between two requests; what is stored after this, without a step, changes with the phase. */
static void enter(struct cleaning *c, enum erda_phase phase)
{
	uint64_t nap = POLL_NS;

	while (c->server->handling && c->server->geo.bug != BUG_CLEAN_HASTY_PHASE)
		look_later(&nap);
	c->log->phase = phase;
}

static void set_state(struct cleaning *c, enum erda_clean phase, unsigned region)
{
	uint64_t *state = &head_of(c->server, c->head)->state;

	*state = erda_state_word(phase, region);
	pmem_persist(state, sizeof(*state));
}

/* -------------------------------------------------------------------- inform */

static bool listens(const struct rpc_peer *peer)
{
	return peer->notices && peer->qp && !peer->failed;
}

static void drop(struct cleaning *c, unsigned peer)
{
	rpc_server_drop(&c->server->rpc, c->server->rpc.peer[peer].client);
}

static bool waits_for_ever(const struct cleaning *c)
{
	return c->server->geo.knob.slow_client == SLOW_WAIT;
}

/*
 * May this client still take its time? From when the notice was sent: while a dead one is waited
 * for others connect, and have theirs.
 */
static bool in_time(const struct cleaning *c, const struct rpc_peer *peer)
{
	uint64_t patience = ACK_NS;

	if (c->server->geo.knob.slow_client == SLOW_DROP_1S)
		patience = LONG_ACK_NS;
	return waits_for_ever(c) || rt_now() - peer->since < patience;
}

/* Tell all connected clients. */
static void tell(struct cleaning *c, enum erda_notice_kind kind)
{
	struct rpc_server *rpc = &c->server->rpc;
	struct erda_notice notice;
	uint64_t nap = POLL_NS;
	bool all = false;

	memset(&notice, 0, sizeof(notice));
	notice.kind = (uint8_t)kind;
	notice.head = (uint8_t)c->head;
	notice.region = (uint8_t)c->log->region;
	notice.number = c->server->begins;
	if (kind == NOTICE_END)
		notice.where = rpc->region[erda_export_log(c->head, c->log->region)];
	for (unsigned i = 0; i < rpc->peers; i++)
		rpc->peer[i].told = 0;
	while (!all) {
		all = true;
		for (unsigned i = 0; i < rpc->peers; i++) {
			struct rpc_peer *peer = &rpc->peer[i];

			if (peer->told || !listens(peer))
				continue;
			/* Before it is sent: a client that takes this place meanwhile has not
			 * got it. */
			peer->told = 1;
			if (rpc_server_notify(rpc, i, &notice, sizeof(notice)) == 0)
				continue;
			peer->told = 0;
			if (!listens(peer))
				continue;
			/* The last notice is still on its way. */
			if (in_time(c, peer))
				all = false;
			else
				drop(c, i);
		}
		if (!all)
			look_later(&nap);
	}
}

/* Numbers wrap, so that none is the larger; a seeded bug compares them all the same. */
static bool acknowledged(const struct server *server, uint32_t client)
{
	if (server->geo.bug == BUG_NOTICE_COMPARED)
		return server->acked[client] >= server->begins;
	return server->acked[client] == server->begins;
}

/* Has this client not yet acknowledged BEGIN? */
static bool waiting_for(const struct cleaning *c, unsigned i)
{
	const struct server *server = c->server;
	const struct rpc_peer *peer = &server->rpc.peer[i];

	/* A client can say any number; with one that was never sent it does not acknowledge. */
	return peer->told && listens(peer) &&
	       (peer->client >= server->slots || !acknowledged(server, peer->client));
}

/* Is there one that may still acknowledge? */
static bool waiting(const struct cleaning *c)
{
	for (unsigned i = 0; i < c->server->rpc.peers; i++) {
		if (waiting_for(c, i) && in_time(c, &c->server->rpc.peer[i]))
			return true;
	}
	return false;
}

/* For clients that connect from now on. */
static void set_word(struct cleaning *c, bool cleaning)
{
	c->server->rpc.word &= ~erda_word(c->head, true, 1);
	c->server->rpc.word |= erda_word(c->head, cleaning, c->log->region);
}

/*
 * Clients that have not acknowledged, before their access ends: a client whose request is refused
 * may ask at once whether it was dropped, and on a slow machine the answer comes before the next
 * line here.
 */
static void drop_silent(struct cleaning *c)
{
	for (unsigned i = 0; i < c->server->rpc.peers; i++) {
		if (waiting_for(c, i))
			drop(c, i);
	}
}

static void inform(struct cleaning *c)
{
	struct server *server = c->server;
	uint64_t nap = POLL_NS;

	enter(c, PHASE_INFORM);
	if (++server->begins == 0)
		server->begins = 1;
	set_word(c, true);
	tell(c, NOTICE_BEGIN);
	if (server->geo.knob.clean_wait) {
		rt_sleep(ROUND_TRIP_NS);
		enter(c, PHASE_PREPARE);
		return;
	}
	while (waiting(c))
		look_later(&nap);
	enter(c, PHASE_PREPARE);
	if (server->geo.bug != BUG_DROP_LATE)
		drop_silent(c);
	/* Deregistering lets land what the NIC has, and refuses what comes later. */
	log_unexport(server, c->head, c->from);
}

/* ------------------------------------------------------------------- prepare */

static void note(struct cleaning *c, uint32_t off)
{
	if (c->ats == c->room) {
		uint32_t room = c->room ? 2 * c->room : FIRST_ROOM;
		uint32_t *at = realloc(c->at, room * sizeof(*at));

		if (!at) {
			c->failed = true;
			return;
		}
		c->at = at;
		c->room = room;
	}
	c->at[c->ats++] = off;
}

/* Heap sort, ascending; there may be as many as objects in a log. */
static void sift(uint32_t *at, uint32_t i, uint32_t n)
{
	for (;;) {
		uint32_t most = i, child = 2 * i + 1, keep = at[i];

		for (uint32_t k = child; k < child + 2 && k < n; k++) {
			if (at[k] > at[most])
				most = k;
		}
		if (most == i)
			return;
		at[i] = at[most];
		at[most] = keep;
		i = most;
	}
}

static void sort(uint32_t *at, uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		sift(at, i, n);
	while (n-- > 1) {
		uint32_t most = at[0];

		at[0] = at[n];
		at[n] = most;
		sift(at, 0, n);
	}
}

/* What was ever written to the other region must not be taken for what will be. */
static void wipe(struct cleaning *c)
{
	uint64_t *used = &head_of(c->server, c->head)->used[c->to], seg = c->server->geo.seg_len;
	uint8_t *bytes = log_at(c->server, c->head, c->to);

	c->log->tail[c->to] = 0;
	if (*used == 0)
		return;
	for (uint64_t at = 0; at < *used && !c->server->geo.knob.wipe; at += seg)
		pmem_memset_persist(bytes + at, 0, seg);
	*used = 0;
	pmem_persist(used, sizeof(*used));
}

static bool intact(const struct cleaning *c, const struct erda_entry *entry, uint32_t off,
		   struct erda_object *object)
{
	uint8_t key[TM_MAX_KEY];
	uint8_t klen = entry->klen;

	if (off == ERDA_NO_OFFSET || klen > TM_MAX_KEY)
		return false;
	memcpy(key, entry->key, klen);
	return erda_object_at(&c->server->geo, log_at(c->server, c->head, c->from), off, key, klen,
			      object) == OBJECT_GOOD;
}

/* The newest intact version, durable, and no other. If neither is, the scan may find an older
 * one. */
static uint64_t prepared(struct cleaning *c, const struct erda_entry *entry, uint64_t m)
{
	uint32_t off = erda_newoff(m);
	struct erda_object object;
	bool found = intact(c, entry, off, &object);

	if (!found && c->server->geo.bug != BUG_CLEAN_NO_CHECK &&
	    intact(c, entry, erda_oldoff(m), &object)) {
		off = erda_oldoff(m);
		found = true;
	}
	if (found)
		pmem_persist(log_at(c->server, c->head, c->from) +
				     (uint64_t)off * c->server->geo.unit,
			     object.len);
	return erda_only(m >> 63, off, m & 1);
}

/* Wait until no entry is being displaced; the count then. */
static uint64_t settled(const struct cleaning *c)
{
	uint64_t nap = POLL_NS;

	while (c->server->moves % 2)
		look_later(&nap);
	return c->server->moves;
}

typedef uint64_t entry_fn(struct cleaning *c, const struct erda_entry *entry, uint64_t m);

/* Change each entry of the head, durably. An entry that is displaced meanwhile moves on, and is met
 * there. */
static void each_entry(struct cleaning *c, entry_fn *fn)
{
	struct erda_index *index = &c->server->index;

	for (uint32_t i = 0; i < c->server->geo.entries; i++) {
		struct erda_entry *entry = &index->entry[i];
		uint64_t to;

		settled(c);
		uint64_t m = entry->region;
		do {
			if (m == ERDA_EMPTY || entry->head != c->head)
				break;
			to = fn(c, entry, m);
			settled(c);
			if (c->server->geo.bug == BUG_CLEAN_FLIP_PLAIN) {
				entry->region = to;
				break;
			}
		} while (!__atomic_compare_exchange_n(&entry->region, &m, to, false,
						      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
		/* Also what others have stored here: the state that follows relies on it. */
		if (m != ERDA_EMPTY && !c->lazily)
			pmem_persist(&entry->region, sizeof(entry->region));
	}
}

static uint64_t note_versions(struct cleaning *c, const struct erda_entry *entry, uint64_t m)
{
	(void)entry;
	if (erda_newoff(m) != ERDA_NO_OFFSET)
		note(c, erda_newoff(m));
	if (erda_oldoff(m) != ERDA_NO_OFFSET)
		note(c, erda_oldoff(m));
	return c->server->geo.knob.old_half ? m : prepared(c, entry, m);
}

static void prepare(struct cleaning *c)
{
	wipe(c);
	each_entry(c, note_versions);
	if (c->server->geo.marked)
		set_state(c, CLEAN_MERGE, c->from);
	enter(c, PHASE_MERGE);
	c->cut = c->log->tail[c->from];
	for (uint32_t i = 0; i < c->log->mades; i++)
		note(c, c->log->made[i]);
}

/* --------------------------------------------------------- merge and replicate */

/* Copy an object to byte `to` of the other region, durably. */
static void copy(struct cleaning *c, uint64_t to, uint32_t off, size_t len)
{
	uint8_t *at = log_at(c->server, c->head, c->to) + to;

	memcpy(at, log_at(c->server, c->head, c->from) + (uint64_t)off * c->server->geo.unit, len);
	if (c->server->geo.bug != BUG_CLEAN_COPY_UNFLUSHED)
		pmem_persist(at, len);
}

/* Has the key been updated after the reserved area? */
static bool superseded(const struct cleaning *c, uint64_t m)
{
	uint32_t other = erda_oldoff(m);

	return c->log->phase == PHASE_REPLICATE && other != ERDA_NO_OFFSET &&
	       (uint64_t)other * c->server->geo.unit >= c->log->reserved_end;
}

/* Has it been since the copy was made? Then the copy is not named. */
static bool too_late(const struct cleaning *c, uint64_t m)
{
	return superseded(c, m) && c->server->geo.bug != BUG_CLEAN_LATE_COPY;
}

/* The key's other half := `copy`. `seen`: what the entry was when that was decided. */
static void name_copy(struct cleaning *c, const uint8_t *key, size_t klen, uint64_t seen,
		      uint32_t copy)
{
	struct erda_index *index = &c->server->index;
	struct erda_place place;
	uint64_t before, m, to;

	erda_place(&c->server->geo, key, klen, &place);
	do {
		before = settled(c);
		int slot = erda_find(index, place.home, key, klen);
		if (slot < 0)
			continue;
		uint64_t *region = &index->entry[slot].region;
		if (c->server->geo.bug == BUG_CLEAN_PLAIN_STORE) {
			*region = erda_set_half(seen, !(seen >> 63), copy);
			pmem_persist(region, sizeof(*region));
			continue;
		}
		m = *region;
		do {
			if (m == ERDA_EMPTY || too_late(c, m))
				break;
			to = erda_set_half(m, !(m >> 63), copy);
		} while (!__atomic_compare_exchange_n(region, &m, to, false, __ATOMIC_SEQ_CST,
						      __ATOMIC_SEQ_CST));
		pmem_persist(region, sizeof(*region));
	} while (c->server->moves != before);
}

/* One object of the scan. Its place in the other region is decided by `replica`. */
static int occurrence(struct cleaning *c, uint32_t off, bool replica)
{
	const struct erda_geo *geo = &c->server->geo;
	uint64_t at = (uint64_t)off * geo->unit, to, tail;
	const uint8_t *bytes = log_at(c->server, c->head, c->from);
	struct erda_object object;
	uint8_t key[TM_MAX_KEY];
	struct erda_place place;
	uint64_t m;
	int slot;

	if (erda_object_at(geo, bytes, off, NULL, 0, &object) != OBJECT_GOOD)
		return 0;
	memcpy(key, bytes + at + ERDA_HEADER, object.klen);
	erda_place(geo, key, object.klen, &place);
	settled(c);
	slot = erda_find(&c->server->index, place.home, key, object.klen);
	if (slot < 0 || c->met[slot])
		return 0;
	m = c->server->index.entry[slot].region;
	/* After the newest version: it was taken back, by a repair or by recovery. */
	if (!replica &&
	    (erda_newoff(m) < off || (geo->bug == BUG_CLEAN_NO_CHECK && erda_newoff(m) != off)))
		return 0;
	if (!object.tag || !geo->knob.tombstones)
		c->met[slot] = 1;
	if (superseded(c, m))
		return 0;
	if (object.tag) {
		if (replica && erda_oldoff(m) != ERDA_NO_OFFSET)
			name_copy(c, key, object.klen, m, ERDA_NO_OFFSET);
		return 0;
	}
	if (replica) {
		to = c->area + at - c->cut / geo->seg_len * geo->seg_len;
	} else if (log_place(c->server, c->log, c->to, object.len, geo->region_len, &to, &tail)) {
		return -ENOSPC;
	} else {
		c->log->tail[c->to] = tail;
		log_use(c->server, c->head, c->to, tail);
	}
	copy(c, to, off, object.len);
	name_copy(c, key, object.klen, m, (uint32_t)(to / geo->unit));
	return 0;
}

/*
 * From the last-written address backwards: the `n` objects at `at`, in ascending order, which are
 * below the cut, or of which those from there on count.
 */
static int scan(struct cleaning *c, const uint32_t *at, uint32_t n, bool replica)
{
	bool upwards = c->server->geo.bug == BUG_CLEAN_OLDEST;

	memset(c->met, 0, c->server->geo.entries);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t off = at[upwards ? i : n - 1 - i];

		if (((uint64_t)off * c->server->geo.unit >= c->cut) != replica)
			continue;
		int rc = occurrence(c, off, replica);
		if (rc)
			return rc;
	}
	return 0;
}

static int merge(struct cleaning *c)
{
	if (c->failed)
		return -ENOMEM;
	sort(c->at, c->ats);
	return scan(c, c->at, c->ats, false);
}

/* Those of the merge got their places in ascending order; nothing is added any more. */
static void replicate(struct cleaning *c)
{
	if (c->server->geo.bug != BUG_CLEAN_NO_REPLICA)
		scan(c, c->log->made, c->log->mades, true);
}

/*
 * From now on updates go to the other region. The reserved area is laid out as the log was
 * from the segment of the cut on; while its end becomes durable, updates still go to the old
 * log, which may grow by what the area has to spare: one segment.
 */
static int switch_updates(struct cleaning *c)
{
	const struct erda_geo *geo = &c->server->geo;
	struct erda_head *head = head_of(c->server, c->head);
	uint64_t seg = geo->seg_len, grown = (c->log->tail[c->from] + seg - 1) / seg * seg + seg,
		 end;

	assert(c->log->phase == PHASE_MERGE && c->log->tail[c->from] >= c->cut);
	c->area = (c->log->tail[c->to] + seg - 1) / seg * seg;
	end = c->area + grown - c->cut / seg * seg;
	if (end > geo->region_len)
		return -ENOSPC;
	if (c->log->limit > grown)
		c->log->limit = grown;
	log_use(c->server, c->head, c->to, end);
	if (geo->marked) {
		head->reserved_end = end;
		pmem_persist(&head->reserved_end, sizeof(head->reserved_end));
		set_state(c, CLEAN_REPLICATE, c->from);
	}
	enter(c, PHASE_REPLICATE);
	c->log->tail[c->to] = c->log->reserved_end = end;
	/* Recovery may have to copy all that the area and what is before it can hold, and a
	 * segment's
	 * rest. */
	if (geo->bug == BUG_NO_ROOM_KEPT)
		c->log->limit = geo->region_len;
	else
		c->log->limit = geo->region_len > end + seg ? geo->region_len - end - seg : 0;
	return 0;
}

/* ----------------------------------------------------------------------- end */

static uint64_t flip(struct cleaning *c, const struct erda_entry *entry, uint64_t m)
{
	(void)entry;
	return clean_flipped(c->server, c->log, m);
}

static uint64_t unprepared(struct cleaning *c, const struct erda_entry *entry, uint64_t m)
{
	(void)c;
	(void)entry;
	return erda_only(m >> 63, erda_newoff(m), m & 1);
}

/* All entries name versions in `region`: it is the log from now on. */
static void finish(struct cleaning *c, unsigned region)
{
	struct server *server = c->server;
	struct log *log = c->log;

	set_state(c, CLEAN_NONE, region);
	/* Until clients can reach it they send what concerns it. */
	while (log_export(server, c->head, region))
		rt_sleep(MAX_IDLE_NS);
	enter(c, PHASE_IDLE);
	log->region = region;
	log->mades = 0;
	log->boot_tail = log->cleaned_tail = log->tail[region];
	set_word(c, false);
	tell(c, NOTICE_END);
}

static void end(struct cleaning *c)
{
	const struct erda_geo *geo = &c->server->geo;

	assert(c->log->phase == PHASE_REPLICATE);
	if (geo->bug == BUG_CLEAN_SWITCH_EARLY || !geo->marked)
		set_state(c, CLEAN_NONE, c->to);
	enter(c, PHASE_END);
	c->lazily = geo->knob.flips;
	each_entry(c, flip);
	finish(c, c->to);
}

/* The live versions do not fit, or there is no memory: everything stays where it was. */
static void abandon(struct cleaning *c)
{
	enter(c, PHASE_PREPARE);
	if (c->server->geo.marked)
		each_entry(c, unprepared);
	finish(c, c->from);
}

static void clean_log(struct server *server, unsigned head)
{
	struct cleaning *c = calloc(1, sizeof(*c));
	struct log *log = &server->log[head];
	const struct erda_geo *geo = &server->geo;

	if (!c)
		return;
	c->server = server;
	c->log = log;
	c->head = head;
	c->from = log->region;
	c->to = !log->region;
	assert(log->phase == PHASE_IDLE && !server->index.met); /* one at a time */
	c->met = calloc(geo->entries, 1);
	if (!c->met)
		goto out;
	server->index.met = c->met;
	/* Updates of the merge are copied too: two segments for rounding, and one to spare. */
	log->limit = geo->region_len > 3 * geo->seg_len ? geo->region_len - 3 * geo->seg_len : 0;
	inform(c);
	prepare(c);
	if (geo->bug == BUG_DROP_LATE)
		drop_silent(c);
	if (merge(c) || switch_updates(c)) {
		abandon(c);
	} else {
		replicate(c);
		end(c);
	}
	server->index.met = NULL;
out:
	free(c->met);
	free(c->at);
	free(c);
}

static void cleaner_task(void *arg)
{
	struct server *server = arg;
	uint64_t idle_ns = IDLE_NS;

	for (;;) {
		bool worked = false;

		for (unsigned h = 0; h < server->geo.heads; h++) {
			if (!server->log[h].wanted)
				continue;
			server->log[h].wanted = false;
			clean_log(server, h);
			worked = true;
		}
		if (worked)
			idle_ns = IDLE_NS;
		look_later(&idle_ns);
	}
}

int clean_want(struct server *server, unsigned head)
{
	struct log *log = &server->log[head];
	int rc = 0;

	if (log->wanted)
		return -EALREADY;
	log->wanted = true;
	if (!server->cleaner)
		rc = rt_spawn("cleaner", cleaner_task, server);
	server->cleaner = !rc || server->cleaner;
	if (rc)
		log->wanted = false;
	return rc;
}
