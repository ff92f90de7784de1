/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_CM_QP1_H
#define TM_PROVIDER_CM_QP1_H
/*
 * Queue pair 1: management datagrams of the connection manager, as packets of the link.
 *
 * Processes of a fabric may share an address. A datagram to queue pair 1 of such an address is for
 * one of them. A connection request is for the process that listens at the port which it names. Any
 * other message is for the process that has chosen the communication ID in it; the upper bits of
 * the ID are the slot (CM_ID_SHIFT). On shm the sender finds the process. On a shared address of
 * the udp link the process that receives the datagram does, and forwards it.
 *
 * The connection manager may be in another library (cm.h), which finds this one by tidemark_mads().
 */
#include "core/cm/mad.h"
#include "core/provider/base/nic_link.h"

#define CM_ID_SHIFT 24 /* of a communication ID: above it is the slot, below a random number */

struct nic_mads {
	unsigned slot;	  /* the slot of this process in its fabric */
	uint32_t address; /* the address of its RNIC: IPv4, host byte order */
	int fd;		  /* an eventfd, signalled when a datagram arrives */
	/* 0 or -errno. Datagrams may be lost. */
	int (*send)(const union ibv_gid *to, const uint8_t bytes[MAD_BYTES]);
	/* The next datagram that has arrived, and its source. False: there is none. */
	bool (*receive)(uint8_t bytes[MAD_BYTES], union ibv_gid *from);
};

/* The functions of the process's NIC. The result stays valid. */
const struct nic_mads *tidemark_mads(void);

#endif
