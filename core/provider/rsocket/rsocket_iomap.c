/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * riomap(), riounmap(), riowrite(): data that go straight into a buffer of the peer's program,
 * which knows it by an offset. See rsocket.h.
 *
 * A buffer is announced before what is sent next: an entry of the peer's table is written, and the
 * peer told which.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/provider/rsocket/rsocket.h"

void rs_forget_buffers(struct rsocket *rs)
{
	while (rs->buffers) {
		struct rs_buffer *buffer = rs->buffers;

		rs->buffers = buffer->next;
		ibv_dereg_mr(buffer->mr);
		free(buffer);
	}
}

/* An entry of the peer's table that no buffer has; -1: there is none. */
static int free_index(const struct rsocket *rs)
{
	for (int index = 0; (uint32_t)index < rs->peer_iomaps.length; index++) {
		const struct rs_buffer *buffer = rs->buffers;

		while (buffer && buffer->index != index)
			buffer = buffer->next;
		if (!buffer)
			return index;
	}
	return -1;
}

static int map(struct rsocket *rs, void *buf, size_t len, int prot, off_t offset)
{
	const bool remote = prot & PROT_WRITE;
	struct rs_buffer *buffer;
	int index = remote ? free_index(rs) : -1;

	if (!rs->shared_mr || prot & ~PROT_WRITE || len > UINT32_MAX)
		return -EINVAL;
	buffer = remote && index < 0 ? NULL : calloc(1, sizeof(*buffer));
	if (!buffer)
		return -ENOMEM;
	buffer->index = index;
	buffer->offset = (uint64_t)offset;
	buffer->mr = ibv_reg_mr(rs->id->pd, buf, len,
				IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (!buffer->mr) {
		free(buffer);
		return -errno;
	}
	buffer->next = rs->buffers;
	rs->buffers = buffer;
	return 0;
}

CM_EXPORT off_t riomap(int fd, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rsocket *rs = rs_get(fd);
	int rc;

	(void)flags;
	if (!rs)
		return cm_fail(EBADF);
	if (offset == -1)
		offset = (off_t)(uintptr_t)buf;
	rc = map(rs, buf, len, prot, offset);
	rs_put(rs);
	return rc ? cm_fail(-rc) : offset;
}

CM_EXPORT int riounmap(int fd, void *buf, size_t len)
{
	struct rsocket *rs = rs_get(fd);
	int rc = -EINVAL;

	if (!rs)
		return cm_fail(EBADF);
	for (struct rs_buffer **at = &rs->buffers; *at; at = &(*at)->next) {
		struct rs_buffer *buffer = *at;

		if (buffer->mr->addr != buf || buffer->mr->length != len)
			continue;
		*at = buffer->next;
		ibv_dereg_mr(buffer->mr);
		free(buffer);
		rc = 0;
		break;
	}
	rs_put(rs);
	return rc ? cm_fail(-rc) : 0;
}

static struct rs_buffer *unannounced(const struct rsocket *rs)
{
	struct rs_buffer *buffer = rs->buffers;

	while (buffer && (buffer->index < 0 || buffer->announced))
		buffer = buffer->next;
	return buffer;
}

static int announce(struct rsocket *rs, struct rs_buffer *buffer)
{
	const struct rs_region region = {(uintptr_t)buffer->mr->addr, buffer->mr->rkey,
					 (uint32_t)buffer->mr->length};
	struct rs_mapping mapping = {rs->swap ? __builtin_bswap64(buffer->offset) : buffer->offset,
				     rs_for_peer(rs, region)};
	const struct iovec from = {&mapping, sizeof(mapping)};
	struct rs_region to = rs->peer_iomaps;

	to.addr += (uint32_t)buffer->index * sizeof(mapping);
	buffer->announced = true;
	return rs_post(rs, &from, 0, sizeof(mapping), to, RS_IOMAP, (uint32_t)buffer->index);
}

int rs_announce(struct rsocket *rs, bool nonblocking)
{
	int rc = rs_await_connection(rs, nonblocking);

	/* While it waits another thread may unmap one. */
	while (!rc && unannounced(rs)) {
		rc = rs_await_room(rs, nonblocking);
		if (!rc && unannounced(rs))
			rc = announce(rs, unannounced(rs));
	}
	return rc;
}

/* Where the offset lies in a buffer of the peer's, to the buffer's end. */
static bool find(const struct rsocket *rs, uint64_t offset, struct rs_region *to)
{
	for (uint32_t i = 0; i < rs->iomaps; i++) {
		const struct rs_mapping *mapping = &rs->mapped[i];

		if (offset < mapping->offset || offset - mapping->offset >= mapping->region.length)
			continue;
		*to = mapping->region;
		to->addr += offset - mapping->offset;
		to->length -= (uint32_t)(offset - mapping->offset);
		return true;
	}
	return false;
}

/* Locked for sending. */
static ssize_t write_direct(struct rsocket *rs, const struct iovec *from, uint64_t offset,
			    bool nonblocking)
{
	struct rs_region to;
	size_t sent = 0;
	int rc;

	pthread_mutex_lock(&rs->lock);
	rc = rs_announce(rs, nonblocking);
	rs_progress(rs, false);
	while (!rc && sent < from->iov_len) {
		uint32_t bytes;

		rc = rs_await_room(rs, nonblocking);
		if (!rc && !find(rs, offset + sent, &to))
			rc = -EINVAL;
		if (rc)
			break;
		bytes = rs_room(rs);
		if (bytes > to.length)
			bytes = to.length;
		if (bytes > from->iov_len - sent)
			bytes = (uint32_t)(from->iov_len - sent);
		rc = rs_post(rs, from, sent, bytes, to, RS_DIRECT, 0);
		if (!rc)
			sent += bytes;
	}
	pthread_mutex_unlock(&rs->lock);
	return sent ? (ssize_t)sent : rc;
}

CM_EXPORT size_t riowrite(int fd, const void *buf, size_t count, off_t offset, int flags)
{
	const struct iovec from = {(void *)(uintptr_t)buf, count};
	bool nonblocking;
	struct rsocket *rs = rs_begin(fd, RS_SEND, flags, &nonblocking);

	if (!rs)
		return (size_t)-1;
	return (size_t)rs_end(rs, RS_SEND, write_direct(rs, &from, (uint64_t)offset, nonblocking));
}
