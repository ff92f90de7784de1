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

/* A place in the code, where there may be a breakpoint for a site and for a branch. */
struct place {
	uint8_t byte; /* what the code has there */
	int other;    /* the branch or site at the same address; -1: none */
};

static struct {
	const struct source_lines *lines;
	enum coverage_phase phase;
	unsigned words; /* of a set */
	struct place *site, *branch;
	bool *branch_armed;
	bool *went[2];			/* of each branch */
	uint64_t *set;			/* the memory of these, a bit for each site: */
	uint64_t *armed;		/* there is a breakpoint, */
	uint64_t *hit[COVERAGE_PHASES]; /* it has run */
	struct sigaction before;
} now;

static bool in_set(const uint64_t *set, unsigned i)
{
	return set[i / 64] >> i % 64 & 1;
}

static void put_byte(uintptr_t at, bool breakpoint, uint8_t byte)
{
	*(volatile uint8_t *)at = breakpoint ? BREAKPOINT : byte;
}

static void arm_site(unsigned site, bool on)
{
	const struct place *place = &now.site[site];
	now.armed[site / 64] &= ~(1ull << site % 64);
	now.armed[site / 64] |= (uint64_t)on << site % 64;
	put_byte(now.lines->site[site], on || (place->other >= 0 && now.branch_armed[place->other]),
		 place->byte);
}

static void arm_branch(unsigned branch, bool on)
{
	const struct place *place = &now.branch[branch];
	now.branch_armed[branch] = on;
	put_byte(now.lines->branch[branch].jump.at,
		 on || (place->other >= 0 && in_set(now.armed, (unsigned)place->other)),
		 place->byte);
}

/* Is it known whether the branch has gone this way, without looking at it? */
static bool has_shown(unsigned branch, unsigned way)
{
	return now.went[way][branch] || now.lines->branch[branch].tells[way] >= 0;
}

/* Where a jump goes on. */
static uintptr_t go(unsigned branch, uint64_t flags)
{
	const struct conditional_jump *jump = &now.lines->branch[branch].jump;
	const bool jumps = conditional_jump_taken(jump->condition, flags);
	now.went[jumps][branch] = true;
	if (has_shown(branch, !jumps))
		arm_branch(branch, false);
	return jumps ? jump->target : jump->next;
}

static void on_breakpoint(int sig, siginfo_t *info, void *context)
{
	(void)info;
#if defined(__x86_64__)
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uintptr_t at = (uintptr_t)reg[REG_RIP] - 1;
	int site = coverage_on ? source_lines_site(now.lines, at) : -1;
	int branch = coverage_on ? source_lines_branch(now.lines, at) : -1;
	const bool ran = site >= 0 && in_set(now.armed, (unsigned)site);
	if (ran) {
		now.hit[now.phase][site / 64] |= 1ull << site % 64;
		arm_site((unsigned)site, false);
	}
	if (branch >= 0 && now.branch_armed[branch]) {
		reg[REG_RIP] = (greg_t)go((unsigned)branch, (uint64_t)reg[REG_EFL]);
		return;
	}
	if (ran) {
		reg[REG_RIP] = (greg_t)at; /* the instruction that stands there runs now */
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
static void place_breakpoints(enum coverage_phase before)
{
	const uint64_t *hit = now.hit[now.phase];
	const bool recovers = now.phase == COVERAGE_RECOVERY;
	for (unsigned w = 0; w < now.words; w++) {
		uint64_t change = now.armed[w] ^ ~hit[w];
		if (w == now.words - 1 && now.lines->sites % 64)
			change &= (1ull << now.lines->sites % 64) - 1;
		for (; change; change &= change - 1) {
			unsigned site = w * 64 + (unsigned)__builtin_ctzll(change);
			arm_site(site, !in_set(now.armed, site));
		}
	}
	if (!recovers && before != COVERAGE_RECOVERY)
		return;
	for (unsigned b = 0; b < now.lines->branches; b++)
		if (!has_shown(b, 0) || !has_shown(b, 1))
			arm_branch(b, recovers);
}

enum coverage_phase coverage_change(enum coverage_phase phase)
{
	enum coverage_phase before = now.phase;
	now.phase = phase;
	if (phase != before)
		place_breakpoints(before);
	return before;
}

/* May the store's code be written? */
static int protect(int how)
{
	const struct source_lines *l = now.lines;
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	for (unsigned i = 0; i < l->functions; i++) {
		const struct source_function *f = &l->function[i];
		uintptr_t from = f->begin / page * page;
		if (f->sites && mprotect((void *)from, f->end - from, PROT_READ | PROT_EXEC | how))
			return -errno;
	}
	return 0;
}

static void forget(void)
{
	free(now.site);
	free(now.branch);
	free(now.branch_armed);
	free(now.went[0]);
	free(now.went[1]);
	free(now.set);
	memset(&now, 0, sizeof(now));
}

static int make_sets(void)
{
	const struct source_lines *l = now.lines;
	now.words = (l->sites + 63) / 64;
	now.site = calloc(l->sites + 1, sizeof(*now.site));
	now.branch = calloc(l->branches + 1, sizeof(*now.branch));
	now.branch_armed = calloc(l->branches + 1, sizeof(bool));
	now.went[0] = calloc(l->branches + 1, sizeof(bool));
	now.went[1] = calloc(l->branches + 1, sizeof(bool));
	now.set = calloc(now.words * (COVERAGE_PHASES + 1ull), sizeof(*now.set));
	if (!now.site || !now.branch || !now.branch_armed || !now.went[0] || !now.went[1] ||
	    !now.set)
		return -ENOMEM;
	now.armed = now.set;
	for (unsigned p = 0; p < COVERAGE_PHASES; p++)
		now.hit[p] = now.set + (p + 1ull) * now.words;
	for (unsigned i = 0; i < l->sites; i++)
		now.site[i] = (struct place){*(const uint8_t *)l->site[i],
					     source_lines_branch(l, l->site[i])};
	for (unsigned i = 0; i < l->branches; i++)
		now.branch[i] = (struct place){*(const uint8_t *)l->branch[i].jump.at,
					       source_lines_site(l, l->branch[i].jump.at)};
	return 0;
}

int coverage_start(const struct source_lines *lines)
{
	struct sigaction action = {.sa_sigaction = on_breakpoint,
				   .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	assert(COVERAGE_POSSIBLE && !coverage_on && lines->sites);
	now.lines = lines;
	int error = make_sets();
	if (!error)
		error = protect(PROT_WRITE);
	sigemptyset(&action.sa_mask);
	if (!error && sigaction(SIGTRAP, &action, &now.before))
		error = -errno;
	if (error) {
		forget();
		return error;
	}
	coverage_on = true;
	place_breakpoints(COVERAGE_OUTSIDE);
	return 0;
}

static void put_bit(uint8_t *set, unsigned i, bool on)
{
	set[i / 8] |= (uint8_t)(on << i % 8);
}

void coverage_stop(const struct coverage_sets *sets)
{
	const struct source_lines *l = now.lines;
	assert(coverage_on);
	coverage_on = false;
	for (unsigned i = 0; i < l->sites; i++) {
		put_byte(l->site[i], false, now.site[i].byte);
		for (unsigned p = 0; p < COVERAGE_PHASES; p++)
			put_bit(sets->site[p], i, in_set(now.hit[p], i));
	}
	for (unsigned i = 0; i < l->branches; i++) {
		put_byte(l->branch[i].jump.at, false, now.branch[i].byte);
		for (unsigned way = 0; way < 2; way++) {
			int tells = l->branch[i].tells[way];
			put_bit(sets->branch[way], i,
				tells < 0 ? now.went[way][i]
					  : in_set(now.hit[COVERAGE_RECOVERY], (unsigned)tells));
		}
	}
	protect(0);
	sigaction(SIGTRAP, &now.before, NULL);
	forget();
}
