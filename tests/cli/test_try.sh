#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_try.sh TIDEMARK SOURCES
#
# tidemark try: a program is recorded and judged by one command; what is judged without a word is what came after the first
# acknowledgement; the most telling images of all places come first; a second life finds what reading does not; what became of the
# program, and wrong use.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

# POOL append|early|note|crash|check|more: a pool is made, by stores that are made durable together. An entry is stored, then the
# number of entries; `early`: the number first. `note` says after that where the next entry goes, and `more`, which goes on with the
# work, trusts it: one that is older than the number has an entry overwritten.
cat >entries.c <<'END'
#include "core/record/record.h"
#include <signal.h>
struct word { unsigned long is, pad[7]; };
struct pool { struct word magic, size, number, note, entry[8]; };
static void persist(volatile unsigned long *word, unsigned long value)
{
	*word = value;
	pmem_persist((void *)word, 8);
}
static int check(const struct pool *p)
{
	if (p->magic.is != 0x7469646d || p->size.is != 8)
		return 3; /* not made yet */
	for (unsigned long i = 0; i < p->number.is; i++)
		if (p->entry[i].is != 100 + i)
			return 1;
	return 0;
}
static void append(struct pool *p, const char *how, unsigned long at)
{
	if (!strcmp(how, "early"))
		persist(&p->number.is, at + 1);
	persist(&p->entry[at].is, 100 + at);
	persist(&p->number.is, at + 1);
	if (!strcmp(how, "note"))
		persist(&p->note.is, at + 1);
}
int main(int argc, char **argv)
{
	struct pool *p = argc == 3 ? pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, 0, 0) : 0;
	if (!p)
		return 2;
	if (!strcmp(argv[2], "check"))
		return check(p);
	if (!strcmp(argv[2], "more")) {
		persist(&p->entry[p->note.is].is, 100 + p->number.is);
		persist(&p->number.is, p->number.is + 1);
		return 0;
	}
	p->size.is = 8;
	p->magic.is = 0x7469646d;
	pmem_persist(p, 128);
	for (unsigned long i = 0; i < 4; i++) {
		append(p, argv[2], i);
		tidemark_record_ack();
		if (i == 2 && !strcmp(argv[2], "crash"))
			raise(SIGSEGV);
	}
	return 0;
}
END
compile entries -lpmem -I"$sources"
try() {
	rm -f pool
	tidemark try --pm pool --run "./entries pool $1" --check './entries {} check' --time 1h "${@:2}"
}

# One command says what must not be lost, and what to call next. How a pool is made is not judged without a word.
run 0 try append
says '4 acknowledgements' 'before the first acknowledgement are not judged (--from start judges all)' 'Every image is good.'
! grep -q '^Next' out || fail 'more is to be done'
run 1 tidemark images try.rec --recover './entries {} check' --from start
says 'exit status 3'
run 1 try append -- --from start # what comes after -- is for tidemark images
says 'exit status 3'
for from in ack 20; do
	run 0 tidemark images try.rec --recover './entries {} check' --from $from
done
for from in nowhere call 999; do
	bad "try.rec: --from $from: expected ack, call, start, the number of an event, at most" \
		tidemark images try.rec --recover true --from $from
done

run 1 try early
says '1. exit status 1' 'the power failed before the fence by persist (entries.c:' 'once more: tidemark images try.rec'
again=$(sed -n 's/^ *once more: //p' out | head -n 1) next=$(sed -n 's/^Next, [^:]*: //p' out)
run 1 bash -c "$again"
run 1 bash -c "$next"
[ -s try.html ] || fail 'no page'

# The program goes on with its work: that finds what reading an image back does not.
run 0 try note
run 1 try note --then './entries {} more'
says '1. exit status 1'

# A second life has PM elsewhere, and so has the one after it: an address that is kept there is no good then.
cat >address.c <<'END'
#include "core/record/record.h"
#include <sys/mman.h>
struct pool { struct pool *self; unsigned long number, seen; };
int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
	struct pool *p = ftruncate(fd, 4096) ? 0 : mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	switch (argc == 3 ? argv[1][0] : 0) {
	case 'w': /* at work, on what the first one has made */
		if (!p->self)
			p->self = p;
		p->self->number++; /* or ends by a signal */
		msync(p, 4096, MS_SYNC);
		tidemark_record_ack();
		return 0;
	case 's': /* where is it? */
		p->seen = (unsigned long)p;
		return 0;
	case 'o':
		return p->seen == (unsigned long)p ? 5 : 0;
	}
	return p->number > 1;
}
END
compile address -I"$sources"
rm -f pool
run 1 setarch -R tidemark try --pm pool --run './address work pool' --check './address check' --then './address work' --time 1h
says '1. it was ended by signal 11'
run 0 setarch -R tidemark images try.rec --recover ./address --then './address see' --check './address other'
run 1 setarch -R tidemark images try.rec --recover './address see' --check './address other'
says 'exit status 5'
! grep -q 'a line for a shell' out || fail 'the second life is started by a shell'

# What the program came to.
run 0 try crash
says 'try: the program was ended by signal 11 (Segmentation fault); what it did until then is judged' '3 acknowledgements'
rm -f pool
run 0 tidemark record --pm pool --out said.rec -- ./entries pool append
! grep -q signal out || fail 'a signal of a program that did well'

# Every place is seen to before any is seen to in full: two sections of six lines in flight each.
stores() { for at in 040 080 0c0 100 140 180; do echo "STORE;0x10000$at;$1;1"; done; }
flushes=$(for at in 040 080 0c0 100 140 180; do echo "FLUSH;0x10000$at;0x40"; done)
truncate -s 4096 pool
# shellcheck disable=SC2046,SC2086 # words
log two.log PUT.BEGIN $(stores 1) $flushes FENCE PUT.END GET.BEGIN $(stores 2) $flushes FENCE GET.END STOP
# shellcheck disable=SC2016 # for the checker's shell
run 0 tidemark images -l two.log --pool zero --jobs 1 --recover 'test {} && echo "${TIDEMARK_MARKER:-none}" >>order'
[ "$(wc -l <order)" -gt 128 ] || fail "only $(wc -l <order) images"
[ "$(grep -n GET.BEGIN order | head -n 1 | cut -d: -f1)" -lt 20 ] || fail 'the second section comes late'

# A checker that ends before it opens an image, as nothing was acknowledged, is started once for the others all the same.
cat >late.c <<'END'
int main(int argc, char **argv)
{
	if (!getenv("TIDEMARK_MARKER"))
		return 0;
	return open(argv[argc - 1], O_RDONLY) < 0;
}
END
compile late
run 0 tidemark images -l two.log --pool zero --jobs 1 --recover ./late
! grep -q 'was started for each image' out || fail 'the checker was started for each image'

# Programs of clang and rustc that are linked to gcc's library tell of their stores, too; places have lines in any case, those of
# an intrinsic in Rust's own library that of the call.
cp "$sources/examples/programs/index.c" .
compile index
if command -v clang >/dev/null; then
	clang -g -O1 -fsanitize=thread -c index.c && clang index.o -ltsan -o told || fail 'clang'
	clang -g -O1 index.c -o noticed || fail 'clang'
	for how in told noticed; do
		rm -f pool
		run 1 tidemark try --pm pool --run "./$how pool put 1 5 bug" --check ./index
		says '10 stores, 10 flushes, 5 fences' 'the power failed before the fence by put (index.c:'
	done
	run 1 tidemark try --pm pool --run './told pool put 6 8 bug' --check ./index
	says 'by put (index.c:'
fi
cat >index.rs <<'END'
use std::arch::x86_64::{_mm_clflush, _mm_sfence};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
extern "C" { fn mmap(at: *mut u8, len: usize, prot: i32, flags: i32, fd: i32, off: i64) -> *mut u8; }
#[inline(never)]
fn put(pool: *mut u64, i: usize) {
    unsafe {
        pool.add(8 * (1 + i)).write_volatile(i as u64 + 5); // line 8
        pool.write_volatile(i as u64 + 1);
        _mm_clflush(pool as *const u8); // line 10
        _mm_sfence();
        _mm_clflush(pool.add(8 * (1 + i)) as *const u8);
        _mm_sfence();
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let f = OpenOptions::new().read(true).write(true).create(true).open(&a[1]).unwrap();
    f.set_len(4096).unwrap();
    let pool = unsafe { mmap(std::ptr::null_mut(), 4096, 3, 1, f.as_raw_fd(), 0) } as *mut u64;
    for i in 0..3 {
        if a.len() > 2 {
            put(pool, i);
        } else if unsafe { pool.read_volatile() } > i as u64 && unsafe { pool.add(8 * (1 + i)).read_volatile() } != i as u64 + 5 {
            std::process::exit(1);
        }
    }
}
END
told='-Zsanitizer=thread -Zexternal-clangrt -Cunsafe-allow-abi-mismatch=sanitizer -Clink-arg=-ltsan -Clink-arg=-Wl,--unresolved-symbols=ignore-all'
# shellcheck disable=SC2086 # words
if rustc -g -O -o rust index.rs >out 2>&1 && RUSTC_BOOTSTRAP=1 rustc -g -O $told -o rust-told index.rs >out 2>&1; then
	rm -f pool
	run 1 tidemark try --pm pool --run './rust pool put' --check ./rust
	says 'the power failed before the fence by index::put (index.rs:10)'
	rm -f pool
	run 1 tidemark try --pm pool --run './rust-told pool put' --check ./rust
	says 'by index::put (index.rs:8)'
fi

# Wrong use; a recording of an earlier call is not taken for that of a program that cannot be recorded.
bad 'expected --pm PATH, --run CMD and --check CMD' tidemark try --pm pool --run true
bad '--run ./nothing: No such file or directory; expected a program' tidemark try --pm pool --run ./nothing --check true
bad '--check ./nothing: No such file or directory; expected a program' tidemark try --pm pool --run true --check ./nothing
bad '--then nothing-: no such command in PATH; expected a program' tidemark try --pm pool --run true --check true --then nothing-
rm -f pool try.rec
run 2 tidemark try --pm pool --run true --check true
says 'the program mapped no file that --pm named, shared and to write'
run 2 tidemark try --pm 'a:b' --run true --check true
! grep -q 'images' out || fail 'the recording of another program is judged'
