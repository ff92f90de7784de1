/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmemobj asks libndctl five times about the device of a pool that it opens, and each time that
 * reads how kernel modules are configured, in 400 system calls. It is made once, in the process
 * that children are forked from.
 */
#include <dlfcn.h>
#include <errno.h>
#include "checker/seat/preload/board.h"

struct ndctl_ctx;
static struct ndctl_ctx *made;

/* Where the library was loaded by name, it is not behind us. */
static void *find(const char *name)
{
	void *at = dlsym(RTLD_NEXT, name), *library;
	if (at || !(library = dlopen("libndctl.so.6", RTLD_LAZY | RTLD_NOLOAD)))
		return at;
	at = dlsym(library, name);
	dlclose(library);
	return at;
}

__attribute__((visibility("default"))) int ndctl_new(struct ndctl_ctx **out);
int ndctl_new(struct ndctl_ctx **out)
{
	int (*next)(struct ndctl_ctx **);
	struct ndctl_ctx *(*ref)(struct ndctl_ctx *);
	*(void **)&ref = made ? find("ndctl_ref") : NULL;
	if (ref) {
		*out = ref(made);
		return 0;
	}
	*(void **)&next = find("ndctl_new");
	return next ? next(out) : -ENOSYS;
}

void preload_make_ndctl(void)
{
	struct ndctl_ctx *one;
	if (!made && find("ndctl_ref") && !ndctl_new(&one))
		made = one;
}
