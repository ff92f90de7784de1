/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a process's connection manager, and communication IDs. */
#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/provider/cm/cm.h"

#define TIMEOUT	     18 /* 1.07 s between tries, 17.2 s in all */
#define TRIES	     16
#define LINGER_TRIES 6
#define LINGER_MS    50

/* As in a REQ. */
uint8_t own_timeout(void)
{
	const char *text = getenv("TIDEMARK_CM_TIMEOUT");
	unsigned long ms = text ? strtoul(text, NULL, 10) : 0;
	uint8_t timeout = TIMEOUT;

	while (ms && timeout > 8 && cm_timeout_ns(timeout) * TRIES / 1000000 > ms)
		timeout--;
	return timeout;
}

static uint32_t random_word(void)
{
	uint32_t word = 0;

	if (getrandom(&word, sizeof(word), 0) < 0)
		word = (uint32_t)clock_ms() * 2654435761u;
	return word;
}

int send_message(struct cm *cm, struct cm_id *id, const union ibv_gid *to,
		 const struct cm_message *message)
{
	uint8_t mad[MAD_BYTES];

	assert(manager.locked);
	mad_encode(message, mad);
	return manager.mads->send(to, mad);
}

static bool number_is_taken(uint32_t number)
{
	for (const struct cm_id *id = manager.cm.ids; id; id = id->next)
		if (id->number == number)
			return true;
	return false;
}

void choose_number(struct cm_id *id)
{
	uint32_t number;

	do {
		number = manager.mads->slot << CM_ID_SHIFT | random_word() >> (32 - CM_ID_SHIFT);
	} while (number_is_taken(number));
	assert(manager.locked); /* so it is not taken meanwhile */
	assert(number && number >> CM_ID_SHIFT == manager.mads->slot);
	id->number = number;
	id->tid = (uint64_t)random_word() << 32 | number;
	id->conn.local.psn = random_word() & 0xffffff;
}

bool watch_peer(struct cm_id *id, uint32_t number)
{
	struct place *place = place_of(id);
	unsigned slot = number ? cm_fabric_slot(&id->peer_gid, number) : place->found_slot;

	assert(slot < FABRIC_SLOTS);
	place->slot = 0; /* an earlier process of the slot is not this peer */
	int rc = watch_slot(slot);
	if (!rc)
		place->slot = slot;
	return !rc;
}

/* Processes of this fabric see that this one has ended; other hosts have to be told. */
void linger_at_exit(void)
{
	for (unsigned n = 0; n < LINGER_TRIES; n++) {
		bool waits = false;

		for (struct cm_id *id = manager.cm.ids; id; id = id->next) {
			if (id->state != CM_DREQ_SENT)
				continue;
			waits = waits || !place_of(id)->slot;
			if (n)
				send_message(id->cm, id, &id->peer_gid, &id->sent);
		}
		if (!waits)
			return;
		cm_unlock(&manager.cm);
		usleep(LINGER_MS * 1000);
		cm_lock(&manager.cm);
	}
}
