/* SPDX-License-Identifier: BSD-3-Clause */
/* See cost.h. */
#include "checker/models/cost.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/rnic/rnic.h"
#include "scenarios/stores.h"
#include "faultinject/random_source.h"

/* --- RDMA WRITE, post to completion --- */

struct ends {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
};

struct writer {
	struct sim *sim;
	struct rnic_net *net;
	struct pmem *pm;
	uint32_t bytes;
	unsigned writes;
};

static struct ends make_end(struct ibv_context *ctx, void *memory, size_t len, int access)
{
	struct ends e;
	struct ibv_pd *pd = rnic_alloc_pd(ctx);
	e.cq = rnic_create_cq(ctx, 16, NULL, NULL, 0);
	e.mr = rnic_reg_mr(pd, memory, len, access);
	struct ibv_qp_init_attr init = {.send_cq = e.cq,
					.recv_cq = e.cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 16,
						.max_recv_wr = 16,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	e.qp = rnic_create_qp(pd, &init);
	return e;
}

static void join(struct ibv_context *ctx, struct ends *self, struct ibv_context *peer_ctx,
		 const struct ends *peer)
{
	union ibv_gid gid;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_READ};
	(void)ctx;
	rnic_modify_qp(self->qp, &a,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	rnic_query_gid(peer_ctx, 1, 0, &gid);
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = peer->qp->qp_num;
	a.max_dest_rd_atomic = 1;
	a.min_rnr_timer = 12;
	a.ah_attr.is_global = 1;
	a.ah_attr.grh.dgid = gid;
	a.ah_attr.port_num = 1;
	rnic_modify_qp(self->qp, &a,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	rnic_modify_qp(self->qp, &a,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void writer_main(void *arg)
{
	struct writer *w = arg;
	struct ibv_context *server = rnic_open(w->net, HOST_SERVER, w->pm),
			   *client = rnic_open(w->net, 1, NULL);
	uint8_t *buf = sim_alloc(w->sim, w->bytes);
	struct ends se = make_end(server, pmem_base(w->pm), pmem_length(w->pm),
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ends ce = make_end(client, buf, w->bytes, IBV_ACCESS_LOCAL_WRITE);
	join(server, &se, client, &ce);
	join(client, &ce, server, &se);
	for (unsigned i = 0; i < w->writes; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)buf, .length = w->bytes, .lkey = ce.mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = (uintptr_t)pmem_base(w->pm),
						     .rkey = se.mr->rkey}};
		struct ibv_send_wr *bad;
		struct ibv_wc wc;
		sim_repeat_news(w->sim); /* an operation, or the watch for livelocks is paid, too */
		ibv_post_send(ce.qp, &wr, &bad);
		while (!ibv_poll_cq(ce.cq, 1, &wc))
			rt_yield();
	}
	sim_stop(w->sim, SIM_DONE);
}

struct write_cost cost_of_writes(uint32_t bytes)
{
	struct write_cost cost = {0};
	const unsigned writes = 500, rounds = 200;
	struct pmem_stack *stack = pmem_stack_new(1, 65536);
	struct sim *sim = sim_new();
	double spent = 0;
	if (!stack || !sim)
		return cost;
	pmem_load(stack, NULL, 65536);
	uint64_t events = sim_events(sim);
	/* Short rounds: versions of the lines written pile up until the world is reset, as in a
	 * real run. */
	for (unsigned r = 0; r < rounds; r++) {
		struct writer w = {
			.sim = sim, .pm = pmem_machine(stack, 0), .bytes = bytes, .writes = writes};
		sim_reset(sim, NULL);
		pmem_begin(w.pm, sim, &hardware_default);
		w.net = rnic_net_new(sim, &hardware_default);
		sim_spawn(sim, 1, NULL, writer_main, &w);
		double start = clock_seconds();
		sim_run(sim);
		spent += clock_seconds() - start;
		pmem_end(w.pm);
	}
	events = sim_events(sim) - events;
	cost.ns = spent * 1e9 / (rounds * (double)writes);
	cost.events_per_second = (double)events / spent;
	sim_free(sim);
	pmem_stack_free(stack);
	return cost;
}

/* --- crash states --- */

/* The store under a built-in workload, for close_explorer(); NULL: that cannot be. */
static struct explorer *open_explorer(struct setup *s, const struct tm_store *store,
				      const char *workload, bool tree)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct explore_limits limits = explore_default;
	const char *expected;
	limits.no_tree = !tree;
	setup_init(s, store);
	if (ex && !workload_named(workload, &s->w, &expected) && !setup_finish(s) &&
	    !explore_open(ex, s, &limits) && !ex->worlds.unloaded)
		return ex;
	setup_free(s);
	free(ex);
	return NULL;
}

static void close_explorer(struct setup *s, struct explorer *ex)
{
	explore_close(ex);
	setup_free(s);
	free(ex);
}

/* *seconds of so many runs with their power failures. As explore_run(). */
static int explore_runs(struct explorer *ex, unsigned runs, double *seconds)
{
	struct random_source source = {0};
	double start = clock_seconds();
	int error = 0;
	for (unsigned i = 1; i <= runs && !error; i++) {
		random_start(&source, i, 6);
		error = explore_run(ex, &source.source, &source.taken);
	}
	deviations_free(&source.taken);
	*seconds = clock_seconds() - start;
	return error;
}

int cost_of_states(const struct tm_store *store, const char *workload, unsigned runs,
		   struct state_cost *out)
{
	struct setup s[3];
	struct explorer *ex = open_explorer(&s[0], store, workload, true);
	struct explorer *plain = ex ? open_explorer(&s[1], store, workload, false) : NULL;
	struct explorer *timed = plain ? open_explorer(&s[2], store, workload, true) : NULL;
	int error = timed ? 0 : -EIO;
	double unused;
	if (timed) {
		memset(out, 0, sizeof(*out));
		error = explore_runs(ex, runs, &out->seconds);
		if (!error)
			error = explore_runs(plain, runs, &out->no_tree);
		out->recalled = ex->recall.recalled;
		out->learnt = ex->recall.learnt;
		out->rests = ex->recall.rest.recalled;
		out->counts = ex->counts;
		out->led = ex->recall.led;
		out->cuts = ex->recall.cuts_learnt;
		recall_count(&ex->recall, &out->tree);
		timed->phases = &out->phases;
		out->phases.since = clock_seconds();
		if (!error)
			error = explore_runs(timed, runs, &unused);
		close_explorer(&s[2], timed);
	}
	if (plain)
		close_explorer(&s[1], plain);
	if (ex)
		close_explorer(&s[0], ex);
	return error;
}

/* --- where the time of a crash state goes --- */

/* One image again and again, that of the plain run's end. `prove`: with the PUT and GET that prove
 * life. */
static double recoveries(struct explorer *ex, unsigned rounds, bool prove)
{
	struct history_mark mark = history_mark(ex->worlds.history);
	double start = clock_seconds();
	for (unsigned i = 0; i < rounds; i++) {
		world_recover(&ex->worlds, 1, NULL, NULL, NULL, prove);
		history_rewind(ex->worlds.history, &mark);
		world_end(&ex->worlds, 1);
	}
	return (clock_seconds() - start) / rounds;
}

bool cost_of_recovery(const struct tm_store *store, const char *workload, struct recovery_cost *out)
{
	const unsigned rounds = 10000;
	struct setup s;
	struct explorer *ex = open_explorer(&s, store, workload, true);
	if (!ex)
		return false;
	world_run(&ex->worlds, NULL, NULL, NULL);
	history_crash(ex->worlds.history);
	double without = recoveries(ex, rounds, false);
	*out = (struct recovery_cost){without, recoveries(ex, rounds, true) - without};
	world_end(&ex->worlds, 0);
	close_explorer(&s, ex);
	return true;
}
