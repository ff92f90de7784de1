/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contract OK: which injected fault explains which failure. A table: what has happened, whose
 * operation failed with what, and whether that is excused.
 */
#include "checker/world/explained.h"
#include "core/rt/sim.h"
#include "tests/suite.h"

static const struct tm_error declared[] = {
	{-EAGAIN, TM_GET, TM_DISTURBED, "a GET gives up"},
	{-EBUSY, TM_PUT | TM_DEL, TM_PEER_FAILED, "a lock whose owner is dead"},
	{-ENOSPC, TM_PUT, TM_ALWAYS, "the log is full"},
	{-EALREADY, TM_CLEAN, TM_ALWAYS, "the log is being cleaned"},
	{0},
};
static const struct tm_store store = {.name = "declares", .errors = declared};
static const struct tm_store silent = {.name = "silent"};

enum {
	CALL = SIM_INJECTED_CALL,
	LINK = SIM_INJECTED_LINK,
	DEATH = SIM_INJECTED_DEATH,
	DROP = SIM_INJECTED_DROP
};

/* Client 1's operation fails. */
static const struct {
	unsigned own, peer, server; /* what was injected: client 1, client 2, the server */
	bool disturbed, dead;	    /* something was held up; the server's process is dead */
	bool any;		    /* then every error of every store is excused ... */
	bool again, busy;	    /* ... else the declared ones, but for the full log */
} table[] = {
	{.any = false},
	{.disturbed = true, .again = true},
	/* Its own link, a call of its own or of the server, the server's death. */
	{.own = LINK, .any = true},
	{.own = CALL, .any = true},
	{.server = CALL, .any = true},
	{.dead = true, .any = true},
	/* A drop counts only if the server had a reason to. */
	{.own = DROP},
	{.own = DROP, .disturbed = true, .any = true},
	/* What befell another client excuses what the store declares for it, and that alone. */
	{.peer = LINK, .busy = true},
	{.peer = CALL, .busy = true},
	{.peer = DEATH, .busy = true},
	{.peer = DROP, .busy = true},
	{.peer = DEATH, .disturbed = true, .busy = true, .again = true},
};

static unsigned delayed(struct source *source, const struct choice_point *at, unsigned n)
{
	return 1;
}

/* A choice that is not answered plainly. */
static void disturb(struct sim *sim)
{
	struct source source = {.answer = delayed};
	struct choice_point at = {.kind = CHOICE_PACKET};

	sim_source(sim, &source);
	ck_assert_uint_eq(sim_choose(sim, &at, 2), 1);
	sim_source(sim, NULL);
}

static void check_row(int i, const struct tm_store *of)
{
	struct setup *setup = calloc(1, sizeof(*setup));
	struct world *w = calloc(1, sizeof(*w));
	bool any = table[i].any, says = of == &store;

	ck_assert(setup && w);
	setup->store = of;
	w->setup = setup;
	w->sim = sim_new();
	ck_assert_ptr_nonnull(w->sim);
	sim_reset(w->sim, NULL);
	w->serving = !table[i].dead;
	sim_inject(w->sim, 1, table[i].own);
	sim_inject(w->sim, 2, table[i].peer);
	sim_inject(w->sim, HOST_SERVER, table[i].server);
	if (table[i].disturbed)
		disturb(w->sim);
	ck_assert_int_eq(sim_disturbed(w->sim), table[i].disturbed);
	ck_assert_int_eq(connection_is_lost(w, 1), table[i].dead);
	ck_assert_int_eq(error_explained(w, 1, TM_PUT, -EIO), any);
	ck_assert_int_eq(error_explained(w, 1, TM_OPEN, -EIO), any);
	ck_assert_int_eq(error_explained(w, 1, TM_GET, -EAGAIN), any || (says && table[i].again));
	ck_assert_int_eq(error_explained(w, 1, TM_PUT, -EBUSY), any || (says && table[i].busy));
	ck_assert_int_eq(error_explained(w, 1, TM_DEL, -EBUSY), any || (says && table[i].busy));
	ck_assert_int_eq(error_explained(w, 1, TM_PUT, -ENOSPC), any || says);
	ck_assert_int_eq(error_explained(w, 1, TM_CLEAN, -EALREADY), any || says);
	ck_assert_int_eq(error_explained(w, 1, TM_CLEAN, -ENOSPC), any);
	/* A declared error of another operation is not declared. */
	ck_assert_int_eq(error_explained(w, 1, TM_PUT, -EAGAIN), any);
	ck_assert_int_eq(error_explained(w, 1, TM_GET, -EBUSY), any);
	ck_assert_int_eq(error_explained(w, 1, TM_GET, -ENOENT), any);
	/* There was nothing to delete. */
	ck_assert(error_explained(w, 1, TM_DEL, -ENOENT));
	sim_free(w->sim);
	free(w);
	free(setup);
}

TESTS(what_explains, (int)(sizeof(table) / sizeof(table[0])))
{
	check_row(_i, &store);
	check_row(_i, &silent);
}

/* On a machine that has recovered, and while loading, no connection is lost. */
TEST(only_while_it_runs)
{
	static struct setup setup = {.store = &silent};
	struct world w = {.setup = &setup, .machine = 1, .sim = sim_new()};

	ck_assert_ptr_nonnull(w.sim);
	sim_reset(w.sim, NULL);
	ck_assert(!connection_is_lost(&w, 1));
	ck_assert(!error_explained(&w, 1, TM_PUT, -EIO));
	w.machine = 0;
	w.loading = true;
	ck_assert(!connection_is_lost(&w, 1));
	w.loading = false;
	ck_assert(connection_is_lost(&w, 1));
	sim_free(w.sim);
}

RUN_TESTS(NULL, NULL)
