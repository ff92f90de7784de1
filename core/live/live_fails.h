/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_LIVE_FAILS_H
#define TM_LIVE_LIVE_FAILS_H
/* The failure points of the live world: libfiu answers. */
#include "core/rt/fails.h"

bool live_fails(enum fail_point point);
/* Number of times that it has answered yes in this process. */
unsigned live_failed(enum fail_point point);

#endif
