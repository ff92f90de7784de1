/* SPDX-License-Identifier: BSD-3-Clause */
/* A live client: a host with one store client. See session.h. */
#include "scenarios/workload/session.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/live/live.h"
#include "core/live/live_config.h"
#include "core/live/rendezvous.h"

struct session {
	struct live_store store;
	struct tm_env env;
	struct live_host *host;
	void *client;
	struct session_injected before; /* when it began */
};

/* An operation, for live_call(). */
struct operation {
	struct session *session;
	const void *key, *value;
	size_t klen, vlen, cap;
	void *out;
	size_t *out_len;
};

static int op_open(void *arg)
{
	struct session *s = arg;
	return s->store.store->open(&s->env, &s->client);
}

static int op_put(void *arg)
{
	const struct operation *o = arg;
	return o->session->store.store->put(o->session->client, o->key, o->klen, o->value, o->vlen);
}

static int op_get(void *arg)
{
	const struct operation *o = arg;
	return o->session->store.store->get(o->session->client, o->key, o->klen, o->out, o->cap,
					    o->out_len);
}

static int op_del(void *arg)
{
	const struct operation *o = arg;
	return o->session->store.store->del(o->session->client, o->key, o->klen);
}

/* What keeps a client out, in words. */
static void explain(int error, const char *server, unsigned client, char *why, size_t n)
{
	if (error == -EINVAL)
		snprintf(why, n, "\"%.80s\": expected ADDRESS:PORT", server);
	else if (error == -EUSERS)
		snprintf(why, n, "%s: it has no number for another client", server);
	else if (error == -EBUSY)
		snprintf(why, n, "%s: there is a client number %u already", server, client);
	else if (error == -EPROTO)
		snprintf(why, n, "%s: what answers there is no tidemark server", server);
	else
		snprintf(why, n, "%s: %s", server, strerror(-error));
}

static int parse(struct session *s, const char *server, const char *text, char *why, size_t n)
{
	struct input_error wrong;
	int error = live_store_parse(&s->store, text, live_store_find, &wrong);
	if (error)
		snprintf(why, n, "%s: what it serves, line %u: %s", server, wrong.line,
			 wrong.message);
	return error;
}

/* Of several servers: the service is at `server`, and says where they are. Clients ask the one that
 * it names first; the boot is the service's count. */
static int find_server(struct session *s, const char *service, unsigned client, char *text,
		       char *why, size_t n)
{
	struct config_answer now = {0};
	int error = live_ask_service(s->host, &now);
	for (unsigned i = 0; i < now.servers && !error; i++) {
		const unsigned k = (now.primary + i) % now.servers;
		if (!(now.alive >> k & 1) || live_greet(s->host, k, now.address[k], text))
			continue;
		error = parse(s, now.address[k], text, why, n);
		s->store.boot = now.boot;
		if (!error && client > s->store.params.clients)
			explain(error = -EUSERS, service, client, why, n);
		return error;
	}
	snprintf(why, n, "%s: %s", service, error ? strerror(-error) : "no server is alive");
	return error ? error : -ENOTCONN;
}

int session_open(struct session **out, struct ibv_context *verbs, const char *server,
		 unsigned client, char *why, size_t n)
{
	char text[RENDEZVOUS_TEXT];
	struct rendezvous *control = NULL;
	struct session *s = calloc(1, sizeof(*s));
	if (!s) {
		snprintf(why, n, "out of memory");
		return -ENOMEM;
	}
	int error = rendezvous_connect(&control, server, &client, text);
	const bool several = !error && !strcmp(text, CONFIG_MAGIC "\n");
	const struct live_peers peers = {.server = several ? NULL : control,
					 .service = several ? control : NULL,
					 .address = server,
					 .number = client};
	if (error)
		explain(error, server, client, why, n);
	else if (!several)
		error = parse(s, server, text, why, n);
	if (!error) {
		error = live_host_new(&s->host, verbs, &peers);
		if (error)
			snprintf(why, n, "%s", strerror(-error));
	}
	if (error) {
		rendezvous_close(control);
		free(s);
		return error;
	}
	error = several ? find_server(s, server, client, text, why, n) : 0;
	if (error) {
		session_close(s);
		return error;
	}
	s->env = (struct tm_env){.params = &s->store.params, .verbs = verbs, .client = client};
	session_injected(s, &s->before);
	error = live_call(s->host, op_open, s);
	if (error) {
		snprintf(why, n, "%s: client %u cannot connect: %s", server, client,
			 strerror(-error));
		session_close(s);
		return error;
	}
	*out = s;
	return 0;
}

void session_injected(struct session *s, struct session_injected *out)
{
	struct session_injected now = {.bad = live_bad_completion(s->host)};
	live_injected(s->host, 0, &now.own);
	now.gone = live_ask_injected(s->host, &now.server) != 0;
	now.own.calls -= s->before.own.calls;
	if (!now.gone)
		now.server.dropped -= s->before.server.dropped;
	*out = now;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	live_host_free(s->host);
	free(s);
}

const struct live_store *session_store(const struct session *s)
{
	return &s->store;
}

unsigned session_client(const struct session *s)
{
	return s->env.client;
}

int session_put(struct session *s, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct operation o = {.session = s, .key = key, .klen = klen, .value = value, .vlen = vlen};
	return live_call(s->host, op_put, &o);
}

int session_get(struct session *s, const void *key, size_t klen, void *value, size_t cap,
		size_t *vlen)
{
	struct operation o = {
		.session = s, .key = key, .klen = klen, .out = value, .cap = cap, .out_len = vlen};
	return live_call(s->host, op_get, &o);
}

int session_del(struct session *s, const void *key, size_t klen)
{
	struct operation o = {.session = s, .key = key, .klen = klen};
	return live_call(s->host, op_del, &o);
}

void session_stop(struct session *s)
{
	live_host_stop(s->host);
}
