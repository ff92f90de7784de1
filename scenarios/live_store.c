/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a live server serves, as text, and the values of live clients. See live_store.h.
 *
 * The text is strict: its lines are in the order shown there, each of them once (but for the
 * knobs), and nothing follows. A header that a failure has damaged is found out.
 */
#include "scenarios/live_store.h"
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "faultinject/random_source.h"
#include "scenarios/knobs.h"
#include "scenarios/stores.h"

#define LINE_MAX_BYTES 128

struct output {
	char *at;
	size_t room;
	bool full;
};

__attribute__((format(printf, 2, 3))) static void put_line(struct output *t, const char *format,
							   ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(t->at, t->room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= t->room) {
		t->full = true;
		return;
	}
	t->at += n;
	t->room -= (size_t)n;
}

size_t live_store_bytes(const struct tm_store *store, const struct tm_params *params)
{
	struct tm_params one = *params;
	size_t most = 0;
	for (one.server = 0; one.server < store_servers(store, params); one.server++) {
		const size_t bytes = store->pm_bytes(&one);
		most = bytes > most ? bytes : most;
	}
	return most;
}

int live_store_print(const struct live_store *s, char *text, size_t n)
{
	struct output t = {text, n, false};
	const struct tm_params *p = &s->params;
	put_line(&t, "tidemark-pool 1\nstore %s\nvariant %s\n", s->store->name, s->variant);
	for (unsigned k = 0; s->store->knobs[k].name; k++) {
		char value[LINE_MAX_BYTES];
		if (!p->knob[k])
			continue;
		knob_value(s->store, p, k, value, sizeof(value));
		put_line(&t, "knob %s=%s\n", s->store->knobs[k].name, value);
	}
	put_line(&t,
		 "clients %u\nkeys %u\nupdates %u\nvalue %u\npool %zu\nboot %" PRIu32
		 "\nstate %s\n",
		 p->clients, p->keys, p->updates, p->max_vlen, s->pool_bytes, s->boot,
		 s->running ? "running" : "stopped");
	return t.full ? -ENOSPC : 0;
}

static int read_variant(struct text *t, struct live_store *s)
{
	const struct tm_variant *v = s->store->variants;
	const char *name = text_field(t, "variant", "variant and its name");
	if (!name)
		return -EINVAL;
	while (v->name && strcmp(v->name, name))
		v++;
	if ((!v->name && strcmp(name, "default")) || strlen(name) >= sizeof(s->variant))
		return text_wrong(t, "expected a variant of this store");
	strcpy(s->variant, name);
	return 0;
}

static int read_knobs(struct text *t, struct live_store *s)
{
	char *knob;
	while ((knob = text_field_if(t, "knob")) != NULL) {
		const char *expected = "knob name=value, as this store has it";
		const char *value = text_value(knob);
		if (!value || knob_set(s->store, &s->params, knob, value, &expected))
			return text_wrong(t, "expected %s", expected);
	}
	return 0;
}

static int read_sizes(struct text *t, struct live_store *s)
{
	uint64_t clients, keys, updates, value, pool, boot;
	_Static_assert(TM_MAX_CLIENTS == 16 && TM_MAX_VALUE == 65536 && LIVE_MIN_VALUE == 16,
		       "texts below");
	if (text_field_number(t, "clients", 1, TM_MAX_CLIENTS, "clients and their number, 1 to 16",
			      &clients) ||
	    text_field_number(t, "keys", 1, UINT32_MAX, "keys and their number", &keys) ||
	    text_field_number(t, "updates", 0, UINT32_MAX, "updates and their number", &updates) ||
	    text_field_number(t, "value", LIVE_MIN_VALUE, TM_MAX_VALUE,
			      "value and its bytes, 16 to 65536", &value) ||
	    text_field_number(t, "pool", 64, SIZE_MAX / 2, "pool and its bytes", &pool))
		return -EINVAL;
	s->params.clients = (unsigned)clients;
	s->params.keys = (unsigned)keys;
	s->params.updates = (unsigned)updates;
	s->params.max_vlen = (unsigned)value;
	s->pool_bytes = (size_t)pool;
	if (s->pool_bytes < live_store_bytes(s->store, &s->params))
		return text_wrong(t, "expected a pool in which this store has room");
	if (text_field_number(t, "boot", 0, UINT32_MAX, "boot and a number", &boot))
		return -EINVAL;
	s->boot = (uint32_t)boot;
	return 0;
}

static int read_state(struct text *t, struct live_store *s)
{
	static const char expected[] = "state running or stopped";
	const char *state = text_field(t, "state", expected);
	char *more;
	if (!state)
		return -EINVAL;
	s->running = !strcmp(state, "running");
	if (!s->running && strcmp(state, "stopped"))
		return text_wrong(t, "expected %s", expected);
	return text_line(t, &more) ? text_wrong(t, "expected nothing more") : 0;
}

static int read_all(struct text *t, struct live_store *s,
		    const struct tm_store *(*find)(const char *name))
{
	static const char magic[] = "tidemark-pool 1";
	const char *version = text_field(t, "tidemark-pool", magic), *name;
	if (!version)
		return -EINVAL;
	if (strcmp(version, "1"))
		return text_wrong(t, "expected %s", magic);
	name = text_field(t, "store", "store and its name");
	if (!name)
		return -EINVAL;
	s->store = find(name);
	if (!s->store)
		return text_wrong(t, "expected the name of a store");
	return read_variant(t, s) || read_knobs(t, s) || read_sizes(t, s) || read_state(t, s)
		       ? -EINVAL
		       : 0;
}

int live_store_parse(struct live_store *s, const char *text,
		     const struct tm_store *(*find)(const char *name), struct input_error *error)
{
	char *copy = strdup(text);
	struct text t;
	memset(s, 0, sizeof(*s));
	memset(error, 0, sizeof(*error));
	if (!copy) {
		snprintf(error->message, sizeof(error->message), "not enough memory");
		return -ENOMEM;
	}
	text_start(&t, copy, strlen(copy), error);
	int rc = read_all(&t, s, find);
	free(copy);
	return rc;
}

void live_key(uint32_t key, char out[LIVE_KEY_LEN + 1])
{
	snprintf(out, LIVE_KEY_LEN + 1, "user%010" PRIu32, key);
}

/* The words of a value: the PUT's id, then what follows from id, key and length. */
static uint64_t first_word_seed(uint64_t id, uint32_t key, size_t len)
{
	uint64_t state = id;
	state = random_next(&state) ^ key;
	return random_next(&state) ^ len;
}

void live_value(uint64_t id, uint32_t key, uint8_t *out, size_t len)
{
	uint64_t state = first_word_seed(id, key, len), word = id;
	assert(len >= LIVE_MIN_VALUE);
	for (size_t at = 0; at < len; at += sizeof(word)) {
		size_t n = len - at < sizeof(word) ? len - at : sizeof(word);
		uint64_t little = htole64(word);
		memcpy(out + at, &little, n);
		word = random_next(&state);
	}
}

bool live_value_id(uint32_t key, const uint8_t *bytes, size_t len, uint64_t *id)
{
	uint64_t word;
	if (len < LIVE_MIN_VALUE)
		return false;
	memcpy(&word, bytes, sizeof(word));
	*id = le64toh(word);
	uint64_t state = first_word_seed(*id, key, len);
	for (size_t at = sizeof(word); at < len; at += sizeof(word)) {
		size_t n = len - at < sizeof(word) ? len - at : sizeof(word);
		uint64_t little = htole64(random_next(&state));
		if (memcmp(bytes + at, &little, n))
			return false;
	}
	return true;
}
