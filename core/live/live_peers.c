/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom a host asks: the server, or several of them and the service that keeps their configuration.
 *
 * With several servers a connection is made when it is first needed, and again after it has broken:
 * a server may be killed, and come back at another address. The service does not fail; while it
 * does not answer, whoever asks it waits.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/live/live_config.h"
#include "core/live/live_fails.h"
#include "core/live/live_host.h"
#include "core/live/rendezvous.h"
#include "core/own_thread.h"
#include "core/rt/config.h"

#define LIVE_SERVICE LIVE_SERVERS /* of struct live_host's peers */
#define AGAIN_NS     10000000	  /* between two tries to reach the service */
#define RENEW_MS     200	  /* between two renewals of a server's lease */
#define LOOK_NS	     1000000	  /* between two looks at the configuration */

static bool is_server(const struct live_host *host)
{
	return host->number > TM_MAX_CLIENTS;
}

/* --- connections --- */

void live_peers_init(struct live_host *host, const struct live_peers *peers)
{
	for (unsigned p = 0; p < LIVE_PEERS; p++)
		pthread_mutex_init(&host->peer[p].asks, NULL);
	if (!peers)
		return;
	host->peer[0].to = peers->server;
	host->peer[LIVE_SERVICE].to = peers->service;
	host->number = peers->number;
	if (peers->service)
		snprintf(host->service, sizeof(host->service), "%s", peers->address);
}

void live_peers_break(struct live_host *host)
{
	pthread_mutex_lock(&host->lock);
	for (unsigned p = 0; p < LIVE_PEERS; p++)
		if (host->peer[p].to)
			rendezvous_break(host->peer[p].to);
	pthread_mutex_unlock(&host->lock);
}

void live_peers_free(struct live_host *host)
{
	if (host->renewing)
		pthread_join(host->renews, NULL);
	for (unsigned p = 0; p < LIVE_PEERS; p++) {
		rendezvous_close(host->peer[p].to);
		pthread_mutex_destroy(&host->peer[p].asks);
	}
}

/* Its `asks` is held. `to` is seen by live_peers_break(), too. */
static void set_connection(struct live_host *host, unsigned p, struct rendezvous *to)
{
	pthread_mutex_lock(&host->lock);
	struct rendezvous *old = host->peer[p].to;
	host->peer[p].to = to;
	if (to && atomic_load(&host->stopping))
		rendezvous_break(to);
	pthread_mutex_unlock(&host->lock);
	rendezvous_close(old);
}

static int dial(struct live_host *host, unsigned p, const char *address, char *text)
{
	struct rendezvous *to = NULL;
	unsigned number = host->number;
	if (!*address || atomic_load(&host->stopping))
		return -ECONNREFUSED;
	int rc = rendezvous_connect(&to, address, &number, text);
	if (!rc)
		set_connection(host, p, to);
	return rc;
}

/* Has this error ended the connection? */
static bool ended(int error)
{
	return error == -EPROTO || error == -ETIMEDOUT || error == -ECONNRESET || error == -EPIPE ||
	       error == -ENOTCONN;
}

/* The service takes a server whose connection has ended for dead: its lease ends before. */
static void lease_ends(struct live_host *host)
{
	pthread_mutex_lock(&host->lock);
	host->heard_ns = 0;
	host->lease++;
	pthread_mutex_unlock(&host->lock);
}

/* Its `asks` is held. Of one server, a connection that has broken stays so. */
static int ask_on(struct live_host *host, unsigned p, const void *req, size_t req_len, void *rsp,
		  size_t rsp_len)
{
	int rc = rendezvous_ask(host->peer[p].to, req, req_len, rsp, rsp_len);
	if (ended(rc) && *host->service) {
		if (p == LIVE_SERVICE)
			lease_ends(host);
		set_connection(host, p, NULL);
	}
	return rc;
}

/* --- the service --- */

/* What the service says, in this machine's order, or -errno: it does not answer, or refuses. */
static int ask_service(struct live_host *host, const struct config_request *req,
		       struct config_answer *answer)
{
	struct config_request ready = {.op = htonl(CONFIG_AGAIN)};
	const uint64_t asked_ns = clock_ns();
	char text[RENDEZVOUS_TEXT];
	int rc = 0;
	pthread_mutex_lock(&host->peer[LIVE_SERVICE].asks);
	if (!host->peer[LIVE_SERVICE].to) {
		rc = dial(host, LIVE_SERVICE, host->service, text);
		strcpy(ready.address, host->address);
		if (!rc && *host->address) /* it has not heard yet that we serve */
			rc = ask_on(host, LIVE_SERVICE, &ready, sizeof(ready), answer,
				    sizeof(*answer));
	}
	if (!rc)
		rc = ask_on(host, LIVE_SERVICE, req, sizeof(*req), answer, sizeof(*answer));
	pthread_mutex_lock(&host->lock);
	if (!rc)
		host->heard_ns = asked_ns;
	pthread_mutex_unlock(&host->lock);
	pthread_mutex_unlock(&host->peer[LIVE_SERVICE].asks);
	if (rc)
		return rc;
	config_answer_turn(answer);
	for (unsigned s = 0; s < LIVE_SERVERS; s++)
		if (!memchr(answer->address[s], '\0', CONFIG_ADDRESS))
			rc = -EPROTO;
	return answer->servers <= LIVE_SERVERS && answer->primary < answer->servers ? rc : -EPROTO;
}

int live_ask_service(struct live_host *host, struct config_answer *answer)
{
	const struct config_request get = {.op = htonl(CONFIG_GET)};
	return ask_service(host, &get, answer);
}

int live_ready(struct live_host *host, const char *address)
{
	struct config_request ready = {.op = htonl(CONFIG_READY)};
	struct config_answer answer;
	assert(strlen(address) < CONFIG_ADDRESS);
	strcpy(ready.address, address);
	int rc = ask_service(host, &ready, &answer);
	strcpy(host->address, address);
	return rc;
}

/* From a task. 0, or -EAGAIN; of a server also -ETIMEDOUT: the service does not answer. */
static int ask_config(const struct config_request *req, struct config_answer *answer)
{
	struct live_task *task = live_self();
	for (;;) {
		live_let_go(task);
		int rc = ask_service(task->host, req, answer);
		live_go_on(task);
		if (!rc || rc == -EAGAIN)
			return rc;
		live_rt_sleep(AGAIN_NS);
		if (is_server(task->host))
			return -ETIMEDOUT;
	}
}

int live_rt_config_get(struct rt_config *now)
{
	const struct config_request get = {.op = htonl(CONFIG_GET)};
	struct live_host *host = live_self()->host;
	struct config_answer answer;
	pthread_mutex_lock(&host->lock);
	const uint32_t lease = host->lease; /* before it asks: it may end meanwhile */
	pthread_mutex_unlock(&host->lock);
	int rc = ask_config(&get, &answer);
	if (!rc)
		host->config = (struct rt_config){.epoch = answer.epoch,
						  .members = answer.members,
						  .alive = answer.alive,
						  .primary = answer.primary};
	*now = host->config;
	now->lease = lease;
	return rc;
}

int live_rt_config_set(const struct rt_config *next)
{
	const struct config_request set = {.op = htonl(CONFIG_SET),
					   .epoch = htonl((uint32_t)next->epoch),
					   .members = htonl(next->members),
					   .primary = htonl(next->primary)};
	struct config_answer answer;
	return ask_config(&set, &answer);
}

int live_rt_config_wait(struct rt_config *known)
{
	struct rt_config next;
	int rc;
	while (!(rc = live_rt_config_get(&next)) && next.epoch == known->epoch &&
	       next.alive == known->alive)
		live_rt_sleep(LOOK_NS);
	if (!rc)
		*known = next;
	return rc;
}

uint64_t live_rt_config_lease(const struct rt_config *known)
{
	struct live_host *host = live_self()->host;
	if (!is_server(host))
		return UINT64_MAX;
	pthread_mutex_lock(&host->lock);
	const bool lasts = known->lease == host->lease && host->heard_ns;
	const uint64_t end = lasts ? host->heard_ns + CONFIG_LEASE_NS : host->start_ns;
	pthread_mutex_unlock(&host->lock);
	return end - host->start_ns;
}

/* A server's lease lasts as long as it is heard. */
static void *renew_main(void *arg)
{
	struct live_host *host = arg;
	struct pollfd stop = {.fd = host->stop_fd, .events = POLLIN};
	struct config_answer answer;
	while (poll(&stop, 1, RENEW_MS) == 0)
		live_ask_service(host, &answer);
	return NULL;
}

int live_peers_begin(struct live_host *host)
{
	if (!*host->service || !is_server(host))
		return 0;
	int error = own_thread(&host->renews, NULL, renew_main, host);
	host->renewing = !error;
	return -error;
}

/* --- servers --- */

int live_greet(struct live_host *host, unsigned server, const char *address, char *text)
{
	pthread_mutex_lock(&host->peer[server].asks);
	int rc = dial(host, server, address, text);
	pthread_mutex_unlock(&host->peer[server].asks);
	return rc;
}

/* Its `asks` is held. */
static int reach(struct live_host *host, unsigned server)
{
	struct config_answer answer;
	char text[RENDEZVOUS_TEXT];
	if (host->peer[server].to)
		return 0;
	int rc = *host->service ? live_ask_service(host, &answer) : -ECONNREFUSED;
	return rc ? rc : dial(host, server, answer.address[server], text);
}

int live_rt_connect_to(unsigned server, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	struct live_task *task = live_self();
	struct live_host *host = task->host;
	if (server >= LIVE_SERVERS || live_fails(FAIL_CONNECT))
		return -ECONNREFUSED;
	live_let_go(task);
	pthread_mutex_lock(&host->peer[server].asks);
	int rc = reach(host, server);
	if (!rc)
		rc = ask_on(host, server, req, req_len, rsp, rsp_len);
	pthread_mutex_unlock(&host->peer[server].asks);
	live_go_on(task);
	return rc;
}

/* What was injected at the servers that this host is connected to. */
int live_peers_injected(struct live_host *host, struct injected *out)
{
	int rc = -ENOTCONN;
	*out = (struct injected){0};
	for (unsigned s = 0; s < LIVE_SERVERS; s++) {
		struct injected one;
		pthread_mutex_lock(&host->peer[s].asks);
		const bool there = host->peer[s].to;
		const int error = there ? rendezvous_ask_injected(host->peer[s].to, &one) : 0;
		pthread_mutex_unlock(&host->peer[s].asks);
		if (!there)
			continue;
		if (error)
			return error;
		rc = 0;
		out->calls += one.calls;
		out->links += one.links;
		out->dropped += one.dropped;
		out->departed += one.departed;
	}
	return rc;
}
