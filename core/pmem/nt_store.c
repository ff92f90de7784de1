/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-temporal stores with buffers of their own (nt_stores=buffered): a CPU's write-combining
 * buffers.
 *
 * What such a store writes to a line waits in its CPU's buffer for that line. When it leaves, it
 * becomes visible, and counts as flushed by its CPU: it goes past the cache to the memory
 * controller, and the CPU's next fence makes it durable. Buffers of different lines leave in any
 * order, before or after other stores of the CPU: x86 orders non-temporal stores with nothing but
 *	- the CPU's earlier ones, stores and loads of the same line: the buffer leaves first;
 *	- its fences, locked instructions and doorbells: all of them leave first;
 *	- its sfence before them, and its stores to the line in the store buffer: the CPU waits.
 * The scheduler, where there is one, decides when a buffer leaves; else CHOICE_BUFFER does: at
 * once, or late. A power failure loses what is in a buffer.
 */
#include "core/pmem/model.h"

/* The entry leaves: as stores of its words. False: the power failed. */
static bool leave(struct pmem *pm, uint32_t i)
{
	struct nt_store nt = pm->nt[i];
	memmove(&pm->nt[i], &pm->nt[i + 1], (pm->nts - i - 1) * sizeof(nt));
	pm->nts--;
	sim_takes(pm->sim, &pm->nts, nt.number);
	show_all(pm);
	note_touch(pm, TOUCH_WRITE, nt.late.off, nt.late.len);
	for (size_t done = 0, part; done < nt.late.len; done += part) {
		part = 8 - (nt.late.off + done) % 8;
		part = part < nt.late.len - done ? part : nt.late.len - done;
		memcpy(pm->work + nt.late.off + done, nt.bytes + done, part);
		if (!cpu_stored(pm, nt.late.off + done, part, &nt.late.by, &nt.late))
			return false;
	}
	cpu_note_flush(pm, nt.late.cpu, nt.late.off, nt.late.len, &nt.late.by);
	return true;
}

bool nt_leave(struct pmem *pm, unsigned cpu, uint64_t off, size_t len)
{
	for (uint32_t i = 0; i < pm->nts;) {
		const struct buffered *late = &pm->nt[i].late;
		bool same_line = late->off / LINE <= (off + len - 1) / LINE &&
				 off / LINE <= (late->off + late->len - 1) / LINE;
		if (late->cpu != cpu || (len && !same_line))
			i++;
		else if (!leave(pm, i))
			return false;
	}
	return true;
}

struct nt_departure {
	struct pmem *pm;
	uint64_t number;
};

static void fire(struct sim *sim, void *arg)
{
	const struct nt_departure *departure = arg;
	struct pmem *pm = departure->pm;
	uint32_t i = 0;
	(void)sim;
	pmem_commit_pending(pm);
	while (i < pm->nts && pm->nt[i].number != departure->number)
		i++;
	if (i == pm->nts)
		return; /* it had to leave before */
	/* Earlier ones on its line leave with it. */
	const struct buffered late = pm->nt[i].late;
	nt_leave(pm, late.cpu, late.off, late.len);
}

static unsigned choose_delay(struct pmem *pm, struct actor *actor)
{
	struct choice_point at = {.kind = CHOICE_BUFFER,
				  .who = actor,
				  .op = actor->op,
				  .occurrence = actor->occurrence,
				  .a = actor->count[COUNT_STEP + STEP_STORE]};
	return sim_plain(pm->sim) ? 0 : sim_choose(pm->sim, &at, DELAYS);
}

/* Bytes of one line. */
static void enter(struct pmem *pm, uint64_t off, const uint8_t *data, int byte, size_t len,
		  uintptr_t pc)
{
	struct actor *actor = sim_actor(pm->sim);
	unsigned cpu = (unsigned)(sim_task(pm->sim) + 1), k = choose_delay(pm, actor);
	if (pm->buffers && store_buffers_keep(pm->buffers, off, len))
		store_buffers_wait(pm->buffers, 0);
	touch(pm, off, len, true);
	if (pm->nts == pm->nt_room)
		pm->nt = array_grow(pm->nt, &pm->nt_room, sizeof(*pm->nt));
	struct nt_store *nt = &pm->nt[pm->nts++];
	*nt = (struct nt_store){.late = {.kind = BUFFERED_STORE,
					 .cpu = cpu,
					 .nth = ++actor->count[COUNT_CRASH + CRASH_BEFORE_LEAVE],
					 .by = task_author(pm, pc),
					 .off = off,
					 .len = len},
				.number = ++pm->nt_number};
	show_mine(pm); /* where the bytes come from may be in PM */
	if (data)
		memcpy(nt->bytes, data, len);
	else
		memset(nt->bytes, byte, len);
	sim_gives(pm->sim, &pm->nts, nt->number);
	if (!k && !sim_picks(pm->sim)) {
		nt_leave(pm, cpu, off, len);
		return;
	}
	struct nt_departure *departure = sim_alloc(pm->sim, sizeof(*departure));
	*departure = (struct nt_departure){pm, nt->number};
	if (sim_picks(pm->sim)) /* one chain for each line */
		sim_in_chain(pm->sim,
			     chain_name(actor->name_hash ^ (off / LINE + 1) * 0x9e3779b97f4a7c15u,
					CHAIN_STORES),
			     0, fire, departure);
	else
		sim_delay(pm->sim, CHAIN_OTHER, k, 0, fire, departure);
}

bool pmem_has_nt_buffers(const struct pmem *pm)
{
	return pm->hw.nt_buffered;
}

void pmem_cpu_nt_copy(struct pmem *pm, uint64_t off, const void *data, int byte, size_t len,
		      uintptr_t pc)
{
	const uint8_t *from = data;
	if (!pm->hw.nt_buffered || !sim_actor(pm->sim)) {
		pmem_cpu_copy(pm, off, data, byte, len, pc);
		pmem_cpu_flush(pm, off, len, pc);
		return;
	}
	cpu_settle(pm);
	for (size_t part; len; off += part, len -= part) {
		part = within_line(off, len);
		sim_step(pm->sim, STEP_STORE, pm->cost->store);
		sim_saw(pm->sim, TOUCH_WRITE, off, pm->work + off, part);
		enter(pm, off, from, byte, part, pc);
		from = from ? from + part : NULL;
	}
}
