/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU's stores and loads of PM.
 *
 * A hook fires before its access. So a store is first pending: its place is known, its bytes are
 * read from memory at the next event of any kind (pmem_commit_pending()), and become versions of
 * its lines. With store buffers they are taken out of memory again and wait in the CPU's buffer,
 * if a choice says so; what other CPUs see is as before until they leave it (cpu_flush.c).
 */
#include <stdio.h>
#include "core/pmem/model.h"
#include "core/text/text.h"

static void trace_store(struct pmem *pm, uint64_t off, const void *data, size_t len,
			const struct author *by, bool late)
{
	const bool words = sim_traces_words(pm->sim);
	char name[64] = "", hex[24] = "";
	if (words)
		pmem_place(pm, off, name, sizeof(name));
	for (size_t i = 0; words && i < len && i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", ((const uint8_t *)data)[i]);
	const struct traced about = {.kind = TRACED_STORE, .off = off, .len = len};
	sim_trace_event(pm->sim, by->who, by->pc, &about, "%sstores %zu byte%s at %s: %s",
			late ? "out of its store buffer: " : "", len, plural(len), name, hex);
}

bool cpu_power_fails(struct pmem *pm, enum crash_place place, const struct buffered *late)
{
	if (!late)
		return sim_power_fails_here(pm->sim, place);
	struct choice_point at = {.kind = CHOICE_CRASH,
				  .who = late->by.who,
				  .op = late->by.op,
				  .occurrence = late->by.occurrence,
				  .a = CRASH_BEFORE_LEAVE,
				  .b = late->nth};
	return sim_power_fails(pm->sim, &at);
}

bool cpu_stored(struct pmem *pm, uint64_t off, size_t len, const struct author *by,
		const struct buffered *late)
{
	uint32_t l = (uint32_t)(off / LINE);
	assert(pm->running && len && off % LINE + len <= LINE);
	size_t torn = MUTANT(&pm->hw, PM_WORD_TORN) && len == 8 ? 4 : 0;
	if (torn)
		line_add_version(pm, off, pm->work + off, torn, by);
	line_add_version(pm, off + torn, pm->work + off + torn, len - torn, by);
	if (sim_tracing(pm->sim))
		trace_store(pm, off, pm->work + off, len, by, late);
	if (!domain_keeps_visible(pmem_hw_at(pm, off), false))
		return true;
	if (cpu_power_fails(pm, CRASH_BEFORE_STORE, late))
		return false;
	line_commit_all(pm, l);
	return true;
}

/* Bytes that the CPU stores within one line, on their way to memory. */
static void store_piece(struct pmem *pm, uint64_t off, const uint8_t *bytes, size_t len,
			const struct author *by, struct pending_store *how)
{
	if (!how->waits) {
		memcpy(pm->work + off, bytes, len);
		cpu_stored(pm, off, len, by, NULL);
		return;
	}
	struct buffered entry = {.kind = BUFFERED_STORE, .by = *by, .off = off, .len = len};
	assert(pm->buffers && by->who);
	assert(len && len <= sizeof(entry.bytes));
	memcpy(entry.bytes, bytes, len);
	store_buffers_enter(pm->buffers, &entry, how->delay);
	how->delay = 0; /* the others come after it */
}

/* Keep what memory holds where the pending store writes. */
static void keep_below(struct pmem *pm)
{
	assert(pm->pending.len);
	assert(pm->pending.off + pm->pending.len <= pm->len);
	while (pm->below_room < pm->pending.len)
		pm->below = array_grow(pm->below, &pm->below_room, 1);
	memcpy(pm->below, pm->work + pm->pending.off, pm->pending.len);
}

/* The bytes of the pending store; memory shows what it held before. */
static const uint8_t *take_pending(struct pmem *pm, const struct pending_store *store)
{
	assert(store->len <= pm->below_room);
	for (size_t i = 0; i < store->len; i++) {
		uint8_t new = pm->work[store->off + i];
		pm->work[store->off + i] = pm->below[i];
		pm->below[i] = new;
	}
	return pm->below;
}

/* The length of a store's first piece, which is in one line. A structure's store is a copy: word by
 * word. */
static inline size_t first_piece(uint64_t off, size_t len)
{
	size_t word = 8 - off % 8;
	if (len <= 8)
		return within_line(off, len);
	return word < len ? word : len;
}

/* Is more than a word seen word by word? */
static inline bool by_words(const struct pmem *pm, size_t len)
{
	return pm->hw.copy_order != COPY_LINES && len > 8;
}

bool pmem_copies_words(const struct pmem *pm, size_t len)
{
	return by_words(pm, len);
}

/* With store buffers, the pending store is taken out of memory again and waits in its buffer. */
static void commit_to_buffer(struct pmem *pm, const struct author *by)
{
	struct pending_store store = pm->pending;
	const uint8_t *bytes = take_pending(pm, &store);
	pm->pending.len = 0;
	/* The task may have ended since; then its CPU has no buffer. */
	store.waits = store.waits && by->who;
	for (size_t done = 0, part; done < store.len; done += part) {
		part = first_piece(store.off + done, store.len - done);
		store_piece(pm, store.off + done, bytes + done, part, by, &store);
	}
	assert(!pm->pending.len);
}

static __attribute__((noinline)) void commit_store(struct pmem *pm)
{
	const struct author by = task_author(pm, pm->pending.pc);
	uint64_t off = pm->pending.off;
	size_t len = pm->pending.len, part;
	assert(len && off + len <= pm->len);
	if (pm->buffers) {
		commit_to_buffer(pm, &by);
		return;
	}
	pm->pending.len = 0;
	for (; len; off += part, len -= part) {
		part = first_piece(off, len);
		cpu_stored(pm, off, part, &by, NULL);
	}
}

/* The current task's next store is chosen to wait in its buffer, or not. */
static __attribute__((noinline)) void choose_wait(struct pmem *pm, struct pending_store *store)
{
	struct actor *actor = sim_actor(pm->sim);
	store->waits = !pm->htm_commits && store_buffers_in_use(pm->buffers);
	if (!actor || pm->htm_commits || sim_plain(pm->sim))
		return;
	struct choice_point at = {.kind = CHOICE_BUFFER,
				  .who = actor,
				  .op = actor->op,
				  .occurrence = actor->occurrence,
				  .a = actor->count[COUNT_STEP + STEP_STORE]};
	store->delay = sim_choose(pm->sim, &at, DELAYS);
	store->waits |= store->delay;
	assert(!delay_kills(store->delay));
	assert(!store->delay || !sim_picks(pm->sim));
}

void pmem_commit_pending(struct pmem *pm)
{
	if (pm->pending.len)
		commit_store(pm);
}

/* Does [off, off+len) hold what the versions say? */
static bool as_known(const struct pmem *pm, uint64_t off, size_t len)
{
	uint8_t known[LINE];
	while (len) {
		size_t part = within_line(off, len);
		line_as_of(pm, (uint32_t)(off / LINE), pm->line[off / LINE].in_flight, known);
		if (memcmp(known + off % LINE, pm->work + off, part))
			return false;
		off += part;
		len -= part;
	}
	return true;
}

/* Is memory as if the pending store had not happened? */
static bool nothing_stored(const struct pmem *pm, const struct pending_store *store)
{
	if (pm->buffers)
		return !memcmp(pm->below, pm->work + store->off, store->len);
	return as_known(pm, store->off, store->len);
}

static void trace_load(struct pmem *pm, uint64_t off, size_t len)
{
	const struct traced about = {.kind = TRACED_LOAD, .off = off, .len = len};
	sim_trace_event(pm->sim, sim_actor(pm->sim), 0, &about, "%s", "");
}

/* What a load looks at: memory, or the CPU's own store on its way there. */
static inline void note_load(struct pmem *pm, uint64_t off, size_t len)
{
	const struct buffered *own = NULL;
	if (!pm->watched)
		return;
	if (pm->buffers)
		own = store_buffers_forward(pm->buffers, off, len);
	if (own)
		sim_touch(pm->sim, TOUCH_DRAM_READ, (uintptr_t)own, 1);
	else
		sim_touch(pm->sim, TOUCH_READ, off, len);
}

static inline void load(struct pmem *pm, uint64_t off, size_t len)
{
	sim_step(pm->sim, STEP_LOAD, pm->cost->load);
	if (len)
		nt_leave_mine(pm, off, len);
	note_load(pm, off, len);
	if (!len)
		return;
	touch(pm, off, len, false);
	if (sim_tracing(pm->sim))
		trace_load(pm, off, len);
	show_mine(pm);
	sim_saw(pm->sim, TOUCH_READ, off, pm->work + off, len);
}

/*
 * gcc calls both hooks of `*a = *b`, the write's first, before it copies: a store that has changed
 * nothing yet, followed by a load of the same length, is still to come.
 */
static __attribute__((noinline)) void load_after_store(struct pmem *pm, uint64_t off, size_t len)
{
	struct pending_store coming = pm->pending;
	if (coming.len == len && nothing_stored(pm, &coming))
		pm->pending.len = 0;
	else
		coming.len = 0;
	cpu_settle(pm);
	load(pm, off, len);
	assert(!pm->pending.len); /* others stored meanwhile, and that is done */
	if (coming.len) {
		pm->pending = coming;
		if (pm->buffers || by_words(pm, len))
			keep_below(pm);
	}
}

void pmem_cpu_load(struct pmem *pm, uint64_t off, size_t len)
{
	if (pm->pending.len)
		load_after_store(pm, off, len);
	else
		load(pm, off, len);
}

/* A store's hook, with store buffers: memory is as its CPU sees it when this returns. */
static __attribute__((noinline)) void store_with_buffer(struct pmem *pm, struct pending_store store,
							bool locked)
{
	if (!locked)
		choose_wait(pm, &store);
	assert(!locked || !store_buffers_waiting(pm->buffers));
	if (!store.waits)
		note_touch(pm, TOUCH_WRITE, store.off, store.len);
	else
		store_buffers_wait(pm->buffers, pm->buffers->size - 1);
	touch(pm, store.off, store.len, true);
	pm->pending = store;
	show_mine(pm);
	keep_below(pm);
	assert(pm->below_room >= pm->pending.len);
}

static inline void store_to_come(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc,
				 bool locked)
{
	if (pm->pending.len)
		cpu_settle(pm);
	sim_step(pm->sim, STEP_STORE, pm->cost->store);
	assert(len && !pm->pending.len);
	nt_leave_mine(pm, off, len);
	sim_saw(pm->sim, TOUCH_WRITE, off, pm->work + off, len);
	if (pm->buffers) {
		store_with_buffer(pm, (struct pending_store){.off = off, .len = len, .pc = pc},
				  locked);
		return;
	}
	note_touch(pm, TOUCH_WRITE, off, len);
	touch(pm, off, len, true);
	pm->pending.off = off;
	pm->pending.len = len;
	pm->pending.pc = pc;
	if (by_words(pm, len))
		keep_below(pm);
}

void pmem_cpu_store(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc)
{
	store_to_come(pm, off, len, pc, false);
}

void pmem_cpu_locked_store(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc)
{
	store_to_come(pm, off, len, pc, true);
}

/* A copy within one line. */
static void copy_line(struct pmem *pm, uint64_t off, const uint8_t *from, int byte, size_t len,
		      struct pending_store *how)
{
	const struct author by = task_author(pm, how->pc);
	uint8_t bytes[8];
	assert(off % LINE + len <= LINE);
	assert(!how->waits || pm->buffers);
	memset(bytes, byte, sizeof(bytes));
	for (size_t done = 0, word; done < len; done += word) {
		word = 8 - (off + done) % 8;
		if (word > len - done)
			word = len - done;
		if (how->waits)
			store_buffers_wait(pm->buffers, pm->buffers->size - 1);
		show_mine(pm); /* the source may be in PM, too */
		if (from)
			memcpy(bytes, from + done, word);
		store_piece(pm, off + done, bytes, word, &by, how);
	}
}

/* --- word by word --- */

size_t pmem_nth_word(const struct pmem *pm, uint64_t off, size_t len, size_t i, size_t *at)
{
	size_t words = (off % 8 + len + 7) / 8;
	if (pm->hw.copy_order == COPY_BACKWARD)
		i = words - 1 - i;
	*at = i ? 8 * i - off % 8 : 0;
	size_t end = 8 * (i + 1) - off % 8;
	return (end < len ? end : len) - *at;
}

/* Others may run between one word and the next. */
static void next_word(struct pmem *pm, bool first)
{
	if (!first && !pm->htm_commits && sim_picks(pm->sim) && sim_task(pm->sim) >= 0)
		sim_turn(pm->sim);
	sim_step(pm->sim, STEP_STORE, pm->cost->store);
	pmem_commit_pending(pm);
}

static void store_word(struct pmem *pm, uint64_t off, const uint8_t *from, int byte, size_t len,
		       struct pending_store *how, bool chosen)
{
	nt_leave_mine(pm, off, len);
	sim_saw(pm->sim, TOUCH_WRITE, off, pm->work + off, len);
	if (pm->buffers && !chosen)
		choose_wait(pm, how);
	if (!how->waits)
		note_touch(pm, TOUCH_WRITE, off, len);
	touch(pm, off, len, true);
	copy_line(pm, off, from, byte, len, how);
}

/* A copy; where it reads PM, that is by words, too. */
static void copy_words(struct pmem *pm, uint64_t off, const uint8_t *from, int byte, size_t len,
		       uintptr_t pc)
{
	size_t words = (off % 8 + len + 7) / 8, at;
	uint64_t source;
	for (size_t i = 0; i < words; i++) {
		struct pending_store how = {.pc = pc};
		size_t part = pmem_nth_word(pm, off, len, i, &at);
		next_word(pm, !i);
		if (from && pmem_owns(pm, from + at, part, &source))
			load(pm, source, part);
		store_word(pm, off + at, from ? from + at : NULL, byte, part, &how, false);
	}
}

/* The pending store of a structure, when its task goes on. */
static __attribute__((noinline)) void commit_words(struct pmem *pm)
{
	struct pending_store how = pm->pending;
	uint8_t *bytes = sim_alloc(pm->sim, how.len);
	size_t words = (how.off % 8 + how.len + 7) / 8, at;
	memcpy(bytes, take_pending(pm, &how), how.len);
	pm->pending.len = 0;
	for (size_t i = 0; i < words; i++) {
		size_t part = pmem_nth_word(pm, how.off, how.len, i, &at);
		if (i)
			next_word(pm, false);
		store_word(pm, how.off + at, bytes + at, 0, part, &how, !i);
	}
}

void cpu_settle(struct pmem *pm)
{
	if (!pm->pending.len)
		return;
	if (by_words(pm, pm->pending.len) && sim_actor(pm->sim))
		commit_words(pm);
	else
		commit_store(pm);
}

static void cpu_copy(struct pmem *pm, uint64_t off, const uint8_t *from, int byte, size_t len,
		     uintptr_t pc, bool locked)
{
	uint64_t source;
	assert(len <= pm->len && off <= pm->len - len);
	cpu_settle(pm);
	sim_copy_bytes(pm->sim, len);
	if (by_words(pm, len) && sim_actor(pm->sim)) {
		copy_words(pm, off, from, byte, len, pc);
		return;
	}
	while (len) {
		size_t part = within_line(off, len);
		struct pending_store how = {.pc = pc};
		sim_step(pm->sim, STEP_STORE, pm->cost->store);
		assert(!pm->pending.len);
		if (pm->watched && from && pmem_owns(pm, from, part, &source))
			note_load(pm, source, part);
		nt_leave_mine(pm, off, part);
		sim_saw(pm->sim, TOUCH_WRITE, off, pm->work + off, part);
		if (pm->buffers && !locked)
			choose_wait(pm, &how);
		if (!how.waits)
			note_touch(pm, TOUCH_WRITE, off, part);
		touch(pm, off, part, true);
		copy_line(pm, off, from, byte, part, &how);
		off += part;
		from = from ? from + part : NULL;
		len -= part;
	}
}

void pmem_cpu_copy(struct pmem *pm, uint64_t off, const void *data, int byte, size_t len,
		   uintptr_t pc)
{
	cpu_copy(pm, off, data, byte, len, pc, false);
}

void pmem_cpu_locked_write(struct pmem *pm, uint64_t off, const void *data, size_t len,
			   uintptr_t pc)
{
	cpu_copy(pm, off, data, 0, len, pc, true);
}

void pmem_cpu_read(struct pmem *pm, uint64_t off, void *data, size_t len)
{
	pmem_cpu_load(pm, off, len);
	memcpy(data, pm->work + off, len);
}

void pmem_cpu_dram_store(struct pmem *pm, const void *addr)
{
	assert(pm->buffers);
	if (!store_buffers_waiting(pm->buffers) || sim_on_stack(pm->sim, addr))
		return;
	assert(pm->window.buffered);
	pmem_commit_pending(pm);
	store_buffers_wait(pm->buffers, 0);
}
