/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark cut: what a power failure leaves of a pool that a server has had with --shadow.
 * The lines that were in flight are those where the media and the cache image differ;
 * a seed says which of them reach the media (core/live/live_pm.h).
 */
#include <errno.h>
#include <getopt.h>
#include "cli/cli.h"
#include "core/live/live_pm.h"

struct cut {
	const char *media, *cache;
	unsigned long long seed, offset;
};

enum { OPT_PM = 1000, OPT_CACHE, OPT_SEED, OPT_OFFSET };

static const struct option options[] = {
	{"pm", required_argument, NULL, OPT_PM},
	{"cache", required_argument, NULL, OPT_CACHE},
	{"seed", required_argument, NULL, OPT_SEED},
	{"offset", required_argument, NULL, OPT_OFFSET},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static void help(void)
{
	puts("usage: tidemark cut --pm MEDIA --cache CACHE [--seed N] [--offset BYTES]\n"
	     "Cuts the power of a pool that a server had with --shadow and did not leave in order: "
	     "some of\n"
	     "the lines that were in flight reach the media, the others are lost.\n\n"
	     "  --pm MEDIA      the pool's file; it is changed\n"
	     "  --cache CACHE   the cache image's file; none of its lines is in flight afterwards\n"
	     "  --seed N        which lines: 0 none (the default), 1 all, else about half of them\n"
	     "  --offset BYTES  where both begin in their files: 2097152 in NVDIMMs' backing files "
	     "(0)\n"
	     "  --help          this text\n\n"
	     "exit status: 0, 2 usage or bad input, 70 internal error");
}

static bool take(void *arg, int option, const char *value)
{
	struct cut *c = arg;
	switch (option) {
	case OPT_PM:
		c->media = value;
		return true;
	case OPT_CACHE:
		c->cache = value;
		return true;
	case OPT_SEED:
		return number_option("--seed", value, 0, UINT64_MAX, &c->seed);
	case OPT_OFFSET:
		return number_option("--offset", value, 0, INT64_MAX, &c->offset);
	default:
		return !refuse_option("cut", '?', "-q");
	}
}

static int cut(const struct cut *c)
{
	struct pm_image media, cache;
	size_t in_flight, survived;
	char why[400];
	int error = pm_image_open(&media, c->media, c->offset, true, why, sizeof(why));
	if (!error)
		error = pm_image_open(&cache, c->cache, c->offset, true, why, sizeof(why));
	if (!error) {
		error = pm_cut(&media, &cache, c->seed, &in_flight, &survived, why, sizeof(why));
		pm_image_close(&cache);
	}
	pm_image_close(&media);
	if (error)
		return fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s", why);
	printf("%zu lines were in flight, %zu of them survived\n", in_flight, survived);
	return EXIT_HELD;
}

int cut_main(int argc, char **argv)
{
	struct cut c = {0};
	int status = read_options("cut", options, argc, argv, help, take, &c);
	if (status >= 0)
		return status;
	if (optind < argc)
		return fail(EXIT_USAGE, "cut: \"%.60s\" is no option (tidemark cut --help)",
			    argv[optind]);
	if (!c.media || !c.cache)
		return fail(EXIT_USAGE,
			    "cut: both --pm and --cache are needed (tidemark cut --help)");
	return cut(&c);
}
