/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The AFL++ target, and without AFL++ a plain program that runs the files that it is
 * given, or standard input. Built by afl-clang-fast, it takes inputs from shared memory
 * and marks features of states in AFL++'s map, among those of code:
 *
 *	scripts/build build-afl -DCMAKE_C_COMPILER=afl-clang-fast -DBUILD_TESTING=OFF
 *	AFL_SKIP_CPUFREQ=1 afl-fuzz -i build/corpus/erda -o build/afl -G 149 build-afl/fuzz_afl
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "fuzz/target.h"

#define ROOM 4096 /* bytes of an input that are read; what is not needed is cut later */

#ifdef __AFL_COMPILER
__AFL_FUZZ_INIT();
extern uint32_t __afl_map_size;
/* AFL++'s runtime: the piece of code with this number was reached. */
void __sanitizer_cov_trace_pc_guard(uint32_t *number);

static void mark(uint64_t feature)
{
	uint32_t number = (uint32_t)(feature % __afl_map_size);
	__sanitizer_cov_trace_pc_guard(&number);
}

static void fuzz(void)
{
	target_feature = mark;
	__AFL_INIT();
	uint8_t *bytes = __AFL_FUZZ_TESTCASE_BUF;
	while (__AFL_LOOP(10000))
		target_run(bytes, (size_t)__AFL_FUZZ_TESTCASE_LEN);
}
#endif

/* Exit status. */
static int run_file(const char *name, FILE *in)
{
	uint8_t bytes[ROOM];
	size_t n = in ? fread(bytes, 1, sizeof(bytes), in) : 0;
	if (!in || ferror(in)) {
		fprintf(stderr, "tidemark: %s: %s\n", name, strerror(errno));
		return 2;
	}
	target_run(bytes, n);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;
#ifdef __AFL_COMPILER
	if (argc < 2) {
		fuzz();
		return 0;
	}
#endif
	if (argc < 2)
		return run_file("standard input", stdin);
	for (int i = 1; i < argc && !status; i++) {
		FILE *in = fopen(argv[i], "re");
		status = run_file(argv[i], in);
		if (in)
			fclose(in);
	}
	return status;
}
