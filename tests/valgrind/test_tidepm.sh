#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_tidepm.sh TIDEMARK SOURCES: the log that the Valgrind tool beside TIDEMARK writes of small programs has what
# they did to PM, no more and no less, with its places; `tidemark images` tells right ones from wrong ones by it;
# under tidemark record, too.
tool=$(dirname "$(realpath "$1")")/tidemark-valgrind
[ -x "$tool" ] || {
	echo "there is no tidemark-valgrind: the package valgrind was not installed when this was built" >&2
	exit 77
}
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/../cli/own.sh"

cp "$sources"/tests/valgrind/*.c .
gcc -gdwarf-4 -O1 -msse2 -mcx16 -mclflushopt -mclwb -D_GNU_SOURCE -pthread program.c -o program
gcc -O1 replay.c -o replay
cat >check.c <<'C'
#include <stdint.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	uint64_t pool[16] = {0};
	FILE *f = fopen(argv[argc - 1], "r");
	return !f || fread(pool, 128, 1, f) != 1 || (pool[0] == 1 && pool[8] != 42);
}
C
gcc -O1 check.c -o check

# line NAME: of program.c, where its comment says NAME
line() { grep -nF "/* $1 */" program.c | cut -d: -f1; }
# logged CASE [STATUS]: a new pool, and log, of the program's case
logged() {
	rm -f pool log
	run "${2:-0}" "$tool" --pm=pool --pm-log=log "${options[@]}" ./program "$1" pool
}
options=()
# tokens [PATTERN]: of the log, one a line, addresses relative to the first mapping
tokens() {
	local token kind address rest base=
	tr '|' '\n' <log | while IFS= read -r token || [ "$token" ]; do
		IFS=';' read -r kind address rest <<<"$token"
		case $kind in
		REGISTER_FILE)
			IFS=';' read -r address rest <<<"$rest"
			base=${base:-$address}
			;;
		STORE | FLUSH | DEEP_SYNC) ;;
		*)
			echo "$token"
			continue
			;;
		esac
		echo "$kind +$((address - base));$rest"
	done
}
# is EXPECTED: the tokens are these, without START and STOP, and without places
is() {
	[ "$(head -c 6 log)" = 'START|' ] || fail "no START"
	[ "$(tail -c 5 log)" = '|STOP' ] || fail "no STOP"
	tokens | sed '/^START$/d; /^STOP$/d; s/^\(STORE [^;]*;[^;]*;[^;]*\);.*/\1/' >found
	diff <(echo "$1") found >out || fail "expected < and logged > differ"
}
# whole: the stores make the pool
whole() { ./replay log 8192 | cmp - pool >out || fail "the stores of the log do not make the pool"; }
judged() {
	run "$1" tidemark images --log log --pool zero -c prog -p ./check --quiet
}

# --- right and wrong programs

logged right
whole
[ "$(tr -cd '\n' <log)" = '' ] || fail "more than one line"
value="put_value (program.c:$(line VALUE))" flag="put_flag (program.c:$(line FLAG))"
tokens | grep -qF "STORE +64;0x2a;0x8;$value;right (program.c:" || fail "$(tokens)"
tokens | grep -qF "STORE +0;0x1;0x8;$flag;right (program.c:$(line CALLER));main (program.c:" || fail "$(tokens)"
is "REGISTER_FILE +0;0x2000;0x0
STORE +64;0x2a;0x8
FLUSH +64;0x40
FENCE
STORE +0;0x1;0x8
FLUSH +0;0x40
FENCE"
tr '|' '\n' <log | grep -q "^REGISTER_FILE;$PWD/pool;0x" || fail "another path"
judged 0
logged swapped
judged 1
says 'the line in flight is left'
logged unflushed
judged 1
says 'lost: the store of 8 bytes at' "$value"

# --- kinds of stores

logged copies
whole
wide=$(tokens | grep "(program.c:$(line WIDE))" | cut -d';' -f1-3)
[ "$wide" = "STORE +2628;0x6;0x8
STORE +2636;0x7;0x8" ] || fail "a store of 16 bytes: $wide"
tokens | grep -q '^STORE +131;.*;copies (program.c:' || fail "memcpy() without its place"
logged swaps
whole
is "REGISTER_FILE +0;0x2000;0x0
STORE +64;0x6;0x8
STORE +72;0x3;0x1
STORE +80;0x1234;0x2
STORE +96;0x11;0x8
STORE +104;0x22;0x8"
if grep -qw avx2 /proc/cpuinfo; then
	logged masked
	whole
	is "REGISTER_FILE +0;0x2000;0x0
STORE +64;0x7;0x4
STORE +72;0x7;0x4"
fi
printf 'read by name' >name
logged reads
whole
is "REGISTER_FILE +0;0x2000;0x0
STORE +64;0x1;0x8
STORE +129;0x2079622064616572;0x8
STORE +137;0x6d616e;0x3
STORE +64;0x0;0x8"
tokens | grep -q '^STORE +137;.*;reads (program.c:' || fail "a read() without its place"
# A store past the caches is durable after a fence alone.
logged past
whole
judged 0
is "REGISTER_FILE +0;0x2000;0x0
STORE +64;0x2a;0x8
FLUSH +64;0x8
FENCE
STORE +0;0x1;0x8
FLUSH +0;0x40
FENCE
STORE +128;0x101010101010101;0x8
STORE +136;0x101010101010101;0x8
FLUSH +128;0x10
FENCE"

# --- flushes and fences

logged operands
is "REGISTER_FILE +0;0x2000;0x0
FLUSH +0;0x40
FLUSH +64;0x40
FLUSH +192;0x40
FLUSH +256;0x40
FLUSH +320;0x40
FLUSH +384;0x40
FLUSH +4096;0x40
FLUSH +448;0x40
FLUSH +512;0x40
FENCE"
fenced="REGISTER_FILE +0;0x2000;0x0
STORE +64;0x1;0x8
STORE +64;0x2;0x8
FENCE
STORE +64;0x3;0x8
FLUSH +64;0x40"
logged fences
whole
is "$fenced
FENCE"
options=(--locked-fences=no)
logged fences
is "$fenced"
options=()

# --- mappings

truncate -s 8192 other
logged mappings
whole
tokens | sed -n 's/^REGISTER_FILE [^;]*;//p' >found
printf '0x2000;0x0\n0x1000;0x1000\n0x2000;0x0\n' | cmp - found >out || fail "$(cat found)"
[ "$(tokens | grep -c '^STORE')" -eq 5 ] || fail "$(tokens)"
tokens | grep -q '^STORE +4092;0x22222222;0x4;' || fail "a store at the end of a mapping: $(tokens)"
! grep -q FLUSH log || fail "the flush of what is no PM"
logged moved
says 'stores: 0 never flushed'
whole
logged syncs
whole
is "REGISTER_FILE +0;0x2000;0x0
STORE +64;0x1;0x8
DEEP_SYNC +0;0x1000
STORE +64;0x2;0x8
DEEP_SYNC +0;0x2000"

# --- threads

logged threads
whole
words=$(tr '|' '\n' <log | grep -c '^STORE;[^;]*;[^;]*;0x8;thread (')
[ "$words" -ge 25000 ] || fail "a string instruction is not $((250 * 100)) words, but $words"

# --- the process

logged forks
says 'child process ' ': not in ' 'with %p in --pm-log'
[ "$(grep -c 'PM: 2 stores, 1 flush, 1 fence,' out)" -eq 1 ] || fail "the child does not report what it did"
parent="REGISTER_FILE +0;0x2000;0x0
STORE +64;0x1;0x8
STORE +64;0x2;0x8"
is "$parent"
# With a log of its own.
rm -f pool log
run 0 "$tool" --pm=pool --pm-log=log.%p ./program forks pool
[ "$(ls log.* | wc -l)" -eq 2 ] || fail "not two logs: $(ls log.*)"
[ "$(grep -c 'PM: ' out)" -eq 2 ] || fail "not two reports"
child=$(grep -l FLUSH log.*) # the numbers of processes begin anew some day
mv "$child" log
is "REGISTER_FILE +0;0x2000;0x0
STORE +0;0x2;0x8
FLUSH +0;0x40
FENCE
STORE +0;0x3;0x8"
mv log.* log
is "$parent"
logged killed 137
[ "$(tokens | tail -n 1)" = FENCE ] || fail "a killed process: $(tokens)"
judged 0
says 'the program was stopped before its own'
logged aborts 134
is "REGISTER_FILE +0;0x2000;0x0
STORE +64;0x1;0x8"
logged execs
[ "$(tokens | tail -n 1 | cut -c -19)" = 'STORE +64;0x1;0x8;r' ] || fail "another program: $(tokens)"

# --- options, and what is reported

options=(--depth=1)
logged right
tokens | grep -qxF "STORE +64;0x2a;0x8;$value" || fail "a frame too many: $(tokens)"
options=(--depth=2) # frames, also of what is inlined
logged past
tokens | grep -q '^STORE +64;.*;_mm_stream_si64 ([^;]*;past_cache (program.c:[^;]*$' || fail "$(tokens)"
options=(--locked-fences=no)
logged careless
sed 's/^==[0-9]*== *//' out | sed -n '/^stores that were never/,$p' >found
diff - found >out <<END || fail "expected < and reported > differ"
stores that were never flushed:
1
at careless (program.c:$(line LATER))
by main (program.c:$(line RUN))
1
at careless (program.c:$(line NEVER))
by main (program.c:$(line RUN))
stores that were flushed, with no fence after it:
1
at careless (program.c:$(line 'NOT FENCED'))
by main (program.c:$(line RUN))
stores that were overwritten before they were flushed:
1
at careless (program.c:$(line OVERWRITTEN))
by main (program.c:$(line RUN))
flushes of a line that was not stored to since its last flush:
1
$(grep -x 'at _mm_clflush (.*' found)
by careless (program.c:$(line AGAIN))
by main (program.c:$(line RUN))
fences after stores that were not flushed:
1
$(grep -x 'at _mm_sfence (.*' found)
by careless (program.c:$(line ALONE))
by main (program.c:$(line RUN))
stores: 2 never flushed, 1 not fenced, 1 overwritten; 1 flush and 1 fence for nothing
END
options=()
# A locked instruction fences, and it is told of what nothing else did.
logged lock_fence
says 'stores: 0 never flushed, 0 not fenced, 0 overwritten; 0 flushes and 0 fences for nothing'
fenced="REGISTER_FILE +0;0x2000;0x0
STORE +64;0x2a;0x8
FLUSH +64;0x40
FENCE
STORE +0;0x1;0x8
FLUSH +0;0x40
FENCE"
is "$fenced"
logged locks
says 'stores: 0 never flushed, 0 not fenced, 2 fenced by a locked instruction alone, 0 overwritten' \
	'with no fence after it but a locked instruction (--locked-fences=no):' "(program.c:$(line 'BEFORE A LOCK'))" \
	"(program.c:$(line 'AFTER A LOCK'))"
is "$fenced"
options=(--locked-fences=no)
logged locks
says 'stores: 0 never flushed, 2 not fenced, 0 overwritten'
options=()
run 2 "$tool" ./program right pool
says '--pm=FILE is needed'
run 1 "$tool" '--pm=a;b' ./program right pool
says 'has one of | and ;'
run 2 "$tool" --pm=pool --pm-log=none/log ./program right pool
says 'none/log: cannot be created'
# pmemcheck's options.
bad "--log-file=log is for Valgrind's own messages; expected --pm-log=FILE" "$tool" --pm=pool --log-file=log ./program right pool
bad '--log-stores=yes is an option of pmemcheck' "$tool" --pm=pool --log-stores=yes --log-file=log ./program right pool
says '--pm-log=FILE'
run 0 "$tool" --pm=pool --log-file=messages --pm-log=log ./program right pool
grep -q 'stores: 0 never' messages || fail "Valgrind's messages are not in their file"
rm -f pool
run 0 "$tool" --pm=pool ./program right pool
[ "$(echo tidepm.*.log)" != 'tidepm.*.log' ] || fail "no log without --pm-log"

# --- frames of C++

cat >bits.cc <<'C'
#include <fcntl.h>
#include <sys/mman.h>
struct bits { unsigned long value; };
#line 4 "bi;ts.cc"
__attribute__((noinline)) bits &operator|(bits &b, unsigned long more)
{
	b.value |= more;
	return b;
}
int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDWR);
	void *at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*static_cast<bits *>(at) | 4;
}
C
if g++ -gdwarf-4 -O1 -w bits.cc -o bits; then
	truncate -s 0 pool
	truncate -s 4096 pool
	run 0 "$tool" --pm=pool --pm-log=log ./bits pool
	grep -qF ';operator|(bits&, unsigned long) (bi,ts.cc:6);main (bi,ts.cc:13)|STOP' log || fail "$(cat log)"
	judged 0
fi

# --- libpmem

cat >pmem.c <<'C'
#include <libpmem.h>
#include <stdint.h>
int main(int argc, char **argv)
{
	size_t size;
	int is_pmem;
	uint64_t *p = pmem_map_file(argv[argc - 1], 8192, PMEM_FILE_CREATE, 0600, &size, &is_pmem);
	static char much[3000] = {1, 2, 3};
	if (!p || !is_pmem)
		return 9;
	p[8] = 42;
	pmem_persist(p + 8, 8);
	pmem_memcpy_persist(p + 16, much, sizeof(much)); /* past the caches */
	p[0] = 1;
	pmem_persist(p, 8);
	return 0;
}
C
if gcc -gdwarf-4 -O1 pmem.c -o pmem -lpmem 2>/dev/null; then
	rm -f pool log
	run 0 "$tool" --pm=pool --pm-log=log ./pmem pool
	says 'stores: 0 never flushed, 0 not fenced,'
	whole
	judged 0
fi

# --- in a recording: what instructions of the program do, and what RNICs land, in one order

# recorded PROGRAM...: under both; tokens of the recording, without REGISTER_FILE and the callers of a place
recorded() {
	rm -f pool
	run 0 tidemark record --pm pool --out rec -- "$tool" --pm=pool --pm-log=log "$@" pool
	says 'each one, from Valgrind'
	run 0 tidemark images rec --pmemcheck-log text
	tr '|' '\n' <text | grep -v -e START -e STOP -e REGISTER | sed 's/;0x1000/;0x/; s/);.*/)/' >found
}
# flush instructions and fences that are in no library
recorded ./program right
{
	echo "STORE;0x00040;0x2a;0x8;$value"
	printf 'FLUSH;0x00040;0x40\nFENCE\n'
	echo "STORE;0x00000;0x1;0x8;$flag"
	printf 'FLUSH;0x00000;0x40\nFENCE\n'
} >expected
diff expected found >out || fail "expected < and recorded > differ"

# A child process, too.
recorded ./program forks
sed 's/;[^;]*(.*//' found >out
diff - out >differs <<'END' || fail "$(cat differs)"
STORE;0x00040;0x1;0x8
STORE;0x00000;0x2;0x8
FLUSH;0x00000;0x40
FENCE
STORE;0x00000;0x3;0x8
STORE;0x00040;0x2;0x8
END

gcc -gdwarf-4 -O0 "$sources/tests/cli/record_loopback.c" -libverbs -o loopback
recorded ./loopback
[ "$(head -n 1 found)" = "STORE;0x00000;0xc0;0x8;main (record_loopback.c:$(grep -n 'pool\[0\] = 0xc0' "$sources/tests/cli/record_loopback.c" | cut -d: -f1))" ] ||
	fail "$(head -n 1 found)"
[ "$(grep -c 'RDMA WRITE or atomic' found)" -eq 20 ] || fail "$(cat found)"
[ "$(grep -c 'STORE.*;data of a SEND' found)" -eq 1 ] && [ "$(grep -c 'STORE.*;answer to a READ' found)" -eq 1 ] || fail "$(cat found)"
[ "$(grep -c STORE found)" -eq 23 ] || fail "what RNICs landed was a store of the CPU, too: $(cat found)"
