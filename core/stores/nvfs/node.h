/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_NVFS_NODE_H
#define TM_STORES_NVFS_NODE_H
/* A DataNode: what node.c and pipeline.c share. */
#include "core/stores/nvfs/nvfs.h"

/* Who may write at the end of a block. */
struct nvfs_lease {
	uint8_t key[TM_MAX_KEY];
	uint32_t writer; /* 0: nobody */
	uint64_t since;
};

struct node {
	struct tm_params params;
	struct tm_env env;
	struct rpc_server rpc;
	struct nvfs_pool pool;
	struct nvfs_lease *lease; /* of each block */
	uint64_t *persisted;	  /* of each block: what of it is durable (ack=early) */
	struct nvfs_lens *lens;	  /* DRAM: the message to the next node */
	/* The pipeline: what it is to be, and what it is. 0: none yet. */
	uint64_t epoch, generation;
	uint32_t members;
	unsigned head;
	bool connected;
	struct rpc_conn next; /* to the node after this one */
	struct rpc_conn copy; /* to the one that gets a copy */
	unsigned copies_to;
	uint64_t *sent;		 /* of each block: what the next node has (pipeline=first) */
	bool serves;		 /* it is the head, and all others have its lengths */
	struct rt_config config; /* as it was last told */
	bool locked;
};

/* One task of the node at a time changes blocks or the pipeline. */
void node_lock(struct node *node);
void node_unlock(struct node *node);
/* Blocks' lengths, durably. */
void node_set_len(const struct node *node, uint32_t block, uint64_t len);
void node_persist(const struct node *node, const void *at, size_t len);
/* The packet has landed here: bring it to the nodes after this one, and count it. -EHOSTDOWN: one
 * did not answer, *failed says which. */
int node_packet(struct node *node, const struct nvfs_packet *packet, uint32_t *failed);
/* Send what the next node has not got (pipeline=first), persist what is acknowledged (ack=early).
 */
void node_catch_up(struct node *node);

/* --- pipeline.c --- */

/* The next configuration has these members, or those of them that answer, and this head. -EAGAIN:
 * another node was faster. */
int node_form(struct node *node, const struct rt_config *seen, uint32_t members);
/* The same, of the head, as long as it is the head. */
int node_form_again(struct node *node, uint32_t members);
/* Be part of that pipeline, and the nodes after this one, too. Which of them have failed, as
 * bits. */
uint32_t node_set_up(struct node *node, const struct nvfs_lens *lens);
/* NVFS_COPY, NVFS_ENTER of a node; NVFS_COPIED of the head. */
int node_copy_to(struct node *node, unsigned other);
void node_copied(struct node *node);
int node_take_in(struct node *node, unsigned other, const struct nvfs_lens *lens);
/* The task that does all this. */
void node_keeper(void *node);

#endif
