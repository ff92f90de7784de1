/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record_flush POOL WAY: something is landed in PM, a request is to make it durable, and when that
 * has completed the CPU makes a word durable that says so. WAY is what lands it and the request:
 *
 *	write, send		an RDMA WRITE; a SEND into a receive buffer in PM; or
 *	word			the request's own payload
 *	-flush, -commit, -read	RDMA FLUSH, RDMA Commit or READ of all that is PM
 *	-elsewhere		an RDMA FLUSH of the rest of that line
 *	-outside		an RDMA FLUSH of other memory
 *
 * record_flush POOL check: status 1 if the word is there and what it is about is not.
 */
#include <fcntl.h>
#include <libpmem.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/rdma_commit.h"
#include "record_verbs.h"

#define POOL   4096
#define LANDED 7
#define RIGHTS (ALL_RIGHTS | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

static void *map(const char *path, size_t len)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	NEED(fd >= 0 && !ftruncate(fd, (off_t)len));
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(at != MAP_FAILED);
	return at;
}

static void allow_flush(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_access_flags = RIGHTS & ~IBV_ACCESS_LOCAL_WRITE};
	NEED(!ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
}

int main(int argc, char **argv)
{
	NEED(argc == 3);
	uint64_t *pool = map(argv[1], POOL), *other;
	const char *dash = strchr(argv[2], '-');
	if (!strcmp(argv[2], "check"))
		return pool[64] && pool[0] != LANDED;
	NEED(dash);
	other = map("outside", POOL);
	union ibv_gid gid;
	struct ibv_context *context = open_device(&gid);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	static uint64_t dram[8] = {LANDED};
	struct ibv_mr *pm = ibv_reg_mr(pd, pool, POOL, RIGHTS),
		      *outside = ibv_reg_mr(pd, other, POOL, RIGHTS),
		      *mr = ibv_reg_mr(pd, dram, sizeof(dram), ALL_RIGHTS);
	NEED(pd && cq && pm && outside && mr);
	struct ibv_qp *a = make(pd, cq), *b = make(pd, cq);
	join(a, b->qp_num, &gid);
	join(b, a->qp_num, &gid);
	allow_flush(b);

	struct ibv_sge receive = {(uintptr_t)pool, 8, pm->lkey};
	struct ibv_recv_wr wr = {.sg_list = &receive, .num_sge = 1}, *bad;
	struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE,
				    .wr.rdma = {(uintptr_t)pool, pm->rkey}},
			   send = {.opcode = IBV_WR_SEND}, request = {0};
	if (!strncmp(argv[2], "write", 5)) {
		post(a, write, mr, dram, 8);
	} else if (!strncmp(argv[2], "send", 4)) {
		NEED(!ibv_post_recv(b, &wr, &bad));
		post(a, send, mr, dram, 8);
	}
	if (!strncmp(argv[2], "word", 4))
		tm_commit_payload_wr(&request, pm->rkey, (uintptr_t)pool, 8);
	else if (!strcmp(dash, "-commit"))
		tm_commit_wr(&request, pm->rkey, (uintptr_t)pool, POOL);
	else if (!strcmp(dash, "-read"))
		request = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_READ,
					       .wr.rdma = {(uintptr_t)pool, pm->rkey}};
	else if (!strcmp(dash, "-elsewhere"))
		flush_wr(&request, pm->rkey, (uintptr_t)(pool + 1), 56, IBV_FLUSH_PERSISTENT,
			 IBV_FLUSH_RANGE);
	else if (!strcmp(dash, "-outside"))
		flush_wr(&request, outside->rkey, (uintptr_t)other, POOL, IBV_FLUSH_PERSISTENT,
			 IBV_FLUSH_RANGE);
	else
		flush_wr(&request, pm->rkey, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	if (!strncmp(argv[2], "word", 4) || !strcmp(dash, "-read")) {
		post(a, request, mr, dram, 8);
	} else {
		struct ibv_send_wr *refused;
		request.send_flags = IBV_SEND_SIGNALED;
		NEED(!ibv_post_send(a, &request, &refused));
		await(cq, 1);
	}
	pool[64] = 1;
	pmem_persist(pool + 64, 8);
	return 0;
}
