/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes from machine to machine is recorded where machines can be several: with the link udp.
 * See message.h.
 *
 * The kernel says how many bytes of a TCP connection were written and have come. So it does no harm
 * if something is written or read in a way that is not seen here; a message is only noticed later
 * then, or taken for an earlier one, which was sent as well.
 */
#include "core/record/message.h"
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "core/record/recorder.h"

void recorder_packet(bool in, uint32_t own, uint32_t other, uint32_t qp, uint64_t packet)
{
	if (!recorder_lock())
		return;
	recorder_add_packet(in ? RECORD_PACKET_IN : RECORD_PACKET_OUT, own, other, qp, packet);
	recorder->messages++;
	recorder_unlock();
}

/* Is this process one of several machines? */
static bool between_machines(void)
{
	static int answer; /* 1: yes, 2: no; every thread finds the same */
	if (!answer) {
		const char *link = getenv("TIDEMARK_LINK");
		answer = getenv(RECORD_VARIABLE) && link && !strcmp(link, "udp") ? 1 : 2;
	}
	return answer == 1;
}

/* False: it is none of TCP over IP. */
static bool take_end(struct record_end *end, const struct sockaddr_storage *from)
{
	const struct sockaddr_in *four = (const void *)from;
	const struct sockaddr_in6 *six = (const void *)from;
	*end = (struct record_end){0};
	if (from->ss_family == AF_INET) {
		end->address[10] = end->address[11] = 0xff;
		memcpy(end->address + 12, &four->sin_addr, 4);
		memcpy(end->port, &four->sin_port, 2);
	} else if (from->ss_family == AF_INET6) {
		memcpy(end->address, &six->sin6_addr, 16);
		memcpy(end->port, &six->sin6_port, 2);
	} else {
		return false;
	}
	return true;
}

static bool ends_of(int fd, struct record_connection *connection)
{
	struct sockaddr_storage own, other;
	socklen_t own_len = sizeof(own), other_len = sizeof(other);
	return !getsockname(fd, (struct sockaddr *)&own, &own_len) &&
	       !getpeername(fd, (struct sockaddr *)&other, &other_len) &&
	       take_end(&connection->own, &own) && take_end(&connection->other, &other);
}

/* Linux 4.19 counts the bytes that were sent. */
#define COUNTED (offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof(__u64))

static bool progress_of(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);
	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) && len >= COUNTED;
}

/* The kernel is asked with the lock: of what is recorded before others have written, it has to be
 * true that they had not. */
static void add_message(int fd, bool in)
{
	struct record_connection connection;
	struct tcp_info info = {0};
	if (!ends_of(fd, &connection) || !recorder_lock())
		return;
	if (progress_of(fd, &info)) {
		uint64_t written = info.tcpi_bytes_sent - info.tcpi_bytes_retrans +
				   info.tcpi_notsent_bytes;
		recorder_add(in ? RECORD_SOCKET_IN : RECORD_SOCKET_OUT, 0,
			     in ? info.tcpi_bytes_received : written, &connection,
			     sizeof(connection), 0);
		recorder->messages++;
	}
	recorder_unlock();
}

static void message(int fd, bool in)
{
	if (!between_machines())
		return;
	int error = errno;
	add_message(fd, in);
	errno = error;
}

void message_leaves(int fd)
{
	message(fd, false);
}

void message_came(int fd)
{
	message(fd, true);
}
