/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_FABRIC_DIR_H
#define TM_PROVIDER_BASE_FABRIC_DIR_H
/*
 * The directory of a net, seen from outside of its processes.
 *
 * Each process has files there, whose names begin with a digit (its inbox, link_shm.c) or are
 * "nic.N" (its page, page.h). It holds a lock on the first byte of each for as long as it lives,
 * which the kernel gives up with the process, however that ends: a file without a lock is a dead
 * process's.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NET_DIR_DEAD_AT 4 /* where an inbox has a word, not 0: the slot has another file now */

/* Make the directory if it is absent, of the user alone. 0; -EPERM: somebody else's, or others may
 * enter; -errno. */
int net_dir_make(const char *directory);
/* Open, or with `make` make, a file of the directory. The descriptor or -errno. */
int net_dir_open(const char *directory, const char *name, bool make);
/* Take the lock; wait for it if `waits`. Has it been got, and is it still the file of that name? */
bool net_dir_lock(int fd, const char *directory, const char *name, bool waits);
/* Whose lock it is; 0: nobody's; -1: somebody's who has no number here, in another container. */
pid_t net_dir_owner(int fd);
/* The same of a slot's inbox, which is not the caller's: to close that would give up the lock on
 * it. */
pid_t net_dir_slot_owner(const char *directory, unsigned slot);
void net_dir_remove(const char *directory, const char *name);
/* A bit for each slot that has an inbox, its owner alive or not. */
void net_dir_slots(const char *directory, uint64_t *bits, unsigned words);
/* Remove dead processes' files, and the directory when it is empty. With `waits` until all are
 * gone. How many processes' files are left, or -errno. */
int net_dir_sweep(const char *directory, bool waits);

#endif
