/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_RECORDED_PACKETS_H
#define TM_PROVIDER_LINK_RECORDED_PACKETS_H
/* The recorder, if there is one, is told of the packets that go from machine to machine
 * (core/record/message.h). */
#include "core/provider/link/wire.h"

/* It is about to be sent, as these bytes from the BTH on. */
void packet_leaves(const struct packet *pkt, const struct wire_ends *ends, const uint8_t *bytes,
		   size_t len);
/* It has come, to the process that it is for. Addresses are IPv4's, in host byte order. */
void packet_came(const struct packet *pkt, uint32_t from, uint32_t own);

#endif
