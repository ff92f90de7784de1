#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_sparse.sh TIDEMARK SOURCES
#
# A pool of 32 GiB of which a program uses little: what recording and judging it take is by what is used, and the images are right.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

# POOL [check]: some at the beginning, a word in the middle and one near the end, which tell of each other.
cat >big.c <<'END'
#include "core/record/record.h"
#define WORDS (4ul << 30)
int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (argc == 2 && ftruncate(fd, 8 * WORDS))
		return 2;
	long *p = mmap(NULL, 8 * WORDS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return 3;
	if (argc > 2) {
		if (p[1000000])
			return 9; /* another one's mark */
		p[1000000] = 1;
		msync(p, 4096, MS_SYNC);
		return p[WORDS / 2] == 2 && p[WORDS - 512] != 3;
	}
	for (long i = 512; i < 100000; i++)
		p[i] = i;
	pmem_persist(p + 512, 8 * 100000);
	p[WORDS - 512] = 3;
	p[WORDS / 2] = 2;
	pmem_persist(p + WORDS - 512, 8);
	pmem_persist(p + WORDS / 2, 8);
	return 0;
}
END
sed 's/p\[WORDS - 512\] = 3;/&pmem_persist(p + WORDS - 512, 8);/' big.c >right.c
compile big -lpmem -I"$sources"
compile right -lpmem -I"$sources"
# Runs a command, and says how much memory the largest process had, in MiB.
cat >peak.c <<'END'
#include <sys/resource.h>
#include <sys/wait.h>
int main(int argc, char **argv)
{
	struct rusage used;
	int status;
	if (argc > 1 && !fork())
		return execvp(argv[1], argv + 1);
	wait(&status);
	getrusage(RUSAGE_CHILDREN, &used);
	fprintf(stderr, "peak: %ld\n", used.ru_maxrss >> 10);
	return WEXITSTATUS(status);
}
END
compile peak
small() {
	local peak
	peak=$(sed -n 's/^peak: //p' out)
	[ "$peak" -lt 400 ] || fail "$peak MiB: $*"
}
used() { [ "$(du -sm pool | cut -f1)" -lt 100 ] || fail 'the pool is not sparse any more'; }

for program in big right; do
	rm -f pool
	run 0 ./peak tidemark record --pm pool --out $program.rec -- ./$program pool
	small record
	used
done
for how in --jobs=2 --no-server "--check=./big {} check"; do
	run 1 ./peak tidemark images big.rec --recover './big {} check' --from start --most 8 "$how"
	small "images $how"
	[[ $how = --check* ]] || says 'exit status 1' 'of 1 cause'
done
run 0 ./peak tidemark images right.rec --recover './right {} check' --from start --most 8
small images
says 'none of them bad'
# What is there already is read, not its holes.
run 0 ./peak tidemark record --pm pool --out again.rec -- ./right pool
small 'record again'
run 0 ./peak tidemark images again.rec --recover './right {} check' --from start --most 8
small 'images again'
# So is a pool that a log is of.
run 0 tidemark images right.rec --pmemcheck-log right.log
run 0 ./peak tidemark images -l right.log --pool pool --recover './right {} check' --most 8
small 'images of a log'
