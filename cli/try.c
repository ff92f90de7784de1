/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark try: from somebody's program to the first verdict with one command. It runs `tidemark
 * record` and then `tidemark images`, which do all of the work, and says what to call next.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "checker/seat/image_judge.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "core/text/text.h"
#include "report/text.h"

struct request {
	struct option_names pm;
	const char *run, *check, *then, *out, *ack;
	double seconds;
	bool quiet;
};

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"pm", "PATH|mr", "as of tidemark record: the file that is persistent memory", REQUEST(pm)},
	{"run", "CMD", "the program at work; a shell runs it", REQUEST(run)},
	{"check", "CMD",
	 "what reads an image back, and ends with status 0 if all that was acknowledged is there: "
	 "{} in it is the image's path, or it is added at the end",
	 REQUEST(check)},
	{"then", "CMD",
	 "the program goes on with its work on each image that is good, and then it is read back "
	 "once more",
	 REQUEST(then)},
	{"ack", "PATTERN",
	 "as of tidemark record: a line that the program prints is an acknowledgement if this is "
	 "found in it",
	 REQUEST(ack)},
	{"out", "FILE", "the recording (=)", REQUEST(out)},
	{"time", "T", "how long images are judged (=)", REQUEST(seconds)},
	OPTION_QUIET(struct request, quiet),
	OPTION_END};

static const struct options options = {
	"try", "--pm PATH --run CMD --check CMD [OPTION...] [-- OPTION OF tidemark images...]",
	"Runs a program as it is, records what happens to its persistent memory, makes the images "
	"that a power failure could have left, has each read back, and says what must not be lost "
	"and what to call next.",
	rows, "that of tidemark images; 2 usage, or nothing was recorded"};

/* --- what is called --- */

#define WORDS (2 * OPTION_NAMES + 64)
struct command_words {
	char *word[WORDS + 1];
	int n;
};

static void add(struct command_words *w, const char *word)
{
	if (w->n < WORDS)
		w->word[w->n++] = (char *)(uintptr_t)word; /* nobody writes to it */
}

static void add_option(struct command_words *w, const char *name, const char *value)
{
	add(w, name);
	add(w, value);
}

static void record_words(const struct request *r, struct command_words *w)
{
	add(w, "record");
	for (unsigned i = 0; i < r->pm.n; i++)
		add_option(w, "--pm", r->pm.name[i]);
	add_option(w, "--out", r->out);
	if (r->ack)
		add_option(w, "--ack", r->ack);
	add(w, "--quiet"); /* the judgement says what is in it, and what is not */
	add_option(w, "--", "/bin/sh");
	add_option(w, "-c", r->run);
}

static void images_words(const struct request *r, char **more, struct command_words *w)
{
	add_option(w, "images", r->out);
	add_option(w, "--recover", r->check);
	if (r->then) {
		add_option(w, "--then", r->then);
		add_option(w, "--check", r->check);
	}
	while (*more)
		add(w, *more++);
}

static void print_call(FILE *out, char *const *word)
{
	for (write_word(out, program); *word; word++) {
		putc(' ', out);
		write_word(out, *word);
	}
}

/* --- the two --- */

/* In a process of its own, as it becomes the parent of what the program leaves. -1: it is recorded;
 * or the status after a message. */
static int record(const struct request *r)
{
	struct command_words w = {.n = 0};
	struct stat before = {0}, after;
	int status;
	record_words(r, &w);
	stat(r->out, &before);
	fflush(NULL);
	signal(SIGINT, SIG_IGN); /* the terminal sends it to the program, too */
	pid_t child = fork();
	if (!child) {
		signal(SIGINT, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		optind = 0; /* getopt_long() begins anew */
		status = run_command(w.n, w.word);
		fflush(NULL);
		_exit(status);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return fail(EXIT_INTERNAL, "try: the program could not be recorded");
	signal(SIGINT, SIG_DFL);
	status = WEXITSTATUS(status);
	/* One of an earlier call is none of this program. */
	if (stat(r->out, &after) || !memcmp(&before.st_ctim, &after.st_ctim, sizeof(after.st_ctim)))
		return status ? status : EXIT_USAGE;
	if (status > EXIT_SIGNAL && !r->quiet)
		fail(0,
		     "try: the program was ended by signal %d (%s); what it did until then is "
		     "judged",
		     status - EXIT_SIGNAL, strsignal(status - EXIT_SIGNAL));
	else if (status && !r->quiet)
		fail(0, "try: the program ended with status %d; what it did until then is judged",
		     status);
	return -1;
}

static void print_next(const struct command_words *w, int status)
{
	char *call = status == EXIT_BROKEN ? TEXT_PRINTED(out, print_call(out, w->word)) : NULL;
	if (call)
		printf("Next, all of it as a page: %s --html try.html\n", call);
	free(call);
}

static int judge(const struct request *r, char **more)
{
	char time[32], **before = arguments;
	struct command_words w = {.n = 0}, timed;
	images_words(r, more, &w);
	timed = w;
	if (r->quiet)
		add(&timed, "--quiet");
	snprintf(time, sizeof(time), "%.0fs", r->seconds);
	add_option(&timed, "--time", time);
	/* The report names the call that it is of. */
	struct command_words called = {.n = 0};
	add(&called, program);
	for (int i = 0; i < timed.n; i++)
		add(&called, timed.word[i]);
	arguments = called.word;
	optind = 0; /* getopt_long() begins anew */
	int status = run_command(timed.n, timed.word);
	arguments = before;
	print_next(&w, status);
	return status;
}

/* Are there the programs? Else that would show only when all was recorded. */
static int check_commands(const struct request *r)
{
	const char *command[] = {r->run, r->check, r->then}, *name[] = {"run", "check", "then"};
	char why[300];
	for (unsigned i = 0; i < 3; i++)
		if (image_command_exists(command[i], why, sizeof(why)))
			return fail(EXIT_USAGE, "try: --%s %s", name[i], why);
	return 0;
}

int try_main(int argc, char **argv)
{
	struct request r = {.out = "try.rec", .seconds = 50};
	int status = options_read(&options, &r, argc, argv);
	if (status >= 0)
		return status;
	if (!r.pm.n || !r.run || !r.check)
		return fail(EXIT_USAGE, "try: expected --pm PATH, --run CMD and --check CMD");
	if (argc - optind > WORDS / 2)
		return fail(EXIT_USAGE, "try: expected at most %d words after --", WORDS / 2);
	status = check_commands(&r);
	if (!status)
		status = record(&r);
	return status >= 0 ? status : judge(&r, argv + optind);
}
