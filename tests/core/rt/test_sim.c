/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduler of the sim world: what runs when, what time it is, how a run ends,
 * and that a world can be used again after any end. Tasks write what they do into a
 * note, and the whole note is compared.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include "core/rt/arena.h"
#include "core/rt/process/libc.h"
#include "core/rt/rt.h"
#include "core/rt/sim.h"
#include "faultinject/random_source.h"
#include "tests/suite.h"

static struct sim *sim;
static char notes[8192];

/* "text@time " */
static __attribute__((format(printf, 1, 2))) void note(const char *fmt, ...)
{
	size_t at = strlen(notes);
	va_list ap;
	va_start(ap, fmt);
	at += (size_t)vsnprintf(notes + at, sizeof(notes) - at, fmt, ap);
	va_end(ap);
	ck_assert_uint_lt(at + 24, sizeof(notes));
	sprintf(notes + at, "@%llu ", (unsigned long long)sim_now(sim_current()));
}

static void setup(void)
{
	notes[0] = '\0';
	sim = sim_new();
	ck_assert_ptr_nonnull(sim);
}

static void teardown(void)
{
	sim_free(sim);
}

static void event_note(struct sim *s, void *arg)
{
	note("%s", (const char *)arg);
}

static void task_note(void *arg)
{
	note("%s", (const char *)arg);
}

static void spawn(const char *name, void (*fn)(void *), void *arg)
{
	ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, name, fn, arg), 0);
}

static void begin(struct source *source)
{
	notes[0] = '\0';
	sim_reset(sim, source);
}

static void ends(enum sim_end end, const char *expected)
{
	ck_assert_int_eq(sim_run(sim), end);
	ck_assert_str_eq(notes, expected);
}

static bool all_bytes(const void *memory, int byte, size_t len)
{
	const unsigned char *at = memory;
	for (size_t i = 0; i < len; i++)
		if (at[i] != byte)
			return false;
	return true;
}

/* --- a source that a test fills in --- */

struct plan {
	struct source source;
	uint8_t kind;
	uint32_t a, b; /* of the point */
	const char *who;
	unsigned answer;
	unsigned asked;
};

static unsigned plan_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct plan *plan = (struct plan *)source;
	plan->asked++;
	if (at->kind != plan->kind || at->a != plan->a || at->b != plan->b)
		return 0;
	if (plan->who && (!at->who || strcmp(at->who->name, plan->who)))
		return 0;
	ck_assert(choice_allows(at->kind, n, plan->answer));
	return plan->answer;
}

/* One point, of this task or anybody (NULL), is answered so. */
static struct plan plan_at(uint8_t kind, uint32_t a, uint32_t b, const char *who, unsigned answer)
{
	return (struct plan){.source.answer = plan_answer,
			     .kind = kind,
			     .a = a,
			     .b = b,
			     .who = who,
			     .answer = answer};
}

/* --- events --- */

TEST(events_in_order)
{
	sim_at(sim, 30, event_note, "a");
	sim_at(sim, 10, event_note, "b");
	sim_at(sim, 20, event_note, "c");
	sim_at(sim, 10, event_note, "d");
	sim_at(sim, 0, event_note, "e");
	ends(SIM_IDLE, "e@0 b@10 d@10 c@20 a@30 ");
	ck_assert_uint_eq(sim_events(sim), 5);
}

static void event_again(struct sim *s, void *arg)
{
	event_note(s, arg);
	sim_at(s, 0, event_note, "child");
}

TEST(event_schedules_for_now)
{
	/* What an event schedules for this very moment runs after all that was there before. */
	sim_at(sim, 5, event_again, "a");
	sim_at(sim, 5, event_note, "b");
	ends(SIM_IDLE, "a@5 b@5 child@5 ");
}

struct tie {
	uint64_t due;
	unsigned nth;
};
static struct tie last_tie;
static unsigned ties;
static uint64_t tie_state;

static void check_tie(struct sim *s, void *arg)
{
	struct tie *tie = arg;
	ck_assert_uint_eq(sim_now(s), tie->due);
	ck_assert(tie->due > last_tie.due || (tie->due == last_tie.due && tie->nth > last_tie.nth));
	last_tie = *tie;
	if (++ties > 20000)
		return;
	for (unsigned i = 0; i < 2 && ties + i < 4000; i++) {
		struct tie *next = sim_alloc(s, sizeof(*next));
		uint64_t delay = random_next(&tie_state) % 40;
		next->due = sim_now(s) + delay;
		next->nth = 1000000 + 2 * ties + i;
		sim_at(s, delay, check_tie, next);
	}
}

TEST(many_events_in_order)
{
	tie_state = 7;
	for (unsigned i = 1; i <= 3000; i++) {
		struct tie *tie = sim_alloc(sim, sizeof(*tie));
		tie->due = random_next(&tie_state) % 500;
		tie->nth = i;
		sim_at(sim, tie->due, check_tie, tie);
	}
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	ck_assert_uint_gt(ties, 5000);
}

/* --- tasks and time --- */

static void sleeps(void *arg)
{
	const char *name = arg;
	note("%s1", name);
	rt_sleep(*name == 'a' ? 100 : 150);
	note("%s2", name);
	rt_sleep(*name == 'a' ? 100 : 10);
	note("%s3", name);
	ck_assert_uint_eq(rt_now(), sim_now(sim));
}

static void event_outside(struct sim *s, void *arg)
{
	event_note(s, arg);
	ck_assert_ptr_null(sim_actor(s));
	ck_assert_int_eq(sim_task(s), -1);
	sim_step(s, STEP_STORE, 1000); /* of no operation: nothing */
	sim_yield(s);
	sim_idle_on(s, arg);
}

static void stepper(void *arg)
{
	sim_at(sim, 10, event_outside, "event");
	sim_step(sim, STEP_STORE, 9);
	note("before");
	sim_step(sim, STEP_LOAD, 2);
	note("after");
	ck_assert_int_eq(sim_task(sim), 0);
	ck_assert_str_eq(sim_actor(sim)->name, "server/s");
	ck_assert_uint_eq(sim_actor(sim)->count[COUNT_STEP + STEP_STORE], 1);
	ck_assert_uint_eq(sim_actor(sim)->count[COUNT_STEP + STEP_LOAD], 1);
	for (unsigned i = 0; i < 1000; i++)
		sim_step(sim, STEP_STORE, 2);
	note("end");
}

static void yields(void *arg)
{
	for (unsigned i = 0; i < 3; i++) {
		note("%s", (const char *)arg);
		rt_yield();
	}
}

static int key, other_key;

static void wake(struct sim *s, void *arg)
{
	sim_wake(s, arg);
}

static void wait_for_key(void)
{
	sim_idle_on(sim, &key);
	sim_idle_on(sim, &key);
	rt_yield();
}

static void waiter(void *arg)
{
	sim_at(sim, 50, wake, &key);
	sim_at(sim, 20, wake, &other_key);
	wait_for_key();
	note("woken");
	rt_sleep(20000); /* not ended by the fallback of the wait, due at 10000 */
	note("slept");
	for (unsigned i = 0; i < 3; i++) {
		wait_for_key();
		note("poll");
	}
	sim_at(sim, 1, wake, &key);
	wait_for_key();
	wait_for_key(); /* the wake-up made the fallback short again */
	note("short");
}

static void sleeper(void *arg)
{
	sim_idle_on(sim, &key);
	sim_at(sim, 10, wake, &key);
	rt_sleep(500); /* a completion does not end a sleep */
	note("slept");
	sim_idle_on(sim, &key);
	sim_wake(sim, &key); /* before it waits */
	rt_yield();
	note("soon");
	sim_idle_on(sim, &other_key);
	sim_idle_on(sim, &key);
	sim_at(sim, 7, wake, &key);
	sim_at(sim, 7, wake, &key); /* the second finds it awake */
	rt_yield();
	note("either");
}

TEST(spawn_limit)
{
	for (unsigned round = 0; round < 3; round++) {
		unsigned n = 0;
		int e;
		while ((e = sim_spawn(sim, 1 + n, "x", task_note, "")) == 0)
			n++;
		ck_assert_int_eq(e, -EAGAIN);
		ck_assert_uint_eq(n, SIM_TASKS);
		ck_assert_int_eq(sim_run(sim), SIM_IDLE);
		ck_assert_uint_eq(strlen(notes), 3 * SIM_TASKS);
		begin(NULL);
		ck_assert_uint_eq(sim_now(sim), 0);
	}
}

static void names(void *arg)
{
	note("%s host %u", sim_actor(sim)->name, sim_host(sim));
}

static void spawns(void *arg)
{
	names(arg);
	ck_assert_int_eq(rt_spawn("child", names, NULL), 0);
}

TEST(spawn_names)
{
	ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, NULL, spawns, NULL), 0);
	ck_assert_int_eq(sim_spawn(sim, 3, "", spawns, NULL), 0);
	ends(SIM_IDLE, "server host 0@0 c3 host 3@0 server/child host 0@0 c3/child host 3@0 ");
}

static int accept_sum(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	ck_assert_uint_eq(req_len, sizeof(int));
	ck_assert_uint_eq(rsp_len, sizeof(int));
	*(int *)rsp = *(const int *)req + *(int *)arg;
	return *(const int *)req ? 0 : -EPERM;
}

static void connects(void *arg)
{
	int req = 4, rsp = 0, add = 5;
	ck_assert_int_eq(rt_connect(&req, sizeof(req), &rsp, sizeof(rsp)), -ECONNREFUSED);
	ck_assert_int_eq(rt_listen(accept_sum, &add), 0);
	ck_assert_int_eq(rt_listen(accept_sum, &add), -EADDRINUSE);
	ck_assert_int_eq(rt_connect(&req, sizeof(req), &rsp, sizeof(rsp)), 0);
	ck_assert_int_eq(rsp, 9);
	req = 0;
	ck_assert_int_eq(rt_connect(&req, sizeof(req), &rsp, sizeof(rsp)), -EPERM);
	note("done");
}

TEST(connecting)
{
	for (unsigned i = 0; i < 2; i++) {
		spawn("", connects, NULL);
		ck_assert_int_eq(sim_run(sim), SIM_IDLE);
		sim_reset(sim, NULL);
	}
	ck_assert_str_eq(notes, "done@0 done@0 ");
}

/* --- the configuration of several servers --- */

static void config_note(void *arg)
{
	struct rt_config seen, known;
	(void)arg;
	ck_assert_int_eq(rt_config_get(&seen), 0);
	ck_assert_uint_eq(rt_config_lease(&seen), rt_now() + RT_LEASE_NS - RT_CONFIG_NS);
	note("epoch %u", (unsigned)seen.epoch);
	/* Cut off: the last that it heard; a change may be made, or not; its lease ends. */
	sim_set_cut(sim, 1, true);
	struct rt_config next = *sim_config(sim);
	next.epoch++;
	sim_set_config(sim, &next);
	known = seen;
	ck_assert_int_eq(rt_config_get(&seen), -ETIMEDOUT);
	note("epoch %u", (unsigned)seen.epoch);
	ck_assert_int_eq(rt_config_wait(&known), -ETIMEDOUT);
	ck_assert_int_eq(rt_config_set(&next), -ETIMEDOUT);
	ck_assert_uint_lt(rt_config_lease(&seen), rt_now());
	sim_set_alive(sim, 1, false);
	ck_assert_uint_eq(rt_config_lease(&seen), 0);
	/* Heard again: what it was told before does not count. */
	sim_set_cut(sim, 1, false);
	sim_set_alive(sim, 1, true);
	ck_assert_uint_eq(rt_config_lease(&seen), 0);
	ck_assert_int_eq(rt_config_wait(&seen), 0);
	ck_assert_uint_gt(rt_config_lease(&seen), rt_now());
	note("epoch %u", (unsigned)seen.epoch);
}

static void client_config_note(void *arg)
{
	struct rt_config seen;
	(void)arg;
	ck_assert_int_eq(rt_config_get(&seen), 0);
	ck_assert_uint_eq(rt_config_lease(&seen), UINT64_MAX);
}

TEST(cut_off_from_the_service)
{
	begin(NULL);
	sim_set_servers(sim, 2, 0);
	ck_assert_int_eq(sim_spawn(sim, server_host(1), NULL, config_note, NULL), 0);
	ck_assert_int_eq(sim_spawn(sim, 1, NULL, client_config_note, NULL), 0);
	ends(SIM_IDLE, "epoch 1@2000 epoch 1@24000 epoch 2@70000 ");
}

static void clock_note(void *arg)
{
	note("%s %llu", (const char *)arg, (unsigned long long)rt_now());
	rt_sleep(100);
	note("%s %llu", (const char *)arg, (unsigned long long)rt_now());
}

TEST(clocks_that_differ)
{
	struct plan plan = plan_at(CHOICE_CLOCK, 0, 0, "c1", 1);
	begin(&plan.source);
	sim_set_clocks(sim, 1000);
	spawn(NULL, clock_note, "server");
	ck_assert_int_eq(sim_spawn(sim, 1, NULL, clock_note, "c1"), 0);
	ends(SIM_IDLE, "server 0@0 c1 1000@0 server 100@100 c1 1100@100 ");
	plan = plan_at(CHOICE_CLOCK, 0, 0, "c1", 1);
	begin(&plan.source);
	spawn(NULL, clock_note, "server");
	ends(SIM_IDLE, "server 0@0 server 100@100 ");
	ck_assert_uint_eq(plan.asked, 0);
}

/* --- ends --- */

static void stop_event(struct sim *s, void *arg)
{
	event_note(s, arg);
	sim_stop(s, SIM_DONE);
}

static void stopped_in_step(void *arg)
{
	sim_at(sim, 10, stop_event, "stop");
	sim_at(sim, 10, event_note, "after stop");
	sim_step(sim, STEP_STORE, 20);
	note("goes on");
	rt_sleep(5);
	note("slept");
}

TEST(stop_in_step_and_continue)
{
	spawn("", stopped_in_step, NULL);
	spawn("", task_note, "other");
	ends(SIM_DONE, "stop@20 ");
	ends(SIM_IDLE, "stop@20 after stop@20 goes on@20 other@20 slept@25 ");
}

static void stops(void *arg)
{
	sim_stop(sim, SIM_DONE);
	note("own code");
	rt_yield();
	note("yielded");
	sim_stop(sim, SIM_POWER);
	sim_stop(sim, SIM_DONE); /* the first counts */
}

TEST(stop_by_task_and_continue)
{
	spawn("", stops, NULL);
	spawn("", task_note, "other");
	ends(SIM_DONE, "own code@0 ");
	ends(SIM_POWER, "own code@0 other@0 yielded@200 ");
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
}

static void abandons(void *arg)
{
	note("a");
	sim_abandon(sim, SIM_DONE);
}

TEST(abandon)
{
	spawn("", abandons, NULL);
	spawn("", task_note, "other");
	ck_assert_int_eq(sim_run(sim), SIM_DONE);
	ends(SIM_IDLE, "a@0 other@0 ");
}

static void endless_steps(void *arg)
{
	for (;;)
		sim_step(sim, STEP_LOAD, 0);
}

static void endless_yields(void *arg)
{
	for (;;)
		rt_yield();
}

static void endless_burning(void *arg)
{
	for (;;)
		sim_spend_step(sim);
}

static void endless_event(struct sim *s, void *arg)
{
	sim_at(s, 0, endless_event, arg);
}

static void endless_events(void *arg)
{
	sim_at(sim, 0, endless_event, arg);
}

TEST(step_budget)
{
	static void (*const endless[])(void *) = {endless_steps, endless_yields, endless_burning,
						  endless_events};
	for (unsigned i = 0; i < 4; i++) {
		sim_reset(sim, NULL);
		sim_set_step_budget(sim, 10000);
		spawn("", endless[i], NULL);
		ck_assert_int_eq(sim_run(sim), SIM_BUDGET);
	}
	sim_reset(sim, NULL);
	spawn("", yields, "y");
	ends(SIM_IDLE, "y@0 y@200 y@400 ");
}

/* --- faults --- */

static __attribute__((noinline, no_sanitize("address", "undefined"))) void bad_write(void)
{
	int *volatile wild = NULL;
	*(volatile int *)wild = 1;
}

static __attribute__((noinline, no_sanitize("address", "undefined"))) void bad_division(void)
{
#if defined(__x86_64__)
	volatile int zero = 0;
	zero = 7 / zero;
#else
	raise(SIGFPE);
#endif
}

static void crashes(void *arg)
{
	note("crash");
	switch (*(int *)arg) {
	case 0:
		bad_write();
		break;
	case 1:
		sim_abort();
	case 2:
		sim_assert_fail("x == 1", "dir/store.c", 12, "f");
	default:
		bad_division();
	}
	note("survived");
}

static const char *const fault_text[] = {"segmentation fault", "abort()",
					 "assertion failed at store.c:12: x == 1",
					 "arithmetic fault"};

TEST(faults_end_the_run)
{
	for (int i = 0; i < 12; i++) {
		int kind = i % 4;
		uintptr_t pc = 0;
		notes[0] = '\0';
		spawn("", task_note, "first");
		spawn("", crashes, &kind);
		spawn("", task_note, "never");
		ends(SIM_FAULT, "first@0 crash@0 ");
		ck_assert_str_eq(sim_fault(sim, &pc), fault_text[kind]);
		ck_assert_uint_ne(pc, 0);
		ck_assert_ptr_null(sim_current());
		sim_reset(sim, NULL);
		ck_assert_str_eq(sim_fault(sim, NULL), "");
		notes[0] = '\0';
		spawn("", yields, "y");
		ends(SIM_IDLE, "y@0 y@200 y@400 ");
		sim_reset(sim, NULL);
	}
}

/* --- holds --- */

static void two_steps(void *arg)
{
	sim_step(sim, STEP_STORE, 2);
	note("%s1", (const char *)arg);
	sim_step(sim, STEP_STORE, 2);
	note("%s2", (const char *)arg);
}

TEST(hold_a_step)
{
	struct plan plan;
	for (unsigned i = 1; i <= DELAY_FOREVER; i++) {
		const unsigned k = i < DELAY_FOREVER ? i : delay_of_ns(250001);
		char expected[100];
		plan = plan_at(CHOICE_STEP, STEP_STORE, 2, "server/a", k);
		begin(&plan.source);
		spawn("a", two_steps, "a");
		spawn("b", two_steps, "b");
		ck_assert_int_eq(sim_run(sim), SIM_IDLE);
		snprintf(expected, sizeof(expected), "a1@2 b1@6 b2@8 a2@%llu ",
			 (unsigned long long)(4 + choice_delay_ns(k)));
		ck_assert_str_eq(notes, expected);
		ck_assert_uint_eq(plan.asked, 4);
		ck_assert_uint_gt(choice_delay_ns(i), choice_delay_ns(i - 1));
	}
}

static void death(void *arg, unsigned host, unsigned how)
{
	ck_assert_uint_eq(how, DELAY_FOREVER);
	note("death of %u", host);
}

TEST(hold_for_ever)
{
	struct plan plan = plan_at(CHOICE_STEP, STEP_STORE, 2, "c2/a", DELAY_FOREVER);
	sim_reset(sim, &plan.source);
	sim_set_death(sim, death, NULL);
	ck_assert_int_eq(sim_spawn(sim, 2, "a", two_steps, "a"), 0);
	spawn("b", yields, "b");
	ends(SIM_IDLE, "a1@2 death of 2@4 b@4 b@204 b@404 ");
}

/* A dead host's other tasks stop too: those that sleep and those that were ready. Other hosts go
 * on. */
TEST(death_of_all_tasks)
{
	struct plan plan = plan_at(CHOICE_STEP, STEP_STORE, 2, "c2/a", DELAY_FOREVER);
	sim_reset(sim, &plan.source);
	ck_assert_int_eq(sim_spawn(sim, 2, "sleeper", yields, "z"), 0);
	ck_assert_int_eq(sim_spawn(sim, 2, "a", two_steps, "a"), 0);
	ck_assert_int_eq(sim_spawn(sim, 2, "ready", yields, "r"), 0);
	ck_assert_int_eq(sim_spawn(sim, 1, "b", yields, "b"), 0);
	ends(SIM_IDLE, "z@0 a1@2 b@4 b@204 b@404 ");
}

/* The server does not die in the middle of a run: its power fails. */
static unsigned step_answers[2];

static unsigned count_answers(struct source *source, const struct choice_point *at, unsigned n)
{
	step_answers[!strcmp(at->who->name, "server")] = n;
	return 0;
}

TEST(server_is_not_held_for_ever)
{
	struct source source = {.answer = count_answers};
	sim_reset(sim, &source);
	spawn("", two_steps, "a");
	ck_assert_int_eq(sim_spawn(sim, 1, "", two_steps, "b"), 0);
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	ck_assert_uint_eq(step_answers[1], DELAY_FOREVER);
	ck_assert_uint_eq(step_answers[0], DELAY_FOREVER + 1);
}

TEST(skipped_points)
{
	struct plan plan = {.source.answer = plan_answer, .source.skip[CHOICE_STEP] = 3};
	sim_reset(sim, &plan.source);
	ck_assert(!sim_plain(sim));
	spawn("a", two_steps, "a");
	spawn("b", two_steps, "b");
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	ck_assert_uint_eq(plan.asked, 1);
	sim_source(sim, NULL);
	ck_assert(sim_plain(sim));
	ck_assert_ptr_null(sim_get_source(sim));
}

/* --- the power fails --- */

static struct actor *self;
static unsigned observed, committed;

static void count_commit(void *arg)
{
	committed++;
}

static void observe(void *arg, const struct choice_point *at)
{
	ck_assert_uint_eq(at->kind, CHOICE_CRASH);
	ck_assert_ptr_eq(at->who, self);
	ck_assert_uint_gt(committed, 0);
	observed++;
	note("observed %u.%u", at->a, at->b);
}

static void fences(void *arg)
{
	self = sim_actor(sim);
	for (unsigned i = 0; i < 3; i++) {
		if (sim_power_fails_here(sim, CRASH_BEFORE_FENCE))
			note("came back");
		note("fence");
	}
	actor_label(self, (struct op_label){.client = 1, .kind = OP_PUT, .nth = 1});
	ck_assert(!sim_power_fails_here(sim, CRASH_BEFORE_FENCE));
}

TEST(power_fails_in_a_task)
{
	struct plan plan = plan_at(CHOICE_CRASH, CRASH_BEFORE_FENCE, 2, NULL, 1);
	for (unsigned i = 0; i < 2; i++) {
		begin(&plan.source);
		sim_set_observer(sim, observe, NULL);
		sim_set_commit(sim, count_commit, NULL);
		spawn("", fences, NULL);
		spawn("", task_note, "never");
		ends(SIM_POWER, "observed 1.1@0 fence@0 ");
	}
	begin(NULL);
	sim_set_observer(sim, observe, NULL);
	sim_set_commit(sim, count_commit, NULL);
	spawn("", fences, NULL);
	ends(SIM_IDLE, "observed 1.1@0 fence@0 observed 1.2@0 fence@0 observed 1.3@0 "
		       "fence@0 observed 1.1@0 ");
}

static void lands(struct sim *s, void *arg)
{
	struct choice_point at = {
		.kind = CHOICE_CRASH, .a = CRASH_BEFORE_LAND, .b = *(unsigned *)arg};
	ck_assert_ptr_null(sim_actor(s));
	if (sim_power_fails(s, &at)) {
		note("fails");
		at.b = 99; /* where the source would not let it fail */
		ck_assert(sim_power_fails(s, &at));
		return;
	}
	note("lands");
}

static void step_once(void *arg)
{
	sim_step(sim, STEP_STORE, 100);
	note("never");
}

TEST(power_fails_in_an_event)
{
	static unsigned first = 1, second = 2;
	struct plan plan = plan_at(CHOICE_CRASH, CRASH_BEFORE_LAND, 2, NULL, 1);
	for (int with_task = 0; with_task < 2; with_task++) {
		begin(&plan.source);
		sim_at(sim, 100, lands, &first);
		sim_at(sim, 100, lands, &second);
		sim_at(sim, 100, event_note, "never");
		if (with_task)
			spawn("", step_once, NULL);
		ends(SIM_POWER, "lands@100 fails@100 ");
	}
}

/* --- simulations inside and beside others --- */

struct inner {
	struct sim *sim;
	enum sim_end end;
	int fault;
	void *memory;
};

static void inner_task(void *arg)
{
	struct inner *inner = arg;
	ck_assert_ptr_eq(sim_current(), inner->sim);
	ck_assert_ptr_eq(sim_memory, inner->memory);
	rt_sleep(10);
	note("inner");
	char *text = sim_malloc(100);
	memset(text, 'i', 100);
	if (inner->fault)
		crashes(&(int){0});
}

static void run_inner(struct sim *s, void *arg)
{
	struct inner *inner = arg;
	uint64_t now = sim_now(s);
	for (unsigned i = 0; i < 3; i++) {
		sim_reset(inner->sim, NULL);
		sim_set_memory(inner->sim, inner->memory);
		ck_assert_int_eq(sim_spawn(inner->sim, 1, "", inner_task, inner), 0);
		ck_assert_int_eq(sim_run(inner->sim), inner->end);
		ck_assert_ptr_eq(sim_current(), s);
		ck_assert_uint_eq(sim_now(s), now);
		ck_assert_ptr_eq(sim_memory, s);
	}
}

static void outer_task(void *arg)
{
	char *text = sim_malloc(100);
	memset(text, 'o', 100);
	rt_sleep(5);
	note("outer");
	sim_at(sim, 3, run_inner, arg);
	sim_step(sim, STEP_STORE, 4); /* the inner one runs on this task's stack */
	note("outer");
	ck_assert(all_bytes(text, 'o', 100));
	ck_assert_int_eq(sim_task(sim), 0);
}

TEST(nested)
{
	for (int fault = 0; fault < 2; fault++) {
		struct inner inner = {.sim = sim_new(),
				      .end = fault ? SIM_FAULT : SIM_IDLE,
				      .fault = fault,
				      .memory = notes};
		/* Once on the outermost stack, so that its scheduler has been elsewhere. */
		ck_assert_int_eq(sim_run(inner.sim), SIM_IDLE);
		begin(NULL);
		sim_set_memory(sim, sim);
		spawn("", outer_task, &inner);
		sim_at(sim, 20, run_inner, &inner); /* and on the scheduler's */
		ck_assert_int_eq(sim_run(sim), SIM_IDLE);
		ck_assert_ptr_null(sim_memory);
		ck_assert_str_eq(notes,
				 fault ? "outer@5 inner@10 crash@10 inner@10 crash@10 inner@10 "
					 "crash@10 outer@9 "
					 "inner@10 crash@10 inner@10 crash@10 inner@10 crash@10 "
				       : "outer@5 inner@10 inner@10 inner@10 outer@9 inner@10 "
					 "inner@10 inner@10 ");
		sim_free(inner.sim);
	}
}

static void observe_with_inner(void *arg, const struct choice_point *at)
{
	run_inner(sim, arg);
}

static void one_fence(void *arg)
{
	ck_assert(!sim_power_fails_here(sim, CRASH_BEFORE_FENCE));
	note("outer");
}

TEST(nested_in_observer)
{
	struct inner inner = {.sim = sim_new(), .end = SIM_IDLE, .memory = notes};
	sim_set_memory(sim, sim);
	sim_set_observer(sim, observe_with_inner, &inner);
	spawn("", one_fence, NULL);
	ends(SIM_IDLE, "inner@10 inner@10 inner@10 outer@0 ");
	sim_free(inner.sim);
}

/* A small program whose order depends on the source: three tasks, a shared word, packets. */
struct soup {
	uint64_t word;
	unsigned ended;
};

static void soup_event(struct sim *s, void *arg)
{
	struct soup *soup = arg;
	soup->word = soup->word * 31 + 7;
	sim_mix(s, soup->word, sim_now(s));
}

static void soup_task(void *arg)
{
	struct sim *s = sim_current();
	struct soup *soup = arg;
	for (unsigned i = 0; i < 12; i++) {
		struct choice_point at = {.kind = CHOICE_PACKET, .who = sim_actor(s), .b = i};
		sim_step(s, STEP_STORE, 3);
		soup->word = soup->word * 33 + (unsigned)sim_task(s);
		sim_at(s, 100 + 400 * sim_choose(s, &at, 4), soup_event, soup);
		sim_step(s, STEP_LOAD, 3);
		sim_mix(s, soup->word, sim_now(s));
		if (i % 4 == 3)
			rt_yield();
	}
	soup->ended++;
}

static uint64_t soup_run(struct sim *s, struct random_source *random, uint64_t seed)
{
	random_start(random, seed, 6);
	sim_reset(s, &random->source);
	struct soup *soup = sim_alloc(s, sizeof(*soup));
	for (unsigned i = 0; i < 3; i++)
		if (sim_spawn(s, i, "", soup_task, soup))
			return 0;
	if (sim_run(s) != SIM_IDLE)
		return 0;
	return sim_hash(s);
}

#define SEEDS 10000

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static unsigned distinct(uint64_t *hash, unsigned n)
{
	unsigned different = 1;
	qsort(hash, n, sizeof(*hash), by_value);
	for (unsigned i = 1; i < n; i++)
		different += hash[i] != hash[i - 1];
	return different;
}

TEST(equal_runs_equal_hash)
{
	static uint64_t hash[SEEDS];
	static uint64_t taken[SEEDS];
	struct random_source random = {0};
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		hash[seed] = soup_run(sim, &random, seed);
		ck_assert_uint_ne(hash[seed], 0);
		for (unsigned i = 0; i < random.taken.n; i++)
			taken[seed] = (taken[seed] ^ deviation_key(&random.taken.d[i])) * 31 +
				      random.taken.d[i].answer;
	}
	struct sim *second = sim_new();
	for (unsigned seed = SEEDS; seed--;)
		ck_assert_uint_eq(soup_run(second, &random, seed), hash[seed]);
	/* As many hashes as ways to deviate. */
	unsigned ways = distinct(taken, SEEDS);
	ck_assert_uint_gt(ways, SEEDS / 4);
	ck_assert_uint_eq(distinct(hash, SEEDS), ways);
	sim_free(second);
	deviations_free(&random.taken);
}

TEST(mixing)
{
	uint64_t empty = sim_hash(sim);
	sim_mix(sim, 1, 2);
	uint64_t one = sim_hash(sim);
	sim_reset(sim, NULL);
	ck_assert_uint_eq(sim_hash(sim), empty);
	sim_mix(sim, 2, 1);
	ck_assert_uint_ne(sim_hash(sim), one);
	sim_reset(sim, NULL);
	sim_mix_bytes(sim, "ab", 2);
	uint64_t bytes = sim_hash(sim);
	sim_reset(sim, NULL);
	sim_mix_bytes(sim, "ab\0", 3);
	ck_assert_uint_ne(sim_hash(sim), bytes);
}

static void bad_task(void *arg)
{
	bad_write();
}

static void *soup_thread(void *arg)
{
	uint64_t *hash = arg;
	struct random_source random = {0};
	struct sim *mine = sim_new();
	for (unsigned seed = 0; seed < 1000; seed++) {
		*hash = *hash * 31 + soup_run(mine, &random, seed);
		if (seed % 100 == 99) { /* a fault here is nothing to the other thread */
			sim_reset(mine, NULL);
			if (sim_spawn(mine, 0, "", bad_task, NULL) || sim_run(mine) != SIM_FAULT)
				*hash = 0;
		}
	}
	deviations_free(&random.taken);
	sim_free(mine);
	return NULL;
}

TEST(side_by_side)
{
	pthread_t thread[2];
	uint64_t hash[3] = {0, 0, 0};
	soup_thread(&hash[2]);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, soup_thread, &hash[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(hash[0], hash[2]);
	ck_assert_uint_eq(hash[1], hash[2]);
}

/* --- memory --- */

TEST(arena_is_used_again)
{
	struct arena arena;
	void *first[4];
	arena_init(&arena);
	for (unsigned round = 0; round < 100; round++) {
		static const size_t bytes[4] = {1, 17, 1000000, 200000};
		for (unsigned i = 0; i < 4; i++) {
			unsigned char *memory = arena_alloc(&arena, bytes[i]);
			ck_assert_uint_eq((uintptr_t)memory % 16, 0);
			ck_assert(all_bytes(memory, 0, bytes[i]));
			memset(memory, 0xff, bytes[i]);
			if (!round)
				first[i] = memory;
			ck_assert_ptr_eq(memory, first[i]);
		}
		arena_reset(&arena);
	}
	arena_free(&arena);
	ck_assert_ptr_null(arena.first);
}

static void uses_memory(void *arg)
{
	unsigned n = *(unsigned *)arg;
	for (unsigned i = 0; i < 200; i++)
		memset(sim_malloc(1 + (i * n) % 5000), 1, 1 + (i * n) % 5000);
	for (unsigned i = 0; i < 300; i++)
		sim_at(sim, i, event_again, "");
	sim_set_memory(sim, NULL);
	sim_abandon(sim, SIM_DONE);
}

TEST(no_growth)
{
	size_t before = 0;
	for (unsigned i = 0; i < 3000; i++) {
		unsigned n = i % 50;
		sim_reset(sim, NULL);
		spawn("", uses_memory, &n);
		ck_assert_int_eq(sim_run(sim), SIM_DONE);
		struct mallinfo2 info = mallinfo2();
		if (i == 100)
			before = info.uordblks + info.hblkhd;
		else if (i > 100)
			ck_assert_uint_eq(info.uordblks + info.hblkhd, before);
	}
}

static void zero_then_fill(unsigned char *memory, size_t bytes)
{
	ck_assert_ptr_nonnull(memory);
	ck_assert_uint_eq((uintptr_t)memory % 16, 0);
	ck_assert(all_bytes(memory, 0, bytes));
	memset(memory, 0xa5, bytes);
}

static void allocates(void *arg)
{
	unsigned char *a = sim_malloc(100), *b = sim_malloc(100);
	zero_then_fill(a, 100);
	zero_then_fill(b, 100);
	ck_assert(a + 100 <= b || b + 100 <= a);
	sim_free_memory(a);
	sim_free_memory(NULL);
	unsigned char *c = sim_calloc(10, 10);
	ck_assert_ptr_eq(c, a); /* and nothing of its last owner shows */
	zero_then_fill(c, 100);
	for (size_t bytes = 100; bytes < 10000; bytes += 777) {
		c = sim_realloc(c, bytes);
		ck_assert(all_bytes(c, 0xa5, bytes > 777 ? bytes - 777 : 100));
		memset(c, 0xa5, bytes);
	}
	ck_assert(all_bytes(b, 0xa5, 100));
	zero_then_fill(sim_realloc(NULL, 50), 50);
	zero_then_fill(sim_malloc(0), 0);
	void *aligned = NULL;
	for (size_t align = 16; align <= 4096; align *= 2) {
		zero_then_fill(sim_aligned_alloc(align, 100), 100);
		ck_assert_int_eq(sim_posix_memalign(&aligned, align, 100), 0);
		ck_assert_uint_eq((uintptr_t)aligned % align, 0);
		sim_free_memory(aligned);
	}
	/* An aligned block has the room that was asked for, and no more. */
	unsigned char *page = sim_aligned_alloc(4096, 100), *next = sim_aligned_alloc(16, 100);
	zero_then_fill(page, 100);
	zero_then_fill(next, 100);
	ck_assert_uint_eq(sim_usable_size(page), 100);
	ck_assert_ptr_eq(sim_realloc(page, 50), page);
	c = sim_realloc(page, 20000);
	ck_assert_ptr_ne(c, page);
	ck_assert(all_bytes(c, 0xa5, 100));
	zero_then_fill(c + 112, 20000 - 112);
	ck_assert(all_bytes(next, 0xa5, 100));
	note("done");
}

static void allocates_too_much(void *arg)
{
	/* What recovery takes from a torn image as a length. */
	static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 8, SIZE_MAX / 2, (size_t)1 << 62,
				       (size_t)1 << 40};
	void *aligned;
	for (unsigned i = 0; i < ROWS_OF(sizes); i++) {
		void *small = sim_malloc(8);
		ck_assert_ptr_null(sim_malloc(sizes[i]));
		ck_assert_ptr_null(sim_calloc(sizes[i], 1));
		ck_assert_ptr_null(sim_calloc(sizes[i], 8));
		ck_assert_ptr_null(sim_realloc(small, sizes[i]));
		ck_assert_ptr_null(sim_aligned_alloc(64, sizes[i]));
		ck_assert_int_eq(sim_posix_memalign(&aligned, 64, sizes[i]), ENOMEM);
	}
	note("done");
}

static void frees_and_leaves(void *arg)
{
	for (unsigned i = 0; i < 20; i++)
		sim_free_memory(sim_malloc(100));
	char *a = sim_malloc(200), *b = sim_malloc(200);
	sim_free_memory(a);
	sim_free_memory(b);
}

static void allocates_apart(void *arg)
{
	char *block[10];
	for (int i = 0; i < 10; i++) {
		block[i] = sim_malloc(i % 2 ? 200 : 100);
		memset(block[i], i, i % 2 ? 200 : 100);
		memset(sim_alloc(sim, 300), 99, 300);
	}
	for (int i = 0; i < 10; i++)
		ck_assert(all_bytes(block[i], i, i % 2 ? 200 : 100));
}

TEST(reset_forgets_freed_memory)
{
	for (unsigned i = 0; i < 3; i++) {
		sim_reset(sim, NULL);
		spawn("", frees_and_leaves, NULL);
		ck_assert_int_eq(sim_run(sim), SIM_IDLE);
		sim_reset(sim, NULL);
		spawn("", allocates_apart, NULL);
		ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	}
}

/* --- what tasks do, one or two, to the end --- */

static const struct {
	void (*first)(void *);
	const char *arg;
	void (*second)(void *);
	const char *second_arg, *notes;
} together[] = {
	{sleeps, "a", sleeps, "b", "a1@0 b1@0 a2@100 b2@150 b3@160 a3@200 "},
	/* Events run inside a step; another task does not, without a deviation. */
	{stepper, "", task_note, "other", "before@9 event@11 after@11 end@2011 other@2011 "},
	{yields, "a", yields, "b", "a@0 b@0 a@200 b@200 a@400 b@400 "},
	{waiter, "", NULL, NULL,
	 "woken@50 slept@20050 poll@30050 poll@50050 poll@90050 short@100051 "},
	{sleeper, "", NULL, NULL, "slept@500 soon@700 either@707 "},
	{allocates, "", NULL, NULL, "done@0 "},
	{allocates_too_much, "", NULL, NULL, "done@0 "},
};

TESTS(tasks, ROWS_OF(together))
{
	spawn("s", together[_i].first, (void *)together[_i].arg);
	if (together[_i].second)
		spawn("", together[_i].second, (void *)together[_i].second_arg);
	ends(SIM_IDLE, together[_i].notes);
}

/* --- a name of the state --- */

struct state {
	bool other_byte, freed, frees_other, later, event, task;
	uint64_t hash;
};

static void state_is_named(void *arg)
{
	struct state *state = arg;
	char *kept = sim_malloc(100), *gone = sim_malloc(100);
	if (state->other_byte)
		kept[99] = 1;
	memset(gone, state->frees_other ? 2 : 1, 100);
	if (state->freed || state->frees_other)
		sim_free_memory(gone);
	if (state->later)
		sim_sleep(sim, 1);
	if (state->event)
		sim_at(sim, 10, event_note, "event");
	if (state->task)
		sim_spawn(sim, HOST_SERVER, "other", task_note, "task");
	state->hash = sim_state_hash(sim);
}

static uint64_t name_of(struct state state)
{
	sim_reset(sim, NULL);
	spawn("", state_is_named, &state);
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	return state.hash;
}

/* What free memory held before does not matter. */
TEST(state_has_a_name)
{
	uint64_t plain = name_of((struct state){0}), freed = name_of((struct state){.freed = true});
	ck_assert_uint_ne(plain, 0);
	ck_assert_uint_eq(name_of((struct state){0}), plain);
	ck_assert_uint_ne(freed, plain);
	ck_assert_uint_eq(name_of((struct state){.frees_other = true}), freed);
	ck_assert_uint_ne(name_of((struct state){.other_byte = true}), plain);
	ck_assert_uint_ne(name_of((struct state){.later = true}), plain);
	ck_assert_uint_ne(name_of((struct state){.event = true}), plain);
	ck_assert_uint_eq(name_of((struct state){.task = true}), 0);
}

/* --- names --- */

TEST(labels_and_visits)
{
	const struct op_label put1 = {1, OP_PUT, 1}, put2 = {1, OP_PUT, 2}, other = {2, OP_GET, 1};
	struct actor actor;
	actor_init(&actor, "server");
	ck_assert_uint_eq(actor.occurrence, 1);
	actor_label(&actor, put1);
	ck_assert_uint_eq(actor.occurrence, 1);
	actor.count[COUNT_STEP + STEP_STORE] = 5;
	actor_label(&actor, other); /* between two requests of put1 */
	ck_assert_uint_eq(actor.occurrence, 1);
	ck_assert_uint_eq(actor.count[COUNT_STEP + STEP_STORE], 0);
	actor_label(&actor, put1);
	ck_assert_uint_eq(actor.occurrence, 2);
	ck_assert(op_label_equal(actor.op, put1));
	actor_label(&actor, put1);
	ck_assert_uint_eq(actor.occurrence, 3);
	actor_label(&actor, put2);
	ck_assert_uint_eq(actor.occurrence, 1);
	actor_label(&actor, other);
	ck_assert_uint_eq(actor.occurrence, 2);
	/* It worked for no operation at first: points of that time and of this one differ. */
	actor_label(&actor, (struct op_label){0});
	ck_assert_uint_eq(actor.occurrence, 2);
	actor_init(&actor, "a name that is far too long for an actor");
	ck_assert_str_eq(actor.name, "a name that is far too ");
}

TEST(keys_of_choice_points)
{
	struct actor one, two;
	uint64_t keys[64];
	unsigned n = 0;
	actor_init(&one, "c1");
	actor_init(&two, "c2");
	const struct choice_point base = {
		.who = &one, .op = {1, OP_PUT, 1}, .occurrence = 1, .a = 1, .b = 1, .c = 1};
	struct choice_point at = base;
	keys[n++] = choice_key(&at);
#define WITH(field, value) \
	at = base;         \
	at.field = value;  \
	keys[n++] = choice_key(&at)
	for (unsigned k = 1; k < CHOICE_KINDS; k++) {
		WITH(kind, (uint8_t)k);
	}
	WITH(who, &two);
	WITH(who, NULL);
	WITH(op.client, 2);
	WITH(op.kind, OP_GET);
	WITH(op.nth, 2);
	WITH(op.nth, 0x101);
	WITH(occurrence, 2);
	WITH(occurrence, 0x101);
	for (unsigned bit = 1; bit < 32; bit += 15) {
		WITH(a, 1u << bit);
		WITH(b, 1u << bit);
		WITH(c, 1u << bit);
	}
#undef WITH
	ck_assert_uint_eq(distinct(keys, n), n);
	/* The name counts, not where the actor lives, nor its other counters. */
	struct actor again;
	actor_init(&again, "c1");
	again.count[0] = 77;
	at = base;
	at.who = &again;
	ck_assert_uint_eq(choice_key(&at), choice_key(&base));
}

/* --- the story --- */

static void tracer(void *arg, const struct sim *s, const struct actor *who, uintptr_t pc,
		   const struct traced *about, const char *text)
{
	snprintf(arg, 100, "%s %u %s", who->name, (unsigned)pc, text);
}

TEST(telling)
{
	char told[100] = "";
	struct actor actor;
	actor_init(&actor, "c1");
	ck_assert(!sim_tracing(sim));
	sim_trace(sim, &actor, 5, "x%d", 1);
	sim_set_tracer(sim, tracer, told);
	ck_assert(sim_tracing(sim));
	sim_trace(sim, &actor, 6, "x%d", 2);
	ck_assert_str_eq(told, "c1 6 x2");
	sim_reset(sim, NULL);
	ck_assert(!sim_tracing(sim));
}

RUN_TESTS(setup, teardown)
