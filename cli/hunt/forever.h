/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_HUNT_FOREVER_H
#define TM_CLI_HUNT_FOREVER_H
#include "cli/arguments.h"

/* tidemark fuzz --forever: a session of the campaign in a->forever. The exit status. */
int forever_main(struct arguments *a);

#endif
