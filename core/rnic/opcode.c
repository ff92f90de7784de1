/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of opcode.h, and what follows from them. */
#include "core/rnic/opcode.h"
#include <stddef.h>

const uint8_t opcode_is[OP_CODES] = {
#define X(id, code, class, services, is, headers, name) \
	[code] = (is) | ((headers)&IMM_DT ? HAS_IMM : 0),
	PACKET_ROWS(X)
#undef X
};

const struct packet_row packet_rows[OP_CODES] = {
#define X(id, code, class, services, is, headers, name) \
	[code] = {name, CLASS_##class, services, headers},
	PACKET_ROWS(X)
#undef X
};

const struct class_row class_rows[CLASS_COUNT] = {
#define X(id, word, is, right, bytes) [CLASS_##id] = {word, is, bytes, right},
	CLASS_ROWS(X)
#undef X
};

#define ALONE(opcode)                          \
	{                                      \
		opcode, opcode, opcode, opcode \
	}

const struct operation operations[OPERATIONS] = {
	[IBV_WR_RDMA_WRITE] = {.name = "WRITE",
			       .litmus = "put",
			       .class = CLASS_WRITE,
			       .completion = IBV_WC_RDMA_WRITE,
			       .packet = {OP_WRITE_FIRST, OP_WRITE_MIDDLE, OP_WRITE_LAST,
					  OP_WRITE_ONLY},
			       .send_op = IBV_QP_EX_WITH_RDMA_WRITE},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {.name = "WRITE_WITH_IMM",
					.litmus = "putimm",
					.class = CLASS_WRITE,
					.with = WITH_IMM,
					.completion = IBV_WC_RDMA_WRITE,
					.packet = {OP_WRITE_FIRST, OP_WRITE_MIDDLE,
						   OP_WRITE_LAST_IMM, OP_WRITE_ONLY_IMM},
					.send_op = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM},
	[IBV_WR_SEND] = {.name = "SEND",
			 .litmus = "send",
			 .class = CLASS_SEND,
			 .completion = IBV_WC_SEND,
			 .packet = {OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST, OP_SEND_ONLY},
			 .send_op = IBV_QP_EX_WITH_SEND},
	[IBV_WR_SEND_WITH_IMM] = {.name = "SEND_WITH_IMM",
				  .class = CLASS_SEND,
				  .with = WITH_IMM,
				  .completion = IBV_WC_SEND,
				  .packet = {OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST_IMM,
					     OP_SEND_ONLY_IMM},
				  .send_op = IBV_QP_EX_WITH_SEND_WITH_IMM},
	[IBV_WR_RDMA_READ] = {.name = "READ",
			      .litmus = "get",
			      .class = CLASS_READ,
			      .completion = IBV_WC_RDMA_READ,
			      .packet = ALONE(OP_READ_REQUEST),
			      .send_op = IBV_QP_EX_WITH_RDMA_READ},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {.name = "CMP_AND_SWP",
				       .litmus = "cas",
				       .class = CLASS_ATOMIC,
				       .with = WITH_COMPARE,
				       .completion = IBV_WC_COMP_SWAP,
				       .packet = ALONE(OP_COMPARE_SWAP),
				       .send_op = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {.name = "FETCH_AND_ADD",
					 .litmus = "faa",
					 .class = CLASS_ATOMIC,
					 .completion = IBV_WC_FETCH_ADD,
					 .packet = ALONE(OP_FETCH_ADD),
					 .send_op = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD},
	[IBV_WR_SEND_WITH_INV] = {.name = "SEND_WITH_INV",
				  .class = CLASS_SEND,
				  .with = WITH_INV,
				  .completion = IBV_WC_SEND,
				  .packet = {OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST_INV,
					     OP_SEND_ONLY_INV},
				  .send_op = IBV_QP_EX_WITH_SEND_WITH_INV},
	[IBV_WR_LOCAL_INV] = {.name = "LOCAL_INV",
			      .class = CLASS_INVALIDATE,
			      .with = WITH_INV,
			      .completion = IBV_WC_LOCAL_INV,
			      .send_op = IBV_QP_EX_WITH_LOCAL_INV},
	[IBV_WR_BIND_MW] = {.name = "BIND_MW",
			    .class = CLASS_BIND,
			    .completion = IBV_WC_BIND_MW,
			    .send_op = IBV_QP_EX_WITH_BIND_MW},
	[IBV_WR_FLUSH] = {.name = "FLUSH",
			  .litmus = "flush",
			  .class = CLASS_FLUSH,
			  .completion = IBV_WC_FLUSH,
			  .packet = ALONE(OP_FLUSH),
			  .send_op = IBV_QP_EX_WITH_FLUSH},
	[IBV_WR_ATOMIC_WRITE] = {.name = "ATOMIC_WRITE",
				 .litmus = "awrite",
				 .class = CLASS_ATOMIC_WRITE,
				 .completion = IBV_WC_ATOMIC_WRITE,
				 .packet = ALONE(OP_ATOMIC_WRITE),
				 .send_op = IBV_QP_EX_WITH_ATOMIC_WRITE},
	[OPERATION_COMMIT] = {.name = "COMMIT",
			      .litmus = "commit",
			      .class = CLASS_COMMIT,
			      .completion = TM_WC_COMMIT,
			      .packet = ALONE(OP_COMMIT),
			      .send_op = TM_QP_EX_WITH_COMMIT},
	[OPERATION_COMMIT_WITH_IMM] = {.name = "COMMIT_WITH_IMM",
				       .litmus = "commitimm",
				       .class = CLASS_COMMIT,
				       .with = WITH_IMM,
				       .completion = TM_WC_COMMIT,
				       .packet = ALONE(OP_COMMIT_IMM),
				       .send_op = TM_QP_EX_WITH_COMMIT},
	[OPERATION_COMMIT_WITH_PAYLOAD] = {.name = "COMMIT_WITH_PAYLOAD",
					   .litmus = "commitput",
					   .class = CLASS_COMMIT_PAYLOAD,
					   .completion = TM_WC_COMMIT,
					   .packet = ALONE(OP_COMMIT_PAYLOAD),
					   .send_op = TM_QP_EX_WITH_COMMIT},
};

bool operation_serves(const struct operation *op, enum service service)
{
	if (class_rows[op->class].is & NO_PACKET)
		return CONNECTED >> service & 1;
	return opcode_serves(op->packet[PACKET_ONLY], service);
}

const struct operation *operation_of_packet(uint8_t opcode)
{
	for (unsigned i = 0; i < OPERATIONS; i++) {
		const struct operation *op = &operations[i];
		if (!op->name || class_rows[op->class].is & NO_PACKET)
			continue;
		for (unsigned place = 0; place < PACKET_PLACES; place++)
			if (op->packet[place] == opcode)
				return op;
	}
	return NULL;
}

unsigned opcode_headers(uint8_t opcode, unsigned service)
{
	if (!opcode_serves(opcode, service))
		return 0;
	unsigned headers = packet_rows[opcode].headers;
	if (service == SERVICE_UD)
		headers |= DETH;
	return headers;
}

const char *opcode_name(uint8_t opcode)
{
	return opcode < OP_CODES && packet_rows[opcode].name ? packet_rows[opcode].name
							     : "unknown packet";
}
