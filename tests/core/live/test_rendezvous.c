/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control connection, on the loopback device: numbers, requests and answers; and peers
 * on either side that are silent, go away, talk nonsense, or send half of what they should. After
 * each of them the server still serves, and all numbers are free again.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include "core/live/rendezvous.h"
#include "faultinject/random_source.h"
#include "tests/suite.h"

#define CLIENTS	 3
#define LONG_MS	 60000 /* more than anything takes that is not late */
#define SHORT_MS 200
#define FRAMES	 1500 /* that are nonsense */
#define HEAD	 16   /* bytes */

static const char text[] = "what is served\n";

/* Answers with what was asked, backwards; a request that begins with '!' is refused. */
static int echo(void *arg, unsigned client, const void *req, size_t req_len, void *rsp,
		size_t rsp_len)
{
	const char *in = req;
	char *out = rsp;
	unsigned *asked = arg;
	ck_assert_uint_ge(client, 1);
	ck_assert_uint_le(client, CLIENTS + 1);
	ck_assert_uint_le(req_len, RENDEZVOUS_MSG);
	ck_assert_uint_le(rsp_len, RENDEZVOUS_MSG);
	(*asked)++;
	if (req_len && in[0] == '!')
		return -EUSERS;
	for (size_t i = 0; i < rsp_len && i < req_len; i++)
		out[i] = in[req_len - 1 - i];
	return 0;
}

static void injected(void *arg, unsigned client, struct injected *out)
{
	*out = (struct injected){.calls = 1000000, .links = 2, .dropped = client};
}

static struct rendezvous_server *server;
static char address[32];
static unsigned asked;
static bool impatient; /* the server */

static atomic_uint departed; /* the last one that has gone */

static void departs(void *arg, unsigned client)
{
	(void)arg;
	atomic_store(&departed, client);
}

static void begin_with(unsigned patience_ms)
{
	impatient = patience_ms == SHORT_MS;
	const struct rendezvous_server_setup setup = {.address = "127.0.0.1:0",
						      .text = text,
						      .clients = CLIENTS,
						      .reserved = 1,
						      .accept = echo,
						      .injected = injected,
						      .departs = departs,
						      .arg = &asked,
						      .patience_ms = patience_ms};
	asked = 0;
	ck_assert_int_eq(rendezvous_listen(&server, &setup), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", rendezvous_port(server));
}

static void begin(void)
{
	begin_with(LONG_MS);
}

static void end(void)
{
	rendezvous_stop(server);
}

/* A client that says nothing is dropped soon. So is one that was only held up: it comes again. */
static void be_impatient(void)
{
	end();
	begin_with(SHORT_MS);
}

static struct rendezvous *join(unsigned wanted, unsigned expected)
{
	char got[RENDEZVOUS_TEXT];
	struct rendezvous *c = NULL;
	ck_assert_int_eq(rendezvous_connect(&c, address, &wanted, got), 0);
	ck_assert_uint_eq(wanted, expected);
	ck_assert_str_eq(got, text);
	return c;
}

static int refused(unsigned wanted)
{
	char got[RENDEZVOUS_TEXT];
	struct rendezvous *c;
	return rendezvous_connect(&c, address, &wanted, got);
}

/* The server sees that a client has gone when it looks, which is soon. */
static struct rendezvous *join_soon(unsigned wanted, unsigned expected)
{
	char got[RENDEZVOUS_TEXT];
	for (unsigned i = 0; i < 10000; i++) {
		struct rendezvous *c;
		unsigned number = wanted;
		int error = rendezvous_connect(&c, address, &number, got);
		if (!error) {
			ck_assert_uint_eq(number, expected);
			return c;
		}
		ck_assert_msg(error == -EBUSY || error == -EUSERS ||
				      (impatient && (error == -ECONNRESET || error == -EPIPE)),
			      "%s", strerror(-error));
		poll(NULL, 0, 5);
	}
	ck_abort_msg("number %u never came free", wanted);
}

static void assert_answers(struct rendezvous *c)
{
	char rsp[4];
	ck_assert_int_eq(rendezvous_ask(c, "abcd", 4, rsp, sizeof(rsp)), 0);
	ck_assert_mem_eq(rsp, "dcba", 4);
}

/* --- what it is for --- */

TEST(numbers)
{
	struct rendezvous *two = join(2, 2), *one = join(0, 1), *three = join(0, 3);
	ck_assert_int_eq(refused(2), -EBUSY);
	ck_assert_int_eq(refused(0), -EUSERS);
	ck_assert_int_eq(refused(CLIENTS + 2), -EUSERS);
	assert_answers(two);
	rendezvous_close(one);
	one = join_soon(1, 1);
	rendezvous_close(one);
	rendezvous_close(two);
	rendezvous_close(three);
}

/* It is given to those alone that ask for it; that its holder has gone is told. */
TEST(reserved)
{
	struct rendezvous *c[CLIENTS], *own = join(CLIENTS + 1, CLIENTS + 1);
	for (unsigned n = 0; n < CLIENTS; n++)
		c[n] = join(0, n + 1);
	assert_answers(own);
	rendezvous_close(own);
	while (atomic_load(&departed) != CLIENTS + 1)
		poll(NULL, 0, 5);
	ck_assert_int_eq(refused(0), -EUSERS);
	rendezvous_close(join(CLIENTS + 1, CLIENTS + 1));
	for (unsigned n = 0; n < CLIENTS; n++)
		rendezvous_close(c[n]);
}

TEST(two_want_the_same)
{
	struct rendezvous *first = join(2, 2);
	ck_assert_int_eq(refused(2), -EBUSY);
	assert_answers(first);
	rendezvous_close(first);
	rendezvous_close(join_soon(2, 2));
}

TEST(answers)
{
	struct rendezvous *c = join(0, 1);
	char req[RENDEZVOUS_MSG], rsp[RENDEZVOUS_MSG], big[RENDEZVOUS_MSG + 1] = {0};
	for (size_t i = 0; i < sizeof(req); i++)
		req[i] = (char)i;
	ck_assert_int_eq(rendezvous_ask(c, req, sizeof(req), rsp, sizeof(rsp)), 0);
	for (size_t i = 0; i < sizeof(req); i++)
		ck_assert_int_eq(rsp[i], req[sizeof(req) - 1 - i]);
	ck_assert_int_eq(rendezvous_ask(c, "", 0, rsp, 0), 0);
	/* The server's own error; the connection is as good as before. */
	ck_assert_int_eq(rendezvous_ask(c, "!", 1, rsp, 1), -EUSERS);
	ck_assert_int_eq(rendezvous_ask(c, big, sizeof(big), rsp, 1), -EMSGSIZE);
	ck_assert_int_eq(rendezvous_ask(c, "a", 1, big, sizeof(big)), -EMSGSIZE);
	assert_answers(c);
	ck_assert_uint_eq(asked, 4);
	rendezvous_close(c);
}

TEST(what_was_injected)
{
	struct rendezvous *one = join(1, 1), *two = join(2, 2);
	struct injected i;

	ck_assert_int_eq(rendezvous_ask_injected(two, &i), 0);
	ck_assert(i.calls == 1000000 && i.links == 2 && i.dropped == 2 && !i.departed);
	assert_answers(two);
	rendezvous_close(one);
	rendezvous_close(join(1, 1));
	ck_assert_int_eq(rendezvous_ask_injected(two, &i), 0);
	ck_assert_uint_ge(i.departed, 1);
	rendezvous_break(two);
	ck_assert_int_lt(rendezvous_ask_injected(two, &i), 0);
	rendezvous_close(two);
}

TEST(broken)
{
	struct rendezvous *c = join(0, 1);
	char rsp[4];
	rendezvous_break(c);
	ck_assert_int_lt(rendezvous_ask(c, "abcd", 4, rsp, 4), 0);
	rendezvous_close(c);
	rendezvous_close(join_soon(1, 1));
}

static const char *const bad_addresses[] = {"",
					    "127.0.0.1",
					    "127.0.0.1:",
					    ":7471",
					    "127.0.0.1:port",
					    "127.0.0.1:70000",
					    "::1:7471",
					    "[::1:7471",
					    "127.0.0.1:-1",
					    "127.0.0.1:000007471"};

TESTS(address_is_refused, ROWS_OF(bad_addresses))
{
	const struct rendezvous_server_setup setup = {
		.address = bad_addresses[_i], .text = "", .clients = 1};
	char got[RENDEZVOUS_TEXT];
	unsigned number = 0;
	struct rendezvous *c;
	struct rendezvous_server *s;
	ck_assert_int_eq(rendezvous_connect(&c, bad_addresses[_i], &number, got), -EINVAL);
	ck_assert_int_eq(rendezvous_listen(&s, &setup), -EINVAL);
}

TEST(nobody_listens)
{
	char there[32];
	snprintf(there, sizeof(there), "%s", address);
	rendezvous_stop(server);
	ck_assert_int_eq(refused(0), -ECONNREFUSED);
	begin(); /* for end() */
}

TEST(address_in_use)
{
	const struct rendezvous_server_setup setup = {.address = address, .text = "", .clients = 1};
	struct rendezvous_server *s;
	ck_assert_int_eq(rendezvous_listen(&s, &setup), -EADDRINUSE);
}

/* --- peers of the server --- */

static int dial(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(rendezvous_port(server))};
	const struct timeval patience = {10, 0};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_ge(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void frame(uint8_t out[HEAD], uint32_t type, uint32_t value, uint32_t len)
{
	const uint32_t head[4] = {htonl(0x746d6332), htonl(type), htonl(value), htonl(len)};
	memcpy(out, head, HEAD);
}

static void put(int fd, const void *bytes, size_t n)
{
	ck_assert_int_eq(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* The other end closes, maybe after some bytes. */
static void assert_dropped(int fd)
{
	char bytes[RENDEZVOUS_TEXT];
	ssize_t n;
	do
		n = recv(fd, bytes, sizeof(bytes), 0);
	while (n > 0);
	ck_assert_msg(n == 0 || errno == ECONNRESET, "recv: %s", strerror(errno));
	close(fd);
}

/* A connection that has said hello. */
static int greet(void)
{
	uint8_t head[HEAD];
	char reply[HEAD + sizeof(text) - 1];
	ssize_t n;
	int fd;
	frame(head, 1, 0, 0);
	for (;;) {
		fd = dial();
		put(fd, head, HEAD);
		n = recv(fd, reply, sizeof(reply), MSG_WAITALL);
		if (n == (ssize_t)sizeof(reply))
			return fd;
		ck_assert_msg(impatient && n <= 0, "recv: %zd, %s", n, strerror(errno));
		close(fd);
	}
}

TEST(silent_peers_are_dropped)
{
	be_impatient();
	struct rendezvous *c = join_soon(0, 1);
	uint8_t bytes[HEAD + 3] = {0};
	int half_asked = greet(), silent = dial(), half = dial();
	frame(bytes, 1, 0, 0);
	put(half, bytes, 7);
	frame(bytes, 3, 4, 100);
	put(half_asked, bytes, sizeof(bytes));
	assert_dropped(silent);
	assert_dropped(half);
	assert_dropped(half_asked);
	/* A client that has said hello may be silent. */
	assert_answers(c);
	rendezvous_close(c);
	rendezvous_close(join_soon(2, 2));
}

TEST(a_byte_at_a_time)
{
	uint8_t ask[HEAD + 4], answer[HEAD + 4];
	int fd = greet();
	frame(ask, 3, 4, 4);
	memcpy(ask + HEAD, "abcd", 4);
	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(ask); i++)
			put(fd, ask + i, 1);
		ck_assert_int_eq(recv(fd, answer, sizeof(answer), MSG_WAITALL),
				 (ssize_t)sizeof(answer));
		ck_assert_mem_eq(answer + HEAD, "dcba", 4);
	}
	close(fd);
}

/* Heads that no client of ours sends: {type, value, len}, before or after a hello. */
static const struct {
	bool greeted;
	uint32_t type, value, len;
} wrong[] = {
	{false, 0, 0, 0},
	{false, 3, 0, 0},
	{false, 2, 0, 0},
	{false, 1, 0, 1},
	{false, 1, 0x80000000, 0},
	{false, 1, 0, UINT32_MAX},
	{true, 1, 0, 0},
	{true, 4, 0, 0},
	{true, 3, 0, RENDEZVOUS_MSG + 1},
	{true, 3, 0, UINT32_MAX},
	{true, 3, RENDEZVOUS_MSG + 1, 0},
	{true, 3, 0xffffffff, 0},
	{true, 3, 0x80000000, 0},
};

TESTS(wrong_frame_is_dropped, ROWS_OF(wrong))
{
	uint8_t head[HEAD];
	int fd = wrong[_i].greeted ? greet() : dial();
	frame(head, wrong[_i].type, wrong[_i].value, wrong[_i].len);
	put(fd, head, HEAD);
	assert_dropped(fd);
	ck_assert_uint_eq(asked, 0);
	rendezvous_close(join_soon(1, 1));
}

/* A good frame with some bytes changed, cut or lengthened. */
static size_t nonsense(uint64_t *seed, uint32_t type, uint32_t value, uint8_t *out, size_t room)
{
	size_t len = random_next(seed) % 200, n = HEAD + len;
	for (size_t i = 0; i < room; i++)
		out[i] = (uint8_t)random_next(seed);
	frame(out, type, value, (uint32_t)len);
	for (unsigned changes = (unsigned)(random_next(seed) % 4); changes; changes--)
		out[random_next(seed) % n] = (uint8_t)random_next(seed);
	return random_next(seed) % 3 ? n : random_next(seed) % room;
}

TEST(nonsense_of_clients)
{
	struct rendezvous *c = join(CLIENTS, CLIENTS);
	uint64_t seed = 1;
	uint8_t bytes[600];
	for (unsigned i = 0; i < FRAMES; i++) {
		int fd = dial();
		bool greeted = random_next(&seed) % 2;
		uint8_t head[HEAD];
		if (greeted) {
			frame(head, 1, 0, 0);
			put(fd, head, HEAD);
		}
		size_t n = nonsense(&seed, greeted ? 3 : 1, random_next(&seed) % 8, bytes,
				    sizeof(bytes));
		/* The server may have dropped us on the way. */
		send(fd, bytes, n, MSG_NOSIGNAL);
		if (random_next(&seed) % 4 == 0)
			shutdown(fd, SHUT_WR);
		close(fd);
		if (i % 50 == 0)
			assert_answers(c);
	}
	assert_answers(c);
	rendezvous_close(join_soon(1, 1));
	rendezvous_close(join_soon(2, 2));
	rendezvous_close(c);
}

/* More strangers than the server keeps: some are turned away, and clients come in as soon as the
 * others have gone. */
TEST(crowd_of_strangers)
{
	be_impatient();
	struct rendezvous *c = join_soon(0, 1);
	int fd[64];
	for (unsigned i = 0; i < 64; i++)
		fd[i] = dial();
	assert_answers(c);
	for (unsigned i = 0; i < 64; i++)
		assert_dropped(fd[i]);
	rendezvous_close(join_soon(2, 2));
	rendezvous_close(c);
}

/* A client that never reads what it asks for: the socket's buffers run full, and it is dropped. */
TEST(client_that_does_not_read)
{
	be_impatient();
	uint8_t ask[HEAD];
	int fd = greet(), small = 4096;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	frame(ask, 3, RENDEZVOUS_MSG, 0);
	unsigned sent = 0;
	while (sent < 100000 && send(fd, ask, HEAD, MSG_NOSIGNAL) == HEAD)
		sent++;
	ck_assert_uint_lt(sent, 100000);
	close(fd);
	rendezvous_close(join_soon(1, 1));
}

/* --- servers that are none --- */

/* Accepts one client and plays `bytes` to it, then waits until it has gone, unless `leaves`. */
struct impostor {
	int listener;
	const uint8_t *bytes;
	size_t n;
	bool leaves;
	struct rendezvous *asks; /* is broken off when it has asked */
	pthread_t thread;
	char address[32];
};

static void *impostor_main(void *arg)
{
	struct impostor *im = arg;
	char heard[512];
	int fd = accept(im->listener, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_gt(recv(fd, heard, HEAD, MSG_WAITALL), 0);
	send(fd, im->bytes, im->n, MSG_NOSIGNAL);
	if (im->leaves)
		shutdown(fd, SHUT_WR);
	while (recv(fd, heard, sizeof(heard), 0) > 0)
		if (im->asks) {
			rendezvous_break(im->asks);
			im->asks = NULL;
		}
	close(fd);
	return NULL;
}

static void impostor_begin(struct impostor *im, const uint8_t *bytes, size_t n, bool leaves)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*im = (struct impostor){.bytes = bytes, .n = n, .leaves = leaves};
	im->listener = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(im->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(im->listener, 1), 0);
	getsockname(im->listener, (struct sockaddr *)&at, &len);
	snprintf(im->address, sizeof(im->address), "127.0.0.1:%u", ntohs(at.sin_port));
	ck_assert_int_eq(pthread_create(&im->thread, NULL, impostor_main, im), 0);
}

static void impostor_end(struct impostor *im)
{
	pthread_join(im->thread, NULL);
	close(im->listener);
}

static int connect_to(const struct impostor *im, struct rendezvous **c)
{
	char got[RENDEZVOUS_TEXT];
	unsigned number = 0;
	int error = rendezvous_connect(c, im->address, &number, got);
	if (!error)
		ck_assert_uint_lt(strlen(got), RENDEZVOUS_TEXT);
	return error;
}

TEST(nonsense_of_a_server)
{
	uint64_t seed = 7;
	uint8_t bytes[600];
	for (unsigned i = 0; i < 300; i++) {
		struct impostor im;
		struct rendezvous *c;
		char rsp[8];
		size_t n = nonsense(&seed, 2, random_next(&seed) % 3, bytes, sizeof(bytes));
		impostor_begin(&im, bytes, n, true);
		if (!connect_to(&im, &c)) {
			/* It got a number; what comes next is no answer. */
			ck_assert_int_lt(rendezvous_ask(c, "a", 1, rsp, sizeof(rsp)), 0);
			rendezvous_close(c);
		}
		impostor_end(&im);
	}
}

TEST(server_goes_away)
{
	struct rendezvous *c = join(0, 1);
	char rsp[4];
	assert_answers(c);
	rendezvous_stop(server);
	int error = rendezvous_ask(c, "abcd", 4, rsp, sizeof(rsp));
	ck_assert_msg(error == -ECONNRESET || error == -EPIPE, "%s", strerror(-error));
	/* Nor later. */
	ck_assert_int_eq(rendezvous_ask(c, "abcd", 4, rsp, sizeof(rsp)), -ENOTCONN);
	rendezvous_close(c);
	begin(); /* for end() */
}

TEST(server_says_nothing)
{
	struct impostor im;
	struct rendezvous *c;
	impostor_begin(&im, NULL, 0, false);
	ck_assert_int_eq(connect_to(&im, &c), -ETIMEDOUT);
	impostor_end(&im);
}

/* Another thread breaks off what would take long. */
TEST(question_is_broken_off)
{
	struct impostor im;
	struct rendezvous *c;
	uint8_t welcome[HEAD];
	char rsp[4];
	frame(welcome, 2, 1, 0);
	impostor_begin(&im, welcome, HEAD, false);
	ck_assert_int_eq(connect_to(&im, &c), 0);
	im.asks = c;
	ck_assert_int_eq(rendezvous_ask(c, "abcd", 4, rsp, sizeof(rsp)), -ECONNRESET);
	rendezvous_close(c);
	impostor_end(&im);
}

RUN_TESTS(begin, end)
