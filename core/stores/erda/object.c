/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda's objects and sizes. An object proves itself: its CRC covers the tag, both
 * lengths, the key and the value, so whatever a crash or a slow writer left at an
 * offset is either some PUT's complete object or is seen not to be one.
 */
#include <assert.h>
#include <errno.h>
#include <isa-l/crc.h>
#include "core/rt/rt.h"
#include "core/stores/erda/layout.h"

/* There is room for as many recoveries, which skip a segment each. */
#define SPARE_SEGMENTS	      8
#define SPARE_BIG_SEGMENTS    3
#define BIG_SEGMENT	      (64u << 10) /* bytes */
#define SMALL_SEGMENT_OBJECTS 2
#define TIGHT_OBJECTS	      8 /* of a tight log, besides two of each key */
#define TIGHT_FREE \
	2 /* objects that a tight log takes, besides one of each key, before it is cleaned */
#define FEW_BITS	      9 /* of an offset: reach 512 units */
#define MIN_SLOTS	      16
#define NEIGHBOURHOOD	      8	  /* of small tables */
#define SMALL_TABLE	      256 /* slots */
#define LARGE_NEIGHBOURHOOD   16  /* half-full tables of millions of slots need more than 12 */
#define CROWDED_NEIGHBOURHOOD 2

static uint64_t align_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/*
 * A log: room for all updates of one head, in whole segments, and so much more that
 * the quarter at which it is cleaned is never reached; or hardly any room (knob log).
 */
static void log_sizes(struct erda_geo *geo, const struct tm_params *params)
{
	/* What comes after a recovery begins a segment anyway. */
	uint64_t objects = params->updates - params->later, segments;

	objects += objects == 0;
	if (geo->knob.log) {
		geo->seg_len = align_up(geo->max_obj, TM_LINE);
		geo->region_len = (2 * (uint64_t)params->keys + TIGHT_OBJECTS) * geo->seg_len;
		geo->clean_at = ((uint64_t)params->keys + TIGHT_FREE) * geo->seg_len;
		return;
	}
	if (geo->knob.seg)
		objects = SMALL_SEGMENT_OBJECTS;
	else if (objects * geo->max_obj > ERDA_PAPER_SEG)
		objects = geo->max_obj < ERDA_PAPER_SEG ? ERDA_PAPER_SEG / geo->max_obj : 1;
	geo->seg_len = align_up(objects * geo->max_obj, TM_LINE);
	segments = (params->updates + objects - 1) / objects;
	segments += geo->seg_len > BIG_SEGMENT ? SPARE_BIG_SEGMENTS : SPARE_SEGMENTS;
	segments += (segments + 2) / 3;
	geo->region_len = segments * geo->seg_len;
	geo->clean_at = geo->region_len / 4 * 3;
}

void erda_geo(struct erda_geo *geo, const struct tm_params *params)
{
	const struct erda_knobs *knob = &geo->knob;

	memset(geo, 0, sizeof(*geo));
	memcpy(&geo->knob, params->knob, sizeof(geo->knob));
	geo->bug = knob->bug;
	geo->verify = knob->verify_obj_key == 0;
	geo->heads = knob->heads + 1u;
	geo->slots = MIN_SLOTS;
	while (geo->slots < 2 * (uint64_t)params->keys)
		geo->slots *= 2;
	geo->hop = geo->slots > SMALL_TABLE ? LARGE_NEIGHBOURHOOD : NEIGHBOURHOOD;
	if (knob->crowd)
		geo->hop = CROWDED_NEIGHBOURHOOD;
	geo->entries = geo->slots + geo->hop - 1;
	geo->unit = knob->byte_offsets ? 1 : 8;
	geo->off_mask = knob->offset_bits ? (1u << FEW_BITS) - 1 : ERDA_NO_OFFSET;
	geo->bounded = !knob->byte_offsets;
	geo->marked = !knob->clean_state;
	geo->align = knob->packed ? geo->unit : TM_LINE;
	geo->max_vlen = params->max_vlen;
	geo->max_obj = (uint32_t)align_up(ERDA_HEADER + TM_MAX_KEY + params->max_vlen, geo->align);
	log_sizes(geo, params);
	/* Any object fits into a segment, and no segment ends outside of its region. */
	assert(geo->max_obj <= geo->seg_len && geo->region_len % geo->seg_len == 0);
	assert(geo->clean_at <= geo->region_len && geo->hop <= geo->slots);
	geo->table_off = TM_LINE + geo->heads * sizeof(struct erda_head);
	geo->log_off = align_up(geo->table_off + geo->entries * sizeof(struct erda_entry), TM_LINE);
	geo->pool_len = geo->log_off + geo->heads * ERDA_REGIONS * geo->region_len;
}

static uint32_t object_crc(const struct erda_geo *geo, const uint8_t *bytes, size_t klen,
			   size_t vlen)
{
	size_t body = ERDA_HEADER - ERDA_BODY_AT + klen;

	if (geo->bug != BUG_CRC_NO_VALUE)
		body += vlen;
	return crc32_gzip_refl(crc32_gzip_refl(0, bytes, 1), bytes + ERDA_BODY_AT, body);
}

size_t erda_object_build(const struct erda_geo *geo, uint8_t *bytes, uint8_t tag, const void *key,
			 size_t klen, const void *value, size_t vlen)
{
	uint32_t vlen32 = (uint32_t)vlen, crc;

	assert(klen > 0 && klen <= TM_MAX_KEY && vlen <= geo->max_vlen);
	bytes[0] = tag;
	bytes[ERDA_BODY_AT] = (uint8_t)klen;
	memcpy(bytes + ERDA_BODY_AT + 1, &vlen32, sizeof(vlen32));
	memcpy(bytes + ERDA_HEADER, key, klen);
	if (vlen)
		memcpy(bytes + ERDA_HEADER + klen, value, vlen);
	crc = object_crc(geo, bytes, klen, vlen);
	memcpy(bytes + ERDA_CRC_AT, &crc, sizeof(crc));
	return ERDA_HEADER + klen + vlen;
}

enum erda_state erda_object_check(const struct erda_geo *geo, const uint8_t *bytes, size_t have,
				  size_t room, const void *key, size_t klen,
				  struct erda_object *object)
{
	uint8_t header[ERDA_HEADER];

	memset(object, 0, sizeof(*object));
	if (room < ERDA_HEADER)
		return OBJECT_BAD;
	object->len = ERDA_HEADER;
	if (have < ERDA_HEADER)
		return OBJECT_LONGER;
	memcpy(header, bytes, sizeof(header));
	object->tag = header[0];
	memcpy(&object->crc, header + ERDA_CRC_AT, sizeof(object->crc));
	object->klen = header[ERDA_BODY_AT];
	memcpy(&object->vlen, header + ERDA_BODY_AT + 1, sizeof(object->vlen));
	object->len += object->klen + (size_t)object->vlen;
	if (object->tag > 1 || object->klen == 0 || object->klen > TM_MAX_KEY)
		return OBJECT_BAD;
	if (object->vlen > geo->max_vlen || object->len > room)
		return OBJECT_BAD;
	if (object->len == room && geo->bug == BUG_SEGMENT_EXACT)
		return OBJECT_BAD;
	if (geo->verify && key && object->klen != klen)
		return OBJECT_BAD;
	if (object->len > have)
		return OBJECT_LONGER;
	if (geo->verify && key && !rt_check(!memcmp(bytes + ERDA_HEADER, key, klen)))
		return OBJECT_BAD;
	return rt_check(object_crc(geo, bytes, object->klen, object->vlen) == object->crc)
		       ? OBJECT_GOOD
		       : OBJECT_BAD;
}

size_t erda_room(const struct erda_geo *geo, uint64_t at)
{
	if (at >= geo->region_len || at % geo->align)
		return 0;
	return geo->seg_len - at % geo->seg_len;
}

enum erda_state erda_object_at(const struct erda_geo *geo, const uint8_t *log, uint32_t off,
			       const void *key, size_t klen, struct erda_object *object)
{
	uint64_t at = (uint64_t)off * geo->unit;
	size_t room = erda_room(geo, at);
	struct erda_object found;

	if (off == ERDA_NO_OFFSET || room == 0)
		return OBJECT_BAD;
	return erda_object_check(geo, log + at, room, room, key, klen, object ? object : &found);
}
