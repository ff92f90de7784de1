/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client: PUT moves its value by itself, GET reads entry and object by
 * itself and asks the server only when the object is not known to be durable
 * (EF 4.3.1, 4.3.3), or while a log is cleaned (EF 4.4).
 *
 * Notices tell it of cleaning, on a connection and a task of their own. A notice is
 * acknowledged when no operation is left that began before: by the task for notices
 * if there is none, else by the operation when it ends, on its own connection.
 */
#include "core/stores/efactory/efactory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/rpc.h"

/* Pauses after an acknowledgement that could not be posted. */
#define REFUSED_NS     1000
#define REFUSED_MAX_NS 10000000

struct ef_client {
	struct rpc_conn conn, notices;
	struct tm_params params;
	uint64_t slots, log_len;
	uint32_t number;
	size_t last_vlen; /* of the last value read: an entry does not tell */
	bool cleaning;	  /* read through the server only */
	bool busy;	  /* in an operation */
	uint64_t unacked; /* the notice that has to be acknowledged; 0: none */
};

/* -------------------------------------------------------------- notices */

/* Acknowledge the last notice, unless the other task has done it. */
static int acknowledge(struct ef_client *client, struct rpc_conn *conn)
{
	uint64_t number = __atomic_exchange_n(&client->unacked, 0, __ATOMIC_SEQ_CST);
	uint64_t none = 0;
	struct kv_req ack;

	if (!number)
		return 0;
	memset(&ack, 0, sizeof(ack));
	ack.op = KV_ACK;
	ack.client = client->number;
	ack.off = number;
	int rc = rpc_send(conn, &ack, sizeof(ack));
	if (rc) /* still to be done, unless there is a newer one */
		__atomic_compare_exchange_n(&client->unacked, &none, number, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return rc;
}

static void op_begin(struct ef_client *client)
{
	__atomic_store_n(&client->busy, true, __ATOMIC_SEQ_CST);
}

/* A connection that has failed says so to the next operation. */
static void op_end(struct ef_client *client)
{
	__atomic_store_n(&client->busy, false, __ATOMIC_SEQ_CST);
	acknowledge(client, &client->conn);
}

static void take_notices(void *arg)
{
	struct ef_client *client = arg;
	struct ef_notice notice;
	uint64_t nap = REFUSED_NS;
	bool begins;
	size_t len;

	while (!rpc_wait(&client->notices, &notice, sizeof(notice), &len)) {
		if (len != sizeof(notice))
			return;
		begins = notice.number % 2;
		if (ef_bug(&client->params, EF_BUG_NOTICE_MARKED_FIRST))
			__atomic_store_n(&client->unacked, notice.number, __ATOMIC_SEQ_CST);
		if (begins)
			rpc_set_region(&client->conn, (unsigned)notice.region, &notice.where);
		__atomic_store_n(&client->cleaning,
				 begins && !ef_bug(&client->params, EF_BUG_CLIENT_HYBRID),
				 __ATOMIC_SEQ_CST);
		if (!ef_bug(&client->params, EF_BUG_NOTICE_MARKED_FIRST))
			__atomic_store_n(&client->unacked, notice.number, __ATOMIC_SEQ_CST);
		while ((!__atomic_load_n(&client->busy, __ATOMIC_SEQ_CST) ||
			ef_bug(&client->params, EF_BUG_ACK_BUSY)) &&
		       acknowledge(client, &client->notices)) {
			if (client->notices.failed)
				return;
			rt_sleep(nap);
			nap = nap < REFUSED_MAX_NS ? 2 * nap : nap;
		}
		nap = REFUSED_NS;
	}
}

/* ----------------------------------------------------------- operations */

int ef_open(const struct tm_env *env, void **out)
{
	struct ef_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->params = *env->params;
	client->slots = ef_slots(env->params);
	client->log_len = ef_log_len(env->params);
	client->number = env->client;
	client->last_vlen = env->params->max_vlen;
	/* In this order, so that no cleaning begins unnoticed in between. */
	int rc = rpc_open_notices(&client->notices, env, sizeof(struct kv_req), NULL);
	if (rc)
		goto err;
	client->cleaning = client->notices.word;
	rc = rpc_open(&client->conn, env, sizeof(struct kv_req),
		      sizeof(struct ef_object) + env->params->max_vlen, &client->notices);
	client->conn.assumes = ef_bug(env->params, EF_BUG_RECEIVE_ASSUMED);
	if (!rc)
		rc = rt_spawn("notices", take_notices, client);
	if (rc)
		goto err;
	*out = client;
	return 0;
err:
	rpc_close(&client->conn);
	rpc_close(&client->notices);
	free(client);
	return rc;
}

/* kv_req_init() of this client. */
static int make_req(const struct ef_client *client, struct kv_req *req, enum kv_op op,
		    const void *key, size_t klen)
{
	int rc = kv_req_init(req, op, key, klen);

	req->client = client->number;
	return rc;
}

/*
 * A call that the server may put off because it is making room. The operation has no
 * address of an object yet, so it does not keep the cleaning waiting.
 */
static int call_for_room(struct ef_client *client, const struct kv_req *req, struct kv_rsp *rsp)
{
	uint64_t nap = 1000;
	int rc;

	while ((rc = kv_call(&client->conn, req, rsp)) == -EAGAIN) {
		op_end(client);
		rt_sleep(nap);
		op_begin(client);
		nap = nap < 1000000 ? 2 * nap : nap;
	}
	return rc;
}

static int put_value(struct ef_client *client, const struct kv_req *req, const void *value)
{
	struct kv_rsp rsp;
	int rc = call_for_room(client, req, &rsp);

	if (rc || req->vlen == 0)
		return rc;
	return rpc_write(&client->conn, EF_LOG + ef_log_of(rsp.off),
			 ef_off_of(rsp.off) + sizeof(struct ef_object), value, req->vlen);
}

int ef_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct ef_client *client = arg;
	struct kv_req req;
	int rc = make_req(client, &req, KV_PUT, key, klen);

	if (rc)
		return rc;
	if (vlen > client->params.max_vlen)
		return -EMSGSIZE;
	req.vlen = (uint32_t)vlen;
	req.crc = kv_crc(value, vlen);
	op_begin(client);
	rc = put_value(client, &req, value);
	op_end(client);
	return rc;
}

int ef_del(void *arg, const void *key, size_t klen)
{
	struct ef_client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;
	int rc = make_req(client, &req, KV_DEL, key, klen);

	if (rc)
		return rc;
	op_begin(client);
	rc = call_for_room(client, &req, &rsp);
	op_end(client);
	return rc;
}

int ef_clean(void *arg)
{
	struct ef_client *client = arg;
	struct kv_req req;
	struct kv_rsp rsp;

	memset(&req, 0, sizeof(req));
	req.op = KV_CLEAN;
	req.client = client->number;
	op_begin(client);
	int rc = kv_call(&client->conn, &req, &rsp);
	op_end(client);
	return rc;
}

/* Is this the wanted key's object? The paper compares the key in the entry only. */
static bool right_object(const struct ef_client *client, const struct ef_object *object,
			 const struct kv_req *req)
{
	if (ef_knobs(&client->params)->verify_obj_key)
		return true;
	return rt_check(object->klen == req->klen &&
			memcmp(object->key, req->key, sizeof(req->key)) == 0);
}

/* READ the object at `place`, whose value is expected to have vlen bytes; at most up to the end of
 * the log. */
static int read_object(struct ef_client *client, uint64_t place, size_t vlen,
		       const struct ef_object **object, size_t *got)
{
	uint64_t off = ef_off_of(place), last = client->log_len - sizeof(**object);
	const void *data;

	if (off > last || (off == last && ef_bug(&client->params, EF_BUG_NO_LAST_LINE)))
		return -ERANGE;
	*got = last - off;
	if (*got > vlen)
		*got = vlen;
	int rc = rpc_read(&client->conn, EF_LOG + ef_log_of(place), off, sizeof(**object) + *got,
			  &data);
	*object = data;
	return rc;
}

static int take_value(struct ef_client *client, const struct ef_object *object, void *value,
		      size_t cap, size_t *vlen)
{
	size_t len = object->vlen;

	if (!len && ef_bug(&client->params, EF_BUG_EMPTY_ABSENT))
		return -ENOENT;
	client->last_vlen = len;
	*vlen = len;
	memcpy(value, object->value, len < cap ? len : cap);
	return 0;
}

/*
 * READ entries from the key's place on. 0 with *place (0: no version), -ENOENT: no
 * entry, -EAGAIN: not found so near, the server must look.
 */
static int find_entry(struct ef_client *client, const struct kv_req *req, uint64_t *place)
{
	uint64_t slot = ef_home(&client->params, req->key);

	for (unsigned i = 0; i < EF_PROBE && i < client->slots; i++, slot++) {
		uint64_t at = (slot & (client->slots - 1)) * sizeof(struct ef_entry);
		const struct ef_entry *entry;
		const void *data;
		int rc = rpc_read(&client->conn, EF_TABLE, at, sizeof(*entry), &data);

		if (rc)
			return rc;
		entry = data;
		if (!(entry->ctl & EF_USED))
			return -ENOENT;
		if (rt_check(memcmp(entry->key, req->key, sizeof(req->key)) == 0)) {
			unsigned log = ef_mark(&client->params, entry);

			*place = ef_place(log, entry->off[log]);
			return 0;
		}
		if ((~slot & (client->slots - 1)) == 0 &&
		    ef_bug(&client->params, EF_BUG_PROBE_ENDS))
			return -ENOENT;
	}
	if (client->slots <= EF_PROBE || ef_bug(&client->params, EF_BUG_PROBE_GIVES_UP))
		return -ENOENT;
	return -EAGAIN;
}

/* Two READs, without the server. -EAGAIN: the version may not be durable yet, or is not what was
 * looked
 * for. */
static int get_one_sided(struct ef_client *client, const struct kv_req *req, void *value,
			 size_t cap, size_t *vlen)
{
	const struct ef_object *object;
	size_t got, expect = client->last_vlen;
	uint64_t place;
	int rc = find_entry(client, req, &place);

	if (rc)
		return rc;
	if (!place)
		return -ENOENT;
	for (;;) {
		rc = read_object(client, place, expect, &object, &got);
		if (rc)
			return rc;
		if (!rt_check(object->state & EF_FLAG) &&
		    !ef_bug(&client->params, EF_BUG_CLIENT_NO_FLAG))
			return -EAGAIN;
		if (!right_object(client, object, req) || object->vlen > client->params.max_vlen)
			return -EAGAIN;
		if (ef_kind(&client->params, object) == EF_TOMBSTONE)
			return -ENOENT;
		if (object->vlen <= got || ef_bug(&client->params, EF_BUG_GET_CUT)) {
			rc = take_value(client, object, value, cap, vlen);
			if (!rc && ef_bug(&client->params, EF_BUG_LAST_LENGTH)) {
				memcpy(value, object->value, got < cap ? got : cap);
				*vlen = got;
			}
			return rc;
		}
		if (expect >= object->vlen)
			return -EAGAIN; /* longer than the log */
		expect = object->vlen;
	}
}

/* Ask the server, which names a version that is durable. */
static int get_by_rpc(struct ef_client *client, const struct kv_req *req, void *value, size_t cap,
		      size_t *vlen)
{
	const struct ef_object *object;
	struct kv_rsp rsp;
	size_t got;
	int rc = kv_call(&client->conn, req, &rsp);

	while (rc == -EAGAIN) {
		rt_yield();
		rc = kv_call(&client->conn, req, &rsp);
	}
	if (rc)
		return rc;
	rc = read_object(client, rsp.off, rsp.vlen, &object, &got);
	if (rc)
		return rc;
	if (object->vlen != rsp.vlen || got != rsp.vlen || !right_object(client, object, req))
		return -EBADMSG;
	return take_value(client, object, value, cap, vlen);
}

int ef_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct ef_client *client = arg;
	struct kv_req req;
	int rc = make_req(client, &req, KV_GET, key, klen);

	if (rc)
		return rc;
	op_begin(client);
	rc = -EAGAIN;
	if (!__atomic_load_n(&client->cleaning, __ATOMIC_SEQ_CST))
		rc = get_one_sided(client, &req, value, cap, vlen);
	if (rc == -EAGAIN)
		rc = get_by_rpc(client, &req, value, cap, vlen);
	op_end(client);
	return rc;
}
