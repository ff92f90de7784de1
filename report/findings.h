/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_FINDINGS_H
#define TM_REPORT_FINDINGS_H
/*
 * What needs attention in a campaign, with the line of source that it is about: for code scanning
 * (SARIF 2.1.0) and for the annotations of a workflow. What breaks as expected is no finding.
 */
#include "checker/cause/cause.h"
#include "checker/judge/blame.h"
#include "report/report.h"

#define FINDING_FILE 1024
#define FINDING_TEXT (5 * CAUSE_TEXT)

/* One way of breaking one cell; or a cell that holds and was expected to break. */
struct finding {
	unsigned config, contract;
	unsigned number; /* of the cell's cases */
	/* Where the cause is: the store that was lost, or what is nearest to it. The path is
	 * relative to the top of the source tree, or begins with '/'. */
	char file[FINDING_FILE];
	int line;		     /* 0: nothing is known of it */
	char sentence[FINDING_TEXT]; /* why, as tidemark replay says; "": not known */
	char cause[BLAME_TEXT];	     /* what it is blamed on, coarse: it does not name a run */
};

struct findings {
	const struct report *report;
	struct finding *one; /* by configuration, contract, case */
	unsigned n;
};

/* After report_traces() with r->out: each trace is replayed. To be freed in any case. 0 or -errno
 * with *why; -EPROTO: a trace does not run as it was written. */
int findings_find(const struct report *r, bool quiet, struct findings *out, char why[REPORT_WHY]);
void findings_free(struct findings *f);
/* For the tree of results. */
json_t *findings_json(const struct findings *f);

#endif
