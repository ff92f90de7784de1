/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing traces; docs/trace-format.md is the format.
 *
 * The whole text is built in memory, and a file gets its name only when all of it has been written:
 * no program ever finds half a trace under that name.
 */
#include "checker/trace/trace.h"
#include "scenarios/stores.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_NAMES 100 /* tried, one after the other */

/* Knobs that the variant alone does not explain. */
static int write_knobs(FILE *out, const struct setup *s)
{
	struct setup plain;
	setup_init(&plain, s->store);
	if (setup_variant(&plain, s->variant))
		return -EINVAL;
	for (unsigned k = 0; s->store->knobs[k].name; k++) {
		char value[64];
		if (s->params.knob[k] == plain.params.knob[k])
			continue;
		setup_knob_value(s, k, value, sizeof(value));
		fprintf(out, "knob %s=%s\n", s->store->knobs[k].name, value);
	}
	return 0;
}

static int write_setup(FILE *out, const struct setup *s)
{
	char config[512];
	int len = setup_hardware_print(s, true, config, sizeof(config));
	assert(len > 0 && (size_t)len < sizeof(config));
	const char *object = store_path(s->store);
	fprintf(out, TRACE_MAGIC " %d\nstore %s%s%s\n", TRACE_VERSION, s->store->name,
		object ? " " : "", object ? object : "");
	if (object)
		fprintf(out, "build %016" PRIx64 "\n", store_build(s->store));
	fprintf(out, "variant %s\nconfig %s\n", s->variant, config);
	if (write_knobs(out, s))
		return -EINVAL;
	for (unsigned i = 0; i < s->without.n; i++)
		fprintf(out, "without %s\n", s->without_name[i]);
	if (s->w.keys) {
		fputs("keys ", out);
		workload_print_keys(&s->w, out);
		fputc('\n', out);
	}
	for (unsigned c = 1; c <= s->w.clients; c++) {
		fprintf(out, "client %u:%s", c, s->w.client[c - 1].ops ? " " : "");
		workload_print_client(&s->w, c, out);
		fputc('\n', out);
	}
	return 0;
}

/* One line of printable ASCII, whatever the text is. */
static void write_verdict(FILE *out, int contract, const char *verdict)
{
	fprintf(out, "broken %s",
		contract < 0 ? "none" : contract_name((enum tm_contract)contract));
	if (verdict)
		verdict += strspn(verdict, " \t\n");
	if (verdict && *verdict)
		fputs(": ", out);
	for (unsigned i = 0; verdict && verdict[i] && i < TRACE_VERDICT_SIZE - 1; i++) {
		unsigned char c = (unsigned char)verdict[i];
		fputc(c == '\n' || c == '\t' ? ' ' : c < ' ' || c >= 0x7f ? '?' : c, out);
	}
	fputc('\n', out);
}

int trace_write(FILE *out, const struct setup *s, const struct deviations *d, int contract,
		const char *verdict)
{
	struct deviation_names names = {s->region, s->regions};
	char *text = NULL;
	size_t len = 0;

	assert(contract < TM_CONTRACTS);
	assert(s->regions && (s->w.keys || s->w.calls));
	if (d->n > TRACE_DEVIATIONS)
		return -EFBIG;
	FILE *memory = open_memstream(&text, &len);
	if (!memory)
		return -ENOMEM;
	int error = write_setup(memory, s);
	for (unsigned i = 0; i < d->n; i++) {
		char words[DEVIATION_TEXT];
		deviation_print(&d->d[i], &names, words, sizeof(words));
		fprintf(memory, "deviate %s\n", words);
	}
	write_verdict(memory, contract, verdict);
	if (ferror(memory) | fclose(memory))
		error = -ENOMEM;
	if (!error && len > TRACE_FILE_MAX)
		error = -EFBIG;
	errno = 0;
	if (!error && fwrite(text, 1, len, out) != len)
		error = errno ? -errno : -EIO;
	free(text);
	return error;
}

/* A new file beside `path`, open for writing: its name, to be freed, or NULL with errno. */
static char *open_beside(const char *path, int *fd)
{
	char *name = NULL;
	*fd = -1;
	for (int i = 0; i < TEMP_NAMES && *fd < 0; i++) {
		free(name);
		if (asprintf(&name, "%s.tmp.%ld.%d", path, (long)getpid(), i) < 0) {
			errno = ENOMEM;
			return NULL;
		}
		*fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (*fd < 0 && errno != EEXIST)
			break;
	}
	if (*fd >= 0)
		return name;
	int error = errno;
	free(name);
	errno = error;
	return NULL;
}

int trace_save(const char *path, const struct setup *s, const struct deviations *d, int contract,
	       const char *verdict)
{
	struct stat there;
	int fd, error;

	/* Renaming would replace a device as readily as a file. */
	if (!stat(path, &there) && !S_ISREG(there.st_mode))
		return S_ISDIR(there.st_mode) ? -EISDIR : -EEXIST;
	char *name = open_beside(path, &fd);
	if (!name)
		return -errno;
	FILE *out = fdopen(fd, "w");
	if (!out) {
		error = -errno;
		close(fd);
		goto err;
	}
	error = trace_write(out, s, d, contract, verdict);
	if (fflush(out) && !error)
		error = -errno;
	if (ferror(out) && !error)
		error = -EIO;
	if (fclose(out) && !error)
		error = -errno;
	if (!error && rename(name, path))
		error = -errno;
err:
	if (error)
		unlink(name);
	free(name);
	return error;
}
