/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All small litmus programs, numbered.
 *
 * A class of programs is a hardware, a plan (hosts, locations, connections, threads: a row of
 * `plans`) and a length for each thread. On each place of a thread stands any statement of the
 * thread's vocabulary, which follows from the plan: all that it can do to the locations within its
 * reach. So a program of a class is a number of as many digits as there are statements, and all
 * classes one after the other, those of fewer statements first, number all programs.
 *
 * Most numbers name no program:
 *
 *	- Of programs that differ only in the names of threads, hosts, locations and queue pairs,
 *	  one counts: the one whose digits come first. Values are no digits: each store writes
 *	  another one, its place in the program.
 *	- A program whose outcomes say nothing that a smaller one does not say: one that polls for a
 *	  completion or a message that is never sent, or that begins with a fence.
 *
 * Nothing but this file's tables decides what a number means, so the same number is the same
 * program until they change.
 */
#include "tests/litmus/generator.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define VOCABULARY 128
#define LENGTHS	   64
#define CLASSES	   8192

static const struct machine machines[] = {
	{.store_buffer = 8},
	{.store_buffer = 8, .ddio_off = true},
	{.store_buffer = 8, .domain = MACHINE_MHP},
	{.store_buffer = 8, .domain = MACHINE_MHP, .ddio_off = true, .iio_outside = true},
	{.store_buffer = 8, .domain = MACHINE_WSP},
	{.store_buffer = 8, .ddio_off = true, .ack_late = true},
	{.store_buffer = 8, .domain = MACHINE_MHP, .ack_late = true},
	{.store_buffer = 8, .domain = MACHINE_WSP, .iwarp = true},
	{.store_buffer = 8, .ddio_off = true, .sends_uncovered = true, .torn = MACHINE_TORN_PREFIX},
	{.store_buffer = 8,
	 .lines_any = true,
	 .read_right = true,
	 .read_words = true,
	 .torn = MACHINE_TORN_ANY},
	{.store_buffer = 8, .domain = MACHINE_MHP, .lines_any = true, .ack_late = true},
	{.store_buffer = 0, .torn = MACHINE_TORN_ANY},
	{.store_buffer = 1, .read_words = true},
	{.store_buffer = 8, .atomics_hca = true, .ddio_off = true},
	{.store_buffer = 8, .atomics_hca = true, .domain = MACHINE_MHP},
	{.store_buffer = 8, .ddio_any = true, .commit_visible = true},
	{.store_buffer = 8, .ddio_any = true, .domain = MACHINE_MHP, .iio_outside = true},
	{.store_buffer = 8, .relaxed = true, .ddio_off = true},
	{.store_buffer = 8,
	 .relaxed = true,
	 .domain = MACHINE_MHP,
	 .ack_late = true,
	 .read_words = true,
	 .atomics_hca = true},
};
#define MACHINES (sizeof(machines) / sizeof(machines[0]))

/* Hosts are 0, 1, 2; locations x, y and z. z, where there is one, only takes results. */
struct plan {
	uint8_t hosts, threads, locations, qps;
	uint8_t thread_host[PROGRAM_THREADS], location_host[PROGRAM_LOCATIONS];
	uint8_t qp_host[PROGRAM_QPS][2];
	uint8_t shape; /* enum shape */
};

static const struct plan plans[] = {
	/* CPUs alone */
	{1, 1, 2, 0, {0}, {0, 0}, {{0}}, SHAPE_WORDS},
	{1, 2, 2, 0, {0, 0}, {0, 0}, {{0}}, SHAPE_WORDS},
	{1, 2, 2, 0, {0, 0}, {0, 0}, {{0}}, SHAPE_SAME_LINE},
	{1, 3, 2, 0, {0, 0, 0}, {0, 0}, {{0}}, SHAPE_WORDS},
	/* a client; x is on the server, y on the server or with the client */
	{2, 1, 2, 1, {0}, {1, 0}, {{0, 1}}, SHAPE_WORDS},
	{2, 1, 3, 1, {0}, {1, 1, 0}, {{0, 1}}, SHAPE_WORDS},
	{2, 1, 3, 1, {0}, {1, 1, 0}, {{0, 1}}, SHAPE_SAME_LINE},
	{2, 1, 3, 2, {0}, {1, 1, 0}, {{0, 1}, {0, 1}}, SHAPE_WORDS},
	{2, 1, 2, 2, {0}, {1, 0}, {{0, 1}, {0, 1}}, SHAPE_WORDS},
	/* a client and the server's CPU */
	{2, 2, 2, 1, {0, 1}, {1, 1}, {{0, 1}}, SHAPE_WORDS},
	{2, 2, 2, 1, {0, 1}, {1, 1}, {{0, 1}}, SHAPE_SAME_LINE},
	{2, 2, 2, 1, {0, 1}, {1, 0}, {{0, 1}}, SHAPE_WORDS},
	/* two clients: on two hosts; on one, each with its connection, or both with the same one */
	{3, 2, 2, 2, {0, 2}, {1, 1}, {{0, 1}, {2, 1}}, SHAPE_WORDS},
	{2, 2, 2, 2, {0, 0}, {1, 0}, {{0, 1}, {0, 1}}, SHAPE_WORDS},
	{2, 2, 2, 1, {0, 0}, {1, 0}, {{0, 1}}, SHAPE_WORDS},
	/* three actors: a client and two CPUs of the server, two clients and the server's CPU */
	{2, 3, 2, 1, {0, 1, 1}, {1, 1}, {{0, 1}}, SHAPE_WORDS},
	{3, 3, 2, 2, {0, 2, 1}, {1, 1}, {{0, 1}, {2, 1}}, SHAPE_WORDS},
	/* a client and two servers */
	{3, 2, 2, 2, {0, 1}, {1, 2}, {{0, 1}, {0, 2}}, SHAPE_WORDS},
	/* messages of two lines, and of two words of a line: a client; and the server's CPU */
	{2, 1, 2, 1, {0}, {1, 0}, {{0, 1}}, SHAPE_LONG},
	{2, 2, 2, 1, {0, 1}, {1, 0}, {{0, 1}}, SHAPE_LONG},
	{2, 1, 2, 1, {0}, {1, 0}, {{0, 1}}, SHAPE_WIDE},
	{2, 2, 2, 1, {0, 1}, {1, 0}, {{0, 1}}, SHAPE_WIDE},
	{3, 2, 3, 2, {0, 2}, {1, 0, 2}, {{0, 1}, {2, 1}}, SHAPE_WORDS},
};
#define PLANS (sizeof(plans) / sizeof(plans[0]))

/* --- a thread's vocabulary --- */

struct vocabulary {
	struct statement word[VOCABULARY];
	unsigned n;
};

static void add(struct vocabulary *v, struct statement s)
{
	assert(v->n < VOCABULARY);
	v->word[v->n++] = s;
}

static bool takes_results_only(unsigned location)
{
	return location == 2;
}

static bool has_two_cells(const struct plan *plan)
{
	return plan->shape == SHAPE_LONG || plan->shape == SHAPE_WIDE;
}

/* The location's n-th cell; false: it has no more. */
static bool nth_cell(const struct plan *plan, uint8_t location, unsigned n, uint8_t *cell)
{
	*cell = has_two_cells(plan) ? (uint8_t)(2 * location + n) : location;
	return n < (has_two_cells(plan) ? 2 : 1);
}

/* The location as an operand. */
static uint8_t all_of(const struct plan *plan, uint8_t location)
{
	return has_two_cells(plan) ? WHOLE | location : location;
}

static void add_cpu(struct vocabulary *v, const struct plan *plan, unsigned host)
{
	static const uint8_t writes[] = {OP_STORE, OP_XCHG, OP_FAA, OP_CAS};
	for (uint8_t l = 0, cell; l < plan->locations; l++) {
		if (plan->location_host[l] != host || takes_results_only(l))
			continue;
		for (unsigned n = 0; nth_cell(plan, l, n, &cell); n++) {
			for (unsigned i = 0; i < sizeof(writes); i++)
				add(v, (struct statement){
					       .op = writes[i], .to = cell, .from = NOWHERE});
			add(v, (struct statement){.op = OP_LOAD, .to = NOWHERE, .from = cell});
		}
		add(v, (struct statement){.op = OP_CLWB, .to = all_of(plan, l), .from = NOWHERE});
		add(v,
		    (struct statement){.op = OP_CLFLUSH, .to = all_of(plan, l), .from = NOWHERE});
		if (plan->shape == SHAPE_LONG)
			add(v, (struct statement){
				       .op = OP_CLWB, .to = (uint8_t)(2 * l + 1), .from = NOWHERE});
	}
	add(v, (struct statement){.op = OP_MFENCE, .to = NOWHERE, .from = NOWHERE});
	add(v, (struct statement){.op = OP_SFENCE, .to = NOWHERE, .from = NOWHERE});
	add(v, (struct statement){.op = OP_SET, .to = NOWHERE, .from = NOWHERE});
}

/* Values in the request, and flushes. */
static void add_writes(struct vocabulary *v, uint8_t qp, uint8_t cell, uint8_t all)
{
	struct statement s = {.op = OP_PUT, .to = cell, .from = NOWHERE, .qp = qp};
	add(v, s);
	s.fenced = true;
	add(v, s);
	s.fenced = false;
	s.unsignaled = true;
	add(v, s);
	s.unsignaled = false;
	s.op = OP_PUTIMM;
	add(v, s);
	s.op = OP_AWRITE;
	add(v, s);
	s.to = all;
	s.op = OP_FLUSH;
	add(v, s);
	s.fenced = true;
	add(v, s);
	s.fenced = false;
	s.op = OP_FLUSH_GLOBAL;
	add(v, s);
	s.op = OP_COMMIT;
	add(v, s);
	s.op = OP_COMMITIMM;
	add(v, s);
	s.op = OP_COMMITPUT;
	add(v, s);
}

/* What moves data between a location here and one there: all of them, and one cell. */
static void add_moves(struct vocabulary *v, uint8_t qp, const uint8_t here[2],
		      const uint8_t there[2], bool results_only)
{
	struct statement s = {.op = OP_GET, .to = here[0], .from = there[0], .qp = qp};
	add(v, s);
	s.fenced = true;
	add(v, s);
	s = (struct statement){.op = OP_REMOTE_FAA, .to = here[1], .from = there[1], .qp = qp};
	add(v, s);
	s.op = OP_REMOTE_CAS;
	add(v, s);
	if (results_only)
		return;
	s = (struct statement){.op = OP_PUT, .to = there[0], .from = here[0], .qp = qp};
	add(v, s);
	s.op = OP_PUTIMM;
	add(v, s);
	s = (struct statement){.op = OP_AWRITE, .to = there[1], .from = here[1], .qp = qp};
	add(v, s);
}

/* What has to do with a location over there. */
static void add_remote(struct vocabulary *v, const struct plan *plan, unsigned host, uint8_t qp,
		       uint8_t location)
{
	uint8_t there[2] = {all_of(plan, location)}, here[2];
	for (unsigned n = 0; nth_cell(plan, location, n, &there[1]); n++)
		if (!n)
			add_writes(v, qp, there[1], there[0]);
		else
			add(v, (struct statement){
				       .op = OP_PUT, .to = there[1], .from = NOWHERE, .qp = qp});
	if (plan->shape == SHAPE_LONG) /* a part of it */
		add(v, (struct statement){.op = OP_FLUSH,
					  .to = (uint8_t)(2 * location + 1),
					  .from = NOWHERE,
					  .qp = qp});
	nth_cell(plan, location, 0, &there[1]);
	for (uint8_t l = 0; l < plan->locations; l++) {
		if (plan->location_host[l] != host)
			continue;
		here[0] = all_of(plan, l);
		nth_cell(plan, l, 0, &here[1]);
		add_moves(v, qp, here, there, takes_results_only(l));
	}
}

static void add_messages(struct vocabulary *v, const struct plan *plan, unsigned host, uint8_t qp)
{
	struct statement s = {.op = OP_SEND, .to = NOWHERE, .from = NOWHERE, .qp = qp};
	add(v, s);
	s.fenced = true;
	add(v, s);
	add(v, (struct statement){.op = OP_RECV, .to = NOWHERE, .from = NOWHERE, .qp = qp});
	for (uint8_t l = 0; l < plan->locations; l++) {
		uint8_t all = all_of(plan, l);
		if (plan->location_host[l] != host || takes_results_only(l))
			continue;
		add(v, (struct statement){.op = OP_SEND, .to = NOWHERE, .from = all, .qp = qp});
		add(v, (struct statement){.op = OP_RECV, .to = all, .from = NOWHERE, .qp = qp});
	}
}

static void add_qp(struct vocabulary *v, const struct plan *plan, unsigned host, uint8_t qp)
{
	unsigned side = plan->qp_host[qp][0] != host, peer = plan->qp_host[qp][!side];
	bool has_peer = false;
	if (plan->qp_host[qp][side] != host)
		return;
	for (uint8_t l = 0; l < plan->locations; l++)
		if (plan->location_host[l] == peer && !takes_results_only(l))
			add_remote(v, plan, host, qp, l);
	for (unsigned t = 0; t < plan->threads; t++)
		has_peer |= plan->thread_host[t] == peer;
	add(v, (struct statement){.op = OP_POLL, .to = NOWHERE, .from = NOWHERE, .qp = qp});
	if (has_peer)
		add_messages(v, plan, host, qp);
}

static void make_vocabulary(struct vocabulary *v, const struct plan *plan, unsigned thread)
{
	v->n = 0;
	add_cpu(v, plan, plan->thread_host[thread]);
	for (uint8_t q = 0; q < plan->qps; q++)
		add_qp(v, plan, plan->thread_host[thread], q);
}

/* --- programs that differ only in names --- */

struct names {
	uint8_t thread[PROGRAM_THREADS], host[PROGRAM_HOSTS], location[PROGRAM_LOCATIONS],
		qp[PROGRAM_QPS];
};

/* A program's digits: words of its threads' vocabularies. */
struct digits {
	uint8_t length[PROGRAM_THREADS];
	uint8_t digit[PROGRAM_THREADS][PROGRAM_STATEMENTS];
};

static void swap(uint8_t *a, uint8_t *b)
{
	uint8_t was = *a;
	*a = *b;
	*b = was;
}

/* False: it was the last one; the first one is next. */
static bool next_permutation(uint8_t *a, unsigned n)
{
	unsigned i = n, j = n;
	while (i > 1 && a[i - 2] >= a[i - 1])
		i--;
	if (i >= 2) {
		while (a[j - 1] <= a[i - 2])
			j--;
		swap(&a[i - 2], &a[j - 1]);
	}
	for (unsigned low = i >= 2 ? i - 1 : 0, high = n; low + 1 < high; low++, high--)
		swap(&a[low], &a[high - 1]);
	return i >= 2;
}

/* Is the plan the same with the new names? An end of a queue pair has no name. Locations of two
 * cells differ in what they hold at first. */
static bool is_symmetric(const struct plan *plan, const struct names *to)
{
	for (unsigned t = 0; t < plan->threads; t++)
		if (plan->thread_host[to->thread[t]] != to->host[plan->thread_host[t]])
			return false;
	for (unsigned l = 0; l < plan->locations; l++)
		if (plan->location_host[to->location[l]] != to->host[plan->location_host[l]] ||
		    takes_results_only(to->location[l]) != takes_results_only(l) ||
		    (has_two_cells(plan) && to->location[l] != l))
			return false;
	for (unsigned q = 0; q < plan->qps; q++) {
		const uint8_t *renamed = plan->qp_host[to->qp[q]];
		unsigned a = to->host[plan->qp_host[q][0]], b = to->host[plan->qp_host[q][1]];
		if (!(renamed[0] == a && renamed[1] == b) && !(renamed[0] == b && renamed[1] == a))
			return false;
	}
	return true;
}

/* Where locations have two cells, none gets another name. */
static uint8_t rename_operand(const struct plan *plan, uint8_t operand, const struct names *to)
{
	return operand == NOWHERE || has_two_cells(plan) ? operand : to->location[operand];
}

static struct statement rename_statement(const struct plan *plan, const struct statement *s,
					 const struct names *to)
{
	struct statement renamed = *s;
	renamed.to = rename_operand(plan, s->to, to);
	renamed.from = rename_operand(plan, s->from, to);
	if (statement_is_request(s) || s->op == OP_POLL || s->op == OP_RECV)
		renamed.qp = to->qp[s->qp];
	return renamed;
}

static uint8_t digit_of(const struct vocabulary *v, const struct statement *s)
{
	uint8_t i = 0;
	while (i < v->n && memcmp(&v->word[i], s, sizeof(*s)))
		i++;
	assert(i < v->n); /* threads whose names can be exchanged have the same words */
	return i;
}

static void rename_digits(const struct plan *plan, const struct vocabulary *v,
			  const struct digits *d, const struct names *to, struct digits *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned t = 0; t < plan->threads; t++) {
		unsigned renamed = to->thread[t];
		out->length[renamed] = d->length[t];
		for (unsigned i = 0; i < d->length[t]; i++) {
			struct statement s = rename_statement(plan, &v[t].word[d->digit[t][i]], to);
			out->digit[renamed][i] = digit_of(&v[renamed], &s);
		}
	}
}

/* Does the program come first of all that differ only in names? */
static bool is_first(const struct plan *plan, const struct vocabulary *v, const struct digits *d)
{
	struct names to = {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1}};
	struct digits other;
	do {
		do {
			do {
				do {
					if (!is_symmetric(plan, &to))
						continue;
					rename_digits(plan, v, d, &to, &other);
					if (memcmp(&other, d, sizeof(other)) < 0)
						return false;
				} while (next_permutation(to.qp, plan->qps));
			} while (next_permutation(to.location, plan->locations));
		} while (next_permutation(to.host, plan->hosts));
	} while (next_permutation(to.thread, plan->threads));
	return true;
}

/* --- programs that say nothing --- */

static unsigned end_of(const struct program *p, unsigned thread, const struct statement *s)
{
	return 2u * s->qp + (p->qp_host[s->qp][0] != p->thread_host[thread]);
}

/* Each message has a receive and the other way round; each poll has a completion. */
static bool queues_match(const struct program *p)
{
	int completions[2 * PROGRAM_QPS] = {0}, messages[2 * PROGRAM_QPS] = {0};
	for (unsigned t = 0; t < p->threads; t++) {
		for (unsigned i = 0; i < p->length[t]; i++) {
			const struct statement *s = &p->statement[t][i];
			unsigned e = end_of(p, t, s);
			completions[e] += statement_is_request(s) && !s->unsignaled;
			completions[e] -= s->op == OP_POLL;
			messages[e] += statement_is_request(s) && statement_is_message(s);
			messages[e ^ 1] -= s->op == OP_RECV;
			if (p->threads == 1 && completions[e] < 0)
				return false;
		}
	}
	for (unsigned e = 0; e < 2 * PROGRAM_QPS; e++)
		if (completions[e] < 0 || messages[e])
			return false;
	return true;
}

static bool writes(const struct statement *s)
{
	switch (s->op) {
	case OP_LOAD:
	case OP_SET:
	case OP_MFENCE:
	case OP_SFENCE:
	case OP_CLWB:
	case OP_CLFLUSH:
	case OP_FLUSH:
	case OP_FLUSH_GLOBAL:
	case OP_COMMIT:
	case OP_COMMITIMM:
	case OP_POLL:
	case OP_RECV:
	case OP_GET: /* of what has been written */
		return false;
	default:
		return true;
	}
}

static bool says_something(const struct program *p)
{
	bool written = false;
	for (unsigned t = 0; t < p->threads; t++) {
		uint8_t first = p->statement[t][0].op;
		if (first == OP_SET || first == OP_MFENCE || first == OP_SFENCE)
			return false;
		for (unsigned i = 0; i < p->length[t]; i++)
			written |= writes(&p->statement[t][i]);
	}
	return written && queues_match(p);
}

/* --- from digits to a program --- */

/* Each statement has its own value and register. */
static void fill(const struct plan *plan, const struct machine *machine, const struct vocabulary *v,
		 const struct digits *d, struct program *p)
{
	uint8_t value = 0;
	memset(p, 0, sizeof(*p));
	p->machine = *machine;
	p->hosts = plan->hosts;
	p->threads = plan->threads;
	p->locations = plan->locations;
	p->qps = plan->qps;
	p->shape = plan->shape;
	memcpy(p->location_host, plan->location_host, sizeof(p->location_host));
	memcpy(p->qp_host, plan->qp_host, sizeof(p->qp_host));
	memcpy(p->thread_host, plan->thread_host, sizeof(p->thread_host));
	for (unsigned t = 0; t < plan->threads; t++) {
		uint8_t reg = 0;
		p->length[t] = d->length[t];
		for (unsigned i = 0; i < d->length[t]; i++) {
			struct statement *s = &p->statement[t][i];
			*s = v[t].word[d->digit[t][i]];
			s->value = ++value;
			if (s->op == OP_FAA || s->op == OP_REMOTE_FAA)
				s->value = 16;
			if (statement_sets_register(s))
				s->reg = reg++;
		}
	}
}

/* --- classes --- */

struct length {
	uint8_t of[PROGRAM_THREADS];
};

/* All lengths of so many threads that add up to so many statements. */
static unsigned all_lengths(unsigned threads, unsigned statements, struct length out[LENGTHS])
{
	unsigned n = 0;
	for (uint8_t a = 1; a <= PROGRAM_STATEMENTS; a++)
		for (uint8_t b = threads > 1; b <= (threads > 1 ? PROGRAM_STATEMENTS : 0); b++)
			for (uint8_t c = threads > 2; c <= (threads > 2 ? PROGRAM_STATEMENTS : 0);
			     c++)
				if (a + b + c == (int)statements)
					out[n++] = (struct length){{a, b, c}};
	assert(n <= LENGTHS);
	return n;
}

struct class
{
	const struct machine *machine;
	const struct plan *plan;
	struct length length;
	uint64_t first, numbers;
};

struct generator {
	struct vocabulary words[PLANS][PROGRAM_THREADS];
	struct class class[CLASSES];
	unsigned classes;
	unsigned upto[GENERATOR_BOUND + 1]; /* classes of so many statements, and those before */
};

static void add_classes(struct generator *g, unsigned plan, unsigned statements)
{
	struct length lengths[LENGTHS];
	unsigned n = all_lengths(plans[plan].threads, statements, lengths);
	for (unsigned l = 0; l < n; l++) {
		uint64_t numbers = 1;
		for (unsigned t = 0; t < plans[plan].threads; t++)
			for (unsigned i = 0; i < lengths[l].of[t]; i++)
				numbers *= g->words[plan][t].n;
		for (unsigned m = 0; m < MACHINES; m++) {
			const struct class *before = g->classes ? &g->class[g->classes - 1] : NULL;
			assert(g->classes < CLASSES);
			g->class[g->classes] = (struct class){
				.machine = &machines[m],
				.plan = &plans[plan],
				.length = lengths[l],
				.first = before ? before->first + before->numbers : 0,
				.numbers = numbers};
			g->classes++;
		}
	}
}

struct generator *generator_new(void)
{
	struct generator *g = calloc(1, sizeof(*g));
	if (!g)
		abort();
	for (unsigned p = 0; p < PLANS; p++)
		for (unsigned t = 0; t < plans[p].threads; t++)
			make_vocabulary(&g->words[p][t], &plans[p], t);
	for (unsigned n = 1; n <= GENERATOR_BOUND; n++) {
		for (unsigned p = 0; p < PLANS; p++)
			add_classes(g, p, n);
		g->upto[n] = g->classes;
	}
	return g;
}

void generator_free(struct generator *g)
{
	free(g);
}

uint64_t generator_numbers(const struct generator *g, unsigned statements)
{
	assert(statements >= 1 && statements <= GENERATOR_BOUND);
	const struct class *last = &g->class[g->upto[statements] - 1];
	return last->first + last->numbers;
}

static bool program_of(const struct generator *g, const struct class *class, uint64_t number,
		       struct program *p)
{
	const struct vocabulary *v = g->words[class->plan - plans];
	struct digits d = {{0}, {{0}}};
	for (unsigned t = 0; t < class->plan->threads; t++) {
		d.length[t] = class->length.of[t];
		for (unsigned i = 0; i < d.length[t]; i++) {
			d.digit[t][i] = (uint8_t)(number % v[t].n);
			number /= v[t].n;
		}
	}
	fill(class->plan, class->machine, v, &d, p);
	return says_something(p) && is_first(class->plan, v, &d);
}

bool generator_program(const struct generator *g, uint64_t number, struct program *p)
{
	unsigned low = 0, high = g->classes;
	while (high - low > 1) {
		unsigned mid = (low + high) / 2;
		if (g->class[mid].first <= number)
			low = mid;
		else
			high = mid;
	}
	assert(number < g->class[low].first + g->class[low].numbers);
	return program_of(g, &g->class[low], number - g->class[low].first, p);
}

/* --- drawing --- */

/* splitmix64 */
static uint64_t draw(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Has the statement to do with the one before it in its thread: by a location, a queue pair, or as
 * a fence? */
static bool is_related(const struct statement *s, const struct statement *before)
{
	bool fence = s->to == NOWHERE && s->from == NOWHERE && s->op != OP_SEND;
	bool to = s->to != NOWHERE && (s->to == before->to || s->to == before->from);
	bool from = s->from != NOWHERE && (s->from == before->to || s->from == before->from);
	return fence || to || from;
}

/* Statements of a thread that have to do with each other are drawn more often. */
static unsigned draw_word(const struct vocabulary *v, const struct statement *before,
			  uint64_t *seed)
{
	unsigned word = (unsigned)(draw(seed) % v->n);
	for (unsigned i = 0; before && i < 2 && !is_related(&v->word[word], before); i++)
		word = (unsigned)(draw(seed) % v->n);
	return word;
}

static uint64_t draw_number(const struct generator *g, const struct class *class, uint64_t *seed)
{
	const struct vocabulary *v = g->words[class->plan - plans];
	uint64_t number = 0, factor = 1;
	for (unsigned t = 0; t < class->plan->threads; t++) {
		const struct statement *before = NULL;
		for (unsigned i = 0; i < class->length.of[t]; i++) {
			unsigned word = draw_word(&v[t], before, seed);
			before = &v[t].word[word];
			number += word * factor;
			factor *= v[t].n;
		}
	}
	assert(number < class->numbers);
	return number;
}

uint64_t generator_draw(const struct generator *g, uint64_t *seed, unsigned statements)
{
	struct program p;
	for (;;) {
		const struct class *class = &g->class[draw(seed) % g->upto[statements]];
		/* A class may have few programs, or none. */
		for (unsigned i = 0; i < 1000; i++) {
			uint64_t number = draw_number(g, class, seed);
			if (program_of(g, class, number, &p))
				return class->first + number;
		}
	}
}
