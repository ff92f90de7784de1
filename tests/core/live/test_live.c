/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts of the live world without an RDMA device: turns, sleep, the clock, the end of tasks that
 * have none, memory that comes back, connecting. The functions are those that store code is
 * compiled to call (core/live/live_calls.h).
 */
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include "core/clock.h"
#include "core/live/rendezvous.h"
#include "core/live/live.h"
#include "tests/suite.h"

/* As a store has them. */
int live_rt_spawn(const char *name, void (*fn)(void *arg), void *arg);
void live_rt_yield(void);
void live_rt_sleep(uint64_t ns);
uint64_t live_rt_now(void);
int live_rt_listen(int (*fn)(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len),
		   void *arg);
int live_rt_connect(const void *req, size_t req_len, void *rsp, size_t rsp_len);
void *live_malloc(size_t size);
void *live_calloc(size_t n, size_t size);
void *live_realloc(void *old, size_t size);
int live_posix_memalign(void **out, size_t align, size_t size);
void live_free(void *p);
int live_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int live_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);

#define TURNS	200
#define MS	1000000ull
#define TRIES	100   /* of what a busy machine may spoil */
#define LONG_MS 60000 /* more than anything takes that is not late; tasks would sleep an hour */

static struct live_host *host;

static void begin(void)
{
	ck_assert_int_eq(live_host_new(&host, NULL, NULL), 0);
}

static void end(void)
{
	live_host_free(host);
}

/* --- calls and turns --- */

static int seven(void *arg)
{
	*(int *)arg += 1;
	return -7;
}

TEST(call_returns)
{
	int calls = 0;
	ck_assert_int_eq(live_call(host, seven, &calls), -7);
	ck_assert_int_eq(live_call(host, seven, &calls), -7);
	ck_assert_int_eq(calls, 2);
}

/* Tasks that each count, without any protection but that they take turns. */
struct counting {
	unsigned long count;
	unsigned inside, done;
};
static struct counting counting;

static void count(void *arg)
{
	struct counting *c = arg;
	for (unsigned i = 0; i < TURNS; i++) {
		ck_assert_uint_eq(c->inside, 0);
		c->inside = 1;
		volatile unsigned long *n = &c->count;
		for (unsigned j = 0; j < 100; j++)
			*n = *n + 1;
		c->inside = 0;
		if (i % 3 == 2)
			live_rt_sleep(1000);
		else
			live_rt_yield();
	}
	c->done++;
}

static int start_counting(void *arg)
{
	memset(&counting, 0, sizeof(counting));
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(live_rt_spawn("counter", count, &counting), 0);
	while (counting.done < 3)
		live_rt_yield();
	return 0;
}

TEST(tasks_take_turns)
{
	ck_assert_int_eq(live_call(host, start_counting, NULL), 0);
	ck_assert_uint_eq(counting.count, 3ul * TURNS * 100);
}

/* The task that has waited longest is next: one that lets go comes after all that wait, in the
 * order in which they came. */
#define WAITING 4
static struct {
	unsigned n, order[WAITING];
} came;

static void comes(void *arg)
{
	came.order[came.n++] = (unsigned)(uintptr_t)arg;
}

static int lets_go_once(void *arg)
{
	bool *in_order = arg;
	memset(&came, 0, sizeof(came));
	for (uintptr_t i = 0; i < WAITING; i++) {
		ck_assert_int_eq(live_rt_spawn("waits", comes, (void *)i), 0);
		poll(NULL, 0, 50); /* it starts, and waits for its turn */
	}
	ck_assert_uint_eq(came.n, 0);
	live_rt_yield();
	*in_order = came.n == WAITING;
	for (unsigned i = 0; i < came.n; i++)
		*in_order &= came.order[i] == i;
	while (came.n < WAITING)
		live_rt_yield();
	return 0;
}

TEST(baton_is_fair)
{
	bool in_order = false;
	/* On a busy machine a task may start late. */
	for (unsigned i = 0; i < TRIES && !in_order; i++)
		ck_assert_int_eq(live_call(host, lets_go_once, &in_order), 0);
	ck_assert(in_order);
}

/* --- time --- */

static int sleeps(void *arg)
{
	uint64_t before = live_rt_now();
	live_rt_sleep(20 * MS);
	uint64_t after = live_rt_now();
	ck_assert_uint_ge(after - before, 20 * MS);
	ck_assert_uint_lt(after, 10000 * MS); /* since the host's start, not the machine's */
	return 0;
}

TEST(sleep_takes_its_time)
{
	ck_assert_int_eq(live_call(host, sleeps, NULL), 0);
}

static uint64_t own_cpu_ns(void)
{
	clockid_t clock;
	struct timespec cpu;
	ck_assert_int_eq(pthread_getcpuclockid(pthread_self(), &clock), 0);
	ck_assert_int_eq(clock_gettime(clock, &cpu), 0);
	return (uint64_t)cpu.tv_sec * 1000 * MS + (uint64_t)cpu.tv_nsec;
}

static int yields(void *arg)
{
	uint64_t until = live_rt_now() + 300 * MS, before = own_cpu_ns();
	unsigned n = 0;
	for (; live_rt_now() < until; n++)
		live_rt_yield();
	ck_assert_uint_lt(own_cpu_ns() - before, 150 * MS);
	*(bool *)arg = n >= 20; /* it looks every now and then */
	return 0;
}

TEST(idle_task_sleeps)
{
	bool looks = false;
	/* On a busy machine it may have no CPU for most of the time. */
	for (unsigned i = 0; i < TRIES && !looks; i++)
		ck_assert_int_eq(live_call(host, yields, &looks), 0);
	ck_assert(looks);
}

/* --- the end --- */

static void *stop_soon(void *arg)
{
	poll(NULL, 0, 50);
	live_host_stop(arg);
	return NULL;
}

static int yields_for_ever(void *arg)
{
	for (;;)
		live_rt_yield();
	return 0;
}

static int sleeps_for_ever(void *arg)
{
	for (;;)
		live_rt_sleep(3600 * 1000 * MS);
	return 0;
}

static void spawned_for_ever(void *arg)
{
	int (*fn)(void *) = arg ? yields_for_ever : sleeps_for_ever;
	fn(NULL);
}

static int spawns_and_yields(void *arg)
{
	for (uintptr_t i = 0; i < 4; i++)
		ck_assert_int_eq(live_rt_spawn("for ever", spawned_for_ever, (void *)(i % 2)), 0);
	return yields_for_ever(arg);
}

static int (*const endless[])(void *arg) = {yields_for_ever, sleeps_for_ever, spawns_and_yields};

TESTS(stopped_host_is_left, sizeof(endless) / sizeof(endless[0]))
{
	pthread_t thread;
	uint64_t before = clock_ms();
	int calls = 0;
	ck_assert_int_eq(pthread_create(&thread, NULL, stop_soon, host), 0);
	ck_assert_int_eq(live_call(host, endless[_i], NULL), -ECANCELED);
	pthread_join(thread, NULL);
	ck_assert_uint_lt(clock_ms() - before, LONG_MS);
	/* Nothing runs any more. */
	ck_assert_int_eq(live_call(host, seven, &calls), -ECANCELED);
	ck_assert_int_eq(calls, 0);
}

static int spawns(void *arg)
{
	return live_rt_spawn("for ever", spawned_for_ever, NULL);
}

/* live_host_free() alone ends tasks that sleep. */
TEST(free_ends_tasks)
{
	ck_assert_int_eq(live_call(host, spawns, NULL), 0);
	uint64_t before = clock_ms();
	live_host_free(host);
	ck_assert_uint_lt(clock_ms() - before, LONG_MS);
	begin(); /* for end() */
}

/* --- memory --- */

/* What is left here is the host's to give back: the leak checker looks. */
static int allocates(void *arg)
{
	uint8_t *a = live_malloc(100), *b = live_calloc(10, 10), *c;
	void *d = NULL;
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	ck_assert_uint_eq((uintptr_t)a % 16, 0);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(b[i], 0);
	memset(a, 0xaa, 100);
	c = live_realloc(a, 5000);
	ck_assert_ptr_nonnull(c);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(c[i], 0xaa);
	c = live_realloc(c, 10);
	ck_assert_uint_eq(c[9], 0xaa);
	for (size_t align = 8; align <= 4096; align *= 2) {
		ck_assert_int_eq(live_posix_memalign(&d, align, 33), 0);
		ck_assert_uint_eq((uintptr_t)d % align, 0);
		memset(d, 1, 33);
		if (align % 64)
			live_free(d);
	}
	live_free(b);
	live_free(NULL);
	ck_assert_ptr_null(live_calloc(SIZE_MAX / 2, 4));
	ck_assert_ptr_null(live_malloc(SIZE_MAX - 8));
	ck_assert_ptr_nonnull(live_realloc(NULL, 7));
	return 0;
}

TEST(memory_comes_back)
{
	ck_assert_int_eq(live_call(host, allocates, NULL), 0);
}

/* A task that is left in the middle has its memory in no variable any more. */
static int allocates_for_ever(void *arg)
{
	for (;;) {
		ck_assert_ptr_nonnull(live_malloc(1000));
		live_rt_yield();
	}
	return 0;
}

TEST(memory_of_a_stopped_task)
{
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, NULL, stop_soon, host), 0);
	ck_assert_int_eq(live_call(host, allocates_for_ever, NULL), -ECANCELED);
	pthread_join(thread, NULL);
}

/* --- connecting --- */

static int accept_twice(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	unsigned *accepted = arg;
	if (req_len != 4 || rsp_len != 8)
		return -EPROTO;
	memcpy(rsp, req, 4);
	memcpy((char *)rsp + 4, req, 4);
	return ++*accepted > 1 ? -EUSERS : 0;
}

static int listens(void *arg)
{
	return live_rt_listen(accept_twice, arg);
}

static int accept_of(void *arg, unsigned client, const void *req, size_t req_len, void *rsp,
		     size_t rsp_len)
{
	return live_accept(arg, req, req_len, rsp, rsp_len);
}

static int connects(void *arg)
{
	return live_rt_connect("abcd", 4, arg, 8);
}

TEST(connects_over_control)
{
	char address[32], text[RENDEZVOUS_TEXT], rsp[9] = "";
	unsigned accepted = 0, number = 0;
	struct rendezvous_server *server;
	struct rendezvous_server_setup setup = {.address = "127.0.0.1:0",
						.text = "",
						.clients = 1,
						.accept = accept_of,
						.arg = host};
	struct rendezvous *control;
	struct live_host *client;
	ck_assert_int_eq(live_accept(host, "abcd", 4, rsp, 8), -ECONNREFUSED);
	ck_assert_int_eq(live_call(host, connects, rsp),
			 -ECONNREFUSED); /* a server does not connect */
	ck_assert_int_eq(live_call(host, listens, &accepted), 0);
	ck_assert_int_eq(live_call(host, listens, &accepted), -EADDRINUSE);
	ck_assert_int_eq(rendezvous_listen(&server, &setup), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", rendezvous_port(server));
	ck_assert_int_eq(rendezvous_connect(&control, address, &number, text), 0);
	const struct live_peers peers = {.server = control};
	ck_assert_int_eq(live_host_new(&client, NULL, &peers), 0);
	ck_assert_int_eq(live_call(client, connects, rsp), 0);
	ck_assert_str_eq(rsp, "abcdabcd");
	ck_assert_int_eq(live_call(client, connects, rsp), -EUSERS);
	/* The server's host ends: no client is accepted. */
	live_host_stop(host);
	ck_assert_int_eq(live_call(client, connects, rsp), -ECANCELED);
	live_host_free(client);
	rendezvous_stop(server);
}

/* --- completions with an error --- */

static struct ibv_wc completion;

static int take_request(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	return wr->wr_id ? ENOMEM : 0;
}

static int give_completion(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	ck_assert_int_eq(n, 1);
	*wc = completion;
	return 1;
}

static struct ibv_context nic = {.ops = {.poll_cq = give_completion, .post_send = take_request}};

/* What one completion after another tells of a queue pair; `refused`: it is not posted. */
static const struct told {
	uint32_t qp;
	enum ibv_wr_opcode opcode;
	bool refused;
	enum ibv_wc_status status;
	uint32_t vendor;
	struct bad_completion expected;
	unsigned links;
} told[] = {
	{7, IBV_WR_SEND, false, IBV_WC_SUCCESS, 1, {0}, 0},
	{7, IBV_WR_RDMA_READ, false, IBV_WC_SUCCESS, 0, {0}, 0},
	{8, IBV_WR_RDMA_WRITE, true, IBV_WC_SUCCESS, 0, {0}, 0},
	/* The first one stays. */
	{7,
	 IBV_WR_SEND,
	 true,
	 IBV_WC_REM_ACCESS_ERR,
	 0x80000001,
	 {IBV_WC_REM_ACCESS_ERR, IBV_WR_RDMA_READ, 0x80000001},
	 0},
	{7,
	 IBV_WR_SEND,
	 false,
	 IBV_WC_WR_FLUSH_ERR,
	 2,
	 {IBV_WC_REM_ACCESS_ERR, IBV_WR_RDMA_READ, 0x80000001},
	 0},
	{7,
	 IBV_WR_SEND,
	 false,
	 IBV_WC_RETRY_EXC_ERR,
	 2,
	 {IBV_WC_REM_ACCESS_ERR, IBV_WR_RDMA_READ, 0x80000001},
	 1},
};

static int tell(void *arg)
{
	const struct told *t = arg;
	struct ibv_qp qp = {.context = &nic, .qp_num = t->qp};
	struct ibv_cq cq = {.context = &nic};
	struct ibv_send_wr wr = {.wr_id = t->refused, .opcode = t->opcode}, *bad;
	struct ibv_wc wc;
	live_post_send(&qp, &wr, &bad);
	completion = (struct ibv_wc){.status = t->status, .qp_num = 7, .vendor_err = t->vendor};
	return live_poll_cq(&cq, 1, &wc);
}

TEST(bad_completion_is_kept)
{
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		struct injected injected;
		ck_assert_int_eq(live_call(host, tell, (void *)&told[i]), 1);
		struct bad_completion b = live_bad_completion(host);
		ck_assert_uint_eq(b.status, told[i].expected.status);
		ck_assert_uint_eq(b.posted, told[i].expected.posted);
		ck_assert_uint_eq(b.vendor, told[i].expected.vendor);
		live_injected(host, 0, &injected);
		ck_assert_uint_eq(injected.links, told[i].links);
	}
	/* A completion of a queue pair on which nothing was posted. */
	end();
	begin();
	struct told other = {.qp = 8, .status = IBV_WC_RETRY_EXC_ERR};
	live_call(host, tell, &other);
	struct bad_completion b = live_bad_completion(host);
	ck_assert_uint_eq(b.status, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_eq(b.posted, POSTED_UNKNOWN);
}

RUN_TESTS(begin, end)
