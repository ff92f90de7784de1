/* SPDX-License-Identifier: BSD-3-Clause */
/* See run_log.h. */
#include "checker/logs/run_log.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Add an event, and let it happen in the log's own replay. */
static void add(struct pm_run_log *r, const struct pm_event *e, const uint8_t *data)
{
	if (!r->error)
		r->error = pm_log_add(&r->log, e, data);
	while (!r->error && r->replay.at < r->log.events) {
		int stepped = pm_replay_step(&r->replay, NULL, NULL);
		r->error = stepped < 0 ? stepped : 0;
	}
}

/* What has become durable, and the log does not say so. The event that is to be added has made a
 * version of `written` already; NO_LINE: of none. */
#define NO_LINE UINT64_MAX
static void note_durable(struct pm_run_log *r, uint64_t written)
{
	for (unsigned i = r->replay.dirties; i-- > 0 && !r->error;) {
		uint64_t line = r->replay.dirty[i].line;
		if (pmem_line_versions(r->pm, (uint32_t)line) > (line == written))
			continue;
		const struct pm_event e = {.kind = PM_SYNC, .off = line * PM_LINE, .len = PM_LINE};
		add(r, &e, NULL);
	}
}

static uint32_t source_of(struct pm_run_log *r, const struct actor *who, uintptr_t pc)
{
	char line[200], text[300];
	where_print(r->where, pc, line, sizeof(line));
	const char *function = where_function(r->where, pc);
	int n = *line ? snprintf(text, sizeof(text), "%s (%s)", function, line)
		      : snprintf(text, sizeof(text), "%s", who ? who->name : "");
	return pm_log_source(&r->log, text, (size_t)n);
}

static void take_event(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
		       const struct traced *about, const char *text)
{
	static const uint8_t kinds[TRACED_KINDS] = {
		[TRACED_STORE] = PM_STORE + 1, [TRACED_LAND] = PM_LAND + 1,
		[TRACED_FLUSH] = PM_FLUSH + 1, [TRACED_FENCE] = PM_FENCE + 1,
		[TRACED_RETURN] = PM_ACK + 1,
	};
	struct pm_run_log *r = arg;
	(void)sim;
	(void)text;
	if (r->machine || r->error || !kinds[about->kind])
		return;
	struct pm_event e = {
		.kind = kinds[about->kind] - 1, .off = about->off, .len = (uint32_t)about->len};
	bool writes = pm_event_writes(&e);
	if (who)
		e.thread = (uint32_t)XXH3_64bits(who->name, strlen(who->name));
	e.source = source_of(r, who, pc);
	/* A fence says for itself what it makes durable; all else was so before this event. */
	if (e.kind != PM_FENCE)
		note_durable(r, writes ? e.off / PM_LINE : NO_LINE);
	add(r, &e, writes ? pmem_base(r->pm) + e.off : NULL);
	if (e.kind == PM_FENCE)
		note_durable(r, NO_LINE);
}

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	struct pm_run_log *r = arg;
	struct pm_file *file = &r->log.file[0];
	if (machine == 1 && !r->error)
		note_durable(r, NO_LINE); /* after its last event */
	r->machine = machine;
	if (machine)
		return;
	r->pm = ex->worlds.world[0].pm;
	r->error = pm_log_file(&r->log, file->name, pmem_length(r->pm)) < 0 ? -ENOMEM : 0;
	if (!r->error)
		r->error = pm_file_room(file);
	if (!file->before)
		r->error = -ENOMEM;
	else
		memcpy(file->before, pmem_base(r->pm), pmem_length(r->pm));
	if (!r->error)
		pm_file_touch(file, 0, file->len);
	if (!r->error)
		r->error = pm_replay_open(&r->replay, &r->log, &hardware_default, false);
}

int pm_run_log_open(struct pm_run_log *r, const char *name, struct where *where,
		    struct replay_audience *audience)
{
	memset(r, 0, sizeof(*r));
	r->where = where;
	*audience = (struct replay_audience){
		.tracer = take_event, .machine_starts = machine_starts, .arg = r};
	int error = pm_log_open(&r->log);
	if (!error && pm_log_file(&r->log, name, PM_LINE) < 0)
		error = -ENOMEM;
	r->log.threads = r->log.stopped = true;
	return error;
}

void pm_run_log_close(struct pm_run_log *r)
{
	pm_replay_close(&r->replay);
	pm_log_close(&r->log);
}
