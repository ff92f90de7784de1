/* SPDX-License-Identifier: BSD-3-Clause */
/* See ground.h. */
#include "core/rnic/ground.h"
#include <assert.h>
#include <stdio.h>

void ground_trace(const struct rnic_ground *ground, const struct actor *who,
		  const struct traced *about, const char *fmt, ...)
{
	static const struct traced words;
	char text[512];
	va_list ap;
	if (!ground->run->traced)
		return;
	assert(ground->explorer);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ground->explorer->trace(ground->world, who, about ? about : &words, text);
}
