# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# For tests that record a store of Tidemark's own in its live form: test_NAME.sh TIDEMARK SOURCES.
# shellcheck source=tests/cli/own.sh
. "$(dirname "${BASH_SOURCE[0]}")/own.sh"
export TIDEMARK_FABRIC=$here/fabric
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

# record STORE VARIANT [OPERATIONS [OPTION...]]: a pool that is there, its server recorded, with a client of three keys: pool.rec and
# history.
record() {
	local own=
	[[ $1 != */* ]] || own=$1
	local pool=(serve "$1" --variant "$2" --pm pool --size 128K --clients 1 --keys 4 --value 64 --listen 127.0.0.1:0 "${@:4}")
	rm -f pool history
	serve tidemark run -- tidemark "${pool[@]}"
	stop
	serve tidemark record --pm pool --out pool.rec -- tidemark "${pool[@]}"
	run 0 tidemark run -- tidemark bench --server "127.0.0.1:$port" --history history --ops "${3:-24}" --load -q --keys 3 --room 200 $own
	stop
	cp summary out
	says '1 file of PM'
}
