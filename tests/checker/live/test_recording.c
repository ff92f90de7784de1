/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recordings: what is written is read, by many threads and at both places of a file; and
 * a reader says what is wrong with anything else.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include "checker/live/recording.h"
#include "tests/suite.h"

#define HEADER	4096
#define THREADS 4
#define ROOM	1000

static char path[] = "/tmp/tidemark-recording-XXXXXX";

static void setup(void)
{
	strcpy(path + strlen(path) - 6, "XXXXXX");
	close(mkstemp(path));
}

static void teardown(void)
{
	unlink(path);
}

static void put(struct recording *r, uint64_t id)
{
	struct recording_op *op = recording_next(r);

	ck_assert_ptr_nonnull(op);
	op->kind = HISTORY_PUT;
	op->client = 1;
	op->boot = 1;
	op->value = id;
	recording_invoke(op);
	recording_return(op, 0);
}

static struct recording *make(uint64_t room, unsigned puts)
{
	struct recording *r;

	ck_assert_int_eq(recording_create(&r, path, room), 0);
	ck_assert_int_eq(recording_set_text(r, "tidemark-pool 1\nstore erda\n"), 0);
	for (unsigned i = 0; i < puts; i++)
		put(r, i + 1);
	return r;
}

static int reopen(char *why)
{
	struct recording *r;
	int error = recording_open(&r, path, why, 200);

	if (!error)
		recording_close(r);
	return error;
}

TEST(is_read_as_it_was_written)
{
	const struct recording_op *op;
	struct recording *r = make(10, 2), *in;
	uint64_t n;
	char why[200];

	/* Still open, as when its client is killed; one operation has not returned. */
	struct recording_op *open = recording_next(r);
	*open = (struct recording_op){
		.kind = HISTORY_GET, .client = 7, .boot = 3, .key = 9, .found = 77};
	recording_invoke(open);
	ck_assert_int_eq(recording_open(&in, path, why, sizeof(why)), 0);
	ck_assert_str_eq(recording_text(in), "tidemark-pool 1\nstore erda\n");
	op = recording_ops(in, &n);
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(op[1].value, 2);
	ck_assert(op[1].invoked_ns && op[1].invoked_ns <= op[1].returned_ns);
	ck_assert(op[1].returned_ns <= op[2].invoked_ns);
	ck_assert_uint_eq(op[2].returned_ns, 0);
	ck_assert_uint_eq(op[2].key, 9);
	recording_close(in);
	recording_close(r);
}

TEST(a_gap_is_no_end)
{
	struct recording *r = make(10, 1), *in;
	uint64_t n;
	char why[200];

	ck_assert_ptr_nonnull(recording_next(r)); /* taken, never filled */
	put(r, 2);
	recording_close(r);
	ck_assert_int_eq(recording_open(&in, path, why, sizeof(why)), 0);
	ck_assert_uint_eq(recording_ops(in, &n)[1].invoked_ns, 0);
	ck_assert_uint_eq(n, 3);
	recording_close(in);
}

static void *many(void *arg)
{
	for (unsigned i = 0; i < ROOM; i++)
		put(arg, i + 1);
	return NULL;
}

TEST(threads_share_it)
{
	struct recording *r = make(THREADS * ROOM, 0);
	pthread_t thread[THREADS];
	uint64_t n;
	unsigned seen[ROOM + 1] = {0};

	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, many, r), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_ptr_null(recording_next(r)); /* full, and stays so */
	ck_assert_ptr_null(recording_next(r));
	recording_close(r);
	char why[200];
	ck_assert_int_eq(recording_open(&r, path, why, sizeof(why)), 0);
	const struct recording_op *op = recording_ops(r, &n);
	ck_assert_uint_eq(n, THREADS * ROOM);
	for (uint64_t i = 0; i < n; i++)
		seen[op[i].value]++;
	for (unsigned i = 1; i <= ROOM; i++)
		ck_assert_uint_eq(seen[i], THREADS);
	recording_close(r);
}

/* After an NVDIMM's first 2 MiB. */
TEST(the_file_behind_a_device_is_read)
{
	static uint8_t bytes[HEADER + 10 * RECORDING_OP];
	struct recording *r = make(10, 5);
	char why[200];
	uint64_t n;
	int fd;

	recording_close(r);
	fd = open(path, O_RDWR);
	ck_assert_int_eq(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(pwrite(fd, bytes, sizeof(bytes), 2 << 20), sizeof(bytes));
	close(fd);
	ck_assert_int_eq(recording_open(&r, path, why, sizeof(why)), 0);
	recording_ops(r, &n);
	ck_assert_uint_eq(n, 5);
	recording_close(r);
}

TEST(a_file_is_cut_anywhere)
{
	const size_t len = HEADER + 10 * RECORDING_OP;
	char why[200], expected[64];

	recording_close(make(10, 10));
	ck_assert_int_eq(reopen(why), 0);
	for (size_t cut = len - 1; cut > 0; cut -= cut > 61 ? 61 : 1) {
		ck_assert_int_eq(truncate(path, (off_t)cut), 0);
		ck_assert_int_eq(reopen(why), -EINVAL);
		snprintf(expected, sizeof(expected), "record %zu: the file ends here",
			 (cut - HEADER) / RECORDING_OP + 1);
		if (cut >= HEADER)
			ck_assert_msg(!strncmp(why, expected, strlen(expected)), "%s, not %s", why,
				      expected);
		else
			ck_assert_ptr_nonnull(strstr(why, "first page is not whole"));
	}
	unlink(path);
	ck_assert_int_eq(reopen(why), -ENOENT);
}

static const struct {
	size_t at; /* in the third record; after HEADER: in the first page */
	uint8_t bytes[8];
	const char *why; /* its beginning */
} garbage[] = {
	{offsetof(struct recording_op, kind), {9}, "record 3: expected a kind"},
	{offsetof(struct recording_op, client), {0, 0}, "record 3: expected a client"},
	{offsetof(struct recording_op, client), {0, 1}, "record 3: expected a client"},
	{offsetof(struct recording_op, boot), {0, 0, 0, 0}, "record 3: expected a boot"},
	{offsetof(struct recording_op, value), {0}, "record 3: expected a PUT's id"},
	{offsetof(struct recording_op, vlen), {1, 0, 1, 0}, "record 3: expected a PUT's id"},
	{offsetof(struct recording_op, returned_ns), {1}, "record 3: expected a return"},
	{offsetof(struct recording_op, error), {1, 0, 0, 0}, "record 3: expected an error"},
	{HEADER + 0, "Tidemark", "line 1: expected"},
	{HEADER + 21, "rooms   ", "line 2: expected"},
	{HEADER + 26, "x       ", "line 2: expected"},
	{HEADER + 26, "9999999\n", "record 11: the file ends"},
};

TESTS(garbage_is_told, sizeof(garbage) / sizeof(garbage[0]))
{
	char why[200] = "";
	int fd;

	recording_close(make(10, 10));
	fd = open(path, O_RDWR);
	size_t at = garbage[_i].at < HEADER ? HEADER + 2 * RECORDING_OP + garbage[_i].at
					    : garbage[_i].at - HEADER;
	size_t len = garbage[_i].at == offsetof(struct recording_op, kind)     ? 1
		     : garbage[_i].at == offsetof(struct recording_op, client) ? 2
		     : garbage[_i].at < HEADER &&
				     garbage[_i].at >= offsetof(struct recording_op, key)
			     ? 4
			     : 8;
	ck_assert_int_eq(pwrite(fd, garbage[_i].bytes, len, (off_t)at), (ssize_t)len);
	close(fd);
	ck_assert_int_eq(reopen(why), -EINVAL);
	ck_assert_msg(!strncmp(why, garbage[_i].why, strlen(garbage[_i].why)), "%s, not %s", why,
		      garbage[_i].why);
}

/* Any bytes: never more than a message. */
TEST(noise_is_survived)
{
	static uint8_t bytes[HEADER + 10 * RECORDING_OP];
	uint32_t state = 1;
	char why[200];

	for (unsigned round = 0; round < 300; round++) {
		recording_close(make(10, 10));
		int fd = open(path, O_RDWR);
		ck_assert_int_eq(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
		for (unsigned i = 0; i < 40; i++) {
			state = state * 1664525 + 1013904223;
			bytes[(state >> 8) % (round % 2 ? sizeof(bytes) : 64)] = (uint8_t)state;
		}
		ck_assert_int_eq(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
		close(fd);
		reopen(why);
	}
}

RUN_TESTS(setup, teardown)
