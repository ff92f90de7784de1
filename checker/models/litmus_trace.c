/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace of a witness: each event of the run as a line, and the outcome at its end. */
#include "checker/models/litmus_search.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/rnic/objects/qp.h"

static void say(struct litmus_search *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void say(struct litmus_search *p, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	p->say(p->say_arg, line);
}

/* The end of a queue pair that the process belongs to: "q of A". */
static void end_name(const struct litmus_search *p, uint64_t process, char *buf, size_t n)
{
	const struct litmus_test *test = p->test;
	snprintf(buf, n, "?");
	for (unsigned q = 0; q < test->qps; q++) {
		for (unsigned e = 0; e < 2; e++) {
			const struct rnic_qp *qp = (const struct rnic_qp *)p->end[q][e].qp;
			if (chain_name(qp->actor.name_hash, chain_kind(process)) == process)
				snprintf(buf, n, "%s of %s", test->qp[q].name,
					 test->host[test->qp[q].host[e]]);
		}
	}
}

void litmus_trace_event(void *arg, uint64_t process)
{
	static const char *const what[CHAIN_KINDS] = {
		[CHAIN_OTHER] = "something happens",
		[CHAIN_SEND] = "gathers and sends",
		[CHAIN_REQUESTS] = "its request arrives at the peer",
		[CHAIN_RESPONSES] = "its response arrives at the peer",
		[CHAIN_LAND] = "data land",
		[CHAIN_FAILS] = "gives up, as its peer does not answer",
		[CHAIN_ANSWER] = "a request takes effect, or an acknowledgement goes out",
	};
	struct litmus_search *p = arg;
	enum chain_kind kind = chain_kind(process);
	char name[2 * LITMUS_NAME + 8] = "";
	litmus_note_event(p);
	if (!p->say || kind == CHAIN_TASK)
		return; /* litmus_trace_statement() says what a thread does */
	for (unsigned t = 0; t < p->test->threads && kind == CHAIN_STORES; t++)
		if (chain_name(p->running[t].name_hash, kind) == process)
			snprintf(name, sizeof(name), "%s", p->running[t].name);
	if (kind == CHAIN_STORES && !name[0]) {
		say(p, "%3u. non-temporal stores to a line leave their buffer", ++p->steps);
		return;
	}
	if (kind == CHAIN_STORES) {
		say(p, "%3u. %s: the oldest entry leaves the store buffer", ++p->steps, name);
		return;
	}
	if (process == LITMUS_FAILS) {
		say(p, "%3u. host %s loses its power", ++p->steps, p->test->host[p->test->fails]);
		return;
	}
	end_name(p, process, name, sizeof(name));
	say(p, "%3u. %s: %s", ++p->steps, name, what[kind]);
}

void litmus_trace_effect(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
			 const struct traced *about, const char *text)
{
	struct litmus_search *p = arg;
	(void)sim;
	(void)who;
	(void)pc;
	(void)about;
	/* The line above has named the queue pair already. */
	const char *colon = strstr(text, ": post ");
	if (!colon && !strncmp(text, "message ", 8))
		colon = strstr(text, ": ");
	if (*text)
		say(p, "         %s", colon ? colon + 2 : text);
}

void litmus_trace_statement(struct running_thread *me, const struct litmus_statement *s)
{
	struct litmus_search *p = me->search;
	if (p->say)
		say(p, "%3u. %s: %s", ++p->steps, me->name, s->text);
}

void litmus_trace_end(struct litmus_search *p, const struct litmus_condition *condition)
{
	char line[512], name[64];
	size_t at = 0;
	line[0] = '\0';
	for (unsigned i = 0; i < p->test->observeds && at < sizeof(line); i++) {
		const struct litmus_place *place = &p->test->observed[i];
		if (place->what == (condition->crash ? LITMUS_MEMORY : LITMUS_CRASH))
			continue;
		litmus_place_print(p->test, place, name, sizeof(name));
		at += (size_t)snprintf(line + at, sizeof(line) - at, " %s=%llu", name,
				       (unsigned long long)p->witness[i]);
	}
	say(p, "%s%s", condition->crash ? "The power fails. Left:" : "The end:", line);
}
