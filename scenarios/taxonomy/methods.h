/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_TAXONOMY_METHODS_H
#define TM_SCENARIOS_TAXONOMY_METHODS_H
/*
 * Methods of appending as a course of acts: what each part of the two machines does to one
 * append, worked out from the method's steps and the hardware. Printed as words, drawn as a
 * picture, and counted: there is no other source of what a method costs.
 */
#include "core/hardware/hardware.h"
#include "core/stores/append_method.h"
#include "scenarios/taxonomy/taxonomy.h"

/* Parts of the machines, from the requester to its data's last place. */
enum part {
	PART_REQUESTER,
	PART_ITS_NIC,
	PART_NIC, /* of the responder, like all that follow */
	PART_CPU,
	PART_CACHE,
	PART_IIO, /* integrated-I/O buffers; data from the NIC pass them with ddio=off only */
	PART_PM,
	PARTS
};

enum act_kind {
	ACT_POST,   /* the requester's message arrives at the responder's NIC; from its own, if that
		     * has held
		     * it */
	ACT_RESULT, /* a FLUSH's result is back at the requester's NIC, which has waited for it
		       (fence) */
	ACT_COMPLETE, /* the requester has waited for a completion, and takes it */
	ACT_LAND,     /* the NIC's data become visible */
	ACT_DRAIN,    /* they reach PM */
	ACT_RECEIVE,  /* the responder's CPU takes a receive completion */
	ACT_COPY,     /* it copies to the log */
	ACT_FLUSH,    /* it writes lines back, and fences */
	ACT_REPLY,    /* it sends a message, for which the requester has waited */
};

struct act {
	uint8_t kind;	  /* enum act_kind */
	uint8_t from, to; /* enum part */
	bool later;	  /* when the requester has already reported the update durable */
	bool round_trip;  /* the requester, or its NIC, has waited for the other side */
	uint32_t bytes;	  /* of payload, on the wire */
	char text[40];	  /* "WRITE a" */
};

#define ACTS_MAX 40

struct acts {
	struct act act[ACTS_MAX];
	unsigned n;
	unsigned done; /* act[done] is where the update is reported durable */
};

/*
 * What a method costs, in the order in which it counts: fewer round trips are cheaper,
 * whatever the rest; then less for the responder's CPU, first while the requester waits,
 * then later; then fewer messages; then fewer bytes.
 */
struct method_cost {
	unsigned round_trips;
	unsigned cpu_waited, cpu_later; /* receives, copies, flushes, replies */
	unsigned messages;		/* of programs; no acknowledgements and results */
	unsigned bytes;			/* of their payload */
};

/* The store that offers methods of appending; NULL: there is none. The functions below are about
 * its methods. */
const struct tm_store *method_store(void);
/* The method that the store's knobs choose, and the knob that chooses it. */
const struct append_method *method_of(const struct tm_params *params);
unsigned method_knob(void);

/* `params`: the knobs; a record of `vlen` bytes of value. */
void method_acts(const struct tm_params *params, const struct hardware *hw, uint32_t vlen,
		 struct acts *out);
struct method_cost method_cost(const struct acts *acts);
/* Negative: a is cheaper; 0: they cost the same. */
int method_cost_compare(const struct method_cost *a, const struct method_cost *b);
/* "WRITE a; FLUSH a; wait": up to where it is reported durable. */
void method_print(const struct acts *acts, char *buf, size_t n);
/* Does what is there survive a power failure? */
bool part_survives(enum part part, const struct hardware *hw);
enum taxonomy_primitive method_primitive(const struct append_method *method);

extern const char *const part_name[PARTS];

#endif
