/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_WORKLOAD_SESSION_H
#define TM_SCENARIOS_WORKLOAD_SESSION_H
/*
 * A live client: connected to a server, with the store's own client code. One
 * thread uses a session. A session that an operation left with -EIO is done: close it,
 * open another.
 */
#include "scenarios/live_store.h"

#include "core/live/injected.h"

struct ibv_context;
struct session;

/* What may explain that an operation failed. */
struct session_injected {
	struct injected own;	/* since the session began */
	struct injected server; /* since it was started; `dropped`: since the session began */
	bool gone;		/* the server does not answer: its numbers are not known */
	struct bad_completion bad;
};

/* `client`: the number wanted, 0: any. 0 or -errno; *why: a sentence for the user. */
int session_open(struct session **out, struct ibv_context *verbs, const char *server,
		 unsigned client, char *why, size_t n);
void session_close(struct session *s);
/* What is served; params, and the boot number of the server. */
const struct live_store *session_store(const struct session *s);
unsigned session_client(const struct session *s);

/* As in struct tm_store. -ECANCELED: session_stop(). */
int session_put(struct session *s, const void *key, size_t klen, const void *value, size_t vlen);
int session_get(struct session *s, const void *key, size_t klen, void *value, size_t cap,
		size_t *vlen);
int session_del(struct session *s, const void *key, size_t klen);
/* Until now; between two operations. Asks the server, if there is one. */
void session_injected(struct session *s, struct session_injected *out);
/* From any thread: the operation that is on ends with -ECANCELED. */
void session_stop(struct session *s);

#endif
