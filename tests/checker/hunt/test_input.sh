#!/bin/sh
# The target for fuzzers as a plain program: an input from a file and from standard
# input; what breaks leaves a trace that replays.
# usage: test_input.sh FUZZ_AFL TIDEMARK
program=$1 tidemark=$2
. "$(dirname "$0")/../../shell.sh"
unset TIDEMARK_STORE TIDEMARK_VARIANT TIDEMARK_KNOBS TIDEMARK_OUT

# Client 1: PUT k1, GET k1. The power fails when the GET has returned, all lines are lost.
printf '\000\001\002\000\000\000\000\000\000\014\000\000\016\000\000' >none
: >empty
head -c 5000 /dev/urandom >long
run 0 "$program" none empty long
run 0 sh -c "'$program' <none"
run 2 "$program" missing
complains 'missing: No such file'
run 2 env TIDEMARK_STORE=nobody "$program" none
run 2 env TIDEMARK_VARIANT=nothing "$program" none
run 2 env TIDEMARK_KNOBS=ddio "$program" none
run 2 env TIDEMARK_KNOBS=ddio=maybe "$program" none
# The same with the 1st to 40th place where the power can fail.
found=
for gap in 000 001 002 003 004 005 006 007 010 011 012 013 014 015 016 017 020 021 022 023 024 025; do
	printf "\\000\\001\\002\\000\\000\\000\\000\\000\\000\\014\\$gap\\000\\016\\000\\000" >cut
	TIDEMARK_VARIANT=get_no_flush "$program" cut >out 2>err || { found=$gap; break; }
done
[ -n "$found" ] || wrong 'get_no_flush is not found'
for trace in ./*.trace; do
	run 1 "$tidemark" replay -q "$trace"
done
ended
