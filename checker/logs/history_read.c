/* SPDX-License-Identifier: BSD-3-Clause */
/* See history_read.h. */
#include "checker/logs/history_read.h"
#include <errno.h>
#include "core/record/announcement.h"

int history_read(struct pm_log *log, char *bytes, size_t len, struct input_error *error)
{
	struct text t;
	char *line;
	int more, rc = 0;
	text_start(&t, bytes, len, error);
	while (!rc && (more = text_line(&t, &line)) > 0) {
		struct announcement_line l;
		if (!t.len)
			continue;
		if (memchr(line, 0, t.len) || !announcement_parse(line, t.len, &l))
			return text_wrong(&t,
					  "%s; expected CLIENT call OPERATION or CLIENT "
					  "return ANSWER",
					  text_show(line).text);
		rc = pm_log_add_call(log, l.client, l.returns, l.words, l.len, t.line);
	}
	return rc ? rc : more;
}
