#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_often.sh TIDEMARK
#
# A bug that breaks only what may break, for causes that are known, is told all the same where a whole campaign meets these far
# more often than is recorded: exit status 1, and a trace. Without the bug nothing is told.
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
