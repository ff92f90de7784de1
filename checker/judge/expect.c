/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading scenarios/expected.txt, which the assembler puts into the program. Fields
 * are separated by blanks: store, configuration, contract, holds|broken|may-break, and the rest
 * of the line is the reason. The table is constant once read; reading it twice gives
 * the same, so threads need no lock but the first call's.
 */
#include "checker/judge/expect.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"

#define MAX_ROWS 256

__asm__(".section .rodata\n"
	".global tm_expected_text\n"
	"tm_expected_text:\n"
	".incbin \"" TM_EXPECTED_FILE "\"\n"
	".byte 0\n"
	".previous\n");
extern const char tm_expected_text[];

static struct expectation row[MAX_ROWS];
static unsigned rows, mistake_line;
static const char *mistake;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static char *field(char **rest)
{
	char *word = *rest + strspn(*rest, " \t");
	char *end = word + strcspn(word, " \t");
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static const char *parse(char *line, struct expectation *e)
{
	e->store = field(&line);
	e->config = field(&line);
	e->contract = contract_parse(field(&line));
	const char *verdict = field(&line);
	e->open = !strcmp(verdict, "may-break");
	e->broken = e->open || !strcmp(verdict, "broken");
	e->why = line + strspn(line, " \t");
	if (e->contract < 0)
		return "the third field is not a contract";
	if (!e->broken && strcmp(verdict, "holds"))
		return "the fourth field is none of \"holds\", \"broken\", \"may-break\"";
	return *e->why ? NULL : "no reason is given";
}

static void read_table(void)
{
	char *text = strdup(tm_expected_text), *save = NULL; /* kept: the rows point into it */
	unsigned number = 0;
	for (char *line = text; line && *line; line = save) {
		number++;
		save = strchr(line, '\n');
		if (save)
			*save++ = '\0';
		if (!*line || *line == '#')
			continue;
		const char *bad = rows == MAX_ROWS ? "too many lines" : parse(line, &row[rows]);
		if (bad) {
			mistake = bad;
			mistake_line = number;
			return;
		}
		rows++;
	}
}

const struct expectation *expect_find(const char *store, const char *config, int contract)
{
	pthread_once(&once, read_table);
	for (unsigned i = 0; i < rows; i++)
		if (!strcmp(row[i].store, store) && !strcmp(row[i].config, config) &&
		    row[i].contract == contract)
			return &row[i];
	return NULL;
}

unsigned expect_watched(const struct tm_store *store, const char *config)
{
	unsigned set = 0;
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		const struct expectation *e = expect_find(store->name, config, (int)c);
		if (e ? !e->broken : store->promises & TM_BIT(c))
			set |= TM_BIT(c);
	}
	return set;
}

bool expect_holds(const char *store, int contract)
{
	bool any = false;
	pthread_once(&once, read_table);
	for (unsigned i = 0; i < rows; i++) {
		if (strcmp(row[i].store, store) || row[i].contract != contract)
			continue;
		if (row[i].broken)
			return false;
		any = true;
	}
	return any;
}

unsigned expect_mistake(const char **what)
{
	pthread_once(&once, read_table);
	*what = mistake;
	return mistake_line;
}
