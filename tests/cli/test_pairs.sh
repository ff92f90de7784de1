#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_pairs.sh TIDEMARK SOURCES
#
# A store with transactions, examples/pairs: it holds what it promises; each seeded bug is found, and told as who read what of
# whom; traces and lists of operations have transactions, and a store without them is not asked for any.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
cp "$sources"/examples/pairs/pairs.c .
run 0 tidemark cc -g -Wall -Wextra -Werror -o pairs.so pairs.c

run 0 tidemark list workloads ./pairs.so
says 'T-T-skew ' 'each writes what the other one has read'
all=()
for workload in T T-T T-TT T-T-lost T-T-skew T-T-cross T-w-T; do
	all+=(--workload "$workload")
done
run 0 tidemark crashtest ./pairs.so "${all[@]}" --runs 24 --states 600 --no-traces --doublecheck --json right.json
grep -q '"contract": "SSER"' right.json || fail 'no cell for SSER'
run 0 tidemark fuzz ./pairs.so --runs 300
run 1 tidemark fuzz ./pairs.so --variant two_records --runs 1500
says 'ATOM'
run 1 tidemark fuzz ./pairs.so --variant no_validation --runs 3000
says 'SSER: c2.get1 read c1.put1, which c2.put1 overwrote (client 1' 'read load k1, which c2.put1 overwrote, too); c2.put1 had ended'

# found VARIANT CONTRACT WORKLOAD TEXT
found() {
	run 1 tidemark crashtest ./pairs.so --variant "$1" --workload "$3" --runs 60 --states 4000 --knob domain=dmp
	run 1 tidemark replay "traces/pairs-$1-$2.trace"
	says "broken $2" "$4"
}
found no_validation SSER T-T-skew \
	"client 1's transaction 1 read load k2, which client 2's transaction 1 overwrote; client 2's transaction 1 read load k1,"
grep -q '^client 1: T{get k2, put k1 8}$' traces/pairs-no_validation-SSER.trace || fail 'not the shortest trace'
found unchecked_reads ATOM T-T "client 2's transaction 1 read c1.put"
found two_records ATOM T "a reader after recovery read load k2, which client 1's transaction 1 overwrote"
found abort_late NORES T-T-lost "PUT k1 was aborted; then a reader after recovery read c"
# Only who uses a store that has recovered, and by transactions, finds this.
found two_later ATOM T "a reader after the second failure read load k"
grep -q 'life 1: put key . and the next$' traces/pairs-two_later-ATOM.trace || fail 'it takes no transaction of a life'

# Lists of operations.
printf 'load k1 40\n1 T{get k1, put k2 40}\n2,T{put k1 40, put k2 40}, 2 get k1\n' >two
run 2 tidemark crashtest ./pairs.so --ops two
says 'two:3'
printf 'load k1 40\n1 T{get k1, put k2 40}\n2,T{put k1 40, put k2 40}\n' >ops
run 0 tidemark crashtest ./pairs.so --ops ops --runs 24 --states 600 --no-traces
bad 'no such operations' tidemark crashtest erda --ops ops

# Wrong descriptions.
sed 's/\.txn = txn,//' pairs.c >wrong.c
run 0 tidemark cc -g -o wrong.so wrong.c
bad 'ATOM or SSER; expected .txn' tidemark crashtest ./wrong.so
