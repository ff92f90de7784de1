/* SPDX-License-Identifier: BSD-3-Clause */
/* AGREE: what the members of a store with several servers hold of each key. See world_client.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "checker/world/world_client.h"
#include "core/text/error_name.h"

/* A member that the service hears, and whose process is there. */
static bool is_asked(const struct world *w, unsigned server)
{
	const struct rt_config *config = sim_config(w->sim);
	return (config->members & config->alive & w->serving) >> server & 1;
}

/* "server 2 has the value of c1.put1, version 3" */
static void say_copy(const struct world *w, unsigned server, unsigned key, int error,
		     const struct tm_dump *dump, char *out, size_t n)
{
	char name[64] = "no value";
	if (!error) {
		const int32_t value = client_value_of(w, key, dump->value, dump->vlen);
		snprintf(name, sizeof(name), "%zu bytes that no PUT of it wrote", dump->vlen);
		if (value >= 0) {
			strcpy(name, "the value of ");
			world_op_name(w->setup, w->history, value, name + strlen(name),
				      sizeof(name) - strlen(name));
		}
		size_t used = strlen(name);
		snprintf(name + used, sizeof(name) - used, ", version %llu",
			 (unsigned long long)dump->version);
	}
	snprintf(out, n, "server %u has %s", server + 1, name);
}

static bool same(int error, const struct tm_dump *a, int other, const struct tm_dump *b)
{
	return error == other && (error || (a->version == b->version && a->vlen == b->vlen &&
					    !memcmp(a->value, b->value, a->vlen)));
}

/* Do all who hold a copy of the key hold the same? If not, `why`. */
static bool agree_on(struct world *w, unsigned key, uint8_t *buf[2], char *why, size_t n)
{
	const struct setup *s = w->setup;
	struct tm_dump first = {.cap = s->params.max_vlen}, dump = first;
	unsigned holder = SIM_SERVERS;
	int first_error = 0;
	char says[2][80];
	for (unsigned server = 0; server < s->servers; server++) {
		if (!is_asked(w, server))
			continue;
		dump = (struct tm_dump){.value = buf[holder < SIM_SERVERS], .cap = first.cap};
		const int error = s->store->dump(&w->server[server], s->w.key[key].name,
						 s->w.key[key].klen, &dump);
		if (error == -ENODATA)
			continue;
		if ((error && error != -ENOENT) || dump.vlen > dump.cap) {
			snprintf(why, n, "%s: server %u's copy cannot be read (%s)",
				 s->w.key[key].name, server + 1,
				 error ? error_name(error).text : "it is too long");
			return false;
		}
		if (holder == SIM_SERVERS) {
			holder = server;
			first = dump;
			first_error = error;
		} else if (!same(error, &dump, first_error, &first)) {
			say_copy(w, holder, key, first_error, &first, says[0], sizeof(says[0]));
			say_copy(w, server, key, error, &dump, says[1], sizeof(says[1]));
			snprintf(why, n, "%.32s: %s; %s", s->w.key[key].name, says[0], says[1]);
			return false;
		}
	}
	return true;
}

void world_agree(struct world *w)
{
	/* What is on its way may still come: then they are asked again. */
	static const uint64_t pause_ns[] = {AFTERMATH_NS, AT_REST_NS, 20000000000};
	uint8_t *buf[2];
	if (!w->setup->store->dump)
		return;
	for (unsigned i = 0; i < 2; i++)
		buf[i] = sim_alloc(w->sim, w->setup->params.max_vlen + 1);
	for (unsigned tries = 0;; tries++) {
		char why[sizeof(w->result.agree_why)] = "";
		unsigned key = 0;
		w->agreeing = true;
		sim_repeat_allow(w->sim, true);
		while (key < w->setup->w.keys && agree_on(w, key, buf, why, sizeof(why)))
			key++;
		sim_repeat_allow(w->sim, false);
		w->agreeing = false;
		if (key == w->setup->w.keys)
			return;
		if (tries == sizeof(pause_ns) / sizeof(pause_ns[0])) {
			w->result.agree_broken = true;
			memcpy(w->result.agree_why, why, sizeof(why));
			if (sim_tracing(w->sim))
				sim_trace(w->sim, sim_actor(w->sim), 0, "%s", why);
			return;
		}
		sim_repeat_news(w->sim); /* or their tasks would be held up */
		sim_sleep(w->sim, pause_ns[tries]);
	}
}

void agree_main(void *arg)
{
	struct world *w = arg;
	world_agree(w);
	sim_stop(w->sim, SIM_DONE);
}
