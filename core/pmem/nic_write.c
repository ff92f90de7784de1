/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data that the NIC writes to PM: they arrive in its buffers, become visible line by line, and
 * with DDIO off drain from the integrated-I/O buffers to PM.
 */
#include "core/pmem/model.h"

bool pmem_owns(const struct pmem *pm, const void *addr, size_t len, uint64_t *off)
{
	uintptr_t start = (uintptr_t)pm->work, at = (uintptr_t)addr;
	if (at < start || at - start > pm->len || len > pm->len - (at - start))
		return false;
	*off = at - start;
	return true;
}

static bool nic_power_fails(struct pmem *pm, enum crash_place place, uint64_t off,
			    const struct nic_where *from)
{
	struct choice_point at = {.kind = CHOICE_CRASH,
				  .who = from->qp,
				  .op = from->op,
				  .occurrence = from->occurrence,
				  .a = place,
				  .b = from->message,
				  .c = from->packet << 16 | ((uint32_t)(off / LINE) & 0xffff)};
	return sim_power_fails(pm->sim, &at);
}

static struct late_bytes *find_late(struct pmem *pm, struct op_label op)
{
	for (uint32_t i = 0; i < pm->lates; i++)
		if (op_label_equal(pm->late[i].op, op))
			return &pm->late[i];
	return NULL;
}

void nic_note_late(struct pmem *pm, struct op_label op, size_t len)
{
	if (pm->course)
		course_add(pm, &(struct deed){.kind = DEED_LATE, .op = op, .n = (uint32_t)len},
			   NULL);
	struct late_bytes *late = find_late(pm, op);
	if (!late) {
		if (pm->lates == pm->late_room)
			pm->late = array_grow(pm->late, &pm->late_room, sizeof(*pm->late));
		late = &pm->late[pm->lates++];
		*late = (struct late_bytes){.op = op};
	}
	late->bytes += len;
}

/* Not all that lands has arrived: a packet of one line does both at once. */
void nic_note_landed(struct pmem *pm, struct op_label op, size_t len)
{
	if (pm->course)
		course_add(pm, &(struct deed){.kind = DEED_IN_TIME, .op = op, .n = (uint32_t)len},
			   NULL);
	struct late_bytes *late = find_late(pm, op);
	if (late)
		late->bytes -= late->bytes < len ? late->bytes : len;
}

bool pmem_is_late(const struct pmem *pm, unsigned i, struct op_label *op)
{
	assert(i < pm->lates);
	*op = pm->late[i].op;
	return pm->late[i].bytes;
}

unsigned pmem_lates(const struct pmem *pm)
{
	return pm->lates;
}

void nic_keep_arrival(struct pmem *pm, uint64_t off, const void *data, size_t len,
		      const struct nic_where *from)
{
	const uint32_t l = (uint32_t)(off / LINE);
	if (pm->course)
		course_add(pm,
			   &(struct deed){.kind = DEED_ARRIVE,
					  .line = l,
					  .off = (uint8_t)(off % LINE),
					  .len = (uint8_t)len},
			   data);
	line_write_durable(pm, off, data, len);
	if (pm->arrivals == pm->arrival_room)
		pm->arrival = array_grow(pm->arrival, &pm->arrival_room, sizeof(*pm->arrival));
	struct arrival *arrival = &pm->arrival[pm->arrivals++];
	*arrival = (struct arrival){.off = off, .len = (uint8_t)len};
	memcpy(arrival->data, data, len);
	if (from)
		arrival->from = *from;
	line_rehash(pm, l);
}

void nic_forget_arrival(struct pmem *pm, uint32_t i)
{
	assert(i < pm->arrivals);
	if (pm->course)
		course_add(pm, &(struct deed){.kind = DEED_LANDED, .n = i}, NULL);
	memmove(&pm->arrival[i], &pm->arrival[i + 1],
		(pm->arrivals - i - 1) * sizeof(pm->arrival[0]));
	pm->arrivals--;
}

void pmem_nic_arrive(struct pmem *pm, uint64_t off, const void *data, size_t len,
		     const struct nic_where *from)
{
	const uint8_t *bytes = data;
	nic_note_late(pm, from->op, len);
	if (!len || !domain_keeps_nic_buffers(pmem_hw_at(pm, off)))
		return;
	assert(pm->running && len <= pm->len && off <= pm->len - len);
	pmem_commit_pending(pm);
	show_all(pm);
	assert(!pm->pending.len);
	touch(pm, off, len, true);
	if (nic_power_fails(pm, CRASH_BEFORE_LAND, off, from))
		return;
	note_touch(pm, TOUCH_ARRIVE, off, len);
	while (len) {
		size_t part = within_line(off, len);
		nic_keep_arrival(pm, off, bytes, part, from);
		off += part;
		bytes += part;
		len -= part;
	}
}

static bool is_same_packet(const struct nic_where *a, const struct nic_where *b)
{
	return a->qp == b->qp && op_label_equal(a->op, b->op) && a->occurrence == b->occurrence &&
	       a->message == b->message && a->packet == b->packet;
}

/* What arrived of this packet for these bytes has landed. False: it did not arrive before. */
static bool arrival_landed(struct pmem *pm, uint64_t off, size_t len, const struct nic_where *from)
{
	for (uint32_t i = 0; i < pm->arrivals; i++) {
		if (pm->arrival[i].off != off || pm->arrival[i].len != len ||
		    !is_same_packet(&pm->arrival[i].from, from))
			continue;
		assert(len && off % LINE + len <= LINE);
		nic_forget_arrival(pm, i);
		return true;
	}
	return false;
}

struct drain {
	struct pmem *pm;
	uint32_t line, upto;
	struct nic_where from;
};

static void trace_drain(const struct pmem *pm, uint32_t l, const struct nic_where *from,
			const char *how)
{
	const struct traced about = {.kind = TRACED_DRAIN,
				     .occurrence = from->occurrence,
				     .op = from->op,
				     .off = (uint64_t)l * LINE,
				     .len = LINE,
				     .code = from->operation,
				     .id = from->id};
	char name[64];
	if (!sim_tracing(pm->sim))
		return;
	pmem_place(pm, about.off, name, sizeof(name));
	sim_trace_event(pm->sim, from->qp, 0, &about, "line %s %s", name, how);
}

static void drain_line(struct sim *sim, void *arg)
{
	struct drain *drain = arg;
	struct pmem *pm = drain->pm;
	assert(pm->running && pm->sim == sim);
	if (drain->upto <= pm->line[drain->line].committed || line_lost(pm, drain->line))
		return;
	if (nic_power_fails(pm, CRASH_BEFORE_DRAIN, (uint64_t)drain->line * LINE, &drain->from))
		return;
	line_commit(pm, drain->line, drain->upto);
	assert(pm->line[drain->line].committed >= drain->upto);
	trace_drain(pm, drain->line, &drain->from, "drains to PM");
}

static void schedule_drain(struct pmem *pm, uint32_t l, const struct nic_where *from)
{
	assert(pm->line[l].in_flight &&
	       domain_nic_flush_reaches(pmem_hw_at(pm, (uint64_t)l * LINE)));
	assert(!sim_picks(pm->sim));
	struct drain *drain = sim_alloc(pm->sim, sizeof(*drain));
	*drain = (struct drain){pm, l, pm->line[l].committed + pm->line[l].in_flight, *from};
	struct choice_point at = {.kind = CHOICE_DRAIN,
				  .who = from->qp,
				  .op = from->op,
				  .occurrence = from->occurrence,
				  .a = from->message,
				  .b = from->packet,
				  .c = l};
	sim_delay(pm->sim, CHAIN_OTHER, sim_choose(pm->sim, &at, DELAYS), pm->cost->drain,
		  drain_line, drain);
}

/* What the queue pair has in the integrated-I/O buffers changes, or is looked at: a flush that
 * finds nothing there would have found what lands after it. Only a scheduler is told. */
static void note_in_buffers(struct pmem *pm, enum touch what, const struct actor *qp)
{
	if (pm->watched && sim_picks(pm->sim))
		sim_touch(pm->sim, what, (uintptr_t)qp, 1);
}

static void land(struct pmem *pm, uint64_t off, const void *data, size_t len,
		 const struct nic_where *from, bool durable)
{
	uint32_t l = (uint32_t)(off / LINE);
	struct author by = {.who = from->qp,
			    .op = from->op,
			    .occurrence = from->occurrence,
			    .nic = true,
			    .send = from->send};
	assert(len && off % LINE + len <= LINE && off < pm->len);
	pmem_commit_pending(pm);
	show_all(pm);
	note_in_buffers(pm, TOUCH_DRAM_WRITE, from->qp);
	bool arrived = arrival_landed(pm, off, len, from);
	note_touch(pm, arrived ? TOUCH_SHOW : TOUCH_WRITE, off, len);
	touch(pm, off, len, true);
	/* Under WSP the data is durable since it arrived: landing changes nothing that survives. */
	if (durable && !domain_keeps_nic_buffers(pmem_hw_at(pm, off)) &&
	    nic_power_fails(pm, CRASH_BEFORE_LAND, off, from))
		return;
	nic_note_landed(pm, from->op, len);
	memcpy(pm->work + off, data, len);
	line_add_version(pm, off, data, len, &by);
	if (sim_tracing(pm->sim)) {
		char name[64];
		pmem_place(pm, off, name, sizeof(name));
		const struct traced about = {.kind = TRACED_LAND,
					     .occurrence = from->occurrence,
					     .op = from->op,
					     .off = off,
					     .len = len,
					     .code = from->operation,
					     .id = from->id};
		sim_trace_event(pm->sim, from->qp, 0, &about,
				"message %u packet %u: %zu byte%s at %s, %s", from->message,
				from->packet, len, len == 1 ? " lands" : "s land", name,
				durable ? "visible and durable" : "visible");
	}
	if (arrived)
		line_make_durable(pm, l, pm->line[l].committed + pm->line[l].in_flight);
	else if (durable)
		line_commit_all(pm, l);
	else if (domain_nic_flush_reaches(pmem_hw_at(pm, off)) &&
		 !sim_picks(pm->sim)) /* a drain only makes images fewer */
		schedule_drain(pm, l, from);
	assert(!pm->line[l].in_flight == (arrived || durable));
}

void pmem_nic_land(struct pmem *pm, uint64_t off, const void *data, size_t len,
		   const struct nic_where *from)
{
	land(pm, off, data, len, from,
	     domain_keeps_visible(pmem_hw_at(pm, off), true) || MUTANT(&pm->hw, PM_NIC_DURABLE));
}

void pmem_nic_commit_word(struct pmem *pm, uint64_t off, uint64_t word,
			  const struct nic_where *from)
{
	assert(off % sizeof(word) == 0);
	land(pm, off, &word, sizeof(word), from, true);
}

/* Number of the line's versions since boot that the flush covers, up to the newest it names. */
static uint32_t flushed_upto(const struct pmem *pm, uint32_t l, const struct nic_cover *cover,
			     const struct actor *qp)
{
	const struct line *line = &pm->line[l];
	uint32_t n = line->committed, upto = n;
	if (line_lost(pm, l))
		return upto;
	for (uint32_t i = line->first; i; i = pm->version[i - 1].next) {
		const struct version *v = &pm->version[i - 1];
		uint64_t at = (uint64_t)l * LINE + v->off;
		n++;
		if (v->by.nic && v->by.who == qp && nic_covers(cover, v->by.send, at, v->len))
			upto = n;
	}
	assert(n == line->committed + line->in_flight);
	return upto;
}

/* Make durable what the queue pair wrote there, with its lines' older content. */
static void make_durable(struct pmem *pm, const struct nic_cover *cover,
			 const struct nic_where *from)
{
	uint32_t lowest = UINT32_MAX, lines = 0, dirties;
	note_in_buffers(pm, TOUCH_DRAM_READ, from->qp);
	for (uint32_t i = 0; i < pm->dirties; i++) {
		uint32_t l = pm->dirty[i];
		if (flushed_upto(pm, l, cover, from->qp) == pm->line[l].committed)
			continue;
		lowest = l < lowest ? l : lowest;
		lines++;
	}
	if (!lines || nic_power_fails(pm, CRASH_BEFORE_DRAIN, (uint64_t)lowest * LINE, from))
		return;
	dirties = pm->dirties;
	/* From the end: a line that is clean now gives its place to the list's last one. */
	for (uint32_t i = pm->dirties; i--;) {
		uint32_t l = pm->dirty[i], upto = flushed_upto(pm, l, cover, from->qp);
		if (upto == pm->line[l].committed)
			continue;
		line_commit(pm, l, upto);
		trace_drain(pm, l, from, "is drained to PM, now durable");
	}
	assert(dirties - pm->dirties <= lines);
}

/* The hardware of the queue pair's host: it lands nothing elsewhere. */
static const struct hardware *hw_of(const struct pmem *pm, const struct actor *qp)
{
	for (uint32_t i = 0; i < pm->dirties && pm->hosts; i++) {
		const uint32_t l = pm->dirty[i];
		for (uint32_t k = pm->line[l].first; k; k = pm->version[k - 1].next)
			if (pm->version[k - 1].by.nic && pm->version[k - 1].by.who == qp)
				return pmem_hw_at(pm, (uint64_t)l * LINE);
	}
	return &pm->hw;
}

void pmem_nic_drain(struct pmem *pm, enum nic_request by, uint64_t off, size_t len,
		    const struct nic_where *from)
{
	struct nic_cover cover;
	assert(pm->running);
	pmem_commit_pending(pm);
	if (domain_nic_drains(hw_of(pm, from->qp), by, off, len, &cover))
		make_durable(pm, &cover, from);
}

void pmem_nic_read(struct pmem *pm, uint64_t off, void *data, size_t len)
{
	pmem_commit_pending(pm);
	if (!len)
		return;
	assert(pm->running && len <= pm->len && off <= pm->len - len);
	note_touch(pm, TOUCH_READ, off, len);
	if (MUTANT(&pm->hw, PM_NEWEST_ON_NIC_READ)) {
		struct source *source = sim_get_source(pm->sim);
		sim_source(pm->sim, NULL);
		touch(pm, off, len, false);
		sim_source(pm->sim, source);
	} else {
		touch(pm, off, len, false); /* from here on a run may have another source */
	}
	show_mine(pm); /* a task that posts inline data copies them itself; no task runs in an event
			*/
	memcpy(data, pm->work + off, len);
}
