#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_often.sh TIDEMARK
#
# Where a bug makes a whole campaign meet known causes of breaks that may be far more often than is recorded, that is told, with
# a trace that shows it. Without the bug nothing is told. This bug breaks a promise as well, so the exit status 1 is not due to
# the frequency alone; tests/checker/judge/test_shares.c has the rule by itself.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/../../cli/own.sh"

run 0 tidemark crashtest ca --no-traces --quiet
run 1 tidemark crashtest ca --variant tail_short --out traces --quiet
grep -q '^  RDA .*BROKEN FAR MORE OFTEN$' out || fail 'it is not told'
grep -q 'a known cause, but [0-9]* runs show it and at most [0-9]* are recorded' out || fail 'how often is not told'
run 1 tidemark replay traces/ca-tail_short-RDA.trace
