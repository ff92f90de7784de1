/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Durability: what makes an arrived value durable, for a GET or in the background, and
 * the task that does it in the background (EF 4.3.2).
 *
 * Several tasks may look at one object at the same time. The one that settles it, durable or
 * invalid, is decided by a compare-and-swap of its state.
 */
#include "core/stores/efactory/server.h"

#include <libpmem.h>
#include "core/rt/rt.h"

#define NAP_MIN_NS 20000    /* the verifier's pause after a round that settled something */
#define NAP_MAX_NS 64000000 /* doubled up to this while nothing happens */

/*
 * INFLIGHT becomes `to`. True if that is what the object now is, by whomever.
 * The paper's plain stores know nothing of each other (EF 4.3.2).
 */
static bool settle(const struct ef_server *server, struct ef_object *object, uint16_t to)
{
	uint16_t was = EF_INFLIGHT;
	uint8_t *flag = (uint8_t *)&object->state, *valid = flag + 1;

	if (!ef_knobs(&server->params)->bg_plain_store)
		return __atomic_compare_exchange_n(&object->state, &was, to, false,
						   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		       was == to;
	if (to == EF_DURABLE)
		*flag = 1;
	else
		*valid = 0;
	return true;
}

static void persist_value(const struct ef_server *server, const struct ef_object *object,
			  bool verifier)
{
	const struct tm_params *params = &server->params;
	size_t len = object->vlen;

	if (ef_bug(params, verifier ? EF_BUG_BG_NO_FLUSH : EF_BUG_GET_NO_FLUSH))
		return;
	if (!verifier && ef_bug(params, EF_BUG_GET_FLUSH_HEADER)) {
		pmem_persist(object, sizeof(*object));
		return;
	}
	if (len > 8 && ef_bug(params, EF_BUG_FLUSH_SHORT))
		len -= 8;
	pmem_flush(object->value, len);
	if (verifier || !ef_bug(params, EF_BUG_GET_NO_FENCE))
		pmem_drain();
}

bool ef_make_durable(const struct ef_server *server, struct ef_object *object, bool verifier)
{
	bool settled;

	if (ef_knobs(&server->params)->flag_before_value) {
		settled = settle(server, object, EF_DURABLE);
		pmem_persist(&object->state, sizeof(object->state));
		persist_value(server, object, verifier);
		return settled;
	}
	persist_value(server, object, verifier);
	if (ef_bug(&server->params, EF_BUG_ENTRY_LAZY)) {
		bool found;

		pmem_persist(ef_lookup(&server->pool, object->key, &found),
			     sizeof(struct ef_entry));
	}
	settled = settle(server, object, EF_DURABLE);
	pmem_flush(&object->state, sizeof(object->state));
	return settled;
}

/* True if the object needs no more attention. */
static bool verify(const struct ef_server *server, const struct ef_pending *pending)
{
	struct ef_object *object = ef_at(&server->pool, pending->place);

	if (__atomic_load_n(&object->state, __ATOMIC_ACQUIRE) != EF_INFLIGHT)
		return true;
	if (rt_check(ef_crc_ok(object))) {
		ef_make_durable(server, object, true);
		return true;
	}
	if (rt_now() - pending->received_ns <= ef_timeout_ns(&server->params))
		return false;
	settle(server, object, EF_INVALID);
	pmem_flush(&object->state, sizeof(object->state));
	return true;
}

bool ef_verify_round(struct ef_server *server)
{
	uint64_t arrived = __atomic_load_n(&server->arrived, __ATOMIC_ACQUIRE);
	bool news = arrived != server->seen;

	server->seen = arrived;
	for (uint64_t i = server->first; i < arrived; i++) {
		struct ef_pending *pending = &server->pending[i % server->max_pending];

		if (pending->place && verify(server, pending)) {
			pending->place = 0;
			news = true;
		}
		if (pending->place && ef_knobs(&server->params)->bg_blocks)
			break;
	}
	while (server->first < arrived &&
	       !server->pending[server->first % server->max_pending].place)
		__atomic_store_n(&server->first, server->first + 1, __ATOMIC_RELEASE);
	return news;
}

bool ef_background_take(struct ef_server *server)
{
	uint32_t free = 0;

	return __atomic_compare_exchange_n(&server->background, &free, 1, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

void ef_background_leave(struct ef_server *server)
{
	__atomic_store_n(&server->background, 0, __ATOMIC_RELEASE);
}

void ef_verifier(void *arg)
{
	struct ef_server *server = arg;
	uint64_t nap_max = ef_timeout_ns(&server->params) / 4;
	uint64_t nap = NAP_MIN_NS;

	if (nap_max > NAP_MAX_NS)
		nap_max = NAP_MAX_NS;
	for (;;) {
		bool news = false;

		rt_sleep(nap);
		if (ef_background_take(server)) {
			news = ef_verify_round(server);
			ef_background_leave(server);
		}
		nap = news ? NAP_MIN_NS : 2 * nap;
		if (nap > nap_max)
			nap = nap_max;
	}
}
