#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_vmtest.sh TIDEMARK
#
# A short `make vmtest`: five power cuts for eFactory and five for Erda, with a shadow and without one; objects torn in the
# middle of their WRITE. eFactory keeps what it promises; Erda, with a shadow, loses what it acknowledged, and
# that is seen. Skipped where there is no QEMU.
set -eu
tidemark=$(realpath "$1")
vm=$(cd "$(dirname "$0")/../../vm" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

status=0
"$vm/powercut" --cuts 5 --seed 7 --program "$tidemark" --out "$tmp/traces" >out 2>err || status=$?
cat out err
[ $status -eq 0 ] || exit $status

# row STORE PM COLUMN: what the table says.
row() { awk -v store="$1" -v mode="$2" -v column="$3" '$1 == store && $2 == mode { print $column }' out; }
fail() {
	echo "FAILED: $*" >&2
	exit 1
}
for store in efactory erda; do
	[ $(($(row $store plain 3) + $(row $store shadow 3))) -eq 5 ] || fail "$store: not five cuts"
	[ "$(row $store shadow 4)" -gt 100 ] || fail "$store: hardly any operations"
	[ "$(row $store shadow 5)" -gt 0 ] || fail "$store: no lines were in flight"
done
for contract in RDA MONO KEEP; do
	[ "$(grep -c "^efactory .*$contract holds" out)" -eq 2 ] || fail "efactory: $contract is not said to hold"
done
grep -Eq '^erda  *shadow .*DUR (broke|could break)' out || fail "erda: nothing acknowledged was lost, with what is not flushed lost"

status=0
"$vm/tear" --store efactory --seed 7 --program "$tidemark" --out "$tmp/traces" >out 2>err || status=$?
cat out err
exit $status
