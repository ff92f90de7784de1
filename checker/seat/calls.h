/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_CALLS_H
#define TM_CHECKER_SEAT_CALLS_H
/* A process that calls a library's function for each image: the judge's own child, or the program
 * tidemark-images-caller (preload/caller.c). */
#include "checker/seat/preload/board.h"

#define IMAGE_VARIABLES 4
/* What the environment is to say of the image that is judged: "NAME=VALUE", or "NAME" alone where
 * it has no room for that. To be freed. False without memory. */
bool image_variables(const struct board *board, const struct image_moment *at,
		     char *variable[IMAGE_VARIABLES]);
/* Answer the board's questions; each answer is the function's result, 1 to 255 if it is not 0. */
_Noreturn void image_calls_serve(struct board *board, const char *library, const char *function);

#endif
