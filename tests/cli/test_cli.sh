#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_cli.sh PROGRAM [few]: few states where there is nothing to find; so with TIDEMARK_QUICK, which also leaves out what
# waits for a process
#
# The command line: wrong input ends with its exit status, one line on stderr that
# says what is wrong, and nothing half-written; right input does what docs/cli.md says.
tidemark=$1 few=${2:-$TIDEMARK_QUICK} quick=$TIDEMARK_QUICK
few=${few:+--states 3000}
[ -x "$tidemark" ] || { echo "usage: test_cli.sh PROGRAM" >&2; exit 2; }
tests=$(cd "$(dirname "$0")/.." && pwd) || exit 70
. "$(dirname "$0")/../shell.sh"
unset NO_COLOR

# bad STATUS FRAGMENT ARGUMENT...: one line on stderr with this fragment.
bad() {
	code=$1 fragment=$2
	shift 2
	run "$code" "$tidemark" "$@"
	[ "$(wc -l <err)" -eq 1 ] || wrong "not one line on stderr: $called"
	grep -qF -e "$fragment" err || wrong "no '$fragment' on stderr: $called"
	case $(ls) in
	*.tmp.*) wrong "a temporary file is left: $called"; rm -f ./*.tmp.* ;;
	esac
}

# bad_ops FRAGMENT PRINTF-TEXT: the list on standard input and as a file.
bad_ops() {
	printf "$2" >list
	bad 2 "$1" crashtest --ops list
	checks=$((checks + 1))
	printf "$2" | "$tidemark" crashtest --ops - >out 2>err
	[ $? -eq 2 ] || wrong "exit status: $1, by standard input"
	grep -qF -e "$1" err || wrong "no '$1' on stderr, by standard input"
}

# bad_trace FRAGMENT SED-SCRIPT: a good trace, edited.
bad_trace() {
	sed "$2" good.trace >edited.trace
	bad 2 "$1" replay edited.trace
}

no_file() { [ ! -e "$1" ] || wrong "$1 exists: $called"; }

# A cell for each contract.
# OWN is of stores that have a judge of their own, ATOM and SSER of those with transactions, DURN, FENCE and AGREE
# of those with several servers.
contracts=$("$tidemark" list contracts | grep -vE '^(OWN|ATOM|SSER|DURN|FENCE|AGREE) ' | grep -cE '^[A-Z]+ ')

# Small enough to be quick, large enough to break DUR.
small='crashtest efactory --workload w --runs 20 --jobs 2'

commands() {
	bad 2 'did you mean "crashtest"?' crashtst
	bad 2 'no command "nonsense"' nonsense
	bad 2 'no command "two?lines"' 'two
lines'
	bad 2 'did you mean "stores"?' list store
	for command in '' crashtest fuzz replay shrink list mutants soak bench; do
		run 0 "$tidemark" $command --help
		has usage:
	done
}

names() {
	bad 2 'no store "efactry", did you mean "efactory"?' crashtest efactry
	bad 2 'there are: efactory' crashtest nothinglikeit
	bad 2 'no store has a variant "one_flsh", did you mean "one_flush"?' crashtest --variant one_flsh
	bad 2 'did you mean "ddio"?' crashtest --knob dio=on
	bad 2 'expected one of: ib, as the store needs unreliable connections' count herd --knob transport=iwarp
	bad 2 'no store has all these' crashtest --knob bg_blocks=on --knob scan_all=on
	bad 2 'did you mean "w-w-r"?' crashtest --workload w-w-rx
	bad 2 'expected at most' crashtest --workload ycsb-a:keys=64,ops=4096
	no_file traces
}

options() {
	bad 2 'did you mean "--states"?' crashtest --sttes 5
	bad 2 'fuzz: unknown option "--tme", did you mean "--time"?' fuzz --tme 5
}

lists() {
	mkdir folder
	bad_ops ':2: operation' '1 put k1 8\n1 puts k1 8\n'
	bad_ops ':1: a line of more than' "%01000000d\\n"
	run 0 sh -c "printf 'load k1 16\r\n1 get k1\r\n2 get k1\r\n' | '$tidemark' crashtest efactory --ops - --workload ycsb-c --runs 5 --no-traces"
	has 'Everything that was tried is as expected'
}

outputs() {
	mkfifo fifo
	for option in --json --junit --sarif; do
		bad 2 'fifo: a FIFO that nobody reads; expected' $small $option fifo
	done
	[ -s out ] && wrong 'the work was done before the file was checked'
	# Once it has a reader, that sees all of it.
	checks=$((checks + 1))
	exec 9<>fifo # it has a reader before it is checked, however late the other one is
	timeout 60 cat fifo >read.json 9>&- &
	reader=$!
	run 0 "$tidemark" $small --no-traces -q --json fifo
	while [ ! -s read.json ] && kill -0 $reader 2>/dev/null; do sleep 0.05; done
	exec 9>&-
	wait $reader
	[ $? -eq 0 ] && tail -n 1 read.json | grep -qx '}' || wrong 'no JSON in a FIFO'
	[ -p fifo ] || wrong 'the FIFO was replaced'
	rm fifo
	no_file traces
	if [ -c /dev/full ]; then
		bad 2 'No space left' $small -q --no-traces --json /dev/full
		[ -c /dev/full ] || wrong '/dev/full was replaced'
		checks=$((checks + 1))
		"$tidemark" list >/dev/full 2>err
		[ $? -eq 2 ] || wrong 'list >/dev/full'
		has 'standard output: No space left' err
	fi
	# A file-size limit of zero is a disk that is full for files; the pipes are not.
	checks=$((checks + 1))
	said=$( (ulimit -f 0; "$tidemark" $small --out full 2>&1; echo "status $?"; "$tidemark" $small --no-traces --json full.json 2>&1
		echo "status $?") | cat)
	[ "$(printf '%s\n' "$said" | grep -c 'File too large')" -eq 2 ] || wrong "file-size limit: $said"
	[ "$(printf '%s\n' "$said" | grep -c '^status 2$')" -eq 2 ] || wrong "file-size limit: $said"
	no_file full
	no_file full.json
	checks=$((checks + 1))
	{ "$tidemark" list; echo $? >status; } 2>err | head -n 1 >out
	[ "$(cat status)" -eq 0 ] && [ ! -s err ] || wrong 'list | head -n 1'
}

# Every store has room for many keys of full length.
many_keys() {
	run 0 "$tidemark" crashtest --all --workload ycsb-a:keys=64 --runs 1 --states 50 --no-traces
	has 'Everything that was tried is as expected'
}

campaign() {
	run 0 "$tidemark" $small --out new --json results.json
	# Whole lines, should it take long enough for one.
	[ -z "$(tr -dc '\r\033' <err)" ] || wrong "stderr is not a terminal, but has a line that changes: $called"
	has 'Everything that was tried is as expected'
	has 'DUR    -         broken'
	has 'states, bounded (random schedules)'
	has 'expected: the value is persisted'
	has "$tidemark replay new/efactory-DUR.trace"
	has 'trace written to new'
	grep -q "$(printf '\033')" out && wrong 'colours in a file'
	[ "$(grep -c '"contract"' results.json)" -eq "$contracts" ] || wrong 'results.json has not a cell for each contract'
	for field in store variant config promised verdict states exhaustive trace; do
		[ "$(sed -n '/^ "cells"/,/^ \]/p' results.json | grep -c "^   \"$field\":")" -eq "$contracts" ] || wrong "results.json: $field"
	done
	has '"trace": "new/efactory-DUR.trace"' results.json
	cp new/efactory-DUR.trace good.trace
	run 1 "$tidemark" crashtest --variant born_durable --workload w-r --runs 60 --no-traces
	has 'A PROMISE IS BROKEN'
	has 'Not everything is as it should be: efactory born_durable'
	run 0 "$tidemark" crashtest efactory --workload ycsb-c --runs 1 --out unneeded
	run 0 "$tidemark" crashtest erda --runs 1 --states 20 --no-traces # need not find what is expected to break
	no_file unneeded
	run 0 "$tidemark" $small --out 'two words' -q --doublecheck
	has "replay 'two words/efactory-DUR.trace'"
	run 0 "$tidemark" crashtest --knob bg_blocks=on --workload w --runs 5 --no-traces
	has 'efactory (bg_blocks=on)'
	grep -q '^erda' out && wrong 'erda has no such knob'
	"$tidemark" $small --no-traces --jobs 1 | grep -v 'states/s' >one
	"$tidemark" $small --no-traces --jobs 3 | grep -v 'states/s' >three
	cmp -s one three || wrong 'the number of jobs changes the results'
}

# line_of PATTERN: the number of the first line of out that begins so.
line_of() { grep -n -e "^$1" out | head -n 1 | cut -d: -f1; }

# More than two configurations have a matrix; below it stands what needs attention.
summary() {
	many='crashtest efactory --variant born_durable --variant client_no_flag --variant default --workload w-r --runs 60 --jobs 2'
	run 1 "$tidemark" $many --out summed --json summed.json
	tail -n 3 out | grep -q '^Not everything is as it should be: ' || wrong 'the verdict is not last'
	matrix=$(line_of '  *RDA LIN DUR') attention=$(line_of '[0-9]* results need attention$')
	told=$(line_of 'efactory born_durable RDA: A PROMISE IS BROKEN')
	[ "${matrix:-99}" -lt "${attention:-0}" ] && [ "$attention" -lt "${told:-0}" ] || wrong "order: $matrix, $attention, $told"
	grep -q '^  efactory born_durable   *! ' out || wrong 'the bug is not marked'
	grep -q '^  efactory   *[.] ' out || wrong 'what holds is not marked'
	[ "$(sed -n 's/^  .* replay \([^ ]*\) .*/\1/p' out | tee replays | wc -l)" -gt 3 ] || wrong 'no commands'
	while read -r trace; do
		run 1 "$tidemark" replay -q "$trace"
	done <replays
	run 1 "$tidemark" $many --out summed -v --json tables.json
	has '  RDA    promised  broken'
	grep -q 'attention' out && wrong 'a summary in spite of -v'
	grep -v '"seconds"' summed.json >one
	grep -v '"seconds"' tables.json | cmp -s - one || wrong '-v changes the JSON'
	run 1 "$tidemark" $many --no-traces
	has 'no traces were written'
	grep -q ' replay /' out && wrong 'a command without a trace'
	run 3 "$tidemark" crashtest efactory erda forca --exhaustive --workload w-r --runs 30 --no-traces
	has 'Not everything was looked at under 3 of 3 configurations'
	rm -rf summed
	[ -z "$few" ] || return
	run 0 "$tidemark" crashtest --runs 1 --states 20 --no-traces
	[ "$(wc -l <out)" -le 50 ] || wrong "$(wc -l <out) lines of the default campaign"
	[ "$(awk 'length > 100' out)" = '' ] || wrong 'a line of more than 100 columns'
	[ "$(sed '/docs.contracts.md/q' out | awk 'length > 80')" = '' ] || wrong 'a row of more than 80 columns'
	grep -q '^Nothing needs attention: ' out || wrong 'something needs attention'
	has 'Everything that was tried is as expected'
}

# xml FILE EXPRESSION: the JUnit file is well-formed, and the expression over its root r is true.
xml() {
	command -v python3 >/dev/null || return
	checks=$((checks + 1))
	python3 -c "import sys, xml.etree.ElementTree as t; r = t.parse(sys.argv[1]).getroot(); sys.exit(not ($2))" "$1" 2>err ||
		wrong "$1: not $2"
}

exhaustive() {
	search='crashtest efactory erda --exhaustive --preemptions 1'
	run 0 "$tidemark" $search --out searched --json searched.json
	has 'states, exhaustive'
	has 'all runs with at most 1 preemption'
	has 'reorder independent steps'
	grep -q bounded out && wrong 'something is bounded'
	[ "$(grep -c '"exhaustive": true' searched.json)" -eq $((2 * contracts)) ] || wrong 'not all cells are exhaustive'
	run 1 "$tidemark" replay -q searched/erda-MONO.trace
	"$tidemark" $search --no-traces --jobs 1 | grep -v 'states/s' >one
	"$tidemark" $search --no-traces --jobs 3 | grep -v 'states/s' >three
	cmp -s one three || wrong 'the number of jobs changes the results of a search'
	run 3 "$tidemark" crashtest efactory --exhaustive --workload w-r --runs 30 --no-traces --json part.json
	has 'bounded (the budget of runs or states was used up)'
	has 'Not everything within the bounds of --exhaustive was looked at'
	grep -q '"exhaustive": true' part.json && wrong 'exhaustive within a budget'
	run 1 "$tidemark" crashtest efactory --variant born_durable --exhaustive --workload w-r --runs 200 --no-traces
}

# "-" is standard output, which then has nothing else; outputs replace only what is of their kind.
standard_output() {
	run 0 "$tidemark" $small --no-traces --json -
	python3 -m json.tool <out >plain || wrong 'not JSON alone on standard output'
	[ -s plain ] || wrong 'no JSON'
	has 'Everything that was tried is as expected' err
	has "\"tidemark\": \"$("$tidemark" --version | cut -d' ' -f2)\""
	python3 -c 'import json, sys
for cell in json.load(sys.stdin)["cells"]:
	assert bool(cell["why"]) == (cell["verdict"] == "broken"), cell' <out 2>>err || wrong 'a cell that holds says why it breaks'
	run 0 "$tidemark" $small --no-traces --junit - --json results.json
	cp out piped.xml
	has 'Everything that was tried is as expected' err
	xml piped.xml 'float(r.get("time")) > 0'
	run 1 "$tidemark" replay -q good.trace --html -
	[ "$(head -c 15 out)" = '<!doctype html>' ] && tail -n 1 out | grep -q '</html>' || wrong 'not the page alone'
	has 'broken DUR' err
	"$tidemark" $small -q --no-traces --json - 2>err | head -n 1 >out
	[ "$(cat out)" = '{' ] || wrong 'no JSON in a pipe'
	[ "$(grep -c '^tidemark' err)" -eq 0 ] || wrong 'a reader that has seen enough is an error'
	# An earlier output of the same kind is replaced, nothing else is (test_bad_inputs.sh).
	run 0 "$tidemark" $small --no-traces --json results.json --junit piped.xml
	run 1 "$tidemark" replay -q good.trace --html page.html
	run 1 "$tidemark" replay -q good.trace --html page.html
	# A bad file does not keep the others from being replayed.
	run 2 "$tidemark" replay -q good.trace missing good.trace
	[ "$(grep -c 'broken DUR' out)" -eq 2 ] || wrong 'the others were not replayed'
	rm -f plain piped.xml page.html
}

junit() {
	run 0 "$tidemark" $small --no-traces --junit good.xml
	xml good.xml 'r.get("tests") == "'"$contracts"'" and r.get("failures") == "0" and len(r.findall(".//testcase")) == '"$contracts"
	xml good.xml 'r[0].get("name") == "efactory" and r[0].find("testcase").get("classname") == "efactory" and r[0].find("testcase").get("name") == "RDA"'
	run 1 "$tidemark" crashtest efactory --variant born_durable --workload w-r --runs 60 --out 'a<&">b' --junit bad.xml
	has 'it takes bug=born_durable'
	xml bad.xml 'int(r.get("failures")) == len(r.findall(".//failure")) > 0'
	xml bad.xml '"replay" in r.find(".//failure").text and "a<&\">b" in r.find(".//failure").text'
	# A name that is no UTF-8: files have question marks, the command to copy has it as it is.
	run 1 "$tidemark" crashtest efactory --variant born_durable --workload w-r --runs 9 --out "$(printf 'a\377')" --sarif bad.sarif
	has "replay 'a$(printf '\377')/efactory-born_durable-"
	grep -q '"trace": "a?/efactory-born_durable-' bad.sarif || wrong 'SARIF has no trace of such a name'
}

fuzzes() {
	quick="fuzz efactory --runs 100 --jobs 2 --no-traces -q"
	mkdir regress
	cp good.trace regress/good.trace
	run 0 "$tidemark" $quick --regress regress --json fuzz.json --junit fuzz.xml
	[ ! -s err ] || wrong "something on stderr: $called"
	has '1 trace of regress run again: all as recorded'
	has '0 new failures, 0 known ones'
	has '  100 runs, '
	has '"as_recorded": true' fuzz.json
	xml fuzz.xml 'r.get("tests") == "'$((contracts + 1))'" and r.get("failures") == "0" and len(r) == 2'
	sed '/^deviate line/d' good.trace >regress/other.trace
	run 1 "$tidemark" $quick --regress regress --junit fuzz.xml
	has '1 not as recorded'
	has 'regress/other.trace: DUR is recorded as broken, and is not broken any more'
	has "$tidemark replay regress/other.trace"
	xml fuzz.xml 'r.get("failures") == "1" and "not broken any more" in r.find(".//failure").get("message")'
	sed 's/return 1/return 9/' good.trace >regress/other.trace
	run 1 "$tidemark" $quick --regress regress
	has 'does not apply any more'
	sed 's/^variant .*/variant default/; s/^broken .*/broken none/' "$tests/causes/efactory-bg_no_flush-MONO.trace" >regress/other.trace
	run 0 "$tidemark" $quick --regress regress
	rm -r regress/other.trace
	# A corpus grows, is read again, and rubbish in it is named.
	run 0 "$tidemark" $quick --corpus corpus
	kept=$(ls corpus/efactory | wc -l)
	[ "$kept" -gt 1 ] || wrong "$kept inputs kept"
	: >corpus/efactory/empty
	head -c 1000 /dev/zero >corpus/efactory/long
	mkdir corpus/efactory/folder
	run 0 "$tidemark" $quick --corpus corpus
	[ "$(wc -l <err)" -eq 3 ] || wrong 'not a line for each bad file of the corpus'
	has 'corpus/efactory/empty: empty; left out of the corpus' err
	has 'corpus/efactory/long: too long for an input; left out' err
	has 'corpus/efactory/folder: not a file; left out' err
	said=$( (ulimit -f 0; "$tidemark" $quick --corpus full 2>&1; echo "status $?") | cat)
	[ "$(printf '%s\n' "$said" | grep -c 'full/efactory/.*File too large')" -eq 1 ] || wrong "file-size limit: $said"
	[ "$(printf '%s\n' "$said" | grep -c '^status 2$')" -eq 1 ] || wrong "file-size limit: $said"
	[ -z "$(ls -A full/efactory)" ] || wrong 'half an input'
}

# What is found once is known from then on, from the folder of traces as from that of regressions.
fuzz_finds() {
	again='fuzz efactory --variant get_no_flush --runs 512 --jobs 2 --out found'
	run 1 "$tidemark" $again --junit fuzz.xml --json fuzz.json
	has 'new    MONO: '
	traces=$(ls found | wc -l)
	[ "$traces" -gt 0 ] || wrong 'no trace'
	xml fuzz.xml 'int(r.get("failures")) > 0 and "replay found/" in r.find(".//failure").text'
	has '"new": true' fuzz.json
	for trace in found/*.trace; do
		run 1 "$tidemark" replay -q "$trace"
	done
	run 1 "$tidemark" $again --seed 8
	has ' 0 new failures'
	[ "$(ls found | wc -l)" -eq "$traces" ] || wrong 'one bug has two traces'
	run 0 "$tidemark" $again --seed 8 --regress found
	has ' 0 new failures'
	"$tidemark" $again --no-traces --jobs 1 --seed 3 --regress regress | sed 's/; [0-9.]* s$//' >one
	"$tidemark" $again --no-traces --jobs 3 --seed 3 --regress regress | sed 's/; [0-9.]* s$//' >three
	cmp -s one three || wrong 'the number of jobs changes what fuzz finds'
}

# An interruption ends the session, and what was found is there.
fuzz_ends() {
	checks=$((checks + 1))
	"$tidemark" fuzz efactory -q --time 1h --no-traces --jobs 2 --corpus interrupted-corpus --json interrupted-fuzz.json >out 2>err &
	pid=$!
	while kill -0 $pid 2>/dev/null && [ -z "$(ls interrupted-corpus/efactory 2>/dev/null)" ]; do
		sleep 0.05
	done
	kill -TERM $pid
	wait $pid
	[ $? -eq 0 ] || wrong 'SIGTERM during fuzz'
	has '0 new failures'
	has '"interrupted": true' interrupted-fuzz.json
	[ ! -s err ] || wrong 'SIGTERM during fuzz: something on stderr'
}

replays() {
	run 1 "$tidemark" replay good.trace
	for words in '== the run' '== the power fails' '== recovery' '== verdict' 'no flush covers' 'survived as version 0 of' 'broken DUR'; do
		has "$words"
	done
	[ "$(awk 'length > 140' out | wc -l)" -eq 0 ] || wrong 'a line of the story is longer than 140'
	run 1 "$tidemark" replay --brief good.trace
	grep -q ': post ' out && wrong '--brief tells posts'
	run 1 "$tidemark" replay -q --repeat 20 good.trace
	[ "$(cat out)" = 'good.trace: broken DUR, every time' ] || wrong '-q --repeat 20'
	sed '/^deviate line/d' good.trace >fixed.trace
	run 4 "$tidemark" replay -q fixed.trace
	has 'fixed: DUR'
	# The store that is mended flushes what the trace says was lost.
	sed 's/^variant .*/variant default/' "$tests/causes/efactory-bg_no_flush-MONO.trace" >mended.trace
	run 4 "$tidemark" replay mended.trace
	has ': the line is durable when the power fails, or is not read'
	has 'fixed: MONO'
	sed -i 's/^broken .*/broken none/' mended.trace
	run 0 "$tidemark" replay -q mended.trace
	sed 's/domain=dmp/domain=wsp/' good.trace >saved.trace
	run 4 "$tidemark" shrink saved.trace
	has 'saved.trace: fixed'
	run 1 "$tidemark" replay -q fixed.trace good.trace
	sed '/^deviate/d; s/^broken.*/broken none/' good.trace >none.trace
	run 0 "$tidemark" replay -q none.trace
	bad 2 'expected a trace of a broken contract' shrink none.trace
	checks=$((checks + 1))
	"$tidemark" replay -q - <good.trace >out 2>err
	[ $? -eq 1 ] || wrong 'replay -'
	sed 's/^client 1: .*/&, put k1 40, get k1/' good.trace >long.trace
	run 0 "$tidemark" shrink long.trace -o short.trace
	has 'short.trace: 1 operation, '
	run 1 "$tidemark" replay -q short.trace
}

bad_traces() {
	bad_trace 'this deviation does not apply' 's/return 1/return 9/'
	bad_trace "$(grep -n 'return 1' good.trace | cut -d: -f1): this deviation does not apply" 's/return 1/return 9/'
	bad_trace 'is no operation of this trace' 's/c1.put1/c1.put7/'
}

# children PID: of that process.
children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }

# A campaign that would take long, in the background; sets pid and workers, all of them.
long_campaign() {
	checks=$((checks + 1))
	"$tidemark" crashtest -q --jobs 2 --runs 100000000 --states 1000000000 --out interrupted --json interrupted.json >out 2>err &
	pid=$! workers=
	while [ "$(echo $workers | wc -w)" -lt 2 ] && kill -0 $pid 2>/dev/null; do
		sleep 0.05
		workers=$(children $pid)
	done
}

# gone PID...: no such process, or one that has not been waited for.
gone() {
	for p; do
		tries=0
		while [ $tries -lt 1200 ] && grep -qs '^State:.*[^Z] (' "/proc/$p/status" && ! grep -qs '^State:.*Z (' "/proc/$p/status"; do
			sleep 0.05
			tries=$((tries + 1))
		done
		[ $tries -lt 1200 ] || wrong "worker $p is still there"
	done
}

signals() {
	[ -r "/proc/$$/task/$$/children" ] || return
	long_campaign
	kill -KILL $workers
	wait $pid 2>>ended
	[ $? -eq 70 ] || wrong 'dead workers are not status 70'
	has 'a worker process died' err
	[ "$(wc -l <err)" -eq 1 ] || wrong 'dead workers: not one line'
	long_campaign
	kill -TERM $pid
	wait $pid 2>>ended
	[ $? -eq 143 ] || wrong 'SIGTERM'
	[ ! -s err ] || wrong 'SIGTERM: something on stderr'
	gone $workers
	has '"complete": false' interrupted.json
	no_file interrupted
}

bugs() {
	bad 2 'did you mean "no_flip"?' mutants no_flp
	bad 2 'did you mean "nic_bounds"?' mutants nic_bound
	run 0 "$tidemark" mutants tail_low crash_no_drain $few --json bugs.json
	has 'found 2 of 2'
	has 'clean'
	grep -q '"found": false' bugs.json || wrong 'a control that finds nothing is in the JSON'
	# Where the first states do not do, the bug is not found, and that is said.
	run 1 "$tidemark" mutants keep_duplicates --states 10 --junit bugs.xml
	xml bugs.xml '" mutants keep_duplicates" in r.find(".//failure").text and len(r.findall(".//testcase")) > 1'
	has 'NOT FOUND'
	has 'found 0 of 1'
	run 0 "$tidemark" list bugs
	has 'mutant=pm_fence_all; makes the tester miss bugs'
	# A bug of our own can be asked for like any knob, and stands in the trace.
	run 1 "$tidemark" crashtest efactory --workload wr --runs 1 --knob mutant=pm_fence_one --out own
	has 'A PROMISE IS BROKEN'
	grep -lq 'mutant=pm_fence_one' own/*MONO*.trace || wrong 'mutant is not in the trace'
	rm -rf own bugs.json
	# A SEND of a queue pair that is gone lands in a region that may be gone, too.
	run 0 "$tidemark" crashtest remotelog --runs 30 --knob mutant=nic_land_after_destroy --no-traces
}

soaks() {
	bad 2 'expected whole seconds, such as 90, or 90s, 30m or 8h' soak --time soon
	run 0 "$tidemark" soak --rounds 3 --jobs 2 --out soaked
	has 'Nothing broke that should hold.'
	has 'too few rounds to say whether it grows'
	no_file soaked
	rounds=12
	[ -z "$quick" ] || rounds=2 # one of them breaks
	run 1 "$tidemark" soak --rounds $rounds --knob mutant=pm_fence_one --out soaked
	has ' BROKE what should hold'
	for trace in soaked/*.trace; do
		run 1 "$tidemark" replay -q "$trace"
	done
	rm -rf soaked
}

claims() {
	bad 2 'no claim "P322", did you mean "P32"?' claims P322
	run 0 "$tidemark" claims --list
	grep -q '^P32 ' out || wrong 'claims --list does not name P32'
	run 0 "$tidemark" claims P31 -q --out claimed --json claims.json --junit claims.xml
	xml claims.xml 'r[0].get("name") == "P31" and len(r.findall(".//testcase")) > 1 and not r.findall(".//failure")'
	grep -q '^1 claim, .* 0 differ' out || wrong 'claims: no summary'
	run 1 "$tidemark" replay claimed/claims-P31-2-KEEP.trace
	grep -q '"verdict": "as expected"' claims.json || wrong 'claims: JSON'
	run 0 "$tidemark" claims P31 -q --jobs 1 --out claimed-one
	cmp -s claimed/claims-P31-2-KEEP.trace claimed-one/claims-P31-2-KEEP.trace || wrong 'claims: jobs matter'
	run 0 "$tidemark" claims P31 -q --no-traces --json none.json
	run 3 "$tidemark" claims P31 -q --no-traces --states 1
	run 1 "$tidemark" ablate octopus --runs 1 --states 10 --workload w --one-config -q --no-traces --junit ablated.xml
	has 'not explained: the store'
	xml ablated.xml 'r[0].get("name") == "octopus" and 0 < len(r.findall(".//failure")) < len(r.findall(".//testcase"))'
}

terminal() {
	command -v script >/dev/null || return
	escape=$(printf '\033')
	checks=$((checks + 1))
	script -qec "$tidemark $small --no-traces" /dev/null >out 2>err </dev/null
	grep -q "${escape}\[3" out || wrong 'no colours on a terminal'
	has 'of 1 workload,'
	NO_COLOR=1 script -qec "$tidemark $small --no-traces -q" /dev/null >out 2>err </dev/null
	grep -q "$escape" out && wrong 'NO_COLOR and -q'
}

slow=
[ -n "$quick" ] || slow='fuzz_ends signals'
for test in commands names options lists outputs many_keys campaign standard_output summary exhaustive junit fuzzes fuzz_finds replays bad_traces claims bugs soaks terminal $slow; do
	: >err
	$test
done
ended
