/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_LIVE_STORE_H
#define TM_SCENARIOS_LIVE_STORE_H
/*
 * What a live server serves, as a text of lines "name value": the first page of its
 * pool, what it tells clients that connect, the beginning of their recordings.
 *
 *	tidemark-pool 1
 *	store efactory
 *	variant default
 *	knob room=25		(each that is not at its default)
 *	clients 8
 *	keys 1000
 *	updates 100000
 *	value 256
 *	pool 16777216		(bytes)
 *	boot 3			(how often it was started, this time included; 0: being formatted)
 *	state running		("stopped": an orderly end)
 */
#include "core/text/text.h"
#include "core/tidemark.h"

struct live_store {
	const struct tm_store *store; /* as find() gave it */
	char variant[48];
	struct tm_params params;
	size_t pool_bytes;
	uint32_t boot;
	bool running;
};

/* The stores of this program as compiled for the live world; ends with NULL. Same names and
 * parameters as `stores` (scenarios/stores.h), other functions. */
extern const struct tm_store *live_stores[];
const struct tm_store *live_store_find(const char *name); /* NULL: no such store */
/* One that was loaded; in the place of another of the same name. False: there are too many. */
#define LIVE_STORES_LOADED 8
bool live_store_add(const struct tm_store *store);

/* The bytes of a pool in which each of its servers has room. */
size_t live_store_bytes(const struct tm_store *store, const struct tm_params *params);
/* At most `n` bytes with the NUL; -ENOSPC. */
int live_store_print(const struct live_store *s, char *text, size_t n);
/* `find`: store_find or live_store_find. -EINVAL or -ENOMEM: *error says what is wrong. */
int live_store_parse(struct live_store *s, const char *text,
		     const struct tm_store *(*find)(const char *name), struct input_error *error);

/*
 * Keys and values of live clients. Key number k is "user" and 10 digits. A value says
 * which PUT wrote it: any bytes that are no whole value of that key are found out.
 */
#define LIVE_KEY_LEN   14
#define LIVE_MIN_VALUE 16 /* bytes */
void live_key(uint32_t key, char out[LIVE_KEY_LEN + 1]);
/* A PUT's id: unique over the pool's life. */
static inline uint64_t live_put_id(unsigned client, uint32_t session, uint32_t nth)
{
	return (uint64_t)client << 56 | (uint64_t)(session & 0xffffff) << 32 | nth;
}
void live_value(uint64_t id, uint32_t key, uint8_t *out, size_t len);
/* False: no PUT of this key wrote these bytes. */
bool live_value_id(uint32_t key, const uint8_t *bytes, size_t len, uint64_t *id);

#endif
