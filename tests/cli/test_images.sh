#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_images.sh TIDEMARK SOURCES
#
# tidemark images, from a log to what must not be lost: a good log, a flag that may be durable before its data, an early
# eviction, a process that dies; checkers that crash, hang, write to the image, cut and remove it; everything that pmreorder
# takes badly; wrong input, each in one line.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

# A pool has a flag at 0 and data at 64: the flag says that the data is there. What this checker does besides, its first
# argument (as a library: $DOES) says.
cat >checker.c <<'END'
static const char *does = "";
/* A child pauses, which keeps the pipe open. */
static void leave_child(void)
{
	int fd = open("alive", O_WRONLY);
	if (write(fd, "x\n", 2) != 2)
		abort();
	if (!fork()) {
		alarm(300);
		for (;;)
			pause();
	}
	close(fd);
}
/* $AFTER calls are as always, and the next one does not end. */
static void stall(void)
{
	struct stat st;
	int fd = open("calls", O_WRONLY | O_APPEND | O_CREAT, 0600);
	if (write(fd, "x", 1) != 1 || fstat(fd, &st))
		abort();
	close(fd);
	if (st.st_size <= atol(getenv("AFTER")))
		return;
	leave_child();
	for (;;)
		pause();
}
int check(const char *path)
{
	unsigned long word[16] = {0};
	char junk[4096];
	int fd = open(path, O_RDWR);
	if (fd < 0 || pread(fd, word, sizeof(word), 0) != sizeof(word))
		return 9;
	int bad = word[0] == 1 && word[8] != 42;
	printf("flag %lu data %lu\n", word[0], word[8]);
	memset(junk, 0xff, sizeof(junk));
	if (bad && !strcmp(does, "crash"))
		abort();
	if (bad && !strcmp(does, "hang"))
		for (;;)
			pause();
	if (!strcmp(does, "stall"))
		stall();
	if (!strcmp(does, "fork"))
		leave_child();
	if (!strcmp(does, "write") && pwrite(fd, junk, sizeof(junk), 0) < 0)
		return 8;
	if (!strcmp(does, "cut") && ftruncate(fd, 3))
		return 8;
	if (!strcmp(does, "grow") && ftruncate(fd, 99999))
		return 8;
	if (!strcmp(does, "remove") && unlink(path))
		return 8;
	if (!strcmp(does, "replace")) {
		unlink(path);
		close(open(path, O_RDWR | O_CREAT, 0600));
	}
	close(fd);
	return bad;
}
int check_as_told(const char *path)
{
	does = getenv("DOES") ? getenv("DOES") : "";
	return check(path);
}
int main(int argc, char **argv)
{
	if (argc > 2)
		does = argv[1];
	return check(argv[argc - 1]);
}
END
compile checker
compile checker.so -shared -fPIC
truncate -s 4096 pool

flag='STORE;0x10000000;0x1;0x8;set_flag (app.c:20);main (app.c:40)'
data='STORE;0x10000040;0x2a;0x8;set_data (app.c:10);main (app.c:39)'
log good.log "$data" "$flush_data" FENCE "$flag" "$flush_flag" FENCE STOP
log bad.log "$data" "$flag" "$flush_data" "$flush_flag" FENCE STOP
log early.log "$flag" "$data" "$flush_data" FENCE "$flush_flag" FENCE STOP
images() { tidemark images "$@"; }

# --- good and bad logs ---

run 0 images -l good.log -c prog -p ./checker
says '2 stores, 2 flushes, 2 fences' '3 different images, none of them bad'
run 0 images -l good.log -c lib -p ./checker.so -n check
says '3 different images, none of them bad'
run 0 images -l good.log --recover './checker {}' --check 'test -f'
run 0 bash -c 'tidemark images -l - --recover ./checker <good.log'
run 1 images -l good.log --recover true --check false
says 'images are bad, also the first one: is the checker right?'

# One image is bad: the flag without its data.
run 1 images -l bad.log -c prog -p ./checker
says '1. exit status 1; 1 image' 'lost: the store of 8 bytes' "$here/pool+0x40 (event 0, line 1 of the log)" 'by set_data (app.c:10)' \
	'of main (app.c:39)' 'its change in flight is not left' '4 different images, of which 1 is bad, of 1 cause'
[ "$(grep -c 'once more' out)" -eq 1 ] || fail 'not one cause'
again=$(sed -n 's/^ *once more: //p' out)
run 1 bash -c "$again"
says 'exit status 1' 'by set_data (app.c:10)'
run 1 bash -c "$again --show"
says 'flag 1 data 0'
run 1 bash -c "$again --keep kept"
[ "$(od -An -tu8 -N8 kept/0/pool | tr -d ' ')" = 1 ] || fail 'the image that is kept has no flag'
[ "$(od -An -tu8 -j64 -N8 kept/0/pool | tr -d ' ')" = 0 ] || fail 'the image that is kept has data'
[ "$(stat -c %s kept/0/pool)" -eq 4096 ] || fail 'the image that is kept has another length'
cmp -s pool <(head -c 4096 /dev/zero) || fail 'the pool itself was changed'

# The report does not repeat what is written; the checker's own words stay its own.
run 1 images -l bad.log --json first.json --junit first.xml -p ./checker -- -o
again=$(sed -n 's/^ *once more: //p' out)
case $again in *json*) fail "a file is written again: $again" ;; esac
run 1 bash -c "$again"
says 'by set_data (app.c:10)'
if command -v python3 >/dev/null; then
	python3 -m json.tool first.json >out || fail 'no JSON'
	says '"verdict": "exit status 1"' '"source": "set_data (app.c:10);main (app.c:39)"' '"bad": 1' '"ended": true'
	# Flag and data are two causes for a user who wants both.
	cat >both.sh <<-'END'
		byte() { od -An -tx1 -j"$2" -N1 "$1" | tr -d ' '; }
		[ "$(byte "$1" 0)" = 01 ] && [ "$(byte "$1" 64)" = 2a ]
	END
	run 1 images -l bad.log --json every.json --junit every.xml --recover 'sh both.sh {}'
	run 0 images -l good.log --junit none.xml -p ./checker
	python3 - <<-'END' >out 2>&1 || fail 'JUnit does not have what the text says'
		import json
		import xml.etree.ElementTree as xml

		for name, least in ("first", 1), ("every", 2):
		    causes = json.load(open(name + ".json"))["causes"]
		    failures = [case.find("failure") for case in xml.parse(name + ".xml").iter("testcase")]
		    assert len(failures) == len(causes) >= least
		    for cause, failure in zip(causes, failures):
		        assert cause["verdict"] in failure.get("message"), failure.text
		        assert "once more: " in failure.text and cause["image"] in failure.text, failure.text
		assert [case.find("failure") for case in xml.parse("none.xml").iter("testcase")] == [None]
	END
fi

# A line that has not been flushed yet may be evicted.
run 1 images -l early.log -p ./checker
says '1 is bad, of 1 cause' 'by set_data (app.c:10)'

# If only the process dies, all that it had stored is left, in its order.
run 0 images -l bad.log --model kill -p ./checker
says '3 different images'
log flag-first.log "$flag" "$data" "$flush_data" "$flush_flag" FENCE STOP
run 1 images -l flag-first.log --model kill --json kill.json -p ./checker
grep -q '"event_kind": "store"' kill.json || fail 'no kind of the event in the JSON file'
grep -q '"event_source": "set_data (app.c:10);main (app.c:39)"' kill.json || fail 'no place of the event in the JSON file'
says 'the process died before the store by set_data (app.c:10), called by main (app.c:39), event 1' 'all that was stored is left' '3 different images, of which 1 is bad'
run 1 bash -c "$(sed -n 's/^ *once more: //p' out)"
# That, a program that never flushes is not told by accident.
log never.log "$data" "$flag" STOP
run 1 images -l never.log -p ./checker --model power
says 'never flushes' '--model kill'
run 0 images -l never.log -p ./checker
says 'the process died at 3 places' 'never flushes' '--model power'
run 1 images -l never.log -p ./checker --knob ddio=on

# What it can know: acknowledgements are not in this log; markers are.
log marker.log "$data" "$flush_data" FENCE PUT.BEGIN "$flag" "$flush_flag" FENCE PUT.END STOP
# shellcheck disable=SC2016 # for the checker's shell
run 1 images -l marker.log --recover 'test {} && test "$TIDEMARK_ACKED" = 0 && test "$TIDEMARK_MARKER" != PUT.END'
says 'exit status 1; 1 image' 'after PUT.END'

# Processes do not change what is found.
log many.log "$data" "$flag" STORE\;0x10000080\;1\;1 STORE\;0x100000c0\;1\;1 STORE\;0x10000100\;1\;1 STORE\;0x10000140\;1\;1 \
	STORE\;0x10000180\;1\;1 STORE\;0x100001c0\;1\;1 "$flush_data" "$flush_flag" FENCE STOP
run 1 images -l many.log -c lib -p ./checker.so -n check --jobs 1
says '256 different images, of which 64 are bad, of 1 cause'
sed 's/;[^;]* images a second//; s/--jobs .//' out >one
run 1 images -l many.log -c lib -p ./checker.so -n check --jobs 3
sed 's/;[^;]* images a second//; s/--jobs .//' out | cmp - one || fail 'three processes find something else'
run 1 images -l many.log -c lib -p ./checker.so -n check --most 20
says 'more images than were tried (--most 20)'

# --- checkers that say different things of the same image ---

# odd NAME COMMAND: a checker that fails every other time; else the command decides.
odd() { printf 'n=$(cat %s.n 2>/dev/null || echo 0)\necho $((n + 1)) >%s.n\n[ $((n %% 2)) = 0 ] || exit 3\n%s\n' "$1" "$1" "$2" >"$1.sh"; }
odd good ':'
run 3 images -l good.log --jobs 1 --json odd.json --recover 'sh good.sh {}'
says 'none of them bad' 'could not tell: the checker does not say the same of the same image' \
	'the checker is not deterministic: of 1 bad image it said something else when it was judged again' \
	'first "exit status 3", then "good": tidemark images -l good.log'
grep -q '"unsteady": 1,' odd.json || fail 'no word of it in the JSON file'
run 3 images -l many.log --jobs 1 --recover 'sh good.sh {}'
says 'none of them bad'
# What is bad all the same is a break.
odd bad 'exec ./checker "$1"'
run 3 images -l bad.log --jobs 1 --recover 'sh bad.sh {}'
cat >once.sh <<-'END'
	[ -e once ] || { >once; exit 3; }
	exec ./checker "$1"
END
run 1 images -l bad.log --jobs 1 --recover 'sh once.sh {}'
says 'of which 1 is bad, of 1 cause' '1. exit status 1' 'by set_data (app.c:10)' 'the checker is not deterministic: of 1 bad image'
! grep -q 'could not tell' out || fail 'one that is bad each time is in doubt'

# --- checkers that do more than look ---

for does in write cut grow remove replace; do
	run 0 images -l good.log -p "./checker $does"
	run 1 images -l bad.log -p "./checker $does"
	says '4 different images, of which 1 is bad, of 1 cause' 'by set_data (app.c:10)'
	run 0 env DOES=$does tidemark images -l good.log -c lib -p ./checker.so -n check_as_told
	run 1 env DOES=$does tidemark images -l many.log -c lib -p ./checker.so -n check_as_told
	says '256 different images, of which 64 are bad, of 1 cause' 'by set_data (app.c:10)'
	rm -rf kept
	run 1 images -l bad.log -p "./checker $does" --image 4:0+0x40=0 --keep kept
	[ "$(od -An -tu8 -N8 kept/0/pool | tr -d ' ')" = 1 ] || fail "$does: what is kept is not the image"
	[ "$(stat -c %s kept/0/pool)" -eq 4096 ] || fail "$does: what is kept is not as long as the image"
done
run 1 images -l bad.log -p './checker crash'
says 'of which 1 is bad'
grep -qE '^1. (exit status 134|it was ended by signal 6)' out || fail 'not a word of the crash' # as the shell passes it on
run 1 env DOES=crash tidemark images -l many.log -c lib -p ./checker.so -n check_as_told
says '256 different images, of which 64 are bad, of 1 cause' 'ended by signal 6'
run 1 images -l bad.log -p './checker hang' --timeout 3s
says 'it did not end' '1 is bad'
run 1 env DOES=hang tidemark images -l bad.log -c lib -p ./checker.so -n check_as_told --timeout 3s
says 'it did not end' '1 is bad'

# --- what checkers leave running, and interruptions ---

# alive STATUS SIGNAL COMMAND...: a checker says that it has a child; then SIGNAL comes, if that is not 0. When all has
# ended, nothing is left: no process, which would keep the pipe open, and no folder.
alive() {
	local expected=$1 signal=$2 status=0 pid rest
	shift 2
	rm -rf calls alive tmp
	mkdir tmp
	mkfifo alive
	env --default-signal=INT,TERM,HUP TMPDIR="$here/tmp" "$@" >out 2>err </dev/null &
	pid=$!
	exec 9<alive
	read -r -t 100 -u 9 rest || fail "no child: $*"
	[ "$signal" = 0 ] || kill -"$signal" $pid
	wait $pid || status=$?
	timeout 100 cat <&9 >rest || fail "a child is left: $*"
	exec 9<&-
	[ $status -eq "$expected" ] || fail "exit status $status instead of $expected: $*"
	[ -z "$(ls tmp)" ] || fail "files are left: $*"
}
for kind in served started shell library; do
	case $kind in
	served) checker=(-p './checker') ;;
	started) checker=(--no-server -p './checker') ;;
	shell) checker=(--recover ':; ./checker') ;;
	library) checker=(-c lib -p ./checker.so -n check_as_told) ;;
	esac
	[ $kind = library ] || checker[-1]+=' stall'
	stalls=(env DOES=stall AFTER=150 tidemark images -l many.log "${checker[@]}" --jobs 1 --json left.json --junit left.xml --timeout 1000s)
	case $kind in
	served) alive 143 TERM "${stalls[@]}" ;;
	started) alive 129 HUP "${stalls[@]}" ;;
	*) alive 130 INT "${stalls[@]}" ;;
	esac
	[ ! -s err ] || fail "$kind: something on stderr"
	says '256 different images' '1. exit status 1' 'by set_data (app.c:10)' ': 144 of 256 images are judged' 'All of it: '
	grep -q '"complete": false' left.json || fail 'the JSON file does not say that it is not all'
	grep -q '"judged": 144' left.json || fail 'the JSON file does not say how many'
	grep -q '<skipped message="at SIG' left.xml || fail 'no test case is skipped'
	alive 1 0 env DOES=fork tidemark images -l bad.log "${checker[@]/stall/fork}" --jobs 1
	# While lines are given back.
	alive 130 INT env DOES=stall AFTER=4 tidemark images -l bad.log "${checker[@]}" --jobs 1
	says '4 of 4 images are judged' 'of which 1 is bad, of 1 cause' 'some causes may say more'
done
alive 130 INT env AFTER=0 tidemark images -l bad.log -p './checker stall' --image 4: --keep left
grep -q 'left off at SIGINT' err || fail 'an image that is not judged'
[ ! -e left ] || fail 'an image that is not judged is kept'
# becomes PATTERN: the state of the worker.
becomes() {
	local n
	for ((n = 0; n < 2000; n++)); do
		! grep -qE "$1" /proc/$((worker))/status || return 0
		sleep 0.05
	done
	fail "the worker has no $1: $(cat /proc/$((worker))/status)"
}
# A second signal ends it at once, also if it waits for a process that is stopped; nothing is left either.
for kind in served library; do
	case $kind in
	served) checker=(-p './checker stall') ;;
	library) checker=(-c lib -p ./checker.so -n check_as_told) ;;
	esac
	rm -rf calls alive tmp
	mkdir tmp
	mkfifo alive
	DOES=stall AFTER=0 TMPDIR="$here/tmp" env --default-signal=INT tidemark images -l many.log "${checker[@]}" --jobs 1 --timeout 1000s \
		>out 2>err </dev/null &
	pid=$!
	exec 9<alive
	read -r -t 100 -u 9 rest || fail "no child: $kind"
	worker=$(ps -o pid= --ppid $pid)
	kill -STOP $worker
	becomes 'State:.*stopped' # else what comes now is taken first
	kill -INT $pid
	becomes 'ShdPnd:.*[2367abef]..$' # it has been told to end
	sleep 0.6 # what follows sooner is the same interruption
	kill -INT $pid
	status=0
	wait $pid || status=$?
	timeout 100 cat <&9 >rest || fail "$kind: a child is left after the second signal"
	exec 9<&-
	[ $status -eq 130 ] || fail "$kind: exit status $status after the second signal"
	[ -z "$(ls tmp)" ] || fail "$kind: files are left after the second signal"
	[ ! -s out ] || fail "$kind: a report after the second signal"
done
# Time is over: what is judged by then is printed, of a whole number of eights.
log plain.log "$data" STORE\;0x10000080\;1\;1 STORE\;0x100000c0\;1\;1 STORE\;0x10000100\;1\;1 STORE\;0x10000140\;1\;1 \
	STORE\;0x10000180\;1\;1 STORE\;0x100001c0\;1\;1 "$flush_data" FENCE STOP
rm -rf calls alive tmp
mkdir tmp
mkfifo alive # it has no reader: the checker does not come to its end
run 3 env TMPDIR="$here/tmp" AFTER=40 tidemark images -l plain.log --time 1s -p './checker stall' --time=1s --timeout 1000s --json time.json \
	--junit time.xml
says 'Left off after --time: ' 'of 128 images are judged' "All of it: tidemark images -l plain.log -p './checker stall' --timeout 1000s"
grep -q '"complete": false' time.json || fail 'the JSON file does not say that it is not all'
grep -qE '"judged": (0|8|16|24|32|40)$|"judged": (0|8|16|24|32|40),' time.json || fail "time.json: $(grep judged time.json)"
grep -q '<skipped message="after --time"' time.xml || fail 'no test case is skipped'
[ -z "$(ls tmp)" ] || fail 'files are left after --time'
run 1 images -l many.log -p ./checker --time 1h --json time.json
says '256 different images, of which 64 are bad, of 1 cause' 'once more: tidemark images -l many.log -p ./checker --image '
grep -q '"complete": true' time.json || fail 'there was time for all'
run 0 images -l good.log -p ./checker --json all.json
grep -q '"complete": true' all.json || fail 'the JSON file does not say that it is all'

# --- what pmreorder takes badly ---

# Without STOP it checks nothing, and ends well.
log cut.log "$data" "$flag" "$flush_data" "$flush_flag" FENCE
run 1 images -l cut.log -p ./checker
says '1 is bad, of 1 cause' 'it has no end'
# A marker with START in it makes it forget what was before; then it registers no file.
log restart.log "$data" "$flag" "$flush_data" "$flush_flag" RESTART.BEGIN FENCE RESTART.END STOP
run 1 images -l restart.log -p ./checker
says 'of 1 cause'
# Nor is the end of a frame one.
log restart.log "${data%)}; RESTART START" "$flag;main START" "$flush_data" "$flush_flag" FENCE STOP
run 1 images -l restart.log -p ./checker
says 'of 1 cause'
# The pool is as the program left it, where what is lost is found all the same.
printf '\1' | dd of=pool conv=notrunc status=none
printf '\52' | dd of=pool conv=notrunc bs=1 seek=64 status=none
log left.log "$flag" "$data" "$flush_data" "$flush_flag" FENCE STOP
run 0 images -l left.log -p ./checker
says 'PM is read as the last stores left it' '--pool zero an empty one'
run 1 images -l left.log -p ./checker --pool zero
! grep -q 'PM is read as' out || fail 'an empty pool is none that the program left'
rm pool
truncate -s 4096 pool
# A store that is fenced and never flushed is in no state that it checks.
log unflushed.log "$data" "$flag" FENCE STOP
run 1 images -l unflushed.log -p ./checker --model power
says '1 is bad, of 1 cause'
# It ends with an exception on a newline, on an empty token, on DEEP_SYNC, on a '|' in a frame.
printf '==12== a line of Valgrind\n==12== %s\n==12== |%s||%s\n\n|%s|%s|FENCE\n==12== STOP\n' "START|REGISTER_FILE;$pool;0x10000000;0x1000;0x0" "$data" "$flag" "$flush_data" \
	"$flush_flag" >lines.log
run 1 images -l lines.log -p ./checker
says 'of 1 cause' 'line 3 of the log)'
log deep.log "$data" 'DEEP_SYNC;0x10000040;0x40' "$flag" 'DEEP_SYNC;0x10000000;0x40' STOP
run 0 images -l deep.log -p ./checker
says '2 msyncs' '3 different images'
log frame.log 'STORE;0x10000040;0x2a;0x8;operator|(a, b) (app.cc:7);operator||(c) (app.cc:8)' "$flag" "$flush_data" "$flush_flag" FENCE \
	STOP
run 1 images -l frame.log -p ./checker
says 'by operator|(a, b) (app.cc:7)' 'of operator||(c) (app.cc:8)'
# It writes to a mapping's place in memory as if the file began there.
truncate -s 8192 far
printf 'START|REGISTER_FILE;%s/far;0x10000000;0x1000;0x1000|%s|STOP' "$here" "$flag" >offset.log
# shellcheck disable=SC2016 # for the checker's shell
run 1 images -l offset.log --model power --recover 'f() { test "$(od -An -tu1 -j4096 -N1 $1 | tr -d " ")" = 1; }; f'
says '/far+0x1000' '2 different images, of which 1 is bad'
# A flush may reach from one file into the next one, and beyond.
truncate -s 4096 first second
printf 'START|REGISTER_FILE;%s/first;0x10000000;0x1000;0|REGISTER_FILE;%s/second;0x10001000;0x1000;0|%s|STOP' "$here" "$here" \
	'STORE;0x10000ff8;1;8|STORE;0x10001000;1;8|FLUSH;0xffffff8;0x3000|FENCE' >two.log
run 0 images -l two.log -p true
says '2 stores, 2 flushes' 'at 2 places: 4 different images' # only one is left after the fence
run 0 bash -c 'tidemark images -l two.log -p true --image 5: | grep "nothing was in flight"'
# It changes the pool itself, and takes what is in it for what was there before.
run 0 images -l good.log --pool zero -p ./checker
cp pool before
printf '\1' | dd of=pool conv=notrunc status=none
run 1 images -l good.log -p ./checker
run 0 images -l good.log --pool before -p ./checker
truncate -s 0 pool && truncate -s 4096 pool
# pmreorder makes 109,601 permutations of eight stores before a barrier; there are 256 images (above).

# What a log names may be anything: only a file is opened, without waiting.
mkfifo pipe
for what in pipe /dev/zero; do
	printf 'START|REGISTER_FILE;%s;0x10000000;0x1000;0|STOP' "$(realpath $what)" >what.log
	bad 'Operation not supported; expected the file' timeout 60 tidemark images -l what.log -p true
done

# --- wrong logs: one line, with the place ---

# wrong TEXT TOKEN...: after the beginning of a log. (TEXT without quotes.)
wrong() {
	local text=$1
	shift
	log wrong.log "$@"
	run 2 images -l wrong.log -p true
	sed -i "s/'//g" out
	says "wrong.log:1: $text"
	one_line
}
wrong 'FLASH;1;2; expected STORE' 'FLASH;1;2' STOP
wrong 'BEGIN; expected STORE' BEGIN
wrong 'FLASH;1; expected STORE' "$data" 'FLASH;1' # not a part of the frame before it
wrong 'STORE: the address is missing' STORE
wrong 'STORE: the address is nowhere; expected a hexadecimal number' 'STORE;nowhere;1;1'
wrong 'STORE: the value is missing' 'STORE;0x10000000'
wrong 'STORE: the value is -1' 'STORE;0x10000000;-1;1'
wrong 'STORE: the size is' 'STORE;0x10000000;1;'
wrong 'STORE: the value is 0x10000000000000000' 'STORE;0x10000000;0x10000000000000000;8'
wrong 'STORE: 9 bytes; expected 1 to 8' 'STORE;0x10000000;1;9'
wrong 'STORE: 0 bytes; expected 1 to 8' 'STORE;0x10000000;1;0'
wrong 'STORE: 0x100 does not fit into 1 byte' 'STORE;0x10000000;0x100;1'
wrong 'STORE: 0x10001000, 8 bytes, is in no file' 'STORE;0x10001000;1;8'
wrong 'STORE: 0x10000ffc, 8 bytes, is in no file' 'STORE;0x10000ffc;1;8'
wrong 'STORE: 0xffffffffffffffff, 8 bytes, is in no file' 'STORE;0xffffffffffffffff;1;8'
wrong 'FLUSH: the size is missing' 'FLUSH;0x10000000'
wrong 'FLUSH: 5 is one field too many' 'FLUSH;0x10000000;0x40;5'
wrong 'FLUSH: 0x0 bytes' 'FLUSH;0x10000000;0'
wrong 'FLUSH: 0x40 bytes' 'FLUSH;0xfffffffffffffff0;0x40'
wrong 'DEEP_SYNC: the address is z' 'DEEP_SYNC;z;1'
wrong 'REGISTER_FILE: expected the path' 'REGISTER_FILE'
wrong 'REGISTER_FILE: the offset is missing' 'REGISTER_FILE;/a;0x20000000;0x1000'
wrong 'REGISTER_FILE: /a: the mapping is empty, too long, or not aligned' 'REGISTER_FILE;/a;0x20000000;0;0'
wrong 'REGISTER_FILE: /a: the mapping is empty, too long, or not aligned' 'REGISTER_FILE;/a;0x20000001;0x1000;0'

# wrong_file TEXT: wrong.log as it is.
wrong_file() {
	bad "$1" images -l wrong.log -p true
}
: >wrong.log
wrong_file 'neither a recording nor a log with a START; expected what tidemark record or'
echo 'STORE;1;2;3|STOP' >wrong.log
wrong_file 'neither a recording nor a log with a START; expected what tidemark record or'
head -c 5000 /dev/urandom | tr '|;\n' 'abc' >wrong.log
wrong_file wrong.log
printf 'START|\0|STOP' >wrong.log
wrong_file 'NUL bytes'
echo 'START|STOP' >wrong.log
wrong_file 'no file was registered'
printf 'START\n|FENCE\n|STORE;1;1;1|STOP' >wrong.log
wrong_file 'wrong.log:3: STORE'
echo "START|REGISTER_FILE;$here/nothing;0;0x1000;0|STOP" >wrong.log
wrong_file "$here/nothing: No such file or directory; expected the file as it was"

# --- wrong commands ---

# refused TEXT ARGUMENT...
refused() { bad "$1" images "${@:2}"; }
refused 'or --log FILE' -p true
refused 'expected --recover CMD, or -p CHECKER' -l good.log --recover true -p true
refused 'and no arguments' -l good.log -c lib -p ./checker.so -n check more
refused 'unexpected "more"' -l good.log --recover true more
for image in nonsense -1: 99: 4; do
	refused 'expected the number of an event' -l bad.log -p true --image "$image"
done
for image in 4:0 4:0+0x40 4:0+0x40=2 4:0+0x41=0 4:1+0x40=0 '4:0+0x40=0,' 4:0+0x40=0x 0:0+0x40=0; do
	refused 'expected FILE+0xOFFSET=LEFT' -l bad.log -p true --image "$image" --keep mistake
	[ ! -e mistake ] || fail 'a mistake leaves a folder'
done
refused 'kept: File exists' -l bad.log -p true --image 4: --keep kept
refused 'a/b: No such file' -l bad.log -p true --image 4: --keep a/b

# A checker that is not there is no verdict.
refused './nonexistent: No such file or directory; expected a program that can be started' -l good.log -p ./nonexistent
refused 'nonexistent-command: no such command in PATH; expected a program that can be started' -l good.log --recover 'nonexistent-command --check {}'
refused './nonexistent: No such file' -l good.log --recover true --check ./nonexistent
refused './checker.c: Permission denied' -l good.log -p './checker.c x'
refused 'Is a directory' -l good.log -p /tmp
refused './nonexistent: No such file' -l bad.log -p ./nonexistent --image 4: --keep mistake
for number in 0 2 00 65537 18446744073709551617; do
	refused "{$number}, but 1 file of PM; expected {1}" -l good.log --recover "./checker {$number}"
	refused "{$number}, but 1 file of PM; expected {1}" -l good.log --recover './checker {1}' --check "./checker {$number}"
done
run 0 images -l good.log --recover './checker {1}'
refused 'the command is empty' -l good.log -p ' '
refused './nothing.so: cannot open' -l good.log -c lib -p ./nothing.so -n check
refused 'it has no function no_such' -l good.log -c lib -p ./checker.so -n no_such
refused 'checker.c' -l good.log -c lib -p ./checker.c -n check
[ ! -e mistake ] || fail 'a mistake leaves a folder'
# A line of shell is the shell's.
run 0 images -l good.log --recover 'if true; then :; fi; ./checker'
run 0 images -l good.log --recover ': {}'

# --- the log of a run in the simulation ---

trace=$sources/tests/traces/efactory-DUR.trace
run 1 tidemark replay -q --pmemcheck-log run.log "$trace"
[ "$(wc -l <run.log)" -eq 1 ] || fail 'a log of several lines'
grep -q 'STORE;[^|]*write_header (core/stores/efactory/server.c:' run.log || fail 'no place in the store'
run 0 tidemark images --log run.log --recover true --most 4
says 'run.log.pool (6912 bytes)' '2 markers'
