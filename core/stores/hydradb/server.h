/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_HYDRADB_SERVER_H
#define TM_STORES_HYDRADB_SERVER_H
/* The server's own, for a store that has several of them. */
#include "core/stores/hydradb/hydradb.h"
#include "core/stores/kv_rooms.h"

struct hydradb_server;
/* Execute a request of `len` bytes. Its status; a GET's value is *value, in the pool. */
typedef int hydradb_executor(struct hydradb_server *server, const struct kv_req *req, uint32_t len,
			     struct hydradb_reply *reply, const void **value, uint32_t *vlen);

struct hydradb_server {
	struct tm_params params;
	struct rpc_server rpc;
	struct kv_place place;
	struct kv_rooms rooms; /* of the items */
	uint64_t version;      /* of the item that was written last */
	uint64_t late;	       /* a seeded bug's: where the item is that is still to be outdated */
	struct kv_slots requests, replies;
	uint32_t len;	/* of the body of the request that was looked at last */
	uint32_t *owed; /* by the connection's number: bytes of its reply */
	const struct kv_slot_calls *calls;
	hydradb_executor *execute; /* clients' requests */
	uint64_t pointers_end;	   /* rt_now(): no lease of a pointer lasts longer */
};

extern const struct kv_slot_calls hydradb_calls;
hydradb_executor hydradb_execute;
/* The server, with its regions exported, and not yet listening; `server` is zeroed. */
int hydradb_server_open(struct hydradb_server *server, const struct tm_env *env);
int hydradb_server_start(struct hydradb_server *server);
/* rpc_server.connected; arg: the server. */
void hydradb_connected(void *arg, unsigned index);
/* Remove all items; no client has a pointer. */
void hydradb_clear(struct hydradb_server *server);

#endif
