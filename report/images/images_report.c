/* SPDX-License-Identifier: BSD-3-Clause */
/* See images_report.h. */
#include "report/images/images_report.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/report.h"
#include "report/terminal.h"

#define LINES_SHOWN 8 /* of an image */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* "event 40, line 12 of the log"; a recording has no lines. */
static void print_place(const struct pm_log *log, size_t event)
{
	printf("event %zu", event);
	if (log->event[event].line)
		printf(", line %u of the log", log->event[event].line);
}

/* Where in the program: the frames, one below the other. */
void images_print_source(const struct pm_log *log, const struct pm_event *e, unsigned indent)
{
	const char *at = log->source[e->source];
	const char *how = e->noticed ? "noticed at" : "by";
	for (size_t len; *at; at += len + (at[len] == ';')) {
		len = strcspn(at, ";");
		if (len)
			printf("%*s%s %.*s\n", (int)indent, "",
			       at == log->source[e->source] ? how : "of", (int)len, at);
	}
}

void images_print_event(const struct pm_log *log, uint32_t event)
{
	const struct pm_event *e = &log->event[event];
	printf("the %s of %u byte%s at %s+0x%" PRIx64, pm_event_name[e->kind], e->len,
	       plural(e->len), log->file[e->file].name, e->off);
}

void images_print_log(const struct images_report *r)
{
	const struct pm_log *log = r->log;
	uint64_t n[PM_EVENT_KINDS] = {0};
	static const char *const many[PM_EVENT_KINDS] = {"stores",
							 "landings",
							 "flushes",
							 "fences",
							 "msyncs",
							 "RDMA flushes",
							 "READs after landings",
							 "acknowledgements",
							 "markers"};
	bool first = true;
	for (size_t i = 0; i < log->events; i++)
		n[log->event[i].kind]++;
	printf("%s: ", r->name);
	for (unsigned i = 0; i < log->files; i++)
		printf("%s%s (%" PRIu64 " bytes)", i ? ", " : "", log->file[i].name,
		       log->file[i].size);
	fputs("; ", stdout);
	for (unsigned k = 0; k < PM_EVENT_KINDS; k++) {
		if (!n[k])
			continue;
		printf("%s%" PRIu64 " %s", first ? "" : ", ", n[k],
		       n[k] == 1 ? pm_event_name[k] : many[k]);
		first = false;
	}
	puts(log->stopped ? "" : "; it has no end: the program was stopped before its own");
}

/* "the first 2 of 3 stores", "none of them" */
static void print_left(const struct image_line *l)
{
	if (!l->left)
		printf("none of its %u change%s in flight is left", l->versions,
		       plural(l->versions));
	else
		printf("the first %u of its %u changes in flight %s left", l->left, l->versions,
		       l->left == 1 ? "is" : "are");
}

static void print_image(const struct images_report *r, const struct image_cause *c)
{
	const struct pm_log *log = r->log;
	printf("   the %s before ", r->options->model == PM_KILL ? "process died" : "power failed");
	if (c->at < log->events) {
		printf("the %s, ", pm_event_name[log->event[c->at].kind]);
		print_place(log, c->at);
	} else {
		printf("the end");
	}
	if (c->acked || log->acks)
		printf(", after %lu acknowledgement%s", c->acked, plural(c->acked));
	if (c->mark)
		printf(", after %s", log->source[c->mark]);
	if (r->options->model == PM_KILL)
		puts("; all that was stored is left");
	else if (!c->dirty)
		puts("; nothing was in flight");
	else if (!c->lines)
		printf("; all of the %u line%s in flight %s left\n", c->dirty, plural(c->dirty),
		       c->dirty == 1 ? "is" : "are");
	else
		printf("; of %u line%s in flight %u %s not whole:\n", c->dirty, plural(c->dirty),
		       c->lines, c->lines == 1 ? "is" : "are");
	for (unsigned i = 0; i < c->lines && i < LINES_SHOWN; i++) {
		printf("     %s+0x%" PRIx64 ": ", log->file[c->line[i].file].name,
		       c->line[i].line * PM_LINE);
		print_left(&c->line[i]);
		putchar('\n');
	}
	if (c->lines > LINES_SHOWN)
		printf("     and %u more\n", c->lines - LINES_SHOWN);
}

/* How many words to leave out here: files that the first run wrote are not written once more. */
static unsigned is_output(char *const *word)
{
	const char *w = *word;
	bool long_one = !strncmp(w, "--js", 4) || !strncmp(w, "--out", 5);
	if (!long_one && strncmp(w, "-o", 2) != 0)
		return 0;
	bool apart = long_one ? !strchr(w, '=') : !w[2];
	return apart && word[1] ? 2 : 1;
}

/* The command that makes this image again: the words of this one but what is written. */
static void print_again(const struct images_report *r, const struct image_cause *c)
{
	char spec[4096];
	bool given = false;
	FILE *out = fmemopen(spec, sizeof(spec), "w");
	if (!out)
		return;
	image_spec_print(out, c);
	fclose(out);
	printf("   once more: ");
	print_word(program);
	for (unsigned i = 1; r->words[i];) {
		unsigned skip = given ? 0 : is_output(&r->words[i]);
		i += skip;
		if (skip)
			continue;
		/* Behind "--" are the checker's own words. */
		if (!given && !strcmp(r->words[i], "--")) {
			printf(" --image %s", spec);
			given = true;
		}
		putchar(' ');
		print_word(r->words[i++]);
	}
	if (!given)
		printf(" --image %s", spec);
	putchar('\n');
}

static void print_parts(const struct images_report *r, const struct image_cause *c)
{
	for (unsigned i = 0; i < c->parts; i++) {
		fputs("   lost: ", stdout);
		images_print_event(r->log, c->part[i].event);
		fputs(" (", stdout);
		print_place(r->log, c->part[i].event);
		if (c->part[i].lost > 1)
			printf(", and what is left out of %u more line%s", c->part[i].lost - 1,
			       plural(c->part[i].lost - 1));
		puts(")");
		images_print_source(r->log, &r->log->event[c->part[i].event], 9);
	}
}

static void print_cause(const struct images_report *r, unsigned number, const struct image_cause *c)
{
	char words[80];
	image_verdict_words(c->verdict, words, sizeof(words));
	printf("\n%s%u. %s%s; %" PRIu64 " image%s\n", paint(BOLD), number, words, paint(PLAIN),
	       c->images, plural(c->images));
	print_parts(r, c);
	print_image(r, c);
	print_again(r, c);
}

/* Why it took long. */
static void print_way(struct image_way way)
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
		printf("the program was started for each image: it had %u threads when it first "
		       "opened the image\n",
		       way.number);
	else if (way.kind != IMAGE_WAY_SERVED)
		printf("the program was started for each image: %s\n", why[way.kind]);
	if (way.repair == IMAGE_REPAIR_SHARED)
		puts("each image was compared with what it had been: the checker looks at what it "
		     "has written to it");
	else if (way.repair == IMAGE_REPAIR_UNSEEN)
		puts("each image was compared with what it had been: the checker writes to it by "
		     "system calls that are not libc's");
}

void images_print(const struct images_report *r)
{
	const struct images_result *x = r->result;
	images_print_log(r);
	for (unsigned i = 0; i < x->causes; i++)
		print_cause(r, i + 1, &x->cause[i]);
	if (x->causes)
		putchar('\n');
	if (x->untold)
		printf("%" PRIu64 " more bad images have other causes; %d are told apart\n",
		       x->untold, IMAGE_CAUSES);
	if (r->options->model == PM_KILL)
		printf("the process died at %" PRIu64 " place%s", x->cuts, plural(x->cuts));
	else
		printf("the power failed at %" PRIu64 " place%s", x->cuts, plural(x->cuts));
	printf(": %" PRIu64 " different image%s, of which %" PRIu64 " %s bad, of %u cause%s; %.0f "
	       "images a second\n",
	       x->images, plural(x->images), x->bad, x->bad == 1 ? "is" : "are", x->causes,
	       plural(x->causes), x->seconds > 0 ? (double)x->images / x->seconds : 0.0);
	if (x->bounded)
		printf("at %" PRIu64 " of these places there are more images than were tried "
		       "(--most %u)\n",
		       x->bounded, r->options->most);
	if (!x->cuts)
		puts("all of the log is in sections with NoReorderNoCheck, which is the default "
		     "with -x: nothing was checked (-r ReorderFull checks all)");
	print_way(x->way);
	if (x->all_bad)
		puts("every image is bad, also that of the beginning: is the checker right?");
	if (!r->log->has_flush && !r->options->bypass && r->options->model == PM_POWER)
		puts("the program never flushes: what a power failure leaves is a matter of chance "
		     "(--model kill asks what is left if only the process dies)");
}

void images_print_one(const struct images_report *r, const struct image_cause *c)
{
	char words[80];
	image_verdict_words(c->verdict, words, sizeof(words));
	images_print_log(r);
	print_parts(r, c);
	print_image(r, c);
	printf("%s\n", words);
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
	char words[80], spec[4096] = "";
	FILE *out = fmemopen(spec, sizeof(spec), "w");
	json_t *parts = json_array(), *lines = json_array();
	if (out) {
		image_spec_print(out, c);
		fclose(out);
	}
	for (unsigned i = 0; i < c->parts; i++)
		json_array_append_new(parts, json_part(r->log, &c->part[i]));
	for (unsigned i = 0; i < c->lines; i++)
		json_array_append_new(lines, json_line(r->log, &c->line[i]));
	image_verdict_words(c->verdict, words, sizeof(words));
	return json_pack("{s:s, s:I, s:s, s:I, s:I, s:s, s:o, s:o}", "verdict", words, "images",
			 (json_int_t)c->images, "image", spec, "event", (json_int_t)c->at, "acked",
			 (json_int_t)c->acked, "marker", r->log->source[c->mark], "lost", parts,
			 "lines", lines);
}

int images_json(const struct images_report *r, const char *path)
{
	const struct images_result *x = r->result;
	json_t *causes = json_array();
	for (unsigned i = 0; i < x->causes; i++)
		json_array_append_new(causes, json_cause(r, &x->cause[i]));
	json_t *all = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:o}", "log", r->name,
				"model", r->options->model == PM_KILL ? "kill" : "power", "events",
				(json_int_t)r->log->events, "cuts", (json_int_t)x->cuts, "bounded",
				(json_int_t)x->bounded, "images", (json_int_t)x->images, "bad",
				(json_int_t)x->bad, "ended", r->log->stopped, "causes", causes);
	int error = all ? json_save(all, path) : -ENOMEM;
	json_decref(all);
	return error;
}
