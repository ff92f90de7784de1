/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_SERVER_H
#define TM_SCENARIOS_SERVER_H
/*
 * A live server: a store on this machine's RDMA device and PM. session.h is its clients' side.
 *
 * What a pool holds is in its header, durable before the pool changes: with boot number 0 while it
 * is being formatted, then with the number of this start and the state "running" before recovery
 * begins, and "stopped" when all of the pool has been written back at the end.
 */
#include "core/live/live_pm.h"
#include "scenarios/pool_plan.h"

struct ibv_context;
struct rendezvous_server;
struct live_host;

struct server {
	/* set before: */
	struct live_pm_setup pm_setup; /* .path, .shadow, .cache, .lost */
	const char *listen;	       /* ADDRESS:PORT */
	const char *members; /* of several servers: of the service; which one this is, from 1 */
	unsigned number;
	struct ibv_context *verbs;
	struct live_store store;
	bool fresh;						  /* the pool has no store yet */
	void (*defect)(const struct server *s, const char *what); /* of the store's own check */
	/* what became of it */
	struct live_pm *pm;
	struct live_host *host;
	struct rendezvous_server *control;
	struct tm_env env;
	struct tm_fsck fsck;
	unsigned defects;
	char why[POOL_WHY]; /* an error's message */
};

/*
 * Each 0 or -errno with s->why: -EINVAL: what was asked for does not go; -EBADMSG: the pool does
 * not recover, or has defects (with an empty s->why: they have been reported). server_close() in
 * any case.
 */
int server_open_pool(struct server *s);
int server_start(struct server *s); /* asks the service; format or recover, then serve */
int server_listen(struct server *s);
/* In order: clients can no longer write to the pool; then all of it is written back. */
int server_stop(struct server *s);
void server_close(struct server *s);

#endif
