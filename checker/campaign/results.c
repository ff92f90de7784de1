/* SPDX-License-Identifier: BSD-3-Clause */
/* See results.h. */
#include "checker/campaign/results.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>
#include "core/array.h"

#define FORMAT	   2
#define BEGINS	   "{\"tidemark results\":"
#define LEVEL	   3
#define HEAD_MAX   ((size_t)1 << 20) /* bytes of the first line */
#define FILE_MAX   ((off_t)1 << 40)
#define RESULT_MAX (1u << 20) /* bytes */

/* In a file, before the packed bytes. */
struct record {
	uint32_t unit, packed; /* bytes that follow */
	uint64_t hash;	       /* of all else of this, and of these */
};

struct results_record {
	uint32_t unit, packed, file;
	char *bytes;
};

static int wrong(struct results *r, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int wrong(struct results *r, int error, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	return error;
}

static int failed(struct results *r, const char *path, int error)
{
	return wrong(r, error, "%s: %s", path, strerror(-error));
}

static uint64_t hash_of(struct record head, const char *bytes)
{
	head.hash = 0;
	return XXH3_64bits_withSeed(bytes, head.packed, XXH3_64bits(&head, sizeof(head)));
}

bool results_merges(const struct results *r)
{
	return r->out < 0;
}

/* --- the first line --- */

static bool number_of(const json_t *about, const char *key, json_int_t min, json_int_t max,
		      json_int_t *out)
{
	const json_t *value = json_object_get(about, key);
	*out = json_integer_value(value);
	return json_is_integer(value) && *out >= min && *out <= max;
}

static int read_about(struct results *r, struct results_file *f, const char *line, size_t len)
{
	json_error_t error;
	json_int_t format, shard, shards, units, bytes;
	f->about = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	if (!number_of(f->about, "tidemark results", 0, INT32_MAX, &format))
		return wrong(r, -EINVAL, "%s: expected a file of results (--results)", f->path);
	f->campaign = json_object_get(f->about, "campaign");
	f->shown = json_object_get(f->about, "shown");
	if (format != FORMAT || !f->campaign || !f->shown ||
	    !number_of(f->about, "shards", 1, RESULTS_SHARDS, &shards) ||
	    !number_of(f->about, "shard", 0, shards - 1, &shard) ||
	    !number_of(f->about, "units", 0, UINT32_MAX, &units) ||
	    !number_of(f->about, "bytes", 1, RESULT_MAX, &bytes))
		return wrong(r, -EINVAL, "%s: results that this tidemark does not read", f->path);
	f->shard = (unsigned)shard;
	f->shards = (unsigned)shards;
	return 0;
}

/* Are they results of the same campaign as the first file's? */
static int compare(struct results *r, const struct results_file *f)
{
	static const char *const keys[] = {"campaign", "units", "bytes"};
	const struct results_file *first = f;
	for (unsigned i = r->files; i--;)
		first = r->file[i].about ? &r->file[i] : first;
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!json_equal(json_object_get(f->about, keys[i]),
				json_object_get(first->about, keys[i])))
			return wrong(r, -EINVAL,
				     "%s: the results of another campaign, or of another build of "
				     "tidemark, than those of %s",
				     f->path, first->path);
	return 0;
}

/* --- reading --- */

static int add_record(struct results *r, const struct record *head, const char *bytes)
{
	if (!ARRAY_RESERVE(r->record, r->records, 1, r->room))
		return -ENOMEM;
	struct results_record *to = &r->record[r->records];
	*to = (struct results_record){.unit = head->unit,
				      .packed = head->packed,
				      .file = r->files,
				      .bytes = malloc(head->packed)};
	if (!to->bytes)
		return -ENOMEM;
	memcpy(to->bytes, bytes, head->packed);
	r->records++;
	return 0;
}

/* *used: where what is whole ends. */
static int read_records(struct results *r, struct results_file *f, const char *text, size_t len,
			size_t *used)
{
	struct record head;
	int error = 0;
	while (!error && len - *used >= sizeof(head)) {
		const char *bytes = text + *used + sizeof(head);
		memcpy(&head, text + *used, sizeof(head));
		if (head.packed <= ZSTD_COMPRESSBOUND(RESULT_MAX) &&
		    head.packed > len - *used - sizeof(head))
			return 0; /* its end was not written */
		if (head.packed > ZSTD_COMPRESSBOUND(RESULT_MAX) ||
		    head.hash != hash_of(head, bytes)) {
			f->damaged = *used;
			return 0;
		}
		error = add_record(r, &head, bytes);
		*used += sizeof(head) + head.packed;
	}
	return error;
}

static int read_all(int fd, char **text, size_t *len)
{
	struct stat st;
	size_t got = 0;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (st.st_size > FILE_MAX)
		return -EFBIG;
	*text = calloc((size_t)st.st_size + 1, 1);
	while (*text && got < (size_t)st.st_size) {
		ssize_t n = read(fd, *text + got, (size_t)st.st_size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	*len = got;
	return *text ? 0 : -ENOMEM;
}

static int read_text(struct results *r, struct results_file *f, const char *text, size_t len,
		     size_t *used)
{
	const char *end = memchr(text, '\n', len < HEAD_MAX ? len : HEAD_MAX);
	*used = 0;
	if (!len || (!end && len < HEAD_MAX && !strncmp(text, BEGINS, strlen(BEGINS))))
		return 0; /* of a shard that had not begun, or had no time to say so */
	if (!end)
		return wrong(r, -EINVAL, "%s: expected a file of results (--results)", f->path);
	int error = read_about(r, f, text, (size_t)(end - text));
	if (!error)
		error = compare(r, f);
	*used = (size_t)(end - text) + 1;
	return error ? error : read_records(r, f, text, len, used);
}

/* The file counts among r's even if it cannot be read. */
static int read_file(struct results *r, const char *path, int fd, size_t *used)
{
	struct results_file f = {.path = path};
	char *text = NULL;
	size_t len = 0;
	if (!ARRAY_ROOM_FOR_ONE(r->file, r->files))
		return failed(r, path, -ENOMEM);
	int error = read_all(fd, &text, &len);
	if (error == -EISDIR)
		wrong(r, error, "%s: a folder; expected a file of results (--results)", path);
	else if (error)
		failed(r, path, error);
	else
		error = read_text(r, &f, text, len, used);
	if (error && !r->why[0])
		failed(r, path, error);
	free(text);
	r->file[r->files++] = f;
	return error;
}

void results_open(struct results *r)
{
	*r = (struct results){.out = -1, .shards = 1};
}

int results_read(struct results *r, const char *path)
{
	size_t used;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return failed(r, path, -errno);
	int error = read_file(r, path, fd, &used);
	close(fd);
	return error;
}

/* --- writing --- */

static int write_all(struct results *r, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(r->out, bytes, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return failed(r, r->file[0].path, -errno);
		bytes += done;
		n -= (size_t)done;
	}
	return 0;
}

static int write_about(struct results *r)
{
	struct results_file *f = &r->file[0];
	json_object_set_new(f->about, "units", json_integer(r->units));
	json_object_set_new(f->about, "bytes", json_integer(r->bytes));
	char *text = json_dumps(f->about, JSON_COMPACT);
	if (!text)
		return failed(r, f->path, -ENOMEM);
	size_t len = strlen(text);
	text[len] = '\n'; /* in the place of its end */
	int error = len < HEAD_MAX ? write_all(r, text, len + 1)
				   : wrong(r, -E2BIG, "the command line is too long");
	free(text);
	return error;
}

/* Is what the file has of this shard? */
static int compare_shard(struct results *r, json_t *campaign)
{
	const struct results_file *f = &r->file[0];
	if (!json_equal(f->campaign, campaign))
		return wrong(r, -EINVAL,
			     "%s: has the results of another campaign, or of another build of "
			     "tidemark",
			     f->path);
	if (f->shard != r->shard || f->shards != r->shards)
		return wrong(r, -EINVAL, "%s: has the results of shard %u/%u, not of %u/%u",
			     f->path, f->shard, f->shards, r->shard, r->shards);
	return 0;
}

/* After what is whole. */
static int go_on(struct results *r, size_t used)
{
	if (ftruncate(r->out, (off_t)used) || lseek(r->out, (off_t)used, SEEK_SET) < 0)
		return failed(r, r->file[0].path, -errno);
	r->file[0].damaged = 0;
	return 0;
}

static json_t *make_about(const struct results *r, json_t *campaign, json_t *shown)
{
	return json_pack("{s:i, s:O, s:O, s:I, s:I}", "tidemark results", FORMAT, "campaign",
			 campaign, "shown", shown, "shard", (json_int_t)r->shard, "shards",
			 (json_int_t)r->shards);
}

int results_open_shard(struct results *r, const char *path, json_t *campaign, json_t *shown,
		       unsigned shard, unsigned shards)
{
	size_t used;
	assert(shard < shards && shards <= RESULTS_SHARDS);
	*r = (struct results){.shard = shard, .shards = shards};
	r->out = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (r->out < 0)
		return failed(r, path, -errno);
	/* Some file systems have no locks: then it is for the caller to write a file once. */
	if (flock(r->out, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return wrong(r, -EBUSY, "%s: another process is writing to it", path);
	int error = read_file(r, path, r->out, &used);
	if (!error && r->file[0].about)
		error = compare_shard(r, campaign);
	if (!error)
		error = go_on(r, used);
	if (!error && !r->file[0].about) {
		r->file[0].about = make_about(r, campaign, shown);
		r->file[0].shard = shard;
		r->file[0].shards = shards;
		error = r->file[0].about ? 0 : failed(r, path, -ENOMEM);
	}
	return error;
}

int results_keep(struct results *r, unsigned unit, const void *result)
{
	struct record head = {.unit = unit};
	size_t packed = ZSTD_compress(r->packed + sizeof(head), ZSTD_compressBound(r->bytes),
				      result, r->bytes, LEVEL);
	assert(!results_merges(r));
	if (ZSTD_isError(packed))
		return failed(r, r->file[0].path, -ENOMEM);
	head.packed = (uint32_t)packed;
	head.hash = hash_of(head, r->packed + sizeof(head));
	memcpy(r->packed, &head, sizeof(head));
	int error = write_all(r, r->packed, sizeof(head) + packed);
	r->missing -= !error;
	return error;
}

/* --- units --- */

static unsigned shard_of(const struct results *r, unsigned unit, unsigned shards)
{
	return (r->place ? r->place[unit] : unit) % shards;
}

bool results_knows(const struct results *r, unsigned unit)
{
	return r->of_unit[unit];
}

bool results_wants(const struct results *r, unsigned unit)
{
	return !results_merges(r) && !results_knows(r, unit) &&
	       shard_of(r, unit, r->shards) == r->shard;
}

static int unpack(struct results *r, const struct results_record *from, void *result)
{
	size_t n = ZSTD_decompress(result, r->bytes, from->bytes, from->packed);
	if (n == r->bytes)
		return 0;
	return wrong(r, -EINVAL, "%s: the result of unit %u has another size than expected",
		     r->file[from->file].path, from->unit);
}

int results_take(struct results *r, unsigned unit, void *result)
{
	assert(results_knows(r, unit));
	return unpack(r, &r->record[r->of_unit[unit] - 1], result);
}

/* There are two results of one unit, whose shard was run twice. */
static int compare_results(struct results *r, const struct results_record *one,
			   const struct results_record *other,
			   bool (*same)(const void *a, const void *b))
{
	char *a = calloc(1, r->bytes), *b = calloc(1, r->bytes);
	int error = a && b ? 0 : failed(r, r->file[one->file].path, -ENOMEM);
	if (!error)
		error = unpack(r, one, a);
	if (!error)
		error = unpack(r, other, b);
	if (!error && !(same ? same(a, b) : !memcmp(a, b, r->bytes)))
		error = wrong(r, -EINVAL, "unit %u has one result in %s and another in %s",
			      one->unit, r->file[one->file].path, r->file[other->file].path);
	free(a);
	free(b);
	return error;
}

static int find_units(struct results *r, bool (*same)(const void *a, const void *b))
{
	int error = 0;
	for (unsigned i = 0; i < r->records && !error; i++) {
		const struct results_record *one = &r->record[i];
		const struct results_file *f = &r->file[one->file];
		if (one->unit >= r->units || shard_of(r, one->unit, f->shards) != f->shard) {
			error = wrong(r, -EINVAL, "%s: unit %u is none of shard %u/%u", f->path,
				      one->unit, f->shard, f->shards);
		} else if (results_knows(r, one->unit)) {
			error = compare_results(r, &r->record[r->of_unit[one->unit] - 1], one,
						same);
		} else {
			r->of_unit[one->unit] = i + 1;
			r->known++;
		}
	}
	return error;
}

/* Do the files have results of the campaign that is run? */
static int compare_units(struct results *r)
{
	json_int_t units, bytes;
	for (unsigned i = 0; i < r->files; i++) {
		const json_t *about = r->file[i].about;
		if (about && json_object_get(about, "units") &&
		    (!number_of(about, "units", r->units, r->units, &units) ||
		     !number_of(about, "bytes", r->bytes, r->bytes, &bytes)))
			return wrong(r, -EINVAL, "%s: has results of other units", r->file[i].path);
	}
	return 0;
}

int results_begin(struct results *r, unsigned units, size_t bytes, unsigned *place,
		  bool (*same)(const void *a, const void *b))
{
	assert(bytes && bytes <= RESULT_MAX);
	assert(!r->of_unit);
	r->units = units;
	r->bytes = (uint32_t)bytes;
	r->place = place;
	r->of_unit = calloc((size_t)units + 1, sizeof(*r->of_unit));
	r->packed = malloc(sizeof(struct record) + ZSTD_compressBound(bytes));
	if (!r->of_unit || !r->packed)
		return wrong(r, -ENOMEM, "%s", strerror(ENOMEM));
	int error = compare_units(r);
	if (!error)
		error = find_units(r, same);
	if (!error && !results_merges(r) && !json_object_get(r->file[0].about, "units"))
		error = write_about(r);
	for (unsigned u = 0; u < units; u++)
		r->missing += results_merges(r) ? !results_knows(r, u) : results_wants(r, u);
	return error;
}

/* --- the whole --- */

bool results_lacks(const struct results *r, unsigned shard, unsigned shards)
{
	for (unsigned u = 0; u < r->units; u++)
		if (!results_knows(r, u) && shard_of(r, u, shards) == shard)
			return true;
	return false;
}

void results_close(struct results *r)
{
	if (r->out >= 0)
		close(r->out);
	for (unsigned i = 0; i < r->files; i++)
		json_decref(r->file[i].about);
	for (unsigned i = 0; i < r->records; i++)
		free(r->record[i].bytes);
	free(r->file);
	free(r->record);
	free(r->of_unit);
	free(r->place);
	free(r->packed);
	results_open(r);
}
