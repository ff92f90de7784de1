/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_IMAGES_ENGINE_H
#define TM_CLI_IMAGES_ENGINE_H
/* What `tidemark images` has in common with pmreorder's command line: engines and markers. */
#include "checker/logs/pm_sections.h"
#include "cli/options.h"

struct images_engine {
	const char *usual, *config; /* pmreorder's -r and -x */
	const char *level;	    /* -e */
	/* what that means */
	bool given; /* -r or -x: sections count */
	struct pm_markers markers;
};

/* Read what was given. 0, or the status after a message. */
int images_engine_choose(struct images_engine *e);

#endif
