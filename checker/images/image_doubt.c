/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_doubt.h. */
#include "checker/images/image_doubt.h"
#include "checker/images/images.h"
#include "core/pmem/domain.h"

/* Does it matter what is flushed? */
static bool flushes_matter(const struct images_options *o)
{
	return !o->kill && (o->hw.nt_buffered || !domain_keeps_visible(&o->hw, true));
}

/* Was the line flushed, after what was lost of it was stored? */
static bool was_flushed(const struct pm_log *log, const struct image_line *l, size_t at)
{
	for (size_t i = l->event; i < at; i++) {
		const struct pm_event *e = &log->event[i];
		if (e->kind == PM_FLUSH && pm_event_meets(e, l->file, l->line))
			return true;
	}
	return false;
}

enum image_doubt image_doubt(const struct pm_log *log, const struct images_options *o,
			     const struct image_cause *c)
{
	const struct pm_unseen *name = pm_log_unseen(log, PM_UNSEEN_NAME);
	if (c->unsteady)
		return DOUBT_CHECKER;
	if (flushes_matter(o) && pm_log_unseen(log, PM_UNSEEN_FLUSH))
		return DOUBT_FLUSHES;
	if (flushes_matter(o) && pm_log_unseen(log, PM_UNSEEN_FENCE))
		for (unsigned i = 0; i < c->lines; i++)
			if (was_flushed(log, &c->line[i], c->at))
				return DOUBT_FENCES;
	if (c->late)
		return DOUBT_ORDER;
	return name && name->event < c->at ? DOUBT_NAMES : DOUBT_NONE;
}

void images_doubt(const struct pm_log *log, const struct images_options *o,
		  struct images_result *result)
{
	/* All of the log: what is in doubt of it if nothing is bad. */
	const struct image_cause all = {.at = SIZE_MAX, .unsteady = result->unsteady};
	result->doubt = result->causes ? DOUBT_NONE : image_doubt(log, o, &all);
	bool certain = false;
	for (unsigned i = 0; i < result->causes; i++) {
		struct image_cause *c = &result->cause[i];
		c->doubt = image_doubt(log, o, c);
		certain |= c->doubt == DOUBT_NONE;
		if (!result->doubt)
			result->doubt = c->doubt;
	}
	if (certain)
		result->doubt = DOUBT_NONE;
}
