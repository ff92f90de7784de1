#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_taxonomy_all.sh PROGRAM SOURCES [OPTION...]
#
# All of `tidemark taxonomy`: every cell equals the table, every break has a trace that replays, and
# docs/taxonomy.md has the tables that are measured. With TIDEMARK_QUICK records are smaller, which have the same verdicts.
tidemark=$(realpath "$1")
sources=$(realpath "$2")
shift 2
[ -z "$TIDEMARK_QUICK" ] || set -- --workload=w.40
. "$(dirname "$0")/../../shell.sh"

run 0 "$tidemark" taxonomy -q --json taxonomy.json "$@"
mv out report
grep -q '^696 of 696 cells equal ' report || wrong "not 696 cells"
grep -q 'is as cw2c in 24 of 24 cells$' report || wrong "cw2f is not as cw2c"
grep -q '^192 of 192 choices ' report || wrong "not all choices"
for trace in traces/*.trace; do
	contract=${trace##*-}
	echo "$trace: broken ${contract%.trace}"
done >expected
[ "$(grep -c ' replay traces/' report)" -eq "$(wc -l <expected)" ] || wrong "not as many traces as are told"
"$tidemark" replay -q traces/*.trace >replayed
[ $? -eq 1 ] || wrong "replay"
cmp expected replayed || wrong "a trace does not break what its name says"
"$sources/scripts/pictures" taxonomy.json pictures || wrong "no pictures"
sed -n '/^== InfiniBand/,/^== iWARP/{/^== iWARP/d;s/ *$//;p}' report >measured
sed -n '/^    == InfiniBand/,/^On iWARP/{/^On iWARP/d;s/^    //;p}' "$sources/docs/taxonomy.md" | cmp - measured >&2 ||
	wrong "the tables of docs/taxonomy.md are not what is measured"
ended
