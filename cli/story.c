/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The story of a replay: what was asked of the store, then event by event who did
 * what, at each power failure the lines in flight with their versions and what
 * survived of each, recovery, what its readers found, and the rule that broke.
 */
#include "cli/story.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"
#include "core/pmem/crash.h"

static void print_time(uint64_t ns)
{
	printf("%10.3f us  ", (double)ns / 1000.0);
}

static void tell(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc, const char *text)
{
	const struct story *st = arg;
	char label[32] = "", line[128];
	if (st->brief && (!strncmp(text, "stores ", 7) || !strncmp(text, "posts ", 6)))
		return;
	if (who && who->op.kind)
		op_label_print(who->op, who->visit, label, sizeof(label));
	where_print(st->where, pc, line, sizeof(line));
	print_time(sim_now(sim));
	printf("%-16s %-10s %s%s%s%s\n", who ? who->name : "", label, text, line[0] ? "   [" : "", line, line[0] ? "]" : "");
}

static void print_flight(const struct story *st, struct explorer *ex, unsigned machine)
{
	const struct pmem *pm = ex->worlds.world[machine - 1].pm;
	const struct setup *s = ex->setup;
	char name[64], label[32], line[128];
	if (!pmem_dirty(pm)) {
		puts("  nothing was in flight: what was visible is durable");
		return;
	}
	puts("  lines in flight (visible, not certainly durable), and their versions:");
	for (unsigned i = 0; i < pmem_dirty(pm); i++) {
		uint32_t l = pmem_dirty_line(pm, i);
		unsigned versions = pmem_line_versions(pm, l);
		const char *survived = "as recovery finds it: the newest version, unless said otherwise below";
		char answer[64];
		for (unsigned d = 0; d < st->trace->deviations.n; d++) {
			const struct deviation *dev = &st->trace->deviations.d[d];
			if (dev->kind == CHOICE_LINE && dev->a == l && dev->b == machine) {
				pmem_answer_print(versions, dev->answer, answer, sizeof(answer));
				survived = answer;
			}
		}
		if (survived != answer) {
			pmem_answer_print(versions, 0, answer, sizeof(answer));
			survived = answer;
		}
		pmem_name(s->region, s->regions, (uint64_t)l * LINE, name, sizeof(name));
		printf("  %-16s survived as %s\n", name, survived);
		for (unsigned v = 1; v <= versions; v++) {
			struct pmem_version how;
			pmem_line_version(pm, l, v, &how);
			op_label_print(how.op, how.visit, label, sizeof(label));
			where_print(st->where, how.pc, line, sizeof(line));
			printf("  %16s version %u: %u bytes at +0x%02x by %s for %s%s%s%s\n", "", v, how.len, how.off,
			       how.nic ? "the NIC" : how.who ? how.who->name : "?", label, line[0] ? " [" : "", line,
			       line[0] ? "]" : "");
		}
	}
}

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	const struct story *st = arg;
	if (machine == 0) {
		puts("\n== the run");
		return;
	}
	printf("\n== the power fails%s\n", machine > 1 ? " again, in recovery or after it" : "");
	print_flight(st, ex, machine);
	puts("\n== recovery, and what is then read");
}

struct replay_audience story_audience(struct story *st)
{
	return (struct replay_audience){.teller = tell, .machine_starts = machine_starts, .arg = st};
}

void story_begin(const struct story *st)
{
	const struct setup *s = &st->trace->setup;
	struct deviation_names names = {s->region, s->regions};
	char text[256];
	hardware_print(&s->hw, true, text, sizeof(text));
	printf("%s, variant %s\n%s\n", s->store->name, s->variant, text);
	printf("loaded: ");
	workload_print_keys(&s->w, stdout);
	putchar('\n');
	for (unsigned c = 1; c <= s->w.clients; c++) {
		printf("client %u: ", c);
		workload_print_client(&s->w, c, stdout);
		putchar('\n');
	}
	puts(st->trace->deviations.n ? "what goes differently from a plain run:" : "nothing goes differently from a plain run");
	for (unsigned i = 0; i < st->trace->deviations.n; i++) {
		deviation_print(&st->trace->deviations.d[i], &names, text, sizeof(text));
		printf("  %s\n", text);
	}
}

void story_verdict(const struct story *st, const struct replay_outcome *out)
{
	int contract = st->trace->contract;
	puts("\n== verdict");
	for (int c = 0; c < TM_CONTRACTS; c++)
		if (out->verdict[c].broken && c != contract)
			printf("also broken: %s: %s\n", contract_name((enum tm_contract)c), out->text[c]);
	if (contract >= 0 && out->verdict[contract].broken)
		printf("broken %s: %s\n", contract_name((enum tm_contract)contract), out->text[contract]);
	else if (contract >= 0)
		printf("fixed: %s is not broken any more\n", contract_name((enum tm_contract)contract));
	else
		puts("this trace names no broken contract");
}
