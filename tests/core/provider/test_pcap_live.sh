#!/usr/bin/env bash
# test_pcap_live.sh TIDEMARK: what passes between two programs, as a file that tshark dissects as RoCEv2.
set -eu
tidemark=$1
name=test_pcap_live
# shellcheck source=tests/core/provider/nic_pair.sh
. "$(dirname "$0")/nic_pair.sh"
command -v python3 >/dev/null || {
	echo "$name: python3 is not installed" >&2
	exit 77
}

# Records as the file's heads say, without tshark: "PACKETS BYTES", or nothing if it does not add up.
records() {
	python3 - "$1" <<-'END'
		import struct, sys
		data = open(sys.argv[1], "rb").read()
		assert struct.unpack("<IHH", data[:8]) == (0xA1B23C4D, 2, 4), "head"
		at, n = 24, 0
		while at < len(data):
		    stored, real = struct.unpack("<8xII", data[at : at + 16])
		    assert stored == real and 14 + 28 + 12 + 4 <= stored <= 4300, f"record {n} at {at}"
		    at, n = at + 16 + stored, n + 1
		assert at == len(data), "torn at the end"
		print(n)
	END
}

# The connection manager's messages.
connect() {
	local pids=() status=0
	command -v ucmatose >/dev/null || return 0
	run --link $link --pcap "$dir/cm-$link.pcap" -- ucmatose -p 7011 >"$dir/server" 2>&1 &
	pids=($!)
	eventually compgen -G "$net/cm-*-*-*" || return 1
	run --link $link --pcap "$dir/cm-$link.pcap" -- ucmatose -p 7011 -s 127.0.0.1 >"$dir/client" 2>&1 || status=1
	wait "${pids[0]}" || status=1
	return $status
}

for link in shm udp; do
	# A file each, and one for both: each packet when it is sent and when it comes in.
	pair "--link $link --pcap $dir/$link-%p.pcap" "--link $link --pcap $dir/$link-%p.pcap" -n 50 ||
		die "$(cat "$dir/client")"
	pair "--link $link --pcap $dir/$link.pcap" "--link $link --pcap $dir/$link.pcap" -n 200 || die "$(cat "$dir/client")"
	[ "$(find "$dir" -name "$link-[0-9]*.pcap" | wc -l)" = 2 ] || die "$link: $(ls "$dir")"
	for file in "$dir/$link"*.pcap; do
		n=$(records "$file") || die "$file is no pcap file"
		[ "$n" -gt 400 ] || die "$file: $n packets"
	done
	connect || die "$link: rdma_cm: $(cat "$dir/server" "$dir/client")"
	[ "$(records "$dir/$link.pcap")" -ge 3200 ] || die "$link: $(records "$dir/$link.pcap") packets in the shared file"
done

# One end looks, the other sends runs: the file has the packets of the wire nonetheless.
pair "--link shm --pcap $dir/one.pcap" "--link shm" -n 50 -s 65536 -m 4096 || die "$(cat "$dir/client")"
n=$(records "$dir/one.pcap") || die "one.pcap is no pcap file"
[ "$n" -ge $((50 * 2 * 17)) ] || die "one.pcap: $n packets of 50 exchanges of 64 KiB"

: >"$dir/other"
echo 'no pcap file, but somebody has written it' >"$dir/other"
if run --pcap "$dir/other" -- ibv_devinfo >"$dir/out" 2>&1; then
	die "it wrote to a file of another kind"
fi
grep -q '/other: this file exists and is not a recording of packets' "$dir/out" || die "$(cat "$dir/out")"

command -v tshark >/dev/null || {
	echo "$name: skipped: no tshark to look at the files" >&2
	exit 77
}
for file in "$dir"/*.pcap; do
	n=$(records "$file")
	tshark -r "$file" -Y infiniband -T fields -e infiniband.bth.opcode >"$dir/opcodes" 2>/dev/null
	[ "$(wc -l <"$dir/opcodes")" = "$n" ] || die "$file: $(wc -l <"$dir/opcodes") of $n packets are RoCEv2"
	bad=$(tshark -r "$file" -Y '_ws.malformed || _ws.expert.severity >= 6291456' 2>/dev/null | head -3)
	[ -z "$bad" ] || die "$file: $bad"
	case $file in
	*/cm-*)
		# REQ, REP, RTU, DREQ, DREP: each once when it is sent and once when it comes in.
		tshark -r "$file" -Y infiniband.mad -T fields -e infiniband.mad.attributeid >"$dir/messages" 2>/dev/null
		for message in 0x0010 0x0013 0x0014 0x0015 0x0016; do
			[ "$(grep -cx "$message" "$dir/messages")" -ge 2 ] || die "$file: no message $message"
		done
		continue
		;;
	esac
	# SENDs and their acknowledgements
	for opcode in 0 2 17; do
		grep -qx "$opcode" "$dir/opcodes" || die "$file: no opcode $opcode"
	done
done
