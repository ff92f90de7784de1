#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_record_programs.sh TIDEMARK SOURCES PROGRAM
#
# A program that was written without Tidemark in mind is recorded, and is started on the crash images of its recording: as it
# should be, each image is good; with a bug, the report says what must not be lost. 77: a library is missing.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/../cli/own.sh"
source=$sources/tests/interop/record_$3
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null || true; rm -rf "$here"' EXIT
export TIDEMARK_FABRIC=$here/fabric

# build COMPILER FILE LIBRARY HEADER: the program, or 77.
build() {
	local compiler=$1 file=$2 library=$3 header=$4
	if [ -n "$header" ] && ! echo "#include <$header>" | "$compiler" -E -x c - >/dev/null 2>&1; then
		echo "$header is not there (package $library-dev)" >&2
		exit 77
	fi
	run 0 "$compiler" -g -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -o program "$file" ${library:+-l"${library#lib}"} -libverbs
}

case $3 in
log)
	build g++ "$source.cc" '' ''
	for bug in '' bug; do
		rm -f pool
		run 0 ./program pool 0
		run 0 tidemark record --pm pool --out "log$bug.rec" -- ./program pool 6 $bug
	done
	run 0 tidemark images log.rec --recover ./program
	says '12 msyncs' 'none of them bad'
	run 1 tidemark images logbug.rec --recover ./program
	says 'of 1 cause' 'noticed at sync (record_log.cc:'
	# Only the process dies: then both are right.
	run 0 tidemark images logbug.rec --recover ./program --model kill
	;;
list)
	build gcc "$source.c" libpmemobj libpmemobj.h
	for bug in '' bug; do
		rm -f pool
		run 0 ./program pool 0
		run 0 tidemark record --pm pool --out "list$bug.rec" -- ./program pool 2 $bug
	done
	run 0 tidemark images list.rec --recover ./program --most 12
	says 'msyncs' 'none of them bad'
	! grep -q 'was compared' out || fail "pmemobj_open() is not seen through"
	run 1 tidemark images listbug.rec --recover ./program --most 12
	says 'exit status 1' 'noticed at put (record_list.c:'
	;;
pmem2)
	build gcc "$source.c" libpmem2 libpmem2.h
	for bug in '' bug; do
		rm -f pool
		run 0 tidemark record --pm pool --out "pmem2$bug.rec" -- ./program pool 3 $bug
	done
	run 0 tidemark images pmem2.rec --recover ./program
	says '15 stores, 6 flushes, 6 fences' 'none of them bad'
	run 1 tidemark images pmem2bug.rec --recover ./program
	says 'exit status 1' 'noticed at main (record_pmem2.c:'
	;;
rpma)
	build gcc "$source.c" librpma librpma.h
	port=$((20000 + $$ % 20000))
	for bug in '' bug reuse; do
		# Where the RNIC reads data at once, nobody sees that their buffer is used again too early.
		export TIDEMARK_GATHER=late
		[ "$bug" != bug ] || TIDEMARK_GATHER=early
		rm -f pool
		: >served
		tidemark record --pm pool --out "rpma$bug.rec" -- ./program server pool $port >served 2>&1 &
		server=$!
		until grep -q '^ready' served; do
			kill -0 $server 2>/dev/null || fail "the server does not start: $(cat served)"
			sleep 0.05
		done
		run 0 tidemark run -- ./program client $port 6 $bug
		wait $server || fail "the server ends with $?: $(cat served)"
		server=
	done
	# A READ or, of a newer librpma, a FLUSH makes durable what was written only where RNICs write past the caches.
	run 0 tidemark images rpma.rec --recover ./program --knob ddio=off
	says 'none of them bad'
	if grep -q 'RDMA FLUSHes' out; then
		run 1 tidemark images rpma.rec --recover ./program
	else
		says 'READs after landings'
		run 1 tidemark images rpma.rec --recover ./program --model power
		run 0 tidemark images rpma.rec --recover ./program # nothing is flushed: the process dies
	fi
	run 1 tidemark images rpmabug.rec --recover ./program --knob ddio=off
	says 'of 1 cause' 'lost: the landing of 64 bytes' 'by RDMA WRITE or atomic'
	# The same by a client of a server that is started on each image, several at once: in the fabric and at the ports of
	# the process that judges.
	cat >restart.sh <<-'END'
		mkfifo "$TIDEMARK_DIR/said.$$"
		./program server "$1" "$TIDEMARK_PORT" >"$TIDEMARK_DIR/said.$$" &
		read -r ready <"$TIDEMARK_DIR/said.$$"
		./program reader "$TIDEMARK_PORT"
		status=$?
		wait
		exit $status
	END
	unset TIDEMARK_FABRIC TIDEMARK_GATHER
	found() { sed -n 's/ images a second//; s/[0-9]*$//; /once more/d; /^ *[1-9l(]/p; /^the power/p' out; }
	found >one && grep -q lost: one || fail "nothing is compared"
	for jobs in 1 2 3; do
		run 1 tidemark images rpmabug.rec --recover 'tidemark run -- sh restart.sh {}' --knob ddio=off --jobs $jobs
		found | cmp one || fail "with $jobs at once something else is found"
	done
	run 0 tidemark images rpma.rec --recover 'tidemark run -- sh restart.sh {}' --knob ddio=off --jobs 2
	run 1 tidemark images rpmareuse.rec --recover ./program --model kill
	says '1. exit status 1'
	;;
esac
