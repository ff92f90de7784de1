/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader of line-oriented text: lines, words, numbers, fields, lists, and what it says. */
#include "core/text/error_name.h"
#include "core/text/text.h"
#include "tests/suite.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static struct input_error error;

/* The lines of a text, each with '|' after it if a newline ended it and with '.' if not. */
static const char *lines_of(const char *input, size_t len)
{
	static char out[200];
	char bytes[200], *line;
	struct text t;

	memcpy(bytes, input, len);
	bytes[len] = '\0';
	out[0] = '\0';
	text_start(&t, bytes, len, &error);
	while (text_line(&t, &line) > 0)
		snprintf(out + strlen(out), sizeof(out) - strlen(out), "%u:%zu:%s%s", t.line, t.len,
			 line, t.ended ? "|" : ".");
	return out;
}

TEST(lines)
{
	ck_assert_str_eq(lines_of("", 0), "");
	ck_assert_str_eq(lines_of("\n", 1), "1:0:|");
	ck_assert_str_eq(lines_of("ab\n\nc", 5), "1:2:ab|2:0:|3:1:c.");
	ck_assert_str_eq(lines_of("ab\r\nc\rd\r\n\r", 10), "1:2:ab|2:3:c\rd|3:0:.");
	ck_assert_str_eq(lines_of("a\0b\nc\n", 6), "1:3:a|2:1:c|");
	ck_assert_uint_eq(error.line, 0);
}

TEST(long_line)
{
	char bytes[] = "1234\n1234\r\n12345\n", *line;
	struct text t;

	text_start(&t, bytes, strlen(bytes), &error);
	t.max = 4;
	ck_assert_int_eq(text_line(&t, &line), 1);
	ck_assert_int_eq(text_line(&t, &line), 1);
	ck_assert_int_eq(text_line(&t, &line), -EINVAL);
	ck_assert_uint_eq(error.line, 3);
	ck_assert_str_eq(error.message, "a line of more than 4 bytes");
}

static const struct {
	const char *line;
	size_t len;
	int comment; /* where it begins, -1: nowhere */
	const char *message;
} byte_cases[] = {
	{"a b\tc~", 6, -1, NULL},
	{"# caf\xc3\xa9", 7, 0, NULL},
	{"k caf\xc3\xa9", 7, -1, "byte 0xc3 at column 6; expected printable ASCII"},
	{"caf\xc3\xa9 #", 7, 6, "byte 0xc3 at column 4; expected printable ASCII"},
	{"# \x1b", 3, 0, "byte 0x1b at column 3; expected printable ASCII or UTF-8"},
	{"a\0b", 3, -1, "a NUL byte at column 2; expected text"},
	{"a\rb", 3, -1, "byte 0x0d at column 2; expected printable ASCII"},
};

TESTS(bytes, COUNT(byte_cases))
{
	struct text t = {.error = &error, .line = 7, .len = byte_cases[_i].len};
	const char *line = byte_cases[_i].line;
	int comment = byte_cases[_i].comment;

	error = (struct input_error){0};
	int rc = text_check_bytes(&t, line, comment < 0 ? NULL : line + comment);
	ck_assert_int_eq(rc, byte_cases[_i].message ? -EINVAL : 0);
	ck_assert_str_eq(error.message, byte_cases[_i].message ? byte_cases[_i].message : "");
	ck_assert_uint_eq(error.line, byte_cases[_i].message ? 7 : 0);
}

/* A message that is too long ends in "...". */
TEST(long_message)
{
	struct text t = {.error = &error, .line = 3};
	ck_assert_int_eq(text_wrong(&t, "%0300d", 1), -EINVAL);
	ck_assert_uint_eq(strlen(error.message), sizeof(error.message) - 1);
	ck_assert_str_eq(error.message + sizeof(error.message) - 6, "00...");
	ck_assert_uint_eq(error.line, 3);
}

TEST(words_and_parts)
{
	char line[] = "  put\tk1 96", parts[] = " k1 8 : put k1 :: ", pair[] = "a=b=c",
	     *rest = line;
	bool more;

	ck_assert_str_eq(text_word(&rest), "put");
	ck_assert_str_eq(text_word(&rest), "k1");
	ck_assert_str_eq(text_word(&rest), "96");
	ck_assert_str_eq(text_word(&rest), "");
	ck_assert_str_eq(text_word(&rest), "");
	rest = parts;
	ck_assert_str_eq(text_part(&rest, ':', &more), "k1 8");
	ck_assert(more);
	ck_assert_str_eq(text_part(&rest, ':', &more), "put k1");
	ck_assert_str_eq(text_part(&rest, ':', &more), "");
	ck_assert(more);
	ck_assert_str_eq(text_part(&rest, ':', &more), "");
	ck_assert(!more);
	ck_assert_str_eq(text_value(pair), "b=c");
	ck_assert_str_eq(pair, "a");
	ck_assert_ptr_null(text_value(pair));
}

static const struct {
	const char *text;
	uint64_t min, max;
	bool good;
	uint64_t value;
} numbers[] = {
	{"0", 0, 0, true, 0},
	{"007", 0, 7, true, 7},
	{"18446744073709551615", 0, UINT64_MAX, true, UINT64_MAX},
	{"18446744073709551616", 0, UINT64_MAX, false, 0},
	{"99999999999999999999", 0, UINT64_MAX, false, 0},
	{"8", 9, 20, false, 0},
	{"21", 9, 20, false, 0},
	{"20", 9, 20, true, 20},
	{"5", 0, 3, false, 0},
	{"", 0, 9, false, 0},
	{"-1", 0, 9, false, 0},
	{"+1", 0, 9, false, 0},
	{" 1", 0, 9, false, 0},
	{"1 ", 0, 9, false, 0},
	{"0x1", 0, 9, false, 0},
};

TESTS(number, COUNT(numbers))
{
	uint64_t value = 0;
	bool good = text_number(numbers[_i].text, numbers[_i].min, numbers[_i].max, &value);
	ck_assert_int_eq(good, numbers[_i].good);
	if (good)
		ck_assert_uint_eq(value, numbers[_i].value);
}

TEST(shown)
{
	char long_text[TEXT_SHOWN + 2];
	memset(long_text, 'x', sizeof(long_text));
	long_text[TEXT_SHOWN + 1] = '\0';
	ck_assert_str_eq(text_show("a\x1b\xc3").text, "'a?\?'");
	ck_assert_str_eq(text_show_part("abc", 2).text, "'ab'");
	ck_assert_uint_eq(strlen(text_show(long_text).text), TEXT_SHOWN + 5);
	ck_assert_str_eq(text_show(long_text).text + TEXT_SHOWN - 1, "xx...'");
}

TEST(fields)
{
	char bytes[] = "store erda\nknob a=b\nclients 8\nkeys 9x\nboot 3";
	struct text t;
	uint64_t n;

	text_start(&t, bytes, strlen(bytes), &error);
	ck_assert_str_eq(text_field(&t, "store", "a store"), "erda");
	ck_assert_ptr_null(text_field_if(&t, "clients"));
	ck_assert_ptr_null(text_field_if(&t, "kno"));
	ck_assert_str_eq(text_field_if(&t, "knob"), "a=b");
	ck_assert_int_eq(text_field_number(&t, "clients", 1, 16, "1 to 16", &n), 0);
	ck_assert_uint_eq(n, 8);
	ck_assert_int_eq(text_field_number(&t, "keys", 1, 16, "keys, 1 to 16", &n), -EINVAL);
	ck_assert_str_eq(error.message, "expected keys, 1 to 16");
	ck_assert_uint_eq(error.line, 4);
	/* Its newline is missing: it may have been cut. */
	ck_assert_ptr_null(text_field(&t, "boot", "boot and a number"));
	ck_assert_uint_eq(error.line, 5);
}

TEST(lists)
{
	static const char list[] = "off on auto";
	size_t len;
	ck_assert_uint_eq(word_list_count(list), 3);
	ck_assert_int_eq(word_list_find(list, "off"), 0);
	ck_assert_int_eq(word_list_find(list, "auto"), 2);
	ck_assert_int_eq(word_list_find(list, "o"), -1);
	ck_assert_int_eq(word_list_find(list, "on auto"), -1);
	ck_assert_ptr_eq(word_list_at(list, 1, &len), list + 4);
	ck_assert_uint_eq(len, 2);
	ck_assert_ptr_null(word_list_at(list, 3, &len));
}

/* A file is read up to one byte more than is wanted, however it comes. */
TEST(files)
{
	static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 9999, 10000, 10001, 20000};
	for (int i = 0; i < COUNT(sizes); i++) {
		char *in = malloc(sizes[i] + 1), *bytes;
		size_t len;
		int rc = 0;
		memset(in, 'x', sizes[i] + 1);
		FILE *file = fmemopen(in, sizes[i] + 1, "r");
		ck_assert_ptr_nonnull(file);
		if (!sizes[i])
			ck_assert_int_eq(getc(file), 'x');
		bytes = text_read(file, 10000, &len, &error, &rc);
		ck_assert_ptr_nonnull(bytes);
		ck_assert_uint_eq(len, !sizes[i] ? 0 : sizes[i] < 10000 ? sizes[i] + 1 : 10001);
		ck_assert_uint_eq(strlen(bytes), len);
		fclose(file);
		free(bytes);
		free(in);
	}
	FILE *folder = fopen("/", "r");
	size_t len;
	int rc = 0;
	ck_assert_ptr_nonnull(folder);
	ck_assert_ptr_null(text_read(folder, 10, &len, &error, &rc));
	ck_assert_int_eq(rc, -EISDIR);
	ck_assert_str_eq(error.message, "reading failed: Is a directory");
	fclose(folder);
}

TEST(errors)
{
	ck_assert_str_eq(error_name(-EMSGSIZE).text, "EMSGSIZE");
	ck_assert_str_eq(error_name(-EAGAIN).text, "EAGAIN");
	ck_assert_str_eq(error_name(0).text, "0");
	ck_assert_str_eq(error_name(EMSGSIZE).text, "90, which is no -errno");
	ck_assert_str_eq(error_name(INT32_MIN).text, "-2147483648, which is no -errno");
}

RUN_TESTS(NULL, NULL)
