/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record_pmem2 POOL: are all entries whole that the head counts? record_pmem2 POOL N [bug]: add N
 * entries by libpmem2. The bug: the copy of an entry is not drained before the head counts it.
 */
#include <fcntl.h>
#include <libpmem2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE	65536
#define ENTRY	256
#define ENTRIES (SIZE / ENTRY - 1)

static uint8_t *map(const char *path, struct pmem2_map **out)
{
	struct pmem2_config *config;
	struct pmem2_source *source;
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, SIZE) || pmem2_config_new(&config) ||
	    pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_PAGE) ||
	    pmem2_source_from_fd(&source, fd) || pmem2_map_new(out, config, source))
		exit(9);
	return pmem2_map_get_address(*out);
}

static int check(const uint8_t *pool)
{
	uint64_t n;
	memcpy(&n, pool, sizeof(n));
	for (uint64_t i = 1; i <= n && n <= ENTRIES; i++)
		for (unsigned k = 0; k < ENTRY; k++)
			if (pool[i * ENTRY + k] != (uint8_t)i)
				return 1;
	return n > ENTRIES;
}

int main(int argc, char **argv)
{
	struct pmem2_map *m;
	if (argc < 2)
		return 9;
	uint8_t *pool = map(argv[1], &m);
	if (argc < 3)
		return check(pool);
	pmem2_persist_fn persist = pmem2_get_persist_fn(m);
	pmem2_drain_fn drain = pmem2_get_drain_fn(m);
	pmem2_memset_fn set = pmem2_get_memset_fn(m);
	uint64_t *n = (uint64_t *)(void *)pool;
	for (int i = 0; i < atoi(argv[2]); i++) {
		set(pool + (*n + 1) * ENTRY, (int)(*n + 1), ENTRY, PMEM2_F_MEM_NODRAIN);
		if (argc < 4)
			drain();
		++*n;
		persist(n, sizeof(*n));
	}
	return 0;
}
