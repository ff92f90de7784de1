#!/usr/bin/env bash
# tests/core/live/fiu_guest.sh PROGRAM: in a guest of vm/guest, each failure point of the live world fails, by fiu-run and
# fiu-ctrl: in a server that starts, in clients that come, and in both under load. Nothing may crash, hang, or leak
# (where PROGRAM looks for leaks), no GET may return what was not put, and when the calls work again the store does.
set -u
tidemark=$1
at=10.0.0.1:7471
all=/tmp/all.err # what everybody said
: >$all
bad=0
server=''
loads=0
# fiu-run's library comes first, and keeps a string of its own.
echo 'leak:fiu_run_preload' >/tmp/suppressed
export ASAN_OPTIONS=verify_asan_link_order=0 LSAN_OPTIONS=suppressions=/tmp/suppressed:print_suppressions=0

complain() {
	echo "fiu: after $SECONDS s: $*"
	bad=1
}

# fiu-run as it is, for a command of remote control (or none: "").
with() {
	local command=$1
	shift
	bash /bin/fiu-run -l /bin -f /tmp/fiu-ctrl ${command:+-c "$command"} "$@"
}
ctrl() {
	timeout 100 bash /bin/fiu-ctrl -f /tmp/fiu-ctrl -c "$1" "$server" >/dev/null || complain "fiu-ctrl $1"
}

# What a process said, and whether its status is one of those allowed.
ended() {
	local what=$1 status=$2 allowed=$3 said=$4
	cat "$said" >>$all
	case " $allowed " in
	*" $status "*) ;;
	*)
		complain "$what: status $status"
		tail -n 20 "$said"
		;;
	esac
	if grep -E 'Sanitizer|runtime error|Assertion' "$said"; then
		complain "$what: see above"
	fi
}

# Start a server and wait until it serves; fails when it has ended.
start() {
	local command=$1 pm=$2
	shift 2
	: >/tmp/server.out
	# fiu-run becomes the program: its number is the server's.
	bash /bin/fiu-run -l /bin -f /tmp/fiu-ctrl ${command:+-c "$command"} "$tidemark" serve efactory --pm "$pm" \
		--listen $at "$@" >/tmp/server.out 2>/tmp/server.err &
	server=$!
	until grep -q '^serving' /tmp/server.out; do
		kill -0 $server 2>/dev/null || return 1
		sleep 0.1
	done
}
stop() {
	kill -TERM $server
	wait $server
	ended "the server's end" $? 0 /tmp/server.err
}

# A server that cannot start says so.
cannot_start() {
	local point=$1 pm=$2
	shift 2
	if start "enable name=$point" "$pm" "$@"; then
		stop
		complain "$point: the server starts"
	else
		wait $server
		ended "a server in which $point fails" $? "2 70" /tmp/server.err
	fi
}

# A client that cannot do what it should says so.
cannot_get() {
	with "$2" timeout -s KILL 100 "$tidemark" get --server $at user0000000001 >/tmp/get.out 2>/tmp/get.err
	ended "a client in which $1 fails" $? 1 /tmp/get.err
}
load() {
	local what=$1 command=$2 allowed=$3
	shift 3
	with "$command" timeout -s KILL 100 "$tidemark" bench --server $at --workload a --clients 4 --keys 64 \
		--stall 20s --history /tmp/history.$((++loads)) --room 20000 -q "$@" >/tmp/load.out 2>/tmp/load.err
	ended "$what" $? "$allowed" /tmp/load.err
}

pool=/dev/dax0.0 size=(--keys 64 --value 64 --updates 50000 --clients 8)
for point in memory verbs/alloc_pd verbs/reg_mr verbs/create_cq connect/listen task/spawn pm/map file/open file/read; do
	cannot_start $point $pool "${size[@]}"
done
cannot_start file/write /tmp/pool --keys 4 --updates 16
cannot_start pm/sync /tmp/pool --keys 4 --updates 16
grep -q 'Input/output error' /tmp/server.err && echo 'tidemark: pm/sync failed' >>$all

start '' $pool "${size[@]}" || complain "the server does not start: $(cat /tmp/server.err)"
load "the first load" '' 0 --load --ops 0
for point in memory verbs/alloc_pd verbs/reg_mr verbs/create_cq verbs/create_qp verbs/modify_qp verbs/query \
	verbs/post_send verbs/post_recv task/spawn connect/connect; do
	cannot_get $point "enable name=$point"
done
ctrl "enable name=connect/accept"
cannot_get connect/accept ''
ctrl "disable name=connect/accept"
# With few operations none may be hit by chance.
ctrl "enable name=pm/full,onetime"
load "a load on a server that finds no room once" '' 0 --workload u --ops 64
ctrl "disable name=pm/full"

# Under load: first the server's calls, then the clients'.
points="memory verbs/create_qp verbs/modify_qp verbs/query verbs/post_send verbs/post_recv task/spawn connect/accept
	pm/full"
for point in $points; do
	ctrl "enable_random name=$point,probability=0.02"
done
load "a load on a server in which calls fail" '' "0 3" --reconnect --time 2s
for point in $points; do
	ctrl "disable name=$point"
done
random=$(for point in memory verbs/alloc_pd verbs/reg_mr verbs/create_cq verbs/create_qp verbs/modify_qp \
	verbs/query verbs/post_send verbs/post_recv task/spawn connect/connect; do
	printf 'enable_random name=%s,probability=0.01\n' $point
done)
load "a load of clients in which calls fail" "$random" "0 3" --reconnect --time 2s
load "the last load" '' 0 --time 1s
stop
# What an operation reported is so, and is still so after a recovery.
histories=()
for ((i = 1; i <= loads; i++)); do
	histories+=(--history "/tmp/history.$i")
done
timeout -s KILL 200 "$tidemark" examine --pm $pool --cuts 1 "${histories[@]}" >/tmp/examine.out 2>/tmp/examine.err
ended "the pool, examined" $? 0 /tmp/examine.err
tail -n 3 /tmp/examine.out
start '' $pool "${size[@]}" || complain "the server does not start again: $(cat /tmp/server.err)"
load "a load after a restart" '' 0 --time 1s
stop

# shellcheck disable=SC2013
for point in $("$tidemark" list failures | cut -d ' ' -f 1); do
	grep -q "^tidemark: $point failed" $all || complain "$point has never failed"
done
grep '^tidemark: .* failed' $all | sort | uniq -c | sort -rn | head -60
exit $bad
