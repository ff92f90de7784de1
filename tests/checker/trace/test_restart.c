/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is left of a life on the wire, as stores see it: a WRITE of a former server's and a former
 * client's process that arrives when new ones serve and are served (the knob restart_reuse); and
 * what a client's NIC still does when the client's process, or its machine, is gone. Each case is a
 * trace; what it comes to is what a GET at its end returns.
 */
#include "checker/trace/replay.h"
#include "checker/trace/trace.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

/* What the last GET of this client returns: the number of the client's PUT, 0: what was loaded. */
static unsigned last_get(const struct history *h, unsigned client)
{
	for (unsigned i = h->ops; i-- > 0;) {
		const struct history_op *get = &h->op[i];
		unsigned nth = 0;

		if (get->kind != HISTORY_GET || get->client != client)
			continue;
		ck_assert_int_eq(get->error, 0);
		ck_assert_int_ge(get->value, 0);
		for (int32_t k = 0; k <= get->value; k++)
			nth += h->op[k].kind == HISTORY_PUT && h->op[k].client == 1;
		return h->op[get->value].client ? nth : 0;
	}
	ck_abort_msg("client %u has read nothing", client);
}

/* Replay it. explore_close(), trace_free(). */
static void replay_text(const char *text, struct explorer *ex, struct trace *t,
			struct replay_outcome *out)
{
	FILE *in = fmemopen((char *)text, strlen(text), "r");
	struct input_error err;

	ck_assert_ptr_nonnull(in);
	ck_assert_msg(!trace_read_file(in, t, store_find, &err), "line %u: %s\n%s", err.line,
		      err.message, text);
	ck_assert_int_eq(explore_open(ex, &t->setup, &explore_default), 0);
	ck_assert_int_eq(replay(ex, &t->deviations, false, NULL, out), 0);
	ck_assert_msg(!out->unused, "line %u does not apply:\n%s",
		      out->unused ? out->unused->line : 0, text);
	fclose(in);
}

/* Replay it: last_get() of `client`, and whether LIN broke. */
static unsigned outcome(const char *text, unsigned client, bool *lin)
{
	static struct explorer ex;
	struct replay_outcome *out = calloc(1, sizeof(*out));
	struct trace t;

	ck_assert_ptr_nonnull(out);
	replay_text(text, &ex, &t, out);
	unsigned got = last_get(ex.worlds.history, client);
	if (lin)
		*lin = out->verdict[TM_LIN].broken;
	explore_close(&ex);
	trace_free(&t);
	free(out);
	return got;
}

/* --- a former life's WRITE --- */

/*
 * Client 1's PUT is acknowledged while its WRITE is on the wire: on iWARP, where sent is completed,
 * and where the message that asks for the flush has a queue pair of its own. Then both processes
 * end. The new client's queue pair has the old one's number, hence numbers its packets from the
 * same one on. The old WRITE comes when that number is next, and the new one counts as a
 * repetition: it is acknowledged, and dropped.
 */
static const struct {
	const char *store, *config, *knob;
	unsigned last_post; /* of a PUT, while the server lives */
	unsigned message;   /* the WRITE of the value */
	unsigned finds;	    /* the GET, if the old WRITE lands */
	const char *more;
} lives[] = {
	/* In place of the new one. What follows it would tell the server that it is missing;
	 * a server that lives needs it, to free the lock. */
	{"remotelog", "", "knob qps=two\n", 6, 3, 1,
	 "deviate c1/qp1 c1.put1 message 4 packet 1 try 1: lose\n"},
	/* Elsewhere: the new object is not whole. */
	{"erda", " transport=iwarp", "", 3, 2, 0, ""},
};

enum who { SERVER = 1, CLIENT = 2, BOTH = 3 };

static unsigned after(int i, const char *reuse, enum who who, bool *lin)
{
	char text[1000], dies[100] = "";

	if (who & SERVER)
		snprintf(dies, sizeof(dies), "deviate c1 c1.put1 before post %u: server dies\n",
			 lives[i].last_post);
	snprintf(text, sizeof(text),
		 "tidemark-trace 1\nstore %s\nconfig restart_reuse=%s%s\n%skeys k1 8\n"
		 "client 1: put k1 8, %s, pause, put k1 8, get k1\n%s"
		 "deviate c1/qp1 c1.put1 message %u packet 1 try 1: delay 100ms\n%s"
		 "deviate c1 c1.put2 before post 3: delay 100ms\n"
		 "broken none\n",
		 lives[i].store, reuse, lives[i].config, lives[i].knob,
		 who & CLIENT ? "die" : "pause", dies, lives[i].message,
		 who & SERVER ? lives[i].more : "");
	return outcome(text, 1, lin);
}

TESTS(old_write_in_a_new_life, sizeof(lives) / sizeof(lives[0]))
{
	bool lin;

	ck_assert_uint_eq(after(_i, "on", BOTH, &lin), lives[_i].finds);
	ck_assert(lin);
	ck_assert_uint_eq(after(_i, "off", BOTH, &lin), 2);
	ck_assert(!lin);
	/* The server has not begun anew: the client's queue pair there is another one. */
	ck_assert_uint_eq(after(_i, "on", CLIENT, &lin), 2);
}

/* --- a client that is gone --- */

/* The first packet of a WRITE of three is lost, and the client ends before its next request. */
static unsigned left_behind(const char *how)
{
	char text[600];

	snprintf(text, sizeof(text),
		 "tidemark-trace 1\nstore remotelog\nkeys k1 8\n"
		 "client 1: put k1 3000\nclient 2: pause, get k1\n"
		 "deviate c1 c1.put1 before post 4: %s\n"
		 "deviate c1/qp1 c1.put1 message 3 packet 1 try 1: lose\n"
		 "broken none\n",
		 how);
	return outcome(text, 2, NULL);
}

/* A process's NIC goes on for a while, and repeats what the server asks it for; a machine's does
 * not, and a part of the value is there. */
TEST(process_or_machine)
{
	ck_assert_uint_eq(left_behind("delay for ever"), 1);
	ck_assert_uint_eq(left_behind("process dies"), 1);
	ck_assert_uint_eq(left_behind("machine dies"), 0);
}

/* --- after a server's death --- */

/* The end of the run; *live: LIVE does not break. */
static int end_of(const char *text, bool *live)
{
	static struct explorer ex;
	struct replay_outcome *out = calloc(1, sizeof(*out));
	struct trace t;
	int end;

	ck_assert_ptr_nonnull(out);
	replay_text(text, &ex, &t, out);
	end = ex.worlds.world[0].result.end;
	*live = !out->verdict[TM_LIVE].broken;
	explore_close(&ex);
	trace_free(&t);
	free(out);
	return end;
}

/* What proves life at the end waits for the lock of a client that is dead, as the store has
 * declared of its operations. It is not in the history. */
TEST(proof_of_life_waits)
{
	bool live;

	ck_assert_int_eq(end_of("tidemark-trace 1\nstore remotelog\nkeys k1 8, k2 8\n"
				"client 1: put k1 8, put k2 8\n"
				"deviate server/server c1.put1 before post 1: server dies\n"
				"deviate c1 c1.put2 before completion 4: delay for ever\n"
				"broken none\n",
				&live),
			 SIM_BUDGET);
	ck_assert(live);
}

/* What a dead server's CPU has stored is in memory before the next process looks at it: here the
 * lock of an entry, which no later process would free. */
TEST(store_buffers_are_empty)
{
	bool live;

	ck_assert_int_eq(end_of("tidemark-trace 1\nstore pilaf\nconfig store_buffer=4\n"
				"keys k1 128\nclient 1: put k1 128\n"
				"deviate server/server c1.put1 buffer store 7: delay 30us\n"
				"deviate server/server c1.put1 before store 8: server dies\n"
				"broken none\n",
				&live),
			 SIM_DONE);
	ck_assert(live);
}

RUN_TESTS(NULL, NULL)
