/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting what an operation costs.
 *
 * One client runs a fixed program in a world where nothing goes wrong: every answer of sim_choose()
 * is 0 and the power never fails. What is counted are the events that a replay shows, too
 * (sim_set_tracer()): a store, a flush, a fence, data that lands, a request that is posted, a
 * completion that is taken, a packet. So a run that is not traced has no extra work.
 *
 * After an operation has returned, the client sleeps until nothing that counts has happened for
 * QUIESCENT_NS, which is longer than any task of a server sleeps. So everything that an operation
 * causes is counted before the next one begins. An event is foreground if it bears the operation's
 * label and, if a CPU makes it, if it happens before the operation returns. All other events are
 * background: those of tasks that serve no message (a verifier, a cleaner), and later ones.
 *
 * A server that naps (tm_store.naps) would make its clients look for answers in vain: a GET of a
 * key that never exists, which is not counted, comes right before each operation.
 *
 * Each kind of operation is run COUNT_REPEATS times, with different keys. Most of the time all
 * repeats are equal. Keys whose hashes collide, or a segment that is opened, make a difference;
 * then the figures are those of the majority, and the result says how large it is.
 *
 * Bytes in the paper's layout: at quiescence the store names the fields of its pool
 * (tm_store.fields). Each byte that was written counts, each time, for its share of its field:
 * `paper` bytes for a whole field. Bytes in no field have the name of their region, and count as
 * they are.
 */
#include "checker/models/count.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "checker/models/plain_run.h"
#include "checker/world/world.h"
#include "core/text/error_name.h"
#include "core/verbs_compat.h"

#define QUIESCENT_NS 80000000 /* stores' background tasks sleep for 64 ms at most */
#define KEYS	     (2 + 3 * COUNT_REPEATS)
#define WAKING	     (KEYS - 1) /* the key that wakes the server */
#define MAX_OPS	     (2 + 2 * 8 * COUNT_REPEATS)

_Static_assert(KEYS <= HISTORY_KEYS, "a history holds the keys");

const char *const count_kind_names[COUNT_KINDS] = {
	[COUNT_CREATE] = "create",     [COUNT_UPDATE] = "update",
	[COUNT_GET] = "get",	       [COUNT_GET_SOON] = "get after put",
	[COUNT_GET_MISS] = "get miss", [COUNT_DELETE] = "delete",
	[COUNT_CLEAN] = "clean",
};

/* What is done with an operation of the program. */
struct step {
	uint8_t kind; /* enum count_kind; COUNT_KINDS: not counted */
	bool hurry;   /* the next one does not wait for quiescence */
};

struct write {
	uint64_t off, len;
};

struct field {
	uint64_t len, paper;
	unsigned name; /* index into count.field */
};

struct counter {
	struct count *out;
	struct world *world;
	struct step step[MAX_OPS];
	unsigned steps, at;		   /* `at`: the operation that is on */
	bool wakes;			   /* the server, before each operation that is counted */
	struct count_row row[COUNT_KINDS]; /* .of: so many are done */
	/* of the operation that is on */
	struct count_op op;
	struct waste waste;
	struct op_label label;
	bool returned;
	bool posted;	 /* the client has, and nothing has come back since */
	bool unanswered; /* likewise, and the request is a non-posted one (PCIe) */
	uint64_t events;
	struct write *write;
	unsigned writes, write_room;
	uint8_t *before; /* the pool, when it began */
	/* the store's fields */
	struct tm_fields fields; /* what the store calls */
	struct field *field;
	uint32_t *owner; /* by byte of the pool: index into field */
	unsigned field_count, field_room;
	bool full; /* no memory */
};

/* --- the program --- */

static void add_step(struct counter *c, struct workload *w, enum op_kind op, unsigned key,
		     uint32_t vlen, enum count_kind kind, bool hurry)
{
	assert(c->steps < MAX_OPS);
	c->step[c->steps++] = (struct step){(uint8_t)kind, hurry};
	if (workload_op_add(w, 1, op, key, op == OP_PUT ? vlen : 0))
		c->full = true;
}

static void add(struct counter *c, struct workload *w, enum op_kind op, unsigned key, uint32_t vlen,
		enum count_kind kind, bool hurry)
{
	bool follows = c->steps && c->step[c->steps - 1].hurry;
	if (c->wakes && kind != COUNT_KINDS && !follows)
		add_step(c, w, OP_GET, WAKING, 0, COUNT_KINDS, true);
	add_step(c, w, op, key, vlen, kind, hurry);
}

/* Key number i, of `klen` bytes; all differ, by a number at the end, if it fits. */
static void key_name(unsigned i, uint32_t klen, char name[TM_MAX_KEY])
{
	static const char digits[] = "123456789abcdefghijklmnopqrstuvwxyz";
	_Static_assert(KEYS < sizeof(digits) && KEYS < 100, "one digit for each key, or two");
	memset(name, '0', klen);
	if (klen > 2)
		name[0] = 'k';
	name[klen - 1] = klen > 1 ? (char)('0' + (i + 1) % 10) : digits[i];
	if (klen > 1)
		name[klen - 2] = (char)('0' + (i + 1) / 10);
}

/* Key 0 is for a PUT and a GET that go before: with them a client learns how long objects are, and
 * a server opens what it writes to. Then there are COUNT_REPEATS loaded keys, as many to be
 * created, as many that never exist; and one that wakes the server. */
static int program(struct counter *c, struct workload *w, uint32_t klen, uint32_t vlen, bool cleans)
{
	const unsigned n = COUNT_REPEATS, loaded = 1, created = 1 + n, missing = 1 + 2 * n;
	char name[TM_MAX_KEY];
	snprintf(w->name, sizeof(w->name), "count");
	for (unsigned i = 0; i < KEYS; i++) {
		key_name(i, klen, name);
		int index = workload_key_add(w, name, klen, i < created ? (int32_t)vlen : -1);
		if (index < 0)
			return index;
		assert((unsigned)index == i);
	}
	add(c, w, OP_PUT, 0, vlen, COUNT_KINDS, false);
	add(c, w, OP_GET, 0, vlen, COUNT_KINDS, false);
	for (unsigned i = 0; i < n; i++)
		add(c, w, OP_PUT, created + i, vlen, COUNT_CREATE, false);
	for (unsigned i = 0; i < n; i++)
		add(c, w, OP_PUT, loaded + i, vlen, COUNT_UPDATE, false);
	for (unsigned i = 0; i < n; i++)
		add(c, w, OP_GET, loaded + i, vlen, COUNT_GET, false);
	for (unsigned i = 0; i < n; i++) {
		add(c, w, OP_PUT, loaded + i, vlen, COUNT_KINDS, true);
		add(c, w, OP_GET, loaded + i, vlen, COUNT_GET_SOON, false);
	}
	for (unsigned i = 0; i < n; i++)
		add(c, w, OP_GET, missing + i, vlen, COUNT_GET_MISS, false);
	for (unsigned i = 0; i < n; i++)
		add(c, w, OP_DEL, loaded + i, vlen, COUNT_DELETE, false);
	if (cleans)
		add(c, w, OP_CLEAN, 0, vlen, COUNT_CLEAN, false);
	return c->full ? -ENOMEM : 0;
}

/* --- events --- */

static enum count_side side(const struct actor *who)
{
	return who && who->name[0] == 'c' ? COUNT_CLIENT : COUNT_SERVER; /* "server", "s2" */
}

/* The task that calls the operations. */
static bool is_caller(const struct actor *who)
{
	return who && !strcmp(who->name, "c1");
}

static void note_write(struct counter *c, uint64_t off, uint64_t len)
{
	if (!ARRAY_RESERVE(c->write, c->writes, 1, c->write_room)) {
		c->full = true;
		return;
	}
	c->write[c->writes++] = (struct write){off, len};
}

/* A completion that says no more than that the request has left has not come over the wire. */
static bool came_back(const struct counter *c, uint8_t code)
{
	if (code & IBV_WC_RECV || c->world->setup->hw.transport == TRANSPORT_IB)
		return true;
	return code != IBV_WC_SEND && code != IBV_WC_RDMA_WRITE;
}

static void taken(struct counter *c, struct count_figures *f, const struct actor *who, uint8_t code)
{
	if (side(who) == COUNT_SERVER) {
		f->handled += (code & IBV_WC_RECV) != 0;
		return;
	}
	/* All that comes back while the caller waits for one thing is one round trip. */
	if (is_caller(who) && c->posted && came_back(c, code)) {
		c->posted = c->unanswered = false;
		f->round_trips++;
	}
}

/* The client posts. A fenced request is kept back by its NIC until what is not posted has been
 * answered. */
static void client_posts(struct counter *c, struct count_figures *f, const struct traced *about)
{
	if (about->off && c->unanswered) {
		c->unanswered = false;
		f->round_trips++;
	}
	c->posted = true;
	c->unanswered |= operation_is(about->code, NONPOSTED);
}

static void posted(struct count_figures *f, enum count_side by, uint8_t code)
{
	uint64_t n = 0;
	assert(code < OPERATIONS);
	for (unsigned i = 0; i < COUNT_SIDES * OPERATIONS; i++)
		n += f->message[i / OPERATIONS][i % OPERATIONS];
	f->message[by][code]++;
	if (n < COUNT_REQUESTS) {
		f->request[n].side = (uint8_t)by;
		f->request[n].code = code;
	}
}

static struct count_figures *part_of(struct counter *c, const struct actor *who,
				     const struct traced *about)
{
	bool nic = about->op.kind !=
		   OP_NONE; /* an event of a NIC has a label of its own, a task's has the task's */
	struct op_label op = nic ? about->op : who ? who->op : about->op;
	bool foreground = op_label_equal(op, c->label) && (nic || !c->returned);
	return &c->op.part[foreground ? COUNT_FOREGROUND : COUNT_BACKGROUND];
}

static uint64_t lines_of(uint64_t off, uint64_t len)
{
	return len ? (off + len - 1) / LINE - off / LINE + 1 : 0;
}

static void count_event(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
			const struct traced *about, const char *text)
{
	struct counter *c = arg;
	struct count_figures *f = part_of(c, who, about);
	uint64_t events = c->events++;
	enum count_kind kind = c->at < c->steps ? (enum count_kind)c->step[c->at].kind
						: COUNT_KINDS;
	(void)sim;
	(void)text;
	waste_event(&c->waste, who, pc, about, kind < COUNT_KINDS ? TM_BIT(kind) : 0);
	switch (about->kind) {
	case TRACED_STORE:
		f->cpu_bytes += about->len;
		note_write(c, about->off, about->len);
		break;
	case TRACED_LAND:
		f->nic_bytes += about->len;
		note_write(c, about->off, about->len);
		break;
	case TRACED_FLUSH:
		f->flushed += lines_of(about->off, about->len);
		break;
	case TRACED_FENCE:
		f->fences++;
		break;
	case TRACED_POST:
		posted(f, side(who), about->code);
		if (is_caller(who))
			client_posts(c, f, about);
		break;
	case TRACED_TAKEN:
		taken(c, f, who, about->code);
		break;
	case TRACED_PACKET:
		f->packets++;
		f->wire_bytes += about->len;
		break;
	default:
		c->events = events; /* loads and plain text: polling makes them for ever */
	}
}

/* --- fields --- */

static unsigned field_name(struct count *out, const char *name)
{
	unsigned i = 0;
	while (i < out->fields && strcmp(out->field[i], name))
		i++;
	if (i == out->fields) {
		assert(i < COUNT_FIELDS && strlen(name) < sizeof(out->field[i]));
		strcpy(out->field[out->fields++], name);
	}
	return i;
}

static void take_field(struct tm_fields *fields, const char *name, uint64_t off, uint64_t len,
		       uint64_t paper)
{
	struct counter *c = (struct counter *)((char *)fields - offsetof(struct counter, fields));
	if (!ARRAY_RESERVE(c->field, c->field_count, 1, c->field_room)) {
		c->full = true;
		return;
	}
	assert(off <= c->world->setup->pm_len && len <= c->world->setup->pm_len - off);
	c->field[c->field_count] = (struct field){len, paper, field_name(c->out, name)};
	for (uint64_t i = 0; i < len; i++)
		c->owner[off + i] = c->field_count;
	c->field_count++;
}

/* The operation's writes, by field. */
static void translate(struct counter *c)
{
	const struct setup *s = c->world->setup;
	c->field_count = 0;
	take_field(&c->fields, "elsewhere", 0, s->pm_len, s->pm_len);
	for (unsigned i = 0; i < s->regions; i++)
		take_field(&c->fields, s->region[i].name, s->region[i].off, s->region[i].len,
			   s->region[i].len);
	if (s->store->fields)
		s->store->fields(&c->world->server[0], &c->fields);
	if (c->full)
		return;
	for (unsigned w = 0; w < c->writes; w++) {
		for (uint64_t at = c->write[w].off; at < c->write[w].off + c->write[w].len; at++) {
			const struct field *f = &c->field[c->owner[at]];
			c->op.field_bytes[f->name]++;
			c->op.field_paper[f->name] += (double)f->paper / (double)f->len;
		}
	}
	/* A share of a byte need not have an end in binary. */
	for (unsigned i = 0; i < c->out->fields; i++) {
		c->op.field_paper[i] = (double)(uint64_t)(c->op.field_paper[i] * 1000 + 0.5) / 1000;
		c->op.paper += c->op.field_paper[i];
	}
}

/* --- an operation ends --- */

static int by_line(const void *a, const void *b)
{
	const struct write *x = a, *y = b;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* Distinct lines; the list is put into order. */
static uint64_t lines_written(struct counter *c)
{
	uint64_t n = 0, next = 0; /* all lines before `next` are counted */
	if (c->writes)
		qsort(c->write, c->writes, sizeof(*c->write), by_line);
	for (unsigned i = 0; i < c->writes; i++) {
		uint64_t first = c->write[i].off / LINE,
			 end = (c->write[i].off + c->write[i].len - 1) / LINE + 1;
		first = first > next ? first : next;
		if (end > first) {
			n += end - first;
			next = end;
		}
	}
	return n;
}

static uint64_t bytes_changed(const struct counter *c)
{
	const uint8_t *now = pmem_base(c->world->pm);
	uint64_t n = 0;
	for (size_t i = 0; i < c->world->setup->pm_len; i++)
		n += now[i] != c->before[i];
	return n;
}

static void begin(struct counter *c)
{
	pmem_commit_pending(c->world->pm);
	memset(&c->op, 0, sizeof(c->op));
	c->returned = c->posted = c->unanswered = false;
	c->writes = 0;
	memcpy(c->before, pmem_base(c->world->pm), c->world->setup->pm_len);
}

/* Did the operation do what it is for? */
static void check(struct counter *c, const struct workload_op *op, enum count_kind kind, int error)
{
	const struct history *h = c->world->history;
	const struct history_op *last = &h->op[h->ops - 1];
	const char *key = c->world->setup->w.key[op->key].name;
	bool exists = kind != COUNT_GET_MISS && op->key != WAKING;
	if (c->out->why[0])
		return;
	if (op->kind != OP_CLEAN)
		error = last->error;
	if (error)
		snprintf(c->out->why, sizeof(c->out->why), "%s of %s fails with %s",
			 kind == COUNT_KINDS ? "an operation" : count_kind_names[kind], key,
			 error_name(error).text);
	else if (op->kind == OP_GET && (last->value >= 0) != exists)
		snprintf(c->out->why, sizeof(c->out->why), "GET %s returns %s", key,
			 last->value >= 0	       ? "a value, and the key does not exist"
			 : last->value == VALUE_ABSENT ? "not found, and the key exists"
						       : "bytes that no PUT wrote");
}

static void between(void *arg, struct world *world, const struct workload_op *op, int error)
{
	struct counter *c = arg;
	const struct step *step = &c->step[c->at++];
	uint64_t seen;
	c->returned = true;
	check(c, op, step->kind, error);
	do {
		seen = c->events;
		if (!step->hurry)
			sim_sleep(world->sim, QUIESCENT_NS);
	} while (c->events != seen);
	if (step->kind != COUNT_KINDS) {
		pmem_commit_pending(world->pm);
		translate(c);
		c->op.lines = lines_written(c);
		c->op.changed = bytes_changed(c);
		struct count_row *row = &c->row[step->kind];
		row->all[row->of++] = c->op;
	}
	begin(c);
	c->label = (struct op_label){0};
	if (c->at < c->steps) {
		const struct workload_op *next = &world->setup->w.client[0].op[c->at];
		c->label = (struct op_label){1, next->kind, next->nth};
	}
}

/* --- a run --- */

/* Bytes that are changed are fewer where a value has by chance what was there before. */
static bool alike(const struct count_op *a, const struct count_op *b)
{
	return !memcmp(a, b, offsetof(struct count_op, changed));
}

/* What most of them are; among several, the first. */
static void typical(struct count_row *row)
{
	for (unsigned i = 0; i < row->of; i++) {
		struct count_op op = row->all[i];
		unsigned times = 0;
		for (unsigned j = 0; j < row->of; j++) {
			if (!alike(&op, &row->all[j]))
				continue;
			times++;
			op.changed = row->all[j].changed > op.changed ? row->all[j].changed
								      : op.changed;
		}
		if (times > row->times) {
			row->times = times;
			row->op = op;
		}
	}
}

static int run_setup(struct counter *c, struct setup *s)
{
	const struct plain_run how = {.between = between, .tracer = count_event, .arg = c};
	int error = plain_run(s, &how, &c->world, c->out->why);
	if (error || c->full)
		return error ? error : -ENOMEM;
	for (unsigned k = 0; k < COUNT_KINDS; k++) {
		if (!c->row[k].of)
			continue;
		c->row[k].kind = k;
		typical(&c->row[k]);
		c->out->row[c->out->rows++] = c->row[k];
	}
	memcpy(c->out->waste, c->waste.row, sizeof(c->out->waste));
	c->out->wastes = c->waste.rows;
	return c->out->why[0] ? -EPROTO : 0;
}

int count_run(const struct setup *base, uint32_t klen, uint32_t vlen, struct count *out)
{
	struct counter *c = calloc(1, sizeof(*c));
	struct workload w = {0};
	struct setup s = {0};
	int error = c ? 0 : -ENOMEM;
	assert(klen >= 1 && klen <= TM_MAX_KEY && vlen >= COUNT_MIN_VLEN && vlen <= TM_MAX_VALUE);
	memset(out, 0, sizeof(*out));
	out->klen = klen;
	out->vlen = vlen;
	out->paper = base->store->fields != NULL;
	if (!error) {
		c->out = out;
		c->wakes = base->store->naps;
		c->fields.field = take_field;
		error = program(c, &w, klen, vlen, base->store->clean != NULL);
	}
	if (!error)
		error = setup_like(&s, base, &w);
	if (!error) {
		c->before = malloc(s.pm_len);
		c->owner = calloc(s.pm_len, sizeof(*c->owner));
		error = c->before && c->owner ? waste_open(&c->waste, &s) : -ENOMEM;
		if (!error)
			error = run_setup(c, &s);
	}
	if (c) {
		waste_close(&c->waste);
		free(c->write);
		free(c->before);
		free(c->owner);
		free(c->field);
	}
	free(c);
	workload_free(&w);
	setup_free(&s);
	return error;
}
