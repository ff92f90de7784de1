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
 * write-back may also have been cut at any 8-byte word: the words from the left are of
 * version k, the others of some older version that was written back before.
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
 * content, work and durable. Lines that nobody touches stay undecided, and stay so
 * for the next machine if the power fails again.
 *
 * A hook fires before its access, so a store's bytes are read later, at the next
 * event of any kind (pmem_commit_pending).
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>
#include "core/pmem/crash.h"
#include "core/pmem/own_bug.h"
#include "core/pmem/store_buffer.h"
#include "core/rt/arena.h"

#define MACHINES  4
#define DRAIN_NS  400
#define STEP_COST 100000000u
#define LOAD_NS	  2
#define STORE_NS  2
#define FLUSH_NS  30
#define FENCE_NS  60

struct version {
	uint32_t next; /* index + 1 of the line's next version, 0: newest */
	uint8_t off, len;
	struct author by;
	uint8_t data[LINE];
};

struct line {
	uint32_t saved;	      /* == run: its content at boot is in the undo list */
	uint32_t decided;     /* == run: what survived the failure before boot is decided */
	uint32_t first, last; /* versions in flight: index + 1 */
	uint32_t in_flight, committed; /* how many; how many were, since boot */
	uint32_t dirty_at;	       /* its place in the list of dirty lines */
	uint64_t content_hash;	       /* of durable content; 0: not known */
	uint64_t flight_hash;
};

struct undo {
	uint32_t line;
	uint8_t content[LINE];
};

struct mark { /* a flushed line, waiting for the task's fence */
	uint32_t line, upto;
};

struct unread {
	uint64_t off;
	size_t len;
	uintptr_t pc;
	bool waits;    /* in the CPU's store buffer, ... */
	uint8_t holds; /* ... this answer of CHOICE_BUFFER long */
};

struct arrival { /* WSP: NIC data of one line that has arrived and not landed */
	uint64_t off;
	uint8_t len;
	uint8_t data[LINE];
};

struct marks {
	struct mark *mark;
	unsigned n, room;
};

struct pmem {
	struct pmem_window window;
	struct pmem_stack *stack;
	unsigned machine;
	struct pmem *before; /* the machine whose failure this one boots from */
	struct sim *sim;
	struct hardware hw;
	uint8_t *work, *durable; /* work is window.base */
	size_t len;
	bool running;
	uint32_t run;
	struct line *line;
	struct version *version;
	uint32_t versions, version_room;
	uint32_t *dirty;
	uint32_t dirties;
	struct undo *undo;
	uint32_t undos, undo_room;
	struct marks marks[SIM_TASKS + 1];
	unsigned marked; /* those behind it are empty */
	uint64_t durable_hash, flight_hash;
	struct arrival *arrival; /* oldest first */
	uint32_t arrivals, arrival_room;
	struct unread unread; /* the store whose bytes are not yet read */
	uint8_t *below;	      /* with store buffers: what memory held where it stores */
	uint32_t below_room;
	struct store_buffers *buffers;	    /* NULL: none in this run */
	struct store_buffers *kept_buffers; /* its memory, from run to run */
	uint32_t watched; /* accesses are told, and so many to DRAM are left; 0: they are not */
	const struct tm_region *region;
	unsigned regions;
};

struct pmem_stack {
	unsigned machines;
	size_t max_len;
	uint8_t *image[MACHINES + 1];
	struct pmem pm[MACHINES];
};

static void *grow(void *array, uint32_t *room, size_t each)
{
	*room = *room ? 2 * *room : 64;
	array = realloc(array, *room * each);
	if (!array)
		arena_exhausted();
	return array;
}

/* --- the stack of machines --- */

#define GUARD ((size_t)65536) /* bytes of nothing on both sides of an image */

static size_t whole_pages(size_t bytes)
{
	return (bytes + 4095) & ~(size_t)4095;
}

struct pmem_stack *pmem_stack_new(unsigned machines, size_t max_len)
{
	struct pmem_stack *stack = calloc(1, sizeof(*stack));
	assert(machines >= 1 && machines <= MACHINES && max_len % LINE == 0);
	if (!stack)
		return NULL;
	stack->machines = machines;
	stack->max_len = max_len;
	for (unsigned i = 0; i <= machines; i++) {
		size_t pages = whole_pages(max_len);
		uint8_t *memory = mmap(NULL, pages + 2 * GUARD, PROT_NONE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED ||
		    mprotect(memory + GUARD, pages, PROT_READ | PROT_WRITE)) {
			pmem_stack_free(stack);
			return NULL;
		}
		/* The pool ends where its last page ends: one byte behind it faults. */
		stack->image[i] = memory + GUARD + pages - max_len;
	}
	for (unsigned i = 0; i < machines; i++) {
		struct pmem *pm = &stack->pm[i];
		pm->stack = stack;
		pm->machine = i;
		pm->before = i ? &stack->pm[i - 1] : NULL;
		pm->work = stack->image[i];
		pm->durable = stack->image[i + 1];
		pm->line = calloc(max_len / LINE, sizeof(*pm->line));
		pm->dirty = calloc(max_len / LINE, sizeof(*pm->dirty));
		if (!pm->line || !pm->dirty) {
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
	for (unsigned i = 0; i <= stack->machines; i++)
		if (stack->image[i])
			munmap(stack->image[i] - (whole_pages(stack->max_len) - stack->max_len) -
				       GUARD,
			       whole_pages(stack->max_len) + 2 * GUARD);
	for (unsigned i = 0; i < stack->machines; i++) {
		struct pmem *pm = &stack->pm[i];
		free(pm->line);
		free(pm->dirty);
		free(pm->version);
		free(pm->undo);
		free(pm->arrival);
		free(pm->below);
		free(pm->kept_buffers);
		for (unsigned t = 0; t <= SIM_TASKS; t++)
			free(pm->marks[t].mark);
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
		stack->pm[i].window = (struct pmem_window){stack->pm[i].work, len, STEP_COST, 0};
		for (uint32_t l = 0; l < len / LINE; l++)
			stack->pm[i].line[l].content_hash = 0;
	}
}

/* Memory is as everybody sees it. */
static inline void show_all(struct pmem *pm)
{
	if (pm->buffers)
		store_buffers_show(pm->buffers, 0);
}

/* Memory is as the current task sees it. */
static inline void show_mine(struct pmem *pm)
{
	if (pm->buffers)
		store_buffers_show(pm->buffers, store_buffers_cpu(pm->buffers));
}

static void settle(void *arg)
{
	pmem_commit_pending(arg);
	show_all(arg);
}

static bool leaves(void *arg, const struct buffered *entry);

static void begin_buffers(struct pmem *pm)
{
	pm->buffers = NULL;
	pm->window.buffered = 0;
	if (!pm->hw.store_buffer)
		return;
	if (!pm->kept_buffers)
		pm->kept_buffers = store_buffers_new();
	if (!pm->kept_buffers)
		arena_exhausted();
	pm->buffers = pm->kept_buffers;
	store_buffers_begin(pm->buffers, pm->sim, pm->work, pm->hw.store_buffer,
			    &pm->window.buffered, leaves, pm);
}

void pmem_begin(struct pmem *pm, struct sim *sim, const struct hardware *hw)
{
	assert(!pm->running && !pm->undos && !pm->dirties);
	pm->sim = sim;
	pm->hw = *hw;
	pm->running = true;
	pm->run++;
	pm->window = (struct pmem_window){pm->work, pm->len, STEP_COST, 0};
	begin_buffers(pm);
	pm->watched = 0;
	pm->unread.len = 0;
	pm->durable_hash = pm->flight_hash = 0;
	sim_set_memory(sim, pm);
	sim_set_settle(sim, settle, pm);
}

static void forget_versions(struct pmem *pm)
{
	for (uint32_t i = 0; i < pm->dirties; i++) {
		struct line *line = &pm->line[pm->dirty[i]];
		line->first = line->last = 0;
		line->in_flight = 0;
		line->flight_hash = 0;
	}
	pm->dirties = 0;
	pm->versions = 0;
	pm->arrivals = 0;
	for (unsigned t = 0; t <= pm->marked; t++)
		pm->marks[t].n = 0;
	pm->marked = 0;
}

void pmem_end(struct pmem *pm)
{
	struct pmem_stack *stack = pm->stack;
	assert(pm->running);
	forget_versions(pm);
	while (pm->undos) {
		struct undo *undo = &pm->undo[--pm->undos];
		if (OWN_BUG(&pm->hw, PM_UNDO_FORGETS) && pm->machine && !pm->undos)
			continue;
		for (unsigned i = pm->machine; i <= stack->machines; i++)
			memcpy(stack->image[i] + (size_t)undo->line * LINE, undo->content, LINE);
		pm->line[undo->line].content_hash = 0;
		pm->line[undo->line].committed = 0;
	}
	pm->running = false;
}

void pmem_save(struct pmem *pm, void *image)
{
	pmem_commit_pending(pm);
	show_all(pm);
	memcpy(image, pm->work, pm->len);
}

/* An access to PM, for a source that wants to know. */
static inline void note_touch(struct pmem *pm, enum touch what, uint64_t where, uint64_t len)
{
	if (pm->watched)
		sim_touch(pm->sim, what, where, len);
}

/* --- lines --- */

static uint64_t content_hash(const struct pmem *pm, uint32_t l)
{
	return XXH3_64bits_withSeed(pm->durable + (size_t)l * LINE, LINE, l + 1);
}

/* Keep the line's content at boot. */
static void save(struct pmem *pm, uint32_t l)
{
	struct line *line = &pm->line[l];
	if (line->saved == pm->run)
		return;
	line->saved = pm->run;
	if (pm->undos == pm->undo_room)
		pm->undo = grow(pm->undo, &pm->undo_room, sizeof(*pm->undo));
	struct undo *undo = &pm->undo[pm->undos++];
	undo->line = l;
	memcpy(undo->content, pm->work + (size_t)l * LINE, LINE);
	line->content_hash = content_hash(pm, l);
}

/* memcpy of what is a word most of the time. A call else: what compilers make of a length that is
 * small for sure ("rep movs") costs more. */
static inline void put(uint8_t *to, const void *from, size_t len)
{
	if (len == 8) {
		memcpy(to, from, 8);
		return;
	}
	__asm__("" : "+r"(len));
	memcpy(to, from, len);
}

/* Write to durable, and so to where later machines boot. */
static void write_durable(struct pmem *pm, uint64_t off, const void *data, size_t len)
{
	for (unsigned i = pm->machine + 1; i <= pm->stack->machines; i++)
		put(pm->stack->image[i] + off, data, len);
}

static void rehash(struct pmem *pm, uint32_t l)
{
	struct line *line = &pm->line[l];
	uint64_t hash = content_hash(pm, l);
	pm->durable_hash ^= line->content_hash ^ hash;
	line->content_hash = hash;
}

static uint64_t version_hash(uint64_t before, uint32_t l, const struct version *v)
{
	return XXH3_64bits_withSeed(v->data, v->len,
				    before + ((uint64_t)l << 16 | (uint64_t)v->off << 8 | v->len));
}

/* The machine that decides what a line holds when `pm` has failed. */
static const struct pmem *undecided_in(const struct pmem *pm, uint32_t l)
{
	while (pm->before && pm->line[l].decided != pm->run)
		pm = pm->before;
	return pm;
}

/* What the failed machine left of a line is decided now. */
static void decide(struct pmem *pm, uint32_t l)
{
	struct line *line = &pm->line[l];
	const struct pmem *failed = undecided_in(pm->before, l);
	uint8_t content[LINE];

	line->decided = pm->run;
	unsigned answers = pmem_line_answers(failed, l);
	if (answers == 1)
		return;
	struct choice_point at = {.kind = CHOICE_LINE, .a = l, .b = pm->machine};
	unsigned answer = sim_choose(pm->sim, &at, answers);
	pmem_line_content(failed, l, answer, content);
	save(pm, l);
	memcpy(pm->work + (size_t)l * LINE, content, LINE);
	write_durable(pm, (uint64_t)l * LINE, content, LINE);
	rehash(pm, l);
	if (sim_tracing(pm->sim)) {
		char name[64], version[64];
		pmem_place(pm, (uint64_t)l * LINE, name, sizeof(name));
		pmem_answer_print(failed->line[l].in_flight, answer, version, sizeof(version));
		const struct traced about = {
			.kind = TRACED_SURVIVED, .off = (uint64_t)l * LINE, .len = LINE};
		sim_trace_event(pm->sim, sim_actor(pm->sim), 0, &about,
				"first touch of line %s: it survived as %s", name, version);
	}
}

static inline void touch(struct pmem *pm, uint64_t off, size_t len, bool write)
{
	uint32_t last = (uint32_t)((off + len - 1) / LINE);
	for (uint32_t l = (uint32_t)(off / LINE); l <= last; l++) {
		if (pm->before && pm->line[l].decided != pm->run)
			decide(pm, l);
		if (write)
			save(pm, l);
	}
}

static void undirty(struct pmem *pm, struct line *line)
{
	uint32_t moved = pm->dirty[--pm->dirties];
	pm->dirty[line->dirty_at] = moved;
	pm->line[moved].dirty_at = line->dirty_at;
	if (!pm->dirties)
		pm->versions = 0; /* nothing refers to them any more */
}

/* What sits in the NIC's buffers will land on top of what is there now. */
static void apply_arrivals(struct pmem *pm, uint32_t l)
{
	for (uint32_t i = 0; i < pm->arrivals; i++)
		if (pm->arrival[i].off / LINE == l)
			write_durable(pm, pm->arrival[i].off, pm->arrival[i].data,
				      pm->arrival[i].len);
}

/* The line's versions up to its `upto`th since boot are durable for sure. */
static void make_durable(struct pmem *pm, uint32_t l, uint32_t upto)
{
	struct line *line = &pm->line[l];
	assert(upto - line->committed <= line->in_flight);
	while (line->committed < upto) {
		struct version *v = &pm->version[line->first - 1];
		write_durable(pm, (uint64_t)l * LINE + v->off, v->data, v->len);
		line->first = v->next;
		line->in_flight--;
		line->committed++;
	}
	if (pm->arrivals)
		apply_arrivals(pm, l);
	rehash(pm, l);
	pm->flight_hash ^= line->flight_hash;
	line->flight_hash = 0;
	for (uint32_t i = line->first; i; i = pm->version[i - 1].next)
		line->flight_hash = version_hash(line->flight_hash, l, &pm->version[i - 1]);
	pm->flight_hash ^= line->flight_hash;
	if (!line->in_flight) {
		line->last = 0;
		undirty(pm, line);
	}
}

static void commit(struct pmem *pm, uint32_t l, uint32_t upto)
{
	if (upto <= pm->line[l].committed)
		return;
	note_touch(pm, TOUCH_COMMIT, (uint64_t)l * LINE, LINE);
	make_durable(pm, l, upto);
}

static void add_version(struct pmem *pm, uint64_t off, const void *data, size_t len,
			const struct author *by)
{
	uint32_t l = (uint32_t)(off / LINE);
	struct line *line = &pm->line[l];
	assert(len && off % LINE + len <= LINE);
	if (pm->versions == pm->version_room)
		pm->version = grow(pm->version, &pm->version_room, sizeof(*pm->version));
	struct version *v = &pm->version[pm->versions++];
	v->next = 0;
	v->off = (uint8_t)(off % LINE);
	v->len = (uint8_t)len;
	v->by = *by;
	put(v->data, data, len);
	if (line->last) {
		pm->version[line->last - 1].next = pm->versions;
	} else {
		line->first = pm->versions;
		line->dirty_at = pm->dirties;
		pm->dirty[pm->dirties++] = l;
	}
	line->last = pm->versions;
	line->in_flight++;
	pm->flight_hash ^= line->flight_hash;
	line->flight_hash = version_hash(line->flight_hash, l, v);
	pm->flight_hash ^= line->flight_hash;
	sim_mix(pm->sim, off << 16 | len, line->flight_hash);
}

static void apply(const struct pmem *pm, uint32_t l, unsigned versions, uint8_t out[LINE])
{
	memcpy(out, pm->durable + (size_t)l * LINE, LINE);
	if (OWN_BUG(&pm->hw, PM_VERSION_ALONE) && !versions && pm->line[l].last) {
		const struct version *newest = &pm->version[pm->line[l].last - 1];
		put(out + newest->off, newest->data, newest->len);
	}
	uint32_t i = pm->line[l].first;
	for (unsigned v = 0; v < versions; v++, i = pm->version[i - 1].next)
		put(out + pm->version[i - 1].off, pm->version[i - 1].data, pm->version[i - 1].len);
}

/* --- the CPU --- */

static bool visible_is_durable(const struct pmem *pm, bool nic)
{
	if (OWN_BUG(&pm->hw, PM_CACHES_LOST) && pm->hw.domain == DOMAIN_MHP)
		return false;
	if (OWN_BUG(&pm->hw, PM_VISIBLE_DURABLE))
		return true;
	return pm->hw.domain == DOMAIN_WSP ||
	       (pm->hw.domain == DOMAIN_MHP && (!nic || pm->hw.ddio || pm->hw.iio_in_mhp));
}

/* Do data in the NIC's buffers survive? */
static bool nic_buffers_survive(const struct pmem *pm)
{
	return pm->hw.domain == DOMAIN_WSP && !OWN_BUG(&pm->hw, PM_NIC_BUFFERS_LOST);
}

/* Do they land in the cache, where no NIC reaches them? Else they drain to PM. */
static bool nic_uses_cache(const struct pmem *pm)
{
	return pm->hw.ddio && !OWN_BUG(&pm->hw, PM_DDIO_IGNORED);
}

static struct author by_task(struct pmem *pm, uintptr_t pc)
{
	struct actor *actor = sim_actor(pm->sim);
	struct author by = {.who = actor, .pc = pc};
	if (actor) {
		by.op = actor->op;
		by.occurrence = actor->occurrence;
	}
	return by;
}

static void tell_store(struct pmem *pm, uint64_t off, const void *data, size_t len,
		       const struct author *by, bool late)
{
	char name[64], hex[24] = "";
	pmem_place(pm, off, name, sizeof(name));
	for (size_t i = 0; i < len && i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", ((const uint8_t *)data)[i]);
	const struct traced about = {.kind = TRACED_STORE, .off = off, .len = len};
	sim_trace_event(pm->sim, by->who, by->pc, &about, "%sstores %zu bytes at %s: %s",
			late ? "out of its store buffer: " : "", len, name, hex);
}

/*
 * The power may fail before something of a CPU becomes durable. `late`: the entry of its store
 * buffer by which it does. True: it fails.
 */
static bool cpu_power_fails(struct pmem *pm, enum crash_place place, const struct buffered *late)
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

/*
 * Bytes that the CPU has stored at [off, off+len), within one line, become a version of it. `late`:
 * as above. False: the power failed.
 */
static bool stored(struct pmem *pm, uint64_t off, size_t len, const struct author *by,
		   const struct buffered *late)
{
	uint32_t l = (uint32_t)(off / LINE);
	size_t torn = OWN_BUG(&pm->hw, PM_WORD_TORN) && len == 8 ? 4 : 0;
	if (torn)
		add_version(pm, off, pm->work + off, torn, by);
	add_version(pm, off + torn, pm->work + off + torn, len - torn, by);
	if (sim_tracing(pm->sim))
		tell_store(pm, off, pm->work + off, len, by, late);
	if (!visible_is_durable(pm, false))
		return true;
	if (cpu_power_fails(pm, CRASH_BEFORE_STORE, late))
		return false;
	commit(pm, l, pm->line[l].committed + pm->line[l].in_flight);
	return true;
}

/* Bytes that the CPU stores within one line, on their way to memory. */
static void store_piece(struct pmem *pm, uint64_t off, const uint8_t *bytes, size_t len,
			const struct author *by, struct unread *how)
{
	if (!how->waits) {
		memcpy(pm->work + off, bytes, len);
		stored(pm, off, len, by, NULL);
		return;
	}
	struct buffered entry = {.kind = BUFFERED_STORE, .by = *by, .off = off, .len = len};
	memcpy(entry.bytes, bytes, len);
	store_buffers_enter(pm->buffers, &entry, how->holds);
	how->holds = 0; /* the others are behind it */
}

/* Keep what is below the store to come. */
static void keep_below(struct pmem *pm)
{
	while (pm->below_room < pm->unread.len)
		pm->below = grow(pm->below, &pm->below_room, 1);
	memcpy(pm->below, pm->work + pm->unread.off, pm->unread.len);
}

/* The bytes of the unread store, of which memory no longer shows anything. */
static const uint8_t *take_unread(struct pmem *pm, const struct unread *unread)
{
	for (size_t i = 0; i < unread->len; i++) {
		uint8_t new = pm->work[unread->off + i];
		pm->work[unread->off + i] = pm->below[i];
		pm->below[i] = new;
	}
	return pm->below;
}

/* A structure's store is a copy: word by word. How long the first of its pieces is. */
static inline size_t first_piece(uint64_t off, size_t len)
{
	size_t part = len > 8 ? 8 - off % 8 : LINE - off % LINE;
	return part < len ? part : len;
}

/* With store buffers, the unread store is taken out of memory again and goes its way. */
static void read_to_buffer(struct pmem *pm, const struct author *by)
{
	struct unread unread = pm->unread;
	const uint8_t *bytes = take_unread(pm, &unread);
	pm->unread.len = 0;
	/* If its task ended in mid-air there is no such CPU any more. */
	unread.waits = unread.waits && by->who;
	for (size_t done = 0, part; done < unread.len; done += part) {
		part = first_piece(unread.off + done, unread.len - done);
		store_piece(pm, unread.off + done, bytes + done, part, by, &unread);
	}
}

static __attribute__((noinline)) void read_unread(struct pmem *pm)
{
	const struct author by = by_task(pm, pm->unread.pc);
	uint64_t off = pm->unread.off;
	size_t len = pm->unread.len, part;
	if (pm->buffers) {
		read_to_buffer(pm, &by);
		return;
	}
	pm->unread.len = 0;
	for (; len; off += part, len -= part) {
		part = first_piece(off, len);
		stored(pm, off, part, &by, NULL);
	}
}

/* The current task's next store is chosen to wait in its buffer, or not. */
static __attribute__((noinline)) void choose_wait(struct pmem *pm, struct unread *store)
{
	struct actor *actor = sim_actor(pm->sim);
	store->waits = store_buffers_in_use(pm->buffers);
	if (!actor || sim_plain(pm->sim))
		return;
	struct choice_point at = {.kind = CHOICE_BUFFER,
				  .who = actor,
				  .op = actor->op,
				  .occurrence = actor->occurrence,
				  .a = actor->count[COUNT_STEP + STEP_STORE]};
	store->holds = (uint8_t)sim_choose(pm->sim, &at, DELAYS);
	store->waits |= store->holds;
}

/* Instructions that are no stores wait in the buffer only behind something else. */
static bool waits(struct pmem *pm)
{
	return pm->buffers && store_buffers_in_use(pm->buffers);
}

static void enter(struct pmem *pm, enum buffered_kind kind, uint64_t off, size_t len, uintptr_t pc)
{
	const struct buffered entry = {
		.kind = (uint8_t)kind, .by = by_task(pm, pc), .off = off, .len = len};
	store_buffers_wait(pm->buffers, pm->buffers->size - 1);
	store_buffers_enter(pm->buffers, &entry, 0);
}

void pmem_commit_pending(struct pmem *pm)
{
	if (pm->unread.len)
		read_unread(pm);
}

/* Does [off, off+len) hold what the versions say? */
static bool as_known(const struct pmem *pm, uint64_t off, size_t len)
{
	uint8_t known[LINE];
	while (len) {
		uint64_t at = off % LINE;
		size_t part = LINE - at < len ? LINE - at : len;
		apply(pm, (uint32_t)(off / LINE), pm->line[off / LINE].in_flight, known);
		if (memcmp(known + at, pm->work + off, part))
			return false;
		off += part;
		len -= part;
	}
	return true;
}

static bool nothing_stored(const struct pmem *pm, const struct unread *unread)
{
	if (pm->buffers)
		return !memcmp(pm->below, pm->work + unread->off, unread->len);
	return as_known(pm, unread->off, unread->len);
}

static void tell_load(struct pmem *pm, uint64_t off, size_t len)
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
	sim_step(pm->sim, STEP_LOAD, LOAD_NS);
	note_load(pm, off, len);
	if (!len)
		return;
	touch(pm, off, len, false);
	if (sim_tracing(pm->sim))
		tell_load(pm, off, len);
	show_mine(pm);
}

/*
 * gcc calls both hooks of `*a = *b`, the write's first, before it copies: a store that has changed
 * nothing yet, followed by a load of the same length, is still to come.
 */
static __attribute__((noinline)) void load_after_store(struct pmem *pm, uint64_t off, size_t len)
{
	struct unread coming = pm->unread;
	if (coming.len == len && nothing_stored(pm, &coming))
		pm->unread.len = 0;
	else
		coming.len = 0;
	pmem_commit_pending(pm);
	load(pm, off, len);
	if (coming.len) {
		pm->unread = coming;
		if (pm->buffers)
			keep_below(pm);
	}
}

void pmem_cpu_load(struct pmem *pm, uint64_t off, size_t len)
{
	if (pm->unread.len)
		load_after_store(pm, off, len);
	else
		load(pm, off, len);
}

/* A store's hook, with store buffers: memory then is as its CPU sees it. */
static __attribute__((noinline)) void store_behind_buffer(struct pmem *pm, struct unread store,
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
	pm->unread = store;
	show_mine(pm);
	keep_below(pm);
}

static inline void store_to_come(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc,
				 bool locked)
{
	pmem_commit_pending(pm);
	sim_step(pm->sim, STEP_STORE, STORE_NS);
	if (pm->buffers) {
		store_behind_buffer(pm, (struct unread){.off = off, .len = len, .pc = pc}, locked);
		return;
	}
	note_touch(pm, TOUCH_WRITE, off, len);
	touch(pm, off, len, true);
	pm->unread.off = off;
	pm->unread.len = len;
	pm->unread.pc = pc;
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
		      struct unread *how)
{
	const struct author by = by_task(pm, how->pc);
	uint8_t bytes[8];
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

static void copy(struct pmem *pm, uint64_t off, const uint8_t *from, int byte, size_t len,
		 uintptr_t pc, bool locked)
{
	pmem_commit_pending(pm);
	while (len) {
		size_t part = LINE - off % LINE < len ? LINE - off % LINE : len;
		struct unread how = {.pc = pc};
		sim_step(pm->sim, STEP_STORE, STORE_NS);
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
	copy(pm, off, data, byte, len, pc, false);
}

/* Every dirty line is durable. */
static void write_back_all(struct pmem *pm)
{
	while (pm->dirties) {
		uint32_t l = pm->dirty[pm->dirties - 1];
		commit(pm, l, pm->line[l].committed + pm->line[l].in_flight);
	}
}

static struct marks *marks_of(struct pmem *pm, unsigned cpu)
{
	if (pm->marked < cpu)
		pm->marked = cpu;
	return &pm->marks[cpu];
}

static unsigned my_cpu(const struct pmem *pm)
{
	return (unsigned)(sim_task(pm->sim) + 1);
}

/* The last line of a range that is flushed. */
static uint64_t last_line(const struct pmem *pm, uint64_t off, size_t len)
{
	if (OWN_BUG(&pm->hw, PM_FLUSH_SHORT))
		return off / LINE + (len - 1) / LINE;
	return (off + len - 1) / LINE;
}

static void tell_flush(struct pmem *pm, uint64_t off, size_t len, const struct author *by,
		       const char *what)
{
	char name[64];
	pmem_place(pm, off, name, sizeof(name));
	const struct traced about = {.kind = TRACED_FLUSH, .off = off, .len = len};
	sim_trace_event(pm->sim, by->who, by->pc, &about, "flushes %zu bytes at %s%s", len, name,
			what);
}

/* clwb, clflushopt: a fence makes the range's lines durable as they are now. */
static void mark(struct pmem *pm, unsigned cpu, uint64_t off, size_t len, const struct author *by)
{
	struct marks *marks = marks_of(pm, cpu);
	uint64_t last = last_line(pm, off, len);
	if (OWN_BUG(&pm->hw, PM_FLUSH_IGNORED))
		return;
	note_touch(pm, TOUCH_READ, off, len);
	for (uint32_t l = (uint32_t)(off / LINE); l <= last; l++) {
		struct line *line = &pm->line[l];
		if (!line->in_flight)
			continue;
		if (marks->n == marks->room)
			marks->mark = grow(marks->mark, &marks->room, sizeof(*marks->mark));
		marks->mark[marks->n++] = (struct mark){l, line->committed + line->in_flight};
	}
	if (sim_tracing(pm->sim))
		tell_flush(pm, off, len, by, "");
}

/* clflush: the range's lines are durable as they are now. False: the power failed. */
static bool flush_now(struct pmem *pm, uint64_t off, size_t len, const struct author *by,
		      const struct buffered *late)
{
	uint64_t last = last_line(pm, off, len);
	bool moves = false;
	if (OWN_BUG(&pm->hw, PM_FLUSH_IGNORED))
		return true;
	note_touch(pm, TOUCH_READ, off, len);
	for (uint32_t l = (uint32_t)(off / LINE); l <= last && !moves; l++)
		moves = pm->line[l].in_flight;
	if (moves && cpu_power_fails(pm, CRASH_BEFORE_FENCE, late))
		return false;
	for (uint32_t l = (uint32_t)(off / LINE); l <= last; l++)
		commit(pm, l, pm->line[l].committed + pm->line[l].in_flight);
	if (sim_tracing(pm->sim))
		tell_flush(pm, off, len, by, ", now durable");
	return true;
}

void pmem_cpu_flush(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc)
{
	pmem_commit_pending(pm);
	sim_step(pm->sim, STEP_FLUSH, FLUSH_NS);
	if (!len)
		return;
	const struct author by = by_task(pm, pc);
	if (!waits(pm)) {
		mark(pm, my_cpu(pm), off, len, &by);
		return;
	}
	/* Line by line: each waits only for what concerns it. */
	for (uint64_t end = off + len, part; off < end; off += part) {
		part = LINE - off % LINE < end - off ? LINE - off % LINE : end - off;
		if (store_buffers_keep(pm->buffers, off, part))
			enter(pm, BUFFERED_FLUSH, off, part, pc);
		else
			mark(pm, my_cpu(pm), off, part, &by);
	}
}

void pmem_cpu_clflush(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc)
{
	pmem_commit_pending(pm);
	sim_step(pm->sim, STEP_FLUSH, FLUSH_NS);
	if (!len)
		return;
	if (waits(pm)) {
		enter(pm, BUFFERED_CLFLUSH, off, len, pc);
		return;
	}
	const struct author by = by_task(pm, pc);
	flush_now(pm, off, len, &by, NULL);
}

/* What this CPU has marked is durable. False: the power failed. */
static bool fence(struct pmem *pm, unsigned cpu, const struct author *by,
		  const struct buffered *late)
{
	struct marks *marks = marks_of(pm, cpu);
	bool moves = false;
	for (unsigned i = 0; i < marks->n && !moves; i++)
		moves = marks->mark[i].upto > pm->line[marks->mark[i].line].committed;
	if (moves && cpu_power_fails(pm, CRASH_BEFORE_FENCE, late))
		return false;
	for (unsigned i = 0; i < marks->n && !(i && OWN_BUG(&pm->hw, PM_FENCE_ONE)); i++)
		commit(pm, marks->mark[i].line, marks->mark[i].upto);
	if (OWN_BUG(&pm->hw, PM_FENCE_ALL))
		write_back_all(pm);
	for (unsigned t = 0; t <= SIM_TASKS && OWN_BUG(&pm->hw, PM_FENCE_FORGETS); t++)
		pm->marks[t].n = 0;
	if (sim_tracing(pm->sim)) {
		const struct traced about = {.kind = TRACED_FENCE};
		sim_trace_event(pm->sim, by->who, by->pc, &about,
				"fence: %u flushed line%s now durable", marks->n,
				marks->n == 1 ? " is" : "s are");
	}
	marks->n = 0;
	return true;
}

void pmem_cpu_fence(struct pmem *pm, uintptr_t pc)
{
	pmem_commit_pending(pm);
	sim_step(pm->sim, STEP_FENCE, FENCE_NS);
	if (waits(pm)) {
		enter(pm, BUFFERED_FENCE, 0, 0, pc);
		return;
	}
	const struct author by = by_task(pm, pc);
	fence(pm, my_cpu(pm), &by, NULL);
}

void pmem_cpu_read(struct pmem *pm, uint64_t off, void *data, size_t len)
{
	pmem_cpu_load(pm, off, len);
	memcpy(data, pm->work + off, len);
}

/* --- the CPU's store buffer --- */

bool pmem_has_buffers(const struct pmem *pm)
{
	return pm->buffers;
}

void pmem_cpu_empty(struct pmem *pm, uintptr_t pc)
{
	const struct author by = by_task(pm, pc);
	pmem_commit_pending(pm);
	store_buffers_wait(pm->buffers, 0);
	if (marks_of(pm, my_cpu(pm))->n)
		fence(pm, my_cpu(pm), &by, NULL);
}

void pmem_cpu_dram_store(struct pmem *pm, const void *addr)
{
	if (!store_buffers_waiting(pm->buffers) || sim_on_stack(pm->sim, addr))
		return;
	pmem_commit_pending(pm);
	store_buffers_wait(pm->buffers, 0);
}

void pmem_cpu_mfence(struct pmem *pm, uintptr_t pc)
{
	if (!pm->buffers) {
		pmem_cpu_fence(pm, pc);
		return;
	}
	pmem_commit_pending(pm);
	sim_step(pm->sim, STEP_FENCE, FENCE_NS);
	pmem_cpu_empty(pm, pc);
}

void pmem_cpu_locked_write(struct pmem *pm, uint64_t off, const void *data, size_t len,
			   uintptr_t pc)
{
	copy(pm, off, data, 0, len, pc, true);
}

void pmem_cpu_post(struct pmem *pm, void (*ring)(void *arg), void *arg)
{
	pmem_commit_pending(pm);
	if (!pm->buffers || !store_buffers_waiting(pm->buffers)) {
		ring(arg);
		return;
	}
	const struct buffered entry = {
		.kind = BUFFERED_POST, .by = by_task(pm, 0), .ring = ring, .arg = arg};
	store_buffers_wait(pm->buffers, pm->buffers->size - 1);
	store_buffers_enter(pm->buffers, &entry, 0);
}

/* An entry of a store buffer takes effect. */
static bool leaves(void *arg, const struct buffered *entry)
{
	struct pmem *pm = arg;
	switch (entry->kind) {
	case BUFFERED_STORE:
		note_touch(pm, TOUCH_WRITE, entry->off, entry->len);
		memcpy(pm->work + entry->off, entry->bytes, entry->len);
		return stored(pm, entry->off, entry->len, &entry->by, entry);
	case BUFFERED_FLUSH:
		mark(pm, entry->cpu, entry->off, entry->len, &entry->by);
		return true;
	case BUFFERED_CLFLUSH:
		return flush_now(pm, entry->off, entry->len, &entry->by, entry);
	case BUFFERED_FENCE:
		return fence(pm, entry->cpu, &entry->by, entry);
	default:
		entry->ring(entry->arg);
		return true;
	}
}

void pmem_watch(struct pmem *pm)
{
	pm->watched = STEP_COST;
	pm->window.burn = 1;
}

void pmem_burnt(struct pmem *pm, const void *addr, size_t len, bool write)
{
	pm->window.burn = pm->watched ? 1 : STEP_COST;
	if (pm->watched) {
		if (!sim_on_stack(pm->sim, addr))
			sim_touch(pm->sim, write ? TOUCH_DRAM_WRITE : TOUCH_DRAM_READ,
				  (uintptr_t)addr, len);
		if (--pm->watched)
			return;
		pm->watched = STEP_COST;
	}
	if (sim_actor(pm->sim))
		sim_abandon(pm->sim, SIM_FUEL);
}

/* --- the NIC --- */

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

void pmem_nic_arrive(struct pmem *pm, uint64_t off, const void *data, size_t len,
		     const struct nic_where *from)
{
	const uint8_t *bytes = data;
	if (!nic_buffers_survive(pm) || !len)
		return;
	pmem_commit_pending(pm);
	show_all(pm);
	touch(pm, off, len, true);
	if (nic_power_fails(pm, CRASH_BEFORE_LAND, off, from))
		return;
	note_touch(pm, TOUCH_ARRIVE, off, len);
	write_durable(pm, off, data, len);
	while (len) {
		size_t part = LINE - off % LINE < len ? LINE - off % LINE : len;
		if (pm->arrivals == pm->arrival_room)
			pm->arrival = grow(pm->arrival, &pm->arrival_room, sizeof(*pm->arrival));
		struct arrival *arrival = &pm->arrival[pm->arrivals++];
		arrival->off = off;
		arrival->len = (uint8_t)part;
		memcpy(arrival->data, bytes, part);
		rehash(pm, (uint32_t)(off / LINE));
		off += part;
		bytes += part;
		len -= part;
	}
}

/* The oldest arrival of just these bytes has landed. False: they did not arrive before. */
static bool arrival_landed(struct pmem *pm, uint64_t off, size_t len)
{
	for (uint32_t i = 0; i < pm->arrivals; i++) {
		if (pm->arrival[i].off != off || pm->arrival[i].len != len)
			continue;
		memmove(&pm->arrival[i], &pm->arrival[i + 1],
			(pm->arrivals - i - 1) * sizeof(pm->arrival[0]));
		pm->arrivals--;
		return true;
	}
	return false;
}

struct drain {
	struct pmem *pm;
	uint32_t line, upto;
	struct nic_where from;
};

static void drain_line(struct sim *sim, void *arg)
{
	struct drain *drain = arg;
	struct pmem *pm = drain->pm;
	if (drain->upto <= pm->line[drain->line].committed)
		return;
	if (nic_power_fails(pm, CRASH_BEFORE_DRAIN, (uint64_t)drain->line * LINE, &drain->from))
		return;
	commit(pm, drain->line, drain->upto);
	if (sim_tracing(sim)) {
		char name[64];
		pmem_place(pm, (uint64_t)drain->line * LINE, name, sizeof(name));
		sim_trace(sim, drain->from.qp, 0, "line %s drains to PM", name);
	}
}

static void schedule_drain(struct pmem *pm, uint32_t l, const struct nic_where *from)
{
	struct drain *drain = sim_alloc(pm->sim, sizeof(*drain));
	*drain = (struct drain){pm, l, pm->line[l].committed + pm->line[l].in_flight, *from};
	struct choice_point at = {.kind = CHOICE_DRAIN,
				  .who = from->qp,
				  .op = from->op,
				  .occurrence = from->occurrence,
				  .a = from->message,
				  .b = from->packet,
				  .c = l};
	sim_delay(pm->sim, CHAIN_OTHER, sim_choose(pm->sim, &at, DELAYS), DRAIN_NS, drain_line,
		  drain);
}

void pmem_nic_land(struct pmem *pm, uint64_t off, const void *data, size_t len,
		   const struct nic_where *from)
{
	uint32_t l = (uint32_t)(off / LINE);
	struct author by = {.who = from->qp,
			    .op = from->op,
			    .occurrence = from->occurrence,
			    .nic = true,
			    .send = from->send};
	bool durable = visible_is_durable(pm, true) || OWN_BUG(&pm->hw, PM_NIC_DURABLE);
	pmem_commit_pending(pm);
	show_all(pm);
	bool arrived = arrival_landed(pm, off, len);
	note_touch(pm, arrived ? TOUCH_SHOW : TOUCH_WRITE, off, len);
	touch(pm, off, len, true);
	/* Under WSP the data is durable since it arrived: landing changes nothing that survives. */
	if (durable && !nic_buffers_survive(pm) &&
	    nic_power_fails(pm, CRASH_BEFORE_LAND, off, from))
		return;
	memcpy(pm->work + off, data, len);
	add_version(pm, off, data, len, &by);
	if (sim_tracing(pm->sim)) {
		char name[64];
		pmem_place(pm, off, name, sizeof(name));
		const struct traced about = {.kind = TRACED_LAND,
					     .occurrence = from->occurrence,
					     .op = from->op,
					     .off = off,
					     .len = len};
		sim_trace_event(pm->sim, from->qp, 0, &about,
				"message %u packet %u: %zu bytes land at %s, %s", from->message,
				from->packet, len, name,
				durable ? "visible and durable" : "visible");
	}
	if (arrived)
		make_durable(pm, l, pm->line[l].committed + pm->line[l].in_flight);
	else if (durable)
		commit(pm, l, pm->line[l].committed + pm->line[l].in_flight);
	else if (!nic_uses_cache(pm) && !sim_picks(pm->sim)) /* a drain only makes images fewer */
		schedule_drain(pm, l, from);
}

/* How many of the line's versions since boot the flush covers: up to the newest that it names. */
static uint32_t flushed_upto(const struct pmem *pm, uint32_t l, uint64_t off, size_t len,
			     bool sends, const struct actor *qp)
{
	const struct line *line = &pm->line[l];
	uint32_t n = line->committed, upto = n;
	for (uint32_t i = line->first; i; i = pm->version[i - 1].next) {
		const struct version *v = &pm->version[i - 1];
		uint64_t at = (uint64_t)l * LINE + v->off;
		n++;
		bool in_range = len && at < off + len && off < at + v->len;
		if (v->by.nic && v->by.who == qp && (v->by.send ? sends : in_range))
			upto = n;
	}
	return upto;
}

void pmem_nic_flush(struct pmem *pm, uint64_t off, size_t len, bool sends,
		    const struct nic_where *from)
{
	uint32_t lowest = UINT32_MAX, lines = 0;
	pmem_commit_pending(pm);
	if (nic_uses_cache(pm) || visible_is_durable(pm, true))
		return;
	for (uint32_t i = 0; i < pm->dirties; i++) {
		uint32_t l = pm->dirty[i];
		if (flushed_upto(pm, l, off, len, sends, from->qp) == pm->line[l].committed)
			continue;
		lowest = l < lowest ? l : lowest;
		lines++;
	}
	if (!lines || nic_power_fails(pm, CRASH_BEFORE_DRAIN, (uint64_t)lowest * LINE, from))
		return;
	/* From the end: a line that is clean now gives its place to the list's last one. */
	for (uint32_t i = pm->dirties; i--;)
		commit(pm, pm->dirty[i], flushed_upto(pm, pm->dirty[i], off, len, sends, from->qp));
	if (sim_tracing(pm->sim))
		sim_trace(pm->sim, from->qp, 0,
			  "message %u packet %u: %u line%s drained to PM, now durable",
			  from->message, from->packet, lines, lines == 1 ? " is" : "s are");
}

void pmem_nic_read(struct pmem *pm, uint64_t off, void *data, size_t len)
{
	pmem_commit_pending(pm);
	if (!len)
		return;
	note_touch(pm, TOUCH_READ, off, len);
	struct source *source = sim_get_source(pm->sim);
	if (OWN_BUG(&pm->hw, PM_NEWEST_ON_NIC_READ))
		sim_source(pm->sim, NULL);
	touch(pm, off, len, false);
	if (OWN_BUG(&pm->hw, PM_NEWEST_ON_NIC_READ))
		sim_source(pm->sim, source);
	show_mine(pm); /* a task that posts inline data copies them itself; an event is nobody's */
	memcpy(data, pm->work + off, len);
}

/* --- the explorer --- */

void pmem_cache_pressure(struct pmem *pm)
{
	struct actor *actor = sim_actor(pm->sim);
	pmem_commit_pending(pm);
	if (!pm->dirties || sim_plain(pm->sim) || !actor)
		return;
	struct choice_point at = {.kind = CHOICE_EVICT,
				  .who = actor,
				  .op = actor->op,
				  .occurrence = actor->occurrence};
	unsigned answer = sim_choose(pm->sim, &at, pm->dirties + 2);
	if (!answer || sim_power_fails_here(pm->sim, CRASH_BEFORE_EVICT))
		return;
	if (answer >= 2) {
		uint32_t l = pm->dirty[answer - 2];
		commit(pm, l, pm->line[l].committed + pm->line[l].in_flight);
	} else
		write_back_all(pm);
	sim_trace(pm->sim, actor, 0, "the cache writes back %s",
		  answer == 1 ? "every dirty line" : "a dirty line");
}

uint64_t pmem_images_hash(const struct pmem *pm)
{
	/* Durable content relative to the first machine's boot: the machines' changes add up (XOR).
	 * In flight: this machine's versions, and those of failed machines on lines that nobody has
	 * touched since. */
	uint64_t durable = pm->durable_hash, flight = pm->flight_hash;
	for (const struct pmem *failed = pm->before; failed; failed = failed->before) {
		durable ^= failed->durable_hash;
		for (uint32_t i = 0; i < failed->dirties; i++) {
			uint32_t l = failed->dirty[i];
			if (undecided_in(pm, l) == failed)
				flight ^= failed->line[l].flight_hash;
		}
	}
	return durable * 0x9e3779b97f4a7c15u ^ flight;
}

const struct pmem *pmem_failed(const struct pmem *pm, uint32_t line)
{
	return undecided_in(pm->before, line);
}

void pmem_decide_all(struct pmem *pm)
{
	for (const struct pmem *failed = pm->before; failed; failed = failed->before)
		for (uint32_t i = 0; i < failed->dirties; i++)
			touch(pm, (uint64_t)failed->dirty[i] * LINE, 1, false);
}

unsigned pmem_dirty(const struct pmem *pm)
{
	return pm->dirties;
}

uint32_t pmem_dirty_line(const struct pmem *pm, unsigned i)
{
	assert(i < pm->dirties);
	return pm->dirty[i];
}

unsigned pmem_line_versions(const struct pmem *pm, uint32_t l)
{
	return pm->line[l].in_flight;
}

unsigned pmem_line_answers(const struct pmem *pm, uint32_t l)
{
	return pmem_answers(pm->line[l].in_flight, pm->hw.line_torn);
}

void pmem_line_content(const struct pmem *pm, uint32_t l, unsigned answer, uint8_t out[LINE])
{
	uint8_t newer[LINE];
	struct pmem_answer a = pmem_answer_split(pm->line[l].in_flight, answer);
	if (!a.words) {
		apply(pm, l, a.version, out);
		return;
	}
	/* Cut: the first words are of this version, the others of what was written back before. */
	apply(pm, l, a.version, newer);
	apply(pm, l, a.over, out);
	memcpy(out, newer, a.words * 8);
}

bool pmem_line_distinct(const struct pmem *pm, uint32_t l, unsigned answer)
{
	uint8_t mine[LINE], other[LINE];
	pmem_line_content(pm, l, answer, mine);
	for (unsigned k = 0; k < answer; k++) {
		pmem_line_content(pm, l, k, other);
		if (!memcmp(mine, other, LINE))
			return false;
	}
	return true;
}

void pmem_line_version(const struct pmem *pm, uint32_t l, unsigned v, struct pmem_version *out)
{
	assert(v >= 1 && v <= pm->line[l].in_flight);
	uint32_t i = pm->line[l].first;
	while (--v)
		i = pm->version[i - 1].next;
	const struct version *from = &pm->version[i - 1];
	*out = (struct pmem_version){.who = from->by.who,
				     .op = from->by.op,
				     .occurrence = from->by.occurrence,
				     .nic = from->by.nic,
				     .off = from->off,
				     .len = from->len,
				     .pc = from->by.pc};
	memcpy(out->data, from->data, from->len);
}

bool pmem_all_seen(struct pmem *pm, uint64_t *off)
{
	uint8_t expected[LINE];
	show_all(pm);
	for (uint32_t l = 0; l < pm->len / LINE; l++) {
		if (pm->before && pm->line[l].decided != pm->run)
			continue;
		apply(pm, l, pm->line[l].in_flight, expected);
		if (pm->arrivals)
			continue; /* durable is ahead of what is visible: nothing to compare */
		for (unsigned i = 0; i < LINE; i++) {
			if (expected[i] != pm->work[(size_t)l * LINE + i]) {
				*off = (uint64_t)l * LINE + i;
				return false;
			}
		}
	}
	return true;
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
