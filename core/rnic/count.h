/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_COUNT_H
#define TM_RNIC_COUNT_H
/*
 * What a NIC counts: what passes, what it refuses and why, what goes wrong. The provider keeps the
 * numbers where `tidemark stat` reads them (core/provider/base/stats_page.h); a simulation does not
 * count.
 */
#include <stdbool.h>
#include <stdint.h>

/* X(name, words): first what passes, then what is done to it on purpose, then the rest. */
#define RNIC_COUNTS(X)                                                          \
	X(packets_sent, "packets sent")                                         \
	X(bytes_sent, "bytes sent, with headers")                               \
	X(packets_received, "packets received")                                 \
	X(bytes_received, "bytes received, with headers")                       \
	X(fault_lost, "packets lost by a fault")                                \
	X(fault_duplicated, "packets duplicated by a fault")                    \
	X(fault_held, "packets reordered by a fault")                           \
	X(fault_corrupted, "packets corrupted by a fault")                      \
	X(fault_delayed, "packets delayed by a fault")                          \
	X(link_full, "packets lost because the link was full")                  \
	X(bad_icrc, "refused: bad ICRC")                                        \
	X(bad_opcode, "refused: no such opcode, or not of this service")        \
	X(bad_length, "refused: a length that the opcode cannot have")          \
	X(bad_partition, "refused: another partition or transport version")     \
	X(unknown_qp, "refused: no such queue pair")                            \
	X(wrong_source, "refused: not from the queue pair's peer")              \
	X(qp_state, "refused: the queue pair is in another state")              \
	X(bad_sequence, "refused: a packet that cannot follow in its message")  \
	X(bad_request, "refused: length, alignment or right of the queue pair") \
	X(bad_key, "refused: no such key")                                      \
	X(wrong_pd, "refused: a key of another protection domain")              \
	X(out_of_bounds, "refused: outside of the region")                      \
	X(no_access, "refused: a right that the region does not give")          \
	X(bad_qkey, "refused: wrong queue key")                                 \
	X(psn_gap, "packets after a gap in the sequence")                       \
	X(duplicate, "requests that came again")                                \
	X(no_receive, "no receive request for a message")                       \
	X(nak_sequence_sent, "NAKs sent: sequence error")                       \
	X(nak_invalid_sent, "NAKs sent: invalid request")                       \
	X(nak_access_sent, "NAKs sent: remote access error")                    \
	X(nak_operation_sent, "NAKs sent: remote operational error")            \
	X(nak_rnr_sent, "NAKs sent: receiver not ready")                        \
	X(nak_sequence_received, "NAKs received: sequence error")               \
	X(nak_invalid_received, "NAKs received: invalid request")               \
	X(nak_access_received, "NAKs received: remote access error")            \
	X(nak_operation_received, "NAKs received: remote operational error")    \
	X(nak_rnr_received, "NAKs received: receiver not ready")                \
	X(kept, "packets kept until their turn came")                           \
	X(probe, "retransmissions after a silence")                             \
	X(timeout, "retransmissions after a timeout")                           \
	X(retry, "retransmissions in all")                                      \
	X(retry_exceeded, "requests failed: retries exceeded")                  \
	X(rnr_exceeded, "requests failed: receiver not ready too often")        \
	X(cq_overrun, "completions lost: queue overrun")

enum rnic_count {
#define X(name, words) COUNT_##name,
	RNIC_COUNTS(X)
#undef X
		RNIC_COUNT
};

/* One more of `name`. `net`: a struct rnic_net. */
#define COUNT_ONE(net, name)                          \
	do {                                          \
		if ((net)->count)                     \
			(net)->count[COUNT_##name]++; \
	} while (0)

struct rnic_net;
struct rnic_qp;
struct packet;

/* A NAK was sent, or came in. */
void count_nak(struct rnic_net *net, uint8_t syndrome, bool sent);
/* A packet for no queue pair (NULL), or one that is not what the queue pair hears. */
void count_stray(struct rnic_net *net, const struct rnic_qp *qp, const struct packet *pkt);
/* A key that does not give these rights there. */
void count_key(struct rnic_qp *qp, uint32_t rkey, unsigned access);

#endif
