/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failure points of the live world: libfiu answers (core/rt/fails.h). The points are
 * switched by name, at the program's start by fiu-run(1), while it runs by fiu-ctrl(1).
 */
#define FIU_ENABLE
#include <fiu.h>
#include <pthread.h>
#include <stdatomic.h>
#include "core/live/live_fails.h"

static void start(void)
{
	fiu_init(0); /* once more after fiu-run's is no harm, and changes nothing */
}

static atomic_uint failed[FAIL_POINT_COUNT];

bool live_fails(enum fail_point point)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, start);
	if (!fiu_fail(fail_points[point].name))
		return false;
	atomic_fetch_add_explicit(&failed[point], 1, memory_order_relaxed);
	return true;
}

unsigned live_failed(enum fail_point point)
{
	return atomic_load_explicit(&failed[point], memory_order_relaxed);
}
