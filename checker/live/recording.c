/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recordings of live clients. See recording.h.
 *
 *	0	"tidemark-recording 1", "room N", then the text that was set; NUL to the end
 *	4096	N records of RECORDING_OP bytes
 *
 * A writer takes records by a counter of its own, which is not in the file: so a record
 * that was taken and not filled stays zero, and a reader meets gaps. It finds the end
 * by looking for the last record that is used.
 *
 * A reader checks everything. `room` says how long the file has to be, so that a file
 * which was cut is found out and not taken for a run with fewer operations. The backing
 * file of an NVDIMM has the data after the namespace's own 2 MiB; it can be read like
 * the device itself.
 */
#include "checker/live/recording.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/live/live_fails.h"
#include "core/rt/why.h"

#define HEADER	   4096
#define MAGIC	   "tidemark-recording 1\n"
#define DAX_UNIT   ((size_t)2 << 20) /* a devdax mapping is a multiple of this */
#define DAX_OFFSET ((size_t)2 << 20) /* of the data, in an NVDIMM's backing file */
#define ERROR_MAX  4095

struct recording {
	uint8_t *map;
	size_t map_len;
	char *text; /* of the first page, after the line "room" */
	struct recording_op *op;
	uint64_t room, used;
	atomic_uint_fast64_t next;
};

/* The length of a file, or of a devdax device, which stat() does not know. 0 or -errno. */
static int length_of(int fd, bool *device, size_t *len)
{
	struct stat st;
	char path[64];
	unsigned long long bytes = 0;
	FILE *in;

	if (fstat(fd, &st))
		return -errno;
	*device = S_ISCHR(st.st_mode);
	*len = (size_t)st.st_size;
	if (!*device)
		return S_ISREG(st.st_mode) ? 0 : -EINVAL;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/size", major(st.st_rdev),
		 minor(st.st_rdev));
	in = fopen(path, "re");
	if (!in)
		return -ENODEV;
	if (fscanf(in, "%llu", &bytes) != 1)
		bytes = 0;
	fclose(in);
	*len = bytes / DAX_UNIT * DAX_UNIT;
	return *len ? 0 : -ENODEV;
}

/* --- to write --- */

/* Zero the pages that are not zero; the others may be holes of the backing file. */
static void wipe(uint8_t *bytes, size_t len)
{
	static const uint8_t zero[HEADER];

	for (size_t at = 0; at < len; at += HEADER)
		if (memcmp(bytes + at, zero, HEADER))
			memset(bytes + at, 0, HEADER);
}

static int create_map(struct recording *r, int fd, uint64_t ops)
{
	bool device;
	int error = length_of(fd, &device, &r->map_len);

	if (error)
		return error;
	if (device) {
		if (r->map_len < HEADER + RECORDING_OP)
			return -ENOSPC;
		r->room = (r->map_len - HEADER) / RECORDING_OP;
	} else {
		r->room = ops;
		r->map_len = HEADER + ops * RECORDING_OP;
		/* Room now: a store into a hole of a full disk would be a SIGBUS. */
		error = live_fails(FAIL_FILE_WRITE) ? -ENOSPC
						    : -posix_fallocate(fd, 0, (off_t)r->map_len);
		if (error)
			return error;
	}
	r->map = mmap(NULL, r->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r->map == MAP_FAILED)
		return -errno;
	if (device)
		wipe(r->map, r->map_len);
	return 0;
}

int recording_create(struct recording **out, const char *path, uint64_t ops)
{
	struct recording *r;
	struct stat st;

	if (!ops || ops > (SIZE_MAX / 2 - HEADER) / RECORDING_OP)
		return -EINVAL;
	/* A device cannot be truncated, and does not like to be asked. */
	bool file = stat(path, &st) || S_ISREG(st.st_mode);
	if (live_fails(FAIL_FILE_OPEN))
		return -EACCES;
	int fd = open(path, O_RDWR | O_CLOEXEC | (file ? O_CREAT | O_TRUNC : 0), 0644);
	if (fd < 0)
		return -errno;
	r = calloc(1, sizeof(*r));
	int error = r ? create_map(r, fd, ops) : -ENOMEM;
	close(fd);
	if (error) {
		free(r);
		return error;
	}
	r->text = (char *)r->map + snprintf((char *)r->map, HEADER, MAGIC "room %llu\n",
					    (unsigned long long)r->room);
	r->op = (struct recording_op *)(r->map + HEADER);
	*out = r;
	return 0;
}

int recording_set_text(struct recording *r, const char *text)
{
	size_t room = HEADER - (size_t)(r->text - (char *)r->map);

	if (strlen(text) >= room)
		return -ENOSPC;
	strncpy(r->text, text, room);
	return 0;
}

void recording_close(struct recording *r)
{
	if (!r)
		return;
	munmap(r->map, r->map_len);
	free(r);
}

struct recording_op *recording_next(struct recording *r)
{
	uint64_t i = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed);

	return i < r->room ? &r->op[i] : NULL;
}

void recording_invoke(struct recording_op *op)
{
	__atomic_store_n(&op->invoked_ns, clock_ns(), __ATOMIC_RELEASE);
}

void recording_return(struct recording_op *op, int error)
{
	op->error = error;
	__atomic_store_n(&op->returned_ns, clock_ns(), __ATOMIC_RELEASE);
}

/* --- to read --- */

/* What a GET saw is written before `returned_ns`: until then it may be anything. */
const char *recording_op_wrong(const struct recording_op *op)
{
	if (op->kind > HISTORY_DEL)
		return "a kind from 0 to 2 (PUT, GET, DEL)";
	if (op->client < 1 || op->client > UINT8_MAX)
		return "a client from 1 to 255";
	if (op->boot < 1)
		return "a boot from 1";
	if (op->kind == HISTORY_PUT && (!op->value || op->vlen > TM_MAX_VALUE))
		return "a PUT's id and a length up to 65536 bytes";
	if (op->error > 0 || op->error < -ERROR_MAX)
		return "an error that is 0 or a negative errno";
	if (!op->returned_ns)
		return NULL;
	if (op->returned_ns < op->invoked_ns)
		return "a return that is not before the invocation";
	if (op->kind == HISTORY_GET && !op->error && op->found > 2)
		return "found from 0 to 2";
	return NULL;
}

static int check_header(struct recording *r, size_t offset, char *why, size_t n)
{
	char *page = (char *)r->map + offset, *end;
	const size_t len = r->map_len - offset;

	if (!memchr(page, 0, HEADER))
		return why_not(why, n, -EINVAL,
			       "the first page: expected a text that ends within 4096 bytes");
	page += strlen(MAGIC);
	if (strncmp(page, "room ", 5))
		return why_not(why, n, -EINVAL, "line 2: expected room and a number of records");
	errno = 0;
	r->room = strtoull(page + 5, &end, 10);
	if (errno || end == page + 5 || *end != '\n')
		return why_not(why, n, -EINVAL, "line 2: expected room and a number of records");
	if (r->room > (len - HEADER) / RECORDING_OP)
		return why_not(why, n, -EINVAL,
			       "record %zu: the file ends here, expected %llu records",
			       (len - HEADER) / RECORDING_OP + 1, (unsigned long long)r->room);
	r->text = end + 1;
	r->op = (struct recording_op *)(r->map + offset + HEADER);
	return 0;
}

static int check_records(struct recording *r, char *why, size_t n)
{
	for (uint64_t i = 0; i < r->room; i++) {
		if (!r->op[i].invoked_ns)
			continue;
		r->used = i + 1;
		const char *expected = recording_op_wrong(&r->op[i]);
		if (expected)
			return why_not(why, n, -EINVAL, "record %llu: expected %s",
				       (unsigned long long)i + 1, expected);
	}
	return 0;
}

static int check(struct recording *r, char *why, size_t n)
{
	static const size_t offsets[] = {0, DAX_OFFSET};

	for (unsigned i = 0; i < 2; i++) {
		if (r->map_len < offsets[i] + HEADER ||
		    memcmp(r->map + offsets[i], MAGIC, strlen(MAGIC)) != 0)
			continue;
		int error = check_header(r, offsets[i], why, n);
		return error ? error : check_records(r, why, n);
	}
	return why_not(why, n, -EINVAL,
		       "line 1: expected tidemark-recording 1, at the beginning or 2 MiB after it");
}

int recording_open(struct recording **out, const char *path, char *why, size_t n)
{
	struct recording *r = calloc(1, sizeof(*r));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool device;
	int error = fd < 0 ? -errno : !r ? -ENOMEM : length_of(fd, &device, &r->map_len);
	if (!error && live_fails(FAIL_FILE_READ))
		error = -EIO;
	if (!error && r->map_len < HEADER) {
		why_not(why, n, -EINVAL, "the first page is not whole: %zu bytes of %d", r->map_len,
			HEADER);
		free(r);
		close(fd);
		return -EINVAL;
	}
	if (!error) {
		/* Some devices can be mapped shared only. */
		r->map = mmap(NULL, r->map_len, PROT_READ, MAP_SHARED, fd, 0);
		error = r->map == MAP_FAILED ? -errno : 0;
	}
	if (fd >= 0)
		close(fd);
	if (error) {
		snprintf(why, n, "%s",
			 error == -EINVAL ? "neither a file nor a devdax device"
					  : strerror(-error));
		free(r);
		return error;
	}
	error = check(r, why, n);
	if (error) {
		recording_close(r);
		return error;
	}
	*out = r;
	return 0;
}

const char *recording_text(const struct recording *r)
{
	return r->text;
}

const struct recording_op *recording_ops(const struct recording *r, uint64_t *n)
{
	*n = r->used;
	return r->op;
}
