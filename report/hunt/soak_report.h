/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_SOAK_REPORT_H
#define TM_REPORT_HUNT_SOAK_REPORT_H
/* Lines about rounds of soaking, as they pass. */
#include "checker/hunt/soak.h"

/* How far it is, after so many seconds. */
void soak_print_line(const struct soak_totals *t, double seconds);
/* A round that broke what should hold, and the trace of it. */
void soak_print_broken(const struct soak_options *o, uint64_t round, const struct soak_result *r,
		       const char *trace);
void soak_print_summary(const struct soak_totals *t, double seconds);

#endif
