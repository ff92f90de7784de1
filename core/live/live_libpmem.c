/* SPDX-License-Identifier: BSD-3-Clause */
/* See live_libpmem.h. */
#include "core/live/live_libpmem.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

static struct libpmem functions;
static bool loaded;

static const struct {
	const char *name;
	size_t at;
} named[] = {
	{"pmem_map_file", offsetof(struct libpmem, map_file)},
	{"pmem_unmap", offsetof(struct libpmem, unmap)},
	{"pmem_msync", offsetof(struct libpmem, msync)},
	{"pmem_flush", offsetof(struct libpmem, flush)},
	{"pmem_drain", offsetof(struct libpmem, drain)},
	{"pmem_persist", offsetof(struct libpmem, persist)},
	{"pmem_memcpy", offsetof(struct libpmem, memcpy)},
	{"pmem_memset", offsetof(struct libpmem, memset)},
	{"pmem_memcpy_nodrain", offsetof(struct libpmem, memcpy_nodrain)},
	{"pmem_memset_persist", offsetof(struct libpmem, memset_persist)},
};

/* As if it had been linked: a library before it, such as a recorder, takes its place. */
static void load(void)
{
	loaded = dlopen("libpmem.so.1", RTLD_NOW | RTLD_GLOBAL) != NULL;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		void *function = dlsym(RTLD_DEFAULT, named[i].name);
		*(void **)(void *)((char *)&functions + named[i].at) = function;
		loaded &= function != NULL;
	}
}

const struct libpmem *libpmem(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load);
	return loaded ? &functions : NULL;
}
