/* SPDX-License-Identifier: BSD-3-Clause */
/* See calls.h. */
#include "checker/seat/calls.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/seat/preload/answer.h"

/* The marker's name, or the names of all so far, in the environment. */
static void tell_markers(const char *variable, const char *from, size_t len)
{
	char *text = malloc(len + 1);
	if (!text)
		abort();
	memcpy(text, from, len);
	text[len] = 0;
	setenv(variable, text, 1);
	free(text);
}

void image_calls_tell(const struct board *board, const struct image_moment *at)
{
	char number[24];
	snprintf(number, sizeof(number), "%llu", (unsigned long long)at->acked);
	setenv("TIDEMARK_ACKED", number, 1);
	tell_markers("TIDEMARK_MARKER", board->markers + at->marker, at->markers - at->marker);
	if (at->markers <= IMAGE_MARKERS_MAX)
		tell_markers("PMREORDER_MARKERS", board->markers, at->markers);
	else
		unsetenv("PMREORDER_MARKERS");
	if (!at->ns)
		return;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)at->ns);
	setenv("TIDEMARK_CUT_NS", number, 1);
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
			image_calls_tell(board, &board->image[image].moment);
			int result = check(board->path);
			answer_is(board, image, !result || result & 255 ? result & 255 : 255);
		} while (answer_next(&map, board, &image));
		board_set(&board->answered, done + 1);
	}
}
