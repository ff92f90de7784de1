/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_IMAGE_JUDGE_H
#define TM_CHECKER_IMAGES_IMAGE_JUDGE_H
/*
 * Who says whether a crash image is good: the program that was recorded, started on the image, or a
 * checker.
 *
 *	a command	is run by a shell; "{}" in it is the image's path, or the path is added at
 *			its end. Exit status 0: good. A second one is run after the first.
 *	a library	a function int NAME(const char *path); 0: good. It is called in a process of
 *			its own.
 *
 * In the environment of both are TIDEMARK_ACKED, how many acknowledgements had been given before
 * the power failed, and TIDEMARK_MARKER, the latest marker.
 */
#include "checker/images/image_files.h"

enum image_how { IMAGE_GOOD, IMAGE_EXIT, IMAGE_SIGNAL, IMAGE_HANG };
/* A verdict: enum image_how, and the exit status, the function's result or the signal. */
struct image_verdict {
	uint8_t how, number;
};
/* In words: "exit status 3". */
void image_verdict_words(struct image_verdict v, char *out, size_t n);

struct image_checker {
	const char *recover, *check; /* commands; `check` may be NULL */
	const char *library, *function;
	double patience; /* seconds that a command or a call may take */
	bool show;	 /* what it prints */
};

struct image_judge;
/* 0, or -errno with a sentence in *why: -ENOENT, -EINVAL: the checker is not as it should be. */
int image_judge_open(struct image_judge **judge, const struct image_checker *checker, char *why,
		     size_t n);
void image_judge_close(struct image_judge *judge);
/* Judge the image that the files hold, file by file. The checker may have written to them if
 * *wrote. 0 or -errno. */
int image_judge(struct image_judge *judge, const struct image_files *files, unsigned long acked,
		const char *marker, struct image_verdict *verdict, bool *wrote);

#endif
