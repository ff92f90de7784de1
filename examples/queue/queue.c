/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue: a store that is no table of keys and values, but a queue. What clients can do with it is the list `calls` at the end;
 * what that means is a model, 20 lines; and what the model does not say is a contract of the store's own: no value is
 * given to two clients, whatever fails.
 *
 * The queue is a log in PM: an entry for each value, with a checksum over it, and a mark on those that have been taken.
 */
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/serve.h>
#include <tidemark/tidemark.h>

/* Knobs, by their places in the list at the end. */
enum { KNOB_MARK, KNOB_SUM, KNOB_END };
enum { MARK_FIRST, MARK_LATER, MARK_NEVER };

/* --- the log in PM --- */

/* All entries have the same size. The log ends at the first that is not whole. */
struct entry {
	uint64_t sum;	 /* of the number, the length and the value */
	uint32_t number; /* 1, 2, ...: an older entry's bytes are no entry */
	uint32_t vlen;
	uint64_t taken; /* 1: a client has the value */
	uint8_t value[];
};

static size_t entry_bytes(const struct tm_params *p)
{
	size_t bytes = sizeof(struct entry) + p->max_vlen;
	return (bytes + TM_LINE - 1) / TM_LINE * TM_LINE;
}

/* One more than there can be: the last one stays empty. */
static size_t pm_bytes(const struct tm_params *p)
{
	return ((size_t)p->updates + 1) * entry_bytes(p);
}

static struct entry *entry_at(const struct tm_env *env, size_t i)
{
	return (struct entry *)(env->pm + i * entry_bytes(env->params));
}

/* FNV-1a. */
static uint64_t hash(uint64_t seed, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	for (size_t i = 0; i < len; i++)
		seed = (seed ^ at[i]) * 1099511628211u;
	return seed;
}

#define SEED 14695981039346656037u

static uint64_t sum_of(const struct entry *e)
{
	return hash(hash(SEED, &e->number, sizeof(e->number) + sizeof(e->vlen)), e->value, e->vlen);
}

static bool is_whole(const struct tm_env *env, size_t i)
{
	const struct entry *e = entry_at(env, i);
	return e->number == i + 1 && e->vlen <= env->params->max_vlen &&
	       (env->params->knob[KNOB_SUM] || rt_check(e->sum == sum_of(e)));
}

static size_t count_entries(const struct tm_env *env)
{
	size_t n = 0;
	while (is_whole(env, n))
		n++;
	return n;
}

static unsigned regions(const struct tm_params *p, struct tm_region *out, unsigned max)
{
	if (max)
		out[0] = (struct tm_region){"log", 0, pm_bytes(p)};
	return max ? 1 : 0;
}

/* Zeros are an empty queue. */
static int format(const struct tm_env *env)
{
	pmem_persist(env->pm, env->pm_len);
	return 0;
}

/* What is whole counts from now on, and may be in a cache still, if only the server's process has died. The entry after it may
 * be half of one that was never acknowledged. */
static int recover(const struct tm_env *env)
{
	size_t n = count_entries(env);
	memset(entry_at(env, n), 0, entry_bytes(env->params));
	pmem_persist(env->pm, (n + 1) * entry_bytes(env->params));
	return 0;
}

static void fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	size_t n = count_entries(env);
	if (entry_at(env, n)->number)
		fsck->bad(fsck, "entry %zu is not whole", n);
	for (size_t i = 0; i < n; i++)
		if (entry_at(env, i)->taken > 1)
			fsck->bad(fsck, "the mark of entry %zu makes no sense", i);
}

/* --- messages --- */

enum { ENQUEUE = 1, DEQUEUE, LIST };

/* A request, or the reply to one. */
struct message {
	uint32_t op;
	int32_t status; /* 0 or -errno */
	uint32_t len;
	uint32_t empty; /* DEQUEUE: there was nothing */
	uint8_t bytes[];
};

#define LIST_BYTES 2048 /* of what LIST answers, at most */

static size_t message_bytes(const struct tm_params *p)
{
	return sizeof(struct message) + (p->max_vlen > LIST_BYTES ? p->max_vlen : LIST_BYTES);
}

/* --- the server --- */

struct server {
	struct tm_env env;
	struct serve_server serve;
	size_t entries; /* in use */
};

static int enqueue(struct server *s, const struct message *m)
{
	struct entry *e = entry_at(&s->env, s->entries);
	if ((s->entries + 2) * entry_bytes(s->env.params) > s->env.pm_len || rt_pm_full())
		return -ENOSPC;
	e->number = (uint32_t)s->entries + 1;
	e->vlen = m->len;
	memcpy(e->value, m->bytes, m->len);
	e->sum = sum_of(e);
	pmem_persist(e, entry_bytes(s->env.params));
	s->entries++;
	return 0;
}

/* The oldest that no client has. NULL: there is none. */
static struct entry *oldest(const struct server *s)
{
	struct entry *found = NULL;
	for (size_t i = 0; i < s->entries; i++)
		if (!entry_at(&s->env, i)->taken) {
			found = entry_at(&s->env, i);
			if (!s->env.params->knob[KNOB_END])
				break;
		}
	return found;
}

static void dequeue(struct server *s, struct message *reply)
{
	struct entry *e = oldest(s);
	reply->empty = !e;
	if (!e)
		return;
	reply->len = e->vlen;
	memcpy(reply->bytes, e->value, e->vlen);
	e->taken = 1;
	/* Durable before the client has the value: or else the next one to ask after a power failure would get it, too. */
	if (s->env.params->knob[KNOB_MARK] == MARK_FIRST)
		pmem_persist(&e->taken, sizeof(e->taken));
}

/* A hash of each value in the queue. */
static void list(const struct server *s, struct message *reply)
{
	for (size_t i = 0; i < s->entries && reply->len + 8 <= LIST_BYTES; i++) {
		const struct entry *e = entry_at(&s->env, i);
		uint64_t one = hash(SEED, e->value, e->vlen);
		if (e->taken)
			continue;
		memcpy(reply->bytes + reply->len, &one, sizeof(one));
		reply->len += sizeof(one);
	}
}

/* A bug of some stores: what was promised becomes durable after the reply. */
static void mark_later(const struct server *s)
{
	for (size_t i = 0; i < s->entries && s->env.params->knob[KNOB_MARK] == MARK_LATER; i++)
		pmem_persist(&entry_at(&s->env, i)->taken, sizeof(uint64_t));
}

static size_t handle(void *arg, const void *request, void *answer)
{
	const struct message *m = request;
	struct message *reply = answer;
	struct server *s = arg;
	mark_later(s);
	memset(reply, 0, sizeof(*reply));
	if (m->op == ENQUEUE)
		reply->status = enqueue(s, m);
	else if (m->op == DEQUEUE)
		dequeue(s, reply);
	else
		list(s, reply);
	return sizeof(*reply) + reply->len;
}

static int serve(const struct tm_env *env)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->env = *env;
	s->entries = count_entries(env);
	int rc = serve_init(&s->serve, env, message_bytes(env->params), handle, s);
	return rc ? rc : serve_start(&s->serve);
}

/* --- a client --- */

static int open_client(const struct tm_env *env, void **handle)
{
	struct serve_client *c = calloc(1, sizeof(*c));
	*handle = c;
	return c ? serve_connect(c, env, message_bytes(env->params)) : -ENOMEM;
}

static int ask(struct serve_client *c, uint32_t op, const void *bytes, size_t len)
{
	struct message *m = (struct message *)c->request;
	memset(m, 0, sizeof(*m));
	m->op = op;
	m->len = (uint32_t)len;
	if (len)
		memcpy(m->bytes, bytes, len);
	int rc = serve_call(c, sizeof(*m) + len);
	return rc ? rc : ((const struct message *)c->reply)->status;
}

static int run_enqueue(void *client, const struct tm_call *call, struct tm_answer *answer)
{
	(void)answer;
	return ask(client, ENQUEUE, call->value, call->vlen);
}

/* The value, after a byte that says that there is one. */
static int run_dequeue(void *client, const struct tm_call *call, struct tm_answer *answer)
{
	struct serve_client *c = client;
	const struct message *m = (const struct message *)c->reply;
	int rc = ask(c, DEQUEUE, NULL, 0);
	(void)call;
	if (!rc && !m->empty) {
		answer->bytes[0] = 1;
		memcpy(answer->bytes + 1, m->bytes, m->len < TM_MAX_ANSWER ? m->len : TM_MAX_ANSWER - 1);
		answer->len = 1 + (m->len < TM_MAX_ANSWER ? m->len : TM_MAX_ANSWER - 1);
	}
	return rc;
}

static int run_list(void *client, const struct tm_call *call, struct tm_answer *answer)
{
	struct serve_client *c = client;
	const struct message *m = (const struct message *)c->reply;
	int rc = ask(c, LIST, NULL, 0);
	(void)call;
	if (!rc) {
		answer->len = m->len;
		memcpy(answer->bytes, m->bytes, answer->len);
	}
	return rc;
}

/* --- what it means --- */

static const struct tm_call_type calls[] = {
	{.name = "enqueue", .what = "add a value at the end", .value = true, .run = run_enqueue},
	{.name = "dequeue", .what = "take the first value", .run = run_dequeue},
	{.name = "list", .what = "look at all of them", .looks = true, .run = run_list},
	{.name = NULL},
};
enum { CALL_ENQUEUE, CALL_DEQUEUE, CALL_LIST };

/* The values in the queue, as hashes. */
struct state {
	uint64_t n, value[128];
};

static bool apply(void *state, const struct tm_event *e)
{
	struct state *q = state;
	if (e->type == &calls[CALL_ENQUEUE]) {
		if (q->n == sizeof(q->value) / sizeof(q->value[0]))
			return false;
		q->value[q->n++] = hash(SEED, e->call.value, e->call.vlen);
		return true;
	}
	if (e->type == &calls[CALL_LIST])
		return !e->answered || (e->len == q->n * 8 && !memcmp(e->answer, q->value, e->len));
	if (!q->n)
		return !e->answered || !e->len;
	if (e->answered && (!e->len || hash(SEED, e->answer + 1, e->len - 1) != q->value[0]))
		return false;
	memmove(&q->value[0], &q->value[1], --q->n * sizeof(q->value[0]));
	q->value[q->n] = 0; /* equal queues have equal bytes */
	return true;
}

static const struct tm_model model = {.bytes = sizeof(struct state), .apply = apply};

/* Whatever fails, a value is given to one client. (Values of fewer than 8 bytes may be equal.) */
static void judge(const struct tm_history *h, struct tm_judgement *judgement)
{
	for (unsigned i = 0; i < h->events; i++) {
		const struct tm_event *e = &h->event[i];
		if (e->type != &calls[CALL_DEQUEUE] || !e->answered || e->len < 9)
			continue;
		for (unsigned k = 0; k < i; k++) {
			const struct tm_event *before = &h->event[k];
			if (before->type == e->type && before->answered && before->len == e->len &&
			    !memcmp(before->answer, e->answer, e->len))
				judgement->broken(judgement, (int)i, "client %u and client %u were given the same value",
						  before->client, e->client);
		}
	}
}

static const struct tm_workload workloads[] = {
	{"drain", NULL, {"enqueue 40, enqueue 40", "dequeue, dequeue, dequeue"}, "a consumer that is faster than its producer"},
	{"two-consumers", NULL, {"enqueue 40, enqueue 1000", "dequeue", "dequeue"}, "two want the same value"},
	{NULL, NULL, {NULL}, NULL},
};

/* --- what Tidemark knows of it --- */

static const struct tm_knob knobs[] = {
	[KNOB_MARK] = {"mark", "first later never", "when the mark of a value that was taken is made durable, against the reply"},
	[KNOB_SUM] = {"sum", "on off", "recovery compares checksums"},
	[KNOB_END] = {"from", "front back", "where values are taken"},
	{NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"mark_later", "mark=later", "a seeded bug: the client has the value before the mark is durable",
	 TM_BIT(TM_DUR) | TM_BIT(TM_OWN)},
	{"mark_never", "mark=never", "a seeded bug: the mark is not made durable", TM_BIT(TM_DUR) | TM_BIT(TM_OWN)},
	{"no_sum", "sum=off", "a seeded bug: recovery takes entries that are half there",
	 TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_FSCK)},
	{"stack", "from=back", "a seeded bug: it gives the value that came last", TM_BIT(TM_LIN)},
	{NULL, NULL, NULL, 0},
};

const struct tm_store queue_store = {
	.name = "queue",
	.what = "a queue that its server keeps as a log",
	.promises = TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK) |
		    TM_BIT(TM_OWN),
	.knobs = knobs,
	.variants = variants,
	.pm_bytes = pm_bytes,
	.regions = regions,
	.format = format,
	.recover = recover,
	.serve = serve,
	.fsck = fsck,
	.open = open_client,
	.calls = calls,
	.workloads = workloads,
	.model = &model,
	.judge = judge,
};
