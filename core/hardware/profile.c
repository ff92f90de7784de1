/* SPDX-License-Identifier: BSD-3-Clause */
/* The costs as words. The table is in profile.h. */
#include "core/hardware/profile.h"
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"

#define LONGEST (64 * 1024) /* bytes of a file */

#define X(field, value, least, most, unit, what) {#field, unit, what, value, least, most},
static const struct profile_cost costs[] = {PROFILE_COSTS(X){0}};
#undef X

#define X(field, ...) offsetof(struct profile, field),
static const size_t place[] = {PROFILE_COSTS(X)};
#undef X

#define COSTS (sizeof(place) / sizeof(place[0]))

#define X(field, value, ...) .field = value,
const struct profile profile_default = {PROFILE_COSTS(X)};
#undef X

const struct profile_cost *profile_cost(unsigned i)
{
	return &costs[i < COSTS ? i : COSTS];
}

uint32_t profile_value(const struct profile *p, unsigned i)
{
	uint32_t value;
	memcpy(&value, (const char *)p + place[i], sizeof(value));
	return value;
}

struct reading {
	struct profile *profile;
	unsigned line[COSTS]; /* that names it; 0: none yet */
};

static int read_row(struct text *t, char *line, void *arg)
{
	struct reading *r = arg;
	unsigned i = 0;
	uint64_t value;
	char *comment = strchr(line, '#'), *rest = line;
	if (!comment || !*text_skip_blanks(comment + 1))
		return text_wrong(t, "expected where the value is from, after '#'");
	*comment = '\0';
	const char *name = text_word(&rest), *number = text_word(&rest);
	while (i < COSTS && strcmp(costs[i].name, name) != 0)
		i++;
	if (i == COSTS)
		return text_wrong(t, "%s: expected the name of a cost, as in tidemark list costs",
				  text_show(name).text);
	if (r->line[i])
		return text_wrong(t, "%s is in line %u already; expected it once", name,
				  r->line[i]);
	if (!text_number(number, costs[i].least, costs[i].most, &value))
		return text_wrong(t, "%s: expected a number of %s for %s, %" PRIu32 " to %" PRIu32,
				  text_show(number).text, costs[i].unit, name, costs[i].least,
				  costs[i].most);
	if (*text_skip_blanks(rest))
		return text_wrong(t, "%s: expected '#' and where the value is from",
				  text_show(text_skip_blanks(rest)).text);
	r->line[i] = t->line;
	const uint32_t set = (uint32_t)value;
	memcpy((char *)r->profile + place[i], &set, sizeof(set));
	return 0;
}

int profile_parse(struct profile *p, char *bytes, size_t len, struct input_error *error)
{
	struct reading reading = {.profile = p};
	struct text t;
	*p = profile_default;
	text_start(&t, bytes, len, error);
	t.ascii = true;
	return text_rows(&t, read_row, &reading);
}

int profile_read(struct profile *p, const char *path, struct input_error *error)
{
	size_t len;
	int rc;
	char *bytes = text_read_path(path, LONGEST, &len, error, &rc);
	if (!bytes)
		return rc;
	if (len > LONGEST) {
		snprintf(error->message, sizeof(error->message),
			 "expected at most %d bytes, as a profile has", LONGEST);
		rc = -EINVAL;
	} else {
		rc = profile_parse(p, bytes, len, error);
	}
	free(bytes);
	return rc;
}
