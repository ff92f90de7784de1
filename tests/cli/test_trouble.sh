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
	sed "s/NAME/$name/g" "$template" >whole.c
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

echo "trouble: ok"
