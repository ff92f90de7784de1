/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_XRC_RELAY_H
#define TM_PROVIDER_LINK_XRC_RELAY_H
/* XRC domains that several processes of a host have open: see xrc_relay.c. */
#include "core/rnic/objects/device.h"

/* What one process says to another, in front of a request's payload. */
enum xrc_note_kind { XRC_NOTE_REQUEST = 1, XRC_NOTE_ANSWER, XRC_NOTE_END };
struct xrc_note {
	uint64_t device, inode; /* the domain's file */
	uint32_t kind;		/* enum xrc_note_kind */
	uint32_t serial;	/* of the request; its answer has the same */
	uint32_t target;	/* queue pair */
	uint32_t source;	/* the queue pair that has sent it */
	uint32_t srqn;
	uint32_t syndrome; /* the answer */
};

/* The net's link has pass() and owner(). */
void xrc_relay_open(struct rnic_net *net);

#endif
