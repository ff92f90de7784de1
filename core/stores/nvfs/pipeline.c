/* SPDX-License-Identifier: BSD-3-Clause */
/* How nodes form a pipeline, and what a node does that is in none. See nvfs.h. */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/nvfs/node.h"

#define MOST_NAP_NS 20000
#define PATIENCE_NS 200000 /* with a node that boots */

static bool has_copy(const struct node *node)
{
	return *node->pool.generation != NVFS_COPYING;
}

static void set_generation(const struct node *node, uint64_t generation)
{
	__atomic_store_n(node->pool.generation, generation, __ATOMIC_SEQ_CST);
	pmem_persist(node->pool.generation, sizeof(uint64_t));
}

static void fill_lens(const struct node *node, struct nvfs_lens *lens, enum nvfs_op op)
{
	memset(lens, 0, nvfs_lens_bytes(node->pool.blocks));
	lens->op = (uint8_t)op;
	lens->members = node->members;
	lens->head = node->head;
	lens->generation = node->generation;
	lens->blocks = node->pool.blocks;
	for (uint32_t i = 0; i < lens->blocks; i++)
		lens->len[i] = nvfs_block(&node->pool, i)->len;
}

static int open_to(const struct node *node, struct rpc_conn *conn, unsigned other,
		   size_t data_bytes)
{
	const struct tm_env env = members_env(&node->env, other);
	return rpc_open(conn, &env, nvfs_lens_bytes(node->pool.blocks) + sizeof(struct nvfs_packet),
			data_bytes, NULL);
}

/* --- a new pipeline --- */

/* It may be about to boot. */
static int connect_next(struct node *node, unsigned next)
{
	const uint64_t until = rt_now() + PATIENCE_NS;
	struct rt_config now;
	int rc;
	if (node->connected)
		rpc_close(&node->next);
	do {
		rc = open_to(node, &node->next, next, node->pool.block_bytes);
		if (rc)
			rt_config_get(&now);
	} while (rc && now.alive >> next & 1 && rt_now() < until);
	node->connected = !rc;
	return rc;
}

/* Are the bytes here that this node is to have? Then no others count. */
static bool take_lens(struct node *node, const struct nvfs_lens *lens)
{
	const bool any = has_bug(&node->params, enters_behind);
	if (!has_copy(node))
		return false;
	for (uint32_t i = 0; i < node->pool.blocks; i++)
		if (nvfs_block(&node->pool, i)->len < lens->len[i] && !any)
			return false;
	for (uint32_t i = 0; i < node->pool.blocks; i++) {
		if (nvfs_block(&node->pool, i)->len != lens->len[i])
			node_set_len(node, i, lens->len[i]);
		node->persisted[i] = node->sent[i] = lens->len[i];
	}
	set_generation(node, lens->generation);
	return true;
}

uint32_t node_set_up(struct node *node, const struct nvfs_lens *lens)
{
	struct nvfs_told told = {0};
	size_t len = 0;
	node->serves = false;
	if (!take_lens(node, lens))
		return members_bit(&node->env);
	node->members = lens->members;
	node->head = lens->head;
	node->epoch = lens->generation;
	const unsigned next = nvfs_place(node->members, node->head, node->env.server, 1);
	if (next != node->head) {
		int rc = connect_next(node, next);
		if (!rc)
			rc = rpc_call(&node->next, lens, nvfs_lens_bytes(lens->blocks), &told,
				      sizeof(told), &len);
		if (kv_status(rc, len, &told, sizeof(told)))
			return 1u << next;
	}
	if (!told.failed)
		node->generation = lens->generation;
	return told.failed;
}

int node_form(struct node *node, const struct rt_config *seen, uint32_t members)
{
	const unsigned me = node->env.server;
	struct rt_config now = *seen;
	uint32_t failed = 0;
	do {
		members &= ~failed;
		node->epoch = now.epoch + 1;
		while (members_set(&now, members, me)) {
			/* While this is the head, a member may have asked for a new pipeline. */
			if (now.primary != me || rt_config_get(&now) || now.primary != me) {
				node->serves = false;
				return -EAGAIN;
			}
			node->epoch = now.epoch + 1;
		}
		now = (struct rt_config){.epoch = node->epoch, .primary = me};
		fill_lens(node, node->lens, NVFS_SETUP);
		node->lens->generation = node->epoch;
		node->lens->members = members;
		node->lens->head = me;
		failed = node_set_up(node, node->lens);
	} while (failed);
	node->serves = true;
	return 0;
}

int node_form_again(struct node *node, uint32_t members)
{
	const struct rt_config seen = {.epoch = node->generation, .primary = node->env.server};
	return node_form(node, &seen, members);
}

/* --- a node that comes back, as the head sees it --- */

static int ask(struct node *node, struct rpc_conn *conn, enum nvfs_op op)
{
	struct nvfs_lens *lens = calloc(1, nvfs_lens_bytes(node->pool.blocks));
	struct nvfs_told told;
	size_t len = 0;
	if (!lens)
		return -ENOMEM;
	fill_lens(node, lens, op);
	int rc = rpc_call(conn, lens, nvfs_lens_bytes(node->pool.blocks), &told, sizeof(told),
			  &len);
	free(lens);
	return kv_status(rc, len, &told, sizeof(told));
}

int node_copy_to(struct node *node, unsigned other)
{
	if (!node->serves)
		return -EHOSTDOWN;
	int rc = open_to(node, &node->copy, other, node->pool.block_bytes);
	node->copies_to = other;
	for (uint32_t i = 0; i < node->pool.blocks && !rc; i++) {
		const struct block *block = nvfs_block(&node->pool, i);
		if (block->len)
			rc = rpc_write(&node->copy, 0, i * node->pool.block_bytes, block,
				       sizeof(*block) + block->len);
	}
	/* It says so on the same connection: elsewhere that could overtake the copy. */
	if (!rc)
		rc = ask(node, &node->copy, NVFS_COPIED);
	rpc_close(&node->copy);
	return rc;
}

void node_copied(struct node *node)
{
	for (uint32_t i = 0; i < node->pool.blocks; i++) {
		const struct block *block = nvfs_block(&node->pool, i);
		node_persist(node, block, sizeof(*block) + block->len);
	}
	set_generation(node, 0);
}

int node_take_in(struct node *node, unsigned other, const struct nvfs_lens *lens)
{
	bool behind = false;
	if (!node->serves)
		return -EHOSTDOWN;
	for (uint32_t i = 0; i < node->pool.blocks; i++)
		behind |= lens->len[i] < nvfs_block(&node->pool, i)->len;
	if (behind && !has_bug(&node->params, enters_behind))
		return -EAGAIN;
	return node_form_again(node, node->members | 1u << other);
}

/* --- the keeper --- */

/* Until the whole copy is durable here, the mark says that it is none. */
static int get_copy(struct node *node, struct rpc_conn *head)
{
	node_lock(node);
	set_generation(node, NVFS_COPYING);
	for (uint32_t i = 0; i < node->pool.blocks; i++)
		node_set_len(node, i, 0);
	/* Others may still WRITE here, from the time when it was in a pipeline. */
	for (uint32_t i = 1; i < members_client(&node->params, NVFS_NODES); i++)
		rpc_server_drop(&node->rpc, i);
	node_unlock(node);
	return ask(node, head, NVFS_COPY);
}

static void enter(struct node *node, const struct rt_config *now)
{
	struct rpc_conn conn = {0};
	int rc = open_to(node, &conn, now->primary, TM_LINE);
	if (!rc && (!has_bug(&node->params, enters_behind) || !has_copy(node)))
		rc = get_copy(node, &conn);
	if (!rc)
		ask(node, &conn, NVFS_ENTER);
	rpc_close(&conn);
}

/* The head's lease has ended, or this is the head and has just booted. */
static void lead(struct node *node, const struct rt_config *seen)
{
	node_lock(node);
	for (unsigned i = 0; i < NVFS_NODES; i++)
		if (i != node->env.server)
			rpc_server_drop(&node->rpc, members_client(&node->params, i));
	node_form(node, seen, seen->members & (seen->alive | members_bit(&node->env)));
	node_unlock(node);
}

/* The first member after the head that is alive. */
static unsigned heir(const struct rt_config *now)
{
	return nvfs_place(now->members & now->alive, now->primary, now->primary, 1);
}

/* Nobody waits for a node whose lease has ended, nor for those of an earlier pipeline. */
static void give_up_waiting(struct node *node, const struct rt_config *now)
{
	const unsigned next = nvfs_place(node->members, node->head, node->env.server, 1);
	if (node->connected && (node->epoch < now->epoch || !(now->alive >> next & 1)))
		rpc_break(&node->next);
	if (!(now->alive >> node->copies_to & 1))
		rpc_break(&node->copy);
}

/* The pipeline is not what the configuration says, or one of its nodes is not there. */
static void repair(struct node *node, const struct rt_config *seen)
{
	node_lock(node);
	if (node->serves && (node->generation < seen->epoch ||
			     (node->generation == seen->epoch && seen->members & ~seen->alive)))
		node_form_again(node, node->members & (seen->alive | members_bit(&node->env)));
	node_unlock(node);
}

/* Is all as it should be? If not, do what this node can do about it. */
static bool settle(struct node *node, const struct rt_config *now, uint64_t nap)
{
	const unsigned me = node->env.server;
	const bool alive = now->alive >> now->primary & 1,
		   is_member = now->members & members_bit(&node->env);
	give_up_waiting(node, now);
	if (now->primary == me && node->serves) {
		if (node->generation == now->epoch && !(now->members & ~now->alive))
			return true;
		repair(node, now);
	} else if (now->primary != me && alive && node->generation == now->epoch) {
		return true;
	} else if (!(now->alive & members_bit(&node->env))) {
		return false;
	} else if (has_copy(node) && (now->primary == me || (!alive && heir(now) == me))) {
		lead(node, now);
	} else if (alive && now->primary != me && !(is_member && has_copy(node))) {
		enter(node, now);
	} else if (alive && now->primary != me && nap >= MOST_NAP_NS) {
		members_set(now, now->members, now->primary); /* the head makes a new pipeline */
	}
	return false;
}

void node_keeper(void *arg)
{
	struct node *node = arg;
	const bool lazy = node->params.knob[ACK] == ACK_EARLY ||
			  node->params.knob[PIPELINE] == PIPELINE_FIRST;
	uint64_t nap = KV_NAP_NS;
	struct rt_config now;
	rt_config_get(&now);
	for (;;) {
		node->config = now;
		const bool settled = settle(node, &now, nap);
		if (lazy) {
			node_lock(node);
			node_catch_up(node);
			node_unlock(node);
		}
		if (settled && !lazy && !rt_config_wait(&now)) {
			nap = KV_NAP_NS;
		} else {
			kv_nap_to(&nap, MOST_NAP_NS);
			rt_config_get(&now);
		}
	}
}
