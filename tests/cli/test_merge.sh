#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_merge.sh TIDEMARK SOURCES
#
# A campaign that is shared out among any number of shards, and merged in any order, says and writes what one machine
# says and writes, but for how long it took; a shard that is missing, cut short or damaged is named, and the command
# that is printed does what is missing and no more; what does not belong together is refused.
. "$(dirname "$0")/own.sh"
# What a report says of time and of memory.
quiet='[0-9]+ images a second|states in [0-9.]* s, .*| +[0-9.]+ s([ ,]|$)| *[0-9]+ states/s|memory of a process.*|median.*slowest.*'

# whole DIR COMMAND...: on one machine. Traces go to DIR/out, which is named in what is printed.
whole() {
	local dir=$1 status=0
	shift
	mkdir -p "$dir"
	(cd "$dir" && tidemark "$@" -q >text 2>err </dev/null) || status=$?
	echo $status >"$dir/status"
}
# shards DIR N COMMAND...
shards() {
	local dir=$1 n=$2 i
	shift 2
	mkdir -p "$dir"
	for ((i = 0; i < n; i++)); do
		(cd "$dir" && tidemark "$@" --shard $i/$n --results part$i >out 2>&1 </dev/null) || fail "shard $i/$n of $*"
	done
	[ "$(ls "$dir")" = "$(seq -f part%g 0 $((n - 1)) | cat - <(echo out) | sort)" ] || fail "shards of $* wrote $(ls "$dir")"
}
# merged DIR FILE...: the report in DIR.
merged() {
	local dir=$1 status=0
	shift
	(cd "$dir" && rm -rf out && tidemark merge "$@" -q >text 2>err </dev/null) || status=$?
	echo $status >"$dir/status"
}
plain() { sed -E "s#($quiet)##g" "$1"; }
timeless() { sed -E '/"slowest": \{/,/\}/d; /seconds/d; s/ (time|timestamp)="[^"]*"//g' "$1"; }
# equal ONE OTHER: status, text, JSON, JUnit, traces.
equal() {
	local file
	cmp "$1/status" "$2/status" || fail "another status: $2, $(cat "$2/err")"
	cmp <(plain "$1/text") <(plain "$2/text") || fail "another text: $2"
	cmp "$1/err" "$2/err" || fail "another text of errors: $2"
	for file in json junit; do
		[ ! -e "$1/$file" ] || cmp <(timeless "$1/$file") <(timeless "$2/$file") || fail "another $file: $2"
	done
	[ ! -e "$1/covered" ] || diff "$1/covered/coverage.info" "$2/covered/coverage.info" || fail "covered otherwise: $2"
	[ ! -e "$1/traces" ] || diff -r "$1/traces" "$2/traces" || fail "other traces: $2"
}
# campaign NAME SHARDS COMMAND...: in each of these numbers of shards.
campaign() {
	local name=$1 numbers=$2 n
	shift 2
	whole "$name" "$@"
	plain "$name/text" | grep -q . || fail "nothing is printed: $*, $(cat "$name/err")"
	for n in $numbers; do
		shards "$name-$n" $n "$@"
		merged "$name-$n" $(seq -f part%g 0 $((n - 1)) | shuf --random-source=<(yes $n))
		equal "$name" "$name-$n"
	done
}

crashtest=(crashtest erda rfp --knob domain=mhp --runs 10 --states 100 --json json --junit junit --verbose)
campaign crashtest "1 2 3 7" "${crashtest[@]}"
grep -q trace crashtest/json || fail 'no trace is written: is there something to compare?'

# What was covered, too: lines and cuts are those of all units, each once.
for store in mine yours; do
	run 0 tidemark new-store $store
	run 0 tidemark cc --coverage -g -o $store.so $store/$store.c
done
campaign coverage "3" crashtest ../mine.so ../yours.so --workload w --workload w-r --knob domain=mhp --runs 4 --states 60 --no-traces --coverage=covered
grep -q '^DA:[0-9]*,[1-9]' coverage/covered/coverage.info || fail 'nothing is covered: is there something to compare?'

campaign taxonomy "2 5" taxonomy cw2 cw3 --states 300 --json json --junit junit
grep -q trace taxonomy/json || fail 'no trace is written: is there something to compare?'
campaign mutants "3" mutants rfp --states 300 --json json
campaign claims "3" claims P31 P21 P2 --states 200 --json json

# A log with a thousand images, of which some are bad: the number at 0 says how many lines are there.
cat >checker.c <<'END'
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char pool[4096];
	int fd = open(argv[argc - 1], O_RDONLY), lines = 0;
	if (fd < 0 || read(fd, pool, sizeof(pool)) != sizeof(pool))
		return 9;
	for (int i = 64; i < 4096; i += 64)
		lines += pool[i] == 1;
	return pool[0] > lines;
}
END
"${CC:-cc}" -o checker checker.c
truncate -s 4096 pool
{
	printf '%s' "START|REGISTER_FILE;$here/pool;0x10000000;0x1000;0x0"
	for i in {1..9}; do
		printf '|STORE;0x%x;0x1;0x1;set (app.c:%d)|STORE;0x10000000;%#x;0x1;count (app.c:9)' $((0x10000000 + 64 * i)) $i $i
	done
	echo '|STOP'
} >log
campaign images "2 5" images "$here/log" --recover "$here/checker" --most 1000 --model power --json json
grep -q ' [5-9][0-9][0-9] different images, of which [1-9]' images/text || fail "other images than were thought of: $(cat images/text)"

# What is there is reported, and no more is said of the rest than that it is not known.
for name in taxonomy-5 mutants-3 claims-3; do
	(cd $name && tidemark merge part0 part2 >out 2>&1) && fail "$name: all is said to be there"
	cp $name/out out
	says 'Left off where results of shards are missing' ' units are missing, of ' 'to run shard 1: '
done

# A shard that is missing, or has not begun.
cd crashtest-7
rm -rf traces json
run 3 tidemark merge part0 part1 part2 part4 part5 part6 --no-traces --verbose
says 'Left off where results of shards are missing' 'of 1 of 7 shards: 3' 'to run shard 3: tidemark crashtest --knob=domain=mhp --runs=10 --states=100 ' '--shard 3/7 -- erda rfp'
: >nothing
run 3 tidemark merge part0 nothing part4 part5 part6 --no-traces
says 'of 3 of 7 shards: 1-3' 'to run shard 2: '
run 3 tidemark merge nothing
one_line

# One that died: cut short, then damaged, at any place. The command that is printed does what is missing; what was there
# is not done again.
size=$(stat -c %s part3)
for what in cut damaged; do
	for at in 40 $((size / 2)) $((size - 1)); do
		cp part3 dead
		if [ $what = cut ]; then
			truncate -s $at dead
		else
			# shellcheck disable=SC2059 # another byte than stands there
			printf "\\$(printf %o $((255 - $(od -An -tu1 -j$at -N1 part3))))" | dd of=dead bs=1 seek=$at conv=notrunc status=none
		fi
		[ $at != 40 ] || [ $what = cut ] || continue # the first line: below
		run 3 tidemark merge part0 part1 part2 dead part4 part5 part6 --no-traces --quiet
		says 'of 1 of 7 shards: 3'
		[ $what = cut ] || says 'dead: damaged at byte '
		if [ $at != 40 ]; then
			says '--shard 3/7 --results dead -- erda rfp'
		fi
		run 0 tidemark "${crashtest[@]}" --shard 3/7 --results dead
		[ $at = 40 ] || says 'of its units already'
		[ "$(stat -c %s dead)" -eq $size ] || fail 'other results the second time'
		merged . part0 part1 part2 dead part4 part5 part6 --json json
		equal ../crashtest .
	done
done

# Twice is as good as once, unless the results differ.
run 0 tidemark merge part0 part1 part2 part3 dead part4 part5 part6 part0 --no-traces

# Shards of other numbers: the union counts.
run 0 tidemark merge part0 ../crashtest-3/part0 ../crashtest-2/part1 part1 ../crashtest-2/part0 --no-traces

# What does not belong together, or is no file of results.
refused() { bad "$1" tidemark merge "${@:2}" --no-traces; }
LC_ALL=C sed '1s/"build":"./"build":"x/' part1 >other
refused 'other: the results of another campaign, or of another build of tidemark, than those of part0' part0 other
refused 'other: the results of another build of tidemark' other
LC_ALL=C sed '1s/--runs=10/--runs=12/' part1 >other
refused 'other: the results of another campaign' part0 other
LC_ALL=C sed '1s/"crashtest"/"record"/' part1 >other
refused 'other: results that this tidemark does not read' other
refused 'json: expected a file of results (--results)' part0 json
refused 'nowhere: No such file or directory' nowhere
refused 'expected a FILE before any option' --quiet
refused '--runs=5: expected options of what is written' part0 --runs 5
refused 'expected no --shard' part0 --shard 0/2
head -c 3000 /dev/urandom >noise
refused 'noise: expected a file of results' part0 noise
mkdir folder
refused 'folder: a folder; expected a file of results' part0 folder
for shard in 7/7 1 x/2 1/0 -1/2 1/ /2; do
	bad '' tidemark crashtest erda --shard $shard
	says 'expected I/N'
done
run 2 tidemark crashtest erda --runs 11 --shard 3/7 --results part3
says 'part3: has the results of another campaign'
run 2 tidemark "${crashtest[@]}" --shard 2/7 --results part3
says 'part3: has the results of shard 3/7, not of 2/7'
run 2 tidemark crashtest erda --shard 0/2 --results noise
says 'noise: expected a file of results'
[ "$(stat -c %s noise)" -eq 3000 ] || fail 'a file of something else is written over'

# What is in a file that the command names counts, too.
printf '1 put k1 8\n1 get k1\n' >ops
run 0 tidemark crashtest erda --ops ops --runs 3 --shard 0/1
run 0 tidemark merge crashtest-0-of-1.results --no-traces
printf '1 put k1 9\n1 get k1\n' >ops
refused 'ops has changed since' crashtest-0-of-1.results
run 2 tidemark crashtest erda --ops ops --runs 3 --shard 0/1
says 'has the results of another campaign'

# Without --shard: what is done already is not done again, and the report is the same.
run 0 tidemark "${crashtest[@]}" --results all
merged . all
equal ../crashtest .
run 0 tidemark "${crashtest[@]}" --results all
