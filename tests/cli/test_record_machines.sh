#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_record_machines.sh TIDEMARK SOURCES
#
# Two machines, each with a recording of its own, which become one: as if both had been in one from the beginning. Machines are
# addresses of this one, and network namespaces.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"

export TIDEMARK_LINK=udp
run 0 gcc -g -O1 -Wall -Wextra -Werror -I"$sources" -o machines "$sources/tests/cli/record_machines.c" -libverbs
mkfifo port
server=127.0.0.2 client=127.0.0.3
at_server=() at_client=() # what is put before a command so that it runs there
# pair HOW RECORDING-OF-THE-SERVER RECORDING-OF-THE-CLIENT: `joined` for the latter: it joins the former.
pair() {
	local how=$1 port
	local client_options=(--pm client.pm --out "$3")
	[ "$3" != joined ] || client_options=(--join "$2")
	rm -f server.pm client.pm
	TIDEMARK_ADDRESS=$server "${at_server[@]}" tidemark record -q --pm server.pm --pm client.pm --out "$2" -- \
		./machines serve server.pm "$how" >port 2>server.out &
	read -r port <port
	TIDEMARK_ADDRESS=$client run 0 "${at_client[@]}" tidemark record -q "${client_options[@]}" -- \
		./machines put client.pm "$how" "${at_tcp-127.0.0.1}" "$port"
	wait $! || fail "the server: $(cat server.out)"
}
# judge STATUS RECORDING ORDER OPTION...: ORDER says which of the files is named first.
judge() {
	local status=$1 recording=$2 first=$3
	shift 3
	[ "$first" = server ] && files='{1} {2}' || files='{2} {1}'
	run "$status" tidemark images "$recording" --recover "./machines check $files" "$@"
	sed -n -e 's/ (event.*//; /^   lost:/p' -e '/^         by/p' -e 's/.*\(of [0-9]* causes*\).*/\1/p' out >"causes.$recording"
}
# merge RECORDING...: into merged.rec.
merge() {
	run 0 tidemark record --merge merged.rec "$@"
	says "merged.rec: $# machines, " ' messages between them'
}
# both HOW STATUS OPTION...: what is found is the same whoever is named first, and as if both had been in one recording.
both() {
	local how=$1 status=$2
	shift 2
	judge "$status" "joined-$how.rec" server "$@"
	merge "server-$how.rec" "client-$how.rec"
	judge "$status" merged.rec server "$@"
	cp merged.rec again.rec
	diff "causes.joined-$how.rec" causes.merged.rec >out || fail "$how: other causes, merged and joined"
	merge "client-$how.rec" "server-$how.rec"
	judge "$status" merged.rec client "$@"
	diff "causes.joined-$how.rec" causes.merged.rec >out || fail "$how: other causes, the client first"
}
for how in send tcp read; do
	pair $how server-$how.rec client-$how.rec
	pair $how joined-$how.rec joined
done
both send 0
both tcp 0
both read 1
both read 0 --knob ddio=off
# What a client announced on its machine is judged by what is left on the other.
merge client-tcp.rec server-tcp.rec
run 0 tidemark images merged.rec --recover './machines dump {2} {1}' --contracts DUR
merge client-read.rec server-read.rec
run 1 tidemark images merged.rec --recover './machines dump {2} {1}' --contracts DUR
says 'DUR: v1 is absent' 'of 1 cause'
# The same recordings, the same bytes.
merge server-read.rec client-read.rec
cmp -s merged.rec again.rec || fail 'the merged recording is another one'
# The machine that is named first is as far ahead as it may be: a value that is confirmed before it is durable is found,
# whichever came first in the run.
for how in early hasty; do
	pair $how server-$how.rec client-$how.rec
	merge client-$how.rec server-$how.rec
	judge 1 merged.rec client
	says 'of 1 cause' 'lost: the landing'
done

# --- several processes of a machine: one of them takes the packets of others from the wire ---

beside=()
for address in $server $server $server $client $client $client; do
	TIDEMARK_ADDRESS=$address tidemark run -- ./machines beside x >port 2>&1 &
	beside+=($!)
	read -r _ <port
done
pair send server-shared.rec client-shared.rec
kill "${beside[@]}"
merge server-shared.rec client-shared.rec
judge 0 merged.rec server
diff causes.joined-send.rec causes.merged.rec >out || fail 'other causes with other processes at the same addresses'

# --- a machine without PM ---

TIDEMARK_ADDRESS=$client run 0 tidemark record --out none.rec -- true
says '0 files of PM'
TIDEMARK_LINK=shm run 2 tidemark record --out none.rec -- true
says 'expected --pm'

# --- with network namespaces ---

# In namespaces of our own; 77: this machine has none.
namespaces() {
	unshare --user --map-root-user --net true 2>/dev/null && command -v ip nsenter >/dev/null
}
if namespaces; then
	cat >inside.sh <<-'END'
		set -eu
		unshare --net sleep 1000 &
		other=$!
		trap 'kill $other' EXIT
		until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do :; done
		ip link set lo up
		ip link add here type veth peer name there netns $other
		ip address add 10.77.0.1/24 dev here
		ip link set here up
		inside="nsenter --target $other --net"
		$inside ip address add 10.77.0.2/24 dev there
		$inside ip link set there up
		$inside ip link set lo up
		TIDEMARK_ADDRESS=10.77.0.1 tidemark record -q --pm server.pm --out server.rec -- ./machines serve server.pm send >port &
		server=$!
		read -r port <port
		TIDEMARK_ADDRESS=10.77.0.2 $inside tidemark record -q --pm client.pm --out client.rec -- \
			./machines put client.pm send 10.77.0.1 "$port"
		wait $server
	END
	rm -f server.pm client.pm
	run 0 unshare --user --map-root-user --net bash inside.sh
	merge client.rec server.rec
	judge 0 merged.rec client
	diff causes.joined-send.rec causes.merged.rec >out || fail 'other causes with namespaces'
else
	echo 'no network namespaces here: only addresses were tried' >&2
fi

# --- what cannot be ---

# refused WORDS RECORDING...
refused() {
	local words=$1
	shift
	run 2 tidemark record --merge bad.rec "$@"
	one_line
	says "$words"
	[ ! -e bad.rec ] || fail 'a recording was made all the same'
}
refused 'expected 2 to 64 recordings' server-send.rec
refused 'nowhere.rec: No such file' server-send.rec nowhere.rec
refused 'machines: expected a recording' server-send.rec machines
refused 'both of 127.0.0.2' server-send.rec server-send.rec
refused "packets came from $client, and none of the recordings" server-send.rec none.rec
refused 'expected whole recordings of one run' server-send.rec client-tcp.rec
refused 'no message goes from or to the other machines' server-send.rec client-send.rec none.rec
refused 'both of 127.0.0.2' server-send.rec client-send.rec server-tcp.rec
head -c 5000 client-send.rec >half.rec
refused 'half.rec: it says that it has' server-send.rec half.rec
run 2 tidemark record --merge server-send.rec server-send.rec client-send.rec
one_line
run 2 tidemark record --merge machines server-send.rec client-send.rec
one_line
run 2 tidemark record --merge bad.rec --pm x server-send.rec client-send.rec
one_line
# A recording of no run with the link udp has no messages.
TIDEMARK_LINK=shm run 0 tidemark record -q --pm server.pm --out alone.rec -- ./machines check server.pm client.pm
refused 'no message goes' server-send.rec alone.rec client-send.rec
# There are no times in it.
: >history
run 2 tidemark images merged.rec --history history --recover true
says 'no times are in merged.rec'
one_line
