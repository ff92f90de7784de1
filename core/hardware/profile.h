/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_HARDWARE_PROFILE_H
#define TM_HARDWARE_PROFILE_H
/*
 * What things cost in virtual time: all constants of the simulated machines, in one table. struct
 * profile, the default, the words of profile files and docs/figures.md come from it. A row:
 *
 *	the field, and its name in a profile; its value by default;
 *	the least and the most it may be; its unit; what it is
 *
 * The default is what runs are explored with. It stands for no machine in particular; what only
 * figures need is 0 in it, which means that there is no such cost. The profiles of the machines
 * that papers measured are in scenarios/profiles/, each number with its source.
 *
 * With cpus=0 one clock counts what all CPUs do: while a task computes, nothing else in the world
 * does. That is what exploring wants, since it makes a step of a task one moment. With cpus=N a
 * task's work takes the time of its own CPU alone: each host has N (core/rt/sim_cpus.c).
 */
#include <stddef.h>
#include <stdint.h>

#define PROFILE_MOST 1000000000 /* of any cost */
#define PROFILE_CPUS 64

/* clang-format off */
#define PROFILE_COSTS(X) \
	X(cpus, 0, 0, PROFILE_CPUS, "CPUs", "of each host; 0: one clock counts all hosts' work") \
	X(load, 2, 0, PROFILE_MOST, "ns", "a load from PM") \
	X(store, 2, 0, PROFILE_MOST, "ns", "a store to PM, or what a copy stores in one line") \
	X(copy, 0, 0, PROFILE_MOST, "ps/B", "a copy to PM or out of it, for each byte from the 129th on") \
	X(crc, 0, 0, PROFILE_MOST, "ps/B", "a checksum, for each byte") \
	X(flush, 30, 0, PROFILE_MOST, "ns", "a call that flushes a range") \
	X(flush_line, 0, 0, PROFILE_MOST, "ns", "... for each of its lines besides") \
	X(fence, 60, 0, PROFILE_MOST, "ns", "a fence") \
	X(pm_write, 0, 0, PROFILE_MOST, "MB/s", "what CPUs can flush to PM; 0: no limit") \
	X(lock, 20, 0, PROFILE_MOST, "ns", "a locked instruction of a thread") \
	X(post, 50, 0, PROFILE_MOST, "ns", "a call that posts requests") \
	X(poll, 20, 0, PROFILE_MOST, "ns", "a poll that finds a completion") \
	X(await, 20, 0, PROFILE_MOST, "ns", "a wait for what is there already") \
	X(call, 500, 0, PROFILE_MOST, "ns", "a call of the connection manager") \
	X(select, 100, 0, PROFILE_MOST, "ns", "a poll of descriptors that finds one ready") \
	X(wake, 0, 0, PROFILE_MOST, "ns", "an interrupt, until the task runs that waits for a completion; 0: it polls") \
	X(handle, 0, 0, PROFILE_MOST, "ns", "what a server does for a request, a message that has bytes, besides what its code shows") \
	X(doorbell, 50, 0, PROFILE_MOST, "ns", "from a posted request to its first packet") \
	X(packet, 0, 0, PROFILE_MOST, "ns", "a NIC's work on a packet that it sends, and one that it receives") \
	X(wire, 12000, 1, PROFILE_MOST, "MB/s", "what a port sends") \
	X(dma, 0, 0, PROFILE_MOST, "ps/B", "a packet's bytes between memories and NICs, at both ends") \
	X(flight, 600, 0, PROFILE_MOST, "ns", "from one port to the other") \
	X(land, 150, 0, PROFILE_MOST, "ns", "from a packet's arrival until it lands, or is served") \
	X(drain, 400, 0, PROFILE_MOST, "ns", "from the integrated-I/O buffers to PM")
/* clang-format on */

struct profile {
#define X(field, ...) uint32_t field;
	PROFILE_COSTS(X)
#undef X
};

struct input_error; /* core/text/text.h */

extern const struct profile profile_default;

/* The i-th cost; NULL name at the end. */
struct profile_cost {
	const char *name, *unit, *what;
	uint32_t value, least, most; /* by default; and at least, and most */
};
const struct profile_cost *profile_cost(unsigned i);
uint32_t profile_value(const struct profile *p, unsigned i);

/*
 * A profile as text: "name value  # source" on each line, each name at most once. What is not named
 * is as by default. `bytes` may be written to. 0, or -EINVAL with *error.
 */
int profile_parse(struct profile *p, char *bytes, size_t len, struct input_error *error);
/* The same of a file. -EINVAL, or what opening or reading said. */
int profile_read(struct profile *p, const char *path, struct input_error *error);

#endif
