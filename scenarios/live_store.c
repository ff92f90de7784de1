/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a live server serves, as text, and the values of live clients. See live_store.h.
 *
 * The text is strict: its lines stand in the order shown there, each of them once (but for
 * the knobs), and nothing follows. A header that a failure has damaged is found out.
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
#include "scenarios/knobs.h"

#define LINE_MAX_BYTES 128

struct text {
	char *at;
	size_t room;
	bool full;
};

__attribute__((format(printf, 2, 3))) static void put_line(struct text *t, const char *format, ...)
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

int live_store_print(const struct live_store *s, char *text, size_t n)
{
	struct text t = {text, n, false};
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

/* A text that is being read: the line that is on, its number, and what should have stood there. */
struct reader {
	const char *rest;
	unsigned line;
	char word[LINE_MAX_BYTES]; /* behind the line's name */
	const char *expected;
};

/* Take the next line if it is "name word". */
static bool take(struct reader *r, const char *name)
{
	size_t len = strlen(name), n = strcspn(r->rest, "\n");
	if (strncmp(r->rest, name, len) || r->rest[len] != ' ' || r->rest[n] != '\n' ||
	    n - len - 1 >= sizeof(r->word))
		return false;
	memcpy(r->word, r->rest + len + 1, n - len - 1);
	r->word[n - len - 1] = '\0';
	r->rest += n + 1;
	r->line++;
	return true;
}

/* The next line has to be "name word". */
static bool need(struct reader *r, const char *name, const char *expected)
{
	r->expected = expected;
	if (take(r, name))
		return true;
	r->line++;
	return false;
}

static bool number(struct reader *r, const char *name, uint64_t min, uint64_t max,
		   const char *expected, uint64_t *value)
{
	char *end;
	if (!need(r, name, expected) || r->word[0] < '0' || r->word[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(r->word, &end, 10);
	return !errno && !*end && *value >= min && *value <= max;
}

static bool read_variant(struct reader *r, struct live_store *s)
{
	const struct tm_variant *v = s->store->variants;
	if (!need(r, "variant", "variant and its name"))
		return false;
	r->expected = "a variant of this store";
	while (v->name && strcmp(v->name, r->word))
		v++;
	if ((!v->name && strcmp(r->word, "default")) || strlen(r->word) >= sizeof(s->variant))
		return false;
	strcpy(s->variant, r->word);
	return true;
}

static bool read_knobs(struct reader *r, struct live_store *s)
{
	while (take(r, "knob")) {
		char *equals = strchr(r->word, '=');
		r->expected = "knob name=value, as this store has it";
		if (!equals)
			return false;
		*equals = '\0';
		if (knob_set(s->store, &s->params, r->word, equals + 1, &r->expected))
			return false;
	}
	return true;
}

static bool read_sizes(struct reader *r, struct live_store *s)
{
	uint64_t clients, keys, updates, value, pool, boot;
	_Static_assert(TM_MAX_CLIENTS == 16 && TM_MAX_VALUE == 65536 && LIVE_MIN_VALUE == 16,
		       "texts below");
	if (!number(r, "clients", 1, TM_MAX_CLIENTS, "clients and their number, 1 to 16",
		    &clients) ||
	    !number(r, "keys", 1, UINT32_MAX, "keys and their number", &keys) ||
	    !number(r, "updates", 0, UINT32_MAX, "updates and their number", &updates) ||
	    !number(r, "value", LIVE_MIN_VALUE, TM_MAX_VALUE, "value and its bytes, 16 to 65536",
		    &value) ||
	    !number(r, "pool", 64, SIZE_MAX / 2, "pool and its bytes", &pool))
		return false;
	s->params.clients = (unsigned)clients;
	s->params.keys = (unsigned)keys;
	s->params.updates = (unsigned)updates;
	s->params.max_vlen = (unsigned)value;
	s->pool_bytes = (size_t)pool;
	r->expected = "a pool in which this store has room";
	if (s->pool_bytes < s->store->pm_bytes(&s->params))
		return false;
	if (!number(r, "boot", 0, UINT32_MAX, "boot and a number", &boot))
		return false;
	s->boot = (uint32_t)boot;
	return true;
}

static bool read_all(struct reader *r, struct live_store *s,
		     const struct tm_store *(*find)(const char *name))
{
	if (!need(r, "tidemark-pool", "tidemark-pool 1") || strcmp(r->word, "1"))
		return false;
	if (!need(r, "store", "store and its name"))
		return false;
	r->expected = "the name of a store";
	s->store = find(r->word);
	if (!s->store || !read_variant(r, s) || !read_knobs(r, s) || !read_sizes(r, s) ||
	    !need(r, "state", "state running or stopped"))
		return false;
	s->running = !strcmp(r->word, "running");
	if (!s->running && strcmp(r->word, "stopped"))
		return false;
	r->expected = "nothing more";
	if (*r->rest)
		r->line++;
	return !*r->rest;
}

int live_store_parse(struct live_store *s, const char *text,
		     const struct tm_store *(*find)(const char *name), unsigned *line,
		     const char **expected)
{
	struct reader r = {.rest = text};
	memset(s, 0, sizeof(*s));
	if (read_all(&r, s, find))
		return 0;
	*line = r.line;
	*expected = r.expected;
	return -EINVAL;
}

void live_key(uint32_t key, char out[LIVE_KEY_LEN + 1])
{
	snprintf(out, LIVE_KEY_LEN + 1, "user%010" PRIu32, key);
}

/* One step of splitmix64. */
static uint64_t mix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* The words of a value: the PUT's id, then what follows from id, key and length. */
static uint64_t first_word_seed(uint64_t id, uint32_t key, size_t len)
{
	uint64_t state = id;
	state = mix(&state) ^ key;
	return mix(&state) ^ len;
}

void live_value(uint64_t id, uint32_t key, uint8_t *out, size_t len)
{
	uint64_t state = first_word_seed(id, key, len), word = id;
	assert(len >= LIVE_MIN_VALUE);
	for (size_t at = 0; at < len; at += sizeof(word)) {
		size_t n = len - at < sizeof(word) ? len - at : sizeof(word);
		uint64_t little = htole64(word);
		memcpy(out + at, &little, n);
		word = mix(&state);
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
		uint64_t little = htole64(mix(&state));
		if (memcmp(bytes + at, &little, n))
			return false;
	}
	return true;
}
