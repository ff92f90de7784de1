/* SPDX-License-Identifier: BSD-3-Clause */
/* See marks.h. */
#include "checker/explore/marks.h"

#define SPACING 12 /* questions between two marks of a short run */

void marks_clear(struct marks *m)
{
	m->n = 0;
	m->spacing = SPACING;
}

void marks_free(struct marks *m)
{
	for (unsigned i = 0; i < MARKS; i++)
		snapshot_free(&m->mark[i].at);
	*m = (struct marks){0};
}

/* Drop every other one; its memory can be used again. */
static void thin_out(struct marks *m)
{
	for (unsigned i = 1; 2 * i < MARKS; i++) {
		const struct mark kept = m->mark[2 * i];
		m->mark[2 * i] = m->mark[i];
		m->mark[i] = kept;
	}
	m->n = MARKS / 2;
	m->spacing *= 2;
}

struct mark *marks_next(struct marks *m, uint32_t position)
{
	struct mark *last = m->n ? &m->mark[m->n - 1] : NULL;
	if (last && !position)
		return last;
	if (last && position < last->position + m->spacing)
		return NULL;
	if (m->n == MARKS)
		thin_out(m);
	m->mark[m->n].position = position;
	return &m->mark[m->n++];
}

struct mark *marks_before(struct marks *m, uint32_t position)
{
	unsigned n = m->n;
	while (n && m->mark[n - 1].position > position)
		n--;
	return n ? &m->mark[n - 1] : NULL;
}
