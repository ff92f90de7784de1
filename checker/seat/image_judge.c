/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_judge.h. */
#include "checker/seat/image_judge.h"
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "checker/seat/judge_seat.h"
#include "core/clock.h"
#include "core/text/text.h"

#define STEPS 3 /* `recover` or the library, `then`, `check` */

struct image_judge {
	struct image_checker checker;
	char *command[STEPS]; /* with the paths of files that they name by number */
	uint8_t maps;	      /* enum board_maps: how they may be */
	bool careful;	      /* what it does to the files is not believed to be all seen */
	unsigned at_once;     /* images of the next question */
	double patience;      /* what the checker was given; checker.patience is that of the next
				 question */
	double longest;	      /* that a question has taken which was answered, seconds */
	const struct image_seat *asked; /* the latest that was */
	struct image_seat seat[STEPS][PM_FILES];
};

static const char *command_of(const struct image_checker *c, unsigned step)
{
	return step == 0 ? c->recover : step == 1 ? c->then : c->check;
}

static bool is_last(const struct image_checker *c, unsigned step)
{
	while (++step < STEPS && !command_of(c, step))
		;
	return step == STEPS;
}

void image_verdict_words(const struct image_checker *checker, const struct image_verdict *v,
			 char *out, size_t n)
{
	switch ((enum image_how)v->how) {
	case IMAGE_GOOD:
		snprintf(out, n, "good");
		return;
	case IMAGE_EXIT:
		snprintf(out, n, "exit status %u", v->number);
		return;
	case IMAGE_SIGNAL:
		snprintf(out, n, "it was ended by signal %u (%s)", v->number, strsignal(v->number));
		return;
	case IMAGE_HANG:
		snprintf(out, n, "it did not end");
		return;
	case IMAGE_CONTRACT:
		announced_words(checker->announced, &v->broken, out, n);
		return;
	case IMAGE_NO_KEYS:
		snprintf(out, n, "it printed something else than lines KEY VALUE");
		return;
	}
}

struct image_verdict verdict_of(int status)
{
	if (WIFSIGNALED(status))
		return (struct image_verdict){.how = IMAGE_SIGNAL,
					      .number = (uint8_t)WTERMSIG(status)};
	if (WEXITSTATUS(status))
		return (struct image_verdict){.how = IMAGE_EXIT,
					      .number = (uint8_t)WEXITSTATUS(status)};
	return (struct image_verdict){.how = IMAGE_GOOD};
}

static int check_library(const struct image_checker *c, char *why, size_t n)
{
	void *library = dlopen(c->library, RTLD_NOW);
	if (!library) {
		snprintf(why, n, "%s", dlerror());
		return -ENOENT;
	}
	bool found = dlsym(library, c->function) != NULL;
	dlclose(library);
	if (found)
		return 0;
	snprintf(why, n, "%s: it has no function %s", c->library, c->function);
	return -ENOENT;
}

/* --- commands that name files by number --- */

/* Is there "{12}" at `at`? Then *number is 12, and *len that of all of it. */
static bool number_at(const char *at, unsigned long *number, size_t *len)
{
	size_t digits = strspn(at + (at[0] == '{'), "0123456789");
	if (at[0] != '{' || !digits || at[1 + digits] != '}')
		return false;
	*number = strtoul(at + 1, NULL, 10);
	*len = digits + 2;
	return true;
}

/* The first number in a command, or the first that is none of so many files'. NULL: there is none.
 */
static const char *find_number(const char *command, unsigned long files, size_t *len)
{
	unsigned long number;
	for (const char *at = command; at && (at = strchr(at, '{')) != NULL; at++)
		if (number_at(at, &number, len) && (number < 1 || number > files))
			return at;
	return NULL;
}

static bool has_number(const char *command)
{
	size_t len;
	return find_number(command, 0, &len) != NULL;
}

bool image_checker_names_files(const struct image_checker *c)
{
	return has_number(c->recover);
}

int image_checker_files(const struct image_checker *c, unsigned files, char *why, size_t n)
{
	bool numbers = image_checker_names_files(c);
	for (unsigned i = 0; i < STEPS; i++) {
		const char *command = command_of(c, i);
		size_t len;
		if (!command)
			continue;
		if (numbers != has_number(command) || (numbers && strstr(command, "{}"))) {
			snprintf(why, n,
				 "%.100s: expected {1}, {2}, ... in all commands, or {} in all",
				 command);
			return -EINVAL;
		}
		const char *wrong = find_number(command, files, &len);
		if (wrong) {
			snprintf(why, n, "%.100s: %.*s, but %u file%s of PM; expected {1}%s",
				 command, len < 40 ? (int)len : 40, wrong, files, plural(files),
				 files == 1 ? "" : ", {2}, ...");
			return -EINVAL;
		}
	}
	return 0;
}

static void name_files(FILE *out, const char *command, const struct image_files *files)
{
	unsigned long number;
	for (size_t len; *command; command += len)
		if (number_at(command, &number, &len))
			fputs(files->file[number - 1].path, out);
		else
			len = fwrite(command, 1, 1, out);
}

int image_judge_open(struct image_judge **judge, const struct image_checker *checker, char *why,
		     size_t n)
{
	struct image_judge *j = calloc(1, sizeof(*j));
	int error = j ? 0 : -ENOMEM;
	assert(!checker->recover != !checker->library);
	if (!error && checker->library)
		error = check_library(checker, why, n);
	else if (error)
		snprintf(why, n, "%s", strerror(ENOMEM));
	if (error) {
		free(j);
		return error;
	}
	j->checker = *checker;
	j->at_once = 1;
	j->patience = checker->patience;
	j->maps = BOARD_PRIVATE;
	*judge = j;
	return 0;
}

void image_judge_close(struct image_judge *j)
{
	for (unsigned step = 0; j && step < STEPS; step++) {
		for (unsigned i = 0; i < PM_FILES; i++)
			seat_close(&j->seat[step][i]);
		free(j->command[step]);
	}
	free(j);
}

/* --- how long --- */

/* Once one has been waited for in vain, others that take far longer than any that has ended are
 * taken for the same. */
#define SURELY	   20 /* times as long as the longest */
#define SURELY_MIN 0.5

static void learn_patience(struct image_judge *j, double seconds, bool hangs)
{
	if (!hangs && seconds > j->longest)
		j->longest = seconds;
	const double surely = j->longest * SURELY > SURELY_MIN ? j->longest * SURELY : SURELY_MIN;
	if ((hangs || j->checker.patience < j->patience) && surely < j->patience)
		j->checker.patience = surely;
}

void image_judge_wait_long(struct image_judge *j)
{
	j->checker.patience = j->patience;
}

void image_judge_be_careful(struct image_judge *j)
{
	j->careful = true;
}

struct image_way image_judge_way(const struct image_judge *j)
{
	struct image_way way = j->seat[0][0].way;
	for (unsigned step = 1; step < STEPS && !way.kind; step++)
		way = j->seat[step][0].way;
	way.repair = j->careful		       ? IMAGE_REPAIR_UNSEEN
		     : j->maps == BOARD_SHARED ? IMAGE_REPAIR_SHARED
					       : IMAGE_REPAIR_SEEN;
	return way;
}

void image_judge_said(const struct image_judge *j, char said[IMAGE_SAID])
{
	size_t len = 0, n = 0;
	const struct image_seat *s = j->asked;
	char *text = s && s->output >= 0 ? seat_output(s, &len) : NULL;
	if (text) /* there is room for it */
		text[len] = 0;
	const char *path = s ? s->board->path : "", *at = text ? text + strspn(text, " \t\n") : "";
	while (*at && *at != '\n' && n < IMAGE_SAID - 3) {
		size_t here = *path && !strncmp(at, path, strlen(path)) ? strlen(path) : 0;
		n += (size_t)sprintf(said + n, here ? "{}" : "%c",
				     (unsigned char)*at < ' ' ? ' ' : *at);
		at += here ? here : 1;
	}
	said[n] = 0;
	free(text);
}

/* What it printed, by the contracts. */
static int judge_contracts(const struct image_seat *s, struct announced *announced,
			   const struct image_moment *at, struct image_verdict *verdict)
{
	size_t len;
	char *text = seat_output(s, &len);
	if (!text)
		return -ENOMEM;
	int broken = announced_judge(announced, at->event, text, len, &verdict->broken);
	free(text);
	if (broken < 0)
		verdict->how = IMAGE_NO_KEYS;
	else if (broken)
		*verdict = (struct image_verdict){IMAGE_CONTRACT, verdict->broken.contract,
						  verdict->broken};
	return 0;
}

bool image_judge_may_wait(const struct image_judge *j, const struct image_files *files)
{
	/* Another command, or that of another file, sees what the first one has left. */
	return j->checker.preload && is_last(&j->checker, 0) && files->log->files == 1 &&
	       j->maps != BOARD_SHARED && !j->careful;
}

/* Ask one of them about up to *n images from `first` on, and *n is how many it has judged; *wrote:
 * after the last of them the file may not be what it was. -ESTALE: that one's verdict may be wrong.
 */
static int ask(struct image_judge *j, unsigned step, unsigned file, const struct image_files *files,
	       unsigned first, unsigned *n, struct image_verdict *verdict, bool *wrote)
{
	const struct image_checker *c = &j->checker;
	const char *path = files->file[file].path, *command = command_of(c, step);
	struct image_seat *s = &j->seat[step][file];
	assert(*n && first + *n <= files->waiting);
	int error = s->board ? 0
			     : seat_open(s, files->dir, files->log, STEPS * file + step,
					 c->announced || c->listen);
	if (error)
		return error;
	if (image_checker_names_files(c)) {
		if (!j->command[step])
			j->command[step] = TEXT_PRINTED(out, name_files(out, command, files));
		if (!j->command[step])
			return -ENOMEM;
		command = j->command[step];
		path = NULL;
	}
	j->asked = s;
	s->life = c->then ? step : 0;
	const enum board_maps maps = image_judge_may_wait(j, files) ? j->maps : BOARD_SHARED;
	if (maps == BOARD_SHARED || s->output >= 0) /* the output is one image's */
		*n = 1;
	seat_images(s, files, file, maps, first, n);
	const double began = clock_seconds();
	error = c->library ? judge_library(s, c, verdict, n)
			   : judge_command(s, c, command, path, verdict, n);
	if (error)
		return error;
	learn_patience(j, clock_seconds() - began, *n && verdict[*n - 1].how == IMAGE_HANG);
	if (c->announced && is_last(c, step) && *n && verdict->how == IMAGE_GOOD)
		error = judge_contracts(s, c->announced, &files->wait[first].moment, verdict);
	if (error)
		return error;
	const struct board *b = s->board;
	bool unseen = !atomic_load(&b->loaded) || !atomic_load(&b->opened);
	*wrote |= unseen || atomic_load(&b->written) || j->careful;
	if (maps == BOARD_SHARED || !(atomic_load(&b->doubt) || (c->library && unseen)))
		return 0;
	/* A library may have kept a mapping of an earlier call; that has to go. */
	j->maps = maps == BOARD_PRIVATE && !(c->library && unseen) ? BOARD_EXACT : BOARD_SHARED;
	if (c->library)
		seat_end(s);
	return -ESTALE;
}

/* The first of up to *n images, which the files hold; *n is how many were judged. */
static int judge_some(struct image_judge *j, const struct image_files *files, unsigned first,
		      unsigned *n, struct image_verdict *verdict, bool *wrote)
{
	unsigned times = image_checker_names_files(&j->checker) ? 1 : files->log->files;
	int error = 0;
	*verdict = (struct image_verdict){.how = IMAGE_GOOD};
	*wrote = false;
	for (unsigned i = 0; i < times * STEPS && verdict->how == IMAGE_GOOD && !error && *n; i++)
		if (!(i % STEPS) || command_of(&j->checker, i % STEPS))
			error = ask(j, i % STEPS, i / STEPS, files, first, n, verdict, wrote);
	return error;
}

int image_judge(struct image_judge *j, struct image_files *files, struct image_verdict *verdict)
{
	for (unsigned at = 0; at < files->waiting;) {
		unsigned left = files->waiting - at, n = j->at_once < left ? j->at_once : left;
		unsigned asked = n;
		bool wrote;
		if (j->checker.stop && *j->checker.stop)
			return -EINTR;
		image_files_make(files, at);
		int error = judge_some(j, files, at, &n, verdict + at, &wrote);
		if (error && error != -ESTALE)
			return error;
		assert(n <= asked); /* no checker judges what it was not asked about */
		for (unsigned i = 1; i < n; i++)
			image_files_made(files, at + i);
		const struct board *b = j->asked->board;
		const unsigned pages = atomic_load(&b->touched);
		/* Few are asked about where most change the files. */
		j->at_once = wrote || pages		     ? 1
			     : n == asked && n == j->at_once ? 2 * n
							     : j->at_once;
		at += n;
		if (error == -ESTALE && n)
			at--;
		error = wrote || error ? image_files_restore(files) : 0;
		if (!wrote && pages)
			image_files_restore_pages(files, b->touched_page, pages);
		if (error)
			return error;
	}
	image_files_judged(files);
	return 0;
}
