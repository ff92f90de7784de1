/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP connection between clients and server of the live world. See rendezvous.h.
 *
 * All that is sent are frames: a head of 16 bytes, numbers in network order, and `len`
 * bytes of data.
 *
 *	HELLO	client: value is the number wanted, 0: any; no data
 *	WELCOME	server: value is the number given, the data is the text; or -errno
 *	ASK	client: value is how long the reply is to be, the data is the request
 *	ANSWER	server: 0 and the reply, or -errno
 *	WHY	client: what was injected at your end? Value 0, no data
 *	BECAUSE	server: 0 and the numbers of struct injected
 *
 * One thread serves all clients. A client says HELLO soon after connecting, and the
 * rest of a frame soon after its beginning; otherwise it may be silent for as long as it likes.
 * It has one request at a time, so what is sent to it fits the socket's buffer; a client that lets
 * the buffer run full is dropped. Keepalives find hosts that are gone, so that their numbers
 * come free.
 */
#include "core/live/rendezvous.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HOST_BYTES  256
#define MAGIC	    0x746d6332u /* "tmc2" */
#define PATIENCE_MS 5000	/* for what is to come at once */
#define ANSWER_MS   15000	/* for an answer */
#define GONE_S	    10		/* a host that says nothing at all for so long is gone */
#define NEWCOMERS   16		/* connections that have no number yet, at most */
#define BACKLOG	    64
#define MAX_ERRNO   4095
#define DATA_MAX    RENDEZVOUS_TEXT

_Static_assert(RENDEZVOUS_MSG <= DATA_MAX, "a frame holds either");

enum frame_type { HELLO = 1, WELCOME, ASK, ANSWER, WHY, BECAUSE };

#define INJECTED_WORDS (sizeof(struct injected) / sizeof(uint32_t))

struct head {
	uint32_t magic;
	uint32_t type;
	int32_t value;
	uint32_t len;
};

struct frame {
	struct head head;
	char data[DATA_MAX];
};

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static size_t frame_make(struct frame *f, enum frame_type type, int32_t value, const void *data,
			 size_t len)
{
	assert(len <= DATA_MAX);
	f->head = (struct head){htonl(MAGIC), htonl(type), (int32_t)htonl((uint32_t)value),
				htonl((uint32_t)len)};
	if (len)
		memcpy(f->data, data, len);
	return sizeof(f->head) + len;
}

/* Numbers as this machine has them; false: not a frame, or not of this type. */
static bool head_read(const struct frame *f, enum frame_type type, size_t most, struct head *head)
{
	*head = (struct head){ntohl(f->head.magic), ntohl(f->head.type),
			      (int32_t)ntohl((uint32_t)f->head.value), ntohl(f->head.len)};
	return head->magic == MAGIC && head->type == type && head->len <= most;
}

/* --- sockets --- */

/* "ADDRESS:PORT"; an address with colons is in brackets. Its parts; false: it is none. */
static bool split(const char *address, const char **host, size_t *len, const char **port)
{
	const char *colon = strrchr(address, ':');
	*len = colon ? (size_t)(colon - address) : 0;
	*host = address;
	if (!colon || !colon[1] || !*len || *len >= HOST_BYTES)
		return false;
	*port = colon + 1;
	if (strspn(*port, "0123456789") != strlen(*port) || strlen(*port) > 5 ||
	    atoi(*port) > UINT16_MAX)
		return false;
	if (address[0] == '[' && colon[-1] == ']') {
		(*host)++;
		*len -= 2;
		return *len;
	}
	return !memchr(address, ':', *len);
}

bool rendezvous_is_address(const char *address)
{
	const char *host, *port;
	size_t len;
	return split(address, &host, &len, &port);
}

/* Addresses to be freed, or -errno. */
static int resolve(const char *address, bool passive, struct addrinfo **out)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = passive ? AI_PASSIVE : 0};
	const char *at, *port;
	char host[HOST_BYTES];
	size_t len;
	if (!split(address, &at, &len, &port))
		return -EINVAL;
	memcpy(host, at, len);
	host[len] = '\0';
	switch (getaddrinfo(host, port, &hints, out)) {
	case 0:
		return 0;
	case EAI_MEMORY:
		return -ENOMEM;
	default:
		return -EADDRNOTAVAIL;
	}
}

static void set_option(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

static void watch_over(int fd)
{
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, GONE_S / 2);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, GONE_S / 2);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, GONE_S * 1000);
}

/* Until the socket is ready. 0, -ETIMEDOUT or -errno. */
static int wait_until(int fd, short events, uint64_t deadline_ms)
{
	for (;;) {
		uint64_t now = now_ms();
		struct pollfd p = {.fd = fd, .events = events};
		int n = poll(&p, 1, now < deadline_ms ? (int)(deadline_ms - now) : 0);
		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* --- the client's end --- */

struct rendezvous {
	int fd;
	atomic_bool broken;
};

static int send_all(struct rendezvous *c, const void *bytes, size_t len, uint64_t deadline_ms)
{
	for (const char *at = bytes; len;) {
		ssize_t n = send(c->fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		int error = errno == EAGAIN  ? wait_until(c->fd, POLLOUT, deadline_ms)
			    : errno == EINTR ? 0
					     : -errno;
		if (error)
			return error;
	}
	return 0;
}

static int receive_all(struct rendezvous *c, void *bytes, size_t len, uint64_t deadline_ms)
{
	for (char *at = bytes; len;) {
		ssize_t n = recv(c->fd, at, len, MSG_DONTWAIT);
		if (n == 0)
			return -ECONNRESET;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		int error = errno == EAGAIN  ? wait_until(c->fd, POLLIN, deadline_ms)
			    : errno == EINTR ? 0
					     : -errno;
		if (error)
			return error;
	}
	return 0;
}

/* Send a frame, get the other: its value, or -errno. *f is both; *len: of the data that came. */
static int exchange(struct rendezvous *c, struct frame *f, size_t bytes, enum frame_type type,
		    size_t most, size_t *len, unsigned ms)
{
	uint64_t deadline = now_ms() + ms;
	struct head head;
	int error = send_all(c, f, bytes, deadline);
	if (!error)
		error = receive_all(c, f, sizeof(f->head), deadline);
	if (error)
		return error;
	if (!head_read(f, type, most, &head) || head.value < -MAX_ERRNO ||
	    (head.value < 0 && head.len))
		return -EPROTO;
	*len = head.len;
	error = receive_all(c, f->data, head.len, deadline);
	return error ? error : head.value;
}

static int open_socket(const struct addrinfo *a, int *out)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
			a->ai_protocol),
	    error = 0;
	socklen_t len = sizeof(error);
	if (fd < 0)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen)) {
		error = errno;
		if (error == EINPROGRESS) {
			error = -wait_until(fd, POLLOUT, now_ms() + PATIENCE_MS);
			if (!error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
				error = errno;
		}
	}
	if (error) {
		close(fd);
		return -error;
	}
	watch_over(fd);
	*out = fd;
	return 0;
}

/* Say hello. The number given, or -errno. */
static int greet(struct rendezvous *c, unsigned wanted, char *text)
{
	struct frame f;
	size_t len, bytes = frame_make(&f, HELLO, (int32_t)wanted, NULL, 0);
	int given = exchange(c, &f, bytes, WELCOME, RENDEZVOUS_TEXT - 1, &len, PATIENCE_MS);
	if (given < 0)
		return given;
	if (given == 0 || (wanted && (unsigned)given != wanted) || memchr(f.data, '\0', len))
		return -EPROTO;
	memcpy(text, f.data, len);
	text[len] = '\0';
	return given;
}

int rendezvous_connect(struct rendezvous **out, const char *address, unsigned *client, char *text)
{
	struct addrinfo *list;
	if (*client > INT32_MAX)
		return -EINVAL;
	int rc = resolve(address, false, &list);
	if (rc)
		return rc;
	struct rendezvous *c = calloc(1, sizeof(*c));
	rc = c ? -EADDRNOTAVAIL : -ENOMEM;
	for (const struct addrinfo *a = list; a && c && rc; a = a->ai_next)
		rc = open_socket(a, &c->fd);
	freeaddrinfo(list);
	if (rc) {
		free(c);
		return rc;
	}
	rc = greet(c, *client, text);
	if (rc < 0) {
		rendezvous_close(c);
		return rc;
	}
	*client = (unsigned)rc;
	*out = c;
	return 0;
}

int rendezvous_ask(struct rendezvous *c, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	struct frame f;
	size_t len;
	if (req_len > RENDEZVOUS_MSG || rsp_len > RENDEZVOUS_MSG)
		return -EMSGSIZE;
	if (atomic_load(&c->broken))
		return -ENOTCONN;
	size_t bytes = frame_make(&f, ASK, (int32_t)rsp_len, req, req_len);
	int rc = exchange(c, &f, bytes, ANSWER, RENDEZVOUS_MSG, &len, ANSWER_MS);
	if (rc > 0 || (rc == 0 && len != rsp_len))
		rc = -EPROTO;
	if (rc == 0)
		memcpy(rsp, f.data, len);
	else if (rc == -EPROTO || rc == -ETIMEDOUT || rc == -ECONNRESET || rc == -EPIPE)
		rendezvous_break(
			c); /* an answer that comes late would be taken for the next one's */
	return rc;
}

int rendezvous_ask_injected(struct rendezvous *c, struct injected *out)
{
	struct frame f;
	uint32_t word[INJECTED_WORDS];
	size_t len;
	if (atomic_load(&c->broken))
		return -ENOTCONN;
	int rc = exchange(c, &f, frame_make(&f, WHY, 0, NULL, 0), BECAUSE, sizeof(word), &len,
			  PATIENCE_MS);
	if (rc > 0 || (rc == 0 && len != sizeof(word)))
		rc = -EPROTO;
	if (rc) {
		rendezvous_break(c);
		return rc;
	}
	memcpy(word, f.data, sizeof(word));
	*out = (struct injected){ntohl(word[0]), ntohl(word[1]), ntohl(word[2]), ntohl(word[3])};
	return 0;
}

void rendezvous_break(struct rendezvous *c)
{
	atomic_store(&c->broken, true);
	shutdown(c->fd, SHUT_RDWR);
}

void rendezvous_close(struct rendezvous *c)
{
	if (!c)
		return;
	close(c->fd);
	free(c);
}

/* --- the server's end --- */

struct peer {
	int fd;
	unsigned number;      /* 0: has not said hello */
	uint64_t deadline_ms; /* 0: none */
	size_t got;	      /* bytes of `in` */
	struct frame in;
};

struct rendezvous_server {
	struct rendezvous_server_setup setup;
	char text[RENDEZVOUS_TEXT];
	int listener, stop_fd;
	pthread_t thread;
	uint16_t port;
	struct peer **peer;
	struct pollfd *polled; /* stop, listener, peers */
	unsigned peers, max_peers;
	uint32_t departed; /* clients that had a number, and are gone */
};

static struct peer *holder(const struct rendezvous_server *s, unsigned number)
{
	for (unsigned i = 0; i < s->peers; i++)
		if (s->peer[i]->number == number)
			return s->peer[i];
	return NULL;
}

static int choose_number(const struct rendezvous_server *s, int32_t wanted)
{
	if (wanted < 0)
		return -EPROTO;
	if ((unsigned)wanted > s->setup.clients)
		return -EUSERS;
	if (wanted)
		return holder(s, (unsigned)wanted) ? -EBUSY : wanted;
	for (unsigned n = 1; n <= s->setup.clients; n++)
		if (!holder(s, n))
			return (int)n;
	return -EUSERS;
}

/* Does all of it go into the socket's buffer? */
static bool reply(const struct peer *p, const struct frame *f, size_t bytes)
{
	return send(p->fd, f, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

static bool tell_injected(struct rendezvous_server *s, const struct peer *p)
{
	struct injected i = {0};
	struct frame out;
	if (s->setup.injected)
		s->setup.injected(s->setup.arg, p->number, &i);
	const uint32_t word[INJECTED_WORDS] = {htonl(i.calls), htonl(i.links), htonl(i.dropped),
					       htonl(s->departed)};
	return reply(p, &out, frame_make(&out, BECAUSE, 0, word, sizeof(word)));
}

/* A whole frame is in p->in. False: drop the peer. */
static bool serve_frame(struct rendezvous_server *s, struct peer *p, const struct head *head)
{
	struct frame out;
	assert(!p->got && !p->deadline_ms); /* the next frame begins anew */
	if (!p->number) {
		int number = choose_number(s, head->value);
		assert(number <= 0 || !holder(s, (unsigned)number));
		size_t bytes = frame_make(&out, WELCOME, number, s->text,
					  number > 0 ? strlen(s->text) : 0);
		p->number = number > 0 ? (unsigned)number : 0;
		return reply(p, &out, bytes) && number > 0;
	}
	assert(p->number <= s->setup.clients);
	if (head->type == WHY)
		return tell_injected(s, p);
	assert(head->value >= 0 && head->value <= RENDEZVOUS_MSG); /* check_head() */
	char rsp[RENDEZVOUS_MSG] = {0};
	size_t rsp_len = (size_t)head->value;
	int rc = s->setup.accept(s->setup.arg, p->number, p->in.data, head->len, rsp, rsp_len);
	if (rc > 0 || rc < -MAX_ERRNO)
		rc = -EPROTO;
	return reply(p, &out, frame_make(&out, ANSWER, rc, rsp, rc ? 0 : rsp_len));
}

/* Is this a beginning that we can go on with? *need: bytes of the whole frame. */
static bool check_head(const struct peer *p, struct head *head, size_t *need)
{
	bool greeting = !p->number, why = !greeting && ntohl(p->in.head.type) == WHY;
	enum frame_type type = greeting ? HELLO : why ? WHY : ASK;
	if (!head_read(&p->in, type, type == ASK ? RENDEZVOUS_MSG : 0, head))
		return false;
	*need = sizeof(*head) + head->len;
	return greeting || (head->value >= 0 && head->value <= RENDEZVOUS_MSG);
}

/* Something has come. False: drop the peer. */
static bool serve_peer(struct rendezvous_server *s, struct peer *p)
{
	struct head head;
	size_t need = sizeof(head);
	if (p->got >= need && !check_head(p, &head, &need))
		return false;
	assert(p->got < need && need <= sizeof(p->in));
	ssize_t n = recv(p->fd, (char *)&p->in + p->got, need - p->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	p->got += (size_t)n;
	if (p->number && !p->deadline_ms)
		p->deadline_ms = now_ms() + s->setup.patience_ms;
	if (p->got < sizeof(head))
		return true;
	if (!check_head(p, &head, &need))
		return false;
	if (p->got < need)
		return true;
	p->got = 0;
	p->deadline_ms = 0;
	return serve_frame(s, p, &head);
}

static void drop(struct rendezvous_server *s, unsigned i)
{
	assert(i < s->peers && s->peers <= s->max_peers);
	s->departed += s->peer[i]->number > 0;
	close(s->peer[i]->fd);
	free(s->peer[i]);
	s->peer[i] = s->peer[--s->peers];
}

static void accept_newcomer(struct rendezvous_server *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct peer *p = fd >= 0 && s->peers < s->max_peers ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		if (fd >= 0)
			close(fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			poll(NULL, 0, 10); /* it stays in the backlog; no busy loop */
		return;
	}
	watch_over(fd);
	p->fd = fd;
	p->deadline_ms = now_ms() + s->setup.patience_ms;
	assert(s->peers < s->max_peers && !p->number);
	s->peer[s->peers++] = p;
}

/* Fill in what to poll; returns for how long: until the first deadline; -1: for ever. */
static int prepare(struct rendezvous_server *s)
{
	uint64_t first = UINT64_MAX, now = now_ms();
	s->polled[0] = (struct pollfd){.fd = s->stop_fd, .events = POLLIN};
	s->polled[1] = (struct pollfd){.fd = s->listener, .events = POLLIN};
	for (unsigned i = 0; i < s->peers; i++) {
		const struct peer *p = s->peer[i];
		s->polled[2 + i] = (struct pollfd){.fd = p->fd, .events = POLLIN};
		if (p->deadline_ms && p->deadline_ms < first)
			first = p->deadline_ms;
	}
	return first == UINT64_MAX ? -1 : first > now ? (int)(first - now) : 0;
}

static void *server_main(void *arg)
{
	struct rendezvous_server *s = arg;
	for (;;) {
		int timeout = prepare(s);
		if (poll(s->polled, 2 + s->peers, timeout) < 0)
			continue; /* EINTR, ENOMEM */
		if (s->polled[0].revents)
			return NULL;
		/* Backwards, as the last one takes the place of one that is dropped. */
		for (unsigned i = s->peers; i-- > 0;) {
			struct peer *p = s->peer[i];
			if (s->polled[2 + i].revents ? !serve_peer(s, p)
						     : p->deadline_ms && now_ms() >= p->deadline_ms)
				drop(s, i);
		}
		if (s->polled[1].revents)
			accept_newcomer(s);
	}
}

static int bind_socket(const struct addrinfo *a, int *out)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
			a->ai_protocol);
	if (fd < 0)
		return -errno;
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG)) {
		int error = errno;
		close(fd);
		return -error;
	}
	*out = fd;
	return 0;
}

/* A socket that listens at one of the name's addresses, or -errno: why not at the last one. */
static int listen_at(const char *address, int *out)
{
	struct addrinfo *all;
	int rc = resolve(address, true, &all);
	if (rc)
		return rc;
	rc = -EADDRNOTAVAIL;
	for (const struct addrinfo *a = all; a && rc; a = a->ai_next)
		rc = bind_socket(a, out);
	freeaddrinfo(all);
	return rc;
}

int rendezvous_check(const char *address)
{
	int fd, rc = listen_at(address, &fd);
	if (!rc)
		close(fd);
	return rc;
}

static void server_free(struct rendezvous_server *s)
{
	while (s->peers)
		drop(s, 0);
	if (s->listener >= 0)
		close(s->listener);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	free(s->peer);
	free(s->polled);
	free(s);
}

static int server_begin(struct rendezvous_server *s)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	sigset_t all, old;
	int rc = listen_at(s->setup.address, &s->listener);
	if (rc)
		return rc;
	if (getsockname(s->listener, (struct sockaddr *)&bound, &len))
		return -errno;
	s->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						    : ((struct sockaddr_in *)&bound)->sin_port);
	sigfillset(&all); /* signals are for the threads that began the program */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(&s->thread, NULL, server_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

int rendezvous_listen(struct rendezvous_server **out, const struct rendezvous_server_setup *setup)
{
	if (strlen(setup->text) >= RENDEZVOUS_TEXT || setup->clients > INT32_MAX - NEWCOMERS)
		return -EINVAL;
	struct rendezvous_server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->setup = *setup;
	if (!s->setup.patience_ms)
		s->setup.patience_ms = PATIENCE_MS;
	strcpy(s->text, setup->text);
	s->max_peers = setup->clients + NEWCOMERS;
	s->listener = -1;
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	int rc = s->stop_fd < 0 ? -errno : 0;
	s->peer = calloc(s->max_peers, sizeof(struct peer *));
	s->polled = calloc(2 + s->max_peers, sizeof(*s->polled));
	if (!s->peer || !s->polled)
		rc = -ENOMEM;
	if (!rc)
		rc = server_begin(s);
	if (rc) {
		server_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

uint16_t rendezvous_port(const struct rendezvous_server *s)
{
	return s->port;
}

void rendezvous_stop(struct rendezvous_server *s)
{
	const uint64_t one = 1;
	if (!s)
		return;
	ssize_t n = write(s->stop_fd, &one, sizeof(one));
	assert(n == sizeof(one));
	pthread_join(s->thread, NULL);
	server_free(s);
}
