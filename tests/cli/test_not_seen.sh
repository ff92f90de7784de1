#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_not_seen.sh TIDEMARK SOURCES
#
# Flushes and fences that are instructions of the program are seen while they run. What a program does and tidemark record does not
# see is no verdict: such instructions in code that is not known well enough, and names and lengths of its files. tidemark images
# then cannot tell, and where it names a command, that one can.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

# verdict STATUS PROGRAM ARGUMENT... [-- OPTION...]: of the images of a recording of it, with its own mode `check`.
verdict() {
	local status=$1 words=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	rm -rf pool
	run 0 tidemark record -q --pm pool --out rec "${words[@]}"
	run "$status" tidemark images rec --recover "${words[0]} {} check" "$@"
}

# --- instructions ---

cat >log.c <<'END'
/* An entry at 64 and 128, their number at 0; POOL HOW|check. */
#ifdef BARE
/* Nobody says where these begin and end. */
void fence(void);
__asm__(".text\n.type fence,@function\nfence: mfence\nret\n");
#ifdef INLINE
void clean(const void *at);
__asm__(".text\n.type clean,@function\nclean: clflushopt (%rdi)\nret\n");
#endif
#else
static void clean(const void *at) { __asm__ volatile("clflushopt %0" : : "m"(*(const char *)at) : "memory"); }
static void fence(void) { __asm__ volatile("mfence" : : : "memory"); }
#endif
#ifdef INLINE
static void persist(const void *at, const char *how)
{
	static int lock;
	clean(at);
	if (!strcmp(how, "right"))
		fence();
	if (!strcmp(how, "locked"))
		__atomic_fetch_add(&lock, 1, __ATOMIC_SEQ_CST);
}
#elif defined(NONTEMPORAL)
static void persist(long *at, const char *how)
{
	long value = *at;
	__asm__ volatile("movnti %1, %0" : "=m"(*at) : "r"(value));
	if (!strcmp(how, "right"))
		pmem_drain();
}
#elif defined(FENCES)
static void persist(const void *at, const char *how)
{
	if (!strcmp(how, "right"))
		pmem_persist(at, 8);
	else if (strcmp(how, "unflushed") != 0)
		pmem_flush(at, 8);
	fence();
}
#else
static void persist(const void *at, const char *how)
{
	if (!strcmp(how, "right"))
		pmem_persist(at, 8);
}
#endif
/* Looks like "clflush (%rax)", and is none: an operand, and data. */
int looks_like(void);
__asm__(".text\n.globl looks_like\n.type looks_like,@function\nlooks_like: mov $0x38ae0f,%eax\nret\n");
const char data[] = "\x0f\xae\x38\x0f\xae\xf8";

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (argc < 3 || fd < 0 || ftruncate(fd, 4096))
		return 2;
	long *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!strcmp(argv[2], "check"))
		return (pool[0] > 0 && pool[8] != 1) || (pool[0] > 1 && pool[16] != 2);
	pool[32] = looks_like() == data[0];
	pmem_persist(&pool[32], 8);
#ifdef LIBRARY
	void (*of_library)(const void *) = (void (*)(const void *))dlsym(dlopen(LIBRARY, RTLD_NOW), "clean_it");
	of_library(&pool[33]);
#endif
	for (long i = 1; i <= 2; i++) {
		pool[8 * i] = i;
		persist(&pool[8 * i], argv[2]);
		pool[0] = i;
		if (i == 1 || strcmp(argv[2], "right") != 0)
			pmem_persist(pool, 8);
		else
			persist(pool, argv[2]);
	}
	(void)fence;
	return 0;
}
END
unused=-Wno-unused-function
compile log $unused -lpmem
verdict 0 ./log pool right
! grep -q -e 'not recorded' -e 'could not tell' out || fail 'there is nothing that is not recorded'
verdict 1 ./log pool wrong

# seen NAME OPTION...: a program of which all is seen.
seen() {
	run 0 gcc -include "$prelude" -g -O1 $unused -o "$1" "${@:2}" log.c -lpmem
	verdict 0 "./$1" pool right
	! grep -q -e 'not recorded' -e 'could not tell' out || fail "$1: all of it is seen"
}
seen inline -DINLINE
verdict 1 ./inline pool wrong
says 'lost: the store of 8 bytes' 'noticed at clean (log.c:' 'the power failed before the fence by main (log.c:'
verdict 0 ./inline pool locked # such an instruction waits, too
seen past -DNONTEMPORAL
verdict 1 ./past pool wrong
seen fences -DFENCES
verdict 0 ./fences pool flushed
verdict 1 ./fences pool unflushed
# As the tool for Valgrind sees it.
if [ -x "$(dirname "$tidemark")/tidemark-valgrind" ]; then
	ln -s "$(dirname "$tidemark")/tidemark-valgrind" bin
	for case in right:0 wrong:1; do
		rm -f pool
		run 0 tidemark record -q --pm pool --out rec tidemark-valgrind --pm=pool ./inline pool "${case%:*}"
		run "${case#*:}" tidemark images rec --recover './inline {} check'
	done
fi

# Not known well enough.
run 0 gcc -include "$prelude" -g -O1 -DINLINE -DBARE $unused -o bare log.c -lpmem
for how in right wrong; do
	verdict 3 ./bare pool $how -- --json json --junit junit --html html
	says 'not recorded: clflushopt in clean (bare)' 'not recorded: mfence in fence (bare)' \
		'could not tell: the program has instructions that flush'
	grep -q '"doubt": "could not tell' json || fail 'JSON does not say so'
	! grep -q '"in_doubt": false' json || fail 'a cause without a doubt in JSON'
	grep -q '<skipped' junit && ! grep -q '<failure' junit || fail 'JUnit does not say so'
	grep -q '"verdict":"Could not tell' html || fail 'the page does not say so'
	# Whether only the process dies, that has nothing to do with flushes.
	run 0 tidemark images rec --recover './bare {} check' --model kill
	run 0 tidemark images rec --recover './bare {} check' --knob domain=mhp
done
# The one that is named can tell.
if [ -x bin/tidemark-valgrind ]; then
	for case in right:0 wrong:1; do
		verdict 3 ./bare pool "${case%:*}"
		command=$(sed -n 's/.*this records that: \(.*\) PROGRAM$/\1/p' out)
		rm pool
		run 0 bash -c "$command ./bare pool ${case%:*}"
		run "${case#*:}" tidemark images rec --recover './bare {} check'
	done
fi
# Fences alone: the images are those of fewer fences. What none of them loses is not lost.
run 0 gcc -include "$prelude" -g -O1 -DFENCES -DBARE $unused -o barefences log.c -lpmem
verdict 0 ./barefences pool right
says 'not recorded: mfence in '
verdict 1 ./barefences pool unflushed
verdict 3 ./barefences pool flushed
says 'in doubt: exit status 1' 'could not tell: what is lost had been flushed'

# A library of the program's own, which it loads when PM is mapped already, and another process of it.
echo 'void clean_it(const void *p) { __asm__ volatile("clwb %0" : : "m"(*(const char *)p)); }' >clean.c
# Assembly without unwind information, behind data that looks like CLFLUSH.
echo '__asm__(".text\n.byte 0x0f,0xae,0x38,0x06\n.balign 16\n.globl own\n.type own,@function\nown: sfence\nret\n");' >>clean.c
run 0 gcc -g -O1 -shared -fPIC -o clean.so clean.c
run 0 gcc -include "$prelude" -g -O1 "-DLIBRARY=\"$here/clean.so\"" $unused -o loads log.c -lpmem
verdict 3 ./loads pool right
says 'not recorded: clwb in clean_it (clean.c:1)' 'not recorded: sfence in own (clean.so)'
! grep -q 'clflush in' out || fail 'data is no instruction'
run 0 tidemark record -q --pm pool --out rec sh -c './log pool right; ./bare pool right'
run 3 tidemark images rec --recover './log {} check'

# --- each kind of instruction, with operands of each form, in a program that uses the signal itself ---

cat >kinds.c <<'END'
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
static volatile int traps, busy;
static char *p;
static void on_trap(int number) { traps += number == SIGTRAP; }
/* A fence, busy or not. */
__attribute__((noinline)) static void count(void) { __atomic_fetch_add(&busy, 1, __ATOMIC_SEQ_CST); }
static void on_user(int number)
{
	memset(p + 576, number ? 7 : 0, 64);
	__asm__ volatile("clflushopt (%0,%1,8)" : : "r"(p), "r"(576l / 8) : "memory");
	count();
}
static char shadow[64] __attribute__((aligned(64)));
__attribute__((target("clflushopt"))) static void *other(void *at)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	_mm_clflushopt(at);
	_mm_sfence();
	return at;
}
__attribute__((target("avx512f,avx2,clwb,clflushopt"))) int main(int argc, char **argv)
{
	struct sigaction on = {.sa_handler = on_trap}, was;
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (argc < 3 || fd < 0 || ftruncate(fd, 8192))
		return 2;
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!strcmp(argv[2], "check")) {
		for (int i = 0; p[4096] && i < 10 * 64; i += 8)
			if (p[i] != 7)
				return 1;
		return 0;
	}
	signal(SIGTRAP, on_trap);
	sigfillset(&on.sa_mask);
	sigaction(SIGTRAP, &on, &was);
	__asm__ volatile("int3");
	raise(SIGTRAP);
	if (traps != 2 || was.sa_handler != on_trap)
		return 3;
	memset(p + 512, 7, 64);
	_mm_clflush(p + 512);
	while (busy < 10000)
		count();
	on.sa_handler = on_user;
	sigaction(SIGUSR1, &on, NULL);
	raise(SIGUSR1);
	const __m128i seven = _mm_set1_epi8(7);
	memset(p, 7, 64);
	_mm_clwb(p);
	memset(p + 64, 7, 64);
	pthread_t thread;
	pthread_create(&thread, NULL, other, p + 64);
	pthread_join(thread, NULL);
	for (long i = 0; i < 8; i++)
		_mm_stream_si64((long long *)(p + 128) + i, 0x0707070707070707);
	for (long i = 0; i < 4; i++)
		_mm_stream_ps((float *)(p + 192 + 16 * i), _mm_castsi128_ps(seven));
	for (long i = 0; i < 4; i++)
		_mm_stream_si128((__m128i *)(p + 256) + i, seven);
	if (__builtin_cpu_supports("avx2")) {
		_mm256_stream_si256((__m256i *)(p + 320), _mm256_set1_epi8(7));
		_mm256_stream_si256((__m256i *)(p + 352), _mm256_set1_epi8(7));
	} else
		memset(p + 320, 7, 64), _mm_clwb(p + 320);
	if (__builtin_cpu_supports("avx512f"))
		_mm512_stream_si512((__m512i *)(p + 384), _mm512_set1_epi32(0x07070707));
	else
		memset(p + 384, 7, 64), _mm_clwb(p + 384);
	for (long i = 0; i < 4; i++)
		_mm_maskmoveu_si128(seven, _mm_set1_epi8(-1), p + 448 + 16 * i);
	_mm_stream_si64((long long *)shadow, 1); /* relative to the instruction, and no PM */
	if (strcmp(argv[2], "wrong") != 0)
		_mm_sfence();
	p[4096] = 1;
	_mm_clwb(p + 4096);
	_mm_mfence();
	return shadow[0] != 1 || busy != 10001;
}
END
compile kinds -pthread
verdict 0 ./kinds pool right
says ', 5 fences'
! grep -q 'not recorded' out || fail 'all of it is seen'
verdict 1 ./kinds pool wrong

# --- names and lengths ---

cat >names.c <<'END'
static long *map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, 8192))
		exit(2);
	long *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return at;
}

/* a value, and then the same at another place; FOLDER HOW|check */
int main(int argc, char **argv)
{
	long both[16] = {0};
	FILE *f;
	if (argc < 3)
		return 2;
	if (!strcmp(argv[2], "check")) {
		f = fopen(argv[1], "r");
		return !f || !fread(both, sizeof(both), 1, f) || both[8] > both[0];
	}
	if (chdir(argv[1]))
		return 2;
	/* Before it is mapped, nothing is lost. */
	f = fopen("data", "w");
	fputs("x", f);
	fclose(f);
	rename("data", "other");
	unlink("other");
	long *data = map("data");
	if (strstr(argv[2], "-bug-before")) {
		data[8] = 1;
		pmem_persist(&data[8], 8);
	}
	data[0] = 1;
	pmem_persist(data, 8);
	int fd = open("data", O_RDWR);
	if (!strncmp(argv[2], "rename", 6))
		rename("data", "new");
	else if (!strcmp(argv[2], "replace"))
		fclose(fopen("tmp", "w")), rename("tmp", "data");
	else if (!strcmp(argv[2], "unlink"))
		remove("data");
	else if (!strcmp(argv[2], "link"))
		linkat(AT_FDCWD, "data", AT_FDCWD, "new", 0);
	else if (!strcmp(argv[2], "cut"))
		ftruncate(fd, 4096);
	else if (!strcmp(argv[2], "empty"))
		fclose(fopen("data", "w")), truncate("data", 8192);
	else if (!strcmp(argv[2], "open"))
		close(open("data", O_RDWR | O_TRUNC)), ftruncate(fd, 8192);
	else if (!strcmp(argv[2], "folder"))
		rename("../pool", "../pool.1"), rename("../pool.1", "../pool");
	else if (!strcmp(argv[2], "longer"))
		ftruncate(fd, 16384), posix_fallocate(fd, 16384, 4096), rename("none", "data");
	else if (!strcmp(argv[2], "unmapped"))
		fclose(fopen("tmp", "w")), rename("tmp", "MANIFEST"), unlink("MANIFEST");
	else if (!strcmp(argv[2], "elsewhere"))
		fclose(fopen("../tmp", "w")), rename("../tmp", "../tmp.1"), unlink("../tmp.1");
	if (strstr(argv[2], "-bug-after")) {
		data[0] = 0;
		pmem_persist(data, 8);
		data[8] = 1;
		pmem_persist(&data[8], 8);
	}
	data[8] = data[0];
	pmem_persist(&data[8], 8);
	return 0;
}
END
compile names -Wno-unused-result -lpmem
# names STATUS HOW: in a folder of its own.
names() {
	rm -rf pool
	mkdir pool
	run 0 tidemark record -q --pm pool --out rec ./names pool "$2"
	run "$1" tidemark images rec --recover './names {} check'
}
names 0 nothing
! grep -q 'not judged' out || fail 'nothing happened'
for how in rename:'is renamed to new by main (names.c:' replace:'is replaced by tmp' unlink:'is unlinked' link:'is linked as new' \
	cut:'is cut to 4096 bytes' empty:'is cut to 0 bytes' open:'is cut to 0 bytes' folder:'is renamed to ../pool.1'; do
	names 3 "${how%%:*}"
	says "not judged: $here/pool" "${how#*:}" 'could not tell: what a power failure leaves of names'
done
names 0 longer
! grep -q 'not judged' out || fail 'to become longer is nothing'
# What was never mapped is not judged at all, and is no reason to doubt what is.
names 0 unmapped
says 'not judged: ' 'pool/tmp is renamed to MANIFEST'
names 0 elsewhere
! grep -q 'not judged' out || fail 'files elsewhere are of no interest'
# What is bad before that is bad.
names 1 rename-bug-before
names 3 rename-bug-after
says 'in doubt: '
# Another program does it.
rm -rf pool
mkdir pool
run 0 tidemark record --pm pool --out rec sh -c './names pool nothing; mv pool/data pool/moved; rm pool/moved'
says 'names or lengths of files of PM changed'
run 3 tidemark images rec --recover './names {} check'
says 'pool/data is renamed to ' 'pool/moved is unlinked'

# --- intrinsics that tidemark cc has compiled are told ---

cat >told.c <<'END'
#include <fcntl.h>
#include <immintrin.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int fences;
static void persist(const void *at)
{
	_mm_clflushopt((void *)at);
	if (fences)
		_mm_sfence();
}
int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (argc < 3 || fd < 0 || ftruncate(fd, 4096))
		return 2;
	long long *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!strcmp(argv[2], "check"))
		return pool[0] && (pool[8] != 1 || pool[16] != 2);
	fences = strcmp(argv[2], "wrong") != 0;
	pool[8] = 1;
	persist(&pool[8]);
	_mm_stream_si64(&pool[16], 2);
	if (fences && strcmp(argv[2], "streams") != 0)
		_mm_sfence();
	_mm_pause();
	pool[0] = 1;
	_mm_clflush(&pool[0]);
	_mm_mfence();
	return 0;
}
END
told() {
	verdict "$1" ./told pool "$2"
	! grep -q -e 'not recorded' -e 'could not tell' out || fail 'all of it is told'
}
for compiler in clang gcc; do
	command -v $compiler >/dev/null || continue
	TIDEMARK_CC=$compiler run 0 tidemark cc -g -mclflushopt -Wall -Wextra -Werror -o told told.c
	run 0 ./told alone right
	run 0 ./told alone check
done
told 0 right
says '3 stores, 3 flushes, 4 fences'
told 1 wrong
told 1 streams
says 'lost: the store of 8 bytes' 'at main (told.c:25)'
run 1 tidemark images rec --recover './told {} check' --knob domain=mhp --knob nt_stores=buffered
# Its objects may have such names themselves, and be C++.
echo 'extern "C" int sim_sfence() { return 0; } int main() { return sim_sfence(); }' >own.cc
run 0 tidemark c++ -o own own.cc
run 0 ./own
