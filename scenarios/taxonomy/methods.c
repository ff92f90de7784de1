/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From steps to acts. What was posted is remembered until something makes it land: a message
 * is received when all before it is visible, and so is a FLUSH's effect; what nothing waits
 * for lands by itself, in the end. With ddio=off, landed data of PM drain likewise.
 */
#include "scenarios/taxonomy/methods.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "scenarios/stores.h"

const char *const part_name[PARTS] = {
	[PART_REQUESTER] = "requester",
	[PART_ITS_NIC] = "NIC",
	[PART_NIC] = "NIC",
	[PART_CPU] = "CPU",
	[PART_CACHE] = "caches",
	[PART_IIO] = "I/O buffers",
	[PART_PM] = "persistent memory",
};

/* --- which methods there are --- */

const struct tm_store *method_store(void)
{
	unsigned i = 0;
	while (stores[i] && !stores[i]->methods)
		i++;
	return stores[i];
}

unsigned method_knob(void)
{
	const struct tm_store *store = method_store();
	unsigned k = 0;
	while (strcmp(store->knobs[k].name, store->methods->knob))
		k++;
	return k;
}

const struct append_method *method_of(const struct tm_params *params)
{
	const struct tm_append_methods *offered = method_store()->methods;
	unsigned i = params->knob[method_knob()];
	assert(i < offered->methods);
	return &offered->method[i];
}

#define PENDING 4

struct course {
	const struct append_method *method;
	const struct hardware *hw;
	struct acts *out;
	uint32_t request, record, tail; /* bytes */
	const char *in_nic[PENDING], *in_iio[PENDING];
	unsigned nic, iio;
	unsigned receives; /* immediates that the CPU has not been told of */
	bool unapplied;	   /* a message with the record, likewise */
	bool flushed;	   /* the last post was a FLUSH */
	bool fenced;	   /* the requester's NIC has held back what was posted */
	bool later;
};

static struct act *add(struct course *c, enum act_kind kind, enum part from, enum part to,
		       const char *verb, const char *what)
{
	assert(c->out->n < ACTS_MAX);
	struct act *act = &c->out->act[c->out->n++];
	*act = (struct act){.kind = kind, .from = from, .to = to, .later = c->later};
	snprintf(act->text, sizeof(act->text), "%s%s%s", verb, *what ? " " : "", what);
	return act;
}

/* --- the NIC's data --- */

static enum part landing_place(const struct course *c)
{
	return c->hw->ddio == DDIO_ON ? PART_CACHE : PART_IIO;
}

static void arrive(struct course *c, const char *what)
{
	assert(c->nic < PENDING);
	c->in_nic[c->nic++] = what;
}

static bool in_pm(const struct course *c, const char *what)
{
	return strcmp(what, "message") || c->hw->rqwrb_pm;
}

/* All that has arrived becomes visible. */
static void land(struct course *c)
{
	for (unsigned i = 0; i < c->nic; i++) {
		const char *what = c->in_nic[i];
		bool pm = in_pm(c, what);
		add(c, ACT_LAND, PART_NIC, landing_place(c), what, pm ? "lands" : "lands (DRAM)");
		if (c->hw->ddio == DDIO_OFF && pm)
			c->in_iio[c->iio++] = what;
	}
	c->nic = 0;
}

/* `sends`: what lies in receive buffers, too. */
static void drain(struct course *c, bool sends)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < c->iio; i++) {
		if (sends || strcmp(c->in_iio[i], "message"))
			add(c, ACT_DRAIN, PART_IIO, PART_PM, c->in_iio[i], "drains");
		else
			c->in_iio[kept++] = c->in_iio[i];
	}
	c->iio = kept;
}

/* --- the requester --- */

static void post(struct course *c, const char *verb, const char *what, uint32_t bytes)
{
	add(c, ACT_POST, c->fenced ? PART_ITS_NIC : PART_REQUESTER, PART_NIC, verb, what)
		->bytes = bytes;
	c->flushed = false;
}

static void flush(struct course *c, const char *what)
{
	post(c, "FLUSH", what, 0);
	c->flushed = true;
	land(c);
	drain(c, c->hw->flush_covers_send);
}

/* In the cache, too. */
static void commit(struct course *c, const char *what)
{
	post(c, "COMMIT", what, 0);
	c->flushed = true;
	land(c);
	if (c->hw->ddio == DDIO_OFF)
		drain(c, false);
	else
		add(c, ACT_DRAIN, PART_CACHE, PART_PM, what, "drains");
}

static void wait(struct course *c)
{
	/* On iWARP a completion of what is no FLUSH says that it was sent, not that the
	 * other side has answered. */
	bool answered = c->flushed || c->hw->transport == TRANSPORT_IB;
	add(c, ACT_COMPLETE, answered ? PART_NIC : PART_ITS_NIC, PART_REQUESTER,
	    c->flushed && method_primitive(c->method) == TAXONOMY_COMMIT ? "COMMIT is done"
	    : c->flushed						 ? "FLUSH is done"
	    : answered							 ? "has arrived"
									 : "was sent",
	    "")
		->round_trip = answered;
	c->flushed = c->fenced = false;
}

/* --- the responder's CPU --- */

static void receive(struct course *c, const char *what)
{
	land(c);
	add(c, ACT_RECEIVE, PART_NIC, PART_CPU, "receives", what);
}

static void write_back(struct course *c, enum part from, const char *what)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < c->iio; i++)
		if (strcmp(c->in_iio[i], what))
			c->in_iio[kept++] = c->in_iio[i];
	c->iio = kept;
	add(c, ACT_FLUSH, from, PART_PM, "flush", what);
}

/* A message with the record was received. */
static void apply(struct course *c)
{
	uint8_t duty = c->method->duty;
	bool both = duty == DUTY_COPY_BOTH_PERSIST, b = c->method->compound;
	add(c, ACT_COPY, PART_CPU, PART_CACHE, "copy", "a");
	if (duty == DUTY_COPY_PERSIST)
		write_back(c, PART_CACHE, "a");
	if (b)
		add(c, ACT_COPY, PART_CPU, PART_CACHE, "copy", "b");
	if (both)
		write_back(c, PART_CACHE, "a");
	if (b && duty != DUTY_COPY)
		write_back(c, PART_CACHE, "b");
}

static void reply(struct course *c)
{
	struct act *act = add(c, ACT_REPLY, PART_CPU, PART_REQUESTER, "SEND", "ack");
	act->bytes = c->request;
	act->round_trip = true;
}

/* A message announces a or b to the server, which replies when it has done its duty. */
static void announce(struct course *c, const char *received, const char *what)
{
	receive(c, received);
	if (c->method->duty == DUTY_PERSIST)
		write_back(c, landing_place(c), what);
	reply(c);
}

/* --- steps --- */

static bool about_tail(enum append_step step)
{
	return step == APPEND_WRITE_B || step == APPEND_FENCED_B || step == APPEND_ATOMIC_B ||
	       step == APPEND_IMM_B || step == APPEND_CALL_B || step == APPEND_IMM_CALL_B;
}

static void write_tail(struct course *c, enum append_step step)
{
	if (step == APPEND_FENCED_B) {
		add(c, ACT_RESULT, PART_NIC, PART_ITS_NIC, "FLUSH is done", "")->round_trip = true;
		c->fenced = true;
		post(c, "WRITE", "b (fenced)", c->tail);
	} else if (step == APPEND_ATOMIC_B && c->tail == sizeof(uint64_t)) {
		post(c, "ATOMIC_WRITE", "b", c->tail);
	} else { /* nothing orders it after a FLUSH */
		post(c, "WRITE", c->flushed ? "b (may overtake)" : "b", c->tail);
	}
	arrive(c, "b");
}

static void imm(struct course *c, const char *what, uint32_t bytes)
{
	post(c, "WRITE_WITH_IMM", what, bytes);
	arrive(c, what);
}

static void send(struct course *c)
{
	post(c, "SEND", c->method->compound ? "a, b" : "a", c->request + c->record);
	arrive(c, "message");
}

static void do_step(struct course *c, enum append_step step)
{
	bool b = about_tail(step);
	const char *what = b ? "b" : "a", *address = b ? "&b" : "&a";
	uint32_t bytes = b ? c->tail : c->record;

	switch (step) {
	case APPEND_WRITE_A:
		post(c, "WRITE", "a", bytes);
		arrive(c, "a");
		break;
	case APPEND_WRITE_B:
	case APPEND_FENCED_B:
	case APPEND_ATOMIC_B:
		write_tail(c, step);
		break;
	case APPEND_IMM_A:
	case APPEND_IMM_B:
		imm(c, what, bytes);
		c->receives++;
		break;
	case APPEND_IMM_CALL_A:
	case APPEND_IMM_CALL_B:
		imm(c, what, bytes);
		announce(c, address, what);
		break;
	case APPEND_CALL_A:
	case APPEND_CALL_B:
		post(c, "SEND", address, c->request);
		announce(c, address, what);
		break;
	case APPEND_SEND:
		send(c);
		c->unapplied = true;
		break;
	case APPEND_SEND_CALL:
		send(c);
		receive(c, "it");
		apply(c);
		reply(c);
		break;
	case APPEND_FLUSH_RECORD:
	case APPEND_FLUSH_TAIL:
		flush(c, step == APPEND_FLUSH_TAIL ? "b" : "a");
		break;
	case APPEND_FLUSH_ALL:
		flush(c, "all");
		break;
	case APPEND_COMMIT_RECORD:
	case APPEND_COMMIT_TAIL:
		commit(c, step == APPEND_COMMIT_TAIL ? "b" : "a");
		break;
	case APPEND_WAIT:
		wait(c);
		break;
	case APPEND_END:
		break;
	}
}

/* What was not waited for. */
static void afterwards(struct course *c)
{
	c->later = true;
	land(c);
	for (unsigned i = 0; i < c->receives; i++)
		receive(c, i ? "&b" : "&a");
	if (c->unapplied) {
		receive(c, "it");
		apply(c);
	}
	drain(c, true);
}

void method_acts(const struct tm_params *params, const struct hardware *hw, uint32_t vlen,
		 struct acts *out)
{
	const struct tm_append_methods *offered = method_store()->methods;
	struct course c = {.method = method_of(params),
			   .hw = hw,
			   .out = out,
			   .request = offered->request_bytes,
			   .record = offered->record_bytes + vlen,
			   .tail = (uint32_t)offered->tail_bytes(params)};
	const uint8_t *step = c.method->step;
	out->n = 0;
	for (unsigned i = 0; i < APPEND_STEPS && step[i] != APPEND_END; i++)
		do_step(&c, (enum append_step)step[i]);
	out->done = out->n - 1;
	afterwards(&c);
}

/* --- counting --- */

struct method_cost method_cost(const struct acts *acts)
{
	struct method_cost cost = {0};
	for (unsigned i = 0; i < acts->n; i++) {
		const struct act *act = &acts->act[i];
		bool cpu = act->kind == ACT_RECEIVE || act->kind == ACT_COPY ||
			   act->kind == ACT_FLUSH || act->kind == ACT_REPLY;
		cost.round_trips += act->round_trip;
		cost.cpu_waited += cpu && !act->later;
		cost.cpu_later += cpu && act->later;
		cost.messages += act->kind == ACT_POST || act->kind == ACT_REPLY;
		cost.bytes += act->bytes;
	}
	return cost;
}

int method_cost_compare(const struct method_cost *a, const struct method_cost *b)
{
	const unsigned x[] = {a->round_trips, a->cpu_waited, a->cpu_later, a->messages, a->bytes},
		       y[] = {b->round_trips, b->cpu_waited, b->cpu_later, b->messages, b->bytes};
	for (unsigned i = 0; i < sizeof(x) / sizeof(x[0]); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

void method_print(const struct acts *acts, char *buf, size_t n)
{
	size_t at = 0;
	*buf = '\0';
	for (unsigned i = 0; i <= acts->done && at < n; i++) {
		const struct act *act = &acts->act[i];
		if (act->kind != ACT_POST && act->kind != ACT_COPY && act->kind != ACT_FLUSH &&
		    act->kind != ACT_REPLY && act->kind != ACT_COMPLETE)
			continue;
		bool wait = act->kind == ACT_COMPLETE;
		at += (size_t)snprintf(buf + at, n - at, "%s%s", at ? "; " : "",
				       wait			? "wait"
				       : act->kind == ACT_REPLY ? "ack"
								: act->text);
	}
}

bool part_survives(enum part part, const struct hardware *hw)
{
	switch (part) {
	case PART_PM:
		return true;
	case PART_CACHE:
		return hw->domain != DOMAIN_DMP;
	case PART_IIO:
		return hw->domain == DOMAIN_WSP || (hw->domain == DOMAIN_MHP && hw->iio_in_mhp);
	case PART_NIC:
		return hw->domain == DOMAIN_WSP;
	default:
		return false;
	}
}

enum taxonomy_primitive method_primitive(const struct append_method *method)
{
	switch (method->step[0]) {
	case APPEND_IMM_A:
	case APPEND_IMM_CALL_A:
		return TAXONOMY_WRITEIMM;
	case APPEND_SEND:
	case APPEND_SEND_CALL:
		return TAXONOMY_SEND;
	default:
		return method->step[1] == APPEND_COMMIT_RECORD ? TAXONOMY_COMMIT : TAXONOMY_WRITE;
	}
}
