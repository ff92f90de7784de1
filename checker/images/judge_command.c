/* SPDX-License-Identifier: BSD-3-Clause */
/* A command as judge: served by the program itself, or started for each image (judge_seat.h). */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "checker/images/judge_seat.h"

/* --- words --- */

/* What means something to a shell outside of quotes, and in double quotes. */
#define SPECIAL	       "$`\\;|&<>()*?[]~#!{}^\n\r"
#define QUOTED_SPECIAL "$`\\!"

/* Is this a program that can be executed? Else it is a shell's own word. */
static bool is_program(const char *name)
{
	char path[IMAGE_PATH];
	const char *dir = getenv("PATH");
	if (strchr(name, '/'))
		return !access(name, X_OK);
	for (size_t len; dir && *dir; dir += len + (dir[len] == ':')) {
		struct stat st;
		len = strcspn(dir, ":");
		snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, name);
		if (!access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

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

char **command_words(const char *command, const char *path)
{
	size_t most = strlen(command) + 2, paths = 1, n = 0, len = path ? strlen(path) : 0;
	for (const char *at = command; (at = strstr(at, "{}")) != NULL; at += 2)
		paths++;
	/* The words' list, and the words behind it. */
	char **words = calloc(1, (most + 1) * sizeof(*words) + most + paths * (len + 1));
	char *to = (char *)(words + most + 1), quote = 0;
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
		/* NAME=VALUE is for a shell. */
		if (quote || (!n && (strchr(words[0], '=') || !is_program(words[0]))))
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

/* --- the program --- */

static int start(struct image_seat *s, const struct image_checker *c, const char *command,
		 const char *path)
{
	char *line = s->words ? NULL : insert_path(command, path);
	char sh[] = "/bin/sh", dash_c[] = "-c", *shell[] = {sh, dash_c, line, NULL};
	if (!s->words && !line)
		return -ENOMEM;
	int error = seat_start(s, c, !s->alone, s->words ? s->words : shell);
	free(line);
	return error;
}

/* It was to serve, and has ended without. */
static void give_up(struct image_seat *s)
{
	const struct board *b = s->board;
	static const enum image_way_kind why[] = {[BOARD_THREADS] = IMAGE_WAY_THREADS,
						  [BOARD_CHILDREN] = IMAGE_WAY_CHILDREN,
						  [BOARD_MEMORY] = IMAGE_WAY_MEMORY,
						  [BOARD_OPEN] = IMAGE_WAY_OPEN};
	s->alone = true;
	s->way = (struct image_way){.kind = IMAGE_WAY_UNOPENED};
	if (!atomic_load(&b->loaded))
		s->way.kind = IMAGE_WAY_STATIC;
	else if (atomic_load(&b->refused))
		s->way = (struct image_way){.kind = (uint8_t)why[atomic_load(&b->refused)],
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
	int error = 0;
	if (s->pid)
		seat_ask(s);
	else
		error = start(s, c, command, path);
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
	if (outcome != SEAT_ANSWERED)
		verdict[(*n)++] = outcome == SEAT_LATE ? (struct image_verdict){.how = IMAGE_HANG}
						       : verdict_of(status);
	return 0;
}
