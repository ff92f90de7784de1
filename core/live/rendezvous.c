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
 * Each client has a thread of the server's. A client says HELLO soon after connecting, and the
 * rest of a frame soon after its beginning; otherwise it may be silent for as long as it likes.
 * It has one request at a time, so what is sent to it fits the socket's buffer; a client that lets
 * the buffer run full is dropped. Keepalives find hosts that are gone, so that their numbers
 * come free.
 */
#include "core/clock.h"
#include "core/live/rendezvous.h"
#include "core/own_thread.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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
static bool split_address(const char *address, const char **host, size_t *len, const char **port)
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
	return split_address(address, &host, &len, &port);
}

/* Addresses to be freed, or -errno. */
static int resolve(const char *address, bool passive, struct addrinfo **out)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = passive ? AI_PASSIVE : 0};
	const char *at, *port;
	char host[HOST_BYTES];
	size_t len;
	if (!split_address(address, &at, &len, &port))
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

/* It waits no longer than so for the other end. */
static void watch_over(int fd, unsigned patience_ms)
{
	const struct timeval most = {patience_ms / 1000, patience_ms % 1000 * 1000};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, GONE_S / 2);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, GONE_S / 2);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, GONE_S * 1000);
}

static int receive(int fd, void *bytes, size_t len, uint64_t deadline_ms)
{
	for (char *at = bytes, *end = at + len; at < end;) {
		ssize_t n = recv(fd, at, (size_t)(end - at), MSG_WAITALL);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		at += n > 0 ? n : 0;
		if (at < end && clock_ms() >= deadline_ms)
			return -ETIMEDOUT;
	}
	return 0;
}

/* --- the client's end --- */

struct rendezvous {
	int fd;
	atomic_bool broken;
};

/* Send a frame, get the other: its value, or -errno. *f is both; *len: of the data that came. */
static int exchange(struct rendezvous *c, struct frame *f, size_t bytes, enum frame_type type,
		    size_t most, size_t *len, unsigned ms)
{
	uint64_t deadline = clock_ms() + ms;
	struct head head;
	int error = send(c->fd, f, bytes, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : -errno;
	if (!error)
		error = receive(c->fd, f, sizeof(f->head), deadline);
	if (error)
		return error;
	if (!head_read(f, type, most, &head) || head.value < -MAX_ERRNO ||
	    (head.value < 0 && head.len))
		return -EPROTO;
	*len = head.len;
	error = receive(c->fd, f->data, head.len, deadline);
	return error ? error : head.value;
}

static int open_socket(const struct addrinfo *a, int *out)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol), rc;
	if (fd < 0)
		return -errno;
	watch_over(fd, PATIENCE_MS);
	do
		rc = connect(fd, a->ai_addr, a->ai_addrlen) ? -errno : 0;
	while (rc == -EINTR);
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc == -EINPROGRESS ? -ETIMEDOUT : rc;
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
	watch_over(c->fd, ANSWER_MS);
	size_t bytes = frame_make(&f, ASK, (int32_t)rsp_len, req, req_len);
	int rc = exchange(c, &f, bytes, ANSWER, RENDEZVOUS_MSG, &len, ANSWER_MS);
	if (rc > 0 || (rc == 0 && len != rsp_len))
		rc = -EPROTO;
	if (rc == 0)
		memcpy(rsp, f.data, len);
	else if (rc == -EPROTO || rc == -ETIMEDOUT || rc == -ECONNRESET || rc == -EPIPE)
		/* An answer that comes late would be taken for the next one's. */
		rendezvous_break(c);
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
	struct rendezvous_server *server;
	struct peer *next;
	int fd;
	unsigned number; /* 0: has not said hello */
};

struct rendezvous_server {
	struct rendezvous_server_setup setup;
	char text[RENDEZVOUS_TEXT];
	int listener;
	pthread_t thread;
	uint16_t port;
	pthread_mutex_t lock; /* of what follows, and of the setup's functions */
	pthread_cond_t gone;
	struct peer *first;
	unsigned peers;
	uint32_t departed; /* clients that had a number, and are gone */
	bool stops;
};

static const struct peer *holder(const struct rendezvous_server *s, unsigned number)
{
	const struct peer *p = s->first;
	while (p && p->number != number)
		p = p->next;
	return p;
}

static int choose_number(const struct rendezvous_server *s, int32_t wanted)
{
	if (wanted < 0)
		return -EPROTO;
	if ((unsigned)wanted > s->setup.clients + s->setup.reserved)
		return -EUSERS;
	if (wanted)
		return holder(s, (unsigned)wanted) ? -EBUSY : wanted;
	for (unsigned n = 1; n <= s->setup.clients; n++)
		if (!holder(s, n))
			return (int)n;
	return -EUSERS;
}

/* Peers whose sockets have ended: their threads are about to find that, and need the lock. */
static uint32_t leaving(const struct rendezvous_server *s, bool clients)
{
	uint32_t n = 0;
	for (const struct peer *p = s->first; p; p = p->next) {
		struct pollfd end = {.fd = p->fd, .events = POLLRDHUP};
		n += (p->number || !clients) && poll(&end, 1, 0) > 0;
	}
	return n;
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
					       htonl(s->departed + leaving(s, true))};
	return reply(p, &out, frame_make(&out, BECAUSE, 0, word, sizeof(word)));
}

/* A whole frame has come; the lock is held. False: drop the peer. */
static bool serve_frame(struct rendezvous_server *s, struct peer *p, const struct head *head,
			const struct frame *in)
{
	struct frame out;
	if (!p->number) {
		/* Who comes after another one has left gets that one's number. */
		while (leaving(s, true))
			pthread_cond_wait(&s->gone, &s->lock);
		int number = choose_number(s, head->value);
		assert(number <= 0 || !holder(s, (unsigned)number));
		size_t bytes = frame_make(&out, WELCOME, number, s->text,
					  number > 0 ? strlen(s->text) : 0);
		p->number = number > 0 ? (unsigned)number : 0;
		return reply(p, &out, bytes) && number > 0;
	}
	assert(p->number <= s->setup.clients + s->setup.reserved);
	if (head->type == WHY)
		return tell_injected(s, p);
	assert(head->value >= 0 && head->value <= RENDEZVOUS_MSG); /* check_head() */
	char rsp[RENDEZVOUS_MSG] = {0};
	size_t rsp_len = (size_t)head->value;
	int rc = s->setup.accept(s->setup.arg, p->number, in->data, head->len, rsp, rsp_len);
	if (rc > 0 || rc < -MAX_ERRNO)
		rc = -EPROTO;
	return reply(p, &out, frame_make(&out, ANSWER, rc, rsp, rc ? 0 : rsp_len));
}

/* Is this a beginning that we can go on with? */
static bool check_head(const struct peer *p, const struct frame *in, struct head *head)
{
	bool greeting = !p->number, why = !greeting && ntohl(in->head.type) == WHY;
	enum frame_type type = greeting ? HELLO : why ? WHY : ASK;
	if (!head_read(in, type, type == ASK ? RENDEZVOUS_MSG : 0, head))
		return false;
	return greeting || (head->value >= 0 && head->value <= RENDEZVOUS_MSG);
}

/* False: drop the peer. */
static bool serve_next(struct rendezvous_server *s, struct peer *p)
{
	struct pollfd wait = {.fd = p->fd, .events = POLLIN};
	struct frame in;
	struct head head;
	while (p->number && poll(&wait, 1, -1) < 0)
		;
	uint64_t deadline = clock_ms() + s->setup.patience_ms;
	if (receive(p->fd, &in, sizeof(in.head), deadline) || !check_head(p, &in, &head) ||
	    receive(p->fd, in.data, head.len, deadline))
		return false;
	pthread_mutex_lock(&s->lock);
	bool stays = !s->stops && serve_frame(s, p, &head, &in);
	pthread_mutex_unlock(&s->lock);
	return stays;
}

static void *peer_main(void *arg)
{
	struct peer *p = arg, **at;
	struct rendezvous_server *s = p->server;
	while (serve_next(s, p))
		;
	pthread_mutex_lock(&s->lock);
	for (at = &s->first; *at != p; at = &(*at)->next)
		;
	*at = p->next;
	s->peers--;
	s->departed += p->number > 0;
	if (p->number && s->setup.departs)
		s->setup.departs(s->setup.arg, p->number);
	close(p->fd);
	free(p);
	pthread_cond_broadcast(&s->gone);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The lock is held. False: there is no room for another one. */
static bool add_peer(struct rendezvous_server *s, int fd)
{
	const unsigned room = s->setup.clients + s->setup.reserved + NEWCOMERS;
	while (s->peers >= room && leaving(s, false))
		pthread_cond_wait(&s->gone, &s->lock);
	struct peer *p = s->peers < room && !s->stops ? malloc(sizeof(*p)) : NULL;
	pthread_t thread;
	if (!p)
		return false;
	*p = (struct peer){.server = s, .next = s->first, .fd = fd};
	watch_over(fd, s->setup.patience_ms);
	if (pthread_create(&thread, NULL, peer_main, p)) {
		free(p);
		return false;
	}
	pthread_detach(thread);
	s->first = p;
	s->peers++;
	return true;
}

static void *server_main(void *arg)
{
	struct rendezvous_server *s = arg;
	for (bool stops = false; !stops;) {
		int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
			poll(NULL, 0, 10); /* it stays in the backlog; no busy loop */
		pthread_mutex_lock(&s->lock);
		if (fd >= 0 && !add_peer(s, fd))
			close(fd);
		stops = s->stops;
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static int bind_socket(const struct addrinfo *a, int *out)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
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
	if (s->listener >= 0)
		close(s->listener);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->gone);
	free(s);
}

static int server_begin(struct rendezvous_server *s)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	int rc = listen_at(s->setup.address, &s->listener);
	if (rc)
		return rc;
	if (getsockname(s->listener, (struct sockaddr *)&bound, &len))
		return -errno;
	s->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
						    : ((struct sockaddr_in *)&bound)->sin_port);
	return -own_thread(&s->thread, NULL, server_main, s);
}

int rendezvous_listen(struct rendezvous_server **out, const struct rendezvous_server_setup *setup)
{
	if (strlen(setup->text) >= RENDEZVOUS_TEXT ||
	    setup->clients + setup->reserved > INT32_MAX - NEWCOMERS)
		return -EINVAL;
	struct rendezvous_server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->setup = *setup;
	if (!s->setup.patience_ms)
		s->setup.patience_ms = PATIENCE_MS;
	strcpy(s->text, setup->text);
	s->listener = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->gone, NULL);
	int rc = server_begin(s);
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
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stops = true;
	shutdown(s->listener, SHUT_RDWR); /* accept() returns */
	for (const struct peer *p = s->first; p; p = p->next)
		shutdown(p->fd, SHUT_RDWR);
	while (s->peers)
		pthread_cond_wait(&s->gone, &s->lock);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	server_free(s);
}
