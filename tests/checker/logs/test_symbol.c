/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols as names (symbol.h). */
#include "checker/logs/symbol.h"
#include "tests/suite.h"

static const struct {
	const char *symbol, *name;
} rows[] = {
	{"main", "main"},
	{"", ""},
	{"_Z", "_Z"},
	{"_ZN3Log6appendEPKcm", "Log::append"},
	{"_ZNK3Log5wholeEv", "Log::whole"},
	{"_ZN12_GLOBAL__N_13putIiEEvT_", "(anonymous namespace)::put<int>"},
	{"_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()"},
	{"_ZN3LogoRERKS_", "Log::operator|="},
	/* Rust before 2026, and since then. */
	{"_ZN3log3Log6append17h0123456789abcdefE", "log::Log::append"},
	{"_RNvMNtCs6xxl1lAjzDf_1a3logINtB2_3LogAhj4_E6appendB4_", "<a::log::Log<[u8, 4]>>::append"},
};

START_TEST(names)
{
	char buf[200];
	symbol_print(rows[_i].symbol, buf, sizeof(buf));
	ck_assert_str_eq(buf, rows[_i].name);
	/* Cut short, not beyond its room. */
	char small[4] = "xyz";
	symbol_print(rows[_i].symbol, small, 3);
	ck_assert_int_eq(strncmp(small, rows[_i].name, 2), 0);
	ck_assert_uint_le(strlen(small), 2);
}
END_TEST

int main(void)
{
	char buf[20];
	symbol_print("_Z1fv", buf, sizeof(buf));
	if (strcmp(buf, "f") != 0) {
		fputs("built without libiberty\n", stderr);
		return 77;
	}
	Suite *suite = suite_create("symbol");
	TCase *tc = tcase_create("names");
	tcase_add_loop_test(tc, names, 0, sizeof(rows) / sizeof(*rows));
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
