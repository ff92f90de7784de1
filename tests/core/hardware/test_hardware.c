/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hardware configuration as words: what is set is printed, what is printed
 * can be set, the default is the first value of each knob, and what is wrong is
 * refused with the values that would be right.
 */
#include "core/hardware/hardware.h"
#include "tests/suite.h"

static const char all_default[] =
	"domain=dmp ddio=on rqwrb=dram transport=ib mtu=1024 dma_order=left read_order=left "
	"line_torn=off iio_in_mhp=on ack_early=on rkey_reuse=off flush_covers_send=on "
	"store_buffer=0";

/* Set all of "name=value name=value". */
static void set_all(struct hardware *hw, const char *text)
{
	char copy[400], *save = NULL;

	ck_assert_uint_lt(strlen(text), sizeof(copy));
	strcpy(copy, text);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		const char *expected = NULL;
		char *value = strchr(word, '=');

		ck_assert_ptr_nonnull(value);
		*value++ = '\0';
		ck_assert_int_eq(hardware_set(hw, word, value, &expected), 0);
	}
}

static void assert_same(const struct hardware *a, const struct hardware *b)
{
#define X(type, field, ...) ck_assert_uint_eq(a->field, b->field);
	HARDWARE_KNOBS(X)
#undef X
}

TEST(default_is_first_value)
{
	struct hardware hw = hardware_default;
	const char *expected = NULL;
	char buf[400];
	unsigned i;

	ck_assert_int_eq(hardware_print(&hardware_default, true, buf, sizeof(buf)),
			 (int)strlen(all_default));
	ck_assert_str_eq(buf, all_default);
	for (i = 0; hardware_knob(i)->name; i++) {
		char first[32];

		snprintf(first, sizeof(first), "%.*s", (int)strcspn(hardware_knob(i)->values, " "),
			 hardware_knob(i)->values);
		ck_assert_int_eq(hardware_set(&hw, hardware_knob(i)->name, first, &expected), 0);
		ck_assert_uint_gt(strlen(hardware_knob(i)->what), 10);
	}
#define X(...) +1
	ck_assert_uint_eq(i, 0 HARDWARE_KNOBS(X));
#undef X
	ck_assert_ptr_null(hardware_knob(i + 100)->name);
	assert_same(&hw, &hardware_default);
}

TEST(default_prints_nothing_when_short)
{
	char buf[8] = "before";

	ck_assert_int_eq(hardware_print(&hardware_default, false, buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, "");
}

/* Every value of every knob, alone: in the right field, and there and back. */
TEST(each_value_round_trip)
{
	for (unsigned i = 0; hardware_knob(i)->name; i++) {
		char values[2000], *save = NULL;
		unsigned n = 0;

		snprintf(values, sizeof(values), "%s", hardware_knob(i)->values);
		for (char *v = strtok_r(values, " ", &save); v;
		     v = strtok_r(NULL, " ", &save), n++) {
			struct hardware hw = hardware_default, back = hardware_default;
			const char *expected = NULL;
			char want[100], got[400];

			ck_assert_int_eq(hardware_set(&hw, hardware_knob(i)->name, v, &expected),
					 0);
			snprintf(want, sizeof(want), "%s=%s", hardware_knob(i)->name, v);
			hardware_print(&hw, false, got, sizeof(got));
			ck_assert_str_eq(got, n ? want : "");
			set_all(&back, got);
			assert_same(&hw, &back);
			hardware_print(&hw, true, got, sizeof(got));
			/* A rare knob is printed where it is not at its default. */
			bool printed = n || hardware_knob(i)->print == KNOB_USUAL;
			ck_assert_msg(printed == !!strstr(got, want), "%s in %s", want, got);
		}
		ck_assert_uint_ge(n, 2);
	}
}

/* Older traces and scripts say own_bug, and line_torn=on. */
TEST(older_name)
{
	struct hardware hw = hardware_default;
	const char *expected = NULL;
	char got[100];

	ck_assert_int_eq(hardware_find("own_bug"), hardware_find("mutant"));
	ck_assert_int_eq(hardware_switch(&hw, "own_bug=pm_fence_one", &expected), 0);
	ck_assert_uint_eq(hw.mutant, MUTANT_PM_FENCE_ONE);
	hardware_print(&hw, false, got, sizeof(got));
	ck_assert_str_eq(got, "mutant=pm_fence_one");
	ck_assert_int_eq(hardware_find("own_bugs"), -1);
	hw = hardware_default;
	ck_assert_int_eq(hardware_switch(&hw, "line_torn=on", &expected), 0);
	ck_assert_uint_eq(hw.line_torn, TORN_PREFIX);
	ck_assert_int_eq(hardware_switch(&hw, "line_torn=yes", &expected), -EINVAL);
}

TEST(of_one_server)
{
	struct hardware hw = hardware_default;
	const char *expected = NULL;
	char got[100];

	ck_assert_int_eq(hardware_switch(&hw, "domain.2=wsp", &expected), 0);
	ck_assert_int_eq(hardware_switch(&hw, "ddio.4=off", &expected), 0);
	ck_assert_int_eq(hardware_switch(&hw, "dma_order.1=relaxed", &expected), 0);
	ck_assert_int_eq(hardware_switch(&hw, "ack_early.4=off", &expected), 0);
	ck_assert_int_eq(hardware_switch(&hw, "ddio.5=off", &expected), -EINVAL);
	ck_assert_int_eq(hardware_switch(&hw, "ddio.0=off", &expected), -EINVAL);
	ck_assert_int_eq(hardware_switch(&hw, "ddio.=off", &expected), -EINVAL);
	ck_assert_int_eq(hardware_switch(&hw, ".1=off", &expected), -EINVAL);
	ck_assert_int_eq(hardware_switch(&hw, "dd.1=off", &expected), -EINVAL);
	ck_assert_int_eq(hardware_switch(&hw, "ddio.1.1=off", &expected), -EINVAL);
	ck_assert_int_eq(hardware_switch(&hw, "mtu.2=256", &expected), -EINVAL);
	ck_assert_uint_eq(hardware_of_server(&hw, 0).domain, DOMAIN_DMP);
	ck_assert_uint_eq(hardware_of_server(&hw, 1).domain, DOMAIN_WSP);
	ck_assert_uint_eq(hardware_of_server(&hw, 3).ddio, DDIO_OFF);
	ck_assert_uint_eq(hardware_of_server(&hw, 0).dma_order, DMA_RELAXED);
	ck_assert_uint_eq(hardware_of_server(&hw, 1).dma_order, DMA_LEFT);
	ck_assert(!hardware_of_server(&hw, 3).ack_early && hardware_of_server(&hw, 0).ack_early);
	hardware_print(&hw, false, got, sizeof(got));
	ck_assert_str_eq(got, "dma_order.1=relaxed domain.2=wsp ddio.4=off ack_early.4=off");
	ck_assert_uint_eq(hardware_knob_server("ack_early.4"), 4);
	ck_assert_uint_eq(hardware_knob_server("ack_early"), 0);
	ck_assert_uint_eq(hardware_knob_server("none"), 0);
}

TEST(right_field)
{
	struct hardware hw = hardware_default;
	const struct hardware want = {
		.domain = DOMAIN_WSP,
		.ddio = DDIO_OFF,
		.rqwrb_pm = true,
		.transport = TRANSPORT_IWARP,
		.mtu = 4096,
		.dma_order = DMA_ANY,
		.read_right = true,
		.line_torn = TORN_ANY,
		.iio_in_mhp = false,
		.ack_early = false,
		.rkey_reuse = true,
		.flush_covers_send = false,
		.store_buffer = 8,
		.calls_fail = true,
	};

	set_all(&hw, "domain=wsp ddio=off rqwrb=pm transport=iwarp mtu=4096 dma_order=any "
		     "read_order=right line_torn=any iio_in_mhp=off ack_early=off rkey_reuse=on "
		     "flush_covers_send=off store_buffer=8 calls=fail");
	assert_same(&hw, &want);
	set_all(&hw, "domain=mhp mtu=256");
	ck_assert_uint_eq(hw.domain, DOMAIN_MHP);
	ck_assert_uint_eq(hw.mtu, 256);
	set_all(&hw, all_default);
	set_all(&hw, "calls=good");
	assert_same(&hw, &hardware_default);
}

static const struct {
	const char *name, *value, *expected;
} refused[] = {
	{"domain", "DMP", "dmp mhp wsp"}, {"domain", "", "dmp mhp wsp"},
	{"domain", "dm", "dmp mhp wsp"},  {"domain", "dmp mhp", "dmp mhp wsp"},
	{"ddio", "yes", "on off any"},	  {"mtu", "1500", "1024 256 512 2048 4096"},
	{"mtu", "01024", "1024 256"},	  {"mtu", "99999999999999999999", "1024 256"},
	{"dma_any", "on", "dma_order"},	  {"", "on", "domain ddio"},
	{"ddio ", "on", "domain ddio"},
};

TESTS(refuse, (int)(sizeof(refused) / sizeof(refused[0])))
{
	struct hardware hw = hardware_default;
	const char *expected = NULL;

	ck_assert_int_eq(hardware_set(&hw, refused[_i].name, refused[_i].value, &expected),
			 -EINVAL);
	ck_assert_ptr_nonnull(strstr(expected, refused[_i].expected));
	assert_same(&hw, &hardware_default);
}

/* An unknown name is answered with all names. */
TEST(all_names_expected)
{
	struct hardware hw = hardware_default;
	const char *expected = NULL;

	ck_assert_int_eq(hardware_set(&hw, "cache", "on", &expected), -EINVAL);
	for (unsigned i = 0; hardware_knob(i)->name; i++)
		ck_assert_ptr_nonnull(strstr(expected, hardware_knob(i)->name));
}

TEST(short_buffers)
{
	int full = hardware_print(&hardware_default, true, NULL, 0);

	ck_assert_int_eq(full, (int)strlen(all_default));
	for (size_t n = 1; n < (size_t)full + 2; n++) {
		char *buf = malloc(n); /* so that ASan sees a byte too many */

		ck_assert_int_eq(hardware_print(&hardware_default, true, buf, n), full);
		ck_assert_uint_eq(strlen(buf), n <= (size_t)full ? n - 1 : (size_t)full);
		ck_assert_int_eq(strncmp(buf, all_default, strlen(buf)), 0);
		free(buf);
	}
}

RUN_TESTS(NULL, NULL)
