#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_live_smoke.sh TIDEMARK [OBJECT]
#
# OBJECT: a store in a shared object, in eFactory's place.
#
# A live store on the soft RNIC of this machine: clients put and get at once, the server is killed, comes back with what
# was put, and ends in order. Each step begins when the one before it says that it is done; nothing here waits for time to
# pass. tests/core/provider/test_live_nic.sh is the thorough test.
object=${2:+$(realpath "$2")}
# shellcheck source=tests/cli/record_server.sh
. "$(dirname "$0")/../../cli/record_server.sh"
store=${object:-efactory}

client() { tidemark "$1" --device tide0 --server "127.0.0.1:$port" "${@:2}" $object; }

serve tidemark serve "$store" --pm pool --size 16M --keys 8 --device tide0 --listen 127.0.0.1:0
grep -q 'boot 1, formatted' served || fail 'it serves otherwise'
pids=
for i in 1 2 3; do
	{ client put "k$i" "value $i" && [ "$(client get "k$i")" = "value $i" ]; } &
	pids="$pids $!"
done
for pid in $pids; do
	wait "$pid" || fail "a client failed"
done
kill -9 $server
wait $server 2>/dev/null || :
serve tidemark serve "$store" --pm pool --device tide0 --listen 127.0.0.1:0
grep -q 'boot 2, recovered' served || fail 'it serves otherwise'
[ "$(client get k2)" = 'value 2' ] || fail "k2 is lost"
client bench --load --ops 30 --history history -q >/dev/null || fail "a load ended with $?"
stop
server=

# The recording says what was injected, which is nothing: OK holds, and breaks if an operation failed all the same.

# ok WORDS STATUS HISTORY
ok() {
	local status=0
	tidemark examine --pm pool --history "$3" $object >examined || status=$?
	grep -q "^  OK    $1" examined && [ $status = "$2" ] || fail "with $3, expected OK to be $1: $status, $(cat examined)"
}

# word OFFSET BYTES: in the third record of `changed`
word() {
	printf '%b' "$2" | dd of=changed bs=1 seek=$((4096 + 2 * 64 + $1)) conv=notrunc status=none
}

ok holds 0 history
cp history changed
word 32 '\0373\0377\0377\0377' # -EIO
ok broken 1 changed
grep -q 'no completion had an error$' examined || fail "it is not told that no completion had an error"
word 62 '\012' # IBV_WC_REM_ACCESS_ERR
ok broken 1 changed
grep -q 'a completion had status 10, REM_ACCESS_ERR, where a WRITE was posted last$' examined || fail "the status is not told"
word 45 '\0001' # the server was gone
ok holds 0 changed
word 44 '\0000' # an older recording
ok 'not judged: the recordings do not say' 0 changed
