/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the soft RNIC in real time, as a program meets them: completion channels that it sleeps
 * on, polls, and makes non-blocking; asynchronous events; acknowledgements that a destroy waits
 * for; iterating polls and ibv_wr_*() from several threads. Two queue pairs of one process, each on
 * a device that it has opened.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include "core/clock.h"
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

#define SIGNALED IBV_SEND_SIGNALED
#define LONG_MS	 120000 /* more than anything takes that is not late */
#define ACCESS	 (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static void open_one(struct side *s)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
	struct ibv_qp_init_attr_ex init = {
		.cap = {32, 32, 1, 1, 64},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
	};

	open_side(s, 4096, ACCESS);
	s->channel = ibv_create_comp_channel(s->context);
	ck_assert_ptr_nonnull(s->channel);
	attr.channel = s->channel;
	attr.cq_context = s;
	s->cqx = ibv_create_cq_ex(s->context, &attr);
	ck_assert_ptr_nonnull(s->cqx);
	s->scq = s->rcq = ibv_cq_ex_to_cq(s->cqx);
	init.pd = s->pd;
	init.send_cq = init.recv_cq = s->scq;
	s->qp = ibv_create_qp_ex(s->context, &init);
	ck_assert_ptr_nonnull(s->qp);
	s->qpx = ibv_qp_to_qp_ex(s->qp);
	ck_assert_ptr_nonnull(s->qpx);
}

static uint64_t opening_ns; /* so much may lie between the reads of two clocks there */

static void setup(void)
{
	uint64_t start = clock_ns();

	open_one(&a);
	open_one(&b);
	opening_ns = clock_ns() - start;
	go(&a, &b, IBV_QPS_RTS);
	go(&b, &a, IBV_QPS_RTR);
}

static void send_post(struct side *s, unsigned flags)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_of(s, IBV_WR_SEND, &sge, 8, 0);

	wr.send_flags = flags;
	post_wr(s, &wr);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static struct ibv_wc poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc = wait_for(cq);

	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	return wc;
}

/* No one can be told: nothing happens. */
TEST(arms_a_queue_without_a_channel)
{
	struct ibv_cq *cq = ibv_create_cq(a.context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(a.pd, &init);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {.wr_id = 7}, *bad;

	ck_assert_ptr_nonnull(qp);
	ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
	ck_assert_int_eq(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
	ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), 0);
	ck_assert_uint_eq(wait_for(cq).wr_id, 7);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}

static void *send_later(void *arg)
{
	usleep(20000);
	send_post(arg, SIGNALED);
	return NULL;
}

/* --- completion channels --- */

TEST(sleeps_until_a_completion)
{
	struct ibv_cq *cq;
	void *cq_context;
	pthread_t thread;

	give(&b, 64, 5);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	ck_assert(!readable(b.channel->fd, 0));
	pthread_create(&thread, NULL, send_later, &a);
	ck_assert_int_eq(ibv_get_cq_event(b.channel, &cq, &cq_context), 0);
	ck_assert_ptr_eq(cq, b.rcq);
	ck_assert_ptr_eq(cq_context, &b);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(poll_one(b.rcq).wr_id, 5);
	ibv_ack_cq_events(cq, 1);
	/* Not armed again: no event. */
	give(&b, 64, 6);
	send_post(&a, SIGNALED);
	ck_assert_uint_eq(poll_one(b.rcq).wr_id, 6);
	ck_assert(!readable(b.channel->fd, 0));
}

TEST(polls_the_descriptor)
{
	struct ibv_cq *cq;
	void *cq_context;

	ck_assert_int_eq(fcntl(b.channel->fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(ibv_get_cq_event(b.channel, &cq, &cq_context), -1);
	ck_assert_int_eq(errno, EAGAIN);
	for (unsigned i = 0; i < 3; i++) {
		give(&b, 64, i);
		ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 1), 0);
		send_post(&a, SIGNALED);
		ck_assert_int_eq(readable(b.channel->fd, 20), i > 0); /* not solicited */
		give(&b, 64, i);
		send_post(&a, SIGNALED | IBV_SEND_SOLICITED);
		ck_assert(readable(b.channel->fd, LONG_MS));
		poll_one(b.rcq);
		poll_one(b.rcq);
	}
	/* Three events wait; all are to be had, and no more. */
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(ibv_get_cq_event(b.channel, &cq, &cq_context), 0);
	ck_assert_int_eq(ibv_get_cq_event(b.channel, &cq, &cq_context), -1);
	ck_assert(!readable(b.channel->fd, 0));
	ibv_ack_cq_events(cq, 3);
}

static atomic_int waited;

static void *wait_for_event(void *arg)
{
	struct ibv_cq *cq;
	void *cq_context;

	atomic_store(&waited, ibv_get_cq_event(b.channel, &cq, &cq_context) ? errno : -1);
	if (atomic_load(&waited) < 0)
		ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void on_signal(int sig)
{
}

/* As a read() of a kernel's descriptor: begun again, or not, as the handler was installed;
 * cancelled. */
TEST(interrupted)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t thread;
	void *result;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&thread, NULL, wait_for_event, NULL);
	for (unsigned i = 0; i < 5; i++) {
		usleep(10000);
		pthread_kill(thread, SIGUSR1);
	}
	give(&b, 64, 1);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	send_post(&a, SIGNALED);
	pthread_join(thread, NULL);
	ck_assert_int_eq(atomic_load(&waited), -1);
	action.sa_flags = 0;
	sigaction(SIGUSR1, &action, NULL);
	atomic_store(&waited, 0);
	pthread_create(&thread, NULL, wait_for_event, NULL);
	/* It may not have begun to wait yet. */
	while (!atomic_load(&waited)) {
		pthread_kill(thread, SIGUSR1);
		usleep(1000);
	}
	pthread_join(thread, NULL);
	ck_assert_int_eq(atomic_load(&waited), EINTR);
	pthread_create(&thread, NULL, wait_for_event, NULL);
	usleep(20000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	/* No event is unacknowledged. */
	poll_one(b.rcq);
}

/* Thousands of events that are not read: one edge each as long as there is room. */
TEST(many_events)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct ibv_cq *cq;
	void *cq_context;

	ck_assert_int_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, b.channel->fd, &event), 0);
	for (unsigned i = 0; i < 2000; i++) {
		give(&b, 64, i);
		ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
		send_post(&a, SIGNALED);
		poll_one(b.rcq);
		poll_one(a.scq);
		if (i < 100)
			ck_assert_int_eq(epoll_wait(epoll, &event, 1, LONG_MS), 1);
	}
	for (unsigned i = 0; i < 2000; i++)
		ck_assert_int_eq(ibv_get_cq_event(b.channel, &cq, &cq_context), 0);
	ck_assert(!readable(b.channel->fd, 0));
	ibv_ack_cq_events(cq, 2000);
}

static atomic_bool destroyed;

static void *destroy_cq(void *arg)
{
	ck_assert_int_eq(ibv_destroy_cq(arg), 0);
	atomic_store(&destroyed, true);
	return NULL;
}

TEST(destroy_waits_for_the_acknowledgement)
{
	struct ibv_cq *cq;
	void *cq_context;
	pthread_t thread;

	give(&b, 64, 1);
	give(&b, 64, 2);
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	send_post(&a, SIGNALED);
	ck_assert_int_eq(ibv_get_cq_event(b.channel, &cq, &cq_context), 0);
	/* A second one, which is not read. */
	ck_assert_int_eq(ibv_req_notify_cq(b.rcq, 0), 0);
	send_post(&a, SIGNALED);
	ck_assert(readable(b.channel->fd, LONG_MS));
	ck_assert_int_eq(ibv_destroy_cq(b.rcq), EBUSY);
	ck_assert_int_eq(ibv_destroy_comp_channel(b.channel), EBUSY);
	ck_assert_int_eq(ibv_destroy_qp(b.qp), 0);
	pthread_create(&thread, NULL, destroy_cq, b.rcq);
	usleep(30000);
	ck_assert(!atomic_load(&destroyed));
	ibv_ack_cq_events(cq, 1);
	pthread_join(thread, NULL);
	ck_assert(!readable(b.channel->fd, 0)); /* what was not read is gone */
	ck_assert_int_eq(ibv_destroy_comp_channel(b.channel), 0);
}

/* --- asynchronous events --- */

TEST(established)
{
	struct ibv_async_event event;

	give(&b, 64, 1);
	ck_assert(!readable(b.context->async_fd, 0));
	send_post(&a, SIGNALED);
	ck_assert(readable(b.context->async_fd, LONG_MS));
	ck_assert_int_eq(ibv_get_async_event(b.context, &event), 0);
	ck_assert_int_eq(event.event_type, IBV_EVENT_COMM_EST);
	ck_assert_ptr_eq(event.element.qp, b.qp);
	ibv_ack_async_event(&event);
	ck_assert_int_eq(fcntl(b.context->async_fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(ibv_get_async_event(b.context, &event), -1);
	ck_assert_int_eq(errno, EAGAIN);
}

static void *destroy_qp(void *arg)
{
	ck_assert_int_eq(ibv_destroy_qp(arg), 0);
	atomic_store(&destroyed, true);
	return NULL;
}

TEST(access_error)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_of(&a, IBV_WR_RDMA_WRITE, &sge, 8, 0);
	struct ibv_async_event event;
	pthread_t thread;

	wr.wr.rdma.rkey ^= 1;
	post_wr(&a, &wr);
	expect(a.scq, 0, IBV_WC_REM_ACCESS_ERR);
	event = next_event(&b);
	ck_assert_int_eq(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	ck_assert_ptr_eq(event.element.qp, b.qp);
	pthread_create(&thread, NULL, destroy_qp, b.qp);
	usleep(30000);
	ck_assert(!atomic_load(&destroyed));
	ibv_ack_async_event(&event);
	pthread_join(thread, NULL);
}

/* --- iterating polls, ibv_wr_*() --- */

/* The system's clock, which the library reads by this name, too, set back by so many seconds. */
static atomic_int set_back_s;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (syscall(SYS_clock_gettime, clock, now))
		return -1;
	if (clock == CLOCK_REALTIME)
		now->tv_sec -= atomic_load(&set_back_s);
	return 0;
}

static uint64_t completed_at(uint64_t id)
{
	struct ibv_poll_cq_attr attr = {0};
	uint64_t at;

	give(&b, 64, id);
	send_post(&a, SIGNALED);
	while (ibv_start_poll(b.cqx, &attr))
		;
	ck_assert_uint_eq(b.cqx->wr_id, id);
	at = ibv_wc_read_completion_wallclock_ns(b.cqx);
	ibv_end_poll(b.cqx);
	return at;
}

TEST(clock_set_back)
{
	uint64_t first = completed_at(1), second;

	atomic_store(&set_back_s, 3600);
	second = completed_at(2);
	ck_assert_uint_ge(second, first);
	ck_assert_uint_lt(second - first, 3600 * 1000000000ull);
}

TEST(wallclock)
{
	struct ibv_poll_cq_attr attr = {0};
	struct timespec before, after;
	uint64_t at;

	give(&b, 64, 3);
	clock_gettime(CLOCK_REALTIME, &before);
	send_post(&a, SIGNALED);
	while (ibv_start_poll(b.cqx, &attr))
		;
	clock_gettime(CLOCK_REALTIME, &after);
	ck_assert_uint_eq(b.cqx->wr_id, 3);
	at = ibv_wc_read_completion_wallclock_ns(b.cqx);
	ibv_end_poll(b.cqx);
	ck_assert_uint_ge(at + opening_ns,
			  (uint64_t)before.tv_sec * 1000000000 + (uint64_t)before.tv_nsec);
	ck_assert_uint_le(at, (uint64_t)after.tv_sec * 1000000000 + (uint64_t)after.tv_nsec +
				      opening_ns);
}

#define THREADS 4
#define EACH	200

static atomic_uint taken;
static atomic_bool wrong;
static uint64_t latest_ns; /* of the wall clock; the thread that iterates over the queue has it */

/* Each thread posts batches of two WRITEs to the one queue pair, and polls for completions of
 * any thread. The system's clock goes to and fro; that of completions does not. */
static void *writer(void *arg)
{
	const uint64_t id = (uint64_t)(uintptr_t)arg;
	struct ibv_poll_cq_attr attr = {0};

	for (unsigned i = 0; i < EACH; i++) {
		ibv_wr_start(a.qpx);
		a.qpx->wr_flags = 0;
		a.qpx->wr_id = id;
		ibv_wr_rdma_write(a.qpx, b.mr->rkey, (uintptr_t)b.buf + 64 * id);
		ibv_wr_set_inline_data(a.qpx, &i, sizeof(i));
		sched_yield(); /* others would like to come in */
		if (a.qpx->wr_id != id)
			atomic_store(&wrong, true);
		a.qpx->wr_flags = SIGNALED;
		ibv_wr_rdma_write(a.qpx, b.mr->rkey, (uintptr_t)b.buf + 64 * id + 8);
		ibv_wr_set_inline_data(a.qpx, &i, sizeof(i));
		if (ibv_wr_complete(a.qpx))
			atomic_store(&wrong, true);
		while (atomic_load(&taken) < THREADS * EACH && ibv_start_poll(a.cqx, &attr))
			sched_yield();
		if (a.cqx->status != IBV_WC_SUCCESS || a.cqx->wr_id >= THREADS)
			atomic_store(&wrong, true);
		uint64_t at_ns = ibv_wc_read_completion_wallclock_ns(a.cqx);
		if (at_ns < latest_ns)
			atomic_store(&wrong, true);
		latest_ns = at_ns;
		atomic_store(&set_back_s, (int)(i % 3 * 3600));
		atomic_fetch_add(&taken, 1);
		ibv_end_poll(a.cqx);
	}
	return NULL;
}

TEST(many_threads)
{
	pthread_t thread[THREADS];
	unsigned last[2];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, writer, (void *)i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert(!atomic_load(&wrong));
	ck_assert_uint_eq(atomic_load(&taken), THREADS * EACH);
	for (unsigned i = 0; i < THREADS; i++) {
		memcpy(&last[0], b.buf + 64 * i, sizeof(unsigned));
		memcpy(&last[1], b.buf + 64 * i + 8, sizeof(unsigned));
		ck_assert_uint_eq(last[0], EACH - 1);
		ck_assert_uint_eq(last[1], EACH - 1);
	}
}

/* Two batches at once on two queue pairs, and a poll in the middle of them. */
TEST(two_batches)
{
	go(&b, &a, IBV_QPS_RTS);
	give(&a, 64, 1);
	give(&b, 64, 1);
	for (struct side *s = &a; s; s = s == &a ? &b : NULL) {
		ibv_wr_start(s->qpx);
		s->qpx->wr_flags = SIGNALED;
		ibv_wr_send(s->qpx);
		ibv_wr_set_sge(s->qpx, s->mr->lkey, (uintptr_t)s->buf, 8);
		nothing_in(s->scq);
	}
	ck_assert_int_eq(ibv_wr_complete(a.qpx), 0);
	ck_assert_int_eq(ibv_wr_complete(b.qpx), 0);
	for (unsigned i = 0; i < 2; i++) {
		poll_one(a.scq);
		poll_one(b.rcq);
	}
}

/* --- the end --- */

TEST(closed_with_all_that_is_left)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	send_post(&a, SIGNALED);
	ck_assert_int_eq(ibv_close_device(b.context), 0);
	/* Many times, and not too many at once. */
	for (unsigned i = 0; i < 100; i++) {
		context = ibv_open_device(list[0]);
		ck_assert_ptr_nonnull(context);
		ck_assert_int_eq(ibv_close_device(context), 0);
	}
	ibv_free_device_list(list);
}

int main(void)
{
	return nic_fabric_run(listed_suite(setup, NULL));
}
