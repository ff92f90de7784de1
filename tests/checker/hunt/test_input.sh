#!/bin/sh
# The target for fuzzers as a plain program: an input from a file and from standard
# input; what breaks leaves a trace that replays.
# usage: test_input.sh FUZZ_AFL TIDEMARK
program=$1 tidemark=$2 failures=0
here=$(mktemp -d) || exit 70
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 70
unset TIDEMARK_STORE TIDEMARK_VARIANT TIDEMARK_KNOBS TIDEMARK_OUT

# expect STATUS COMMAND...
expect() {
	wanted=$1
	shift
	"$@" >out 2>err
	status=$?
	[ $status -eq "$wanted" ] && return
	failures=$((failures + 1))
	echo "FAILED: status $status instead of $wanted: $*" >&2
	cat err >&2
}

# Client 1: PUT k1, GET k1. The power fails when the GET has returned, all lines are lost.
printf '\000\001\002\000\000\000\000\000\000\014\000\000\016\000\000' >none
: >empty
head -c 5000 /dev/urandom >long
expect 0 "$program" none empty long
expect 0 sh -c "'$program' <none"
expect 2 "$program" missing
grep -q 'missing: No such file' err || { failures=$((failures + 1)); cat err >&2; }
expect 2 env TIDEMARK_STORE=nobody "$program" none
expect 2 env TIDEMARK_VARIANT=nothing "$program" none
expect 2 env TIDEMARK_KNOBS=ddio "$program" none
expect 2 env TIDEMARK_KNOBS=ddio=maybe "$program" none
# The same with the 1st to 40th place where the power can fail.
found=
for gap in 000 001 002 003 004 005 006 007 010 011 012 013 014 015 016 017 020 021 022 023 024 025; do
	printf "\\000\\001\\002\\000\\000\\000\\000\\000\\000\\014\\$gap\\000\\016\\000\\000" >cut
	TIDEMARK_VARIANT=get_no_flush "$program" cut >out 2>err || { found=$gap; break; }
done
[ -n "$found" ] || { failures=$((failures + 1)); echo 'FAILED: get_no_flush is not found' >&2; }
for trace in ./*.trace; do
	expect 1 "$tidemark" replay -q "$trace"
done
[ $failures -eq 0 ]
