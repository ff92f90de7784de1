/* SPDX-License-Identifier: BSD-3-Clause */
/* A command as judge: served by the program itself, or started for each image (judge_seat.h). */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "checker/seat/judge_seat.h"
#include "core/text/regular.h"

/* --- words --- */

/* What means something to a shell outside of quotes, and in double quotes. */
#define SPECIAL	       "$`\\;|&<>()*?[]~#!{}^\n\r"
#define QUOTED_SPECIAL "$`\\!"

/* Take one character, or a path, at *from into *to. False: a shell has to. */
static bool take_word(const char **from, char **to, const char *path, char *quote)
{
	char c = **from;
	if (path && !strncmp(*from, "{}", 2)) {
		*to = stpcpy(*to, path);
		*from += 2;
		return true;
	}
	++*from;
	if (*quote && c == *quote) {
		*quote = 0;
		return true;
	}
	if (*quote == '\'' || (*quote == '"' && !strchr(QUOTED_SPECIAL, c))) {
		*(*to)++ = c;
		return true;
	}
	if (*quote || strchr(SPECIAL, c))
		return false;
	if (c == '\'' || c == '"')
		*quote = c;
	else
		*(*to)++ = c;
	return true;
}

/* The command's words with the path in them, if there is one, to be freed, if it can do without a
 * shell. */
static char **command_words(const char *command, const char *path)
{
	size_t most = strlen(command) + 2, paths = 1, n = 0, len = path ? strlen(path) : 0;
	for (const char *at = command; (at = strstr(at, "{}")) != NULL; at += 2)
		paths++;
	/* The words' list, and the words behind it. */
	char **words = calloc(1, (most + 1) * sizeof(*words) + most + paths * (len + 1));
	char *to = (char *)(words + most + 1), quote = 0, file[IMAGE_PATH];
	for (const char *from = command; words && *from;) {
		if (*from == ' ' || *from == '\t') {
			from++;
			continue;
		}
		words[n] = to;
		while (*from && (quote || (*from != ' ' && *from != '\t')))
			if (!take_word(&from, &to, path, &quote))
				goto shell;
		*to++ = 0;
		/* NAME=VALUE is for a shell, and so are its own words. */
		if (quote ||
		    (!n && (strchr(words[0], '=') || program_find(words[0], file, sizeof(file)))))
			goto shell;
		n++;
	}
	if (!n)
		goto shell;
	if (path && paths == 1)
		words[n] = strcpy(to, path);
	return words;
shell:
	free(words);
	return NULL;
}

/* The command with each "{}" replaced by the path, to be freed. NULL without memory. */
static char *insert_path(const char *command, const char *path)
{
	size_t n = 0, len = path ? strlen(path) : 0;
	for (const char *at = command; (at = strstr(at, "{}")) != NULL; at += 2)
		n++;
	char *out = malloc(strlen(command) + (n + 1) * (len + 3) + 1), *to = out;
	if (!out)
		return NULL;
	for (const char *at = command; *at;) {
		bool here = path && !strncmp(at, "{}", 2);
		to += sprintf(to, "%.*s", here ? (int)len : 1, here ? path : at);
		at += here ? 2 : 1;
	}
	*to = 0;
	if (path && !n)
		sprintf(to, " %s", path);
	return out;
}

/* --- is it there? A shell would say so by exit status 127, once for each image --- */

/* The first word, if the shell takes it as it is written. False: it may be anything. */
static bool plain_word(const char *command, char *word, size_t n)
{
	size_t len = 0;
	command += strspn(command, " \t");
	while (isalnum((unsigned char)command[len]) ||
	       (command[len] && strchr("_./+-,@%:", command[len])))
		len++;
	snprintf(word, n, "%.*s", (int)len, command);
	return len && len < n && (command[len] == 0 || strchr(" \t", command[len]));
}

/* A shell has commands of its own. */
static bool shell_knows(const char *name)
{
	char line[IMAGE_PATH + 40];
	snprintf(line, sizeof(line), "command -v -- %s >/dev/null 2>&1", name);
	return !system(line);
}

int image_command_exists(const char *command, char *why, size_t n)
{
	char word[IMAGE_PATH], file[IMAGE_PATH];
	struct stat st;
	if (!command || !plain_word(command, word, sizeof(word)))
		return 0;
	bool path = strchr(word, '/');
	int error = path && !stat(word, &st) && S_ISDIR(st.st_mode)
			    ? -EISDIR
			    : program_find(word, file, sizeof(file));
	if (!error || (!path && shell_knows(word)))
		return 0;
	snprintf(why, n, "%.200s: %s; expected a program that can be started", word,
		 path ? strerror(-error) : "no such command in PATH");
	return -ENOENT;
}

int image_checker_exists(const struct image_checker *checker, char *why, size_t n)
{
	if (checker->recover && !checker->recover[strspn(checker->recover, " \t\n")]) {
		snprintf(why, n, "the command is empty; expected a program");
		return -ENOENT;
	}
	int error = image_command_exists(checker->recover, why, n);
	error = error ? error : image_command_exists(checker->then, why, n);
	return error ? error : image_command_exists(checker->check, why, n);
}

/* --- the program --- */

static int ask(struct image_seat *s, const struct image_checker *c, const char *command,
	       const char *path)
{
	char *line = s->words ? NULL : insert_path(command, path);
	char sh[] = "/bin/sh", dash_c[] = "-c", *shell[] = {sh, dash_c, line, NULL};
	if (!s->words && !line)
		return -ENOMEM;
	int error = seat_ask(s, c, !s->alone, s->words ? s->words : shell);
	free(line);
	return error;
}

/* It was to serve, and has ended without. One that did not open this image may open others: many a
 * checker ends at once where nothing was acknowledged. */
static void give_up(struct image_seat *s)
{
	const struct board *b = s->board;
	s->alone = !atomic_load(&b->loaded) || atomic_load(&b->refused);
	s->way = (struct image_way){.kind = IMAGE_WAY_UNOPENED};
	if (!atomic_load(&b->loaded))
		s->way.kind = IMAGE_WAY_STATIC;
	else if (atomic_load(&b->refused))
		s->way = (struct image_way){.kind = (uint8_t)atomic_load(&b->refused),
					    .number = (uint16_t)atomic_load(&b->number)};
}

/* Its first question: may it serve? */
static void first(struct image_seat *s, const struct image_checker *c, const char *command,
		  const char *path)
{
	s->words = command_words(command, path);
	s->alone = c->no_server || !c->preload || !s->words;
	if (!s->words)
		s->way.kind = IMAGE_WAY_SHELL;
}

int judge_command(struct image_seat *s, const struct image_checker *c, const char *command,
		  const char *path, struct image_verdict *verdict, unsigned *n)
{
	const struct image_moment *at = &s->board->image[0].moment;
	int status = 0;
	unsigned judged;
	if (!s->words && !s->alone)
		first(s, c, command, path);
	/* A program may have read its environment before it opened the image. */
	if (s->pid && !image_moment_equal(&s->moment, at))
		seat_end(s);
	while (!image_moment_equal(at, &s->board->image[s->board->images - 1].moment))
		s->board->images--;
	int error = ask(s, c, command, path);
	if (error)
		return error;
	enum seat_outcome outcome = seat_wait(s, c, &judged, &status);
	if (outcome == SEAT_LEFT_OFF)
		return -EINTR;
	for (unsigned i = 0; i < judged; i++)
		verdict[i] = verdict_of(s->board->image[i].status);
	*n = judged;
	if (outcome == SEAT_ANSWERED && atomic_load(&s->board->child) < 0)
		return atomic_load(&s->board->child); /* it could not fork */
	if (outcome == SEAT_ENDED && atomic_load(&s->board->serving)) {
		/* It was killed, perhaps by its own child; without serving that does not happen. */
		s->alone = true;
		s->way.kind = IMAGE_WAY_KILLED;
		return 0;
	}
	if (!s->alone && !atomic_load(&s->board->serving))
		give_up(s);
	else if (!s->alone)
		s->way = (struct image_way){.kind = IMAGE_WAY_SERVED};
	if (outcome != SEAT_ANSWERED)
		verdict[(*n)++] = outcome == SEAT_LATE ? (struct image_verdict){.how = IMAGE_HANG}
						       : verdict_of(status);
	return 0;
}
