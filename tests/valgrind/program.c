/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program CASE POOL: what test_tidepm.sh runs under the Valgrind tool. The pool is mapped in whole;
 * the comments in capitals are places that the test looks up by name.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL 8192
#define RW   (PROT_READ | PROT_WRITE)

struct pool {
	uint64_t flag, pad[7];
	uint64_t value, after[7];
	char bytes[POOL - 128];
};

static struct pool *p;
static int pool_fd;

static void *map_flags(size_t size, int flags)
{
	void *at = mmap(NULL, size, RW, flags, pool_fd, 0);
	if (at == MAP_FAILED)
		exit(9);
	return at;
}

__attribute__((noinline)) static void persist(void *at)
{
	_mm_clflush(at); /* CLFLUSH */
	_mm_sfence();	 /* SFENCE */
}

/* --- a value, and a flag that says that it is there --- */

__attribute__((noinline)) static void put_value(void)
{
	p->value = 42; /* VALUE */
	__asm__ volatile("");
}

__attribute__((noinline)) static void put_flag(void)
{
	p->flag = 1; /* FLAG */
	__asm__ volatile("");
}

static void right(void)
{
	put_value();
	persist(&p->value);
	put_flag(); /* CALLER */
	persist(&p->flag);
}

static void swapped(void)
{
	put_flag();
	persist(&p->flag);
	put_value();
	persist(&p->value);
}

static void unflushed(void)
{
	put_value();
	put_flag();
	persist(&p->flag);
}

/* --- kinds of stores --- */

static void copies(void)
{
	char from[2000];
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i * 7 + 1);
	memcpy(p->bytes + 3, from, (size_t)atoi("100"));
	memcpy(p->bytes + 200, from, (size_t)atoi("2000"));
	void *to = p->bytes + 2300, *source = from;
	size_t n = 77;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(source), "+c"(n)::"memory");
	_mm_storeu_si128((__m128i *)(void *)(p->bytes + 2500), _mm_set_epi64x(7, 6)); /* WIDE */
	memset(p->bytes + 3000, 5, (size_t)atoi("513"));
	__asm__ volatile("fxsave (%0)" ::"r"(p->bytes + 3904) : "memory");
}

static void swap_two(uint64_t low, uint64_t high, uint64_t new_low, uint64_t new_high)
{
	__asm__ volatile("lock cmpxchg16b (%2)"
			 : "+a"(low), "+d"(high)
			 : "r"(&p->after[3]), "b"(new_low), "c"(new_high)
			 : "memory", "cc");
}

static void swaps(void)
{
	uint64_t expected = 5;
	__atomic_compare_exchange_n(&p->value, &expected, 6, 0, 0, 0); /* FAILS */
	expected = 0;
	__atomic_compare_exchange_n(&p->value, &expected, 6, 0, 0, 0);
	__atomic_fetch_add((uint8_t *)&p->after[0], 3, 0);
	__atomic_exchange_n((uint16_t *)&p->after[1], 0x1234, 0);
	swap_two(0, 0, 0x11, 0x22);
	swap_two(0x11, 0, 0x33, 0x44);
	swap_two(0, 0x22, 0x33, 0x44);
}

__attribute__((target("avx2"))) static void masked(void)
{
	__m128i mask = _mm_set_epi32(0, -1, 0, -1);
	_mm_maskstore_epi32((int *)&p->value, mask, _mm_set1_epi32(7));
}

static void reads(void)
{
	int zero = open("/dev/zero", O_RDONLY), name = open("name", O_RDONLY);
	p->value = 1;
	if (read(name, p->bytes + 1, 11) != 11 || read(zero, &p->value, 8) != 8)
		exit(9);
}

static void past_cache(void)
{
	_mm_stream_si64((long long *)&p->value, 42);
	_mm_sfence();
	p->flag = 1;
	persist(&p->flag);
	_mm_stream_si128((__m128i *)(void *)p->bytes, _mm_set1_epi8(1));
}

/* --- flushes and fences --- */

#define FLUSH(code, ...) __asm__ volatile(code::__VA_ARGS__ : "memory")

static void operands(void)
{
	char *at = (char *)p, *fs;
	__asm__("mov %%fs:0, %0" : "=r"(fs));
	register char *r9 __asm__("r9") = (char *)4;
	register char *r12 __asm__("r12") = at + 64 * 3 + 5;
	register char *r13 __asm__("r13") = at;
	FLUSH("clflush (%0)", "a"(at + 63));
	FLUSH("clflush 64(%0)", "r"(r13));
	FLUSH("clflush (%0)", "r"(r12));
	FLUSH("clflushopt (%0,%1,8)", "b"(at), "c"(32l));
	FLUSH("clwb -64(%0,%1,4)", "S"(at + 64 * 6 - 16), "r"(r9));
	FLUSH("clwb 64(,%0,1)", "c"(at + 64 * 5));
	FLUSH("clwb 0x1000(%0)", "r"(r13));
	FLUSH("clflush (%k0)", "a"(at + 64 * 7 + (1l << 40)));
	FLUSH("clflush %%fs:(%0)", "r"(at + 64 * 8 - (uintptr_t)fs));
	FLUSH("clflush (%0)", "r"(&fs));
}

static void fences(void)
{
	_mm_mfence(); /* nothing to wait for */
	p->value = 1;
	_mm_lfence();
	p->value = 2;
	_mm_mfence();
	p->value = 3;
	int on_stack = 0;
	__atomic_fetch_add(&on_stack, 1, 0); /* no flush to wait for */
	_mm_clflush(&p->value);
	__atomic_fetch_add(&on_stack, 1, 0);
}

/* --- mappings --- */

static void mappings(void)
{
	struct pool *private = map_flags(POOL, MAP_PRIVATE);
	private->value = 99;
	int other_fd = open("other", O_RDWR);
	struct pool *other = mmap(NULL, POOL, RW, MAP_SHARED, other_fd, 0);
	other->value = 99;
	uint64_t *page = mmap(NULL, 4096, RW, MAP_SHARED, pool_fd, 4096);
	page[0] = 1;
	other->value = 98; /* between the two */
	_mm_clflush(other);
	/* Half of this one is on a page that is PM no more. */
	mmap((char *)p + 4096, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	*(uint64_t *)(void *)((char *)p + 4092) = 0x1111111122222222;
	p->after[0] = 2;
	p = mremap(p, 4096, POOL, MREMAP_MAYMOVE);
	p->after[1] = 3;
	munmap(p, POOL);
	struct pool *reused = mmap(p, POOL, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	reused->value = 99;
	_mm_clflush(reused);
	_mm_sfence();
	page[1] = 4;
}

/* The second page alone, moved while a store to it is not flushed. */
static void moved(void)
{
	uint64_t *second = (void *)((char *)p + 4096);
	second[0] = 5;
	munmap(p, 4096);
	void *at = mmap(NULL, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	second = mremap(second, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	second[1] = 6;
	persist(second);
}

static void syncs(void)
{
	p->value = 1;
	msync(p, 4096, MS_ASYNC);
	msync(p, 4096, MS_SYNC);
	p->value = 2;
	fdatasync(1);
	fdatasync(pool_fd);
	munmap(p, POOL);
	fsync(pool_fd); /* of no mapping */
}

/* --- threads --- */

static void *thread(void *at)
{
	for (int i = 0; i < 100; i++) {
		void *to = at;
		size_t n = 1000;
		__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(i) : "memory");
		__atomic_fetch_add(&p->value, 1, 0);
		_mm_clflush(at);
		sched_yield();
	}
	return at;
}

static void threads(void)
{
	pthread_t others[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&others[i], NULL, thread, p->bytes + 1000 * i);
	for (int i = 0; i < 2; i++)
		pthread_join(others[i], NULL);
}

/* --- the process --- */

static void forks(void)
{
	p->value = 1;
	if (!fork()) {
		p->flag = 2;
		persist(&p->flag);
		p->flag = 3;
		_exit(0);
	}
	wait(NULL);
	p->value = 2;
}

static void is_killed(void)
{
	right();
	p->value = 43;
	/* By another process: Valgrind would end well before it kills itself. */
	if (!fork()) {
		kill(getppid(), SIGKILL);
		_exit(0);
	}
	pause();
}

static void aborts(void)
{
	p->value = 1;
	abort();
}

static void runs_another(void)
{
	p->value = 1;
	execl("/bin/true", "true", NULL);
}

static void careless(void)
{
	volatile struct pool *v = p;
	v->value = 1; /* OVERWRITTEN */
	v->value = 2; /* NEVER */
	v->flag = 3;  /* NOT FENCED */
	_mm_sfence(); /* ALONE */
	_mm_clflush(&p->flag);
	_mm_clflush(&p->flag); /* AGAIN */
	v->flag = 4;	       /* LATER */
}

/* No fence, but a lock somewhere; `fences`: one later. */
static void locked(int fences)
{
	static int lock;
	p->value = 42; /* BEFORE A LOCK */
	_mm_clflushopt(&p->value);
	__atomic_fetch_add(&lock, 1, 0);
	if (fences)
		_mm_sfence();
	p->flag = 1; /* AFTER A LOCK */
	_mm_clflushopt(&p->flag);
	__atomic_fetch_add(&lock, 1, 0);
	if (fences)
		_mm_sfence();
}

static void locks(void)
{
	locked(0);
}

static void lock_fence(void)
{
	locked(1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"right", right},	     {"swapped", swapped},   {"unflushed", unflushed},
		     {"copies", copies},     {"swaps", swaps},	     {"masked", masked},
		     {"reads", reads},	     {"past", past_cache},   {"operands", operands},
		     {"fences", fences},     {"mappings", mappings}, {"moved", moved},
		     {"syncs", syncs},	     {"threads", threads},   {"forks", forks},
		     {"killed", is_killed},  {"aborts", aborts},     {"execs", runs_another},
		     {"careless", careless}, {"locks", locks},	     {"lock_fence", lock_fence}};
	pool_fd = argc == 3 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
	if (pool_fd < 0 || ftruncate(pool_fd, POOL))
		return 9;
	p = map_flags(POOL, MAP_SHARED | MAP_32BIT);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run(); /* RUN */
			return 0;
		}
	return 9;
}
