/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader of recorded operation lists; docs/ops-file.md is the format.
 *
 * The input comes from other people's programs, so nothing about it is believed:
 * file and lines have limits, every byte is looked at, and reading stops at the first
 * error, which says what was there and what should have been.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "scenarios/workload/workload.h"
#include "core/text/text.h"

#define LINE_MAX_BYTES 4096 /* without its end */
#define FILE_MAX_BYTES (1 << 24)
#define OPS_FILE_KEYS  64 /* every key is read back after every crash */
/* client, operation, key, length; operations of a store's own have more keys, or none */
#define FIELDS (3 + TM_CALL_KEYS)
#define PLAIN  4 /* of the others */

struct ops_reader {
	struct text text;
	struct workload *w;
};

/* A field of a line; empty between two commas. */
struct field {
	const char *text;
	size_t len;
};

static struct text_shown show(struct field field)
{
	return text_show_part(field.text, field.len);
}

/* The next line, without its comment. 1: there is one; 0: end of the input; -EINVAL. */
static int read_line(struct ops_reader *r, char **line)
{
	int rc = text_line(&r->text, line);
	if (rc <= 0)
		return rc;
	char *comment = memchr(*line, '#', r->text.len);
	if (text_check_bytes(&r->text, *line, comment))
		return -EINVAL;
	if (comment)
		*comment = '\0';
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

		if (n < FIELDS)
			field[n] = (struct field){p, len};
		n++;
		p += len;
		p += strspn(p, " \t");
		bool comma = *p == ',';
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
static int number(struct ops_reader *r, const char *what, struct field field, unsigned min,
		  unsigned max, unsigned *out)
{
	uint64_t n = 0;

	if (!field.len)
		return text_wrong(&r->text, "%s is missing; expected a number from %u to %u", what,
				  min, max);
	if (strspn(field.text, "0123456789") < field.len)
		return text_wrong(&r->text, "%s %s is not a number; expected %u to %u", what,
				  show(field).text, min, max);
	const char *end = text_digits(field.text, max, &n);
	if (!end)
		return text_wrong(&r->text, "%s %s is too large; expected %u to %u", what,
				  show(field).text, min, max);
	if (n < min)
		return text_wrong(&r->text, "%s %s is too small; expected %u to %u", what,
				  show(field).text, min, max);
	*out = (unsigned)n;
	return 0;
}

/* Index of the key, or -errno. */
static int add_key(struct ops_reader *r, struct field field, int32_t loaded)
{
	if (!field.len)
		return text_wrong(&r->text, "the key is missing; expected 1 to %d characters",
				  TM_MAX_KEY);
	if (field.len > TM_MAX_KEY)
		return text_wrong(&r->text, "key %s has %zu bytes; expected at most %d",
				  show(field).text, field.len, TM_MAX_KEY);
	int key = workload_key_find(r->w, field.text, field.len);
	if (key >= 0)
		return loaded < 0
			       ? key
			       : text_wrong(&r->text, "key %s is loaded twice", show(field).text);
	if (r->w->keys >= OPS_FILE_KEYS)
		return text_wrong(&r->text, "more than %d keys; split the list", OPS_FILE_KEYS);
	key = workload_key_add(r->w, field.text, field.len, loaded);
	assert(key >= 0 || key == -ENOMEM);
	return key;
}

/* "load key length" */
static int read_load(struct ops_reader *r, const struct field *field, unsigned fields)
{
	unsigned vlen;

	if (workload_ops(r->w))
		return text_wrong(&r->text, "'load' after the first operation; expected it before");
	if (fields < 3)
		return text_wrong(&r->text, "%u field%s; expected three: load, key, length", fields,
				  plural(fields));
	if (fields > 3)
		return text_wrong(&r->text,
				  "extra field %s; expected three fields: load, key, length",
				  show(field[3]).text);
	int rc = number(r, "length", field[2], 0, TM_MAX_VALUE, &vlen);
	if (!rc)
		rc = add_key(r, field[1], (int32_t)vlen);
	return rc < 0 ? rc : 0;
}

/* Fields after the key: a length for put; for the others none, an empty one or "-". */
static int read_vlen(struct ops_reader *r, enum op_kind kind, const struct field *field,
		     unsigned fields, unsigned *vlen)
{
	*vlen = 0;
	if (fields > PLAIN)
		return text_wrong(
			&r->text,
			"%u fields; expected at most four: client, operation, key, length", fields);
	if (kind == OP_PUT) {
		if (fields < 4)
			return text_wrong(
				&r->text,
				"the length is missing; expected four fields: client, put, "
				"key, length");
		return number(r, "length", field[3], 0, TM_MAX_VALUE, vlen);
	}
	if (fields == 4 && field[3].len && !is(field[3], "-"))
		return text_wrong(&r->text, "extra field %s; only put has a length",
				  show(field[3]).text);
	return 0;
}

static int added(struct ops_reader *r, int rc)
{
	if (rc == -ENOSPC)
		return text_wrong(&r->text, "more than %d operations; split the list",
				  WORKLOAD_MAX_OPS);
	assert(!rc || rc == -ENOMEM);
	return rc;
}

static int add_op(struct ops_reader *r, unsigned client, enum op_kind kind, unsigned key,
		  uint32_t vlen)
{
	return added(r, workload_op_add(r->w, client, kind, key, vlen));
}

/* "client swap key key length": one of the store's own. */
static int read_call(struct ops_reader *r, unsigned client, unsigned call,
		     const struct field *field, unsigned fields)
{
	const struct tm_call_type *t = &r->w->calls[call];
	struct workload_op op = {.kind = OP_CALL, .call = (uint8_t)call};
	int key, rc;

	if (fields != 2 + t->keys + t->value)
		return text_wrong(&r->text, "%u fields; expected client, %s, %u key%s%s", fields,
				  t->name, t->keys, plural(t->keys), t->value ? ", length" : "");
	for (unsigned k = 0; k < t->keys; k++) {
		key = add_key(r, field[2 + k], -1);
		if (key < 0)
			return key;
		op.keys[k] = (uint16_t)key;
	}
	if (t->value) {
		unsigned vlen;
		rc = number(r, "length", field[2 + t->keys], 0, TM_MAX_VALUE, &vlen);
		if (rc)
			return rc;
		op.vlen = vlen;
	}
	return added(r, workload_op_append(r->w, client, &op));
}

/* "client T{get key, put key length}": a transaction, as traces have it. */
static int read_txn(struct ops_reader *r, unsigned client, const char *words)
{
	const char *expected;
	int rc = workload_parse_client(r->w, client, words, &expected);
	if (rc == -EINVAL || rc == -ENOSPC)
		return text_wrong(&r->text, "transaction %s; expected %s", text_show(words).text,
				  expected);
	if (!rc && r->w->keys > OPS_FILE_KEYS)
		return text_wrong(&r->text, "more than %d keys; split the list", OPS_FILE_KEYS);
	return rc;
}

#define OPERATIONS "put, get, del, clean, leave, die or pause"

/* "client clean", or another that concerns no key */
static int read_keyless(struct ops_reader *r, unsigned client, enum op_kind kind,
			const struct field *field, unsigned fields)
{
	for (unsigned i = 2; i < fields; i++)
		if (i >= FIELDS || (field[i].len && !is(field[i], "-")))
			return text_wrong(&r->text,
					  "extra field; %s has neither a key nor a length",
					  show(field[1]).text);
	return add_op(r, client, kind, 0, 0);
}

/* "client op key length" */
static int read_op(struct ops_reader *r, const struct field *field, unsigned fields)
{
	enum op_kind kind;
	unsigned client, vlen;
	int rc = number(r, "client", field[0], 1, TM_MAX_CLIENTS, &client);
	if (rc)
		return rc;
	if (fields < 2)
		return text_wrong(&r->text, "the operation is missing; expected " OPERATIONS);
	if (field[1].len > 1 && !memcmp(field[1].text, "T{", 2))
		return read_txn(r, client, field[1].text);
	for (unsigned i = 0; r->w->calls && r->w->calls[i].name; i++)
		if (is(field[1], r->w->calls[i].name))
			return read_call(r, client, i, field, fields);
	if (is(field[1], "put"))
		kind = OP_PUT;
	else if (is(field[1], "get"))
		kind = OP_GET;
	else if (is(field[1], "del"))
		kind = OP_DEL;
	else if (is(field[1], "clean"))
		kind = OP_CLEAN;
	else if (is(field[1], "leave"))
		kind = OP_LEAVE;
	else if (is(field[1], "die"))
		kind = OP_DIE;
	else if (is(field[1], "pause"))
		kind = OP_PAUSE;
	else
		return text_wrong(&r->text, "operation %s; expected %s" OPERATIONS,
				  show(field[1]).text,
				  r->w->calls ? "one of the store's own, " : "");
	if (!workload_op_keyed(kind))
		return read_keyless(r, client, kind, field, fields);
	if (fields < 3)
		return text_wrong(&r->text, "the key is missing; expected 1 to %d characters",
				  TM_MAX_KEY);
	rc = read_vlen(r, kind, field, fields, &vlen);
	if (rc)
		return rc;
	int key = add_key(r, field[2], -1);
	if (key < 0)
		return key;
	return add_op(r, client, kind, (unsigned)key, vlen);
}

static int read_lines(struct ops_reader *r)
{
	char *line;
	int rc;

	while ((rc = read_line(r, &line)) > 0) {
		struct field field[FIELDS] = {{NULL, 0}};
		unsigned fields = split(line, field);

		if (!fields)
			continue;
		rc = is(field[0], "load") ? read_load(r, field, fields) : read_op(r, field, fields);
		if (rc)
			return rc;
	}
	if (!rc && !workload_ops(r->w)) {
		r->text.line = 0; /* the input as a whole */
		return text_wrong(&r->text, "no operations; expected lines such as: 1 put k1 160");
	}
	return rc;
}

int workload_read_ops(FILE *in, struct workload *w, struct input_error *err)
{
	struct ops_reader r = {.w = w};
	size_t len;
	int rc = 0;

	assert(!w->keys && !w->clients);
	char *bytes = text_read(in, FILE_MAX_BYTES, &len, err, &rc);
	if (!bytes)
		return rc == -ENOMEM ? rc : -EIO;
	text_start(&r.text, bytes, len, err);
	r.text.max = LINE_MAX_BYTES;
	rc = read_lines(&r);
	if (!rc && len > FILE_MAX_BYTES)
		rc = text_wrong(&r.text, "more than %d bytes; split the list", FILE_MAX_BYTES);
	if (rc == -ENOMEM)
		text_wrong(&r.text, "not enough memory");
	free(bytes);
	if (rc) {
		workload_free(w);
		return rc;
	}
	snprintf(w->name, sizeof(w->name), "ops");
	return 0;
}
