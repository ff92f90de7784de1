/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_DOMAIN_H
#define TM_PMEM_DOMAIN_H
/* What the persistence domain keeps, and what the NIC's requests make durable: of the simulation's
 * machines, and of recordings. */
#include "core/hardware/hardware.h"

/* Is what is visible durable? `nic`: what an RNIC has landed. */
static inline bool domain_keeps_visible(const struct hardware *hw, bool nic)
{
	if (MUTANT(hw, PM_CACHES_LOST) && hw->domain == DOMAIN_MHP)
		return false;
	if (MUTANT(hw, PM_VISIBLE_DURABLE))
		return true;
	return hw->domain == DOMAIN_WSP ||
	       (hw->domain == DOMAIN_MHP && (!nic || hw->ddio == DDIO_ON || hw->iio_in_mhp));
}

/* Do data in the NIC's buffers survive? */
static inline bool domain_keeps_nic_buffers(const struct hardware *hw)
{
	return hw->domain == DOMAIN_WSP && !MUTANT(hw, PM_NIC_BUFFERS_LOST);
}

/*
 * Does a flush of the NIC reach what has landed? With ddio=any each line goes to the cache or past
 * it, and no choice is asked for which: where caches are lost, assume the line is in the cache:
 * every outcome of a line on its way to PM is possible for it too, and a NIC flush does not reach
 * it. Where caches survive, it is the other way round.
 */
static inline bool domain_nic_flush_reaches(const struct hardware *hw)
{
	return hw->ddio == DDIO_OFF || (hw->ddio == DDIO_ANY && hw->domain != DOMAIN_DMP) ||
	       MUTANT(hw, PM_DDIO_IGNORED);
}

/* Requests that make durable what their queue pair has landed before; a Commit reaches the caches
 * too. An atomic reads. */
enum nic_request { NIC_FLUSH, NIC_READ, NIC_COMMIT };

/* The part of it that they cover. */
struct nic_cover {
	uint64_t off, len; /* what was landed there other than by a SEND; a READ: everything */
	bool sends;	   /* and all that SENDs left in receive buffers, wherever these are */
};

/* What a request of [off, off + len) covers. False: it makes nothing durable that is not so. */
static inline bool domain_nic_drains(const struct hardware *hw, enum nic_request by, uint64_t off,
				     uint64_t len, struct nic_cover *cover)
{
	bool caches = by == NIC_COMMIT && !MUTANT(hw, PM_COMMIT_CACHED);
	*cover = (struct nic_cover){off, len, by == NIC_FLUSH && hw->flush_covers_send};
	if (by == NIC_READ)
		*cover = (struct nic_cover){0, UINT64_MAX, true};
	return (caches || domain_nic_flush_reaches(hw)) && !domain_keeps_visible(hw, true);
}

/* Does it cover [off, off + len), which is not empty? */
static inline bool nic_covers(const struct nic_cover *cover, bool send, uint64_t off, uint64_t len)
{
	bool in_range = cover->len && off < cover->off + cover->len && cover->off < off + len;
	return send ? cover->sends : in_range;
}

#endif
