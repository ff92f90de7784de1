/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qsort() and bsearch(). As glibc's, the sort merges: elements that compare equal keep their order.
 * The elements that it compares are where the store has them, or in memory of its own.
 */
#include <stdbool.h>
#include "core/libc/stdlib.h"
#include "core/libc/traced.h"
#include "core/rt/process/libc.h"

struct sorting {
	sim_compare_fn *plain; /* NULL: the other */
	sim_compare_with_fn *with;
	void *arg;
	size_t bytes; /* of an element */
	char *merged;
	uintptr_t pc;
};

static int compare(const struct sorting *s, const void *a, const void *b)
{
	return s->plain ? s->plain(a, b) : s->with(a, b, s->arg);
}

static void merge_sort(const struct sorting *s, char *base, size_t n)
{
	size_t na = n / 2, nb = n - na, bytes = s->bytes;
	char *a = base, *b = base + na * bytes, *to = s->merged;
	if (n < 2)
		return;
	merge_sort(s, a, na);
	merge_sort(s, b, nb);
	while (na && nb) {
		bool first = compare(s, a, b) <= 0;
		take(to, first ? a : b, bytes, s->pc);
		to += bytes;
		*(first ? &a : &b) += bytes;
		--*(first ? &na : &nb);
	}
	take(to, a, na * bytes, s->pc);
	/* The rest of b is already in its place. */
	put(base, s->merged, (n - nb) * bytes, s->pc);
}

static void sort(struct sorting *s, void *base, size_t n)
{
	s->merged = sim_take(n * s->bytes);
	merge_sort(s, base, n);
	sim_free_memory(s->merged);
}

void sim_qsort(void *base, size_t n, size_t bytes, sim_compare_fn *compare)
{
	struct sorting s = {.plain = compare, .bytes = bytes, .pc = PC};
	sort(&s, base, n);
}

void sim_qsort_r(void *base, size_t n, size_t bytes, sim_compare_with_fn *compare, void *arg)
{
	struct sorting s = {.with = compare, .arg = arg, .bytes = bytes, .pc = PC};
	sort(&s, base, n);
}

void *sim_bsearch(const void *key, const void *base, size_t n, size_t bytes,
		  sim_compare_fn *compare)
{
	const char *from = base;
	while (n) {
		const char *middle = from + n / 2 * bytes;
		int c = compare(key, middle);
		if (!c)
			return (void *)middle;
		if (c > 0) {
			from = middle + bytes;
			n--;
		}
		n /= 2;
	}
	return NULL;
}
