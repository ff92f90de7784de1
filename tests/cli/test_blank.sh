#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_blank.sh TIDEMARK: the program and what lies beside it in a folder with a blank in its name, and files in another one.
set -u
built=$(dirname "$1")
work=$(mktemp -d) || exit 70
trap 'rm -rf "$work"' EXIT
mkdir "$work/a b" "$work/c d" || exit 70
cp -a "$1" "$built"/*.so "$built/sdk" "$work/a b/" || exit 70
for other in lib record tidemark-images-caller; do
	[ ! -e "$built/$other" ] || cp -a "$built/$other" "$work/a b/"
done
tidemark="$work/a b/tidemark"
cd "$work/c d" || exit 70
failed=0

# run STATUS WORD...: nothing but tidemark's own lines on stderr.
run() {
	expected=$1
	shift
	"$tidemark" "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	[ $status -eq "$expected" ] && ! grep -v '^tidemark: ' "$work/err" && return
	echo "FAILED: status $status instead of $expected: tidemark $*" >&2
	cat "$work/out" "$work/err" >&2
	failed=1
}
has() {
	grep -q -e "$1" "$work/out" && return
	echo "FAILED: no '$1'" >&2
	cat "$work/out" >&2
	failed=1
}

# A store of one's own.
run 0 new-store mine
run 0 cc -g -o 'my store.so' mine/mine.c
run 0 crashtest './my store.so' --runs 5 --states 100 --out 'my traces' --json 'my results.json'
[ -s 'my results.json' ] || { echo 'no JSON' >&2; failed=1; }
# A trace, its page and its log.
run 0 crashtest efactory --workload w --runs 20 --out 'my traces'
run 1 replay -q 'my traces/efactory-DUR.trace' --html 'my page.html' --pmemcheck-log 'my log'
run 0 shrink 'my traces/efactory-DUR.trace' -o 'my traces/shrunk.trace'
run 0 images --log 'my log' --recover true -q
# Programs with our libraries before them.
run 0 run -- sh -c 'grep -o libtidemark-verbs.so /proc/$$/maps'
has libtidemark-verbs.so
run 0 record --pm 'my pool' --out 'my recording' -- sh -c 'grep -o libtidemark-record.so /proc/$$/maps'
has libtidemark-record.so
exit $failed
