/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_NIC_XRC_RELAY_H
#define TM_NIC_XRC_RELAY_H
/* XRC domains that several processes of a host have open: see xrc_relay.c. */
#include "core/rnic/device.h"

/* The net's link has pass() and owner(). */
void xrc_relay_open(struct rnic_net *net);

#endif
