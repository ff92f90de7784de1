/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RECORD_MESSAGE_H
#define TM_RECORD_MESSAGE_H
/*
 * Messages between machines, in a recording (format.h). By these the recordings of several machines
 * become one (checker/images/recording_merge.h): what is recorded before a message leaves comes
 * before what is recorded after it has come.
 *
 * A packet of an RNIC, RECORD_PACKET_OUT and RECORD_PACKET_IN, is known again by its ends and by
 * what is in it. A packet that is sent again is the same packet.
 *
 *	source	 the IPv4 address of this end
 *	file	 that of the other end
 *	message	 the queue pair at the receiver
 *	off	 ICRC << 32 | sequence number << 8 | opcode
 *
 * Of a TCP connection, RECORD_SOCKET_OUT and RECORD_SOCKET_IN, the bytes are numbered:
 *
 *	off	 OUT: bytes that were written before; IN: bytes that have come, read or not yet
 *	payload	 struct record_connection
 */
#include <stdint.h>

/* An end of a TCP connection. */
struct record_end {
	uint8_t address[16]; /* IPv6, or IPv4 as ::ffff:a.b.c.d */
	uint8_t port[2];     /* network byte order */
};

struct record_connection {
	struct record_end own, other;
};

static inline uint64_t record_packet(uint32_t icrc, uint32_t psn, uint8_t opcode)
{
	return (uint64_t)icrc << 32 | (uint64_t)(psn & 0xffffff) << 8 | opcode;
}

#endif
