/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_death KILLS [KIND]: what a process of the soft RNIC finds when its peer ends, dies or stops,
 * run by tests/core/provider/test_nic_death.sh under `tidemark run`.
 *
 * Each round is a controller, which has no RNIC, and two processes with a queue pair each that
 * WRITE, READ and SEND to each other as fast as they can: the survivor, which looks at its
 * completions, and the victim.
 *
 *   kill    SIGKILL of the victim at a random moment: the survivor's oldest request ends with
 *           RETRY_EXC_ERR, not before timeout x (retry_cnt + 1) nor before a second, the others
 *           with WR_FLUSH_ERR.
 *   stop    SIGSTOP, and SIGCONT after that: both end so. SIGCONT before it: nothing has happened.
 *   leave   the victim exits as soon as it has received a message: the survivor's SEND succeeds.
 *   signal  a signal's handler exits, whatever it interrupts: like kill, and the victim does end.
 *   fork    a child uses what it has of its parent's objects, and ends: its parent
 *           is not disturbed.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"

#define BYTES	 65536u
#define DEPTH	 16u
#define HANG_S	 60 /* so long no round takes */
#define NS_PER_S 1000000000ull

enum how { KILL, STOP_LONG, STOP_SHORT, LEAVE, SIGNAL, FORK, HOWS };
static const char *const names[HOWS] = {"kill",	 "long stop", "short stop",
					"leave", "signal",    "fork"};

/* 4096 ns << timeout, retry_cnt + 1 times. */
struct patience {
	uint8_t timeout, retry_cnt, rnr_retry;
};

/* What the processes of a round share with their controller. */
struct round {
	_Atomic unsigned finished; /* processes that have finished sending */
	volatile bool over;	   /* end in order */
	volatile bool lost;	   /* the survivor has seen its error */
	volatile uint64_t last_ns; /* the survivor's last success */
	volatile uint64_t done;	   /* of its requests */
};

static uint64_t random_state;
static struct round *shared;

static _Noreturn void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "nic_death[%d]: ", getpid());
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

/* splitmix64 */
static uint64_t any(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

/* --- a process with a queue pair --- */

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq_ex *cqx;
	struct ibv_cq *cq; /* the same */
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *memory; /* half for what the peer does, half for its own */
	unsigned sends, receives;
	uint64_t failed_ns; /* when the first request failed */
};

struct hello {
	uint32_t qpn, rkey, psn;
	uint64_t at;
	union ibv_gid gid;
};

static void open_end(struct end *e, struct hello *own)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_cq_init_attr_ex queue = {.cqe = 2 * DEPTH,
					    .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};

	e->memory = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	e->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	e->pd = e->context ? ibv_alloc_pd(e->context) : NULL;
	e->cqx = e->pd ? ibv_create_cq_ex(e->context, &queue) : NULL;
	e->cq = e->cqx ? ibv_cq_ex_to_cq(e->cqx) : NULL;
	e->mr = e->pd ? ibv_reg_mr(e->pd, e->memory, 2 * BYTES,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ)
		      : NULL;
	init.send_cq = init.recv_cq = e->cq;
	e->qp = e->mr ? ibv_create_qp(e->pd, &init) : NULL;
	if (!e->qp || ibv_query_gid(e->context, 1, 0, &own->gid))
		die("no queue pair: %s", strerror(errno));
	own->qpn = e->qp->qp_num;
	own->rkey = e->mr->rkey;
	own->psn = (uint32_t)any(1 << 24);
	own->at = (uintptr_t)e->memory;
}

static void join_end(struct end *e, const struct hello *own, const struct hello *peer,
		     struct patience p)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer->qpn,
				  .rq_psn = peer->psn,
				  .max_dest_rd_atomic = 4,
				  .min_rnr_timer = 1,
				  .ah_attr = {.is_global = 1,
					      .port_num = 1,
					      .grh = {.dgid = peer->gid, .hop_limit = 1}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = p.timeout,
				  .retry_cnt = p.retry_cnt,
				  .rnr_retry = p.rnr_retry,
				  .sq_psn = own->psn,
				  .max_rd_atomic = 4};

	if (ibv_modify_qp(e->qp, &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(e->qp, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) ||
	    ibv_modify_qp(e->qp, &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("the queue pair is not connected");
}

static void post_recv(struct end *e)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->memory, .length = BYTES, .lkey = e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(e->qp, &wr, &bad))
		die("no receive");
	e->receives++;
}

static int post_send(struct end *e, const struct hello *peer, enum ibv_wr_opcode opcode,
		     uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->memory + BYTES, .length = len, .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .wr.rdma = {.remote_addr = peer->at, .rkey = peer->rkey}},
			   *bad;
	int error = ibv_post_send(e->qp, &wr, &bad);

	e->sends += !error;
	return error;
}

static void post_any(struct end *e, const struct hello *peer)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_SEND};
	uint32_t len = any(4) ? (uint32_t)any(256) : (uint32_t)any(BYTES);

	/* Into the peer's half that is for this; a READ's answer goes to the own half. */
	if (post_send(e, peer, opcodes[any(3)], len))
		die("post_send refused");
}

/* Go on when the peer is here, too. */
static void part(int fd)
{
	char byte = 0;

	if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
		die("the peer is not there");
}

static void meet(struct end *e, int fd, struct hello *peer, struct patience p)
{
	struct hello own = {0};

	open_end(e, &own);
	if (write(fd, &own, sizeof(own)) != sizeof(own) ||
	    read(fd, peer, sizeof(*peer)) != sizeof(*peer))
		die("the peer is not there");
	join_end(e, &own, peer, p);
	/* Where it counts how often a receiver is not ready, it is not, mostly. */
	for (unsigned i = 0; i < (p.rnr_retry < 7 ? 1 : DEPTH); i++)
		post_recv(e);
	part(fd);
}

/* As ibv_poll_cq() for one. *at_ns: when it was completed, however late this process looks. */
static int poll_one(struct end *e, struct ibv_wc *wc, uint64_t *at_ns)
{
	struct ibv_poll_cq_attr attr = {0};
	int error = ibv_start_poll(e->cqx, &attr);

	if (error)
		return error == ENOENT ? 0 : -error;
	wc->wr_id = e->cqx->wr_id;
	wc->status = e->cqx->status;
	*at_ns = ibv_wc_read_completion_ts(e->cqx);
	ibv_end_poll(e->cqx);
	return 1;
}

/* Traffic until it is over for both, 0, or the first request that fails: its status. */
static enum ibv_wc_status talk(struct end *e, const struct hello *peer, bool counts)
{
	bool finished = false;
	uint64_t at_ns = 0;
	struct ibv_wc wc = {0};
	int n;

	for (;;) {
		while (e->sends < DEPTH && !shared->over)
			post_any(e, peer);
		if (shared->over && !e->sends && !finished) {
			finished = true;
			atomic_fetch_add(&shared->finished, 1);
		}
		if (atomic_load(&shared->finished) == 2)
			return IBV_WC_SUCCESS;
		n = poll_one(e, &wc, &at_ns);
		if (n < 0)
			die("ibv_start_poll: %d", n);
		if (!n)
			continue;
		if (wc.wr_id)
			e->receives--;
		else
			e->sends--;
		if (wc.status != IBV_WC_SUCCESS) {
			e->failed_ns = at_ns;
			return wc.status;
		}
		if (wc.wr_id)
			post_recv(e);
		if (counts) {
			shared->last_ns = at_ns;
			shared->done++;
		}
	}
}

/* The rest of the requests, after an error. */
static void flush(struct end *e)
{
	struct ibv_wc wc;
	int n;

	while (e->sends + e->receives) {
		n = ibv_poll_cq(e->cq, 1, &wc);
		if (n < 0 || (n && wc.status != IBV_WC_WR_FLUSH_ERR))
			die("behind an error: %s",
			    n < 0 ? "ibv_poll_cq fails" : ibv_wc_status_str(wc.status));
		if (n && wc.wr_id)
			e->receives--;
		else if (n)
			e->sends--;
	}
}

static void close_end(struct end *e)
{
	if (ibv_destroy_qp(e->qp) || ibv_dereg_mr(e->mr) || ibv_destroy_cq(e->cq) ||
	    ibv_dealloc_pd(e->pd) || ibv_close_device(e->context))
		die("what is given back is refused");
}

/* --- the two sides of a round --- */

static void expect_loss(struct end *e, enum ibv_wc_status status, struct patience p)
{
	/* A peer may be silent for a second, whatever the timeout. */
	uint64_t patience = ((uint64_t)4096 << p.timeout) * (p.retry_cnt + 1u);
	/* The last success may be a receive, a little after a request was sent. */
	uint64_t least = (patience > NS_PER_S ? patience : NS_PER_S) / 4 * 3;

	if (status != IBV_WC_RETRY_EXC_ERR)
		die("the peer is gone: %s, not RETRY_EXC_ERR", ibv_wc_status_str(status));
	if (shared->done && e->failed_ns - shared->last_ns < least)
		die("RETRY_EXC_ERR after %.1f ms, before %.1f ms",
		    (double)(e->failed_ns - shared->last_ns) * 1e-6, (double)least * 1e-6);
	shared->lost = true;
	flush(e);
}

static void survivor(int fd, enum how how, struct patience p)
{
	enum ibv_wc_status status;
	struct hello peer;
	struct end e = {0};
	struct ibv_wc wc;
	int n;

	meet(&e, fd, &peer, p);
	if (how == LEAVE) {
		if (post_send(&e, &peer, IBV_WR_SEND, (uint32_t)any(BYTES)))
			die("post_send refused");
		while (!(n = ibv_poll_cq(e.cq, 1, &wc)))
			;
		if (n < 0 || wc.status != IBV_WC_SUCCESS)
			die("the peer has received it: %s", ibv_wc_status_str(wc.status));
		return;
	}
	status = talk(&e, &peer, true);
	if (how == STOP_SHORT || how == FORK) {
		if (status != IBV_WC_SUCCESS)
			die("the peer lives: %s", ibv_wc_status_str(status));
		close_end(&e);
		return;
	}
	expect_loss(&e, status, p);
	close_end(&e);
}

static void leave(int sig)
{
	(void)sig;
	exit(0);
}

/* Whatever a child does with its parent's objects, the parent is not disturbed. */
static void child_of(struct end *e, const struct hello *peer)
{
	struct ibv_wc wc;
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(HANG_S / 2);
		for (unsigned i = 0; i < 100; i++)
			ibv_poll_cq(e->cq, 1, &wc);
		post_send(e, peer, IBV_WR_RDMA_WRITE, 64);
		ibv_destroy_qp(e->qp);
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("the child ended with %#x", status);
}

static void victim(int fd, enum how how, struct patience p)
{
	enum ibv_wc_status status;
	struct hello peer;
	struct end e = {0};
	struct ibv_wc wc;
	int n;

	meet(&e, fd, &peer, p);
	if (how == LEAVE) {
		while (!(n = ibv_poll_cq(e.cq, 1, &wc)))
			;
		if (n < 0 || wc.status != IBV_WC_SUCCESS)
			die("receive: %s", ibv_wc_status_str(wc.status));
		exit(0);
	}
	if (how == SIGNAL) {
		struct itimerval timer = {.it_value.tv_usec = 1 + (suseconds_t)any(3000)};

		signal(SIGALRM, leave);
		setitimer(ITIMER_REAL, &timer, NULL);
	}
	if (how == FORK)
		child_of(&e, &peer);
	status = talk(&e, &peer, false);
	/* The survivor may have waited for a CPU for so long. */
	while ((how == KILL || how == SIGNAL) && status == IBV_WC_RETRY_EXC_ERR)
		pause();
	if (how == STOP_LONG)
		expect_loss(&e, status, p);
	else if (status != IBV_WC_SUCCESS)
		die("the survivor lives: %s", ibv_wc_status_str(status));
	close_end(&e);
}

/* --- the controller --- */

static pid_t start(void (*side)(int, enum how, struct patience), int fd, int other, enum how how,
		   struct patience p)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(other);
	random_state ^= (uint64_t)(uintptr_t)side * (uint64_t)getpid();
	side(fd, how, p);
	exit(0);
}

static void sleep_us(uint64_t us)
{
	struct timespec t = {.tv_sec = (time_t)(us / 1000000),
			     .tv_nsec = (long)(us % 1000000) * 1000};

	nanosleep(&t, NULL);
}

/* A process that does not end may only wait for the other one of its round. */
static int end_of(pid_t pid, const char *who, pid_t other, enum how how)
{
	uint64_t start_ns = clock_ns();
	int status;
	pid_t got;

	while (!(got = waitpid(pid, &status, WNOHANG))) {
		if (clock_ns() - start_ns > HANG_S * NS_PER_S) {
			bool other_lives = !waitpid(other, NULL, WNOHANG);

			kill(pid, SIGABRT);
			waitpid(pid, NULL, 0);
			die("%s: the %s hangs, and its peer %s", names[how], who,
			    other_lives ? "has not ended" : "has ended");
		}
		sleep_us(200);
	}
	return status;
}

/* Let traffic begin, then a random moment more. */
static void let_talk(pid_t survivor_pid, uint64_t most_us)
{
	for (unsigned i = 0; i < HANG_S * 1000 && !shared->done && !kill(survivor_pid, 0); i++)
		sleep_us(1000);
	sleep_us(any(most_us));
}

static void play(enum how how)
{
	struct patience p = {.timeout = 12, .retry_cnt = 3, .rnr_retry = 7}; /* 67 ms */
	int fd[2], status;

	if (how == STOP_SHORT || how == FORK || how == LEAVE)
		p = (struct patience){.timeout = 16, .retry_cnt = 7, .rnr_retry = 7}; /* 2 s */
	memset((void *)shared, 0, sizeof(*shared));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		die("socketpair: %s", strerror(errno));
	fflush(NULL);
	pid_t a = start(survivor, fd[0], fd[1], how, p), b = start(victim, fd[1], fd[0], how, p);
	close(fd[0]);
	close(fd[1]);
	if (how == KILL) {
		if (any(4)) /* else while they connect */
			let_talk(a, 2000);
		else
			sleep_us(any(3000));
		kill(b, SIGKILL);
	} else if (how == STOP_LONG || how == STOP_SHORT) {
		let_talk(a, 2000);
		kill(b, SIGSTOP);
		sleep_us(how == STOP_LONG ? 500000 : 20000);
		/* It may have waited for a CPU. */
		for (unsigned i = 0; how == STOP_LONG && !shared->lost && i < HANG_S * 1000; i++)
			sleep_us(1000);
		kill(b, SIGCONT);
	}
	if (how == STOP_SHORT || how == FORK) {
		let_talk(a, 5000);
		shared->over = true;
	}
	status = end_of(a, "survivor", b, how);
	/* Killed before it had connected, the victim takes the survivor's meeting with it. */
	if (status && !(how == KILL && !shared->done && WIFEXITED(status)))
		die("%s: the survivor ended with %#x", names[how], status);
	status = end_of(b, "victim", a, how);
	if (how == KILL ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL : status)
		die("%s: the victim ended with %#x", names[how], status);
}

int main(int argc, char **argv)
{
	static const unsigned percent[HOWS] = {100, 10, 20, 100, 50, 20};
	unsigned kills = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 30, rounds;
	const char *seed = getenv("NIC_DEATH_SEED");

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	signal(SIGPIPE, SIG_IGN);
	random_state = seed ? strtoull(seed, NULL, 10) : clock_ns();
	for (enum how how = 0; how < HOWS; how++) {
		if (argc > 2 && strcmp(argv[2], names[how]) != 0)
			continue;
		rounds = (kills * percent[how] + 99) / 100;
		for (unsigned i = 0; i < rounds; i++)
			play(how);
		printf("%s: %u rounds\n", names[how], rounds);
		fflush(stdout);
	}
}
