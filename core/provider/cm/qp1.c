/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See qp1.h. A datagram is received under the NIC's lock, by the thread that drives the NIC. A
 * valid one goes into a queue, and the connection manager's thread is woken. When the queue is
 * full, the datagram is lost.
 */
#include "core/provider/cm/qp1.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "core/provider/link/link_shm.h"
#include "core/provider/cm/listeners.h"
#include "core/provider/base/export.h"
#include "core/provider/nic.h"

#define ROOM  4096 /* messages */
#define PULLS 16   /* batches of packets to look through for one datagram */

static struct qp1 {
	struct nic_mads mads;
	struct nic *nic; /* NULL: there is none */
	char directory[200];
	uint32_t psn, first, last; /* wrap */
	struct {
		union ibv_gid from;
		uint8_t bytes[MAD_BYTES];
	} queue[ROOM];
} qp1;

static unsigned slot_of(const struct packet *pkt, const char *directory, unsigned own_slot)
{
	struct sockaddr_storage src, dst;
	struct listener_place place;
	struct cm_message message;
	uint16_t port_space, port;

	if (pkt->len != MAD_BYTES || mad_decode(&message, pkt->payload))
		return own_slot;
	if (message.type == CM_REQ) {
		mad_get_addresses(&message, &src, &dst);
		if (dst.ss_family && mad_service(message.service_id, &port_space, &port) &&
		    listeners_find(directory, port_space, (struct sockaddr *)&dst, own_slot,
				   &place))
			return place.slot;
		return own_slot;
	}
	unsigned slot = message.remote_id >> CM_ID_SHIFT;
	return slot ? slot : own_slot;
}

/* --- in --- */

static void tell(void)
{
	uint64_t one = 1;

	if (write(qp1.mads.fd, &one, sizeof(one)) < 0)
		return; /* it knows */
}

static void take_datagram(struct rnic_net *net, struct packet *pkt)
{
	assert(qp1.nic && qp1.nic->net == net);
	assert(qp1.last - qp1.first <= ROOM);
	if (pkt->service != SERVICE_UD || pkt->opcode != OP_SEND_ONLY) {
		COUNT_ONE(net, bad_opcode);
	} else if (pkt->qkey != MAD_QKEY) {
		COUNT_ONE(net, bad_qkey);
	} else if (pkt->len != MAD_BYTES) {
		COUNT_ONE(net, bad_length);
	} else if (qp1.last - qp1.first == ROOM) {
		COUNT_ONE(net, no_receive);
	} else {
		struct link *link = net->link;

		link->gid(link, pkt->from, &qp1.queue[qp1.last % ROOM].from);
		memcpy(qp1.queue[qp1.last % ROOM].bytes, pkt->payload, MAD_BYTES);
		qp1.last++;
		tell();
	}
	packet_put(net, pkt);
}

static bool receive_locked(uint8_t bytes[MAD_BYTES], union ibv_gid *from)
{
	assert(qp1.nic);
	/* The last datagrams of a process have to arrive before its death is noticed. */
	for (unsigned n = 0; n < PULLS && qp1.first == qp1.last && nic_progress(qp1.nic); n++)
		;
	if (qp1.first == qp1.last)
		return false;
	memcpy(bytes, qp1.queue[qp1.first % ROOM].bytes, MAD_BYTES);
	*from = qp1.queue[qp1.first % ROOM].from;
	qp1.first++;
	assert(qp1.last - qp1.first < ROOM);
	return true;
}

static bool receive(uint8_t bytes[MAD_BYTES], union ibv_gid *from)
{
	return LOCKED(bool, receive_locked(bytes, from));
}

/* --- out --- */

static int send_locked(const union ibv_gid *to, const uint8_t bytes[MAD_BYTES])
{
	struct nic_link *nic_link = qp1.nic->link;
	struct link *link = &nic_link->link;
	int peer = link->resolve(link, to);

	if (peer < 0)
		return peer;
	struct packet *pkt = packet_get(qp1.nic->net, MAD_BYTES);
	pkt->service = SERVICE_UD;
	pkt->opcode = OP_SEND_ONLY;
	pkt->src_qpn = pkt->dest_qpn = QPN_MANAGEMENT;
	pkt->qkey = MAD_QKEY;
	pkt->psn = qp1.psn++ & PSN_MASK;
	memcpy(pkt->payload, bytes, MAD_BYTES);
	pkt->peer = nic_link->by_slot ? slot_of(pkt, qp1.directory, qp1.mads.slot) : (uint32_t)peer;
	link->send(link, 0, pkt);
	return 0;
}

static int send_mad(const union ibv_gid *to, const uint8_t bytes[MAD_BYTES])
{
	return LOCKED(int, send_locked(to, bytes));
}

/* --- */

static int open_qp1(struct nic *nic, const char *directory)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert(!qp1.nic); /* a process has one at a time */
	if (fd < 0)
		return -errno;
	if (strlen(directory) >= sizeof(qp1.directory)) {
		close(fd);
		return -ENAMETOOLONG;
	}
	qp1.nic = nic;
	qp1.mads = (struct nic_mads){
		.slot = nic->link->qpn_first >> SHM_QPN_SHIFT,
		.address = nic->link->address,
		.fd = fd,
		.send = send_mad,
		.receive = receive,
	};
	assert(qp1.mads.slot && qp1.mads.slot < FABRIC_SLOTS);
	strcpy(qp1.directory, directory);
	qp1.first = qp1.last = 0;
	nic->net->management = take_datagram;
	return 0;
}

static void close_qp1(void)
{
	if (qp1.nic)
		close(qp1.mads.fd);
	qp1.nic = NULL;
}

EXPORT const struct nic_mads *tidemark_mads(void)
{
	return nic_get() ? &qp1.mads : NULL;
}

__attribute__((constructor)) static void register_qp1(void)
{
	static const struct nic_management management = {open_qp1, close_qp1, slot_of};

	nic_register_management(&management);
}
