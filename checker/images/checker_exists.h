/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_CHECKER_EXISTS_H
#define TM_CHECKER_IMAGES_CHECKER_EXISTS_H
/*
 * Is there a checker to start? A shell would say so by exit status 127, once for each image, and
 * every image would look bad.
 */
#include "checker/images/image_judge.h"

/* Looks at the first word of each command, if it is a plain one; of a line of shell script nothing
 * is said. 0, or -ENOENT with a sentence in *why. */
int image_checker_exists(const struct image_checker *checker, char *why, size_t n);

#endif
