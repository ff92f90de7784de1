/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is not malloc()'s: more of its family, anonymous mappings, and the pool. */
#include <errno.h>
#include <libpmem.h>
#include <stdbool.h>
#include <sys/mman.h>
#include "core/fail.h"
#include "core/libc/process.h"
#include "core/libc/stdlib.h"
#include "core/libc/traced.h"
#include "core/pmem/hooks.h"
#include "core/pmem/pmem.h"
#include "core/rt/process/libc.h"
#include "core/rt/process/sim_libc.h"

#define PAGE 4096

void *sim_reallocarray(void *memory, size_t n, size_t bytes)
{
	size_t total;
	if (__builtin_mul_overflow(n, bytes, &total))
		return errno_null(ENOMEM);
	return sim_realloc(memory, total);
}

void *sim_memalign(size_t align, size_t bytes)
{
	return sim_aligned_alloc(align, bytes);
}

void *sim_valloc(size_t bytes)
{
	return sim_aligned_alloc(PAGE, bytes);
}

size_t sim_malloc_usable_size(void *memory)
{
	return sim_usable_size(memory);
}

void *sim_mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t off)
{
	(void)at, (void)rights, (void)fd, (void)off;
	if (!(flags & MAP_ANONYMOUS) || !bytes || flags & MAP_FIXED) {
		errno = flags & MAP_ANONYMOUS ? EINVAL : EBADF;
		return MAP_FAILED;
	}
	void *memory = sim_aligned_alloc(PAGE, bytes);
	return memory ? memory : MAP_FAILED;
}

void *sim_mmap64(void *at, size_t bytes, int rights, int flags, int fd, off_t off)
	__attribute__((alias("sim_mmap")));

/* As aligned blocks, mappings are not given back. */
int sim_munmap(void *memory, size_t bytes)
{
	(void)memory, (void)bytes;
	return 0;
}

int sim_mlock(const void *memory, size_t bytes)
{
	(void)memory, (void)bytes;
	return 0;
}

int sim_munlock(const void *memory, size_t bytes) __attribute__((alias("sim_mlock")));

/* --- the pool --- */

static void *no_pool(int error, const char *why)
{
	process()->pool_error = why;
	errno = error;
	return NULL;
}

void *sim_pmem_map_file(const char *path, size_t bytes, int flags, mode_t mode, size_t *mapped,
			int *is_pmem)
{
	struct sim *sim = sim_current();
	struct pmem *pm = sim_memory;
	struct sim_process_number me = sim_process_number(sim);
	const int yes = 1;
	struct text name;
	(void)mode;
	if (!pm || sim_host(sim) != HOST_SERVER)
		return no_pool(ENODEV, "only the server's host has persistent memory");
	size_t all = pmem_length(pm);
	if (flags & PMEM_FILE_CREATE ? bytes != all : bytes != 0)
		return no_pool(EINVAL, "the pool's length is what tm_store.pm_bytes() says");
	if (flags & PMEM_FILE_CREATE && flags & PMEM_FILE_EXCL && me.boot + me.life)
		return no_pool(EEXIST, "the pool is there: format() has made it");
	text_open(&name);
	text_add_string(&name, path, SIZE_MAX, PC);
	sim_trace(sim, sim_actor(sim), PC, "maps the pool as %s", name.at);
	text_close(&name);
	if (mapped)
		put(mapped, &all, sizeof(all), PC);
	if (is_pmem)
		put(is_pmem, &yes, sizeof(yes), PC);
	return pmem_base(pm);
}

int sim_pmem_unmap(void *memory, size_t bytes)
{
	(void)memory, (void)bytes;
	return 0;
}

const char *sim_pmem_check_version(unsigned major, unsigned minor)
{
	return major != PMEM_MAJOR_VERSION || minor > PMEM_MINOR_VERSION
		       ? "libpmem of another version is needed"
		       : NULL;
}

const char *sim_pmem_errormsg(void)
{
	const char *error = process()->pool_error;
	return error ? error : "";
}
