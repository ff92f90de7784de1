/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libFuzzer target for the reader of operation lists (scenarios/workload/workload.h): any bytes,
 * once for stores with put, get and del alone, and once for each store that has operations of its
 * own. A list that is taken is printed as traces do it, read again and printed again: the second
 * text is the first.
 *
 *	build-clang/fuzz_ops -max_len=4096 build/corpus/ops
 */
#include <stdlib.h>
#include <string.h>
#include "scenarios/stores.h"
#include "scenarios/workload/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define PARTS (1 + TM_MAX_CLIENTS) /* the keys, then the clients */

/* To be freed. */
static char *print_part(const struct workload *w, unsigned part)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	if (part)
		workload_print_client(w, part, out);
	else
		workload_print_keys(w, out);
	fclose(out);
	return text;
}

static void check_printed(const struct workload *w)
{
	struct workload again = {.calls = w->calls};
	char *text[PARTS] = {NULL};
	const char *expected;
	for (unsigned i = 0; i <= w->clients; i++) {
		text[i] = print_part(w, i);
		if (text[i] && (i ? workload_parse_client(&again, i, text[i], &expected)
				  : workload_parse_keys(&again, text[i], &expected)))
			abort();
	}
	for (unsigned i = 0; i <= w->clients; i++) {
		char *second = print_part(&again, i);
		if (text[i] && second && strcmp(text[i], second) != 0)
			abort();
		free(second);
		free(text[i]);
	}
	workload_free(&again);
}

static void read_list(const struct tm_call_type *calls, const uint8_t *bytes, size_t n)
{
	struct workload w = {.calls = calls};
	struct input_error error = {0};
	FILE *in = fmemopen((void *)(uintptr_t)bytes, n, "r");
	if (!in)
		return;
	if (!workload_read_ops(in, &w, &error))
		check_printed(&w);
	fclose(in);
	workload_free(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	if (!n)
		return 0;
	read_list(NULL, bytes, n);
	for (unsigned i = 0; stores[i]; i++)
		if (stores[i]->calls)
			read_list(stores[i]->calls, bytes, n);
	return 0;
}
