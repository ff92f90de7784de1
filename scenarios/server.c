/* SPDX-License-Identifier: BSD-3-Clause */
/* A store's server in the live world: its pool, its host, its clients. See server.h. */
#include "scenarios/server.h"
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "core/live/live.h"
#include "core/live/live_config.h"
#include "core/live/rendezvous.h"
#include "scenarios/stores.h"

__attribute__((format(printf, 3, 4))) static int wrong(struct server *s, int error, const char *fmt,
						       ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	return error;
}

/* --- the pool --- */

static bool zeroed(const uint8_t *bytes, size_t n)
{
	return !n || (!bytes[0] && !memcmp(bytes, bytes + 1, n - 1));
}

static int set_header(struct server *s, uint32_t boot, bool running)
{
	char text[POOL_TEXT];
	s->store.boot = boot;
	s->store.running = running;
	int error = live_store_print(&s->store, text, sizeof(text));
	if (!error)
		error = live_pm_set_header(s->pm, text);
	return error ? wrong(s, -EIO, "%s: its header cannot be written: %s", s->pm_setup.path,
			     strerror(-error))
		     : 0;
}

static int write_back(struct server *s)
{
	int error = live_pm_save(s->pm);
	return error ? wrong(s, -EIO, "%s: %s", s->pm_setup.path, strerror(-error)) : 0;
}

/* Formatting that was cut short has left anything; what belongs to another program stays. */
static int make_empty(struct server *s)
{
	uint8_t *pool = live_pm_pool(s->pm);
	size_t n = live_pm_pool_bytes(s->pm);
	if (!*live_pm_header(s->pm) && !zeroed(pool, n))
		return wrong(s, -EINVAL, "%s: holds something that is no pool; expected zeroes",
			     s->pm_setup.path);
	int error = set_header(s, 0, false);
	if (error)
		return error;
	memset(pool, 0, n);
	return write_back(s);
}

int server_open_pool(struct server *s)
{
	char reason[256];
	s->pm_setup.pool_bytes = s->store.pool_bytes;
	if (live_pm_open(&s->pm, &s->pm_setup, reason, sizeof(reason)))
		return wrong(s, -EINVAL, "%s", reason);
	return s->fresh ? make_empty(s) : set_header(s, s->store.boot + 1, true);
}

/* --- the store --- */

static void defect(struct tm_fsck *fsck, const char *fmt, ...)
{
	struct server *s = (struct server *)((char *)fsck - offsetof(struct server, fsck));
	char line[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	s->defects++;
	s->defect(s, line);
}

/* On a task of the host. */
static int format_or_recover(void *arg)
{
	struct server *s = arg;
	const struct tm_store *store = s->store.store;
	int error = s->fresh ? store->format(&s->env) : store->recover(&s->env);
	if (!error)
		store->fsck(&s->env, &s->fsck);
	return error;
}

static int start_serving(void *arg)
{
	struct server *s = arg;
	return s->store.store->serve(&s->env);
}

/* --- several servers --- */

/* A pool without a store would stand for what the others have been asked to copy. */
static int check_members(struct server *s)
{
	const unsigned servers = store_servers(s->store.store, &s->store.params),
		       me = s->number - 1;
	struct config_answer now;
	if (me >= servers)
		return wrong(s, -EINVAL, "--number: %u; %s has %u servers", s->number,
			     s->store.store->name, servers);
	int error = live_ask_service(s->host, &now);
	if (error)
		return wrong(s, -EINVAL, "--members: %.80s: %s", s->members, strerror(-error));
	if (now.servers != servers)
		return wrong(s, -EINVAL, "--members: %.80s is for %u servers; %s has %u",
			     s->members, now.servers, s->store.store->name, servers);
	if (s->fresh && now.primary == me && *now.address[me])
		return wrong(s, -EINVAL,
			     "%s: a new pool, but server %u is the primary, and has had one; "
			     "expected that",
			     s->pm_setup.path, s->number);
	return 0;
}

static int open_host(struct server *s)
{
	struct live_peers peers = {.address = s->members, .number = config_number(s->number - 1)};
	char text[RENDEZVOUS_TEXT];
	int error;
	if (!s->members)
		return live_host_new(&s->host, s->verbs, NULL);
	error = rendezvous_connect(&peers.service, s->members, &peers.number, text);
	if (!error && strcmp(text, CONFIG_MAGIC "\n"))
		error = -EPROTO;
	if (!error)
		error = live_host_new(&s->host, s->verbs, &peers);
	if (error) {
		rendezvous_close(peers.service);
		return wrong(s, -EINVAL, "--members: %.80s: %s", s->members,
			     error == -EBUSY	? "that server is there already"
			     : error == -EPROTO ? "what answers there is no tidemark members"
						: strerror(-error));
	}
	return check_members(s);
}

int server_start(struct server *s)
{
	const struct tm_store *store = s->store.store;
	int error = open_host(s);
	if (error)
		return s->why[0] ? error : wrong(s, -EIO, "serve: %s", strerror(-error));
	s->store.params.server = s->members ? s->number - 1 : 0;
	s->env = (struct tm_env){.params = &s->store.params,
				 .server = s->store.params.server,
				 .servers = store_servers(store, &s->store.params),
				 .verbs = s->verbs,
				 .pm = live_pm_pool(s->pm),
				 .pm_len = store->pm_bytes(&s->store.params)};
	s->fsck.bad = defect;
	error = live_call(s->host, format_or_recover, s);
	if (error)
		return wrong(s, s->fresh || error == -ENOMEM ? -EIO : -EBADMSG, "%s: %s fails: %s",
			     s->pm_setup.path, s->fresh ? "formatting" : "recovery",
			     strerror(-error));
	if (s->defects)
		return -EBADMSG;
	error = s->fresh ? set_header(s, 1, true) : 0;
	if (error)
		return error;
	error = live_call(s->host, start_serving, s);
	return error ? wrong(s, -EIO, "%s cannot serve: %s", store->name, strerror(-error)) : 0;
}

/* --- its clients --- */

static int accept_client(void *arg, unsigned client, const void *req, size_t req_len, void *rsp,
			 size_t rsp_len)
{
	struct server *s = arg;
	(void)client; /* the store reads it in the request */
	return live_accept(s->host, req, req_len, rsp, rsp_len);
}

static void tell_injected(void *arg, unsigned client, struct injected *out)
{
	struct server *s = arg;
	live_injected(s->host, client, out);
}

/* Where it listens, with the port that it got. */
static int tell_service(struct server *s)
{
	const int len = (int)(strrchr(s->listen, ':') - s->listen);
	char address[CONFIG_ADDRESS];
	if (snprintf(address, sizeof(address), "%.*s:%u", len, s->listen,
		     rendezvous_port(s->control)) >= (int)sizeof(address))
		return wrong(s, -EINVAL, "--listen: \"%.80s\"; expected less than %d bytes",
			     s->listen, CONFIG_ADDRESS);
	int error = live_ready(s->host, address);
	return error ? wrong(s, -EIO, "--members: %.80s: %s", s->members, strerror(-error)) : 0;
}

int server_listen(struct server *s)
{
	char text[RENDEZVOUS_TEXT];
	int error = live_store_print(&s->store, text, sizeof(text));
	struct rendezvous_server_setup setup = {
		.address = s->listen,
		.text = text,
		.clients = s->store.params.clients,
		.reserved = TM_MAX_CLIENTS + (s->env.servers > 1 ? s->env.servers : 0) -
			    s->store.params.clients,
		.accept = accept_client,
		.injected = tell_injected,
		.arg = s};
	if (!error)
		error = rendezvous_listen(&s->control, &setup);
	if (error == -EINVAL)
		return wrong(s, -EINVAL, "--listen: \"%.80s\"; expected ADDRESS:PORT", s->listen);
	if (error)
		return wrong(s, -EINVAL, "--listen: %.80s: %s", s->listen, strerror(-error));
	return s->members ? tell_service(s) : 0;
}

int server_stop(struct server *s)
{
	rendezvous_stop(s->control);
	s->control = NULL;
	live_host_free(s->host);
	s->host = NULL;
	int error = write_back(s);
	return error ? error : set_header(s, s->store.boot, false);
}

void server_close(struct server *s)
{
	rendezvous_stop(s->control);
	live_host_free(s->host);
	live_pm_close(s->pm);
}
