/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CORE_OWN_THREAD_H
#define TM_CORE_OWN_THREAD_H
/* Threads of ours in a program whose own threads handle its signals. */
#include <pthread.h>
#include <signal.h>

/* pthread_create() of one that hears no signal. */
static inline int own_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			     void *arg)
{
	sigset_t all, old;
	int error;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(thread, attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
}

#endif
