/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark stat and tidemark fault: the processes of a fabric, while they run. `stat` prints what
 * their NICs count, `fault` prints or replaces the rules by which they inject faults. Both use the
 * processes' stats pages (core/provider/base/stats_page.h).
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/options.h"
#include "core/provider/base/stats_page.h"

static const char *const names[RNIC_COUNT] = {
#define X(name, words) #name,
	RNIC_COUNTS(X)
#undef X
};

static const char *const words[RNIC_COUNT] = {
#define X(name, words) words,
	RNIC_COUNTS(X)
#undef X
};

struct choice {
	struct nic_config config;
	bool json, off;
	unsigned long long pid;
};

/* For each living process of the fabric, the first one first; returns how many there were. `visit`
 * may end it by an exit status that is not 0. */
typedef int visit_fn(const struct choice *choice, const char *name, const struct stats_page *page,
		     void *arg);

static int is_page(const struct dirent *entry)
{
	return !strncmp(entry->d_name, "nic.", 4);
}

static int visit_all(const struct choice *choice, visit_fn *visit, void *arg, unsigned *found)
{
	static struct stats_page page;
	struct dirent **entry;
	int n = scandir(choice->config.fabric, &entry, is_page, versionsort), status = 0;

	*found = 0;
	if (n < 0)
		return errno == ENOENT
			       ? 0
			       : fail(EXIT_USAGE, "%s: %s", choice->config.fabric, strerror(errno));
	for (int i = 0; i < n; i++) {
		int rc = status ? -ESRCH
				: stats_page_read(choice->config.fabric, entry[i]->d_name, &page);

		if (rc == -EPROTO)
			status = fail(EXIT_USAGE, "%s/%s: of another version of Tidemark",
				      choice->config.fabric, entry[i]->d_name);
		if (!rc && (!choice->pid || choice->pid == page.pid)) {
			(*found)++;
			status = visit(choice, entry[i]->d_name, &page, arg);
		}
		free(entry[i]);
	}
	free(entry);
	return status;
}

static int no_process(const struct choice *choice)
{
	if (choice->pid)
		return fail(EXIT_USAGE, "no process %llu in the fabric %s", choice->pid,
			    choice->config.fabric);
	return fail(EXIT_USAGE, "no process in the fabric %s", choice->config.fabric);
}

/* The setting that `row->lo` names. */
static bool take_setting(const struct option_row *row, void *into, const char *value)
{
	struct choice *choice = into;

	if (!nic_config_set(&choice->config, (enum nic_setting)row->lo, value))
		return true;
	fail(EXIT_USAGE, "%s \"%.60s\": %s", nic_settings[row->lo].option, value,
	     choice->config.why);
	return false;
}

static void show_setting(const struct option_row *row, const void *into, char *text, size_t size)
{
	nic_config_show(&((const struct choice *)into)->config, (enum nic_setting)row->lo, text,
			size);
}

#define ROW_FABRIC                                                                        \
	{"fabric", "NAME|DIR", "the fabric (as tidemark run)", OPTION_CALL(take_setting), \
	 .lo = SETTING_FABRIC},                                                           \
	{                                                                                 \
		"net", "NAME|DIR", NULL, OPTION_CALL(take_setting), .lo = SETTING_FABRIC  \
	}                                                                                 \
	/* its old name */
#define ROW_PID                                                                                \
	{                                                                                      \
		"pid", "N", "this process only", OPTION_FIELD(struct choice, pid), 1, 1u << 30 \
	}

static int begin(const struct options *options, struct choice *choice, int argc, char **argv)
{
	char line[300];

	*choice = (struct choice){0};
	if (nic_config_read(&choice->config, line, sizeof(line)))
		return fail(EXIT_USAGE, "%s: %s", options->command, line);
	return options_read(options, choice, argc, argv);
}

/* --- stat --- */

static const struct option_row stat_rows[] = {
	ROW_FABRIC,
	ROW_PID,
	{"json", NULL, "everything, zeros too, as JSON", OPTION_FIELD(struct choice, json)},
	OPTION_END};

static const struct options stat_options = {
	"stat", "[OPTION...]",
	"What the soft RNICs of a fabric's processes have counted so far. docs/nic/guide.md "
	"explains the lines.",
	stat_rows, "0, 2 usage, or there is no process in the fabric"};

static int print_page(const struct choice *choice, const char *name, const struct stats_page *page,
		      void *arg)
{
	printf("%s, process %u\n", page->program, page->pid);
	for (unsigned i = 0; i < RNIC_COUNT; i++)
		if (page->count[i])
			printf("  %12llu  %s\n", (unsigned long long)page->count[i], words[i]);
	return 0;
}

static int add_page(const struct choice *choice, const char *name, const struct stats_page *page,
		    void *arg)
{
	json_t *counts = json_object();

	for (unsigned i = 0; i < RNIC_COUNT; i++)
		json_object_set_new(counts, names[i], json_integer((json_int_t)page->count[i]));
	json_t *process = json_pack("{s:s%, s:i, s:s, s:o}", "program", page->program,
				    strlen(page->program), "pid", (int)page->pid, "link",
				    page->link == LINK_UDP ? "udp" : "shm", "counts", counts);
	if (!process) /* a name that is no UTF-8 */
		process = json_pack("{s:n, s:i, s:o}", "program", "pid", (int)page->pid, "counts",
				    counts);
	return json_array_append_new(arg, process) ? fail(EXIT_INTERNAL, "stat: out of memory") : 0;
}

int stat_main(int argc, char **argv)
{
	struct choice choice;
	unsigned found;
	int status = begin(&stat_options, &choice, argc, argv);

	if (status >= 0)
		return status;
	if (optind < argc)
		return fail(EXIT_USAGE, "stat: unknown word \"%.40s\" (tidemark stat --help)",
			    argv[optind]);
	json_t *all = json_array();
	status = visit_all(&choice, choice.json ? add_page : print_page, all, &found);
	if (!status && !found)
		status = no_process(&choice);
	if (!status && choice.json && (json_dumpf(all, stdout, JSON_INDENT(2)) || puts("") < 0))
		status = EXIT_USAGE;
	json_decref(all);
	return status;
}

/* --- fault --- */

static const struct option_row fault_rows[] = {
	ROW_FABRIC,
	ROW_PID,
	{"seed", "N", "for the rules (=)", OPTION_CALL(take_setting), .lo = SETTING_SEED,
	 .show = show_setting},
	{"off", NULL, "no rules any more", OPTION_FIELD(struct choice, off)},
	{.help = "rules, of which docs/nic/guide.md has the whole language"},
	{.help = "lose 5%; duplicate 2%; reorder 10% by 3; corrupt 1%; delay 1ms jitter 200us; "
		 "rate "
		 "100mbit"},
	{.help = "drop write 3 packet 2: the second packet of the third RDMA WRITE, once"},
	{.help = "partition peer 2 for 5s: nothing to or from it"},
	{.help = "tear write 3: the WRITE reaches memory in part, then the process is killed"},
	OPTION_END};

static const struct options fault_options = {
	"fault", "[OPTION...] [RULE...]",
	"Gives the processes of a fabric these rules of faults instead of those that they have. "
	"Without a rule: prints the rules, and how many packets each has hit.",
	fault_rows, "0, 2 usage, or there is no process in the fabric"};

static int give(const struct choice *choice, const char *name, const struct stats_page *page,
		void *arg)
{
	int rc = stats_page_give(choice->config.fabric, name, arg, choice->config.seed);

	/* A process that has ended meanwhile needs no rules. */
	if (rc && rc != -ESRCH && rc != -ENOENT)
		return fail(EXIT_USAGE, "process %u: %s", page->pid, strerror(-rc));
	return 0;
}

/* The rules one by one, as they were written. */
static int print_rules(const struct choice *choice, const char *name, const struct stats_page *page,
		       void *arg)
{
	const char *at = page->faults;

	printf("%s, process %u, seed %llu\n", page->program, page->pid,
	       (unsigned long long)page->seed);
	for (unsigned i = 0; i < FAULT_RULES && *at; at += *at != '\0') {
		at += strspn(at, " \t,");
		size_t len = strcspn(at, ";\n");
		if (len)
			printf("  %-40.*s hit %llu sent, %llu received\n", (int)len, at,
			       (unsigned long long)page->hits[i][0],
			       (unsigned long long)page->hits[i][1]);
		i += len != 0;
		at += len;
	}
	return 0;
}

/* All words of the command line, as one text. */
static int join_rules(struct choice *choice, int argc, char **argv)
{
	char all[CONFIG_FAULTS_BYTES + 1] = "";
	size_t len = 0;

	for (int i = optind; i < argc; i++) {
		int n = snprintf(all + len, sizeof(all) - len, "%s%s", len ? "; " : "", argv[i]);

		if (n < 0 || (size_t)n >= sizeof(all) - len)
			return fail(EXIT_USAGE, "fault: the rules are longer than %d bytes",
				    CONFIG_FAULTS_BYTES - 1);
		len += (size_t)n;
	}
	if (!nic_config_set(&choice->config, SETTING_FAULTS, all))
		return 0;
	/* What is wrong is one of the words, or the only one. */
	const char *why = choice->config.why;
	if (*why == '"' && !strncmp(why + 1, all, len) && why[len + 1] == '"')
		return fail(EXIT_USAGE, "fault: %s", why);
	return fail(EXIT_USAGE, "fault: \"%.80s\": %s", all, why);
}

int fault_main(int argc, char **argv)
{
	struct choice choice;
	unsigned found;
	int status = begin(&fault_options, &choice, argc, argv);

	if (status >= 0)
		return status;
	if (choice.off && optind < argc)
		return fail(EXIT_USAGE, "fault: --off, or rules; not both");
	status = join_rules(&choice, argc, argv);
	if (!status)
		status = visit_all(&choice, choice.off || optind < argc ? give : print_rules,
				   choice.config.faults, &found);
	if (!status && !found)
		status = no_process(&choice);
	return status;
}
