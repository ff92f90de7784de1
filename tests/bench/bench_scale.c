/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_scale FILE: how a campaign would scale, by what its units took. FILE has the results of all
 * of it (--results without --shard), and with each the CPU time. No unit is run.
 *
 * For numbers of cores up to ten thousand, and a part for each core: the units are dealt as
 * driver_run() deals those of a campaign whose costs it does not know, and the campaign takes as
 * long as its longest part. Beside that stand the bounds that no dealing goes below, which are an
 * equal share of all and the longest unit; and what it would take if units that are too long could
 * be cut into pieces, of a 64th of the longest one at most.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "checker/explore/results.h"

#define CUT 64 /* the longest unit, into so many */

struct unit {
	uint64_t mixed, us;
};

static int by_mixed(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;
	return (x->mixed > y->mixed) - (x->mixed < y->mixed);
}

static int by_length(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;
	return (x->us < y->us) - (x->us > y->us);
}

/* The longest of so many parts, each of which takes every nth unit. */
static uint64_t longest_part(const struct unit *unit, unsigned units, unsigned parts)
{
	uint64_t *sum = calloc(parts, sizeof(*sum)), longest = 0;
	if (!sum)
		exit(70);
	for (unsigned i = 0; i < units; i++) {
		sum[i % parts] += unit[i].us;
		longest = sum[i % parts] > longest ? sum[i % parts] : longest;
	}
	free(sum);
	return longest;
}

/* The units in pieces of `most` at most, mixed. */
static struct unit *cut(const struct unit *unit, unsigned units, uint64_t most, unsigned *pieces)
{
	struct unit *all;
	unsigned n = 0, at = 0;
	for (unsigned i = 0; i < units; i++)
		n += (unsigned)(unit[i].us / most) + 1;
	all = calloc(n + 1, sizeof(*all));
	if (!all)
		exit(70);
	for (unsigned i = 0; i < units; i++)
		for (uint64_t left = unit[i].us, one; left; left -= one) {
			one = left < most ? left : most;
			all[at] = (struct unit){XXH3_64bits(&at, sizeof(at)), one};
			at++;
		}
	qsort(all, at, sizeof(*all), by_mixed);
	*pieces = at;
	return all;
}

static double seconds(uint64_t us)
{
	return (double)us / 1e6;
}

static void print_table(const struct unit *unit, unsigned units, uint64_t total, uint64_t longest)
{
	static const unsigned cores[] = {1, 2, 4, 8, 16, 64, 256, 1024, 4096, 10000};
	unsigned pieces;
	struct unit *piece = cut(unit, units, longest / CUT + 1, &pieces);
	puts("| cores | s | of that the bound | speed-up | in pieces, s | speed-up |\n"
	     "|---|---|---|---|---|---|");
	for (unsigned i = 0; i < sizeof(cores) / sizeof(cores[0]); i++) {
		uint64_t takes = longest_part(unit, units, cores[i]);
		uint64_t share = total / cores[i], bound = share > longest ? share : longest;
		uint64_t cut_takes = longest_part(piece, pieces, cores[i]);
		printf("| %u | %.2f | %.2f | %.0f | %.2f | %.0f |\n", cores[i], seconds(takes),
		       seconds(bound), (double)total / (double)takes, seconds(cut_takes),
		       (double)total / (double)cut_takes);
	}
	free(piece);
}

static void print_units(struct unit *unit, unsigned units, uint64_t total)
{
	static const unsigned percent[] = {50, 90, 99};
	uint64_t most = 0;
	qsort(unit, units, sizeof(*unit), by_length);
	printf("%u units, %.1f s of CPU time; the longest %.2f s;", units, seconds(total),
	       seconds(unit[0].us));
	for (unsigned i = 0; i < sizeof(percent) / sizeof(percent[0]); i++)
		printf(" %u %% take less than %.3f s%s", percent[i],
		       seconds(unit[units * (100 - percent[i]) / 100].us), i == 2 ? "\n" : ",");
	for (unsigned i = 0; i < units / 100; i++)
		most += unit[i].us;
	printf("the longest hundredth of them takes %.0f %% of all\n\n",
	       100.0 * (double)most / (double)total);
}

int main(int argc, char **argv)
{
	struct results r;
	uint64_t total = 0;
	results_open(&r);
	if (argc != 2 || results_read(&r, argv[1]) || !r.file[0].about) {
		fprintf(stderr, "%s\n", r.why[0] ? r.why : "usage: bench_scale FILE");
		return 2;
	}
	const json_t *about = r.file[0].about;
	unsigned units = (unsigned)json_integer_value(json_object_get(about, "units"));
	size_t bytes = (size_t)json_integer_value(json_object_get(about, "bytes"));
	struct unit *unit = calloc(units + 1, sizeof(*unit));
	if (!unit || r.file[0].shards != 1 || results_begin(&r, units, bytes, NULL, NULL) ||
	    r.missing || !units) {
		fprintf(stderr, "%s: expected the results of a whole campaign, not of a part\n",
			argv[1]);
		return 2;
	}
	for (unsigned u = 0; u < units; u++) {
		unit[u] = (struct unit){XXH3_64bits(&u, sizeof(u)), results_cpu_us(&r, u)};
		total += unit[u].us;
	}
	print_units(unit, units, total);
	const uint64_t longest = unit[0].us;
	qsort(unit, units, sizeof(*unit), by_mixed);
	print_table(unit, units, total, longest);
	free(unit);
	results_close(&r);
	return 0;
}
