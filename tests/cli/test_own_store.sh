#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_own_store.sh TIDEMARK SOURCES
#
# A store outside the tree: what new-store makes keeps its promises, and breaks them when a line is taken away; static and
# thread-local data are each simulated host's own; a call that Tidemark does not know fails the link, at its line; a store of
# the tree behaves alike as a shared object; wrong objects are told in one line.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
few=(--runs 40 --states 800 -q)

# --- from new-store to a trace ---

run 0 tidemark new-store mine
cd mine
run 0 make crashtest ARGS="${few[*]} --no-traces"
says 'Everything that was tried is as expected'
run 0 tidemark mutants ./mine.so
says 'found 1 of 1'
run 0 tidemark list bugs ./mine.so
says flag_only
run 0 tidemark times --contracts ./mine.so
grep -q '^. . mine .*  p   p   p   p   p' out || fail "its promises are not in the table"
grep -q '^. . farm .*  [.]   [.]   [.]   [.]   [.]' out || fail "it is alone in the table"
cp mine.c whole.c
sed -i 's|^\t\tpmem_persist(r, record_bytes.*|\t\t;|' mine.c
run 2 make quick
says 'A PROMISE IS BROKEN' 'written to traces: ' mine-RDA.trace
! grep -q older out || fail "there was nothing before"
run 1 tidemark replay traces/mine-RDA.trace
line=$(grep -n 'memcpy(r->value' mine.c | cut -d: -f1)
says 'broken RDA' "mine.c:$line"
grep -q '^store mine ./mine.so$' traces/mine-RDA.trace || fail "the trace does not name the object"

# Traces of before stay, and are told from those of this campaign.
broken=$(find traces -name 'mine-*.trace' | wc -l)
touch traces/other-RDA.trace
# Where it was compiled, and what its comments say, is not a part of its build.
mkdir comment
{ echo '/* a comment */' && cat mine.c; } >comment/mine.c
for source in mine.c comment/mine.c; do
	run 0 tidemark cc -g -o mine.so $source
	run 0 tidemark shrink -q -o again.trace traces/mine-RDA.trace
	grep '^build [0-9a-f]*$' again.trace || fail "it is not in the trace"
done | uniq >builds
[ "$(wc -l <builds)" -eq 1 ] || fail "the same store is another build"
run 0 tidemark cc -g -o mine.so whole.c
anew='./mine.so was built anew since the trace was recorded'
run 4 tidemark replay -q traces/mine-RDA.trace
says "fixed: RDA is not broken any more; $anew"
one_line
run 4 tidemark shrink -q traces/mine-RDA.trace
says "fixed, nothing to shrink; $anew"
sed 's/power before fence [0-9]*/power before fence 99/' traces/mine-RDA.trace >again.trace
bad 'this deviation does not apply' tidemark replay -q again.trace
says "power before fence 99: fails; $anew"
sed 's/^variant default/variant other/' traces/mine-RDA.trace >again.trace
bad 'again.trace:4: variant' tidemark replay -q again.trace
says "; $anew"
sed '/^build /d' traces/mine-RDA.trace >again.trace
run 4 tidemark replay -q again.trace
! grep -q 'built anew' out || fail "nobody knows that"
rm again.trace builds
run 0 tidemark crashtest ./mine.so "${few[@]}"
says '0 traces written to traces' "$broken older trace" 'of an earlier campaign: ' mine-RDA.trace
! grep -q other-RDA out || fail "a trace of another store is counted"
[ -e traces/mine-RDA.trace ] || fail "it was deleted"

# --- a store that does not start ---

# variant NAME WHAT: the store as the sed script changes it.
inlined mine.c >served.c
variant() {
	sed "$2" served.c >"$1.c"
	cmp -s served.c "$1.c" && fail "$1: the skeleton is another one"
	run 0 tidemark cc -g -o "$1.so" "$1.c"
}
# line NAME TEXT: where it stands, "NAME.c:LINE".
line() { echo "$1.c:$(grep -n -m1 -F -- "$2" "$1.c" | cut -d: -f1)"; }

# Which of its functions failed, with which error; which call had failed in there, and where it stands.
variant serves 's/peers \* bytes, IBV_ACCESS_LOCAL_WRITE/peers * bytes, IBV_ACCESS_REMOTE_WRITE/'
run 1 tidemark crashtest ./serves.so "${few[@]}"
says 'serve() returns EINVAL' "ibv_reg_mr: EINVAL ($(line serves 's->mr = ibv_reg_mr'))" 'tidemark replay traces/mine-OK.trace'
run 1 tidemark replay traces/mine-OK.trace
says 'the load phase' 'ibv_reg_mr fails: EINVAL' "$(line serves 's->mr = ibv_reg_mr')" 'broken OK'
run 1 tidemark replay -q traces/mine-OK.trace
one_line
run 2 tidemark replay -q --html page.html traces/mine-OK.trace
[ ! -e page.html ] || fail "a page was made of a load phase"
variant opens 's/IBV_QP_RETRY_CNT |//'
run 1 tidemark crashtest ./opens.so "${few[@]}" --no-traces
says 'open() returns EINVAL' 'ibv_modify_qp: EINVAL (opens.c:'
variant puts 's/c->mr->lkey/c->mr->lkey + 1/'
run 1 tidemark crashtest ./puts.so "${few[@]}" --no-traces
says 'put() returns EIO' "ibv_poll_cq: local protection error ($(line puts 'ibv_poll_cq(c->cq'))"
# Where it does not start without the seeded bug either, it cannot be told.
run 3 tidemark mutants ./puts.so --states 2000 -q
says 'CANNOT TELL: without the bug OK breaks, too'
variant posts 's/cap\.max_send_wr = 4/cap.max_send_wr = 0/'
run 1 tidemark crashtest ./posts.so "${few[@]}" --no-traces
says 'put() returns EIO' "ibv_post_send: ENOMEM ($(line posts 'ibv_post_send'))"
# Nothing failed in there: then there is no more to say.
variant formats 's/^static int format(.*/&\n{\n\t(void)env;\n\treturn -EBADF;\n}\nint unused(const struct tm_env *env);\nint unused(const struct tm_env *env)/'
run 1 tidemark crashtest ./formats.so "${few[@]}" --no-traces
says 'format() returns EBADF'
! grep -q 'the last call' out || fail "a call is blamed that did not fail"
# What is waited for was never sent, to a client whose process has died and come again: that one is not dead.
comes_again() {
	cat >again.trace <<-END
		tidemark-trace 1
		store mine ./$1.so
		keys k1 8
		client 1: put k1 8, put k1 8
		deviate c1 c1.put1 before post 1: process dies
		broken LIVE: client 1's operation does not terminate
	END
	run 1 tidemark replay again.trace
	says 'broken LIVE' 'it takes this to happen: c1 c1.put1 before post 1: process dies'
	! grep -q 'which is dead' out || fail "the client is not dead"
}
variant unsent 's/^static inline struct ibv_qp \*serve_create_qp(/static uint32_t sends = 4;\n&/; s/cap\.max_send_wr = 4/cap.max_send_wr = sends/
	s/^\tpeer->qp = serve_create_qp(/\tsends = peer->connects > 1 ? 0 : 4;\n&/; s/^\t\t\tserve_drop(peer, client);/\t\t\t;/'
comes_again unsent
says "never sent, by server/server for client 1's 2nd PUT k1 ($(line unsent 'return -ibv_post_send'))" 'ibv_post_send fails: ENOMEM'
# No call fails: the second process gets no answer.
variant silent 's/^\tif (connects != peer->connects)$/\tif (connects != peer->connects || connects > 1)/'
comes_again silent
# An object that is used although it was destroyed: a fault, at its line.
variant destroys 's/^\treturn call(client, PUT.*/\tibv_destroy_qp(((struct serve_client *)client)->qp);\n&/'
run 1 tidemark crashtest ./destroys.so "${few[@]}" --no-traces
says "ibv_post_recv() with a queue pair that was destroyed in the store's code ($(line destroys 'return -ibv_post_recv'))"
variant twice 's/^\tint rc = rt_listen(.*/\tibv_dereg_mr(s->mr);\n\tibv_dereg_mr(s->mr);\n&/'
run 1 tidemark crashtest ./twice.so "${few[@]}" --no-traces
says "ibv_dereg_mr() with a memory region that was destroyed in the store's code (twice.c:$(grep -n 'ibv_dereg_mr' twice.c | tail -n 1 | cut -d: -f1))"
# The trace replays until the store starts, and says so then.
sed -i 's/serves\.so/mine.so/' traces/mine-OK.trace
run 4 tidemark replay -q traces/mine-OK.trace
says fixed
rm traces/mine-OK.trace
bad '' tidemark new-store ../mine
bad '' tidemark new-store Mine
cd ..
bad '' tidemark new-store mine
# Wherever a name stands for a store, this would be the one that is built in.
bad 'Tidemark has a store "efactory"' tidemark new-store efactory --cxx
[ ! -e efactory ] || fail "it was made all the same"
for word in 9lives my-store _mine int.c ''; do
	bad '' tidemark new-store "$word"
done
run 0 tidemark new-store minecc --cxx
run 0 make -C minecc
run 0 tidemark crashtest minecc/minecc.so "${few[@]}" --no-traces
says 'Everything that was tried is as expected'
run 0 tidemark crashtest minecc/minecc.so --runs 10 --states 200 --no-traces --doublecheck
run 0 tidemark mutants minecc/minecc.so
says 'found 1 of 1'
# Two servers: what one acknowledges before the other has it, is lost with the one.
mkdir pairs
for compiler in gcc clang; do
	command -v $compiler >/dev/null || continue
	run 0 tidemark new-store pair --servers 2
	run 0 env TIDEMARK_CC=$compiler make -C pair CFLAGS='-g -Wall -Wextra -Werror'
	run 0 make -C pair crashtest ARGS="--runs 12 --states 60 -q --no-traces --json ../pairs/$compiler.json"
	says 'Everything that was tried is as expected'
	grep -q '"contract": "DURN"' pairs/$compiler.json || fail "$compiler: DURN is not judged"
	rm -rf two && mv pair two
done
run 0 make -C two bugs
says 'found 2 of 2'
[ ! -e pairs/clang.json ] || same pairs/gcc.json pairs/clang.json || fail "gcc's and clang's stores of two servers differ"
run 0 tidemark crashtest two/pair.so --runs 10 --states 200 --no-traces --doublecheck
run 1 tidemark crashtest two/pair.so --variant copy_later --knob domain=dmp --workload ww --fail-fast --runs 2000 --states 1
says 'pair-copy_later-DURN.trace'
run 1 tidemark replay -q traces/pair-copy_later-DURN.trace
rm -r two pairs traces
bad 'expected 1 or 2' tidemark new-store three --servers 3
bad 'expected a number' tidemark new-store three --servers
bad 'made in C' tidemark new-store three --servers 2 --cxx
[ ! -e three ] || fail "it was made all the same"
# The server is a thread, its clients are under a lock, and it works all the same.
inlined minecc/minecc.cc >served.cc
sed -e 's/^#include <new>/&\n#include <mutex>\n#include <thread>\nstatic std::mutex lock;/' \
	-e 's/^\tstruct serve_peer \*peer = &s->peer\[theirs->client\];/\tstd::lock_guard<std::mutex> guard(lock);\n&/' \
	-e 's/rt_spawn("server".*/(std::thread(serve_main, s).detach(), 0);/' served.cc >minecc/minecc.cc
grep -q 'std::thread(' minecc/minecc.cc && grep -q 'guard(lock)' minecc/minecc.cc || fail "the skeleton is another one"
run 0 make -C minecc
run 0 tidemark crashtest minecc/minecc.so "${few[@]}" --no-traces
says 'Everything that was tried is as expected'

# --- limits ---

# limits KEYS LENGTH: the store with these, which it insists on.
limits() {
	sed -e "s/^\t\.knobs = knobs,/\t.max_keys = $1,\n\t.max_vlen = $2,\n&/" -e "/^static int put(/{n;s/{/&\n\tif (vlen > $2)\n\t\treturn -EMSGSIZE;/}" mine/mine.c >limits.c
	grep -q EMSGSIZE limits.c && grep -q max_keys limits.c || fail "the skeleton is another one"
	run 0 tidemark cc -g -o limits.so limits.c
}
run 0 tidemark cc -g -o mine/mine.so mine/whole.c
cp mine/whole.c mine/mine.c
limits 6 100
run 0 tidemark crashtest ./limits.so --runs 2 --states 40 -q --no-traces --json limits.json
says 'mine: 4 of 87 workloads were not run: 4 are within' 'Nothing needs attention'
[ "$(grep -c '"workloads_not_run": 4,' limits.json)" -eq 70 ] || fail "not in each cell but those of lengths"
run 0 tidemark crashtest ./limits.so --runs 2 --states 40 -q --no-traces --workload ycsb-a --workload w.1500
limits 2 8
run 0 tidemark crashtest ./limits.so --runs 2 --states 40 -q --no-traces
says 'workloads were not run: 3 need more than 2 keys, ' 'Nothing needs attention'
bad 'workload new-w1w3w2: mine takes at most 2 keys' tidemark crashtest ./limits.so --no-traces --workload new-w1w3w2
echo '1 put k1 9' >nine.ops
bad 'mine takes values of 0 to 8 bytes' tidemark crashtest ./limits.so --no-traces --ops nine.ops

# --- a seeded bug in a store that breaks the same contract ---

# It flushes nothing. With the bug the flag is not even set, which caches that are durable do not mend.
sed -e '/== PERSIST_BOTH)$/{N;d}' -e '/pmem_persist(&r->used/d' -e 's/TM_BIT(TM_RDA) | TM_BIT(TM_DUR)}/TM_BIT(TM_DUR)}/' \
	-e 's/^\tr->used = 1;/\tr->used = s->env.params->knob[KNOB_PERSIST] == PERSIST_BOTH;/' mine/whole.c >weak.c
run 0 tidemark cc -g -o weak.so weak.c
run 3 tidemark mutants ./weak.so --states 2000 -q --json weak.json
says 'CANNOT TELL: without the bug DUR breaks, too' 'found 0 of 1, cannot tell of 1' 'Of 1 bug nobody can tell'
grep -q '"breaks_anyway": "DUR"' weak.json || fail "not in the results"
run 0 tidemark mutants ./weak.so --states 2000 -q --knob domain=wsp --variant flag_only
says 'found 1 of 1'
bad 'no seeded bug "other"' tidemark mutants ./weak.so --variant other
bad '' tidemark mutants ./weak.so --knob domain=deep
# It says what it breaks, and for which causes: the bug's is another one.
printf '* %s broken nothing is flushed\n' RDA DUR BUF MONO KEEP NORES FSCK >weak.expected.txt
run 0 tidemark crashtest ./weak.so --runs 100 --states 2000 -q --no-traces --causes weak.causes.txt
run 0 tidemark mutants ./weak.so --states 20000 -q
says 'found 1 of 1'

# --- why a seeded bug of an example breaks its promise ---

# The flag is stored before what it announces: it is that store which is named, not only the flush that comes too late.
mkdir slots
cp "$sources"/examples/slots/slots.c slots
cd slots
run 0 tidemark cc -g -o slots.so slots.c
cat >first.trace <<-END
	tidemark-trace 1
	store slots ./slots.so
	variant flag_first
	keys k10 8, k16 8, k1 -
	client 1: put k1 8
	client 2: get k1
	deviate server/server c1.put1 before flush 1: delay 2us
	deviate c2 c2.get1 power after return 1: fails
	deviate line table+0x140: version 0 of 1
	broken MONO: client 2 read c1.put1; then a reader after recovery found nothing at k1
END
run 1 tidemark replay first.trace
tr -s ' \n' ' ' <out >words
mv words out
line=$(grep -n -A 1 'bug == BUG_FLAG_FIRST' slots.c | tail -n 1 | cut -d- -f1)
says "With bug=flag_first update() then stores table+0x18..0x1f (slots.c:$line), with bug=none it stores table+0x108..0x10f (slots.c:$((line + 1)))"
cd ..

# --- a promise for some hardware ---

mkdir onesided
cp "$sources"/examples/onesided/* onesided
cd onesided
run 0 tidemark cc -g -o onesided.so onesided.c
small=(crashtest ./onesided.so --runs 30 --states 400 -q --no-traces)
run 0 tidemark "${small[@]}"
says 'Everything that was tried is as expected'
# Nothing is said of other hardware: there a promise is a promise, and with DDIO it is not, whatever else there is.
echo 'if ddio=on+domain=dmp  DUR,BUF,MONO,LIN  broken  so it is' >onesided.expected.txt
for knob in read_order=right line_torn=prefix; do
	run 0 tidemark "${small[@]}" --variant no_read --knob $knob
	run 1 tidemark "${small[@]}" --variant no_read --knob $knob --knob ddio=off
	says 'onesided no_read (' 'A PROMISE IS BROKEN'
done
# Without it: what is one thing is told once, with where it holds.
mv onesided.expected.txt rows
run 1 tidemark "${small[@]}"
says 'A PROMISE IS BROKEN, holds on: ddio=off, domain=mhp, domain=wsp' 'expected.txt can say it (docs/one-sided.md)' '  if ddio=on+domain=dmp  DUR'
[ "$(grep -c 'A PROMISE IS BROKEN' out)" -le 3 ] || fail "one thing is told more than once"
for row in 'if ddio=maybe  DUR  broken  why' 'if DUR broken why' 'if ddio=on  DUR,XYZ  broken  why' 'if ddio=on  DUR  broken' 'if ddio=on+  DUR  broken  why'; do
	echo "$row" >onesided.expected.txt
	run 70 tidemark "${small[@]}" --workload w
	one_line
	says 'onesided.expected.txt:1'
done
cd ..

# --- the same for real, on the soft RNIC

run 0 tidemark new-store real --cxx
run 0 make -C real
run 0 "$sources/tests/core/live/test_live_smoke.sh" "$tidemark" real/real.so
run 0 tidemark ablate real/real.so --runs 30 --states 500
says '6 places: 6 needed'
bad 'nowhere.live.so: No such file' tidemark serve ./nowhere.so --pm pool

# --- each host has its own static data, fresh when its process begins ---

# Its server keeps its place in the log in static data, and serves once in a process; its clients count what they send: with
# what another host, or an earlier process, left there nothing would be right.
sed -e 's/^static const struct record .find(/static size_t records;\nstatic __thread uint32_t sent = 7;\n&/' -e 's/s->records/records/g' \
	-e 's/^\tsize_t records;.*//' -e 's/^static int serve(.*/static int served;\n&/' \
	-e 's/^\ts->env = \*env;/&\n\tif (served++)\n\t\treturn -EALREADY;/' -e 's/^\tm->op = op;/&\n\tif (sent < 7 || sent++ > 7 + 200)\n\t\treturn -EPROTO;/' \
	"$sources/scripts/sdk/new/store.c" | sed 's/NAME/statics/g' >statics.c
for compiler in gcc clang; do
	command -v $compiler >/dev/null || continue
	TIDEMARK_CC=$compiler run 0 tidemark cc -g -Wall -Wextra -Werror -o statics.so statics.c
	run 0 tidemark crashtest ./statics.so "${few[@]}" --no-traces --json $compiler.json
	says 'Everything that was tried is as expected'
done
[ ! -e clang.json ] || same gcc.json clang.json || fail "gcc's and clang's stores differ"
run 0 tidemark crashtest ./statics.so "${few[@]}" --no-traces --doublecheck

# --- the same store in the tree and as an object ---

stores=$sources/core/stores
# shellcheck disable=SC2046 # one word or none
run 0 tidemark cc $(verbs_flags) -I"$sources" -o pilaf.so "$stores"/pilaf/*.c "$stores"/kv*.c "$stores"/rpc*.c
run 0 tidemark crashtest pilaf "${few[@]}" --no-traces --json tree.json
run 0 tidemark crashtest ./pilaf.so "${few[@]}" --no-traces --json object.json
same tree.json object.json || fail "pilaf is another one as a shared object"

# --- a call that Tidemark does not know ---

cat >unknown.c <<-'END'
	#include <sys/socket.h>
	#include <tidemark/tidemark.h>
	int open_one(void);
	int open_one(void)
	{
		return socket(AF_INET, SOCK_STREAM, 0);
	}
	const struct tm_store unknown_store = {.name = "unknown"};
END
run 1 tidemark cc -g -o unknown.so unknown.c
says 'unknown.c:6: error: socket is ' 'unknown to Tidemark'
one_line
[ ! -e unknown.so ] || fail "it was linked all the same"

# --- code that another compiler made ---

echo 'void fill(char *at); void fill(char *at) { *at = 1; }' >other.c
"${CC:-gcc}" -c -o other.o other.c
ar rcs libother.a other.o
run 1 tidemark cc -g -o other.so unknown.c other.o
says 'other.o: error: Tidemark would not see what it does'
one_line
run 1 tidemark cc -g -o other.so unknown.c -L. -lother
says 'libother.a:other.o: error: Tidemark would not see'
one_line
run 1 tidemark cc -g -o other.so unknown.c -lnowhere
says '-lnowhere: there is no libnowhere.a'
one_line
run 0 tidemark cc -c -o other.o other.c
rm libother.a
ar rcs libother.a other.o
cp mine/mine.c with.c
sed -i -e 's/^static int put(.*/void fill(char *at);\n&/' -e 's/^\treturn call(client, PUT.*/\tchar one;\n\tfill(\&one);\n&/' with.c
run 0 tidemark cc -g -o with.so with.c -L. -lother

# --- an instruction that it does not see ---

cat >asm.c <<-'END'
	#include <tidemark/tidemark.h>
	void flush_one(void *p);
	void flush_one(void *p)
	{
		__asm__ volatile("clflush %0" : "+m"(*(volatile char *)p));
	}
	const struct tm_store asm_store = {.name = "asm"};
END
run 1 tidemark cc -g -o asm.so asm.c
says 'asm.c:5: error: the instruction clflush'
one_line

# --- wrong objects ---

cat >bad.c <<-'END'
	#include <tidemark/tidemark.h>
	const struct tm_store bad_store = {.name = "bad", .what = "nothing", .promises = 1};
END
run 0 tidemark cc -o bad.so bad.c
bad 'a function of the server is missing' tidemark crashtest ./bad.so
bad './nowhere.so: No such file' tidemark crashtest ./nowhere.so
head -c 3000 pilaf.so >cut.so
bad "not a whole shared object" tidemark crashtest cut.so
echo 'int x;' | "${CC:-gcc}" -shared -fPIC -x c -o plain.so -
bad 'expected an object that tidemark cc has linked' tidemark crashtest ./plain.so
# The half for real hardware, by whatever name; and the other one where that is wanted.
for command in crashtest fuzz ablate count times mutants 'list bugs' replay shrink; do
	# shellcheck disable=SC2086 # two words
	bad 'mine/mine.live.so: a store for real hardware (tidemark serve); expected the one for crash tests, mine/mine.so' tidemark $command mine/mine.live.so
done
cp mine/mine.live.so half.so
run 2 tidemark crashtest half.so
says 'expected the one for crash tests, NAME.so'
cp mine/mine.so half.live.so
bad 'half.live.so: a store for crash tests, not for real hardware' tidemark serve half.so --pm pool
echo 'int x;' >none.c
bad 'found 0' tidemark cc -o none.so none.c
echo "own store: ok"
