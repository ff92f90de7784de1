#!/bin/sh
# The libFuzzer target: 2000 inputs break nothing, and some are kept for the states that
# they reach; the same inputs find a seeded bug, whose trace replays.
# usage: test_libfuzzer.sh PROGRAM
program=$1
[ -x "$program" ] || { echo "skipped: clang has no fuzzer runtime here, $program was not built" >&2; exit 77; }
here=$(mktemp -d) || exit 70
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 70
mkdir corpus || exit 70
if ! "$program" -runs=2000 -max_len=149 -len_control=0 -seed=1 corpus >out 2>&1; then
	cat out >&2
	echo 'an input breaks something' >&2
	exit 1
fi
kept=$(ls corpus | wc -l)
# By the code of the target alone some thirty can be told apart.
[ "$kept" -ge 150 ] || { tail -n 3 out >&2; echo "only $kept inputs were kept" >&2; exit 1; }
if TIDEMARK_VARIANT=get_no_flush "$program" -runs=200000 -max_len=149 -len_control=0 -seed=1 >out 2>&1; then
	tail -n 3 out >&2
	echo 'a seeded bug was not found' >&2
	exit 1
fi
grep -q 'MONO is broken\|FSCK is broken' out || { cat out >&2; exit 1; }
ls ./*.trace
