/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pair of programs on librpma: "rpma server MODE PORT" and "rpma client MODE ADDRESS PORT". The
 * server offers memory and says where it is in its private data, the client works on it, or both
 * exchange messages; the receiver checks that it got what was sent. 0: all as it should be. A
 * server that has said "ready" listens.
 */
#include <arpa/inet.h>
#include <librpma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEN    65536 /* bytes of each side's memory */
#define ROUNDS 50
#define MSG    256

static const char *mode;
static struct rpma_peer *peer;
static struct rpma_conn *conn;
static struct rpma_mr_local *mr;
static struct rpma_srq *srq;
static unsigned char *mem;

static void check(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s: %s\n", mode, what, rpma_err_2str(rc));
	exit(1);
}

static void require(bool what, const char *expected)
{
	if (what)
		return;
	fprintf(stderr, "%s: expected %s\n", mode, expected);
	exit(1);
}

static bool is(const char *name)
{
	return !strcmp(mode, name);
}

static void fill(unsigned char *to, unsigned seed, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

static bool filled(const unsigned char *at, unsigned seed, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != (unsigned char)(seed * 31 + i * 7 + (i >> 8)))
			return false;
	return true;
}

/* The next completion of a send, or receive. The queue may be that of both: what comes before it is
 * for later. */
static struct ibv_wc next(struct rpma_cq *cq, bool receive)
{
	static struct ibv_wc early[2];
	static bool is_early[2];
	struct ibv_wc wc;
	bool is_receive;
	int rc;

	while (!is_early[receive]) {
		while ((rc = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
			check(rpma_cq_wait(cq), "rpma_cq_wait");
		check(rc, "rpma_cq_get_wc");
		if (wc.status != IBV_WC_SUCCESS)
			fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
		require(wc.status == IBV_WC_SUCCESS, "a completion without an error");
		is_receive = wc.opcode & IBV_WC_RECV;
		require(!is_early[is_receive], "one completion for each request");
		early[is_receive] = wc;
		is_early[is_receive] = true;
	}
	is_early[receive] = false;
	return early[receive];
}

static struct ibv_wc sent(void)
{
	struct rpma_cq *cq;

	check(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
	return next(cq, false);
}

static struct ibv_wc received(void)
{
	struct rpma_cq *cq = NULL;

	if (srq)
		check(rpma_srq_get_rcq(srq, &cq), "rpma_srq_get_rcq");
	else
		check(rpma_conn_get_rcq(conn, &cq), "rpma_conn_get_rcq");
	if (!cq)
		check(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
	return next(cq, true);
}

static void post_receive(size_t offset)
{
	if (srq)
		check(rpma_srq_recv(srq, mr, offset, MSG, NULL), "rpma_srq_recv");
	else
		check(rpma_recv(conn, mr, offset, MSG, NULL), "rpma_recv");
}

static void await(enum rpma_conn_event expected)
{
	enum rpma_conn_event event;

	check(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	if (event != expected)
		fprintf(stderr, "event: %s\n", rpma_utils_conn_event_2str(event));
	require(event == expected, rpma_utils_conn_event_2str(expected));
}

static void open_peer(const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *device;

	check(rpma_utils_get_ibv_context(address, type, &device), "rpma_utils_get_ibv_context");
	check(rpma_peer_new(device, &peer), "rpma_peer_new");
	mem = aligned_alloc(4096, LEN);
	require(mem, "memory");
	memset(mem, 0, LEN);
	check(rpma_mr_reg(peer, mem, LEN,
			  RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
				  RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
				  RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
				  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
				  (is("persistent") ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : 0),
			  &mr),
	      "rpma_mr_reg");
}

static struct rpma_conn_cfg *config(void)
{
	struct rpma_conn_cfg *cfg;

	check(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
	check(rpma_conn_cfg_set_sq_size(cfg, 64), "sq_size");
	check(rpma_conn_cfg_set_rq_size(cfg, 64), "rq_size");
	check(rpma_conn_cfg_set_cq_size(cfg, 128), "cq_size");
	if (is("rcq"))
		check(rpma_conn_cfg_set_rcq_size(cfg, 64), "rcq_size");
	if (is("channel")) {
		check(rpma_conn_cfg_set_rcq_size(cfg, 64), "rcq_size");
		check(rpma_conn_cfg_set_compl_channel(cfg, true), "compl_channel");
	}
	if (is("srq")) {
		struct rpma_srq_cfg *srq_cfg;

		if (!srq) {
			check(rpma_srq_cfg_new(&srq_cfg), "rpma_srq_cfg_new");
			check(rpma_srq_new(peer, srq_cfg, &srq), "rpma_srq_new");
			check(rpma_srq_cfg_delete(&srq_cfg), "rpma_srq_cfg_delete");
		}
		check(rpma_conn_cfg_set_srq(cfg, srq), "srq");
	}
	return cfg;
}

/* --- what is done --- */

static bool messages(void)
{
	return is("messages") || is("rcq") || is("channel") || is("srq") || is("send-imm") ||
	       is("write-imm");
}

/* Waits on the one channel of both queues, where there is one. An event of the other one is for
 * later. */
static void wait_channel(bool receive)
{
	static unsigned events[2];
	struct rpma_cq *cq;
	bool is_rcq;

	if (!is("channel"))
		return;
	while (!events[receive]) {
		check(rpma_conn_wait(conn, 0, &cq, &is_rcq), "rpma_conn_wait");
		events[is_rcq]++;
	}
	events[receive]--;
}

static void client_messages(struct rpma_mr_remote *remote)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_receive(MSG);
		fill(mem, i, MSG);
		if (is("write-imm"))
			check(rpma_write_with_imm(conn, remote, 8192, mr, 0, MSG,
						  RPMA_F_COMPLETION_ALWAYS, i, NULL),
			      "rpma_write_with_imm");
		else if (is("send-imm"))
			check(rpma_send_with_imm(conn, mr, 0, MSG, RPMA_F_COMPLETION_ALWAYS, i,
						 NULL),
			      "rpma_send_with_imm");
		else
			check(rpma_send(conn, mr, 0, MSG, RPMA_F_COMPLETION_ALWAYS, NULL),
			      "rpma_send");
		wait_channel(false);
		sent();
		wait_channel(true);
		received();
		require(filled(mem + MSG, i + 1, MSG), "the answer");
	}
}

static void server_messages(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_wc wc;

		wait_channel(true);
		wc = received();
		if (is("write-imm") || is("send-imm"))
			require(wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htonl(i),
				"the immediate data");
		require(filled(mem + (is("write-imm") ? 8192 : 0), i, MSG), "the request");
		post_receive(0);
		fill(mem + MSG, i + 1, MSG);
		check(rpma_send(conn, mr, MSG, MSG, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_send");
		wait_channel(false);
		sent();
	}
}

/* One-sided: what was written is read back. */
static void client_accesses(struct rpma_mr_remote *remote)
{
	enum rpma_flush_type type = is("persistent") ? RPMA_FLUSH_TYPE_PERSISTENT
						     : RPMA_FLUSH_TYPE_VISIBILITY;

	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t len = LEN / 4, at = i * 64 % (LEN / 4);

		fill(mem, i, len);
		if (is("read")) {
			check(rpma_read(conn, mr, 0, remote, LEN / 2, len, RPMA_F_COMPLETION_ALWAYS,
					NULL),
			      "rpma_read");
			sent();
			require(filled(mem, 77, len), "what the server has");
			continue;
		}
		if (is("atomic")) {
			char word[8];

			memcpy(word, mem + at, sizeof(word));
			len = sizeof(word);
			check(rpma_atomic_write(conn, remote, at, word, RPMA_F_COMPLETION_ALWAYS,
						NULL),
			      "rpma_atomic_write");
			sent();
			check(rpma_read(conn, mr, LEN / 2, remote, at, len,
					RPMA_F_COMPLETION_ALWAYS, NULL),
			      "rpma_read");
			sent();
			require(!memcmp(mem + LEN / 2, word, len), "the word");
			continue;
		}
		check(rpma_write(conn, remote, at, mr, 0, len, RPMA_F_COMPLETION_ON_ERROR, NULL),
		      "rpma_write");
		check(rpma_flush(conn, remote, at, len, type, RPMA_F_COMPLETION_ALWAYS, NULL),
		      "rpma_flush");
		sent();
		check(rpma_read(conn, mr, LEN / 2, remote, at, len, RPMA_F_COMPLETION_ALWAYS, NULL),
		      "rpma_read");
		sent();
		require(filled(mem + LEN / 2, i, len), "what was written");
	}
}

/* --- both ends --- */

static void hang_up(bool first)
{
	if (first)
		check(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
	await(RPMA_CONN_CLOSED);
	if (!first)
		check(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
	check(rpma_conn_delete(&conn), "rpma_conn_delete");
}

static void serve_one(struct rpma_ep *ep, struct rpma_conn_cfg *cfg)
{
	/* Where the memory is, and that one may flush it to PM. */
	struct {
		unsigned char peer_len, mr_len, text[194]; /* an answer has room for 196 */
	} offer = {0};
	struct rpma_conn_private_data data = {&offer, sizeof(offer)};
	struct rpma_conn_req *req;
	struct rpma_peer_cfg *pcfg;
	size_t len;

	check(rpma_ep_next_conn_req(ep, cfg, &req), "rpma_ep_next_conn_req");
	check(rpma_mr_get_descriptor_size(mr, &len), "descriptor_size");
	offer.mr_len = (unsigned char)len;
	check(rpma_mr_get_descriptor(mr, offer.text), "descriptor");
	check(rpma_peer_cfg_new(&pcfg), "rpma_peer_cfg_new");
	check(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, is("persistent")),
	      "direct_write_to_pmem");
	check(rpma_peer_cfg_get_descriptor_size(pcfg, &len), "peer descriptor_size");
	offer.peer_len = (unsigned char)len;
	check(rpma_peer_cfg_get_descriptor(pcfg, offer.text + offer.mr_len), "peer descriptor");
	check(rpma_peer_cfg_delete(&pcfg), "rpma_peer_cfg_delete");
	fill(mem + LEN / 2, 77, LEN / 4);
	if (messages() && srq)
		post_receive(0);
	else if (messages())
		check(rpma_conn_req_recv(req, mr, 0, MSG, NULL), "rpma_conn_req_recv");
	check(rpma_conn_req_connect(&req, &data, &conn), "rpma_conn_req_connect");
	await(RPMA_CONN_ESTABLISHED);
	if (messages())
		server_messages();
	hang_up(false);
}

static void serve(const char *address, const char *port)
{
	struct rpma_conn_cfg *cfg;
	struct rpma_ep *ep;

	open_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	cfg = config();
	check(rpma_ep_listen(peer, address, port, &ep), "rpma_ep_listen");
	puts("ready");
	fflush(stdout);
	for (unsigned i = 0; i < (is("many") ? 10 : 1); i++)
		serve_one(ep, cfg);
	check(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
	check(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
}

static void call(const char *address, const char *port)
{
	struct rpma_conn_cfg *cfg = config();
	struct rpma_conn_private_data data;
	struct rpma_mr_remote *remote;
	struct rpma_peer_cfg *pcfg;
	struct rpma_conn_req *req;
	const unsigned char *offer;

	check(rpma_conn_req_new(peer, address, port, cfg, &req), "rpma_conn_req_new");
	check(rpma_conn_req_connect(&req, NULL, &conn), "rpma_conn_req_connect");
	await(RPMA_CONN_ESTABLISHED);
	check(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
	require(data.ptr && data.len > 2, "private data");
	offer = data.ptr;
	check(rpma_mr_remote_from_descriptor(offer + 2, offer[1], &remote),
	      "rpma_mr_remote_from_descriptor");
	check(rpma_peer_cfg_from_descriptor(offer + 2 + offer[1], offer[0], &pcfg),
	      "rpma_peer_cfg_from_descriptor");
	check(rpma_conn_apply_remote_peer_cfg(conn, pcfg), "rpma_conn_apply_remote_peer_cfg");
	check(rpma_peer_cfg_delete(&pcfg), "rpma_peer_cfg_delete");
	if (messages())
		client_messages(remote);
	else if (!is("connect"))
		client_accesses(remote);
	check(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
	hang_up(true);
	check(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"connect",	  "many",   "read",	"write",
					    "persistent", "atomic", "messages", "rcq",
					    "channel",	  "srq",    "send-imm", "write-imm"};
	bool known = false;

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	if (argc == 5) {
		mode = argv[2];
		for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++)
			known |= is(modes[i]);
	}
	if (!known) {
		fprintf(stderr, "usage: rpma server|client MODE ADDRESS PORT; modes:");
		for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++)
			fprintf(stderr, " %s", modes[i]);
		fputc('\n', stderr);
		return 2;
	}
	if (!strcmp(argv[1], "server")) {
		serve(argv[3], argv[4]);
	} else {
		open_peer(argv[3], RPMA_UTIL_IBV_CONTEXT_REMOTE);
		for (unsigned i = 0; i < (is("many") ? 10 : 1); i++)
			call(argv[3], argv[4]);
	}
	if (srq)
		check(rpma_srq_delete(&srq), "rpma_srq_delete");
	check(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	check(rpma_peer_delete(&peer), "rpma_peer_delete");
	free(mem);
	return 0;
}
