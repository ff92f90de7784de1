#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_wrong_tree.sh TIDEMARK
#
# The tree of recoveries is wrong, by its mutant: each command that searches, shrinks or replays says so, writes the
# trace of the run with which it was, and ends with status 70.
tidemark=$(realpath "$1")
. "$(dirname "$0")/../shell.sh"
bug=(--knob mutant=tree_line_left_out)

ends() {
	rm -f tree.trace
	run 70 "$tidemark" "$@"
	[ "$(grep -c 'tidemark: ' err)" -eq 1 ] || wrong "not one message: $*"
}
# With a trace, which is one of a good run.
tells() {
	ends "$@"
	grep -q 'an image has another outcome .*; the run: tree.trace' err || wrong "no words: $*"
	"$tidemark" replay -q tree.trace >/dev/null 2>&1 || wrong "no trace, or a bad one: $*"
}
# The trace is that which is named.
tells_of() {
	ends "$@"
	grep -q 'whole.trace: what was taken for known' err || wrong "no words: $*"
}

# Files that it would have written do not stay what an earlier campaign has made of them: they say that there are no results.
no_results() {
	local file
	for file; do
		sed '/^<style>/,/id=results>/d; /^<script>/,$d' "$file" >results # of a page: without what shows them
		grep -q 'No results: .*an image has another outcome' results || wrong "$file does not say that there are none"
		! grep -qE 'as expected|"holds"' results || wrong "$file says what it is not"
	done
}
files=(--json r.json --junit r.xml --sarif r.sarif --html pages)
"$tidemark" crashtest efactory --workload w1r2-w2r1 --runs 3 -q "${files[@]}" >out 2>err || wrong 'a good campaign'
grep -q 'Everything that was tried' r.json r.xml r.sarif pages/index.html || wrong 'a good campaign does not say so'
tells crashtest efactory --workload w1r2-w2r1 "${bug[@]}" --runs 300 -q "${files[@]}"
no_results r.json r.xml r.sarif pages/index.html
grep -q '"status": 70' r.json && grep -q '"exitCode": 70' r.sarif && grep -q '<error ' r.xml && ! grep -q '<testcase[^>]*/>' r.xml || wrong 'another status, or a case that passes'
tells crashtest efactory --workload w1r2-w2r1 "${bug[@]}" --runs 300 -q --exhaustive
# KEEP's bounds come of all images of the run.
sed -e '/^deviate/d' -e 's/^broken none/broken KEEP/' tree.trace >whole.trace
# The campaign makes every image; the shrinker does not.
tells crashtest efactory --variant one_flush --workload w1r2-w2r1 "${bug[@]}" --runs 300 -q --no-tree
# A contract that it does not break: so the shrinker looks at all images.
sed -e 's/^broken none/broken RDA/' tree.trace >broken.trace
tells shrink broken.trace -o small.trace
[ ! -e small.trace ] || wrong 'a shrunk trace is written all the same'
tells fuzz efactory "${bug[@]}" --runs 2000 -q --no-traces
tells ablate efactory --workload w1r2-w2r1 "${bug[@]}" -q --no-traces --one-config
tells taxonomy w1 "${bug[@]}" -q --no-traces --json t.json --junit t.xml
no_results t.json t.xml
tells_of replay -q whole.trace
mkdir known
cp whole.trace known
tells_of fuzz efactory --regress known --runs 10 -q --no-traces
ended
