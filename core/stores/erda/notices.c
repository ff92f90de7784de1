/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Erda's server tells its clients about the cleaning of logs.
 *
 * A task of the client waits for notices. BEGIN takes effect for the next access at
 * once; it is acknowledged by this task if no operation is on, or if that pauses, else by the
 * operation when it holds no address any more: at its end, or before it pauses. So the
 * server's wait ends with the longest attempt, and no task polls.
 *
 * Either way it goes over the connection of the operations, so that what they have written lands
 * before it: on iWARP a completion says only that the data were sent. An operation that begins
 * waits for the acknowledgement of this task, as the connection serves one at a time.
 *
 * A client that connects during a cleaning learns so at the same moment at which the server
 * begins to count it among those that get notices: later changes come as notices.
 */
#include <assert.h>
#include "core/rt/rt.h"
#include "core/stores/erda/client.h"

/* Pauses after an acknowledgement that could not be posted, and while the task sends one. */
#define FIRST_NAP_NS 1000
#define MAX_NAP_NS   10000000

static uint64_t longer(uint64_t nap)
{
	return nap < MAX_NAP_NS ? 2 * nap : nap;
}

static int acknowledge(struct client *c, struct rpc_conn *conn, uint32_t number)
{
	struct erda_req req;
	uint32_t before = c->acked;

	memset(&req, 0, sizeof(req));
	req.op = ERDA_OP_ACK;
	req.client = c->number;
	req.bad = number;
	if (c->geo.bug != BUG_ACK_COUNTS_LATER)
		c->acked = number;
	int rc = rpc_send(conn, &req, ERDA_REQ_BYTES(0));
	if (!rc && c->geo.bug == BUG_ACK_COUNTS_LATER)
		c->acked = c->begun;
	if (rc && c->acked == number)
		c->acked = before;
	return rc;
}

/* What this task acknowledges, if anything. 0, or -errno: it could not be sent. */
static int acknowledge_idle(struct client *c)
{
	bool aside = c->geo.bug == BUG_ACK_BUSY || c->geo.bug == BUG_ACK_ASIDE;

	if (c->acked == c->begun || (c->busy && c->geo.bug != BUG_ACK_BUSY))
		return 0;
	if (aside)
		return acknowledge(c, &c->notices, c->begun);
	c->acknowledging = true;
	int rc = acknowledge(c, &c->conn, c->begun);
	c->acknowledging = false;
	return rc;
}

static void take_notice(struct client *c, const struct erda_notice *notice)
{
	if (notice->head >= c->geo.heads || notice->region >= ERDA_REGIONS)
		return;
	struct known_log *log = &c->log[notice->head];
	log->region = notice->region;
	log->cleaning = notice->kind == NOTICE_BEGIN;
	if (log->cleaning)
		c->begun = notice->number;
	else
		rpc_set_region(&c->conn, erda_export_log(notice->head, notice->region),
			       &notice->where);
}

static void notices_task(void *arg)
{
	struct client *c = arg;
	struct erda_notice notice;
	uint64_t nap = FIRST_NAP_NS;
	size_t len;

	/* An error: the server has dropped this client, and its operations will fail too. */
	while (!rpc_wait(&c->notices, &notice, sizeof(notice), &len)) {
		if (len != sizeof(notice))
			return;
		take_notice(c, &notice);
		while (acknowledge_idle(c)) {
			if (c->notices.failed || c->conn.failed)
				return;
			rt_sleep(nap);
			nap = longer(nap);
		}
		nap = FIRST_NAP_NS;
	}
}

int notices_open(struct client *c, const struct tm_env *env)
{
	int rc = rpc_open_notices(&c->notices, env, sizeof(struct erda_req), &c->conn);
	uint32_t word = c->geo.bug == BUG_FIRST_WORD ? c->conn.word : c->notices.word;

	if (rc)
		return rc;
	for (unsigned h = 0; h < c->geo.heads; h++) {
		struct known_log *log = &c->log[h];

		log->region = !!(word & erda_word(h, false, 1));
		log->cleaning = word & erda_word(h, true, 0);
		for (unsigned r = 0; r < ERDA_REGIONS; r++) {
			unsigned number = erda_export_log(h, r);

			rpc_set_region(&c->conn, number, &c->notices.region[number]);
		}
	}
	return rt_spawn("notices", notices_task, c);
}

void notices_busy(struct client *c)
{
	uint64_t nap = FIRST_NAP_NS;

	c->busy = true;
	while (c->acknowledging) {
		rt_sleep(nap);
		nap = longer(nap);
	}
}

static int notices_at_rest(struct client *c)
{
	int rc = 0;

	while (c->acked != c->begun && !rc)
		rc = acknowledge(c, &c->conn, c->begun);
	return rc;
}

int notices_pause(struct client *c, uint64_t ns)
{
	int rc = notices_at_rest(c);

	assert(c->busy); /* an operation is on */
	if (rc)
		return rc;
	c->busy = false;
	rt_sleep(ns);
	notices_busy(c);
	return 0;
}

void notices_idle(struct client *c)
{
	assert(c->busy);
	notices_at_rest(c);
	c->busy = false;
}
