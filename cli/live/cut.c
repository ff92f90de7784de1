/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark cut: what a power failure leaves of a pool that a server has had with --shadow.
 * The lines that were in flight are those where the media and the cache image differ;
 * a seed says which of them reach the media (core/live/live_pm.h).
 */
#include <errno.h>
#include <getopt.h>
#include "cli/cli.h"
#include "cli/options.h"
#include "core/live/live_pm.h"

struct request {
	const char *media, *cache;
	unsigned long long seed, offset;
};

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"pm", "MEDIA", "the pool's file; it is changed", REQUEST(media)},
	{"cache", "CACHE", "the cache image's file; none of its lines is in flight afterwards",
	 REQUEST(cache)},
	{"seed", "N", "which lines: 0 none, 1 all, else about half of them (=)", REQUEST(seed), 0,
	 UINT64_MAX},
	{"offset", "BYTES",
	 "where both begin in their files: 2097152 in NVDIMMs' backing files (=)", REQUEST(offset),
	 0, INT64_MAX},
	OPTION_END};

static const struct options options = {
	"cut", "--pm MEDIA --cache CACHE [--seed N] [--offset BYTES]",
	"Cuts the power of a pool that a server had with --shadow and did not leave in order: some "
	"of the lines that were in flight reach the media, the others are lost.",
	rows, "0, 2 usage or bad input, 70 internal error"};

static int cut(const struct request *c)
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
	printf("%zu line%s in flight, %zu of them survived\n", in_flight,
	       in_flight == 1 ? " was" : "s were", survived);
	return EXIT_HELD;
}

int cut_main(int argc, char **argv)
{
	struct request c = {0};
	int status = options_read(&options, &c, argc, argv);
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
