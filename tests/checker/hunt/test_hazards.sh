#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_hazards.sh PROGRAM
#
# What is wrong with the published designs falls out of their literal variants, nearly all of it
# without a hint: for each known hazard there is a trace of the contract that it breaks, and the report says
# that it takes the switch that stands for it. The workloads are some of the default ones.
tidemark=$(realpath "$1")
here=$(mktemp -d) || exit 70
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 70
failures=0
more= # options of the next searches

# search STORE ack_early=on|off WORKLOAD...: the report as lines "CONTRACT NAME=VALUE, ..." in "found"
search() {
	store=$1 ack=$2
	shift 2
	workloads=
	for w; do
		workloads="$workloads --workload $w"
	done
	# shellcheck disable=SC2086
	"$tidemark" crashtest "$store" --variant literal --knob "$ack" $workloads $more \
		--out traces --quiet >report 2>&1
	status=$?
	if [ $status -ne 1 ]; then
		failures=$((failures + 1))
		echo "FAILED: $store: status $status, expected 1" >&2
		cat report >&2
	fi
	awk '/^  [A-Z]+ +[a-z]/ { contract = $1 }
		/^         it takes / { sub(/^ *it takes /, ""); print contract, $0 }' report >found
}

# hazard NAME CONTRACT SWITCH
hazard() {
	if ! grep "^$2 " found | grep -q -- " $3\(,\|\$\)"; then
		failures=$((failures + 1))
		echo "FAILED: $1: no trace of $2 that takes $3" >&2
		sed 's/^/	/' found >&2
	fi
}

# Two hazards that break the same contracts sooner are off here, and it takes more schedules.
more="--knob meta_one_flush=off --knob copy_inflight=off --runs 20000"
search efactory ack_early=on wr
hazard H-F1 MONO bg_plain_store=on
more=
search efactory ack_early=off w-r wr-c w1-r2cr2w2cr2w2r2r2
hazard H-F2 RDA grace=none
hazard H-F3 LIN copy_inflight=on
hazard H-F5 LIN timeout=1ms
# Three that break LIN sooner are off.
more="--knob copy_inflight=off --knob no_notify_wait=off --knob timeout=10s"
search efactory ack_early=off w1-r2cr2w2cr2w2r2r2
hazard H-F8 LIN compress_get=literal

# A second failure breaks KEEP sooner, in another way.
more="--knob mutant=crash_once"
search erda ack_early=on c-rw w1w2-c
more=
hazard H-E5 RDA clean_state=literal
hazard H-E6 KEEP clean_put=lazy
search erda ack_early=off w-rr dcrr
hazard H-E1 LIN repair=unconditional
hazard H-E10 LIN tombstones=forgotten

[ $failures -eq 0 ] || { echo "$failures failed" >&2; exit 1; }
