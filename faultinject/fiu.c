/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failure points of the live world: libfiu answers (core/rt/fails.h). The points are
 * switched by name, at the program's start by fiu-run(1), while it runs by fiu-ctrl(1).
 */
#define FIU_ENABLE
#include <fiu.h>
#include <pthread.h>
#include "core/rt/fails.h"

static void start(void)
{
	fiu_init(0); /* once more after fiu-run's is no harm, and changes nothing */
}

bool live_fails(enum fail_point point)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, start);
	return fiu_fail(fail_points[point].name);
}
