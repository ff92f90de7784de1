/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running litmus tests.
 *
 * All locations of all hosts lie in one pool of the persistence model, those of DRAM, too: what of
 * it survives is not asked about. Each thread is a task and each statement one of its events; queue
 * pairs connect the hosts' RNICs. Everything is the soft RNIC and the persistence model that stores
 * run on; orders.c finds the runs that differ.
 *
 * What is looked at: at a run's end, when all threads have ended and nothing is under way,
 * registers and memory (a final outcome). And, if a condition asks what is left by a power failure,
 * after each event that changes what can be left, or a register that is asked about together with
 * it: each combination of what the lines can hold then (crash outcomes). That a line may drain or
 * be evicted needs no event: what is in flight may be left anyway, and what is durable only makes
 * outcomes fewer.
 */
#include "checker/models/litmus.h"
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/models/dpor.h"
#include "core/pmem/crash.h"
#include "core/rnic/objects/device.h"
#include "core/verbs_compat.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/rnic.h"

#define QUEUE LITMUS_STATEMENTS *LITMUS_THREADS
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#define SCRATCH	  (8 * LITMUS_WORDS) /* bytes */
#define RD_ATOMIC 16		     /* requests that are not posted, at once */

const struct litmus_limits litmus_default = {.runs = 20000000};

struct end { /* of a queue pair */
	struct ibv_qp *qp;
	struct ibv_cq *sent, *received;
};

struct play {
	const struct litmus_test *test;
	struct litmus_result *out;
	struct dpor orders;
	struct sim *sim;
	struct pmem_stack *stack;
	struct pmem *pm;
	uint8_t *image;
	struct end end[LITMUS_QPS][2];
	struct ibv_mr *mr[LITMUS_HOSTS],
		*scratch[LITMUS_HOSTS]; /* scratch: for messages that nobody looks at */
	struct player {
		struct play *play;
		unsigned thread;
		char name[16];
		uint64_t name_hash; /* of its actor */
		bool ended;
		const struct litmus_statement *missed; /* an await that found another value */
		uint64_t reg[LITMUS_REGISTERS];
	} player[LITMUS_THREADS];
	/* For a witness: the condition, and the best run so far. */
	const struct litmus_condition *wanted;
	unsigned shortest; /* 0: none */
	uint64_t witness[LITMUS_OBSERVED];
	void (*say)(void *arg, const char *line); /* while it is told */
	void *say_arg;
	struct tm_region region[LITMUS_LOCATIONS];
	unsigned steps;
	bool crashes;				       /* crash outcomes are asked for */
	bool learns[LITMUS_THREADS][LITMUS_REGISTERS]; /* together with what is left */
	bool keeps[LITMUS_LOCATIONS * LITMUS_WORDS / 8 +
		   1];			/* line: some word of it is asked about */
	uint32_t line[LITMUS_OBSERVED]; /* the lines that are */
	unsigned lines;
	bool failed;
};

/* --- outcomes --- */

static int compare_values(const uint64_t *a, const uint64_t *b)
{
	for (unsigned i = 0; i < LITMUS_OBSERVED; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static bool decides(const struct litmus_test *test, const struct litmus_condition *condition,
		    const uint64_t *value)
{
	return litmus_holds(test, condition, value) == (condition->quantifier != LITMUS_FORALL);
}

/* Keep this run if it is the shortest that decides what is wanted. */
static void keep_witness(struct play *p, const uint64_t *value)
{
	unsigned length = 1 + dpor_length(&p->orders);
	if ((p->shortest && length >= p->shortest) || !decides(p->test, p->wanted, value))
		return;
	p->shortest = length;
	memcpy(p->witness, value, sizeof(p->witness));
	dpor_keep(&p->orders);
}

/* Count an outcome. */
static void add_outcome(struct play *p, struct litmus_outcomes *to, const uint64_t *value)
{
	unsigned low = 0, high = to->n;
	if (p->wanted && p->wanted->crash == (to == &p->out->crash))
		keep_witness(p, value);
	while (low < high) {
		unsigned mid = (low + high) / 2;
		int c = compare_values(to->outcome[mid].value, value);
		if (!c) {
			to->outcome[mid].count++;
			return;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (to->n == to->room) {
		unsigned room = to->room ? 2 * to->room : 16;
		struct litmus_outcome *grown = realloc(to->outcome, room * sizeof(*grown));
		if (!grown) {
			p->failed = true;
			return;
		}
		to->outcome = grown;
		to->room = room;
	}
	memmove(&to->outcome[low + 1], &to->outcome[low], (to->n - low) * sizeof(to->outcome[0]));
	memcpy(to->outcome[low].value, value, sizeof(to->outcome[low].value));
	to->outcome[low].count = 1;
	to->n++;
}

static uint64_t place_off(const struct litmus_test *test, const struct litmus_place *place)
{
	return test->location[place->location].off + 8ull * place->word;
}

static void registers(const struct play *p, bool learnt, uint64_t *value)
{
	for (unsigned i = 0; i < p->test->observeds; i++) {
		const struct litmus_place *place = &p->test->observed[i];
		if (place->what == LITMUS_REGISTER &&
		    (!learnt || p->learns[place->thread][place->reg]))
			value[i] = p->player[place->thread].reg[place->reg];
	}
}

static void final_outcome(struct play *p)
{
	uint64_t value[LITMUS_OBSERVED] = {0};
	registers(p, false, value);
	for (unsigned i = 0; i < p->test->observeds; i++)
		if (p->test->observed[i].what == LITMUS_MEMORY)
			memcpy(&value[i],
			       pmem_base(p->pm) + place_off(p->test, &p->test->observed[i]), 8);
	add_outcome(p, &p->out->final, value);
}

/* What is left of the lines from the i-th on, in all ways. */
static void left_of(struct play *p, unsigned i, uint64_t *value)
{
	const struct litmus_test *test = p->test;
	uint8_t content[LINE];
	if (i == p->lines) {
		add_outcome(p, &p->out->crash, value);
		return;
	}
	for (unsigned k = 0; k < pmem_line_answers(p->pm, p->line[i]); k++) {
		if (!pmem_line_distinct(p->pm, p->line[i], k))
			continue;
		pmem_line_content(p->pm, p->line[i], k, content);
		for (unsigned o = 0; o < test->observeds; o++) {
			uint64_t off = place_off(test, &test->observed[o]);
			if (test->observed[o].what == LITMUS_CRASH && off / LINE == p->line[i])
				memcpy(&value[o], content + off % LINE, 8);
		}
		left_of(p, i + 1, value);
	}
}

/* The power fails here. */
static void crash_outcomes(void *arg)
{
	struct play *p = arg;
	uint64_t value[LITMUS_OBSERVED] = {0};
	if (!p->crashes)
		return;
	registers(p, true, value);
	left_of(p, 0, value);
}

/* --- what events have to do with each other --- */

/* Bytes are looked at, or change. */
static void bytes_touched(struct play *p, enum touch what, uint64_t where, uint64_t len)
{
	bool writes = what == TOUCH_WRITE || what == TOUCH_SHOW;
	if (writes || what == TOUCH_READ)
		dpor_touch(&p->orders, writes ? DPOR_WRITE : DPOR_READ, where, len);
}

/* What can be left of a line that is asked about changes. */
static void left_touched(struct play *p, enum touch what)
{
	if (what == TOUCH_WRITE || what == TOUCH_ARRIVE)
		dpor_touch(&p->orders, DPOR_GROW, 0, 0);
	if (what == TOUCH_COMMIT || what == TOUCH_ARRIVE)
		dpor_touch(&p->orders, DPOR_SHRINK, 0, 0);
}

static void memory_touched(void *arg, enum touch what, uint64_t where, uint64_t len)
{
	struct play *p = arg;
	if (!p->crashes) {
		bytes_touched(p, what, where, len);
		return;
	}
	for (uint64_t end = where + len, part; where < end; where += part) {
		uint64_t l = where / LINE;
		part = (l + 1) * LINE < end ? (l + 1) * LINE - where : end - where;
		if (!p->keeps[l]) {
			bytes_touched(p, what, where, part);
			continue;
		}
		/* The order of a line's stores is the order in which they may be left. */
		bytes_touched(p, what, l * LINE, LINE);
		left_touched(p, what);
	}
}

static void set_reg(struct player *me, unsigned reg, uint64_t value)
{
	if (me->reg[reg] != value && me->play->learns[me->thread][reg])
		dpor_touch(&me->play->orders, DPOR_LEARN, 0, 0);
	me->reg[reg] = value;
}

/* --- statements of the CPU --- */

static uint64_t range_off(const struct play *p, const struct litmus_range *range)
{
	return p->test->location[range->location].off + 8ull * range->first;
}

static uint64_t evaluate(const struct player *me, const struct litmus_expr *expr)
{
	return expr->number + (expr->has_reg ? me->reg[expr->reg] : 0);
}

static uint64_t load(struct player *me, const struct litmus_range *from)
{
	uint64_t value;
	pmem_cpu_read(me->play->pm, range_off(me->play, from), &value, sizeof(value));
	return value;
}

static void store(struct player *me, const struct litmus_range *to, uint64_t value)
{
	pmem_cpu_copy(me->play->pm, range_off(me->play, to), &value, 0, sizeof(value), 0);
}

static void locked(struct player *me, const struct litmus_statement *s)
{
	struct pmem *pm = me->play->pm;
	pmem_cpu_mfence(pm, 0);
	uint64_t old = load(me, &s->from), new = evaluate(me, &s->expr);
	bool stores = true;
	if (s->op == LITMUS_FAA)
		new += old;
	if (s->op == LITMUS_CAS) {
		stores = old == new;
		new = evaluate(me, &s->expr2);
	}
	if (stores)
		pmem_cpu_locked_write(pm, range_off(me->play, &s->from), &new, sizeof(new), 0);
	set_reg(me, s->reg, old);
}

/* --- statements of queue pairs --- */

static struct end *end_of(struct player *me, const struct litmus_statement *s)
{
	const struct litmus_test *test = me->play->test;
	unsigned host = test->thread[me->thread].host;
	return &me->play->end[s->qp][test->qp[s->qp].host[0] == host ? 0 : 1];
}

static unsigned peer_host(const struct player *me, const struct litmus_statement *s)
{
	const struct litmus_qp *qp = &me->play->test->qp[s->qp];
	return qp->host[0] == me->play->test->thread[me->thread].host ? qp->host[1] : qp->host[0];
}

static void post(struct player *me, const struct litmus_statement *s)
{
	struct play *p = me->play;
	unsigned host = p->test->thread[me->thread].host, peer = peer_host(me, s);
	enum op_class class = operations[s->wr].class;
	bool fetches = class == CLASS_READ || class == CLASS_ATOMIC;
	const struct litmus_range *local = fetches ? &s->to : &s->from,
				  *remote = fetches ? &s->from : &s->to;
	uint64_t value = evaluate(me, &s->expr),
		 va = (uintptr_t)pmem_base(p->pm) + range_off(p, remote);
	struct ibv_sge sge = {.addr = (uintptr_t)pmem_base(p->pm) + range_off(p, local),
			      .length = 8u * local->words,
			      .lkey = p->mr[host]->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	wr.send_flags = (s->unsignaled ? 0 : IBV_SEND_SIGNALED) | (s->fenced ? IBV_SEND_FENCE : 0);
	if (class == CLASS_FLUSH) {
		wr.num_sge = 0;
		flush_wr(&wr, p->mr[peer]->rkey, va, 8u * s->to.words,
			 s->persistent ? IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL,
			 s->all ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
	} else {
		wr.opcode = s->wr;
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
		wr.wr.atomic.swap = evaluate(me, &s->expr2);
	}
	if (ibv_post_send(end_of(me, s)->qp, &wr, &bad))
		p->failed = true; /* queues are long enough for all statements */
}

static struct ibv_cq *awaited(struct player *me, const struct litmus_statement *s)
{
	if (s->op == LITMUS_POLL)
		return end_of(me, s)->sent;
	return s->op == LITMUS_RECV ? end_of(me, s)->received : NULL;
}

static void take_completion(struct player *me, const struct litmus_statement *s)
{
	struct ibv_wc wc;
	struct ibv_cq *cq = awaited(me, s);
	int n = ibv_poll_cq(cq, 1, &wc);
	assert(n == 1); /* it was waited for */
	if (s->has_reg && s->op == LITMUS_POLL)
		set_reg(me, s->reg, wc.status == IBV_WC_SUCCESS ? 1 : 2);
	else if (s->has_reg)
		set_reg(me, s->reg, wc.wc_flags & IBV_WC_WITH_IMM ? be32toh(wc.imm_data) : 0);
}

/* --- telling a run --- */

static void say(struct play *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct play *p, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	p->say(p->say_arg, line);
}

/* The end of the queue pair whose actor this is: "q of A". */
static void end_name(const struct play *p, uint64_t chain, char *buf, size_t n)
{
	const struct litmus_test *test = p->test;
	snprintf(buf, n, "?");
	for (unsigned q = 0; q < test->qps; q++) {
		for (unsigned e = 0; e < 2; e++) {
			const struct rnic_qp *qp = (const struct rnic_qp *)p->end[q][e].qp;
			if (chain_name(qp->actor.name_hash, chain_kind(chain)) == chain)
				snprintf(buf, n, "%s of %s", test->qp[q].name,
					 test->host[test->qp[q].host[e]]);
		}
	}
}

static void begins(void *arg, uint64_t chain)
{
	static const char *const what[CHAIN_KINDS] = {
		[CHAIN_OTHER] = "something happens",
		[CHAIN_SEND] = "gathers and sends",
		[CHAIN_REQUESTS] = "its request arrives at the peer",
		[CHAIN_RESPONSES] = "its response arrives at the peer",
		[CHAIN_LAND] = "data land",
		[CHAIN_ANSWER] = "a request takes effect, or an acknowledgement goes out",
	};
	struct play *p = arg;
	enum chain_kind kind = chain_kind(chain);
	char name[2 * LITMUS_NAME + 8] = "";
	if (!p->say || kind == CHAIN_TASK)
		return; /* the thread says itself what it does */
	for (unsigned t = 0; t < p->test->threads && kind == CHAIN_STORES; t++)
		if (chain_name(p->player[t].name_hash, kind) == chain)
			snprintf(name, sizeof(name), "%s", p->player[t].name);
	if (kind == CHAIN_STORES) {
		say(p, "%3u. %s: the oldest entry leaves the store buffer", ++p->steps, name);
		return;
	}
	end_name(p, chain, name, sizeof(name));
	say(p, "%3u. %s: %s", ++p->steps, name, what[kind]);
}

static void tell(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
		 const struct traced *about, const char *text)
{
	struct play *p = arg;
	(void)sim;
	(void)who;
	(void)pc;
	(void)about;
	/* Whose message it is, the step above has said. */
	const char *colon = strstr(text, ": post ");
	if (!colon && !strncmp(text, "message ", 8))
		colon = strstr(text, ": ");
	if (*text)
		say(p, "         %s", colon ? colon + 2 : text);
}

static void tell_statement(struct player *me, const struct litmus_statement *s)
{
	struct play *p = me->play;
	if (p->say)
		say(p, "%3u. %s: %s", ++p->steps, me->name, s->text);
}

static void tell_end(struct play *p, const struct litmus_condition *condition)
{
	char line[512], name[64];
	size_t at = 0;
	line[0] = '\0';
	for (unsigned i = 0; i < p->test->observeds && at < sizeof(line); i++) {
		const struct litmus_place *place = &p->test->observed[i];
		if (place->what == (condition->crash ? LITMUS_MEMORY : LITMUS_CRASH))
			continue;
		litmus_place_print(p->test, place, name, sizeof(name));
		at += (size_t)snprintf(line + at, sizeof(line) - at, " %s=%llu", name,
				       (unsigned long long)p->witness[i]);
	}
	say(p, "%s%s", condition->crash ? "The power fails. Left:" : "The end:", line);
}

/* --- threads --- */

/* Is there a completion for this thread? Another one may take it: who is first matters. */
static bool is_empty_for(struct sim *sim, const struct ibv_cq *ibv)
{
	const struct rnic_cq *cq = (const struct rnic_cq *)ibv;
	sim_touch_state(sim, TOUCH_DRAM_READ, &cq->head, sizeof(cq->head));
	return cq->head == cq->tail;
}

/* Until this statement's turn. One that waits for a completion gets it when there is one. */
static void wait_turn(struct player *me, const struct litmus_statement *s, bool first)
{
	struct sim *sim = me->play->sim;
	struct ibv_cq *cq = awaited(me, s);
	if (!first && (!cq || !is_empty_for(sim, cq)))
		sim_turn(sim);
	while (cq && is_empty_for(sim, cq)) {
		sim_idle_on(sim, cq);
		sim_yield(sim);
	}
}

static bool is_skipped(const struct player *me, const struct litmus_statement *s)
{
	return s->guarded && (me->reg[s->guard_reg] == s->guard_number) != s->guard_equal;
}

/* False: the thread waits for ever. */
static bool execute(struct player *me, const struct litmus_statement *s)
{
	struct pmem *pm = me->play->pm;
	uint64_t off = range_off(me->play, &s->from), len = 8ull * s->from.words;
	switch (s->op) {
	case LITMUS_STORE:
		store(me, &s->to, evaluate(me, &s->expr));
		return true;
	case LITMUS_LOAD:
		set_reg(me, s->reg, load(me, &s->from));
		return true;
	case LITMUS_SET:
		set_reg(me, s->reg, evaluate(me, &s->expr));
		return true;
	case LITMUS_AWAIT:
		return load(me, &s->from) == evaluate(me, &s->expr);
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

static void run_thread(void *arg)
{
	struct player *me = arg;
	const struct litmus_thread *thread = &me->play->test->thread[me->thread];
	bool first = true;
	me->name_hash = sim_actor(me->play->sim)->name_hash;
	for (unsigned i = 0; i < thread->statements; i++) {
		const struct litmus_statement *s = &thread->statement[i];
		if (is_skipped(me, s))
			continue;
		wait_turn(me, s, first);
		first = false;
		tell_statement(me, s);
		if (!execute(me, s)) {
			me->missed = s;
			return;
		}
	}
	me->ended = true;
}

/* --- the world of a run --- */

static void open_end(struct ibv_context *verbs, struct ibv_pd *pd, struct end *end)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	end->sent = rnic_create_cq(verbs, QUEUE, NULL, NULL, 0);
	end->received = rnic_create_cq(verbs, QUEUE, NULL, NULL, 0);
	init.send_cq = end->sent;
	init.recv_cq = end->received;
	init.cap = (struct ibv_qp_cap){.max_send_wr = QUEUE,
				       .max_recv_wr = QUEUE,
				       .max_send_sge = 1,
				       .max_recv_sge = 1,
				       .max_inline_data = 8};
	end->qp = rnic_create_qp(pd, &init);
}

static void connect_end(struct end *end, const struct end *peer, struct ibv_context *peer_verbs,
			unsigned mtu)
{
	enum ibv_mtu path = IBV_MTU_256;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};
	while ((256u << (path - IBV_MTU_256)) < mtu)
		path++;
	rnic_modify_qp(end->qp, &a,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = path,
				 .dest_qp_num = peer->qp->qp_num,
				 .max_dest_rd_atomic = RD_ATOMIC,
				 .min_rnr_timer = 1,
				 .ah_attr = {.is_global = 1, .port_num = 1}};
	rnic_query_gid(peer_verbs, 1, 0, &a.ah_attr.grh.dgid);
	rnic_modify_qp(end->qp, &a,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	/* No timer: packets do not get lost. A receiver that is not ready is an error at once. */
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .max_rd_atomic = RD_ATOMIC};
	rnic_modify_qp(end->qp, &a,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void open_queue_pairs(struct play *p, struct ibv_context *const *verbs,
			     struct ibv_pd *const *pd)
{
	const struct litmus_test *test = p->test;
	for (unsigned q = 0; q < test->qps; q++) {
		const uint8_t *host = test->qp[q].host;
		for (unsigned e = 0; e < 2; e++)
			open_end(verbs[host[e]], pd[host[e]], &p->end[q][e]);
		for (unsigned e = 0; e < 2; e++)
			connect_end(&p->end[q][e], &p->end[q][1 - e], verbs[host[1 - e]],
				    test->hw.mtu);
	}
}

/* Receives are posted before the start, as the program will ask for them. */
static void post_receives(struct play *p)
{
	const struct litmus_test *test = p->test;
	for (unsigned t = 0; t < test->threads; t++) {
		for (unsigned i = 0; i < test->thread[t].statements; i++) {
			const struct litmus_statement *s = &test->thread[t].statement[i];
			const struct ibv_mr *scratch = p->scratch[test->thread[t].host];
			struct ibv_sge sge = {.addr = (uintptr_t)scratch->addr,
					      .length = (uint32_t)scratch->length,
					      .lkey = scratch->lkey};
			struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
			if (s->op != LITMUS_RECV)
				continue;
			if (s->has_to) {
				sge.addr = (uintptr_t)pmem_base(p->pm) + range_off(p, &s->to);
				sge.length = 8u * s->to.words;
				sge.lkey = p->mr[test->thread[t].host]->lkey;
			}
			ibv_post_recv(end_of(&p->player[t], s)->qp, &wr, &bad);
		}
	}
}

static void open_rnics(struct play *p)
{
	const struct litmus_test *test = p->test;
	struct rnic_net *net = rnic_net_new(p->sim, &test->hw);
	struct ibv_context *verbs[LITMUS_HOSTS];
	struct ibv_pd *pd[LITMUS_HOSTS];
	for (unsigned h = 0; h < test->hosts; h++) {
		verbs[h] = rnic_open(net, h + 1, p->pm);
		pd[h] = rnic_alloc_pd(verbs[h]);
		p->mr[h] = rnic_reg_mr(pd[h], pmem_base(p->pm), test->pool_bytes, ACCESS);
		p->scratch[h] = rnic_reg_mr(pd[h], sim_alloc(p->sim, SCRATCH), SCRATCH,
					    IBV_ACCESS_LOCAL_WRITE);
	}
	open_queue_pairs(p, verbs, pd);
	post_receives(p);
}

static void boot(void *arg)
{
	struct play *p = arg;
	const struct litmus_test *test = p->test;
	if (test->qps)
		open_rnics(p);
	pmem_watch(p->pm);
	sim_source(p->sim, &p->orders.source);
	if (p->say)
		sim_set_tracer(p->sim, tell, p);
	sim_set_scheduler(p->sim, &p->orders.scheduler);
	for (unsigned t = 0; t < test->threads; t++)
		sim_spawn(p->sim, test->thread[t].host + 1u, p->player[t].name, run_thread,
			  &p->player[t]);
}

/*
 * An await looks once. If it would be satisfied now, it was too early: another run is this one with
 * a later look.
 */
static bool looked_too_early(struct play *p)
{
	for (unsigned t = 0; t < p->test->threads; t++) {
		struct player *me = &p->player[t];
		uint64_t now;
		if (!me->missed)
			continue;
		memcpy(&now, pmem_base(p->pm) + range_off(p, &me->missed->from), sizeof(now));
		if (now == evaluate(me, &me->missed->expr))
			return true;
	}
	return false;
}

static void one_run(void *arg)
{
	struct play *p = arg;
	unsigned ended = 0;
	for (unsigned t = 0; t < p->test->threads; t++) {
		p->player[t].ended = false;
		p->player[t].missed = NULL;
		memset(p->player[t].reg, 0, sizeof(p->player[t].reg));
	}
	sim_reset(p->sim, NULL);
	pmem_begin(p->pm, p->sim, &p->test->hw);
	pmem_set_regions(p->pm, p->region, p->test->locations);
	p->steps = 0;
	sim_spawn(p->sim, HOST_SERVER, "", boot, p);
	sim_run(p->sim);
	dpor_settle(&p->orders);
	for (unsigned t = 0; t < p->test->threads; t++)
		ended += p->player[t].ended;
	if (!p->orders.known && ended == p->test->threads)
		final_outcome(p);
	else if (!p->orders.known && !looked_too_early(p))
		p->out->blocked++;
	pmem_end(p->pm);
}

/* --- the test --- */

/* What is asked about. */
static void look_through(struct play *p)
{
	const struct litmus_test *test = p->test;
	bool belongs[LITMUS_OBSERVED];
	litmus_places(test, true, belongs);
	for (unsigned i = 0; i < test->observeds; i++)
		p->crashes |= test->observed[i].what == LITMUS_CRASH;
	for (unsigned i = 0; i < test->observeds; i++) {
		const struct litmus_place *place = &test->observed[i];
		uint64_t off = place_off(test, place);
		if (place->what == LITMUS_REGISTER && belongs[i] && p->crashes)
			p->learns[place->thread][place->reg] = true;
		if (place->what != LITMUS_CRASH || p->keeps[off / LINE])
			continue;
		p->keeps[off / LINE] = true;
		p->line[p->lines++] = (uint32_t)(off / LINE);
	}
}

static int open_play(struct play *p, const struct litmus_test *test,
		     const struct litmus_limits *limits, struct litmus_result *out)
{
	memset(out, 0, sizeof(*out));
	p->test = test;
	p->out = out;
	p->sim = sim_new();
	p->stack = pmem_stack_new(1, test->pool_bytes);
	p->image = calloc(1, test->pool_bytes);
	if (!p->sim || !p->stack || !p->image)
		return -ENOMEM;
	for (unsigned l = 0; l < test->locations; l++)
		memcpy(p->image + test->location[l].off, test->location[l].initial,
		       8u * test->location[l].words);
	pmem_load(p->stack, p->image, test->pool_bytes);
	p->pm = pmem_machine(p->stack, 0);
	for (unsigned t = 0; t < test->threads; t++) {
		p->player[t].play = p;
		p->player[t].thread = t;
		snprintf(p->player[t].name, sizeof(p->player[t].name), "P%u", t);
	}
	for (unsigned l = 0; l < test->locations; l++)
		p->region[l] = (struct tm_region){test->location[l].name, test->location[l].off,
						  8u * test->location[l].words};
	look_through(p);
	p->orders.sim = p->sim;
	p->orders.whole = limits->whole;
	p->orders.max_runs = limits->runs;
	p->orders.touched = memory_touched;
	p->orders.after = crash_outcomes;
	p->orders.begins = begins;
	p->orders.arg = p;
	return dpor_open(&p->orders);
}

static void close_play(struct play *p)
{
	dpor_close(&p->orders);
	sim_free(p->sim);
	pmem_stack_free(p->stack);
	free(p->image);
	free(p);
}

static void judge(const struct litmus_test *test, struct litmus_result *out)
{
	for (unsigned c = 0; c < test->conditions; c++) {
		const struct litmus_condition *condition = &test->condition[c];
		const struct litmus_outcomes *over = condition->crash ? &out->crash : &out->final;
		bool satisfied = false, violated = false;
		for (unsigned i = 0; i < over->n; i++) {
			bool holds = litmus_holds(test, condition, over->outcome[i].value);
			satisfied |= holds;
			violated |= !holds;
		}
		out->condition[c].satisfied = satisfied;
		out->condition[c].violated = violated;
		out->condition[c].holds = condition->quantifier == LITMUS_EXISTS  ? satisfied
					  : condition->quantifier == LITMUS_NEVER ? !satisfied
										  : !violated;
	}
}

int litmus_run(const struct litmus_test *test, const struct litmus_limits *limits,
	       struct litmus_result *out)
{
	struct play *p = calloc(1, sizeof(*p));
	if (!p) {
		memset(out, 0, sizeof(*out));
		return -ENOMEM;
	}
	int rc = open_play(p, test, limits, out);
	if (!rc) {
		dpor_search(&p->orders, one_run);
		out->runs = p->orders.runs;
		out->complete = p->orders.complete;
		if (p->failed || p->orders.failed)
			rc = -ENOMEM;
		judge(test, out);
	}
	close_play(p);
	return rc;
}

int litmus_witness(const struct litmus_test *test, const struct litmus_limits *limits, unsigned c,
		   void (*line)(void *arg, const char *text), void *arg)
{
	struct litmus_result result;
	struct play *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	int rc = open_play(p, test, limits, &result);
	if (!rc) {
		p->wanted = &test->condition[c];
		dpor_search(&p->orders, one_run);
		p->wanted = NULL;
		if (p->failed || p->orders.failed)
			rc = -ENOMEM;
		else if (!p->shortest)
			rc = -ENOENT;
	}
	if (!rc) {
		p->say = line;
		p->say_arg = arg;
		dpor_again(&p->orders, one_run);
		tell_end(p, &test->condition[c]);
	}
	litmus_result_free(&result);
	close_play(p);
	return rc;
}

void litmus_result_free(struct litmus_result *result)
{
	free(result->final.outcome);
	free(result->crash.outcome);
}
