/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_LIBPMEM_H
#define TM_LIVE_LIBPMEM_H
/*
 * libpmem, which is loaded when a pool is opened first: the libraries that it needs itself take as
 * long to load as all others of the command line together, and most commands open no pool.
 */
#include <libpmem.h>

struct libpmem {
	__typeof__(&pmem_map_file) map_file;
	__typeof__(&pmem_unmap) unmap;
	__typeof__(&pmem_msync) msync;
	__typeof__(&pmem_flush) flush;
	__typeof__(&pmem_drain) drain;
	__typeof__(&pmem_persist) persist;
	__typeof__(&pmem_memcpy) memcpy;
	__typeof__(&pmem_memset) memset;
	__typeof__(&pmem_memcpy_nodrain) memcpy_nodrain;
	__typeof__(&pmem_memset_persist) memset_persist;
};
/* NULL: the library, or a function of it, does not exist. Several threads may call it. */
const struct libpmem *libpmem(void);

#endif
