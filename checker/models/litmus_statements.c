/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a statement of a litmus test does: a CPU's loads, stores and flushes on the persistence
 * model, and the work requests and completions of queue pairs on the soft RNIC.
 */
#include "checker/models/litmus_search.h"
#include <assert.h>
#include <endian.h>
#include "core/rnic/opcode.h"
#include "core/verbs_compat.h"

static void set_reg(struct running_thread *me, unsigned reg, uint64_t value)
{
	if (me->reg[reg] != value && me->search->learns[me->thread][reg])
		dpor_touch(&me->search->dpor, DPOR_LEARN, 0, 0);
	me->reg[reg] = value;
}

uint64_t litmus_range_off(const struct litmus_search *p, const struct litmus_range *range)
{
	return p->test->location[range->location].off + 8ull * range->first;
}

uint64_t litmus_evaluate(const struct running_thread *me, const struct litmus_expr *expr)
{
	return expr->number + (expr->has_reg ? me->reg[expr->reg] : 0);
}

static uint64_t load(struct running_thread *me, const struct litmus_range *from)
{
	uint64_t value;
	pmem_cpu_read(me->search->pm, litmus_range_off(me->search, from), &value, sizeof(value));
	return value;
}

static void store(struct running_thread *me, const struct litmus_range *to, uint64_t value)
{
	pmem_cpu_copy(me->search->pm, litmus_range_off(me->search, to), &value, 0, sizeof(value),
		      0);
}

static void store_nt(struct running_thread *me, const struct litmus_statement *s)
{
	uint64_t value = litmus_evaluate(me, &s->expr);
	pmem_cpu_nt_copy(me->search->pm, litmus_range_off(me->search, &s->to), &value, 0,
			 sizeof(value), 0);
}

static void locked(struct running_thread *me, const struct litmus_statement *s)
{
	struct pmem *pm = me->search->pm;
	pmem_cpu_mfence(pm, 0);
	uint64_t old = load(me, &s->from), new = litmus_evaluate(me, &s->expr);
	bool stores = true;
	if (s->op == LITMUS_FAA)
		new += old;
	if (s->op == LITMUS_CAS) {
		stores = old == new;
		new = litmus_evaluate(me, &s->expr2);
	}
	if (stores)
		pmem_cpu_locked_write(pm, litmus_range_off(me->search, &s->from), &new, sizeof(new),
				      0);
	set_reg(me, s->reg, old);
}

/* --- statements of queue pairs --- */

struct qp_end *litmus_end_of(struct running_thread *me, const struct litmus_statement *s)
{
	const struct litmus_test *test = me->search->test;
	unsigned host = test->thread[me->thread].host;
	return &me->search->end[s->qp][test->qp[s->qp].host[0] == host ? 0 : 1];
}

static unsigned peer_host(const struct running_thread *me, const struct litmus_statement *s)
{
	const struct litmus_qp *qp = &me->search->test->qp[s->qp];
	return qp->host[0] == me->search->test->thread[me->thread].host ? qp->host[1] : qp->host[0];
}

static void post(struct running_thread *me, const struct litmus_statement *s)
{
	struct litmus_search *p = me->search;
	unsigned host = p->test->thread[me->thread].host, peer = peer_host(me, s);
	enum op_class class = operations[s->wr].class;
	bool fetches = class == CLASS_READ || class == CLASS_ATOMIC;
	const struct litmus_range *local = fetches ? &s->to : &s->from,
				  *remote = fetches ? &s->from : &s->to;
	uint64_t value = litmus_evaluate(me, &s->expr),
		 va = (uintptr_t)pmem_base(p->pm) + litmus_range_off(p, remote);
	struct ibv_sge sge = {.addr = (uintptr_t)pmem_base(p->pm) + litmus_range_off(p, local),
			      .length = 8u * local->words,
			      .lkey = p->mr[host]->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	wr.send_flags = (s->unsignaled ? 0 : IBV_SEND_SIGNALED) | (s->fenced ? IBV_SEND_FENCE : 0);
	if (class == CLASS_FLUSH) {
		wr.num_sge = 0;
		flush_wr(&wr, p->mr[peer]->rkey, va, 8u * s->to.words,
			 s->persistent ? IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL,
			 s->all ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
	} else if (class == CLASS_COMMIT || class == CLASS_COMMIT_PAYLOAD) {
		wr.num_sge = class == CLASS_COMMIT_PAYLOAD;
		tm_commit_wr(&wr, p->mr[peer]->rkey, va, 8u * s->to.words);
		wr.opcode = operation_opcode(s->wr);
		wr.imm_data = htobe32(s->imm);
	} else {
		wr.opcode = operation_opcode(s->wr);
		wr.wr.rdma.remote_addr = va;
		wr.wr.rdma.rkey = p->mr[peer]->rkey;
		wr.imm_data = htobe32(s->imm);
	}
	if (s->inlined) {
		sge.addr = (uintptr_t)&value;
		sge.length = sizeof(value);
		wr.send_flags |= IBV_SEND_INLINE;
	}
	if (class == CLASS_ATOMIC) {
		wr.wr.atomic.remote_addr = va;
		wr.wr.atomic.rkey = p->mr[peer]->rkey;
		wr.wr.atomic.compare_add = value;
		wr.wr.atomic.swap = litmus_evaluate(me, &s->expr2);
	}
	if (ibv_post_send(litmus_end_of(me, s)->qp, &wr, &bad))
		p->failed = true; /* queues are long enough for all statements */
}

struct ibv_cq *litmus_awaited(struct running_thread *me, const struct litmus_statement *s)
{
	if (s->op == LITMUS_POLL)
		return litmus_end_of(me, s)->sent;
	return s->op == LITMUS_RECV ? litmus_end_of(me, s)->received : NULL;
}

static void take_completion(struct running_thread *me, const struct litmus_statement *s)
{
	struct ibv_wc wc;
	struct ibv_cq *cq = litmus_awaited(me, s);
	int n = ibv_poll_cq(cq, 1, &wc);
	assert(n == 1); /* it was waited for */
	if (s->has_reg && s->op == LITMUS_POLL)
		set_reg(me, s->reg, wc.status == IBV_WC_SUCCESS ? 1 : 2);
	else if (s->has_reg)
		set_reg(me, s->reg, wc.wc_flags & IBV_WC_WITH_IMM ? be32toh(wc.imm_data) : 0);
}

/* --- all statements --- */

bool litmus_is_skipped(const struct running_thread *me, const struct litmus_statement *s)
{
	return s->guarded && (me->reg[s->guard_reg] == s->guard_number) != s->guard_equal;
}

bool litmus_execute(struct running_thread *me, const struct litmus_statement *s)
{
	struct pmem *pm = me->search->pm;
	uint64_t off = litmus_range_off(me->search, &s->from), len = 8ull * s->from.words;
	switch (s->op) {
	case LITMUS_STORE:
		store(me, &s->to, litmus_evaluate(me, &s->expr));
		return true;
	case LITMUS_NT:
		store_nt(me, s);
		return true;
	case LITMUS_COPY:
		pmem_cpu_copy(pm, litmus_range_off(me->search, &s->to), pmem_base(pm) + off, 0, len,
			      0);
		return true;
	case LITMUS_LOAD:
		set_reg(me, s->reg, load(me, &s->from));
		return true;
	case LITMUS_SET:
		set_reg(me, s->reg, litmus_evaluate(me, &s->expr));
		return true;
	case LITMUS_AWAIT:
		return load(me, &s->from) == litmus_evaluate(me, &s->expr);
	case LITMUS_XCHG:
	case LITMUS_CAS:
	case LITMUS_FAA:
		locked(me, s);
		return true;
	case LITMUS_MFENCE:
		pmem_cpu_mfence(pm, 0);
		return true;
	case LITMUS_SFENCE:
		pmem_cpu_fence(pm, 0);
		return true;
	case LITMUS_LFENCE: /* loads are in order as it is */
		return true;
	case LITMUS_CLFLUSH:
		pmem_cpu_clflush(pm, off, len, 0);
		return true;
	case LITMUS_CLFLUSHOPT:
	case LITMUS_CLWB:
		pmem_cpu_flush(pm, off, len, 0);
		return true;
	case LITMUS_POLL:
	case LITMUS_RECV:
		take_completion(me, s);
		return true;
	default:
		assert(s->op == LITMUS_REQUEST);
		post(me, s);
		return true;
	}
}
