#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_slurm.sh TIDEMARK SOURCES
#
# A campaign on a Slurm cluster (scripts/slurm), of which one node fails on the way: its part is run again, on the other one, and
# goes on where it was; what there is can be reported meanwhile; and the whole report is what one machine says. Then a part's
# results are lost, and what is missing is run again, and nothing else.
set -eu
tidemark=$(realpath "$1") sources=$(realpath "$2")
here=$(realpath "$(mktemp -d)")
# shellcheck source=tests/interop/slurm.sh
. "$sources/tests/interop/slurm.sh"
slurm_there || { rm -rf "$here"; exit 77; }
trap 'slurm_end "$here/slurm"; rm -rf "$here"' EXIT
export TIDEMARK=$tidemark TERM=dumb
slurm=$sources/scripts/slurm

fail() {
	echo "FAILED: $*" >&2
	squeue >&2 || :
	tail -n 20 "$here"/slurm/log/* "$here"/work/*.campaign/log/* >&2 || :
	exit 1
}
# await SECONDS COMMAND...
await() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "in vain: $*"
		sleep 0.2
	done
}
idle() { [ -z "$(squeue -h)" ]; }

campaign=(crashtest erda rfp --runs 60 --states 600 --json json)
mkdir "$here/work" "$here/one"
(cd "$here/one" && "$tidemark" "${campaign[@]}" >text)
slurm_start "$here/slurm" || fail 'no cluster'
cd "$here/work"

"$slurm/submit" -n 6 "${campaign[@]}" >ids
read -r array merge <ids
[ -n "$array" ] && [ -n "$merge" ] || fail "no numbers of jobs: $(cat ids)"

# A part that is under way on n2, with some results, though not all: the power of n2 fails.
victim() {
	part=$(squeue -h -j "$array" -w n2 -t R -o %K | head -n 1)
	[ -n "$part" ] && [ "$(stat -c %s "crashtest.campaign/results/$part.$array.0" 2>/dev/null || echo 0)" -gt 2000 ]
}
await 60 victim
slurm_fail "$here/slurm" n2

# What there is meanwhile.
status=0
"$slurm/merge" crashtest.campaign >partial 2>&1 || status=$?
[ $status -eq 3 ] || fail "the status of a part of the report: $status, $(tail -n 5 partial)"
grep -q "to run shard $part: " partial || fail "it is not said that part $part is missing: $(tail -n 9 partial)"

await 300 idle
[ -e "crashtest.campaign/results/$part.$array.1" ] || fail "part $part was not put into the queue again"
grep -q "results/$part.$array.1, which had [1-9][0-9]* of its units already" "crashtest.campaign/log/$part.$array" ||
	fail 'what was there was done again'
plain() { sed -E 's/states in [0-9.]* s, .*//' "$1"; }
equal() {
	[ ! -s crashtest.campaign/errors ] || fail "errors: $(cat crashtest.campaign/errors)"
	cmp <(plain "$here/one/text") <(plain crashtest.campaign/report) || fail 'another report'
	cmp <(grep -v -e seconds -e '"jobs"' "$here/one/json") <(grep -v -e seconds -e '"jobs"' json) || fail 'another JSON'
	diff -r "$here/one/traces" traces || fail 'other traces'
}
equal

# Results that are lost: that part is run again, and no other.
rm -rf crashtest.campaign/results/2.* crashtest.campaign/report traces json
"$slurm/submit" --again crashtest.campaign >ids
read -r array merge <ids
[ "$(squeue -h -r -j "$array" -o %K | paste -sd ' ')" = 2 ] || fail "not part 2 alone: $(squeue)"
await 300 idle
equal
