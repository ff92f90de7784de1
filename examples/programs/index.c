/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A persistent index as many are written: a file that is mapped, and the processor's own
 * instructions for flushing. docs/programs.md crash-tests it as it is.
 *
 *	index POOL put FIRST LAST [bug]	puts these numbers, each with its square
 *	index POOL			is each number's square there? Prints how many there are
 *
 * An entry is whole before its number is stored, which makes it visible. With the bug the processor
 * may do these two in any order: there is no fence between them.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ENTRIES 64

struct entry {
	long square[15];
	long number; /* 0: none. In the entry's second line */
};

__attribute__((target("clflushopt"))) static void flush(void *line)
{
	_mm_clflushopt(line);
}

static int put(struct entry *entry, long number, int bug)
{
	struct entry *e = &entry[number % ENTRIES];
	for (unsigned i = 1; e->number; i++) {
		if (i == ENTRIES)
			return 1;
		e = &entry[(number + i) % ENTRIES];
	}
	e->square[0] = number * number;
	flush(&e->square[0]);
	if (!bug)
		_mm_sfence();
	e->number = number;
	flush(&e->number);
	_mm_sfence();
	return 0;
}

static int check(const struct entry *entry)
{
	int n = 0;
	for (unsigned i = 0; i < ENTRIES; i++) {
		if (entry[i].number &&
		    entry[i].square[0] != entry[i].number * entry[i].number) {
			printf("%ld has the square %ld\n", entry[i].number, entry[i].square[0]);
			return 1;
		}
		n += entry[i].number != 0;
	}
	printf("%d numbers\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	const size_t bytes = ENTRIES * sizeof(struct entry);
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	if (fd < 0 || ftruncate(fd, (off_t)bytes) || (argc > 2 && argc < 5))
		return 2;
	struct entry *entry = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (entry == MAP_FAILED)
		return 2;
	if (argc == 2)
		return check(entry);
	for (long number = atol(argv[3]); number <= atol(argv[4]); number++)
		if (put(entry, number, argc > 5))
			return 1;
	return 0;
}
