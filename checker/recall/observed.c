/* SPDX-License-Identifier: BSD-3-Clause */
/* See observed.h. */
#include "checker/recall/observed.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct observed *observed_new(const struct world *w, uint64_t events, uint32_t lines,
			      unsigned first_op, const struct pmem_course *course)
{
	const struct world_result *r = &w->result;
	const struct world_gets *gets = &w->gets;
	bool broken = r->live_broken || r->fsck_broken || r->ok_broken || r->agree_broken;
	size_t why = broken ? strlen(r->why) + 1 : 0, got = gets->n * sizeof(gets->get[0]);
	size_t ok_why = broken ? strlen(r->ok_why) + 1 : 0;
	size_t fsck_why = broken ? strlen(r->fsck_why) + 1 : 0;
	size_t agree_why = broken ? strlen(r->agree_why) + 1 : 0;
	size_t way = course ? course->length : 0;
	size_t events_bytes = gets->events * sizeof(gets->event[0]);
	size_t size = (sizeof(struct observed) + got + events_bytes + why + ok_why + fsck_why +
		       agree_why + gets->bytes + way + 7) &
		      ~(size_t)7;
	struct observed *o = calloc(1, size);
	if (!o)
		return NULL;
	assert(r->live_op < 0 || (unsigned)r->live_op >= first_op);
	o->events = events;
	o->size = (uint32_t)size;
	o->lines = lines;
	o->live_op = r->live_op < 0 ? -1 : r->live_op - (int32_t)first_op;
	memcpy(o->recovery, r->recovery, sizeof(o->recovery));
	o->end = (uint8_t)r->end;
	o->live_broken = r->live_broken;
	o->fsck_broken = r->fsck_broken;
	o->ok_broken = r->ok_broken;
	o->agree_broken = r->agree_broken;
	o->gets = (uint16_t)gets->n;
	o->why = (uint16_t)why;
	o->ok_why = (uint16_t)ok_why;
	o->fsck_why = (uint16_t)fsck_why;
	o->agree_why = (uint16_t)agree_why;
	o->history = (uint16_t)gets->events;
	o->bytes = gets->bytes;
	o->course = (uint32_t)way;
	char *at = (char *)o->get;
	memcpy(at, gets->get, got);
	memcpy(at += got, gets->event, events_bytes);
	memcpy(at += events_bytes, r->why, why);
	memcpy(at += why, r->ok_why, ok_why);
	memcpy(at += ok_why, r->fsck_why, fsck_why);
	memcpy(at += fsck_why, r->agree_why, agree_why);
	memcpy(at += agree_why, gets->byte, gets->bytes);
	if (way)
		memcpy(at + gets->bytes, course->byte, way);
	return o;
}

static const uint16_t *events_of(const struct observed *o)
{
	return (const uint16_t *)&o->get[o->gets];
}

static const char *why_of(const struct observed *o)
{
	return (const char *)(events_of(o) + o->history);
}

/* Note that operations returned. */
static const uint8_t *bytes_of(const struct observed *o)
{
	return (const uint8_t *)why_of(o) + o->why + o->ok_why + o->fsck_why + o->agree_why;
}

const uint8_t *observed_course(const struct observed *o)
{
	return bytes_of(o) + o->bytes;
}

void observed_steps(const struct observed *o, struct world *w)
{
	memcpy(w->result.recovery, o->recovery, sizeof(o->recovery));
}

void observed_until(const struct observed *o, struct world *w, unsigned first_op, unsigned *told,
		    unsigned events)
{
	assert(events <= o->history);
	for (; *told < events; ++*told) {
		const unsigned event = events_of(o)[*told], k = event / 2;
		if (event % 2)
			world_returns(w, (int)(first_op + k), &o->get[k], bytes_of(o));
		else
			world_begins(w, &o->get[k]);
	}
}

void observed_again(const struct observed *o, struct world *w)
{
	unsigned first_op = w->history->ops, told = 0;
	life_begin(w);
	observed_until(o, w, first_op, &told, o->history);
	observed_result(o, w, first_op);
}

void observed_result(const struct observed *o, struct world *w, unsigned first_op)
{
	struct world_result *r = &w->result;
	memset(r, 0, sizeof(*r));
	r->end = o->end;
	r->live_broken = o->live_broken;
	r->fsck_broken = o->fsck_broken;
	r->ok_broken = o->ok_broken;
	r->agree_broken = o->agree_broken;
	r->live_op = o->live_op < 0 ? -1 : o->live_op + (int32_t)first_op;
	assert(r->live_op < (int)w->history->ops);
	observed_steps(o, w);
	memcpy(r->why, why_of(o), o->why);
	memcpy(r->ok_why, why_of(o) + o->why, o->ok_why);
	memcpy(r->fsck_why, why_of(o) + o->why + o->ok_why, o->fsck_why);
	memcpy(r->agree_why, why_of(o) + o->why + o->ok_why + o->fsck_why, o->agree_why);
}
