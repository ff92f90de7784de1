#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_figures.sh PROGRAM PAGE
#
# The command `tidemark figures`: all figures are as recorded, and the page has what is printed;
# a profile changes what is printed; bad ones are refused with their line.
prefix="$(realpath "$1") figures"
page=$(realpath "$2")
. "$(dirname "$0")/../../shell.sh"

run 0 -q --json all.json
says '^[0-9]+ of [0-9]+ figures as in the papers, '
grep -q '"as_recorded": *true' all.json || wrong "the JSON says nothing"
# The page has all of it, indented.
sed 's/^/    /; s/ *$//' out >printed
sed -n '/<!-- figures -->/,/<!-- end -->/p' "$page" | sed '1,2d;$d' | sed '$d' >written
cmp printed written >/dev/null || {
	diff written printed >&2
	wrong "the page has something else than what is printed; put that there"
}

run 0 L2 L7 --plot plot
grep -qE '^"L7 w2on/w2off at 64" 1.000 [0-9.]+ [0-9.]+$' plot || wrong "the plot has no ratio"
says '^2 of 2 figures as in the papers'
echo 'fence 100000 # slow' >slow
run 0 L4 --profile slow
cp out slow.out
run 0 L4
cmp -s out slow.out && wrong "a profile changes nothing"
echo 'wire 0 # none' >bad.profile
bad "bad.profile:1: '0': expected a number of MB/s for wire, 1 to 1000000000" L4 --profile bad.profile
printf '# x\nfence 1\n' >bad.profile
bad "bad.profile:2: expected where the value is from, after '#'" L4 --profile bad.profile
bad 'nothing' L4 --profile nothing
bad 'no figure "L99"' L99
run 0 --list
says '^L7 +DDIO makes no difference'
ended
