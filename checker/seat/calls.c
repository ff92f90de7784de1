/* SPDX-License-Identifier: BSD-3-Clause */
/* See calls.h. */
#include "checker/seat/calls.h"
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/seat/preload/answer.h"

bool image_variables(const struct board *b, const struct image_moment *at,
		     char *variable[IMAGE_VARIABLES])
{
	assert(at->marker <= at->markers);
	bool told = at->markers <= IMAGE_MARKERS_MAX, done;
	done = asprintf(&variable[0], "TIDEMARK_ACKED=%llu", (unsigned long long)at->acked) > 0;
	done &= asprintf(&variable[1], "TIDEMARK_MARKER=%.*s", (int)(at->markers - at->marker),
			 b->markers + at->marker) > 0;
	/* Without a time, what it may have from its parents does not count. */
	done &= asprintf(&variable[2], at->ns ? "TIDEMARK_CUT_NS=%llu" : "TIDEMARK_CUT_NS=",
			 (unsigned long long)at->ns) > 0;
	done &= asprintf(&variable[3], told ? "PMREORDER_MARKERS=%.*s" : "PMREORDER_MARKERS",
			 (int)at->markers, b->markers) > 0;
	return done;
}

/* The environment says so. */
static void tell(const struct board *board, const struct image_moment *at)
{
	char *variable[IMAGE_VARIABLES];
	if (!image_variables(board, at, variable))
		abort();
	for (unsigned i = 0; i < IMAGE_VARIABLES; i++) {
		char *value = variable[i], *name = strsep(&value, "=");
		if (value)
			setenv(name, value, 1);
		else
			unsetenv(name);
		free(name);
	}
}

_Noreturn void image_calls_serve(struct board *board, const char *library, const char *function)
{
	uint32_t done = atomic_load(&board->asked) - 1;
	int (*check)(const char *) = NULL;
	struct answer_map map = {NULL, 0, 0, 0};
	void *object = dlopen(library, RTLD_NOW);
	if (object)
		*(void **)&check = dlsym(object, function);
	if (!check)
		_exit(127);
	for (;; done++) {
		uint32_t image = 0;
		while (atomic_load(&board->asked) == done)
			board_wait(&board->asked, done, NULL);
		do {
			tell(board, &board->image[image].moment);
			int result = check(board->path);
			answer_is(board, image, !result || result & 255 ? result & 255 : 255);
		} while (answer_next(&map, board, &image));
		board_set(&board->answered, done + 1);
	}
}
