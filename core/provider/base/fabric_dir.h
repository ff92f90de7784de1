/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_FABRIC_DIR_H
#define TM_PROVIDER_BASE_FABRIC_DIR_H
/*
 * The directory of a fabric. The processes that reach each other make up a fabric, which is a
 * directory of one user.
 *
 * Each process has files there, whose names begin with a digit (its inbox, link_shm.c) or are
 * "nic.N" (its stats page). It holds a lock on the first byte of each for as long as it lives. The
 * kernel releases the locks when the process ends, however that happens, so a file without a lock
 * is left over from a dead process.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FABRIC_SLOTS 256 /* processes of a fabric; slot 0 is never used */
#define FABRIC_DIR_DEAD_AT \
	4 /* offset of an inbox's word that is not 0 when the inbox is replaced */

/* Make the directory if it is absent, accessible to this user alone. 0; -EPERM: it belongs to
 * another user, or other users may enter; -ENOENT: the last process to leave the fabric has just
 * removed it; -errno. */
int fabric_dir_make(const char *directory);
/* Open a file of the directory; `make`: create it if it is absent. The descriptor or -errno. */
int fabric_dir_open(const char *directory, const char *name, bool make);
/* Make a file of so many zero bytes for this process, and lock it; a dead process's file of that
 * name is replaced. The descriptor, which has to stay open; -EAGAIN: a living process has the name;
 * -errno. */
int fabric_dir_claim(const char *directory, const char *name, size_t bytes);
/* Take the lock; `waits`: wait for it. Was it taken, and is this still the file of that name? */
bool fabric_dir_lock(int fd, const char *directory, const char *name, bool waits);
/* The process that holds the lock; 0: none; -1: a process of another PID namespace. */
pid_t fabric_dir_owner(int fd);
/* The same of a slot's inbox. Not of this process's own: closing it would release the lock. */
pid_t fabric_dir_slot_owner(const char *directory, unsigned slot);
void fabric_dir_remove(const char *directory, const char *name);
/* Remove the files of dead processes, and the directory when it is empty. `waits`: return when all
 * processes have ended. The number of files of living processes, or -errno. */
int fabric_dir_sweep(const char *directory, bool waits);

#endif
