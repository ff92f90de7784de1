#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_vm_servers.sh TIDEMARK
#
# Mojim's two servers in two guests, on rdma_rxe. The first server's guest loses its power while clients go on, and comes
# back; then the other one's process is killed. What clients saw is examined. Skipped where there is no QEMU.
set -eu
tidemark=$(realpath "$1")
vm=$(cd "$(dirname "$0")/../../vm" && pwd)
tmp=$(mktemp -d)
fails='' stays=
trap 'kill $fails $stays 2>/dev/null || true; wait; rm -rf "$tmp"' EXIT
cd "$tmp"
"$vm/build" --if-needed

fail() {
	echo "FAILED: $*" >&2
	tail -n 20 ./*.out ./*.err >&2
	exit 1
}
# until_says FILE TEXT: as a line, since the last time
seen=0
until_says() {
	until tail -n "+$((seen + 1))" "$1" 2>/dev/null | grep -q "$2"; do
		kill -0 "$stays" 2>/dev/null || fail "expected \"$2\""
		sleep 0.2
	done
	seen=$(wc -l <"$1")
}
# used N: has record number N of the recording been used (checker/live/recording.h)?
used() { od -An -tu8 -j $((2097152 + 4096 + 64 * $1)) -N 8 recording | grep -q '[1-9]'; }
# goes_on: clients do 100 operations more than they have done by now
goes_on() {
	local from=0
	while used $from; do from=$((from + 50)); done
	until used $((from + 100)); do
		kill -0 "$stays" 2>/dev/null || fail 'the guest has ended'
		sleep 0.2
	done
}
# serve NUMBER
serve() {
	echo "tidemark serve mojim --number $1 --pm /dev/dax0.0 --listen 10.0.0.$1:7471 --members 10.0.0.2:7470 \
		--size 28M --keys 8 --value 32 --clients 4"
}
start_first() {
	"$vm/guest" --net connect:net --address 10.0.0.1 --nvdimm first:32M --program "$tidemark" --pidfile first.pid \
		--out first.out -- "$(serve 1)" 2>first.err &
	fails=$!
}

# The guest that stays has the service, the clients and the second server, which dies when its turn has come.
"$vm/guest" --net listen:net --address 10.0.0.2 --nvdimm second:32M --nvdimm recording:64M --program "$tidemark" \
	--out second.out -- "
	tidemark members /kept --listen 10.0.0.2:7470 | tee /said &
	until grep -q members /said; do sleep 0.1; done
	$(serve 2) &
	server=\$!
	tidemark bench --server 10.0.0.2:7470 --clients 2 --keys 8 --value 32 --load --history /dev/dax1.0 --time 3600s \
		--reconnect --patience 600s --stall 600s -q &
	until grep -q '2 is the primary; members: 1 2' /said; do sleep 0.5; done
	sleep 2
	kill -9 \$server
	wait" 2>second.err &
stays=$!
until_says second.out '^members of 2 servers'
start_first
until_says second.out 'members: 1 2; alive: 1 2'
goes_on
kill -9 "$(cat first.pid)"
until_says second.out 'server 2 is the primary; members: 2;'
goes_on
start_first
until_says second.out 'server 2 is the primary; members: 1 2; alive: 1 2'
goes_on
until_says second.out 'server 1 is the primary; members: 1;'
goes_on
"$tidemark" examine --history recording | tee verdict
grep -q '  LIN   holds' verdict || fail 'LIN does not hold'
