/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time for store code. A machine's clocks begin at its boot; the time of day of a later boot is
 * later, by more than a run lasts.
 */
#include "core/libc/time.h"
#include <errno.h>
#include <stdbool.h>
#include "core/fail.h"
#include "core/libc/traced.h"
#include "core/rt/rt.h"
#include "core/rt/sim.h"
#include "core/rt/process/sim_libc.h"

#define SECOND 1000000000u /* ns */

static struct timespec time_of_day(void)
{
	uint64_t now = rt_now();
	return (struct timespec){(time_t)(sim_epoch(sim_current()) + now / SECOND),
				 (long)(now % SECOND)};
}

time_t sim_time(time_t *to)
{
	time_t now = time_of_day().tv_sec;
	if (to)
		put(to, &now, sizeof(now), PC);
	return now;
}

static bool is_time_of_day(clockid_t id)
{
	return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI;
}

static int read_clock(clockid_t id, struct timespec *to, uintptr_t pc)
{
	uint64_t now = rt_now();
	struct timespec own = {(time_t)(now / SECOND), (long)(now % SECOND)};
	if (id < 0 || id > CLOCK_TAI)
		return errno_minus(EINVAL);
	if (is_time_of_day(id))
		own = time_of_day();
	put(to, &own, sizeof(own), pc);
	return 0;
}

int sim_clock_gettime(clockid_t id, struct timespec *to)
{
	return read_clock(id, to, PC);
}

int sim_clock_getres(clockid_t id, struct timespec *to)
{
	const struct timespec own = {0, 1};
	if (id < 0 || id > CLOCK_TAI)
		return errno_minus(EINVAL);
	if (to)
		put(to, &own, sizeof(own), PC);
	return 0;
}

int sim_gettimeofday(struct timeval *to, void *zone)
{
	struct timespec now = time_of_day();
	struct timeval own = {now.tv_sec, now.tv_nsec / 1000};
	(void)zone;
	put(to, &own, sizeof(own), PC);
	return 0;
}

int sim_timespec_get(struct timespec *to, int base)
{
	if (base != TIME_UTC)
		return 0;
	read_clock(CLOCK_REALTIME, to, PC);
	return base;
}

clock_t sim_clock(void)
{
	return (clock_t)(rt_now() / (SECOND / CLOCKS_PER_SEC));
}

/* ns; false: it is none. */
static bool duration(const struct timespec *t, uint64_t *ns)
{
	if (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= SECOND)
		return false;
	*ns = (uint64_t)t->tv_sec < UINT64_MAX / 8 / SECOND
		      ? (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec
		      : UINT64_MAX / 8;
	return true;
}

int sim_nanosleep(const struct timespec *how_long, struct timespec *left)
{
	struct timespec own;
	uint64_t ns;
	(void)left; /* no signal ends a sleep */
	take(&own, how_long, sizeof(own), PC);
	if (!duration(&own, &ns))
		return errno_minus(EINVAL);
	rt_sleep(ns);
	return 0;
}

int sim_clock_nanosleep(clockid_t id, int flags, const struct timespec *until,
			struct timespec *left)
{
	struct timespec own;
	uint64_t ns;
	(void)left;
	take(&own, until, sizeof(own), PC);
	if (!duration(&own, &ns) || id < 0 || id > CLOCK_TAI)
		return EINVAL;
	if (flags & TIMER_ABSTIME) {
		uint64_t from = rt_now();
		if (is_time_of_day(id))
			from += sim_epoch(sim_current()) * SECOND;
		ns = ns > from ? ns - from : 0;
	}
	rt_sleep(ns);
	return 0;
}

int sim_usleep(unsigned us)
{
	rt_sleep((uint64_t)us * 1000);
	return 0;
}

unsigned sim_sleep_seconds(unsigned seconds)
{
	rt_sleep((uint64_t)seconds * SECOND);
	return 0;
}

uint64_t sim_tsc(void)
{
	return rt_now(); /* 1 GHz */
}
