#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_newer_verbs.sh INCLUDE-DIRECTORY
#
# An rdma-core that has FLUSH: core/verbs_compat.h gives way to it. Where the installed
# <infiniband/verbs.h> is older, a copy is brought up to date here, as far as FLUSH goes.
# The RNIC, the stores and their tests compile with it, and cmake/Dependencies.cmake finds out.
set -eu
CC=${CC:-cc}
cmake=${CMAKE:-cmake}
headers=$1
if grep -q wr_flush "$headers/infiniband/verbs.h"; then
	echo "this <infiniband/verbs.h> has FLUSH" >&2
	exit 77
fi
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
mkdir -p "$here/infiniband"
cp "$headers"/infiniband/*.h "$here/infiniband/"
awk '
	/IBV_WC_ATOMIC_WRITE = 9/ { print "\tIBV_WC_FLUSH = 8,"; n++ }
	/IBV_QP_EX_WITH_ATOMIC_WRITE.*1 << 12/ { print "\tIBV_QP_EX_WITH_FLUSH = 1 << 11,"; n++ }
	/IBV_WR_ATOMIC_WRITE = 15/ { print "\tIBV_WR_FLUSH = 14,"; n++ }
	/^struct ibv_data_buf/ {
		print "enum ibv_placement_type { IBV_FLUSH_GLOBAL = 1U << 0, IBV_FLUSH_PERSISTENT = 1U << 1 };"
		print "enum ibv_selectivity_level { IBV_FLUSH_RANGE = 0, IBV_FLUSH_MR };"
		n++
	}
	{ print }
	/IBV_ACCESS_HUGETLB/ { print "\tIBV_ACCESS_FLUSH_GLOBAL = (1 << 8), IBV_ACCESS_FLUSH_PERSISTENT = (1 << 9),"; n++ }
	/uint64_t remote_addr, const void \*atomic_wr\);/ && !member {
		print "\tvoid (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,"
		print "\t\t\t size_t len, uint8_t type, uint8_t level);"
		member = 1; n++
	}
	/^struct ibv_qp_ex \*ibv_qp_to_qp_ex/ {
		print "static inline void ibv_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,"
		print "\t\t\t\tsize_t len, uint8_t type, uint8_t level)"
		print "{ qp->wr_flush(qp, rkey, remote_addr, len, type, level); }"
		n++
	}
	END { exit n != 7 }
' "$headers/infiniband/verbs.h" >"$here/infiniband/verbs.h"

for source in core/rnic/*/*.c core/stores/*/*.c tests/core/rnic/test_qp_ex.c tests/core/rnic/test_rnic.c; do
	$CC -std=gnu17 -D_GNU_SOURCE -DTM_VERBS_FLUSH -I. -I"$here" -Wall -Wextra -Wno-unused-parameter -Werror -fsyntax-only "$source"
done

cat >"$here/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(newer LANGUAGES C)
include($PWD/cmake/Dependencies.cmake)
CMAKE
cp packages.txt "$here" 2>/dev/null || true
for want in 1 ''; do
	include=$headers
	[ -z "$want" ] || include=$here
	rm -rf "$here/build"
	"$cmake" -S "$here" -B "$here/build" -DCMAKE_C_COMPILER="$CC" -DVERBS_INCLUDE="$include" >"$here/log" 2>&1 || {
		cat "$here/log" >&2
		exit 1
	}
	got=$(sed -n 's/^TIDEMARK_VERBS_FLUSH:INTERNAL=//p' "$here/build/CMakeCache.txt")
	if [ "$got" != "$want" ]; then
		echo "TIDEMARK_VERBS_FLUSH is '$got' with $include, not '$want'" >&2
		exit 1
	fi
done
