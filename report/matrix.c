/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The matrix of a campaign: a row for each store and hardware, a mark for each contract. Rows are
 * printed in the order of the configurations, each as soon as it and all before it are finished, so
 * that the text does not depend on how many processes work. Hardware under which a store has the
 * same marks throughout is one row; a shape has a row only if it needs attention.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "report/report.h"
#include "report/terminal.h"
#include "scenarios/stores.h"

#define LABEL_MAX 24 /* columns; of a longer name the marks stand on the next line */
#define ALIKE_MIN 3  /* so many rows can be one */
#define COLUMNS	  80
#define STATES	  9 /* columns */
#define NARROW	  3 /* columns of a contract, if not all names have room on one line */

/* --- marks --- */

/* May the contract break by design? */
static bool may_break(const struct campaign_config *cfg, unsigned k)
{
	const struct expectation *e = strcmp(cfg->variant, "default")
					      ? NULL
					      : expect_find(cfg->store->name, campaign_like(cfg),
							    (int)k);
	return e && (e->broken || e->open);
}

/* Was there anything in which the contract could have broken? */
static bool is_tried(const struct report *r, unsigned config, unsigned k)
{
	unsigned parts;
	explore_judged(&r->campaign->total[config], r->campaign->config[config].store->servers, k,
		       &parts);
	return parts & 3;
}

void report_broken_in(const struct report *r, unsigned config, unsigned k, char *buf, size_t n)
{
	static const char *const words[] = {"state",
					    "run",
					    "state",
					    "runs and states",
					    "start",
					    "starts and runs",
					    "starts and states",
					    "starts, runs and states"};
	const struct campaign *c = r->campaign;
	unsigned parts;
	uint64_t of = explore_judged(&c->total[config], c->config[config].store->servers, k,
				     &parts);
	bool one = !(parts & (parts - 1));
	snprintf(buf, n, "%" PRIu64 " of %" PRIu64 " %s%s", c->cell[config][k].broken_states, of,
		 words[parts], one ? plural(of) : "");
}

/* Nothing has broken until now. */
static bool is_unfinished(const struct report *r, unsigned config, unsigned k)
{
	return !report_is_whole(r, config) && is_tried(r, config, k);
}

bool report_unsure(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign *c = r->campaign;
	return !c->cell[config][k].broken &&
	       (!report_is_whole(r, config) || !is_tried(r, config, k) ||
		(campaign_searches(c, config) && campaign_left_out(c, config)));
}

char report_mark(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign *c = r->campaign;
	const struct campaign_config *cfg = &c->config[config];
	if (!(store_judged(cfg->store) & TM_BIT(k)))
		return ' ';
	if (r->cell[config][k].surprise)
		return '!';
	if (r->cell[config][k].accepted)
		return 'a';
	if (c->cell[config][k].broken)
		return cfg->store->promises & TM_BIT(k) ? 'X' : 'x';
	if (is_unfinished(r, config, k))
		return '-';
	return report_unsure(r, config, k) || may_break(cfg, k) ? '?' : '.';
}

static const char *mark_colour(char mark)
{
	return mark == '!' ? RED : mark == '.' ? GREEN : YELLOW;
}

static bool same_marks(const struct report *r, unsigned a, unsigned b)
{
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (report_mark(r, a, k) != report_mark(r, b, k))
			return false;
	return true;
}

unsigned report_judged(const struct campaign *c)
{
	unsigned judged = 0;
	for (unsigned i = 0; i < c->configs; i++)
		judged |= store_judged(c->config[i].store);
	return judged;
}

/* --- rows --- */

/* After the rows of the same store, and variant, that follow each other. */
static unsigned group_end(const struct campaign *c, unsigned config)
{
	unsigned end = config + 1;
	while (!c->config[config].shape && end < c->configs && !c->config[end].shape &&
	       same_group(&c->config[config], &c->config[end]))
		end++;
	return end;
}

static bool is_finished(const struct report_matrix *m, unsigned config)
{
	return m->ended || report_is_whole(m->report, config);
}

/* A configuration below the default one of its store has its own name only. */
static unsigned row_name(const struct campaign *c, unsigned config, char name[REPORT_NAME])
{
	unsigned first = config;
	while (first && same_group(&c->config[first - 1], &c->config[config]))
		first--;
	if (first == config || strcmp(c->config[first].name, "default") != 0)
		config_name(&c->config[config], name, REPORT_NAME);
	else
		snprintf(name, REPORT_NAME, "  %s", c->config[config].name);
	return (unsigned)strlen(name);
}

/* Of two lines the second one has the last name but one. */
static void print_names(const struct report_matrix *m, unsigned line)
{
	const unsigned n = (unsigned)__builtin_popcount(m->contracts);
	unsigned at = 0;
	printf("%s  %*s", paint(BOLD), (int)m->width, "");
	for (unsigned k = 0, i = 0; k < TM_CONTRACTS; k++) {
		if (!(m->contracts & TM_BIT(k)))
			continue;
		const unsigned before = m->narrow ? NARROW * i - at : 1;
		i++;
		if (!m->narrow || (n - i) % 2 == line)
			at += (unsigned)printf("%*s%s", (int)before, "", contract_name(k));
	}
	if (line == m->narrow)
		printf("%*s %8s", m->narrow ? (int)(NARROW * n - at) : 0, "", "states");
	printf("%s\n", paint(PLAIN));
}

static void print_head(const struct report_matrix *m)
{
	for (unsigned line = 0; line <= m->narrow; line++)
		print_names(m, line);
}

/* A mark stands below the middle of its contract's name, or its third letter, below which there is
 * no other name. */
static void print_marks(const struct report_matrix *m, unsigned config)
{
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		if (!(m->contracts & TM_BIT(k)))
			continue;
		int letters = m->narrow ? NARROW - 1 : (int)strlen(contract_name(k)),
		    before = (letters - !m->narrow) / 2;
		char is = report_mark(m->report, config, k);
		printf(" %*s%s%c%s%*s", before, "", paint(mark_colour(is)), is, paint(PLAIN),
		       letters - before - 1, "");
	}
}

static void print_row(struct report_matrix *m, unsigned config, unsigned alike)
{
	const struct campaign *c = m->report->campaign;
	char name[REPORT_NAME];
	uint64_t states = 0;
	unsigned done = 0;
	for (unsigned i = 0; i < alike; i++) {
		states += c->total[config + i].states;
		done += campaign_done(c, config + i);
	}
	unsigned len = row_name(c, config, name);
	if (alike > 1)
		len += (unsigned)snprintf(name + len, sizeof(name) - len, " (all hardware)");
	if (!m->rows++)
		print_head(m);
	printf("  %-*s", (int)m->width, name);
	if (len > m->width)
		printf("\n  %*s", (int)m->width, "");
	print_marks(m, config);
	printf(" %8" PRIu64, states);
	if (done < alike * c->workloads)
		printf("  %u/%u workloads", done, alike * c->workloads);
	putchar('\n');
}

/* A shape without surprises has no row; nor has, in the end, what was not begun. */
static bool has_row(const struct report *r, unsigned config)
{
	return !report_in_short(r, config) && campaign_done(r->campaign, config);
}

/* How much of a row is done. */
enum how_far { NOT_BEGUN, BEGUN, WHOLE };

static enum how_far how_far(const struct report_matrix *m, unsigned config)
{
	return report_is_whole(m->report, config)	    ? WHOLE
	       : campaign_done(m->report->campaign, config) ? BEGUN
							    : NOT_BEGUN;
}

/* Do all rows up to `end` that are finished have the same marks? */
static bool all_alike(const struct report_matrix *m, unsigned end)
{
	for (unsigned i = m->next; i < end; i++)
		if (is_finished(m, i) &&
		    (how_far(m, i) != how_far(m, m->next) || !same_marks(m->report, i, m->next)))
			return false;
	return true;
}

/* The row at m->next, which is finished. False: it has to wait for others of its store. */
static bool next_row(struct report_matrix *m)
{
	const struct report *r = m->report;
	unsigned end = group_end(r->campaign, m->next), finished = m->next;
	bool alone = m->split == m->next || end - m->next < ALIKE_MIN || !all_alike(m, end);
	while (finished < end && is_finished(m, finished))
		finished++;
	if (!alone && finished < end)
		return false;
	if (has_row(r, m->next))
		print_row(m, m->next, alone ? 1 : end - m->next);
	m->next = alone ? m->next + 1 : end;
	m->split = alone && m->next < end ? m->next : UINT32_MAX;
	return true;
}

/* That of the longest label that has room. */
static unsigned label_width(const struct campaign *c, unsigned max)
{
	unsigned width = 0;
	for (unsigned i = 0; i < c->configs; i++) {
		char name[REPORT_NAME];
		unsigned end = group_end(c, i), len = row_name(c, i, name);
		if (end - i >= ALIKE_MIN)
			len += (unsigned)strlen(" (all hardware)");
		width = len > width && len <= max ? len : width;
	}
	return width;
}

void report_matrix_begin(struct report_matrix *m, struct report *r)
{
	const struct campaign *c = r->campaign;
	*m = (struct report_matrix){
		.report = r, .split = UINT32_MAX, .contracts = report_judged(c)};
	unsigned marks = 0, room;
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		marks += m->contracts & TM_BIT(k) ? 1 + (unsigned)strlen(contract_name(k)) : 0;
	m->width = label_width(c, LABEL_MAX);
	m->narrow = 2 + m->width + marks + STATES > COLUMNS;
	room = COLUMNS - 2 - STATES - NARROW * (unsigned)__builtin_popcount(m->contracts);
	if (m->narrow && m->width > room)
		m->width = label_width(c, room);
}

void report_matrix_rows(struct report_matrix *m)
{
	const unsigned before = m->rows;
	while (m->next < m->report->campaign->configs && is_finished(m, m->next) && next_row(m))
		;
	if (m->rows != before)
		output_flush();
}

/* --- the end --- */

static void print_legend(const struct report_matrix *m)
{
	puts("  .  holds: no failure was found    !  surprise: see below    ?  could not tell\n"
	     "  x  broken as the design says: the store does not promise it\n"
	     "  X  broken and promised: a known flaw; the store's expected.txt says why");
	if (m->report->undone)
		puts("  -  nothing broken until now: not all of its workloads are done");
	if (m->report->baseline)
		puts("  a  broken, and accepted by the baseline");
	putchar('\n');
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (m->contracts & TM_BIT(k))
			printf("  %-5s  %.*s\n", contract_name(k),
			       (int)strcspn(contract_what(k), ";"), contract_what(k));
	puts("  docs/contracts.md has an example of each. -v says what was seen in each cell.");
}

void report_matrix_end(struct report_matrix *m)
{
	const struct campaign *c = m->report->campaign;
	unsigned none = 0;
	char not_run[REPORT_SENTENCE];
	m->ended = true;
	report_matrix_rows(m);
	for (unsigned i = 0; i < c->configs; i++)
		none += !c->config[i].shape && !campaign_done(c, i);
	if (none)
		printf("  %u more row%s not begun\n", none, none == 1 ? " was" : "s were");
	for (unsigned i = 0; i < c->configs; i++)
		if ((!i || !same_group(&c->config[i - 1], &c->config[i])) &&
		    report_not_run(c, i, not_run)) {
			fputs("  ", stdout);
			print_wrapped(2, not_run);
		}
	if (m->rows)
		print_legend(m);
}
