/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_LINK_TAP_H
#define TM_PROVIDER_LINK_LINK_TAP_H
/*
 * What stands between the transport and a live link: counts what passes (page.h), writes it down
 * (pcap.h) and hurts it (faults.h). It is a link itself, and hands on to another one.
 *
 *     transport -> [out: faults -> count, pcap] -> link      link -> [in: count, pcap -> faults] ->
 * transport
 *
 * So a packet that a fault lost before it was sent is not in the file, and one that was lost on its
 * way in is. Packets that are to come later wait in the engine's timers.
 */
#include "core/provider/base/config.h"
#include "core/provider/base/engine.h"
#include "core/provider/base/nic_link.h"

struct link_tap;

/* Take over `inner`. 0, or -errno and the reason in `line`. */
int link_tap_open(struct nic_link **out, struct nic_link *inner, struct engine *engine,
		  const struct nic_config *config, char *line, size_t size);
/* The net that was made on it: its refusals are counted, too. */
void link_tap_net(struct nic_link *tap, struct rnic_net *net);

#endif
