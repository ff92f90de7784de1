/* SPDX-License-Identifier: BSD-3-Clause */
/* One word with its writer and the number of its readers. See lock.h. */
#include <assert.h>
#include "core/stores/octopus/lock.h"

#define READERS 0xffffffffull

bool octopus_lock_write(uint64_t *lock, uint32_t node, unsigned connection)
{
	uint64_t unlocked = 0;
	assert(connection < UINT16_MAX); /* it has 16 bits of the word */
	uint64_t writer = (uint64_t)(uint16_t)node << 48 | (uint64_t)(connection + 1) << 32;

	return __atomic_compare_exchange_n(lock, &unlocked, writer, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

bool octopus_lock_read(uint64_t *lock)
{
	if (__atomic_load_n(lock, __ATOMIC_SEQ_CST) & ~READERS)
		return false;
	__atomic_fetch_add(lock, 1, __ATOMIC_SEQ_CST);
	return true;
}

void octopus_unlock_write(uint64_t *lock)
{
	__atomic_fetch_and(lock, READERS, __ATOMIC_SEQ_CST);
}

void octopus_unlock_read(uint64_t *lock)
{
	assert(*lock & READERS);
	__atomic_fetch_sub(lock, 1, __ATOMIC_SEQ_CST);
}
