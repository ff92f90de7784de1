/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_STATS_PAGE_H
#define TM_PROVIDER_BASE_STATS_PAGE_H
/*
 * The stats page of a process: a file in the fabric's directory with the counters of its NIC, for
 * `tidemark stat`, and the rules of faults, which `tidemark fault` may replace while the process
 * runs.
 *
 * The file is "nic.N". Its process holds the lock (fabric_dir.h), maps the file, and reads the
 * rules again when their generation has changed. Other processes read and write the file, and never
 * map it.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/provider/base/config.h"
#include "core/provider/base/faults.h"
#include "core/rnic/count.h"

#define STATS_PAGE_MAGIC 0x31454741504d54ull
#define STATS_PAGE_NAME	 32
#define STATS_PAGE_MAX	 4096 /* processes of a fabric */

struct stats_page {
	uint64_t magic;
	uint32_t bytes, pid;
	char program[STATS_PAGE_NAME];
	uint32_t link, address; /* enum nic_link_kind; IPv4, host byte order */
	uint32_t qpn_first, unused;
	uint64_t count[RNIC_COUNT];
	uint64_t hits[FAULT_RULES][2]; /* out, in */
	/* Written by other processes; odd while one writes. */
	_Atomic uint32_t generation;
	uint32_t unused2;
	uint64_t seed;
	char faults[CONFIG_FAULTS_BYTES];
};

/* Make the process's page. *fd holds its lock. 0 or -errno. */
int stats_page_make(struct stats_page **page, int *fd, char *path, size_t size,
		    const struct nic_config *config);
/* Copy the rules if they are complete and newer than *generation, which is updated. */
bool stats_page_rules(struct stats_page *page, uint32_t *generation, char *faults, uint64_t *seed);

/* Another process's page: read it by the name of its file. 0 or -errno. */
int stats_page_read(const char *directory, const char *name, struct stats_page *page);
/* Replace the rules of a living process. 0 or -errno. */
int stats_page_give(const char *directory, const char *name, const char *faults, uint64_t seed);

#endif
