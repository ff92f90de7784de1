/* SPDX-License-Identifier: BSD-3-Clause */
/* A DataNode: packets and requests. See nvfs.h. */
#include "core/stores/nvfs/node.h"
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"

#define LEASE_NS    200000 /* of a writer */
#define PATIENCE_NS 1000000

void node_lock(struct node *node)
{
	while (node->locked)
		rt_sleep(1000);
	node->locked = true;
}

void node_unlock(struct node *node)
{
	node->locked = false;
}

void node_persist(const struct node *node, const void *at, size_t len)
{
	if (node->params.knob[FLUSH] == FLUSH_ON)
		pmem_persist(at, len);
}

static void store_len(struct block *block, uint64_t len)
{
	__atomic_store_n(&block->len, len, __ATOMIC_SEQ_CST);
}

void node_set_len(const struct node *node, uint32_t i, uint64_t len)
{
	struct block *block = nvfs_block(&node->pool, i);
	store_len(block, len);
	if (!has_bug(&node->params, len_unflushed))
		node_persist(node, block, sizeof(*block));
}

/* --- packets --- */

static uint8_t *records_of(const struct node *node, uint32_t block)
{
	return (uint8_t *)(nvfs_block(&node->pool, block) + 1);
}

static uint64_t off_of(const struct node *node, const void *at)
{
	return (uint64_t)((const uint8_t *)at - node->pool.blocks_at);
}

static bool is_right(const struct node *node, const struct nvfs_packet *packet)
{
	const size_t room = node->pool.block_bytes - sizeof(struct block);
	return packet->generation == node->generation && packet->block < node->pool.blocks &&
	       packet->off == nvfs_block(&node->pool, packet->block)->len && packet->off <= room &&
	       packet->n <= room - packet->off &&
	       rt_check(kv_crc(records_of(node, packet->block) + packet->off, packet->n) ==
			packet->crc);
}

/* The next node, or none. */
static bool has_next(const struct node *node, unsigned *next)
{
	*next = nvfs_place(node->members, node->head, node->env.server, 1);
	return *next != node->head;
}

static int pass_on(struct node *node, const struct nvfs_packet *packet, uint32_t *failed)
{
	struct nvfs_told told = {0};
	unsigned next;
	size_t len;
	if (!has_next(node, &next))
		return 0;
	int rc = rpc_call(&node->next, packet, sizeof(*packet), &told, sizeof(told), &len);
	rc = kv_status(rc, len, &told, sizeof(told));
	*failed = told.failed ? told.failed : rc ? 1u << next : 0;
	return *failed ? -EHOSTDOWN : 0;
}

static int write_to_next(struct node *node, const struct nvfs_packet *packet)
{
	const uint8_t *at = records_of(node, packet->block) + packet->off;
	unsigned next;
	return has_next(node, &next)
		       ? rpc_write_behind(&node->next, 0, off_of(node, at), at, packet->n)
		       : 0;
}

static bool waits(const struct node *node)
{
	return node->params.knob[PIPELINE] == PIPELINE_ALL || node->head != node->env.server;
}

int node_packet(struct node *node, const struct nvfs_packet *packet, uint32_t *failed)
{
	const bool early = node->params.knob[ACK] == ACK_EARLY;
	const bool first = node->params.knob[LEN] == LEN_FIRST && !early;
	struct block *block = nvfs_block(&node->pool, packet->block);
	if (!is_right(node, packet))
		return -ESTALE;
	uint8_t *at = records_of(node, packet->block) + packet->off;
	int rc = waits(node) ? write_to_next(node, packet) : 0;
	if (!block->len)
		memcpy(block->key, packet->key, sizeof(block->key));
	if (first)
		node_set_len(node, packet->block, packet->off + packet->n);
	if (!early)
		node_persist(node, at, packet->n);
	if (waits(node)) /* a WRITE that could not be posted fails the next node's check */
		rc = pass_on(node, packet, failed);
	if (rc && first)
		node_set_len(node, packet->block, packet->off);
	else if (!rc && early)
		store_len(block, packet->off + packet->n);
	else if (!rc && !first)
		node_set_len(node, packet->block, packet->off + packet->n);
	return rc;
}

void node_catch_up(struct node *node)
{
	for (uint32_t i = 0; i < node->pool.blocks; i++) {
		struct block *block = nvfs_block(&node->pool, i);
		if (node->persisted[i] < block->len && node->params.knob[ACK] == ACK_EARLY) {
			node_persist(node, block, sizeof(*block) + block->len);
			node->persisted[i] = block->len;
		}
		if (node->serves && !waits(node) && node->sent[i] < block->len) {
			struct nvfs_packet packet = {.op = NVFS_PACKET,
						     .n = (uint32_t)(block->len - node->sent[i]),
						     .block = i,
						     .generation = node->generation,
						     .off = node->sent[i]};
			uint32_t failed = 0;
			memcpy(packet.key, block->key, sizeof(packet.key));
			packet.crc = kv_crc(records_of(node, i) + packet.off, packet.n);
			write_to_next(node, &packet);
			node->sent[i] = block->len;
			if (pass_on(node, &packet, &failed))
				node_form_again(node, node->members & ~failed);
		}
	}
}

/* --- clients --- */

/* The key's block, or a free one; pool.blocks: there is neither. */
static uint32_t find(const struct node *node, const uint8_t *key)
{
	static const uint8_t nobody[TM_MAX_KEY];
	uint32_t unused = node->pool.blocks;
	for (uint32_t i = 0; i < node->pool.blocks; i++) {
		const struct block *block = nvfs_block(&node->pool, i);
		const uint8_t *has = block->len ? block->key : node->lease[i].key;
		if (!memcmp(has, key, TM_MAX_KEY))
			return i;
		if (unused == node->pool.blocks && !memcmp(has, nobody, TM_MAX_KEY))
			unused = i;
	}
	return unused;
}

/* The block's end is the client's, unless another one has it still. */
static int lend(struct node *node, struct nvfs_lease *lease, uint32_t client, const uint8_t *key)
{
	if (lease->writer && lease->writer != client) {
		if (has_bug(&node->params, lease_kept) ||
		    rt_now() - lease->since < kv_patience(&node->params, LEASE_NS))
			return -EBUSY;
		if (!has_bug(&node->params, lease_open))
			rpc_server_drop(&node->rpc, lease->writer);
	}
	lease->writer = client;
	lease->since = rt_now();
	memcpy(lease->key, key, sizeof(lease->key));
	return 0;
}

/* What the client has written is a packet. */
static int append(struct node *node, const struct kv_req *req, uint32_t i, uint32_t client)
{
	struct nvfs_lease *lease = &node->lease[i];
	struct nvfs_packet packet = {
		.op = NVFS_PACKET, .n = req->vlen, .crc = req->crc, .block = i};
	int rc;
	packet.off = nvfs_block(&node->pool, i)->len;
	memcpy(packet.key, req->key, sizeof(packet.key));
	if (!has_bug(&node->params, lease_open) && lease->writer != client)
		return -EIO;
	do {
		uint32_t failed = 0;
		packet.generation = node->generation;
		rc = node_packet(node, &packet, &failed);
		if (rc == -EHOSTDOWN && node_form_again(node, node->members & ~failed))
			return -EIO;
	} while (rc == -EHOSTDOWN && !has_bug(&node->params, forgets_packet));
	lease->writer = 0;
	return rc == -EHOSTDOWN ? 0 : rc;
}

/* While the head's lease lasts, no other node has become the head. It asks itself this when it
 * knows its answer. What is appended needs no lease: the nodes that could be the head have it, too.
 */
static bool leads(const struct node *node)
{
	return node->serves && rt_now() < rt_config_lease(&node->config);
}

static int handle_client(struct node *node, const struct kv_req *req, uint32_t client,
			 struct nvfs_found *found)
{
	const uint32_t i = find(node, req->key);
	const struct block *block = nvfs_block(&node->pool, i);
	if (!node->serves)
		return -EHOSTDOWN;
	if (i == node->pool.blocks)
		return !leads(node) ? -EHOSTDOWN : req->op == KV_GET ? -ENOENT : -ENOSPC;
	found->members = node->members;
	found->head = node->head;
	found->off = off_of(node, block + 1);
	found->len = block->len;
	if (req->op == KV_GET)
		return !leads(node) ? -EHOSTDOWN : block->len ? 0 : -ENOENT;
	if (req->op == KV_COMMIT)
		return req->off == found->off + found->len ? append(node, req, i, client) : -EIO;
	if (req->op != KV_PUT)
		return -EPROTO;
	found->off += found->len;
	if (rt_pm_full() || found->len + req->vlen > node->pool.block_bytes - sizeof(*block))
		return -ENOSPC;
	return lend(node, &node->lease[i], client, req->key);
}

/* --- messages --- */

static int handle_node(struct node *node, const struct rpc_msg *msg, struct nvfs_told *told)
{
	const unsigned other = msg->client - members_client(&node->params, 0);
	const struct nvfs_lens *lens = msg->bytes;
	if (lens->op == NVFS_PACKET && msg->len == sizeof(struct nvfs_packet))
		return node_packet(node, msg->bytes, &told->failed);
	if (other >= NVFS_NODES || msg->len != nvfs_lens_bytes(node->pool.blocks))
		return -EPROTO;
	switch (lens->op) {
	case NVFS_SETUP:
		for (unsigned i = 0; i < NVFS_NODES; i++)
			if (i != other)
				rpc_server_drop(&node->rpc, members_client(&node->params, i));
		told->failed = node_set_up(node, lens);
		return 0;
	case NVFS_COPY:
		return node_copy_to(node, other);
	case NVFS_COPIED:
		node_copied(node);
		return 0;
	case NVFS_ENTER:
		return node_take_in(node, other, lens);
	default:
		return -EPROTO;
	}
}

static size_t handle(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct node *node = arg;
	struct nvfs_found *found = reply;
	struct nvfs_told *told = reply;
	const struct kv_req *req = msg->bytes;
	size_t len = sizeof(*found);
	if (cap < sizeof(*found) || msg->has_imm || !msg->len)
		return 0;
	node_lock(node);
	if (msg->client > node->params.clients) {
		told->status = handle_node(node, msg, told);
		len = sizeof(*told);
	} else {
		found->status = kv_is_request(msg, false)
					? handle_client(node, req, msg->client, found)
					: -EPROTO;
	}
	node_unlock(node);
	return len;
}

static size_t message_bytes(const struct node *node)
{
	const size_t lens = nvfs_lens_bytes(node->pool.blocks);
	return lens > sizeof(struct nvfs_packet) ? lens : sizeof(struct nvfs_packet);
}

/* Clients need not wait for the pipeline longer than it takes. */
static void wait_for_pipeline(const struct node *node)
{
	const uint64_t until = rt_now() + PATIENCE_NS;
	struct rt_config now;
	do
		rt_config_get(&now);
	while (node->generation != now.epoch && now.alive & members_bit(&node->env) &&
	       rt_now() < until);
}

/* What a member has acknowledged is durable; how much of it counts, the head says. */
int nvfs_recover(const struct tm_env *env)
{
	(void)env;
	return 0;
}

int nvfs_serve(const struct tm_env *env)
{
	struct node *node = calloc(1, sizeof(*node));
	struct tm_params more;
	const struct tm_env with = members_env_served(env, NVFS_NODES, &more);
	if (!node)
		return -ENOMEM;
	node->params = *env->params;
	node->env = *env;
	node->env.params = &node->params;
	node->pool = nvfs_pool_at(&node->params, env->pm);
	node->lease = calloc(node->pool.blocks, sizeof(*node->lease));
	node->persisted = calloc(node->pool.blocks, sizeof(*node->persisted));
	node->sent = calloc(node->pool.blocks, sizeof(*node->sent));
	node->lens = calloc(1, nvfs_lens_bytes(node->pool.blocks));
	if (!node->lease || !node->persisted || !node->sent || !node->lens)
		return -ENOMEM;
	int rc = rpc_server_init(&node->rpc, &with, message_bytes(node), handle, node);
	if (!rc)
		rc = kv_server_start(&node->rpc, node->pool.blocks_at,
				     node->pool.blocks * node->pool.block_bytes);
	if (!rc)
		rc = rt_spawn("keeper", node_keeper, node);
	if (!rc)
		wait_for_pipeline(node);
	return rc;
}
