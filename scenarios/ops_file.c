/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader of recorded operation lists; docs/ops-file.md is the format.
 *
 * The input comes from other people's programs, so nothing about it is believed:
 * a line is read into a fixed buffer, every byte is looked at, and reading stops
 * at the first error, which says what stood there and what should have. What stood
 * there is shown shortened and printable.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include "scenarios/workload.h"

#define LINE_MAX_BYTES 4096 /* without its end */
#define OPS_FILE_KEYS  64   /* every key is read back after every crash */
#define FIELDS	       4    /* client, operation, key, length */

struct reader {
	FILE *in;
	struct workload *w;
	struct input_error *err;
	unsigned line; /* from 1 */
	char text[LINE_MAX_BYTES + 1];
	size_t len;
};

/* A field of a line; empty between two commas. */
struct field {
	const char *text;
	size_t len;
};

/* Says what is wrong with the current line. */
__attribute__((format(printf, 2, 3))) static int wrong(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	r->err->line = r->line;
	va_start(ap, fmt);
	vsnprintf(r->err->message, sizeof(r->err->message), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* A field for a message: at most this many characters of it, then "...". */
#define SHOWN 32

struct shown {
	char text[SHOWN + 6];
};

static struct shown show(struct field field)
{
	struct shown s;
	size_t n = field.len <= SHOWN ? field.len : SHOWN;

	snprintf(s.text, sizeof(s.text), "'%.*s%s'", (int)n, field.text,
		 n < field.len ? "..." : "");
	return s;
}

/* Check a byte of a line; blanks are ' ' and '\t'. Comments may be in any language. */
static int check_byte(struct reader *r, unsigned char c, bool comment)
{
	if (c == '\0')
		return wrong(r, "a NUL byte; expected text");
	if (c == '\t' || (c >= ' ' && c < 0x7f) || (c >= 0x80 && comment))
		return 0;
	return wrong(r, "byte 0x%02x at column %zu; expected printable ASCII characters%s", c,
		     r->len + 1, comment ? " or UTF-8" : "");
}

/* Read a line, without its end and its comment. 1: there is one; 0: end of the input; -errno. */
static int read_line(struct reader *r)
{
	bool comment = false;
	size_t kept = 0;
	int c, next;

	r->len = 0;
	errno = 0;
	c = getc(r->in);
	if (c != EOF)
		r->line++;
	for (; c != EOF && c != '\n'; c = getc(r->in)) {
		if (c == '\r') {
			next = getc(r->in);
			if (next == '\n' || next == EOF)
				break;
			ungetc(next, r->in);
		}
		if (r->len == LINE_MAX_BYTES)
			return wrong(r, "a line of more than %d bytes", LINE_MAX_BYTES);
		comment |= c == '#';
		if (check_byte(r, (unsigned char)c, comment))
			return -EINVAL;
		r->text[r->len++] = (char)c;
		kept += !comment;
	}
	if (ferror(r->in)) {
		wrong(r, "reading failed: %s", strerror(errno ? errno : EIO));
		return -EIO;
	}
	if (c == EOF && !r->len)
		return 0;
	r->text[kept] = '\0';
	return 1;
}

/* Cut the line into fields: how many there are, of which FIELDS are kept. */
static unsigned split(const char *p, struct field *field)
{
	unsigned n = 0;

	p += strspn(p, " \t");
	if (!*p)
		return 0;
	for (;;) {
		size_t len = strcspn(p, " \t,");
		bool comma;

		if (n < FIELDS)
			field[n] = (struct field){p, len};
		n++;
		p += len;
		p += strspn(p, " \t");
		comma = *p == ',';
		p += comma;
		p += strspn(p, " \t");
		if (!*p) {
			if (comma && n < FIELDS)
				field[n] = (struct field){p, 0};
			return n + comma;
		}
	}
}

static bool is(struct field field, const char *word)
{
	return field.len == strlen(word) && !strncasecmp(field.text, word, field.len);
}

/* A decimal number from min to max. */
static int number(struct reader *r, const char *what, struct field field, unsigned min,
		  unsigned max, unsigned *out)
{
	unsigned n = 0;

	if (!field.len)
		return wrong(r, "%s is missing; expected a number from %u to %u", what, min, max);
	for (size_t i = 0; i < field.len; i++) {
		if (field.text[i] < '0' || field.text[i] > '9')
			return wrong(r, "%s %s is not a number; expected %u to %u", what,
				     show(field).text, min, max);
		n = n * 10 + (unsigned)(field.text[i] - '0');
		if (n > max)
			return wrong(r, "%s %s is too large; expected %u to %u", what,
				     show(field).text, min, max);
	}
	if (n < min)
		return wrong(r, "%s %s is too small; expected %u to %u", what, show(field).text,
			     min, max);
	*out = n;
	return 0;
}

/* Index of the key, or -errno. */
static int add_key(struct reader *r, struct field field, int32_t loaded)
{
	int key;

	if (!field.len)
		return wrong(r, "the key is missing; expected 1 to %d characters", TM_MAX_KEY);
	if (field.len > TM_MAX_KEY)
		return wrong(r, "key %s has %zu bytes; expected at most %d", show(field).text,
			     field.len, TM_MAX_KEY);
	key = workload_key_find(r->w, field.text, field.len);
	if (key >= 0)
		return loaded < 0 ? key : wrong(r, "key %s is loaded twice", show(field).text);
	if (r->w->keys >= OPS_FILE_KEYS)
		return wrong(r, "more than %d keys; split the list", OPS_FILE_KEYS);
	key = workload_key_add(r->w, field.text, field.len, loaded);
	assert(key >= 0 || key == -ENOMEM);
	return key;
}

/* "load key length" */
static int read_load(struct reader *r, const struct field *field, unsigned fields)
{
	unsigned vlen;
	int rc;

	if (workload_ops(r->w))
		return wrong(r, "'load' after the first operation; expected it before");
	if (fields < 3)
		return wrong(r, "%u field%s; expected three: load, key, length", fields,
			     fields == 1 ? "" : "s");
	if (fields > 3)
		return wrong(r, "extra field %s; expected three fields: load, key, length",
			     show(field[3]).text);
	rc = number(r, "length", field[2], 0, TM_MAX_VALUE, &vlen);
	if (!rc)
		rc = add_key(r, field[1], (int32_t)vlen);
	return rc < 0 ? rc : 0;
}

/* Fields behind the key: a length for put; for the others none, an empty one or "-". */
static int read_vlen(struct reader *r, enum op_kind kind, const struct field *field,
		     unsigned fields, unsigned *vlen)
{
	*vlen = 0;
	if (fields > FIELDS)
		return wrong(r, "%u fields; expected at most four: client, operation, key, length",
			     fields);
	if (kind == OP_PUT) {
		if (fields < 4)
			return wrong(r, "the length is missing; expected four fields: client, put, "
					"key, length");
		return number(r, "length", field[3], 0, TM_MAX_VALUE, vlen);
	}
	if (fields == 4 && field[3].len && !is(field[3], "-"))
		return wrong(r, "extra field %s; only put has a length", show(field[3]).text);
	return 0;
}

static int add_op(struct reader *r, unsigned client, enum op_kind kind, unsigned key, uint32_t vlen)
{
	int rc = workload_op_add(r->w, client, kind, key, vlen);

	if (rc == -ENOSPC)
		return wrong(r, "more than %d operations; split the list", WORKLOAD_MAX_OPS);
	assert(!rc || rc == -ENOMEM);
	return rc;
}

/* "client clean" */
static int read_clean(struct reader *r, unsigned client, const struct field *field, unsigned fields)
{
	for (unsigned i = 2; i < fields; i++)
		if (i >= FIELDS || (field[i].len && !is(field[i], "-")))
			return wrong(r, "extra field; clean has neither a key nor a length");
	return add_op(r, client, OP_CLEAN, 0, 0);
}

/* "client op key length" */
static int read_op(struct reader *r, const struct field *field, unsigned fields)
{
	enum op_kind kind;
	unsigned client, vlen;
	int key, rc;

	rc = number(r, "client", field[0], 1, TM_MAX_CLIENTS, &client);
	if (rc)
		return rc;
	if (fields < 2)
		return wrong(r, "the operation is missing; expected put, get, del or clean");
	if (is(field[1], "put"))
		kind = OP_PUT;
	else if (is(field[1], "get"))
		kind = OP_GET;
	else if (is(field[1], "del"))
		kind = OP_DEL;
	else if (is(field[1], "clean"))
		return read_clean(r, client, field, fields);
	else
		return wrong(r, "operation %s; expected put, get, del or clean",
			     show(field[1]).text);
	if (fields < 3)
		return wrong(r, "the key is missing; expected 1 to %d characters", TM_MAX_KEY);
	rc = read_vlen(r, kind, field, fields, &vlen);
	if (rc)
		return rc;
	key = add_key(r, field[2], -1);
	if (key < 0)
		return key;
	return add_op(r, client, kind, (unsigned)key, vlen);
}

int workload_read_ops(FILE *in, struct workload *w, struct input_error *err)
{
	struct reader r = {.in = in, .w = w, .err = err};
	int rc;

	assert(!w->keys && !w->clients);
	memset(err, 0, sizeof(*err));
	while ((rc = read_line(&r)) > 0) {
		struct field field[FIELDS] = {{NULL, 0}};
		unsigned fields = split(r.text, field);

		if (!fields)
			continue;
		rc = is(field[0], "load") ? read_load(&r, field, fields)
					  : read_op(&r, field, fields);
		if (rc)
			break;
	}
	if (rc == -ENOMEM)
		wrong(&r, "not enough memory");
	if (!rc && !workload_ops(w)) {
		r.line = 0;
		rc = wrong(&r, "no operations; expected lines such as: 1 put k1 160");
	}
	if (rc) {
		workload_free(w);
		return rc;
	}
	snprintf(w->name, sizeof(w->name), "ops");
	return 0;
}
