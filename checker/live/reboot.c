/* SPDX-License-Identifier: BSD-3-Clause */
/* See reboot.h. There is no source of choices: every choice is the plain one. */
#include "checker/live/reboot.h"
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/crash.h"
#include "core/rnic/rnic.h"
#include "core/text/error_name.h"
#include "scenarios/live_store.h"

#define LANDING_NS     150000		     /* until what was acknowledged is visible, too */
#define GIVE_UP_NS     (600ull * 1000000000) /* of virtual time: what has not ended never will */
#define STEPS_BASE     10000000ull	     /* steps of a run ... */
#define STEPS_PER_BYTE 64	  /* ... of each byte of the pool, which recovery may look at ... */
#define STEPS_PER_KEY  100000ull  /* ... and of each GET */
#define LIFE_ID	       UINT64_MAX /* of no client */
#define LIFE_VLEN      40

struct rebooter {
	const struct tm_store *store;
	const struct tm_params *params;
	size_t pm_len;
	struct sim *sim;
	struct pmem_stack *stack;
	struct rnic_net *net;
	/* of the run that is on */
	struct tm_env server, client;
	const uint32_t *keys;
	unsigned n;
	rebooted_value *value;
	void *arg;
	struct rebooted *out;
	void *handle;
	const char *doing;
	bool done;
};

__attribute__((format(printf, 2, 3))) static void trouble(struct rebooter *r, const char *fmt, ...)
{
	va_list ap;

	if (r->out->live_broken)
		return; /* the first one counts */
	r->out->live_broken = true;
	va_start(ap, fmt);
	vsnprintf(r->out->why, sizeof(r->out->why), fmt, ap);
	va_end(ap);
}

struct checked {
	struct tm_fsck fsck;
	struct rebooter *rebooter;
};

static void fsck_bad(struct tm_fsck *fsck, const char *fmt, ...)
{
	struct rebooted *out = ((struct checked *)fsck)->rebooter->out;
	char text[160];
	va_list ap;

	if (out->fsck_broken)
		return;
	out->fsck_broken = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(out->defect, sizeof(out->defect), "the structural check after recovery says: %s",
		 text);
}

static void give_up(struct sim *sim, void *arg)
{
	(void)arg;
	sim_stop(sim, SIM_BUDGET);
}

/* --- the reader --- */

static bool read_keys(struct rebooter *r, uint8_t *buf)
{
	char key[LIVE_KEY_LEN + 1];

	for (unsigned i = 0; i < r->n; i++) {
		size_t len = 0;
		live_key(r->keys[i], key);
		sim_repeat_news(r->sim); /* another operation: a store may do the same for each */
		int error = r->store->get(r->handle, key, LIVE_KEY_LEN, buf, r->params->max_vlen,
					  &len);
		if (error && error != -ENOENT) {
			trouble(r, "after recovery, GET %s fails with %s", key,
				error_name(error).text);
			return false;
		}
		/* No PUT has a longer value: these are foreign bytes, as no bytes at all would be.
		 */
		r->value(r->arg, i, error, buf, len <= r->params->max_vlen ? len : 0);
		r->out->read++;
	}
	return true;
}

static void prove_life(struct rebooter *r, uint8_t *buf)
{
	uint8_t value[LIFE_VLEN];
	char key[LIVE_KEY_LEN + 1];
	size_t len = 0, vlen = r->params->max_vlen < LIFE_VLEN ? r->params->max_vlen : LIFE_VLEN;

	live_key(r->n ? r->keys[0] : 0, key);
	live_value(LIFE_ID, r->n ? r->keys[0] : 0, value, vlen);
	int error = r->store->put(r->handle, key, LIVE_KEY_LEN, value, vlen);
	if (error == -ENOSPC) {
		r->out->full = true;
		return;
	}
	if (error) {
		trouble(r, "after recovery, a new PUT %s fails with %s", key,
			error_name(error).text);
		return;
	}
	/* Acknowledged is not visible: look once more when all has landed. */
	for (unsigned look = 0; look < 2; look++) {
		if (look)
			sim_sleep(r->sim, LANDING_NS);
		error = r->store->get(r->handle, key, LIVE_KEY_LEN, buf, r->params->max_vlen, &len);
		if (!error && len == vlen && !memcmp(buf, value, len))
			return;
	}
	trouble(r, "after recovery, GET %s %s%s", key,
		error ? "fails with " : "does not return what was just put",
		error ? error_name(error).text : "");
}

static void reader_main(void *arg)
{
	struct rebooter *r = arg;
	uint8_t *buf = sim_alloc(r->sim, r->params->max_vlen);

	r->client = (struct tm_env){.params = r->params, .client = r->params->clients};
	r->client.verbs = rnic_open(r->net, r->params->clients, NULL);
	r->doing = "connecting";
	int error = r->store->open(&r->client, &r->handle);
	if (error)
		trouble(r, "a client cannot connect: %s", error_name(error).text);
	r->doing = "a GET";
	if (!error && read_keys(r, buf)) {
		r->doing = "the PUT or the GET that proves life";
		prove_life(r, buf);
	}
	r->done = true;
	sim_stop(r->sim, SIM_DONE);
}

/* --- the server --- */

static void boot(void *arg)
{
	struct rebooter *r = arg;
	struct checked check = {.fsck.bad = fsck_bad, .rebooter = r};
	struct pmem *pm = pmem_machine(r->stack, 0);

	r->server = (struct tm_env){.params = r->params, .pm = pmem_base(pm), .pm_len = r->pm_len};
	r->server.verbs = rnic_open(r->net, HOST_SERVER, pm);
	r->doing = "recovery";
	int error = r->store->recover(&r->server);
	if (error) {
		trouble(r, "recovery fails with %s", error_name(error).text);
	} else {
		r->doing = "the structural check";
		sim_repeat_allow(r->sim, true); /* a check may compare all with all */
		r->store->fsck(&r->server, &check.fsck);
		sim_repeat_allow(r->sim, false);
		r->doing = "the start of the server";
		error = r->store->serve(&r->server);
		if (error)
			trouble(r, "the server does not start: %s", error_name(error).text);
	}
	if (error) {
		r->done = true;
		sim_abandon(r->sim, SIM_DONE);
	}
	sim_spawn(r->sim, r->params->clients, NULL, reader_main, r);
}

void reboot_image(struct rebooter *r, const uint8_t *pool, const uint32_t *keys, unsigned n,
		  rebooted_value *value, void *arg, struct rebooted *out)
{
	struct pmem *pm = pmem_machine(r->stack, 0);
	uintptr_t pc;

	memset(out, 0, sizeof(*out));
	r->keys = keys;
	r->n = n;
	r->value = value;
	r->arg = arg;
	r->out = out;
	r->done = false;
	pmem_load(r->stack, pool, r->pm_len);
	sim_reset(r->sim, NULL);
	pmem_begin(pm, r->sim, &hardware_default);
	r->net = rnic_net_new(r->sim, &hardware_default);
	sim_set_step_budget(r->sim, STEPS_BASE + STEPS_PER_BYTE * r->pm_len + STEPS_PER_KEY * n);
	sim_at(r->sim, GIVE_UP_NS, give_up, r);
	sim_spawn(r->sim, HOST_SERVER, NULL, boot, r);
	enum sim_end end = sim_run(r->sim);
	if (end == SIM_FAULT)
		trouble(r, "%s%s, in %s after the failure", sim_fault(r->sim, &pc),
			sim_fault_where(r->sim), r->doing);
	else if (!r->done)
		trouble(r, "after the failure, %s does not terminate", r->doing);
	pmem_end(pm);
}

int rebooter_new(struct rebooter **out, const struct tm_store *store,
		 const struct tm_params *params)
{
	struct rebooter *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->store = store;
	r->params = params;
	r->pm_len = store->pm_bytes(params);
	r->sim = sim_new();
	r->stack = pmem_stack_new(1, r->pm_len);
	if (!r->sim || !r->stack) {
		rebooter_free(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void rebooter_free(struct rebooter *r)
{
	if (!r)
		return;
	sim_free(r->sim);
	pmem_stack_free(r->stack);
	free(r);
}
