/* SPDX-License-Identifier: BSD-3-Clause */
/* See live_sim.h. */
#include "tests/core/live/live_sim.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/crash.h"
#include "core/rnic/rnic.h"
#include "scenarios/knobs.h"
#include "scenarios/stores.h"

#define STEP_NS	   1000 /* between the times that are recorded */
#define WAIT_NS	   1000000
#define CONNECTION 1

void live_sim_open(struct live_sim *ls, const char *store, unsigned keys, unsigned updates,
		   unsigned vlen)
{
	memset(ls, 0, sizeof(*ls));
	ls->store.store = store_find(store);
	assert(ls->store.store);
	strcpy(ls->store.variant, "default");
	ls->store.params = (struct tm_params){
		.clients = 4, .keys = keys, .updates = updates, .max_vlen = vlen};
	ls->store.boot = 1;
	ls->store.running = true;
	ls->vlen = vlen;
	ls->len = ls->store.store->pm_bytes(&ls->store.params);
	ls->store.pool_bytes = ls->len;
	ls->op = calloc(LIVE_SIM_OPS, sizeof(ls->op[0]));
	assert(ls->op);
}

static int set_knob(void *arg, const char *name, const char *value)
{
	struct live_sim *ls = arg;
	const char *expected;

	return knob_set(ls->store.store, &ls->store.params, name, value, &expected);
}

void live_sim_variant(struct live_sim *ls, const char *name)
{
	int error = knob_variant(ls->store.store, name, set_knob, ls);

	assert(!error);
	(void)error;
	snprintf(ls->store.variant, sizeof(ls->store.variant), "%s", name);
}

void live_sim_close(struct live_sim *ls)
{
	free(ls->op);
	ls->op = NULL;
}

/* --- the run --- */

static void client_main(void *arg)
{
	struct live_sim *ls = arg;

	ls->client = (struct tm_env){.params = &ls->store.params, .client = CONNECTION};
	ls->client.verbs = rnic_open(ls->net, CONNECTION, NULL);
	assert(ls->store.store->open(&ls->client, &ls->handle) == 0);
	ls->script(ls);
	sim_stop(ls->sim, SIM_DONE);
}

static void server_main(void *arg)
{
	struct live_sim *ls = arg;
	struct pmem *pm = pmem_machine(ls->stack, 0);

	ls->server = (struct tm_env){
		.params = &ls->store.params, .pm = pmem_base(pm), .pm_len = ls->len};
	ls->server.verbs = rnic_open(ls->net, HOST_SERVER, pm);
	assert(ls->store.store->format(&ls->server) == 0);
	assert(ls->store.store->serve(&ls->server) == 0);
	sim_spawn(ls->sim, CONNECTION, NULL, client_main, ls);
}

void live_sim_run(struct live_sim *ls, void (*script)(struct live_sim *ls))
{
	ls->script = script;
	ls->sim = sim_new();
	ls->stack = pmem_stack_new(1, ls->len);
	assert(ls->sim && ls->stack);
	pmem_load(ls->stack, NULL, ls->len);
	sim_reset(ls->sim, NULL);
	pmem_begin(pmem_machine(ls->stack, 0), ls->sim, &hardware_default);
	ls->net = rnic_net_new(ls->sim, &hardware_default);
	sim_set_step_budget(ls->sim, UINT64_MAX / 2);
	sim_spawn(ls->sim, HOST_SERVER, NULL, server_main, ls);
	assert(sim_run(ls->sim) == SIM_DONE);
	pmem_end(pmem_machine(ls->stack, 0));
	pmem_stack_free(ls->stack);
	sim_free(ls->sim);
}

struct recording_op *live_sim_record(struct live_sim *ls, enum history_kind kind, unsigned client,
				     uint32_t key)
{
	struct recording_op *op = &ls->op[ls->ops++];

	assert(ls->ops <= LIVE_SIM_OPS);
	*op = (struct recording_op){.invoked_ns = STEP_NS * 2 * ls->ops,
				    .returned_ns = STEP_NS * (2 * ls->ops + 1),
				    .key = key,
				    .boot = ls->store.boot,
				    .client = (uint16_t)client,
				    .kind = (uint8_t)kind};
	if (kind == HISTORY_PUT) {
		op->value = live_put_id(client, 1, ++ls->nth);
		op->vlen = ls->vlen;
	}
	return op;
}

struct recording_op *live_sim_put(struct live_sim *ls, unsigned client, uint32_t key)
{
	struct recording_op *op = live_sim_record(ls, HISTORY_PUT, client, key);
	static uint8_t value[TM_MAX_VALUE];
	char name[LIVE_KEY_LEN + 1];

	live_key(key, name);
	live_value(op->value, key, value, ls->vlen);
	op->error = ls->store.store->put(ls->handle, name, LIVE_KEY_LEN, value, ls->vlen);
	assert(op->error == 0);
	return op;
}

struct recording_op *live_sim_get(struct live_sim *ls, unsigned client, uint32_t key)
{
	struct recording_op *op = live_sim_record(ls, HISTORY_GET, client, key);
	static uint8_t value[TM_MAX_VALUE];
	char name[LIVE_KEY_LEN + 1];
	size_t len = 0;

	live_key(key, name);
	int error = ls->store.store->get(ls->handle, name, LIVE_KEY_LEN, value, ls->vlen, &len);
	assert(!error || error == -ENOENT);
	op->vlen = (uint32_t)len;
	if (!error)
		op->found = live_value_id(key, value, len, &op->value) ? 1 : 2;
	return op;
}

struct recording_op *live_sim_del(struct live_sim *ls, unsigned client, uint32_t key)
{
	struct recording_op *op = live_sim_record(ls, HISTORY_DEL, client, key);
	char name[LIVE_KEY_LEN + 1];

	live_key(key, name);
	op->error = ls->store.store->del(ls->handle, name, LIVE_KEY_LEN);
	assert(op->error == 0);
	return op;
}

void live_sim_wait(struct live_sim *ls)
{
	sim_sleep(ls->sim, WAIT_NS);
}

uint8_t *live_sim_pool(struct live_sim *ls, bool media)
{
	struct pmem *pm = pmem_machine(ls->stack, 0);
	uint8_t *pool = malloc(ls->len);

	assert(pool);
	pmem_save(pm, pool);
	for (unsigned i = 0; media && i < pmem_dirty(pm); i++) {
		uint32_t line = pmem_dirty_line(pm, i);

		pmem_line_content(pm, line, pmem_line_versions(pm, line),
				  pool + (size_t)line * LINE);
	}
	return pool;
}

/* --- files --- */

static void print_text(const struct live_sim *ls, char text[POOL_TEXT])
{
	assert(live_store_print(&ls->store, text, POOL_TEXT) == 0);
}

static void save_image(const struct live_sim *ls, const char *path, const char *cache,
		       const uint8_t *pool)
{
	struct live_pm_setup setup = {
		.path = path, .pool_bytes = ls->len, .shadow = cache != NULL, .cache = cache};
	struct live_pm *pm;
	char text[POOL_TEXT], why[300];

	print_text(ls, text);
	assert(!live_pm_open(&pm, &setup, why, sizeof(why)));
	memcpy(live_pm_pool(pm), pool, ls->len);
	if (!cache) {
		assert(live_pm_set_header(pm, text) == 0);
		assert(live_pm_save(pm) == 0);
	}
	live_pm_close(pm);
}

void live_sim_save_pool(const struct live_sim *ls, const char *path, const uint8_t *pool)
{
	save_image(ls, path, NULL, pool);
}

void live_sim_save_cache(const struct live_sim *ls, const char *path, const char *media,
			 const uint8_t *pool)
{
	save_image(ls, media, path, pool);
}

void live_sim_save_ops(const struct live_sim *ls, const char *path)
{
	struct recording *r;
	char text[POOL_TEXT];

	print_text(ls, text);
	assert(recording_create(&r, path, ls->ops + 1) == 0);
	assert(recording_set_text(r, text) == 0);
	for (unsigned i = 0; i < ls->ops; i++)
		*recording_next(r) = ls->op[i];
	recording_close(r);
}

void live_sim_cut(const struct live_sim *ls, const uint8_t *media, const uint8_t *cache,
		  struct cut *c)
{
	char why[300];

	memset(c, 0, sizeof(*c));
	print_text(ls, c->text);
	assert(!cut_parse(c, "the test", why, sizeof(why)));
	c->pool = malloc(ls->len);
	assert(c->pool);
	memcpy(c->pool, media, ls->len);
	assert(cut_add_ops(c, ls->op, ls->ops) == 0);
	if (!cache)
		return;
	c->cached = true;
	assert(cut_lines(media, cache, ls->len, &c->line, &c->lines) == 0);
	c->held = malloc(c->lines * TM_LINE + 1);
	assert(c->held);
	for (size_t i = 0; i < c->lines; i++)
		memcpy(c->held + i * TM_LINE, cache + (size_t)c->line[i] * TM_LINE, TM_LINE);
}
