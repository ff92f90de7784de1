/* SPDX-License-Identifier: BSD-3-Clause */
/* See course.h. */
#include "core/pmem/course.h"
#include "core/pmem/model.h"

void pmem_note_course(struct pmem *pm, struct pmem_course *course)
{
	pm->course = course;
}

static void add(struct pmem_course *c, const struct deed *deed, const void *data)
{
	size_t bytes = sizeof(*deed) + deed->len;
	while (c->room < c->bytes + bytes)
		c->byte = array_grow(c->byte, &c->room, 1);
	memcpy(c->byte + c->bytes, deed, sizeof(*deed));
	if (deed->len)
		memcpy(c->byte + c->bytes + sizeof(*deed), data, deed->len);
	c->bytes += (uint32_t)bytes;
}

void course_add(struct pmem *pm, const struct deed *deed, const void *data)
{
	add(pm->course, deed, data);
}

void course_add_version(struct pmem *pm, uint32_t line, uint8_t off, const void *data, size_t len,
			const struct author *by)
{
	const struct deed deed = {.kind = DEED_VERSION,
				  .off = off,
				  .len = (uint8_t)len,
				  .who = actors_number(pm->course->actors, by->who),
				  .line = line,
				  .op = by->op,
				  .occurrence = by->occurrence,
				  .nic = by->nic,
				  .send = by->send};
	add(pm->course, &deed, data);
}

void pmem_course_failure(struct pmem_course *c, const struct choice_point *at, uint32_t mark)
{
	const struct deed deed = {.kind = DEED_FAILURE,
				  .len = sizeof(mark),
				  .who = actors_number(c->actors, at->who),
				  .line = at->a,
				  .op = at->op,
				  .occurrence = at->occurrence,
				  .n = at->b,
				  .c = at->c};
	add(c, &deed, &mark);
	c->length = c->bytes;
}

/* --- along a course --- */

static void save_line(struct pmem *pm, uint32_t line)
{
	assert(!pm->before || line_bit(pm->decided, line));
	line_save(pm, line);
}

static void follow_version(struct pmem *pm, const struct deed *d, const struct actor *who,
			   const uint8_t *data)
{
	const struct author by = {.who = who,
				  .op = d->op,
				  .occurrence = d->occurrence,
				  .nic = d->nic,
				  .send = d->send};
	save_line(pm, d->line);
	line_add_version(pm, (uint64_t)d->line * LINE + d->off, data, d->len, &by);
}

static void follow_deed(struct pmem *pm, const struct deed *d, const struct actor *who,
			const uint8_t *data)
{
	switch ((enum deed_kind)d->kind) {
	case DEED_TOUCH:
		lines_decide(pm, d->line, d->line + d->n - 1);
		break;
	case DEED_VERSION:
		follow_version(pm, d, who, data);
		break;
	case DEED_DURABLE:
		line_make_durable(pm, d->line, d->n);
		break;
	case DEED_ARRIVE:
		save_line(pm, d->line);
		nic_keep_arrival(pm, (uint64_t)d->line * LINE + d->off, data, d->len, NULL);
		break;
	case DEED_LANDED:
		nic_forget_arrival(pm, d->n);
		break;
	case DEED_LATE:
		nic_note_late(pm, d->op, d->n);
		break;
	case DEED_IN_TIME:
		nic_note_landed(pm, d->op, d->n);
		break;
	case DEED_FAILURE:
		break;
	}
}

bool pmem_follow(struct pmem *pm, struct pmem_follow *f)
{
	assert(pm->running && !pm->course);
	while (f->done < f->bytes) {
		const uint8_t *data = f->byte + f->done + sizeof(struct deed);
		struct deed d;
		memcpy(&d, f->byte + f->done, sizeof(d));
		const struct actor *who = actors_at(f->actors, d.who);
		f->done += (uint32_t)sizeof(d) + d.len;
		assert(f->done <= f->bytes);
		if (!f->no_flight || (d.kind != DEED_VERSION && d.kind != DEED_DURABLE))
			follow_deed(pm, &d, who, data);
		if (d.kind != DEED_FAILURE)
			continue;
		f->at = (struct choice_point){.kind = CHOICE_CRASH,
					      .who = who,
					      .op = d.op,
					      .occurrence = d.occurrence,
					      .a = d.line,
					      .b = d.n,
					      .c = d.c};
		memcpy(&f->mark, data, sizeof(f->mark));
		return true;
	}
	return false;
}
