/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libFuzzer target. Features of states are fed back as extra counters, beside the
 * coverage of code:
 *
 *	TIDEMARK_STORE=erda build-clang/fuzz_libfuzzer -max_len=149 build/corpus/erda
 */
#include "fuzz/target.h"

#define COUNTERS 65536

/* libFuzzer clears them before each input, and keeps inputs that set a new one. `used`:
 * nothing here reads them, so the compiler would leave them out. */
__attribute__((section("__libfuzzer_extra_counters"), used)) static uint8_t counter[COUNTERS];

static void count(uint64_t feature)
{
	counter[feature % COUNTERS] = 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	target_feature = count;
	target_run(bytes, n);
	return 0;
}
