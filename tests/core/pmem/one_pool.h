/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_CORE_PMEM_ONE_POOL_H
#define TM_TESTS_CORE_PMEM_ONE_POOL_H
/* What tests of a CPU begin with: a simulation, and a machine with an empty pool that does not run.
 */
#include "core/pmem/crash.h"
#include "tests/core/pmem/hooks_and_hardware.h"

static struct sim *sim;
static struct pmem_stack *stack;
static struct pmem *pm;

static void one_pool(size_t bytes)
{
	sim = sim_new();
	stack = pmem_stack_new(1, bytes);
	ck_assert(sim && stack);
	pmem_load(stack, NULL, bytes);
	pm = pmem_machine(stack, 0);
}

static void one_pool_free(void)
{
	pmem_stack_free(stack);
	sim_free(sim);
}

#endif
