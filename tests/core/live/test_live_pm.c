/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PM of the live world on plain files: what reaches the media and when, with a shadow
 * and without; headers that are cut off; what a power failure leaves of lines in
 * flight; and what a user is told when a file is no good.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "core/live/live_pm.h"
#include "core/live/live_fails.h"
#include "tests/suite.h"

#define POOL 65536

static bool failing[FAIL_POINT_COUNT];
static unsigned spared[FAIL_POINT_COUNT]; /* so many calls go well before */

bool live_fails(enum fail_point point)
{
	if (failing[point] && spared[point])
		return !spared[point]--;
	return failing[point];
}

static char dir[64], media_path[96], cache_path[96], why[400];

static void make_dir(void)
{
	strcpy(dir, "/tmp/tidemark-pm.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(media_path, sizeof(media_path), "%s/media", dir);
	snprintf(cache_path, sizeof(cache_path), "%s/cache", dir);
}

static void remove_dir(void)
{
	unlink(media_path);
	unlink(cache_path);
	ck_assert_int_eq(rmdir(dir), 0);
}

/* The media's bytes of the pool as other programs see them. */
static uint8_t media_byte(size_t off)
{
	uint8_t byte;
	int fd = open(media_path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &byte, 1, (off_t)(POOL_HEADER + off)), 1);
	close(fd);
	return byte;
}

static void write_file(const char *path, off_t at, const void *bytes, size_t len)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, len, at), (ssize_t)len);
	close(fd);
}

static struct live_pm *open_pm(size_t bytes, bool shadow, const char *cache)
{
	struct live_pm_setup setup = {
		.path = media_path, .pool_bytes = bytes, .shadow = shadow, .cache = cache};
	struct live_pm *pm = NULL;
	int error = live_pm_open(&pm, &setup, why, sizeof(why));
	ck_assert_msg(!error, "%s", why);
	return pm;
}

static int refused(const struct live_pm_setup *setup)
{
	struct live_pm *pm = NULL;
	int error = live_pm_open(&pm, setup, why, sizeof(why));
	ck_assert_int_lt(error, 0);
	ck_assert_ptr_null(pm);
	return error;
}

TEST(plain_file)
{
	struct live_pm *pm = open_pm(POOL, false, NULL);
	uint8_t *pool = live_pm_pool(pm);
	ck_assert_uint_eq(live_pm_pool_bytes(pm), POOL);
	ck_assert_uint_eq((uintptr_t)pool % 64, 0);
	ck_assert_str_eq(live_pm_header(pm), "");
	ck_assert_int_eq(live_pm_set_header(pm, "tidemark-pool 1\nfirst\n"), 0);
	pool[0] = 1;
	live_pmem_persist(pool, 1);
	live_pmem_memcpy_persist(pool + 100, "hello", 5);
	live_pmem_memset_persist(pool + 1000, 7, 300);
	live_pmem_memcpy_nodrain(pool + 2000, "world", 5);
	live_pmem_drain();
	live_pm_close(pm);

	pm = open_pm(0, false, NULL);
	pool = live_pm_pool(pm);
	ck_assert_str_eq(live_pm_header(pm), "tidemark-pool 1\nfirst\n");
	ck_assert_uint_eq(live_pm_pool_bytes(pm), POOL);
	ck_assert_uint_eq(pool[0], 1);
	ck_assert_mem_eq(pool + 100, "hello", 5);
	ck_assert_mem_eq(pool + 2000, "world", 5);
	ck_assert_uint_eq(pool[999], 0);
	ck_assert_uint_eq(pool[1000], 7);
	ck_assert_uint_eq(pool[1299], 7);
	ck_assert_uint_eq(pool[1300], 0);
	live_pm_close(pm);

	struct live_pm_setup setup = {.path = media_path, .read_only = true};
	ck_assert_int_eq(live_pm_open(&pm, &setup, why, sizeof(why)), 0);
	ck_assert_mem_eq(live_pm_pool(pm) + 100, "hello", 5);
	live_pm_close(pm);
}

TEST(file_grows_and_never_shrinks)
{
	struct live_pm *pm = open_pm(POOL, false, NULL);
	memset(live_pm_pool(pm), 5, POOL);
	ck_assert_int_eq(live_pm_save(pm), 0);
	live_pm_close(pm);
	pm = open_pm(2 * POOL, false, NULL);
	ck_assert_uint_eq(live_pm_pool_bytes(pm), 2 * POOL);
	ck_assert_uint_eq(live_pm_pool(pm)[POOL - 1], 5);
	ck_assert_uint_eq(live_pm_pool(pm)[POOL], 0);
	live_pm_close(pm);
	pm = open_pm(POOL, false, NULL);
	ck_assert_uint_eq(live_pm_pool_bytes(pm), POOL);
	live_pm_close(pm);
	pm = open_pm(0, false, NULL);
	ck_assert_uint_eq(live_pm_pool_bytes(pm), 2 * POOL);
	live_pm_close(pm);
}

static const char *caches(int i)
{
	return i ? cache_path : NULL;
}

/* Nothing reaches the media but what was flushed and drained, whole lines of it. */
TESTS(shadow_keeps_back, 2)
{
	struct live_pm *pm = open_pm(POOL, true, caches(_i));
	uint8_t *pool = live_pm_pool(pm);
	memset(pool, 1, 1024);
	ck_assert_uint_eq(media_byte(0), 0);
	live_pmem_flush(pool + 70, 1); /* line 1 */
	ck_assert_uint_eq(media_byte(70), 0);
	live_pmem_drain();
	ck_assert_uint_eq(media_byte(63), 0);
	ck_assert_uint_eq(media_byte(64), 1);
	ck_assert_uint_eq(media_byte(127), 1);
	ck_assert_uint_eq(media_byte(128), 0);
	live_pmem_persist(pool + 191, 2); /* lines 2 and 3 */
	ck_assert_uint_eq(media_byte(128), 1);
	ck_assert_uint_eq(media_byte(255), 1);
	ck_assert_uint_eq(media_byte(256), 0);
	live_pmem_memcpy_nodrain(pool + 256, "xyz", 3);
	ck_assert_uint_eq(media_byte(256), 0);
	ck_assert_uint_eq(pool[256], 'x');
	live_pmem_drain();
	ck_assert_uint_eq(media_byte(256), 'x');
	live_pmem_memset_persist(pool + 512, 9, 64);
	ck_assert_uint_eq(media_byte(511), 0);
	ck_assert_uint_eq(media_byte(575), 9);
	ck_assert_uint_eq(media_byte(576), 0);
	live_pm_close(pm);
	ck_assert_uint_eq(media_byte(0), 0);

	pm = open_pm(0, true, caches(_i)); /* what was in flight is gone */
	pool = live_pm_pool(pm);
	ck_assert_uint_eq(pool[0], 0);
	ck_assert_uint_eq(pool[64], 1);
	pool[0] = 2;
	ck_assert_int_eq(live_pm_save(pm), 0);
	live_pm_close(pm);
	ck_assert_uint_eq(media_byte(0), 2);
}

static void *flush_only(void *addr)
{
	live_pmem_flush(addr, 64);
	return NULL;
}

static void *drain_only(void *unused)
{
	live_pmem_drain();
	return NULL;
}

static void in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, NULL, fn, arg), 0);
	pthread_join(thread, NULL);
}

/* A fence waits for the flushes of its own CPU. */
TEST(drain_is_of_its_thread)
{
	struct live_pm *pm = open_pm(POOL, true, NULL);
	uint8_t *pool = live_pm_pool(pm);
	memset(pool, 1, POOL);
	in_thread(flush_only, pool + 128);
	live_pmem_drain();
	ck_assert_uint_eq(media_byte(128), 0);
	live_pmem_flush(pool, 64);
	in_thread(drain_only, NULL);
	ck_assert_uint_eq(media_byte(0), 0);
	live_pmem_drain();
	ck_assert_uint_eq(media_byte(0), 1);
	live_pm_close(pm);
}

/* More flushes than a thread can remember; and none is left over for the next pool. */
TEST(many_flushes)
{
	struct live_pm *pm = open_pm(POOL, true, NULL);
	uint8_t *pool = live_pm_pool(pm);
	memset(pool, 1, POOL);
	for (size_t off = 0; off < POOL; off += 128)
		live_pmem_flush(pool + off, 64);
	live_pmem_drain();
	for (size_t off = 0; off < POOL; off += 64)
		ck_assert_uint_eq(media_byte(off), off % 128 ? 0 : 1);
	live_pmem_flush(pool + 64, 64);
	live_pm_close(pm);
	pm = open_pm(0, true, NULL);
	live_pm_pool(pm)[64] = 3;
	live_pmem_drain();
	ck_assert_uint_eq(media_byte(64), 0);
	live_pmem_persist(live_pm_pool(pm) + 128, 64);
	ck_assert_uint_eq(media_byte(64), 0);
	live_pm_close(pm);
}

TEST(one_tracked_pool)
{
	struct live_pm *pm = open_pm(POOL, true, NULL);
	char other[96];
	snprintf(other, sizeof(other), "%s/other", dir);
	struct live_pm_setup setup = {.path = other, .pool_bytes = POOL, .shadow = true};
	ck_assert_int_eq(refused(&setup), -EBUSY);
	unlink(other);
	live_pm_close(pm);
}

/* Whatever word the power fails at, there is the old text or the new one. */
TESTS(header_is_never_torn, 4)
{
	static const char old[] = "tidemark-pool 1\nold\n",
			  new[] = "tidemark-pool 1\nnew and longer\n";
	char before[POOL_HEADER], after[POOL_HEADER];
	struct live_pm *pm = open_pm(POOL, false, NULL);
	char too_long[POOL_TEXT + 1];
	memset(too_long, 'x', POOL_TEXT);
	too_long[POOL_TEXT] = '\0';
	for (unsigned i = 0; i < (unsigned)_i; i++)
		ck_assert_int_eq(live_pm_set_header(pm, old), 0);
	ck_assert_int_eq(live_pm_set_header(pm, too_long), -ENOSPC);
	memcpy(before, live_pm_pool(pm) - POOL_HEADER, POOL_HEADER);
	ck_assert_int_eq(live_pm_set_header(pm, new), 0);
	memcpy(after, live_pm_pool(pm) - POOL_HEADER, POOL_HEADER);
	live_pm_close(pm);
	/* Words from the left; those that make a slot valid come last in each slot. */
	for (size_t cut = 0; cut <= POOL_HEADER; cut += 8) {
		char torn[POOL_HEADER];
		size_t in_slot = cut % (POOL_HEADER / 2);
		if (in_slot > 64 && in_slot < POOL_HEADER / 2 - 32 && in_slot % 256)
			continue; /* one as good as the other */
		memcpy(torn, after, cut);
		memcpy(torn + cut, before + cut, POOL_HEADER - cut);
		write_file(media_path, 0, torn, sizeof(torn));
		pm = open_pm(0, false, NULL);
		const char *text = live_pm_header(pm);
		ck_assert_msg(!strcmp(text, new) || !strcmp(text, _i ? old : ""), "%zu: %s", cut,
			      text);
		if (cut == POOL_HEADER)
			ck_assert_str_eq(text, new);
		live_pm_close(pm);
	}
}

TEST(cut_lines_and_subsets)
{
	static uint8_t media[64 * 1000], cache[sizeof(media)];
	uint32_t *lines;
	size_t n, some = 0, same = 0;
	ck_assert_int_eq(cut_lines(media, cache, sizeof(media), &lines, &n), 0);
	ck_assert_uint_eq(n, 0);
	free(lines);
	cache[0] = 1;
	cache[64 * 7 + 63] = 1;
	cache[sizeof(cache) - 1] = 1;
	ck_assert_int_eq(cut_lines(media, cache, sizeof(media), &lines, &n), 0);
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(lines[0], 0);
	ck_assert_uint_eq(lines[1], 7);
	ck_assert_uint_eq(lines[2], 999);
	free(lines);
	memset(cache, 1, sizeof(cache));
	ck_assert_int_eq(cut_lines(media, cache, sizeof(media), &lines, &n), 0);
	ck_assert_uint_eq(n, 1000);
	free(lines);
	for (uint32_t i = 0; i < 10000; i++) {
		ck_assert(!cut_survives(0, i));
		ck_assert(cut_survives(1, i));
		some += cut_survives(2, i);
		same += cut_survives(2, i) == cut_survives(3, i);
	}
	ck_assert_uint_gt(some, 4500);
	ck_assert_uint_lt(some, 5500);
	ck_assert_uint_gt(same, 4500);
	ck_assert_uint_lt(same, 5500);
}

static void open_images(struct pm_image *media, struct pm_image *cache)
{
	ck_assert_msg(!pm_image_open(media, media_path, 0, true, why, sizeof(why)), "%s", why);
	ck_assert_msg(!pm_image_open(cache, cache_path, 0, true, why, sizeof(why)), "%s", why);
}

/* After the cut a line of the media has all of the cache's line, or none of it; and there is one
 * cut only. */
TEST(cut_of_files)
{
	struct pm_image media, cache;
	size_t in_flight, survived, found = 0;
	struct live_pm *pm = open_pm(POOL, true, cache_path);
	ck_assert_int_eq(live_pm_set_header(pm, "tidemark-pool 1\n"), 0);
	memset(live_pm_pool(pm), 1, POOL);
	live_pmem_persist(live_pm_pool(pm) + 640, 64);
	live_pm_close(pm);
	open_images(&media, &cache);
	ck_assert_str_eq(media.text, "tidemark-pool 1\n");
	ck_assert_uint_eq(media.pool_bytes, POOL);
	ck_assert_int_eq(pm_image_in_flight(&cache), 1);
	ck_assert_int_eq(pm_image_in_flight(&media), -EINVAL);
	ck_assert_msg(!pm_cut(&media, &cache, 77, &in_flight, &survived, why, sizeof(why)), "%s",
		      why);
	ck_assert_uint_eq(in_flight, POOL / 64 - 1);
	ck_assert_uint_gt(survived, in_flight / 3);
	ck_assert_uint_lt(survived, in_flight * 2 / 3);
	pm_image_close(&media);
	pm_image_close(&cache);
	for (size_t line = 0; line < POOL / 64; line++) {
		bool survives = line == 10 || cut_survives(77, (uint32_t)line);
		found += media_byte(line * 64);
		ck_assert_uint_eq(media_byte(line * 64), survives);
		ck_assert_uint_eq(media_byte(line * 64 + 63), survives);
	}
	ck_assert_uint_eq(found, survived + 1);
	open_images(&media, &cache);
	ck_assert_int_eq(pm_cut(&media, &cache, 1, &in_flight, &survived, why, sizeof(why)), 0);
	ck_assert_uint_eq(in_flight, 0);
	ck_assert_int_eq(pm_cut(&cache, &media, 1, &in_flight, &survived, why, sizeof(why)),
			 -EINVAL);
	pm_image_close(&media);
	pm_image_close(&cache);
}

/* Killed while the cache image is being filled: what it still has of its former life is not in
 * flight. */
TEST(half_filled_cache)
{
	struct live_pm *pm = open_pm(POOL, true, cache_path);
	struct pm_image media, cache;
	size_t in_flight, survived;
	memset(live_pm_pool(pm), 1, POOL);
	live_pm_close(pm);
	failing[FAIL_PM_SYNC] = true;
	spared[FAIL_PM_SYNC] = 2; /* the mark that it is being filled has been written */
	struct live_pm_setup setup = {.path = media_path, .shadow = true, .cache = cache_path};
	ck_assert_int_eq(refused(&setup), -EIO);
	failing[FAIL_PM_SYNC] = false;
	open_images(&media, &cache);
	ck_assert_uint_eq(cache.pool[0], 1);
	ck_assert_int_eq(pm_cut(&media, &cache, 1, &in_flight, &survived, why, sizeof(why)), 0);
	ck_assert_uint_eq(in_flight, 0);
	ck_assert_int_eq(pm_image_in_flight(&cache), 0);
	pm_image_close(&media);
	pm_image_close(&cache);
}

/* A pool in an NVDIMM's backing file. */
TEST(image_with_offset)
{
	struct live_pm *pm = open_pm(POOL, false, NULL);
	struct pm_image image;
	static uint8_t bytes[POOL_HEADER + POOL];
	ck_assert_int_eq(live_pm_set_header(pm, "tidemark-pool 1\n"), 0);
	live_pm_pool(pm)[9] = 9;
	memcpy(bytes, live_pm_pool(pm) - POOL_HEADER, sizeof(bytes));
	live_pm_close(pm);
	write_file(cache_path, NVDIMM_DATA, bytes, sizeof(bytes));
	write_file(cache_path, 0, "labels and the like", 19);
	ck_assert_int_eq(pm_image_open(&image, cache_path, NVDIMM_DATA, false, why, sizeof(why)),
			 0);
	ck_assert_str_eq(image.text, "tidemark-pool 1\n");
	ck_assert_uint_eq(image.pool[9], 9);
	ck_assert_uint_eq(image.pool_bytes, POOL);
	pm_image_close(&image);
	ck_assert_int_eq(pm_image_open(&image, cache_path, 0, false, why, sizeof(why)), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "2 MiB"));
	ck_assert_int_eq(pm_image_open(&image, cache_path, 100, false, why, sizeof(why)), -EINVAL);
	ck_assert_int_eq(pm_image_open(&image, cache_path, 1ull << 40, false, why, sizeof(why)),
			 -EINVAL);
}

static int lost_to;

static void lost(int error)
{
	_exit(error == -EIO ? 42 : 43);
}

/* Writing back fails: the store never gets to say that it is done. */
TESTS(drain_that_fails, 2)
{
	struct live_pm_setup setup = {
		.path = media_path, .pool_bytes = POOL, .shadow = _i, .lost = lost};
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		struct live_pm *pm;
		if (live_pm_open(&pm, &setup, why, sizeof(why)))
			_exit(1);
		failing[FAIL_PM_SYNC] = true;
		live_pmem_persist(live_pm_pool(pm), 8);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &lost_to, 0), child);
	ck_assert(WIFEXITED(lost_to));
	ck_assert_int_eq(WEXITSTATUS(lost_to), 42);
}

TESTS(failing_calls, 3)
{
	static const struct {
		enum fail_point point;
		int error;
	} points[] = {
		{FAIL_PM_MAP, -ENOMEM}, {FAIL_FILE_OPEN, -EACCES}, {FAIL_FILE_WRITE, -ENOSPC}};
	struct live_pm_setup setup = {.path = media_path, .pool_bytes = POOL};
	failing[points[_i].point] = true;
	ck_assert_int_eq(refused(&setup), points[_i].error);
	ck_assert_ptr_nonnull(strstr(why, media_path));
	ck_assert_int_ne(access(media_path, F_OK), 0);
	failing[points[_i].point] = false;
	struct live_pm *pm = open_pm(POOL, false, NULL);
	failing[FAIL_PM_SYNC] = true;
	ck_assert_int_eq(live_pm_set_header(pm, "tidemark-pool 1\n"), -EIO);
	ck_assert_str_eq(live_pm_header(pm), "");
	ck_assert_int_eq(live_pm_save(pm), -EIO);
	failing[FAIL_PM_SYNC] = false;
	live_pm_close(pm);
}

TEST(bad_files)
{
	struct live_pm_setup setup = {.path = media_path};
	struct live_pm *pm;
	ck_assert_int_eq(refused(&setup), -ENOENT);
	setup.path = dir;
	ck_assert_int_eq(refused(&setup), -EISDIR);
	setup.path = "/dev/null";
	ck_assert_int_eq(refused(&setup), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "devdax"));
	setup.path = "/nonexistent/pool";
	setup.pool_bytes = POOL;
	ck_assert_int_eq(refused(&setup), -ENOENT);
	setup.path = media_path;
	setup.pool_bytes = 0;
	write_file(media_path, 0, "", 0);
	ck_assert_int_eq(refused(&setup), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "too small"));
	write_file(media_path, POOL, "tail", 4);
	write_file(media_path, 0, "Dear diary", 10);
	ck_assert_int_eq(refused(&setup), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "no pool"));
	setup.pool_bytes = 4 * POOL;
	ck_assert_int_eq(refused(&setup), -EINVAL);
	unlink(media_path);
	setup.pool_bytes = (size_t)1 << 60;
	ck_assert_int_lt(refused(&setup), 0);
	unlink(media_path);

	pm = open_pm(POOL, true, cache_path);
	setup.pool_bytes = 0;
	ck_assert_int_eq(refused(&setup), -EBUSY);
	live_pm_close(pm);
	setup.path = cache_path;
	ck_assert_int_eq(refused(&setup), -EINVAL);
	pm = open_pm(0, false, NULL);
	ck_assert_int_eq(live_pm_set_header(pm, "tidemark-pool 1\n"), 0);
	live_pm_close(pm);
	setup = (struct live_pm_setup){
		.path = cache_path, .shadow = true, .cache = media_path, .pool_bytes = POOL};
	unlink(cache_path);
	ck_assert_int_eq(refused(&setup), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "no cache image"));
}

/* For test_cut.sh: a pool and its cache image as a killed server leaves them, 1023 lines in
 * flight. */
static int leave_behind(const char *media, const char *cache)
{
	struct live_pm_setup setup = {
		.path = media, .pool_bytes = POOL, .shadow = true, .cache = cache};
	struct live_pm *pm;
	if (live_pm_open(&pm, &setup, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	memset(live_pm_pool(pm), 'a', POOL);
	live_pmem_persist(live_pm_pool(pm), 64);
	live_pm_close(pm);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return leave_behind(argv[1], argv[2]);
	return run_suite(listed_suite(make_dir, remove_dir));
}
