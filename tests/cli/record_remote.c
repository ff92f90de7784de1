/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record_remote POOL how: a server with PM, and a client that puts a value there which spans lines,
 * and a word after it which says that it is whole:
 *
 *	one	by one RDMA WRITE, counting on its bytes to land from the left
 *	two	by two, counting on messages to land one after the other
 *	read	with a READ between them; but it counts on the completion of the last WRITE, too
 *	right	and with a READ after the last
 *
 * Then it says that the value is put. The server does nothing meanwhile.
 *
 * record_remote POOL dump: "a VALUE" if the word is there; status 1 if the value is not whole then.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/record/record.h"
#include "record_verbs.h"

#define POOL  4096
#define WORDS 32 /* of the value; the next one is the word after it */

struct address {
	union ibv_gid gid;
	uint32_t qp, rkey;
	uint64_t pool;
};

static int to_server[2], to_client[2];

static void exchange(int out, int in, const struct address *mine, struct address *other)
{
	NEED(write(out, mine, sizeof(*mine)) == sizeof(*mine));
	NEED(read(in, other, sizeof(*other)) == sizeof(*other));
}

static void serve(uint64_t *pool)
{
	struct address mine = {.pool = (uintptr_t)pool}, client;
	struct ibv_context *context = open_device(&mine.gid);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr = ibv_reg_mr(pd, pool, POOL, ALL_RIGHTS);
	struct ibv_qp *qp = make(pd, ibv_create_cq(context, 16, NULL, NULL, 0));
	char end;
	NEED(mr);
	mine.qp = qp->qp_num;
	mine.rkey = mr->rkey;
	exchange(to_client[1], to_server[0], &mine, &client);
	join(qp, client.qp, &client.gid);
	NEED(write(to_client[1], "r", 1) == 1); /* ready */
	NEED(read(to_server[0], &end, 1) == 1);
}

static void put(const char *how)
{
	static uint64_t value[WORDS + 1], back;
	struct address mine = {0}, server;
	struct ibv_context *context = open_device(&mine.gid);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr = ibv_reg_mr(pd, value, sizeof(value), ALL_RIGHTS),
		      *word = ibv_reg_mr(pd, &back, sizeof(back), ALL_RIGHTS);
	struct ibv_qp *qp = make(pd, ibv_create_cq(context, 16, NULL, NULL, 0));
	char ready;
	NEED(mr && word);
	mine.qp = qp->qp_num;
	exchange(to_server[1], to_client[0], &mine, &server);
	join(qp, server.qp, &server.gid);
	NEED(read(to_client[0], &ready, 1) == 1);
	for (unsigned i = 0; i <= WORDS; i++)
		value[i] = 7;
	struct ibv_send_wr write_it = {.opcode = IBV_WR_RDMA_WRITE,
				       .wr.rdma = {server.pool, server.rkey}},
			   look = {.opcode = IBV_WR_RDMA_READ,
				   .wr.rdma = {server.pool, server.rkey}};
	tidemark_record_call(1, "put a 7");
	if (!strcmp(how, "one")) {
		post(qp, write_it, mr, value, sizeof(value));
	} else {
		post(qp, write_it, mr, value, WORDS * 8);
		if (strcmp(how, "two") != 0)
			post(qp, look, word, &back, sizeof(back));
		write_it.wr.rdma.remote_addr += WORDS * 8;
		post(qp, write_it, mr, value + WORDS, 8);
	}
	if (!strcmp(how, "right"))
		post(qp, look, word, &back, sizeof(back));
	tidemark_record_return(1, "ok");
	NEED(write(to_server[1], "e", 1) == 1);
}

static int dump(const uint64_t *pool)
{
	for (unsigned i = 0; i < WORDS && pool[WORDS]; i++)
		if (pool[i] != 7)
			return 1;
	if (pool[WORDS])
		puts("a 7");
	return 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	NEED(fd >= 0 && !ftruncate(fd, POOL));
	if (!strcmp(argv[2], "dump"))
		return dump(mmap(NULL, POOL, PROT_READ, MAP_SHARED, fd, 0));
	NEED(!pipe(to_server) && !pipe(to_client));
	pid_t client = fork();
	if (!client) {
		put(argv[2]);
		return 0;
	}
	serve(mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	int status;
	NEED(waitpid(client, &status, 0) == client);
	return status != 0;
}
