/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_PRELOAD_PRELOAD_H
#define TM_CHECKER_SEAT_PRELOAD_PRELOAD_H
/* libtidemark-images.so, which is preloaded into programs that judge crash images. */
#include "checker/seat/preload/board.h"

/* Is this process to serve? */
bool preload_may_serve(const struct board *board);
/* The program is about to open an image for the first time: serve, if it is to. It then returns in
 * each of the children, one for each image, and never in this process. */
void preload_serve(struct board *board);

#endif
