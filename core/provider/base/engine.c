/* SPDX-License-Identifier: BSD-3-Clause */
/* See engine.h. Timers are a heap by time, then by number; what is due at once is a queue. */
#include "core/provider/base/engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/pmem/pmem.h"

#define CHUNK	 (1u << 18) /* bytes */
#define LARGE	 (1u << 14) /* from here on an allocation of its own */
#define ALIGNED	 64
#define NS_PER_S 1000000000ull
#define HASTE	 4000 /* cycles: a microsecond or two */

struct due {
	uint64_t at, number;
	sim_fn *fn;
	void *arg;
};

struct sim {
	uint64_t now, numbers, cycles;
	struct due *soon;			/* a ring */
	size_t soon_room, soon_first, soon_len; /* room: a power of two */
	struct due *timer;			/* a heap */
	size_t timer_room, timers;
	uint8_t *chunk;
	size_t chunk_left;
	void (*yield)(void);
};

/* Who posts: each thread is somebody, and nobody has a name. */
static _Thread_local struct actor thread;

static _Noreturn void out_of_memory(void)
{
	abort(); /* as a driver's kernel part would refuse long before: rings and packets are
		  * small */
}

struct sim *engine_new(void)
{
	return calloc(1, sizeof(struct sim));
}

/* The clock is read where a fast CPU's cycles say that HASTE of them have passed: it costs as much
 * as the rest of a poll that finds nothing. */
static bool hasty(struct sim *sim)
{
#ifdef __x86_64__
	uint64_t cycles = __builtin_ia32_rdtsc();

	if (cycles - sim->cycles < HASTE)
		return true;
	sim->cycles = cycles;
#else
	(void)sim;
#endif
	return false;
}

void engine_tick(struct sim *sim)
{
	struct timespec t;
	uint64_t now;

	if (hasty(sim))
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
	/* What was due soon has been run ahead of its time. */
	if (now > sim->now)
		sim->now = now;
}

static bool earlier(const struct due *a, const struct due *b)
{
	return a->at < b->at || (a->at == b->at && a->number < b->number);
}

static void push_soon(struct sim *sim, struct due due)
{
	if (sim->soon_len == sim->soon_room) {
		size_t room = sim->soon_room ? 2 * sim->soon_room : 64;
		struct due *ring = calloc(room, sizeof(*ring));

		if (!ring)
			out_of_memory();
		for (size_t i = 0; i < sim->soon_len; i++)
			ring[i] = sim->soon[(sim->soon_first + i) & (sim->soon_room - 1)];
		free(sim->soon);
		sim->soon = ring;
		sim->soon_room = room;
		sim->soon_first = 0;
	}
	sim->soon[(sim->soon_first + sim->soon_len++) & (sim->soon_room - 1)] = due;
}

static void push_timer(struct sim *sim, struct due due)
{
	size_t i = sim->timers;

	if (i == sim->timer_room) {
		size_t room = sim->timer_room ? 2 * sim->timer_room : 64;
		struct due *heap = reallocarray(sim->timer, room, sizeof(*heap));

		if (!heap)
			out_of_memory();
		sim->timer = heap;
		sim->timer_room = room;
	}
	sim->timers++;
	for (; i && earlier(&due, &sim->timer[(i - 1) / 2]); i = (i - 1) / 2)
		sim->timer[i] = sim->timer[(i - 1) / 2];
	sim->timer[i] = due;
}

static struct due pop_timer(struct sim *sim)
{
	struct due first = sim->timer[0], last = sim->timer[--sim->timers];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < sim->timers) {
		if (child + 1 < sim->timers && earlier(&sim->timer[child + 1], &sim->timer[child]))
			child++;
		if (!earlier(&sim->timer[child], &last))
			break;
		sim->timer[i] = sim->timer[child];
		i = child;
	}
	sim->timer[i] = last;
	return first;
}

bool engine_run_soon(struct sim *sim)
{
	bool ran = false;

	while (sim->soon_len) {
		struct due due = sim->soon[sim->soon_first];

		sim->soon_first = (sim->soon_first + 1) & (sim->soon_room - 1);
		sim->soon_len--;
		if (due.at > sim->now)
			sim->now = due.at;
		due.fn(sim, due.arg);
		ran = true;
	}
	return ran;
}

bool engine_run(struct sim *sim)
{
	bool ran = engine_run_soon(sim);

	while (sim->timers && sim->timer[0].at <= sim->now) {
		struct due due = pop_timer(sim);

		due.fn(sim, due.arg);
		engine_run_soon(sim);
		ran = true;
	}
	return ran;
}

uint64_t engine_next(const struct sim *sim)
{
	if (sim->soon_len)
		return sim->now;
	return sim->timers ? sim->timer[0].at : UINT64_MAX;
}

void engine_set_yield(struct sim *sim, void (*fn)(void))
{
	sim->yield = fn;
}

/* --- what core/rnic asks for (core/rt/sim.h) --- */

uint64_t sim_now(const struct sim *sim)
{
	return sim->now;
}

void *sim_alloc(struct sim *sim, size_t bytes)
{
	uint8_t *at;

	bytes = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
	if (bytes >= LARGE) {
		at = aligned_alloc(ALIGNED, bytes);
		if (!at)
			out_of_memory();
		return memset(at, 0, bytes);
	}
	if (sim->chunk_left < bytes) {
		sim->chunk = aligned_alloc(ALIGNED, CHUNK);
		if (!sim->chunk)
			out_of_memory();
		memset(sim->chunk, 0, CHUNK);
		sim->chunk_left = CHUNK;
	}
	at = sim->chunk;
	sim->chunk += bytes;
	sim->chunk_left -= bytes;
	return at;
}

void sim_in_chain(struct sim *sim, uint64_t chain, uint64_t delay_ns, sim_fn *fn, void *arg)
{
	struct due due = {sim->now + delay_ns, sim->numbers++, fn, arg};

	(void)chain;
	if (delay_ns < ENGINE_SOON_NS)
		push_soon(sim, due);
	else
		push_timer(sim, due);
}

void sim_at(struct sim *sim, uint64_t delay_ns, sim_fn *fn, void *arg)
{
	sim_in_chain(sim, CHAIN_OTHER, delay_ns, fn, arg);
}

void sim_yield(struct sim *sim)
{
	sim->yield();
}

struct actor *sim_actor(struct sim *sim)
{
	(void)sim;
	return &thread;
}

/* No host is the sim world's server, whose polls end at each message. */
unsigned sim_host(const struct sim *sim)
{
	(void)sim;
	return HOST_SERVER + 1;
}

bool sim_plain(const struct sim *sim)
{
	(void)sim;
	return true;
}

bool sim_picks(const struct sim *sim)
{
	(void)sim;
	return false;
}

bool sim_tracing(const struct sim *sim)
{
	(void)sim;
	return false;
}

bool sim_fails(enum fail_point point)
{
	(void)point;
	return false;
}

/* Nobody looks on: what follows tells an explorer, or the reader of a trace, what has happened. */

void sim_name_actor(struct sim *sim, struct actor *actor, unsigned host, const char *what,
		    unsigned number)
{
	(void)sim;
	(void)actor;
	(void)host;
	(void)what;
	(void)number;
}

void sim_trace(struct sim *sim, const struct actor *who, uintptr_t pc, const char *fmt, ...)
{
	(void)sim;
	(void)who;
	(void)pc;
	(void)fmt;
}

void sim_trace_event(struct sim *sim, const struct actor *who, uintptr_t pc,
		     const struct traced *about, const char *fmt, ...)
{
	(void)sim;
	(void)who;
	(void)pc;
	(void)about;
	(void)fmt;
}

void sim_touch_state(struct sim *sim, enum touch what, const void *at, size_t len)
{
	(void)sim;
	(void)what;
	(void)at;
	(void)len;
}

void sim_touch(struct sim *sim, enum touch what, uint64_t where, uint64_t len)
{
	(void)sim;
	(void)what;
	(void)where;
	(void)len;
}

void sim_gives(struct sim *sim, const void *thing, uint64_t nth)
{
	(void)sim;
	(void)thing;
	(void)nth;
}

void sim_takes(struct sim *sim, const void *thing, uint64_t nth)
{
	(void)sim;
	(void)thing;
	(void)nth;
}

void sim_mix(struct sim *sim, uint64_t a, uint64_t b)
{
	(void)sim;
	(void)a;
	(void)b;
}

void sim_mix_bytes(struct sim *sim, const void *bytes, size_t len)
{
	(void)sim;
	(void)bytes;
	(void)len;
}

void sim_settle(struct sim *sim)
{
	(void)sim;
}

void sim_step(struct sim *sim, enum step_kind kind, unsigned cost_ns)
{
	(void)sim;
	(void)kind;
	(void)cost_ns;
}

void sim_spend_step(struct sim *sim)
{
	(void)sim;
}

void sim_idle_on(struct sim *sim, const void *key)
{
	(void)sim;
	(void)key;
}

void sim_wake(struct sim *sim, const void *key)
{
	(void)sim;
	(void)key;
}

/* --- what plain answers never reach --- */

unsigned sim_choose(struct sim *sim, const struct choice_point *at, unsigned n)
{
	(void)sim;
	(void)at;
	(void)n;
	return 0;
}

uint64_t sim_delay(struct sim *sim, uint64_t chain, unsigned k, uint64_t delay_ns, sim_fn *fn,
		   void *arg)
{
	(void)k;
	sim_in_chain(sim, chain, delay_ns, fn, arg);
	return sim->now + delay_ns;
}

uint64_t choice_delay_ns(unsigned k)
{
	(void)k;
	return 0;
}

void actor_label(struct actor *actor, struct op_label op)
{
	actor->op = op;
}

/* PM is memory like any other here: no RNIC has a pool, and nobody calls these. */

bool pmem_owns(const struct pmem *pm, const void *addr, size_t len, uint64_t *off)
{
	(void)pm;
	(void)addr;
	(void)len;
	(void)off;
	return false;
}

void pmem_nic_arrive(struct pmem *pm, uint64_t off, const void *data, size_t len,
		     const struct nic_where *from)
{
	(void)pm;
	(void)off;
	(void)data;
	(void)len;
	(void)from;
}

void pmem_nic_land(struct pmem *pm, uint64_t off, const void *data, size_t len,
		   const struct nic_where *from)
{
	pmem_nic_arrive(pm, off, data, len, from);
}

void pmem_nic_flush(struct pmem *pm, uint64_t off, size_t len, bool sends,
		    const struct nic_where *from)
{
	(void)pm;
	(void)off;
	(void)len;
	(void)sends;
	(void)from;
}

void pmem_nic_read(struct pmem *pm, uint64_t off, void *data, size_t len)
{
	(void)pm;
	(void)off;
	memset(data, 0, len);
}

bool pmem_has_buffers(const struct pmem *pm)
{
	(void)pm;
	return false;
}

void pmem_cpu_post(struct pmem *pm, void (*ring)(void *arg), void *arg)
{
	(void)pm;
	ring(arg);
}

void pmem_place(const struct pmem *pm, uint64_t off, char *buf, size_t len)
{
	(void)pm;
	(void)off;
	if (len)
		*buf = '\0';
}
