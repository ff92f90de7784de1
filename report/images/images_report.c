/* SPDX-License-Identifier: BSD-3-Clause */
/* See images_report.h. */
#include "report/images/images_report.h"
#include "report/images/images_shown.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/crash.h"
#include "core/pmem/domain.h"
#include "core/text/text.h"
#include "report/images/history_report.h"
#include "report/report.h"
#include "report/terminal.h"

#define LINES_SHOWN   8	   /* of an image */
#define UNSEEN_SHOWN  20   /* of what was not seen */
#define VERDICT_WORDS 1000 /* bytes */

/* "event 40, line 12 of the log"; a recording has no lines. */
static void print_place(FILE *out, const struct pm_log *log, size_t event)
{
	fprintf(out, "event %zu", event);
	if (log->event[event].line)
		fprintf(out, ", line %u of the log", log->event[event].line);
}

/* Where in the program: its frames, one a line. */
static void images_print_source(FILE *out, const struct pm_log *log, const struct pm_event *e,
				unsigned indent)
{
	const char *at = log->source[e->source];
	const char *how = e->noticed ? "noticed at" : "by";
	for (size_t len; *at; at += len + (at[len] == ';')) {
		len = strcspn(at, ";");
		if (len)
			fprintf(out, "%*s%s %.*s\n", (int)indent, "",
				at == log->source[e->source] ? how : "of", (int)len, at);
	}
}

void images_print_event(FILE *out, const struct pm_log *log, uint32_t event)
{
	const struct pm_event *e = &log->event[event];
	fprintf(out, "the %s of %u byte%s at %s+0x%" PRIx64, pm_event_name[e->kind], e->len,
		plural(e->len), log->file[e->file].name, e->off);
}

void images_print_counts(FILE *out, const struct pm_log *log)
{
	uint64_t n[PM_EVENT_KINDS] = {0};
	static const char *const many[PM_EVENT_KINDS] = {
		"stores",	    "landings",	    "flushes",	    "fences",
		"msyncs",	    "RDMA FLUSHes", "RDMA Commits", "READs after landings",
		"acknowledgements", "markers"};
	bool first = true;
	for (size_t i = 0; i < log->events; i++)
		n[log->event[i].kind]++;
	for (unsigned k = 0; k < PM_EVENT_KINDS; k++) {
		if (!n[k])
			continue;
		fprintf(out, "%s%" PRIu64 " %s", first ? "" : ", ", n[k],
			n[k] == 1 ? pm_event_name[k] : many[k]);
		first = false;
	}
}

static const char *domain_of(const struct images_options *o)
{
	static const char *const domain[] = {
		[DOMAIN_DMP] = "dmp", [DOMAIN_MHP] = "mhp", [DOMAIN_WSP] = "wsp"};
	return domain[o->kill ? DOMAIN_DMP : o->hw.domain];
}

void images_print_hardware(const struct images_options *o, char *buf, size_t n)
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

uint64_t images_unordered(const struct pm_log *log, bool *told)
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

/* What records it. Memory has no path that tidemark-valgrind knows, nor have files of several
 * machines. */
static void print_valgrind(FILE *out, const struct images_report *r)
{
	for (unsigned i = 0; i < r->log->files; i++)
		if (r->log->file[i].name[0] != '/')
			return;
	fputs("; this records that: ", out);
	write_word(out, program);
	fputs(" record", out);
	for (unsigned i = 0; i < r->log->files; i++) {
		fputs(" --pm ", out);
		write_word(out, r->log->file[i].name);
	}
	fputs(" --out ", out);
	write_word(out, r->name);
	fprintf(out, " -- %s-valgrind", program);
	for (unsigned i = 0; i < r->log->files; i++) {
		fputs(" --pm=", out);
		write_word(out, r->log->file[i].name);
	}
	fputs(" PROGRAM", out);
}

void images_print_doubt(FILE *out, const struct images_report *r, enum image_doubt doubt)
{
	static const char *const why[] = {
		[DOUBT_FLUSHES] = "the program has instructions that flush or store past the "
				  "caches, and when they ran was not recorded",
		[DOUBT_FENCES] = "what is lost had been flushed, and the program has instructions "
				 "that wait for that, and when they ran was not recorded",
		[DOUBT_NAMES] = "what a power failure leaves of names and lengths of files is not "
				"judged",
		[DOUBT_ORDER] = "what is bad is good if stores came before that were noticed "
				"later"};
	fprintf(out, "could not tell: %s", why[doubt]);
	if (doubt != DOUBT_NAMES)
		print_valgrind(out, r);
}

const char *images_why_no_end(const struct pm_log *log)
{
	return log->full ? "it became full, or the disk was, while the program went on"
			 : "the program was stopped before its own";
}

static void images_print_log(FILE *out, const struct images_report *r)
{
	const struct pm_log *log = r->log;
	fprintf(out, "%s: ", r->name);
	for (unsigned i = 0; i < log->files; i++)
		fprintf(out, "%s%s (%" PRIu64 " bytes)", i ? ", " : "", log->file[i].name,
			log->file[i].size);
	fputs("; ", out);
	images_print_counts(out, log);
	if (!log->stopped)
		fprintf(out, "; it has no end: %s", images_why_no_end(log));
	fputc('\n', out);
	if (log->begins_last)
		fputs("PM is read as the last stores left it, so what is lost is there all the "
		      "same: --pool FILE is a copy from before the program ran, --pool zero an "
		      "empty one\n",
		      out);
	for (unsigned i = 0; i < log->files; i++) {
		if (!log->file[i].unseen)
			continue;
		fprintf(out, "%s: ", log->file[i].name);
		images_print_unseen(out, log->file[i].unseen);
		fputc('\n', out);
	}
	bool told;
	if (images_unordered(log, &told)) {
		images_print_unordered(out, told);
		fputc('\n', out);
	}
	print_not_seen(out, log);
}

/* "the first 2 of 3 stores", "none of them", "version 1 of 3 cut after word 2" */
static void print_left(FILE *out, const struct image_line *l)
{
	char words[PMEM_ANSWER_TEXT];
	if (l->left > l->versions) {
		pmem_answer_print(l->versions, l->left, words, sizeof(words));
		fprintf(out, "%s is left", words);
	} else if (!l->left)
		fprintf(out, "none of its %u change%s in flight is left", l->versions,
			plural(l->versions));
	else
		fprintf(out, "the first %u of its %u changes in flight %s left", l->left,
			l->versions, l->left == 1 ? "is" : "are");
}

void images_print_moment(FILE *out, const struct images_report *r, const struct image_cause *c)
{
	const struct pm_log *log = r->log;
	fprintf(out, "the %s before ", r->options->kill ? "process died" : "power failed");
	if (c->at < log->events) {
		const struct pm_event *e = &log->event[c->at];
		const char *source = log->source[e->source];
		fprintf(out, "the %s", pm_event_name[e->kind]);
		/* A marker's source is its name, that of an RNIC's request is what it is. */
		if (*source && e->kind != PM_MARK && strcmp(source, pm_event_name[e->kind]) != 0)
			fprintf(out, " %s %.*s", e->noticed ? "noticed at" : "by",
				(int)strcspn(source, ";"), source);
		fputs(", ", out);
		print_place(out, log, c->at);
	} else {
		fprintf(out, "the end");
	}
	if (c->acked || log->acks)
		fprintf(out, ", after %lu acknowledgement%s", c->acked, plural(c->acked));
	if (c->mark)
		fprintf(out, ", after %s", log->source[c->mark]);
	if ((r->options->kill || domain_keeps_visible(&r->options->hw, false)) && !c->dirty)
		fputs("; all that was stored is left", out);
	else if (!c->dirty)
		fputs("; nothing was in flight", out);
	else if (!c->lines)
		fprintf(out, "; all of the %u line%s in flight %s left", c->dirty, plural(c->dirty),
			c->dirty == 1 ? "is" : "are");
	else
		fprintf(out, "; of %u line%s in flight %u %s not whole", c->dirty, plural(c->dirty),
			c->lines, c->lines == 1 ? "is" : "are");
}

static void print_image(FILE *out, const struct images_report *r, const struct image_cause *c)
{
	const struct pm_log *log = r->log;
	fputs("   ", out);
	images_print_moment(out, r, c);
	fputs(c->lines ? ":\n" : "\n", out);
	for (unsigned i = 0; i < c->lines && i < LINES_SHOWN; i++) {
		fprintf(out, "     %s+0x%" PRIx64 ": ", log->file[c->line[i].file].name,
			c->line[i].line * PM_LINE);
		print_left(out, &c->line[i]);
		putc('\n', out);
	}
	if (c->lines > LINES_SHOWN)
		fprintf(out, "     and %u more\n", c->lines - LINES_SHOWN);
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

void images_print_command(FILE *out, const struct images_report *r, const char *spec)
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

void images_print_again(FILE *out, const struct images_report *r, const struct image_cause *c)
{
	char *spec = TEXT_PRINTED(words, image_spec_print(words, c));
	images_print_command(out, r, spec);
	free(spec);
}

static void print_parts(FILE *out, const struct images_report *r, const struct image_cause *c)
{
	for (unsigned i = 0; i < c->parts; i++) {
		fputs("   lost: ", out);
		images_print_event(out, r->log, c->part[i].event);
		fputs(" (", out);
		print_place(out, r->log, c->part[i].event);
		if (c->part[i].lost > 1)
			fprintf(out, ", and what is left out of %u more line%s",
				c->part[i].lost - 1, plural(c->part[i].lost - 1));
		fprintf(out, "%s\n", ")");
		images_print_source(out, r->log, &r->log->event[c->part[i].event], 9);
	}
}

/* Why it is no verdict. */
static void print_late(FILE *out, const struct images_report *r, const struct image_cause *c)
{
	if (!c->late)
		return;
	fputs("   it is good with ", out);
	images_print_event(out, r->log, c->late - 1);
	fprintf(out, " (event %u), which may have come before:\n", c->late - 1);
	images_print_source(out, r->log, &r->log->event[c->late - 1], 9);
}

static void print_cause(FILE *out, const struct images_report *r, unsigned number,
			const struct image_cause *c)
{
	char words[VERDICT_WORDS];
	image_verdict_words(&r->options->checker, &c->verdict, words, sizeof(words));
	fprintf(out, "\n%s%u. %s%s%s; %" PRIu64 " image%s\n", out == stdout ? paint(BOLD) : "",
		number, images_doubt_words(c), words, out == stdout ? paint(PLAIN) : "", c->images,
		plural(c->images));
	print_parts(out, r, c);
	print_image(out, r, c);
	print_late(out, r, c);
	fputs("   once more: ", out);
	images_print_again(out, r, c);
	putc('\n', out);
}

/* Why it took long. */
static void print_way(FILE *out, struct image_way way)
{
	static const char *const why[] = {
		[IMAGE_WAY_SHELL] = "it is a line for a shell",
		[IMAGE_WAY_STATIC] = "it is not dynamically linked",
		[IMAGE_WAY_UNOPENED] = "it did not open the image itself",
		[IMAGE_WAY_CHILDREN] =
			"it had started other processes when it first opened the image",
		[IMAGE_WAY_MEMORY] = "it shared memory when it first opened the image",
		[IMAGE_WAY_OPEN] =
			"it had a file to write to, or a socket or the like, open when it "
			"first opened the image",
		[IMAGE_WAY_KILLED] = "it was killed while it waited for the next one"};
	if (way.kind == IMAGE_WAY_THREADS)
		fprintf(out,
			"the program was started for each image: it had %u threads when it first "
			"opened the image\n",
			way.number);
	else if (way.kind != IMAGE_WAY_SERVED)
		fprintf(out, "the program was started for each image: %s\n", why[way.kind]);
	if (way.repair == IMAGE_REPAIR_SHARED)
		fprintf(out, "%s\n",
			"each image was compared with what it had been: the checker looks at what "
			"it "
			"has written to it");
	else if (way.repair == IMAGE_REPAIR_UNSEEN)
		fprintf(out, "%s\n",
			"each image was compared with what it had been: the checker writes to it "
			"by "
			"system calls that are not libc's");
}

const char *images_doubt_words(const struct image_cause *c)
{
	return c->doubt ? "in doubt: " : "";
}

static void print_figures(FILE *out, const struct images_report *r)
{
	const struct images_result *x = r->result;
	fprintf(out,
		"the %s at %" PRIu64 " place%s: %" PRIu64 " different image%s, of which %" PRIu64
		" %s bad, of %u cause%s",
		r->options->kill ? "process died" : "power failed", x->cuts, plural(x->cuts),
		x->images, plural(x->images), x->bad, x->bad == 1 ? "is" : "are", x->causes,
		plural(x->causes));
}

void images_conclude(const struct images_report *r, struct conclusion *c)
{
	const struct images_result *x = r->result;
	unsigned unsure = 0;
	if (x->doubt && x->bad)
		conclude(c, EXIT_UNSURE,
			 "Could not tell: %" PRIu64 " of %" PRIu64 " image%s %s bad, and in doubt.",
			 x->bad, x->images, plural(x->images), x->bad == 1 ? "is" : "are");
	else if (x->doubt)
		conclude(
			c, EXIT_UNSURE,
			"Could not tell: every image is good, but not all that happened was seen.");
	else if (x->bad)
		conclude(c, EXIT_BROKEN,
			 "%" PRIu64 " of %" PRIu64 " image%s %s bad, of %u cause%s.", x->bad,
			 x->images, plural(x->images), x->bad == 1 ? "is" : "are", x->causes,
			 plural(x->causes));
	else
		conclude(c, EXIT_HELD, x->images ? "Every image is good." : "Nothing was checked.");
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

void images_print_remarks(FILE *out, const struct images_report *r)
{
	const struct images_result *x = r->result;
	if (x->doubt) {
		images_print_doubt(out, r, x->doubt);
		fputc('\n', out);
	}
	if (x->rough)
		fputs("some causes may say more than must not be lost: their lines were not "
		      "given back\n",
		      out);
	if (x->untold)
		fprintf(out, "%" PRIu64 " more bad image%s other causes; %d are told apart\n",
			x->untold, x->untold == 1 ? " has" : "s have", IMAGE_CAUSES);
	if (x->bounded)
		fprintf(out,
			"at %" PRIu64 " of these places there are more images than were tried "
			"(--most %u)\n",
			x->bounded, r->options->most);
	if (!x->cuts && !r->left_off)
		fprintf(out, "%s\n",
			"all of the log is in sections with NoReorderNoCheck, which is the default "
			"with -x: nothing was checked (-r ReorderFull checks all)");
	if (x->all_bad)
		fprintf(out, "%s\n",
			"every image is bad, also that of the beginning: is the checker right?");
	bool kill = r->options->kill;
	if (!r->log->has_flush && !pm_log_unseen(r->log, PM_UNSEEN_FLUSH) &&
	    !domain_nic_flush_reaches(&r->options->hw) &&
	    (kill || r->options->hw.domain == DOMAIN_DMP))
		fprintf(out,
			"the program never flushes: what a power failure leaves is a matter of "
			"chance (--model %s)\n",
			kill ? "power makes those images"
			     : "kill asks what is left if only the process dies");
}

/* What the clients' answers alone contradict, with no power failure. */
static void print_faults(FILE *out, const struct images_report *r)
{
	char words[FAULT_WORDS];
	bool broken = false;
	for (unsigned i = 0; i < r->faults; i++) {
		history_fault_words(r->said, &r->fault[i], words, sizeof(words));
		fprintf(out, "\nwithout any power failure: %s\n", words);
		history_print_operations(out, r->said, &r->fault[i], 3);
		broken |= !r->fault[i].unsure;
	}
	if (broken)
		fputs("\nNo image is blamed for that; what these answers say is left out.\n", out);
}

void images_print(FILE *out, const struct images_report *r)
{
	const struct images_result *x = r->result;
	images_print_log(out, r);
	print_faults(out, r);
	for (unsigned i = 0; i < x->causes; i++)
		print_cause(out, r, i + 1, &x->cause[i]);
	if (x->causes)
		putc('\n', out);
	print_figures(out, r);
	fprintf(out, "; %.0f images a second\n",
		x->seconds > 0 ? (double)x->judged / x->seconds : 0.0);
	images_print_remarks(out, r);
	print_way(out, x->way);
}

void images_print_one(FILE *out, const struct images_report *r, const struct image_cause *c)
{
	char words[VERDICT_WORDS];
	image_verdict_words(&r->options->checker, &c->verdict, words, sizeof(words));
	images_print_log(out, r);
	print_parts(out, r, c);
	print_image(out, r, c);
	print_late(out, r, c);
	fprintf(out, "%s%s\n", images_doubt_words(c), words);
	if (c->doubt) {
		images_print_doubt(out, r, c->doubt);
		fputc('\n', out);
	}
}

/* --- JSON --- */

static json_t *json_line(const struct pm_log *log, const struct image_line *l)
{
	return json_pack("{s:s, s:I, s:i, s:i, s:I}", "file", log->file[l->file].name, "offset",
			 (json_int_t)l->line * PM_LINE, "left", (int)l->left, "versions",
			 (int)l->versions, "lost_event", (json_int_t)l->event);
}

static json_t *json_part(const struct pm_log *log, const struct image_part *p)
{
	const struct pm_event *e = &log->event[p->event];
	return json_pack("{s:s, s:I, s:s, s:I, s:i, s:s, s:i}", "kind", pm_event_name[e->kind],
			 "event", (json_int_t)p->event, "file", log->file[e->file].name, "offset",
			 (json_int_t)e->off, "bytes", (int)e->len, "source", log->source[e->source],
			 "line", (int)e->line);
}

static json_t *json_cause(const struct images_report *r, const struct image_cause *c)
{
	char words[VERDICT_WORDS];
	json_t *parts = json_array(), *lines = json_array();
	for (unsigned i = 0; i < c->parts; i++)
		json_array_append_new(parts, json_part(r->log, &c->part[i]));
	for (unsigned i = 0; i < c->lines; i++)
		json_array_append_new(lines, json_line(r->log, &c->line[i]));
	image_verdict_words(&r->options->checker, &c->verdict, words, sizeof(words));
	const struct pm_event *at = c->at < r->log->events ? &r->log->event[c->at] : NULL;
	return json_pack("{s:s, s:b, s:I, s:o, s:I, s:s, s:s, s:I, s:s, s:o, s:o}", "verdict",
			 words, "in_doubt", c->doubt != DOUBT_NONE, "images", (json_int_t)c->images,
			 "image", JSON_PRINTED(out, image_spec_print(out, c)), "event",
			 (json_int_t)c->at, "event_kind", at ? pm_event_name[at->kind] : "end",
			 "event_source", at ? r->log->source[at->source] : "", "acked",
			 (json_int_t)c->acked, "marker", r->log->source[c->mark], "lost", parts,
			 "lines", lines);
}

json_t *json_of(char *text)
{
	json_t *json = json_text(text ? text : "");
	free(text);
	return json;
}

json_t *json_lines(char *text)
{
	json_t *all = json_array();
	for (char *at = text, *line; (line = strsep(&at, "\n"));)
		if (*line)
			json_array_append_new(all, json_text(line));
	free(text);
	return all;
}

json_t *images_not_seen(const struct pm_log *log)
{
	return json_lines(TEXT_PRINTED(out, print_not_seen(out, log)));
}

static void add_cases(json_t *all, const struct images_report *r)
{
	const struct images_result *x = r->result;
	for (unsigned i = 0; i < x->causes; i++) {
		char name[32], *text = TEXT_PRINTED(out, print_cause(out, r, i + 1, &x->cause[i]));
		snprintf(name, sizeof(name), "cause %u", i + 1);
		tree_case(all, x->cause[i].doubt ? CASE_SKIPPED : CASE_FAILED, r->name, name, "%s",
			  text ? text + strspn(text, "\n") : "");
		free(text);
	}
	for (unsigned i = 0; i < r->faults; i++) {
		char words[FAULT_WORDS];
		history_fault_words(r->said, &r->fault[i], words, sizeof(words));
		tree_case(all, r->fault[i].unsure ? CASE_SKIPPED : CASE_FAILED, r->name,
			  "answers of clients", "%s", words);
	}
	if (r->left_off)
		tree_case(all, CASE_SKIPPED, r->name, "other crash images", "%s", r->left_off);
	else if (x->doubt)
		tree_case(all, CASE_SKIPPED, r->name, "crash images", "%s",
			  json_string_value(json_object_get(all, "doubt")));
	else if (!x->bad)
		tree_case(all, CASE_PASSED, r->name, "crash images", NULL);
}

json_t *images_tree(const struct images_report *r)
{
	if (r->one)
		return json_pack("{s:s, s:b, s:o}", "log", r->name, "good",
				 r->one->verdict.how == IMAGE_GOOD && !r->one->doubt, "shown",
				 images_shown(r));
	const struct images_result *x = r->result;
	json_t *causes = json_array();
	char hardware[200];
	uint64_t unseen = 0;
	bool told;
	for (unsigned i = 0; i < r->log->files; i++)
		unseen += r->log->file[i].unseen;
	images_print_hardware(r->options, hardware, sizeof(hardware));
	for (unsigned i = 0; i < x->causes; i++)
		json_array_append_new(causes, json_cause(r, &x->cause[i]));
	json_t *all = json_pack(
		"{s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:I, s:o*, "
		"s:o, s:o, "
		"s:o, s:o}",
		"log", r->name, "model", r->options->kill ? "kill" : "power", "domain",
		domain_of(r->options), "ddio", r->options->hw.ddio == DDIO_ON, "hardware", hardware,
		"events", (json_int_t)r->log->events, "cuts", (json_int_t)x->cuts, "bounded",
		(json_int_t)x->bounded, "images", (json_int_t)x->images, "judged",
		(json_int_t)x->judged, "bad", (json_int_t)x->bad, "complete", !r->left_off, "ended",
		r->log->stopped, "unseen", (json_int_t)unseen, "unordered",
		(json_int_t)images_unordered(r->log, &told), "doubt",
		x->doubt ? JSON_PRINTED(out, images_print_doubt(out, r, x->doubt)) : NULL,
		"not_seen", images_not_seen(r->log), "history",
		history_json(r->said, r->fault, r->faults), "causes", causes, "shown",
		images_shown(r));
	if (all)
		add_cases(all, r);
	return all;
}
