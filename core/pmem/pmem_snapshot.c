/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine's memory at one moment, and how it goes on from there once more. What the machine has
 * changed until then are the lines of its undo list, so of the pool only these are kept: content,
 * durable content and versions.
 */
#include "core/pmem/model.h"
#include "core/rt/snapshot.h"

struct kept_line {
	struct undo undo; /* what it held at boot */
	struct line line;
	uint8_t work[LINE], durable[LINE];
};

static void put_lines(const struct pmem *pm, struct snapshot *s)
{
	for (uint32_t i = 0; i < pm->undos; i++) {
		struct kept_line k = {.undo = pm->undo[i], .line = pm->line[pm->undo[i].line]};
		const size_t off = (size_t)k.undo.line * LINE;
		memcpy(k.work, pm->work + off, LINE);
		memcpy(k.durable, pm->durable + off, LINE);
		SNAPSHOT_EXCHANGE(s, k);
	}
}

static void take_lines(struct pmem *pm, uint32_t lines, struct snapshot *s)
{
	for (uint32_t i = 0; i < lines; i++) {
		struct kept_line k;
		SNAPSHOT_EXCHANGE(s, k);
		const uint32_t l = k.undo.line;
		line_save(pm, l);
		assert(!memcmp(&pm->undo[i], &k.undo, sizeof(k.undo))); /* it boots as it did */
		k.line.saved = pm->run;
		pm->line[l] = k.line;
		memcpy(pm->work + (size_t)l * LINE, k.work, LINE);
		line_write_durable(pm, (uint64_t)l * LINE, k.durable, LINE);
	}
}

/* Which of the dirty lines their host has lost. */
static void exchange_lost(struct pmem *pm, struct snapshot *s)
{
	SNAPSHOT_EXCHANGE(s, pm->failures);
	SNAPSHOT_EXCHANGE(s, pm->losts);
	for (uint32_t i = 0; i < pm->dirties && pm->losts; i++) {
		const uint32_t l = pm->dirty[i];
		bool lost = line_bit(pm->lost, l);
		SNAPSHOT_EXCHANGE(s, lost);
		pm->lost[l / 64] = (pm->lost[l / 64] & ~(1ull << l % 64)) | (uint64_t)lost
										    << l % 64;
	}
}

/* Exchange what changes within a run, but for the lines. Each array has room, as it held as many
 * before. */
static void exchange(struct pmem *pm, struct snapshot *s)
{
	SNAPSHOT_EXCHANGE(s, pm->window);
	SNAPSHOT_EXCHANGE(s, pm->watched);
	SNAPSHOT_EXCHANGE(s, pm->htms);
	if (pm->htms)
		SNAPSHOT_EXCHANGE(s, pm->htm);
	SNAPSHOT_EXCHANGE(s, pm->durable_hash);
	SNAPSHOT_EXCHANGE(s, pm->flight_hash);
	SNAPSHOT_EXCHANGE(s, pm->nt_number);
	SNAPSHOT_EXCHANGE(s, pm->versions);
	snapshot_exchange(s, pm->version, pm->versions * sizeof(*pm->version));
	SNAPSHOT_EXCHANGE(s, pm->dirties);
	snapshot_exchange(s, pm->dirty, pm->dirties * sizeof(*pm->dirty));
	exchange_lost(pm, s);
	SNAPSHOT_EXCHANGE(s, pm->arrivals);
	snapshot_exchange(s, pm->arrival, pm->arrivals * sizeof(*pm->arrival));
	SNAPSHOT_EXCHANGE(s, pm->lates);
	snapshot_exchange(s, pm->late, pm->lates * sizeof(*pm->late));
	SNAPSHOT_EXCHANGE(s, pm->nts);
	snapshot_exchange(s, pm->nt, pm->nts * sizeof(*pm->nt));
	SNAPSHOT_EXCHANGE(s, pm->flushers);
	for (unsigned t = 0; t <= pm->flushers; t++) {
		struct pending_flushes *f = &pm->flushes[t];
		SNAPSHOT_EXCHANGE(s, f->n);
		snapshot_exchange(s, f->flush, f->n * sizeof(*f->flush));
	}
	if (pm->buffers)
		store_buffers_exchange(pm->buffers, s);
}

void pmem_snapshot(struct pmem *pm, struct snapshot *s)
{
	assert(pm->running && !pm->machine && !pm->dram_watcher);
	assert(pm->machine + 1 == pm->stack->machines || !pm->stack->pm[1].running);
	pmem_commit_pending(pm);
	show_all(pm);
	assert(!pm->pending.len);
	SNAPSHOT_EXCHANGE(s, pm->undos);
	put_lines(pm, s);
	exchange(pm, s);
}

void pmem_resume(struct pmem *pm, struct snapshot *s)
{
	const struct hardware hw = pm->hw;
	const unsigned hosts = pm->hosts; /* where they are is kept */
	uint32_t lines = 0;
	pmem_begin(pm, pm->sim, &hw);
	pmem_set_hosts(pm, hosts);
	SNAPSHOT_EXCHANGE(s, lines);
	take_lines(pm, lines, s);
	exchange(pm, s);
}
