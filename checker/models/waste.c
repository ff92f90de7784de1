/* SPDX-License-Identifier: BSD-3-Clause */
/* See waste.h. */
#include "checker/models/waste.h"
#include <errno.h>
#include <stdlib.h>
#include "core/pmem/domain.h"

const char *const waste_words[WASTE_SORTS] = {
	[WASTE_CLEAN] = "flush of lines of which no cache holds a change",
	[WASTE_AGAIN] = "flush of lines that are flushed already, before the fence",
	[WASTE_FENCE] = "fence after no flush",
};

enum waste_line {
	LINE_DURABLE, /* or on its way to the media, by itself */
	LINE_WRITTEN, /* in a cache */
	LINE_FLUSHED  /* and no fence has followed */
};

int waste_open(struct waste *w, const struct setup *s)
{
	*w = (struct waste){.lines = (s->pm_len + LINE - 1) / LINE,
			    .durable_at_once = domain_keeps_visible(&s->hw, false),
			    .nic_past_caches = domain_nic_flush_reaches(&s->hw)};
	w->line = calloc(w->lines + 1, sizeof(*w->line));
	return w->line ? 0 : -ENOMEM;
}

void waste_close(struct waste *w)
{
	free(w->line);
	w->line = NULL;
}

static void note(struct waste *w, enum waste_sort sort, uintptr_t pc, uint32_t kind, uint32_t lines)
{
	unsigned i = 0;
	while (i < w->rows && (w->row[i].pc != pc || w->row[i].sort != sort))
		i++;
	if (!kind || i == WASTE_ROWS)
		return;
	if (i == w->rows)
		w->row[w->rows++] = (struct waste_row){.pc = pc, .sort = (uint8_t)sort};
	w->row[i].kinds |= kind;
	w->row[i].times++;
	w->row[i].lines += lines;
}

/* Has this task flushed anything since its last fence? NULL: it is no task, or one too many. */
static bool *flushed_by(struct waste *w, const struct actor *who)
{
	unsigned i = 0;
	while (i < WASTE_TASKS && w->task[i].who && w->task[i].who != who)
		i++;
	if (!who || i == WASTE_TASKS)
		return NULL;
	w->task[i].who = who;
	return &w->task[i].flushed;
}

static void written(struct waste *w, const struct traced *about, bool cached)
{
	for (uint64_t l = about->off / LINE; l <= (about->off + about->len - 1) / LINE; l++)
		w->line[l] = cached && !w->durable_at_once ? LINE_WRITTEN : LINE_DURABLE;
}

static void flushed(struct waste *w, const struct actor *who, uintptr_t pc,
		    const struct traced *about, uint32_t kind)
{
	uint32_t lines[3] = {0}; /* by what they were */
	bool *fences = flushed_by(w, who);
	for (uint64_t l = about->off / LINE; l <= (about->off + about->len - 1) / LINE; l++) {
		lines[w->line[l]]++;
		if (w->line[l] == LINE_WRITTEN)
			w->line[l] = LINE_FLUSHED;
	}
	if (lines[LINE_FLUSHED])
		note(w, WASTE_AGAIN, pc, kind, lines[LINE_FLUSHED]);
	if (lines[LINE_DURABLE])
		note(w, WASTE_CLEAN, pc, kind, lines[LINE_DURABLE]);
	if (fences)
		*fences = true;
}

static void fenced(struct waste *w, const struct actor *who, uintptr_t pc, uint32_t kind)
{
	bool *fences = flushed_by(w, who);
	if (fences && !*fences)
		note(w, WASTE_FENCE, pc, kind, 0);
	if (!fences || !*fences)
		return;
	*fences = false;
	/* Others' lines become durable at their own fences, at the latest. */
	for (size_t l = 0; l < w->lines; l++)
		if (w->line[l] == LINE_FLUSHED)
			w->line[l] = LINE_DURABLE;
}

void waste_event(struct waste *w, const struct actor *who, uintptr_t pc, const struct traced *about,
		 uint32_t kind)
{
	if (about->kind == TRACED_FENCE)
		fenced(w, who, pc, kind);
	if (!about->len)
		return;
	if (about->kind == TRACED_STORE)
		written(w, about, true);
	else if (about->kind == TRACED_LAND)
		written(w, about, !w->nic_past_caches);
	else if (about->kind == TRACED_FLUSH)
		flushed(w, who, pc, about, kind);
}
