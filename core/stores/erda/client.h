/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_ERDA_CLIENT_H
#define TM_STORES_ERDA_CLIENT_H
/*
 * A client's state, which its two tasks share: the one that calls the operations
 * (client.c), and one that takes the server's notices (notices.c).
 */
#include "core/stores/erda/layout.h"
#include "core/stores/erda/wire.h"

/* What a client knows of a log. */
struct known_log {
	unsigned region; /* the current one */
	bool cleaning;	 /* SEND what concerns it */
};

struct client {
	struct erda_geo geo;
	struct rpc_conn conn;
	struct rpc_conn notices;
	uint32_t number;
	struct known_log log[ERDA_MAX_HEADS];
	bool busy;	    /* an operation is on, which may hold an address */
	bool acknowledging; /* the task for notices uses `conn` */
	uint32_t begun,
		acked;	/* numbers of BEGIN notices: the last one, the last one acknowledged */
	uint64_t moves; /* displacement counter when last read; 0 at the server's boot */
	size_t guess;	/* bytes: last known object size */
	uint8_t *object, *msg; /* of a PUT: the object, or the request with the value */
};

/* Connect for notices, learn the state of the logs, start the task. In an operation (busy). */
int notices_open(struct client *c, const struct tm_env *env);
/* An operation begins; sleeps between two attempts; ends. In the latter two it holds no address. */
void notices_busy(struct client *c);
int notices_pause(struct client *c, uint64_t ns);
void notices_idle(struct client *c);

#endif
