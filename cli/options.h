/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_OPTIONS_H
#define TM_CLI_OPTIONS_H
/*
 * The options of a command: one table, from which they are parsed and from which the help is
 * printed. getopt_long() does the reading.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTION_NAMES 64 /* of one list, at most */

/* The values of an option that may be repeated. */
struct option_names {
	const char *name[OPTION_NAMES];
	unsigned n;
};

/* What an option has to do with a campaign's results (cli/shard.h). */
enum option_use {
	OPTION_DECIDES, /* what they are */
	OPTION_SHOWS,	/* what is said of them, and where */
	OPTION_WORKS,	/* neither: only how they are come by */
};

struct option_row;
/* Put an option's value into `into`, the row's field. False, after a message: it is not good. */
typedef bool option_parser(const struct option_row *row, void *into, const char *value);
/* Write the value that the command's struct has for a row: the default, before options are read. */
typedef void option_shower(const struct option_row *row, const void *into, char *text, size_t size);

struct option_row {
	const char *name;     /* "seed"; NULL: `help` is a heading or a paragraph */
	const char *argument; /* "N"; NULL: takes none; "[=FILE]": can be left out */
	/* NULL: not shown; without a name, too: the end of the table. "(=" stands for "(" and the
	 * default: the value that the command's struct has before the options are read. */
	const char *help;
	option_parser *parse;
	size_t field;		   /* offset in the command's struct */
	unsigned long long lo, hi; /* of a number */
	size_t given;		   /* offset of a bool that is then true; 0: none */
	char letter;		   /* "-q"; 0: none */
	enum option_use use;
	option_shower *show; /* NULL: `parse` says how the field is shown */
};

/* The field of a row, and the parser that goes with the field's type. */
#define OPTION_FIELD(type, member) \
	.parse = _Generic(((type *)0)->member,                                            \
			bool: option_flag,                                                \
			const char *: option_text,                                        \
			unsigned: option_unsigned,                                        \
			unsigned long: option_number,                                     \
			unsigned long long: option_number,                                \
			double: option_time,                                              \
			struct option_names: option_name),                                \
	.field = offsetof(type, member)
/* A row whose value another function takes; it gets the command's whole struct. */
#define OPTION_CALL(function) .parse = (function)
#define OPTION_QUIET(type, member)                                                            \
	{                                                                                     \
		"quiet", NULL, "no progress", OPTION_FIELD(type, member), .letter = 'q',      \
									  .use = OPTION_WORKS \
	}
#define OPTION_JOBS(type, member)                                                          \
	{                                                                                  \
		"jobs", "N", "processes (one for each core); results do not depend on it", \
			OPTION_FIELD(type, member), 1, 256, .use = OPTION_WORKS            \
	}
#define OPTION_END           \
	{                    \
		.name = NULL \
	}

option_parser option_flag;     /* bool: true */
option_parser option_text;     /* const char *: the value itself, not an empty one */
option_parser option_unsigned; /* a whole number from lo to hi */
option_parser option_number;   /* the same, 64 bits */
option_parser option_time;     /* double: seconds; "90s", "30m", "8h" */
option_parser option_mix;      /* unsigned: how many percent are reads; YCSB's "a", "b", "c", "u" */
option_parser option_name;     /* struct option_names: one more, not an empty one; row NULL: any */

struct options {
	const char *command;
	const char *usage; /* what follows the command; "\n" before each further form */
	const char *about;
	const struct option_row *row; /* --help is not among them */
	const char *status;	      /* what the exit statuses mean */
};

/*
 * Read a command line into the command's struct, which has the defaults. -1: go on with the other
 * words, at optind; else the exit status: of --help, or of bad input, after a message.
 */
int options_read(const struct options *o, void *into, int argc, char **argv);
/* The same, but after the first other word there are no options. */
int options_read_leading(const struct options *o, void *into, int argc, char **argv);
/* No other words are expected. -1, or the status after a message. */
int options_end(const struct options *o, int argc, char **argv);

/* What options_read() has read. */
struct options_given {
	const char *command;
	char **option[OPTION_WORKS]; /* by use: "--name", "--name=value"; NULL after them */
	char **word;		     /* the others; NULL after them */
};
const struct options_given *options_given(void);

#endif
