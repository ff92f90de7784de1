/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_JUDGE_SEAT_H
#define TM_CHECKER_SEAT_JUDGE_SEAT_H
/*
 * A seat: a process that judges the images of one file, or many one after the other, and the board
 * between it and the judge (preload/board.h).
 */
#include "checker/seat/image_judge.h"
#include "checker/seat/preload/board.h"

struct image_seat {
	struct board *board; /* NULL: the seat is not open */
	size_t bytes;	     /* of its file */
	char path[IMAGE_PATH + 16];
	char own[IMAGE_PATH + 16]; /* a folder that is nobody else's */
	int output;		   /* what it prints goes there; -1: nowhere */
	pid_t pid;		   /* of the process; 0: there is none */
	unsigned life;		   /* 0: the first; in each other PM is mapped elsewhere */
	unsigned late;		   /* SEAT_LATE: the image that took too long */
	unsigned calls;		   /* images that it has judged */
	/* What its environment says. */
	struct image_moment moment;
	struct image_seat *next; /* of those that are open */
	/* A command: its words, or NULL: it is for a shell. */
	char **words;
	bool alone;	      /* it is started for each image */
	struct image_way way; /* why */
};

/* An open seat, its board in this folder, for images of this log. `output`: what is printed there
 * is kept. 0 or -errno. */
int seat_open(struct image_seat *s, const char *folder, const struct pm_log *log, unsigned number,
	      bool output);
void seat_close(struct image_seat *s);

/* The next question is about the image `first` of those that wait, and up to *n - 1 after it as far
 * as there is room: *n is how many. Their first `file` is asked about. */
void seat_images(struct image_seat *s, const struct image_files *files, unsigned file,
		 enum board_maps maps, unsigned first, unsigned *n);
/* Ask the process that is there. If there is none, start the program of these words first, or
 * without words a child that calls the library's function. If it `serves`, it may stay for others.
 * 0 or -errno. */
int seat_ask(struct image_seat *s, const struct image_checker *c, bool serves, char *const *words);

enum seat_outcome {
	SEAT_ANSWERED,
	SEAT_ENDED,    /* the process has; *status is its wait status */
	SEAT_LATE,     /* it took too long and was ended, it or the child that it had forked */
	SEAT_LEFT_OFF, /* nobody waits for the answer any more: the process was ended */
};
/* *judged: so many images were, and the board has what came of them; the outcome is that of the one
 * after these. */
enum seat_outcome seat_wait(struct image_seat *s, const struct image_checker *c, unsigned *judged,
			    int *status);
/* What it has printed since it was asked, to be freed. NULL without memory. */
char *seat_output(const struct image_seat *s, size_t *len);
/* End the process, if there is one, and what it has started. */
void seat_end(struct image_seat *s);
/* The same for all seats that are open, before this process itself ends; as a signal's handler may
 * do it. */
void seats_end(void);

/* Judge the first images that seat_images() has told: *n of them. Path of the file; of a command,
 * NULL: it has the paths of all files in it. 0 or -errno. */
int judge_command(struct image_seat *s, const struct image_checker *c, const char *command,
		  const char *path, struct image_verdict *verdict, unsigned *n);
int judge_library(struct image_seat *s, const struct image_checker *c,
		  struct image_verdict *verdict, unsigned *n);
struct image_verdict verdict_of(int wait_status);

#endif
