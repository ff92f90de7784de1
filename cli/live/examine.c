/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark examine: what is left of a power cut of a live server, judged against what
 * the clients recorded.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "report/live/examine_report.h"
#include "report/output.h"
#include "report/text.h"

#define HISTORIES 4096

struct request {
	const char *media, *cache, *recovered, *out, *save_recovered;
	const char **history;
	unsigned histories;
	unsigned long long offset, boot;
	bool quiet, known;
	struct crash_bundle a;
};

int exam_run(const struct crash_bundle *a, struct exam *e)
{
	char why[400];
	int error = examine(&a->cut, &a->options, e, why, sizeof(why));

	return error ? fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "examine: %s", why)
		     : EXIT_HELD;
}

/* --- crash bundles --- */

/* `name`: to be freed. */
static int write_bundle(struct request *o, const struct exam *e, char **name)
{
	struct crash_bundle *a = &o->a;
	const struct exam_break *b;

	a->contract = exam_worst(&a->cut, e, &a->happened);
	if (a->contract < 0)
		return EXIT_HELD;
	b = a->happened ? &e->cell[a->contract].happened : &e->cell[a->contract].possible;
	snprintf(a->says, sizeof(a->says), "%s", b->text);
	if (asprintf(name, "%s/%s-%s-boot%u-%s.cut", o->out, a->cut.store.store->name,
		     a->cut.store.variant, a->cut.boot,
		     contract_name((enum tm_contract)a->contract)) < 0)
		return fail(EXIT_INTERNAL, "out of memory");
	return saved(*name, save_file(*name, crash_bundle_write, a));
}

/* --- the command --- */

static bool take_history(const struct option_row *row, void *into, const char *value)
{
	struct request *o = into;
	(void)row;
	if (!*value) {
		fail(EXIT_USAGE, "--history: expected the name of a file, not an empty one");
		return false;
	}
	if (o->histories == HISTORIES) {
		fail(EXIT_USAGE, "--history: at most %d recordings", HISTORIES);
		return false;
	}
	o->history[o->histories++] = value;
	return true;
}

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"pm", "MEDIA",
	 "the pool's file, or the backing file of its NVDIMM; without it, what clients saw is "
	 "judged",
	 REQUEST(media)},
	{"cache", "CACHE",
	 "the cache image's file, of a server with --shadow: lines that differ were in flight",
	 REQUEST(cache)},
	{"seed", "N", "which of these lines reached the media, as in tidemark cut (=)",
	 REQUEST(a.options.seed), 0, UINT64_MAX},
	{"cuts", "K", "so many other subsets of them are tried, besides none and all (=)",
	 REQUEST(a.options.cuts), 0, EXAM_CUTS},
	{"history", "FILE", "a recording of clients; as often as there are recordings",
	 OPTION_CALL(take_history)},
	{"offset", "BYTES",
	 "where both images begin in their files (0 or 2097152, where there is one)",
	 REQUEST(offset), 0, INT64_MAX},
	{"boot", "B", "which boot was cut (what the media say)", REQUEST(boot), 1, UINT32_MAX},
	{"until", "NS",
	 "the cut came at this time of the recordings' clock: what they have later is not judged",
	 REQUEST(a.cut.until_ns), 0, UINT64_MAX},
	{"recovered", "FILE", "where keys stood after the last cut, as --save-recovered wrote it",
	 REQUEST(recovered)},
	{"save-recovered", "FILE", "write down where they stand now, for the next cut",
	 REQUEST(save_recovered)},
	{"out", "DIR", "write a broken promise as one file that tidemark replay examines",
	 REQUEST(out)},
	{"known", NULL, "with --out, also a break that is known of the store", REQUEST(known)},
	ROWS_RESULTS,
	{"quiet", NULL, "the verdict only", REQUEST(quiet), .letter = 'q'},
	OPTION_END};

static const struct options options = {
	"examine", "[OPTION...] [--pm MEDIA] --history FILE...",
	"Boots what a power cut left of a live server, reads every key, and judges the answers "
	"against what the clients recorded. Nothing is changed.",
	rows,
	"0 as promised, 1 a promise broken, 2 usage or bad input, 3 could not tell, 70 internal "
	"error"};

static int read_cut(struct request *o)
{
	struct cut *c = &o->a.cut;
	char why[400];
	int error = o->media ? cut_read_media(c, o->media, o->offset, why, sizeof(why)) : 0;

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

/* Is a contract broken, which is known of the store? */
static bool breaks_as_known(const struct exam *e)
{
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (e->cell[k].happened.keys || e->cell[k].possible.keys)
			return true;
	return false;
}

/* What was found goes to where it was wanted. */
static int report(struct request *o, const struct exam *e)
{
	int status = exam_status(&o->a.cut, e), bad = 0;
	char *bundle = NULL;
	json_t *all = exam_tree(&o->a, e);

	if (!o->quiet)
		text_print(all, "examine");
	if (o->save_recovered)
		bad = saved(o->save_recovered, save_file(o->save_recovered, write_start, e));
	if (!bad && o->out && (o->known || status != EXIT_HELD))
		bad = write_bundle(o, e, &bundle);
	json_object_set_new(all, "status", json_integer(status));
	json_object_set_new(all, "artefact", json_text(bundle));
	if (!bad)
		bad = outputs_write(json_incref(all), NULL);
	if (!bad) {
		puts(status == EXIT_BROKEN   ? "A promise is broken."
		     : status == EXIT_UNSURE ? "Could not tell."
		     : breaks_as_known(e)    ? "As expected: what breaks is known of this store."
					     : "As promised.");
		if (bundle)
			printf("To see it again: %s replay %s\n", program, bundle);
	}
	json_decref(all);
	free(bundle);
	return bad ? bad : status;
}

static int judge(struct request *o, struct exam *e)
{
	if (!o->a.cut.boot) {
		puts("The pool was being formatted when it was cut: there was nothing to lose.");
		return EXIT_HELD;
	}
	int status = exam_run(&o->a, e);
	return status ? status : report(o, e);
}

static int parse(struct request *o, int argc, char **argv)
{
	int status = options_read(&options, o, argc, argv);

	if (status >= 0)
		return status;
	/* "--history a b c": files may follow each other. */
	for (int i = optind; i < argc; i++) {
		if (!o->histories)
			return fail(EXIT_USAGE,
				    "examine: \"%.60s\" is no option (tidemark examine --help)",
				    argv[i]);
		if (!take_history(NULL, o, argv[i]))
			return EXIT_USAGE;
	}
	if (!o->histories)
		return fail(EXIT_USAGE, "examine: --history is needed (tidemark examine --help)");
	if (!o->media && (o->cache || o->out || o->save_recovered))
		return fail(EXIT_USAGE, "examine: --cache, --out and --save-recovered need --pm");
	return -1;
}

static void note_inputs(const struct request *o)
{
	note_input(o->media);
	note_input(o->cache);
	note_input(o->recovered);
	for (unsigned i = 0; i < o->histories; i++)
		note_input(o->history[i]);
}

int examine_main(int argc, char **argv)
{
	struct request *o = calloc(1, sizeof(*o));
	struct exam e = {0};

	if (!o || !(o->history = calloc(HISTORIES, sizeof(o->history[0])))) {
		free(o);
		return fail(EXIT_INTERNAL, "out of memory");
	}
	o->offset = CUT_ANY_OFFSET;
	o->a.options.cuts = 8;
	int status = parse(o, argc, argv);
	if (status < 0) {
		note_inputs(o);
		status = results_check();
		if (!status && o->save_recovered)
			status = check_output("--save-recovered", o->save_recovered, OUTPUT_ANY);
		if (!status && o->out)
			status = check_folder("--out", o->out, false);
		if (!status)
			status = read_cut(o);
		if (!status)
			status = judge(o, &e);
	}
	exam_free(&e);
	cut_free(&o->a.cut);
	free(o->history);
	free(o);
	return status;
}
