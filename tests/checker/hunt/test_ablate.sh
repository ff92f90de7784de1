#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_ablate.sh PROGRAM STORE [OPTION...]
#
# Every place of a shipped store without which nothing breaks is explained in its ablation.txt, and
# what stands there is still so.
program=$1
shift
out=$("$program" ablate "$@" -q --no-traces)
status=$?
[ $status -eq 0 ] || { echo "$out" | grep -B3 -E 'not explained|no longer so|no such place|not as' >&2; }
echo "$out" | tail -2
exit $status
