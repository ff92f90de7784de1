/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The structural checks of CA and Forca notice a pool that was damaged. What the baselines break
 * and keep is claimed in their claims.txt.
 */
#include <stdarg.h>
#include "checker/campaign/campaign.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"

struct listener {
	struct tm_fsck fsck;
	unsigned defects;
	char text[200];
};

static void hear(struct tm_fsck *fsck, const char *fmt, ...)
{
	struct listener *l = (struct listener *)fsck;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
	l->defects++;
}

/* Where a used entry is in the loaded pool: the first line with a key. */
static uint8_t *entry_of(const struct setup *s)
{
	for (size_t at = 0; at < s->region[0].len; at += 64)
		if (s->image[at])
			return s->image + at;
	ck_abort_msg("no entry");
}

/* A byte of the entry, or of a region's first line that is in use, is changed; or the entry is
 * moved to another slot. */
static const struct {
	const char *store, *region; /* NULL: the entry */
	unsigned at;
	uint8_t to;
	const char *words;
} damage[] = {
	{"ca", NULL, 0x01, 0x00, "no such key"},
	{"ca", NULL, 0x00, 'b', "no such key"},
	{"ca", "moved", 0, 0, "does not lead to it"},
	{"ca", NULL, 0x27, 0x7f, "outside of the log"},
	{"forca", NULL, 0x01, 0x00, "no key"},
	{"forca", NULL, 0x00, 'b', "does not lead"},
	{"forca", NULL, 0x20, 0x7f, "outside of the pool"},
	{"forca", "meta", 0x00, 0x01, "not before it"},
	{"forca", "meta", 0x18, 0x07, "no such state"},
	{"forca", "meta", 0x08, 0x7f, "outside"},
	{"forca", "meta", 0x14, 0x00, "CRC does not agree"},
};

TESTS(structure, ROWS_OF(damage))
{
	struct setup s;
	struct explorer ex;
	struct listener l = {.fsck.bad = hear};
	make_whole_setup(&s, store_find(damage[_i].store), NULL, "", "w");
	ck_assert_int_eq(explore_open(&ex, &s, &campaign_default.limits), 0); /* loads s.image */
	struct tm_env env = {.params = &s.params, .pm = s.image, .pm_len = s.pm_len};
	s.store->fsck(&env, &l.fsck);
	ck_assert_msg(!l.defects, "%s", l.text);
	uint8_t *line = entry_of(&s);
	bool moved = damage[_i].region && !strcmp(damage[_i].region, "moved");
	if (moved) {
		uint8_t *other = line > s.image ? s.image : s.image + 64;
		memcpy(other, line, 64);
		memset(line, 0, 64);
	} else if (damage[_i].region) {
		ck_assert_str_eq(s.region[1].name, damage[_i].region);
		line = s.image + s.region[1].off + 64; /* the first meta */
		line[0x18] = 1;			       /* valid: its CRC counts */
	}
	if (!moved)
		line[damage[_i].at] = damage[_i].to;
	s.store->fsck(&env, &l.fsck);
	ck_assert_uint_ge(l.defects, 1);
	ck_assert_msg(strstr(l.text, damage[_i].words) != NULL, "%s", l.text);
	explore_close(&ex);
	setup_free(&s);
}

RUN_TESTS(NULL, NULL)
