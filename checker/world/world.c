/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running a store in the sim world. See world.h.
 *
 * A run has two parts. Boot (recovery, serving, connecting) asks no source in world
 * 0: an orderly start is not what is tested. In later worlds it does: recovery meets
 * undecided lines, and may itself be cut. Then clients run their programs, and when
 * the last has ended the world runs on for a while, so that the store's background
 * work is seen too.
 */
#include "checker/world/world.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/coverage.h"
#include "core/rnic/host/store_calls.h"
#include "core/rnic/rnic.h"
#include "checker/world/checker_mutant.h"
#include "checker/world/explained.h"
#include "checker/world/where.h"
#include "checker/world/world_client.h"
#include "core/text/error_name.h"
#include "faultinject/deviation.h"

/* In virtual time: an operation that has not ended by then never will. */
#define GIVE_UP_NS   (60ull * 1000000000)
#define STEPS_BASE   1000000ull /* steps of a run ... */
#define STEPS_PER_OP 20000ull	/* ... and of each operation */
#define OPEN_TRIES   16	       /* of a client that cannot connect, for a reason that was injected */
#define AT_REST_NS   150000000 /* longer than any delay that ends */
#define CLEANING_NS  1000000   /* most cleanings have ended after that */
#define LOOK_MAX_NS  1000000000	 /* between two looks at one that takes longer */
#define GIVEN_UP_NS  20000000000 /* longer than any store waits for a client that died */
#define TICK_NS	     100000	 /* a machine that has recovered serves from a multiple of it on */
#define CLOSE_NS     20000	 /* how long a dead process still has its queue pairs and regions */
/* The value that proves life: no workload has so many PUTs that it has this one. */
#define LIFE_CLIENT TM_MAX_CLIENTS
#define LIFE_NTH    UINT16_MAX

/* --- trouble --- */

/* `pc`: where it was seen, 0: in no line of the store. */
static void trouble(struct world *w, bool live, uintptr_t pc, const char *fmt, va_list ap)
{
	bool *broken = live ? &w->result.live_broken : &w->result.fsck_broken;
	char *why = live ? w->result.why : w->result.fsck_why;
	if (*broken)
		return; /* the first one counts */
	*broken = true;
	if (live)
		w->result.pc = pc;
	vsnprintf(why, sizeof(w->result.why), fmt, ap);
	if (sim_tracing(w->sim))
		sim_trace(w->sim, sim_actor(w->sim), pc, "%s", why);
}

void world_trouble(struct world *w, bool live, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	trouble(w, live, 0, fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 3, 4))) static void trouble_at(struct world *w, uintptr_t pc,
							     const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	trouble(w, true, pc, fmt, ap);
	va_end(ap);
}

void world_refused(struct world *w, const char *function, int error, const char *fmt, ...)
{
	const struct sim_failed_call call = sim_failed_call(w->sim);
	char what[100];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	trouble_at(w, call.pc, "%s%s() returns %s%s%s%s%s", what, function, error_name(error).text,
		   call.name ? "; what failed there last is " : "", call.name ? call.name : "",
		   call.name ? ": " : "", call.name ? call.how : "");
}

/* An operation that is not in the history has failed. */
static void failed(struct world *w, unsigned client, enum tm_operation operation, int error)
{
	static const char *const words[] = {[TM_PUT] = "PUT",
					    [TM_GET] = "GET",
					    [TM_OPEN] = "attempt to connect",
					    [TM_CLEAN] = "cleaning",
					    [TM_CALL] = "operation"};
	char who[24] = "a reader";
	assert(operation < sizeof(words) / sizeof(words[0]) && words[operation]);
	if (w->result.ok_broken || error_explained(w, client, operation, error))
		return; /* the first one counts */
	w->result.ok_broken = true;
	if (client <= w->setup->w.clients)
		snprintf(who, sizeof(who), "client %u", client);
	snprintf(w->result.ok_why, sizeof(w->result.ok_why),
		 "%s%s's %s failed with %s for no reason that was injected",
		 w->machine ? "after recovery, " : "", who, words[operation],
		 error_name(error).text);
	if (sim_tracing(w->sim))
		sim_trace(w->sim, sim_actor(w->sim), 0, "%s", w->result.ok_why);
}

struct checked {
	struct tm_fsck fsck;
	struct world *world;
	const char *after;
};

static void fsck_bad(struct tm_fsck *fsck, const char *fmt, ...)
{
	struct checked *checked = (struct checked *)fsck;
	char text[160];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	world_trouble(checked->world, false, "the structural check after %s says: %s",
		      checked->after, text);
}

void world_fsck(struct world *w, const char *after)
{
	struct checked check = {.fsck.bad = fsck_bad, .world = w, .after = after};
	if (CHECKER_MUTANT(w->setup, FSCK_NEVER))
		return;
	sim_repeat_allow(w->sim, true);
	w->setup->store->fsck(&w->server, &check.fsck);
	sim_repeat_allow(w->sim, false);
}

/* --- the history --- */

/* Each machine has clients of the same numbers, and they have other values. */
static uint16_t value_number(const struct world *w, const struct workload_op *op)
{
	return (uint16_t)(w->machine ? 0x8000 + w->machine * 0x1000 + op->nth % 0x1000 : op->nth);
}

static struct history_detail detail_of(const struct world *w, unsigned client,
				       const struct workload_op *op)
{
	struct history_detail d = {.call = op->call};
	memcpy(d.key, op->keys, sizeof(d.key));
	d.value.client = (uint8_t)client;
	d.value.nth = op->kind == OP_CALL ? value_number(w, op) : op->nth;
	d.value.key = op->kind == OP_CALL ? WORKLOAD_CALL_KEY(op->call) : op->key;
	d.value.same = op->same;
	d.value.len = workload_op_valued(&w->setup->w, op) ? op->vlen : 0;
	if (w->machine && op->kind == OP_PUT)
		life_value_name(w, &d);
	return d;
}

void world_value(const struct history_detail *d, uint8_t *out)
{
	if (d->value.same)
		workload_value_same(d->value.same, d->value.key, out, d->value.len);
	else
		workload_value(d->value.client, d->value.nth, d->value.key, out, d->value.len);
}

static int note_invoke(struct world *w, unsigned client, enum history_kind kind,
		       const struct workload_op *op)
{
	if (!w->history->detail)
		return history_invoke(w->history, client, kind, op->key);
	const struct history_detail detail = detail_of(w, client, op);
	return history_invoke_detailed(w->history, client, kind, op->key, &detail);
}

static void keep_event(struct world_gets *gets, unsigned event)
{
	assert(gets->events < 2 * WORLD_GETS);
	gets->event[gets->events++] = (uint16_t)event;
}

static void keep_begin(struct world_client *c, const struct workload_op *op)
{
	struct world_gets *gets = &c->world->gets;
	assert(gets->n < WORLD_GETS && c->number > c->world->setup->w.clients);
	c->get = gets->n++;
	struct world_get *get = &gets->get[c->get];
	*get = (struct world_get){.op = *op,
				  .client = (uint16_t)(c->number - c->world->setup->w.clients - 1)};
	/* Where one key is named, the bytes of the others may be anything; all are compared. */
	for (unsigned k = workload_op_keys(&c->world->setup->w, op); k < TM_CALL_KEYS; k++)
		get->op.keys[k] = 0;
	keep_event(gets, 2 * c->get);
}

/* What a GET or a CALL returns. */
static void keep_answer(struct world_client *c, int error, size_t len, const uint8_t *bytes)
{
	struct world_gets *gets = &c->world->gets;
	struct world_get *get = &gets->get[c->get];
	if (!gets->kept)
		return;
	get->error = error;
	get->len = (uint32_t)len;
	get->at = gets->bytes;
	if (error || len > gets->longest)
		return;
	memcpy(gets->byte + gets->bytes, bytes, len);
	gets->bytes += (uint32_t)len;
}

static void keep_return(struct world_client *c, const struct history_op *op)
{
	struct world_gets *gets = &c->world->gets;
	struct world_get *get = &gets->get[c->get];
	if (get->op.kind == OP_PUT || get->op.kind == OP_DEL)
		get->error = op->error;
	get->returned = op->returned >= 0;
	get->unexplained = op->unexplained;
	keep_event(gets, 2 * c->get + 1);
}

static int invoke(struct world_client *c, enum history_kind kind, const struct workload_op *what)
{
	struct world *w = c->world;
	assert(c->op < 0 && !c->done); /* a client has one operation at a time */
	int op = note_invoke(w, c->number, kind, what);
	if (op < 0) {
		fprintf(stderr, "tidemark: more operations than a history holds (%d)\n",
			HISTORY_OPS);
		_Exit(70);
	}
	c->op = op;
	if (w->gets.kept)
		keep_begin(c, what);
	sim_repeat_news(w->sim);
	return op;
}

/* A store that does not wait for a reply may return what it takes for one. */
static int sane_error(int error)
{
	return error > 0 || error < INT16_MIN ? -EPROTO : error;
}

static void returned(struct world_client *c, int error, int32_t value)
{
	struct world *w = c->world;
	int op = c->op;
	assert(op >= 0 && !c->done);
	error = sane_error(error);
	c->op = -1;
	sim_repeat_news(w->sim);
	c->lost = error && error != -ENOTUNIQ && connection_is_lost(w, c->number);
	/* A client whose server has died does not know what became of its operation: in the history
	 * it never returns. */
	if (!c->lost)
		history_return(w->history, op, error, value);
	if (error && error != -ENOTUNIQ &&
	    !error_explained(w, c->number, history_operation(w->history->op[op].kind), error))
		history_unexplained(w->history, op);
	if (w->gets.kept)
		keep_return(c, &w->history->op[op]);
	sim_mix(w->sim, (uint64_t)op << 32 | (uint32_t)error, (uint32_t)value);
	if (sim_tracing(w->sim)) {
		char name[64] = "", what[128] = "";
		if (w->history->op[op].kind == HISTORY_GET && !error) {
			if (value >= 0)
				world_op_name(w->setup, w->history, value, name, sizeof(name));
			snprintf(what, sizeof(what), ": %s%s",
				 value >= 0		 ? "the value of "
				 : value == VALUE_ABSENT ? "not found"
							 : "bytes that no PUT of this key wrote",
				 value >= 0 ? name : "");
		}
		if (w->history->op[op].kind == HISTORY_CALL && !error)
			history_show_answer(w->history, op, what, sizeof(what));
		const char *between = !*what || *what == ':' ? "" : ": ";
		const struct traced about = {.kind = TRACED_RETURN};
		if (error == -ENOTUNIQ)
			sim_trace_event(w->sim, sim_actor(w->sim), 0, &about, "%s",
					"returns 0: bytes that more than one PUT writes");
		else
			sim_trace_event(w->sim, sim_actor(w->sim), 0, &about, "returns %s%s%s",
					error_name(error).text, between, what);
	}
	sim_power_fails_here(w->sim, CRASH_AFTER_RETURN);
}

/* --- operations --- */

/* Whose value the bytes are. VALUE_UNKNOWN: several PUTs write them, so they say nothing of
 * which. */
static int32_t value_read(const struct world *w, unsigned key, const uint8_t *bytes, size_t len)
{
	int32_t value = VALUE_FOREIGN;
	int v = setup_find_value(w->setup, key, bytes, len);
	for (; v >= 0; v = setup_next_value(w->setup, v, bytes, len))
		if (w->op_of_value[v] >= 0)
			value = w->setup->value[v].shared ? VALUE_UNKNOWN : w->op_of_value[v];
	return value == VALUE_FOREIGN ? life_value_read(w, key, bytes, len) : value;
}

/* A GET's answer: its error for the history, and whose value it returned. */
static int get_says(const struct world *w, unsigned key, const struct world_get *get,
		    const uint8_t *bytes, int32_t *value)
{
	const struct setup *s = w->setup;
	*value = get->error == -ENOENT ? VALUE_ABSENT : VALUE_UNKNOWN;
	if (get->error)
		return get->error == -ENOENT ? 0 : sane_error(get->error);
	*value = get->len <= s->params.max_vlen ? value_read(w, key, bytes, get->len)
						: VALUE_FOREIGN;
	if (*value == VALUE_FOREIGN && CHECKER_MUTANT(s, FOREIGN_IS_ABSENT))
		*value = VALUE_ABSENT;
	return *value == VALUE_UNKNOWN ? -ENOTUNIQ : 0;
}

/* An answer is there before the operation has returned. */
static void note_answer(struct world *w, int op, const void *bytes, size_t len)
{
	if (w->history->detail && history_answer(w->history, op, bytes, len)) {
		fprintf(stderr, "tidemark: out of memory\n");
		_Exit(70);
	}
}

static void do_get(struct world_client *c, const struct workload_op *what, uint8_t *buf)
{
	struct world *w = c->world;
	const struct setup *s = w->setup;
	struct world_get get = {0};
	unsigned key = what->key;
	size_t len = 0;
	int32_t value;
	int op = invoke(c, HISTORY_GET, what);
	sim_forget_failed_call(w->sim);
	get.error = s->store->get(c->handle, s->w.key[key].name, s->w.key[key].klen, buf,
				  s->params.max_vlen, &len);
	get.len = len <= s->params.max_vlen ? (uint32_t)len : s->params.max_vlen + 1;
	int error = get_says(w, key, &get, buf, &value);
	/* Nothing disturbs the link of a recovered store: an error there is the store's. */
	if (w->machine && get.error && get.error != -ENOENT)
		world_refused(w, "get", get.error,
			      "after recovery, GET %s fails: ", s->w.key[key].name);
	if (!get.error)
		note_answer(w, op, buf, len <= s->params.max_vlen ? len : s->params.max_vlen);
	keep_answer(c, get.error, get.len, buf);
	returned(c, error, value);
}

static const char *const op_says[OP_KINDS] = {[OP_PUT] = "PUT ",    [OP_GET] = "GET ",
					      [OP_DEL] = "DELETE ", [OP_CLEAN] = "clean the log",
					      [OP_LEAVE] = "leave", [OP_DIE] = "the process dies",
					      [OP_PAUSE] = "pause"};

static void trace_begin(const struct world *w, const struct workload_op *op)
{
	const struct setup *s = w->setup;
	const struct traced about = {.kind = TRACED_CALL};
	char text[200];
	int len = snprintf(text, sizeof(text), "%s",
			   op->kind == OP_CALL ? s->store->calls[op->call].name
					       : op_says[op->kind]);
	for (unsigned k = 0; k < workload_op_keys(&s->w, op); k++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s",
				op->kind == OP_CALL ? " " : "", s->w.key[op->keys[k]].name);
	if (op->kind == OP_CALL && op->vlen)
		snprintf(text + len, sizeof(text) - (size_t)len, " %u bytes", (unsigned)op->vlen);
	sim_trace_event(w->sim, sim_actor(w->sim), 0, &about, "%s", text);
}

/* --- operations of the store's own --- */

/* What the operation asks for. A value is in the simulation's memory. */
static struct tm_call call_of(struct world *w, unsigned client, const struct workload_op *op)
{
	const struct setup *s = w->setup;
	const struct history_detail detail = detail_of(w, client, op);
	struct tm_call call = {.vlen = op->vlen};
	uint8_t *value = sim_alloc(w->sim, op->vlen + 1);
	for (unsigned k = 0; k < workload_op_keys(&s->w, op); k++) {
		call.key[k].name = s->w.key[op->keys[k]].name;
		call.key[k].len = s->w.key[op->keys[k]].klen;
	}
	world_value(&detail, value);
	call.value = workload_op_valued(&s->w, op) ? value : NULL;
	return call;
}

/* The store runs it. -errno; what it answers stays in the simulation's memory. */
static int run_call(struct world_client *c, const struct workload_op *op, struct tm_answer **answer)
{
	struct world *w = c->world;
	const struct tm_call call = call_of(w, c->number, op);
	if (!c->answer)
		c->answer = sim_alloc(w->sim, sizeof(*c->answer));
	*answer = c->answer;
	memset(*answer, 0, sizeof(**answer));
	sim_forget_failed_call(w->sim);
	int error = sane_error(w->setup->store->calls[op->call].run(c->handle, &call, *answer));
	return (*answer)->len > TM_MAX_ANSWER ? -EOVERFLOW : error;
}

/* `looks`: the operation is one that looks at the recovered store. */
static int do_call(struct world_client *c, const struct workload_op *op, bool looks)
{
	struct world *w = c->world;
	struct world_get get = {0};
	struct tm_answer *answer;
	int number = invoke(c, HISTORY_CALL, op);
	if (looks && sim_tracing(w->sim))
		trace_begin(w, op);
	get.error = run_call(c, op, &answer);
	get.len = get.error ? 0 : (uint32_t)answer->len;
	if (w->machine && get.error)
		world_refused(w, "run", get.error,
			      "after recovery, %s fails: ", w->setup->store->calls[op->call].name);
	if (!get.error)
		note_answer(w, number, answer->bytes, answer->len);
	keep_answer(c, get.error, get.len, answer->bytes);
	returned(c, get.error, VALUE_UNKNOWN);
	return get.error;
}

unsigned world_keys_read(const struct world *w)
{
	return w->setup->store->get ? w->setup->w.keys : 0;
}

void world_begins(struct world *w, const struct world_get *get)
{
	static const uint8_t kinds[OP_KINDS] = {[OP_PUT] = HISTORY_PUT,
						[OP_GET] = HISTORY_GET,
						[OP_DEL] = HISTORY_DEL,
						[OP_CALL] = HISTORY_CALL};
	const unsigned client = w->setup->w.clients + 1 + get->client;
	int op = note_invoke(w, client, kinds[get->op.kind], &get->op);
	assert(op >= 0 && w->machine);
	if (get->op.kind == OP_PUT)
		life_value(w, &get->op);
}

void world_returns(struct world *w, int op, const struct world_get *get, const uint8_t *bytes)
{
	const bool is_get = get->op.kind == OP_GET;
	int32_t value = VALUE_UNKNOWN;
	assert(op >= 0 && (unsigned)op < w->history->ops);
	if (!get->returned) {
		if (get->unexplained)
			history_never_returns(w->history, op);
		return;
	}
	int error = is_get ? get_says(w, get->op.key, get, bytes + get->at, &value) : get->error;
	if (!get->error && (is_get || get->op.kind == OP_CALL))
		note_answer(w, op, bytes + get->at,
			    get->len <= w->gets.longest ? get->len : w->gets.longest);
	history_return(w->history, op, error, value);
	if (get->unexplained)
		history_unexplained(w->history, op);
}

/* The client's process ends; a new one comes with its next operation. */
static void go_away(struct world_client *c, bool dies)
{
	struct world *w = c->world;
	if (c->away)
		return;
	c->lost = false;
	if (dies) {
		sim_inject(w->sim, c->number, SIM_INJECTED_DEATH);
		sim_end_others(w->sim);
	}
	/* A client that leaves waits until its NIC has sent everything; for one that dies the
	 * kernel closes all objects. */
	sim_sleep(w->sim, CLOSE_NS);
	/* If a packet was held up, it may be too late for what that was to do. */
	if (sim_disturbed(w->sim))
		sim_inject(w->sim, c->number, SIM_INJECTED_DEATH);
	sim_end_others(w->sim);
	rnic_close(c->env->verbs);
	c->away = true;
}

/* No key changes: nothing for the history. */
static int do_clean(struct world_client *c)
{
	struct world *w = c->world;
	const struct tm_store *store = w->setup->store;
	assert(!c->apart);
	c->apart = TM_CLEAN;
	int error = store->clean ? sane_error(store->clean(c->handle)) : -ENOSYS;
	c->apart = 0;
	c->lost = error && connection_is_lost(w, c->number);
	sim_mix(w->sim, OP_CLEAN, (uint32_t)error);
	if (sim_tracing(w->sim))
		sim_trace(w->sim, sim_actor(w->sim), 0, "returns %s", error_name(error).text);
	if (error && store->clean)
		failed(w, c->number, TM_CLEAN, error);
	return error;
}

/* Note that a PUT begins. Its bytes. */
static const uint8_t *begin_put(struct world_client *c, const struct workload_op *op)
{
	struct world *w = c->world;
	int at = invoke(c, HISTORY_PUT, op);
	if (w->machine)
		return life_value(w, op);
	const struct setup_value *v = setup_put_value(w->setup, c->number, op->nth);
	w->op_of_value[v - w->setup->value] = at;
	return v->bytes;
}

void client_do(struct world_client *c, const struct workload_op *op, uint8_t *buf)
{
	struct world *w = c->world;
	const struct setup *s = w->setup;
	const struct workload_key *key = workload_op_keyed(op->kind) ? &s->w.key[op->key] : NULL;
	int error = 0;
	actor_label(sim_actor(w->sim), (struct op_label){(uint8_t)c->number, op->kind, op->nth});
	sim_begin(w->sim);
	sim_forget_failed_call(w->sim);
	if (sim_tracing(w->sim))
		trace_begin(w, op);
	switch (op->kind) {
	case OP_PUT: {
		const uint8_t *value = begin_put(c, op);
		error = s->store->put(c->handle, key->name, key->klen, value, op->vlen);
		returned(c, error, c->op);
		break;
	}
	case OP_GET:
		do_get(c, op, buf);
		break;
	case OP_CALL:
		error = do_call(c, op, false);
		break;
	case OP_CLEAN:
		error = do_clean(c);
		break;
	case OP_LEAVE:
	case OP_DIE:
		go_away(c, op->kind == OP_DIE);
		break;
	case OP_PAUSE:
		sim_sleep(w->sim, choice_delay_ns(DELAY_5MS));
		break;
	default:
		invoke(c, HISTORY_DEL, op);
		error = s->store->del(c->handle, key->name, key->klen);
		returned(c, error, VALUE_ABSENT);
	}
	pmem_cache_pressure(w->pm);
	if (w->between)
		w->between(w->between_arg, w, op, error);
}

/* --- boot --- */

/* `before`: closed, of the host's former process; NULL: it is the first. */
static struct tm_env environment(struct world *w, unsigned host, struct ibv_context *before)
{
	struct tm_env env = {.params = &w->setup->params, .client = host};
	struct pmem *pm = host == HOST_SERVER ? w->pm : NULL;
	env.verbs = before ? rnic_open_again(before, pm) : rnic_open(w->net, host, pm);
	calls_watch(env.verbs);
	if (host == HOST_SERVER) {
		env.pm = pmem_base(w->pm);
		env.pm_len = w->setup->pm_len;
	}
	return env;
}

void client_open(struct world_client *c)
{
	struct world *w = c->world;
	if (!c->env || c->away) {
		struct ibv_context *before = c->env ? c->env->verbs : NULL;
		c->env = sim_alloc(w->sim, sizeof(*c->env));
		*c->env = environment(w, c->number, before);
		if (before)
			sim_new_process(w->sim, c->number);
		sim_construct(w->sim);
		c->away = false;
	}
	for (unsigned tries = 1;; tries++) {
		if (c->opens)
			sim_connects_again(w->sim, c->number);
		actor_label(sim_actor(w->sim),
			    (struct op_label){(uint8_t)c->number, OP_OPEN, ++c->opens});
		c->life = sim_server_life(w->sim);
		c->lost = false;
		bool down = !w->serving;
		sim_take_refused(w->sim, c->number);
		sim_forget_failed_call(w->sim);
		int error = w->setup->store->open(c->env, &c->handle);
		if (!error)
			return;
		/* A client that asks before a server listens may be told so only when it does. */
		bool lost = connection_is_lost(w, c->number) ||
			    (down && sim_take_refused(w->sim, c->number));
		if (!lost && (!w->booted || w->machine || tries == OPEN_TRIES ||
			      !error_explained(w, c->number, TM_OPEN, error))) {
			world_refused(w, "open", error, "a client cannot connect: ");
			failed(w, c->number, TM_OPEN, error);
			sim_abandon(w->sim, SIM_DONE);
		}
		if (!lost)
			sim_sleep(w->sim, AFTERMATH_NS);
		while (!w->serving) {
			sim_idle_on(w->sim, &w->serving);
			sim_yield(w->sim);
		}
	}
}

static void start_clients(struct world *w);

/* The time that recovery took must not matter to what comes after it: else nearly each repair would
 * have a future of its own (checker/recall/rest.h). */
static void wait_for_tick(struct sim *sim)
{
	sim_sleep(sim, TICK_NS - sim_now(sim) % TICK_NS);
	sim_repeat_news(sim);
}

/* Recover, check and serve, or, while loading, make an empty store. */
static void start_server(struct world *w)
{
	const struct tm_store *store = w->setup->store;
	struct source *source = sim_get_source(w->sim);
	sim_construct(w->sim);
	sim_forget_failed_call(w->sim);
	int error = w->loading ? store->format(&w->server) : store->recover(&w->server);
	memcpy(w->result.recovery, sim_actor(w->sim)->count, sizeof(w->result.recovery));
	if (error) {
		world_refused(w, w->loading ? "format" : "recover", error,
			      "%s fails: ", w->loading ? "making an empty store" : "recovery");
		sim_abandon(w->sim, SIM_DONE);
	}
	if (w->machine || sim_server_life(w->sim)) {
		/* Nothing happens to the store while it is looked at. */
		if (!w->machine)
			sim_source(w->sim, NULL);
		world_fsck(w, "recovery");
		sim_source(w->sim, source);
	}
	if (w->machine) {
		coverage_enter(COVERAGE_AFTER);
		wait_for_tick(w->sim);
	}
	if (w->recovered && !w->result.fsck_broken && w->recovered(w->recovered_arg, w))
		sim_abandon(w->sim, SIM_DONE);
	sim_forget_failed_call(w->sim);
	error = store->serve(&w->server);
	if (error) {
		world_refused(w, "serve", error, "the server does not start: ");
		sim_abandon(w->sim, SIM_DONE);
	}
	w->serving = true;
}

static void boot(void *arg)
{
	struct world *w = arg;
	w->server = environment(w, HOST_SERVER, NULL);
	start_server(w);
	start_clients(w);
}

/* Clients that read after the others have as much time as these had. */
static void give_up(struct sim *sim, void *arg)
{
	const struct world *w = arg;
	uint64_t until = w->reread ? w->reread_ns + GIVE_UP_NS : 0;
	if (sim_now(sim) < until)
		sim_at(sim, until - sim_now(sim), give_up, arg);
	else
		sim_stop(sim, SIM_BUDGET);
}

static void begin(struct worlds *ws, unsigned machine, struct source *source)
{
	struct world *w = &ws->world[machine];
	const struct setup *s = w->setup;
	assert(w->machine == machine && machine < WORLDS);
	sim_reset(w->sim, source);
	sim_set_statics(w->sim, s->statics);
	/* What a machine does that boots after a power failure does not depend on how many came
	 * before (checker/recall). */
	sim_set_boot(w->sim, w->loading ? 0 : machine ? 2 : 1);
	pmem_begin(w->pm, w->sim, &s->hw);
	pmem_set_regions(w->pm, s->region, s->regions);
	if (w->loading && !w->tracer)
		sim_set_tracer(w->sim, s->load_tracer, s->watcher_arg);
	else
		sim_set_tracer(w->sim, w->tracer, w->tracer_arg);
	if (w->wordless)
		sim_trace_no_words(w->sim);
	sim_set_anywhere(w->sim, w->anywhere);
	sim_let_calls_fail(w->sim, s->hw.calls_fail);
	if (!w->loading)
		sim_set_places(w->sim, &s->without, s->reached);
	if (s->dram_watcher)
		pmem_watch_dram(w->pm, s->dram_watcher, s->watcher_arg);
	if (machine && w->eager)
		pmem_decide_all(w->pm);
	w->net = rnic_net_new(w->sim, &s->hw);
	memset(&w->result, 0, sizeof(w->result));
	w->result.live_op = -1;
	w->opened = w->ended = 0;
	w->booted = w->serving = w->reread = false;
	w->gets.n = w->gets.events = w->gets.bytes = 0;
	life_begin(w);
	sim_set_step_budget(
		w->sim,
		STEPS_BASE + STEPS_PER_OP * (machine ? 2 * (s->w.keys + setup_looks(s)) + LIFE_OPS
						     : workload_ops(&s->w)));
	sim_at(w->sim, GIVE_UP_NS, give_up, w);
}

/* --- the main run --- */

static void reread_main(void *arg);

/* Has a client died for which others may have waited? */
static bool client_died(const struct world *w)
{
	for (unsigned n = 1; n <= w->setup->w.clients; n++)
		if (w->client[n].died)
			return true;
	return false;
}

/* The server's process, or a client? */
static bool someone_died(const struct world *w)
{
	return sim_server_life(w->sim) || !w->serving || client_died(w);
}

static void at_end(struct sim *sim, void *arg)
{
	struct choice_point at = {.kind = CHOICE_CRASH, .a = CRASH_AT_END};
	struct world *w = arg;
	assert(w->ended == w->setup->w.clients && !w->machine);
	/* Nothing happens any more: then clients that were held go on. */
	if (sim_let_go(sim)) {
		sim_at(sim, AFTERMATH_NS, at_end, arg);
		return;
	}
	if (!sim_power_fails(sim, &at)) {
		unsigned n = w->setup->w.clients + 1;
		if (!someone_died(w) && !workload_cleans(&w->setup->w)) {
			sim_stop(sim, SIM_DONE);
			return;
		}
		w->reread = true;
		w->reread_ns = sim_now(sim);
		w->client[n] = (struct world_client){.world = w, .number = n, .op = -1};
		sim_spawn(sim, n, NULL, reread_main, &w->client[n]);
	}
}

static void one_ended(struct world *w)
{
	assert(w->ended < w->opened && w->opened <= w->setup->w.clients);
	if (++w->ended == w->setup->w.clients)
		sim_at(w->sim, AFTERMATH_NS, at_end, w);
}

/* --- deaths --- */

static void restart_main(void *arg)
{
	struct world *w = arg;
	bool fail = sim_calls_fail(w->sim);
	/* A process that does not come up is started once more. */
	sim_let_calls_fail(w->sim, false);
	w->server = environment(w, HOST_SERVER, w->server.verbs);
	start_server(w);
	sim_let_calls_fail(w->sim, fail);
	sim_wake(w->sim, &w->serving);
}

/* The kernel has found the time to clean up. */
static void server_closed(struct sim *sim, void *arg)
{
	struct world *w = arg;
	assert(!w->serving && !w->machine);
	pmem_process_ended(w->pm);
	rnic_close(w->server.verbs);
	sim_server_again(sim);
	sim_trace(sim, NULL, 0, "the server's process has ended; a new one begins");
	sim_spawn(sim, HOST_SERVER, NULL, restart_main, w);
}

static void client_closed(struct sim *sim, void *arg)
{
	struct world_client *c = arg;
	assert(c->dead);
	(void)sim;
	if (!c->away)
		rnic_close(c->env->verbs);
	c->away = true;
}

static unsigned operations(const struct world_client *c)
{
	const struct world *w = c->world;
	return c->number <= w->setup->w.clients ? w->setup->w.client[c->number - 1].ops : 0;
}

/* The operations of a client that it has not begun. */
static void do_the_rest(struct world_client *c, uint8_t *buf)
{
	struct world *w = c->world;
	const struct workload_op *op = w->setup->w.client[c->number - 1].op;
	while (c->next < operations(c)) {
		const struct workload_op *next = &op[c->next];
		if (c->lost || (c->away && (workload_op_keyed(next->kind) ||
					    next->kind == OP_CALL || next->kind == OP_CLEAN)))
			client_open(c);
		c->next++;
		client_do(c, next, buf);
	}
	assert(!c->dead && c->op < 0);
	c->done = true;
	one_ended(w);
}

static void come_back(void *arg)
{
	struct world_client *c = arg;
	struct world *w = c->world;
	do_the_rest(c, sim_alloc(w->sim, w->setup->params.max_vlen));
}

/* A new process does what the dead one had not begun. */
static void client_restarts(struct sim *sim, void *arg)
{
	struct world_client *c = arg;
	client_closed(sim, arg);
	c->dead = c->lost = false;
	c->op = -1;
	c->apart = 0;
	sim_trace(sim, NULL, 0, "a new process of client %u begins", c->number);
	sim_spawn(sim, c->number, NULL, come_back, c);
}

static void dies(void *arg, unsigned host, unsigned how)
{
	static const char *const says[] = {"the server's process dies", "the process dies",
					   "the machine dies"};
	struct world *w = arg;
	struct world_client *c = &w->client[host];
	assert(w->booted); /* before that no source is asked */
	if (how >= DEATH_SERVER)
		sim_trace(w->sim, sim_actor(w->sim), 0, "%s", says[how - DEATH_SERVER]);
	if (host == HOST_SERVER) {
		w->serving = false;
		sim_at(w->sim, CLOSE_NS, server_closed, w);
		return;
	}
	assert(host <= w->setup->w.clients + w->reread && c->number == host);
	if (c->done || c->dead)
		return;
	c->dead = c->died = true;
	if (how == DEATH_PROCESS && c->next < operations(c)) {
		sim_at(w->sim, CLOSE_NS, client_restarts, c);
		return;
	}
	if (how >= DEATH_PROCESS)
		sim_at(w->sim, how == DEATH_MACHINE ? 0 : CLOSE_NS, client_closed, c);
	if (host <= w->setup->w.clients)
		one_ended(w);
}

static void observe(void *arg, const struct choice_point *at)
{
	struct world *w = arg;
	enum coverage_phase before = coverage_enter(COVERAGE_OUTSIDE);
	w->observer(w->observer_arg, w, at);
	coverage_enter(before);
}

static void client_main(void *arg)
{
	struct world_client *c = arg;
	struct world *w = c->world;
	uint8_t *buf = sim_alloc(w->sim, w->setup->params.max_vlen);
	const struct workload_op *op = w->setup->w.client[c->number - 1].op;
	c->away = operations(c) && (op->kind == OP_LEAVE || op->kind == OP_DIE);
	if (!c->away)
		client_open(c);
	assert(w->opened < w->setup->w.clients && !w->booted);
	if (++w->opened == w->setup->w.clients) {
		/* All are connected: from here on things may go differently. */
		sim_source(w->sim, CHECKER_MUTANT(w->setup, PLAIN_ONLY) ? NULL : w->source);
		if (CHECKER_MUTANT(w->setup, TASKS_NEVER_HELD) && w->source)
			w->source->skip[CHOICE_STEP] = UINT32_MAX;
		if (w->source && w->source->touched)
			pmem_watch(w->pm);
		if (w->observer)
			sim_set_observer(w->sim, observe, w);
		w->booted = true;
		sim_wake(w->sim, &w->booted);
	}
	while (!w->booted) {
		sim_idle_on(w->sim, &w->booted);
		sim_yield(w->sim);
	}
	do_the_rest(c, buf);
}

/* --- load phase and readers --- */

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
		int error = run_call(c, &op, &answer);
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

static void load_main(void *arg)
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
			failed(w, c->number, TM_PUT, error);
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
		int error = run_call(c, &op, &answer);
		if (!error)
			continue;
		/* What was injected when it looked may have cost it its connection. */
		if (error_explained(w, c->number, TM_CALL, error))
			return;
		world_refused(w, "run", error, "%s, %s fails: ", proved_when(w),
			      s->store->calls[i].name);
		failed(w, c->number, TM_CALL, error);
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
		failed(w, c->number, TM_PUT, error);
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
	if (error || len != vlen || memcmp(buf, value, len))
		world_trouble(w, true, "%s, GET %s %s%s", proved_when(w), key->name,
			      error ? "fails with " : "does not return what was just put",
			      error ? error_name(error).text : "");
	if (error && error != -ENOENT)
		failed(w, c->number, TM_GET, error);
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
			do_get(c, &op, buf);
		else
			do_call(c, &op, true);
	}
}

static void reader_main(void *arg)
{
	struct world_client *c = arg;
	struct world *w = c->world;
	uint8_t *buf = sim_alloc(w->sim, w->setup->params.max_vlen);
	client_open(c);
	client_read_keys(c, 0, 0, buf);
	if (!life_run(c, buf) && w->booted)
		prove_life(c, buf);
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

/* Cleans the log until two more cleanings are sure to have begun. The second one begins when
 * those before it have ended; and what a cleaning has left may show in the next. */
static void clean_on(struct world_client *c)
{
	struct world *w = c->world;
	uint64_t until = sim_now(w->sim) + GIVEN_UP_NS, nap = CLEANING_NS;
	for (unsigned begun = 0; begun < 2;) {
		int error = do_clean(c);
		if (error && error != -EALREADY)
			return;
		if (!error) {
			begun++;
			until = sim_now(w->sim) + GIVEN_UP_NS;
			nap = CLEANING_NS;
		} else if (sim_now(w->sim) > until) {
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
static void reread_main(void *arg)
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
	if (!someone_died(w))
		sim_source(w->sim, NULL);
	/* What was acknowledged and is held up has landed by then. */
	sim_sleep(w->sim, AT_REST_NS);
	client_open(c);
	client_read_keys(c, 0, 0, buf);
	const unsigned gets = world_keys_read(w), calls = setup_looks(w->setup);
	if (!someone_died(w)) {
		if (clients_answer(w)) {
			clean_on(c);
			client_read_keys(c, gets, calls, buf);
		}
		sim_stop(w->sim, SIM_DONE);
		return;
	}
	sim_source(w->sim, NULL);
	if (client_died(w)) {
		sim_sleep(w->sim, GIVEN_UP_NS);
		client_read_keys(c, gets, calls, buf);
	}
	if (connection_is_lost(w, c->number))
		client_open(c);
	prove_life(c, buf);
	sim_stop(w->sim, SIM_DONE);
}

static void start_clients(struct world *w)
{
	unsigned readers = w->setup->w.clients + 1;
	unsigned first = w->machine || w->loading ? readers : 1,
		 last = w->machine || w->loading ? readers : w->setup->w.clients;
	void (*main)(void *) = w->loading ? load_main : w->machine ? reader_main : client_main;
	assert(last < sizeof(w->client) / sizeof(w->client[0]));
	assert(!w->opened && !w->ended);
	for (unsigned n = first; n <= last; n++) {
		w->client[n] = (struct world_client){.world = w, .number = n, .op = -1};
		sim_spawn(w->sim, n, NULL, main, &w->client[n]);
	}
	if (!first || first > last)
		sim_at(w->sim, AFTERMATH_NS, at_end, w);
}

/* In an operation that never ends, as the store has declared. */
static bool waits_for_others(const struct world_client *c)
{
	const struct world *w = c->world;
	if (!w || (c->op < 0 && !c->apart))
		return false;
	return hang_explained(w, c->number,
			      c->op < 0 ? c->apart : history_operation(w->history->op[c->op].kind));
}

/* What a GET did not answer once the machine had recovered cannot be read. */
static void note_never(struct world_client *c)
{
	struct world *w = c->world;
	if (!w->machine || c->op < 0 || w->history->op[c->op].kind != HISTORY_GET)
		return;
	history_never_returns(w->history, c->op);
	if (w->gets.kept)
		keep_return(c, &w->history->op[c->op]);
}

/* What a run's end means. */
static void conclude(struct world *w, enum sim_end end)
{
	uintptr_t pc;
	unsigned first = w->machine ? w->setup->w.clients + 1 : 1;
	unsigned last = w->machine ? first + w->life.second : w->setup->w.clients + w->reread;
	w->result.end = end;
	if (end == SIM_FAULT) {
		const char *what = sim_fault(w->sim, &pc);
		trouble_at(w, pc, "%s%s%s",
			   w->filling	? "while it is filled: "
			   : w->loading ? "in the load phase: "
					: "",
			   what, sim_fault_where(w->sim));
		for (unsigned n = first; n <= last && w->machine; n++)
			if (w->client[n].world)
				note_never(&w->client[n]);
		return;
	}
	if ((end != SIM_BUDGET && end != SIM_IDLE) || CHECKER_MUTANT(w->setup, LIVE_NEVER))
		return;
	const char *how = sim_repeats(w->sim) ? WORLD_REPEATS : "";
	if (w->loading) {
		world_trouble(w, true, "%s does not end%s",
			      w->filling ? "filling it" : "the load phase", how);
		return;
	}
	for (unsigned n = first; n <= last; n++) {
		struct world_client *c = &w->client[n];
		if (c->done || c->dead || (n > first && w->machine && c->op < 0) ||
		    waits_for_others(c))
			continue;
		if (!w->result.live_broken)
			w->result.live_op = c->world ? c->op : -1;
		if (c->world)
			note_never(c);
		if (w->machine)
			world_trouble(w, true, "after recovery, %s does not terminate%s",
				      w->life.on	      ? "an operation"
				      : w->result.live_op < 0 ? "recovery or connecting"
							      : "a GET",
				      how);
		else
			world_trouble(w, true, "client %u's operation does not terminate%s", n,
				      how);
	}
}

/* The machine runs until its end. */
static void run_machine(struct world *w)
{
	enum coverage_phase before = coverage_enter(w->machine == 0   ? COVERAGE_RUN
						    : w->machine == 1 ? COVERAGE_RECOVERY
								      : COVERAGE_AFTER);
	enum sim_end end = sim_run(w->sim);
	coverage_enter(before);
	conclude(w, end);
}

/* Let a source of choices and an observer take part in world 0's run. */
static void follow_run(struct world *w, struct source *source, world_observer *observer, void *arg)
{
	w->source = source;
	w->observer = observer;
	w->observer_arg = arg;
	sim_set_at_rest(w->sim, w->at_rest, w->rest_arg);
}

void world_run(struct worlds *ws, struct source *source, world_observer *observer, void *arg)
{
	struct world *w = &ws->world[0];
	const struct setup *s = w->setup;
	history_reset(w->history, s->w.keys);
	if (ws->unloaded) {
		worlds_fail_again(ws);
		return;
	}
	w->history->ack_visible = !s->hw.ack_early && s->hw.transport == TRANSPORT_IB;
	for (unsigned v = 0; v < s->values; v++) {
		ws->op_of_value[v] = -1;
		if (s->value[v].client)
			continue;
		const struct workload_op put = {.kind = OP_PUT,
						.key = s->value[v].key,
						.nth = s->value[v].nth,
						.vlen = s->value[v].vlen};
		ws->op_of_value[v] = note_invoke(w, 0, HISTORY_PUT, &put);
		history_return(w->history, ws->op_of_value[v], 0, ws->op_of_value[v]);
	}
	memset(w->client, 0, sizeof(w->client));
	w->loading = false;
	begin(ws, 0, NULL);
	follow_run(w, source, observer, arg);
	sim_set_death(w->sim, dies, w);
	sim_spawn(w->sim, HOST_SERVER, NULL, boot, w);
	run_machine(w);
}

void world_resume(struct worlds *ws, struct source *source, world_observer *observer, void *arg)
{
	struct world *w = &ws->world[0];
	follow_run(w, source, observer, arg);
	run_machine(w);
}

void world_recover(struct worlds *ws, unsigned machine, struct source *source,
		   world_observer *observer, void *arg, bool prove)
{
	struct world *w = &ws->world[machine];
	assert(machine > 0 && machine < WORLDS);
	assert(w->history->epoch == machine); /* history_crash() came first */
	begin(ws, machine, source);
	memset(&w->client[w->setup->w.clients + 1], 0, sizeof(w->client[0]));
	w->observer = observer;
	w->observer_arg = arg;
	w->booted = prove;
	if (observer)
		sim_set_observer(w->sim, observe, w);
	sim_spawn(w->sim, HOST_SERVER, NULL, boot, w);
	run_machine(w);
}

void world_stand(struct worlds *ws, unsigned machine, struct source *source)
{
	assert(machine > 0 && machine < WORLDS);
	begin(ws, machine, source);
}

void world_end(struct worlds *ws, unsigned machine)
{
	/* After worlds_fail_again() nothing runs there. */
	if (machine || !(ws->unloaded || ws->unfilled) || pmem_running(ws->world[0].pm))
		pmem_end(ws->world[machine].pm);
}

/* --- opening --- */

/* What is wrong with a store that does not even start is that its operations fail, and if it
 * crashes or waits for ever, that they do not end. */
static void note_failed(struct worlds *ws)
{
	struct world_result *r = &ws->failed;
	*r = ws->world[0].result;
	r->ok_broken = true;
	r->live_broken = r->end != SIM_DONE;
	memcpy(r->ok_why, r->why, sizeof(r->ok_why));
}

/* The load phase, in an empty pool; `fill`: and on. Did it go well? */
static bool load(struct worlds *ws, bool fill)
{
	struct world *w = &ws->world[0];
	bool well;
	w->filling = fill;
	pmem_load(ws->stack, NULL, w->setup->pm_len);
	w->loading = true;
	begin(ws, 0, NULL);
	sim_spawn(w->sim, HOST_SERVER, NULL, boot, w);
	run_machine(w);
	w->filling = w->loading = false;
	well = !w->result.live_broken && w->result.end == SIM_DONE;
	if (!well)
		note_failed(ws);
	return well;
}

/* The place of the call that failed is looked up here only: it takes long, and few runs end so. */
void worlds_why(const struct worlds *ws, char why[WORLDS_WHY])
{
	const struct world_result *r = &ws->failed;
	struct where *where = r->pc ? where_new() : NULL;
	char line[100] = "";
	where_print(where, r->pc, line, sizeof(line));
	where_free(where);
	snprintf(why, WORLDS_WHY, "%s%s%s%s", r->why, line[0] ? " (" : "", line,
		 line[0] ? ")" : "");
}

int worlds_fill(struct worlds *ws)
{
	struct world *w = &ws->world[0];
	ws->unfilled = !load(ws, true);
	pmem_end(w->pm);
	pmem_load(ws->stack, w->setup->image, w->setup->pm_len);
	return ws->unfilled ? -EIO : 0;
}

void worlds_fail_again(struct worlds *ws)
{
	struct world *w = &ws->world[0];
	assert(ws->unloaded || ws->unfilled);
	if (w->tracer) {
		load(ws, ws->unfilled);
		pmem_end(w->pm);
	}
	w->result = ws->failed;
}

int worlds_open(struct worlds *ws, struct setup *setup)
{
	memset(ws, 0, sizeof(*ws));
	ws->stack = pmem_stack_new(WORLDS, setup->pm_len);
	ws->history = calloc(1, sizeof(*ws->history));
	if (ws->history && (setup->store->judge || setup->own) && history_keep_details(ws->history))
		goto err;
	ws->op_of_value = calloc(setup->values + 1, sizeof(*ws->op_of_value));
	if (!ws->stack || !ws->history || !ws->op_of_value)
		goto err;
	for (unsigned m = 0; m < WORLDS; m++) {
		ws->world[m] = (struct world){.setup = setup,
					      .machine = m,
					      .history = ws->history,
					      .op_of_value = ws->op_of_value,
					      .pm = pmem_machine(ws->stack, m)};
		life_init(&ws->world[m]);
		ws->world[m].sim = sim_new();
		const unsigned looks = setup_looks(setup);
		struct world_gets *gets = &ws->world[m].gets;
		gets->longest = setup->params.max_vlen;
		if (setup_calls(setup) && gets->longest < TM_MAX_ANSWER)
			gets->longest = TM_MAX_ANSWER;
		gets->byte = malloc(
			(2 * (size_t)(setup->w.keys + looks) + LIFE_OPS) * gets->longest + 1);
		if (!ws->world[m].sim || !ws->world[m].gets.byte)
			goto err;
	}
	ws->unloaded = !load(ws, false);
	pmem_save(ws->world[0].pm, setup->image);
	pmem_end(ws->world[0].pm);
	if (ws->unloaded)
		return -EIO;
	pmem_load(ws->stack, setup->image, setup->pm_len);
	return 0;
err:
	worlds_close(ws);
	return -ENOMEM;
}

void worlds_close(struct worlds *ws)
{
	for (unsigned m = 0; m < WORLDS; m++) {
		sim_free(ws->world[m].sim);
		free(ws->world[m].gets.byte);
	}
	pmem_stack_free(ws->stack);
	history_free(ws->history);
	free(ws->op_of_value);
	memset(ws, 0, sizeof(*ws));
}

struct op_label world_op_label(const struct history *h, int op)
{
	static const uint8_t kinds[] = {[HISTORY_PUT] = OP_PUT,
					[HISTORY_GET] = OP_GET,
					[HISTORY_DEL] = OP_DEL,
					[HISTORY_CALL] = OP_CALL};
	struct op_label l = {0};
	if (op < 0 || !h->op[op].client)
		return l;
	const struct history_op *o = &h->op[op];
	l.client = o->client;
	l.kind = kinds[o->kind];
	for (int i = 0; i <= op; i++)
		l.nth += h->op[i].client == o->client && h->op[i].kind == o->kind &&
			 h->op[i].epoch == o->epoch;
	return l;
}

void world_op_name(const struct setup *s, const struct history *h, int op, char *buf, size_t n)
{
	const struct op_label label = world_op_label(h, op);
	if (label.client)
		op_label_print(label, 1, buf, n);
	else
		snprintf(buf, n, "load %s", s->w.key[h->op[op].key].name);
}
