/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_CALLS_H
#define TM_CHECKER_SEAT_CALLS_H
/* A process that calls a library's function for each image: the judge's own child, or the program
 * tidemark-images-caller (preload/caller.c). */
#include "checker/seat/preload/board.h"

/* What the environment says of the image that is judged. */
void image_calls_tell(const struct board *board, const struct image_moment *at);
/* Answer the board's questions; each answer is the function's result, 1 to 255 if it is not 0. */
_Noreturn void image_calls_serve(struct board *board, const char *library, const char *function);

#endif
