/*
 * NAME: a store of two servers for Tidemark to test: a primary, which clients ask, and its backup. Each may lose its power alone.
 *
 * An update becomes a record at the end of the primary's log in persistent memory (PM), and then of the backup's. It is durable
 * in both before the client has its reply. If the backup does not answer, the primary takes it out of the configuration and goes
 * on alone. If the primary's lease has ended, the backup becomes the primary. A server that begins gets a copy of the log from
 * the one that serves, and is the backup then. All this is under "how they begin, and what they do together".
 *
 * Connections, and who sends what, are in <tidemark/serve.h>; the configuration is that of <tidemark/config.h>.
 * `tidemark crashtest ./NAME.so` says whether the store keeps the promises at the end of this file.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/config.h>
#include <tidemark/serve.h>
#include <tidemark/tidemark.h>

/* Knobs, by their places in the list at the end. */
enum { KNOB_PERSIST, KNOB_COPY };
enum { PERSIST_BOTH, PERSIST_FLAG };
enum { COPY_FIRST, COPY_LATER };

/* --- how both begin --- */

/* Messages between the servers. */
enum {
	JOIN = DEL + 1,	    /* to the primary: send me your log, I am your backup */
	EMPTY,		    /* to the backup: your log is to be empty, */
	COPY_PUT, COPY_DEL, /* ... this is its next record */
};

#define NAP_NS	    10000
#define PATIENCE_NS 1000000

struct member {
	struct server s;
	unsigned me, other;	     /* numbers of the servers: 0 and 1 */
	bool serves;		     /* it is the primary, ... */
	struct rt_config config;     /* ... since it knew of this configuration */
	bool follows;		     /* it takes copies */
	struct serve_client *backup; /* the primary's connection to it; NULL: there is none */
	size_t copied;		     /* records that the backup has */
	bool calls;		     /* the server's task waits for the other server */
};

/* For the other server it is a client, too, with a number after those of all clients. */
static int connect_to_other(const struct member *m, void **connection)
{
	struct tm_env env = m->s.env;
	env.server = m->other;
	env.client = env.params->clients + 1 + m->me;
	return connect_client(&env, connection);
}

/* The next configuration after `seen`, if nobody has made one since. */
static int configure(const struct rt_config *seen, uint32_t members, unsigned primary)
{
	const struct rt_config next = {.epoch = seen->epoch + 1, .members = members, .primary = primary};
	return rt_config_set(&next);
}

/* While its lease lasts nobody has taken over from it. */
static bool is_primary(const struct member *m)
{
	return m->serves && rt_now() < rt_config_lease(&m->config);
}

/* The primary says who is a member, as long as it is the primary. If the service does not answer, it may have been done. */
static int set_members(struct member *m, uint32_t members)
{
	struct rt_config now;
	int rc;
	do {
		rc = rt_config_get(&now);
		if (!rc)
			rc = now.primary == m->me ? configure(&now, members, m->me) : -EHOSTDOWN;
	} while (rc == -EAGAIN || (rc == -ETIMEDOUT && is_primary(m)));
	m->serves = !rc;
	return rc ? -EHOSTDOWN : 0;
}

static int go_on_alone(struct member *m)
{
	m->backup = NULL;
	return set_members(m, 1u << m->me);
}

/* Whatever the primary has, its backup has, or there is none. */
static int copy_to_backup(struct member *m)
{
	m->calls = true;
	while (m->backup && m->copied < m->s.records) {
		const struct record *r = record_at(&m->s.env, m->copied++);
		const bool del = r->vlen == DELETED;
		if (call(m->backup, del ? COPY_DEL : COPY_PUT, r->key, r->klen, r->value, del ? 0 : r->vlen)) {
			m->calls = false;
			return go_on_alone(m);
		}
	}
	m->calls = false;
	return 0;
}

/* The other server has asked to be the backup. It is a member once it has everything. */
static int take_in(struct member *m)
{
	void *connection;
	int rc = go_on_alone(m);
	if (!rc)
		rc = connect_to_other(m, &connection);
	if (!rc)
		rc = call(connection, EMPTY, "", 0, NULL, 0);
	if (rc)
		return rc;
	m->backup = connection;
	m->copied = 0;
	rc = copy_to_backup(m);
	return rc || !m->backup ? rc : set_members(m, 3);
}

static void make_empty(struct server *s)
{
	while (s->records) {
		struct record *r = record_at(&s->env, --s->records);
		r->used = 0;
		pmem_persist(&r->used, sizeof(r->used));
	}
}

/* Only this task, the server's, changes the log. */
static size_t handle_member(void *arg, const void *request, void *answer)
{
	const struct message *q = request;
	struct message *reply = answer;
	struct member *m = arg;
	const bool later = m->s.env.params->knob[KNOB_COPY] == COPY_LATER;
	size_t bytes = sizeof(*reply);
	memset(reply, 0, sizeof(*reply));
	if (q->op == EMPTY && !m->serves) {
		make_empty(&m->s);
		m->follows = true;
	} else if ((q->op == COPY_PUT || q->op == COPY_DEL) && m->follows) {
		reply->status = append(&m->s, q, q->op == COPY_DEL ? DELETED : q->vlen);
	} else if (q->op == JOIN && m->serves) {
		reply->status = take_in(m);
	} else if (q->op < JOIN && m->serves) {
		int rc = later ? copy_to_backup(m) : 0;
		bytes = handle(&m->s, request, answer);
		if (!later)
			rc = copy_to_backup(m);
		/* Now that it knows the answer: may it give it? */
		if (rc || !is_primary(m))
			reply->status = rc ? rc : -EHOSTDOWN;
	} else {
		reply->status = -EHOSTDOWN;
	}
	return reply->status ? sizeof(*reply) : bytes;
}

/* Only with the configuration on which it was decided: if there is another one by now, somebody else has served. */
static void take_over(struct member *m, const struct rt_config *seen)
{
	m->backup = NULL;
	m->config = *seen;
	m->follows = false; /* what the old primary has sent and this server has not handled, comes too late */
	m->serves = !configure(seen, 1u << m->me, m->me);
}

static void join(struct member *m)
{
	void *connection;
	m->backup = NULL; /* nor will it call */
	if (connect_to_other(m, &connection) || call(connection, JOIN, "", 0, NULL, 0))
		rt_sleep(NAP_NS);
}

/* What a server does besides answering. */
static void keeper(void *arg)
{
	struct member *m = arg;
	for (;;) {
		struct rt_config now;
		if (rt_config_get(&now))
			continue; /* the service does not hear this server */
		m->serves = is_primary(m) && now.primary == m->me;
		const bool member = now.members >> m->me & 1, alive = now.alive >> now.primary & 1;
		if (m->serves || (member ? alive && now.primary != m->me : !alive))
			rt_config_wait(&now); /* nothing to do until it is another one */
		else if (member)
			take_over(m, &now);
		else if (m->calls)
			rt_sleep(NAP_NS); /* the other server could not call this one */
		else
			join(m);
	}
}

static int serve(const struct tm_env *env)
{
	struct member *m = calloc(1, sizeof(*m));
	struct tm_params with_servers = *env->params;
	struct tm_env more = *env;
	if (!m)
		return -ENOMEM;
	m->s.env = *env;
	m->me = env->server;
	m->other = !m->me;
	while (record_at(env, m->s.records)->used)
		m->s.records++;
	with_servers.clients += 2;
	more.params = &with_servers;
	int rc = serve_init(&m->s.serve, &more, message_bytes(env->params), handle_member, m);
	if (!rc)
		rc = serve_start(&m->s.serve);
	/* The primary may have gone on while this server was away: then it is no member until it has a copy. */
	struct rt_config now;
	do
		rt_config_get(&now);
	while (now.primary != m->me && now.members >> m->me & 1 && now.alive >> now.primary & 1 &&
	       configure(&now, now.members & ~(1u << m->me), now.primary));
	if (!rc)
		rc = rt_spawn("keeper", keeper, m);
	/* Clients come when this is done: the primary waits for its backup, if that is there. */
	const uint64_t until = rt_now() + PATIENCE_NS;
	while (!rc && now.primary == m->me && !(m->serves && (m->backup || now.alive != 3)) && rt_now() < until) {
		rt_sleep(NAP_NS);
		rt_config_get(&now);
	}
	return rc;
}

static int open_client(const struct tm_env *env, void **handle)
{
	struct tm_env to = *env;
	struct rt_config now;
	rt_config_get(&now);
	to.server = now.primary;
	return connect_client(&to, handle);
}

/* --- its knobs, and what it promises --- */

static const struct tm_knob knobs[] = {
	[KNOB_PERSIST] = {"persist", "both flag", "what is made durable before the reply: the record and its flag, or the flag"},
	[KNOB_COPY] = {"copy", "first later", "when the backup gets a record: before the client's reply, or before the next request"},
	{NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"flag_only", "persist=flag", "a seeded bug: the flag may be durable before the record is",
	 TM_BIT(TM_RDA) | TM_BIT(TM_DUR)},
	{"copy_later", "copy=later", "a seeded bug: the primary may be lost before its backup has what it acknowledged",
	 TM_BIT(TM_DUR) | TM_BIT(TM_DURN)},
	{NULL, NULL, NULL, 0},
};

#define WHAT "a log at a primary, and its backup"
#define SERVERS 2
/* Not KEEP: what one server has made durable and the other one has not got, nobody was told of, and it may be lost with the
 * one. */
#define PROMISES                                                                                                        \
	(TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_DURN) | TM_BIT(TM_FENCE) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) |        \
	 TM_BIT(TM_NORES) | TM_BIT(TM_OK) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK))
