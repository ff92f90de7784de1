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

#define X(type, field, ...) FIELD_##field,
enum { HARDWARE_KNOBS(X) };
#undef X

/* What only a server's memory and its NIC look at, and so may be its own. */
static const unsigned own[HARDWARE_OWN] = {FIELD_domain, FIELD_ddio, FIELD_dma_order,
					   FIELD_ack_early};

_Static_assert(FIELDS + HARDWARE_SERVERS * HARDWARE_OWN <= HARDWARE_NAMES, "names have numbers");

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
	struct hardware its = *hw;
	assert(server < HARDWARE_SERVERS);
	for (unsigned o = 0; o < HARDWARE_OWN; o++)
		if (hw->server[server][o])
			set_number(&its, &fields[own[o]], hw->server[server][o] - 1);
	return its;
}

int hardware_name_number(const char *name)
{
	const char *dot = strchr(name, '.');
	const unsigned server = dot ? (unsigned)(dot[1] - '1') : 0;
	if (!dot)
		return hardware_find(name);
	for (unsigned o = 0; o < HARDWARE_OWN && server < HARDWARE_SERVERS && !dot[2]; o++) {
		const char *base = fields[own[o]].knob.name;
		if (!strncmp(base, name, (size_t)(dot - name)) && !base[dot - name])
			return (int)(FIELDS + server * HARDWARE_OWN + o);
	}
	return -1;
}

unsigned hardware_servers(const struct hardware *hw)
{
	static const uint8_t none[HARDWARE_OWN];
	unsigned n = HARDWARE_SERVERS;
	while (n && !memcmp(hw->server[n - 1], none, sizeof(none)))
		n--;
	return n;
}

unsigned hardware_knob_server(const char *name)
{
	const int number = hardware_name_number(name) - (int)FIELDS;
	return number < 0 ? 0 : 1 + (unsigned)number / HARDWARE_OWN;
}

int hardware_set(struct hardware *hw, const char *name, const char *value, const char **expected)
{
	const int number = hardware_name_number(name);
	const unsigned one = (unsigned)number - FIELDS; /* a server's own knob, if there is such */

	if (number < 0) {
		*expected = names + 1; /* without the first blank */
		return -EINVAL;
	}
	const bool is_own = number >= (int)FIELDS;
	const struct field *field = &fields[is_own ? own[one % HARDWARE_OWN] : (unsigned)number];
	int i = word_list_find(field->knob.values, value_now(field->knob.name, value));
	if (i < 0) {
		*expected = field->knob.values;
		return -EINVAL;
	}
	const uint16_t is = value_number(field, (unsigned)i);
	if (is_own)
		hw->server[one / HARDWARE_OWN][one % HARDWARE_OWN] = (uint8_t)(1 + is);
	else
		set_number(hw, field, is);
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

/* A text that grows: " NAME.SERVER=WORD", as snprintf() would put it at the end; server 0: all. */
static int add_knob(const struct field *field, unsigned server, unsigned number, char *buf,
		    size_t n, size_t at)
{
	char word[64], dot[8] = "";

	if (server)
		snprintf(dot, sizeof(dot), ".%u", server);
	value_word(field, number, word, sizeof(word));
	return snprintf(at < n ? buf + at : NULL, at < n ? n - at : 0, "%s%s%s=%s", at ? " " : "",
			field->knob.name, dot, word);
}

int hardware_print(const struct hardware *hw, bool all, char *buf, size_t n)
{
	size_t at = 0;

	if (n)
		buf[0] = '\0';
	for (unsigned f = 0; f < FIELDS; f++) {
		unsigned number = get_number(hw, &fields[f]);

		if ((all && fields[f].knob.print != KNOB_RARE) ||
		    number != get_number(&hardware_default, &fields[f]))
			at += (size_t)add_knob(&fields[f], 0, number, buf, n, at);
	}
	for (unsigned i = 0; i < HARDWARE_SERVERS * HARDWARE_OWN; i++) {
		const unsigned server = i / HARDWARE_OWN, o = i % HARDWARE_OWN;
		if (hw->server[server][o])
			at += (size_t)add_knob(&fields[own[o]], server + 1,
					       hw->server[server][o] - 1u, buf, n, at);
	}
	return (int)at;
}

const struct hardware_knob *hardware_knob(unsigned i)
{
	static const struct hardware_knob end = {.print = KNOB_USUAL};

	return i < FIELDS ? &fields[i].knob : &end;
}
