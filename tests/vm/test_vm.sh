#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_vm.sh: vm/build and vm/guest do what they say: output and status, programs with their libraries, NVDIMMs that
# outlive a power cut, a time limit, crashes of the guest's kernel, wrong input, and that nothing is left whatever ends
# them. Skipped where there is no QEMU.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
failures=0
made=${TIDEMARK_VM_DIR:-$here/build/vm}

wrong() {
	failures=$((failures + 1))
	echo "FAILED: $*" >&2
	sed 's/^/	stdout: /' out >&2
	sed 's/^/	stderr: /' err >&2
}

# run STATUS ARGUMENT...: vm/guest; output in out and err.
run() {
	local expected=$1 status=0
	shift
	timeout 400 "$here/vm/guest" "$@" >out 2>err </dev/null || status=$?
	if [ $status -eq 77 ] && [ "$expected" -ne 77 ]; then
		cat err >&2
		exit 77
	fi
	[ $status -eq "$expected" ] || wrong "exit status $status instead of $expected: $*"
}

expect() { grep -qxF -e "$1" out || wrong "no line '$1'"; }
# No directory of our runs is left. Another guest may be running.
left() {
	local dir
	for dir in "$made"/run."$1".*; do
		[ ! -e "$dir" ] || wrong "$dir is left"
	done
}
gone() { ! kill -0 "$1" 2>/dev/null || wrong "process $1 is left"; }

# Wrong input: one line, 2, no boot.
run 2 --nonsense
run 2 --cpus two -- true
run 2 --net carrier-pigeon -- true
run 2 --nvdimm "$tmp/absent" -- true
run 2 --program "$tmp/absent" -- true
run 2
[ "$(wc -l <err)" -eq 1 ] || wrong "not one line on stderr"
truncate -s 5M odd
run 2 --nvdimm odd -- true

# Whatever seed is drawn, the scripts take it.
(
	# shellcheck source=vm/common.sh
	. "$here/vm/common.sh"
	for _ in {1..300}; do
		[[ $(any_seed) =~ ^[0-9]{1,9}$ ]] || exit 1
	done
) || wrong "a seed of more digits than --seed takes"

# A line whose parts come one at a time is a line.
(
	# shellcheck source=vm/common.sh
	. "$here/vm/common.sh"
	mkfifo pipe
	exec 8<>pipe
	for part in sta tus ' 7\nnext\n'; do
		if read_within 0.1 8; then
			echo 'a line before its end'
		fi
		# shellcheck disable=SC2059
		printf "$part" >&8
	done
	read_within 60 8
	echo "$line"
	read_within 60 8
	echo "$line"
) >out 2>err
printf 'status 7\nnext\n' | cmp -s - out || wrong "a line in parts"

# A machine without QEMU.
mkdir bin
ln -s /usr/bin/* bin/
rm -f bin/qemu-system-x86_64
status=0
PATH=$tmp/bin "$here/vm/guest" -- true >out 2>err || status=$?
[ $status -eq 77 ] || wrong "exit status $status without QEMU"
grep -q 'qemu-system-x86_64' err || wrong "no word about QEMU"
rm -rf bin

# What is made once, with words about it.
status=0
"$here/vm/build" --if-needed 2>err || status=$?
if [ $status -ne 0 ]; then
	cat err >&2
	exit $status
fi

# Output, its end included; status; a program with libraries; devices; arguments as they are.
printf '#!/bin/sh\necho "a script: $1"\n' >script
run 7 --program script --program "$(command -v xz)" --nvdimm "pm:32M" --nvdimm "other:16M" --address 10.0.0.3 -- \
	'script "two  words"; echo squeezed | xz | xz -d; ibv_devinfo -d rxe0 | grep -o PORT_ACTIVE; ip -o addr show dummy0 |
	grep -o 10.0.0.3; cat /sys/bus/dax/devices/dax[01].0/size; echo error >&2; seq 1 50000; exit 7'
for line in 'a script: two  words' squeezed PORT_ACTIVE 10.0.0.3 $((30 << 20)) $((14 << 20)) error 50000; do
	expect "$line"
done
# The first guest of all finds out about KVM.
if grep -qv 'KVM does not work here' err; then wrong "something on stderr"; fi

# Memory that a guest wrote before it lost its power is in the file, 2 MiB in; QEMU's pid is in the pidfile.
cat >write.c <<'END'
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	char *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, open("/dev/dax0.0", O_RDWR), 0);
	if (p == MAP_FAILED)
		return 1;
	strcpy(p + 4096, "written before the cut");
	pause();
	return 0;
}
END
"${CC:-cc}" -o write write.c
timeout 400 "$here/vm/guest" --program write --nvdimm pm --pidfile pid -- write >out 2>err &
guest=$!
until [ "$(dd if=pm bs=1 skip=$((2097152 + 4096)) count=22 2>/dev/null | tr -d '\0')" = 'written before the cut' ]; do
	kill -0 $guest 2>/dev/null || {
		wrong "the guest wrote nothing to its NVDIMM"
		exit 1
	}
	sleep 0.1
done
qemu=$(cat pid)
kill -KILL "$qemu"
status=0
wait $guest || status=$?
[ $status -eq 137 ] || wrong "exit status $status after a power cut"
gone "$qemu"
[ ! -e pid ] || wrong "the pidfile is left"

# A signal, and SIGKILL itself: no QEMU is left; after the former no file either.
for signal in INT TERM KILL; do
	# A shell's background jobs ignore SIGINT.
	setsid env --default-signal=INT "$here/vm/guest" --pidfile pid --net listen:socket -- sleep 1000 >out 2>err &
	guest=$!
	until [ -s pid ] && [ -S socket ]; do
		kill -0 $guest 2>/dev/null || {
			wrong "the guest ended"
			exit 1
		}
		sleep 0.1
	done
	qemu=$(cat pid)
	kill -$signal $guest
	status=0
	wait $guest || status=$?
	case $signal,$status in
	INT,130 | TERM,143 | KILL,137) ;;
	*) wrong "exit status $status after SIG$signal" ;;
	esac
	tries=0
	while kill -0 "$qemu" 2>/dev/null && [ $tries -lt 600 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	gone "$qemu"
	if [ $signal != KILL ]; then
		left $guest
		[ ! -e pid ] && [ ! -e socket ] || wrong "files are left after SIG$signal"
	fi
	rm -f pid socket
done

# A snapshot: the second start has no boot, has a command of its own, and sees what the host did to the NVDIMM meanwhile.
cat >peek.c <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
int main(void)
{
	char *p = mmap(NULL, 4 << 20, PROT_READ, MAP_SHARED, open("/dev/dax0.0", O_RDWR), 0);
	if (p == MAP_FAILED)
		return 1;
	printf("%.22s\n", p + 4096);
	return 0;
}
END
"${CC:-cc}" -o peek peek.c
status=4
for word in 'written before the cut' 'written by the machine'; do
	status=$((status + 1))
	printf %s "$word" | dd of=pm bs=1 seek=$((2097152 + 4096)) conv=notrunc 2>/dev/null
	run $status --snapshot snapshot --program peek --nvdimm pm -- "peek; exit $status"
	expect "$word"
done

# A time limit; a kernel that crashes after the command began. What the run before left is cleared away.
run 124 --timeout 3 -- sleep 1000
left "$guest"
run 70 -- 'echo c >/proc/sysrq-trigger; sleep 100'
grep -q 'the guest went down' err || wrong "no word about the crash"

# A test under which a kernel or QEMU crashed is run again, twice; one that failed is not.
# tried TIMES STATUS COMMAND: COMMAND is run so often, and that is the status in the end.
tried() {
	local status=0
	rm -f tries
	"$here/tests/again.sh" sh -c "echo >>tries; $3" >out 2>err || status=$?
	[ "$(wc -l <tries) $status" = "$1 $2" ] || wrong "$(wc -l <tries) tries, status $status instead of $1 and $2: $3"
}
crash='echo "Oops: int3: 0000 [#1]" >&2; exit 70'
tried 2 0 "[ \$(wc -l <tries) -eq 2 ] || { $crash; }"
tried 3 70 "$crash"
tried 3 70 'echo "vm/guest: the guest went down; QEMU ended with status 139" >&2; exit 70'
tried 1 70 'echo the guest does not boot; exit 70'
tried 1 0 'echo "Kernel panic"'

[ $failures -eq 0 ] || exit 1
