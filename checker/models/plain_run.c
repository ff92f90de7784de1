/* SPDX-License-Identifier: BSD-3-Clause */
/* See plain_run.h. */
#include "checker/models/plain_run.h"
#include <errno.h>
#include <stdio.h>

int plain_run(struct setup *s, const struct plain_run *how, struct world **world,
	      char why[WORLDS_WHY])
{
	struct worlds ws;
	int error = worlds_open(&ws, s);
	if (error) {
		if (error != -EIO)
			return error;
		worlds_why(&ws, why);
		worlds_close(&ws);
		return error;
	}
	struct world *w = *world = &ws.world[0];
	w->between = how->between;
	w->between_arg = how->arg;
	w->tracer = how->tracer;
	w->tracer_arg = how->arg;
	world_run(&ws, NULL, NULL, NULL);
	if (w->result.end != SIM_DONE || w->result.live_broken) {
		snprintf(why, WORLDS_WHY, "%s",
			 w->result.why[0] ? w->result.why : "an operation does not end");
		error = -EIO;
	}
	world_end(&ws, 0);
	worlds_close(&ws);
	return error;
}
