# shellcheck shell=bash disable=SC2154,SC2034
# For scripts that run a pair of programs on the soft RNIC: a fabric and ports of its own, and no hang. To be
# sourced; needs $tidemark. `name` is the name of the test, for messages.

dir=$(mktemp -d)
net=/dev/shm/tidemark-$name.$$
pids=()
cleanup() {
	local pid
	for pid in "${pids[@]}"; do
		kill -9 "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
	done
	rm -rf "$dir" "$net"
}
trap cleanup EXIT

die() {
	echo "$name: $*" >&2
	exit 1
}

command -v ibv_rc_pingpong >/dev/null || {
	echo "$name: skipped: no ibv_rc_pingpong (package ibverbs-utils)" >&2
	exit 77
}

# eventually COMMAND...: it succeeds within a minute
eventually() {
	local i
	for i in $(seq 1200); do
		if "$@" >/dev/null 2>&1; then
			return 0
		fi
		sleep 0.05
	done
	return 1
}

# listens PORT: on TCP
listens() {
	grep -q "$(printf ':%04X 0*:0000 0A' "$1")" /proc/net/tcp /proc/net/tcp6
}

free_port() {
	local port
	for port in $(seq $((20000 + $$ % 10000)) 32000); do
		if ! listens "$port"; then
			echo "$port"
			return
		fi
	done
}

run() {
	timeout -s KILL 300 "$tidemark" run --fabric "$net" "$@"
}

# pair OPTIONS OPTIONS2 [ARG...]: ibv_rc_pingpong twice, each with its own options of tidemark run
pair() {
	local port one=$1 two=$2 status=0
	shift 2
	port=$(free_port)
	# shellcheck disable=SC2086 # options are words
	run $one -- ibv_rc_pingpong -g 0 -p "$port" "$@" >"$dir/server" 2>&1 &
	pids=($!)
	eventually listens "$port" || die "the server does not listen: $(cat "$dir/server")"
	# shellcheck disable=SC2086
	run $two -- ibv_rc_pingpong -g 0 -p "$port" "$@" localhost >"$dir/client" 2>&1 || status=$?
	wait "${pids[0]}" || status=$?
	pids=()
	return "$status"
}

# refused WORD COMMAND...: status 2, and one line that has WORD
refused() {
	local word=$1 status=0
	shift
	"$tidemark" "$@" >"$dir/out" 2>"$dir/err" || status=$?
	[ "$status" = 2 ] || die "$*: status $status"
	[ "$(wc -l <"$dir/err")" = 1 ] && grep -q -- "$word" "$dir/err" || die "$*: $(cat "$dir/err")"
}
