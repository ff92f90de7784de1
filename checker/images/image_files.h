/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_IMAGE_FILES_H
#define TM_CHECKER_IMAGES_IMAGE_FILES_H
/*
 * A crash image as files, which a checker opens. They are in memory (/dev/shm) where that exists.
 * From one image to the next only the lines that differ are written.
 */
#include "checker/images/pm_replay.h"

#define IMAGE_PATH 4096

struct image_files {
	const struct pm_log *log;
	char dir[IMAGE_PATH];
	struct image_file {
		char path[IMAGE_PATH];
		int fd;
		uint64_t dev, ino;
		uint8_t *map;
	} file[PM_FILES];
	struct image_change {
		uint64_t line;
		unsigned file;
	} * changed; /* lines that may not be as they are durable */
	unsigned changes, room;
	size_t at;	/* where the replay stood then, and one more; 0: as when it stood nowhere */
	uint32_t *now;	/* by dirty line there: what the file has of it, and one more; 0: it has
			 * what is durable, and is not in `changed` */
	unsigned lines; /* dirty ones */
};

/* Make a folder for images, in memory if possible. 0 or -errno. */
int image_folder_make(char path[IMAGE_PATH]);
/* Remove it with all that is in it. */
void image_folder_remove(const char *path);

/* Files in a new folder `name` below `folder`, which hold what they held before the first event. 0
 * or -errno. */
int image_files_open(struct image_files *f, const struct pm_log *log, const char *folder,
		     const char *name);
void image_files_close(struct image_files *f);
/* A pm_durable_fn. */
void image_files_durable(void *files, unsigned file, uint64_t line, const uint8_t content[PM_LINE]);
/* Make the image: `left` versions of each dirty line. 0 or -ENOMEM. */
int image_files_set(struct image_files *f, const struct pm_replay *r, const unsigned *left);
/* Somebody else may have written to the files, cut or removed them: they are durable content again.
 * 0 or -errno. */
int image_files_restore(struct image_files *f, const struct pm_replay *r);
/* Are they what image_files_set() has made them? They are durable content then. */
bool image_files_untouched(struct image_files *f, const struct pm_replay *r);

#endif
