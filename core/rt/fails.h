/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_FAILS_H
#define TM_RT_FAILS_H
/*
 * Failure points: every call that can fail has a name and can be told to fail.
 *
 * In the sim world a source answers, through sim_choose() (CHOICE_FAIL); in the live
 * world libfiu does, so that fiu-run(1) and fiu-ctrl(1) switch points by these names.
 * `tidemark list failures` prints the table.
 */
#include <stdbool.h>

/* clang-format off */
#define FAIL_POINTS(X) \
	X(MEMORY,	"memory",		"malloc, calloc, realloc, posix_memalign: no memory") \
	X(ALLOC_PD,	"verbs/alloc_pd",	"ibv_alloc_pd: ENOMEM") \
	X(REG_MR,	"verbs/reg_mr",		"ibv_reg_mr: ENOMEM") \
	X(CREATE_CQ,	"verbs/create_cq",	"ibv_create_cq: ENOMEM") \
	X(CREATE_QP,	"verbs/create_qp",	"ibv_create_qp, ibv_create_qp_ex: ENOMEM") \
	X(MODIFY_QP,	"verbs/modify_qp",	"ibv_modify_qp: ENOMEM") \
	X(QUERY,	"verbs/query",		"ibv_query_gid, ibv_query_port, ...: EIO") \
	X(POST_SEND,	"verbs/post_send",	"ibv_post_send, ibv_wr_complete: ENOMEM") \
	X(POST_RECV,	"verbs/post_recv",	"ibv_post_recv: ENOMEM") \
	X(SPAWN,	"task/spawn",		"rt_spawn, pthread_create: EAGAIN") \
	X(LISTEN,	"connect/listen",	"rt_listen, rdma_listen: EADDRINUSE") \
	X(CONNECT,	"connect/connect",	"rt_connect, rdma_connect, at the client: ECONNREFUSED") \
	X(ACCEPT,	"connect/accept",	"rt_connect, rdma_accept, at the server: EUSERS") \
	X(PM_FULL,	"pm/full",		"a store finds no room in its pool: ENOSPC") \
	X(PM_MAP,	"pm/map",		"live: the pool cannot be mapped: ENOMEM") \
	X(PM_SYNC,	"pm/sync",		"live: writing back to a file that is no PM fails: EIO") \
	X(FILE_OPEN,	"file/open",		"live: a file of ours cannot be opened: EACCES") \
	X(FILE_READ,	"file/read",		"live: EIO") \
	X(FILE_WRITE,	"file/write",		"live: ENOSPC")
/* clang-format on */

enum fail_point {
#define X(id, name, what) FAIL_##id,
	FAIL_POINTS(X)
#undef X
		FAIL_POINT_COUNT
};

struct fail_point_name {
	const char *name, *what;
};
extern const struct fail_point_name fail_points[FAIL_POINT_COUNT];

/* Is the current task's call at this point to fail? In the running simulation; false outside of
 * one. The live world's is in core/live/live_fails.h. */
bool sim_fails(enum fail_point point);

#endif
