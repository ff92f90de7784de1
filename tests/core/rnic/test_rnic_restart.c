/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process ends and another begins on the same host: what was sent to the old one and is late
 * finds nothing, unless keys, queue pair numbers and packet numbers are those of before (the knob
 * restart_reuse, and what the program chooses). And what a NIC still sends when its process or its
 * machine has ended.
 */
#include "tests/core/rnic/rnic_world.h"

#define LATE 0x1a7e1a7e1a7e1a7eull

static unsigned packets; /* of a, that the link was asked about */
static uint32_t new_psn; /* of the new queue pair */
static uint64_t landed;

/* The first packet comes late, and those that repeat it never. */
static unsigned first_is_late(const struct choice_point *at, unsigned n)
{
	if (at->kind != CHOICE_PACKET)
		return 0;
	return packets++ ? PACKET_LOSE : PACKET_DELAY + DELAY_5MS - 1;
}

static void late_body(void)
{
	uint32_t old_psn = opt.psn, old_qpn = b.qp->qp_num, old_key = b.mr->rkey;

	set_word(&a, 0, LATE);
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, 1, IBV_SEND_SIGNALED);
	sim_sleep(sim, 10 * US);
	restart_side(&b, HOST_SERVER);
	ck_assert_int_eq(b.qp->qp_num == old_qpn, opt.hw.restart_reuse);
	ck_assert_int_eq(b.mr->rkey == old_key, opt.hw.restart_reuse);
	opt.psn = new_psn;
	connect_side(&b, &a);
	opt.psn = old_psn;
	ck_assert_uint_eq(word(&b, 0), 0);
	sim_sleep(sim, 7 * MS);
	ck_assert_uint_gt(packets, 1);
	landed = word(&b, 0);
}

/* Does a WRITE to the old process land in the new one's region? */
static bool lands(bool reuse, uint32_t psn)
{
	setup_options();
	opt.hw.restart_reuse = reuse;
	packets = 0;
	new_psn = psn;
	source.answer = first_is_late;
	run_connected(late_body);
	ck_assert(!landed || landed == LATE);
	return landed;
}

TEST(late_packet)
{
	ck_assert(!lands(false, 100));
	ck_assert(lands(true, 100));
	ck_assert(!lands(true, 5000)); /* out of sequence */
}

/* --- a client's NIC when the client is gone --- */

#define LONG (40 * 1024u) /* bytes, 1024 in a packet */

static enum { STAYS, PROCESS_ENDS, MACHINE_ENDS } how;
static bool first_are_lost;
static unsigned arrived; /* bytes */

ANSWER(maybe_lost, at->kind == CHOICE_PACKET && packets++ < LONG / 1024 && first_are_lost,
       PACKET_LOSE)

static void gone_body(void)
{
	memset(a.buf, 0xa5, LONG);
	op(&a, IBV_WR_RDMA_WRITE, 0, LONG, &b, 0, 1, IBV_SEND_SIGNALED);
	if (how == PROCESS_ENDS)
		sim_sleep(sim, 20 * US); /* until the kernel comes to it */
	if (how != STAYS)
		rnic_close(a.ctx);
	sim_sleep(sim, 20 * MS);
	for (arrived = 0; arrived < LONG && b.buf[arrived]; arrived++)
		;
}

static unsigned arrives(unsigned what, bool lost)
{
	setup_options();
	packets = 0;
	how = what;
	first_are_lost = lost;
	source.answer = maybe_lost;
	run_connected(gone_body);
	return arrived;
}

/* A process's NIC sends what was posted, and repeats nothing later; a machine's stops at once. */
TEST(who_is_gone)
{
	ck_assert_uint_eq(arrives(STAYS, false), LONG);
	ck_assert_uint_eq(arrives(STAYS, true), LONG);
	ck_assert_uint_eq(arrives(PROCESS_ENDS, false), LONG);
	ck_assert_uint_eq(arrives(PROCESS_ENDS, true), 0);
	ck_assert_uint_lt(arrives(MACHINE_ENDS, false), LONG);
}

/* --- a host that loses its power while others go on --- */

/* Nobody reads its memory, DRAM or PM, nothing lands there, and what its NIC has not sent stays. */
static void power_body(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	memset(b.buf, 0xa5, LONG);
	set_word(&a, 0, 0);
	op_done(&a, IBV_WR_RDMA_READ, 0, 8, &b, 8);
	ck_assert_uint_eq(word(&a, 0), 0xa5a5a5a5a5a5a5a5);
	op(&b, IBV_WR_RDMA_WRITE, 0, LONG, &a, LONG, 1, 0);
	op(&a, IBV_WR_RDMA_WRITE, 0, 8, &b, 0, 1, 0);
	set_word(&a, 0, 0);
	rnic_power_off(b.ctx);
	wr = wr_make(&a, IBV_WR_RDMA_READ, &sge, 0, 8, &b, 8);
	post(&a, &wr);
	sim_sleep(sim, 20 * MS);
	ck_assert_uint_eq(word(&a, 0), 0);
	ck_assert_uint_eq(word(&b, 0), 0xa5a5a5a5a5a5a5a5);
	ck_assert(!a.buf[2 * LONG - 1]);
}

TEST(no_power)
{
	setup_options();
	run_connected(power_body);
	setup_options();
	run_pm(power_body);
}

RUN_TESTS(NULL, NULL)
