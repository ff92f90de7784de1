/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_PM_SECTIONS_H
#define TM_CHECKER_LOGS_PM_SECTIONS_H
/*
 * Which part of a log is checked, and how, in the terms of pmreorder. The program's markers,
 * NAME.BEGIN and NAME.END, enclose sections, one within another. A section that the user has given
 * an engine has that one, others have that of the section around them, and outside of all is the
 * default one.
 */
#include "checker/logs/pm_log.h"

enum pm_engine {
	PM_NO_CHECK, /* NoReorderNoCheck: the power does not fail */
	PM_DO_CHECK, /* NoReorderDoCheck: it does, and all that was stored is left */
	PM_FULL	     /* ReorderFull and the others, which make some of its states: all images */
};
/* By pmreorder's name; -1: there is none of it. */
int pm_engine_find(const char *name);

#define PM_MARKERS 64
struct pm_markers {
	enum pm_engine usual; /* outside of sections */
	struct pm_marker {
		char name[128]; /* without ".BEGIN" */
		enum pm_engine engine;
	} marker[PM_MARKERS];
	unsigned n;
};

/* enum pm_engine before each event, and at the end, to be freed. NULL: memory is out, or sections
 * cross, which *why says; else it is empty. */
uint8_t *pm_sections(const struct pm_log *log, const struct pm_markers *m, char *why, size_t n);

#endif
