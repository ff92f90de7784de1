/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From "the RNIC has it" to "it has happened": when the requests that the
 * responder let in take effect in memory.
 *
 * Two queues a queue pair, for the two ordering classes of RDMA:
 *
 *   land     SEND and WRITE packets. They become visible in order, line by line (64 bytes of the
 *            destination), some time (struct profile, land) after they came in. Each line is a
 * choice: now, or it and everything after it in this queue is delayed for a while. With
 * dma_order=any the line that lands next is chosen among those of all packets of the message that
 * are in the queue, with dma_order=relaxed among those of all packets in it (PCI Express, relaxed
 *            ordering: posted writes pass posted writes); what is not posted still waits for all of
 *            them, as read requests pass no posted write. The receive completion of a message is
 *            made when its last packet has landed, hence when all earlier posted data have.
 *   answers  READs, atomics, FLUSHes, ATOMIC WRITEs and COMMITs, executed in order, and not before
 *            the posted packets that came in before them have landed. A READ fetches line by line,
 *            with read_unit=word word by word (with read_order=right those of a response packet
 *            from its end), and each line is a choice: now, or the rest of the READ is delayed. The
 *            others are one such choice each. Posted packets after them do not wait: they overtake,
 *            and a READ's later lines see them. Acknowledgements line up here after what is
 *            unanswered. With dma_order=relaxed the line that is fetched next is chosen among the
 *            next ones of the first READ in the queue and of the READs after it (PCI Express: read
 *            requests pass read requests), up to the first request that is no READ, or that waits
 *            for posted data. Responses leave in order all the same: those of a READ that is ahead
 *            of its turn are kept.
 *
 * A FLUSH for persistence has the persistence model drain what this queue pair wrote
 * to the FLUSH's range. So has a READ or an atomic with all that it wrote: on the way
 * to memory and back a read pushes earlier writes before it (PCI Express: a read
 * completion does not pass posted writes), which is how a FLUSH is emulated.
 *
 * A COMMIT makes durable what this queue pair wrote to its range, in the caches too. A payload is
 * visible and durable at one moment after that; with commit_word=visible it is visible first, and
 * is durable at a later choice. The receive completion of a COMMIT_WITH_IMM follows, and those of
 * messages that came in after it wait for it.
 *
 * With atomics=hca an atomic reads and writes in two steps, each such a choice.
 *
 * In a plain run a packet lands, or a READ is served, in one event. What a delayed
 * line asked for once is not asked for again when the delay is over.
 *
 * With a scheduler (struct scheduler) an event lands one line, serves one line of a READ or one
 * other request, or sends one acknowledgement: what may come in between is the scheduler's to say.
 */
#include "core/rnic/transport/landing.h"
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/dma.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/srq.h"
#include "core/rnic/objects/work_queue.h"
#include "core/rnic/transport/link.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/transport/responder.h"
#include "core/text/text.h"
#include "core/verbs_compat.h"

static void land_due(struct rnic_qp *qp);
static void answer_run(struct rnic_qp *qp);
static void answer_drop_after(struct rnic_qp *qp, uint64_t landed);
static void fire_land(void *arg);
static void fire_answer(void *arg);

/* Ask about line `c` of the packet. */
static unsigned ask(struct rnic_qp *qp, const struct packet *pkt, enum choice_kind kind, uint32_t c,
		    unsigned n)
{
	struct choice_point at = {
		.kind = (uint8_t)kind,
		.who = &qp->actor,
		.op = pkt->name.op,
		.occurrence = pkt->name.occurrence,
		.a = pkt->name.message,
		.b = pkt->name.index,
		.c = c,
	};
	/* A READ that is asked for again has other choice points. */
	if (kind == CHOICE_FETCH)
		at.c |= (pkt->name.round - 1) << 24 | (uint32_t)pkt->name.copy << 23;
	else if (kind == CHOICE_ORDER && pkt->opcode == OP_READ_REQUEST)
		at.c |= ORDER_FETCHED | ((pkt->name.round - 1) << 24 & ~ORDER_FETCHED) |
			(uint32_t)pkt->name.copy << 23;
	return ground_choose(qp_ground(qp), &at, n);
}

/* The packet at the head of a queue was delayed until quiescence, and goes on. */
static void end_land_delay(void *arg)
{
	struct rnic_qp *qp = arg;
	if (!qp->resp.land.head || !qp->resp.land.head->asked)
		return;
	qp->resp.land.head->due = ground_now(qp_ground(qp));
	land_due(qp);
}

static void end_answer_delay(void *arg)
{
	struct rnic_qp *qp = arg;
	if (!qp->resp.answers.head || !qp->resp.answers.head->asked)
		return;
	qp->resp.answers.head->due = ground_now(qp_ground(qp));
	answer_run(qp);
}

static void trace_line(struct rnic_qp *qp, const struct packet *pkt, uint32_t c, const char *what)
{
	const struct traced about = {.op = pkt->name.op, .occurrence = pkt->name.occurrence};
	if (ground_traced(qp_ground(qp)))
		ground_trace(qp_ground(qp), &qp->actor, &about, "%s, PSN %u, line %u: %s",
			     opcode_name(pkt->opcode), pkt->psn, c, what);
}

/* With a scheduler an event has one turn. */
static bool take_turn(bool *turn)
{
	bool mine = *turn;
	*turn = false;
	return mine;
}

/*
 * Is the packet's next line, its c-th, to be delayed? `head`: the first packet of the queue, which
 * waits for it.
 */
static bool is_delayed_behind(struct rnic_qp *qp, struct packet *head, struct packet *pkt,
			      enum choice_kind kind, uint32_t c)
{
	const struct rnic_ground *ground = qp_ground(qp);
	if (head->asked) {
		head->asked = false;
		trace_line(qp, pkt, c, "goes on");
		return false;
	}
	if (ground_scheduled(ground))
		return !take_turn(kind == CHOICE_LAND ? &qp->resp.land_turn
						      : &qp->resp.answer_turn);
	unsigned k = ask(qp, pkt, kind, c, DELAYS);
	if (!k)
		return false;
	head->asked = true;
	struct rnic_event *resumes = kind == CHOICE_FETCH ? &qp->answer_resumes : &qp->land_resumes;
	resumes->fn = kind == CHOICE_FETCH ? end_answer_delay : end_land_delay;
	resumes->arg = qp;
	head->due = ground->explorer->delay(ground->world, k, resumes);
	trace_line(qp, pkt, c, k == DELAY_FOREVER ? "delayed for ever" : "delayed");
	return true;
}

static bool is_delayed(struct rnic_qp *qp, struct packet *pkt, enum choice_kind kind, uint32_t c)
{
	return is_delayed_behind(qp, pkt, pkt, kind, c);
}

static uint64_t until(const struct rnic_ground *ground, uint64_t due)
{
	return due > ground_now(ground) ? due - ground_now(ground) : 0;
}

/* --- posted packets --- */

/* Where the packet's byte `off` goes, and how many bytes follow it there. */
static struct piece target(struct rnic_qp *qp, const struct packet *pkt, uint32_t off)
{
	struct piece piece;
	assert(off < pkt->len);
	if (opcode_is[pkt->opcode] & IS_WRITE)
		return (struct piece){
			.mr = pkt->mr, .host = pkt->host + off, .len = pkt->len - off};
	const struct rqe *rqe = queue_at(&qp->rq, pkt->rq_seq);
	bool allowed = sge_piece(qp->hca, qp_recv_pd(qp), rqe->sge, rqe->sges, pkt->msg_off + off,
				 pkt->len - off, IBV_ACCESS_LOCAL_WRITE, &piece);
	assert(allowed); /* it was when the packet came in, and dereg_mr waits for it */
	return piece;
}

/* The same, cut at the end of the line. */
static struct piece target_line(struct rnic_qp *qp, const struct packet *pkt, uint32_t off)
{
	struct piece piece = target(qp, pkt, off);
	uint32_t left = mr_line_left(piece.mr, piece.host);
	if (piece.len > left)
		piece.len = left;
	return piece;
}

/* False: that memory is gone. */
static bool land(struct rnic_qp *qp, const struct packet *pkt, uint32_t off,
		 const struct piece *piece)
{
	assert(piece->len && off + piece->len <= pkt->len);
	ground_takes(qp_ground(qp), pkt, 0);
	ground_mix(qp_ground(qp), (uint64_t)piece->mr->ibv.lkey << 32 | piece->len,
		   (uint64_t)(piece->host - piece->mr->host));
	return dma_write(qp->hca, piece->mr, piece->host, pkt->payload + off, piece->len,
			 &pkt->name);
}

/* All that has not landed yet, without any choice. False: its memory is gone. */
static bool land_rest(struct rnic_qp *qp, struct packet *pkt)
{
	struct piece piece;
	unsigned line = 0;
	bool whole = !pkt->landed[0] && !pkt->landed[1];
	if (pkt->torn && pkt->torn <= pkt->len)
		pkt->len = pkt->torn - 1;
	for (uint32_t off = pkt->done; off < pkt->len; off += piece.len, line++) {
		piece = whole ? target(qp, pkt, off) : target_line(qp, pkt, off);
		if (!whole && pkt->landed[line / 64] >> line % 64 & 1)
			continue;
		if (!land(qp, pkt, off, &piece))
			return false;
	}
	if (pkt->torn)
		qp->hca->net->torn(pkt);
	pkt->done = pkt->len;
	return true;
}

/* False: delayed. */
static bool land_in_order(struct rnic_qp *qp, struct packet *pkt)
{
	while (pkt->done < pkt->len) {
		struct piece piece = target_line(qp, pkt, pkt->done);
		if (is_delayed(qp, pkt, CHOICE_LAND, pkt->line + 1u))
			return false;
		land(qp, pkt, pkt->done, &piece);
		pkt->done += piece.len;
		pkt->line++;
	}
	return true;
}

/* The packet's number of lines; the n-th one's offset and piece. */
static unsigned count_lines(struct rnic_qp *qp, const struct packet *pkt, unsigned n, uint32_t *at,
			    struct piece *out)
{
	unsigned lines = 0;
	struct piece piece;
	for (uint32_t off = 0; off < pkt->len; off += piece.len, lines++) {
		piece = target_line(qp, pkt, off);
		if (lines == n && out) {
			*out = piece;
			*at = off;
		}
	}
	assert(lines <= PACKET_LINES);
	return lines;
}

/* May lines of this packet, which is in the queue, land before those of the first one? */
static bool may_pass(const struct rnic_qp *qp, const struct packet *head, const struct packet *pkt)
{
	bool same = pkt->name.message == head->name.message && pkt->name.who == head->name.who;
	return pkt == head || dma_may_pass(&qp->hca->hw, same);
}

/* May READs be fetched before those that came in before them? */
static bool may_pass_reads(const struct rnic_qp *qp)
{
	return dma_may_pass(&qp->hca->hw, false);
}

/* Number of lines that could land next. */
static unsigned count_ready(struct rnic_qp *qp, struct packet *head)
{
	unsigned ready = 0;
	for (struct packet *pkt = head; pkt && may_pass(qp, head, pkt); pkt = pkt->next)
		ready += count_lines(qp, pkt, 0, NULL, NULL) - pkt->line;
	return ready;
}

/* The k-th of them is next. */
static void pick_line(struct rnic_qp *qp, struct packet *head, unsigned k)
{
	struct packet *pkt = head;
	unsigned left, n = 0;
	while (k >= (left = count_lines(qp, pkt, 0, NULL, NULL) - pkt->line)) {
		k -= left;
		pkt = pkt->next;
	}
	while (pkt->landed[n / 64] >> n % 64 & 1 || k--)
		n++;
	assert(n < PACKET_LINES);
	pkt->picked = (int16_t)n;
	qp->resp.next_line = pkt;
}

/*
 * One line of those that could land next. If more than that have come since it was chosen, because
 * it was delayed, it is chosen again. False: delayed.
 */
static bool land_any_line(struct rnic_qp *qp, struct packet *head)
{
	struct responder *resp = &qp->resp;
	bool passes = dma_may_pass(&qp->hca->hw, true);
	unsigned ready = count_ready(qp, head);
	struct packet *pkt = resp->next_line;
	if (!pkt || (head->asked && ready > resp->ready_lines)) {
		if (ground_scheduled(qp_ground(qp)) && !resp->land_turn)
			return false;
		if (passes)
			ground_touch(qp_ground(qp), TOUCH_DRAM_READ, &resp->land, 1);
		unsigned k = ready > 1 ? ask(qp, head, CHOICE_ORDER, head->picks, ready) : 0;
		if (MUTANT(&qp->hca->hw, NIC_LINES_SHUFFLED))
			k = ready - 1;
		head->picks++;
		resp->ready_lines = ready;
		pick_line(qp, head, k);
		pkt = resp->next_line;
	}
	if (is_delayed_behind(qp, head, pkt, CHOICE_LAND, (uint32_t)pkt->picked + 1))
		return false;
	uint32_t off = 0;
	struct piece piece = {0};
	count_lines(qp, pkt, (unsigned)pkt->picked, &off, &piece);
	land(qp, pkt, off, &piece);
	pkt->landed[pkt->picked / 64] |= 1ull << pkt->picked % 64;
	pkt->line++;
	resp->next_line = NULL;
	return true;
}

/* False: delayed. */
static bool land_any_order(struct rnic_qp *qp, struct packet *head)
{
	unsigned lines = count_lines(qp, head, 0, NULL, NULL);
	while (head->line < lines)
		if (!land_any_line(qp, head))
			return false;
	head->done = head->len;
	return true;
}

/* The message has come, and the receive completion told of a key that the peer may not invalidate.
 * The peer is told, too: such a message is never acknowledged, not even early. */
static void refuse_invalidation(struct rnic_qp *qp, const struct packet *pkt)
{
	qp->resp.told = true;
	if (resp_active(qp))
		resp_refuse(qp, pkt, pkt->psn, AETH_NAK_REMOTE_ACCESS);
}

/* The first packet of the queue has landed. */
static void landed(struct rnic_qp *qp)
{
	struct responder *resp = &qp->resp;
	struct packet *pkt = queue_pop(&resp->land);
	uint8_t is = opcode_is[pkt->opcode];
	assert(pkt->done == pkt->len && resp->land_done < resp->land_tail);
	if (resp->next_line == pkt)
		resp->next_line = NULL;
	resp->land_done++;
	if (may_pass_reads(qp)) /* a READ may have waited for it, which can be chosen now */
		ground_touch(qp_ground(qp), TOUCH_DRAM_WRITE, &resp->answers, 1);
	ground_takes(qp_ground(qp), pkt, 0);
	ground_gives(qp_ground(qp), &resp->land_done, resp->land_done);
	/* Mutants complete it earlier. */
	bool kept = is & IS_LAST && is & (IS_SEND | HAS_IMM) &&
		    (int32_t)(pkt->rq_seq - qp->rq.done) >= 0 && resp_received(qp, pkt);
	if (pkt->bad_key)
		refuse_invalidation(qp, pkt);
	else if (pkt->ack_req && !rnic_acks_early(qp))
		resp_acknowledge(qp, pkt);
	if (!kept)
		packet_put(qp->hca->net, pkt);
	if (resp->flush_rq && !resp->land.head)
		resp_flush(qp);
	if (resp->answers.head)
		answer_run(qp);
}

/*
 * The memory that the first packet of the queue was let in for is gone: it is refused after all. Of
 * what was let in after it nothing happens.
 */
static void faulted(struct rnic_qp *qp)
{
	struct responder *resp = &qp->resp;
	struct packet *pkt = queue_pop(&resp->land), *next;
	bool is_send = opcode_is[pkt->opcode] & IS_SEND;
	while ((next = queue_pop(&resp->land)))
		packet_put(qp->hca->net, next);
	resp->next_line = NULL;
	answer_drop_after(qp, resp->land_done);
	resp->land_done = resp->land_tail;
	if (qp->ibv.state == IBV_QPS_ERR) {
		if (resp->flush_rq)
			resp_flush(qp);
	} else {
		if (is_send)
			resp->recv_status = IBV_WC_LOC_PROT_ERR;
		resp_refuse(qp, pkt, pkt->psn,
			    is_send ? AETH_NAK_REMOTE_OPERATION : AETH_NAK_REMOTE_ACCESS);
	}
	packet_put(qp->hca->net, pkt);
	if (resp->answers.head)
		answer_run(qp);
}

/* Mutants: the packet that is delayed, or has its turn, is overtaken by the one after it. */
static bool is_overtaken(const struct hardware *hw, struct packet_queue *land)
{
	struct packet *held = land->head, *next = held->next;
	if (!next || held->line || held->done)
		return false;
	bool by_send = MUTANT(hw, NIC_SEND_OVERTAKES) && !(opcode_is[held->opcode] & IS_SEND) &&
		       opcode_is[next->opcode] & IS_SEND;
	bool by_write = MUTANT(hw, NIC_WRITE_OVERTAKES) && opcode_is[held->opcode] & IS_WRITE &&
			opcode_is[next->opcode] & IS_WRITE && psn_diff(next->psn, held->psn) > 0 &&
			!(opcode_is[held->opcode] & opcode_is[next->opcode] &
			  HAS_IMM); /* receives in order */
	if (!by_send && !by_write)
		return false;
	held->next = next->next;
	next->next = held;
	land->head = next;
	if (land->tail == next)
		land->tail = held;
	return true;
}

/* Mutants: a queue pair that was destroyed goes on, and no deregistration waits for it. Where the
 * region of a receive is gone, so is what was to land from there on. */
static void drop_homeless(struct rnic_qp *qp)
{
	struct packet_queue *land = &qp->resp.land;
	struct packet *pkt = land->head;
	for (const struct rqe *rqe; pkt; pkt = pkt->next) {
		if (opcode_is[pkt->opcode] & IS_WRITE)
			continue;
		rqe = queue_at(&qp->rq, pkt->rq_seq);
		if (!sge_allowed(qp->hca, qp_recv_pd(qp), rqe->sge, rqe->sges, pkt->msg_off,
				 pkt->len, IBV_ACCESS_LOCAL_WRITE))
			break;
	}
	while (pkt && (pkt = queue_pop(land)))
		packet_put(qp->hca->net, pkt);
}

static void land_due(struct rnic_qp *qp)
{
	const struct rnic_ground *ground = qp_ground(qp);
	const struct hardware *hw = &qp->hca->hw;
	bool any = dma_may_pass(hw, true) || MUTANT(hw, NIC_LINES_SHUFFLED);
	struct packet *pkt;
	if (qp->dead)
		drop_homeless(qp);
	while ((pkt = qp->resp.land.head) &&
	       (ground_scheduled(ground) ? qp->resp.land_turn : pkt->due <= ground_now(ground))) {
		if (ground_plain(ground)) {
			if (!land_rest(qp, pkt)) {
				faulted(qp);
				continue;
			}
		} else if (!(any ? land_any_order(qp, pkt) : land_in_order(qp, pkt))) {
			if (is_overtaken(hw, &qp->resp.land))
				continue;
			break;
		}
		qp->resp.land_turn = false;
		landed(qp);
	}
	if (qp->resp.land.head)
		alarm_set(ground, &qp->resp.land_alarm, qp_chain(qp, CHAIN_LAND),
			  until(ground, qp->resp.land.head->due), fire_land, qp);
}

static void fire_land(void *arg)
{
	struct rnic_qp *qp = arg;
	if (!alarm_fired(qp_ground(qp), &qp->resp.land_alarm))
		return;
	qp->resp.land_turn = true;
	if (ground_scheduled(qp_ground(qp)) && qp->resp.land.head)
		is_overtaken(&qp->hca->hw, &qp->resp.land);
	land_due(qp);
}

void land_push(struct rnic_qp *qp, struct packet *pkt)
{
	const struct rnic_ground *ground = qp_ground(qp);
	pkt->due = ground_now(ground) + ground_cost(ground)->land;
	ground_gives(ground, pkt, 0);
	qp->resp.land_tail++;
	if (dma_may_pass(&qp->hca->hw, true))
		ground_touch(ground, TOUCH_DRAM_WRITE, &qp->resp.land, 1);
	queue_push(&qp->resp.land, pkt);
	if (qp->resp.land.head == pkt)
		alarm_set(ground, &qp->resp.land_alarm, qp_chain(qp, CHAIN_LAND),
			  ground_cost(ground)->land, fire_land, qp);
}

static bool goes_to(struct rnic_qp *qp, const struct packet *pkt, const struct rnic_mr *mr)
{
	if (!mr || pkt->mr == mr)
		return true;
	if (opcode_is[pkt->opcode] & IS_WRITE)
		return false;
	const struct rqe *rqe = queue_at(&qp->rq, pkt->rq_seq);
	for (uint32_t i = 0; i < rqe->sges; i++)
		if (rqe->sge[i].lkey == mr->ibv.lkey)
			return true;
	return false;
}

void land_all(struct rnic_qp *qp, const struct rnic_mr *mr)
{
	uint64_t n = 0, upto = 0;
	for (struct packet *pkt = qp->resp.land.head; pkt; pkt = pkt->next) {
		n++;
		if (goes_to(qp, pkt, mr))
			upto = n;
	}
	for (; upto; upto--) {
		if (!land_rest(qp, qp->resp.land.head)) {
			faulted(qp);
			break;
		}
		landed(qp);
	}
	if (qp->resp.land.head)
		alarm_set(qp_ground(qp), &qp->resp.land_alarm, qp_chain(qp, CHAIN_LAND),
			  until(qp_ground(qp), qp->resp.land.head->due), fire_land, qp);
}

/* --- what is not posted --- */

enum served { SERVED, HELD, REFUSED };

/* What of PM a request was for; `len` 0: nothing. */
static struct traced about_effect(const struct packet *pkt, enum traced_kind kind,
				  const struct rnic_mr *mr, const uint8_t *at, uint64_t len)
{
	bool in_pm = len && mr->in_pm;
	return (struct traced){.kind = (uint8_t)kind,
			       .occurrence = pkt->name.occurrence,
			       .op = pkt->name.op,
			       .off = in_pm ? mr->pm_off + (uint64_t)(at - mr->host) : 0,
			       .len = in_pm ? len : 0,
			       .code = pkt->name.operation,
			       .id = pkt->name.id};
}

/* What an atomic makes of the word. False: nothing. */
static bool apply_atomic(const struct packet *request, uint64_t original, uint64_t *value)
{
	if (request->opcode == OP_FETCH_ADD) {
		*value = original + request->swap_add;
		return true;
	}
	assert(request->opcode == OP_COMPARE_SWAP);
	*value = request->swap_add;
	return original == request->compare;
}

static void fetched(struct rnic_qp *qp, const struct packet *pkt, const struct rnic_mr *mr,
		    const uint8_t *from, uint32_t len)
{
	char place[64];
	if (!ground_traced(qp_ground(qp)) || !mr->in_pm)
		return;
	const struct traced about = about_effect(pkt, TRACED_FETCH, mr, from, len);
	qp->hca->memory->place_name(qp->hca->memory_arg, about.off, place, sizeof(place));
	ground_trace(qp_ground(qp), &qp->actor, &about,
		     "message %u packet %u: reads %u byte%s at %s", pkt->name.message,
		     pkt->name.index, len, plural(len), place);
}

/* What an atomic found, and what it does. */
static void trace_atomic(struct rnic_qp *qp, const struct packet *pkt, const struct rnic_mr *mr,
			 uint64_t found)
{
	const uint8_t *at = mr_host(mr, pkt->va);
	char place[64];
	uint64_t value;
	if (!ground_traced(qp_ground(qp)))
		return;
	struct traced about = about_effect(pkt, mr->in_pm ? TRACED_FETCH : TRACED_EFFECT, mr, at,
					   sizeof(found));
	about.failed = !apply_atomic(pkt, found, &value);
	rnic_key_place(qp->hca->net, pkt->rkey, pkt->va, place, sizeof(place));
	if (pkt->opcode == OP_FETCH_ADD)
		ground_trace(qp_ground(qp), &qp->actor, &about,
			     "message %u packet %u: FETCH_AND_ADD at %s: found %#" PRIx64
			     ", adds %#" PRIx64,
			     pkt->name.message, pkt->name.index, place, found, pkt->swap_add);
	else
		ground_trace(qp_ground(qp), &qp->actor, &about,
			     "message %u packet %u: CMP_AND_SWP at %s: expected %#" PRIx64
			     ", found %#" PRIx64 ": %s %#" PRIx64,
			     pkt->name.message, pkt->name.index, place, pkt->compare, found,
			     about.failed ? "it fails, and does not write"
					  : "it succeeds, and writes",
			     pkt->swap_add);
}

static void trace_effect(struct rnic_qp *qp, const struct packet *pkt, const struct rnic_mr *mr,
			 const uint8_t *at, uint64_t len)
{
	struct traced about = about_effect(pkt, TRACED_EFFECT, mr, at, len);
	about.failed = pkt->opcode == OP_FLUSH && !(pkt->placement & IBV_FLUSH_PERSISTENT);
	if (ground_traced(qp_ground(qp)))
		ground_trace(qp_ground(qp), &qp->actor, &about, "%s, PSN %u: takes effect",
			     opcode_name(pkt->opcode), pkt->psn);
}

/*
 * What of pkt->reply, which has `left` bytes to go, is fetched next: where it is in the READ, and
 * *len. A line; or with read_unit=word an aligned word.
 */
static uint32_t next_unit(const struct rnic_qp *qp, const struct packet *pkt,
			  const struct rnic_mr *mr, uint32_t start, uint32_t left, uint32_t *len)
{
	const struct hardware *hw = &qp->hca->hw;
	uint32_t at = pkt->done, end = start + left, unit = hw->read_words ? 8 : LINE;
	if (!hw->read_right) {
		*len = mr_line_left(mr, mr_host(mr, pkt->va + at));
		*len = (*len - 1) % unit + 1;
		*len = *len < left ? *len : left;
		return at;
	}
	*len = LINE - mr_line_left(mr, mr_host(mr, pkt->va + end - 1)) + 1;
	*len = (*len - 1) % unit + 1;
	*len = *len < left ? *len : left;
	return end - *len;
}

static uint8_t response_opcode(bool first, bool last)
{
	if (first)
		return last ? OP_READ_RESPONSE_ONLY : OP_READ_RESPONSE_FIRST;
	return last ? OP_READ_RESPONSE_LAST : OP_READ_RESPONSE_MIDDLE;
}

/* The byte of the READ with which the response begins that is being filled, or is next. */
static uint32_t reply_start(const struct rnic_qp *qp, const struct packet *pkt)
{
	return pkt->done / qp->mtu * qp->mtu;
}

static void begin_reply(struct rnic_qp *qp, struct packet *pkt)
{
	uint32_t start = reply_start(qp, pkt), left = pkt->dma_len - start, i = start / qp->mtu;
	uint32_t len = left < qp->mtu ? left : qp->mtu;
	if (pkt->reply)
		return;
	pkt->reply = resp_answer(qp, pkt, response_opcode(i == 0, len == left), len);
	pkt->reply->psn = psn_add(pkt->psn, i);
	pkt->reply->name.index = INDEX_READ + pkt->name.index + i;
}

/* `len` bytes from the READ's byte `at` on, into pkt->reply, whose first one is `start`. False:
 * that memory is gone. */
static bool fetch_unit(struct rnic_qp *qp, struct packet *pkt, const struct rnic_mr *mr,
		       uint32_t start, uint32_t at, uint32_t len)
{
	const uint8_t *from = mr_host(mr, pkt->va + at);
	dma_flush(qp->hca, NULL, NULL, 0, &pkt->name);
	if (!dma_read(qp->hca, mr, from, pkt->reply->payload + (at - start), len))
		return false;
	fetched(qp, pkt, mr, from, len);
	pkt->done += len;
	pkt->line++;
	return true;
}

/* Fetch into pkt->reply, whose first byte is the READ's `start`. */
static enum served fetch(struct rnic_qp *qp, struct packet *pkt, const struct rnic_mr *mr,
			 uint32_t start)
{
	uint32_t end = start + pkt->reply->len;
	assert(pkt->done >= start && end <= pkt->dma_len);
	while (pkt->done < end) {
		uint32_t len = end - pkt->done, at = pkt->done;
		if (!ground_plain(qp_ground(qp))) {
			if (is_delayed(qp, pkt, CHOICE_FETCH, pkt->line + 1u))
				return HELD;
			at = next_unit(qp, pkt, mr, start, len, &len);
		}
		if (!fetch_unit(qp, pkt, mr, start, at, len))
			return REFUSED;
	}
	return SERVED;
}

/* The READ's region. NULL: it may have been deregistered meanwhile. */
static struct rnic_mr *read_region(struct rnic_qp *qp, const struct packet *pkt)
{
	return resp_region(qp, pkt);
}

/*
 * dma_order=relaxed: how many READs could fetch a line next, the one at the head of the queue
 * first; the k-th is *out.
 */
static unsigned ready_reads(struct rnic_qp *qp, unsigned k, struct packet **out)
{
	unsigned n = 0;
	const struct packet *head = qp->resp.answers.head;
	for (struct packet *pkt = qp->resp.answers.head; pkt; pkt = pkt->next) {
		if (opcode_is[pkt->opcode] & IS_RESPONSE)
			continue;
		if (pkt->opcode != OP_READ_REQUEST ||
		    (pkt != head && pkt->after > qp->resp.land_done))
			break;
		if (pkt->done == pkt->dma_len || !read_region(qp, pkt))
			continue;
		if (n++ == k)
			*out = pkt;
	}
	return n;
}

/* The READ that fetches next. If more than those from which it was chosen can do so, because its
 * line was delayed, it is chosen again. NULL: it is not time to choose. */
static struct packet *pick_read(struct rnic_qp *qp, struct packet *head)
{
	struct responder *resp = &qp->resp;
	struct packet *unused;
	unsigned ready = ready_reads(qp, UINT_MAX, &unused);
	if (resp->next_read && (!head->asked || ready == resp->ready_reads))
		return resp->next_read;
	if (ground_scheduled(qp_ground(qp)) && !resp->answer_turn)
		return NULL;
	assert(ready);
	ground_touch(qp_ground(qp), TOUCH_DRAM_READ, &resp->answers, 1);
	unsigned k = ready > 1 ? ask(qp, head, CHOICE_ORDER, head->picks, ready) : 0;
	head->picks++;
	resp->ready_reads = ready;
	ready_reads(qp, k, &resp->next_read);
	return resp->next_read;
}

/* Send its responses that were complete before its turn. */
static void send_kept(struct rnic_qp *qp, struct packet *pkt)
{
	struct packet *reply;
	while ((reply = pkt->kept)) {
		pkt->kept = reply->next;
		reply->msn = qp->resp.msn; /* it never goes back */
		resp_send(qp, reply);
	}
}

/* Is the response that is being filled complete? */
static void reply_filled(struct rnic_qp *qp, struct packet *pkt, uint32_t start)
{
	struct packet *reply = pkt->reply, **last = &pkt->kept;
	if (pkt->done < start + reply->len)
		return;
	pkt->reply = NULL;
	if (pkt == qp->resp.answers.head) {
		resp_send(qp, reply);
		return;
	}
	while (*last)
		last = &(*last)->next;
	reply->next = NULL;
	*last = reply;
}

/* dma_order=relaxed: serve the READ at the head of the queue, or those after it first. */
static enum served serve_reads(struct rnic_qp *qp, struct packet *head)
{
	struct responder *resp = &qp->resp;
	while (head->done < head->dma_len) {
		if (!read_region(qp, head))
			return REFUSED;
		struct packet *pkt = pick_read(qp, head);
		if (!pkt || is_delayed_behind(qp, head, pkt, CHOICE_FETCH, pkt->line + 1u))
			return HELD;
		const struct rnic_mr *mr = read_region(qp, pkt);
		resp->next_read = NULL;
		if (!mr) /* it was there when this one was chosen: it is refused in its turn */
			continue;
		ground_takes(qp_ground(qp), pkt, 0);
		ground_takes(qp_ground(qp), &resp->land_done, pkt->after);
		begin_reply(qp, pkt);
		uint32_t start = reply_start(qp, pkt), len;
		uint32_t at = next_unit(qp, pkt, mr, start, start + pkt->reply->len - pkt->done,
					&len);
		if (!fetch_unit(qp, pkt, mr, start, at, len))
			return REFUSED;
		reply_filled(qp, pkt, start);
	}
	return SERVED;
}

static enum served serve_read(struct rnic_qp *qp, struct packet *pkt)
{
	struct link *link = qp->hca->net->link;
	struct rnic_mr *mr = NULL;
	send_kept(qp, pkt);
	if (pkt->dma_len && pkt->done == pkt->dma_len)
		return SERVED;
	if (pkt->dma_len && may_pass_reads(qp) && !ground_plain(qp_ground(qp)))
		return serve_reads(qp, pkt);
	if (pkt->dma_len) { /* it may have been deregistered meanwhile */
		mr = resp_region(qp, pkt);
		if (!mr)
			return REFUSED;
	}
	do {
		if (link->ready && !link_ready(link, qp->peer, qp->attr.dest_qp_num,
					       ground_now(qp_ground(qp)), &qp->resp.patience)) {
			pkt->due = ground_now(qp_ground(qp)) + LINK_READY_NS;
			return HELD;
		}
		uint32_t start = reply_start(qp, pkt);
		begin_reply(qp, pkt);
		enum served served = pkt->reply->len ? fetch(qp, pkt, mr, start) : SERVED;
		if (served != SERVED)
			return served;
		struct packet *reply = pkt->reply;
		pkt->reply = NULL;
		resp_send(qp, reply);
	} while (pkt->done < pkt->dma_len);
	if (!mr || !mr->in_pm)
		trace_effect(qp, pkt, mr, NULL, 0);
	return SERVED;
}

/* 8 bytes at once. False: that memory is gone. */
static bool write_word(struct rnic_qp *qp, const struct packet *pkt, const struct rnic_mr *mr,
		       uint64_t value)
{
	uint8_t *host = mr_host(mr, resp_word(pkt));
	ground_mix(qp_ground(qp), (uint64_t)mr->ibv.lkey << 32 | 8,
		   (uint64_t)(host - mr->host) ^ value);
	dma_arrive(qp->hca, mr, host, &value, sizeof(value), &pkt->name);
	return dma_write(qp->hca, mr, host, &value, sizeof(value), &pkt->name);
}

/* Executed: answer, and keep the answer for duplicates. */
static void finish(struct rnic_qp *qp, const struct packet *pkt, uint64_t original)
{
	qp->resp.saved[qp->resp.saved_next++ % MAX_RD_ATOMIC] = (struct saved_answer){
		.psn = pkt->psn, .used = true, .opcode = pkt->opcode, .original = original};
	resp_send(qp, resp_result(qp, pkt, original));
}

/* Is an atomic of another queue pair between its read and its write of the word? */
static bool atomic_under_way(const struct rnic_qp *qp, const uint8_t *at)
{
	const struct rnic_net *net = qp->hca->net;
	for (uint32_t i = 0; i < net->qps && !MUTANT(&qp->hca->hw, NIC_ATOMICS_APART); i++)
		if (net->qp[i] && net->qp[i] != qp && net->qp[i]->resp.atomic_at == at)
			return true;
	return false;
}

/* The word is free for the atomics of other queue pairs. */
static void atomic_over(struct rnic_qp *qp)
{
	const struct rnic_net *net = qp->hca->net;
	ground_touch(&net->ground, TOUCH_DRAM_WRITE, qp->resp.atomic_at, 1);
	qp->resp.atomic_at = NULL;
	for (uint32_t i = 0; i < net->qps; i++) {
		struct rnic_qp *other = net->qp[i];
		if (!other || !other->resp.atomic_waits)
			continue;
		other->resp.atomic_waits = false;
		alarm_set(&net->ground, &other->resp.answer_alarm, qp_chain(other, CHAIN_ANSWER), 0,
			  fire_answer, other);
	}
}

/*
 * atomics=hca: what is read and what is written are two moments. Atomics of other queue pairs wait
 * for the word meanwhile; nothing else does, and the write replaces whatever was written.
 */
static enum served serve_atomic_in_two(struct rnic_qp *qp, struct packet *pkt,
				       const struct rnic_mr *mr)
{
	struct responder *resp = &qp->resp;
	uint8_t *host = mr_host(mr, pkt->va);
	uint64_t value;
	if (!resp->atomic_at) {
		ground_touch(qp_ground(qp), TOUCH_DRAM_READ, host, 1);
		resp->atomic_waits = atomic_under_way(qp, host);
		if (resp->atomic_waits || is_delayed(qp, pkt, CHOICE_FETCH, 1))
			return HELD;
		dma_flush(qp->hca, NULL, NULL, 0, &pkt->name);
		dma_read(qp->hca, mr, host, &resp->atomic_read, sizeof(resp->atomic_read));
		trace_atomic(qp, pkt, mr, resp->atomic_read);
		resp->atomic_at = host;
		ground_touch(qp_ground(qp), TOUCH_DRAM_WRITE, host, 1);
	}
	if (is_delayed(qp, pkt, CHOICE_FETCH, 2))
		return HELD;
	if (apply_atomic(pkt, resp->atomic_read, &value))
		write_word(qp, pkt, mr, value);
	atomic_over(qp);
	finish(qp, pkt, resp->atomic_read);
	return SERVED;
}

static enum served serve_atomic(struct rnic_qp *qp, struct packet *pkt)
{
	struct rnic_mr *mr = resp_region(qp, pkt);
	uint64_t original, value;
	if (!mr)
		return REFUSED;
	if (qp->hca->hw.atomics_hca && !qp->hca->memory->compare_swap)
		return serve_atomic_in_two(qp, pkt, mr);
	if (is_delayed(qp, pkt, CHOICE_FETCH, 1))
		return HELD;
	uint8_t *host = mr_host(mr, pkt->va);
	if (qp->hca->memory->compare_swap) {
		if (!dma_atomic(qp->hca, host, pkt, apply_atomic, &original))
			return REFUSED;
		finish(qp, pkt, original);
		return SERVED;
	}
	dma_flush(qp->hca, NULL, NULL, 0, &pkt->name);
	dma_read(qp->hca, mr, host, &original, sizeof(original));
	trace_atomic(qp, pkt, mr, original);
	if (apply_atomic(pkt, original, &value))
		write_word(qp, pkt, mr, value);
	finish(qp, pkt, original);
	return SERVED;
}

static enum served serve_atomic_write(struct rnic_qp *qp, struct packet *pkt)
{
	struct rnic_mr *mr = resp_region(qp, pkt);
	uint64_t value;
	if (!mr)
		return REFUSED;
	if (is_delayed(qp, pkt, CHOICE_FETCH, 1))
		return HELD;
	memcpy(&value, pkt->payload, sizeof(value));
	if (!pkt->done && !write_word(qp, pkt, mr, value))
		return REFUSED;
	finish(qp, pkt, 0);
	return SERVED;
}

/* NIC_ATOMIC_WRITE_POSTED: it is there before the FLUSH in front of it has taken effect. */
static bool overtakes_flush(struct rnic_qp *qp, struct packet *pkt)
{
	struct rnic_mr *mr;
	uint64_t value;
	ground_touch(qp_ground(qp), TOUCH_DRAM_READ, &qp->resp.answers, 1);
	if (!pkt || pkt->opcode != OP_ATOMIC_WRITE || pkt->done || !(mr = resp_region(qp, pkt)))
		return false;
	memcpy(&value, pkt->payload, sizeof(value));
	write_word(qp, pkt, mr, value);
	pkt->done = sizeof(value);
	return true;
}

static enum served serve_flush(struct rnic_qp *qp, struct packet *pkt)
{
	struct rnic_mr *mr = resp_region(qp, pkt);
	if (!mr)
		return REFUSED;
	if (is_delayed(qp, pkt, CHOICE_FETCH, 1))
		return HELD;
	if (MUTANT(&qp->hca->hw, NIC_ATOMIC_WRITE_POSTED) && overtakes_flush(qp, pkt->next) &&
	    ground_scheduled(qp_ground(qp)))
		return HELD;
	bool whole = pkt->selectivity == IBV_FLUSH_MR;
	uint8_t *at = whole ? mr->host : mr_host(mr, pkt->va);
	uint64_t len = whole ? mr->len : pkt->dma_len;
	if (pkt->placement & IBV_FLUSH_PERSISTENT && !MUTANT(&qp->hca->hw, NIC_FLUSH_IGNORED)) {
		if (!dma_flush(qp->hca, mr, at, len, &pkt->name))
			return REFUSED;
	}
	trace_effect(qp, pkt, mr, at, len);
	finish(qp, pkt, 0);
	return SERVED;
}

/* The payload becomes visible and durable, in two steps with commit_word=visible. */
static enum served place_payload(struct rnic_qp *qp, struct packet *pkt, const struct rnic_mr *mr)
{
	uint8_t *host = mr_host(mr, resp_word(pkt));
	uint64_t value;
	memcpy(&value, pkt->payload, sizeof(value));
	if (!qp->hca->hw.commit_visible) {
		dma_arrive(qp->hca, mr, host, &value, sizeof(value), &pkt->name);
		return dma_commit_word(qp->hca, mr, host, value, &pkt->name) ? SERVED : REFUSED;
	}
	if (!pkt->done && !write_word(qp, pkt, mr, value))
		return REFUSED;
	pkt->done = sizeof(value);
	if (is_delayed(qp, pkt, CHOICE_FETCH, 2))
		return HELD;
	return dma_commit(qp->hca, mr, host, sizeof(value), &pkt->name) ? SERVED : REFUSED;
}

static enum served serve_commit(struct rnic_qp *qp, struct packet *pkt)
{
	struct rnic_mr *mr = resp_region(qp, pkt);
	if (!mr)
		return REFUSED;
	if (!pkt->done) {
		if (is_delayed(qp, pkt, CHOICE_FETCH, 1))
			return HELD;
		if (!dma_commit(qp->hca, mr, mr_host(mr, pkt->va), pkt->dma_len, &pkt->name))
			return REFUSED;
	}
	if (pkt->opcode == OP_COMMIT_PAYLOAD) {
		enum served placed = place_payload(qp, pkt, mr);
		if (placed != SERVED)
			return placed;
	}
	trace_effect(qp, pkt, mr, mr_host(mr, pkt->va), pkt->dma_len);
	finish(qp, pkt, 0);
	if (opcode_is[pkt->opcode] & HAS_IMM) {
		bool kept = resp_received(qp, pkt);
		assert(!kept); /* what is not posted is served in order; the rest waits for it */
	}
	return SERVED;
}

static enum served serve(struct rnic_qp *qp, struct packet *pkt)
{
	static enum served (*const by_class[CLASS_COUNT])(struct rnic_qp * qp,
							  struct packet * pkt) = {
		[CLASS_READ] = serve_read,     [CLASS_ATOMIC] = serve_atomic,
		[CLASS_FLUSH] = serve_flush,   [CLASS_ATOMIC_WRITE] = serve_atomic_write,
		[CLASS_COMMIT] = serve_commit, [CLASS_COMMIT_PAYLOAD] = serve_commit,
	};
	return by_class[packet_rows[pkt->opcode].class](qp, pkt);
}

/* The memory that a waiting request was let in for is gone: refuse it, and those after it. */
static void refuse_head(struct rnic_qp *qp)
{
	struct packet *pkt = queue_pop(&qp->resp.answers);
	qp->resp.next_read = NULL;
	if (pkt->duplicate) {
		packet_put(qp->hca->net, pkt);
		return;
	}
	uint32_t psn = psn_add(pkt->psn, pkt->done / qp->mtu);
	answer_drop_all(qp);
	resp_refuse(qp, pkt, psn, AETH_NAK_REMOTE_ACCESS);
	packet_put(qp->hca->net, pkt);
}

/* Mutants: it does not wait for what was posted before it. */
static bool overtakes(const struct rnic_qp *qp, const struct packet *pkt)
{
	const struct hardware *hw = &qp->hca->hw;
	return MUTANT(hw, NIC_READ_OVERTAKES) ||
	       (MUTANT(hw, NIC_FLUSH_IGNORED) && pkt->opcode == OP_FLUSH);
}

static void answer_run(struct rnic_qp *qp)
{
	struct responder *resp = &qp->resp;
	const struct rnic_ground *ground = qp_ground(qp);
	struct packet *pkt;
	while ((pkt = resp->answers.head) && !resp->atomic_waits) {
		bool finished = opcode_is[pkt->opcode] & IS_RESPONSE;
		if (!finished && pkt->after > resp->land_done && !overtakes(qp, pkt))
			return; /* landing comes back here */
		if (ground_scheduled(ground) && !resp->answer_turn) {
			alarm_set(ground, &resp->answer_alarm, qp_chain(qp, CHAIN_ANSWER),
				  ground_cost(ground)->land, fire_answer, qp);
			return;
		}
		ground_takes(ground, pkt, 0);
		if (finished) {
			queue_pop(&resp->answers);
			resp_send(qp, pkt);
			resp->answer_turn = false;
			continue;
		}
		ground_takes(ground, &resp->land_done, pkt->after);
		enum served served = HELD;
		if (pkt->due <= ground_now(ground) || ground_scheduled(ground))
			served = serve(qp, pkt);
		if (served == HELD && resp->atomic_waits)
			return; /* atomic_over() comes back here */
		if (served == HELD) {
			alarm_set(ground, &resp->answer_alarm, qp_chain(qp, CHAIN_ANSWER),
				  until(ground, pkt->due), fire_answer, qp);
			return;
		}
		if (served == REFUSED) {
			refuse_head(qp);
			continue;
		}
		queue_pop(&resp->answers);
		resp->next_read = NULL;
		if (!pkt->duplicate) {
			assert(resp->nonposted);
			resp->nonposted--;
		}
		packet_put(qp->hca->net, pkt);
	}
}

static void fire_answer(void *arg)
{
	struct rnic_qp *qp = arg;
	if (!alarm_fired(qp_ground(qp), &qp->resp.answer_alarm))
		return;
	qp->resp.answer_turn = true;
	answer_run(qp);
	qp->resp.answer_turn = false;
}

void answer_push(struct rnic_qp *qp, struct packet *pkt)
{
	struct packet_queue *answers = &qp->resp.answers;
	const struct rnic_ground *ground = qp_ground(qp);
	/* Acknowledgements are cumulative: the last of several in a row says it all. */
	if (answers->head && !ground_scheduled(ground) && pkt->opcode == OP_ACKNOWLEDGE &&
	    pkt->syndrome == AETH_ACK && answers->tail->opcode == OP_ACKNOWLEDGE &&
	    answers->tail->syndrome == AETH_ACK) {
		answers->tail->psn = pkt->psn;
		answers->tail->msn = pkt->msn;
		answers->tail->name = pkt->name;
		packet_put(qp->hca->net, pkt);
		return;
	}
	pkt->due = ground_now(ground) + ground_cost(ground)->land;
	pkt->after = qp->resp.land_tail;
	ground_gives(ground, pkt, 0);
	ground_touch(ground, TOUCH_DRAM_WRITE, answers, 1);
	queue_push(answers, pkt);
	if (answers->head == pkt && ground_scheduled(ground))
		answer_run(qp);
	else if (answers->head == pkt)
		alarm_set(ground, &qp->resp.answer_alarm, qp_chain(qp, CHAIN_ANSWER),
			  ground_cost(ground)->land, fire_answer, qp);
}

/* What waits for more than `landed` posted packets never happens. */
static void answer_drop_after(struct rnic_qp *qp, uint64_t landed)
{
	struct packet_queue keep = {0}, *answers = &qp->resp.answers;
	struct packet *pkt;
	qp->resp.next_read = NULL;
	while (answers->head && answers->head->after <= landed) {
		pkt = queue_pop(answers);
		queue_push(&keep, pkt);
	}
	while ((pkt = queue_pop(answers))) {
		if (!(opcode_is[pkt->opcode] & IS_RESPONSE) && !pkt->duplicate) {
			assert(qp->resp.nonposted);
			qp->resp.nonposted--;
		}
		packet_put(qp->hca->net, pkt);
	}
	*answers = keep;
}

void answer_drop_all(struct rnic_qp *qp)
{
	struct packet *pkt;
	qp->resp.next_read = NULL;
	while ((pkt = queue_pop(&qp->resp.answers)))
		packet_put(qp->hca->net, pkt);
	if (qp->resp.atomic_at)
		atomic_over(qp);
	qp->resp.atomic_waits = false;
	qp->resp.nonposted = 0;
	qp->resp.answer_alarm.at = 0;
}
