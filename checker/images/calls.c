/* SPDX-License-Identifier: BSD-3-Clause */
/* See calls.h. */
#include "checker/images/calls.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void image_calls_tell(unsigned long acked, const char *marker)
{
	char number[24];
	snprintf(number, sizeof(number), "%lu", acked);
	setenv("TIDEMARK_ACKED", number, 1);
	setenv("TIDEMARK_MARKER", marker, 1);
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
		image_calls_tell((unsigned long)board->acked, board->marker);
		int result = check(board->path);
		atomic_store(&board->status, !result || result & 255 ? result & 255 : 255);
		board_set(&board->answered, done + 1);
	}
}
