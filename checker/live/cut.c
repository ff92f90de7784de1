/* SPDX-License-Identifier: BSD-3-Clause */
/* See cut.h. */
#include "checker/live/cut.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/why.h"
#include "core/text/text.h"
#include "scenarios/stores.h"

#define START_MAX ((size_t)64 << 20) /* bytes of the text of key states */

/* --- images --- */

static int open_image(struct pm_image *image, const char *path, uint64_t offset, char *why,
		      size_t n)
{
	char other[200];
	int error;

	if (offset != CUT_ANY_OFFSET)
		return pm_image_open(image, path, offset, false, why, n);
	error = pm_image_open(image, path, 0, false, why, n);
	if (!error && *image->text)
		return 0;
	if (!error)
		pm_image_close(image);
	if (!pm_image_open(image, path, NVDIMM_DATA, false, other, sizeof(other))) {
		if (*image->text)
			return 0;
		pm_image_close(image);
	}
	return error ? error : why_not(why, n, -EINVAL, "%s: no text says what it holds", path);
}

int cut_parse(struct cut *c, const char *name, char *why, size_t n)
{
	struct input_error wrong;

	if (live_store_parse(&c->store, c->text, store_find, &wrong))
		return why_not(why, n, -EINVAL, "%s: line %u of its text: %s", name, wrong.line,
			       wrong.message);
	c->boot = c->store.boot;
	c->len = c->store.store->pm_bytes(&c->store.params);
	return 0;
}

int cut_read_media(struct cut *c, const char *path, uint64_t offset, char *why, size_t n)
{
	struct pm_image image;
	int error = open_image(&image, path, offset, why, n);

	if (error)
		return error;
	memcpy(c->text, image.text, sizeof(c->text));
	error = cut_parse(c, path, why, n);
	if (!error && image.pool_bytes < c->len)
		error = why_not(why, n, -EINVAL, "%s: expected a pool of %zu bytes, here are %zu",
				path, c->len, image.pool_bytes);
	if (!error) {
		c->pool = malloc(c->len);
		if (!c->pool)
			error = why_not(why, n, -ENOMEM, "%s: out of memory", path);
		else
			memcpy(c->pool, image.pool, c->len);
	}
	pm_image_close(&image);
	return error;
}

int cut_read_cache(struct cut *c, const char *path, uint64_t offset, char *why, size_t n)
{
	struct pm_image image;
	int error = open_image(&image, path, offset, why, n);

	if (error)
		return error;
	int filled = pm_image_in_flight(&image);
	if (filled < 0)
		error = why_not(why, n, filled, "%s: not a cache image", path);
	else if (filled && image.pool_bytes < c->len)
		error = why_not(why, n, -EINVAL,
				"%s: expected a cache image of %zu bytes, here are %zu", path,
				c->len, image.pool_bytes);
	if (!error && filled) {
		error = cut_lines(c->pool, image.pool, c->len, &c->line, &c->lines);
		c->held = error ? NULL : malloc(c->lines * TM_LINE + 1);
		if (!c->held)
			error = why_not(why, n, -ENOMEM, "%s: out of memory", path);
	}
	for (size_t i = 0; !error && i < c->lines; i++)
		memcpy(c->held + i * TM_LINE, image.pool + (size_t)c->line[i] * TM_LINE, TM_LINE);
	c->cached = true;
	pm_image_close(&image);
	return error;
}

/* --- recordings --- */

int cut_add_ops(struct cut *c, const struct recording_op *ops, uint64_t n)
{
	struct recording_op *more = realloc(c->op, (c->ops + n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	c->op = more;
	for (uint64_t i = 0; i < n; i++) {
		if (!ops[i].invoked_ns || (c->until_ns && ops[i].invoked_ns > c->until_ns))
			continue;
		c->op[c->ops] = ops[i];
		if (c->until_ns && ops[i].returned_ns > c->until_ns)
			c->op[c->ops].returned_ns = 0;
		c->ops++;
	}
	c->recordings++;
	return 0;
}

/* Without media, the recordings say what was served. */
static int store_of_recording(struct cut *c, const char *path, const char *text, char *why,
			      size_t n)
{
	if (snprintf(c->text, sizeof(c->text), "%s", text) >= (int)sizeof(c->text))
		return why_not(why, n, -EINVAL, "%s: its text is too long", path);
	int error = cut_parse(c, path, why, n);
	c->boot = 0;
	c->len = 0;
	return error;
}

int cut_read_recording(struct cut *c, const char *path, char *why, size_t n)
{
	struct recording *r;
	char text[200];
	uint64_t count;
	int error = recording_open(&r, path, text, sizeof(text));

	if (error)
		return why_not(why, n, error, "%s: %s", path, text);
	const struct recording_op *ops = recording_ops(r, &count);
	error = cut_add_ops(c, ops, count);
	if (error)
		why_not(why, n, error, "%s: out of memory", path);
	else if (!*c->text)
		error = store_of_recording(c, path, recording_text(r), why, n);
	for (uint64_t i = 0; !error && !c->pool && i < count; i++)
		c->boot = ops[i].boot > c->boot ? ops[i].boot : c->boot;
	recording_close(r);
	return error;
}

/* --- where keys stood --- */

#define STANDING "0x and a PUT's id, absent or unknown"

/* "17 0x0100000200000037" */
static const char *parse_standing(struct cut_start *s, char *line)
{
	uint64_t key;
	char *end;

	if (!text_number(text_word(&line), 0, UINT32_MAX, &key))
		return "the number of a key";
	s->key = (uint32_t)key;
	s->at.state = !strcmp(line, "absent")	 ? KEY_ABSENT
		      : !strcmp(line, "unknown") ? KEY_UNKNOWN
						 : KEY_VALUE;
	if (s->at.state != KEY_VALUE)
		return NULL;
	errno = 0;
	s->at.id = strncmp(line, "0x", 2) ? 0 : strtoull(line + 2, &end, 16);
	return strncmp(line, "0x", 2) || !isxdigit((unsigned char)line[2]) || errno || *end
		       ? STANDING
		       : NULL;
}

static int parse_standings(struct text *t, struct cut *c, uint64_t keys)
{
	char *line;

	for (uint64_t i = 0; i < keys; i++) {
		const char *expected;

		if (text_line(t, &line) > 0) {
			expected = parse_standing(&c->start[i], line);
		} else {
			expected = "the number of a key";
			t->line++;
		}
		if (!expected && !t->ended)
			expected = STANDING;
		if (!expected && i && c->start[i].key <= c->start[i - 1].key)
			expected = "keys in their order";
		if (expected)
			return text_wrong(t, "expected %s", expected);
	}
	return text_line(t, &line) ? text_wrong(t, "expected nothing more") : 0;
}

static int parse_start(struct text *t, struct cut *c)
{
	static const char magic[] = "tidemark-recovered 1";
	uint64_t boot, keys;
	const char *version = text_field(t, "tidemark-recovered", magic);

	if (!version)
		return -EINVAL;
	if (strcmp(version, "1"))
		return text_wrong(t, "expected %s", magic);
	if (text_field_number(t, "boot", 0, UINT32_MAX, "boot and a number", &boot) ||
	    text_field_number(t, "keys", 0, START_MAX, "keys and their number", &keys))
		return -EINVAL;
	c->start = calloc(keys + 1, sizeof(*c->start));
	if (!c->start)
		return -ENOMEM;
	int error = parse_standings(t, c, keys);
	if (error)
		return error;
	c->starts = keys;
	c->start_boot = (uint32_t)boot;
	c->started = true;
	return 0;
}

int cut_parse_start(struct cut *c, const char *name, char *text, char *why, size_t n)
{
	struct input_error wrong;
	struct text t;

	text_start(&t, text, strlen(text), &wrong);
	int error = parse_start(&t, c);
	if (error == -ENOMEM)
		return why_not(why, n, error, "%s: out of memory", name);
	return error ? why_not(why, n, error, "%s%s: %s", name, input_place(&wrong).text,
			       wrong.message)
		     : 0;
}

int cut_read_start(struct cut *c, const char *path, char *why, size_t n)
{
	struct input_error wrong;
	size_t len;
	int error;
	char *text = text_read_path(path, START_MAX, &len, &wrong, &error);

	if (!text)
		why_not(why, n, error, "%s: %s", path,
			wrong.message[0] ? wrong.message : strerror(-error));
	else if (len > START_MAX || memchr(text, 0, len))
		error = why_not(why, n, -EINVAL, "%s: not a text of where keys stand", path);
	else
		error = cut_parse_start(c, path, text, why, n);
	free(text);
	return error;
}

static int by_key(const void *a, const void *b)
{
	const struct cut_start *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

uint32_t cut_first_boot(const struct cut *c)
{
	uint32_t first = c->boot;

	if (c->started)
		return c->start_boot + 1;
	for (size_t i = 0; i < c->ops; i++)
		if (c->op[i].boot < first)
			first = c->op[i].boot;
	return first;
}

struct key_state cut_key_state(const struct cut *c, uint32_t first, uint32_t key)
{
	const struct cut_start wanted = {.key = key}, *found = NULL;

	if (!c->started)
		return (struct key_state){.state = first == 1 ? KEY_ABSENT : KEY_UNKNOWN};
	if (c->starts)
		found = bsearch(&wanted, c->start, c->starts, sizeof(wanted), by_key);
	return found ? found->at : (struct key_state){.state = KEY_ABSENT};
}

void cut_free(struct cut *c)
{
	free(c->pool);
	free(c->line);
	free(c->held);
	free(c->op);
	free(c->start);
	memset(c, 0, sizeof(*c));
}
