/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When an RNIC reads the data of a request (TIDEMARK_GATHER): early, when it is posted; late, when
 * its completion is asked for. A buffer that is used again before is a bug, which only a late RNIC
 * shows.
 */
#include <infiniband/verbs.h>
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

#define BYTES  4096u
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static void setup(const char *gather)
{
	setenv("TIDEMARK_GATHER", gather, 1);
	open_side(&a, BYTES, ACCESS);
	open_side(&b, BYTES, ACCESS);
	connect_both(IBV_QPT_RC);
}

static void setup_late(void)
{
	setup("late");
}

static void setup_early(void)
{
	setup("early");
}

/* WRITE a byte from buf[at] to the peer's buf[at], and store `then` where it was. */
static void write_byte(unsigned at, uint8_t byte, uint8_t then, unsigned flags)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_of(&a, IBV_WR_RDMA_WRITE, &sge, 1, at);

	sge.addr += at;
	wr.wr.rdma.remote_addr += at;
	wr.send_flags = flags;
	a.buf[at] = byte;
	post_wr(&a, &wr);
	a.buf[at] = then;
}

START_TEST(early)
{
	write_byte(1, 'a', 'z', IBV_SEND_SIGNALED);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(b.buf[1], 'a');
}
END_TEST

TEST(late)
{
	write_byte(1, 'a', 'z', IBV_SEND_SIGNALED);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(b.buf[1], 'z');
}

/* Inline data are the program's again at once. */
TEST(inline_data)
{
	write_byte(1, 'a', 'z', IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(b.buf[1], 'a');
}

/* A completion says nothing about later requests, and all about those before it that have none. */
TEST(up_to_the_completion)
{
	write_byte(1, 'a', 'a', 0);
	write_byte(2, 'b', 'b', IBV_SEND_SIGNALED);
	write_byte(3, 'c', 'c', IBV_SEND_SIGNALED);
	expect(a.scq, 2, IBV_WC_SUCCESS);
	a.buf[1] = a.buf[2] = a.buf[3] = 'z';
	expect(a.scq, 3, IBV_WC_SUCCESS);
	ck_assert_mem_eq(b.buf + 1, "abz", 3);
}

/* A program that waits for its peer, and not for a completion, gets there. */
TEST(nobody_asks)
{
	volatile uint8_t *there = b.buf + 1;

	write_byte(1, 'a', 'a', 0);
	while (*there != 'a')
		usleep(1000);
	/* Or for its peer's answer. */
	give(&a, 1, 7);
	write_byte(2, 'b', 'b', 0);
	struct ibv_wc wc;
	while (ibv_poll_cq(a.rcq, 1, &wc) || b.buf[2] != 'b')
		;
}

/* As it arms its queue for an event. */
TEST(event)
{
	write_byte(1, 'a', 'z', IBV_SEND_SIGNALED);
	ck_assert_int_eq(ibv_req_notify_cq(a.scq, 0), 0);
	expect(a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(b.buf[1], 'z');
}

int main(void)
{
	Suite *suite = listed_suite(setup_late, NULL);
	TCase *tc = tcase_create("early");

	tcase_add_checked_fixture(tc, setup_early, NULL);
	tcase_add_test(tc, early);
	suite_add_tcase(suite, tc);
	return nic_fabric_run(suite);
}
