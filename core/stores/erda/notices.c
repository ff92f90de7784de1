/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Erda's server tells its clients about the cleaning of logs.
 *
 * A task of the client waits for notices. BEGIN takes effect for the next access at
 * once; it is acknowledged by this task if no operation is on, else by the operation
 * when it holds no address any more: at its end, or before it tries again. So the
 * server's wait ends with the longest operation, and nobody polls. An acknowledgement
 * of this task and one of an operation cannot meet: they use different connections.
 *
 * Whoever connects during a cleaning learns it from a word in the server's DRAM. That
 * is read when the connection for notices is there, so a change is either seen in it or
 * comes as a notice; of both the one of the later epoch counts.
 */
#include <errno.h>
#include "core/rt/rt.h"
#include "core/stores/erda/client.h"

static int acknowledge(struct client *c, struct rpc_conn *conn, uint32_t number)
{
	struct erda_req req;

	memset(&req, 0, sizeof(req));
	req.op = ERDA_OP_ACK;
	req.client = c->number;
	req.bad = number;
	c->acked = number;
	return rpc_send(conn, &req, ERDA_REQ_BYTES(0));
}

static void learn(struct known_log *log, uint64_t epoch)
{
	log->epoch = epoch;
	log->region = epoch & 1;
	log->cleaning = epoch >> 1 & 1;
}

static void take(struct client *c, const struct erda_notice *notice)
{
	struct known_log *log;

	if (notice->head >= c->geo.heads || notice->region >= ERDA_REGIONS)
		return;
	log = &c->log[notice->head];
	if (notice->kind == NOTICE_BEGIN)
		c->begun = notice->number;
	if (notice->epoch < log->epoch >> 2)
		return;
	if (notice->kind == NOTICE_END)
		rpc_set_region(&c->conn, erda_export_log(notice->head, notice->region), &notice->where);
	learn(log, erda_epoch(notice->epoch, notice->kind == NOTICE_BEGIN, notice->region));
}

static void notices_task(void *arg)
{
	struct client *c = arg;
	struct erda_notice notice;
	size_t len;

	/* An error: the server has dropped this client, and its operations will fail too. */
	while (!rpc_wait(&c->notices, &notice, sizeof(notice), &len)) {
		if (len != sizeof(notice))
			return;
		take(c, &notice);
		if (!c->busy && c->acked != c->begun && acknowledge(c, &c->notices, c->begun))
			return;
	}
}

int notices_open(struct client *c, const struct tm_env *env)
{
	const struct erda_shared *shared;
	const void *data;
	int rc = rpc_open_notices(&c->notices, env, erda_msg_bytes(&c->geo));

	if (!rc)
		rc = rpc_read(&c->conn, EXPORT_SHARED, 0, sizeof(*shared), &data);
	if (rc)
		return rc;
	shared = data;
	c->moves = shared->moves;
	for (unsigned h = 0; h < c->geo.heads; h++) {
		unsigned number;

		learn(&c->log[h], shared->head[h]);
		number = erda_export_log(h, c->log[h].region);
		/* Not yet exported when this client connected: END will say where it is. */
		if (number >= c->notices.regions || c->notices.region[number].len == 0)
			c->log[h].cleaning = true;
		else
			rpc_set_region(&c->conn, number, &c->notices.region[number]);
	}
	return rt_spawn("notices", notices_task, c);
}

void notices_busy(struct client *c)
{
	c->busy = true;
}

int notices_at_rest(struct client *c)
{
	int rc = 0;

	while (c->acked != c->begun && !rc)
		rc = acknowledge(c, &c->conn, c->begun);
	return rc;
}

void notices_idle(struct client *c)
{
	notices_at_rest(c);
	c->busy = false;
}
