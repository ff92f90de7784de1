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

enum { OPT_FABRIC = 1000, OPT_PID, OPT_JSON, OPT_SEED, OPT_OFF };

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

static bool take(void *arg, int option, const char *value)
{
	struct choice *choice = arg;
	enum nic_setting setting = option == OPT_SEED ? SETTING_SEED : SETTING_FABRIC;

	switch (option) {
	case OPT_FABRIC:
	case OPT_SEED:
		if (!nic_config_set(&choice->config, setting, value))
			return true;
		fail(EXIT_USAGE, "%s \"%.60s\": %s", nic_settings[setting].option, value,
		     choice->config.why);
		return false;
	case OPT_PID:
		return number_option("--pid", value, 1, 1u << 30, &choice->pid);
	case OPT_JSON:
		return choice->json = true;
	case OPT_OFF:
		return choice->off = true;
	default:
		return !refuse_option("stat", '?', "-q");
	}
}

static int begin(const char *command, struct choice *choice, const struct option *options, int argc,
		 char **argv, void (*help)(void))
{
	char line[300];

	*choice = (struct choice){0};
	if (nic_config_read(&choice->config, line, sizeof(line)))
		return fail(EXIT_USAGE, "%s: %s", command, line);
	return read_options(command, options, argc, argv, help, take, choice);
}

/* --- stat --- */

static void stat_help(void)
{
	puts("usage: tidemark stat [OPTION...]\n"
	     "What the soft RNICs of a fabric's processes have counted so far. "
	     "docs/nic/guide.md explains the lines.\n\n"
	     "  --fabric NAME|DIR  the fabric (as tidemark run)\n"
	     "  --pid N            this process only\n"
	     "  --json             everything, zeros too, as JSON\n"
	     "  --help             this text\n\n"
	     "exit status: 0, 2 usage, or there is no process in the fabric");
}

static int print_page(const struct choice *choice, const char *name, const struct stats_page *page,
		      void *arg)
{
	(void)choice;
	(void)name;
	(void)arg;
	printf("%s, process %u\n", page->program, page->pid);
	for (unsigned i = 0; i < RNIC_COUNT; i++)
		if (page->count[i])
			printf("  %12llu  %s\n", (unsigned long long)page->count[i], words[i]);
	return 0;
}

static int add_page(const struct choice *choice, const char *name, const struct stats_page *page,
		    void *arg)
{
	json_t *counts = json_object(), *process;

	(void)choice;
	(void)name;
	for (unsigned i = 0; i < RNIC_COUNT; i++)
		json_object_set_new(counts, names[i], json_integer((json_int_t)page->count[i]));
	process = json_pack("{s:s%, s:i, s:s, s:o}", "program", page->program,
			    strlen(page->program), "pid", (int)page->pid, "link",
			    page->link == LINK_UDP ? "udp" : "shm", "counts", counts);
	if (!process) /* a name that is no UTF-8 */
		process = json_pack("{s:n, s:i, s:o}", "program", "pid", (int)page->pid, "counts",
				    counts);
	return json_array_append_new(arg, process) ? fail(EXIT_INTERNAL, "stat: out of memory") : 0;
}

int stat_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"fabric", required_argument, NULL, OPT_FABRIC},
		{"net", required_argument, NULL, OPT_FABRIC}, /* its old name */
		{"pid", required_argument, NULL, OPT_PID},
		{"json", no_argument, NULL, OPT_JSON},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct choice choice;
	unsigned found;
	json_t *all;
	int status = begin("stat", &choice, options, argc, argv, stat_help);

	if (status >= 0)
		return status;
	if (optind < argc)
		return fail(EXIT_USAGE, "stat: unknown word \"%.40s\" (tidemark stat --help)",
			    argv[optind]);
	all = json_array();
	status = visit_all(&choice, choice.json ? add_page : print_page, all, &found);
	if (!status && !found)
		status = no_process(&choice);
	if (!status && choice.json && (json_dumpf(all, stdout, JSON_INDENT(2)) || puts("") < 0))
		status = EXIT_USAGE;
	json_decref(all);
	return status;
}

/* --- fault --- */

static void fault_help(void)
{
	puts("usage: tidemark fault [OPTION...] [RULE...]\n"
	     "Gives the processes of a fabric these rules of faults instead of those that they "
	     "have. "
	     "Without a\n"
	     "rule: prints the rules, and how many packets each has hit.\n\n"
	     "  lose 5%; duplicate 2%; reorder 10% by 3; corrupt 1%; delay 1ms jitter 200us; rate "
	     "100mbit\n"
	     "  drop write 3 packet 2        the second packet of the third RDMA WRITE, once\n"
	     "  partition peer 2 for 5s      nothing to or from it\n"
	     "  tear write 3                 the WRITE reaches memory in part, then the process is "
	     "killed\n\n"
	     "docs/nic/guide.md has the whole language.\n\n"
	     "  --fabric NAME|DIR  the fabric (as tidemark run)\n"
	     "  --pid N            this process only\n"
	     "  --seed N           for the rules (1)\n"
	     "  --off              no rules any more\n"
	     "  --help             this text\n\n"
	     "exit status: 0, 2 usage, or there is no process in the fabric");
}

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

	(void)choice;
	(void)name;
	(void)arg;
	printf("%s, process %u, seed %llu\n", page->program, page->pid,
	       (unsigned long long)page->seed);
	for (unsigned i = 0; i < FAULT_RULES && *at; at += *at != '\0') {
		size_t len;

		at += strspn(at, " \t,");
		len = strcspn(at, ";\n");
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
	if (nic_config_set(&choice->config, SETTING_FAULTS, all))
		return fail(EXIT_USAGE, "fault: \"%.80s\": %s", all, choice->config.why);
	return 0;
}

int fault_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"fabric", required_argument, NULL, OPT_FABRIC},
		{"net", required_argument, NULL, OPT_FABRIC}, /* its old name */
		{"pid", required_argument, NULL, OPT_PID},
		{"seed", required_argument, NULL, OPT_SEED},
		{"off", no_argument, NULL, OPT_OFF},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct choice choice;
	unsigned found;
	int status = begin("fault", &choice, options, argc, argv, fault_help);

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
