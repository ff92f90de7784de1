/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store on two machines, each with PM. The client writes its values to the server by RDMA, one
 * after the other, and keeps in its own PM how many were confirmed.
 *
 * record_machines serve POOL HOW	prints its TCP port first
 * record_machines put POOL HOW ADDRESS PORT
 *	HOW	send	a SEND says that a value was written, and another one that it is durable
 *		tcp	the same by the TCP connection
 *		early	as send, but the server confirms a value before it is durable
 *		hasty	as tcp, but likewise
 *		read	the client reads the value back, and the server, which knows nothing of it,
 *			makes nothing durable; with --knob ddio=off the READ does
 * record_machines beside x: a process that has the device open, and says so
 * record_machines dump SERVER CLIENT: "vI VALUE" for each value that the server has
 * record_machines check SERVER CLIENT: status 1 if a value was confirmed and the server has it not
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/record/record.h"
#include "record_verbs.h"

#define POOL   4096
#define VALUES 3
#define STEP   64 /* bytes from value to value */
#define NOBODY 99 /* the value 0 is none */

struct address {
	union ibv_gid gid;
	uint32_t qp, rkey;
	uint64_t pool;
};

static const char *how;
static struct ibv_mr *mr, *word;
static struct ibv_qp *qp;
static struct address other;
static uint64_t number;
static bool by_tcp, is_early;
static int tcp;

static uint64_t *map_pool(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	NEED(fd >= 0 && !ftruncate(fd, POOL));
	uint64_t *pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(pool != MAP_FAILED);
	return pool;
}

static void receive(void)
{
	struct ibv_sge sge = {(uintptr_t)&number, sizeof(number), word->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	NEED(!ibv_post_recv(qp, &wr, &bad));
}

/* Both ends are connected, and each has a receive request. */
static void meet(uint64_t *pool)
{
	struct address mine = {.pool = (uintptr_t)pool};
	struct ibv_context *context = open_device(&mine.gid);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	char ready = 'r';
	mr = ibv_reg_mr(pd, pool, POOL, ALL_RIGHTS);
	word = ibv_reg_mr(pd, &number, sizeof(number), ALL_RIGHTS);
	NEED(mr && word);
	qp = make(pd, ibv_create_cq(context, 16, NULL, NULL, 0));
	mine.qp = qp->qp_num;
	mine.rkey = mr->rkey;
	NEED(write(tcp, &mine, sizeof(mine)) == sizeof(mine));
	NEED(recv(tcp, &other, sizeof(other), MSG_WAITALL) == sizeof(other));
	join(qp, other.qp, &other.gid);
	receive();
	NEED(write(tcp, &ready, 1) == 1 && read(tcp, &ready, 1) == 1);
}

static void send_number(void)
{
	struct ibv_sge sge = {(uintptr_t)&number, sizeof(number), word->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	NEED(!ibv_post_send(qp, &wr, &bad));
	await(qp->send_cq, 1);
}

/* Say which value it is; or hear of it. */
static void tell(void)
{
	if (by_tcp)
		NEED(write(tcp, &number, sizeof(number)) == sizeof(number));
	else
		send_number();
}

static void hear(void)
{
	if (by_tcp) {
		NEED(read(tcp, &number, sizeof(number)) == sizeof(number));
	} else {
		await(qp->recv_cq, 1);
		receive();
	}
}

static void serve(uint64_t *pool)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	int all = socket(AF_INET, SOCK_STREAM, 0);
	NEED(!bind(all, (struct sockaddr *)&at, len) && !listen(all, 1));
	NEED(!getsockname(all, (struct sockaddr *)&at, &len));
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	tcp = accept(all, NULL, NULL);
	NEED(tcp >= 0);
	meet(pool);
	for (unsigned i = 1; i <= VALUES && strcmp(how, "read") != 0; i++) {
		hear();
		if (is_early)
			tell();
		NEED(!msync(pool, POOL, MS_SYNC));
		if (!is_early)
			tell();
	}
	NEED(read(tcp, &number, sizeof(number)) > 0); /* the end */
}

static void put(uint64_t *pool, const char *address, int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = inet_addr(address)};
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	NEED(!connect(tcp, (struct sockaddr *)&to, sizeof(to)));
	meet(pool);
	for (uint64_t i = 1; i <= VALUES; i++) {
		struct ibv_send_wr request = {.opcode = IBV_WR_RDMA_WRITE,
					      .wr.rdma = {other.pool + i * STEP, other.rkey}};
		char words[40];
		pool[1] = NOBODY + i;
		snprintf(words, sizeof(words), "put v%d %d", (int)i, (int)pool[1]);
		tidemark_record_call(1, words);
		post(qp, request, mr, &pool[1], sizeof(*pool));
		number = i;
		if (!strcmp(how, "read")) {
			request.opcode = IBV_WR_RDMA_READ;
			post(qp, request, word, &number, sizeof(number));
		} else {
			tell();
			hear();
		}
		tidemark_record_return(1, "ok");
		pool[0] = i;
		NEED(!msync(pool, POOL, MS_SYNC));
	}
	NEED(write(tcp, &number, sizeof(number)) == sizeof(number));
}

static int check(const uint64_t *server, const uint64_t *client)
{
	for (uint64_t i = 1; i <= client[0]; i++)
		if (server[i * STEP / 8] != NOBODY + i)
			return 1;
	return 0;
}

static int dump(const uint64_t *server)
{
	for (int i = 1; i <= VALUES; i++)
		if (server[i * STEP / 8])
			printf("v%d %d\n", i, (int)server[i * STEP / 8]);
	return 0;
}

static void be_there(void)
{
	union ibv_gid gid;
	open_device(&gid);
	puts("open");
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "beside"))
		be_there();
	NEED(argc >= 4 && (argc == 6 || strcmp(argv[1], "put") != 0));
	how = argv[3];
	by_tcp = !strcmp(how, "tcp") || !strcmp(how, "hasty");
	is_early = !strcmp(how, "early") || !strcmp(how, "hasty");
	if (!strcmp(argv[1], "check"))
		return check(map_pool(argv[2]), map_pool(argv[3]));
	if (!strcmp(argv[1], "dump"))
		return dump(map_pool(argv[2]));
	if (!strcmp(argv[1], "serve"))
		serve(map_pool(argv[2]));
	else
		put(map_pool(argv[2]), argv[4], atoi(argv[5]));
	return 0;
}
