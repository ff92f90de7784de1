/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where answers come from: what the random source took is what a trace of it takes
 * again; a trace tells which of its deviations were not asked for, and leaves out
 * those whose answer does not exist any more.
 */
#include "core/pmem/crash.h"
#include "core/pmem/hooks.h"
#include "faultinject/bytes.h"
#include "faultinject/random_source.h"
#include "faultinject/trace_source.h"
#include "faultinject/stops.h"
#include "tests/suite.h"

static struct sim *sim;
static struct random_source rs; /* of a test, as the next two */
static struct trace_source trace;
static struct stops stops;
static struct pmem_stack *stack;

static void setup(void)
{
	sim = sim_new();
	stack = pmem_stack_new(1, 4096);
	ck_assert(sim && stack);
	pmem_load(stack, NULL, 4096);
}

static void teardown(void)
{
	deviations_free(&rs.taken);
	stops_free(&stops);
	pmem_stack_free(stack);
	sim_free(sim);
}

/* --- a program: a server and two clients at work on four lines, and NIC writes that drain --- */

struct program {
	struct pmem *pm;
	unsigned rounds, packets; /* of each client */
};

struct message {
	struct pmem *pm;
	struct nic_where from;
};

static void nic_lands(struct sim *s, void *arg)
{
	struct message *message = arg;
	uint64_t value = sim_now(s);
	pmem_nic_land(message->pm, value % 4 * LINE, &value, 8, &message->from);
	sim_wake(s, message->pm);
}

static void send_message(struct program *program, struct actor *me, unsigned nth)
{
	struct choice_point at = {.kind = CHOICE_PACKET,
				  .who = me,
				  .op = me->op,
				  .occurrence = me->occurrence,
				  .b = nth};
	struct message *message = sim_alloc(sim, sizeof(*message));
	sim_step(sim, STEP_POST, 5);
	*message = (struct message){
		program->pm,
		{.qp = me, .op = me->op, .occurrence = me->occurrence, .message = nth}};
	sim_at(sim, 300 + 700 * sim_choose(sim, &at, 5), nic_lands, message);
}

static void client(void *arg)
{
	struct program *program = arg;
	struct actor *me = sim_actor(sim);
	uint64_t word;
	for (unsigned i = 0; i < program->rounds; i++) {
		if (sim_host(sim))
			actor_label(me, (struct op_label){(uint8_t)sim_host(sim), OP_PUT,
							  (uint16_t)(i + 1)});
		else
			actor_label(me, (struct op_label){1, OP_GET, (uint16_t)(i + 1)});
		for (unsigned p = 0; p < program->packets; p++)
			send_message(program, me, p + 1);
		word = rt_now();
		sim_memcpy(pmem_base(program->pm) + 8 * sim_host(sim), &word, 8);
		sim_pmem_flush(pmem_base(program->pm), LINE);
		sim_idle_on(sim, program->pm);
		rt_yield();
		sim_pmem_drain();
		pmem_cache_pressure(program->pm);
		sim_mix_bytes(sim, pmem_base(program->pm), 4 * LINE);
	}
}

/* The hash of the run: what was chosen, each image on the way, how far time went. */
static uint64_t run(struct source *source, unsigned rounds, unsigned packets)
{
	struct hardware hw = hardware_default;
	struct program program = {pmem_machine(stack, 0), rounds, packets};
	hw.ddio = DDIO_OFF;
	sim_reset(sim, source);
	pmem_begin(program.pm, sim, &hw);
	for (unsigned host = 0; host < 3; host++)
		ck_assert_int_eq(sim_spawn(sim, host, "", client, &program), 0);
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	sim_mix(sim, pmem_images_hash(program.pm), pmem_dirty(program.pm));
	pmem_end(program.pm);
	return sim_hash(sim);
}

static void assert_same_deviations(const struct deviations *a, const struct deviations *b)
{
	ck_assert_uint_eq(a->n, b->n);
	for (unsigned i = 0; i < a->n; i++) {
		ck_assert_uint_eq(deviation_key(&a->d[i]), deviation_key(&b->d[i]));
		ck_assert_uint_eq(a->d[i].answer, b->d[i].answer);
		ck_assert_uint_eq(a->d[i].n, b->d[i].n);
	}
}

/* --- random --- */

TEST(random_is_its_seed)
{
	struct random_source one = {0}, two = {0};
	unsigned different = 0, most = 0, of_kind[CHOICE_KINDS] = {0};
	uint64_t plain = run(NULL, 4, 3), last = 0;
	for (uint64_t seed = 0; seed < 500; seed++) {
		random_start(&one, seed, 8);
		uint64_t hash = run(&one.source, 4, 3);
		random_start(&two, seed ^ 1, 8); /* what it did before does not count */
		run(&two.source, 2, 1);
		random_start(&two, seed, 8);
		ck_assert_uint_eq(run(&two.source, 4, 3), hash);
		assert_same_deviations(&one.taken, &two.taken);
		ck_assert_uint_le(one.taken.n, 8);
		ck_assert((hash == plain) == (one.taken.n == 0));
		for (unsigned i = 0; i < one.taken.n; i++) {
			const struct deviation *d = &one.taken.d[i];
			ck_assert(d->answer > 0 && d->answer < d->n);
			of_kind[d->kind]++;
		}
		most = one.taken.n > most ? one.taken.n : most;
		different += hash != last;
		last = hash;
	}
	ck_assert_uint_gt(different, 300);
	ck_assert_uint_eq(most, 8);
	ck_assert(of_kind[CHOICE_STEP] && of_kind[CHOICE_PACKET] && of_kind[CHOICE_DRAIN] &&
		  of_kind[CHOICE_EVICT]);
	ck_assert_uint_eq(of_kind[CHOICE_CRASH], 0); /* the power is the explorer's */
	deviations_free(&one.taken);
	deviations_free(&two.taken);
}

/* How much of a run's delays are within the bounds, of 1000 seeds. */
static unsigned delays_within(const struct durations *seen, uint64_t from, uint64_t to)
{
	unsigned within = 0;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		random_start(&rs, seed, 8);
		random_durations(&rs, seed, seen);
		run(&rs.source, 4, 1);
		for (unsigned i = 0; i < rs.taken.n; i++) {
			const unsigned k = choice_delay(rs.taken.d[i].kind, rs.taken.d[i].answer);
			const uint64_t ns = k ? choice_delay_ns(k) : 0;
			within += ns >= from && ns <= to;
		}
	}
	return within;
}

/* Where a store measures 8 ms, delays end just before that, then, and later; with clocks that
 * differ, within that of its end. */
TEST(random_delays_for_what_is_measured)
{
	struct durations seen = {.ns = {8000000}, .n = 1};
	const struct durations none = {0};
	ck_assert_uint_eq(delays_within(&none, 7900000, 8100000), 0);
	ck_assert_uint_gt(delays_within(&seen, 7900000, 7999999), 10);
	ck_assert_uint_gt(delays_within(&seen, 8000000, 8000000), 5);
	ck_assert_uint_gt(delays_within(&seen, 8000001, 8100000), 10);
	ck_assert_uint_gt(delays_within(&seen, 15900000, 16100000), 5);
	const unsigned near = delays_within(&seen, 7000000, 7999999);
	seen.clocks_ns = 1000000;
	ck_assert_uint_gt(2 * delays_within(&seen, 7000000, 7999999), 3 * near);
}

/* Runs that are not about time are what they were. */
TEST(random_is_about_time_in_some_runs)
{
	static struct random_source without;
	const struct durations seen = {.ns = {8000000}, .n = 1};
	unsigned same = 0, taken = 0;
	for (uint64_t seed = 0; seed < 400; seed++) {
		random_start(&without, seed, 8);
		run(&without.source, 4, 3);
		random_start(&rs, seed, 8);
		random_durations(&rs, seed, &seen);
		run(&rs.source, 4, 3);
		if (rs.durations.n) {
			taken += rs.taken.n;
			continue;
		}
		assert_same_deviations(&without.taken, &rs.taken);
		same++;
	}
	ck_assert_uint_gt(same, 170);
	ck_assert_uint_lt(same, 230);
	ck_assert_uint_gt(taken, 100);
	deviations_free(&without.taken);
}

TEST(random_gives_every_answer)
{
	const unsigned n = DELAYS + 1;
	unsigned seen[DELAYS + 1] = {0};
	for (uint64_t seed = 0; seed < 300; seed++) {
		random_start(&rs, seed, 100);
		run(&rs.source, 6, 1);
		for (unsigned i = 0; i < rs.taken.n; i++)
			if (rs.taken.d[i].kind == CHOICE_STEP)
				seen[rs.taken.d[i].answer]++;
	}
	for (unsigned k = 1; k < n; k++)
		ck_assert_uint_gt(seen[k], 0);
	ck_assert_uint_eq(seen[0], 0);
}

TEST(random_next_is_splitmix64)
{
	/* Published values for seed 1234567 (Vigna, splitmix64.c). */
	uint64_t state = 1234567;
	ck_assert_uint_eq(random_next(&state), 6457827717110365317u);
	ck_assert_uint_eq(random_next(&state), 3203168211198807973u);
	ck_assert_uint_eq(random_next(&state), 9817491932198370423u);
}

/* --- stops --- */

/* Runs that stop a task: is the nth stopped at that step, and replayed by a trace? */
static bool stops_at(const struct stops *stops, uint64_t nth, struct random_source *random,
		     const struct stop_point *at)
{
	struct trace_source trace;
	bool found = false;
	random_start(random, nth, 6);
	stops_choose(stops, nth, random);
	uint64_t hash = run(&random->source, 4, 3);
	for (unsigned i = 0; i < random->taken.n; i++) {
		const struct deviation *d = &random->taken.d[i];
		found |= deviation_key(d) == at->key &&
			 choice_delay(d->kind, d->answer) >= DELAY_QUIESCENCE;
	}
	ck_assert_int_eq(trace_start(&trace, &random->taken), 0);
	ck_assert_uint_eq(run(&trace.source, 4, 3), hash);
	ck_assert_ptr_null(trace_unused(&trace));
	trace_finish(&trace);
	return found;
}

/* Each step of the plain run has its turn, within a few times as many runs as there are steps. */
TEST(every_step_is_stopped_at)
{
	stops_record(&stops);
	ck_assert_uint_eq(run(&stops.source, 4, 3), run(NULL, 4, 3)); /* recording is plain */
	for (unsigned g = STOPS_SERVER; g <= STOPS_CLIENT; g++) {
		unsigned n = stops.group[g].n;
		ck_assert(n || g == STOPS_SERVER_LOADS);
		for (unsigned i = 0; i < n; i++) {
			uint64_t nth = 0, most = 8ull * 4 * n;
			while (nth < most && !stops_at(&stops, nth, &rs, &stops.group[g].point[i]))
				nth++;
			ck_assert_msg(nth < most, "group %u: step %u of %u is never stopped at", g,
				      i, n);
		}
	}
	ck_assert(!stops.failed);
}

/* A recorded run of a server's task and a client, step by step: both touch line 0, and each has a
 * line of its own. */
#define RECORDED 7
static struct actor recorded_server, recorded_client;
static struct choice_point recorded_step[RECORDED];

static void record_step(struct stops *stops, unsigned i, struct actor *who, uint32_t step,
			uint64_t line)
{
	struct source *source = &stops->source;
	/* The server's tasks never die, so they have fewer answers. */
	unsigned n = who == &recorded_server ? DELAY_FOREVER : DEATH_MACHINE + 1;
	recorded_step[i] = (struct choice_point){
		.kind = CHOICE_STEP, .who = who, .op = who->op, .a = step, .b = i};
	ck_assert_uint_eq(source->answer(source, &recorded_step[i], n), 0);
	if (step != STEP_POST)
		source->touched(source, who, TOUCH_WRITE, line * LINE, 8);
}

static void record_steps(struct stops *stops)
{
	actor_init(&recorded_server, "server/cleaner");
	actor_init(&recorded_client, "c1");
	actor_label(&recorded_client, (struct op_label){1, OP_PUT, 1});
	stops_record(stops);
	record_step(stops, 0, &recorded_server, STEP_STORE, 0);
	record_step(stops, 1, &recorded_server, STEP_FLUSH, 0);
	record_step(stops, 2, &recorded_server, STEP_STORE, 5);
	record_step(stops, 3, &recorded_client, STEP_STORE, 0);
	record_step(stops, 4, &recorded_client, STEP_STORE, 7);
	record_step(stops, 5, &recorded_client, STEP_POST, 0);
	record_step(stops, 6, &recorded_server, STEP_STORE, 0);
	stops_recorded(stops);
}

/* Which of the recorded steps it is. */
static unsigned step_of(uint64_t key)
{
	for (unsigned i = 0; i < RECORDED; i++)
		if (choice_key(&recorded_step[i]) == key)
			return i;
	ck_abort_msg("a stop at a step that was not recorded");
}

static bool is_meeting(unsigned step)
{
	return step != 2 && step != 4; /* those at the lines of their own */
}

/* Three of eight runs stop a task where it meets another, each such step in its turn; and what was
 * held before stops at such a step as well. */
TEST(runs_stop_where_tasks_meet)
{
	unsigned first[RECORDED] = {0}, again = 0;
	record_steps(&stops);
	ck_assert_uint_eq(stops.group[STOPS_MEET].n, 5);
	for (uint64_t nth = 0; nth < 400; nth++) {
		random_start(&rs, nth, 6);
		stops_choose(&stops, nth, &rs);
		/* The turn of the server's loads, of which there are none. */
		ck_assert(!rs.stops == (nth % 8 == 3));
		if (!rs.stops)
			continue;
		/* What is held before others is a step of another actor. */
		bool held = rs.stops > 1;
		unsigned one = step_of(rs.stop[0].key);
		unsigned at = held ? step_of(rs.stop[1].key) : one;
		if (held)
			ck_assert(recorded_step[one].who != recorded_step[at].who);
		if (nth % 8 == 2 || nth % 8 == 4 || nth % 8 == 6) {
			ck_assert_msg(is_meeting(at), "run %u stops at step %u", (unsigned)nth, at);
			first[at]++;
		}
		if (rs.stops < 3)
			continue;
		unsigned next = step_of(rs.stop[2].key);
		ck_assert(recorded_step[next].who == &recorded_client && is_meeting(next));
		again++;
	}
	for (unsigned i = 0; i < RECORDED; i++)
		ck_assert_msg(!first[i] == !is_meeting(i), "step %u: %u times", i, first[i]);
	ck_assert_uint_gt(again, 20);
}

/* In 6 of 8 runs the server's process is killed, in 4 of them at a step of its own; in one a
 * client's process, in one a client's machine. */
TEST(runs_kill_at_a_step)
{
	unsigned server = 0, elsewhere = 0, process = 0, machine = 0;
	record_steps(&stops);
	for (uint64_t nth = 0; nth < 800; nth++) {
		random_start(&rs, nth, 6);
		stops_kill(&stops, nth, &rs);
		unsigned deaths = 0;
		for (unsigned i = 0; i < rs.stops; i++) {
			const struct actor *who = recorded_step[step_of(rs.stop[i].key)].who;
			unsigned k = choice_delay(CHOICE_STEP, rs.stop[i].answer);
			deaths += k >= DEATH_SERVER;
			server += k == DEATH_SERVER && who == &recorded_server;
			elsewhere += k == DEATH_SERVER && who == &recorded_client;
			process += k == DEATH_PROCESS && who == &recorded_client;
			machine += k == DEATH_MACHINE && who == &recorded_client;
		}
		ck_assert_uint_eq(deaths, 1);
	}
	ck_assert_uint_eq(server, 400);
	ck_assert_uint_eq(elsewhere, 200);
	ck_assert_uint_eq(process, 100);
	ck_assert_uint_eq(machine, 100);
}

/* In most runs that kill a client's process the server stops where it works for what that was
 * doing, so that the client may be back before the server has done it. */
TEST(runs_stop_the_server_for_the_dead)
{
	unsigned at_work = 0;
	actor_init(&recorded_server, "server");
	actor_init(&recorded_client, "c1");
	actor_label(&recorded_client, (struct op_label){1, OP_PUT, 1});
	stops_record(&stops);
	record_step(&stops, 0, &recorded_client, STEP_POST, 0);
	record_step(&stops, 1, &recorded_server, STEP_STORE, 0);
	actor_label(&recorded_server, recorded_client.op);
	record_step(&stops, 2, &recorded_server, STEP_STORE, 1);
	stops_recorded(&stops);
	for (uint64_t nth = 1; nth < 801; nth += 8) {
		random_start(&rs, nth, 6);
		stops_kill(&stops, nth, &rs);
		ck_assert_uint_eq(choice_delay(CHOICE_STEP, rs.stop[0].answer), DEATH_PROCESS);
		if (rs.stops == 1)
			continue;
		ck_assert_uint_eq(rs.stops, 2);
		ck_assert_uint_eq(step_of(rs.stop[1].key), 2);
		at_work++;
	}
	ck_assert_uint_gt(at_work, 50);
}

/* --- trace --- */

TEST(trace_replays_random)
{
	unsigned deviations = 0;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		random_start(&rs, seed, 10);
		uint64_t hash = run(&rs.source, 4, 3);
		ck_assert_int_eq(trace_start(&trace, &rs.taken), 0);
		ck_assert_uint_eq(run(&trace.source, 4, 3), hash);
		ck_assert_ptr_null(trace_unused(&trace));
		assert_same_deviations(&trace.taken, &rs.taken);
		deviations += trace.taken.n;
		trace_finish(&trace);
	}
	ck_assert_uint_gt(deviations, 1000);
}

TEST(trace_replays_in_any_order)
{
	/* A deviation is its point's name, not its place in the list. */
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct deviations backwards = {0};
		random_start(&rs, seed, 10);
		uint64_t hash = run(&rs.source, 4, 3);
		for (unsigned i = rs.taken.n; i--;)
			ck_assert_int_eq(deviations_add(&backwards, &rs.taken.d[i]), 0);
		ck_assert_int_eq(trace_start(&trace, &backwards), 0);
		bool unique = true; /* of two deviations at one point the first is taken first */
		for (unsigned i = 0; i < backwards.n; i++)
			for (unsigned k = 0; k < i; k++)
				unique = unique && trace.key[i] != trace.key[k];
		if (unique) {
			ck_assert_uint_eq(run(&trace.source, 4, 3), hash);
			ck_assert_ptr_null(trace_unused(&trace));
		}
		trace_finish(&trace);
		deviations_free(&backwards);
	}
}

static void add_step(struct deviations *list, const char *who, unsigned put, unsigned store,
		     unsigned answer)
{
	struct deviation d = {.kind = CHOICE_STEP,
			      .op = {1, OP_PUT, (uint16_t)put},
			      .occurrence = 1,
			      .a = STEP_STORE,
			      .b = store,
			      .answer = answer,
			      .line = put};
	snprintf(d.who, sizeof(d.who), "%s", who);
	ck_assert_int_eq(deviations_add(list, &d), 0);
}

TEST(empty_trace_is_plain)
{
	struct deviations none = {0};
	ck_assert_int_eq(trace_start(&trace, &none), 0);
	ck_assert_uint_eq(run(&trace.source, 4, 3), run(NULL, 4, 3));
	ck_assert_ptr_null(trace_unused(&trace));
	trace_finish(&trace);
}

TEST(unused_is_told)
{
	struct deviations list = {0};
	add_step(&list, "c1", 2, 1, 5);	 /* exists */
	add_step(&list, "c1", 99, 1, 5); /* no such put */
	add_step(&list, "c9", 1, 1, 5);	 /* no task's */
	ck_assert_int_eq(trace_start(&trace, &list), 0);
	ck_assert_ptr_eq(trace_unused(&trace), &list.d[0]); /* nothing has run */
	run(&trace.source, 4, 3);
	ck_assert_ptr_eq(trace_unused(&trace), &list.d[1]);
	ck_assert(trace.used[0] && !trace.used[1] && !trace.used[2]);
	ck_assert_uint_eq(trace.taken.n, 1);
	ck_assert_uint_eq(trace.taken.d[0].line, 2);
	ck_assert_uint_eq(trace.taken.d[0].n, DELAYS + 1);
	trace_finish(&trace);
	deviations_free(&list);
}

TEST(answer_out_of_range_is_left_out)
{
	struct deviations list = {0}, rest = {0};
	add_step(&list, "c1", 1, 1, DEATHS_END);
	add_step(&list, "c1", 2, 1, 6);
	add_step(&rest, "c1", 2, 1, 6);
	ck_assert_int_eq(trace_start(&trace, &rest), 0);
	uint64_t hash = run(&trace.source, 4, 3);
	trace_finish(&trace);
	ck_assert_int_eq(trace_start(&trace, &list), 0);
	ck_assert_uint_eq(run(&trace.source, 4, 3), hash);
	ck_assert_ptr_eq(trace_unused(&trace), &list.d[0]);
	ck_assert(trace.used[1]);
	trace_finish(&trace);
	deviations_free(&list);
	deviations_free(&rest);
}

static unsigned ask(struct trace_source *trace, unsigned n)
{
	const struct choice_point at = {.kind = CHOICE_LINE, .a = 3, .b = 1};
	return trace->source.answer(&trace->source, &at, n);
}

TEST(line_of_other_versions_is_left_out)
{
	/* "version 1 of 3": with two versions, or four, it is another line's story. */
	const struct deviation d = {.kind = CHOICE_LINE, .a = 3, .b = 1, .c = 3, .answer = 2};
	struct deviations list = {0};
	ck_assert_int_eq(deviations_add(&list, &d), 0);
	ck_assert_int_eq(trace_start(&trace, &list), 0);
	ck_assert_uint_eq(ask(&trace, 3), 0);
	ck_assert_uint_eq(ask(&trace, 5), 0);
	ck_assert_uint_eq(ask(&trace, pmem_answers(2, TORN_PREFIX)), 0);
	ck_assert_ptr_eq(trace_unused(&trace), &list.d[0]);
	ck_assert_uint_eq(ask(&trace, 1 + 3), 2);
	ck_assert_uint_eq(ask(&trace, 1 + 3), 0); /* once */
	ck_assert_ptr_null(trace_unused(&trace));
	trace_finish(&trace);
	ck_assert_int_eq(trace_start(&trace, &list), 0);
	ck_assert_uint_eq(ask(&trace, pmem_answers(3, TORN_PREFIX)), 2);
	trace_finish(&trace);
	ck_assert_int_eq(trace_start(&trace, &list), 0);
	ck_assert_uint_eq(ask(&trace, pmem_answers(2, TORN_ANY)), 0);
	ck_assert_uint_eq(ask(&trace, pmem_answers(3, TORN_ANY)), 2);
	trace_finish(&trace);
	deviations_free(&list);
}

TEST(same_point_twice)
{
	/* If two deviations have one name, the first is the point's first time. */
	struct deviations list = {0};
	for (unsigned answer = 2; answer; answer--) {
		struct deviation d = {.kind = CHOICE_LINE, .a = 3, .b = 1, .answer = answer};
		ck_assert_int_eq(deviations_add(&list, &d), 0);
	}
	ck_assert_int_eq(trace_start(&trace, &list), 0);
	ck_assert_uint_eq(ask(&trace, 4), 2);
	ck_assert_uint_eq(ask(&trace, 4), 1);
	ck_assert_uint_eq(ask(&trace, 4), 0);
	trace_finish(&trace);
	deviations_free(&list);
}

TEST(other_kinds_are_not_asked)
{
	struct deviations list = {0};
	add_step(&list, "c1", 1, 1, 1);
	ck_assert_int_eq(trace_start(&trace, &list), 0);
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		ck_assert_uint_eq(trace.source.skip[k], k == CHOICE_STEP ? 0 : UINT32_MAX);
	trace_finish(&trace);
	deviations_free(&list);
}

/* What was recorded, written as text and read again, replays the same run. */
TEST(text_replays_random)
{
	const struct tm_region region = {.name = "all", .off = 0, .len = 4096};
	const struct deviation_names names = {&region, 1};
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct deviations list = {0};
		random_start(&rs, seed, 10);
		uint64_t hash = run(&rs.source, 4, 3);
		for (unsigned i = 0; i < rs.taken.n; i++) {
			char text[DEVIATION_TEXT];
			const char *expected = "";
			struct deviation d;
			deviation_print(&rs.taken.d[i], &names, text, sizeof(text));
			ck_assert_msg(!deviation_parse(&d, &names, text, &expected), "%s: %s", text,
				      expected);
			ck_assert_int_eq(deviations_add(&list, &d), 0);
		}
		ck_assert_int_eq(trace_start(&trace, &list), 0);
		ck_assert_uint_eq(run(&trace.source, 4, 3), hash);
		ck_assert_ptr_null(trace_unused(&trace));
		trace_finish(&trace);
		deviations_free(&list);
	}
}

/* --- what was written down keeps its meaning --- */

static uint64_t fnv(uint64_t hash, uint64_t x)
{
	return (hash ^ x) * 1099511628211u;
}

/* Reports name seeds: one means the same for ever, even with more kinds after CHOICE_FAIL. */
TEST(seeds_are_fixed)
{
	uint64_t hash = 14695981039346656037u;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		random_start(&rs, seed, 6);
		for (unsigned k = 0; k <= CHOICE_FAIL; k++)
			hash = fnv(fnv(hash, rs.mean[k]), rs.source.skip[k]);
		hash = fnv(hash, rs.left);
	}
	ck_assert_uint_eq(hash, 0xa0483bd20d6efd6e);
}

/* So do the bytes of a corpus: a record's kind, and whose it is. 0x8f is a failing call. */
TEST(bytes_are_fixed)
{
	static struct byte_source bytes;
	uint64_t hash = 14695981039346656037u;
	for (unsigned what = 0; what <= 0x80; what++) {
		const uint8_t record[RECORD_BYTES] = {what == 0x80 ? 0x8f : (uint8_t)what, 7, 9};
		bytes_start(&bytes, record, sizeof(record), true);
		for (unsigned k = 0; k <= CHOICE_FAIL; k++)
			hash = fnv(hash, bytes.source.skip[k]);
		hash = fnv(hash, bytes.record[0].whose);
	}
	deviations_free(&bytes.taken);
	ck_assert_uint_eq(hash, 0xf0230f77a24a7073);
}

/* A record that is made for a class is read as that class, and every kind that the fuzzer is to
 * draw has one. */
TEST(records_have_their_class)
{
	static const uint8_t class_of[] = {
#define X(name, record, ...) record,
		CHOICES(X)
#undef X
	};
	struct byte_source bytes = {0};
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		ck_assert(!choice_traits[k].fuzzed || class_of[k] != NO_RECORD);
		if (class_of[k] == NO_RECORD)
			continue;
		const uint8_t record[RECORD_BYTES] = {record_what(class_of[k]), 7, 9};
		bytes_start(&bytes, record, sizeof(record), true);
		ck_assert_uint_eq(bytes.record[0].kind, k);
		ck_assert_uint_eq(bytes.record[0].class, class_of[k]);
	}
	deviations_free(&bytes.taken);
}

RUN_TESTS(setup, teardown)
