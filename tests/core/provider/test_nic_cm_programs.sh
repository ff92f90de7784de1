#!/bin/bash
# Programs of rdmacm-utils on the soft RNIC, unmodified: with the library preloaded, and with the drop-in libraries found
# first. Has the drop-in librdmacm.so.1 every symbol of the system's, in its version?
#
#   tests/core/provider/test_nic_cm_programs.sh PRELOAD DROP-IN [SYSTEM]
set -eu

preload=$1 dropin=$2 system=${3:-}
for program in rping ucmatose rdma_client rdma_server rdma_xclient rdma_xserver; do
	command -v $program >/dev/null || { echo "no $program (package rdmacm-utils)" >&2; exit 77; }
done
dir=$(mktemp -d)
export TIDEMARK_FABRIC
TIDEMARK_FABRIC=$(mktemp -d /dev/shm/tidemark-test-XXXXXX)
server=
end() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null || :
	rm -rf "$dir" "$TIDEMARK_FABRIC"
}
trap end EXIT

limit=250 failed=0
bad() {
	echo "$*" >&2
	tail -n 40 "$dir/server" "$dir/client" >&2 || :
	failed=1
}

# How: by which variable the program finds the soft RNIC.
on() {
	env "$how" timeout -k 1 $limit "$@"
}

# listens PORT: the server does, as its name in the fabric shows, or it has ended.
listens() {
	until compgen -G "$TIDEMARK_FABRIC/cm-*-$1-*" >/dev/null; do
		kill -0 "$server" 2>/dev/null || return 1
		sleep 0.05
	done
}

# pair SERVER... -- CLIENT...: both end well.
pair() {
	local words=() status=0
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	on "${words[@]}" >"$dir/server" 2>&1 </dev/null &
	server=$!
	listens '*' || :
	on "$@" >"$dir/client" 2>&1 </dev/null || status=$?
	[ $status -eq 0 ] || bad "$how: $*: status $status"
	status=0
	wait "$server" || status=$?
	server=
	[ $status -eq 0 ] || bad "$how: ${words[*]}: status $status"
}

programs() {
	pair rdma_server -p 7001 -- rdma_client -s 127.0.0.1 -p 7001
	pair rdma_xserver -p 7001 -- rdma_xclient -s 127.0.0.1 -p 7001
	pair rping -s -C 10 -v -p 7002 -a 127.0.0.1 -- rping -c -C 10 -v -p 7002 -a 127.0.0.1
	pair ucmatose -p 7003 -c 5 -C 20 -S 4000 -- ucmatose -p 7003 -c 5 -C 20 -S 4000 -s 127.0.0.1
	pair ucmatose -p 7004 -m -- ucmatose -p 7004 -m -s 127.0.0.1
}

how=LD_PRELOAD=$preload programs
how=LD_LIBRARY_PATH=${dropin%/*} programs
[ ! -d "$TIDEMARK_FABRIC" ] || [ -z "$(ls "$TIDEMARK_FABRIC")" ] || bad "left behind: $(ls "$TIDEMARK_FABRIC")"

# What a killed server leaves is removed by the next process with a NIC, and the fabric by the last one.
if command -v ibv_devinfo >/dev/null; then
	how=LD_PRELOAD=$preload
	env "$how" ucmatose -p 7005 >"$dir/server" 2>&1 &
	server=$!
	listens 7005 || bad 'the server to be killed does not listen'
	kill -9 "$server"
	wait "$server" || :
	server=
	on ibv_devinfo >"$dir/client" 2>&1 || bad 'ibv_devinfo'
	[ ! -d "$TIDEMARK_FABRIC" ] || bad "a killed server has left $(ls "$TIDEMARK_FABRIC")"
fi

symbols() {
	objdump -T "$1" | awk '$4 == ".text" && $(NF - 1) !~ /^\(/ { print $(NF - 1), $NF }' | sort
}
if [ -e "$system" ] && command -v objdump >/dev/null; then
	symbols "$dropin" >"$dir/ours"
	while read -r version name; do
		grep -qx "$version $name" "$dir/ours" || bad "missing in $dropin: $name@$version"
	done < <(symbols "$system")
	[ -s "$dir/ours" ] || bad 'objdump found no symbols'
fi
exit $failed
