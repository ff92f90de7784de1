/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As tracer_subject.c, for library functions and intrinsics: each step writes its slot of PM by
 * some of them, or reads it so. Then what makes durable what these wrote, and what does not.
 */
#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include "tests/core/pmem/tracer_subject.h"

extern const struct tracer_subject tracer_subject;

static const char text[] = "The tide mark is the line the water reached before it fell back.";

#define S(off) ((char *)(slot + (off)))
#define C(off) ((const char *)(slot + (off)))

/* --- string.h --- */

static void write_copies(uint8_t *slot)
{
	assert(strcpy(S(3), text) == S(3));
	assert(stpcpy(S(100), "short") == S(105));
	assert(strncpy(S(120), "padded", 40) == S(120));
	assert(stpncpy(S(190), text, 10) == S(200));
	assert(mempcpy(S(256), text, 20) == S(276));
	strcpy(S(320), "one");
	assert(strcat(S(320), ", two") == S(320));
	assert(strncat(S(320), ", three", 3) == S(320));
	bzero(S(400), 20);
	explicit_bzero(S(448), 20);
}
static uint64_t read_copies(const uint8_t *slot)
{
	char own[80];
	assert(strlen(C(3)) == sizeof(text) - 1 && strnlen(C(3), 70) == sizeof(text) - 1);
	strcpy(own, C(100));
	assert(!strcmp(own, "short"));
	assert(!memcmp(C(120), "padded\0\0\0", 9) && !C(120)[39]);
	assert(!memcmp(C(190), text, 10));
	assert(!bcmp(C(256), text, 20));
	assert(!strcmp(C(320), "one, two, t"));
	mempcpy(own, C(400), 20);
	assert(!own[19]);
	strncpy(own, C(448), 20);
	return (uint64_t)own[0];
}

static void write_for_comparing(uint8_t *slot)
{
	for (int i = 0; i < 7; i++)
		strcpy(S(64 * i), text);
	strcpy(S(64 * 7), text + 4);
	strcpy(S(64 * 7 - 10), "ends!");
}
static uint64_t read_comparing(const uint8_t *slot)
{
	char *copy = strdup(C(64)), *part = strndup(C(128), 8), *save;
	assert(strcmp(C(0), text) > 0 && strcmp(text, C(0)) < 0); /* it goes on */
	assert(!strncmp(C(64), text, 64) && strcasecmp(C(64), "thE") > 0);
	assert(!strncasecmp(C(128), "THE tIDE", 8));
	assert(copy && part && !strncmp(copy, text, 64) && !strcmp(part, "The tide"));
	assert(!strcmp(strtok_r(copy, " ", &save), "The"));
	assert(!strcmp(strtok_r(NULL, " ", &save), "tide"));
	free(copy);
	free(part);
	assert(strchr(C(192), 'm') == C(192) + 9 && !strchr(C(192), '#'));
	assert(memchr(C(256), 'k', 30) == C(256) + 12 && !memchr(C(256), 'k', 12));
	assert(memrchr(C(320), 'T', 60) == C(320));
	assert(strrchr(C(64 * 6), '!') == C(64 * 7 - 6));
	assert(strstr(C(64 * 7), "fell") == C(64 * 7) + 50 && !strstr(C(64 * 7), "rose"));
	return strspn(C(64), "The") + strcspn(C(128), "#.") +
	       (uint64_t)(strpbrk(C(192), "mk") != 0);
}

/* Functions that only read, each alone with a line. */
static void write_line(uint8_t *slot)
{
	strcpy(S(0), "123 a word");
}
#define READS(X)                                         \
	X(strlen, strlen(C(0)) == 10)                    \
	X(strnlen, strnlen(C(0), 20) == 10)              \
	X(strcmp, strcmp("123 a word", C(0)) == 0)       \
	X(strncmp, strncmp(C(0), "123 b word", 5) < 0)   \
	X(strcasecmp, !strcasecmp(C(0), "123 A WORD"))   \
	X(strncasecmp, !strncasecmp(C(0), "123 A", 5))   \
	X(bcmp, bcmp(C(0), "123", 3) == 0)               \
	X(memchr, memchr(C(0), 'a', 20) == C(4))         \
	X(rawmemchr, rawmemchr(C(0), 'a') == C(4))       \
	X(memrchr, memrchr(C(0), '3', 9) == C(2))        \
	X(strchr, strchr(C(0), 'w') == C(6))             \
	X(strchrnul, strchrnul(C(0), 'z') == C(10))      \
	X(strrchr, strrchr(C(0), ' ') == C(5))           \
	X(index, index(C(0), '1') == C(0))               \
	X(rindex, rindex(C(0), 'd') == C(9))             \
	X(strstr, strstr(C(0), "wo") == C(6))            \
	X(strcasestr, strcasestr(C(0), "WO") == C(6))    \
	X(memmem, memmem(C(0), 20, "wo", 2) == C(6))     \
	X(strspn, strspn(C(0), "321") == 3)              \
	X(strcspn, strcspn(C(0), "a") == 4)              \
	X(strpbrk, strpbrk(C(0), "ow") == C(6))          \
	X(set, strspn("a word", C(0)) == 6)              \
	X(strdup, strdup(C(0))[9] == 'd')                \
	X(strndup, strndup(C(0), 3)[2] == '3')           \
	X(strtol, strtol(C(0), NULL, 10) == 123)         \
	X(strtoul, strtoul(C(0), NULL, 10) == 123)       \
	X(strtoll, strtoll(C(0), NULL, 10) == 123)       \
	X(strtoull, strtoull(C(0), NULL, 10) == 123)     \
	X(strtof, strtof(C(0), NULL) == 123)             \
	X(strtod, strtod(C(0), NULL) == 123)             \
	X(strtold, strtold(C(0), NULL) == 123)           \
	X(atoi, atoi(C(0)) == 123)                       \
	X(atol, atol(C(0)) == 123)                       \
	X(atoll, atoll(C(0)) == 123)                     \
	X(atof, atof(C(0)) == 123)                       \
	X(sscanf, sscanf(C(0), "%*d %*s") == 0)          \
	X(format, snprintf(NULL, 0, C(0), 0) == 10)      \
	X(snprintf, snprintf(NULL, 0, "%s", C(0)) == 10) \
	X(printf, printf("%s", C(0)) == 10)              \
	X(putchar, putchar(C(0)[0]) == '1')              \
	X(puts, puts(C(0)) >= 0)                         \
	X(fputs, fputs(C(0), stderr) >= 0)               \
	X(fwrite, fwrite(C(0), 5, 2, stdout) == 2)       \
	X(is_pmem, pmem_is_pmem(C(0), 1) + C(0)[0])
#define X(name, holds)                                      \
	static uint64_t read_by_##name(const uint8_t *slot) \
	{                                                   \
		assert(holds);                              \
		return 0;                                   \
	}
READS(X)
#undef X

/* Where pointers and words of a text lie in PM. */
static void write_words(uint8_t *slot)
{
	char **save = (char **)S(256), **rest = (char **)S(320);
	strcpy(S(0), "a few words, in memory");
	assert(!strcmp(strtok_r(S(0), " ", save), "a"));
	assert(!strcmp(strtok_r(NULL, " ", save), "few"));
	strcpy(S(64), "key=value");
	*rest = S(64);
	assert(!strcmp(strsep(rest, "="), "key") && *rest == S(68));
	assert(strtol("123abc", (char **)S(384), 10) == 123);
}
static uint64_t read_words(const uint8_t *slot)
{
	return strlen(C(0)) + strlen(C(64)) + (uint64_t)C(256)[0] + (uint64_t)C(320)[0] +
	       (uint64_t)C(384)[0];
}

/* --- stdlib.h --- */

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}
static void write_sorted(uint8_t *slot)
{
	uint32_t *word = (uint32_t *)slot;
	for (uint32_t i = 0; i < 128; i++)
		word[i] = i * 2654435761u;
	qsort(word, 128, sizeof(*word), by_value);
}
static uint64_t read_sorted(const uint8_t *slot)
{
	const uint32_t *word = (const uint32_t *)slot;
	uint32_t own[128], key = 5 * 2654435761u;
	memcpy(own, word, sizeof(own));
	qsort(own, 128, sizeof(*own), by_value);
	assert(!memcmp(own, word, sizeof(own)));
	const uint32_t *found = bsearch(&key, word, 128, sizeof(*word), by_value);
	key++;
	assert(found && *found == key - 1 && !bsearch(&key, word, 128, sizeof(*word), by_value));
	return *found;
}

static void write_numbers(uint8_t *slot)
{
	strcpy(S(0), " -123,");
	strcpy(S(64), "0x7fffffffffffffff");
	strcpy(S(128), "99999999999999999999999");
	strcpy(S(192), "2.5e3 and");
	strcpy(S(256), "42");
	strcpy(S(320), "7 words at 0.5");
	strcpy(S(384), "key:value");
}
static uint64_t read_numbers(const uint8_t *slot)
{
	char *end, own[20], other[20];
	int n;
	double real;
	assert(strtol(C(0), &end, 10) == -123 && end == C(5));
	assert(strtoull(C(64), NULL, 0) == 0x7fffffffffffffff);
	errno = 0;
	assert(strtoul(C(128), NULL, 10) == (unsigned long)-1 && errno == ERANGE);
	assert(strtod(C(192), &end) == 2500 && end == C(197));
	assert(atoi(C(256)) == 42 && atol(C(256)) == 42 && atof(C(256)) == 42);
	assert(sscanf(C(320), "%d words at %lf", &n, &real) == 2 && n == 7 && real == 0.5);
	assert(sscanf(C(384), "%3s:%[a-z]", own, other) == 2);
	assert(!strcmp(own, "key") && !strcmp(other, "value"));
	return (uint64_t)n;
}

static void write_scanned(uint8_t *slot)
{
	assert(sscanf("12 -3 word 0xff x 1.5 7", "%d %hhd %s %x %c %lf %*d%n", (int *)S(0),
		      (signed char *)S(64), S(128), (unsigned *)S(192), S(256), (double *)S(320),
		      (int *)S(384)) == 6);
	assert(*(int *)S(0) == 12 && *S(64) == -3 && !strcmp(S(128), "word"));
	assert(*(int *)S(384) == 23 && *(double *)S(320) == 1.5);
	assert(sscanf("", "%d", (int *)S(0)) == EOF && sscanf("x", "%d", (int *)S(0)) == 0);
	assert(sscanf("5,", "%d,%d", (int *)S(0), (int *)S(4)) == 1);
}
static uint64_t read_each_line(const uint8_t *slot)
{
	uint64_t sum = 0;
	for (int line = 0; line < 8; line++)
		for (int i = 0; i < 64; i++)
			sum += slot[64 * line + i];
	return sum;
}

static void write_random(uint8_t *slot)
{
	unsigned short *state = (unsigned short *)S(192);
	assert(getrandom(S(0), 100, 0) == 100 && !getentropy(S(128), 40));
	rand_r((unsigned *)S(256));
	erand48(state);
	*(int *)S(320) = rand();
	assert(*(int *)S(320) == 1804289383); /* glibc's first */
	srand(7);
	*(int *)S(324) = rand();
	srand(7);
	assert(*(int *)S(324) == rand());
	arc4random_buf(S(384), 30);
}

/* --- stdio.h --- */

static void write_printed(uint8_t *slot)
{
	char *new;
	assert(snprintf(S(0), 64, "%s %5d|%-6.2f|%#llx|%c|%%", "word", -3, 2.5, 255LL, 'x') == 26);
	assert(!strcmp(S(0), "word    -3|2.50  |0xff|x|%"));
	assert(snprintf(S(64), 8, "%s", text) == (int)sizeof(text) - 1 && strlen(S(64)) == 7);
	assert(sprintf(S(128), "%.*s:%0*u%n", 3, text, 6, 42u, (int *)S(192)) == 10);
	assert(!strcmp(S(128), "The:000042") && *(int *)S(192) == 10);
	assert(asprintf((char **)S(256), "%zu%hhu", sizeof(text), (unsigned char)44) == 4);
	new = *(char **)S(256);
	assert(!strcmp(new, "6544"));
	free(new);
	memset(S(256), 1, sizeof(new)); /* where it was differs from run to run */
	errno = ENOENT;
	assert(sprintf(S(320), "%m") == 25 && errno == ENOENT);
}
static void write_texts(uint8_t *slot)
{
	for (int i = 0; i < 8; i++)
		sprintf(S(64 * i), "line %d\n", i);
}
static uint64_t read_texts(const uint8_t *slot)
{
	char own[40];
	assert(snprintf(own, sizeof(own), "%s%.4s", C(0), C(64)) == 11);
	assert(!strcmp(own, "line 0\nline"));
	assert(printf("%s", C(128)) == 7 && fprintf(stderr, "%s", C(192)) == 7);
	assert(puts(C(256)) >= 0 && fputs(C(320), stdout) >= 0);
	assert(fwrite(C(384), 1, 7, stdout) == 7 && !fflush(stdout));
	perror(C(448));
	return (uint64_t)own[0];
}

/* --- time.h, unistd.h, sys/mman.h --- */

static void write_times(uint8_t *slot)
{
	const struct timespec ns = {0, 500};
	assert(!clock_gettime(CLOCK_REALTIME, (struct timespec *)S(0)));
	assert(!gettimeofday((struct timeval *)S(64), NULL));
	assert(time((time_t *)S(128)) > 1000000000);
	assert(!clock_getres(CLOCK_MONOTONIC, (struct timespec *)S(192)));
	assert(!nanosleep(&ns, NULL) && !usleep(1) && clock() > 0 && clock() < 10000);
	assert(!gethostname(S(256), 64) && !strcmp(S(256), "server"));
	assert(!getenv("HOME") && getpid() == 1000 && sysconf(_SC_NPROCESSORS_ONLN) == 4);
	assert(sysconf(-1) == -1 && errno == EINVAL);
	char *map = mmap(NULL, 5000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(map != MAP_FAILED && !((uintptr_t)map & 4095) && !map[4999]);
	assert(!munmap(map, 5000));
	assert(mmap(NULL, 5000, PROT_READ, MAP_PRIVATE, 3, 0) == MAP_FAILED && errno == EBADF);
}
static uint64_t read_times(const uint8_t *slot)
{
	assert(!nanosleep((const struct timespec *)C(192), NULL)); /* 1 ns */
	return read_each_line(slot);
}

/* --- libpmem --- */

static void write_pmem(uint8_t *slot)
{
	size_t mapped;
	int is_pmem;
	pmem_memcpy(S(0), text, 40, PMEM_F_MEM_NONTEMPORAL);
	pmem_memmove(S(10), S(0), 40, 0);
	assert(!memcmp(S(10), text, 40));
	pmem_memmove_persist(S(128), S(10), 40);
	pmem_memmove_nodrain(S(192), S(10), 40);
	pmem_memset_nodrain(S(256), 7, 100);
	pmem_memset(S(384), 8, 64, PMEM_F_MEM_NOFLUSH);
	assert(pmem_is_pmem(slot, 512) && !pmem_is_pmem(text, 4) && !pmem_is_pmem(&mapped, 8));
	char *pool = pmem_map_file("/mnt/pmem/pool", 0, 0, 0, &mapped, &is_pmem);
	assert(pool && is_pmem && pmem_is_pmem(pool, mapped) && !pmem_is_pmem(pool, mapped + 1));
	assert(!pmem_map_file("p", mapped + 1, PMEM_FILE_CREATE, 0600, NULL, NULL));
	assert(errno == EINVAL && strlen(pmem_errormsg()) && !pmem_check_version(1, 0));
	assert(!pmem_unmap(pool, mapped));
}

/* --- intrinsics --- */

#ifdef __x86_64__
static void write_streams(uint8_t *slot)
{
	_mm_stream_si32((int *)S(0), 0x11223344);
	_mm_stream_si64((long long *)S(64), 0x5566778899aabbcc);
	_mm_stream_si128((__m128i *)S(128), _mm_set1_epi8(0x55));
	_mm_stream_pd((double *)S(192), _mm_set1_pd(2.5));
	_mm_stream_ps((float *)S(256), _mm_set1_ps(2.5f));
	_mm_storeu_si128((__m128i *)S(321), _mm_set1_epi8(0x44));
	_mm_storel_pd((double *)S(384), _mm_set1_pd(1.5));
	__builtin_ia32_movnti((int *)S(448), 0x01020304);
	_mm_sfence();
}
static uint64_t read_vectors(const uint8_t *slot)
{
	__m128i sum = _mm_load_si128((const __m128i *)C(128));
	for (int line = 0; line < 8; line++)
		sum = _mm_xor_si128(sum,
				    line & 1 ? _mm_loadu_si128((const __m128i *)C(64 * line + 1))
					     : _mm_stream_load_si128((__m128i *)C(64 * line)));
	return (uint64_t)_mm_cvtsi128_si64(sum);
}
#endif

#define BOTH(name)                               \
	{                                        \
#name, write_##name, read_##name \
	}
static const struct tracer_step steps[] = {BOTH(copies),
					   {"comparing", write_for_comparing, read_comparing},
					   BOTH(words),
					   BOTH(sorted),
					   BOTH(numbers),
					   {"scanned", write_scanned, read_each_line},
					   {"random", write_random, read_each_line},
					   {"printed", write_printed, read_each_line},
					   BOTH(texts),
					   BOTH(times),
					   {"pmem", write_pmem, read_each_line},
#ifdef __x86_64__
					   {"vectors", write_streams, read_vectors},
#endif
#define X(name, holds) {#name, write_line, read_by_##name},
					   READS(X)
#undef X
};

/* --- what is durable afterwards --- */

#define LASTS(name, durable, code)              \
	static void write_##name(uint8_t *slot) \
	{                                       \
		code;                           \
	}
#define KEPT 1
#define LOST 0
#define WRITES(X)                                                                                  \
	X(strcpy_alone, LOST, strcpy(S(0), text))                                                  \
	X(strcpy_flushed, LOST, strcpy(S(0), text); pmem_flush(S(0), sizeof(text)))                \
	X(strcpy_drained, KEPT, strcpy(S(0), text); pmem_flush(S(0), 65); pmem_drain())            \
	X(strcpy_persisted, KEPT, strcpy(S(0), text); pmem_persist(S(0), sizeof(text)))            \
	X(strncat_alone, LOST, strcpy(S(0), "a"); pmem_persist(S(0), 2); strncat(S(0), text, 3))   \
	X(snprintf_alone, LOST, snprintf(S(0), 60, "%d", 123456))                                  \
	X(snprintf_persisted, KEPT, snprintf(S(0), 60, "%d", 1234); pmem_persist(S(0), 60))        \
	X(sscanf_alone, LOST, sscanf("7", "%d", (int *)S(0)))                                      \
	X(sscanf_persisted, KEPT, sscanf("7", "%d", (int *)S(0)); pmem_persist(S(0), 4))           \
	X(qsort_alone, LOST, qsort(S(0), 32, 4, by_value))                                         \
	X(time_alone, LOST, time((time_t *)S(0)))                                                  \
	X(getrandom_alone, LOST, assert(getrandom(S(0), 9, 0) == 9))                               \
	X(msync, KEPT, bzero(S(0), 64); msync(S(0), 64, MS_SYNC))                                  \
	X(deep_persist, KEPT, bzero(S(0), 64); pmem_deep_persist(S(0), 64))                        \
	X(deep_flush, LOST, bzero(S(0), 64); pmem_deep_flush(S(0), 64))                            \
	X(deep_drain, KEPT, bzero(S(0), 64); pmem_deep_flush(S(0), 64); pmem_deep_drain(S(0), 64)) \
	X(memmove, KEPT, pmem_memmove(S(0), text, 60, 0))                                          \
	X(memmove_upwards, KEPT, pmem_memmove(S(64), S(60), 60, PMEM_F_MEM_NONTEMPORAL))           \
	X(memmove_nodrain, LOST, pmem_memmove(S(0), text, 60, PMEM_F_MEM_NODRAIN))                 \
	X(memmove_drained, KEPT, pmem_memmove_nodrain(S(0), text, 60); pmem_drain())               \
	X(memmove_noflush, LOST, pmem_memmove(S(0), text, 60, PMEM_F_MEM_NOFLUSH); pmem_drain())   \
	X(memset_wc, LOST, pmem_memset(S(0), 1, 64, PMEM_F_MEM_WC | PMEM_F_MEM_NODRAIN))           \
	X(memset_wb, KEPT, pmem_memset(S(0), 1, 64, PMEM_F_MEM_WB))                                \
	X(memset_nodrain, LOST, pmem_memset_nodrain(S(0), 1, 64))
#ifdef __x86_64__
#define INSTRUCTIONS(X)                                                               \
	X(clwb_alone, LOST, S(0)[0] ^= 1; _mm_clwb(S(0)))                             \
	X(sfence_alone, LOST, S(0)[0] ^= 1; _mm_sfence())                             \
	X(clwb_sfence, KEPT, S(0)[0] ^= 1; _mm_clwb(S(0)); _mm_sfence())              \
	X(clwb_mfence, KEPT, S(0)[0] ^= 1; _mm_clwb(S(0)); _mm_mfence())              \
	X(clwb_lfence, LOST, S(0)[0] ^= 1; _mm_clwb(S(0)); _mm_lfence())              \
	X(clwb_of_another, LOST, S(0)[0] ^= 1; _mm_clwb(S(64)); _mm_sfence())         \
	X(clflushopt_sfence, KEPT, S(63)[0] ^= 1; _mm_clflushopt(S(0)); _mm_sfence()) \
	X(clflush, KEPT, S(0)[0] ^= 1; _mm_clflush(S(0)))                             \
	X(builtins, KEPT, S(0)[0] ^= 1; __builtin_ia32_clflush(S(0)))                 \
	X(stream_alone, LOST, _mm_stream_si64((long long *)S(0), 1))                  \
	X(stream_sfence, KEPT, _mm_stream_si64((long long *)S(0), 1); _mm_sfence())   \
	X(pause, LOST, S(0)[0] ^= 1; _mm_pause())
#else
#define INSTRUCTIONS(X)
#endif
WRITES(LASTS)
INSTRUCTIONS(LASTS)
#define X(name, durable, code) {#name, write_##name, durable},
static const struct tracer_lasting lasting[] = {WRITES(X) INSTRUCTIONS(X)};
#undef X

const struct tracer_subject tracer_subject = {
	.step = steps,
	.steps = sizeof(steps) / sizeof(steps[0]),
	.least = 2500,
	.lasting = lasting,
	.lastings = sizeof(lasting) / sizeof(lasting[0]),
};
