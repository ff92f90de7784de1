/* SPDX-License-Identifier: BSD-3-Clause */
/* See tracer_subject.h. Nothing here knows that it is traced. */
#include "tests/core/pmem/tracer_subject.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern const struct tracer_subject tracer_subject;

/* A length that no compiler knows. */
static size_t unknown(size_t n)
{
	volatile size_t v = n;
	return v;
}

/* --- plain stores and loads of each width --- */

#define PLAIN(T, name, value)                            \
	static void write_##name(uint8_t *slot)          \
	{                                                \
		*(T *)slot = (T)(value);                 \
	}                                                \
	static uint64_t read_##name(const uint8_t *slot) \
	{                                                \
		return (uint64_t) * (const T *)slot;     \
	}
PLAIN(uint8_t, 8, 0x5a)
PLAIN(uint16_t, 16, 0x5a5b)
PLAIN(uint32_t, 32, 0x5a5b5c5d)
PLAIN(uint64_t, 64, 0x5a5b5c5d5e5f6061)
PLAIN(unsigned __int128, 128, (unsigned __int128)0x5a5b5c5d5e5f6061 << 64 | 0x6263646566676869)
PLAIN(float, float, 1.5f)
PLAIN(double, double, 1234.5)
PLAIN(volatile uint64_t, volatile, 0x7172737475767778)

typedef uint64_t two_words __attribute__((vector_size(16)));
static void write_vector(uint8_t *slot)
{
	*(two_words *)slot = (two_words){0x3132333435363738, 0x393a3b3c3d3e3f40};
}
static uint64_t read_vector(const uint8_t *slot)
{
	two_words v = *(const two_words *)slot;
	return v[0] ^ v[1];
}

/* --- unaligned --- */

struct packed {
	uint8_t pad;
	uint16_t a;
	uint32_t b;
	uint64_t c;
	uint64_t over_the_edge[7];
} __attribute__((packed));

static void write_packed(uint8_t *slot)
{
	struct packed *p = (struct packed *)slot;
	p->a = 0x4142;
	p->b = 0x43444546;
	p->c = 0x4748494a4b4c4d4e;
	p->over_the_edge[6] = 0x5051525354555657; /* bytes 63 to 70: two lines */
}
static uint64_t read_packed(const uint8_t *slot)
{
	const struct packed *p = (const struct packed *)slot;
	return p->a + p->b + p->c + p->over_the_edge[6];
}

typedef uint64_t unaligned_u64 __attribute__((aligned(1)));
typedef uint32_t unaligned_u32 __attribute__((aligned(1)));
static void write_unaligned(uint8_t *slot)
{
	*(unaligned_u64 *)(slot + 60) = 0x6162636465666768;
	*(unaligned_u32 *)(slot + 129) = 0x696a6b6c;
}
static uint64_t read_unaligned(const uint8_t *slot)
{
	return *(const unaligned_u64 *)(slot + 60) + *(const unaligned_u32 *)(slot + 129);
}

/* --- structs, unions, arrays, bit fields --- */

struct entry {
	uint64_t hash;
	uint32_t len;
	uint16_t flags;
	uint8_t kind, slot;
	char key[16];
};
struct table {
	struct entry entry[4];
	uint64_t count;
};

static void write_fields(uint8_t *slot)
{
	struct table *t = (struct table *)slot;
	for (unsigned i = 0; i < 4; i++) {
		t->entry[i].hash = 0x0101010101010101 * (i + 2);
		t->entry[i].len = 100 + i;
		t->entry[i].flags = (uint16_t)(0x8000 | i);
		t->entry[i].kind = 7;
		t->entry[i].slot = (uint8_t)(9 + i);
		for (unsigned c = 0; c < sizeof(t->entry[i].key); c++)
			t->entry[i].key[c] = (char)('a' + c);
	}
	t->count++;
}
static uint64_t read_fields(const uint8_t *slot)
{
	const struct table *t = (const struct table *)slot;
	uint64_t sum = t->count;
	for (unsigned i = 0; i < 4; i++)
		sum += t->entry[i].hash + t->entry[i].len + (uint64_t)t->entry[i].key[i];
	return sum;
}

/* A struct assigned as a whole: the compiler copies it in its own way. */
static void write_struct(uint8_t *slot)
{
	struct table *t = (struct table *)slot;
	struct entry e = {.hash = 0x1112131415161718,
			  .len = 33,
			  .flags = 5,
			  .kind = 2,
			  .slot = 3,
			  .key = "a short key"};
	t->entry[0] = e;
	t->entry[1] = t->entry[0];
	*(struct table *)(slot + 192) = *t;
}
static uint64_t read_struct(const uint8_t *slot)
{
	struct entry e = ((const struct table *)slot)->entry[1];
	struct table t = *(const struct table *)(slot + 192);
	return e.hash + e.len + t.entry[1].hash + t.count + (uint64_t)t.entry[3].key[2] +
	       ((const struct table *)slot)->count;
}

/* Small structs are moved through registers. From PM to PM: both ends of the copy have hooks. */
struct pair {
	uint32_t a, b;
};
struct four {
	uint32_t a, b, c, d;
};
static void write_small_struct(uint8_t *slot)
{
	*(struct pair *)slot = *(const struct pair *)(slot + 64);
	*(struct four *)(slot + 128) = *(const struct four *)(slot + 64);
	*(struct four *)(slot + 192) = *(struct four *)(slot + 256) = (struct four){1, 2, 3, 4};
}
static uint64_t read_small_struct(const uint8_t *slot)
{
	struct pair pair = *(const struct pair *)slot;
	struct four four = *(const struct four *)(slot + 128);
	return pair.a + pair.b + four.a + four.d + ((const struct four *)(slot + 192))->b +
	       ((const struct four *)(slot + 256))->c;
}

static void write_literal(uint8_t *slot)
{
	*(struct entry *)slot = (struct entry){
		.hash = 0x2122232425262728, .len = 7, .key = "literal"};
	*(struct entry *)(slot + 64) = (struct entry){0};
	*(struct table *)(slot + 128) = (struct table){.count = 3};
}
static uint64_t read_literal(const uint8_t *slot)
{
	const struct table *t = (const struct table *)(slot + 128);
	return ((const struct entry *)slot)->hash + ((const struct entry *)(slot + 64))->len +
	       t->count + t->entry[0].hash + t->entry[2].hash;
}

struct bits {
	uint64_t version : 48, tag : 8, valid : 1, durable : 1, spare : 6;
	uint8_t low : 4, high : 4;
};
static void write_bits(uint8_t *slot)
{
	struct bits *b = (struct bits *)slot;
	b->version = 0x123456789abc;
	b->tag++;
	b->valid = 1;
	b->durable = !b->durable;
	b->high = 9;
}
static uint64_t read_bits(const uint8_t *slot)
{
	const struct bits *b = (const struct bits *)slot;
	return b->version + b->tag + b->valid + b->high;
}

union word {
	uint64_t all;
	struct {
		uint32_t low;
		uint16_t mid[2];
	};
};
static void write_union(uint8_t *slot)
{
	union word *u = (union word *)slot;
	u->all = 0x0102030405060708;
	u->mid[1] ^= 0xffff;
	u->low += 3;
}
static uint64_t read_union(const uint8_t *slot)
{
	return ((const union word *)slot)->all;
}

/* --- loops that an optimiser turns into something else --- */

static void write_loop_fill(uint8_t *slot)
{
	for (unsigned i = 0; i < 200; i++)
		slot[i] = 0x77;
}
static void write_loop_copy(uint8_t *slot)
{
	for (unsigned i = 0; i < 128; i++)
		slot[i] = (uint8_t)(i * 3 + 1);
	for (unsigned i = 0; i < 72; i++)
		slot[128 + i] = slot[i];
}
static uint64_t read_loop(const uint8_t *slot)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < 200; i++)
		sum += slot[i];
	return sum;
}
static void write_loop_words(uint8_t *slot)
{
	uint64_t *word = (uint64_t *)slot;
	for (unsigned i = 0; i < 25; i++)
		word[i] += 0x0101010101010101 * i + 1;
}
static uint64_t read_loop_words(const uint8_t *slot)
{
	const uint64_t *word = (const uint64_t *)slot;
	uint64_t sum = 0;
	for (unsigned i = 0; i < 25; i++)
		sum ^= word[i];
	return sum;
}

/* --- memcpy, memset, memmove, memcmp: constant and variable sizes --- */

static const char text[] =
	"The tide mark is the line the water reached before it fell back: what was durable.";

static void write_memcpy_constant(uint8_t *slot)
{
	uint64_t word = 0x8182838485868788;
	uint16_t half = 0x9192;
	memcpy(slot, &word, 8);
	memcpy(slot + 9, &half, 2);
	memcpy(slot + 64, text, 3);
	memcpy(slot + 128, text, 16);
	memcpy(slot + 192, text, 32);
	memcpy(slot + 256, text, 64);
	memcpy(slot + 320, text, sizeof(text));
}
static uint64_t read_memcpy_constant(const uint8_t *slot)
{
	uint64_t word, sum;
	uint8_t three[3], sixteen[16], more[64];
	memcpy(&word, slot, 8);
	sum = word;
	memcpy(three, slot + 64, 3);
	memcpy(sixteen, slot + 128, 16);
	sum += three[2] + sixteen[15];
	memcpy(more, slot + 192, 32);
	sum += more[31];
	memcpy(more, slot + 256, 64);
	sum += more[63];
	memcpy(more, slot + 320 + 1, 64);
	return sum + more[63] + more[1];
}

static void write_memcpy_variable(uint8_t *slot)
{
	memcpy(slot + 5, text, unknown(sizeof(text)));
	memcpy(slot + 200, text + 3, unknown(1));
}
static uint64_t read_memcpy_variable(const uint8_t *slot)
{
	uint8_t copy[sizeof(text)];
	uint64_t sum;
	memcpy(copy, slot + 5, unknown(sizeof(text)));
	sum = copy[3] + copy[70];
	memcpy(copy, slot + 200, unknown(1));
	return sum + copy[0];
}

static void write_memset_constant(uint8_t *slot)
{
	memset(slot, 0xc1, 1);
	memset(slot + 64, 0xc2, 8);
	memset(slot + 128, 0, 24);
	memset(slot + 192, 0xc4, 128);
}
static void write_memset_variable(uint8_t *slot)
{
	memset(slot, 0xd1, unknown(70));
	memset(slot + 128, 0, unknown(9));
	memset(slot + 192, 0xd3, unknown(128));
}
static uint64_t read_memcmp(const uint8_t *slot)
{
	return (uint64_t)(memcmp(slot, text, 8) + memcmp(slot + 64, text, 5) +
			  memcmp(slot + 128, text, unknown(7)) +
			  memcmp(slot + 192, slot + 256, 64));
}

static void write_memmove(uint8_t *slot)
{
	memmove(slot + 1, text, 40);
	memmove(slot + 3, slot + 1, 40);
	memmove(slot + 64, slot, unknown(50));
	memmove(slot + 60, slot + 64, unknown(50));
}
static uint64_t read_memmove(const uint8_t *slot)
{
	uint8_t copy[80];
	memmove(copy, slot + 30, 80);
	return copy[0] + copy[79];
}

/* --- atomics, both spellings --- */

#define ATOMIC(bits)                                                                              \
	static void write_atomic##bits(uint8_t *slot)                                             \
	{                                                                                         \
		uint##bits##_t *a = (uint##bits##_t *)slot, expected;                             \
		__atomic_store_n(a, (uint##bits##_t)0x6b6c6d6e6f707172, __ATOMIC_RELEASE);        \
		__atomic_fetch_add(a + 1, (uint##bits##_t)0x2122232425262728, __ATOMIC_SEQ_CST);  \
		__atomic_fetch_sub(a + 2, (uint##bits##_t)0x3132333435363738, __ATOMIC_SEQ_CST);  \
		__atomic_fetch_or(a + 3, (uint##bits##_t)0x8182838485868788, __ATOMIC_RELAXED);   \
		__atomic_fetch_and(a + 4, (uint##bits##_t)0x1111111111111111, __ATOMIC_RELAXED);  \
		__atomic_fetch_xor(a + 5, (uint##bits##_t) ~(uint##bits##_t)0, __ATOMIC_ACQ_REL); \
		__atomic_exchange_n(a + 6, (uint##bits##_t)0x5152535455565758, __ATOMIC_SEQ_CST); \
		__sync_add_and_fetch(a + 7, 3);                                                   \
		expected = __atomic_load_n(a + 8, __ATOMIC_ACQUIRE);                              \
		while (!__atomic_compare_exchange_n(a + 8, &expected,                             \
						    (uint##bits##_t)(expected + 77), 1,           \
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))          \
			;                                                                         \
		__sync_bool_compare_and_swap(a + 9, a[9], (uint##bits##_t)(a[9] ^ 0x55));         \
		__atomic_thread_fence(__ATOMIC_SEQ_CST);                                          \
	}                                                                                         \
	static uint64_t read_atomic##bits(const uint8_t *slot)                                    \
	{                                                                                         \
		const uint##bits##_t *a = (const uint##bits##_t *)slot;                           \
		return __atomic_load_n(a, __ATOMIC_ACQUIRE) +                                     \
		       __atomic_load_n(a + 9, __ATOMIC_RELAXED);                                  \
	}
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

#define STEP(name, write, read)   \
	{                         \
		name, write, read \
	}
#define BOTH(name)                               \
	{                                        \
#name, write_##name, read_##name \
	}

static const struct tracer_step steps[] = {
	BOTH(8),
	BOTH(16),
	BOTH(32),
	BOTH(64),
	BOTH(128),
	BOTH(float),
	BOTH(double),
	BOTH(volatile),
	BOTH(vector),
	BOTH(packed),
	BOTH(unaligned),
	BOTH(fields),
	BOTH(struct),
	BOTH(small_struct),
	BOTH(literal),
	BOTH(bits),
	BOTH(union),
	STEP("loop_fill", write_loop_fill, read_loop),
	STEP("loop_copy", write_loop_copy, read_loop),
	BOTH(loop_words),
	BOTH(memcpy_constant),
	BOTH(memcpy_variable),
	STEP("memset_constant", write_memset_constant, read_memcmp),
	STEP("memset_variable", write_memset_variable, read_memcmp),
	BOTH(memmove),
	BOTH(atomic8),
	BOTH(atomic16),
	BOTH(atomic32),
	BOTH(atomic64),
};

const struct tracer_subject tracer_subject = {
	.step = steps, .steps = sizeof(steps) / sizeof(steps[0]), .least = 2000};
