/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_LINK_TAP_H
#define TM_PROVIDER_LINK_LINK_TAP_H
/*
 * A tap between the transport and a live link: it injects faults (faults.h), counts packets
 * (stats_page.h) and records them (pcap.h). It is itself a link, on top of another one.
 *
 *     sending:     transport -> faults -> count, pcap -> link
 *     receiving:   link -> count, pcap -> faults -> transport
 *
 * So a packet that a fault dropped before it was sent is not recorded, and one that a fault dropped
 * on arrival is. Packets that are delayed wait in the engine's timers.
 */
#include "core/provider/base/config.h"
#include "core/provider/base/engine.h"
#include "core/provider/base/nic_link.h"

struct link_tap;

/* Put a tap on `inner`. 0, or -errno and the reason in `line`. */
int link_tap_open(struct nic_link **out, struct nic_link *inner, struct engine *engine,
		  const struct nic_config *config, char *line, size_t size);
/* The transport that uses the link: what it refuses is counted on the same page. */
void link_tap_net(struct nic_link *tap, struct rnic_net *net);

#endif
