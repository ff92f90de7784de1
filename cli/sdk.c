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

/* Beside the program in the build's folder, below lib/ where it is installed. */
static bool find_script(const char *name, char path[PATH_MAX])
{
	static const char *const places[] = {"sdk", "../lib/tidemark/sdk"};
	char self[PATH_MAX / 2];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash = len > 0 ? memrchr(self, '/', (size_t)len) : NULL;
	if (!slash)
		return false;
	*slash = '\0';
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, PATH_MAX, "%s/%s/%s", self, places[i], name);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

/* Go on as this script with these arguments, `first` (unless NULL) before the others. */
static int become(const char *script, const char *first, int argc, char **argv)
{
	char path[PATH_MAX];
	if (!find_script(script, path))
		return fail(EXIT_INTERNAL, "sdk/%s is not where this program is installed", script);
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

int new_store_main(int argc, char **argv)
{
	return become("new-store", NULL, argc, argv);
}

static int compile(const char *language, int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		printf("usage: tidemark %s ARGUMENT...\n"
		       "Compiles and links as %s does, with its options. What it links as a shared "
		       "object\n"
		       "(-shared, or -o NAME.so) is a store: tidemark crashtest ./NAME.so "
		       "(docs/own-store.md)\n\n"
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
