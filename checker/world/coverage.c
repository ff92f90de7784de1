/* SPDX-License-Identifier: BSD-3-Clause */
/* See coverage.h. */
#include "checker/world/coverage.h"
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define BREAKPOINT 0xcc

bool coverage_on;

static struct {
	const struct source_lines *lines;
	enum coverage_phase phase;
	unsigned words;			/* of a set */
	uint8_t *byte;			/* of each site: what the code has there */
	uint64_t *set;			/* the memory of these, a bit for each site: */
	uint64_t *armed;		/* there is a breakpoint, */
	uint64_t *hit[COVERAGE_PHASES]; /* it has run */
	struct sigaction before;
} now;

static void put_byte(unsigned site, uint8_t byte)
{
	*(volatile uint8_t *)now.lines->site[site] = byte;
}

static void arm(unsigned site, bool on)
{
	put_byte(site, on ? BREAKPOINT : now.byte[site]);
	now.armed[site / 64] ^= 1ull << site % 64;
}

static void on_breakpoint(int sig, siginfo_t *info, void *context)
{
	(void)info;
#if defined(__x86_64__)
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	int site = coverage_on ? source_lines_site(now.lines, (uintptr_t)*pc - 1) : -1;
	if (site >= 0 && now.armed[site / 64] >> site % 64 & 1) {
		arm((unsigned)site, false);
		now.hit[now.phase][site / 64] |= 1ull << site % 64;
		--*pc; /* the instruction that stands there runs now */
		return;
	}
#else
	(void)context;
#endif
	/* None of ours: it does what it would have done. */
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Breakpoints where this phase has not run. */
static void place_breakpoints(void)
{
	const uint64_t *hit = now.hit[now.phase];
	for (unsigned w = 0; w < now.words; w++) {
		uint64_t change = now.armed[w] ^ ~hit[w];
		if (w == now.words - 1 && now.lines->sites % 64)
			change &= (1ull << now.lines->sites % 64) - 1;
		for (; change; change &= change - 1) {
			unsigned site = w * 64 + (unsigned)__builtin_ctzll(change);
			arm(site, !(now.armed[w] >> site % 64 & 1));
		}
	}
}

enum coverage_phase coverage_change(enum coverage_phase phase)
{
	enum coverage_phase before = now.phase;
	now.phase = phase;
	if (phase != before)
		place_breakpoints();
	return before;
}

/* May the store's code be written? */
static int protect(int how)
{
	const struct source_lines *l = now.lines;
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t done = 0;
	for (unsigned i = 0; i < l->sites; i++) {
		uintptr_t at = l->site[i] / page * page;
		if (at == done)
			continue;
		if (mprotect((void *)at, page, PROT_READ | PROT_EXEC | how))
			return -errno;
		done = at;
	}
	return 0;
}

static void forget(void)
{
	free(now.byte);
	free(now.set);
	memset(&now, 0, sizeof(now));
}

int coverage_start(const struct source_lines *lines)
{
	struct sigaction action = {.sa_sigaction = on_breakpoint,
				   .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	assert(COVERAGE_POSSIBLE && !coverage_on && lines->sites);
	now.lines = lines;
	now.words = (lines->sites + 63) / 64;
	now.byte = malloc(lines->sites);
	now.set = calloc(now.words * (COVERAGE_PHASES + 1ull), sizeof(*now.set));
	int error = now.byte && now.set ? protect(PROT_WRITE) : -ENOMEM;
	sigemptyset(&action.sa_mask);
	if (!error && sigaction(SIGTRAP, &action, &now.before))
		error = -errno;
	if (error) {
		forget();
		return error;
	}
	now.armed = now.set;
	for (unsigned p = 0; p < COVERAGE_PHASES; p++)
		now.hit[p] = now.set + (p + 1ull) * now.words;
	for (unsigned i = 0; i < lines->sites; i++)
		now.byte[i] = *(const uint8_t *)lines->site[i];
	coverage_on = true;
	place_breakpoints();
	return 0;
}

void coverage_stop(uint32_t *const count[COVERAGE_PHASES])
{
	assert(coverage_on);
	coverage_on = false;
	for (unsigned i = 0; i < now.lines->sites; i++) {
		put_byte(i, now.byte[i]);
		for (unsigned p = 0; p < COVERAGE_PHASES; p++)
			count[p][i] += now.hit[p][i / 64] >> i % 64 & 1;
	}
	protect(0);
	sigaction(SIGTRAP, &now.before, NULL);
	forget();
}
