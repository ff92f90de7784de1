/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of rsockets, as rsocket(7) lists them. Sizes count from the next connection on. See
 * rsocket.h.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include "core/provider/rsocket/rsocket.h"

#define KEEPALIVE_S 7200 /* where the host does not say */

uint32_t rs_iomaps_of(uint8_t code)
{
	return code <= 128 ? code : (code & 127u) << 8;
}

uint8_t rs_iomaps_code(uint32_t count)
{
	return (uint8_t)(count <= 128 ? count : 128 | (count > 127u << 8 ? 127 : count >> 8));
}

static int usual_keepalive_s(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_keepalive_time", "re");
	int seconds = KEEPALIVE_S;

	if (file) {
		if (fscanf(file, "%d", &seconds) != 1 || seconds < 1)
			seconds = KEEPALIVE_S;
		fclose(file);
	}
	return seconds;
}

/* Who sleeps now has to reckon anew. */
static void set_keepalive(struct rsocket *rs, bool on, int seconds)
{
	rs->keepalive = on;
	rs->keepalive_s = seconds;
	rs->keepalive_ms = on ? cm_now_ms() + (uint64_t)seconds * 1000 : RS_NEVER;
	rs_wake(rs);
}

static int set_id_option(struct rsocket *rs, int name, int value, bool *kept)
{
	if (rs->state == RS_NEW && !rs->bound &&
	    rdma_set_option(rs->id, RDMA_OPTION_ID, name, &value, sizeof(value)))
		return -errno;
	*kept = value;
	return 0;
}

static uint32_t twice(int value, uint32_t least)
{
	uint32_t bytes = (uint32_t)(value < 0 ? 0 : value);

	bytes = bytes < RS_MOST_BYTES / 2 ? bytes * 2 : RS_MOST_BYTES;
	return bytes < least ? least : bytes;
}

static int set_socket_option(struct rsocket *rs, int name, int value, const struct linger *linger)
{
	switch (name) {
	case SO_REUSEADDR:
		return set_id_option(rs, RDMA_OPTION_ID_REUSEADDR, value, &rs->reuse);
	case SO_RCVBUF:
		if (!rs->shared)
			rs->receive_bytes = twice(value, RS_HALVES);
		return 0;
	case SO_SNDBUF:
		if (!rs->own)
			rs->send_bytes = twice(value, RS_ENOUGH);
		return 0;
	case SO_LINGER:
		if (!linger)
			return -EINVAL;
		rs->lingers = linger->l_onoff;
		rs->linger_s = linger->l_linger;
		return 0;
	case SO_KEEPALIVE:
		set_keepalive(rs, value, rs->keepalive_s ? rs->keepalive_s : usual_keepalive_s());
		return 0;
	case SO_OOBINLINE:
		rs->oob_inline = value;
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_tcp_option(struct rsocket *rs, int name, int value)
{
	switch (name) {
	case TCP_NODELAY:
		rs->no_delay = value;
		return 0;
	case TCP_KEEPIDLE:
		if (value <= 0)
			return -EINVAL;
		set_keepalive(rs, rs->keepalive, value);
		return 0;
	case TCP_KEEPCNT: /* the transport's own */
	case TCP_KEEPINTVL:
	case TCP_MAXSEG:
		return 0;
	default:
		return -ENOTSUP;
	}
}

static uint32_t at_most(int value, uint32_t most)
{
	return value < 0 || (uint32_t)value > most ? most : (uint32_t)value;
}

static int set_rdma_option(struct rsocket *rs, int name, int value)
{
	if (rs->state > RS_LISTENING)
		return -EINVAL;
	switch (name) {
	case RDMA_SQSIZE:
		rs->send_requests = at_most(value, RS_MOST_REQUESTS);
		return 0;
	case RDMA_RQSIZE:
		rs->receive_requests = at_most(value, RS_MOST_REQUESTS);
		return 0;
	case RDMA_INLINE: /* all that is sent lies in registered memory: it is no faster */
		rs->inline_bytes = at_most(value, UINT16_MAX);
		return 0;
	case RDMA_IOMAPSIZE:
		rs->iomaps = rs_iomaps_of(rs_iomaps_code(at_most(value, UINT16_MAX)));
		return 0;
	case RDMA_ROUTE: /* there is one path */
		return -EINVAL;
	default:
		return -ENOTSUP;
	}
}

static int set_option(struct rsocket *rs, int level, int name, const void *value, socklen_t len)
{
	const struct linger *linger = name == SO_LINGER && len >= sizeof(*linger) ? value : NULL;
	int number;

	if (!value || len < sizeof(number))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	switch (level) {
	case SOL_SOCKET:
		return set_socket_option(rs, name, number, linger);
	case IPPROTO_TCP:
		return set_tcp_option(rs, name, number);
	case IPPROTO_IPV6:
		return name != IPV6_V6ONLY
			       ? -ENOTSUP
			       : set_id_option(rs, RDMA_OPTION_ID_AFONLY, number, &rs->v6_only);
	case SOL_RDMA:
		return set_rdma_option(rs, name, number);
	default:
		return -ENOTSUP;
	}
}

CM_EXPORT int rsetsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct rsocket *rs = rs_get(fd);
	int rc;

	if (!rs)
		return cm_fail(EBADF);
	rc = set_option(rs, level, name, value, len);
	rs_put(rs);
	return rc ? cm_fail(-rc) : 0;
}

static int get_socket_option(struct rsocket *rs, int name)
{
	int error;

	switch (name) {
	case SO_REUSEADDR:
		return rs->reuse;
	case SO_RCVBUF:
		return (int)rs->receive_bytes;
	case SO_SNDBUF:
		return (int)rs->send_bytes;
	case SO_KEEPALIVE:
		return rs->keepalive;
	case SO_OOBINLINE:
		return rs->oob_inline;
	case SO_ERROR:
		rs_progress(rs, false);
		error = rs->error;
		rs->error = 0;
		return error;
	default:
		return -ENOTSUP;
	}
}

static int get_tcp_option(const struct rsocket *rs, int name)
{
	switch (name) {
	case TCP_NODELAY:
		return rs->no_delay;
	case TCP_KEEPIDLE:
		return rs->keepalive_s ? rs->keepalive_s : usual_keepalive_s();
	case TCP_KEEPCNT:
	case TCP_KEEPINTVL:
		return 1;
	case TCP_MAXSEG: /* bytes of a packet; enum ibv_mtu counts 256, 512, ... from 1 on */
		return rs->id->route.num_paths ? 128 << rs->id->route.path_rec->mtu : 2048;
	default:
		return -ENOTSUP;
	}
}

static int get_rdma_option(const struct rsocket *rs, int name)
{
	switch (name) {
	case RDMA_SQSIZE:
		return (int)rs->send_requests;
	case RDMA_RQSIZE:
		return (int)rs->receive_requests;
	case RDMA_INLINE:
		return (int)rs->inline_bytes;
	case RDMA_IOMAPSIZE:
		return (int)rs->iomaps;
	default:
		return -ENOTSUP;
	}
}

/* A number, or -errno. */
static int get_number(struct rsocket *rs, int level, int name)
{
	switch (level) {
	case SOL_SOCKET:
		return get_socket_option(rs, name);
	case IPPROTO_TCP:
		return get_tcp_option(rs, name);
	case IPPROTO_IPV6:
		return name == IPV6_V6ONLY ? rs->v6_only : -ENOTSUP;
	case SOL_RDMA:
		return get_rdma_option(rs, name);
	default:
		return -ENOTSUP;
	}
}

static int get_option(struct rsocket *rs, int level, int name, void *value, socklen_t *len)
{
	const struct linger linger = {rs->lingers, rs->linger_s < 0 ? 0 : rs->linger_s};
	const bool is_linger = level == SOL_SOCKET && name == SO_LINGER;
	int number = is_linger ? 0 : get_number(rs, level, name);
	const socklen_t size = is_linger ? sizeof(linger) : sizeof(number);

	if (number < 0)
		return number;
	if (*len < size)
		return -EINVAL;
	memcpy(value, is_linger ? (const void *)&linger : &number, size);
	*len = size;
	return 0;
}

CM_EXPORT int rgetsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct rsocket *rs = rs_get(fd);
	int rc;

	if (!rs)
		return cm_fail(EBADF);
	rc = get_option(rs, level, name, value, len);
	rs_put(rs);
	return rc ? cm_fail(-rc) : 0;
}
