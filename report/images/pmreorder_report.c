/* SPDX-License-Identifier: BSD-3-Clause */
/* See pmreorder_report.h. */
#include "report/images/pmreorder_report.h"
#include <inttypes.h>
#include <stdio.h>
#include "core/text/text.h"
#include "report/terminal.h"

#define STORES_SHOWN 16 /* of a state */

static void print_barrier(const struct images_report *r, unsigned number,
			  const struct pmreorder_barrier *b)
{
	char words[80];
	image_verdict_words(&r->options->checker, &b->verdict, words, sizeof(words));
	printf("\n%s%u. %s%s; %" PRIu64 " of %" PRIu64 " state%s at the %s at line %u of the log, "
	       "event %zu (%s of %u store%s)\n",
	       paint(BOLD), number, words, paint(PLAIN), b->bad, b->states, plural(b->states),
	       pm_event_name[r->log->event[b->event].kind], r->log->event[b->event].line, b->event,
	       pm_engine_name[b->engine], b->stores, plural(b->stores));
	if (!b->len)
		puts("   the first of them: no store since the barrier before");
	else
		printf("   the first of them: since the barrier before, %s\n",
		       b->len == 1 ? "only" : "in this order");
	for (unsigned i = 0; i < b->len && i < STORES_SHOWN; i++) {
		printf("     ");
		images_print_event(stdout, r->log, b->store[i]);
		putchar('\n');
		images_print_source(stdout, r->log, &r->log->event[b->store[i]], 7);
	}
	if (b->len > STORES_SHOWN)
		printf("     and %u more\n", b->len - STORES_SHOWN);
}

void pmreorder_print(const struct images_report *r, const struct pmreorder_result *x)
{
	images_print_log(stdout, r);
	for (unsigned i = 0; i < x->told; i++)
		print_barrier(r, i + 1, &x->barrier[i]);
	if (x->told)
		putchar('\n');
	if (x->untold)
		printf("%" PRIu64 " more barrier%s bad states; %d are told\n", x->untold,
		       x->untold == 1 ? " has" : "s have", PMREORDER_TOLD);
	printf("%" PRIu64 " barrier%s, %" PRIu64 " of them checked: %" PRIu64
	       " state%s as pmreorder makes them, of which %" PRIu64 " %s bad; %.0f states a "
	       "second\n",
	       x->barriers, plural(x->barriers), x->checked, x->states, plural(x->states), x->bad,
	       x->bad == 1 ? "is" : "are", x->seconds > 0 ? (double)x->states / x->seconds : 0.0);
	if (x->bounded)
		printf("at %" PRIu64 " of these barriers there are more states than were tried "
		       "(--most)\n",
		       x->bounded);
	if (!x->states && x->barriers)
		puts("all barriers are in sections with NoReorderNoCheck, which is the default: "
		     "nothing was checked (-r ReorderFull checks all)");
	if (!x->barriers)
		puts("there is no store or flush with a flush and a fence after it: nothing was "
		     "checked (--engine tidemark asks what is left of such stores, too)");
	if (x->doubt) {
		images_print_doubt(stdout, r, x->doubt);
		putchar('\n');
	}
}

void pmreorder_conclude(const struct pmreorder_result *x, struct conclusion *c)
{
	if (x->doubt)
		conclude(c, EXIT_UNSURE, "Could not tell: not all that happened was seen.");
	else if (x->bad)
		conclude(c, EXIT_BROKEN, "%" PRIu64 " of %" PRIu64 " state%s %s bad.", x->bad,
			 x->states, plural(x->states), x->bad == 1 ? "is" : "are");
	else
		conclude(c, EXIT_HELD, x->states ? "Every state is good." : "Nothing was checked.");
}
