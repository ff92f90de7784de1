#!/bin/sh
# Every trace in tests/traces still breaks its contract, or if it says "broken none" breaks nothing any more: a hundred
# times in one process, and again in processes of their own, whose addresses differ. The folder is
# the same for every compiler, so gcc's and clang's programs must agree.
# usage: test_traces.sh PROGRAM FOLDER
program=$1 folder=$2 failed=0 traces=0
for trace in "$folder"/*.trace; do
	traces=$((traces + 1))
	expected=1
	! grep -q '^broken none' "$trace" || expected=0
	"$program" replay -q --repeat 100 "$trace"
	status=$?
	if [ $status -ne $expected ]; then
		echo "$trace: exit status $status instead of $expected" >&2
		failed=$((failed + 1))
	fi
	for again in 1 2 3; do
		"$program" replay -q "$trace" >/dev/null 2>&1
		[ $? -eq $expected ] || { echo "$trace: process $again differs" >&2; failed=$((failed + 1)); }
	done
done
echo "$traces traces, $failed failures"
[ "$traces" -gt 0 ] && [ "$failed" -eq 0 ]
