/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record_loopback POOL: two queue pairs of one process, of which one writes a pool that is mapped
 * as any file is: an RDMA WRITE, a compare-and-swap, a SEND into a receive buffer, and a READ whose
 * answer lands there. tidemark record must have each. Between them the CPU stores, too.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "record_verbs.h"

#define POOL 8192

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	NEED(fd >= 0 && !ftruncate(fd, POOL));
	uint64_t *pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(pool != MAP_FAILED);
	union ibv_gid gid;
	struct ibv_context *context = open_device(&gid);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	static uint64_t dram[128];
	struct ibv_mr *pm = ibv_reg_mr(pd, pool, POOL, ALL_RIGHTS),
		      *mr = ibv_reg_mr(pd, dram, sizeof(dram), ALL_RIGHTS);
	NEED(pd && cq && pm && mr);
	struct ibv_qp *a = make(pd, cq), *b = make(pd, cq);
	join(a, b->qp_num, &gid);
	join(b, a->qp_num, &gid);

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
