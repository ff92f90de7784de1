#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# live_guest.sh [STORE...]
#
# What test_live.sh runs in a guest: live servers and clients on rdma_rxe; eFactory, then the stores named. Two
# NVDIMMs are there, /dev/dax0.0 and /dev/dax1.0.
set -eu
A=10.0.0.1:7471
cd /tmp

die() {
	echo "live_guest.sh: $*"
	cat serve.out || true
	exit 1
}

# start EXPECTED ARGUMENT...: a server in the background; its line says EXPECTED.
start() {
	local expected=$1
	shift
	: >serve.out
	tidemark serve "$@" --listen $A >serve.out 2>&1 &
	server=$!
	until grep -q "^serving" serve.out; do
		kill -0 $server 2>/dev/null || die "serve $* ended"
		sleep 0.1
	done
	grep -q "$expected" serve.out || die "serve $*: expected \"$expected\""
}

# stop: in order.
stop() {
	local status=0
	kill $server
	wait $server || status=$?
	[ $status = 0 ] || die "the server ended with $status"
}

# says STATUS TEXT COMMAND...: it ends with this status, and its messages have this text.
says() {
	local expected=$1 text=$2 status=0
	shift 2
	"$@" >out 2>&1 || status=$?
	[ $status = "$expected" ] || die "$*: status $status, expected $expected: $(cat out)"
	grep -q -- "$text" out || die "$*: expected \"$text\", got \"$(cat out)\""
}

put() { timeout 300 tidemark put --server $A "$@"; }
get() { timeout 300 tidemark get --server $A "$@"; }
del() { timeout 300 tidemark del --server $A "$@"; }

holds() { [ "$(get "$1")" = "$2" ] || die "$1 is not $2"; }

one_store() {
	local store=$1 pool=$2 i pids=''
	echo "$store on $pool"
	start "serving $store on $A, boot 1, formatted" "$store" --pm "$pool" --size 4M --keys 100
	for i in 1 2 3; do
		{ put "k$i" "value $i" && holds "k$i" "value $i"; } &
		pids="$pids $!"
	done
	for i in $pids; do
		wait "$i" || die "a client failed"
	done
	head -c 256 /dev/urandom >value
	put binary - <value
	get binary >back
	cmp value back || die "256 random bytes came back as others"
	put k2 other
	del k3
	kill -9 $server
	wait $server || true
	start "boot 2, recovered" "$store" --pm "$pool"
	holds k1 "value 1"
	holds k2 other
	says 1 "k3: not found" get k3
	get binary >back
	cmp value back || die "256 random bytes are others after recovery"
	stop
	start "boot 3, recovered" "$store" --pm "$pool" --keys 100
	holds k1 "value 1"
	put k1 again
	holds k1 again
	stop
}

mistakes() {
	says 2 "holds efactory, not erda" tidemark serve erda --pm /dev/dax0.0
	says 2 "has 100" tidemark serve efactory --pm /dev/dax0.0 --keys 101
	says 2 "has default" tidemark serve efactory --pm /dev/dax0.0 --variant packed
	says 2 "no RDMA device" tidemark serve efactory --pm /dev/dax0.0 --device none
	echo "not a pool" >text
	says 2 "text" tidemark serve efactory --pm text
	says 1 "Connection refused" put k v
	says 2 "expected ADDRESS:PORT" tidemark get --server nowhere k
}

# A client that waits for its standard input is connected meanwhile. Of two with one number the later is refused; the
# kernel decides which that is.
with_clients() {
	local one two client status=0
	start "boot 4" efactory --pm /dev/dax0.0
	says 2 "in use" tidemark serve ca --pm other --size 1M --listen $A
	mkfifo pipe
	put --client 3 late - <pipe >one 2>&1 &
	one=$!
	put --client 3 late - <pipe >two 2>&1 &
	two=$!
	exec 3>pipe
	wait -n $one $two || status=$?
	[ $status = 1 ] || die "one of two clients with number 3 ended with $status: $(cat one two)"
	grep -q "client number 3 already" one two || die "two clients are number 3: $(cat one two)"
	client=$one
	kill -0 $one 2>/dev/null || client=$two
	holds k1 again
	stop
	# Its server is gone: it is told, and does not wait for ever.
	status=0
	echo value >&3
	exec 3>&-
	wait $client || status=$?
	[ $status = 1 ] || die "a client whose server has gone ended with $status: $(cat one two)"
}

one_store efactory /dev/dax0.0
for store in "$@"; do
	pool=$store.pool
	[ "$store" != erda ] || pool=/dev/dax1.0
	one_store "$store" "$pool"
done
mistakes
with_clients
echo "all is well"
