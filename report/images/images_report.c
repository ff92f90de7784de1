/* SPDX-License-Identifier: BSD-3-Clause */
/* See images_report.h. */
#include "report/images/images_report.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/crash.h"
#include "core/pmem/domain.h"
#include "core/text/text.h"
#include "report/images/history_report.h"
#include "report/report.h"
#include "report/text.h"
#include "report/terminal.h"

#define LINES_SHOWN   8	   /* of an image */
#define UNSEEN_SHOWN  20   /* of what was not seen */
#define VERDICT_WORDS 1000 /* bytes */

/* Where in the program: "by put (store.c:12)", "of main (main.c:3)". */
static json_t *frames_json(const struct pm_log *log, const struct pm_event *e)
{
	const char *at = log->source[e->source];
	const char *how = e->noticed ? "noticed at" : "by";
	json_t *all = json_array();
	for (size_t len; *at; at += len + (at[len] == ';'), how = "of") {
		len = strcspn(at, ";");
		if (len)
			json_array_append_new(
				all, JSON_PRINTED(out, fprintf(out, "%s %.*s", how, (int)len, at)));
	}
	return all;
}

void images_print_event(FILE *out, const struct pm_log *log, uint32_t event)
{
	const struct pm_event *e = &log->event[event];
	fprintf(out, "the %s of %u byte%s at %s+0x%" PRIx64, pm_event_name[e->kind], e->len,
		plural(e->len), log->file[e->file].name, e->off);
}

static json_t *counts_json(const struct pm_log *log)
{
	uint64_t n[PM_EVENT_KINDS] = {0};
	static const char *const many[PM_EVENT_KINDS] = {
		"stores",	    "landings",	    "flushes",	    "fences",
		"msyncs",	    "RDMA FLUSHes", "RDMA Commits", "READs after landings",
		"acknowledgements", "markers"};
	json_t *all = json_array();
	for (size_t i = 0; i < log->events; i++)
		n[log->event[i].kind]++;
	for (unsigned k = 0; k < PM_EVENT_KINDS; k++)
		if (n[k])
			json_array_append_new(all,
					      json_sprintf("%" PRIu64 " %s", n[k],
							   n[k] == 1 ? pm_event_name[k] : many[k]));
	return all;
}

static const char *domain_of(const struct images_options *o)
{
	static const char *const domain[] = {
		[DOMAIN_DMP] = "dmp", [DOMAIN_MHP] = "mhp", [DOMAIN_WSP] = "wsp"};
	return domain[o->kill ? DOMAIN_DMP : o->hw.domain];
}

static void hardware_text(const struct images_options *o, char *buf, size_t n)
{
	static const char *const ddio[] = {
		[DDIO_ON] = "on", [DDIO_OFF] = "off", [DDIO_ANY] = "any"};
	struct hardware others = o->hw;
	int at = snprintf(buf, n, "domain=%s ddio=%s ", domain_of(o), ddio[o->hw.ddio]);
	others.domain = hardware_default.domain;
	others.ddio = hardware_default.ddio;
	assert(at > 0 && (size_t)at < n);
	if (!hardware_print(&others, false, buf + at, n - (size_t)at))
		buf[at - 1] = 0; /* the blank */
}

void images_print_unseen(FILE *out, uint64_t bytes)
{
	fprintf(out,
		"%" PRIu64 " byte%s %s not as recorded: something wrote to it that is not seen "
		"(write(), a process that is not recorded, the last stores of one that was killed)",
		bytes, plural(bytes), bytes == 1 ? "is" : "are");
}

void images_print_unordered(FILE *out, bool told)
{
	fprintf(out,
		"in which order %s stored to a line of 64 bytes between two events is not known: "
		"%s",
		told ? "code that tells of no store" : "CPUs",
		told ? "tidemark-valgrind tells of each store"
		     : "a program that tidemark cc or c++ has compiled, or one under "
		       "tidemark-valgrind, tells of each store");
}

/* Stores of several words that were noticed: which of these came first is not known. `told`: the
 * program told of each of its own. */
static uint64_t count_unordered(const struct pm_log *log, bool *told)
{
	uint64_t n = 0;
	*told = false;
	for (size_t i = 0; i < log->events; i++) {
		const struct pm_event *e = &log->event[i];
		if (e->kind != PM_STORE)
			continue;
		*told |= !e->noticed;
		n += e->noticed && e->len > sizeof(uint64_t);
	}
	return n;
}

/* What the program has or does that was not seen, a line each. */
static void print_not_seen(FILE *out, const struct pm_log *log)
{
	for (size_t i = 0; i < log->unseens; i++) {
		if (i == UNSEEN_SHOWN) {
			fprintf(out, "and %zu more that are not judged\n", log->unseens - i);
			return;
		}
		const struct pm_unseen *u = &log->unseen[i];
		const char *source = log->source[u->source];
		bool names = u->kind >= PM_UNSEEN_NAME;
		fprintf(out, "%s: %s", names ? "not judged" : "not recorded", log->source[u->name]);
		if (*source)
			fprintf(out, " %s %.*s", names ? "by" : "in", (int)strcspn(source, ";"),
				source);
		if (names)
			fprintf(out, ", before event %zu", u->event);
		else if (u->times > 1)
			fprintf(out, ", and %" PRIu64 " more", u->times - 1);
		putc('\n', out);
	}
}

/* Memory has no path that tidemark-valgrind knows, nor have files of several machines. */
static bool have_paths(const struct pm_log *log)
{
	for (unsigned i = 0; i < log->files; i++)
		if (log->file[i].name[0] != '/')
			return false;
	return true;
}

/* Why nobody can tell, and what records that. */
static json_t *doubt_json(const struct images_report *r, json_t *files, enum image_doubt doubt)
{
	static const char *const why[] = {
		[DOUBT_FLUSHES] = "the program has instructions that flush or store past the "
				  "caches, and when they ran was not recorded",
		[DOUBT_FENCES] = "what is lost had been flushed, and the program has instructions "
				 "that wait for that, and when they ran was not recorded",
		[DOUBT_NAMES] = "what a power failure leaves of names and lengths of files is not "
				"judged",
		[DOUBT_ORDER] = "what is bad is good if stores came before that were noticed "
				"later",
		[DOUBT_CHECKER] = "the checker does not say the same of the same image"};
	return doubt ? json_of(text_made(json_pack("{s:s, s:b, s:O, s:o}", "why", why[doubt],
						   "recorded",
						   doubt != DOUBT_NAMES && doubt != DOUBT_CHECKER &&
							   have_paths(r->log),
						   "files", files, "log", json_text(r->name)),
					 "images_doubt"))
		     : NULL;
}

/* "put (store.c:12), called by main (main.c:3)" */
static void print_by(FILE *out, const char *by)
{
	const size_t n = strcspn(by, ";");
	fprintf(out, "%.*s", (int)n, by);
	if (by[n])
		fprintf(out, ", called by %.*s", (int)strcspn(by + n + 1, ";"), by + n + 1);
}

static json_t *moment_json(const struct images_report *r, const struct image_cause *c)
{
	const struct pm_log *log = r->log;
	const bool end = c->at >= log->events,
		   kept = r->options->kill || domain_keeps_visible(&r->options->hw, false);
	const struct pm_event *e = end ? NULL : &log->event[c->at];
	const char *kind = end ? "" : pm_event_name[e->kind],
		   *by = end ? "" : log->source[e->source];
	/* A marker's source is its name, that of an RNIC's request is what it is. */
	if (!end && (e->kind == PM_MARK || !strcmp(by, kind)))
		by = "";
	return json_of(
		text_made(json_pack("{s:b, s:s, s:o, s:b, s:I, s:i, s:b, s:I, s:o, s:i, s:i, s:b}",
				    "kill", r->options->kill, "kind", kind, "by",
				    JSON_PRINTED(out, print_by(out, by)), "noticed",
				    e && e->noticed, "event", (json_int_t)c->at, "line",
				    e ? (int)e->line : 0, "acks", c->acked || log->acks, "acked",
				    (json_int_t)c->acked, "mark", json_text(log->source[c->mark]),
				    "dirty", (int)c->dirty, "lines", (int)c->lines, "kept", kept),
			  "images_moment"));
}

/* How many words to leave out here: files that the first run wrote are not written once more, all
 * takes as long as it takes, and the number of processes changes nothing, nor does whether progress
 * is shown. */
static unsigned is_left_out(char *const *word)
{
	static const char *const names[] = {"--js", "--ju", "--jo", "--ht", "--out"};
	const char *w = *word;
	bool long_one = !strcmp(w, "--time") || !strncmp(w, "--time=", strlen("--time="));
	if (!strcmp(w, "-q") || !strncmp(w, "--q", 3))
		return 1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		long_one |= !strncmp(w, names[i], strlen(names[i]));
	if (!long_one && strncmp(w, "-o", 2) != 0)
		return 0;
	bool apart = long_one ? !strchr(w, '=') : !w[2];
	return apart && word[1] ? 2 : 1;
}

/* The command, without what it writes and in how many processes; `spec`: with --image SPEC; or
 * NULL. */
static void print_command(FILE *out, const struct images_report *r, const char *spec)
{
	bool given = !spec, checkers = false;
	write_word(out, program);
	for (unsigned i = 1; r->words[i];) {
		unsigned skip = checkers ? 0 : is_left_out(&r->words[i]);
		i += skip;
		if (skip)
			continue;
		/* Behind "--" are the checker's own words. */
		checkers |= !strcmp(r->words[i], "--");
		if (checkers && !given) {
			fprintf(out, " --image %s", spec);
			given = true;
		}
		putc(' ', out);
		write_word(out, r->words[i++]);
	}
	if (!given)
		fprintf(out, " --image %s", spec);
}

/* How fast it was, and why it took long: another time that is otherwise. */
static json_t *speed_json(const struct images_result *x)
{
	static const char *const why[] = {
		[IMAGE_WAY_SHELL] = "it is a line for a shell",
		[IMAGE_WAY_STATIC] = "it is not dynamically linked",
		[IMAGE_WAY_UNOPENED] = "it did not open the image itself (does it read it?)",
		[IMAGE_WAY_CHILDREN] =
			"it had started other processes when it first opened the image",
		[IMAGE_WAY_MEMORY] = "it shared memory when it first opened the image",
		[IMAGE_WAY_OPEN] =
			"it had a file to write to, or a socket or the like, open when it "
			"first opened the image",
		[IMAGE_WAY_KILLED] = "it was killed while it waited for the next one",
		[IMAGE_WAY_THREADS] = NULL};
	const struct image_way way = x->way;
	const bool threads = way.kind == IMAGE_WAY_THREADS;
	return json_pack("{s:f, s:i, s:s*, s:b, s:b}", "rate",
			 x->seconds > 0 ? (double)x->judged / x->seconds : 0.0, "threads",
			 threads ? (int)way.number : 0, "why", why[way.kind], "shared",
			 way.repair == IMAGE_REPAIR_SHARED, "unseen",
			 way.repair == IMAGE_REPAIR_UNSEEN);
}

void images_conclude(const struct images_report *r, struct conclusion *c)
{
	const struct images_result *x = r->result;
	unsigned unsure = 0;
	bool told;
	if (x->doubt && x->bad)
		conclude(c, EXIT_UNSURE,
			 "Could not tell: %" PRIu64 " of %" PRIu64 " image%s %s bad, and in doubt.",
			 x->bad, x->images, plural(x->images), x->bad == 1 ? "is" : "are");
	else if (x->doubt)
		conclude(c, EXIT_UNSURE, "Could not tell: every image is good, but %s.",
			 x->doubt == DOUBT_CHECKER ? "some only when they were judged again"
						   : "not all that happened was seen");
	else if (x->bad > 1 && x->bad == x->images)
		conclude(c, EXIT_BROKEN,
			 "All %" PRIu64
			 " images are bad, also the first one: is the checker right?",
			 x->images);
	else if (x->bad)
		conclude(c, EXIT_BROKEN,
			 "%" PRIu64 " of %" PRIu64 " image%s %s bad, of %u cause%s.", x->bad,
			 x->images, plural(x->images), x->bad == 1 ? "is" : "are", x->causes,
			 plural(x->causes));
	else
		conclude(c, EXIT_HELD, "%s",
			 !x->images   ? "Nothing was checked."
			 : x->bounded ? "Every image that was tried is good."
				      : "Every image is good.");
	if (x->images && !x->bad && count_unordered(r->log, &told) && !told)
		conclusion_add(c, " What a line holds between two stores to it was not tried: the "
				  "program does not tell of its stores.");
	/* With what the clients' answers alone contradict, which is certain whatever images say. */
	for (unsigned i = 0; i < r->faults; i++)
		unsure += r->fault[i].unsure;
	if (r->faults > unsure) {
		conclusion_add(c,
			       " Answers of clients are contradictory without any power failure.");
		c->status = EXIT_BROKEN;
	} else if (r->faults && c->status != EXIT_BROKEN) {
		conclusion_add(c, " Whether answers of clients are contradictory is not known.");
		c->status = EXIT_UNSURE;
	}
}

/* Of an image that was judged in two ways. */
static json_t *unsteady_json(const struct images_report *r)
{
	const struct images_result *x = r->result;
	char words[VERDICT_WORDS], then[VERDICT_WORDS];
	if (!x->unsteady)
		return NULL;
	image_verdict_words(&r->options->checker, &x->first_unsteady.verdict, words, sizeof(words));
	image_verdict_words(&r->options->checker, &x->then, then, sizeof(then));
	char *image = TEXT_PRINTED(out, image_spec_print(out, &x->first_unsteady));
	json_t *all = json_pack("{s:I, s:o, s:o, s:o}", "images", (json_int_t)x->unsteady, "first",
				json_text(words), "then", json_text(then), "again",
				JSON_PRINTED(out, print_command(out, r, image)));
	free(image);
	return all;
}

static json_t *remarks_json(const struct images_report *r, const json_t *doubt)
{
	const struct images_result *x = r->result;
	const struct images_options *o = r->options;
	const bool flushes = r->log->has_flush || pm_log_unseen(r->log, PM_UNSEEN_FLUSH) ||
			     domain_nic_flush_reaches(&o->hw) ||
			     (!o->kill && o->hw.domain != DOMAIN_DMP);
	return json_pack(
		"{s:O*, s:o*, s:I, s:s*, s:b, s:I, s:i, s:I, s:i, s:b, s:b, s:b}", "doubt", doubt,
		"unsteady", unsteady_json(r), "early", (json_int_t)(r->from ? x->skipped : 0),
		"from", r->from, "rough", x->rough, "untold", (json_int_t)x->untold, "told",
		IMAGE_CAUSES, "bounded", (json_int_t)x->bounded, "most", (int)o->most, "unchecked",
		!x->cuts && !r->left_off && !r->from, "never_flushes", !flushes, "kill", o->kill);
}

/* --- JSON --- */

/* The first ones are told of. */
static json_t *line_json(const struct pm_log *log, const struct image_line *l, bool told)
{
	char how[PMEM_ANSWER_TEXT] = "";
	if (l->left > l->versions)
		pmem_answer_print(l->versions, l->left, how, sizeof(how));
	return json_pack("{s:o, s:I, s:i, s:i, s:I, s:o}", "file",
			 json_text(log->file[l->file].name), "offset",
			 (json_int_t)l->line * PM_LINE, "left", (int)l->left, "versions",
			 (int)l->versions, "lost_event", (json_int_t)l->event, "shown",
			 told ? json_pack("{s:s}", "how", how) : json_false());
}

/* In words, and where in the program it is. */
static json_t *event_shown(const struct pm_log *log, uint32_t event, unsigned more)
{
	return json_pack("{s:I, s:o, s:o, s:i}", "event", (json_int_t)event, "what",
			 JSON_PRINTED(out, images_print_event(out, log, event)), "frames",
			 frames_json(log, &log->event[event]), "more_lines", (int)more);
}

static json_t *part_json(const struct pm_log *log, const struct image_part *p)
{
	const struct pm_event *e = &log->event[p->event];
	return json_pack("{s:s, s:I, s:o, s:I, s:i, s:o, s:i, s:o}", "kind", pm_event_name[e->kind],
			 "event", (json_int_t)p->event, "file", json_text(log->file[e->file].name),
			 "offset", (json_int_t)e->off, "bytes", (int)e->len, "source",
			 json_text(log->source[e->source]), "line", (int)e->line, "shown",
			 event_shown(log, p->event, p->lost > 1 ? p->lost - 1 : 0));
}

static json_t *cause_json(const struct images_report *r, const struct image_cause *c,
			  unsigned number)
{
	const struct pm_log *log = r->log;
	char words[VERDICT_WORDS];
	json_t *parts = json_array(), *lines = json_array();
	for (unsigned i = 0; i < c->parts; i++)
		json_array_append_new(parts, part_json(log, &c->part[i]));
	for (unsigned i = 0; i < c->lines; i++)
		json_array_append_new(lines, line_json(log, &c->line[i], i < LINES_SHOWN));
	image_verdict_words(&r->options->checker, &c->verdict, words, sizeof(words));
	const struct pm_event *at = c->at < log->events ? &log->event[c->at] : NULL;
	json_t *image = JSON_PRINTED(out, image_spec_print(out, c));
	json_t *shown = json_pack(
		"{s:i, s:o, s:I, s:o, s:o, s:o, s:i, s:o*}", "number", (int)number, "said",
		json_text(c->said), "places", (json_int_t)c->places, "verdict",
		JSON_PRINTED(out, fprintf(out, "%s%s", c->doubt ? "in doubt: " : "", words)),
		"moment", moment_json(r, c), "again",
		JSON_PRINTED(out, print_command(out, r, json_string_value(image))), "more_lines",
		(int)(c->lines > LINES_SHOWN ? c->lines - LINES_SHOWN : 0), "late",
		c->late ? event_shown(log, c->late - 1, 0) : NULL);
	return json_pack("{s:o, s:b, s:I, s:o, s:I, s:s, s:o, s:I, s:o, s:o, s:o, s:o}", "verdict",
			 json_text(words), "in_doubt", c->doubt != DOUBT_NONE, "images",
			 (json_int_t)c->images, "image", image, "event", (json_int_t)c->at,
			 "event_kind", at ? pm_event_name[at->kind] : "end", "event_source",
			 json_text(at ? log->source[at->source] : ""), "acked",
			 (json_int_t)c->acked, "marker", json_text(log->source[c->mark]), "lost",
			 parts, "lines", lines, "shown", shown);
}

static json_t *not_seen_json(const struct pm_log *log)
{
	return json_lines(TEXT_PRINTED(out, print_not_seen(out, log)));
}

static void add_cases(json_t *all, const struct images_report *r)
{
	const struct images_result *x = r->result;
	json_t *one;
	size_t i;
	json_array_foreach(json_object_get(all, "causes"), i, one)
	{
		char name[32], *text = text_made(json_incref(one), "images_cause");
		snprintf(name, sizeof(name), "cause %zu", i + 1);
		tree_case(all, x->cause[i].doubt ? CASE_SKIPPED : CASE_FAILED, r->name, name, "%s",
			  text);
		free(text);
	}
	json_array_foreach(json_object_get(all, "history"), i, one)
	{
		tree_case(all, r->fault[i].unsure ? CASE_SKIPPED : CASE_FAILED, r->name,
			  "answers of clients", "%s",
			  tree_text(json_object_get(one, "shown"), "words"));
	}
	if (r->left_off)
		tree_case(all, CASE_SKIPPED, r->name, "other crash images", "%s", r->left_off);
	else if (x->doubt)
		tree_case(all, CASE_SKIPPED, r->name, "crash images", "%s",
			  tree_text(all, "doubt"));
	else if (!x->bad)
		tree_case(all, CASE_PASSED, r->name, "crash images", NULL);
}

static json_t *files_json(const struct pm_log *log)
{
	json_t *all = json_array();
	for (unsigned i = 0; i < log->files; i++) {
		const struct pm_file *f = &log->file[i];
		json_array_append_new(
			all,
			json_pack("{s:o, s:I, s:o}", "name", json_text(f->name), "size",
				  (json_int_t)f->size, "unseen",
				  JSON_PRINTED(out, f->unseen ? images_print_unseen(out, f->unseen)
							      : (void)0)));
	}
	return all;
}

/* What was recorded, and who judges. */
static json_t *shown_json(const struct images_report *r, json_t *files)
{
	const struct images_options *o = r->options;
	const struct image_checker *c = &o->checker;
	const struct pm_log *log = r->log;
	const char *no_end = log->full
				     ? "it became full, or the disk was, while the program went on"
				     : "the program was stopped before its own";
	char hardware[200];
	bool told;
	hardware_text(o, hardware, sizeof(hardware));
	return json_pack(
		"{s:o, s:o, s:s*, s:b, s:o*, s:b, s:b, s:s, s:o, s:o*, s:o, s:o, s:i, s:b}",
		"files", files, "counts", counts_json(log), "no_end", log->stopped ? NULL : no_end,
		"begins_last", log->begins_last, "order",
		count_unordered(log, &told) ? JSON_PRINTED(out, images_print_unordered(out, told))
					    : NULL,
		"kill", o->kill, "keeps", domain_keeps_visible(&o->hw, false), "hardware", hardware,
		"checker",
		c->library ? JSON_PRINTED(out, fprintf(out, "int %s(const char *path) of %s",
						       c->function, c->library))
			   : json_text(c->recover),
		"then",
		c->then && c->check   ? JSON_PRINTED(out, fprintf(out, "%s; %s", c->then, c->check))
		: c->then || c->check ? json_text(c->then ? c->then : c->check)
				      : NULL,
		"command", JSON_PRINTED(out, print_command(out, r, NULL)), "contracts",
		tree_contracts(r->contracts), "most", (int)o->most, "threads", log->threads != 0);
}

static void add_results(json_t *all, const struct images_report *r)
{
	const struct images_result *x = r->result;
	json_t *causes = json_array(), *shown = json_object_get(all, "shown"),
	       *doubt = doubt_json(r, json_object_get(shown, "files"), x->doubt);
	uint64_t unseen = 0;
	bool told, contradicted = false;
	for (unsigned i = 0; i < r->faults; i++)
		contradicted |= !r->fault[i].unsure;
	for (unsigned i = 0; i < r->log->files; i++)
		unseen += r->log->file[i].unseen;
	for (unsigned i = 0; i < x->causes; i++)
		json_array_append_new(causes, cause_json(r, &x->cause[i], i + 1));
	json_object_update_new(
		all, json_pack("{s:s, s:s, s:b, s:O, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, "
			       "s:I, s:I, s:O*, s:o}",
			       "model", r->options->kill ? "kill" : "power", "domain",
			       domain_of(r->options), "ddio", r->options->hw.ddio == DDIO_ON,
			       "hardware", json_object_get(shown, "hardware"), "events",
			       (json_int_t)r->log->events, "cuts", (json_int_t)x->cuts, "bounded",
			       (json_int_t)x->bounded, "images", (json_int_t)x->images, "judged",
			       (json_int_t)x->judged, "bad", (json_int_t)x->bad, "complete",
			       !r->left_off, "ended", r->log->stopped, "unseen", (json_int_t)unseen,
			       "unordered", (json_int_t)count_unordered(r->log, &told), "unsteady",
			       (json_int_t)x->unsteady, "doubt", doubt, "causes", causes));
	json_object_update_new(
		shown, json_pack("{s:b, s:i, s:o, s:o}", "contradicted", contradicted, "distinct",
				 (int)x->causes, "remarks",
				 json_lines(text_made(remarks_json(r, doubt), "images_remarks")),
				 "speed", speed_json(x)));
	json_decref(doubt);
	add_cases(all, r);
}

json_t *images_tree(const struct images_report *r)
{
	json_t *files = files_json(r->log);
	json_t *all = json_pack("{s:o, s:o, s:o, s:o}", "log", json_text(r->name), "not_seen",
				not_seen_json(r->log), "history",
				history_json(r->said, r->fault, r->faults), "shown",
				shown_json(r, files));
	if (!all || !r->one) {
		if (all)
			add_results(all, r);
		return all;
	}
	json_object_update_new(all, json_pack("{s:b, s:o}", "good",
					      r->one->verdict.how == IMAGE_GOOD && !r->one->doubt,
					      "cause", cause_json(r, r->one, 1)));
	json_object_set_new(json_object_get(all, "shown"), "remarks",
			    json_pack("[o*]", doubt_json(r, files, r->one->doubt)));
	return all;
}
