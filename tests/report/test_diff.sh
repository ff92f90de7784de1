#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_diff.sh TIDEMARK SOURCES
#
# tidemark diff: what has changed between the results of two campaigns, and nothing else.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/../cli/own.sh"

# campaign NAME OPTION...: of a store, small.
campaign() {
	local name=$1
	shift
	run 0 tidemark crashtest pilaf --runs 6 --states 100 --no-traces -q --json "$name" "$@"
}
campaign a.json
campaign again.json --jobs 1
run 0 tidemark diff a.json again.json
says 'in both, 0 of them changed'
run 0 tidemark diff -q a.json again.json
[ ! -s out ] || fail 'not quiet'

# More runs: the figures differ, and perhaps what breaks.
campaign more.json --runs 7
run 1 tidemark diff --figures a.json more.json
says '  states: "'

# One verdict, exactly.
awk '/"verdict": "holds"/ && !n++ { sub("holds", "broken") } { print }' a.json >broken.json
run 1 tidemark diff a.json broken.json
sed -i 's/^\(in both\|[0-9]* entries\) .*/N entries/' out
cat >expected <<'END'
pilaf default default RDA
  verdict: "holds" -> "broken"
N entries
END
diff expected out >difference || fail "$(cat difference)"
run 1 tidemark diff -q a.json broken.json
[ ! -s out ] || fail 'not quiet'

# Entries within entries, numbers, lists; fields and entries that come and go.
cat >one.json <<'END'
{"claims": [{"id": "1.2", "says": "x", "cases": [
	{"store": "erda", "config": "ddio=off", "verdict": "holds", "states": 4, "list": [1, 2], "cost": {"fences": 3}, "gone": true},
	{"store": "erda", "config": "ddio=on", "verdict": "holds"}]}], "seconds": 1.5, "seed": 1}
END
cat >two.json <<'END'
{"claims": [{"id": "1.2", "says": "x", "cases": [
	{"store": "erda", "config": "ddio=off", "verdict": "holds", "states": 5, "list": [1, 3], "cost": {"fences": 4}, "come": null},
	{"store": "erda", "config": "ddio=any", "verdict": "holds"}]}], "seconds": 2.5, "seed": 2}
END
run 1 tidemark diff one.json two.json
cat >expected <<'END'
the campaign
  seed: "1" -> "2"
1.2 erda ddio=off
  list: "[1,2]" -> "[1,3]"
  cost.fences: "3" -> "4"
  gone: no more, was "true"
  come: now "null"
1.2 erda ddio=on
  only in one.json
1.2 erda ddio=any
  only in two.json
3 entries in both, 2 of them changed, 1 only in one.json, 1 only in two.json
END
diff expected out >difference || fail "$(cat difference)"

# Not as it should be.
echo '{"cells": [' >half.json
bad 'half.json:2:' tidemark diff a.json half.json
says 'expected JSON'
bad '' tidemark diff a.json
bad 'not one entry is in both' tidemark diff a.json one.json
