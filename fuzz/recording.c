/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libFuzzer target for the reader of recordings (checker/logs/recording_read.h). The bytes are
 * a recording if they begin like one; else they are its records, and a head is put before them.
 * What is taken is replayed (pm.h).
 *
 *	build-clang/fuzz_recording -max_len=8192 build/corpus/recording
 */
#include <stdlib.h>
#include <string.h>
#include "checker/logs/recording_read.h"
#include "core/record/format.h"
#include "fuzz/pm.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	size_t head = recording_begins((const char *)bytes, n) ? 0 : RECORD_HEAD;
	struct input_error error = {0};
	struct pm_log log;
	char *file = calloc(1, head + n + 1); /* of its own: what is beyond its end is noticed */
	if (!file)
		return 0;
	if (n)
		memcpy(file + head, bytes, n);
	if (head) {
		struct record_head *h = (void *)file;
		memcpy(h->magic, RECORD_MAGIC, sizeof(h->magic));
		h->used = head + n;
	}
	if (!pm_log_open(&log)) {
		if (!recording_read_pm(&log, file, head + n, &error))
			pm_walk(&log);
		pm_log_close(&log);
	}
	free(file);
	return 0;
}
