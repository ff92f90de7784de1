/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_nic: what the soft RNIC costs in real time, beside what the machine can do without it. Run
 * it under the soft RNIC: tidemark run -- bench_nic (make nicbench does).
 *
 * Every row is two processes, made by fork() before either opens the device: an initiator that
 * measures, and a target. The rows without the soft RNIC move the same bytes: a ping-pong over
 * shared memory that both ends poll, memcpy, a ping-pong over UDP on the loopback, libfabric's
 * fi_pingpong over its own shared memory. Latency is that of one operation with its
 * acknowledgement, each measured by itself. Bandwidth is measured with messages of 64 KiB, WINDOW
 * of them under way, or one for a ping-pong over UDP. memcpy moves them between the memory that the
 * WRITEs are from and to, on one core; "in and out" are two cores, one of which copies into a ring
 * between them, the other out of it. "One copy" is what a NIC could do that fetches from the other
 * process's memory itself: the target calls process_vm_readv() for each message.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"

#define SMALL	   64u
#define LARGE	   65536u
#define WINDOW	   16u
#define PIECE	   16384u
#define PIECES	   32u
#define DATAGRAM   4096u /* bytes of one of the datagrams that make up LARGE */
#define ROUNDS	   20000u
#define WARM	   1000u
#define TRANSFERS  8000u /* of LARGE */
#define PATIENCE_S 60	 /* until a row that hangs ends */
#define NS_PER_S   1000000000ull

#define EXIT_INTERNAL 70 /* as tidemark's */

/* What the two processes of a row share. */
struct row {
	_Alignas(64) _Atomic uint32_t ping;
	_Alignas(64) _Atomic uint32_t pong;
	_Alignas(64) uint8_t ball[2][SMALL];
	_Atomic uint32_t over;
	int failed; /* of the initiator: a step that did not work, as errno */
	uint64_t ns[ROUNDS];
	uint64_t transfers_ns;
	uint8_t large[2][LARGE * WINDOW];
	_Alignas(64) _Atomic uint64_t put; /* pieces, into the ring */
	_Alignas(64) _Atomic uint64_t taken;
	_Alignas(64) uint8_t ring[PIECES][PIECE];
	_Atomic pid_t initiator; /* whose memory is fetched */
};

enum target { POLLS, SLEEPS };

/* --- rows without the soft RNIC --- */

static void ping(struct row *row)
{
	uint8_t mine[SMALL] = {1};
	for (uint32_t i = 1; i <= ROUNDS + WARM; i++) {
		uint64_t start = clock_ns();
		memcpy(row->ball[0], mine, SMALL);
		atomic_store_explicit(&row->ping, i, memory_order_release);
		while (atomic_load_explicit(&row->pong, memory_order_acquire) != i)
			;
		memcpy(mine, row->ball[1], SMALL);
		row->ns[i % ROUNDS] = clock_ns() - start;
	}
}

static void shared_initiator(struct row *row, int fd)
{
	(void)fd;
	ping(row);
	uint64_t start = clock_ns();
	for (uint32_t i = 0; i < TRANSFERS; i++) {
		size_t at = (size_t)(i % WINDOW) * LARGE;
		memcpy(row->large[1] + at, row->large[0] + at, LARGE);
		__asm__ volatile("" : : "r"(row->large) : "memory");
	}
	row->transfers_ns = clock_ns() - start;
}

static void shared_target(struct row *row, int fd)
{
	uint8_t mine[SMALL];
	(void)fd;
	for (uint32_t i = 1; i <= ROUNDS + WARM; i++) {
		while (atomic_load_explicit(&row->ping, memory_order_acquire) != i)
			if (atomic_load_explicit(&row->over, memory_order_relaxed))
				return;
		memcpy(mine, row->ball[0], SMALL);
		memcpy(row->ball[1], mine, SMALL);
		atomic_store_explicit(&row->pong, i, memory_order_release);
	}
}

static void ring_initiator(struct row *row, int fd)
{
	const uint64_t pieces = (uint64_t)TRANSFERS * (LARGE / PIECE);
	(void)fd;
	ping(row);
	uint64_t start = clock_ns();
	for (uint64_t i = 0; i < pieces; i++) {
		while (i - atomic_load_explicit(&row->taken, memory_order_acquire) >= PIECES)
			;
		memcpy(row->ring[i % PIECES], row->large[0] + i * PIECE % sizeof(row->large[0]),
		       PIECE);
		atomic_store_explicit(&row->put, i + 1, memory_order_release);
	}
	while (atomic_load_explicit(&row->taken, memory_order_acquire) != pieces)
		;
	row->transfers_ns = clock_ns() - start;
}

static void ring_target(struct row *row, int fd)
{
	shared_target(row, fd);
	for (uint64_t i = 0; !atomic_load_explicit(&row->over, memory_order_relaxed);) {
		if (atomic_load_explicit(&row->put, memory_order_acquire) == i)
			continue;
		memcpy(row->large[1] + i * PIECE % sizeof(row->large[1]), row->ring[i % PIECES],
		       PIECE);
		atomic_store_explicit(&row->taken, ++i, memory_order_release);
	}
}

static void fetch_initiator(struct row *row, int fd)
{
	(void)fd;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	atomic_store_explicit(&row->initiator, getpid(), memory_order_release);
	ping(row);
	uint64_t start = clock_ns();
	for (uint32_t i = 0; i < TRANSFERS && !row->failed; i++) {
		while (i - atomic_load_explicit(&row->taken, memory_order_acquire) >= WINDOW)
			;
		atomic_store_explicit(&row->put, i + 1, memory_order_release);
	}
	while (atomic_load_explicit(&row->taken, memory_order_acquire) != TRANSFERS)
		;
	row->transfers_ns = clock_ns() - start;
}

/* What it may not read counts as fetched: the row has failed. */
static void fetch_target(struct row *row, int fd)
{
	shared_target(row, fd);
	for (uint64_t i = 0; !atomic_load_explicit(&row->over, memory_order_relaxed);) {
		size_t at = i % WINDOW * LARGE;
		struct iovec to = {row->large[1] + at, LARGE}, from = {row->large[0] + at, LARGE};
		if (atomic_load_explicit(&row->put, memory_order_acquire) == i)
			continue;
		if (process_vm_readv(row->initiator, &to, 1, &from, 1, 0) != LARGE)
			row->failed = errno ? errno : EIO;
		atomic_store_explicit(&row->taken, ++i, memory_order_release);
	}
}

/* Both ends of a row over UDP poll, as programs that want to be fast do. */
static ssize_t poll_recv(struct row *row, int fd, void *buf, size_t len)
{
	ssize_t got;
	do {
		got = recv(fd, buf, len, MSG_DONTWAIT);
	} while (got < 0 && errno == EAGAIN &&
		 !atomic_load_explicit(&row->over, memory_order_relaxed));
	return got;
}

static void udp_initiator(struct row *row, int fd)
{
	uint8_t buf[DATAGRAM] = {0};
	for (uint32_t i = 1; i <= ROUNDS + WARM; i++) {
		uint64_t start = clock_ns();
		if (send(fd, buf, SMALL, 0) < 0 || poll_recv(row, fd, buf, sizeof(buf)) < 0)
			return;
		row->ns[i % ROUNDS] = clock_ns() - start;
	}
	uint64_t start = clock_ns();
	for (uint32_t i = 0; i < TRANSFERS / 8; i++) {
		for (uint32_t n = 0; n < LARGE / DATAGRAM; n++)
			if (send(fd, row->large[0] + n * DATAGRAM, DATAGRAM, 0) < 0)
				return;
		if (poll_recv(row, fd, buf, sizeof(buf)) < 0)
			return;
	}
	row->transfers_ns = (clock_ns() - start) * 8;
}

static void udp_target(struct row *row, int fd)
{
	uint8_t buf[DATAGRAM];
	uint32_t whole = 0;
	ssize_t got;
	while ((got = poll_recv(row, fd, buf, sizeof(buf))) >= 0) {
		bool answer = got == SMALL || ++whole % (LARGE / DATAGRAM) == 0;
		if (answer && send(fd, buf, SMALL, 0) < 0)
			return;
	}
}

/* Two UDP sockets of the loopback, connected with each other. */
static int udp_pair(int fd[2])
{
	struct sockaddr_in at[2];
	socklen_t len = sizeof(at[0]);
	for (unsigned i = 0; i < 2; i++) {
		at[i] = (struct sockaddr_in){.sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		fd[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd[i] < 0 || bind(fd[i], (struct sockaddr *)&at[i], len) ||
		    getsockname(fd[i], (struct sockaddr *)&at[i], &len))
			return -errno;
	}
	for (unsigned i = 0; i < 2; i++)
		if (connect(fd[i], (struct sockaddr *)&at[!i], len))
			return -errno;
	return 0;
}

/* --- the soft RNIC --- */

struct end {
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
};

/* What the ends tell each other. */
struct hello {
	uint32_t qpn, rkey;
	uint64_t at;
	union ibv_gid gid;
};

static int make_end(struct end *e, void *memory, size_t len, struct hello *hello)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *pd = NULL;
	e->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!e->context)
		return ENODEV;
	pd = ibv_alloc_pd(e->context);
	e->cq = ibv_create_cq(e->context, 2 * WINDOW, NULL, NULL, 0);
	e->mr = pd ? ibv_reg_mr(pd, memory, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		   : NULL;
	struct ibv_qp_init_attr init = {.send_cq = e->cq,
					.recv_cq = e->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = WINDOW,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	e->qp = e->mr && e->cq ? ibv_create_qp(pd, &init) : NULL;
	if (!e->qp || ibv_query_gid(e->context, 1, 0, &hello->gid))
		return errno ? errno : EIO;
	hello->qpn = e->qp->qp_num;
	hello->rkey = e->mr->rkey;
	hello->at = (uintptr_t)memory;
	return 0;
}

static int join_end(struct end *e, const struct hello *peer)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	int error = ibv_modify_qp(
		e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_4096,
				 .dest_qp_num = peer->qpn,
				 .max_dest_rd_atomic = 1,
				 .min_rnr_timer = 12,
				 .ah_attr = {.is_global = 1,
					     .port_num = 1,
					     .grh = {.dgid = peer->gid, .hop_limit = 1}}};
	if (!error)
		error = ibv_modify_qp(e->qp, &a,
				      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 1};
	if (!error)
		error = ibv_modify_qp(e->qp, &a,
				      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					      IBV_QP_MAX_QP_RD_ATOMIC);
	return error;
}

static int meet(struct end *e, int fd, void *memory, size_t len, struct hello *peer)
{
	struct hello own = {0};
	int error = make_end(e, memory, len, &own);
	if (!error && (write(fd, &own, sizeof(own)) != sizeof(own) ||
		       read(fd, peer, sizeof(*peer)) != sizeof(*peer)))
		error = EPIPE;
	if (!error)
		error = join_end(e, peer);
	/* Nothing is sent before the peer is ready. */
	if (!error && (write(fd, "", 1) != 1 || read(fd, &(char){0}, 1) != 1))
		error = EPIPE;
	return error;
}

static int post(struct end *e, const struct hello *peer, const uint8_t *from, size_t at,
		uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = len, .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = peer->at + at, .rkey = peer->rkey}},
			   *bad;
	return ibv_post_send(e->qp, &wr, &bad);
}

static int complete(struct end *e)
{
	struct ibv_wc wc;
	int n;
	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		;
	return n < 0 || wc.status != IBV_WC_SUCCESS ? EIO : 0;
}

static void write_initiator(struct row *row, int fd)
{
	struct hello peer;
	struct end e;
	uint32_t posted = 0, done = 0;
	row->failed = meet(&e, fd, row->large[0], sizeof(row->large[0]), &peer);
	for (uint32_t i = 1; i <= ROUNDS + WARM && !row->failed; i++) {
		uint64_t start = clock_ns();
		row->failed = post(&e, &peer, row->large[0], 0, SMALL);
		if (!row->failed)
			row->failed = complete(&e);
		row->ns[i % ROUNDS] = clock_ns() - start;
	}
	uint64_t start = clock_ns();
	while (done < TRANSFERS && !row->failed) {
		while (posted < TRANSFERS && posted - done < WINDOW && !row->failed) {
			size_t at = (size_t)(posted++ % WINDOW) * LARGE;
			row->failed = post(&e, &peer, row->large[0] + at, at, LARGE);
		}
		if (!row->failed)
			row->failed = complete(&e);
		done++;
	}
	row->transfers_ns = clock_ns() - start;
}

static void write_target(struct row *row, int fd, enum target how)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};
	struct hello peer;
	struct ibv_wc wc;
	struct end e;
	if (meet(&e, fd, row->large[1], sizeof(row->large[1]), &peer))
		return;
	if (how == SLEEPS)
		poll(&end, 1, -1);
	while (how == POLLS && !atomic_load_explicit(&row->over, memory_order_relaxed))
		ibv_poll_cq(e.cq, 1, &wc);
}

static void polling_target(struct row *row, int fd)
{
	write_target(row, fd, POLLS);
}

static void sleeping_target(struct row *row, int fd)
{
	write_target(row, fd, SLEEPS);
}

/* --- the table --- */

typedef void process(struct row *row, int fd);

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static pid_t start(process *fn, struct row *row, int fd, int other)
{
	pid_t pid;
	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PATIENCE_S);
	close(other);
	fn(row, fd);
	exit(0);
}

struct figures {
	double median_us, p99_us, gb_per_s;
};

/* Run the two processes, the target until the initiator is done. */
static int measure(struct row *row, process *initiator, process *target, int fd[2],
		   struct figures *out)
{
	int status = 0;
	memset(row, 0, sizeof(*row));
	memset(row->large, 1,
	       sizeof(row->large)); /* no page is touched for the first time while it counts */
	pid_t a = start(initiator, row, fd[0], fd[1]), b = start(target, row, fd[1], fd[0]);
	close(fd[0]);
	close(fd[1]);
	if (a < 0 || b < 0)
		return errno;
	waitpid(a, &status, 0);
	row->over = 1;
	waitpid(b, NULL, 0);
	if (row->failed || status || !row->transfers_ns)
		return row->failed ? row->failed : ETIMEDOUT;
	qsort(row->ns, ROUNDS, sizeof(*row->ns), compare);
	out->median_us = (double)row->ns[ROUNDS / 2] * 1e-3;
	out->p99_us = (double)row->ns[ROUNDS * 99 / 100] * 1e-3;
	out->gb_per_s = (double)TRANSFERS * LARGE / (double)row->transfers_ns;
	return 0;
}

static void show(const char *what, const struct figures *f, const struct figures *base)
{
	printf("%-40s %9.2f %9.2f %7.1fx %9.2f %6.0f %%\n", what, f->median_us, f->p99_us,
	       f->median_us / base->median_us, f->gb_per_s, 100 * f->gb_per_s / base->gb_per_s);
	fflush(stdout);
}

/* "64  20k  ...  usec/xfer  Mxfers/sec" of the row for `bytes`. */
static double fi_row(unsigned bytes, unsigned rounds)
{
	char command[400], line[200];
	double us = 0, mb;
	snprintf(command, sizeof(command),
		 "fi_pingpong -p shm -e rdm -I %u -S %u -B 47591 >/dev/null 2>&1 & server=$!; "
		 "sleep 0.3; "
		 "timeout %d fi_pingpong -p shm -e rdm -I %u -S %u -P 47591 127.0.0.1 2>/dev/null; "
		 "kill $server 2>/dev/null",
		 rounds, bytes, PATIENCE_S, rounds, bytes);
	FILE *in = popen(command, "r");
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "%*s %*s %*s %*s %*s %lf %lf", &mb, &us) != 2)
			us = us > 0 ? us : 0;
	if (in)
		pclose(in);
	return us;
}

/* libfabric says the time of one way. */
static void show_libfabric(const struct figures *base)
{
	double small, large;
	if (access("/usr/bin/fi_pingpong", X_OK))
		return;
	small = fi_row(SMALL, ROUNDS);
	large = fi_row(LARGE, TRANSFERS);
	if (small <= 0 || large <= 0) {
		printf("%-40s it did not run\n", "fi_pingpong -p shm");
		return;
	}
	struct figures f = {.median_us = 2 * small, .gb_per_s = LARGE / large * 1e-3};
	printf("%-40s %9.2f %9s %7.1fx %9.2f %6.0f %%\n", "fi_pingpong -p shm (means)", f.median_us,
	       "-", f.median_us / base->median_us, f.gb_per_s, 100 * f.gb_per_s / base->gb_per_s);
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "bench_nic: %s: %s\n", what, strerror(error));
	return EXIT_INTERNAL;
}

int main(void)
{
	static const struct {
		const char *what, *link;
		process *target;
	} rows[] = {
		{"soft RNIC, shm, WRITE, target polls", "shm", polling_target},
		{"soft RNIC, shm, WRITE, target sleeps", "shm", sleeping_target},
		{"soft RNIC, udp, WRITE, target polls", "udp", polling_target},
		{"soft RNIC, udp, WRITE, target sleeps", "udp", sleeping_target},
	};
	struct figures base = {0}, f = {0};
	int fd[2], error, status = 0;
	struct row *row = mmap(NULL, sizeof(*row), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (row == MAP_FAILED)
		return fail("mmap", errno);
	printf("%-40s %9s %9s %8s %9s %8s\n", "there and back, 64 bytes; 64 KiB one way",
	       "median us", "p99 us", "", "GB/s", "");
	error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd);
	if (!error)
		error = measure(row, shared_initiator, shared_target, fd, &base);
	if (error)
		return fail("shared memory", error);
	show("shared memory, both poll; memcpy", &base, &base);
	error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd);
	if (!error && !measure(row, ring_initiator, ring_target, fd, &f))
		show("the same; memcpy in and out", &f, &base);
	error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd);
	if (!error)
		error = measure(row, fetch_initiator, fetch_target, fd, &f);
	if (error)
		printf("%-40s %s\n", "the same; one copy", strerror(error));
	else
		show("the same; one copy", &f, &base);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		setenv("TIDEMARK_LINK", rows[i].link, 1);
		error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd);
		if (!error)
			error = measure(row, write_initiator, rows[i].target, fd, &f);
		if (error) {
			printf("%-40s %s\n", rows[i].what, strerror(error));
			status = EXIT_INTERNAL;
		} else {
			show(rows[i].what, &f, &base);
		}
	}
	if (!udp_pair(fd) && !measure(row, udp_initiator, udp_target, fd, &f))
		show("UDP loopback, both poll", &f, &base);
	show_libfabric(&base);
	munmap(row, sizeof(*row));
	return status;
}
