/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hardware configuration as words: one table says for each field of struct
 * hardware its name, the words for its values, the numbers they stand for, and
 * what it means. The first value is the default, so the table is the default too.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/pmem/own_bug.h"

#define MAX_VALUES 5

struct field {
	struct hardware_knob
		knob; /* values: as in struct tm_knob, separated by single spaces, default first */
	size_t off, size;
	uint16_t number[MAX_VALUES]; /* of each value; all 0: its place among the values */
};

#define X(enumerator, name, part, what) " " name
static const char own_bug_values[] = "none" OWN_MODEL_BUGS(X) OWN_BLIND_BUGS(X) OWN_CHANGES(X);
#undef X

#define X(enumerator, name, part, what) [OWN_##enumerator] = {name, part, what, false, false},
#define Y(enumerator, name, part, what) [OWN_##enumerator] = {name, part, what, true, false},
#define Z(enumerator, name, part, what) [OWN_##enumerator] = {name, part, what, false, true},
const struct own_bug_info own_bugs[OWN_BUGS] = {[OWN_NONE] = {"none", "", "", false, false},
						OWN_MODEL_BUGS(X) OWN_BLIND_BUGS(Y) OWN_CHANGES(Z)};
#undef X
#undef Y
#undef Z

#define FIELD(member) offsetof(struct hardware, member), sizeof(((struct hardware *)0)->member)

static const struct field fields[] = {
	{{"domain", "dmp mhp wsp",
	  "what survives a power failure: memory; and caches; and NIC buffers"},
	 FIELD(domain),
	 {DOMAIN_DMP, DOMAIN_MHP, DOMAIN_WSP}},
	{{"ddio", "on off", "data from the NIC goes to the L3 cache; off: it drains to memory"},
	 FIELD(ddio),
	 {true, false}},
	{{"rqwrb", "dram pm", "where receive buffers are"}, FIELD(rqwrb_pm), {false, true}},
	{{"transport", "ib iwarp",
	  "when a write completes: received by the responder's NIC; iwarp: sent"},
	 FIELD(transport),
	 {TRANSPORT_IB, TRANSPORT_IWARP}},
	{{"mtu", "1024 256 512 2048 4096", "bytes of payload in a packet"},
	 FIELD(mtu),
	 {1024, 256, 512, 2048, 4096}},
	{{"dma_order", "left any", "order in which the lines of one RDMA message land"},
	 FIELD(dma_any),
	 {false, true}},
	{{"read_order", "left right",
	  "order in which a READ fetches the lines of one response packet"},
	 FIELD(read_right),
	 {false, true}},
	{{"line_torn", "off on",
	  "a line reaching PM as the power fails may be cut at any 8-byte word"},
	 FIELD(line_torn),
	 {false, true}},
	{{"iio_in_mhp", "on off", "integrated-I/O buffers survive where caches do"},
	 FIELD(iio_in_mhp),
	 {true, false}},
	{{"ack_early", "on off", "a write may complete before it is visible at the responder"},
	 FIELD(ack_early),
	 {true, false}},
	{{"rkey_reuse", "off on",
	  "a region registered again gets its old rkey, so late writes land"},
	 FIELD(rkey_reuse),
	 {false, true}},
	{{"flush_covers_send", "on off", "a FLUSH covers the Sends of its connection too"},
	 FIELD(flush_covers_send),
	 {true, false}},
	{{"store_buffer", "0 1 2 4 8",
	  "entries of each CPU's store buffer: loads run ahead of stores (x86-TSO); 0: none"},
	 FIELD(store_buffer),
	 {0, 1, 2, 4, 8}},
	{{"calls", "good fail", "calls that can fail do (tidemark list failures)"},
	 FIELD(calls_fail),
	 {0}},
	{{"own_bug", own_bug_values, "a seeded bug of Tidemark's own (tidemark list bugs)"},
	 FIELD(own_bug),
	 {0}},
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

const struct hardware hardware_default = {
	.domain = DOMAIN_DMP,
	.ddio = true,
	.rqwrb_pm = false,
	.transport = TRANSPORT_IB,
	.mtu = 1024,
	.dma_any = false,
	.read_right = false,
	.line_torn = false,
	.iio_in_mhp = true,
	.ack_early = true,
	.rkey_reuse = false,
	.flush_covers_send = true,
};

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
}

/* The bug of our own, calls that fail: spoken of only where there are some. */
static bool is_seldom(const struct field *field)
{
	return !field->number[0] && !field->number[1];
}

/* What the field's i-th value stands for. */
static uint16_t value_number(const struct field *field, unsigned i)
{
	assert(is_seldom(field) || i < MAX_VALUES);
	return is_seldom(field) ? (uint16_t)i : field->number[i];
}

/* The i-th word of a list separated by single spaces; NULL at the end. */
static const char *nth_word(const char *list, unsigned i, size_t *len)
{
	while (i--) {
		list = strchr(list, ' ');
		if (!list)
			return NULL;
		list++;
	}
	*len = strcspn(list, " ");
	return list;
}

int hardware_set(struct hardware *hw, const char *name, const char *value, const char **expected)
{
	for (unsigned f = 0; f < FIELDS; f++) {
		const char *word;
		size_t len;

		if (strcmp(fields[f].knob.name, name))
			continue;
		for (unsigned i = 0; (word = nth_word(fields[f].knob.values, i, &len)) != NULL;
		     i++) {
			if (strlen(value) == len && !memcmp(value, word, len)) {
				set_number(hw, &fields[f], value_number(&fields[f], i));
				return 0;
			}
		}
		*expected = fields[f].knob.values;
		return -EINVAL;
	}
	*expected = "domain ddio rqwrb transport mtu dma_order read_order line_torn iio_in_mhp "
		    "ack_early "
		    "rkey_reuse flush_covers_send store_buffer calls own_bug";
	return -EINVAL;
}

int hardware_switch(struct hardware *hw, const char *text, const char **expected)
{
	char name[64];
	size_t len = strcspn(text, "=");
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	return hardware_set(hw, name, text[len] ? text + len + 1 : "", expected);
}

int hardware_print(const struct hardware *hw, bool all, char *buf, size_t n)
{
	size_t at = 0;

	if (n)
		buf[0] = '\0';
	for (unsigned f = 0; f < FIELDS; f++) {
		unsigned number = get_number(hw, &fields[f]);
		const char *word = NULL;
		size_t len = 0;
		unsigned i = 0;

		if ((!all || is_seldom(&fields[f])) &&
		    number == get_number(&hardware_default, &fields[f]))
			continue;
		while ((word = nth_word(fields[f].knob.values, i, &len)) != NULL &&
		       value_number(&fields[f], i) != number)
			i++;
		assert(word); /* no such number: somebody wrote the field with something else */
		at += (size_t)snprintf(at < n ? buf + at : NULL, at < n ? n - at : 0, "%s%s=%.*s",
				       at ? " " : "", fields[f].knob.name, (int)len, word);
	}
	return (int)at;
}

const struct hardware_knob *hardware_knob(unsigned i)
{
	static const struct hardware_knob end = {NULL, NULL, NULL};

	return i < FIELDS ? &fields[i].knob : &end;
}
