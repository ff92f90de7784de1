/* SPDX-License-Identifier: BSD-3-Clause */
/* See symbol.h. */
#include "checker/logs/symbol.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/world/where.h"
#ifdef TM_DEMANGLE
#include <demangle.h>
#endif

/* With what the function takes, or without. To be freed; NULL: it is a name as it is. */
static char *demangle(const char *symbol, bool arguments)
{
#ifdef TM_DEMANGLE
	/* An older Rust's symbols are C++'s, too, but for a hash. */
	char *name = rust_demangle(symbol, DMGL_NO_OPTS);
	return name ? name
		    : cplus_demangle_v3(symbol,
					arguments ? DMGL_PARAMS | DMGL_RET_DROP : DMGL_NO_OPTS);
#else
	(void)symbol;
	(void)arguments;
	return NULL;
#endif
}

void symbol_print(const char *symbol, char *buf, size_t n)
{
	char *name = demangle(symbol, false);
	snprintf(buf, n, "%s", name ? name : symbol);
	/* That separates frames, and stands in a type of Rust, "[u8; 4]". */
	for (char *c = buf; (c = strchr(c, ';')) != NULL;)
		*c = ',';
	free(name);
}

struct lookup {
	const char *name;
	char *found;
	size_t n;
	bool exact;
};

static void compare(void *arg, const char *symbol, uintptr_t begin, uintptr_t end)
{
	static const char takes[] = "(char const*)";
	struct lookup *l = arg;
	size_t len = strlen(l->name);
	(void)begin;
	(void)end;
	l->exact |= !strcmp(symbol, l->name);
	char *name = demangle(symbol, true);
	if (name && !strncmp(name, l->name, len) && (!name[len] || !strcmp(name + len, takes)) &&
	    strlen(symbol) < l->n)
		strcpy(l->found, symbol);
	free(name);
}

void symbol_find(const char *library, const char *name, char *buf, size_t n)
{
	struct where *w = where_new_files();
	struct lookup l = {.name = name, .found = buf, .n = n};
	snprintf(buf, n, "%s", name);
	uintptr_t in = w ? where_in_file(w, library, 0) : 0;
	if (in)
		where_functions(w, in, compare, &l);
	if (l.exact)
		snprintf(buf, n, "%s", name);
	where_free(w);
}
