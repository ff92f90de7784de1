/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda's pool field by field, with the sizes that the paper counts (Erda paper, table 1):
 *
 *	object	tag and CRC 5 bytes, key, value; the lengths are known, and take nothing
 *	entry	key, head ID 1, and of the atomic region 4: a tag and one offset of 31 bits,
 *		for an update leaves the other offset as it is; the key's length takes nothing
 *
 * The head array has no name, nor have bytes that belong to no version: the paper's PUT does not
 * write there, so what is written there counts as it is.
 */
#include "core/stores/erda/layout.h"

static void name_object(const struct erda_geo *geo, const struct tm_env *env,
			struct tm_fields *fields, uint64_t log, uint32_t off)
{
	uint64_t at = log + (uint64_t)off * geo->unit, key = at + ERDA_HEADER;
	struct erda_object object;

	if (erda_object_at(geo, env->pm + log, off, NULL, 0, &object) != OBJECT_GOOD)
		return;
	fields->field(fields, "object tag", at, ERDA_CRC_AT, 1);
	fields->field(fields, "object CRC", at + ERDA_CRC_AT, ERDA_BODY_AT - ERDA_CRC_AT, 4);
	fields->field(fields, "object lengths", at + ERDA_BODY_AT, ERDA_HEADER - ERDA_BODY_AT, 0);
	fields->field(fields, "object key", key, object.klen, object.klen);
	if (!object.tag)
		fields->field(fields, "object value", key + object.klen, object.vlen, object.vlen);
}

static void name_entry(const struct tm_env *env, struct tm_fields *fields,
		       const struct erda_entry *entry)
{
	uint64_t at = (uint64_t)((const uint8_t *)entry - env->pm);
	uint8_t klen = entry->klen <= TM_MAX_KEY ? entry->klen : TM_MAX_KEY;

	fields->field(fields, "entry filling", at, sizeof(*entry), 0);
	fields->field(fields, "entry key", at, klen, klen);
	fields->field(fields, "entry head ID", at + offsetof(struct erda_entry, head), 1, 1);
	fields->field(fields, "atomic region", at + offsetof(struct erda_entry, region), 8, 4);
}

void erda_fields(const struct tm_env *env, struct tm_fields *fields)
{
	const struct erda_head *heads = erda_heads(env->pm);
	struct erda_geo geo;

	erda_geo(&geo, env->params);
	const struct erda_entry *entry = erda_table(&geo, env->pm);
	for (uint32_t i = 0; i < geo.entries; i++, entry++) {
		uint64_t m = entry->region;

		name_entry(env, fields, entry);
		if (m == ERDA_EMPTY || entry->head >= geo.heads)
			continue;
		uint64_t log = erda_region_off(
			&geo, entry->head,
			erda_region_of(&geo, m, erda_state_region(heads[entry->head].state)));
		name_object(&geo, env, fields, log, erda_oldoff(m));
		name_object(&geo, env, fields, log, erda_newoff(m));
	}
}
