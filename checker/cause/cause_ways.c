/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways that tasks take through the store's code: each place that accesses memory, also memory
 * that is not persistent, and what it finds there. They are compared with those of the same run
 * with a difference as small as is known (explanation.nearest) that does not break the contract.
 * Where a task first does, or finds, what it never does or finds there, the ways part.
 */
#include "checker/cause/explain.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "checker/cause/trail.h"
#include "core/array.h"
#include "core/rt/sim.h"

#define SLOTS	  (1u << 17)
#define SMALL	  (1u << 20) /* values from here on may be addresses, or points in time, ... */
#define RECENT_NS 4000	     /* ... as may those that are so close to the clock's */
#define APART	  3	     /* and of what is only in one of two */

struct way_place {
	uintptr_t pc;
	uint64_t value, who; /* who: the hash of the task's name */
	struct op_label op;
	uint8_t machine;
	char name[ACTOR_NAME];
	unsigned first, last; /* when: ways.changes, and ways.steps */
};

struct ways {
	const struct explanation *q;
	struct way_place *place; /* in the order in which they were met */
	unsigned n, room, on;
	/* What happened between two steps has no order: in which one an expression is evaluated, a
	 * compiler decides. Of its loads, too; these are no changes. */
	unsigned steps, changes;
	bool returned;
	uint32_t *slot; /* by hash: place + 1, 0: none */
};

static bool same_place(const struct way_place *a, const struct way_place *b)
{
	return a->pc == b->pc && a->value == b->value && a->who == b->who &&
	       a->machine == b->machine && op_label_equal(a->op, b->op);
}

/* Where it is, or belongs. */
static uint32_t slot_of(const struct ways *w, const struct way_place *p)
{
	uint64_t hash = (p->pc ^ p->who ^ (uint64_t)p->machine << 60) * 0x9e3779b97f4a7c15ull;
	hash = (hash ^ p->value ^ (uint64_t)p->op.nth << 48 ^ (uint64_t)p->op.client << 40 ^
		p->op.kind) *
	       0x9e3779b97f4a7c15ull;
	uint32_t at = (uint32_t)(hash >> 40) % SLOTS;
	while (w->slot[at] && !same_place(&w->place[w->slot[at] - 1], p))
		at = (at + 1) % SLOTS;
	return at;
}

static uint64_t bytes_at(const void *addr, size_t len)
{
	return len <= sizeof(uint64_t) ? trail_value(addr, (unsigned)len) : 0;
}

/* What is there, unless it may be what differs between any two runs. */
static uint64_t value_at(const void *addr, size_t len)
{
	const uint64_t value = bytes_at(addr, len);
	const uint64_t now = sim_now(sim_current());
	const bool recent = value + RECENT_NS > now && value < now + RECENT_NS && value > RECENT_NS;
	return value < SMALL && !recent ? value : 0;
}

static void pass(struct ways *w, const struct actor *who, struct op_label op, uintptr_t pc,
		 uint64_t value)
{
	struct way_place p = {.pc = pc,
			      .value = value,
			      .who = who->name_hash,
			      .op = op,
			      .machine = (uint8_t)w->on};
	if (w->returned && p.machine == w->q->machine)
		return;
	uint32_t at = slot_of(w, &p);
	if (!w->slot[at]) {
		if (w->n == SLOTS / 2 || !ARRAY_RESERVE(w->place, w->n, 1, w->room))
			return;
		memcpy(p.name, who->name, sizeof(p.name));
		p.first = w->changes;
		w->place[w->n++] = p;
		w->slot[at] = w->n;
	}
	w->place[w->slot[at] - 1].last = w->steps;
}

static bool is_knob_of(const struct tm_params *params, const void *addr)
{
	return (uintptr_t)addr - (uintptr_t)params->knob < sizeof(params->knob);
}

/* Is this byte a knob, or a knob of a store's copy of its parameters? */
static bool is_knob(const struct setup *s, const struct sim *sim, const uint8_t *byte)
{
	const struct tm_params *const own = &s->params;
	const size_t front = offsetof(struct tm_params, knob),
		     before = sim_allocated_before(sim, byte);
	bool found = is_knob_of(own, byte);
	for (unsigned i = 0; i < s->servers && !found; i++)
		found = is_knob_of(&s->server[i].params, byte);
	for (size_t k = 0; k < sizeof(own->knob) && front + k <= before && !found; k++) {
		struct tm_params copy = {0};
		memcpy(&copy, byte - k - front, front + k);
		found = copy.keys == own->keys && copy.max_vlen == own->max_vlen &&
			!memcmp(copy.knob, own->knob, k) && *byte == own->knob[k];
	}
	return found;
}

static void saw_dram(void *arg, const void *addr, size_t len, bool write, uintptr_t pc)
{
	struct ways *w = arg;
	struct sim *sim = sim_current();
	const struct actor *who = sim ? sim_actor(sim) : NULL;
	/* How a store is set is asked where it has a choice, by no step of its own. */
	if (who && len == 1 && !write && is_knob(w->q->ex->setup, sim, addr))
		return;
	/* Which variables of a function are on its stack, a compiler decides, and whether it tells
	 * of pointers that are constant. */
	if (who && !sim_on_stack(sim, addr) && (write || bytes_at(addr, len) <= UINT32_MAX))
		pass(w, who, who->op, pc, write ? 0 : value_at(addr, len));
}

static void saw_event(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
		      const struct traced *about, const char *text)
{
	struct ways *w = arg;
	(void)sim, (void)text;
	if (!who)
		return;
	const struct op_label op = about->op.kind ? about->op : who->op;
	w->steps++;
	w->changes += about->kind != TRACED_LOAD;
	if (pc)
		pass(w, who, op, pc,
		     about->kind == TRACED_LOAD
			     ? value_at(pmem_base(sim_memory) + about->off, about->len)
		     : about->kind == TRACED_CHECK ? about->code
						   : 0);
	w->returned |= about->kind == TRACED_RETURN && w->on == w->q->machine &&
		       op_label_equal(op, w->q->op);
}

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	struct ways *w = arg;
	(void)ex;
	w->on = machine;
}

/* The ways in the run with this list. 0 or -ENOMEM. */
static int follow(struct explanation *q, const struct deviations *list, struct ways *w,
		  bool *broken)
{
	const struct replay_audience audience = {
		.tracer = saw_event, .machine_starts = machine_starts, .arg = w};
	struct setup *s = q->ex->setup;
	*w = (struct ways){.q = q, .slot = calloc(SLOTS, sizeof(*w->slot))};
	if (!w->slot)
		return -ENOMEM;
	for (unsigned m = 0; m < WORLDS; m++)
		q->ex->worlds.world[m].anywhere = list == &q->nearest && q->window.beside.kind &&
						  q->window.beside.a == CRASH_ANYWHERE;
	s->dram_watcher = saw_dram;
	s->watcher_arg = w;
	int error = cause_replay_breaks(q, list, &audience, broken);
	s->dram_watcher = NULL;
	for (unsigned m = 0; m < WORLDS; m++)
		q->ex->worlds.world[m].anywhere = false;
	return error;
}

static void forget(struct ways *w)
{
	free(w->place);
	free(w->slot);
}

/* Whose ways are told, each for itself. */
enum role {
	OF_CLIENT, /* the verdict's operation, on its client's task, ... */
	OF_SERVERS,
	OF_CLIENT_BEFORE, /* the one that it contradicts */
	OF_SERVERS_BEFORE,
	OF_RECOVERY,
	OF_OTHERS, /* what servers do for no operation */
	ROLES
};

/* How many functions are told of a way, besides those that are told anyway: from the last. */
static const unsigned functions[ROLES] = {
	[OF_SERVERS] = 3, [OF_SERVERS_BEFORE] = 3, [OF_RECOVERY] = 3, [OF_OTHERS] = 3};

static enum role role_of(const struct explanation *q, const struct way_place *p)
{
	const bool client = p->name[0] == 'c';
	if (p->op.kind && op_label_equal(p->op, q->op) && p->machine == q->machine)
		return client ? OF_CLIENT : OF_SERVERS;
	if (p->op.kind && op_label_equal(p->op, q->against) && p->machine == q->against_machine)
		return client ? OF_CLIENT_BEFORE : OF_SERVERS_BEFORE;
	if (p->op.kind || client)
		return ROLES;
	return strchr(p->name, '/') ? OF_OTHERS : OF_RECOVERY;
}

/* "client 1's PUT k1", "a server for client 1's PUT k1", "the server" */
static void role_words(const struct explanation *q, enum role role, char *buf, size_t n)
{
	const bool before = role == OF_CLIENT_BEFORE || role == OF_SERVERS_BEFORE;
	char op[120];
	cause_op(q, before ? q->against : q->op, before ? q->against_machine : q->machine, op,
		 sizeof(op));
	cause_print(buf, n, "%s%s",
		    role == OF_SERVERS || role == OF_SERVERS_BEFORE ? "a server for " : "",
		    role == OF_RECOVERY ? "the server"
		    : role == OF_OTHERS ? "a task of the server"
					: op);
}

/* Is the function named by a fact? */
static bool is_told(const struct explanation *q, const char *name)
{
	for (unsigned i = 0; i < q->c->facts; i++)
		if (strstr(q->c->fact[i], name))
			return true;
	return false;
}

/* A place that may be told, and when it was met. */
struct candidate {
	uintptr_t pc;
	unsigned when;
	const char *function;
	char line[160];
};

static int by_pc(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	return x->pc != y->pc ? (x->pc < y->pc ? -1 : 1)
			      : (x->when > y->when) - (x->when < y->when);
}

static int by_time(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const int names = strcmp(x->function, y->function);
	return x->when != y->when ? (x->when < y->when ? -1 : 1)
	       : names		  ? names
				  : strcmp(x->line, y->line);
}

/* The places of one role that are not in `out`, if that is not NULL, each once, in their order;
 * `last`: from the last on. The caller frees them. Returns how many. */
static unsigned find_places(const struct explanation *q, const struct ways *in,
			    const struct ways *out, enum role role, bool last,
			    struct candidate **places)
{
	unsigned n = 0, once = 0;
	struct candidate *all = *places = calloc(in->n + 1, sizeof(*all));
	for (unsigned i = 0; i < in->n && all; i++) {
		const struct way_place *p = &in->place[i];
		if (role_of(q, p) == role && !(out && out->slot[slot_of(out, p)]))
			all[n++] = (struct candidate){.pc = p->pc,
						      .when = last ? UINT_MAX - p->last : p->first};
	}
	if (all)
		qsort(all, n, sizeof(*all), by_pc);
	for (unsigned i = 0; i < n; i++) {
		if (once && all[once - 1].pc == all[i].pc)
			continue;
		all[once] = all[i];
		all[once].function = where_function(q->where, all[once].pc);
		where_print(q->where, where_begin(q->where, all[once].pc), all[once].line,
			    sizeof(all[once].line));
		once += all[once].line[0] && callers_of_stores(q->where, all[once].pc);
	}
	if (all)
		qsort(all, once, sizeof(*all), by_time);
	return once;
}

/* " f() at place, g() at place": so many functions, those that no fact names. Returns how many. */
static unsigned list_functions(struct explanation *q, const struct ways *in, const struct ways *out,
			       enum role role, unsigned most, char *buf, size_t n)
{
	struct candidate *at;
	const unsigned places = find_places(q, in, out, role, !out, &at);
	unsigned told = 0;
	size_t used = 0;
	buf[0] = '\0';
	for (unsigned i = 0; i < places && told < most; i++) {
		char name[200];
		cause_print(name, sizeof(name), " %.150s() at ", at[i].function);
		if (strstr(buf, name) || is_told(q, name) ||
		    (!out && !callers_of_store(q->where, at[i].pc)))
			continue;
		used += cause_print(buf + used, n - used, "%s%s%s", told ? "," : "", name,
				    at[i].line);
		if (out && role == OF_OTHERS && !told)
			cause_suspect(q, SUSPECT_ONLY, where_begin(q->where, at[i].pc),
				      "a task of the server comes, or finds something else, only "
				      "when it breaks");
		told++;
	}
	free(at);
	return told;
}

static void say_role(struct explanation *q, const struct ways *with, const struct ways *without,
		     enum role role)
{
	char who[140], text[CAUSE_TEXT - 200];
	const unsigned most = without ? APART : functions[role];
	role_words(q, role, who, sizeof(who));
	if (!list_functions(q, with, without, role, most, text, sizeof(text)))
		return;
	if (without)
		cause_say(q, EVENT_LOG_NONE,
			  "apart: only here %s comes to, or finds something else in%s", who, text);
	else
		cause_say(q, EVENT_LOG_NONE, "way: before that %s was in%s", who, text);
}

int cause_say_ways(struct explanation *q)
{
	struct ways with, without = {0};
	bool broken = true;
	int error = follow(q, &q->t->deviations, &with, &broken);
	if (!error && q->has_nearest)
		error = follow(q, &q->nearest, &without, &broken);
	for (enum role r = 0; r < ROLES && !error && !broken && without.n; r++)
		say_role(q, &with, &without, r);
	for (enum role r = 0; r < ROLES && !error; r++)
		say_role(q, &with, NULL, r);
	forget(&with);
	forget(&without);
	return error;
}
