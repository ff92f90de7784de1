/* SPDX-License-Identifier: BSD-3-Clause */
/* The NIC of a process: its thread, its lock, its fabric, and how it begins and ends. See nic.h. */
#include "core/own_thread.h"
#include "core/provider/nic.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core/provider/base/config.h"
#include "core/provider/base/engine.h"
#include "core/provider/base/mixed_keys.h"
#include "core/provider/link/gids.h"
#include "core/provider/link/link_shm.h"
#include "core/provider/link/link_tap.h"
#include "core/provider/link/link_udp.h"
#include "core/provider/base/lock.h"
#include "core/rnic/count.h"
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/qp.h"

#define NIC_CONTEXTS	 1024	/* open at a time */
#define NAP_NS		 200000 /* of the NIC's thread while the program polls */
#define STEADY_POLLS	 64	/* in a nap, of a program that does nothing else */
#define LEFT_ALONE_NS	 5000
#define LEFT_ALONE_TIMES 4 /* in a row */
#define AWAKE_LEAST_NS	 1000000
#define AWAKE_MOST_NS	 100000000
#define BATCH		 32	  /* packets taken in one go */
#define TIMERS_EVERY	 64	  /* batches in a row, where packets never end */
#define DRAIN_NS	 50000000 /* at the end */
#define LINGER_STEP_NS	 2000000
/* At the end, on a link that loses packets: until no peer has asked for this long. */
#define LINGER_QUIET_NS 200000000
#define LINGER_MOST_NS	1000000000 /* but no longer than this */
#define LOCK_MS		200	   /* at the end, and at a fork */

/*
 * Which thread drives the NIC. The NIC's thread sleeps until a packet arrives. While the program
 * polls, it naps instead, and looks now and then whether the program still polls. But a program may
 * also poll a queue only once in a while, and otherwise look at the memory that its peer writes to.
 * When the NIC's thread finds after a nap that such a program has left packets waiting, it does not
 * nap for a while, and for longer each time.
 */
struct whole {
	struct nic nic;
	pthread_mutex_t mutex;
	bool locked;		      /* written by the thread that has the mutex */
	_Atomic uint32_t handed_over; /* futex */
	_Atomic uint32_t polls;	      /* wraps */
	unsigned left_alone;	      /* naps in a row after which packets were waiting */
	bool found_last;	      /* the last poll had found completions */
	uint64_t polled_at;	      /* ns: the last one */
	uint64_t awake_until,
		awake_for; /* ns: when the thread may nap again; how long it may not */
	pid_t pid;
	unsigned full_batches;
	uint64_t sleeps_until; /* ns: when the sleeping thread wakes; 0: it does not sleep */
};

static _Atomic(struct whole *) whole;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static const struct nic_management *management;

void nic_register_management(const struct nic_management *registered)
{
	management = registered;
}

static struct whole *to_whole(struct nic *nic)
{
	return (struct whole *)nic;
}

void nic_lock(struct nic *nic)
{
	struct whole *w = to_whole(nic);

	pthread_mutex_lock(&w->mutex);
	assert(!w->locked);
	w->locked = true;
	engine_tick(nic->engine);
}

void nic_unlock(struct nic *nic)
{
	struct whole *w = to_whole(nic);
	struct nic_link *link = nic->link; /* at the end it is another one */
	/* Something is due before the thread would wake. */
	bool wake = w->sleeps_until && engine_next(nic->engine) < w->sleeps_until;

	assert(w->locked);
	if (wake)
		w->sleeps_until = 0;
	w->locked = false;
	pthread_mutex_unlock(&w->mutex);
	if (wake)
		link->wake(link);
}

void nic_run(struct nic *nic)
{
	engine_run_soon(nic->engine);
}

/* Timers run last: packets that arrived while the process was stopped, or waited for a CPU, were
 * in time. */
static bool progress(struct nic *nic, const struct rnic_cq *cq, uint32_t entries)
{
	struct packet *pkt = NULL;
	bool enough = false;

	assert(to_whole(nic)->locked);
	bool did = engine_run_soon(nic->engine);
	for (unsigned n = 0; n < BATCH && !enough && (pkt = nic->link->take(nic->link, nic->net));
	     n++) {
		rnic_take(nic->net, qp_find(nic->net, pkt->dest_qpn), pkt);
		engine_run_soon(nic->engine);
		did = true;
		enough = cq && cq->tail - cq->head >= entries;
	}
	if (!pkt || ++to_whole(nic)->full_batches % TIMERS_EVERY == 0)
		did |= engine_run(nic->engine);
	return did;
}

bool nic_progress(struct nic *nic)
{
	return progress(nic, NULL, 0);
}

void nic_poll(struct nic *nic, const struct rnic_cq *cq, uint32_t entries)
{
	struct whole *w = to_whole(nic);

	progress(nic, cq, entries);
	atomic_store_explicit(&w->polls, atomic_load_explicit(&w->polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

void nic_polled(struct nic *nic, bool found)
{
	to_whole(nic)->polled_at = engine_now(nic->engine);
	to_whole(nic)->found_last = found;
}

void nic_hand_over(struct nic *nic)
{
	struct whole *w = to_whole(nic);

	if (!atomic_exchange(&w->handed_over, 1))
		syscall(SYS_futex, &w->handed_over, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Without the lock: nap until the program stops polling, or hands over. */
static void nap(struct whole *w)
{
	const struct timespec most = {.tv_nsec = NAP_NS};
	uint32_t polls;

	do {
		polls = atomic_load_explicit(&w->polls, memory_order_relaxed);
		syscall(SYS_futex, &w->handed_over, FUTEX_WAIT_PRIVATE, 0, &most, NULL, 0);
	} while (!atomic_load(&w->handed_over) &&
		 atomic_load_explicit(&w->polls, memory_order_relaxed) - polls > STEADY_POLLS);
}

/* Locked: the end of a nap. `waiting`: packets had been waiting. */
static void look_back(struct whole *w, bool waiting)
{
	uint64_t now = engine_now(w->nic.engine);

	assert(w->locked);
	/* A program that polls all the time may itself be waiting for a CPU. */
	if (!waiting || !w->found_last || now - w->polled_at < LEFT_ALONE_NS) {
		w->left_alone = 0;
		w->awake_for = 0;
		return;
	}
	if (++w->left_alone < LEFT_ALONE_TIMES)
		return;
	w->left_alone = 0;
	w->awake_for = w->awake_for ? 2 * w->awake_for : AWAKE_LEAST_NS;
	if (w->awake_for > AWAKE_MOST_NS)
		w->awake_for = AWAKE_MOST_NS;
	w->awake_until = now + w->awake_for;
	assert(w->awake_for >= AWAKE_LEAST_NS && w->awake_until > now);
}

/* Locked before and after: sleep until something is to be done. */
static void sleep_until_due(struct whole *w)
{
	struct engine *engine = w->nic.engine;
	struct nic_link *link = w->nic.link; /* at the end it is another one */
	uint64_t next = engine_next(engine);
	/* Computed now: without the lock other threads advance the time, perhaps beyond `next`. */
	uint64_t ns = next == UINT64_MAX ? next : next - engine_now(engine);

	assert(w->locked && !w->sleeps_until); /* one thread sleeps */
	assert(next >= engine_now(engine));    /* what was due has been run */
	w->sleeps_until = next;
	w->locked = false;
	pthread_mutex_unlock(&w->mutex);
	link->sleep(link, ns);
	nic_lock(&w->nic);
	w->sleeps_until = 0;
}

static void *thread_main(void *arg)
{
	struct whole *w = arg;
	uint32_t polls = 0;

	prctl(PR_SET_TIMERSLACK, 1000); /* ns: some alarms are microseconds ahead */
	nic_lock(&w->nic);
	for (;;) {
		bool napped = false, handed_over = atomic_exchange(&w->handed_over, 0);
		uint32_t now = atomic_load_explicit(&w->polls, memory_order_relaxed);

		if (now != polls && !handed_over && engine_now(w->nic.engine) >= w->awake_until) {
			nic_unlock(&w->nic);
			nap(w);
			napped = true;
			nic_lock(&w->nic);
			now = atomic_load_explicit(&w->polls, memory_order_relaxed);
		}
		polls = now;
		bool did = nic_progress(&w->nic);
		if (napped)
			look_back(w, did);
		if (!did) {
			sleep_until_due(w);
			continue;
		}
		/* Let other threads have the lock. */
		nic_unlock(&w->nic);
		nic_lock(&w->nic);
	}
	return NULL;
}

static void yield(void)
{
	nic_unlock(&whole->nic);
	sched_yield();
	nic_lock(&whole->nic);
}

static int start_thread(struct whole *w)
{
	pthread_t thread;

	pthread_mutex_init(&w->mutex, NULL);
	int error = own_thread(&thread, NULL, thread_main, w);
	if (!error)
		pthread_detach(thread);
	return -error;
}

/* --- the end --- */

static bool lock_for_a_while(struct whole *w)
{
	if (!lock_within(&w->mutex, LOCK_MS))
		return false;
	assert(!w->locked);
	w->locked = true;
	engine_tick(w->nic.engine);
	return true;
}

void nic_drain(struct nic *nic)
{
	uint64_t start = engine_now(nic->engine);

	while (engine_now(nic->engine) - start < DRAIN_NS) {
		if (!nic_progress(nic) &&
		    engine_next(nic->engine) > engine_now(nic->engine) + LINK_READY_NS)
			return;
		engine_tick(nic->engine);
	}
}

/* Were packets lost, by this end or on the way? Then the last answer may be lost, too. */
static bool was_lossy(const struct nic *nic)
{
	static const enum rnic_count signs[] = {COUNT_fault_lost, COUNT_fault_corrupted,
						COUNT_link_full, COUNT_bad_icrc, COUNT_psn_gap};
	uint64_t n = 0;

	for (unsigned i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		n += nic->net->count[signs[i]];
	return n && nic->net->qps;
}

/* Are there packets that are not acknowledged? */
static bool awaits_answers(const struct nic *nic)
{
	for (uint32_t i = 0; i < nic->net->qps; i++) {
		const struct rnic_qp *qp = nic->net->qp[i];

		if (qp && qp->ibv.state == IBV_QPS_RTS && qp->req.una != qp->req.next_psn)
			return true;
	}
	return false;
}

/* Locked, except for pauses. A peer that did not receive the last answer sends its request
 * again, and is answered. */
static void linger(struct nic *nic)
{
	const struct timespec step = {.tv_nsec = LINGER_STEP_NS};
	uint64_t start = engine_now(nic->engine), heard_at = start, heard = 0;

	while (was_lossy(nic) && engine_now(nic->engine) - start < LINGER_MOST_NS) {
		if (heard != nic->net->count[COUNT_packets_received])
			heard_at = engine_now(nic->engine);
		heard = nic->net->count[COUNT_packets_received];
		if (engine_now(nic->engine) - heard_at >= LINGER_QUIET_NS && !awaits_answers(nic))
			return;
		nic_unlock(nic);
		nanosleep(&step, NULL);
		nic_lock(nic);
		nic_progress(nic);
	}
}

/* The link of a NIC that is closed: later calls of the program do nothing, and do not hang. */
static int no_route(struct link *link, const union ibv_gid *gid)
{
	return -ENETUNREACH;
}

static void no_gid(struct link *link, uint32_t number, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
}

static void lose(struct link *link, unsigned from, struct packet *pkt)
{
	packet_put(pkt->net, pkt);
}

static struct packet *take_nothing(struct nic_link *nic, struct rnic_net *net)
{
	return NULL;
}

static void sleep_for_ever(struct nic_link *nic, uint64_t ns)
{
	pause();
}

static void nothing(struct nic_link *nic)
{
}

static struct nic_link nowhere = {
	.link = {.resolve = no_route, .gid = no_gid, .send = lose},
	.take = take_nothing,
	.sleep = sleep_for_ever,
	.wake = nothing,
	.leave = nothing,
};

static void cut_off(struct whole *w)
{
	nowhere.address = w->nic.link->address;
	nowhere.mtu = w->nic.link->mtu;
	w->nic.link = &nowhere;
	w->nic.net->link = &nowhere.link;
}

/*
 * The process ends, after the program's own exit handlers. What has arrived is answered, so that a
 * peer learns that its message was taken, and answered again if the answer was lost. Unacknowledged
 * requests of this process end with it, as with hardware. If a signal handler that calls exit() has
 * interrupted the thread that holds the lock, there is no last answer.
 */
__attribute__((destructor)) static void at_exit(void)
{
	struct whole *w = whole;

	/* A child of vfork() or clone() shares its parent's memory, and must not close the
	 * parent's NIC. */
	if (!w || w->pid != getpid())
		return;
	bool locked = lock_for_a_while(w);
	struct nic_link *link = w->nic.link;
	if (locked) {
		nic_drain(&w->nic);
		linger(&w->nic);
		cut_off(w);
	}
	link->leave(link);
	if (locked)
		nic_unlock(&w->nic);
}

/* At a fork the lock is held, so that the child's copy of the NIC is consistent. The child then
 * disconnects its copy: the NIC belongs to the parent. */
static bool fork_locked;

static void before_fork(void)
{
	pthread_mutex_lock(&making);
	fork_locked = whole && lock_for_a_while(whole);
}

static void in_parent(void)
{
	if (fork_locked)
		nic_unlock(&whole->nic);
	pthread_mutex_unlock(&making);
}

static void in_child(void)
{
	struct nic_link *link = whole ? whole->nic.link : NULL;

	if (whole)
		cut_off(whole);
	if (link && link->forked)
		link->forked(link);
	management->close();
	whole = NULL;
	pthread_mutex_init(&making, NULL);
}

static int open_link(struct nic_link **out, const struct nic_config *config)
{
	if (config->link == LINK_UDP)
		return link_udp_open(out, config->fabric, config->has_address ? config->address : 0,
				     management->slot);
	return link_shm_open(out, config->fabric);
}

static void tell_no_link(const struct nic_config *config, int rc)
{
	struct in_addr address = {.s_addr = htonl(config->address)};
	char text[INET_ADDRSTRLEN];

	if (rc == -EADDRINUSE)
		fprintf(stderr,
			"tidemark: UDP port 4791 of %s is taken; by rdma_rxe, if it is loaded "
			"here\n",
			inet_ntop(AF_INET, &address, text, sizeof(text)));
	else if (rc == -EADDRNOTAVAIL)
		fprintf(stderr, "tidemark: %s is no address of this host\n",
			inet_ntop(AF_INET, &address, text, sizeof(text)));
	else
		fprintf(stderr, "tidemark: no place in the fabric %s: %s\n", config->fabric,
			strerror(-rc));
}

static int make(struct whole *w)
{
	static bool once;
	struct hardware hw = hardware_default;
	struct nic_link *inner;
	struct nic_config config;
	char line[300];
	int rc;

	rc = nic_config_read(&config, line, sizeof(line));
	if (rc) {
		fprintf(stderr, "tidemark: %s\n", line);
		return rc;
	}
	rc = open_link(&inner, &config);
	if (rc) {
		tell_no_link(&config, rc);
		return rc;
	}
	hw.mtu = inner->mtu;
	hw.ack_early = false;
	w->nic.engine = engine_new();
	if (!w->nic.engine)
		return -ENOMEM;
	engine_tick(w->nic.engine);
	engine_set_yield(w->nic.engine, yield);
	rc = link_tap_open(&w->nic.link, inner, w->nic.engine, &config, line, sizeof(line));
	if (rc) {
		fprintf(stderr, "tidemark: %s\n", line);
		inner->leave(inner);
		return rc;
	}
	w->nic.net = rnic_net_on(engine_ground(w->nic.engine), &hw, &w->nic.link->link,
				 NIC_CONTEXTS, w->nic.link->qpn_first, w->nic.link->qpn_limit);
	w->nic.net->mixed_up = tell_mixed_keys;
	w->nic.net->equal_keys = config.equal_keys;
	w->nic.net->gathers_late = config.gathers_late;
	w->nic.net->lid = config.infiniband ? NIC_LID : 0;
	w->nic.net->lids = CONFIG_DEVICES_MOST;
	w->nic.net->gids = config.infiniband ? 1 : GIDS_FILLED;
	link_tap_net(w->nic.link, w->nic.net);
	w->pid = getpid();
	rc = management->open(&w->nic, config.fabric);
	if (!rc)
		rc = start_thread(w);
	if (rc) {
		fprintf(stderr, "tidemark: no NIC in the fabric %s: %s\n", config.fabric,
			strerror(-rc));
		management->close();
		w->nic.link->leave(w->nic.link);
		return rc;
	}
	if (!once) {
		once = true;
		pthread_atfork(before_fork, in_parent, in_child);
	}
	return 0;
}

struct nic *nic_get(void)
{
	struct whole *w = atomic_load_explicit(&whole, memory_order_acquire);
	int rc = 0;

	if (w)
		return &w->nic;
	pthread_mutex_lock(&making);
	w = whole;
	if (!w) {
		w = calloc(1, sizeof(*w));
		rc = w ? make(w) : -ENOMEM;
		if (rc) {
			free(w);
			w = NULL;
			errno = -rc;
		}
		whole = w;
	}
	pthread_mutex_unlock(&making);
	return w ? &w->nic : NULL;
}
