/* SPDX-License-Identifier: BSD-3-Clause */
/* A library's function as judge, called in a process of its own (calls.h, judge_seat.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "checker/images/judge_seat.h"

/* Then it starts afresh: a function may leave a file open, and few can be at once. */
#define CALLS_MAX 500

static int start(struct image_seat *s, const struct image_checker *c, const struct image_moment *at)
{
	char *words[] = {(char *)(uintptr_t)c->caller, (char *)(uintptr_t)c->library,
			 (char *)(uintptr_t)c->function, NULL}; /* execve() writes to none */
	return seat_start(s, c, false, c->caller ? words : NULL, at);
}

int judge_library(struct image_seat *s, const struct image_checker *c, const char *path,
		  const struct image_moment *at, struct image_verdict *verdict)
{
	int status = 0;
	if (s->pid && s->calls == CALLS_MAX)
		seat_end(s);
	s->board->moment = *at;
	snprintf(s->board->path, sizeof(s->board->path), "%s", path);
	int error = 0;
	if (s->pid)
		seat_ask(s);
	else
		error = start(s, c, at);
	if (error)
		return error;
	switch (seat_wait(s, c->patience, &status)) {
	case SEAT_ANSWERED:
		*verdict = (struct image_verdict){.how = status ? IMAGE_EXIT : IMAGE_GOOD,
						  .number = (uint8_t)status};
		break;
	case SEAT_ENDED: /* that is the verdict; the next one is asked of another */
		*verdict = verdict_of(status);
		if (verdict->how == IMAGE_GOOD)
			*verdict = (struct image_verdict){.how = IMAGE_EXIT};
		break;
	case SEAT_LATE:
		*verdict = (struct image_verdict){.how = IMAGE_HANG};
		break;
	}
	return 0;
}
