/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CM_MAD_H
#define TM_CM_MAD_H
/*
 * The communication manager's messages, and their bytes on the wire (IBA vol. 1, 12.6, 12.7):
 * management datagrams of class 7 between queue pairs 1. Annex A11 defines what rdma_cm puts in
 * front of a request's private data: the addresses of the two ends.
 *
 * One table serves encoding and decoding (mad.c). The protocol is in talk.c.
 */
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/cm/params.h"

#define CM_REJ_INFO 72

/* Attribute identifiers. */
enum cm_type {
	CM_REQ = 0x10,
	CM_MRA, /* message receipt acknowledged: the program needs time */
	CM_REJ,
	CM_REP,
	CM_RTU,
	CM_DREQ,
	CM_DREP,
	CM_TYPES
};

/* What a REJ or an MRA is about. */
enum { CM_ABOUT_REQ, CM_ABOUT_REP, CM_ABOUT_OTHER };

/* The transport of a REQ. */
enum { CM_TRANSPORT_RC, CM_TRANSPORT_UC, CM_TRANSPORT_RD, CM_TRANSPORT_EXTENDED };

/* In host byte order, except addresses. */
struct cm_message {
	enum cm_type type;
	uint64_t tid;
	/* The communication IDs of the message's sender and receiver. */
	uint32_t local_id, remote_id;
	uint64_t service_id, ca_guid;
	struct cm_params params;     /* from the sender's point of view */
	union ibv_gid gid, peer_gid; /* REQ: the sender's, the receiver's */
	uint8_t mtu;		     /* enum ibv_mtu */
	uint8_t ack_timeout;	     /* this and the next three: 4.096 us * 2^n */
	uint8_t their_timeout;	     /* REQ: how long the receiver may take to answer */
	uint8_t our_timeout;	     /* REQ: how long the sender will take to answer */
	uint8_t service_timeout;     /* MRA */
	uint8_t max_retries, transport, subnet_local, hop_limit, traffic_class, rate;
	uint16_t local_lid, remote_lid;
	uint16_t pkey;
	uint8_t about;			     /* CM_ABOUT_* */
	uint16_t reason;		     /* of a REJ */
	uint8_t info_len;		     /* of REJ */
	uint32_t remote_qpn;		     /* of DREQ: the receiver's */
	struct ibv_ece ece;		     /* without comp_mask */
	uint8_t ip_version;		     /* requests: 4 or 6 */
	uint8_t cma_version;		     /* 0 */
	uint16_t source_port;		     /* the destination's is part of the service ID */
	uint8_t source[16], destination[16]; /* an IPv4 address is at the end */
	uint8_t info[CM_REJ_INFO];
	uint8_t private_data[CM_MAX_PRIVATE];
};

/* The service ID of a port. */
uint64_t mad_service_id(uint16_t port_space, uint16_t port);
/* The port of a service ID; false: it is not a port's. */
bool mad_service(uint64_t service_id, uint16_t *port_space, uint16_t *port);

/* The addresses of a request. Family 0: it has none. */
void mad_set_addresses(struct cm_message *message, const struct sockaddr *source,
		       const struct sockaddr *destination);
void mad_get_addresses(const struct cm_message *message, struct sockaddr_storage *source,
		       struct sockaddr_storage *destination);

void mad_encode(const struct cm_message *message, uint8_t bytes[MAD_BYTES]);
/* -EPROTO: not a message of the communication manager. Nothing else is checked. */
int mad_decode(struct cm_message *message, const uint8_t bytes[MAD_BYTES]);

#endif
