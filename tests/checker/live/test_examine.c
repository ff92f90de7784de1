/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is left of a power cut, judged: pools of stores that ran in the sim world, and
 * recordings, which a test changes so that one contract breaks.
 *
 * With arguments, --write DIR STORE [KEYS OPERATIONS], files for tests/checker/live/test_examine.sh
 * are made.
 */
#include <infiniband/verbs.h>
#include "checker/live/crash_bundle.h"
#include "checker/live/reboot.h"
#include "core/live/injected.h"
#include "tests/core/live/live_sim.h"
#include "tests/suite.h"

#define KEYS 12
#define VLEN 200

static struct live_sim ls;
static bool begun;	       /* the test has one */
static uint8_t *media, *cache; /* of the pool at the end */
static struct exam e;
static uint64_t first_id, second_id; /* of key 3 */

/* Every key is put, some twice, and read; key 3 twice in any case; key 11 is deleted. */
static void script(struct live_sim *s)
{
	for (uint32_t key = 0; key < KEYS; key++)
		live_sim_put(s, 1 + key % 4, key);
	for (uint32_t key = 0; key < KEYS; key++)
		live_sim_get(s, 2, key);
	for (uint32_t key = 0; key < KEYS; key += 3)
		live_sim_put(s, 3, key);
	for (uint32_t key = 0; key < KEYS; key++)
		live_sim_get(s, 4, key);
	if (s->store.store->del)
		live_sim_del(s, 1, KEYS - 1);
	live_sim_wait(s);
	for (uint32_t key = 0; key < KEYS; key++)
		live_sim_get(s, 4, key);
	live_sim_wait(s);
	media = live_sim_pool(s, true);
	cache = live_sim_pool(s, false);
}

static void begin_variant(const char *store, const char *variant)
{
	begun = true;
	live_sim_open(&ls, store, KEYS, 200, VLEN);
	live_sim_variant(&ls, variant);
	live_sim_run(&ls, script);
	for (unsigned i = 0; i < ls.ops; i++)
		if (ls.op[i].kind == HISTORY_PUT && ls.op[i].key == 3) {
			first_id = first_id ? first_id : ls.op[i].value;
			second_id = ls.op[i].value;
		}
}

static void begin(const char *store)
{
	begin_variant(store, "default");
}

static void end(void)
{
	if (!begun)
		return;
	exam_free(&e);
	live_sim_close(&ls);
	free(media);
	free(cache);
}

/* Examine these images under a seed; what happened, as a set of contracts. */
static unsigned judge(const uint8_t *pool, const uint8_t *held, uint64_t seed, unsigned cuts,
		      const struct cut_start *start)
{
	const struct exam_options options = {seed, cuts};
	struct cut c;
	char why[300] = "";
	unsigned set = 0;

	live_sim_cut(&ls, pool, held, &c);
	if (start) {
		c.start = malloc(sizeof(*start));
		*c.start = *start;
		c.starts = 1;
		c.started = true;
		c.start_boot = c.boot - 1;
	}
	exam_free(&e);
	ck_assert_msg(!examine(&c, &options, &e, why, sizeof(why)), "%s", why);
	cut_free(&c);
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		set |= e.cell[k].happened.keys ? TM_BIT(k) : 0;
	return set;
}

static unsigned possible(void)
{
	unsigned set = 0;

	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		set |= e.cell[k].possible.keys ? TM_BIT(k) : 0;
	return set;
}

static const char *const all_stores[] = {"efactory",  "erda",	 "rdmp_kv",  "forca", "ca",
					 "remotelog", "saw_imm", "redo_log", "pilaf", "rfp",
					 "octopus",   "herd",	 "hydradb",  "nessie"};

TESTS(a_whole_pool_keeps_everything, ROWS_OF(all_stores))
{
	begin(all_stores[_i]);
	ck_assert_uint_eq(judge(cache, NULL, 0, 8, NULL), 0);
	ck_assert_uint_eq(e.keys, KEYS);
	ck_assert_uint_eq(e.operations, ls.ops);
	ck_assert_uint_eq(e.images, 1);
	ck_assert_uint_ge(e.torn.whole, KEYS - 1);
	ck_assert_uint_eq(e.torn.torn, 0);
	ck_assert_int_eq(e.shown[3].at.state, KEY_VALUE);
	ck_assert_uint_eq(e.shown[3].at.id, second_id);
	ck_assert_int_eq(e.shown[KEYS - 1].at.state, KEY_ABSENT);
}

static void any_value(void *arg, unsigned i, int error, const uint8_t *bytes, size_t len)
{
	ck_assert(!error || error == -ENOENT);
}

/* A server that does the same for each of many reads is in no livelock. */
TESTS(many_reads_are_no_livelock, ROWS_OF(all_stores))
{
	uint32_t keys[600];
	struct rebooter *r;
	struct rebooted out;
	begin(all_stores[_i]);
	for (unsigned i = 0; i < ROWS_OF(keys); i++)
		keys[i] = 5;
	ck_assert_int_eq(rebooter_new(&r, ls.store.store, &ls.store.params), 0);
	reboot_image(r, cache, keys, ROWS_OF(keys), any_value, NULL, &out);
	ck_assert_msg(!out.live_broken, "%s: %s", all_stores[_i], out.why);
	ck_assert_uint_eq(out.read, ROWS_OF(keys));
	rebooter_free(r);
}

/* It acknowledges and shows what is in the cache only. */
TEST(erda_loses_what_was_in_flight)
{
	begin("erda");
	ck_assert_uint_eq(judge(media, cache, 1, 8, NULL), 0);
	ck_assert_uint_gt(e.lines, 0);
	ck_assert_uint_eq(e.survived, e.lines);
	ck_assert_uint_eq(possible() & (TM_BIT(TM_DUR) | TM_BIT(TM_MONO)),
			  TM_BIT(TM_DUR) | TM_BIT(TM_MONO));
	ck_assert_uint_eq(possible() & exam_watched(ls.store.store), 0);
	/* Each key once, whatever the subsets. */
	ck_assert_uint_le(e.cell[TM_DUR].possible.keys, KEYS);
	judge(media, cache, 7, 20, NULL);
	ck_assert_uint_gt(e.cell[TM_DUR].happened.keys, 0);
	ck_assert_uint_le(e.cell[TM_DUR].happened.keys + e.cell[TM_DUR].possible.keys, KEYS);
	/* The same cut with the other seed: now it is what happened. */
	ck_assert_uint_eq(judge(media, cache, 0, 8, NULL) & (TM_BIT(TM_DUR) | TM_BIT(TM_MONO)),
			  TM_BIT(TM_DUR) | TM_BIT(TM_MONO));
	ck_assert_uint_eq(e.survived, 0);
	ck_assert_uint_eq(e.images, 10);
}

TEST(efactory_keeps_what_it_promises)
{
	begin("efactory");
	for (uint64_t seed = 0; seed < 10; seed++) {
		unsigned set = judge(media, cache, seed, 4, NULL) | possible();

		ck_assert_uint_eq(set & exam_watched(ls.store.store), 0);
	}
}

/* Bugs that flush too little: something that they break by it has happened, or could have. */
static const char *const bugs[] = {"header_unflushed", "entry_unflushed",  "key_unflushed",
				   "get_no_flush",     "get_flush_header", "bg_no_flush"};

TESTS(a_missing_flush_is_found, ROWS_OF(bugs))
{
	begin_variant("efactory", bugs[_i]);
	unsigned set = judge(media, cache, 5, 40, NULL) | possible();
	ck_assert_msg(set & exam_watched(ls.store.store), "%s: %u lines in flight, 0x%x", bugs[_i],
		      e.lines, set);
}

/* --- each contract, broken by what the recording says --- */

static void foreign_bytes(void)
{
	live_sim_record(&ls, HISTORY_GET, 2, 3)->found = 2;
}

static void old_value(void)
{
	struct recording_op *op = live_sim_record(&ls, HISTORY_GET, 2, 3);

	op->found = 1;
	op->value = first_id;
}

static void lost_put(void)
{
	live_sim_record(&ls, HISTORY_PUT, 2, 3);
}

static void lost_among_two(void)
{
	lost_put();
	live_sim_record(&ls, HISTORY_PUT, 2, 3)->returned_ns = 0;
	live_sim_record(&ls, HISTORY_DEL, 2, 3)->returned_ns = 0;
}

static void lost_read(void)
{
	uint64_t id = live_sim_record(&ls, HISTORY_PUT, 2, 3)->value;
	struct recording_op *op = live_sim_record(&ls, HISTORY_GET, 4, 3);

	op->found = 1;
	op->value = id;
}

static void lost_del(void)
{
	live_sim_record(&ls, HISTORY_DEL, 2, 3);
}

static void failed_put(void)
{
	for (unsigned i = 0; i < ls.ops; i++)
		if (ls.op[i].kind == HISTORY_PUT && ls.op[i].value == second_id)
			ls.op[i].error = -ENOSPC;
}

static void in_flight_put(void)
{
	live_sim_record(&ls, HISTORY_PUT, 2, 3)->returned_ns = 0;
}

static void later_boot(void)
{
	live_sim_record(&ls, HISTORY_PUT, 2, 3)->boot = 2;
}

static const struct {
	void (*change)(void);
	unsigned breaks;
	const char *says; /* a part of the text for the last of them */
} changes[] = {
	{foreign_bytes, TM_BIT(TM_RDA), "bytes that no PUT of it wrote"},
	{old_value, TM_BIT(TM_LIN), "; then GET (client 2, boot 1, "},
	{lost_put, TM_BIT(TM_DUR), "was acknowledged; then recovery shows the value of PUT 3.1."},
	{lost_among_two, TM_BIT(TM_DUR), "; 2 updates of the key had not ended"},
	{lost_read, TM_BIT(TM_DUR) | TM_BIT(TM_MONO), "returned the value of PUT 2.1."},
	{lost_del, TM_BIT(TM_DUR) | TM_BIT(TM_NORES), "DELETE (client 2, boot 1, "},
	{failed_put, TM_BIT(TM_NORES), "failed with ENOSPC; then "},
	{in_flight_put, 0, NULL},
	{later_boot, 0, NULL},
};

TESTS(one_change_breaks_one_contract, ROWS_OF(changes))
{
	const char *text = NULL;

	begin("efactory");
	changes[_i].change();
	ck_assert_uint_eq(judge(cache, NULL, 0, 0, NULL), changes[_i].breaks);
	ck_assert_uint_eq(e.operations, ls.ops - (changes[_i].change == later_boot));
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (changes[_i].breaks & TM_BIT(k)) {
			ck_assert_uint_eq(e.cell[k].happened.keys, 1);
			text = e.cell[k].happened.text;
			ck_assert_msg(!strncmp(text, "user0000000003: ", 16), "%s", text);
		}
	ck_assert_msg(!text || strstr(text, changes[_i].says), "%s", text);
}

/* --- OK, by what the recording says of an operation that failed --- */

static const struct {
	struct recording_op why;
	int error;
	const char *told; /* how the text ends; NULL: it is explained */
} errors[] = {
	{{.says = 1}, 0, NULL},
	{{.says = 1}, -EIO, "the client was not dropped"},
	{{.says = 1}, -ETIMEDOUT, "the client was not dropped"},
	/* It explains declared errors alone. */
	{{.says = 1, .departed = 1}, -EIO, "the client was not dropped"},
	{{.says = 1, .gone = 1}, -EIO, NULL},
	{{.says = 1, .calls = 1}, -EIO, NULL},
	{{.says = 1, .server_calls = 1}, -EIO, NULL},
	{{.says = 1, .links = 1}, -EIO, NULL},
	{{.says = 1, .server_links = 1}, -EIO, NULL},
	{{.says = 1, .dropped = 1}, -EIO, NULL},
	{{.says = 1}, -ECANCELED, NULL}, /* it was stopped by its own client */
	{{.says = 1}, -ENOSPC, NULL},	 /* the pool is full */
	{{.says = 0}, -EIO, NULL},
	/* What the NIC said is reported, together with what explains it. */
	{{.says = SAYS_ALL}, -EIO, "was not dropped; no completion had an error"},
	{{.says = SAYS_ALL, .status = IBV_WC_REM_ACCESS_ERR, .posted = IBV_WR_RDMA_READ},
	 -EIO,
	 "; a completion had status 10, REM_ACCESS_ERR, where a READ was posted last"},
	{{.says = SAYS_ALL,
	  .status = IBV_WC_LOC_PROT_ERR,
	  .posted = POSTED_UNKNOWN,
	  .vendor = 0x77},
	 -EIO,
	 "; a completion had status 4, LOC_PROT_ERR (vendor error 0x77)"},
	{{.says = SAYS_ALL, .status = 99},
	 -EIO,
	 "status 99, an unknown status, where a WRITE was posted last"},
	{{.says = SAYS_ALL, .status = IBV_WC_REM_ACCESS_ERR, .dropped = 1}, -EIO, NULL},
	{{.says = SAYS_ALL, .status = IBV_WC_RETRY_EXC_ERR, .links = 1}, -EIO, NULL},
	/* The server's calls of an older recording. */
	{{.says = SAYS_INJECTED, .vendor = 1}, -EIO, NULL},
	{{.says = SAYS_INJECTED}, -EIO, "the client was not dropped"},
};

TESTS(errors_are_judged, ROWS_OF(errors))
{
	const uint8_t says = errors[_i].why.says;
	const bool broken = errors[_i].told;

	begin("efactory");
	struct recording_op *op = live_sim_record(&ls, HISTORY_GET, 2, 3), at = *op;
	*op = errors[_i].why;
	op->invoked_ns = at.invoked_ns;
	op->returned_ns = at.returned_ns;
	op->key = at.key;
	op->boot = at.boot;
	op->client = at.client;
	op->kind = at.kind;
	op->error = errors[_i].error;
	op->found = 1;
	op->value = second_id;
	for (unsigned i = 0; i < ls.ops; i++)
		ls.op[i].says = says;
	ck_assert_uint_eq(judge(cache, NULL, 0, 0, NULL), broken ? TM_BIT(TM_OK) : 0);
	ck_assert_int_eq(e.cell[TM_OK].judged, says != SAYS_NOTHING);
	const char *text = e.cell[TM_OK].happened.text;
	ck_assert_uint_eq(e.cell[TM_OK].happened.keys, broken);
	ck_assert_int_eq(*text != 0, broken);
	if (errors[_i].error == -EIO && broken)
		ck_assert_msg(!strncmp(text, "user0000000003: GET (client 2, boot 1, ", 38) &&
				      strstr(text, ") failed with EIO for no reason"),
			      "%s", text);
	ck_assert_msg(
		!broken || !strcmp(text + strlen(text) - strlen(errors[_i].told), errors[_i].told),
		"%s", text);
	/* One operation of an older recording: no more. */
	ls.op[0].says = 0;
	ck_assert_uint_eq(judge(cache, NULL, 0, 0, NULL), 0);
	ck_assert(!e.cell[TM_OK].judged);
}

/* Boot 2 began with a newer value than it ended with. */
TEST(keep_counts_from_the_start)
{
	struct cut_start start = {3, {KEY_VALUE, 0}};

	begin("efactory");
	start.at.id = live_sim_record(&ls, HISTORY_PUT, 2, 3)->value;
	ls.store.boot = 2;
	live_sim_record(&ls, HISTORY_GET, 2, 3);
	ls.ops--; /* nothing is recorded of boot 2 */
	for (unsigned i = 0; i < ls.ops; i++)
		if (ls.op[i].key != 3)
			ls.op[i] = (struct recording_op){0};
	ck_assert_uint_eq(judge(cache, NULL, 0, 0, &start), TM_BIT(TM_DUR) | TM_BIT(TM_KEEP));
	ck_assert_ptr_nonnull(strstr(e.cell[TM_KEEP].happened.text,
				     "when boot 2 began, it had the value of PUT 2.1."));
	start.at.id = second_id;
	ck_assert_uint_eq(judge(cache, NULL, 0, 0, &start), 0);
}

/* --- KEEP's durable lower bound from the subsets --- */

static uint8_t *once, *twice;
static uint64_t twice_id;

static void put_twice(struct live_sim *s)
{
	live_sim_put(s, 1, 0);
	live_sim_wait(s);
	once = live_sim_pool(s, false);
	twice_id = live_sim_put(s, 1, 0)->value;
	live_sim_wait(s);
	twice = live_sim_pool(s, false);
}

/* CA's entry points to the second value on the media. In the cache it points to the first one's
 * place again, which has the second value there. With the entry's line alone, the first value is
 * back. */
TEST(keep_knows_what_was_durable)
{
	uint8_t *held, value[VLEN];
	size_t entry = SIZE_MAX, at = 0;

	live_sim_open(&ls, "ca", 1, 10, VLEN);
	live_sim_run(&ls, put_twice);
	live_value(twice_id, 0, value, VLEN);
	for (size_t off = 0; off < ls.len && entry == SIZE_MAX; off += TM_LINE)
		if (memcmp(once + off, twice + off, TM_LINE))
			entry = off;
	live_value(ls.op[0].value, 0, value, VLEN);
	while (memcmp(twice + at, value, VLEN))
		at++;
	held = malloc(ls.len);
	memcpy(held, twice, ls.len);
	memcpy(held + entry, once + entry, TM_LINE);
	live_value(twice_id, 0, held + at, VLEN);
	ck_assert_uint_eq(judge(twice, held, 0, 30, NULL), 0);
	ck_assert(possible() & TM_BIT(TM_KEEP));
	ck_assert_uint_eq(judge(twice, held, 1, 30, NULL), 0);
	ck_assert(possible() & TM_BIT(TM_KEEP));
	/* The subset that is named breaks it when it is what happens. */
	struct exam_subset named = e.cell[TM_KEEP].possible.subset;
	if (named.kind == EXAM_SEED)
		ck_assert(judge(twice, held, named.number, 30, NULL) & TM_BIT(TM_KEEP));
	/* Not where the cache has a third value: the second one was not current any more. */
	live_value(live_sim_record(&ls, HISTORY_PUT, 1, 0)->value, 0, held + at, VLEN);
	judge(twice, held, 0, 30, NULL);
	ck_assert_uint_eq(possible() & TM_BIT(TM_KEEP), 0);
	/* Not where the cache alone has the second value: it was never durable. */
	ls.ops--;
	memcpy(held, twice, ls.len);
	ck_assert_uint_eq(judge(once, held, 0, 30, NULL) & TM_BIT(TM_KEEP), 0);
	ck_assert_uint_eq(possible() & TM_BIT(TM_KEEP), 0);
	free(held);
	free(once);
	free(twice);
	exam_free(&e);
	live_sim_close(&ls);
}

/* --- what does not come up; what is torn --- */

/* By store, as in all_stores: what each says of it. RDMP-KV's log ends before it, CA believes
 * everything, and finds nothing; SAW, Pilaf, RFP, Octopus-KV, HERD, HydraDB and Nessie drop it. */
static const struct {
	const char *live, *fsck;
} noise[] = {
	{"recovery fails with EINVAL", ""},
	{"the server does not start: EINVAL", "recovery says: head 0: not as it was formatted"},
	{"", ""},
	{"in the store's code, in the start of the server", "recovery says: table[0]: "},
	{"", ""},
	{"recovery fails with EINVAL", ""},
	{"", ""},
	{"", "recovery says: applied: "},
	{"", ""},
	{"", ""},
	{"", ""},
	{"", ""},
	{"", ""},
	{"", ""},
};

TESTS(a_pool_of_noise_is_told, ROWS_OF(all_stores))
{
	begin(all_stores[_i]);
	memset(media, 0xa5, ls.len);
	judge(media, NULL, 0, 0, NULL);
	const char *live = e.cell[TM_LIVE].happened.text, *fsck = e.cell[TM_FSCK].happened.text;
	ck_assert_msg(strstr(live, noise[_i].live) && strstr(fsck, noise[_i].fsck),
		      "LIVE: %s; FSCK: %s", live, fsck);
	ck_assert_int_eq(*live != 0, *noise[_i].live != 0);
	ck_assert_int_eq(*fsck != 0, *noise[_i].fsck != 0);
}

TEST(torn_values_are_found)
{
	uint8_t value[VLEN];
	size_t at = 0;

	begin("efactory");
	live_value(second_id, 3, value, VLEN);
	while (memcmp(cache + at, value, VLEN))
		at++;
	memset(cache + at + 64, 0, VLEN - 64);
	unsigned set = judge(cache, NULL, 0, 0, NULL);
	ck_assert_uint_eq(set & TM_BIT(TM_RDA), 0);
	ck_assert_uint_eq(e.torn.torn, 1);
	ck_assert_ptr_nonnull(strstr(e.torn.text, "the first 64 of 200 bytes"));
	ck_assert_ptr_nonnull(strstr(e.torn.text, "and then nothing"));
	cache[at + VLEN - 1] = 7;
	judge(cache, NULL, 0, 0, NULL);
	ck_assert_ptr_nonnull(strstr(e.torn.text, "and then other bytes"));
}

/* CA returns what is there: a new beginning and an old end. */
TEST(a_torn_value_is_read)
{
	uint8_t value[VLEN];
	size_t at = 0;

	begin("ca");
	live_value(second_id, 3, value, VLEN);
	while (memcmp(cache + at, value, VLEN))
		at++;
	live_value(first_id, 3, value, VLEN);
	memcpy(cache + at + 128, value + 128, VLEN - 128);
	ck_assert_uint_eq(judge(cache, NULL, 0, 0, NULL), TM_BIT(TM_RDA));
	ck_assert_uint_eq(e.torn.torn, 1);
	ck_assert_ptr_nonnull(strstr(e.cell[TM_RDA].happened.text,
				     "recovery shows bytes that no PUT of it wrote"));
}

/* --- what is no examination --- */

TEST(bad_input_is_refused)
{
	const struct exam_options options = {0};
	struct cut c;
	char why[300];

	begin("erda");
	live_sim_cut(&ls, cache, NULL, &c);
	ck_assert_int_eq(cut_add_ops(&c, ls.op, ls.ops), 0);
	ck_assert_int_eq(examine(&c, &options, &e, why, sizeof(why)), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "is a recording given twice"));
	cut_free(&c);
	/* A PUT that is in no recording. */
	for (unsigned i = 0; i < ls.ops; i++)
		if (ls.op[i].kind == HISTORY_PUT && ls.op[i].key == 4)
			ls.op[i].invoked_ns = 0;
	judge(cache, NULL, 0, 0, NULL);
	ck_assert_uint_eq(e.not_judged, 1);
	ck_assert_ptr_nonnull(strstr(
		e.why_not, "user0000000004: PUT 1.1.5, whose value was read, is in no recording"));
}

static int parse_start(const char *text, char *why, size_t n)
{
	struct cut c = {0};
	char *copy = strdup(text);
	int error = cut_parse_start(&c, "F", copy, why, n);

	free(copy);
	cut_free(&c);
	return error;
}

static const struct {
	const char *text, *why; /* NULL: it is good */
} starts[] = {
	{"tidemark-recovered 1\nboot 3\nkeys 3\n1 absent\n17 0x0100000200000037\n18 unknown\n",
	 NULL},
	{"tidemark-recovered 1\nboot 3\nkeys 0\n", NULL},
	{"", "F:1: expected tidemark-recovered 1"},
	{"tidemark-recovered 1\nboot x\n", "F:2: expected boot"},
	{"tidemark-recovered 1\nboot 3\nkeys 99999999999\n", "F:3: expected keys"},
	{"tidemark-recovered 1\nboot 3\nkeys 2\n1 absent\n", "F:5: expected the number of a key"},
	{"tidemark-recovered 1\nboot 3\nkeys 1\n1 0x1", "F:4: expected 0x and a PUT's id"},
	{"tidemark-recovered 1\nboot 3\nkeys 2\n1 absent\n1 absent\n",
	 "F:5: expected keys in their order"},
	{"tidemark-recovered 1\nboot 3\nkeys 1\n1 absent\n2 absent\n",
	 "F:5: expected nothing more"},
};

TESTS(where_keys_stood_is_read, ROWS_OF(starts))
{
	char why[300] = "";
	int error = parse_start(starts[_i].text, why, sizeof(why));

	ck_assert_int_eq(error, starts[_i].why ? -EINVAL : 0);
	ck_assert_msg(!starts[_i].why || !strncmp(why, starts[_i].why, strlen(starts[_i].why)),
		      "%s", why);
}

TEST(where_keys_stand_is_written)
{
	char *text = NULL, why[300];
	size_t len;
	struct cut c = {0};

	begin("efactory");
	judge(cache, NULL, 0, 0, NULL);
	FILE *out = open_memstream(&text, &len);
	ck_assert_int_eq(exam_print_start(out, &e), 0);
	fclose(out);
	ck_assert_msg(!cut_parse_start(&c, "F", text, why, sizeof(why)), "%s", why);
	ck_assert_uint_eq(c.start_boot, 1);
	ck_assert_uint_eq(c.starts, KEYS);
	ck_assert_uint_eq(c.start[3].at.id, second_id);
	ck_assert_int_eq(c.start[KEYS - 1].at.state, KEY_ABSENT);
	cut_free(&c);
	free(text);
}

/* --- for the shell --- */

static unsigned many_keys, many_ops;

/* YCSB A, more or less: a few keys are hot. */
static void load_script(struct live_sim *s)
{
	uint64_t state = 88172645463325252;

	for (uint32_t key = 0; key < many_keys; key++)
		live_sim_put(s, 1 + key % 4, key);
	for (unsigned i = 0; i < many_ops; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		uint32_t key = (uint32_t)(state >> 40) % many_keys;
		if (state % 10 < 3)
			key %= 2;
		if (state >> 20 & 1)
			live_sim_put(s, 1 + i % 4, key);
		else
			live_sim_get(s, 1 + i % 4, key);
	}
	media = live_sim_pool(s, true);
	cache = live_sim_pool(s, false);
}

/* --write DIR STORE [KEYS OPERATIONS] */
static int write_files(int argc, char **argv)
{
	char path[3][300];
	static const char *const name[] = {"media", "cache", "history"};

	for (unsigned i = 0; i < 3; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", argv[2], name[i]);
	many_keys = argc > 5 ? (unsigned)atoi(argv[4]) : KEYS;
	many_ops = argc > 5 ? (unsigned)atoi(argv[5]) : 0;
	live_sim_open(&ls, argv[3], many_keys, 200 + many_keys + many_ops, VLEN);
	live_sim_run(&ls, many_ops ? load_script : script);
	live_sim_save_pool(&ls, path[0], media);
	live_sim_save_cache(&ls, path[1], path[0], cache);
	live_sim_save_ops(&ls, path[2]);
	live_sim_close(&ls);
	free(media);
	free(cache);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "--write"))
		return write_files(argc, argv);
	return run_suite(listed_suite(NULL, end));
}
