/* SPDX-License-Identifier: BSD-3-Clause */
/* See case.h. */
#include "report/case.h"
#include "checker/world/setup.h"
#include "report/output.h"
#include "report/terminal.h"
#include "core/text/text.h"

int report_case_save(struct report_case *one, const struct setup *s, const struct deviations *path,
		     unsigned contract)
{
	one->operations = workload_ops(&s->w);
	one->deviations = path->n;
	return one->trace ? save_trace(one->trace, s, path, (int)contract, one->text) : 0;
}

void report_case_replay(const struct report_case *one)
{
	print_replay(one->trace);
	printf("   (%u operation%s, %u deviation%s%s)\n", one->operations, plural(one->operations),
	       one->deviations, plural(one->deviations), one->whole ? "; not shrunk" : "");
}
