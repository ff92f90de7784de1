/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_IMAGES_ENGINE_H
#define TM_CLI_IMAGES_ENGINE_H
/* What `tidemark images` has in common with pmreorder's command line: engines and markers. */
#include "checker/logs/pm_sections.h"
#include "cli/options.h"

struct images_engine {
	const char *usual, *config; /* pmreorder's -r and -x */
	const char *level;	    /* -e */
	const char *from;	    /* --from */
	/* what that means */
	bool given; /* -r or -x: sections count */
	struct pm_markers markers;
};

/* Read what was given. 0, or the status after a message. */
int images_engine_choose(struct images_engine *e);
/* Of a log: pm_sections(), to be freed, or NULL: all of it is checked; and *from, what it is
 * checked from, in words, or NULL. 0, or the status after a message. */
int images_engine_sections(const struct images_engine *e, const struct pm_log *log,
			   const char *name, uint8_t **sections, const char **from);

#endif
