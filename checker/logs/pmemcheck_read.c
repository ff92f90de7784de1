/* SPDX-License-Identifier: BSD-3-Clause */
/* See pmemcheck_read.h. */
#include "checker/logs/pmemcheck_read.h"
#include "core/text/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAPPINGS 64
#define FIELDS	 5 /* of a token, but for a store's frames */

struct mapping {
	uint64_t address, size, offset;
	unsigned file;
};

struct reader {
	struct pm_log *log;
	struct input_error *error;
	struct mapping mapping[MAPPINGS]; /* the latest last */
	unsigned mappings;
	unsigned line; /* of the token */
	bool started;
	/* A store is added when its last frame is known. */
	struct pm_event store;
	uint8_t value[8];
	char *frames, *frames_end; /* NULL: it has none */
	bool pending;
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct reader *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int error = input_wrong(r->error, r->line, 0, fmt, ap);
	va_end(ap);
	return error;
}

/* --- fields --- */

/* The next field; NULL: there is none. */
static char *field(char **rest)
{
	char *at = *rest, *end;
	if (!at)
		return NULL;
	end = strchr(at, ';');
	*rest = end ? end + 1 : NULL;
	if (end)
		*end = 0;
	return at;
}

static bool is_hex(const char *text, uint64_t *out)
{
	char *end;
	if (!text || !*text || strchr("+- \t", *text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 16);
	return !*end && !errno;
}

static int hex(const struct reader *r, const char *of, const char *what, const char *text,
	       uint64_t *out)
{
	if (is_hex(text, out))
		return 0;
	return wrong(r, "%s: the %s is %s; expected a hexadecimal number", of, what,
		     text ? text_show(text).text : "missing");
}

static int no_more(const struct reader *r, const char *of, const char *rest)
{
	return rest ? wrong(r, "%s: %s is one field too many", of, text_show(rest).text) : 0;
}

/* Where in which file is [address, address+size)? */
static int place(const struct reader *r, const char *of, uint64_t address, uint64_t size,
		 struct pm_event *e)
{
	for (unsigned i = r->mappings; i-- > 0;) {
		const struct mapping *m = &r->mapping[i];
		if (address < m->address || address - m->address > m->size ||
		    size > m->size - (address - m->address))
			continue;
		e->file = (uint8_t)m->file;
		e->off = m->offset + (address - m->address);
		return 0;
	}
	return wrong(r, "%s: 0x%llx, %llu bytes, is in no file that was registered before", of,
		     (unsigned long long)address, (unsigned long long)size);
}

/* The latest mapping that has this address, from which it goes on to *end at most: a later mapping
 * may begin before. NULL: it is not PM. */
static const struct mapping *mapping_at(const struct reader *r, uint64_t address, uint64_t *end)
{
	for (unsigned i = r->mappings; i-- > 0;) {
		const struct mapping *m = &r->mapping[i];
		if (address >= m->address && address - m->address < m->size) {
			if (*end > m->address + m->size)
				*end = m->address + m->size;
			return m;
		}
		if (address < m->address && m->address < *end)
			*end = m->address;
	}
	return NULL;
}

/* The event for each part of [address, end) that is PM: a flush may reach beyond a mapping, as
 * lines are longer than what was stored, and from one file into the next. */
static int add_range(struct reader *r, uint64_t address, uint64_t end, struct pm_event *e)
{
	int error = 0;
	for (uint64_t part_end; address < end && !error; address = part_end) {
		part_end = end;
		const struct mapping *m = mapping_at(r, address, &part_end);
		if (!m)
			continue;
		e->file = (uint8_t)m->file;
		e->off = m->offset + (address - m->address);
		e->len = (uint32_t)(part_end - address);
		error = pm_log_add(r->log, e, NULL);
	}
	return error;
}

/* --- operations --- */

static int settle(struct reader *r)
{
	if (!r->pending)
		return 0;
	r->pending = false;
	if (r->frames)
		r->store.source = pm_log_source(r->log, r->frames,
						(size_t)(r->frames_end - r->frames));
	return pm_log_add(r->log, &r->store, r->value);
}

static int register_file(struct reader *r, char *rest)
{
	struct mapping m;
	char *name = field(&rest);
	if (!name || !*name)
		return wrong(r, "REGISTER_FILE: expected the path of a file");
	int error = hex(r, "REGISTER_FILE", "address", field(&rest), &m.address);
	if (!error)
		error = hex(r, "REGISTER_FILE", "size", field(&rest), &m.size);
	if (!error)
		error = hex(r, "REGISTER_FILE", "offset", field(&rest), &m.offset);
	if (!error)
		error = no_more(r, "REGISTER_FILE", rest);
	if (error)
		return error;
	if (!m.size || m.size > PM_FILE_MAX || m.offset > PM_FILE_MAX || m.offset % PM_LINE ||
	    m.address % PM_LINE || m.address > UINT64_MAX - m.size)
		return wrong(r,
			     "REGISTER_FILE: %s: the mapping is empty, too long, or not aligned "
			     "to %d bytes",
			     text_show(name).text, PM_LINE);
	if (r->mappings == MAPPINGS)
		return wrong(r, "REGISTER_FILE: expected at most %d mappings", MAPPINGS);
	int file = pm_log_file(r->log, name, m.offset + m.size);
	if (file == -ENOSPC)
		return wrong(r, "REGISTER_FILE: expected at most %d files", PM_FILES);
	if (file < 0)
		return file;
	m.file = (unsigned)file;
	r->mapping[r->mappings++] = m;
	return 0;
}

static int store(struct reader *r, char *rest, char *token_end)
{
	uint64_t address, value, size;
	int error = hex(r, "STORE", "address", field(&rest), &address);
	if (!error)
		error = hex(r, "STORE", "value", field(&rest), &value);
	if (!error)
		error = hex(r, "STORE", "size", field(&rest), &size);
	if (error)
		return error;
	if (!size || size > sizeof(value))
		return wrong(r, "STORE: %llu bytes; expected 1 to 8", (unsigned long long)size);
	if (size < sizeof(value) && value >> (8 * size))
		return wrong(r, "STORE: 0x%llx does not fit into %llu byte%s",
			     (unsigned long long)value, (unsigned long long)size, plural(size));
	r->store = (struct pm_event){.kind = PM_STORE, .len = (uint32_t)size, .line = r->line};
	error = place(r, "STORE", address, size, &r->store);
	memcpy(r->value, &value, sizeof(value)); /* both are of this host's byte order */
	r->pending = !error;
	r->frames = rest;
	r->frames_end = token_end;
	return error;
}

static int flush(struct reader *r, const char *name, char *rest)
{
	struct pm_event e = {.line = r->line};
	uint64_t address, size;
	int error = hex(r, name, "address", field(&rest), &address);
	if (!error)
		error = hex(r, name, "size", field(&rest), &size);
	if (!error)
		error = no_more(r, name, rest);
	if (error)
		return error;
	if (!size || size > UINT32_MAX || address > UINT64_MAX - size)
		return wrong(r, "%s: 0x%llx bytes; expected 1 to 0xffffffff", name,
			     (unsigned long long)size);
	e.kind = !strcmp(name, "FLUSH") ? PM_FLUSH : PM_SYNC;
	return add_range(r, address, address + size, &e);
}

static bool is_marker(const char *token, size_t len)
{
	return (len > 6 && !strcmp(token + len - 6, ".BEGIN")) ||
	       (len > 4 && !strcmp(token + len - 4, ".END"));
}

static int operation(struct reader *r, char *token, char *end)
{
	static const char *const names[] = {"REGISTER_FILE", "STORE", "FLUSH", "FENCE",
					    "DEEP_SYNC"};
	size_t len = strcspn(token, ";"), n = sizeof(names) / sizeof(names[0]), i = 0;
	while (i < n && (strlen(names[i]) != len || memcmp(names[i], token, len) != 0))
		i++;
	char *rest = token[len] ? token + len + 1 : NULL;
	bool marker = i == n && is_marker(token, (size_t)(end - token));
	if (i == n && !marker) {
		/* A frame ends with its place, "(FILE:LINE)"; else the '|' was a part of it. */
		if (r->pending && r->frames && r->frames_end[-1] != ')') {
			for (char *c = r->frames_end; c < token; c++)
				*c = *c ? *c : '|';
			r->frames_end = end;
			return 0;
		}
		return wrong(r,
			     "%s; expected STORE, FLUSH, FENCE, REGISTER_FILE, DEEP_SYNC, STOP, "
			     "or a marker that ends in .BEGIN or .END",
			     text_show(token).text);
	}
	int error = settle(r);
	struct pm_event e = {.kind = PM_FENCE, .line = r->line};
	if (error)
		return error;
	switch (i) {
	case 0:
		return register_file(r, rest);
	case 1:
		return store(r, rest, end);
	case 2:
	case 4:
		return flush(r, names[i], rest);
	case 3:
		return rest ? no_more(r, "FENCE", rest) : pm_log_add(r->log, &e, NULL);
	default:
		e.kind = PM_MARK;
		e.source = pm_log_source(r->log, token, (size_t)(end - token));
		return pm_log_add(r->log, &e, NULL);
	}
}

/* --- the text --- */

/* "==123== " */
static char *skip_valgrind(char *at)
{
	char *c = at;
	if (strncmp(c, "==", 2) != 0)
		return at;
	c += 2;
	size_t digits = strspn(c, "0123456789");
	if (!digits || strncmp(c + digits, "==", 2) != 0)
		return at;
	c += digits + 2;
	return c + strspn(c, " ");
}

/* After the last START; *line: its line. NULL: there is none. */
static char *find_start(char *bytes, size_t len, unsigned *line)
{
	char *found = NULL, *line_begin = bytes;
	unsigned at = 1;
	for (char *c = bytes; c + 5 <= bytes + len; c++) {
		if (*c == '\n') {
			at++;
			line_begin = c + 1;
		}
		if (memcmp(c, "START", 5) != 0)
			continue;
		const char *first = skip_valgrind(line_begin);
		bool begins = c == first + strspn(first, " \t") || c[-1] == '|';
		char after = c + 5 < bytes + len ? c[5] : '|';
		if (!begins || !strchr("|\n\r", after))
			continue;
		found = c + 5;
		*line = at;
	}
	return found;
}

static char *trim(char *at, char **end)
{
	while (at < *end && strchr(" \t\r", *at))
		at++;
	while (*end > at && strchr(" \t\r", (*end)[-1]))
		(*end)--;
	return at;
}

int pmemcheck_read(struct pm_log *log, char *bytes, size_t len, struct input_error *error)
{
	struct reader *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct reader){.log = log, .error = error};
	char *end = bytes + len, *at = find_start(bytes, len, &r->line);
	int failed = 0;
	if (memchr(bytes, 0, len))
		failed = wrong(r, "there are NUL bytes in it; expected pmemcheck's text");
	else if (!at)
		failed = wrong(r,
			       "neither a recording nor a log with a START; expected what tidemark "
			       "record or pmemcheck's --log-stores=yes has written");
	while (!failed && at < end && !log->stopped) {
		char *token_end = at + strcspn(at, "|\n"), separator = *token_end;
		char *next = token_end + (token_end < end);
		char *token = trim(at, &token_end);
		*token_end = 0;
		if (*token && !strcmp(token, "STOP"))
			log->stopped = true;
		else if (*token)
			failed = operation(r, token, token_end);
		at = next;
		if (separator == '\n') {
			r->line++;
			at = skip_valgrind(at);
		}
	}
	if (!failed)
		failed = settle(r);
	if (!failed && !log->files)
		failed = wrong(r, "no file was registered; expected REGISTER_FILE, which pmemcheck "
				  "writes with --log-stores=yes when PM is mapped");
	free(r);
	return failed;
}
