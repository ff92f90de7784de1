/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record_loopback POOL: two queue pairs of one process, of which one writes a pool that is mapped
 * as any file is: an RDMA WRITE, a compare-and-swap, a SEND into a receive buffer, and a READ whose
 * answer lands there. tidemark record must have each. Between them the CPU stores, too.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POOL 8192

#define NEED(what)                     \
	do {                           \
		if (!(what)) {         \
			perror(#what); \
			exit(9);       \
		}                      \
	} while (0)

static struct ibv_qp *make(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	NEED(qp);
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return qp;
}

static void join(struct ibv_qp *qp, const struct ibv_qp *to, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .grh = {.dgid = *gid, .hop_limit = 1}, .port_num = 1}};
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .max_rd_atomic = 1};
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void await(struct ibv_cq *cq, unsigned n)
{
	struct ibv_wc wc;
	while (n)
		if (ibv_poll_cq(cq, 1, &wc) == 1) {
			NEED(wc.status == IBV_WC_SUCCESS);
			n--;
		}
}

static void post(struct ibv_qp *qp, struct ibv_send_wr wr, const struct ibv_mr *mr, void *at,
		 uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)at, len, mr->lkey};
	struct ibv_send_wr *bad;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	NEED(!ibv_post_send(qp, &wr, &bad));
	await(qp->send_cq, wr.opcode == IBV_WR_SEND ? 2 : 1);
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	NEED(fd >= 0 && !ftruncate(fd, POOL));
	uint64_t *pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(pool != MAP_FAILED);
	struct ibv_device **list = ibv_get_device_list(NULL);
	NEED(list && list[0]);
	struct ibv_context *context = ibv_open_device(list[0]);
	union ibv_gid gid;
	NEED(context && !ibv_query_gid(context, 1, 0, &gid));
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	static uint64_t dram[128];
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_mr *pm = ibv_reg_mr(pd, pool, POOL, all),
		      *mr = ibv_reg_mr(pd, dram, sizeof(dram), all);
	NEED(pd && cq && pm && mr);
	struct ibv_qp *a = make(pd, cq), *b = make(pd, cq);
	join(a, b, &gid);
	join(b, a, &gid);

	pool[0] = 0xc0; /* stored before the first landing */
	for (unsigned i = 0; i < 16; i++)
		dram[i] = 0x1100 + i;
	struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE,
				    .wr.rdma = {(uintptr_t)&pool[8], pm->rkey}};
	post(a, write, mr, dram, 128);
	struct ibv_send_wr swap = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				   .wr.atomic = {(uintptr_t)&pool[32], 0, 0x5a, pm->rkey}};
	post(a, swap, mr, dram + 20, 8);
	struct ibv_sge receive = {(uintptr_t)&pool[40], 64, pm->lkey};
	struct ibv_recv_wr wr = {.sg_list = &receive, .num_sge = 1}, *bad;
	NEED(!ibv_post_recv(b, &wr, &bad));
	dram[0] = 0x5e4d;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND};
	post(a, send, mr, dram, 8);
	dram[64] = 0x4ead;
	struct ibv_send_wr read = {.opcode = IBV_WR_RDMA_READ,
				   .wr.rdma = {(uintptr_t)&dram[64], mr->rkey}};
	post(a, read, pm, &pool[48], 8);
	NEED(!msync(pool, POOL, MS_SYNC));
	/* A READ of the other queue pair pushes nothing of this one's; its own does. */
	struct ibv_send_wr last = {.opcode = IBV_WR_RDMA_WRITE,
				   .wr.rdma = {(uintptr_t)&pool[64], pm->rkey}},
			   look = {.opcode = IBV_WR_RDMA_READ,
				   .wr.rdma = {(uintptr_t)pool, pm->rkey}};
	post(a, last, mr, dram, 8);
	post(b, look, mr, dram + 100, 8);
	post(a, look, mr, dram + 100, 8);
	/* An atomic reads, and so pushes what was landed before; what it lands itself is pushed by
	 * the next READ. */
	post(a, last, mr, dram + 8, 8);
	swap.wr.atomic = (typeof(swap.wr.atomic)){(uintptr_t)&pool[72], 0, 0x77, pm->rkey};
	post(a, swap, mr, dram + 20, 8);
	post(a, look, mr, dram + 100, 8);
	return 0;
}
