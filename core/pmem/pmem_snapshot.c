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

/* Of struct pmem, what changes within a run; arrays are put by themselves. */
struct kept {
	struct pmem_window window;
	uint32_t undos, versions, dirties, arrivals, lates, nts, watched;
	uint64_t durable_hash, flight_hash, nt_number;
	unsigned flushers;
	bool buffers;
};

static void put_lines(const struct pmem *pm, struct snapshot *s)
{
	for (uint32_t i = 0; i < pm->undos; i++) {
		struct kept_line k = {.undo = pm->undo[i], .line = pm->line[pm->undo[i].line]};
		const size_t off = (size_t)k.undo.line * LINE;
		memcpy(k.work, pm->work + off, LINE);
		memcpy(k.durable, pm->durable + off, LINE);
		snapshot_put(s, &k, sizeof(k));
	}
}

static void take_lines(struct pmem *pm, uint32_t lines, struct snapshot *s)
{
	for (uint32_t i = 0; i < lines; i++) {
		struct kept_line k;
		snapshot_take(s, &k, sizeof(k));
		const uint32_t l = k.undo.line;
		line_save(pm, l);
		assert(!memcmp(&pm->undo[i], &k.undo, sizeof(k.undo))); /* it boots as it did */
		k.line.saved = pm->run;
		pm->line[l] = k.line;
		memcpy(pm->work + (size_t)l * LINE, k.work, LINE);
		line_write_durable(pm, (uint64_t)l * LINE, k.durable, LINE);
	}
}

void pmem_snapshot(struct pmem *pm, struct snapshot *s)
{
	assert(pm->running && !pm->machine && !pm->dram_watcher);
	assert(pm->machine + 1 == pm->stack->machines || !pm->stack->pm[1].running);
	pmem_commit_pending(pm);
	show_all(pm);
	assert(!pm->pending.len);
	const struct kept k = {.window = pm->window,
			       .undos = pm->undos,
			       .versions = pm->versions,
			       .dirties = pm->dirties,
			       .arrivals = pm->arrivals,
			       .lates = pm->lates,
			       .nts = pm->nts,
			       .watched = pm->watched,
			       .durable_hash = pm->durable_hash,
			       .flight_hash = pm->flight_hash,
			       .nt_number = pm->nt_number,
			       .flushers = pm->flushers,
			       .buffers = pm->buffers};
	snapshot_put(s, &k, sizeof(k));
	put_lines(pm, s);
	snapshot_put(s, pm->version, k.versions * sizeof(*pm->version));
	snapshot_put(s, pm->dirty, k.dirties * sizeof(*pm->dirty));
	snapshot_put(s, pm->arrival, k.arrivals * sizeof(*pm->arrival));
	snapshot_put(s, pm->late, k.lates * sizeof(*pm->late));
	snapshot_put(s, pm->nt, k.nts * sizeof(*pm->nt));
	for (unsigned t = 0; t <= k.flushers; t++) {
		const struct pending_flushes *f = &pm->flushes[t];
		snapshot_put(s, &f->n, sizeof(f->n));
		snapshot_put(s, f->flush, f->n * sizeof(*f->flush));
	}
	if (k.buffers)
		store_buffers_snapshot(pm->buffers, s);
}

void pmem_resume(struct pmem *pm, struct snapshot *s)
{
	const struct hardware hw = pm->hw;
	struct kept k;
	pmem_begin(pm, pm->sim, &hw);
	snapshot_take(s, &k, sizeof(k));
	take_lines(pm, k.undos, s);
	/* There is room for all: there were so many before. */
	snapshot_take(s, pm->version, k.versions * sizeof(*pm->version));
	snapshot_take(s, pm->dirty, k.dirties * sizeof(*pm->dirty));
	snapshot_take(s, pm->arrival, k.arrivals * sizeof(*pm->arrival));
	snapshot_take(s, pm->late, k.lates * sizeof(*pm->late));
	snapshot_take(s, pm->nt, k.nts * sizeof(*pm->nt));
	for (unsigned t = 0; t <= k.flushers; t++) {
		struct pending_flushes *f = &pm->flushes[t];
		snapshot_take(s, &f->n, sizeof(f->n));
		snapshot_take(s, f->flush, f->n * sizeof(*f->flush));
	}
	if (k.buffers)
		store_buffers_resume(pm->buffers, s);
	pm->window = k.window;
	pm->versions = k.versions;
	pm->dirties = k.dirties;
	pm->arrivals = k.arrivals;
	pm->lates = k.lates;
	pm->nts = k.nts;
	pm->watched = k.watched;
	pm->durable_hash = k.durable_hash;
	pm->flight_hash = k.flight_hash;
	pm->nt_number = k.nt_number;
	pm->flushers = k.flushers;
}
