#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_live_shape.sh TIDEMARK SOURCES: a PUT of several stores in virtual time, and on the soft RNIC between processes. It is no
# fewer packets there, and only as many more as a server that is not ready has sent again. How long it takes is printed, and
# nothing is asked of it: between processes, that is mostly how soon the machine lets each of them run.
# shellcheck source=tests/cli/record_server.sh
. "$(dirname "$0")/../../cli/record_server.sh"

# of FILE QUERY: in JSON
of() { python3 -c "import json, sys; print(json.load(open(sys.argv[1]))$2)" "$1"; }
# bench OPERATIONS: updates by one client; then what the server has sent and received in all.
bench() {
	run 0 tidemark run -- tidemark bench --server "127.0.0.1:$port" --workload u --keys 16 --ops "$1" --json live.json -q "${@:2}"
	tidemark stat --json | awk -F'[:,]' '/"packets_(sent|received)"/ { n += $2 } END { print n }'
}

printf '%-10s %-8s %18s %18s\n' '' '' 'packets of a PUT' 'its median, us' store variant 'simulated     live' 'simulated     live'
for which in 'saw_imm rpc' 'saw_imm imm' 'ca default' 'erda default' 'efactory default' 'rdmp_kv cc_adp'; do
	read -r store variant <<<"$which"
	rm -f pool
	serve tidemark run -- tidemark serve "$store" --variant "$variant" --pm pool --size 64M --clients 1 --keys 16 --value 256 --listen 127.0.0.1:0
	before=$(bench 100 --load)
	after=$(bench 1000)
	stop
	run 0 tidemark times "$store" --variant "$variant" --workload u --contracts --json times.json -q
	run 0 tidemark count "$store" --variant "$variant" --value 256 --json count.json -q
	packets=$(of count.json "['operations'][1]['foreground']['packets']") live=$((after - before))
	printf '%-10s %-8s %9d %8d.%03d %9.2f %8.1f\n' "$store" "$variant" "$packets" $((live / 1000)) $((live % 1000)) \
		"$(of times.json "['rows'][0]['put_us']")" "$(of live.json "['put']['p50_us']")"
	[ "$live" -ge $((1000 * packets)) ] || fail "$which: $live packets of 1000 PUTs, and $packets of one in virtual time"
done
