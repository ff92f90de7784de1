/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_IMAGES_PAGE_H
#define TM_REPORT_IMAGES_PAGE_H
/*
 * The findings of crash images as one HTML page that needs nothing else: images_html() of
 * images_report.h. What its files share; images_page.c puts the page together.
 *
 * On top stands what was recorded, who judged and what came of it; then a section for each cause:
 * what was lost and what the run went on to do about it, the lines in flight (page_lines.c), a
 * chart and a list of the events around the power failure (page_events.c), the operations that
 * clients had announced, the lines of source (page_places.c), and the command that makes the image
 * again.
 */
#include "checker/images/image_scene.h"
#include "report/images/images_report.h"

#define SECTION_PLACES 32
#define SECTION_EVENTS 120

/* A frame of the program, and the name of its line in the section. */
struct section_place {
	const char *file; /* of a frame "put (store.c:12)": "store.c" */
	size_t len;
	int line;
	const char *path, *program; /* as pm_place; NULL: not known */
	char id[32];
};

/* The threads of CPUs in the order of their first events: the kernel's numbers say nothing. */
struct section_threads {
	uint32_t *id;
	unsigned n, room;
};

/* What a section is made of. */
struct section {
	FILE *out;
	const struct images_report *r;
	const struct image_cause *cause;
	const struct image_scene *scene;
	const struct section_threads *threads;
	unsigned number; /* from 1 */
	struct section_place place[SECTION_PLACES];
	unsigned places;
	size_t event[SECTION_EVENTS]; /* that are shown, in their order */
	unsigned events;
};

/* --- page_places.c --- */

/* Find the places of what matters. */
void section_find_places(struct section *s);
/* The frames of a source, each with its link if it has one. */
void section_print_frames(const struct section *s, uint32_t source);
/* The lines around them. 0 or -ENOMEM. */
int section_print_sources(const struct section *s);

/* --- page_events.c --- */

void section_find_events(struct section *s);
/* "event 12", a link where it is listed. */
void section_print_event_link(const struct section *s, size_t event);
/* What happened: "the store of 8 bytes at pool+0x40". */
void section_print_what(const struct section *s, size_t event);
/* Is the event about [off, off+len) of a file? */
bool section_has_range(const struct pm_event *e);
bool section_is_lost(const struct section *s, size_t event);
void section_print_list(const struct section *s);

/* --- page_chart.c --- */

void section_print_chart(const struct section *s);
/* 0 or -ENOMEM. */
int section_find_threads(struct section_threads *t, const struct pm_log *log);
/* Whose an event is: "thread 1". */
void section_print_thread(const struct section *s, const struct pm_event *e);

/* --- page_lines.c --- */

void section_print_lines(const struct section *s);

#endif
