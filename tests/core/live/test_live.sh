#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_live.sh TIDEMARK [STORE...]
#
# Stores of the live world in a guest, whose kernel has rdma_rxe and NVDIMMs: serve, put, get, del; several
# clients at once; a server that stops, is killed, and comes back; mistakes of users. Skipped where no guest can
# be had (vm/guest). eFactory, and the stores named.
set -eu
tidemark=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0
"$here/../../../vm/guest" --program "$tidemark" --program "$here/live_guest.sh" --nvdimm "$tmp/a:32M" --nvdimm "$tmp/b:32M" \
	--timeout 1000 --out "$tmp/out" -- "live_guest.sh $*" || status=$?
if [ $status != 0 ]; then
	[ ! -f "$tmp/out" ] || cat "$tmp/out"
	exit $status
fi
tail -n 1 "$tmp/out" | grep -q "all is well" || {
	cat "$tmp/out"
	exit 1
}
