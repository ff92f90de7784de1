/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_DOMAIN_H
#define TM_PMEM_DOMAIN_H
/* What the persistence domain keeps, and what a flush of the NIC reaches: of the simulation's
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
 * it, and no choice is asked for which: where caches are lost, a line in the cache, which the cache
 * may write back at any time, leaves all that one on its way to PM leaves, and no flush of the NIC;
 * where caches survive, it is the other way round.
 */
static inline bool domain_nic_flush_reaches(const struct hardware *hw)
{
	return hw->ddio == DDIO_OFF || (hw->ddio == DDIO_ANY && hw->domain != DOMAIN_DMP) ||
	       MUTANT(hw, PM_DDIO_IGNORED);
}

#endif
