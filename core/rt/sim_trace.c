/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event trace: what happens in a run, in words, for a tracer that wants it.
 */
#include <errno.h>
#include <stdio.h>
#include "core/rt/sim_state.h"

void sim_set_tracer(struct sim *sim, sim_tracer *tracer, void *arg)
{
	sim->tracer = tracer;
	sim->run.traced = tracer;
	sim->tracer_arg = arg;
	sim->wordless = false;
}

void sim_trace_no_words(struct sim *sim)
{
	sim->wordless = true;
}

bool sim_traces_words(const struct sim *sim)
{
	return sim->tracer && !sim->wordless;
}

bool sim_tracing(const struct sim *sim)
{
	return sim->tracer;
}

static void trace(struct sim *sim, const struct actor *who, uintptr_t pc,
		  const struct traced *about, const char *fmt, va_list ap)
{
	char text[512] = "";
	if (sim->stopping && sim->end == SIM_POWER)
		return;	   /* the rest of this event does not happen any more */
	int error = errno; /* tracing must not change the run */
	if (!sim->wordless)
		vsnprintf(text, sizeof(text), fmt, ap);
	sim->tracer(sim->tracer_arg, sim, who, pc, about, text);
	errno = error;
}

void sim_trace(struct sim *sim, const struct actor *who, uintptr_t pc, const char *fmt, ...)
{
	static const struct traced words;
	va_list ap;
	if (!sim_traces_words(sim))
		return;
	va_start(ap, fmt);
	trace(sim, who, pc, &words, fmt, ap);
	va_end(ap);
}

void sim_trace_event(struct sim *sim, const struct actor *who, uintptr_t pc,
		     const struct traced *about, const char *fmt, ...)
{
	va_list ap;
	if (!sim->tracer)
		return;
	va_start(ap, fmt);
	trace(sim, who, pc, about, fmt, ap);
	va_end(ap);
}
