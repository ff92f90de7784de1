/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_logs log POOL BARRIERS STORES	a store log: so many barriers of so many stores, each of a
 *					line of its own, in a pool of 64 KiB
 * bench_logs run LOG prog COMMAND	what pmreorder does with such a log (ReorderFull), and no
 * bench_logs run LOG lib FILE SYMBOL	more. Prints states, bad ones, seconds.
 *
 * For scripts/imagelogbench. The procedure: collect stores up to a fence; for each permutation of
 * each selection of them write the stores to the pool's own file, with msync() after each, start
 * the checker, and write back what was there; then write them all. Nothing of Tidemark's is in it.
 */
#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"

#define POOL	   65536
#define BASE	   0x10000000ul
#define LINE	   64
#define STORES_MAX 12

static int usage(void)
{
	fputs("usage: bench_logs log POOL BARRIERS STORES\n"
	      "       bench_logs run LOG prog COMMAND\n"
	      "       bench_logs run LOG lib FILE SYMBOL\n",
	      stderr);
	return 2;
}

/* --- the log --- */

static int write_log(const char *pool, unsigned barriers, unsigned stores)
{
	unsigned long value = 1;
	if (!barriers || !stores || stores > STORES_MAX)
		return usage();
	printf("START|REGISTER_FILE;%s;0x%lx;0x%x;0x0", pool, BASE, POOL);
	for (unsigned b = 0; b < barriers; b++) {
		unsigned long first = (unsigned long)b * stores;
		for (unsigned s = 0; s < stores; s++)
			printf("|STORE;0x%lx;0x%lx;0x8", BASE + (first + s) * LINE % POOL, value++);
		for (unsigned s = 0; s < stores; s++)
			printf("|FLUSH;0x%lx;0x40", BASE + (first + s) * LINE % POOL);
		fputs("|FENCE", stdout);
	}
	puts("|STOP");
	return 0;
}

/* --- the procedure --- */

struct store {
	unsigned long at, value, size, before;
};

struct run {
	const char *pool;
	unsigned char *map;
	const char *command;
	int (*check)(const char *path);
	struct store store[STORES_MAX];
	unsigned stores;
	unsigned at[STORES_MAX]; /* the sequence */
	unsigned long states, bad;
};

static void put(struct run *r, const struct store *s, unsigned long value)
{
	memcpy(r->map + s->at, &value, s->size);
	msync(r->map + (s->at & ~4095ul), 4096, MS_SYNC);
}

static void one_state(struct run *r, unsigned len)
{
	char command[8192];
	int result;
	for (unsigned i = 0; i < len; i++) {
		struct store *s = &r->store[r->at[i]];
		s->before = 0;
		memcpy(&s->before, r->map + s->at, s->size);
		put(r, s, s->value);
	}
	if (r->check)
		result = r->check(r->pool);
	else {
		snprintf(command, sizeof(command), "%s %s", r->command, r->pool);
		result = system(command);
	}
	r->states++;
	r->bad += result != 0;
	for (unsigned i = len; i-- > 0;)
		put(r, &r->store[r->at[i]], r->store[r->at[i]].before);
}

/* All sequences of `len` stores that begin with the first `n` of r->at. */
static void permute(struct run *r, unsigned n, unsigned len, unsigned used)
{
	if (n == len) {
		one_state(r, len);
		return;
	}
	for (unsigned s = 0; s < r->stores; s++) {
		if (used >> s & 1)
			continue;
		r->at[n] = s;
		permute(r, n + 1, len, used | 1u << s);
	}
}

static void barrier(struct run *r)
{
	for (unsigned len = 0; len <= r->stores; len++)
		permute(r, 0, len, 0);
	for (unsigned s = 0; s < r->stores; s++)
		put(r, &r->store[s], r->store[s].value);
	r->stores = 0;
}

static void replay(struct run *r, char *log)
{
	static char path[4096];
	for (char *token = strtok(log, "|\n"); token; token = strtok(NULL, "|\n")) {
		struct store s = {0};
		if (sscanf(token, "REGISTER_FILE;%4095[^;]", path) == 1) {
			int fd = open(path, O_RDWR);
			r->pool = path;
			r->map = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			if (r->map == MAP_FAILED) {
				perror(path);
				exit(2);
			}
			close(fd);
		} else if (sscanf(token, "STORE;%lx;%lx;%lx", &s.at, &s.value, &s.size) == 3) {
			s.at -= BASE;
			assert(r->stores < STORES_MAX && s.size <= 8 && s.at <= POOL - s.size);
			r->store[r->stores++] = s;
		} else if (!strcmp(token, "FENCE"))
			barrier(r);
	}
}

static char *read_all(const char *path)
{
	FILE *in = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;
	if (!in || getdelim(&text, &room, 0, in) < 0) {
		perror(path);
		exit(2);
	}
	fclose(in);
	return text;
}

static int run(int argc, char **argv)
{
	struct run r = {0};
	if (argc == 5 && !strcmp(argv[3], "prog"))
		r.command = argv[4];
	else if (argc == 6 && !strcmp(argv[3], "lib")) {
		void *library = dlopen(argv[4], RTLD_NOW);
		if (library)
			*(void **)&r.check = dlsym(library, argv[5]);
	}
	if (!r.command && !r.check)
		return usage();
	char *log = read_all(argv[2]);
	double began = clock_seconds();
	replay(&r, log);
	printf("%lu %lu %.6f\n", r.states, r.bad, clock_seconds() - began);
	free(log);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "log"))
		return write_log(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	return argc > 3 && !strcmp(argv[1], "run") ? run(argc, argv) : usage();
}
