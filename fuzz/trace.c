/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libFuzzer target for the reader of traces (checker/trace/trace.h): any bytes. A trace that is
 * taken is written, read again and written again: the second text is the first.
 *
 *	build-clang/fuzz_trace -max_len=4096 tests/traces
 */
#include <stdlib.h>
#include <string.h>
#include "checker/trace/trace.h"
#include "scenarios/stores.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* False: it is not a good one, or there is no memory. */
static bool read_bytes(const void *bytes, size_t n, struct trace *t)
{
	struct input_error error = {0};
	FILE *in = n ? fmemopen((void *)(uintptr_t)bytes, n, "r") : NULL;
	bool good = in && !trace_read_file(in, t, store_find, &error);
	if (in)
		fclose(in);
	return good;
}

/* To be freed; NULL: it is larger than a reader would take. */
static char *write_text(const struct trace *t, size_t *n)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, n);
	if (!out)
		return NULL;
	int error = trace_write(out, &t->setup, &t->deviations, t->contract, t->verdict);
	if (!fclose(out) && !error)
		return text;
	free(text);
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct trace first, second;
	size_t len, len_again;
	if (!read_bytes(bytes, n, &first))
		return 0;
	char *text = write_text(&first, &len), *again;
	trace_free(&first);
	if (!text)
		return 0;
	if (!read_bytes(text, len, &second))
		abort();
	again = write_text(&second, &len_again);
	if (!again || len != len_again || memcmp(text, again, len) != 0)
		abort();
	trace_free(&second);
	free(text);
	free(again);
	return 0;
}
