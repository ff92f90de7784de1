/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets over the soft RNIC, as a program meets them: each test over shared memory and over UDP.
 * Both ends are in one process, but where one dies or is stopped: that is a child, made before
 * there is a device.
 */
#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/core/provider/nic_net.h"

#define LONG_MS 60000 /* more than anything takes that is not late */
#define MANY	3000000u

/* Of a test: who listens, who has asked, who was asked. */
struct pair {
	int listener, a, b;
};

/* --- what the tests are made of --- */

static void use_link(int i)
{
	setenv("TIDEMARK_LINK", i ? "udp" : "shm", 1);
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

#define ck_fails(call, error)                                                      \
	do {                                                                       \
		errno = 0;                                                         \
		ck_assert_int_eq((call), -1);                                      \
		ck_assert_msg(errno == (error), "%s: %s", #call, strerror(errno)); \
	} while (0)

static int fresh(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);

	ck_assert_int_eq(rgetsockname(fd, (struct sockaddr *)&addr, &len), 0);
	ck_assert_uint_eq(len, sizeof(addr));
	return ntohs(addr.sin_port);
}

static int listen_on(int fd)
{
	struct sockaddr_in any = loopback(0);

	ck_assert_int_eq(rbind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	ck_assert_int_eq(rlisten(fd, 8), 0);
	return fd;
}

static void set_int(int fd, int level, int name, int value)
{
	ck_assert_int_eq(rsetsockopt(fd, level, name, &value, sizeof(value)), 0);
}

static int get_int(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	ck_assert_int_eq(rgetsockopt(fd, level, name, &value, &len), 0);
	ck_assert_uint_eq(len, sizeof(int));
	return value;
}

static void set_nonblocking(int fd, bool on)
{
	ck_assert_int_eq(rfcntl(fd, F_SETFL, on ? O_NONBLOCK : 0), 0);
	ck_assert_int_eq(!!(rfcntl(fd, F_GETFL) & O_NONBLOCK), on);
}

/* The events within so many ms; 0: none. */
static short events(int fd, short wanted, int ms)
{
	struct pollfd at = {.fd = fd, .events = wanted};
	int n = rpoll(&at, 1, ms);

	ck_assert_int_eq(n, at.revents ? 1 : 0);
	return at.revents;
}

static int ask(int fd, uint16_t port)
{
	struct sockaddr_in addr = loopback(port);

	return rconnect(fd, (struct sockaddr *)&addr, sizeof(addr));
}

/* Of descriptors that have their options. */
static struct pair join(int listener, int a)
{
	struct pair p = {.listener = listen_on(listener), .a = a};

	set_nonblocking(p.a, true);
	ck_fails(ask(p.a, port_of(p.listener)), EINPROGRESS);
	p.b = raccept(p.listener, NULL, NULL);
	ck_assert_int_ge(p.b, 0);
	ck_assert_int_eq(events(p.a, POLLOUT, LONG_MS), POLLOUT);
	ck_assert_int_eq(get_int(p.a, SOL_SOCKET, SO_ERROR), 0);
	set_nonblocking(p.a, false);
	return p;
}

static struct pair connected(int i)
{
	use_link(i);
	return join(fresh(), fresh());
}

static void end(struct pair *p)
{
	ck_assert_int_eq(rclose(p->a), 0);
	ck_assert_int_eq(rclose(p->b), 0);
	ck_assert_int_eq(rclose(p->listener), 0);
}

static uint8_t byte_at(size_t at, unsigned seed)
{
	return (uint8_t)(at * 7 + (at >> 8) * 13 + (at >> 16) + seed);
}

static void fill(uint8_t *to, size_t at, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = byte_at(at + i, seed);
}

static void is_filled(const uint8_t *from, size_t at, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (from[i] != byte_at(at + i, seed))
			ck_abort_msg("byte %zu is %u", at + i, from[i]);
}

static void send_text(int fd, const char *text)
{
	ck_assert_int_eq(rsend(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void expect_text(int fd, const char *text)
{
	char got[64] = "";

	ck_assert_int_eq(rrecv(fd, got, strlen(text), MSG_WAITALL), (ssize_t)strlen(text));
	ck_assert_str_eq(got, text);
}

/* Until it would wait; how many bytes. */
static size_t send_until_full(int fd)
{
	static uint8_t bytes[5000];
	size_t sent = 0;
	ssize_t n;

	while ((n = rsend(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		sent += (size_t)n;
	ck_assert_int_eq(errno, EAGAIN);
	return sent;
}

/* Until only the peer's reading makes room: what was on its way has arrived. */
static size_t send_all_it_takes(int fd)
{
	size_t sent = 0;

	do
		sent += send_until_full(fd);
	while (events(fd, POLLOUT, 300));
	return sent;
}

static void receive_bytes(int fd, size_t bytes)
{
	uint8_t got[4096];

	while (bytes) {
		ssize_t n = rrecv(fd, got, bytes < sizeof(got) ? bytes : sizeof(got), 0);

		ck_assert_int_gt(n, 0);
		bytes -= (size_t)n;
	}
}

/* --- streams --- */

struct stream {
	int fd;
	unsigned seed;
	size_t bytes, most; /* most at a time */
};

static void *sender(void *arg)
{
	const struct stream *s = arg;
	uint8_t *from = malloc(s->most);

	for (size_t at = 0, n; at < s->bytes; at += n) {
		n = 1 + (at * 31 + 17) % s->most;
		n = n < s->bytes - at ? n : s->bytes - at;
		fill(from, at, n, s->seed);
		ck_assert_int_eq(rsend(s->fd, from, n, 0), (ssize_t)n);
	}
	free(from);
	return NULL;
}

static void *receiver(void *arg)
{
	const struct stream *s = arg;
	uint8_t *to = malloc(s->most);
	ssize_t n;

	for (size_t at = 0; at < s->bytes; at += (size_t)n) {
		n = rrecv(s->fd, to, 1 + (at * 13 + 5) % s->most, 0);
		ck_assert_int_gt(n, 0);
		is_filled(to, at, (size_t)n, s->seed);
	}
	free(to);
	return NULL;
}

/* Both ways at once: of each end one thread sends, another receives. */
static void both_ways(const struct pair *p, size_t bytes, size_t most)
{
	struct stream s[4] = {{p->a, 1, bytes, most},
			      {p->b, 1, bytes, most / 3 + 1},
			      {p->b, 2, bytes, most / 2 + 1},
			      {p->a, 2, bytes, most}};
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, i % 2 ? receiver : sender, &s[i]), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* Nothing wakes who sleeps for it now, but for what may still be under way. */
static void is_quiet(int fd)
{
	struct pollfd at = {.fd = fd, .events = POLLIN};
	unsigned tries = 0;

	do
		ck_assert_int_eq(events(fd, POLLIN, 50), 0);
	while (poll(&at, 1, 0) && ++tries < 50);
	ck_assert_uint_lt(tries, 50);
}

START_TEST(bytes_arrive_in_order)
{
	struct pair p = connected(_i);

	both_ways(&p, MANY, 300000); /* more than there is room for, at a time */
	both_ways(&p, 20000, 40);
	is_quiet(p.a);
	is_quiet(p.b);
	end(&p);
}
END_TEST

/* Rings of odd sizes, as few requests as there can be. */
START_TEST(little_room)
{
	int fds[2];

	use_link(_i);
	for (unsigned i = 0; i < 2; i++) {
		fds[i] = fresh();
		set_int(fds[i], SOL_SOCKET, SO_SNDBUF, i ? 1025 : 1);
		set_int(fds[i], SOL_SOCKET, SO_RCVBUF, i ? 1 : 777);
		set_int(fds[i], SOL_RDMA, RDMA_SQSIZE, 1);
		set_int(fds[i], SOL_RDMA, RDMA_RQSIZE, 1);
	}
	struct pair p = join(fds[0], fds[1]);

	ck_assert_int_eq(get_int(p.a, SOL_RDMA, RDMA_RQSIZE), 16);
	both_ways(&p, 5000, 3000);
	end(&p);
}
END_TEST

/* As many messages as the peer has requests for, and no more, until it has read. */
START_TEST(credits)
{
	int listener;

	use_link(_i);
	listener = fresh();
	set_int(listener, SOL_RDMA, RDMA_RQSIZE, 16);
	struct pair p = join(listener, fresh());

	for (unsigned turn = 0; turn < 3; turn++) {
		unsigned sent = 0;

		while (sent < 16) {
			ck_assert_int_eq(events(p.a, POLLOUT, LONG_MS), POLLOUT);
			while (rsend(p.a, "x", 1, MSG_DONTWAIT) == 1)
				sent++;
		}
		ck_assert_uint_eq(sent, 16);
		ck_assert_int_eq(events(p.a, POLLOUT, 300), 0);
		receive_bytes(p.b, sent);
	}
	end(&p);
}
END_TEST

START_TEST(reads_what_is_there)
{
	struct pair p = connected(_i);
	char got[32] = "";

	ck_fails(rrecv(p.b, got, 8, MSG_DONTWAIT), EAGAIN);
	send_text(p.a, "abcdef");
	ck_assert_int_eq(rrecv(p.b, got, 3, 0), 3);
	ck_assert_mem_eq(got, "abc", 3);
	ck_assert_int_eq(rread(p.b, got, 32), 3);
	ck_assert_mem_eq(got, "def", 3);
	ck_assert_int_eq(rrecv(p.b, got, 0, 0), 0);
	set_nonblocking(p.b, true);
	ck_fails(rread(p.b, got, 8), EAGAIN);
	end(&p);
}
END_TEST

static void *sends_later(void *arg)
{
	usleep(100000);
	send_text(*(int *)arg, "two");
	return NULL;
}

START_TEST(peeks_and_waits_for_all)
{
	struct pair p = connected(_i);
	pthread_t thread;
	char got[32] = "";

	send_text(p.a, "abc");
	expect_text(p.b, "a");
	send_text(p.a, "def"); /* is seen behind what has not been read */
	while (rrecv(p.b, got, 32, MSG_PEEK) != 5)
		;
	ck_assert_mem_eq(got, "bcdef", 5);
	ck_assert_int_eq(rrecv(p.b, got, 5, MSG_WAITALL), 5);
	ck_assert_mem_eq(got, "bcdef", 5);
	ck_fails(rrecv(p.b, got, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
	send_text(p.a, "one ");
	ck_assert_int_eq(pthread_create(&thread, NULL, sends_later, &p.a), 0);
	ck_assert_int_eq(rrecv(p.b, got, 7, MSG_WAITALL), 7);
	ck_assert_mem_eq(got, "one two", 7);
	pthread_join(thread, NULL);
	/* As much as there is, if it may not wait, or no more will come. */
	send_text(p.a, "xyz");
	ck_assert_int_eq(events(p.b, POLLIN, LONG_MS), POLLIN);
	ck_assert_int_eq(rrecv(p.b, got, 8, MSG_WAITALL | MSG_DONTWAIT), 3);
	send_text(p.a, "uv");
	ck_assert_int_eq(rshutdown(p.a, SHUT_WR), 0);
	ck_assert_int_eq(rrecv(p.b, got, 8, MSG_WAITALL), 2);
	ck_assert_int_eq(rrecv(p.b, got, 8, MSG_WAITALL), 0);
	end(&p);
}
END_TEST

START_TEST(in_parts)
{
	struct pair p = connected(_i);
	struct iovec out[4] = {{"ab", 2}, {"", 0}, {"cde", 3}, {"f", 1}};
	char got[3][8] = {""};
	struct iovec in[3] = {{got[0], 1}, {got[1], 3}, {got[2], 8}};
	struct sockaddr_in from;
	struct msghdr msg = {.msg_iov = out, .msg_iovlen = 4};
	socklen_t len = sizeof(from);

	ck_assert_int_eq(rwritev(p.a, out, 4), 6);
	while (rrecv(p.b, got[2], 8, MSG_PEEK) != 6)
		;
	ck_assert_int_eq(rreadv(p.b, in, 3), 6);
	ck_assert(got[0][0] == 'a' && !memcmp(got[1], "bcd", 3) && !memcmp(got[2], "ef", 2));
	ck_assert_int_eq(rsendmsg(p.a, &msg, 0), 6);
	msg = (struct msghdr){.msg_iov = in, .msg_iovlen = 3, .msg_controllen = 5, .msg_flags = 77};
	ck_assert_int_eq(rrecvmsg(p.b, &msg, MSG_WAITALL | MSG_PEEK), 6);
	ck_assert(!msg.msg_controllen && !msg.msg_flags);
	ck_assert_int_eq(rrecvfrom(p.b, got[2], 6, MSG_WAITALL, (struct sockaddr *)&from, &len), 6);
	ck_assert_mem_eq(got[2], "abcdef", 6);
	ck_assert_uint_eq(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	ck_assert_uint_eq(ntohs(from.sin_port), port_of(p.a));
	ck_assert_int_eq(rsendto(p.a, "x", 1, 0, NULL, 0), 1);
	ck_fails(rsendto(p.a, "x", 1, 0, (struct sockaddr *)&from, sizeof(from)), EISCONN);
	msg = (struct msghdr){
		.msg_iov = out, .msg_iovlen = 1, .msg_control = &from, .msg_controllen = 8};
	ck_fails(rsendmsg(p.a, &msg, 0), ENOTSUP);
	ck_fails(rsend(p.a, "x", 1, MSG_OOB), EOPNOTSUPP);
	ck_fails(rrecv(p.a, got, 1, MSG_OOB), EOPNOTSUPP);
	end(&p);
}
END_TEST

/* --- connections --- */

START_TEST(connects_and_does_not_wait)
{
	int listener, fd;

	use_link(_i);
	listener = listen_on(fresh());
	fd = fresh();
	set_nonblocking(listener, true);
	ck_fails(raccept(listener, NULL, NULL), EAGAIN);
	ck_assert_int_eq(events(fd, POLLIN | POLLOUT, 0), 0);
	ck_fails(rsend(fd, "x", 1, 0), ENOTCONN);
	set_nonblocking(fd, true);
	ck_fails(ask(fd, port_of(listener)), EINPROGRESS);
	ck_assert_int_eq(events(listener, POLLIN, LONG_MS), POLLIN);
	ck_assert_int_eq(events(fd, POLLIN | POLLOUT, 50), 0);
	ck_fails(ask(fd, port_of(listener)), EALREADY);
	ck_fails(rsend(fd, "x", 1, 0), EAGAIN);

	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	struct pair p = {listener, fd, raccept(listener, (struct sockaddr *)&addr, &len)};

	ck_assert_int_ge(p.b, 0);
	ck_assert_uint_eq(ntohs(addr.sin_port), port_of(fd));
	ck_assert_int_eq(events(fd, POLLIN | POLLOUT, LONG_MS), POLLOUT);
	ck_fails(ask(fd, port_of(listener)), EISCONN);
	len = sizeof(addr);
	ck_assert_int_eq(rgetpeername(fd, (struct sockaddr *)&addr, &len), 0);
	ck_assert_uint_eq(ntohs(addr.sin_port), port_of(listener));
	ck_assert_int_eq(rfcntl(p.b, F_GETFL) & O_NONBLOCK, 0); /* not inherited */
	send_text(p.a, "hello");
	expect_text(p.b, "hello");
	end(&p);
}
END_TEST

/* Of the other family; who listens at all addresses is asked by either. */
START_TEST(both_families)
{
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6}, peer;
	struct sockaddr_in addr4 = loopback(0);
	socklen_t len = sizeof(peer);
	struct pair p;

	use_link(_i);
	p.listener = rsocket(AF_INET6, SOCK_STREAM, IPPROTO_TCP);
	ck_fails(rbind(p.listener, (struct sockaddr *)&addr4, sizeof(addr4)), EAFNOSUPPORT);
	ck_fails(rbind(p.listener, (struct sockaddr *)&addr, sizeof(addr4)), EINVAL);
	ck_assert_int_eq(rbind(p.listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(rlisten(p.listener, 8), 0);
	ck_assert_int_eq(rgetsockname(p.listener, (struct sockaddr *)&addr, &len), 0);
	ck_assert_uint_eq(len, sizeof(addr));
	for (unsigned i = 0; i < 2; i++) {
		addr.sin6_addr = in6addr_loopback;
		addr4.sin_port = addr.sin6_port;
		p.a = rsocket(i ? AF_INET : AF_INET6, SOCK_STREAM, 0);
		set_nonblocking(p.a, true);
		ck_fails(i ? ask(p.a, ntohs(addr.sin6_port))
			   : rconnect(p.a, (struct sockaddr *)&addr, sizeof(addr)),
			 EINPROGRESS);
		p.b = raccept(p.listener, NULL, NULL);
		ck_assert_int_ge(p.b, 0);
		set_nonblocking(p.a, false);
		send_text(p.a, "hello");
		expect_text(p.b, "hello");
		len = sizeof(peer);
		ck_assert_int_eq(rgetpeername(p.a, (struct sockaddr *)&peer, &len), 0);
		ck_assert_uint_eq(len, i ? sizeof(addr4) : sizeof(peer));
		ck_assert_mem_eq(&peer, i ? (void *)&addr4 : &addr, len);
		rclose(p.a);
		rclose(p.b);
	}
	rclose(p.listener);
}
END_TEST

START_TEST(nobody_listens)
{
	uint16_t port;
	int fd;

	use_link(_i);
	fd = listen_on(fresh());
	port = port_of(fd);
	rclose(fd);
	fd = fresh();
	ck_fails(ask(fd, port), ECONNREFUSED);
	ck_assert_int_eq(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	rclose(fd);
	fd = fresh();
	set_nonblocking(fd, true);
	ck_fails(ask(fd, port), EINPROGRESS);
	ck_assert_int_eq(events(fd, POLLOUT, LONG_MS), POLLOUT | POLLERR);
	ck_assert_int_eq(get_int(fd, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	ck_assert_int_eq(get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	rclose(fd);
}
END_TEST

static void *asks(void *arg)
{
	struct stream *s = arg;

	ck_assert_int_eq(ask(s->fd, (uint16_t)s->bytes), 0);
	return NULL;
}

/* Who is no rsocket is refused, and the next one accepted. */
START_TEST(strangers)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *rai;
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0}};
	struct rdma_cm_id *id;
	struct stream s;
	pthread_t thread;
	char port[8];
	struct pair p;

	use_link(_i);
	p.listener = listen_on(fresh());
	snprintf(port, sizeof(port), "%u", port_of(p.listener));
	ck_assert_int_eq(rdma_getaddrinfo("127.0.0.1", port, &hints, &rai), 0);
	ck_assert_int_eq(rdma_create_ep(&id, rai, NULL, &init), 0);
	rdma_freeaddrinfo(rai);
	ck_assert_int_eq(fcntl(id->channel->fd, F_SETFL, O_NONBLOCK), 0);
	ck_fails(rdma_connect(id, NULL), EAGAIN);
	ck_assert_int_eq(events(p.listener, POLLIN, LONG_MS), POLLIN);
	p.a = fresh();
	s = (struct stream){.fd = p.a, .bytes = port_of(p.listener)};
	ck_assert_int_eq(pthread_create(&thread, NULL, asks, &s), 0);
	p.b = raccept(p.listener, NULL, NULL);
	ck_assert_int_ge(p.b, 0);
	pthread_join(thread, NULL);
	send_text(p.b, "you");
	expect_text(p.a, "you");
	struct pollfd at = {.fd = id->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	ck_assert_int_eq(poll(&at, 1, LONG_MS), 1);
	ck_assert_int_eq(rdma_get_cm_event(id->channel, &event), 0);
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_REJECTED);
	rdma_ack_cm_event(event);
	rdma_destroy_ep(id);
	end(&p);
}
END_TEST

static void *asks_a_stranger(void *arg)
{
	struct stream *s = arg;

	ck_fails(ask(s->fd, (uint16_t)s->bytes), EPROTO);
	ck_fails(rsend(s->fd, "x", 1, 0), ECONNRESET);
	return NULL;
}

/* Who is no rsocket accepts. */
START_TEST(stranger_accepts)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *rai;
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0}};
	struct rdma_cm_id *listener, *id;
	struct stream s;
	pthread_t thread;

	use_link(_i);
	ck_assert_int_eq(rdma_getaddrinfo("127.0.0.1", "0", &hints, &rai), 0);
	ck_assert_int_eq(rdma_create_ep(&listener, rai, NULL, &init), 0);
	rdma_freeaddrinfo(rai);
	ck_assert_int_eq(rdma_listen(listener, 1), 0);
	s = (struct stream){.fd = fresh(), .bytes = ntohs(rdma_get_src_port(listener))};
	ck_assert_int_eq(pthread_create(&thread, NULL, asks_a_stranger, &s), 0);
	ck_assert_int_eq(rdma_get_request(listener, &id), 0);
	ck_assert_int_eq(rdma_accept(id, NULL), 0);
	pthread_join(thread, NULL);
	rclose(s.fd);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}
END_TEST

START_TEST(halves_are_shut)
{
	struct pair p = connected(_i);
	char got[8];

	ck_assert_int_eq(rshutdown(p.a, SHUT_WR), 0);
	ck_fails(rsend(p.a, "x", 1, 0), EPIPE);
	ck_assert_int_eq(events(p.b, POLLIN, LONG_MS), POLLIN);
	ck_assert_int_eq(rrecv(p.b, got, 8, 0), 0);
	ck_assert_int_eq(events(p.b, POLLIN | POLLOUT, 0), POLLIN | POLLOUT);
	send_text(p.b, "still");
	expect_text(p.a, "still");
	send_text(p.b, "last");
	ck_assert_int_eq(rshutdown(p.b, SHUT_WR), 0);
	/* Of the end the program hears behind the data, if it wants data. */
	ck_assert_int_eq(events(p.a, 0, LONG_MS), POLLHUP);
	ck_assert_int_eq(events(p.a, POLLIN, 0), POLLIN);
	expect_text(p.a, "last");
	ck_assert_int_eq(rrecv(p.a, got, 8, 0), 0);
	ck_assert_int_eq(events(p.a, POLLIN, 0), POLLIN | POLLHUP);
	ck_assert_int_eq(events(p.b, POLLIN, 0), POLLIN | POLLHUP);
	ck_fails(rshutdown(p.a, 9), EINVAL);
	end(&p);
}
END_TEST

START_TEST(closes)
{
	struct pair p = connected(_i);
	char got[8];

	/* All that was sent is there; what was not read is gone. */
	send_text(p.a, "one");
	send_text(p.b, "unread");
	ck_assert_int_eq(rclose(p.a), 0);
	ck_fails(rclose(p.a), EBADF);
	expect_text(p.b, "one");
	ck_assert_int_eq(rrecv(p.b, got, 8, 0), 0);
	ck_assert_int_eq(events(p.b, POLLIN, 0), POLLIN | POLLHUP);
	ck_fails(rsend(p.b, "x", 1, 0), ECONNRESET);
	ck_assert_int_eq(rclose(p.b), 0);
	/* The listener goes on. */
	p.a = fresh();
	set_nonblocking(p.a, true);
	ck_fails(ask(p.a, port_of(p.listener)), EINPROGRESS);
	p.b = raccept(p.listener, NULL, NULL);
	ck_assert_int_ge(p.b, 0);
	ck_assert_int_eq(events(p.a, POLLOUT, LONG_MS), POLLOUT);
	end(&p);
}
END_TEST

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Nothing is left of those that are gone: connected, refused, never used. */
START_TEST(gives_back)
{
	struct pair p = connected(_i);
	uint16_t port = port_of(p.listener);
	unsigned before = 0;

	rclose(p.listener);
	for (unsigned i = 0; i < 4; i++) {
		struct pair more = connected(_i);
		int fd = fresh();

		ck_fails(ask(fd, port), ECONNREFUSED);
		send_text(more.a, "unread");
		end(&more);
		ck_assert_int_eq(rclose(fd), 0);
		ck_assert_int_eq(rclose(fresh()), 0);
		if (!i)
			before = descriptors();
	}
	/* The NIC has one for a moment now and then. */
	for (uint64_t start = now_ms(); descriptors() > before && now_ms() - start < LONG_MS;)
		usleep(1000);
	ck_assert_uint_le(descriptors(), before);
	rclose(p.a);
	rclose(p.b);
}
END_TEST

static void *shuts_later(void *arg)
{
	usleep(100000);
	ck_assert_int_eq(rshutdown(*(int *)arg, SHUT_RDWR), 0);
	return NULL;
}

/* Does the test's first thread wait for something? */
static bool first_thread_sleeps(void)
{
	char path[64], text[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
	fclose(file);
	return strstr(text, ") S ");
}

/* When the first thread is in the call that this is to end. */
static void *closes_later(void *arg)
{
	while (!first_thread_sleeps())
		usleep(10000);
	usleep(100000);
	ck_assert_int_eq(rclose(*(int *)arg), 0);
	return NULL;
}

/* A call that waits in another thread ends. */
START_TEST(shut_while_it_waits)
{
	struct pair p = connected(_i);
	pthread_t thread;
	char got[8];

	ck_assert_int_eq(pthread_create(&thread, NULL, shuts_later, &p.a), 0);
	ck_assert_int_eq(rrecv(p.a, got, 8, 0), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rrecv(p.b, got, 8, 0), 0);
	end(&p);
}
END_TEST

START_TEST(closed_while_it_waits)
{
	struct pair p = connected(_i);
	pthread_t thread;
	char got[8];

	ck_assert_int_eq(pthread_create(&thread, NULL, closes_later, &p.a), 0);
	ck_assert_int_eq(rrecv(p.a, got, 8, 0), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rrecv(p.b, got, 8, 0), 0);
	/* In rpoll(), and in raccept(). */
	ck_assert_int_eq(pthread_create(&thread, NULL, closes_later, &p.b), 0);
	ck_assert_int_ne(events(p.b, 0, LONG_MS), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, closes_later, &p.listener), 0);
	ck_fails(raccept(p.listener, NULL, NULL), EINVAL);
	pthread_join(thread, NULL);
	ck_fails(rclose(p.listener), EBADF);
}
END_TEST

/* --- poll --- */

START_TEST(polls)
{
	struct pair p = connected(_i);
	int pipes[2];
	uint64_t start = now_ms();
	size_t sent;

	ck_assert_int_eq(events(p.a, POLLIN, 100), 0);
	ck_assert_uint_ge(now_ms() - start, 100);
	ck_assert_int_eq(rpoll(NULL, 0, 10), 0);
	ck_assert_int_eq(events(p.a, POLLIN | POLLOUT, 0), POLLOUT);
	ck_assert_int_eq(pipe(pipes), 0);
	struct pollfd fds[4] = {
		{p.a, POLLIN, 9}, {pipes[0], POLLIN, 9}, {-1, POLLIN, 9}, {p.b, POLLIN, 9}};

	ck_assert_int_eq(rpoll(fds, 4, 0), 0);
	ck_assert(!fds[0].revents && !fds[1].revents && !fds[2].revents && !fds[3].revents);
	ck_assert_int_eq(write(pipes[1], "x", 1), 1);
	ck_assert_int_eq(rpoll(fds, 4, LONG_MS), 1);
	ck_assert(!fds[0].revents && fds[1].revents == POLLIN && !fds[3].revents);
	send_text(p.a, "x");
	while (rpoll(fds, 4, LONG_MS) != 2)
		;
	ck_assert(!fds[0].revents && fds[1].revents == POLLIN && fds[3].revents == POLLIN);
	/* Full, until the peer has read. */
	sent = send_all_it_takes(p.a);
	receive_bytes(p.b, sent + 1);
	ck_assert_int_eq(events(p.a, POLLOUT, LONG_MS), POLLOUT);
	is_quiet(p.a);
	is_quiet(p.b);
	fds[0] = (struct pollfd){.fd = 1000, .events = POLLIN};
	ck_assert_int_eq(rpoll(fds, 1, 0), 1);
	ck_assert_int_eq(fds[0].revents, POLLNVAL);
	end(&p);
}
END_TEST

START_TEST(selects)
{
	struct pair p = connected(_i);
	struct timeval soon = {0, 20000}, late = {LONG_MS / 1000, 0};
	fd_set in, out, except;
	int pipes[2], n;

	ck_assert_int_eq(pipe(pipes), 0);
	n = (p.b > pipes[1] ? p.b : pipes[1]) + 1;
	FD_ZERO(&in);
	FD_SET(p.a, &in);
	FD_SET(pipes[0], &in);
	ck_assert_int_eq(rselect(n, &in, NULL, NULL, &soon), 0);
	ck_assert(!FD_ISSET(p.a, &in) && !FD_ISSET(pipes[0], &in));
	send_text(p.b, "x");
	FD_SET(p.a, &in);
	FD_SET(pipes[0], &in);
	FD_ZERO(&out);
	ck_assert_int_eq(rselect(n, &in, &out, NULL, &late), 1);
	ck_assert(FD_ISSET(p.a, &in) && !FD_ISSET(pipes[0], &in));
	FD_SET(p.a, &out);
	FD_SET(pipes[1], &out);
	FD_ZERO(&except);
	FD_SET(p.a, &except);
	ck_assert_int_eq(rselect(n, &in, &out, &except, NULL), 3);
	ck_assert(FD_ISSET(p.a, &in) && FD_ISSET(p.a, &out) && FD_ISSET(pipes[1], &out));
	ck_assert(!FD_ISSET(p.a, &except));
	ck_fails(rselect(-1, NULL, NULL, NULL, NULL), EINVAL);
	FD_ZERO(&in);
	FD_SET(1000, &in);
	ck_fails(rselect(1001, &in, NULL, NULL, NULL), EBADF);
	end(&p);
}
END_TEST

#define TURNS 300

static void *polls_and_sends(void *arg)
{
	int fd = *(int *)arg;

	for (unsigned i = 0; i < TURNS; i++) {
		ck_assert_int_eq(events(fd, POLLOUT, LONG_MS) & POLLOUT, POLLOUT);
		send_until_full(fd);
	}
	ck_assert_int_eq(rshutdown(fd, SHUT_WR), 0);
	return NULL;
}

static void *echoes_a_byte(void *arg)
{
	int fd = *(int *)arg;
	uint8_t got[4096];
	unsigned n = 0;

	while (rrecv(fd, got, sizeof(got), 0) > 0)
		if (n++ < TURNS)
			ck_assert_int_eq(rsend(fd, "x", 1, 0), 1);
	ck_assert_uint_ge(n, TURNS);
	return NULL;
}

/* Two threads sleep for one rsocket, one in rpoll() until it may send, one in rrecv(): whichever of
 * them is woken finds what the other one waits for, too. */
START_TEST(wakes_the_other)
{
	struct pair p = connected(_i);
	pthread_t threads[2];

	ck_assert_int_eq(pthread_create(&threads[0], NULL, polls_and_sends, &p.a), 0);
	ck_assert_int_eq(pthread_create(&threads[1], NULL, echoes_a_byte, &p.b), 0);
	receive_bytes(p.a, TURNS);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	end(&p);
}
END_TEST

/* --- options --- */

START_TEST(options)
{
	static const struct {
		int level, name, set, get;
	} list[] = {{SOL_SOCKET, SO_REUSEADDR, 1, 1},	  {SOL_SOCKET, SO_RCVBUF, 5000, 10000},
		    {SOL_SOCKET, SO_SNDBUF, 6000, 12000}, {SOL_SOCKET, SO_KEEPALIVE, 1, 1},
		    {SOL_SOCKET, SO_OOBINLINE, 1, 1},	  {IPPROTO_TCP, TCP_NODELAY, 1, 1},
		    {IPPROTO_TCP, TCP_KEEPIDLE, 77, 77},  {IPPROTO_IPV6, IPV6_V6ONLY, 1, 1},
		    {SOL_RDMA, RDMA_SQSIZE, 100, 100},	  {SOL_RDMA, RDMA_RQSIZE, 200, 200},
		    {SOL_RDMA, RDMA_INLINE, 32, 32},	  {SOL_RDMA, RDMA_IOMAPSIZE, 128, 128},
		    {SOL_RDMA, RDMA_IOMAPSIZE, 1000, 768}};
	const unsigned n = sizeof(list) / sizeof(*list);
	struct linger linger = {1, 3};
	socklen_t len = sizeof(linger);
	int listener, one = 1;

	use_link(_i);
	listener = fresh();
	for (unsigned i = 0; i < n; i++) {
		set_int(listener, list[i].level, list[i].name, list[i].set);
		ck_assert_msg(get_int(listener, list[i].level, list[i].name) == list[i].get,
			      "option %u: %d", i, get_int(listener, list[i].level, list[i].name));
	}
	ck_assert_int_eq(rsetsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, len), 0);
	linger = (struct linger){0};
	ck_assert_int_eq(rgetsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, &len), 0);
	ck_assert(linger.l_onoff == 1 && linger.l_linger == 3);
	ck_fails(rsetsockopt(listener, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)), ENOTSUP);
	ck_fails(rsetsockopt(listener, IPPROTO_TCP, TCP_KEEPIDLE, &(int){0}, sizeof(int)), EINVAL);
	ck_fails(rsetsockopt(listener, SOL_SOCKET, SO_RCVBUF, &one, 1), EINVAL);
	ck_fails(rsetsockopt(listener, SOL_RDMA, RDMA_ROUTE, &one, sizeof(one)), EINVAL);
	ck_fails(rgetsockopt(listener, SOL_SOCKET, SO_BROADCAST, &one, &len), ENOTSUP);
	len = 2;
	ck_fails(rgetsockopt(listener, SOL_SOCKET, SO_RCVBUF, &one, &len), EINVAL);
	/* Who is accepted has the listener's sizes. */
	struct pair p = join(listener, fresh());

	ck_assert_int_eq(get_int(p.b, SOL_SOCKET, SO_RCVBUF), 10000);
	ck_assert_int_eq(get_int(p.b, SOL_RDMA, RDMA_RQSIZE), 200);
	ck_assert_int_gt(get_int(p.b, IPPROTO_TCP, TCP_MAXSEG), 255);
	ck_fails(rsetsockopt(p.a, SOL_RDMA, RDMA_SQSIZE, &one, sizeof(one)), EINVAL);
	set_int(p.a, SOL_SOCKET, SO_RCVBUF, 99); /* too late, and no error */
	ck_assert_int_ne(get_int(p.a, SOL_SOCKET, SO_RCVBUF), 198);
	both_ways(&p, 50000, 9000);
	end(&p);
}
END_TEST

/* --- riomap --- */

START_TEST(writes_into_buffers)
{
	static uint8_t near[2][100000], from[100000];
	int listener, a;

	use_link(_i);
	listener = fresh();
	a = fresh();
	set_int(listener, SOL_RDMA, RDMA_IOMAPSIZE, 2);
	set_int(a, SOL_RDMA, RDMA_IOMAPSIZE, 2);
	ck_fails(riomap(a, near[0], 100, PROT_WRITE, 0, 0), EINVAL); /* there is no peer yet */
	struct pair p = join(listener, a);

	ck_assert_int_eq(riomap(p.b, near[0], sizeof(near[0]), PROT_WRITE, 0, 5000), 5000);
	ck_assert_int_eq(riomap(p.b, near[1], sizeof(near[1]), PROT_WRITE, 0, 1 << 20), 1 << 20);
	ck_fails(riomap(p.b, from, 100, PROT_WRITE, 0, 0), ENOMEM);
	ck_fails(riomap(p.b, from, 100, PROT_READ, 0, 0), EINVAL);
	ck_assert_int_eq(riomap(p.b, from, 100, PROT_NONE, 0, -1), (off_t)(uintptr_t)from);
	ck_assert_int_eq(riounmap(p.b, from, 100), 0);
	ck_fails(riounmap(p.b, from, 100), EINVAL);
	/* The peer knows of them once it has what was sent then. */
	send_text(p.b, "go");
	expect_text(p.a, "go");
	fill(from, 0, sizeof(from), 3);
	ck_assert_uint_eq(riowrite(p.a, from, sizeof(from), 5000, 0), sizeof(from));
	ck_assert_uint_eq(riowrite(p.a, from + 10, 20, (1 << 20) + 300, 0), 20);
	ck_fails((ssize_t)riowrite(p.a, from, 1, 4999, 0), EINVAL);
	ck_assert_uint_eq(riowrite(p.a, from, 50, 5000 + 100000 - 30, 0),
			  30); /* that far the buffer goes */
	send_text(p.a, "done");
	expect_text(p.b, "done");
	is_filled(near[0], 0, sizeof(near[0]) - 30, 3);
	is_filled(near[0] + sizeof(near[0]) - 30, 0, 30, 3);
	is_filled(near[1] + 300, 10, 20, 3);
	ck_assert(!near[1][299] && !near[1][320]);
	/* None takes a message of the peer's. */
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_uint_eq(riowrite(p.a, from, 1, 5000, 0), 1);
	/* In the place of one that is gone, and again as often as there are credits, and more. */
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_int_eq(riounmap(p.b, near[1], sizeof(near[1])), 0);
		ck_assert_int_eq(riomap(p.b, near[1], sizeof(near[1]), PROT_WRITE, 0, 1 << 21),
				 1 << 21);
		send_text(p.b, "x");
		expect_text(p.a, "x");
	}
	ck_assert_uint_eq(riowrite(p.a, from + 40, 20, 1 << 21, 0), 20);
	ck_fails((ssize_t)riowrite(p.a, from, 1, 1 << 20, 0), EINVAL);
	send_text(p.a, "done");
	expect_text(p.b, "done");
	is_filled(near[1], 40, 20, 3);
	end(&p);
}
END_TEST

/* --- what is no rsocket --- */

START_TEST(no_rsocket)
{
	int pipes[2], status;
	struct sockaddr_in addr = loopback(1);
	socklen_t len = sizeof(addr);
	struct pair p;
	char got[8];

	use_link(_i);
	ck_assert_int_eq(pipe(pipes), 0);
	ck_fails(rsocket(AF_INET, SOCK_DGRAM, 0), ENOTSUP);
	ck_fails(rsocket(AF_UNIX, SOCK_STREAM, 0), ENOTSUP);
	ck_fails(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), ENOTSUP);
	for (unsigned i = 0; i < 3; i++) {
		int fd = i == 2 ? -1 : pipes[i];

		ck_fails(rbind(fd, (struct sockaddr *)&addr, len), EBADF);
		ck_fails(rlisten(fd, 1), EBADF);
		ck_fails(raccept(fd, NULL, NULL), EBADF);
		ck_fails(rconnect(fd, (struct sockaddr *)&addr, len), EBADF);
		ck_fails(rsend(fd, "x", 1, 0), EBADF);
		ck_fails(rrecv(fd, got, 1, 0), EBADF);
		ck_fails(rshutdown(fd, SHUT_WR), EBADF);
		ck_fails(rclose(fd), EBADF);
		ck_fails(rfcntl(fd, F_GETFL), EBADF);
		ck_fails(rgetsockname(fd, (struct sockaddr *)&addr, &len), EBADF);
		ck_fails(rgetpeername(fd, (struct sockaddr *)&addr, &len), EBADF);
		ck_fails(riomap(fd, got, 8, PROT_WRITE, 0, 0), EBADF);
		ck_fails(riounmap(fd, got, 8), EBADF);
		ck_fails((ssize_t)riowrite(fd, got, 8, 0, 0), EBADF);
	}
	/* In a child there is none, and the parent's is the parent's. */
	p = connected(_i);
	if (!fork()) {
		bool none = rsend(p.a, "x", 1, 0) < 0 && errno == EBADF && rclose(p.b) < 0 &&
			    errno == EBADF;

		_exit(none ? 0 : 1);
	}
	wait(&status);
	ck_assert_int_eq(status, 0);
	send_text(p.a, "mine");
	expect_text(p.b, "mine");
	ck_fails(rfcntl(p.a, F_DUPFD, 0), ENOTSUP);
	ck_fails(rbind(p.a, (struct sockaddr *)&addr, sizeof(addr)), EINVAL);
	ck_fails(rlisten(p.a, 1), EINVAL);
	ck_fails(raccept(p.a, NULL, NULL), EINVAL);
	end(&p);
}
END_TEST

/* --- the peer dies --- */

/* A child that listens, accepts one, answers it once, and stays. Nothing is under way then. */
static pid_t peer(int *fd)
{
	uint16_t port;
	int said[2], accepted;
	pid_t pid;

	ck_assert_int_eq(pipe(said), 0);
	pid = fork();
	if (!pid) {
		int listener = listen_on(fresh());

		port = port_of(listener);
		if (write(said[1], &port, sizeof(port)) < 0)
			_exit(1);
		accepted = raccept(listener, NULL, NULL);
		expect_text(accepted, "you?");
		send_text(accepted, "yes");
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(said[0], &port, sizeof(port)), sizeof(port));
	*fd = fresh();
	ck_assert_int_eq(ask(*fd, port), 0);
	send_text(*fd, "you?");
	expect_text(*fd, "yes");
	return pid;
}

struct later {
	pid_t pid;
	int signal;
};

static void *kills_later(void *arg)
{
	const struct later *later = arg;

	usleep(200000);
	kill(later->pid, later->signal);
	return NULL;
}

/* Until there is an error; mostly it waits. */
static ssize_t send_for_ever(int fd)
{
	ssize_t n;

	do
		n = rsend(fd, "x", 1, 0);
	while (n > 0);
	return n;
}

/* Who waits to receive, to send, or for either in rpoll(), hears of it. */
START_TEST(peer_is_killed)
{
	struct later later = {.signal = SIGKILL};
	pthread_t thread;
	char got[8];
	int fd;

	use_link(_i % 2);
	later.pid = peer(&fd);
	if (_i / 2 == 1)
		send_all_it_takes(fd);
	ck_assert_int_eq(pthread_create(&thread, NULL, kills_later, &later), 0);
	if (_i / 2 == 0)
		ck_assert_int_eq(rrecv(fd, got, 8, 0), 0);
	else if (_i / 2 == 1)
		ck_fails(send_for_ever(fd), ECONNRESET);
	else
		ck_assert_int_eq(events(fd, POLLIN, LONG_MS), POLLIN | POLLHUP);
	pthread_join(thread, NULL);
	ck_fails(rsend(fd, got, 8, 0), ECONNRESET);
	ck_assert_int_eq(rclose(fd), 0);
	waitpid(later.pid, NULL, 0);
}
END_TEST

/* A peer that does not answer any more, for the transport. */
static pid_t stopped_peer(int *fd)
{
	pid_t pid = peer(fd);

	kill(pid, SIGSTOP);
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
}

/* In milliseconds; the peer's end, too. */
static uint64_t time_to_close(int fd, pid_t pid)
{
	uint64_t start = now_ms(), took;

	ck_assert_int_eq(rclose(fd), 0);
	took = now_ms() - start;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return took;
}

#define TRIES 5 /* this process may be held up, if not each time */

/* With SO_KEEPALIVE who only receives learns of it; the error is told once, and then there is
 * nothing to wait for. */
START_TEST(peer_is_stopped)
{
	uint64_t took = UINT64_MAX;
	char got[8];
	pid_t pid;
	int fd;

	use_link(_i);
	for (unsigned tries = 0; tries < TRIES && took > 3000; tries++) {
		pid = stopped_peer(&fd);
		set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
		set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
		ck_fails(rrecv(fd, got, 8, 0), ETIMEDOUT);
		ck_assert_int_eq(rrecv(fd, got, 8, 0), 0);
		ck_assert_int_eq(events(fd, POLLIN, 0), POLLIN | POLLERR);
		took = time_to_close(fd, pid);
	}
	ck_assert_uint_le(took, 3000);
}
END_TEST

/* Without, rclose() waits no longer than it lingers. */
START_TEST(lingers)
{
	struct linger linger = {1, 1};
	uint64_t took = UINT64_MAX;
	pid_t pid;
	int fd;

	use_link(_i);
	for (unsigned tries = 0; tries < TRIES && took > 3000; tries++) {
		pid = stopped_peer(&fd);
		send_until_full(fd);
		ck_assert_int_eq(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)),
				 0);
		took = time_to_close(fd, pid);
		ck_assert_uint_ge(took, 1000);
	}
	ck_assert_uint_le(took, 3000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nic_rsocket");
	TCase *tc = tcase_create("nic_rsocket");

	tcase_add_loop_test(tc, bytes_arrive_in_order, 0, 2);
	tcase_add_loop_test(tc, little_room, 0, 2);
	tcase_add_loop_test(tc, credits, 0, 2);
	tcase_add_loop_test(tc, reads_what_is_there, 0, 2);
	tcase_add_loop_test(tc, peeks_and_waits_for_all, 0, 2);
	tcase_add_loop_test(tc, in_parts, 0, 2);
	tcase_add_loop_test(tc, connects_and_does_not_wait, 0, 2);
	tcase_add_loop_test(tc, both_families, 0, 2);
	tcase_add_loop_test(tc, nobody_listens, 0, 2);
	tcase_add_loop_test(tc, strangers, 0, 2);
	tcase_add_loop_test(tc, stranger_accepts, 0, 2);
	tcase_add_loop_test(tc, halves_are_shut, 0, 2);
	tcase_add_loop_test(tc, closes, 0, 2);
	tcase_add_loop_test(tc, gives_back, 0, 2);
	tcase_add_loop_test(tc, shut_while_it_waits, 0, 2);
	tcase_add_loop_test(tc, closed_while_it_waits, 0, 2);
	tcase_add_loop_test(tc, polls, 0, 2);
	tcase_add_loop_test(tc, selects, 0, 2);
	tcase_add_loop_test(tc, wakes_the_other, 0, 2);
	tcase_add_loop_test(tc, options, 0, 2);
	tcase_add_loop_test(tc, writes_into_buffers, 0, 2);
	tcase_add_loop_test(tc, no_rsocket, 0, 2);
	tcase_add_loop_test(tc, peer_is_killed, 0, 6);
	tcase_add_loop_test(tc, peer_is_stopped, 0, 2);
	tcase_add_loop_test(tc, lingers, 0, 2);
	suite_add_tcase(suite, tc);
	return nic_net_run(suite);
}
