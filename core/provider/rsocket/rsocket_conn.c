/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets' connections: to be asked and to ask, each step as the connection manager reports the
 * one before; and to part. See rsocket.h.
 *
 * Who accepts need not wait until the asker has heard of it: raccept() returns, and what is to be
 * sent waits.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "core/provider/rsocket/rsocket.h"

#define RESOLVE_MS 2000

bool rs_is_connecting(const struct rsocket *rs)
{
	return rs->state > RS_LISTENING && rs->state < RS_CONNECTED;
}

void rs_break(struct rsocket *rs, int error)
{
	if (rs->state > RS_CONNECTED)
		return;
	rs->state = RS_BROKEN;
	rs->error = error;
	rs_wake(rs);
}

/* --- step by step --- */

static struct rdma_conn_param parameters(const struct rs_hello *hello)
{
	return (struct rdma_conn_param){.private_data = hello,
					.private_data_len = sizeof(*hello),
					.flow_control = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};
}

static int ask(struct rsocket *rs)
{
	struct rs_hello hello;
	struct rdma_conn_param param = parameters(&hello);
	int rc = rs_make_stream(rs);

	if (rc)
		return rc;
	hello = rs_hello(rs);
	rs->state = RS_ASKED;
	return rdma_connect(rs->id, &param) ? -errno : 0;
}

static int establish(struct rsocket *rs, const struct rdma_conn_param *param)
{
	struct rs_hello hello;
	int rc;

	if (rs->state == RS_ASKED) {
		if (param->private_data_len < sizeof(hello))
			return -EPROTO;
		memcpy(&hello, param->private_data, sizeof(hello));
		rc = rs_heard(rs, &hello);
		if (rc)
			return rc;
	}
	rs->state = RS_CONNECTED;
	return 0;
}

/* 0, or -errno, of which the connection ends. */
static int take_event(struct rsocket *rs, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rs->state = RS_ROUTE;
		return rdma_resolve_route(rs->id, RESOLVE_MS) ? -errno : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return ask(rs);
	case RDMA_CM_EVENT_ESTABLISHED:
		return establish(rs, &event->param.conn);
	case RDMA_CM_EVENT_REJECTED:
		if (rs->state == RS_ASKED)
			return -ECONNREFUSED;
		rs->parted = true;
		return rs->state == RS_CONNECTED ? 0 : -ECONNRESET;
	case RDMA_CM_EVENT_DISCONNECTED:
		rs->parted = true;
		return rs->state == RS_CONNECTED ? 0 : -ECONNRESET;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default: /* an error of a step */
		return event->status < 0 ? event->status : -EHOSTUNREACH;
	}
}

bool rs_take_events(struct rsocket *rs)
{
	struct rdma_cm_event *event;
	bool some = false;

	while (rs->state != RS_LISTENING && !rdma_get_cm_event(rs->events, &event)) {
		/* One that has been closed is not connected any more. */
		int rc = rs->state > RS_CONNECTED ? 0 : take_event(rs, event);

		rdma_ack_cm_event(event);
		if (rc)
			rs_break(rs, -rc);
		some = true;
	}
	if (some)
		rs_wake(rs);
	return some;
}

/* The channel's events say no more than that there are completions. */
static void take_notices(struct rsocket *rs)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(rs->completions, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		rs->armed = false;
	}
	if (!rs->armed && rs->state == RS_CONNECTED && !ibv_req_notify_cq(rs->cq, 0))
		rs->armed = true;
}

/* The connection manager is asked only if nothing else has happened. What had been completed before
 * the peer was gone counts. */
bool rs_progress(struct rsocket *rs, bool sleeps)
{
	bool some = rs_take_completions(rs);

	if (!some) {
		some = rs_take_events(rs);
		if (rs->completions && sleeps)
			take_notices(rs);
		some |= rs_take_completions(rs);
		if (rs->parted && rs->state == RS_CONNECTED) {
			rs->state = RS_OVER;
			rs_wake(rs);
		}
	}
	rs_give_credits(rs);
	return some;
}

static bool has_settled(const struct rsocket *rs)
{
	return !rs_is_connecting(rs);
}

int rs_await_connection(struct rsocket *rs, bool nonblocking)
{
	int rc = rs_is_connecting(rs) ? rs_wait(rs, has_settled, nonblocking, RS_NEVER) : 0;

	if (rc)
		return rc;
	return rs->state >= RS_CONNECTED ? 0 : -ENOTCONN;
}

/* --- to ask --- */

static int begin(struct rsocket *rs, const struct sockaddr *addr)
{
	rs->state = RS_ADDRESS;
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)(uintptr_t)addr, RESOLVE_MS)) {
		rs->state = RS_NEW;
		return -errno;
	}
	return 0;
}

static int connect_to(struct rsocket *rs, const struct sockaddr *addr, socklen_t len)
{
	bool began = rs->state == RS_NEW;
	int rc;

	if (rs->state == RS_LISTENING)
		return -EOPNOTSUPP;
	if (rs->state == RS_ACCEPTED || rs->state >= RS_CONNECTED)
		return rs->state == RS_BROKEN ? -EINVAL : -EISCONN;
	rc = rs_check_address(rs, addr, len);
	if (!rc && began)
		rc = begin(rs, addr);
	if (rc)
		return rc;
	rc = rs_await_connection(rs, rs->nonblocking);
	if (rc == -EAGAIN)
		return began ? -EINPROGRESS : -EALREADY;
	if (!rc && rs->state == RS_BROKEN) {
		rc = -rs->error;
		rs->error = 0;
	}
	return rc;
}

CM_EXPORT int rconnect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct rsocket *rs = rs_get(fd);
	int rc;

	if (!rs)
		return cm_fail(EBADF);
	rc = connect_to(rs, addr, len);
	rs_put(rs);
	return rc ? cm_fail(-rc) : 0;
}

/* --- to be asked --- */

CM_EXPORT int rlisten(int fd, int backlog)
{
	struct rsocket *rs = rs_get(fd);
	int rc = 0;

	if (!rs)
		return cm_fail(EBADF);
	if (rs->state != RS_NEW)
		rc = rs->state == RS_LISTENING ? 0 : -EINVAL;
	else if (rdma_listen(rs->id, backlog))
		rc = -errno;
	else
		rs->state = RS_LISTENING;
	rs_put(rs);
	return rc ? cm_fail(-rc) : 0;
}

/* Say yes. */
static int accept_request(struct rsocket *rs, const struct rs_hello *asker)
{
	struct rs_hello hello;
	struct rdma_conn_param param = parameters(&hello);
	int rc = rs_make_stream(rs);

	if (!rc)
		rc = rs_heard(rs, asker);
	if (rc)
		return rc;
	hello = rs_hello(rs);
	rs->state = RS_ACCEPTED;
	return rdma_accept(rs->id, &param) ? -errno : 0;
}

/* The identifier that the event has brought becomes the rsocket's. 0 or -errno; -EPROTO: the asker
 * is no rsocket. */
static int take_request(struct rsocket *listener, struct rdma_cm_event *event, struct rsocket **out)
{
	struct rs_hello hello = {0};
	struct rdma_cm_id *id = event->id;
	struct rsocket *rs = rs_new(listener);
	int rc = rs ? 0 : -errno;

	if (event->param.conn.private_data_len >= sizeof(hello))
		memcpy(&hello, event->param.conn.private_data, sizeof(hello));
	rdma_ack_cm_event(event);
	if (!rs) {
		rdma_destroy_id(id);
		return rc;
	}
	rs->id = id;
	rc = rdma_migrate_id(id, rs->events) ? -errno : accept_request(rs, &hello);
	if (!rc)
		rc = rs_show(rs);
	if (rc)
		rs_drop(rs);
	else
		*out = rs;
	return rc;
}

static bool has_request(const struct rsocket *rs)
{
	struct pollfd fd = {.fd = rs->events->fd, .events = POLLIN};

	return rs->state != RS_LISTENING || poll(&fd, 1, 0) == 1;
}

/* Who is no rsocket is refused, and the next one heard. */
static int accept_from(struct rsocket *listener, struct rsocket **out)
{
	struct rdma_cm_event *event;
	int rc;

	for (;;) {
		if (listener->state != RS_LISTENING)
			return -EINVAL;
		rc = rs_wait(listener, has_request, listener->nonblocking, RS_NEVER);
		if (rc)
			return rc;
		if (listener->state != RS_LISTENING || rdma_get_cm_event(listener->events, &event))
			continue;
		if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
			rdma_ack_cm_event(event);
			continue;
		}
		rc = take_request(listener, event, out);
		if (rc != -EPROTO)
			return rc;
	}
}

CM_EXPORT int raccept(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct rsocket *listener = rs_get(fd), *rs = NULL;
	int rc;

	if (!listener)
		return cm_fail(EBADF);
	rc = accept_from(listener, &rs);
	rs_put(listener);
	if (rc)
		return cm_fail(-rc);
	if (addr && len)
		rs_tell_peer(rs, addr, len);
	return rs->fd;
}

/* --- to part --- */

static bool can_control(const struct rsocket *rs)
{
	return rs->control_used < RS_CONTROLS || rs->state != RS_CONNECTED;
}

static bool all_sent(const struct rsocket *rs)
{
	return (!rs->requests_used && !rs->control_used) || rs->state != RS_CONNECTED;
}

/* What is to be said; -1: nothing. */
static int parting_word(struct rsocket *rs, int how)
{
	bool wrote = rs->can_write;

	if (how != SHUT_WR)
		rs->can_read = false;
	if (how != SHUT_RD)
		rs->can_write = false;
	if (rs->can_write || (!wrote && rs->can_read))
		return -1;
	return rs->can_read ? RS_SHUTDOWN : RS_DISCONNECT;
}

/* A signal is no reason to lose what was sent. */
static int wait_on(struct rsocket *rs, bool (*ready)(const struct rsocket *), uint64_t until_ms)
{
	int rc;

	do
		rc = rs_wait(rs, ready, false, until_ms);
	while (rc == -EINTR);
	return rc;
}

/* Until the peer has what was sent. */
int rs_shut(struct rsocket *rs, int how, uint64_t until_ms)
{
	int word, rc;

	if (rs->state != RS_CONNECTED)
		return -ENOTCONN;
	word = parting_word(rs, how);
	rs_wake(rs);
	if (word < 0)
		return 0;
	rc = wait_on(rs, can_control, until_ms);
	if (!rc && rs->state == RS_CONNECTED)
		rc = rs_control(rs, (enum rs_control)word);
	return rc ? rc : wait_on(rs, all_sent, until_ms);
}

CM_EXPORT int rshutdown(int fd, int how)
{
	struct rsocket *rs = rs_get(fd);
	int rc;

	if (!rs)
		return cm_fail(EBADF);
	rc = how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR ? -EINVAL
								  : rs_await_connection(rs, false);
	if (!rc && rs->state == RS_CONNECTED)
		rc = rs_shut(rs, how, RS_NEVER);
	rs_put(rs);
	return rc ? cm_fail(-rc) : 0;
}
