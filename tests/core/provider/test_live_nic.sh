#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_live_nic.sh TIDEMARK [STORE...]
#
# Live stores on the soft RNIC of this machine, without a guest: serve, put, get, four clients at once whose server
# is killed, what is left examined, recovery, load again, an orderly stop, and nothing left in /dev/shm. Stores:
# efactory and erda.
# shellcheck source=tests/cli/record_server.sh
. "$(dirname "$0")/../../cli/record_server.sh"
shift
[ $# -gt 0 ] || set -- efactory erda

# start EXPECTED ARGUMENT...: a server whose line says EXPECTED.
start() {
	serve tidemark serve "${@:2}" --device tide0 --listen 127.0.0.1:0
	grep -q "$1" served || fail "serve ${*:2}: expected \"$1\""
}

client() { timeout 300 tidemark "$1" --device tide0 --server "127.0.0.1:$port" "${@:2}"; }

load() { client bench --workload a --clients 4 --keys 100 --quiet "$@"; }

# used N: has record number N of the load under way been used (checker/live/recording.h)?
used() { od -An -tu8 -j $((4096 + 64 * $1)) -N 8 recording1 2>/dev/null | grep -q '[1-9]'; }

# examine RECORDING ARGUMENT...: what is in the pool, against what the clients recorded.
examine() {
	timeout 300 tidemark examine --pm pool --cuts 0 --quiet --history "$@" >examine.out 2>&1 ||
		fail "examine: status $?: $(cat examine.out)"
}

one_store() {
	local store=$1 status=0 i pids='' bench
	rm -f pool recording* recovered
	start "serving $store on 127.0.0.1:[1-9][0-9]*, boot 1, formatted" "$store" --pm pool --size 16M --keys 103
	for i in 1 2 3; do
		{ client put "k$i" "value $i" && [ "$(client get "k$i")" = "value $i" ]; } &
		pids="$pids $!"
	done
	for i in $pids; do
		wait "$i" || fail "a client failed"
	done
	load --load --history recording1 --time 600s >bench.out 2>&1 &
	bench=$!
	# All keys are there, and more is being done.
	until used 200; do
		kill -0 $bench 2>/dev/null || fail "the load ended: $(cat bench.out)"
		sleep 0.1
	done
	kill -9 $server
	wait $server 2>/dev/null || true
	wait $bench || status=$?
	[ $status = 3 ] || fail "the clients of a server that was killed end with $status: $(cat bench.out)"
	examine recording1 --save-recovered recovered
	start "boot 2, recovered" "$store" --pm pool
	[ "$(client get k2)" = "value 2" ] || fail "k2 is lost"
	load --history recording2 --ops 400 >bench.out 2>&1 || fail "load after recovery: $(cat bench.out)"
	stop
	server=
	examine recording2 --recovered recovered
	echo "$store: $(sed -n 1p bench.out)"
}

for store in "$@"; do
	one_store "$store"
done
for _ in $(seq 600); do
	[ -e "$TIDEMARK_FABRIC" ] || exit 0
	sleep 0.1
done
fail "left behind: $(ls "$TIDEMARK_FABRIC")"
