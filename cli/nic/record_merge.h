/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_NIC_RECORD_MERGE_H
#define TM_CLI_NIC_RECORD_MERGE_H
#include <stdbool.h>

/* The recordings of these names become one. The exit status, after a message if it is not 0. */
int record_merge(const char *out, char **name, unsigned n, bool quiet);

#endif
