#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_bad_inputs.sh TIDEMARK SOURCES [-v]
#
# Bad input of every kind ends with status 2 and one line on stderr that names what is wrong; nothing is on stdout, and no file
# is made or changed. Commands and options come from --help, so new ones are tried, too; below are the files and the words that
# do not go together. With -v each line is printed.
set -u
tidemark=$(realpath "$1") sources=$(realpath "$2") verbose=${3-}
work=$(mktemp -d) || exit 70
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir "$work/here" || exit 70
cd "$work/here" || exit 70
out=$work/out err=$work/err
checks=0 failures=0
unset "${!TIDEMARK_@}"
ulimit -St 5 # what begins to work instead of refusing ends

wrong() {
	failures=$((failures + 1))
	printf 'FAILED: %s\n' "$1" >&2
	sed 's/^/	stderr: /' "$err" >&2
}

# What is there, with its contents.
state() {
	find . -type f -printf '%p %s %T@\n' -o -printf '%p %l\n' | sort
	find . -type f -exec cksum {} +
}
before=''
remember() { before=$(state); }
# Nothing was made or changed since remember(): what was tried is $1.
unchanged() {
	local now
	now=$(state)
	[ "$now" = "$before" ] || wrong "files were made or changed: $1:
$(diff <(echo "$before") <(echo "$now"))"
	before=$now
}

# bad NAMES WORD...: refused, in a line that has one of these names, which are separated by "|".
bad() {
	local names=$1 line name found='' called
	local -a left=()
	shift
	printf -v called ' %q' "$@"
	called=tidemark$called
	checks=$((checks + 1))
	"$tidemark" "$@" >"$out" 2>"$err" </dev/null
	local status=$?
	[ $status -eq 2 ] || wrong "exit status $status: $called"
	[ ! -s "$out" ] || wrong "something is on stdout: $called"
	{ IFS= read -r line && ! IFS= read -r _; } <"$err" || wrong "not one line on stderr: $called"
	[[ $line == 'tidemark: '?* || $line == 'tidemark '*': '?* ]] || wrong "no message of tidemark's: $called"
	[ -z "$verbose" ] || printf '%s\n\t%s\n' "$called" "$line"
	while IFS= read -r -d '|' name; do
		[ -n "$name" ] && [[ $line == *"${name:0:30}"* ]] && found=y
	done <<<"$names|"
	[ -n "$found" ] || [ -z "$names" ] || wrong "the line names none of '$names': $called"
	left=(*)
	if [ ${#left[@]} -ne "$files" ]; then
		wrong "${#left[@]} files instead of $files: $called"
		files=${#left[@]}
	fi
}

# --- good files, and what can be wrong with one ---

trace=good.trace
cp "$(find "$sources/tests/traces" -name 'efactory-*.trace' | sort | sed -n 1p)" $trace || exit 70
printf '1 put k1 8\n1 get k1\n' >good.ops
cp "$(find "$sources/scenarios/litmus" -name '*.litmus' | sort | sed -n 1p)" good.litmus || exit 70
cp "$sources/scenarios/taxonomy/taxonomy.txt" good.table || exit 70
cp "$sources/core/stores/erda/causes.txt" good.causes || exit 70
printf 'tidemark-baseline 1\nerda default default DUR nothing put others\nerda default ddio=off MONO value get kept\n' >good.baseline
"$tidemark" replay -q $trace --pmemcheck-log good.log >"$out" 2>"$err"
[ -s good.log ] && [ -s good.log.pool ] || wrong 'no log was made'
# A pool with a cache image, and what a client recorded.
serve() {
	"$tidemark" serve erda --pm good.pool --shadow=good.cache --listen 127.0.0.1:0 --keys 10 --size 256K >"$out" 2>"$err" &
	local server=$! address=''
	while kill -0 $server 2>/dev/null; do
		address=$(sed -nE 's/^serving .* on ([^ ]*:[0-9]+),.*/\1/p' "$out")
		[ -z "$address" ] || break
		sleep 0.05
	done
	"$tidemark" bench --server "$address" --ops 20 --history good.history --room 100 -q >"$work/bench" 2>>"$err"
	kill -9 $server
	wait $server 2>"$work/killed"
	[ -s good.history ] && [ -s good.cache ]
}
serve || wrong 'no server ran'
head -c 3000 /dev/zero >zeros
printf 'hello, this is a text\nof two lines\n' >text
printf '\377\376\000\001\200tidemark\n\033[31m%%s%%n\n' >garbage
printf x >byte
: >empty
mkdir folder
ln -s /proc/self/mem unreadable # reading it fails, also for root
ln -s nowhere dangling
ln -s loop loop
wrong_files='zeros text garbage byte empty folder unreadable dangling loop missing missing/file text/file'
# Cut off, and with bytes in it that do not belong there.
printf '1 call put x 1\n1 return ok\n' >good.hist
for file in $trace good.litmus good.hist good.table good.log good.baseline; do
	head -c $(($(stat -c %s $file) / 2 + 1)) $file >"${file#good.}.half"
	{
		head -n 2 $file
		cat garbage
		tail -n +3 $file
	} >"${file#good.}.mixed"
done
head -c 1000 good.pool >pool.half
head -c 100 good.history >history.half
echo '{"cells": [{"store": "erda", "verdict": "holds"}]}' >good.json
echo '{"A": "ReorderFull"' >json.half
echo '["A"]' >json.list
echo '{"A": 1}' >json.number
echo '{"A": "x"}' >json.engine
echo 'int main(void) { return 0; }' >no.c
cp /bin/true no-store.so
cp text text.so
long=$(printf '%5000s' '' | tr ' ' x)
all=(*)
files=${#all[@]}
remember

# --- what --help lists ---

# Words without which a command does nothing.
declare -A base=(
	[ablate]='erda'
	[replay]=$trace
	[shrink]=$trace
	[diff]='good.json good.json'
	[litmus]='good.litmus'
	[judge]='good.hist'
	[record]='--pm nowhere --out nowhere.rec -- true'
	[images]='--log good.log --recover true'
	[try]='--pm nowhere --run true --check true'
	[serve]='erda --pm new.pool'
	[put]='--server 127.0.0.1:1 k v'
	[get]='--server 127.0.0.1:1 k'
	[del]='--server 127.0.0.1:1 k'
	[cut]='--pm good.pool --cache good.cache'
	[examine]='--pm good.pool --history good.history'
	[bench]='--server 127.0.0.1:1'
	[run]='true'
	[crashtest --causes]='erda'
	[crashtest --shares]='erda --budget whole'
	[crashtest --preemptions]='--exhaustive'
	[crashtest --faults]='--exhaustive'
	[record --join]='-- true'
	[images --keep]='--log good.log --recover true --image x'
	[images --checker]='--log good.log --path true'
	[images --path]='--log good.log'
	[images --name]='--log good.log --path text.so --checker lib'
	[images --default-engine]='--log good.log --recover true'
	[images --extended-macros]='--log good.log --recover true'
)
# What a message may name instead.
declare -A also=([images --name]='text.so' [taxonomy --knob]='knob')
# Whatever is given is good, or the compiler's business.
# A device that is not there is no mistake of `verbs`, which ends with 77 then.
skipped='cc c++ images:--output-level verbs:--device'

numbers=('' -1 1x 0x10 1.5 ' 1' +1 ١ 99999999999999999999999)
# values ARGUMENT: bad values of an option that --help shows so, in `value`.
values() {
	case $1 in
	N | BYTES | K | B | P | NS) value=("${numbers[@]}") ;;
	S | T | TIME) value=('' 0 -1s 1x s 1.5h '5 m' 99999999999h 31d "$long") ;;
	FILE | OUT | MEDIA | CACHE) value=('' folder missing/file text/file "$long") ;;
	'=FILE' | '=CACHE') value=('' folder missing/file text/file "$long") ;;
	DIR | '=DIR') value=('' text text/folder missing/deep/folder) ;;
	NAME=VALUE | 'ddio=on|off') value=('' x "=" "=on" x=on ddio= ddio=maybe "$long") ;;
	A) value=('' x 1.2.3 1.2.3.4.5 ::1 0.0.0.0 255.255.255.255 "$long") ;;
	A:P) value=('' x : 127.0.0.1 127.0.0.1: :7471 127.0.0.1:x 127.0.0.1:-1 127.0.0.1:70000 "$long") ;;
	RULE) value=('' ' ' ';' lose lsoe 'lose 5' 'lose 101%' 'drop write x' 'delay' 'partition peer' 'lose 5%; x' "$long") ;;
	ENGINE) value=('' x reorderfull) ;;
	MARKER=ENGINE*) value=('' x A= A=x "=ReorderFull" text missing json.half json.list json.number json.engine) ;;
	CMD | CHECKER) value=('' no-such-command ./text) ;;
	PATTERN) value=('' '(' '[' 'x => put \1') ;;
	'NAME|DIR') value=('' .x 'a b' a:b "$long") ;;
	'PATH|mr') value=('') ;; # a file that need not be there
	'ack|call|start|EVENT|MARKER') value=('' nowhere 999999 "$long") ;;
	*'|'*) value=('' x "$(echo "${1%%|*}" | tr a-z A-Z)") ;;
	*) value=('' no_such_thing "$long") ;; # a name
	esac
}

# Base words without an option and its value.
without() {
	local option=$1 word skip=''
	shift
	kept=()
	for word; do
		if [ -n "$skip" ]; then
			skip=''
		elif [ "$word" = "$option" ]; then
			skip=y
		else
			kept+=("$word")
		fi
	done
}

# try_option COMMAND LETTER --OPTION ARGUMENT
try_option() {
	local command=$1 letter=$2 option=$3 argument=$4 one key="$1 $3"
	local -a kept value words before_it=()
	[[ " $skipped " != *" $command:$option "* ]] || return
	# shellcheck disable=SC2206
	words=(${base[$key]-${base[$command]-}})
	if [ -z "$argument" ]; then
		bad "$option" "$command" "$option=5" "${words[@]}"
		return
	fi
	without "$option" "${words[@]}"
	# Behind a program's name options are the program's.
	[[ $command == run || $command == record ]] || before_it=("${kept[@]}")
	case $argument in
	=*) ;; # without a value it is good, too
	*) bad "$option" "$command" "${before_it[@]}" "$option" ;;
	esac
	values "$argument"
	for one in "${value[@]}"; do
		bad "$option|-$letter|$one|${one%%=*}|${also[$key]-}" "$command" "$option=$one" "${kept[@]}"
	done
	if [ -n "$letter" ]; then
		bad "-$letter" "$command" "${before_it[@]}" "-$letter"
		bad "$option|-$letter|${value[1]}|${also[$key]-}" "$command" "-$letter" "${value[1]}" "${kept[@]}"
	fi
}

try_command() {
	local command=$1 letter option argument
	# shellcheck disable=SC2086
	bad '--no-such-option' "$command" --no-such-option ${base[$command]-}
	# shellcheck disable=SC2086
	bad '-Z' "$command" -Z ${base[$command]-}
	"$tidemark" "$command" --help >"$work/help" || wrong "no help of $command"
	while IFS=' ' read -r letter option argument; do
		try_option "$command" "${letter#.}" "$option" "$argument"
	done < <(sed -nE 's/^  (-([a-z]), )?(--[a-z-]+)(\[(=[A-Z]+)\]| ([^ ]+))?  +.*/.\2 \3 \5\6/p' "$work/help" | grep -v -- ' --help ')
	unchanged "options of $command"
}

mapfile -t commands < <("$tidemark" --help | sed -nE '/^exit/q; s/^  ([a-z][a-z+-]*) .*/\1/p')
[ ${#commands[@]} -ge 28 ] || wrong "only ${#commands[@]} commands: is the pattern right?"
for command in "${commands[@]}"; do
	[[ " $skipped " == *" $command "* ]] || try_command "$command"
done
from_help=$checks
[ $from_help -ge 1000 ] || wrong "only $from_help calls come from --help: is the pattern right?"

# --- commands and their words ---

bad 'no command'
bad nonsense nonsense
bad '""' ''
bad -x -x
bad --nonsense --nonsense
for command in soak bench; do
	bad more $command more
done
for command in stat cut; do
	bad more $command more
done
for command in crashtest fuzz count ablate; do
	bad nothing_like $command nothing_like
	for file in text.so no-store.so missing.so folder.so ./text; do
		bad "${file#./}" $command "$file"
	done
done
bad nothing_like serve nothing_like --pm new.pool
for file in text no-store missing folder; do
	bad $file.live.so serve $file.so --pm new.pool
done
bad ./text serve ./text --pm new.pool
for command in mutants claims verbs taxonomy list; do
	bad no_such $command no_such
	bad '""' $command ''
done
bad 'twice' claims P31 P31
bad 'more' list stores more
for command in replay shrink litmus judge ablate images serve put get del cut examine record run cc c++ new-store; do
	bad "$command" $command
done
bad 'no_such_program' run -- no_such_program
bad 'text' run -- ./text
bad 'folder' run -- ./folder
bad 'no_such_program' record --pm p --out r -- no_such_program
bad 'erda' new-store erda
bad '' new-store a b
bad '' new-store 'a b'
bad '' new-store ../x
bad '' new-store ''
bad 'folder' new-store folder
bad 'KEY' put --server 127.0.0.1:1 k
bad 'KEY' get --server 127.0.0.1:1 k v
bad 'key' get --server 127.0.0.1:1 ''
bad 'key' get --server 127.0.0.1:1 "$long"
bad 'process' fault --pid 1 'lose 5%' --fabric none
bad 'fault: "frob": expected lose' fault frob --fabric none
bad 'not both' fault --off 'lose 5%' --fabric none
bad 'fabric' stat --fabric none
unchanged 'commands and words'

# --- files ---

# read_by "FILES" COMMAND WORD...: the file stands where @ does.
read_by() {
	local list=$1 file
	shift
	for file in $list; do
		bad "$file" "${@//@/$file}"
	done
	unchanged "$*"
}
read_by "$wrong_files trace.half trace.mixed good.log good.ops" replay @
read_by "$wrong_files trace.half trace.mixed good.log" shrink @
read_by "$wrong_files trace.half good.litmus" shrink @ -o new.trace
read_by "$wrong_files $trace good.pool" crashtest erda --ops @
read_by "$wrong_files hist.mixed $trace good.log" judge @
read_by "${wrong_files/empty /} litmus.half litmus.mixed $trace" litmus -q --list @
read_by "$wrong_files log.half log.mixed $trace" images --recover true --log @
read_by "$wrong_files json.half $trace" diff good.json @
read_by "${wrong_files/zeros /}" images --recover true --log good.log --history @
read_by 'folder unreadable dangling loop missing' images --recover true --log good.log --pool @
read_by "$wrong_files pool.half $trace" examine --history good.history --pm @
read_by "$wrong_files $trace history.half" examine --pm good.pool --history @
read_by "$wrong_files $trace" examine --pm good.pool --history good.history --cache @
read_by "$wrong_files $trace" examine --pm good.pool --history good.history --recovered @
read_by "$wrong_files $trace" cut --cache good.cache --pm @
read_by "$wrong_files $trace" cut --pm good.pool --cache @
read_by "${wrong_files/empty /} table.mixed $trace" taxonomy --no-traces --table @
read_by "$wrong_files $trace baseline.half baseline.mixed" crashtest erda --no-traces --baseline @
read_by 'zeros text garbage byte folder unreadable good.ops' crashtest erda --no-traces --causes @
read_by 'zeros text garbage byte folder unreadable good.ops' crashtest erda --budget whole --no-traces --shares @
read_by 'text byte folder missing/file text/file' serve erda --pm @
read_by 'text missing' fuzz erda --runs 1 --no-traces --regress @
for file in text garbage trace.half; do
	mkdir "regress-$file"
	cp $file "regress-$file/a.trace"
done
files=$((files + 3))
remember
read_by 'regress-text regress-garbage regress-trace.half' fuzz erda --runs 1 --no-traces --regress @

# --- outputs ---

bad good.ops crashtest erda --ops good.ops --json good.ops
bad good.ops crashtest erda --ops good.ops --junit ./good.ops
ln good.ops hard.ops
ln -s good.ops soft.ops
: >empty2
ln -s empty2 soft
files=$((files + 4))
remember
for file in ./good.ops hard.ops soft.ops "$PWD/good.ops" folder/../good.ops; do
	bad "$file" crashtest erda --ops good.ops --json "$file"
done
for pair in 'new ./new' 'new new' 'empty2 soft' 'soft empty2' 'folder/new folder/../folder/new' '- -'; do
	# shellcheck disable=SC2086
	set -- $pair
	bad "$2" crashtest erda --workload w --json "$1" --junit "$2"
	bad "$2" fuzz erda --json "$1" --junit "$2"
	bad "$2" litmus good.litmus --json "$1" --junit "$2"
	bad "$2" taxonomy --json "$1" --junit "$2"
done
for file in $trace good.ops text no.c garbage zeros good.pool other.trace; do
	bad "$file" replay $trace --html $file
	bad "$file" crashtest erda --json $file
	bad "$file" crashtest erda --sarif $file
	bad "$file" crashtest erda --write-baseline $file
	bad "$file" litmus good.litmus --junit $file
	bad "$file" count erda --json ./$file
	case $file in
	*.trace) ;;
	*)
		bad "$file" shrink $trace -o $file
		bad "$file" replay $trace --pmemcheck-log $file
		bad "$file" run --pcap $file true
		bad "$file" record --pm p --out $file -- true
		;;
	esac
done
bad '-' shrink $trace -o -
bad '-' shrink -
bad '-' replay $trace --pmemcheck-log -
bad good.pool examine --pm good.pool --history good.history --save-recovered good.pool
bad good.history examine --pm good.pool --history good.history --json good.history
bad good.log images --log good.log --recover true --output good.log
bad good.log images --log good.log --recover true --pmemcheck-log ./good.log
bad good.pool serve erda --pm good.pool --shadow=./good.pool
bad new.pool serve erda --pm new.pool --shadow=folder/../new.pool
bad size serve erda --pm new.pool --size 4K --keys 100000
if [ "$(id -u)" -ne 0 ]; then # root may write anywhere
	mkdir locked
	chmod a-w locked
	files=$((files + 1))
	remember
	bad locked/new crashtest erda --json locked/new
	bad locked crashtest erda --out locked
	bad locked/new replay $trace --html locked/new
	bad locked/new shrink $trace -o locked/new
fi
unchanged 'outputs'

# --- words that do not go together ---

bad -- --all crashtest --all erda
bad exhaustive crashtest --faults 1
bad exhaustive crashtest --preemptions 1
bad doublecheck crashtest --exhaustive --doublecheck
bad 'at most 4' crashtest --exhaustive --preemptions 4 --faults 1
bad causes crashtest --causes new
bad causes crashtest erda --exhaustive --causes new
bad shares crashtest erda --workload w --shares new
bad shares crashtest erda --causes new --shares new2
bad 'expected no --exhaustive' crashtest erda --exhaustive --baseline good.baseline
bad baseline crashtest erda --causes new --write-baseline new2
bad 'this file is read' crashtest erda --baseline good.baseline --write-baseline ./good.baseline
bad sarif crashtest erda --no-traces --sarif new
bad annotations crashtest erda --no-traces --annotations
bad ops crashtest --ops good.ops --ops text
bad '"x"' crashtest --runs x --runs 5
bad '"x"' crashtest --runs 5 --runs x
bad ddio crashtest --knob ddio=on --knob ddio=off
bad bg_blocks crashtest erda --knob bg_blocks=on
bad one_flush crashtest erda --variant one_flush
bad clients crashtest --workload ycsb-a:clients=99
bad w-r crashtest --workload w-r:clients=2
bad transport crashtest herd --knob transport=iwarp
bad 'one store' ablate erda efactory
bad 'one store' ablate
bad 'no_such_place' ablate erda --place no_such_place
bad 'expected no --witness' litmus good.litmus --configs --witness
bad html replay $trace $trace --html new
bad pmemcheck replay $trace $trace --pmemcheck-log new
bad 'second' shrink $trace $trace
bad knobs claims --knobs P31
bad knobs claims --knobs --list
bad json claims --list --json new
bad server bench --ops 5
bad first bench --server 127.0.0.1:1 --first 16 --clients 2
bad nothing bench --server 127.0.0.1:1 --ops 0
bad workload bench --server 127.0.0.1:1 --workload a,a
bad clients bench --server 127.0.0.1:1 --clients 1,2
bad 'is of the link udp' run --address 127.0.0.1 true
bad 'are of the link shm' run --link udp --devices 2 true
bad 'is of the link shm' run --link udp --layer infiniband true
bad keep images --log good.log --recover true --keep new
bad json images --log good.log --recover true --image x --json new
bad time images --log good.log --recover true --image x --time 1s
bad 'expected --recover CMD, or -p CHECKER' images --log good.log
bad '-c and -n go with -p' images --log good.log --recover true -c prog
bad -n images --log good.log -c lib -p text.so
bad out record --pm p -- true
bad pm record --out r -- true
bad cache cut --pm good.pool
bad '--history is needed' examine --pm good.pool
bad pm serve erda
bad 'one STORE' serve erda forca --pm new
bad forca serve forca --pm good.pool
bad keys serve erda --pm good.pool --keys 11
bad variant serve erda --pm new.pool --variant no_such
unchanged 'words that do not go together'

# --- the environment ---

for setting in LINK=x KEYS=x LAYER=x DEVICES=0 DEVICES=x SEED=x ADDRESS=x FAULTS=lsoe FABRIC=a/b; do
	export "TIDEMARK_$setting"
	bad "TIDEMARK_${setting%%=*}" run true
	unset "TIDEMARK_${setting%%=*}"
done
unchanged 'the environment'

echo "$checks bad inputs, $from_help of them from --help, $failures failures"
[ $failures -eq 0 ]
