/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_PRELOAD_BOARD_H
#define TM_CHECKER_SEAT_PRELOAD_BOARD_H
/*
 * The board: one page of memory between the process that makes crash images (the judge) and the
 * programs that it has judge them. The judge writes on it what is asked; the library that is
 * preloaded into the program (preload.c) writes what it saw the program do to the image. It is a
 * file, whose path is in the environment, so that each process that the program starts finds it.
 *
 * A question is a number that goes up. Whoever serves waits for the next one and answers with the
 * same number. It is about one image, or about several in a row: the judge makes the first one, and
 * whoever serves makes each of the others of the one before it (answer.h). It goes on only as long
 * as nothing has to be put right after an image: so it answers at least the first, and perhaps not
 * all.
 */
#include "checker/seat/image_moment.h"
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BOARD_ENV    "TIDEMARK_IMAGES"
#define BOARD_FILES  16
#define BOARD_IMAGES 128  /* of a question */
#define BOARD_WRITES 1024 /* that make them */
#define BOARD_WRITE  64	  /* bytes of one at most */
#define BOARD_PAGES  1024 /* that were touched */

/* How a program's mappings of an image are. */
enum board_maps {
	BOARD_SHARED,  /* as it has them */
	BOARD_PRIVATE, /* private */
	BOARD_EXACT,   /* private as long as nobody can tell (maps.h) */
};

/* Why a command is started for each image. */
enum image_way_kind {
	IMAGE_WAY_SERVED, /* it is not, or that was asked for */
	IMAGE_WAY_SHELL,  /* it is a shell's */
	IMAGE_WAY_STATIC, /* the library was not loaded */
	IMAGE_WAY_UNOPENED,
	IMAGE_WAY_KILLED, /* while it served */
	/* The program does not serve, by what it was when it opened the image: */
	IMAGE_WAY_THREADS,  /* it had more than one; `number` of them */
	IMAGE_WAY_CHILDREN, /* it had started processes, which may have read the image */
	IMAGE_WAY_MEMORY,   /* it shared memory, so that one child would see what another did */
	IMAGE_WAY_OPEN,	    /* it had something else open to write to, or a socket, a pipe, ... */
};

/* Bytes of the image, in the first file. */
struct board_write {
	uint64_t at;
	uint32_t len;
	uint8_t bytes[BOARD_WRITE];
};

struct board_image {
	uint32_t writes; /* from those of the image before up to here */
	int32_t status;	 /* of the process that judged it, or what the function returned */
	struct image_moment moment;
};

struct board {
	/* The judge's. */
	_Atomic uint32_t asked;
	_Atomic int32_t server; /* the process that is to serve; 0: none is */
	_Atomic uint32_t maps;	/* enum board_maps */
	uint32_t files;
	struct {
		uint64_t dev, ino;
	} file[BOARD_FILES];

	/* What programs did, since the judge has made them zero: bits, by file. */
	_Atomic uint32_t opened;
	_Atomic uint32_t written;  /* the image is not what it was */
	_Atomic uint32_t mapped;   /* privately, and the program could make that writable */
	_Atomic uint32_t writable; /* privately, and the program may write there */
	_Atomic uint32_t streamed; /* it reads the file by stdio */
	/* It looked at the file in another way than by the private mapping to which it may have
	 * written: with a shared one it would have seen what it wrote. */
	_Atomic uint32_t doubt;
	/* BOARD_EXACT: pages that may not be what they were; if there are more, it was written to.
	 */
	_Atomic uint32_t touched;
	_Atomic int32_t owner; /* the process whose mappings are private */
	uint64_t touched_page[BOARD_PAGES];

	/* Since a program was started. */
	_Atomic uint32_t loaded;		   /* the library was */
	_Atomic uint32_t serving, refused, number; /* refused: enum image_way_kind */
	_Atomic uint64_t printed; /* bytes before it served, which its children do not print */
	_Atomic uint32_t answered;
	_Atomic int32_t child; /* the one that judges */

	/* Of a question. */
	uint32_t images;
	_Atomic uint32_t stop;	   /* the image that is being judged is the last one */
	_Atomic uint64_t began_ns; /* when the next one began, by CLOCK_MONOTONIC; set before
				    * `judged`, and not for the first */
	_Atomic uint32_t judged;   /* images */
	uint64_t bytes;		   /* of the file */
	uint64_t place; /* mappings are put there, if the program does not say where; 0: anywhere */
	char path[4096]; /* of the image */
	struct board_image image[BOARD_IMAGES];
	struct board_write write[BOARD_WRITES];
	char markers[]; /* of the whole log, with '|' between them; of a moment the first ones */
};

/* What programs did is forgotten. */
static inline void board_forget(struct board *b)
{
	atomic_store(&b->opened, 0);
	atomic_store(&b->written, 0);
	atomic_store(&b->mapped, 0);
	atomic_store(&b->writable, 0);
	atomic_store(&b->streamed, 0);
	atomic_store(&b->doubt, 0);
	atomic_store(&b->touched, 0);
	atomic_store(&b->owner, 0);
}

/* Wait until `word` is not `seen` any more, or for some time, if that is not NULL. */
static inline void board_wait(_Atomic uint32_t *word, uint32_t seen, const struct timespec *time)
{
	syscall(SYS_futex, word, FUTEX_WAIT, seen, time, NULL, 0);
}

static inline void board_set(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* --- in the library (serve.c) --- */

/* How many this process has. 0: not known. */
unsigned preload_threads(void);
/* Is this process to serve? */
bool preload_may_serve(const struct board *board);
/* The program is about to open an image for the first time: serve, if it is to. It then returns in
 * each of the children, one for each image, and never in this process. */
void preload_serve(struct board *board);
/* ndctl.c: what libpmemobj asks libndctl for is made here, once. */
void preload_make_ndctl(void);

#endif
