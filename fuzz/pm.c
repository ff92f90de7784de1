/* SPDX-License-Identifier: BSD-3-Clause */
/* See pm.h. */
#include "fuzz/pm.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/logs/pm_replay.h"
#include "checker/logs/pmemcheck_read.h"
#include "checker/logs/pmemcheck_write.h"

#define FILES_MAX    (1u << 16) /* bytes of all files */
#define LINES_MAX    (FILES_MAX / PM_LINE)
#define VERSIONS_MAX 64 /* of a line, that are looked at after each event */

/* A file may say that it is as long as it likes; what needs more than this gets no memory. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=128";
}

static void look(const struct pm_replay *r)
{
	uint8_t line[PM_LINE];
	unsigned left[LINES_MAX] = {0};
	for (uint32_t i = 0; i < r->dirties && i < LINES_MAX; i += 2)
		left[i] = r->dirty[i].versions;
	pm_replay_allow(r, left);
	for (uint32_t i = 0; i < r->dirties; i++) {
		const struct pm_line *l = &r->dirty[i];
		for (uint32_t v = 0; v < pm_replay_answers(r, l) && v < VERSIONS_MAX; v++)
			pm_replay_content(r, l, v, line);
	}
}

static void replay_log(const struct pm_log *log, const struct hardware *hw, bool kill)
{
	struct pm_replay r;
	if (pm_replay_open(&r, log, hw, kill))
		return;
	do
		if (pm_replay_cut(&r))
			look(&r);
	while (pm_replay_step(&r, NULL, NULL) > 0);
	pm_replay_close(&r);
}

/* Has it names that pmemcheck's format can say? */
static bool has_plain_names(const struct pm_log *log)
{
	for (unsigned i = 0; i < log->files; i++)
		if (strpbrk(log->file[i].name, "|;\n\r"))
			return false;
	for (unsigned i = 0; i < log->sources; i++)
		if (strpbrk(log->source[i], "|;\n\r"))
			return false;
	for (size_t i = 0; i < log->events; i++)
		if (log->event[i].kind == PM_MARK)
			return false; /* any words, in a recording */
	return true;
}

static void read_again(const struct pm_log *log)
{
	struct input_error error = {0};
	struct pm_log again;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return;
	int failed = pmemcheck_write(out, log);
	fclose(out);
	if (!failed && !pm_log_open(&again)) {
		if (pmemcheck_read(&again, text, len, &error) == -EINVAL) {
			fprintf(stderr, "%u: %s\n%s\n", error.line, error.message, text);
			abort();
		}
		pm_log_close(&again);
	}
	free(text);
}

void pm_walk(struct pm_log *log)
{
	const char *which;
	uint64_t bytes = 0;
	for (unsigned i = 0; i < log->files; i++)
		bytes += log->file[i].len < FILES_MAX ? log->file[i].len : FILES_MAX + 1;
	if (bytes > FILES_MAX || pm_log_read_files(log, "zero", &which))
		return;
	const struct hardware usual = hardware_default;
	struct hardware past = usual, cut = usual, any = usual, caches = usual, without;
	past.ddio = DDIO_OFF;
	cut.line_torn = TORN_ANY;
	any.dma_order = DMA_ANY;
	caches.domain = DOMAIN_MHP;
	without = caches;
	without.iio_in_mhp = false;
	without.ddio = DDIO_ANY;
	replay_log(log, &usual, false);
	replay_log(log, &past, false);
	replay_log(log, &cut, false);
	replay_log(log, &any, true);
	replay_log(log, &caches, false);
	replay_log(log, &without, false);
	if (has_plain_names(log))
		read_again(log);
}
