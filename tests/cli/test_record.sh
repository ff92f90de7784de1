#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_record.sh TIDEMARK SOURCES
#
# tidemark record: programs as they are, and what it says happened to their PM: libpmem, plain mmap(), threads, fork(), kill -9,
# RNICs. What is recorded is compared event by event, and the images that come of it find the bug and nothing else.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

# record RECORDING PROGRAM...: afresh, on the file pool, and nothing happens to it that is not recorded.
record() {
	local out=$1
	shift
	rm -f pool
	run 0 tidemark record --pm pool --out "$out" -- "$@"
	! grep -q 'not as recorded' out || fail 'what was recorded is not seen'
}
# events RECORDING: a line each, as pmemcheck would log them, in offsets and without places in the program.
events() {
	run 0 tidemark images "$1" --pmemcheck-log text
	tr '|' '\n' <text | sed -E 's/^(STORE;0x1[0-9a-f]*;0x[0-9a-f]*;0x[0-9a-f]*);.*/\1/; s/;0x1000/;0x/' | grep -v -e START -e STOP -e REGISTER >events
}
# expect: events are what standard input says.
expect() {
	cat >expected
	diff expected events >out || fail 'other events than expected'
}

# --- libpmem ---

cat >log.c <<'END'
/* Entries at 64, 128, ...; their number at 0, after them. */
int main(int argc, char **argv)
{
	uint64_t *pool = pmem_map_file(argv[1], 8192, PMEM_FILE_CREATE, 0600, NULL, NULL);
	int n = atoi(argv[2]), bug = argc > 3;
	if (!pool)
		return 1;
	for (int i = 1; i <= n; i++) {
		uint64_t *entry = pool + 8 * i;
		entry[0] = (uint64_t)i;
		memset(entry + 1, i, 32);
		if (!bug)
			pmem_persist(entry, 40);
		pool[0] = (uint64_t)i;
		pmem_persist(pool, 8);
	}
	return 0;
}
END
compile log -lpmem
cat >check.c <<'END'
int check(const char *path)
{
	uint64_t pool[1024];
	int fd = open(path, O_RDONLY), bad = read(fd, pool, sizeof(pool)) != sizeof(pool);
	close(fd);
	for (uint64_t i = 1; !bad && i <= pool[0]; i++) {
		bad = pool[8 * i] != i;
		for (int k = 8; k < 40; k++)
			bad |= ((uint8_t *)&pool[8 * i])[k] != (uint8_t)i;
	}
	return bad;
}
END
compile check.so -shared -fPIC
checker=(-c lib -p ./check.so -n check)

record right.rec ./log pool 2
says '1 file of PM' ' s of recording in '
events right.rec
expect <<'END'
STORE;0x00040;0x1;0x8
STORE;0x00048;0x101010101010101;0x8
STORE;0x00050;0x101010101010101;0x8
STORE;0x00058;0x101010101010101;0x8
STORE;0x00060;0x101010101010101;0x8
FLUSH;0x00040;0x40
FENCE
STORE;0x00000;0x1;0x8
FLUSH;0x00000;0x40
FENCE
STORE;0x00080;0x2;0x8
STORE;0x00088;0x202020202020202;0x8
STORE;0x00090;0x202020202020202;0x8
STORE;0x00098;0x202020202020202;0x8
STORE;0x000a0;0x202020202020202;0x8
FLUSH;0x00080;0x40
FENCE
STORE;0x00000;0x2;0x8
FLUSH;0x00000;0x40
FENCE
END
cp text first.text
# Without the kernel's help, and once more: the same.
TIDEMARK_RECORD_COMPARE=1 record compared.rec ./log pool 2
says 'comparing all of PM'
events compared.rec
cmp -s text first.text || fail 'what is found by comparing is not the same'

# A page that is written again and again stays unprotected for a while, and is protected anew when it is not; many pages at once
# are more than are kept in mind; read() stores, too; a page is taken out of memory; and what a flush has found in its lines, the
# fence does not find.
# Whatever happens, the kernel's help changes nothing of what is found.
cat >pages.c <<'END'
#define PAGES 256

int main(int argc, char **argv)
{
	uint64_t *pool = pmem_map_file(argv[argc - 1], PAGES * 4096, PMEM_FILE_CREATE, 0600, NULL, NULL), value = 0;
	int file = open(argv[0], O_RDONLY);
	if (!pool || file < 0)
		return 1;
	for (unsigned i = 1, page = 0; i <= 2000; i++) {
		page = i % 100 < 60 ? page : (page * 75 + 74) % 257 % PAGES;
		pool[page * 512 + i % 512] = ++value;
		if (i % 3 == 0)
			pmem_persist(&pool[page * 512 + i % 512], 8);
		if (i % 500 == 0)
			for (unsigned k = 0; k < PAGES; k += 2)
				pool[k * 512 + i % 512] = ++value;
		if (i % 70 == 0 && pread(file, &pool[(i * 7 % PAGES) * 512], 16, 64) != 16)
			return 2;
		if (i % 110 == 0) {
			madvise(&pool[page * 512], 4096, MADV_DONTNEED); /* as when memory is scarce */
			pool[(page + 1) % PAGES * 512 + 1] = ++value;
		}
		if (i % 2 == 0)
			pmem_drain();
	}
	return 0;
}
END
compile pages -lpmem
record pages.rec ./pages pool
cp out pages.out
events pages.rec
cp text pages.text
TIDEMARK_RECORD_COMPARE=1 record compared.rec ./pages pool
events compared.rec
cmp -s text pages.text || fail 'what is found by pages that were written is not what is found by comparing'
# Nor is the kernel asked often, which takes long where there is much PM.
if grep -q 'pages that were written' pages.out; then
	asked=$(sed -n 's/.*the kernel asked \([0-9]*\) times.*/\1/p' pages.out)
	[ "$asked" -lt 1000 ] || fail "the kernel was asked $asked times: $(cat pages.out)"
	record one.rec ./log pool 120
	asked=$(sed -n 's/.*the kernel asked \([0-9]*\) times.*/\1/p' out)
	[ "$asked" -lt 60 ] || fail "the kernel was asked $asked times for two pages: $(cat out)"
fi

record right.rec ./log pool 20
run 0 tidemark images right.rec "${checker[@]}"
says '40 stores' 'none of them bad'
record wrong.rec ./log pool 20 bug
run 1 tidemark images wrong.rec "${checker[@]}"
says 'of 1 cause' 'noticed at main (log.c:15)' '1. exit status 1'
again=$(sed -n 's/^   once more: [^ ]* //p' out)
run 1 sh -c "tidemark $again"
says 'exit status 1'

# What is written as pmemcheck's log can be read by pmreorder, which knows nothing but its own tokens on one line.
if command -v python3 >/dev/null; then
	for bug in '' bug; do
		record few.rec ./log pool 3 $bug
		run 0 tidemark images few.rec --pmemcheck-log text
		[ "$(wc -l <text)" -eq 1 ] || fail 'a log of several lines'
		truncate -s 0 pool && truncate -s 8192 pool
		run 0 "$sources/tests/bench/pmreorder_procedure.py" text ReorderAccumulative lib ./check.so check
		read -r states bad _ <out
		[ "$states" -ge 6 ] || fail "$states states"
		[ -n "$bug" ] || [ "$bad" -eq 0 ] || fail 'a state is bad of the right program'
	done
fi

# Lines that have changed next to each other are stores of their own, whatever part of a line has changed, and wherever a page ends.
cat >lines.c <<'END'
int main(int argc, char **argv)
{
	uint64_t *pool = argc == 2 ? pmem_map_file(argv[1], 8192, PMEM_FILE_CREATE, 0600, 0, 0) : 0;
	static const unsigned part[][2] = {{1, 25}, {33, 34}, {48, 64}, {71, 73}, {504, 520}};
	for (unsigned i = 0; pool && i < 5; i++)
		for (unsigned k = part[i][0]; k < part[i][1]; k++)
			pool[k] = k;
	if (pool)
		pmem_persist(pool, 8192);
	return !pool;
}
END
compile lines -lpmem
record lines.rec ./lines pool
events lines.rec
for k in $(seq 1 24) 33 $(seq 48 63) 71 72 $(seq 504 519); do
	printf 'STORE;0x%05x;0x%x;0x8\n' $((8 * k)) "$k"
done >lines.expected
printf 'FLUSH;0x00000;0x2000\nFENCE\n' >>lines.expected
expect <lines.expected
run 0 tidemark images lines.rec --recover 'test 1 -eq 1 #' --most 5000
says '11 stores' ': 2048 different images'

# What another thread has stored comes before a fence as well, though this one has had no page fault since its last fence; and
# a thread that libc knows nothing of.
cat >thread.c <<'END'
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>

static uint64_t *pool;
static _Atomic unsigned asked, done;

static int store(void *arg)
{
	for (unsigned i = 1; i <= 40; i++) {
		while (asked < i)
			sched_yield();
		pool[512 * i] = i;
		done = i;
	}
	while (asked < 41)
		sched_yield();
	done = 41;
	return arg != 0;
}

int main(int argc, char **argv)
{
	static char stack[1 << 16] __attribute__((aligned(64)));
	pool = pmem_map_file(argv[1], 64 * 4096, PMEM_FILE_CREATE, 0600, 0, 0);
	if (!pool)
		return 1;
	pmem_drain();
	pool[0] = 1;
	pmem_drain();
	if (argc == 3)
		prctl(PR_TASK_PERF_EVENTS_DISABLE);
	if (clone(store, stack + sizeof(stack), CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM | CLONE_THREAD, 0) < 0)
		return 2;
	for (unsigned i = 1; i <= 41; i++) {
		asked = i;
		while (done < i)
			sched_yield();
		pmem_drain();
		pmem_drain(); /* to notice something causes page faults of its own */
	}
	return 0;
}
END
compile thread -lpmem -D_GNU_SOURCE
{
	printf 'FENCE\nSTORE;0x00000;0x1;0x8\nFENCE\n'
	for i in $(seq 40); do
		printf 'STORE;0x%05x;0x%x;0x8\nFENCE\nFENCE\n' $((4096 * i)) "$i"
	done
	printf 'FENCE\nFENCE\n'
} >thread.expected
for how in '' off; do
	record thread.rec ./thread pool $how
	events thread.rec
	expect <thread.expected
done

# --- each store in its place, of a program that gcc has compiled with -fsanitize=thread ---

cat >exact.c <<'END'
#include <stdatomic.h>

struct pair {
	uint64_t a, b;
};

int main(int argc, char **argv)
{
	uint64_t *pool = argc == 2 ? pmem_map_file(argv[1], 8192, PMEM_FILE_CREATE, 0600, 0, 0) : 0;
	struct pair pair = {argc, argc};
	if (!pool)
		return 1;
	volatile uint64_t *word = pool;
	word[7] = 1; /* line 14 */
	word[0] = 2;
	word[7] = 3;
	*(struct pair *)&pool[2] = pair;
	atomic_fetch_add((_Atomic uint64_t *)&pool[8], 5);
	atomic_exchange((_Atomic uint8_t *)&pool[9], 6);
	uint64_t none = 0;
	atomic_compare_exchange_strong((_Atomic uint64_t *)&pool[10], &none, 7);
	*(volatile uint32_t *)&pool[11] = 8;
	pmem_persist(pool, 128);
	return 0;
}
END
compile exact -lpmem -fsanitize=thread
# exactly RECORDING FILE: its events, with what stands in the function of FILE.
exactly() {
	run 0 tidemark images "$1" --pmemcheck-log text
	tr '|' '\n' <text | grep -v -e START -e STOP -e REGISTER | sed "s/;0x1000/;0x/; s/ ($2:/:/; s/).*$//" >events
}
rm -f pool
run 0 tidemark record --pm pool --out exact.rec --stores exact -- ./exact pool
exactly exact.rec exact.c
cat >exact.expected <<'END'
STORE;0x00038;0x1;0x8;main:14
STORE;0x00000;0x2;0x8;main:15
STORE;0x00038;0x3;0x8;main:16
STORE;0x00010;0x2;0x8;main:17
STORE;0x00018;0x2;0x8;main:17
STORE;0x00040;0x5;0x8;main:18
STORE;0x00048;0x6;0x1;main:19
STORE;0x00050;0x7;0x8;main:21
STORE;0x00058;0x8;0x4;main:22
FLUSH;0x00000;0x80
FENCE
END
expect <exact.expected
# The option is not needed, and it can be switched off.
record auto.rec ./exact pool
says '; 9 that the program told of'
exactly auto.rec exact.c
expect <exact.expected
rm -f pool
run 0 tidemark record --pm pool --out noticed.rec --stores noticed -- ./exact pool
exactly noticed.rec exact.c
[ "$(grep -c 'STORE;0x00038' events)" -eq 1 ] || fail 'a word that was stored twice is a change of its line'
# In which order the words of a line were stored is said to be unknown where it is, but not to who asked for that.
order='stored to a line of 64 bytes between two events is not known'
! grep -qF "$order" out || fail 'who asked for it is told how to have it otherwise'
run 0 tidemark images noticed.rec --recover true --json order.json --html order.html
says "in which order CPUs $order" 'tidemark cc'
grep -qF '"unordered": 2' order.json || fail 'order.json does not count the two lines'
grep -qF "in which order CPUs $order" order.html || fail 'order.html does not say that the order is not known'
record auto.rec ./exact pool
! grep -qF "$order" out || fail 'each store was told, and its order is said to be unknown'
run 0 tidemark images auto.rec --recover true --json order.json --html order.html
! grep -qF "$order" out order.html || fail 'each store was told, and its order is said to be unknown'
grep -qF '"unordered": 0' order.json || fail 'order.json counts stores that were told'
# What a program tells of is in order, and so is what libc stores for it (of a line one store, and then it has no order that
# could be unknown): each line from 21 on stores something.
cat >writes.c <<'END'
struct text {
	char of[200];
};
static const struct text text = {"as long as three words of eight"};

static void print(char *to, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(to, 200, format, ap);
	va_end(ap);
}

int main(int argc, char **argv)
{
	char *pool = argc == 3 ? pmem_map_file(argv[1], 8192, PMEM_FILE_CREATE, 0600, 0, 0) : 0, *at = pool;
	int fd = open(argv[2], O_RDONLY);
	FILE *in = fopen(argv[2], "r");
	if (!pool || fd < 0 || !in)
		return 1;
	memcpy(at, text.of, 31); /* line 21 */
	memset(at, 'x', 100);
	memmove(at + 1, at, 131);
	strcpy(at += 256, text.of);
	at[0] = 'b';
	strcat(at, text.of);
	at = stpcpy(at += 128, text.of);
	strncpy(at += 64, text.of, 32);
	snprintf(at += 64, 128, "%s of %d and %f", text.of, argc, 1.5);
	sprintf(at += 128, "%s and %s", text.of, text.of);
	print(at += 128, "%s and %s", text.of, text.of);
	if (read(fd, at += 128, 100) != 100 ||
	    pread(fd, at += 128, 100, 0) != 100 ||
	    fread(at += 128, 1, 100, in) != 100 ||
	    !fgets(at += 128, 100, in))
		return 2;
	*(struct text *)(at += 128) = text;
	bzero(at, 32);
	pmem_memcpy(at += 256, text.of, 100, PMEM_F_MEM_NOFLUSH);
	at[0] = 'z';
	pmem_persist(pool, 8192);
	return 0;
}
END
seq 100 >input
# stored FLAGS LINES: compiled with FLAGS, these stand beside each other.
stored() {
	# shellcheck disable=SC2086
	compile writes -lpmem -fsanitize=thread $1
	record writes.rec ./writes pool input
	exactly writes.rec writes.c
	sed -n 's/^STORE;[^:]*:\([0-9]*\).*/\1/p' events | uniq | tr '\n' ' ' >lines
	grep -q "$2" lines || fail "$1: stores of lines $(cat lines)"
}
for flags in '-fno-builtin' '-O0 -fno-builtin'; do
	stored "$flags" '^21 22 23 24 25 26 27 28 29 30 10 32 33 34 35 37 38 39 40 $'
	run 0 tidemark images writes.rec --recover true
	! grep -qF "$order" out || fail "$flags: each store was told, and its order is said to be unknown"
done
stored '-O2 -D_FORTIFY_SOURCE=2' ' 29 30 10 32 33 34 35 ' # the compiler makes others itself
# What a call stores of a line comes at once, as if the process could not die within it: its order is unknown.
cat >within.c <<'END'
int main(int argc, char **argv)
{
	char *pool = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0);
	if (!pool)
		return 1;
	if (argc > 2)
		return pool[0] && strlen(pool + 8) != 150;
	snprintf(pool + 8, 200, "%0150d", 1);
	pool[0] = 1;
	return 0;
}
END
compile within -lpmem -fsanitize=thread
record within.rec ./within pool
run 0 tidemark images within.rec --model kill --recover './within {} check'
says ' 3 different images' 'none of them bad'
sed -i 's/pool\[0\] && //' within.c
compile within -lpmem -fsanitize=thread
run 1 tidemark images within.rec --model kill --recover './within {} check'
says ' of which 1 is bad' # the first
# What code stores that tells of nothing is noticed later.
cat >fill.c <<'END'
void fill(long *at);
void fill(long *at)
{
	for (int i = 0; i < 3; i++)
		at[i] = i + 1;
}
END
cat >both.c <<'END'
void fill(long *at);

int main(int argc, char **argv)
{
	char *pool = argc == 2 ? pmem_map_file(argv[1], 8192, PMEM_FILE_CREATE, 0600, 0, 0) : 0;
	if (!pool)
		return 1;
	pool[0] = 1;
	fill((long *)(pool + 64));
	pmem_persist(pool, 128);
	return 0;
}
END
run 0 gcc -g -O1 -c fill.c
compile both -lpmem -fsanitize=thread fill.o
record both.rec ./both pool
says "in which order code that tells of no store $order"
run 0 tidemark images both.rec --recover true
says "in which order code that tells of no store $order"
# Where all that is stored is left, an image that is good with what was noticed later is no verdict; one that is bad in any
# order is one.
cat >late.c <<'END'
void fill(long *at);

/* An entry of four words at 64, and at 0 that there is one. With "bug" that is said first. */
int main(int argc, char **argv)
{
	long *pool = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0);
	if (!pool)
		return 1;
	if (argc > 2 && !strcmp(argv[2], "check"))
		return pool[0] && (pool[8] != 7 || pool[9] != 1 || pool[11] != 3);
	if (argc > 2)
		pool[0] = 1;
	pool[8] = 7;
	fill(pool + 9);
	if (argc == 2)
		pool[0] = 1;
	pool[16] = 1;
	return 0;
}
END
compile late -lpmem -fsanitize=thread fill.o
record late.rec ./late pool
run 3 tidemark images late.rec --recover './late {} check' --json late.json --junit late.xml --html late.html
says '1. in doubt: exit status 1' 'it is good with the store of 24 bytes' 'which may have come before' \
	'could not tell: what is bad is good if stores came before that were noticed later'
grep -q '"in_doubt": true' late.json || fail 'the JSON has no doubt'
run 3 tidemark images late.rec --recover './late {} check' --knob domain=mhp
run 3 sh -c "tidemark $(sed -n 's/^   once more: [^ ]* //p' out | head -n 1)"
says 'it is good with the store'
record bug.rec ./late pool bug
run 1 tidemark images bug.rec --recover './late {} check'
says '1. exit status 1; ' 'the store by main (late.c:13)'
# A flush looks at its own lines alone, so that stores are noticed in the order of flushes.
cat >flag.c <<'END'
int main(int argc, char **argv)
{
	long *pool = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0);
	if (!pool)
		return 1;
	if (argc > 2)
		return pool[0] && !pool[8];
	pool[8] = 7;
	pool[0] = 1;
	pmem_flush(pool, 8);
	pmem_persist(pool + 8, 8);
	return 0;
}
END
compile flag -lpmem
record flag.rec ./flag pool
run 3 tidemark images flag.rec --recover './flag {} check' --knob domain=mhp
says '1. in doubt: exit status 1' 'noticed at main (flag.c:11)'
run 1 tidemark images flag.rec --recover './flag {} check'
# Not told of either, and one word has no order that could be unknown.
sed '/fill/d' both.c >word.c
compile word -lpmem
record word.rec ./word pool
! grep -qF "$order" out || fail 'a line of which one word was stored has an order'
run 0 tidemark images word.rec --recover true
! grep -qF "$order" out || fail 'a line of which one word was stored has an order'
compile both -lpmem fill.o
record both.rec ./both pool
says "in which order CPUs $order"
# As tidemark cc compiles it.
mkdir cc && cp exact.c cc
(cd cc && run 0 tidemark cc -g -include "$prelude" -o exact exact.c -lpmem)
record cc.rec cc/exact pool
exactly cc.rec exact.c
expect <exact.expected
# A library that the program loads while it runs.
sed 's/int main(int argc, char \*\*argv)/int put(const char *path); int put(const char *path)/
	s/argc == 2 ? pmem_map_file(argv\[1\]/path ? pmem_map_file(path/; s/{argc, argc}/{2, 2}/' exact.c >told.c
cat >loader.c <<'END'
int main(int argc, char **argv)
{
	void *told = dlopen("./told.so", RTLD_NOW | RTLD_LOCAL);
	int (*put)(const char *) = told ? (int (*)(const char *))dlsym(told, "put") : 0;
	return argc == 2 && put ? put(argv[1]) : 2;
}
END
compile told.so -shared -fPIC -lpmem -fsanitize=thread
compile loader
record told.rec ./loader pool
exactly told.rec told.c
sed 's/main:/put:/' exact.expected | expect
run 0 tidemark record --pm pool --out exact.rec --stores exact -- ./log pool 1
says 'the program told of no store'
bad '' tidemark record --pm pool --out exact.rec --stores all -- ./log pool 1

# What was in the file before.
record two.rec ./log pool 1
run 0 tidemark record --pm pool --out two.rec -q -- ./log pool 2
run 0 tidemark images two.rec "${checker[@]}"
events two.rec
[ "$(grep -c STORE events)" -eq 6 ] || fail 'stores of what was there already' # the second entry, and the number

# --- copies, msync(), threads, fork() ---

cat >calls.c <<'END'
static uint64_t *pool;

static void *drain(void *arg)
{
	pmem_drain();
	return arg;
}

int main(int argc, char **argv)
{
	static const uint64_t seven = 7;
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (argc != 2 || fd < 0 || ftruncate(fd, 8192))
		return 1;
	/* Not with MAP_SYNC, as there is no DAX device; that is for the recorder to see to. */
	pool = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
	if (pool == MAP_FAILED)
		return 2;
	pmem_memcpy_persist(pool, &seven, 8);
	pmem_memcpy_nodrain(pool + 8, &seven, 8);
	pmem_memset(pool + 16, 1, 8, PMEM_F_MEM_NOFLUSH);
	pthread_t thread;
	if (pthread_create(&thread, NULL, drain, NULL) || pthread_join(thread, NULL))
		return 3;
	pid_t child = fork();
	if (!child) {
		pool[24] = 0xc;
		pmem_flush(pool + 24, 8);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	if (msync(pool, 4096, MS_SYNC) || fsync(fd))
		return 4;
	pool[512] = 0xe;
	munmap(pool, 8192);
	pool = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pool[0] = 0xf;
	int pair[2], file = open("other", O_WRONLY | O_CREAT, 0600);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || write(pair[0], "done", 4) != 4 ||
	    write(file, "done", 4) != 4) /* only the first is an acknowledgement */
		return 5;
	return 0;
}
END
compile calls -lpmem -pthread
record calls.rec ./calls pool
events calls.rec
expect <<'END'
STORE;0x00000;0x7;0x8
FLUSH;0x00000;0x40
FENCE
STORE;0x00040;0x7;0x8
FLUSH;0x00040;0x40
STORE;0x00080;0x101010101010101;0x8
FENCE
STORE;0x000c0;0xc;0x8
FLUSH;0x000c0;0x40
FLUSH;0x00000;0x1000
FENCE
FLUSH;0x00000;0x2000
FENCE
STORE;0x01000;0xe;0x8
STORE;0x00000;0xf;0x8
ACK.BEGIN
ACK.END
END
# The other thread's fence makes nothing of this thread's durable: two lines are in flight until msync().
run 0 tidemark images calls.rec --from start --recover 'test 1 -eq 1 #' --most 100
says '6 stores' 'the power failed at 4 places: 16 different images'

# A library that brings libpmem with it, for itself.
cat >plugin.c <<'END'
int put(const char *path);
int put(const char *path)
{
	uint64_t *pool = pmem_map_file(path, 8192, PMEM_FILE_CREATE, 0600, NULL, NULL);
	if (!pool)
		return 1;
	pool[0] = 1;
	pmem_persist(pool, 8);
	return 0;
}
END
compile plugin.so -shared -fPIC -lpmem
cat >loads.c <<'END'
int main(int argc, char **argv)
{
	void *plugin = dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL);
	int (*put)(const char *) = plugin ? (int (*)(const char *))dlsym(plugin, "put") : 0;
	return argc == 2 && put ? put(argv[1]) : 2;
}
END
compile loads
record loads.rec ./loads pool
events loads.rec
expect <<'END'
STORE;0x00000;0x1;0x8
FLUSH;0x00000;0x40
FENCE
END

# --- what a program says itself ---

cat >says.c <<'END'
#include "core/record/record.h"

int main(int argc, char **argv)
{
	uint64_t *pool = argc == 2 ? pmem_map_file(argv[1], 8192, PMEM_FILE_CREATE, 0600, 0, 0) : 0;
	if (!pool)
		return 1;
	tidemark_record_mark("FIRST.BEGIN");
	pool[0] = 1;
	tidemark_record_ack(); /* too early */
	pmem_persist(pool, 8);
	tidemark_record_mark("FIRST.END");
	return 0;
}
END
compile says -lpmem -I"$sources"
rm -f pool
run 0 ./says pool # alone
record says.rec ./says pool
events says.rec
expect <<'END'
FIRST.BEGIN
STORE;0x00000;0x1;0x8
ACK.BEGIN
ACK.END
FLUSH;0x00000;0x40
FENCE
FIRST.END
END
run 1 tidemark images says.rec --recover 'test $(od -An -td8 -N8 {}) -ge $TIDEMARK_ACKED'
says 'of 1 cause' 'after 1 acknowledgement' 'after FIRST.BEGIN' 'noticed at main (says.c:10)'
run 0 tidemark images says.rec --recover 'test -z "$TIDEMARK_MARKER" -o $(od -An -td8 -N8 {}) -ge 0'

# --- killed ---

cat >killed.c <<'END'
int main(int argc, char **argv)
{
	uint64_t *pool = argc == 2 ? pmem_map_file(argv[1], 8192, PMEM_FILE_CREATE, 0600, NULL, NULL) : NULL;
	for (uint64_t i = 1; pool && i <= 100; i++) {
		pool[8] = i;
		pmem_persist(pool + 8, 8);
		if (i == 50)
			raise(SIGKILL);
	}
	return 0;
}
END
compile killed -lpmem
rm -f pool
run 137 tidemark record --pm pool --out killed.rec -- ./killed pool
events killed.rec
[ "$(grep -c STORE events)" -eq 50 ] || fail "not what was stored until it was killed"

# --- an RNIC ---

run 0 gcc -g -O1 -Wall -Wextra -Werror -o loopback "$sources/tests/cli/record_loopback.c" -libverbs
record rnic.rec ./loopback pool
run 0 tidemark images rnic.rec --pmemcheck-log text
tr '|' '\n' <text | grep -v -e START -e STOP -e REGISTER | sed 's/;0x1000/;0x/; s/);.*/)/' >events
{
	echo 'STORE;0x00000;0xc0;0x8;post (record_verbs.h:LINE)'
	printf 'ACK.BEGIN\nACK.END\n'
	for i in $(seq 0 15); do
		printf 'STORE;0x%05x;0x11%02x;0x8;RDMA WRITE or atomic\n' $((64 + 8 * i)) "$i"
	done
	printf 'ACK.BEGIN\nACK.END\n'
	echo 'STORE;0x00100;0x5a;0x8;RDMA WRITE or atomic'
	printf 'ACK.BEGIN\nACK.END\n'
	echo 'STORE;0x00140;0x5e4d;0x8;data of a SEND'
	printf 'ACK.BEGIN\nACK.END\n'
	echo 'STORE;0x00180;0x4ead;0x8;answer to a READ or an atomic'
	printf 'FLUSH;0x00000;0x2000\nFENCE\n'
	printf 'ACK.BEGIN\nACK.END\n'
	echo 'STORE;0x00200;0x5e4d;0x8;RDMA WRITE or atomic'
	printf 'ACK.BEGIN\nACK.END\nACK.BEGIN\nACK.END\nACK.BEGIN\nACK.END\n'
	echo 'STORE;0x00200;0x1108;0x8;RDMA WRITE or atomic'
	printf 'ACK.BEGIN\nACK.END\n'
	echo 'STORE;0x00240;0x77;0x8;RDMA WRITE or atomic'
	printf 'ACK.BEGIN\nACK.END\n' # the READ is posted
} | sed "s/record_verbs.h:LINE/$(sed -n 's/.*(\(record_verbs.h:[0-9]*\)).*/\1/p' events | head -n 1)/" | expect

# The last landing's own READ is there, though another queue pair's came before it.
run 0 tidemark images rnic.rec --knob ddio=off --recover true --most 4 --json rnic.json
says '6 READs after landings' # one less, if the other's counted for both; two less, if atomics read nothing
# An atomic's landing belongs to its queue pair: the last READ makes it durable.
end=$(sed -n 's/.*"events": \([0-9]*\).*/\1/p' rnic.json)
run 0 tidemark images rnic.rec --knob ddio=off --recover true --image "$end:"
says 'nothing was in flight'
# Memory that others may write to, whatever it is: the same without a file.
sed 's/MAP_SHARED, fd, 0)/MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)/; s/.*msync.*//' "$sources/tests/cli/record_loopback.c" >anonymous.c
! cmp -s anonymous.c "$sources/tests/cli/record_loopback.c" || fail 'the program is the same'
compile anonymous -I"$sources/tests/cli" -libverbs
grep -v -e FLUSH -e FENCE events >expected
run 0 tidemark record --pm mr --out mr.rec -- ./anonymous pool
run 0 tidemark images mr.rec --pmemcheck-log text
grep -q 'REGISTER_FILE;mr\.[0-9]*\.0;0x100000000;0x2000;' text || fail 'the pool is not the first region'
tr '|' '\n' <text | grep -e '^STORE;0x10000' -e ACK | sed 's/;0x1000/;0x/; s/);.*/)/' >events
diff expected events >out || fail 'other events than of a file'

# --- hardware that differs: each bug shows with its knob alone ---

cat >slot.c <<'END'
/* slot POOL first|last|right: a line is stored with a word, its first or its last, that says it is whole; or the word comes
 * later. slot POOL check. */
int main(int argc, char **argv)
{
	uint64_t *pool = argc == 3 ? pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0) : 0, line[8];
	if (!pool)
		return 9;
	if (!strcmp(argv[2], "check")) {
		for (int i = 0; i < 8; i++)
			if ((pool[0] == 2 || pool[7] == 2) && pool[i] == 0)
				return 1;
		return 0;
	}
	for (int i = 0; i < 8; i++)
		line[i] = 1;
	if (!strcmp(argv[2], "first"))
		line[0] = 2;
	if (!strcmp(argv[2], "last"))
		line[7] = 2;
	pmem_memcpy_persist(pool, line, 64);
	if (!strcmp(argv[2], "right")) {
		pool[0] = 2;
		pmem_persist(pool, 8);
	}
	return 0;
}
END
compile slot -lpmem
# slot HOW KNOB STATUS
slot() {
	record slot.rec ./slot pool "$1"
	run "$3" tidemark images slot.rec --recover './slot {} check' --knob line_torn="$2"
}
for how in first last right; do
	slot $how off 0
done
slot first prefix 1
says 'of 1 cause' '+0x0: version 1 of 1 cut after word 1 is left'
again=$(sed -n 's/^   once more: [^ ]* //p' out)
run 1 sh -c "tidemark $again --html slot.html"
says 'cut after word 1 is left'
grep -q '"how":"version 1 of 1 cut after word 1"' slot.html || fail 'the page does not say how the line was cut'
grep -q 'domain=dmp ddio=on line_torn=prefix' slot.html || fail 'the page does not name the knob'
slot last prefix 0
slot last any 1
says 'of 1 cause' 'version 1 of 1 only in words'
slot right prefix 0
slot right any 0
# As much may be left of a line, and no more.
bad '' sh -c "tidemark ${again%=*}=99"

run 0 gcc -g -O1 -Wall -Wextra -Werror -I"$sources" -o remote "$sources/tests/cli/record_remote.c" -libverbs
for how in one two read right; do
	record remote-$how.rec ./remote pool $how
	run 0 tidemark images remote-$how.rec --pmemcheck-log text
	[ "$(tr '|' '\n' <text | grep -c '^STORE')" -eq 33 ] || fail 'not all has landed'
done
# remote HOW STATUS OPTION...
remote() {
	local how=$1 status=$2
	shift 2
	run "$status" tidemark images remote-$how.rec --recover './remote {} dump' "$@"
}
for how in one two read right; do
	remote $how 0 --model kill
	remote $how 0 --knob domain=mhp --contracts DUR --knob ack_early=off
done
for model in '--model kill' '--knob domain=mhp'; do
	# shellcheck disable=SC2086 # words
	{
		remote one 0 $model
		remote one 1 $model --knob dma_order=any
		says 'exit status 1' 'of 1 cause' 'lost: the landing'
		remote one 1 $model --knob dma_order=relaxed
		remote two 0 $model --knob dma_order=any
		remote two 1 $model --knob dma_order=relaxed
		remote read 0 $model --knob dma_order=relaxed
		remote right 0 $model --knob dma_order=relaxed
	}
done
# What was acknowledged early is lost.
for how in one two read; do
	remote $how 1 --knob domain=mhp --contracts DUR
	says 'DUR: a is absent' 'of 1 cause'
done
remote right 0 --knob domain=mhp --contracts DUR --knob dma_order=relaxed
# Not if what the NIC had received survives.
for how in one two read; do
	remote $how 0 --knob domain=wsp --contracts DUR --knob dma_order=relaxed
done
# Caches survive, and the buffers before them do not: the READ has emptied these, whichever way each line went.
for ddio in off any; do
	past="--knob domain=mhp --knob iio_in_mhp=off --knob ddio=$ddio --contracts DUR"
	# shellcheck disable=SC2086 # words
	{
		remote one 1 $past --knob ack_early=off
		says 'DUR: a is absent'
		remote read 1 $past --knob ack_early=off
		remote right 0 $past
	}
done
remote one 0 --knob domain=mhp --knob iio_in_mhp=off --knob ack_early=off --contracts DUR
# Where caches are lost, it is a READ without effect if the line may be in one of them.
remote right 0 --knob ddio=off --contracts DUR
remote right 1 --knob ddio=any --contracts DUR

# Non-temporal stores wait in buffers of their own, which nothing of a machine keeps.
cat >copies.c <<'END'
/* copies POOL how: a copy, and a word which says that it is there. copies POOL check. */
int main(int argc, char **argv)
{
	uint64_t *pool = argc == 3 ? pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0) : 0, value[32];
	if (!pool)
		return 9;
	if (!strcmp(argv[2], "check")) {
		for (int i = 0; i < 8; i++)
			if (pool[64] && pool[i] != 7)
				return 1;
		return 0;
	}
	for (int i = 0; i < 32; i++)
		value[i] = 7;
	pool[32] = 1; /* stored otherwise, in a line beside the copy */
	if (!strcmp(argv[2], "long"))
		pmem_memcpy_nodrain(pool, value, 256);
	else if (!strcmp(argv[2], "short"))
		pmem_memcpy_nodrain(pool, value, 64);
	else if (!strcmp(argv[2], "short-nt"))
		pmem_memcpy(pool, value, 64, PMEM_F_MEM_NODRAIN | PMEM_F_MEM_WC);
	else if (!strcmp(argv[2], "long-temporal"))
		pmem_memcpy(pool, value, 256, PMEM_F_MEM_NODRAIN | PMEM_F_MEM_TEMPORAL);
	else if (!strcmp(argv[2], "fenced"))
		pmem_memcpy_persist(pool, value, 256);
	else if (!strcmp(argv[2], "again")) {
		/* A store or a flush of each line comes after what was copied there. */
		pmem_memcpy_nodrain(pool, value, 256);
		pmem_flush(pool, 256);
	} else
		return 9;
	pool[64] = 1;
	pmem_persist(pool + 64, 8);
	return 0;
}
END
compile copies -lpmem
for how in long short short-nt long-temporal fenced again; do
	record copies.rec ./copies pool $how
	buffered=0
	case $how in long | short-nt) buffered=1 ;; esac
	for domain in mhp wsp; do
		run 0 tidemark images copies.rec --recover './copies {} check' --knob domain=$domain
		run $buffered tidemark images copies.rec --recover './copies {} check' --knob domain=$domain --knob nt_stores=buffered
	done
	run 0 tidemark images copies.rec --recover './copies {} check' --model kill --knob nt_stores=buffered
done
# The report says what was lost.
record copies.rec ./copies pool long
run 1 tidemark images copies.rec --recover './copies {} check' --knob domain=mhp --knob nt_stores=buffered
says 'lost: the store of 64 bytes' 'noticed at main (copies.c:' 'before the fence'
# A log of Valgrind's does not know them.
run 0 tidemark images copies.rec --pmemcheck-log text
bad 'not by which instruction' tidemark images -l text --pool zero -p true --knob domain=mhp --knob nt_stores=buffered

# --- a program that joins ---

mkfifo ready go
rm -f pool
tidemark record --pm pool --out joined.rec -- sh -c 'echo >ready; read -r line <go' >first 2>&1 &
first=$!
read -r _ <ready
run 0 tidemark record --join joined.rec -- ./log pool 2
[ ! -s out ] || fail 'two summaries'
echo >go
wait $first
grep -q '1 file of PM' first || fail 'no summary'
run 0 tidemark images joined.rec --pmemcheck-log text
cmp -s text first.text || fail 'what joined is recorded otherwise'
bad 'this recording has ended' tidemark record --join joined.rec -- true
bad 'expected a recording' tidemark record --join pool -- true
{ printf 'tidemark-pm-recording 4\n' && head -c 4096 /dev/zero; } >old.rec
bad 'a recording of another format' tidemark record --join old.rec -- true
bad '' tidemark record --join nowhere -- true
bad '' tidemark record --join joined.rec --pm pool -- true

# --- several hosts: the PM of each, in one order, and a checker that looks at all ---

cat >replica.c <<'END'
/* replica POOL NUMBER [bug]: stores it. replica PRIMARY BACKUP check: the backup must not be ahead. */
int main(int argc, char **argv)
{
	int check = argc == 4 && !strcmp(argv[3], "check");
	long *pool = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL), number = 0;
	long *backup = check ? pmem_map_file(argv[2], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL) : NULL;
	if (!pool || (check && !backup))
		return 9;
	if (check)
		return *backup > *pool;
	if (sscanf(argv[2], "%ld", &number) != 1)
		return 9;
	*pool = number;
	if (argc < 4)
		pmem_persist(pool, sizeof(*pool));
	return 0;
}
END
compile replica -lpmem
# replicate RECORDING [bug]: the servers of two hosts, each a command of its own.
replicate() {
	rm -f a b
	tidemark record -q --pm a --pm b --out "$1" -- sh -c 'echo >ready; read -r line <go' >first 2>&1 &
	first=$!
	read -r _ <ready
	for number in 1 2; do
		run 0 tidemark record --join "$1" -- ./replica a $number ${2-}
		run 0 tidemark record --join "$1" -- ./replica b $number
	done
	echo >go
	wait $first
}
replicate hosts.rec
run 0 tidemark images hosts.rec --recover './replica {1} {2} check'
says '/a (4096 bytes), ' '/b (4096 bytes); 4 stores' 'none of them bad'
replicate ahead.rec bug
run 1 tidemark images ahead.rec --recover './replica {1} {2} check'
says 'of 1 cause' 'noticed at the end of the process'
run 1 tidemark images ahead.rec --no-server --recover './replica {1} {2} check' --check './replica {1} {2} check'
says 'of 1 cause'
run 1 tidemark images ahead.rec --recover 'true && ./replica {1} {2} check'
says 'of 1 cause'
# Each file by itself is good.
run 0 tidemark images ahead.rec --recover './replica {} {} check'
run 2 tidemark images ahead.rec --recover './replica {1} {3} check'
says '{3}, but 2 files of PM'
bad '{0}, but 2 files of PM; expected {1}, {2}, ...' tidemark images ahead.rec --recover './replica {0} {1} check'
bad '' tidemark images ahead.rec --recover './replica {1} {} check'
bad '' tidemark images ahead.rec --recover './replica {1} {2} check' --check './replica {} {} check'

# --- a daemon ---

# Its parent ends with status 7; it stores when somebody reads the last argument, a pipe that it has until it ends.
cat >daemon.c <<'END'
int main(int argc, char **argv)
{
	int pool = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	if (pool < 0 || ftruncate(pool, 4096))
		return 1;
	volatile unsigned long *word = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
	word[0] = 1;
	msync((void *)word, 4096, MS_SYNC);
	if (fork())
		return 7;
	setsid();
	alarm(300);
	if (open(argv[2], O_WRONLY) < 0)
		return 2;
	word[8] = 2;
	msync((void *)word, 4096, MS_SYNC);
	return 3;
}
END
compile daemon
# daemon PIPE: record it until its parent has ended.
daemon() {
	rm -f pool said "$1"
	mkfifo "$1" said
	env --default-signal=INT tidemark record --pm pool --out daemon.rec -- ./daemon pool "$1" >out 2>said &
	pid=$!
	exec 8<said
	read -r -t 100 line <&8 || fail 'not a word of what the program has left running'
	case $line in
	*'daemon.rec: the program has ended, and 1 process of it has not: recorded until then'*) ;;
	*) fail "$line" ;;
	esac
}
# daemon_ends: record ends as the program did.
daemon_ends() {
	local status=0
	wait $pid || status=$?
	exec 8<&-
	[ $status -eq 7 ] || fail "exit status $status, and not the program's"
	run 0 tidemark images daemon.rec --recover true
	! grep -q 'it has no end' out || fail 'the recording has no end'
}
daemon go
cat go
daemon_ends
says '2 stores, 2 msyncs'
# What is left of the one goes on to its end while the next one is recorded, which is none of that one's.
for signal in TERM INT; do
	daemon $signal
	[ $signal = TERM ] || cat TERM
	kill -$signal $pid
	daemon_ends
	says '1 store, 1 msync'
done
cat INT

# A process of Tidemark's own, which watches over the soft RNICs of a program that is not recorded, is no part of it.
cat >holds.c <<'END'
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(0);
	if (!list || !*list || !ibv_open_device(*list))
		return 1;
	alarm(300);
	close(open("held", O_WRONLY));
	close(open("go", O_RDONLY));
	return 0;
}
END
compile holds -libverbs
rm go
mkfifo go held
tidemark run -- ./holds >holds.out 2>&1 &
: <held
run 0 timeout 100 tidemark record --pm pool --out daemon.rec -- true
! grep -q 'has ended' out || fail 'it waits for a process of its own'
: >go
wait $!

# --- what cannot be ---

run 0 tidemark record --pm pool --out x.rec -- true
says 'the program mapped no file that --pm names'
# knob WORDS KNOB: is refused with these.
knob() {
	bad "$1" tidemark images x.rec "${checker[@]}" --knob "$2"
}
knob 'expected one of domain ddio dma_order line_torn iio_in_mhp ack_early flush_covers_send nt_stores commit_word, and =VALUE' ddi=on
knob 'expected one of on off any' ddio=maybe
knob 'recorded already' store_buffer=4
# Each knob of the simulation is taken, or there is a reason.
tidemark list knobs | awk '$1 == "hardware" { print $2 }' >names
grep -qx mutant names || fail 'not the names of knobs'
while read -r name; do
	run 2 tidemark images x.rec "${checker[@]}" --knob "$name=?"
	! grep -q 'expected one of domain' out || fail "nothing is known of the knob $name"
	one_line
done <names
bad 'no PM is in it' tidemark images x.rec "${checker[@]}"
for recording in *.rec; do
	# Other tests have folders of their own there.
	folder=$(head -c 4096 "$recording" | grep -ao '/dev/shm/tidemark-record-[A-Za-z0-9._-]*') || continue
	[ ! -e "$folder" ] || fail "a folder is left: $folder"
done
[ -n "$folder" ] || fail 'no recording says where its folder was'
record full.rec ./log pool 100
run 0 tidemark record --pm pool --out full.rec --room 1048576 -- ./log pool 1
cat >many.c <<'END'
int main(int argc, char **argv)
{
	uint64_t *pool = argc == 2 ? pmem_map_file(argv[1], 8192, PMEM_FILE_CREATE, 0600, NULL, NULL) : NULL;
	for (uint64_t i = 1; pool && i <= 20000; i++) {
		pool[8] = i;
		pmem_persist(pool + 8, 8);
	}
	return !pool;
}
END
compile many -lpmem
rm -f pool
run 0 tidemark record --pm pool --out full.rec --room 1048576 -- ./many pool
says 'it is full'
run 0 tidemark images full.rec --recover 'test 1 -eq 1 #' --most 2
says 'it has no end: it became full, or the disk was'
run 0 tidemark images full.rec --recover 'test 1 -eq 1 #' --most 2 --html full.html
grep -q '"no_end":"it became full, or the disk was' full.html || fail 'the page does not say that it became full'
# What is written past the recorder is not in the recording, and both say so.
cat >past.c <<'END'
/* past POOL none|write: a word is stored, and when the file is no longer mapped a byte of it is written. */
int main(int argc, char **argv)
{
	char *pool = argc == 3 ? pmem_map_file(argv[1], 8192, PMEM_FILE_CREATE, 0600, NULL, NULL) : NULL;
	int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;
	if (!pool || fd < 0)
		return 1;
	memcpy(pool, "a word", 6);
	pmem_persist(pool, 6);
	return strcmp(argv[2], "write") ? 0 : munmap(pool, 8192) || pwrite(fd, "b", 1, 0) != 1;
}
END
compile past -lpmem
record past.rec ./past pool none
run 0 tidemark images past.rec --recover true --json past.json
! grep -q 'not as recorded' out || fail 'what was recorded is not seen'
grep -q '"unseen": 0' past.json || fail 'some of it is not seen'
rm -f pool
run 0 tidemark record --pm pool --out past.rec -- ./past pool write
says 'pool: 1 byte is not as recorded: something wrote to it that is not seen (write(), '
rm -f pool
# A process that is not recorded, and a program that writes where no recording looks any more.
run 0 tidemark record --pm pool --out past.rec -- sh -c './past pool none && unset LD_PRELOAD && printf xyz | dd of=pool bs=1 seek=8000 conv=notrunc status=none'
says 'pool: 3 bytes are not as recorded'
run 0 tidemark images past.rec --recover true --json past.json --html past.html
says 'pool: 3 bytes are not as recorded: something wrote to it that is not seen (write(), '
grep -q '"unseen": 3' past.json || fail 'the JSON does not say how much is not seen'
grep -q '"size":8192,"unseen":"3 bytes are not as recorded' past.html || fail 'the page does not say it'

# No room for a recording at all, and a setting that is refused after it was made: nothing is left.
bad "none with a ':'" tidemark record --pm pool:s --out none.rec -- true
[ ! -e none.rec ] || fail 'a recording without a program is left'
bad 'none.rec: File too large' bash -c 'ulimit -f 512; trap "" XFSZ; exec tidemark record --pm pool --out none.rec -- true'
[ ! -e none.rec ] || fail 'a recording that found no room is left'
if unshare --user --map-root-user --mount bash -c 'mkdir -p disk && mount -t tmpfs -o size=64k none disk' 2>/dev/null; then
	cat >inside.sh <<'END'
mount -t tmpfs -o size=64k none disk
head -c 64K /dev/zero >disk/fill
"$@"
status=$?
ls disk
exit $status
END
	run 2 unshare --user --map-root-user --mount bash inside.sh tidemark record --pm pool --out disk/none.rec -- true
	says 'disk/none.rec: No space left on device'
	! grep -qx none.rec out || fail 'a recording that found no room is left'
fi

# A recording names programs: what is none is not opened, and not waited for.
mv log log.kept
mkfifo log
run 0 timeout 60 tidemark images right.rec "${checker[@]}" --html waits.html
rm log
ln -s /dev/zero log
run 0 timeout 60 tidemark images right.rec "${checker[@]}"
rm log
mv log.kept log

# Nor is what it says has the rest of its debug information, as dwz makes it: by another path than the system's.
mkfifo rest
{ printf 'rest\0' && head -c 20 log; } >altlink
gcc -include "$prelude" -g -gdwarf-4 -O1 -dA -S -o alt.s log.c
sed -i '/(DW_AT_comp_dir)/{n; s/0xe\>/0x1f21/}' alt.s # DW_FORM_GNU_strp_alt: the text is in that file
grep -q 0x1f21 alt.s || fail 'gcc no longer says DW_FORM_strp'
run 0 gcc -c alt.s
run 0 objcopy --add-section .gnu_debugaltlink=altlink alt.o
run 0 gcc -o alt alt.o -lpmem
record alt.rec ./alt pool 1
run 0 timeout 60 tidemark images alt.rec "${checker[@]}"

# A file that becomes longer 20,000 times is not copied so often.
if command -v python3 >/dev/null; then
	python3 - >longer.rec <<'END'
import struct, sys

def record(kind, off, payload):
    return struct.pack('<IIQQIIIIII', kind, 56, off, 0, len(payload), 1, 0, 0, 1, 0) + payload + bytes(8 - len(payload))

records = record(1, 1 << 26, b'/pm/a') + record(2, 0, b'before')
records += b''.join(record(1, (1 << 26) + 64 * i, b'/pm/a') for i in range(1, 20001)) + record(12, 64, b'stored')
head = open('right.rec', 'rb').read(32) + struct.pack('<Q', 4096 + len(records))
sys.stdout.buffer.write(head + bytes(4096 - len(head)) + records)
END
	run 0 timeout 100 tidemark images longer.rec --pmemcheck-log text
	grep -q "REGISTER_FILE;/pm/a;0x[0-9a-f]*;0x$(printf %x $(((1 << 26) + 64 * 20000)));" text || fail 'not as long as it became'
	run 0 tidemark images longer.rec --recover 'grep -qa -m 1 "^before" {}' --most 1 --jobs 1
	rm -f longer.rec
fi

# wrong TEXT SIZE OFFSET BYTES: the recording right.rec, cut to that size, with these bytes there.
wrong() {
	cp right.rec wrong.rec
	[ "$2" = - ] || truncate -s "$2" wrong.rec
	# shellcheck disable=SC2059 # bytes
	[ "$3" = - ] || printf "$4" | dd of=wrong.rec bs=1 seek="$3" conv=notrunc status=none
	bad "$1" tidemark images wrong.rec "${checker[@]}"
}
wrong 'shorter than the head' 100 -
wrong 'it says that it has' 5000 -
wrong 'a recording of format 4, and expected format ' - 22 4
wrong 'pmemcheck' - 0 'XXXX'
sum='are not as they were recorded: their checksum is '
wrong "bytes 4096 to $(($(stat -c %s right.rec) - 1)) $sum" - 4100 '\377\377\377\377'
wrong "$sum" - 4200 '\377'
# In a long recording by several processes the block is named.
cp right.rec short.rec
rm -f pool
run 0 tidemark record --pm pool --out right.rec -q -- sh -c './log pool 120 & for i in 1 2 3 4 5; do ./log pool 120; done; wait'
size=$(stat -c %s right.rec)
[ "$size" -gt 150000 ] || fail 'it has no blocks'
run 0 tidemark images right.rec --pmemcheck-log text
for at in 4200 70000 140000 $((size - 20)); do
	wrong "$sum" - $at '\377\376\375'
done
wrong 'bytes 4096 to ' - 4200 '\377'
! grep -q "to $((size - 1)) " out || fail 'the block is all of it'
wrong 'it says that it has' 70000 -
mv short.rec right.rec
# In a recording that was never brought to its end, what came last has no checksum.
printf '#include <stddef.h>\n#include <stdio.h>\n#include "core/record/format.h"\nint main(void) { printf("%%zu", offsetof(struct record_head, ended)); }\n' >ended.c
compile ended -I"$sources"
printf '\0\0\0\0' | dd of=right.rec bs=1 seek="$(./ended)" conv=notrunc status=none
wrong 'not whole' - 4100 '\377\377\377\377'
wrong 'expected a size that is a multiple' - 4104 '\0\0\0\0\0\2'
wrong 'of kind' - 4096 '\144'
