/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A workload from bytes, for fuzzing. Every string of bytes is a workload, and a small
 * change of the bytes is a small change of the workload: each operation has a byte of
 * its own, at a fixed place.
 *
 *	byte 0		bits 0-1  clients: 1, 2, 3, 2
 *			bit  2    a second key
 *			bit  3    the first key is not loaded; bit 4: nor the second
 *			bits 5-6  length of the loaded values
 *			bit  7    a loaded key between the two, which no operation touches: in a
 *			          crowded hash table a creation moves it, or the first
 *	byte 1..8	an operation each, in each client's program order
 *			bits 0-2  none, PUT, GET, DELETE, PUT, GET, PUT, clean
 *			bits 3-4  whose it is, modulo the clients
 *			bit  5    of the second key, if there is one
 *			bits 6-7  length of the PUT's value
 *
 * Beside each operation there can be one more byte, in a list of their own: what its client does
 * before.
 *
 *	bits 0-2	1: it leaves, and comes back for the operation (or, before its first one,
 *			comes late); 2: likewise, for its process dies; 3: it pauses; else nothing
 *
 * For a store with transactions, an operation whose bits 0-2 are 4, 5 or 6 is of one with the
 * client's PUT or GET before it. For a store with operations of its own, bits 0-2 say one of these
 * from 4 on, from 1 on if it has no others.
 *
 * Bytes that are missing are 0. A program without operations is one PUT.
 */
#include <errno.h>
#include "scenarios/workload/workload.h"

static const uint16_t lengths[4] = {160, 8, 40, 1500};

/* The number-th of the store's own operations, on keys and with a length as the byte says. */
static int add_call(struct workload *w, unsigned client, unsigned number, uint8_t byte)
{
	struct workload_op op = {.kind = OP_CALL,
				 .call = (uint8_t)(number % workload_call_types(w->calls))};

	for (unsigned k = 0; k < w->calls[op.call].keys; k++)
		op.keys[k] = (uint16_t)(((byte >> 5 & 1) + k) % w->keys);
	if (w->calls[op.call].value)
		op.vlen = lengths[byte >> 6];
	return workload_op_append(w, client, &op);
}

static int add_op(struct workload *w, const struct tm_store *store, uint8_t byte, uint8_t going,
		  unsigned clients)
{
	static const uint8_t goings[8] = {OP_NONE, OP_LEAVE, OP_DIE, OP_PAUSE};
	static const uint8_t kinds[8] = {OP_NONE, OP_PUT, OP_GET, OP_DEL,
					 OP_PUT,  OP_GET, OP_PUT, OP_CLEAN};
	uint8_t kind = kinds[byte & 7], before = goings[going & 7];
	unsigned client = 1 + (byte >> 3 & 3) % clients;
	int rc = 0;

	if (kind == OP_NONE)
		return 0;
	if (before != OP_NONE)
		rc = workload_op_add(w, client, before, 0, 0);
	if (rc < 0)
		return rc;
	if (w->calls && (!store->put || byte & 4))
		return add_call(w, client, (byte & 7) - (store->put ? 4 : 1), byte);
	if (kind == OP_CLEAN && !store->clean)
		kind = OP_GET;
	rc = workload_op_add(w, client, kind, byte & 32 ? w->keys - 1 : 0,
			     kind == OP_PUT ? lengths[byte >> 6] : 0);
	if (!rc && store->txn && (byte & 7) >= 4 && (byte & 7) <= 6)
		workload_op_join(w, client);
	return rc;
}

int workload_from_bytes(struct workload *w, const struct tm_store *store, const uint8_t *bytes,
			size_t n, const uint8_t *goings)
{
	static const uint8_t clients[4] = {1, 2, 3, 2};
	uint8_t head = n ? bytes[0] : 0;
	bool second = head & 4 && store->max_keys != 1;
	int32_t loaded = lengths[head >> 5 & 3];
	int rc;

	w->calls = store->calls;
	if (!store->put)
		loaded = -1;
	rc = workload_key_add(w, "k1", 2, head & 8 ? -1 : loaded);
	if (rc >= 0 && second && head & 128)
		rc = workload_key_add(w, "k2", 2, loaded);
	if (rc >= 0 && second)
		rc = workload_key_add(w, head & 128 ? "k3" : "k2", 2, head & 16 ? -1 : loaded);
	for (size_t i = 1; rc >= 0 && i < n && i < WORKLOAD_BYTES; i++)
		rc = add_op(w, store, bytes[i], goings ? goings[i - 1] : 0, clients[head & 3]);
	if (rc >= 0 && !workload_ops(w))
		rc = store->put ? workload_op_add(w, 1, OP_PUT, 0, lengths[0])
				: add_call(w, 1, 0, 0);
	if (rc < 0) {
		workload_free(w);
		return rc;
	}
	snprintf(w->name, sizeof(w->name), "bytes");
	return 0;
}
