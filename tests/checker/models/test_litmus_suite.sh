#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_litmus_suite.sh PROGRAM DIRECTORY
#
# All litmus tests of the directory hold, and can fail: on each other machine that `tidemark list bugs` knows
# at least one of them does not.
tidemark=$1 suite=$2
[ -x "$tidemark" ] && [ -d "$suite" ] || { echo "usage: test_litmus_suite.sh PROGRAM DIRECTORY" >&2; exit 2; }
out=$(mktemp) || exit 70
trap 'rm -f "$out"' EXIT

"$tidemark" litmus -q "$suite" >"$out" || { grep -A1 'does not hold' "$out" >&2; exit 1; }
tail -n 1 "$out"
[ "$(grep -c ' holds$' "$out")" -ge 200 ] || { echo "FAILED: fewer tests than there were" >&2; exit 1; }

changes=$("$tidemark" list bugs | sed -n 's/.*knobs: mutant=\([a-z_]*\); another machine.*/\1/p')
[ "$(echo "$changes" | wc -l)" -ge 12 ] || { echo "FAILED: which machines? $changes" >&2; exit 1; }
for change in $changes nic_fence_ignored nic_read_overtakes nic_send_overtakes; do
	"$tidemark" litmus -q --knob "mutant=$change" "$suite" >"$out"
	status=$?
	[ $status -eq 1 ] || { echo "FAILED: $change: status $status" >&2; exit 1; }
	echo "$change: $(grep -c 'does not hold$' "$out") tests do not hold"
done
