/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_LINK_PCAP_H
#define TM_PROVIDER_LINK_PCAP_H
/*
 * Packets into a file that Wireshark reads (pcap, times in ns): Ethernet, IPv4, UDP, RoCEv2 as
 * wire.h has it.
 *
 * Each packet is appended by one write(), so that several processes may share a file.
 */
#include "core/provider/link/wire.h"

/* Open the file, or make it. "%p" in its name is the process's number. The descriptor; -EINVAL: a
 * file that is no pcap of this kind; -errno. */
int pcap_open(const char *name);
/* `len` bytes from the BTH on, between these ends. */
void pcap_write(int fd, const struct wire_ends *ends, const uint8_t *bytes, size_t len);

#endif
