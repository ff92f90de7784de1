/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A slow model of the rules in docs/litmus.md: what can a small program come to?
 *
 * It is there to be compared with the emulated machine, so it shares nothing with it: not a line of
 * core/, no simulator, no reduction. A state is a handful of bytes, each rule is a function that
 * says whether one step is possible in a state and what the next state is, and the search visits
 * every state that can be reached, breadth first.
 *
 * The rules, and where they come from:
 *
 * CPU (x86-TSO: Sewell, Sarkar, Owens, Zappa Nardelli, Myreen, CACM 2010; flushes: Px86, Raad,
 * Wickerson, Neiger, Vafeiadis, POPL 2020)
 *	C1  Stores, clwb, clflush, sfence and doorbells enter the thread's store buffer; the oldest
 *	    entry leaves it at any time, and takes effect then, for all threads at once.
 *	C2  A clwb may also leave from the middle: it passes all but sfence, and stores and
 *	    clflushes of its own line.
 *	C3  A load takes the newest store to its location in its own buffer, else what memory holds.
 *	C4  mfence and locked instructions wait until the buffer is empty, and complete the
 *	    thread's write-backs as sfence does.
 * Memory (Px86; Khyzha and Lahav, POPL 2021; persistence domains: Kashyap and others, arXiv
 * 1909.02092)
 *	M1  What becomes visible is the newest version of its line. A power failure leaves of each
 *	    line its first k versions, k from the number that is certain to all of them.
 *	M2  clflush makes all versions of the line certain; clwb notes how many there are, and the
 *	    thread's next sfence, mfence or locked instruction makes so many certain.
 *	M3  Where caches survive (mhp, wsp), a version is certain as soon as it is visible; not so
 *	    the NIC's data in integrated-I/O buffers that are outside (mhp) while they go past the
 *	    cache.
 *	M4  Where the NIC's buffers survive (wsp), all posted data that arrived land after all.
 *	M5  line_torn: what is left may be of an older version from some word on.
 *	M6  What a NIC writes goes past the cache with ddio=off; with ddio=any it goes there or not.
 *
 * Queue pairs (InfiniBand Architecture Specification, vol. 1, 9.4 to 9.7 and 10.8.3, and its annex
 * A19 on FLUSH and ATOMIC WRITE; PCI Express transaction ordering; RDMA on TSO: Ambal and others,
 * OOPSLA 2024)
 *	Q1  The NIC starts requests in the order of the posts, each not before its doorbell:
 *	    there it reads the data, unless they are in the request. A fenced one waits until
 *	    the earlier ones that are not posted have their results.
 *	Q2  They arrive in order.
 *	Q3  Posted ones (SEND, WRITE) land in order. Whatever is not posted takes effect in
 *	    order, after all posted ones before it have landed; a posted one does not wait for
 *	    it. With dma_order=relaxed (PCI Express, ordering rules: posted requests with the
 *	    attribute pass posted requests, read requests pass read requests, neither atomics
 *	    nor what is posted) posted ones land in any order, and a READ does not wait for
 *	    READs before it.
 *	Q4  A message has its receive, in the order in which receives were posted; its
 *	    completion is there when the message, and all that was posted before it, has landed.
 *	Q5  Responses come in order. That of a posted request is given when it has arrived, or
 *	    with ack_early=off when it has landed; that of any other when it has taken effect.
 *	    The result is in memory then, and the request completes. With transport=iwarp a
 *	    posted request completes when it is sent, but not before those that were posted
 *	    earlier.
 *	Q6  With DDIO off, a FLUSH for persistence makes certain what its connection wrote to
 *	    its range, and what it wrote by SENDs (flush_covers_send); a READ or an atomic makes
 *	    certain whatever its connection wrote.
 *	    An RDMA Commit (RK III-B) makes certain what its connection wrote to its range, in
 *	    the cache too. A payload becomes visible after that, and all versions of its line
 *	    are certain at the same moment; with commit_word=visible at a later one.
 *	Q7  What lands lands line by line, from the left, with dma_order=any and relaxed in any
 *	    order; and so a READ reads, from the left, with read_order=right from the right, and
 *	    with read_unit=word word by word. The data of one message are read at one moment
 *	    when it is sent, and a READ's result is written at one moment.
 *	Q8  A remote atomic reads and writes at one moment; with atomics=hca (libibverbs,
 *	    IBV_ATOMIC_HCA) it writes some time after it has read, and other remote atomics on
 *	    the cell wait meanwhile.
 */
#include "tests/litmus/slow_model.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES	 (2 * PROGRAM_STATEMENTS) /* of a store buffer; clwb of two lines makes two */
#define REQUESTS PROGRAM_STATEMENTS	  /* of one end of a queue pair */
#define ENDS	 (2 * PROGRAM_QPS)
#define LINES	 PROGRAM_CELLS
#define VERSIONS 8 /* of a line */
#define IMM	 7

enum entry_kind {
	ENTRY_NONE,
	ENTRY_STORE,
	ENTRY_CLWB,
	ENTRY_CLFLUSH,
	ENTRY_SFENCE,
	ENTRY_DOORBELL
};

struct entry {
	uint8_t kind;  /* enum entry_kind */
	uint8_t where; /* STORE: cell; CLWB, CLFLUSH: line; DOORBELL: end */
	uint8_t value; /* STORE; DOORBELL: request */
};

/* DONE: landed, or took effect. */
enum stage { STAGE_POSTED, STAGE_RUNG, STAGE_SENT, STAGE_ARRIVED, STAGE_DONE };

struct request {
	uint8_t thread, statement;
	uint8_t stage;	  /* enum stage */
	uint8_t parts;	  /* of a long one: those that have landed or have been read, a bit each */
	uint8_t value[2]; /* on its way, there or back: of each cell */
	bool answered, completed;
};

struct end {
	uint8_t requests, polled, received; /* received: receive completions that were taken */
	struct request request[REQUESTS];
};

/* What a NIC writes goes to the cache or past it. */
enum way { WAY_OPEN, WAY_CACHE, WAY_PAST };

struct version {
	uint8_t cell, cells; /* that it wrote: one, or two of the line */
	uint8_t value[2];
	uint8_t by; /* 1 + end; 0: a CPU */
	bool send;
	uint8_t went; /* enum way */
};

struct line {
	uint8_t versions, certain;
	struct version version[VERSIONS];
};

struct state {
	uint8_t pc[PROGRAM_THREADS], entries[PROGRAM_THREADS];
	uint8_t flushed_lines[PROGRAM_THREADS]; /* of the flush that is the next statement */
	struct entry entry[PROGRAM_THREADS][ENTRIES];
	uint8_t reg[PROGRAM_THREADS][PROGRAM_STATEMENTS];
	uint8_t flushed[PROGRAM_THREADS][LINES]; /* versions of a line, for a fence */
	uint8_t memory[PROGRAM_CELLS];
	struct line line[LINES];
	struct end end[ENDS];
};

/* Ways to reach a state. */
enum step_kind {
	STEP_STATEMENT,
	STEP_LEAVE,
	STEP_START,
	STEP_ARRIVE,
	STEP_TAKE_EFFECT,
	STEP_ANSWER
};
struct came {
	uint32_t from;
	uint8_t kind, who, number; /* enum step_kind; thread or end; statement, entry, request */
	uint8_t part;		   /* TAKE_EFFECT of a long one: 1 + which part; else 0 */
};

struct slow_model {
	const struct program *p;
	struct state *state;
	struct came *came;
	unsigned states, room, most;
	uint32_t *table; /* state + 1, by hash */
	unsigned table_size;
	bool overflow;
	struct place places[PROGRAM_PLACES];
	unsigned n_places;
	uint8_t buffer[ENDS][PROGRAM_THREADS * PROGRAM_STATEMENTS]; /* of receives, in order */
	struct outcomes final, crash;
};

static const struct statement *statement_of(const struct slow_model *m, const struct request *r)
{
	return &m->p->statement[r->thread][r->statement];
}

/* The thread's end of the queue pair. */
static unsigned end_of(const struct slow_model *m, unsigned thread, unsigned qp)
{
	return 2 * qp + (m->p->qp_host[qp][0] != m->p->thread_host[thread]);
}

/* --- memory --- */

/* M3. The line's newest version went this way. */
static void went(const struct slow_model *m, struct line *line, struct version *version,
		 enum way way)
{
	const struct machine *hw = &m->p->machine;
	bool in_iio = way == WAY_PAST && hw->iio_outside;
	version->went = (uint8_t)way;
	if (hw->domain == MACHINE_WSP || (hw->domain == MACHINE_MHP && !in_iio))
		line->certain = line->versions;
}

/* M1. One cell, or two of a line. */
static void become_visible(const struct slow_model *m, struct state *s, unsigned cell,
			   const uint8_t *value, unsigned cells, unsigned by, bool send)
{
	const struct machine *hw = &m->p->machine;
	struct line *line = &s->line[cell_line(m->p, cell)];
	assert(line->versions < VERSIONS && cells >= 1 && cells <= 2);
	struct version *version = &line->version[line->versions++];
	*version = (struct version){
		.cell = (uint8_t)cell, .cells = (uint8_t)cells, .by = (uint8_t)by, .send = send};
	memcpy(version->value, value, cells);
	memcpy(&s->memory[cell], value, cells);
	if (!by || !hw->ddio_any)
		went(m, line, version, by && hw->ddio_off ? WAY_PAST : WAY_CACHE);
}

static void make_certain(struct line *line, unsigned versions)
{
	if (versions > line->certain)
		line->certain = (uint8_t)versions;
}

/* M2 */
static void complete_write_backs(struct state *s, unsigned thread)
{
	for (unsigned l = 0; l < LINES; l++) {
		make_certain(&s->line[l], s->flushed[thread][l]);
		s->flushed[thread][l] = 0;
	}
}

/* Q6. `range`: an operand; NOWHERE: all that there is. */
static void nic_flush(const struct slow_model *m, struct state *s, unsigned end, uint8_t range,
		      bool sends, bool caches)
{
	uint8_t cell[2];
	unsigned cells = operand_cells(m->p, range, cell);
	for (unsigned l = 0; l < LINES; l++) {
		for (unsigned v = 0; v < s->line[l].versions; v++) {
			const struct version *version = &s->line[l].version[v];
			bool covered = !cells || (version->cell < cell[0] + cells &&
						  cell[0] < version->cell + version->cells);
			if (version->by == end + 1 && (caches || version->went == WAY_PAST) &&
			    (version->send ? sends : covered))
				make_certain(&s->line[l], v + 1);
		}
	}
}

/* --- store buffers --- */

static void take_effect(const struct slow_model *m, struct state *s, unsigned thread,
			const struct entry *e)
{
	struct line *line = &s->line[e->where % LINES];
	switch (e->kind) {
	case ENTRY_STORE:
		become_visible(m, s, e->where, &e->value, 1, 0, false);
		break;
	case ENTRY_CLWB:
		s->flushed[thread][e->where] = line->versions;
		break;
	case ENTRY_CLFLUSH:
		make_certain(line, line->versions);
		break;
	case ENTRY_SFENCE:
		complete_write_backs(s, thread);
		break;
	default:
		s->end[e->where].request[e->value].stage = STAGE_RUNG;
	}
}

/* C1. False: the buffer is full. */
static bool enter(const struct slow_model *m, struct state *s, unsigned thread, struct entry e)
{
	if (!m->p->machine.store_buffer) {
		take_effect(m, s, thread, &e);
		return true;
	}
	if (s->entries[thread] == m->p->machine.store_buffer)
		return false;
	assert(s->entries[thread] < ENTRIES);
	s->entry[thread][s->entries[thread]++] = e;
	return true;
}

/* C1, C2 */
static bool may_leave(const struct slow_model *m, const struct state *s, unsigned thread,
		      unsigned number)
{
	const struct entry *e = s->entry[thread];
	if (number && e[number].kind != ENTRY_CLWB)
		return false;
	for (unsigned i = 0; i < number; i++) {
		unsigned line = LINES; /* none */
		if (e[i].kind == ENTRY_STORE)
			line = cell_line(m->p, e[i].where);
		else if (e[i].kind == ENTRY_CLFLUSH)
			line = e[i].where;
		if (e[i].kind == ENTRY_SFENCE || line == e[number].where)
			return false;
	}
	return true;
}

static void leave(const struct slow_model *m, struct state *s, unsigned thread, unsigned number)
{
	struct entry *e = s->entry[thread], left = e[number];
	s->entries[thread]--;
	memmove(&e[number], &e[number + 1], (s->entries[thread] - number) * sizeof(*e));
	e[s->entries[thread]] = (struct entry){0};
	take_effect(m, s, thread, &left);
}

/* C3 */
static uint8_t seen(const struct state *s, unsigned thread, unsigned cell)
{
	for (unsigned i = s->entries[thread]; i--;)
		if (s->entry[thread][i].kind == ENTRY_STORE && s->entry[thread][i].where == cell)
			return s->entry[thread][i].value;
	return s->memory[cell];
}

/* --- statements --- */

/* C4 */
static void locked(const struct slow_model *m, struct state *s, unsigned thread,
		   const struct statement *st)
{
	uint8_t old = s->memory[st->to], new = st->value;
	complete_write_backs(s, thread);
	if (st->op == OP_FAA)
		new = (uint8_t)(old + st->value);
	if (st->op != OP_CAS || !old)
		become_visible(m, s, st->to, &new, 1, 0, false);
	s->reg[thread][st->reg] = old;
}

/* Q1. False: the buffer is full. */
static bool post(const struct slow_model *m, struct state *s, unsigned thread, unsigned number)
{
	const struct statement *st = &m->p->statement[thread][number];
	unsigned e = end_of(m, thread, st->qp);
	struct end *end = &s->end[e];
	assert(end->requests < REQUESTS);
	end->request[end->requests] = (struct request){
		.thread = (uint8_t)thread, .statement = (uint8_t)number, .value = {st->value}};
	return enter(m, s, thread, (struct entry){ENTRY_DOORBELL, (uint8_t)e, end->requests++});
}

/*
 * A clwb or clflush of an operand is an instruction for each of its lines. *again: this one was not
 * the last. False: the buffer is full.
 */
static bool flush_line(const struct slow_model *m, struct state *s, unsigned thread,
		       enum entry_kind kind, uint8_t operand, bool *again)
{
	uint8_t cell[2];
	unsigned cells = operand_cells(m->p, operand, cell), nth = s->flushed_lines[thread];
	unsigned first = cell_line(m->p, cell[0]), last = cell_line(m->p, cell[cells - 1]);
	if (!enter(m, s, thread, (struct entry){(uint8_t)kind, (uint8_t)(first + nth), 0}))
		return false;
	*again = first + nth < last;
	s->flushed_lines[thread] = *again ? (uint8_t)(nth + 1) : 0;
	return true;
}

static bool poll(const struct slow_model *m, struct state *s, unsigned thread,
		 const struct statement *st)
{
	struct end *end = &s->end[end_of(m, thread, st->qp)];
	unsigned completions = 0;
	for (unsigned i = 0; i < end->requests; i++)
		completions += end->request[i].completed &&
			       !statement_of(m, &end->request[i])->unsignaled;
	if (completions == end->polled)
		return false;
	end->polled++;
	s->reg[thread][st->reg] = 1;
	return true;
}

/* Q4. The messages that have landed at this end are the completions of its receives. */
static bool receive(const struct slow_model *m, struct state *s, unsigned thread,
		    const struct statement *st)
{
	unsigned e = end_of(m, thread, st->qp), messages = 0;
	const struct end *peer = &s->end[e ^ 1];
	for (unsigned i = 0; i < peer->requests; i++) {
		const struct statement *sent = statement_of(m, &peer->request[i]);
		if (!statement_is_message(sent) || messages++ != s->end[e].received)
			continue;
		for (unsigned k = 0; k <= i; k++)
			if (peer->request[k].stage != STAGE_DONE &&
			    (k == i || statement_is_posted(statement_of(m, &peer->request[k]))))
				return false;
		s->end[e].received++;
		s->reg[thread][st->reg] = sent->op == OP_SEND ? 0 : IMM;
		return true;
	}
	return false;
}

/* False: it has to wait. *again: it has another step. */
static bool execute(const struct slow_model *m, struct state *s, unsigned thread, unsigned number,
		    bool *again)
{
	const struct statement *st = &m->p->statement[thread][number];
	bool empty = !s->entries[thread];
	*again = false;
	switch (st->op) {
	case OP_STORE:
		return enter(m, s, thread, (struct entry){ENTRY_STORE, st->to, st->value});
	case OP_LOAD:
		s->reg[thread][st->reg] = seen(s, thread, st->from);
		return true;
	case OP_SET:
		s->reg[thread][st->reg] = 1;
		return true;
	case OP_XCHG:
	case OP_FAA:
	case OP_CAS:
		if (empty)
			locked(m, s, thread, st);
		return empty;
	case OP_MFENCE:
		if (empty)
			complete_write_backs(s, thread);
		return empty;
	case OP_SFENCE:
		return enter(m, s, thread, (struct entry){.kind = ENTRY_SFENCE});
	case OP_CLWB:
		return flush_line(m, s, thread, ENTRY_CLWB, st->to, again);
	case OP_CLFLUSH:
		return flush_line(m, s, thread, ENTRY_CLFLUSH, st->to, again);
	case OP_POLL:
		return poll(m, s, thread, st);
	case OP_RECV:
		return receive(m, s, thread, st);
	default:
		return post(m, s, thread, number);
	}
}

/* --- queue pairs: may the request take its next step, and what does it do? --- */

/* Q1 */
static bool may_start(const struct slow_model *m, const struct end *end, unsigned number)
{
	bool fenced = statement_of(m, &end->request[number])->fenced;
	if (end->request[number].stage != STAGE_RUNG)
		return false;
	for (unsigned i = 0; i < number; i++) {
		const struct request *before = &end->request[i];
		if (before->stage < STAGE_SENT)
			return false;
		if (fenced && !statement_is_posted(statement_of(m, before)) && !before->answered)
			return false;
	}
	return true;
}

/* Q5. What is over completes, in order. */
static void complete(const struct slow_model *m, struct end *end)
{
	for (unsigned i = 0; i < end->requests; i++) {
		struct request *r = &end->request[i];
		bool early = m->p->machine.iwarp && statement_is_posted(statement_of(m, r)) &&
			     r->stage >= STAGE_SENT;
		if (!r->answered && !early)
			return;
		r->completed = true;
	}
}

static void start(const struct slow_model *m, struct state *s, unsigned e, unsigned number)
{
	struct request *r = &s->end[e].request[number];
	const struct statement *st = statement_of(m, r);
	uint8_t cell[2];
	unsigned cells = operand_cells(m->p, st->from, cell);
	if ((statement_is_posted(st) || st->op == OP_AWRITE || st->op == OP_COMMITPUT) && cells)
		memcpy(r->value, &s->memory[cell[0]], cells);
	r->stage = STAGE_SENT;
	complete(m, &s->end[e]);
}

/* Q2 */
static bool may_arrive(const struct end *end, unsigned number)
{
	return end->request[number].stage == STAGE_SENT &&
	       (!number || end->request[number - 1].stage >= STAGE_ARRIVED);
}

/* Q3. May it take effect before this one? */
static bool may_pass(const struct slow_model *m, const struct statement *st,
		     const struct statement *before)
{
	bool relaxed = m->p->machine.relaxed;
	if (statement_is_posted(st))
		return relaxed || !statement_is_posted(before);
	return relaxed && st->op == OP_GET && before->op == OP_GET;
}

/* Q3 */
static bool may_take_effect(const struct slow_model *m, const struct end *end, unsigned number)
{
	const struct statement *st = statement_of(m, &end->request[number]);
	if (end->request[number].stage != STAGE_ARRIVED)
		return false;
	for (unsigned i = 0; i < number; i++)
		if (end->request[i].stage != STAGE_DONE &&
		    !may_pass(m, st, statement_of(m, &end->request[i])))
			return false;
	return true;
}

/* Q4 */
static uint8_t receive_buffer(const struct slow_model *m, const struct end *end, unsigned e,
			      unsigned number)
{
	unsigned messages = 0;
	for (unsigned i = 0; i < number; i++)
		messages += statement_is_message(statement_of(m, &end->request[i]));
	return m->buffer[e ^ 1][messages];
}

/* The cells that the request writes there, or reads. */
static unsigned remote_cells(const struct slow_model *m, const struct end *end, unsigned e,
			     unsigned number, uint8_t cell[2])
{
	const struct statement *st = statement_of(m, &end->request[number]);
	if (st->op == OP_GET)
		return operand_cells(m->p, st->from, cell);
	if (st->op != OP_SEND)
		return operand_cells(m->p, st->to, cell);
	unsigned room = operand_cells(m->p, receive_buffer(m, end, e, number), cell);
	unsigned cells = st->from == NOWHERE ? 1 : operand_cells(m->p, st->from, (uint8_t[2]){0});
	return cells < room ? cells : room;
}

static bool is_atomic(const struct statement *st)
{
	return st->op == OP_REMOTE_FAA || st->op == OP_REMOTE_CAS;
}

static bool is_commit(const struct statement *st)
{
	return st->op == OP_COMMIT || st->op == OP_COMMITIMM || st->op == OP_COMMITPUT;
}

/* Q6, Q7, Q8. Its parts, one a line, or a word; or the two moments of an atomic, or of a payload: 1
 * or 2. */
static unsigned parts_of(const struct slow_model *m, const struct end *end, unsigned e,
			 unsigned number)
{
	const struct statement *st = statement_of(m, &end->request[number]);
	uint8_t cell[2];
	unsigned cells = remote_cells(m, end, e, number, cell);
	if (is_atomic(st))
		return m->p->machine.atomics_hca ? 2 : 1;
	if (is_commit(st))
		return st->op == OP_COMMITPUT && m->p->machine.commit_visible ? 2 : 1;
	if (cells < 2)
		return 1;
	bool words = st->op == OP_GET && m->p->machine.read_words;
	return words || cell_line(m->p, cell[0]) != cell_line(m->p, cell[1]) ? 2 : 1;
}

/* Q7. May this part be the next one? */
static bool may_be_next(const struct slow_model *m, const struct request *r, unsigned parts,
			unsigned part)
{
	const struct statement *st = statement_of(m, r);
	bool right_first = st->op == OP_GET && m->p->machine.read_right;
	if (r->parts >> part & 1)
		return false;
	if (parts == 1 ||
	    (statement_is_posted(st) && (m->p->machine.lines_any || m->p->machine.relaxed)))
		return true;
	return part == right_first || r->parts;
}

static void part_is_done(struct request *r, unsigned parts, unsigned part)
{
	r->parts |= (uint8_t)(1 << part);
	if (r->parts != (1 << parts) - 1)
		return;
	r->parts = 0;
	r->stage = STAGE_DONE;
}

static void land(const struct slow_model *m, struct state *s, unsigned e, unsigned number,
		 unsigned part)
{
	struct request *r = &s->end[e].request[number];
	uint8_t cell[2];
	unsigned cells = remote_cells(m, &s->end[e], e, number, cell);
	unsigned parts = parts_of(m, &s->end[e], e, number);
	bool send = statement_of(m, r)->op == OP_SEND;
	if (parts == 2)
		become_visible(m, s, cell[part], &r->value[part], 1, (e ^ 1) + 1, send);
	else if (cells)
		become_visible(m, s, cell[0], r->value, cells, (e ^ 1) + 1, send);
	part_is_done(r, parts, part);
}

/* Q8. Part 0 reads, the last part writes. */
static void atomic_part(const struct slow_model *m, struct state *s, unsigned e, struct request *r,
			unsigned parts, unsigned part)
{
	const struct statement *st = statement_of(m, r);
	if (!part)
		r->value[0] = s->memory[st->from];
	bool writes = st->op == OP_REMOTE_FAA || !r->value[0];
	uint8_t new = st->op == OP_REMOTE_FAA ? (uint8_t)(r->value[0] + st->value) : st->value;
	if (part == parts - 1 && writes)
		become_visible(m, s, st->from, &new, 1, (e ^ 1) + 1, false);
	part_is_done(r, writes ? parts : 1, part);
}

/* Q8. Has another remote atomic read the cell, and not written it yet? */
static bool is_locked(const struct slow_model *m, const struct state *s, const struct request *by)
{
	const struct statement *st = statement_of(m, by);
	for (unsigned e = 0; e < ENDS; e++) {
		for (unsigned i = 0; i < s->end[e].requests; i++) {
			const struct request *r = &s->end[e].request[i];
			const struct statement *other = statement_of(m, r);
			if (r != by && is_atomic(other) && r->parts && other->from == st->from)
				return true;
		}
	}
	return false;
}

/* Q6. Part 0 makes the range certain, and its payload visible; the last part makes that certain. */
static void commit_part(const struct slow_model *m, struct state *s, unsigned e, unsigned number,
			unsigned parts, unsigned part)
{
	struct request *r = &s->end[e].request[number];
	const struct statement *st = statement_of(m, r);
	uint8_t cell[2];
	unsigned last = operand_cells(m->p, st->to, cell) - 1;
	struct line *line = &s->line[cell_line(m->p, cell[last])];
	if (!part)
		nic_flush(m, s, e ^ 1, st->to, false, true);
	if (st->op == OP_COMMITPUT && !part)
		become_visible(m, s, cell[last], r->value, 1, (e ^ 1) + 1, false);
	if (st->op == OP_COMMITPUT && parts == 1)
		make_certain(line, line->versions);
	else if (part)
		nic_flush(m, s, e ^ 1, cell[last], false, true);
	part_is_done(r, parts, part);
}

static void take_effect_there(const struct slow_model *m, struct state *s, unsigned e,
			      unsigned number, unsigned part)
{
	struct request *r = &s->end[e].request[number];
	const struct statement *st = statement_of(m, r);
	unsigned there = e ^ 1, parts = parts_of(m, &s->end[e], e, number);
	uint8_t cell[2];
	if (is_commit(st)) {
		commit_part(m, s, e, number, parts, part);
		return;
	}
	if (st->op == OP_AWRITE)
		become_visible(m, s, st->to, r->value, 1, there + 1, false);
	else if (st->op == OP_FLUSH)
		nic_flush(m, s, there, st->to, !m->p->machine.sends_uncovered, false);
	else if (st->op != OP_FLUSH_GLOBAL && !(is_atomic(st) && part))
		nic_flush(m, s, there, NOWHERE, true, false);
	if (st->op == OP_GET) {
		unsigned cells = operand_cells(m->p, st->from, cell);
		if (parts == 2)
			r->value[part] = s->memory[cell[part]];
		else
			memcpy(r->value, &s->memory[cell[0]], cells);
		part_is_done(r, parts, part);
		return;
	}
	if (is_atomic(st))
		atomic_part(m, s, e, r, parts, part);
	else
		r->stage = STAGE_DONE;
}

/* Q5 */
static bool may_answer(const struct slow_model *m, const struct end *end, unsigned number)
{
	const struct request *r = &end->request[number];
	bool early = statement_is_posted(statement_of(m, r)) && !m->p->machine.ack_late;
	if (r->answered || r->stage < (early ? STAGE_ARRIVED : STAGE_DONE))
		return false;
	return !number || end->request[number - 1].answered;
}

static void answer(const struct slow_model *m, struct state *s, unsigned e, unsigned number)
{
	struct request *r = &s->end[e].request[number];
	const struct statement *st = statement_of(m, r);
	bool result = st->op == OP_GET || st->op == OP_REMOTE_FAA || st->op == OP_REMOTE_CAS;
	uint8_t cell[2];
	unsigned cells = operand_cells(m->p, st->to, cell);
	if (result && cells == 2 && cell_line(m->p, cell[0]) != cell_line(m->p, cell[1])) {
		become_visible(m, s, cell[0], &r->value[0], 1, e + 1, false);
		become_visible(m, s, cell[1], &r->value[1], 1, e + 1, false);
	} else if (result) {
		become_visible(m, s, cell[0], r->value, cells, e + 1, false);
	}
	r->answered = true;
	complete(m, &s->end[e]);
}

/* --- outcomes --- */

static void add_outcome(const struct slow_model *m, struct outcomes *to, const uint8_t *value,
			uint32_t state)
{
	unsigned low = 0, high = to->n;
	while (low < high) {
		unsigned mid = (low + high) / 2;
		int c = memcmp(to->outcome[mid].value, value, m->n_places);
		if (!c)
			return;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (to->n == to->room) {
		to->room = to->room ? 2 * to->room : 64;
		to->outcome = realloc(to->outcome, to->room * sizeof(to->outcome[0]));
		if (!to->outcome)
			abort();
	}
	memmove(&to->outcome[low + 1], &to->outcome[low], (to->n - low) * sizeof(to->outcome[0]));
	memset(&to->outcome[low], 0, sizeof(to->outcome[low]));
	memcpy(to->outcome[low].value, value, m->n_places);
	to->outcome[low].state = state;
	to->n++;
}

static void registers(const struct slow_model *m, const struct state *s, uint8_t *value)
{
	for (unsigned i = 0; i < m->n_places; i++)
		if (m->places[i].kind == PLACE_REGISTER)
			value[i] = s->reg[m->places[i].thread][m->places[i].number];
}

static void final_outcome(struct slow_model *m, const struct state *s, uint32_t number)
{
	uint8_t value[PROGRAM_PLACES] = {0};
	registers(m, s, value);
	for (unsigned i = 0; i < m->n_places; i++)
		if (m->places[i].kind == PLACE_MEMORY)
			value[i] = s->memory[m->places[i].number];
	add_outcome(m, &m->final, value, number);
}

/* What a cell of the line holds after its first so many versions. */
static uint8_t as_of(const struct slow_model *m, const struct line *line, unsigned versions,
		     unsigned cell)
{
	uint8_t value = cell_initial(m->p, cell);
	for (unsigned v = 0; v < versions; v++) {
		const struct version *version = &line->version[v];
		if (cell >= version->cell && cell < version->cell + version->cells)
			value = version->value[cell - version->cell];
	}
	return value;
}

static void lines_left(struct slow_model *m, const struct state *s, unsigned l, uint8_t *left,
		       uint32_t number);

/* M5: the line's cells hold its first k versions, those in `cut` only the first `older`. */
static void line_left(struct slow_model *m, const struct state *s, unsigned l, unsigned k,
		      unsigned older, unsigned cut, uint8_t *left, uint32_t number)
{
	for (unsigned c = 0, nth = 0; c < program_cells(m->p); c++)
		if (cell_line(m->p, c) == l)
			left[c] = as_of(m, &s->line[l], cut >> nth++ & 1 ? older : k, c);
	lines_left(m, s, l + 1, left, number);
}

/* M1: what is left of the lines from the l-th on. */
static void lines_left(struct slow_model *m, const struct state *s, unsigned l, uint8_t *left,
		       uint32_t number)
{
	const struct line *line = &s->line[l < LINES ? l : 0];
	if (l == LINES) {
		uint8_t value[PROGRAM_PLACES] = {0};
		registers(m, s, value);
		for (unsigned i = 0; i < m->n_places; i++)
			if (m->places[i].kind == PLACE_CRASH)
				value[i] = left[m->places[i].number];
		add_outcome(m, &m->crash, value, number);
		return;
	}
	for (unsigned k = line->certain; k <= line->versions; k++) {
		line_left(m, s, l, k, k, 0, left, number);
		for (unsigned older = line->certain; m->p->machine.torn && older < k; older++) {
			line_left(m, s, l, k, older, 2, left, number);
			if (m->p->machine.torn == MACHINE_TORN_ANY)
				line_left(m, s, l, k, older, 1, left, number);
		}
	}
}

/* The power fails in this state. M4: what has arrived lands, in any order that Q3 allows. */
static void crash_outcomes(struct slow_model *m, const struct state *s, uint32_t number)
{
	bool lands = false;
	for (unsigned e = 0; e < 2u * m->p->qps && m->p->machine.domain == MACHINE_WSP; e++) {
		for (unsigned i = 0; i < s->end[e].requests; i++) {
			struct state after;
			if (!statement_is_posted(statement_of(m, &s->end[e].request[i])) ||
			    !may_take_effect(m, &s->end[e], i))
				continue;
			/* Any part may be next; the others follow. */
			after = *s;
			land(m, &after, e, i, s->end[e].request[i].parts & 1);
			crash_outcomes(m, &after, number);
			lands = true;
		}
	}
	if (!lands) {
		uint8_t left[PROGRAM_CELLS] = {0};
		lines_left(m, s, 0, left, number);
	}
}

/* --- the search --- */

static uint64_t hash_of(const struct state *s)
{
	const uint8_t *bytes = (const uint8_t *)s;
	uint64_t hash = 0, word;
	for (size_t i = 0; i < sizeof(*s); i += sizeof(word)) {
		word = 0;
		memcpy(&word, bytes + i,
		       sizeof(*s) - i < sizeof(word) ? sizeof(*s) - i : sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash;
}

static void grow(struct slow_model *m)
{
	m->room = m->room ? 2 * m->room : 4096;
	m->table_size = 4 * m->room;
	m->state = realloc(m->state, m->room * sizeof(*m->state));
	m->came = realloc(m->came, m->room * sizeof(*m->came));
	free(m->table);
	m->table = calloc(m->table_size, sizeof(*m->table));
	if (!m->state || !m->came || !m->table)
		abort();
	for (unsigned i = 0; i < m->states; i++) {
		unsigned at = (unsigned)hash_of(&m->state[i]) & (m->table_size - 1);
		while (m->table[at])
			at = (at + 1) & (m->table_size - 1);
		m->table[at] = i + 1;
	}
}

/* The state has been reached: is it new? */
static void reach_decided(struct slow_model *m, const struct state *s, struct came came)
{
	unsigned at = (unsigned)hash_of(s) & (m->table_size - 1);
	for (; m->table[at]; at = (at + 1) & (m->table_size - 1))
		if (!memcmp(&m->state[m->table[at] - 1], s, sizeof(*s)))
			return;
	if (m->states == m->most) {
		m->overflow = true;
		return;
	}
	m->state[m->states] = *s;
	m->came[m->states] = came;
	m->table[at] = ++m->states;
	if (m->states == m->room)
		grow(m);
}

/* M6. The same, with each way that what a NIC has just written can have gone. */
static void reach(struct slow_model *m, const struct state *s, struct came came)
{
	for (unsigned l = 0; l < LINES; l++) {
		for (unsigned v = 0; v < s->line[l].versions; v++) {
			if (s->line[l].version[v].went != WAY_OPEN)
				continue;
			for (enum way way = WAY_CACHE; way <= WAY_PAST; way++) {
				struct state next = *s;
				assert(v == s->line[l].versions - 1u);
				went(m, &next.line[l], &next.line[l].version[v], way);
				reach(m, &next, came);
			}
			return;
		}
	}
	reach_decided(m, s, came);
}

static unsigned steps_of_thread(struct slow_model *m, uint32_t from, unsigned t)
{
	unsigned steps = 0;
	struct state s = m->state[from], next = s;
	bool again;
	if (s.pc[t] < m->p->length[t] && execute(m, &next, t, s.pc[t], &again)) {
		next.pc[t] += !again;
		reach(m, &next, (struct came){from, STEP_STATEMENT, (uint8_t)t, s.pc[t], 0});
		steps++;
	}
	for (unsigned i = 0; i < s.entries[t]; i++) {
		if (!may_leave(m, &s, t, i))
			continue;
		next = s;
		leave(m, &next, t, i);
		reach(m, &next, (struct came){from, STEP_LEAVE, (uint8_t)t, (uint8_t)i, 0});
		steps++;
	}
	return steps;
}

/* Its next parts that land, or are executed. */
static unsigned effects_of_request(struct slow_model *m, uint32_t from, unsigned e, unsigned i)
{
	const struct state s = m->state[from];
	const struct request *r = &s.end[e].request[i];
	bool posted = statement_is_posted(statement_of(m, r));
	unsigned steps = 0, parts = parts_of(m, &s.end[e], e, i);
	for (unsigned part = 0; part < parts; part++) {
		struct state next = s;
		if (!may_be_next(m, r, parts, part) ||
		    (is_atomic(statement_of(m, r)) && is_locked(m, &s, r)))
			continue;
		(posted ? land : take_effect_there)(m, &next, e, i, part);
		reach(m, &next,
		      (struct came){from, STEP_TAKE_EFFECT, (uint8_t)e, (uint8_t)i,
				    (uint8_t)(parts == 2 ? 1 + part : 0)});
		steps++;
	}
	return steps;
}

static unsigned steps_of_request(struct slow_model *m, uint32_t from, unsigned e, unsigned i)
{
	const struct state s = m->state[from];
	const struct end *end = &s.end[e];
	struct came came = {from, 0, (uint8_t)e, (uint8_t)i, 0};
	unsigned steps = 0;
	struct state next = s;
	if (may_start(m, end, i)) {
		start(m, &next, e, i);
		came.kind = STEP_START;
		reach(m, &next, came);
		steps++;
	} else if (may_arrive(end, i)) {
		next.end[e].request[i].stage = STAGE_ARRIVED;
		came.kind = STEP_ARRIVE;
		reach(m, &next, came);
		steps++;
	} else if (may_take_effect(m, end, i)) {
		steps += effects_of_request(m, from, e, i);
	}
	if (may_answer(m, end, i)) {
		next = s;
		answer(m, &next, e, i);
		came.kind = STEP_ANSWER;
		reach(m, &next, came);
		steps++;
	}
	return steps;
}

static bool all_ended(const struct slow_model *m, const struct state *s)
{
	for (unsigned t = 0; t < m->p->threads; t++)
		if (s->pc[t] < m->p->length[t])
			return false;
	return true;
}

/* Receives are posted before the start, in the order of the text. */
static void post_receives(struct slow_model *m)
{
	unsigned posted[ENDS] = {0};
	memset(m->buffer, NOWHERE, sizeof(m->buffer));
	for (unsigned t = 0; t < m->p->threads; t++) {
		for (unsigned i = 0; i < m->p->length[t]; i++) {
			const struct statement *st = &m->p->statement[t][i];
			unsigned e = end_of(m, t, st->qp);
			if (st->op == OP_RECV)
				m->buffer[e][posted[e]++] = st->to;
		}
	}
}

bool slow_model_run(struct slow_model *m, const struct program *p, unsigned states)
{
	struct state first;
	m->p = p;
	m->n_places = program_places(p, m->places);
	m->states = 0;
	m->most = states;
	m->overflow = false;
	m->final.n = m->crash.n = 0;
	memset(m->table, 0, m->table_size * sizeof(*m->table));
	post_receives(m);
	assert(!p->machine.ddio_any || p->machine.domain != MACHINE_WSP);
	memset(&first, 0, sizeof(first));
	for (unsigned c = 0; c < program_cells(p); c++)
		first.memory[c] = cell_initial(p, c);
	reach(m, &first, (struct came){0});
	for (unsigned from = 0; from < m->states && !m->overflow; from++) {
		unsigned steps = 0;
		struct state s = m->state[from];
		crash_outcomes(m, &s, from);
		for (unsigned t = 0; t < p->threads; t++)
			steps += steps_of_thread(m, from, t);
		for (unsigned e = 0; e < 2u * p->qps; e++)
			for (unsigned i = 0; i < s.end[e].requests; i++)
				steps += steps_of_request(m, from, e, i);
		if (!steps && all_ended(m, &s))
			final_outcome(m, &s, from);
	}
	return !m->overflow;
}

/* --- */

struct slow_model *slow_model_new(void)
{
	struct slow_model *m = calloc(1, sizeof(*m));
	/* States are compared and hashed as bytes: no byte may be without a name. */
	_Static_assert(sizeof(struct request) == 8 && sizeof(struct version) == 7, "no padding");
	_Static_assert(_Alignof(struct state) == 1, "no padding");
	if (!m)
		abort();
	grow(m);
	return m;
}

void slow_model_free(struct slow_model *m)
{
	free(m->state);
	free(m->came);
	free(m->table);
	free(m->final.outcome);
	free(m->crash.outcome);
	free(m);
}

const struct outcomes *slow_model_final(const struct slow_model *m)
{
	return &m->final;
}

const struct outcomes *slow_model_crash(const struct slow_model *m)
{
	return &m->crash;
}

unsigned slow_model_states(const struct slow_model *m)
{
	return m->states;
}

static void print_step(const struct slow_model *m, uint32_t to, FILE *out)
{
	static const char *const does[] = {[STEP_START] = "is sent",
					   [STEP_ARRIVE] = "arrives",
					   [STEP_TAKE_EFFECT] = "takes effect",
					   [STEP_ANSWER] = "is answered"};
	static const char *const entry[] = {[ENTRY_STORE] = "store",
					    [ENTRY_CLWB] = "clwb",
					    [ENTRY_CLFLUSH] = "clflush",
					    [ENTRY_SFENCE] = "sfence",
					    [ENTRY_DOORBELL] = "doorbell"};
	const struct came *came = &m->came[to];
	const struct state *before = &m->state[came->from];
	char text[64];
	if (came->kind == STEP_STATEMENT) {
		statement_print(m->p, &m->p->statement[came->who][came->number], text,
				sizeof(text));
		fprintf(out, "P%u: %s\n", came->who, text);
	} else if (came->kind == STEP_LEAVE) {
		const struct entry *e = &before->entry[came->who][came->number];
		fprintf(out, "P%u: its %s leaves the store buffer\n", came->who, entry[e->kind]);
	} else {
		const struct request *r = &before->end[came->who].request[came->number];
		statement_print(m->p, statement_of(m, r), text, sizeof(text));
		fprintf(out, "%s of P%u %s%s\n", text, r->thread, does[came->kind],
			came->part ? came->part == 1 ? ": its first part" : ": its second part"
				   : "");
	}
}

void slow_model_witness(const struct slow_model *m, const struct outcome *outcome, FILE *out)
{
	uint32_t path[512];
	unsigned n = 0;
	for (uint32_t at = outcome->state; at && n < 512; at = m->came[at].from)
		path[n++] = at;
	for (unsigned i = 0; i < n; i++) {
		fprintf(out, "%8u. ", i + 1);
		print_step(m, path[n - 1 - i], out);
	}
}
