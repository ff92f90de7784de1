/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU's flushes and fences, and what happens when an entry leaves a store buffer.
 *
 * clwb and clflushopt note the line and its versions as a pending flush; the same CPU's next fence
 * makes these versions durable. clflush does so at once. With store buffers (store_buffer.c) each
 * of them may have to wait for the stores before it.
 */
#include "core/pmem/model.h"
#include "core/text/text.h"

/* The current task's CPU; 0: no task runs. */
static unsigned my_cpu(const struct pmem *pm)
{
	return (unsigned)(sim_task(pm->sim) + 1);
}

static struct pending_flushes *flushes_of(struct pmem *pm, unsigned cpu)
{
	assert(cpu <= SIM_TASKS);
	if (pm->flushers < cpu)
		pm->flushers = cpu;
	return &pm->flushes[cpu];
}

/* Other instructions than stores wait in the buffer only after something else. */
static bool goes_through_buffer(struct pmem *pm)
{
	return pm->buffers && store_buffers_in_use(pm->buffers);
}

static void enter_buffer(struct pmem *pm, enum buffered_kind kind, uint64_t off, size_t len,
			 uintptr_t pc)
{
	const struct buffered entry = {
		.kind = (uint8_t)kind, .by = task_author(pm, pc), .off = off, .len = len};
	store_buffers_wait(pm->buffers, pm->buffers->size - 1);
	store_buffers_enter(pm->buffers, &entry, 0);
}

/* The last line of a range that is flushed. */
static uint64_t last_line(const struct pmem *pm, uint64_t off, size_t len)
{
	if (MUTANT(&pm->hw, PM_FLUSH_SHORT))
		return off / LINE + (len - 1) / LINE;
	return (off + len - 1) / LINE;
}

static void trace_flush(struct pmem *pm, uint64_t off, size_t len, const struct author *by,
			const char *what)
{
	char name[64] = "";
	if (sim_traces_words(pm->sim))
		pmem_place(pm, off, name, sizeof(name));
	const struct traced about = {.kind = TRACED_FLUSH, .off = off, .len = len};
	sim_trace_event(pm->sim, by->who, by->pc, &about, "flushes %zu byte%s at %s%s", len,
			plural(len), name, what);
}

void cpu_note_flush(struct pmem *pm, unsigned cpu, uint64_t off, size_t len,
		    const struct author *by)
{
	struct pending_flushes *flushes = flushes_of(pm, cpu);
	uint64_t last = last_line(pm, off, len);
	assert(pm->running && last < pm->len / LINE);
	if (MUTANT(&pm->hw, PM_FLUSH_IGNORED))
		return;
	note_touch(pm, TOUCH_READ, off, len);
	for (uint32_t l = (uint32_t)(off / LINE); l <= last; l++) {
		struct line *line = &pm->line[l];
		if (!line->in_flight)
			continue;
		if (flushes->n == flushes->room)
			flushes->flush = array_grow(flushes->flush, &flushes->room,
						    sizeof(*flushes->flush));
		flushes->flush[flushes->n++] = (struct pending_flush){l, line->committed +
										 line->in_flight};
	}
	if (sim_tracing(pm->sim))
		trace_flush(pm, off, len, by, "");
}

/* clflush: the range's lines are durable as they are now. False: the power failed. */
static bool flush_now(struct pmem *pm, uint64_t off, size_t len, const struct author *by,
		      const struct buffered *late)
{
	uint64_t last = last_line(pm, off, len);
	bool moves = false;
	assert(pm->running && last < pm->len / LINE);
	if (MUTANT(&pm->hw, PM_FLUSH_IGNORED))
		return true;
	note_touch(pm, TOUCH_READ, off, len);
	for (uint32_t l = (uint32_t)(off / LINE); l <= last && !moves; l++)
		moves = pm->line[l].in_flight;
	if (moves && cpu_power_fails(pm, CRASH_BEFORE_FENCE, late))
		return false;
	for (uint32_t l = (uint32_t)(off / LINE); l <= last; l++)
		line_commit_all(pm, l);
	if (sim_tracing(pm->sim))
		trace_flush(pm, off, len, by, ", now durable");
	return true;
}

/* What its lines cost besides the call. */
static void work_on_lines(struct pmem *pm, uint64_t off, size_t len)
{
	const uint64_t lines = (off + len - 1) / LINE - off / LINE + 1;
	sim_work(pm->sim, lines * pm->cost->flush_line);
	sim_flush_bytes(pm->sim, lines * LINE);
}

void pmem_cpu_flush(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc)
{
	cpu_settle(pm);
	sim_step(pm->sim, STEP_FLUSH, pm->cost->flush);
	if (!len)
		return;
	work_on_lines(pm, off, len);
	sim_saw(pm->sim, TOUCH_READ, off, pm->work + off, len);
	nt_leave_mine(pm, off, len);
	const struct author by = task_author(pm, pc);
	if (!goes_through_buffer(pm)) {
		cpu_note_flush(pm, my_cpu(pm), off, len, &by);
		return;
	}
	/* Line by line: each waits only for what concerns it. */
	for (uint64_t end = off + len, part; off < end; off += part) {
		part = LINE - off % LINE < end - off ? LINE - off % LINE : end - off;
		if (store_buffers_keep(pm->buffers, off, part))
			enter_buffer(pm, BUFFERED_FLUSH, off, part, pc);
		else
			cpu_note_flush(pm, my_cpu(pm), off, part, &by);
	}
}

void pmem_cpu_clflush(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc)
{
	cpu_settle(pm);
	sim_step(pm->sim, STEP_FLUSH, pm->cost->flush);
	if (!len)
		return;
	work_on_lines(pm, off, len);
	sim_saw(pm->sim, TOUCH_READ, off, pm->work + off, len);
	nt_leave_mine(pm, off, len);
	if (goes_through_buffer(pm)) {
		enter_buffer(pm, BUFFERED_CLFLUSH, off, len, pc);
		return;
	}
	const struct author by = task_author(pm, pc);
	flush_now(pm, off, len, &by, NULL);
}

/* What this CPU has flushed is durable. False: the power failed. */
static bool fence(struct pmem *pm, unsigned cpu, const struct author *by,
		  const struct buffered *late)
{
	if (pm->nts && !MUTANT(&pm->hw, PM_NT_UNFENCED) && !nt_leave(pm, cpu, 0, 0))
		return false;
	struct pending_flushes *flushes = flushes_of(pm, cpu);
	bool moves = false;
	assert(!pm->pending.len || late); /* a store before the fence is a version by now */
	for (unsigned i = 0; i < flushes->n && !moves; i++)
		moves = flushes->flush[i].upto > pm->line[flushes->flush[i].line].committed;
	if (moves && cpu_power_fails(pm, CRASH_BEFORE_FENCE, late))
		return false;
	for (unsigned i = 0; i < flushes->n && !(i && MUTANT(&pm->hw, PM_FENCE_ONE)); i++)
		line_commit(pm, flushes->flush[i].line, flushes->flush[i].upto);
	if (MUTANT(&pm->hw, PM_FENCE_ALL))
		lines_write_back(pm);
	for (unsigned t = 0; t <= SIM_TASKS && MUTANT(&pm->hw, PM_FENCE_FORGETS); t++)
		pm->flushes[t].n = 0;
	if (sim_tracing(pm->sim)) {
		const struct traced about = {.kind = TRACED_FENCE};
		sim_trace_event(pm->sim, by->who, by->pc, &about,
				"fence: %u flushed line%s now durable", flushes->n,
				flushes->n == 1 ? " is" : "s are");
	}
	flushes->n = 0;
	return true;
}

void pmem_cpu_fence(struct pmem *pm, uintptr_t pc)
{
	cpu_settle(pm);
	sim_step(pm->sim, STEP_FENCE, pm->cost->fence);
	if (goes_through_buffer(pm)) {
		enter_buffer(pm, BUFFERED_FENCE, 0, 0, pc);
		return;
	}
	const struct author by = task_author(pm, pc);
	fence(pm, my_cpu(pm), &by, NULL);
}

bool pmem_flushes_caches(const struct pmem *pm)
{
	const unsigned server = pm->hosts ? host_server(sim_host(pm->sim)) : SIM_SERVERS;
	return domain_keeps_visible(server < SIM_SERVERS ? &pm->host_hw[server] : &pm->hw, false);
}

bool pmem_has_buffers(const struct pmem *pm)
{
	return pm->buffers || pm->hw.nt_buffered;
}

void pmem_cpu_empty(struct pmem *pm, uintptr_t pc)
{
	const struct author by = task_author(pm, pc);
	pmem_commit_pending(pm);
	if (pm->buffers)
		store_buffers_wait(pm->buffers, 0);
	nt_leave_mine(pm, 0, 0);
	if (flushes_of(pm, my_cpu(pm))->n)
		fence(pm, my_cpu(pm), &by, NULL);
}

void pmem_cpu_mfence(struct pmem *pm, uintptr_t pc)
{
	if (!pm->buffers) {
		pmem_cpu_fence(pm, pc);
		return;
	}
	cpu_settle(pm);
	sim_step(pm->sim, STEP_FENCE, pm->cost->fence);
	pmem_cpu_empty(pm, pc);
}

void pmem_cpu_post(struct pmem *pm, void (*ring)(void *arg), void *arg)
{
	pmem_commit_pending(pm);
	if (!pm->buffers || !store_buffers_waiting(pm->buffers)) {
		nt_leave_mine(pm, 0, 0);
		ring(arg);
		return;
	}
	const struct buffered entry = {
		.kind = BUFFERED_POST, .by = task_author(pm, 0), .ring = ring, .arg = arg};
	store_buffers_wait(pm->buffers, pm->buffers->size - 1);
	store_buffers_enter(pm->buffers, &entry, 0);
}

void pmem_process_ended(struct pmem *pm)
{
	pmem_commit_pending(pm);
	if (pm->buffers)
		store_buffers_empty(pm->buffers);
	for (unsigned cpu = 1; cpu <= SIM_TASKS && pm->nts; cpu++)
		if (!nt_leave(pm, cpu, 0, 0)) /* the power fails */
			return;
}

bool cpu_entry_leaves(void *arg, const struct buffered *entry)
{
	struct pmem *pm = arg;
	switch (entry->kind) {
	case BUFFERED_STORE:
		note_touch(pm, TOUCH_WRITE, entry->off, entry->len);
		memcpy(pm->work + entry->off, entry->bytes, entry->len);
		return cpu_stored(pm, entry->off, entry->len, &entry->by, entry);
	case BUFFERED_FLUSH:
		cpu_note_flush(pm, entry->cpu, entry->off, entry->len, &entry->by);
		return true;
	case BUFFERED_CLFLUSH:
		return flush_now(pm, entry->off, entry->len, &entry->by, entry);
	case BUFFERED_FENCE:
		return fence(pm, entry->cpu, &entry->by, entry);
	default:
		if (pm->nts && !nt_leave(pm, entry->cpu, 0, 0))
			return false;
		entry->ring(entry->arg);
		return true;
	}
}
