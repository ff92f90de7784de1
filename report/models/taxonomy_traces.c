/* SPDX-License-Identifier: BSD-3-Clause */
/* The traces of a taxonomy: one for each way in which a method is not sound. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/output.h"
#include "report/models/taxonomy_report.h"

struct to_write {
	const struct taxonomy *t;
	const struct taxonomy_cell *cell;
	struct taxonomy_break *broken;
};

static int write_trace(FILE *out, const void *arg)
{
	const struct to_write *w = arg;
	if (!*w->broken->trace)
		return taxonomy_trace(w->t, w->cell, w->broken, out);
	return fputs(w->broken->trace, out) < 0 ? -EIO : 0;
}

/* DIR/taxonomy-METHOD-TRANSPORT-DOMAIN-ddio_on-rqwrb_pm-CONTRACT.trace, other knobs before the
 * contract. */
static char *trace_name(const struct taxonomy_request *r, const struct taxonomy_cell *cell,
			const struct taxonomy_break *broken)
{
	char config[TAXONOMY_CONFIG], *name;
	taxonomy_config(NULL, cell->column, cell->transport, config, sizeof(config));
	for (unsigned i = 0; i < r->options.knobs.knobs; i++) {
		const char *knob = r->options.knobs.knob[i];
		size_t len = strlen(config);
		if (!strstr(config, knob))
			snprintf(config + len, sizeof(config) - len, " %s", knob);
	}
	for (char *p = config; *p; p++)
		*p = *p == ' ' ? '-' : *p;
	return asprintf(&name, "%s/taxonomy-%s-%s-%s.trace", r->out, taxonomy_method(cell->method),
			config, contract_name(broken->contract)) < 0
		       ? NULL
		       : name;
}

int taxonomy_write_traces(struct taxonomy_report *r, struct taxonomy *t, char why[REPORT_WHY])
{
	for (unsigned i = 0; i < t->cells; i++) {
		struct taxonomy_result *result = &t->cell[i].result;
		for (unsigned b = 0; b < result->breaks; b++) {
			struct to_write w = {t, &t->cell[i], &result->broken[b]};
			char *name = trace_name(r->request, &t->cell[i], &result->broken[b]);
			int error = name ? save_file(name, write_trace, &w) : -ENOMEM;
			if (error) {
				snprintf(why, REPORT_WHY, "%s: %s", name ? name : r->request->out,
					 driver_error(error));
				free(name);
				return error;
			}
			r->trace[i][b] = name;
		}
	}
	return 0;
}
