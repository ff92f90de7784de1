/* SPDX-License-Identifier: BSD-3-Clause */
/* See blame_find.h. */
#include "checker/explore/blame_find.h"
#include <assert.h>
#include <string.h>
#include "checker/explore/failure_modes.h"
#include "checker/judge/names.h"

/* The operations whose writes are the state's own: all updates of a key, or the one that is
 * missing. */
struct own {
	const struct history *history;
	int key, only; /* operations and keys; -1: none */
};

static bool is_update(struct op_label label)
{
	return label.kind == OP_PUT || label.kind == OP_DEL || label.kind == OP_CALL;
}

/* Was it written for one of them, by the machine of that number? */
static bool is_own(const struct own *own, struct op_label label, unsigned machine)
{
	const struct history *h = own->history;
	if (!label.client || !is_update(label))
		return false;
	for (unsigned i = 0; i < h->ops; i++) {
		const struct history_op *o = &h->op[i];
		if (o->client != label.client || o->epoch != machine || o->kind == HISTORY_GET ||
		    (own->only >= 0 ? (int)i != own->only : o->key != own->key))
			continue;
		if (op_label_equal(world_op_label(h, (int)i), label))
			return true;
	}
	return false;
}

static enum blame_writer writer_of(const struct pmem_version *v)
{
	const char *who = v->who ? v->who->name : "";
	if (v->nic)
		return WRITER_NIC;
	if (*who == 'c')
		return WRITER_CLIENT;
	return strchr(who, '/') ? WRITER_BACKGROUND : WRITER_SERVER;
}

/* The versions of a line that a power failure took. */
static void add_line(const struct broken_state *s, const struct own *own, const struct deviation *d,
		     struct blame *out)
{
	const struct pmem *booted = s->worlds->world[d->b].pm, *pm = pmem_failed(booted, d->a);
	unsigned versions = pmem_line_versions(pm, d->a), failed = 0;
	struct pmem_answer a = pmem_answer_split(versions, d->answer);
	unsigned region = setup_region(s->setup, (uint64_t)d->a * LINE);
	const char *name = region < s->setup->regions ? s->setup->region[region].name : "pm";
	while (failed + 1 < d->b && s->worlds->world[failed].pm != pm)
		failed++;
	for (unsigned v = (a.words ? a.over : a.version) + 1; v <= versions; v++) {
		struct pmem_version version;
		pmem_line_version(pm, d->a, v, &version);
		blame_add(out, blame_loss(name, writer_of(&version), version.op.kind,
					  is_own(own, version.op, failed)));
	}
}

/* Data of updates that had not landed when a machine failed. */
static void add_late(const struct broken_state *s, const struct own *own, unsigned machine,
		     struct blame *out)
{
	const struct pmem *pm = s->worlds->world[machine].pm;
	for (unsigned i = 0; i < pmem_lates(pm); i++) {
		struct op_label op;
		if (pmem_is_late(pm, i, &op) && is_update(op))
			blame_add(out, blame_late(op.kind, is_own(own, op, machine)));
	}
}

static bool is_fault(const struct deviation *d)
{
	const struct choice_traits *t = &choice_traits[d->kind];
	return d->answer <= t->faults ||
	       (t->forever && choice_delay(d->kind, d->answer) == DELAY_FOREVER);
}

static void add_run(const struct broken_state *s, struct blame *out)
{
	unsigned kinds = failure_mode_kinds(s->run);
	if (kinds & FAILURE_MODE_DEATH)
		blame_add(out, BLAME_DEATH);
	for (unsigned i = 0; i < s->run->n && s->machine; i++)
		if (!choice_traits[s->run->d[i].kind].power && is_fault(&s->run->d[i]))
			blame_add(out, BLAME_FAULT);
	if (workload_cleans(&s->setup->w))
		blame_add(out, BLAME_CLEAN);
	if (s->machine)
		return;
	blame_add(out, BLAME_UP);
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		if (kinds & 1u << k && !choice_traits[k].power)
			blame_add(out, k);
	if (kinds & FAILURE_MODE_SERVER)
		blame_add(out, BLAME_IN_SERVER);
	if (kinds & FAILURE_MODE_BACKGROUND)
		blame_add(out, BLAME_IN_BACKGROUND);
}

/* Updates of the key that had not ended when the power failed. */
static void add_open(const struct history *h, int key, struct blame *out)
{
	unsigned open = 0;
	for (unsigned i = 0; i < h->ops && key >= 0; i++)
		open += h->op[i].key == key && h->op[i].kind != HISTORY_GET &&
			h->op[i].epoch < h->epoch && (h->op[i].returned < 0 || h->op[i].error);
	if (open)
		blame_add(out, BLAME_OPEN);
	if (open > 1)
		blame_add(out, BLAME_OPEN2);
}

static int blamed(const struct verdict *v)
{
	return v->blamed ? v->blamed - 1 : v->against;
}

static void add_verdict(const struct history *h, const struct verdict *v, struct blame *out)
{
	static const uint8_t against[] = {[HISTORY_PUT] = AGAINST_PUT,
					  [HISTORY_GET] = AGAINST_GET,
					  [HISTORY_DEL] = AGAINST_DELETE,
					  [HISTORY_CALL] = AGAINST_PUT};
	if (v->op >= 0) {
		const struct history_op *o = &h->op[v->op];
		out->saw = o->error		      ? SAW_ERROR
			   : o->kind != HISTORY_GET   ? SAW_NONE
			   : o->value == VALUE_ABSENT ? SAW_NOTHING
			   : o->value >= 0	      ? SAW_VALUE
						      : SAW_FOREIGN;
	}
	if (blamed(v) >= 0)
		out->against = h->op[blamed(v)].client ? against[h->op[blamed(v)].kind]
						       : AGAINST_LOAD;
}

static struct own find_own(const struct broken_state *s)
{
	const struct history *h = s->worlds->history;
	const struct verdict *v = s->verdict;
	struct own own = {.history = h, .key = -1, .only = -1};
	if (!v || v->op < 0)
		return own;
	own.key = h->op[v->op].key;
	if (CONTRACTS_NAMING_MISSED & TM_BIT(s->contract) && blamed(v) >= 0) {
		const struct history_op *o = &h->op[blamed(v)];
		own.only = o->kind == HISTORY_GET ? o->value : blamed(v);
	}
	return own;
}

void blame_find(const struct broken_state *s, struct blame *out)
{
	const struct own own = find_own(s);
	bool lived = false;
	assert(s->machine < WORLDS && s->contract < TM_CONTRACTS);
	memset(out, 0, sizeof(*out));
	out->contract = (uint8_t)s->contract;
	if (s->verdict)
		add_verdict(s->worlds->history, s->verdict, out);
	add_run(s, out);
	if (s->machine)
		add_open(s->worlds->history, own.key, out);
	if (s->machine > 1)
		blame_add(out, BLAME_AGAIN);
	for (unsigned m = 0; m < s->machine; m++)
		add_late(s, &own, m, out);
	for (unsigned m = 1; m <= s->machine; m++)
		for (unsigned i = 0; i < s->path[m].n; i++) {
			const struct deviation *d = &s->path[m].d[i];
			lived |= d->kind == CHOICE_LIFE;
			if (d->kind == CHOICE_LINE && d->b == m)
				add_line(s, &own, d, out);
		}
	if (s->machine && !blame_own(out))
		blame_add(out, blame_writes(out) ? BLAME_OTHERS : BLAME_KEPT);
	if (lived)
		blame_add(out, BLAME_LIFE);
}
