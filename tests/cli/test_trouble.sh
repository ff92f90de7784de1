#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_trouble.sh TIDEMARK SOURCES
#
# Stores that do not work at all: each contract is judged in each state, whatever else is wrong in it.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
few=(--runs 40 --states 800 -q)
template=$sources/scripts/sdk/new/store.c

# variant NAME SED...: the store as new-store makes it, but for what the sed script changes.
variant() {
	local name=$1
	shift
	inlined "$template" | sed "s/NAME/$name/g" >whole.c
	sed "$@" whole.c >"$name.c"
	cmp -s whole.c "$name.c" && fail "$name: the skeleton is another one"
	run 0 tidemark cc -g -o "$name.so" "$name.c"
}

# --- states in which the structural check complains, and a GET never returns ---

variant waits -e '/KNOB_PERSIST. == PERSIST_BOTH/,+1d' -e 's/^\tuint32_t used;/\tuint32_t used, apart[15];/' -e 's/^\tfor (size_t i = s->records; i-- > 0;) {$/&\n\t\twhile (!record_at(\&s->env, i)->klen)\n\t\t\trt_yield();/' \
	-e 's/if (r->used != 1 ||/if (r->used != 1 || !r->klen ||/'
run 1 tidemark crashtest ./waits.so "${few[@]}" --workload w --json all.json
says 'waits FSCK' 'waits LIVE' 'waits DUR' 'waits KEEP'
# One is what the other is.
states() { tr -d '\n' <all.json | grep -o "\"contract\": \"$1\", [^}]*\"broken_states\": [0-9]*" | sed 's/.* //'; }
[ "$(states LIVE)" -gt 0 ] || fail "LIVE breaks in no state"
[ "$(states LIVE)" = "$(states FSCK)" ] || fail "LIVE breaks in $(states LIVE) states, FSCK in $(states FSCK)"
for contract in FSCK LIVE DUR KEEP; do
	run 1 tidemark replay traces/waits-$contract.trace
	says "broken $contract"
done
says 'never returned'
rm -r traces

# --- what ends is not said to read something again and again ---

variant moans -e 's/if (r->used != 1 ||/if (r->used == 1 || r->used != 1 ||/'
cat >moans.trace <<-END
	tidemark-trace 1
	store moans ./moans.so
	keys k1 8
	client 1: put k1 8
	deviate server/server c1.put1 before flush 1: server dies
	broken FSCK: the structural check after recovery says: record 0 makes no sense
END
run 1 tidemark replay moans.trace
says 'broken FSCK' 'it takes this to happen: server/server'
! grep -q 'again and again' out || fail "what FSCK says is explained by a loop"

# --- stores that do not start, or have too little room: the rest goes on ---

variant good -e 's/a log that/A log that/'
# trouble NAME SENTENCE CONTRACTS SED...: what is said of it, and what breaks.
trouble() {
	local name=$1 sentence=$2 contracts=$3 contract
	shift 3
	variant "$name" "$@"
	run 1 tidemark crashtest ./good.so "./$name.so" --runs 20 --states 200 -q --workload w --workload w1r2-w2r1
	says "$sentence" "Not everything is as it should be: $name ${contracts// /, $name }" '(0 operations, 0 deviations)'
	awk '$1 == "good" { good = 1 } $1 == "'"$name"'" { good = 0 } good && $3 == "holds" { n++ } END { exit n != 10 }' out ||
		fail "$name: the other store is not judged"
	! grep -q ' broken .* of 0 ' out || fail "$name: a count that makes no sense"
	for contract in $contracts; do
		run 1 tidemark replay "traces/$name-$contract.trace"
		says "broken $contract"
	done
	run 1 tidemark replay "traces/$name-${contracts%% *}.trace"
	says "$sentence"
	sed "s/$name/good/g" "traces/$name-${contracts%% *}.trace" >mended.trace
	run 4 tidemark replay -q mended.trace
}
put='s/^\treturn call(client, PUT.*/'
trouble errs "the load phase's PUT k1 fails: put() returns EINVAL" OK -e "${put}\treturn key ? -EINVAL : 0;/"
trouble alone 'a client cannot connect: open() returns ECONNREFUSED' OK -e 's/^static int open_client(.*/&\n{\n\t(void)env, (void)handle;\n\treturn -ECONNREFUSED;\n}\nint unused(const struct tm_env *env, void **handle);\nint unused(const struct tm_env *env, void **handle)/'
trouble stuffed 'another one is not refused with ENOSPC: put() returns EIO' OK -e 's/rt_pm_full())$/&\n\t\treturn -EIO;\n\tif (0)/'
trouble points 'in the load phase: segmentation fault' 'OK LIVE' -e "${put}\treturn *(volatile int *)8;/"
trouble traps 'in the load phase: illegal instruction' 'OK LIVE' -e "${put}\t__builtin_trap();/"
trouble leaves 'in the load phase: exit(3)' 'OK LIVE' -e "${put}\texit(3);/"
trouble aborts 'in the load phase: abort()' 'OK LIVE' -e "${put}\tabort();/"
trouble locks 'in the load phase: deadlock: ' 'OK LIVE' -e "s/^#include <string.h>/&\n#include <pthread.h>/" \
	-e "${put}\tstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\tpthread_mutex_lock(\&m);\n\tpthread_mutex_lock(\&m);\n\treturn 0;/"
trouble sleeps 'the load phase does not end' 'OK LIVE' -e 's/^\t\tif (ibv_poll_cq(s->cq, 1, &wc) < 1) {/\t\tif (s->cq) {/'
trouble recovers "segmentation fault in the store's code" LIVE -e '/^static int recover/,/^}/s/^\treturn 0;/\treturn *(volatile int *)8;/'

echo "trouble: ok"
