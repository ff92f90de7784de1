/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the soft RNIC in real time, as a program meets it: what may be registered, memory that
 * goes while it is registered, the program's own handlers of faults, keys, atomics beside the
 * CPU's, FLUSH of a file, windows. Two queue pairs of one process, each on a device that it has
 * opened: a accesses b's memory.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include "core/rdma_commit.h"
#include "core/verbs_compat.h"
#include "core/rt/asan.h"
#include "tests/core/provider/nic_fabric.h"
#include "tests/core/provider/nic_side.h"

#define RW                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL)
#define PERSISTENT IBV_ACCESS_FLUSH_PERSISTENT
#define PAGE	   4096ul
#define BYTES	   (64 * PAGE)

static uint8_t *map(size_t len, int flags, int fd)
{
	uint8_t *at = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

static void connect_sides(void)
{
	/* What is left of the last connection does not concern this one. */
	const uint32_t psn = (a.attr.sq_psn + 100000) & 0xffffff;

	a.attr.rq_psn = a.attr.sq_psn = b.attr.rq_psn = b.attr.sq_psn = psn;
	to_state(&a, IBV_QPS_RESET, 0);
	go(&a, &b, IBV_QPS_RTS);
	to_state(&b, IBV_QPS_RESET, 0);
	go(&b, &a, IBV_QPS_RTS);
}

static void open_one(struct side *s)
{
	open_side(s, BYTES, RW | IBV_ACCESS_MW_BIND);
	make_qp(s, IBV_QPT_RC);
	s->attr.qp_access_flags = RW | PERSISTENT;
	s->attr.path_mtu = IBV_MTU_4096;
}

static void setup(void)
{
	open_one(&a);
	open_one(&b);
	connect_sides();
}

/* a's request for `va` of b; its data at `at` of a region of a. */
static void post_at(enum ibv_wr_opcode opcode, struct ibv_mr *mr, void *at, uint32_t len,
		    uint32_t rkey, const void *va)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_of(&a, opcode, &sge, len, 7);

	sge.addr = (uintptr_t)at;
	sge.lkey = mr->lkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)va;
		wr.wr.atomic.rkey = rkey;
	} else if (opcode == IBV_WR_FLUSH) {
		wr.num_sge = 0;
		flush_wr(&wr, rkey, (uintptr_t)va, len, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT,
			 IBV_FLUSH_RANGE);
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)va;
		wr.wr.rdma.rkey = rkey;
	}
	post_wr(&a, &wr);
}

static void post(enum ibv_wr_opcode opcode, uint32_t len, uint32_t rkey, const void *va)
{
	post_at(opcode, a.mr, a.buf, len, rkey, va);
}

static void recv_post(struct ibv_mr *mr, void *at, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)at, len, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;

	ck_assert_int_eq(ibv_post_recv(b.qp, &wr, &bad), 0);
}

/* Still alive, both ways. */
static void works(void)
{
	connect_sides();
	memset(a.buf, 0x5a, 64);
	post(IBV_WR_RDMA_WRITE, 64, b.mr->rkey, b.buf + PAGE);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	ck_assert_mem_eq(b.buf + PAGE, a.buf, 64);
	post(IBV_WR_RDMA_READ, 64, b.mr->rkey, b.buf + 2 * PAGE);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	ck_assert_mem_eq(b.buf + 2 * PAGE, a.buf, 64);
}

/* --- memory that goes --- */

enum loss { UNMAPPED, PROTECTED, READ_ONLY, TRUNCATED, LOSSES };

static int temporary(size_t len)
{
	char path[] = "/dev/shm/tidemark-test-file-XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
	return fd;
}

/* Make a region whose second half is lost. */
static struct ibv_mr *lossy(struct side *s, enum loss loss, uint8_t **at)
{
	int fd = loss == TRUNCATED ? temporary(16 * PAGE) : -1;
	uint8_t *buf = map(16 * PAGE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd);
	struct ibv_mr *mr = ibv_reg_mr(s->pd, buf, 16 * PAGE, RW);

	ck_assert_ptr_nonnull(mr);
	memset(buf, 0x11, 16 * PAGE);
	if (loss == UNMAPPED)
		ck_assert_int_eq(munmap(buf + 8 * PAGE, 8 * PAGE), 0);
	else if (loss == TRUNCATED)
		ck_assert_int_eq(ftruncate(fd, 8 * PAGE), 0);
	else
		ck_assert_int_eq(mprotect(buf + 8 * PAGE, 8 * PAGE,
					  loss == PROTECTED ? PROT_NONE : PROT_READ),
				 0);
	if (fd >= 0)
		close(fd);
	*at = buf;
	return mr;
}

static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE,		  IBV_WR_RDMA_READ,
					     IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
					     IBV_WR_ATOMIC_WRITE,	  IBV_WR_SEND};
#define OPCODES (sizeof(opcodes) / sizeof(*opcodes))

TESTS(remote_memory_gone, LOSSES *(int)OPCODES)
{
	enum loss loss = _i % LOSSES;
	enum ibv_wr_opcode opcode = opcodes[_i / LOSSES];
	uint32_t len = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ ? 16 * PAGE : 8;
	bool is_send = opcode == IBV_WR_SEND,
	     works_on = loss == READ_ONLY && opcode == IBV_WR_RDMA_READ;
	uint8_t *at;

	setup();
	struct ibv_mr *mr = lossy(&b, loss, &at);
	memset(a.buf, 0x77, BYTES);
	if (is_send)
		recv_post(mr, at + 8 * PAGE, 64);
	/* A long one goes across the edge. */
	post(opcode, len, mr->rkey, len == 8 ? at + 8 * PAGE : at);
	if (works_on) {
		expect(a.scq, 7, IBV_WC_SUCCESS);
		return;
	}
	expect(a.scq, 7, is_send ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR);
	if (is_send)
		expect(b.rcq, 9, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(&b), IBV_QPS_ERR);
	works();
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}

TESTS(local_memory_gone, LOSSES *(int)OPCODES)
{
	enum loss loss = _i % LOSSES;
	enum ibv_wr_opcode opcode = opcodes[_i / LOSSES];
	uint32_t len = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ ? 16 * PAGE : 8;
	bool reads = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_SEND ||
		     opcode == IBV_WR_ATOMIC_WRITE;
	uint8_t *at;

	setup();
	struct ibv_mr *mr = lossy(&a, loss, &at);
	recv_post(b.mr, b.buf, 64);
	post_at(opcode, mr, len == 8 ? at + 8 * PAGE : at, len, b.mr->rkey, b.buf);
	expect(a.scq, 7, loss == READ_ONLY && reads ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
	works();
}

/* It goes while it is written to, again and again, by a thread that waits for nothing. */
static atomic_bool stop;

static void *unmapper(void *arg)
{
	uint8_t *at = arg;

	while (!stop) {
		mprotect(at, 4 * PAGE, PROT_NONE);
		mprotect(at, 4 * PAGE, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

TEST(memory_comes_and_goes)
{
	unsigned failed = 0;
	pthread_t thread;

	setup();
	ck_assert_int_eq(pthread_create(&thread, NULL, unmapper, b.buf), 0);
	/* On a busy machine the thread may rarely run beside this one. */
	for (unsigned i = 0; i < 3000 || (failed == 0 && i < 300000); i++) {
		post(opcodes[i % 5], i % 5 < 2 ? 4 * PAGE : 8, b.mr->rkey, b.buf);
		enum ibv_wc_status status = wait_for(a.scq).status;
		ck_assert(status == IBV_WC_SUCCESS || status == IBV_WC_REM_ACCESS_ERR);
		if (status != IBV_WC_SUCCESS) {
			failed++;
			connect_sides();
		}
	}
	stop = true;
	pthread_join(thread, NULL);
	ck_assert_uint_gt(failed, 0);
	works();
}

/* --- the program's own faults --- */

static volatile int *volatile nowhere = (int *)8;
static sigjmp_buf back;
static volatile sig_atomic_t caught, on_alternate;
static uint8_t alternate[65536];

static void on_fault(int sig, siginfo_t *info, void *context)
{
	uint8_t here;

	caught++;
	on_alternate = &here >= alternate && &here < alternate + sizeof(alternate);
	ck_assert_ptr_eq(info->si_addr, (void *)8);
	siglongjmp(back, 1);
}

static void plain_handler(int sig)
{
	caught++;
	siglongjmp(back, 1);
}

static void fault(void)
{
	if (!sigsetjmp(back, 1))
		*nowhere = 1;
}

static void remote_fault(void)
{
	uint8_t *at;
	struct ibv_mr *mr = lossy(&b, UNMAPPED, &at);

	connect_sides();
	post(IBV_WR_RDMA_WRITE, 16 * PAGE, mr->rkey, at);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}

TESTS(handlers, 2)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK},
			 old;
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};

	if (_i == 0) /* before there is a NIC, or without its knowledge */
		ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
	setup();
	if (_i == 1)
		ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
	ck_assert_int_eq(sigaction(SIGSEGV, NULL, &old), 0);
	ck_assert_ptr_eq(old.sa_sigaction, on_fault);
	ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		fault();
		ck_assert_uint_eq(caught, i + 1);
		ck_assert(on_alternate);
		remote_fault();
		ck_assert_uint_eq(caught, i + 1);
	}
	ck_assert_ptr_eq(signal(SIGSEGV, plain_handler), on_fault);
	fault();
	ck_assert_uint_eq(caught, 4);
	remote_fault();
	ck_assert_uint_eq(caught, 4);
	works();
}

/* A thread that blocks all signals polls. */
static void *deaf(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	remote_fault();
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	remote_fault();
	sigprocmask(SIG_SETMASK, &all, NULL);
	remote_fault();
	return NULL;
}

TEST(deaf_thread)
{
	pthread_t thread;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL); /* there is no NIC yet, and threads inherit it */
	setup();
	ck_assert_int_eq(pthread_create(&thread, NULL, deaf, NULL), 0);
	pthread_join(thread, NULL);
	remote_fault();
}

/* A fault of the program itself ends it, unless it is handled. */
START_TEST(own_fault)
{
	setup();
	remote_fault();
	if (_i == 1)
		signal(SIGSEGV, SIG_IGN);
	if (_i == 2)
		raise(SIGSEGV);
	*nowhere = 1;
}
END_TEST

START_TEST(reset_hand)
{
	struct sigaction action = {.sa_handler = plain_handler, .sa_flags = (int)SA_RESETHAND};

	setup();
	sigaction(SIGSEGV, &action, NULL);
	fault();
	if (caught == 1)
		fault(); /* the default again */
}
END_TEST

/* --- what may be registered --- */

static void try_reg(const char *what, void *at, size_t len, int access, int error)
{
	errno = 0;
	struct ibv_mr *mr = ibv_reg_mr(a.pd, at, len, access);

	ck_assert_msg(!mr == !!error && errno == error, "%s: %d", what, errno);
	if (mr)
		ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}

TEST(registration)
{
	setup();
	uint8_t *at = map(8 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int fd = open("/proc/self/exe", O_RDONLY), mine;
	char path[] = "/dev/shm/tidemark-test-file-XXXXXX";
	const int read_only = IBV_ACCESS_REMOTE_READ;

	try_reg("all of it", at, 8 * PAGE, RW, 0);
	try_reg("a byte", at + 5, 1, RW, 0);
	try_reg("behind its end", at + 7 * PAGE, BYTES * 1024, RW, EFAULT);
	mprotect(at + 2 * PAGE, PAGE, PROT_READ);
	try_reg("read only, to be written", at, 8 * PAGE, RW, EFAULT);
	try_reg("read only, for a window", at, 8 * PAGE, IBV_ACCESS_MW_BIND, EFAULT);
	try_reg("read only, to be read", at, 8 * PAGE, read_only, 0);
	mprotect(at + 2 * PAGE, PAGE, PROT_NONE);
	try_reg("out of reach", at, 8 * PAGE, read_only, EFAULT);
	try_reg("up to it", at, 2 * PAGE, RW, 0);
	munmap(at + 2 * PAGE, PAGE);
	try_reg("a hole", at, 8 * PAGE, read_only, EFAULT);
	try_reg("up to the hole", at, 2 * PAGE, RW, 0);
	try_reg("from the hole", at + 2 * PAGE, PAGE, RW, EFAULT);
	try_reg("behind the hole", at + 3 * PAGE, 5 * PAGE, RW, 0);
	try_reg("a byte of the hole", at + PAGE, PAGE + 1, RW, EFAULT);
	uint8_t *write_only = mmap(NULL, PAGE, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	try_reg("write only, to be written", write_only, PAGE, RW, 0);
	try_reg("write only, to be read", write_only, PAGE, read_only, EFAULT);
	try_reg("page 0", NULL, PAGE, RW, EFAULT);
	try_reg("nowhere", (void *)~(uintptr_t)0xffff, 16, read_only, EFAULT);
	try_reg("around the end", (void *)~(uintptr_t)0xff, PAGE, read_only, EINVAL);
	try_reg("no bytes", at, 0, RW, EINVAL);
	try_reg("text", (void *)(uintptr_t)try_reg, 1, read_only, 0);
	try_reg("a constant", (void *)(uintptr_t)opcodes, 1, RW, EFAULT);
	try_reg("on demand", at, PAGE, RW | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP);
	try_reg("remote write alone", at, PAGE, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	/* Durable is what a file is. */
	try_reg("durable memory", at, PAGE, RW | PERSISTENT, EINVAL);
	try_reg("durable and shared", map(PAGE, MAP_SHARED | MAP_ANONYMOUS, -1), PAGE,
		RW | PERSISTENT, EINVAL);
	uint8_t *file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	try_reg("a private file", file, PAGE, RW | PERSISTENT, EINVAL);
	try_reg("a private file, not durable", file, PAGE, RW, 0);
	mine = mkstemp(path);
	ck_assert_int_eq(ftruncate(mine, 2 * PAGE), 0);
	file = map(2 * PAGE, MAP_SHARED, mine);
	try_reg("a file", file, 2 * PAGE, RW | PERSISTENT, 0);
	munmap(file + PAGE, PAGE);
	try_reg("half a file", file, 2 * PAGE, RW | PERSISTENT, EFAULT);
	unlink(path);
	try_reg("a file without a name", file, PAGE, RW | PERSISTENT, EINVAL);
	/* Re-registration has the same eyes, and a refusal changes nothing. */
	mprotect(at + 5 * PAGE, PAGE, PROT_NONE);
	struct ibv_mr *mr = ibv_reg_mr(b.pd, at, 2 * PAGE, RW);
	ck_assert_int_eq(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at + 3 * PAGE, 5 * PAGE, 0),
		IBV_REREG_MR_ERR_CMD);
	ck_assert_int_eq(errno, EFAULT);
	post(IBV_WR_RDMA_WRITE, 2 * PAGE, mr->rkey, at);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	ck_assert_int_eq(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at + 3 * PAGE, PAGE, 0), 0);
	post(IBV_WR_RDMA_WRITE, PAGE, mr->rkey, at + 3 * PAGE);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	close(mine);
	close(fd);
}

/* --- keys --- */

static int compare(const void *x, const void *y)
{
	uint32_t m = *(const uint32_t *)x, n = *(const uint32_t *)y;

	return m < n ? -1 : m > n;
}

#define KEYS 4000

TEST(keys)
{
	static uint32_t key[2 * KEYS];
	unsigned near = 0, high = 0;

	setup();
	struct ibv_mr *dead = ibv_reg_mr(b.pd, b.buf, BYTES, RW);
	uint32_t rkey = dead->rkey;
	post(IBV_WR_RDMA_WRITE, 8, rkey, b.buf);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_dereg_mr(dead), 0);
	for (unsigned i = 0; i < KEYS; i++) {
		struct ibv_mr *mr = ibv_reg_mr(i % 2 ? a.pd : b.pd, b.buf, BYTES, RW);
		key[2 * i] = mr->lkey;
		key[2 * i + 1] = mr->rkey;
		near += i && (mr->rkey >> 8) - (key[2 * i - 1] >> 8) + 64 < 128;
		high += mr->rkey >> 31;
		if (i % 4)
			ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	}
	/* One after the other says nothing: 1 in 131072 is near by chance. */
	ck_assert_uint_le(near, 3);
	ck_assert(high > KEYS / 3 && high < KEYS / 3 * 2);
	qsort(key, 2 * KEYS, sizeof(*key), compare);
	for (unsigned i = 1; i < 2 * KEYS; i++)
		ck_assert_uint_ne(key[i - 1], key[i]);
	ck_assert_ptr_null(bsearch(&rkey, key, 2 * KEYS, sizeof(*key), compare));
	post(IBV_WR_RDMA_WRITE, 8, rkey, b.buf);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	connect_sides();
	post(IBV_WR_RDMA_WRITE, 8, b.mr->lkey, b.buf);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	works();
}

/* --- one access --- */

#define ADDS 20000

static void *adder(void *word)
{
	uint64_t n = 0;

	for (; !stop; n++)
		__atomic_fetch_add((uint64_t *)word, 1ull << 20, __ATOMIC_SEQ_CST);
	return (void *)(uintptr_t)n;
}

/* The RNIC's atomics beside the CPU's: nothing is lost. */
TEST(atomics)
{
	pthread_t thread;
	void *added;
	unsigned done = 0;

	setup();
	ck_assert_int_eq(pthread_create(&thread, NULL, adder, b.buf), 0);
	while (!__atomic_load_n((uint64_t *)(void *)b.buf, __ATOMIC_RELAXED))
		;
	for (unsigned posted = 0; done < ADDS;) {
		if (posted < ADDS && posted - done < 32) {
			post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, b.mr->rkey, b.buf);
			posted++;
			continue;
		}
		expect(a.scq, 7, IBV_WC_SUCCESS);
		done++;
	}
	stop = true;
	pthread_join(thread, &added);
	ck_assert_uint_eq(*(uint64_t *)(void *)b.buf, ((uint64_t)(uintptr_t)added << 20) + ADDS);
}

/* A thread that sees the last word of a WRITE's packet sees all of it. */
#define ROUNDS 3000

static atomic_uint seen;

static void *reader(void *arg)
{
	volatile uint64_t *word = arg;
	unsigned last = 511;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		while (__atomic_load_n(&word[last], __ATOMIC_ACQUIRE) != i)
			if (stop)
				return NULL;
		for (unsigned k = 0; k < last; k++)
			if (word[k] != i)
				return (void *)(uintptr_t)i;
		seen = (unsigned)i;
	}
	return NULL;
}

TEST(last_word_last)
{
	pthread_t thread;
	void *wrong;

	setup();
	ck_assert_int_eq(pthread_create(&thread, NULL, reader, b.buf), 0);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		for (unsigned k = 0; k < 512; k++)
			((uint64_t *)(void *)a.buf)[k] = i;
		post(IBV_WR_RDMA_WRITE, 4096, b.mr->rkey, b.buf);
		expect(a.scq, 7, IBV_WC_SUCCESS);
		while (seen < i && pthread_tryjoin_np(thread, &wrong))
			;
		ck_assert_uint_eq(seen, i);
	}
	pthread_join(thread, &wrong);
	ck_assert_ptr_null(wrong);
}

/* --- FLUSH --- */

/* b's region that is a file, which is deleted with the test's end. */
static char path[] = "/tmp/tidemark-test-file-XXXXXX";

static struct ibv_mr *file_region(int *fd)
{
	setup();
	*fd = mkstemp(path);
	ck_assert_int_eq(ftruncate(*fd, 4 * PAGE), 0);
	struct ibv_mr *mr = ibv_reg_mr(b.pd, map(4 * PAGE, MAP_SHARED, *fd), 4 * PAGE,
				       RW | PERSISTENT);
	ck_assert_ptr_nonnull(mr);
	return mr;
}

TEST(flush)
{
	char got[64];
	int fd;
	struct ibv_mr *mr = file_region(&fd);
	uint8_t *file = mr->addr;

	memset(a.buf, 0x42, 64);
	post(IBV_WR_RDMA_WRITE, 64, mr->rkey, file + PAGE - 32);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	post(IBV_WR_FLUSH, 64, mr->rkey, file + PAGE - 32);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	ck_assert_int_eq(pread(fd, got, 64, PAGE - 32), 64);
	ck_assert_mem_eq(got, a.buf, 64);
	/* No right to it; memory that is gone. */
	post(IBV_WR_FLUSH, 64, b.mr->rkey, b.buf);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	connect_sides();
	munmap(file + PAGE, PAGE);
	post(IBV_WR_FLUSH, 64, mr->rkey, file + PAGE - 32);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	works();
	unlink(path);
	close(fd);
}

/* --- RDMA Commit --- */

/* All three, on memory of a file. */
TEST(commit)
{
	char got[72];
	int fd;
	struct ibv_mr *mr = file_region(&fd);
	uint8_t *file = mr->addr;

	ck_assert_int_eq(tm_commit_supported(a.context), 0);
	memset(a.buf, 0x42, 64);
	memset(a.buf + 64, 0x43, 8);
	recv_post(b.mr, b.buf, 64);
	post(IBV_WR_RDMA_WRITE, 64, mr->rkey, file + PAGE - 64);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	struct ibv_sge sge = {(uintptr_t)a.buf + 64, 8, a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 7, .send_flags = IBV_SEND_SIGNALED};
	tm_commit_imm_wr(&wr, mr->rkey, (uintptr_t)file + PAGE - 64, 64, htobe32(5));
	post_wr(&a, &wr);
	struct ibv_wc wc = wait_for(b.rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_uint_eq(be32toh(wc.imm_data), 5);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	tm_commit_payload_wr(&wr, mr->rkey, (uintptr_t)file + PAGE - 64, 72);
	post_wr(&a, &wr);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	ck_assert_int_eq(pread(fd, got, 72, PAGE - 64), 72);
	ck_assert_mem_eq(got, a.buf, 72);
	/* No right to it. */
	wr.num_sge = 0;
	tm_commit_wr(&wr, b.mr->rkey, (uintptr_t)b.buf, 64);
	post_wr(&a, &wr);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	works();
	unlink(path);
	close(fd);
}

/* --- windows --- */

TEST(windows)
{
	setup();
	struct ibv_mw *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1),
		      *two = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info what = {b.mr, (uintptr_t)b.buf, PAGE, IBV_ACCESS_REMOTE_WRITE};
	struct ibv_mw_bind bind = {.wr_id = 8, .send_flags = IBV_SEND_SIGNALED, .bind_info = what};
	struct ibv_send_wr wr = {.wr_id = 8,
				 .opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	ck_assert_ptr_nonnull(one);
	ck_assert_ptr_nonnull(two);
	ck_assert_int_eq(ibv_bind_mw(b.qp, one, &bind), 0);
	expect(b.scq, 8, IBV_WC_SUCCESS);
	wr.bind_mw.mw = two;
	wr.bind_mw.rkey = ibv_inc_rkey(two->rkey);
	wr.bind_mw.bind_info = what;
	ck_assert_int_eq(ibv_post_send(b.qp, &wr, &bad), 0);
	expect(b.scq, 8, IBV_WC_SUCCESS);
	post(IBV_WR_RDMA_WRITE, PAGE, one->rkey, b.buf);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	post(IBV_WR_RDMA_WRITE, PAGE, wr.bind_mw.rkey, b.buf);
	expect(a.scq, 7, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_dereg_mr(b.mr), EBUSY);
	post(IBV_WR_RDMA_WRITE, PAGE + 1, wr.bind_mw.rkey, b.buf);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	connect_sides();
	ck_assert_int_eq(ibv_dealloc_mw(two), 0);
	post(IBV_WR_RDMA_WRITE, 8, wr.bind_mw.rkey, b.buf);
	expect(a.scq, 7, IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(ibv_dealloc_mw(one), 0);
	works();
}

int main(void)
{
	Suite *suite = listed_suite(NULL, NULL);
	TCase *tc = tcase_create("signals");

	tcase_set_timeout(tc, 120);
#if TM_ASAN
	tcase_add_loop_test_raise_signal(tc, own_fault, SIGSEGV, 1,
					 2); /* the default is the sanitizer's */
#else
	tcase_add_loop_test_raise_signal(tc, own_fault, SIGSEGV, 0, 3);
#endif
	tcase_add_test_raise_signal(tc, reset_hand, SIGSEGV);
	suite_add_tcase(suite, tc);
	return nic_fabric_run(suite);
}
