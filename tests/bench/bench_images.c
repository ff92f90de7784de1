/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_images [STORE[/VARIANT] [WORKLOAD]]: what a crash state costs when each is an image of the
 * pool in a file and a process of its own, and what it costs here. Without a STORE: eFactory and
 * Erda.
 *
 * pmreorder works like this: it replays the recorded stores of a program, writes each order of what
 * was not fenced yet into the file, and starts a program that checks it. Here the recorded runs are
 * random runs of the workload; at each point at which the power could fail, orders of the lines in
 * flight are written into the file; the program that is started is this one, with --boot: it has
 * the store recover the image, reads all keys, PUTs and GETs one, and runs the store's own check.
 * The same images are also booted by a process that is forked and by the process itself, so that
 * one sees what the file, the new program and the new process cost. The last two rows are
 * Tidemark's own search of the same runs, whose states are decided line by line while recovery
 * reads, and which judges all contracts.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "checker/explore/explore.h"
#include "core/clock.h"
#include "scenarios/stores.h"
#include "faultinject/random_source.h"

#define RUNS	      20  /* of the workload, whose points are recorded */
#define POINT_IMAGES  16  /* images of a point at most */
#define IMAGES	      800 /* in all at most */
#define OWN_RUNS      1000
#define DEVIATIONS    6
#define EXIT_BROKEN   1
#define EXIT_USAGE    2
#define EXIT_INTERNAL 70

extern char **environ;

/* A machine that boots images. */
struct machine {
	struct setup setup;
	struct worlds ws;
	struct history_mark mark;
};

struct images {
	struct machine *m;
	uint8_t *image; /* one after the other */
	unsigned n;
	uint64_t *seen; /* points: pmem_images_hash() */
	unsigned points;
};

static void fail(const char *what, int error)
{
	fprintf(stderr, "bench_images: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(EXIT_INTERNAL);
}

static void usage(const char *what, const char *text, const char *expected)
{
	fprintf(stderr, "bench_images: %s \"%s\": expected %s\n", what, text, expected);
	exit(EXIT_USAGE);
}

/* `store` may end in a slash and a variant. */
static void open_setup(struct setup *s, const char *store, const char *workload)
{
	char name[100];
	const char *expected;
	int error;

	snprintf(name, sizeof(name), "%s", store);
	char *variant = strchr(name, '/');
	if (variant)
		*variant++ = '\0';
	if (!store_find(name))
		usage("store", name, "one that `tidemark list` shows");
	setup_init(s, store_find(name));
	if (variant && setup_variant(s, variant))
		usage("variant", variant, "one that `tidemark list` shows");
	if (workload_named(workload, &s->w, &expected))
		usage("workload", workload, expected);
	error = setup_finish(s);
	if (error)
		fail(store, error);
}

static void open_machine(struct machine *m, const char *store, const char *workload)
{
	open_setup(&m->setup, store, workload);
	int error = worlds_open(&m->ws, &m->setup);
	if (error)
		fail(store, error);
	/* A history in which the keys are loaded, and the power has failed. */
	world_run(&m->ws, NULL, NULL, NULL);
	history_crash(m->ws.history);
	world_end(&m->ws, 0);
	m->mark = history_mark(m->ws.history);
}

static void close_machine(struct machine *m)
{
	worlds_close(&m->ws);
	setup_free(&m->setup);
}

/* Does the store cope with the image? */
static bool boot(struct machine *m, const uint8_t *image)
{
	struct world *first = &m->ws.world[0];
	const struct world_result *r = &m->ws.world[1].result;

	pmem_load(m->ws.stack, image, m->setup.pm_len);
	sim_reset(first->sim, NULL);
	pmem_begin(first->pm, first->sim, &m->setup.hw);
	world_recover(&m->ws, 1, NULL, NULL, NULL, true);
	history_rewind(m->ws.history, &m->mark);
	world_end(&m->ws, 1);
	pmem_end(first->pm);
	return !r->live_broken && !r->fsck_broken;
}

/* --- images --- */

static bool is_new(struct images *all, uint64_t hash)
{
	for (unsigned i = 0; i < all->points; i++)
		if (all->seen[i] == hash)
			return false;
	all->seen[all->points++] = hash;
	return true;
}

/* The power could fail here: the images that could be left, the newest versions first. */
static void record(void *arg, struct world *world, const struct choice_point *at)
{
	struct images *all = arg;
	struct pmem *pm = world->pm, *next = world[1].pm;
	size_t len = all->m->setup.pm_len;
	unsigned lines = pmem_dirty(pm);

	(void)at;
	if (all->n == IMAGES || !is_new(all, pmem_images_hash(pm)))
		return;
	for (unsigned k = 0; k < POINT_IMAGES && all->n < IMAGES; k++) {
		uint8_t *image = all->image + (size_t)all->n++ * len;
		unsigned left = k;

		for (size_t line = 0; line < len / LINE; line++)
			memcpy(image + line * LINE, pmem_boot_content(next, (uint32_t)line), LINE);
		for (unsigned i = 0; i < lines; i++) {
			uint32_t line = pmem_dirty_line(pm, i);
			unsigned answers = pmem_line_answers(pm, line);
			pmem_line_content(pm, line, left % answers, image + (size_t)line * LINE);
			left /= answers;
		}
		if (left) { /* these were all */
			all->n--;
			break;
		}
	}
}

static void record_images(struct images *all, struct machine *m)
{
	struct random_source source = {0};

	*all = (struct images){.m = m,
			       .image = malloc(IMAGES * m->setup.pm_len),
			       .seen = calloc(IMAGES + 1, sizeof(*all->seen))};
	if (!all->image || !all->seen)
		fail("images", ENOMEM);
	for (unsigned i = 1; i <= RUNS; i++) {
		random_start(&source, i, DEVIATIONS);
		world_run(&m->ws, &source.source, record, all);
		world_end(&m->ws, 0);
	}
	deviations_free(&source.taken);
	/* What boots them begins where it began before. */
	world_run(&m->ws, NULL, NULL, NULL);
	history_crash(m->ws.history);
	world_end(&m->ws, 0);
}

/* --- ways to boot them --- */

struct way {
	const char *what;
	bool (*boot)(struct machine *m, const uint8_t *image, const char *file, char **argv);
};

static void write_file(const char *file, const uint8_t *image, size_t len)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, image, len) != (ssize_t)len)
		fail(file, errno);
	close(fd);
}

static int boot_file(struct machine *m, const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	uint8_t *image = fd < 0 ? MAP_FAILED
				: mmap(NULL, m->setup.pm_len, PROT_READ, MAP_SHARED, fd, 0);

	if (image == MAP_FAILED)
		fail(file, errno);
	int status = boot(m, image) ? 0 : EXIT_BROKEN;
	munmap(image, m->setup.pm_len);
	close(fd);
	return status;
}

static bool ended_well(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) > EXIT_BROKEN)
		fail("a process that boots an image", ECHILD);
	return WEXITSTATUS(status) == 0;
}

static bool boot_in_program(struct machine *m, const uint8_t *image, const char *file, char **argv)
{
	pid_t pid;

	write_file(file, image, m->setup.pm_len);
	int error = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
	if (error)
		fail("a new program", error);
	return ended_well(pid);
}

static bool boot_in_process(struct machine *m, const uint8_t *image, const char *file, char **argv)
{
	(void)argv;
	write_file(file, image, m->setup.pm_len);
	pid_t pid = fork();
	if (pid < 0)
		fail("a new process", errno);
	if (!pid)
		_exit(boot_file(m, file));
	return ended_well(pid);
}

static bool boot_here(struct machine *m, const uint8_t *image, const char *file, char **argv)
{
	(void)file;
	(void)argv;
	return boot(m, image);
}

static double show(const char *what, uint64_t states, double seconds, double base)
{
	double rate = (double)states / seconds;

	printf("  %-52s %8" PRIu64 " states %12.0f states/s %9.1fx\n", what, states, rate,
	       base > 0 ? rate / base : 1.0);
	return rate;
}

static void show_own(const char *store, const char *workload, bool tree, double base)
{
	struct explore_limits limits = explore_default;
	struct random_source source = {0};
	struct explorer *ex = malloc(sizeof(*ex));
	struct setup s;

	limits.no_tree = !tree;
	open_setup(&s, store, workload);
	int error = ex ? explore_open(ex, &s, &limits) : -ENOMEM;
	if (error)
		fail(store, error);
	double start = clock_seconds();
	for (unsigned i = 1; i <= OWN_RUNS && !error; i++) {
		random_start(&source, i, DEVIATIONS);
		error = explore_run(ex, &source.source, &source.taken);
	}
	if (error)
		fail(store, error);
	show(tree ? "Tidemark" : "Tidemark without its tree of recoveries", ex->counts.states,
	     clock_seconds() - start, base);
	deviations_free(&source.taken);
	explore_close(ex);
	setup_free(&s);
	free(ex);
}

static void show_ways(const char *store, const char *workload, char *self)
{
	static const struct way ways[] = {
		{"an image in a file, a program for each (pmreorder)", boot_in_program},
		{"an image in a file, a forked process for each", boot_in_process},
		{"an image in memory, one process", boot_here},
	};
	char file[] = "/dev/shm/tidemark-image-XXXXXX";
	char *argv[] = {self, "--boot", file, (char *)store, (char *)workload, NULL};
	struct machine m;
	struct images all;
	double base = 0;
	unsigned broken[3] = {0};

	int fd = mkstemp(file);
	if (fd < 0)
		fail(file, errno);
	close(fd);
	open_machine(&m, store, workload);
	record_images(&all, &m);
	printf("%s, %s: %u images of %zu bytes of %u points\n", store, workload, all.n,
	       m.setup.pm_len, all.points);
	fflush(stdout);
	for (unsigned w = 0; w < 3; w++) {
		double start = clock_seconds();
		for (unsigned i = 0; i < all.n; i++)
			broken[w] += !ways[w].boot(&m, all.image + (size_t)i * m.setup.pm_len, file,
						   argv);
		double rate = show(ways[w].what, all.n, clock_seconds() - start, base);
		base = base > 0 ? base : rate;
	}
	unlink(file);
	if (broken[0] != broken[1] || broken[0] != broken[2])
		fail("one way finds other broken images than another", EIO);
	printf("  each of these three finds %u broken images\n", broken[0]);
	show_own(store, workload, false, base);
	show_own(store, workload, true, base);
	free(all.image);
	free(all.seen);
	close_machine(&m);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "--boot")) {
		struct machine m;
		open_machine(&m, argv[3], argv[4]);
		int status = boot_file(&m, argv[2]);
		close_machine(&m);
		return status;
	}
	if (argc > 3 || (argc > 1 && argv[1][0] == '-')) {
		fprintf(stderr, "bench_images: expected at most STORE[/VARIANT] and WORKLOAD\n");
		return EXIT_USAGE;
	}
	const char *workload = argc > 2 ? argv[2] : "w1r2-w2r1";
	if (argc > 1)
		show_ways(argv[1], workload, argv[0]);
	for (unsigned i = 0; argc == 1 && i < 2; i++)
		show_ways(stores[i]->name, workload, argv[0]);
	return 0;
}
