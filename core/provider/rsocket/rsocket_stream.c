/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream of an rsocket: what is sent goes through a ring into what the peer has offered, what
 * is received lies in a ring that is offered to the peer half by half. See rsocket.h.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/provider/rsocket/rsocket.h"

#define VERSION	    1
#define NET_ORDER   1 /* the host's byte order is the net's */
#define HAS_IOMAPS  2
#define COMPLETIONS 16 /* taken at a time */

/* --- its memory and queue pair --- */

static uint32_t within(uint32_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : value;
}

static int make_memory(struct rsocket *rs)
{
	const size_t slots = RS_CONTROLS * sizeof(struct rs_region);
	const size_t targets = RS_HALVES * sizeof(struct rs_region);
	const size_t tables = targets + rs->iomaps * sizeof(struct rs_mapping);
	size_t ring;

	rs->half = rs->receive_bytes / RS_HALVES;
	ring = (size_t)rs->half * RS_HALVES;
	rs->own = calloc(1, slots + rs->send_bytes);
	rs->shared = calloc(1, tables + ring);
	rs->messages = calloc(rs->receive_requests, sizeof(*rs->messages));
	rs->mapped = calloc(rs->iomaps + 1, sizeof(*rs->mapped));
	if (!rs->own || !rs->shared || !rs->messages || !rs->mapped)
		return -ENOMEM;
	rs->send_ring = rs->own + slots;
	rs->offered_us = (struct rs_region *)rs->shared;
	rs->mapped_for_us = (struct rs_mapping *)(rs->shared + targets);
	rs->receive_ring = rs->shared + tables;
	rs->own_mr = ibv_reg_mr(rs->id->pd, rs->own, slots + rs->send_bytes,
				IBV_ACCESS_LOCAL_WRITE);
	rs->shared_mr = ibv_reg_mr(rs->id->pd, rs->shared, tables + ring,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return rs->own_mr && rs->shared_mr ? 0 : -errno;
}

static int make_queues(struct rsocket *rs)
{
	/* The peer's messages that are not data find a request even if it has used up its
	 * credits. */
	const uint32_t entries = rs->send_requests + rs->receive_requests + RS_CONTROLS;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = rs->send_requests,
			.max_recv_wr = rs->receive_requests + RS_CONTROLS,
			.max_send_sge = 2,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	int rc;

	rs->completions = ibv_create_comp_channel(rs->id->verbs);
	if (!rs->completions)
		return -errno;
	rc = rs_listen_to_completions(rs);
	if (rc)
		return rc;
	rs->cq = ibv_create_cq(rs->id->verbs, (int)entries, NULL, rs->completions, 0);
	if (!rs->cq)
		return -errno;
	init.send_cq = init.recv_cq = rs->cq;
	return rdma_create_qp(rs->id, NULL, &init) ? -errno : 0;
}

static int give_requests(struct rsocket *rs, uint32_t count)
{
	struct ibv_recv_wr wr = {0}, *bad;
	int rc = 0;

	while (count-- && !rc)
		rc = ibv_post_recv(rs->id->qp, &wr, &bad);
	return -rc;
}

int rs_make_stream(struct rsocket *rs)
{
	struct ibv_device_attr attr;
	uint32_t most;
	int rc;

	rc = -ibv_query_device(rs->id->verbs, &attr);
	if (rc)
		return rc;
	most = within((uint32_t)attr.max_qp_wr, 1, RS_MOST_REQUESTS) - RS_CONTROLS;
	rs->send_requests = within(rs->send_requests, RS_LEAST_REQUESTS, most);
	rs->receive_requests = within(rs->receive_requests, RS_LEAST_REQUESTS, most);
	rc = make_memory(rs);
	if (!rc)
		rc = make_queues(rs);
	if (!rc)
		rc = give_requests(rs, rs->receive_requests + RS_CONTROLS);
	/* The first half is offered with the first words, to be told of half of all messages. */
	rs->offer_at = rs->free_bytes = rs->half;
	rs->credits_at = (uint16_t)(rs->receive_requests / 2);
	rs->peer_target_at = 1;
	return rc;
}

void rs_free_stream(struct rsocket *rs)
{
	rs_forget_buffers(rs);
	if (rs->cq)
		ibv_destroy_cq(rs->cq);
	if (rs->completions)
		ibv_destroy_comp_channel(rs->completions);
	if (rs->own_mr)
		ibv_dereg_mr(rs->own_mr);
	if (rs->shared_mr)
		ibv_dereg_mr(rs->shared_mr);
	free(rs->own);
	free(rs->shared);
	free(rs->messages);
	free(rs->mapped);
}

/* --- the first words --- */

static bool host_is_net(void)
{
	return htobe16(1) == 1;
}

static struct rs_region region_of(struct ibv_mr *mr, const void *at, uint32_t length)
{
	return (struct rs_region){.addr = (uintptr_t)at, .key = mr->rkey, .length = length};
}

static struct rs_region to_net(struct rs_region region)
{
	return (struct rs_region){htobe64(region.addr), htobe32(region.key),
				  htobe32(region.length)};
}

static struct rs_region from_net(struct rs_region region)
{
	return to_net(region);
}

struct rs_region rs_for_peer(const struct rsocket *rs, struct rs_region region)
{
	if (!rs->swap)
		return region;
	return (struct rs_region){__builtin_bswap64(region.addr), __builtin_bswap32(region.key),
				  __builtin_bswap32(region.length)};
}

struct rs_hello rs_hello(const struct rsocket *rs)
{
	return (struct rs_hello){
		.version = VERSION,
		.flags = HAS_IOMAPS | (host_is_net() ? NET_ORDER : 0),
		.credits = htobe16((uint16_t)rs->receive_requests),
		.iomaps = rs_iomaps_code(rs->iomaps),
		.targets = to_net(region_of(rs->shared_mr, rs->offered_us, RS_HALVES)),
		.half = to_net(region_of(rs->shared_mr, rs->receive_ring, rs->half)),
	};
}

int rs_heard(struct rsocket *rs, const struct rs_hello *hello)
{
	if (hello->version != VERSION)
		return -EPROTO;
	rs->swap = !!(hello->flags & NET_ORDER) != host_is_net();
	rs->peer_targets = from_net(hello->targets);
	if (!rs->peer_targets.length)
		return -EPROTO;
	rs->peer_target_at %= rs->peer_targets.length;
	/* The table of buffers lies behind. */
	rs->peer_iomaps = rs->peer_targets;
	rs->peer_iomaps.addr += rs->peer_targets.length * sizeof(struct rs_region);
	rs->peer_iomaps.length = hello->flags & HAS_IOMAPS ? rs_iomaps_of(hello->iomaps) : 0;
	rs->target[0] = from_net(hello->half);
	rs->offers_taken = 1;
	rs->may_send = be16toh(hello->credits);
	return 0;
}

/* --- completions --- */

/* What the peer has written into the table, entry after entry. */
static void take_offer(struct rsocket *rs)
{
	unsigned at = rs->offers_taken++ % RS_HALVES;

	rs->target[at] = rs_for_peer(rs, rs->offered_us[at]);
}

static void take_mapping(struct rsocket *rs, uint32_t index)
{
	struct rs_mapping *from = &rs->mapped_for_us[index], *to = &rs->mapped[index];

	to->offset = rs->swap ? __builtin_bswap64(from->offset) : from->offset;
	to->region = rs_for_peer(rs, from->region);
}

static void take_control(struct rsocket *rs, uint32_t what)
{
	if (what == RS_DISCONNECT || (what == RS_SHUTDOWN && !rs->can_write))
		rs->state = RS_OVER;
	else if (what == RS_SHUTDOWN)
		rs->can_read = false;
}

/* -EPROTO: that cannot be. */
static int take_data(struct rsocket *rs, uint32_t bytes)
{
	const uint32_t offered = rs->half * RS_HALVES - rs->free_bytes - rs->unread;

	if (bytes > offered || rs->message_count == rs->receive_requests)
		return -EPROTO;
	if (!bytes) {
		rs->received++;
		return 0;
	}
	rs->messages[(rs->message_at + rs->message_count++) % rs->receive_requests] = bytes;
	rs->unread += bytes;
	return 0;
}

static int take_message(struct rsocket *rs, uint32_t message, uint32_t written)
{
	const uint32_t value = message & RS_VALUE;

	switch ((enum rs_op)(message >> RS_OP_SHIFT)) {
	case RS_DATA:
		return value == written ? take_data(rs, value) : -EPROTO;
	case RS_CREDITS:
		rs->may_send = (uint16_t)value;
		if (written == sizeof(struct rs_region))
			take_offer(rs);
		return 0;
	case RS_IOMAP:
		rs->received++;
		if (value >= rs->iomaps)
			return -EPROTO;
		take_mapping(rs, value);
		return 0;
	case RS_CONTROL:
		take_control(rs, value);
		return 0;
	default:
		return 0; /* of a later version */
	}
}

/* A work request's number says what comes back with its completion. */
static uint64_t wr_id(enum rs_op op, uint32_t value)
{
	return (uint64_t)op << 32 | value;
}

static void take_sent(struct rsocket *rs, uint64_t id)
{
	const uint32_t value = (uint32_t)id;

	switch ((enum rs_op)(id >> 32)) {
	case RS_CREDITS:
		rs->control_used--;
		return;
	case RS_CONTROL:
		rs->control_used--;
		if (value == RS_DISCONNECT)
			rs->state = RS_OVER;
		return;
	default:
		rs->requests_used--;
		rs->send_used -= value;
	}
}

static void take_completion(struct rsocket *rs, const struct ibv_wc *wc)
{
	int rc = 0;

	if (wc->status != IBV_WC_SUCCESS)
		rs_break(rs, wc->status == IBV_WC_RETRY_EXC_ERR ? ETIMEDOUT : EIO);
	else if (!(wc->opcode & IBV_WC_RECV))
		take_sent(rs, wc->wr_id);
	else if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		rc = take_message(rs, be32toh(wc->imm_data), wc->byte_len);
	else
		rc = -EPROTO;
	if (rc)
		rs_break(rs, -rc);
}

bool rs_take_completions(struct rsocket *rs)
{
	struct ibv_wc wc[COMPLETIONS];
	bool some = false;
	int n = COMPLETIONS;

	while (rs->state == RS_CONNECTED && n == COMPLETIONS) {
		uint32_t arrived = 0;
		int rc;

		n = ibv_poll_cq(rs->cq, COMPLETIONS, wc);
		for (int i = 0; i < n && rs->state == RS_CONNECTED; i++) {
			take_completion(rs, &wc[i]);
			arrived += !!(wc[i].opcode & IBV_WC_RECV);
		}
		some |= n != 0;
		rc = n < 0 ? -EIO : rs->state == RS_CONNECTED ? give_requests(rs, arrived) : 0;
		if (rc)
			rs_break(rs, -rc);
	}
	if (some)
		rs_wake(rs);
	return some;
}

/* --- messages that are not data --- */

static int post(struct rsocket *rs, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int rc = ibv_post_send(rs->id->qp, wr, &bad);

	if (rc)
		rs_break(rs, rc);
	return -rc;
}

static uint32_t imm(enum rs_op op, uint32_t value)
{
	return htobe32((uint32_t)op << RS_OP_SHIFT | value);
}

int rs_control(struct rsocket *rs, enum rs_control what)
{
	struct ibv_send_wr wr = {.wr_id = wr_id(RS_CONTROL, what),
				 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .imm_data = imm(RS_CONTROL, what)};

	if (what == RS_KEEPALIVE) /* an acknowledgement is all that is wanted */
		wr.opcode = IBV_WR_RDMA_WRITE;
	rs->control_used++;
	return post(rs, &wr);
}

void rs_keep_alive(struct rsocket *rs)
{
	if (cm_now_ms() < rs->keepalive_ms)
		return;
	rs->keepalive_ms = cm_now_ms() + (uint64_t)rs->keepalive_s * 1000;
	if (rs->state == RS_CONNECTED && rs->control_used < RS_CONTROLS)
		rs_control(rs, RS_KEEPALIVE);
}

/* Into the peer's next entry. *slot lasts until the message is completed: there are as many as may
 * be under way. */
static void offer_half(struct rsocket *rs, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct rs_region *slot = (struct rs_region *)rs->own + rs->control_next;

	*slot = rs_for_peer(rs,
			    region_of(rs->shared_mr, rs->receive_ring + rs->offer_at, rs->half));
	*sge = (struct ibv_sge){(uintptr_t)slot, sizeof(*slot), rs->own_mr->lkey};
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->wr.rdma.remote_addr = rs->peer_targets.addr + rs->peer_target_at * sizeof(*slot);
	wr->wr.rdma.rkey = rs->peer_targets.key;
	rs->control_next = (rs->control_next + 1) % RS_CONTROLS;
	rs->peer_target_at = (rs->peer_target_at + 1) % rs->peer_targets.length;
	rs->offer_at = (rs->offer_at + rs->half) % (rs->half * RS_HALVES);
	rs->free_bytes -= rs->half;
}

void rs_give_credits(struct rsocket *rs)
{
	const bool half = rs->free_bytes >= rs->half;
	struct ibv_send_wr wr = {.wr_id = wr_id(RS_CREDITS, 0),
				 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
	struct ibv_sge sge;

	if (rs->state != RS_CONNECTED || rs->control_used == RS_CONTROLS ||
	    (!half && (int16_t)(rs->received - rs->credits_at) < 0))
		return;
	rs->credits_at = (uint16_t)(rs->received + rs->receive_requests / 2);
	wr.imm_data = imm(RS_CREDITS, (uint16_t)(rs->received + rs->receive_requests));
	if (half)
		offer_half(rs, &wr, &sge);
	rs->control_used++;
	post(rs, &wr);
}

/* --- to send --- */

static uint32_t ring_room(const struct rsocket *rs)
{
	return rs->send_bytes - rs->send_used;
}

static bool has_room(const struct rsocket *rs)
{
	return ring_room(rs) >= RS_ENOUGH && rs->requests_used < rs->send_requests - RS_CONTROLS &&
	       rs->sent != rs->may_send && rs->target[rs->target_at].length;
}

bool rs_send_ready(const struct rsocket *rs)
{
	return rs->state > RS_CONNECTED || !rs->can_write || has_room(rs);
}

/* Why nothing can be sent any more; an error is told once. */
static int no_more(struct rsocket *rs)
{
	int error = rs->error;

	if (rs->state <= RS_CONNECTED && rs->can_write)
		return 0;
	rs->error = 0;
	return error ? -error : !rs->can_write ? -EPIPE : -ECONNRESET;
}

int rs_await_room(struct rsocket *rs, bool nonblocking)
{
	int rc = rs_send_ready(rs) ? 0 : rs_wait(rs, rs_send_ready, nonblocking, RS_NEVER);

	return rc ? rc : no_more(rs);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t rs_room(const struct rsocket *rs)
{
	return least(ring_room(rs), RS_CHUNK);
}

static void gather(uint8_t *to, const struct iovec **from, size_t *skip, size_t bytes)
{
	while (bytes) {
		size_t n = (*from)->iov_len - *skip;

		n = n < bytes ? n : bytes;
		if (n)
			memcpy(to, (const uint8_t *)(*from)->iov_base + *skip, n);
		to += n;
		bytes -= n;
		*skip += n;
		if (*skip == (*from)->iov_len) {
			(*from)++;
			*skip = 0;
		}
	}
}

int rs_post(struct rsocket *rs, const struct iovec *from, size_t skip, uint32_t bytes,
	    struct rs_region to, enum rs_op op, uint32_t value)
{
	const uint32_t to_end = least(bytes, rs->send_bytes - rs->send_at), rest = bytes - to_end;
	struct ibv_sge sge[2] = {{(uintptr_t)rs->send_ring + rs->send_at, to_end, rs->own_mr->lkey},
				 {(uintptr_t)rs->send_ring, rest, rs->own_mr->lkey}};
	struct ibv_send_wr wr = {.wr_id = wr_id(op, bytes),
				 .sg_list = sge,
				 .num_sge = rest ? 2 : 1,
				 .opcode = op == RS_DIRECT ? IBV_WR_RDMA_WRITE
							   : IBV_WR_RDMA_WRITE_WITH_IMM,
				 .imm_data = imm(op, value),
				 .wr.rdma = {to.addr, to.key}};

	while (skip >= from->iov_len) {
		skip -= from->iov_len;
		from++;
	}
	gather(rs->send_ring + rs->send_at, &from, &skip, to_end);
	gather(rs->send_ring, &from, &skip, rest);
	rs->send_at = (rs->send_at + bytes) % rs->send_bytes;
	rs->send_used += bytes;
	rs->requests_used++;
	if (op != RS_DIRECT)
		rs->sent++;
	return post(rs, &wr);
}

/* The next message of what is left. *sent: what has been, and is then. */
static int send_some(struct rsocket *rs, const struct iovec *iov, size_t total, size_t *sent)
{
	struct rs_region *target = &rs->target[rs->target_at], to = *target;
	uint32_t bytes = least(rs_room(rs), to.length);
	int rc;

	if (bytes > total - *sent)
		bytes = (uint32_t)(total - *sent);
	target->addr += bytes;
	target->length -= bytes;
	if (!target->length)
		rs->target_at = (rs->target_at + 1) % RS_HALVES;
	rc = rs_post(rs, iov, *sent, bytes, to, RS_DATA, bytes);
	if (!rc)
		*sent += bytes;
	return rc;
}

struct rsocket *rs_begin(int fd, enum rs_call call, int flags, bool *nonblocking)
{
	struct rsocket *rs = rs_hold(fd);
	int rc;

	if (!rs) {
		errno = EBADF;
		return NULL;
	}
	*nonblocking = rs->nonblocking || flags & MSG_DONTWAIT;
	rc = *nonblocking ? pthread_mutex_trylock(&rs->calls[call])
			  : pthread_mutex_lock(&rs->calls[call]);
	if (!rc)
		return rs;
	rs_drop(rs);
	errno = EAGAIN;
	return NULL;
}

ssize_t rs_end(struct rsocket *rs, enum rs_call call, ssize_t result)
{
	pthread_mutex_unlock(&rs->calls[call]);
	rs_drop(rs);
	return result < 0 ? cm_fail((int)-result) : result;
}

static ssize_t sum(const struct iovec *iov, size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += iov[i].iov_len;
	return (ssize_t)total;
}

/* Locked for sending. */
static ssize_t send_all(struct rsocket *rs, const struct iovec *iov, size_t total, bool nonblocking)
{
	size_t sent = 0;
	int rc;

	pthread_mutex_lock(&rs->lock);
	rc = rs_announce(rs, nonblocking);
	while (!rc && sent < total) {
		rc = rs_await_room(rs, nonblocking);
		if (!rc)
			rc = send_some(rs, iov, total, &sent);
	}
	pthread_mutex_unlock(&rs->lock);
	return sent ? (ssize_t)sent : rc;
}

static ssize_t send_on(int fd, const struct iovec *iov, size_t count, int flags)
{
	bool nonblocking;
	struct rsocket *rs = rs_begin(fd, RS_SEND, flags, &nonblocking);

	if (!rs)
		return -1;
	return rs_end(rs, RS_SEND,
		      flags & MSG_OOB ? -EOPNOTSUPP
				      : send_all(rs, iov, (size_t)sum(iov, count), nonblocking));
}

CM_EXPORT ssize_t rsend(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return send_on(fd, &iov, 1, flags);
}

CM_EXPORT ssize_t rsendto(int fd, const void *buf, size_t len, int flags,
			  const struct sockaddr *addr, socklen_t size)
{
	return addr || size ? cm_fail(EISCONN) : rsend(fd, buf, len, flags);
}

CM_EXPORT ssize_t rsendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (msg->msg_control && msg->msg_controllen)
		return cm_fail(ENOTSUP);
	return send_on(fd, msg->msg_iov, msg->msg_iovlen, flags);
}

CM_EXPORT ssize_t rwrite(int fd, const void *buf, size_t count)
{
	return rsend(fd, buf, count, 0);
}

CM_EXPORT ssize_t rwritev(int fd, const struct iovec *parts, int count)
{
	return count < 0 ? cm_fail(EINVAL) : send_on(fd, parts, (size_t)count, 0);
}

/* --- to receive --- */

bool rs_receive_ready(const struct rsocket *rs)
{
	return rs->unread || !rs->can_read || rs->state > RS_CONNECTED;
}

/* Out of the ring, from `at` on. */
static void copy_out(const struct rsocket *rs, uint32_t at, uint8_t *to, uint32_t bytes)
{
	const uint32_t to_end = least(bytes, rs->half * RS_HALVES - at);

	memcpy(to, rs->receive_ring + at, to_end);
	memcpy(to + to_end, rs->receive_ring, bytes - to_end);
}

/* The first bytes are no longer wanted. */
static void consume(struct rsocket *rs, uint32_t bytes)
{
	rs->receive_at = (rs->receive_at + bytes) % (rs->half * RS_HALVES);
	rs->unread -= bytes;
	rs->free_bytes += bytes;
	while (bytes) {
		uint32_t *message = &rs->messages[rs->message_at], n = least(*message, bytes);

		*message -= n;
		bytes -= n;
		if (*message)
			continue;
		rs->message_at = (rs->message_at + 1) % rs->receive_requests;
		rs->message_count--;
		rs->received++;
	}
	rs_give_credits(rs);
}

/* What there is of what is wanted, behind `skip` bytes of the buffers. */
static size_t take_some(struct rsocket *rs, const struct iovec *iov, size_t count, size_t skip,
			bool peek)
{
	uint32_t taken = 0;

	for (size_t i = 0; i < count && taken < rs->unread; i++) {
		uint32_t n = rs->unread - taken;

		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		if (n > iov[i].iov_len - skip)
			n = (uint32_t)(iov[i].iov_len - skip);
		copy_out(rs, (rs->receive_at + taken) % (rs->half * RS_HALVES),
			 (uint8_t *)iov[i].iov_base + skip, n);
		taken += n;
		skip = 0;
	}
	if (!peek)
		consume(rs, taken);
	return taken;
}

/* Nothing will come any more: 0, or the error, once. */
static int end_of_stream(struct rsocket *rs)
{
	int error = rs->error;

	rs->error = 0;
	return -error;
}

/* Locked for receiving. */
static ssize_t receive_all(struct rsocket *rs, const struct iovec *iov, size_t count, int flags,
			   bool nonblocking)
{
	const size_t total = (size_t)sum(iov, count);
	size_t taken = 0;
	int rc;

	pthread_mutex_lock(&rs->lock);
	rc = rs_await_connection(rs, nonblocking);
	while (!rc && taken < total) {
		/* More may have come than has been looked at. */
		if (rs->unread)
			rs_take_completions(rs);
		else
			rc = rs_wait(rs, rs_receive_ready, nonblocking, RS_NEVER);
		if (rc)
			break;
		if (!rs->unread) {
			rc = taken ? 0 : end_of_stream(rs);
			break;
		}
		taken += take_some(rs, iov, count, taken, flags & MSG_PEEK);
		if (flags & MSG_PEEK || !(flags & MSG_WAITALL))
			break;
	}
	pthread_mutex_unlock(&rs->lock);
	return taken ? (ssize_t)taken : rc;
}

static ssize_t receive_on(int fd, const struct iovec *iov, size_t count, int flags)
{
	bool nonblocking;
	struct rsocket *rs = rs_begin(fd, RS_RECEIVE, flags, &nonblocking);

	if (!rs)
		return -1;
	return rs_end(rs, RS_RECEIVE,
		      flags & MSG_OOB ? -EOPNOTSUPP
				      : receive_all(rs, iov, count, flags, nonblocking));
}

CM_EXPORT ssize_t rrecv(int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = {buf, len};

	return receive_on(fd, &iov, 1, flags);
}

CM_EXPORT ssize_t rrecvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
			    socklen_t *size)
{
	ssize_t n = rrecv(fd, buf, len, flags);

	if (n > 0 && addr && size)
		rgetpeername(fd, addr, size);
	return n;
}

CM_EXPORT ssize_t rrecvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t n = receive_on(fd, msg->msg_iov, msg->msg_iovlen, flags);

	if (n >= 0) {
		msg->msg_controllen = 0;
		msg->msg_namelen = 0;
		msg->msg_flags = 0;
	}
	return n;
}

CM_EXPORT ssize_t rread(int fd, void *buf, size_t count)
{
	return rrecv(fd, buf, count, 0);
}

CM_EXPORT ssize_t rreadv(int fd, const struct iovec *parts, int count)
{
	return count < 0 ? cm_fail(EINVAL) : receive_on(fd, parts, (size_t)count, 0);
}
