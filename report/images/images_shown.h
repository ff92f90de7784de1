/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_IMAGES_SHOWN_H
#define TM_REPORT_IMAGES_SHOWN_H
/* What a page shows of crash images besides the results. */
#include "checker/images/image_scene.h"
#include "report/images/images_report.h"

#define SECTION_EVENTS 120 /* of a cause at most */
#define SECTION_BEFORE 12  /* the failure */
#define SECTION_AFTER  6

/* The lines of source that a cause names (images_sources.c), as source_json(). */
json_t *images_sources(const struct images_report *r, const struct image_cause *cause,
		       const struct image_scene *scene);

#endif
