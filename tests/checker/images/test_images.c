/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The crash images of a log, against a model that is written in another way: it keeps no state, but
 * says of each change, by looking at all that happened before a moment, whether it must be durable
 * then. It makes every image of every moment of small random logs; the walk along the cuts has to
 * come to the same ones, with the same acknowledgements and markers. So with knobs of the hardware:
 * lines that are cut, and landings that come late or in any order.
 */
#include "checker/images/image_choice.h"
#include "core/rt/asan.h"
#include "tests/suite.h"

#define FILES	 2
#define BYTES	 128 /* of each file's lines */
#define ALL	 (1u << 20)
#define SETS_MAX (1u << 18)

static const uint64_t file_size[FILES] = {128, 100};

/* What fails: the power, the process, or the power where caches survive. */
enum pm_model { PM_POWER, PM_KILL, PM_CACHES };

/* The hardware that fails. */
struct machine {
	enum pm_model model;
	const char *knob[3]; /* "dma_order=any" */
	bool narrow;	     /* logs of one line */
};

static struct hardware hardware_of(const struct machine *m)
{
	struct hardware hw = hardware_default;
	const char *expected;
	hw.domain = m->model == PM_CACHES ? DOMAIN_MHP : DOMAIN_DMP;
	for (unsigned i = 0; i < 3 && m->knob[i]; i++)
		ck_assert_int_eq(hardware_switch(&hw, m->knob[i], &expected), 0);
	return hw;
}

/* What a user finds after a power failure, and what it may know. */
struct found {
	uint8_t byte[FILES][BYTES];
	uint32_t acks, mark;
};

struct set {
	struct found *found;
	unsigned n, room;
};

static void set_add(struct set *s, const struct found *f)
{
	if (s->n == s->room) {
		s->room = s->room ? s->room * 2 : 64;
		ck_assert_uint_le(s->room, SETS_MAX);
		s->found = realloc(s->found, s->room * sizeof(*s->found));
		ck_assert_ptr_nonnull(s->found);
	}
	s->found[s->n++] = *f;
}

static int by_content(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct found));
}

/* In order, each once. */
static void set_settle(struct set *s)
{
	unsigned kept = 0;
	if (!s->n)
		return;
	qsort(s->found, s->n, sizeof(*s->found), by_content);
	for (unsigned i = 0; i < s->n; i++)
		if (!i || by_content(&s->found[i], &s->found[kept - 1]) != 0)
			s->found[kept++] = s->found[i];
	s->n = kept;
}

static bool set_has(const struct set *s, const struct found *f)
{
	return bsearch(f, s->found, s->n, sizeof(*f), by_content) != NULL;
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % below);
}

/* --- logs --- */

static void open_log(struct pm_log *log)
{
	ck_assert_int_eq(pm_log_open(log), 0);
	for (unsigned f = 0; f < FILES; f++) {
		ck_assert_int_eq(pm_log_file(log, f ? "/b" : "/a", file_size[f]), (int)f);
		ck_assert_int_eq(pm_file_room(&log->file[f]), 0);
		memset(log->file[f].before, f ? 0xbb : 0xaa, log->file[f].len);
		pm_file_touch(&log->file[f], 0, log->file[f].len);
		ck_assert_uint_eq(log->file[f].len, BYTES);
	}
}

/* What an RNIC lands: other than by a SEND or a Commit; or by one of these. What a CPU stores and
 * flushes: likewise, or as a copy by non-temporal stores. */
enum how { WRITE, SEND, WORD, COPY };

static void add_as(struct pm_log *log, enum pm_event_kind kind, unsigned file, unsigned off,
		   unsigned len, unsigned thread, enum how how)
{
	uint8_t data[2 * PM_LINE];
	bool writes = kind == PM_STORE || kind == PM_LAND;
	struct pm_event e = {.kind = (uint8_t)kind,
			     .file = (uint8_t)file,
			     .off = off,
			     .len = len,
			     .thread = thread};
	/* Two processes, and outsiders; RNICs land in the memory of the first. A queue pair's
	 * requests are of two events or so, and some must not be late. */
	e.process = kind == PM_LAND ? 1 : (uint32_t)log->events * 5 % 7 % 3;
	if (kind == PM_LAND && log->events % 4)
		e.message = (uint32_t)log->events / 3 + 1;
	e.nt = how == COPY;
	e.send = how == SEND;
	e.word = how == WORD;
	if (e.word)
		e.message = 0;
	if (kind == PM_MARK)
		e.source = pm_log_source(log, off ? "A.BEGIN" : "B.BEGIN", 7);
	memset(data, (int)log->events + 1, sizeof(data));
	ck_assert_int_eq(pm_log_add(log, &e, writes ? data : NULL), 0);
}

static void add(struct pm_log *log, enum pm_event_kind kind, unsigned file, unsigned off,
		unsigned len, unsigned thread)
{
	add_as(log, kind, file, off, len, thread, WRITE);
}

static void add_random(struct pm_log *log, uint64_t *random, bool narrow)
{
	static const uint8_t often[] = {PM_STORE, PM_STORE,	 PM_STORE, PM_STORE, PM_FLUSH,
					PM_FLUSH, PM_FLUSH,	 PM_FENCE, PM_FENCE, PM_LAND,
					PM_LAND,  PM_LAND,	 PM_SYNC,  PM_ACK,   PM_MARK,
					PM_PUSH,  PM_RDMA_FLUSH, PM_COMMIT};
	static const enum how how[] = {WRITE, WRITE, SEND, WORD};
	enum pm_event_kind kind = often[draw(random, sizeof(often))];
	unsigned file = draw(random, FILES), size = (unsigned)file_size[file];
	unsigned off = draw(random, size), len = 1 + draw(random, 12);
	/* Many small changes of one place, so that lines have several versions. */
	if (draw(random, 2))
		off &= PM_LINE;
	if (narrow) {
		file = 0;
		size = PM_LINE;
		off = draw(random, size);
		len = 1 + draw(random, 40);
	}
	if (kind == PM_SYNC || kind == PM_COMMIT || kind == PM_RDMA_FLUSH || kind == PM_FLUSH)
		len = 1 + draw(random, size);
	if (len > size - off)
		len = size - off;
	if (kind == PM_RDMA_FLUSH && !draw(random, 4))
		len = 0;
	unsigned thread = draw(random, 2);
	enum how as = WRITE;
	if (kind == PM_LAND)
		as = how[draw(random, 4)];
	else if ((kind == PM_STORE || kind == PM_FLUSH) && draw(random, 2))
		as = COPY;
	add_as(log, kind, file, off, len, thread, as);
}

static void random_log(struct pm_log *log, uint64_t seed, bool narrow)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;
	unsigned events = 3 + draw(&random, narrow ? 4 : 8);
	open_log(log);
	log->threads = draw(&random, 2);
	while (log->events < events)
		add_random(log, &random, narrow);
}

/* --- the other model --- */

static bool changes(const struct pm_event *e, unsigned file, unsigned line)
{
	return (e->kind == PM_STORE || e->kind == PM_LAND) && e->file == file &&
	       e->off / PM_LINE == line;
}

static bool covers(const struct pm_event *e, unsigned file, unsigned line)
{
	return e->file == file && e->off < (line + 1) * PM_LINE && e->off + e->len > line * PM_LINE;
}

/* Does a request of the queue pair that has landed this make it durable? Commits reach all that is
 * theirs, what SENDs left is not; others find what is between RNIC and memory, and no cache. Of
 * what may be in either, what matters is what the failure would take. */
static bool rnic_takes(const struct hardware *hw, const struct pm_event *by,
		       const struct pm_event *landed)
{
	bool past = hw->ddio == DDIO_OFF || (hw->ddio == DDIO_ANY && hw->domain == DOMAIN_MHP);
	bool meet = by->file == landed->file && by->off < landed->off + landed->len &&
		    landed->off < by->off + by->len;
	switch ((enum pm_event_kind)by->kind) {
	case PM_COMMIT:
		return meet && !landed->send;
	case PM_RDMA_FLUSH:
		return past && (landed->send ? hw->flush_covers_send : meet);
	case PM_PUSH:
		return past;
	default:
		return false;
	}
}

/* Does event d make the change c of this line durable, by itself or as a line goes as a whole? */
static bool takes(const struct pm_log *log, const struct hardware *hw, size_t d, size_t c,
		  unsigned file, unsigned line)
{
	const struct pm_event *by = &log->event[d];
	if (c > d)
		return false;
	if (by->kind == PM_SYNC)
		return covers(by, file, line);
	if (by->word && !hw->commit_visible && changes(by, file, line))
		return true;
	for (size_t i = c; i < d; i++) {
		const struct pm_event *e = &log->event[i];
		bool same = e->thread == by->thread;
		if (by->kind == PM_FENCE && e->kind == PM_FLUSH && (same || !log->threads) &&
		    covers(e, file, line))
			return true;
		if (e->kind == PM_LAND && same && changes(e, file, line) && rnic_takes(hw, by, e))
			return true;
	}
	return false;
}

/* May this landing not have happened, when only events before `moment` have? */
static bool is_late(const struct pm_log *log, size_t moment, size_t c, const struct machine *m)
{
	const struct hardware hw = hardware_of(m);
	const struct pm_event *l = &log->event[c];
	bool early = m->model == PM_CACHES && hw.ack_early;
	/* What has been received is kept. */
	if (hw.domain == DOMAIN_WSP)
		return false;
	if (l->kind != PM_LAND || !l->message || (!early && hw.dma_order == DMA_LEFT))
		return false;
	for (size_t i = c + 1; i < moment; i++) {
		const struct pm_event *e = &log->event[i];
		bool same = e->thread == l->thread,
		     asks = e->kind == PM_RDMA_FLUSH || e->kind == PM_COMMIT || e->kind == PM_PUSH,
		     rnic = e->kind == PM_LAND || asks;
		if (!rnic && e->process == l->process)
			return false; /* it may have been looked at */
		if (same && asks)
			return false;
		if (same && e->kind == PM_LAND && !e->message)
			return false; /* an atomic, or the like */
		if (same && e->kind == PM_LAND && e->message != l->message && !early &&
		    hw.dma_order == DMA_ANY)
			return false;
		if (e->kind == PM_ACK && !early)
			return false;
	}
	return true;
}

/* May this store of a non-temporal copy be in its CPU's buffers? Only what that CPU does elsewhere,
 * and copies, leave it there. */
static bool is_buffered(const struct pm_log *log, size_t moment, size_t c, const struct machine *m)
{
	const struct pm_event *s = &log->event[c];
	if (s->kind != PM_STORE || !s->nt || m->model != PM_CACHES || !hardware_of(m).nt_buffered)
		return false;
	for (size_t i = c + 1; i < moment; i++) {
		const struct pm_event *e = &log->event[i];
		bool same = e->thread == s->thread,
		     own = same && (e->kind == PM_STORE || e->kind == PM_FLUSH),
		     there = covers(e, s->file, (unsigned)(s->off / PM_LINE));
		if (!(own && (e->nt || !there)) && e->kind != PM_MARK)
			return false;
	}
	return true;
}

/* Is what CPUs stored, or RNICs landed, lost until something makes it durable? */
static bool flushes_count(const struct machine *m, bool landed)
{
	const struct hardware hw = hardware_of(m);
	return m->model == PM_POWER || (m->model == PM_CACHES && landed && !hw.iio_in_mhp &&
					hw.ddio != DDIO_ON && hw.domain != DOMAIN_WSP);
}

/* How many of the line's changes before `moment` are durable, and how many are there? */
static void bounds(const struct pm_log *log, size_t moment, unsigned file, unsigned line,
		   const struct machine *m, unsigned *least, unsigned *most)
{
	const struct hardware hw = hardware_of(m);
	*least = *most = 0;
	for (size_t c = 0; c < moment; c++) {
		bool landed = log->event[c].kind == PM_LAND;
		if (!changes(&log->event[c], file, line))
			continue;
		++*most;
		if (!flushes_count(m, landed) && !is_buffered(log, moment, c, m) &&
		    (flushes_count(m, true) || !is_late(log, moment, c, m)))
			*least = *most;
		for (size_t d = c; d < moment && flushes_count(m, true); d++)
			if (takes(log, &hw, d, c, file, line))
				*least = *most;
	}
}

/* The line with its first n changes. */
static void put_line(const struct pm_log *log, struct found *f, unsigned file, unsigned line,
		     unsigned n)
{
	memcpy(f->byte[file] + line * PM_LINE, log->file[file].before + line * PM_LINE, PM_LINE);
	for (size_t c = 0; n; c++) {
		const struct pm_event *e = &log->event[c];
		if (!changes(e, file, line))
			continue;
		memcpy(f->byte[file] + e->off, log->bytes + e->data, e->len);
		n--;
	}
}

/* For each line, the number of changes that are left, and of those that must be. */
struct choice {
	unsigned n[FILES][2], least[FILES][2];
};

/* Which change of its line is this? From 1. */
static unsigned number_of(const struct pm_log *log, size_t c)
{
	const struct pm_event *e = &log->event[c];
	unsigned n = 0;
	for (size_t i = 0; i <= c; i++)
		n += changes(&log->event[i], e->file, (unsigned)(e->off / PM_LINE));
	return n;
}

/* No late landing is there that cannot pass a lost one. */
static bool is_in_order(const struct pm_log *log, size_t moment, const struct machine *m,
			const struct choice *k)
{
	const struct hardware hw = hardware_of(m);
	for (size_t a = 0; a < moment; a++) {
		for (size_t b = a + 1; b < moment; b++) {
			const struct pm_event *x = &log->event[a], *y = &log->event[b];
			if (x->kind != PM_LAND || y->kind != PM_LAND || x->thread != y->thread ||
			    hw.dma_order == DMA_RELAXED ||
			    (hw.dma_order == DMA_ANY && x->message == y->message))
				continue;
			unsigned line = (unsigned)(y->off / PM_LINE), n = number_of(log, b);
			if (number_of(log, a) > k->n[x->file][x->off / PM_LINE] &&
			    n <= k->n[y->file][line] && n > k->least[y->file][line])
				return false;
		}
	}
	return true;
}

/* The line cut in each way: words of a version over an older one. */
static void add_cuts(const struct pm_log *log, const struct found *whole, unsigned least,
		     unsigned most, bool any, struct set *into)
{
	for (unsigned v = least + 1; v <= most; v++) {
		for (unsigned o = least; o < v; o++) {
			for (unsigned words = 1; words < 255; words++) {
				struct found newer = *whole, f = *whole;
				if (!any && (words & (words + 1)))
					continue;
				put_line(log, &newer, 0, 0, v);
				put_line(log, &f, 0, 0, o);
				for (unsigned w = 0; w < 8; w++)
					if (words >> w & 1)
						memcpy(f.byte[0] + 8 * w, newer.byte[0] + 8 * w, 8);
				set_add(into, &f);
			}
		}
	}
}

static void add_lines(const struct pm_log *log, size_t moment, const struct machine *m,
		      struct choice *k, struct found *f, unsigned next, struct set *into)
{
	unsigned file = next / 2, line = next % 2, least, most;
	const struct hardware hw = hardware_of(m);
	if (file == FILES) {
		if (flushes_count(m, true) || is_in_order(log, moment, m, k))
			set_add(into, f);
		return;
	}
	bounds(log, moment, file, line, m, &least, &most);
	k->least[file][line] = least;
	for (unsigned n = least; n <= most; n++) {
		k->n[file][line] = n;
		put_line(log, f, file, line, n);
		add_lines(log, moment, m, k, f, next + 1, into);
	}
	/* Others have nothing in flight. */
	if (hw.line_torn && !next)
		add_cuts(log, f, least, most, hw.line_torn == TORN_ANY, into);
}

static void images_at(const struct pm_log *log, size_t moment, const struct machine *m,
		      struct set *into)
{
	struct found f;
	struct choice k = {0};
	memset(&f, 0, sizeof(f));
	for (size_t i = 0; i < moment; i++) {
		f.acks += log->event[i].kind == PM_ACK;
		if (log->event[i].kind == PM_MARK)
			f.mark = log->event[i].source;
	}
	add_lines(log, moment, m, &k, &f, 0, into);
}

/* --- the walk --- */

/* A file as those who are told of each durable line have it. */
static void keep_durable(void *arg, unsigned file, uint64_t line, const uint8_t content[PM_LINE])
{
	uint8_t(*copy)[BYTES] = arg;
	memcpy(copy[file] + line * PM_LINE, content, PM_LINE);
}

static uint64_t make_image(const struct pm_replay *r, const unsigned *left, struct found *f)
{
	uint64_t hash = r->hash;
	memset(f, 0, sizeof(*f));
	for (unsigned i = 0; i < FILES; i++)
		memcpy(f->byte[i], r->durable[i], BYTES);
	for (unsigned i = 0; i < r->dirties; i++) {
		const struct pm_line *l = &r->dirty[i];
		uint8_t *to = f->byte[l->file] + l->line * PM_LINE;
		hash ^= pm_line_hash(l->file, l->line, to);
		pm_replay_content(r, l, left[i], to);
		hash ^= pm_line_hash(l->file, l->line, to);
	}
	f->acks = (uint32_t)r->acks;
	f->mark = r->mark ? r->mark->source : PM_NO_SOURCE;
	return hash;
}

/* One hash for one content. */
struct hashes {
	struct set image;
	uint64_t hash[SETS_MAX];
};

static void note_hash(struct hashes *h, const struct found *f, uint64_t hash)
{
	struct found content = *f;
	content.acks = content.mark = 0;
	for (unsigned i = 0; i < h->image.n; i++)
		ck_assert_msg((h->hash[i] == hash) == !by_content(&h->image.found[i], &content),
			      "a hash is not the content's");
	if (h->image.n < 40) { /* enough to see that */
		h->hash[h->image.n] = hash;
		set_add(&h->image, &content);
	}
}

/* All images that the walk comes to. `check`: those of each cut must be possible just there. */
static void walk(const struct pm_log *log, const struct machine *m, unsigned most, struct set *into,
		 bool check)
{
	struct pm_replay r;
	struct image_choice c;
	uint8_t copy[FILES][BYTES];
	struct hashes *hashes = calloc(1, sizeof(*hashes));
	const struct hardware hw = hardware_of(m);
	ck_assert_int_eq(pm_replay_open(&r, log, &hw, m->model == PM_KILL), 0);
	image_choice_init(&c, &r, most);
	for (unsigned f = 0; f < FILES; f++)
		memcpy(copy[f], log->file[f].before, BYTES);
	do {
		struct set possible = {0};
		struct found f;
		unsigned given = 0;
		for (unsigned i = 0; i < FILES; i++)
			ck_assert_mem_eq(copy[i], r.durable[i], BYTES);
		if (!pm_replay_cut(&r))
			continue;
		if (check)
			images_at(log, r.at, m, &possible);
		set_settle(&possible);
		ck_assert_int_eq(image_choice_begin(&c), 0);
		while (image_choice_next(&c)) {
			note_hash(hashes, &f, make_image(&r, c.left, &f));
			set_add(into, &f);
			given++;
			ck_assert(!check || set_has(&possible, &f));
		}
		ck_assert_uint_ge(given, 1);
		ck_assert_uint_le(given, c.all ? 8 * most : most);
		free(possible.found);
	} while (pm_replay_step(&r, keep_durable, copy) > 0);
	set_settle(into);
	image_choice_free(&c);
	pm_replay_close(&r);
	free(hashes->image.found);
	free(hashes);
}

static void same_sets(const struct set *a, const struct set *b, int seed)
{
	for (unsigned i = 0; i < a->n; i++)
		ck_assert_msg(set_has(b, &a->found[i]), "log %d: an image is missed", seed);
	for (unsigned i = 0; i < b->n; i++)
		ck_assert_msg(set_has(a, &b->found[i]), "log %d: an image is impossible", seed);
}

static void all_images_of(const struct pm_log *log, const struct machine *m, int seed)
{
	struct set expected = {0}, found = {0};
	for (size_t moment = 0; moment <= log->events; moment++)
		images_at(log, moment, m, &expected);
	set_settle(&expected);
	walk(log, m, ALL, &found, false);
	same_sets(&expected, &found, seed);
	free(expected.found);
	free(found.found);
}

/* --- tests --- */

static const struct machine machine[] = {
	{PM_POWER, {NULL}, false},
	{PM_KILL, {NULL}, false},
	{PM_KILL, {"dma_order=any"}, false},
	{PM_KILL, {"dma_order=relaxed"}, false},
	{PM_CACHES, {"ack_early=off"}, false},
	{PM_CACHES, {NULL}, false},
	{PM_CACHES, {"dma_order=any"}, false},
	{PM_CACHES, {"dma_order=any", "ack_early=off"}, false},
	{PM_CACHES, {"dma_order=relaxed"}, false},
	{PM_CACHES, {"dma_order=relaxed", "ack_early=off"}, false},
	{PM_POWER, {"ddio=off"}, false},
	{PM_POWER, {"ddio=any"}, false},
	{PM_CACHES, {"domain=wsp", "dma_order=relaxed"}, false},
	{PM_POWER, {"ddio=off", "flush_covers_send=off"}, false},
	{PM_POWER, {"commit_word=visible"}, false},
	{PM_CACHES, {"nt_stores=buffered"}, false},
	{PM_CACHES, {"nt_stores=buffered", "dma_order=any"}, false},
	{PM_CACHES, {"nt_stores=buffered", "domain=wsp"}, false},
	{PM_CACHES, {"nt_stores=buffered", "iio_in_mhp=off", "ddio=off"}, false},
	{PM_POWER, {"nt_stores=buffered"}, false},
	{PM_KILL, {"nt_stores=buffered", "dma_order=any"}, false},
	{PM_CACHES, {"iio_in_mhp=off"}, false},
	{PM_CACHES, {"iio_in_mhp=off", "ddio=off"}, false},
	{PM_CACHES, {"iio_in_mhp=off", "ddio=any", "dma_order=any"}, false},
	{PM_CACHES, {"iio_in_mhp=off", "ddio=any", "commit_word=visible"}, false},
};

#define MACHINES (sizeof(machine) / sizeof(machine[0]))
#define LOGS	 100 /* of a test */
/* What a sanitizer finds depends on the code that runs, not on how often. */
#define BATCHES (TM_ASAN ? 4 : 10)

START_TEST(cuts_lose_no_image)
{
	for (int seed = _i * LOGS; seed < (_i + 1) * LOGS; seed++) {
		struct pm_log log;
		random_log(&log, (uint64_t)seed, false);
		for (unsigned i = 0; i < MACHINES; i++)
			all_images_of(&log, &machine[i], seed);
		pm_log_close(&log);
	}
}
END_TEST

START_TEST(cuts_of_a_line)
{
	static const struct machine prefix = {PM_POWER, {"line_torn=prefix"}, true},
				    any = {PM_POWER, {"line_torn=any"}, true};
	for (int seed = 0; seed < 60; seed++) {
		struct pm_log log;
		struct set some = {0};
		random_log(&log, (uint64_t)seed, true);
		all_images_of(&log, seed % 2 ? &prefix : &any, seed);
		walk(&log, seed % 2 ? &prefix : &any, 1 + (unsigned)seed, &some, true);
		free(some.found);
		pm_log_close(&log);
	}
}
END_TEST

START_TEST(a_few_images_are_possible_ones)
{
	static const unsigned most[] = {1, 2, 3, 7, 20};
	for (int seed = _i * LOGS; seed < (_i + 1) * LOGS; seed++) {
		struct pm_log log;
		struct set some = {0};
		random_log(&log, (uint64_t)seed, false);
		walk(&log, &machine[(unsigned)seed / 5 % MACHINES], most[(unsigned)seed % 5], &some,
		     true);
		free(some.found);
		pm_log_close(&log);
	}
}
END_TEST

/* The content that can be left of offset 0 at the end, as a set of bits by value. */
static unsigned left_at_end(const struct pm_log *log, const struct machine *m)
{
	struct pm_replay r;
	struct image_choice c;
	struct found f;
	unsigned bits = 0;
	const struct hardware hw = hardware_of(m);
	ck_assert_int_eq(pm_replay_open(&r, log, &hw, m->model == PM_KILL), 0);
	image_choice_init(&c, &r, ALL);
	while (pm_replay_step(&r, NULL, NULL) > 0)
		;
	ck_assert_int_eq(image_choice_begin(&c), 0);
	while (image_choice_next(&c)) {
		make_image(&r, c.left, &f);
		bits |= 1u << (f.byte[0][0] == 0xaa ? 0 : f.byte[0][0]);
	}
	image_choice_free(&c);
	pm_replay_close(&r);
	return bits;
}

/* Events, whose value is their place, from 1, and what can be left then (bits: the value; 0: what
 * was there before):
 *
 *	S store, F flush, | fence, Y msync; L landing, M data of a SEND, W the payload of a Commit;
 *	C Commit, R RDMA FLUSH, 0 of no range, P READ; s l f ! c: of a second thread
 */
static void check_rule(const char *events, unsigned expected, bool threads, const struct machine *m)
{
	static const char letters[] = "SLFYC|MWR0Pslfc!";
	static const enum pm_event_kind kind[] = {
		PM_STORE, PM_LAND,  PM_FLUSH,	   PM_SYNC,	  PM_COMMIT, PM_FENCE,
		PM_LAND,  PM_LAND,  PM_RDMA_FLUSH, PM_RDMA_FLUSH, PM_PUSH,   PM_STORE,
		PM_LAND,  PM_FLUSH, PM_COMMIT,	   PM_FENCE};
	struct pm_log log;
	open_log(&log);
	log.threads = threads;
	for (const char *e = events; *e; e++) {
		unsigned n = (unsigned)(strchr(letters, *e) - letters);
		add_as(&log, kind[n], 0, 0, *e != '0', n >= 11,
		       *e == 'M'   ? SEND
		       : *e == 'W' ? WORD
				   : WRITE);
	}
	unsigned left = left_at_end(&log, m);
	ck_assert_msg(left == expected, "%s with %s: %x instead of %x", events,
		      m->knob[0] ? m->knob[0] : "no knob", left, expected);
	pm_log_close(&log);
}

START_TEST(rules)
{
	static const struct {
		bool threads;
		const char *events;
		unsigned left;
	} row[] = {
		{false, "", 1u << 0},
		{false, "S", 1u << 0 | 1u << 1},
		{false, "SF", 1u << 0 | 1u << 1},
		{false, "SF|", 1u << 1},
		{false, "S|", 1u << 0 | 1u << 1},
		{false, "FS|", 1u << 0 | 1u << 2},
		/* A flush sees what was stored before it, not after. */
		{false, "SFS|", 1u << 1 | 1u << 3},
		{false, "SS", 1u << 0 | 1u << 1 | 1u << 2},
		{false, "SY", 1u << 1},
		{false, "Sf|", 1u << 1},
		/* A fence is its thread's. */
		{true, "Sf|", 1u << 0 | 1u << 1},
		{true, "Sf!", 1u << 1},
		{true, "sF|", 1u << 1},
		{true, "SF!S|", 1u << 1 | 1u << 4},
		/* A Commit is of its connection's landings, and a line goes as a whole. */
		{true, "LC", 1u << 1},
		{true, "Lc", 1u << 0 | 1u << 1},
		{true, "SC", 1u << 0 | 1u << 1},
		{true, "SLC", 1u << 2},
		{true, "LSC", 1u << 1 | 1u << 2},
		{true, "LlC", 1u << 1 | 1u << 2},
		/* What SENDs left is not covered by it. */
		{true, "MC", 1u << 0 | 1u << 1},
		{true, "MLC", 1u << 2},
		/* A line that is durable and dirty again was not flushed by what came before. */
		{true, "SFYS|", 1u << 1 | 1u << 4},
	};
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		check_rule(row[i].events, row[i].left, row[i].threads, &machine[0]);
}
END_TEST

START_TEST(rules_of_rnics)
{
	static const struct {
		const char *events;
		unsigned left;
		const char *knob[2];
	} row[] = {
		/* The payload of a Commit is durable as it lands; or when the Commit is done. */
		{"SW", 1u << 2, {NULL}},
		{"SW", 1u << 0 | 1u << 1 | 1u << 2, {"commit_word=visible"}},
		{"SWC", 1u << 2, {"commit_word=visible"}},
		{"SWc", 1u << 0 | 1u << 1 | 1u << 2, {"commit_word=visible"}},
		/* A FLUSH and a READ reach no cache, and a Commit does. */
		{"LR", 1u << 0 | 1u << 1, {NULL}},
		{"LP", 1u << 0 | 1u << 1, {NULL}},
		{"MR", 1u << 0 | 1u << 1, {NULL}},
		{"LR", 1u << 0 | 1u << 1, {"ddio=any"}},
		{"LC", 1u << 1, {"ddio=any"}},
		{"LR", 1u << 1, {"ddio=off"}},
		{"lR", 1u << 0 | 1u << 1, {"ddio=off"}},
		{"L0", 1u << 0 | 1u << 1, {"ddio=off"}},
		{"LP", 1u << 1, {"ddio=off"}},
		{"LC", 1u << 1, {"ddio=off"}},
		/* What SENDs left is covered wherever it is, or not. */
		{"M0", 1u << 1, {"ddio=off"}},
		{"MR", 1u << 1, {"ddio=off"}},
		{"MC", 1u << 0 | 1u << 1, {"ddio=off"}},
		{"MR", 1u << 0 | 1u << 1, {"ddio=off", "flush_covers_send=off"}},
		{"MP", 1u << 1, {"ddio=off", "flush_covers_send=off"}},
		{"MLR", 1u << 2, {"ddio=off", "flush_covers_send=off"}},
	};
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		check_rule(row[i].events, row[i].left, true,
			   &(struct machine){PM_POWER, {row[i].knob[0], row[i].knob[1]}, false});
}
END_TEST

/* What tells most comes first, so that a small bound is well used. */
START_TEST(first_images)
{
	struct pm_log log;
	struct pm_replay r;
	struct image_choice c;
	open_log(&log);
	add(&log, PM_STORE, 0, 0, 8, 0);
	add(&log, PM_STORE, 0, 64, 8, 0);
	add(&log, PM_STORE, 1, 0, 8, 0);
	ck_assert_int_eq(pm_replay_open(&r, &log, &hardware_default, false), 0);
	image_choice_init(&c, &r, 5);
	while (pm_replay_step(&r, NULL, NULL) > 0)
		;
	ck_assert_int_eq(image_choice_begin(&c), 0);
	for (unsigned n = 0; n < 5; n++) {
		ck_assert(image_choice_next(&c));
		unsigned left = c.left[0] | c.left[1] << 1 | c.left[2] << 2;
		ck_assert_uint_eq(left, n == 0 ? 7 : n == 1 ? 0 : 7 - (1u << (n - 2)));
	}
	ck_assert(!image_choice_next(&c));
	ck_assert(c.bounded);
	image_choice_free(&c);
	pm_replay_close(&r);
	pm_log_close(&log);
}
END_TEST

/* A store that crosses lines is as many changes, each of which may be left without the others. */
START_TEST(long_stores)
{
	struct pm_log log;
	struct set found = {0};
	open_log(&log);
	add(&log, PM_STORE, 0, 60, 10, 0);
	ck_assert_uint_eq(log.events, 2);
	ck_assert_uint_eq(log.event[0].len, 4);
	ck_assert_uint_eq(log.event[1].off, 64);
	ck_assert_uint_eq(log.event[1].len, 6);
	walk(&log, &machine[0], ALL, &found, true);
	ck_assert_uint_eq(found.n, 4);
	free(found.found);
	pm_log_close(&log);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("images");
	TCase *t = tcase_create("images");
	tcase_add_loop_test(t, cuts_lose_no_image, 0, BATCHES);
	tcase_add_loop_test(t, a_few_images_are_possible_ones, 0, BATCHES);
	tcase_add_test(t, cuts_of_a_line);
	tcase_add_test(t, rules);
	tcase_add_test(t, rules_of_rnics);
	tcase_add_test(t, first_images);
	tcase_add_test(t, long_stores);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return run_suite(s);
}
