#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# share.sh <LIST: the lines of a list of independent cases that are to be done.
# share.sh NUMBER COMMAND...: run the command if the case with this number, from 0, is to be done; else skip it (77).
#
# All are to be done. With TIDEMARK_SHARE=K/N (scripts/test) those are whose number is K modulo N, as in
# tests/checker/explore/budget.h for tests in C.
k=${TIDEMARK_SHARE%/*} n=${TIDEMARK_SHARE#*/}
: "${k:=0}" "${n:=1}"
[ $# -gt 0 ] || exec awk -v k="$k" -v n="$n" '(NR - 1) % n == k'
number=$1
shift
[ $((number % n)) -eq "$k" ] || {
	echo "not in the share $TIDEMARK_SHARE" >&2
	exit 77
}
exec "$@"
