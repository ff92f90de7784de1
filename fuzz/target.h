/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FUZZ_TARGET_H
#define TM_FUZZ_TARGET_H
/*
 * One input, for fuzzers that make inputs themselves. Its bytes decide everything:
 * workload, schedule, faults, the power failures and what is left by them
 * (scenarios/workload/bytes.c, faultinject/bytes.h).
 *
 * What is tested is said by the environment: TIDEMARK_STORE (the first of `tidemark list`),
 * TIDEMARK_VARIANT, TIDEMARK_KNOBS ("ack_early=off ddio=off"). When something breaks
 * that is not expected to, the trace goes to TIDEMARK_OUT (a folder, "." by default),
 * a line on stderr says how to replay it, and the process aborts.
 */
#include <stddef.h>
#include <stdint.h>

/* Where features of states (checker/hunt/features.h) go. May be NULL. */
extern void (*target_feature)(uint64_t feature);

void target_run(const uint8_t *bytes, size_t n);

#endif
