/* SPDX-License-Identifier: BSD-3-Clause */
/* See actors.h. */
#include "core/rt/actors.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/arena.h"

#define ACTORS 4096

struct actors {
	struct actor *actor[ACTORS]; /* [0]: no actor */
	unsigned n;
};

struct actors *actors_new(void)
{
	struct actors *actors = calloc(1, sizeof(*actors));
	if (actors)
		actors->n = 1;
	return actors;
}

void actors_free(struct actors *actors)
{
	if (!actors)
		return;
	for (unsigned i = 1; i < actors->n; i++)
		free(actors->actor[i]);
	free(actors);
}

uint16_t actors_number(struct actors *actors, const struct actor *who)
{
	unsigned i = 1;
	if (!who)
		return 0;
	while (i < actors->n && (actors->actor[i]->name_hash != who->name_hash ||
				 strcmp(actors->actor[i]->name, who->name)))
		i++;
	if (i == actors->n) {
		assert(i < ACTORS); /* of all runs that it outlives; each has some tens */
		actors->actor[i] = malloc(sizeof(*who));
		if (!actors->actor[i])
			arena_exhausted();
		actor_init(actors->actor[i], who->name);
		actors->n++;
	}
	return (uint16_t)i;
}

const struct actor *actors_at(const struct actors *actors, uint16_t number)
{
	assert(number < actors->n);
	return actors->actor[number];
}
