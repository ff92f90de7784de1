/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark record --merge: the recordings of several machines become one
 * (checker/images/recording_merge.h). */
#include "cli/nic/record_merge.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "checker/images/recording_merge.h"
#include "cli/cli.h"
#include "core/text/regular.h"
#include "core/text/text.h"
#include "report/output.h"

/* Map it: a recording may be longer than memory. */
static int map_recording(const char *name, struct merge_recording *r)
{
	struct stat st;
	int fd = regular_open(name);
	if (fd == -EISDIR || fd == -ENOTSUP)
		return fail(EXIT_USAGE, "%s: expected a recording", name);
	if (fd < 0)
		return fail(EXIT_USAGE, "%s: %s", name, strerror(-fd));
	void *at = !fstat(fd, &st) && st.st_size
			   ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
			   : MAP_FAILED;
	close(fd);
	if (at == MAP_FAILED)
		return fail(EXIT_USAGE, "%s: expected a recording", name);
	*r = (struct merge_recording){.name = name, .bytes = at, .len = (size_t)st.st_size};
	return 0;
}

static int merge_mapped(const char *out, const struct merge_recording *recording, unsigned n,
			bool quiet)
{
	struct merge *merge;
	char why[1024] = "";
	int error = merge_open(&merge, recording, n, why, sizeof(why));
	int status = 0;
	if (error == -EINVAL)
		status = fail(EXIT_USAGE, "%s", why);
	else if (error)
		status = fail(EXIT_INTERNAL, "out of memory");
	if (!status)
		status = saved(out, save_file(out, merge_write, merge));
	if (!status && !quiet)
		fprintf(stderr, "tidemark: %s: %u machines, %zu message%s between them\n", out, n,
			merge_messages(merge), plural(merge_messages(merge)));
	merge_close(merge);
	return status;
}

int record_merge(const char *out, char **name, unsigned n, bool quiet)
{
	struct merge_recording recording[MERGE_MACHINES] = {0};
	int status = 0;
	if (n < 2 || n > MERGE_MACHINES)
		return fail(EXIT_USAGE, "record: --merge: expected 2 to %d recordings, not %u: %s",
			    MERGE_MACHINES, n, n ? name[n - 1] : "none is named");
	for (unsigned i = 0; i < n; i++)
		note_input(name[i]);
	status = check_output("--merge", out, OUTPUT_RECORDING);
	for (unsigned i = 0; i < n && !status; i++)
		status = map_recording(name[i], &recording[i]);
	if (!status)
		status = merge_mapped(out, recording, n, quiet);
	for (unsigned i = 0; i < n && recording[i].bytes; i++)
		munmap((void *)(uintptr_t)recording[i].bytes, recording[i].len);
	return status;
}
