/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_IMAGE_SCENE_H
#define TM_CHECKER_IMAGES_IMAGE_SCENE_H
/*
 * What a cause is shown with: the lines that were in flight when the power failed, and what the
 * run, in which it did not fail, went on to do about each part that was lost.
 */
#include "checker/images/images.h"

#define SCENE_NEVER    SIZE_MAX
#define SCENE_LINES    40 /* of those in flight */
#define SCENE_VERSIONS 32 /* of a line */

/* What made a store or a landing durable. */
struct scene_fate {
	size_t flush;	/* a flush of its line: the first that the fence waits for; SCENE_NEVER */
	size_t durable; /* the fence, the sync or the like; SCENE_NEVER */
};

struct scene_line {
	uint64_t line;
	unsigned file;
	uint32_t left, versions;
	uint32_t event[SCENE_VERSIONS]; /* of the versions, the first ones */
};

struct image_scene {
	struct scene_fate fate[IMAGE_PARTS]; /* of the cause's parts */
	struct scene_line *line;	     /* those that are not whole first */
	unsigned lines;
};

/* The scene of each cause, to be freed with image_scenes_free(). NULL without memory. */
struct image_scene *image_scenes_make(const struct pm_log *log, const struct images_options *o,
				      const struct image_cause *cause, unsigned causes);
void image_scenes_free(struct image_scene *scene, unsigned causes);

#endif
