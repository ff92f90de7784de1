/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: it writes its request, waits for the reply, and repeats itself. See herd.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/herd/herd.h"

/* The first wait for a reply; each further one is twice as long, up to a second. */
#define PATIENCE_NS 1000000ull
#define DOUBLED	    10 /* times. From then on the client asks whether the server is there */

#define CONNECT_NAP_NS 10000

#define RECEIVED (HERD_GRH + HERD_LARGEST) /* bytes of a buffer for a datagram */

struct client {
	struct tm_params params;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *writes, *replies;
	struct ibv_mr *mr;
	uint8_t *request;  /* as it is to be in the slot */
	uint8_t *received; /* HERD_RECVS buffers for datagrams */
	uint8_t *value;	   /* of the reply */
	struct rpc_region slot;
	struct herd_hello hello;
	uint32_t index, number;
	uint32_t part;	 /* bytes of a value in one datagram */
	unsigned posted; /* receives, bits */
	unsigned parts;	 /* of the reply: bits, those that have come */
	struct herd_reply reply;
	bool failed; /* a completion reported an error */
};

static uint8_t *receive_at(const struct client *client, unsigned i)
{
	return client->received + i * RECEIVED;
}

/* -------------------------------------------------------------- connecting */

static void drop(struct client *client)
{
	if (client->writes)
		ibv_destroy_qp(client->writes);
	if (client->replies)
		ibv_destroy_qp(client->replies);
	if (client->cq)
		ibv_destroy_cq(client->cq);
	if (client->mr)
		ibv_dereg_mr(client->mr);
	if (client->pd)
		ibv_dealloc_pd(client->pd);
	free(client->request);
	free(client->value);
	free(client);
}

/* One piece of memory for what is sent and what is received. */
static int make_buffers(struct client *client, const struct tm_env *env)
{
	size_t bytes = HERD_SLOT + HERD_RECVS * RECEIVED;
	client->request = calloc(1, bytes);
	client->value = calloc(1, HERD_MAX_VALUE);
	client->pd = ibv_alloc_pd(env->verbs);
	if (!client->request || !client->value || !client->pd)
		return -ENOMEM;
	client->received = client->request + HERD_SLOT;
	client->mr = ibv_reg_mr(client->pd, client->request, bytes, IBV_ACCESS_LOCAL_WRITE);
	client->cq = ibv_create_cq(env->verbs, 4 * HERD_RECVS, NULL, NULL, 0);
	return client->mr && client->cq ? 0 : -ENOMEM;
}

/* The server may be busy with what this client sent before it connected again. */
static int greet(struct client *client)
{
	struct herd_hello *hello = &client->hello;
	struct herd_welcome welcome;
	int rc;

	while ((rc = rt_connect(hello, sizeof(*hello), &welcome, sizeof(welcome))) == -EAGAIN)
		rt_sleep(CONNECT_NAP_NS);
	if (rc)
		return rc;
	rc = herd_qp_ready(client->writes, &hello->writes, &welcome.server.writes);
	if (!rc)
		rc = herd_qp_ready(client->replies, &hello->replies, NULL);
	client->part = herd_part(&hello->replies, &welcome.server.replies);
	client->slot = welcome.slot;
	client->index = welcome.index;
	hello->connection = welcome.connection;
	return rc;
}

/* Does the server still have this connection? */
static bool is_connected(struct client *client)
{
	struct herd_welcome welcome;

	return !rt_connect(&client->hello, sizeof(client->hello), &welcome, sizeof(welcome));
}

/* Post so many that no reply finds none. A call that fails is made up for later. */
static void post_receives(struct client *client)
{
	for (unsigned i = 0; i < HERD_RECVS; i++)
		if (!(client->posted >> i & 1) &&
		    !rpc_qp_recv(client->replies, i, receive_at(client, i), RECEIVED,
				 client->mr->lkey))
			client->posted |= 1u << i;
}

/* What comes late from a connection of former times, whose queue pairs may have had the same
 * numbers, has a lower one: no request takes as little as 1 us. */
static uint32_t first_number(const struct tm_params *params)
{
	return params->knob[NUMBERS] == NUMBERS_ONE ? 0 : (uint32_t)(rt_now() / 1000);
}

static int connect_server(struct client *client, const struct tm_env *env)
{
	client->writes = herd_qp_open(client->pd, client->cq, false, 0, env->client,
				      &client->hello.writes);
	if (!client->writes)
		return -ENOMEM;
	client->replies = herd_qp_open(client->pd, client->cq, true, 0, env->client,
				       &client->hello.replies);
	if (!client->replies)
		return -ENOMEM;
	client->number = first_number(&client->params);
	client->hello.number = client->number;
	return greet(client);
}

int herd_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->params = *env->params;
	int rc = make_buffers(client, env);
	if (!rc)
		rc = connect_server(client, env);
	if (rc)
		drop(client);
	else
		*out = client;
	return rc;
}

/* ------------------------------------------------------------------ replies */

/* Number of datagrams that the reply takes. */
static unsigned parts_of(const struct client *client)
{
	uint32_t vlen = client->reply.vlen;

	return vlen ? (vlen + client->part - 1) / client->part : 1;
}

static bool is_complete(const struct client *client)
{
	return client->parts == (1u << parts_of(client)) - 1;
}

/* Is this a part of the reply that is waited for? */
static bool is_part(const struct client *client, const struct herd_reply *reply, size_t len)
{
	if (client->params.knob[NUMBERS] != NUMBERS_OFF &&
	    !has_bug(&client->params, reply_unchecked) &&
	    !rt_check(reply->number == client->number))
		return false;
	return reply->vlen <= HERD_MAX_VALUE && reply->from <= reply->vlen &&
	       len <= reply->vlen - reply->from;
}

static void take_part(struct client *client, const uint8_t *datagram, size_t len)
{
	struct herd_reply reply;

	if (len < sizeof(reply))
		return;
	memcpy(&reply, datagram, sizeof(reply));
	len -= sizeof(reply);
	if (!is_part(client, &reply, len))
		return;
	if (len)
		memcpy(client->value + reply.from, datagram + sizeof(reply), len);
	client->reply = reply;
	client->parts |= 1u << reply.from / client->part;
}

/* A completion: of a WRITE, or a datagram has come. */
static void take_completion(struct client *client, const struct ibv_wc *wc, bool *written)
{
	if (wc->status != IBV_WC_SUCCESS) {
		client->failed = true;
	} else if (!(wc->opcode & IBV_WC_RECV)) {
		*written = true;
	} else {
		client->posted &= ~(1u << wc->wr_id);
		take_part(client, receive_at(client, (unsigned)wc->wr_id) + HERD_GRH,
			  wc->byte_len - HERD_GRH);
		post_receives(client);
	}
}

/* -EAGAIN: not in that time. */
static int await_reply(struct client *client, uint64_t ns, bool waits)
{
	uint64_t since = rt_now();
	bool written = false;

	if (!waits)
		return 0;
	while (!written || !is_complete(client)) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(client->cq, 1, &wc);

		if (n > 0)
			take_completion(client, &wc, &written);
		if (n < 0 || client->failed) {
			client->failed = true;
			return -EIO;
		}
		if (n > 0)
			continue;
		if (written && rt_now() - since > ns)
			return -EAGAIN;
		rt_yield();
	}
	return 0;
}

/* ------------------------------------------------------------------- asking */

static int write_request(struct client *client, size_t from, size_t len)
{
	uint64_t to = client->slot.base + from;

	if (client->params.knob[REQUEST] == REQUEST_IMM)
		return rpc_qp_write_imm(client->writes, 0, client->request + from, len,
					client->mr->lkey, to, client->slot.rkey, client->index);
	return rpc_qp_write(client->writes, 0, client->request + from, len, client->mr->lkey, to,
			    client->slot.rkey);
}

/* One try. -EAGAIN: there was no reply in that time. -ENOMEM: nothing was sent. */
static int try(struct client *client, size_t from, size_t len, uint64_t ns, bool waits)
{
	post_receives(client);
	int rc = write_request(client, from, len);
	return rc ? rc : await_reply(client, ns, waits);
}

/* Write the slot's bytes until they are answered. Repeating harms nothing: the request's number
 * says what it is. */
static int call(struct client *client, size_t from, size_t len, bool waits)
{
	uint64_t nap = KV_NAP_NS;
	int rc = try(client, from, len, PATIENCE_NS, waits);

	for (unsigned i = 1; rc == -EAGAIN; i += i < DOUBLED) {
		if (i == DOUBLED && !is_connected(client))
			client->failed = true;
		if (client->failed)
			return -EIO;
		rc = try(client, from, len, PATIENCE_NS << i, waits);
		if (rc == -ENOMEM) {
			kv_nap(&nap);
			rc = -EAGAIN;
		}
	}
	return rc ? rc : client->reply.status;
}

static int ask(struct client *client, enum kv_op op, const void *key, size_t klen,
	       const void *value, size_t vlen, bool waits)
{
	const struct tm_params *params = &client->params;
	struct herd_head head;
	size_t head_at = herd_head_at(params);

	if (client->failed)
		return -EIO;
	memset(&head, 0, sizeof(head));
	int rc = kv_req_init(&head.req, op, key, klen);
	if (rc)
		return rc;
	if (vlen > HERD_MAX_VALUE || vlen > params->max_vlen)
		return -EMSGSIZE;
	head.req.vlen = (uint32_t)vlen;
	head.word = herd_word(++client->number);
	head.req.crc = herd_crc(&head, value);
	size_t value_at = herd_value_at(params, head.req.vlen);
	memcpy(client->request + head_at, &head, sizeof(head));
	if (vlen)
		memcpy(client->request + value_at, value, vlen);
	client->parts = 0;
	memset(&client->reply, 0, sizeof(client->reply));
	return call(client, head_at < value_at ? head_at : value_at, sizeof(head) + vlen, waits);
}

int herd_put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	return ask(client, KV_PUT, key, klen, value, vlen, RT_WAITS);
}

int herd_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	int rc = ask(client, KV_GET, key, klen, NULL, 0, RT_WAITS);

	if (rc)
		return rc;
	*vlen = client->reply.vlen;
	memcpy(value, client->value, *vlen < cap ? *vlen : cap);
	return 0;
}

int herd_del(void *client, const void *key, size_t klen)
{
	return ask(client, KV_DEL, key, klen, NULL, 0, RT_WAITS);
}
