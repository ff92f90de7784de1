/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes that changed against the bytes that the tracer saw.
 *
 * tracer_subject.c and libc_subject.c are compiled as stores are, by each compiler that the machine
 * has, at -O0 and at -O2. Each of these objects runs here in a simulation: first its writes on a
 * machine, then its reads on the machine that boots when the first one's power failed.
 * Every byte of the pool that is not as it was must be in a version that the model holds;
 * every line that a read needs must have been asked for (CHOICE_LINE).
 *
 * Then with store buffers, some of whose stores are held: the code loads and leaves in memory what
 * it does without, and what others see meanwhile is what the model knows to be visible.
 */
#include "core/pmem/crash.h"
#include "core/rt/sim.h"
#include "tests/core/pmem/tracer_subject.h"
#include "tests/suite.h"

#define POOL  (64 * 1024)
#define LINES (POOL / LINE)

/* TRACER_VARIANTS: "X(tracer_subject_gcc_O0) X(tracer_subject_gcc_O2) ...", from the build. */
#define X(variant) extern const struct tracer_subject variant;
TRACER_VARIANTS
#undef X

static const struct variant {
	const char *name;
	const struct tracer_subject *subject;
} variants[] = {
#define X(variant) {#variant, &variant},
	TRACER_VARIANTS
#undef X
};

/* Says 0 to everything and remembers the lines that were asked for. */
struct listener {
	struct source source;
	bool asked[LINES];
};

static unsigned listen(struct source *source, const struct choice_point *at, unsigned n)
{
	struct listener *me = (struct listener *)source;
	if (at->kind == CHOICE_LINE)
		me->asked[at->a] = true;
	return 0;
}

static struct world {
	struct sim *sim[2]; /* of the machine that fails, of the one that boots after it */
	struct pmem_stack *stack;
	struct pmem *pm[2];
	uint8_t image[POOL]; /* before */
	const struct tracer_step *step;
	uint8_t *slot;
	uint64_t kept; /* what reads returned */
	struct listener listener;
} w;

static void setup(void)
{
	w.sim[0] = sim_new();
	w.sim[1] = sim_new();
	w.stack = pmem_stack_new(2, POOL);
	ck_assert(w.sim[0] && w.sim[1] && w.stack);
	for (unsigned i = 0; i < POOL; i++)
		w.image[i] = (uint8_t)(i * 2654435761u >> 13 | 1);
	pmem_load(w.stack, w.image, POOL);
	memset(&w.listener, 0, sizeof(w.listener));
	w.listener.source.answer = listen;
	for (unsigned i = 0; i < 2; i++) {
		w.pm[i] = pmem_machine(w.stack, i);
		sim_reset(w.sim[i], i ? &w.listener.source : NULL);
	}
	pmem_begin(w.pm[0], w.sim[0], &hardware_default);
}

static void teardown(void)
{
	pmem_end(w.pm[0]);
	pmem_stack_free(w.stack);
	sim_free(w.sim[0]);
	sim_free(w.sim[1]);
}

static void write_task(void *arg)
{
	w.step->write(w.slot);
}

static void read_task(void *arg)
{
	w.kept += w.step->read(w.slot);
}

static void run(unsigned machine, void (*task)(void *), const struct tracer_step *step,
		unsigned slot)
{
	w.step = step;
	w.slot = pmem_base(w.pm[machine]) + slot * SLOT_BYTES;
	ck_assert_int_eq(sim_spawn(w.sim[machine], HOST_SERVER, "subject", task, NULL), 0);
	enum sim_end end = sim_run(w.sim[machine]);
	ck_assert_msg(end == SIM_IDLE, "step %s: the simulation ended with %d %s", step->name,
		      (int)end, sim_fault(w.sim[machine], NULL));
	pmem_commit_pending(w.pm[machine]);
}

/* Bytes of machine 0's slot that changed, and how many of them a version holds. */
static unsigned compare(unsigned slot, unsigned *seen)
{
	unsigned changed = 0;
	uint8_t known[LINE];

	*seen = 0;
	for (uint32_t l = slot * SLOT_BYTES / LINE; l < (slot + 1) * SLOT_BYTES / LINE; l++) {
		const uint8_t *work = pmem_base(w.pm[0]) + (size_t)l * LINE;
		pmem_line_content(w.pm[0], l, 0, known);
		for (unsigned i = 0; i < LINE; i++) {
			changed += work[i] != w.image[l * LINE + i];
			*seen += work[i] != w.image[l * LINE + i] && work[i] == known[i];
		}
	}
	return changed;
}

TESTS(variant_is_seen, (int)(sizeof(variants) / sizeof(variants[0])))
{
	const struct variant *v = &variants[_i];
	unsigned changed = 0, seen = 0, dirty = 0, asked = 0, bad = 0;
	uint64_t off;

	ck_assert_uint_le(v->subject->steps * SLOT_BYTES, POOL);
	for (unsigned i = 0; i < v->subject->steps; i++) {
		const struct tracer_step *step = &v->subject->step[i];
		unsigned of_step, n;
		run(0, write_task, step, i);
		n = compare(i, &of_step);
		ck_assert_msg(n, "step %s changes nothing", step->name);
		if (n != of_step) {
			printf("%s: %s: %u of %u changed bytes were not seen\n", v->name,
			       step->name, n - of_step, n);
			bad++;
		}
		changed += n;
		seen += of_step;
	}
	bool all = pmem_all_seen(w.pm[0], &off);

	pmem_begin(w.pm[1], w.sim[1], &hardware_default);
	for (unsigned i = 0; i < v->subject->steps; i++) {
		const struct tracer_step *step = &v->subject->step[i];
		run(1, read_task, step, i);
		for (uint32_t l = i * SLOT_BYTES / LINE; l < (i + 1) * SLOT_BYTES / LINE; l++) {
			if (!pmem_line_versions(w.pm[0], l))
				continue;
			dirty++;
			asked += w.listener.asked[l];
			if (!w.listener.asked[l]) {
				printf("%s: %s: the load of line %u was not seen\n", v->name,
				       step->name, l % (SLOT_BYTES / LINE));
				bad++;
			}
		}
	}
	pmem_end(w.pm[1]);

	printf("%s: %u bytes changed, %u seen; %u lines read, %u seen\n", v->name, changed, seen,
	       dirty, asked);
	fflush(stdout);
	ck_assert_msg(all, "%s: byte %llu of step %s changed unseen", v->name,
		      (unsigned long long)off, v->subject->step[off / SLOT_BYTES].name);
	ck_assert_uint_eq(bad, 0);
	ck_assert_uint_eq(changed, seen);
	ck_assert_uint_ge(changed, v->subject->least);
}

TESTS(what_is_durable_is_known, (int)(sizeof(variants) / sizeof(variants[0])))
{
	const struct variant *v = &variants[_i];
	unsigned bad = 0;
	for (unsigned i = 0; i < v->subject->lastings; i++) {
		const struct tracer_lasting *lasting = &v->subject->lasting[i];
		const struct tracer_step step = {lasting->name, lasting->write, NULL};
		unsigned in_flight = 0;
		run(0, write_task, &step, i);
		for (uint32_t l = i * SLOT_BYTES / LINE; l < (i + 1) * SLOT_BYTES / LINE; l++)
			in_flight += pmem_line_versions(w.pm[0], l);
		if (!in_flight != lasting->durable) {
			printf("%s: %s: a power failure %s it\n", v->name, lasting->name,
			       in_flight ? "may lose" : "keeps");
			bad++;
		}
	}
	ck_assert_uint_eq(bad, 0);
}

/* --- store buffers --- */

#define GLANCES	  60
#define GLANCE_NS 40

/* Holds every third store. */
struct holder {
	struct source source;
	unsigned stores;
};

static struct {
	struct holder holder;
	const uint8_t *after; /* the slot at the end of a plain run */
	bool ended;
	unsigned glances,
		behind; /* looks at memory; those after the task's end that saw it not done */
} buffered;

static unsigned hold_some(struct source *source, const struct choice_point *at, unsigned n)
{
	struct holder *me = (struct holder *)source;
	return at->kind == CHOICE_BUFFER && ++me->stores % 3 == 0 ? 1 + me->stores / 3 % 2 : 0;
}

static void glance(struct sim *sim, void *arg)
{
	uint64_t off;
	ck_assert_msg(pmem_all_seen(w.pm[0], &off), "%s: byte %lu is seen too early", w.step->name,
		      (unsigned long)off);
	buffered.behind += buffered.ended && memcmp(w.slot, buffered.after, SLOT_BYTES) != 0;
	if (--buffered.glances)
		sim_at(sim, GLANCE_NS, glance, NULL);
}

static void write_and_read_task(void *arg)
{
	write_task(arg);
	read_task(arg);
	buffered.ended = true;
}

/* What the step read; and what it left in the slot. */
static uint64_t write_and_read(const struct tracer_step *step, unsigned entries,
			       uint8_t left[SLOT_BYTES])
{
	struct hardware hw = hardware_default;
	hw.store_buffer = (uint8_t)entries;
	pmem_end(w.pm[0]);
	buffered.holder = (struct holder){.source.answer = hold_some};
	sim_reset(w.sim[0], entries ? &buffered.holder.source : NULL);
	pmem_begin(w.pm[0], w.sim[0], &hw);
	buffered.ended = false;
	buffered.glances = GLANCES;
	if (entries)
		sim_at(w.sim[0], GLANCE_NS, glance, NULL);
	w.kept = 0;
	run(0, write_and_read_task, step, 0);
	memcpy(left, w.slot, SLOT_BYTES);
	return w.kept;
}

TESTS(store_buffers_change_nothing_for_their_cpu, (int)(sizeof(variants) / sizeof(variants[0])))
{
	const struct variant *v = &variants[_i];
	uint8_t plain[SLOT_BYTES], left[SLOT_BYTES];
	for (unsigned i = 0; i < v->subject->steps; i++) {
		const struct tracer_step *step = &v->subject->step[i];
		uint64_t read = write_and_read(step, 0, plain);
		buffered.after = plain;
		for (unsigned entries = 1; entries <= 8; entries *= 2) {
			ck_assert_msg(write_and_read(step, entries, left) == read,
				      "%s: %s reads other bytes", v->name, step->name);
			ck_assert_msg(!memcmp(left, plain, SLOT_BYTES), "%s: %s leaves other bytes",
				      v->name, step->name);
		}
		buffered.after = NULL;
	}
	ck_assert_uint_gt(buffered.behind, 0);
}

/* The test itself would notice: this file is not compiled as stores are. */
static void write_behind_the_tracer(uint8_t *slot)
{
	for (unsigned i = 0; i < 24; i++)
		((volatile uint8_t *)slot)[i] ^= 0xff;
}

TEST(unseen_bytes_are_noticed)
{
	static const struct tracer_step step = {"behind the tracer", write_behind_the_tracer, NULL};
	unsigned seen;
	uint64_t off;

	run(0, write_task, &step, 3);
	ck_assert_uint_eq(compare(3, &seen), 24);
	ck_assert_uint_eq(seen, 0);
	ck_assert(!pmem_all_seen(w.pm[0], &off));
	ck_assert_uint_eq(off, 3 * SLOT_BYTES);
}

RUN_TESTS(setup, teardown)
