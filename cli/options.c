/* SPDX-License-Identifier: BSD-3-Clause */
/* See options.h. */
#include "cli/options.h"
#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "scenarios/workload/workload.h"

#define ROWS_MAX  48
#define ROW_VALUE 256 /* of getopt_long(): the first row's; below are letters */
#define HELP	  (ROW_VALUE + ROWS_MAX)

/* --- values --- */

bool option_flag(const struct option_row *row, void *into, const char *value)
{
	(void)row;
	(void)value;
	*(bool *)into = true;
	return true;
}

/* What an option's value is, for a message. */
static const char *wanted(const struct option_row *row)
{
	static const char *const files[] = {"FILE", "OUT", "MEDIA", "CACHE"};
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!strcmp(row->argument, files[i]))
			return "the name of a file";
	return !strcmp(row->argument, "DIR") ? "the name of a folder" : row->argument;
}

static bool not_empty(const struct option_row *row, const char *value)
{
	if (!*value)
		fail(EXIT_USAGE, "--%s: expected %s, not an empty one", row->name, wanted(row));
	return *value;
}

bool option_text(const struct option_row *row, void *into, const char *value)
{
	*(const char **)into = value;
	return not_empty(row, value);
}

static bool row_number(const struct option_row *row, const char *value, unsigned long long *n)
{
	char name[64];
	snprintf(name, sizeof(name), "--%s", row->name);
	return number_option(name, value, row->lo, row->hi, n);
}

bool option_unsigned(const struct option_row *row, void *into, const char *value)
{
	unsigned long long n;
	if (!row_number(row, value, &n))
		return false;
	*(unsigned *)into = (unsigned)n;
	return true;
}

bool option_number(const struct option_row *row, void *into, const char *value)
{
	unsigned long long n;
	if (!row_number(row, value, &n))
		return false;
	*(uint64_t *)into = n;
	return true;
}

bool option_mix(const struct option_row *row, void *into, const char *value)
{
	if (ycsb_mix(value, into))
		return true;
	fail(EXIT_USAGE, "--%s: \"%.40s\"; expected one of a, b, c, u", row->name, value);
	return false;
}

bool option_time(const struct option_row *row, void *into, const char *value)
{
	char name[64];
	snprintf(name, sizeof(name), "--%s", row->name);
	return time_option(name, value, into);
}

bool option_name(const struct option_row *row, void *into, const char *value)
{
	struct option_names *list = into;
	if (row && !not_empty(row, value))
		return false;
	if (list->n == OPTION_NAMES) {
		fail(EXIT_USAGE, "more than %u names of one kind; \"%.40s\" is too many",
		     OPTION_NAMES, value);
		return false;
	}
	list->name[list->n++] = value;
	return true;
}

/* --- rows --- */

static bool is_end(const struct option_row *row)
{
	return !row->name && !row->help;
}

static int has_argument(const struct option_row *row)
{
	return !row->argument		 ? no_argument
	       : row->argument[0] == '[' ? optional_argument
					 : required_argument;
}

/* --- values, as they are shown --- */

static void show_number(unsigned long long n, char *text, size_t size)
{
	if (n >= UINT64_MAX / 2)
		snprintf(text, size, "no bound");
	else
		snprintf(text, size, "%llu", n);
}

static void show_time(double seconds, char *text, size_t size)
{
	const unsigned n = (unsigned)seconds;
	if (n >= 3600 && n % 3600 == 0)
		snprintf(text, size, "%uh", n / 3600);
	else if (n > 60 && n % 60 == 0)
		snprintf(text, size, "%um", n / 60);
	else
		snprintf(text, size, "%us", n);
}

static void show_value(const struct option_row *row, const void *into, char *text, size_t size)
{
	const void *field = (const char *)into + row->field;
	if (row->show)
		row->show(row, into, text, size);
	else if (row->parse == option_unsigned)
		show_number(*(const unsigned *)field, text, size);
	else if (row->parse == option_number)
		show_number(*(const uint64_t *)field, text, size);
	else if (row->parse == option_time)
		show_time(*(const double *)field, text, size);
	else if (row->parse == option_text)
		snprintf(text, size, "%s", *(const char *const *)field);
	else
		assert(!"the default of such an option is not shown");
}

/* --- help --- */

/* "-q, --quiet", "--seed N", "--shadow[=FILE]": its length. */
static unsigned row_text(const struct option_row *row, char *buf, size_t n)
{
	char letter[8] = "";
	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	return (unsigned)snprintf(buf, n, "%s--%s%s%s", letter, row->name,
				  has_argument(row) == required_argument ? " " : "",
				  row->argument ? row->argument : "");
}

static void print_paragraphs(const char *text)
{
	char line[1024];
	while (*text) {
		size_t len = strcspn(text, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		print_wrapped(0, line);
		text += len + (text[len] == '\n');
	}
}

static void print_row(const struct option_row *row, const void *into, unsigned width)
{
	char text[80], help[1024], value[128];
	const char *mark = strstr(row->help, "(=");
	row_text(row, text, sizeof(text));
	printf("  %-*s  ", (int)width, text);
	if (!mark) {
		print_wrapped(width + 4, row->help);
		return;
	}
	show_value(row, into, value, sizeof(value));
	snprintf(help, sizeof(help), "%.*s(%s%s", (int)(mark - row->help), row->help, value,
		 mark + 2);
	print_wrapped(width + 4, help);
}

static void print_usage(const struct options *o)
{
	const char *usage = o->usage;
	for (bool first = true; first || *usage; first = false) {
		size_t len = strcspn(usage, "\n");
		printf("%s tidemark %s%s%.*s\n", first ? "usage:" : "      ", o->command,
		       len ? " " : "", (int)len, usage);
		usage += len + (usage[len] == '\n');
	}
}

/* Options and headings up to `end`; an empty line before a heading, or several. */
static void print_rows(const struct option_row *row, const struct option_row *end, const void *into,
		       unsigned width)
{
	for (bool option = true; row < end; option = row->name, row++) {
		if (row->name && row->help) {
			print_row(row, into, width);
		} else if (!row->name) {
			fputs(option ? "\n" : "", stdout);
			print_wrapped(0, row->help);
		}
	}
}

static void print_help(const struct options *o, const void *into)
{
	static const struct option_row help = {.name = "help", .help = "this text"};
	const struct option_row *end = o->row, *last = o->row; /* after the last option */
	char text[80];
	unsigned width = row_text(&help, text, sizeof(text));
	for (; !is_end(end); end++) {
		unsigned len = end->name && end->help ? row_text(end, text, sizeof(text)) : 0;
		width = len > width ? len : width;
		last = end->name ? end + 1 : last;
	}
	print_usage(o);
	print_paragraphs(o->about);
	if (last == o->row || o->row[0].name)
		putchar('\n');
	print_rows(o->row, last, into, width);
	print_row(&help, into, width);
	print_rows(last, end, into, width);
	fputs("\nexit status: ", stdout);
	print_wrapped(13, o->status);
}

/* --- reading --- */

/* The table as getopt_long() wants it. The letters begin with ":": it prints nothing. */
static void make_tables(const struct options *o, struct option *list, char *letters)
{
	unsigned n = 0;
	*letters++ = ':';
	for (unsigned i = 0; !is_end(&o->row[i]); i++) {
		const struct option_row *row = &o->row[i];
		assert(i < ROWS_MAX);
		if (!row->name)
			continue;
		list[n++] = (struct option){row->name, has_argument(row), NULL, ROW_VALUE + (int)i};
		if (!row->letter)
			continue;
		*letters++ = row->letter;
		if (row->argument)
			*letters++ = ':';
	}
	list[n++] = (struct option){"help", no_argument, NULL, HELP};
	list[n] = (struct option){0};
	*letters = '\0';
}

static const struct option_row *find_row(const struct options *o, int option)
{
	const struct option_row *row = o->row;
	if (option >= ROW_VALUE)
		return row + (option - ROW_VALUE);
	while (row->letter != option)
		row++;
	return row;
}

/* What getopt_long() returned, ':' or '?', of `word`. */
static int refuse(const struct options *o, const struct option *list, int option, const char *word)
{
	char known[64], plain[64];
	struct nearest n;
	if (option == ':')
		return fail(EXIT_USAGE, "%s: %s wants a value: %s", o->command, word,
			    find_row(o, optopt)->argument);
	if (optopt >= ROW_VALUE)
		return fail(EXIT_USAGE, "%s: %.60s: this option takes no value", o->command, word);
	if (optopt)
		return fail(EXIT_USAGE, "%s: unknown option \"-%c\" (tidemark %s --help)",
			    o->command, optopt, o->command);
	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(word, "="), word);
	nearest_init(&n, plain);
	for (; list->name; list++) {
		snprintf(known, sizeof(known), "--%s", list->name);
		nearest_try(&n, known);
	}
	return fail(EXIT_USAGE, "%s: unknown option \"%.40s\"%s (tidemark %s --help)", o->command,
		    word, n.hint, o->command);
}

static bool take_option(const struct option_row *row, void *into, const char *value)
{
	char *fields = into;
	if (!row->parse(row, fields + row->field, value))
		return false;
	if (row->given)
		*(bool *)(fields + row->given) = true;
	return true;
}

/* For as long as the program runs. */
static struct options_given given;

const struct options_given *options_given(void)
{
	return &given;
}

/* Room for all words of a call, instead of those of an earlier one (`tidemark merge`). */
static bool given_open(const struct options *o, int argc)
{
	given.command = o->command;
	for (unsigned i = 0; i < OPTION_WORKS; i++) {
		for (char **word = given.option[i]; word && *word; word++)
			free(*word);
		free(given.option[i]);
		given.option[i] = calloc((size_t)argc + 1, sizeof(char *));
		if (!given.option[i])
			return false;
	}
	return true;
}

static bool given_add(const struct option_row *row, const char *value)
{
	if (row->use == OPTION_WORKS)
		return true;
	char **to = given.option[row->use];
	while (*to)
		to++;
	return asprintf(to, "--%s%s%s", row->name, value ? "=" : "", value ? value : "") >= 0;
}

/* Twice: --help shows what is in *into before anything is taken. */
static int read_all(const struct options *o, void *into, int argc, char **argv, bool leading)
{
	struct option list[ROWS_MAX + 2];
	char letters[2 * ROWS_MAX + 3] = "+";
	int option;
	make_tables(o, list, letters + 1);
	if (!given_open(o, argc))
		return fail(EXIT_INTERNAL, "out of memory");
	opterr = 0;
	while ((option = getopt_long(argc, argv, letters + !leading, list, NULL)) != -1) {
		if (option == HELP) {
			print_help(o, into);
			return EXIT_HELD;
		}
		if (option == ':' || option == '?')
			return refuse(o, list, option, argv[optind - 1]);
	}
	optind = 0; /* from the beginning */
	while ((option = getopt_long(argc, argv, letters + !leading, list, NULL)) != -1) {
		if (!take_option(find_row(o, option), into, optarg))
			return EXIT_USAGE;
		if (!given_add(find_row(o, option), optarg))
			return fail(EXIT_INTERNAL, "out of memory");
	}
	given.word = argv + optind;
	return -1;
}

int options_read(const struct options *o, void *into, int argc, char **argv)
{
	return read_all(o, into, argc, argv, false);
}

int options_read_leading(const struct options *o, void *into, int argc, char **argv)
{
	return read_all(o, into, argc, argv, true);
}

int options_end(const struct options *o, int argc, char **argv)
{
	if (optind < argc)
		return fail(EXIT_USAGE, "%s: \"%.40s\" was not expected (tidemark %s --help)",
			    o->command, argv[optind], o->command);
	return -1;
}
