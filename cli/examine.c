/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark examine: what is left of a power cut of a live server, judged against what
 * the clients recorded. And tidemark replay of what it wrote down.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/live/crash_bundle.h"
#include "checker/judge/names.h"
#include "cli/cli.h"
#include "report/output.h"
#include "report/report.h"

#define HISTORIES 4096

struct examine_options {
	const char *media, *cache, *recovered, *out, *json, *save_recovered;
	const char **history;
	unsigned histories;
	unsigned long long offset, boot;
	bool quiet, known;
	struct crash_bundle a;
};

static void help(void)
{
	puts("usage: tidemark examine [OPTION...] --pm MEDIA --history FILE...\n"
	     "Boots what a power cut left of a live server, reads every key, and judges the "
	     "answers against\n"
	     "what the clients recorded. Nothing is changed.\n\n"
	     "  --pm MEDIA        the pool's file, or the file behind its NVDIMM\n"
	     "  --cache CACHE     the cache image's file, of a server with --shadow: lines that "
	     "differ were "
	     "in "
	     "flight\n"
	     "  --seed N          which of these lines reached the media, as in tidemark cut (0: "
	     "none)\n"
	     "  --cuts K          so many other subsets of them are tried, besides none and all "
	     "(8)\n"
	     "  --history FILE    a recording of clients; as often as there are recordings\n"
	     "  --offset BYTES    where both images begin in their files (0 or 2097152, where "
	     "there is one)\n"
	     "  --boot B          which boot was cut (what the media say)\n"
	     "  --recovered FILE  where keys stood after the last cut, as --save-recovered wrote "
	     "it\n"
	     "  --save-recovered FILE  write down where they stand now, for the next cut\n"
	     "  --out DIR         write a broken promise down as one file that tidemark replay "
	     "examines\n"
	     "  --known           with --out, also a break that is known of the store\n"
	     "  --json FILE       the results, for machines\n"
	     "  -q, --quiet       the verdict only\n"
	     "  --help            this text\n\n"
	     "exit status: 0 as promised, 1 a promise broken, 2 usage or bad input, 3 could not "
	     "tell,\n"
	     "70 internal error");
}

/* --- what is found, in words --- */

/* "--seed 5", "line 77 alone" */
static void name_subset(const struct exam_subset *s, char *buf, size_t n)
{
	if (s->kind == EXAM_SEED)
		snprintf(buf, n, "--seed %" PRIu64, s->number);
	else
		snprintf(buf, n, "line %" PRIu64 " %s", s->number,
			 s->kind == EXAM_ALONE ? "alone" : "missing");
}

static void print_break(const struct exam_break *b, unsigned contract, bool happened)
{
	char subset[64];

	name_subset(&b->subset, subset, sizeof(subset));
	printf("        %s", happened ? "it has happened" : "with other lines");
	if (!(CONTRACTS_BY_RUNNING & TM_BIT(contract)))
		printf(", %u key%s", b->keys, b->keys == 1 ? "" : "s");
	printf(happened ? ": " : " (%s): ", subset);
	puts(b->text);
}

static const char *verdict_word(const struct exam_cell *cell)
{
	return !cell->judged	     ? "not judged"
	       : cell->happened.keys ? "broken"
	       : cell->possible.keys ? "can break"
				     : "holds";
}

static void print_cell(const struct exam *e, unsigned k, unsigned watched)
{
	const struct exam_cell *cell = &e->cell[k];

	printf("  %-5s %s%s", contract_name(k), verdict_word(cell),
	       cell->judged ? "" : ": it is about several keys");
	if ((cell->happened.keys || cell->possible.keys) && !(watched & TM_BIT(k)))
		fputs(", which is known of this store", stdout);
	if (cell->unsure)
		printf(" (could not tell for %u key%s)", cell->unsure,
		       cell->unsure == 1 ? "" : "s");
	putchar('\n');
	if (cell->happened.keys)
		print_break(&cell->happened, k, true);
	if (cell->possible.keys)
		print_break(&cell->possible, k, false);
}

static void print_exam(const struct crash_bundle *a, const struct exam *e)
{
	const struct cut *c = &a->cut;

	printf("store %s, variant %s, boot %u, %s\n", c->store.store->name, c->store.variant,
	       c->boot, c->store.running ? "cut while it was running" : "stopped in order");
	printf("%u key%s, %u operation%s of boot%s %u", e->keys, e->keys == 1 ? "" : "s",
	       e->operations, e->operations == 1 ? "" : "s", e->first == e->last ? "" : "s",
	       e->first);
	if (e->first != e->last)
		printf(" to %u", e->last);
	printf(", %u recording%s\n", c->recordings, c->recordings == 1 ? "" : "s");
	if (e->left_out)
		printf("left out: %u operations of %u key%s with more than a history holds\n",
		       e->left_out, e->trimmed, e->trimmed == 1 ? "" : "s");
	if (!c->started && e->first > 1)
		printf("where keys stood before boot %u is not known (--recovered)\n", e->first);
	if (c->cached)
		printf("%u line%s in flight, %u of them survived; %u subset%s tried\n", e->lines,
		       e->lines == 1 ? "" : "s", e->survived, e->images, e->images == 1 ? "" : "s");
	printf("values in the pool: %u whole, %u torn\n", e->torn.whole, e->torn.torn);
	if (e->torn.torn)
		printf("        %s\n", e->torn.text);
	if (e->not_judged)
		printf("%u key%s not judged: %s\n", e->not_judged, e->not_judged == 1 ? "" : "s",
		       e->why_not);
	if (e->full)
		puts("the pool has no room for another PUT, so that it can still be written is not "
		     "proved");
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		print_cell(e, k, exam_watched(c->store.store));
}

/* --- for machines --- */

static json_t *break_json(const struct exam_break *b)
{
	char subset[64] = "";

	if (b->keys)
		name_subset(&b->subset, subset, sizeof(subset));
	return json_pack("{s:i, s:s, s:s}", "keys", (int)b->keys, "subset", subset, "how", b->text);
}

static json_t *cells_json(const struct cut *c, const struct exam *e)
{
	json_t *cells = json_array();

	for (unsigned k = 0; cells && k < TM_CONTRACTS; k++) {
		const struct exam_cell *cell = &e->cell[k];

		json_array_append_new(
			cells, json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:s, s:i, s:o, s:o}",
					 "store", c->store.store->name, "variant", c->store.variant,
					 "contract", contract_name(k), "config", "live", "promised",
					 !!(c->store.store->promises & TM_BIT(k)), "watched",
					 !!(exam_watched(c->store.store) & TM_BIT(k)), "verdict",
					 verdict_word(cell), "unsure", (int)cell->unsure,
					 "happened", break_json(&cell->happened), "possible",
					 break_json(&cell->possible)));
	}
	return cells;
}

static int save_json(const char *path, const struct crash_bundle *a, const struct exam *e,
		     int status, const char *artefact)
{
	json_t *all = json_pack(
		"{s:o, s:i, s:i, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:s}",
		"cells", cells_json(&a->cut, e), "boot", (int)a->cut.boot, "first_boot",
		(int)e->first, "seed", (json_int_t)a->options.seed, "keys", (int)e->keys,
		"operations", (int)e->operations, "left_out", (int)e->left_out, "lines_in_flight",
		(int)e->lines, "lines_survived", (int)e->survived, "subsets", (int)e->images,
		"not_judged", (int)e->not_judged, "whole", (int)e->torn.whole, "torn",
		(int)e->torn.torn, "full", e->full, "status", status, "artefact", artefact);
	int error = all ? json_save(all, path) : -ENOMEM;

	json_decref(all);
	return error ? fail(EXIT_USAGE, "%s: %s", path, strerror(-error)) : status;
}

/* --- what it comes to --- */

/* The break that counts most: a watched one that happened, a watched one that could have, any that
 * happened, any. -1: none. */
static int worst(const struct cut *c, const struct exam *e, bool *happened)
{
	const unsigned watched = exam_watched(c->store.store);

	for (unsigned rank = 0; rank < 4; rank++)
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			const struct exam_cell *cell = &e->cell[k];

			*happened = rank % 2 == 0;
			if (rank < 2 && !(watched & TM_BIT(k)))
				continue;
			if (*happened ? cell->happened.keys : cell->possible.keys)
				return (int)k;
		}
	return -1;
}

static int verdict_status(const struct cut *c, const struct exam *e)
{
	const unsigned watched = exam_watched(c->store.store);
	bool unsure = e->not_judged;

	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		if (!(watched & TM_BIT(k)))
			continue;
		if (e->cell[k].happened.keys || e->cell[k].possible.keys)
			return EXIT_BROKEN;
		unsure |= e->cell[k].unsure > 0;
	}
	return unsure ? EXIT_UNSURE : EXIT_HELD;
}

static int run(const struct crash_bundle *a, struct exam *e)
{
	char why[400];
	int error = examine(&a->cut, &a->options, e, why, sizeof(why));

	return error ? fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "examine: %s", why)
		     : EXIT_HELD;
}

/* --- artefacts --- */

/* `name`: to be freed. */
static int write_artefact(struct examine_options *o, const struct exam *e, char **name)
{
	struct crash_bundle *a = &o->a;
	const struct exam_break *b;

	a->contract = worst(&a->cut, e, &a->happened);
	if (a->contract < 0)
		return EXIT_HELD;
	b = a->happened ? &e->cell[a->contract].happened : &e->cell[a->contract].possible;
	snprintf(a->says, sizeof(a->says), "%s", b->text);
	if (asprintf(name, "%s/%s-%s-boot%u-%s.cut", o->out, a->cut.store.store->name,
		     a->cut.store.variant, a->cut.boot,
		     contract_name((enum tm_contract)a->contract)) < 0)
		return fail(EXIT_INTERNAL, "out of memory");
	int error = save_file(*name, crash_bundle_write, a);
	return error ? fail(EXIT_USAGE, "%s: %s", *name, strerror(-error)) : EXIT_HELD;
}

static bool breaks_again(const struct crash_bundle *a, const struct exam *e)
{
	const struct exam_cell *cell = &e->cell[a->contract];

	return cell->happened.keys || (!a->happened && cell->possible.keys);
}

static int replay_verdict(const struct crash_bundle *a, const struct exam *e, const char *path)
{
	const char *name = a->contract < 0 ? "" : contract_name((enum tm_contract)a->contract);
	int status = a->contract < 0	  ? verdict_status(&a->cut, e)
		     : breaks_again(a, e) ? EXIT_BROKEN
					  : EXIT_FIXED;

	if (a->contract < 0)
		printf("%s: %s\n", path,
		       status == EXIT_BROKEN ? "a promise is broken" : "no promise is broken");
	else if (status == EXIT_BROKEN)
		printf("%s: broken %s\n", path, name);
	else
		printf("%s: fixed: %s is not broken any more\n", path, name);
	return status;
}

int replay_artefact(const char *path, bool quiet)
{
	struct crash_bundle *a = calloc(1, sizeof(*a));
	struct exam e = {0};
	char why[400];
	int status, error = a ? crash_bundle_read(a, path, why, sizeof(why)) : -ENOMEM;

	if (error) {
		status = fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s",
			      a ? why : "out of memory");
	} else {
		status = run(a, &e);
		if (!status && !quiet)
			print_exam(a, &e);
		if (!status)
			status = replay_verdict(a, &e, path);
	}
	exam_free(&e);
	if (a)
		cut_free(&a->cut);
	free(a);
	return status;
}

/* --- the command --- */

static bool take(void *arg, int option, const char *value)
{
	struct examine_options *o = arg;
	unsigned long long n;

	switch (option) {
	case 'p':
		o->media = value;
		return true;
	case 'c':
		o->cache = value;
		return true;
	case 'r':
		o->recovered = value;
		return true;
	case 'w':
		o->save_recovered = value;
		return true;
	case 'o':
		o->out = value;
		return true;
	case 'J':
		o->json = value;
		return true;
	case 'H':
		if (o->histories == HISTORIES)
			return fail(EXIT_USAGE, "--history: at most %d recordings", HISTORIES),
			       false;
		o->history[o->histories++] = value;
		return true;
	case 's':
		if (!number_option("--seed", value, 0, UINT64_MAX, &n))
			return false;
		o->a.options.seed = n;
		return true;
	case 'k':
		if (!number_option("--cuts", value, 0, EXAM_CUTS, &n))
			return false;
		o->a.options.cuts = (unsigned)n;
		return true;
	case 'K':
		o->known = true;
		return true;
	case 'O':
		return number_option("--offset", value, 0, INT64_MAX, &o->offset);
	case 'b':
		return number_option("--boot", value, 1, UINT32_MAX, &o->boot);
	default:
		o->quiet = true;
		return true;
	}
}

static int read_cut(struct examine_options *o)
{
	struct cut *c = &o->a.cut;
	char why[400];
	int error = cut_read_media(c, o->media, o->offset, why, sizeof(why));

	if (!error && o->cache)
		error = cut_read_cache(c, o->cache, o->offset, why, sizeof(why));
	for (unsigned i = 0; i < o->histories && !error; i++)
		error = cut_read_recording(c, o->history[i], why, sizeof(why));
	if (!error && o->recovered)
		error = cut_read_start(c, o->recovered, why, sizeof(why));
	if (!error && o->boot)
		c->boot = (uint32_t)o->boot;
	return error ? fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s", why) : EXIT_HELD;
}

static int write_start(FILE *out, const void *exam)
{
	return exam_print_start(out, exam);
}

/* What was found goes to where it was wanted. */
static int report(struct examine_options *o, const struct exam *e)
{
	int status = verdict_status(&o->a.cut, e), bad = 0;
	char *artefact = NULL;

	if (!o->quiet)
		print_exam(&o->a, e);
	if (o->save_recovered) {
		int error = save_file(o->save_recovered, write_start, e);
		if (error)
			bad = fail(EXIT_USAGE, "%s: %s", o->save_recovered, strerror(-error));
	}
	if (!bad && o->out && (o->known || status != EXIT_HELD))
		bad = write_artefact(o, e, &artefact);
	if (!bad && o->json)
		bad = save_json(o->json, &o->a, e, status, artefact ? artefact : "") == EXIT_USAGE
			      ? EXIT_USAGE
			      : 0;
	if (!bad) {
		puts(status == EXIT_BROKEN   ? "A promise is broken."
		     : status == EXIT_UNSURE ? "Could not tell."
					     : "As promised.");
		if (artefact)
			printf("To see it again: %s replay %s\n", program, artefact);
	}
	free(artefact);
	return bad ? bad : status;
}

static int judge(struct examine_options *o, struct exam *e)
{
	int status;

	if (!o->a.cut.boot) {
		puts("The pool was being formatted when it was cut: there was nothing to lose.");
		return EXIT_HELD;
	}
	status = run(&o->a, e);
	return status ? status : report(o, e);
}

static int parse(struct examine_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{"pm", required_argument, NULL, 'p'},
		{"cache", required_argument, NULL, 'c'},
		{"seed", required_argument, NULL, 's'},
		{"cuts", required_argument, NULL, 'k'},
		{"history", required_argument, NULL, 'H'},
		{"offset", required_argument, NULL, 'O'},
		{"boot", required_argument, NULL, 'b'},
		{"recovered", required_argument, NULL, 'r'},
		{"save-recovered", required_argument, NULL, 'w'},
		{"out", required_argument, NULL, 'o'},
		{"known", no_argument, NULL, 'K'},
		{"json", required_argument, NULL, 'J'},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int status = read_options("examine", options, argc, argv, help, take, o);

	if (status >= 0)
		return status;
	/* "--history a b c": files may follow each other. */
	for (int i = optind; i < argc; i++) {
		if (!o->histories)
			return fail(EXIT_USAGE,
				    "examine: \"%.60s\" is no option (tidemark examine --help)",
				    argv[i]);
		if (!take(o, 'H', argv[i]))
			return EXIT_USAGE;
	}
	if (!o->media || !o->histories)
		return fail(EXIT_USAGE,
			    "examine: --pm and --history are needed (tidemark examine --help)");
	return -1;
}

int examine_main(int argc, char **argv)
{
	struct examine_options *o = calloc(1, sizeof(*o));
	struct exam e = {0};
	bool made = false;
	int status;

	if (!o || !(o->history = calloc(HISTORIES, sizeof(o->history[0])))) {
		free(o);
		return fail(EXIT_INTERNAL, "out of memory");
	}
	o->offset = CUT_ANY_OFFSET;
	o->a.options.cuts = 8;
	status = parse(o, argc, argv);
	if (status < 0) {
		status = o->json ? check_output("--json", o->json) : 0;
		if (!status && o->save_recovered)
			status = check_output("--save-recovered", o->save_recovered);
		if (!status && o->out)
			status = check_folder("--out", o->out, &made);
		if (!status)
			status = read_cut(o);
		if (!status)
			status = judge(o, &e);
		if (made)
			rmdir(o->out); /* unless there is something in it */
	}
	exam_free(&e);
	cut_free(&o->a.cut);
	free(o->history);
	free(o);
	return status;
}
