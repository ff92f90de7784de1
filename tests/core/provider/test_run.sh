#!/usr/bin/env bash
# test_run.sh TIDEMARK: tidemark run: other programs on the soft RNIC; what they leave; bad usage.
set -eu
tidemark=$1
name=test_run
# shellcheck source=tests/core/provider/nic_pair.sh
. "$(dirname "$0")/nic_pair.sh"

gone() {
	[ ! -e "$net" ]
}

# --- a pair, on each link; what is there while it runs, and after
pair "" "" -n 100 || die "shm: $(cat "$dir/server" "$dir/client")"
grep -q '^100 iters' "$dir/client" || die "$(cat "$dir/client")"
eventually gone || die "left behind: $(ls "$net")"
pair "--link udp" "--link udp" -n 100 || die "udp: $(cat "$dir/server" "$dir/client")"
grep -qE '::ffff:127\.(7[7-9]|[89][0-9]|1[0-2][0-9])\.' "$dir/client" || die "udp is not on loopback: $(cat "$dir/client")"
eventually gone || die "left behind: $(ls "$net")"

# --- other paths: the last GID; LIDs, which need no GID
pair "" "" -n 100 -g 3 || die "-g 3: $(cat "$dir/server" "$dir/client")"
pair "--link udp" "--link udp" -n 100 -g 1 || die "udp, -g 1: $(cat "$dir/server" "$dir/client")"
pair "--layer infiniband" "--layer infiniband" -n 100 -g -1 || die "no GID: $(cat "$dir/server" "$dir/client")"
grep -qE 'local address: +LID 0x0001' "$dir/client" || die "$(cat "$dir/client")"
pair "--devices 2" "" -n 100 -d tide0 || die "-d tide0: $(cat "$dir/server" "$dir/client")"
pair "--devices 2" "--devices 2" -n 100 -d tide1 || die "-d tide1: $(cat "$dir/server" "$dir/client")"
! pair "" "" -n 100 -g -1 2>/dev/null || die "Ethernet, and no GID is needed"

# --- a library that is found by its name
if command -v python3 >/dev/null; then
	for how in "" --dropin; do
		# shellcheck disable=SC2086
		run $how -- python3 -c '
import ctypes
lib = ctypes.CDLL("libibverbs.so.1")
n = ctypes.c_int()
lib.ibv_get_device_list(ctypes.byref(n))
print("devices:", n.value)' | grep -qx 'devices: 1' || die "dlopen $how: no device"
	done
fi

# --- status, arguments, signals are the program's own
run -- sh -c 'exit 7' || status=$?
[ "$status" = 7 ] || die "status $status instead of 7"
status=0
(run -- sh -c 'kill -TERM $$') 2>/dev/null || status=$?
[ "$status" = 143 ] || die "SIGTERM: status $status"
[ "$(run printf '%s|' a 'b c' --fabric)" = 'a|b c|--fabric|' ] || die "arguments"
# shellcheck disable=SC2016 # the other shell expands it
[ "$(run -- sh -c 'echo $TIDEMARK_LINK')" = shm ] || die "the environment"
# shellcheck disable=SC2016
[ "$(run --keys equal --gather late --layer infiniband --devices 2 -- sh -c 'echo $TIDEMARK_KEYS $TIDEMARK_GATHER $TIDEMARK_LAYER $TIDEMARK_DEVICES')" = \
	'equal late infiniband 2' ] || die "the environment: keys, gather, layer, devices"
# The fabric by its old names.
# shellcheck disable=SC2016
for old in "TIDEMARK_NET=$net" TIDEMARK_NET=/nowhere; do
	how=()
	[ "$old" = "TIDEMARK_NET=$net" ] || how=(--net "$net")
	[ "$(env "$old" "$tidemark" run "${how[@]}" -- sh -c 'echo $TIDEMARK_FABRIC')" = "$net" ] || die "$old ${how[*]}"
done
[ "$(run -- sh -c 'grep SigIgn /proc/self/status')" = "$(sh -c 'grep SigIgn /proc/self/status')" ] ||
	die "ignored signals: $(run -- sh -c 'grep SigIgn /proc/self/status')"

# --- kill -9: the watcher cleans up after the last process, and no earlier
port=$(free_port)
"$tidemark" run --fabric "$net" -- ibv_rc_pingpong -g 0 -p "$port" >/dev/null 2>&1 &
first=$!
pids=("$first")
eventually listens "$port" || die "no server"
port=$(free_port)
"$tidemark" run --fabric "$net" -- ibv_rc_pingpong -g 0 -p "$port" >/dev/null 2>&1 &
second=$!
pids+=("$second")
eventually listens "$port" || die "no second server"
[ "$(stat -c %a "$net")" = 700 ] || die "others may enter the fabric"
[ -z "$(find "$net" -type f ! -perm 600)" ] || die "$(ls -l "$net")"
files=$(find "$net" -type f | wc -l)
kill -9 "$first"
half() {
	[ "$(find "$net" -type f | wc -l)" = $((files / 2)) ]
}
eventually half || die "kill -9 of one of two left $(ls "$net")"
"$tidemark" stat --fabric "$net" | grep -q "process $second" || die "the other one lost its page"
kill -9 "$second"
eventually gone || die "kill -9 of both left $(ls "$net")"
wait "$first" "$second" 2>/dev/null || true
pids=()

# --- a fabric that its last process removes while another one comes
if command -v python3 >/dev/null; then
	python3 -c '
import os, sys
while True:
    for call in os.mkdir, os.rmdir:
        try:
            call(sys.argv[1], *([0o700] if call == os.mkdir else []))
        except OSError:
            pass' "$net" &
	pids=($!)
	for _ in $(seq 100); do
		run -- true >"$dir/out" 2>&1 || die "in a fabric that comes and goes: $(cat "$dir/out")"
	done
	kill "${pids[0]}"
	wait "${pids[0]}" || true
	pids=()
	rmdir "$net" 2>/dev/null || true
fi

# --- bad usage
refused 'expected shm or udp' run --link rdma -- true
refused 'expected equal or distinct' run --keys same -- true
refused 'expected ethernet or infiniband' run --layer 2 -- true
refused 'expected a number from 1 to 8' run --devices 9 -- true
refused 'expected an IPv4 address' run --link udp --address 0.0.0.0 -- true
refused 'expected a name of at most' run --fabric ../x/.. --fabric 'a b' -- true
refused 'Permission denied' run -- "$dir/."
refused 'others may enter' run --fabric /tmp -- true
if printf 'int main(void) { return 0; }' >"$dir/static.c" && gcc -static -o "$dir/static" "$dir/static.c" 2>/dev/null; then
	refused 'linked statically' run -- "$dir/static"
fi
if [ "$(id -u)" != 0 ]; then
	refused 'setuid' run -- "$(command -v su)"
fi

# --- settings of the environment that the program alone would see
status=0
LD_PRELOAD="$(dirname "$tidemark")/libtidemark-verbs.so" TIDEMARK_FABRIC="$net" TIDEMARK_SEED=x \
	ibv_rc_pingpong -g 0 >"$dir/out" 2>"$dir/err" || status=$?
[ "$status" != 0 ] && grep -q '^tidemark: TIDEMARK_SEED=x: expected a whole number' "$dir/err" || die "$(cat "$dir/err")"
