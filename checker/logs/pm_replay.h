/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_PM_REPLAY_H
#define TM_CHECKER_LOGS_PM_REPLAY_H
/*
 * What the media may hold while a log is replayed.
 *
 * There is the durable content of each file; and for each line that was changed since, its versions
 * in flight, in the order of the changes: as processors keep the order of stores to one line, a
 * power failure leaves the durable content with the first k of them, for any k from none to all.
 * The lines are independent of each other. So a version that was never flushed may be left, too: a
 * cache evicts lines when it likes. A fence makes durable what its thread has flushed, up to the
 * version that the flush saw; msync() does at once, and so does an RDMA Commit of what its
 * connection has landed, whose payload is durable as it lands. An RDMA FLUSH does where RNICs write
 * past the caches, as in the simulation. In a log that does not say whose events are, a fence is
 * everybody's.
 *
 * So it is if the power fails on the default hardware. If only the process dies (`kill`), the
 * machine lives on: all that was stored stays.
 *
 * The knobs of the hardware mean here what they do in the simulation (core/hardware/hardware.h;
 * core/pmem/domain.h):
 *
 *	domain=mhp	Caches survive: all that was stored stays.
 *	domain=wsp	... and what a NIC has received survives as well: nothing is late.
 *	iio_in_mhp=off	With domain=mhp, but without ddio=on, what RNICs have landed is lost until a
 *			READ or a flush.
 *	ddio=off	RNICs write past the caches. An RDMA FLUSH makes durable what its queue pair
 *			has landed in its range before, a READ or an atomic all that it has landed;
 *			with ddio=any, only where caches survive.
 *	flush_covers_send=off	... and an RDMA FLUSH nothing that SENDs have left.
 *	commit_word=visible	The payload of a Commit is durable after it is visible.
 *	line_torn	A line that is in flight may be cut as it goes to the media: what is left of
 *			it is one of pmem's answers (core/pmem/crash.h).
 *	dma_order	The lines of a message, or of a connection, land in any order. Where a
 *			failure takes each line by itself, nothing differs.
 *	ack_early	With domain=mhp a message may have been acknowledged, and not have landed.
 *	nt_stores=buffered	Where caches survive, a non-temporal store waits in its CPU's
 *			buffers, and is lost.
 *
 * With the last three a landing, or a non-temporal store, stays in flight until something shows
 * that it has happened. A landing: a READ, a FLUSH or a Commit of its queue pair; with
 * ack_early=off any acknowledgement, or the next message that may not pass it; and in any case
 * whatever a CPU of its process does. A store: what its thread does, but for stores and flushes of
 * other lines, and whatever others do. Those may have looked at it: loads are not recorded, and no
 * image may deny what the program has seen.
 *
 * A cut is a place between two events where the set of images is the largest, or where what the
 * users could know changes. Images only become more until something becomes durable. So where
 * caches are lost it is enough to cut before each event that makes something durable, before each
 * acknowledgement and marker, and at the end. Elsewhere each store that is kept makes an image of
 * its own, but for those that were noticed together.
 */
#include "checker/logs/pm_log.h"
#include "core/hardware/hardware.h"

/* A change of a line, and the line with it and all before it. */
struct pm_version {
	uint32_t event;
	uint8_t content[PM_LINE];
};

/* A line with versions in flight. */
struct pm_line {
	uint64_t line; /* offset / PM_LINE */
	struct pm_version *version;
	uint32_t first;		   /* of `version`: those in flight begin there */
	uint32_t versions;	   /* in flight */
	uint32_t durable_versions; /* how many are no more in flight */
	uint32_t born;		   /* tells it from the same line when that was dirty before */
	uint8_t file;
	bool hashed;
	uint64_t hash; /* if so: pm_replay_hash() with all versions */
};

/* A line's versions that a flush has seen, or a landing has made, wait for something. */
struct pm_waiting {
	uint64_t line;
	uint32_t event; /* the flush, or the landing */
	uint32_t upto;	/* versions, those that are durable included */
	uint32_t born;
	uint8_t file;
};

struct pm_replay {
	const struct pm_log *log;
	struct hardware hw;
	bool kill; /* the process dies, and the power does not fail */
	size_t at; /* events that have happened */
	uint8_t *durable[PM_FILES];
	uint32_t *slot[PM_FILES]; /* by line: place in `dirty` + 1 */
	struct pm_line *dirty;	  /* in no order that means anything */
	uint32_t dirties, dirty_room, born;
	struct pm_waiting *flushed; /* for a fence */
	uint32_t flushes, flush_room;
	struct pm_waiting *landed; /* until they are shown; in their order */
	uint32_t landings, landing_room;
	uint32_t *lost; /* as many, for pm_replay_allow() */
	uint32_t lost_room;
	unsigned long acks;
	const struct pm_event *mark; /* the latest marker; NULL: none yet */
	uint64_t hash;		     /* of the durable content, by what it has changed in the log */
	size_t last_change;	     /* the latest event that stored or landed */
};

int pm_replay_open(struct pm_replay *r, const struct pm_log *log, const struct hardware *hw,
		   bool kill);
void pm_replay_close(struct pm_replay *r);

/* Does a failure take what was stored, by a CPU or an RNIC, until it is flushed? */
bool pm_replay_loses(const struct pm_replay *r, bool nic);

/* Does this fence wait for what that thread has flushed? */
bool pm_replay_waits(const struct pm_log *log, const struct pm_event *fence, uint32_t thread);
/* Is the place before the next event a cut? */
bool pm_replay_cut(const struct pm_replay *r);
/* Called with each line whose durable content is about to change. */
typedef void pm_durable_fn(void *arg, unsigned file, uint64_t line, const uint8_t content[PM_LINE]);
/* The next event happens. 1: it did; 0: there is none; -ENOMEM. */
int pm_replay_step(struct pm_replay *r, pm_durable_fn *durable, void *arg);

/*
 * What is left of a line is a number: so many of its first versions in flight; or, above their
 * number, the one of pmem's answers (core/pmem/crash.h), where the line was cut.
 */
void pm_replay_content(const struct pm_replay *r, const struct pm_line *l, unsigned left,
		       uint8_t out[PM_LINE]);
/* How many numbers there are: those from this one on mean nothing. */
unsigned pm_replay_answers(const struct pm_replay *r, const struct pm_line *l);
/* Are lines cut, and how? */
enum line_torn pm_replay_torn(const struct pm_replay *r);
/* How many of its first versions are left as a whole. */
unsigned pm_left_whole(unsigned versions, unsigned left);
/* Take from an image (by dirty line: what is left) what the RNICs cannot have landed without what
 * the image has lost. */
void pm_replay_allow(const struct pm_replay *r, unsigned *left);
/* The nth version's event, from 0. */
uint32_t pm_replay_event(const struct pm_line *l, unsigned nth);
/* The hash of a line with this content: an image's is the exclusive or of those of its lines with
 * those of their durable content, and of pm_replay.hash. */
uint64_t pm_line_hash(unsigned file, uint64_t line, const uint8_t content[PM_LINE]);
/* What a dirty line, of which this is left, adds to it. */
uint64_t pm_replay_hash(const struct pm_replay *r, struct pm_line *l, unsigned left);

#endif
