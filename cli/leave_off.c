/* SPDX-License-Identifier: BSD-3-Clause */
/* See leave_off.h. */
#include "cli/leave_off.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "cli/cli.h"
#include "cli/shard.h"
#include "report/text.h"
#include "core/text/text.h"

/* Is it this option, or an abbreviation of it, of at least `least` letters? With its value or not.
 */
static bool is_option(const char *word, const char *option, size_t least)
{
	size_t len = strcspn(word, "=");
	return len >= least && len <= strlen(option) && !strncmp(word, option, len);
}

static void print_command(FILE *out)
{
	for (char **word = arguments; *word; word++) {
		bool timed = is_option(*word, "--time", strlen("--t"));
		if (timed && !strchr(*word, '=') && word[1])
			word++;
		if (timed || is_option(*word, "--fail-fast", strlen("--fai")))
			continue;
		fputs(word == arguments ? "" : " ", out);
		write_word(out, *word);
	}
}

/* The words of this call, without those that end it early. */
char *leave_off_command(void)
{
	return TEXT_PRINTED(out, print_command(out));
}

int leave_off_check(const struct leave_off *l, const char *out)
{
	if (shard_is_part(&l->shard))
		return 0;
	int status = results_check();
	return status || !out ? status : check_folder("--out", out, false);
}

int leave_off_begin(struct leave_off *l)
{
	l->bounds = (struct driver_bounds){
		.stop = signals_stop(), .until = l->seconds > 0 ? clock_seconds() + l->seconds : 0};
	l->how = (struct driver_how){l->how.jobs, &l->bounds, l->quiet ? NULL : show_units,
				     leave_off_found, l};
	int status = shard_begin(&l->shard, &l->bounds.results);
	if (!status)
		outputs_begin();
	return status;
}

void show_units(void *what, const struct driver_progress *at)
{
	char states[80] = "";
	if (at->states)
		snprintf(states, sizeof(states), ", %" PRIu64 " states, %.0f states/s", at->states,
			 (double)at->states / (at->seconds > 0 ? at->seconds : 1));
	progress_line("%u of %u %s%s%s, about %.0f s left", at->done, at->units, (const char *)what,
		      plural(at->units), states, at->seconds / at->done * (at->units - at->done));
}

void leave_off_found(void *leave_off)
{
	struct leave_off *l = leave_off;
	if (!l->fail_fast)
		return;
	l->found = true;
	signals_set_stop(true);
}

int leave_off_end(struct leave_off *l, int *error)
{
	assert(l->bounds.stop);
	progress_line(NULL);
	int status = shard_end(&l->shard, *error);
	if (status >= 0)
		return leave_off_status(l, status);
	/* What follows, such as shrinking a trace, is not to be left off. */
	if (l->found)
		signals_set_stop(false);
	l->early = *error == -EINTR;
	*error = l->early ? 0 : *error;
	return -1;
}

const char *leave_off_why(const struct leave_off *l)
{
	const int sig = signals_stopped();
	if (!l->early)
		return NULL;
	return shard_is_missing() ? "where results of shards are missing"
	       : sig == SIGINT	  ? "at SIGINT"
	       : sig == SIGTERM	  ? "at SIGTERM"
	       : sig		  ? "at SIGHUP"
	       : l->found	  ? "at the first surprise (--fail-fast)"
				  : "after --time";
}

void leave_off_conclude(const struct leave_off *l, struct conclusion *c, unsigned done,
			unsigned all, const char *what)
{
	char part[100];
	snprintf(part, sizeof(part), "%u of %u %s", done, all, what);
	if (l->early)
		conclusion_left_off(c, leave_off_why(l), part);
	c->status = leave_off_status(l, c->status);
}

void leave_off_print(const struct leave_off *l, const struct conclusion *c)
{
	char *command = l->early ? leave_off_command() : NULL;
	if (command)
		printf("All of it: %s\n", command);
	free(command);
	conclusion_print(c);
}

int leave_off_tell(const struct leave_off *l, const struct conclusion *c, json_t *tree,
		   const char *text, int status)
{
	text_print(tree, text);
	int other = outputs_write(tree, c);
	leave_off_print(l, c);
	status = status ? status : other;
	return status ? status : c->status;
}

int leave_off_status(const struct leave_off *l, int status)
{
	/* That something could not be written weighs more. */
	if (status == EXIT_USAGE || status == EXIT_INTERNAL)
		return status;
	if (signals_stopped())
		return EXIT_SIGNAL + signals_stopped();
	return l->early && status == EXIT_HELD ? EXIT_UNSURE : status;
}
