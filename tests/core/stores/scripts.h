/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_CORE_STORES_SCRIPTS_H
#define TM_TESTS_CORE_STORES_SCRIPTS_H
/* A server and at most CLIENTS clients in a simulation; each of these runs a script, and the last
 * one ends the run. For a test's only file, which has said how many CLIENTS are. */
#include "core/pmem/crash.h"
#include "core/rnic/rnic.h"
#include "core/rt/rt.h"
#include "core/rt/sim.h"
#include "tests/suite.h"

#define MAX_VLEN 200
#define US	 1000ull
#define MS	 1000000ull

typedef void script(unsigned client);

static struct {
	struct sim *sim;
	struct hardware hw;
	const struct tm_store *store; /* NULL: the server has no PM */
	struct pmem_stack *stack;
	struct pmem *pm;
	struct tm_params params;
	struct tm_env env[CLIENTS + 1];
	script *script[CLIENTS + 1]; /* of each client; NULL: there is none */
	void (*boot)(void);	     /* the server, before its clients */
	unsigned clients, ended;
} w;

static void prepare(const struct tm_store *store, unsigned keys, unsigned updates)
{
	memset(&w, 0, sizeof(w));
	w.hw = hardware_default;
	w.store = store;
	w.params = (struct tm_params){
		.clients = CLIENTS, .keys = keys, .updates = updates, .max_vlen = MAX_VLEN};
}

static void client_main(void *arg)
{
	unsigned client = (unsigned)(uintptr_t)arg;

	w.script[client](client);
	if (++w.ended == w.clients)
		sim_stop(w.sim, SIM_DONE);
}

static void server_main(void *arg)
{
	w.boot();
	for (unsigned c = 1; c <= CLIENTS; c++)
		if (w.script[c])
			ck_assert_int_eq(
				sim_spawn(w.sim, c, NULL, client_main, (void *)(uintptr_t)c), 0);
	if (!w.clients)
		sim_stop(w.sim, SIM_DONE);
}

static inline void format_and_serve(void)
{
	ck_assert_int_eq(w.store->format(&w.env[0]), 0);
	ck_assert_int_eq(w.store->serve(&w.env[0]), 0);
}

/* On a pool that holds `image` (NULL: zeros). */
static void begin_world(const void *image)
{
	size_t len = w.store ? w.store->pm_bytes(&w.params) : 0;

	w.sim = sim_new();
	sim_reset(w.sim, NULL);
	if (w.store) {
		w.stack = pmem_stack_new(1, len);
		pmem_load(w.stack, image, len);
		w.pm = pmem_machine(w.stack, 0);
		pmem_begin(w.pm, w.sim, &w.hw);
		w.env[0].pm = pmem_base(w.pm);
		w.env[0].pm_len = len;
	}
	struct rnic_net *net = rnic_net_new(w.sim, &w.hw);
	for (unsigned c = 0; c <= CLIENTS; c++) {
		w.env[c].params = &w.params;
		w.env[c].client = c;
		w.env[c].verbs = rnic_open(net, c, c ? NULL : w.pm);
		w.clients += w.script[c] != NULL;
	}
}

static void run_task(void (*task)(void *))
{
	ck_assert_int_eq(sim_spawn(w.sim, HOST_SERVER, NULL, task, NULL), 0);
	ck_assert_int_eq(sim_run(w.sim), SIM_DONE);
}

static void end_world(void)
{
	if (w.store) {
		pmem_end(w.pm);
		pmem_stack_free(w.stack);
	}
	sim_free(w.sim);
}

#endif
