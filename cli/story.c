/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The story of a replay: what was asked of the store, then event by event who did
 * what, at each power failure the lines in flight with their versions and what
 * survived of each, recovery, what its readers found, and the rule that broke.
 *
 * Flushes and fences are remembered as they are told, so that of a line that was
 * lost can be said what was missing.
 */
#include "cli/story.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "core/pmem/crash.h"

#define BOLD  "\033[1m"
#define RED   "\033[31m"
#define PLAIN "\033[0m"

static const char *paint(const char *colour)
{
	return colours(stdout) ? colour : "";
}

static void section(const char *title)
{
	printf("\n%s== %s%s\n", paint(BOLD), title, paint(PLAIN));
}

/* --- flushes and fences --- */

static void flushed(struct story *st, const struct actor *who, uint32_t line)
{
	for (unsigned i = 0; i < st->flushes; i++) {
		if (st->flushed[i].line == line) {
			st->flushed[i] = (struct story_line){line, false, who};
			return;
		}
	}
	if (st->flushes == st->room) {
		unsigned room = st->room ? 2 * st->room : 64;
		struct story_line *more = realloc(st->flushed, room * sizeof(*more));
		if (!more)
			return;
		st->flushed = more;
		st->room = room;
	}
	st->flushed[st->flushes++] = (struct story_line){line, false, who};
}

/* "flushes 8 bytes at log+0x40", "fence: ...". */
static void remember(struct story *st, const struct actor *who, const char *text)
{
	const struct setup *s = &st->trace->setup;
	char place[64];
	uint64_t off;
	size_t len;
	if (sscanf(text, "flushes %zu bytes at %63s", &len, place) == 2) {
		if (len && !pmem_unname(s->region, s->regions, place, &off))
			for (uint64_t l = off / LINE; l <= (off + len - 1) / LINE; l++)
				flushed(st, who, (uint32_t)l);
	} else if (!strncmp(text, "fence:", 6)) {
		for (unsigned i = 0; i < st->flushes; i++)
			st->flushed[i].fenced |= st->flushed[i].by == who;
	}
}

/* Why a line in flight is not certainly durable. */
static const char *missing(const struct story *st, uint32_t line)
{
	for (unsigned i = 0; i < st->flushes; i++)
		if (st->flushed[i].line == line)
			return st->flushed[i].fenced ? "written after it was last flushed"
						     : "flushed, but no fence came";
	return "never flushed";
}

/* --- events --- */

static bool detail(const char *text)
{
	return !strncmp(text, "stores ", 7) || !strncmp(text, "flushes ", 8) || !strncmp(text, "fence:", 6) ||
	       strstr(text, ": post ");
}

static void tell(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc, const char *text)
{
	struct story *st = arg;
	char label[32] = "", line[128];
	remember(st, who, text);
	if (st->brief && detail(text))
		return;
	if (who && who->op.kind)
		op_label_print(who->op, who->visit, label, sizeof(label));
	where_print(st->where, pc, line, sizeof(line));
	printf("%10.3f us  %-15s %-9s ", (double)sim_now(sim) / 1000.0, who ? who->name : "", label);
	if (line[0])
		printf("%-56s  %s\n", text, line);
	else
		puts(text);
}

/* What the trace says of a line, or the newest version: "version 0 of 1". False: it lost something. */
static bool survived(const struct story *st, unsigned machine, uint32_t line, unsigned versions, char *buf,
		     size_t n)
{
	unsigned answer = 0;
	for (unsigned d = 0; d < st->trace->deviations.n; d++) {
		const struct deviation *dev = &st->trace->deviations.d[d];
		if (dev->kind == CHOICE_LINE && dev->a == line && dev->b == machine)
			answer = dev->answer;
	}
	pmem_answer_print(versions, answer, buf, n);
	return !answer;
}

static void print_flight(const struct story *st, struct explorer *ex, unsigned machine)
{
	const struct pmem *pm = ex->worlds.world[machine - 1].pm;
	const struct setup *s = ex->setup;
	char name[64], label[32], line[128], answer[64];
	if (!pmem_dirty(pm)) {
		puts("nothing was in flight: what was visible is durable");
		return;
	}
	puts("lines in flight (visible, not certainly durable), and their versions:");
	for (unsigned i = 0; i < pmem_dirty(pm); i++) {
		uint32_t l = pmem_dirty_line(pm, i);
		unsigned versions = pmem_line_versions(pm, l);
		bool whole = survived(st, machine, l, versions, answer, sizeof(answer));
		pmem_name(s->region, s->regions, (uint64_t)l * LINE, name, sizeof(name));
		printf("  %-16s survived as %s%s%s   (%s)\n", name, paint(whole ? "" : RED), answer,
		       paint(whole ? "" : PLAIN), missing(st, l));
		for (unsigned v = 1; v <= versions; v++) {
			struct pmem_version how;
			pmem_line_version(pm, l, v, &how);
			op_label_print(how.op, how.visit, label, sizeof(label));
			where_print(st->where, how.pc, line, sizeof(line));
			printf("  %16s version %u: %u bytes at +0x%02x by %s for %s%s%s\n", "", v, how.len,
			       how.off,
			       how.nic	 ? "the NIC"
			       : how.who ? how.who->name
					 : "?",
			       label, line[0] ? "  " : "", line);
		}
	}
}

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	struct story *st = arg;
	if (machine == 0) {
		section("the run");
		st->flushes = 0;
		return;
	}
	section(machine > 1 ? "the power fails again, in recovery or after it" : "the power fails");
	print_flight(st, ex, machine);
	st->flushes = 0;
	section("recovery, and what is then read");
}

struct replay_audience story_audience(struct story *st)
{
	return (struct replay_audience){.teller = tell, .machine_starts = machine_starts, .arg = st};
}

/* --- the beginning and the end --- */

/* Switches that the variant alone does not explain. */
static void print_knobs(const struct setup *s)
{
	struct setup plain;
	char value[64];
	bool any = false;
	setup_init(&plain, s->store);
	setup_variant(&plain, s->variant);
	for (unsigned k = 0; s->store->knobs[k].name; k++) {
		if (s->params.knob[k] == plain.params.knob[k])
			continue;
		setup_knob_value(s, k, value, sizeof(value));
		printf("%s%s=%s", any ? " " : "knobs     ", s->store->knobs[k].name, value);
		any = true;
	}
	if (any)
		putchar('\n');
}

void story_begin(const struct story *st)
{
	const struct setup *s = &st->trace->setup;
	struct deviation_names names = {s->region, s->regions};
	char text[256];
	hardware_print(&s->hw, true, text, sizeof(text));
	printf("%sstore%s     %s, variant %s\n", paint(BOLD), paint(PLAIN), s->store->name, s->variant);
	print_knobs(s);
	fputs("hardware  ", stdout);
	print_wrapped(10, text);
	fputs("loaded    ", stdout);
	workload_print_keys(&s->w, stdout);
	putchar('\n');
	for (unsigned c = 1; c <= s->w.clients; c++) {
		printf("client %-2u ", c);
		workload_print_client(&s->w, c, stdout);
		putchar('\n');
	}
	section(st->trace->deviations.n ? "what goes differently from a plain run"
					: "nothing goes differently from a plain run");
	for (unsigned i = 0; i < st->trace->deviations.n; i++) {
		deviation_print(&st->trace->deviations.d[i], &names, text, sizeof(text));
		printf("  %s\n", text);
	}
}

void story_verdict(const struct story *st, const struct replay_outcome *out)
{
	int contract = st->trace->contract;
	section("verdict");
	for (int c = 0; c < TM_CONTRACTS; c++)
		if (out->verdict[c].broken && c != contract)
			printf("%sbroken %s: %s\n", contract < 0 ? "" : "also ",
			       contract_name((enum tm_contract)c), out->text[c]);
	if (contract >= 0 && out->verdict[contract].broken)
		printf("%sbroken %s%s: %s\n", paint(RED), contract_name((enum tm_contract)contract),
		       paint(PLAIN), out->text[contract]);
}

void story_free(struct story *st)
{
	where_free(st->where);
	free(st->flushed);
}
