/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program under the Valgrind tool: the tool has seen each store, and each flush and fence, also
 * those that are instructions of the program itself. They are taken before each event, so that
 * what RNICs land, what is acknowledged and what the CPU does is in one order.
 */
#include "core/record/told.h"
#include <string.h>
#include "core/record/recorder.h"

#define TAKEN 256 /* at a time */

/* Number of events that the tool put there; -1: there is no tool, or it has another process. */
static long ask_tool(struct told *to, uint64_t room)
{
	long answer = -1;
#ifdef __x86_64__
	/* As in valgrind.h: rotations that leave RDI as it was, and a mark. */
	volatile uint64_t words[6] = {TOLD_REQUEST, (uintptr_t)to, room, 0, 0, 0};
	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "=d"(answer)
			 : "a"(&words[0]), "0"(-1L)
			 : "cc", "memory");
#else
	(void)to, (void)room;
#endif
	return answer;
}

/* What an RNIC is writing is no store of a CPU. */
static uintptr_t landing_at;
static size_t landing_len;

void told_landing(const void *at, size_t len)
{
	landing_at = (uintptr_t)at;
	landing_len = len;
}

static void add_store(void *arg, unsigned file, uint64_t off, const uint8_t *at, size_t len)
{
	const struct told_event *e = arg;
	const uint8_t *bytes = (const uint8_t *)&e->told->value +
			       ((uintptr_t)at - (uintptr_t)e->told->at);
	if (!pm_maps_differs(file, off, bytes, len))
		return;
	pm_maps_set(NULL, file, off, bytes, len);
	recorder->exact++;
	recorder_add_of(RECORD_EXACT, file, off, bytes, (uint32_t)len, e->source, e->told->thread,
			0);
}

static void add_flush(void *arg, unsigned file, uint64_t off, const uint8_t *at, size_t len)
{
	const struct told_event *e = arg;
	(void)at;
	recorder_add_of(RECORD_FLUSH, file, off, NULL, (uint32_t)len, e->source, e->told->thread,
			0);
}

static void take_told(const struct told *t)
{
	struct told_event e = {.told = t};
	if (t->kind == TOLD_STORE && t->at - landing_at < landing_len)
		return;
	/* Those of libpmem were recorded where it was called. */
	if (t->kind != TOLD_STORE && call_site_is_pmdk((const void *)(uintptr_t)t->ip[0]))
		return;
	e.source = call_site_of(t->ip, TOLD_FRAMES);
	if (t->kind == TOLD_FENCE)
		recorder_add_of(RECORD_FENCE, 0, 0, NULL, 0, e.source, t->thread, 0);
	else
		pm_maps_parts((const void *)(uintptr_t)t->at, t->len,
			      t->kind == TOLD_STORE ? add_store : add_flush, &e);
}

static bool by_tool;

bool told_by_tool(void)
{
	return by_tool;
}

bool told_take(void)
{
	static struct told told[TAKEN]; /* under the lock */
	long n;
	do {
		n = ask_tool(told, TAKEN);
		for (long i = 0; i < n; i++)
			take_told(&told[i]);
	} while (n == TAKEN);
	by_tool = n >= 0;
	if (by_tool)
		recorder->told = 1;
	return by_tool;
}
