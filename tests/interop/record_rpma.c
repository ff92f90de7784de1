/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A log in a server's PM that a client appends to by librpma alone: "record_rpma server POOL PORT"
 * offers the pool, "record_rpma client PORT N [bug|reuse]" appends N entries and then their number,
 * "record_rpma POOL", or over RDMA "record_rpma reader PORT", looks whether each entry that is
 * counted is whole. The bug: the number is written before the entry is flushed. Reuse: an entry's
 * buffer is cleared for the next one before it has been sent.
 */
#include <fcntl.h>
#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POOL	8192
#define ENTRY	128 /* bytes */
#define ADDRESS "127.0.0.1"

static void need(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(rc));
	exit(9);
}

static void await(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event;
	need(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	if (event != expected)
		exit(8);
}

static uint8_t *map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, POOL))
		exit(7);
	void *at = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		exit(7);
	return at;
}

static int check(const uint8_t *pool)
{
	uint64_t n;
	memcpy(&n, pool, sizeof(n));
	for (uint64_t i = 1; i <= n && (i + 1) * ENTRY <= POOL; i++)
		for (unsigned k = 0; k < ENTRY; k++)
			if (pool[i * ENTRY + k] != (uint8_t)(i + k))
				return 1;
	return 0;
}

static struct rpma_peer *open_peer(enum rpma_util_ibv_context_type type)
{
	struct ibv_context *device;
	struct rpma_peer *peer;
	need(rpma_utils_get_ibv_context(ADDRESS, type, &device), "rpma_utils_get_ibv_context");
	need(rpma_peer_new(device, &peer), "rpma_peer_new");
	return peer;
}

static int serve(const char *path, const char *port)
{
	uint8_t *pool = map(path);
	struct rpma_peer *peer = open_peer(RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_mr_local *mr;
	struct rpma_ep *ep;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	uint8_t descriptor[64];
	size_t bytes;
	need(rpma_mr_reg(peer, pool, POOL,
			 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
				 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
			 &mr),
	     "rpma_mr_reg");
	need(rpma_mr_get_descriptor_size(mr, &bytes), "descriptor");
	if (bytes > sizeof(descriptor))
		return 6;
	need(rpma_mr_get_descriptor(mr, descriptor), "descriptor");
	struct rpma_conn_private_data data = {descriptor, (uint8_t)bytes};
	need(rpma_ep_listen(peer, ADDRESS, port, &ep), "rpma_ep_listen");
	puts("ready");
	fflush(stdout);
	need(rpma_ep_next_conn_req(ep, NULL, &req), "rpma_ep_next_conn_req");
	need(rpma_conn_req_connect(&req, &data, &conn), "rpma_conn_req_connect");
	await(conn, RPMA_CONN_ESTABLISHED);
	await(conn, RPMA_CONN_CLOSED);
	need(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
	need(rpma_conn_delete(&conn), "rpma_conn_delete");
	need(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
	need(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	need(rpma_peer_delete(&peer), "rpma_peer_delete");
	return 0;
}

/* A client, with POOL bytes of its own, page-aligned. */
struct client {
	uint8_t *mem;
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct rpma_conn *conn;
};

static struct client enter(const char *port)
{
	struct client c = {.mem = aligned_alloc(4096, POOL),
			   .peer = open_peer(RPMA_UTIL_IBV_CONTEXT_REMOTE)};
	struct rpma_peer_cfg *cfg;
	struct rpma_conn_req *req;
	struct rpma_conn_private_data data;
	need(rpma_mr_reg(c.peer, c.mem, POOL, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
			 &c.mr),
	     "rpma_mr_reg");
	need(rpma_conn_req_new(c.peer, ADDRESS, port, NULL, &req), "rpma_conn_req_new");
	need(rpma_conn_req_connect(&req, NULL, &c.conn), "rpma_conn_req_connect");
	await(c.conn, RPMA_CONN_ESTABLISHED);
	need(rpma_conn_get_private_data(c.conn, &data), "private data");
	need(rpma_mr_remote_from_descriptor(data.ptr, data.len, &c.remote), "remote");
	/* The server's platform lets RNICs write to PM past the caches. */
	need(rpma_peer_cfg_new(&cfg), "rpma_peer_cfg_new");
	need(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true), "direct write");
	need(rpma_conn_apply_remote_peer_cfg(c.conn, cfg), "remote peer cfg");
	need(rpma_peer_cfg_delete(&cfg), "rpma_peer_cfg_delete");
	return c;
}

static void leave(struct client *c)
{
	need(rpma_conn_disconnect(c->conn), "rpma_conn_disconnect");
	await(c->conn, RPMA_CONN_CLOSED);
	need(rpma_mr_remote_delete(&c->remote), "remote");
	need(rpma_conn_delete(&c->conn), "rpma_conn_delete");
	need(rpma_mr_dereg(&c->mr), "rpma_mr_dereg");
	need(rpma_peer_delete(&c->peer), "rpma_peer_delete");
	free(c->mem);
}

/* The next completion. */
static void complete(const struct client *c)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	need(rpma_conn_get_cq(c->conn, &cq), "rpma_conn_get_cq");
	int rc;
	while ((rc = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		need(rpma_cq_wait(cq), "rpma_cq_wait");
	need(rc, "rpma_cq_get_wc");
	if (wc.status != IBV_WC_SUCCESS)
		exit(5);
}

/* Without FLUSH, librpma itself reads what was written: old cards had no other way. */
static void flush(const struct client *c, size_t off, size_t len)
{
	need(rpma_flush(c->conn, c->remote, off, len, RPMA_FLUSH_TYPE_PERSISTENT,
			RPMA_F_COMPLETION_ALWAYS, NULL),
	     "rpma_flush");
	complete(c);
}

static int append(const char *port, int n, bool bug, bool reuse)
{
	struct client c = enter(port);
	for (uint64_t i = 1; i <= (uint64_t)n; i++) {
		for (unsigned k = 0; k < ENTRY; k++)
			c.mem[64 + k] = (uint8_t)(i + k);
		need(rpma_write(c.conn, c.remote, i * ENTRY, c.mr, 64, ENTRY,
				RPMA_F_COMPLETION_ON_ERROR, NULL),
		     "rpma_write");
		if (reuse)
			memset(c.mem + 64, 0, ENTRY);
		if (!bug)
			flush(&c, i * ENTRY, ENTRY);
		char number[sizeof(i)];
		memcpy(number, &i, sizeof(i));
		need(rpma_atomic_write(c.conn, c.remote, 0, number, RPMA_F_COMPLETION_ON_ERROR,
				       NULL),
		     "rpma_atomic_write");
		flush(&c, 0, sizeof(i));
	}
	leave(&c);
	return 0;
}

static int read_back(const char *port)
{
	struct client c = enter(port);
	need(rpma_read(c.conn, c.mr, 0, c.remote, 0, POOL, RPMA_F_COMPLETION_ALWAYS, NULL),
	     "rpma_read");
	complete(&c);
	int bad = check(c.mem);
	leave(&c);
	return bad;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return check(map(argv[1]));
	if (argc == 4 && !strcmp(argv[1], "server"))
		return serve(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "reader"))
		return read_back(argv[2]);
	if (argc >= 4 && !strcmp(argv[1], "client"))
		return append(argv[2], atoi(argv[3]), argc > 4 && !strcmp(argv[4], "bug"),
			      argc > 4 && !strcmp(argv[4], "reuse"));
	return 2;
}
