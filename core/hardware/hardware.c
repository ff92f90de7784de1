/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The knobs of the machine as words: setting them, printing them. The table is in hardware.h.
 */
#include "core/hardware/hardware.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/text/text.h"

struct field {
	struct hardware_knob knob;
	size_t off, size;
	uint16_t number[HARDWARE_VALUES]; /* of each value; ... */
	unsigned numbers;		  /* ... if there are more than one */
};

#define COUNT(...) (sizeof((uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t))
#define X(type, field, name, print, log, what, values, ...) \
	{{name, values, what, print, log},                  \
	 offsetof(struct hardware, field),                  \
	 sizeof(type),                                      \
	 {__VA_ARGS__},                                     \
	 COUNT(__VA_ARGS__)},
static const struct field fields[] = {HARDWARE_KNOBS(X)};
#undef X

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

#define FIRST(first, ...)				    first
#define X(type, field, name, print, log, what, values, ...) .field = FIRST(__VA_ARGS__, 0),
const struct hardware hardware_default = {HARDWARE_KNOBS(X)};
#undef X

#define X(type, field, name, ...) " " name
static const char names[] = HARDWARE_KNOBS(X);
#undef X

/* Names that older traces and scripts have for a knob. */
static const struct {
	const char *old, *name;
} aliases[] = {
	{"own_bug", "mutant"},
};

/* The same of a knob's value. */
static const struct {
	const char *knob, *old, *value;
} old_values[] = {
	{"line_torn", "on", "prefix"},
};

static const char *value_now(const char *knob, const char *value)
{
	for (unsigned v = 0; v < sizeof(old_values) / sizeof(old_values[0]); v++)
		if (!strcmp(old_values[v].knob, knob) && !strcmp(old_values[v].old, value))
			return old_values[v].value;
	return value;
}

static unsigned get_number(const struct hardware *hw, const struct field *field)
{
	uint16_t two = 0;
	uint8_t one = 0;

	assert(field->size == sizeof(one) || field->size == sizeof(two));
	if (field->size == sizeof(two)) {
		memcpy(&two, (const char *)hw + field->off, sizeof(two));
		return two;
	}
	memcpy(&one, (const char *)hw + field->off, sizeof(one));
	return one;
}

static void set_number(struct hardware *hw, const struct field *field, uint16_t number)
{
	uint8_t one = (uint8_t)number;

	assert(field->size == sizeof(number) || number == one);
	if (field->size == sizeof(number))
		memcpy((char *)hw + field->off, &number, sizeof(number));
	else
		memcpy((char *)hw + field->off, &one, sizeof(one));
	assert(get_number(hw, field) == number);
}

/* What the field's i-th value means. */
static uint16_t value_number(const struct field *field, unsigned i)
{
	if (field->numbers == 1) /* KNOB_PLACES */
		return (uint16_t)i;
	assert(i < field->numbers && field->numbers <= HARDWARE_VALUES);
	return field->number[i];
}

int hardware_find(const char *name)
{
	for (unsigned a = 0; a < sizeof(aliases) / sizeof(aliases[0]); a++)
		if (!strcmp(aliases[a].old, name))
			name = aliases[a].name;
	for (unsigned f = 0; f < FIELDS; f++)
		if (!strcmp(fields[f].knob.name, name))
			return (int)f;
	return -1;
}

struct hardware hardware_of_server(const struct hardware *hw, unsigned server)
{
	struct hardware own = *hw;
	assert(server < HARDWARE_SERVERS);
	if (hw->server[server].domain)
		own.domain = hw->server[server].domain - 1;
	if (hw->server[server].ddio)
		own.ddio = hw->server[server].ddio - 1;
	return own;
}

unsigned hardware_knob_server(const char *name)
{
	const char *dot = strchr(name, '.');
	const bool is = dot && (!strncmp(name, "domain.", 7) || !strncmp(name, "ddio.", 5)) &&
			dot[1] > '0' && dot[1] <= '0' + HARDWARE_SERVERS && !dot[2];
	return is ? (unsigned)(dot[1] - '0') : 0;
}

static int set_of_server(struct hardware *hw, unsigned server, const char *name, const char *value,
			 const char **expected)
{
	const char *base = name[1] == 'o' ? "domain" : "ddio";
	struct hardware own = *hw;
	int error = hardware_set(&own, base, value, expected);
	if (!error && name[1] == 'o')
		hw->server[server].domain = 1 + own.domain;
	else if (!error)
		hw->server[server].ddio = 1 + own.ddio;
	return error;
}

int hardware_set(struct hardware *hw, const char *name, const char *value, const char **expected)
{
	int f = hardware_find(name);

	if (hardware_knob_server(name))
		return set_of_server(hw, hardware_knob_server(name) - 1, name, value, expected);
	if (f < 0) {
		*expected = names + 1; /* without the first blank */
		return -EINVAL;
	}
	int i = word_list_find(fields[f].knob.values, value_now(fields[f].knob.name, value));
	if (i < 0) {
		*expected = fields[f].knob.values;
		return -EINVAL;
	}
	set_number(hw, &fields[f], value_number(&fields[f], (unsigned)i));
	return 0;
}

int hardware_switch(struct hardware *hw, const char *text, const char **expected)
{
	char name[64];
	size_t len = strcspn(text, "=");

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	return hardware_set(hw, name, text[len] ? text + len + 1 : "", expected);
}

/* The word for the field's value. */
static void value_word(const struct field *field, unsigned number, char *buf, size_t n)
{
	const char *word;
	unsigned i = 0;
	size_t len;

	while ((word = word_list_at(field->knob.values, i, &len)) != NULL &&
	       value_number(field, i) != number)
		i++;
	assert(word); /* or the field was set to a number that is none of its values */
	snprintf(buf, n, "%.*s", (int)len, word);
}

int hardware_print(const struct hardware *hw, bool all, char *buf, size_t n)
{
	size_t at = 0;

	if (n)
		buf[0] = '\0';
	for (unsigned f = 0; f < FIELDS; f++) {
		unsigned number = get_number(hw, &fields[f]);
		char word[64];

		if ((!all || fields[f].knob.print == KNOB_RARE) &&
		    number == get_number(&hardware_default, &fields[f]))
			continue;
		value_word(&fields[f], number, word, sizeof(word));
		at += (size_t)snprintf(at < n ? buf + at : NULL, at < n ? n - at : 0, "%s%s=%s",
				       at ? " " : "", fields[f].knob.name, word);
	}
	for (unsigned i = 0; i < 2 * HARDWARE_SERVERS; i++) {
		const struct field *field = &fields[i % 2]; /* the table begins with both */
		assert(field->off == (i % 2 ? offsetof(struct hardware, ddio)
					    : offsetof(struct hardware, domain)));
		const unsigned is = i % 2 ? hw->server[i / 2].ddio : hw->server[i / 2].domain;
		char word[64];
		if (!is)
			continue;
		value_word(field, is - 1, word, sizeof(word));
		at += (size_t)snprintf(at < n ? buf + at : NULL, at < n ? n - at : 0, "%s%s.%u=%s",
				       at ? " " : "", field->knob.name, i / 2 + 1, word);
	}
	return (int)at;
}

const struct hardware_knob *hardware_knob(unsigned i)
{
	static const struct hardware_knob end = {.print = KNOB_USUAL};

	return i < FIELDS ? &fields[i].knob : &end;
}
