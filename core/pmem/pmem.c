/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The persistence model.
 *
 * A pool is two images and, per 64-byte line, what lies between them:
 *
 *	work	what loads and RDMA READs see
 *	durable	what certainly survives a power failure
 *	versions	the stores to the line that are visible but not yet certainly
 *		durable, in the order in which they became visible; each is the
 *		effect of one CPU store (8 bytes of a copy) or of one NIC chunk
 *
 * After a power failure a line holds durable + its first k versions, for any k from
 * 0 to all of them, each line alone: the cache may have written it back at any
 * moment, and stores to one line reach memory in order. With line_torn the last
 * write-back may also have been cut: some of its 8-byte words (prefix: the first ones; any: any of
 * them) are of version k, the others of some older version that was written back before.
 *
 * Durable moves up (the first k versions are committed) by
 *	- pmem_flush of the line and then a fence of the same task: k is what the line
 *	  held when it was flushed;
 *	- in a domain where visible is durable (MHP, WSP): at once;
 *	- DDIO off: NIC data drains from the integrated-I/O buffers, soon, per line, or
 *	  when the NIC flushes;
 *	- the cache writing back (CHOICE_EVICT), so that a version can be known to be
 *	  durable in mid-run. That a line may have been evicted needs no choice before
 *	  the crash: the versions that may survive contain it.
 * Under WSP, NIC buffers survive: data is durable when it arrived, before it lands.
 *
 * A machine that boots after a power failure finds lines undecided. The first touch
 * of such a line, by CPU or NIC, asks CHOICE_LINE, and the answer is then the line's
 * content, work and durable. Lines that are not touched stay undecided, also
 * for the next machine if the power fails again.
 *
 * A hook fires before its access, so a store's bytes are read later, at the next
 * event of any kind (pmem_commit_pending).
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "core/pmem/model.h"

#define GUARD ((size_t)65536) /* bytes of nothing before, between and after images */

static size_t whole_pages(size_t bytes)
{
	return (bytes + 4095) & ~(size_t)4095;
}

/* The images of the stacks that were freed last, the latest first: to map memory is slow, and
 * campaigns open thousands of stacks of a few dozen sizes, one after the other. Their content is
 * not specified; pmem_load() writes all of it. */
#define IDLE	   32
#define IDLE_BYTES ((size_t)64 << 20) /* together */
static _Thread_local struct idle {
	uint8_t *memory;
	size_t bytes;
} idle[IDLE];

/* All images of a stack, each between guards. */
static size_t images_bytes(const struct pmem_stack *stack)
{
	return (whole_pages(stack->max_len) + GUARD) * (stack->machines + 1) + GUARD;
}

/* NULL: none are kept of that size. */
static uint8_t *take_idle(size_t bytes)
{
	for (unsigned i = 0; i < IDLE && idle[i].memory; i++) {
		uint8_t *memory = idle[i].memory;
		if (idle[i].bytes != bytes)
			continue;
		memmove(&idle[i], &idle[i + 1], (IDLE - 1 - i) * sizeof(idle[0]));
		idle[IDLE - 1] = (struct idle){0};
		return memory;
	}
	return NULL;
}

static uint8_t *map_images(const struct pmem_stack *stack)
{
	size_t bytes = images_bytes(stack), pages = whole_pages(stack->max_len);
	uint8_t *memory = take_idle(bytes);
	if (memory)
		return memory;
	memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	for (unsigned i = 0; i <= stack->machines; i++)
		if (mprotect(memory + GUARD + i * (pages + GUARD), pages, PROT_READ | PROT_WRITE)) {
			munmap(memory, bytes);
			return NULL;
		}
	return memory;
}

static void keep_images(const struct pmem_stack *stack)
{
	struct idle *last = &idle[IDLE - 1];
	size_t bytes = 0;
	if (last->memory)
		munmap(last->memory, last->bytes);
	memmove(&idle[1], &idle[0], (IDLE - 1) * sizeof(idle[0]));
	idle[0] = (struct idle){stack->images, images_bytes(stack)};
	for (unsigned i = 0; i < IDLE && idle[i].memory; i++) { /* the first one in any case */
		bytes += idle[i].bytes;
		if (!i || bytes <= IDLE_BYTES)
			continue;
		munmap(idle[i].memory, idle[i].bytes);
		idle[i] = (struct idle){0};
	}
}

struct pmem_stack *pmem_stack_new(unsigned machines, size_t max_len)
{
	struct pmem_stack *stack = calloc(1, sizeof(*stack));
	assert(machines >= 1 && machines <= MACHINES);
	assert(max_len && max_len % LINE == 0);
	if (!stack)
		return NULL;
	stack->machines = machines;
	stack->max_len = max_len;
	stack->changes = calloc(max_len / LINE, sizeof(*stack->changes));
	stack->changed = calloc(max_len / LINE / 64 + 1, sizeof(*stack->changed));
	stack->images = map_images(stack);
	if (!stack->changes || !stack->changed || !stack->images) {
		pmem_stack_free(stack);
		return NULL;
	}
	size_t pages = whole_pages(max_len);
	for (unsigned i = 0; i <= machines; i++)
		/* The pool ends where its last page ends: one byte after it faults. */
		stack->image[i] = stack->images + (i + 1) * (GUARD + pages) - max_len;
	for (unsigned i = 0; i < machines; i++) {
		struct pmem *pm = &stack->pm[i];
		pm->stack = stack;
		pm->machine = i;
		pm->before = i ? &stack->pm[i - 1] : NULL;
		pm->work = stack->image[i];
		pm->durable = stack->image[i + 1];
		pm->line = calloc(max_len / LINE, sizeof(*pm->line));
		pm->dirty = calloc(max_len / LINE, sizeof(*pm->dirty));
		pm->decided = calloc(max_len / LINE / 64 + 1, sizeof(*pm->decided));
		pm->again = calloc(max_len / LINE / 64 + 1, sizeof(*pm->again));
		pm->lost = calloc(max_len / LINE / 64 + 1, sizeof(*pm->lost));
		if (!pm->line || !pm->dirty || !pm->decided || !pm->again || !pm->lost) {
			pmem_stack_free(stack);
			return NULL;
		}
	}
	return stack;
}

void pmem_stack_free(struct pmem_stack *stack)
{
	if (!stack)
		return;
	if (stack->images)
		keep_images(stack);
	free(stack->history);
	free(stack->changes);
	free(stack->changed);
	for (unsigned i = 0; i < stack->machines; i++) {
		struct pmem *pm = &stack->pm[i];
		free(pm->line);
		free(pm->dirty);
		free(pm->decided);
		free(pm->again);
		free(pm->lost);
		free(pm->version);
		free(pm->undo);
		free(pm->arrival);
		free(pm->late);
		free(pm->below);
		free(pm->nt);
		free(pm->touched[0].touch);
		free(pm->touched[1].touch);
		free(pm->kept_buffers);
		for (unsigned t = 0; t <= SIM_TASKS; t++)
			free(pm->flushes[t].flush);
	}
	free(stack);
}

struct pmem *pmem_machine(struct pmem_stack *stack, unsigned i)
{
	assert(i < stack->machines);
	return &stack->pm[i];
}

void pmem_load(struct pmem_stack *stack, const void *image, size_t len)
{
	assert(len <= stack->max_len && len % LINE == 0);
	for (unsigned i = 0; i <= stack->machines; i++) {
		if (image)
			memcpy(stack->image[i], image, len);
		else
			memset(stack->image[i], 0, len);
	}
	for (unsigned i = 0; i < stack->machines; i++) {
		assert(!stack->pm[i].running);
		stack->pm[i].len = len;
		stack->pm[i].window = (struct pmem_window){stack->pm[i].work, len, ACCESS_BUDGET,
							   0};
		for (uint32_t l = 0; l < len / LINE; l++)
			stack->pm[i].line[l].content_hash = 0;
	}
}

static void commit_all(void *arg)
{
	pmem_commit_pending(arg);
	show_all(arg);
}

/* A lock, or the like, is taken: see sim_set_locked(). */
static bool locked(void *arg, const void *at, uintptr_t pc)
{
	struct pmem *pm = arg;
	if ((uintptr_t)at - (uintptr_t)pm->window.base < pm->window.len)
		return false;
	if (pmem_has_buffers(pm))
		pmem_cpu_empty(pm, pc);
	return true;
}

static void begin_buffers(struct pmem *pm)
{
	pm->buffers = NULL;
	pm->window.buffered = 0;
	assert(pm->hw.store_buffer <= STORE_BUFFER_MAX);
	if (!pm->hw.store_buffer)
		return;
	if (!pm->kept_buffers)
		pm->kept_buffers = store_buffers_new();
	if (!pm->kept_buffers)
		arena_exhausted();
	pm->buffers = pm->kept_buffers;
	store_buffers_begin(pm->buffers, pm->sim, pm->work, pm->hw.store_buffer,
			    &pm->window.buffered, cpu_entry_leaves, pm);
	assert(!pm->window.buffered && !pm->buffers->shown);
}

void pmem_begin(struct pmem *pm, struct sim *sim, const struct hardware *hw)
{
	assert(!pm->running && !pm->undos && !pm->dirties);
	assert(!pm->before || pm->before->running); /* it failed, and stands still */
	pm->sim = sim;
	pm->cost = sim_run_state(sim)->cost;
	pm->hw = *hw;
	pm->hosts = 0;
	pm->running = true;
	pm->run++;
	pm->window = (struct pmem_window){pm->work, pm->len, ACCESS_BUDGET, 0};
	begin_buffers(pm);
	pm->watched = 0;
	pm->spent_ns = UINT64_MAX;
	pm->dram_watcher = NULL;
	pm->pending.len = 0;
	pm->nts = 0;
	pm->nt_number = 0;
	pm->failures = 0;
	if (pm->htms)
		memset(pm->htm, 0, sizeof(pm->htm));
	pm->htms = 0;
	pm->htm_commits = false;
	if (pm->before) {
		size_t bytes = (pm->len / LINE / 64 + 1) * sizeof(*pm->decided);
		memset(pm->decided, 0, bytes);
		if (pm->notes_again) /* else it is empty */
			memset(pm->again, 0, bytes);
	}
	for (unsigned i = 0; i < 2; i++)
		pm->touched[i].n = pm->touched[i].lines = 0;
	pm->notes_again = false;
	pm->durable_hash = pm->flight_hash = 0;
	sim_set_memory(sim, pm);
	sim_set_commit(sim, commit_all, pm);
	sim_set_locked(sim, locked, pm);
}

static void forget_versions(struct pmem *pm)
{
	for (uint32_t i = 0; i < pm->dirties; i++) {
		struct line *line = &pm->line[pm->dirty[i]];
		assert(line->dirty_at == i && line->in_flight);
		assert(line->first && line->last && line->last <= pm->versions);
		if (pm->losts)
			pm->lost[pm->dirty[i] / 64] = 0;
		line->first = line->last = 0;
		line->in_flight = 0;
		line->flight_hash = 0;
	}
	pm->losts = 0;
	pm->dirties = 0;
	pm->versions = 0;
	pm->arrivals = 0;
	pm->lates = 0;
	for (unsigned t = 0; t <= pm->flushers; t++)
		pm->flushes[t].n = 0;
	pm->flushers = 0;
}

void pmem_end(struct pmem *pm)
{
	struct pmem_stack *stack = pm->stack;
	assert(pm->running);
	/* What booted from here has ended, or its changes would survive. */
	assert(pm->machine + 1 == stack->machines || !stack->pm[pm->machine + 1].running);
	forget_versions(pm);
	while (pm->undos) {
		struct undo *undo = &pm->undo[--pm->undos];
		assert(pm->line[undo->line].saved == pm->run);
		if (MUTANT(&pm->hw, PM_UNDO_FORGETS) && pm->machine && !pm->undos)
			continue;
		for (unsigned i = pm->machine; i <= stack->machines; i++)
			memcpy(stack->image[i] + (size_t)undo->line * LINE, undo->content, LINE);
		pm->line[undo->line].content_hash = 0;
		pm->line[undo->line].committed = 0;
		if (!--stack->changes[undo->line])
			stack->changed[undo->line / 64] &= ~(1ull << undo->line % 64);
	}
	pm->running = false;
}

bool pmem_running(const struct pmem *pm)
{
	return pm->running;
}

void pmem_save(struct pmem *pm, void *image)
{
	assert(pm->running);
	pmem_commit_pending(pm);
	show_all(pm);
	assert(!pm->pending.len && !pm->window.buffered); /* nothing is on its way to memory */
	memcpy(image, pm->work, pm->len);
}

void pmem_watch(struct pmem *pm)
{
	pm->watched = ACCESS_BUDGET;
	pm->window.accesses_left = 1;
}

void pmem_watch_dram(struct pmem *pm, pmem_dram_watcher *watcher, void *arg)
{
	pm->dram_watcher = watcher;
	pm->dram_arg = arg;
	pm->dram_left = ACCESS_BUDGET;
	pm->window.accesses_left = watcher || pm->watched ? 1 : ACCESS_BUDGET;
}

void pmem_accesses_spent(struct pmem *pm, const void *addr, size_t len, bool write, uintptr_t pc)
{
	assert(!pm->window.accesses_left && pm->watched <= ACCESS_BUDGET);
	if (pm->dram_watcher) {
		pm->dram_watcher(pm->dram_arg, addr, len, write, pc);
		pm->window.accesses_left = 1;
		if (!pm->watched && --pm->dram_left)
			return;
		pm->dram_left = ACCESS_BUDGET;
	}
	pm->window.accesses_left = pm->watched || pm->dram_watcher ? 1 : ACCESS_BUDGET;
	if (pm->watched && !sim_wants_touches(pm->sim)) {
		pm->watched = 0;
		pm->window.accesses_left = pm->dram_watcher ? 1 : ACCESS_BUDGET;
		return;
	}
	if (pm->watched) {
		if (!sim_on_stack(pm->sim, addr))
			sim_touch(pm->sim, write ? TOUCH_DRAM_WRITE : TOUCH_DRAM_READ,
				  (uintptr_t)addr, len);
		if (--pm->watched)
			return;
		pm->watched = ACCESS_BUDGET;
	}
	const uint64_t now = sim_now(pm->sim);
	if (sim_actor(pm->sim) && pm->spent_ns == now)
		sim_abandon(pm->sim, SIM_BUDGET);
	pm->spent_ns = now;
}

void pmem_set_hosts(struct pmem *pm, unsigned hosts)
{
	assert(hosts <= HARDWARE_SERVERS);
	pm->hosts = hosts;
	for (unsigned s = 0; s < hosts; s++)
		pm->host_hw[s] = hardware_of_server(&pm->hw, s);
}

void pmem_set_host(struct pmem *pm, unsigned host, uint64_t at)
{
	assert(host < pm->hosts);
	pm->host_at[host] = at;
}

void pmem_set_regions(struct pmem *pm, const struct tm_region *regions, unsigned n)
{
	pm->region = regions;
	pm->regions = n;
}

void pmem_place(const struct pmem *pm, uint64_t off, char *buf, size_t len)
{
	pmem_name(pm->region, pm->regions, off, buf, len);
}
