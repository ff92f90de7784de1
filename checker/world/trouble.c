/* SPDX-License-Identifier: BSD-3-Clause */
/* What is wrong with a machine: LIVE, FSCK and OK, which are not judged from the history. */
#include "checker/world/world_client.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "checker/world/checker_mutant.h"
#include "checker/world/explained.h"
#include "core/text/error_name.h"

/* `pc`: where it was seen, 0: in no line of the store. */
static void trouble(struct world *w, bool live, uintptr_t pc, const char *fmt, va_list ap)
{
	bool *broken = live ? &w->result.live_broken : &w->result.fsck_broken;
	char *why = live ? w->result.why : w->result.fsck_why;
	if (*broken)
		return; /* the first one counts */
	*broken = true;
	if (live)
		w->result.pc = pc;
	vsnprintf(why, sizeof(w->result.why), fmt, ap);
	if (sim_tracing(w->sim))
		sim_trace(w->sim, sim_actor(w->sim), pc, "%s", why);
}

void world_trouble(struct world *w, bool live, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	trouble(w, live, 0, fmt, ap);
	va_end(ap);
}

void world_trouble_at(struct world *w, uintptr_t pc, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	trouble(w, true, pc, fmt, ap);
	va_end(ap);
}

void world_refused(struct world *w, const char *function, int error, const char *fmt, ...)
{
	const struct sim_failed_call call = sim_failed_call(w->sim);
	char what[100];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	world_trouble_at(w, call.pc, "%s%s() returns %s%s%s%s%s", what, function,
			 error_name(error).text, call.name ? "; what failed there last is " : "",
			 call.name ? call.name : "", call.name ? ": " : "",
			 call.name ? call.how : "");
}

/* An operation that is not in the history has failed. */
void world_failed(struct world *w, unsigned client, enum tm_operation operation, int error)
{
	static const char *const words[] = {[TM_PUT] = "PUT",
					    [TM_GET] = "GET",
					    [TM_OPEN] = "attempt to connect",
					    [TM_CLEAN] = "cleaning",
					    [TM_CALL] = "operation"};
	char who[24] = "a reader";
	assert(operation < sizeof(words) / sizeof(words[0]) && words[operation]);
	if (w->result.ok_broken || error_explained(w, client, operation, error))
		return; /* the first one counts */
	w->result.ok_broken = true;
	if (client <= w->setup->w.clients)
		snprintf(who, sizeof(who), "client %u", client);
	snprintf(w->result.ok_why, sizeof(w->result.ok_why),
		 "%s%s's %s failed with %s for no reason that was injected",
		 w->machine ? "after recovery, " : "", who, words[operation],
		 error_name(error).text);
	if (sim_tracing(w->sim))
		sim_trace(w->sim, sim_actor(w->sim), 0, "%s", w->result.ok_why);
}

struct checked {
	struct tm_fsck fsck;
	struct world *world;
	const char *after;
};

static void fsck_bad(struct tm_fsck *fsck, const char *fmt, ...)
{
	struct checked *checked = (struct checked *)fsck;
	char text[160];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	world_trouble(checked->world, false, "the structural check after %s says: %s",
		      checked->after, text);
}

void world_fsck(struct world *w, unsigned server, const char *after)
{
	struct checked check = {.fsck.bad = fsck_bad, .world = w, .after = after};
	if (CHECKER_MUTANT(w->setup, FSCK_NEVER))
		return;
	sim_repeat_allow(w->sim, true);
	w->setup->store->fsck(&w->server[server], &check.fsck);
	sim_repeat_allow(w->sim, false);
}
