/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_ACTORS_H
#define TM_RT_ACTORS_H
/* Actors by their names, which outlive the runs that made them: for what is kept of a run. */
#include "core/rt/choose.h"

struct actors;
struct actors *actors_new(void); /* NULL: out of memory */
void actors_free(struct actors *actors);
/* The number of the actor of this name, of 12 bits; 0: no actor (NULL). Out of memory ends the
 * process. */
uint16_t actors_number(struct actors *actors, const struct actor *who);
/* It has nothing but its name, and stays where it is; NULL: no actor. */
const struct actor *actors_at(const struct actors *actors, uint16_t number);

#endif
