/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_STATS_PAGE_H
#define TM_PROVIDER_BASE_STATS_PAGE_H
/*
 * A process's page in the net's directory: what its NIC counts, for `tidemark stat`, and the rules
 * of faults that `tidemark fault` gives it while it runs.
 *
 * The file is "nic.N"; its owner holds its lock (fabric_dir.h), maps it and reads the rules anew
 * when their generation has changed. Others read and write the file, and never map it.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/provider/base/config.h"
#include "core/provider/base/faults.h"
#include "core/rnic/count.h"

#define STATS_PAGE_MAGIC 0x31454741504d54ull
#define STATS_PAGE_NAME	 32
#define STATS_PAGE_MAX	 4096 /* processes of a net */

struct stats_page {
	uint64_t magic;
	uint32_t bytes, pid;
	char program[STATS_PAGE_NAME];
	uint32_t link, address; /* enum nic_link_kind; IPv4, host byte order */
	uint32_t qpn_first, unused;
	uint64_t count[RNIC_COUNT];
	uint64_t hits[FAULT_RULES][2]; /* out, in */
	/* Written by others: odd while they write. */
	_Atomic uint32_t generation;
	uint32_t unused2;
	uint64_t seed;
	char faults[CONFIG_FAULTS_BYTES];
};

/* Make the process's page. *fd holds its lock. 0 or -errno. */
int stats_page_make(struct stats_page **page, int *fd, char *path, size_t size,
		    const struct nic_config *config);
/* Copy the rules if they are whole, and not those of *generation, which is then theirs. */
bool stats_page_rules(struct stats_page *page, uint32_t *generation, char *faults, uint64_t *seed);

/* From outside: read a living process's page by its file's name. 0 or -errno. */
int stats_page_read(const char *directory, const char *name, struct stats_page *page);
/* Give a living process rules. 0 or -errno. */
int stats_page_give(const char *directory, const char *name, const char *faults, uint64_t seed);

#endif
