# What vm/powercut and vm/tear have in common: two guests, and a cut of the server's power; sourced, not run.
#
# All is in one directory, where the scripts are, too: media, cache (of a server with --shadow), recording
# (of the clients), the socket between the guests, snapshots of them; at/ has the copies of the last cut.
#
# What the scripts say: $store, $variant, $mode (plain, shadow), $clients, $keys, $value, $media_mb, $recording_mb, $program, $seed,
# $keep, $outdir.
# shellcheck shell=bash disable=SC2034,SC2154

# A command that fails in the scripts is no broken promise.
set -E
trap 'say "$(basename "$0"): line $LINENO failed"; exit 70' ERR

offset=2097152 # bytes: where the data begin in an NVDIMM's backing file
first_record=$((offset + 4096)) record=64 # of a recording (checker/live/recording.h)

# Check what every script needs; go to a temporary directory, which is removed at the end.
prepare() {
	[ -x "$program" ] || usage "$program: no such program (make, or --program)"
	program=$(realpath "$program")
	mkdir -p "$outdir"
	outdir=$(realpath "$outdir")
	"$root/vm/build" --if-needed || exit

	private_dir cut
	work=$private
	trap clean_up EXIT
	exit_on_signals
	cd "$work" || exit # names of sockets are short
	# Guests boot once; then each start is from there.
	snapshots=${SNAPSHOTS:-$work}
	RANDOM=$((seed % 32768))
}

client='' server='' client_cpus=2
# shellcheck disable=SC2317
clean_up() {
	trap '' INT TERM HUP
	stop_guests
	if [ -n "$keep" ]; then
		say "kept: $work"
	else
		rm -rf "$work"
	fi
}

# Each ends with its guest.
stop_guests() {
	local pid
	for pid in $client $server; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	client='' server=''
}

# A number below $1, in $drawn: a subshell would draw from a generator of its own.
draw() { drawn=$(((RANDOM << 15 | RANDOM) % $1)); }
running() { [ -n "$1" ] && kill -0 "$1" 2>/dev/null; }
progress() {
	if [ -t 2 ]; then
		printf '\r\033[K%s' "$*" >&2
	fi
}

# start_clients COMMANDS: the clients' guest of $client_cpus CPUs, a load without end, and beside it COMMANDS.
start_clients() {
	draw 1000000
	"$root/vm/guest" --snapshot "$snapshots/client" --net listen:net --address 10.0.0.2 --nvdimm "recording:${recording_mb}M" --program "$program" \
		--cpus "$client_cpus" --out client.out --console client.console -- \
		"tidemark bench --server 10.0.0.1:7471 --workload a --clients $clients --keys $keys --value $value \
		--seed $drawn --load --history /dev/dax0.0 --time 36000s --reconnect --patience 600s --stall 600s -q & load=\$!
		$1
		wait \$load" 2>client.err &
	client=$!
}

# On the media as they are; they keep the options of the first start.
start_server() {
	local behind=() cache=''
	if [ "$mode" = shadow ]; then
		behind=(--nvdimm "cache:${media_mb}M")
		cache=--shadow=/dev/dax1.0
	fi
	"$root/vm/guest" --snapshot "$snapshots/server-$mode" --net connect:net --nvdimm "media:${media_mb}M" "${behind[@]}" --program "$program" \
		--pidfile server.pid --out server.out --console server.console -- \
		"tidemark serve $store ${variant:+--variant $variant} --pm /dev/dax0.0 $cache --listen 10.0.0.1:7471 \
		--clients $((2 * clients)) --keys $keys --value $value --size $(((media_mb - 4) << 20))" 2>server.err &
	server=$!
}

# used N: has record number N of the recording been used?
used() { od -An -tu8 -j $((first_record + record * $1)) -N 8 recording 2>/dev/null | grep -q '[1-9]'; }

# Number of operations that have been recorded, in $recorded; at least $1.
count_operations() {
	local low=$1 high=$(($1 + 1)) middle
	recorded=0
	used 0 || return 0
	while used $((high - 1)); do
		low=$high
		high=$((high * 2))
	done
	while [ $((high - low)) -gt 1 ]; do
		middle=$(((low + high) / 2))
		if used $((middle - 1)); then
			low=$middle
		else
			high=$middle
		fi
	done
	recorded=$low
}

# Until clients have done $1 operations more than $recorded. 1: they do not.
await_operations() {
	local from=$recorded wanted=$((recorded + $1)) end=$((SECONDS + 600))
	while :; do
		if ! running "$client" || ! running "$server"; then
			return 1
		fi
		count_operations "$from"
		[ "$recorded" -lt $wanted ] || return 0
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# What to say when a guest is no more, or does nothing.
show_guests() {
	local guest
	for guest in server client; do
		tail -qn 5 $guest.err $guest.out 2>/dev/null | sed "s/^/	$guest: /" >&2 || true
	done
}

# SIGKILL to the server's QEMU; copies of what is left in at/. With a shadow, a subset of the lines in flight
# reaches the media.
cut_power() {
	local pid
	pid=$(cat server.pid)
	kill -KILL "$pid"
	wait "$server" 2>/dev/null || true
	server=''
	rm -rf at
	mkdir at
	cp --sparse=always --reflink=auto media recording at/
	if [ "$mode" = shadow ]; then
		cp --sparse=always --reflink=auto cache at/
		draw 8
		subset=$((drawn < 2 ? drawn : 0))
		if [ "$drawn" -ge 2 ]; then
			draw 1000000
			subset=$((drawn + 2))
		fi
		"$program" cut --pm media --cache cache --offset $offset --seed "$subset" >at/cut
	else
		subset=0
	fi
}

# Judge what is in at/; its verdict in at/verdict. Sets $judged.
examine() {
	local arguments=(--pm at/media --history at/recording --offset "$offset" --save-recovered recovered.new --out "$outdir")
	if [ "$mode" = shadow ]; then
		arguments+=(--cache at/cache --seed "$subset")
	fi
	if [ -e recovered ]; then
		arguments+=(--recovered recovered)
	fi
	judged=0
	"$program" examine "${arguments[@]}" >at/verdict 2>at/verdict.err || judged=$?
	if [ -e recovered.new ]; then
		mv recovered.new recovered
	fi
}

worst=0
# worse STATUS: makes it the script's own status if it is worse. A break is the worst, "could not tell" the least.
worse() {
	case $worst,$1 in
	*,0 | 1,*) ;;
	0,* | *,1 | 3,*) worst=$1 ;;
	esac
}

# give_up WHY: the run cannot go on. A guest that has found a broken promise ended with 1.
give_up() {
	local pid status
	say "$store, $mode: $1 (vm/$(basename "$0") --keep keeps images and messages)"
	show_guests
	for pid in $client $server; do
		if ! running "$pid"; then
			status=0
			wait "$pid" || status=$?
			if [ $status -eq 1 ]; then
				worse 1
			fi
		fi
	done
	worse 70
}
