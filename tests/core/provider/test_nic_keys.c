/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that take a region's lkey for its rkey, or the other way round: refused, and told of on
 * stderr, in one line for each kind; with equal keys (TIDEMARK_KEYS) they work.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

#define BYTES  4096u
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define HINT   "; cards with equal keys accept that (tidemark run --keys equal)\n"

static FILE *said;

static void setup(void)
{
	open_side(&a, BYTES, ACCESS);
	open_side(&b, BYTES, ACCESS);
	connect_both(IBV_QPT_RC);
	said = tmpfile();
	ck_assert_ptr_nonnull(said);
	ck_assert_int_ge(dup2(fileno(said), STDERR_FILENO), 0);
}

static void connect_again(void)
{
	ibv_destroy_qp(a.qp);
	ibv_destroy_qp(b.qp);
	connect_both(IBV_QPT_RC);
}

static void post(enum ibv_wr_opcode opcode, uint32_t lkey, uint32_t rkey)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_of(&a, opcode, &sge, 64, 7);

	sge.lkey = lkey;
	wr.wr.rdma.rkey = rkey;
	post_wr(&a, &wr);
}

static void recv_by(uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)b.buf, 64, lkey};
	struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;

	ck_assert_int_eq(ibv_post_recv(b.qp, &wr, &bad), 0);
}

static void expect_said(const char *text)
{
	char got[2048];
	size_t n;

	rewind(said);
	n = fread(got, 1, sizeof(got) - 1, said);
	got[n] = '\0';
	ck_assert_str_eq(got, text);
}

static const struct {
	enum ibv_wr_opcode opcode;
	bool rkey, lkey, recv; /* which key is the other one */
	enum ibv_wc_status status;
	const char *said;
} wrong[] = {
	{IBV_WR_RDMA_WRITE, .rkey = true, .status = IBV_WC_REM_ACCESS_ERR,
	 .said = "the rkey of a WRITE is the lkey"},
	{IBV_WR_SEND, .lkey = true, .status = IBV_WC_LOC_PROT_ERR,
	 .said = "the lkey of a SEND is the rkey"},
	{IBV_WR_RDMA_READ, .lkey = true, .status = IBV_WC_LOC_PROT_ERR,
	 .said = "the lkey of a READ is the rkey"},
	{IBV_WR_SEND, .recv = true, .status = IBV_WC_REM_OP_ERR,
	 .said = "the lkey of a receive request is the rkey"},
};

TESTS(wrong_key, ROWS_OF(wrong))
{
	const struct side *whose = wrong[_i].lkey ? &a : &b;
	char line[300];

	if (wrong[_i].opcode == IBV_WR_SEND)
		recv_by(wrong[_i].recv ? b.mr->rkey : b.mr->lkey);
	post(wrong[_i].opcode, wrong[_i].lkey ? a.mr->rkey : a.mr->lkey,
	     wrong[_i].rkey ? b.mr->lkey : b.mr->rkey);
	expect(a.scq, 7, wrong[_i].status);
	if (wrong[_i].recv)
		expect(b.rcq, 9, IBV_WC_LOC_PROT_ERR);
	snprintf(line, sizeof(line), "tidemark: queue pair 0x%x: %s of the region at %p%s",
		 whose->qp->qp_num, wrong[_i].said, (void *)whose->buf, HINT);
	expect_said(line);
	/* Once. */
	connect_again();
	post(IBV_WR_RDMA_READ, a.mr->lkey, b.mr->lkey);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	if (wrong[_i].rkey)
		expect_said(line);
}

/* Keys that would be wrong on any card. */
TEST(other_errors)
{
	struct ibv_pd *other = ibv_alloc_pd(b.context);
	struct ibv_mr *foreign = ibv_reg_mr(other, b.buf, BYTES, ACCESS),
		      *closed = ibv_reg_mr(b.pd, b.buf, BYTES, IBV_ACCESS_LOCAL_WRITE),
		      *small = ibv_reg_mr(b.pd, b.buf, 8, ACCESS);
	const uint32_t keys[] = {b.mr->lkey ^ 2, foreign->lkey, closed->lkey, small->lkey};

	for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		post(IBV_WR_RDMA_WRITE, a.mr->lkey, keys[i]);
		expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
		connect_again();
	}
	expect_said("");
}

START_TEST(equal)
{
	ck_assert_uint_eq(a.mr->lkey, a.mr->rkey);
	memset(a.buf, 5, 64);
	post(IBV_WR_RDMA_WRITE, a.mr->rkey, b.mr->lkey);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	recv_by(b.mr->rkey);
	post(IBV_WR_SEND, a.mr->rkey, 0);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	expect(b.rcq, 9, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a.buf, b.buf, 64);
	/* Still keys. */
	post(IBV_WR_RDMA_WRITE, a.mr->lkey, b.mr->rkey ^ 1);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	expect_said("");
}
END_TEST

static void setup_equal(void)
{
	setenv("TIDEMARK_KEYS", "equal", 1);
	setup();
}

int main(void)
{
	Suite *suite = listed_suite(setup, NULL);
	TCase *tc = tcase_create("equal");
	tcase_add_checked_fixture(tc, setup_equal, NULL);
	tcase_add_test(tc, equal);
	suite_add_tcase(suite, tc);
	return nic_fabric_run(suite);
}
