/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Store buffers: x86-TSO (Owens, Sarkar, Sewell, TPHOLs 2009).
 *
 * What a CPU stores waits in a queue of its own before others see it. The CPU itself sees it
 * at once, so it can load what another one has long overwritten, or load an old value
 * while its own store is on its way. Write-backs (clwb, clflush), store fences and doorbells
 * wait in the same queue, so all of these take effect in program order; but for clwb and
 * clflushopt, which take effect as soon as nothing before them in the queue keeps them: a later
 * write-back makes no other outcome possible.
 *
 * The moment at which the oldest entry leaves is chosen by
 *	- the scheduler, where there is one: each entry is an event of the CPU's chain;
 *	- else by a choice: most stores never wait at all, one that is delayed delays
 *	  those after it, too.
 * A CPU with a full queue waits for the oldest entry, and some instructions wait until it is
 * empty. With a scheduler the task sleeps meanwhile; else the entries leave at once, as if their
 * delays had been over.
 *
 * Store code looks at memory with its own eyes, so memory itself has to show each CPU what it
 * sees. `shown` says which CPU that is now: each store in that CPU's buffer has changed places
 * with the bytes below it, from the oldest to the newest, and changes back from the newest to the
 * oldest when another CPU looks.
 */
#include "core/pmem/store_buffer.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/pmem.h"
#include "core/rt/snapshot.h"

static struct buffered *entry_at(struct cpu_buffer *cpu, uint32_t number)
{
	return &cpu->entry[number % STORE_BUFFER_MAX];
}

struct store_buffers *store_buffers_new(void)
{
	return calloc(1, sizeof(struct store_buffers));
}

void store_buffers_begin(struct store_buffers *b, struct sim *sim, uint8_t *memory, unsigned size,
			 uint32_t *entries, bool (*leaves)(void *arg, const struct buffered *entry),
			 void *arg)
{
	assert(size && size <= STORE_BUFFER_MAX);
	assert(b->used <= SIM_TASKS + 1);
	for (unsigned i = 0; i < b->used; i++)
		b->cpu[i].first = b->cpu[i].next = b->cpu[i].under_way = 0;
	b->used = b->shown = 0;
	b->sim = sim;
	b->memory = memory;
	b->size = size;
	b->entries = entries;
	*entries = 0;
	b->leaves = leaves;
	b->arg = arg;
}

void store_buffers_exchange(struct store_buffers *b, struct snapshot *s)
{
	/* The buffers of CPUs that have had no entry are empty. */
	snapshot_exchange(s, b, offsetof(struct store_buffers, cpu));
	snapshot_exchange(s, b->cpu, b->used * sizeof(b->cpu[0]));
}

/* --- what a CPU sees --- */

static void change_places(struct store_buffers *b, struct buffered *entry)
{
	uint8_t below[sizeof(entry->bytes)];
	if (entry->kind != BUFFERED_STORE)
		return;
	assert(entry->len && entry->len <= sizeof(entry->bytes));
	assert(entry->off % LINE + entry->len <= LINE);
	memcpy(below, b->memory + entry->off, entry->len);
	memcpy(b->memory + entry->off, entry->bytes, entry->len);
	memcpy(entry->bytes, below, entry->len);
}

void store_buffers_change_view(struct store_buffers *b, unsigned to)
{
	struct cpu_buffer *cpu = &b->cpu[b->shown];
	assert(to <= SIM_TASKS && to != b->shown);
	assert(cpu->next - cpu->first <= b->size && b->cpu[to].next - b->cpu[to].first <= b->size);
	for (uint32_t i = cpu->next; i != cpu->first; i--)
		change_places(b, entry_at(cpu, i - 1));
	b->shown = to;
	cpu = &b->cpu[to];
	for (uint32_t i = cpu->first; i != cpu->next; i++)
		change_places(b, entry_at(cpu, i));
}

const struct buffered *store_buffers_forward(const struct store_buffers *b, uint64_t off,
					     size_t len)
{
	const struct cpu_buffer *cpu = &b->cpu[store_buffers_cpu(b)];
	for (uint32_t i = cpu->next; i != cpu->first; i--) {
		const struct buffered *entry = &cpu->entry[(i - 1) % STORE_BUFFER_MAX];
		if (entry->kind != BUFFERED_STORE || entry->off >= off + len ||
		    off >= entry->off + entry->len)
			continue;
		return entry->off <= off && off + len <= entry->off + entry->len ? entry : NULL;
	}
	return NULL;
}

/* --- the queue --- */

/* Must a write-back of these bytes wait for the entry? */
static bool keeps(const struct buffered *entry, uint64_t off, size_t len)
{
	if (entry->kind == BUFFERED_FENCE)
		return true;
	return (entry->kind == BUFFERED_STORE || entry->kind == BUFFERED_CLFLUSH) &&
	       entry->off / LINE <= (off + len - 1) / LINE &&
	       off / LINE <= (entry->off + entry->len - 1) / LINE;
}

/* The same of all entries before this one. */
static bool is_kept(struct cpu_buffer *cpu, uint32_t before, uint64_t off, size_t len)
{
	for (uint32_t i = cpu->first; i != before; i++)
		if (keeps(entry_at(cpu, i), off, len))
			return true;
	return false;
}

bool store_buffers_keep(const struct store_buffers *b, uint64_t off, size_t len)
{
	struct cpu_buffer *cpu = (struct cpu_buffer *)&b->cpu[store_buffers_cpu(b)];
	return is_kept(cpu, cpu->next, off, len);
}

/* Write-backs that nothing keeps any more take effect. */
static void write_back(struct cpu_buffer *cpu)
{
	assert(cpu->next - cpu->first < cpu->of->size); /* one has just left */
	for (uint32_t i = cpu->first; i != cpu->next; i++) {
		struct buffered *entry = entry_at(cpu, i);
		if (entry->kind != BUFFERED_FLUSH || entry->gone ||
		    is_kept(cpu, i, entry->off, entry->len))
			continue;
		entry->gone = true;
		cpu->of->leaves(cpu->of->arg, entry);
		assert(!cpu->of->shown); /* what it writes back is what all see */
	}
}

/* The oldest entry takes effect; false: the power fails. */
static bool leave(struct cpu_buffer *cpu)
{
	struct store_buffers *b = cpu->of;
	assert(cpu->first != cpu->next);
	assert(*b->entries >= cpu->next - cpu->first); /* all buffers' together */
	store_buffers_show(b, 0);
	struct buffered entry = *entry_at(cpu, cpu->first);
	if (entry.kind == BUFFERED_STORE) /* from now on a load looks at memory itself */
		sim_touch(b->sim, TOUCH_DRAM_WRITE, (uintptr_t)entry_at(cpu, cpu->first), 1);
	sim_takes(b->sim, cpu, cpu->first++);
	--*b->entries;
	if (!entry.gone && !b->leaves(b->arg, &entry))
		return false;
	write_back(cpu);
	sim_gives(b->sim, &cpu->first, cpu->first);
	sim_wake(b->sim, cpu);
	return true;
}

/* Without a scheduler, the oldest entry is one that is delayed. False: the power fails. */
static bool pass(struct cpu_buffer *cpu)
{
	assert(!sim_picks(cpu->of->sim));
	while (cpu->first != cpu->next && !entry_at(cpu, cpu->first)->delayed)
		if (!leave(cpu))
			return false;
	return true;
}

static void fire_picked(struct sim *sim, void *arg)
{
	struct cpu_buffer *cpu = arg;
	assert(cpu->under_way && sim_picks(sim));
	cpu->under_way = false;
	if (cpu->first != cpu->next && leave(cpu) && cpu->first != cpu->next) {
		cpu->under_way = true;
		sim_in_chain(sim, cpu->chain, 0, fire_picked, cpu);
	}
}

/* An entry that a delay keeps from leaving. */
struct delayed_entry {
	struct cpu_buffer *cpu;
	uint32_t number;
};

static void fire_delayed(struct sim *sim, void *arg)
{
	struct delayed_entry *later = arg;
	struct cpu_buffer *cpu = later->cpu;
	(void)sim;
	if ((int32_t)(later->number - cpu->first) < 0)
		return; /* its CPU had to wait for it */
	assert(later->number - cpu->first < cpu->next - cpu->first);
	assert(entry_at(cpu, later->number)->delayed);
	entry_at(cpu, later->number)->delayed = false;
	pass(cpu);
}

/* See to it that the newest entry leaves some time. */
static void arrange(struct cpu_buffer *cpu, unsigned k)
{
	struct sim *sim = cpu->of->sim;
	assert(cpu->first != cpu->next);
	assert(!k || !sim_picks(sim)); /* a scheduler needs no delays */
	if (sim_picks(sim)) {
		if (!cpu->under_way)
			sim_in_chain(sim, cpu->chain, 0, fire_picked, cpu);
		cpu->under_way = true;
		return;
	}
	if (!k) {
		pass(cpu);
		return;
	}
	struct delayed_entry *later = sim_alloc(sim, sizeof(*later));
	*later = (struct delayed_entry){cpu, cpu->next - 1};
	entry_at(cpu, later->number)->delayed = true;
	sim_delay(sim, CHAIN_OTHER, k, 0, fire_delayed, later);
}

/* The oldest entry leaves because there is no room, or because its CPU cannot wait. */
static void push_out(struct cpu_buffer *cpu)
{
	if (leave(cpu) && !sim_picks(cpu->of->sim))
		pass(cpu);
}

void store_buffers_enter(struct store_buffers *b, const struct buffered *entry, unsigned k)
{
	struct cpu_buffer *cpu = &b->cpu[store_buffers_cpu(b)];
	struct actor *actor = sim_actor(b->sim);
	assert(actor);
	assert(entry->kind <= BUFFERED_POST && (entry->kind != BUFFERED_POST || entry->ring));
	while (cpu->next - cpu->first >= b->size)
		push_out(cpu);
	if (b->used < store_buffers_cpu(b) + 1)
		b->used = store_buffers_cpu(b) + 1;
	cpu->of = b;
	cpu->chain = chain_name(actor->name_hash, CHAIN_STORES);
	struct buffered *new = entry_at(cpu, cpu->next);
	*new = *entry;
	new->cpu = store_buffers_cpu(b);
	new->nth = ++actor->count[COUNT_CRASH + CRASH_BEFORE_LEAVE];
	new->delayed = new->gone = false;
	sim_gives(b->sim, cpu, cpu->next++);
	++*b->entries;
	assert(cpu->next - cpu->first <= b->size && *b->entries >= cpu->next - cpu->first);
	if (b->shown == new->cpu)
		change_places(b, new);
	arrange(cpu, k);
}

void store_buffers_wait(struct store_buffers *b, unsigned left)
{
	struct cpu_buffer *cpu = &b->cpu[store_buffers_cpu(b)];
	if (cpu->next - cpu->first <= left)
		return;
	assert(store_buffers_cpu(b)); /* CPU 0 has no buffer */
	assert(left < b->size);
	while (cpu->next - cpu->first > left) {
		if (!sim_picks(b->sim)) {
			push_out(cpu);
			continue;
		}
		sim_idle_on(b->sim, cpu);
		sim_yield(b->sim);
	}
	/* It goes on because these have left. */
	sim_takes(b->sim, &cpu->first, cpu->first);
}

void store_buffers_lose(struct store_buffers *b, unsigned host)
{
	store_buffers_show(b, 0);
	for (unsigned i = 1; i < b->used; i++) {
		if (sim_task_host(b->sim, i - 1) != host)
			continue;
		*b->entries -= b->cpu[i].next - b->cpu[i].first;
		b->cpu[i].first = b->cpu[i].next;
	}
}

void store_buffers_empty(struct store_buffers *b)
{
	for (unsigned i = 1; i < b->used; i++)
		while (b->cpu[i].first != b->cpu[i].next)
			if (!leave(&b->cpu[i])) /* the power fails */
				return;
}
