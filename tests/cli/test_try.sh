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
next=$(sed -n 's/^Next, [^:]*: //p' out)
case $next in 'tidemark images try.rec --recover '*' --knob line_torn=any') ;; *) fail "next: $next" ;; esac
run 0 bash -c "$next"
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

# What the program came to.
run 0 try crash
says 'try.rec: the program was ended by signal 11' 'ended with status 139; what it did until then is judged' '3 acknowledgements'
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

# Wrong use; a recording of an earlier call is not taken for that of a program that cannot be recorded.
bad 'expected --pm PATH, --run CMD and --check CMD' tidemark try --pm pool --run true
run 2 tidemark try --pm 'a:b' --run true --check true
! grep -q 'images' out || fail 'the recording of another program is judged'
