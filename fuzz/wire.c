/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libFuzzer target for the packet parser (core/provider/link/wire.h): any bytes, from the BTH on,
 * with and without a check of the ICRC. What is taken says the same when it is encoded and parsed
 * again.
 *
 *	build-clang/fuzz_wire -max_len=256 build/corpus/wire
 */
#include <stdlib.h>
#include <string.h>
#include "core/provider/base/engine.h"
#include "core/provider/link/wire.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/transport/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const struct wire_ends ends = {
		.src = 1, .dst = 2, .sport = 3, .dport = ROCE_PORT, .any_id = true};
	static uint8_t first[WIRE_PACKET], second[WIRE_PACKET];
	static struct rnic_net net;
	struct packet *pkt, *again;
	int len;

	if (!net.ground.run)
		net.ground = *engine_ground(engine_new());
	if (!wire_decode(&net, bytes, n, &ends, true, &pkt))
		packet_put(&net, pkt);
	if (wire_decode(&net, bytes, n, &ends, false, &pkt))
		return 0;
	len = wire_encode(pkt, &ends, first, sizeof(first));
	if (len != (int)n || wire_decode(&net, first, (size_t)len, &ends, true, &again))
		abort();
	if (wire_encode(again, &ends, second, sizeof(second)) != len ||
	    memcmp(first, second, (size_t)len))
		abort();
	packet_put(&net, pkt);
	packet_put(&net, again);
	return 0;
}
