/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark new-store, cc and c++: scripts, for a store of your own (scripts/sdk). */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "scenarios/stores.h"

bool find_beside(const char *name, char *path, size_t size)
{
	static const char *const places[] = {"", "../lib/tidemark/"};
	char self[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	slash[1] = '\0';
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (snprintf(path, size, "%s%s%s", self, places[i], name) < (int)size &&
		    !access(path, R_OK))
			return true;
	return false;
}

/* Go on as this script with these arguments, `first` (unless NULL) before the others. */
static int become(const char *script, const char *first, int argc, char **argv)
{
	char path[PATH_MAX], name[32];
	snprintf(name, sizeof(name), "sdk/%s", script);
	if (!find_beside(name, path, sizeof(path)))
		return fail(EXIT_INTERNAL, "no %s beside this program", name);
	char **args = calloc((size_t)argc + 2, sizeof(*args));
	if (!args)
		return fail(EXIT_INTERNAL, "out of memory");
	unsigned n = 0;
	args[n++] = path;
	if (first)
		args[n++] = (char *)(uintptr_t)first; /* execv() writes to nothing */
	memcpy(args + n, argv + 1, (size_t)(argc - 1) * sizeof(*args));
	execv(path, args);
	return fail(EXIT_INTERNAL, "%s: %s", path, strerror(errno));
}

/* A name of a store that is built in would mean that one, wherever no path stands. */
int new_store_main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (store_find(argv[i]))
			return fail(EXIT_USAGE,
				    "new-store: Tidemark has a store \"%s\"; expected a name that "
				    "none of its stores has (tidemark list stores)",
				    argv[i]);
	return become("new-store", NULL, argc, argv);
}

static int compile(const char *language, int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		printf("usage: tidemark %s ARGUMENT...\n"
		       "Compiles and links as %s does, with its options. What it links as a shared "
		       "object\n"
		       "(-shared, or -o NAME.so) is a store: tidemark crashtest ./NAME.so "
		       "(docs/own-store.md). A program tells tidemark record and try of each of "
		       "its stores.\n"
		       "--coverage compiles it for tidemark crashtest --coverage "
		       "(docs/coverage.md).\n\n"
		       "TIDEMARK_CC and TIDEMARK_CXX name other compilers than gcc and g++: clang, "
		       "clang++.\n\n"
		       "exit status: the compiler's; 1 a call is unknown, 2 usage or bad input\n",
		       language, language);
		return EXIT_HELD;
	}
	if (argc < 2)
		return fail(EXIT_USAGE, "%s: expected arguments for the compiler", language);
	return become("cc", language, argc, argv);
}

int cc_main(int argc, char **argv)
{
	return compile("cc", argc, argv);
}

int cxx_main(int argc, char **argv)
{
	return compile("c++", argc, argv);
}
