/* SPDX-License-Identifier: BSD-3-Clause */
/* What stores expect of themselves: the rules of the files, read from those that ship here. */
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "checker/judge/surprise.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

static const struct expectation *find(const char *store, const char *config, int contract)
{
	const struct expectation *e = expect_find(store, config, contract);
	ck_assert_msg(e != NULL, "%s %s %s", store, config, contract_name(contract));
	return e;
}

TEST(rules_and_exceptions)
{
	const struct expectation *rule = find("efactory", "default", TM_LIN),
				 *rare = find("efactory", "ddio=off", TM_LIN);
	ck_assert_ptr_null(expect_mistake());
	ck_assert(rule->broken && !rule->open);
	ck_assert(rare->broken && rare->open);
	ck_assert_str_eq(rare->why, rule->why); /* of the row above */
	ck_assert(!find("efactory", "ack_early=off", TM_LIN)->broken);
	ck_assert(strstr(find("efactory", "domain=mhp", TM_DUR)->why, "NIC buffer") != NULL);
	/* A rule is for the default campaign's hardware; one row names other hardware. */
	ck_assert_ptr_null(expect_find("efactory", "mtu=256", TM_RDA));
	ck_assert(find("efactory", "read_order=right", TM_RDA)->broken);
	ck_assert_ptr_null(expect_find("remotelog", "default", TM_RDA));
	/* A row about a variant is not about the store. */
	ck_assert(find("erda", "default", TM_LIN)->broken);
	ck_assert(!find("erda", "sure/default", TM_LIN)->broken);
}

TEST(switches_that_break)
{
	ck_assert(expect_holds("efactory", TM_RDA));
	ck_assert(!expect_holds("efactory", TM_LIN));
	ck_assert(expect_switch_breaks("efactory", "read_order=right"));
	ck_assert(!expect_switch_breaks("efactory", "read_order=left"));
	ck_assert(!expect_switch_breaks("erda", "read_order=right"));
	/* It breaks what the store breaks anyway. */
	ck_assert(!expect_switch_breaks("efactory", "domain=mhp"));
}

static bool surprises(const char *store, const char *variant, const char *config, int contract)
{
	const char *why;
	const struct surprise_cell cell = {.store = store_find(store),
					   .variant = variant,
					   .config = config,
					   .contract = (unsigned)contract,
					   .broken = true};
	return surprise_in_cell(&cell, &why);
}

/* A variant that is a shape breaks by design what its column breaks; others keep all promises but
 * what a row that names them says. */
TEST(variants_that_are_shapes)
{
	ck_assert(!surprises("saw_imm", "crowded", "default", TM_DUR));
	ck_assert(!surprises("saw_imm", "crowded", "ddio=off", TM_DUR));
	ck_assert(surprises("saw_imm", "crowded", "default", TM_LIN));
	ck_assert(surprises("saw_imm", "get_asks", "default", TM_DUR));
	ck_assert(surprises("saw_imm", "get_asks", "ddio=off", TM_DUR));
	/* Where nothing is said of the hardware, what is said of the variant counts there, too. */
	ck_assert(!surprises("redo_log", "raw", "ack_early=off", TM_DUR));
	ck_assert(surprises("redo_log", "raw", "ack_early=off", TM_RDA));
	/* What other hardware mends stays mended, and what it breaks, broken. */
	ck_assert(!surprises("efactory", "tight", "default", TM_LIN));
	ck_assert(surprises("efactory", "tight", "ack_early=off", TM_LIN));
	ck_assert(surprises("efactory", "tight", "default", TM_RDA));
	ck_assert(!surprises("efactory", "tight", "read_order=right", TM_RDA));
	/* No shape, but named by rows; no promise else is lost. */
	ck_assert(!surprises("erda", "live", "default", TM_LIN));
	ck_assert(!surprises("erda", "live", "ack_early=off", TM_DUR));
	ck_assert(surprises("erda", "live", "default", TM_RDA));
	/* It breaks that for a reason of its own, which other hardware does not mend. */
	ck_assert(!surprises("forca", "public", "ack_early=off", TM_LIN));
	ck_assert(surprises("forca", "default", "ack_early=off", TM_LIN));
	/* Hardware and knobs that no row names. */
	ck_assert(!surprises("forca", "default", "mtu=256", TM_LIN));
	ck_assert(surprises("forca", "default", "mtu=256", TM_RDA));
	ck_assert(!surprises("forca", "public", "mtu=256", TM_LIN));
	ck_assert(surprises("saw_imm", "get_asks", "mtu=256", TM_DUR));
	/* No shape, and a seeded bug. */
	ck_assert(surprises("efactory", "literal", "default", TM_LIN));
	ck_assert(surprises("efactory", "get_no_crc", "default", TM_LIN));
}

TEST(lists_of_configurations)
{
	static const struct {
		const char *list, *config;
		bool named;
	} row[] = {
		{"default,ddio=off", "ddio=off", true},
		{"default,ddio=off", "domain=mhp", false},
		{"*", "crowded+sure", true},
		{"*", "mtu=256", false},
		{"shapes", "crowded+sure", true},
		{"shapes", "default", false},
		/* What is taken out stays out, wherever it stands. */
		{"*,!sure", "crowded+sure", false},
		{"*,!sure", "sure", false},
		{"!sure,crowded+sure", "crowded+sure", false},
		{"*,!sure", "crowded", true},
		{"*,!sure", "default", true},
		{"*,!crowded", "tight+crowded+no_key_check", false},
	};
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		ck_assert_msg(expect_configs_are("erda", row[i].list), "%s", row[i].list);
		ck_assert_msg(expect_names("erda", row[i].list, row[i].config) == row[i].named,
			      "%s, %s", row[i].list, row[i].config);
	}
	ck_assert(!expect_configs_are("erda", "*,!sur"));
	ck_assert(!expect_configs_are("erda", "*,!"));
	ck_assert(!expect_configs_are("erda", "*,!ddio=off"));
	ck_assert(!expect_configs_are("erda", "*,nonesuch"));
	/* A variant without a seeded bug. */
	ck_assert(expect_configs_are("erda", "shapes,live"));
	ck_assert(!expect_configs_are("erda", "shapes,crc_unchecked"));
}

static const struct tm_variant *variant_of(const char *store, const char *name)
{
	for (const struct tm_variant *v = store_find(store)->variants; v->name; v++)
		if (!strcmp(v->name, name))
			return v;
	return NULL;
}

TEST(controls_and_canaries)
{
	unsigned n;
	const struct expect_control *control = expect_controls(&n);
	ck_assert_uint_ge(n, 4);
	for (unsigned i = 0; i < n; i++) {
		const struct tm_variant *v = variant_of(control[i].store, control[i].variant);
		ck_assert(v ? !v->breaks : !strcmp(control[i].variant, "default"));
		ck_assert(expect_keeps(&control[i]) & TM_BIT(TM_FSCK));
		/* Where it is known to break each time, it proves nothing about a bug. What is said
		 * of the variant itself comes first. */
		char config[64];
		snprintf(config, sizeof(config), "%s/%s", control[i].variant, control[i].hardware);
		const struct expectation *e = expect_find(control[i].store, config, TM_DUR);
		if (!e)
			e = expect_find(control[i].store, control[i].hardware, TM_DUR);
		ck_assert(!e || !e->broken || !(expect_keeps(&control[i]) & TM_BIT(TM_DUR)));
	}
	ck_assert_ptr_null(expect_canary("no_such_mutant"));
	const struct expect_canary *c = expect_canary("crash_no_drain");
	ck_assert_ptr_nonnull(c);
	ck_assert_str_eq(c->knob, "ddio=off");
	ck_assert_uint_ne(variant_of(c->store, c->variant)->breaks, 0);
}

TEST(order_of_stores)
{
	unsigned n = 0;
	for (; stores[n]; n++) {
		ck_assert_int_eq(stores[n]->in_default_campaign, n < stores_by_default);
		if (n && n != stores_by_default)
			ck_assert_str_lt(stores[n - 1]->name, stores[n]->name);
		ck_assert_ptr_eq(store_find(stores[n]->name), stores[n]);
		ck_assert(strstr(store_file(stores[n], STORE_EXPECTED).path, stores[n]->name) !=
			  NULL);
	}
	ck_assert_uint_gt(stores_by_default, 0);
	ck_assert_uint_gt(n, stores_by_default);
	ck_assert_ptr_null(store_find("nonesuch"));
}

RUN_TESTS(NULL, NULL)
