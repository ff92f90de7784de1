/* SPDX-License-Identifier: BSD-3-Clause */
/* What is too much: capabilities at creation, full work queues, full completion queues. */
#include "scenarios/verbs/programs.h"

#define THERE 8192u
#define MANY  200000 /* more than any queue holds */

static void create(struct lab *lab, const char *what)
{
	errno = 0;
	struct ibv_qp *qp = lab_qp(&lab->a);
	lab_say(lab, "%s: %s", what, qp ? "0" : lab_error(errno));
	if (qp)
		ibv_destroy_qp(qp);
}

/* A queue pair of more than the device has. */
static void capabilities(struct lab *lab)
{
	struct ibv_device_attr device;
	struct lab_options *opt = &lab->opt, usual = lab->opt;
	lab_make(lab);
	lab_say(lab, "query the device: %s", lab_error(ibv_query_device(lab->a.ctx, &device)));
	opt->send_wr = (uint32_t)device.max_qp_wr + 1;
	create(lab, "more send requests than max_qp_wr");
	*opt = usual;
	opt->recv_wr = (uint32_t)device.max_qp_wr + 1;
	create(lab, "more receive requests than max_qp_wr");
	*opt = usual;
	opt->send_sge = (uint32_t)device.max_sge + 1;
	create(lab, "longer send lists than max_sge");
	*opt = usual;
	opt->recv_sge = (uint32_t)device.max_sge + 1;
	create(lab, "longer receive lists than max_sge");
	*opt = usual;
	opt->inline_bytes = 1u << 20;
	create(lab, "1 MiB of inline data");
	*opt = usual;
	opt->send_wr = (uint32_t)device.max_qp_wr;
	create(lab, "max_qp_wr send requests");
	*opt = usual;
	opt->send_wr = opt->recv_wr = 0;
	create(lab, "no requests at all");
	*opt = usual;
	opt->send_sge = opt->recv_sge = 0;
	create(lab, "lists of nothing");
}

/* SENDs that wait for their receiver until there is no more room. */
static void full_send_queue(struct lab *lab)
{
	unsigned n = 0;
	lab->opt.rnr_retry = 7;
	lab_connect(lab);
	int error = 0;
	while (n < MANY && !error) {
		struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_SEND, n, 0, 8, &lab->b, 0), *bad;
		if (!lab->opt.by_wr) {
			error = ibv_post_send(lab->a.qp, &wr, &bad);
		} else {
			struct ibv_qp_ex *qp = lab->a.qpx;
			ibv_wr_start(qp);
			qp->wr_id = n;
			qp->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_send(qp);
			ibv_wr_set_sge(qp, lab->a.mr->lkey, (uintptr_t)lab->a.buf, 8);
			error = ibv_wr_complete(qp);
		}
		n += !error;
	}
	lab_say(lab, "%s, then %s", n >= lab->opt.send_wr ? "as many as asked for" : "too few",
		lab_error(error));
	lab_recv(&lab->b, 9, 0, 64);
	lab_sent(&lab->a, 1);
	lab_op(&lab->a, IBV_WR_SEND, 1000, 0, 8, &lab->b, 0);
}

/* Requests that ask for no completion, and are done: is there room for more? */
static void full_unsignaled(struct lab *lab)
{
	lab_connect(lab);
	for (unsigned i = 0; i < 1000; i++) {
		struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, i, 0, 8, &lab->b, THERE),
				   *bad;
		wr.send_flags = 0;
		int error = ibv_post_send(lab->a.qp, &wr, &bad);
		if (error) {
			lab_say(lab, "%s, then %s",
				i >= lab->opt.send_wr ? "as many as asked for" : "too few",
				lab_error(error));
			break;
		}
		lab_sleep(lab, 2 * LAB_MS);
		if (i == 999)
			lab_say(lab, "there is always room");
	}
	lab_no_more(&lab->a);
}

/* More completions than their queue holds. */
static void overrun(struct lab *lab)
{
	lab->opt.cqe = 4;
	lab->opt.send_wr = 128;
	lab_connect(lab);
	unsigned n = (unsigned)lab->a.scq->cqe + 3, got = 0;
	struct ibv_wc wc;
	if (n > lab->opt.send_wr)
		lab_give_up(lab);
	for (unsigned i = 0; i < n; i++) {
		struct ibv_send_wr wr = lab_wr(&lab->a, IBV_WR_RDMA_WRITE, i, 0, 8, &lab->b, THERE);
		lab_post_quietly(&lab->a, &wr);
	}
	lab_sleep(lab, 3 * LAB_QUIET);
	while (got < 2 * n && ibv_poll_cq(lab->a.scq, 1, &wc) == 1)
		got++;
	lab_say(lab, "%s",
		got == n       ? "all came"
		: got == n - 3 ? "as many as the queue holds"
			       : "others");
	lab_state(&lab->a);
	lab_op(&lab->a, IBV_WR_RDMA_WRITE, 1000, 0, 8, &lab->b, THERE);
	lab_sent(&lab->a, 1);
}

const struct verbs_program verbs_limits[] = {
	{"capabilities", "queue pairs of more than the device has", capabilities, 0},
	{"full-send-queue/wr", "send requests until there is no more room", full_send_queue, BY_WR},
	{"full-unsignaled", "requests without completions: do they give their room back?",
	 full_unsignaled, 0},
	{"overrun", "more completions than their queue holds", overrun, 0},
	{0},
};
