/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of a run in the simulation (run_log.h): for each trace in tests/traces, when the power
 * has failed, the log's own replay has the same content in the working image, the same lines in
 * flight, and as many versions of each.
 */
#include <dirent.h>
#include "checker/logs/run_log.h"
#include "checker/trace/trace.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

#define TRACES "tests/traces"

static struct pm_run_log run;
static struct replay_audience inner;
static const char *at_trace;
static unsigned compared, lines_in_flight;

static void compare_line(const struct pm_line *l)
{
	uint8_t content[PM_LINE];
	pm_replay_content(&run.replay, l, l->versions, content);
	size_t left = pmem_length(run.pm) - l->line * PM_LINE;
	ck_assert_msg(!memcmp(content, pmem_base(run.pm) + l->line * PM_LINE,
			      left < PM_LINE ? left : PM_LINE),
		      "%s: line %lu has another content", at_trace, (unsigned long)l->line);
	ck_assert_msg(pmem_line_versions(run.pm, (uint32_t)l->line) == l->versions,
		      "%s: line %lu has %u versions in the log, %u in the simulation", at_trace,
		      (unsigned long)l->line, l->versions,
		      pmem_line_versions(run.pm, (uint32_t)l->line));
	lines_in_flight++;
}

static void compare(void)
{
	ck_assert_msg(!run.error, "%s: error %d", at_trace, run.error);
	ck_assert_msg(run.replay.dirties == pmem_dirty(run.pm),
		      "%s: %u lines are in flight in the log, %u in the simulation", at_trace,
		      run.replay.dirties, pmem_dirty(run.pm));
	for (unsigned i = 0; i < run.replay.dirties; i++)
		compare_line(&run.replay.dirty[i]);
	for (size_t line = 0; line < pmem_length(run.pm) / PM_LINE; line++)
		if (!run.replay.slot[0][line])
			ck_assert_msg(!memcmp(run.replay.durable[0] + line * PM_LINE,
					      pmem_base(run.pm) + line * PM_LINE, PM_LINE),
				      "%s: the durable line %zu differs", at_trace, line);
	compared++;
}

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	inner.machine_starts(arg, ex, machine);
	if (machine == 1)
		compare();
}

static void check_trace(const char *path)
{
	struct trace t;
	struct input_error where = {0};
	struct replay_outcome *out = calloc(1, sizeof(*out));
	struct explorer *ex = malloc(sizeof(*ex));
	at_trace = path;
	ck_assert(out && ex);
	ck_assert_msg(!trace_read(path, &t, store_find, &where), "%s: %s", path, where.message);
	ck_assert(!pm_run_log_open(&run, "pool", NULL, &inner));
	struct replay_audience audience = inner;
	audience.machine_starts = machine_starts;
	ck_assert(!explore_open(ex, &t.setup, &explore_default));
	ck_assert(!replay(ex, &t.deviations, false, &audience, out));
	explore_close(ex);
	pm_run_log_close(&run);
	trace_free(&t);
	free(ex);
	free(out);
}

START_TEST(test_traces)
{
	DIR *dir = opendir(TRACES);
	struct dirent *entry;
	char path[600];
	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL) {
		const char *end = strrchr(entry->d_name, '.');
		if (!end || strcmp(end, ".trace") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", TRACES, entry->d_name);
		check_trace(path);
	}
	closedir(dir);
	ck_assert_uint_gt(compared, 20);
	ck_assert_uint_gt(lines_in_flight, 20);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("run_log");
	TCase *tc = tcase_create("traces");
	tcase_add_test(tc, test_traces);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
