/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_KV_SMALL_H
#define TM_STORES_KV_SMALL_H
/*
 * What the small stores share: a table (kv_table.h) and a log of values at the pool's start and
 * end, a server that answers requests one by one, clients that write and read values in the log by
 * themselves.
 */
#include "core/stores/kv_table.h"

/* --- the pool --- */

uint64_t kv_lines(uint32_t vlen); /* that a value takes in the log */
size_t kv_table_bytes(const struct tm_params *params);
/* tm_store.format: zeros are an empty store. */
int kv_format(const struct tm_env *env);
/* tm_store.regions, of `n` regions. */
unsigned kv_regions(const struct tm_region *all, unsigned n, struct tm_region *out, unsigned max);

/* --- the server --- */

/* Is the message a request, with a key? `values`: a PUT's value travels after it. */
bool kv_is_request(const struct rpc_msg *msg, bool values);
/* Answers a request. Returns the reply's status; may fill the rest of it. */
typedef int kv_handler(void *arg, const struct kv_req *req, struct kv_rsp *rsp);
/* An rpc_handler's work: -EPROTO to what is no request, else what `handler` says. */
size_t kv_handle(kv_handler *handler, void *arg, const struct rpc_msg *msg, bool values,
		 void *reply, size_t cap);
/* Take connections, and start to serve. */
int kv_server_listen(struct rpc_server *rpc);
/* The same, after exporting the log as the next region, with the rights of the queue pairs. */
int kv_server_start(struct rpc_server *rpc, void *log, size_t len);

/* --- the client --- */

/* A client, or the first member of a client's struct. */
struct kv_client {
	struct rpc_conn conn;
	struct tm_params params;
	struct rpc_conn *data; /* a further connection for READs and WRITEs of values; NULL: none */
	uint8_t *msg;	       /* room for a message of so many bytes */
	size_t msg_bytes;      /* 0: all are struct kv_req and struct kv_rsp, and need none */
};

/* tm_store.open: connect `client`, which came from calloc() and is freed where that fails; NULL:
 * there was no memory. data_bytes: of the largest READ or WRITE. */
int kv_client_open(struct kv_client *client, const struct tm_env *env, size_t msg_bytes,
		   size_t data_bytes, void **out);
/* Open client->data, which comes from malloc(). data_bytes: as above. */
int kv_client_open_data(struct kv_client *client, const struct tm_env *env, size_t data_bytes);
/* The connection on which values travel. */
struct rpc_conn *kv_client_data(struct kv_client *client);
/* Close what these have opened. The client's own memory is not freed. */
void kv_client_close(struct kv_client *client);
/* Ask for room, and write the value there. crc: of the request. */
int kv_client_put(struct kv_client *client, unsigned log, const void *key, size_t klen,
		  const void *value, size_t vlen, uint32_t crc);
/* Read a value that a server or an entry has named. */
int kv_client_read(struct kv_client *client, unsigned log, uint64_t off, size_t vlen, void *value,
		   size_t cap, size_t *out_vlen);
/* tm_store.del: the server does it. */
int kv_client_del(void *client, const void *key, size_t klen);

#endif
