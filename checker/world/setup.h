/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_SETUP_H
#define TM_CHECKER_WORLD_SETUP_H
/*
 * What is tested: a store with its knobs, the hardware, a workload; and the
 * values that the workload's PUTs write, so that bytes a GET returned can be named.
 */
#include "checker/world/checker_mutant.h"
#include "checker/world/life.h"
#include "checker/world/places.h"
#include "checker/judge/history.h"
#include "checker/judge/known.h"
#include "core/hardware/hardware.h"
#include "core/pmem/pmem.h"
#include "core/tidemark.h"
#include "scenarios/workload/workload.h"

#define SETUP_REGIONS	     8 /* of a server */
#define SETUP_REGION_NAME    24
#define SETUP_POWER_FAILURES 3 /* of one run at most */
/* Operations that come after them: all keys are read, a life, and they are read again. */
#define SETUP_READ_OPS(w) (SETUP_POWER_FAILURES * (2 * ((w)->keys + workload_looks(w)) + LIFE_OPS))
/* That look at a store once, at most. */
#define SETUP_LOOKS HISTORY_KEYS
#define LIFE_VLEN   40 /* bytes of values that are put after recovery, if the store takes them */

/* A PUT's value. */
struct setup_value {
	uint8_t client; /* 0: the load phase */
	uint16_t nth, key;
	uint32_t vlen;
	const uint8_t *bytes;
	int next;    /* next value of the same key, -1 */
	bool shared; /* others may write these bytes, too */
};

/* Where a server's pool is in that of all; `params` names it. */
struct setup_server {
	struct tm_params params;
	size_t at, len;
};

struct setup {
	const struct tm_store *store;
	struct statics *statics; /* of a store that was loaded; else NULL */
	char variant[48];
	struct tm_params params;
	struct hardware hw;
	struct profile profile; /* what takes time */
	uint8_t mutant;		/* enum checker_mutant */
	/* Places of the store's code that all runs do without once it is loaded, and their names;
	 * where those that were reached are noted, or NULL: the caller's. */
	struct places_without without;
	char without_name[PLACES_WITHOUT][PLACE_TEXT];
	struct places_reached *reached;
	/* The known causes of breaks that are expected; none are compared unless they are set. And
	 * TM_BIT()s, of the contracts that are compared: only a break with an unknown cause counts
	 * as one. */
	struct known known;
	unsigned unknown_only;
	/* Receive the store's accesses to DRAM, and the events of the load phase; may be NULL. */
	pmem_dram_watcher *dram_watcher;
	sim_tracer *load_tracer;
	void *watcher_arg;
	struct workload w;
	/* Of all servers, if there are several: the pool is theirs, one after the other. */
	struct tm_region region[SIM_SERVERS * SETUP_REGIONS];
	char (*region_name)[SETUP_REGION_NAME]; /* owned; NULL: the names are the store's */
	unsigned regions, servers;
	size_t pm_len;
	struct setup_server server[SIM_SERVERS];
	uint32_t life_vlen; /* of values that are put after recovery: LIFE_VLEN, within the store's
			       limits */
	bool own; /* the workload has the store's own operations, and is read and judged by them */
	struct setup_value *value; /* the load phase's first, by key; then by client and nth */
	unsigned values;
	int *first_value;				    /* by key */
	unsigned first_of_client[WORKLOAD_MAX_CLIENTS + 1]; /* [c]: index of client c's first PUT */
	uint8_t *bytes;
	uint8_t *image; /* the pool after the load phase */
};

/* Store, knobs at their defaults, default hardware, no workload. */
void setup_init(struct setup *s, const struct tm_store *store);
/* A knob of the store or of the hardware. -EINVAL with *expected. */
int setup_knob(struct setup *s, const char *name, const char *value, const char **expected);
/* Likewise of a text "name=value". */
int setup_switch(struct setup *s, const char *text, const char **expected);
/* A knob of the hardware, the checker's mutants included. -EINVAL with *expected: there is no such
 * value, or the store cannot do with it (tm_store.infiniband). */
int setup_hardware(struct setup *s, const char *name, const char *value, const char **expected);
/* With these knobs, are there all servers that have hardware of their own? */
bool setup_has_servers(const struct setup *s);
/* hardware_print() with the checker's mutant, if one is on. */
int setup_hardware_print(const struct setup *s, bool all, char *buf, size_t n);
/* A variant's knobs. -ENOENT. */
int setup_variant(struct setup *s, const char *name);
/* From now on do without this place, too. -E2BIG: PLACES_WITHOUT already. */
int setup_without(struct setup *s, const struct place *place);
/* The knob's value. */
void setup_knob_value(const struct setup *s, unsigned knob, char *buf, size_t n);
/* Sizes, values and regions, once the workload is in s->w. 0, -ENOMEM, -EFBIG (the pool would be
 * too large). */
int setup_finish(struct setup *s);
/* The same store, knobs and hardware under a copy of another workload, finished. As
 * setup_finish(); to be freed in any case. */
int setup_like(struct setup *s, const struct setup *base, const struct workload *w);
void setup_free(struct setup *s);
/* TM_BIT()s of the contracts that are judged: with operations of the store's own its model and its
 * judge know what is right, and not what holds of any key and value. */
unsigned setup_judged(const struct setup *s);
/* Are there keys that can be put and got? */
static inline bool setup_puts(const struct setup *s)
{
	return s->store->put && s->w.keys;
}
/* The store's own operations: number of kinds, and of those that look at a store. 0: they are not
 * what is tested. */
unsigned setup_calls(const struct setup *s);
unsigned setup_looks(const struct setup *s);
/* An operation with which a store is looked at once all keys have been read; `i` below
 * setup_looks(). Its label's number and its value's are the caller's. */
struct workload_op setup_look(const struct setup *s, unsigned i);
/* The value of a workload's PUT. */
const struct setup_value *setup_put_value(const struct setup *s, unsigned client, unsigned nth);
/* The server that has this offset of the pool of all. */
unsigned setup_server_at(const struct setup *s, uint64_t off);
/* The hardware of the server whose part of the pool this is. */
static inline struct hardware setup_hw_at(const struct setup *s, uint64_t off)
{
	return s->servers > 1 ? hardware_of_server(&s->hw, setup_server_at(s, off)) : s->hw;
}
/* The region of an offset of the pool: index into s->region; s->regions: none. */
unsigned setup_region(const struct setup *s, uint64_t off);
/* Which PUTs of `key` write these bytes: indices into s->value, the first, or the next after `i`;
 * -1:
 * none. */
int setup_find_value(const struct setup *s, unsigned key, const uint8_t *bytes, size_t len);
int setup_next_value(const struct setup *s, int i, const uint8_t *bytes, size_t len);

#endif
