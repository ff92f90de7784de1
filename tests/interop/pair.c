/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes, each on a device of its own, that look at every byte which they send each other:
 * WRITE, READ, atomics, ATOMIC WRITE, SEND with immediate data to a receiver that is late, SEND
 * that invalidates a memory window, and the key of that. Plain libibverbs; the devices may be of
 * different makes (vm/interop).
 *
 *	pair DEVICE GID-INDEX PORT [HOST]	with HOST: the one that asks;
 *						without: the one that answers
 *
 * Status: 0 all was right, 1 something was not, 2 usage.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BYTES	(1 << 20) /* of each half of the buffer: the peer's, one's own */
#define SENDS	8
#define LIMIT_S 60
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define WORD 0x0123456789abcdefull

#define CHECK(expr)                                                                \
	do {                                                                       \
		if (!(expr)) {                                                     \
			fprintf(stderr, "pair:%d: not so: %s\n", __LINE__, #expr); \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

/* What each has to know of the other. */
struct end {
	uint32_t qpn, psn, rkey, mtu;
	uint64_t va;
	union ibv_gid gid;
};

static const uint32_t sizes[] = {1,    2,    3,	   7,	 8,	64,	1000,
				 1023, 1024, 1025, 4096, 65536, 100001, BYTES};
#define SIZES (sizeof(sizes) / sizeof(*sizes))

static int tcp;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *buf;
static struct end own, peer;

static uint8_t byte_of(uint32_t seed, uint32_t i)
{
	return (uint8_t)((i * 2654435761u >> 13) + seed * 31);
}

static void fill(uint8_t *at, uint32_t seed, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = byte_of(seed, i);
}

static bool filled(const uint8_t *at, uint32_t seed, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (at[i] != byte_of(seed, i))
			return false;
	return true;
}

static void meet(const char *host, uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1, tries = 0;

	CHECK(fd >= 0);
	if (host) {
		CHECK(inet_pton(AF_INET, host, &at.sin_addr) == 1);
		while (connect(fd, (struct sockaddr *)&at, sizeof(at))) {
			CHECK(tries++ < 1200);
			usleep(50000);
		}
		tcp = fd;
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	CHECK(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1));
	tcp = accept(fd, NULL, NULL);
	CHECK(tcp >= 0);
	close(fd);
}

static void exchange(const void *out, void *in, size_t size)
{
	CHECK(write(tcp, out, size) == (ssize_t)size);
	CHECK(recv(tcp, in, size, MSG_WAITALL) == (ssize_t)size);
}

/* Both have come as far as this. */
static void step(void)
{
	char out = 'x', in = 0;

	exchange(&out, &in, 1);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (unsigned i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	return NULL;
}

static void make(const char *device, int gid_index)
{
	struct ibv_context *context = open_device(device);
	struct ibv_qp_init_attr_ex init = {.cap = {64, 64, 1, 1, 0},
					   .qp_type = IBV_QPT_RC,
					   .sq_sig_all = 1,
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE};
	struct ibv_port_attr port;

	CHECK(context);
	CHECK(!ibv_query_port(context, 1, &port));
	CHECK(!ibv_query_gid(context, 1, gid_index, &own.gid));
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 256, NULL, NULL, 0);
	buf = aligned_alloc(4096, 2 * BYTES);
	CHECK(pd && cq && buf);
	mr = ibv_reg_mr(pd, buf, 2 * BYTES, ACCESS | IBV_ACCESS_MW_BIND);
	init.send_cq = init.recv_cq = cq;
	init.pd = pd;
	qp = ibv_create_qp_ex(context, &init);
	CHECK(mr && qp);
	own.qpn = qp->qp_num;
	own.psn = ((uint32_t)getpid() * 7919u | 0xfff000) & 0xffffff; /* wraps on the way */
	own.rkey = mr->rkey;
	own.va = (uintptr_t)buf;
	own.mtu = port.active_mtu;
}

static void connect_qp(int gid_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer.gid,
				    .sgid_index = (uint8_t)gid_index,
				    .hop_limit = 64}},
		.path_mtu = own.mtu < peer.mtu ? own.mtu : peer.mtu,
		.dest_qp_num = peer.qpn,
		.rq_psn = peer.psn,
		.sq_psn = own.psn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 17,
		.retry_cnt = 6,
		.rnr_retry = 7,
	};

	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static struct ibv_wc await(void)
{
	time_t end = time(NULL) + LIMIT_S;
	struct ibv_wc wc;
	int got;

	while (!(got = ibv_poll_cq(cq, 1, &wc))) {
		CHECK(time(NULL) < end);
		sched_yield();
	}
	CHECK(got == 1);
	return wc;
}

/* Work requests are about [off, off + len) of both buffers: the peer's first half, one's own second
 * one. */
static void post(enum ibv_wr_opcode opcode, uint32_t len, uint64_t a, uint64_t b)
{
	struct ibv_sge sge = {(uintptr_t)buf + BYTES, len, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = peer.va;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = a;
		wr.wr.atomic.swap = b;
	} else if (opcode == IBV_WR_SEND_WITH_INV) {
		wr.invalidate_rkey = peer.rkey;
	} else {
		wr.wr.rdma.remote_addr = peer.va;
		wr.wr.rdma.rkey = peer.rkey;
		wr.imm_data = htonl((uint32_t)a);
	}
	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void done(enum ibv_wr_opcode opcode, uint32_t len, uint64_t a, uint64_t b)
{
	struct ibv_wc wc;

	post(opcode, len, a, b);
	wc = await();
	if (wc.status)
		fprintf(stderr, "pair: %s\n", ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS);
}

static void post_receive(uint32_t n)
{
	struct ibv_sge sge = {(uintptr_t)buf + n * (BYTES / SENDS), BYTES / SENDS, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

static void atomic_write(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	uint64_t word = WORD;

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(ex, peer.rkey, peer.va, &word);
	CHECK(!ibv_wr_complete(ex));
	CHECK(await().status == IBV_WC_SUCCESS);
}

static void ask(void)
{
	uint8_t *mine = buf + BYTES;
	uint64_t original;

	for (uint32_t i = 0; i < SIZES; i++) {
		fill(mine, i, sizes[i]);
		done(IBV_WR_RDMA_WRITE, sizes[i], 0, 0);
		memset(mine, 0, sizes[i]);
		done(IBV_WR_RDMA_READ, sizes[i], 0, 0);
		CHECK(filled(mine, i, sizes[i]));
	}
	step(); /* the other one looks, too, ... */
	step(); /* ... and has put a counter there */
	for (uint64_t i = 0; i < 20; i++) {
		done(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 3, 0);
		memcpy(&original, mine, 8);
		CHECK(original == 1000 + 3 * i);
	}
	done(IBV_WR_ATOMIC_CMP_AND_SWP, 8, 1, 2); /* does not match */
	done(IBV_WR_ATOMIC_CMP_AND_SWP, 8, 1060, 77);
	memcpy(&original, mine, 8);
	CHECK(original == 1060);
	step();
	for (uint32_t i = 0; i < SENDS; i++) {
		fill(mine, i, 5000 * i + 1);
		done(IBV_WR_SEND_WITH_IMM, 5000 * i + 1, i, 0);
	}
	done(IBV_WR_RDMA_WRITE_WITH_IMM, 3000, 4711, 0);
	step();
	atomic_write();
	step();
	exchange(&own.rkey, &peer.rkey, sizeof(own.rkey)); /* of a window */
	fill(mine, 99, 2000);
	done(IBV_WR_RDMA_WRITE, 2000, 0, 0);
	done(IBV_WR_SEND_WITH_INV, 4, 0, 0);
	step();
	post(IBV_WR_RDMA_READ, 8, 0, 0);
	CHECK(await().status == IBV_WC_REM_ACCESS_ERR);
	step();
}

/* The key of a window on the first 4096 bytes. */
static uint32_t bind_window(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW}, *bad;

	CHECK(mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		mr, (uintptr_t)buf, 4096, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(await().status == IBV_WC_SUCCESS);
	return wr.bind_mw.rkey;
}

static void answer(void)
{
	uint64_t counter = 1000;
	struct ibv_wc wc;
	uint32_t window;

	step();
	CHECK(filled(buf, SIZES - 1, sizes[SIZES - 1]));
	memcpy(buf, &counter, sizeof(counter));
	step();
	step();
	memcpy(&counter, buf, sizeof(counter));
	CHECK(counter == 77);
	usleep(100000); /* so that the first message meets a receiver that is not ready */
	for (uint32_t i = 0; i < SENDS; i++) {
		post_receive(i);
		wc = await();
		CHECK(!wc.status && wc.opcode == IBV_WC_RECV && wc.byte_len == 5000 * i + 1);
		CHECK(wc.wc_flags & IBV_WC_WITH_IMM && ntohl(wc.imm_data) == i);
		CHECK(filled(buf + i * (BYTES / SENDS), i, wc.byte_len));
	}
	post_receive(0);
	wc = await();
	CHECK(!wc.status && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && ntohl(wc.imm_data) == 4711);
	CHECK(filled(buf, SENDS - 1, 3000));
	step();
	step();
	memcpy(&counter, buf, sizeof(counter));
	CHECK(counter == WORD);
	window = bind_window();
	exchange(&window, &own.rkey, sizeof(window));
	post_receive(SENDS - 1); /* not where the window is */
	wc = await();
	/* rdma_rxe's flag is the kernel's, which has another number here. */
	CHECK(!wc.status && wc.opcode == IBV_WC_RECV &&
	      wc.wc_flags & (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK));
	CHECK(wc.invalidated_rkey == window);
	CHECK(filled(buf, 99, 2000));
	step();
	step();
}

int main(int argc, char **argv)
{
	if (argc < 4 || argc > 5) {
		fprintf(stderr, "pair: expected DEVICE GID-INDEX PORT [HOST]\n");
		return 2;
	}
	make(argv[1], atoi(argv[2]));
	meet(argv[4], (uint16_t)atoi(argv[3]));
	exchange(&own, &peer, sizeof(own));
	connect_qp(atoi(argv[2]));
	step();
	if (argc == 5)
		ask();
	else
		answer();
	printf("pair: %s: all as it should be\n", argv[1]);
	return 0;
}
