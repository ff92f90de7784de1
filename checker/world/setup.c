/* SPDX-License-Identifier: BSD-3-Clause */
/* See setup.h. */
#include "checker/world/setup.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scenarios/knobs.h"
#include "scenarios/stores.h"

_Static_assert(TM_LINE == LINE, "stores and the machine have lines of one size");

#define POOL_MAX ((size_t)1 << 30)

void setup_init(struct setup *s, const struct tm_store *store)
{
	memset(s, 0, sizeof(*s));
	s->store = store;
	s->statics = store_statics(store);
	s->hw = hardware_default;
	s->profile = profile_default;
	s->w.calls = store->calls;
	snprintf(s->variant, sizeof(s->variant), "default");
}

int setup_knob(struct setup *s, const char *name, const char *value, const char **expected)
{
	int error = knob_set(s->store, &s->params, name, value, expected);
	return error == -ENOENT ? setup_hardware(s, name, value, expected) : error;
}

/* At most one mutant is on at a time, of whatever part. */
static int set_mutant(struct setup *s, const char *name, const char **expected)
{
	unsigned m = CHECKER_MUTANT_NONE + 1;
	while (m < CHECKER_MUTANT_COUNT && strcmp(checker_mutants[m].name, name) != 0)
		m++;
	bool ours = m < CHECKER_MUTANT_COUNT;
	if (hardware_set(&s->hw, "mutant", ours ? "none" : name, expected)) {
		*expected = mutant_names;
		return -EINVAL;
	}
	s->mutant = ours ? (uint8_t)m : CHECKER_MUTANT_NONE;
	return 0;
}

int setup_hardware(struct setup *s, const char *name, const char *value, const char **expected)
{
	int k = hardware_find(name);
	if (k >= 0 && hardware_knob((unsigned)k)->values == hardware_mutant_names)
		return set_mutant(s, value, expected);
	struct hardware hw = s->hw;
	const unsigned server = hardware_knob_server(name), servers = s->store->servers;
	if (server && (servers < 2 || server > servers)) {
		*expected = servers > 1 ? "the number of a server that the store has"
					: "no number of a server, as the store has one";
		return -EINVAL;
	}
	int error = hardware_set(&hw, name, value, expected);
	if (error)
		return error;
	if (s->store->infiniband && hw.transport != TRANSPORT_IB) {
		*expected = "ib, as the store needs unreliable connections or datagrams";
		return -EINVAL;
	}
	s->hw = hw;
	return 0;
}

bool setup_has_servers(const struct setup *s)
{
	return hardware_servers(&s->hw) <= store_servers(s->store, &s->params);
}

int setup_hardware_print(const struct setup *s, bool all, char *buf, size_t n)
{
	int len = hardware_print(&s->hw, all, buf, n);
	size_t at = (size_t)len < n ? (size_t)len : n;
	if (s->mutant)
		len += snprintf(buf ? buf + at : NULL, n - at, "%smutant=%s", len ? " " : "",
				checker_mutants[s->mutant].name);
	return len;
}

int setup_without(struct setup *s, const struct place *place)
{
	if (s->without.n == PLACES_WITHOUT)
		return -E2BIG;
	snprintf(s->without_name[s->without.n], PLACE_TEXT, "%s", place->name);
	s->without.key[s->without.n++] = place->key;
	return 0;
}

void setup_knob_value(const struct setup *s, unsigned knob, char *buf, size_t n)
{
	knob_value(s->store, &s->params, knob, buf, n);
}

int setup_switch(struct setup *s, const char *text, const char **expected)
{
	char name[64];
	size_t len = strcspn(text, "=");
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	return setup_knob(s, name, text[len] ? text + len + 1 : "", expected);
}

static int set_knob(void *arg, const char *name, const char *value)
{
	const char *expected;
	int bad = setup_knob(arg, name, value, &expected);
	assert(!bad); /* the store's own table */
	return bad;
}

int setup_variant(struct setup *s, const char *name)
{
	snprintf(s->variant, sizeof(s->variant), "%s", name);
	return knob_variant(s->store, name, set_knob, s);
}

static int same_value(const struct setup *s, int i, const uint8_t *bytes, size_t len)
{
	while (i >= 0 && (s->value[i].vlen != len || memcmp(s->value[i].bytes, bytes, len)))
		i = s->value[i].next;
	return i;
}

static void add_value(struct setup *s, unsigned client, unsigned nth, unsigned key, uint32_t vlen,
		      unsigned same, uint8_t **bytes)
{
	struct setup_value *v = &s->value[s->values];
	int equal;
	if (same)
		workload_value_same(same, key, *bytes, vlen);
	else
		workload_value(client, nth, key, *bytes, vlen);
	*v = (struct setup_value){.client = (uint8_t)client,
				  .nth = (uint16_t)nth,
				  .key = (uint16_t)key,
				  .vlen = vlen,
				  .bytes = *bytes,
				  .next = s->first_value[key],
				  .shared = same != 0};
	/* A short one may be the same by chance, an empty one always is. */
	for (equal = setup_find_value(s, key, v->bytes, vlen); equal >= 0;
	     equal = setup_next_value(s, equal, v->bytes, vlen))
		v->shared = s->value[equal].shared = true;
	s->first_value[key] = (int)s->values++;
	*bytes += vlen;
}

static int make_values(struct setup *s)
{
	size_t total = 0;
	for (unsigned k = 0; k < s->w.keys; k++)
		total += s->w.key[k].loaded > 0 ? (size_t)s->w.key[k].loaded : 0;
	for (unsigned c = 0; c < s->w.clients; c++)
		for (unsigned i = 0; i < s->w.client[c].ops; i++)
			total += s->w.client[c].op[i].vlen;
	s->value = calloc(workload_updates(&s->w) + 1, sizeof(*s->value));
	s->first_value = calloc(s->w.keys + 1, sizeof(*s->first_value));
	s->bytes = malloc(total + 1);
	if (!s->value || !s->first_value || !s->bytes)
		return -ENOMEM;
	uint8_t *bytes = s->bytes;
	for (unsigned k = 0; k < s->w.keys; k++)
		s->first_value[k] = -1;
	for (unsigned k = 0; k < s->w.keys; k++)
		if (s->w.key[k].loaded >= 0)
			add_value(s, 0, k + 1, k, (uint32_t)s->w.key[k].loaded, 0, &bytes);
	for (unsigned c = 0; c < s->w.clients; c++) {
		s->first_of_client[c + 1] = s->values;
		for (unsigned i = 0; i < s->w.client[c].ops; i++) {
			const struct workload_op *op = &s->w.client[c].op[i];
			if (op->kind == OP_PUT)
				add_value(s, c + 1, op->nth, op->key, op->vlen, op->same, &bytes);
		}
	}
	return 0;
}

unsigned setup_judged(const struct setup *s)
{
	return store_judged_by(s->store, s->own);
}

unsigned setup_calls(const struct setup *s)
{
	return s->own ? workload_call_types(s->store->calls) : 0;
}

unsigned setup_looks(const struct setup *s)
{
	return s->own ? workload_looks(&s->w) : 0;
}

struct workload_op setup_look(const struct setup *s, unsigned i)
{
	struct workload_op op = {.kind = OP_CALL};
	for (const struct tm_call_type *t = s->store->calls;; t++, op.call++) {
		unsigned n = !t->looks ? 0 : t->keys ? s->w.keys : 1;
		assert(t->name);
		if (i < n)
			break;
		i -= n;
	}
	op.key = (uint16_t)i;
	return op;
}

/* Its regions are named after it, where there are several. */
static void lay_pool(struct setup *s, unsigned k)
{
	struct tm_region *region = &s->region[s->regions];
	struct setup_server *server = &s->server[k];
	server->params = s->params;
	server->params.server = k;
	server->at = s->pm_len;
	server->len = s->store->pm_bytes(&server->params);
	server->len += -server->len % TM_LINE;
	unsigned n = s->store->regions(&server->params, region, SETUP_REGIONS);
	assert(n <= SETUP_REGIONS);
	if (!n) /* lines of traces have the names of regions */
		region[n++] = (struct tm_region){"pool", 0, server->len};
	for (unsigned i = 0; i < n && s->region_name; i++) {
		char *name = s->region_name[s->regions + i];
		snprintf(name, sizeof(s->region_name[0]), "s%u/%s", k + 1, region[i].name);
		region[i].name = name;
		region[i].off += server->at;
	}
	s->regions += n;
	s->pm_len += server->len;
}

static int lay_pools(struct setup *s)
{
	s->servers = store_servers(s->store, &s->params);
	assert(s->servers <= SIM_SERVERS && !s->region_name);
	if (s->servers > 1) {
		s->region_name = calloc((size_t)SETUP_REGIONS * s->servers,
					sizeof(*s->region_name));
		if (!s->region_name)
			return -ENOMEM;
	}
	s->regions = 0;
	s->pm_len = 0;
	for (unsigned k = 0; k < s->servers; k++)
		lay_pool(s, k);
	return s->pm_len > POOL_MAX ? -EFBIG : 0;
}

int setup_finish(struct setup *s)
{
	uint32_t longest = workload_max_vlen(&s->w);
	s->own = s->store->calls && (!s->store->put || workload_has_calls(&s->w));
	s->params.clients = s->w.clients + LIFE_CLIENTS;
	s->params.keys = s->w.keys;
	/* Machines but the first and the last live on after recovery, or prove life with a PUT. */
	s->params.later = (SETUP_POWER_FAILURES - 1) * LIFE_OPS;
	s->params.updates = workload_updates(&s->w) + 4 + s->params.later;
	s->life_vlen = workload_limit_vlen(s->store, LIFE_VLEN);
	s->params.max_vlen = longest > s->life_vlen ? longest : s->life_vlen;
	s->params.rqwrb_pm = s->hw.rqwrb_pm;
	int error = lay_pools(s);
	if (error)
		return error;
	s->image = calloc(1, s->pm_len);
	return s->image ? make_values(s) : -ENOMEM;
}

int setup_like(struct setup *s, const struct setup *base, const struct workload *w)
{
	setup_init(s, base->store);
	memcpy(s->variant, base->variant, sizeof(s->variant));
	memcpy(s->params.knob, base->params.knob, sizeof(s->params.knob));
	s->hw = base->hw;
	s->profile = base->profile;
	s->mutant = base->mutant;
	s->without = base->without;
	memcpy(s->without_name, base->without_name, sizeof(s->without_name));
	s->reached = base->reached;
	s->known = base->known;
	s->unknown_only = base->unknown_only;
	int error = workload_copy(&s->w, w);
	return error ? error : setup_finish(s);
}

void setup_free(struct setup *s)
{
	workload_free(&s->w);
	free(s->value);
	free(s->first_value);
	free(s->bytes);
	free(s->image);
	free(s->region_name);
	s->value = NULL;
	s->first_value = NULL;
	s->bytes = s->image = NULL;
	s->region_name = NULL;
	s->values = 0;
}

const struct setup_value *setup_put_value(const struct setup *s, unsigned client, unsigned nth)
{
	return &s->value[s->first_of_client[client] + nth - 1];
}

unsigned setup_server_at(const struct setup *s, uint64_t off)
{
	unsigned k = s->servers - 1;
	while (off < s->server[k].at)
		k--;
	return k;
}

unsigned setup_region(const struct setup *s, uint64_t off)
{
	unsigned i = 0;
	while (i < s->regions &&
	       (off < s->region[i].off || off >= s->region[i].off + s->region[i].len))
		i++;
	return i;
}

int setup_find_value(const struct setup *s, unsigned key, const uint8_t *bytes, size_t len)
{
	return same_value(s, s->first_value[key], bytes, len);
}

int setup_next_value(const struct setup *s, int i, const uint8_t *bytes, size_t len)
{
	return same_value(s, s->value[i].next, bytes, len);
}
