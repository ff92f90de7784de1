/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_PROCESS_STATICS_H
#define TM_RT_PROCESS_STATICS_H
/*
 * The static data of a store that was loaded from a shared object. The object is in the process
 * once, and each simulated host has its own copy of what it may write. The copy of the host whose
 * task runs is in the object itself, so that addresses are the same on all hosts; when a task of
 * another host runs, the bytes are exchanged. A new process has them as the object was loaded.
 *
 * Thread-local data is each task's own; the compiler's code finds it by a call, which
 * core/stores/sim.syms renames.
 */
#include <stddef.h>
#include <stdint.h>

struct sim;

struct statics {
	uint8_t *live;	      /* in the loaded object */
	const uint8_t *fresh; /* what was there when it was loaded */
	size_t len;
	uint8_t *owner; /* the copy whose bytes are live; NULL: none */

	/* Thread-local data: what each task begins with, and how many bytes it has; the rest is
	 * zero. */
	const uint8_t *tls;
	size_t tls_filled, tls_len, tls_align;

	/* What the compiler wants called when a process begins. */
	void (*const *begin)(int, char **, char **);
	unsigned begins;
};

/* For a reset world, before its tasks run: its hosts have this data. NULL, as after a reset: none.
 * `statics` is shared by all simulations of the thread. */
void sim_set_statics(struct sim *sim, struct statics *statics);
/* For a new process (sim_new_process()). */
void sim_fresh_statics(struct sim *sim, unsigned host);
/* On the process's first task: its constructors run. */
void sim_construct(struct sim *sim);

#endif
