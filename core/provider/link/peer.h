/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_PEER_H
#define TM_PROVIDER_LINK_PEER_H
/*
 * Other processes of the net that do not answer: which of them has not had the CPU for it?
 *
 * A process that has ended gave up the lock on its inbox, and one that is stopped is known to the
 * kernel: of these nothing is to be expected. Any other counts, at the head of its inbox, its
 * turns: how often its NIC has looked for something to do, and how often it was idle, finding
 * nothing. Whoever was idle twice since it was first asked about, or has taken what it was sent and
 * gone on to other things for long, could have answered. Until then it starves.
 */
#include <stdalign.h>
#include "core/provider/base/nic_link.h"

#define PEER_SLOTS 256

/* What an inbox begins with. */
struct inbox_head {
	uint32_t magic;
	_Atomic uint32_t dead;	   /* the slot has another file now */
	_Atomic uint32_t sleeping; /* futex: see link_shm.c */
	_Atomic uint32_t address;  /* udp: IPv4, host byte order */
	alignas(64) struct nic_turns turns;
};

struct peer {
	struct inbox_head *head; /* NULL: not looked at yet */
	bool runs;		 /* when it was last looked at */
	uint64_t looked_at;	 /* ns */
};

struct peers {
	const char *directory;
	unsigned own; /* the own slot, whose file must not be opened again */
	struct peer peer[PEER_SLOTS];
};

/* The head of a slot's inbox; NULL: nobody lives there. */
struct inbox_head *peer_head(struct peers *peers, unsigned slot);
/* As link.starves(). `taken`: what was sent until `watch` began has been taken. */
bool peer_starves(struct peers *peers, unsigned slot, bool taken, uint64_t now,
		  struct link_watch *watch);
/* The same of the process's program, asked whenever its NIC says that it is not ready: it was tried
 * again after the last time, and could it have been ready by then? */
bool peer_program_starves(struct peers *peers, unsigned slot, uint64_t now,
			  struct link_watch *watch);

#endif
