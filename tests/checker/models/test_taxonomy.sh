#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_taxonomy.sh PROGRAM SOURCES
#
# `tidemark taxonomy` on some methods and some hardware: it equals the table, a table that is wrong
# is noticed, and so is hardware that is; traces replay to their verdicts; advice is what the papers'
# tables say; bad input is refused. test_taxonomy_all.sh runs all of it.
tidemark=$(realpath "$1")
sources=$(realpath "$2")
prefix="$tidemark taxonomy -q"
. "$(dirname "$0")/../../shell.sh"
table=$sources/scenarios/taxonomy/taxonomy.txt

# --- as the table says ---

run 0 w2 w3 cw2p cw3 s3 --workload w.40 --json a.json --junit a.xml --jobs 1
has "120 of 120 cells equal scenarios/taxonomy/taxonomy.txt"
has "  cw3      LO   LO   O    O      ok   ok   ok   ok     ok   ok   ok   ok"
grep -q ' tests="120" failures="0"' a.xml || wrong "a.xml"
traces=$(grep -c ' replay traces/' out)
[ "$traces" -gt 50 ] && [ "$(find traces -name '*.trace' | wc -l)" -eq "$traces" ] || wrong "$traces traces told"
grep -v '[0-9] s, [0-9]* job' out >one
cp -r traces traces.one
run 0 w2 w3 cw2p cw3 s3 --workload w.40 --json b.json --jobs 3
grep -v '[0-9] s, [0-9]* job' out >three
cmp one three || wrong "the number of jobs changes the report"
diff -r traces traces.one || wrong "the number of jobs changes traces"
strip() {
	tr -d '\n' <"$1" | sed 's/"seconds": *[0-9.e-]*//; s/"jobs": *[0-9]*//'
}
[ "$(strip a.json)" = "$(strip b.json)" ] || wrong "the number of jobs changes the JSON"

# Each trace breaks what its name says.
for trace in traces/*.trace; do
	contract=${trace##*-}
	"$tidemark" replay -q "$trace" >out 2>err
	[ $? -eq 1 ] || wrong "replay $trace"
	grep -q "broken ${contract%.trace}\$" out || wrong "another contract: $trace"
done

# What a switch changes, as the papers' footnotes have it.
run 0 cw3 ci3 cw2 w2 --knob iio_in_mhp=off --knob domain=mhp --knob ddio=off --workload w.40 --no-traces
has "16 of 16 cells equal scenarios/taxonomy/taxonomy.txt"
has "  cw3                                      O    O"
has "  ci3                                      O    O"
run 0 s3 --knob flush_covers_send=off --knob rqwrb=pm --workload w.40 --no-traces
has "12 of 12 cells equal"
run 0 w3 cw4 s4 --knob ack_early=off --knob domain=mhp --no-traces --workload w.40
has "24 of 24 cells equal"
run 0 w3 cw4 s4 cw3 --knob ack_early=off --knob iio_in_mhp=off --knob domain=mhp --no-traces --workload w.40
has "32 of 32 cells equal"
# A READ in the place of a FLUSH does as well; on another connection it does not, and the table is silent.
run 0 w2 cw2 cw3 --knob flush=read --no-traces --workload w.40
has "72 of 72 cells equal"
run 0 w2 --knob flush=read_other_qp --no-traces --workload w.40
has "24 cells were not compared"

# --- not as the table says ---

# The number of the line is in the message, and there is a command that replays what was measured.
line=$(grep -n '^row w2 ' "$table" | cut -d: -f1)
sed 's/^row w2 .*/row w2 ib,iwarp : ok L ok ok ok ok ok ok ok ok ok ok/' "$table" >wrong.txt
run 1 w2 --table wrong.txt --workload w.40
has "w2 at domain=dmp ddio=on rqwrb=dram transport=ib is L; wrong.txt:$line says ok"
has "22 of 24 cells equal wrong.txt"
trace=$(sed -n '/^DIFFERS/,$s/.* replay \(traces.*\)/\1/p' out | head -n 1)
"$tidemark" replay -q "$trace" >out 2>err
[ $? -eq 1 ] || wrong "the difference's trace does not replay: $trace"
sed 's/^row w2 .*/row w2 ib,iwarp : L L L ok ok ok ok ok ok ok ok ok/' "$table" >wrong.txt
run 1 w2 --table wrong.txt --workload w.40 --no-traces --junit wrong.xml
has "w2 at domain=dmp ddio=off rqwrb=dram transport=ib is ok; wrong.txt:$line says L"
grep -q ' failures="2"' wrong.xml || wrong "wrong.xml"
# A choice that is wrong.
sed 's/^choice singleton send      *ib .*/choice singleton send ib : s1 s1 s1 s1 s2 s3 s2 s3 s2 s4 s2 s4/' "$table" >wrong.txt
run 1 --knob domain=dmp --knob ddio=off --knob transport=ib --table wrong.txt --workload w.40 --no-traces
has "the cheapest for one update by send at domain=dmp ddio=off rqwrb=pm transport=ib is s3; the papers' table gives s1"

# Hardware that is wrong: each of these makes another matrix.
# other KNOB METHOD DOMAIN DDIO TRANSPORT: this cell differs.
other() {
	run 1 "$2" --knob "mutant=$1" --knob "domain=$3" --knob "ddio=$4" --knob "transport=$5" --knob rqwrb=pm \
		--workload w.40 --no-traces
	has "DIFFERS: $2 at domain=$3"
}
other pm_visible_durable w2 dmp on ib
other pm_ddio_ignored w2 dmp on ib
other pm_caches_lost w2 mhp on ib
other pm_nic_buffers_lost w3 wsp on ib
other pm_flush_ignored w1 dmp on ib
other nic_flush_ignored w2 dmp off ib
other nic_write_overtakes cw3 mhp on ib
other nic_never_overtakes cw2p dmp off ib
other nic_done_is_visible w3 mhp on ib
other nic_receive_early w1 dmp on ib
other nic_iwarp_waits w3 wsp on iwarp
other nic_atomic_write_posted cw2 dmp off ib
other pm_nic_durable w2 dmp on ib
other pm_commit_cached wc dmp on ib

# --- could not tell ---

run 3 w1 --states 2 --no-traces
has "not searched to the end"
run 1 cw2p --preemptions 0 --no-traces --knob domain=dmp --knob ddio=off # the bound is too small to see it

# --- advice ---

# advice SINGLETON COMPOUND SWITCH...: the cheapest of each kind.
advice() {
	one=$1 two=$2
	shift 2
	run 0 --advise "$@" --workload w.40
	got=$(awk '/^  cheapest /{printf "%s ", $2}' out)
	[ "$got" = "$one $two " ] || wrong "advice is $got, not $one $two: $called"
}
advice i1 cs1
has "domain=dmp ddio=on rqwrb=dram transport=ib"
has "i2 would be cheaper, but is not sound here (L):"
# what would be cheaper comes with its trace
trace=$(sed -n 's/.* replay \(traces.*-i2-.*\)/\1/p' out | head -n 1)
"$tidemark" replay -q "$trace" >out 2>err
[ $? -eq 1 ] || wrong "the advice's trace does not replay: $trace"
advice w2 cw2 ddio=off rqwrb=pm
has "    1 round trip; responder's CPU: 0 acts while the requester waits, 0 later; 4 messages, 104 bytes"
has "       3  requester        ATOMIC_WRITE b"
has "cw3 would be cheaper, but is not sound here (O):"
advice w2 cw3 domain=mhp
has "w3 would be cheaper, but is not sound here (L):"
has "  Send       s2 "
advice w2 cw3 domain=mhp ddio=off rqwrb=pm
has "  Send       s3 "
advice w2 cw2 domain=mhp ddio=off iio_in_mhp=off
advice w3 cw4 domain=wsp rqwrb=pm
has "nothing is cheaper"
has "  Send       cs4 "
advice w2 cw3 domain=wsp transport=iwarp
run 0 --advise ddio=off rqwrb=pm flush_covers_send=off --no-traces --workload w.40
has "  Send       s1 "

# --- bad input ---

bad 'no method "w9", did you mean "w' w9
bad "expected NAME=VALUE" --advise dmp
bad "expected one of: dmp mhp wsp" --advise domain=pmd
bad "named twice" --advise ddio=on ddio=off
bad "methods are named by themselves" --knob method=w1
bad 'workload "wx"' --workload wx
bad "at most 8 operations" --workload ycsb-a
printf 'row w1 ib : ok\n' >short.txt
bad "short.txt:1: 1 words after the colon; expected 12" --table short.txt
bad "--advise goes without" --advise --json a.json
run 0 --help
has "usage: tidemark taxonomy"

ended
