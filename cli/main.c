/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark: finds the sub-command. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "core/live/live_fails.h"
#include "report/output.h"
#include "scenarios/stores.h"
#include "core/text/text.h"

char **arguments;

/* A group's heading has no main(). */
static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *arguments, *what;
} commands[] = {
	{"test", NULL, NULL, "a store under power failures"},
	{"crashtest", crashtest_main, "[STORE...]",
	 "explore crashes, print what holds and what breaks, write traces"},
	{"fuzz", fuzz_main, "[STORE...]",
	 "drive stores with inputs that reach new states; rerun traces"},
	{"ablate", ablate_main, "STORE", "which flushes, fences, waits and checks does it need?"},
	{"replay", replay_main, "FILE...", "print a trace step by step"},
	{"shrink", shrink_main, "FILE", "make a trace smaller"},
	{"merge", merge_main, "FILE...",
	 "the report of a campaign that was run in shards (--shard)"},
	{"diff", diff_main, "BEFORE AFTER",
	 "what has changed between the results of two campaigns"},
	{"list", list_main, "[WHAT]",
	 "stores, variants, bugs, knobs, workloads, contracts, failures"},
	{"own store", NULL, NULL, "a store outside of Tidemark's tree"},
	{"new-store", new_store_main, "NAME", "a folder with a small store, to start from"},
	{"cc", cc_main, "ARGUMENT...", "compile and link a store of your own, as cc does"},
	{"c++", cxx_main, "ARGUMENT...", "the same in C++"},
	{"any program", NULL, NULL, "a program as it is, by what was recorded of its PM"},
	{"try", try_main, "", "record a program, cut the power, judge: one command"},
	{"record", record_main, "PROGRAM", "run a program and record what happens to its PM"},
	{"images", images_main, "",
	 "make the crash images of a log, start a checker on each, say what must not be lost"},
	{"judge", judge_main, "FILE", "is a history of any program linearizable?"},
	{"model", NULL, NULL, "questions to the emulated hardware"},
	{"litmus", litmus_main, "FILE...", "all outcomes of litmus tests; which conditions hold"},
	{"taxonomy", taxonomy_main, "[METHOD...]",
	 "which way of making a remote update durable is sound where?"},
	{"claims", claims_main, "[ID...]", "test what the papers claim, and what they leave out"},
	{"count", count_main, "[STORE...]",
	 "what an operation costs: PM bytes, flushes, fences, round trips"},
	{"figures", figures_main, "[ID...]",
	 "what the papers measured, and the same in virtual time"},
	{"times", times_main, "[STORE...]", "how long operations take, and where the time goes"},
	{"self-test", NULL, NULL, "is Tidemark itself right?"},
	{"mutants", mutants_main, "[NAME...]", "are the seeded bugs found, and how soon?"},
	{"soak", soak_main, "", "random hardware and workloads, for as long as you like"},
	{"verbs", verbs_main, "[PROGRAM...]",
	 "small verbs programs: what an RNIC does, line by line"},
	{"live", NULL, NULL, "a store in real time, on an RDMA device"},
	{"serve", serve_main, "STORE", "serve a store over this machine's RDMA device, from PM"},
	{"members", members_main, "FILE", "keep who the members of a store of several servers are"},
	{"put", put_main, "KEY VALUE", "one operation on a live server; also get, del"},
	{"get", get_main, "KEY", "one operation on a live server"},
	{"del", del_main, "KEY", "one operation on a live server"},
	{"cut", cut_main, "",
	 "cut the power of a live pool: which lines in flight reach the media"},
	{"examine", examine_main, "", "what a power cut left of a live server, judged"},
	{"bench", bench_main, "", "measure the simulator; with --server, live stores"},
	{"nic", NULL, NULL, "the soft RNIC under programs as they are"},
	{"run", run_main, "PROGRAM", "run a verbs program on the soft RNIC, between processes"},
	{"stat", stat_main, "", "what the soft RNICs of running programs have counted"},
	{"fault", fault_main, "[RULE...]",
	 "inject faults into the packets of running programs, or show them"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int help_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("usage: tidemark COMMAND [OPTION...]   (tidemark COMMAND --help says more)\n"
	     "       tidemark --version");
	for (unsigned i = 0; i < COMMANDS; i++)
		if (commands[i].main)
			printf("  %-9s %-12s  %s\n", commands[i].name, commands[i].arguments,
			       commands[i].what);
		else
			printf("\n%s: %s\n", commands[i].name, commands[i].what);
	puts("\nexit status: 0 as expected, 1 a promise broken, 2 usage or bad input, 3 could not "
	     "tell,\n"
	     "4 fixed (replay, shrink), 70 internal error, 77 skipped, 130 interrupted");
	return 0;
}

static int version_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("tidemark %s\n", tidemark_version);
	return 0;
}

static int unknown(const char *name)
{
	struct nearest n;
	nearest_init(&n, name);
	for (unsigned i = 0; i < COMMANDS; i++)
		if (commands[i].main)
			nearest_try(&n, commands[i].name);
	return fail(EXIT_USAGE, "no command \"%.40s\"%s (tidemark --help)", name, n.hint);
}

/* The reader of our output has closed it: no error, `tidemark list | head -1` does that. */
static bool reader_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	return poll(&out, 1, 0) == 1 && out.revents & POLLERR;
}

/* Calls that libfiu has had fail. */
static void print_failed_calls(void)
{
	for (unsigned p = 0; p < FAIL_POINT_COUNT; p++)
		if (live_failed(p))
			fail(0, "%s failed %u time%s, as libfiu said", fail_points[p].name,
			     live_failed(p), plural(live_failed(p)));
}

/* What the path of a store's shared object means in a call: the store, if the command's words are
 * stores; else one that a trace, a pool or a server may name. In some the store runs for real. */
static const struct object_use {
	int (*main)(int argc, char **argv);
	bool named, live;
	bool keyed; /* the store has to have put, get and del */
} object_uses[] = {
	{crashtest_main, .named = true},
	{fuzz_main, .named = true},
	{ablate_main, .named = true},
	{count_main, .named = true, .keyed = true},
	{times_main, .named = true, .keyed = true},
	{mutants_main, .named = true},
	{replay_main, .named = false},
	{shrink_main, .named = false},
	{list_main, .named = false},
	{cut_main, .keyed = true},
	{examine_main, .keyed = true},
	{serve_main, .named = true, .live = true, .keyed = true},
	{put_main, .live = true, .keyed = true},
	{get_main, .live = true, .keyed = true},
	{del_main, .live = true, .keyed = true},
	{bench_main, .live = true, .keyed = true},
};
#define OBJECT_USES (sizeof(object_uses) / sizeof(object_uses[0]))

/* Loads the stores whose shared objects are named, and puts their names there, or nothing.
 * 0, or the status after a message. */
static int load_stores(const struct command *command, int *argc, char **argv)
{
	char why[STORE_OBJECT_WHY];
	const struct object_use *use = object_uses;
	int left = 1;
	while (use < object_uses + OBJECT_USES && use->main != command->main)
		use++;
	if (use == object_uses + OBJECT_USES)
		return 0;
	for (int i = 1; i < *argc; i++) {
		argv[left] = argv[i];
		if (argv[i][0] == '-' || !store_is_path(argv[i])) {
			left++;
			continue;
		}
		const struct tm_store *store = use->live ? store_load_live(argv[i], why)
							 : store_load(argv[i], why);
		if (!store)
			return fail(EXIT_USAGE, "%s", why);
		if (use->keyed && !store->put)
			return fail(EXIT_USAGE,
				    "%s: it has operations of its own only; `tidemark %s` is for "
				    "stores with put, get and del",
				    argv[i], command->name);
		if (use->named)
			argv[left++] = (char *)(uintptr_t)store->name; /* nobody writes to it */
	}
	*argc = left;
	argv[left] = NULL;
	return 0;
}

static int start_command(const struct command *command, int argc, char **argv)
{
	int status = load_stores(command, &argc, argv);
	if (status)
		return status;
	status = command->main(argc, argv);
	outputs_end(status);
	print_failed_calls();
	/* A full disk shows when the last of the output is written. */
	int error = output_flush();
	if (error && !reader_gone() && status != EXIT_USAGE && status != EXIT_INTERNAL)
		status = fail(EXIT_USAGE, "standard output: %s", strerror(-error));
	return status;
}

int run_command(int argc, char **argv)
{
	for (unsigned i = 0; i < COMMANDS; i++)
		if (commands[i].main && !strcmp(argv[0], commands[i].name))
			return start_command(&commands[i], argc, argv);
	return unknown(argv[0]);
}

int main(int argc, char **argv)
{
	static const struct command help = {.main = help_main}, version = {.main = version_main};
	program = argv[0];
	/* As they were given: load_stores() takes some away. */
	arguments = calloc((size_t)argc + 1, sizeof(*arguments));
	if (!arguments)
		return fail(EXIT_INTERNAL, "out of memory");
	memcpy(arguments, argv, (size_t)argc * sizeof(*arguments));
	signals_begin();
	if (argc < 2)
		return fail(EXIT_USAGE, "no command given (tidemark --help)");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help") || !strcmp(argv[1], "-h"))
		return start_command(&help, argc - 1, argv + 1);
	if (!strcmp(argv[1], "--version"))
		return start_command(&version, argc - 1, argv + 1);
	return run_command(argc - 1, argv + 1);
}
