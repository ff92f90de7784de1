#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_vmcommit.sh TIDEMARK
#
# RDMP-KV on rdma_rxe and an NVDIMM behind a cache that loses what was not flushed. With SA the server flushes, and all
# that is promised holds. With CC-SA and a READ in the Commit's place, as on cards of today, a flag is durable and its value
# is not (claim P50). Skipped where there is no QEMU.
set -eu
tidemark=$(realpath "$1")
vm=$(cd "$(dirname "$0")/../../vm" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

fail() {
	echo "FAILED: $*" >&2
	exit 1
}
# cut VARIANT STATUS: two power cuts, which end so.
cut() {
	local status=0
	"$vm/powercut" --store rdmp_kv --variant "$1" --shadow --cuts 2 --seed 7 --program "$tidemark" --out traces >out 2>err || status=$?
	cat out err
	[ $status -eq "$2" ] || exit $status
	[ "$(awk '$1 == "rdmp_kv" { print ($4 > 100 && $5 > 0) }' out)" = 1 ] || fail "$1: hardly any operations, or nothing was in flight"
}
cut default 0
grep -q 'holds, FSCK holds' out || fail "nothing is said to hold"
cut cc_sa_read 1
grep -q 'RDA broke in .*LIN holds' out || fail "a READ made the value durable"
