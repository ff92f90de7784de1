#!/usr/bin/env bash
# test_stat.sh TIDEMARK: tidemark stat and tidemark fault on a pair that runs.
set -eu
tidemark=$1
name=test_stat
# shellcheck source=tests/core/provider/nic_pair.sh
. "$(dirname "$0")/nic_pair.sh"

# value JSON-KEY: of the first process
value() {
	"$tidemark" stat --fabric "$net" --json | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" | head -1
}

more_than() {
	[ "$(value "$1")" -gt "$2" ]
}

refused 'no process in the fabric' stat --fabric "$net"
refused 'no process in the fabric' fault --fabric "$net" 'lose 5%'

# A pair that lasts until it is killed.
port=$(free_port)
"$tidemark" run --fabric "$net" -- ibv_rc_pingpong -g 0 -n 100000000 -p "$port" >/dev/null 2>&1 &
pids=($!)
eventually listens "$port" || die "the server does not listen"
"$tidemark" run --fabric "$net" -- ibv_rc_pingpong -g 0 -n 100000000 -p "$port" localhost >/dev/null 2>&1 &
pids+=($!)
eventually more_than packets_sent 1000 || die "no packets: $("$tidemark" stat --fabric "$net")"
[ "$(value fault_lost)" = 0 ] || die "lost without a fault"
"$tidemark" stat --fabric "$net" | grep -q "ibv_rc_pingpong, process ${pids[0]}" || die "$("$tidemark" stat --fabric "$net")"
[ "$("$tidemark" stat --fabric "$net" --pid "${pids[1]}" | grep -c process)" = 1 ] || die "--pid"

# Faults while it runs: seen, and survived.
"$tidemark" fault --fabric "$net" 'lose 2%' 'duplicate 5%'
eventually more_than fault_lost 3 || die "nothing is lost"
eventually more_than fault_duplicated 3 || die "nothing is duplicated"
# Shared memory was a good link until now.
eventually more_than probe 0 || die "no probe: the queue pairs that there were do not know that it loses"
eventually more_than duplicate 1 || die "no duplicate was noticed"
eventually more_than retry 1 || die "no retransmission"
"$tidemark" fault --fabric "$net" | grep -q 'lose 2% *hit [1-9]' || die "$("$tidemark" fault --fabric "$net")"
"$tidemark" fault --fabric "$net" --off
[ "$("$tidemark" fault --fabric "$net" | grep -c hit)" = 0 ] || die "$("$tidemark" fault --fabric "$net")"
lost=$(value fault_lost) sent=$(value packets_sent)
eventually more_than packets_sent $((sent + 1000)) || die "it stands still after the faults"
[ "$(value fault_lost)" -le $((lost + 1)) ] || die "--off: $lost, then $(value fault_lost)"

# One is cut off: the process with an unanswered request notices; the other one waits, as on a real network.
"$tidemark" fault --fabric "$net" --pid "${pids[0]}" partition
ended() {
	! kill -0 "${pids[0]}" || ! kill -0 "${pids[1]}"
}
eventually ended || die "a partition without end, and nobody notices"
