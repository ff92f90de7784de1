/* SPDX-License-Identifier: BSD-3-Clause */
/* A library's function as judge, called in a process of its own (calls.h, judge_seat.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "checker/seat/judge_seat.h"

/* Then it starts afresh: a function may leave a file open, and few can be at once. */
#define CALLS_MAX 500

int judge_library(struct image_seat *s, const struct image_checker *c,
		  struct image_verdict *verdict, unsigned *n)
{
	char *words[] = {(char *)(uintptr_t)c->caller, (char *)(uintptr_t)c->library,
			 (char *)(uintptr_t)c->function, NULL}; /* execve() writes to none */
	struct board *b = s->board;
	int status = 0;
	unsigned judged;
	if (s->pid && s->calls == CALLS_MAX)
		seat_end(s);
	if (s->pid && b->images > CALLS_MAX - s->calls)
		b->images = CALLS_MAX - s->calls;
	int error = seat_ask(s, c, false, c->caller ? words : NULL);
	if (error)
		return error;
	enum seat_outcome outcome = seat_wait(s, c, &judged, &status);
	if (outcome == SEAT_LEFT_OFF)
		return -EINTR;
	for (unsigned i = 0; i < judged; i++)
		verdict[i] = (struct image_verdict){.how = b->image[i].status ? IMAGE_EXIT
									      : IMAGE_GOOD,
						    .number = (uint8_t)b->image[i].status};
	s->calls += judged;
	*n = judged + (outcome != SEAT_ANSWERED);
	if (outcome == SEAT_ENDED) { /* that is the verdict; the next one is asked of another */
		verdict[judged] = verdict_of(status);
		if (verdict[judged].how == IMAGE_GOOD)
			verdict[judged] = (struct image_verdict){.how = IMAGE_EXIT};
	} else if (outcome == SEAT_LATE) {
		verdict[judged] = (struct image_verdict){.how = IMAGE_HANG};
	}
	return 0;
}
