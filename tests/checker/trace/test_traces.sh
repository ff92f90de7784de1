#!/bin/sh
# Every trace in tests/traces still breaks its contract, and those in tests/mended do not any
# more (status 4): a hundred times in one process, and again in processes of their own, whose
# addresses differ. The folder is the same for every compiler, so gcc's and clang's programs
# must agree.
# usage: test_traces.sh PROGRAM FOLDER STATUS
program=$1 folder=$2 expected=$3 failed=0 traces=0
for trace in "$folder"/*.trace; do
	traces=$((traces + 1))
	"$program" replay -q --repeat 100 "$trace"
	status=$?
	if [ $status -ne "$expected" ]; then
		echo "$trace: exit status $status instead of $expected" >&2
		failed=$((failed + 1))
	fi
	for again in 1 2 3; do
		"$program" replay -q "$trace" >/dev/null 2>&1
		[ $? -eq "$expected" ] || { echo "$trace: process $again differs" >&2; failed=$((failed + 1)); }
	done
done
echo "$traces traces, $failed failures"
[ "$traces" -gt 0 ] && [ "$failed" -eq 0 ]
