/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_HARDWARE_HARDWARE_H
#define TM_HARDWARE_HARDWARE_H
/*
 * The knobs of the emulated machine: what its memory, its CPUs and its NIC do to a write between
 * "sent" and "durable". docs/model.md explains each.
 *
 * One table has all that is to be said of a knob; struct hardware, the default, the words of traces
 * and of the command line, and the help come from it. A row:
 *
 *	type and name of the field, name of the knob, where it is printed and whether a
 *	log obeys it (below), what it means, its values (the first is the default),
 *	the numbers they stand for
 *
 * A knob that is new is KNOB_RARE, so that traces and texts that do not need it stay as they are.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/hardware/mutant.h"

#define LINE 64 /* bytes: the unit of write-back; 8 bytes are failure-atomic */

/* What survives a power failure: memory and its queue; and caches; and the NIC's buffers. */
enum domain { DOMAIN_DMP, DOMAIN_MHP, DOMAIN_WSP };
enum transport { TRANSPORT_IB, TRANSPORT_IWARP };
enum dma_order { DMA_LEFT, DMA_ANY, DMA_RELAXED };
/* Where what the NIC writes to PM goes: to the cache, past it, or now here and now there. */
enum ddio { DDIO_OFF, DDIO_ON, DDIO_ANY };
enum copy_order { COPY_LINES, COPY_FORWARD, COPY_BACKWARD };
/* Which of its words survive when a line's write-back is cut: all, the first ones, any. */
enum line_torn { TORN_OFF, TORN_PREFIX, TORN_ANY, TORN_VALUES };

#define HARDWARE_SERVERS 4 /* of a store at most */
#define HARDWARE_OWN	 4 /* knobs that a server may have of its own: hardware.c */
#define HARDWARE_VALUES	 5 /* of a knob at most, unless its numbers are KNOB_PLACES */
#define KNOB_PLACES	 0 /* each value stands for its place among them */

/* Does it change what a failure leaves of what was recorded (checker/images), or why not? */
#define LOG_OBEYS     NULL
#define LOG_RUN	      "it changes what a program does and sees, and that is recorded already"
#define LOG_PACKETS   "it changes how requests get there, and what has landed is recorded already"
#define LOG_SIMULATED "it is a bug of the simulation, and a recording is of a program"

/* clang-format off */
#define HARDWARE_KNOBS(X) \
	X(uint8_t, domain, "domain", KNOB_USUAL, LOG_OBEYS, \
	  "what survives a power failure: memory; and caches; and NIC buffers", \
	  "dmp mhp wsp", DOMAIN_DMP, DOMAIN_MHP, DOMAIN_WSP) \
	X(uint8_t, ddio, "ddio", KNOB_USUAL, LOG_OBEYS, \
	  "data from the NIC goes to the L3 cache; off: it drains to memory; any: each line may do either", \
	  "on off any", DDIO_ON, DDIO_OFF, DDIO_ANY) \
	X(bool, rqwrb_pm, "rqwrb", KNOB_USUAL, LOG_RUN, \
	  "where receive buffers are", \
	  "dram pm", false, true) \
	X(uint8_t, transport, "transport", KNOB_USUAL, LOG_PACKETS, \
	  "when a write completes: received by the responder's NIC; iwarp: sent", \
	  "ib iwarp", TRANSPORT_IB, TRANSPORT_IWARP) \
	X(uint16_t, mtu, "mtu", KNOB_USUAL, LOG_PACKETS, \
	  "bytes of payload in a packet", \
	  "1024 256 512 2048 4096", 1024, 256, 512, 2048, 4096) \
	X(uint8_t, dma_order, "dma_order", KNOB_USUAL, LOG_OBEYS, \
	  "order in which lines land: of a message from the left, any; relaxed: any of a connection, READs too", \
	  "left any relaxed", DMA_LEFT, DMA_ANY, DMA_RELAXED) \
	X(bool, read_right, "read_order", KNOB_USUAL, LOG_RUN, \
	  "order in which a READ fetches the lines of one response packet", \
	  "left right", false, true) \
	X(uint8_t, line_torn, "line_torn", KNOB_USUAL, LOG_OBEYS, \
	  "of a line reaching PM as the power fails its first 8-byte words survive, or any", \
	  "off prefix any", TORN_OFF, TORN_PREFIX, TORN_ANY) \
	X(bool, iio_in_mhp, "iio_in_mhp", KNOB_USUAL, LOG_OBEYS, \
	  "integrated-I/O buffers survive where caches do", \
	  "on off", true, false) \
	X(bool, ack_early, "ack_early", KNOB_USUAL, LOG_OBEYS, \
	  "a write may complete before it is visible at the responder", \
	  "on off", true, false) \
	X(bool, rkey_reuse, "rkey_reuse", KNOB_USUAL, LOG_RUN, \
	  "a region registered again gets its old rkey, so late writes land", \
	  "off on", false, true) \
	X(bool, flush_covers_send, "flush_covers_send", KNOB_USUAL, LOG_OBEYS, \
	  "a FLUSH covers the Sends of its connection too", \
	  "on off", true, false) \
	X(uint8_t, store_buffer, "store_buffer", KNOB_USUAL, LOG_RUN, \
	  "entries of each CPU's store buffer: loads run ahead of stores (x86-TSO); 0: none", \
	  "0 1 2 4 8", 0, 1, 2, 4, 8) \
	X(bool, atomics_hca, "atomics", KNOB_RARE, LOG_RUN, \
	  "what a remote atomic is atomic with: all accesses; hca: other remote atomics only", \
	  "global hca", false, true) \
	X(bool, read_words, "read_unit", KNOB_RARE, LOG_RUN, \
	  "what a READ fetches at one moment: a line, or an 8-byte word", \
	  "line word", false, true) \
	X(uint8_t, copy_order, "copy_order", KNOB_RARE, LOG_RUN, \
	  "a CPU's copy is seen line by line; or word by word, in this order", \
	  "line forward backward", COPY_LINES, COPY_FORWARD, COPY_BACKWARD) \
	X(bool, nt_buffered, "nt_stores", KNOB_RARE, LOG_OBEYS, \
	  "non-temporal stores: as if flushed; or in buffers of their own, unordered", \
	  "flushed buffered", false, true) \
	X(bool, restart_reuse, "restart_reuse", KNOB_RARE, LOG_RUN, \
	  "a process that is started anew gets rkeys and queue pair numbers of the one before", \
	  "off on", false, true) \
	X(bool, commit_visible, "commit_word", KNOB_RARE, LOG_OBEYS, \
	  "the payload of an RDMA Commit is visible and durable at one moment; or visible first", \
	  "durable visible", false, true) \
	X(bool, calls_fail, "calls", KNOB_RARE, LOG_RUN, \
	  "calls that can fail do (tidemark list failures)", \
	  "good fail", false, true) \
	X(uint16_t, clocks_us, "clocks", KNOB_RARE, LOG_RUN, \
	  "by how much the clocks of two machines may differ", \
	  "same 1us 10us 100us 1ms", 0, 1, 10, 100, 1000) \
	X(uint8_t, mutant, "mutant", KNOB_RARE, LOG_SIMULATED, \
	  "a seeded bug of Tidemark's own (tidemark list bugs)", \
	  hardware_mutant_names, KNOB_PLACES)
/* clang-format on */

struct hardware {
#define X(type, field, ...) type field;
	HARDWARE_KNOBS(X)
#undef X
	/* Of one of several servers, where it differs: 0 as the others, else 1 + the number. */
	uint8_t server[HARDWARE_SERVERS][HARDWARE_OWN];
};

extern const struct hardware hardware_default;

/* That of a server, from 0. */
struct hardware hardware_of_server(const struct hardware *hw, unsigned server);

/* May a line land before one that came in before it on its connection, of the same message or of
 * another one? */
static inline bool dma_may_pass(const struct hardware *hw, bool same_message)
{
	return hw->dma_order == DMA_RELAXED || (hw->dma_order == DMA_ANY && same_message);
}

/* Which server's knob it is, from 1: "domain.2"; 0: it is none of a server alone. */
unsigned hardware_knob_server(const char *name);
/* How many servers there must be: the last one with a knob of its own. 0: none has. */
unsigned hardware_servers(const struct hardware *hw);
/* Below HARDWARE_NAMES, another one for each knob and each server's own; -1: there is none. */
#define HARDWARE_NAMES 64
int hardware_name_number(const char *name);
/* "domain", "dmp", or "domain.2", "wsp" of the second server: 0, or -EINVAL with *expected naming
 * what would be right. */
int hardware_set(struct hardware *hw, const char *name, const char *value, const char **expected);
/* The same of a text "domain=dmp". */
int hardware_switch(struct hardware *hw, const char *text, const char **expected);
/* As "domain=dmp ddio=on ...": `all` the usual knobs, or only those that are not at their default;
 * the rare ones only then. Returns the length as snprintf() does. */
int hardware_print(const struct hardware *hw, bool all, char *buf, size_t n);

/* When a knob is printed: always, or when it is not at its default. */
enum knob_print { KNOB_USUAL, KNOB_RARE };

/* The i-th knob; NULL name at the end. */
struct hardware_knob {
	const char *name, *values, *what;
	enum knob_print print;
	const char *not_of_log; /* why not; NULL: a log obeys it */
};
const struct hardware_knob *hardware_knob(unsigned i);
/* The number of the knob of this name, or of this older name; -1: there is none. */
int hardware_find(const char *name);

#endif
