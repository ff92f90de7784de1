/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What operations cost (checker/models/count.h): Erda's bytes in the sizes of its paper, which a
 * store that writes twice does not reach; round trips and requests as the protocols have them; what
 * belongs to the foreground and what to the background; bytes on the wire.
 */
#include "checker/models/count.h"
#include "core/pmem/pmem.h"
#include "core/verbs_compat.h"
#include "core/stores/erda/client.h"
#include "core/stores/erda/erda.h"
#include "scenarios/stores.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct count count;

static void count_store(const struct tm_store *store, const char *switches, uint32_t klen,
			uint32_t vlen)
{
	struct setup s;
	make_setup(&s, store, NULL, switches);
	int error = count_run(&s, klen, vlen, &count);
	ck_assert_msg(!error, "%s %s: error %d: %s", store->name, switches, error, count.why);
	ck_assert_uint_eq(count.vlen, vlen);
}

static const struct count_row *row(enum count_kind kind)
{
	for (unsigned i = 0; i < count.rows; i++)
		if (count.row[i].kind == kind)
			return &count.row[i];
	ck_abort_msg("no %s was counted", count_kind_names[kind]);
}

static const struct count_figures *part(enum count_kind kind, enum count_part part)
{
	return &row(kind)->op.part[part];
}

/* --- bytes --- */

/* Erda paper, table 1; N is a key and a value. */
static const struct {
	const char *switches;
} erda_ways[] = {{""},		 {"request=send"},     {"packed=on"},	 {"reply_first=on"},
		 {"confirm=on"}, {"byte_offsets=on"},  {"ddio=off"},	 {"domain=wsp"},
		 {"domain=mhp"}, {"create=unordered"}, {"mtu=256"},	 {"transport=iwarp"},
		 {"rqwrb=pm"},	 {"dma_order=any"},    {"ack_early=off"}};

static void expect_paper(enum count_kind kind, double paper)
{
	const struct count_row *r = row(kind);
	for (unsigned i = 0; i < r->of; i++)
		ck_assert_msg(r->all[i].paper == paper,
			      "%s, key %u, value %u, number %u: %g bytes, expected %g",
			      count_kind_names[kind], count.klen, count.vlen, i, r->all[i].paper,
			      paper);
}

TESTS(erda_paper, N(erda_ways))
{
	static const uint32_t keys[] = {1, 8, 19, 32}, values[] = {16, 64, 256, 1024, 4096};
	const char *switches = erda_ways[_i].switches;
	for (unsigned i = 0; i < N(keys) * N(values); i++) {
		uint32_t key = keys[i % N(keys)], value = values[i / N(keys)];
		if (!in_share((int)i) ||
		    (*switches && (key != 19 || (value != 64 && value != 1024))))
			continue; /* it takes some time */
		count_store(store_find("erda"), switches, key, value);
		ck_assert(count.paper);
		expect_paper(COUNT_CREATE, key + 10 + key + value);
		expect_paper(COUNT_UPDATE, 9 + key + value);
		expect_paper(COUNT_DELETE, key + 9);
		expect_paper(COUNT_GET, 0);
		/* Ours is longer by the lengths, and by the offset that an update leaves. */
		ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_FOREGROUND)->nic_bytes +
					  part(COUNT_UPDATE, COUNT_BACKGROUND)->nic_bytes,
				  10 + key + value);
		ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_FOREGROUND)->cpu_bytes +
					  part(COUNT_UPDATE, COUNT_BACKGROUND)->cpu_bytes,
				  8);
	}
}

/* Segments of two objects: each second update writes to the head array that one is opened, which
 * the paper does not count, and which is not hidden. */
TEST(erda_segments)
{
	unsigned opened = 0;
	count_store(store_find("erda"), "seg=small", 8, 16);
	const struct count_row *r = row(COUNT_UPDATE);
	for (unsigned i = 0; i < r->of; i++) {
		ck_assert(r->all[i].paper == 33 || r->all[i].paper == 41);
		opened += r->all[i].paper == 41;
	}
	ck_assert_uint_ge(opened, 2);
	ck_assert_uint_lt(r->times, r->of);
}

/* --- a store that writes twice --- */

/* The object once more, by a second WRITE. */
static int put_object_twice(void *client, const void *key, size_t klen, const void *value,
			    size_t vlen)
{
	struct client *c = client;
	struct erda_entry entries[16];
	struct erda_place place;
	const void *data;
	int rc = erda_store.put(client, key, klen, value, vlen);
	if (rc)
		return rc;
	ck_assert_uint_le(c->geo.hop, N(entries));
	erda_place(&c->geo, key, klen, &place);
	for (unsigned i = 0; i < c->geo.hop; i++) {
		rc = rpc_read(&c->conn, EXPORT_TABLE,
			      c->geo.table_off + (place.home + i) * sizeof(entries[0]),
			      sizeof(entries[0]), &data);
		ck_assert_int_eq(rc, 0);
		memcpy(&entries[i], data, sizeof(entries[0]));
	}
	for (unsigned i = 0; i < c->geo.hop; i++)
		if (entries[i].region != ERDA_EMPTY && entries[i].klen == klen &&
		    !memcmp(entries[i].key, key, klen))
			return rpc_write(&c->conn, erda_export_log(entries[i].head, 0),
					 (uint64_t)erda_newoff(entries[i].region) * c->geo.unit,
					 c->object, c->guess);
	ck_abort_msg("the key has no entry");
}

TEST(written_twice)
{
	struct tm_store twice = erda_store;
	twice.put = put_object_twice;
	count_store(&twice, "", 8, 64);
	ck_assert(row(COUNT_UPDATE)->op.paper == 9 + 72 + (5 + 72));
	ck_assert(row(COUNT_CREATE)->op.paper == 8 + 10 + 72 + (5 + 72));
	ck_assert(row(COUNT_DELETE)->op.paper == 8 + 9);
	ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_FOREGROUND)->nic_bytes, 2 * (10 + 72));
	/* Nothing is different in the end, so this does not show it. */
	ck_assert_uint_le(row(COUNT_UPDATE)->op.changed, 10 + 72 + 8);

	/* The server's second store of the atomic region: a bug that Erda comes with. */
	count_store(&erda_store, "bug=two_stores", 8, 64);
	ck_assert(row(COUNT_UPDATE)->op.paper == 9 + 72 + 4);
	ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_FOREGROUND)->cpu_bytes, 16);
}

/* --- round trips and requests --- */

static const struct cost {
	const char *store, *switches;
	enum count_kind kind;
	unsigned round_trips, handled;
	const char *requests;
} costs[] = {
	/* eFactory: the server gives room, the client writes. A GET without the flag goes by the
	   server. */
	{"efactory", "", COUNT_CREATE, 2, 1, "SEND s.SEND WRITE"},
	{"efactory", "", COUNT_UPDATE, 2, 1, "SEND s.SEND WRITE"},
	{"efactory", "", COUNT_GET, 2, 0, "READ READ"},
	{"efactory", "", COUNT_GET_SOON, 4, 1, "READ READ SEND s.SEND READ"},
	{"efactory", "", COUNT_DELETE, 1, 1, "SEND s.SEND"},
	/* Erda: the same with WRITE_WITH_IMM, and no server in a GET. */
	{"erda", "", COUNT_CREATE, 2, 1, "WRITE_WITH_IMM s.SEND WRITE"},
	{"erda", "", COUNT_UPDATE, 2, 1, "WRITE_WITH_IMM s.SEND WRITE"},
	{"erda", "request=send", COUNT_UPDATE, 2, 1, "SEND s.SEND WRITE"},
	{"erda", "confirm=on", COUNT_UPDATE, 3, 1, "WRITE_WITH_IMM s.SEND WRITE READ"},
	{"erda", "", COUNT_GET, 2, 0, "READ READ"},
	{"erda", "", COUNT_GET_SOON, 2, 0, "READ READ"},
	{"erda", "", COUNT_DELETE, 2, 1, "WRITE_WITH_IMM s.SEND WRITE"},
	/* A WRITE that iWARP calls complete has not come back. */
	{"erda", "transport=iwarp", COUNT_UPDATE, 1, 1, "WRITE_WITH_IMM s.SEND WRITE"},
	{"erda", "transport=iwarp", COUNT_GET, 2, 0, "READ READ"},
	{"forca", "", COUNT_UPDATE, 2, 1, "SEND s.SEND WRITE"},
	{"forca", "", COUNT_GET, 2, 1, "SEND s.SEND READ"},
	{"forca", "", COUNT_GET_MISS, 1, 1, "SEND s.SEND"},
	{"forca", "", COUNT_DELETE, 1, 1, "SEND s.SEND"},
	{"ca", "", COUNT_UPDATE, 2, 1, "SEND s.SEND WRITE"},
	{"ca", "", COUNT_GET, 2, 0, "READ READ"},
	{"saw_imm", "", COUNT_UPDATE, 2, 2, "SEND s.SEND WRITE SEND s.SEND"},
	{"saw_imm", "", COUNT_GET, 2, 0, "READ READ"},
	{"saw_imm", "", COUNT_DELETE, 1, 1, "SEND s.SEND"},
	{"saw_imm", "method=imm", COUNT_UPDATE, 2, 2, "SEND s.SEND WRITE_WITH_IMM s.SEND"},
	{"saw_imm", "method=rpc", COUNT_UPDATE, 1, 1, "SEND s.SEND"},
	{"saw_imm", "method=rpc", COUNT_GET, 1, 1, "SEND s.SEND"},
	{"rdmp_kv", "", COUNT_UPDATE, 2, 2, "SEND s.SEND WRITE WRITE_WITH_IMM s.SEND"},
	{"rdmp_kv", "threshold=16384", COUNT_UPDATE, 1, 1, "SEND s.SEND"},
	{"rdmp_kv", "", COUNT_GET, 2, 1, "SEND s.SEND READ"},
	{"rdmp_kv", "", COUNT_GET_MISS, 1, 1, "SEND s.SEND"},
	{"rdmp_kv", "", COUNT_DELETE, 1, 1, "SEND s.SEND"},
	{"redo_log", "", COUNT_UPDATE, 1, 1, "SEND s.SEND"},
	{"redo_log", "method=raw", COUNT_UPDATE, 2, 1, "SEND s.SEND WRITE READ"},
	{"redo_log", "", COUNT_GET, 1, 1, "SEND s.SEND"},
	{"pilaf", "", COUNT_UPDATE, 1, 1, "SEND s.SEND"},
	{"pilaf", "", COUNT_GET, 2, 0, "READ READ"},
	{"pilaf", "", COUNT_GET_MISS, 8, 0, "READ READ READ READ READ READ READ READ"},
	{"pilaf", "", COUNT_DELETE, 1, 1, "SEND s.SEND"},
	/* RFP: the server is told by memory, and looks at it often, once it is awake. */
	{"rfp", "", COUNT_UPDATE, 2, 0, "WRITE WRITE READ"},
	{"rfp", "", COUNT_GET_MISS, 2, 0, "WRITE WRITE READ"},
	{"rfp", "put_reply=write", COUNT_UPDATE, 1, 0, "WRITE WRITE"},
	{"hydradb", "", COUNT_UPDATE, 1, 0, "WRITE"},
	{"hydradb", "", COUNT_GET, 1, 0, "WRITE"},
	{"hydradb", "", COUNT_DELETE, 1, 0, "WRITE"},
	{"herd", "", COUNT_UPDATE, 1, 0, "WRITE"},
	{"herd", "", COUNT_GET, 1, 0, "WRITE"},
	{"octopus", "", COUNT_UPDATE, 2, 2, "SEND s.SEND WRITE SEND s.SEND"},
	{"octopus", "persist=read", COUNT_UPDATE, 3, 2, "SEND s.SEND WRITE READ SEND s.SEND"},
	{"octopus", "lock=early", COUNT_UPDATE, 2, 1, "SEND s.SEND WRITE"},
	{"octopus", "", COUNT_GET, 3, 2, "SEND s.SEND READ SEND"},
	{"octopus", "lock=early", COUNT_GET, 2, 1, "SEND s.SEND READ"},
	{"octopus", "", COUNT_DELETE, 1, 1, "SEND s.SEND"},
	{"nessie", "", COUNT_CREATE, 6, 0, "WRITE COMMIT READ CMP_AND_SWP COMMIT CMP_AND_SWP"},
	{"nessie", "", COUNT_UPDATE, 7, 0, "WRITE COMMIT READ READ CMP_AND_SWP COMMIT CMP_AND_SWP"},
	{"nessie", "flush=none", COUNT_UPDATE, 4, 0, "WRITE READ READ CMP_AND_SWP"},
	{"nessie", "", COUNT_GET, 2, 0, "READ READ"},
	{"nessie", "", COUNT_GET_MISS, 1, 0, "READ"},
	{"nessie", "", COUNT_DELETE, 5, 0, "READ READ CMP_AND_SWP COMMIT CMP_AND_SWP"},
	/* RemoteLog's methods, within a lock: a round trip for it, and a WRITE that is not waited
	   for. */
	{"remotelog", "method=w1", COUNT_UPDATE, 1 + 1, 1, "CMP_AND_SWP WRITE SEND s.SEND WRITE"},
	{"remotelog", "method=w2", COUNT_UPDATE, 1 + 1, 0, "CMP_AND_SWP WRITE FLUSH WRITE"},
	{"remotelog", "method=w2 flush=read", COUNT_UPDATE, 1 + 1, 0,
	 "CMP_AND_SWP WRITE READ WRITE"},
	{"remotelog", "method=w3", COUNT_UPDATE, 1 + 1, 0, "CMP_AND_SWP WRITE WRITE"},
	{"remotelog", "method=w3 transport=iwarp", COUNT_UPDATE, 1, 0, "CMP_AND_SWP WRITE WRITE"},
	{"remotelog", "method=i1", COUNT_UPDATE, 1 + 1, 1,
	 "CMP_AND_SWP WRITE_WITH_IMM s.SEND WRITE"},
	{"remotelog", "method=s1", COUNT_UPDATE, 1 + 1, 1, "CMP_AND_SWP SEND s.SEND"},
	{"remotelog", "method=cw1", COUNT_UPDATE, 1 + 2, 2,
	 "CMP_AND_SWP WRITE SEND s.SEND WRITE SEND s.SEND WRITE"},
	{"remotelog", "method=cw2", COUNT_UPDATE, 1 + 1, 0,
	 "CMP_AND_SWP WRITE FLUSH ATOMIC_WRITE FLUSH WRITE"},
	{"remotelog", "method=cw2c", COUNT_UPDATE, 1 + 2, 0,
	 "CMP_AND_SWP WRITE FLUSH WRITE FLUSH WRITE"},
	{"remotelog", "method=cw2f", COUNT_UPDATE, 1 + 2, 0,
	 "CMP_AND_SWP WRITE FLUSH WRITE FLUSH WRITE"},
	{"remotelog", "method=cw3", COUNT_UPDATE, 1 + 1, 0, "CMP_AND_SWP WRITE WRITE FLUSH WRITE"},
	{"remotelog", "method=ci2", COUNT_UPDATE, 1 + 2, 2,
	 "CMP_AND_SWP WRITE_WITH_IMM FLUSH WRITE_WITH_IMM FLUSH WRITE"},
};

/* The requests of a part, in their order. */
static void print_requests(const struct count_figures *f, char *buf, size_t n)
{
	uint64_t all = 0;
	buf[0] = '\0';
	for (unsigned i = 0; i < COUNT_SIDES * OPERATIONS; i++)
		all += f->message[i / OPERATIONS][i % OPERATIONS];
	for (unsigned i = 0; i < all; i++)
		snprintf(buf + strlen(buf), n - strlen(buf), "%s%s%s", i ? " " : "",
			 f->request[i].side == COUNT_SERVER ? "s." : "",
			 operations[f->request[i].code].name);
}

TESTS(round_trips, N(costs))
{
	const struct cost *cost = &costs[_i];
	char requests[200];
	count_store(store_find(cost->store), cost->switches, 8, 64);
	const struct count_figures *f = part(cost->kind, COUNT_FOREGROUND);
	const struct count_figures *later = part(cost->kind, COUNT_BACKGROUND);
	print_requests(f, requests, sizeof(requests));
	ck_assert_str_eq(requests, cost->requests);
	ck_assert_msg(f->round_trips == cost->round_trips,
		      "%s %s, %s: %lu round trips, expected %u", cost->store, cost->switches,
		      count_kind_names[cost->kind], (unsigned long)f->round_trips,
		      cost->round_trips);
	ck_assert_uint_eq(later->round_trips, 0);
	ck_assert_uint_eq(f->handled + later->handled, cost->handled);
}

/* --- foreground and background --- */

/* eFactory's verifier makes the value durable and flags it, after the PUT; for a GET that comes
 * first the server does it, and is waited for. */
TEST(background)
{
	count_store(store_find("efactory"), "", 8, 256);
	const struct count_figures *now = part(COUNT_UPDATE, COUNT_FOREGROUND);
	const struct count_figures *later = part(COUNT_UPDATE, COUNT_BACKGROUND);
	ck_assert_uint_eq(now->nic_bytes, 256);
	ck_assert_uint_eq(later->nic_bytes, 0);
	ck_assert_uint_ge(now->fences, 2); /* header before entry */
	ck_assert_uint_eq(later->flushed, 256 / LINE + 1);
	ck_assert_uint_eq(later->fences, 1);
	uint64_t flag = later->cpu_bytes;
	ck_assert(flag == 1 || flag == 2);
	ck_assert_uint_eq(part(COUNT_GET_SOON, COUNT_FOREGROUND)->cpu_bytes, flag);
	ck_assert_uint_eq(part(COUNT_GET_SOON, COUNT_FOREGROUND)->flushed, 256 / LINE + 1);
	ck_assert_uint_eq(part(COUNT_GET, COUNT_FOREGROUND)->flushed, 0);
	ck_assert_uint_gt(part(COUNT_CLEAN, COUNT_BACKGROUND)->cpu_bytes, COUNT_REPEATS * 256);
	ck_assert_uint_eq(part(COUNT_CLEAN, COUNT_FOREGROUND)->cpu_bytes, 0);

	count_store(store_find("efactory"), "bug=bg_no_flush", 8, 256);
	ck_assert_uint_lt(part(COUNT_UPDATE, COUNT_BACKGROUND)->flushed, 256 / LINE + 1);

	/* The server's work for a SEND whose reply is not awaited comes when the append has
	 * returned. */
	count_store(store_find("remotelog"), "method=s4 transport=iwarp", 8, 256);
	ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_FOREGROUND)->cpu_bytes, 0);
	ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_FOREGROUND)->handled, 0);
	ck_assert_uint_ge(part(COUNT_UPDATE, COUNT_BACKGROUND)->cpu_bytes, 256);
	ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_BACKGROUND)->handled, 1);

	/* Nothing flushes in Erda's update. */
	count_store(store_find("erda"), "", 8, 256);
	for (unsigned p = 0; p < COUNT_PARTS; p++) {
		ck_assert_uint_eq(part(COUNT_UPDATE, p)->flushed, 0);
		ck_assert_uint_eq(part(COUNT_UPDATE, p)->fences, 0);
	}
}

/* --- the wire --- */

/* Ethernet, IPv4, UDP, BTH and ICRC are 58 bytes; RETH 16, ImmDt 4, AETH 4; payload in words. */
TEST(wire)
{
	const uint64_t ack = 58 + 4, read = 58 + 16, entry = sizeof(struct erda_entry);
	count_store(store_find("erda"), "", 8, 61);
	/* The object has 79 bytes, the entry 48. */
	ck_assert_uint_eq(part(COUNT_GET, COUNT_FOREGROUND)->packets, 4);
	ck_assert_uint_eq(part(COUNT_GET, COUNT_FOREGROUND)->wire_bytes,
			  read + (ack + entry) + read + (ack + 80));
	/* In packets of 256 bytes: 522 are three; the middle one has no AETH, and only a WRITE's
	 * first a RETH. */
	count_store(store_find("erda"), "mtu=256 request=send", 8, 504);
	ck_assert_uint_eq(part(COUNT_GET, COUNT_FOREGROUND)->packets, 6);
	ck_assert_uint_eq(part(COUNT_GET, COUNT_FOREGROUND)->wire_bytes,
			  read + (ack + entry) + read + (ack + 256) + (58 + 256) + (ack + 12));
	uint64_t small = part(COUNT_UPDATE, COUNT_FOREGROUND)->wire_bytes;
	ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_FOREGROUND)->packets, 8);
	count_store(store_find("erda"), "mtu=1024 request=send", 8, 504);
	ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_FOREGROUND)->packets, 6);
	ck_assert_uint_eq(part(COUNT_UPDATE, COUNT_FOREGROUND)->wire_bytes, small - 2 * 58);
}

/* --- what is written where --- */

TEST(lines_and_changes)
{
	count_store(store_find("ca"), "", 8, 128);
	const struct count_op *op = &row(COUNT_UPDATE)->op;
	ck_assert_uint_eq(op->part[0].nic_bytes, 128);
	ck_assert_uint_eq(op->part[0].cpu_bytes, 8);
	ck_assert_uint_eq(op->lines, 2 + 1);
	ck_assert_uint_gt(op->changed, 120);
	ck_assert_uint_le(op->changed, 128 + 8);
	ck_assert(op->paper == 128 + 8 && !count.paper);
	/* By region. */
	double sum = 0;
	for (unsigned i = 0; i < count.fields; i++) {
		ck_assert(op->field_bytes[i] == (!strcmp(count.field[i], "table") ? 8
						 : !strcmp(count.field[i], "log") ? 128
										  : 0));
		sum += op->field_bytes[i];
	}
	ck_assert(sum == 136);
}

static void same_but_fences(const struct count_figures *plain, struct count_figures other)
{
	ck_assert_uint_ge(other.fences, plain->fences);
	other.fences = plain->fences;
	ck_assert_mem_eq(plain, &other, sizeof(other));
}

/* CPUs with store buffers: the same in another order; what is flushed and not fenced, a locked
 * instruction fences. */
TEST(store_buffers)
{
	static struct count plain;
	static const char *const names[] = {"efactory", "erda", "forca"};
	for (unsigned i = 0; i < N(names); i++) {
		count_store(store_find(names[i]), "", 8, 64);
		plain = count;
		count_store(store_find(names[i]), "store_buffer=4", 8, 64);
		for (unsigned r = 0; r < plain.rows; r++)
			for (unsigned p = 0; p < COUNT_PARTS && plain.row[r].kind < COUNT_CLEAN;
			     p++)
				same_but_fences(&plain.row[r].op.part[p], count.row[r].op.part[p]);
	}
}

TEST(same_again)
{
	static struct count first;
	count_store(store_find("efactory"), "", 8, 64);
	first = count;
	count_store(store_find("erda"), "", 19, 64);
	count_store(store_find("efactory"), "", 8, 64);
	ck_assert_mem_eq(&first, &count, sizeof(count));
}

/* --- what goes wrong --- */

static int put_fails(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	if (klen > 2 && !memcmp((const char *)key + klen - 2, "12", 2))
		return -ENOSPC;
	return erda_store.put(client, key, klen, value, vlen);
}

static int get_foreign(void *client, const void *key, size_t klen, void *value, size_t cap,
		       size_t *vlen)
{
	int rc = erda_store.get(client, key, klen, value, cap, vlen);
	if (!rc && cap)
		((uint8_t *)value)[*vlen - 1] ^= 1;
	return rc;
}

static int format_fails(const struct tm_env *env)
{
	return -EINVAL;
}

TEST(trouble)
{
	struct tm_store bad = erda_store;
	struct setup s;
	bad.put = put_fails;
	make_setup(&s, &bad, NULL, "");
	ck_assert_int_eq(count_run(&s, 8, 16, &count), -EPROTO);
	ck_assert_str_eq(count.why, "create of k0000012 fails with ENOSPC");
	ck_assert_uint_gt(count.rows, 0);
	bad = erda_store;
	bad.get = get_foreign;
	make_setup(&s, &bad, NULL, "");
	ck_assert_int_eq(count_run(&s, 8, 16, &count), -EPROTO);
	ck_assert_ptr_nonnull(strstr(count.why, "bytes that no PUT wrote"));
	bad = erda_store;
	bad.format = format_fails;
	make_setup(&s, &bad, NULL, "");
	ck_assert_int_eq(count_run(&s, 8, 16, &count), -EIO);
	ck_assert_ptr_nonnull(strstr(count.why, "format() returns EINVAL"));
}

RUN_TESTS(NULL, NULL)
