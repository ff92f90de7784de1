/* SPDX-License-Identifier: BSD-3-Clause */
/* See calls.h. */
#include "checker/images/calls.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void image_calls_tell(const struct image_moment *at)
{
	char number[24];
	snprintf(number, sizeof(number), "%llu", (unsigned long long)at->acked);
	setenv("TIDEMARK_ACKED", number, 1);
	setenv("TIDEMARK_MARKER", at->marker, 1);
	if (!at->ns)
		return;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)at->ns);
	setenv("TIDEMARK_CUT_NS", number, 1);
}

_Noreturn void image_calls_serve(struct board *board, const char *library, const char *function)
{
	uint32_t done = atomic_load(&board->asked) - 1;
	int (*check)(const char *) = NULL;
	void *object = dlopen(library, RTLD_NOW);
	if (object)
		*(void **)&check = dlsym(object, function);
	if (!check)
		_exit(127);
	for (;; done++) {
		while (atomic_load(&board->asked) == done)
			board_wait(&board->asked, done, NULL);
		image_calls_tell(&board->moment);
		int result = check(board->path);
		atomic_store(&board->status, !result || result & 255 ? result & 255 : 255);
		board_set(&board->answered, done + 1);
	}
}
