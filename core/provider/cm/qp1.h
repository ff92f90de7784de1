/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_CM_QP1_H
#define TM_PROVIDER_CM_QP1_H
/*
 * Queue pair 1: management datagrams, as packets of the link, for the connection manager.
 *
 * A net's processes may share one address, and then what comes for queue pair 1 of it is for one of
 * them: for who listens at the port that a request names; else for whoever gave the conversation
 * the number that the message names, of which the upper bits are the slot (CM_ID_SHIFT). On shm the
 * sender looks, on a shared address of the udp link whoever receives; he passes it on.
 *
 * The connection manager may be in another library (cm.h): tidemark_mads() is what it finds this
 * by.
 */
#include "core/provider/cm/mad.h"
#include "core/provider/base/nic_link.h"

#define CM_ID_SHIFT 24 /* of the numbers of conversations: the slot, then any number */

struct nic_mads {
	unsigned slot;	  /* of this process in its net */
	uint32_t address; /* of its RNIC, IPv4, host byte order */
	int fd;		  /* an eventfd: something may have come */
	/* 0 or -errno; whether it arrives is another matter. */
	int (*send)(const union ibv_gid *to, const uint8_t bytes[MAD_BYTES]);
	/* The next one that has come, and whom from. False: there is none. */
	bool (*receive)(uint8_t bytes[MAD_BYTES], union ibv_gid *from);
};

/* Those of the process's NIC, which stay as they are. */
const struct nic_mads *tidemark_mads(void);

#endif
