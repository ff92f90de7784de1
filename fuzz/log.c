/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libFuzzer target for the reader of pmemcheck's logs (checker/logs/pmemcheck_read.h): any
 * bytes; what is taken is replayed (pm.h).
 *
 *	build-clang/fuzz_log -max_len=4096 build/corpus/log
 */
#include <stdlib.h>
#include <string.h>
#include "checker/logs/pmemcheck_read.h"
#include "fuzz/pm.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input_error error = {0};
	struct pm_log log;
	char *copy = malloc(n + 1);
	if (!copy)
		return 0;
	if (n)
		memcpy(copy, bytes, n);
	copy[n] = 0;
	if (!pm_log_open(&log)) {
		if (!pmemcheck_read(&log, copy, n, &error))
			pm_walk(&log);
		pm_log_close(&log);
	}
	free(copy);
	return 0;
}
