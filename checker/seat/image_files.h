/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_IMAGE_FILES_H
#define TM_CHECKER_SEAT_IMAGE_FILES_H
/*
 * A crash image as files, which a checker opens. They are in memory (/dev/shm) where that exists.
 * From one image to the next only the lines that differ are written.
 *
 * Images may wait until they are judged, several at once. The files are as the first of them says,
 * then; what is written after that is kept, and makes each of the others of the one before it.
 */
#include "checker/logs/pm_replay.h"
#include "checker/seat/preload/board.h"

#define IMAGE_PATH 4096

struct image_files {
	const struct pm_log *log;
	char dir[IMAGE_PATH];
	struct image_file {
		char path[IMAGE_PATH];
		int fd;
		uint64_t dev, ino;
		uint8_t *map;
		uint8_t *expected; /* what it holds if nobody else has written to it */
	} file[PM_FILES];
	struct image_change {
		uint64_t line;
		unsigned file;
	} * changed; /* lines that may not be as they are durable */
	unsigned changes, room, now_room;
	size_t at;	/* where the replay stood then, and one more; 0: as when it stood nowhere */
	uint32_t *now;	/* by dirty line there: what the file has of it, and one more; 0: it has
			 * what is durable, and is not in `changed` */
	unsigned lines; /* dirty ones */
	struct image_waits {
		size_t writes; /* before it, since the first one */
		struct image_moment moment;
	} * wait;
	unsigned waiting;
	struct board_write *write; /* of the first file */
	size_t writes, write_room;
	int error; /* there was no memory for one */
};

/* Make a folder for images, in memory if possible. 0 or -errno. */
int image_folder_make(char path[IMAGE_PATH]);
/* Remove it with all that is in it. */
void image_folder_remove(const char *path);
/* Remove the one that was made and is still there, before this process itself ends; as a signal's
 * handler may do it. */
void image_folder_drop(void);

/* Files in a new folder `name` below `folder`, which hold what they held before the first event. 0
 * or -errno. */
int image_files_open(struct image_files *f, const struct pm_log *log, const char *folder,
		     const char *name);
void image_files_close(struct image_files *f);
/* A pm_durable_fn. */
void image_files_durable(void *files, unsigned file, uint64_t line, const uint8_t content[PM_LINE]);
/* Make the image: `left` versions of each dirty line. 0 or -ENOMEM. */
int image_files_set(struct image_files *f, const struct pm_replay *r, const unsigned *left);
/* Write up to a line's bytes. */
void image_files_write(struct image_files *f, unsigned file, uint64_t at, const uint8_t *bytes,
		       size_t len);
/* Somebody else may have written to the files, cut or removed them: they are put right. 0 or
 * -errno. */
int image_files_restore(struct image_files *f);
/* The same, but nobody has written to other pages than these, of the first file. */
void image_files_restore_pages(struct image_files *f, const uint64_t *page, unsigned n);
/* Has nobody else written to them? No image waits. */
bool image_files_untouched(const struct image_files *f);

/* It failed after this marker; NULL: none yet. */
void image_files_mark(struct image_moment *at, const struct pm_log *log,
		      const struct pm_event *mark);
/* The image that has been made waits, BOARD_IMAGES at most; more than one only of a log of one
 * file. 0 or -ENOMEM. */
int image_files_wait(struct image_files *f, const struct image_moment *at);
/* Had they better be judged? */
bool image_files_full(const struct image_files *f);
/* The first of the writes that make image `i` of the one before it; there are *n. */
const struct board_write *image_files_writes(const struct image_files *f, unsigned i, size_t *n);
/* The files were those of the image before `i`, and become those of `i`. */
void image_files_make(struct image_files *f, unsigned i);
/* Somebody else has done that. */
void image_files_made(struct image_files *f, unsigned i);
/* None waits any more; the files are the last one's. What was written since then is there, too. */
void image_files_judged(struct image_files *f);

#endif
