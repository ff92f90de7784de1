/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_ERDA_RECOVER_H
#define TM_STORES_ERDA_RECOVER_H
/*
 * What the parts of Erda's recovery share: recover.c goes through the hash table,
 * recover_clean.c deals with a log that was being cleaned.
 */
#include "core/stores/erda/layout.h"

/* An entry in use, as recovery sees it. */
struct live {
	uint32_t slot;
	uint8_t head, klen;
	uint64_t region;
	uint8_t key[TM_MAX_KEY];
};

struct boot {
	struct erda_geo geo;
	uint8_t *pm;
	struct erda_entry *entry;
	struct live *live;
	uint32_t lives;
};

/* Store an entry's region, durably. */
void recover_set(struct boot *b, struct live *live, uint64_t region);
/* The end of the segment in which `off` lies, bytes; 0 for no version and for nonsense. */
uint64_t recover_segment_end(const struct erda_geo *geo, uint32_t off);
/* Is there an intact object of the entry's key? `object` may be NULL. */
bool recover_intact(const struct boot *b, const struct live *live, unsigned region, uint32_t off,
		    struct erda_object *object);
/* R3. 0, or -ENOSPC. */
int recover_cleaning(struct boot *b, unsigned head);

#endif
