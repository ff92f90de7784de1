#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_record_store.sh TIDEMARK SOURCES
#
# A store of Tidemark's own in its live form, as any RDMA server: it is recorded while a client works, crash images are made of
# the recording, and the contracts judge them by what the client recorded until the power failed. The right store is clean; of
# one with a seeded bug, which the simulation finds, the recording shows the same, and names what must not be lost.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
export TIDEMARK_FABRIC=$here/fabric
judge='tidemark examine --pm {} --history history --until ${TIDEMARK_CUT_NS:-0} -q'
server=

# serve COMMAND...: start a server, wait until it serves; its process in $server, its port in $port.
serve() {
	: >served
	"$@" >served 2>summary &
	server=$!
	until grep -q '^serving' served; do
		kill -0 $server 2>/dev/null || fail "the server does not start: $(cat served summary)"
		sleep 0.05
	done
	port=$(sed -n 's/.* on 127.0.0.1:\([0-9]*\),.*/\1/p' served)
}
stop() {
	kill -TERM $server
	wait $server || fail "the server ends with $?: $(cat served summary)"
}
trap '[ -z "$server" ] || kill $server 2>/dev/null || true; rm -rf "$here"' EXIT

# record STORE VARIANT: a pool that is there, its server recorded, with a client of three keys: pool.rec and history.
record() {
	local own=
	[[ $1 != */* ]] || own=$1
	local pool=(serve "$1" --variant "$2" --pm pool --size 128K --clients 1 --keys 4 --value 64 --listen 127.0.0.1:0)
	rm -f pool history
	serve tidemark run -- tidemark "${pool[@]}"
	stop
	serve tidemark record --pm pool --out pool.rec -- tidemark "${pool[@]}"
	run 0 tidemark run -- tidemark bench --server "127.0.0.1:$port" --history history --ops 24 --load -q --keys 3 --room 200 $own
	stop
	cp summary out
	says '1 file of PM'
}

for store in efactory erda; do
	record $store default
	run 0 tidemark images pool.rec --history history --most 12 --recover "$judge"
	says 'landings' 'acknowledgements' ' 0 are bad'
done

# What tidemark cc has made tells of each store, where it is made.
run 0 tidemark new-store mine
run 0 make -C mine
record mine/mine.so default
says ' that the program told of'
run 0 tidemark images pool.rec --pmemcheck-log text
used=$(grep -n -m 1 'used = 1;' mine/mine.c | cut -d: -f1)
[ "$(tr '|' '\n' <text | grep -c "^STORE;.*;0x1;0x4;append (mine.c:$used)")" -gt 0 ] || fail "no store of line $used"

# broken STORE BUG WHAT LINE: that is a cause; with other moments than last time, there may be others.
broken() {
	record "$1" "$2"
	run 1 tidemark images pool.rec --history history --most 12 --recover "$judge"
	says '1. exit status 1' "lost: the $3" "$4"
	# The simulation says so, too.
	run 1 tidemark crashtest "$1" --variant "$2" --workload ww --runs 40 --states 2000 --no-traces --knob ack_early=off
}
broken efactory one_flush 'store of 48 bytes' 'noticed at link_header (core/stores/efactory/server.c:'
broken efactory header_unflushed 'store of 48 bytes' 'noticed at '
broken efactory flag_first 'landing of' 'by RDMA WRITE or atomic'
