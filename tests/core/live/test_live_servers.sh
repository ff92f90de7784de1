#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_live_servers.sh TIDEMARK
#
# Mojim's two servers in real time, on the soft RNIC: either is killed while clients go on, and comes back; then both are
# killed at once, and so is the service. What clients saw is examined. Each step begins when the one before it says that it
# is done.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/../../cli/own.sh"
export TIDEMARK_FABRIC=$here/fabric
members=
server=(none '' '')
trap 'for pid in $members ${server[1]} ${server[2]} $bench; do kill -9 $pid 2>/dev/null || true; done; rm -rf "$here"' EXIT
bench=

# until_says FILE TEXT PID: PID has written it
until_says() {
	until grep -q "$2" "$1"; do
		kill -0 "$3" 2>/dev/null || fail "expected \"$2\": $(cat "$1")"
		sleep 0.05
	done
}

start_members() {
	: >members.out
	tidemark members kept --listen "127.0.0.1:${port:-0}" >members.out 2>&1 &
	members=$!
	until_says members.out '^members of 2 servers' $members
	port=$(sed -n 's/^members of .*:\([0-9]*\)$/\1/p' members.out)
}

# start NUMBER OPTION...: a server, as soon as it serves
start() {
	: >served$1
	tidemark serve mojim --pm "pool$1" --shadow --device tide0 --listen 127.0.0.1:0 --members "127.0.0.1:$port" \
		--number "$1" "${@:2}" >"served$1" 2>&1 &
	server[$1]=$!
	until_says "served$1" '^serving' ${server[$1]}
}

# dies PID
dies() {
	kill -9 "$1"
	wait "$1" 2>/dev/null || :
}

# last TEXT: the service says this now
last() {
	until tail -n 1 members.out | grep -q "$1"; do
		kill -0 $members 2>/dev/null || fail "expected \"$1\": $(cat members.out)"
		sleep 0.05
	done
}

# load HISTORY: in $bench
load() {
	done_by_now=500
	tidemark bench --device tide0 --server "127.0.0.1:$port" --clients 2 --keys 8 --value 32 --reconnect --patience 600s \
		--history "$1" --room 400000 --time 600s --quiet "${@:2}" >"$1.out" 2>&1 &
	bench=$!
}

# used HISTORY N: has record number N been used (checker/live/recording.h)?
used() { od -An -tu8 -j $((4096 + 64 * $2)) -N 8 "$1" 2>/dev/null | grep -q '[1-9]'; }

# goes_on HISTORY: clients do more than they have done by now, and some hundreds at least
done_by_now=
goes_on() {
	while used "$1" $done_by_now; do
		done_by_now=$((done_by_now + 500))
	done
	until used "$1" $done_by_now; do
		kill -0 $bench 2>/dev/null || fail "the load ended: $(cat "$1.out")"
		sleep 0.05
	done
}

end_load() {
	kill -TERM $bench
	wait $bench || fail "the load ends with $?: $(cat "$1.out")"
	bench=
}

# examined STATUS TEXT HISTORY...
examined() {
	run "$1" tidemark examine --history "${@:3}"
	says "$2"
}

sizes=(--size 64M --keys 8 --value 32 --clients 4)
start_members
start 1 "${sizes[@]}"
start 2 "${sizes[@]}"
last 'members: 1 2; alive: 1 2'
load one --load
goes_on one
dies ${server[1]}
last 'server 2 is the primary; members: 2; alive: 2'
goes_on one
start 1
last 'server 2 is the primary; members: 1 2; alive: 1 2'
goes_on one
dies ${server[2]}
last 'server 1 is the primary; members: 1; alive: 1'
goes_on one
end_load one
examined 0 '  LIN   holds' one
says '  DURN  not judged: the recordings do not say which server failed'

# all_die: the service first, so that neither server takes over from the other
all_die() {
	dies $members
	kill -9 ${server[1]} ${server[2]} $bench
	wait ${server[1]} ${server[2]} $bench 2>/dev/null || :
	bench=
}

# read_back HISTORY: every key, after both are back
read_back() {
	start_members
	start 2
	start 1
	last 'server 1 is the primary; members: 1 2; alive: 1 2'
	run 0 tidemark bench --device tide0 --server "127.0.0.1:$port" --workload c --ops 400 --history "$1"
}

# What was acknowledged is there, also of both.
start 2
last 'server 1 is the primary; members: 1 2; alive: 1 2'
load two
goes_on two
all_die
read_back three
examined 0 '  DUR   holds' one two three

# A primary that relies on its caches loses what it had acknowledged, and this is seen.
kill -9 ${server[1]} ${server[2]} $members
wait ${server[1]} ${server[2]} $members 2>/dev/null || :
rm pool1 pool2 kept
start_members
start 1 --variant literal "${sizes[@]}"
start 2 --variant literal "${sizes[@]}"
last 'members: 1 2; alive: 1 2'
load four --load
goes_on four
all_die
read_back five
examined 1 '  DUR   broken' four five
