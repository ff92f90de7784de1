#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_forever.sh PROGRAM
#
# tidemark fuzz --forever: its folder can be stopped, copied, merged and gone on with, whatever happened to it.
tidemark=$1
[ -x "$tidemark" ] || { echo "usage: test_forever.sh PROGRAM" >&2; exit 2; }
running=
prefix="$tidemark fuzz --jobs 2 --forever"
. "$(dirname "$0")/../shell.sh"
trap '[ -z "$running" ] || kill -9 $running; rm -rf "$here"' EXIT

# One line, with these words.
says() {
	[ "$(wc -l <err)" -eq "$1" ] || wrong "$(wc -l <err) lines on stderr instead of $1: $called"
	grep -qF -e "$2" err || wrong "no '$2' on stderr: $called"
}

# start DIR WORD...: a session that does not end, once it has written its inputs.
start() {
	"$tidemark" fuzz --jobs 2 --forever "$@" >out 2>err </dev/null &
	running=$! called="--forever $*"
	had=$(inputs "$1")
	while [ "$(inputs "$1")" -le "$had" ]; do
		kill -0 $running 2>/dev/null || { wrong "it ended: $called"; break; }
		sleep 0.02
	done
}

# stop SIGNAL STATUS
stop() {
	checks=$((checks + 1))
	kill "-$1" $running
	wait $running 2>/dev/null
	status=$?
	running=
	[ $status -eq "$2" ] || wrong "exit status $status instead of $2 after SIG$1: $called"
}

inputs() { find "$1/corpus" -type f 2>/dev/null | wc -l; }
names() { (cd "$1" && find corpus failures -type f | sort); }
sum() { sed -n "s/^ \"$2\": \([0-9]*\),\$/\1/p" "$1/sums.json"; }
session() { sum "$1" session; }
# It is in order: sums, nothing half-written.
in_order() {
	[ "$(tail -n 1 "$1/sums.json")" = '}' ] || wrong "half of the sums in $1: $called"
	[ -z "$(find "$1" -name '*.tmp.*')" ] || wrong "a temporary file is left in $1: $called"
}
same() { [ "$1" = "$2" ] || wrong "$1 instead of $2: $3"; }

# Stopped, and gone on with.
start a efactory
"$tidemark" fuzz --forever a --runs 1 >second 2>err2
[ $? -eq 2 ] || wrong 'a second process is not refused'
[ "$(wc -l <err2)" -eq 1 ] && grep -q "a: process $running is fuzzing there" err2 || wrong "second process: $(cat err2)"
stop TERM 0
in_order a
names a >before
runs=$(sum a runs)
run 0 a --runs 40
in_order a
names a >after
[ -z "$(comm -23 before after)" ] || wrong 'an input is gone'
same "$(session a)" 2 'the session'
same "$(sum a runs)" $((runs + 40)) 'runs of both sessions'
same "$(sum a inputs)" "$(inputs a)" 'inputs in the sums'
grep -q "^2 sessions, .* s, $((runs + 40)) runs; 0 causes" out || wrong 'the last line does not count sessions and runs'

# Killed; half a file is left.
start a
stop KILL 137
echo half >a/corpus/efactory/0123.tmp.99
names a | grep -v tmp >before
run 0 a --runs 40
in_order a
names a >after
[ -z "$(comm -23 before after)" ] || wrong 'an input is gone after SIGKILL'
same "$(session a)" 4 'the session after one that was killed'

# Copied to another place: no file knows where it was.
if grep -rqF "$here" a; then wrong 'a file names the folder'; fi
mkdir -p elsewhere
cp -r a elsewhere/b
(cd elsewhere && "$tidemark" fuzz --forever b --runs 40 >../out 2>../err) || wrong 'a copy does not go on'
same "$(session elsewhere/b)" 5 'the session of a copy'

# The same seed and runs give the same folder; another seed another one.
run 1 c efactory --variant get_no_flush --runs 700
"$tidemark" fuzz --jobs 1 --forever d efactory --variant get_no_flush --runs 700 >out 2>err
names c >c.names
names d | cmp -s - c.names || wrong 'two folders of one seed differ'
run 0 e efactory --variant get_no_flush --runs 150 --seed 7
names e | cmp -s - c.names && wrong 'two folders of two seeds do not differ'
grep -q '"seed": 7' e/campaign.json || wrong 'the seed is not kept'
# A session does not draw what another one has drawn.
sed -i 's/"session": 1/"session": 2/' d/sums.json
run 1 c --runs 600
run 1 d --runs 600
[ "$(inputs c)" -gt "$(wc -l <c.names)" ] || wrong 'a second session adds nothing'
names c >c.names
names d | cmp -s - c.names && wrong 'the second session and the third do the same'

# Failures: the last line says where they are, and they replay.
grep -q 'causes\? of unexpected failures in all: d/failures$' out || wrong "the last line: $(tail -n 1 out)"
for trace in c/failures/*.trace; do
	"$tidemark" replay "$trace" >out 2>err </dev/null
	[ $? -eq 1 ] || wrong "replay $trace"
done

# Merged: all inputs of both, and one trace for each cause.
cp -rn e/corpus e/failures c
cp "$(find c/failures -name '*.trace' | head -n 1)" c/failures/again.trace
ls c/failures >traces
{ cat c.names && names e; } | sort -u | grep corpus >both
run 1 c --runs 40
in_order c
names c | grep corpus >after
[ -z "$(comm -23 both after)" ] || wrong 'an input was lost by merging'
grep -q 'another trace has its cause' err || wrong 'two traces of one cause are kept'
while read -r trace; do
	[ -e "c/failures/$trace" ] || [ -e "c/set-aside/failures-$trace" ] || wrong "$trace is gone"
done <traces

# Words that the folder contradicts.
run 2 a erda
says 1 'another campaign'
run 2 a --seed 3
says 1 'another campaign'
run 2 a --corpus x
says 1 'expected no --corpus'

# Garbage.
cp -r a g
: >g/corpus/efactory/empty
head -c 5000 /dev/zero >g/corpus/efactory/long
mkdir g/corpus/efactory/folder
ln -s nowhere g/corpus/efactory/link
echo 'tidemark-trace 99' >g/failures/other.trace
sed 's/^broken .*/broken KEEP: it was mended/' "$(find c/failures -name '*.trace' | head -n 1)" >g/failures/mended.trace
sed 's/"runs": [0-9]*/"runs": 1e300/' a/sums.json >g/sums.json
: >g/unknown
run 0 g --runs 40
says 7 'set-aside/failures-mended.trace'
same "$(find g/set-aside -mindepth 1 | wc -l)" 7 'what was set aside'
in_order g
run 0 g --runs 40
same "$(wc -l <err)" 0 'lines on stderr afterwards'
echo '{"format": 1,' >g/campaign.json
run 2 g
says 1 'g/campaign.json:2:'
echo '{"format": 1, "seed": 1, "began": 1, "stores": ["gone", "efactory"], "variants": [], "knobs": []}' >g/campaign.json
run 0 g --runs 40
says 1 'gone is left out'
echo '{"format": 1, "seed": 1, "began": 1, "stores": ["gone"], "variants": [], "knobs": []}' >g/campaign.json
run 2 g
says 1 'none of its stores is here'
: >file
run 2 file
says 1 'not a folder'

# A full disk: one line, and the folder goes on.
cp -r a f
called='a full disk'
checks=$((checks + 1))
{
	(ulimit -f 0; exec "$tidemark" fuzz --forever f --runs 40)
	echo $? >&3
} 2>&1 3>status | cat >err # whose pipe has no limit
[ "$(cat status)" -eq 2 ] || wrong 'the exit status of a full disk'
says 1 'File too large'
run 0 f --runs 40
in_order f

ended
