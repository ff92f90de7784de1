/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_BUNDLE_H
#define TM_CLI_BUNDLE_H
/* Crash bundles: what tidemark examine wrote, tidemark replay examines again. */
#include "checker/live/crash_bundle.h"

/* Examine it. 0, or the status after a message. */
int exam_run(const struct crash_bundle *a, struct exam *e);
/* The exit status that an examination comes to. */
int exam_status(const struct cut *c, const struct exam *e);
/* tidemark replay of a crash bundle: the exit status. */
int replay_bundle(const char *path, bool quiet);

#endif
