#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_often.sh TIDEMARK
#
# Where a bug makes a whole campaign meet known causes of breaks that may be far more often than is recorded, that is told, with
# a trace that shows it. Without the bug nothing is told. This bug breaks a promise as well, so the exit status 1 is not due to
# the frequency alone; tests/checker/judge/test_shares.c has the rule by itself.
set -eu
tidemark=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

fail() {
	echo "$*" >&2
	exit 1
}

"$tidemark" crashtest ca --no-traces --quiet >out || fail "the store as it is: $(grep 'OFTEN' -A 4 out)"
status=0
"$tidemark" crashtest ca --variant tail_short --out traces --quiet >out || status=$?
[ "$status" = 1 ] || fail "status $status"
grep -q '^  RDA .*BROKEN FAR MORE OFTEN$' out || fail "$(cat out)"
grep -q 'a known cause, but [0-9]* runs show it and at most [0-9]* are recorded' out || fail "$(cat out)"
status=0
"$tidemark" replay traces/ca-tail_short-RDA.trace >/dev/null || status=$?
[ "$status" = 1 ] || fail "the trace: status $status"
