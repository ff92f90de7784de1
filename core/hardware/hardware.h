/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_HARDWARE_HARDWARE_H
#define TM_HARDWARE_HARDWARE_H
/*
 * The hardware configuration: what a server's memory and NIC do to a write
 * between "sent" and "durable". docs/model.md explains each field.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE 64 /* bytes: the unit of write-back; 8 bytes are failure-atomic */

enum domain {
	DOMAIN_DMP,
	DOMAIN_MHP,
	DOMAIN_WSP
}; /* what survives: PM and its queue; + caches; + NIC buffers */
enum transport { TRANSPORT_IB, TRANSPORT_IWARP };

struct hardware {
	uint8_t domain;		/* enum domain */
	bool ddio;		/* NIC data lands in the L3 cache (true) or drains to memory */
	bool rqwrb_pm;		/* receive buffers are in PM */
	uint8_t transport;	/* enum transport */
	uint16_t mtu;		/* bytes of payload in a packet: 256, 512, 1024, 2048, 4096 */
	bool dma_any;		/* lines of one RDMA message land in any order, not left to right */
	bool read_right;	/* a READ fetches the lines of a packet right to left */
	bool line_torn;		/* a line reaching PM at the crash may be cut at any 8-byte word */
	bool iio_in_mhp;	/* integrated-I/O buffers belong to the MHP domain */
	bool ack_early;		/* a completion may precede visibility at the responder */
	bool rkey_reuse;	/* a region registered again gets its old rkey */
	bool flush_covers_send; /* FLUSH covers Sends of its connection */
	bool calls_fail;	/* calls that can fail ask whether they do (core/rt/fails.h) */
	uint8_t store_buffer;	/* entries of a CPU's store buffer; 0: a store is visible at once */
	uint8_t own_bug;	/* enum own_bug (own_bug.h): Tidemark's own, seeded; 0: none */
};

extern const struct hardware hardware_default; /* dmp, ddio on, ib, mtu 1024, in-order DMA */

/* "domain" = "dmp": 0, or -EINVAL with *expected naming what would be right. */
int hardware_set(struct hardware *hw, const char *name, const char *value, const char **expected);
/* Likewise of a text "domain=dmp". */
int hardware_switch(struct hardware *hw, const char *text, const char **expected);
/* All fields as "domain=dmp ddio=on ...", or only those that differ from the default; returns
 * length as snprintf. */
int hardware_print(const struct hardware *hw, bool all, char *buf, size_t n);

/* For `tidemark list`: the i-th knob's name, values and meaning; NULL name at the end. */
struct hardware_knob {
	const char *name, *values, *what;
};
const struct hardware_knob *hardware_knob(unsigned i);

#endif
