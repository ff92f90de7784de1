#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_record_store.sh TIDEMARK SOURCES
#
# A store of Tidemark's own in its live form, as any RDMA server: it is recorded while a client works, crash images are made of
# the recording, and the contracts judge them by what the client recorded until the power failed. The right store is clean; of
# one with a seeded bug, which the simulation finds, the recording shows the same, and names what must not be lost.
# shellcheck source=tests/cli/record_server.sh
. "$(dirname "$0")/record_server.sh"
judge='tidemark examine --pm {} --history history --until ${TIDEMARK_CUT_NS:-0} -q'

for store in efactory erda; do
	record $store default
	run 0 tidemark images pool.rec --history history --most 12 --recover "$judge"
	says 'landings' 'acknowledgements' 'none of them bad'
done

# What tidemark cc has made tells of each store, where it is made.
run 0 tidemark new-store mine
run 0 make -C mine
record mine/mine.so default
says ' that the program told of'
run 0 tidemark images pool.rec --pmemcheck-log text
used=$(grep -n -m 1 'used = 1;' mine/mine.c | cut -d: -f1)
[ "$(tr '|' '\n' <text | grep -c "^STORE;.*;0x1;0x4;append (mine.c:$used)")" -gt 0 ] || fail "no store of line $used"

# broken STORE BUG WHAT LINE: that is a cause; with other moments than last time, there may be others.
broken() {
	record "$1" "$2"
	run 1 tidemark images pool.rec --history history --most 12 --recover "$judge"
	says '1. exit status 1' "lost: the $3" "$4"
	# The simulation says so, too.
	run 1 tidemark crashtest "$1" --variant "$2" --workload ww --runs 40 --states 2000 --no-traces --knob ack_early=off
}
broken efactory one_flush 'store of 48 bytes' 'noticed at link_header (core/stores/efactory/server.c:'
broken efactory header_unflushed 'store of 48 bytes' 'noticed at '
broken efactory flag_first 'landing of' 'by RDMA WRITE or atomic'
