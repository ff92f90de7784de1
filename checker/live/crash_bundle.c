/* SPDX-License-Identifier: BSD-3-Clause */
/* See crash_bundle.h. A file is checked like any other input. */
#include "checker/live/crash_bundle.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "checker/judge/names.h"
#include "core/text/text.h"

#define MAGIC "tidemark-cut 1\n"
#define LEVEL 6

/* --- the body --- */

struct sizes {
	size_t pool, lines, ops, start;
};

static size_t body_bytes(const struct sizes *s)
{
	return POOL_TEXT + s->pool + s->lines * (sizeof(uint32_t) + TM_LINE) +
	       s->ops * sizeof(struct recording_op) + s->start;
}

static uint8_t *append(uint8_t *at, const void *bytes, size_t len)
{
	if (len)
		memcpy(at, bytes, len);
	return at + len;
}

static int write_body(FILE *out, const struct cut *c, const struct sizes *s, const char *start)
{
	const size_t len = body_bytes(s), room = ZSTD_compressBound(len);
	uint8_t *body = malloc(len), *packed = malloc(room), *at = body;
	ZSTD_CCtx *z = ZSTD_createCCtx();
	int error = -ENOMEM;

	if (body && packed && z) {
		at = append(at, c->text, POOL_TEXT);
		at = append(at, c->pool, s->pool);
		at = append(at, c->line, s->lines * sizeof(uint32_t));
		at = append(at, c->held, s->lines * TM_LINE);
		at = append(at, c->op, s->ops * sizeof(struct recording_op));
		append(at, start, s->start);
		ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, LEVEL);
		ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
		size_t n = ZSTD_compress2(z, packed, room, body, len);
		if (!ZSTD_isError(n))
			error = fwrite(packed, 1, n, out) == n ? 0 : -EIO;
	}
	ZSTD_freeCCtx(z);
	free(body);
	free(packed);
	return error;
}

int crash_bundle_write(FILE *out, const void *bundle)
{
	const struct crash_bundle *a = bundle;
	const struct cut *c = &a->cut;
	struct sizes s = {.pool = c->len, .lines = c->lines, .ops = c->ops};
	const struct exam stood = {
		.last = c->start_boot, .keys = (unsigned)c->starts, .shown = c->start};
	char *start = c->started ? TEXT_PRINTED(to, exam_print_start(to, &stood)) : NULL;
	int error = c->started && !start ? -ENOMEM : 0;

	s.start = start ? strlen(start) : 0;
	if (!error) {
		fprintf(out,
			MAGIC "store %s\nvariant %s\nboot %" PRIu32 "\nseed %" PRIu64 "\ncuts %u\n",
			c->store.store->name, c->store.variant, c->boot, a->options.seed,
			a->options.cuts);
		if (a->contract < 0)
			fprintf(out, "broken none\n");
		else
			fprintf(out, "broken %s %s\n", contract_name((enum tm_contract)a->contract),
				a->happened ? "happened" : "possible");
		fprintf(out, "says %s\nlines %zu\ncached %d\noperations %zu\nstart %zu\n\n",
			a->says, s.lines, c->cached, s.ops, s.start);
		error = write_body(out, c, &s, start);
	}
	free(start);
	return error;
}

/* --- reading --- */

static int read_broken(struct text *t, struct crash_bundle *a)
{
	static const char expected[] =
		"broken, a contract, and happened or possible; or broken none";
	char *rest = text_field(t, "broken", expected);

	a->contract = -1;
	if (!rest)
		return -EINVAL;
	if (!strcmp(rest, "none"))
		return 0;
	a->contract = contract_parse(text_word(&rest));
	a->happened = !strcmp(rest, "happened");
	return a->contract >= 0 && (a->happened || !strcmp(rest, "possible"))
		       ? 0
		       : text_wrong(t, "expected %s", expected);
}

static int read_sizes(struct text *t, struct crash_bundle *a, struct sizes *s)
{
	uint64_t lines, cached, ops, start;

	if (text_field_number(t, "lines", 0, CRASH_BUNDLE_MAX / TM_LINE, "lines and their number",
			      &lines) ||
	    text_field_number(t, "cached", 0, 1, "cached 0 or cached 1", &cached) ||
	    text_field_number(t, "operations", 0, CRASH_BUNDLE_MAX / RECORDING_OP,
			      "operations and their number", &ops) ||
	    text_field_number(t, "start", 0, CRASH_BUNDLE_MAX, "start and its bytes", &start))
		return -EINVAL;
	a->cut.cached = cached;
	*s = (struct sizes){.lines = lines, .ops = ops, .start = start};
	return 0;
}

/* The lines before the body. */
static int read_head(struct text *t, struct crash_bundle *a, struct sizes *s, const char **store)
{
	uint64_t boot, seed, cuts;
	const char *version = text_field(t, "tidemark-cut", "tidemark-cut 1");
	char *empty;

	if (!version)
		return -EINVAL;
	if (strcmp(version, "1"))
		return text_wrong(t, "expected tidemark-cut 1");
	*store = text_field(t, "store", "store and its name");
	if (!*store || !text_field(t, "variant", "variant and its name") ||
	    text_field_number(t, "boot", 0, UINT32_MAX, "boot and a number", &boot) ||
	    text_field_number(t, "seed", 0, UINT64_MAX, "seed and a number", &seed) ||
	    text_field_number(t, "cuts", 0, EXAM_CUTS, "cuts and a number", &cuts) ||
	    read_broken(t, a))
		return -EINVAL;
	const char *says = text_field(t, "says", "says and a sentence");
	if (!says || read_sizes(t, a, s))
		return -EINVAL;
	snprintf(a->says, sizeof(a->says), "%s", says);
	a->options = (struct exam_options){seed, (unsigned)cuts};
	a->cut.boot = (uint32_t)boot;
	if (t->at == t->end || *t->at != '\n') {
		t->line++;
		return text_wrong(t, "expected an empty line");
	}
	return text_line(t, &empty) > 0 ? 0 : -EINVAL;
}

static bool lines_fit(const struct cut *c)
{
	for (size_t i = 0; i < c->lines; i++)
		if (c->line[i] >= c->len / TM_LINE || (i && c->line[i] <= c->line[i - 1]))
			return false;
	return true;
}

static void *copy(uint8_t **at, size_t len)
{
	void *bytes = malloc(len + 1);

	if (bytes)
		memcpy(bytes, *at, len);
	*at += len;
	return bytes;
}

/* The body is unpacked, all of its `len` bytes. */
static int take_body(struct text *t, struct crash_bundle *a, uint8_t *body, size_t len,
		     struct sizes *s)
{
	struct cut *c = &a->cut;
	uint32_t boot = c->boot;
	uint8_t *at = body + POOL_TEXT;
	char why[400];

	memcpy(c->text, body, POOL_TEXT);
	c->text[POOL_TEXT - 1] = '\0';
	if (cut_parse(c, "the media", why, sizeof(why)))
		return text_wrong(t, "%s", why);
	c->boot = boot;
	s->pool = c->len;
	if (body_bytes(s) != len)
		return text_wrong(t, "expected %zu bytes when it is unpacked, here are %zu",
				  body_bytes(s), len);
	c->lines = s->lines;
	c->pool = copy(&at, s->pool);
	c->line = copy(&at, s->lines * sizeof(uint32_t));
	c->held = copy(&at, s->lines * TM_LINE);
	struct recording_op *ops = copy(&at, s->ops * sizeof(*ops));
	char *start = copy(&at, s->start);
	int error = c->pool && c->line && c->held && ops && start && !cut_add_ops(c, ops, s->ops)
			    ? 0
			    : -ENOMEM;
	if (!error && !lines_fit(c))
		error = text_wrong(t, "expected lines of the pool in their order");
	for (size_t i = 0; i < c->ops && !error; i++) {
		const char *expected = recording_op_wrong(&c->op[i]);

		if (expected)
			error = text_wrong(t, "operation %zu: expected %s", i + 1, expected);
	}
	if (!error && s->start) {
		start[s->start] = '\0';
		error = cut_parse_start(c, "where keys stood", start, why, sizeof(why));
		if (error == -EINVAL)
			text_wrong(t, "%s", why);
	}
	free(ops);
	free(start);
	return error;
}

static int unpack(struct text *t, struct crash_bundle *a, struct sizes *s)
{
	const size_t len = (size_t)(t->end - t->at);
	unsigned long long size = ZSTD_getFrameContentSize(t->at, len);
	int error;

	t->line = 0; /* what is wrong from here on is in no line */
	if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ||
	    size < POOL_TEXT || size > CRASH_BUNDLE_MAX)
		return text_wrong(t, "after the first lines: expected a compressed image");
	uint8_t *body = malloc(size);
	if (!body)
		return -ENOMEM;
	size_t got = ZSTD_decompress(body, size, t->at, len);
	if (ZSTD_isError(got))
		error = text_wrong(t, "the compressed image is damaged or cut: %s",
				   ZSTD_getErrorName(got));
	else
		error = take_body(t, a, body, got, s);
	free(body);
	return error;
}

bool crash_bundle_begins(const char *bytes)
{
	return !strncmp(bytes, MAGIC, strlen("tidemark-cut "));
}

int crash_bundle_read(struct crash_bundle *a, char *bytes, size_t len, struct input_error *wrong)
{
	struct text t;
	struct sizes s = {0};
	const char *store = NULL;

	text_start(&t, bytes, len, wrong);
	int error = read_head(&t, a, &s, &store);
	if (!error)
		error = unpack(&t, a, &s);
	if (!error && strcmp(store, a->cut.store.store->name)) {
		t.line = 2;
		error = text_wrong(&t, "expected the store that the media name, %s",
				   a->cut.store.store->name);
	}
	return error;
}
