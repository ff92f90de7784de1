/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * YCSB: many operations on a few popular keys.
 *
 * The mixes are those of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC
 * 2010): A half reads, half updates; B 95 % reads; C reads only; and U, updates
 * only, which papers on persistent stores add. Updates are PUTs of the whole value.
 * Keys have 32 bytes, "user" and a number, all loaded.
 *
 * Which key: Zipf with exponent 0.99 (zipf.c). A workload's name fixes it on every
 * machine and compiler.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "scenarios/workload/workload.h"
#include "scenarios/workload/zipf.h"

static const struct {
	const char *name, *what;
	unsigned read_percent;
} mixes[] = {
	{"ycsb-a", "YCSB A: half GETs, half PUTs, Zipf 0.99", 50},
	{"ycsb-b", "YCSB B: 95 % GETs, 5 % PUTs, Zipf 0.99", 95},
	{"ycsb-c", "YCSB C: GETs only, Zipf 0.99", 100},
	{"ycsb-u", "YCSB's keys with PUTs only, Zipf 0.99", 0},
};

const char *ycsb_default(unsigned i, struct ycsb *y, const char **what)
{
	if (i >= sizeof(mixes) / sizeof(mixes[0]))
		return NULL;
	*y = (struct ycsb){
		.read_percent = mixes[i].read_percent,
		.clients = 2,
		.keys = 8,
		.ops = 40,
		.vlen = 64,
		.seed = 1,
	};
	*what = mixes[i].what;
	return mixes[i].name;
}

bool ycsb_mix(const char *mix, unsigned *read_percent)
{
	for (size_t i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++) {
		*read_percent = mixes[i].read_percent;
		if (!strcmp(mixes[i].name + strlen("ycsb-"), mix))
			return true;
	}
	return false;
}

/* A decimal number of up to 10 digits that ends at a comma or the end; moves *p there. -1: there is
 * none. */
static int64_t parse_number(const char **p)
{
	const char *start = *p;
	int64_t n = 0;

	while (**p >= '0' && **p <= '9') {
		if (*p - start == 10)
			return -1;
		n = n * 10 + (*(*p)++ - '0');
	}
	return *p == start || (**p && **p != ',') ? -1 : n;
}

int ycsb_parse(struct ycsb *y, const char *text, const char **expected)
{
	const struct {
		const char *name;
		unsigned *value;
		int64_t min, max;
		const char *expected;
	} size[] = {
		{"clients=", &y->clients, 1, TM_MAX_CLIENTS, "clients=1 to clients=16"},
		{"keys=", &y->keys, 1, WORKLOAD_MAX_KEYS, "keys=1 to keys=1024"},
		{"ops=", &y->ops, 1, WORKLOAD_MAX_OPS,
		 "ops=1 to ops=4096, of all clients together"},
		{"vlen=", &y->vlen, 0, TM_MAX_VALUE, "vlen=0 to vlen=65536, bytes"},
		{"seed=", &y->seed, 0, UINT32_MAX, "seed=0 to seed=4294967295"},
	};
	const unsigned sizes = sizeof(size) / sizeof(size[0]);
	unsigned given = 0;

	_Static_assert(TM_MAX_CLIENTS == 16 && WORKLOAD_MAX_KEYS == 1024, "texts above");
	_Static_assert(WORKLOAD_MAX_OPS == 4096 && TM_MAX_VALUE == 65536, "texts above");
	for (;;) {
		unsigned i = 0;

		while (i < sizes && strncmp(text, size[i].name, strlen(size[i].name)))
			i++;
		*expected = "clients=, keys=, ops=, vlen= or seed= and a number, with commas "
			    "between them";
		if (i == sizes)
			return -EINVAL;
		*expected = "each of clients, keys, ops, vlen and seed at most once";
		if (given & 1u << i)
			return -EINVAL;
		given |= 1u << i;
		text += strlen(size[i].name);
		int64_t n = parse_number(&text);
		*expected = size[i].expected;
		if (n < size[i].min || n > size[i].max)
			return -EINVAL;
		*size[i].value = (unsigned)n;
		if (!*text)
			return 0;
		text++;
	}
}

int ycsb_make(const struct ycsb *y, struct workload *w)
{
	uint64_t state = y->seed;
	struct zipf zipf;

	assert(y->read_percent <= 100 && y->clients >= 1 && y->clients <= WORKLOAD_MAX_CLIENTS);
	assert(y->vlen <= TM_MAX_VALUE && y->ops <= WORKLOAD_MAX_OPS);
	assert(!w->keys && !w->clients);
	int rc = zipf_init(&zipf, y->keys, &state);
	for (unsigned k = 0; k < y->keys && rc >= 0; k++) {
		char name[TM_MAX_KEY + 1];

		snprintf(name, sizeof(name), "user%028u", k);
		rc = workload_key_add(w, name, strlen(name), (int32_t)y->vlen);
	}
	if (rc < 0)
		goto err;
	w->clients = y->clients;
	for (unsigned i = 0; i < y->ops; i++) {
		enum op_kind kind = random_below(&state, 100) < y->read_percent ? OP_GET : OP_PUT;

		rc = workload_op_add(w, i % y->clients + 1, kind, zipf_draw(&zipf, &state),
				     y->vlen);
		if (rc)
			goto err;
	}
	zipf_free(&zipf);
	return 0;
err:
	assert(rc == -ENOMEM);
	zipf_free(&zipf);
	workload_free(w);
	return rc;
}
