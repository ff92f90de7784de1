/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that functions of libc make or take apart. */
#include "core/libc/traced.h"
#include "core/rt/process/libc.h"

void text_open(struct text *t)
{
	*t = (struct text){.room = 80};
	t->at = sim_take(t->room);
	*t->at = '\0';
}

void text_close(struct text *t)
{
	sim_free_memory(t->at);
}

void text_room(struct text *t, size_t more)
{
	if (t->room - t->len > more)
		return;
	t->room = 2 * t->room + more;
	char *larger = sim_take(t->room);
	memcpy(larger, t->at, t->len + 1);
	sim_free_memory(t->at);
	t->at = larger;
}

void text_add(struct text *t, char c)
{
	text_room(t, 1);
	t->at[t->len++] = c;
	t->at[t->len] = '\0';
}

void text_add_string(struct text *t, const char *s, size_t max, uintptr_t pc)
{
	struct reader r = {.pc = pc};
	for (char c; max && (c = (char)get(&r, s)); s++, max--)
		text_add(t, c);
}
