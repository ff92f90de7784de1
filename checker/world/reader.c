/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that the workload does not name: that of the load phase, and readers after it all. */
#include "checker/world/world_client.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "checker/world/checker_mutant.h"
#include "checker/world/explained.h"
#include "core/text/error_name.h"

#define CLEANING_NS 1000000	/* most cleanings have ended after that */
#define LOOK_MAX_NS 1000000000	/* between two looks at one that takes longer */
#define GIVEN_UP_NS 20000000000 /* longer than any store waits for a client that died */
/* The value that proves life: no workload has so many PUTs that it has this one. */
#define LIFE_CLIENT TM_MAX_CLIENTS
#define LIFE_NTH    UINT16_MAX

/* The n-th operation of the store's own of clients that try what it can: one kind after the other,
 * on the first keys, with a value of that length. */
static struct workload_op trial(const struct setup *s, unsigned n, uint32_t vlen)
{
	struct workload_op op = {
		.kind = OP_CALL, .call = (uint8_t)(n % setup_calls(s)), .nth = (uint16_t)(n + 1)};
	for (unsigned k = 0; k < workload_op_keys(&s->w, &op) && s->w.keys; k++)
		op.keys[k] = (uint16_t)(k % s->w.keys);
	op.vlen = workload_op_valued(&s->w, &op) ? vlen : 0;
	return op;
}

/* A workload may name no key. */
static bool has_keys_for(const struct setup *s, const struct workload_op *op)
{
	return s->w.keys || !workload_op_keys(&s->w, op);
}

/* As many operations of the store's own that take a value as it was made for. */
static void fill_with_calls(struct world_client *c)
{
	const struct setup *s = c->world->setup;
	struct tm_answer *answer;
	unsigned calls = setup_calls(s), valued = 0;
	for (unsigned i = 0; i < calls; i++)
		valued += s->store->calls[i].value;
	for (unsigned n = 0, done = 0; valued && done < s->params.updates; n++) {
		struct workload_op op = trial(s, n, s->params.max_vlen);
		if (!workload_op_valued(&s->w, &op))
			continue;
		done++;
		if (!has_keys_for(s, &op))
			continue;
		int error = client_run_call(c, &op, &answer);
		if (error) {
			world_refused(c->world, "run", error,
				      "%s, update %u of %u, for which it was made, fails: ",
				      s->store->calls[op.call].name, done, s->params.updates);
			return;
		}
	}
}

/* As many updates as the store was made for, with values of the greatest length: it has room for
 * them. Then more, until there is no room: other operations must still work then. */
static void fill_up(struct world_client *c, unsigned done)
{
	struct world *w = c->world;
	const struct setup *s = w->setup;
	uint8_t *buf = sim_alloc(w->sim, s->params.max_vlen);
	unsigned room = s->params.updates, refused = 0;
	size_t len;
	if (!setup_puts(s)) {
		fill_with_calls(c);
		return;
	}
	for (unsigned n = done; n < 3 * room && refused < 2; n++) {
		const struct workload_key *key = &s->w.key[n % s->w.keys];
		/* Others each time: a store that gives room away again would seem to do the same
		 * for ever. */
		workload_value(LIFE_CLIENT, n % LIFE_NTH, n % s->w.keys, buf, s->params.max_vlen);
		sim_forget_failed_call(w->sim);
		int error = s->store->put(c->handle, key->name, key->klen, buf, s->params.max_vlen);
		if (error && n < room) {
			world_refused(w, "put", error,
				      "update %u of %u, for which it was made, fails: ", n + 1,
				      room);
			return;
		}
		if (error && error != -ENOSPC) {
			world_refused(w, "put", error,
				      "after the %u updates for which it was made, another one is "
				      "not refused with ENOSPC: ",
				      room);
			return;
		}
		refused += error != 0;
	}
	const struct workload_key *key = &s->w.key[0];
	sim_forget_failed_call(w->sim);
	int error = s->store->get(c->handle, key->name, key->klen, buf, s->params.max_vlen, &len);
	if (error && error != -ENOENT)
		world_refused(w, "get", error, "when it is full, GET %s fails: ", key->name);
}

void load_main(void *arg)
{
	struct world_client *c = arg;
	struct world *w = c->world;
	const struct setup *s = w->setup;
	unsigned v;
	client_open(c);
	for (v = 0; v < s->values && s->value[v].client == 0; v++) {
		const struct workload_key *key = &s->w.key[s->value[v].key];
		sim_forget_failed_call(w->sim);
		int error = s->store->put(c->handle, key->name, key->klen, s->value[v].bytes,
					  s->value[v].vlen);
		if (error) {
			world_refused(w, "put", error,
				      "the load phase's PUT %s fails: ", key->name);
			world_failed(w, c->number, TM_PUT, error);
			break;
		}
	}
	if (w->filling && !w->result.live_broken)
		fill_up(c, v);
	sim_sleep(w->sim, AFTERMATH_NS); /* what was written lands */
	sim_stop(w->sim, SIM_DONE);
}

/* The readers come when the run is over, too, where nothing has recovered. */
static const char *proved_when(const struct world *w)
{
	return w->machine ? "after recovery" : "after the run";
}

/* Each operation of the store's own once. */
static void prove_by_calls(struct world_client *c)
{
	struct world *w = c->world;
	const struct setup *s = w->setup;
	struct tm_answer *answer;
	c->apart = TM_CALL;
	for (unsigned i = 0; i < setup_calls(s); i++) {
		struct workload_op op = trial(s, i, s->life_vlen);
		if (!has_keys_for(s, &op))
			continue;
		/* Numbers after those of looks and of a life. */
		op.nth = (uint16_t)(2 * setup_looks(s) + LIFE_OPS + i + 1);
		actor_label(sim_actor(w->sim),
			    (struct op_label){(uint8_t)c->number, OP_CALL, op.nth});
		int error = client_run_call(c, &op, &answer);
		if (!error)
			continue;
		/* What was injected when it looked may have cost it its connection. */
		if (error_explained(w, c->number, TM_CALL, error))
			return;
		world_refused(w, "run", error, "%s, %s fails: ", proved_when(w),
			      s->store->calls[i].name);
		world_failed(w, c->number, TM_CALL, error);
		return;
	}
}

static void prove_life(struct world_client *c, uint8_t *buf)
{
	struct world *w = c->world;
	const struct setup *s = w->setup;
	sim_set_observer(w->sim, NULL, NULL);
	if (!setup_puts(s)) {
		prove_by_calls(c);
		return;
	}
	const struct workload_key *key = &s->w.key[0];
	const uint32_t vlen = s->life_vlen;
	uint8_t few[LIFE_VLEN], *value = vlen > LIFE_VLEN ? sim_alloc(w->sim, vlen) : few;
	size_t len = 0;
	actor_label(sim_actor(w->sim), (struct op_label){(uint8_t)c->number, OP_PUT, 1});
	workload_value(LIFE_CLIENT, LIFE_NTH, 0, value, vlen);
	c->apart = TM_PUT;
	sim_forget_failed_call(w->sim);
	int error = s->store->put(c->handle, key->name, key->klen, value, vlen);
	if (error && error_explained(w, c->number, TM_PUT, error))
		return;
	if (error) {
		world_refused(w, "put", error, "%s, a new PUT %s fails: ", proved_when(w),
			      key->name);
		world_failed(w, c->number, TM_PUT, error);
		return;
	}
	c->apart = TM_GET;
	error = s->store->get(c->handle, key->name, key->klen, buf, s->params.max_vlen, &len);
	/* Acknowledged is not visible: look once more when all has landed. */
	if (error || len != vlen || memcmp(buf, value, len)) {
		sim_sleep(w->sim, AFTERMATH_NS);
		error = s->store->get(c->handle, key->name, key->klen, buf, s->params.max_vlen,
				      &len);
	}
	if (error && error != -ENOENT && error_explained(w, c->number, TM_GET, error))
		return;
	if (error || len != vlen || memcmp(buf, value, len))
		world_trouble(w, true, "%s, GET %s %s%s", proved_when(w), key->name,
			      error ? "fails with " : "does not return what was just put",
			      error ? error_name(error).text : "");
	if (error && error != -ENOENT)
		world_failed(w, c->number, TM_GET, error);
}

void client_read_keys(struct world_client *c, unsigned gets, unsigned calls, uint8_t *buf)
{
	struct world *w = c->world;
	unsigned keys = CHECKER_MUTANT(w->setup, READ_FIRST_KEY) ? 1 : world_keys_read(w);
	unsigned looks = setup_looks(w->setup);
	for (unsigned i = 0; i < keys + looks; i++) {
		struct workload_op op = {
			.kind = OP_GET, .key = (uint16_t)i, .nth = (uint16_t)(gets + i + 1)};
		if (i >= keys) {
			op = setup_look(w->setup, i - keys);
			op.nth = (uint16_t)(calls + i - keys + 1);
		}
		if (c->lost)
			client_open(c);
		actor_label(sim_actor(w->sim),
			    (struct op_label){(uint8_t)c->number, op.kind, op.nth});
		if (op.kind == OP_GET)
			client_get(c, &op, buf);
		else
			client_call(c, &op, true);
	}
}

void reader_main(void *arg)
{
	struct world_client *c = arg;
	struct world *w = c->world;
	uint8_t *buf = sim_alloc(w->sim, w->setup->params.max_vlen);
	client_open(c);
	client_read_keys(c, 0, 0, buf);
	if (!life_run(c, buf) && w->booted)
		prove_life(c, buf);
	world_agree(w);
	sim_stop(w->sim, SIM_DONE);
}

/* Is there no client for which a cleaning has to wait until it counts as dead? */
static bool clients_answer(const struct world *w)
{
	for (unsigned n = 1; n <= w->setup->w.clients; n++)
		if (sim_injected(w->sim, n) & (SIM_INJECTED_DEATH | SIM_INJECTED_LINK))
			return false;
	return true;
}

/* Has whoever died left nothing behind that looks alive? No cleaning waits for it then. A client
 * that stands still for ever may be waited for. */
static bool clients_are_gone(const struct world *w)
{
	bool gone = world_client_died(w);
	for (unsigned n = 1; n <= w->setup->w.clients; n++)
		gone &= !(sim_injected(w->sim, n) & SIM_INJECTED_LINK) &&
			(!w->client[n].dead || w->client[n].away);
	return gone;
}

/* Cleans the log until two more cleanings are sure to have begun. The second one begins when
 * those before it have ended; and what a cleaning has left may show in the next. */
static void clean_on(struct world_client *c)
{
	struct world *w = c->world;
	uint64_t until = sim_now(w->sim) + GIVEN_UP_NS, nap = CLEANING_NS;
	for (unsigned begun = 0; begun < 2;) {
		int error = client_clean(c);
		if (error && error != -EALREADY)
			return;
		if (!error) {
			begun++;
			until = sim_now(w->sim) + GIVEN_UP_NS;
			nap = CLEANING_NS;
		} else if (sim_now(w->sim) > until) {
			w->result.unended = !w->result.live_broken;
			world_trouble(w, true, "a cleaning does not end");
			return;
		}
		/* Without this, clients that wait for the cleaning would count as a livelock, for
		 * which time passes faster: the cleaner would not get its time. */
		sim_repeat_news(w->sim);
		sim_sleep(w->sim, nap);
		nap = nap < LOOK_MAX_NS ? 2 * nap : nap;
	}
}

/* After all clients, if the server's process or a client has died, or the log was cleaned: was
 * anything lost? A client that died is not missed at once, so all is read twice then. */
void reread_main(void *arg)
{
	struct world_client *c = arg;
	struct world *w = c->world;
	uint8_t *buf = sim_alloc(w->sim, w->setup->params.max_vlen);
	assert(!w->machine && c->number == w->setup->w.clients + 1);
	/* Where the server's process lives the power holds: it fails earlier in such runs. */
	if (!sim_server_life(w->sim))
		sim_set_observer(w->sim, NULL, NULL);
	/* A cleaning may have lost what no client has read since. The loss shows whatever else
	 * happens now. */
	if (!world_someone_died(w))
		sim_source(w->sim, NULL);
	/* What was acknowledged and is held up has landed by then. */
	sim_sleep(w->sim, AT_REST_NS);
	client_open(c);
	client_read_keys(c, 0, 0, buf);
	struct source *source = sim_get_source(w->sim);
	sim_source(w->sim, NULL); /* nothing happens to whoever asks */
	world_agree(w);
	sim_source(w->sim, source);
	const unsigned gets = world_keys_read(w), calls = setup_looks(w->setup);
	if (!world_someone_died(w)) {
		if (clients_answer(w)) {
			clean_on(c);
			client_read_keys(c, gets, calls, buf);
		}
		sim_stop(w->sim, SIM_DONE);
		return;
	}
	sim_source(w->sim, NULL);
	if (world_client_died(w)) {
		sim_sleep(w->sim, GIVEN_UP_NS);
		client_read_keys(c, gets, calls, buf);
	}
	if (connection_is_lost(w, c->number))
		client_open(c);
	if (workload_cleans(&w->setup->w) && clients_are_gone(w))
		clean_on(c);
	prove_life(c, buf);
	sim_stop(w->sim, SIM_DONE);
}
