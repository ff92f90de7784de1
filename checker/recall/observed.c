/* SPDX-License-Identifier: BSD-3-Clause */
/* See observed.h. */
#include "checker/recall/observed.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct observed *observed_new(const struct world *w, uint64_t events, uint32_t lines,
			      unsigned first_op)
{
	const struct world_result *r = &w->result;
	const struct world_gets *gets = &w->gets;
	bool broken = r->live_broken || r->fsck_broken || r->ok_broken;
	size_t why = broken ? strlen(r->why) + 1 : 0, got = gets->n * sizeof(gets->get[0]);
	size_t ok_why = broken ? strlen(r->ok_why) + 1 : 0;
	size_t size = (sizeof(struct observed) + got + why + ok_why + gets->bytes + 7) & ~(size_t)7;
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
	o->gets = (uint16_t)gets->n;
	o->why = (uint16_t)why;
	o->ok_why = (uint16_t)ok_why;
	o->bytes = gets->bytes;
	memcpy(o->get, gets->get, got);
	memcpy((char *)o->get + got, r->why, why);
	memcpy((char *)o->get + got + why, r->ok_why, ok_why);
	if (gets->bytes)
		memcpy((char *)o->get + got + why + ok_why, gets->byte, gets->bytes);
	return o;
}

void observed_steps(const struct observed *o, struct world *w)
{
	memcpy(w->result.recovery, o->recovery, sizeof(o->recovery));
}

void observed_again(const struct observed *o, struct world *w)
{
	const char *why = (const char *)&o->get[o->gets], *ok_why = why + o->why;
	const uint8_t *bytes = (const uint8_t *)ok_why + o->ok_why;
	struct world_result *r = &w->result;
	unsigned first_op = w->history->ops;
	life_begin(w);
	for (unsigned k = 0; k < o->gets; k++)
		world_got(w, k, &o->get[k], bytes);
	memset(r, 0, sizeof(*r));
	r->end = o->end;
	r->live_broken = o->live_broken;
	r->fsck_broken = o->fsck_broken;
	r->ok_broken = o->ok_broken;
	r->live_op = o->live_op < 0 ? -1 : o->live_op + (int32_t)first_op;
	assert(r->live_op < (int)w->history->ops);
	observed_steps(o, w);
	memcpy(r->why, why, o->why);
	memcpy(r->ok_why, ok_why, o->ok_why);
}
