/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_IMAGE_JUDGE_H
#define TM_CHECKER_SEAT_IMAGE_JUDGE_H
/*
 * Who says whether a crash image is good: the program that was recorded, started on the image, or a
 * checker.
 *
 *	a command	is run by a shell; "{}" in it is the image's path, or the path is added at
 *			its end. It is run for each file of an image; but where it has "{1}", "{2}",
 *			which are the files' paths in the log's order, once. Exit status 0: good.
 *			Others are run after the first.
 *	a library	a function int NAME(const char *path); 0: good. It is called in a process of
 *			its own.
 *
 * A program that is linked dynamically gets a library of Tidemark's in front (preload/): it judges
 * many images with one start, and its writes to a mapping do not reach the file. What of that is
 * not possible makes it slower, and changes no verdict.
 *
 * In the environment of both are TIDEMARK_ACKED, how many acknowledgements had been given before
 * the power failed, TIDEMARK_MARKER, the latest marker, PMREORDER_MARKERS, all markers so far with
 * '|' between them as pmreorder has it, and, if the log has times, TIDEMARK_CUT_NS. Several judge
 * at the same time: each has a TIDEMARK_PORT of its own, and 15 more behind it, a folder
 * TIDEMARK_DIR and, unless that is set, a TIDEMARK_FABRIC.
 */
#include <signal.h>
#include "checker/logs/announced.h"
#include "checker/seat/image_files.h"
#include "checker/seat/image_moment.h"

enum image_how {
	IMAGE_GOOD,
	IMAGE_EXIT,
	IMAGE_SIGNAL,
	IMAGE_HANG,
	IMAGE_CONTRACT, /* what clients announced and what the command printed break one */
	IMAGE_NO_KEYS	/* what it printed is not as announced.h has it */
};
/* A verdict: enum image_how, and the exit status, the function's result, the signal or the
 * contract. */
struct image_verdict {
	uint8_t how, number;
	struct announced_break broken; /* IMAGE_CONTRACT */
};
struct image_checker;
/* In words: "exit status 3". */
void image_verdict_words(const struct image_checker *checker, const struct image_verdict *v,
			 char *out, size_t n);

struct image_checker {
	/* Commands, one after the other as long as they take it for good; all but the first may be
	 * NULL. `then` is the program that goes on with its work. From there on PM is mapped
	 * elsewhere, if that may be chosen. */
	const char *recover, *then, *check;
	const char *library, *function;
	double patience; /* seconds that a command or a call may take */
	bool show;	 /* what it prints */
	bool listen;	 /* ... is kept, of the latest image: image_judge_said() */
	/* NULL, or what the last command prints is judged by these contracts; one file of PM. */
	struct announced *announced;
	/* Files of Tidemark's: libtidemark-images.so and tidemark-images-caller, or NULL. */
	const char *preload, *caller;
	bool no_server; /* start a command for each image */
	/* NULL, or as soon as it is not 0 nobody waits for a verdict any more: -EINTR. */
	const volatile sig_atomic_t *stop;
};

/* Is there a program to start? NULL: none is needed. 0, or -ENOENT with a sentence in *why. */
int image_command_exists(const char *command, char *why, size_t n);
/* The same of a checker. Looks at the first word of each command, if it is a plain one; of a
 * line of shell script nothing is said. 0, or -ENOENT with a sentence in *why. */
int image_checker_exists(const struct image_checker *checker, char *why, size_t n);
/* Do the commands name the files by number? */
bool image_checker_names_files(const struct image_checker *checker);
/* Are all commands of one sort, and is each number one of so many files'? 0, or -EINVAL
 * with a sentence in *why. */
int image_checker_files(const struct image_checker *checker, unsigned files, char *why, size_t n);

/* Why each image was put right by comparing it. */
enum image_repair {
	IMAGE_REPAIR_SEEN,   /* it was not, but where a change was seen */
	IMAGE_REPAIR_SHARED, /* mappings had to be shared */
	IMAGE_REPAIR_UNSEEN, /* some changes were not seen */
};
struct image_way {
	uint8_t kind, repair; /* enum image_way_kind (preload/board.h), enum image_repair */
	uint16_t number;
};

struct image_judge;
/* 0, or -errno with a sentence in *why: -ENOENT, -EINVAL: the checker is not as it should be. */
int image_judge_open(struct image_judge **judge, const struct image_checker *checker, char *why,
		     size_t n);
void image_judge_close(struct image_judge *judge);
/* May images wait, so that several are judged at once? */
bool image_judge_may_wait(const struct image_judge *judge, const struct image_files *files);
/* Judge the images that wait, each file by file: a verdict for each. The files are put right after
 * each that the checker has written to. 0 or -errno. */
int image_judge(struct image_judge *judge, struct image_files *files,
		struct image_verdict *verdict);
/* The checker has written to the files and that was not seen: they are put right after each. */
void image_judge_be_careful(struct image_judge *judge);
/* One that does not end is waited for as long as the first one was. */
void image_judge_wait_long(struct image_judge *judge);
struct image_way image_judge_way(const struct image_judge *judge);
/* The first line that was printed about the latest image, with {} for its path; or "". */
#define IMAGE_SAID 200
void image_judge_said(const struct image_judge *judge, char said[IMAGE_SAID]);

#endif
