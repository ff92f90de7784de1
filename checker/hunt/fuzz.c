/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fuzzing loop.
 *
 * Work is done in rounds of items. An item takes an input of the corpus, or a new one,
 * perhaps changes its workload, and then runs that one workload many times with
 * changed records: opening a workload costs as much as some ten runs, and an explorer
 * that stays open skips power failures that it has met before. An input with a feature
 * (features.h) that is not yet known is kept; the item goes on from it, and at the end
 * of the round it joins the corpus.
 *
 * What an item does follows from its number, the seed, and the corpus as it was when
 * the round began, and results are taken over in the order of the items. So they do
 * not depend on how many processes share the work, nor on their speed. The processes
 * start anew in each round and see the corpus as it then is; what they find comes back
 * through shared memory.
 */
#include "checker/hunt/fuzz.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "checker/hunt/features.h"
#include "checker/campaign/driver.h"
#include "checker/explore/visited.h"
#include "checker/trace/shrink.h"
#include "checker/trace/wrong.h"
#include "core/array.h"
#include "core/clock.h"
#include "faultinject/random_source.h"

#define ITEMS	      32 /* in a round */
#define ITEM_RUNS     64 /* of one workload */
#define ITEM_SEEDS    8	 /* inputs of an earlier session, instead */
#define ITEM_KEPT     64 /* inputs with new features */
#define ITEM_FEATURES 4096
#define ITEM_BROKEN   16
#define POOL	      (ITEM_KEPT + 1)

static_assert(FUZZ_INPUT_MAX <= UINT8_MAX, "the length of an input is a byte");

static const struct explore_limits item_limits = {.images_per_point = 64,
						  .nested_every = 8,
						  .states = 8000,
						  .tree_bytes = TREE_BYTES - SHARED_BYTES,
						  .share_tree = true};

struct item_result {
	bool done;
	int error;
	char why[WORLDS_WHY];
	struct explore_counts counts;
	uint64_t broken[TM_CONTRACTS];
	unsigned kept, features, breaks;
	struct {
		struct fuzz_input input;
		unsigned features; /* its own are the last before this */
	} keep[ITEM_KEPT];
	uint64_t feature[ITEM_FEATURES];
	struct fuzz_break found[ITEM_BROKEN];
};

/* What the processes of a round share. */
struct fuzz_shared {
	struct item_result result[ITEMS];
};

/* An item at work. Each process has one, and goes on with it. */
struct fuzz_item {
	const struct fuzz *f;
	const struct plan *plan;
	struct explorer ex;
	struct item_result *result;
	struct visited *features, *sorts; /* of this item */
	struct byte_source source;
	struct fuzz_input pool[POOL];
	unsigned pooled;
	uint64_t random;
};

/* --- inputs --- */

static bool is_long(const struct fuzz_input *input)
{
	return input->n > FUZZ_SHORT_MAX;
}

static const uint8_t *goings(const struct fuzz_input *input)
{
	return is_long(input) ? input->bytes + FUZZ_SHORT_MAX : NULL;
}

/* Number of records; in the longer form, up to the last that is not empty. */
static unsigned count_records(const struct fuzz_input *input)
{
	size_t n = is_long(input) ? FUZZ_SHORT_MAX : input->n;
	while (is_long(input) && n > WORKLOAD_BYTES && !input->bytes[n - 1])
		n--;
	if (n <= WORKLOAD_BYTES)
		return 0;
	n -= WORKLOAD_BYTES;
	return (unsigned)(is_long(input) ? (n + RECORD_BYTES - 1) / RECORD_BYTES
					 : n / RECORD_BYTES);
}

static void set_records(struct fuzz_input *input, unsigned n)
{
	size_t end = WORKLOAD_BYTES + (size_t)n * RECORD_BYTES;
	assert(n <= MAX_RECORDS);
	if (is_long(input))
		memset(input->bytes + end, 0, FUZZ_SHORT_MAX - end);
	else
		input->n = (uint8_t)end;
}

void fuzz_start(struct byte_source *b, const struct fuzz_input *input, bool power)
{
	const uint8_t *records = input->bytes + WORKLOAD_BYTES;
	assert(input->n <= FUZZ_INPUT_MAX && count_records(input) <= MAX_RECORDS);
	bytes_start(b, records, (size_t)count_records(input) * RECORD_BYTES, power);
	if (is_long(input))
		bytes_extend(b, input->bytes + FUZZ_SHORT_MAX + GOING_BYTES);
}

bool fuzz_same_workload(const struct fuzz_input *a, const struct fuzz_input *b)
{
	static const uint8_t none[GOING_BYTES];
	const uint8_t *of_a = goings(a), *of_b = goings(b);
	return !memcmp(a->bytes, b->bytes, WORKLOAD_BYTES) &&
	       !memcmp(of_a ? of_a : none, of_b ? of_b : none, GOING_BYTES);
}

int fuzz_setup(const struct setup *base, const struct fuzz_input *input, struct setup *s)
{
	struct workload w = {0};
	int error = workload_from_bytes(&w, base->store, input->bytes, input->n, goings(input));
	memset(s, 0, sizeof(*s));
	workload_limit(&w, base->store);
	if (!error)
		error = setup_like(s, base, &w);
	workload_free(&w);
	return error;
}

static unsigned draw(uint64_t *random, unsigned n)
{
	assert(n > 0);
	return (unsigned)(random_next(random) % n);
}

/* Small numbers are drawn more often. */
static uint8_t draw_gap(uint64_t *random)
{
	static const unsigned below[] = {2, 8, 32, 256};
	return (uint8_t)draw(random, below[draw(random, 4)]);
}

/* Where deviations are worth most: clients that stop at a post, late packets and landings. */
static uint8_t draw_class(uint64_t *random)
{
	static const uint8_t steps[] = {STEP_POST,  STEP_POST,	STEP_POST, STEP_POLL,  STEP_POLL,
					STEP_STORE, STEP_STORE, STEP_LOAD, STEP_FLUSH, STEP_FENCE};
	static const uint8_t class_of[] = {
#define X(name, record, ...) record,
		CHOICES(X)
#undef X
	};
	unsigned weights = sizeof(steps), kind = 0;
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		weights += choice_traits[k].fuzzed;
	unsigned at = draw(random, weights);
	if (at < sizeof(steps))
		return steps[at] == STEP_POST ? RECORD_POST : (uint8_t)(RECORD_STEP + steps[at]);
	for (at -= sizeof(steps); at >= choice_traits[kind].fuzzed; kind++)
		at -= choice_traits[kind].fuzzed;
	assert(kind < CHOICE_KINDS && class_of[kind] != NO_RECORD);
	return class_of[kind];
}

static void draw_record(uint64_t *random, uint8_t record[RECORD_BYTES])
{
	uint8_t whose = draw(random, 2) ? 0 : (uint8_t)draw(random, 4);
	record[0] = record_what(draw_class(random)) | (uint8_t)(whose << 4);
	/* In the short form the bit has no meaning. */
	if (!draw(random, 16))
		record[0] |= RECORD_DIES;
	record[1] = draw_gap(random);
	record[2] = (uint8_t)draw(random, 256);
}

static void change_record(uint64_t *random, uint8_t record[RECORD_BYTES])
{
	switch (draw(random, 5)) {
	case 0:
		record[1] = draw_gap(random);
		break;
	case 1:
		record[1] = (uint8_t)(record[1] + (draw(random, 2) ? 1 : -1));
		break;
	case 2:
		record[2] = (uint8_t)draw(random, 256);
		break;
	case 3:
		record[0] = (uint8_t)((record[0] & 0xcf) | draw(random, 4) << 4);
		break;
	default:
		draw_record(random, record);
	}
}

/* One change of the records; `other` lends some. */
static void change_records(uint64_t *random, struct fuzz_input *input,
			   const struct fuzz_input *other)
{
	uint8_t *records = input->bytes + WORKLOAD_BYTES;
	unsigned n = count_records(input), theirs = count_records(other);
	unsigned at = n ? draw(random, n) : 0, what = draw(random, 8);
	if (what < 4 && n) {
		change_record(random, records + at * RECORD_BYTES);
	} else if (what == 4 && n) {
		n--;
		memmove(records + at * RECORD_BYTES, records + (at + 1) * RECORD_BYTES,
			(n - at) * RECORD_BYTES);
	} else if (n < MAX_RECORDS) {
		if (what == 5 && theirs)
			memcpy(records + n * RECORD_BYTES,
			       other->bytes + WORKLOAD_BYTES + draw(random, theirs) * RECORD_BYTES,
			       RECORD_BYTES);
		else
			draw_record(random, records + n * RECORD_BYTES);
		n++;
	}
	set_records(input, n);
}

static uint8_t draw_op(uint64_t *random)
{
	uint8_t op = (uint8_t)draw(random, 256);
	/* Most lengths are the first one: long values cost time. */
	return draw(random, 4) ? op & 0x3f : op;
}

static void draw_workload(uint64_t *random, struct fuzz_input *input)
{
	unsigned ops = 1 + draw(random, draw(random, 2) ? 4 : WORKLOAD_BYTES - 1);
	memset(input, 0, sizeof(*input));
	input->n = WORKLOAD_BYTES;
	input->bytes[0] = (uint8_t)(draw(random, 8) |
				    (draw(random, 3) ? 0 : draw(random, 32) << 3));
	for (unsigned i = 1; i <= ops; i++)
		input->bytes[i] = draw_op(random);
	if (draw(random, 3))
		return;
	/* The longer form. Lives are the explorer's here. */
	input->n = FUZZ_INPUT_MAX;
	for (unsigned i = 0; i < ops; i++)
		if (!draw(random, 4))
			input->bytes[FUZZ_SHORT_MAX + i] = (uint8_t)(1 + draw(random, 3));
}

static void change_workload(uint64_t *random, struct fuzz_input *input)
{
	unsigned at = 1 + draw(random, WORKLOAD_BYTES - 1),
		 to = 1 + draw(random, WORKLOAD_BYTES - 1);
	uint8_t op = input->bytes[at];
	if (is_long(input) && !draw(random, 3)) {
		input->bytes[FUZZ_SHORT_MAX + at - 1] = (uint8_t)draw(random, 4);
		return;
	}
	switch (draw(random, 5)) {
	case 0:
		input->bytes[0] ^= (uint8_t)(1u << draw(random, 8));
		break;
	case 1:
		input->bytes[at] ^= (uint8_t)(1u << draw(random, 8));
		break;
	case 2: /* an operation more or less */
		input->bytes[at] = op & 7 ? 0 : draw_op(random);
		break;
	case 3:
		input->bytes[at] = input->bytes[to];
		input->bytes[to] = op;
		break;
	default:
		input->bytes[at] = draw_op(random);
	}
}

/* --- an item --- */

static void note_feature(void *arg, uint64_t feature)
{
	struct fuzz_item *item = arg;
	struct item_result *r = item->result;
	bool is_new;
	if (visited_has(item->f->known_features, feature) || r->features == ITEM_FEATURES)
		return;
	visited_add(item->features, feature, &is_new);
	if (is_new)
		r->feature[r->features++] = feature;
}

static void image_done(void *arg, const struct explorer *ex, unsigned machine)
{
	features_image(arg, ex, machine);
}

/* Kinds of deviations, and regions of lost lines: what fails in these is tried once. */
static uint64_t sort_of(const struct setup *s, unsigned contract, const struct deviations *path)
{
	uint64_t kinds = 0, lines = 0;
	for (unsigned i = 0; i < path->n; i++) {
		const struct deviation *d = &path->d[i];
		/* The last kind of steps shares a number; the others keep the numbers that they
		 * always had. */
		unsigned step = CHOICE_KINDS + d->op.kind * STEP_LOCK + d->a;
		if (d->kind == CHOICE_LINE)
			lines |= 1ull << (setup_region(s, (uint64_t)d->a * LINE) * 2 +
					  (d->answer + 1 == d->n)) %
						 64;
		else
			kinds |= 1ull << (d->kind == CHOICE_STEP ? step : d->kind) % 64;
	}
	return kinds * 0x9e3779b97f4a7c15u ^ lines * 0xd6e8feb86659fd93u ^ contract;
}

static void note_breaks(struct fuzz_item *item, const struct fuzz_input *input)
{
	struct explorer *ex = &item->ex;
	struct item_result *r = item->result;
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		struct failure *failure = &ex->failure[c];
		bool is_new;
		if (!failure->found)
			continue;
		failure->found = false; /* the next run may break it in another way */
		uint64_t sort = sort_of(ex->setup, c, &failure->deviations);
		if (!(item->f->options.wanted & TM_BIT(c)) ||
		    visited_has(item->f->known_sorts, sort) || r->breaks == ITEM_BROKEN)
			continue;
		visited_add(item->sorts, sort, &is_new);
		if (is_new)
			r->found[r->breaks++] = (struct fuzz_break){c, sort, *input};
	}
}

/* False: the tree of recoveries was wrong, and r->error and r->why say so. */
static bool run_input(struct fuzz_item *item, const struct fuzz_input *input)
{
	struct explorer *ex = &item->ex;
	struct features features = {.found = note_feature, .arg = item};
	struct item_result *r = item->result;
	unsigned before = r->features;
	const uint64_t repeated = ex->repeated;
	ex->image_done = image_done;
	ex->image_done_arg = &features;
	fuzz_start(&item->source, input, false);
	if (explore_run(ex, &item->source.source, &item->source.taken)) {
		r->error = wrong_save(ex->setup, &ex->wrong.deviations, ex->wrong.text, r->why,
				      sizeof(r->why));
		return false;
	}
	if (ex->repeated != repeated)
		return true; /* it must not have features that it did not have the first time */
	features_history(&features, ex->worlds.history);
	features_end(&features);
	assert(before <= r->features && r->features <= ITEM_FEATURES);
	note_breaks(item, input);
	if (r->features == before)
		return true;
	if (item->pooled < POOL)
		item->pool[item->pooled++] = *input;
	if (r->kept == ITEM_KEPT)
		r->features = before;
	else {
		r->keep[r->kept].input = *input;
		r->keep[r->kept++].features = r->features;
	}
	return true;
}

static int open_input(struct fuzz_item *item, const struct fuzz_input *input, struct setup *s)
{
	struct item_result *r = item->result;
	r->error = fuzz_setup(item->f->base, input, s);
	if (!r->error)
		r->error = explore_open(&item->ex, s, &item_limits);
	if (!r->error)
		return 0;
	snprintf(r->why, sizeof(r->why), "%s",
		 r->error == -EIO ? item->ex.why : strerror(-r->error));
	setup_free(s);
	return r->error;
}

static void close_input(struct fuzz_item *item, struct setup *s)
{
	struct item_result *r = item->result;
	explore_counts_add(&r->counts, &item->ex.counts);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		r->broken[c] += item->ex.broken[c];
	explore_close(&item->ex);
	setup_free(s);
}

/* Inputs as they are. */
static void run_seeds(struct fuzz_item *item, unsigned first, unsigned n)
{
	struct setup s;
	bool good = true;
	for (unsigned i = first; i < first + n && good; i++) {
		if (open_input(item, &item->f->seed[i], &s))
			return;
		good = run_input(item, &item->f->seed[i]);
		close_input(item, &s);
	}
}

static void draw_start(struct fuzz_item *item, struct fuzz_input *input)
{
	const struct fuzz *f = item->f;
	uint64_t *random = &item->random;
	if (!f->inputs || !draw(random, 8)) {
		draw_workload(random, input);
		return;
	}
	/* Later inputs have been changed less often. */
	unsigned a = draw(random, f->inputs), b = draw(random, f->inputs);
	*input = f->corpus[a > b ? a : b];
	for (unsigned changes = draw(random, 3); changes; changes--)
		change_workload(random, input);
}

static void run_item(struct fuzz_item *item, unsigned runs)
{
	uint64_t *random = &item->random;
	struct fuzz_input input;
	struct setup s;
	draw_start(item, &input);
	if (input.n < WORKLOAD_BYTES) {
		memset(input.bytes + input.n, 0, WORKLOAD_BYTES - (size_t)input.n);
		input.n = WORKLOAD_BYTES;
	}
	if (open_input(item, &input, &s))
		return;
	assert(!item->pooled); /* nothing of another item's workload */
	item->pool[item->pooled++] = input;
	bool good = true;
	for (unsigned run = 0; good && run < runs && explore_more(&item->ex); run++) {
		struct fuzz_input next = item->pool[draw(random, item->pooled)];
		const struct fuzz_input *other = &item->pool[draw(random, item->pooled)];
		if (item->f->inputs)
			other = &item->f->corpus[draw(random, item->f->inputs)];
		for (unsigned changes = run ? 1 + draw(random, 3) : 0; changes; changes--)
			change_records(random, &next, other);
		good = run_input(item, &next);
	}
	close_input(item, &s);
}

/* --- a round --- */

/* Runs of the i-th item of the round that is about to begin. Items that run seeds come first. */
struct plan {
	unsigned items, seed_items, seeds;
	uint64_t runs;
};

static struct plan plan_round(const struct fuzz *f)
{
	struct plan p = {.runs = f->options.runs - f->counts.runs - f->counts.starts};
	p.seeds = f->seeds - f->seeds_done;
	if (p.seeds > ITEMS / 2 * ITEM_SEEDS)
		p.seeds = ITEMS / 2 *
			  ITEM_SEEDS; /* a large corpus must not take all the time there is */
	if (p.seeds > p.runs)
		p.seeds = (unsigned)p.runs;
	p.seed_items = (p.seeds + ITEM_SEEDS - 1) / ITEM_SEEDS;
	p.items = p.seed_items;
	for (uint64_t left = p.runs - p.seeds; left && p.items < ITEMS; p.items++)
		left -= left < ITEM_RUNS ? left : ITEM_RUNS;
	assert(p.items <= ITEMS && p.seeds <= p.runs); /* each has a place for its result */
	return p;
}

static bool in_time(const struct fuzz *f)
{
	const struct driver_bounds *b = f->options.how.bounds;
	return !b || (!(b->stop && *b->stop) && (!b->until || clock_seconds() < b->until));
}

static void do_item(struct fuzz_item *item, unsigned i)
{
	const struct fuzz *f = item->f;
	const struct plan *p = item->plan;
	item->result = &f->shared->result[i];
	visited_clear(item->features);
	visited_clear(item->sorts);
	item->pooled = 0;
	item->random = f->options.seed * 1000003 + f->items + i;
	random_next(&item->random);
	if (i < p->seed_items) {
		unsigned first = i * ITEM_SEEDS, n = p->seeds - first;
		assert(first < p->seeds && f->seeds_done + p->seeds <= f->seeds);
		run_seeds(item, f->seeds_done + first, n < ITEM_SEEDS ? n : ITEM_SEEDS);
	} else {
		uint64_t before = p->seeds + (uint64_t)(i - p->seed_items) * ITEM_RUNS;
		assert(before < p->runs);
		run_item(item,
			 p->runs - before < ITEM_RUNS ? (unsigned)(p->runs - before) : ITEM_RUNS);
	}
	item->result->done = true;
}

static void work(void *arg, unsigned unit, void *nothing)
{
	struct fuzz_item *item = arg;
	(void)nothing;
	if (in_time(item->f))
		do_item(item, unit);
}

static int append(struct fuzz_input **list, unsigned *n, size_t *room,
		  const struct fuzz_input *input)
{
	if (!ARRAY_RESERVE(*list, *n, 1, *room))
		return -ENOMEM;
	(*list)[(*n)++] = *input;
	return 0;
}

/* Another item of the round may have found the same. */
static int merge(struct fuzz *f, const struct item_result *r)
{
	unsigned feature = 0;
	bool is_new;
	explore_counts_add(&f->counts, &r->counts);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		f->broken[c] += r->broken[c];
	for (unsigned k = 0; k < r->kept; k++) {
		uint64_t before = f->features;
		/* Each kept input has the features from the last one's on. */
		assert(feature <= r->keep[k].features && r->keep[k].features <= r->features);
		for (; feature < r->keep[k].features; feature++) {
			visited_add(f->known_features, r->feature[feature], &is_new);
			f->features += is_new;
		}
		if (f->features != before &&
		    append(&f->corpus, &f->inputs, &f->corpus_room, &r->keep[k].input))
			return -ENOMEM;
	}
	for (unsigned b = 0; b < r->breaks; b++) {
		visited_add(f->known_sorts, r->found[b].sort, &is_new);
		if (!is_new)
			continue;
		if (!ARRAY_RESERVE(f->found, f->founds, 1, f->founds_room))
			return -ENOMEM;
		f->found[f->founds++] = r->found[b];
	}
	return 0;
}

int fuzz_round(struct fuzz *f)
{
	struct plan p = plan_round(f);
	const struct driver_bounds *b = f->options.how.bounds, stop = {.stop = b ? b->stop : NULL};
	struct driver driver = {.units = p.items,
				.how = {.jobs = f->options.how.jobs, .bounds = &stop},
				.work = work,
				.arg = f->item};
	f->item->plan = &p;
	memset(f->shared->result, 0, sizeof(f->shared->result));
	f->founds = 0;
	int error = driver_run(&driver);
	if (error == -EINTR)
		error = 0; /* items that were done count */
	for (unsigned i = 0; i < p.items && !error; i++) {
		const struct item_result *r = &f->shared->result[i];
		error = r->error;
		if (error)
			snprintf(f->why, sizeof(f->why), "%s", r->why);
		else if (r->done)
			error = merge(f, r);
	}
	f->seeds_done += p.seeds;
	f->items += p.items;
	return error;
}

bool fuzz_more(const struct fuzz *f)
{
	return in_time(f) && f->counts.runs + f->counts.starts < f->options.runs;
}

/* --- a session --- */

int fuzz_seed(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct fuzz_input input = {.n = n < FUZZ_INPUT_MAX ? (uint8_t)n : FUZZ_INPUT_MAX};
	memcpy(input.bytes, bytes, input.n);
	return append(&f->seed, &f->seeds, &f->seeds_room, &input);
}

int fuzz_open(struct fuzz *f, const struct setup *base, const struct fuzz_options *options)
{
	memset(f, 0, sizeof(*f));
	f->base = base;
	f->options = *options;
	f->shared = mmap(NULL, sizeof(*f->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->shared == MAP_FAILED)
		f->shared = NULL;
	f->known_features = visited_new();
	f->known_sorts = visited_new();
	f->item = calloc(1, sizeof(*f->item));
	if (!f->shared || !f->known_features || !f->known_sorts || !f->item)
		goto err;
	f->item->f = f;
	f->item->features = visited_new();
	f->item->sorts = visited_new();
	if (f->item->features && f->item->sorts)
		return 0;
err:
	fuzz_close(f);
	return -ENOMEM;
}

void fuzz_close(struct fuzz *f)
{
	if (f->shared)
		munmap(f->shared, sizeof(*f->shared));
	if (f->item) {
		visited_free(f->item->features);
		visited_free(f->item->sorts);
	}
	free(f->item);
	visited_free(f->known_features);
	visited_free(f->known_sorts);
	free(f->corpus);
	free(f->seed);
	free(f->found);
	memset(f, 0, sizeof(*f));
}

/* --- a case that breaks something --- */

int fuzz_again(const struct fuzz *f, const struct fuzz_break *broken, struct broken_run *out)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct byte_source source = {0};
	struct explore_limits limits = item_limits;
	memset(out, 0, sizeof(*out));
	out->contract = broken->contract;
	int error = fuzz_setup(f->base, &broken->input, &out->setup);
	/* The item had met some of the states before. */
	limits.states = UINT64_MAX;
	if (!error)
		error = ex ? explore_open(ex, &out->setup, &limits) : -ENOMEM;
	if (!error) {
		fuzz_start(&source, &broken->input, false);
		ex->stop_at = TM_BIT(broken->contract);
		error = broken_run_take(out, ex, explore_run(ex, &source.source, &source.taken));
		explore_close(ex);
	}
	deviations_free(&source.taken);
	free(ex);
	return error;
}

int fuzz_shrink(const struct fuzz *f, const struct fuzz_break *broken, struct broken_run *out)
{
	int error = fuzz_again(f, broken, out);
	return error ? error
		     : shrink(&out->setup, &out->path, broken->contract, out->text,
			      sizeof(out->text), NULL, NULL);
}
