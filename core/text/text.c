/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking lines and words from text. See text.h. */
#include "core/text/text.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS	   " \t"
#define FIRST_ROOM 4096 /* bytes of a file that is read; more are made room for */

/* --- lines --- */

void text_start(struct text *t, char *bytes, size_t len, struct input_error *error)
{
	assert(!bytes[len]);
	*t = (struct text){.error = error, .at = bytes, .end = bytes + len};
	*error = (struct input_error){0};
}

int text_line(struct text *t, char **line)
{
	assert(t->at <= t->end);
	if (t->at == t->end)
		return 0;
	char *newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
	char *end = newline ? newline : t->end;
	*line = t->at;
	t->line++;
	t->ended = newline != NULL;
	t->at = newline ? newline + 1 : t->end;
	if (end > *line && end[-1] == '\r')
		end--;
	t->len = (size_t)(end - *line);
	if (t->max && t->len > t->max)
		return text_wrong(t, "a line of more than %zu bytes", t->max);
	*end = '\0';
	return 1;
}

int text_check_bytes(struct text *t, const char *line, const char *comment)
{
	for (const char *p = line; p < line + t->len; p++) {
		unsigned char c = (unsigned char)*p;
		bool in_comment = comment && p >= comment;
		if (c == '\0')
			return text_wrong(t, "a NUL byte at column %zu; expected text",
					  (size_t)(p - line) + 1);
		if (c == '\t' || (c >= ' ' && c < 0x7f) || (c >= 0x80 && in_comment))
			continue;
		return text_wrong(t, "byte 0x%02x at column %zu; expected printable ASCII%s", c,
				  (size_t)(p - line) + 1, in_comment ? " or UTF-8" : "");
	}
	return 0;
}

int input_wrong(struct input_error *error, unsigned line, unsigned column, const char *fmt,
		va_list ap)
{
	size_t room = sizeof(error->message);
	int len = vsnprintf(error->message, room, fmt, ap);

	if (len < 0 || (size_t)len >= room)
		memcpy(error->message + room - 4, "...", 4);
	error->line = line;
	error->column = column;
	return -EINVAL;
}

struct input_place input_place(const struct input_error *error)
{
	struct input_place place = {""};

	if (error->line && error->column)
		snprintf(place.text, sizeof(place.text), ":%u:%u", error->line, error->column);
	else if (error->line)
		snprintf(place.text, sizeof(place.text), ":%u", error->line);
	return place;
}

int text_wrong(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	input_wrong(t->error, t->line, 0, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int text_rows(struct text *t, text_row *row, void *arg)
{
	char *line;
	int rc;

	while ((rc = text_line(t, &line)) > 0) {
		if (t->ascii && text_check_bytes(t, line, strchr(line, '#')))
			return -EINVAL;
		line = text_skip_blanks(line);
		rc = *line && *line != '#' ? row(t, line, arg) : 0;
		if (rc)
			return rc;
	}
	return rc;
}

char *text_read(FILE *in, size_t max, size_t *len, struct input_error *error, int *rc)
{
	size_t room = 0, n = 1;
	char *bytes = NULL;

	*error = (struct input_error){0};
	*len = 0;
	errno = 0;
	while (n && *len <= max) {
		if (*len == room) {
			room = room ? 2 * room : FIRST_ROOM;
			room = room > max + 1 ? max + 1 : room;
			char *more = realloc(bytes, room + 1);
			if (!more) {
				snprintf(error->message, sizeof(error->message),
					 "not enough memory");
				*rc = -ENOMEM;
				goto err;
			}
			bytes = more;
		}
		n = fread(bytes + *len, 1, room - *len, in);
		*len += n;
	}
	bytes[*len] = '\0';
	if (!ferror(in))
		return bytes;
	*rc = errno ? -errno : -EIO;
	snprintf(error->message, sizeof(error->message), "reading failed: %s", strerror(-*rc));
err:
	free(bytes);
	return NULL;
}

char *text_read_path(const char *path, size_t max, size_t *len, struct input_error *error, int *rc)
{
	FILE *in = fopen(path, "re");

	*error = (struct input_error){0};
	*rc = in ? 0 : -errno;
	char *bytes = in ? text_read(in, max, len, error, rc) : NULL;
	if (in)
		fclose(in);
	return bytes;
}

/* --- parts of a line --- */

char *text_skip_blanks(const char *at)
{
	return (char *)at + strspn(at, BLANKS);
}

char *text_tidy(const char *line)
{
	char *words = calloc(1, strlen(line) + 2), *to = words;
	for (const char *at = text_skip_blanks(line); words && *at; at = text_skip_blanks(at)) {
		size_t len = strcspn(at, BLANKS);
		if (to > words)
			*to++ = ' ';
		memcpy(to, at, len);
		to += len;
		at += len;
	}
	return words;
}

char *text_word(char **rest)
{
	char *start = text_skip_blanks(*rest);
	char *end = start + strcspn(start, BLANKS);
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return start;
}

char *text_part(char **rest, char separator, bool *more)
{
	char *start = text_skip_blanks(*rest);
	char *end = strchr(start, separator);
	*more = end != NULL;
	if (!end)
		end = start + strlen(start);
	*rest = *end ? end + 1 : end;
	while (end > start && strchr(BLANKS, end[-1]))
		end--;
	*end = '\0';
	return start;
}

char *text_value(char *pair)
{
	char *equals = strchr(pair, '=');
	if (!equals)
		return NULL;
	*equals = '\0';
	return equals + 1;
}

const char *text_digits(const char *text, uint64_t max, uint64_t *out)
{
	const char *p = text;
	uint64_t n = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		unsigned digit = (unsigned)(*p - '0');
		if (digit > max || n > (max - digit) / 10)
			return NULL;
		n = n * 10 + digit;
	}
	assert(n <= max);
	*out = n;
	return p == text ? NULL : p;
}

bool text_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *end = text_digits(text, max, out);
	return end && !*end && *out >= min;
}

struct text_shown text_show_part(const char *text, size_t len)
{
	struct text_shown s;
	size_t n = len <= TEXT_SHOWN ? len : TEXT_SHOWN;

	snprintf(s.text, sizeof(s.text), "'%.*s%s'", (int)n, text, n < len ? "..." : "");
	for (char *p = s.text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return s;
}

struct text_shown text_show(const char *text)
{
	return text_show_part(text, strlen(text));
}

/* --- lines "name value" --- */

char *text_field_if(struct text *t, const char *name)
{
	const char *newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
	size_t len = strlen(name);
	char *line;

	/* Check it before it is taken: a line that is taken is cut off. */
	if (!newline || memchr(t->at, '\0', (size_t)(newline - t->at)) ||
	    strncmp(t->at, name, len) != 0 || t->at[len] != ' ')
		return NULL;
	return text_line(t, &line) > 0 ? line + len + 1 : NULL;
}

char *text_field(struct text *t, const char *name, const char *expected)
{
	char *value = text_field_if(t, name);
	if (value)
		return value;
	t->line++;
	text_wrong(t, "expected %s", expected);
	return NULL;
}

int text_field_number(struct text *t, const char *name, uint64_t min, uint64_t max,
		      const char *expected, uint64_t *out)
{
	const char *value = text_field(t, name, expected);
	if (!value)
		return -EINVAL;
	return text_number(value, min, max, out) ? 0 : text_wrong(t, "expected %s", expected);
}

/* --- lists of words --- */

const char *word_list_at(const char *list, unsigned i, size_t *len)
{
	for (; i; i--) {
		list = strchr(list, ' ');
		if (!list)
			return NULL;
		list++;
	}
	*len = strcspn(list, " ");
	return list;
}

unsigned word_list_count(const char *list)
{
	unsigned n = 0;
	size_t len;
	while (word_list_at(list, n, &len))
		n++;
	return n;
}

int word_list_find(const char *list, const char *word)
{
	const char *at;
	size_t len;
	for (unsigned i = 0; (at = word_list_at(list, i, &len)) != NULL; i++)
		if (len == strlen(word) && !memcmp(at, word, len))
			return (int)i;
	return -1;
}

char *text_head(const char *bytes)
{
	const char *at = bytes;
	while (*at == '#' || *at == '\n') {
		at += strcspn(at, "\n");
		at += *at == '\n';
	}
	return strndup(bytes, (size_t)(at - bytes));
}
