/* SPDX-License-Identifier: BSD-3-Clause */
/* See nic.h. */
#include "core/nic/nic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/nic/config.h"
#include "core/nic/engine.h"
#include "core/nic/link_shm.h"
#include "core/nic/link_tap.h"
#include "core/nic/link_udp.h"
#include "core/nic/net_dir.h"
#include "core/rnic/link.h"
#include "core/rnic/qp.h"

#define NAP_NS	 200000 /* of the NIC's thread while the program polls */
#define BATCH	 32	/* packets taken in one go */

struct whole {
	struct nic nic;
	pthread_mutex_t mutex;
	pthread_cond_t nap;
	uint64_t sleeps_until; /* the thread; 0: it does not sleep */
	bool polled;	       /* since the thread looked last */
	bool handed_over;
};

static struct whole *whole;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static struct whole *to_whole(struct nic *nic)
{
	return (struct whole *)nic;
}

void nic_lock(struct nic *nic)
{
	pthread_mutex_lock(&to_whole(nic)->mutex);
	engine_tick(nic->engine);
}

void nic_unlock(struct nic *nic)
{
	struct whole *w = to_whole(nic);
	/* Something is due before the thread would look. */
	bool wake = w->sleeps_until && engine_next(nic->engine) < w->sleeps_until;

	if (wake)
		w->sleeps_until = 0;
	pthread_mutex_unlock(&w->mutex);
	if (wake)
		w->nic.link->wake(w->nic.link);
}

void nic_run(struct nic *nic)
{
	engine_run(nic->engine);
}

bool nic_progress(struct nic *nic)
{
	struct packet *pkt;
	bool did = false;

	engine_tick(nic->engine);
	did = engine_run(nic->engine);
	for (unsigned n = 0; n < BATCH && (pkt = nic->link->take(nic->link, nic->net)); n++) {
		rnic_take(nic->net, qp_find(nic->net, pkt->dest_qpn), pkt);
		engine_run(nic->engine);
		did = true;
	}
	return did;
}

void nic_poll(struct nic *nic)
{
	to_whole(nic)->polled = true;
	nic_progress(nic);
}

void nic_hand_over(struct nic *nic)
{
	struct whole *w = to_whole(nic);

	w->handed_over = true;
	pthread_cond_signal(&w->nap);
}

/* The program drives: look again later whether it still does. */
static void rest(struct whole *w)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += NAP_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	w->polled = false;
	pthread_cond_timedwait(&w->nap, &w->mutex, &until);
}

static void *thread_main(void *arg)
{
	struct whole *w = arg;
	struct sim *engine = w->nic.engine;

	pthread_mutex_lock(&w->mutex);
	for (;;) {
		uint64_t next;

		while (w->polled && !w->handed_over)
			rest(w);
		w->handed_over = w->polled = false;
		if (nic_progress(&w->nic)) {
			/* Others may want the lock. */
			pthread_mutex_unlock(&w->mutex);
			pthread_mutex_lock(&w->mutex);
			continue;
		}
		next = engine_next(engine);
		w->sleeps_until = next;
		pthread_mutex_unlock(&w->mutex);
		w->nic.link->sleep(w->nic.link, next == UINT64_MAX ? next : next - sim_now(engine));
		pthread_mutex_lock(&w->mutex);
		w->sleeps_until = 0;
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
	pthread_condattr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int error;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->nap, &attr);
	pthread_mutex_init(&w->mutex, NULL);
	/* Signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	error = pthread_create(&thread, NULL, thread_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!error)
		pthread_detach(thread);
	return -error;
}

/* What is under way is finished by the peers' retries; nobody drives this NIC any more. */
static void at_exit(void)
{
	struct whole *w = whole;

	if (!w)
		return;
	pthread_mutex_lock(&w->mutex); /* for good */
	w->nic.link->leave(w->nic.link);
}

static void in_child(void)
{
	whole = NULL; /* the parent's */
}

static int open_link(struct nic_link **out, const struct nic_config *config)
{
	if (config->link == LINK_UDP)
		return link_udp_open(out, config->net, config->has_address ? config->address : 0);
	return link_shm_open(out, config->net);
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
	rc = net_dir_make(config.net);
	if (!rc)
		rc = open_link(&inner, &config);
	if (rc) {
		fprintf(stderr, "tidemark: no place in the net %s: %s\n", config.net, strerror(-rc));
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
	w->nic.net = rnic_net_on(w->nic.engine, &hw, &w->nic.link->link, w->nic.link->qpn_first,
				 w->nic.link->qpn_limit);
	link_tap_net(w->nic.link, w->nic.net);
	rc = start_thread(w);
	if (!rc && !once) {
		once = true;
		atexit(at_exit);
		pthread_atfork(NULL, NULL, in_child);
	}
	return rc;
}

struct nic *nic_get(void)
{
	struct whole *w;
	int rc = 0;

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
