/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `tidemark cc` adds to each object: what it shows (core/object.h; STORE is the name of its tm_store; LIVE: for real hardware), and what a C++
 * compiler expects of a shared object. A simulated process ends without notice: destructors of static objects never run.
 */
#include <tidemark/object.h>

extern const struct tm_store STORE;
/* The section begins and ends there, if the compiler has made it. */
extern void (*const __start_tidemark_begin[])(int, char **, char **) __attribute__((weak));
extern void (*const __stop_tidemark_begin[])(int, char **, char **) __attribute__((weak));

__attribute__((visibility("default"))) const struct tm_object tidemark_object = {
	TM_OBJECT_VERSION,
	sizeof(struct tm_store),
	&STORE,
	__start_tidemark_begin,
	__stop_tidemark_begin,
#ifdef LIVE
	1,
#else
	0,
#endif
};

#ifndef LIVE /* there the system has them */
/* With --coverage each basic block calls this first. */
void tidemark_ran(const void *pc);
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	tidemark_ran(__builtin_return_address(0));
}

void *__dso_handle = &__dso_handle;

int __cxa_atexit(void (*destructor)(void *), void *object, void *dso);
int __cxa_atexit(void (*destructor)(void *), void *object, void *dso)
{
	(void)destructor, (void)object, (void)dso;
	return 0;
}

int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso);
int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso)
{
	return __cxa_atexit(destructor, object, dso);
}
#endif
