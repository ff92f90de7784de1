/* SPDX-License-Identifier: BSD-3-Clause */
/* See artefact.h. What is read is believed as little as anything else from outside. */
#include "checker/live/crash_bundle.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>
#include "checker/judge/names.h"
#include "core/rt/why.h"

#define MAGIC	 "tidemark-cut 1\n"
#define LEVEL	 6
#define BODY_MAX ((size_t)4 << 30) /* bytes */

/* --- the body --- */

struct sizes {
	size_t pool, lines, ops, start;
};

static size_t body_bytes(const struct sizes *s)
{
	return POOL_TEXT + s->pool + s->lines * (sizeof(uint32_t) + CUT_LINE) +
	       s->ops * sizeof(struct recording_op) + s->start;
}

static uint8_t *append(uint8_t *at, const void *bytes, size_t len)
{
	if (len)
		memcpy(at, bytes, len);
	return at + len;
}

/* The text of where keys stood; *text is to be freed. */
static int start_text(const struct cut *c, char **text, size_t *len)
{
	const struct exam e = {
		.last = c->start_boot, .keys = (unsigned)c->starts, .shown = c->start};
	FILE *out;
	int error;

	*text = NULL;
	*len = 0;
	if (!c->started)
		return 0;
	out = open_memstream(text, len);
	if (!out)
		return -ENOMEM;
	error = exam_print_start(out, &e);
	return fclose(out) || error ? -ENOMEM : 0;
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
		at = append(at, c->held, s->lines * CUT_LINE);
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

int crash_bundle_write(FILE *out, const void *artefact)
{
	const struct crash_bundle *a = artefact;
	const struct cut *c = &a->cut;
	struct sizes s = {.pool = c->len, .lines = c->lines, .ops = c->ops};
	char *start;
	int error = start_text(c, &start, &s.start);

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

struct head {
	char *at;
	unsigned line;
	const char *expected;
};

/* The rest of the next line, which has to be "name rest"; NULL: it is not. */
static char *need(struct head *h, const char *name, const char *expected)
{
	size_t len = strlen(name);
	char *word = h->at + len + 1, *end = strchr(h->at, '\n');

	h->line++;
	h->expected = expected;
	if (!end || strncmp(h->at, name, len) || h->at[len] != ' ')
		return NULL;
	*end = '\0';
	h->at = end + 1;
	return word;
}

static bool number(struct head *h, const char *name, uint64_t max, const char *expected,
		   uint64_t *value)
{
	char *word = need(h, name, expected), *end;

	if (!word || *word < '0' || *word > '9')
		return false;
	errno = 0;
	*value = strtoull(word, &end, 10);
	return !errno && !*end && *value <= max;
}

static bool read_broken(struct head *h, struct crash_bundle *a)
{
	char *word = need(h, "broken",
			  "broken, a contract, and happened or possible; or broken none"),
	     *space;

	a->contract = -1;
	if (!word)
		return false;
	if (!strcmp(word, "none"))
		return true;
	space = strchr(word, ' ');
	if (!space)
		return false;
	*space++ = '\0';
	a->contract = contract_parse(word);
	a->happened = !strcmp(space, "happened");
	return a->contract >= 0 && (a->happened || !strcmp(space, "possible"));
}

static bool read_head(struct head *h, struct crash_bundle *a, struct sizes *s, char **store)
{
	uint64_t boot, seed, cuts, lines, cached, ops, start;
	char *says;

	h->line = 1; /* the magic was looked at */
	h->at += strlen(MAGIC);
	*store = need(h, "store", "store and its name");
	if (!*store || !need(h, "variant", "variant and its name") ||
	    !number(h, "boot", UINT32_MAX, "boot and a number", &boot) ||
	    !number(h, "seed", UINT64_MAX, "seed and a number", &seed) ||
	    !number(h, "cuts", EXAM_CUTS, "cuts and a number", &cuts) || !read_broken(h, a))
		return false;
	says = need(h, "says", "says and a sentence");
	if (!says || !number(h, "lines", BODY_MAX / CUT_LINE, "lines and their number", &lines) ||
	    !number(h, "cached", 1, "cached 0 or cached 1", &cached) ||
	    !number(h, "operations", BODY_MAX / RECORDING_OP, "operations and their number",
		    &ops) ||
	    !number(h, "start", BODY_MAX, "start and its bytes", &start))
		return false;
	snprintf(a->says, sizeof(a->says), "%s", says);
	h->line++;
	h->expected = "an empty line";
	a->options = (struct exam_options){seed, (unsigned)cuts};
	a->cut.boot = (uint32_t)boot;
	a->cut.cached = cached;
	*s = (struct sizes){.lines = lines, .ops = ops, .start = start};
	return *h->at++ == '\n';
}

static bool lines_fit(const struct cut *c)
{
	for (size_t i = 0; i < c->lines; i++)
		if (c->line[i] >= c->len / CUT_LINE || (i && c->line[i] <= c->line[i - 1]))
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
static int take_body(struct crash_bundle *a, const char *path, uint8_t *body, size_t len,
		     struct sizes *s, char *why, size_t n)
{
	struct cut *c = &a->cut;
	uint32_t boot = c->boot;
	uint8_t *at = body + POOL_TEXT;
	int error;

	memcpy(c->text, body, POOL_TEXT);
	c->text[POOL_TEXT - 1] = '\0';
	error = cut_parse(c, path, why, n);
	if (error)
		return error;
	c->boot = boot;
	s->pool = c->len;
	if (body_bytes(s) != len)
		return why_not(why, n, -EINVAL,
			       "%s: expected %zu bytes when it is unpacked, here are %zu", path,
			       body_bytes(s), len);
	c->lines = s->lines;
	c->pool = copy(&at, s->pool);
	c->line = copy(&at, s->lines * sizeof(uint32_t));
	c->held = copy(&at, s->lines * CUT_LINE);
	struct recording_op *ops = copy(&at, s->ops * sizeof(*ops));
	char *start = copy(&at, s->start);
	error = c->pool && c->line && c->held && ops && start && !cut_add_ops(c, ops, s->ops)
			? 0
			: -ENOMEM;
	if (error)
		why_not(why, n, error, "%s: out of memory", path);
	else if (!lines_fit(c))
		error = why_not(why, n, -EINVAL, "%s: expected lines of the pool in their order",
				path);
	for (size_t i = 0; i < c->ops && !error; i++) {
		const char *expected = recording_op_wrong(&c->op[i]);

		if (expected)
			error = why_not(why, n, -EINVAL, "%s: operation %zu: expected %s", path,
					i + 1, expected);
	}
	if (!error && s->start) {
		start[s->start] = '\0';
		error = cut_parse_start(c, path, start, why, n);
	}
	free(ops);
	free(start);
	return error;
}

static int unpack(struct crash_bundle *a, const char *path, const char *packed, size_t len,
		  struct sizes *s, char *why, size_t n)
{
	unsigned long long size = ZSTD_getFrameContentSize(packed, len);
	uint8_t *body;
	int error;

	if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ||
	    size < POOL_TEXT || size > BODY_MAX)
		return why_not(why, n, -EINVAL,
			       "%s: behind the first lines: expected a compressed image", path);
	body = malloc(size);
	if (!body)
		return why_not(why, n, -ENOMEM, "%s: out of memory", path);
	size_t got = ZSTD_decompress(body, size, packed, len);
	if (ZSTD_isError(got))
		error = why_not(why, n, -EINVAL, "%s: the compressed image is damaged or cut: %s",
				path, ZSTD_getErrorName(got));
	else
		error = take_body(a, path, body, got, s, why, n);
	free(body);
	return error;
}

static FILE *open_artefact(const char *path)
{
	char magic[sizeof(MAGIC)] = "";
	FILE *in = fopen(path, "re");

	if (in && (!fread(magic, strlen(MAGIC), 1, in) || strcmp(magic, MAGIC))) {
		fclose(in);
		in = NULL;
		errno = EINVAL;
	}
	return in;
}

bool crash_bundle_begins(const char *path)
{
	struct stat st;
	FILE *in = !stat(path, &st) && S_ISREG(st.st_mode) ? open_artefact(path) : NULL;

	if (in)
		fclose(in);
	return in;
}

/* All of a file, with a NUL behind it. */
static char *read_all(FILE *in, size_t *len)
{
	struct stat st;
	char *bytes = fstat(fileno(in), &st) || (size_t)st.st_size > BODY_MAX
			      ? NULL
			      : malloc((size_t)st.st_size + 1);

	if (!bytes)
		return NULL;
	rewind(in);
	*len = fread(bytes, 1, (size_t)st.st_size, in);
	bytes[*len] = '\0';
	return bytes;
}

int crash_bundle_read(struct crash_bundle *a, const char *path, char *why, size_t n)
{
	struct head h = {0};
	struct sizes s;
	size_t len;
	char *bytes, *store;
	int error;

	memset(a, 0, sizeof(*a));
	FILE *in = open_artefact(path);
	if (!in)
		return why_not(why, n, -errno, "%s: %s", path,
			       errno == EINVAL ? "expected tidemark-cut 1 in its first line"
					       : strerror(errno));
	bytes = read_all(in, &len);
	fclose(in);
	if (!bytes)
		return why_not(why, n, -ENOMEM, "%s: out of memory", path);
	h.at = bytes;
	if (read_head(&h, a, &s, &store))
		error = unpack(a, path, h.at, len - (size_t)(h.at - bytes), &s, why, n);
	else
		error = why_not(why, n, -EINVAL, "%s:%u: expected %s", path, h.line, h.expected);
	if (!error && strcmp(store, a->cut.store.store->name))
		error = why_not(why, n, -EINVAL, "%s:2: expected the store that the media name, %s",
				path, a->cut.store.store->name);
	free(bytes);
	return error;
}
