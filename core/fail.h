/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CORE_FAIL_H
#define TM_CORE_FAIL_H
/* How functions of libc, libibverbs and librdmacm fail. */
#include <errno.h>
#include <stddef.h>

static inline void *errno_null(int error)
{
	errno = error;
	return NULL;
}
static inline int errno_minus(int error)
{
	errno = error;
	return -1;
}

#endif
