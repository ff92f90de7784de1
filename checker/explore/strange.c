/* SPDX-License-Identifier: BSD-3-Clause */
/* See strange.h. */
#include "checker/explore/strange.h"
#include <assert.h>

void strange_add(struct strange *s, const struct blame *blame, uint64_t run)
{
	unsigned left = 0;
	assert(s->n <= STRANGE && !blame->full);
	s->runs += !s->runs || s->run != run;
	s->run = run;
	s->states++;
	for (unsigned i = 0; i < s->n; i++)
		if (blame_includes(blame, &s->one[i].blame))
			return;
	for (unsigned i = 0; i < s->n; i++)
		if (!blame_includes(&s->one[i].blame, blame))
			s->one[left++] = s->one[i];
	s->n = left;
	s->more |= left == STRANGE;
	if (left == STRANGE)
		return;
	s->one[s->n].run = run;
	s->one[s->n++].blame = *blame;
}
