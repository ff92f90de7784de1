/* SPDX-License-Identifier: BSD-3-Clause */
/* See engine.h. Timers are a heap by time, then by number; what is due at once is a queue. */
#include "core/clock.h"
#include "core/provider/base/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/array.h"

#define CHUNK	(1u << 18) /* bytes */
#define LARGE	(1u << 14) /* from here on an allocation of its own */
#define ALIGNED 64
#define HASTE	4000 /* cycles: a microsecond or two */

struct due {
	uint64_t at, number;
	struct rnic_event event;
};

struct engine {
	struct rnic_ground ground;
	struct run_state run; /* its time is the system's; nothing is chosen, traced or scheduled */
	uint64_t numbers, cycles;
	struct due *soon;			/* a ring */
	size_t soon_room, soon_first, soon_len; /* room: a power of two */
	struct due *timer;			/* a heap */
	size_t timer_room, timers;
	uint8_t *chunk;
	size_t chunk_left;
	void (*yield)(void);
};

/* Its address tells threads apart. */
static _Thread_local char thread;

static _Noreturn void out_of_memory(void)
{
	abort(); /* as a driver's kernel part would refuse long before: rings and packets are
		  * small */
}

/* The clock is read where a fast CPU's cycles say that HASTE of them have passed: it costs as much
 * as the rest of a poll that finds nothing. */
static bool hasty(struct engine *engine)
{
#ifdef __x86_64__
	uint64_t cycles = __builtin_ia32_rdtsc();

	if (cycles - engine->cycles < HASTE)
		return true;
	engine->cycles = cycles;
#else
#endif
	return false;
}

void engine_tick(struct engine *engine)
{
	if (hasty(engine))
		return;
	uint64_t now = clock_ns();
	/* What was due soon has been run ahead of its time. */
	if (now > engine->run.now)
		engine->run.now = now;
}

static bool earlier(const struct due *a, const struct due *b)
{
	return a->at < b->at || (a->at == b->at && a->number < b->number);
}

static void push_soon(struct engine *engine, struct due due)
{
	if (engine->soon_len == engine->soon_room) {
		size_t room = engine->soon_room ? 2 * engine->soon_room : 64;
		struct due *ring = calloc(room, sizeof(*ring));

		if (!ring)
			out_of_memory();
		for (size_t i = 0; i < engine->soon_len; i++)
			ring[i] = engine->soon[(engine->soon_first + i) & (engine->soon_room - 1)];
		free(engine->soon);
		engine->soon = ring;
		engine->soon_room = room;
		engine->soon_first = 0;
	}
	assert(engine->soon_len < engine->soon_room && engine->soon_first < engine->soon_room);
	assert((engine->soon_room & (engine->soon_room - 1)) == 0); /* a mask finds a place */
	engine->soon[(engine->soon_first + engine->soon_len++) & (engine->soon_room - 1)] = due;
}

static void push_timer(struct engine *engine, struct due due)
{
	size_t i = engine->timers;

	assert(engine->timers <= engine->timer_room);
	if (!ARRAY_RESERVE(engine->timer, i, 1, engine->timer_room))
		out_of_memory();
	engine->timers++;
	for (; i && earlier(&due, &engine->timer[(i - 1) / 2]); i = (i - 1) / 2)
		engine->timer[i] = engine->timer[(i - 1) / 2];
	engine->timer[i] = due;
	assert(!i || earlier(&engine->timer[0], &due)); /* what comes first is on top */
}

static struct due pop_timer(struct engine *engine)
{
	assert(engine->timers);
	struct due first = engine->timer[0], last = engine->timer[--engine->timers];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < engine->timers) {
		if (child + 1 < engine->timers &&
		    earlier(&engine->timer[child + 1], &engine->timer[child]))
			child++;
		if (!earlier(&engine->timer[child], &last))
			break;
		engine->timer[i] = engine->timer[child];
		i = child;
	}
	engine->timer[i] = last;
	assert(!engine->timers || earlier(&first, &engine->timer[0]));
	return first;
}

bool engine_run_soon(struct engine *engine)
{
	bool ran = false;

	while (engine->soon_len) {
		struct due due = engine->soon[engine->soon_first];

		engine->soon_first = (engine->soon_first + 1) & (engine->soon_room - 1);
		engine->soon_len--;
		if (due.at > engine->run.now)
			engine->run.now = due.at;
		due.event.fn(due.event.arg);
		ran = true;
	}
	return ran;
}

bool engine_run(struct engine *engine)
{
	bool ran = engine_run_soon(engine);

	while (engine->timers && engine->timer[0].at <= engine->run.now) {
		struct due due = pop_timer(engine);

		due.event.fn(due.event.arg);
		engine_run_soon(engine);
		ran = true;
	}
	return ran;
}

uint64_t engine_next(const struct engine *engine)
{
	if (engine->soon_len)
		return engine->run.now;
	return engine->timers ? engine->timer[0].at : UINT64_MAX;
}

void engine_set_yield(struct engine *engine, void (*fn)(void))
{
	engine->yield = fn;
}

uint64_t engine_now(const struct engine *engine)
{
	return engine->run.now;
}

void engine_later(struct engine *engine, uint64_t delay_ns, rnic_event_fn *fn, void *arg)
{
	struct due due = {engine->run.now + delay_ns, engine->numbers++, {fn, arg}};

	assert(fn);
	if (delay_ns < ENGINE_SOON_NS)
		push_soon(engine, due);
	else
		push_timer(engine, due);
}

/* --- core/rnic/ground.h --- */

static void *alloc(void *world, size_t bytes)
{
	struct engine *engine = world;
	uint8_t *at;

	bytes = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
	if (bytes >= LARGE) {
		at = aligned_alloc(ALIGNED, bytes);
		if (!at)
			out_of_memory();
		return memset(at, 0, bytes);
	}
	if (engine->chunk_left < bytes) {
		engine->chunk = aligned_alloc(ALIGNED, CHUNK);
		if (!engine->chunk)
			out_of_memory();
		memset(engine->chunk, 0, CHUNK);
		engine->chunk_left = CHUNK;
	}
	at = engine->chunk;
	assert(engine->chunk_left >= bytes && (uintptr_t)at % ALIGNED == 0);
	engine->chunk += bytes;
	engine->chunk_left -= bytes;
	return at;
}

/* The event is copied: what it belongs to may have been given back, and serve another one, when it
 * comes. */
static void later(void *world, uint64_t chain, uint64_t delay_ns, const struct rnic_event *event)
{
	(void)chain; /* nothing but the time says what comes next */
	engine_later(world, delay_ns, event->fn, event->arg);
}

static const void *caller(void *world)
{
	return &thread;
}

static void yield(void *world)
{
	((struct engine *)world)->yield();
}

struct engine *engine_new(void)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	engine->run.plain = true;
	engine->run.cost = &profile_default;
	engine->ground = (struct rnic_ground){
		.world = engine,
		.run = &engine->run,
		.alloc = alloc,
		.later = later,
		.caller = caller,
		.yield = yield,
	};
	return engine;
}

const struct rnic_ground *engine_ground(const struct engine *engine)
{
	return &engine->ground;
}
