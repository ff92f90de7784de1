/* SPDX-License-Identifier: BSD-3-Clause */
/* See case.h. */
#include "report/case.h"
#include "checker/world/setup.h"
#include "report/output.h"

int report_case_save(struct report_case *one, const struct setup *s, const struct deviations *path,
		     unsigned contract)
{
	one->operations = workload_ops(&s->w);
	one->deviations = path->n;
	return one->trace ? save_trace(one->trace, s, path, (int)contract, one->text) : 0;
}
