/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus programs by the thousand: the emulated machine against the slow model.
 *
 * generator.c makes small programs; for each of them `tidemark litmus` (the soft RNIC and the
 * persistence model, with partial-order reduction) and slow_model.c (the rules, every state) must
 * find the same final outcomes and the same outcomes of a power failure. Where they do not, the
 * program is printed with both sets, a run that shows the difference, and the command that repeats
 * it.
 *
 * Without options: a fixed sample. See print_usage() for the others.
 */
#include <assert.h>
#include <getopt.h>
#include "checker/models/litmus.h"
#include "tests/checker/explore/budget.h"
#include "tests/litmus/generator.h"
#include "tests/litmus/slow_model.h"

#define STATEMENTS 4	   /* of a program at most, unless an option says otherwise */
#define SAMPLE	   25000   /* five times as many as the last seeded bug takes */
#define STATES	   2000000 /* of the slow model; a program that has more is left out, and counted */
#define RUNS	   20000   /* of the machine; likewise */

struct comparison {
	const struct generator *generator;
	struct slow_model *model;
	const char *self;  /* how this program was called */
	const char *knobs; /* for the machine alone: a mutant */
	bool verbose, quiet;
	struct litmus_limits limits;
	bool enumerated; /* the program is none of the generator's */
	uint64_t compared, differ, too_large, outcomes, states, runs;
};

/* --- the two sides --- */

static char *text_of(const struct comparison *c, const struct program *p, uint64_t number,
		     const char *condition, size_t *len)
{
	char *text, name[32];
	FILE *out = open_memstream(&text, len);
	if (!out)
		abort();
	snprintf(name, sizeof(name), "n%llu", (unsigned long long)number);
	program_print(out, p, name, c->knobs, condition);
	fclose(out);
	return text;
}

static struct litmus_test *parse(const char *text, size_t len)
{
	struct input_error error;
	struct litmus_test *test = malloc(sizeof(*test));
	if (!test)
		abort();
	if (litmus_parse(test, text, len, &error)) {
		fprintf(stderr, "%s\nis no litmus test: %s\n", text, error.message);
		exit(EXIT_FAILURE);
	}
	return test;
}

/* Both outcomes have their values in the order of program_places(). */
static int compare(const struct outcome *slow, const struct litmus_outcome *machine,
		   unsigned places)
{
	for (unsigned i = 0; i < places; i++)
		if (slow->value[i] != machine->value[i])
			return slow->value[i] < machine->value[i] ? -1 : 1;
	return 0;
}

/* Call for each outcome, in order, with those of the sides that have it. */
static void merge(const struct outcomes *slow, const struct litmus_outcomes *machine,
		  unsigned places,
		  void (*call)(void *arg, const struct outcome *slow,
			       const struct litmus_outcome *machine),
		  void *arg)
{
	unsigned i = 0, j = 0;
	while (i < slow->n || j < machine->n) {
		int c = i == slow->n ? 1
			: j == machine->n
				? -1
				: compare(&slow->outcome[i], &machine->outcome[j], places);
		call(arg, c <= 0 ? &slow->outcome[i] : NULL, c >= 0 ? &machine->outcome[j] : NULL);
		i += c <= 0;
		j += c >= 0;
	}
}

/* --- a difference --- */

struct difference {
	const struct program *program;
	struct place places[PROGRAM_PLACES];
	unsigned n_places;
	bool crash;
	unsigned found;
	const struct outcome *slow; /* the first that only this side has */
	const struct litmus_outcome *machine;
};

static void note(void *arg, const struct outcome *slow, const struct litmus_outcome *machine)
{
	struct difference *d = arg;
	if (slow && machine)
		return;
	d->found++;
	if (slow && !d->slow)
		d->slow = slow;
	if (machine && !d->machine)
		d->machine = machine;
}

static bool belongs(const struct difference *d, unsigned place)
{
	return d->places[place].kind != (d->crash ? PLACE_MEMORY : PLACE_CRASH);
}

static void print_outcome(void *arg, const struct outcome *slow,
			  const struct litmus_outcome *machine)
{
	const struct difference *d = arg;
	char name[16];
	printf("    ");
	for (unsigned i = 0; i < d->n_places; i++) {
		if (!belongs(d, i))
			continue;
		place_print(d->program, &d->places[i], name, sizeof(name));
		printf(" %s=%llu", name,
		       (unsigned long long)(slow ? slow->value[i] : machine->value[i]));
	}
	printf("%s\n", !slow ? "   <-- the machine only" : !machine ? "   <-- the model only" : "");
}

static void say(void *arg, const char *line)
{
	fprintf(arg, "    %s\n", line);
}

/* The machine's run that has the outcome: of the condition that there is one. */
static void print_machine_witness(const struct comparison *c, const struct difference *d,
				  uint64_t number)
{
	char *condition, name[16];
	size_t len;
	FILE *out = open_memstream(&condition, &len);
	if (!out)
		abort();
	fprintf(out, "exists (true");
	for (unsigned i = 0; i < d->n_places; i++) {
		if (!belongs(d, i))
			continue;
		place_print(d->program, &d->places[i], name, sizeof(name));
		fprintf(out, " /\\ %s=%llu", name, (unsigned long long)d->machine->value[i]);
	}
	fprintf(out, ")");
	fclose(out);
	char *text = text_of(c, d->program, number, condition, &len);
	struct litmus_test *test = parse(text, len);
	printf("  a run of the machine that comes to what the model has not:\n");
	litmus_witness(test, &litmus_default, 0, say, stdout);
	litmus_free(test);
	free(test);
	free(text);
	free(condition);
}

static void print_difference(const struct comparison *c, const struct difference *d,
			     const struct litmus_outcomes *machine, uint64_t number)
{
	const struct outcomes *slow = d->crash ? slow_model_crash(c->model)
					       : slow_model_final(c->model);
	printf("  %s outcomes: %u of the model, %u of the machine\n", d->crash ? "crash" : "final",
	       slow->n, machine->n);
	merge(slow, machine, d->n_places, print_outcome, (void *)d);
	if (d->slow) {
		printf("  a run of the model that comes to what the machine has not:\n");
		slow_model_witness(c->model, d->slow, stdout);
	}
	if (d->machine)
		print_machine_witness(c, d, number);
}

/* --- one program --- */

static bool compare_outcomes(const struct comparison *c, const struct program *p, bool crash,
			     const struct litmus_outcomes *machine, uint64_t number,
			     const char *text)
{
	struct difference d = {.program = p, .crash = crash};
	const struct outcomes *slow = crash ? slow_model_crash(c->model)
					    : slow_model_final(c->model);
	d.n_places = program_places(p, d.places);
	merge(slow, machine, d.n_places, note, &d);
	if (!d.found)
		return true;
	if (c->quiet)
		return false;
	if (text && c->enumerated)
		printf("%s\n", text);
	else if (text)
		printf("program %llu:\n%s\n  again: %s --program %llu%s%s\n",
		       (unsigned long long)number, text, c->self, (unsigned long long)number,
		       c->knobs[0] ? " --knobs " : "", c->knobs);
	print_difference(c, &d, machine, number);
	return false;
}

/* False: the two sides differ. */
static bool compare_program(struct comparison *c, uint64_t number, const struct program *p)
{
	struct litmus_result result;
	size_t len;
	char *text = text_of(c, p, number, "", &len);
	struct litmus_test *test = parse(text, len);
	bool same = true;
	if (!slow_model_run(c->model, p, STATES)) {
		c->too_large++;
	} else {
		if (litmus_run(test, &c->limits, &result))
			abort();
		if (!result.complete) {
			c->too_large++;
			goto out;
		}
		same = compare_outcomes(c, p, false, &result.final, number, text);
		same &= compare_outcomes(c, p, true, &result.crash, number, same ? text : NULL);
		c->compared++;
		c->differ += !same;
		c->outcomes += result.final.n + result.crash.n;
		c->states += slow_model_states(c->model);
		c->runs += result.runs;
		if (c->verbose)
			printf("%s%u final outcomes, %u crash outcomes; %u states, %llu runs\n",
			       text, result.final.n, result.crash.n, slow_model_states(c->model),
			       (unsigned long long)result.runs);
	out:
		litmus_result_free(&result);
	}
	litmus_free(test);
	free(test);
	free(text);
	return same;
}

/* --- many programs --- */

static void print_sum(const struct comparison *c)
{
	printf("%llu programs, %llu outcomes (%llu states of the model, %llu runs of the machine): "
	       "%llu programs differ\n",
	       (unsigned long long)c->compared, (unsigned long long)c->outcomes,
	       (unsigned long long)c->states, (unsigned long long)c->runs,
	       (unsigned long long)c->differ);
	if (c->too_large)
		printf("%llu left out, as they have more than %u states, or %u runs\n",
		       (unsigned long long)c->too_large, STATES, RUNS);
}

/* Until so many programs differ. */
static void compare_sample(struct comparison *c, uint64_t programs, uint64_t seed,
			   unsigned statements, uint64_t most)
{
	struct program p;
	for (uint64_t i = 0; i < programs && c->differ < most; i++) {
		uint64_t number = generator_draw(c->generator, &seed, statements);
		if (!generator_program(c->generator, number, &p))
			abort();
		compare_program(c, number, &p);
	}
}

static void compare_all(struct comparison *c, unsigned statements, uint64_t most)
{
	struct program p;
	uint64_t numbers = generator_numbers(c->generator, statements);
	for (uint64_t number = 0; number < numbers && c->differ < most; number++)
		if (generator_program(c->generator, number, &p))
			compare_program(c, number, &p);
}

/*
 * --- requests of one queue pair ---
 *
 * What a READ may pass shows only where two results have places of their own and the server's CPU
 * stores twice, which hardly any program of a sample has. So: all programs of a client with two
 * requests, or with one between two READs, and a server's CPU that writes the two cells that they
 * access, in either order; on each of these machines, the cells on one line or on two.
 */
static const struct machine request_machines[] = {
	{.relaxed = true},
	{.relaxed = true, .ddio_off = true, .ack_late = true, .read_words = true},
	{.relaxed = true, .atomics_hca = true},
	{.lines_any = true},
};
static const struct statement requests[] = {
	{.op = OP_GET, .to = 2, .from = 0},
	{.op = OP_GET, .to = 3, .from = 1},
	{.op = OP_GET, .to = 3, .from = 1, .fenced = true},
	{.op = OP_REMOTE_FAA, .to = 3, .from = 1, .value = 5},
	{.op = OP_PUT, .to = 1, .from = NOWHERE, .value = 6},
	{.op = OP_AWRITE, .to = 1, .from = NOWHERE, .value = 7},
	{.op = OP_FLUSH, .to = 0, .from = NOWHERE},
	{.op = OP_COMMITPUT, .to = 0, .from = NOWHERE, .value = 8},
	{.op = OP_GET, .to = WHOLE | 1, .from = WHOLE | 0},
};
#define REQUEST_MACHINES (sizeof(request_machines) / sizeof(request_machines[0]))
#define REQUEST_KINDS	 (sizeof(requests) / sizeof(requests[0]))

/* The number's digits are the shape, the order of the CPU's stores, the machine, the requests. */
static struct program requests_program(uint64_t number, const struct statement *request,
				       unsigned length)
{
	struct program p = {.hosts = 2,
			    .threads = 2,
			    .locations = 2,
			    .qps = 1,
			    .location_host = {1, 0},
			    .shape = number % 2 ? SHAPE_LONG : SHAPE_WIDE,
			    .qp_host = {{0, 1}},
			    .thread_host = {0, 1},
			    .length = {(uint8_t)length, 2}};
	uint8_t first = number / 2 % 2;
	p.machine = request_machines[number / 4];
	p.statement[1][0] = (struct statement){
		.op = OP_STORE, .to = first, .from = NOWHERE, .value = 1};
	p.statement[1][1] = (struct statement){
		.op = OP_STORE, .to = !first, .from = NOWHERE, .value = 2};
	for (unsigned i = 0; i < length; i++)
		p.statement[0][i] = request[i];
	return p;
}

static void compare_requests(struct comparison *c, uint64_t most)
{
	c->enumerated = true;
	for (uint64_t i = 0; i < REQUEST_KINDS * REQUEST_KINDS; i++) {
		/* Any two, or any between the first two kinds. */
		unsigned a = i % REQUEST_KINDS, b = (unsigned)(i / REQUEST_KINDS);
		struct statement two[] = {requests[a], requests[b]};
		struct statement three[] = {requests[0], requests[b], requests[1]};
		for (uint64_t n = 0; n < 4 * REQUEST_MACHINES && c->differ < most; n++) {
			struct program p = requests_program(n, two, 2);
			compare_program(c, n, &p);
			if (a || i == REQUEST_KINDS * (REQUEST_KINDS - 1))
				continue;
			p = requests_program(n, three, 3);
			compare_program(c, n, &p);
		}
	}
	c->enumerated = false;
	c->limits = litmus_default;
	c->limits.runs = RUNS;
}

/* --- seeded bugs of the machine: each must make a program of the sample differ --- */

static const char *const mutants[] = {
	"pm_flush_ignored",    "pm_fence_all",
	"pm_version_alone",    "pm_nic_durable",
	"pm_visible_durable",  "pm_ddio_ignored",
	"pm_caches_lost",      "pm_nic_buffers_lost",
	"nic_read_overtakes",  "nic_send_overtakes",
	"nic_write_overtakes", "nic_fence_ignored",
	"nic_never_overtakes", "nic_done_is_visible",
	"nic_receive_early",   "nic_flush_ignored",
	"nic_iwarp_waits",     "nic_lines_shuffled",
	"nic_last_line",       "nic_atomic_write_posted",
	"pm_commit_cached",
};

static unsigned missed_mutants(const struct comparison *with, uint64_t programs, uint64_t seed)
{
	unsigned missed = 0;
	for (unsigned i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++) {
		char knobs[64];
		struct comparison c = {
			.generator = with->generator, .model = with->model, .quiet = true};
		c.limits = with->limits;
		snprintf(knobs, sizeof(knobs), "mutant=%s", mutants[i]);
		c.knobs = knobs;
		compare_sample(&c, programs, seed, STATEMENTS, 1);
		printf("%s: %s after %llu programs\n", mutants[i],
		       c.differ ? "found" : "FAILED: not found", (unsigned long long)c.compared);
		missed += !c.differ;
	}
	return missed;
}

/* --- the command line --- */

static void print_usage(FILE *out)
{
	fprintf(out,
		"test_litmus_thousands [OPTION...]\n"
		"Litmus programs: the emulated machine against a slow model of the same rules.\n"
		"  --programs N    a random sample of so many\n"
		"  --seed N        of the sample (default 1)\n"
		"  --statements N  of a program at most, 1 to %u (default %u)\n"
		"  --all           all programs of so many statements, instead of a sample\n"
		"  --requests      those of one queue pair, all of them\n"
		"  --program N     this one, with its text\n"
		"  --knobs TEXT    NAME=VALUE of the machine, not of the model: mutant=...\n"
		"  --stop N        end when so many differ (default 5)\n"
		"Without options: as in `make test-all`; with TIDEMARK_QUICK=1 as in `make "
		"test`.\n",
		GENERATOR_BOUND, STATEMENTS);
}

struct arguments {
	uint64_t programs, seed, number, stop;
	unsigned statements;
	bool all, requests, one, any; /* any: some option was given */
};

static uint64_t number_of(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t number = strtoull(text, &end, 10);
	if (*end || end == text || number < least || number > most) {
		fprintf(stderr, "\"%s\": expected a number from %llu to %llu\n", text,
			(unsigned long long)least, (unsigned long long)most);
		exit(2);
	}
	return number;
}

static void read_arguments(struct arguments *a, struct comparison *c, int argc, char **argv)
{
	static const struct option options[] = {{"programs", required_argument, NULL, 'p'},
						{"seed", required_argument, NULL, 's'},
						{"statements", required_argument, NULL, 'm'},
						{"all", no_argument, NULL, 'a'},
						{"requests", no_argument, NULL, 'r'},
						{"program", required_argument, NULL, 'o'},
						{"knobs", required_argument, NULL, 'k'},
						{"stop", required_argument, NULL, 'n'},
						{NULL, 0, NULL, 0}};
	int o;
	a->any = argc > 1;
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'p')
			a->programs = number_of(optarg, 0, UINT64_MAX);
		else if (o == 's')
			a->seed = number_of(optarg, 0, UINT64_MAX);
		else if (o == 'm')
			a->statements = (unsigned)number_of(optarg, 1, GENERATOR_BOUND);
		else if (o == 'a')
			a->all = true;
		else if (o == 'r')
			a->requests = true;
		else if (o == 'o')
			a->one = true, a->number = number_of(optarg, 0, UINT64_MAX);
		else if (o == 'k')
			c->knobs = optarg;
		else if (o == 'n')
			a->stop = number_of(optarg, 1, UINT64_MAX);
		else
			print_usage(stderr), exit(2);
	}
	if (optind < argc)
		print_usage(stderr), exit(2);
}

/* False: there is no such program. */
static bool compare_one(struct comparison *c, uint64_t number)
{
	struct program p;
	if (number >= generator_numbers(c->generator, GENERATOR_BOUND) ||
	    !generator_program(c->generator, number, &p)) {
		fprintf(stderr, "%llu is no program's number\n", (unsigned long long)number);
		return false;
	}
	c->verbose = true;
	compare_program(c, number, &p);
	return true;
}

/* As a test. The build with the sanitizers does a part. */
static unsigned run_tests(struct comparison *c)
{
	unsigned missed = 0;
	compare_all(c, is_quick() || TM_ASAN ? 1 : 2, 5);
	compare_requests(c, 5);
	compare_sample(c, is_quick() || TM_ASAN ? 1000 : SAMPLE, 1, STATEMENTS, 5);
	compare_sample(c, is_quick() || TM_ASAN ? 50 : SAMPLE / 10, 2, STATEMENTS + 1, 5);
	print_sum(c);
	if (!is_quick() && !TM_ASAN)
		missed = missed_mutants(c, SAMPLE, 1);
	return missed;
}

int main(int argc, char **argv)
{
	struct arguments a = {.programs = 1000, .seed = 1, .stop = 5, .statements = STATEMENTS};
	struct generator *g = generator_new();
	struct comparison c = {
		.generator = g, .model = slow_model_new(), .self = argv[0], .knobs = ""};
	c.limits = litmus_default;
	c.limits.runs = RUNS;
	unsigned missed = 0;
	bool there = true;
	read_arguments(&a, &c, argc, argv);
	if (a.one)
		there = compare_one(&c, a.number);
	else if (a.requests)
		compare_requests(&c, a.stop);
	else if (a.all)
		compare_all(&c, a.statements, a.stop);
	else if (a.any)
		compare_sample(&c, a.programs, a.seed, a.statements, a.stop);
	else
		missed = run_tests(&c);
	if (a.any)
		print_sum(&c);
	slow_model_free(c.model);
	generator_free(g);
	return c.differ || missed || !there ? EXIT_FAILURE : EXIT_SUCCESS;
}
