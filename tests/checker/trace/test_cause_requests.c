/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a cause says of the RDMA requests of a store: which rule a request that was to make a write
 * durable has failed, and that a compare-and-swap or a call failed and the store went on. A store
 * of a few lines, whose clients do everything: a key has a word that says which of its two rooms
 * holds its value.
 */
#include "checker/cause/cause.h"
#include "core/pmem/hooks.h"
#include "core/rt/rt.h"
#include "core/stores/rpc.h"
#include "core/verbs_compat.h"
#include "tests/suite.h"

#define KEYS	  4
#define KEY_BYTES 256 /* the word, and two rooms, each a line away from the others */
#define ROOM	  64

enum { FLUSH, WORD, ERROR, BY, KNOBS };
enum { FLUSH_NONE, FLUSH_RIGHT, FLUSH_RANGE, FLUSH_BEFORE, FLUSH_OTHER, FLUSH_VISIBLE };
enum { WORD_ASKED, WORD_BLIND };

struct room {
	uint64_t vlen;
	uint8_t value[ROOM - sizeof(uint64_t)];
};

/* The server is asked to store it. */
struct message {
	uint64_t off;
	struct room room;
};

struct client {
	struct tm_params params;
	struct rpc_conn conn, other;
};

/* --- the store --- */

static size_t handle(void *pm, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct message message;
	memcpy(&message, msg->bytes, sizeof(message));
	sim_memcpy((uint8_t *)pm + message.off, &message.room, sizeof(message.room));
	return sizeof(uint64_t);
}

static int serve(const struct tm_env *env)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
			   IBV_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_FLUSH_GLOBAL;
	struct rpc_server *server = calloc(1, sizeof(*server));
	int rc = server ? rpc_server_init(server, env, sizeof(struct message), handle, env->pm)
			: -ENOMEM;
	if (rc)
		return rc;
	server->qp_access |= (unsigned)access;
	rc = rpc_server_export(server, env->pm, env->pm_len, access);
	if (!rc)
		rc = rpc_server_listen(server);
	return rc ? rc : rt_spawn("server", rpc_server_task, server);
}

static int open_client(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	*out = client;
	client->params = *env->params;
	int rc = rpc_open(&client->conn, env, sizeof(struct message), KEY_BYTES, NULL);
	return rc ? rc : rpc_open_further(&client->other, env, sizeof(struct message), KEY_BYTES);
}

static uint64_t slot_of(const char *key)
{
	return (uint64_t)(key[1] - '1') * KEY_BYTES;
}

static int read_word(struct client *client, uint64_t slot, uint64_t *word)
{
	const void *data;
	int rc = rpc_read(&client->conn, 0, slot, sizeof(*word), &data);
	if (!rc)
		memcpy(word, data, sizeof(*word));
	return rc;
}

/* For visibility alone, which no store asks for. */
static int flush_visible(struct rpc_conn *conn, uint64_t off)
{
	struct ibv_send_wr wr = {.send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;
	flush_wr(&wr, conn->region[0].rkey, conn->region[0].base + off, ROOM, IBV_FLUSH_GLOBAL,
		 IBV_FLUSH_RANGE);
	int rc = -ibv_post_send(conn->qp, &wr, &bad);
	while (!rc && !ibv_poll_cq(conn->cq, 1, &wc))
		rt_yield();
	return rc ? rc : wc.status == IBV_WC_SUCCESS ? 0 : -EIO;
}

static int flush(struct client *client, uint64_t off, uint8_t when)
{
	const uint8_t how = client->params.knob[FLUSH];
	struct rpc_conn *conn = how == FLUSH_OTHER ? &client->other : &client->conn;
	if (how == FLUSH_NONE || (how == FLUSH_BEFORE) != (when == FLUSH_BEFORE))
		return 0;
	if (how == FLUSH_VISIBLE)
		return flush_visible(conn, off);
	return rpc_flush(conn, 0, how == FLUSH_RANGE ? off ^ 2 * KEY_BYTES : off, ROOM);
}

static int write_room(struct client *client, uint64_t off, const struct room *room)
{
	const struct message message = {off, *room};
	if (!client->params.knob[BY])
		return rpc_write(&client->conn, 0, off, room, sizeof(*room));
	return rpc_call(&client->conn, &message, sizeof(message), &(uint64_t){0}, sizeof(uint64_t),
			NULL);
}

static int put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct client *client = arg;
	struct room room = {.vlen = vlen};
	uint64_t slot = slot_of(key), word, found;
	if (vlen > sizeof(room.value))
		return -EMSGSIZE;
	memcpy(room.value, value, vlen);
	for (;;) {
		int rc = read_word(client, slot, &word);
		uint64_t next = word == 1 ? 2 : 1, off = slot + next * ROOM;
		if (!rc)
			rc = flush(client, off, FLUSH_BEFORE);
		if (!rc)
			rc = write_room(client, off, &room);
		if (rc && client->params.knob[ERROR])
			return 0; /* it has not been written */
		if (!rc)
			rc = flush(client, off, FLUSH_RIGHT);
		if (client->params.knob[WORD] == WORD_BLIND)
			word = 0; /* as if nothing had been put */
		if (!rc)
			rc = rpc_cas(&client->other, 0, slot, word, next, &found);
		if (rc || found == word || client->params.knob[WORD] == WORD_BLIND)
			return rc;
	}
}

static int get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct client *client = arg;
	struct room room;
	const void *data;
	uint64_t word = 0;
	int rc = read_word(client, slot_of(key), &word);
	if (!rc && word)
		rc = rpc_read(&client->conn, 0, slot_of(key) + word * ROOM, sizeof(room), &data);
	if (rc || !word)
		return rc ? rc : -ENOENT;
	memcpy(&room, data, sizeof(room));
	*vlen = room.vlen;
	memcpy(value, room.value, room.vlen < cap ? room.vlen : cap);
	return room.vlen && room.vlen <= sizeof(room.value) ? 0 : -ENOENT;
}

static int del(void *client, const void *key, size_t klen)
{
	return -ENOSYS;
}

static int nothing(const struct tm_env *env)
{
	return 0;
}

static void check(const struct tm_env *env, struct tm_fsck *fsck)
{
}

static size_t bytes(const struct tm_params *params)
{
	return KEYS * KEY_BYTES;
}

static unsigned regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	ck_assert_uint_gt(max, 0);
	*out = (struct tm_region){"pool", 0, bytes(params)};
	return 1;
}

static const struct tm_knob knobs[] = {
	[FLUSH] = {"flush", "none right range before other visible", "the FLUSH of a value"},
	[WORD] = {"word", "asked blind", "what the compare-and-swap expects"},
	[ERROR] = {"error", "told ignored", "of a WRITE that could not be posted"},
	[BY] = {"by", "client server", "who writes a value"},
	[KNOBS] = {NULL, NULL, NULL},
};
static const struct tm_variant variants[] = {{NULL, NULL, NULL, 0}};
static const struct tm_store store = {
	.name = "rooms",
	.what = "of a test",
	.promises = TM_BIT(TM_OK) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR),
	.knobs = knobs,
	.variants = variants,
	.pm_bytes = bytes,
	.regions = regions,
	.format = nothing,
	.recover = nothing,
	.serve = serve,
	.fsck = check,
	.open = open_client,
	.put = put,
	.get = get,
	.del = del,
};

static const struct tm_store *find_store(const char *name)
{
	return strcmp(name, store.name) ? NULL : &store;
}

/* --- its causes --- */

#define LOSES \
	"deviate c1 c1.put1 power after return 1: fails\ndeviate line pool+0x80: version 0 of 1\n"

static const struct {
	const char *config, *knob, *clients, *deviations, *contract;
	const char *says, *says_not; /* NULL: the contract holds; nothing */
} table[] = {
	{"ddio=off", "flush none", "client 1: put k1 8\n",
	 "deviate server/qp1 c1.put1 draining message 2 packet 1 line 2: delay 100ms\n" LOSES,
	 "DUR", "no flush covers it, and by itself it had not come to PM yet", "RDMA FLUSH"},
	{"ddio=off", "flush right", "client 1: put k1 8\n", LOSES, "DUR", NULL, NULL},
	{"ddio=on", "flush right", "client 1: put k1 8\n", LOSES, "DUR",
	 "us does not reach the cache (ddio=on); no flush of the CPU covers it", NULL},
	{"ddio=off", "flush range", "client 1: put k1 8\n",
	 "deviate server/qp1 c1.put1 draining message 2 packet 1 line 2: delay 100ms\n" LOSES,
	 "DUR", "the RDMA FLUSH of client 1's PUT k1 at", NULL},
	{"ddio=off", "flush range", "client 1: put k1 8\n",
	 "deviate server/qp1 c1.put1 draining message 2 packet 1 line 2: delay 100ms\n" LOSES,
	 "DUR", "us is of another range, pool+0x280..0x2bf; no flush of the CPU covers it", NULL},
	{"ddio=off", "flush before", "client 1: put k1 8\n",
	 "deviate server/qp1 c1.put1 draining message 3 packet 1 line 2: delay 100ms\n" LOSES,
	 "DUR", "us came before it; no flush of the CPU covers it", NULL},
	{"ddio=off", "flush other", "client 1: put k1 8\n",
	 "deviate server/qp1 c1.put1 draining message 2 packet 1 line 2: delay 100ms\n" LOSES,
	 "DUR", "us is of another connection, and covers only what that one writes", NULL},
	{"ddio=off", "flush visible", "client 1: put k1 8\n",
	 "deviate server/qp1 c1.put1 draining message 2 packet 1 line 2: delay 100ms\n" LOSES,
	 "DUR", "us asks for visibility alone; no flush of the CPU covers it", NULL},
	{"ddio=off", "by server\nknob flush=right", "client 1: put k1 8\n",
	 "deviate c1 c1.put1 power after return 1: fails\n"
	 "deviate line pool+0x80: version 0 of 8\n",
	 "DUR", "us covers only what its own connection writes; no flush of the CPU covers it",
	 NULL},
	{"ddio=on", "word asked", "client 1: put k1 8, get k1\n", "", "LIN", NULL, NULL},
	{"ddio=on", "word blind", "client 1: put k1 8, get k1\n", "", "LIN",
	 "the compare-and-swap of client 1's PUT k1 at pool+0x0 failed at", NULL},
	{"ddio=on", "word blind", "client 1: put k1 8, get k1\n", "", "LIN",
	 "us (expected 0, found 0x1), and the operation went on as if that had succeeded", "RDMA"},
	{"calls=fail", "error told", "client 1: put k1 8, get k1\n",
	 "deviate c1 c1.put1 call verbs/post_send 2: fails\n", "LIN", NULL, NULL},
	{"calls=fail", "error ignored", "client 1: put k1 8, get k1\n",
	 "deviate c1 c1.put1 call verbs/post_send 2: fails\n", "LIN",
	 "ibv_post_send fails: ENOMEM), and the operation went on as if that had succeeded", NULL},
};

static void read_row(int i, struct trace *t)
{
	struct input_error error = {0};
	char text[1024];
	snprintf(text, sizeof(text),
		 "tidemark-trace 1\nstore rooms\nvariant default\nconfig %s\nknob %.*s=%s\n"
		 "keys k1 8, k3 8\n%s%sbroken %s: it is\n",
		 table[i].config, (int)strcspn(table[i].knob, " "), table[i].knob,
		 strchr(table[i].knob, ' ') + 1, table[i].clients, table[i].deviations,
		 table[i].contract);
	FILE *in = fmemopen(text, strlen(text), "r");
	ck_assert_ptr_nonnull(in);
	ck_assert_msg(!trace_read_file(in, t, find_store, &error), "row %d, line %u: %s", i,
		      error.line, error.message);
	fclose(in);
}

TESTS(request_is_told, sizeof(table) / sizeof(table[0]))
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct replay_outcome *out = calloc(1, sizeof(*out));
	struct event_log log = {0};
	struct where *where = where_new();
	static struct trace t;
	static struct cause cause;
	ck_assert(ex && out && where);
	read_row(_i, &t);
	const struct replay_audience audience = event_log_audience(&log, &t.deviations);
	ck_assert_int_eq(explore_open(ex, &t.setup, &explore_default), 0);
	ck_assert_int_eq(replay(ex, &t.deviations, false, &audience, out), 0);
	ck_assert_int_eq(cause_find(ex, &t, &log, out, where, &cause), 0);
	ck_assert_msg(out->verdict[t.contract].broken == (table[_i].says != NULL),
		      "row %d: %s, line %u is unused", _i, out->text[t.contract],
		      out->unused ? out->unused->line : 0);
	if (table[_i].says)
		ck_assert_msg(strstr(cause.sentence, table[_i].says) != NULL, "row %d: %s", _i,
			      cause.sentence);
	ck_assert_msg(!table[_i].says_not || !strstr(cause.sentence, table[_i].says_not),
		      "row %d: %s", _i, cause.sentence);
	explore_close(ex);
	event_log_free(&log);
	trace_free(&t);
	where_free(where);
	free(out);
	free(ex);
}

RUN_TESTS(NULL, NULL)
