/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_TIME_H
#define TM_LIBC_TIME_H
/* What store code calls instead of functions of <time.h> and <sys/time.h>: virtual time. */
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>

time_t sim_time(time_t *to);
int sim_clock_gettime(clockid_t id, struct timespec *to);
int sim_clock_getres(clockid_t id, struct timespec *to);
int sim_gettimeofday(struct timeval *to, void *zone);
int sim_timespec_get(struct timespec *to, int base);
clock_t sim_clock(void);
int sim_nanosleep(const struct timespec *how_long, struct timespec *left);
int sim_clock_nanosleep(clockid_t id, int flags, const struct timespec *until,
			struct timespec *left);
int sim_usleep(unsigned us);
unsigned sim_sleep_seconds(unsigned seconds);
uint64_t sim_tsc(void); /* rdtsc */

#endif
