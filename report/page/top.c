/* SPDX-License-Identifier: BSD-3-Clause */
/* The top of the page: what broke, why, what was run, what went differently; and the trace itself,
 * at its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/output.h"
#include "report/page/page.h"
#include "report/terminal.h"

static void print_rules(const struct page *p)
{
	const struct event_trace *st = p->st;
	for (int k = 0; k < TM_CONTRACTS; k++) {
		if (!st->outcome.verdict[k].broken)
			continue;
		fprintf(p->out,
			"<p class=rule>%sbroken %s: ", k == st->trace->contract ? "" : "also ",
			contract_name((enum tm_contract)k));
		page_element(p->out, "", st->outcome.text[k], "</p>\n");
	}
	fputs("<dl class=contracts>\n", p->out);
	for (int k = 0; k < TM_CONTRACTS; k++) {
		if (!st->outcome.verdict[k].broken && k != st->trace->contract)
			continue;
		fprintf(p->out, "<dt>%s", contract_name((enum tm_contract)k));
		page_element(p->out, "<dd>", contract_what((enum tm_contract)k), "\n");
	}
	fputs("</dl>\n", p->out);
}

static void row(const struct page *p, const char *name, const char *text)
{
	page_element(p->out, "<tr><th>", name, "<td>");
	page_element(p->out, "", text, "</tr>\n");
}

/* A row of what is printed to a file. 0 or -ENOMEM. */
static int printed_row(const struct page *p, const char *name,
		       void (*print)(const struct page *p, unsigned which, FILE *out),
		       unsigned which)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return -ENOMEM;
	print(p, which, out);
	int error = fclose(out) ? -ENOMEM : 0;
	if (!error)
		row(p, name, text);
	free(text);
	return error;
}

static void print_keys(const struct page *p, unsigned none, FILE *out)
{
	(void)none;
	workload_print_keys(&p->st->trace->setup.w, out);
}

static void print_client(const struct page *p, unsigned client, FILE *out)
{
	workload_print_client(&p->st->trace->setup.w, client, out);
}

static void print_command(const struct page *p, unsigned none, FILE *out)
{
	(void)none;
	fputs("tidemark replay ", out);
	write_word(out, p->st->name);
}

static void print_setup(const struct page *p)
{
	const struct setup *s = &p->st->trace->setup;
	char text[256], knobs[EVENT_TRACE_KNOBS], name[32];
	fputs("<section class=run>\n<h2>What was run</h2>\n<table class=facts>\n", p->out);
	snprintf(text, sizeof(text), "%s, variant %s", s->store->name, s->variant);
	row(p, "store", text);
	event_trace_knobs(s, knobs);
	if (*knobs)
		row(p, "knobs", knobs);
	for (unsigned i = 0; i < s->without.n; i++)
		row(p, "without", s->without_name[i]);
	if (s->w.keys)
		printed_row(p, "loaded", print_keys, 0);
	for (unsigned c = 1; c <= s->w.clients; c++) {
		snprintf(name, sizeof(name), "client %u", c);
		printed_row(p, name, print_client, c);
	}
	setup_hardware_print(s, true, text, sizeof(text));
	row(p, "hardware", text);
	row(p, "trace", p->st->name);
	printed_row(p, "replay", print_command, 0);
	snprintf(text, sizeof(text), "tidemark %s", tidemark_version);
	row(p, "version", text);
	fputs("</table>\n</section>\n", p->out);
}

static void print_deviations(const struct page *p)
{
	const struct trace *t = p->st->trace;
	const struct deviation_names names = {t->setup.region, t->setup.regions};
	char text[DEVIATION_TEXT];
	fprintf(p->out, "<section class=differs>\n<h2>%s</h2>\n",
		t->deviations.n ? "What goes differently from a plain run"
				: "Nothing goes differently from a plain run");
	if (t->deviations.n)
		fputs("<ol>\n", p->out);
	for (unsigned i = 0; i < t->deviations.n; i++) {
		deviation_print(&t->deviations.d[i], &names, text, sizeof(text));
		page_element(p->out, "<li class=deviation>", text, "</li>\n");
	}
	if (t->deviations.n)
		fputs("</ol>\n", p->out);
	fputs("</section>\n", p->out);
}

static void print_facts(const struct page *p)
{
	const struct cause *c = &p->st->cause;
	if (!c->facts)
		return;
	fputs("<section id=facts>\n<h2>Why, step by step</h2>\n<ul class=facts>\n", p->out);
	for (unsigned i = 0; i < c->facts; i++)
		page_text(p, "<li class=fact>", c->fact[i], "</li>\n");
	fputs("</ul>\n</section>\n", p->out);
}

void page_top(const struct page *p)
{
	const struct trace *t = p->st->trace;
	page_element(p->out, "<header>\n<h1>", t->setup.store->name, "");
	if (strcmp(t->setup.variant, "default") != 0)
		page_element(p->out, ", variant ", t->setup.variant, "");
	if (t->contract >= 0)
		page_element(p->out,
			     p->st->outcome.verdict[t->contract].broken ? " breaks "
									: ": no longer breaks ",
			     contract_name((enum tm_contract)t->contract), "");
	else
		fputs(": the trace names no broken contract", p->out);
	fputs("</h1>\n", p->out);
	print_rules(p);
	if (p->st->cause.sentence[0])
		page_text(p, "<p class=why id=why>", p->st->cause.sentence, "</p>\n");
	fputs("</header>\n<div class=top>\n", p->out);
	print_setup(p);
	print_deviations(p);
	fputs("</div>\n", p->out);
	print_facts(p);
}

int page_trace(const struct page *p)
{
	const struct trace *t = p->st->trace;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return -ENOMEM;
	int error = trace_write(out, &t->setup, &t->deviations, t->contract, t->verdict);
	if (fclose(out) && !error)
		error = -ENOMEM;
	fputs("<details id=trace>\n<summary>The trace: save these lines as a file, and tidemark "
	      "replay runs it again</summary>\n<pre>",
	      p->out);
	for (const char *line = text; !error && *line; line += strcspn(line, "\n") + 1) {
		char *end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		page_element(p->out, "", line, "\n");
		*end = '\n';
	}
	fputs("</pre>\n</details>\n", p->out);
	free(text);
	return error;
}
