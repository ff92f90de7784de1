/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of hardware transactional memory: what aborts them, and that what they store is one step.
 */
#include "core/rt/htm.h"
#include "core/pmem/hooks.h"
#include "tests/core/pmem/one_pool.h"

#define POOL  ((RT_HTM_LINES + 4) * LINE)
#define READ  0		 /* a place that the region reads, */
#define WRITE LINE	 /* writes, */
#define OTHER (2 * LINE) /* and does not name */
#define LAST  (3 * LINE)
#define IN_NS 1000 /* when it is under way */

static struct {
	uint64_t at;  /* where somebody else is */
	size_t named; /* bytes */
	bool committed, again, unseen;
	char seen[16]; /* by the NIC, of the two places that are stored to */
} t;

static void setup(void)
{
	memset(&t, 0, sizeof(t));
	one_pool(POOL);
}

static void teardown(void)
{
	pmem_end(pm);
	one_pool_free();
}

static uint64_t *word(uint64_t off)
{
	return (uint64_t *)(pmem_base(pm) + off);
}

static void store(uint64_t off, uint64_t value)
{
	pmem_cpu_copy(pm, off, &value, 0, sizeof(value), 0);
}

static void look(struct sim *sim, void *arg)
{
	uint64_t first, second;
	pmem_nic_read(pm, WRITE, &first, sizeof(first));
	pmem_nic_read(pm, OTHER, &second, sizeof(second));
	snprintf(t.seen, sizeof(t.seen), "%d%d", (int)first, (int)second);
}

static bool try_region(void)
{
	uint64_t read;
	rt_htm_begin();
	rt_htm_touches(word(READ), t.named);
	rt_htm_touches(word(WRITE), sizeof(read));
	pmem_cpu_read(pm, READ, &read, sizeof(read));
	rt_sleep(2 * IN_NS);
	if (!rt_htm_commits())
		return false;
	if (!t.unseen)
		sim_at(sim, 1, look, NULL); /* due before the second store */
	store(WRITE, 1);
	store(OTHER, 1);
	rt_htm_end();
	return true;
}

static void region(void *arg)
{
	t.committed = try_region();
	t.again = t.committed || try_region();
	for (unsigned i = 0; i < 4; i++)
		store(LAST, 1);
}

/* --- somebody else --- */

static void nobody(void *arg)
{
}

static void nic_reads(struct sim *sim, void *arg)
{
	uint64_t value;
	pmem_nic_read(pm, t.at, &value, sizeof(value));
}

static void nic_writes(struct sim *sim, void *arg)
{
	const struct nic_where from = {.message = 1};
	const uint64_t value = 7;
	pmem_nic_land(pm, t.at, &value, sizeof(value), &from);
}

static void reads(void *arg)
{
	sim_at(sim, IN_NS, nic_reads, NULL);
}

static void writes(void *arg)
{
	sim_at(sim, IN_NS, nic_writes, NULL);
}

static void writes_late(void *arg)
{
	sim_at(sim, 9 * IN_NS, nic_writes, NULL);
}

static void cpu_reads(void *arg)
{
	uint64_t value;
	rt_sleep(IN_NS);
	pmem_cpu_read(pm, t.at, &value, sizeof(value));
}

static void cpu_writes(void *arg)
{
	rt_sleep(IN_NS);
	store(t.at, 7);
}

static void second_region(void *arg)
{
	rt_sleep(IN_NS);
	rt_htm_begin();
	rt_htm_touches(word(t.at), 8);
	rt_htm_abort();
}

static const struct {
	const char *what;
	void (*other)(void *arg);
	uint64_t at;
	size_t named;
	const char *hardware;
	bool commits, second;
} rows[] = {
	{"nobody is there", nobody, 0, 8, "", true, true},
	{"the NIC reads what is read", reads, READ, 8, "", false, true},
	{"the NIC reads what is written", reads, WRITE, 8, "", false, true},
	{"the NIC writes what is read", writes, READ, 8, "", false, true},
	{"the NIC writes what is written", writes, WRITE + 8, 8, "", false, true},
	{"... when the region has ended", writes_late, WRITE + 8, 8, "", true, true},
	{"the NIC is elsewhere", writes, OTHER + 8, 8, "", true, true},
	{"another task reads", cpu_reads, WRITE, 8, "", true, true},
	{"another task stores", cpu_writes, READ, 8, "", false, true},
	{"another task stores elsewhere", cpu_writes, OTHER + 8, 8, "", true, true},
	{"another task has a region", second_region, OTHER, 8, "", false, true},
	{"as many lines as there is room for", nobody, 0, (RT_HTM_LINES - 1) * LINE, "", true,
	 true},
	{"more", nobody, 0, RT_HTM_LINES *LINE, "", false, false},
	{"a store buffer", nobody, 0, 8, "store_buffer=4", true, true},
};

/* Each store waits in its CPU's buffer, if there is one. */
static unsigned holds(struct source *source, const struct choice_point *at, unsigned n)
{
	return at->kind == CHOICE_BUFFER ? DELAY_5MS : 0;
}

/* Nothing of a region that was aborted is there, and all at once of one that was not. */
TESTS(aborts, ROWS_OF(rows))
{
	const struct hardware hw = hardware(rows[_i].hardware);
	struct source source = {.answer = holds};
	t.at = rows[_i].at;
	t.named = rows[_i].named;
	sim_reset(sim, &source);
	pmem_begin(pm, sim, &hw);
	sim_spawn(sim, HOST_SERVER, "region", region, NULL);
	sim_spawn(sim, HOST_SERVER, "other", rows[_i].other, NULL);
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	ck_assert_msg(t.committed == rows[_i].commits, "%s", rows[_i].what);
	ck_assert_msg(t.again == rows[_i].second, "%s", rows[_i].what);
	ck_assert_str_eq(t.seen, t.again ? "11" : "");
	ck_assert_uint_eq(*word(OTHER), t.again);
}

/* --- a source that counts --- */

struct counting_source {
	struct source source;
	unsigned asked;
};

static unsigned counts(struct source *source, const struct choice_point *at, unsigned n)
{
	((struct counting_source *)source)->asked += at->kind == CHOICE_STEP;
	return 0;
}

static unsigned run_asked(uint32_t skip)
{
	struct counting_source source = {.source.answer = counts};
	source.source.skip[CHOICE_STEP] = skip;
	sim_reset(sim, &source.source);
	pmem_begin(pm, sim, &hardware_default);
	sim_spawn(sim, HOST_SERVER, "region", region, NULL);
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	ck_assert(t.committed);
	return source.asked;
}

/* Whatever it wants to skip, a region's stores are no questions to it. */
TEST(stores_are_no_questions)
{
	t.named = 8;
	t.unseen = true;
	const unsigned all = run_asked(0);
	ck_assert_uint_gt(all, 1);
	for (uint32_t skip = 1; skip <= all; skip++) {
		pmem_end(pm);
		ck_assert_uint_eq(run_asked(skip), all - skip);
	}
}

/* --- the power --- */

struct failing_source {
	struct source source;
	unsigned asked, fails; /* how often, and at which time it fails; 0: never */
};

static unsigned answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct failing_source *me = (struct failing_source *)source;
	return at->kind == CHOICE_CRASH && ++me->asked == me->fails;
}

/* It fails before all of a region's stores, or after all, wherever it may. */
TEST(power_fails_around)
{
	struct failing_source source = {.source.answer = answer};
	unsigned before = 0, after = 0;
	t.named = 8;
	for (enum sim_end end = SIM_POWER; end == SIM_POWER; source.asked = 0) {
		const struct hardware hw = hardware("domain=wsp");
		source.fails++;
		sim_reset(sim, &source.source);
		sim_set_anywhere(sim, true);
		pmem_begin(pm, sim, &hw);
		sim_spawn(sim, HOST_SERVER, "region", region, NULL);
		end = sim_run(sim);
		ck_assert_uint_eq(*word(WRITE), *word(OTHER));
		before += !*word(WRITE);
		after += *word(WRITE) == 1;
		if (end == SIM_POWER)
			pmem_end(pm);
	}
	ck_assert_uint_ge(before, 2);
	ck_assert_uint_ge(after, 1);
}

RUN_TESTS(setup, teardown)
