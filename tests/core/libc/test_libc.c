/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Do the library functions of store code do what libc's do? Many calls of each are made side by
 * side. And what is their own: errno of a task, time and chance of a machine, what is printed, the
 * end of a process. (That their accesses are seen: test_tracer.)
 */
#include <libpmem.h>
#include <sys/mman.h>
#include "core/libc/stdio.h"
#include "core/libc/stdlib.h"
#include "core/libc/string.h"
#include "core/libc/time.h"
#include "core/pmem/crash.h"
#include "core/pmem/hooks.h"
#include "core/rt/process/libc.h"
#include "core/rt/sim.h"
#include "tests/suite.h"

#define POOL 4096

static struct sim *sim;
static struct pmem_stack *stack;

static void setup(void)
{
	sim = sim_new();
	stack = pmem_stack_new(1, POOL);
	ck_assert(sim && stack);
	pmem_load(stack, NULL, POOL);
	pmem_begin(pmem_machine(stack, 0), sim, &hardware_default);
}

static void teardown(void)
{
	pmem_end(pmem_machine(stack, 0));
	pmem_stack_free(stack);
	sim_free(sim);
}

/* Another run, of a machine that boots for the nth time. */
static void again(unsigned boot)
{
	pmem_end(pmem_machine(stack, 0));
	sim_reset(sim, NULL);
	pmem_begin(pmem_machine(stack, 0), sim, &hardware_default);
	sim_set_boot(sim, boot);
}

static enum sim_end run_on(unsigned host, void (*task)(void *), void *arg)
{
	ck_assert_int_eq(sim_spawn(sim, host, "test", task, arg), 0);
	return sim_run(sim);
}

/* To its end. (A check that fails in the task ends the process.) */
static void run(void (*task)(void *), void *arg)
{
	enum sim_end end = run_on(HOST_SERVER, task, arg);
	ck_assert_msg(end == SIM_IDLE, "%s", sim_fault(sim, NULL));
}

/* --- strings --- */

#define TEXTS 3000
#define ROOM  24

/* The same in every run. */
static unsigned next_number(unsigned below)
{
	static uint64_t state = 1;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % below;
}

/* Text of few letters, so that much is alike. */
static void random_text(char text[ROOM])
{
	unsigned len = next_number(12);
	for (unsigned i = 0; i < len; i++)
		text[i] = "aAbB\xe4"[next_number(5)];
	memset(text + len, 0, ROOM - len);
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

/* `mine` and libc's, on equal memory: the same result, as an offset, and the same bytes. */
#define SAME_COPY(mine, libc, ...)                                    \
	do {                                                          \
		char own[2 * ROOM], *to = own;                        \
		memcpy(to, there, sizeof(there));                     \
		ptrdiff_t at = (char *)libc(__VA_ARGS__) - to;        \
		memcpy(expected, to, sizeof(there));                  \
		memcpy(to, there, sizeof(there));                     \
		ck_assert_int_eq((char *)mine(__VA_ARGS__) - to, at); \
		ck_assert_mem_eq(to, expected, sizeof(there));        \
	} while (0)
#define SAME(mine, libc, ...) ck_assert(mine(__VA_ARGS__) == libc(__VA_ARGS__))
#define SAME_SIGN(mine, libc, ...) \
	ck_assert_int_eq(sign(mine(__VA_ARGS__)), sign(libc(__VA_ARGS__)))

static void strings_task(void *arg)
{
	/* In the pool, by words, and not. */
	char dram[2][ROOM], *pool = (char *)pmem_base(pmem_machine(stack, 0));
	for (unsigned i = 0; i < TEXTS; i++) {
		char *a = i & 1 ? dram[0] : pool + next_number(20);
		char *b = i & 2 ? dram[1] : pool + 64 + next_number(20);
		char there[2 * ROOM], expected[2 * ROOM];
		unsigned n = next_number(14);
		int c = "aAbB\xe4"[next_number(5)];
		random_text(a);
		random_text(b);
		memset(there, 'x', sizeof(there));
		strcpy(there, "here");
		SAME(sim_strlen, strlen, a);
		SAME(sim_strnlen, strnlen, a, n);
		SAME_SIGN(sim_strcmp, strcmp, a, b);
		SAME_SIGN(sim_strncmp, strncmp, a, b, n);
		SAME_SIGN(sim_strcasecmp, strcasecmp, a, b);
		SAME_SIGN(sim_strncasecmp, strncasecmp, a, b, n);
		SAME(sim_memchr, memchr, a, c, n);
		SAME(sim_memrchr, memrchr, a, c, n);
		SAME(sim_strchr, strchr, a, c);
		SAME(sim_strchr, strchr, a, 0);
		SAME(sim_strchrnul, strchrnul, a, c);
		SAME(sim_strrchr, strrchr, a, c);
		SAME(sim_strrchr, strrchr, a, 0);
		b[next_number(4)] = 0;
		SAME(sim_strstr, strstr, a, b);
		SAME(sim_strcasestr, strcasestr, a, b);
		SAME(sim_memmem, memmem, a, n, b, strlen(b));
		SAME(sim_strspn, strspn, a, b);
		SAME(sim_strcspn, strcspn, a, b);
		SAME(sim_strpbrk, strpbrk, a, b);
		SAME_COPY(sim_strcpy, strcpy, to, a);
		SAME_COPY(sim_stpcpy, stpcpy, to, a);
		SAME_COPY(sim_strncpy, strncpy, to, a, n);
		SAME_COPY(sim_stpncpy, stpncpy, to, a, n);
		SAME_COPY(sim_strcat, strcat, to, a);
		SAME_COPY(sim_strncat, strncat, to, a, n);
		SAME_COPY(sim_mempcpy, mempcpy, to, a, n);
	}
}

TEST(strings_are_as_libc_has_them)
{
	run(strings_task, NULL);
}

static void words_task(void *arg)
{
	static const char *const sets[] = {" ", ", ", ",", ""};
	for (unsigned s = 0; s < 4; s++) {
		char mine[] = " a b,, c ,", theirs[] = " a b,, c ,", *save[2], *word[2];
		word[0] = sim_strtok_r(mine, sets[s], &save[0]);
		word[1] = strtok_r(theirs, sets[s], &save[1]);
		while (word[0] && word[1]) {
			ck_assert_str_eq(word[0], word[1]);
			ck_assert_int_eq(word[0] - mine, word[1] - theirs);
			word[0] = sim_strtok_r(NULL, sets[s], &save[0]);
			word[1] = strtok_r(NULL, sets[s], &save[1]);
		}
		ck_assert(!word[0] && !word[1]);
		char again[2][12] = {" a b,, c ,", " a b,, c ,"};
		save[0] = again[0];
		save[1] = again[1];
		while (save[0] && save[1])
			ck_assert_str_eq(sim_strsep(&save[0], sets[s]), strsep(&save[1], sets[s]));
		ck_assert(!save[0] && !save[1]);
	}
}

TEST(words_are_as_libc_has_them)
{
	run(words_task, NULL);
}

/* --- numbers, formats --- */

static void numbers_task(void *arg)
{
	static const char *const texts[] = {"0",       "-1",
					    " \t+77x", "0x1F",
					    "0x",      "08",
					    "zz",      "",
					    "-",       "9223372036854775808",
					    "1e3",     ".5",
					    "1.5e",    "inf",
					    "nan(12)", "-0x1p-3",
					    "1_000",   "99999999999999999999999",
					    "1e999"};
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *s = texts[i];
		char *end[2];
		for (int base = 0; base <= 36; base += base ? 13 : 10) {
			long mine, theirs;
			int error[2];
			errno = 0;
			mine = sim_strtol(s, &end[0], base);
			error[0] = errno;
			errno = 0;
			theirs = strtol(s, &end[1], base);
			error[1] = errno;
			ck_assert(mine == theirs && end[0] == end[1] && error[0] == error[1]);
			ck_assert(sim_strtoull(s, &end[0], base) == strtoull(s, &end[1], base));
			ck_assert_ptr_eq(end[0], end[1]);
		}
		double mine = sim_strtod(s, &end[0]), theirs = strtod(s, &end[1]);
		ck_assert(!memcmp(&mine, &theirs, sizeof(mine)) && end[0] == end[1]);
		ck_assert_int_eq(sim_atoi(s), atoi(s));
	}
}

TEST(numbers_are_as_libc_has_them)
{
	run(numbers_task, NULL);
}

/* Any format, with the same arguments, of two functions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wformat-truncation"
#pragma GCC diagnostic ignored "-Wformat-overflow"
#endif
#define SAME_PRINT(...)                                                                 \
	do {                                                                            \
		char mine[600], theirs[600];                                            \
		int chars = snprintf(theirs, sizeof(theirs), __VA_ARGS__);              \
		ck_assert_int_eq(sim_snprintf(mine, sizeof(mine), __VA_ARGS__), chars); \
		ck_assert_str_eq(mine, theirs);                                         \
		memset(mine, 1, sizeof(mine));                                          \
		memset(theirs, 1, sizeof(theirs));                                      \
		snprintf(theirs, 5, __VA_ARGS__);                                       \
		sim_snprintf(mine, 5, __VA_ARGS__);                                     \
		ck_assert_mem_eq(mine, theirs, sizeof(mine));                           \
		ck_assert_int_eq(sim_snprintf(NULL, 0, __VA_ARGS__), chars);            \
	} while (0)

static void print_task(void *arg)
{
	static const char *const whole[] = {"%d",   "%5i",   "%-7d|", "%+d", "% d",  "%05d",
					    "%.3d", "%8.3d", "%u",    "%x",  "%#X",  "%o",
					    "%#o",  "%hd",   "%hhd",  "%hu", "%hhu", "%'d"};
	static const char *const large[] = {"%ld", "%lld", "%lu", "%llx", "%zu", "%zd",
					    "%jd", "%ju",  "%td", "%#lx", "%qd"};
	static const char *const real[] = {"%f", "%.0f", "%10.3f|", "%-10.1e|", "%g",	"%#g",
					   "%G", "%a",	 "%+.2f",   "%012.4f",	"%.20f"};
	static const char *const word[] = {"%s", "%10s|", "%-10s|", "%.2s", "%10.1s|", "%.0s"};
	for (unsigned i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		for (int n = 0; n < 6; n++)
			SAME_PRINT(whole[i], (int[]){0, 1, -1, 300, INT32_MAX, INT32_MIN}[n]);
	for (unsigned i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		for (int n = 0; n < 4; n++)
			SAME_PRINT(large[i], (long[]){0, -1, INT64_MAX, INT64_MIN}[n]);
	for (unsigned i = 0; i < sizeof(real) / sizeof(real[0]); i++)
		for (int n = 0; n < 6; n++)
			SAME_PRINT(real[i], (double[]){0, -0.0, 1.5, -1e300, 1e-9, 1 / 0.0}[n]);
	for (unsigned i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		for (int n = 0; n < 3; n++)
			SAME_PRINT(word[i], ((const char *[]){"", "a word", "longer than ten"})[n]);
	SAME_PRINT("%s %d %c%%%p|%5c|%-3c|", "mixed", 7, 'x', (void *)0x1234, 'y', 'z');
	SAME_PRINT("%*d|%-*d|%.*d|%*.*f", 6, 1, 6, 2, 3, 4, 9, 2, 1.25);
	SAME_PRINT("%*d|%.*d", -6, 1, -3, 4);
	SAME_PRINT("%Lf %.3Le", 1.25L, -2e30L);
	SAME_PRINT("nothing");
	SAME_PRINT("%s", (char *)arg);
}
#pragma GCC diagnostic pop

TEST(texts_are_printed_as_libc_does)
{
	run(print_task, NULL);
}

struct scanned {
	int n, values[3];
	char words[2][20];
	double real;
};

#define SCAN_ALL(scan, out, ...) (out = (struct scanned){0}, out.n = scan(__VA_ARGS__))
#define SAME_SCAN(input, format, ...)                                                        \
	do {                                                                                 \
		struct scanned got, mine, theirs;                                            \
		struct scanned *to = &got;                                                   \
		SCAN_ALL(sim_sscanf, got, input, format, ##__VA_ARGS__);                     \
		mine = got;                                                                  \
		SCAN_ALL(sscanf, got, input, format, ##__VA_ARGS__);                         \
		theirs = got;                                                                \
		(void)to;                                                                    \
		ck_assert_msg(!memcmp(&mine, &theirs, sizeof(mine)), "\"%s\" as \"%s\": %d", \
			      input, format, mine.n);                                        \
	} while (0)

static void scan_task(void *arg)
{
	static const char *const inputs[] = {
		"",	   " ",	     "1",     "1 2",	 "1 2 3",    "x",	   "1 x",
		"  12,34", "12 ,34", "a b c", "abc=def", "abc =def", "0x1f 7",	   "-5 -6 7",
		"1.5 2",   "%5 6",   "12345", "a\nb",	 "]x",	     "99999999999"};
	for (unsigned i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		const char *in = inputs[i];
		SAME_SCAN(in, "%d", &to->values[0]);
		SAME_SCAN(in, "%d %d %d", &to->values[0], &to->values[1], &to->values[2]);
		SAME_SCAN(in, "%d,%d%n", &to->values[0], &to->values[1], &to->values[2]);
		SAME_SCAN(in, "%i%x", &to->values[0], (unsigned *)&to->values[1]);
		SAME_SCAN(in, "%2d%2d%1d", &to->values[0], &to->values[1], &to->values[2]);
		SAME_SCAN(in, "%s %s", to->words[0], to->words[1]);
		SAME_SCAN(in, "%3[a-c]%[^ ]", to->words[0], to->words[1]);
		SAME_SCAN(in, "%[]x]", to->words[0]);
		SAME_SCAN(in, "%c%2c", to->words[0], to->words[1]);
		SAME_SCAN(in, "%*d %s", to->words[0]);
		SAME_SCAN(in, "%lf %hhd", &to->real, (signed char *)&to->values[0]);
		SAME_SCAN(in, "%%%d", &to->values[0]);
		SAME_SCAN(in, "a %s", to->words[0]);
	}
}

TEST(texts_are_scanned_as_libc_does)
{
	run(scan_task, NULL);
}

/* --- sorting --- */

struct pair {
	int key, number;
};

static int by_key(const void *a, const void *b)
{
	return ((const struct pair *)a)->key - ((const struct pair *)b)->key;
}

static void sort_task(void *arg)
{
	struct pair p[100];
	for (int n = 0; n <= 100; n++) {
		for (int i = 0; i < n; i++)
			p[i] = (struct pair){(int)next_number(30), i};
		sim_qsort(p, (size_t)n, sizeof(p[0]), by_key);
		for (int i = 1; i < n; i++)
			ck_assert(p[i - 1].key < p[i].key ||
				  (p[i - 1].key == p[i].key && p[i - 1].number < p[i].number));
		for (int key = -1; key <= 30; key++) {
			const struct pair wanted = {key, 0},
					  *found = sim_bsearch(&wanted, p, (size_t)n, sizeof(p[0]),
							       by_key);
			bool is_there = false;
			for (int i = 0; i < n; i++)
				is_there |= p[i].key == key;
			ck_assert(is_there ? found && found->key == key : !found);
		}
	}
}

TEST(sorting_keeps_the_order_of_equals)
{
	run(sort_task, NULL);
}

/* --- errno --- */

static void one_task(void *arg)
{
	int mine = *(int *)arg;
	ck_assert_int_eq(errno, 0);
	for (int i = 0; i < 3; i++) {
		errno = mine;
		rt_yield();
		ck_assert_int_eq(errno, mine);
	}
}

static void careless_event(struct sim *s, void *arg)
{
	errno = EPERM;
}

static unsigned careless_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	errno = EPERM;
	return 0;
}

static void careless_observer(void *arg, const struct choice_point *at)
{
	errno = EPERM;
}

static void step_task(void *arg)
{
	errno = ENOENT;
	sim_at(sim, 5, careless_event, NULL);
	sim_step(sim, STEP_STORE, 10);
	ck_assert_int_eq(errno, ENOENT);
	sim_trace(sim, sim_actor(sim), 0, "said");
	ck_assert_int_eq(errno, ENOENT);
	struct source source = {.answer = careless_answer};
	sim_source(sim, &source);
	sim_step(sim, STEP_STORE, 10);
	ck_assert_int_eq(errno, ENOENT);
	sim_source(sim, NULL);
	sim_set_observer(sim, careless_observer, NULL);
	sim_power_fails_here(sim, CRASH_BEFORE_FENCE);
	ck_assert_int_eq(errno, ENOENT);
}

static void careless_tracer(void *arg, const struct sim *s, const struct actor *who, uintptr_t pc,
			    const struct traced *about, const char *text)
{
	errno = EPERM;
}

TEST(errno_is_a_tasks_own)
{
	int numbers[] = {EIO, ENOSPC};
	errno = EDOM;
	ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, "a", one_task, &numbers[0]), 0);
	ck_assert_int_eq(sim_spawn(sim, 1, "b", one_task, &numbers[1]), 0);
	ck_assert_int_eq(sim_run(sim), SIM_IDLE);
	ck_assert_int_eq(errno, EDOM);
	sim_set_tracer(sim, careless_tracer, NULL);
	run(step_task, NULL);
}

/* --- what is printed --- */

static char said[400];

static void listening_tracer(void *arg, const struct sim *s, const struct actor *who, uintptr_t pc,
			     const struct traced *about, const char *text)
{
	strcat(strcat(said, text), "\n");
}

static void saying_task(void *arg)
{
	char *pool = (char *)pmem_base(pmem_machine(stack, 0));
	sim_strcpy(pool, "in memory");
	sim_printf("one\ntwo %d\n", 2);
	sim_fprintf(sim_stderr, "of %s\n", pool);
	sim_puts("a\tb");
	sim_fwrite("xyz", 1, 3, sim_stdout);
	sim_putchar('\n');
	errno = ENOENT;
	sim_perror("open");
	ck_assert_int_eq(errno, ENOENT);
}

TEST(what_is_printed_is_in_the_trace)
{
	run(saying_task, NULL);
	uint64_t silent = sim_now(sim);
	ck_assert_str_eq(said, "");
	again(0);
	sim_set_tracer(sim, listening_tracer, NULL);
	run(saying_task, NULL);
	ck_assert_uint_eq(sim_now(sim), silent);
	char *from = strstr(said, "prints: one");
	ck_assert_ptr_nonnull(from);
	char printed[200] = "", *save = NULL;
	for (char *line = strtok_r(from, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, "prints: ", 8))
			strcat(strcat(printed, line + 8), "/");
	ck_assert_str_eq(printed,
			 "one/two 2/of in memory/a?b/xyz/open: No such file or directory/");
}

/* --- the end of a process --- */

static void exit_task(void *arg)
{
	sim_exit(3);
}

static void stream_task(void *arg)
{
	sim_fprintf(arg, "nowhere");
}

static void wide_task(void *arg)
{
	sim_printf("%ls", L"wide");
}

TEST(a_process_ends_with_a_reason)
{
	ck_assert_int_eq(run_on(HOST_SERVER, exit_task, NULL), SIM_FAULT);
	ck_assert_str_eq(sim_fault(sim, NULL), "exit(3)");
	again(0);
	ck_assert_int_eq(run_on(HOST_SERVER, stream_task, stdout), SIM_FAULT);
	ck_assert_str_eq(sim_fault(sim, NULL), "no such stream: there are stdout and stderr");
	again(0);
	ck_assert_int_eq(run_on(HOST_SERVER, wide_task, NULL), SIM_FAULT);
	ck_assert_str_eq(sim_fault(sim, NULL), "printf: wide characters are not simulated");
}

/* --- time and chance --- */

struct drawn {
	time_t time;
	uint64_t entropy;
	int rand;
	int pid;
};

static void drawing_task(void *arg)
{
	struct drawn *d = arg;
	sim_getrandom(&d->entropy, sizeof(d->entropy), 0);
	d->time = sim_time(NULL);
	d->rand = sim_rand();
	d->pid = sim_getpid();
}

static struct drawn draw(unsigned boot, unsigned host)
{
	struct drawn d = {0};
	again(boot);
	ck_assert_int_eq(run_on(host, drawing_task, &d), SIM_IDLE);
	return d;
}

TEST(time_and_chance_are_the_same_in_each_run)
{
	struct drawn first = draw(0, 0), same = draw(0, 0), later = draw(1, 0), client = draw(0, 1);
	ck_assert_mem_eq(&first, &same, sizeof(first));
	ck_assert(later.time > first.time && later.entropy != first.entropy);
	ck_assert(client.time == first.time && client.entropy != first.entropy);
	ck_assert(client.pid != first.pid);
	ck_assert_int_eq(first.rand, 1804289383); /* glibc's first without a seed */
	ck_assert_int_eq(client.rand, first.rand);
}

/* --- memory --- */

static void map_task(void *arg)
{
	size_t mapped = 0;
	int is_pmem = 0;
	uint8_t *pool = pmem_base(pmem_machine(stack, 0));
	bool server = !arg;
	ck_assert_ptr_eq(sim_pmem_map_file("p", 0, 0, 0, &mapped, &is_pmem), server ? pool : NULL);
	ck_assert(server ? mapped == POOL && is_pmem : errno == ENODEV);
	if (!server)
		return;
	ck_assert_ptr_eq(sim_pmem_map_file("p", POOL, PMEM_FILE_CREATE, 0600, NULL, NULL), pool);
	ck_assert_ptr_null(sim_pmem_map_file("p", 7, PMEM_FILE_CREATE, 0600, NULL, NULL));
	ck_assert(errno == EINVAL && *sim_pmem_errormsg());
	ck_assert_ptr_null(
		sim_pmem_map_file("p", POOL, PMEM_FILE_CREATE | PMEM_FILE_EXCL, 0600, NULL, NULL));
	ck_assert_int_eq(errno, EEXIST);
}

TEST(the_server_maps_its_pool)
{
	static int client;
	again(1);
	run(map_task, NULL);
	ck_assert_msg(run_on(1, map_task, &client) == SIM_IDLE, "%s", sim_fault(sim, NULL));
}

static void memory_task(void *arg)
{
	void *memory = sim_malloc(100);
	ck_assert_uint_ge(sim_malloc_usable_size(memory), 100);
	memory = sim_reallocarray(memory, 50, 8);
	ck_assert_uint_ge(sim_malloc_usable_size(memory), 400);
	ck_assert_ptr_null(sim_reallocarray(memory, SIZE_MAX / 4, 8));
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_uint_eq((uintptr_t)sim_memalign(256, 10) % 256, 0);
	errno = 0;
	ck_assert_ptr_null(sim_malloc(SIZE_MAX / 2));
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_ptr_eq(
		sim_mmap(NULL, SIZE_MAX / 2, PROT_READ, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0),
		MAP_FAILED);
}

TEST(memory_is_given_or_not)
{
	run(memory_task, NULL);
}

RUN_TESTS(setup, teardown)
