/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes of a flush, a fence and a landing: small scripts, by one task, and what the explorer
 * does at the points in between. A letter is a step:
 *
 *	s  stores to the line		n  the NIC writes to it
 *	f  flushes it			r  an operation returns: a point
 *	d  a fence			w  a microsecond passes
 *	!  =  %  from here on, a point is: cut; known; beyond the budget
 *	c  flushes it by clflush	o  from here on no point is looked at
 *	u  the machine is booting still
 */
#include "checker/explore/cuts.h"
#include "tests/suite.h"

enum { PC_FLUSH = 100, PC_FENCE = 200 };

static const struct {
	const char *hardware, *script;
	const char *flush, *fence, *landing; /* a letter for each time, by fate */
} table[] = {
	/* Before the fence. */
	{"dmp", "!sfd", "D", "D", ""},
	{"dmp", "=sfd", "K", "K", ""},
	{"dmp", "%sfd", "B", "B", ""},
	{"dmp", "osfd", "A", "A", ""},
	/* There is nothing to lose. */
	{"dmp", "!fd", "N", "N", ""},
	{"dmp", "!sd", "", "N", ""},
	{"dmp", "!f sr", "N", "", ""},
	/* Between the two: the flush was cut, and the fence was not. */
	{"dmp", "=sf!r=d", "D", "K", ""},
	/* Before the flush, and after the fence: it was not. */
	{"dmp", "!sr=fd", "K", "K", ""},
	{"dmp", "=sfd!sr", "K", "K", ""},
	{"dmp", "=sfd!sfd", "KD", "KD", ""},
	/* In between it became durable in another way. */
	{"dmp", "=sfc!rd", "KK", "N", ""},
	{"dmp", "ufd", "A", "A", ""},
	/* Another thing that is cut later is no second chance for the point of this one. */
	{"dmp", "!sr=osfd", "A", "A", ""},
	/* Data that land can be lost until they are durable. */
	{"dmp", "n!r", "", "", "D"},
	{"dmp", "n=r", "", "", "K"},
	{"dmp", "n=r!r", "", "", "D"},
	{"dmp", "!n", "", "", "N"},
	{"dmp", "=nfd!r", "K", "K", "K"},
	{"dmp", "=nfd!nr", "K", "K", "KD"},
	{"dmp", "on!w", "", "", "A"},
	{"off", "=nw!sr", "", "", "K"},
	{"off", "!nw", "", "", "D"},
	/* They are durable at once: right before. */
	{"mhp", "!n", "", "", "D"},
	{"mhp", "=n!r", "", "", "K"},
};

static struct worlds worlds;
static struct cuts *cuts;
static enum cut_fate fate;

static void point(void *arg, const struct choice_point *at)
{
	struct world *w = arg;
	if (w->observer)
		cuts_point(cuts, w, at, fate);
}

static void no_observer(void *arg, struct world *w, const struct choice_point *at)
{
}

static void step(struct world *w, char letter)
{
	static struct actor qp;
	const struct nic_where from = {.qp = &qp, .message = 1};
	const uint8_t bytes[8] = {1};
	switch (letter) {
	case 's':
		pmem_cpu_copy(w->pm, 0, bytes, 0, sizeof(bytes), 1);
		break;
	case 'n':
		pmem_nic_arrive(w->pm, 0, bytes, sizeof(bytes), &from);
		pmem_nic_land(w->pm, 0, bytes, sizeof(bytes), &from);
		break;
	case 'f':
		pmem_cpu_flush(w->pm, 0, sizeof(bytes), PC_FLUSH);
		break;
	case 'c':
		pmem_cpu_clflush(w->pm, 0, sizeof(bytes), PC_FLUSH);
		break;
	case 'u':
		w->booted = false;
		break;
	case 'd':
		pmem_cpu_fence(w->pm, PC_FENCE);
		break;
	case 'r':
		sim_power_fails_here(w->sim, CRASH_AFTER_RETURN);
		break;
	case 'w':
		sim_sleep(w->sim, 1000);
		break;
	case 'o':
		w->observer = NULL;
		break;
	default:
		fate = letter == '!' ? CUT_DONE : letter == '=' ? CUT_KNOWN : CUT_BUDGET;
	}
}

static const char *script;
static void task(void *arg)
{
	struct world *w = arg;
	for (const char *c = script; *c; c++)
		if (*c != ' ')
			step(w, *c);
	sim_stop(w->sim, SIM_DONE);
}

/* Check how often each fate came of it; and that places are known by their addresses. */
static void check_fates(enum cut_kind kind, const char *expected)
{
	static const char letter[] = "DKBAN";
	unsigned n;
	const struct cut_place *place = cuts_places(cuts, &n);
	for (unsigned f = 0; f < CUT_FATES; f++) {
		uint64_t want = 0, is = 0;
		for (const char *c = expected; *c; c++)
			want += *c == letter[f];
		for (unsigned i = 0; i < n; i++) {
			is += place[i].kind == kind ? place[i].fate[f] : 0;
			ck_assert_uint_eq(place[i].pc, place[i].kind == CUT_FLUSH   ? PC_FLUSH
						       : place[i].kind == CUT_FENCE ? PC_FENCE
										    : 0);
		}
		ck_assert_msg(is == want, "%s: kind %u, fate %c: %u times, not %u", script, kind,
			      letter[f], (unsigned)is, (unsigned)want);
	}
}

TESTS(fates, (int)(sizeof(table) / sizeof(table[0])))
{
	static const struct source_lines lines;
	struct world *w = &worlds.world[0];
	struct hardware hw = hardware_default;
	const bool off = !strcmp(table[_i].hardware, "off");
	struct pmem_stack *stack = pmem_stack_new(1, 64 * LINE);
	hw.ddio = off ? DDIO_OFF : DDIO_ON;
	hw.domain = !strcmp(table[_i].hardware, "mhp") ? DOMAIN_MHP : DOMAIN_DMP;
	script = table[_i].script;
	fate = CUT_NOTHING;
	cuts = cuts_new(&lines);
	ck_assert(stack && cuts);
	cuts_watch(cuts, &worlds);
	pmem_load(stack, NULL, 4 * LINE);
	w->sim = sim_new();
	w->pm = pmem_machine(stack, 0);
	w->booted = true;
	w->observer = no_observer;
	sim_reset(w->sim, NULL);
	pmem_begin(w->pm, w->sim, &hw);
	sim_set_tracer(w->sim, w->tracer, w->tracer_arg);
	sim_set_observer(w->sim, point, w);
	cuts_begin(cuts, 0, false);
	sim_spawn(w->sim, HOST_SERVER, "server", task, w);
	ck_assert_int_eq(sim_run(w->sim), SIM_DONE);
	cuts_begin(cuts, 0, false);
	check_fates(CUT_FLUSH, table[_i].flush);
	check_fates(CUT_FENCE, table[_i].fence);
	check_fates(CUT_LANDING, table[_i].landing);
	pmem_end(w->pm);
	cuts_free(cuts);
	sim_free(w->sim);
	pmem_stack_free(stack);
}

RUN_TESTS(NULL, NULL)
