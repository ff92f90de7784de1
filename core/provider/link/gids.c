/* SPDX-License-Identifier: BSD-3-Clause */
/* See gids.h. */
#include "core/provider/link/gids.h"

#include <assert.h>
#include <string.h>
#include "core/rnic/objects/device.h"

const uint8_t gid_mac_prefix[2] = {0x02, 0x74};

/* A MAC address in the middle of whose EUI-64 there are two more bytes, and whose bit "locally
 * administered" is inverted there (RFC 4291, appendix A). */
static void gid_of_mac(uint32_t address, union ibv_gid *gid)
{
	*gid = (union ibv_gid){.raw = {0xfe, 0x80, [8] = gid_mac_prefix[0] ^ 2, gid_mac_prefix[1],
				       (uint8_t)(address >> 24), 0xff, 0xfe,
				       (uint8_t)(address >> 16), (uint8_t)(address >> 8),
				       (uint8_t)address}};
}

void gid_of_index(uint32_t address, unsigned index, union ibv_gid *gid)
{
	assert(index < GIDS_FILLED);
	if (index & 1)
		gid_of_mac(address, gid);
	else
		rnic_gid(address, gid);
}

bool gid_is_v2(unsigned index)
{
	return index < 2;
}

bool gid_to_address(const union ibv_gid *gid, uint32_t *address)
{
	const uint8_t *raw = gid->raw;
	uint32_t low = (uint32_t)raw[13] << 16 | (uint32_t)raw[14] << 8 | raw[15];
	union ibv_gid same;

	*address = (uint32_t)raw[12] << 24 | low;
	rnic_gid(*address, &same);
	if (!memcmp(&same, gid, sizeof(same)))
		return true;
	*address = (uint32_t)raw[10] << 24 | low;
	gid_of_mac(*address, &same);
	return !memcmp(&same, gid, sizeof(same));
}
